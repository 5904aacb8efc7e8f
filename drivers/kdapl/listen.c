// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What Service Points have in common: they listen.
 *
 * Public (PSP), reserved (RSP) and common (CSP) ones are listeners on the same
 * port of every address of the IA; they differ in what names them and in whose
 * Endpoint a request gets. Bound to addresses and not to a wildcard, they leave
 * the same port free on other IAs.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include "kdapl.h"
#include "trace.h"

/*
 * Requests that may arrive before the connection manager gets round to them;
 * beyond that iWARP refuses or forgets some. How many the consumer has not reaped
 * yet is another matter, see kdapl_cr_create().
 */
#define KDAPL_SP_BACKLOG 64

/* Ports tried for a consumer who takes any. */
#define KDAPL_SP_PORT_TRIES 32

static int kdapl_sp_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdapl_sp *sp = id->context;
	unsigned int noio;
	bool taken;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	noio = memalloc_noio_save();
	taken = id->device == sp->obj.ia->hca->dev &&
		kdapl_cr_create(sp, id, event);
	memalloc_noio_restore(noio);
	if (taken)
		return 0;
	rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
	/* Has the id destroyed. */
	return -ENOMEM;
}

static void kdapl_sp_unlisten(struct kdapl_sp *sp)
{
	while (sp->nids)
		rdma_destroy_id(sp->ids[--sp->nids]);
}

/* Stop listening. Waits for handlers that are running. */
void kdapl_sp_close(struct kdapl_sp *sp)
{
	mutex_lock(&sp->mutex);
	kdapl_sp_unlisten(sp);
	mutex_unlock(&sp->mutex);
}

static void kdapl_sp_release(struct kdapl_obj *obj)
{
	struct kdapl_sp *sp = container_of(obj, struct kdapl_sp, obj);

	kdapl_sp_close(sp);
	if (sp->evd)
		kdapl_obj_put(&sp->evd->obj);
	if (sp->ep)
		kdapl_obj_put(&sp->ep->obj);
	kdapl_obj_free(obj);
}

static void kdapl_set_port(struct sockaddr_storage *addr, u16 port)
{
	if (addr->ss_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
}

static int kdapl_sp_listen_one(struct kdapl_sp *sp,
			       const struct sockaddr_storage *local)
{
	struct kdapl_ia *ia = sp->obj.ia;
	struct sockaddr_storage addr = *local;
	struct rdma_cm_id *id;
	int err;

	kdapl_set_port(&addr, sp->qual);
	id = __rdma_create_kernel_id(&init_net, kdapl_sp_handler, sp,
				     RDMA_PS_TCP, IB_QPT_RC, ia->consumer);
	if (IS_ERR(id))
		return PTR_ERR(id);
	if (addr.ss_family == AF_INET6)
		rdma_set_afonly(id, 1);
	err = rdma_bind_addr(id, (struct sockaddr *)&addr);
	if (!err && id->device != ia->hca->dev)
		err = -EADDRNOTAVAIL;
	if (!err)
		err = rdma_listen(id, KDAPL_SP_BACKLOG);
	if (err) {
		rdma_destroy_id(id);
		return err;
	}
	/* Any port will do: the first address has chosen it for all. */
	if (!sp->qual)
		sp->qual = kdapl_addr_port(&id->route.addr.src_addr);
	sp->ids[sp->nids++] = id;
	return 0;
}

static int kdapl_sp_listen_addr(struct kdapl_sp *sp,
				const struct sockaddr_storage *addr)
{
	int err = kdapl_sp_listen_one(sp, addr);

	/* TCP says so too if it has no memory to look whether that is true. */
	if (err == -EADDRINUSE && sp->obj.ia->iwarp)
		err = kdapl_sp_listen_one(sp, addr);
	return err;
}

/* Listen on all addresses of the family that are known. */
static int kdapl_sp_listen_all(struct kdapl_sp *sp)
{
	struct kdapl_ia *ia = sp->obj.ia;
	unsigned int i;
	int err = 0;

	for (i = 0; i < ia->naddrs && !err; i++)
		if (!sp->comm.domain ||
		    ia->addr[i].ss_family == sp->comm.domain)
			err = kdapl_sp_listen_addr(sp, &ia->addr[i]);
	return err;
}

/* Listen on one address, or on all the IA has. */
static int kdapl_sp_listen(struct kdapl_sp *sp,
			   const struct sockaddr_storage *only)
{
	int tries = sp->qual ? 0 : KDAPL_SP_PORT_TRIES;
	struct kdapl_ia *ia = sp->obj.ia;
	int err;

	mutex_lock(&sp->mutex);
	if (only) {
		err = kdapl_sp_listen_addr(sp, only);
		goto out;
	}
	mutex_lock(&ia->mutex);
	err = kdapl_ia_refresh_addrs(ia);
	if (!err && !ia->naddrs)
		err = -EADDRNOTAVAIL;
	if (!err)
		err = kdapl_sp_listen_all(sp);
	/* The port chosen on the first address may be taken on another one. */
	while (err == -EADDRINUSE && sp->nids && tries--) {
		kdapl_sp_unlisten(sp);
		sp->qual = 0;
		err = kdapl_sp_listen_all(sp);
	}
	mutex_unlock(&ia->mutex);
out:
	mutex_unlock(&sp->mutex);
	return err;
}

static DAT_RETURN kdapl_sp_errno(int err, const struct kdapl_sp_args *args)
{
	/* Without a free port not even the IA's addresses can be found. */
	if (!args->qual && (err == -EADDRINUSE || err == -EADDRNOTAVAIL))
		return DAT_ERROR(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE);
	switch (err) {
	case -EADDRINUSE:
		return DAT_ERROR(args->type == DAT_HANDLE_TYPE_CSP ?
				 DAT_PORT_IN_USE : DAT_CONN_QUAL_IN_USE,
				 DAT_NO_SUBTYPE);
	case -EADDRNOTAVAIL:
		return DAT_ERROR(DAT_INVALID_ADDRESS,
				 DAT_INVALID_ADDRESS_UNREACHABLE);
	default:
		return kdapl_errno_to_dat(err);
	}
}

/* Reserve the Endpoint for the one request an RSP will get. */
static DAT_RETURN kdapl_rsp_reserve(struct kdapl_sp *sp)
{
	struct kdapl_ep *ep = sp->ep;
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned long flags;

	mutex_lock(&ep->mutex);
	spin_lock_irqsave(&ep->lock, flags);
	if (ep->dying) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	} else if (ep->state != DAT_EP_STATE_UNCONNECTED) {
		ret = kdapl_ep_state_error(ep->state);
	} else {
		WRITE_ONCE(ep->state, DAT_EP_STATE_RESERVED);
		ep->rsp = sp;
	}
	spin_unlock_irqrestore(&ep->lock, flags);
	mutex_unlock(&ep->mutex);
	return ret;
}

/* The RSP goes. Its Endpoint may have been reserved for another one since. */
static void kdapl_rsp_unreserve(struct kdapl_sp *sp)
{
	struct kdapl_ep *ep = sp->ep;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	if (ep->rsp == sp) {
		ep->rsp = NULL;
		if (ep->state == DAT_EP_STATE_RESERVED)
			WRITE_ONCE(ep->state, DAT_EP_STATE_UNCONNECTED);
	}
	spin_unlock_irqrestore(&ep->lock, flags);
}

/* The consumer gives a service point up; requests it has are unaffected. */
void kdapl_sp_destroy(struct kdapl_sp *sp)
{
	kdapl_sp_close(sp);
	kdapl_obj_unuse(&sp->evd->obj);
	if (sp->ep)
		kdapl_rsp_unreserve(sp);
	kdapl_obj_put(&sp->obj);
}

/*
 * Make a service point. It may be freed, by an upcall for its first request,
 * before this returns; so what the caller wants to know is copied.
 */
DAT_RETURN kdapl_sp_create(struct kdapl_ia *ia, const struct kdapl_sp_args *args,
			   DAT_HANDLE *handle, DAT_CONN_QUAL *qual)
{
	struct kdapl_evd *evd;
	struct kdapl_sp *sp;
	DAT_RETURN ret;
	int err;

	evd = kdapl_dep_get(args->evd, DAT_HANDLE_TYPE_EVD, ia);
	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	if (!(evd->flags & DAT_EVD_CR_FLAG)) {
		kdapl_dep_put(&evd->obj);
		return DAT_ERROR(DAT_INVALID_PARAMETER, args->evd_arg);
	}
	sp = kzalloc(sizeof(*sp), GFP_KERNEL);
	err = sp ? kdapl_obj_init(&sp->obj, args->type, ia, kdapl_sp_release) :
		   -ENOMEM;
	if (err) {
		kfree(sp);
		kdapl_dep_put(&evd->obj);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	}
	mutex_init(&sp->mutex);
	sp->evd = evd;
	sp->qual = args->qual;
	sp->flags = args->flags;
	sp->comm = args->comm;
	if (args->ep) {
		kref_get(&args->ep->obj.ref);
		sp->ep = args->ep;
	}
	if (args->addr)
		sp->addr = *args->addr;
	ret = sp->ep ? kdapl_rsp_reserve(sp) : DAT_SUCCESS;
	if (ret != DAT_SUCCESS) {
		kdapl_obj_unuse(&evd->obj);
		kdapl_obj_put(&sp->obj);
		return ret;
	}
	/* Published first: a request may arrive at once and name it. */
	kdapl_obj_publish(&sp->obj);
	kref_get(&sp->obj.ref);
	err = kdapl_sp_listen(sp, args->addr && !kdapl_addr_any(args->addr) ?
				  args->addr : NULL);
	if (!err) {
		*handle = kdapl_handle(&sp->obj);
		*qual = sp->qual;
		kdapl_obj_put(&sp->obj);
		return DAT_SUCCESS;
	}
	/* Unless the IA was closed meanwhile, and took this with it. */
	if (kdapl_obj_unpublish(&sp->obj))
		kdapl_sp_destroy(sp);
	kdapl_obj_put(&sp->obj);
	return kdapl_sp_errno(err, args);
}

/* The service point of an IA that listens on a port, referenced. */
struct kdapl_sp *kdapl_sp_find(struct kdapl_ia *ia, DAT_CONN_QUAL qual)
{
	struct kdapl_sp *sp, *found = NULL;
	struct kdapl_obj *obj;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	list_for_each_entry(obj, &ia->objs, ia_link) {
		switch (kdapl_type(obj)) {
		case DAT_HANDLE_TYPE_PSP:
		case DAT_HANDLE_TYPE_RSP:
		case DAT_HANDLE_TYPE_CSP:
			sp = container_of(obj, struct kdapl_sp, obj);
			break;
		default:
			continue;
		}
		if (sp->nids && sp->qual == qual &&
		    kref_get_unless_zero(&obj->ref)) {
			found = sp;
			break;
		}
	}
	spin_unlock_irqrestore(&ia->lock, flags);
	return found;
}
