// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interface Adapters: open, close, and what device removal does to one.
 */
#include <linux/slab.h>
#include "kdapl.h"
#include "trace.h"

DAT_RETURN kdapl_errno_to_dat(int err)
{
	switch (err) {
	case 0:
		return DAT_SUCCESS;
	case -ENOMEM:
	case -ENOSPC:
	case -EAGAIN:
	case -EBUSY:
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	case -EOPNOTSUPP:
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	case -EADDRNOTAVAIL:
	case -ENETUNREACH:
	case -EHOSTUNREACH:
		return DAT_ERROR(DAT_INVALID_ADDRESS,
				 DAT_INVALID_ADDRESS_UNREACHABLE);
	default:
		/* Arguments are checked before, so it is the device's fault. */
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_DEVICE);
	}
}

static void kdapl_ia_release(struct kdapl_obj *obj)
{
	struct kdapl_ia *ia = container_of(obj, struct kdapl_ia, obj);
	struct kdapl_hca *hca = ia->hca;

	kdapl_hca_del_ia(ia);
	kdapl_obj_free(obj);
	kdapl_hca_put(hca);
}

static struct kdapl_ia *kdapl_ia_alloc(struct kdapl_hca *hca, u32 port,
				       const char *consumer, int *err)
{
	struct kdapl_ia *ia;

	ia = kvzalloc(sizeof(*ia), GFP_KERNEL);
	*err = ia ? kdapl_obj_init(&ia->obj, DAT_HANDLE_TYPE_IA, NULL,
				   kdapl_ia_release) : -ENOMEM;
	if (*err) {
		kvfree(ia);
		return NULL;
	}
	kref_get(&hca->ref);
	ia->hca = hca;
	ia->port = port;
	ia->iwarp = rdma_protocol_iwarp(hca->dev, port);
	spin_lock_init(&ia->lock);
	mutex_init(&ia->mutex);
	mutex_init(&ia->null_mutex);
	mutex_init(&ia->close_mutex);
	INIT_LIST_HEAD(&ia->hca_link);
	INIT_LIST_HEAD(&ia->objs);
	init_waitqueue_head(&ia->wait);
	kdapl_async_init(&ia->catastrophic, &ia->obj,
			 DAT_ASYNC_ERROR_IA_CATASTROPHIC,
			 DAT_IA_CATASTROPHIC_ERROR);
	strscpy(ia->consumer, consumer, sizeof(ia->consumer));
	return ia;
}

/* Another IA starts (1) or ceases (-1) to use an EVD for its events. */
static void kdapl_evd_lend(struct kdapl_evd *evd, int delta)
{
	struct kdapl_ia *ia = evd->obj.ia;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	evd->lent += delta;
	spin_unlock_irqrestore(&ia->lock, flags);
}

/* The consumer's EVD for asynchronous events, or one of our own. */
static DAT_RETURN kdapl_ia_async_evd(struct kdapl_ia *ia, DAT_COUNT qlen,
				     DAT_EVD_HANDLE *handle)
{
	struct kdapl_evd *evd;
	int err;

	if (*handle) {
		evd = kdapl_obj_get(*handle, DAT_HANDLE_TYPE_EVD);
		if (!evd)
			goto bad;
		if (!(evd->flags & DAT_EVD_ASYNC_FLAG)) {
			kdapl_obj_put(&evd->obj);
			return DAT_ERROR(DAT_INVALID_PARAMETER,
					 DAT_INVALID_ARG3);
		}
		if (!kdapl_obj_use(&evd->obj)) {
			kdapl_obj_put(&evd->obj);
			goto bad;
		}
		ia->async_evd = evd;
		kdapl_evd_lend(evd, 1);
		return DAT_SUCCESS;
	}
	evd = kdapl_evd_alloc(ia, qlen, DAT_EVD_ASYNC_FLAG, &err);
	if (!evd)
		return kdapl_errno_to_dat(err);
	kdapl_obj_use(&evd->obj);
	ia->async_evd = evd;
	ia->own_async_evd = true;
	kdapl_obj_publish(&evd->obj);
	*handle = kdapl_handle(&evd->obj);
	return DAT_SUCCESS;
bad:
	return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
}

static DAT_RETURN kdapl_ia_check_version(DAT_UINT32 major, DAT_UINT32 minor,
					 DAT_BOOLEAN thread_safety)
{
	if (major != DAT_VERSION_MAJOR)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
	if (minor > DAT_VERSION_MINOR)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND);
	if (thread_safety != DAT_THREADSAFE)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND,
				 DAT_THREAD_SAFETY_NOT_FOUND);
	return DAT_SUCCESS;
}

static DAT_RETURN kdapl_ia_open(struct kdapl_hca *hca, u32 port,
				DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
				DAT_IA_HANDLE *ia_handle, const char *consumer)
{
	struct kdapl_ia *ia;
	DAT_RETURN ret;
	int err;

	if (!*async_evd && qlen > hca->max_qlen)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	ia = kdapl_ia_alloc(hca, port, consumer, &err);
	if (!ia)
		return kdapl_errno_to_dat(err);
	ret = kdapl_errno_to_dat(kdapl_ia_refresh_addrs(ia));
	if (ret == DAT_SUCCESS)
		ret = kdapl_ia_async_evd(ia, qlen, async_evd);
	if (ret != DAT_SUCCESS) {
		kdapl_obj_put(&ia->obj);
		return ret;
	}
	/* Events may arrive as soon as the device knows the IA. */
	kdapl_hca_add_ia(hca, ia);
	*ia_handle = kdapl_handle(&ia->obj);
	kdapl_obj_publish(&ia->obj);
	return DAT_SUCCESS;
}

DAT_RETURN __dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_evd_min_qlen,
			  DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia,
			  DAT_UINT32 dat_major, DAT_UINT32 dat_minor,
			  DAT_BOOLEAN dat_thread_safety, const char *consumer)
{
	struct kdapl_hca *hca;
	DAT_RETURN ret;
	u32 port;

	might_sleep();
	if (!name)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!async_evd)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!*async_evd && async_evd_min_qlen <= 0)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);

	hca = kdapl_hca_find(name, &port);
	if (!hca)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND,
				 DAT_NAME_NOT_REGISTERED);
	ret = kdapl_ia_check_version(dat_major, dat_minor, dat_thread_safety);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (!kdapl_hca_enter(hca))
		goto out;
	ret = kdapl_ia_open(hca, port, async_evd_min_qlen, async_evd, ia,
			    consumer);
	kdapl_hca_leave(hca);
out:
	kdapl_hca_put(hca);
	return ret;
}
EXPORT_SYMBOL(__dat_ia_openv);

DAT_RETURN (dat_ia_openv)(const DAT_NAME_PTR name, DAT_COUNT async_evd_min_qlen,
			  DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia,
			  DAT_UINT32 dat_major, DAT_UINT32 dat_minor,
			  DAT_BOOLEAN dat_thread_safety)
{
	return __dat_ia_openv(name, async_evd_min_qlen, async_evd, ia,
			      dat_major, dat_minor, dat_thread_safety,
			      KBUILD_MODNAME);
}
EXPORT_SYMBOL(dat_ia_openv);

/* Tell the EVD for asynchronous events; false if the IA was closed meanwhile. */
static bool kdapl_ia_async_handle(struct kdapl_ia *ia, DAT_EVD_HANDLE *handle)
{
	struct kdapl_evd *evd;

	rcu_read_lock();
	evd = READ_ONCE(ia->async_evd);
	if (evd && handle)
		*handle = kdapl_handle(&evd->obj);
	rcu_read_unlock();
	return evd;
}

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd,
			DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr,
			DAT_PROVIDER_ATTR_MASK provider_attr_mask,
			DAT_PROVIDER_ATTR *provider_attr)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_ia *ia;

	might_sleep();
	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (ia_attr_mask & ~DAT_IA_FIELD_ALL) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	} else if (ia_attr_mask && !ia_attr) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	} else if (provider_attr_mask & ~DAT_PROVIDER_FIELD_ALL) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	} else if (provider_attr_mask && !provider_attr) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	} else if (!kdapl_hca_enter(ia->hca)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
	} else {
		if (ia_attr_mask) {
			mutex_lock(&ia->mutex);
			ret = kdapl_errno_to_dat(kdapl_ia_refresh_addrs(ia));
			mutex_unlock(&ia->mutex);
		}
		kdapl_hca_leave(ia->hca);
	}
	if (ret == DAT_SUCCESS && !kdapl_ia_async_handle(ia, async_evd))
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (ret == DAT_SUCCESS) {
		if (ia_attr_mask)
			kdapl_ia_attr(ia, ia_attr);
		if (provider_attr_mask)
			kdapl_provider_attr(ia, provider_attr);
	}
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ia_query);

/* For Endpoints whose queues have no EVD, since a QP needs CQs. */
struct kdapl_evd *kdapl_ia_null_evd(struct kdapl_ia *ia)
{
	struct kdapl_evd *evd;
	int err;

	mutex_lock(&ia->null_mutex);
	if (!ia->null_evd)
		ia->null_evd = kdapl_evd_alloc(ia, 1, DAT_EVD_DTO_FLAG, &err);
	evd = ia->null_evd;
	mutex_unlock(&ia->null_mutex);
	return evd;
}

/* Objects go before those they depend on. */
static const u8 kdapl_close_order[] = {
	DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_CSP,
	DAT_HANDLE_TYPE_CR, DAT_HANDLE_TYPE_EP, DAT_HANDLE_TYPE_RMR,
	DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_SRQ, DAT_HANDLE_TYPE_EVD,
	DAT_HANDLE_TYPE_PZ,
};

/*
 * An object of a type that the consumer has not freed, referenced. Skips @n of
 * them, and what we keep for ourselves.
 */
static struct kdapl_obj *kdapl_ia_nth(struct kdapl_ia *ia, u8 type, int n)
{
	struct kdapl_obj *obj, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	list_for_each_entry(obj, &ia->objs, ia_link) {
		if (kdapl_type(obj) != type)
			continue;
		if (!kdapl_handle_valid(kdapl_handle(obj), type) ||
		    obj == &ia->async_evd->obj ||
		    (ia->reserved_lmr && obj == &ia->reserved_lmr->obj))
			continue;
		if (n-- || !kref_get_unless_zero(&obj->ref))
			continue;
		found = obj;
		break;
	}
	spin_unlock_irqrestore(&ia->lock, flags);
	return found;
}

static bool kdapl_ia_in_use(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kdapl_close_order); i++) {
		obj = kdapl_ia_nth(ia, kdapl_close_order[i], 0);
		if (obj) {
			kdapl_obj_put(obj);
			return true;
		}
	}
	return false;
}

/* Also one that serves another IA, which keeps it but gets no upcall. */
static void kdapl_ia_free_evd(struct kdapl_evd *evd)
{
	if (dat_evd_free(kdapl_handle(&evd->obj)) == DAT_SUCCESS ||
	    !kdapl_obj_unpublish(&evd->obj))
		return;
	kdapl_upcall_stop(evd);
	kdapl_obj_put(&evd->obj);
}

static void kdapl_ia_free_one(struct kdapl_obj *obj, u8 type)
{
	DAT_HANDLE handle = kdapl_handle(obj);

	switch (type) {
	case DAT_HANDLE_TYPE_PSP:
		dat_psp_free(handle);
		break;
	case DAT_HANDLE_TYPE_RSP:
		dat_rsp_free(handle);
		break;
	case DAT_HANDLE_TYPE_CSP:
		dat_csp_free(handle);
		break;
	case DAT_HANDLE_TYPE_CR:
		dat_cr_reject(handle, 0, NULL);
		break;
	case DAT_HANDLE_TYPE_EP:
		kdapl_ep_free(container_of(obj, struct kdapl_ep, obj));
		break;
	case DAT_HANDLE_TYPE_RMR:
		dat_rmr_free(handle);
		break;
	case DAT_HANDLE_TYPE_LMR:
		dat_lmr_free(handle);
		break;
	case DAT_HANDLE_TYPE_SRQ:
		dat_srq_free(handle);
		break;
	case DAT_HANDLE_TYPE_EVD:
		kdapl_ia_free_evd(container_of(obj, struct kdapl_evd, obj));
		break;
	case DAT_HANDLE_TYPE_PZ:
		dat_pz_free(handle);
		break;
	}
}

/* Free all that the consumer left. */
static void kdapl_ia_free_all(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj;
	unsigned int i;
	int n;

	/* No upcall sees its world vanish. */
	for (n = 0; (obj = kdapl_ia_nth(ia, DAT_HANDLE_TYPE_EVD, n)); n++) {
		kdapl_upcall_stop(container_of(obj, struct kdapl_evd, obj));
		kdapl_obj_put(obj);
	}
	for (i = 0; i < ARRAY_SIZE(kdapl_close_order); i++) {
		n = 0;
		while ((obj = kdapl_ia_nth(ia, kdapl_close_order[i], n))) {
			kdapl_ia_free_one(obj, kdapl_close_order[i]);
			/* An LMR of an LMR, say, goes in the second round. */
			if (kdapl_handle_valid(kdapl_handle(obj),
					       kdapl_close_order[i]))
				n++;
			else
				n = 0;
			kdapl_obj_put(obj);
		}
	}
}

/* Objects that are still to be released; not those that outlive the IA. */
static unsigned int kdapl_ia_left(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj;
	unsigned int n = 0;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	list_for_each_entry(obj, &ia->objs, ia_link) {
		if (ia->null_evd && obj == &ia->null_evd->obj)
			continue;
		if (ia->async_evd && obj == &ia->async_evd->obj)
			continue;
		if (kdapl_type(obj) == DAT_HANDLE_TYPE_EVD &&
		    container_of(obj, struct kdapl_evd, obj)->lent)
			continue;
		n++;
	}
	spin_unlock_irqrestore(&ia->lock, flags);
	return n;
}

#define KDAPL_CLOSE_RETRY	max(HZ / 50, 1)

/* Free what is there, and what a call that was running has yet made. */
static void kdapl_ia_drain(struct kdapl_ia *ia)
{
	do {
		kdapl_ia_free_all(ia);
	} while (!wait_event_timeout(ia->wait, !kdapl_ia_left(ia),
				     KDAPL_CLOSE_RETRY));
}

/* Everything is freed: let go of what belongs to the IA itself. */
static void kdapl_ia_finish(struct kdapl_ia *ia)
{
	struct kdapl_evd *async = ia->async_evd, *none = ia->null_evd;

	if (ia->reserved_lmr)
		kdapl_lmr_free_reserved(ia);
	kdapl_ia_drain(ia);
	if (none) {
		ia->null_evd = NULL;
		kdapl_obj_put(&none->obj);
	}
	kdapl_async_withdraw(&ia->catastrophic);
	WRITE_ONCE(ia->async_evd, NULL);
	if (!ia->own_async_evd) {
		kdapl_evd_lend(async, -1);
		kdapl_dep_put(&async->obj);
	} else if (kdapl_obj_unpublish(&async->obj)) {
		kdapl_upcall_stop(async);
		kdapl_obj_put(&async->obj);
	}
	wait_event(ia->wait, !kdapl_ia_left(ia));
}

/* From now on there can be new objects, or not. */
static void kdapl_ia_set_closing(struct kdapl_ia *ia, bool closing)
{
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	ia->closing = closing;
	spin_unlock_irqrestore(&ia->lock, flags);
}

/*
 * Decide whether the IA closes; only one call gets DAT_SUCCESS. One that finds
 * the IA in use has not disturbed those that make objects.
 */
static DAT_RETURN kdapl_ia_close_begin(struct kdapl_ia *ia, bool graceful)
{
	DAT_RETURN ret;

	mutex_lock(&ia->close_mutex);
	if (!kdapl_handle_valid(kdapl_handle(&ia->obj), DAT_HANDLE_TYPE_IA)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
		goto out;
	}
	ret = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
	if (graceful && kdapl_ia_in_use(ia))
		goto out;
	kdapl_ia_set_closing(ia, true);
	/* There may be a new object since. */
	if (graceful && kdapl_ia_in_use(ia)) {
		kdapl_ia_set_closing(ia, false);
		goto out;
	}
	ret = DAT_SUCCESS;
	kdapl_obj_unpublish(&ia->obj);
out:
	mutex_unlock(&ia->close_mutex);
	return ret;
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags)
{
	struct kdapl_upcall_wait wait;
	struct kdapl_ia *ia;
	DAT_RETURN ret;

	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (flags != DAT_CLOSE_ABRUPT_FLAG &&
	    flags != DAT_CLOSE_GRACEFUL_FLAG) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	if (!kdapl_upcall_wait_begin(&wait, NULL, ia)) {
		ret = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
		goto out;
	}
	might_sleep();
	ret = kdapl_ia_close_begin(ia, flags == DAT_CLOSE_GRACEFUL_FLAG);
	if (ret == DAT_SUCCESS) {
		kdapl_ia_finish(ia);
		kdapl_obj_put(&ia->obj);
	}
	kdapl_upcall_wait_end(&wait);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ia_close);

/* An object that this pass of removal has not seen, referenced and marked. */
static struct kdapl_obj *kdapl_ia_unstopped(struct kdapl_ia *ia, u8 type,
					    u8 pass)
{
	struct kdapl_obj *obj, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	list_for_each_entry(obj, &ia->objs, ia_link) {
		if (kdapl_type(obj) != type || obj->stopped >= pass ||
		    !kref_get_unless_zero(&obj->ref))
			continue;
		obj->stopped = pass;
		found = obj;
		break;
	}
	spin_unlock_irqrestore(&ia->lock, flags);
	return found;
}

static void kdapl_stop_one(struct kdapl_obj *obj, u8 type, u8 pass)
{
	struct kdapl_ep *ep;

	switch (type) {
	case DAT_HANDLE_TYPE_CR:
		kdapl_cr_cancel(container_of(obj, struct kdapl_cr, obj));
		break;
	case DAT_HANDLE_TYPE_EP:
		ep = container_of(obj, struct kdapl_ep, obj);
		if (pass > 1)
			kdapl_ep_device_gone(ep);
		else
			kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN);
		break;
	default:
		kdapl_sp_close(container_of(obj, struct kdapl_sp, obj));
	}
}

/**
 * kdapl_ia_stop - the device is leaving: end all that talks to peers
 * @ia: the IA
 * @pass: 1: do not wait, so that all ends in parallel and two ends on this
 *	device do not wait for each other; 2: wait
 */
void kdapl_ia_stop(struct kdapl_ia *ia, u8 pass)
{
	static const u8 order[] = {
		DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_CSP,
		DAT_HANDLE_TYPE_CR, DAT_HANDLE_TYPE_EP,
	};
	struct kdapl_obj *obj;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(order); i++) {
		while ((obj = kdapl_ia_unstopped(ia, order[i], pass))) {
			kdapl_stop_one(obj, order[i], pass);
			kdapl_obj_put(obj);
		}
	}
}

static void kdapl_strip_one(struct kdapl_obj *obj, u8 type)
{
	switch (type) {
	case DAT_HANDLE_TYPE_PSP:
	case DAT_HANDLE_TYPE_RSP:
	case DAT_HANDLE_TYPE_CSP:
		kdapl_sp_close(container_of(obj, struct kdapl_sp, obj));
		break;
	case DAT_HANDLE_TYPE_RMR:
		kdapl_rmr_device_gone(container_of(obj, struct kdapl_rmr, obj));
		break;
	case DAT_HANDLE_TYPE_LMR:
		kdapl_lmr_device_gone(container_of(obj, struct kdapl_lmr, obj));
		break;
	case DAT_HANDLE_TYPE_SRQ:
		kdapl_srq_hw_destroy(container_of(obj, struct kdapl_srq, obj));
		break;
	case DAT_HANDLE_TYPE_EVD:
		kdapl_cq_destroy_all(container_of(obj, struct kdapl_evd, obj));
		break;
	case DAT_HANDLE_TYPE_PZ:
		kdapl_pz_device_gone(container_of(obj, struct kdapl_pz, obj));
		break;
	}
}

/*
 * Take the verbs objects away from every DAT object, also from one that only
 * waits to be released. With hca->sem held for writing nothing leaves the list;
 * it may grow by nothing either.
 */
void kdapl_ia_strip(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kdapl_close_order); i++)
		list_for_each_entry(obj, &ia->objs, ia_link)
			if (kdapl_type(obj) == kdapl_close_order[i])
				kdapl_strip_one(obj, kdapl_close_order[i]);
}
