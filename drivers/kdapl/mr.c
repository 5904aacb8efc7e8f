// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions of the device, and finding what they belong to by their key.
 *
 * A peer names memory by an rkey: in a message that invalidates it, for example.
 * All but the last eight bits of an rkey stay the same as long as the MR exists,
 * and are different for each MR of a device. They are the index of a table.
 */
#include <linux/sched/mm.h>
#include "kdapl.h"

#define KDAPL_KEY_INDEX(rkey)	((rkey) >> 8)

/**
 * kdapl_mr_alloc - make an MR for fast registration
 * @owner: LMR or RMR that has it; frees it before it is freed itself
 * @pz: Protection Zone
 * @pages: pages it can hold
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: the MR or an ERR_PTR.
 */
struct ib_mr *kdapl_mr_alloc(struct kdapl_obj *owner, struct kdapl_pz *pz,
			     u32 pages)
{
	struct ib_mr *mr;
	int err;

	mr = ib_alloc_mr(pz->pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(mr))
		return mr;
	err = xa_insert_irq(&owner->ia->hca->keys, KDAPL_KEY_INDEX(mr->rkey),
			    owner, GFP_KERNEL);
	if (err) {
		ib_dereg_mr(mr);
		return ERR_PTR(err);
	}
	return mr;
}

/* Free it; nobody reaches the memory any more. hca->sem is held. */
void kdapl_mr_free(struct kdapl_obj *owner, struct ib_mr *mr)
{
	xa_erase_irq(&owner->ia->hca->keys, KDAPL_KEY_INDEX(mr->rkey));
	ib_dereg_mr(mr);
}

/* The LMR or RMR that has an MR, referenced; or NULL. Any context. */
struct kdapl_obj *kdapl_mr_owner(struct kdapl_hca *hca, u32 rkey)
{
	struct kdapl_obj *owner;
	unsigned long flags;

	/* The lock keeps the owner from freeing the MR, and then itself. */
	xa_lock_irqsave(&hca->keys, flags);
	owner = xa_load(&hca->keys, KDAPL_KEY_INDEX(rkey));
	if (owner && !kref_get_unless_zero(&owner->ref))
		owner = NULL;
	xa_unlock_irqrestore(&hca->keys, flags);
	return owner;
}

/*
 * Does the LMR belong to another Endpoint? One of scope EP does while it is
 * bound, unless the connection has ended. RCU read-side section.
 */
bool kdapl_lmr_elsewhere(struct kdapl_lmr *lmr, struct kdapl_ep *ep)
{
	u64 handle = READ_ONCE(lmr->ep_handle);
	struct kdapl_ep *owner;

	if (lmr->scope != DAT_LMR_SCOPE_EP || !READ_ONCE(lmr->bound) ||
	    handle == ep->obj.handle)
		return false;
	owner = kdapl_find((DAT_HANDLE)(uintptr_t)handle, DAT_HANDLE_TYPE_EP);
	return owner && READ_ONCE(owner->state) == DAT_EP_STATE_CONNECTED;
}

/*
 * A peer has invalidated a context. One that is not bound any more, or that
 * dat_lmr_invalidate() was already called for, is left alone: then the LMR has
 * its own way to become unbound.
 */
static void kdapl_lmr_invalidated(struct kdapl_lmr *lmr, u32 rkey)
{
	unsigned long flags;

	spin_lock_irqsave(&lmr->lock, flags);
	if (lmr->rmr_context == rkey && !lmr->closing) {
		lmr->bound = false;
		lmr->invalidated = !lmr->fmr;
		lmr->rmr_context = 0;
		WRITE_ONCE(lmr->valid, false);
	}
	spin_unlock_irqrestore(&lmr->lock, flags);
}

/**
 * kdapl_mr_invalidated - a peer has invalidated a key
 * @ep: Endpoint that the message came to
 * @rkey: the key
 *
 * The device has done so; it remains to be known to us.
 *
 * Context: Any; the EVD's lock is held.
 */
void kdapl_mr_invalidated(struct kdapl_ep *ep, u32 rkey)
{
	struct kdapl_obj *owner = kdapl_mr_owner(ep->obj.ia->hca, rkey);

	if (!owner)
		return;
	if (kdapl_type(owner) == DAT_HANDLE_TYPE_RMR)
		kdapl_rmr_invalidated(container_of(owner, struct kdapl_rmr,
						   obj), rkey);
	else
		kdapl_lmr_invalidated(container_of(owner, struct kdapl_lmr,
						   obj), rkey);
	kdapl_obj_put(owner);
}

/* See what the requests of an Endpoint have come to. RCU read-side section. */
void kdapl_look_at_ep(u64 handle)
{
	struct kdapl_evd *evd;
	struct kdapl_ep *ep;

	ep = kdapl_find((DAT_HANDLE)(uintptr_t)handle, DAT_HANDLE_TYPE_EP);
	evd = ep ? READ_ONCE(ep->req_evd) : NULL;
	if (evd)
		kdapl_cq_look(evd);
}

/* Replace the MR of an LMR for fast registration. */
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
