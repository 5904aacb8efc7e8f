// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From the consumer's segments to the device's: kdapl_sge_build(), for every
 * posting call.
 *
 * Each segment is checked against its LMR, and its address is translated to the
 * device's. No unchecked segment ever reaches the device, so LMRs may share the
 * PD's key for all memory.
 *
 * There is no lock and no reference: the LMRs are found inside the RCU
 * read-side section of the posting call. lmr->valid is loaded with acquire
 * semantics and is stored last by the functions that set up an LMR. An LMR that may have been
 * invalidated and bound anew meanwhile is looked at once more (kdapl_lmr_is_same()). Mappings are
 * counted instead: pz_sg.c.
 *
 * dat_lmr_free() must find the posted work that names an LMR (mem_posted.c), so lmr->poster
 * records the poster, which costs a comparison. Most LMRs have one poster; if there are
 * several, only this fact is recorded. A segment may be checked before the lock of its
 * queue is taken: kdapl_lmr_close() waits for the read-side section, which ends when the
 * work is in the queue.
 */
#include "ia.h"
#include "pz_lmr.h"
#include "pz.h"
#include "pz_sg.h"

/* Return an error of @type with the subtype for the local privilege @priv. */
static DAT_RETURN kdapl_priv_error(DAT_RETURN type, DAT_MEM_PRIV_FLAGS priv)
{
	bool write = priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG;

	if (type == DAT_PRIVILEGES_VIOLATION)
		return DAT_ERROR(type, write ? DAT_PRIVILEGES_WRITE :
					       DAT_PRIVILEGES_READ);
	return DAT_ERROR(type, write ? DAT_PROTECTION_WRITE :
				       DAT_PROTECTION_READ);
}

/*
 * May requests of @poster in @pz use @lmr although lmr->zone is not @pz? Yes if @lmr is
 * the reserved LMR of the IA, or is bound with scope EP on @poster.
 */
static bool kdapl_lmr_shared(const struct kdapl_lmr *lmr,
			     const struct kdapl_pz *pz, u64 poster)
{
	if (lmr->reserved)
		return pz && lmr->obj.ia == pz->obj.ia;
	return pz && lmr->pz == pz && READ_ONCE(lmr->ep_handle) == poster;
}

/* Enter @poster in lmr->poster. litmus: lmr-close */
static noinline void kdapl_lmr_add_poster(struct kdapl_lmr *lmr, u64 poster)
{
	u64 seen, was = READ_ONCE(lmr->poster);

	while (was != poster && was != KDAPL_MANY_POSTERS) {
		seen = cmpxchg64(&lmr->poster, was,
				 was ? KDAPL_MANY_POSTERS : poster);
		if (seen == was)
			break;
		was = seen;
	}
}

/*
 * Record @poster, then load ->valid; the order pairs with kdapl_lmr_close(), which waits
 * for the RCU read-side section before it reads ->poster. Return whether @lmr is usable.
 */
static inline bool kdapl_lmr_usable(struct kdapl_lmr *lmr, u64 poster)
{
	u64 was = READ_ONCE(lmr->poster);

	if (unlikely(was != poster && was != KDAPL_MANY_POSTERS))
		kdapl_lmr_add_poster(lmr, poster);
	/*
	 * Pairs with the release in kdapl_lmr_create(), kdapl_lmr_unclaim() and
	 * kdapl_lmr_make_reserved(). litmus: lmr-valid, lmr-close
	 */
	return smp_load_acquire(&lmr->valid);
}

/* The segment's context is of no LMR: check it as the context of a mapping. */
static noinline DAT_RETURN kdapl_sge_mapped(struct kdapl_pz *pz, u64 poster,
					    const DAT_LMR_TRIPLET *iov,
					    DAT_MEM_PRIV_FLAGS priv,
					    struct ib_sge *sge,
					    struct kdapl_sg **map)
{
	switch (map ? kdapl_sg_segment(pz, iov, priv, sge, map) : -ENOENT) {
	case 0:
		WRITE_ONCE((*map)->ep_handle, poster);
		return DAT_SUCCESS;
	case -EXDEV:
		return kdapl_priv_error(DAT_PROTECTION_VIOLATION, priv);
	case -ERANGE:
	case -EBUSY:
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	default:
		return kdapl_priv_error(DAT_PRIVILEGES_VIOLATION, priv);
	}
}

/**
 * kdapl_sge_odd - translate a segment for which an addition is not enough
 * @pz: Protection Zone of the Endpoint or SRQ
 * @lmr: LMR of the segment, which was checked
 * @offset: start of the segment in @lmr
 * @alone: no segment of the request follows this one, or it is not read by the device
 * @sge: address and length are translated, lkey is the LMR's; changed
 *
 * The reserved LMR gets the key of the poster's PD. Other LMRs are odd if they are in
 * several pieces and the device is siw: it remembers its place in the page list of a
 * segment, and goes on from this place in the page list of the next segment (6.12's
 * siw_tx_hdt()). So a request may have only one such page list, of the last segment.
 * Other segments get the key of all memory: siw takes kernel addresses for DMA addresses
 * and copies from them, whether they are of kmalloc or of vmalloc, in requests that are
 * signalled, as all are.
 * Return: whether the device can do it
 */
static noinline bool kdapl_sge_odd(struct kdapl_pz *pz, struct kdapl_lmr *lmr, u64 offset,
				   bool alone, struct ib_sge *sge)
{
	u64 addr;

	if (lmr->reserved) {
		sge->lkey = pz->lkey;
		return true;
	}
	if (alone)
		return true;
	addr = lmr->whole ? (uintptr_t)lmr->whole + offset :
			    kdapl_region_piece(lmr, offset, sge->length);
	if (!addr)
		return false;
	sge->addr = addr;
	sge->lkey = pz->lkey;
	return true;
}

/**
 * kdapl_sge_build - check a consumer's segments and translate them
 * @pz: Protection Zone of the Endpoint or SRQ
 * @poster: handle of the Endpoint or SRQ
 * @n: number of segments
 * @iov: the segments; segments of length 0 are skipped
 * @max: number of segments allowed
 * @priv: local privilege that the operation needs
 * @sge: filled in; room for @max
 * @nsge: set to the number of entries filled in
 * @total: set to the sum of the lengths in bytes
 * @map: for requests, which may name one mapping: NULL at first; set to the mapping, of
 *	which the caller owns a count, also after an error. NULL for receives, which may
 *	name none
 *
 * Context: Any; inside an RCU read-side section.
 * Return: %DAT_SUCCESS, or why a segment is refused
 */
DAT_RETURN kdapl_sge_build(struct kdapl_pz *pz, u64 poster, DAT_COUNT n,
			   const DAT_LMR_TRIPLET *iov, DAT_COUNT max,
			   DAT_MEM_PRIV_FLAGS priv, struct ib_sge *sge,
			   int *nsge, u64 *total, struct kdapl_sg **map)
{
	struct kdapl_lmr *lmr;
	DAT_RETURN ret;
	int i, used = 0;
	u64 offset, sum = 0;
	bool able;

	if (unlikely(n < 0 || n > max))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (unlikely(n && !iov))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);

	for (i = 0; i < n; i++) {
		if (!iov[i].segment_length)
			continue;
		lmr = kdapl_lmr_find(iov[i].lmr_context);
		if (unlikely(!lmr || !kdapl_lmr_usable(lmr, poster))) {
			ret = kdapl_sge_mapped(pz, poster, &iov[i], priv,
					       &sge[used], map);
			if (ret != DAT_SUCCESS)
				return ret;
			sum += iov[i].segment_length;
			used++;
			continue;
		}
		if (unlikely(lmr->zone != pz &&
			     !kdapl_lmr_shared(lmr, pz, poster)))
			return kdapl_priv_error(DAT_PROTECTION_VIOLATION, priv);
		if (unlikely((lmr->priv & priv) != priv))
			return kdapl_priv_error(DAT_PRIVILEGES_VIOLATION, priv);
		offset = iov[i].virtual_address - lmr->base;
		if (unlikely(offset > lmr->len ||
			     iov[i].segment_length > lmr->len - offset))
			return DAT_ERROR(DAT_INVALID_PARAMETER,
					 DAT_INVALID_ARG3);
		sge[used].addr = iov[i].virtual_address + lmr->shift;
		sge[used].length = iov[i].segment_length;
		sge[used].lkey = lmr->lkey;
		able = likely(!lmr->odd) ||
		       kdapl_sge_odd(pz, lmr, offset, i == n - 1 ||
				     priv != DAT_MEM_PRIV_LOCAL_READ_FLAG, &sge[used]);
		/* At last: of another binding nothing may reach the device. */
		if (unlikely(!kdapl_lmr_is_same(lmr, iov[i].lmr_context)))
			return kdapl_priv_error(DAT_PRIVILEGES_VIOLATION, priv);
		if (unlikely(!able))
			return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
		sum += iov[i].segment_length;
		used++;
	}
	*nsge = used;
	*total = sum;
	return DAT_SUCCESS;
}
