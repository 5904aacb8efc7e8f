// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PDUs that break the protocol in full feature phase. LIO trusts its transport to keep such
 * PDUs away, so PDUs that ki_fault() finds fault with are not given to LIO.
 */
#include <scsi/scsi_common.h>
#include <scsi/scsi_proto.h>
#include "isert.h"

/*
 * Do the lengths in a PDU fit what was received? Of a PDU without a whole header an earlier one's
 * are read: they are too long in any case.
 */
static bool ki_lengths_ok(KDAT_POOL_BUF *buf)
{
	struct iscsi_hdr *hdr = ki_hdr(buf);
	struct iscsi_ecdb_ahdr *ahs = (void *)(hdr + 1);
	u32 ahs_len = hdr->hlength * 4;

	if (KI_HEADERS + ahs_len + ntoh24(hdr->dlength) > buf->length)
		return false;
	/* LIO does not check the length of an extended CDB. */
	return !ahs_len || (be16_to_cpu(ahs->ahslength) &&
			    be16_to_cpu(ahs->ahslength) + 3 <= ahs_len);
}

/* Does the PDU contain the whole CDB? LIO copies as much as the CDB's opcode says. */
static bool ki_cdb_ok(const struct iscsi_hdr *hdr)
{
	const struct iscsi_scsi_req *req = (const struct iscsi_scsi_req *)hdr;
	const struct iscsi_ecdb_ahdr *ahs = (const void *)(hdr + 1);
	unsigned int len = ISCSI_CDB_SIZE;

	if (hdr->hlength)
		len += be16_to_cpu(ahs->ahslength) - 1;
	return scsi_command_size(req->cdb) <= len;
}

/* Return what is wrong with a SCSI command, or NULL. */
static const char *ki_scsi_fault(const struct iser_ctrl *iser,
				 const struct iscsi_hdr *hdr)
{
	const struct iscsi_scsi_req *req = (const struct iscsi_scsi_req *)hdr;

	if (!ki_cdb_ok(hdr))
		return "a CDB is longer than its PDU";
	/* LIO would execute such a command twice. */
	if (ntoh24(hdr->dlength) && !(hdr->flags & ISCSI_FLAG_CMD_WRITE))
		return "data with a command that writes nothing";
	if (hdr->flags & ISCSI_FLAG_CMD_READ && req->data_length &&
	    !(iser->flags & ISER_RSV))
		return "a read without memory to write to";
	return NULL;
}

/*
 * Return what is wrong with a logout, or NULL. LIO counts each logout that ends @c, so there
 * may be only one.
 */
static const char *ki_logout_fault(struct ki_conn *c, const struct iscsi_hdr *hdr)
{
	const struct iscsi_logout *req = (const struct iscsi_logout *)hdr;
	u8 reason = req->flags & ISCSI_FLAG_LOGOUT_REASON_MASK;

	if (reason != ISCSI_LOGOUT_REASON_CLOSE_SESSION &&
	    (reason != ISCSI_LOGOUT_REASON_CLOSE_CONNECTION ||
	     be16_to_cpu(req->cid) != c->conn->cid))
		return NULL;
	if (c->logout_seen)
		return "it logs out twice";
	c->logout_seen = true;
	return NULL;
}

/* Return what is wrong with a PDU of @c, or NULL. Context: process, with comp->mutex held. */
const char *ki_fault(struct ki_conn *c, KDAT_POOL_BUF *buf)
{
	struct iser_ctrl *iser = (struct iser_ctrl *)buf->va;
	struct iscsi_hdr *hdr = ki_hdr(buf);
	u8 opcode;

	if (!ki_lengths_ok(buf))
		return "a PDU does not have the length that it tells";
	if ((iser->flags & 0xf0) != ISCSI_CTRL)
		return "a message is no PDU of iSCSI";
	opcode = hdr->opcode & ISCSI_OPCODE_MASK;
	if (c->conn->sess->sess_ops->SessionType && opcode != ISCSI_OP_TEXT &&
	    opcode != ISCSI_OP_LOGOUT && opcode != ISCSI_OP_NOOP_OUT)
		return "a command in a discovery session";
	if (opcode == ISCSI_OP_SCSI_CMD)
		return ki_scsi_fault(iser, hdr);
	return opcode == ISCSI_OP_LOGOUT ? ki_logout_fault(c, hdr) : NULL;
}
