// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Raw verbs: making a pair.
 *
 * The plainest use of rdma_cm: a listener and an active id on one address of
 * the device. Each step waits for the one before.
 */
#include <linux/slab.h>
#include "pair.h"

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

/* Create everything that does not need a connection. */
static int raw_make_side(struct raw_pair *rp, struct raw_side *raw, bool srq)
{
	raw->dev = rp->dev;
	raw->pd = rp->pd;
	bench_side_init(&raw->side, &rp->pair);
	if (srq) {
		struct ib_srq *made = raw_side_srq(raw, BENCH_DEPTH);

		if (IS_ERR(made))
			return PTR_ERR(made);
		raw->srq = made;
	}
	return raw_side_make(raw);
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
	err = raw_side_make_qp(raw, rp->depth) ?: rdma_accept(id, &param);
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
		if (!READ_ONCE(rp->pair.closing))
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
	err = err ?: raw_side_make_qp(raw, rp->depth);
	err = err ?: rdma_connect(id, &param);
	return err ?: raw_wait(rp);
}

/* ---- more connections ------------------------------------------------------------ */

static void raw_choose(struct bench_pair *pair, unsigned int i)
{
	struct raw_pair *rp = container_of(pair, struct raw_pair, pair);

	rp->side[0].qp = rp->ids[0][i]->qp;
	rp->side[1].recv_cq = rp->cqs[i % rp->ncqs];
}

/* Make the CQs on which side 1 receives, beside the one that it has. */
static int raw_more_cqs(struct raw_pair *rp)
{
	struct ib_cq *cq;

	rp->cqs[0] = rp->side[1].recv_cq;
	for (rp->ncqs = 1; rp->ncqs < rp->pair.shape.evds; rp->ncqs++) {
		cq = ib_alloc_cq(rp->dev, &rp->side[1], 2 * BENCH_DEPTH, 0,
				 IB_POLL_DIRECT);
		if (IS_ERR(cq))
			return PTR_ERR(cq);
		rp->cqs[rp->ncqs] = cq;
	}
	return 0;
}

/* The connection that was made last is one of @rp->ids from now on. */
static void raw_keep(struct raw_pair *rp)
{
	int i;

	for (i = 0; i < 2; i++) {
		rp->ids[i][rp->nids] = rp->side[i].id;
		rp->side[i].id = NULL;
		rp->side[i].qp = NULL;
	}
	rp->nids++;
}

/* Make as many connections as the pair uses. */
static int raw_connect_all(struct raw_pair *rp, const struct sockaddr *addr)
{
	unsigned int used = bench_used(&rp->pair.shape);
	int i, err = raw_more_cqs(rp);

	for (i = 0; i < 2 && !err; i++) {
		rp->ids[i] = kvcalloc(used, sizeof(*rp->ids[i]), GFP_KERNEL);
		if (!rp->ids[i])
			return -ENOMEM;
	}
	rp->depth = BENCH_DEPTH;
	while (!err && rp->nids < used) {
		rp->established = 0;
		reinit_completion(&rp->step);
		rp->side[1].recv_cq = rp->cqs[rp->nids % rp->ncqs];
		err = raw_connect(rp, addr);
		if (!err)
			raw_keep(rp);
		rp->depth = bench_more_depth(&rp->pair.shape);
		cond_resched();
	}
	if (err)
		return err;
	for (i = 0; i < 2; i++)
		rp->side[i].qp = rp->ids[i][0]->qp;
	rp->side[1].recv_cq = rp->cqs[0];
	return 0;
}

/* Free all connections and CQs but those that are the sides'. */
static void raw_free_all(struct raw_pair *rp)
{
	unsigned int n;
	int i;

	for (i = 0; i < 2; i++) {
		for (n = 0; n < rp->nids; n++) {
			rdma_destroy_qp(rp->ids[i][n]);
			rdma_destroy_id(rp->ids[i][n]);
		}
		if (rp->nids)
			rp->side[i].qp = NULL;
		kvfree(rp->ids[i]);
	}
	if (rp->side[1].recv_cq)
		rp->side[1].recv_cq = rp->cqs[0];
	for (n = 1; n < rp->ncqs; n++)
		ib_free_cq(rp->cqs[n]);
}

/* ---- RDMA Write ---------------------------------------------------------------- */

/* Tell side 0 the address and key of the receive buffer of side 1. */
static int raw_expose(struct raw_pair *rp)
{
	struct raw_side *a = &rp->side[0], *b = &rp->side[1];
	int err = raw_side_expose(b);

	if (err)
		return err;
	if (!wait_for_completion_timeout(&b->exposed, BENCH_TIMEOUT))
		return -ETIMEDOUT;
	a->remote_addr = b->mr->iova;
	a->rkey = b->mr->rkey;
	return b->expose_err;
}

/* ---- a pair ----------------------------------------------------------------------- */

static void raw_close(struct bench_pair *pair)
{
	struct raw_pair *rp = container_of(pair, struct raw_pair, pair);
	int i;

	WRITE_ONCE(pair->closing, true);
	for (i = 0; i < (int)rp->nids; i++)
		rdma_disconnect(rp->ids[0][i]);
	if (rp->listener)
		rdma_destroy_id(rp->listener);
	raw_free_all(rp);
	for (i = 0; i < 2; i++) {
		raw_side_free(&rp->side[i]);
		if (rp->side[i].srq)
			ib_destroy_srq(rp->side[i].srq);
	}
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
	err = err ?: raw_connect_all(rp, addr);
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
	bench_pair_init(&rp->pair, raw_close, shape);
	rp->pair.choose = raw_choose;
	rp->pair.map = bench_raw_map;
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
