// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Raw verbs: making an end, see side.h. The owner has the device and its PD, and
 * connects the rdma_cm id. Context: process.
 */
#include "raw.h"

static struct ib_cq *raw_cq(struct raw_side *raw)
{
	return ib_alloc_cq(raw->dev, raw, 2 * raw->side.depth, 0,
			   raw->side.upcall ? IB_POLL_SOFTIRQ : IB_POLL_DIRECT);
}

static int raw_make_cqs(struct raw_side *raw)
{
	struct ib_cq *cq = raw_cq(raw);

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	raw->cq = cq;
	if (!raw->side.upcall) {
		cq = raw_cq(raw);
		if (IS_ERR(cq))
			return PTR_ERR(cq);
	}
	raw->recv_cq = cq;
	return 0;
}

/* Make an SRQ in the PD of @raw. */
struct ib_srq *raw_side_srq(struct raw_side *raw, u32 buffers)
{
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = buffers, .max_sge = 1 },
	};

	return ib_create_srq(raw->pd, &init);
}

/*
 * Make the queue pair of an id that has a route or a request, with room for @depth work
 * requests in each direction.
 */
int raw_side_make_qp(struct raw_side *raw, u32 depth)
{
	struct ib_qp_init_attr init = {
		.qp_context = raw,
		.send_cq = raw->cq,
		.recv_cq = raw->recv_cq,
		.srq = raw->srq,
		.cap = {
			.max_send_wr = depth,
			.max_recv_wr = raw->srq ? 0 : depth,
			.max_send_sge = 1,
			.max_recv_sge = raw->srq ? 0 : 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	int err;

	err = rdma_create_qp(raw->id, raw->pd, &init);
	if (err)
		return err;
	raw->qp = raw->id->qp;
	return 0;
}

/*
 * Make all that does not need an id. If it fails raw_side_free() has to follow.
 */
int raw_side_make(struct raw_side *raw)
{
	struct bench_side *side = &raw->side;

	side->ops = &bench_raw_ops;
	if (!side->recv_len)
		side->recv_len = side->room;
	raw->send_cqe.done = raw_send_done;
	raw->recv_cqe.done = raw_recv_done;
	init_completion(&raw->exposed);
	side->buf = bench_buf_alloc(side->room);
	if (!side->buf)
		return -ENOMEM;
	raw->dma = ib_dma_map_single(raw->dev, side->buf, 2 * side->room,
				     DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(raw->dev, raw->dma))
		return -ENOMEM;
	raw->mapped = true;
	return raw_make_cqs(raw);
}

static void raw_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct raw_side *raw = container_of(wc->wr_cqe, struct raw_side,
					    reg_cqe);

	raw->expose_err = wc->status == IB_WC_SUCCESS ? 0 : -EIO;
	complete(&raw->exposed);
}

/*
 * Let the peer read and write the receive buffer. The registration is posted to the
 * queue pair, which is connected; raw->exposed is completed when it is done.
 */
int raw_side_expose(struct raw_side *raw)
{
	struct bench_side *side = &raw->side;
	struct ib_reg_wr wr = { };
	struct ib_mr *mr;
	int n;

	mr = ib_alloc_mr(raw->pd, IB_MR_TYPE_MEM_REG,
			 max_t(u32, side->room / PAGE_SIZE, 1) + 1);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	raw->mr = mr;
	sg_init_one(&raw->sg, side->buf + side->room, side->room);
	if (ib_dma_map_sg(raw->dev, &raw->sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -ENOMEM;
	raw->sg_mapped = true;
	n = ib_map_mr_sg(mr, &raw->sg, 1, NULL, PAGE_SIZE);
	if (n != 1)
		return n < 0 ? n : -EINVAL;

	raw->reg_cqe.done = raw_reg_done;
	wr.wr.opcode = IB_WR_REG_MR;
	wr.wr.wr_cqe = &raw->reg_cqe;
	wr.wr.send_flags = IB_SEND_SIGNALED;
	wr.mr = mr;
	wr.key = mr->rkey;
	wr.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
		    IB_ACCESS_REMOTE_READ;
	return ib_post_send(raw->qp, &wr.wr, NULL);
}

/*
 * End the connection, and its id. What was posted to an SRQ may still be written by other
 * ends.
 */
void raw_side_end(struct raw_side *raw)
{
	if (raw->qp)
		rdma_destroy_qp(raw->id);
	raw->qp = NULL;
	if (raw->id)
		rdma_destroy_id(raw->id);
	raw->id = NULL;
}

/* The opposite of raw_side_make(); the SRQ is the owner's, and nothing comes from it. */
void raw_side_free(struct raw_side *raw)
{
	struct bench_side *side = &raw->side;

	raw_side_end(raw);
	if (raw->mr)
		ib_dereg_mr(raw->mr);
	if (raw->sg_mapped)
		ib_dma_unmap_sg(raw->dev, &raw->sg, 1, DMA_BIDIRECTIONAL);
	if (raw->recv_cq && raw->recv_cq != raw->cq)
		ib_free_cq(raw->recv_cq);
	if (raw->cq)
		ib_free_cq(raw->cq);
	if (raw->mapped)
		ib_dma_unmap_single(raw->dev, raw->dma, 2 * side->room,
				    DMA_BIDIRECTIONAL);
	bench_buf_free(side->buf, side->room);
	side->buf = NULL;
}
