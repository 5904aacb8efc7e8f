// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The queue pair of an Endpoint.
 *
 * The QP is created when the Endpoint connects or accepts, with the attributes of
 * that moment, and destroyed when the connection has ended. ib_drain_qp() is
 * not used: on an SRQ it can take a minute. Instead the QP is destroyed, which
 * is a fence on every device; the completions that it left on the CQs are polled;
 * all other posted requests are completed as flushed in software, in order.
 *
 * conn->mutex serialises creation and destruction.
 */
#include "conn.h"
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "pz.h"
#include "srq.h"
#include "trace.h"

/* Rebinds that may be outstanding besides max_request_dtos requests. */
#define KDAPL_REBINDS 64
/* Packet sequence numbers have 24 bits. */
#define KDAPL_PSN_MASK	0xffffffU
/* An MTU that no message exceeds. */
#define KDAPL_NO_MTU	31
/* Timeouts for IB_EVENT_QP_LAST_WQE_REACHED, on devices known to raise it. */
#define KDAPL_LAST_WQE_MS	2000U
#define KDAPL_LAST_WQE_MIN_MS	10U

/* A QP on an SRQ takes no more buffers and has completed those it took. */
static void kdapl_qp_last_wqe(struct kdapl_ep *ep)
{
	struct kdapl_hca *hca = ep->obj.ia->hca;

	complete(&ep->last_wqe);
	if (likely(READ_ONCE(hca->last_wqe_ms) == KDAPL_LAST_WQE_MS))
		return;
	WRITE_ONCE(hca->last_wqe_seen, true);
	WRITE_ONCE(hca->last_wqe_ms, KDAPL_LAST_WQE_MS);
}

static void kdapl_qp_event(struct ib_event *event, void *context)
{
	struct kdapl_ep *ep = context;
	unsigned long flags;

	/* Context: any, driver locks held. The QP must not be touched here. */
	trace_kdapl_qp_event(ep, event->event);
	switch (event->event) {
	case IB_EVENT_COMM_EST:
		/* Data has arrived before the last message of the handshake. */
		spin_lock_irqsave(&ep->lock, flags);
		if (ep->conn && ep->conn->id)
			rdma_notify(ep->conn->id, event->event);
		spin_unlock_irqrestore(&ep->lock, flags);
		break;
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_PROTOCOL);
		break;
	case IB_EVENT_QP_FATAL:
		/* On iWARP a message that is too long, for example. */
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN, ep->obj.ia->iwarp ?
			      KDAPL_END_PROTOCOL : KDAPL_END_TRANSPORT);
		break;
	case IB_EVENT_PATH_MIG_ERR:
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_TRANSPORT);
		break;
	case IB_EVENT_QP_LAST_WQE_REACHED:
		kdapl_qp_last_wqe(ep);
		kdapl_ep_qp_died(ep);
		break;
	default:
		break;
	}
}

static int kdapl_qp_init(struct kdapl_ep *ep, struct rdma_cm_id *id)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT };
	int mask, err;

	/* Only the state of @id can make this fail. */
	err = rdma_init_qp_attr(id, &attr, &mask);
	if (err)
		return -ENOTCONN;
	attr.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			       IB_ACCESS_REMOTE_READ;
	return ib_modify_qp(ep->qp, &attr, mask | IB_QP_ACCESS_FLAGS);
}

/*
 * Return how many work requests the device may hold. Rebinding an RMR is one request to
 * the consumer and two to the device, and so are some Reads (dto_sink.c).
 */
static int kdapl_send_depth(struct kdapl_ep *ep)
{
	const struct ib_device_attr *limits = &ep->obj.ia->hca->attrs;
	/* All requests complete on one CQ. */
	int max = min(limits->max_qp_wr, limits->max_cqe);
	int n = ep->attr.max_request_dtos;

	return min(n + (ep->sinks ? n : min(n, KDAPL_REBINDS)), max);
}

/* Tell the EVDs that the requests and receives of @ep can complete, or no longer can. */
static void kdapl_qp_expect(struct kdapl_ep *ep, bool can)
{
	int requests = ep->sq.max, receives = ep->rq.max;

	if (ep->req_evd)
		kdapl_cq_expect(ep->req_evd, can ? requests : -requests);
	/* kdapl_srq_watch() does this for the receives of an SRQ. */
	if (ep->recv_evd)
		kdapl_cq_expect(ep->recv_evd, can ? receives : -receives);
}

/* Set the CQs under ep->lock: kdapl_ep_check_cqs() may read them. */
static void kdapl_qp_set_cqs(struct kdapl_ep *ep, struct kdapl_cq *send_cq,
			     struct kdapl_cq *recv_cq)
{
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	ep->send_cq = send_cq;
	ep->recv_cq = recv_cq;
	spin_unlock_irqrestore(&ep->lock, flags);
}

/* Find CQs with room for all completions of both queues. */
static int kdapl_qp_charge(struct kdapl_ep *ep)
{
	struct kdapl_evd *send = ep->req_evd, *recv = ep->recv_evd;
	struct kdapl_evd *none = NULL;
	struct kdapl_cq *send_cq, *recv_cq;

	if (!send || !recv)
		none = kdapl_evd_null(ep->obj.ia);
	if ((!send || !recv) && !none)
		return -ENOMEM;

	ep->send_charge = send ? kdapl_send_depth(ep) : 0;
	ep->sq.depth = ep->send_charge;
	ep->recv_charge = ep->srq ? ep->srq->hw_max + ep->srq->hw_extra :
			  recv ? ep->attr.max_recv_dtos : 0;
	/* Before kdapl_cq_charge(), which arms the CQs if the expectation needs it. */
	kdapl_qp_expect(ep, true);
	send_cq = kdapl_cq_charge(send ?: none, ep->send_charge,
				  send == recv ? ep->recv_charge : 0,
				  recv ?: send ?: none, NULL, kdapl_dto_complete);
	if (IS_ERR(send_cq)) {
		kdapl_qp_expect(ep, false);
		return PTR_ERR(send_cq);
	}
	recv_cq = kdapl_cq_charge(recv ?: none, ep->recv_charge, 0,
				  send ?: recv ?: none, ep->srq, kdapl_dto_complete);
	if (!IS_ERR(recv_cq)) {
		kdapl_qp_set_cqs(ep, send_cq, recv_cq);
		return 0;
	}
	kdapl_cq_uncharge(send_cq, ep->send_charge, NULL);
	kdapl_qp_expect(ep, false);
	return PTR_ERR(recv_cq);
}

static void kdapl_qp_uncharge(struct kdapl_ep *ep)
{
	struct kdapl_cq *send_cq = ep->send_cq, *recv_cq = ep->recv_cq;

	kdapl_qp_set_cqs(ep, NULL, NULL);
	kdapl_cq_uncharge(recv_cq, ep->recv_charge, ep->srq);
	kdapl_cq_uncharge(send_cq, ep->send_charge, NULL);
	kdapl_qp_expect(ep, false);
}

/* Return how many segments a request of @ep may have. */
u32 kdapl_qp_send_sge(struct kdapl_ep *ep)
{
	return max(1, max3(ep->attr.max_request_iov, ep->attr.max_rdma_read_iov,
			   ep->attr.max_rdma_write_iov));
}

/* Remove @ep from the list of Endpoints whose QP is being destroyed. */
static void kdapl_leaving_del(struct kdapl_evd *evd, struct kdapl_ep *ep)
{
	lockdep_assert_held(&evd->lock);

	if (hlist_unhashed(&ep->leaving_link))
		return;
	hlist_del_init(&ep->leaving_link);
	evd->nleaving--;
}

/*
 * @qp was just created. If another QP was destroyed at the same address, its last
 * completions, already on the CQ, must be polled before @qp has any: kdapl_qp_remove()
 * may not have polled them yet.
 */
static void kdapl_leaving_settle(struct kdapl_evd *evd, struct ib_qp *qp)
{
	struct kdapl_ep *other;
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	other = kdapl_leaving_ep(evd, qp);
	spin_unlock_irqrestore(&evd->lock, flags);
	if (!other)
		return;
	flags = kdapl_cq_poll_all_lock(evd);
	other = kdapl_leaving_ep(evd, qp);
	if (other)
		kdapl_leaving_del(evd, other);
	spin_unlock_irqrestore(&evd->lock, flags);
}

static struct ib_qp *kdapl_qp_alloc(struct kdapl_ep *ep)
{
	struct ib_device_attr *max = &ep->pz->pd->device->attrs;
	struct ib_qp_init_attr init = {
		.event_handler = kdapl_qp_event,
		.qp_context = ep,
		.send_cq = ep->send_cq->cq,
		.recv_cq = ep->recv_cq->cq,
		.srq = ep->srq ? ep->srq->srq : NULL,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = ep->obj.ia->port,
	};
	struct ib_qp *qp;

	init.cap.max_send_wr = clamp_t(u32, ep->send_charge, 1, max->max_qp_wr);
	init.cap.max_send_sge = kdapl_qp_send_sge(ep);
	if (!ep->srq) {
		init.cap.max_recv_wr = clamp_t(u32, ep->recv_charge, 1, max->max_qp_wr);
		init.cap.max_recv_sge = max(1, ep->attr.max_recv_iov);
	}
	qp = ib_create_qp_kernel(ep->pz->pd, &init, ep->obj.ia->consumer);
	if (!IS_ERR(qp))
		kdapl_leaving_settle(ep->recv_cq->evd, qp);
	return qp;
}

/**
 * kdapl_qp_create - create the queue pair
 * @ep: the Endpoint; has a PZ
 * @id: bound to the device
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: 0, or an errno with nothing changed; -ENOTCONN: the peer whose request @id is
 * has given up.
 */
int kdapl_qp_create(struct kdapl_ep *ep, struct rdma_cm_id *id)
{
	int err;

	err = kdapl_sinks_alloc(ep);
	if (err)
		return err;
	reinit_completion(&ep->last_wqe);
	ep->receives = false;
	ep->mtu_shift = KDAPL_NO_MTU;
	ep->srq_psn = 0;
	/*
	 * The mutex keeps a resize from coming between reading the SRQ's size and
	 * charging a CQ for it.
	 */
	if (ep->srq) {
		mutex_lock(&ep->srq->mutex);
		err = kdapl_srq_attach(ep->srq, ep);
		if (err) {
			mutex_unlock(&ep->srq->mutex);
			goto err_sinks;
		}
	}
	err = kdapl_qp_charge(ep);
	if (ep->srq)
		mutex_unlock(&ep->srq->mutex);
	if (err)
		goto err_detach;
	ep->qp = kdapl_qp_alloc(ep);
	if (IS_ERR(ep->qp)) {
		err = PTR_ERR(ep->qp);
		goto err_uncharge;
	}
	err = kdapl_qp_init(ep, id);
	if (!err)
		return 0;

	ib_destroy_qp(ep->qp);
err_uncharge:
	ep->qp = NULL;
	kdapl_qp_uncharge(ep);
err_detach:
	if (ep->srq)
		kdapl_srq_detach(ep->srq, ep, 0);
err_sinks:
	kdapl_sinks_free(ep);
	return err;
}

/* The Endpoint has its connection: give the QP to the rings. */
void kdapl_qp_start(struct kdapl_ep *ep)
{
	unsigned long flags;

	spin_lock_irqsave(&ep->sq.lock, flags);
	/* kdapl_defer_done() gives the send ring its QP if requests are deferred. */
	if (!ep->deferred)
		ep->sq.qp = ep->qp;
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	/* kdapl_cq_failed() skips an Endpoint without connection: check its CQs now. */
	kdapl_ep_check_cqs(&ep->obj);
	if (ep->srq)
		return;
	spin_lock_irqsave(&ep->rq.lock, flags);
	ep->rq.qp = ep->qp;
	spin_unlock_irqrestore(&ep->rq.lock, flags);
	kdapl_qp_post_recvs(ep);
}

/* Undo kdapl_qp_create(). Nothing was posted. */
void kdapl_qp_undo(struct kdapl_ep *ep)
{
	kdapl_defer_end(ep);
	ib_destroy_qp(ep->qp);
	ep->qp = NULL;
	kdapl_qp_uncharge(ep);
	if (ep->srq)
		kdapl_srq_detach(ep->srq, ep, 0);
	kdapl_sinks_free(ep);
}

/* Post the receives that wait in @ep's ring. Context: any. */
void kdapl_qp_post_recvs(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool more;

	do {
		spin_lock_irqsave(&ep->rq.lock, flags);
		more = kdapl_rq_push(&ep->rq);
		spin_unlock_irqrestore(&ep->rq.lock, flags);
	} while (more);
}

/*
 * Take the QP to RTS; on iWARP the driver does that. On the passive side @param has the
 * RDMA Read depths; on the active side the peer's reply sets them.
 */
int kdapl_qp_to_rts(struct kdapl_ep *ep, struct rdma_cm_id *id,
		    const struct rdma_conn_param *param)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	int mask, err;

	ep->no_reads = param && !param->initiator_depth;
	if (!rdma_cap_ib_cm(id->device, id->port_num))
		return 0;
	err = rdma_init_qp_attr(id, &attr, &mask);
	if (err)
		return err;
	if (param)
		attr.max_dest_rd_atomic = param->responder_resources;
	ep->srq_gid = rdma_ah_read_grh(&attr.ah_attr)->sgid_index;
	ep->srq_psn = attr.rq_psn;
	ep->mtu_shift = ilog2(ib_mtu_enum_to_int(attr.path_mtu));
	err = ib_modify_qp(ep->qp, &attr, mask);
	if (err)
		return err;
	/* Only a QP that has reached RTR raises IB_EVENT_QP_LAST_WQE_REACHED. */
	ep->receives = true;

	attr.qp_state = IB_QPS_RTS;
	err = rdma_init_qp_attr(id, &attr, &mask);
	if (err)
		return err;
	if (param)
		attr.max_rd_atomic = param->initiator_depth;
	/* rxe would wait for ever for a Read that the peer does not answer. */
	ep->no_reads = !attr.max_rd_atomic;
	return ib_modify_qp(ep->qp, &attr, mask);
}

/* Take the QP to ERR, which stops all transfers. */
void kdapl_qp_error(struct kdapl_ep *ep)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (ep->qp)
		ib_modify_qp(ep->qp, &attr, IB_QP_STATE);
}

/*
 * Wait until the QP on an SRQ, which is in ERR, takes no more buffers and has completed
 * those it took: drivers may drop completions when a QP is destroyed. Do not wait for a
 * QP that has never received. Some drivers never raise the event; wait once for such a
 * driver. Over iWARP a QP that was never established may have received nothing, and
 * proves nothing about its driver. Return whether a driver that has raised the event
 * before did not.
 */
static bool kdapl_qp_await_last_wqe(struct kdapl_ep *ep, bool was_up)
{
	struct kdapl_hca *hca = ep->obj.ia->hca;
	unsigned int ms = READ_ONCE(hca->last_wqe_ms);
	bool seen;

	if (!ep->receives || !ms ||
	    wait_for_completion_timeout(&ep->last_wqe, msecs_to_jiffies(ms)))
		return false;
	if (!was_up && ep->obj.ia->iwarp)
		return false;
	/*
	 * Halve the timeout: a device that sometimes fails must not hold up thousands of
	 * QPs. Another QP may have had its event, or waited in vain, during the wait, and what
	 * it has made of the timeout stays. litmus: none, one variable.
	 */
	seen = READ_ONCE(hca->last_wqe_seen);
	cmpxchg(&hca->last_wqe_ms, ms, seen ? max(ms / 2, KDAPL_LAST_WQE_MIN_MS) : 0);
	return seen;
}

/*
 * Return how many packets the peer has sent to the QP, or -1 if that is unknown. More
 * packets than the completed messages have are the beginning of another message.
 */
static s64 kdapl_qp_packets(struct kdapl_ep *ep)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	if (!ep->receives)
		return 0;
	if (ib_query_qp(ep->qp, &attr, IB_QP_RQ_PSN, &init))
		return -1;
	return (attr.rq_psn - ep->srq_psn) & KDAPL_PSN_MASK;
}

static void kdapl_qp_poll_cqs(struct kdapl_ep *ep)
{
	kdapl_cq_poll_all(ep->recv_cq->evd);
	if (ep->send_cq->evd != ep->recv_cq->evd)
		kdapl_cq_poll_all(ep->send_cq->evd);
}

/*
 * An attempt to connect has ended: complete the receives that the device flushes at once.
 * kdapl_qp_destroy() follows, perhaps much later.
 */
void kdapl_qp_give_up(struct kdapl_ep *ep)
{
	if (!ep->qp)
		return;
	kdapl_qp_error(ep);
	kdapl_qp_poll_cqs(ep);
	kdapl_ep_open(ep, false);
}

/*
 * The peer has disconnected: give no more requests to the device. Return whether the
 * device still has some.
 */
bool kdapl_qp_close_sq(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool busy;

	kdapl_defer_end(ep);
	spin_lock_irqsave(&ep->sq.lock, flags);
	busy = ep->sq.posted != READ_ONCE(ep->sq.done);
	ep->sq.qp = NULL;
	kdapl_forget_binds(ep);
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	return busy;
}

/*
 * Destroy the QP while its last completions may still be on a CQ. The completion of an
 * SRQ's buffer names its Endpoint only by QP, so evd->leaving has the QP for
 * kdapl_wc_ep() until its completions are polled. If a new QP gets the same address
 * earlier, kdapl_leaving_settle() polls them.
 */
static void kdapl_qp_remove(struct kdapl_ep *ep)
{
	struct kdapl_evd *evd = ep->recv_cq->evd;
	unsigned long flags;

	kdapl_qp_poll_cqs(ep);
	if (ep->srq) {
		spin_lock_irqsave(&evd->lock, flags);
		ep->leaving_qp = ep->qp;
		hlist_add_head(&ep->leaving_link,
			       kdapl_leaving_bucket(evd, ep->qp));
		evd->nleaving++;
		spin_unlock_irqrestore(&evd->lock, flags);
	}
	ib_destroy_qp(ep->qp);
	ep->qp = NULL;
	kdapl_qp_poll_cqs(ep);
	if (ep->srq) {
		spin_lock_irqsave(&evd->lock, flags);
		kdapl_leaving_del(evd, ep);
		spin_unlock_irqrestore(&evd->lock, flags);
	}
}

/* Destroy a QP on an SRQ and tell the SRQ how many buffers may be lost with it. */
static void kdapl_qp_leave_srq(struct kdapl_ep *ep, bool was_up)
{
	struct kdapl_hca *hca = ep->obj.ia->hca;
	bool missing = kdapl_qp_await_last_wqe(ep, was_up);
	bool failed = READ_ONCE(ep->recv_cq->failed);
	bool forgets = kdapl_has_quirk(hca, KDAPL_QUIRK_LOST_BUFFERS);
	s64 packets = -1;
	int taken = 0;

	if (forgets)
		packets = kdapl_qp_packets(ep);
	kdapl_qp_remove(ep);
	failed |= READ_ONCE(ep->recv_cq->failed);
	/* While it is charged to the CQ the SRQ must not be made anew with a longer queue. */
	kdapl_qp_uncharge(ep);
	if (missing || (forgets &&
			packets != (ep->srq_packets & KDAPL_PSN_MASK)))
		taken = 1;
	if (ep->srq_gave_back)
		taken = 0;
	/* A failed CQ may have dropped completions: any number of buffers may be lost. */
	if (failed)
		taken = INT_MAX;
	kdapl_srq_detach(ep->srq, ep, taken);
}

/**
 * kdapl_qp_destroy - the connection has ended: destroy the QP, flush the rings
 * @ep: in state DISCONNECTED; may never have had a QP
 * @was_up: the connection was reported as established
 *
 * All posted requests and receives have completed when this returns.
 *
 * Context: Process context.
 */
void kdapl_qp_destroy(struct kdapl_ep *ep, bool was_up)
{
	unsigned long flags;

	/* Before sq.qp is cleared: kdapl_defer_done() would set it again. */
	kdapl_defer_end(ep);
	spin_lock_irqsave(&ep->sq.lock, flags);
	ep->sq.qp = NULL;
	kdapl_forget_binds(ep);
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	spin_lock_irqsave(&ep->rq.lock, flags);
	ep->rq.qp = NULL;
	spin_unlock_irqrestore(&ep->rq.lock, flags);

	if (ep->qp) {
		kdapl_qp_error(ep);
		if (ep->srq) {
			kdapl_qp_leave_srq(ep, was_up);
		} else {
			kdapl_qp_remove(ep);
			kdapl_qp_uncharge(ep);
		}
		kdapl_sinks_free(ep);
	}
	/* Received messages complete before flushed receives. */
	kdapl_ep_open(ep, was_up);
	kdapl_ring_flush(ep, &ep->rq, KDAPL_FLUSH_END);
	kdapl_ring_flush(ep, &ep->sq, KDAPL_FLUSH_END);
}
