// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posting: what is wrong with a request now is said now, the rest completes. */
#include "sim.h"

/* ---- Send queue ---------------------------------------------------------- */

static bool sim_wqe_mad(struct sim_swqe *wqe, const struct ib_send_wr *wr)
{
	struct sim_ah *ah;

	if (wr->opcode != IB_WR_SEND || !ud_wr(wr)->ah)
		return false;
	ah = to_sim_ah(ud_wr(wr)->ah);
	wqe->sgid = ah->sgid;
	wqe->dgid = ah->dgid;
	wqe->net_type = ah->net_type;
	wqe->qpn = ud_wr(wr)->remote_qpn;
	return true;
}

static bool sim_wqe_op(struct sim_qp *qp, struct sim_swqe *wqe,
		       const struct ib_send_wr *wr)
{
	wqe->drops_sink = false;
	switch (wr->opcode) {
	case IB_WR_SEND:
		return true;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		wqe->rkey = wr->ex.invalidate_rkey;
		return true;
	case IB_WR_RDMA_READ_WITH_INV:
		if (!qp->dev->iwarp)
			return false;
		wqe->opcode = IB_WR_RDMA_READ;
		wqe->drops_sink = true;
		wqe->sink = wr->ex.invalidate_rkey;
		fallthrough;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_WRITE:
		wqe->remote = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
		return true;
	case IB_WR_REG_MR:
		wqe->mr = to_sim_mr(reg_wr(wr)->mr);
		wqe->key = reg_wr(wr)->key;
		wqe->access = reg_wr(wr)->access;
		return true;
	default:
		return false;
	}
}

static int sim_wqe_fill(struct sim_qp *qp, struct sim_swqe *wqe,
			const struct ib_send_wr *wr)
{
	u64 len = 0;
	int i;

	if (wr->num_sge > (int)qp->cap.max_send_sge || wr->num_sge < 0 ||
	    wr->send_flags & IB_SEND_INLINE)
		return -EINVAL;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	wqe->n_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		wqe->sge[i] = wr->sg_list[i];
		len += wr->sg_list[i].length;
	}
	if (len > SIM_MAX_MSG)
		return -EINVAL;
	wqe->len = len;
	if (!(qp->ib.qp_type == IB_QPT_GSI ? sim_wqe_mad(wqe, wr) :
					     sim_wqe_op(qp, wqe, wr)))
		return -EINVAL;
	return 0;
}

static int sim_post_one(struct sim_qp *qp, const struct ib_send_wr *wr)
{
	int err;

	if (sim_times(qp->dev, refuse_send))
		return -ENOMEM;
	if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQD &&
	    qp->state != IB_QPS_ERR)
		return -EINVAL;
	if (qp->sq_tail - READ_ONCE(qp->sq_head) == qp->sq_size)
		return -ENOMEM;
	err = sim_wqe_fill(qp, sim_swqe(qp, qp->sq_tail), wr);
	if (!err)
		/* Pairs with sim_qp_run() and sim_flush(). */
		smp_store_release(&qp->sq_tail, qp->sq_tail + 1);
	return err;
}

int sim_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad)
{
	struct sim_qp *qp = to_sim_qp(ibqp);
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&qp->lock, flags);
	for (; wr; wr = wr->next) {
		err = sim_post_one(qp, wr);
		if (err)
			break;
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	if (err)
		*bad = wr;
	sim_schedule(qp);
	return err;
}

/* ---- Receives ------------------------------------------------------------ */

static int sim_rq_post(struct sim_rq *rq, const struct ib_recv_wr *wr)
{
	struct sim_rwqe *wqe;

	if (wr->num_sge > (int)rq->max_sge || wr->num_sge < 0)
		return -EINVAL;
	if (rq->tail - rq->head == rq->size)
		return -ENOMEM;
	wqe = sim_rwqe(rq, rq->tail);
	wqe->wr_id = wr->wr_id;
	wqe->n_sge = wr->num_sge;
	memcpy(wqe->sge, wr->sg_list, wr->num_sge * sizeof(*wqe->sge));
	WRITE_ONCE(rq->tail, rq->tail + 1);
	return 0;
}

static int sim_rq_post_all(struct sim_rq *rq, u32 *refuse,
			   const struct ib_recv_wr *wr,
			   const struct ib_recv_wr **bad)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&rq->lock, flags);
	for (; wr; wr = wr->next) {
		err = __sim_times(refuse) ? -ENOMEM : sim_rq_post(rq, wr);
		if (err)
			break;
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	if (err)
		*bad = wr;
	sim_wake_waiter(rq);
	return err;
}

int sim_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad)
{
	struct sim_qp *qp = to_sim_qp(ibqp);
	int err;

	if (ibqp->srq || READ_ONCE(qp->state) == IB_QPS_RESET) {
		*bad = wr;
		return -EINVAL;
	}
	err = sim_rq_post_all(qp->rq, &qp->dev->sw[KDAPL_SIM_refuse_recv], wr,
			      bad);
	/*
	 * Either we see that the QP has ended, or its engine, which takes
	 * the lock of the receives after that, sees what we have posted.
	 */
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		sim_schedule(qp);
	return err;
}

int sim_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	struct sim_srq *srq = to_sim_srq(ibsrq);

	return sim_rq_post_all(&srq->rq, &srq->dev->sw[KDAPL_SIM_refuse_srq],
			       wr, bad);
}
