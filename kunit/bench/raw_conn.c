// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Raw verbs: making a pair.
 *
 * The plainest use of rdma_cm: a listener and an active id on one address of
 * the device. Each step waits for the one before.
 */
#include <linux/slab.h>
#include "raw.h"

static void raw_step(struct raw_pair *rp, int status)
{
	rp->status = status;
	complete(&rp->step);
}

static int raw_wait(struct raw_pair *rp)
{
	if (!wait_for_completion_timeout(&rp->step, BENCH_TIMEOUT))
		return -ETIMEDOUT;
	return rp->status;
}

/* ---- queues ----------------------------------------------------------------- */

static struct ib_cq *raw_cq(struct raw_pair *rp)
{
	return ib_alloc_cq(rp->dev, rp, 2 * BENCH_DEPTH, 0,
			   rp->pair.shape.upcall ? IB_POLL_SOFTIRQ :
						   IB_POLL_DIRECT);
}

static int raw_make_cqs(struct raw_pair *rp, struct raw_side *raw)
{
	struct ib_cq *cq;

	cq = raw_cq(rp);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	raw->cq = cq;
	if (!rp->pair.shape.upcall) {
		cq = raw_cq(rp);
		if (IS_ERR(cq))
			return PTR_ERR(cq);
	}
	raw->recv_cq = cq;
	return 0;
}

static int raw_make_srq(struct raw_pair *rp, struct raw_side *raw)
{
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = BENCH_DEPTH, .max_sge = 1 },
	};
	struct ib_srq *srq;

	srq = ib_create_srq(rp->pd, &init);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	raw->srq = srq;
	return 0;
}

static int raw_make_qp(struct raw_pair *rp, struct raw_side *raw)
{
	struct ib_qp_init_attr init = {
		.qp_context = raw,
		.send_cq = raw->cq,
		.recv_cq = raw->recv_cq,
		.srq = raw->srq,
		.cap = {
			.max_send_wr = BENCH_DEPTH,
			.max_recv_wr = raw->srq ? 0 : BENCH_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = raw->srq ? 0 : 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	int err;

	err = rdma_create_qp(raw->id, rp->pd, &init);
	if (err)
		return err;
	raw->qp = raw->id->qp;
	return 0;
}

/* Create everything that does not need a connection. */
static int raw_make_side(struct raw_pair *rp, struct raw_side *raw, bool srq)
{
	struct bench_side *side = &raw->side;
	int err;

	side->ops = &bench_raw_ops;
	side->pair = &rp->pair;
	side->recv_len = BENCH_BUF;
	raw->send_cqe.done = raw_send_done;
	raw->recv_cqe.done = raw_recv_done;
	side->buf = bench_buf_alloc();
	if (!side->buf)
		return -ENOMEM;
	raw->dma = ib_dma_map_single(rp->dev, side->buf, 2 * BENCH_BUF,
				     DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(rp->dev, raw->dma))
		return -ENOMEM;
	raw->mapped = true;
	err = raw_make_cqs(rp, raw);
	if (!err && srq)
		err = raw_make_srq(rp, raw);
	return err;
}

/* ---- connecting -------------------------------------------------------------- */

static const struct rdma_conn_param raw_param = {
	.responder_resources = 1,
	.initiator_depth = 1,
	.retry_count = 7,
	.rnr_retry_count = 7,
};

static int raw_request(struct raw_pair *rp, struct rdma_cm_id *id)
{
	struct raw_side *raw = &rp->side[1];
	struct rdma_conn_param param = raw_param;
	int err;

	/* An error makes rdma_cm destroy the id. */
	if (raw->id)
		return -EBUSY;
	raw->id = id;
	err = raw_make_qp(rp, raw) ?: rdma_accept(id, &param);
	if (err) {
		if (raw->qp)
			rdma_destroy_qp(id);
		raw->qp = NULL;
		raw->id = NULL;
		raw_step(rp, err);
	}
	return err;
}

static int raw_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct raw_pair *rp = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return raw_request(rp, id);
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		raw_step(rp, 0);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (++rp->established == 2)
			raw_step(rp, 0);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		if (!READ_ONCE(rp->closing))
			bench_fail(&rp->pair, -ENOTCONN);
		break;
	default:
		raw_step(rp, event->status ?: -ECONNREFUSED);
		break;
	}
	return 0;
}

static struct rdma_cm_id *raw_id(struct raw_pair *rp)
{
	return rdma_create_id(&init_net, raw_event, rp, RDMA_PS_TCP, IB_QPT_RC);
}

static int raw_listen(struct raw_pair *rp, const struct sockaddr *addr)
{
	struct rdma_cm_id *id = raw_id(rp);
	int err;

	if (IS_ERR(id))
		return PTR_ERR(id);
	rp->listener = id;
	err = rdma_bind_addr(id, (struct sockaddr *)addr);
	if (err)
		return err;
	if (!id->device)
		return -ENODEV;
	rp->dev = id->device;
	return rdma_listen(id, 1);
}

static int raw_connect(struct raw_pair *rp, const struct sockaddr *addr)
{
	struct rdma_conn_param param = raw_param;
	struct raw_side *raw = &rp->side[0];
	struct rdma_cm_id *id = raw_id(rp);
	int err;

	if (IS_ERR(id))
		return PTR_ERR(id);
	raw->id = id;
	err = rdma_resolve_addr(id, (struct sockaddr *)addr,
				(struct sockaddr *)&rp->listener->route.addr.src_addr,
				2000);
	err = err ?: raw_wait(rp);
	err = err ?: rdma_resolve_route(id, 2000);
	err = err ?: raw_wait(rp);
	err = err ?: raw_make_qp(rp, raw);
	err = err ?: rdma_connect(id, &param);
	return err ?: raw_wait(rp);
}

/* ---- RDMA Write ---------------------------------------------------------------- */

static void raw_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct raw_side *raw = container_of(wc->wr_cqe, struct raw_side,
					    reg_cqe);
	struct raw_pair *rp = container_of(raw->side.pair, struct raw_pair,
					   pair);

	raw_step(rp, wc->status == IB_WC_SUCCESS ? 0 : -EIO);
}

/* Tell side 0 the address and key of the receive buffer of side 1. */
static int raw_expose(struct raw_pair *rp)
{
	struct raw_side *a = &rp->side[0], *b = &rp->side[1];
	struct ib_reg_wr wr = { };
	int n;

	rp->mr = ib_alloc_mr(rp->pd, IB_MR_TYPE_MEM_REG, BENCH_BUF / PAGE_SIZE);
	if (IS_ERR(rp->mr)) {
		n = PTR_ERR(rp->mr);
		rp->mr = NULL;
		return n;
	}
	sg_init_one(&rp->sg, b->side.buf + BENCH_BUF, BENCH_BUF);
	if (ib_dma_map_sg(rp->dev, &rp->sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -ENOMEM;
	rp->sg_mapped = true;
	n = ib_map_mr_sg(rp->mr, &rp->sg, 1, NULL, PAGE_SIZE);
	if (n != 1)
		return n < 0 ? n : -EINVAL;

	b->reg_cqe.done = raw_reg_done;
	wr.wr.opcode = IB_WR_REG_MR;
	wr.wr.wr_cqe = &b->reg_cqe;
	wr.wr.send_flags = IB_SEND_SIGNALED;
	wr.mr = rp->mr;
	wr.key = rp->mr->rkey;
	wr.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	a->remote_addr = rp->mr->iova;
	a->rkey = rp->mr->rkey;
	return ib_post_send(b->qp, &wr.wr, NULL) ?: raw_wait(rp);
}

/* ---- a pair ----------------------------------------------------------------------- */

static void raw_close_side(struct raw_pair *rp, struct raw_side *raw)
{
	if (raw->id)
		rdma_destroy_id(raw->id);
	if (raw->srq)
		ib_destroy_srq(raw->srq);
	if (raw->recv_cq && raw->recv_cq != raw->cq)
		ib_free_cq(raw->recv_cq);
	if (raw->cq)
		ib_free_cq(raw->cq);
	if (raw->mapped)
		ib_dma_unmap_single(rp->dev, raw->dma, 2 * BENCH_BUF,
				    DMA_BIDIRECTIONAL);
	bench_buf_free(raw->side.buf);
}

void raw_close(struct bench_pair *pair)
{
	struct raw_pair *rp = container_of(pair, struct raw_pair, pair);
	int i;

	WRITE_ONCE(rp->closing, true);
	for (i = 0; i < 2; i++)
		if (rp->side[i].qp)
			rdma_disconnect(rp->side[i].id);
	if (rp->listener)
		rdma_destroy_id(rp->listener);
	for (i = 0; i < 2; i++)
		if (rp->side[i].qp)
			rdma_destroy_qp(rp->side[i].id);
	if (rp->mr)
		ib_dereg_mr(rp->mr);
	if (rp->sg_mapped)
		ib_dma_unmap_sg(rp->dev, &rp->sg, 1, DMA_BIDIRECTIONAL);
	for (i = 0; i < 2; i++)
		raw_close_side(rp, &rp->side[i]);
	if (rp->pd)
		ib_dealloc_pd(rp->pd);
	kfree(rp);
}

static int raw_make(struct raw_pair *rp, const struct sockaddr *addr)
{
	struct raw_side *a = &rp->side[0], *b = &rp->side[1];
	struct ib_pd *pd;
	int err;

	err = raw_listen(rp, addr);
	if (err)
		return err;
	pd = ib_alloc_pd(rp->dev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	rp->pd = pd;
	err = raw_make_side(rp, a, false);
	err = err ?: raw_make_side(rp, b, rp->pair.shape.srq);
	err = err ?: raw_connect(rp, addr);
	if (err || !rp->pair.shape.upcall)
		return err;
	err = raw_expose(rp);
	err = err ?: a->side.ops->post_recv(&a->side, BENCH_RESERVE);
	return err ?: b->side.ops->post_recv(&b->side, BENCH_RESERVE);
}

struct bench_pair *bench_raw_open(const struct sockaddr *addr,
				  const struct bench_shape *shape)
{
	struct raw_pair *rp;
	int i, err;

	rp = kzalloc(sizeof(*rp), GFP_KERNEL);
	if (!rp)
		return ERR_PTR(-ENOMEM);
	bench_pair_init(&rp->pair, &bench_raw_ops, shape);
	init_completion(&rp->step);
	for (i = 0; i < 2; i++)
		rp->pair.side[i] = &rp->side[i].side;
	err = raw_make(rp, addr);
	if (err) {
		raw_close(&rp->pair);
		return ERR_PTR(err);
	}
	return &rp->pair;
}
