// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A command that needs a server: connects to it, has it make what is needed, runs the
 * load, and says what was measured:
 *
 *	progress MS OPS		since the load began, again and again
 *	result ops=... ...	at its end
 *	latency ... hist ...	see hist.c
 *	error SENTENCE		in place of that
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "kdapl_test.h"

#define KT_STEP_MS	30000
#define KT_PROGRESS_MS	500
/* A listener has room for 64 requests. */
#define KT_DIALING	16

static void kt_client_cr(struct kt_net *net, DAT_CR_HANDLE cr)
{
	dat_cr_reject(cr, 0, NULL);
}

static void kt_client_start(struct kt_net *net, const struct kt_msg *msg)
{
	u32 i, n = le16_to_cpu(msg->n), index;

	for (i = 0; i < n && i < KT_TARGETS; i++) {
		index = le32_to_cpu(msg->target[i].index);
		if (index >= net->nconns)
			continue;
		net->conns[index]->target = msg->target[i];
		net->provider->aim(net->conns[index]);
		net->targets++;
	}
	net->started = net->targets >= net->nconns;
}

/* The server has reset its end of connections. */
static void kt_client_may_dial_again(struct kt_net *net, const struct kt_msg *msg)
{
	u32 i, n = le16_to_cpu(msg->n), index;

	for (i = 0; i < n && i < KT_TARGETS; i++) {
		index = le32_to_cpu(msg->target[i].index);
		if (index < net->nconns)
			net->conns[index]->again = true;
	}
}

static void kt_client_msg(struct kt_net *net, const struct kt_msg *msg)
{
	switch (msg->type) {
	case KT_MSG_READY:
		net->token = le32_to_cpu(msg->token);
		net->raw_port = le32_to_cpu(msg->port);
		net->ready = true;
		break;
	case KT_MSG_REFUSED:
		kt_fail(net, -EACCES, "%s refuses: %.*s", net->cmd->host,
			(int)min_t(u32, le16_to_cpu(msg->n), 100), msg->text);
		break;
	case KT_MSG_START:
		if (!net->started)
			kt_client_start(net, msg);
		break;
	case KT_MSG_AGAIN:
		kt_client_may_dial_again(net, msg);
		break;
	default:
		kt_fail(net, -EPROTO, "%s speaks another language",
			net->cmd->host);
		break;
	}
}

/* ---- Conditions to wait for -------------------------------------------------------- */

/* Fail if the server is gone. */
static bool kt_server_here(struct kt_net *net)
{
	const struct kt_ctrl *ctrl = &net->ctrl;

	if (!ctrl->down)
		return true;
	if (ctrl->event == DAT_CONNECTION_EVENT_TIMED_OUT)
		kt_fail(net, -ETIMEDOUT, "%s does not answer", net->cmd->host);
	else
		kt_fail(net, -ECONNRESET, "%s has ended the connection",
			net->cmd->host);
	return false;
}

static bool kt_is_up(struct kt_net *net)
{
	const struct kt_ctrl *ctrl = &net->ctrl;

	if (!ctrl->down || ctrl->up)
		return ctrl->up;
	if (ctrl->event == DAT_CONNECTION_EVENT_PEER_REJECTED && ctrl->reason[0])
		kt_fail(net, -ECONNREFUSED, "%s refuses: %s", net->cmd->host,
			ctrl->reason);
	else if (ctrl->event == DAT_CONNECTION_EVENT_PEER_REJECTED ||
		 ctrl->event == DAT_CONNECTION_EVENT_NON_PEER_REJECTED)
		kt_fail(net, -ECONNREFUSED, "nobody serves at %s port %u",
			net->cmd->host, net->port);
	else
		kt_fail(net, -EHOSTUNREACH, "%s cannot be reached (%s)",
			net->cmd->host, kdat_event_name(ctrl->event));
	return false;
}

static bool kt_is_ready(struct kt_net *net)
{
	return kt_server_here(net) && net->ready;
}

/* Connect those that are not, some at a time. */
static bool kt_is_connected(struct kt_net *net)
{
	u32 i, up = 0, dialing = 0;

	if (!kt_server_here(net))
		return false;
	for (i = 0; i < net->nconns; i++) {
		struct kt_conn *conn = net->conns[i];
		enum kt_state state = kt_conn_is(conn);

		if (state == KT_IDLE && dialing < KT_DIALING) {
			if (net->provider->connect(conn))
				state = KT_DOWN;
			dialing++;
		} else if (state == KT_CONNECTING) {
			dialing++;
		}
		if (state == KT_DOWN) {
			kt_fail(net, -ECONNREFUSED,
				"connection %u cannot be established", i);
			return false;
		}
		up += state == KT_UP;
	}
	return up == net->nconns && net->started;
}

static bool kt_is_idle(struct kt_net *net)
{
	u32 i;

	if (!kt_server_here(net))
		return false;
	for (i = 0; i < net->nconns; i++) {
		kt_flow_resume(net->conns[i]);
		if (!kt_flow_is_idle(&net->conns[i]->flow))
			return false;
	}
	return true;
}

/* ---- The load ----------------------------------------------------------------------- */

static u64 kt_client_ops(const struct kt_net *net)
{
	u64 ops = 0;
	u32 i;

	for (i = 0; i < net->nconns; i++)
		ops += READ_ONCE(net->conns[i]->flow.ops);
	return ops;
}

/*
 * Whether the command's number of messages, if it has one, is reached. Lets load that
 * rests go on.
 */
static bool kt_enough(struct kt_net *net)
{
	u32 i;

	kt_server_here(net);
	for (i = 0; i < net->nconns; i++)
		if (kt_flow_resume(net->conns[i]))
			kt_fail(net, -EIO, "connection %u takes no load", i);
	return net->cmd->number &&
	       kt_client_ops(net) >= (u64)net->cmd->number * net->rounds;
}

/* Let the load run; say how it goes. */
static int kt_client_watch(struct kt_net *net, u64 start)
{
	u64 now, end = start + (u64)net->cmd->ms * NSEC_PER_MSEC;
	int err;

	for (;;) {
		now = ktime_get_ns();
		if (now >= end)
			return 0;
		err = kt_net_run(net, kt_enough,
				 min_t(u64, KT_PROGRESS_MS,
				       div_u64(end - now, NSEC_PER_MSEC) + 1));
		if (!err)
			return 0;
		if (err != -ETIMEDOUT)
			return err;
		kt_say(net->s, "progress %llu %llu\n",
		       div_u64(ktime_get_ns() - start, NSEC_PER_MSEC),
		       kt_client_ops(net));
	}
}

/* Say what was measured, and keep it for the server; @hist may be NULL. */
void kt_result(struct kt_net *net, u64 ops, u64 ns, u64 bytes,
	       const struct kt_hist *hist)
{
	net->result = (struct kt_wire_result) {
		.ops = cpu_to_le64(ops),
		.ns = cpu_to_le64(ns),
		.bytes = cpu_to_le64(bytes),
	};
	kt_say(net->s, "result ops=%llu ns=%llu bytes=%llu\n", ops, ns, bytes);
	if (!hist)
		return;
	net->result.n = cpu_to_le64(hist->n);
	net->result.p50 = cpu_to_le64(kt_hist_percentile(hist, 5000));
	net->result.p99 = cpu_to_le64(kt_hist_percentile(hist, 9900));
	kt_hist_say(net->s, hist);
}

static int kt_client_result(struct kt_net *net, u64 ops, u64 ns)
{
	struct kt_hist *all;
	u32 i;

	if (net->kind == KT_STREAM) {
		kt_result(net, ops, ns, ops * net->size, NULL);
		return 0;
	}
	all = kvzalloc(sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	for (i = 0; i < net->nconns; i++)
		kt_hist_merge(all, net->conns[i]->flow.hist);
	kt_result(net, ops, ns, net->kind == KT_TRANS ? 0 : ops * net->size,
		  all);
	kvfree(all);
	return 0;
}

/* All connections have ended. */
static bool kt_all_down(struct kt_net *net)
{
	return kt_server_here(net) && kt_conns_are(net, KT_DOWN);
}

/* Connect all again; one is refused as long as the server has not reset its end. */
static bool kt_is_connected_again(struct kt_net *net)
{
	u32 i, up = 0, dialing = 0;

	if (!kt_server_here(net))
		return false;
	for (i = 0; i < net->nconns; i++) {
		struct kt_conn *conn = net->conns[i];

		dialing += kt_conn_is(conn) == KT_CONNECTING;
		up += kt_conn_is(conn) == KT_UP;
		if (kt_conn_is(conn) == KT_DOWN)
			kt_trans_reset(conn);
		if (kt_conn_is(conn) != KT_IDLE || dialing++ >= KT_DIALING)
			continue;
		if (net->provider->connect(conn))
			kt_conn_state(conn, KT_DOWN);
	}
	return up == net->nconns;
}

static int kt_client_wait(struct kt_net *net, bool (*cond)(struct kt_net *net))
{
	int err = kt_net_run(net, cond, KT_STEP_MS);

	if (err == -ETIMEDOUT)
		kt_fail(net, err, "%s does not answer", net->cmd->host);
	return err;
}

/* Stop the load on all connections. */
static int kt_client_rest(struct kt_net *net)
{
	u32 i;
	int err;

	for (i = 0; i < net->nconns; i++)
		WRITE_ONCE(net->conns[i]->flow.stopping, true);
	err = kt_net_run(net, kt_is_idle, KT_STEP_MS);
	return err == -ETIMEDOUT ? kt_fail(net, err, "messages are lost") : err;
}

/* End all connections, and establish them again with the same Endpoints. */
static int kt_client_again(struct kt_net *net)
{
	u32 i;
	int err = kt_client_rest(net);

	if (err)
		return err;
	for (i = 0; i < net->nconns; i++)
		net->provider->disconnect(net->conns[i]);
	return kt_client_wait(net, kt_all_down) ?:
	       kt_client_wait(net, kt_is_connected_again);
}

/* Run the load until the command's number, or its time, is reached. */
static int kt_client_round(struct kt_net *net, u64 start)
{
	u32 i;
	int err;

	net->rounds++;
	for (i = 0; i < net->nconns; i++) {
		err = net->kind == KT_TRANS ? kt_trans_start(net->conns[i]) :
					      kt_flow_start(net->conns[i]);
		if (err)
			return kt_fail(net, err, "connection %u takes no load (%d)",
				       i, err);
	}
	return kt_net_poll(net) ?: kt_client_watch(net, start);
}

static int kt_client_load(struct kt_net *net)
{
	u64 start, ns, ops;
	int err;

	start = ktime_get_ns();
	err = kt_client_round(net, start);
	while (!err && net->rounds <= net->cmd->again)
		err = kt_client_again(net) ?: kt_client_round(net, start);
	if (err)
		return err;
	ops = kt_client_ops(net);
	ns = ktime_get_ns() - start;
	return kt_client_rest(net) ?: kt_client_result(net, ops, ns);
}

/* ---- A command ------------------------------------------------------------------------ */

static int kt_client_request(struct kt_net *net)
{
	const struct kt_command *cmd = net->cmd;
	struct kt_msg *msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	int err;

	if (!msg)
		return kt_fail(net, -ENOMEM, "there is no memory");
	msg->setup = (struct kt_wire_setup) {
		.kind = cmd->kind,
		.op = cmd->op,
		.flags = cpu_to_le32(cmd->flags | (cmd->again ? KT_AGAIN : 0)),
		.size = cpu_to_le32(cmd->size),
		.depth = cpu_to_le32(cmd->kind == KT_LAT ? 1 :
				     cmd->kind == KT_TRANS ? 8 : cmd->depth),
		.eps = cpu_to_le32(cmd->eps),
		.nops = cpu_to_le16(cmd->nops),
	};
	memcpy(msg->setup.ops, cmd->ops, sizeof(cmd->ops));
	net->setup = msg->setup;
	err = kt_net_setup(net) ?: kt_ctrl_send(net, msg, KT_MSG_SETUP);
	kfree(msg);
	if (err == -ENOTCONN)
		return kt_fail(net, err, "%s has ended the connection",
			       net->cmd->host);
	return err ? kt_fail(net, err, "the server cannot be asked") : 0;
}

/* Connect all connections and wait until the server says that it is ready for load. */
int kt_net_connect(struct kt_net *net)
{
	return kt_client_wait(net, kt_is_connected);
}

static bool kt_is_down(struct kt_net *net)
{
	return net->ctrl.down;
}

/*
 * Tell the server that this was all, or to end. It ends the connection when it has freed
 * everything, so that the next command finds it ready.
 */
static int kt_client_leave(struct kt_net *net, enum kt_msg_type type)
{
	struct kt_msg *msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	int err;

	if (!msg)
		return kt_fail(net, -ENOMEM, "there is no memory");
	msg->result = net->result;
	err = kt_ctrl_send(net, msg, type);
	kfree(msg);
	/* If it is gone already there is nobody to be told. */
	if (err == -ENOTCONN)
		return 0;
	return err ? kt_fail(net, err, "the server cannot be told") :
		     kt_client_wait(net, kt_is_down);
}

static int kt_client_run(struct kt_net *net)
{
	int err;

	err = kt_ctrl_connect(net);
	err = err ?: kt_client_wait(net, kt_is_up);
	if (!err && !strcmp(net->cmd->name, "quit"))
		return kt_client_leave(net, KT_MSG_QUIT);
	net->pages = si_mem_available();
	err = err ?: kt_client_request(net);
	err = err ?: kt_client_wait(net, kt_is_ready);
	err = err ?: kt_net_make_conns(net);
	if (err)
		return err;
	if (net->kind == KT_CONNS) {
		kt_conns(net);
		err = net->err;
	} else {
		err = kt_net_connect(net) ?: kt_client_load(net);
	}
	return err ?: kt_client_leave(net, KT_MSG_FINISH);
}

void kt_measure(struct kt_session *s, const struct kt_command *cmd)
{
	struct kt_net *net = kvzalloc(sizeof(*net), GFP_KERNEL);
	int err;

	if (!net) {
		kt_say(s, "error there is no memory\n");
		return;
	}
	net->on_msg = kt_client_msg;
	net->on_cr = kt_client_cr;
	err = kt_net_open(net, s, cmd) ?: kt_client_run(net);
	if (err && err != -EINTR)
		kt_say(s, "error %s\n", net->why[0] ? net->why : "out of memory");
	kt_net_close(net);
	kvfree(net);
}
