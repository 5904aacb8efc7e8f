// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The receiving end, which the engine of the sender drives: qp->rx is the receive
 * that a message goes into. And what happens to a QP that has ended: its own
 * engine flushes it.
 */
#include "sim.h"

/* ---- Receiving ----------------------------------------------------------- */

static bool sim_rx_lock(struct sim_qp *qp, struct sim_qp *peer)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&peer->lock, flags);
	ok = (peer->state == IB_QPS_RTR || peer->state == IB_QPS_RTS ||
	      peer->state == IB_QPS_SQD) &&
	     peer->attr.dest_qp_num == qp->id && !peer->rx.busy;
	if (ok)
		peer->rx.busy = true;
	spin_unlock_irqrestore(&peer->lock, flags);
	return ok;
}

/*
 * Packets of requests that @peer has received are counted as RoCE does, though none
 * are sent: IB_QP_RQ_PSN. Only its peer's engine does that.
 */
void sim_count_packets(struct sim_qp *peer, u32 n)
{
	WRITE_ONCE(peer->attr.rq_psn, (peer->attr.rq_psn + n) & SIM_PSN_MASK);
}

/* Return how many packets a request of @len bytes has; on iWARP 1. */
u32 sim_packets(struct sim_qp *peer, u32 len)
{
	int mtu = ib_mtu_enum_to_int(peer->attr.path_mtu);

	return len && mtu > 0 ? DIV_ROUND_UP(len, mtu) : 1;
}

/* Take a receive; false: there is none, and @qp waits for one. */
static bool sim_rx_take(struct sim_qp *qp, struct sim_qp *peer)
{
	struct sim_rq *rq = peer->rq;
	bool taken, limit = false;
	unsigned long flags;

	spin_lock_irqsave(&rq->lock, flags);
	taken = rq->head != rq->tail;
	if (taken) {
		memcpy(peer->rx.wqe, sim_rwqe(rq, rq->head), rq->stride);
		WRITE_ONCE(rq->head, rq->head + 1);
		limit = rq->tail - rq->head < rq->limit;
		if (limit)
			rq->limit = 0;
	} else if (!qp->dev->iwarp) {
		sim_park(qp, rq, SIM_WAIT_RNR);
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	if (!taken)
		return false;
	peer->rx.active = true;
	sim_count_packets(peer, 1);
	/* If it waited, who was behind it tries now. */
	sim_unpark(qp);
	if (limit && !sim_switch(peer->dev, no_srq_limit))
		sim_srq_event(to_sim_srq(peer->ib.srq),
			      IB_EVENT_SRQ_LIMIT_REACHED);
	return true;
}

/**
 * sim_rx_begin - begin to transfer to or from a peer
 * @qp: whose engine this is
 * @peer: referenced
 * @take: take a receive unless there is one under way
 *
 * Return: SIM_TAKEN, then the peer does not complete its receive until
 * sim_rx_end(); SIM_NO_PEER: it is not connected to @qp; SIM_NO_RECEIVE: it has
 * none, and on RoCE @qp was parked.
 */
enum sim_take sim_rx_begin(struct sim_qp *qp, struct sim_qp *peer, bool take)
{
	if (!sim_rx_lock(qp, peer))
		return SIM_NO_PEER;
	if (!take || peer->rx.active || sim_rx_take(qp, peer))
		return SIM_TAKEN;
	sim_rx_end(peer);
	return SIM_NO_RECEIVE;
}

void sim_rx_end(struct sim_qp *peer)
{
	unsigned long flags;
	bool ended;

	spin_lock_irqsave(&peer->lock, flags);
	peer->rx.busy = false;
	ended = peer->state == IB_QPS_ERR;
	spin_unlock_irqrestore(&peer->lock, flags);
	if (ended)
		sim_schedule(peer);
}

/* The memory of the receive under way. */
struct sim_side sim_rx_side(struct sim_qp *peer)
{
	return (struct sim_side) {
		.pd = peer->ib.srq ? peer->ib.srq->pd : peer->ib.pd,
		.access = IB_ACCESS_LOCAL_WRITE,
		.sge = peer->rx.wqe->sge,
		.n = peer->rx.wqe->n_sge,
	};
}

static void sim_rq_complete(struct sim_qp *qp, struct ib_wc *wc, bool solicited)
{
	if (READ_ONCE(qp->mute))
		return;
	wc->qp = &qp->ib;
	wc->opcode = IB_WC_RECV;
	wc->port_num = 1;
	sim_cq_add(to_sim_cq(qp->ib.recv_cq), wc, solicited);
}

/* Complete the receive under way. @wqe, the request, may be NULL if in error. */
void sim_rx_complete(struct sim_qp *peer, enum ib_wc_status status,
		     const struct sim_swqe *wqe)
{
	struct ib_wc wc = {
		.wr_id = peer->rx.wqe->wr_id,
		.status = status,
	};

	peer->rx.active = false;
	if (status == IB_WC_SUCCESS) {
		wc.byte_len = wqe->len;
		sim_count_packets(peer, sim_packets(peer, wqe->len) - 1);
		wc.src_qp = peer->attr.dest_qp_num;
		if (wqe->opcode == IB_WR_SEND_WITH_INV) {
			wc.wc_flags = IB_WC_WITH_INVALIDATE;
			wc.ex.invalidate_rkey = wqe->rkey;
		}
	}
	sim_rq_complete(peer, &wc, wqe && wqe->flags & IB_SEND_SOLICITED);
}

/* ---- The end ------------------------------------------------------------- */

/* False: the peer's engine uses it, and schedules us when it has done. */
static bool sim_flush_rx(struct sim_qp *qp)
{
	bool busy, active = false;
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	busy = qp->rx.busy;
	if (!busy) {
		active = qp->rx.active;
		qp->rx.active = false;
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	if (!active)
		return !busy;
	if (sim_switch(qp->dev, lose_partial))
		sim_count(qp->dev, lost);
	else
		sim_rx_complete(qp, IB_WC_WR_FLUSH_ERR, NULL);
	return true;
}

/* The oldest receive that was posted to @qp itself. */
static bool sim_flush_recv(struct sim_qp *qp)
{
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR };
	struct sim_rq *rq = qp->rq;
	unsigned long flags;
	bool any;

	spin_lock_irqsave(&rq->lock, flags);
	any = rq->head != rq->tail;
	if (any) {
		wc.wr_id = sim_rwqe(rq, rq->head)->wr_id;
		WRITE_ONCE(rq->head, rq->head + 1);
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	if (any)
		sim_rq_complete(qp, &wc, false);
	return any;
}

static void sim_last_wqe(struct sim_qp *qp)
{
	u32 how = sim_switch(qp->dev, lwqe);

	if ((qp->lwqe_told && how != 2) || how == 1)
		return;
	qp->lwqe_told = true;
	if (how == 3)
		sim_event_late(qp);
	else
		sim_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

/* Flush some of what @qp has. Returns whether there is more. */
bool sim_flush(struct sim_qp *qp)
{
	int i;

	if (qp->stalled) {
		sim_uncount(qp->dev, partial);
		qp->stalled = false;
	}
	qp->unacked = false;
	qp->hung = false;
	if (!sim_flush_rx(qp))
		return false;
	for (i = 0; i < SIM_BATCH; i++) {
		/* Pairs with sim_post_one(). */
		if (smp_load_acquire(&qp->sq_tail) != qp->sq_head)
			sim_complete(qp, sim_swqe(qp, qp->sq_head),
				     IB_WC_WR_FLUSH_ERR);
		else if (qp->ib.srq || !sim_flush_recv(qp))
			break;
	}
	if (i == SIM_BATCH)
		return true;
	if (qp->ib.srq)
		sim_last_wqe(qp);
	return false;
}
