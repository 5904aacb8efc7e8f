// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events: how they get onto the list of an Event Dispatcher, and off it.
 *
 * An event is a list entry inside the thing it reports: a posted request, a
 * connection, a connection request, an SRQ. Queueing therefore cannot fail, and
 * an EVD beyond its length keeps everything in order. That it is too long is
 * announced once; the announcement is an entry too, inside the EVD.
 *
 * Reaping takes the first entry off under the EVD's lock, copies it out and does
 * the bookkeeping of the object it came from in the same critical section, so a
 * buffer is never counted twice or missed between two calls.
 */
#include "kdapl.h"
#include "trace.h"

/* Queue an event and see that it is delivered. Any context. */
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
 * Report an asynchronous event. If the last one of this kind was not reaped yet,
 * it is delivered once more when it has been. Nothing is reported of an object
 * that was freed, or after the IA was closed.
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
		;	/* dat_..._free() withdraws what was queued before */
	else if (async->ev.queued)
		async->ev.again++;
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
		async->ev.again = 0;
		spin_unlock_irqrestore(&evd->lock, flags);
	}
	rcu_read_unlock();
}

/* Do what waited for an EVD's lock to be dropped. */
void kdapl_later_run(struct kdapl_later *later)
{
	unsigned int i;

	for (i = 0; i < later->n; i++)
		kdapl_async_post(later->async[i]);
	later->n = 0;
}

static void kdapl_reap_dto(struct kdapl_wr *wr, DAT_EVENT *event)
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
		kdapl_reap_dto(wr, event);
	}
	kdapl_ring_reaped(&wr->ep->sq, wr);
}

static void kdapl_reap_conn(struct kdapl_event *ev, DAT_EVENT *event)
{
	struct kdapl_conn_event *ce = container_of(ev, struct kdapl_conn_event,
						   ev);
	DAT_CONNECTION_EVENT_DATA *data =
		&event->event_data.connect_event_data;

	/* dat_ep_reset() gives up the connection, and the data with it. */
	bool ours = READ_ONCE(ce->conn->ep->conn) == ce->conn;

	event->event_number = ce->number;
	/* A rejection came, but was not what ended the connection. */
	if (ce->number != DAT_CONNECTION_EVENT_ESTABLISHED &&
	    ce->number != DAT_CONNECTION_EVENT_PEER_REJECTED)
		ours = false;
	data->ep_handle = kdapl_handle(&ce->conn->ep->obj);
	data->private_data_size = ours ? ce->pd_len : 0;
	data->private_data = ours && ce->pd_len ? ce->pd : NULL;
	kdapl_conn_put(ce->conn);
}

static void kdapl_reap_cr(struct kdapl_event *ev, DAT_EVENT *event)
{
	struct kdapl_cr *cr = container_of(ev, struct kdapl_cr, ev);
	DAT_CR_ARRIVAL_EVENT_DATA *data =
		&event->event_data.cr_arrival_event_data;

	event->event_number = DAT_CONNECTION_REQUEST_EVENT;
	/* All members of the union are pointers. */
	data->sp_handle.psp_handle = kdapl_handle(&cr->sp->obj);
	data->local_ia_address_ptr = kdapl_addr_ptr(&cr->local);
	data->conn_qual = cr->sp->qual;
	data->cr_handle = kdapl_handle(&cr->obj);
	data->truncate_flag = DAT_FALSE;
	atomic_dec(&cr->sp->pending);
	kdapl_obj_put(&cr->obj);
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
	if (ev->again) {
		ev->again--;
		/* One entry left the list, so this cannot overflow it. */
		kdapl_evd_add(evd, ev, &later);
	}
}

/* Copy out an event that was taken off the list. Under evd->lock. */
static void kdapl_evd_convert(struct kdapl_evd *evd, struct kdapl_event *ev,
			      DAT_EVENT *event)
{
	struct kdapl_soft_event *soft;
	struct kdapl_wr *wr = container_of(ev, struct kdapl_wr, ev);

	event->evd_handle = kdapl_handle(&evd->obj);
	switch (ev->kind) {
	case KDAPL_EV_SQ:
		kdapl_reap_request(wr, event);
		break;
	case KDAPL_EV_RQ:
	case KDAPL_EV_SRQ:
		kdapl_reap_dto(wr, event);
		kdapl_recv_reaped(wr);
		break;
	case KDAPL_EV_CONN:
		kdapl_reap_conn(ev, event);
		break;
	case KDAPL_EV_CR:
		kdapl_reap_cr(ev, event);
		break;
	case KDAPL_EV_ASYNC:
		kdapl_reap_async(evd, ev, event);
		break;
	case KDAPL_EV_SOFTWARE:
		soft = container_of(ev, struct kdapl_soft_event, ev);
		event->event_number = DAT_SOFTWARE_EVENT;
		event->event_data.software_event_data.pointer = soft->pointer;
		list_add(&ev->link, &evd->soft_free);
		break;
	}
}

/* May the dispatcher take an event off now? Under evd->lock. */
static bool kdapl_evd_callable(struct kdapl_evd *evd, struct kdapl_call *call)
{
	call->policy = evd->policy;
	call->upcall = evd->upcall;
	call->owner = evd->owner;
	if (!kdapl_policy_active(evd->policy))
		return false;
	if (unlikely(evd->rang)) {
		evd->rang = false;
		evd->wake = true;
	}
	if (list_empty(&evd->events))
		evd->wake = false;
	return evd->wake;
}

/**
 * kdapl_evd_reap - hand the oldest event to the consumer
 * @evd: the EVD
 * @event: filled in
 * @more: set if the EVD holds another one
 * @call: for the dispatcher: whom to call; it gets an event only if an upcall
 *	is due. NULL for a consumer that dequeues
 *
 * Looks at the completion queues when the list is empty. For a policy without
 * event (NORIFY) nothing is taken off.
 *
 * Context: Any.
 * Return: false if there is no event.
 */
bool kdapl_evd_reap(struct kdapl_evd *evd, DAT_EVENT *event, bool *more,
		    struct kdapl_call *call)
{
	struct kdapl_later later __uninitialized;
	struct kdapl_event *ev;
	unsigned long flags;
	bool found;

	later.n = 0;
	rcu_read_lock();
	spin_lock_irqsave(&evd->lock, flags);
	/*
	 * An armed watermark wants to know of arrivals however many events wait.
	 * Nor does it end the dispatcher's search that some wait which cause no
	 * upcall, or that with NORIFY the list stays full; and of the last of a
	 * batch it says whether there is more.
	 */
	if (list_empty(&evd->events) || unlikely(evd->watchers) ||
	    (call && (!evd->wake || evd->policy == DAT_UPCALL_NORIFY ||
		      (!evd->dry && list_is_singular(&evd->events)))))
		evd->dry = kdapl_cq_poll(evd, &later) < KDAPL_POLL_BATCH;
	found = call ? kdapl_evd_callable(evd, call) :
		       !list_empty(&evd->events);
	if (found && call && unlikely(call->policy == DAT_UPCALL_NORIFY)) {
		evd->wake = false;
	} else if (found) {
		ev = list_first_entry(&evd->events, struct kdapl_event, link);
		kdapl_evd_remove(evd, ev);
		kdapl_evd_convert(evd, ev, event);
	}
	*more = !list_empty(&evd->events);
	spin_unlock_irqrestore(&evd->lock, flags);
	if (unlikely(later.n))
		kdapl_later_run(&later);
	rcu_read_unlock();
	return found;
}
