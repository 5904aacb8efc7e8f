// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive buffers: one SRQ for all connections of an adapter. A buffer is at the SRQ, or with
 * the function that handles its message and posts it again.
 *
 * The queue has srq_size buffers, srq_per_session more for each connection, and at least as
 * many as connections have reserved (credit.c). The low watermark tells that most buffers are
 * in use: the queue is doubled, and becomes shorter again when it was calm for a while. The
 * watermark is armed again only when the queue has recovered; earlier, the same event would
 * repeat.
 *
 * Memory comes in blocks of KI_BLOCK_ORDER, never larger ones. To shrink, the youngest block
 * retires: its buffers are not posted again when they return, and when all have returned the
 * queue is shortened and the block freed. Nothing can be taken out of a queue, so on an idle
 * adapter this takes until the next messages.
 *
 * A backend may write from the buffer that holds the data of a small command. Up to a quarter
 * of the buffers are lent in this way, so that a backend which stands still cannot have them
 * all; none is on iWARP, where the buffers that sessions have reserved must be posted.
 *
 * a->srq_mutex guards the list of blocks and the length, a->srq_lock the buffers that retiring
 * blocks have got back. ki_buf_post() takes a->srq_lock only for these.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include "isert.h"

#define KI_ALL_HOME	GENMASK(KI_BLOCK_BUFS - 1, 0)
#define KI_RECHECK	msecs_to_jiffies(20)
#define KI_CALM		(5 * HZ)

static unsigned int srq_size = 256;
module_param(srq_size, uint, 0644);
MODULE_PARM_DESC(srq_size, "receive buffers of an adapter without connections");

static unsigned int srq_per_session = 8;
module_param(srq_per_session, uint, 0644);
MODULE_PARM_DESC(srq_per_session, "further receive buffers for each connection");

static unsigned int srq_max = 9000;
module_param(srq_max, uint, 0644);
MODULE_PARM_DESC(srq_max, "most receive buffers of an adapter");

/* Register @len bytes of @pages for local access only, and set @all to all of them. */
int ki_pages_register(struct ki_adapter *a, struct page *pages, size_t len,
		      DAT_MEM_PRIV_FLAGS priv, DAT_LMR_HANDLE *lmr,
		      DAT_LMR_TRIPLET *all)
{
	DAT_REGION_DESCRIPTION region = { .for_va = page_address(pages) };
	DAT_RETURN ret;

	all->segment_length = len;
	ret = dat_lmr_kcreate(a->ia, DAT_MEM_TYPE_VIRTUAL, region, len, a->pz,
			      priv, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE,
			      lmr, &all->lmr_context, NULL, NULL,
			      &all->virtual_address);
	if (ret == DAT_SUCCESS)
		return 0;
	if (!READ_ONCE(a->gone))
		pr_warn_ratelimited("%s: cannot register memory: %s\n", a->name,
				    ki_strerror(ret));
	return -ENOMEM;
}

/*
 * Free 2^@order pages and their registration, if there is one. dat_lmr_free() fails while a
 * driver does not end a connection: the device may still write into the pages, which are
 * leaked then.
 */
void ki_pages_free(DAT_LMR_HANDLE lmr, struct page *pages, unsigned int order)
{
	if (lmr && DAT_GET_TYPE(dat_lmr_free(lmr)) == DAT_INVALID_STATE)
		pr_err("a connection does not end: %lu bytes are lost\n", PAGE_SIZE << order);
	else
		__free_pages(pages, order);
}

static void ki_buf_give(struct ki_adapter *a, struct ki_buf *buf)
{
	DAT_DTO_COOKIE cookie = { .as_ptr = buf };
	DAT_RETURN ret;

	ret = dat_srq_post_recv(a->srq, 1, &buf->seg, cookie);
	if (ret != DAT_SUCCESS && !READ_ONCE(a->gone))
		pr_warn_ratelimited("%s: a receive buffer is refused: %s\n", a->name,
				    ki_strerror(ret));
}

/* Keep a buffer whose block is retiring; return false if the block is not. */
static bool ki_buf_keep(struct ki_adapter *a, struct ki_buf *buf)
{
	struct ki_block *b = buf->block;
	bool kept;

	spin_lock_bh(&a->srq_lock);
	kept = b->retiring;
	if (kept) {
		b->home |= BIT(buf - b->bufs);
		if (b->home == KI_ALL_HOME)
			ki_srq_adapt(a);
	}
	spin_unlock_bh(&a->srq_lock);
	return kept;
}

/* Post a buffer whose message was handled. Context: process or softirq. */
void ki_buf_post(struct ki_adapter *a, struct ki_buf *buf)
{
	if (unlikely(READ_ONCE(buf->block->retiring)) && ki_buf_keep(a, buf))
		return;
	ki_buf_give(a, buf);
}

/* ---- Buffers that backends write from -------------------------------------------- */

/*
 * Lend @buf, which has the PDU of @kc, to @kc; return false if the data has to be copied.
 * litmus: none, a count.
 */
bool ki_buf_lend(struct ki_conn *c, struct ki_cmd *kc, struct ki_buf *buf)
{
	struct ki_adapter *a = c->a;

	if (a->iwarp)
		return false;
	if (atomic_inc_return(&a->lent) > (int)(READ_ONCE(a->bufs) / 4)) {
		atomic_dec(&a->lent);
		return false;
	}
	kc->buf = buf;
	spin_lock_bh(&c->lock);
	list_add(&buf->link, &c->lent);
	spin_unlock_bh(&c->lock);
	return true;
}

static void ki_buf_unlend(struct ki_conn *c, struct ki_buf *buf)
{
	spin_lock_bh(&c->lock);
	list_del(&buf->link);
	spin_unlock_bh(&c->lock);
	atomic_dec(&c->a->lent);
	ki_buf_post(c->a, buf);
}

/* Take back the buffer lent to @kc, if any. Context: any but hard interrupts. */
void ki_buf_take_back(struct ki_conn *c, struct ki_cmd *kc)
{
	struct ki_buf *buf = kc->buf;

	kc->buf = NULL;
	if (buf)
		ki_buf_unlend(c, buf);
}

/* Take back the buffers of commands that were never answered; all commands of @c have ended. */
void ki_bufs_take_back(struct ki_conn *c)
{
	struct ki_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &c->lent, link)
		ki_buf_unlend(c, buf);
}

/* ---- Length ---------------------------------------------------------------------- */

/* Return how many buffers there may be. */
unsigned int ki_srq_limit(struct ki_adapter *a)
{
	unsigned int n = min_t(unsigned int, READ_ONCE(srq_max), a->max_srq);

	return max_t(unsigned int, rounddown(n, KI_BLOCK_BUFS), KI_BLOCK_BUFS);
}

/* Return how many buffers there should be. */
static unsigned int ki_srq_wanted(struct ki_adapter *a)
{
	u64 n = (u64)READ_ONCE(srq_per_session) * a->conns + READ_ONCE(srq_size);

	lockdep_assert_held(&a->srq_mutex);

	n = min_t(u64, n + a->srq_extra, ki_srq_limit(a));
	/* Cover what sessions may send already, even if srq_max was lowered since. */
	n = max_t(u64, n, a->reserved) + KI_BLOCK_BUFS - 1;
	return max_t(unsigned int, rounddown((unsigned int)n, KI_BLOCK_BUFS),
		     KI_BLOCK_BUFS);
}

static void ki_block_free(struct ki_block *b)
{
	list_del(&b->link);
	ki_pages_free(b->lmr, b->pages, KI_BLOCK_ORDER);
	kfree(b);
}

/* Allocate a block and post its buffers, for which the queue has room. */
static int ki_block_add(struct ki_adapter *a)
{
	struct ki_block *b = kzalloc(sizeof(*b), GFP_KERNEL);
	DAT_LMR_TRIPLET all;
	unsigned int i;

	lockdep_assert_held(&a->srq_mutex);

	if (!b)
		return -ENOMEM;
	/* Backends that write from a buffer may take references to its pages, and drop them. */
	b->pages = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_NOWARN, KI_BLOCK_ORDER);
	if (!b->pages)
		goto err_free;
	if (ki_pages_register(a, b->pages, KI_BLOCK_LEN,
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &b->lmr, &all))
		goto err_pages;
	list_add_tail(&b->link, &a->blocks);
	WRITE_ONCE(a->bufs, a->bufs + KI_BLOCK_BUFS);
	for (i = 0; i < KI_BLOCK_BUFS; i++) {
		b->bufs[i].block = b;
		b->bufs[i].va = page_address(b->pages) + KI_BUF_AT + i * KI_BUF_LEN;
		b->bufs[i].seg = all;
		b->bufs[i].seg.virtual_address += KI_BUF_AT + i * KI_BUF_LEN;
		b->bufs[i].seg.segment_length = KI_BUF_LEN;
		ki_buf_give(a, &b->bufs[i]);
	}
	return 0;

err_pages:
	__free_pages(b->pages, KI_BLOCK_ORDER);
err_free:
	kfree(b);
	return -ENOMEM;
}

/* Make the queue longer, up to @n buffers; first resize it, as a post beyond it would fail. */
static int ki_srq_grow(struct ki_adapter *a, unsigned int n)
{
	DAT_RETURN ret;
	int err = 0;

	lockdep_assert_held(&a->srq_mutex);

	ret = dat_srq_resize(a->srq, n);
	if (ret != DAT_SUCCESS)
		return -ENOMEM;
	while (a->bufs < n && !err)
		err = ki_block_add(a);
	if (err)
		dat_srq_resize(a->srq, a->bufs);
	return err;
}

static void ki_srq_set_low(struct ki_adapter *a)
{
	lockdep_assert_held(&a->srq_mutex);

	a->srq_low = min(ki_srq_wanted(a), a->bufs) / 4;
	dat_srq_set_lw(a->srq, a->srq_low);
}

/* Recall a retiring block: post its buffers again. */
static void ki_block_recall(struct ki_adapter *a, struct ki_block *b)
{
	unsigned long home;
	unsigned int i;

	lockdep_assert_held(&a->srq_mutex);

	spin_lock_bh(&a->srq_lock);
	home = b->home;
	b->home = 0;
	WRITE_ONCE(b->retiring, false);
	spin_unlock_bh(&a->srq_lock);
	for_each_set_bit(i, &home, KI_BLOCK_BUFS)
		ki_buf_give(a, &b->bufs[i]);
}

/* Shorten the queue by @b, all of whose buffers have returned. */
static void ki_block_retire(struct ki_adapter *a, struct ki_block *b)
{
	lockdep_assert_held(&a->srq_mutex);

	/* dat_srq_resize() refuses a length below the watermark. */
	WRITE_ONCE(a->bufs, a->bufs - KI_BLOCK_BUFS);
	ki_srq_set_low(a);
	if (dat_srq_resize(a->srq, a->bufs) == DAT_SUCCESS) {
		ki_block_free(b);
		return;
	}
	WRITE_ONCE(a->bufs, a->bufs + KI_BLOCK_BUFS);
	ki_block_recall(a, b);
}

/* Retire the blocks beyond the first @wanted buffers, recall the others. */
static void ki_srq_sort(struct ki_adapter *a, unsigned int wanted)
{
	struct ki_block *b, *next;
	unsigned int n = 0;
	bool home;

	lockdep_assert_held(&a->srq_mutex);

	list_for_each_entry_safe(b, next, &a->blocks, link) {
		n += KI_BLOCK_BUFS;
		if (n <= wanted) {
			if (b->retiring)
				ki_block_recall(a, b);
			continue;
		}
		spin_lock_bh(&a->srq_lock);
		WRITE_ONCE(b->retiring, true);
		home = b->home == KI_ALL_HOME;
		spin_unlock_bh(&a->srq_lock);
		if (home)
			ki_block_retire(a, b);
	}
}

static DAT_COUNT ki_srq_available(struct ki_adapter *a)
{
	DAT_SRQ_PARAM param;

	if (dat_srq_query(a->srq, DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT, &param) !=
	    DAT_SUCCESS)
		return 0;
	return param.available_dto_count;
}

/* ---- Changes of the length ------------------------------------------------------- */

/* Run ki_srq_work() now. Context: any. */
void ki_srq_adapt(struct ki_adapter *a)
{
	mod_delayed_work(system_long_wq, &a->srq_work, 0);
}

/* Note that the low watermark was crossed. Context: process. */
void ki_srq_ran_low(struct ki_adapter *a)
{
	WRITE_ONCE(a->ran_low, true);
	atomic_long_inc(&a->stats[KI_STAT_LOW]);
	ki_srq_adapt(a);
}

/* Double the queue, or arm the watermark again if enough buffers are available. */
static void ki_srq_recover(struct ki_adapter *a)
{
	if (ki_srq_available(a) >= (DAT_COUNT)a->srq_low) {
		WRITE_ONCE(a->ran_low, false);
		ki_srq_set_low(a);
		mod_delayed_work(system_long_wq, &a->srq_work, KI_CALM);
		return;
	}
	if (ki_srq_wanted(a) < ki_srq_limit(a)) {
		a->srq_extra += a->bufs;
		pr_info_ratelimited("%s: fewer than %u receive buffers are left, making more than %u\n",
				    a->name, a->srq_low, a->bufs);
	}
	mod_delayed_work(system_long_wq, &a->srq_work, KI_RECHECK);
}

static void ki_srq_work(struct work_struct *work)
{
	struct ki_adapter *a = container_of(to_delayed_work(work), struct ki_adapter,
					    srq_work);
	unsigned int wanted;

	mutex_lock(&a->srq_mutex);
	if (READ_ONCE(a->gone))
		goto out;
	if (a->ran_low) {
		ki_srq_recover(a);
	} else if (a->srq_extra) {
		/* The queue was calm for KI_CALM, unless sessions have come and gone. */
		if (ki_srq_available(a) >= (DAT_COUNT)(a->bufs / 4 * 3))
			a->srq_extra /= 2;
		mod_delayed_work(system_long_wq, &a->srq_work, KI_CALM);
	}
	wanted = ki_srq_wanted(a);
	if (a->bufs < wanted)
		ki_srq_grow(a, wanted);
	ki_srq_sort(a, wanted);
	if (!a->ran_low)
		ki_srq_set_low(a);
out:
	mutex_unlock(&a->srq_mutex);
}

/* Make sure that as many buffers are posted as connections have reserved. */
static bool ki_srq_cover(struct ki_adapter *a)
{
	unsigned int wanted = ki_srq_wanted(a);

	if (a->bufs < a->reserved && ki_srq_grow(a, wanted))
		return false;
	/* Recall retiring blocks, whose buffers are not posted. */
	if (a->reserved)
		ki_srq_sort(a, wanted);
	return true;
}

/**
 * ki_srq_join() - count a connection that comes
 * @a: the adapter
 * @n: buffers to reserve for what the connection may send at once, on a device that ends
 *	connections when the SRQ is empty; else 0
 *
 * Context: process
 * Return: false if there cannot be as many buffers as all may send
 */
bool ki_srq_join(struct ki_adapter *a, unsigned int n)
{
	bool ok;

	mutex_lock(&a->srq_mutex);
	ok = a->reserved + n <= ki_srq_limit(a);
	if (ok) {
		a->reserved += n;
		ok = !n || ki_srq_cover(a);
		if (!ok)
			a->reserved -= n;
	}
	if (ok)
		a->conns++;
	mutex_unlock(&a->srq_mutex);
	if (ok)
		ki_srq_adapt(a);
	return ok;
}

/*
 * Reserve up to @most more buffers, or exactly @most if @all is set, for a connection that has
 * joined. Return the number of reserved buffers. Context: process.
 */
unsigned int ki_srq_reserve(struct ki_adapter *a, unsigned int most, bool all)
{
	unsigned int left;

	mutex_lock(&a->srq_mutex);
	/* Half of the rest is for connections that are still to come. */
	left = ki_srq_limit(a) - min(a->reserved, ki_srq_limit(a));
	if (!all)
		most = min(most, left / 2);
	else if (most > left)
		most = 0;
	a->reserved += most;
	if (most && !ki_srq_cover(a)) {
		a->reserved -= most;
		most = 0;
	}
	mutex_unlock(&a->srq_mutex);
	return most;
}

/* Remove a connection that had reserved @n buffers from the counts. Context: process. */
void ki_srq_leave(struct ki_adapter *a, unsigned int n)
{
	mutex_lock(&a->srq_mutex);
	a->conns--;
	a->reserved -= n;
	mutex_unlock(&a->srq_mutex);
	ki_srq_adapt(a);
}

/* ---- Start and stop -------------------------------------------------------------- */

/* Make the SRQ and its buffers. The caller calls ki_srq_stop() after an error as well. */
DAT_RETURN ki_srq_start(struct ki_adapter *a)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_RETURN ret;

	mutex_lock(&a->srq_mutex);
	attr.max_recv_dtos = ki_srq_wanted(a);
	ret = dat_srq_create(a->ia, a->pz, &attr, &a->srq);
	if (ret == DAT_SUCCESS && ki_srq_grow(a, attr.max_recv_dtos))
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (ret == DAT_SUCCESS)
		ki_srq_set_low(a);
	mutex_unlock(&a->srq_mutex);
	return ret;
}

/* Initialise what ki_srq_stop() needs. */
void ki_srq_init(struct ki_adapter *a)
{
	mutex_init(&a->srq_mutex);
	spin_lock_init(&a->srq_lock);
	INIT_LIST_HEAD(&a->blocks);
	INIT_DELAYED_WORK(&a->srq_work, ki_srq_work);
}

/* Free the SRQ and its buffers. No connection is left, and no upcall reports the watermark. */
void ki_srq_stop(struct ki_adapter *a)
{
	struct ki_block *b, *next;

	cancel_delayed_work_sync(&a->srq_work);
	if (a->srq)
		dat_srq_free(a->srq);
	list_for_each_entry_safe(b, next, &a->blocks, link)
		ki_block_free(b);
}
