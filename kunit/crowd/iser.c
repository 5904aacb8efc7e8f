// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The protocol of iSER targets: as little of iSCSI as an initiator needs to read LUN 0. It
 * does not answer when it is pinged, so a target may end it after a while (LIO: 45 s).
 */
#include <linux/err.h>
#include <scsi/iscsi_proto.h>
#include <scsi/iser.h>
#include <scsi/scsi_proto.h>
#include "crowd.h"

#define ISER_BLOCK	512
#define ISER_CMDSN	1

struct iser_pdu {
	struct iser_ctrl iser;
	struct iscsi_hdr hdr;
} __packed;

/* All keys that LIO would ask for, so that one request is enough. */
static const char iser_keys[] =
	"HeaderDigest=None\0DataDigest=None\0RDMAExtensions=Yes\0"
	"ImmediateData=No\0InitialR2T=Yes\0MaxConnections=1\0"
	"MaxBurstLength=262144\0FirstBurstLength=65536\0"
	"DefaultTime2Wait=2\0DefaultTime2Retain=0\0MaxOutstandingR2T=1\0"
	"ErrorRecoveryLevel=0\0DataPDUInOrder=Yes\0DataSequenceInOrder=Yes\0"
	"InitiatorRecvDataSegmentLength=1024\0TargetRecvDataSegmentLength=8192\0"
	"SessionType=Normal";

/* Write the only request of a login. Return its length. */
static size_t iser_login_request(struct crowd_client *client)
{
	struct iser_pdu *pdu = crowd.buf + CROWD_HELLO_AT;
	struct iscsi_login_req *req = (struct iscsi_login_req *)&pdu->hdr;
	size_t room = CROWD_SEND_AT - CROWD_HELLO_AT - sizeof(*pdu);
	__be32 session = cpu_to_be32(client->number);
	char *text = (char *)(pdu + 1);
	size_t len = sizeof(iser_keys);

	memset(pdu, 0, sizeof(*pdu) + room);
	pdu->iser.flags = ISCSI_CTRL;
	req->opcode = ISCSI_OP_LOGIN | ISCSI_OP_IMMEDIATE;
	req->flags = ISCSI_FLAG_LOGIN_TRANSIT | ISCSI_OP_PARMS_NEGOTIATION_STAGE << 2 |
		     ISCSI_FULL_FEATURE_PHASE;
	req->isid[0] = 0x80;
	memcpy(&req->isid[1], &session, sizeof(session));
	req->cmdsn = cpu_to_be32(ISER_CMDSN);
	memcpy(text, iser_keys, len);
	len += scnprintf(text + len, room - len, "InitiatorName=iqn.2026-01.crowd:%u",
			 client->number) + 1;
	len += scnprintf(text + len, room - len, "TargetName=%s", crowd_subsystem) + 1;
	hton24(req->dlength, len);
	return sizeof(*pdu) + ALIGN(len, 4);
}

static int iser_start(struct crowd_client *client)
{
	/* Keys stay valid, since all requests name the same memory. */
	struct iser_cm_hdr hello = { .flags = ISER_SEND_W_INV_NOT_SUP };
	const struct iser_pdu *answer = crowd.buf + CROWD_ANSWER_AT;
	const struct iscsi_login_rsp *rsp = (struct iscsi_login_rsp *)&answer->hdr;
	struct crowd_conn *conn;
	int err;

	conn = crowd_connect(client, crowd_window + 1, &hello, sizeof(hello));
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	client->conn[0] = conn;
	err = crowd_ask(conn, iser_login_request(client));
	if (err)
		return err;
	if (rsp->opcode != ISCSI_OP_LOGIN_RSP || rsp->status_class ||
	    !(rsp->flags & ISCSI_FLAG_LOGIN_TRANSIT)) {
		pr_err("kdapl_crowd: login: status %#x %#x\n", rsp->status_class,
		       rsp->status_detail);
		return -EACCES;
	}
	conn->window = crowd_window;
	conn->credits = be32_to_cpu(rsp->max_cmdsn) - ISER_CMDSN + 1;
	return 0;
}

/* Each command has a tag and a number of its own. */
static void iser_prepare(void *request, u32 n)
{
	struct iser_pdu *pdu = request;
	struct iscsi_scsi_req *req = (struct iscsi_scsi_req *)&pdu->hdr;

	memset(pdu, 0, sizeof(*pdu));
	pdu->iser.flags = ISCSI_CTRL | ISER_RSV;
	pdu->iser.read_stag = cpu_to_be32(crowd.rmr_context);
	pdu->iser.read_va = cpu_to_be64(crowd.addr + CROWD_DATA_AT);
	req->opcode = ISCSI_OP_SCSI_CMD;
	req->flags = ISCSI_FLAG_CMD_FINAL | ISCSI_FLAG_CMD_READ | ISCSI_ATTR_SIMPLE;
	req->itt = (__force itt_t)cpu_to_be32(n);
	req->data_length = cpu_to_be32(crowd_length);
	req->cmdsn = cpu_to_be32(ISER_CMDSN + n);
	req->cdb[0] = READ_10;
	req->cdb[8] = crowd_length / ISER_BLOCK;
}

/* Answers raise MaxCmdSN by one. */
static unsigned int iser_credits(const void *message)
{
	return 1;
}

static bool iser_good(const void *message)
{
	const struct iser_pdu *pdu = message;
	const struct iscsi_scsi_rsp *rsp = (const struct iscsi_scsi_rsp *)&pdu->hdr;

	return rsp->opcode == ISCSI_OP_SCSI_CMD_RSP && !rsp->response &&
	       !rsp->cmd_status;
}

const struct crowd_protocol crowd_iser = {
	.name = "iser",
	.start = iser_start,
	.prepare = iser_prepare,
	.credits = iser_credits,
	.good = iser_good,
	.request_len = sizeof(struct iser_pdu),
};
