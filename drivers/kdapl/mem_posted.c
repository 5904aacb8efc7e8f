// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dat_lmr_free(), and the search for posted work that names an LMR: the device goes on
 * using memory that it was given, and if it was given the PD's key for all memory, only the
 * end of the work stops it.
 *
 * Requests and receives record the LMRs they name (kdapl_wr_name()), and an LMR records
 * the poster of such work, lmr->poster. So posting costs next to nothing, and the search
 * usually walks the queues of one Endpoint or SRQ; only for an LMR with several posters it
 * walks all queues of the IA. The Endpoint of a lingering queue pair has no handle any
 * more and is found in ia->lingering.
 *
 * Each lock is dropped after KDAPL_SEARCH entries. Once kdapl_lmr_close() has closed the
 * LMR and waited an RCU grace period for posts that found it open, no work that names it
 * can be posted behind the place of the search. Before that the answer is a good guess.
 */
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "mem.h"
#include "srq.h"

#define KDAPL_SEARCH	64

/* Does @wr name the LMR with @context? */
static bool kdapl_wr_names(struct kdapl_wr *wr, u32 niov, DAT_LMR_CONTEXT context)
{
	u8 i;

	for (i = 0; i < wr->ev.nlmr; i++)
		if (kdapl_wr_lmr(wr, niov, i) == context)
			return true;
	return false;
}

/*
 * Is the request @wr about @lmr, or about an RMR, which may be bound to @lmr? Such a
 * request uses the LMR until it has ended.
 */
static bool kdapl_wr_is_about(struct kdapl_wr *wr, struct kdapl_lmr *lmr)
{
	return wr->ev.kind == KDAPL_EV_SQ && wr->has_mem &&
	       (wr->mem == &lmr->obj || wr->op == DAT_DTO_BIND_MW);
}

/*
 * Does @ring have work that has not completed and names @lmr, or with @about is about it?
 * litmus: ring-done. Context: Any.
 */
static bool kdapl_ring_names(struct kdapl_ring *ring, struct kdapl_lmr *lmr,
			     bool about)
{
	DAT_LMR_CONTEXT context = READ_ONCE(lmr->context);
	struct kdapl_wr *wr;
	unsigned long flags;
	bool found = false;
	u32 pos, done, n, head;

	/* Pairs with kdapl_ring_complete(), which may run without the ring's lock. */
	pos = smp_load_acquire(&ring->done);
	do {
		spin_lock_irqsave(&ring->lock, flags);
		/* Entries that have completed may have been reused; pairs as above. */
		done = smp_load_acquire(&ring->done);
		if ((s32)(done - pos) > 0)
			pos = done;
		head = ring->head;
		for (n = 0; n < KDAPL_SEARCH && pos != head && !found; n++) {
			wr = kdapl_ring_wr(ring, pos++);
			/* Pairs with kdapl_send_ahead(). */
			if (smp_load_acquire(&wr->ahead))
				continue;
			found = kdapl_wr_names(wr, ring->niov, context) ||
				(about && kdapl_wr_is_about(wr, lmr));
		}
		spin_unlock_irqrestore(&ring->lock, flags);
	} while (pos != head && !found);
	return found;
}

static bool kdapl_ep_names(struct kdapl_ep *ep, struct kdapl_lmr *lmr,
			   bool about)
{
	return kdapl_ring_names(&ep->sq, lmr, about) ||
	       kdapl_ring_names(&ep->rq, lmr, false);
}

/* Is a buffer that was posted to @srq, and not taken, in @lmr? May sleep. */
static bool kdapl_srq_names(struct kdapl_srq *srq, struct kdapl_lmr *lmr)
{
	DAT_LMR_CONTEXT context = READ_ONCE(lmr->context);
	struct kdapl_wr *wr;
	unsigned long flags;
	bool found = false;
	int i = 0, n;

	/* The mutex keeps the entries, the lock protects their content. */
	mutex_lock(&srq->mutex);
	while (i < srq->slots && !found) {
		spin_lock_irqsave(&srq->lock, flags);
		for (n = 0; n < KDAPL_SEARCH && i < srq->slots && !found; n++) {
			wr = srq->all[i++];
			found = wr->posted &&
				kdapl_wr_names(wr, srq->max_iov, context);
		}
		spin_unlock_irqrestore(&srq->lock, flags);
	}
	mutex_unlock(&srq->mutex);
	return found;
}

static void kdapl_ep_poll(struct kdapl_ep *ep)
{
	struct kdapl_evd *evd;

	rcu_read_lock();
	evd = READ_ONCE(ep->req_evd);
	if (evd)
		kdapl_cq_poll_all(evd);
	evd = READ_ONCE(ep->recv_evd);
	if (evd)
		kdapl_cq_poll_all(evd);
	rcu_read_unlock();
}

/*
 * Does work that was posted to @obj name @lmr? The work may have completed without
 * anybody polling: poll and check again.
 */
static bool kdapl_obj_names(struct kdapl_obj *obj, struct kdapl_lmr *lmr)
{
	struct kdapl_srq *srq;
	struct kdapl_ep *ep;

	switch (kdapl_type(obj)) {
	case DAT_HANDLE_TYPE_EP:
		ep = container_of(obj, struct kdapl_ep, obj);
		if (!kdapl_ep_names(ep, lmr, false))
			return false;
		kdapl_ep_poll(ep);
		return kdapl_ep_names(ep, lmr, false);
	case DAT_HANDLE_TYPE_SRQ:
		srq = container_of(obj, struct kdapl_srq, obj);
		if (!kdapl_srq_names(srq, lmr))
			return false;
		kdapl_srq_poll_all(srq);
		return kdapl_srq_names(srq, lmr);
	default:
		return false;
	}
}

static bool kdapl_lingering_names(struct kdapl_lmr *lmr)
{
	struct kdapl_ia *ia = lmr->obj.ia;
	unsigned int bucket = 0;
	struct kdapl_ep *ep;
	bool found = false;
	u64 last = 0;

	while (!found && (ep = kdapl_linger_next(ia, &bucket, &last))) {
		found = kdapl_ep_names(ep, lmr, false);
		kdapl_obj_put(&ep->obj);
	}
	return found;
}

/* As kdapl_lmr_is_posted(), for an LMR with several posters. */
static bool kdapl_any_names(struct kdapl_lmr *lmr)
{
	struct kdapl_ia *ia = lmr->obj.ia;
	struct kdapl_obj *obj = NULL;

	while ((obj = kdapl_obj_next(ia, obj))) {
		if (kdapl_obj_published(obj) && kdapl_obj_names(obj, lmr)) {
			kdapl_obj_put(obj);
			return true;
		}
	}
	return false;
}

/**
 * kdapl_lmr_is_posted - does posted work name an LMR?
 * @lmr: the LMR
 *
 * Completed work does not count, even if nobody has polled for it. A leaving device has
 * the work posted to it until it has taken the queue pairs down. After it has left,
 * buffers of SRQs stay posted, and so do receives that wait for a connection, but no
 * device has them.
 *
 * Context: Process context.
 * Return: whether a device may still read or write the memory for such work
 */
static bool kdapl_lmr_is_posted(struct kdapl_lmr *lmr)
{
	u64 poster = READ_ONCE(lmr->poster);
	struct kdapl_obj *obj;
	bool found;

	/* Pairs with kdapl_remove_one(). litmus: left */
	if (!poster || smp_load_acquire(&lmr->obj.ia->hca->left))
		return false;
	/* An Endpoint is in ia->lingering before it loses its handle. litmus: linger-walk */
	if (poster == KDAPL_MANY_POSTERS)
		return kdapl_any_names(lmr) || kdapl_lingering_names(lmr);
	obj = kdapl_obj_get((DAT_HANDLE)(uintptr_t)poster,
			    poster >> KDAPL_TYPE_SHIFT & KDAPL_TYPE_MASK);
	if (!obj)
		return kdapl_lingering_names(lmr);
	found = kdapl_obj_names(obj, lmr);
	kdapl_obj_put(obj);
	return found;
}

static bool kdapl_lmr_lingers(struct kdapl_ep *ep, void *lmr)
{
	return kdapl_ep_names(ep, lmr, true);
}

static bool kdapl_lmr_retire(struct kdapl_lmr *lmr)
{
	if (kdapl_obj_retire(&lmr->obj))
		return true;
	/*
	 * A request holds its use until its completion is polled, and nobody may be
	 * polling. Requests about RMRs may be on any EVD of the IA.
	 */
	kdapl_ia_poll_all(lmr->obj.ia);
	return kdapl_obj_retire(&lmr->obj);
}

/*
 * Close @lmr, which the caller has retired, to posts. Return false, with @lmr open again
 * unless it was invalidated meanwhile, if posted work names it.
 *
 * A posting call checks ->valid, enters itself in ->poster and its work in the queue, all
 * in one RCU read-side section. So after the grace period each call that has seen ->valid
 * set can be found by ->poster and in its queue, and no other call will see it set.
 * litmus: lmr-close
 *
 * The grace period is expedited: a consumer may free ten thousand LMRs in a row, which
 * would take minutes otherwise, and interrupting a processor for it costs microseconds.
 */
static bool kdapl_lmr_close(struct kdapl_lmr *lmr)
{
	bool valid, posted;
	unsigned long flags;

	/* hca->sem keeps the device from leaving and ->mr from being replaced. */
	down_read(&lmr->obj.ia->hca->sem);
	spin_lock_irqsave(&lmr->lock, flags);
	valid = lmr->valid;
	WRITE_ONCE(lmr->valid, false);
	spin_unlock_irqrestore(&lmr->lock, flags);
	synchronize_rcu_expedited();
	posted = kdapl_lmr_is_posted(lmr);
	if (posted) {
		spin_lock_irqsave(&lmr->lock, flags);
		/* The peer may have invalidated the LMR meanwhile. */
		valid = lmr->fmr ? lmr->bound && !lmr->closing :
				   valid && !lmr->invalidated;
		/*
		 * Pairs with the acquire in kdapl_sge_one() and kdapl_lmr_usable().
		 * litmus: lmr-valid
		 */
		smp_store_release(&lmr->valid, valid);
		spin_unlock_irqrestore(&lmr->lock, flags);
	}
	up_read(&lmr->obj.ia->hca->sem);
	return !posted;
}

static DAT_RETURN kdapl_lmr_free(struct kdapl_lmr *lmr)
{
	const DAT_RETURN in_use = DAT_ERROR(DAT_INVALID_STATE,
					    DAT_INVALID_STATE_LMR_IN_USE);

	/* No QP of a freed Endpoint may still write into the memory. */
	if (!kdapl_ia_wait_lingering(lmr->obj.ia, kdapl_lmr_lingers, lmr,
				     KDAPL_END_WAIT))
		return in_use;
	/* Check before closing: closing an LMR that is in use can fail a post. */
	if (kdapl_lmr_is_posted(lmr))
		return in_use;
	if (!kdapl_lmr_retire(lmr))
		return kdapl_obj_is_freed(&lmr->obj) ?
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR) : in_use;
	if (!kdapl_lmr_close(lmr)) {
		kdapl_obj_decided(&lmr->obj, false);
		/* kdapl_lmr_recycle() skips an LMR that is retired. */
		if (lmr->fmr)
			kdapl_lmr_queue_recycle(lmr);
		return in_use;
	}
	if (kdapl_obj_unpublish(&lmr->obj))
		kdapl_lmr_drop(lmr);
	kdapl_obj_decided(&lmr->obj, true);
	return DAT_SUCCESS;
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle)
{
	struct kdapl_lmr *lmr;
	DAT_RETURN ret;

	might_sleep();
	lmr = kdapl_obj_get(lmr_handle, DAT_HANDLE_TYPE_LMR);
	if (!lmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (lmr->reserved)
		ret = DAT_ERROR(DAT_RESERVED_LMR, DAT_NO_SUBTYPE);
	else
		ret = kdapl_lmr_free(lmr);
	kdapl_obj_put(&lmr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_lmr_free);
