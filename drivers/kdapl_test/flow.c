// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The load on a connection. Completions drive it: each causes the next post. So no
 * thread is involved unless both sides poll, and no lock; the loops are the same over
 * kDAPL and over raw verbs.
 *
 * KT_LAT: the client sends a message when the last one was answered, which takes twice the
 * latency; or it posts an RDMA Read or Write when the last one has completed. KT_STREAM: the
 * client keeps a window of them under way. The server answers every kt_flow.credit Sends with
 * a short message, a credit, when it has posted as many receives again, so that no message
 * finds none.
 *
 * Where one CPU does everything, as in a test kernel, such a loop may never leave it to
 * the thread of the session. So each KT_BURST_NS the load rests until that thread has
 * seen it, kt_flow_resume().
 */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include "kdapl_test.h"

#define KT_CREDIT_LEN	8		/* bytes of a credit */
#define KT_BURST_NS	(100 * NSEC_PER_MSEC)
#define KT_CREDITS	24		/* receives for them; depth has room for 32 more */

void kt_flow_init(struct kt_conn *conn)
{
	const struct kt_net *net = conn->net;
	struct kt_flow *flow = &conn->flow;

	flow->kind = net->kind;
	flow->op = net->op;
	flow->active = !net->server;
	flow->len = net->size;
	flow->window = net->kind == KT_LAT ? 1 : net->depth;
	flow->credit = max(flow->window / 8, 1U);
}

/* Return how many receives a connection needs before it is established. */
int kt_flow_receives(const struct kt_conn *conn)
{
	const struct kt_flow *flow = &conn->flow;

	if (flow->kind == KT_LAT && flow->op == KT_SEND)
		return 2;
	if (flow->kind == KT_STREAM && flow->op == KT_SEND)
		return flow->active ? KT_CREDITS : flow->window;
	return 0;
}

static int kt_flow_post(struct kt_conn *conn, int n)
{
	struct kt_flow *flow = &conn->flow;
	struct bench_side *side = conn->side;

	switch (flow->op) {
	case KT_WRITE:
		return side->ops->post_write(side, n, flow->len);
	case KT_READ:
		return side->ops->post_read(side, n, flow->len);
	default:
		return side->ops->post_send(side, n, flow->len);
	}
}

/* Post the first messages; completions post the others. Context: process. */
int kt_flow_start(struct kt_conn *conn)
{
	struct kt_flow *flow = &conn->flow;

	if (!flow->active)
		return 0;
	flow->sq = flow->window;
	flow->sent = flow->window;
	flow->stamp = ktime_get_ns();
	flow->rest = flow->stamp + KT_BURST_NS;
	return kt_flow_post(conn, flow->window);
}

/* Let completions take over no more. Context: that of a completion. */
static void kt_flow_rest(struct kt_conn *conn)
{
	kt_flow_hand_over(&conn->flow, true);
	kt_kick(conn->net->s);
}

/* How many messages the peer has receives for. */
static u32 kt_flow_room(const struct kt_flow *flow)
{
	if (flow->op != KT_SEND)
		return flow->window;
	return flow->window - (flow->sent - READ_ONCE(flow->acked));
}

/*
 * Go on if the load rests: nothing is under way then, but credits may arrive. Context:
 * the thread of the session.
 */
int kt_flow_resume(struct kt_conn *conn)
{
	struct kt_flow *flow = &conn->flow;
	u32 n;

	if (!kt_flow_rests(flow))
		return 0;
	if (READ_ONCE(flow->stopping)) {
		kt_flow_go_idle(flow);
		return 0;
	}
	n = flow->kind == KT_LAT ? 1 : kt_flow_room(flow);
	/* A credit kicks. */
	if (!n)
		return 0;
	flow->sq = n;
	flow->sent += n;
	flow->stamp = ktime_get_ns();
	flow->rest = flow->stamp + KT_BURST_NS;
	kt_flow_hand_over(flow, false);
	return kt_flow_post(conn, n);
}

static void kt_flow_end(struct kt_conn *conn)
{
	kt_flow_go_idle(&conn->flow);
	kt_kick(conn->net->s);
}

static int kt_flow_lap(struct kt_conn *conn)
{
	struct kt_flow *flow = &conn->flow;
	u64 now = ktime_get_ns(), took = now - flow->stamp;

	kt_hist_add(flow->hist, flow->op == KT_SEND ? took / 2 : took);
	WRITE_ONCE(flow->ops, flow->ops + 1);
	flow->stamp = now;
	if (READ_ONCE(flow->stopping)) {
		kt_flow_end(conn);
		return 0;
	}
	if (now >= flow->rest) {
		kt_flow_rest(conn);
		return 0;
	}
	return kt_flow_post(conn, 1);
}

static int kt_lat_done(struct kt_conn *conn, enum bench_queue queue)
{
	struct kt_flow *flow = &conn->flow;
	struct bench_side *side = conn->side;
	int err;

	if (flow->op != KT_SEND)
		return queue == BENCH_SQ ? kt_flow_lap(conn) : 0;
	if (queue == BENCH_SQ)
		return 0;
	err = side->ops->post_recv(side, 1);
	if (err)
		return err;
	return flow->active ? kt_flow_lap(conn) :
			      side->ops->post_send(side, 1, flow->len);
}

/* Post as many messages as the window and the peer's receives have room for. */
static int kt_stream_more(struct kt_conn *conn)
{
	struct kt_flow *flow = &conn->flow;
	u32 n;

	if (READ_ONCE(flow->stopping)) {
		if (!flow->sq)
			kt_flow_end(conn);
		return 0;
	}
	if (ktime_get_ns() >= flow->rest) {
		if (!flow->sq)
			kt_flow_rest(conn);
		return 0;
	}
	n = min(flow->window - flow->sq, kt_flow_room(flow));
	flow->sq += n;
	flow->sent += n;
	return kt_flow_post(conn, n);
}

static int kt_stream_credit(struct kt_conn *conn)
{
	struct kt_flow *flow = &conn->flow;

	WRITE_ONCE(flow->acked, flow->acked +
		   min(flow->sent - flow->acked, flow->credit));
	if (kt_flow_rests(flow)) {
		kt_kick(conn->net->s);
		return 0;
	}
	return kt_stream_more(conn);
}

static int kt_stream_done(struct kt_conn *conn, enum bench_queue queue)
{
	struct kt_flow *flow = &conn->flow;
	struct bench_side *side = conn->side;
	int err;

	if (queue == BENCH_SQ) {
		if (!flow->active)
			return 0;
		flow->sq--;
		WRITE_ONCE(flow->ops, flow->ops + 1);
		return kt_stream_more(conn);
	}
	err = side->ops->post_recv(side, 1);
	if (err)
		return err;
	if (flow->active)
		return kt_stream_credit(conn);
	if (++flow->due < flow->credit)
		return 0;
	flow->due = 0;
	return side->ops->post_send(side, 1, min_t(u32, flow->len, KT_CREDIT_LEN));
}

/* bench_side.done: a request or a receive has completed. Context: softirq or poller. */
void kt_flow_done(struct bench_side *side, enum bench_queue queue)
{
	struct kt_conn *conn = side->owner;
	int err;

	/* Connections are freed while completions may still come. litmus: test-ended */
	if (READ_ONCE(conn->net->ended))
		return;
	/* One of the server's that has failed gets no more receives. */
	if (!conn->flow.active && READ_ONCE(conn->flow.stopping))
		return;
	err = conn->flow.kind == KT_LAT ? kt_lat_done(conn, queue) :
					  kt_stream_done(conn, queue);
	if (err)
		kt_flow_failed(side, err);
}

/* bench_side.failed: it has failed, as all do when the connection has ended. */
void kt_flow_failed(struct bench_side *side, int err)
{
	struct kt_conn *conn = side->owner;

	/* Also what was under way when the load had stopped is to arrive. */
	if (READ_ONCE(conn->flow.idle))
		return;
	kt_flow_go_idle(&conn->flow);
	WRITE_ONCE(conn->flow.stopping, true);
	if (conn->net->server)
		return;
	kt_fail(conn->net, err, "connection %u has failed (%d)", conn->index,
		err);
}
