// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions: what each means to its request or buffer, and to the connection.
 *
 * kdapl_cq_poll() calls kdapl_dto_complete() with the EVD's lock held. No other EVD may be
 * locked here, so marks to report are collected in a struct kdapl_later, and work is queued.
 */
#include "dto.h"
#include "ep.h"
#include "hca.h"
#include "ia.h"
#include "pz.h"
#include "pz_sg.h"
#include "srq.h"
#include "trace.h"

static u8 kdapl_wc_status(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		return DAT_DTO_SUCCESS;
	case IB_WC_WR_FLUSH_ERR:
		return DAT_DTO_ERR_FLUSHED;
	case IB_WC_LOC_LEN_ERR:
		return DAT_DTO_ERR_LOCAL_LENGTH;
	case IB_WC_LOC_QP_OP_ERR:
	case IB_WC_LOC_EEC_OP_ERR:
		return DAT_DTO_ERR_LOCAL_EP;
	case IB_WC_LOC_PROT_ERR:
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	case IB_WC_MW_BIND_ERR:
		return DAT_RMR_OPERATION_FAILED;
	case IB_WC_BAD_RESP_ERR:
		return DAT_DTO_ERR_BAD_RESPONSE;
	case IB_WC_REM_ACCESS_ERR:
	case IB_WC_LOC_ACCESS_ERR:
		return DAT_DTO_ERR_REMOTE_ACCESS;
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_REM_OP_ERR:
		return DAT_DTO_ERR_REMOTE_RESPONDER;
	case IB_WC_RNR_RETRY_EXC_ERR:
		return DAT_DTO_ERR_RECEIVER_NOT_READY;
	default:
		return DAT_DTO_ERR_TRANSPORT;
	}
}

/* Return why a connection ends of which a completion has failed with @status. */
static enum kdapl_end kdapl_status_end(u8 status)
{
	switch (status) {
	case DAT_DTO_ERR_RECEIVER_NOT_READY:
		return KDAPL_END_QUEUE_DRY;
	case DAT_DTO_ERR_TRANSPORT:
		return KDAPL_END_TRANSPORT;
	default:
		return KDAPL_END_PROTOCOL;
	}
}

/*
 * @ep has a completion that is no success. Any status but a flush means that the
 * connection is lost; so does a flush unless the connection has ended.
 */
static void kdapl_wc_failed(struct kdapl_ep *ep, u8 status)
{
	if (status != DAT_DTO_ERR_FLUSHED)
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN, kdapl_status_end(status));
	else if (READ_ONCE(ep->state) != DAT_EP_STATE_DISCONNECTED)
		kdapl_ep_qp_died(ep);
}

/*
 * The first work request of a chain of two has failed. Record its status: the second one
 * completes later and reports the failure to the consumer.
 */
static void kdapl_first_failed(struct kdapl_wr *wr, u8 status)
{
	wr->rkey = status;
	if (status != DAT_DTO_SUCCESS)
		kdapl_wc_failed(wr->ep, status);
}

/*
 * A request of @ep has completed. If it was the last one, end a graceful disconnect that
 * waits for it: our disconnect waits for @head, the peer's for @posted.
 */
static void kdapl_send_last(struct kdapl_ep *ep)
{
	/*
	 * Pairs with kdapl_ep_change_state(): ->head and ->posted include all requests
	 * posted before the change. evd->lock orders ->done before the state.
	 * litmus: ep-last, ep-drain
	 */
	switch (smp_load_acquire(&ep->state)) {
	case DAT_EP_STATE_DISCONNECT_PENDING:
		if (ep->sq.done == READ_ONCE(ep->sq.head))
			kdapl_ep_down(ep, DAT_CONNECTION_EVENT_DISCONNECTED,
				      KDAPL_END_CONSUMER);
		break;
	case DAT_EP_STATE_DISCONNECTED:
		if (ep->sq.done == READ_ONCE(ep->sq.posted))
			kdapl_ep_hurry(ep);
		break;
	default:
		break;
	}
}

static void kdapl_send_finish(struct kdapl_evd *evd, struct kdapl_wr *wr,
			      struct kdapl_later *later)
{
	struct kdapl_ep *ep = wr->ep;
	bool event = true;

	if (unlikely(wr->has_mem))
		kdapl_mem_done(wr);
	if (wr->suppress && wr->status == DAT_DTO_SUCCESS)
		event = false;
	kdapl_ring_complete(evd, &ep->sq, wr, event);
	if (event) {
		if (unlikely(READ_ONCE(ep->dying)))
			kdapl_ring_withdrawn(evd, &ep->sq);
		else
			kdapl_evd_add(evd, &wr->ev, later);
	}
	if (unlikely(READ_ONCE(ep->state) != DAT_EP_STATE_CONNECTED))
		kdapl_send_last(ep);
}

/*
 * Can a peer still write to the sink of this Read (dto_sink.c)? Then the Read, and all
 * requests after it, wait until kdapl_qp_destroy() has freed the MRs.
 */
static bool kdapl_sink_is_open(const struct kdapl_wr *wr)
{
	return unlikely(wr->has_mem) && wr->chained &&
	       wr->op == DAT_DTO_RDMA_READ && wr->status != DAT_DTO_SUCCESS;
}

/*
 * Has the device completed this request before? When a QP fails, siw flushes an RDMA Read
 * twice if its sending thread has not begun with it: as a Read that awaits its response,
 * and as the next request to send (siw_sq_flush() in 6.12).
 */
static bool kdapl_send_repeated(const struct kdapl_ring *sq, const struct kdapl_wr *wr)
{
	return wr->ahead || (s32)((u32)wr->seq - sq->done) < 0;
}

/*
 * @wr has completed before an older request. Usually this proves that the silent requests
 * before @wr have succeeded. A flush over iWARP proves nothing: siw flushes at once a
 * request that is posted during the flush, before older ones (siw_post_send() beside
 * siw_qp_llp_close() in 6.12). The fate of silent requests is then known only when the QP
 * is destroyed.
 */
static void kdapl_send_ahead(struct kdapl_ring *sq, struct kdapl_wr *wr)
{
	if (!sq->ahead++)
		sq->proved = sq->done;
	/* Pairs as ->done in kdapl_ring_complete() does. litmus: ring-done */
	smp_store_release(&wr->ahead, true);
	if ((wr->status != DAT_DTO_ERR_FLUSHED || !wr->ep->obj.ia->iwarp) &&
	    (s32)((u32)wr->seq - sq->proved) > 0)
		sq->proved = wr->seq;
}

/* Has @wr, the oldest request, succeeded without a completion of its own? */
static bool kdapl_send_was_silent(const struct kdapl_ring *sq, const struct kdapl_wr *wr)
{
	return kdapl_ring_left_out(sq, wr) && (s32)(sq->proved - (u32)wr->seq) > 0;
}

/*
 * A request has completed. siw completes requests that follow an RDMA Read before the
 * Read; end them in posting order, in the ring and towards the consumer.
 */
static void kdapl_send_done(struct kdapl_evd *evd, struct kdapl_wr *wr, u8 status,
			    struct kdapl_later *later)
{
	struct kdapl_ring *sq = &wr->ep->sq;

	if (unlikely((u32)wr->seq != sq->done || wr->ahead) && kdapl_send_repeated(sq, wr))
		return;
	wr->status = status;
	if (unlikely((u32)wr->seq != sq->done || kdapl_sink_is_open(wr)))
		kdapl_send_ahead(sq, wr);
	else
		kdapl_send_finish(evd, wr, later);
	while (unlikely(sq->ahead)) {
		wr = kdapl_ring_wr(sq, sq->done);
		if (wr->ahead ? kdapl_sink_is_open(wr) :
				!kdapl_send_was_silent(sq, wr))
			break;
		if (wr->ahead)
			sq->ahead--;
		else
			/* Not failed: the device has completed a later request. */
			wr->status = DAT_DTO_SUCCESS;
		wr->ahead = false;
		kdapl_send_finish(evd, wr, later);
	}
}

/*
 * Return the Endpoint whose QP at address @qp is being destroyed, or NULL. @evd is the
 * EVD of the Endpoint's receives.
 */
struct kdapl_ep *kdapl_leaving_ep(struct kdapl_evd *evd, const struct ib_qp *qp)
{
	struct kdapl_ep *ep;

	lockdep_assert_held(&evd->lock);

	hlist_for_each_entry(ep, kdapl_leaving_bucket(evd, qp), leaving_link)
		if (ep->leaving_qp == qp)
			return ep;
	return NULL;
}

/*
 * Return the Endpoint that took an SRQ's buffer. wc->qp may have been destroyed; then
 * kdapl_qp_remove() has entered it in evd->leaving, and only its address is compared.
 */
static struct kdapl_ep *kdapl_wc_ep(struct kdapl_evd *evd, struct ib_wc *wc)
{
	struct kdapl_ep *ep = NULL;

	if (unlikely(evd->nleaving))
		ep = kdapl_leaving_ep(evd, wc->qp);
	return ep ?: wc->qp->qp_context;
}

/* Return how many packets a message of @len bytes to @ep has. */
static u32 kdapl_packets(const struct kdapl_ep *ep, u32 len)
{
	return len ? ((len - 1) >> ep->mtu_shift) + 1 : 1;
}

/* @ep has taken @wr from the SRQ. */
static __always_inline void
kdapl_srq_took(struct kdapl_srq *srq, struct kdapl_ep *ep, struct kdapl_wr *wr,
	       struct kdapl_later *later)
{
	lockdep_assert_held(&ep->recv_evd->lock);

	spin_lock(&srq->lock);
	list_move_tail(&wr->link, &ep->at_hand);
	wr->posted = false;
	/* Prefetch the next buffer, as in kdapl_ring_advance(). */
	prefetchw(list_entry(srq->hw.next, struct kdapl_wr, link));
	srq->hw_count--;
	srq->available--;
	srq->taken++;
	if (wr->seq > srq->max_taken)
		srq->max_taken = wr->seq;
	ep->srq_seq = wr->seq;
	ep->srq_packets += kdapl_packets(ep, wr->len);
	if (unlikely(wr->status != DAT_DTO_SUCCESS))
		ep->srq_gave_back = true;
	if (unlikely(srq->suspect_below))
		kdapl_srq_suspect(srq, ep, wr);
	if (unlikely(!list_empty(&srq->waiting) ||
		     (srq->lw_armed && kdapl_srq_available(srq) < srq->lw)))
		kdapl_srq_refill(srq, later);
	spin_unlock(&srq->lock);
}

/*
 * The receive buffer @wr, with status, len and op set, has completed. @ep: Endpoint that
 * took the buffer; @evd: EVD of its receives
 */
static __always_inline void
kdapl_recv_done(struct kdapl_evd *evd, struct kdapl_ep *ep, struct kdapl_wr *wr,
		struct kdapl_later *later)
{
	bool srq = wr->ev.kind == KDAPL_EV_SRQ;

	if (srq)
		kdapl_srq_took(ep->srq, ep, wr, later);
	else
		kdapl_ring_complete(evd, &ep->rq, wr, true);

	/* A flushed receive of a ring was never taken for a message. */
	wr->taken = srq || wr->status != DAT_DTO_ERR_FLUSHED;
	if (wr->taken) {
		ep->held++;
		ep->taken++;
	}
	trace_kdapl_recv_taken(ep, wr);

	if (unlikely(READ_ONCE(ep->dying))) {
		kdapl_recv_withdraw(wr);
		return;
	}
	if (srq)
		wr->ev.no_upcall = ep->recv_no_upcall;
	else if (unlikely(ep->recv_no_upcall))
		wr->ev.no_upcall = true;
	if (unlikely(!ep->open)) {
		/* ESTABLISHED must come first; kdapl_ep_open() adds the event. */
		list_add_tail(&wr->ev.link, &ep->parked);
		return;
	}
	kdapl_evd_add(evd, &wr->ev, later);
	if (unlikely(ep->held > ep->mark))
		kdapl_ep_check_marks(ep, later);
}

/*
 * Was a receive flushed before older ones? siw flushes at once a receive that is posted
 * during a flush (siw_post_receive() beside siw_qp_llp_close() in 6.12). Receives end in
 * posting order, so the entry is left to kdapl_ring_flush(), and kdapl_withdraw_ring()
 * finds all events before ->done. A second flush of a receive that has ended is ignored,
 * too.
 */
static bool kdapl_recv_is_early(const struct kdapl_ep *ep, const struct kdapl_wr *wr, u8 status)
{
	return status == DAT_DTO_ERR_FLUSHED && wr->ev.kind == KDAPL_EV_RQ &&
	       (u32)wr->seq != ep->rq.done;
}

static __always_inline void kdapl_wc_done(struct kdapl_evd *evd,
					  struct ib_wc *wc,
					  struct kdapl_later *later)
{
	struct kdapl_wr *wr = (struct kdapl_wr *)(uintptr_t)wc->wr_id;
	u8 status = likely(wc->status == IB_WC_SUCCESS) ?
			DAT_DTO_SUCCESS : kdapl_wc_status(wc->status);
	struct kdapl_ep *ep;

	if (unlikely(wc->wr_id & KDAPL_WR_FIRST)) {
		wr = (void *)(uintptr_t)(wc->wr_id & ~KDAPL_WR_FIRST);
		kdapl_first_failed(wr, status);
		return;
	}
	ep = wr->ep;
	if (wr->ev.kind == KDAPL_EV_SQ) {
		/* Before kdapl_send_done(): the last request ends a graceful disconnect. */
		if (unlikely(status != DAT_DTO_SUCCESS))
			kdapl_wc_failed(ep, status);
		kdapl_send_done(evd, wr, status, later);
	} else if (unlikely(status) && kdapl_recv_is_early(ep, wr, status)) {
		kdapl_wc_failed(ep, status);
	} else {
		wr->status = status;
		if (wr->ev.kind == KDAPL_EV_SRQ)
			ep = kdapl_wc_ep(evd, wc);
		wr->ep = ep;
		wr->len = status == DAT_DTO_SUCCESS ? wc->byte_len : 0;
		wr->rkey = 0;
		wr->op = DAT_DTO_RECEIVE;
		/* Segments were checked, so rxe means that the buffer is too short. */
		if (unlikely(wc->status == IB_WC_LOC_QP_OP_ERR))
			wr->status = DAT_DTO_ERR_LOCAL_LENGTH;
		if (unlikely(wc->wc_flags & IB_WC_WITH_INVALIDATE) &&
		    wc->status == IB_WC_SUCCESS) {
			wr->op = DAT_DTO_RECEIVE_WITH_INVALIDATE;
			wr->rkey = wc->ex.invalidate_rkey;
			kdapl_mr_invalidated(ep->obj.ia->hca, wr->rkey);
		}
		kdapl_recv_done(evd, ep, wr, later);
		if (unlikely(status != DAT_DTO_SUCCESS))
			kdapl_wc_failed(ep, status);
	}
}

/*
 * Has all memory that @wc is about been synced for the CPU? If not, @wc waits, see struct
 * kdapl_stall. Called only where devices need syncs.
 */
static bool kdapl_wc_ready(struct kdapl_evd *evd, struct ib_wc *wc)
{
	struct kdapl_wr *wr = (struct kdapl_wr *)(uintptr_t)wc->wr_id;

	if (wc->status != IB_WC_SUCCESS || wc->wr_id & KDAPL_WR_FIRST)
		return true;
	return kdapl_wc_sync(evd, wr->ev.kind == KDAPL_EV_SRQ ? kdapl_wc_ep(evd, wc) :
								wr->ep, wc);
}

/**
 * kdapl_dto_complete - turn polled completions into events
 * @evd: the EVD of the completions
 * @wc: the completions
 * @n: their number
 * @later: what the caller does after unlocking
 *
 * Return: how many are events now; if not all, the next one waits for its DMA sync.
 */
int kdapl_dto_complete(struct kdapl_evd *evd, struct ib_wc *wc, int n,
		       struct kdapl_later *later)
{
	int i;

	lockdep_assert_held(&evd->lock);

	for (i = 0; i < n; i++) {
		if (static_branch_unlikely(&kdapl_dma_syncs) &&
		    !kdapl_wc_ready(evd, &wc[i]))
			break;
		kdapl_wc_done(evd, &wc[i], later);
	}
	return i;
}

/*
 * Poll the request EVD of the Endpoint with this handle, if there is one. Context: RCU
 * read-side section.
 */
void kdapl_ep_poll_requests(u64 handle)
{
	struct kdapl_evd *evd;
	struct kdapl_ep *ep;

	ep = kdapl_find((DAT_HANDLE)(uintptr_t)handle, DAT_HANDLE_TYPE_EP);
	evd = ep ? READ_ONCE(ep->req_evd) : NULL;
	if (evd)
		kdapl_cq_poll_all(evd);
}

/*
 * A request about an LMR, RMR or mapping has completed or is flushed; its event is not
 * queued yet. Drop the request's reference to the object. A failed chain reports the
 * status of its first work request.
 */
void kdapl_mem_done(struct kdapl_wr *wr)
{
	lockdep_assert_held(&wr->ep->req_evd->lock);

	if (wr->chained) {
		atomic_dec(&wr->ep->sq.chains);
		if (wr->status != DAT_DTO_SUCCESS && wr->rkey)
			wr->status = wr->rkey;
		wr->rkey = 0;
	}
	if (kdapl_type(wr->mem) == KDAPL_TYPE_SG)
		kdapl_sg_put(container_of(wr->mem, struct kdapl_sg, obj));
	else if (wr->op == DAT_DTO_RDMA_READ)
		kdapl_dep_put(wr->mem);
	else
		wr->mem->ops->request_done(wr->mem, wr->op, wr->status);
}
