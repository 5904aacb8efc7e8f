// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The receive ledger of an Endpoint, and its high watermarks.
 *
 * A receive buffer is posted, then taken (an Endpoint consumed it for a
 * message), then reaped (its event was handed to the consumer). "held" is taken
 * minus reaped; it changes only under the lock of the Endpoint's receive EVD, in
 * the same critical section that polls the CQ or takes the event off the list.
 * The counts of an SRQ follow in srq.c, called from here.
 *
 * The hot path makes one comparison, "held > mark", where mark is the lower of
 * the two armed watermarks and all ones while there is none.
 */
#include "kdapl.h"
#include "trace.h"

/* Recompute the mark. Under recv_evd->lock. */
void kdapl_ep_set_marks(struct kdapl_ep *ep)
{
	u32 mark = U32_MAX;

	if (ep->soft_armed)
		mark = ep->soft;
	if (ep->hard != DAT_WATERMARK_INFINITE && (u32)ep->hard < mark)
		mark = ep->hard;
	ep->mark = mark;
}

/*
 * Fire what has been exceeded. Under recv_evd->lock. The hard mark stays armed:
 * kdapl_ep_down() breaks a connection only once, and only if there is one.
 */
void kdapl_ep_check_marks(struct kdapl_ep *ep, struct kdapl_later *later)
{
	if (ep->soft_armed && ep->held > (u32)ep->soft && !ep->dying) {
		ep->soft_armed = false;
		kdapl_ep_set_marks(ep);
		/* Who arms the other mark starts to watch; this only ceases. */
		if (ep->mark == U32_MAX)
			kdapl_ep_update_watch(ep, ep->recv_evd, false);
		trace_kdapl_soft_mark(ep);
		kdapl_later_add(later, &ep->soft_event);
	}
	if (ep->hard != DAT_WATERMARK_INFINITE && ep->held > (u32)ep->hard &&
	    ep->open) {
		trace_kdapl_hard_mark(ep);
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN);
	}
}

/**
 * kdapl_recv_done - a receive buffer has completed
 * @evd: the EP's receive EVD, locked
 * @ep: Endpoint that took the buffer
 * @wr: the buffer; status, len, op are set
 * @later: see struct kdapl_later
 */
void kdapl_recv_done(struct kdapl_evd *evd, struct kdapl_ep *ep,
		     struct kdapl_wr *wr, struct kdapl_later *later)
{
	bool srq = wr->ev.kind == KDAPL_EV_SRQ;

	if (srq)
		kdapl_srq_took(ep->srq, ep, wr, later);
	else
		kdapl_ring_complete(&ep->rq, wr, true);

	/* A plain receive that is flushed was never taken for a message. */
	wr->taken = srq || wr->status != DAT_DTO_ERR_FLUSHED;
	if (wr->taken) {
		ep->held++;
		ep->taken++;
	}
	trace_kdapl_recv_taken(ep, wr);

	if (unlikely(READ_ONCE(ep->dying))) {
		kdapl_recv_withdraw(wr);
		return;
	}
	if (srq)
		wr->ev.quiet = ep->quiet_recv;
	else if (unlikely(ep->quiet_recv))
		wr->ev.quiet = true;
	if (unlikely(!ep->open)) {
		/* Its connection event has to come first. */
		list_add_tail(&wr->ev.link, &ep->early);
		return;
	}
	kdapl_evd_add(evd, &wr->ev, later);
	if (unlikely(ep->held > ep->mark))
		kdapl_ep_check_marks(ep, later);
}

/* The event of @wr was copied out for the consumer. Under recv_evd->lock. */
void kdapl_recv_reaped(struct kdapl_wr *wr)
{
	struct kdapl_ep *ep = wr->ep;

	if (wr->taken)
		ep->held--;
	trace_kdapl_recv_reaped(ep, wr);
	if (wr->ev.kind == KDAPL_EV_SRQ)
		kdapl_srq_return(ep->srq, wr, true);
	else
		kdapl_ring_reaped(&ep->rq, wr);
}

/*
 * The Endpoint was freed before the event of @wr was reaped: a buffer of an SRQ
 * goes back there as if never taken. Under recv_evd->lock; the event is on no
 * list.
 */
void kdapl_recv_withdraw(struct kdapl_wr *wr)
{
	struct kdapl_ep *ep = wr->ep;

	if (wr->taken)
		ep->held--;
	trace_kdapl_recv_withdrawn(ep, wr);
	if (wr->ev.kind == KDAPL_EV_SRQ)
		kdapl_srq_return(ep->srq, wr, false);
	else
		kdapl_ring_reaped(&ep->rq, wr);
}

/*
 * The connection event is queued; let out what had to wait for it. If it never
 * will be (@up is false), nothing was received, as far as the consumer can tell.
 */
void kdapl_ep_open(struct kdapl_ep *ep, bool up)
{
	struct kdapl_later later = { .n = 0 };
	struct kdapl_evd *evd = ep->recv_evd;
	struct kdapl_wr *wr, *next;
	unsigned long flags;

	if (!evd)
		return;
	spin_lock_irqsave(&evd->lock, flags);
	ep->open = true;
	list_for_each_entry_safe(wr, next, &ep->early, ev.link) {
		list_del(&wr->ev.link);
		if (!up) {
			wr->status = DAT_DTO_ERR_FLUSHED;
			wr->op = DAT_DTO_RECEIVE;
			wr->len = 0;
			wr->rkey = 0;
			/* As one that is flushed in the ring: not taken. */
			if (wr->ev.kind == KDAPL_EV_RQ && wr->taken) {
				wr->taken = false;
				ep->held--;
			}
		}
		if (READ_ONCE(ep->dying))
			kdapl_recv_withdraw(wr);
		else
			kdapl_evd_add(evd, &wr->ev, &later);
	}
	kdapl_ep_check_marks(ep, &later);
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_upcall_schedule(evd);
	kdapl_later_run(&later);
}

/**
 * kdapl_ep_lock_recv - lock the ledger of an Endpoint, up to date
 * @ep: the Endpoint
 * @flags: interrupt flags
 *
 * An Endpoint without a receive EVD has no receives; its ring's lock keeps two
 * callers apart.
 *
 * Context: Any.
 * Return: the EVD whose lock is held, NULL if it is the ring's.
 */
struct kdapl_evd *kdapl_ep_lock_recv(struct kdapl_ep *ep, unsigned long *flags)
	__acquires(&ep->recv_evd->lock)
{
	struct kdapl_evd *evd;

	for (;;) {
		evd = READ_ONCE(ep->recv_evd);
		if (!evd) {
			spin_lock_irqsave(&ep->rq.lock, *flags);
			if (!ep->recv_evd)
				return NULL;
			spin_unlock_irqrestore(&ep->rq.lock, *flags);
			continue;
		}
		*flags = kdapl_cq_look_lock(evd);
		/* dat_ep_modify() may have moved the Endpoint. */
		if (ep->recv_evd == evd)
			return evd;
		spin_unlock_irqrestore(&evd->lock, *flags);
	}
}

void kdapl_ep_unlock_recv(struct kdapl_ep *ep, struct kdapl_evd *evd,
			  unsigned long flags)
	__releases(&evd->lock)
{
	spin_unlock_irqrestore(evd ? &evd->lock : &ep->rq.lock, flags);
}

/*
 * While a watermark is armed, arrivals have to be noticed though nobody polls.
 * Under the lock of kdapl_ep_lock_recv(). Returns whether to arm the CQs.
 */
bool kdapl_ep_update_watch(struct kdapl_ep *ep, struct kdapl_evd *evd,
			   bool want)
{
	if (READ_ONCE(ep->dying))
		want = false;
	if (want == ep->watching || !evd)
		return false;
	ep->watching = want;
	evd->watchers += want ? 1 : -1;
	return want;
}

DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle,
				DAT_COUNT soft_high_watermark,
				DAT_COUNT hard_high_watermark)
{
	struct kdapl_later later = { .n = 0 };
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_evd *evd;
	unsigned long flags;
	struct kdapl_ep *ep;
	bool arm;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (soft_high_watermark < DAT_WATERMARK_INFINITE) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	if (hard_high_watermark < DAT_WATERMARK_INFINITE) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		goto out;
	}

	evd = kdapl_ep_lock_recv(ep, &flags);
	ep->soft = soft_high_watermark;
	ep->hard = hard_high_watermark;
	WRITE_ONCE(ep->soft_asked, soft_high_watermark);
	ep->soft_armed = ep->soft != DAT_WATERMARK_INFINITE;
	kdapl_ep_set_marks(ep);
	kdapl_ep_check_marks(ep, &later);
	arm = kdapl_ep_update_watch(ep, evd, ep->mark != U32_MAX);
	kdapl_ep_unlock_recv(ep, evd, flags);
	kdapl_later_run(&later);
	if (arm && kdapl_cq_arm(evd))
		kdapl_upcall_schedule(evd);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_set_watermark);

DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle,
			     DAT_COUNT *nbufs_allocated,
			     DAT_COUNT *bufs_alloc_span)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_evd *evd;
	unsigned long flags;
	struct kdapl_ep *ep;
	DAT_COUNT n;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (!nbufs_allocated && !bufs_alloc_span) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}

	evd = kdapl_ep_lock_recv(ep, &flags);
	n = ep->srq ? ep->held : READ_ONCE(ep->rq.head) - ep->rq.tail;
	kdapl_ep_unlock_recv(ep, evd, flags);
	/* An RC connection delivers in order: the span has no gaps. */
	if (nbufs_allocated)
		*nbufs_allocated = n;
	if (bufs_alloc_span)
		*bufs_alloc_span = n;
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_recv_query);
