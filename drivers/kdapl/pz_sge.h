/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segments of the posting calls: most requests have one, of an LMR that this poster
 * has used before, and kdapl_sge_check() has a short way for these, without a call.
 */
#ifndef KDAPL_PZ_SGE_H
#define KDAPL_PZ_SGE_H

#include "pz_lmr.h"
#include "pz.h"

/*
 * Translate a segment if it is good and its LMR knows @poster. Return false if
 * kdapl_sge_build() is to look at it, which also says what is wrong. @poster is the
 * handle of an Endpoint or SRQ of @pz. Context: Any; inside an RCU read-side section.
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
	/* Pairs with the release when the LMR was made. litmus: lmr-valid, lmr-close */
	if (unlikely(!smp_load_acquire(&lmr->valid)))
		return false;
	/* The zone of the reserved LMR is no PZ's. */
	if (unlikely(lmr->zone != pz || (lmr->priv & priv) != priv))
		return false;
	offset = iov->virtual_address - lmr->base;
	if (unlikely(!len || offset > lmr->len || len > lmr->len - offset))
		return false;
	sge->addr = iov->virtual_address + lmr->shift;
	sge->length = len;
	sge->lkey = lmr->lkey;
	return true;
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
