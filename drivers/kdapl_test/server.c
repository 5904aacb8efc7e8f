// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The server: serves one client at a time, until its file is closed. It listens on the
 * address that it was given, and does nothing but what the requests in proto.h say,
 * within cmd->limit; others are refused, and a client that breaks the rules or does not
 * answer is dropped, with all that was made for it.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include "kdapl_test.h"

/*
 * struct kt_server - what a server has besides its struct kt_net
 * @client: there is one
 * @drop: it is to be dropped
 * @quit: it has asked the server to end
 * @running: a run was set up, and its end was not told yet
 * @runs: how many runs there were
 */
struct kt_server {
	struct kt_net net;
	DAT_CSP_HANDLE csp;
	bool client;
	bool drop;
	bool quit;
	bool running;
	u32 runs;
};

static struct kt_server *to_server(struct kt_net *net)
{
	return container_of(net, struct kt_server, net);
}

/* ---- Requests for connections ----------------------------------------------------- */

static void kt_server_cr(struct kt_net *net, DAT_CR_HANDLE cr)
{
	struct kt_server *server = to_server(net);
	char busy[] = "another client is being served";
	char other[] = "it speaks another version";
	const struct kt_hello *hello;
	struct kt_conn *conn;
	DAT_CR_PARAM param;

	if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &param) != DAT_SUCCESS)
		return;
	hello = param.private_data;
	if (param.private_data_size < sizeof(*hello) ||
	    le32_to_cpu(hello->magic) != KT_MAGIC ||
	    le16_to_cpu(hello->version) != KT_VERSION) {
		dat_cr_reject(cr, sizeof(other), other);
		return;
	}
	if (!hello->token && !server->client) {
		kt_say(net->s, "client %pISc\n", param.remote_ia_address_ptr);
		server->client = dat_cr_accept(cr, net->ctrl.ep, 0, NULL) ==
				 DAT_SUCCESS;
		if (!server->client)
			dat_cr_reject(cr, 0, NULL);
		return;
	}
	conn = hello->token && !(net->flags & KT_RAW) ?
		kt_greeted(net, hello, param.private_data_size) : NULL;
	if (!conn) {
		dat_cr_reject(cr, sizeof(busy), busy);
		return;
	}
	kt_conn_set(conn, KT_CONNECTING);
	if (dat_cr_accept(cr, conn->dat.ep, 0, NULL) == DAT_SUCCESS)
		return;
	dat_cr_reject(cr, 0, NULL);
	kt_conn_set(conn, KT_IDLE);
}

/* ---- What is said of a run ----------------------------------------------------------- */

static void kt_server_run(struct kt_net *net)
{
	kt_say(net->s, "run %s op=%s size=%u eps=%u over=%s ",
	       kt_kind_name(net->kind), kt_op_name(net->op), net->size,
	       net->eps, net->provider->name);
	to_server(net)->running = false;
}

/* A run has ended in order; the result is what the client says. */
static void kt_server_result(struct kt_net *net,
			     const struct kt_wire_result *result)
{
	if (!to_server(net)->running)
		return;
	kt_server_run(net);
	kt_say(net->s, "ops=%llu ns=%llu bytes=%llu n=%llu p50=%llu p99=%llu\n",
	       le64_to_cpu(result->ops), le64_to_cpu(result->ns),
	       le64_to_cpu(result->bytes), le64_to_cpu(result->n),
	       le64_to_cpu(result->p50), le64_to_cpu(result->p99));
}

/* A client has left or is dropped; say so, if it has not said what it has measured. */
static void kt_server_broken(struct kt_net *net, const char *why)
{
	if (!to_server(net)->running)
		return;
	kt_server_run(net);
	kt_say(net->s, "broken: %s\n", why);
}

/* ---- Messages of the client --------------------------------------------------------- */

static void kt_refuse(struct kt_net *net, struct kt_msg *msg, const char *why)
{
	strscpy(msg->text, why, sizeof(msg->text));
	msg->n = cpu_to_le16(strlen(why));
	kt_say(net->s, "refused: %s\n", why);
	kt_ctrl_send(net, msg, KT_MSG_REFUSED);
}

static const char *kt_over_limit(const struct kt_net *net)
{
	const struct kt_command *cmd = net->cmd;
	u32 size = net->size;

	if (net->kind == KT_TRANS)
		size /= KT_TRANS_PARTS;
	if (size > cmd->limit.size)
		return "messages that long are not allowed here";
	if (net->depth > cmd->limit.depth)
		return "so many messages at a time are not allowed here";
	if (net->eps > cmd->limit.eps)
		return "so many connections are not allowed here";
	return NULL;
}

static void kt_server_setup(struct kt_net *net, const struct kt_msg *from)
{
	struct kt_msg *msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	const char *why;

	if (!msg)
		return;
	net->setup = from->setup;
	net->token = get_random_u32() | 1;
	if (kt_net_setup(net)) {
		kt_refuse(net, msg, "what is asked for is not known here");
		goto out;
	}
	why = kt_over_limit(net);
	if (why) {
		kt_refuse(net, msg, why);
		goto out;
	}
	if (kt_net_make_conns(net)) {
		/* The next client may ask for less. */
		if (net->err != -ENODEV) {
			kt_refuse(net, msg, net->why);
			kt_forgive(net);
		}
		kt_net_free_conns(net);
		goto out;
	}
	to_server(net)->runs++;
	to_server(net)->running = true;
	msg->token = cpu_to_le32(net->token);
	msg->port = cpu_to_le32(net->raw_port);
	net->ready = !kt_ctrl_send(net, msg, KT_MSG_READY);
out:
	kfree(msg);
}

static void kt_server_msg(struct kt_net *net, const struct kt_msg *msg)
{
	struct kt_server *server = to_server(net);

	switch (msg->type) {
	case KT_MSG_SETUP:
		if (net->conns)
			server->drop = true;
		else
			kt_server_setup(net, msg);
		break;
	case KT_MSG_FINISH:
		kt_server_result(net, &msg->result);
		server->drop = true;
		break;
	case KT_MSG_QUIT:
		server->quit = net->cmd->number;
		server->drop = true;
		break;
	default:
		server->drop = true;
		break;
	}
}

/* ---- A run -------------------------------------------------------------------------- */

/* Tell the client that it may begin, and where it may write and read. */
static int kt_server_start(struct kt_net *net)
{
	struct kt_msg *msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	u32 i, n = 0;
	int err = 0;

	if (!msg)
		return -ENOMEM;
	for (i = 0; i < net->nconns && !err; i++) {
		struct kt_conn *conn = net->conns[i];

		if (net->op != KT_SEND && net->kind != KT_TRANS)
			err = net->provider->expose(conn);
		conn->target.index = cpu_to_le32(i);
		msg->target[n++] = conn->target;
		if (!err && (n == KT_TARGETS || i == net->nconns - 1)) {
			msg->n = cpu_to_le16(n);
			err = kt_ctrl_send(net, msg, KT_MSG_START);
			n = 0;
		}
	}
	kfree(msg);
	net->started = !err;
	return err ?: kt_net_poll(net);
}

/* Forget the client, and be ready for the next one. */
static int kt_server_drop(struct kt_server *server)
{
	struct kt_net *net = &server->net;

	if (server->drop)
		kt_server_broken(net, "the server has dropped the client");
	else if (net->ctrl.event == DAT_CONNECTION_EVENT_TIMED_OUT)
		kt_server_broken(net, "the client does not answer");
	else
		kt_server_broken(net, "the client has left");
	kt_say(net->s, "client gone\n");
	kt_net_free_conns(net);
	kt_ctrl_free(net);
	server->client = false;
	server->drop = false;
	return kt_ctrl_make(net);
}

/*
 * Something has gone wrong. Unless the adapter is gone, or there was no client, that costs
 * the client its connection. Return whether the server goes on.
 */
static bool kt_server_forgives(struct kt_server *server)
{
	struct kt_net *net = &server->net;

	if (!server->client || READ_ONCE(net->err) == -ENODEV)
		return false;
	if (server->running)
		kt_server_broken(net, net->why);
	else
		kt_say(net->s, "dropped: %s\n", net->why);
	/* Nothing can go wrong with its connections after that. */
	kt_net_free_conns(net);
	kt_forgive(net);
	return !kt_server_drop(server);
}

/* The condition of kt_net_run(): do what is to be done, and go on. */
static bool kt_server_step(struct kt_net *net)
{
	struct kt_server *server = to_server(net);

	if (server->client && (server->drop || net->ctrl.down))
		kt_server_drop(server);
	if (net->ready && net->kind == KT_CONNS)
		kt_conns_serve(net);
	else if (net->started && net->flags & KT_AGAIN)
		kt_trans_serve(net);
	else if (net->ready && !net->started && kt_conns_are(net, KT_UP) &&
		 kt_server_start(net))
		server->drop = true;
	return server->quit;
}

/* ---- Listening ------------------------------------------------------------------------ */

static int kt_server_listen(struct kt_server *server)
{
	struct kt_net *net = &server->net;
	struct sockaddr_storage addr = net->addr;
	DAT_COMM comm = {
		.domain = addr.ss_family,
		.type = SOCK_STREAM,
	};
	DAT_RETURN ret;

	if (addr.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&addr)->sin6_port = htons(net->port);
	else
		((struct sockaddr_in *)&addr)->sin_port = htons(net->port);
	ret = dat_csp_create(net->ia, &comm, kt_address(&addr),
			     net->evd, &server->csp);
	switch (DAT_GET_TYPE(ret)) {
	case DAT_SUCCESS:
		return 0;
	case DAT_INVALID_ADDRESS:
		return kt_fail(net, -EADDRNOTAVAIL, "%s is no address of %s",
			       net->cmd->host, net->cmd->ia);
	case DAT_PORT_IN_USE:
		return kt_fail(net, -EADDRINUSE, "port %u is in use",
			       net->port);
	default:
		return kt_fail(net, dat_errno("dat_csp_create", ret),
			       "%s cannot listen", net->cmd->ia);
	}
}

void kt_serve(struct kt_session *s, const struct kt_command *cmd)
{
	struct kt_server *server = kvzalloc(sizeof(*server), GFP_KERNEL);
	struct kt_net *net = &server->net;
	int err;

	if (!server) {
		kt_say(s, "error there is no memory\n");
		return;
	}
	net->server = true;
	net->on_msg = kt_server_msg;
	net->on_cr = kt_server_cr;
	err = kt_net_open(net, s, cmd) ?: kt_server_listen(server);
	if (!err) {
		kt_say(s, "serving %s port %u through %s\n", cmd->host,
		       cmd->port, cmd->ia);
		do {
			err = kt_net_run(net, kt_server_step, MSEC_PER_SEC);
		} while (err == -ETIMEDOUT ||
			 (kt_error(net) && kt_server_forgives(server)));
	}
	if (server->csp)
		dat_csp_free(server->csp);
	if (err && err != -EINTR)
		kt_say(s, "error %s\n", net->why);
	else
		kt_say(s, "served %u runs\n", server->runs);
	kt_net_close(net);
	kvfree(server);
}
