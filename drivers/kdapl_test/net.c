// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An open adapter, waiting for what the peer does, and the connections of a run.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/stdarg.h>
#include "kdapl_test.h"

/*
 * Note why a run ends, the first reason only. Return @err. litmus: test-error, test-forgive
 * Context: any.
 */
int kt_fail(struct kt_net *net, int err, const char *fmt, ...)
{
	va_list args;

	if (!xchg(&net->failed, true)) {
		va_start(args, fmt);
		vscnprintf(net->why, sizeof(net->why), fmt, args);
		va_end(args);
		/* Pairs with kt_error(). */
		smp_store_release(&net->err, err);
	}
	kt_kick(net->s);
	return err;
}

/* Forget why a run has failed, for the next one. Context: the thread of the session. */
void kt_forgive(struct kt_net *net)
{
	WRITE_ONCE(net->err, 0);
	/* The next failure, in kt_fail(), finds no error. litmus: test-forgive */
	smp_store_release(&net->failed, false);
}

static void kt_net_upcall(DAT_PVOID data, const DAT_EVENT *event,
			  DAT_BOOLEAN more)
{
	struct kt_net *net = data;

	kt_kick(net->s);
}

static void kt_async_upcall(DAT_PVOID data, const DAT_EVENT *event,
			    DAT_BOOLEAN more)
{
	struct kt_net *net = data;

	if (event->event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		kt_fail(net, -ENODEV, "the adapter is gone");
}

static DAT_COUNT kt_max_segments(struct kt_net *net)
{
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	DAT_COUNT n = 1;

	if (attr && dat_ia_query(net->ia, NULL,
				 DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO, attr,
				 DAT_PROVIDER_FIELD_NONE, NULL) == DAT_SUCCESS)
		n = clamp(attr->max_iov_segments_per_dto, 1, KT_MAX_SEGMENTS);
	kfree(attr);
	return n;
}

static int kt_open_ia(struct kt_net *net)
{
	DAT_UPCALL_OBJECT wake = { net, kt_net_upcall };
	DAT_UPCALL_OBJECT async = { net, kt_async_upcall };
	DAT_RETURN ret;

	ret = dat_ia_open((char *)net->cmd->ia, 32, &net->async_evd, &net->ia);
	if (ret != DAT_SUCCESS) {
		net->ia = NULL;
		return kt_fail(net, -ENODEV, "there is no adapter %s",
			       net->cmd->ia);
	}
	net->max_segments = kt_max_segments(net);
	ret = dat_evd_modify_upcall(net->async_evd, DAT_UPCALL_SINGLE_INSTANCE,
				    &async, DAT_UPCALL_INVOC_ANY);
	if (ret == DAT_SUCCESS)
		ret = dat_pz_create(net->ia, &net->pz);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(net->ia, 512, DAT_UPCALL_NOTIFY, &wake,
				      DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG |
				      DAT_EVD_CONNECTION_FLAG |
				      DAT_EVD_SOFTWARE_FLAG, &net->evd);
	if (ret != DAT_SUCCESS)
		return kt_fail(net, -ENOMEM, "%s has no resources left",
			       net->cmd->ia);
	return 0;
}

/*
 * Close an IA with all that is left in it. Return false if a driver does not let go of a
 * connection: the IA stays open, and what is registered there must not be freed.
 */
bool kt_ia_close(DAT_IA_HANDLE ia, const char *name)
{
	if (DAT_GET_TYPE(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG)) != DAT_INVALID_STATE)
		return true;
	pr_err("a connection does not end: %s stays open\n", name);
	return false;
}

int kt_net_open(struct kt_net *net, struct kt_session *s,
		const struct kt_command *cmd)
{
	net->s = s;
	net->cmd = cmd;
	net->addr = cmd->addr;
	net->port = cmd->port;
	net->token = get_random_u32() | 1;
	return kt_open_ia(net) ?: kt_ctrl_make(net);
}

/* Undo kt_net_open(), whether it has failed or not. */
void kt_net_close(struct kt_net *net)
{
	kt_net_free_conns(net);
	kt_ctrl_free(net);
	if (net->ia)
		kt_ia_close(net->ia, net->cmd->ia);
}

/* ---- Waiting --------------------------------------------------------------------- */

static void kt_net_event(struct kt_net *net, const DAT_EVENT *event)
{
	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		net->on_cr(net, event->event_data.cr_arrival_event_data.cr_handle);
	else
		kt_ctrl_event(net, event);
}

/*
 * Handle what the peer does until @cond holds, which is 0, until the session stops
 * (-EINTR), something fails (net->err) or @ms have passed (-ETIMEDOUT).
 */
int kt_net_run(struct kt_net *net, bool (*cond)(struct kt_net *net), u32 ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);
	struct kt_session *s = net->s;
	DAT_EVENT event;

	for (;;) {
		int seen = atomic_read(&s->kicks);

		while (dat_evd_dequeue(net->evd, &event) == DAT_SUCCESS)
			kt_net_event(net, &event);
		kt_ctrl_tick(net);
		if (READ_ONCE(s->stop))
			return -EINTR;
		if (kt_error(net))
			return net->err;
		if (cond && cond(net))
			return 0;
		if (time_after_eq(jiffies, end))
			return -ETIMEDOUT;
		wait_event_idle_timeout(s->wq, READ_ONCE(s->stop) ||
					atomic_read(&s->kicks) != seen,
					min(end - jiffies,
					    msecs_to_jiffies(KT_ALIVE_MS / 2)));
	}
}

/* ---- Connections ------------------------------------------------------------------ */

/*
 * Take over what net->setup says, and check it: it may come from a peer. A size is in
 * whole pages for memory, in bytes for messages.
 */
int kt_net_setup(struct kt_net *net)
{
	const struct kt_wire_setup *setup = &net->setup;

	net->kind = setup->kind;
	net->op = setup->op;
	net->flags = le32_to_cpu(setup->flags);
	net->size = le32_to_cpu(setup->size);
	net->depth = le32_to_cpu(setup->depth);
	net->eps = le32_to_cpu(setup->eps);
	if (net->kind >= KT_KINDS || net->op >= KT_OP_NUMBER ||
	    net->flags & ~KT_FLAGS || !net->size || !net->depth || !net->eps ||
	    net->size > KT_MAX_SIZE || net->depth > KT_MAX_DEPTH ||
	    net->eps > KT_MAX_EPS || le16_to_cpu(setup->nops) > KT_OPS)
		return -EINVAL;
	if (net->kind != KT_TRANS && net->flags & KT_TRANS_FLAGS)
		return -EINVAL;
	if (net->flags & KT_INVALIDATE && !(net->flags & KT_FMR))
		return -EINVAL;
	if (net->kind == KT_TRANS) {
		net->size = kt_trans_room(setup);
		if (!net->size || net->flags & (KT_RAW | KT_POLL))
			return -EINVAL;
	}
	net->provider = net->flags & KT_RAW ? &kt_raw_provider :
					      &kt_dat_provider;
	return 0;
}

/* Note a change and have the session look at it. Context: any. */
void kt_conn_state(struct kt_conn *conn, enum kt_state state)
{
	if (state == KT_UP)
		conn->took = ktime_get_ns() - conn->started;
	kt_conn_set(conn, state);
	kt_kick(conn->net->s);
}

/* Whether all connections are in this state. */
bool kt_conns_are(const struct kt_net *net, enum kt_state state)
{
	u32 i;

	for (i = 0; i < net->nconns; i++)
		if (kt_conn_is(net->conns[i]) != state)
			return false;
	return true;
}

static struct kt_conn *kt_conn_make(struct kt_net *net, u32 index)
{
	struct kt_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (!conn)
		return NULL;
	conn->net = net;
	conn->index = index;
	conn->side = net->flags & KT_RAW ? &conn->raw.side : &conn->dat.side;
	conn->side->owner = conn;
	conn->side->room = max_t(u32, PAGE_SIZE, roundup_pow_of_two(net->size));
	/* Room for the messages and for the credits. */
	conn->side->depth = net->depth + 32;
	conn->side->upcall = !(net->flags & KT_POLL);
	conn->side->recv_len = net->size;
	conn->side->done = kt_flow_done;
	conn->side->failed = kt_flow_failed;
	kt_flow_init(conn);
	if (net->kind == KT_TRANS)
		conn->trans.room = net->size / KT_TRANS_PARTS;
	if ((net->kind == KT_LAT || net->kind == KT_TRANS) && !net->server) {
		conn->flow.hist = kvzalloc(sizeof(*conn->flow.hist), GFP_KERNEL);
		if (!conn->flow.hist) {
			kfree(conn);
			return NULL;
		}
	}
	return conn;
}

static void kt_conn_free(struct kt_conn *conn)
{
	conn->net->provider->free(conn);
	kvfree(conn->flow.hist);
	kfree(conn);
}

/* Make all connections of the setup, none of which is connected. */
int kt_net_make_conns(struct kt_net *net)
{
	struct kt_conn *conn;
	int err;

	net->ended = false;
	net->conns = kvcalloc(net->eps, sizeof(*net->conns), GFP_KERNEL);
	if (!net->conns)
		return kt_fail(net, -ENOMEM, "there is no memory");
	err = net->provider->open(net);
	while (!err && net->nconns < net->eps) {
		conn = kt_conn_make(net, net->nconns);
		if (!conn)
			return kt_fail(net, -ENOMEM, "there is no memory");
		net->conns[net->nconns++] = conn;
		err = net->provider->make(conn);
	}
	if (err)
		return kt_fail(net, err, "%s has no resources for %u connections (%d)",
			       net->cmd->ia, net->eps, err);
	return 0;
}

/* Free the connections of a setup and what they share; nothing may be left to do. */
void kt_net_free_conns(struct kt_net *net)
{
	u32 i;

	if (net->poller)
		kthread_stop(net->poller);
	net->poller = NULL;
	if (!net->conns)
		return;
	if (net->provider->deafen)
		net->provider->deafen(net);
	for (i = 0; i < net->nconns; i++) {
		WRITE_ONCE(net->conns[i]->flow.idle, true);
		WRITE_ONCE(net->conns[i]->flow.stopping, true);
	}
	/* Softirqs that have not seen this may post to a queue pair. litmus: test-ended */
	WRITE_ONCE(net->ended, true);
	synchronize_rcu_expedited();
	/* Buffers in an SRQ are written by all connections. */
	for (i = 0; i < net->nconns; i++)
		net->provider->end(net->conns[i]);
	net->provider->unshare(net);
	while (net->nconns)
		kt_conn_free(net->conns[--net->nconns]);
	if (net->provider->close)
		net->provider->close(net);
	kvfree(net->conns);
	net->conns = NULL;
	net->ready = false;
	net->started = false;
	net->targets = 0;
}

/* Post what a connection has to receive before it is established. */
int kt_conn_prepare(struct kt_conn *conn)
{
	int n;

	if (conn->net->kind == KT_TRANS)
		return kt_trans_prepare(conn);
	n = kt_flow_receives(conn);
	return n ? conn->side->ops->post_recv(conn->side, n) : 0;
}

void kt_hello(const struct kt_net *net, u32 index, struct kt_hello *hello)
{
	*hello = (struct kt_hello) {
		.magic = cpu_to_le32(KT_MAGIC),
		.version = cpu_to_le16(KT_VERSION),
		.index = cpu_to_le16(index),
		.token = cpu_to_le32(net->token),
	};
}

/* Return the connection that private data names, if it waits for its peer, or NULL. */
struct kt_conn *kt_greeted(struct kt_net *net, const void *data, size_t len)
{
	const struct kt_hello *hello = data;
	struct kt_conn *conn;
	u32 index;

	if (!data || len < sizeof(*hello) ||
	    le32_to_cpu(hello->magic) != KT_MAGIC ||
	    le16_to_cpu(hello->version) != KT_VERSION ||
	    le32_to_cpu(hello->token) != net->token)
		return NULL;
	index = le16_to_cpu(hello->index);
	if (index >= net->nconns)
		return NULL;
	conn = net->conns[index];
	return kt_conn_is(conn) == KT_IDLE ? conn : NULL;
}

/* ---- Polling --------------------------------------------------------------------- */

/* Fetch what has completed on one queue. Return how much that was. */
static int kt_poll_queue(struct bench_side *side, enum bench_queue queue)
{
	int i, n = side->ops->reap(side, queue, 16);

	if (n < 0)
		side->failed(side, n);
	for (i = 0; i < n; i++)
		side->done(side, queue);
	return n;
}

static int kt_poller(void *data)
{
	struct kt_net *net = data;
	struct kt_conn *conn;
	u32 i;

	while (!kthread_should_stop()) {
		int got = 0;

		for (i = 0; i < net->nconns; i++) {
			conn = net->conns[i];
			if (kt_conn_is(conn) != KT_UP)
				continue;
			got |= kt_poll_queue(conn->side, BENCH_RQ);
			got |= kt_poll_queue(conn->side, BENCH_SQ);
		}
		/* On a single CPU the driver's threads need it. */
		if (got <= 0 && num_online_cpus() == 1)
			usleep_range(1, 2);
		else
			cond_resched();
	}
	return 0;
}

/* Start to poll all connections, if that was asked for. */
int kt_net_poll(struct kt_net *net)
{
	struct task_struct *task;

	if (!(net->flags & KT_POLL))
		return 0;
	task = kthread_run(kt_poller, net, "kdapl_test_poll");
	if (IS_ERR(task))
		return kt_fail(net, PTR_ERR(task), "there is no memory");
	net->poller = task;
	return 0;
}
