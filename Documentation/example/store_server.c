// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The server of kdapl_store. A request arrives in a receive buffer; an op carries
 * it out: RDMA Read, then reply, or RDMA Write and reply at once.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "store.h"

#define MSGS	(2 * CONNS * SLOTS)

static bool invalidate = true;
static uint refused;
module_param(invalidate, bool, 0644);	/* replies invalidate the context */
module_param(refused, uint, 0444);	/* requests that made no sense */

/* A request at work: its data is transferred, then the reply is sent. */
struct op {
	struct conn *conn;
	struct msg *reply;
	DAT_RMR_CONTEXT rmr_context;
	bool busy;		/* until the reply's completion is reaped */
};

/* A receive buffer; its request waits while all ops of the connection are busy. */
struct recv {
	struct conn *conn;
	struct msg *msg;
	struct list_head link;	/* in conn.waiting */
};

struct conn {
	DAT_EP_HANDLE ep;	/* NULL: not in use */
	bool ended;
	int posted;		/* operations whose completion was not reaped */
	struct list_head waiting;
	struct recv recvs[SLOTS];
	struct op ops[SLOTS];
};

static struct server {
	struct role role;
	struct conn conns[CONNS];
	DAT_LMR_CONTEXT store_context;
	void *store;
} server;

/* The device has let go of the buffers when every completion was reaped. */
static void conn_reaped(struct conn *conn)
{
	if (!conn->ended || conn->posted)
		return;
	dat_ep_free(conn->ep);
	conn->ep = NULL;
}

/* One more operation is posted, or the connection is given up. */
static bool conn_posted(struct conn *conn, DAT_RETURN ret)
{
	if (!ret)
		conn->posted++;
	else
		dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	return !ret;
}

static void reply(struct op *op, u32 status)
{
	DAT_RMR_CONTEXT context = READ_ONCE(invalidate) ? op->rmr_context : 0;

	op->reply->status = cpu_to_le32(status);
	conn_posted(op->conn, post_send(&server.role, op->conn->ep, op->reply,
					op, context));
}

/*
 * Transfer the data. The reply follows the RDMA Write at once, as it arrives after
 * the data; it has to wait for the completion of an RDMA Read.
 */
static void transfer(struct op *op, const struct msg *req)
{
	u32 block = le32_to_cpu(req->block), length = le32_to_cpu(req->length);
	DAT_RMR_TRIPLET remote = {
		.virtual_address = le64_to_cpu(req->address),
		.segment_length = length,
		.rmr_context = op->rmr_context,
	};
	DAT_LMR_TRIPLET local = {
		.virtual_address = (uintptr_t)server.store + block * BLOCK,
		.segment_length = length,
		.lmr_context = server.store_context,
	};
	DAT_DTO_COOKIE cookie = as_cookie(op);
	struct conn *conn = op->conn;
	DAT_RETURN ret;

	/* What a peer says is checked before it is used. */
	if (block >= BLOCKS || !length || length > BLOCK) {
		refused++;
		reply(op, EINVAL);
	} else if (req->op == cpu_to_le32(OP_STORE)) {
		ret = dat_ep_post_rdma_read(conn->ep, 1, &local, cookie,
					    &remote,
					    DAT_COMPLETION_DEFAULT_FLAG);
		conn_posted(conn, ret);
	} else if (req->op == cpu_to_le32(OP_LOAD)) {
		ret = dat_ep_post_rdma_write(conn->ep, 1, &local, cookie,
					     &remote,
					     DAT_COMPLETION_DEFAULT_FLAG);
		if (conn_posted(conn, ret))
			reply(op, 0);
	} else {
		refused++;
		reply(op, EOPNOTSUPP);
	}
}

static struct op *idle_op(struct conn *conn)
{
	struct op *op;

	for (op = conn->ops; op < conn->ops + SLOTS; op++)
		if (!op->busy)
			return op;
	return NULL;
}

/* Begin requests for as long as there are ops, and post their buffers again. */
static void serve(struct conn *conn)
{
	struct recv *recv, *next;
	struct msg req;
	struct op *op;

	list_for_each_entry_safe(recv, next, &conn->waiting, link) {
		op = idle_op(conn);
		if (!op || conn->ended)
			return;
		list_del(&recv->link);
		req = *recv->msg;
		/* Before the reply: then the client may send another request. */
		if (!conn_posted(conn, post_recv(&server.role, conn->ep,
						 recv->msg, recv)))
			return;
		op->busy = true;
		op->reply->tag = req.tag;
		op->rmr_context = le32_to_cpu(req.rmr_context);
		transfer(op, &req);
	}
}

static void server_dto(const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	bool received = dto->operation == DAT_DTO_RECEIVE ||
			dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE;
	struct recv *recv = dto->user_cookie.as_ptr;
	struct op *op = dto->user_cookie.as_ptr;
	struct conn *conn = received ? recv->conn : op->conn;

	conn->posted--;
	if (dto->status ||
	    (received && dto->transfered_length != sizeof(struct msg))) {
		dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	} else if (received) {
		list_add_tail(&recv->link, &conn->waiting);
		serve(conn);
	} else if (dto->operation == DAT_DTO_RDMA_READ) {
		reply(op, 0);
	} else if (dto->operation == DAT_DTO_SEND) {
		op->busy = false;
		serve(conn);
	}
	conn_reaped(conn);
}

static bool conn_prepare(struct conn *conn)
{
	int i;

	if (make_ep(&server.role, SLOTS, 2 * SLOTS, &conn->ep)) {
		conn->ep = NULL;
		return false;
	}
	dat_set_consumer_context(conn->ep, as_cookie(conn));
	INIT_LIST_HEAD(&conn->waiting);
	conn->ended = false;
	conn->posted = 0;
	for (i = 0; i < SLOTS; i++) {
		conn->ops[i].busy = false;
		if (!conn_posted(conn, post_recv(&server.role, conn->ep,
						 conn->recvs[i].msg,
						 &conn->recvs[i])))
			return false;
	}
	return true;
}

static void server_request(DAT_CR_HANDLE cr)
{
	struct conn *conn;

	for (conn = server.conns; conn < server.conns + CONNS; conn++)
		if (!conn->ep)
			break;
	if (conn < server.conns + CONNS) {
		if (conn_prepare(conn) &&
		    !dat_cr_accept(cr, conn->ep, 0, NULL))
			return;
		/* It was never connected, so no device has its buffers. */
		if (conn->ep)
			dat_ep_free(conn->ep);
		conn->ep = NULL;
	}
	dat_cr_reject(cr, 0, NULL);
}

static void server_event(DAT_PVOID data, const DAT_EVENT *event,
			 DAT_BOOLEAN more)
{
	const DAT_EVENT_DATA *d = &event->event_data;
	DAT_CONTEXT context;
	struct conn *conn;

	switch (event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		server_dto(&d->dto_completion_event_data);
		break;
	case DAT_CONNECTION_REQUEST_EVENT:
		server_request(d->cr_arrival_event_data.cr_handle);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		break;
	default:		/* it could not be made, or is over */
		if (dat_get_consumer_context(d->connect_event_data.ep_handle,
					     &context))
			break;
		conn = context.as_ptr;
		conn->ended = true;
		conn_reaped(conn);
	}
}

static DAT_RETURN server_start(struct role *role)
{
	struct msg *msg = role->msgs;
	struct conn *conn;
	DAT_PSP_HANDLE psp;
	int i;

	for (conn = server.conns; conn < server.conns + CONNS; conn++) {
		conn->ep = NULL;
		for (i = 0; i < SLOTS; i++) {
			conn->recvs[i].conn = conn;
			conn->recvs[i].msg = msg++;
			conn->ops[i].conn = conn;
			conn->ops[i].reply = msg++;
		}
	}
	return open_ia(role, MSGS) ?:
	       register_local(role, server.store, BLOCKS * BLOCK,
			      &server.store_context) ?:
	       dat_psp_create(role->ia, PORT, role->evd,
			      DAT_PSP_CONSUMER_FLAG, &psp);
}

void server_free(void)
{
	vfree(server.store);
	kfree(server.role.msgs);
}

struct role *server_alloc(void)
{
	server.role.start = server_start;
	server.role.on_event = server_event;
	server.role.msgs = kcalloc(MSGS, sizeof(struct msg), GFP_KERNEL);
	server.store = vzalloc(BLOCKS * BLOCK);
	return server.role.msgs && server.store ? &server.role : NULL;
}
