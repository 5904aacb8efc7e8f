// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive buffers of the target: one SRQ for all clients.
 *
 * Entry points: kbt_srq_start() and kbt_srq_stop(), kbt_srq_adapt() when the number of
 * connections changes, kbt_srq_ran_low() for the low watermark, kbt_rx_data(), kbt_rx_get()
 * and kbt_rx_put() for the receive path.
 *
 * There is a buffer for each credit that clients have, see tgt_credit.c; the queue grows and
 * shrinks with the number of connections and with the credits in use. The low watermark tells
 * that most buffers are in use: the queue is then doubled, so that there are more credits. The
 * length is checked again soon, doubled again if necessary, and reduced after a calm period.
 * The watermark is armed again only when the queue has recovered; earlier, the same event
 * would repeat.
 *
 * Buffers come in chunks. To shrink, the youngest chunk retires: its buffers are not reposted
 * when they return, and when all have returned the queue is shortened and the chunk freed.
 * Nothing can be removed from a queue, so on an idle port this takes until the next requests.
 *
 * A buffer returns to the queue when the last request of its message was taken and no data is
 * left in it. A write that waits for a page keeps the buffer until then; a write whose data is
 * not copied keeps it until the medium has the data, see kbt_may_keep(). Each buffer in use
 * stands for a request that was not replied to, and thus for a credit, so clients that keep to
 * their credits still find a buffer. The buffers of a connection that has ended come back at
 * once, see kbt_drop_messages().
 *
 * The chunks own the memory. Locks: srq_mutex guards the list of chunks and the length,
 * srq_lock the state of a chunk; kbt_rx_put() takes only srq_lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/align.h>
#include <linux/blkdev.h>
#include <linux/jiffies.h>
#include <linux/printk.h>
#include <linux/sched/mm.h>
#include "tgt.h"

#define KBT_LOW_RECHECK	msecs_to_jiffies(20)
#define KBT_CALM	(5 * HZ)
#define KBT_CHUNK_BUFS	7
/*
 * Distance between buffers, and offset of the first one: the data of a message's first request
 * is aligned as block devices want it.
 */
#define KBT_RX_SIZE	ALIGN(KBLK_MESSAGE, SECTOR_SIZE)
#define KBT_RX_AT	(SECTOR_SIZE - sizeof(struct kblk_request))
#define KBT_CHUNK_SIZE	(KBT_RX_AT + KBT_CHUNK_BUFS * KBT_RX_SIZE)
#define KBT_ALL_HOME	GENMASK(KBT_CHUNK_BUFS - 1, 0)

/*
 * struct kbt_rx - a receive buffer
 * @chunk: chunk that the buffer belongs to
 * @at: offset of the buffer in the memory of @chunk
 * @users: the message in the buffer until its last request was taken, and each slot that keeps
 *	the buffer
 */
struct kbt_rx {
	struct kbt_chunk *chunk;
	size_t at;
	atomic_t users;
};

/*
 * struct kbt_chunk - memory of KBT_CHUNK_BUFS receive buffers
 * @link: in kbt->chunks, under srq_mutex
 * @mem: the buffers
 * @retiring: buffers are not reposted; srq_lock
 * @home: bit for each buffer that has returned since @retiring was set; srq_lock
 * @rx: cookies of the buffers
 */
struct kbt_chunk {
	struct list_head link;
	struct kblk_buf mem;
	bool retiring;
	unsigned long home;
	struct kbt_rx rx[KBT_CHUNK_BUFS];
};

const void *kbt_rx_data(DAT_DTO_COOKIE cookie)
{
	const struct kbt_rx *rx = cookie.as_ptr;

	return rx->chunk->mem.va + rx->at;
}

/*
 * Post @rx to the SRQ. A failure while the adapter exists loses the buffer; without the
 * adapter nobody can send.
 */
static void kbt_rx_post(struct kbt *kbt, struct kbt_rx *rx)
{
	DAT_LMR_TRIPLET seg = kblk_seg(&rx->chunk->mem, rx->at, KBLK_MESSAGE);
	DAT_DTO_COOKIE cookie = { .as_ptr = rx };
	DAT_RETURN ret;

	atomic_set(&rx->users, 1);
	ret = dat_srq_post_recv(kbt->srq, 1, &seg, cookie);
	if (ret != DAT_SUCCESS && !READ_ONCE(kbt->gone))
		pr_warn_ratelimited("receive buffer lost: %s\n",
				    kblk_strerror(ret));
}

/* Run kbt_srq_work() now instead of after the calm period. Context: any. */
void kbt_srq_adapt(struct kbt *kbt)
{
	mod_delayed_work(kbt->end_wq, &kbt->srq_work, 0);
}

/* Run kbt_srq_work() after the calm period, unless it is due earlier. Context: any. */
void kbt_srq_calm_down(struct kbt *kbt)
{
	queue_delayed_work(kbt->end_wq, &kbt->srq_work, KBT_CALM);
}

/* Add a user to a buffer whose message is being served. Context: any. */
void kbt_rx_get(DAT_DTO_COOKIE cookie)
{
	struct kbt_rx *rx = cookie.as_ptr;

	atomic_inc(&rx->users);
}

/* Return a buffer to the queue, or to its chunk. Context: any. */
static void kbt_rx_repost(struct kbt *kbt, struct kbt_rx *rx)
{
	struct kbt_chunk *chunk = rx->chunk;
	unsigned long flags;
	bool retired;

	spin_lock_irqsave(&kbt->srq_lock, flags);
	retired = chunk->retiring;
	if (retired) {
		chunk->home |= BIT(rx - chunk->rx);
		if (chunk->home == KBT_ALL_HOME)
			kbt_srq_adapt(kbt);
	}
	spin_unlock_irqrestore(&kbt->srq_lock, flags);
	if (!retired)
		kbt_rx_post(kbt, rx);
}

/*
 * Drop a user of a buffer: a slot, or the message in the buffer. The last user returns the
 * buffer. litmus: last-put. Context: any.
 */
void kbt_rx_put(struct kbt *kbt, DAT_DTO_COOKIE cookie)
{
	struct kbt_rx *rx = cookie.as_ptr;

	if (atomic_dec_and_test(&rx->users))
		kbt_rx_repost(kbt, rx);
}

/* ---- Size ---------------------------------------------------------------- */

/* Return how many buffers the longest queue has. */
unsigned int kbt_srq_max(struct kbt *kbt)
{
	return rounddown(kbt->params->srq_max, KBT_CHUNK_BUFS);
}

/* Return how many buffers the current number of connections needs. */
static unsigned int kbt_srq_wanted(struct kbt *kbt)
{
	const struct kbt_params *params = kbt->params;
	u64 n = (u64)params->srq_per_conn * READ_ONCE(kbt->conn_count);

	n = max_t(u64, params->srq_size + n, kbt_credits_buffers(kbt));
	n = min_t(u64, n + KBT_CHUNK_BUFS - 1, params->srq_max);
	return max(rounddown((unsigned int)n, KBT_CHUNK_BUFS), KBT_CHUNK_BUFS);
}

static void kbt_srq_set_low(struct kbt *kbt)
{
	lockdep_assert_held(&kbt->srq_mutex);

	kbt->srq_low = kbt->params->srq_low ?: kbt_srq_wanted(kbt) / 4;
	kbt->srq_low = min(kbt->srq_low, kbt->srq_posted);
	dat_srq_set_lw(kbt->srq, kbt->srq_low);
}

/* Allocate a chunk and post its buffers. Context: process. */
static int kbt_chunk_add(struct kbt *kbt)
{
	struct kbt_chunk *chunk = kzalloc(sizeof(*chunk), GFP_KERNEL);
	unsigned int i;
	int err;

	lockdep_assert_held(&kbt->srq_mutex);

	if (!chunk)
		return -ENOMEM;
	err = kblk_buf_alloc(&chunk->mem, kbt->ia, kbt->pz, KBT_CHUNK_SIZE);
	if (err) {
		kfree(chunk);
		return err;
	}
	list_add_tail(&chunk->link, &kbt->chunks);
	kbt->srq_posted += KBT_CHUNK_BUFS;
	WRITE_ONCE(kbt->usable, kbt->usable + KBT_CHUNK_BUFS);
	for (i = 0; i < KBT_CHUNK_BUFS; i++) {
		chunk->rx[i].chunk = chunk;
		chunk->rx[i].at = KBT_RX_AT + i * KBT_RX_SIZE;
		kbt_rx_post(kbt, &chunk->rx[i]);
	}
	return 0;
}

/*
 * Lock srq_mutex; allocations under it are NOIO, as in kbt_cm_upcall(). Return the flags for
 * kbt_srq_unlock().
 */
static unsigned int kbt_srq_lock(struct kbt *kbt)
{
	mutex_lock(&kbt->srq_mutex);
	return memalloc_noio_save();
}

static void kbt_srq_unlock(struct kbt *kbt, unsigned int noio)
{
	memalloc_noio_restore(noio);
	mutex_unlock(&kbt->srq_mutex);
}

/*
 * Make the queue longer by @n buffers and post them. The queue is resized first: a post beyond
 * its length fails.
 */
static int kbt_srq_grow(struct kbt *kbt, unsigned int n)
{
	DAT_RETURN ret = dat_srq_resize(kbt->srq, kbt->srq_posted + n);
	int err = kblk_errno(ret);

	lockdep_assert_held(&kbt->srq_mutex);

	if (err)
		return err;
	for (; n && !err; n -= KBT_CHUNK_BUFS)
		err = kbt_chunk_add(kbt);
	if (err)
		dat_srq_resize(kbt->srq, kbt->srq_posted);
	return err;
}

/* Return how many buffers of retiring chunks wait for the rest of their chunk. */
unsigned int kbt_srq_retired(struct kbt *kbt)
{
	struct kbt_chunk *chunk;
	unsigned int n = 0;

	mutex_lock(&kbt->srq_mutex);
	spin_lock_irq(&kbt->srq_lock);
	list_for_each_entry(chunk, &kbt->chunks, link)
		n += hweight_long(chunk->home);
	spin_unlock_irq(&kbt->srq_lock);
	mutex_unlock(&kbt->srq_mutex);
	return n;
}

static void kbt_chunk_free(struct kbt_chunk *chunk)
{
	list_del(&chunk->link);
	kblk_buf_free(&chunk->mem);
	kfree(chunk);
}

/* Stop retiring @chunk and repost the buffers that have returned. */
static void kbt_chunk_recall(struct kbt *kbt, struct kbt_chunk *chunk)
{
	unsigned long home;
	unsigned int i;

	lockdep_assert_held(&kbt->srq_mutex);

	spin_lock_irq(&kbt->srq_lock);
	home = chunk->home;
	chunk->home = 0;
	chunk->retiring = false;
	spin_unlock_irq(&kbt->srq_lock);
	WRITE_ONCE(kbt->usable, kbt->usable + KBT_CHUNK_BUFS);
	for_each_set_bit(i, &home, KBT_CHUNK_BUFS)
		kbt_rx_post(kbt, &chunk->rx[i]);
}

/* Shorten the queue and free @chunk, all of whose buffers have returned. */
static void kbt_chunk_retire(struct kbt *kbt, struct kbt_chunk *chunk)
{
	DAT_RETURN ret;

	lockdep_assert_held(&kbt->srq_mutex);

	/* dat_srq_resize() refuses a length below the watermark. */
	kbt->srq_posted -= KBT_CHUNK_BUFS;
	kbt_srq_set_low(kbt);
	ret = dat_srq_resize(kbt->srq, kbt->srq_posted);
	if (ret == DAT_SUCCESS) {
		kbt_chunk_free(chunk);
		return;
	}
	kbt->srq_posted += KBT_CHUNK_BUFS;
	kbt_chunk_recall(kbt, chunk);
}

/* Retire the chunks beyond the first @wanted buffers, recall the others. */
static void kbt_srq_sort(struct kbt *kbt, unsigned int wanted)
{
	struct kbt_chunk *chunk, *next;
	unsigned int n = 0;
	bool home;

	lockdep_assert_held(&kbt->srq_mutex);

	list_for_each_entry_safe(chunk, next, &kbt->chunks, link) {
		n += KBT_CHUNK_BUFS;
		if (n <= wanted) {
			if (chunk->retiring)
				kbt_chunk_recall(kbt, chunk);
			continue;
		}
		if (!chunk->retiring)
			WRITE_ONCE(kbt->usable, kbt->usable - KBT_CHUNK_BUFS);
		spin_lock_irq(&kbt->srq_lock);
		chunk->retiring = true;
		home = chunk->home == KBT_ALL_HOME;
		spin_unlock_irq(&kbt->srq_lock);
		if (home)
			kbt_chunk_retire(kbt, chunk);
	}
}

/* Return whether at least 3/4 of the buffers wait for a message. */
static bool kbt_srq_calm(struct kbt *kbt)
{
	DAT_SRQ_PARAM param;

	return dat_srq_query(kbt->srq, DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT |
			     DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT,
			     &param) == DAT_SUCCESS &&
	       param.available_dto_count >= param.outstanding_dto_count / 4 * 3;
}

static void kbt_srq_work(struct work_struct *work)
{
	struct kbt *kbt = container_of(to_delayed_work(work), struct kbt,
				       srq_work);
	unsigned int wanted = kbt_srq_wanted(kbt);
	unsigned int noio = kbt_srq_lock(kbt);

	if (kbt->srq_posted < wanted) {
		/* NOIO allocations compact no memory, but others may until the next try. */
		if (kbt_srq_grow(kbt, wanted - kbt->srq_posted))
			queue_delayed_work(kbt->end_wq, &kbt->srq_work, HZ);
		kbt_srq_set_low(kbt);
	}
	if (kbt->srq_posted > wanted && !kbt_srq_calm(kbt)) {
		wanted = kbt->srq_posted;
		queue_delayed_work(kbt->end_wq, &kbt->srq_work, KBT_CALM);
	}
	kbt_srq_sort(kbt, wanted);
	kbt_srq_unlock(kbt, noio);
}

/* ---- The low watermark --------------------------------------------------- */

/* Double the queue, up to srq_max. */
static void kbt_srq_double(struct kbt *kbt)
{
	unsigned int was = kbt->srq_posted;
	unsigned int max = kbt_srq_max(kbt);

	/* Recall retiring chunks first. */
	kbt_srq_sort(kbt, was);
	if (was >= max || kbt_srq_grow(kbt, min(was, max - was)))
		return;
	pr_info_ratelimited("%s: fewer than %u receive buffers free, posted %u more\n",
			    kbt->params->ia, kbt->srq_low,
			    kbt->srq_posted - was);
	mod_delayed_work(kbt->end_wq, &kbt->srq_work, KBT_CALM);
}

/* Handle the low watermark event. Context: process. */
void kbt_srq_ran_low(struct kbt *kbt)
{
	unsigned int noio;

	kbt_count(kbt, KBT_STAT_LOW_WATERMARK, 1);
	noio = kbt_srq_lock(kbt);
	kbt_srq_double(kbt);
	kbt_srq_unlock(kbt, noio);
	queue_delayed_work(kbt->end_wq, &kbt->low_work, KBT_LOW_RECHECK);
}

static void kbt_low_work(struct work_struct *work)
{
	struct kbt *kbt = container_of(to_delayed_work(work), struct kbt,
				       low_work);
	DAT_SRQ_PARAM param;
	unsigned int noio;

	if (dat_srq_query(kbt->srq, DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT,
			  &param) != DAT_SUCCESS)
		return;
	noio = kbt_srq_lock(kbt);
	if (param.available_dto_count < (DAT_COUNT)kbt->srq_low) {
		kbt_srq_double(kbt);
		queue_delayed_work(kbt->end_wq, &kbt->low_work,
				   KBT_LOW_RECHECK);
	} else {
		kbt_srq_set_low(kbt);
	}
	kbt_srq_unlock(kbt, noio);
}

/* ---- Start and stop ------------------------------------------------------ */

int kbt_srq_start(struct kbt *kbt)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = kbt_srq_wanted(kbt),
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_RETURN ret;
	int err;

	kbt_credits_init(kbt);
	mutex_init(&kbt->srq_mutex);
	spin_lock_init(&kbt->srq_lock);
	INIT_LIST_HEAD(&kbt->chunks);
	INIT_DELAYED_WORK(&kbt->srq_work, kbt_srq_work);
	INIT_DELAYED_WORK(&kbt->low_work, kbt_low_work);
	ret = dat_srq_create(kbt->ia, kbt->pz, &attr, &kbt->srq);
	if (ret != DAT_SUCCESS) {
		/* kbt_port_retry() tries again; the same error is logged once. */
		if (kblk_errno(ret) != kbt->port->err)
			pr_err("%s: no shared receive queue: %s\n",
			       kbt->params->ia, kblk_strerror(ret));
		return kblk_errno(ret);
	}
	mutex_lock(&kbt->srq_mutex);
	err = kbt_srq_grow(kbt, kbt_srq_wanted(kbt));
	kbt_srq_set_low(kbt);
	mutex_unlock(&kbt->srq_mutex);
	if (err)
		kbt_srq_stop(kbt);
	return err;
}

/*
 * Free the SRQ and its buffers. All connections are freed, and the upcall of the asynchronous
 * EVD is torn down, so no work is queued concurrently.
 */
void kbt_srq_stop(struct kbt *kbt)
{
	struct kbt_chunk *chunk, *next;

	cancel_delayed_work_sync(&kbt->low_work);
	cancel_delayed_work_sync(&kbt->srq_work);
	dat_srq_free(kbt->srq);
	list_for_each_entry_safe(chunk, next, &kbt->chunks, link)
		kbt_chunk_free(chunk);
}
