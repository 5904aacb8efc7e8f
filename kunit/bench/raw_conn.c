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
	err = raw_side_make_qp(raw) ?: rdma_accept(id, &param);
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
	err = err ?: raw_side_make_qp(raw);
	err = err ?: rdma_connect(id, &param);
	return err ?: raw_wait(rp);
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
	for (i = 0; i < 2; i++)
		if (rp->side[i].qp)
			rdma_disconnect(rp->side[i].id);
	if (rp->listener)
		rdma_destroy_id(rp->listener);
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
	bench_pair_init(&rp->pair, raw_close, shape);
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
