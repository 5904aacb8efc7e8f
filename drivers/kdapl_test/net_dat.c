// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections for load over kDAPL. They use the IA and the Service Point of the first
 * connection. An EVD of its own brings each its connection events, by upcall.
 */
#include <linux/ktime.h>
#include "kdapl_test.h"

static int kt_dat_open(struct kt_net *net)
{
	struct dat_side dat = { .ia = net->ia, .pz = net->pz };

	if (!net->server || !(net->flags & KT_SRQ))
		return 0;
	return dat_side_srq(&dat, net->eps * (net->depth + KT_SRQ_SPARE),
			    &net->srq);
}

static void kt_dat_unshare(struct kt_net *net)
{
	u32 i;

	/* Refused while a driver does not let go of a connection: it may write to any buffer. */
	if (net->srq && DAT_GET_TYPE(dat_srq_free(net->srq)) == DAT_INVALID_STATE)
		for (i = 0; i < net->nconns; i++)
			net->conns[i]->dat.kept = true;
	net->srq = NULL;
}

static void kt_dat_upcall(DAT_PVOID data, const DAT_EVENT *event,
			  DAT_BOOLEAN more)
{
	struct kt_conn *conn = data;

	kt_conn_state(conn, event->event_number ==
		      DAT_CONNECTION_EVENT_ESTABLISHED ? KT_UP : KT_DOWN);
}

static int kt_dat_make(struct kt_conn *conn)
{
	DAT_UPCALL_OBJECT upcall = { conn, kt_dat_upcall };
	struct kt_net *net = conn->net;
	struct dat_side *dat = &conn->dat;
	int err;

	dat->ia = net->ia;
	dat->pz = net->pz;
	dat->srq = net->srq;
	err = dat_errno("dat_evd_kcreate",
			dat_evd_kcreate(net->ia, 8, DAT_UPCALL_SINGLE_INSTANCE,
					&upcall, DAT_EVD_CONNECTION_FLAG,
					&dat->conn_evd));
	if (err) {
		dat->conn_evd = NULL;
		return err;
	}
	if (net->kind == KT_TRANS) {
		dat->segments = net->max_segments;
		dat->upcall = kt_trans_upcall;
	}
	err = dat_side_make(dat) ?: kt_conn_prepare(conn);
	if (!err && net->kind == KT_TRANS)
		err = net->flags & KT_FMR ? kt_fmr_make(conn) :
					    dat_side_expose(dat);
	else if (!err && net->srq)
		err = dat->side.ops->post_recv(&dat->side, KT_SRQ_SPARE / 2);
	if (!err && net->srq && net->flags & KT_MARKS)
		err = dat->side.ops->marks(&dat->side, true);
	return err;
}

static int kt_dat_connect(struct kt_conn *conn)
{
	struct kt_net *net = conn->net;
	struct kt_hello hello;
	DAT_RETURN ret;

	kt_hello(net, conn->index, &hello);
	conn->started = ktime_get_ns();
	kt_conn_set(conn, KT_CONNECTING);
	ret = dat_ep_connect(conn->dat.ep, kt_address(&net->addr),
			     net->port, 20 * USEC_PER_SEC, sizeof(hello),
			     &hello, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG);
	return dat_errno("dat_ep_connect", ret);
}

static void kt_dat_disconnect(struct kt_conn *conn)
{
	dat_ep_disconnect(conn->dat.ep, DAT_CLOSE_ABRUPT_FLAG);
}

static int kt_dat_reset(struct kt_conn *conn)
{
	int err = dat_errno("dat_ep_reset", dat_ep_reset(conn->dat.ep));

	if (!err)
		kt_conn_set(conn, KT_IDLE);
	return err;
}

static int kt_dat_expose(struct kt_conn *conn)
{
	struct dat_side *dat = &conn->dat;
	int err = dat_side_expose(dat);

	conn->target.addr = cpu_to_le64(dat->exposed.virtual_address);
	conn->target.key = cpu_to_le32(dat->exposed.rmr_context);
	return err;
}

static void kt_dat_aim(struct kt_conn *conn)
{
	conn->dat.remote = (DAT_RMR_TRIPLET) {
		.virtual_address = le64_to_cpu(conn->target.addr),
		.rmr_context = le32_to_cpu(conn->target.key),
		.segment_length = conn->dat.side.room,
	};
}

static void kt_dat_end(struct kt_conn *conn)
{
	struct dat_side *dat = &conn->dat;

	dat_side_end(dat);
	if (dat->conn_evd)
		dat_evd_free(dat->conn_evd);
	dat->conn_evd = NULL;
}

static void kt_dat_free(struct kt_conn *conn)
{
	dat_side_end(&conn->dat);
	kt_fmr_free(conn);
	dat_side_free(&conn->dat);
}

const struct kt_provider kt_dat_provider = {
	.name = "kdapl",
	.open = kt_dat_open,
	.make = kt_dat_make,
	.connect = kt_dat_connect,
	.disconnect = kt_dat_disconnect,
	.reset = kt_dat_reset,
	.expose = kt_dat_expose,
	.aim = kt_dat_aim,
	.end = kt_dat_end,
	.unshare = kt_dat_unshare,
	.free = kt_dat_free,
};
