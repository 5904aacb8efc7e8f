// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints: moving their events to another EVD, for dat_ep_modify().
 *
 * The list of an EVD has the events of thousands of Endpoints, so the events are found from
 * the Endpoint, and taken off KDAPL_SECTION at a time. The newest are taken first: a ring is
 * reaped in order, so events that the consumer reaps meanwhile must be older than all that
 * were taken. No event is added meanwhile, as the Endpoint has no connection.
 */
#include "conn.h"
#include "dto.h"
#include "ep.h"
#include "srq.h"

/* Return the event of @ring before @ev, or the last event if @ev is NULL; or NULL. */
static struct kdapl_event *kdapl_move_ring(struct kdapl_ring *ring,
					   struct kdapl_event *ev)
{
	u32 pos = ev ? (u32)container_of(ev, struct kdapl_wr, ev)->seq :
		       ring->done;
	struct kdapl_wr *wr;

	while (pos != ring->tail) {
		wr = kdapl_ring_wr(ring, --pos);
		if (wr->ev.queued)
			return &wr->ev;
	}
	return NULL;
}

/* As kdapl_move_ring(), for buffers that were taken off the SRQ. */
static struct kdapl_event *kdapl_move_srq(struct kdapl_ep *ep,
					  struct kdapl_event *ev)
{
	struct kdapl_wr *wr;

	wr = ev ? list_prev_entry(container_of(ev, struct kdapl_wr, ev), link) :
		  list_last_entry(&ep->at_hand, struct kdapl_wr, link);
	list_for_each_entry_from_reverse(wr, &ep->at_hand, link)
		if (wr->ev.queued)
			return &wr->ev;
	return NULL;
}

/* As kdapl_move_ring(), for events of connections. */
static struct kdapl_event *kdapl_move_conn(struct kdapl_ep *ep,
					   struct kdapl_event *ev)
{
	struct kdapl_event *found = NULL;
	struct kdapl_conn_event *ce;

	spin_lock(&ep->lock);
	ce = ev ? list_prev_entry(container_of(ev, struct kdapl_conn_event, ev), link) :
		  list_last_entry(&ep->conn_events, struct kdapl_conn_event, link);
	list_for_each_entry_from_reverse(ce, &ep->conn_events, link)
		if (ce->ev.queued) {
			found = &ce->ev;
			break;
		}
	spin_unlock(&ep->lock);
	return found;
}

static struct kdapl_event *kdapl_move_before(struct kdapl_ep *ep, u8 kind,
					     struct kdapl_event *ev)
{
	switch (kind) {
	case KDAPL_EV_SQ:
		return kdapl_move_ring(&ep->sq, ev);
	case KDAPL_EV_RQ:
		return kdapl_move_ring(&ep->rq, ev);
	case KDAPL_EV_SRQ:
		return kdapl_move_srq(ep, ev);
	default:
		return kdapl_move_conn(ep, ev);
	}
}

/* Move the events from *@slot to @moved, then set *@slot to @to. */
static void kdapl_move_take(struct kdapl_ep *ep, struct kdapl_evd **slot,
			    struct kdapl_evd *to, u8 kind, struct list_head *moved)
{
	struct kdapl_event *ev, *last = NULL;
	struct kdapl_evd *from = *slot;
	unsigned long flags;
	unsigned int n;

	do {
		spin_lock_irqsave(&from->lock, flags);
		for (n = 0; n < KDAPL_SECTION; n++) {
			ev = kdapl_move_before(ep, kind, last);
			if (!ev)
				break;
			kdapl_evd_remove(from, ev);
			list_add(&ev->link, moved);
			last = ev;
		}
		kdapl_section(n);
		if (n < KDAPL_SECTION) {
			if (slot == &ep->recv_evd)
				kdapl_ep_update_watch(ep, from, false);
			WRITE_ONCE(*slot, to);
		}
		spin_unlock_irqrestore(&from->lock, flags);
	} while (n == KDAPL_SECTION);
}

/* Put the events of @moved on @to. */
static void kdapl_move_add(struct kdapl_evd *to, struct list_head *moved)
{
	struct kdapl_later later = { .n = 0 };
	struct kdapl_event *ev;
	unsigned long flags;
	unsigned int n;

	while (!list_empty(moved)) {
		spin_lock_irqsave(&to->lock, flags);
		for (n = 0; n < KDAPL_SECTION && !list_empty(moved); n++) {
			ev = list_first_entry(moved, struct kdapl_event, link);
			list_del(&ev->link);
			kdapl_evd_add(to, ev, &later);
		}
		kdapl_section(n);
		spin_unlock_irqrestore(&to->lock, flags);
		kdapl_later_run(&later);
	}
}

/*
 * Change the EVD at @slot of @ep to @to, and move the queued events of @kind of @ep to
 * @to, in order. Context: Process context.
 */
void kdapl_ep_move_events(struct kdapl_ep *ep, struct kdapl_evd **slot,
			  struct kdapl_evd *to, u8 kind)
{
	struct kdapl_event *ev, *next;
	unsigned long flags;
	LIST_HEAD(moved);

	lockdep_assert_held(&ep->mutex);

	if (*slot == to)
		return;
	if (*slot) {
		kdapl_move_take(ep, slot, to, kind, &moved);
	} else {
		/* Without a receive EVD kdapl_ep_lock_recv() takes this lock. */
		spin_lock_irqsave(&ep->rq.lock, flags);
		WRITE_ONCE(*slot, to);
		spin_unlock_irqrestore(&ep->rq.lock, flags);
	}
	if (!to) {
		/* Only the connect EVD may become NULL with events queued. */
		list_for_each_entry_safe(ev, next, &moved, link)
			kdapl_event_drop(ev);
		return;
	}
	kdapl_move_add(to, &moved);
	if (slot == &ep->recv_evd) {
		spin_lock_irqsave(&to->lock, flags);
		kdapl_ep_update_watch(ep, to, ep->mark != U32_MAX);
		spin_unlock_irqrestore(&to->lock, flags);
	}
	if (kdapl_cq_arm(to))
		kdapl_upcall_schedule(to);
}
