// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * LMRs that the peer's Send has invalidated.
 *
 * dat_ep_post_send_with_invalidate() at the peer unbinds an LMR of ours without
 * a request of ours. The device names it by the key, so each PZ keeps a table of
 * its LMRs from dat_lmr_allocate() by key. The low byte of a key changes with
 * every binding and is no part of the index.
 */
#include "kdapl.h"

static unsigned long kdapl_key_index(u32 rkey)
{
	return rkey >> 8;
}

/* An MR for an LMR of dat_lmr_allocate(). Process context. */
struct ib_mr *kdapl_lmr_new_mr(struct kdapl_lmr *lmr)
{
	struct ib_mr *mr;
	int err;

	mr = ib_alloc_mr(lmr->pz->pd, IB_MR_TYPE_MEM_REG, lmr->max_pages);
	if (IS_ERR(mr))
		return mr;
	err = xa_err(xa_store(&lmr->pz->keys, kdapl_key_index(mr->rkey), lmr,
			      GFP_KERNEL));
	if (!err)
		return mr;
	ib_dereg_mr(mr);
	return ERR_PTR(err);
}

/* Give back the MR of any LMR. Process context. */
void kdapl_lmr_free_mr(struct kdapl_lmr *lmr, struct ib_mr *mr)
{
	if (lmr->fmr)
		xa_erase(&lmr->pz->keys, kdapl_key_index(mr->rkey));
	ib_dereg_mr(mr);
}

/**
 * kdapl_lmr_peer_invalidated - a message came that has invalidated a key
 * @pz: Protection Zone of the Endpoint that received it
 * @rkey: the key
 *
 * A key that is not bound any more, or that dat_lmr_invalidate() was already
 * called for, is left alone: then the LMR has its own way to become unbound.
 *
 * Context: Any; the EVD's lock is held.
 */
void kdapl_lmr_peer_invalidated(struct kdapl_pz *pz, u32 rkey)
{
	struct kdapl_lmr *lmr;
	unsigned long flags;

	rcu_read_lock();
	lmr = xa_load(&pz->keys, kdapl_key_index(rkey));
	if (lmr) {
		spin_lock_irqsave(&lmr->lock, flags);
		if (lmr->bound && !lmr->closing && lmr->rmr_context == rkey) {
			lmr->bound = false;
			lmr->rmr_context = 0;
			WRITE_ONCE(lmr->valid, false);
		}
		spin_unlock_irqrestore(&lmr->lock, flags);
	}
	rcu_read_unlock();
}
