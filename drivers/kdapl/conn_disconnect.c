// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dat_ep_disconnect(), in any context. An abrupt end is kdapl_ep_down_if(); a
 * graceful one waits for the last request, whose completion calls kdapl_ep_down()
 * (kdapl_send_finish()).
 */
#include "conn.h"
#include "ep.h"

/*
 * Count the Endpoint of @conn in req_evd->watchers, or no longer, as @want says, so that
 * completions are noticed while a disconnect waits for requests. kdapl_conn_finish() sets
 * conn->qp_gone, then ends the watch; until then the Endpoint keeps its EVD. No watch begins
 * if ->qp_gone, read with the EVD locked, is set, so kdapl_conn_finish() ends every watch.
 * Context: any.
 */
void kdapl_conn_watch_drain(struct kdapl_conn *conn, bool want)
{
	struct kdapl_ep *ep = conn->ep;
	struct kdapl_evd *evd = READ_ONCE(ep->req_evd);
	unsigned long flags;
	bool change, gone;

	if (!evd)
		return;
	spin_lock_irqsave(&evd->lock, flags);
	spin_lock(&ep->lock);
	gone = conn->qp_gone;
	spin_unlock(&ep->lock);
	change = ep->finishing != want && !(want && gone);
	if (change) {
		ep->finishing = want;
		evd->watchers += want ? 1 : -1;
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (change && want && kdapl_cq_arm(evd))
		kdapl_cq_schedule_poll(evd);
}

/*
 * End @conn when its posted requests have completed. kdapl_ep_close() has closed its
 * Endpoint to more requests.
 */
static void kdapl_disconnect_gracefully(struct kdapl_conn *conn)
{
	struct kdapl_ep *ep = conn->ep;
	struct kdapl_evd *evd = READ_ONCE(ep->req_evd);
	unsigned long flags;
	bool idle;

	/* A post that saw CONNECTED is in the ring once the lock is held. litmus: ep-post */
	spin_lock_irqsave(&ep->sq.lock, flags);
	kdapl_post_behind(ep, NULL);
	idle = ep->sq.head == READ_ONCE(ep->sq.done);
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	/* The last completion will find the state changed. litmus: ep-drain */
	if (!idle && evd) {
		kdapl_conn_watch_drain(conn, true);
		kdapl_cq_poll_all(evd);
		idle = READ_ONCE(ep->sq.head) == READ_ONCE(ep->sq.done);
	}
	/* Another caller may have ended @conn, and the Endpoint may have a new connection. */
	if (idle)
		kdapl_conn_end_if(conn, BIT(DAT_EP_STATE_DISCONNECT_PENDING),
				  DAT_CONNECTION_EVENT_DISCONNECTED,
				  KDAPL_END_CONSUMER);
}

/*
 * Disconnect @ep, which was in @state. Return false, with nothing done, if the state has
 * changed: the caller tries again.
 */
static bool kdapl_ep_disconnect(struct kdapl_ep *ep, DAT_EP_STATE state,
				bool graceful, DAT_RETURN *ret)
{
	struct kdapl_conn *conn;

	*ret = DAT_SUCCESS;
	switch (state) {
	case DAT_EP_STATE_CONNECTED:
		if (!graceful)
			return kdapl_ep_down_if(ep, BIT(state));
		conn = kdapl_ep_close(ep);
		if (!conn)
			return false;
		kdapl_disconnect_gracefully(conn);
		kdapl_conn_put(conn);
		return true;
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
	case DAT_EP_STATE_COMPLETION_PENDING:
		return kdapl_ep_down_if(ep, BIT(state));
	case DAT_EP_STATE_DISCONNECT_PENDING:
		return graceful || kdapl_ep_down_if(ep, BIT(state));
	case DAT_EP_STATE_DISCONNECTED:
		if (!graceful)
			kdapl_ep_hurry(ep);
		return true;
	default:
		*ret = kdapl_ep_state_error(state);
		return true;
	}
}

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle,
			     DAT_CLOSE_FLAGS close_flags)
{
	bool graceful = close_flags == DAT_CLOSE_GRACEFUL_FLAG;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (close_flags != DAT_CLOSE_ABRUPT_FLAG && !graceful) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	/* Repeated only if another CPU has moved the connection on. */
	while (!kdapl_ep_disconnect(ep, READ_ONCE(ep->state), graceful, &ret))
		;
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_disconnect);
