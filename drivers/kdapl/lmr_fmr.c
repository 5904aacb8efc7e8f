// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast registration: LMRs that are bound to other pages for every transfer.
 *
 * An LMR from dat_lmr_allocate() owns an MR and a scatter list of its full size,
 * so that binding and unbinding need nothing but a work request on the
 * consumer's Endpoint. While such a request is outstanding it holds a use of the
 * LMR, which therefore cannot be freed: drivers follow the MR until then.
 *
 *   unbound --dat_lmr_fmr()--> bound --dat_lmr_invalidate()--> closing
 *      ^                         |                                |
 *      +-- the peer's Send ------+                                |
 *      |   has invalidated it                                     |
 *      +----------------- the invalidation completed -------------+
 *
 * The MR's page list is written when dat_lmr_fmr() is called, not when the
 * device comes to the request; so the list must not be in use, and an LMR is
 * only bound again when its invalidation has completed. If a request fails or
 * is flushed nobody can tell what the MR is now. It is thrown away, which shuts
 * the peer out in any case, and the LMR gets a new one in the background.
 */
#include <linux/slab.h>
#include "kdapl.h"

/* How the claim of an LMR for a new request can end. */
enum kdapl_claim {
	KDAPL_CLAIM_OK,
	KDAPL_CLAIM_STATE,		/* not now: bound, or not bound */
	KDAPL_CLAIM_PENDING,		/* not now: completions are awaited */
	KDAPL_CLAIM_NO_MR,		/* being replaced */
	KDAPL_CLAIM_FREED,
};

static enum kdapl_claim kdapl_lmr_try_claim(struct kdapl_lmr *lmr,
					    struct kdapl_ep *ep, bool bind)
{
	enum kdapl_claim ret = KDAPL_CLAIM_OK;
	unsigned long flags;

	spin_lock_irqsave(&lmr->lock, flags);
	if (atomic_read(&lmr->obj.users) < 0)
		ret = KDAPL_CLAIM_FREED;
	else if (lmr->posting)
		ret = KDAPL_CLAIM_STATE;
	else if (bind && lmr->closing)
		ret = KDAPL_CLAIM_PENDING;
	else if (lmr->bound == bind || lmr->closing)
		ret = KDAPL_CLAIM_STATE;
	else if (lmr->pending && (bind || lmr->ep_handle != ep->obj.handle))
		/* The queues of two Endpoints are not ordered. */
		ret = KDAPL_CLAIM_PENDING;
	else if (lmr->stale || !lmr->mr)
		ret = KDAPL_CLAIM_NO_MR;
	else if (!kdapl_obj_hold(&lmr->obj))
		ret = KDAPL_CLAIM_FREED;
	if (ret == KDAPL_CLAIM_OK) {
		lmr->posting = true;
		lmr->pending++;
	}
	spin_unlock_irqrestore(&lmr->lock, flags);
	return ret;
}

static void kdapl_lmr_queue_recycle(struct kdapl_lmr *lmr)
{
	if (kref_get_unless_zero(&lmr->obj.ref) &&
	    !queue_work(kdapl_wq, &lmr->recycle))
		kdapl_obj_put(&lmr->obj);
}

/* Reserve the LMR for one request. Undone by kdapl_lmr_unclaim(). */
static DAT_RETURN kdapl_lmr_claim(struct kdapl_lmr *lmr, struct kdapl_ep *ep,
				  bool bind)
{
	enum kdapl_claim claim;

	claim = kdapl_lmr_try_claim(lmr, ep, bind);
	if (claim == KDAPL_CLAIM_PENDING) {
		kdapl_look_at_ep(READ_ONCE(lmr->ep_handle));
		claim = kdapl_lmr_try_claim(lmr, ep, bind);
	}
	switch (claim) {
	case KDAPL_CLAIM_OK:
		return DAT_SUCCESS;
	case KDAPL_CLAIM_FREED:
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	case KDAPL_CLAIM_NO_MR:
		kdapl_lmr_queue_recycle(lmr);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY_REGION);
	default:
		return DAT_ERROR(DAT_INVALID_STATE, bind ?
				 DAT_INVALID_STATE_LMR_IN_USE :
				 DAT_INVALID_STATE_LMR_FREE);
	}
}

/* The request was posted, or (@ret says so) never came to be. */
static void kdapl_lmr_unclaim(struct kdapl_lmr *lmr, bool bind, DAT_RETURN ret)
{
	unsigned long flags;

	spin_lock_irqsave(&lmr->lock, flags);
	lmr->posting = false;
	if (ret != DAT_SUCCESS) {
		lmr->pending--;
		if (bind) {
			lmr->bound = false;
			lmr->rmr_context = 0;
			WRITE_ONCE(lmr->valid, false);
		} else {
			lmr->closing = false;
		}
	} else if (!bind) {
		WRITE_ONCE(lmr->valid, false);
	}
	spin_unlock_irqrestore(&lmr->lock, flags);
	if (ret != DAT_SUCCESS)
		kdapl_obj_drop(&lmr->obj);
}

/**
 * kdapl_lmr_request_done - a request of dat_lmr_fmr() or _invalidate() ended
 * @lmr: the LMR
 * @op: which of them
 * @status: DAT_DTO_COMPLETION_STATUS
 *
 * Context: Any; the EVD's lock is held.
 */
void kdapl_lmr_request_done(struct kdapl_lmr *lmr, u8 op, u8 status)
{
	unsigned long flags;
	bool recycle;

	spin_lock_irqsave(&lmr->lock, flags);
	lmr->pending--;
	if (status != DAT_DTO_SUCCESS)
		lmr->stale = true;
	if (lmr->stale || op == DAT_DTO_LMR_INVALIDATE) {
		lmr->bound = false;
		lmr->closing = false;
		lmr->rmr_context = 0;
		WRITE_ONCE(lmr->valid, false);
	}
	recycle = lmr->stale && !lmr->pending;
	spin_unlock_irqrestore(&lmr->lock, flags);
	if (recycle)
		kdapl_lmr_queue_recycle(lmr);
	kdapl_obj_drop(&lmr->obj);
}

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
				 DAT_RESOURCE_MEMORY :
				 DAT_RESOURCE_MEMORY_REGION);
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
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
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

/* What can be seen of a binding, for one that does not come to be. */
struct kdapl_fmr_seen {
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VA_TYPE va_type;
	u64 len;
	u64 base;
	DAT_LMR_CONTEXT context;
};

static struct kdapl_fmr_seen kdapl_fmr_save(const struct kdapl_lmr *lmr)
{
	return (struct kdapl_fmr_seen) {
		.mem_type = lmr->mem_type,
		.region = lmr->region,
		.priv = lmr->priv,
		.va_type = lmr->va_type,
		.len = lmr->len,
		.base = lmr->base,
		.context = lmr->context,
	};
}

/* Claimed, so nobody else has changed it. */
static void kdapl_fmr_restore(struct kdapl_lmr *lmr,
			      const struct kdapl_fmr_seen *seen)
{
	unsigned long flags;

	spin_lock_irqsave(&lmr->lock, flags);
	WRITE_ONCE(lmr->valid, false);
	lmr->mem_type = seen->mem_type;
	lmr->region = seen->region;
	lmr->priv = seen->priv;
	lmr->va_type = seen->va_type;
	lmr->len = seen->len;
	lmr->base = seen->base;
	WRITE_ONCE(lmr->context, seen->context);
	spin_unlock_irqrestore(&lmr->lock, flags);
	kdapl_region_unmap(lmr);
}

/* Write down everything about the new binding. Under lmr->lock. */
static int kdapl_fmr_load(struct kdapl_lmr *lmr, DAT_MEM_TYPE type,
			  const DAT_REGION_DESCRIPTION *region, u64 n,
			  DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type)
{
	struct ib_mr *mr = lmr->mr;
	int err;

	if (!mr)
		return -ENODEV;
	lmr->mem_type = type;
	lmr->region = *region;
	lmr->priv = priv;
	lmr->va_type = va_type;
	lmr->len = 0;
	lmr->sgt.nents = 0;
	err = kdapl_region_fill(lmr, n);
	if (err)
		return err;
	lmr->base = va_type == DAT_VA_TYPE_ZB ? 0 : lmr->va;
	err = kdapl_mr_map(mr, &lmr->sgt, lmr->base, lmr->len);
	if (err)
		return err;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	lmr->lkey = mr->lkey;
	lmr->shift = 0;
	lmr->rmr_context = priv & (DAT_MEM_PRIV_REMOTE_READ_FLAG |
				   DAT_MEM_PRIV_REMOTE_WRITE_FLAG) ?
			   mr->rkey : 0;
	/* So that a context from before is refused. */
	WRITE_ONCE(lmr->context, lmr->context + (1U << KDAPL_INDEX_BITS));
	lmr->bound = true;
	/* Who finds it valid finds all of the above. */
	smp_store_release(&lmr->valid, true);
	return 0;
}

/* A number of pages of the region's own size, in units of PAGE_SIZE. */
static u64 kdapl_fmr_count(DAT_MEM_TYPE type,
			   const DAT_REGION_DESCRIPTION *region, u64 n)
{
	u64 per;

	if (type != DAT_MEM_TYPE_PHYSICAL_VAR_PAGES)
		return n;
	/* A size less than that is refused for itself. */
	per = max_t(u64, region->for_array.page_size >> PAGE_SHIFT, 1);
	return check_mul_overflow(n, per, &n) ? U64_MAX : n;
}

static DAT_RETURN kdapl_fmr_check(struct kdapl_lmr *lmr, DAT_MEM_TYPE type,
				  const DAT_REGION_DESCRIPTION *region, u64 n,
				  DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type)
{
	u64 start = 0;

	switch (type) {
	case DAT_MEM_TYPE_VIRTUAL:
		start = (uintptr_t)region->for_va;
		break;
	case DAT_MEM_TYPE_IA:
		start = region->for_ia;
		break;
	case DAT_MEM_TYPE_PHYSICAL:
	case DAT_MEM_TYPE_PHYSICAL_VAR_PAGES:
	case DAT_MEM_TYPE_PLATFORM:
		break;
	case DAT_MEM_TYPE_LMR:
	case DAT_MEM_TYPE_BYPASS:
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	default:
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	}
	if (!n || n > lmr->max_pages)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!PAGE_ALIGNED(start) ||
	    !kdapl_region_ok(type, region, n << PAGE_SHIFT))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (priv & ~DAT_MEM_PRIV_ALL_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	return DAT_SUCCESS;
}

static DAT_RETURN kdapl_fmr_post(struct kdapl_lmr *lmr, struct kdapl_ep *ep,
				 DAT_LMR_COOKIE cookie,
				 DAT_COMPLETION_FLAGS flags)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.mr = lmr->mr,
		.key = lmr->lkey,
		.access = kdapl_mr_access(lmr->priv),
	};

	return kdapl_post_sq(ep, &wr.wr, cookie, DAT_DTO_LMR_FMR, flags,
			      &lmr->obj);
}

static DAT_RETURN kdapl_fmr_bind(struct kdapl_lmr *lmr, DAT_MEM_TYPE type,
				 const DAT_REGION_DESCRIPTION *region, u64 n,
				 DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
				 struct kdapl_ep *ep)
{
	unsigned long flags;
	int err;

	/* What the last binding has left mapped. */
	kdapl_region_unmap(lmr);
	spin_lock_irqsave(&lmr->lock, flags);
	lmr->ep_handle = ep->obj.handle;
	err = kdapl_fmr_load(lmr, type, region, n, priv, va_type);
	spin_unlock_irqrestore(&lmr->lock, flags);
	switch (err) {
	case 0:
		return DAT_SUCCESS;
	case -EINVAL:
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	case -EOPNOTSUPP:
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	default:
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY_REGION);
	}
}

static DAT_RETURN kdapl_fmr_check_objs(struct kdapl_lmr *lmr,
				       struct kdapl_ep *ep)
{
	if (!lmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (lmr->reserved)
		return DAT_ERROR(DAT_RESERVED_LMR, DAT_NO_SUBTYPE);
	if (!lmr->fmr)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (READ_ONCE(ep->pz) != lmr->pz || kdapl_lmr_elsewhere(lmr, ep))
		return DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

DAT_RETURN dat_lmr_fmr(DAT_LMR_HANDLE lmr_handle, DAT_MEM_TYPE mem_type,
		       DAT_REGION_DESCRIPTION region_description,
		       DAT_VLEN number_of_pages,
		       DAT_MEM_PRIV_FLAGS mem_privileges, DAT_VA_TYPE va_type,
		       DAT_EP_HANDLE ep_handle, DAT_LMR_COOKIE user_cookie,
		       DAT_COMPLETION_FLAGS completion_flags,
		       DAT_LMR_CONTEXT *lmr_context,
		       DAT_RMR_CONTEXT *rmr_context)
{
	bool remote = mem_privileges & (DAT_MEM_PRIV_REMOTE_READ_FLAG |
					DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	u64 n = kdapl_fmr_count(mem_type, &region_description, number_of_pages);
	struct kdapl_fmr_seen seen;
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_CONTEXT context;
	struct kdapl_lmr *lmr;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	lmr = kdapl_find(lmr_handle, DAT_HANDLE_TYPE_LMR);
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	ret = kdapl_fmr_check_objs(lmr, ep);
	/* There is no subtype for the eleventh argument. */
	if (ret == DAT_SUCCESS && (!lmr_context || (remote && !rmr_context)))
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG10);
	if (ret == DAT_SUCCESS)
		ret = kdapl_fmr_check(lmr, mem_type, &region_description,
				      n, mem_privileges, va_type);
	if (ret == DAT_SUCCESS)
		ret = kdapl_flags_check(ep, completion_flags, DAT_DTO_LMR_FMR,
					DAT_INVALID_ARG9);
	if (ret == DAT_SUCCESS)
		ret = kdapl_lmr_claim(lmr, ep, true);
	if (ret != DAT_SUCCESS)
		goto out;

	seen = kdapl_fmr_save(lmr);
	ret = kdapl_fmr_bind(lmr, mem_type, &region_description, n,
			     mem_privileges, va_type, ep);
	context = lmr->context;
	rkey = lmr->rmr_context;
	if (ret == DAT_SUCCESS)
		ret = kdapl_fmr_post(lmr, ep, user_cookie, completion_flags);
	if (ret == DAT_SUCCESS) {
		*lmr_context = context;
		if (rmr_context)
			*rmr_context = rkey;
	} else {
		kdapl_fmr_restore(lmr, &seen);
	}
	kdapl_lmr_unclaim(lmr, true, ret);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_lmr_fmr);

DAT_RETURN dat_lmr_invalidate(DAT_LMR_HANDLE lmr_handle,
			      DAT_EP_HANDLE ep_handle,
			      DAT_LMR_COOKIE user_cookie,
			      DAT_COMPLETION_FLAGS completion_flags)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV };
	struct kdapl_lmr *lmr;
	unsigned long flags;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	lmr = kdapl_find(lmr_handle, DAT_HANDLE_TYPE_LMR);
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	ret = kdapl_fmr_check_objs(lmr, ep);
	if (ret == DAT_SUCCESS)
		ret = kdapl_flags_check(ep, completion_flags,
					DAT_DTO_LMR_INVALIDATE,
					DAT_INVALID_ARG4);
	if (ret == DAT_SUCCESS)
		ret = kdapl_lmr_claim(lmr, ep, false);
	if (ret != DAT_SUCCESS)
		goto out;

	spin_lock_irqsave(&lmr->lock, flags);
	lmr->closing = true;
	lmr->ep_handle = ep->obj.handle;
	wr.ex.invalidate_rkey = lmr->lkey;
	spin_unlock_irqrestore(&lmr->lock, flags);
	ret = kdapl_post_sq(ep, &wr, user_cookie, DAT_DTO_LMR_INVALIDATE,
			    completion_flags, &lmr->obj);
	kdapl_lmr_unclaim(lmr, false, ret);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_lmr_invalidate);
