// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Local Memory Regions: dat_lmr_kcreate(), dat_lmr_query() and the reserved LMR.
 * Fast registration is in mem_fmr.c, dat_lmr_free() in mem_posted.c.
 *
 * Memory that only this side accesses, and that is one range of DMA addresses,
 * is not registered: the PD's local_dma_lkey covers all memory, and the posting
 * calls check each segment against the LMR. Memory in pieces, or open to the
 * peer, is registered as an MR with exactly the rights and the range that the
 * consumer asked for. A peer never learns a key for all memory.
 *
 * dat_lmr_free() frees the MR and unmaps the scatter list before it returns, since the
 * consumer may then reuse the memory; the object is released later. lmr->lock protects
 * the MR and the state that completions change; ia->mutex protects ia->reserved_lmr.
 */
#include "ep.h"
#include "ia.h"
#include "mem.h"
#include "pz.h"

/* The arguments of dat_lmr_kcreate(). */
struct kdapl_lmr_spec {
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION region;
	u64 len;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VA_TYPE va_type;
	DAT_MEM_OPTIMIZE_FLAGS opt;
	struct kdapl_lmr *origin;	/* provides the memory, or NULL */
};

/* Close the memory to the device: free the MR and unmap the scatter list. */
static void kdapl_lmr_teardown(struct kdapl_lmr *lmr)
{
	struct ib_mr *mr;
	unsigned long flags;

	lockdep_assert_held(&lmr->obj.ia->hca->sem);

	WRITE_ONCE(lmr->valid, false);
	spin_lock_irqsave(&lmr->lock, flags);
	mr = lmr->mr;
	lmr->mr = NULL;
	spin_unlock_irqrestore(&lmr->lock, flags);
	if (mr)
		kdapl_mr_free(&lmr->obj, mr);
	kdapl_region_unmap(lmr);
	kdapl_region_part(lmr);
}

static void kdapl_lmr_strip(struct kdapl_obj *obj)
{
	kdapl_lmr_teardown(container_of(obj, struct kdapl_lmr, obj));
}

static DAT_RETURN kdapl_lmr_obj_free(struct kdapl_obj *obj)
{
	return dat_lmr_free(kdapl_handle(obj));
}

static void kdapl_lmr_release(struct kdapl_obj *obj)
{
	struct kdapl_lmr *lmr = container_of(obj, struct kdapl_lmr, obj);

	kdapl_lmr_teardown(lmr);
	sg_free_table(&lmr->sgt);
	if (lmr->pz)
		kdapl_obj_put(&lmr->pz->obj);
	kdapl_obj_free(obj);
}

/*
 * A peer has invalidated @rkey: unbind the LMR. Not if @rkey belongs to an earlier binding. While
 * dat_lmr_invalidate() is posted its completion unbinds the LMR, or kdapl_lmr_unclaim() if the
 * post is refused.
 */
static void kdapl_lmr_invalidated(struct kdapl_obj *obj, u32 rkey)
{
	struct kdapl_lmr *lmr = container_of(obj, struct kdapl_lmr, obj);
	unsigned long flags;

	spin_lock_irqsave(&lmr->lock, flags);
	if (lmr->rmr_context == rkey) {
		WRITE_ONCE(lmr->valid, false);
		lmr->invalidated = true;
		/* Other LMRs stay mapped: RMRs may be bound to their pages. */
		if (!lmr->fmr)
			lmr->rmr_context = 0;
		else if (!lmr->closing)
			kdapl_lmr_unbind(lmr);
	}
	spin_unlock_irqrestore(&lmr->lock, flags);
}

static void kdapl_lmr_init(struct kdapl_obj *obj)
{
	struct kdapl_lmr *lmr = container_of(obj, struct kdapl_lmr, obj);

	spin_lock_init(&lmr->lock);
	INIT_WORK(&lmr->recycle, kdapl_lmr_recycle);
}

static const struct kdapl_obj_ops kdapl_lmr_ops = {
	.init = kdapl_lmr_init,
	.release = kdapl_lmr_release,
	.free = kdapl_lmr_obj_free,
	.strip = kdapl_lmr_strip,
	.invalidated = kdapl_lmr_invalidated,
	.request_done = kdapl_lmr_request_done,
};

/*
 * Allocate an LMR of @ia without memory; it references @pz, which may be NULL. Return the
 * LMR, not published yet, or an ERR_PTR. Context: Process context.
 */
struct kdapl_lmr *kdapl_lmr_alloc(struct kdapl_ia *ia, struct kdapl_pz *pz)
{
	struct kdapl_lmr *lmr;

	lmr = kdapl_obj_alloc(sizeof(*lmr), DAT_HANDLE_TYPE_LMR, ia, &kdapl_lmr_ops);
	if (IS_ERR(lmr))
		return lmr;
	if (pz)
		kref_get(&pz->obj.ref);
	lmr->pz = pz;
	lmr->zone = pz ?: KDAPL_NO_ZONE;
	lmr->context = (lmr->obj.handle & KDAPL_INDEX_MASK) |
		       lmr->obj.handle >> KDAPL_GEN_SHIFT << KDAPL_INDEX_BITS;
	return lmr;
}

/* Keep kdapl_lmr_error() from blaming a device error on the arguments. */
static int kdapl_device_errno(int err)
{
	return err == -EINVAL || err == -ERANGE ? -EIO : err;
}

static int kdapl_lmr_register(struct kdapl_lmr *lmr)
{
	bool remote = lmr->priv & KDAPL_PRIV_REMOTE;
	u64 iova = remote ? lmr->base : lmr->va;
	struct ib_pd *pd = lmr->pz->pd;
	struct ib_mr *mr;
	int access, err;
	u64 pages;

	if (!kdapl_can_register(&pd->device->attrs))
		return -EOPNOTSUPP;
	pages = DIV_ROUND_UP_ULL(offset_in_page(lmr->va) + lmr->len, PAGE_SIZE);
	/* Adjoining pieces may be smaller than a page. */
	pages = max_t(u64, pages, lmr->sgt.nents);
	if (pages > pd->device->attrs.max_fast_reg_page_list_len)
		return -ERANGE;

	mr = kdapl_mr_alloc(&lmr->obj, lmr->pz, pages);
	if (IS_ERR(mr))
		return kdapl_device_errno(PTR_ERR(mr));
	lmr->mr = mr;
	access = kdapl_mr_access(lmr->priv);
	err = kdapl_mr_map(mr, &lmr->sgt, iova, lmr->len) ?:
	      kdapl_device_errno(kdapl_svc_register(lmr->pz, mr, access));
	if (err)
		return err;
	lmr->lkey = mr->lkey;
	lmr->shift = iova - lmr->base;
	lmr->rmr_context = remote ? mr->rkey : 0;
	lmr->odd = kdapl_has_quirk(lmr->obj.ia->hca, KDAPL_QUIRK_GATHER) &&
		   !kdapl_region_contiguous(lmr);
	return lmr->odd ? kdapl_region_join(lmr) : 0;
}

/* Set up the memory of @lmr. After an error the caller calls kdapl_lmr_teardown(). */
static int kdapl_lmr_setup(struct kdapl_lmr *lmr, struct kdapl_lmr *origin)
{
	int err;

	err = kdapl_region_build(lmr, origin) ?:
	      kdapl_device_errno(kdapl_region_map(lmr));
	if (err)
		return err;
	lmr->base = lmr->va_type == DAT_VA_TYPE_ZB ? 0 : lmr->va;
	if (lmr->priv & KDAPL_PRIV_REMOTE || !kdapl_region_contiguous(lmr))
		return kdapl_lmr_register(lmr);
	lmr->lkey = lmr->pz->lkey;
	lmr->shift = sg_dma_address(lmr->sgt.sgl) - lmr->base;
	return 0;
}

static DAT_RETURN kdapl_check_mem_type(DAT_MEM_TYPE type)
{
	switch (type) {
	case DAT_MEM_TYPE_VIRTUAL:
	case DAT_MEM_TYPE_LMR:
	case DAT_MEM_TYPE_PHYSICAL:
	case DAT_MEM_TYPE_PHYSICAL_VAR_PAGES:
	case DAT_MEM_TYPE_PLATFORM:
	case DAT_MEM_TYPE_IA:
		return DAT_SUCCESS;
	case DAT_MEM_TYPE_BYPASS:
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	default:
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	}
}

static bool kdapl_mem_opt_ok(DAT_MEM_OPTIMIZE_FLAGS opt)
{
	return opt == DAT_MEM_OPTIMIZE_DONT_CARE ||
	       opt == DAT_MEM_OPTIMIZE_IA ||
	       opt == DAT_MEM_OPTIMIZE_MIN_EXPOSURE ||
	       opt == DAT_MEM_OPTIMIZE_EXACT_EXPOSURE;
}

static DAT_RETURN kdapl_lmr_check(struct kdapl_ia *ia,
				  const struct kdapl_lmr_spec *spec)
{
	/* An LMR that is not open to the peer may need no registration. */
	u64 max = spec->priv & KDAPL_PRIV_REMOTE ? kdapl_max_lmr_block(ia) :
						   U32_MAX & PAGE_MASK;
	DAT_RETURN ret;

	ret = kdapl_check_mem_type(spec->type);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!kdapl_region_ok(spec->type, &spec->region, spec->len))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	/* For the LMR type, length 0 means the length of the other LMR. */
	if ((!spec->len && spec->type != DAT_MEM_TYPE_LMR) ||
	    spec->len > max)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (spec->priv & ~DAT_MEM_PRIV_ALL_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (spec->va_type != DAT_VA_TYPE_VA && spec->va_type != DAT_VA_TYPE_ZB)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	if (!kdapl_mem_opt_ok(spec->opt))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
	return DAT_SUCCESS;
}

/* If @spec names the memory of another LMR, take a dependency on that LMR. */
static DAT_RETURN kdapl_lmr_origin(struct kdapl_ia *ia,
				   struct kdapl_lmr_spec *spec)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_lmr *origin;

	if (spec->type != DAT_MEM_TYPE_LMR)
		return DAT_SUCCESS;
	origin = kdapl_obj_get(spec->region.for_lmr_handle,
			       DAT_HANDLE_TYPE_LMR);
	if (!origin)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (origin->reserved)
		ret = DAT_ERROR(DAT_RESERVED_LMR, DAT_NO_SUBTYPE);
	else if (origin->fmr && !READ_ONCE(origin->bound))
		ret = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_FREE);
	else if (origin->fmr)
		ret = DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	else if (spec->len > origin->len)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	else if (origin->obj.ia != ia || !kdapl_obj_use_unless_freed(&origin->obj))
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (ret != DAT_SUCCESS) {
		kdapl_obj_put(&origin->obj);
		return ret;
	}
	spec->origin = origin;
	spec->len = spec->len ?: origin->len;
	return DAT_SUCCESS;
}

static DAT_RETURN kdapl_lmr_error(int err)
{
	switch (err) {
	case -EINVAL:
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	case -ERANGE:
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	case -EOPNOTSUPP:
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	case -ENOMEM:
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	default:
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY_REGION);
	}
}

static DAT_RETURN kdapl_lmr_create(struct kdapl_ia *ia, struct kdapl_pz *pz,
				   const struct kdapl_lmr_spec *spec,
				   struct kdapl_lmr **out)
{
	struct kdapl_lmr *lmr;
	int err;

	if (!kdapl_hca_enter(ia->hca))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_DEVICE);
	lmr = kdapl_lmr_alloc(ia, pz);
	err = PTR_ERR_OR_ZERO(lmr);
	if (err)
		goto out_leave;
	lmr->mem_type = spec->type;
	lmr->region = spec->region;
	lmr->len = spec->len;
	lmr->priv = spec->priv;
	lmr->va_type = spec->va_type;
	err = kdapl_lmr_setup(lmr, spec->origin);
	if (err) {
		/* The consumer may reuse the memory before the release. */
		kdapl_lmr_teardown(lmr);
		kdapl_obj_put(&lmr->obj);
		goto out_leave;
	}
	/*
	 * Pairs with the acquire in kdapl_sge_build(). hca->sem is still held, so
	 * kdapl_lmr_strip() cannot have cleared ->valid earlier. litmus: lmr-valid
	 */
	smp_store_release(&lmr->valid, true);
	*out = lmr;
out_leave:
	kdapl_hca_leave(ia->hca);
	return err ? kdapl_lmr_error(err) : DAT_SUCCESS;
}

DAT_RETURN dat_lmr_kcreate(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			   DAT_REGION_DESCRIPTION region_description,
			   DAT_VLEN length, DAT_PZ_HANDLE pz_handle,
			   DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type,
			   DAT_MEM_OPTIMIZE_FLAGS mem_optimization,
			   DAT_LMR_HANDLE *lmr_handle,
			   DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context,
			   DAT_VLEN *registered_length,
			   DAT_VADDR *registered_address)
{
	struct kdapl_lmr_spec spec = {
		.type = mem_type,
		.region = region_description,
		.len = length,
		.priv = privileges,
		.va_type = va_type,
		.opt = mem_optimization,
	};
	struct kdapl_lmr *lmr;
	struct kdapl_pz *pz;
	DAT_RETURN ret;

	might_sleep();
	ret = kdapl_pz_get(ia_handle, pz_handle, &pz);
	if (ret != DAT_SUCCESS)
		return ret;
	/* DAT has no subtype for an error in the eleventh argument. */
	if (!lmr_handle)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG9);
	else if (!lmr_context || (!rmr_context && privileges & KDAPL_PRIV_REMOTE))
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG10);
	else
		ret = kdapl_lmr_check(pz->obj.ia, &spec);
	if (ret == DAT_SUCCESS)
		ret = kdapl_lmr_origin(pz->obj.ia, &spec);
	if (ret != DAT_SUCCESS)
		goto out_unuse;
	ret = kdapl_lmr_create(pz->obj.ia, pz, &spec, &lmr);
	if (spec.origin)
		kdapl_dep_put(&spec.origin->obj);
	if (ret != DAT_SUCCESS)
		goto out_unuse;
	*lmr_handle = kdapl_handle(&lmr->obj);
	*lmr_context = lmr->context;
	if (rmr_context)
		*rmr_context = lmr->rmr_context;
	if (registered_length)
		*registered_length = lmr->len;
	if (registered_address)
		*registered_address = lmr->base;
	kdapl_obj_publish(&lmr->obj);
	goto out_put;

out_unuse:
	kdapl_obj_unuse(&pz->obj);
out_put:
	kdapl_obj_put(&pz->obj);
	return ret;
}
EXPORT_SYMBOL(dat_lmr_kcreate);

static void kdapl_lmr_fill(struct kdapl_lmr *lmr, DAT_LMR_PARAM *param)
{
	unsigned long flags;

	spin_lock_irqsave(&lmr->lock, flags);
	param->ia_handle = kdapl_handle(&lmr->obj.ia->obj);
	param->mem_type = lmr->mem_type;
	param->region_desc = lmr->region;
	param->length = lmr->len;
	param->pz_handle = lmr->pz ? kdapl_handle(&lmr->pz->obj) : NULL;
	param->mem_priv = lmr->priv;
	param->va_type = lmr->va_type;
	param->lmr_context = lmr->context;
	param->rmr_context = lmr->rmr_context;
	param->registered_size = lmr->len;
	param->registered_address = lmr->base;
	param->lmr_state.fmr_support = lmr->fmr ? DAT_TRUE : DAT_FALSE;
	param->lmr_state.bound = !lmr->invalidated &&
				 (!lmr->fmr || lmr->bound) ? DAT_TRUE :
							     DAT_FALSE;
	spin_unlock_irqrestore(&lmr->lock, flags);
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle,
			 DAT_LMR_PARAM_MASK lmr_param_mask,
			 DAT_LMR_PARAM *lmr_param)
{
	DAT_RETURN ret;
	struct kdapl_lmr *lmr;

	rcu_read_lock();
	lmr = kdapl_find_queried(lmr_handle, DAT_HANDLE_TYPE_LMR,
				 lmr_param_mask & ~DAT_LMR_FIELD_ALL,
				 lmr_param, &ret);
	if (lmr)
		kdapl_lmr_fill(lmr, lmr_param);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_lmr_query);

/* Take down @lmr, which was unpublished, and drop the table's reference. */
void kdapl_lmr_drop(struct kdapl_lmr *lmr)
{
	WRITE_ONCE(lmr->valid, false);
	if (cancel_work_sync(&lmr->recycle))
		kdapl_obj_put(&lmr->obj);
	down_read(&lmr->obj.ia->hca->sem);
	kdapl_lmr_teardown(lmr);
	up_read(&lmr->obj.ia->hca->sem);
	if (lmr->pz)
		kdapl_obj_unuse(&lmr->pz->obj);
	kdapl_obj_put(&lmr->obj);
}

DAT_RETURN dat_ia_memtype_hint(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			       DAT_VLEN length,
			       DAT_MEM_OPTIMIZE_FLAGS mem_optimization,
			       DAT_VLEN *preferred_length,
			       DAT_VADDR *preferred_alignment)
{
	struct kdapl_ia *ia;
	DAT_RETURN ret;

	might_sleep();
	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!preferred_length)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	else if (!preferred_alignment)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	else
		ret = kdapl_check_mem_type(mem_type);
	if (ret != DAT_SUCCESS)
		goto out_put;
	if (!length || length > kdapl_max_lmr_block(ia)) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	} else if (!kdapl_mem_opt_ok(mem_optimization)) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	} else {
		*preferred_length = PAGE_ALIGN(length);
		*preferred_alignment = PAGE_SIZE;
	}
out_put:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ia_memtype_hint);

/*
 * Create the reserved LMR of @ia. It covers all DMA addresses; the posting calls use the
 * local_dma_lkey of the Endpoint's PD for it.
 */
static int kdapl_lmr_make_reserved(struct kdapl_ia *ia)
{
	struct kdapl_lmr *lmr;

	lockdep_assert_held(&ia->mutex);

	lmr = kdapl_lmr_alloc(ia, NULL);
	if (IS_ERR(lmr))
		return PTR_ERR(lmr);
	lmr->reserved = true;
	lmr->odd = true;
	lmr->mem_type = DAT_MEM_TYPE_IA;
	lmr->priv = DAT_MEM_PRIV_LOCAL_READ_FLAG |
		    DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	lmr->len = U64_MAX;
	/* Pairs with the acquire in kdapl_sge_build(). litmus: lmr-valid */
	smp_store_release(&lmr->valid, true);
	kdapl_obj_publish(&lmr->obj);
	ia->reserved_lmr = lmr;
	return 0;
}

DAT_RETURN dat_ia_reserved_lmr(DAT_IA_HANDLE ia_handle,
			       DAT_LMR_HANDLE *reserved_lmr_handle,
			       DAT_LMR_CONTEXT *reserved_lmr_context)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_ia *ia;
	int err = 0;

	might_sleep();
	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!reserved_lmr_handle)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else if (!reserved_lmr_context)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	else if (!kdapl_hca_enter(ia->hca))
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
	if (ret != DAT_SUCCESS)
		goto out_put;

	mutex_lock(&ia->mutex);
	if (!ia->reserved_lmr)
		err = kdapl_lmr_make_reserved(ia);
	if (err) {
		ret = kdapl_lmr_error(err);
	} else {
		*reserved_lmr_handle = kdapl_handle(&ia->reserved_lmr->obj);
		*reserved_lmr_context = ia->reserved_lmr->context;
	}
	mutex_unlock(&ia->mutex);
	kdapl_hca_leave(ia->hca);
out_put:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ia_reserved_lmr);

/* Free the reserved LMR of @ia, which is being closed. */
void kdapl_lmr_free_reserved(struct kdapl_ia *ia)
{
	struct kdapl_lmr *lmr;

	mutex_lock(&ia->mutex);
	lmr = ia->reserved_lmr;
	ia->reserved_lmr = NULL;
	mutex_unlock(&ia->mutex);
	if (lmr && kdapl_obj_unpublish(&lmr->obj))
		kdapl_lmr_drop(lmr);
}
