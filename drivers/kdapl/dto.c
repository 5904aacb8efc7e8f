// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Data transfer: the posting calls for Sends and receives, and how other calls post a
 * request (kdapl_post_sq()) or several (kdapl_post_batch()).
 *
 * Posting runs in any context, does not sleep and does not allocate. The handle
 * is looked up and used inside of one RCU read-side section; the ring's lock
 * keeps the ring and the device's queue in the same order.
 */
#include "dto_post.h"
#include "ia.h"
#include "pz.h"
#include "pz_sge.h"
#include "trace.h"

#define KDAPL_POST_FLAGS (DAT_COMPLETION_SUPPRESS_FLAG | \
			  DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
			  DAT_COMPLETION_UNSIGNALLED_FLAG | \
			  DAT_COMPLETION_BARRIER_FENCE_FLAG | \
			  DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG | \
			  KDAT_COMPLETION_MORE_FLAG)

/* Are these completion flags allowed on a request of @ep? */
static bool kdapl_flags_ok(struct kdapl_ep *ep, DAT_COMPLETION_FLAGS flags,
			   DAT_DTOS op)
{
	if (flags & ~KDAPL_POST_FLAGS)
		return false;
	if (flags & DAT_COMPLETION_UNSIGNALLED_FLAG &&
	    !(ep->attr.request_completion_flags &
	      DAT_COMPLETION_UNSIGNALLED_FLAG))
		return false;
	if (flags & KDAT_COMPLETION_MORE_FLAG &&
	    (op != DAT_DTO_LMR_FMR || !(flags & DAT_COMPLETION_SUPPRESS_FLAG)))
		return false;
	return !(flags & DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG) ||
	       op == DAT_DTO_LMR_INVALIDATE;
}

/*
 * Poll for suppressed requests that have completed without an event. Drops the ring's
 * lock meanwhile, so the caller must check everything again: the Endpoint may have lost
 * its connection and its EVD. Return false if the Endpoint has no EVD.
 */
static bool kdapl_sq_make_room(struct kdapl_ep *ep, unsigned long *irq)
	__must_hold(&ep->sq.lock)
{
	struct kdapl_evd *evd = READ_ONCE(ep->req_evd);
	struct kdapl_ring *sq = &ep->sq;

	if (!evd)
		return false;
	kdapl_post_behind(ep, NULL);
	spin_unlock_irqrestore(&sq->lock, *irq);
	/* RCU keeps @evd, even if the Endpoint has another one by now. */
	kdapl_cq_poll_all(evd);
	spin_lock_irqsave(&sq->lock, *irq);
	return true;
}

/* Check again if the ring seems to be full. @ret: from kdapl_sq_check() */
DAT_RETURN kdapl_sq_retry(struct kdapl_ep *ep, bool read, bool chain,
			  const struct kdapl_segs *segs, unsigned long *irq,
			  DAT_RETURN ret)
	__must_hold(&ep->sq.lock)
{
	if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES ||
	    !kdapl_sq_make_room(ep, irq))
		return ret;
	return kdapl_sq_check(ep, read, chain, segs);
}

/* ---- Bindings posted with the next request ---------------------------------- */

/*
 * Hand the bindings that were held back to the device, and @wr behind them. @wr may be
 * NULL, or several requests; its last one was entered in the ring last.
 */
void kdapl_post_behind(struct kdapl_ep *ep, struct ib_send_wr *wr)
{
	struct kdapl_ring *sq = &ep->sq;
	struct ib_send_wr *first = ep->first_bind;

	lockdep_assert_held(&sq->lock);

	if (!ep->nbinds)
		return;
	/*
	 * @wr is signalled and its completion stands for the bindings; without @wr signal
	 * the last.
	 */
	if (!wr)
		ep->last_bind->send_flags |= IB_SEND_SIGNALED;
	ep->last_bind->next = wr;
	ep->nbinds = 0;
	if (likely(!ib_post_send(sq->qp, first, NULL)))
		sq->posted = sq->head;
	else
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_DRIVER);
}

/*
 * Drop the bindings that were held back: no request goes to the device any more, and the
 * ring flushes them.
 */
void kdapl_forget_binds(struct kdapl_ep *ep)
{
	lockdep_assert_held(&ep->sq.lock);
	ep->nbinds = 0;
}

/*
 * Hold back @wr, whose entry is @entry, for kdapl_post_behind(); @wr stays in place until
 * then. Return false if the ring has no QP or the device lacks earlier requests.
 */
bool kdapl_keep_bind(struct kdapl_ep *ep, struct kdapl_wr *entry,
		     struct ib_send_wr *wr)
{
	struct kdapl_ring *sq = &ep->sq;

	lockdep_assert_held(&sq->lock);

	if (!sq->qp || sq->posted + ep->nbinds != (u32)entry->seq)
		return false;
	entry->suppress = KDAPL_SILENT;
	wr->wr_id = (uintptr_t)entry;
	wr->send_flags &= ~IB_SEND_SIGNALED;
	if (ep->nbinds++)
		ep->last_bind->next = wr;
	else
		ep->first_bind = wr;
	ep->last_bind = wr;
	return true;
}

/**
 * kdapl_post_sq - post a request to the send queue of an Endpoint
 * @ep: the Endpoint, found in the current RCU read-side section
 * @wr: the work request; wr_id and the common flags are filled in. If there is a next
 *	one, the two are one request to the consumer: the first completes silently, unless
 *	it fails
 * @cookie: the consumer's cookie
 * @op: reported in the completion event
 * @flags: completion flags, checked
 * @mem: LMR, RMR or mapping that the request is about, referenced and in use by the caller
 * @len: bytes that the request reads, or 0
 *
 * Context: Any.
 * Return: %DAT_SUCCESS, or why the request is refused
 */
DAT_RETURN kdapl_post_sq(struct kdapl_ep *ep, struct ib_send_wr *wr,
			 DAT_DTO_COOKIE cookie, DAT_DTOS op,
			 DAT_COMPLETION_FLAGS flags, struct kdapl_obj *mem,
			 u32 len)
{
	const struct kdapl_segs segs = { .len = len };

	wr->send_flags |= kdapl_send_flags(flags);
	if (wr->next) {
		wr->send_flags &= ~IB_SEND_SIGNALED;
		wr->next->send_flags |= IB_SEND_SIGNALED;
	}
	return kdapl_post(ep, wr, cookie, op, flags, mem, &segs, wr->next);
}

/* As kdapl_sq_check(), for @n requests. */
static DAT_RETURN kdapl_batch_check(struct kdapl_ep *ep,
				    const struct kdapl_request *req,
				    unsigned int n)
{
	DAT_EP_STATE state = READ_ONCE(ep->state);
	struct kdapl_ring *sq = &ep->sq;
	int extra = atomic_read(&sq->chains);
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned int i;
	u32 used;

	lockdep_assert_held(&sq->lock);

	if (state != DAT_EP_STATE_CONNECTED &&
	    state != DAT_EP_STATE_DISCONNECTED)
		return kdapl_ep_state_error(state);
	/* Pairs with the release of an entry that was reaped. litmus: ring-tail */
	used = sq->head - smp_load_acquire(&sq->tail);
	if (used + n > sq->max ||
	    (extra && (sq->qp || ep->deferred) && used + extra + n > sq->depth))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	for (i = 0; i < n && ret == DAT_SUCCESS; i++) {
		if (req[i].op == DAT_DTO_RDMA_READ && !kdapl_reads_allowed(ep, state))
			return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
					 DAT_RESOURCE_CREDITS);
		ret = kdapl_sq_check_segs(sq, &req[i].segs);
	}
	return ret;
}

/*
 * Can the completion of a later request in the same batch stand for a success of @req?
 * Not for a Read: siw completes requests that follow a Read before the Read.
 */
static bool kdapl_is_silent(const struct kdapl_request *req)
{
	return req->flags & DAT_COMPLETION_SUPPRESS_FLAG &&
	       req->op != DAT_DTO_RDMA_READ;
}

/* Enter requests in the ring, which has room, and hand them to the device. */
static void kdapl_batch_submit(struct kdapl_ep *ep, struct kdapl_request *req,
			       unsigned int n)
{
	struct kdapl_ring *sq = &ep->sq;
	u32 first = sq->head;
	struct kdapl_wr *entry;
	DAT_DTO_COOKIE cookie;
	unsigned int i;

	lockdep_assert_held(&sq->lock);

	for (i = 0; i < n; i++) {
		cookie.as_64 = req[i].wr.wr.wr_id;
		entry = kdapl_sq_enter(ep, cookie, req[i].op, req[i].flags, NULL,
				       &req[i].segs, false);
		req[i].wr.wr.wr_id = (uintptr_t)entry;
		req[i].wr.wr.send_flags = kdapl_send_flags(req[i].flags);
		if (i == n - 1)
			break;
		req[i].wr.wr.next = &req[i + 1].wr.wr;
		if (kdapl_is_silent(&req[i])) {
			entry->suppress = KDAPL_SILENT;
			req[i].wr.wr.send_flags &= ~IB_SEND_SIGNALED;
		}
	}
	/*
	 * The connection has ended; what comes now is flushed. Over iWARP the QP may be ready
	 * nevertheless, even if the consumer has ended the attempt before the peer answered.
	 */
	if (unlikely(READ_ONCE(ep->state) == DAT_EP_STATE_DISCONNECTED))
		return;
	if (!sq->qp || sq->posted != first) {
		if (ep->deferred)
			kdapl_defer_add(ep, &req[0].wr.wr);
		else if (ep->nbinds)
			kdapl_post_behind(ep, &req[0].wr.wr);
		return;
	}
	/* A refused request is flushed, as in kdapl_sq_submit(). */
	if (likely(!ib_post_send(sq->qp, &req[0].wr.wr, NULL)))
		sq->posted += n;
	else
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_DRIVER);
}

/**
 * kdapl_post_batch - post several requests, all or none, with one doorbell
 * @ep: the Endpoint, found in the current RCU read-side section
 * @req: the requests, checked; none is a chain of two
 * @n: their number
 *
 * Context: Any.
 * Return: %DAT_SUCCESS, or why the requests are refused
 */
DAT_RETURN kdapl_post_batch(struct kdapl_ep *ep, struct kdapl_request *req,
			    unsigned int n)
{
	struct kdapl_ring *sq = &ep->sq;
	bool flush = false;
	unsigned long irq;
	unsigned int i;
	DAT_RETURN ret;

	if (static_branch_unlikely(&kdapl_dma_syncs))
		for (i = 0; i < n; i++)
			kdapl_segs_to_device(sq, req[i].flags, &req[i].segs);
	spin_lock_irqsave(&sq->lock, irq);
	ret = kdapl_batch_check(ep, req, n);
	if (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES &&
	    kdapl_sq_make_room(ep, &irq))
		ret = kdapl_batch_check(ep, req, n);
	if (likely(ret == DAT_SUCCESS)) {
		kdapl_batch_submit(ep, req, n);
		flush = sq->flushed;
	}
	spin_unlock_irqrestore(&sq->lock, irq);
	if (unlikely(flush))
		kdapl_ring_flush(ep, sq, KDAPL_FLUSH_POST);
	return ret;
}

/**
 * kdapl_flags_check - are these completion flags allowed on a request?
 * @ep: the Endpoint, found in the current RCU read-side section
 * @flags: completion flags
 * @op: the operation
 * @arg: position of the flags argument, DAT_INVALID_ARG...
 *
 * Context: Any.
 * Return: %DAT_SUCCESS, or %DAT_INVALID_PARAMETER with @arg
 */
DAT_RETURN kdapl_flags_check(struct kdapl_ep *ep, DAT_COMPLETION_FLAGS flags,
			     DAT_DTOS op, int arg)
{
	if (unlikely(flags && !kdapl_flags_ok(ep, flags, op)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, arg);
	return DAT_SUCCESS;
}

static __always_inline DAT_RETURN
__kdapl_send_build(struct kdapl_ep *ep, struct kdapl_segs *segs,
		   DAT_COMPLETION_FLAGS flags, struct ib_send_wr *wr,
		   struct ib_sge *sge)
{
	DAT_RETURN ret;
	u64 total;

	if (unlikely(wr->opcode == IB_WR_SEND_WITH_INV &&
		     !kdapl_can_register(&ep->obj.ia->hca->attrs)))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	ret = kdapl_sge_check(ep->pz, ep->obj.handle, segs->n, segs->iov,
			      ep->attr.max_request_iov,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG, sge, &wr->num_sge,
			      &total, &segs->map);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	if (unlikely(total > ep->attr.max_message_size))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	wr->sg_list = sge;
	segs->len = total;
	if (unlikely(flags))
		return kdapl_flags_check(ep, flags, DAT_DTO_SEND,
					 DAT_INVALID_ARG5);
	return DAT_SUCCESS;
}

/*
 * Check a Send and fill in @wr, whose opcode is set, and its segments @sge. Sets
 * segs->len, and segs->map as kdapl_sge_build() does.
 */
DAT_RETURN kdapl_send_build(struct kdapl_ep *ep, struct kdapl_segs *segs,
			    DAT_COMPLETION_FLAGS flags, struct ib_send_wr *wr,
			    struct ib_sge *sge)
{
	return __kdapl_send_build(ep, segs, flags, wr, sge);
}

static __always_inline DAT_RETURN
kdapl_send(DAT_EP_HANDLE ep_handle, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
	   DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
	   struct ib_send_wr *wr)
{
	struct ib_sge sge[KDAPL_MAX_IOV] __uninitialized;
	struct kdapl_segs segs = kdapl_segs(n, iov);
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	ret = __kdapl_send_build(ep, &segs, flags, wr, sge);
	if (likely(ret == DAT_SUCCESS)) {
		wr->send_flags = kdapl_send_flags(flags);
		ret = kdapl_post(ep, wr, cookie, DAT_DTO_SEND, flags, NULL,
				 &segs, false);
	}
	if (unlikely(segs.map && ret != DAT_SUCCESS))
		kdapl_sg_put(segs.map);
out:
	rcu_read_unlock();
	return ret;
}

DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    DAT_LMR_TRIPLET *local_iov,
			    DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };

	return kdapl_send(ep_handle, num_segments, local_iov, user_cookie,
			  completion_flags, &wr);
}
EXPORT_SYMBOL(dat_ep_post_send);

DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle,
					    DAT_COUNT num_segments,
					    DAT_LMR_TRIPLET *local_iov,
					    DAT_DTO_COOKIE user_cookie,
					    DAT_COMPLETION_FLAGS completion_flags,
					    DAT_BOOLEAN invalidate_flag,
					    DAT_RMR_CONTEXT rmr_context)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };

	if (invalidate_flag) {
		wr.opcode = IB_WR_SEND_WITH_INV;
		wr.ex.invalidate_rkey = rmr_context;
	}
	return kdapl_send(ep_handle, num_segments, local_iov, user_cookie,
			  completion_flags, &wr);
}
EXPORT_SYMBOL(dat_ep_post_send_with_invalidate);

/* Check a receive and translate its segments. */
static __always_inline DAT_RETURN
kdapl_rq_check(struct kdapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
	       DAT_COMPLETION_FLAGS flags, struct ib_sge *sge, int *nsge)
{
	DAT_RETURN ret;
	u64 total;

	lockdep_assert_held(&ep->rq.lock);

	/* dat_ep_modify() lowers nlmr and changes the PZ in one section under rq.lock. */
	ret = kdapl_sge_check(ep->pz, ep->obj.handle, n, iov, ep->rq.nlmr,
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, sge, nsge, &total,
			      NULL);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	if (unlikely(flags && (flags != DAT_COMPLETION_UNSIGNALLED_FLAG ||
			       !ep->rq.unsignalled)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (unlikely(!ep->recv_evd))
		return DAT_ERROR(DAT_INVALID_STATE,
				 DAT_INVALID_STATE_EP_EVD_RECV);
	return DAT_SUCCESS;
}

/* The ring is full. Argument errors take precedence, so validate before reporting it. */
static noinline DAT_RETURN kdapl_rq_full(struct kdapl_ep *ep, DAT_COUNT n,
					 const DAT_LMR_TRIPLET *iov,
					 DAT_COMPLETION_FLAGS flags)
{
	struct ib_sge sge[KDAPL_MAX_IOV] __uninitialized;
	DAT_RETURN ret;
	int nsge;

	ret = kdapl_rq_check(ep, n, iov, flags, sge, &nsge);
	return ret != DAT_SUCCESS ? ret :
		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

/* Hand the receive just entered to the device, behind any that wait in the ring. */
static __always_inline void kdapl_rq_submit(struct kdapl_ring *rq,
					    struct kdapl_wr *entry)
{
	if (likely(rq->qp && rq->posted == (u32)entry->seq))
		kdapl_rq_post(rq, entry);
	else
		kdapl_rq_push(rq);
}

static __always_inline DAT_RETURN
kdapl_rq_enter(struct kdapl_ep *ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
	       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct kdapl_ring *rq = &ep->rq;
	struct kdapl_wr *entry;
	DAT_RETURN ret;
	int nsge;

	lockdep_assert_held(&rq->lock);

	if (unlikely(kdapl_ring_full(rq)))
		return kdapl_rq_full(ep, n, iov, flags);
	/* Build the segments right in the entry, where ib_post_recv() reads them. */
	entry = kdapl_ring_wr(rq, rq->head);
	ret = kdapl_rq_check(ep, n, iov, flags, entry->sge, &nsge);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	entry->ev.kind = KDAPL_EV_RQ;
	entry->ev.no_upcall = !!flags;
	entry->ep = ep;
	entry->cookie = cookie;
	entry->seq = rq->head;
	entry->op = DAT_DTO_RECEIVE;
	entry->rkey = 0;
	entry->nsge = nsge;
	entry->pz = ep->pz;
	if (static_branch_unlikely(&kdapl_dma_syncs))
		kdapl_wr_name_used(entry, rq->niov, n, iov);
	else
		kdapl_wr_name(entry, rq->niov, n, iov);
	kdapl_ring_advance(rq);
	trace_kdapl_recv_posted(ep, entry);
	kdapl_rq_submit(rq, entry);
	return DAT_SUCCESS;
}

DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    DAT_LMR_TRIPLET *local_iov,
			    DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags)
{
	struct kdapl_ring *rq;
	struct kdapl_ep *ep;
	bool flush = false;
	unsigned long irq;
	DAT_RETURN ret;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (unlikely(ep->srq)) {
		ret = DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
		goto out;
	}
	if (static_branch_unlikely(&kdapl_dma_syncs))
		kdapl_recv_to_device(READ_ONCE(ep->pz), ep->obj.handle, ep->rq.nlmr,
				     num_segments, local_iov);
	rq = &ep->rq;
	spin_lock_irqsave(&rq->lock, irq);
	ret = kdapl_rq_enter(ep, num_segments, local_iov, user_cookie,
			     completion_flags);
	if (likely(ret == DAT_SUCCESS))
		flush = rq->flushed;
	spin_unlock_irqrestore(&rq->lock, irq);
	if (unlikely(flush))
		kdapl_ring_flush(ep, rq, KDAPL_FLUSH_POST);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_post_recv);
