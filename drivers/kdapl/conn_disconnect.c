// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dat_ep_disconnect(): in any context. An abrupt end is kdapl_ep_down(); a
 * graceful one waits for the last request, whose completion calls that
 * (kdapl_send_finish()).
 */
#include "conn.h"
#include "ep.h"

/*
 * Count @ep in req_evd->watchers as @want says, so that completions are noticed
 * while a graceful disconnect waits.
 */
void kdapl_ep_watch_drain(struct kdapl_ep *ep, bool want)
{
	if (ep->req_evd && xchg(&ep->finishing, want) != want)
		kdapl_cq_watch(ep->req_evd,
			       want ? KDAPL_WATCH_NONE : KDAPL_WATCH,
			       want ? KDAPL_WATCH : KDAPL_WATCH_NONE);
}

/*
 * Refuse requests from now on, and end the connection when those posted have
 * completed.
 */
static void kdapl_disconnect_gracefully(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool idle;

	spin_lock_irqsave(&ep->lock, flags);
	kdapl_ep_change_state(ep, DAT_EP_STATE_DISCONNECT_PENDING);
	spin_unlock_irqrestore(&ep->lock, flags);
	/* A post that saw CONNECTED is in the ring once the lock is held. */
	spin_lock_irqsave(&ep->sq.lock, flags);
	kdapl_post_behind(ep, NULL);
	idle = ep->sq.head == READ_ONCE(ep->sq.done);
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	/* The last completion will find the state changed. */
	if (!idle && ep->req_evd) {
		kdapl_ep_watch_drain(ep, true);
		kdapl_cq_poll_all(ep->req_evd);
		idle = READ_ONCE(ep->sq.head) == READ_ONCE(ep->sq.done);
		/* kdapl_conn_down() may have run before the watching began. */
		if (READ_ONCE(ep->state) != DAT_EP_STATE_DISCONNECT_PENDING)
			kdapl_ep_watch_drain(ep, false);
	}
	if (idle)
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle,
			     DAT_CLOSE_FLAGS close_flags)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_ep *ep;
	DAT_EP_STATE state;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (close_flags != DAT_CLOSE_ABRUPT_FLAG &&
	    close_flags != DAT_CLOSE_GRACEFUL_FLAG) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	state = READ_ONCE(ep->state);
	switch (state) {
	case DAT_EP_STATE_CONNECTED:
		if (close_flags == DAT_CLOSE_GRACEFUL_FLAG) {
			kdapl_disconnect_gracefully(ep);
			break;
		}
		fallthrough;
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
	case DAT_EP_STATE_COMPLETION_PENDING:
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		break;
	case DAT_EP_STATE_DISCONNECT_PENDING:
		if (close_flags == DAT_CLOSE_ABRUPT_FLAG)
			kdapl_ep_down(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		break;
	case DAT_EP_STATE_DISCONNECTED:
		if (close_flags == DAT_CLOSE_ABRUPT_FLAG)
			kdapl_ep_hurry(ep);
		break;
	default:
		ret = kdapl_ep_state_error(state);
	}
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_disconnect);
