// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints: creation. ep_attr.c has their attributes.
 *
 * An Endpoint depends on a Protection Zone, up to three EVDs and perhaps an SRQ.
 * Each dependency is two things: a use, which makes the free call of the other
 * object fail and ends with dat_ep_free(), and a reference, which keeps memory
 * and verbs objects until the Endpoint has been released in the background.
 */
#include "conn.h"
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "pz.h"
#include "srq.h"
#include "trace.h"

/* Has each queue that may be used an EVD, and does the device accept the SRQ's PZ? */
bool kdapl_ep_check_evds(struct kdapl_ia *ia, const struct kdapl_ep_deps *deps,
			 const DAT_EP_ATTR *attr)
{
	if (deps->srq && deps->pz && deps->pz != deps->srq->pz &&
	    kdapl_has_quirk(deps->srq->obj.ia->hca, KDAPL_QUIRK_SRQ_ONE_PZ)) {
		trace_kdapl_refused(ia, "pz_handle", 0, 0, "the adapter wants that of the SRQ");
		return false;
	}
	if (!deps->recv_evd && !deps->srq && attr->max_recv_dtos) {
		trace_kdapl_refused(ia, "max_recv_dtos", attr->max_recv_dtos, 0,
				    "0 without recv_evd_handle");
		return false;
	}
	if (!deps->req_evd && attr->max_request_dtos) {
		trace_kdapl_refused(ia, "max_request_dtos", attr->max_request_dtos, 0,
				    "0 without request_evd_handle");
		return false;
	}
	return true;
}

/* Set the handles that dat_ep_query() returns to those of @deps. */
void kdapl_ep_show(struct kdapl_ep *ep, const struct kdapl_ep_deps *deps)
{
	ep->shown = (struct kdapl_ep_shown) {
		.pz = deps->pz ? kdapl_handle(&deps->pz->obj) : NULL,
		.recv_evd = deps->recv_evd ? kdapl_handle(&deps->recv_evd->obj) : NULL,
		.req_evd = deps->req_evd ? kdapl_handle(&deps->req_evd->obj) : NULL,
		.conn_evd = deps->conn_evd ? kdapl_handle(&deps->conn_evd->obj) : NULL,
	};
}

static void kdapl_ep_release(struct kdapl_obj *obj)
{
	struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);

	kdapl_async_withdraw(&ep->soft_event);
	if (ep->conn)
		kdapl_conn_put(ep->conn);
	if (ep->spare)
		kdapl_conn_put(ep->spare);
	kdapl_ring_free(&ep->sq);
	kdapl_ring_free(&ep->rq);
	if (ep->pz)
		kdapl_obj_put(&ep->pz->obj);
	if (ep->recv_evd)
		kdapl_obj_put(&ep->recv_evd->obj);
	if (ep->req_evd)
		kdapl_obj_put(&ep->req_evd->obj);
	if (ep->conn_evd)
		kdapl_obj_put(&ep->conn_evd->obj);
	if (ep->srq)
		kdapl_obj_put(&ep->srq->obj);
	kdapl_obj_free(obj);
}

static DAT_RETURN kdapl_ep_obj_free(struct kdapl_obj *obj)
{
	return kdapl_ep_free(container_of(obj, struct kdapl_ep, obj), 0);
}

static void kdapl_ep_obj_stop(struct kdapl_obj *obj, bool wait)
{
	kdapl_ep_stop(container_of(obj, struct kdapl_ep, obj), wait);
}

static void kdapl_ep_init(struct kdapl_obj *obj)
{
	struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);

	/* Zeroed memory is an Endpoint in state UNCONNECTED. */
	static_assert(DAT_EP_STATE_UNCONNECTED == 0);

	mutex_init(&ep->mutex);
	init_completion(&ep->last_wqe);
	spin_lock_init(&ep->lock);
	spin_lock_init(&ep->sq.lock);
	spin_lock_init(&ep->rq.lock);
	INIT_LIST_HEAD(&ep->conn_events);
	INIT_LIST_HEAD(&ep->at_hand);
	INIT_LIST_HEAD(&ep->parked);
	INIT_LIST_HEAD(&ep->srq_link);
	INIT_HLIST_NODE(&ep->leaving_link);
	kdapl_async_init(&ep->soft_event, &ep->obj,
			 DAT_ASYNC_EP_SOFT_HIGH_WATERMARK,
			 DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
}

static const struct kdapl_obj_ops kdapl_ep_ops = {
	.init = kdapl_ep_init,
	.release = kdapl_ep_release,
	.free = kdapl_ep_obj_free,
	.stop = kdapl_ep_obj_stop,
};

/* Allocate the rings of an Endpoint with these attributes, with an SRQ or without. */
int kdapl_ep_make_rings(struct kdapl_ia *ia, struct kdapl_ring *sq,
			struct kdapl_ring *rq, const DAT_EP_ATTR *attr, bool srq)
{
	/* The sink of a Read may be an RMR, whatever max_rdma_read_iov is. */
	u32 sink = ia->hca->dma_syncs ? max(attr->max_rdma_read_iov, 1) : 0;
	u32 niov = srq ? 0 : attr->max_recv_iov;
	u32 nlmr = max3(attr->max_request_iov, attr->max_rdma_read_iov,
			attr->max_rdma_write_iov);

	return kdapl_ring_prepare(sq, attr->max_request_dtos, sink,
				  max(nlmr, sink)) ?:
	       kdapl_ring_prepare(rq, srq ? 0 : attr->max_recv_dtos, niov,
				  niov);
}

/**
 * kdapl_ep_alloc - allocate an Endpoint; its handle is not valid yet
 * @ia: the IA
 * @deps: its dependencies; on success the new object owns the references
 * @attr: checked attributes
 * @err: errno on failure
 *
 * Return: the Endpoint, or NULL
 */
struct kdapl_ep *kdapl_ep_alloc(struct kdapl_ia *ia,
				const struct kdapl_ep_deps *deps,
				const DAT_EP_ATTR *attr, int *err)
{
	struct kdapl_ep *ep;

	ep = kdapl_obj_alloc(sizeof(*ep), DAT_HANDLE_TYPE_EP, ia, &kdapl_ep_ops);
	*err = PTR_ERR_OR_ZERO(ep);
	if (*err)
		return NULL;
	ep->attr = *attr;
	ep->soft_asked = attr->srq_soft_hw;
	ep->comm.domain = AF_INET;
	ep->comm.type = SOCK_STREAM;
	ep->comm.protocol = IPPROTO_TCP;
	ep->soft = DAT_WATERMARK_INFINITE;
	ep->hard = DAT_WATERMARK_INFINITE;
	ep->mark = U32_MAX;

	*err = kdapl_ep_make_rings(ia, &ep->sq, &ep->rq, attr, deps->srq);
	ep->spare = kdapl_conn_alloc_spare(ep);
	if (!*err && !ep->spare)
		*err = -ENOMEM;
	if (!*err && deps->srq && deps->recv_evd)
		*err = kdapl_srq_add_evd(deps->srq, deps->recv_evd);
	if (*err) {
		kdapl_obj_put(&ep->obj);
		return NULL;
	}
	ep->pz = deps->pz;
	ep->recv_evd = deps->recv_evd;
	ep->req_evd = deps->req_evd;
	ep->conn_evd = deps->conn_evd;
	ep->srq = deps->srq;
	kdapl_ep_show(ep, deps);
	ep->recv_no_upcall = !!(attr->recv_completion_flags &
			    DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	ep->rq.unsignalled = !!(attr->recv_completion_flags &
				DAT_COMPLETION_UNSIGNALLED_FLAG);
	return ep;
}

static bool kdapl_evd_carries(struct kdapl_evd *evd, DAT_EVD_FLAGS flag)
{
	return !evd || evd->flags & flag;
}

/* Drop the dependencies that dat_ep_modify() can change: all but the SRQ. */
void kdapl_deps_put(const struct kdapl_ep_deps *deps)
{
	if (deps->pz)
		kdapl_dep_put(&deps->pz->obj);
	if (deps->recv_evd)
		kdapl_dep_put(&deps->recv_evd->obj);
	if (deps->req_evd)
		kdapl_dep_put(&deps->req_evd->obj);
	if (deps->conn_evd)
		kdapl_dep_put(&deps->conn_evd->obj);
}

/* Resolve the handles into @deps. On failure the caller drops those resolved so far. */
static DAT_RETURN kdapl_deps_get(struct kdapl_ia *ia, DAT_PZ_HANDLE pz,
				 DAT_EVD_HANDLE recv, DAT_EVD_HANDLE req,
				 DAT_EVD_HANDLE conn, DAT_SRQ_HANDLE srq,
				 bool with_srq, struct kdapl_ep_deps *deps)
{
	if (pz) {
		deps->pz = kdapl_dep_get(pz, DAT_HANDLE_TYPE_PZ, ia);
		if (!deps->pz)
			return DAT_ERROR(DAT_INVALID_HANDLE,
					 DAT_INVALID_HANDLE_PZ);
	}
	if (recv) {
		deps->recv_evd = kdapl_dep_get(recv, DAT_HANDLE_TYPE_EVD, ia);
		if (!deps->recv_evd ||
		    !kdapl_evd_carries(deps->recv_evd, DAT_EVD_DTO_FLAG))
			return DAT_ERROR(DAT_INVALID_HANDLE,
					 DAT_INVALID_HANDLE_EVD_RECV);
	}
	if (req) {
		deps->req_evd = kdapl_dep_get(req, DAT_HANDLE_TYPE_EVD, ia);
		if (!deps->req_evd ||
		    !kdapl_evd_carries(deps->req_evd, DAT_EVD_DTO_FLAG))
			return DAT_ERROR(DAT_INVALID_HANDLE,
					 DAT_INVALID_HANDLE_EVD_REQUEST);
	}
	if (conn) {
		deps->conn_evd = kdapl_dep_get(conn, DAT_HANDLE_TYPE_EVD, ia);
		if (!deps->conn_evd ||
		    !kdapl_evd_carries(deps->conn_evd,
				       DAT_EVD_CONNECTION_FLAG))
			return DAT_ERROR(DAT_INVALID_HANDLE,
					 DAT_INVALID_HANDLE_EVD_CONN);
	}
	if (with_srq) {
		deps->srq = kdapl_dep_get(srq, DAT_HANDLE_TYPE_SRQ, ia);
		if (!deps->srq)
			return DAT_ERROR(DAT_INVALID_HANDLE,
					 DAT_INVALID_HANDLE_SRQ);
	}
	return DAT_SUCCESS;
}

/* Have the EVDs carry the streams of an Endpoint, if those of others allow it. */
static DAT_RETURN kdapl_ep_add_streams(struct kdapl_ia *ia, const struct kdapl_ep_deps *deps,
				       const DAT_EP_ATTR *attr)
{
	lockdep_assert_held(&kdapl_streams_lock);

	if (!kdapl_evd_add_stream(deps->recv_evd, attr->recv_completion_flags)) {
		trace_kdapl_refused(ia, "recv_completion_flags", attr->recv_completion_flags, 0,
				    "those of the other streams of recv_evd_handle");
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	}
	if (!kdapl_evd_add_stream(deps->req_evd, attr->request_completion_flags)) {
		kdapl_evd_del_stream(deps->recv_evd, attr->recv_completion_flags);
		trace_kdapl_refused(ia, "request_completion_flags",
				    attr->request_completion_flags, 0,
				    "those of the other streams of request_evd_handle");
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	}
	return DAT_SUCCESS;
}

/* Create an Endpoint. @filled: the members of @attr for which the consumer gave 0 */
static DAT_RETURN kdapl_ep_make(struct kdapl_ia *ia,
				struct kdapl_ep_deps *deps,
				const DAT_EP_ATTR *attr, u16 filled,
				DAT_EP_HANDLE *handle)
{
	struct kdapl_ep *ep;
	DAT_RETURN ret;
	int err;

	mutex_lock(&kdapl_streams_lock);
	ret = kdapl_ep_add_streams(ia, deps, attr);
	mutex_unlock(&kdapl_streams_lock);
	if (ret != DAT_SUCCESS)
		return ret;
	ep = kdapl_ep_alloc(ia, deps, attr, &err);
	if (!ep) {
		kdapl_evd_del_stream(deps->recv_evd,
				     attr->recv_completion_flags);
		kdapl_evd_del_stream(deps->req_evd,
				     attr->request_completion_flags);
		return kdapl_errno_to_dat(err);
	}
	ep->attr_filled = filled;
	kdapl_ep_initial_mark(ep);
	*handle = kdapl_handle(&ep->obj);
	kdapl_obj_publish(&ep->obj);
	return DAT_SUCCESS;
}

static DAT_RETURN kdapl_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz,
				  DAT_EVD_HANDLE recv, DAT_EVD_HANDLE req,
				  DAT_EVD_HANDLE conn, DAT_SRQ_HANDLE srq,
				  bool with_srq, const DAT_EP_ATTR *ep_attr,
				  DAT_EP_HANDLE *ep_handle)
{
	int arg = with_srq ? DAT_INVALID_ARG7 : DAT_INVALID_ARG6;
	struct kdapl_ep_deps deps = { };
	struct kdapl_ia *ia;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;
	u16 filled;

	might_sleep();
	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = kdapl_deps_get(ia, pz, recv, req, conn, srq, with_srq, &deps);
	if (ret != DAT_SUCCESS)
		goto out;
	if (ep_attr)
		attr = *ep_attr;
	else
		kdapl_ep_default_attr(ia, &attr);
	if ((with_srq && !ep_attr) ||
	    !kdapl_ep_check_attr(ia, &attr, with_srq) ||
	    !kdapl_ep_check_evds(ia, &deps, &attr)) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, arg);
		goto out;
	}
	if (!ep_handle) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, arg + 1);
		goto out;
	}
	filled = kdapl_ep_fill_attr(ia, &attr, with_srq);
	if (kdapl_hca_enter(ia->hca)) {
		ret = kdapl_ep_make(ia, &deps, &attr, filled, ep_handle);
		kdapl_hca_leave(ia->hca);
	} else {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
	}
out:
	if (ret != DAT_SUCCESS) {
		kdapl_deps_put(&deps);
		if (deps.srq)
			kdapl_dep_put(&deps.srq->obj);
	}
	kdapl_obj_put(&ia->obj);
	return ret;
}

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			 DAT_EVD_HANDLE recv_completion_evd_handle,
			 DAT_EVD_HANDLE request_completion_evd_handle,
			 DAT_EVD_HANDLE connect_evd_handle,
			 const DAT_EP_ATTR *ep_attributes,
			 DAT_EP_HANDLE *ep_handle)
{
	return kdapl_ep_create(ia_handle, pz_handle, recv_completion_evd_handle,
			       request_completion_evd_handle,
			       connect_evd_handle, NULL, false, ep_attributes,
			       ep_handle);
}
EXPORT_SYMBOL(dat_ep_create);

DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle,
				  DAT_PZ_HANDLE pz_handle,
				  DAT_EVD_HANDLE recv_evd_handle,
				  DAT_EVD_HANDLE request_evd_handle,
				  DAT_EVD_HANDLE connect_evd_handle,
				  DAT_SRQ_HANDLE srq_handle,
				  const DAT_EP_ATTR *ep_attributes,
				  DAT_EP_HANDLE *ep_handle)
{
	return kdapl_ep_create(ia_handle, pz_handle, recv_evd_handle,
			       request_evd_handle, connect_evd_handle,
			       srq_handle, true, ep_attributes, ep_handle);
}
EXPORT_SYMBOL(dat_ep_create_with_srq);
