/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Local and Remote Memory Regions: mem_lmr.c, mem_fmr.c, mem_posted.c,
 * mem_sync.c, mem_rmr.c, mem_bind.c.
 */
#ifndef KDAPL_MEM_H
#define KDAPL_MEM_H

#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include "handle.h"
#include "pz.h"

#define KDAPL_PRIV_REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | \
				 DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* A value of kdapl_lmr.zone that differs from every PZ and from NULL. */
#define KDAPL_NO_ZONE	((struct kdapl_pz *)ERR_PTR(-EACCES))

/* A value of kdapl_lmr.poster that is no handle. */
#define KDAPL_MANY_POSTERS	1ULL

/*
 * struct kdapl_lmr - Local Memory Region
 * @obj: what all objects have
 * @pz: its Protection Zone, referenced; NULL for the reserved LMR
 * @zone: @pz if every Endpoint and SRQ of @pz may use the LMR; KDAPL_NO_ZONE if
 *	kdapl_lmr_shared() decides
 * @poster: handle of the Endpoint or SRQ to which work was posted that names the
 *	LMR, or KDAPL_MANY_POSTERS; 0 while there was none
 * @context: identifies the LMR in the consumer's triplets
 * @base: first address that the consumer may use
 * @len: bytes that the consumer may address
 * @priv: privileges
 * @valid: usable for data transfer: bound, and the device has not left; stored
 *	last, with release semantics, when the members above and below are set
 * @lkey: local key for the device
 * @shift: the device's address less the consumer's
 * @odd: kdapl_sge_odd() translates segments
 * @mr: the MR; NULL while @lkey is the PD's local_dma_lkey, while the MR is
 *	being replaced and once the device has left; @lock
 * @rmr_context: rkey for peers, 0 if none
 * @mem_type: type of the memory
 * @region: the consumer's description of the memory
 * @va_type: whether the consumer's addresses begin at zero
 * @fmr: made by dat_lmr_allocate()
 * @reserved: the reserved LMR of the IA
 * @max_pages: if @fmr, pages that @mr and @sgt have room for
 * @scope: if @fmr, who may use a binding
 * @va: address of the memory; @base unless the consumer's addresses begin at
 *	zero
 * @sgt: scatter list of the memory; if @fmr, its size is fixed
 * @entries: entries of @sgt before they were mapped
 * @head: bytes mapped in front of the memory, see kdapl_dma_map_pages()
 * @tail: and behind it
 * @dir: direction in which it is mapped
 * @sync: the mapping needs syncs, see kdapl_region_sync()
 * @whole: if @odd: where the CPU sees the memory in one piece; NULL: nowhere
 * @vmapped: made by vmap() for that
 * @lock: protects @mapped and all that follow; nests inside evd->lock
 * @mapped: @sgt is mapped for the device, and not by the consumer
 * @bound: a request that registers @mr was posted
 * @invalidated: the peer has invalidated the LMR, which cannot be bound again
 * @closing: a request that invalidates @mr was posted
 * @posting: claimed by a caller that is about to post such a request
 * @stale: such a request failed; @recycle replaces @mr
 * @pending: number of such requests that have not completed
 * @ep_handle: handle of the Endpoint that such requests were last posted to
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
	DAT_RMR_CONTEXT rmr_context;

	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region;
	DAT_VA_TYPE va_type;
	bool fmr;			/* from dat_lmr_allocate */
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
	struct work_struct recycle;
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
	return lmr->context == context ? lmr : NULL;
}

/*
 * struct kdapl_window - an MR that an RMR opens on a part of an LMR
 * @mr: the MR; NULL while it is being replaced and once the device has left
 * @lmr: the LMR, used and referenced until the window is certainly closed
 * @pending: number of posted requests that open or close the window
 * @discard: such a request failed; @mr has to be replaced
 * @invalidated: the peer has closed the window; @lmr is kept while @pending
 */
struct kdapl_window {
	struct ib_mr *mr;
	struct kdapl_lmr *lmr;
	u8 pending;
	bool discard;
	bool invalidated;
};

/* A posted request: the windows that it opens and closes; one may be NULL. */
struct kdapl_window_req {
	struct kdapl_window *opens;
	struct kdapl_window *closes;
};

#define KDAPL_WINDOW_REQS 4		/* per window: one opens, one closes */

/*
 * struct kdapl_rmr - Remote Memory Region
 * @obj: what all objects have
 * @pz: its Protection Zone, used and referenced
 * @sgt: room for the pages of a window while it is being opened
 * @max_pages: entries of @sgt, and pages of each MR
 * @recycle: replaces MRs; holds a reference while queued
 * @lock: protects all that follow; nests inside evd->lock
 * @win: the two windows
 * @cur: the open window, NULL if the RMR is not bound
 * @reqs: requests that have not completed, in posting order
 * @nreqs: number of @reqs
 * @posting: claimed by dat_rmr_bind(), which may be about to post any MR
 * @ep_handle: handle of the Endpoint that @reqs were posted to
 * @bound_on: handle of the Endpoint on which @cur was bound
 * @triplet: the part of the LMR that the RMR is bound to
 * @priv: privileges of the binding
 * @context: rkey of the binding
 * @scope: who may use a binding
 * @va_type: whether the peer's addresses begin at zero
 */
struct kdapl_rmr {
	struct kdapl_obj obj;
	struct kdapl_pz *pz;
	struct sg_table sgt;
	int max_pages;
	struct work_struct recycle;

	spinlock_t lock;		/* see above */
	struct kdapl_window win[2];
	struct kdapl_window *cur;
	struct kdapl_window_req reqs[KDAPL_WINDOW_REQS];
	u8 nreqs;
	bool posting;
	u64 ep_handle;
	u64 bound_on;
	DAT_LMR_TRIPLET triplet;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_RMR_CONTEXT context;
	DAT_RMR_SCOPE scope;
	DAT_VA_TYPE va_type;
};

/* Return whether @win can be opened. */
static inline bool kdapl_window_idle(const struct kdapl_rmr *rmr,
				     const struct kdapl_window *win)
{
	lockdep_assert_held(&rmr->lock);

	return win->mr && !win->lmr && !win->pending && !win->discard;
}

/* Return whether no request on @win is posted or about to be. */
static inline bool kdapl_window_at_rest(const struct kdapl_rmr *rmr,
					const struct kdapl_window *win)
{
	lockdep_assert_held(&rmr->lock);

	return !win->pending && !rmr->posting;
}

/* Return whether the MR of @win has to be replaced, and can be now. */
static inline bool kdapl_window_is_waste(const struct kdapl_rmr *rmr,
					 const struct kdapl_window *win)
{
	lockdep_assert_held(&rmr->lock);

	return kdapl_window_at_rest(rmr, win) && (win->discard || !win->mr);
}

/* mem_lmr.c */
struct kdapl_lmr *kdapl_lmr_alloc(struct kdapl_ia *ia, struct kdapl_pz *pz);
void kdapl_lmr_drop(struct kdapl_lmr *lmr);
void kdapl_lmr_free_reserved(struct kdapl_ia *ia);

/* mem_fmr.c */
void kdapl_lmr_request_done(struct kdapl_obj *obj, u8 op, u8 status);
void kdapl_lmr_recycle(struct work_struct *work);

/* mem_rmr.c */
void kdapl_rmr_queue_recycle(struct kdapl_rmr *rmr);

/* mem_bind.c */
void kdapl_rmr_request_done(struct kdapl_obj *obj, u8 op, u8 status);
void kdapl_rmr_invalidated(struct kdapl_obj *obj, u32 rkey);
DAT_RETURN kdapl_rmr_check_sink(struct kdapl_ep *ep,
				const DAT_RMR_TRIPLET *sink,
				DAT_LMR_TRIPLET *below, bool *keyed);

#endif
