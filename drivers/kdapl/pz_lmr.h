/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Local Memory Regions: mem_*.c create and change them, data transfer and pz_*.c find
 * them by context and use their memory.
 */
#ifndef KDAPL_PZ_LMR_H
#define KDAPL_PZ_LMR_H

#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include "handle.h"

struct kdapl_pz;

/* A value of kdapl_lmr.zone that differs from every PZ and from NULL. */
#define KDAPL_NO_ZONE	((struct kdapl_pz *)ERR_PTR(-EACCES))

/* A value of kdapl_lmr.poster that is no handle. */
#define KDAPL_MANY_POSTERS	1ULL

/*
 * struct kdapl_lmr - Local Memory Region
 * @obj: members common to all objects
 * @pz: Protection Zone, referenced; NULL for the reserved LMR
 * @zone: @pz if every Endpoint and SRQ of @pz may use the LMR; KDAPL_NO_ZONE if
 *	kdapl_lmr_shared() decides
 * @poster: handle of the Endpoint or SRQ that has posted work naming the LMR, or
 *	KDAPL_MANY_POSTERS; 0 before the first such post
 * @context: identifies the LMR in the consumer's triplets
 * @base: first address that the consumer may use
 * @len: bytes that the consumer may address
 * @priv: privileges
 * @valid: usable for data transfer: bound, and the device has not left. Stored with
 *	release semantics after all other members
 * @lkey: local key for the device
 * @shift: the device's address less the consumer's
 * @odd: segments must be translated by kdapl_sge_odd()
 * @fmr: created by dat_lmr_allocate(), so it may be bound anew
 * @mr: the MR; NULL while @lkey is the PD's local_dma_lkey, while the MR is
 *	being replaced and once the device has left; @lock
 * @rmr_context: rkey for peers, 0 if none
 * @mem_type: type of the memory
 * @region: the consumer's description of the memory
 * @va_type: whether the consumer's addresses begin at zero
 * @reserved: the reserved LMR of the IA
 * @max_pages: if @fmr, pages that @mr and @sgt have room for
 * @scope: if @fmr, who may use a binding
 * @va: address of the memory; @base unless the consumer's addresses begin at
 *	zero
 * @sgt: scatter list of the memory; if @fmr, its size is fixed
 * @entries: entries of @sgt before they were mapped
 * @head: bytes mapped in front of the memory, see kdapl_dma_map_pages()
 * @tail: bytes mapped behind the memory
 * @dir: direction of the mapping
 * @sync: the mapping needs syncs, see kdapl_region_sync()
 * @whole: if @odd: address at which the CPU sees the memory in one piece; NULL: none
 * @vmapped: result of vmap() for @whole
 * @lock: protects @mapped and all members that follow; nests inside evd->lock
 * @mapped: @sgt is mapped for the device, and not by the consumer
 * @bound: a request that registers @mr was posted
 * @invalidated: the peer has invalidated the LMR, which cannot be bound again; if @fmr, only
 *	while @closing
 * @closing: a request that invalidates @mr was posted
 * @posting: claimed by a caller that is about to post such a request
 * @stale: a request about @mr failed; @recycle replaces @mr
 * @pending: number of requests about @mr that have not completed
 * @ep_handle: handle of the Endpoint that the last request about @mr was posted to
 * @reg: request that registers @mr, kept until the device has it
 * @recycle: replaces @mr; holds a reference while queued
 */
struct kdapl_lmr {
	struct kdapl_obj obj;
	struct kdapl_pz *pz;
	struct ib_mr *mr;

	/* A cache line that posts read. */
	struct kdapl_pz *zone;
	u64 poster;
	u64 base;
	u64 len;
	u64 shift;
	DAT_LMR_CONTEXT context;
	DAT_MEM_PRIV_FLAGS priv;
	u32 lkey;
	bool valid;
	bool odd;
	bool reserved;
	bool fmr;			/* from dat_lmr_allocate */
	DAT_RMR_CONTEXT rmr_context;

	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region;
	DAT_VA_TYPE va_type;
	int max_pages;
	DAT_LMR_SCOPE scope;
	u64 va;
	struct sg_table sgt;
	unsigned int entries;
	unsigned int head;
	unsigned int tail;
	enum dma_data_direction dir;
	bool sync;
	void *whole;
	void *vmapped;

	spinlock_t lock;		/* see above */
	bool mapped;
	bool bound;
	bool invalidated;
	bool closing;
	bool posting;
	bool stale;
	u8 pending;
	u64 ep_handle;
	struct ib_reg_wr reg;
	struct work_struct recycle;
};

/*
 * struct kdapl_part - a part of an LMR's memory that is synced
 * @context: context of the LMR
 * @addr: first byte
 * @len: bytes
 * @shifted: @addr is the device's address, not the consumer's
 */
struct kdapl_part {
	DAT_LMR_CONTEXT context;
	u64 addr;
	u64 len;
	bool shifted;
};

/*
 * struct kdapl_cursor - the rest of a part that is to be synced
 * @sg: entry of the LMR's list, NULL before the first one
 * @i: number of @sg
 * @offset: first byte, counted from @sg
 * @len: bytes left
 */
struct kdapl_cursor {
	struct scatterlist *sg;
	unsigned int i;
	u64 offset;
	u64 len;
};

/*
 * Return the LMR with this context, or NULL. Context: Any; inside an RCU
 * read-side section.
 */
static inline struct kdapl_lmr *kdapl_lmr_find(DAT_LMR_CONTEXT context)
{
	struct kdapl_obj *obj = kdapl_at(context & KDAPL_INDEX_MASK);
	struct kdapl_lmr *lmr;

	if (unlikely(!obj || kdapl_type(obj) != DAT_HANDLE_TYPE_LMR))
		return NULL;
	lmr = container_of(obj, struct kdapl_lmr, obj);
	return READ_ONCE(lmr->context) == context ? lmr : NULL;
}

/*
 * Is @lmr, which was found by @context and valid, still bound as it was? The caller has read its
 * other members meanwhile. Context: Any; inside an RCU read-side section.
 */
static inline bool kdapl_lmr_is_same(const struct kdapl_lmr *lmr, DAT_LMR_CONTEXT context)
{
	if (likely(!lmr->fmr))
		return true;
	/* Whoever binds an LMR anew has found it invalid. litmus: lmr-again */
	smp_rmb();
	/* Pairs with kdapl_lmr_unclaim(); the context was changed before. litmus: lmr-again */
	return smp_load_acquire(&lmr->valid) && READ_ONCE(lmr->context) == context;
}

/* Return why a call cannot depend on @lmr, which is retired: it was freed, or it may be. */
static inline DAT_RETURN kdapl_lmr_retired(struct kdapl_lmr *lmr)
{
	return kdapl_obj_published(&lmr->obj) ?
		DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE) :
		DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
}

#endif
