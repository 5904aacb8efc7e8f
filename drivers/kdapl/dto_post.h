/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Posting a request. All of it is inline, so that dat_ep_post_send() (dto.c) and
 * dat_ep_post_rdma_write() (ep_rdma.c), which are called for each message, make no call.
 */
#ifndef KDAPL_DTO_POST_H
#define KDAPL_DTO_POST_H

#include <dat/kdat_linux.h>
#include "dto.h"
#include "ep.h"
#include "pz_sg.h"

/* dto.c */
DAT_RETURN kdapl_sq_retry(struct kdapl_ep *ep, bool read, bool chain,
			  const struct kdapl_segs *segs, unsigned long *irq,
			  DAT_RETURN ret)
	__must_hold(&ep->sq.lock);
bool kdapl_keep_bind(struct kdapl_ep *ep, struct kdapl_wr *entry,
		     struct ib_send_wr *wr);

/*
 * Hand a request to the device. A refused request stays in the ring and is flushed with
 * the rest: it was checked and there was room, so the connection must be ending. It
 * cannot be taken back, since siw may queue a request and return an error nevertheless.
 */
static __always_inline void kdapl_sq_submit(struct kdapl_ep *ep,
					    struct kdapl_wr *entry,
					    struct ib_send_wr *wr, bool chain)
{
	struct kdapl_ring *sq = &ep->sq;

	lockdep_assert_held(&sq->lock);

	wr->wr_id = (uintptr_t)entry;
	if (chain) {
		wr->next->wr_id = wr->wr_id;
		wr->wr_id |= KDAPL_WR_FIRST;
	}
	/* As in kdapl_batch_submit(). */
	if (unlikely(READ_ONCE(ep->state) == DAT_EP_STATE_DISCONNECTED))
		return;
	if (unlikely(!sq->qp || sq->posted != (u32)entry->seq)) {
		if (ep->deferred)
			kdapl_defer_add(ep, wr);
		else if (ep->nbinds)
			kdapl_post_behind(ep, wr);
		return;
	}
	if (likely(!ib_post_send(sq->qp, wr, NULL)))
		sq->posted++;
	else
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_DRIVER);
}

/*
 * Has the device room for one more request, or for a chain of two? The device's queue is
 * longer than the ring, but may hold fewer than two times max_request_dtos.
 */
static __always_inline bool kdapl_sq_room(struct kdapl_ep *ep, bool chain)
{
	struct kdapl_ring *sq = &ep->sq;
	int extra = atomic_read(&sq->chains);

	if (likely(!extra && !chain))
		return true;
	return (!sq->qp && !ep->deferred) ||
	       sq->head - READ_ONCE(sq->tail) + extra + 1 + chain <=
	       sq->depth;
}

/* Does the ring still have room for the LMRs of these checked segments? */
static __always_inline DAT_RETURN
kdapl_sq_check_segs(struct kdapl_ring *sq, const struct kdapl_segs *segs)
{
	lockdep_assert_held(&sq->lock);

	/* dat_ep_modify() may have replaced the ring since the segments were counted. */
	if (unlikely(segs->n > (DAT_COUNT)sq->nlmr))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return DAT_SUCCESS;
}

/*
 * May Reads be posted on the connection in which @state was read? rxe would wait for ever for
 * one that the peer does not answer. Without a connection they are flushed.
 */
static __always_inline bool kdapl_reads_allowed(struct kdapl_ep *ep, DAT_EP_STATE state)
{
	lockdep_assert_held(&ep->sq.lock);

	if (state != DAT_EP_STATE_CONNECTED)
		return true;
	/* Pairs with kdapl_ep_change_state(), before which ->no_reads is set. litmus: ep-last */
	smp_acquire__after_ctrl_dep();
	return ep->attr.max_rdma_read_out && !ep->no_reads;
}

/* May a request, or a chain of two, be posted now? @read: it is an RDMA Read */
static __always_inline DAT_RETURN kdapl_sq_check(struct kdapl_ep *ep, bool read, bool chain,
						 const struct kdapl_segs *segs)
{
	DAT_EP_STATE state = READ_ONCE(ep->state);

	lockdep_assert_held(&ep->sq.lock);

	if (unlikely(state != DAT_EP_STATE_CONNECTED &&
		     state != DAT_EP_STATE_DISCONNECTED))
		return kdapl_ep_state_error(state);
	if (read && unlikely(!kdapl_reads_allowed(ep, state)))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_CREDITS);
	if (unlikely(kdapl_ring_full(&ep->sq) ||
		     !kdapl_sq_room(ep, chain)))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	return kdapl_sq_check_segs(&ep->sq, segs);
}

/*
 * Enter a request in the ring, which has room. @mem: LMR or RMR that the request is
 * about, or NULL; @chain: the device gets two work requests
 */
static __always_inline struct kdapl_wr *
kdapl_sq_enter(struct kdapl_ep *ep, DAT_DTO_COOKIE cookie, DAT_DTOS op,
	       DAT_COMPLETION_FLAGS flags, struct kdapl_obj *mem,
	       const struct kdapl_segs *segs, bool chain)
{
	struct kdapl_ring *sq = &ep->sq;
	struct kdapl_wr *entry = kdapl_ring_wr(sq, sq->head);

	lockdep_assert_held(&sq->lock);

	entry->ev.kind = KDAPL_EV_SQ;
	entry->ev.no_upcall = !!(flags & DAT_COMPLETION_UNSIGNALLED_FLAG);
	entry->ep = ep;
	entry->cookie = cookie;
	entry->seq = sq->head;
	entry->op = op;
	entry->suppress = !!(flags & DAT_COMPLETION_SUPPRESS_FLAG);
	entry->nsge = 0;
	entry->rkey = 0;
	entry->len = segs->len;
	if (static_branch_unlikely(&kdapl_dma_syncs))
		kdapl_request_name(sq, entry, op, segs);
	else
		kdapl_wr_name(entry, 0, segs->n, segs->iov);
	if (unlikely(segs->map))
		mem = &segs->map->obj;
	entry->has_mem = mem;
	if (unlikely(mem)) {
		entry->mem = mem;
		entry->mem_handle = mem->handle;
		entry->chained = chain;
		if (chain)
			atomic_inc(&sq->chains);
	}
	kdapl_ring_advance(sq);
	return entry;
}

static inline unsigned int kdapl_send_flags(DAT_COMPLETION_FLAGS flags)
{
	unsigned int send_flags = IB_SEND_SIGNALED;

	if (likely(!flags))
		return send_flags;
	if (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		send_flags |= IB_SEND_SOLICITED;
	if (flags & (DAT_COMPLETION_BARRIER_FENCE_FLAG |
		     DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG))
		send_flags |= IB_SEND_FENCE;
	return send_flags;
}

/*
 * Post a request, or a chain of two. All calls that post one request end here. @op, @chain
 * and @mem are constants where that shortens the path.
 */
static __always_inline DAT_RETURN
kdapl_post(struct kdapl_ep *ep, struct ib_send_wr *wr, DAT_DTO_COOKIE cookie,
	   DAT_DTOS op, DAT_COMPLETION_FLAGS flags, struct kdapl_obj *mem,
	   const struct kdapl_segs *segs, bool chain)
{
	const bool read = op == DAT_DTO_RDMA_READ;
	struct kdapl_ring *sq = &ep->sq;
	struct kdapl_wr *entry;
	bool flush = false;
	unsigned long irq;
	DAT_RETURN ret;

	if (static_branch_unlikely(&kdapl_dma_syncs))
		kdapl_segs_to_device(sq, flags, segs);
	spin_lock_irqsave(&sq->lock, irq);
	ret = kdapl_sq_check(ep, read, chain, segs);
	if (unlikely(ret != DAT_SUCCESS))
		ret = kdapl_sq_retry(ep, read, chain, segs, &irq, ret);
	if (chain && read && ret == DAT_SUCCESS)
		ret = kdapl_sink_load(ep, wr, mem);
	if (likely(ret == DAT_SUCCESS)) {
		entry = kdapl_sq_enter(ep, cookie, op, flags, mem, segs, chain);
		/* A binding may wait for the next request. */
		if (op != DAT_DTO_LMR_FMR || !(flags & KDAT_COMPLETION_MORE_FLAG) ||
		    !kdapl_keep_bind(ep, entry, wr))
			kdapl_sq_submit(ep, entry, wr, chain);
		flush = sq->flushed;
	}
	spin_unlock_irqrestore(&sq->lock, irq);
	/* The connection has ended and nobody else flushes the ring. */
	if (unlikely(flush))
		kdapl_ring_flush(ep, sq, KDAPL_FLUSH_POST);
	return ret;
}

#endif
