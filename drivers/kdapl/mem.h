/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory: pz.c, lmr.c, lmr_map.c, lmr_fmr.c, rmr.c, rmr_bind.c, mr.c,
 * svc.c.
 */
#ifndef KDAPL_MEM_H
#define KDAPL_MEM_H

#include "kdapl.h"

/*
 * struct kdapl_pz - Protection Zone
 * @pd: NULL once the device is gone
 * @lkey: local_dma_lkey of @pd, readable when that is gone
 * @svc: private loopback connection for registration, made when first needed
 * @svc_mutex: serialises use of @svc
 */
struct kdapl_pz {
	struct kdapl_obj obj;
	struct ib_pd *pd;
	u32 lkey;
	struct mutex svc_mutex;		/* see above */
	struct kdapl_svc *svc;
};

void kdapl_pz_device_gone(struct kdapl_pz *pz);
DAT_RETURN kdapl_pz_get(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			struct kdapl_pz **pz);

/* Different from every PZ, and from having none. */
#define KDAPL_NO_ZONE	((struct kdapl_pz *)ERR_PTR(-EACCES))

/*
 * struct kdapl_lmr - Local Memory Region
 * @pz: its Protection Zone; NULL for the reserved LMR
 * @zone: the same, or KDAPL_NO_ZONE if being of @pz does not decide who may use it
 * @context: what the consumer puts into triplets
 * @base: first address the consumer may use
 * @len: bytes that may be addressed
 * @priv: privileges
 * @valid: usable for data transfer (an unbound or device-less LMR is not)
 * @lkey: local key for the device
 * @shift: added to a consumer's address gives the device's
 * @mr: registered region, or NULL when @lkey is the PD's local_dma_lkey
 * @rmr_context: rkey for peers, 0 if none
 * @va: the memory's own address; @base unless that is zero-based
 * @sgt: the memory; fixed size if @fmr
 * @lock: protects @mapped, and all that follows; inside evd->lock
 * @mapped: @sgt was mapped for the device by us
 * @bound: a request that registers it was posted
 * @invalidated: by the peer, and not to be bound again
 * @closing: a request that invalidates it was posted
 * @posting: such a request is just being made
 * @stale: such a request failed, @recycle makes a new MR
 * @pending: such requests that have not completed
 * @ep_handle: where they were posted; or the last one that closes a window
 */
struct kdapl_lmr {
	struct kdapl_obj obj;
	struct kdapl_pz *pz;
	struct kdapl_pz *zone;
	DAT_LMR_CONTEXT context;
	u64 base;
	u64 len;
	DAT_MEM_PRIV_FLAGS priv;
	bool valid;
	u32 lkey;
	u64 shift;
	struct ib_mr *mr;
	DAT_RMR_CONTEXT rmr_context;

	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region;
	DAT_VA_TYPE va_type;
	bool fmr;			/* from dat_lmr_allocate */
	bool reserved;
	int max_pages;
	DAT_LMR_SCOPE scope;
	u64 va;
	struct sg_table sgt;

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

void kdapl_lmr_device_gone(struct kdapl_lmr *lmr);

/* Find an LMR by the context in a triplet. RCU read-side section. */
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
 * struct kdapl_window - an MR with which an RMR shows a part of an LMR
 * @mr: the MR; NULL while it is being replaced, or once the device is gone
 * @lmr: the LMR, used and referenced until the window is certainly closed
 * @pending: posted requests about it that have not completed
 * @discard: a request failed: @mr is to be replaced
 * @invalidated: by the peer, while requests are pending
 */
struct kdapl_window {
	struct ib_mr *mr;
	struct kdapl_lmr *lmr;
	u8 pending;
	bool discard;
	bool invalidated;
};

static inline bool kdapl_window_idle(const struct kdapl_window *win)
{
	return win->mr && !win->lmr && !win->pending && !win->discard;
}

/* A posted request: the window that it opens, and the one that it closes. */
struct kdapl_window_req {
	struct kdapl_window *opens;
	struct kdapl_window *closes;
};

#define KDAPL_WINDOW_REQS 4		/* two per window */

/*
 * struct kdapl_rmr - Remote Memory Region
 * @lock: protects all that follows; inside evd->lock
 * @cur: the open window, NULL if not bound
 * @reqs: requests that have not completed, in posting order
 * @posting: a bind is at work, and may be about to post any MR
 * @ep_handle: where they were posted
 * @bound_on: the Endpoint that an open window of scope EP belongs to
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

/* May the MR of a window be taken away? Under rmr->lock. */
static inline bool kdapl_window_quiet(const struct kdapl_rmr *rmr,
				      const struct kdapl_window *win)
{
	return !win->pending && !rmr->posting;
}

/* Is its MR to be replaced, and can it be? Under rmr->lock. */
static inline bool kdapl_window_is_waste(const struct kdapl_rmr *rmr,
					 const struct kdapl_window *win)
{
	return kdapl_window_quiet(rmr, win) && (win->discard || !win->mr);
}

void kdapl_rmr_device_gone(struct kdapl_rmr *rmr);

struct kdapl_lmr *kdapl_lmr_alloc(struct kdapl_ia *ia, struct kdapl_pz *pz);
void kdapl_lmr_free_reserved(struct kdapl_ia *ia);
void kdapl_lmr_request_done(struct kdapl_lmr *lmr, u8 op, u8 status);
void kdapl_lmr_recycle(struct work_struct *work);
void kdapl_look_at_ep(u64 handle);
struct ib_mr *kdapl_mr_alloc(struct kdapl_obj *owner, struct kdapl_pz *pz,
			     u32 pages);
void kdapl_mr_free(struct kdapl_obj *owner, struct ib_mr *mr);
struct kdapl_obj *kdapl_mr_owner(struct kdapl_hca *hca, u32 rkey);
void kdapl_mr_invalidated(struct kdapl_ep *ep, u32 rkey);
bool kdapl_lmr_elsewhere(struct kdapl_lmr *lmr, struct kdapl_ep *ep);
void kdapl_rmr_invalidated(struct kdapl_rmr *rmr, u32 rkey);
void kdapl_rmr_queue_recycle(struct kdapl_rmr *rmr);
void kdapl_rmr_request_done(struct kdapl_rmr *rmr, u8 status);
DAT_RETURN kdapl_rmr_check_sink(struct kdapl_ep *ep,
				const DAT_RMR_TRIPLET *sink,
				DAT_LMR_TRIPLET *below);

bool kdapl_region_ok(DAT_MEM_TYPE type, const DAT_REGION_DESCRIPTION *region,
		     u64 len);
int kdapl_region_build(struct kdapl_lmr *lmr, struct kdapl_lmr *origin);
int kdapl_region_map(struct kdapl_lmr *lmr);
int kdapl_region_fill(struct kdapl_lmr *lmr, u64 n);
void kdapl_region_unmap(struct kdapl_lmr *lmr);
bool kdapl_region_contiguous(struct kdapl_lmr *lmr);
int kdapl_region_slice(struct kdapl_lmr *lmr, u64 offset, u64 len,
		       struct sg_table *to, int max);
int kdapl_mr_access(DAT_MEM_PRIV_FLAGS priv);
bool kdapl_can_register(const struct ib_device_attr *attrs);
int kdapl_mr_map(struct ib_mr *mr, struct sg_table *sgt, u64 iova, u64 len);

/* A use of an object that was found under RCU, and a reference to it. */
static inline bool kdapl_obj_hold(struct kdapl_obj *obj)
{
	if (!kdapl_obj_use(obj))
		return false;
	if (kref_get_unless_zero(&obj->ref))
		return true;
	kdapl_obj_unuse(obj);
	return false;
}

static inline void kdapl_obj_drop(struct kdapl_obj *obj)
{
	kdapl_obj_unuse(obj);
	kdapl_obj_put(obj);
}

/*
 * A request about an LMR or RMR has ended, by completion or by a flush. Under
 * the EVD's lock, and before the event is queued. Drops the request's reference
 * to the object. Of a request in two parts the first one knows why it failed.
 */
static inline void kdapl_mem_done(struct kdapl_wr *wr)
{
	if (wr->twice) {
		atomic_dec(&wr->ep->sq.twice);
		if (wr->status != DAT_DTO_SUCCESS && wr->rkey)
			wr->status = wr->rkey;
		wr->rkey = 0;
	}
	if (wr->op == DAT_DTO_RDMA_READ)
		kdapl_obj_drop(wr->mem);
	else if (kdapl_type(wr->mem) == DAT_HANDLE_TYPE_RMR)
		kdapl_rmr_request_done(container_of(wr->mem, struct kdapl_rmr,
						    obj), wr->status);
	else
		kdapl_lmr_request_done(container_of(wr->mem, struct kdapl_lmr,
						    obj), wr->op, wr->status);
}

int kdapl_svc_register(struct kdapl_pz *pz, struct ib_mr *mr, int access);
int kdapl_svc_invalidate(struct kdapl_pz *pz, u32 rkey);
void kdapl_svc_destroy(struct kdapl_pz *pz);

#endif
