// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Execution of send queues. Requests complete in order, each before the next one
 * is begun; so a fence has nothing to wait for.
 *
 * What a peer finds wrong with a request completes it in error on RoCE. On iWARP
 * nobody answers but to an RDMA Read: another request has succeeded, and then the
 * connection ends, which flushes a Read.
 */
#include "sim.h"

static enum ib_wc_opcode sim_wc_opcode(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
		return IB_WC_RDMA_READ;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	default:
		return IB_WC_SEND;
	}
}

#define SIM_NEVER	U32_MAX		/* a value of bad_status */

/* The status that a request completes with which was executed. */
static u32 sim_executed(struct sim_qp *qp)
{
	if (qp->ib.qp_type != IB_QPT_RC || !sim_nth(qp->dev, bad_send))
		return IB_WC_SUCCESS;
	return sim_switch(qp->dev, bad_status);
}

/* Complete the request at the head; if in error, that ends the QP. */
enum sim_result sim_complete(struct sim_qp *qp, struct sim_swqe *wqe,
			     enum ib_wc_status status)
{
	struct ib_wc wc = {
		.wr_id = wqe->wr_id,
		.opcode = sim_wc_opcode(wqe->opcode),
		.byte_len = wqe->len,
		.qp = &qp->ib,
		.port_num = 1,
	};
	bool failed, tell;

	if (status == IB_WC_SUCCESS)
		status = sim_executed(qp);
	failed = status != IB_WC_SUCCESS;
	tell = failed || qp->sig_all || wqe->flags & IB_SEND_SIGNALED;
	wc.status = status;
	sim_unpark(qp);
	if ((u32)status == SIM_NEVER) {
		qp->hung = true;
		return SIM_PARKED;
	}
	if (qp->stalled) {
		sim_uncount(qp->dev, partial);
		qp->stalled = false;
	}
	qp->done = 0;
	/* Pairs with sim_post_one(), which uses the place again. */
	smp_store_release(&qp->sq_head, qp->sq_head + 1);
	if (failed)
		sim_qp_to_err(qp);
	if (tell && !READ_ONCE(qp->mute))
		sim_cq_add(to_sim_cq(qp->ib.send_cq), &wc, false);
	return failed ? SIM_FAILED : SIM_DONE;
}

/* The peer ends the connection because of this request. */
static enum sim_result sim_refused(struct sim_qp *qp, struct sim_qp *peer,
				   struct sim_swqe *wqe,
				   enum ib_wc_status status)
{
	enum sim_result result = SIM_FAILED;

	if (!qp->dev->iwarp)
		result = sim_complete(qp, wqe, status);
	else if (wqe->opcode != IB_WR_RDMA_READ)
		result = sim_complete(qp, wqe, IB_WC_SUCCESS);
	if (status == IB_WC_REM_ACCESS_ERR)
		sim_qp_event(peer, IB_EVENT_QP_ACCESS_ERR);
	else if (status == IB_WC_REM_INV_REQ_ERR)
		sim_qp_event(peer, IB_EVENT_QP_REQ_ERR);
	sim_qp_to_err(peer);
	return result;
}

/* Nobody answers: it may still come, or come up, until the retries are over. */
static enum sim_result sim_unanswered(struct sim_qp *qp, struct sim_swqe *wqe)
{
	if (qp->waits_for)
		sim_unpark(qp);
	if (sim_is_overdue(qp))
		return sim_complete(qp, wqe, IB_WC_RETRY_EXC_ERR);
	sim_park(qp, NULL, SIM_WAIT_PEER);
	return SIM_PARKED;
}

static enum sim_result sim_local(struct sim_qp *qp, struct sim_swqe *wqe)
{
	bool ok;

	if (wqe->opcode == IB_WR_LOCAL_INV)
		ok = sim_mr_invalidate_own(qp->ib.pd, wqe->rkey);
	else
		ok = !sim_times(qp->dev, fail_reg) && sim_mr_register(qp, wqe);
	return sim_complete(qp, wqe, ok ? IB_WC_SUCCESS : IB_WC_MW_BIND_ERR);
}

/* The segments of the request, from what was done on. */
static struct sim_side sim_tx_side(struct sim_qp *qp, struct sim_swqe *wqe,
				   int access)
{
	struct sim_side side = {
		.pd = qp->ib.pd,
		.access = access,
		.sge = wqe->sge,
		.n = wqe->n_sge,
	};

	sim_skip(&side, qp->done);
	return side;
}

/* ---- RDMA ---------------------------------------------------------------- */

/* iWARP answers an RDMA Read by writing to the sink. */
static int sim_local_access(struct sim_qp *qp, struct sim_swqe *wqe)
{
	if (wqe->opcode != IB_WR_RDMA_READ)
		return 0;
	return qp->dev->iwarp ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_LOCAL_WRITE;
}

static enum ib_wc_status sim_rdma_check(struct sim_qp *qp, struct sim_qp *peer,
					struct sim_swqe *wqe, int access)
{
	if (wqe->opcode == IB_WR_RDMA_READ && !qp->attr.max_rd_atomic)
		return IB_WC_LOC_QP_OP_ERR;
	if (!sim_sges_check(qp->ib.pd, wqe->sge, wqe->n_sge,
			    sim_local_access(qp, wqe)))
		return IB_WC_LOC_PROT_ERR;
	if (wqe->opcode == IB_WR_RDMA_READ && !peer->attr.max_dest_rd_atomic)
		return IB_WC_REM_INV_REQ_ERR;
	if (!wqe->len)
		return IB_WC_SUCCESS;
	if (!(peer->attr.qp_access_flags & access) ||
	    !sim_mem_check(peer->ib.pd, wqe->rkey, wqe->remote, wqe->len,
			   access))
		return IB_WC_REM_ACCESS_ERR;
	return IB_WC_SUCCESS;
}

static bool sim_is_local(enum ib_wc_status status)
{
	return status == IB_WC_LOC_QP_OP_ERR || status == IB_WC_LOC_PROT_ERR;
}

/* One step of an RDMA Read or Write. */
static enum ib_wc_status sim_rdma_step(struct sim_qp *qp, struct sim_qp *peer,
				       struct sim_swqe *wqe, int access)
{
	u32 n = min_t(u32, wqe->len - qp->done, SIM_STEP);
	struct ib_sge far_sge = {
		.addr = wqe->remote + qp->done,
		.length = n,
		.lkey = wqe->rkey,
	};
	struct sim_side far = {
		.pd = peer->ib.pd,
		.access = access,
		.sge = &far_sge,
		.n = 1,
	};
	struct sim_side near = sim_tx_side(qp, wqe, sim_local_access(qp, wqe));
	bool read = wqe->opcode == IB_WR_RDMA_READ;
	enum sim_copied copied;

	copied = read ? sim_copy(&near, &far, n) : sim_copy(&far, &near, n);
	if (copied == SIM_COPIED) {
		qp->done += n;
		return IB_WC_SUCCESS;
	}
	return (copied == SIM_BAD_SINK) == read ? IB_WC_LOC_PROT_ERR :
						  IB_WC_REM_ACCESS_ERR;
}

static enum sim_result sim_rdma(struct sim_qp *qp, struct sim_qp *peer,
				struct sim_swqe *wqe)
{
	int access = wqe->opcode == IB_WR_RDMA_READ ? IB_ACCESS_REMOTE_READ :
						      IB_ACCESS_REMOTE_WRITE;
	enum ib_wc_status status = IB_WC_SUCCESS;

	if (!qp->done)
		status = sim_rdma_check(qp, peer, wqe, access);
	if (status == IB_WC_SUCCESS)
		status = sim_rdma_step(qp, peer, wqe, access);
	if (sim_is_local(status))
		return sim_complete(qp, wqe, status);
	if (status != IB_WC_SUCCESS)
		return sim_refused(qp, peer, wqe, status);
	if (qp->done < wqe->len)
		return SIM_MORE;
	sim_count(qp->dev, messages);
	sim_count_packets(peer, sim_packets(peer, wqe->len));
	if (wqe->drops_sink && !sim_mr_invalidate_own(qp->ib.pd, wqe->sink))
		status = IB_WC_LOC_PROT_ERR;
	return sim_complete(qp, wqe, status);
}

/* ---- Send ---------------------------------------------------------------- */

static u32 sim_rx_room(struct sim_qp *peer)
{
	u64 room = 0;
	int i;

	for (i = 0; i < peer->rx.wqe->n_sge; i++)
		room += peer->rx.wqe->sge[i].length;
	return min_t(u64, room, U32_MAX);
}

/* How many bytes of a Send may go now; 0: stall_bytes have gone. */
static u32 sim_send_step(struct sim_qp *qp, struct sim_swqe *wqe)
{
	u32 n = min_t(u32, wqe->len - qp->done, SIM_STEP);
	u32 stall = sim_switch(qp->dev, stall_bytes);

	if (stall && wqe->len > stall)
		n = qp->done < stall ? min(n, stall - qp->done) : 0;
	return n;
}

static enum sim_result sim_send_stall(struct sim_qp *qp)
{
	if (!qp->stalled)
		sim_count(qp->dev, partial);
	qp->stalled = true;
	sim_park(qp, NULL, SIM_WAIT_SWITCH);
	return SIM_PARKED;
}

/* The receive cannot have the message: it completes in error as well. */
static enum sim_result sim_rx_refused(struct sim_qp *qp, struct sim_qp *peer,
				      struct sim_swqe *wqe,
				      enum ib_wc_status at_peer,
				      enum ib_wc_status status)
{
	sim_rx_complete(peer, at_peer, NULL);
	return sim_refused(qp, peer, wqe, status);
}

/* The peer has received the Send at the head. */
static enum sim_result sim_acked(struct sim_qp *qp, struct sim_swqe *wqe)
{
	qp->unacked = sim_switch(qp->dev, hold_acks);
	if (!qp->unacked)
		return sim_complete(qp, wqe, IB_WC_SUCCESS);
	sim_park(qp, NULL, SIM_WAIT_SWITCH);
	return SIM_PARKED;
}

static enum sim_result sim_send_end(struct sim_qp *qp, struct sim_qp *peer,
				    struct sim_swqe *wqe)
{
	if (peer->ib.qp_type == IB_QPT_RC && sim_nth(peer->dev, bad_recv))
		return sim_rx_refused(qp, peer, wqe, IB_WC_LOC_PROT_ERR,
				      IB_WC_REM_OP_ERR);
	if (wqe->opcode == IB_WR_SEND_WITH_INV &&
	    !sim_mr_invalidate(peer->ib.pd, wqe->rkey))
		return sim_rx_refused(qp, peer, wqe, IB_WC_LOC_PROT_ERR,
				      IB_WC_REM_ACCESS_ERR);
	sim_count(qp->dev, messages);
	sim_rx_complete(peer, IB_WC_SUCCESS, wqe);
	return sim_acked(qp, wqe);
}

/* A step of a Send whose receive was taken. */
static enum sim_result sim_send(struct sim_qp *qp, struct sim_qp *peer,
				struct sim_swqe *wqe)
{
	struct sim_side to = sim_rx_side(peer);
	struct sim_side from;
	u32 n;

	if (!qp->done && sim_rx_room(peer) < wqe->len)
		return sim_rx_refused(qp, peer, wqe, IB_WC_LOC_LEN_ERR,
				      IB_WC_REM_INV_REQ_ERR);
	n = sim_send_step(qp, wqe);
	if (!n && wqe->len)
		return sim_send_stall(qp);
	from = sim_tx_side(qp, wqe, 0);
	sim_skip(&to, qp->done);
	switch (sim_copy(&to, &from, n)) {
	case SIM_BAD_SOURCE:
		return sim_complete(qp, wqe, IB_WC_LOC_PROT_ERR);
	case SIM_BAD_SINK:
		return sim_rx_refused(qp, peer, wqe, IB_WC_LOC_PROT_ERR,
				      IB_WC_REM_OP_ERR);
	case SIM_COPIED:
		break;
	}
	qp->done += n;
	return qp->done < wqe->len ? SIM_MORE : sim_send_end(qp, peer, wqe);
}

/* No receive: @qp was parked on RoCE; iWARP has no means to try again. */
static enum sim_result sim_no_receive(struct sim_qp *qp, struct sim_qp *peer,
				      struct sim_swqe *wqe)
{
	sim_count(qp->dev, rnr);
	if (qp->dev->iwarp)
		return sim_refused(qp, peer, wqe, IB_WC_RNR_RETRY_EXC_ERR);
	if (!qp->attr.rnr_retry || sim_is_overdue(qp))
		return sim_complete(qp, wqe, IB_WC_RNR_RETRY_EXC_ERR);
	return SIM_PARKED;
}

/* ---- Queues -------------------------------------------------------------- */

static enum sim_result sim_remote(struct sim_qp *qp, struct sim_swqe *wqe)
{
	bool send = wqe->opcode == IB_WR_SEND ||
		    wqe->opcode == IB_WR_SEND_WITH_INV;
	enum sim_result result;
	struct sim_qp *peer;

	if (qp->unacked)
		return sim_acked(qp, wqe);
	if (!sim_port_is_up(qp->dev))
		return sim_unanswered(qp, wqe);
	if (send && !qp->done &&
	    !sim_sges_check(qp->ib.pd, wqe->sge, wqe->n_sge, 0))
		return sim_complete(qp, wqe, IB_WC_LOC_PROT_ERR);
	peer = sim_qp_get(qp->attr.dest_qp_num);
	if (!peer)
		return sim_unanswered(qp, wqe);
	switch (sim_rx_begin(qp, peer, send)) {
	case SIM_NO_PEER:
		result = sim_unanswered(qp, wqe);
		break;
	case SIM_NO_RECEIVE:
		result = sim_no_receive(qp, peer, wqe);
		break;
	default:
		result = send ? sim_send(qp, peer, wqe) :
				sim_rdma(qp, peer, wqe);
		sim_rx_end(peer);
	}
	sim_qp_put(peer);
	return result;
}

static enum sim_result sim_request(struct sim_qp *qp, struct sim_swqe *wqe)
{
	if (qp->ib.qp_type == IB_QPT_GSI)
		return sim_send_mad(qp, wqe);
	if (wqe->opcode == IB_WR_LOCAL_INV || wqe->opcode == IB_WR_REG_MR)
		return sim_local(qp, wqe);
	return sim_remote(qp, wqe);
}

/* Execute some requests of @qp. Returns whether there is more to do at once. */
bool sim_qp_run(struct sim_qp *qp)
{
	enum sim_result result;
	int i;

	for (i = 0; i < SIM_BATCH; i++) {
		switch (READ_ONCE(qp->state)) {
		case IB_QPS_ERR:
			sim_unpark(qp);
			return sim_flush(qp);
		case IB_QPS_RTS:
		case IB_QPS_SQD:
			break;
		default:
			return false;
		}
		if (qp->hung)
			return false;
		/* Pairs with sim_post_one(). */
		if (smp_load_acquire(&qp->sq_tail) == qp->sq_head) {
			if (READ_ONCE(qp->closing))
				sim_iw_close(qp);
			return false;
		}
		result = sim_request(qp, sim_swqe(qp, qp->sq_head));
		if (result == SIM_PARKED)
			return false;
	}
	return true;
}
