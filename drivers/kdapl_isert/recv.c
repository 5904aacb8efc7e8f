// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PDUs of initiators, and completions: the upcall of the EVDs that connections
 * share. It runs in process context.
 *
 * What a PDU says of lengths is checked against what was received before LIO sees
 * it. An error of the protocol ends the connection.
 *
 * LIO trusts its transport with a few things that ib_isert and TCP hand on as the
 * initiator has sent them: Data-Out for data that is being read, a tag of another
 * command. These are checked here. Nor may LIO want a new command in order to reject a
 * PDU: it would wait for one, and all connections of the EVD with it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include "isert.h"
#include "trace.h"

static struct iscsi_hdr *ki_hdr(struct ki_buf *buf)
{
	return (struct iscsi_hdr *)(buf->va + sizeof(struct iser_ctrl));
}

static void *ki_data(struct ki_buf *buf)
{
	return buf->va + KI_HEADERS + ki_hdr(buf)->hlength * 4;
}

/* Are the lengths in a PDU those of what was received? */
static bool ki_pdu_ok(struct ki_buf *buf)
{
	struct iscsi_hdr *hdr = ki_hdr(buf);
	struct iscsi_ecdb_ahdr *ahs = (void *)(hdr + 1);
	u32 ahs_len;

	if (buf->len < KI_HEADERS || (buf->va[0] & 0xf0) != ISCSI_CTRL)
		return false;
	ahs_len = hdr->hlength * 4;
	if (KI_HEADERS + ahs_len + ntoh24(hdr->dlength) > buf->len)
		return false;
	/* LIO takes the length of an extended CDB as it comes. */
	return !ahs_len || (ahs_len >= 4 && be16_to_cpu(ahs->ahslength) &&
			    be16_to_cpu(ahs->ahslength) + 3 <= ahs_len);
}

/* Copy immediate data to where the backend gets it. */
static int ki_copy_data(struct iscsit_cmd *cmd, struct ki_buf *buf, u32 offset,
			u32 len)
{
	if (offset > cmd->se_cmd.data_length ||
	    len > cmd->se_cmd.data_length - offset ||
	    sg_pcopy_from_buffer(cmd->se_cmd.t_data_sg, cmd->se_cmd.t_data_nents,
				 ki_data(buf), len, offset) != len)
		return -EPROTO;
	return 0;
}

/* Immediate data has been dealt with: the command may be executed in its turn. */
static int ki_immediate_done(struct iscsit_conn *conn, struct iscsit_cmd *cmd,
			     struct iscsi_hdr *hdr)
{
	int rc;

	rc = iscsit_sequence_cmd(conn, cmd, (u8 *)hdr,
				 ((struct iscsi_scsi_req *)hdr)->cmdsn);
	if (rc == CMDSN_ERROR_CANNOT_RECOVER)
		return -EPROTO;
	if (cmd->sense_reason || rc == CMDSN_LOWER_THAN_EXP)
		target_put_sess_cmd(&cmd->se_cmd);
	else if (cmd->unsolicited_data)
		iscsit_set_unsolicited_dataout(cmd);
	return 0;
}

static int ki_scsi_cmd(struct ki_conn *c, struct iscsit_cmd *cmd, struct ki_buf *buf)
{
	struct iscsi_hdr *hdr = ki_hdr(buf);
	u32 len;
	int rc;

	/* LIO executes a Read at once, and again when its data has come. */
	if (ntoh24(hdr->dlength) && !(hdr->flags & ISCSI_FLAG_CMD_WRITE))
		return -EPROTO;
	rc = iscsit_setup_scsi_cmd(c->conn, cmd, (u8 *)hdr);
	/* LIO has refused the command, and tells the initiator. */
	if (rc < 0)
		return 0;
	len = cmd->first_burst_len;
	rc = iscsit_process_scsi_cmd(c->conn, cmd, (struct iscsi_scsi_req *)hdr);
	if (rc < 0)
		return rc;
	if (!len)
		return 0;
	/* rc > 0: the command fails, and its data does not matter. */
	if (!rc) {
		if (ki_copy_data(cmd, buf, 0, len))
			return -EPROTO;
		cmd->write_data_done += len;
		if (cmd->write_data_done == cmd->se_cmd.data_length) {
			spin_lock_bh(&cmd->istate_lock);
			cmd->cmd_flags |= ICF_GOT_LAST_DATAOUT;
			cmd->i_state = ISTATE_RECEIVED_LAST_DATAOUT;
			spin_unlock_bh(&cmd->istate_lock);
		}
	}
	return ki_immediate_done(c->conn, cmd, hdr);
}

static int ki_data_out(struct ki_conn *c, struct ki_buf *buf)
{
	struct iscsi_data *hdr = (struct iscsi_data *)ki_hdr(buf);
	struct iscsit_cmd *cmd = NULL;
	int rc;

	/* LIO would reject it with a new command. */
	if (ntoh24(hdr->dlength) > c->conn->conn_ops->MaxXmitDataSegmentLength)
		return -EPROTO;
	rc = iscsit_check_dataout_hdr(c->conn, hdr, &cmd);
	if (rc < 0 || !cmd)
		return 0;
	/* The target asks for no data over iSER, it reads: see ki_get_dataout(). */
	if (!cmd->unsolicited_data)
		return -EPROTO;
	if (ki_copy_data(cmd, buf, be32_to_cpu(hdr->offset), ntoh24(hdr->dlength)))
		return -EPROTO;
	rc = iscsit_check_dataout_payload(cmd, hdr, false);
	return rc < 0 ? rc : 0;
}

/* Is this the answer to a NOP-In of the target? LIO takes any command with that tag. */
static bool ki_is_nop_answer(struct ki_conn *c, const struct iscsi_nopout *hdr)
{
	struct iscsit_cmd *cmd;
	bool found = false;

	if (hdr->itt != RESERVED_ITT || !(hdr->opcode & ISCSI_OP_IMMEDIATE) ||
	    !(hdr->flags & ISCSI_FLAG_CMD_FINAL) ||
	    ntoh24(hdr->dlength) > c->conn->conn_ops->MaxXmitDataSegmentLength)
		return false;
	spin_lock_bh(&c->conn->cmd_lock);
	list_for_each_entry(cmd, &c->conn->conn_cmd_list, i_conn_node)
		if (cmd->targ_xfer_tag == be32_to_cpu(hdr->ttt)) {
			found = cmd->iscsi_opcode == ISCSI_OP_NOOP_IN &&
				cmd->i_state != ISTATE_REMOVE;
			break;
		}
	spin_unlock_bh(&c->conn->cmd_lock);
	return found;
}

static int ki_nop_out(struct ki_conn *c, struct iscsit_cmd *cmd, struct ki_buf *buf)
{
	struct iscsi_nopout *hdr = (struct iscsi_nopout *)ki_hdr(buf);
	u32 len = ntoh24(hdr->dlength);
	int rc;

	if (!cmd && !ki_is_nop_answer(c, hdr))
		return -EPROTO;
	rc = iscsit_setup_nop_out(c->conn, cmd, hdr);
	if (rc < 0)
		return 0;
	if (len && cmd) {
		/* It is sent back with padding, and LIO frees it. */
		cmd->buf_ptr = kzalloc(ALIGN(len, 4) + 1, GFP_KERNEL);
		if (!cmd->buf_ptr)
			return -ENOMEM;
		memcpy(cmd->buf_ptr, ki_data(buf), len);
		cmd->buf_ptr_size = len;
	}
	return iscsit_process_nop_out(c->conn, cmd, hdr);
}

/*
 * Return the Text command that the initiator asks for more of, or NULL: only of one
 * that was answered so, only once, and without new text, since LIO would enter the
 * command in its list again.
 */
static struct iscsit_cmd *ki_text_more(struct ki_conn *c, const struct iscsi_text *hdr)
{
	struct iscsit_cmd *cmd;
	struct ki_cmd *kc;

	if (ntoh24(hdr->dlength))
		return NULL;
	cmd = iscsit_find_cmd_from_itt_or_dump(c->conn, hdr->itt, 0);
	if (!cmd || cmd->iscsi_opcode != ISCSI_OP_TEXT ||
	    cmd->targ_xfer_tag != be32_to_cpu(hdr->ttt))
		return NULL;
	kc = ki_cmd(cmd);
	if (!READ_ONCE(kc->more))
		return NULL;
	WRITE_ONCE(kc->more, false);
	return cmd;
}

static int ki_text(struct ki_conn *c, struct iscsit_cmd *cmd, struct ki_buf *buf)
{
	struct iscsi_text *hdr = (struct iscsi_text *)ki_hdr(buf);
	u32 len = ntoh24(hdr->dlength);
	void *text;

	if (iscsit_setup_text_cmd(c->conn, cmd, hdr) < 0)
		return 0;
	if (len) {
		text = kzalloc(ALIGN(len, 4) + 1, GFP_KERNEL);
		if (!text)
			return -ENOMEM;
		memcpy(text, ki_data(buf), len);
		kfree(cmd->text_in_ptr);
		cmd->text_in_ptr = text;
	}
	return iscsit_process_text_cmd(c->conn, cmd, hdr);
}

/* Does this PDU begin a command, so that LIO needs a struct iscsit_cmd for it? */
static bool ki_is_command(const struct iscsi_hdr *hdr)
{
	switch (hdr->opcode & ISCSI_OPCODE_MASK) {
	case ISCSI_OP_SCSI_CMD:
	case ISCSI_OP_SCSI_TMFUNC:
	case ISCSI_OP_LOGOUT:
		return true;
	case ISCSI_OP_NOOP_OUT:
	case ISCSI_OP_TEXT:
		return hdr->ttt == cpu_to_be32(0xffffffff);
	default:
		return false;
	}
}

/* May PDUs with this opcode come in a discovery session? */
static bool ki_in_discovery(u8 opcode)
{
	return opcode == ISCSI_OP_TEXT || opcode == ISCSI_OP_LOGOUT ||
	       opcode == ISCSI_OP_NOOP_OUT;
}

static int ki_command(struct ki_conn *c, struct iscsit_cmd *cmd, struct ki_buf *buf)
{
	struct iser_ctrl *iser = (struct iser_ctrl *)buf->va;
	struct iscsi_hdr *hdr = ki_hdr(buf);
	struct ki_cmd *kc;
	int rc;

	switch (hdr->opcode & ISCSI_OPCODE_MASK) {
	case ISCSI_OP_SCSI_CMD:
		kc = ki_cmd(cmd);
		if (iser->flags & ISER_RSV) {
			kc->read_stag = be32_to_cpu(iser->read_stag);
			kc->read_va = be64_to_cpu(iser->read_va);
		}
		if (iser->flags & ISER_WSV) {
			kc->write_stag = be32_to_cpu(iser->write_stag);
			kc->write_va = be64_to_cpu(iser->write_va);
		}
		return ki_scsi_cmd(c, cmd, buf);
	case ISCSI_OP_SCSI_DATA_OUT:
		return ki_data_out(c, buf);
	case ISCSI_OP_NOOP_OUT:
		return ki_nop_out(c, cmd, buf);
	case ISCSI_OP_SCSI_TMFUNC:
		return iscsit_handle_task_mgt_cmd(c->conn, cmd, (u8 *)hdr);
	case ISCSI_OP_TEXT:
		if (!cmd)
			cmd = ki_text_more(c, (struct iscsi_text *)hdr);
		return cmd ? ki_text(c, cmd, buf) : -EPROTO;
	case ISCSI_OP_LOGOUT:
		rc = iscsit_handle_logout_cmd(c->conn, cmd, (u8 *)hdr);
		return min(rc, 0);
	default:
		return -EPROTO;
	}
}

/* Hand a PDU to LIO. Context: process. */
static void ki_pdu(struct ki_conn *c, struct ki_buf *buf)
{
	struct iscsi_hdr *hdr = ki_hdr(buf);
	struct iscsit_cmd *cmd = NULL;

	/* LIO is about to release all commands of a connection that has ended. */
	if (READ_ONCE(c->broken) || READ_ONCE(c->down) || READ_ONCE(c->closing))
		return;
	if (!ki_pdu_ok(buf)) {
		ki_conn_break(c, "a PDU does not have the length that it tells");
		return;
	}
	trace_kdapl_isert_request(c, hdr, buf->len);
	if (c->conn->sess->sess_ops->SessionType &&
	    !ki_in_discovery(hdr->opcode & ISCSI_OPCODE_MASK)) {
		ki_conn_break(c, "a command in a discovery session");
		return;
	}
	if (ki_is_command(hdr)) {
		if (!ki_credit_may(c, hdr)) {
			ki_conn_break(c, "it has sent more than MaxCmdSN allows");
			return;
		}
		/* Waiting would hold up other connections. */
		cmd = iscsit_allocate_cmd(c->conn, TASK_RUNNING);
		if (!cmd) {
			ki_conn_break(c, "more commands than it may send");
			return;
		}
	}
	if (ki_command(c, cmd, buf) < 0)
		ki_conn_break(c, "a PDU breaks the protocol");
}

/* ---- Upcalls --------------------------------------------------------------------- */

/* A login request: LIO reads it in ki_get_login_rx(). */
static void ki_login_pdu(struct ki_conn *c, struct ki_buf *buf)
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
		/* ki_wait_conn() cancels it. */
		if (!first)
			schedule_delayed_work(&c->conn->login_work, 0);
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

/* Keep a message until LIO's receiving thread runs; false if it does. */
static bool ki_keep(struct ki_conn *c, struct ki_buf *buf)
{
	bool keep;

	spin_lock_bh(&c->lock);
	keep = c->state == KI_LOGGED_IN;
	if (keep)
		list_add_tail(&buf->link, &c->unread);
	spin_unlock_bh(&c->lock);
	return keep;
}

static void ki_received(struct ki_comp *comp, struct ki_conn *c, struct ki_buf *buf,
			const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	buf->len = dto->transfered_length;
	if (!c || dto->status != DAT_DTO_SUCCESS) {
		ki_buf_post(comp->a, buf);
		return;
	}
	/* Pairs with ki_get_rx_pdu(), and ki_put_login_tx(). */
	switch (smp_load_acquire(&c->state)) {
	case KI_LOGIN:
		ki_login_pdu(c, buf);
		return;
	case KI_LOGGED_IN:
		if (ki_keep(c, buf))
			return;
		fallthrough;
	default:
		ki_pdu(c, buf);
		ki_buf_post(comp->a, buf);
	}
}

void ki_comp_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	struct ki_comp *comp = data;
	struct ki_conn *c = NULL;
	DAT_CONTEXT context;
	struct ki_wr *wr;

	mutex_lock(&comp->mutex);
	if (dat_get_consumer_context(dto->ep_handle, &context) == DAT_SUCCESS)
		c = context.as_ptr;
	if (dto->operation == DAT_DTO_RECEIVE ||
	    dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE) {
		ki_received(comp, c, dto->user_cookie.as_ptr, dto);
	} else if (c && dto->user_cookie.as_ptr) {
		wr = dto->user_cookie.as_ptr;
		wr->done(c, wr, dto->status == DAT_DTO_SUCCESS);
		ki_posted_done(c);
	}
	mutex_unlock(&comp->mutex);
}

/*
 * iscsit_get_rx_pdu(), LIO's receiving thread: handle what has come before it, let
 * upcalls handle all that follows, and end with the connection.
 */
void ki_get_rx_pdu(struct iscsit_conn *conn)
{
	struct ki_conn *c = conn->context;
	struct ki_buf *buf;

	atomic_long_inc(&c->a->stats[KI_STAT_LOGINS]);
	WRITE_ONCE(c->iqn, kstrdup(conn->sess->sess_ops->InitiatorName, GFP_KERNEL));
	if (ki_credit_begin(c))
		ki_conn_break(c, "no receive buffers are left for its window");
	for (;;) {
		spin_lock_bh(&c->lock);
		buf = list_first_entry_or_null(&c->unread, struct ki_buf, link);
		if (buf)
			list_del(&buf->link);
		else
			/* Pairs with ki_received(): what came before is done. */
			smp_store_release(&c->state, KI_FULL);
		spin_unlock_bh(&c->lock);
		if (!buf)
			break;
		ki_pdu(c, buf);
		ki_buf_post(c->a, buf);
	}
	wait_event_interruptible(c->wq, READ_ONCE(c->down));
}
