// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Login: the requests arrive in receive buffers as all PDUs do (ki_login_pdu()). LIO
 * negotiates; it reads a request and writes an answer at a time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "isert.h"

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
	    hdr->hlength || len > MAX_KEY_VALUE_PAIRS ||
	    KI_HEADERS + len > buf->len) {
		ki_conn_break(c, "a login request is malformed");
		return -EPROTO;
	}
	memcpy(login->req, hdr, ISCSI_HDR_LEN);
	if (login->first_request)
		ki_login_first(login);
	if (iscsi_target_check_login_request(conn, login) < 0)
		return -EPROTO;
	memset(login->req_buf, 0, MAX_KEY_VALUE_PAIRS);
	memcpy(login->req_buf, buf->va + KI_HEADERS, len);
	return 0;
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
	return err;
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
 * iscsit_put_login_tx(). Before the answer is sent the connection is ready for what
 * the initiator may send next.
 */
int ki_put_login_tx(struct iscsit_conn *conn, struct iscsi_login *login, u32 len)
{
	struct ki_login_tx l = { .wr.done = ki_login_done };
	struct ki_conn *c = conn->context;
	struct ki_tx *tx = ki_tx_get(c, NULL);
	DAT_LMR_TRIPLET segs[2];
	KDAT_REQUEST r;
	int err;

	if (!tx)
		return -EIO;
	init_completion(&l.done);
	memcpy(ki_tx_hdr(tx), login->rsp, ISCSI_HDR_LEN);
	err = ki_tx_add_data(c, tx, login->rsp_buf, len);
	if (err)
		goto out;
	spin_lock_bh(&c->lock);
	c->login_answered = true;
	if (login->login_complete)
		c->state = KI_LOGGED_IN;
	spin_unlock_bh(&c->lock);
	r = ki_tx_request(tx, segs);
	r.user_cookie.as_ptr = &l.wr;
	if (ki_post(c, 1, &r, true) != DAT_SUCCESS) {
		err = -EIO;
		goto out;
	}
	/* A connection that ends flushes it. */
	wait_for_completion(&l.done);
	err = l.ok ? 0 : -EIO;
out:
	ki_tx_put(c, tx);
	return err;
}
