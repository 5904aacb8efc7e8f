// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dat_lmr_sync_rdma_read() and dat_lmr_sync_rdma_write(), for platforms on which the CPU
 * and the device do not see the same memory: the CPU's caches are not coherent, or the
 * device reaches only a copy (swiotlb). Only the consumer knows when the peer reads or
 * writes.
 */
#include "ia.h"
#include "mem.h"

/* Check and sync @n segments, one after another, until one is bad. */
static DAT_RETURN kdapl_lmr_sync_all(DAT_IA_HANDLE ia_handle,
				     const DAT_LMR_TRIPLET *seg, u64 n,
				     bool for_cpu)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_lmr *lmr;
	struct kdapl_ia *ia;
	u64 offset;

	rcu_read_lock();
	ia = kdapl_find(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	else if (!seg)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	for (; ret == DAT_SUCCESS && n; n--, seg++) {
		if (!seg->segment_length)
			continue;
		lmr = kdapl_lmr_find(seg->lmr_context);
		/* Pairs with kdapl_lmr_create() and kdapl_lmr_unclaim(). litmus: lmr-valid */
		if (!lmr || lmr->obj.ia != ia || !smp_load_acquire(&lmr->valid)) {
			ret = DAT_ERROR(DAT_INVALID_PARAMETER,
					DAT_INVALID_ARG2);
			break;
		}
		offset = seg->virtual_address - lmr->base;
		if (offset > lmr->len || seg->segment_length > lmr->len - offset)
			ret = DAT_ERROR(DAT_INVALID_PARAMETER,
					DAT_INVALID_ARG2);
		else
			kdapl_region_sync(lmr, seg->lmr_context, offset,
					  seg->segment_length, for_cpu);
	}
	rcu_read_unlock();
	return ret;
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle,
				  const DAT_LMR_TRIPLET *local_segments,
				  DAT_VLEN num_segments)
{
	return kdapl_lmr_sync_all(ia_handle, local_segments, num_segments,
				  false);
}
EXPORT_SYMBOL(dat_lmr_sync_rdma_read);

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
				   const DAT_LMR_TRIPLET *local_segments,
				   DAT_VLEN num_segments)
{
	return kdapl_lmr_sync_all(ia_handle, local_segments, num_segments,
				  true);
}
EXPORT_SYMBOL(dat_lmr_sync_rdma_write);
