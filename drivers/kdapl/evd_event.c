// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events: how they get onto the list of an Event Dispatcher, and off it.
 *
 * An event is a list entry inside of the object it reports: a posted request, a
 * connection, a connection request, an SRQ. Queueing therefore cannot fail, and
 * an EVD beyond its length keeps all events in order. The overflow is announced
 * once an episode; the announcement is an entry as well, inside of the EVD.
 *
 * kdapl_evd_reap() and kdapl_evd_dequeue() take the first entry off under evd->lock, copy it
 * out and do the bookkeeping of its object in the same critical section, so a buffer is
 * never counted twice or missed between two calls.
 */
#include "dto.h"
#include "ep.h"
#include "evd.h"
#include "ia.h"
#include "srq.h"
#include "trace.h"

/* Indexed by enum kdapl_event_kind; NULL for kinds without functions of a layer above. */
static const struct kdapl_event_ops *kdapl_event_ops[KDAPL_EV_KINDS]
	__ro_after_init;

/* Set the functions of one kind of events. Called when the module is loaded. */
void __init kdapl_event_register(enum kdapl_event_kind kind,
				 const struct kdapl_event_ops *ops)
{
	kdapl_event_ops[kind] = ops;
}

/* Return the Endpoint that an event names, or NULL. */
struct kdapl_ep *kdapl_event_ep(struct kdapl_event *ev)
{
	const struct kdapl_event_ops *ops = kdapl_event_ops[ev->kind];

	return ops && ops->ep ? ops->ep(ev) : NULL;
}

/* Undo an event that is on no list and will not be reaped. */
void kdapl_event_drop(struct kdapl_event *ev)
{
	kdapl_event_ops[ev->kind]->withdraw(ev);
}

/* Take a queued event off the list of @evd and undo it. */
void kdapl_event_withdraw(struct kdapl_evd *evd, struct kdapl_event *ev)
{
	kdapl_evd_remove(evd, ev);
	kdapl_event_drop(ev);
}

/*
 * @evd was freed, so its events will never be reaped: call ->abandon() of their objects,
 * which remove the events later. A second call for an object does no harm.
 */
void kdapl_event_abandon_all(struct kdapl_evd *evd)
{
	const struct kdapl_event_ops *ops;
	struct kdapl_event *ev;
	unsigned long flags;
	unsigned int n;
	u32 left;

	spin_lock_irqsave(&evd->lock, flags);
	left = evd->count;
	while (left && !list_empty(&evd->events)) {
		for (n = 0; n < KDAPL_SECTION && left && !list_empty(&evd->events); n++) {
			ev = list_first_entry(&evd->events, struct kdapl_event, link);
			list_move_tail(&ev->link, &evd->events);
			left--;
			ops = kdapl_event_ops[ev->kind];
			if (ops && ops->abandon)
				ops->abandon(ev);
		}
		kdapl_section(n);
		spin_unlock_irqrestore(&evd->lock, flags);
		spin_lock_irqsave(&evd->lock, flags);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
}

/* Queue an event and schedule the dispatcher. Context: any. */
void kdapl_evd_post(struct kdapl_evd *evd, struct kdapl_event *ev)
{
	struct kdapl_later later = { .n = 0 };
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	kdapl_evd_add(evd, ev, &later);
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_upcall_schedule(evd);
	kdapl_later_run(&later);
}

void kdapl_async_init(struct kdapl_async *async, struct kdapl_obj *obj,
		      DAT_EVENT_NUMBER number, DAT_COUNT reason)
{
	async->ev.kind = KDAPL_EV_ASYNC;
	async->obj = obj;
	async->number = number;
	async->reason = reason;
}

/*
 * Report an asynchronous event. An event that is still queued is delivered once more
 * after it has been reaped. No event is reported for an object that was freed, or after
 * the IA was closed. Context: any.
 */
void kdapl_async_post(struct kdapl_async *async)
{
	struct kdapl_later later = { .n = 0 };
	struct kdapl_obj *obj = async->obj;
	struct kdapl_evd *evd;
	unsigned long flags;

	rcu_read_lock();
	evd = READ_ONCE(obj->ia->async_evd);
	if (!evd)
		goto out;
	spin_lock_irqsave(&evd->lock, flags);
	if (!kdapl_find(kdapl_handle(obj), kdapl_type(obj)))
		;	/* dat_..._free() withdraws events queued before */
	else if (async->ev.queued)
		async->again++;
	else
		kdapl_evd_add(evd, &async->ev, &later);
	spin_unlock_irqrestore(&evd->lock, flags);
	trace_kdapl_async(async);
	kdapl_upcall_schedule(evd);
	kdapl_later_run(&later);
out:
	rcu_read_unlock();
}

void kdapl_async_withdraw(struct kdapl_async *async)
{
	struct kdapl_evd *evd;
	unsigned long flags;

	rcu_read_lock();
	evd = READ_ONCE(async->obj->ia->async_evd);
	if (evd) {
		spin_lock_irqsave(&evd->lock, flags);
		if (async->ev.queued)
			kdapl_evd_remove(evd, &async->ev);
		async->again = 0;
		spin_unlock_irqrestore(&evd->lock, flags);
	}
	rcu_read_unlock();
}

/* Post the asynchronous events that were collected under an EVD's lock. */
void kdapl_later_run(struct kdapl_later *later)
{
	unsigned int i;

	for (i = 0; i < later->n; i++)
		kdapl_async_post(later->async[i]);
	later->n = 0;
}

/* Fill in the completion event of a request or receive. */
static void kdapl_dto_copy(struct kdapl_wr *wr, DAT_EVENT *event)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;

	event->event_number = DAT_DTO_COMPLETION_EVENT;
	dto->ep_handle = kdapl_handle(&wr->ep->obj);
	dto->user_cookie = wr->cookie;
	dto->status = wr->status;
	dto->transfered_length = wr->len;
	dto->operation = wr->op;
	dto->rmr_context = wr->rkey;
}

static void kdapl_reap_request(struct kdapl_wr *wr, DAT_EVENT *event)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind =
		&event->event_data.rmr_completion_event_data;

	if (wr->op == DAT_DTO_BIND_MW) {
		event->event_number = DAT_RMR_BIND_COMPLETION_EVENT;
		bind->rmr_handle = (DAT_RMR_HANDLE)(uintptr_t)wr->mem_handle;
		bind->user_cookie = wr->cookie;
		bind->status = wr->status;
	} else {
		kdapl_dto_copy(wr, event);
	}
	kdapl_ring_reaped(wr->ep->req_evd, &wr->ep->sq, wr);
}

static void kdapl_reap_recv(struct kdapl_wr *wr, DAT_EVENT *event)
{
	struct kdapl_ep *ep = wr->ep;

	kdapl_dto_copy(wr, event);
	if (wr->taken)
		ep->held--;
	trace_kdapl_recv_reaped(ep, wr);
	if (wr->ev.kind == KDAPL_EV_SRQ)
		kdapl_srq_reaped(ep->recv_evd, ep->srq, wr);
	else
		kdapl_ring_reaped(ep->recv_evd, &ep->rq, wr);
}

static void kdapl_reap_async(struct kdapl_evd *evd, struct kdapl_event *ev,
			     DAT_EVENT *event)
{
	struct kdapl_async *async = container_of(ev, struct kdapl_async, ev);
	DAT_ASYNCH_ERROR_EVENT_DATA *data =
		&event->event_data.asynch_error_event_data;
	struct kdapl_later later = { .n = 0 };

	event->event_number = async->number;
	data->dat_handle = kdapl_handle(async->obj);
	data->reason = async->reason;
	if (async->again) {
		async->again--;
		/* The entry has just left the list, so this cannot overflow it. */
		kdapl_evd_add(evd, ev, &later);
	}
}

static void kdapl_reap_software(struct kdapl_evd *evd, struct kdapl_event *ev,
				DAT_EVENT *event)
{
	struct kdapl_soft_event *soft = container_of(ev,
						     struct kdapl_soft_event,
						     ev);

	event->event_number = DAT_SOFTWARE_EVENT;
	event->event_data.software_event_data.pointer = soft->pointer;
	list_add(&ev->link, &evd->soft_free);
}

/*
 * Copy out an event that was removed from the list. Completions, the hot path, are
 * inline; layers above provide the rest in their struct kdapl_event_ops.
 */
static __always_inline void kdapl_evd_convert(struct kdapl_evd *evd,
					      struct kdapl_event *ev,
					      DAT_EVENT *event)
{
	struct kdapl_wr *wr = container_of(ev, struct kdapl_wr, ev);

	lockdep_assert_held(&evd->lock);

	event->evd_handle = kdapl_handle(&evd->obj);
	switch (ev->kind) {
	case KDAPL_EV_SQ:
		kdapl_reap_request(wr, event);
		break;
	case KDAPL_EV_RQ:
	case KDAPL_EV_SRQ:
		kdapl_reap_recv(wr, event);
		break;
	case KDAPL_EV_ASYNC:
		kdapl_reap_async(evd, ev, event);
		break;
	case KDAPL_EV_SOFTWARE:
		kdapl_reap_software(evd, ev, event);
		break;
	default:
		kdapl_event_ops[ev->kind]->reap(ev, event);
	}
}

/* Store in @call the upcall for the event that is reaped now. */
static void kdapl_evd_set_call(const struct kdapl_evd *evd, struct kdapl_call *call)
{
	call->policy = evd->policy;
	call->upcall = evd->upcall;
	call->owner = evd->owner;
}

/* May the dispatcher reap an event now? */
static bool kdapl_evd_callable(struct kdapl_evd *evd, struct kdapl_call *call)
{
	lockdep_assert_held(&evd->lock);

	kdapl_evd_set_call(evd, call);
	if (!kdapl_policy_active(evd->policy))
		return false;
	if (unlikely(evd->solicited_event)) {
		evd->solicited_event = false;
		evd->armed = false;
		evd->upcall_due = true;
	}
	if (list_empty(&evd->events))
		evd->upcall_due = false;
	return evd->upcall_due;
}

/*
 * Must the dispatcher poll the CQs before it reaps an event? An empty list needs a poll,
 * and so does a watched EVD: a watermark must see arrivals however many events are
 * queued.
 */
static bool kdapl_evd_must_poll(const struct kdapl_evd *evd)
{
	if (list_empty(&evd->events) || unlikely(evd->watchers))
		return true;
	/* No queued event causes an upcall, but a completion on the CQs may. */
	if (!evd->upcall_due)
		return true;
	/* An upcall with NORIFY removes nothing, so the list stays full. */
	if (evd->policy == DAT_UPCALL_NORIFY)
		return true;
	/* The last event of a batch must tell whether more events follow. */
	return !evd->cqs_empty && list_is_singular(&evd->events);
}

/*
 * Poll the CQs. If the list was empty and the first completion goes straight to the
 * consumer, return it without putting it on the list; all others are on the list.
 */
static __always_inline struct kdapl_event *
kdapl_evd_poll(struct kdapl_evd *evd, bool upcall, struct kdapl_later *later)
{
	int n;

	lockdep_assert_held(&evd->lock);

	evd->first = NULL;
	/* Solicited completions: whether an upcall is due is decided after the poll. */
	evd->wants_first = list_empty(&evd->events) && !evd->solicited &&
			   (!upcall || (kdapl_policy_active(evd->policy) &&
					evd->policy != DAT_UPCALL_NORIFY));
	n = upcall ? kdapl_cq_poll_notified(evd, later) : kdapl_cq_poll(evd, later);
	evd->wants_first = false;
	evd->cqs_empty = n < KDAPL_POLL_BATCH;
	/* As in kdapl_evd_remove(): the events that came with ->first are due, too. */
	if (evd->first) {
		evd->upcall_due = --evd->count;
		if (evd->count <= evd->qlen)
			evd->overflowed = false;
	}
	return evd->first;
}

/* Take the first event off the list and copy it out. */
static __always_inline void kdapl_evd_take(struct kdapl_evd *evd,
					   DAT_EVENT *event)
{
	struct kdapl_event *ev = list_first_entry(&evd->events,
						  struct kdapl_event, link);

	kdapl_evd_remove(evd, ev);
	kdapl_evd_convert(evd, ev, event);
}

/*
 * Poll the CQs, take an event if there is one, and unlock. Return whether there was one.
 * Polled completions raise no interrupt, so schedule the dispatcher for the other events;
 * inside an upcall its own loop finds them.
 */
static __always_inline bool kdapl_evd_dequeue_once(struct kdapl_evd *evd,
						   DAT_EVENT *event,
						   unsigned long flags)
	__releases(&evd->lock)
{
	struct kdapl_later later __uninitialized;
	bool found = true, others;
	struct kdapl_event *ev;

	later.n = 0;
	ev = kdapl_evd_poll(evd, false, &later);
	if (ev)
		kdapl_evd_convert(evd, ev, event);
	else if (!list_empty(&evd->events))
		kdapl_evd_take(evd, event);
	else
		found = false;
	others = kdapl_policy_active(evd->policy) && kdapl_evd_is_due(evd) &&
		 READ_ONCE(evd->upcaller) != current;
	if (likely(!later.n && !others)) {
		spin_unlock_irqrestore(&evd->lock, flags);
		return found;
	}
	/* RCU keeps the objects of ->later without references. */
	rcu_read_lock();
	spin_unlock_irqrestore(&evd->lock, flags);
	if (others)
		kdapl_upcall_schedule(evd);
	kdapl_later_run(&later);
	rcu_read_unlock();
	return found;
}

/*
 * Poll the CQs before taking an event, and unlock. Repeat while completions await a DMA
 * sync: the caller must not see an empty EVD.
 */
static noinline bool kdapl_evd_dequeue_polled(struct kdapl_evd *evd,
					      DAT_EVENT *event,
					      unsigned long flags)
	__releases(&evd->lock)
{
	bool found = kdapl_evd_dequeue_once(evd, event, flags);

	while (!found && kdapl_cq_stalled(evd)) {
		spin_lock_irqsave(&evd->lock, flags);
		found = kdapl_evd_dequeue_once(evd, event, flags);
	}
	return found;
}

/**
 * kdapl_evd_dequeue - hand the oldest event to a consumer that polls
 * @evd: the EVD
 * @event: filled in
 *
 * Context: Any.
 * Return: false if there is no event.
 */
bool kdapl_evd_dequeue(struct kdapl_evd *evd, DAT_EVENT *event)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	if (list_empty(&evd->events) || unlikely(evd->watchers))
		return kdapl_evd_dequeue_polled(evd, event, flags);
	kdapl_evd_take(evd, event);
	spin_unlock_irqrestore(&evd->lock, flags);
	return true;
}

/**
 * kdapl_evd_reap - hand the oldest event to the dispatcher if an upcall is due
 * @evd: the EVD
 * @event: filled in
 * @more: set if the EVD holds another event
 * @call: set to the upcall to make; ->armed must be false before the first event of a run
 *
 * Polls the CQs first if kdapl_evd_must_poll() says so, and arms those of a watched EVD
 * once in a run, as marks can be passed while an upcall runs. The policy without event
 * (NORIFY) removes nothing.
 *
 * Context: The dispatcher: softirq or process context, with interrupts on.
 * Return: false if there is no event.
 */
bool kdapl_evd_reap(struct kdapl_evd *evd, DAT_EVENT *event, bool *more,
		    struct kdapl_call *call)
{
	struct kdapl_later later __uninitialized;
	struct kdapl_event *ev = NULL;
	bool found = true;

	later.n = 0;
	spin_lock_irq(&evd->lock);
	if (kdapl_evd_must_poll(evd))
		ev = kdapl_evd_poll(evd, true, &later);
	if (ev) {
		kdapl_evd_set_call(evd, call);
		kdapl_evd_convert(evd, ev, event);
	} else {
		found = kdapl_evd_callable(evd, call);
		if (found && unlikely(call->policy == DAT_UPCALL_NORIFY))
			evd->upcall_due = false;
		else if (found)
			kdapl_evd_take(evd, event);
	}
	*more = !list_empty(&evd->events);
	call->missed = false;
	if (found && unlikely(evd->watchers)) {
		call->missed = !evd->cqs_empty;
		if (!call->armed && kdapl_cq_arm_for_upcall(evd))
			call->missed = true;
		call->armed = true;
	}
	if (likely(!later.n)) {
		spin_unlock_irq(&evd->lock);
		return found;
	}
	/* RCU keeps the objects of ->later, as in kdapl_evd_dequeue_once(). */
	rcu_read_lock();
	spin_unlock_irq(&evd->lock);
	kdapl_later_run(&later);
	rcu_read_unlock();
	return found;
}
