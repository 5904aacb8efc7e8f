// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Login: the requests arrive in receive buffers as all PDUs do (ki_login_pdu()). LIO
 * negotiates; it reads a request and writes an answer at a time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "isert.h"

/* A login request: LIO reads it in ki_get_login_rx(). */
void ki_login_pdu(struct ki_conn *c, struct ki_buf *buf)
{
	bool first = false, ok = false;

	spin_lock_bh(&c->lock);
	/* One at a time, each after the answer to the one before. */
	if (!c->closing && !c->login_buf && (!c->login_seen || c->login_answered)) {
		ok = true;
		first = !c->login_seen;
		c->login_seen = true;
		c->login_answered = false;
		WRITE_ONCE(c->login_buf, buf);
		if (!first)
			ki_login_continue(c);
	}
	spin_unlock_bh(&c->lock);
	if (ok) {
		wake_up_all(&c->wq);
		if (first)
			ki_conn_ready(c);
		return;
	}
	ki_buf_post(c->a, buf);
	if (!c->closing)
		ki_conn_break(c, "more login requests than answers");
}

/* Note what the first request of a connection says, as LIO wants to have it. */
static void ki_login_first(struct iscsi_login *login)
{
	struct iscsi_login_req *req = (struct iscsi_login_req *)login->req;

	login->leading_connection = !req->tsih;
	login->current_stage = ISCSI_LOGIN_CURRENT_STAGE(req->flags);
	login->version_min = req->min_version;
	login->version_max = req->max_version;
	memcpy(login->isid, req->isid, sizeof(req->isid));
	login->cmd_sn = be32_to_cpu(req->cmdsn);
	login->init_task_tag = req->itt;
	login->initial_exp_statsn = be32_to_cpu(req->exp_statsn);
	login->cid = be16_to_cpu(req->cid);
	login->tsih = be16_to_cpu(req->tsih);
}

static int ki_login_copy(struct ki_conn *c, struct ki_buf *buf,
			 struct iscsit_conn *conn, struct iscsi_login *login)
{
	struct iscsi_hdr *hdr = (void *)buf->va + sizeof(struct iser_ctrl);
	u32 len = ntoh24(hdr->dlength);

	if (buf->len < KI_HEADERS || (buf->va[0] & 0xf0) != ISCSI_CTRL ||
	    hdr->hlength || len >= MAX_KEY_VALUE_PAIRS ||
	    KI_HEADERS + len > buf->len) {
		ki_conn_break(c, "a login request is malformed");
		return -EPROTO;
	}
	memcpy(login->req, hdr, ISCSI_HDR_LEN);
	if (login->first_request)
		ki_login_first(login);
	if (iscsi_target_check_login_request(conn, login) < 0)
		return -EPROTO;
	/* LIO looks for the end of the text. */
	memset(login->req_buf, 0, MAX_KEY_VALUE_PAIRS);
	memcpy(login->req_buf, buf->va + KI_HEADERS, len);
	return 0;
}

/*
 * Refuse a connection for a session that there is already. One beside another would have
 * data come before the turn of its command, for which LIO has no memory. One that takes the
 * place of another would be in a session that LIO frees when that other one has ended, as
 * there is no error recovery. Return what LIO is to be told.
 */
static int ki_login_no_joining(struct ki_conn *c, struct iscsit_conn *conn,
			       struct iscsi_login *login)
{
	struct iscsi_login_rsp *rsp = (struct iscsi_login_rsp *)login->rsp;

	pr_warn_ratelimited("%s is not let in: a session has one connection, and lives as long as that\n",
			    c->peer);
	memset(rsp, 0, ISCSI_HDR_LEN);
	rsp->opcode = ISCSI_OP_LOGIN_RSP;
	rsp->status_class = ISCSI_STATUS_CLS_INITIATOR_ERR;
	rsp->status_detail = ISCSI_LOGIN_STATUS_CONN_ADD_FAILED;
	memcpy(rsp->isid, login->isid, sizeof(rsp->isid));
	rsp->itt = login->init_task_tag;
	ki_put_login_tx(conn, login, 0);
	return -ECONNREFUSED;
}

/* iscsit_get_login_rx(): the login timer interrupts it. */
int ki_get_login_rx(struct iscsit_conn *conn, struct iscsi_login *login)
{
	struct ki_conn *c = conn->context;
	struct ki_buf *buf;
	int err;

	err = wait_event_interruptible(c->wq, READ_ONCE(c->login_buf) ||
				       READ_ONCE(c->down));
	if (err)
		return err;
	spin_lock_bh(&c->lock);
	buf = c->login_buf;
	c->login_buf = NULL;
	spin_unlock_bh(&c->lock);
	if (!buf)
		return -ECONNRESET;
	err = ki_login_copy(c, buf, conn, login);
	ki_buf_post(c->a, buf);
	if (!err && login->first_request && login->tsih)
		err = ki_login_no_joining(c, conn, login);
	return err;
}

/*
 * Return why nobody can log in to the portal group, or NULL: LIO would let initiators
 * believe that what they send is protected all the way.
 */
static const char *ki_login_hindrance(struct iscsit_conn *conn)
{
	struct iscsi_portal_group *tpg = conn->tpg;
	const char *why = NULL;
	struct se_device *dev;
	struct se_lun *lun;

	/* LIO has no session when it refuses one by itself. */
	if (!tpg || !conn->sess || conn->sess->sess_ops->SessionType)
		return NULL;
	if (tpg->tpg_attrib.t10_pi)
		return "its portal group offers T10-PI, which kdapl_isert does not have";
	rcu_read_lock();
	hlist_for_each_entry_rcu(lun, &tpg->tpg_se_tpg.tpg_lun_hlist, link) {
		dev = rcu_dereference(lun->lun_se_dev);
		if (dev && dev->dev_attrib.pi_prot_type)
			why = "a backstore has T10-PI, which kdapl_isert does not have";
	}
	rcu_read_unlock();
	return why;
}

/* Make an answer one that the initiator takes as final. */
static void ki_login_refuse(struct ki_conn *c, struct ki_tx *tx, const char *why)
{
	struct iscsi_login_rsp *rsp = (struct iscsi_login_rsp *)ki_tx_hdr(tx);

	pr_warn_ratelimited("%s is not let in: %s\n", c->peer, why);
	rsp->flags &= ~ISCSI_FLAG_LOGIN_TRANSIT;
	rsp->status_class = ISCSI_STATUS_CLS_INITIATOR_ERR;
	rsp->status_detail = ISCSI_LOGIN_STATUS_TGT_FORBIDDEN;
	hton24(rsp->dlength, 0);
}

/* The completion of an answer that is waited for. */
struct ki_login_tx {
	struct ki_wr wr;
	struct completion done;
	bool ok;
};

static void ki_login_done(struct ki_conn *c, struct ki_wr *wr, bool ok)
{
	struct ki_login_tx *l = container_of(wr, struct ki_login_tx, wr);

	l->ok = ok;
	complete(&l->done);
}

/*
 * Have LIO read the next login request, or notice that the connection has ended, with
 * c->lock held. LIO would do so beside whoever deals with another request, and might free the
 * connection: while LIO answers ki_login_answered() does it later, and while the thread of the
 * portal has the connection ki_portal_idle().
 */
void ki_login_continue(struct ki_conn *c)
{
	lockdep_assert_held(&c->lock);
	/* ki_wait_conn() cancels it. */
	if (!c->closing && !c->answering && !c->taker)
		schedule_delayed_work(&c->conn->login_work, 0);
}

/*
 * Has LIO, which waits for the next request of a login, something to do? c->lock is held.
 * Context: any.
 */
void ki_login_look(struct ki_conn *c)
{
	lockdep_assert_held(&c->lock);
	/* Before it has answered the first one LIO waits for none. */
	if (c->negotiates && c->state == KI_LOGIN &&
	    (c->login_buf || (c->login_answered && READ_ONCE(c->down))))
		ki_login_continue(c);
}

/* An answer was sent if @err is 0; return what LIO is to be told. */
static int ki_login_answered(struct ki_conn *c, int err)
{
	spin_lock_bh(&c->lock);
	c->answering = false;
	if (!err && c->state == KI_LOGIN) {
		if (READ_ONCE(c->down))
			err = -EIO;
		else if (c->login_buf)
			ki_login_continue(c);
	}
	spin_unlock_bh(&c->lock);
	return err;
}

/*
 * iscsit_put_login_tx(). Before the answer is sent the connection is ready for what
 * the initiator may send next.
 */
int ki_put_login_tx(struct iscsit_conn *conn, struct iscsi_login *login, u32 len)
{
	struct ki_login_tx l = { .wr.done = ki_login_done };
	struct ki_conn *c = conn->context;
	struct ki_tx *tx = ki_tx_get(c, NULL);
	struct iscsi_login_rsp *rsp;
	const char *hindrance;
	DAT_LMR_TRIPLET segs[2];
	KDAT_REQUEST r;
	int err;

	if (!tx)
		return -EIO;
	init_completion(&l.done);
	memcpy(ki_tx_hdr(tx), login->rsp, ISCSI_HDR_LEN);
	hindrance = ki_login_hindrance(conn);
	if (hindrance)
		ki_login_refuse(c, tx, hindrance);
	err = ki_tx_payload(c, tx, login->rsp_buf, hindrance ? 0 : len);
	if (err)
		goto out;
	rsp = (struct iscsi_login_rsp *)ki_tx_hdr(tx);
	spin_lock_bh(&c->lock);
	/* After a refusal LIO may not even have prepared for another request. */
	c->login_answered = !rsp->status_class;
	c->negotiates |= c->login_answered;
	c->answering = true;
	if (login->login_complete && !hindrance)
		c->state = KI_LOGGED_IN;
	spin_unlock_bh(&c->lock);
	ki_tx_request(tx, segs, &r);
	r.user_cookie.as_ptr = &l.wr;
	if (ki_post(c, 1, &r, true) != DAT_SUCCESS) {
		err = -EIO;
		goto out;
	}
	/* An initiator that takes no answer must not keep the portal's thread. */
	if (wait_for_completion_interruptible_timeout(&l.done, KI_SILENCE) <= 0) {
		ki_conn_break(c, "it does not take the answer to its login");
		/* A connection that ends flushes it. */
		wait_for_completion(&l.done);
	}
	err = l.ok && !hindrance ? 0 : -EIO;
out:
	ki_tx_put(c, tx);
	return ki_login_answered(c, err);
}
