// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The receive ledger of an Endpoint, and its high watermarks.
 *
 * A receive buffer is posted, then taken (an Endpoint consumed it for a
 * message), then reaped (its event was handed to the consumer). ep->held is
 * taken less reaped; it changes only under the lock of the Endpoint's receive
 * EVD, in the critical section that polls the CQ or takes the event off the
 * list (kdapl_reap_recv()). The counts of an SRQ change in kdapl_srq_took()
 * (dto_complete.c), kdapl_srq_reaped() (srq.h) and, for an Endpoint that was freed,
 * kdapl_srq_take_back().
 *
 * The hot path, kdapl_recv_done() in dto_complete.c, makes one comparison,
 * held > mark, where mark is the lower of the two armed watermarks, or all ones
 * if none is armed.
 */
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "srq.h"
#include "trace.h"

/* Is the lock that kdapl_ep_lock_recv() takes held? */
static inline bool kdapl_recv_locked(struct kdapl_ep *ep)
{
	struct kdapl_evd *evd = READ_ONCE(ep->recv_evd);

	return lockdep_is_held(evd ? &evd->lock : &ep->rq.lock);
}

/* Recompute ep->mark. */
void kdapl_ep_set_marks(struct kdapl_ep *ep)
{
	u32 mark = U32_MAX;

	lockdep_assert(kdapl_recv_locked(ep));

	if (ep->soft_armed)
		mark = ep->soft;
	if (ep->hard != DAT_WATERMARK_INFINITE && (u32)ep->hard < mark)
		mark = ep->hard;
	ep->mark = ep->deferring ? 0 : mark;
}

/*
 * Fire the marks that are exceeded; stop deferring requests after the first receive. The
 * hard mark stays armed: kdapl_ep_down() breaks a connection only once.
 */
void kdapl_ep_check_marks(struct kdapl_ep *ep, struct kdapl_later *later)
{
	lockdep_assert(kdapl_recv_locked(ep));

	if (unlikely(ep->deferring) && ep->held) {
		ep->deferring = false;
		kdapl_ep_set_marks(ep);
		kdapl_ep_update_watch(ep, ep->recv_evd, ep->mark != U32_MAX);
		kdapl_defer_open(ep);
	}
	if (ep->soft_armed && ep->held > (u32)ep->soft && !ep->dying) {
		ep->soft_armed = false;
		kdapl_ep_set_marks(ep);
		/* dat_ep_set_watermark() starts the watch; firing a mark may only end it. */
		if (ep->mark == U32_MAX)
			kdapl_ep_update_watch(ep, ep->recv_evd, false);
		trace_kdapl_soft_mark(ep);
		ep->soft_crossed++;
		atomic_long_inc(&ep->obj.ia->counts[KDAPL_COUNT_SOFT]);
		kdapl_later_add(later, &ep->soft_event);
	}
	if (ep->hard != DAT_WATERMARK_INFINITE && ep->held > (u32)ep->hard &&
	    ep->open) {
		trace_kdapl_hard_mark(ep);
		if (kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_HARD_MARK)) {
			ep->hard_fired = true;
			ep->hard_crossed++;
		}
	}
}

/*
 * The Endpoint was freed before the event of @wr, which is on no list, was reaped. Return
 * a buffer of an SRQ to the SRQ as if it was never taken.
 */
void kdapl_recv_withdraw(struct kdapl_wr *wr)
{
	struct kdapl_ep *ep = wr->ep;

	lockdep_assert_held(&ep->recv_evd->lock);

	if (wr->taken)
		ep->held--;
	trace_kdapl_recv_withdrawn(ep, wr);
	if (wr->ev.kind == KDAPL_EV_SRQ)
		kdapl_srq_take_back(ep->srq, wr);
	else
		kdapl_ring_withdrawn(ep->recv_evd, &ep->rq);
}

static void kdapl_recv_event_withdraw(struct kdapl_event *ev)
{
	kdapl_recv_withdraw(container_of(ev, struct kdapl_wr, ev));
}

static struct kdapl_ep *kdapl_recv_event_ep(struct kdapl_event *ev)
{
	return container_of(ev, struct kdapl_wr, ev)->ep;
}

const struct kdapl_event_ops kdapl_recv_event_ops = {
	.withdraw = kdapl_recv_event_withdraw,
	.ep = kdapl_recv_event_ep,
};

/*
 * Add a section of the parked receives to @evd, as flushed unless @up. Return whether
 * none is left.
 */
static bool kdapl_ep_unpark(struct kdapl_ep *ep, struct kdapl_evd *evd, bool up,
			    struct kdapl_later *later)
{
	struct kdapl_wr *wr;
	unsigned int n;

	lockdep_assert_held(&evd->lock);

	for (n = 0; n < KDAPL_SECTION && !list_empty(&ep->parked); n++) {
		wr = list_first_entry(&ep->parked, struct kdapl_wr, ev.link);
		list_del(&wr->ev.link);
		if (!up) {
			wr->status = DAT_DTO_ERR_FLUSHED;
			wr->op = DAT_DTO_RECEIVE;
			wr->len = 0;
			wr->rkey = 0;
			/* A flushed receive of a ring was never taken. */
			if (wr->ev.kind == KDAPL_EV_RQ && wr->taken) {
				wr->taken = false;
				ep->held--;
			}
		}
		if (READ_ONCE(ep->dying))
			kdapl_recv_withdraw(wr);
		else
			kdapl_evd_add(evd, &wr->ev, later);
	}
	kdapl_section(n);
	return list_empty(&ep->parked);
}

/*
 * Add the parked receives, after ESTABLISHED was queued. If the connection ended before
 * that (@up is false) they complete as flushed: the consumer never had the connection.
 */
void kdapl_ep_open(struct kdapl_ep *ep, bool up)
{
	struct kdapl_later later = { .n = 0 };
	struct kdapl_evd *evd = ep->recv_evd;
	unsigned long flags;
	bool open;

	if (!evd)
		return;
	do {
		spin_lock_irqsave(&evd->lock, flags);
		open = kdapl_ep_unpark(ep, evd, up, &later);
		if (open) {
			ep->open = true;
			kdapl_ep_check_marks(ep, &later);
		}
		spin_unlock_irqrestore(&evd->lock, flags);
		kdapl_upcall_schedule(evd);
		kdapl_later_run(&later);
	} while (!open);
}

/**
 * kdapl_ep_lock_recv - bring the ledger of an Endpoint up to date and lock it
 * @ep: the Endpoint
 * @flags: interrupt flags
 *
 * An Endpoint without a receive EVD has no receives; the lock of its ring then serialises
 * callers.
 *
 * Context: Any.
 * Return: the EVD whose lock is held; NULL if the ring's lock is held.
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
		*flags = kdapl_cq_poll_all_lock(evd);
		/* dat_ep_modify() may have moved the Endpoint to another EVD. */
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
 * Count @ep in evd->watchers, or no longer, as @want says: while a high watermark is armed,
 * arrivals must be noticed even if nobody polls. Return whether the caller must arm the CQs.
 */
bool kdapl_ep_update_watch(struct kdapl_ep *ep, struct kdapl_evd *evd,
			   bool want)
{
	if (evd)
		lockdep_assert_held(&evd->lock);

	if (READ_ONCE(ep->dying))
		want = false;
	if (want == ep->watching || !evd)
		return false;
	ep->watching = want;
	evd->watchers += want ? 1 : -1;
	return want;
}
