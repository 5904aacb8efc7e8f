// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Remote Memory Regions: creating, querying and freeing. mem_bind.c binds them.
 *
 * The kernel has no verb for memory windows, so an RMR is a fast registration:
 * an MR of its own over the DMA addresses of a part of an LMR. A bind is a work
 * request on the consumer's Endpoint that registers the MR, an unbind is one
 * that invalidates it.
 *
 * The page list of an MR is written when the request is posted, when the device
 * may still be using the list of the old binding; and no device registers an MR
 * that is registered. So an RMR has two MRs, called windows, and a rebind opens
 * one and closes the other. To the device a rebind is a list of two requests; to
 * the consumer it is one, which takes one place in the queue of the Endpoint.
 * Its completion means that the new context is valid and the old one is not.
 *
 * A window holds a dependency on its LMR from the bind until the request that
 * closes it has completed. If a request fails or is flushed, the state of the
 * MR is unknown. The MR is freed, which closes the window for certain, and
 * kdapl_rmr_recycle() allocates another in the background. Every posted request
 * holds a reference to the RMR, because drivers follow the pointer to the MR
 * until the request has completed.
 *
 * rmr->lock protects the windows and the posted requests. A caller that has claimed
 * the RMR (kdapl_rmr_try_claim()) may post without the lock.
 */
#include <linux/delay.h>
#include <linux/sched/mm.h>
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "mem.h"
#include "pz.h"

/* How long dat_rmr_free() waits for posted requests to complete. */
#define KDAPL_IDLE_TRIES	100
#define KDAPL_IDLE_MS		10

/* ---- Windows ------------------------------------------------------------- */

/*
 * Free the MR of @win, which closes the window, and drop its dependency on the LMR.
 * Without @force do so only if no request on @win is posted or about to be. Return
 * whether the MR was freed.
 */
static bool kdapl_window_strip(struct kdapl_rmr *rmr, struct kdapl_window *win,
			       bool force)
{
	struct kdapl_lmr *lmr = NULL;
	struct ib_mr *mr = NULL;
	unsigned long flags;
	bool ok;

	lockdep_assert_held(&rmr->obj.ia->hca->sem);

	spin_lock_irqsave(&rmr->lock, flags);
	ok = force || kdapl_window_at_rest(rmr, win);
	if (ok) {
		swap(mr, win->mr);
		swap(lmr, win->lmr);
		if (rmr->cur == win)
			rmr->cur = NULL;
	}
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (mr)
		kdapl_mr_free(&rmr->obj, mr);
	if (lmr)
		kdapl_dep_put(&lmr->obj);
	return ok;
}

/* Free the MRs of both windows. No request about @rmr is posted any more. */
static void kdapl_rmr_strip(struct kdapl_rmr *rmr)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(rmr->win); i++)
		kdapl_window_strip(rmr, &rmr->win[i], true);
}

/* Replace the MR of @win. */
static void kdapl_window_renew(struct kdapl_rmr *rmr, struct kdapl_window *win)
{
	unsigned long flags;
	struct ib_mr *mr;

	/* A bind has begun: kdapl_rmr_rebind() queues the work again. */
	if (!kdapl_window_strip(rmr, win, false))
		return;
	mr = kdapl_mr_alloc(&rmr->obj, rmr->pz, rmr->max_pages);
	spin_lock_irqsave(&rmr->lock, flags);
	win->mr = IS_ERR(mr) ? NULL : mr;
	win->discard = false;
	spin_unlock_irqrestore(&rmr->lock, flags);
}

/*
 * Work item rmr->recycle: replace the MRs of windows whose request failed. If
 * there is no memory for another MR, the next kdapl_rmr_claim() that finds no
 * idle window queues the work again.
 */
static void kdapl_rmr_recycle(struct work_struct *work)
{
	struct kdapl_rmr *rmr = container_of(work, struct kdapl_rmr, recycle);
	unsigned int noio = memalloc_noio_save();
	unsigned long flags;
	bool waste;
	int i;

	if (!kdapl_hca_enter(rmr->obj.ia->hca))
		goto out_put;
	for (i = 0; i < ARRAY_SIZE(rmr->win); i++) {
		/*
		 * Once dat_rmr_free() has set ->users to -1, only it changes a window
		 * that is waste.
		 */
		spin_lock_irqsave(&rmr->lock, flags);
		waste = kdapl_window_is_waste(rmr, &rmr->win[i]) &&
			atomic_read(&rmr->obj.users) >= 0;
		spin_unlock_irqrestore(&rmr->lock, flags);
		if (waste)
			kdapl_window_renew(rmr, &rmr->win[i]);
	}
	kdapl_hca_leave(rmr->obj.ia->hca);
out_put:
	kdapl_obj_put(&rmr->obj);
	memalloc_noio_restore(noio);
}

/* Queue rmr->recycle, which gets a reference. Context: Any. */
void kdapl_rmr_queue_recycle(struct kdapl_rmr *rmr)
{
	if (kref_get_unless_zero(&rmr->obj.ref) &&
	    !queue_work(rmr->obj.ia->hca->object_wq, &rmr->recycle))
		kdapl_obj_put(&rmr->obj);
}

/* ---- Life ---------------------------------------------------------------- */

/* The device is leaving. Its queue pairs are destroyed, so no request is posted. */
static void kdapl_rmr_obj_strip(struct kdapl_obj *obj)
{
	kdapl_rmr_strip(container_of(obj, struct kdapl_rmr, obj));
}

static DAT_RETURN kdapl_rmr_obj_free(struct kdapl_obj *obj)
{
	return dat_rmr_free(kdapl_handle(obj));
}

static void kdapl_rmr_release(struct kdapl_obj *obj)
{
	struct kdapl_rmr *rmr = container_of(obj, struct kdapl_rmr, obj);

	kdapl_rmr_strip(rmr);
	sg_free_table(&rmr->sgt);
	kdapl_obj_put(&rmr->pz->obj);
	kdapl_obj_free(obj);
}

static void kdapl_rmr_init(struct kdapl_obj *obj)
{
	struct kdapl_rmr *rmr = container_of(obj, struct kdapl_rmr, obj);

	spin_lock_init(&rmr->lock);
	INIT_WORK(&rmr->recycle, kdapl_rmr_recycle);
}

static const struct kdapl_obj_ops kdapl_rmr_ops = {
	.init = kdapl_rmr_init,
	.release = kdapl_rmr_release,
	.free = kdapl_rmr_obj_free,
	.strip = kdapl_rmr_obj_strip,
	.invalidated = kdapl_rmr_invalidated,
	.request_done = kdapl_rmr_request_done,
};

/* Allocate the MRs and the scatter list; after an error the release frees them. */
static int kdapl_rmr_fill(struct kdapl_rmr *rmr)
{
	struct ib_mr *mr;
	int i, err;

	err = sg_alloc_table(&rmr->sgt, rmr->max_pages, GFP_KERNEL);
	for (i = 0; !err && i < ARRAY_SIZE(rmr->win); i++) {
		mr = kdapl_mr_alloc(&rmr->obj, rmr->pz, rmr->max_pages);
		if (IS_ERR(mr))
			err = PTR_ERR(mr);
		else
			rmr->win[i].mr = mr;
	}
	return err;
}

/* Allocate an RMR in @pz, which the caller uses; it is not published yet. */
static DAT_RETURN kdapl_rmr_alloc(struct kdapl_pz *pz, DAT_RMR_SCOPE scope,
				  struct kdapl_rmr **out)
{
	struct ib_device *dev = pz->obj.ia->hca->dev;
	struct kdapl_rmr *rmr;
	int err;

	if (!kdapl_can_register(&dev->attrs))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	rmr = kdapl_obj_alloc(sizeof(*rmr), DAT_HANDLE_TYPE_RMR, pz->obj.ia,
			      &kdapl_rmr_ops);
	if (IS_ERR(rmr))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	kref_get(&pz->obj.ref);
	rmr->pz = pz;
	rmr->scope = scope;
	rmr->max_pages = dev->attrs.max_fast_reg_page_list_len;
	err = kdapl_rmr_fill(rmr);
	if (err) {
		kdapl_obj_put(&rmr->obj);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY_REGION);
	}
	*out = rmr;
	return DAT_SUCCESS;
}

static DAT_RETURN kdapl_rmr_create(DAT_PZ_HANDLE pz_handle,
				   DAT_RMR_SCOPE scope,
				   DAT_RMR_HANDLE *rmr_handle)
{
	struct kdapl_rmr *rmr;
	struct kdapl_pz *pz;
	DAT_RETURN ret;

	might_sleep();
	pz = kdapl_obj_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	if (!pz)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!kdapl_obj_use(&pz->obj)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
		goto out_put;
	}
	if (!rmr_handle) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	} else if (!kdapl_hca_enter(pz->obj.ia->hca)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
	} else {
		ret = kdapl_rmr_alloc(pz, scope, &rmr);
		kdapl_hca_leave(pz->obj.ia->hca);
	}
	if (ret == DAT_SUCCESS) {
		*rmr_handle = kdapl_handle(&rmr->obj);
		kdapl_obj_publish(&rmr->obj);
	} else {
		kdapl_obj_unuse(&pz->obj);
	}
out_put:
	kdapl_obj_put(&pz->obj);
	return ret;
}

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	return kdapl_rmr_create(pz_handle, DAT_RMR_SCOPE_PZ, rmr_handle);
}
EXPORT_SYMBOL(dat_rmr_create);

DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle,
				 DAT_RMR_HANDLE *rmr_handle)
{
	return kdapl_rmr_create(pz_handle, DAT_RMR_SCOPE_EP, rmr_handle);
}
EXPORT_SYMBOL(dat_rmr_create_for_ep);

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle,
			 DAT_RMR_PARAM_MASK rmr_param_mask,
			 DAT_RMR_PARAM *rmr_param)
{
	DAT_RETURN ret;
	struct kdapl_rmr *rmr;
	unsigned long flags;

	rcu_read_lock();
	rmr = kdapl_find_queried(rmr_handle, DAT_HANDLE_TYPE_RMR,
				 rmr_param_mask & ~DAT_RMR_FIELD_ALL,
				 rmr_param, &ret);
	if (rmr) {
		memset(rmr_param, 0, sizeof(*rmr_param));
		spin_lock_irqsave(&rmr->lock, flags);
		rmr_param->ia_handle = kdapl_handle(&rmr->obj.ia->obj);
		rmr_param->pz_handle = kdapl_handle(&rmr->pz->obj);
		rmr_param->rmr_scope = rmr->scope;
		if (rmr->cur) {
			rmr_param->lmr_triplet = rmr->triplet;
			rmr_param->mem_priv = rmr->priv;
			rmr_param->rmr_context = rmr->context;
			rmr_param->va_type = rmr->va_type;
		}
		spin_unlock_irqrestore(&rmr->lock, flags);
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_rmr_query);

/*
 * Retire @rmr, unless a request about it is posted or about to be: until an unbind has
 * completed the peer reaches the old window, and a bind opens a new one. Drivers follow
 * the pointer to the MR of a posted request, so this MR cannot be freed.
 */
static DAT_RETURN kdapl_rmr_try_retire(struct kdapl_rmr *rmr)
{
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned long flags;

	/*
	 * kdapl_rmr_try_claim() reads ->users under the lock, so no request is posted
	 * later.
	 */
	spin_lock_irqsave(&rmr->lock, flags);
	if (rmr->nreqs || rmr->posting)
		ret = DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	else if (!kdapl_obj_retire(&rmr->obj))
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	spin_unlock_irqrestore(&rmr->lock, flags);
	return ret;
}

/* Are the requests of the RMR @arg on @ep, which was freed? */
static bool kdapl_rmr_lingers(struct kdapl_ep *ep, void *arg)
{
	struct kdapl_rmr *rmr = arg;

	return ep->obj.handle == READ_ONCE(rmr->ep_handle);
}

/*
 * Retire @rmr after its posted requests have completed; wait a while for them. On a live
 * connection they complete soon, but nobody may be polling the EVD, so poll it here. A
 * peer that posts no receive can delay them for ever, or until the Endpoint is freed, which
 * may happen meanwhile.
 */
static DAT_RETURN kdapl_rmr_retire(struct kdapl_rmr *rmr)
{
	unsigned long end = jiffies + KDAPL_END_WAIT;
	DAT_RETURN ret;
	long left;
	int i;

	for (i = 0;; i++) {
		left = end - jiffies;
		kdapl_ia_wait_lingering(rmr->obj.ia, kdapl_rmr_lingers, rmr, max(left, 0L));
		ret = kdapl_rmr_try_retire(rmr);
		if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE || i == KDAPL_IDLE_TRIES)
			return ret;
		if (i)
			msleep(KDAPL_IDLE_MS);
		rcu_read_lock();
		kdapl_ep_poll_requests(READ_ONCE(rmr->ep_handle));
		rcu_read_unlock();
	}
}

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle)
{
	struct kdapl_rmr *rmr;
	DAT_RETURN ret;

	might_sleep();
	rmr = kdapl_obj_get(rmr_handle, DAT_HANDLE_TYPE_RMR);
	if (!rmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	ret = kdapl_rmr_retire(rmr);
	if (ret != DAT_SUCCESS || !kdapl_obj_unpublish(&rmr->obj))
		goto out_put;
	if (cancel_work_sync(&rmr->recycle))
		kdapl_obj_put(&rmr->obj);
	down_read(&rmr->obj.ia->hca->sem);
	kdapl_rmr_strip(rmr);
	up_read(&rmr->obj.ia->hca->sem);
	kdapl_obj_unuse(&rmr->pz->obj);
	kdapl_obj_put(&rmr->obj);
out_put:
	kdapl_obj_put(&rmr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_rmr_free);
