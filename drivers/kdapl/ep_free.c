// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints: dat_ep_free(), and the loss of the device.
 *
 * dat_ep_free() may be called anywhere, also from the Endpoint's own upcalls. It
 * marks the Endpoint as dying, after which no new event names the Endpoint, withdraws
 * the queued events, and starts to take the connection down.
 */
#include "conn.h"
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "pz.h"
#include "srq.h"
#include "trace.h"

/*
 * Withdraw the events of requests, or of receives. A dying Endpoint queues no more
 * events, so there are none behind @end.
 */
static void kdapl_withdraw_ring(struct kdapl_evd *evd, struct kdapl_ring *ring)
{
	struct kdapl_wr *wr;
	unsigned long flags;
	u32 pos, end;
	int n;

	if (!evd)
		return;
	spin_lock_irqsave(&evd->lock, flags);
	pos = ring->tail;
	end = ring->done;
	while (pos != end) {
		for (n = 0; n < KDAPL_SECTION && pos != end; n++, pos++) {
			wr = kdapl_ring_wr(ring, pos);
			if (wr->ev.queued)
				kdapl_event_withdraw(evd, &wr->ev);
		}
		kdapl_section(n);
		spin_unlock_irqrestore(&evd->lock, flags);
		spin_lock_irqsave(&evd->lock, flags);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
}

/* Withdraw the buffers taken off the SRQ, whether their events are queued or parked. */
static void kdapl_withdraw_srq(struct kdapl_ep *ep, struct kdapl_evd *evd)
{
	unsigned long flags;
	struct kdapl_wr *wr;
	int n;

	do {
		spin_lock_irqsave(&evd->lock, flags);
		for (n = 0; n < KDAPL_SECTION && !list_empty(&ep->at_hand); n++) {
			wr = list_first_entry(&ep->at_hand, struct kdapl_wr,
					      link);
			if (wr->ev.queued) {
				kdapl_event_withdraw(evd, &wr->ev);
			} else {
				list_del(&wr->ev.link);
				kdapl_recv_withdraw(wr);
			}
		}
		kdapl_section(n);
		spin_unlock_irqrestore(&evd->lock, flags);
	} while (n == KDAPL_SECTION);
}

/* Withdraw receives parked until ESTABLISHED, of an Endpoint without SRQ. */
static void kdapl_withdraw_parked(struct kdapl_ep *ep, struct kdapl_evd *evd)
{
	unsigned long flags;
	struct kdapl_wr *wr;
	int n;

	do {
		spin_lock_irqsave(&evd->lock, flags);
		for (n = 0; n < KDAPL_SECTION && !list_empty(&ep->parked); n++) {
			wr = list_first_entry(&ep->parked, struct kdapl_wr,
					      ev.link);
			list_del(&wr->ev.link);
			kdapl_recv_withdraw(wr);
		}
		kdapl_section(n);
		spin_unlock_irqrestore(&evd->lock, flags);
	} while (n == KDAPL_SECTION);
}

/* Withdraw the receives. */
static void kdapl_withdraw_recvs(struct kdapl_ep *ep, struct kdapl_evd *evd)
{
	unsigned long flags;

	if (!evd)
		return;
	if (ep->srq)
		kdapl_withdraw_srq(ep, evd);
	else
		kdapl_withdraw_parked(ep, evd);
	kdapl_withdraw_ring(evd, &ep->rq);
	spin_lock_irqsave(&evd->lock, flags);
	kdapl_ep_update_watch(ep, evd, false);
	spin_unlock_irqrestore(&evd->lock, flags);
}

/*
 * Withdraw every event that names the dying Endpoint. The events are found from the
 * Endpoint: an EVD's list has those of thousands of Endpoints. Another CPU may reap
 * meanwhile, and must find no completion whose ESTABLISHED was withdrawn; so the
 * connection's events are withdrawn last.
 */
static void kdapl_ep_withdraw(struct kdapl_ep *ep)
{
	kdapl_withdraw_ring(ep->req_evd, &ep->sq);
	kdapl_withdraw_recvs(ep, ep->recv_evd);
	kdapl_conn_withdraw_events(ep);
	kdapl_async_withdraw(&ep->soft_event);
}

/* Drop the uses of a freed Endpoint; its release function drops the references. */
void kdapl_ep_finish(struct kdapl_ep *ep)
{
	kdapl_ep_withdraw(ep);
	kdapl_evd_del_stream(ep->recv_evd, ep->attr.recv_completion_flags);
	kdapl_evd_del_stream(ep->req_evd, ep->attr.request_completion_flags);
	if (ep->srq && ep->recv_evd)
		kdapl_srq_del_evd(ep->srq, ep->recv_evd);
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

/*
 * The device is leaving; this is called for every Endpoint. One that never had a
 * connection gets ep->spare, a connection that has ended. With @wait nothing of the
 * Endpoint remains on the device. Without @wait only end a live connection, so that two
 * ends on this device do not wait for each other.
 */
void kdapl_ep_stop(struct kdapl_ep *ep, bool wait)
{
	char name[IB_DEVICE_NAME_MAX];
	struct kdapl_conn *conn;

	if (!wait) {
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_UNPLUG);
		return;
	}
	mutex_lock(&ep->mutex);
	conn = ep->spare;
	if (!kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_UNPLUG) && conn &&
	    kdapl_ep_join(ep, conn, DAT_EP_STATE_COMPLETION_PENDING)) {
		ep->spare = NULL;
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_UNPLUG);
	}
	/* The driver may still call back, so its device cannot leave. */
	while (!kdapl_conn_wait(ep)) {
		kdapl_hca_name(ep->obj.ia->hca, name);
		pr_warn("kdapl: %s: still waiting for the driver to end a connection\n", name);
	}
	mutex_unlock(&ep->mutex);
}

/**
 * kdapl_ep_free - free an Endpoint, for the consumer or because the IA is closed
 * @ep: referenced by the caller
 * @refused: states in which the Endpoint cannot be freed
 *
 * Context: Any.
 * Return: as kdapl_ep_die().
 */
DAT_RETURN kdapl_ep_free(struct kdapl_ep *ep, u32 refused)
{
	bool deps_pinned;
	DAT_RETURN ret;

	ret = kdapl_ep_die(ep, refused, &deps_pinned);
	if (ret != DAT_SUCCESS)
		return ret;
	kdapl_obj_unpublish(&ep->obj);
	kdapl_ep_down(ep, DAT_CONNECTION_EVENT_DISCONNECTED, KDAPL_END_CONSUMER);
	if (!deps_pinned)
		kdapl_ep_finish(ep);
	return DAT_SUCCESS;
}

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle)
{
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ret = kdapl_ep_free(ep, BIT(DAT_EP_STATE_RESERVED) |
			    BIT(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING) |
			    BIT(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING));
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_free);
