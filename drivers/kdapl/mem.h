/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Local and Remote Memory Regions: mem_lmr.c, mem_fmr.c, mem_alloc.c, mem_posted.c,
 * mem_sync.c, mem_rmr.c, mem_bind.c; and the calls for mappings, mem_sg.c.
 */
#ifndef KDAPL_MEM_H
#define KDAPL_MEM_H

#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include "handle.h"
#include "pz.h"
#include "pz_lmr.h"

#define KDAPL_PRIV_REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | \
				 DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

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

/*
 * A posted request: the window that it opens and the window that it closes; one may be
 * NULL.
 */
struct kdapl_window_req {
	struct kdapl_window *opens;
	struct kdapl_window *closes;
};

#define KDAPL_WINDOW_REQS 4		/* per window: one opens, one closes */

/*
 * struct kdapl_rmr - Remote Memory Region
 * @obj: members common to all objects
 * @pz: Protection Zone, used and referenced
 * @sgt: room for the pages of a window while it is being opened
 * @max_pages: entries of @sgt, and pages of each MR
 * @recycle: replaces MRs; holds a reference while queued
 * @lock: protects all members that follow; nests inside evd->lock
 * @win: the two windows
 * @cur: the open window, NULL if the RMR is not bound
 * @reqs: requests that have not completed, in posting order
 * @nreqs: number of @reqs
 * @posting: claimed by dat_rmr_bind(), which may be about to post a request for any MR
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
void kdapl_lmr_unbind(struct kdapl_lmr *lmr);
void kdapl_lmr_request_done(struct kdapl_obj *obj, u8 op, u8 status);
void kdapl_lmr_recycle(struct work_struct *work);
void kdapl_lmr_queue_recycle(struct kdapl_lmr *lmr);

/* mem_rmr.c */
void kdapl_rmr_queue_recycle(struct kdapl_rmr *rmr);

/* mem_bind.c */
void kdapl_rmr_request_done(struct kdapl_obj *obj, u8 op, u8 status);
void kdapl_rmr_invalidated(struct kdapl_obj *obj, u32 rkey);
DAT_RETURN kdapl_rmr_check_sink(struct kdapl_ep *ep,
				const DAT_RMR_TRIPLET *sink,
				DAT_LMR_TRIPLET *below, bool *keyed);

#endif
