// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* LMRs for fast registration: dat_lmr_allocate() creates them, mem_fmr.c binds them. */
#include "ia.h"
#include "mem.h"
#include "pz.h"

static int kdapl_lmr_alloc_fmr(struct kdapl_ia *ia, struct kdapl_pz *pz,
			       int max_pages, DAT_LMR_SCOPE scope,
			       struct kdapl_lmr **out)
{
	struct kdapl_lmr *lmr;
	struct ib_mr *mr;
	int err;

	lmr = kdapl_lmr_alloc(ia, pz);
	if (IS_ERR(lmr))
		return PTR_ERR(lmr);
	lmr->fmr = true;
	lmr->max_pages = max_pages;
	lmr->scope = scope;
	if (scope == DAT_LMR_SCOPE_EP)
		lmr->zone = KDAPL_NO_ZONE;
	err = sg_alloc_table(&lmr->sgt, max_pages, GFP_KERNEL);
	if (err)
		goto err_put;
	mr = kdapl_mr_alloc(&lmr->obj, lmr->pz, lmr->max_pages);
	if (IS_ERR(mr)) {
		err = PTR_ERR(mr);
		goto err_put;
	}
	lmr->mr = mr;
	*out = lmr;
	return 0;

err_put:
	kdapl_obj_put(&lmr->obj);
	return err;
}

static DAT_RETURN kdapl_fmr_make(struct kdapl_ia *ia, struct kdapl_pz *pz,
				 DAT_COUNT max_pages, DAT_LMR_SCOPE scope,
				 struct kdapl_lmr **lmr)
{
	struct ib_device *dev = ia->hca->dev;
	int err;

	if (!kdapl_can_register(&dev->attrs))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (max_pages <= 0 ||
	    (u32)max_pages > dev->attrs.max_fast_reg_page_list_len)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (scope != DAT_LMR_SCOPE_EP && scope != DAT_LMR_SCOPE_PZ &&
	    scope != DAT_LMR_SCOPE_ANY)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	err = kdapl_lmr_alloc_fmr(ia, pz, max_pages, scope, lmr);
	if (err)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, err == -ENOMEM ?
				 DAT_RESOURCE_MEMORY : DAT_RESOURCE_MEMORY_REGION);
	return DAT_SUCCESS;
}

DAT_RETURN dat_lmr_allocate(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			    DAT_COUNT max_pages, DAT_LMR_SCOPE lmr_scope,
			    DAT_LMR_HANDLE *lmr_handle)
{
	struct kdapl_lmr *lmr;
	struct kdapl_ia *ia;
	struct kdapl_pz *pz;
	DAT_RETURN ret;

	might_sleep();
	ret = kdapl_pz_get(ia_handle, pz_handle, &pz);
	if (ret != DAT_SUCCESS)
		return ret;
	ia = pz->obj.ia;
	if (!lmr_handle) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	} else if (!kdapl_hca_enter(ia->hca)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	} else {
		ret = kdapl_fmr_make(ia, pz, max_pages, lmr_scope, &lmr);
		kdapl_hca_leave(ia->hca);
	}
	if (ret == DAT_SUCCESS) {
		*lmr_handle = kdapl_handle(&lmr->obj);
		kdapl_obj_publish(&lmr->obj);
	} else {
		kdapl_obj_unuse(&pz->obj);
	}
	kdapl_obj_put(&pz->obj);
	return ret;
}
EXPORT_SYMBOL(dat_lmr_allocate);
