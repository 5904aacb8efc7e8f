// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Binding of Remote Memory Regions: dat_rmr_bind(), its completions, and the
 * check of an RMR as the sink of an RDMA Read. mem_rmr.c explains windows.
 *
 * dat_rmr_bind() may be called in any context: the MRs and the scatter list
 * exist, and the DMA addresses are copied from the LMR. One bind at a time
 * claims the RMR (kdapl_rmr_claim()). Completions and the peer may change a window
 * meanwhile: rmr->lock protects the members that they and the claimant change. It is
 * not held while posting.
 */
#include <linux/scatterlist.h>
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "mem.h"
#include "pz.h"

/* Privileges of an RMR that need local reading or writing of the LMR. */
#define KDAPL_PRIV_READ		(DAT_MEM_PRIV_LOCAL_READ_FLAG | \
				 DAT_MEM_PRIV_REMOTE_READ_FLAG)
#define KDAPL_PRIV_WRITE	(DAT_MEM_PRIV_LOCAL_WRITE_FLAG | \
				 DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* The arguments of dat_rmr_bind(); @lmr is NULL to unbind. */
struct kdapl_rmr_spec {
	struct kdapl_lmr *lmr;
	DAT_LMR_TRIPLET triplet;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VA_TYPE va_type;
	struct kdapl_ep *ep;
	DAT_RMR_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
};

/* Close @win. Return its LMR, whose dependency the caller drops. */
static struct kdapl_lmr *kdapl_window_closed(struct kdapl_window *win)
{
	struct kdapl_lmr *lmr = NULL;

	swap(lmr, win->lmr);
	win->invalidated = false;
	return lmr;
}

/*
 * A request that opened @win, or closed it if @closed, has ended. If the window is closed
 * for certain, return its LMR as kdapl_window_closed() does; else NULL.
 */
static struct kdapl_lmr *kdapl_window_done(struct kdapl_rmr *rmr,
					   struct kdapl_window *win,
					   bool closed, bool failed)
{
	lockdep_assert_held(&rmr->lock);

	if (!win)
		return NULL;
	win->pending--;
	if (failed) {
		win->discard = true;
		if (rmr->cur == win)
			rmr->cur = NULL;
		return NULL;
	}
	if (!win->discard && (closed || (win->invalidated && !win->pending)))
		return kdapl_window_closed(win);
	return NULL;
}

/* Is there an MR that kdapl_rmr_recycle() must replace? */
static bool kdapl_rmr_has_waste(struct kdapl_rmr *rmr)
{
	return kdapl_window_is_waste(rmr, &rmr->win[0]) ||
	       kdapl_window_is_waste(rmr, &rmr->win[1]);
}

/**
 * kdapl_rmr_request_done - a request of dat_rmr_bind() has ended
 * @obj: the RMR
 * @op: %DAT_DTO_BIND_MW
 * @status: DAT_DTO_COMPLETION_STATUS
 *
 * Drops the reference of the request, and the dependency of a closed window.
 *
 * Context: Any.
 */
void kdapl_rmr_request_done(struct kdapl_obj *obj, u8 op, u8 status)
{
	struct kdapl_rmr *rmr = container_of(obj, struct kdapl_rmr, obj);
	bool failed = status != DAT_DTO_SUCCESS, recycle;
	struct kdapl_lmr *lmr, *opened;
	struct kdapl_window_req req;
	unsigned long flags;

	spin_lock_irqsave(&rmr->lock, flags);
	/* All requests are on one Endpoint, so they end in posting order. */
	req = rmr->reqs[0];
	rmr->nreqs--;
	memmove(rmr->reqs, rmr->reqs + 1, rmr->nreqs * sizeof(req));
	opened = kdapl_window_done(rmr, req.opens, false, failed);
	lmr = kdapl_window_done(rmr, req.closes, true, failed);
	recycle = kdapl_rmr_has_waste(rmr);
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (lmr)
		kdapl_dep_put(&lmr->obj);
	if (opened)
		kdapl_dep_put(&opened->obj);
	if (recycle)
		kdapl_rmr_queue_recycle(rmr);
	kdapl_obj_put(&rmr->obj);
}

/* A peer has invalidated @rkey: close the window of @obj if it has this key. Context: Any. */
void kdapl_rmr_invalidated(struct kdapl_obj *obj, u32 rkey)
{
	struct kdapl_rmr *rmr = container_of(obj, struct kdapl_rmr, obj);
	struct kdapl_lmr *lmr = NULL;
	struct kdapl_window *win;
	unsigned long flags;

	spin_lock_irqsave(&rmr->lock, flags);
	win = rmr->cur;
	if (win && rmr->context == rkey) {
		rmr->cur = NULL;
		win->invalidated = true;
		if (!win->pending && !win->discard)
			lmr = kdapl_window_closed(win);
	}
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (lmr)
		kdapl_dep_put(&lmr->obj);
}

/* Count (@delta 1) or uncount (@delta -1) @req, the last of rmr->reqs. */
static void kdapl_rmr_count(struct kdapl_rmr *rmr, struct kdapl_window_req req,
			    int delta)
{
	lockdep_assert_held(&rmr->lock);

	rmr->nreqs += delta;
	if (req.opens)
		req.opens->pending += delta;
	if (req.closes)
		req.closes->pending += delta;
}

/* Post @wr for the windows of @req. The caller has claimed @rmr. */
static DAT_RETURN kdapl_rmr_post(struct kdapl_rmr *rmr,
				 struct kdapl_window_req req,
				 struct ib_send_wr *wr,
				 const struct kdapl_rmr_spec *spec)
{
	unsigned long flags;
	DAT_RETURN ret;

	kref_get(&rmr->obj.ref);
	spin_lock_irqsave(&rmr->lock, flags);
	rmr->reqs[rmr->nreqs] = req;
	kdapl_rmr_count(rmr, req, 1);
	spin_unlock_irqrestore(&rmr->lock, flags);

	ret = kdapl_post_sq(spec->ep, wr, spec->cookie, DAT_DTO_BIND_MW,
			    spec->flags, &rmr->obj, 0);
	if (ret == DAT_SUCCESS)
		return ret;

	/* @req is still the last one: only the claimant adds requests. */
	spin_lock_irqsave(&rmr->lock, flags);
	kdapl_rmr_count(rmr, req, -1);
	spin_unlock_irqrestore(&rmr->lock, flags);
	kdapl_obj_put(&rmr->obj);
	return ret;
}

/*
 * Write the page list of @win, which is idle, and give it a new key. No lock is held, as
 * a long list takes long: the caller has claimed @rmr, and kdapl_remove_one() waits for
 * the caller's RCU read-side section before it closes windows.
 */
static int kdapl_window_load(struct kdapl_rmr *rmr, struct kdapl_window *win,
			     const struct kdapl_rmr_spec *spec)
{
	u64 start = spec->triplet.virtual_address;
	u64 len = spec->triplet.segment_length;
	int err;

	if (READ_ONCE(rmr->obj.ia->hca->gone) || !win->mr)
		return -ENODEV;
	err = kdapl_region_slice(spec->lmr, start - spec->lmr->base, len,
				 &rmr->sgt, rmr->max_pages);
	if (err)
		return err;
	err = kdapl_mr_map(win->mr, &rmr->sgt,
			   spec->va_type == DAT_VA_TYPE_ZB ? 0 : start, len);
	if (err)
		return err;
	ib_update_fast_reg_key(win->mr, ib_inc_rkey(win->mr->rkey));
	return 0;
}

/* Undo kdapl_window_load(): the device does not know the new key. */
static void kdapl_window_unload(struct kdapl_rmr *rmr, struct kdapl_window *win)
{
	struct kdapl_lmr *lmr = NULL;
	unsigned long flags;

	spin_lock_irqsave(&rmr->lock, flags);
	swap(lmr, win->lmr);
	if (win->mr)
		ib_update_fast_reg_key(win->mr, win->mr->rkey - 1);
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (lmr)
		kdapl_dep_put(&lmr->obj);
}

/* Record that @rmr is bound to @win with key @rkey, or (NULL) unbound. */
static void kdapl_rmr_set(struct kdapl_rmr *rmr, struct kdapl_window *win,
			  u32 rkey, const struct kdapl_rmr_spec *spec)
{
	unsigned long flags;

	spin_lock_irqsave(&rmr->lock, flags);
	/* kdapl_window_done() has set ->discard if the request has failed. */
	rmr->cur = win && !win->discard ? win : NULL;
	rmr->triplet = spec->triplet;
	rmr->priv = spec->priv;
	rmr->va_type = spec->va_type;
	rmr->context = rkey;
	rmr->bound_on = spec->ep->obj.handle;
	spin_unlock_irqrestore(&rmr->lock, flags);
}

static DAT_RETURN kdapl_rmr_map_error(int err)
{
	if (err == -ENODEV || err == -EIO)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_DEVICE);
	if (err == -ERANGE)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
}

/* Open @win and close the open window. The caller has claimed @rmr. */
static DAT_RETURN kdapl_rmr_open(struct kdapl_rmr *rmr,
				 struct kdapl_window *win,
				 const struct kdapl_rmr_spec *spec,
				 DAT_RMR_CONTEXT *context)
{
	struct kdapl_window_req req = { .opens = win };
	struct ib_send_wr inv = { .opcode = IB_WR_LOCAL_INV };
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.access = kdapl_mr_access(spec->priv),
	};
	unsigned long flags;
	DAT_RETURN ret;
	int err;

	if (!kdapl_dep_tryget(&spec->lmr->obj))
		return kdapl_lmr_retired(spec->lmr);
	err = kdapl_window_load(rmr, win, spec);
	if (err) {
		kdapl_dep_put(&spec->lmr->obj);
		return kdapl_rmr_map_error(err);
	}
	spin_lock_irqsave(&rmr->lock, flags);
	req.closes = rmr->cur;
	inv.ex.invalidate_rkey = rmr->context;
	win->lmr = spec->lmr;
	wr.mr = win->mr;
	wr.key = win->mr->rkey;
	spin_unlock_irqrestore(&rmr->lock, flags);

	if (req.closes)
		wr.wr.next = &inv;
	ret = kdapl_rmr_post(rmr, req, &wr.wr, spec);
	if (ret != DAT_SUCCESS) {
		kdapl_window_unload(rmr, win);
		return ret;
	}
	kdapl_rmr_set(rmr, win, wr.key, spec);
	*context = wr.key;
	return DAT_SUCCESS;
}

/*
 * Return whether @rmr is bound with scope EP on another Endpoint that is still connected.
 * Context: Any; inside an RCU read-side section.
 */
static bool kdapl_rmr_is_elsewhere(const struct kdapl_rmr *rmr, const struct kdapl_ep *ep)
{
	u64 handle = rmr->cur ? rmr->bound_on : 0;

	lockdep_assert_held(&rmr->lock);

	return rmr->scope == DAT_RMR_SCOPE_EP && handle && handle != ep->obj.handle &&
	       kdapl_ep_is_connected(handle);
}

/*
 * Claim @rmr for a bind on @ep. Fails if requests are posted on another Endpoint, as the
 * order of execution would be unknown. Set *@win to an idle window or NULL; with @open,
 * fail without one.
 */
static DAT_RETURN kdapl_rmr_try_claim(struct kdapl_rmr *rmr, struct kdapl_ep *ep,
				      bool open, struct kdapl_window **win)
{
	DAT_RETURN ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	unsigned long flags;
	int i;

	*win = NULL;
	spin_lock_irqsave(&rmr->lock, flags);
	for (i = 0; i < ARRAY_SIZE(rmr->win) && !*win; i++)
		if (kdapl_window_idle(rmr, &rmr->win[i]))
			*win = &rmr->win[i];
	/*
	 * kdapl_rmr_try_retire() sets ->users to -1 under the lock, unless ->posting is
	 * set.
	 */
	if (atomic_read(&rmr->obj.users) < 0) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	} else if (kdapl_rmr_is_elsewhere(rmr, ep)) {
		ret = DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	} else if (!rmr->posting && (*win || !open) &&
		   (!rmr->nreqs || rmr->ep_handle == ep->obj.handle)) {
		rmr->posting = true;
		rmr->ep_handle = ep->obj.handle;
		ret = DAT_SUCCESS;
	}
	spin_unlock_irqrestore(&rmr->lock, flags);
	return ret;
}

/* Claim @rmr; poll once for requests that must complete first. */
static DAT_RETURN kdapl_rmr_claim(struct kdapl_rmr *rmr, struct kdapl_ep *ep,
				  bool open, struct kdapl_window **win)
{
	DAT_RETURN ret = kdapl_rmr_try_claim(rmr, ep, open, win);

	if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
		return ret;
	kdapl_ep_poll_requests(READ_ONCE(rmr->ep_handle));
	ret = kdapl_rmr_try_claim(rmr, ep, open, win);
	/* An MR that was not replaced may be why no window is idle. */
	if (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES)
		kdapl_rmr_queue_recycle(rmr);
	return ret;
}

/*
 * Close the open window. The caller has claimed @rmr. If none is open, perhaps because
 * the peer has closed it, invalidate @idle again, to get a completion.
 */
static DAT_RETURN kdapl_rmr_close(struct kdapl_rmr *rmr,
				  struct kdapl_window *idle,
				  const struct kdapl_rmr_spec *spec)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV };
	struct kdapl_window_req req;
	unsigned long flags;
	DAT_RETURN ret;

	spin_lock_irqsave(&rmr->lock, flags);
	req.opens = NULL;
	req.closes = rmr->cur ?: idle;
	if (req.closes && req.closes->mr)
		wr.ex.invalidate_rkey = req.closes->mr->rkey;
	else
		req.closes = NULL;
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (!req.closes)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY_REGION);
	ret = kdapl_rmr_post(rmr, req, &wr, spec);
	if (ret == DAT_SUCCESS)
		kdapl_rmr_set(rmr, NULL, 0, spec);
	return ret;
}

/* Claim @rmr, bind or unbind it as @spec says, and end the claim. */
static DAT_RETURN kdapl_rmr_rebind(struct kdapl_rmr *rmr,
				   const struct kdapl_rmr_spec *spec,
				   DAT_RMR_CONTEXT *context)
{
	bool open = spec->lmr;
	struct kdapl_window *win;
	unsigned long flags;
	DAT_RETURN ret;
	bool recycle;

	ret = kdapl_rmr_claim(rmr, spec->ep, open, &win);
	if (ret != DAT_SUCCESS)
		return ret;
	ret = open ? kdapl_rmr_open(rmr, win, spec, context) :
		     kdapl_rmr_close(rmr, win, spec);
	spin_lock_irqsave(&rmr->lock, flags);
	rmr->posting = false;
	/* kdapl_rmr_recycle() skips windows while the RMR is claimed. */
	recycle = kdapl_rmr_has_waste(rmr);
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (recycle)
		kdapl_rmr_queue_recycle(rmr);
	return ret;
}

/* Return why the LMR, which is no longer valid, cannot be bound. */
static DAT_RETURN kdapl_rmr_lmr_error(const struct kdapl_rmr_spec *spec)
{
	/* kdapl_sge_build() returns the same error for such an LMR. */
	if (READ_ONCE(spec->lmr->invalidated))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION,
				 spec->priv & KDAPL_PRIV_WRITE ?
				 DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ);
	if (atomic_read(&spec->lmr->obj.users) < 0)
		return kdapl_lmr_retired(spec->lmr);
	return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
}

/* Check that the LMR allows the window of @spec. */
static DAT_RETURN kdapl_rmr_check_lmr(const struct kdapl_rmr_spec *spec)
{
	const DAT_LMR_TRIPLET *triplet = &spec->triplet;
	struct kdapl_lmr *lmr = spec->lmr;
	u64 offset;

	if (lmr->reserved)
		return DAT_ERROR(DAT_RESERVED_LMR, DAT_NO_SUBTYPE);
	if (lmr->fmr)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	/* Pairs with the release in kdapl_lmr_create(). litmus: lmr-valid */
	if (!smp_load_acquire(&lmr->valid))
		return kdapl_rmr_lmr_error(spec);
	offset = triplet->virtual_address - lmr->base;
	if (triplet->lmr_context != lmr->context || offset > lmr->len ||
	    triplet->segment_length > lmr->len - offset)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (spec->priv & KDAPL_PRIV_READ &&
	    !(lmr->priv & DAT_MEM_PRIV_LOCAL_READ_FLAG))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ);
	if (spec->priv & KDAPL_PRIV_WRITE &&
	    !(lmr->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION,
				 DAT_PRIVILEGES_WRITE);
	return DAT_SUCCESS;
}

/* As kdapl_rmr_is_elsewhere(). Context: Any; inside an RCU read-side section. */
static bool kdapl_rmr_elsewhere(struct kdapl_rmr *rmr, struct kdapl_ep *ep)
{
	unsigned long flags;
	bool elsewhere;

	if (rmr->scope != DAT_RMR_SCOPE_EP)
		return false;
	spin_lock_irqsave(&rmr->lock, flags);
	elsewhere = kdapl_rmr_is_elsewhere(rmr, ep);
	spin_unlock_irqrestore(&rmr->lock, flags);
	return elsewhere;
}

/* Check @sink against the open window; see kdapl_rmr_check_sink(). */
static DAT_RETURN kdapl_rmr_check_range(struct kdapl_rmr *rmr,
					const DAT_RMR_TRIPLET *sink,
					DAT_LMR_TRIPLET *below, bool *keyed)
{
	u64 offset = sink->virtual_address;

	lockdep_assert_held(&rmr->lock);

	if (!rmr->cur || rmr->context != sink->rmr_context ||
	    !(rmr->priv & KDAPL_PRIV_WRITE))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION,
				 DAT_PRIVILEGES_WRITE);
	if (rmr->va_type == DAT_VA_TYPE_VA)
		offset -= rmr->triplet.virtual_address;
	if (offset > rmr->triplet.segment_length ||
	    sink->segment_length > rmr->triplet.segment_length - offset)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*below = rmr->triplet;
	below->virtual_address += offset;
	below->segment_length = sink->segment_length;
	*keyed = !rmr->obj.ia->reads_to_key ||
		 rmr->priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	return DAT_SUCCESS;
}

/**
 * kdapl_rmr_check_sink - check an RMR as the sink of an RDMA Read
 * @ep: the Endpoint that will read
 * @sink: the sink, which must lie in a bound RMR that may be written
 * @below: set to the same part of the LMR
 * @keyed: set to whether the device accepts the key of the RMR, see dto_sink.c
 *
 * Context: Any; RCU read-side section.
 * Return: %DAT_SUCCESS, or why @sink is refused
 */
DAT_RETURN kdapl_rmr_check_sink(struct kdapl_ep *ep,
				const DAT_RMR_TRIPLET *sink,
				DAT_LMR_TRIPLET *below, bool *keyed)
{
	DAT_RETURN ret = DAT_ERROR(DAT_PRIVILEGES_VIOLATION,
				   DAT_PRIVILEGES_WRITE);
	struct kdapl_obj *owner;
	struct kdapl_rmr *rmr;
	unsigned long flags;

	owner = kdapl_mr_owner(ep->obj.ia->hca, sink->rmr_context);
	if (!owner)
		return ret;
	if (kdapl_type(owner) != DAT_HANDLE_TYPE_RMR ||
	    owner->ia != ep->obj.ia)
		goto out_put;
	rmr = container_of(owner, struct kdapl_rmr, obj);
	if (rmr->pz != READ_ONCE(ep->pz) || kdapl_rmr_elsewhere(rmr, ep)) {
		ret = DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
		goto out_put;
	}
	spin_lock_irqsave(&rmr->lock, flags);
	ret = kdapl_rmr_check_range(rmr, sink, below, keyed);
	spin_unlock_irqrestore(&rmr->lock, flags);
out_put:
	kdapl_obj_put(owner);
	return ret;
}

static DAT_RETURN kdapl_rmr_check(struct kdapl_rmr *rmr,
				  const struct kdapl_rmr_spec *spec)
{
	DAT_RETURN ret;

	if (spec->priv & ~DAT_MEM_PRIV_ALL_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (spec->va_type != DAT_VA_TYPE_VA && spec->va_type != DAT_VA_TYPE_ZB)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (READ_ONCE(spec->ep->pz) != rmr->pz ||
	    (spec->lmr && !spec->lmr->reserved && spec->lmr->pz != rmr->pz) ||
	    kdapl_rmr_elsewhere(rmr, spec->ep))
		return DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	ret = kdapl_flags_check(spec->ep, spec->flags, DAT_DTO_BIND_MW,
				DAT_INVALID_ARG8);
	if (ret != DAT_SUCCESS)
		return ret;
	return spec->lmr ? kdapl_rmr_check_lmr(spec) : DAT_SUCCESS;
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
			const DAT_LMR_TRIPLET *lmr_triplet,
			DAT_MEM_PRIV_FLAGS mem_priv, DAT_VA_TYPE va_type,
			DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie,
			DAT_COMPLETION_FLAGS completion_flags,
			DAT_RMR_CONTEXT *rmr_context)
{
	bool open = lmr_triplet && lmr_triplet->segment_length;
	struct kdapl_rmr_spec spec = {
		.priv = mem_priv,
		.va_type = va_type,
		.cookie = user_cookie,
		.flags = completion_flags,
	};
	struct kdapl_rmr *rmr;
	DAT_RETURN ret;

	rcu_read_lock();
	rmr = kdapl_find(rmr_handle, DAT_HANDLE_TYPE_RMR);
	spec.ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (open)
		spec.lmr = kdapl_find(lmr_handle, DAT_HANDLE_TYPE_LMR);
	if (!rmr) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	} else if (open && !spec.lmr) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	} else if (!spec.ep) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	} else if (!lmr_triplet) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	} else if (open && !rmr_context) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG9);
	} else {
		spec.triplet = *lmr_triplet;
		ret = kdapl_rmr_check(rmr, &spec);
	}
	if (ret != DAT_SUCCESS)
		goto out;
	/* kdapl_rmr_post() takes the reference of the request from this one. */
	if (!kref_get_unless_zero(&rmr->obj.ref)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
		goto out;
	}
	ret = kdapl_rmr_rebind(rmr, &spec, rmr_context);
	kdapl_obj_put(&rmr->obj);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_rmr_bind);
