// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Raw verbs: posting and completing, see side.h. */
#include <linux/list.h>
#include <linux/irq_poll.h>
#include "raw.h"

static struct ib_sge raw_sge(struct raw_side *raw, u32 off, u32 len)
{
	return (struct ib_sge) {
		.addr = raw->dma + off,
		.length = len,
		.lkey = raw->pd->local_dma_lkey,
	};
}

static int raw_post_srq_recv(struct raw_side *raw, int n)
{
	struct bench_side *side = &raw->side;
	struct ib_sge sge = raw_sge(raw, side->room, side->recv_len);
	struct ib_recv_wr wr = {
		.wr_cqe = &raw->recv_cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int err;

	while (n--) {
		err = ib_post_srq_recv(raw->srq, &wr, NULL);
		if (err)
			return err;
		sge.addr += side->recv_stride;
	}
	return 0;
}

static int raw_post_recv(struct bench_side *side, int n)
{
	struct raw_side *raw = to_raw(side);
	struct ib_sge sge = raw_sge(raw, side->room, side->recv_len);
	struct ib_recv_wr wr = {
		.wr_cqe = &raw->recv_cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int err;

	if (raw->srq)
		return raw_post_srq_recv(raw, n);
	while (n--) {
		err = ib_post_recv(raw->qp, &wr, NULL);
		if (err)
			return err;
		sge.addr += side->recv_stride;
	}
	return 0;
}

static int raw_post_send(struct bench_side *side, int n, u32 len)
{
	struct raw_side *raw = to_raw(side);
	struct ib_sge sge = raw_sge(raw, 0, len);
	struct ib_send_wr wr = {
		.wr_cqe = &raw->send_cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	int err;

	while (n--) {
		err = ib_post_send(raw->qp, &wr, NULL);
		if (err)
			return err;
	}
	return 0;
}

static int raw_post_rdma(struct bench_side *side, enum ib_wr_opcode opcode,
			 int n, u32 len)
{
	struct raw_side *raw = to_raw(side);
	struct ib_sge sge = raw_sge(raw, 0, len);
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &raw->send_cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = raw->remote_addr,
		.rkey = raw->rkey,
	};
	int err;

	while (n--) {
		err = ib_post_send(raw->qp, &wr.wr, NULL);
		if (err)
			return err;
	}
	return 0;
}

static int raw_post_write(struct bench_side *side, int n, u32 len)
{
	return raw_post_rdma(side, IB_WR_RDMA_WRITE, n, len);
}

static int raw_post_read(struct bench_side *side, int n, u32 len)
{
	return raw_post_rdma(side, IB_WR_RDMA_READ, n, len);
}

static int raw_reap(struct bench_side *side, enum bench_queue queue, int n)
{
	struct raw_side *raw = to_raw(side);
	struct ib_cq *cq = queue == BENCH_SQ ? raw->cq : raw->recv_cq;
	int i, k, got = 0;

	while (got < n) {
		k = ib_poll_cq(cq, min(n - got, RAW_POLL_BATCH), raw->wc);
		if (k <= 0)
			break;
		for (i = 0; i < k; i++)
			if (raw->wc[i].status != IB_WC_SUCCESS)
				return -EIO;
		got += k;
	}
	return got;
}

/* ib_core does not poll a CQ whose irq_poll is disabled. */
static int raw_hold(struct bench_side *side)
{
	irq_poll_disable(&to_raw(side)->cq->iop);
	return 0;
}

static int raw_release(struct bench_side *side)
{
	struct ib_cq *cq = to_raw(side)->cq;

	irq_poll_enable(&cq->iop);
	local_bh_disable();
	irq_poll_sched(&cq->iop);
	local_bh_enable();
	return 0;
}

static void raw_done(struct raw_side *raw, struct ib_wc *wc,
		     enum bench_queue queue)
{
	struct bench_side *side = &raw->side;

	if (likely(wc->status == IB_WC_SUCCESS))
		side->done(side, queue);
	else
		side->failed(side, -EIO);
}

void raw_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	raw_done(cq->cq_context, wc, BENCH_SQ);
}

/* The buffer may have been posted to the SRQ by another end; the CQ is this one's. */
void raw_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	raw_done(cq->cq_context, wc, BENCH_RQ);
}

const struct bench_ops bench_raw_ops = {
	.post_recv = raw_post_recv,
	.post_send = raw_post_send,
	.post_write = raw_post_write,
	.post_read = raw_post_read,
	.reap = raw_reap,
	.hold = raw_hold,
	.release = raw_release,
};
