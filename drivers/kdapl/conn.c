// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections.
 *
 * A struct kdapl_conn is one attempt to connect an Endpoint, from the first
 * step to the last event. It owns the rdma_cm id. kdapl_conn_end() (ep_state.c)
 * ends it, in any context: it queues kdapl_conn_down(), which disconnects,
 * destroys the id, then the QP, flushes, and reports last. So all completions of
 * a connection precede its final event.
 *
 * kdapl_conn_handler() runs under the id's handler lock, takes no mutex but conn->dial, and
 * may lock the socket of siw. conn->mutex keeps setting up (conn_connect.c, cm_accept.c) and
 * taking down apart.
 *
 * The QP is not attached to the id, since an Endpoint does not know early
 * enough whether it will connect or accept. On InfiniBand and RoCE
 * kdapl_qp_to_rts() moves it through its states.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include "conn.h"
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "srq.h"
#include "trace.h"

/*
 * Return KDAPL_END_QUEUE_DRY if, as far as known, the device has no buffer of the SRQ of
 * @conn, else @why. On iWARP a message that meets none ends the connection, which the device
 * reports as it does an end by the peer. Context: any.
 */
static enum kdapl_end kdapl_conn_dry_or(const struct kdapl_conn *conn, enum kdapl_end why)
{
	const struct kdapl_ep *ep = conn->ep;
	bool dry = ep->obj.ia->iwarp && ep->srq && !READ_ONCE(ep->srq->hw_count);

	return dry ? KDAPL_END_QUEUE_DRY : why;
}

/*
 * Is the end of @conn, whose QP has died, overdue? If it still has time, have the timer run
 * once more: other purposes have it run earlier.
 */
static bool kdapl_conn_is_overdue(struct kdapl_conn *conn)
{
	unsigned long flags, now = jiffies;
	bool overdue = false;

	spin_lock_irqsave(&conn->ep->lock, flags);
	if (conn->dies_at && time_after_eq(now, conn->dies_at))
		overdue = true;
	else if (conn->dies_at && !conn->end)
		mod_delayed_work(kdapl_wq, &conn->timer, conn->dies_at - now);
	spin_unlock_irqrestore(&conn->ep->lock, flags);
	return overdue;
}

static void kdapl_conn_timeout(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work),
					       struct kdapl_conn, timer);

	kdapl_conn_end_if(conn, BIT(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING),
			  DAT_CONNECTION_EVENT_TIMED_OUT, KDAPL_END_TIMEOUT);
	while (kdapl_defer_release(conn->ep))
		cond_resched();
	if (kdapl_conn_is_overdue(conn))
		kdapl_conn_end_if(conn, BIT(DAT_EP_STATE_CONNECTED) |
				  BIT(DAT_EP_STATE_DISCONNECT_PENDING),
				  DAT_CONNECTION_EVENT_BROKEN,
				  kdapl_conn_dry_or(conn, KDAPL_END_TRANSPORT));
}

static struct kdapl_conn *kdapl_conn_new(struct kdapl_ep *ep, size_t size)
{
	struct kdapl_conn *conn;

	conn = kzalloc(size, GFP_KERNEL);
	if (!conn)
		return NULL;
	kref_init(&conn->ref);
	conn->ep = ep;
	mutex_init(&conn->mutex);
	mutex_init(&conn->dial);
	kdapl_conn_init_down(conn);
	INIT_DELAYED_WORK(&conn->timer, kdapl_conn_timeout);
	conn->established.ev.kind = KDAPL_EV_CONN;
	conn->established.conn = conn;
	conn->final.ev.kind = KDAPL_EV_CONN;
	conn->final.conn = conn;
	return conn;
}

/* Allocate an attempt to connect @ep, or return NULL. */
struct kdapl_conn *kdapl_conn_alloc(struct kdapl_ep *ep)
{
	return kdapl_conn_new(ep, sizeof(struct kdapl_conn));
}

/* Allocate a connection of @ep that can only end, without private data, or return NULL. */
struct kdapl_conn *kdapl_conn_alloc_spare(struct kdapl_ep *ep)
{
	return kdapl_conn_new(ep, offsetof(struct kdapl_conn, pd));
}

/* Fill in the parameters that the two sides of a connection exchange. */
void kdapl_conn_params(struct kdapl_ep *ep, struct rdma_conn_param *param,
		       const void *pd, u8 pd_len)
{
	memset(param, 0, sizeof(*param));
	param->private_data = pd_len ? pd : NULL;
	param->private_data_len = pd_len;
	param->responder_resources = min(ep->attr.max_rdma_read_in, U8_MAX);
	param->initiator_depth = min(ep->attr.max_rdma_read_out, U8_MAX);
	param->retry_count = 7;
	/* 7 means for ever: a receiver may be short of buffers for long. */
	param->rnr_retry_count = 7;
	param->srq = !!ep->srq;
	param->qp_num = ep->qp->qp_num;
}

/*
 * Keep the private data @data of the peer's answer for the event @ce. After ESTABLISHED
 * the consumer may be reading the data of an earlier answer: keep that.
 */
static void kdapl_conn_private_data(struct kdapl_conn_event *ce,
				    const void *data, u8 len)
{
	if (!data || ce->conn->established.number)
		return;
	memcpy(ce->conn->pd, data, len);
	ce->pd_len = len;
}

/* Change the state to CONNECTED, queue the event, start the work that waited for it. */
static void kdapl_conn_established(struct kdapl_conn *conn)
{
	struct kdapl_ep *ep = conn->ep;
	struct kdapl_evd *evd = ep->conn_evd;
	struct kdapl_later later = { .n = 0 };
	unsigned long flags;
	bool won, qp_died;

	/* Before the state changes: from then on kdapl_conn_died() may start the timer. */
	cancel_delayed_work(&conn->timer);
	/*
	 * In state CONNECTED posting is possible; the locked EVD keeps completions behind
	 * the event.
	 */
	spin_lock_irqsave(&evd->lock, flags);
	spin_lock(&ep->lock);
	won = ep->conn == conn && !conn->end &&
	      kdapl_ep_change_state(ep, DAT_EP_STATE_CONNECTED);
	if (won) {
		conn->rts = true;
		ep->local_addr = conn->id->route.addr.src_addr;
		ep->remote_addr = conn->id->route.addr.dst_addr;
		ep->since = ktime_get_real_seconds();
	}
	qp_died = conn->qp_died;
	spin_unlock(&ep->lock);
	if (won && !READ_ONCE(ep->dying)) {
		conn->established.number = DAT_CONNECTION_EVENT_ESTABLISHED;
		kdapl_conn_add_event(evd, &conn->established, &later);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_upcall_schedule(evd);
	kdapl_later_run(&later);
	if (!won)
		return;
	atomic_long_inc(&ep->obj.ia->counts[KDAPL_COUNT_ESTABLISHED]);
	trace_kdapl_conn_event(ep, DAT_CONNECTION_EVENT_ESTABLISHED, KDAPL_END_NONE);
	if (qp_died)
		kdapl_conn_died(conn);
	/* The driver may have refused receives while the QP changed state. */
	kdapl_qp_post_recvs(ep);
	/*
	 * Start the timer before opening: kdapl_ep_open() runs the deferral at once if a
	 * receive is parked.
	 */
	if (READ_ONCE(ep->deferred))
		kdapl_ep_start_timer(ep, KDAPL_DEFER_MS);
	kdapl_ep_open(ep, true);
}

/*
 * On iWARP the driver changes the state of the QP. Record whether the QP may receive, or
 * never has because the attempt failed. kdapl_qp_destroy() reads this after the id is
 * destroyed, when no handler runs any more.
 */
void kdapl_conn_driver_receives(struct kdapl_conn *conn, bool may)
{
	if (conn->ep->obj.ia->iwarp)
		conn->ep->receives = may;
}

/*
 * The peer or the transport has refused, as @why says. End an attempt to connect with
 * event @refused, and an established connection with @over: InfiniBand can reject after
 * the active side has reported ESTABLISHED.
 */
static void kdapl_conn_refused(struct kdapl_conn *conn, DAT_EVENT_NUMBER refused,
			       DAT_EVENT_NUMBER over, enum kdapl_end why)
{
	kdapl_conn_driver_receives(conn, false);
	if (!kdapl_conn_end_if(conn,
			       BIT(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING) |
			       BIT(DAT_EP_STATE_COMPLETION_PENDING), refused, why))
		kdapl_conn_end(conn, over, over == DAT_CONNECTION_EVENT_DISCONNECTED ?
			       KDAPL_END_PEER : KDAPL_END_TRANSPORT);
}

/*
 * Did the peer's consumer reject? Over iWARP a rejection is a reply. Some drivers report
 * a rejection as a reset; private data, even if empty, tells it from a reset during
 * setup.
 */
static bool kdapl_is_peer_reject(struct rdma_cm_id *id,
				 struct rdma_cm_event *event)
{
	if (rdma_cap_ib_cm(id->device, id->port_num))
		return event->status == IB_CM_REJ_CONSUMER_DEFINED;
	return event->status == -ECONNREFUSED || event->param.conn.private_data;
}

static void kdapl_conn_rejected(struct kdapl_conn *conn, struct rdma_cm_id *id,
				struct rdma_cm_event *event)
{
	DAT_EVENT_NUMBER refused = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;

	if (conn->passive) {
		refused = DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
	} else if (kdapl_is_peer_reject(id, event)) {
		refused = DAT_CONNECTION_EVENT_PEER_REJECTED;
		kdapl_conn_private_data(&conn->final,
					event->param.conn.private_data,
					event->param.conn.private_data_len);
	}
	kdapl_conn_refused(conn, refused, DAT_CONNECTION_EVENT_DISCONNECTED,
			   KDAPL_END_REFUSED);
}

/*
 * Take the next step: the address or route is known, or the peer has answered.
 */
static int kdapl_conn_advance(struct kdapl_conn *conn, struct rdma_cm_id *id,
			      struct rdma_cm_event *event)
{
	struct rdma_conn_param param;
	int err;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (id->device != conn->ep->obj.ia->hca->dev)
			return -EHOSTUNREACH;
		return rdma_resolve_route(id, KDAPL_RESOLVE_MS) ?
			-EHOSTUNREACH : 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		kdapl_conn_params(conn->ep, &param, conn->pd, conn->pd_len);
		/*
		 * The driver sees the answer, and the QP may receive, before
		 * kdapl_conn_handler() learns of the answer.
		 */
		if (conn->ep->obj.ia->iwarp &&
		    !kdapl_conn_may_receive(conn, &conn->dialled))
			return -ECONNABORTED;
		kdapl_conn_driver_receives(conn, true);
		mutex_lock(&conn->dial);
		err = rdma_connect_locked(id, &param);
		mutex_unlock(&conn->dial);
		if (err)
			kdapl_conn_driver_receives(conn, false);
		return err;
	default:
		kdapl_conn_private_data(&conn->established,
					event->param.conn.private_data,
					event->param.conn.private_data_len);
		err = kdapl_conn_may_receive(conn, &conn->rts) ?
			kdapl_qp_to_rts(conn->ep, id, NULL) : -ECONNABORTED;
		if (err)
			rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
		else
			err = rdma_accept(id, NULL);
		if (!err)
			kdapl_conn_established(conn);
		return err;
	}
}

/* Return the event for an attempt that failed with errno @err. */
DAT_EVENT_NUMBER kdapl_conn_failure(struct kdapl_conn *conn, int err)
{
	if (conn->passive)
		return DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
	switch (err) {
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -ETIMEDOUT:
	case -EADDRNOTAVAIL:
	/* siw: TCP has the local port in use. */
	case -EADDRINUSE:
		return DAT_CONNECTION_EVENT_UNREACHABLE;
	default:
		return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
	}
}

/*
 * The peer has disconnected, perhaps while connecting, or has answered our disconnect.
 * The peer may have executed requests of an established connection that have not
 * completed here, so wait for these: rxe drops acknowledgements that it comes to when the
 * QP is in ERR.
 *
 * Taking down waits for this handler before it ends the watch.
 */
static void kdapl_conn_disconnected(struct kdapl_conn *conn)
{
	struct kdapl_ep *ep = conn->ep;
	enum kdapl_end why = kdapl_conn_dry_or(conn, KDAPL_END_PEER);

	conn->answered = true;
	if (kdapl_conn_end_if(conn, BIT(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING) |
			      BIT(DAT_EP_STATE_COMPLETION_PENDING),
			      kdapl_conn_failure(conn, -ECONNRESET), KDAPL_END_REFUSED))
		return;
	if (!kdapl_qp_close_sq(ep)) {
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_DISCONNECTED, why);
		return;
	}
	kdapl_conn_watch_drain(conn, true);
	if (!kdapl_conn_end_drained(conn, why))
		return;
	kdapl_cq_poll_all(ep->req_evd);
	if (READ_ONCE(ep->sq.done) == READ_ONCE(ep->sq.posted))
		kdapl_ep_hurry(ep);
}

/* Data may flow on the connection of @id. */
static void kdapl_conn_flows(struct kdapl_conn *conn, struct rdma_cm_id *id,
			     const struct rdma_conn_param *param)
{
	if (!conn->passive)
		kdapl_conn_private_data(&conn->established, param->private_data,
					param->private_data_len);
	kdapl_conn_established(conn);
	/*
	 * siw may have missed a message that has come already. An active side looks by
	 * itself, without the socket's lock (siw_cm_work_handler()).
	 */
	if (conn->passive && kdapl_has_quirk(conn->ep->obj.ia->hca, KDAPL_QUIRK_FIRST_MESSAGE))
		kdapl_siw_wake(id);
}

/* Event handler of a connection's rdma_cm id, which is never destroyed here. */
int kdapl_conn_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdapl_conn *conn = id->context;
	unsigned int noio = memalloc_noio_save();
	int err;

	trace_kdapl_cm_event(conn->ep, event);
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		err = kdapl_conn_advance(conn, id, event);
		if (err)
			kdapl_conn_end(conn, kdapl_conn_failure(conn, err),
				       err == -EHOSTUNREACH ? KDAPL_END_UNREACHABLE :
							      KDAPL_END_DRIVER);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		kdapl_conn_flows(conn, id, &event->param.conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		kdapl_conn_rejected(conn, id, event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		kdapl_conn_refused(conn,
				   kdapl_conn_failure(conn, -EHOSTUNREACH),
				   DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_UNREACHABLE);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		kdapl_conn_refused(conn, kdapl_conn_failure(conn, -ECONNRESET),
				   DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_REFUSED);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		kdapl_conn_disconnected(conn);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_UNPLUG);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		/* They say nothing of rdma_accept(), which the driver may not have answered. */
		goto out;
	default:
		break;
	}
	if (READ_ONCE(conn->accepting))
		kdapl_conn_accepted(conn);
out:
	memalloc_noio_restore(noio);
	return 0;
}
