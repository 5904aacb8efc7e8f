/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segments of the posting calls. Most requests have one segment, of an LMR that the
 * poster has used before; for these kdapl_sge_check() has a short path without a call.
 */
#ifndef KDAPL_PZ_SGE_H
#define KDAPL_PZ_SGE_H

#include "pz_lmr.h"
#include "pz.h"

/*
 * Translate a segment if it is good and @poster is recorded in its LMR. Otherwise return
 * false: kdapl_sge_build() must look at it, and finds the error. @poster is the handle of
 * an Endpoint or SRQ of @pz. Context: Any; inside an RCU read-side section.
 */
static __always_inline bool kdapl_sge_one(const struct kdapl_pz *pz, u64 poster,
					  const DAT_LMR_TRIPLET *iov,
					  DAT_MEM_PRIV_FLAGS priv,
					  struct ib_sge *sge)
{
	const u32 len = iov->segment_length;
	struct kdapl_lmr *lmr;
	u64 offset, known;

	lmr = kdapl_lmr_find(iov->lmr_context);
	if (unlikely(!lmr))
		return false;
	known = READ_ONCE(lmr->poster);
	if (unlikely(known != poster && known != KDAPL_MANY_POSTERS))
		return false;
	/* Pairs with the release at the LMR's creation. litmus: lmr-valid, lmr-close */
	if (unlikely(!smp_load_acquire(&lmr->valid)))
		return false;
	/* The reserved LMR's zone matches no PZ. */
	if (unlikely(lmr->zone != pz || (lmr->priv & priv) != priv))
		return false;
	offset = iov->virtual_address - lmr->base;
	if (unlikely(!len || offset > lmr->len || len > lmr->len - offset))
		return false;
	sge->addr = iov->virtual_address + lmr->shift;
	sge->length = len;
	sge->lkey = lmr->lkey;
	return kdapl_lmr_is_same(lmr, iov->lmr_context);
}

/* As kdapl_sge_build(). */
static __always_inline DAT_RETURN
kdapl_sge_check(struct kdapl_pz *pz, u64 poster, DAT_COUNT n,
		const DAT_LMR_TRIPLET *iov, DAT_COUNT max,
		DAT_MEM_PRIV_FLAGS priv, struct ib_sge *sge, int *nsge,
		u64 *total, struct kdapl_sg **map)
{
	if (likely(n == 1 && max > 0 && iov &&
		   kdapl_sge_one(pz, poster, iov, priv, sge))) {
		*nsge = 1;
		*total = sge->length;
		return DAT_SUCCESS;
	}
	return kdapl_sge_build(pz, poster, n, iov, max, priv, sge, nsge, total,
			       map);
}

#endif
