// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Login. Requests arrive in receive buffers as all PDUs do (ki_login_pdu()). LIO negotiates:
 * it reads one request and writes one answer at a time.
 *
 * LIO's thread of a portal does so for one connection after the other, so nothing here waits
 * for a peer: an answer is posted, and ki_login_watch() ends the connection if the peer does
 * not take it, or sends no further request. A refusal is to reach the initiator although LIO
 * ends the connection at once; ki_conn_linger() leaves time for that.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/kstrtox.h>
#include <linux/slab.h>
#include <linux/stringify.h>
#include "isert.h"

/*
 * How long a peer may take in all when a few others want to log in, and at the least when many
 * do: LIO lets in one at a time
 */
#define KI_HURRY	(5 * HZ)
#define KI_HURRY_FEW	4
#define KI_HURRY_MIN	(2 * HZ)

/* Keep a login request for LIO, which reads it in ki_get_login_rx(). */
void ki_login_pdu(struct ki_conn *c, KDAT_POOL_BUF *buf)
{
	bool first = false, ok = false;

	spin_lock_bh(&c->lock);
	/* Requests come one at a time, each after the answer to the one before. */
	if (!c->closing && !c->login_buf && (!c->login_seen || c->login_answered)) {
		ok = true;
		first = !c->login_seen;
		if (!first)
			c->spent += jiffies - c->turn;
		c->login_seen = true;
		c->login_answered = false;
		c->turn = jiffies;
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
	kdat_pool_put(c->a->base.pool, buf);
	if (!c->closing)
		ki_conn_break(c, "more login requests than answers");
}

/* Note what the first request of a connection says, in the form that LIO wants. */
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

/*
 * struct ki_limit - a key of which kdapl_isert takes less than LIO
 * @max: the highest number
 * @only: the only value, for a key that is no number
 */
struct ki_limit {
	const char *key;
	unsigned int max;
	const char *only;
};

static const struct ki_limit ki_limits[] = {
	/* Buffers have room for that. */
	{ "TargetRecvDataSegmentLength=", .max = KI_DATA_LEN },
	{ "MaxConnections=", .max = 1 },
	{ "ErrorRecoveryLevel=", .max = 0 },
	/* RFC 7145: none with iSER. */
	{ "HeaderDigest=", .only = "None" },
	{ "DataDigest=", .only = "None" },
};

/*
 * Write to @text what is taken in the place of @value. Return whether that differs. LIO reads a
 * number as far as it is one, and its low 32 bits, and has what its portal group has for
 * "Irrelevant": what is not wholly a number counts as more.
 */
static bool ki_login_limit(const struct ki_limit *limit, const char *value, char text[12])
{
	unsigned int offer;

	if (limit->only)
		return strscpy(text, limit->only, 12) > 0 && strcmp(text, value);
	snprintf(text, 12, "%u", limit->max);
	return kstrtouint(value, 0, &offer) || offer > limit->max;
}

/*
 * Limit the offers in the @len bytes of @text, as ki_limits says. LIO agrees to more, or to
 * what its portal group has, and so answers the limited offers. Return the new length of @text.
 */
static u32 ki_login_offer(char *text, u32 len)
{
	char *at, *value, *end = text + len, less[12];
	const struct ki_limit *limit;
	size_t old, new;

	for (at = text; at < end; at += strlen(at) + 1) {
		for (limit = ki_limits; limit < ki_limits + ARRAY_SIZE(ki_limits); limit++) {
			value = at + strlen(limit->key);
			if (strncmp(at, limit->key, value - at) ||
			    !ki_login_limit(limit, value, less))
				continue;
			old = strlen(value);
			new = strlen(less);
			if (new > old)
				continue;
			memcpy(value, less, new);
			memmove(value + new, value + old, end - value - old);
			memset(end - (old - new), 0, old - new);
			end -= old - new;
		}
	}
	return end - text;
}

static int ki_login_copy(struct ki_conn *c, KDAT_POOL_BUF *buf,
			 struct iscsit_conn *conn, struct iscsi_login *login)
{
	struct iscsi_hdr *hdr = (void *)buf->va + sizeof(struct iser_ctrl);
	u32 len = ntoh24(hdr->dlength);

	if ((*(u8 *)buf->va & 0xf0) != ISCSI_CTRL || hdr->hlength ||
	    len >= MAX_KEY_VALUE_PAIRS || KI_HEADERS + len > buf->length) {
		ki_conn_break(c, "a login request is malformed");
		return -EPROTO;
	}
	memcpy(login->req, hdr, ISCSI_HDR_LEN);
	if (login->first_request)
		ki_login_first(login);
	if (iscsi_target_check_login_request(conn, login) < 0)
		return -EPROTO;
	/* LIO relies on a terminating zero byte. */
	memset(login->req_buf, 0, MAX_KEY_VALUE_PAIRS);
	memcpy(login->req_buf, buf->va + KI_HEADERS, len);
	len = ki_login_offer(login->req_buf, len);
	hton24(((struct iscsi_hdr *)login->req)->dlength, len);
	return 0;
}

/*
 * Refuse a connection for an existing session, and return the errno for LIO. With two
 * connections, data could come before the turn of its command, and LIO has no memory for it
 * then. A connection that replaces another one would be in a session that LIO frees when the
 * other one has ended, as there is no error recovery.
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

/* iscsit_get_login_rx(): read a login request; the login timer interrupts the wait for it. */
int ki_get_login_rx(struct iscsit_conn *conn, struct iscsi_login *login)
{
	struct ki_conn *c = conn->context;
	KDAT_POOL_BUF *buf;
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
	kdat_pool_put(c->a->base.pool, buf);
	if (!err && login->first_request && login->tsih)
		err = ki_login_no_joining(c, conn, login);
	return err;
}

/*
 * Return why nobody can log in to the portal group, or NULL. With T10-PI, LIO would let
 * initiators believe that what they send is protected all the way.
 */
static const char *ki_login_hindrance(struct iscsit_conn *conn)
{
	struct iscsi_portal_group *tpg = conn->tpg;
	const char *why = NULL;
	struct se_device *dev;
	struct se_lun *lun;

	/* LIO has no session when it refuses a login by itself. */
	if (!tpg || !conn->sess || conn->sess->sess_ops->SessionType)
		return NULL;
	if (tpg->tpg_attrib.t10_pi)
		return "its portal group offers T10-PI, which kdapl_isert does not have";
	rcu_read_lock();
	/* LIO publishes LUNs and their devices. litmus: handle */
	hlist_for_each_entry_rcu(lun, &tpg->tpg_se_tpg.tpg_lun_hlist, link) {
		dev = rcu_dereference(lun->lun_se_dev);
		if (dev && dev->dev_attrib.pi_prot_type)
			why = "a backstore has T10-PI, which kdapl_isert does not have";
	}
	rcu_read_unlock();
	return why;
}

/* Turn an answer into a refusal that the initiator takes as final. */
static void ki_login_refuse(struct ki_conn *c, struct ki_tx *tx, const char *why)
{
	struct iscsi_login_rsp *rsp = (struct iscsi_login_rsp *)ki_tx_hdr(tx);

	pr_warn_ratelimited("%s is not let in: %s\n", c->peer, why);
	rsp->flags &= ~ISCSI_FLAG_LOGIN_TRANSIT;
	rsp->status_class = ISCSI_STATUS_CLS_INITIATOR_ERR;
	rsp->status_detail = ISCSI_LOGIN_STATUS_TGT_FORBIDDEN;
	hton24(rsp->dlength, 0);
}

/*
 * Have LIO read the next login request, or notice that the connection has ended. c->lock is
 * held. LIO does so in conn->login_work, which may free the connection, so it must not run
 * beside another user of the connection. While LIO answers, ki_login_answered() calls this
 * function later; while the thread of the portal has the connection, ki_portal_idle() does.
 */
void ki_login_continue(struct ki_conn *c)
{
	lockdep_assert_held(&c->lock);
	/* ki_wait_conn() sets ->closing, then cancels the work. */
	if (!c->closing && !c->answering && !c->taker)
		schedule_delayed_work(&c->conn->login_work, 0);
}

/*
 * Have LIO continue if it waits for the next request of a login and there is one, or the
 * connection is down. c->lock is held. Context: any.
 */
void ki_login_look(struct ki_conn *c)
{
	lockdep_assert_held(&c->lock);
	/* LIO waits for no request before it has answered the first one. */
	if (c->negotiates && c->state == KI_LOGIN &&
	    (c->login_buf || (c->login_answered && READ_ONCE(c->down))))
		ki_login_continue(c);
}

/* Finish an answer, which was posted if @err is 0; return the errno for LIO. */
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

/* Complete an answer: the peer has taken it, or the connection has ended. */
static void ki_login_sent(struct ki_conn *c, struct ki_wr *wr, bool ok)
{
	ki_tx_put(c, container_of(wr, struct ki_tx, wr));
	spin_lock_bh(&c->lock);
	c->sending--;
	c->spent += jiffies - c->turn;
	c->turn = jiffies;
	if (c->lingers)
		ki_linger_now(c);
	spin_unlock_bh(&c->lock);
}

/* Post the answer @tx. Return 0, or an errno if nothing was posted. */
static int ki_login_post(struct ki_conn *c, struct ki_tx *tx)
{
	DAT_LMR_TRIPLET segs[2];
	KDAT_REQUEST r;

	tx->wr.done = ki_login_sent;
	ki_tx_request(tx, segs, &r);
	return ki_post(c, 1, &r, true) == DAT_SUCCESS ? 0 : -EIO;
}

/*
 * iscsit_put_login_tx(): post an answer. Before that the connection is made ready for what the
 * initiator may send next.
 */
int ki_put_login_tx(struct iscsit_conn *conn, struct iscsi_login *login, u32 len)
{
	struct ki_conn *c = conn->context;
	struct ki_tx *tx = ki_tx_get(c, NULL);
	struct iscsi_login_rsp *rsp;
	const char *hindrance;
	int err = 0;

	if (!tx)
		return -EIO;
	rsp = (struct iscsi_login_rsp *)ki_tx_hdr(tx);
	memcpy(rsp, login->rsp, ISCSI_HDR_LEN);
	hindrance = ki_login_hindrance(conn);
	if (hindrance) {
		ki_login_refuse(c, tx, hindrance);
		len = 0;
	}
	/* LIO uses its memory again for the next answer. */
	if (len) {
		tx->text = kmemdup(login->rsp_buf, len, GFP_KERNEL);
		err = tx->text ? ki_tx_payload(c, tx, tx->text, len) : -ENOMEM;
	}
	if (err) {
		ki_conn_break(c, "there is no memory for the answer to its login");
		ki_tx_put(c, tx);
		return -EIO;
	}
	spin_lock_bh(&c->lock);
	/* After a refusal LIO may not have prepared for another request. */
	c->login_answered = !rsp->status_class;
	c->negotiates |= c->login_answered;
	c->refused = !c->login_answered;
	c->answering = true;
	c->sending++;
	c->turn = jiffies;
	if (login->login_complete && !hindrance)
		c->state = KI_LOGGED_IN;
	spin_unlock_bh(&c->lock);
	err = ki_login_post(c, tx);
	if (err) {
		ki_conn_break(c, "the answer to its login cannot be posted");
		ki_login_sent(c, &tx->wr, false);
	}
	return ki_login_answered(c, hindrance ? -EIO : err);
}

/*
 * Has a login request of @c waited for LIO for a second? LIO needs much less for one. The
 * request may wait for the thread of the portal, or inside of LIO: after the thread has read
 * it, while another initiator logs in to the portal group. Context: process.
 */
bool ki_login_waits(struct ki_conn *c)
{
	bool waits;

	spin_lock_bh(&c->lock);
	waits = c->state == KI_LOGIN && c->login_seen && !c->login_answered && !c->refused &&
		!c->closing && !READ_ONCE(c->down) && time_after(jiffies, c->turn + HZ);
	spin_unlock_bh(&c->lock);
	return waits;
}

/*
 * Check the login of @c, once a second: end @c if LIO has waited for the peer for too long.
 * @waiting: how many others wait for LIO. Context: process.
 */
void ki_login_watch(struct ki_conn *c, unsigned int waiting)
{
	unsigned long most = waiting ? clamp(KI_HURRY * KI_HURRY_FEW / waiting,
					     KI_HURRY_MIN, KI_HURRY) : KI_SILENCE;
	const char *why = NULL;

	spin_lock_bh(&c->lock);
	if (c->sending)
		why = "it does not take the answer to its login";
	else if (c->state == KI_LOGIN && c->login_answered && !c->login_buf)
		why = "it does not go on with its login";
	if (c->spent + (jiffies - c->turn) <= most)
		why = NULL;
	spin_unlock_bh(&c->lock);
	if (why)
		ki_conn_break(c, why);
}
