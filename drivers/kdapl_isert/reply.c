// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Answers. Each takes one struct ki_tx of its connection until the Send has completed; then
 * the command that it answers is freed.
 *
 * LIO asks for answers to SCSI commands when the backend completes them (ki_queue_data_in(),
 * ki_queue_status()), and for all other answers in the connection's transmitting thread. These
 * two functions never fail, since LIO would call them again without a pause: a command waits
 * until there is an answer for it (queue.c).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/slab.h>
#include "isert.h"
#include "trace.h"

static void ki_tx_done(struct ki_conn *c, struct ki_wr *wr, bool ok);

/* Take an answer for @cmd; return NULL if all are in use. */
struct ki_tx *ki_tx_get(struct ki_conn *c, struct iscsit_cmd *cmd)
{
	struct ki_tx *tx;

	spin_lock_bh(&c->lock);
	tx = c->txs;
	if (tx)
		c->txs = tx->next;
	spin_unlock_bh(&c->lock);
	if (!tx)
		return NULL;
	memset(tx->va, 0, KI_HEADERS);
	((struct iser_ctrl *)tx->va)->flags = ISCSI_CTRL;
	tx->seg.segment_length = KI_HEADERS;
	tx->data.segment_length = 0;
	tx->cmd = cmd;
	tx->wr.done = ki_tx_done;
	return tx;
}

void ki_tx_put(struct ki_conn *c, struct ki_tx *tx)
{
	/* A text that the device may still read is lost; that would be a defect of ours. */
	if (tx->data.segment_length &&
	    DAT_GET_TYPE(kdat_sg_unmap(tx->map)) == DAT_INVALID_STATE)
		pr_err("%s: an answer is still being sent: its text is lost\n", c->a->base.name);
	else
		kfree(tx->text);
	tx->text = NULL;
	spin_lock_bh(&c->lock);
	tx->next = c->txs;
	c->txs = tx;
	spin_unlock_bh(&c->lock);
	ki_wake_room(c);
}

/*
 * Append @len bytes at @data, and padding for which there is room, to the headers. Data that
 * is too long for the answer's own memory is sent from @data, which must stay until the answer
 * was sent. Return 0 or -ENOMEM.
 */
int ki_tx_payload(struct ki_conn *c, struct ki_tx *tx, void *data, u32 len)
{
	u8 *copy = tx->va + KI_HEADERS;
	DAT_RETURN ret;
	DAT_COUNT n;

	if (!len)
		return 0;
	if (ALIGN(len, 4) <= KI_TX_DATA) {
		memset(copy, 0, ALIGN(len, 4));
		memcpy(copy, data, len);
		tx->seg.segment_length += ALIGN(len, 4);
		return 0;
	}
	sg_init_one(&tx->sg, data, ALIGN(len, 4));
	ret = kdat_sg_map(c->a->base.ia, c->a->base.pz, &tx->sg, 1, DMA_TO_DEVICE, 1, &tx->data,
			  &n, &tx->map);
	if (ret == DAT_SUCCESS)
		return 0;
	tx->data.segment_length = 0;
	return -ENOMEM;
}

/* Is @tx a text that the initiator is to ask for more of? */
bool ki_tx_is_part(struct ki_tx *tx)
{
	const struct iscsi_hdr *hdr = ki_tx_hdr(tx);

	return hdr->opcode == ISCSI_OP_TEXT_RSP && hdr->flags & ISCSI_FLAG_TEXT_CONTINUE;
}

/* Write the Send of an answer to @r; @segs is room for two segments. */
void ki_tx_request(struct ki_tx *tx, DAT_LMR_TRIPLET *segs, KDAT_REQUEST *r)
{
	const struct ki_cmd *kc = tx->cmd ? ki_cmd(tx->cmd) : NULL;
	const struct ki_conn *c;

	segs[0] = tx->seg;
	r->operation = DAT_DTO_SEND;
	r->num_segments = 1;
	r->local_iov = segs;
	r->user_cookie.as_ptr = &tx->wr;
	r->completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	r->invalidate_flag = DAT_FALSE;
	if (tx->data.segment_length) {
		segs[1] = tx->data;
		r->num_segments = 2;
	}
	if (!kc || ki_tx_hdr(tx)->opcode != ISCSI_OP_SCSI_CMD_RSP)
		return;
	c = tx->cmd->conn->context;
	r->rmr_context = kc->read_stag ?: kc->write_stag;
	if (c->invalidate && r->rmr_context)
		r->invalidate_flag = DAT_TRUE;
}

/* Have LIO free a command that will not be answered, with all others of its connection. */
static void ki_list(struct iscsit_cmd *cmd)
{
	struct iscsit_conn *conn = cmd->conn;

	spin_lock_bh(&conn->cmd_lock);
	/* A command that was rejected may not be listed. */
	if (list_empty(&cmd->i_conn_node))
		list_add_tail(&cmd->i_conn_node, &conn->conn_cmd_list);
	spin_unlock_bh(&conn->cmd_lock);
}

/* Free a command that is finished. */
static void ki_cmd_end(struct iscsit_cmd *cmd)
{
	struct iscsit_conn *conn = cmd->conn;

	spin_lock_bh(&conn->cmd_lock);
	if (!list_empty(&cmd->i_conn_node))
		list_del_init(&cmd->i_conn_node);
	spin_unlock_bh(&conn->cmd_lock);
	iscsit_free_cmd(cmd, false);
}

/*
 * Does LIO free @cmd, whose answer was not sent, with all other commands of the connection,
 * which has ended? LIO may be about to: a SCSI command is listed until then.
 */
static bool ki_is_left_to_lio(struct iscsit_cmd *cmd, u8 opcode)
{
	struct iscsit_conn *conn;
	bool listed;

	/* It may have been freed. */
	if (opcode == ISCSI_OP_SCSI_CMD_RSP)
		return true;
	conn = cmd->conn;
	spin_lock_bh(&conn->cmd_lock);
	listed = !list_empty(&cmd->i_conn_node);
	spin_unlock_bh(&conn->cmd_lock);
	return listed;
}

/* Complete an answer: it was sent, or the connection has ended. */
static void ki_tx_done(struct ki_conn *c, struct ki_wr *wr, bool ok)
{
	struct ki_tx *tx = container_of(wr, struct ki_tx, wr);
	struct iscsit_cmd *cmd = tx->cmd;
	u8 opcode = ki_tx_hdr(tx)->opcode;
	bool part = ki_tx_is_part(tx);

	ki_tx_put(c, tx);
	if (opcode == ISCSI_OP_LOGOUT_RSP) {
		/* ki_log_out() waits for this in the transmitting thread. */
		WRITE_ONCE(c->logout_sent, true);
		wake_up_all(&c->wq);
		return;
	}
	if (!ok && ki_is_left_to_lio(cmd, opcode))
		return;
	switch (opcode) {
	case ISCSI_OP_TEXT_RSP:
		/* The command goes on; the initiator may have asked for more already. */
		if (part)
			return;
		break;
	case ISCSI_OP_SCSI_TMFUNC_RSP:
		if (ok)
			iscsit_tmr_post_handler(cmd, cmd->conn);
		break;
	}
	ki_cmd_end(cmd);
}

/* Prepare a complete answer, and the mapped data of @kc, if any, for ki_push_answer(). */
static void ki_tx_ready(struct ki_conn *c, struct ki_tx *tx)
{
	struct ki_cmd *kc = ki_cmd(tx->cmd);

	trace_kdapl_isert_answer(c, ki_tx_hdr(tx), kc->mapped ? tx->cmd->se_cmd.data_length : 0);
	/* The backend is done with the command. */
	ki_buf_take_back(c, kc);
	kc->tx = tx;
	/* Data that was mapped to be read, and could not be, must not be written. */
	if (kc->reads || !kc->mapped)
		kc->n = kc->at;
	kc->reads = false;
	kc->step = KI_SEND;
}

/* Put sense data behind the headers of an answer. */
static void ki_tx_sense(struct ki_tx *tx, struct iscsit_cmd *cmd)
{
	u32 len = cmd->se_cmd.scsi_sense_length;

	if (!(cmd->se_cmd.se_cmd_flags &
	      (SCF_TRANSPORT_TASK_SENSE | SCF_EMULATED_TASK_SENSE)) || !len)
		return;
	len = min_t(u32, len, TRANSPORT_SENSE_BUFFER);
	memset(tx->va + KI_HEADERS, 0, KI_TX_DATA);
	tx->va[KI_HEADERS] = len >> 8;
	tx->va[KI_HEADERS + 1] = len;
	memcpy(tx->va + KI_HEADERS + 2, cmd->se_cmd.sense_buffer, len);
	hton24(ki_tx_hdr(tx)->dlength, len + 2);
	tx->seg.segment_length += ALIGN(len + 2, 4);
}

/*
 * Build the answer to a SCSI command, and map the data of a read. The CDB may want less than
 * the initiator has room for, or nothing. Return 0, -EAGAIN if all answers are in use,
 * -ENOMEM, or another errno.
 */
int ki_answer(struct ki_conn *c, struct ki_cmd *kc)
{
	struct iscsit_cmd *cmd = ki_of(kc);
	u32 len = cmd->se_cmd.data_length;
	struct ki_tx *tx;
	int err;

	tx = ki_tx_get(c, cmd);
	if (!tx)
		return -EAGAIN;
	if (kc->step == KI_DATA_IN && len) {
		err = ki_cmd_map(c, cmd, 0, len, DMA_TO_DEVICE);
		if (err) {
			ki_tx_put(c, tx);
			return err;
		}
		kc->va = kc->read_va;
	}
	ki_credit_answer(c, cmd);
	iscsit_build_rsp_pdu(cmd, cmd->conn, true, (struct iscsi_scsi_rsp *)ki_tx_hdr(tx));
	ki_tx_sense(tx, cmd);
	ki_tx_ready(c, tx);
	return 0;
}

/*
 * iscsit_queue_data_in(): post RDMA Writes of the data, and the status. The status is an error
 * with sense data when a tape has read a mark, or a block of another length.
 */
int ki_queue_data_in(struct iscsit_conn *conn, struct iscsit_cmd *cmd)
{
	WRITE_ONCE(ki_cmd(cmd)->taken, true);
	ki_cmd(cmd)->step = KI_DATA_IN;
	ki_conn_submit(conn->context, ki_cmd(cmd));
	return 0;
}

/* iscsit_queue_status() */
int ki_queue_status(struct iscsit_conn *conn, struct iscsit_cmd *cmd)
{
	WRITE_ONCE(ki_cmd(cmd)->taken, true);
	ki_cmd(cmd)->step = KI_STATUS;
	ki_conn_submit(conn->context, ki_cmd(cmd));
	return 0;
}

/* ---- In the transmitting thread --------------------------------------------------- */

/* Set @tx to an answer for @cmd. Return false while all answers are in use. */
static bool ki_tx_try(struct ki_conn *c, struct iscsit_cmd *cmd, struct ki_tx **tx)
{
	*tx = ki_tx_get(c, cmd);
	return *tx || READ_ONCE(c->down);
}

/* Take an answer, and wait for one if need be; return NULL if the connection ends. */
static struct ki_tx *ki_tx_wait(struct ki_conn *c, struct iscsit_cmd *cmd)
{
	struct ki_tx *tx = NULL;

	if (wait_event_interruptible(c->room, ki_tx_try(c, cmd, &tx)))
		return NULL;
	return tx;
}

/* Like ki_tx_payload(), but wait for memory: only this connection needs the thread. */
static int ki_tx_payload_wait(struct ki_conn *c, struct ki_tx *tx, void *data, u32 len)
{
	unsigned long until = jiffies + KI_PATIENCE;
	int err;

	do {
		err = ki_tx_payload(c, tx, data, len);
		if (!err || time_after(jiffies, until))
			return err;
	} while (!wait_event_interruptible_timeout(c->wq, READ_ONCE(c->down), KI_PAUSE));
	return err;
}

static int ki_send_text(struct ki_conn *c, struct ki_tx *tx)
{
	struct iscsit_cmd *cmd = tx->cmd;
	int len;

	len = iscsit_build_text_rsp(cmd, cmd->conn,
				    (struct iscsi_text_rsp *)ki_tx_hdr(tx),
				    ISCSI_INFINIBAND);
	if (len < 0)
		return len;
	/* LIO makes new text when the initiator asks for more, and forgets this text. */
	tx->text = cmd->buf_ptr;
	cmd->buf_ptr = NULL;
	return ki_tx_payload_wait(c, tx, tx->text, len);
}

/* Build the headers of an answer, and what follows them. */
static int ki_tx_build(struct ki_conn *c, struct ki_tx *tx, int state)
{
	void *hdr = ki_tx_hdr(tx);
	struct iscsit_cmd *cmd = tx->cmd;
	struct iscsit_conn *conn = cmd->conn;

	switch (state) {
	case ISTATE_SEND_STATUS:
		ki_credit_answer(c, cmd);
		iscsit_build_rsp_pdu(cmd, conn, true, hdr);
		ki_tx_sense(tx, cmd);
		return 0;
	case ISTATE_SEND_LOGOUTRSP:
		return iscsit_build_logout_rsp(cmd, conn, hdr);
	case ISTATE_SEND_NOPIN:
		iscsit_build_nopin_rsp(cmd, conn, hdr, true);
		return ki_tx_payload_wait(c, tx, cmd->buf_ptr, cmd->buf_ptr_size);
	case ISTATE_SEND_REJECT:
		iscsit_build_reject(cmd, conn, hdr);
		hton24(ki_tx_hdr(tx)->dlength, ISCSI_HDR_LEN);
		return ki_tx_payload_wait(c, tx, cmd->buf_ptr, ISCSI_HDR_LEN);
	case ISTATE_SEND_TASKMGTRSP:
		iscsit_build_task_mgt_rsp(cmd, conn, hdr);
		return 0;
	case ISTATE_SEND_TEXTRSP:
		return ki_send_text(c, tx);
	default:
		pr_err("%s: LIO wants to send in state %d\n", c->peer, state);
		return -EINVAL;
	}
}

/*
 * Has LIO found fault with unsolicited data of @cmd? LIO then ends the connection and frees
 * the command, to which the completion of an answer would leave a reference.
 */
static bool ki_is_unanswered(struct iscsit_cmd *cmd)
{
	return READ_ONCE(cmd->se_cmd.t_state) == TRANSPORT_WRITE_PENDING &&
	       !(READ_ONCE(cmd->se_cmd.transport_state) & CMD_T_ABORTED);
}

/*
 * Have LIO do what the logout @cmd asks for, when its answer was sent. A logout of another
 * connection ends nothing, so its command is freed here. If the answer was not sent, @c is
 * down, and LIO frees the command with all others.
 */
static int ki_log_out(struct ki_conn *c, struct iscsit_cmd *cmd)
{
	/*
	 * An initiator that takes no answer must not keep its session. LIO waits as long for
	 * the end of a logout (SECONDS_FOR_LOGOUT_COMP), in the session's own threads only.
	 */
	if (!wait_event_timeout(c->wq, READ_ONCE(c->logout_sent) || READ_ONCE(c->down),
				KI_SILENCE)) {
		ki_conn_break(c, "it does not take the answer to its logout");
		/* The end of the connection flushes the answer. */
		wait_event(c->wq, READ_ONCE(c->logout_sent) || READ_ONCE(c->down));
	}
	if (!iscsit_logout_post_handler(cmd, c->conn))
		return -ECONNRESET;
	if (READ_ONCE(c->logout_sent)) {
		/* There may be another logout; ki_credit_judge() asks for one of @c. */
		WRITE_ONCE(c->logout_sent, false);
		ki_cmd_end(cmd);
	}
	return 0;
}

/* iscsit_response_queue(): -ECONNRESET tells LIO's thread that @conn is gone. */
int ki_response_queue(struct iscsit_conn *conn, struct iscsit_cmd *cmd, int state)
{
	struct ki_conn *c = conn->context;
	struct ki_tx *tx;
	int err;

	WRITE_ONCE(ki_cmd(cmd)->taken, true);
	if (state == ISTATE_SEND_STATUS && ki_is_unanswered(cmd))
		return 0;
	tx = ki_tx_wait(c, cmd);
	if (!tx) {
		ki_list(cmd);
		return -EIO;
	}
	err = ki_tx_build(c, tx, state);
	if (err < 0) {
		/* LIO ends the connection, and does not say why. */
		ki_conn_break(c, err == -ENOMEM ? "there is no memory for an answer" :
						  "an answer cannot be built");
		ki_tx_put(c, tx);
		ki_list(cmd);
		return -EIO;
	}
	ki_tx_ready(c, tx);
	ki_conn_submit(c, ki_cmd(cmd));
	return state == ISTATE_SEND_LOGOUTRSP ? ki_log_out(c, cmd) : 0;
}

/* iscsit_immediate_queue() */
int ki_immediate_queue(struct iscsit_conn *conn, struct iscsit_cmd *cmd, int state)
{
	struct ki_conn *c = conn->context;
	struct ki_tx *tx;

	switch (state) {
	case ISTATE_REMOVE:
		ki_cmd_end(cmd);
		return 0;
	case ISTATE_SEND_NOPIN_WANT_RESPONSE:
	case ISTATE_SEND_NOPIN_NO_RESPONSE:
		tx = ki_tx_wait(c, cmd);
		if (!tx)
			return -EIO;
		iscsit_build_nopin_rsp(cmd, conn,
				       (struct iscsi_nopin *)ki_tx_hdr(tx), false);
		ki_tx_ready(c, tx);
		ki_conn_submit(c, ki_cmd(cmd));
		return 0;
	default:
		pr_err("%s: LIO wants state %d at once\n", c->peer, state);
		return -EINVAL;
	}
}
