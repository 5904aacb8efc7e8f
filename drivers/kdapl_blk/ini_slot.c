// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Slots: memory and registrations for each request that may be outstanding.
 *
 * Entry points: kbi_slots_alloc() before connecting, kbi_slots_alloc_data() when the target's
 * limits are known, kbi_slots_release() when the connection is down, kbi_slots_free() with the
 * disk, kbi_reply_post(), kbi_slots_grow() when requests need more slots, kbi_slots_reserve()
 * when a disk is attached, kbi_slot_take(), kbi_credit_get() and kbi_share_put() for a
 * request.
 *
 * Disks that share a queue: a credit and a slot are reserved for the first request of each
 * disk. Of the other credits and slots a disk takes at most twice as many as it leaves, so
 * that a disk whose volume stands still does not keep the others from them.
 *
 * The queue owns its slots. A slot has a message to send, a message to receive, and an LMR for
 * the pages of a request with more than KBLK_INLINE bytes. The memory outlives the connection,
 * the registrations do not. A connection begins with KBI_SLOTS_STEP slots, less than 1 MiB,
 * and most never need more. link->mutex serialises all functions but kbi_reply_post() and
 * those for a request.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>
#include "ini.h"

#define KBI_SLOTS_STEP	32U

/* Post the receive buffer of slot @n. Context: any. */
DAT_RETURN kbi_reply_post(struct kbi_queue *queue, unsigned int n)
{
	DAT_LMR_TRIPLET seg = kblk_seg(&queue->slots[n].mem, KBI_REPLY_AT,
				       KBLK_REPLIES);
	DAT_DTO_COOKIE cookie = { .as_64 = n };

	return dat_ep_post_recv(queue->ep, 1, &seg, cookie,
				DAT_COMPLETION_DEFAULT_FLAG);
}

/*
 * Return the pages of the longest transfer: one more, because a transfer may begin anywhere in
 * its first page.
 */
static unsigned int kbi_max_pages(struct kbi_link *link)
{
	return link->max_transfer / PAGE_SIZE + 1;
}

/* Allocate the memory of slot @n, and register it for messages. */
static int kbi_slot_alloc(struct kbi_queue *queue, unsigned int n)
{
	struct kblk_buf *mem = &queue->slots[n].mem;
	struct kbi_link *link = queue->link;
	bool fresh = !mem->va;
	int err;

	err = kblk_buf_alloc(mem, link->ia, link->pz,
			     KBI_REPLY_AT + KBLK_REPLIES);
	if (fresh && !err)
		link->memory += PAGE_ALIGN(mem->len);
	return err;
}

/* Allocate what slot @n needs for data of the block layer. */
static int kbi_slot_alloc_data(struct kbi_queue *queue, unsigned int n)
{
	struct kbi_slot *slot = &queue->slots[n];
	struct kbi_link *link = queue->link;
	unsigned int pages = kbi_max_pages(link);
	DAT_RETURN ret;

	if (!slot->sg) {
		slot->sg = kvcalloc(pages, sizeof(*slot->sg), GFP_KERNEL);
		if (!slot->sg)
			return -ENOMEM;
		link->memory += pages * sizeof(*slot->sg);
	}
	sg_init_table(slot->sg, pages);
	ret = dat_lmr_allocate(link->ia, link->pz, pages, DAT_LMR_SCOPE_ANY,
			       &slot->lmr);
	if (ret != DAT_SUCCESS)
		slot->lmr = NULL;
	return kblk_errno(ret);
}

/*
 * Free *@lmr, unless the driver does not end the connection: dat_lmr_free() would wait for
 * that, and be refused, for each LMR.
 */
static void kbi_lmr_free(struct kbi_queue *queue, DAT_LMR_HANDLE *lmr)
{
	if (!*lmr)
		return;
	if (!queue->stuck && DAT_GET_TYPE(dat_lmr_free(*lmr)) != DAT_INVALID_STATE)
		*lmr = NULL;
	else
		queue->stuck = true;
}

/*
 * Free the registrations of @slot; its memory stays. If the queue is stuck the registrations
 * stay as well, and the request whose pages the target may still access is held.
 */
static void kbi_slot_release(struct kbi_queue *queue, struct kbi_slot *slot)
{
	kbi_lmr_free(queue, &slot->lmr);
	kbi_lmr_free(queue, &slot->mem.lmr);
	/* Pages that are being invalidated since the reply has come are not ->bound. */
	if (slot->lmr && slot->rq && kbi_slot_is_busy(slot) &&
	    (slot->bound || slot->replied))
		kbi_disk_hold(slot->rq);
	slot->flags = 0;
	slot->into = NULL;
	slot->use = NULL;
}

/*
 * Return the least number of slots: for admin requests, for one request of each disk, and for
 * one of a disk that joins.
 */
static unsigned int kbi_slots_reserved(struct kbi_queue *queue)
{
	return min(queue->nslots, queue->link->ndisks + 2);
}

/*
 * Return how many slots to begin with: those that have memory of an earlier connection, and at
 * least KBI_SLOTS_STEP.
 */
static unsigned int kbi_slots_first(struct kbi_queue *queue)
{
	unsigned int n = 0;

	while (n < queue->nslots && queue->slots[n].mem.va)
		n++;
	return max3(n, min(queue->nslots, KBI_SLOTS_STEP),
		    kbi_slots_reserved(queue));
}

/*
 * Allocate what connecting needs. Receives are posted before the peer can send. Memory of an
 * earlier connection is used again.
 */
int kbi_slots_alloc(struct kbi_queue *queue)
{
	unsigned int n, i;
	int err = 0;

	if (!queue->slots)
		queue->slots = kvcalloc(queue->nslots, sizeof(*queue->slots),
					GFP_KERNEL);
	if (!queue->taken)
		queue->taken = bitmap_zalloc(queue->nslots, GFP_KERNEL);
	if (!queue->slots || !queue->taken)
		return -ENOMEM;
	n = kbi_slots_first(queue);
	for (i = 0; i < n && !err; i++) {
		err = kbi_slot_alloc(queue, i);
		if (!err)
			err = kblk_errno(kbi_reply_post(queue, i));
	}
	queue->ready = n;
	return err;
}

/*
 * Allocate what depends on the target's limits. The first slot is for admin requests and
 * carries no data of the block layer.
 */
int kbi_slots_alloc_data(struct kbi_queue *queue)
{
	unsigned int i;
	int err = 0;

	for (i = 1; i < queue->ready && !err; i++)
		err = kbi_slot_alloc_data(queue, i);
	return err;
}

/* Return whether requests wait for slots that have no memory yet. */
bool kbi_slots_wanted(struct kbi_queue *queue)
{
	return queue->ready < queue->nslots && READ_ONCE(queue->cramped);
}

/* Return whether a request of the block layer is outstanding on @queue. */
bool kbi_slots_waiting(struct kbi_queue *queue)
{
	return find_next_bit(queue->taken, queue->nslots, 1) < queue->nslots;
}

/*
 * Give more slots memory while the queue is in use. Return 0, or an error number: requests
 * then wait for the slots there are. Context: process.
 */
int kbi_slots_grow(struct kbi_queue *queue)
{
	unsigned int n = min(queue->ready + KBI_SLOTS_STEP, queue->nslots), i;
	int err;

	lockdep_assert_held(&queue->link->mutex);

	WRITE_ONCE(queue->cramped, false);
	for (i = queue->ready; i < n; i++) {
		err = kbi_slot_alloc(queue, i);
		if (!err)
			err = kbi_slot_alloc_data(queue, i);
		/* Post the receive before a request can need it. */
		if (!err)
			err = kblk_errno(kbi_reply_post(queue, i));
		if (err) {
			kbi_slot_release(queue, &queue->slots[i]);
			return err;
		}
		/* Pairs with smp_load_acquire() in kbi_slot_get(). litmus: blk-ready */
		smp_store_release(&queue->ready, i + 1);
	}
	return 0;
}

/* Give memory to as many slots as a further disk needs. Return 0 or an error number. */
int kbi_slots_reserve(struct kbi_queue *queue)
{
	int err = 0;

	while (!err && queue->ready < kbi_slots_reserved(queue))
		err = kbi_slots_grow(queue);
	return err;
}

/*
 * Return how many credits are kept for admin requests: one, for a keep-alive or a fence while
 * all other requests wait for the medium. None is kept of two: a target that throttles holds
 * one of them back, and only requests sent with the other can bring it back. If disks share
 * the queue, the target leaves one credit more than there are disks.
 */
static int kbi_credits_kept(struct kbi_queue *queue)
{
	int window = atomic_read(&queue->window);

	if (queue->volumes)
		return window > (int)READ_ONCE(queue->link->ndisks);
	return (queue->link->params.keepalive_ms || queue->hosts) && window > 2;
}

/* Take a credit unless only @keep are left. litmus: blk-credit. Context: any. */
bool kbi_credit_get(struct kbi_queue *queue, int keep)
{
	int credits = atomic_read(&queue->credits);

	do {
		if (credits <= keep) {
			WRITE_ONCE(queue->wants, true);
			return false;
		}
	} while (!atomic_try_cmpxchg(&queue->credits, &credits, credits - 1));
	return true;
}

/* Have kbi_more_work() give more slots memory. Context: any. */
static void kbi_slots_want(struct kbi_queue *queue)
{
	WRITE_ONCE(queue->cramped, true);
	mod_delayed_work(kbi_wq, &queue->link->more_work, 0);
}

/*
 * Undo kbi_share_get(). kbi_recover_work() may wait for the last request: this function
 * changes ->out, with a full barrier, then reads the disk's state, and kbi_disk_detached()
 * changes the state before kbi_recover_work() reads ->out. litmus: blk-out
 * Context: any.
 */
void kbi_share_put(struct kbi_use *use)
{
	if (atomic_dec_return(&use->out))
		atomic_dec(&use->queue->extra);
	if (unlikely(kbi_state(use->disk) == KBI_RECOVERING))
		mod_delayed_work(kbi_wq, &use->disk->recover_work, 0);
}

/**
 * kbi_share_get() - count a request of one of the disks that share a queue
 * @use: use of the queue
 *
 * The first request of each disk is not counted in queue->extra. The limit of queue->extra
 * leaves credits and slots for the first requests of all disks, also of idle ones.
 * litmus: blk-ready; the others are counts.
 *
 * Context: Any.
 * Return: whether the request may be sent; the caller calls kbi_share_put() when it is over.
 */
static bool kbi_share_get(struct kbi_use *use)
{
	struct kbi_queue *queue = use->queue;
	int disks = READ_ONCE(queue->link->ndisks);
	int out = atomic_inc_return(&use->out);
	int credits, slots, left;
	unsigned int ready;

	if (out == 1)
		return true;
	/* Pairs with smp_store_release() in kbi_slots_grow(). litmus: blk-ready */
	ready = smp_load_acquire(&queue->ready);
	slots = ready - 2;
	credits = atomic_read(&queue->window) - kbi_credits_kept(queue);
	left = min(credits, slots) - disks - atomic_inc_return(&queue->extra);
	if (left >= 0 && (disks == 1 || out <= 2 * (left + 1)))
		return true;
	if (slots >= credits || ready == queue->nslots)
		WRITE_ONCE(queue->wants, true);
	else
		kbi_slots_want(queue);
	kbi_share_put(use);
	return false;
}

/*
 * Take a slot for a request of the block layer; return NULL if none is free. litmus: blk-taken
 * Context: any.
 */
static struct kbi_slot *kbi_slot_get(struct kbi_queue *queue)
{
	/* Pairs with smp_store_release() in kbi_slots_grow(). litmus: blk-ready, blk-taken */
	unsigned int ready = smp_load_acquire(&queue->ready), n;

	for (n = 1; n < ready; n++) {
		n = find_next_zero_bit(queue->taken, ready, n);
		if (n < ready && !test_and_set_bit_lock(n, queue->taken))
			return &queue->slots[n];
	}
	if (ready < queue->nslots)
		kbi_slots_want(queue);
	return NULL;
}

/**
 * kbi_slot_take() - take a credit and a slot for a request of the block layer
 * @use: use of the queue
 *
 * Context: Any.
 * Return: the slot, or NULL if there is none or no credit
 */
struct kbi_slot *kbi_slot_take(struct kbi_use *use)
{
	struct kbi_queue *queue = use->queue;
	struct kbi_slot *slot;

	/* kbi_share_get() also keeps credits for admin requests. */
	if (queue->volumes && !kbi_share_get(use)) {
		kbi_count(use->disk, KBI_STAT_NO_CREDIT, 1);
		return NULL;
	}
	if (!kbi_credit_get(queue, queue->volumes ? 0 : kbi_credits_kept(queue))) {
		kbi_count(use->disk, KBI_STAT_NO_CREDIT, 1);
		goto unshare;
	}
	slot = kbi_slot_get(queue);
	if (slot)
		return slot;
	atomic_inc(&queue->credits);
unshare:
	if (queue->volumes)
		kbi_share_put(use);
	return NULL;
}

/* Undo kbi_slot_take(). litmus: blk-taken. Context: any. */
void kbi_slot_untake(struct kbi_use *use, struct kbi_slot *slot)
{
	struct kbi_queue *queue = use->queue;

	clear_bit_unlock(slot - queue->slots, queue->taken);
	atomic_inc(&queue->credits);
	if (queue->volumes)
		kbi_share_put(use);
}

/*
 * Free the registrations of all slots; the EP was freed, so nothing uses them unless the queue
 * is stuck. The memory stays for the next connection: an allocation could fail then, if the
 * page cache can only be cleaned by writing to these disks.
 */
void kbi_slots_release(struct kbi_queue *queue)
{
	unsigned int i;

	for (i = 0; queue->slots && i < queue->nslots; i++)
		kbi_slot_release(queue, &queue->slots[i]);
	if (queue->taken)
		bitmap_zero(queue->taken, queue->nslots);
	queue->ready = 0;
	queue->first = NULL;
}

/* The registrations that kbi_slots_release() has left were freed with the adapter. */
void kbi_slots_forget(struct kbi_queue *queue)
{
	unsigned int i;

	for (i = 0; queue->slots && i < queue->nslots; i++) {
		queue->slots[i].lmr = NULL;
		queue->slots[i].mem.lmr = NULL;
	}
	queue->stuck = false;
}

/* Free the memory of all slots after the last kbi_slots_release(). */
void kbi_slots_free(struct kbi_queue *queue)
{
	unsigned int i;

	for (i = 0; queue->slots && i < queue->nslots; i++) {
		kvfree(queue->slots[i].sg);
		kblk_buf_free(&queue->slots[i].mem);
	}
	kvfree(queue->slots);
	bitmap_free(queue->taken);
	queue->slots = NULL;
	queue->taken = NULL;
}
