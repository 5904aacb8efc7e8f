// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Service Points: their listeners, and their life.
 *
 * A public (PSP), reserved (RSP) or common (CSP) service point listens on one
 * port of every address of the IA, also of addresses that come later (ia_addr.c); a CSP
 * may have one address only. The kinds differ in how the consumer names them and in
 * which Endpoint a request gets. A listener is bound to an address and not to the
 * wildcard, so other IAs may use the same port.
 *
 * kdapl_sp_handler(), called by rdma_cm, creates a struct kdapl_cr for each
 * request that arrives (cm_cr.c). The service point owns the listening ids;
 * sp->mutex protects them. Destroying an id waits for its handler, so the
 * handler must not take sp->mutex. A request holds a reference to its service
 * point, which may be freed before the request is answered.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include "addr.h"
#include "cm.h"
#include "ep.h"
#include "ia.h"

/* Bounds of kdapl_sp_backlog(); iw_cm allocates some 400 bytes for each request. */
#define KDAPL_SP_BACKLOG_MIN 64
#define KDAPL_SP_BACKLOG_MAX 1024

/* Ports to try when the consumer leaves the choice to the system. */
#define KDAPL_SP_PORT_TRIES 32

/* Event handler of the listening ids: @id is the new id of a request. */
static int kdapl_sp_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdapl_sp *sp = id->context;
	unsigned int noio;
	bool kept;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	atomic_long_inc(&sp->obj.ia->counts[KDAPL_COUNT_REQUESTS]);
	noio = memalloc_noio_save();
	kept = id->device == sp->obj.ia->hca->dev &&
	       kdapl_cr_create(sp, id, event);
	memalloc_noio_restore(noio);
	if (kept)
		return 0;
	atomic_long_inc(&sp->obj.ia->counts[KDAPL_COUNT_TURNED_AWAY]);
	rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
	/* An errno makes rdma_cm destroy @id. */
	return -ENOMEM;
}

/* Destroy a listening id. Waits for a running handler. */
static void kdapl_sp_unlisten_one(struct kdapl_sp *sp, struct kdapl_listener *l)
{
	list_del(&l->link);
	sp->nids--;
	rdma_destroy_id(l->id);
	kfree(l);
}

/* Destroy the listening ids. */
static void kdapl_sp_unlisten(struct kdapl_sp *sp)
{
	struct kdapl_listener *l, *next;

	lockdep_assert_held(&sp->mutex);
	list_for_each_entry_safe(l, next, &sp->listeners, link)
		kdapl_sp_unlisten_one(sp, l);
}

/* Stop listening. No request arrives at @sp when this returns. */
static void kdapl_sp_close(struct kdapl_sp *sp)
{
	mutex_lock(&sp->mutex);
	WRITE_ONCE(sp->listening, false);
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

static DAT_RETURN kdapl_sp_obj_free(struct kdapl_obj *obj)
{
	if (kdapl_obj_unpublish(obj))
		kdapl_sp_destroy(container_of(obj, struct kdapl_sp, obj));
	return DAT_SUCCESS;
}

static void kdapl_sp_stop(struct kdapl_obj *obj, bool wait)
{
	kdapl_sp_close(container_of(obj, struct kdapl_sp, obj));
}

static void kdapl_sp_strip(struct kdapl_obj *obj)
{
	kdapl_sp_close(container_of(obj, struct kdapl_sp, obj));
}

static void kdapl_sp_obj_init(struct kdapl_obj *obj)
{
	struct kdapl_sp *sp = container_of(obj, struct kdapl_sp, obj);

	mutex_init(&sp->mutex);
	INIT_LIST_HEAD(&sp->listeners);
}

static const struct kdapl_obj_ops kdapl_sp_ops = {
	.init = kdapl_sp_obj_init,
	.release = kdapl_sp_release,
	.free = kdapl_sp_obj_free,
	.stop = kdapl_sp_stop,
	.strip = kdapl_sp_strip,
};

static void kdapl_set_port(struct sockaddr_storage *addr, u16 port)
{
	if (addr->ss_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
}

/*
 * Return how many requests may arrive before the connection manager handles them: as many
 * as the consumer has room for. iWARP refuses or drops requests beyond this number. It
 * does not limit requests that the consumer has not reaped, see kdapl_cr_create().
 */
static int kdapl_sp_backlog(struct kdapl_sp *sp)
{
	return clamp_t(u32, READ_ONCE(sp->evd->qlen), KDAPL_SP_BACKLOG_MIN,
		       KDAPL_SP_BACKLOG_MAX);
}

/* struct kdapl_listen - arguments of rdma_listen() */
struct kdapl_listen {
	struct rdma_cm_id *id;
	int backlog;
};

static int kdapl_listen(void *arg)
{
	struct kdapl_listen *listen = arg;

	return rdma_listen(listen->id, listen->backlog);
}

/* Listen at address @local on port sp->qual; if the port is 0, choose one. */
static int kdapl_sp_listen_one(struct kdapl_sp *sp,
			       const struct sockaddr_storage *local)
{
	struct kdapl_ia *ia = sp->obj.ia;
	struct sockaddr_storage addr = *local;
	struct kdapl_listen listen;
	struct kdapl_listener *l;
	struct rdma_cm_id *id;
	int err;

	lockdep_assert_held(&sp->mutex);

	l = kmalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return -ENOMEM;
	kdapl_set_port(&addr, sp->qual);
	id = __rdma_create_kernel_id(&init_net, kdapl_sp_handler, sp,
				     RDMA_PS_TCP, IB_QPT_RC, ia->consumer);
	if (IS_ERR(id)) {
		kfree(l);
		return PTR_ERR(id);
	}
	if (addr.ss_family == AF_INET6)
		rdma_set_afonly(id, 1);
	err = rdma_bind_addr(id, (struct sockaddr *)&addr);
	if (!err && id->device != ia->hca->dev)
		err = -EADDRNOTAVAIL;
	listen = (struct kdapl_listen) { id, kdapl_sp_backlog(sp) };
	if (!err)
		err = kdapl_in_init_net(kdapl_listen, &listen);
	if (err) {
		rdma_destroy_id(id);
		kfree(l);
		return err;
	}
	/* All addresses get the port that the system chose for the first one. */
	if (!sp->qual)
		sp->qual = kdapl_addr_port(&id->route.addr.src_addr);
	l->id = id;
	list_add_tail(&l->link, &sp->listeners);
	sp->nids++;
	return 0;
}

/* Listen at @addr. */
static int kdapl_sp_listen_addr(struct kdapl_sp *sp,
				const struct sockaddr_storage *addr)
{
	int err = kdapl_sp_listen_one(sp, addr);

	/*
	 * TCP also returns -EADDRINUSE when it is merely out of memory to check: retry
	 * once (iWARP only).
	 */
	if (err == -EADDRINUSE && sp->obj.ia->iwarp)
		err = kdapl_sp_listen_one(sp, addr);
	return err;
}

/* A CSP listens at addresses of one family only. */
static bool kdapl_sp_wants(struct kdapl_sp *sp, const struct sockaddr_storage *addr)
{
	return !sp->comm.domain || addr->ss_family == sp->comm.domain;
}

/* Listen at all addresses of the IA. */
static int kdapl_sp_listen_all(struct kdapl_sp *sp)
{
	struct kdapl_ia *ia = sp->obj.ia;
	unsigned int i;
	int err = 0;

	lockdep_assert_held(&ia->mutex);

	for (i = 0; i < ia->naddrs && !err; i++)
		if (kdapl_sp_wants(sp, &ia->addr[i]))
			err = kdapl_sp_listen_addr(sp, &ia->addr[i]);
	return err;
}

/*
 * Listen at the address @only, or at all addresses of the IA if @only is NULL.
 * After an error the caller destroys the ids with kdapl_sp_close().
 */
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
	sp->everywhere = true;
	mutex_lock(&ia->mutex);
	err = kdapl_ia_refresh_addrs(ia);
	if (!err && !ia->naddrs)
		err = -EADDRNOTAVAIL;
	if (!err)
		err = kdapl_sp_listen_all(sp);
	/* The port chosen for the first address may be in use at another address. */
	while (err == -EADDRINUSE && sp->nids && tries--) {
		kdapl_sp_unlisten(sp);
		sp->qual = 0;
		err = kdapl_sp_listen_all(sp);
	}
	mutex_unlock(&ia->mutex);
out:
	WRITE_ONCE(sp->listening, !err);
	mutex_unlock(&sp->mutex);
	return err;
}

/* Does @sp listen at @addr? */
static bool kdapl_sp_listens_at(struct kdapl_sp *sp,
				const struct sockaddr_storage *addr)
{
	struct kdapl_listener *l;

	list_for_each_entry(l, &sp->listeners, link)
		if (kdapl_addr_same(&l->id->route.addr.src_addr, addr))
			return true;
	return false;
}

/* Is the address of the listener still an address of @ia? */
static bool kdapl_listener_stays(struct kdapl_ia *ia, struct kdapl_listener *l)
{
	unsigned int i;

	for (i = 0; i < ia->naddrs; i++)
		if (kdapl_addr_same(&l->id->route.addr.src_addr, &ia->addr[i]))
			return true;
	return false;
}

/* Did an attempt to listen fail for lack of memory? siw has more errnos for that. */
static bool kdapl_sp_is_short(int err)
{
	return err == -ENOMEM || err == -ENOBUFS || err == -ENFILE;
}

/*
 * Make @sp listen at the present addresses of the IA, and no others. Skip an address at
 * which another user has this port. Return false if there was no memory for all.
 */
static bool kdapl_sp_update(struct kdapl_sp *sp)
{
	struct kdapl_ia *ia = sp->obj.ia;
	struct kdapl_listener *l, *next;
	bool done = true;
	unsigned int i;

	mutex_lock(&sp->mutex);
	if (!sp->listening || !sp->everywhere)
		goto out;
	mutex_lock(&ia->mutex);
	list_for_each_entry_safe(l, next, &sp->listeners, link)
		if (!kdapl_listener_stays(ia, l))
			kdapl_sp_unlisten_one(sp, l);
	for (i = 0; i < ia->naddrs; i++)
		if (kdapl_sp_wants(sp, &ia->addr[i]) &&
		    !kdapl_sp_listens_at(sp, &ia->addr[i]) &&
		    kdapl_sp_is_short(kdapl_sp_listen_addr(sp, &ia->addr[i])))
			done = false;
	mutex_unlock(&ia->mutex);
out:
	mutex_unlock(&sp->mutex);
	return done;
}

/*
 * Update the service points of @ia, whose addresses may have changed. Return false if
 * memory was short and the caller must try again later. Context: Process context, within
 * kdapl_hca_enter().
 */
bool kdapl_sps_update(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj = NULL;
	bool done = true;

	lockdep_assert_held(&ia->hca->sem);

	while ((obj = kdapl_obj_next(ia, obj)))
		if (obj->ops == &kdapl_sp_ops)
			done &= kdapl_sp_update(container_of(obj, struct kdapl_sp, obj));
	return done;
}

/* Return the DAT error for the errno of kdapl_sp_listen(). */
static DAT_RETURN kdapl_sp_errno(int err, const struct kdapl_sp_args *args)
{
	/* Finding the IA's addresses binds ids, which also fails when no port is free. */
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

/* Reserve the Endpoint of @sp for the single request of an RSP. */
static DAT_RETURN kdapl_rsp_reserve(struct kdapl_sp *sp)
{
	struct kdapl_ep *ep = sp->ep;
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned long flags;

	mutex_lock(&ep->mutex);
	spin_lock_irqsave(&ep->lock, flags);
	if (ep->dying)
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	else if (ep->state != DAT_EP_STATE_UNCONNECTED ||
		 !kdapl_ep_change_state(ep, DAT_EP_STATE_RESERVED))
		ret = kdapl_ep_state_error(ep->state);
	else
		ep->rsp = sp;
	spin_unlock_irqrestore(&ep->lock, flags);
	mutex_unlock(&ep->mutex);
	return ret;
}

/*
 * @sp is being freed: end the reservation of its Endpoint, unless the Endpoint has been
 * reserved for another RSP since.
 */
static void kdapl_rsp_unreserve(struct kdapl_sp *sp)
{
	struct kdapl_ep *ep = sp->ep;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	if (ep->rsp == sp) {
		ep->rsp = NULL;
		if (ep->state == DAT_EP_STATE_RESERVED)
			kdapl_ep_change_state(ep, DAT_EP_STATE_UNCONNECTED);
	}
	spin_unlock_irqrestore(&ep->lock, flags);
}

/*
 * Take down @sp, which the caller has unpublished, and drop the table's reference.
 * Requests that have arrived can still be answered.
 * Context: Process context.
 */
void kdapl_sp_destroy(struct kdapl_sp *sp)
{
	kdapl_sp_close(sp);
	kdapl_obj_unuse(&sp->evd->obj);
	if (sp->ep)
		kdapl_rsp_unreserve(sp);
	kdapl_obj_put(&sp->obj);
}

/* Allocate a service point without a handle; @evd and args->ep are referenced later. */
static struct kdapl_sp *kdapl_sp_alloc(struct kdapl_evd *evd,
				       const struct kdapl_sp_args *args)
{
	struct kdapl_sp *sp = kzalloc(sizeof(*sp), GFP_KERNEL);

	if (!sp)
		return NULL;
	sp->evd = evd;
	sp->qual = args->qual;
	sp->flags = args->flags;
	sp->comm = args->comm;
	sp->ep = args->ep;
	if (args->addr)
		sp->addr = *args->addr;
	return sp;
}

/**
 * kdapl_sp_create - create a service point that listens
 * @ia: the IA
 * @args: arguments of the create call
 * @handle: set to the handle
 * @qual: set to the port
 *
 * An upcall for the first request may free the service point before this
 * returns, so the caller gets copies of its handle and port, and no pointer.
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: %DAT_SUCCESS, or the error of the create call
 */
DAT_RETURN kdapl_sp_create(struct kdapl_ia *ia, const struct kdapl_sp_args *args,
			   DAT_HANDLE *handle, DAT_CONN_QUAL *qual)
{
	struct kdapl_evd *evd;
	struct kdapl_sp *sp;
	DAT_RETURN ret;
	int err;

	lockdep_assert_held(&ia->hca->sem);

	evd = kdapl_dep_get(args->evd, DAT_HANDLE_TYPE_EVD, ia);
	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	if (!(evd->flags & DAT_EVD_CR_FLAG)) {
		kdapl_dep_put(&evd->obj);
		return DAT_ERROR(DAT_INVALID_PARAMETER, args->evd_arg);
	}
	/* kdapl_sp_stop() may find the object once kdapl_obj_init() has listed it. */
	sp = kdapl_sp_alloc(evd, args);
	err = sp ? kdapl_obj_init(&sp->obj, args->type, ia, &kdapl_sp_ops) :
		   -ENOMEM;
	if (err) {
		kfree(sp);
		kdapl_dep_put(&evd->obj);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	}
	if (sp->ep)
		kref_get(&sp->ep->obj.ref);
	ret = sp->ep ? kdapl_rsp_reserve(sp) : DAT_SUCCESS;
	if (ret != DAT_SUCCESS) {
		kdapl_obj_unuse(&evd->obj);
		kdapl_obj_put(&sp->obj);
		return ret;
	}
	/* A request may arrive at once, and its event contains the handle. */
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
	/* dat_ia_close() may have freed the service point meanwhile. */
	if (kdapl_obj_unpublish(&sp->obj))
		kdapl_sp_destroy(sp);
	kdapl_obj_put(&sp->obj);
	return kdapl_sp_errno(err, args);
}

/*
 * Return the service point of @ia that listens on port @qual, referenced; or NULL.
 * Context: Any.
 */
struct kdapl_sp *kdapl_sp_find(struct kdapl_ia *ia, DAT_CONN_QUAL qual)
{
	struct kdapl_obj *obj = NULL;
	struct kdapl_sp *sp;

	while ((obj = kdapl_obj_next(ia, obj))) {
		if (obj->ops != &kdapl_sp_ops)
			continue;
		sp = container_of(obj, struct kdapl_sp, obj);
		if (READ_ONCE(sp->listening) && READ_ONCE(sp->qual) == qual)
			return sp;
	}
	return NULL;
}
