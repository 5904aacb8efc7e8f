// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connection Requests.
 *
 * A request owns the rdma_cm id that came with it until it is accepted, rejected,
 * handed to another service point, or given up by the peer. Whoever takes the
 * handle out of the table (kdapl_obj_unpublish()) decides which of these it is;
 * everybody else finds no request any more.
 */
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include "kdapl.h"
#include "trace.h"

/*
 * Requests may wait beyond the length of the EVD, but peers must not fill our
 * memory: with so many more, the backlog is full.
 */
#define KDAPL_CR_SURPLUS 128

static void kdapl_cr_release(struct kdapl_obj *obj)
{
	struct kdapl_cr *cr = container_of(obj, struct kdapl_cr, obj);

	if (cr->ep)
		kdapl_obj_put(&cr->ep->obj);
	kdapl_obj_put(&cr->sp->obj);
	kdapl_obj_free(obj);
}

/*
 * The Endpoint that came with a request is not going to be connected. That of an
 * RSP gets the state @then.
 */
static void kdapl_cr_return_ep(struct kdapl_cr *cr, DAT_EP_STATE then)
{
	struct kdapl_ep *ep = cr->ep;
	unsigned long flags;

	if (!ep)
		return;
	if (ep->provider_owned) {
		kdapl_ep_free(ep);
		return;
	}
	spin_lock_irqsave(&ep->lock, flags);
	if (ep->state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING) {
		/* The RSP may be gone. */
		if (ep->rsp != cr->sp)
			then = DAT_EP_STATE_UNCONNECTED;
		WRITE_ONCE(ep->state, then);
		memset(&ep->local_addr, 0, sizeof(ep->local_addr));
		memset(&ep->remote_addr, 0, sizeof(ep->remote_addr));
	}
	spin_unlock_irqrestore(&ep->lock, flags);
}

static void kdapl_cr_drop_ep(struct kdapl_cr *cr)
{
	kdapl_cr_return_ep(cr, DAT_EP_STATE_UNCONNECTED);
}

/* Take the event back if it was not reaped. */
static bool kdapl_cr_withdraw(struct kdapl_cr *cr)
{
	struct kdapl_evd *evd = cr->sp->evd;
	bool queued;
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	queued = cr->ev.queued;
	if (queued)
		kdapl_evd_remove(evd, &cr->ev);
	spin_unlock_irqrestore(&evd->lock, flags);
	if (queued) {
		atomic_dec(&cr->sp->pending);
		kdapl_obj_put(&cr->obj);
	}
	return queued;
}

/* Only one caller answers a request, or voids it. */
static bool kdapl_cr_claim(struct kdapl_cr *cr)
{
	return !atomic_xchg(&cr->claimed, 1);
}

/* The handle and what it held are not needed any more. */
static void kdapl_cr_forget(struct kdapl_cr *cr)
{
	if (kdapl_obj_unpublish(&cr->obj))
		kdapl_obj_put(&cr->obj);
}

/* The answer comes too late. */
static DAT_RETURN kdapl_cr_void(struct kdapl_cr *cr)
{
	if (READ_ONCE(cr->dead))
		kdapl_cr_forget(cr);
	return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
}

/* Nobody else will use the id: the handle is out of the table. */
static void kdapl_cr_destroy_id(struct kdapl_cr *cr)
{
	mutex_lock(&cr->mutex);
	rdma_destroy_id(cr->id);
	cr->id = NULL;
	mutex_unlock(&cr->mutex);
}

static void kdapl_cr_gone(struct work_struct *work)
{
	struct kdapl_cr *cr = container_of(work, struct kdapl_cr, gone);

	kdapl_cr_destroy_id(cr);
	kdapl_cr_drop_ep(cr);
	/* If the consumer knows it, its memory stays until it answers. */
	if (kdapl_cr_withdraw(cr))
		kdapl_cr_forget(cr);
	kdapl_obj_put(&cr->obj);
}

/* The request is void: the peer gave up, or the device or the IA is leaving. */
void kdapl_cr_cancel(struct kdapl_cr *cr)
{
	if (!kdapl_cr_claim(cr))
		return;
	WRITE_ONCE(cr->dead, true);
	kref_get(&cr->obj.ref);
	queue_work(kdapl_wq, &cr->gone);
}

/* Event handler of the id of a request that nobody has answered. */
static int kdapl_cr_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		kdapl_cr_cancel(id->context);
	}
	return 0;
}

/* The Endpoint for a request on a PSP that has the provider make them. */
static struct kdapl_ep *kdapl_cr_make_ep(struct kdapl_ia *ia)
{
	const struct kdapl_ep_deps none = { };
	struct kdapl_ep *ep;
	DAT_EP_ATTR attr;
	int err;

	kdapl_ep_default_attr(ia, &attr);
	ep = kdapl_ep_alloc(ia, &none, &attr, &err);
	if (!ep)
		return NULL;
	ep->provider_owned = true;
	ep->state = DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
	kdapl_obj_publish(&ep->obj);
	return ep;
}

static struct kdapl_ep *kdapl_cr_reserved_ep(struct kdapl_sp *sp)
{
	struct kdapl_ep *ep = sp->ep;
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&ep->lock, flags);
	ok = ep->state == DAT_EP_STATE_RESERVED && ep->rsp == sp;
	if (ok)
		WRITE_ONCE(ep->state,
			   DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	spin_unlock_irqrestore(&ep->lock, flags);
	return ok ? ep : NULL;
}

/* Find the Endpoint that the kind of service point calls for. */
static bool kdapl_cr_assign_ep(struct kdapl_cr *cr, struct kdapl_sp *sp)
{
	if (sp->ep)
		cr->ep = kdapl_cr_reserved_ep(sp);
	else if (sp->flags == DAT_PSP_PROVIDER_FLAG)
		cr->ep = kdapl_cr_make_ep(sp->obj.ia);
	else
		return true;
	if (!cr->ep)
		return false;
	kref_get(&cr->ep->obj.ref);
	return true;
}

/* A new request on @sp with everything but the id and what came with it. */
static struct kdapl_cr *kdapl_cr_alloc(struct kdapl_sp *sp)
{
	struct kdapl_cr *cr;

	cr = kzalloc(sizeof(*cr), GFP_KERNEL);
	if (!cr)
		return NULL;
	if (kdapl_obj_init(&cr->obj, DAT_HANDLE_TYPE_CR, sp->obj.ia,
			   kdapl_cr_release)) {
		kfree(cr);
		return NULL;
	}
	mutex_init(&cr->mutex);
	cr->ev.kind = KDAPL_EV_CR;
	INIT_WORK(&cr->gone, kdapl_cr_gone);
	kref_get(&sp->obj.ref);
	cr->sp = sp;
	if (kdapl_cr_assign_ep(cr, sp))
		return cr;
	kdapl_obj_put(&cr->obj);
	return NULL;
}

/* The Endpoint knows its peer from now on. */
static void kdapl_cr_set_addrs(struct kdapl_cr *cr, struct kdapl_ep *ep)
{
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	ep->local_addr = cr->local;
	ep->remote_addr = cr->remote;
	spin_unlock_irqrestore(&ep->lock, flags);
}

/* Make the request known to the consumer. */
static void kdapl_cr_deliver(struct kdapl_cr *cr)
{
	if (cr->ep)
		kdapl_cr_set_addrs(cr, cr->ep);
	atomic_inc(&cr->sp->pending);
	kref_get(&cr->obj.ref);
	kdapl_obj_publish(&cr->obj);
	kdapl_evd_post(cr->sp->evd, &cr->ev);
}

/**
 * kdapl_cr_create - a peer asks for a connection
 * @sp: service point it came in on
 * @id: the new id; taken over on success
 * @event: the request
 *
 * Context: rdma_cm event handler.
 * Return: NULL if the request cannot be taken.
 */
struct kdapl_cr *kdapl_cr_create(struct kdapl_sp *sp, struct rdma_cm_id *id,
				 struct rdma_cm_event *event)
{
	struct rdma_conn_param *param = &event->param.conn;
	struct kdapl_cr *cr;

	if (atomic_read(&sp->pending) >=
	    (int)READ_ONCE(sp->evd->qlen) + KDAPL_CR_SURPLUS)
		return NULL;
	cr = kdapl_cr_alloc(sp);
	if (!cr)
		return NULL;
	cr->id = id;
	cr->local = id->route.addr.src_addr;
	cr->remote = id->route.addr.dst_addr;
	cr->responder_resources = param->responder_resources;
	cr->initiator_depth = param->initiator_depth;
	cr->pd_len = param->private_data_len;
	if (cr->pd_len)
		memcpy(cr->pd, param->private_data, cr->pd_len);
	id->context = cr;
	id->event_handler = kdapl_cr_handler;
	trace_kdapl_cr(cr);
	kdapl_cr_deliver(cr);
	return cr;
}

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle,
			DAT_CR_PARAM_MASK cr_param_mask, DAT_CR_PARAM *cr_param)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_cr *cr;

	rcu_read_lock();
	cr = kdapl_find(cr_handle, DAT_HANDLE_TYPE_CR);
	if (!cr || READ_ONCE(cr->dead)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	} else if (cr_param_mask & ~DAT_CR_FIELD_ALL) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	} else if (!cr_param) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	} else {
		cr_param->remote_ia_address_ptr = kdapl_addr_ptr(&cr->remote);
		cr_param->remote_port_qual = kdapl_addr_port(&cr->remote);
		cr_param->private_data_size = cr->pd_len;
		cr_param->private_data = cr->pd_len ? cr->pd : NULL;
		cr_param->local_ep_handle =
			cr->ep ? kdapl_handle(&cr->ep->obj) : NULL;
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_cr_query);

/* Under ep->mutex: may this Endpoint accept the request? */
static DAT_RETURN kdapl_accept_ready(struct kdapl_cr *cr, struct kdapl_ep *ep)
{
	DAT_EP_STATE state = READ_ONCE(ep->state);
	bool ok;

	if (cr->ep)
		ok = ep == cr->ep &&
		     (state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
		      state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	else
		ok = state == DAT_EP_STATE_UNCONNECTED;
	if (!ok)
		return kdapl_ep_state_error(state);
	if ((ep->attr.max_recv_dtos && !ep->recv_evd && !ep->srq) ||
	    (ep->attr.max_request_dtos && !ep->req_evd))
		return DAT_ERROR(DAT_INVALID_STATE,
				 ep->req_evd ? DAT_INVALID_STATE_EP_EVD_RECV :
					DAT_INVALID_STATE_EP_EVD_REQUEST);
	return kdapl_ep_complete(ep);
}

/*
 * Answer the request. The id's handler is locked out, so the peer cannot give up
 * half way. Errors before the request is consumed leave everything as it was.
 */
static DAT_RETURN kdapl_accept_locked(struct kdapl_cr *cr, struct kdapl_ep *ep,
				      struct kdapl_conn *conn, const void *pd,
				      u8 pd_len)
{
	u32 from = BIT(DAT_EP_STATE_UNCONNECTED) |
		   BIT(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING) |
		   BIT(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	struct rdma_conn_param param;
	int err;

	err = kdapl_qp_create(ep, cr->id);
	/* Gone already, and the event that says so is on its way. */
	if (err == -ENOTCONN)
		return kdapl_cr_void(cr);
	if (err)
		return kdapl_errno_to_dat(err);
	if (!kdapl_cr_claim(cr)) {
		kdapl_qp_undo(ep);
		return kdapl_cr_void(cr);
	}
	kdapl_cr_set_addrs(cr, ep);
	conn->passive = true;
	conn->id = cr->id;
	cr->id = NULL;
	conn->id->context = conn;
	conn->id->event_handler = kdapl_conn_handler;
	if (!kdapl_ep_join(ep, conn, from, DAT_EP_STATE_COMPLETION_PENDING)) {
		/* Freed meanwhile; the request goes with it. */
		cr->id = conn->id;
		cr->id->context = cr;
		cr->id->event_handler = kdapl_cr_handler;
		kdapl_qp_undo(ep);
		WRITE_ONCE(cr->dead, true);
		kref_get(&cr->obj.ref);
		queue_work(kdapl_wq, &cr->gone);
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	ep->provider_owned = false;
	kdapl_qp_start(ep);

	kdapl_conn_params(ep, &param, pd, pd_len);
	param.responder_resources = min(param.responder_resources,
					cr->responder_resources);
	param.initiator_depth = min(param.initiator_depth,
				    cr->initiator_depth);
	rdma_set_min_rnr_timer(conn->id, KDAPL_MIN_RNR_TIMER);
	WRITE_ONCE(conn->rts, true);
	err = kdapl_qp_to_rts(ep, conn->id, &param);
	if (err)
		rdma_reject(conn->id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
	else
		err = rdma_accept(conn->id, &param);
	if (err)
		kdapl_conn_end(conn,
			       DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	kdapl_cr_forget(cr);
	return DAT_SUCCESS;
}

static DAT_RETURN kdapl_accept(struct kdapl_cr *cr, struct kdapl_ep *ep,
			       const void *pd, u8 pd_len)
{
	struct rdma_cm_id *id;
	struct kdapl_conn *conn;
	DAT_RETURN ret;

	mutex_lock(&ep->mutex);
	ret = kdapl_accept_ready(cr, ep);
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
	mutex_lock(&cr->mutex);
	id = cr->id;
	if (id) {
		rdma_lock_handler(id);
		ret = kdapl_accept_locked(cr, ep, conn, pd, pd_len);
		rdma_unlock_handler(id);
	} else {
		ret = kdapl_cr_void(cr);
	}
	mutex_unlock(&cr->mutex);
	mutex_unlock(&conn->mutex);
	if (ret != DAT_SUCCESS)
		kdapl_conn_put(conn);
	kdapl_conn_put(conn);
out:
	mutex_unlock(&ep->mutex);
	return ret;
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			 DAT_COUNT private_data_size,
			 const DAT_PVOID private_data)
{
	struct kdapl_ep *ep = NULL;
	struct kdapl_cr *cr;
	DAT_RETURN ret;

	might_sleep();
	cr = kdapl_obj_get(cr_handle, DAT_HANDLE_TYPE_CR);
	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	if (READ_ONCE(cr->dead)) {
		ret = kdapl_cr_void(cr);
		goto out;
	}
	if (ep_handle) {
		ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	} else if (cr->ep) {
		ep = cr->ep;
		kref_get(&ep->obj.ref);
	}
	if (!ep || ep->obj.ia != cr->obj.ia) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (ep_handle && cr->ep) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	ret = kdapl_check_private_data(cr->obj.ia, private_data_size,
				       private_data, DAT_INVALID_ARG3);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	if (kdapl_hca_enter(cr->obj.ia->hca)) {
		ret = kdapl_accept(cr, ep, private_data, private_data_size);
		kdapl_hca_leave(cr->obj.ia->hca);
	} else if (READ_ONCE(cr->dead)) {
		ret = kdapl_cr_void(cr);
	}
out:
	if (ep)
		kdapl_obj_put(&ep->obj);
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_accept);

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size,
			 const DAT_PVOID private_data)
{
	struct kdapl_cr *cr;
	DAT_RETURN ret;

	might_sleep();
	cr = kdapl_obj_get(cr_handle, DAT_HANDLE_TYPE_CR);
	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	ret = kdapl_check_private_data(cr->obj.ia, private_data_size,
				       private_data, DAT_INVALID_ARG2);
	if (READ_ONCE(cr->dead) ||
	    (ret == DAT_SUCCESS && !kdapl_cr_claim(cr))) {
		ret = kdapl_cr_void(cr);
	} else if (ret == DAT_SUCCESS) {
		rdma_reject(cr->id, private_data, private_data_size,
			    IB_CM_REJ_CONSUMER_DEFINED);
		kdapl_cr_destroy_id(cr);
		kdapl_cr_withdraw(cr);
		kdapl_cr_drop_ep(cr);
		kdapl_cr_forget(cr);
	}
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_reject);

/* Let @to take the place of @cr. Returns false if somebody has answered. */
static bool kdapl_cr_move(struct kdapl_cr *cr, struct kdapl_cr *to)
{
	struct rdma_cm_id *id;
	bool moved = false;

	mutex_lock(&cr->mutex);
	id = cr->id;
	if (!id)
		goto out;
	/* The peer can give up before or after, and not in between. */
	rdma_lock_handler(id);
	moved = kdapl_cr_claim(cr);
	if (moved) {
		cr->id = NULL;
		to->id = id;
		to->local = cr->local;
		to->remote = cr->remote;
		to->responder_resources = cr->responder_resources;
		to->initiator_depth = cr->initiator_depth;
		to->pd_len = cr->pd_len;
		memcpy(to->pd, cr->pd, cr->pd_len);
		id->context = to;
		kdapl_cr_deliver(to);
	}
	rdma_unlock_handler(id);
out:
	mutex_unlock(&cr->mutex);
	return moved;
}

/* Under sp->mutex. */
static DAT_RETURN kdapl_handoff(struct kdapl_cr *cr, struct kdapl_sp *sp)
{
	struct kdapl_cr *to;

	/* Freed meanwhile: nobody would hear of the request. */
	if (!sp->nids)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	to = kdapl_cr_alloc(sp);
	if (!to)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	if (kdapl_cr_move(cr, to)) {
		kdapl_cr_withdraw(cr);
		kdapl_cr_drop_ep(cr);
		kdapl_cr_forget(cr);
		return DAT_SUCCESS;
	}
	/* The request did not come; there may be another one. */
	kdapl_cr_return_ep(to, DAT_EP_STATE_RESERVED);
	kdapl_obj_put(&to->obj);
	return kdapl_cr_void(cr);
}

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff)
{
	DAT_RETURN ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				   DAT_RESOURCE_DEVICE);
	struct kdapl_hca *hca;
	struct kdapl_cr *cr;
	struct kdapl_sp *sp;

	might_sleep();
	cr = kdapl_obj_get(cr_handle, DAT_HANDLE_TYPE_CR);
	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	sp = kdapl_sp_find(cr->obj.ia, handoff);
	hca = cr->obj.ia->hca;
	if (READ_ONCE(cr->dead)) {
		ret = kdapl_cr_void(cr);
	} else if (!sp || sp == cr->sp) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	} else if (kdapl_hca_enter(hca)) {
		/* Removal must not find the new request before it is whole. */
		mutex_lock(&sp->mutex);
		ret = kdapl_handoff(cr, sp);
		mutex_unlock(&sp->mutex);
		kdapl_hca_leave(hca);
	} else if (READ_ONCE(cr->dead)) {
		ret = kdapl_cr_void(cr);
	}
	if (sp)
		kdapl_obj_put(&sp->obj);
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_handoff);
