// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Protection Zones: dat_pz_create(), dat_pz_query(), dat_pz_free().
 *
 * A PZ owns a protection domain of the device. Every object in the PZ holds a use of the
 * PZ, which makes dat_pz_free() fail, and a reference, which keeps the domain until the
 * object has been released in the background. The only locks of the PZ are those of its
 * service connection (pz_svc.c) and its mappings (pz_sg.c).
 */
#include "ia.h"
#include "pz.h"
#include "pz_sg.h"

/* Destroy the verbs objects of @pz, unless kdapl_pz_strip() has done so. */
static void kdapl_pz_destroy(struct kdapl_pz *pz)
{
	mutex_lock(&pz->svc_mutex);
	kdapl_svc_destroy(pz);
	mutex_unlock(&pz->svc_mutex);
	if (pz->pd)
		ib_dealloc_pd(pz->pd);
	pz->pd = NULL;
}

static void kdapl_pz_release(struct kdapl_obj *obj)
{
	struct kdapl_pz *pz = container_of(obj, struct kdapl_pz, obj);

	kdapl_pz_destroy(pz);
	kdapl_sg_cleanup(pz);
	kdapl_obj_free(obj);
}

static DAT_RETURN kdapl_pz_obj_free(struct kdapl_obj *obj)
{
	return dat_pz_free(kdapl_handle(obj));
}

/*
 * The device is leaving. kdapl_ia_strip() strips PZs last, so no verbs object uses the
 * protection domain any more.
 */
static void kdapl_pz_strip(struct kdapl_obj *obj)
{
	kdapl_pz_destroy(container_of(obj, struct kdapl_pz, obj));
}

static void kdapl_pz_init(struct kdapl_obj *obj)
{
	struct kdapl_pz *pz = container_of(obj, struct kdapl_pz, obj);

	mutex_init(&pz->svc_mutex);
	spin_lock_init(&pz->sg_lock);
}

static const struct kdapl_obj_ops kdapl_pz_ops = {
	.init = kdapl_pz_init,
	.release = kdapl_pz_release,
	.free = kdapl_pz_obj_free,
	.strip = kdapl_pz_strip,
};

/**
 * kdapl_pz_get - take a dependency on the PZ of a new object
 * @ia_handle: handle of the IA that must own the PZ
 * @pz_handle: handle of the PZ
 * @pz: set to the PZ, used and referenced; its reference keeps the IA
 *
 * Context: Any.
 * Return: %DAT_SUCCESS, or the error for the invalid handle
 */
DAT_RETURN kdapl_pz_get(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			struct kdapl_pz **pz)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	*pz = kdapl_dep_get(pz_handle, DAT_HANDLE_TYPE_PZ, ia);
	kdapl_obj_put(&ia->obj);
	return *pz ? DAT_SUCCESS :
		     DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
}

/* Allocate a PZ of @ia with its protection domain; it is not published yet. */
static int kdapl_pz_alloc(struct kdapl_ia *ia, struct kdapl_pz **out)
{
	struct kdapl_pz *pz;
	struct ib_pd *pd;
	int err;

	pz = kdapl_obj_alloc(sizeof(*pz), DAT_HANDLE_TYPE_PZ, ia, &kdapl_pz_ops);
	if (IS_ERR(pz))
		return PTR_ERR(pz);
	err = kdapl_sg_setup(pz);
	if (err) {
		kdapl_obj_put(&pz->obj);
		return err;
	}
	pd = __ib_alloc_pd(ia->hca->dev, 0, ia->consumer);
	if (IS_ERR(pd)) {
		kdapl_obj_put(&pz->obj);
		return PTR_ERR(pd);
	}
	pz->pd = pd;
	pz->lkey = pd->local_dma_lkey;
	*out = pz;
	return 0;
}

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_ia *ia;
	struct kdapl_pz *pz;
	int err;

	might_sleep();
	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!pz_handle) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out_put;
	}
	if (!kdapl_hca_enter(ia->hca)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
		goto out_put;
	}
	err = kdapl_pz_alloc(ia, &pz);
	if (err) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_PROTECTION_DOMAIN);
	} else {
		*pz_handle = kdapl_handle(&pz->obj);
		kdapl_obj_publish(&pz->obj);
	}
	kdapl_hca_leave(ia->hca);
out_put:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_pz_create);

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle,
			DAT_PZ_PARAM_MASK pz_param_mask,
			DAT_PZ_PARAM *pz_param)
{
	DAT_RETURN ret;
	struct kdapl_pz *pz;

	rcu_read_lock();
	pz = kdapl_find_queried(pz_handle, DAT_HANDLE_TYPE_PZ,
				pz_param_mask & ~DAT_PZ_FIELD_ALL,
				pz_param, &ret);
	if (pz)
		pz_param->ia_handle = kdapl_handle(&pz->obj.ia->obj);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_pz_query);

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_pz *pz;

	might_sleep();
	pz = kdapl_obj_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	if (!pz)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	kdapl_sg_drain(pz);
	if (kdapl_obj_retire(&pz->obj)) {
		if (kdapl_obj_unpublish(&pz->obj))
			kdapl_obj_put(&pz->obj);
	} else if (atomic_read(&pz->obj.users) < 0) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	} else {
		ret = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	}
	kdapl_obj_put(&pz->obj);
	return ret;
}
EXPORT_SYMBOL(dat_pz_free);
