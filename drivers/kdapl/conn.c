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
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include "kdapl.h"
#include "trace.h"

#define KDAPL_RESOLVE_MS	5000

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

static void kdapl_conn_down(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(work, struct kdapl_conn, down);
	struct kdapl_ep *ep = conn->ep;

	/* An attempt that is given up may hang in its transport for long. */
	if (conn->given_up)
		kdapl_conn_report(conn, &conn->final, conn->end);

	mutex_lock(&conn->mutex);
	cancel_delayed_work_sync(&conn->timer);
	if (conn->id) {
		rdma_disconnect(conn->id);
		kdapl_qp_error(ep);
		rdma_destroy_id(conn->id);
		conn->id = NULL;
	}
	kdapl_qp_destroy(ep);
	mutex_unlock(&conn->mutex);

	if (!conn->given_up)
		kdapl_conn_report(conn, &conn->final, conn->end);
	complete_all(&conn->gone);
	kdapl_obj_put(&ep->obj);
	kdapl_conn_put(conn);
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
	struct kdapl_ep *ep = conn->ep;
	unsigned long flags;
	bool won = false;

	spin_lock_irqsave(&ep->lock, flags);
	if (ep->conn == conn && !conn->end) {
		conn->end = end;
		conn->given_up = ep->state ==
				 DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
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

	if (READ_ONCE(conn->ep->state) ==
	    DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_TIMED_OUT);
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
	kdapl_ep_open(ep);
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
		return rdma_connect_locked(id, &param);
	default:
		kdapl_conn_private_data(&conn->established,
					event->param.conn.private_data,
					event->param.conn.private_data_len);
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

static DAT_EVENT_NUMBER kdapl_conn_failure(struct kdapl_conn *conn, int err)
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
	return 0;
}

/* DAT quality of service as an IP type of service. */
static u8 kdapl_qos_tos(DAT_QOS qos)
{
	if (qos & DAT_QOS_PREMIUM)
		return 0xb8;		/* expedited forwarding */
	if (qos & DAT_QOS_LOW_LATENCY)
		return 0x10;
	if (qos & DAT_QOS_HIGH_THROUGHPUT)
		return 0x08;
	if (qos & DAT_QOS_ECONOMY)
		return 0x20;		/* class selector 1 */
	return 0;
}

static int kdapl_conn_bind(struct kdapl_conn *conn,
			   const struct sockaddr *local, DAT_QOS qos)
{
	struct kdapl_ia *ia = conn->ep->obj.ia;
	struct rdma_cm_id *id;
	int err;

	id = __rdma_create_kernel_id(&init_net, kdapl_conn_handler, conn,
				     RDMA_PS_TCP, IB_QPT_RC, ia->owner);
	if (IS_ERR(id))
		return PTR_ERR(id);
	err = rdma_bind_addr(id, (struct sockaddr *)local);
	if (!err && id->device != ia->hca->dev)
		err = -EADDRNOTAVAIL;
	if (err) {
		rdma_destroy_id(id);
		return err;
	}
	if (qos != DAT_QOS_BEST_EFFORT)
		rdma_set_service_type(id, kdapl_qos_tos(qos));
	rdma_set_min_rnr_timer(id, KDAPL_MIN_RNR_TIMER);
	conn->id = id;
	return 0;
}

/*
 * struct kdapl_connect - arguments of the connect calls
 * @addr: peer, with the port
 * @timeout: microseconds
 */
struct kdapl_connect {
	struct sockaddr_storage addr;
	DAT_TIMEOUT timeout;
	DAT_COUNT pd_size;
	const void *pd;
	DAT_QOS qos;
	DAT_CONNECT_FLAGS flags;
};

static DAT_RETURN kdapl_connect_ready(struct kdapl_ep *ep)
{
	if (READ_ONCE(ep->state) != DAT_EP_STATE_UNCONNECTED)
		return kdapl_ep_state_error(ep->state);
	return kdapl_ep_complete(ep);
}

/* What an Endpoint needs to be connected. */
DAT_RETURN kdapl_ep_complete(struct kdapl_ep *ep)
{
	if (!ep->pz)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PZ);
	if (!ep->conn_evd)
		return DAT_ERROR(DAT_INVALID_STATE,
				 DAT_INVALID_STATE_EP_EVD_CONNECT);
	if (!ep->recv_evd && ep->srq)
		return DAT_ERROR(DAT_INVALID_STATE,
				 DAT_INVALID_STATE_EP_EVD_RECV);
	return DAT_SUCCESS;
}

static DAT_RETURN kdapl_connect_start(struct kdapl_ep *ep,
				      struct kdapl_conn *conn,
				      struct kdapl_connect *args)
{
	struct kdapl_ia *ia = ep->obj.ia;
	const struct sockaddr *local;
	int err;

	local = kdapl_ia_local_addr(ia, (struct sockaddr *)&args->addr);
	if (!local)
		return DAT_ERROR(DAT_INVALID_ADDRESS,
				 DAT_INVALID_ADDRESS_UNREACHABLE);
	err = kdapl_conn_bind(conn, local, args->qos | ep->attr.qos);
	if (err)
		return kdapl_errno_to_dat(err);
	err = kdapl_qp_create(ep, conn->id);
	if (err)
		goto err_id;
	conn->pd_len = args->pd_size;
	memcpy(conn->pd, args->pd, args->pd_size);
	ep->remote_addr = args->addr;
	ep->connect_flags = args->flags;
	if (!kdapl_ep_join(ep, conn, BIT(DAT_EP_STATE_UNCONNECTED),
			   DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)) {
		/* Freed meanwhile. */
		kdapl_qp_undo(ep);
		rdma_destroy_id(conn->id);
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	kdapl_qp_start(ep);
	/* From here on the outcome is an event. */
	if (args->timeout != DAT_TIMEOUT_INFINITE)
		queue_delayed_work(kdapl_wq, &conn->timer,
				   usecs_to_jiffies(args->timeout));
	err = rdma_resolve_addr(conn->id, NULL, (struct sockaddr *)&args->addr,
				KDAPL_RESOLVE_MS);
	if (err)
		kdapl_conn_end(conn, kdapl_conn_failure(conn, -EHOSTUNREACH));
	return DAT_SUCCESS;

err_id:
	rdma_destroy_id(conn->id);
	return kdapl_errno_to_dat(err);
}

static DAT_RETURN kdapl_connect(struct kdapl_ep *ep,
				struct kdapl_connect *args)
{
	struct kdapl_hca *hca = ep->obj.ia->hca;
	struct kdapl_conn *conn;
	DAT_RETURN ret;

	if (!kdapl_hca_enter(hca))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_DEVICE);
	mutex_lock(&ep->mutex);
	ret = kdapl_connect_ready(ep);
	if (ret != DAT_SUCCESS)
		goto out;
	conn = kdapl_conn_alloc(ep);
	if (!conn) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_MEMORY);
		goto out;
	}
	kref_get(&conn->ref);
	mutex_lock(&conn->mutex);
	ret = kdapl_connect_start(ep, conn, args);
	mutex_unlock(&conn->mutex);
	if (ret != DAT_SUCCESS)
		kdapl_conn_put(conn);
	kdapl_conn_put(conn);
out:
	mutex_unlock(&ep->mutex);
	kdapl_hca_leave(hca);
	return ret;
}

/* Is this an address we can connect to? Copies it, with the port. */
static DAT_RETURN kdapl_connect_addr(struct kdapl_connect *args,
				     DAT_IA_ADDRESS_PTR addr, __be16 port)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&args->addr;
	struct sockaddr_in *in = (struct sockaddr_in *)&args->addr;

	if (!addr)
		return DAT_ERROR(DAT_INVALID_ADDRESS,
				 DAT_INVALID_ADDRESS_MALFORMED);
	switch (addr->sa_family) {
	case AF_INET:
		memcpy(in, addr, sizeof(*in));
		if (port)
			in->sin_port = port;
		return DAT_SUCCESS;
	case AF_INET6:
		memcpy(in6, addr, sizeof(*in6));
		if (port)
			in6->sin6_port = port;
		return DAT_SUCCESS;
	default:
		return DAT_ERROR(DAT_INVALID_ADDRESS,
				 DAT_INVALID_ADDRESS_UNSUPPORTED);
	}
}

/* Check what all connect calls have; @arg is the position of the timeout. */
static DAT_RETURN kdapl_connect_check(struct kdapl_ep *ep,
				      const struct kdapl_connect *args, int arg)
{
	if (!args->timeout)
		return DAT_ERROR(DAT_INVALID_PARAMETER, arg);
	if (args->pd_size < 0 ||
	    args->pd_size > kdapl_max_private_data(ep->obj.ia))
		return DAT_ERROR(DAT_INVALID_PARAMETER, arg + 1);
	if (args->pd_size && !args->pd)
		return DAT_ERROR(DAT_INVALID_PARAMETER, arg + 2);
	if (args->qos != DAT_QOS_BEST_EFFORT)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	switch (args->flags) {
	case DAT_CONNECT_DEFAULT_FLAG:
	case DAT_CONNECT_MULTIPATH_REQUESTED_FLAG:
		/* Asked for, and there is one path. */
		return DAT_SUCCESS;
	case DAT_CONNECT_MULTIPATH_REQUIRED_FLAG:
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	default:
		return DAT_ERROR(DAT_INVALID_PARAMETER, arg + 4);
	}
}

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle,
			  DAT_IA_ADDRESS_PTR remote_ia_address,
			  DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
			  DAT_COUNT private_data_size,
			  const DAT_PVOID private_data,
			  DAT_QOS quality_of_service,
			  DAT_CONNECT_FLAGS connect_flags)
{
	struct kdapl_connect args = {
		.timeout = timeout, .pd_size = private_data_size,
		.pd = private_data, .qos = quality_of_service,
		.flags = connect_flags,
	};
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	might_sleep();
	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!remote_conn_qual || remote_conn_qual > U16_MAX) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		goto out;
	}
	ret = kdapl_connect_addr(&args, remote_ia_address,
				 htons(remote_conn_qual));
	if (ret == DAT_SUCCESS)
		ret = kdapl_connect_check(ep, &args, DAT_INVALID_ARG4);
	if (ret == DAT_SUCCESS)
		ret = kdapl_connect(ep, &args);
out:
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_connect);

DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep_handle,
				 DAT_IA_ADDRESS_PTR remote_ia_address,
				 DAT_TIMEOUT timeout,
				 DAT_COUNT private_data_size,
				 const DAT_PVOID private_data)
{
	struct kdapl_connect args = {
		.timeout = timeout, .pd_size = private_data_size,
		.pd = private_data, .qos = DAT_QOS_BEST_EFFORT,
		.flags = DAT_CONNECT_DEFAULT_FLAG,
	};
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	might_sleep();
	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ret = kdapl_connect_addr(&args, remote_ia_address, 0);
	/* The socket address says it all: family as in comm, and the port. */
	if (ret == DAT_SUCCESS && args.addr.ss_family != ep->comm.domain)
		ret = DAT_ERROR(DAT_INVALID_ADDRESS,
				DAT_INVALID_ADDRESS_UNSUPPORTED);
	if (ret == DAT_SUCCESS && !kdapl_addr_port(&args.addr))
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (ret == DAT_SUCCESS)
		ret = kdapl_connect_check(ep, &args, DAT_INVALID_ARG3);
	if (ret == DAT_SUCCESS)
		ret = kdapl_connect(ep, &args);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_common_connect);

DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle,
			      DAT_EP_HANDLE ep_dup_handle, DAT_TIMEOUT timeout,
			      DAT_COUNT private_data_size,
			      const DAT_PVOID private_data,
			      DAT_QOS quality_of_service)
{
	struct kdapl_connect args = {
		.timeout = timeout, .pd_size = private_data_size,
		.pd = private_data, .qos = quality_of_service,
	};
	struct kdapl_ep *ep, *dup;
	unsigned long flags;
	DAT_RETURN ret;

	might_sleep();
	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dup = kdapl_obj_get(ep_dup_handle, DAT_HANDLE_TYPE_EP);
	if (!dup) {
		kdapl_obj_put(&ep->obj);
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE2);
	}
	spin_lock_irqsave(&dup->lock, flags);
	ret = dup->state == DAT_EP_STATE_CONNECTED ?
		DAT_SUCCESS : kdapl_ep_state_error(dup->state);
	args.addr = dup->remote_addr;
	args.flags = dup->connect_flags;
	spin_unlock_irqrestore(&dup->lock, flags);
	if (ret == DAT_SUCCESS)
		ret = kdapl_connect_check(ep, &args, DAT_INVALID_ARG3);
	if (ret == DAT_SUCCESS)
		ret = kdapl_connect(ep, &args);
	kdapl_obj_put(&dup->obj);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_dup_connect);

/* No more requests; the connection ends when those posted have completed. */
static void kdapl_disconnect_gracefully(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool idle;

	spin_lock_irqsave(&ep->lock, flags);
	if (ep->state == DAT_EP_STATE_CONNECTED)
		WRITE_ONCE(ep->state, DAT_EP_STATE_DISCONNECT_PENDING);
	spin_unlock_irqrestore(&ep->lock, flags);
	/* A post that saw the old state is in the ring after this. */
	spin_lock_irqsave(&ep->sq.lock, flags);
	idle = ep->sq.head == READ_ONCE(ep->sq.done);
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	/* If not, the last completion will find the state changed. */
	if (!idle && ep->req_evd) {
		kdapl_cq_look(ep->req_evd);
		idle = READ_ONCE(ep->sq.head) == READ_ONCE(ep->sq.done);
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
		break;
	default:
		ret = kdapl_ep_state_error(state);
	}
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_disconnect);
