// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Initiators that are gone without a word. LIO pings no initiator of iSER, and a target that
 * has nothing to send notices nothing: the session of a host that has lost its power would
 * keep its buffers until the host logs in again.
 *
 * A session that was not answered for ping_seconds, with nothing posted, gets a NOP-In that
 * wants no answer: it is enough that the initiator's adapter acknowledges it. If nothing that
 * was posted completes for KI_GONE times as long, the connection is broken. The device need
 * not do so: the initiator says how often its peer tries again, and rxe takes its 7 for no
 * end.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/moduleparam.h>
#include <target/iscsi/iscsi_target_core.h>
#include "isert.h"

static unsigned int ping_seconds = 15;
module_param(ping_seconds, uint, 0644);
MODULE_PARM_DESC(ping_seconds, "a session that is silent for so long is pinged; 0: never");

/* The peer is gone if nothing that was posted completes for so many times ping_seconds */
#define KI_GONE	3

static void ki_ping_done(struct ki_conn *c, struct ki_wr *wr, bool ok)
{
	ki_tx_put(c, container_of(wr, struct ki_tx, wr));
}

/*
 * Write a NOP-In for @c to @nop. Return false if @c is not in full feature phase, or is being
 * closed: once c->closing is set, LIO may free what is read here.
 */
static bool ki_ping_build(struct ki_conn *c, struct iscsi_nopin *nop)
{
	struct iscsit_session *sess;
	bool ok;

	spin_lock_bh(&c->lock);
	ok = c->state == KI_FULL && !c->closing;
	if (ok) {
		sess = c->conn->sess;
		nop->statsn = cpu_to_be32(READ_ONCE(c->conn->stat_sn));
		nop->exp_cmdsn = cpu_to_be32(READ_ONCE(sess->exp_cmd_sn));
		nop->max_cmdsn = cpu_to_be32(atomic_read(&sess->max_cmd_sn));
	}
	spin_unlock_bh(&c->lock);
	nop->opcode = ISCSI_OP_NOOP_IN;
	nop->flags = ISCSI_FLAG_CMD_FINAL;
	nop->itt = RESERVED_ITT;
	nop->ttt = cpu_to_be32(0xffffffff);
	return ok;
}

/* Send @nop. If it cannot be posted now it is not needed: something else is posted. */
static void ki_ping_send(struct ki_conn *c, const struct iscsi_nopin *nop)
{
	struct ki_tx *tx = ki_tx_get(c, NULL);
	DAT_LMR_TRIPLET segs[2];
	KDAT_REQUEST r;

	if (!tx)
		return;
	memcpy(ki_tx_hdr(tx), nop, sizeof(*nop));
	tx->wr.done = ki_ping_done;
	ki_tx_request(tx, segs, &r);
	if (ki_post(c, 1, &r, true) == DAT_SUCCESS)
		atomic_long_inc(&c->a->stats[KI_STAT_PINGS]);
	else
		ki_tx_put(c, tx);
}

/*
 * Are completions of @c held up because LIO takes long with an event, as it may when memory is
 * short? This holds up all connections of the EVD, and says nothing about their peers. After a
 * second full of events the answer is no: earlier completions were among them.
 */
static bool ki_comp_is_held_up(struct ki_conn *c)
{
	unsigned int events = READ_ONCE(c->comp->events);

	if (mutex_is_locked(&c->comp->mutex) && events - c->last_events < KI_EVD_QLEN)
		return true;
	c->last_events = events;
	return false;
}

/* Check @c, once a second. */
static void ki_ping_tick(struct ki_conn *c, unsigned int seconds)
{
	unsigned int completed = READ_ONCE(c->completed);
	struct iscsi_nopin nop = { };

	if (!ki_ping_build(c, &nop))
		return;
	if (nop.statsn != c->last_statsn || completed != c->last_completed) {
		c->last_statsn = nop.statsn;
		c->last_completed = completed;
		c->silent = 0;
		return;
	}
	if (ki_comp_is_held_up(c))
		return;
	c->silent++;
	if (!atomic_read(&c->posted)) {
		if (c->silent >= seconds)
			ki_ping_send(c, &nop);
	} else if (c->silent >= KI_GONE * (u64)seconds) {
		ki_conn_break(c, "it takes no answers");
	}
}

/* ---- Commands that LIO has forgotten ------------------------------------------------- */

/* Seconds in turn, as LIO's thread may just have taken a command off its queue */
#define KI_LOST	3

/* Is LIO to answer @cmd, but has neither queued it nor passed it to this module? */
static bool ki_is_lost(struct iscsit_cmd *cmd)
{
	switch (cmd->i_state) {
	case ISTATE_SEND_STATUS:
	case ISTATE_SEND_NOPIN:
	case ISTATE_SEND_TEXTRSP:
	case ISTATE_SEND_LOGOUTRSP:
	case ISTATE_SEND_REJECT:
		break;
	case ISTATE_SEND_TASKMGTRSP:
		/* The task management function may still be executed. */
		if (kref_read(&cmd->se_cmd.cmd_kref) > 1)
			return false;
		break;
	default:
		return false;
	}
	return !atomic_read(&cmd->response_queue_count) && !READ_ONCE(ki_cmd(cmd)->taken);
}

/*
 * End @c if LIO has forgotten a command. If LIO has no memory to queue a command for its
 * transmitting thread it tells nobody, and the command would never be answered.
 * Context: process.
 */
static void ki_look_for_lost(struct ki_conn *c)
{
	struct iscsit_cmd *cmd;
	bool lost = false;

	spin_lock_bh(&c->lock);
	if (c->state == KI_FULL && !c->closing) {
		spin_lock(&c->conn->cmd_lock);
		list_for_each_entry(cmd, &c->conn->conn_cmd_list, i_conn_node) {
			ki_cmd(cmd)->lost = ki_is_lost(cmd) ? ki_cmd(cmd)->lost + 1 : 0;
			lost |= ki_cmd(cmd)->lost == KI_LOST;
		}
		spin_unlock(&c->conn->cmd_lock);
	}
	spin_unlock_bh(&c->lock);
	if (lost)
		ki_conn_break(c, "LIO had no memory to answer a command");
}

/*
 * Logins that wait for LIO on the adapter that looked last, and until when that counts for others:
 * portal groups have portals on several
 */
static unsigned int ki_waiting;
static unsigned long ki_crowded_until;

/* Return how many logins wait for LIO to answer a request, on some adapter. */
static unsigned int ki_logins_waiting(struct ki_adapter *a)
{
	struct ki_conn *c;
	unsigned int n = 0;

	lockdep_assert_held(&a->cm_mutex);

	list_for_each_entry(c, &a->conn_list, adapter_link)
		n += ki_login_waits(c);
	if (n) {
		WRITE_ONCE(ki_waiting, n);
		WRITE_ONCE(ki_crowded_until, jiffies + 2 * HZ);
	}
	return time_before(jiffies, READ_ONCE(ki_crowded_until)) ? READ_ONCE(ki_waiting) : 0;
}

static void ki_ping_work(struct work_struct *work)
{
	struct ki_adapter *a = container_of(to_delayed_work(work), struct ki_adapter,
					    ping_work);
	unsigned int seconds = READ_ONCE(ping_seconds);
	struct ki_conn *c;
	unsigned int waiting;

	/* ki_conn_free() takes a connection off the list before it frees the connection. */
	mutex_lock(&a->cm_mutex);
	waiting = ki_logins_waiting(a);
	list_for_each_entry(c, &a->conn_list, adapter_link) {
		ki_login_watch(c, waiting);
		if (atomic_read(&c->unanswered))
			ki_look_for_lost(c);
		if (seconds)
			ki_ping_tick(c, seconds);
	}
	mutex_unlock(&a->cm_mutex);
	queue_delayed_work(system_long_wq, &a->ping_work, HZ);
}

void ki_ping_start(struct ki_adapter *a)
{
	INIT_DELAYED_WORK(&a->ping_work, ki_ping_work);
	queue_delayed_work(system_long_wq, &a->ping_work, HZ);
}

void ki_ping_stop(struct ki_adapter *a)
{
	cancel_delayed_work_sync(&a->ping_work);
}
