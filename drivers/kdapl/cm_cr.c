// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connection Requests: their life, dat_cr_query(), kdat_cr_query_gid() and
 * dat_cr_reject().
 *
 * kdapl_cr_create() allocates a request when a peer's request arrives at a service point.
 * The request owns the rdma_cm id until it is accepted, rejected, handed to
 * another service point, or cancelled: because the peer has given up, the EVD
 * was freed, the device is leaving or the IA is being closed. The one caller
 * whose kdapl_cr_claim() succeeds does one of these; all others are too late.
 *
 * A request may be cancelled after the consumer has reaped its event and uses its addresses
 * and private data. So its memory stays, and every call returns
 * DAT_INVALID_HANDLE, until the consumer has tried to answer the request or the
 * IA is closed.
 *
 * The published handle, the queued event and the queued work hold a reference
 * each. cr->mutex protects the id; ep->lock protects the state of the Endpoint that came
 * with the request.
 */
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <dat/kdat_linux.h>
#include "addr.h"
#include "cm.h"
#include "conn.h"
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "trace.h"

/*
 * Requests beyond the queue length of the EVD are kept, but peers must not fill the
 * memory of the host: with this many more, further requests are rejected.
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
 * The Endpoint that came with @cr will not be connected: free it if the provider created
 * it; take the Endpoint of an RSP to the state @then, or to UNCONNECTED if the RSP was
 * freed.
 */
void kdapl_cr_return_ep(struct kdapl_cr *cr, DAT_EP_STATE then)
{
	struct kdapl_ep *ep = cr->ep;
	unsigned long flags;

	if (!ep)
		return;
	if (ep->provider_owned) {
		kdapl_ep_free(ep, 0);
		return;
	}
	spin_lock_irqsave(&ep->lock, flags);
	if (ep->state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING) {
		/* kdapl_rsp_unreserve() clears ep->rsp. */
		if (ep->rsp != cr->sp)
			then = DAT_EP_STATE_UNCONNECTED;
		kdapl_ep_change_state(ep, then);
		memset(&ep->local_addr, 0, sizeof(ep->local_addr));
		memset(&ep->remote_addr, 0, sizeof(ep->remote_addr));
	}
	spin_unlock_irqrestore(&ep->lock, flags);
}

/*
 * Take the event of @cr off the EVD. Return false if the consumer has reaped it.
 * Context: Any.
 */
bool kdapl_cr_withdraw(struct kdapl_cr *cr)
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

/* Claim the right to answer @cr, true for one caller only. litmus: cr-claim. Context: Any. */
bool kdapl_cr_claim(struct kdapl_cr *cr)
{
	return atomic_cmpxchg(&cr->claimed, KDAPL_CR_OPEN, KDAPL_CR_CLAIMED) == KDAPL_CR_OPEN;
}

/* Invalidate the handle of @cr and drop its reference. Context: Any. */
void kdapl_cr_forget(struct kdapl_cr *cr)
{
	if (kdapl_obj_unpublish(&cr->obj))
		kdapl_obj_put(&cr->obj);
}

/*
 * Return the error for an answer to @cr, which was claimed before. By this error the
 * consumer learns that a request was cancelled, so the memory need not be kept any
 * longer.
 */
DAT_RETURN kdapl_cr_too_late(struct kdapl_cr *cr)
{
	if (kdapl_cr_is_cancelled(cr))
		kdapl_cr_forget(cr);
	return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
}

/*
 * Destroy the id of @cr, which the caller has claimed. dat_cr_accept() and
 * dat_cr_handoff() read cr->id with the mutex held and find NULL afterwards.
 */
static void kdapl_cr_destroy_id(struct kdapl_cr *cr)
{
	mutex_lock(&cr->mutex);
	rdma_destroy_id(cr->id);
	cr->id = NULL;
	mutex_unlock(&cr->mutex);
}

/* Work item cr->down: take down a request that was cancelled. */
static void kdapl_cr_down(struct work_struct *work)
{
	struct kdapl_cr *cr = container_of(work, struct kdapl_cr, down);

	kdapl_cr_destroy_id(cr);
	kdapl_cr_return_ep(cr, DAT_EP_STATE_UNCONNECTED);
	/*
	 * If the consumer has reaped the event, kdapl_cr_too_late() or the
	 * close of the IA invalidates the handle.
	 */
	if (kdapl_cr_withdraw(cr))
		kdapl_cr_forget(cr);
	kdapl_obj_put(&cr->obj);
}

/*
 * Mark @cr, which the caller has claimed, cancelled and queue the work that takes it
 * down. Context: Any.
 */
void kdapl_cr_cancel_claimed(struct kdapl_cr *cr)
{
	kref_get(&cr->obj.ref);
	atomic_set(&cr->claimed, KDAPL_CR_CANCELLED);
	queue_work(cr->obj.ia->hca->down_wq, &cr->down);
}

/*
 * Cancel @cr unless it was answered or cancelled before. The claim says that it is cancelled:
 * whoever is too late forgets the handle then, and with it perhaps the last reference but that
 * of the work. litmus: cr-claim. Context: Any.
 */
static void kdapl_cr_cancel(struct kdapl_cr *cr)
{
	kref_get(&cr->obj.ref);
	if (atomic_cmpxchg(&cr->claimed, KDAPL_CR_OPEN, KDAPL_CR_CANCELLED) == KDAPL_CR_OPEN)
		queue_work(cr->obj.ia->hca->down_wq, &cr->down);
	else
		kdapl_obj_put(&cr->obj);
}

static DAT_RETURN kdapl_cr_obj_free(struct kdapl_obj *obj)
{
	return dat_cr_reject(kdapl_handle(obj), 0, NULL);
}

static void kdapl_cr_stop(struct kdapl_obj *obj, bool wait)
{
	kdapl_cr_cancel(container_of(obj, struct kdapl_cr, obj));
}

static void kdapl_cr_init(struct kdapl_obj *obj)
{
	struct kdapl_cr *cr = container_of(obj, struct kdapl_cr, obj);

	mutex_init(&cr->mutex);
	cr->ev.kind = KDAPL_EV_CR;
	INIT_WORK(&cr->down, kdapl_cr_down);
	/* The request cannot be cancelled before it has its id. */
	atomic_set(&cr->claimed, KDAPL_CR_CLAIMED);
}

static const struct kdapl_obj_ops kdapl_cr_ops = {
	.init = kdapl_cr_init,
	.release = kdapl_cr_release,
	.free = kdapl_cr_obj_free,
	.stop = kdapl_cr_stop,
};

/*
 * Event handler of the id of a request that was not answered: most events mean that the
 * peer has given up or that the device is leaving.
 */
int kdapl_cr_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
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

/* Create an Endpoint of @ia for a request on a PSP with DAT_PSP_PROVIDER_FLAG. */
static struct kdapl_ep *kdapl_cr_make_ep(struct kdapl_ia *ia)
{
	const struct kdapl_ep_deps none = { };
	unsigned long flags;
	struct kdapl_ep *ep;
	DAT_EP_ATTR attr;
	int err;

	kdapl_ep_default_attr(ia, &attr);
	ep = kdapl_ep_alloc(ia, &none, &attr, &err);
	if (!ep)
		return NULL;
	spin_lock_irqsave(&ep->lock, flags);
	ep->provider_owned = true;
	kdapl_ep_change_state(ep, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	spin_unlock_irqrestore(&ep->lock, flags);
	kdapl_obj_publish(&ep->obj);
	return ep;
}

/*
 * Return the Endpoint of @sp, an RSP, if it is still reserved; its state changes, so only
 * one request gets it.
 */
static struct kdapl_ep *kdapl_cr_reserved_ep(struct kdapl_sp *sp)
{
	struct kdapl_ep *ep = sp->ep;
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&ep->lock, flags);
	ok = ep->rsp == sp &&
	     kdapl_ep_change_state(ep, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	spin_unlock_irqrestore(&ep->lock, flags);
	return ok ? ep : NULL;
}

/*
 * Give @cr the Endpoint that the kind of service point requires, if any. Return false if
 * none is available.
 */
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

/*
 * Allocate a request on @sp, without the id and the peer's data. Return NULL if there is
 * no memory or no Endpoint. Context: Process context.
 */
struct kdapl_cr *kdapl_cr_alloc(struct kdapl_sp *sp)
{
	struct kdapl_cr *cr;

	cr = kzalloc(sizeof(*cr), GFP_KERNEL);
	if (!cr)
		return NULL;
	cr->sp = sp;
	if (kdapl_obj_init(&cr->obj, DAT_HANDLE_TYPE_CR, sp->obj.ia,
			   &kdapl_cr_ops)) {
		kfree(cr);
		return NULL;
	}
	kref_get(&sp->obj.ref);
	if (kdapl_cr_assign_ep(cr, sp))
		return cr;
	kdapl_obj_put(&cr->obj);
	return NULL;
}

/* Copy the addresses of @cr to @ep, for queries. Context: Any. */
void kdapl_cr_set_addrs(struct kdapl_cr *cr, struct kdapl_ep *ep)
{
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	ep->local_addr = cr->local;
	ep->remote_addr = cr->remote;
	spin_unlock_irqrestore(&ep->lock, flags);
}

/*
 * Publish @cr and queue its event. The table takes over the caller's reference: an upcall
 * may answer the request before this returns.
 */
void kdapl_cr_deliver(struct kdapl_cr *cr)
{
	if (cr->ep)
		kdapl_cr_set_addrs(cr, cr->ep);
	atomic_inc(&cr->sp->pending);
	kref_get(&cr->obj.ref);
	kdapl_obj_publish(&cr->obj);
	kdapl_evd_post(cr->sp->evd, &cr->ev);
}

/* Copy out the event of a request, which then no longer counts as pending. */
static void kdapl_cr_reap(struct kdapl_event *ev, DAT_EVENT *event)
{
	struct kdapl_cr *cr = container_of(ev, struct kdapl_cr, ev);
	DAT_CR_ARRIVAL_EVENT_DATA *data =
		&event->event_data.cr_arrival_event_data;

	event->event_number = DAT_CONNECTION_REQUEST_EVENT;
	/* All members of the union are pointers. */
	data->sp_handle.psp_handle = kdapl_handle(&cr->sp->obj);
	data->local_ia_address_ptr = kdapl_addr_ptr(&cr->local);
	data->conn_qual = cr->sp->qual;
	data->cr_handle = kdapl_handle(&cr->obj);
	data->truncate_flag = DAT_FALSE;
	atomic_dec(&cr->sp->pending);
	kdapl_obj_put(&cr->obj);
}

/* The EVD was freed with the event queued: the consumer can never answer, so cancel. */
static void kdapl_cr_abandon(struct kdapl_event *ev)
{
	struct kdapl_cr *cr = container_of(ev, struct kdapl_cr, ev);

	kdapl_cr_cancel(cr);
	kdapl_cr_forget(cr);
}

const struct kdapl_event_ops kdapl_cr_event_ops = {
	.reap = kdapl_cr_reap,
	.abandon = kdapl_cr_abandon,
};

/**
 * kdapl_cr_create - allocate and deliver a connection request
 * @sp: service point that the request arrived at
 * @id: the id of the request; owned by the kdapl_cr on success
 * @event: the CONNECT_REQUEST event
 *
 * Context: Event handler of rdma_cm, with the handler lock of @id held.
 * Return: the request, only to be compared with NULL; NULL if it must be rejected
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
	if (!sp->obj.ia->iwarp && id->route.path_rec)
		cr->gid = id->route.path_rec->dgid;
	cr->responder_resources = param->responder_resources;
	cr->initiator_depth = param->initiator_depth;
	cr->pd_len = param->private_data_len;
	if (cr->pd_len)
		memcpy(cr->pd, param->private_data, cr->pd_len);
	id->context = cr;
	id->event_handler = kdapl_cr_handler;
	/* Pairs with kdapl_cr_claim(). litmus: cr-claim */
	atomic_set_release(&cr->claimed, KDAPL_CR_OPEN);
	trace_kdapl_cr(cr);
	kdapl_cr_deliver(cr);
	return cr;
}

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle,
			DAT_CR_PARAM_MASK cr_param_mask, DAT_CR_PARAM *cr_param)
{
	DAT_RETURN ret;
	struct kdapl_cr *cr;

	rcu_read_lock();
	/* The handle of a request whose peer has given up is invalid. */
	cr = kdapl_find(cr_handle, DAT_HANDLE_TYPE_CR);
	if (cr && kdapl_cr_is_cancelled(cr))
		cr_handle = NULL;
	cr = kdapl_find_queried(cr_handle, DAT_HANDLE_TYPE_CR,
				cr_param_mask & ~DAT_CR_FIELD_ALL,
				cr_param, &ret);
	if (cr) {
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

DAT_RETURN kdat_cr_query_gid(DAT_CR_HANDLE cr_handle, u8 *gid)
{
	DAT_RETURN ret = DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	struct kdapl_cr *cr;

	if (!gid)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	rcu_read_lock();
	cr = kdapl_find(cr_handle, DAT_HANDLE_TYPE_CR);
	if (!cr || kdapl_cr_is_cancelled(cr)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	} else if (!rdma_is_zero_gid(&cr->gid)) {
		memcpy(gid, cr->gid.raw, sizeof(cr->gid.raw));
		ret = DAT_SUCCESS;
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(kdat_cr_query_gid);

/* Store at @host where the request @cr, queried as @param, comes from. */
void kdapl_cr_host(DAT_CR_HANDLE cr, const DAT_CR_PARAM *param, KDAT_HOST *host)
{
	const struct sockaddr_in6 *v6 = (void *)param->remote_ia_address_ptr;
	const struct sockaddr_in *v4 = (void *)v6;
	struct in6_addr stated = v6->sin6_addr;
	DAT_RETURN ret;

	if (v6->sin6_family != AF_INET6)
		ipv6_addr_set_v4mapped(v4->sin_addr.s_addr, &stated);
	ret = kdat_cr_query_gid(cr, host->id.s6_addr);
	if (ret != DAT_SUCCESS)
		host->id = stated;
	/* Any other error means that the peer has given up. */
	host->proven = DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED;
	snprintf(host->name, sizeof(host->name), ipv6_addr_equal(&stated, &host->id) ?
		 "%pISpc" : "%pISpc of %pI6c", v6, &host->id);
}

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
	if (kdapl_cr_is_cancelled(cr) ||
	    (ret == DAT_SUCCESS && !kdapl_cr_claim(cr))) {
		ret = kdapl_cr_too_late(cr);
	} else if (ret == DAT_SUCCESS) {
		atomic_long_inc(&cr->obj.ia->counts[KDAPL_COUNT_REJECTED]);
		rdma_reject(cr->id, private_data, private_data_size,
			    IB_CM_REJ_CONSUMER_DEFINED);
		kdapl_cr_destroy_id(cr);
		kdapl_cr_withdraw(cr);
		kdapl_cr_return_ep(cr, DAT_EP_STATE_UNCONNECTED);
		kdapl_cr_forget(cr);
	}
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_reject);
