// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections.
 *
 * A struct kdapl_conn is one attempt to connect an Endpoint, from the first try
 * to the last event. It owns the rdma_cm id. Whatever ends it (the consumer, the
 * peer, an error, a watermark, the device leaving) calls kdapl_conn_end(), in
 * any context; the first caller wins, decides which event will be reported and
 * queues the work that takes everything down: disconnect, destroy the id, then
 * the QP, flush, and report last. So all completions of a connection precede its
 * final event.
 *
 * The QP is not attached to the id, since an Endpoint does not know early enough
 * whether it will connect or accept. On InfiniBand and RoCE we move it through
 * its states ourselves.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include "kdapl.h"
#include "trace.h"

static void kdapl_conn_free(struct kref *ref)
{
	kfree(container_of(ref, struct kdapl_conn, ref));
}

/* Any context. */
void kdapl_conn_put(struct kdapl_conn *conn)
{
	kref_put(&conn->ref, kdapl_conn_free);
}

/* Queue one of the connection's two events, unless the EP is being freed. */
static void kdapl_conn_report(struct kdapl_conn *conn,
			      struct kdapl_conn_event *ce,
			      DAT_EVENT_NUMBER number)
{
	struct kdapl_evd *evd = conn->ep->conn_evd;
	struct kdapl_later later = { .n = 0 };
	unsigned long flags;

	if (!evd)
		return;
	trace_kdapl_conn_event(conn->ep, number);
	ce->number = number;
	spin_lock_irqsave(&evd->lock, flags);
	if (!READ_ONCE(conn->ep->dying)) {
		kref_get(&conn->ref);
		kdapl_evd_add(evd, &ce->ev, &later);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_upcall_schedule(evd);
	kdapl_later_run(&later);
}

/* The peer cannot write into the consumer's buffers any more. */
static void kdapl_conn_stopped(struct kdapl_conn *conn)
{
	struct kdapl_ep *ep = conn->ep;
	struct kdapl_ia *ia = ep->obj.ia;
	unsigned long flags;
	bool lingering;

	spin_lock_irqsave(&ep->lock, flags);
	conn->stopped = true;
	lingering = ep->lingering;
	ep->lingering = false;
	spin_unlock_irqrestore(&ep->lock, flags);
	if (lingering && atomic_dec_and_test(&ia->lingering))
		wake_up_all(&ia->wait);
}

/*
 * An Endpoint is being freed. If its QP lives a little longer, calls that give
 * buffers back to the consumer wait for it: kdapl_ia_settle().
 */
void kdapl_conn_linger(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	conn = ep->conn;
	if (conn && conn->end && (conn->rts || conn->dialled) && !conn->stopped) {
		ep->lingering = true;
		atomic_inc(&ep->obj.ia->lingering);
	}
	spin_unlock_irqrestore(&ep->lock, flags);
}

/* No freed Endpoint of the IA receives any more. May sleep. */
void kdapl_ia_settle(struct kdapl_ia *ia)
{
	wait_event(ia->wait, !atomic_read(&ia->lingering));
}

static void kdapl_conn_down(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(work, struct kdapl_conn, down);
	unsigned int noio = memalloc_noio_save();
	struct kdapl_ep *ep = conn->ep;
	struct rdma_cm_id *id;
	unsigned long flags;

	/* An attempt that is given up may hang in its transport for long. */
	if (conn->given_up)
		kdapl_conn_report(conn, &conn->final, conn->end);

	mutex_lock(&conn->mutex);
	cancel_delayed_work_sync(&conn->timer);
	/* The QP's event handler must not find an id that is going. */
	spin_lock_irqsave(&ep->lock, flags);
	id = conn->id;
	conn->id = NULL;
	spin_unlock_irqrestore(&ep->lock, flags);
	if (id) {
		/*
		 * Not while the handler connects: if that fails rdma_cm frees what
		 * rdma_disconnect() uses. It may wait for another handler, so this
		 * cannot be rdma_lock_handler().
		 */
		mutex_lock(&conn->dial);
		rdma_disconnect(id);
		mutex_unlock(&conn->dial);
		kdapl_qp_error(ep);
		rdma_destroy_id(id);
	}
	kdapl_qp_destroy(ep, conn->established.number);
	kdapl_ep_watch_drain(ep, false);
	kdapl_conn_stopped(conn);
	mutex_unlock(&conn->mutex);

	if (!conn->given_up)
		kdapl_conn_report(conn, &conn->final, conn->end);
	complete_all(&conn->gone);
	kdapl_obj_put(&ep->obj);
	kdapl_conn_put(conn);
	memalloc_noio_restore(noio);
}

/* End a connection if the Endpoint is in one of some states. Any context. */
static bool kdapl_conn_end_if(struct kdapl_conn *conn, u32 states,
			      DAT_EVENT_NUMBER end)
{
	struct kdapl_ep *ep = conn->ep;
	unsigned long flags;
	bool won = false;

	spin_lock_irqsave(&ep->lock, flags);
	if (ep->conn == conn && !conn->end && BIT(ep->state) & states) {
		/* Two ends on a device that leaves take each other down. */
		conn->end = READ_ONCE(ep->obj.ia->hca->gone) ?
			DAT_CONNECTION_EVENT_BROKEN : end;
		conn->given_up = !conn->rts;
		WRITE_ONCE(ep->state, DAT_EP_STATE_DISCONNECTED);
		kref_get(&conn->ref);
		kref_get(&ep->obj.ref);
		won = true;
	}
	spin_unlock_irqrestore(&ep->lock, flags);
	if (won)
		queue_work(kdapl_wq, &conn->down);
	return won;
}

/**
 * kdapl_conn_end - end a connection or the attempt to make it
 * @conn: the connection
 * @end: event to report
 *
 * Context: Any.
 * Return: true for the caller whose event it will be.
 */
bool kdapl_conn_end(struct kdapl_conn *conn, DAT_EVENT_NUMBER end)
{
	return kdapl_conn_end_if(conn, ~0U, end);
}

/* End the connection of an Endpoint, if it has one. Any context. */
bool kdapl_ep_down(struct kdapl_ep *ep, DAT_EVENT_NUMBER end)
{
	struct kdapl_conn *conn;
	unsigned long flags;
	bool won;

	spin_lock_irqsave(&ep->lock, flags);
	conn = ep->conn;
	if (conn && !conn->end)
		kref_get(&conn->ref);
	else
		conn = NULL;
	spin_unlock_irqrestore(&ep->lock, flags);
	if (!conn)
		return false;
	won = kdapl_conn_end(conn, end);
	kdapl_conn_put(conn);
	return won;
}

/* The connection has ended; wait until it is down. May sleep. */
void kdapl_conn_wait(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	conn = ep->conn;
	if (conn && conn->end)
		kref_get(&conn->ref);
	else
		conn = NULL;
	spin_unlock_irqrestore(&ep->lock, flags);
	if (!conn)
		return;
	wait_for_completion(&conn->gone);
	kdapl_conn_put(conn);
}

static void kdapl_conn_timeout(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work),
					       struct kdapl_conn, timer);

	kdapl_conn_end_if(conn, BIT(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING),
			  DAT_CONNECTION_EVENT_TIMED_OUT);
}

struct kdapl_conn *kdapl_conn_alloc(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return NULL;
	kref_init(&conn->ref);
	conn->ep = ep;
	mutex_init(&conn->mutex);
	mutex_init(&conn->dial);
	INIT_WORK(&conn->down, kdapl_conn_down);
	INIT_DELAYED_WORK(&conn->timer, kdapl_conn_timeout);
	init_completion(&conn->gone);
	conn->established.ev.kind = KDAPL_EV_CONN;
	conn->established.conn = conn;
	conn->final.ev.kind = KDAPL_EV_CONN;
	conn->final.conn = conn;
	return conn;
}

/**
 * kdapl_ep_join - give an Endpoint its connection
 * @ep: ep->mutex is held
 * @conn: its reference is taken over
 * @from: states in which this may happen, as bits
 * @to: new state
 *
 * Return: false if the Endpoint is in another state or was freed.
 */
bool kdapl_ep_join(struct kdapl_ep *ep, struct kdapl_conn *conn, u32 from,
		   DAT_EP_STATE to)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&ep->lock, flags);
	ok = !ep->dying && BIT(ep->state) & from;
	if (ok) {
		ep->conn = conn;
		WRITE_ONCE(ep->state, to);
	}
	spin_unlock_irqrestore(&ep->lock, flags);
	return ok;
}

/* Fill in what both sides tell each other. */
void kdapl_conn_params(struct kdapl_ep *ep, struct rdma_conn_param *param,
		       const void *pd, u8 pd_len)
{
	memset(param, 0, sizeof(*param));
	param->private_data = pd_len ? pd : NULL;
	param->private_data_len = pd_len;
	param->responder_resources = min(ep->attr.max_rdma_read_in, U8_MAX);
	param->initiator_depth = min(ep->attr.max_rdma_read_out, U8_MAX);
	param->retry_count = 7;
	/* A receiver that is short of buffers is waited for. */
	param->rnr_retry_count = 7;
	param->srq = !!ep->srq;
	param->qp_num = ep->qp->qp_num;
}

static void kdapl_conn_private_data(struct kdapl_conn_event *ce,
				    const void *data, u8 len)
{
	if (!data)
		return;
	memcpy(ce->pd, data, len);
	ce->pd_len = len;
}

static void kdapl_conn_established(struct kdapl_conn *conn)
{
	struct kdapl_ep *ep = conn->ep;
	struct kdapl_evd *evd = ep->conn_evd;
	struct kdapl_later later = { .n = 0 };
	unsigned long flags;
	bool won;

	/*
	 * Posting is possible as soon as the state says so. With the EVD locked,
	 * no completion can get in before the event.
	 */
	spin_lock_irqsave(&evd->lock, flags);
	spin_lock(&ep->lock);
	won = ep->conn == conn && !conn->end;
	if (won) {
		conn->rts = true;
		ep->local_addr = conn->id->route.addr.src_addr;
		ep->remote_addr = conn->id->route.addr.dst_addr;
		WRITE_ONCE(ep->state, DAT_EP_STATE_CONNECTED);
	}
	spin_unlock(&ep->lock);
	if (won && !READ_ONCE(ep->dying)) {
		kref_get(&conn->ref);
		conn->established.number = DAT_CONNECTION_EVENT_ESTABLISHED;
		kdapl_evd_add(evd, &conn->established.ev, &later);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_upcall_schedule(evd);
	kdapl_later_run(&later);
	if (!won)
		return;
	trace_kdapl_conn_event(ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	cancel_delayed_work(&conn->timer);
	/* The driver may have refused some while the QP changed state. */
	kdapl_qp_post_recvs(ep);
	kdapl_ep_open(ep, true);
}

/*
 * Was it the peer's consumer that said no? Over iWARP a rejection is a reply; some
 * drivers call it a reset, but then private data, even if empty, tells it from
 * a connection that was reset before there was one.
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
	bool peer = kdapl_is_peer_reject(id, event);

	if (conn->passive) {
		kdapl_conn_end(conn,
			       DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		return;
	}
	if (peer)
		kdapl_conn_private_data(&conn->final,
					event->param.conn.private_data,
					event->param.conn.private_data_len);
	kdapl_conn_end(conn, peer ? DAT_CONNECTION_EVENT_PEER_REJECTED :
				    DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

/* The address or route is known, or the peer has answered: take the next step. */
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
		/* The driver gets the answer, and data, before we do. */
		WRITE_ONCE(conn->dialled, conn->ep->obj.ia->iwarp);
		mutex_lock(&conn->dial);
		err = rdma_connect_locked(id, &param);
		mutex_unlock(&conn->dial);
		return err;
	default:
		kdapl_conn_private_data(&conn->established,
					event->param.conn.private_data,
					event->param.conn.private_data_len);
		WRITE_ONCE(conn->rts, true);
		err = kdapl_qp_to_rts(conn->ep, id, NULL);
		if (err)
			rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
		else
			err = rdma_accept(id, NULL);
		if (!err)
			kdapl_conn_established(conn);
		return err;
	}
}

DAT_EVENT_NUMBER kdapl_conn_failure(struct kdapl_conn *conn, int err)
{
	if (conn->passive)
		return DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
	switch (err) {
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -ETIMEDOUT:
	case -EADDRNOTAVAIL:
		return DAT_CONNECTION_EVENT_UNREACHABLE;
	default:
		return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
	}
}

static void kdapl_conn_lost(struct kdapl_conn *conn)
{
	switch (READ_ONCE(conn->ep->state)) {
	case DAT_EP_STATE_COMPLETION_PENDING:
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		kdapl_conn_end(conn, kdapl_conn_failure(conn, -ECONNRESET));
		break;
	default:
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
}

/* Event handler of a connection's rdma_cm id. The id is never destroyed here. */
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
			kdapl_conn_end(conn, kdapl_conn_failure(conn, err));
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!conn->passive)
			kdapl_conn_private_data(&conn->established,
						event->param.conn.private_data,
						event->param.conn
							.private_data_len);
		kdapl_conn_established(conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		kdapl_conn_rejected(conn, id, event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		kdapl_conn_end(conn, kdapl_conn_failure(conn, -EHOSTUNREACH));
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		kdapl_conn_end(conn, kdapl_conn_failure(conn, -ECONNRESET));
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		kdapl_conn_lost(conn);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
		break;
	default:
		break;
	}
	memalloc_noio_restore(noio);
	return 0;
}
