// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Binding of Remote Memory Regions.
 *
 * See rmr.c for what a window is. Binding runs in any context: the MRs and the
 * scatter list are there, and the addresses come from the LMR's. One bind at a
 * time has claimed the RMR; completions may come while it is at work, so whatever
 * both of them change is changed under the RMR's lock, which is not held while
 * posting.
 */
#include <linux/scatterlist.h>
#include "kdapl.h"

#define KDAPL_PRIV_REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | \
				 DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* What dat_rmr_bind() was asked for. */
struct kdapl_rmr_spec {
	struct kdapl_lmr *lmr;
	DAT_LMR_TRIPLET triplet;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VA_TYPE va_type;
	struct kdapl_ep *ep;
	DAT_RMR_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
};

/**
 * kdapl_rmr_request_done - a request of dat_rmr_bind() has ended
 * @rmr: the RMR
 * @status: DAT_DTO_COMPLETION_STATUS; may be changed
 *
 * Context: Any; the EVD's lock is held.
 * Return: whether the consumer may have an event for it.
 */
bool kdapl_rmr_request_done(struct kdapl_rmr *rmr, u8 *status)
{
	struct kdapl_lmr *lmr = NULL;
	struct kdapl_window_req req;
	struct kdapl_window *win;
	unsigned long flags;
	bool recycle;

	spin_lock_irqsave(&rmr->lock, flags);
	/* One Endpoint at a time, so they end in the order they were posted. */
	req = rmr->reqs[0];
	rmr->nreqs--;
	memmove(rmr->reqs, rmr->reqs + 1, rmr->nreqs * sizeof(req));
	win = req.win;
	win->pending--;
	if (*status != DAT_DTO_SUCCESS) {
		win->discard = true;
		if (rmr->cur == win)
			rmr->cur = NULL;
	} else if (req.closes && !win->discard) {
		swap(lmr, win->lmr);
	}
	if (req.silent) {
		rmr->error = *status;
	} else {
		/* The first of the two knows the cause. */
		if (*status != DAT_DTO_SUCCESS && rmr->error)
			*status = rmr->error;
		rmr->error = DAT_DTO_SUCCESS;
	}
	recycle = kdapl_window_is_waste(win);
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (lmr)
		kdapl_obj_drop(&lmr->obj);
	if (recycle)
		kdapl_rmr_queue_recycle(rmr);
	kdapl_obj_put(&rmr->obj);
	return !req.silent;
}

/* Post a request about a window. The caller has claimed the RMR. */
static DAT_RETURN kdapl_rmr_post(struct kdapl_rmr *rmr,
				 struct kdapl_window_req req,
				 struct ib_send_wr *wr,
				 const struct kdapl_rmr_spec *spec)
{
	unsigned long flags;
	DAT_RETURN ret;

	kref_get(&rmr->obj.ref);
	spin_lock_irqsave(&rmr->lock, flags);
	rmr->reqs[rmr->nreqs++] = req;
	req.win->pending++;
	spin_unlock_irqrestore(&rmr->lock, flags);

	ret = kdapl_post_sq(spec->ep, wr, spec->cookie, DAT_DTO_BIND_MW,
			    req.silent ? DAT_COMPLETION_SUPPRESS_FLAG :
					 spec->flags, &rmr->obj);
	if (ret == DAT_SUCCESS)
		return ret;

	/* It is still the last one: only the claimant adds requests. */
	spin_lock_irqsave(&rmr->lock, flags);
	rmr->nreqs--;
	req.win->pending--;
	spin_unlock_irqrestore(&rmr->lock, flags);
	kdapl_obj_put(&rmr->obj);
	return ret;
}

static DAT_RETURN kdapl_rmr_close(struct kdapl_rmr *rmr,
				  struct kdapl_window *win, u32 rkey,
				  const struct kdapl_rmr_spec *spec)
{
	struct kdapl_window_req req = { .win = win, .closes = true };
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV,
		.ex.invalidate_rkey = rkey,
	};

	return kdapl_rmr_post(rmr, req, &wr, spec);
}

/* Let an idle window show what is asked for. Under rmr->lock. */
static int kdapl_window_load(struct kdapl_rmr *rmr, struct kdapl_window *win,
			     const struct kdapl_rmr_spec *spec)
{
	u64 start = spec->triplet.virtual_address;
	u64 len = spec->triplet.segment_length;
	int err;

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

/* It was never opened. */
static void kdapl_window_unload(struct kdapl_rmr *rmr, struct kdapl_window *win)
{
	struct kdapl_lmr *lmr = NULL;
	unsigned long flags;

	spin_lock_irqsave(&rmr->lock, flags);
	swap(lmr, win->lmr);
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (lmr)
		kdapl_obj_drop(&lmr->obj);
}

/* It was opened, but is not wanted after all. */
static void kdapl_window_abandon(struct kdapl_rmr *rmr,
				 struct kdapl_window *win)
{
	unsigned long flags;
	bool recycle;

	spin_lock_irqsave(&rmr->lock, flags);
	win->discard = true;
	recycle = kdapl_window_is_waste(win);
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (recycle)
		kdapl_rmr_queue_recycle(rmr);
}

static void kdapl_rmr_set(struct kdapl_rmr *rmr, struct kdapl_window *win,
			  u32 rkey, const struct kdapl_rmr_spec *spec)
{
	unsigned long flags;

	spin_lock_irqsave(&rmr->lock, flags);
	/* It may have failed already. */
	rmr->cur = win && !win->discard ? win : NULL;
	rmr->triplet = spec->triplet;
	rmr->priv = spec->priv;
	rmr->va_type = spec->va_type;
	rmr->context = rkey;
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

/* Bind. The RMR is claimed and @win is idle. */
static DAT_RETURN kdapl_rmr_open(struct kdapl_rmr *rmr,
				 struct kdapl_window *win,
				 const struct kdapl_rmr_spec *spec,
				 DAT_RMR_CONTEXT *context)
{
	struct kdapl_window_req req = { .win = win };
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.access = kdapl_mr_access(spec->priv & KDAPL_PRIV_REMOTE),
	};
	struct kdapl_window *old;
	unsigned long flags;
	DAT_RETURN ret;
	u32 old_rkey;
	int err;

	if (!kdapl_obj_hold(&spec->lmr->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	spin_lock_irqsave(&rmr->lock, flags);
	old = rmr->cur;
	old_rkey = rmr->context;
	err = win->mr ? kdapl_window_load(rmr, win, spec) : -ENODEV;
	if (!err) {
		win->lmr = spec->lmr;
		wr.mr = win->mr;
		wr.key = win->mr->rkey;
	}
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (err) {
		kdapl_obj_drop(&spec->lmr->obj);
		return kdapl_rmr_map_error(err);
	}

	req.silent = old;
	ret = kdapl_rmr_post(rmr, req, &wr.wr, spec);
	if (ret != DAT_SUCCESS) {
		kdapl_window_unload(rmr, win);
		return ret;
	}
	if (old) {
		ret = kdapl_rmr_close(rmr, old, old_rkey, spec);
		if (ret != DAT_SUCCESS) {
			kdapl_window_abandon(rmr, win);
			return ret;
		}
	}
	kdapl_rmr_set(rmr, win, wr.key, spec);
	*context = wr.key;
	return DAT_SUCCESS;
}

/*
 * Claim the RMR for a bind: one at a time, and none while requests are
 * outstanding on another Endpoint, whose queue is not ordered with this one.
 * Finds an idle window too, unless there is nothing to open.
 */
static bool kdapl_rmr_try_claim(struct kdapl_rmr *rmr, struct kdapl_ep *ep,
				bool open, struct kdapl_window **win)
{
	unsigned long flags;
	bool ok = false;
	int i;

	*win = NULL;
	spin_lock_irqsave(&rmr->lock, flags);
	for (i = 0; i < ARRAY_SIZE(rmr->win) && !*win; i++)
		if (kdapl_window_idle(&rmr->win[i]))
			*win = &rmr->win[i];
	if (!rmr->posting && (*win || !open) &&
	    (!rmr->nreqs || rmr->ep_handle == ep->obj.handle)) {
		rmr->posting = true;
		rmr->ep_handle = ep->obj.handle;
		ok = true;
	}
	spin_unlock_irqrestore(&rmr->lock, flags);
	return ok;
}

static DAT_RETURN kdapl_rmr_claim(struct kdapl_rmr *rmr, struct kdapl_ep *ep,
				  bool open, struct kdapl_window **win)
{
	if (kdapl_rmr_try_claim(rmr, ep, open, win))
		return DAT_SUCCESS;
	kdapl_look_at_ep(READ_ONCE(rmr->ep_handle));
	if (kdapl_rmr_try_claim(rmr, ep, open, win))
		return DAT_SUCCESS;
	/* If it was for want of an MR. */
	kdapl_rmr_queue_recycle(rmr);
	return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
			 DAT_RESOURCE_MEMORY_REGION);
}

static DAT_RETURN kdapl_rmr_rebind(struct kdapl_rmr *rmr,
				   const struct kdapl_rmr_spec *spec,
				   DAT_RMR_CONTEXT *context)
{
	bool open = spec->lmr;
	struct kdapl_window *win, *cur;
	unsigned long flags;
	DAT_RETURN ret;

	ret = kdapl_rmr_claim(rmr, spec->ep, open, &win);
	if (ret != DAT_SUCCESS)
		return ret;
	if (open) {
		ret = kdapl_rmr_open(rmr, win, spec, context);
		goto out;
	}
	cur = READ_ONCE(rmr->cur);
	ret = cur ? kdapl_rmr_close(rmr, cur, rmr->context, spec) :
		    DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	if (ret == DAT_SUCCESS)
		kdapl_rmr_set(rmr, NULL, 0, spec);
out:
	spin_lock_irqsave(&rmr->lock, flags);
	rmr->posting = false;
	spin_unlock_irqrestore(&rmr->lock, flags);
	return ret;
}

/* Check what is to be shown against the LMR it is part of. */
static DAT_RETURN kdapl_rmr_check_lmr(const struct kdapl_rmr_spec *spec)
{
	const DAT_LMR_TRIPLET *triplet = &spec->triplet;
	struct kdapl_lmr *lmr = spec->lmr;
	u64 offset;

	if (lmr->reserved)
		return DAT_ERROR(DAT_RESERVED_LMR, DAT_NO_SUBTYPE);
	if (lmr->fmr)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	/* Pairs with the release when the LMR was made. */
	if (!smp_load_acquire(&lmr->valid))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_DEVICE);
	offset = triplet->virtual_address - lmr->base;
	if (triplet->lmr_context != lmr->context || offset > lmr->len ||
	    triplet->segment_length > lmr->len - offset)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (spec->priv & DAT_MEM_PRIV_REMOTE_READ_FLAG &&
	    !(lmr->priv & DAT_MEM_PRIV_LOCAL_READ_FLAG))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ);
	if (spec->priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG &&
	    !(lmr->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION,
				 DAT_PRIVILEGES_WRITE);
	return DAT_SUCCESS;
}

static DAT_RETURN kdapl_rmr_check(struct kdapl_rmr *rmr,
				  const struct kdapl_rmr_spec *spec)
{
	if (spec->priv & ~DAT_MEM_PRIV_ALL_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (spec->va_type != DAT_VA_TYPE_VA && spec->va_type != DAT_VA_TYPE_ZB)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (READ_ONCE(spec->ep->pz) != rmr->pz ||
	    (spec->lmr && !spec->lmr->reserved && spec->lmr->pz != rmr->pz))
		return DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
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
	/* For the references that the requests are going to have. */
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
