// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints: reset, free, and the loss of the device.
 */
#include "kdapl.h"
#include "trace.h"

static void kdapl_withdraw_from(struct kdapl_ep *ep, struct kdapl_evd *evd)
{
	struct kdapl_event *ev, *next;
	struct kdapl_conn_event *ce;
	struct kdapl_wr *wr;
	unsigned long flags;

	if (!evd)
		return;
	spin_lock_irqsave(&evd->lock, flags);
	list_for_each_entry_safe(ev, next, &evd->events, link) {
		switch (ev->kind) {
		case KDAPL_EV_SQ:
		case KDAPL_EV_RQ:
		case KDAPL_EV_SRQ:
			wr = container_of(ev, struct kdapl_wr, ev);
			if (wr->ep != ep)
				break;
			kdapl_evd_remove(evd, ev);
			if (ev->kind == KDAPL_EV_SQ)
				kdapl_ring_reaped(&ep->sq, wr);
			else
				kdapl_recv_withdraw(wr);
			break;
		case KDAPL_EV_CONN:
			ce = container_of(ev, struct kdapl_conn_event, ev);
			if (ce->conn->ep != ep)
				break;
			kdapl_evd_remove(evd, ev);
			kdapl_conn_put(ce->conn);
			break;
		}
	}
	spin_unlock_irqrestore(&evd->lock, flags);
}

/* Take back every event that names the Endpoint, which is dying. */
void kdapl_ep_withdraw(struct kdapl_ep *ep)
{
	struct kdapl_wr *wr, *next;
	struct kdapl_evd *evd;
	unsigned long flags;

	kdapl_withdraw_from(ep, ep->recv_evd);
	if (ep->req_evd != ep->recv_evd)
		kdapl_withdraw_from(ep, ep->req_evd);
	if (ep->conn_evd != ep->recv_evd && ep->conn_evd != ep->req_evd)
		kdapl_withdraw_from(ep, ep->conn_evd);
	kdapl_async_withdraw(&ep->soft_event);

	evd = ep->recv_evd;
	if (!evd)
		return;
	spin_lock_irqsave(&evd->lock, flags);
	list_for_each_entry_safe(wr, next, &ep->early, ev.link) {
		list_del(&wr->ev.link);
		kdapl_recv_withdraw(wr);
	}
	kdapl_ep_update_watch(ep, evd, false);
	spin_unlock_irqrestore(&evd->lock, flags);
}

/* Let go of all that a freed Endpoint depends on, but for the references. */
static void kdapl_ep_finish(struct kdapl_ep *ep)
{
	kdapl_ep_withdraw(ep);
	kdapl_stream_detach(ep->recv_evd, ep->attr.recv_completion_flags);
	kdapl_stream_detach(ep->req_evd, ep->attr.request_completion_flags);
	if (ep->srq && ep->recv_evd)
		kdapl_srq_del_feed(ep->srq, ep->recv_evd);
	if (ep->pz)
		kdapl_obj_unuse(&ep->pz->obj);
	if (ep->recv_evd)
		kdapl_obj_unuse(&ep->recv_evd->obj);
	if (ep->req_evd)
		kdapl_obj_unuse(&ep->req_evd->obj);
	if (ep->conn_evd)
		kdapl_obj_unuse(&ep->conn_evd->obj);
	if (ep->srq)
		kdapl_obj_unuse(&ep->srq->obj);
	trace_kdapl_ep_free(ep);
	kdapl_obj_put(&ep->obj);
}

/* Keep the dependencies of the Endpoint as they are until released. */
bool kdapl_ep_hold(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool held;

	spin_lock_irqsave(&ep->lock, flags);
	held = !ep->dying;
	ep->on_hold = held;
	spin_unlock_irqrestore(&ep->lock, flags);
	return held;
}

/* If the Endpoint was freed meanwhile, do what that had to leave undone. */
void kdapl_ep_release_hold(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool finish;

	spin_lock_irqsave(&ep->lock, flags);
	ep->on_hold = false;
	finish = ep->dying;
	spin_unlock_irqrestore(&ep->lock, flags);
	if (finish)
		kdapl_ep_finish(ep);
}

/*
 * The device is leaving: every Endpoint is told, also one that never had a
 * connection. Nothing of it remains on the device afterwards.
 */
void kdapl_ep_device_gone(struct kdapl_ep *ep)
{
	u32 idle = BIT(DAT_EP_STATE_UNCONNECTED) | BIT(DAT_EP_STATE_RESERVED) |
		   BIT(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING) |
		   BIT(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	struct kdapl_conn *conn;
	bool ended;

	mutex_lock(&ep->mutex);
	ended = kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN);
	if (!ended && BIT(READ_ONCE(ep->state)) & idle) {
		conn = kdapl_conn_alloc(ep);
		if (conn && kdapl_ep_join(ep, conn, idle,
					  DAT_EP_STATE_COMPLETION_PENDING))
			kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
		else if (conn)
			kdapl_conn_put(conn);
	}
	kdapl_conn_wait(ep);
	mutex_unlock(&ep->mutex);
}

/**
 * kdapl_ep_free - the consumer (or the IA's end) gives the Endpoint up
 * @ep: referenced by the caller, state allows it
 *
 * Context: Any.
 * Return: false if somebody else did it.
 */
bool kdapl_ep_free(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool on_hold;

	if (!kdapl_obj_unpublish(&ep->obj))
		return false;
	/* From here on no event names it and no call changes it. */
	spin_lock_irqsave(&ep->lock, flags);
	WRITE_ONCE(ep->dying, true);
	on_hold = ep->on_hold;
	spin_unlock_irqrestore(&ep->lock, flags);

	kdapl_ep_down(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdapl_conn_linger(ep);
	if (!on_hold)
		kdapl_ep_finish(ep);
	return true;
}

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle)
{
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned long flags;
	struct kdapl_ep *ep;

	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);

	spin_lock_irqsave(&ep->lock, flags);
	switch (ep->state) {
	case DAT_EP_STATE_RESERVED:
	case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
	case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
		ret = kdapl_ep_state_error(ep->state);
		break;
	default:
		break;
	}
	spin_unlock_irqrestore(&ep->lock, flags);

	if (ret == DAT_SUCCESS && !kdapl_ep_free(ep))
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_free);

/* Ready for the next connection: receives wait in the ring again. */
static void kdapl_ep_rearm(struct kdapl_ep *ep)
{
	struct kdapl_evd *evd;
	unsigned long flags;

	/* From here on requests are refused; what got in is flushed below. */
	spin_lock_irqsave(&ep->lock, flags);
	memset(&ep->local_addr, 0, sizeof(ep->local_addr));
	memset(&ep->remote_addr, 0, sizeof(ep->remote_addr));
	ep->no_reads = false;
	WRITE_ONCE(ep->state, DAT_EP_STATE_UNCONNECTED);
	spin_unlock_irqrestore(&ep->lock, flags);

	kdapl_ring_flush(ep, &ep->sq, KDAPL_FLUSH_REARM);
	kdapl_ring_flush(ep, &ep->rq, KDAPL_FLUSH_REARM);
	evd = kdapl_ep_lock_recv(ep, &flags);
	ep->open = false;
	kdapl_ep_unlock_recv(ep, evd, flags);
}

DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_conn *conn = NULL;
	unsigned long flags;
	struct kdapl_ep *ep;

	might_sleep();
	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);

	mutex_lock(&ep->mutex);
	if (READ_ONCE(ep->state) == DAT_EP_STATE_DISCONNECTED)
		kdapl_conn_wait(ep);
	spin_lock_irqsave(&ep->lock, flags);
	switch (ep->state) {
	case DAT_EP_STATE_DISCONNECTED:
		conn = ep->conn;
		ep->conn = NULL;
		break;
	case DAT_EP_STATE_UNCONNECTED:
		break;
	default:
		ret = kdapl_ep_state_error(ep->state);
	}
	spin_unlock_irqrestore(&ep->lock, flags);

	if (conn) {
		kdapl_ep_rearm(ep);
		kdapl_conn_put(conn);
	}
	mutex_unlock(&ep->mutex);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_reset);
