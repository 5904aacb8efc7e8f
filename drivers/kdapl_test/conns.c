// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connecting and disconnecting: how long it takes, how often it can be done, and how
 * much memory a connection takes. The client first establishes all its connections and
 * looks at the memory, then ends each and establishes it again when the server has reset
 * its end, again and again.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "kdapl_test.h"

/*
 * The kernel's count of available memory lags by up to a megabyte for each CPU, so fewer
 * connections than these do not tell what one takes.
 */
#define KT_MEMORY_EPS	64

/*
 * struct kt_rounds - the client's
 * @hist: how long connecting took
 * @ending: no connection is established any more
 * @failed: how many could not be
 */
struct kt_rounds {
	struct kt_hist hist;
	u64 done;
	u64 failed;
	bool ending;
};

/* Tell the client which connections can be established again; what was told is forgotten. */
static void kt_conns_tell(struct kt_net *net, struct kt_msg *msg)
{
	u32 i, n = 0;

	for (i = 0; i < net->nconns && n < KT_TARGETS; i++)
		if (net->conns[i]->again)
			msg->target[n++].index = cpu_to_le32(i);
	msg->n = cpu_to_le16(n);
	/* If all its buffers are under way, the completion of one kicks the session. */
	if (!n || kt_ctrl_send(net, msg, KT_MSG_AGAIN))
		return;
	for (i = 0; i < n; i++)
		net->conns[le32_to_cpu(msg->target[i].index)]->again = false;
}

/*
 * The server's part: a connection that has ended is made ready for the next request, and
 * the client is told.
 */
void kt_conns_serve(struct kt_net *net)
{
	struct kt_msg *msg;
	bool any = false;
	u32 i;

	for (i = 0; i < net->nconns; i++) {
		struct kt_conn *conn = net->conns[i];

		if (kt_conn_is(conn) == KT_DOWN && !net->provider->reset(conn))
			conn->again = true;
		any |= conn->again;
	}
	msg = any ? kzalloc(sizeof(*msg), GFP_KERNEL) : NULL;
	if (msg)
		kt_conns_tell(net, msg);
	kfree(msg);
}

/* Whether all are established; connects those that are not. */
static bool kt_rounds_up(struct kt_net *net)
{
	u32 i, up = 0, dialing = 0;

	for (i = 0; i < net->nconns; i++) {
		struct kt_conn *conn = net->conns[i];

		switch (kt_conn_is(conn)) {
		case KT_UP:
			up++;
			break;
		case KT_CONNECTING:
			dialing++;
			break;
		case KT_DOWN:
			kt_fail(net, -ECONNREFUSED,
				"connection %u cannot be established", i);
			return false;
		default:
			if (dialing++ < 16 && net->provider->connect(conn))
				kt_conn_state(conn, KT_DOWN);
			break;
		}
	}
	return up == net->nconns;
}

/* End what is established, establish what has ended. */
static bool kt_rounds_step(struct kt_net *net)
{
	struct kt_rounds *rounds = net->priv;
	u32 i, dialing = 0;

	if (net->ctrl.down) {
		kt_fail(net, -ECONNRESET, "%s has ended the connection",
			net->cmd->host);
		return false;
	}
	for (i = 0; i < net->nconns; i++) {
		struct kt_conn *conn = net->conns[i];

		switch (kt_conn_is(conn)) {
		case KT_UP:
			if (conn->took) {
				kt_hist_add(&rounds->hist, conn->took);
				rounds->done++;
				conn->took = 0;
				conn->started = 0;
				net->provider->disconnect(conn);
			}
			break;
		case KT_CONNECTING:
			dialing++;
			break;
		case KT_DOWN:
			if (conn->started) {
				rounds->failed++;
				conn->started = 0;
				/* The server may have nothing to reset. */
				conn->again = true;
			}
			if (net->provider->reset(conn))
				break;
			fallthrough;
		case KT_IDLE:
			if (!conn->again || dialing++ >= 16)
				break;
			conn->again = false;
			if (net->provider->connect(conn))
				kt_conn_state(conn, KT_DOWN);
			break;
		}
	}
	return net->cmd->number && rounds->done >= net->cmd->number;
}

static void kt_rounds_run(struct kt_net *net, struct kt_rounds *rounds)
{
	u64 now, start = ktime_get_ns();
	u64 end = start + (u64)net->cmd->ms * NSEC_PER_MSEC;
	int err = -ETIMEDOUT;

	while ((now = ktime_get_ns()) < end && err == -ETIMEDOUT) {
		err = kt_net_run(net, kt_rounds_step,
				 min_t(u64, 500, div_u64(end - now,
							 NSEC_PER_MSEC) + 1));
		kt_say(net->s, "progress %llu %llu\n",
		       div_u64(ktime_get_ns() - start, NSEC_PER_MSEC),
		       rounds->done);
	}
	if (err && err != -ETIMEDOUT)
		return;
	kt_result(net, rounds->done, ktime_get_ns() - start, 0, &rounds->hist);
	kt_say(net->s, "result failed=%llu\n", rounds->failed);
}

/* The client's part. What fails is in net->err. */
void kt_conns(struct kt_net *net)
{
	struct kt_rounds *rounds = kvzalloc(sizeof(*rounds), GFP_KERNEL);
	long pages;
	int err;

	if (!rounds) {
		kt_fail(net, -ENOMEM, "there is no memory");
		return;
	}
	net->priv = rounds;
	err = kt_net_run(net, kt_rounds_up, 60 * MSEC_PER_SEC);
	if (err == -ETIMEDOUT)
		kt_fail(net, err, "not all connections can be established");
	if (!err) {
		pages = net->pages - si_mem_available();
		if (net->eps >= KT_MEMORY_EPS)
			kt_say(net->s, "memory kib=%ld\n",
			       pages * (long)(PAGE_SIZE / SZ_1K));
		kt_rounds_run(net, rounds);
	}
	kvfree(rounds);
}
