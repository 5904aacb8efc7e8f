// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections for load over raw verbs, the plainest use of rdma_cm. The scout is an id
 * that is bound to the address of a server, or has found the way to it; it comes first
 * and goes last, and rdma_cm lets no device go that has one. Handlers do each step of
 * connecting.
 */
#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "kdapl_test.h"

#define KT_STEP_MS	5000

static const struct rdma_conn_param kt_raw_param = {
	.responder_resources = 4,
	.initiator_depth = 4,
	.retry_count = 7,
	.rnr_retry_count = 7,
};

static void kt_set_port(struct sockaddr_storage *addr, u16 port)
{
	if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)addr)->sin_port = htons(port);
}

/* ---- Established or ended ------------------------------------------------------------ */

/* The events of a connection of either side. */
static void kt_raw_change(struct kt_conn *conn, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		kt_conn_state(conn, KT_UP);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		kt_fail(conn->net, -ENODEV, "the adapter is gone");
		break;
	default:
		kt_conn_state(conn, KT_DOWN);
		break;
	}
}

/* Make the queue pair of an id, and post what it is to receive. */
static int kt_raw_make_qp(struct kt_conn *conn)
{
	return raw_side_make_qp(&conn->raw, conn->raw.side.depth) ?:
	       kt_conn_prepare(conn);
}

/* ---- The active side ----------------------------------------------------------------- */

static int kt_raw_dial(struct kt_conn *conn)
{
	struct rdma_conn_param param = kt_raw_param;
	struct kt_hello hello;

	kt_hello(conn->net, conn->index, &hello);
	param.private_data = &hello;
	param.private_data_len = sizeof(hello);
	return kt_raw_make_qp(conn) ?: rdma_connect_locked(conn->raw.id, &param);
}

static int kt_raw_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kt_conn *conn = id->context;
	int err = 0;

	if (conn->raw_closing)
		return 0;
	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED)
		err = rdma_resolve_route(id, KT_STEP_MS);
	else if (event->event == RDMA_CM_EVENT_ROUTE_RESOLVED)
		err = kt_raw_dial(conn);
	else
		kt_raw_change(conn, event);
	if (err)
		kt_conn_state(conn, KT_DOWN);
	return 0;
}

static int kt_raw_connect(struct kt_conn *conn)
{
	struct sockaddr_storage addr = conn->net->addr;
	struct rdma_cm_id *id;

	kt_set_port(&addr, conn->net->raw_port);
	conn->started = ktime_get_ns();
	id = rdma_create_id(&init_net, kt_raw_event, conn, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	conn->raw.id = id;
	kt_conn_set(conn, KT_CONNECTING);
	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, KT_STEP_MS);
}

/* ---- The passive side ---------------------------------------------------------------- */

static int kt_raw_passive_event(struct rdma_cm_id *id,
				struct rdma_cm_event *event)
{
	kt_raw_change(id->context, event);
	return 0;
}

static int kt_raw_request(struct kt_net *net, struct rdma_cm_id *id,
			  struct rdma_cm_event *event)
{
	struct rdma_conn_param param = kt_raw_param;
	struct kt_conn *conn;
	int err;

	conn = kt_greeted(net, event->param.conn.private_data,
			  event->param.conn.private_data_len);
	if (!conn || id->device != net->raw.scout->device)
		return -EACCES;
	kt_conn_set(conn, KT_CONNECTING);
	conn->raw.id = id;
	id->context = conn;
	id->event_handler = kt_raw_passive_event;
	err = kt_raw_make_qp(conn) ?: rdma_accept(id, &param);
	if (!err)
		return 0;
	/* An errno makes rdma_cm destroy the id. */
	if (conn->raw.qp)
		rdma_destroy_qp(id);
	conn->raw.qp = NULL;
	conn->raw.id = NULL;
	kt_conn_state(conn, KT_IDLE);
	return err;
}

static int kt_raw_listener(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	/* Of a request the id is a new one, whose context is the listener's. */
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return kt_raw_request(id->context, id, event);
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		kt_fail(id->context, -ENODEV, "the adapter is gone");
	return 0;
}

static struct rdma_cm_id *kt_raw_bind(struct kt_net *net)
{
	struct sockaddr_storage addr = net->addr;
	struct rdma_cm_id *id;
	int err;

	kt_set_port(&addr, 0);
	id = rdma_create_id(&init_net, kt_raw_listener, net, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	err = rdma_bind_addr(id, (struct sockaddr *)&addr);
	if (!err && !id->device)
		err = -ENODEV;
	if (!err)
		return id;
	rdma_destroy_id(id);
	return ERR_PTR(err);
}

/* Bind an id that keeps the device, and listen with another one. */
static int kt_raw_listen(struct kt_net *net)
{
	struct rdma_cm_id *id = kt_raw_bind(net);
	const struct sockaddr_storage *addr;

	if (IS_ERR(id))
		return PTR_ERR(id);
	net->raw.scout = id;
	id = kt_raw_bind(net);
	if (IS_ERR(id))
		return PTR_ERR(id);
	net->raw.listener = id;
	addr = &id->route.addr.src_addr;
	net->raw_port = be16_to_cpu(addr->ss_family == AF_INET6 ?
		((const struct sockaddr_in6 *)addr)->sin6_port :
		((const struct sockaddr_in *)addr)->sin_port);
	return rdma_listen(id, 128);
}

/* No request comes any more. */
static void kt_raw_deafen(struct kt_net *net)
{
	if (net->raw.listener)
		rdma_destroy_id(net->raw.listener);
	net->raw.listener = NULL;
}

/* ---- What all connections share ------------------------------------------------------ */

/* A scout that resolves the address of the server. */
struct kt_scout {
	struct kt_net *net;
	struct completion done;
	int err;
};

static int kt_raw_scouted(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kt_scout *scout = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		complete(&scout->done);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		scout->err = event->status ?: -EHOSTUNREACH;
		complete(&scout->done);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		kt_fail(scout->net, -ENODEV, "the adapter is gone");
		break;
	default:
		break;
	}
	return 0;
}

static int kt_raw_scout(struct kt_net *net)
{
	struct kt_scout *scout = kzalloc(sizeof(*scout), GFP_KERNEL);
	struct rdma_cm_id *id;
	int err;

	if (!scout)
		return -ENOMEM;
	scout->net = net;
	init_completion(&scout->done);
	id = rdma_create_id(&init_net, kt_raw_scouted, scout, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id)) {
		kfree(scout);
		return PTR_ERR(id);
	}
	net->raw.scout = id;
	err = rdma_resolve_addr(id, NULL, (struct sockaddr *)&net->addr,
				KT_STEP_MS);
	if (err)
		return err;
	/* rdma_cm reports an error within KT_STEP_MS. */
	wait_for_completion(&scout->done);
	return scout->err;
}

static int kt_raw_open(struct kt_net *net)
{
	struct raw_side raw = { };
	struct ib_device *dev;
	struct ib_pd *pd;
	size_t len;
	int err;

	err = net->server ? kt_raw_listen(net) : kt_raw_scout(net);
	if (err)
		return err;
	dev = net->raw.scout->device;
	len = strcspn(net->cmd->ia, "/");
	if (strlen(dev_name(&dev->dev)) != len ||
	    strncmp(dev_name(&dev->dev), net->cmd->ia, len))
		return kt_fail(net, -EHOSTUNREACH,
			       "without kDAPL the way to %s is through %s, not %s",
			       net->cmd->host, dev_name(&dev->dev),
			       net->cmd->ia);
	pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	net->raw.pd = pd;
	if (!net->server || !(net->flags & KT_SRQ))
		return 0;
	raw.pd = pd;
	net->raw.srq = raw_side_srq(&raw, net->eps *
				    (net->depth + KT_SRQ_SPARE));
	if (!IS_ERR(net->raw.srq))
		return 0;
	err = PTR_ERR(net->raw.srq);
	net->raw.srq = NULL;
	return err;
}

static void kt_raw_unshare(struct kt_net *net)
{
	if (net->raw.srq)
		ib_destroy_srq(net->raw.srq);
	net->raw.srq = NULL;
}

static void kt_raw_close(struct kt_net *net)
{
	struct rdma_cm_id *scout = net->raw.scout;
	void *priv = scout && !net->server ? scout->context : NULL;

	if (net->raw.pd)
		ib_dealloc_pd(net->raw.pd);
	if (scout)
		rdma_destroy_id(scout);
	kfree(priv);
	memset(&net->raw, 0, sizeof(net->raw));
}

/* ---- A connection -------------------------------------------------------------------- */

static int kt_raw_make(struct kt_conn *conn)
{
	struct kt_net *net = conn->net;

	conn->raw.dev = net->raw.scout->device;
	conn->raw.pd = net->raw.pd;
	conn->raw.srq = net->raw.srq;
	return raw_side_make(&conn->raw);
}

static void kt_raw_disconnect(struct kt_conn *conn)
{
	if (conn->raw.id)
		rdma_disconnect(conn->raw.id);
}

static int kt_raw_reset(struct kt_conn *conn)
{
	raw_side_end(&conn->raw);
	kt_conn_set(conn, KT_IDLE);
	return 0;
}

static int kt_raw_expose(struct kt_conn *conn)
{
	struct raw_side *raw = &conn->raw;
	unsigned long end = jiffies + msecs_to_jiffies(KT_STEP_MS);
	int err = raw_side_expose(raw);

	if (err)
		return err;
	while (!wait_for_completion_timeout(&raw->exposed, 1)) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		if (!raw->side.upcall)
			ib_process_cq_direct(raw->cq, 1);
	}
	conn->target.addr = cpu_to_le64(raw->mr->iova);
	conn->target.key = cpu_to_le32(raw->mr->rkey);
	return raw->expose_err;
}

static void kt_raw_aim(struct kt_conn *conn)
{
	conn->raw.remote_addr = le64_to_cpu(conn->target.addr);
	conn->raw.rkey = le32_to_cpu(conn->target.key);
}

static void kt_raw_end(struct kt_conn *conn)
{
	/* Its handler may just be making the queue pair. */
	if (conn->raw.id) {
		rdma_lock_handler(conn->raw.id);
		conn->raw_closing = true;
		rdma_unlock_handler(conn->raw.id);
	}
	kt_raw_disconnect(conn);
	raw_side_end(&conn->raw);
}

static void kt_raw_free(struct kt_conn *conn)
{
	raw_side_free(&conn->raw);
}

const struct kt_provider kt_raw_provider = {
	.name = "verbs",
	.open = kt_raw_open,
	.deafen = kt_raw_deafen,
	.close = kt_raw_close,
	.make = kt_raw_make,
	.connect = kt_raw_connect,
	.disconnect = kt_raw_disconnect,
	.reset = kt_raw_reset,
	.expose = kt_raw_expose,
	.aim = kt_raw_aim,
	.end = kt_raw_end,
	.unshare = kt_raw_unshare,
	.free = kt_raw_free,
};
