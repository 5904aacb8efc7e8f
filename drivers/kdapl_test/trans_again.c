// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transactions, see trans.c: the Endpoints of connections that have ended become ready
 * for the next ones.
 */
#include "kdapl_test.h"

/* Send an event behind those that are in the EVD of a connection. */
static int kt_trans_mark(struct kt_conn *conn)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	int err;

	/* It is counted before its upcall can run. */
	atomic_inc(&conn->trans.pending);
	err = dat_errno("dat_evd_post_se",
			dat_evd_post_se(conn->dat.evd, &event));
	if (err)
		atomic_dec(&conn->trans.pending);
	return err;
}

/*
 * Unbind the buffer of a connection that has ended, for which no upcall binds it any
 * more. Return -EBUSY until that has completed.
 */
static int kt_trans_unbound(struct kt_conn *conn)
{
	struct kt_trans *trans = &conn->trans;
	DAT_DTO_COOKIE nothing = { };
	int err;

	if (!kt_fmr_is_bound(conn))
		return 0;
	atomic_inc(&trans->pending);
	err = kt_fmr_unbind(conn, nothing);
	if (!err)
		return -EBUSY;
	atomic_dec(&trans->pending);
	return err;
}

/*
 * Let a connection that has ended come to rest. What an SRQ's receives of it hold is not
 * counted in trans->pending, and their upcalls may still run: a first mark shows that
 * those which had not seen that it ends have returned, a second one, sent when the
 * Endpoint holds no receive, that all have. Return -EBUSY until then; an upcall kicks.
 */
static int kt_trans_quiesce(struct kt_conn *conn)
{
	struct kt_trans *trans = &conn->trans;
	DAT_COUNT held = 0;
	int err;

	if (atomic_read(&trans->pending))
		return -EBUSY;
	if (conn->dat.srq && trans->marks == 0) {
		WRITE_ONCE(conn->flow.stopping, true);
		trans->marks = 1;
		return kt_trans_mark(conn) ?: -EBUSY;
	}
	if (trans->marks < 2) {
		err = kt_trans_unbound(conn);
		if (err)
			return err;
	}
	if (!conn->dat.srq || trans->marks == 2)
		return 0;
	err = dat_errno("dat_ep_reset", dat_ep_reset(conn->dat.ep)) ?:
	      dat_errno("dat_ep_recv_query",
			dat_ep_recv_query(conn->dat.ep, &held, NULL));
	if (err || held)
		return err ?: -EBUSY;
	trans->marks = 2;
	return kt_trans_mark(conn) ?: -EBUSY;
}

/*
 * Make a connection that has ended ready to be established again. Return -EBUSY if not
 * all that was posted on it has completed; the last completion kicks the session.
 * Context: the session's thread.
 */
int kt_trans_reset(struct kt_conn *conn)
{
	struct kt_trans *trans = &conn->trans;
	struct kt_flow *flow = &conn->flow;
	int err = kt_trans_quiesce(conn);

	if (err == -EBUSY)
		return err;
	if (!err) {
		trans->step = 0;
		trans->note = 0;
		trans->marks = 0;
		trans->greeted = false;
		flow->sent = 0;
		WRITE_ONCE(flow->stopping, false);
		/* The client may be refused, which flushes what has been posted. */
		WRITE_ONCE(flow->idle, !conn->net->server);
		err = conn->net->provider->reset(conn);
	}
	if (!err && !conn->dat.srq)
		err = kt_trans_prepare(conn);
	if (err)
		kt_fail(conn->net, err, "connection %u cannot be reset",
			conn->index);
	return err;
}

/* The server's part: connections that have ended wait for the next request. */
void kt_trans_serve(struct kt_net *net)
{
	u32 i;

	for (i = 0; i < net->nconns; i++)
		if (kt_conn_is(net->conns[i]) == KT_DOWN)
			kt_trans_reset(net->conns[i]);
}
