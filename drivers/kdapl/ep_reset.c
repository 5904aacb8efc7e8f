// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dat_ep_reset(): an Endpoint whose connection has ended becomes UNCONNECTED. Until the
 * connection was taken down, its QP may fill receives, so the call waits for that.
 */
#include "conn.h"
#include "dto.h"
#include "ep.h"

/*
 * Make @ep UNCONNECTED if it is DISCONNECTED and its connection was taken down. One
 * section of ep->lock decides and does this.
 *
 * Return the state that @ep was in. *@conn is set to the connection taken from @ep; or to
 * NULL, with nothing changed.
 */
static DAT_EP_STATE kdapl_ep_detach(struct kdapl_ep *ep, struct kdapl_conn **conn)
{
	DAT_EP_STATE state;
	unsigned long flags;

	lockdep_assert_held(&ep->mutex);

	*conn = NULL;
	spin_lock_irqsave(&ep->lock, flags);
	state = ep->state;
	if (state == DAT_EP_STATE_DISCONNECTED &&
	    completion_done(&ep->conn->down_done)) {
		swap(*conn, ep->conn);
		memset(&ep->local_addr, 0, sizeof(ep->local_addr));
		memset(&ep->remote_addr, 0, sizeof(ep->remote_addr));
		ep->no_reads = false;
		/* Requests are refused from here on. */
		kdapl_ep_change_state(ep, DAT_EP_STATE_UNCONNECTED);
	}
	spin_unlock_irqrestore(&ep->lock, flags);
	return state;
}

/*
 * Get @ep, which is UNCONNECTED, ready for the next connection: flush requests that were
 * posted before, let receives wait in the ring again.
 */
static void kdapl_ep_rearm(struct kdapl_ep *ep)
{
	struct kdapl_evd *evd;
	unsigned long flags;

	kdapl_ring_flush(ep, &ep->sq, KDAPL_FLUSH_REARM);
	kdapl_ring_flush(ep, &ep->rq, KDAPL_FLUSH_REARM);
	evd = kdapl_ep_lock_recv(ep, &flags);
	ep->open = false;
	ep->hard_fired = false;
	kdapl_ep_unlock_recv(ep, evd, flags);
}

DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_conn *conn;
	DAT_EP_STATE state;
	struct kdapl_ep *ep;

	might_sleep();
	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);

	mutex_lock(&ep->mutex);
	/* The mutex keeps a connection from beginning, so this repeats at most once. */
	while ((state = kdapl_ep_detach(ep, &conn)) == DAT_EP_STATE_DISCONNECTED && !conn)
		if (!kdapl_conn_wait(ep))
			break;
	if (!conn && state != DAT_EP_STATE_UNCONNECTED)
		ret = kdapl_ep_state_error(state);
	if (conn) {
		ep->settle_gp = get_state_synchronize_rcu();
		ep->was_reset = true;
		kdapl_ep_rearm(ep);
		kdapl_conn_put(conn);
	}
	mutex_unlock(&ep->mutex);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_reset);
