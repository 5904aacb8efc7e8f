// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dat_ep_reset(): an Endpoint whose connection has ended becomes UNCONNECTED.
 */
#include "dto.h"
#include "ep.h"

/* Get @ep ready for the next connection: receives wait in the ring again. */
static void kdapl_ep_rearm(struct kdapl_ep *ep)
{
	struct kdapl_evd *evd;
	unsigned long flags;

	/*
	 * From here on requests are refused; those posted before are flushed
	 * below.
	 */
	spin_lock_irqsave(&ep->lock, flags);
	memset(&ep->local_addr, 0, sizeof(ep->local_addr));
	memset(&ep->remote_addr, 0, sizeof(ep->remote_addr));
	ep->no_reads = false;
	kdapl_ep_change_state(ep, DAT_EP_STATE_UNCONNECTED);
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
