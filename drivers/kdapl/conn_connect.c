// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The calls that connect an Endpoint.
 *
 * Connecting binds an id to an address of the IA, creates the QP and starts to
 * resolve the peer's address; conn.c takes the next steps as events arrive. Errors
 * up to this point are returned, later ones are reported by an event.
 * ep->mutex and conn->mutex are held meanwhile.
 */
#include "addr.h"
#include "conn.h"
#include "dto.h"
#include "ep.h"
#include "ia.h"

/* Return the IP type of service for a DAT quality of service. */
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
			   struct sockaddr_storage *local, DAT_QOS qos)
{
	struct kdapl_ia *ia = conn->ep->obj.ia;
	struct rdma_cm_id *id;
	int err;

	id = __rdma_create_kernel_id(&init_net, kdapl_conn_handler, conn,
				     RDMA_PS_TCP, IB_QPT_RC, ia->consumer);
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
 * @addr: address and port of the peer
 * @common: the family of @addr must be that of ep->comm
 * @timeout: microseconds
 */
struct kdapl_connect {
	struct sockaddr_storage addr;
	bool common;
	DAT_TIMEOUT timeout;
	DAT_COUNT pd_size;
	const void *pd;
	DAT_QOS qos;
	DAT_CONNECT_FLAGS flags;
};

static DAT_RETURN kdapl_connect_ready(struct kdapl_ep *ep,
				      const struct kdapl_connect *args)
{
	/* The mutex keeps an Endpoint that is UNCONNECTED in this state. */
	DAT_EP_STATE state = READ_ONCE(ep->state);

	lockdep_assert_held(&ep->mutex);

	if (state != DAT_EP_STATE_UNCONNECTED)
		return kdapl_ep_state_error(state);
	if (args->common && args->addr.ss_family != ep->comm.domain)
		return DAT_ERROR(DAT_INVALID_ADDRESS,
				 DAT_INVALID_ADDRESS_UNSUPPORTED);
	return kdapl_ep_check_ready(ep);
}

/* Has @ep all that a connection needs? */
DAT_RETURN kdapl_ep_check_ready(struct kdapl_ep *ep)
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
	struct sockaddr_storage local;
	unsigned long flags;
	int err;

	err = kdapl_ia_local_addr(ia, (struct sockaddr *)&args->addr, &local);
	if (err)
		return kdapl_errno_to_dat(err);
	err = kdapl_conn_bind(conn, &local, args->qos | ep->attr.qos);
	if (err)
		return kdapl_errno_to_dat(err);
	err = kdapl_qp_create(ep, conn->id);
	if (err)
		goto err_id;
	conn->pd_len = args->pd_size;
	memcpy(conn->pd, args->pd, args->pd_size);
	spin_lock_irqsave(&ep->lock, flags);
	ep->local_addr = conn->id->route.addr.src_addr;
	ep->remote_addr = args->addr;
	spin_unlock_irqrestore(&ep->lock, flags);
	ep->connect_flags = args->flags;
	if (!kdapl_ep_join(ep, conn, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)) {
		/* dat_ep_free() ran concurrently. */
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
		kdapl_conn_end(conn, kdapl_conn_failure(conn, -EHOSTUNREACH),
			       KDAPL_END_UNREACHABLE);
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
	kdapl_ep_settle(ep);
	ret = kdapl_connect_ready(ep, args);
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

/* Copy the peer's address, with @port if it is not 0, if its family is known. */
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

/*
 * Check private data to be sent. @arg is the position of the size argument; the data
 * argument follows.
 */
DAT_RETURN kdapl_check_private_data(struct kdapl_ia *ia, DAT_COUNT size,
				    const void *data, int arg)
{
	if (size < 0 || size > kdapl_max_private_data(ia))
		return DAT_ERROR(DAT_INVALID_PARAMETER, arg);
	if (size && !data)
		return DAT_ERROR(DAT_INVALID_PARAMETER, arg + 1);
	return DAT_SUCCESS;
}

/*
 * Check the arguments common to all connect calls, and connect. @arg is the position of the
 * timeout.
 */
static DAT_RETURN kdapl_connect_checked(struct kdapl_ep *ep, struct kdapl_connect *args,
					int arg)
{
	DAT_RETURN ret;

	if (!args->timeout)
		return DAT_ERROR(DAT_INVALID_PARAMETER, arg);
	ret = kdapl_check_private_data(ep->obj.ia, args->pd_size, args->pd,
				       arg + 1);
	if (ret != DAT_SUCCESS)
		return ret;
	if (args->qos & ~KDAPL_QOS_ALL)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	switch (args->flags) {
	case DAT_CONNECT_DEFAULT_FLAG:
	case DAT_CONNECT_MULTIPATH_REQUESTED_FLAG:
		/* Requested is not required: there is one path. */
		return kdapl_connect(ep, args);
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
		ret = kdapl_connect_checked(ep, &args, DAT_INVALID_ARG4);
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
		.common = true, .timeout = timeout,
		.pd_size = private_data_size, .pd = private_data,
		.qos = DAT_QOS_BEST_EFFORT, .flags = DAT_CONNECT_DEFAULT_FLAG,
	};
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	might_sleep();
	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ret = kdapl_connect_addr(&args, remote_ia_address, 0);
	/* The port is part of the address. */
	if (ret == DAT_SUCCESS && !kdapl_addr_port(&args.addr))
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (ret == DAT_SUCCESS)
		ret = kdapl_connect_checked(ep, &args, DAT_INVALID_ARG3);
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
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	dup = kdapl_obj_get(ep_dup_handle, DAT_HANDLE_TYPE_EP);
	if (!dup) {
		kdapl_obj_put(&ep->obj);
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	spin_lock_irqsave(&dup->lock, flags);
	ret = dup->state == DAT_EP_STATE_CONNECTED ?
		DAT_SUCCESS : kdapl_ep_state_error(dup->state);
	args.addr = dup->remote_addr;
	args.flags = dup->connect_flags;
	spin_unlock_irqrestore(&dup->lock, flags);
	if (ret == DAT_SUCCESS)
		ret = kdapl_connect_checked(ep, &args, DAT_INVALID_ARG3);
	/* An unusable address came from @dup, the consumer passed none. */
	if (DAT_GET_TYPE(ret) == DAT_INVALID_ADDRESS)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	kdapl_obj_put(&dup->obj);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_dup_connect);
