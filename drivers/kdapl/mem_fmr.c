// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast registration: LMRs that are bound to other pages for every transfer, by
 * dat_lmr_fmr() and dat_lmr_invalidate(), which may be called in any context.
 *
 * An LMR from dat_lmr_allocate() (mem_alloc.c) owns an MR and a scatter list of full
 * size, so binding and unbinding need one work request on the consumer's Endpoint. The
 * request holds a dependency on the LMR: drivers follow the pointer to the MR until the
 * request has completed.
 *
 *   unbound --dat_lmr_fmr()--> bound --dat_lmr_invalidate()--> closing
 *      ^                         |                                |
 *      +-- a Send of the peer ---+                                |
 *      |   invalidates the LMR                                    |
 *      +----------------- the invalidation completes -------------+
 *
 * dat_lmr_fmr() writes the page list of the MR at once, so an LMR cannot be
 * bound before the device has executed the invalidation. If a request fails or is
 * flushed, kdapl_lmr_recycle() frees the MR, which closes it, and allocates another.
 *
 * lmr->lock protects the state. It is not held while the list is written or a request is
 * posted: kdapl_lmr_claim() gives one caller at a time the right to post a request about
 * the LMR.
 */
#include <linux/sched/mm.h>
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "mem.h"
#include "pz.h"

/* Results of kdapl_lmr_try_claim(). */
enum kdapl_claim {
	KDAPL_CLAIM_OK,
	KDAPL_CLAIM_STATE,		/* already bound, or not bound */
	KDAPL_CLAIM_PENDING,		/* a request must complete first */
	KDAPL_CLAIM_NO_MR,		/* the MR is being replaced */
	KDAPL_CLAIM_FREED,		/* the consumer has freed the LMR */
	KDAPL_CLAIM_ELSEWHERE,		/* bound with scope EP on another Endpoint */
};

/*
 * Is @lmr bound with scope EP on another Endpoint that is still connected? Context: Any;
 * inside an RCU read-side section.
 */
static bool kdapl_lmr_elsewhere(struct kdapl_lmr *lmr, struct kdapl_ep *ep)
{
	u64 handle = READ_ONCE(lmr->ep_handle);

	return lmr->scope == DAT_LMR_SCOPE_EP && READ_ONCE(lmr->bound) &&
	       handle != ep->obj.handle && kdapl_ep_is_connected(handle);
}

/* Claim @lmr, and a dependency on it, for a request on @ep. */
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
	else if (kdapl_lmr_elsewhere(lmr, ep))
		ret = KDAPL_CLAIM_ELSEWHERE;
	else if (bind && lmr->closing)
		ret = KDAPL_CLAIM_PENDING;
	else if (lmr->bound == bind || lmr->closing)
		ret = KDAPL_CLAIM_STATE;
	else if (lmr->pending && (bind || lmr->ep_handle != ep->obj.handle))
		/* Requests on two Endpoints may execute in either order. */
		ret = KDAPL_CLAIM_PENDING;
	else if (lmr->stale || !lmr->mr)
		ret = KDAPL_CLAIM_NO_MR;
	else if (!kdapl_dep_tryget(&lmr->obj))
		ret = KDAPL_CLAIM_FREED;
	if (ret == KDAPL_CLAIM_OK) {
		lmr->posting = true;
		lmr->pending++;
	}
	spin_unlock_irqrestore(&lmr->lock, flags);
	return ret;
}

/* Queue lmr->recycle, which gets a reference. Context: Any. */
void kdapl_lmr_queue_recycle(struct kdapl_lmr *lmr)
{
	if (kref_get_unless_zero(&lmr->obj.ref) &&
	    !queue_work(lmr->obj.ia->hca->object_wq, &lmr->recycle))
		kdapl_obj_put(&lmr->obj);
}

/* Claim @lmr; poll once for requests that must complete first. */
static DAT_RETURN kdapl_lmr_claim(struct kdapl_lmr *lmr, struct kdapl_ep *ep,
				  bool bind)
{
	enum kdapl_claim claim;

	claim = kdapl_lmr_try_claim(lmr, ep, bind);
	if (claim == KDAPL_CLAIM_PENDING) {
		kdapl_ep_poll_requests(READ_ONCE(lmr->ep_handle));
		claim = kdapl_lmr_try_claim(lmr, ep, bind);
	}
	switch (claim) {
	case KDAPL_CLAIM_OK:
		return DAT_SUCCESS;
	case KDAPL_CLAIM_FREED:
		return kdapl_lmr_retired(lmr);
	case KDAPL_CLAIM_NO_MR:
		kdapl_lmr_queue_recycle(lmr);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY_REGION);
	case KDAPL_CLAIM_ELSEWHERE:
		return DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	default:
		return DAT_ERROR(DAT_INVALID_STATE, bind ?
				 DAT_INVALID_STATE_LMR_IN_USE :
				 DAT_INVALID_STATE_LMR_FREE);
	}
}

/* The key of @lmr is invalid for the device: another binding can be made. */
void kdapl_lmr_unbind(struct kdapl_lmr *lmr)
{
	lockdep_assert_held(&lmr->lock);

	lmr->bound = false;
	lmr->closing = false;
	lmr->invalidated = false;
	lmr->rmr_context = 0;
	WRITE_ONCE(lmr->valid, false);
	/* A stale LMR stays mapped until kdapl_lmr_recycle() has freed the MR. */
	if (!lmr->stale)
		kdapl_region_unmap_locked(lmr);
}

/*
 * End a claim. If @ret is DAT_SUCCESS the request was posted and owns the dependency, and the
 * memory that it binds can be used, unless it has failed meanwhile or the LMR is being freed;
 * otherwise undo the claim's changes.
 */
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
		} else {
			lmr->closing = false;
			if (lmr->invalidated)
				kdapl_lmr_unbind(lmr);
		}
	} else if (!bind) {
		WRITE_ONCE(lmr->valid, false);
	} else if (lmr->bound && atomic_read(&lmr->obj.users) >= 0) {
		/* Pairs with the acquire in kdapl_sge_build(). litmus: lmr-valid, lmr-again */
		smp_store_release(&lmr->valid, true);
	}
	spin_unlock_irqrestore(&lmr->lock, flags);
	if (ret != DAT_SUCCESS)
		kdapl_dep_put(&lmr->obj);
}

/**
 * kdapl_lmr_request_done - a request that binds or unbinds an LMR has ended
 * @obj: the LMR
 * @op: %DAT_DTO_LMR_FMR or %DAT_DTO_LMR_INVALIDATE
 * @status: DAT_DTO_COMPLETION_STATUS
 *
 * Drops the use and the reference of the request.
 *
 * Context: Any.
 */
void kdapl_lmr_request_done(struct kdapl_obj *obj, u8 op, u8 status)
{
	struct kdapl_lmr *lmr = container_of(obj, struct kdapl_lmr, obj);
	unsigned long flags;
	bool recycle;

	spin_lock_irqsave(&lmr->lock, flags);
	lmr->pending--;
	if (status != DAT_DTO_SUCCESS)
		lmr->stale = true;
	if (lmr->stale || op == DAT_DTO_LMR_INVALIDATE)
		kdapl_lmr_unbind(lmr);
	recycle = lmr->stale && !lmr->pending;
	spin_unlock_irqrestore(&lmr->lock, flags);
	if (recycle)
		kdapl_lmr_queue_recycle(lmr);
	kdapl_dep_put(&lmr->obj);
}

/* The members that dat_lmr_query() returns, restored if dat_lmr_fmr() fails. */
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

/*
 * Undo kdapl_fmr_bind() on @lmr, which the caller has claimed. The RCU read-side section
 * of the call keeps the device.
 */
static void kdapl_fmr_restore(struct kdapl_lmr *lmr,
			      const struct kdapl_fmr_seen *seen)
{
	unsigned long flags;
	bool mapped;

	spin_lock_irqsave(&lmr->lock, flags);
	lmr->mem_type = seen->mem_type;
	lmr->region = seen->region;
	lmr->priv = seen->priv;
	lmr->va_type = seen->va_type;
	lmr->len = seen->len;
	lmr->base = seen->base;
	WRITE_ONCE(lmr->context, seen->context);
	mapped = lmr->mapped;
	lmr->mapped = false;
	spin_unlock_irqrestore(&lmr->lock, flags);
	if (mapped)
		kdapl_region_unfill(lmr);
}

/*
 * Map the @n pages that lmr->region describes, and write the page list. No lock is held,
 * as a long list takes long: the caller has claimed @lmr, so the list and the MR are its
 * own, and kdapl_remove_one() waits for the caller's RCU read-side section before it
 * closes them.
 */
static int kdapl_fmr_load(struct kdapl_lmr *lmr, u64 n)
{
	struct ib_mr *mr = lmr->mr;
	int err;

	if (READ_ONCE(lmr->obj.ia->hca->gone) || !mr)
		return -ENODEV;
	err = kdapl_region_fill(lmr, n);
	if (err)
		return err;
	lmr->odd = kdapl_has_quirk(lmr->obj.ia->hca, KDAPL_QUIRK_GATHER) &&
		   !kdapl_region_contiguous(lmr);
	err = kdapl_mr_map(mr, &lmr->sgt,
			   lmr->va_type == DAT_VA_TYPE_ZB ? 0 : lmr->va, lmr->len);
	if (err)
		kdapl_region_unfill(lmr);
	return err;
}

/*
 * Describe the binding that kdapl_fmr_load() has prepared in @lmr. It becomes valid when the
 * request is posted: a context that was valid once never comes back, see kdapl_lmr_is_same().
 */
static void kdapl_fmr_set(struct kdapl_lmr *lmr)
{
	struct ib_mr *mr = lmr->mr;

	lockdep_assert_held(&lmr->lock);

	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	lmr->base = lmr->va_type == DAT_VA_TYPE_ZB ? 0 : lmr->va;
	lmr->mapped = lmr->entries;
	lmr->lkey = mr->lkey;
	lmr->shift = 0;
	lmr->whole = lmr->mem_type == DAT_MEM_TYPE_VIRTUAL ? lmr->region.for_va : NULL;
	lmr->rmr_context = lmr->priv & KDAPL_PRIV_REMOTE ? mr->rkey : 0;
	/* Each binding has a new context: the context of the last one is refused. */
	WRITE_ONCE(lmr->context, lmr->context + (1U << KDAPL_INDEX_BITS));
	WRITE_ONCE(lmr->poster, 0);
	lmr->bound = true;
}

/* Convert a number of the region's own pages to units of PAGE_SIZE. */
static u64 kdapl_fmr_count(DAT_MEM_TYPE type,
			   const DAT_REGION_DESCRIPTION *region, u64 n)
{
	u64 per;

	if (type != DAT_MEM_TYPE_PHYSICAL_VAR_PAGES)
		return n;
	/* kdapl_region_ok() refuses a page size less than PAGE_SIZE. */
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
	lmr->reg = (struct ib_reg_wr) {
		.wr.opcode = IB_WR_REG_MR,
		.mr = lmr->mr,
		.key = lmr->lkey,
		.access = kdapl_mr_access(lmr->priv),
	};
	return kdapl_post_sq(ep, &lmr->reg.wr, cookie, DAT_DTO_LMR_FMR, flags,
			     &lmr->obj, 0);
}

/* Bind @lmr, which the caller has claimed, but do not post the request yet. */
static DAT_RETURN kdapl_fmr_bind(struct kdapl_lmr *lmr, DAT_MEM_TYPE type,
				 const DAT_REGION_DESCRIPTION *region, u64 n,
				 DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
				 struct kdapl_ep *ep)
{
	unsigned long flags;
	int err;

	spin_lock_irqsave(&lmr->lock, flags);
	lmr->ep_handle = ep->obj.handle;
	lmr->mem_type = type;
	lmr->region = *region;
	lmr->priv = priv;
	lmr->va_type = va_type;
	lmr->len = 0;
	lmr->sgt.nents = 0;
	spin_unlock_irqrestore(&lmr->lock, flags);
	err = kdapl_fmr_load(lmr, n);
	if (!err) {
		spin_lock_irqsave(&lmr->lock, flags);
		kdapl_fmr_set(lmr);
		spin_unlock_irqrestore(&lmr->lock, flags);
	}
	switch (err) {
	case 0:
		/* No other caller knows the context yet. */
		kdapl_region_sync(lmr, lmr->context, 0, lmr->len, false);
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

/* Check that both handles are valid and that @lmr may be bound or unbound on @ep. */
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
	bool remote = mem_privileges & KDAPL_PRIV_REMOTE;
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
	/* DAT has no subtype for an error in the eleventh argument. */
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
	if (ret != DAT_SUCCESS)
		kdapl_fmr_restore(lmr, &seen);
	kdapl_lmr_unclaim(lmr, true, ret);
	if (ret == DAT_SUCCESS) {
		*lmr_context = context;
		if (rmr_context)
			*rmr_context = rkey;
	}
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
	u64 was;

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
	was = lmr->ep_handle;
	lmr->ep_handle = ep->obj.handle;
	wr.ex.invalidate_rkey = lmr->lkey;
	spin_unlock_irqrestore(&lmr->lock, flags);
	ret = kdapl_post_sq(ep, &wr, user_cookie, DAT_DTO_LMR_INVALIDATE,
			    completion_flags, &lmr->obj, 0);
	/* With scope EP it says whose binding it is. */
	if (ret != DAT_SUCCESS)
		WRITE_ONCE(lmr->ep_handle, was);
	kdapl_lmr_unclaim(lmr, false, ret);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_lmr_invalidate);

/*
 * Work item: replace the MR, unless the LMR was freed or has requests posted. If there is
 * no memory for a new MR, kdapl_lmr_claim() queues the work again.
 */
void kdapl_lmr_recycle(struct work_struct *work)
{
	struct kdapl_lmr *lmr = container_of(work, struct kdapl_lmr, recycle);
	unsigned int noio = memalloc_noio_save();
	struct ib_mr *mr = NULL;
	unsigned long flags;
	bool replace;

	if (!kdapl_hca_enter(lmr->obj.ia->hca))
		goto out_put;
	spin_lock_irqsave(&lmr->lock, flags);
	replace = !lmr->pending && (lmr->stale || !lmr->mr) &&
		  atomic_read(&lmr->obj.users) >= 0;
	if (replace) {
		mr = lmr->mr;
		lmr->mr = NULL;
	}
	spin_unlock_irqrestore(&lmr->lock, flags);
	if (!replace)
		goto out_leave;
	if (mr)
		kdapl_mr_free(&lmr->obj, mr);
	kdapl_region_unmap(lmr);
	mr = kdapl_mr_alloc(&lmr->obj, lmr->pz, lmr->max_pages);
	spin_lock_irqsave(&lmr->lock, flags);
	lmr->mr = IS_ERR(mr) ? NULL : mr;
	lmr->stale = false;
	spin_unlock_irqrestore(&lmr->lock, flags);
out_leave:
	kdapl_hca_leave(lmr->obj.ia->hca);
out_put:
	kdapl_obj_put(&lmr->obj);
	memalloc_noio_restore(noio);
}
