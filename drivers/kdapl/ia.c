// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interface Adapters: open and query.
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
	ia->reads_to_key = kdapl_sink_wants_key(ia);
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
void kdapl_evd_lend(struct kdapl_evd *evd, int delta)
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
