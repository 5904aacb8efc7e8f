// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Service Points: public (PSP), reserved (RSP) and common (CSP).
 *
 * All three are listeners on the same port of every address of the IA; they
 * differ in what names them and in whose Endpoint a request gets. Bound to
 * addresses and not to a wildcard, they leave the same port free on other IAs.
 */
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

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	if (id->device == sp->obj.ia->hca->dev &&
	    kdapl_cr_create(sp, id, event))
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

/*
 * struct kdapl_sp_args - what the create calls differ in
 * @type: handle type
 * @evd: its handle
 * @evd_arg: DAT_INVALID_ARGn of @evd
 * @qual: port, or 0 for any
 * @ep: for an RSP, checked and referenced
 * @addr: for a CSP: its address, with the port; the wildcard stands for all
 */
struct kdapl_sp_args {
	DAT_HANDLE_TYPE type;
	DAT_EVD_HANDLE evd;
	int evd_arg;
	u16 qual;
	DAT_PSP_FLAGS flags;
	struct kdapl_ep *ep;
	DAT_COMM comm;
	const struct sockaddr_storage *addr;
};

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

/* The consumer gives a service point up; requests it has are unaffected. */
static void kdapl_sp_destroy(struct kdapl_sp *sp)
{
	kdapl_sp_close(sp);
	kdapl_obj_unuse(&sp->evd->obj);
	kdapl_obj_put(&sp->obj);
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

/*
 * Make a service point. It may be freed, by an upcall for its first request,
 * before this returns; so what the caller wants to know is copied.
 */
static DAT_RETURN kdapl_sp_create(struct kdapl_ia *ia,
				  const struct kdapl_sp_args *args,
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
	if (kdapl_obj_unpublish(&sp->obj)) {
		kdapl_sp_destroy(sp);
		if (sp->ep)
			kdapl_rsp_unreserve(sp);
	}
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

static DAT_RETURN kdapl_psp_create(DAT_IA_HANDLE ia_handle, u16 qual,
				   DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
				   DAT_CONN_QUAL *chosen,
				   DAT_PSP_HANDLE *psp_handle)
{
	struct kdapl_sp_args args = {
		.type = DAT_HANDLE_TYPE_PSP, .evd = evd,
		.evd_arg = DAT_INVALID_ARG3, .qual = qual, .flags = flags,
	};
	DAT_CONN_QUAL listening;
	DAT_HANDLE handle;
	struct kdapl_ia *ia;
	DAT_RETURN ret;

	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	} else if (!psp_handle) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	} else if (!kdapl_hca_enter(ia->hca)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
	} else {
		ret = kdapl_sp_create(ia, &args, &handle, &listening);
		kdapl_hca_leave(ia->hca);
		if (ret == DAT_SUCCESS) {
			*psp_handle = handle;
			if (chosen)
				*chosen = listening;
		}
	}
	kdapl_obj_put(&ia->obj);
	return ret;
}

static bool kdapl_qual_bad(DAT_CONN_QUAL qual)
{
	return !qual || qual > U16_MAX;
}

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			  DAT_PSP_HANDLE *psp_handle)
{
	might_sleep();
	if (!kdapl_handle_valid(ia_handle, DAT_HANDLE_TYPE_IA))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (kdapl_qual_bad(conn_qual))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return kdapl_psp_create(ia_handle, conn_qual, evd_handle, psp_flags,
				NULL, psp_handle);
}
EXPORT_SYMBOL(dat_psp_create);

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle,
			      DAT_CONN_QUAL *conn_qual,
			      DAT_EVD_HANDLE evd_handle,
			      DAT_PSP_FLAGS psp_flags,
			      DAT_PSP_HANDLE *psp_handle)
{
	might_sleep();
	if (!kdapl_handle_valid(ia_handle, DAT_HANDLE_TYPE_IA))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!conn_qual)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return kdapl_psp_create(ia_handle, 0, evd_handle, psp_flags, conn_qual,
				psp_handle);
}
EXPORT_SYMBOL(dat_psp_create_any);

/* What the free calls do; an RSP also lets go of its Endpoint. */
static DAT_RETURN kdapl_sp_free(DAT_HANDLE handle, DAT_HANDLE_TYPE type,
				int subtype)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_sp *sp;

	might_sleep();
	sp = kdapl_obj_get(handle, type);
	if (!sp)
		return DAT_ERROR(DAT_INVALID_HANDLE, subtype);
	if (!kdapl_obj_unpublish(&sp->obj)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, subtype);
	} else {
		kdapl_sp_destroy(sp);
		if (sp->ep)
			kdapl_rsp_unreserve(sp);
	}
	kdapl_obj_put(&sp->obj);
	return ret;
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle)
{
	return kdapl_sp_free(psp_handle, DAT_HANDLE_TYPE_PSP,
			     DAT_INVALID_HANDLE_PSP);
}
EXPORT_SYMBOL(dat_psp_free);

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	return kdapl_sp_free(rsp_handle, DAT_HANDLE_TYPE_RSP,
			     DAT_INVALID_HANDLE_RSP);
}
EXPORT_SYMBOL(dat_rsp_free);

DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp_handle)
{
	return kdapl_sp_free(csp_handle, DAT_HANDLE_TYPE_CSP,
			     DAT_INVALID_HANDLE_CSP);
}
EXPORT_SYMBOL(dat_csp_free);

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			  DAT_RSP_HANDLE *rsp_handle)
{
	struct kdapl_sp_args args = {
		.type = DAT_HANDLE_TYPE_RSP, .evd = evd_handle,
		.evd_arg = DAT_INVALID_ARG4,
	};
	struct kdapl_ep *ep = NULL;
	DAT_CONN_QUAL listening;
	DAT_HANDLE handle;
	struct kdapl_ia *ia;
	DAT_RETURN ret;

	might_sleep();
	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep || ep->obj.ia != ia) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (kdapl_qual_bad(conn_qual)) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	if (!rsp_handle) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
		goto out;
	}
	args.qual = conn_qual;
	args.ep = ep;
	if (!kdapl_hca_enter(ia->hca)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
		goto out;
	}
	ret = kdapl_sp_create(ia, &args, &handle, &listening);
	if (ret == DAT_SUCCESS)
		*rsp_handle = handle;
	kdapl_hca_leave(ia->hca);
out:
	if (ep)
		kdapl_obj_put(&ep->obj);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_rsp_create);

DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm,
			  DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd_handle,
			  DAT_CSP_HANDLE *csp_handle)
{
	struct kdapl_sp_args args = {
		.type = DAT_HANDLE_TYPE_CSP, .evd = evd_handle,
		.evd_arg = DAT_INVALID_ARG4,
	};
	struct sockaddr_storage addr = { };
	DAT_CONN_QUAL listening;
	DAT_HANDLE handle;
	struct kdapl_ia *ia;
	DAT_RETURN ret;

	might_sleep();
	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!comm) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	if (!kdapl_comm_valid(comm)) {
		ret = DAT_ERROR(DAT_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE);
		goto out;
	}
	if (!address || address->sa_family != comm->domain) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		goto out;
	}
	if (!csp_handle) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
		goto out;
	}
	memcpy(&addr, address, comm->domain == AF_INET ?
	       sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	args.comm = *comm;
	args.addr = &addr;
	args.qual = kdapl_addr_port(&addr);
	if (!args.qual) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		goto out;
	}
	ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	if (kdapl_hca_enter(ia->hca)) {
		ret = kdapl_sp_create(ia, &args, &handle, &listening);
		kdapl_hca_leave(ia->hca);
	}
	if (ret == DAT_SUCCESS)
		*csp_handle = handle;
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_csp_create);

/* Common to the queries: find the service point or the error. RCU. */
static struct kdapl_sp *kdapl_sp_query(DAT_HANDLE handle, DAT_HANDLE_TYPE type,
				       int subtype, bool mask_ok,
				       const void *param, DAT_RETURN *ret)
{
	struct kdapl_sp *sp = kdapl_find(handle, type);

	*ret = DAT_SUCCESS;
	if (!sp)
		*ret = DAT_ERROR(DAT_INVALID_HANDLE, subtype);
	else if (!mask_ok)
		*ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else if (!param)
		*ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return *ret == DAT_SUCCESS ? sp : NULL;
}

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle,
			 DAT_PSP_PARAM_MASK psp_param_mask,
			 DAT_PSP_PARAM *psp_param)
{
	struct kdapl_sp *sp;
	DAT_RETURN ret;

	rcu_read_lock();
	sp = kdapl_sp_query(psp_handle, DAT_HANDLE_TYPE_PSP,
			    DAT_INVALID_HANDLE_PSP,
			    !(psp_param_mask & ~DAT_PSP_FIELD_ALL), psp_param,
			    &ret);
	if (sp) {
		psp_param->ia_handle = kdapl_handle(&sp->obj.ia->obj);
		psp_param->conn_qual = sp->qual;
		psp_param->evd_handle = kdapl_handle(&sp->evd->obj);
		psp_param->psp_flags = sp->flags;
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_psp_query);

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle,
			 DAT_RSP_PARAM_MASK rsp_param_mask,
			 DAT_RSP_PARAM *rsp_param)
{
	struct kdapl_sp *sp;
	DAT_RETURN ret;

	rcu_read_lock();
	sp = kdapl_sp_query(rsp_handle, DAT_HANDLE_TYPE_RSP,
			    DAT_INVALID_HANDLE_RSP,
			    !(rsp_param_mask & ~DAT_RSP_FIELD_ALL), rsp_param,
			    &ret);
	if (sp) {
		rsp_param->ia_handle = kdapl_handle(&sp->obj.ia->obj);
		rsp_param->conn_qual = sp->qual;
		rsp_param->evd_handle = kdapl_handle(&sp->evd->obj);
		rsp_param->ep_handle = kdapl_handle(&sp->ep->obj);
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_rsp_query);

DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp_handle,
			 DAT_CSP_PARAM_MASK csp_param_mask,
			 DAT_CSP_PARAM *csp_param)
{
	struct kdapl_sp *sp;
	DAT_RETURN ret;

	rcu_read_lock();
	sp = kdapl_sp_query(csp_handle, DAT_HANDLE_TYPE_CSP,
			    DAT_INVALID_HANDLE_CSP,
			    !(csp_param_mask & ~DAT_CSP_FIELD_ALL), csp_param,
			    &ret);
	if (sp) {
		csp_param->ia_handle = kdapl_handle(&sp->obj.ia->obj);
		csp_param->comm = &sp->comm;
		csp_param->address_ptr = kdapl_addr_ptr(&sp->addr);
		csp_param->evd_handle = kdapl_handle(&sp->evd->obj);
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_csp_query);
