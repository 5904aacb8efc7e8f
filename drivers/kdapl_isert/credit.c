// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The window of commands that a session may send, and the end of an initiator that does not
 * keep to it.
 *
 * LIO's window is MaxCmdSN. Each answer raises it by one, so as many commands are outstanding
 * as the window was at login. MaxCmdSN must not become lower on the wire, so a window is
 * narrowed by answers that do not raise it, and widened by answers that raise it by two:
 * ki_credit_answer().
 *
 * The Endpoint's soft watermark says that more than half of what a session may send lies
 * unread: the window is halved until the messages have been handled. Beyond the hard
 * watermark, which no initiator reaches that keeps to the window, kDAPL breaks the connection.
 * LIO ignores commands beyond MaxCmdSN, as RFC 7143 has it; an initiator that goes on sending
 * them is disconnected as well.
 *
 * On iWARP an empty SRQ ends the connection of the next sender. Each connection therefore
 * reserves a buffer for everything that it may send, and its window is what it could reserve.
 * LIO lets one command be sent before the first answer, so the buffers can be reserved until
 * the first answer is built. Elsewhere a sender waits for buffers, and nothing is reserved.
 *
 * c->lock protects the window; answers look at it only while it is narrowed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "isert.h"
#include "trace.h"

/* PDUs beside commands: immediate ones, NOP-Out, task management, logout */
#define KI_MISC		8
/* Answers between two checks of how many messages lie unread */
#define KI_LOOK		8
/* Most commands that a session may have outstanding, so that each finds a free answer */
#define KI_MOST		(KI_TXS - KI_MISC)
/* Least number of PDUs that a connection may send */
#define KI_LEAST	(1 + KI_MISC)

/* Return how many PDUs one command may consist of before the target asks for data. */
static unsigned int ki_pdus_per_command(struct iscsit_conn *conn)
{
	struct iscsi_sess_ops *ops = conn->sess->sess_ops;
	u32 len = conn->conn_ops->TargetRecvDataSegmentLength ?: 512;

	if (ops->InitialR2T)
		return 1;
	return 1 + DIV_ROUND_UP(ops->FirstBurstLength, max_t(u32, len, 512));
}

/* Reserve the least for a connection request. Return false if there is no room. */
bool ki_credit_request(struct ki_conn *c)
{
	c->reserved = c->a->base.iwarp ? KI_LEAST : 0;
	c->joined = ki_srq_join(c->a, c->reserved);
	if (!c->joined)
		pr_warn_ratelimited("%s: %s is refused: all receive buffers are promised to other sessions\n",
				    c->a->base.name, c->peer);
	return c->joined;
}

/* Give back the buffers that a connection, which is being freed, has reserved. */
void ki_credit_end(struct ki_conn *c)
{
	if (c->joined)
		ki_srq_leave(c->a, c->reserved);
}

static void ki_credit_marks(struct ki_conn *c)
{
	dat_ep_set_watermark(c->ep, c->hard / 2, c->hard);
}

/* Reserve buffers on iWARP; return the window for which they are enough. */
static unsigned int ki_credit_reserve(struct ki_conn *c, unsigned int depth,
				      unsigned int each)
{
	/* Each connection of a session needs the whole window of the session. */
	bool all = atomic_read(&c->conn->sess->nconn) > 1;
	unsigned int most = depth * each + KI_MISC - c->reserved;

	c->reserved += kdat_pool_reserve(c->a->base.pool, most, all ? most : 1);
	return (c->reserved - KI_MISC) / each;
}

/*
 * Return the window for which half of the longest SRQ is enough: beyond that the hard
 * watermark would have no effect, and one initiator could have all buffers. A single command
 * may take more than half, but not more than all.
 */
static unsigned int ki_credit_share(struct ki_conn *c, unsigned int depth, unsigned int each)
{
	unsigned int limit = kdat_pool_most(c->a->base.pool);

	if (each + KI_MISC <= limit / 2)
		return min(depth, (limit / 2 - KI_MISC) / each);
	return each + KI_MISC <= limit;
}

/**
 * ki_credit_begin() - set the window of a connection that has logged in
 * @c: the connection; no command was answered
 *
 * Context: process
 * Return: 0, or -ENOBUFS if the connection has to end
 */
int ki_credit_begin(struct ki_conn *c)
{
	struct iscsit_session *sess = c->conn->sess;
	unsigned int each = ki_pdus_per_command(c->conn);
	unsigned int depth = max_t(unsigned int, sess->cmdsn_window, 1);
	unsigned int window = min_t(unsigned int, depth, KI_MOST);

	window = c->a->base.iwarp ? ki_credit_reserve(c, window, each) :
			       ki_credit_share(c, window, each);
	if (!window || (window < depth && atomic_read(&sess->nconn) > 1))
		return -ENOBUFS;
	if (window < depth) {
		pr_info_ratelimited("%s: %s may send %u commands at once, not %u\n",
				    c->a->base.name, c->peer, window, depth);
		atomic_sub(depth - window, &sess->max_cmd_sn);
	}
	c->window = window;
	c->hard = window * each + KI_MISC;
	/* The initiator may have got half of the answers before their completions come. */
	c->most = 2 * (window + KI_MISC);
	trace_kdapl_isert_window(c);
	ki_credit_marks(c);
	return 0;
}

/* Narrow the window, as the soft watermark was crossed. Context: process. */
void ki_credit_soft(struct ki_conn *c)
{
	atomic_long_inc(&c->a->stats[KI_STAT_SOFT]);
	spin_lock_bh(&c->lock);
	c->look = KI_LOOK;
	WRITE_ONCE(c->throttled, true);
	trace_kdapl_isert_window(c);
	spin_unlock_bh(&c->lock);
}

/* Have the messages been handled, so that the window may become wide again? */
static bool ki_credit_is_calm(struct ki_conn *c)
{
	DAT_COUNT held = 0;

	if (--c->look)
		return false;
	c->look = KI_LOOK;
	dat_ep_recv_query(c->ep, &held, NULL);
	return held <= c->hard / 8;
}

/* Do as ki_credit_answer() says, for a window that is narrowed, or to be. */
void ki_credit_change(struct ki_conn *c, struct iscsit_cmd *cmd)
{
	bool calm = false;

	if (cmd->immediate_cmd || cmd->maxcmdsn_inc)
		return;
	spin_lock_bh(&c->lock);
	if (c->throttled) {
		calm = ki_credit_is_calm(c);
		if (calm)
			WRITE_ONCE(c->throttled, false);
		if (c->withheld < c->window / 2) {
			/* LIO takes MaxCmdSN as raised for this command. */
			cmd->maxcmdsn_inc = 1;
			WRITE_ONCE(c->withheld, c->withheld + 1);
		}
	} else if (c->withheld) {
		WRITE_ONCE(c->withheld, c->withheld - 1);
		atomic_inc(&c->conn->sess->max_cmd_sn);
	}
	spin_unlock_bh(&c->lock);
	if (calm)
		ki_credit_marks(c);
}

/*
 * Check a command; return false if its initiator has sent too many beyond MaxCmdSN.
 * Context: process.
 */
bool ki_credit_may(struct ki_conn *c, const struct iscsi_hdr *hdr)
{
	const struct iscsi_scsi_req *req = (const struct iscsi_scsi_req *)hdr;
	u32 max = atomic_read(&c->conn->sess->max_cmd_sn);

	if (likely(hdr->opcode & ISCSI_OP_IMMEDIATE ||
		   !iscsi_sna_gt(be32_to_cpu(req->cmdsn), max)))
		return true;
	WRITE_ONCE(c->beyond, c->beyond + 1);
	if (c->beyond <= KI_MISC)
		return true;
	atomic_long_inc(&c->a->stats[KI_STAT_HARD]);
	return false;
}

/*
 * Log that the connection has ended because its initiator has sent too much, if so.
 * Context: process.
 */
void ki_credit_judge(struct ki_conn *c)
{
	DAT_BOOLEAN fired = DAT_FALSE;

	kdat_ep_query_hard_hw(c->ep, &fired);
	if (c->logout_sent || READ_ONCE(c->broken) || !(fired || READ_ONCE(c->beyond)))
		return;
	atomic_long_inc(&c->a->stats[KI_STAT_HARD]);
	ki_conn_warn(c, "it has sent more than MaxCmdSN allows");
}
