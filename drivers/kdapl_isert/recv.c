// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PDUs of initiators, and completions: the upcall of the EVDs that connections share. It runs
 * in process context.
 *
 * LIO trusts its transport with a few checks, although ib_isert and TCP hand on what the
 * initiator has sent: lengths, Data-Out for data that is being read, the tag of another
 * command. ki_fault() (fault.c) and the functions called ki_find_, ki_takes_, ki_is_nop_ and
 * ki_text_more() make these checks first. Nor may LIO need a new command in order to reject a
 * PDU: it would wait for one, and hold up all connections of the EVD. An error of the protocol
 * ends the connection.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <scsi/scsi_common.h>
#include <scsi/scsi_proto.h>
#include "isert.h"
#include "trace.h"

static void *ki_data(KDAT_POOL_BUF *buf)
{
	return buf->va + KI_HEADERS + ki_hdr(buf)->hlength * 4;
}

/* ---- Commands ------------------------------------------------------------------------- */

/* Copy data that an initiator has sent to the memory that the backend writes from. */
static int ki_copy_data(struct iscsit_cmd *cmd, KDAT_POOL_BUF *buf, u32 offset,
			u32 len)
{
	if (offset > cmd->se_cmd.data_length ||
	    len > cmd->se_cmd.data_length - offset ||
	    sg_pcopy_from_buffer(cmd->se_cmd.t_data_sg, cmd->se_cmd.t_data_nents,
				 ki_data(buf), len, offset) != len)
		return -EPROTO;
	return 0;
}

/* Let a command be executed in its turn, as its immediate data was handled. */
static int ki_immediate_done(struct iscsit_conn *conn, struct iscsit_cmd *cmd,
			     struct iscsi_hdr *hdr)
{
	int rc;

	rc = iscsit_sequence_cmd(conn, cmd, (u8 *)hdr,
				 ((struct iscsi_scsi_req *)hdr)->cmdsn);
	if (rc == CMDSN_ERROR_CANNOT_RECOVER)
		return -EPROTO;
	/* LIO has ignored the command, and nobody answers it. */
	if (rc == CMDSN_LOWER_THAN_EXP)
		ki_buf_take_back(conn->context, ki_cmd(cmd));
	if (cmd->sense_reason || rc == CMDSN_LOWER_THAN_EXP)
		target_put_sess_cmd(&cmd->se_cmd);
	else if (cmd->unsolicited_data)
		iscsit_set_unsolicited_dataout(cmd);
	return 0;
}

/*
 * May the backend write the @len bytes that came with a command from @buf? They have to begin
 * at a multiple of its block size, since media with blocks of 4096 bytes take no others, and
 * LIO looks into the data of COMPARE AND WRITE and WRITE SAME as if each entry were a page.
 */
static bool ki_may_lend(struct iscsit_cmd *cmd, KDAT_POOL_BUF *buf, u32 len)
{
	const struct iscsi_scsi_req *req = (const struct iscsi_scsi_req *)ki_hdr(buf);
	const struct se_device *dev = cmd->se_cmd.se_dev;
	unsigned long data = (unsigned long)ki_data(buf);

	switch (req->cdb[0]) {
	case WRITE_6:
	case WRITE_10:
	case WRITE_12:
	case WRITE_16:
		break;
	default:
		return false;
	}
	return dev && IS_ALIGNED(data, dev->dev_attrib.block_size) && len &&
	       len == cmd->se_cmd.data_length && !ki_hdr(buf)->hlength &&
	       offset_in_page(data) + len <= KI_DATA_PAGES * PAGE_SIZE;
}

/*
 * Return 0 if LIO, which has refused a command, tells the initiator. Return -ENOMEM if there
 * was no memory for that: LIO has freed the command then.
 */
static int ki_is_told(struct iscsit_cmd *cmd)
{
	return ki_cmd(cmd)->counted ? 0 : -ENOMEM;
}

/* Handle a SCSI command. Set @lent if the command keeps @buf. */
static int ki_scsi_cmd(struct ki_conn *c, struct iscsit_cmd *cmd, KDAT_POOL_BUF *buf,
		       bool *lent)
{
	struct iscsi_hdr *hdr = ki_hdr(buf);
	u32 len;
	int rc;

	rc = iscsit_setup_scsi_cmd(c->conn, cmd, (u8 *)hdr);
	if (rc < 0)
		return ki_is_told(cmd);
	ki_execute_later(cmd);
	len = cmd->first_burst_len;
	if (ki_may_lend(cmd, buf, len) && ki_buf_lend(c, ki_cmd(cmd), buf)) {
		*lent = true;
		cmd->se_cmd.se_cmd_flags |= SCF_PASSTHROUGH_SG_TO_MEM_NOALLOC;
	}
	rc = iscsit_process_scsi_cmd(c->conn, cmd, (struct iscsi_scsi_req *)hdr);
	if (rc < 0)
		return rc;
	if (!len)
		return 0;
	/* With rc > 0 the command fails, and its data does not matter. */
	if (!rc) {
		if (*lent ? ki_cmd_use(cmd, ki_data(buf), len) : ki_copy_data(cmd, buf, 0, len))
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

/*
 * Return the SCSI Write with the task tag @itt that may still get data; else one whose data
 * was fetched, so that none may come; or NULL. Several may have the tag: an initiator that has
 * an answer may use its tag again before this side knows, an initiator may use a tag twice,
 * and commands that LIO is about to free are still listed.
 */
static struct iscsit_cmd *ki_find_write(struct iscsit_conn *conn, itt_t itt)
{
	struct iscsit_cmd *cmd, *found = NULL;

	spin_lock_bh(&conn->cmd_lock);
	list_for_each_entry(cmd, &conn->conn_cmd_list, i_conn_node)
		if (cmd->init_task_tag == itt && cmd->iscsi_opcode == ISCSI_OP_SCSI_CMD &&
		    cmd->data_direction == DMA_TO_DEVICE &&
		    cmd->i_state != ISTATE_REMOVE) {
			if (!(cmd->cmd_flags & ICF_GOT_LAST_DATAOUT)) {
				found = cmd;
				break;
			}
			if (ki_cmd(cmd)->asked)
				found = cmd;
		}
	spin_unlock_bh(&conn->cmd_lock);
	return found;
}

/* May unsolicited data be for @cmd? Return 0, -EPROTO: never, or -EAGAIN: @cmd has failed. */
static int ki_takes_data(struct iscsit_cmd *cmd, const struct iscsi_data *hdr)
{
	u32 offset = be32_to_cpu(hdr->offset), len = ntoh24(hdr->dlength);

	/* The rest of the data is being fetched, or was. */
	if (ki_cmd(cmd)->asked || !cmd->unsolicited_data)
		return -EPROTO;
	/* LIO has no memory for the data yet: it is not the turn of the command. */
	if (!cmd->sense_reason && cmd->se_cmd.t_state < TRANSPORT_WRITE_PENDING)
		return -EPROTO;
	if (cmd->sense_reason || cmd->se_cmd.t_state != TRANSPORT_WRITE_PENDING)
		return -EAGAIN;
	/* Check both parts: the sum that LIO checks may overflow. */
	if (!len || len > cmd->conn->conn_ops->MaxXmitDataSegmentLength ||
	    offset > cmd->se_cmd.data_length || len > cmd->se_cmd.data_length - offset)
		return -EPROTO;
	return 0;
}

/*
 * Handle unsolicited data that follows its command. Solicited data comes by RDMA Read only, so
 * that nothing else writes to its memory.
 */
static int ki_data_out(struct ki_conn *c, KDAT_POOL_BUF *buf)
{
	struct iscsi_data *hdr = (struct iscsi_data *)ki_hdr(buf);
	struct iscsit_conn *conn = c->conn;
	struct iscsit_cmd *cmd;
	bool ok = false;
	int rc;

	if (conn->sess->sess_ops->InitialR2T || hdr->ttt != cpu_to_be32(0xffffffff))
		return -EPROTO;
	cmd = ki_find_write(conn, hdr->itt);
	/* Data-Out PDUs may still arrive after a failed command was answered. */
	if (!cmd)
		return 0;
	rc = ki_takes_data(cmd, hdr);
	if (rc)
		return rc == -EAGAIN ? 0 : rc;
	rc = __iscsit_check_dataout_hdr(conn, hdr, cmd, ntoh24(hdr->dlength), &ok);
	if (rc < 0 || !ok)
		return rc;
	if (ki_copy_data(cmd, buf, be32_to_cpu(hdr->offset), ntoh24(hdr->dlength)))
		return -EPROTO;
	rc = iscsit_check_dataout_payload(cmd, hdr, false);
	return min(rc, 0);
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

static int ki_nop_out(struct ki_conn *c, struct iscsit_cmd *cmd, KDAT_POOL_BUF *buf)
{
	struct iscsi_nopout *hdr = (struct iscsi_nopout *)ki_hdr(buf);
	u32 len = ntoh24(hdr->dlength);
	int rc;

	if (!cmd && !ki_is_nop_answer(c, hdr))
		return -EPROTO;
	rc = iscsit_setup_nop_out(c->conn, cmd, hdr);
	if (rc < 0)
		return cmd ? ki_is_told(cmd) : 0;
	if (len && cmd) {
		/* LIO sends the data back with padding, and frees it. */
		cmd->buf_ptr = kzalloc(ALIGN(len, 4) + 1, GFP_KERNEL);
		if (!cmd->buf_ptr)
			return -ENOMEM;
		memcpy(cmd->buf_ptr, ki_data(buf), len);
		cmd->buf_ptr_size = len;
	}
	return iscsit_process_nop_out(c->conn, cmd, hdr);
}

/*
 * Return the Text command that the initiator asks for more of, or NULL. It may ask only if the
 * answer was a part of the text, only once for each answer, and without new text: LIO would
 * list the command again.
 */
static struct iscsit_cmd *ki_text_more(struct ki_conn *c, const struct iscsi_text *hdr)
{
	struct iscsit_cmd *cmd;
	struct ki_cmd *kc;
	bool more;

	if (ntoh24(hdr->dlength))
		return NULL;
	cmd = iscsit_find_cmd_from_itt_or_dump(c->conn, hdr->itt, 0);
	if (!cmd || cmd->iscsi_opcode != ISCSI_OP_TEXT ||
	    cmd->targ_xfer_tag != be32_to_cpu(hdr->ttt))
		return NULL;
	kc = ki_cmd(cmd);
	/* LIO forgets which target the initiator has asked for. */
	if (cmd->cmd_flags & ICF_SENDTARGETS_SINGLE)
		return NULL;
	spin_lock_bh(&c->lock);
	more = kc->more;
	kc->more = false;
	if (more)
		WRITE_ONCE(kc->taken, false);
	spin_unlock_bh(&c->lock);
	return more ? cmd : NULL;
}

static int ki_text(struct ki_conn *c, struct iscsit_cmd *cmd, KDAT_POOL_BUF *buf)
{
	struct iscsi_text *hdr = (struct iscsi_text *)ki_hdr(buf);
	u32 len = ntoh24(hdr->dlength);

	if (!cmd)
		cmd = ki_text_more(c, hdr);
	if (!cmd)
		return -EPROTO;
	if (iscsit_setup_text_cmd(c->conn, cmd, hdr) < 0)
		return ki_is_told(cmd);
	if (len) {
		cmd->text_in_ptr = kzalloc(len + 1, GFP_KERNEL);
		if (!cmd->text_in_ptr)
			return -ENOMEM;
		memcpy(cmd->text_in_ptr, ki_data(buf), len);
	}
	return iscsit_process_text_cmd(c->conn, cmd, hdr);
}

/*
 * Turn a logout of the connection into one of the session, which ends with its only
 * connection. LIO would keep the session for Time2Retain, and for ever if the target is
 * disabled meanwhile.
 */
static void ki_logout_widen(struct ki_conn *c, struct iscsi_hdr *hdr)
{
	struct iscsi_logout *req = (struct iscsi_logout *)hdr;

	if ((req->flags & ISCSI_FLAG_LOGOUT_REASON_MASK) ==
	    ISCSI_LOGOUT_REASON_CLOSE_CONNECTION && be16_to_cpu(req->cid) == c->conn->cid)
		req->flags = ISCSI_FLAG_CMD_FINAL | ISCSI_LOGOUT_REASON_CLOSE_SESSION;
}

/* Does a PDU begin a command, for which LIO needs a struct iscsit_cmd? */
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

static int ki_command(struct ki_conn *c, struct iscsit_cmd *cmd, KDAT_POOL_BUF *buf,
		      bool *lent)
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
			kc->writable = true;
		}
		return ki_scsi_cmd(c, cmd, buf, lent);
	case ISCSI_OP_SCSI_DATA_OUT:
		return ki_data_out(c, buf);
	case ISCSI_OP_NOOP_OUT:
		return ki_nop_out(c, cmd, buf);
	case ISCSI_OP_SCSI_TMFUNC:
		return iscsit_handle_task_mgt_cmd(c->conn, cmd, (u8 *)hdr);
	case ISCSI_OP_TEXT:
		return ki_text(c, cmd, buf);
	case ISCSI_OP_LOGOUT:
		ki_logout_widen(c, hdr);
		rc = iscsit_handle_logout_cmd(c->conn, cmd, (u8 *)hdr);
		return min(rc, 0);
	default:
		return -EPROTO;
	}
}

/*
 * Hand a PDU to LIO. No answer to a command completes meanwhile. Return whether a command
 * keeps @buf, which may have been posted again already. Context: process.
 */
static bool ki_pdu_lent(struct ki_conn *c, KDAT_POOL_BUF *buf)
{
	struct iscsi_hdr *hdr = ki_hdr(buf);
	struct iscsit_cmd *cmd = NULL;
	bool lent = false;
	const char *fault;
	int rc;

	lockdep_assert_held(&c->comp->mutex);

	/* LIO is about to release all commands of a connection that has ended. */
	if (READ_ONCE(c->broken) || READ_ONCE(c->down) || READ_ONCE(c->closing))
		return false;
	fault = ki_fault(c, buf);
	if (fault) {
		ki_conn_break(c, fault);
		return false;
	}
	trace_kdapl_isert_request(c, hdr, buf->length);
	if (ki_is_command(hdr)) {
		if (!ki_credit_may(c, hdr)) {
			ki_conn_break(c, "it has sent more than MaxCmdSN allows");
			return false;
		}
		/* Waiting would hold up other connections. litmus: none, a count. */
		cmd = NULL;
		if (atomic_inc_return(&c->unanswered) <= (int)c->most)
			cmd = iscsit_allocate_cmd(c->conn, TASK_RUNNING);
		if (!cmd) {
			atomic_dec(&c->unanswered);
			ki_conn_break(c, "more of its commands are unanswered than it may send");
			return false;
		}
		ki_cmd(cmd)->counted = true;
	}
	rc = ki_command(c, cmd, buf, &lent);
	if (rc < 0)
		ki_conn_break(c, rc == -ENOMEM ? "there is no memory for a PDU" :
						 "a PDU breaks the protocol");
	return lent;
}

/* Hand the PDU in @buf to LIO, and post the buffer again. */
static void ki_pdu(struct ki_conn *c, KDAT_POOL_BUF *buf)
{
	if (!ki_pdu_lent(c, buf))
		kdat_pool_put(c->a->base.pool, buf);
}

/* ---- Upcalls --------------------------------------------------------------------- */

/*
 * Return how many messages may come before LIO's receiving thread runs. What was negotiated is
 * not known here yet, and a command may come with data in many PDUs. So it is half of the
 * buffers that there are or, where a sender waits for buffers, that there could be.
 */
static unsigned int ki_most_unread(struct ki_conn *c)
{
	KDAT_ADAPTER *a = &c->a->base;
	unsigned int bufs = a->iwarp ? kdat_pool_usable(a->pool) : kdat_pool_most(a->pool);

	return max_t(unsigned int, KI_UNREAD, bufs / 2);
}

/* Keep a message until LIO's receiving thread runs; return false if it runs already. */
static bool ki_keep(struct ki_conn *c, KDAT_POOL_BUF *buf)
{
	bool keep, many = false;

	spin_lock_bh(&c->lock);
	keep = c->state == KI_LOGGED_IN;
	if (keep) {
		many = c->nunread >= ki_most_unread(c);
		if (!many) {
			c->nunread++;
			list_add_tail(&buf->link, &c->unread);
		}
	}
	spin_unlock_bh(&c->lock);
	if (many) {
		ki_conn_break(c, "it has sent more than MaxCmdSN allows");
		kdat_pool_put(c->a->base.pool, buf);
	}
	return keep;
}

static void ki_received(struct ki_comp *comp, struct ki_conn *c, KDAT_POOL_BUF *buf,
			const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	buf->length = dto->transfered_length;
	if (!c || dto->status != DAT_DTO_SUCCESS) {
		if (c && dto->status == DAT_DTO_ERR_LOCAL_LENGTH)
			ki_conn_break(c, "a message is longer than a PDU can be");
		kdat_pool_put(comp->a->base.pool, buf);
		return;
	}
	/* Pairs with ki_get_rx_pdu(), and ki_put_login_tx(). litmus: iser-state */
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
	} else if (c) {
		if (unlikely(dto->status != DAT_DTO_SUCCESS))
			ki_conn_judge(c, dto->status);
		wr = dto->user_cookie.as_ptr;
		/* An RDMA Write that others follow completes only if it fails. */
		if (wr) {
			WRITE_ONCE(c->completed, c->completed + 1);
			wr->done(c, wr, dto->status == DAT_DTO_SUCCESS);
			ki_posted_done(c);
		}
	}
	WRITE_ONCE(comp->events, comp->events + 1);
	mutex_unlock(&comp->mutex);
}

/*
 * iscsit_get_rx_pdu(), LIO's receiving thread: handle the messages that came before it, let
 * upcalls handle all later ones, and return when the connection ends.
 */
void ki_get_rx_pdu(struct iscsit_conn *conn)
{
	struct ki_conn *c = conn->context;
	KDAT_POOL_BUF *buf;

	atomic_long_inc(&c->a->stats[KI_STAT_LOGINS]);
	/* Pairs with the address dependency of readers of the name. litmus: iser-name */
	smp_store_release(&c->iqn,
			  kstrdup(conn->sess->sess_ops->InitiatorName, GFP_KERNEL));
	if (ki_credit_begin(c))
		ki_conn_break(c, "no receive buffers are left for its window");
	for (;;) {
		spin_lock_bh(&c->lock);
		buf = list_first_entry_or_null(&c->unread, KDAT_POOL_BUF, link);
		if (buf)
			list_del(&buf->link);
		else
			/*
			 * Pairs with ki_received(): earlier messages are done.
			 * litmus: iser-state
			 */
			smp_store_release(&c->state, KI_FULL);
		spin_unlock_bh(&c->lock);
		if (!buf)
			break;
		mutex_lock(&c->comp->mutex);
		ki_pdu(c, buf);
		mutex_unlock(&c->comp->mutex);
	}
	if (!ki_conn_must_end(conn))
		wait_event_interruptible(c->wq, READ_ONCE(c->down));
}
