// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interface Adapters: dat_ia_openv() and dat_ia_query(). ia_close.c closes them.
 *
 * An IA is one consumer's handle of a port of a device. It references the
 * device (struct kdapl_hca); each object that is created in the IA references the
 * IA. Both calls sleep and run within kdapl_hca_enter().
 */
#include "addr.h"
#include "evd.h"
#include "ia.h"

static void kdapl_ia_release(struct kdapl_obj *obj)
{
	struct kdapl_ia *ia = container_of(obj, struct kdapl_ia, obj);
	struct kdapl_hca *hca = ia->hca;

	kdapl_hca_del_ia(ia);
	kvfree(ia->addr);
	kdapl_obj_free(obj);
	kdapl_hca_put(hca);
}

static void kdapl_ia_init(struct kdapl_obj *obj)
{
	struct kdapl_ia *ia = container_of(obj, struct kdapl_ia, obj);

	spin_lock_init(&ia->lock);
	mutex_init(&ia->mutex);
	mutex_init(&ia->null_mutex);
	mutex_init(&ia->close_mutex);
	INIT_LIST_HEAD(&ia->objs);
	init_waitqueue_head(&ia->wait);
	spin_lock_init(&ia->linger_lock);
	kdapl_async_init(&ia->catastrophic, &ia->obj,
			 DAT_ASYNC_ERROR_IA_CATASTROPHIC,
			 DAT_IA_CATASTROPHIC_ERROR);
}

static const struct kdapl_obj_ops kdapl_ia_ops = {
	.init = kdapl_ia_init,
	.release = kdapl_ia_release,
};

/* Allocate an IA without addresses and EVD; NULL with an errno in *@err. */
static struct kdapl_ia *kdapl_ia_alloc(struct kdapl_hca *hca, u32 port,
				       const char *consumer,
				       const void *opener, int *err)
{
	struct kdapl_ia *ia;

	ia = kdapl_obj_alloc(sizeof(*ia), DAT_HANDLE_TYPE_IA, NULL, &kdapl_ia_ops);
	*err = PTR_ERR_OR_ZERO(ia);
	if (*err)
		return NULL;
	kref_get(&hca->ref);
	ia->hca = hca;
	ia->port = port;
	ia->iwarp = rdma_protocol_iwarp(hca->dev, port);
	ia->reads_to_key = kdapl_ia_wants_read_key(ia);
	strscpy(ia->consumer, consumer, sizeof(ia->consumer));
	ia->opener = opener;
	ia->since = ktime_get_real_seconds();
	return ia;
}

/*
 * Give @ia its EVD for asynchronous events: the EVD *@handle; if that is NULL, a new one
 * of length @qlen, whose handle is stored there.
 */
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
		kdapl_evd_use_async(evd, 1);
		return DAT_SUCCESS;
	}
	evd = kdapl_evd_alloc(ia, qlen, DAT_EVD_ASYNC_FLAG, &err);
	if (!evd)
		return kdapl_errno_to_dat(err);
	ia->async_evd = evd;
	ia->own_async_evd = true;
	kdapl_obj_publish(&evd->obj);
	kdapl_obj_use(&evd->obj);
	*handle = kdapl_handle(&evd->obj);
	return DAT_SUCCESS;
bad:
	return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
}

/* Check that the consumer was compiled for an API that this module provides. */
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

/* Create and publish an IA. */
static DAT_RETURN kdapl_ia_open(struct kdapl_hca *hca, u32 port,
				DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
				DAT_IA_HANDLE *ia_handle, const char *consumer,
				const void *opener)
{
	struct kdapl_ia *ia;
	DAT_RETURN ret;
	int err;

	lockdep_assert_held(&hca->sem);

	if (!*async_evd && qlen > hca->max_qlen)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	ia = kdapl_ia_alloc(hca, port, consumer, opener, &err);
	if (!ia)
		return kdapl_errno_to_dat(err);
	mutex_lock(&ia->mutex);
	ret = kdapl_errno_to_dat(kdapl_ia_refresh_addrs(ia));
	mutex_unlock(&ia->mutex);
	if (ret == DAT_SUCCESS)
		ret = kdapl_ia_async_evd(ia, qlen, async_evd);
	if (ret != DAT_SUCCESS) {
		kdapl_obj_put(&ia->obj);
		return ret;
	}
	/*
	 * kdapl_device_event() posts to ia->async_evd as soon as the IA is on the
	 * device's list, so the IA must be complete.
	 */
	kdapl_hca_add_ia(hca, ia);
	*ia_handle = kdapl_handle(&ia->obj);
	kdapl_obj_publish(&ia->obj);
	return DAT_SUCCESS;
}

DAT_RETURN __dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_evd_min_qlen,
			  DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia,
			  DAT_UINT32 dat_major, DAT_UINT32 dat_minor,
			  DAT_BOOLEAN dat_thread_safety, const char *consumer,
			  const void *opener)
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
			    consumer, opener);
	kdapl_hca_leave(hca);
out:
	kdapl_hca_put(hca);
	return ret;
}
EXPORT_SYMBOL(__dat_ia_openv);

/*
 * For consumers that take the address of the function. The return address names the
 * module until kdapl_unload_adopt() replaces it.
 */
DAT_RETURN (dat_ia_openv)(const DAT_NAME_PTR name, DAT_COUNT async_evd_min_qlen,
			  DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia,
			  DAT_UINT32 dat_major, DAT_UINT32 dat_minor,
			  DAT_BOOLEAN dat_thread_safety)
{
	return __dat_ia_openv(name, async_evd_min_qlen, async_evd, ia,
			      dat_major, dat_minor, dat_thread_safety,
			      KBUILD_MODNAME, __builtin_return_address(0));
}
EXPORT_SYMBOL(dat_ia_openv);

/*
 * Store the handle of the EVD for asynchronous events, unless @handle is NULL.
 * Return false if dat_ia_close() has closed @ia meanwhile.
 */
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
