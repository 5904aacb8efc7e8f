// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kdapl_isert_kunit.ko: PDUs of an honest initiator, see raw.h. */
#include <linux/module.h>
#include <scsi/scsi.h>
#include "raw.h"

#define TARGET	"iqn.2026-01.test:raw"

/* Build a PDU in r->made. The others that build one begin with this. */
struct raw_pdu *raw_build(struct raw *r, u8 opcode)
{
	struct raw_pdu *pdu = &r->made;

	memset(pdu, 0, sizeof(*pdu));
	pdu->iser.flags = ISCSI_CTRL;
	pdu->hdr.opcode = opcode;
	pdu->hdr.flags = ISCSI_FLAG_CMD_FINAL;
	pdu->hdr.itt = (__force itt_t)cpu_to_be32(r->itt++);
	pdu->hdr.exp_statsn = cpu_to_be32(r->exp_statsn);
	return pdu;
}
EXPORT_SYMBOL_GPL(raw_build);

/* ---- Login ---------------------------------------------------------------------- */

static void raw_text(struct raw_pdu *pdu, u32 *len, const char *text)
{
	memcpy(pdu->data + *len, text, strlen(text) + 1);
	*len += strlen(text) + 1;
}

/* All keys that LIO would ask for, so that one request is enough. */
static const char * const raw_keys[] = {
	"InitiatorName=iqn.2026-01.test:hostile",
	"HeaderDigest=None",
	"DataDigest=None",
	"RDMAExtensions=Yes",
	"ImmediateData=Yes",
	"MaxConnections=8",
	"MaxBurstLength=262144",
	"FirstBurstLength=65536",
	"DefaultTime2Wait=2",
	"DefaultTime2Retain=20",
	"MaxOutstandingR2T=1",
	"ErrorRecoveryLevel=0",
	"DataPDUInOrder=Yes",
	"DataSequenceInOrder=Yes",
	NULL
};

static const char *raw_segments(enum raw_how how)
{
	switch (how) {
	case RAW_SHORT_SEGMENTS:
		return "TargetRecvDataSegmentLength=512";
	case RAW_LONG_SEGMENTS:
		return "TargetRecvDataSegmentLength=262144";
	default:
		return "TargetRecvDataSegmentLength=8192";
	}
}

/* The only request of a login without security. @len is set to its length. */
struct raw_pdu *raw_build_login(struct raw *r, enum raw_how how, u32 *len)
{
	struct raw_pdu *pdu = raw_build(r, ISCSI_OP_LOGIN | ISCSI_OP_IMMEDIATE);
	struct iscsi_login_req *req = (struct iscsi_login_req *)&pdu->hdr;
	__be32 session = cpu_to_be32(r->session);
	const char * const *key;
	u32 text = 0;

	req->flags = ISCSI_FLAG_LOGIN_TRANSIT | ISCSI_OP_PARMS_NEGOTIATION_STAGE << 2 |
		     ISCSI_FULL_FEATURE_PHASE;
	/* A qualifier of our own makes each a session of its own. */
	req->isid[0] = 0x80;
	memcpy(&req->isid[1], &session, sizeof(session));
	req->cmdsn = cpu_to_be32(r->cmdsn);
	for (key = raw_keys; *key; key++)
		raw_text(pdu, &text, *key);
	raw_text(pdu, &text, raw_segments(how));
	raw_text(pdu, &text, how == RAW_UNSOLICITED || how == RAW_SHORT_SEGMENTS ?
			     "InitialR2T=No" : "InitialR2T=Yes");
	raw_text(pdu, &text, how == RAW_SHORT ? "InitiatorRecvDataSegmentLength=512" :
						"InitiatorRecvDataSegmentLength=1024");
	if (how == RAW_DISCOVERY) {
		raw_text(pdu, &text, "SessionType=Discovery");
	} else {
		raw_text(pdu, &text, "SessionType=Normal");
		raw_text(pdu, &text, "TargetName=" TARGET);
	}
	hton24(req->dlength, text);
	*len = RAW_HEADERS + ALIGN(text, 4);
	return pdu;
}
EXPORT_SYMBOL_GPL(raw_build_login);

/* Send the first request of a login; unless @whole, the target is to wait for a second one. */
void raw_request_login(struct raw *r, enum raw_how how, bool whole)
{
	u32 len;

	r->pdu[0] = raw_login_pdu(r, how, &len);
	if (!whole)
		r->pdu[0].hdr.flags = ISCSI_OP_PARMS_NEGOTIATION_STAGE << 2;
	KUNIT_ASSERT_TRUE(r->s->test, raw_send(r, r->pdu, len));
}
EXPORT_SYMBOL_GPL(raw_request_login);

/* Log in on a connection that is there. */
void raw_log_in(struct raw *r, enum raw_how how)
{
	struct kunit *test = r->s->test;
	struct iscsi_login_rsp *rsp;

	raw_request_login(r, how, true);
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	rsp = (struct iscsi_login_rsp *)&r->got.hdr;
	KUNIT_ASSERT_EQ_MSG(test, rsp->status_class, 0, "status %#x", rsp->status_detail);
	KUNIT_ASSERT_TRUE(test, rsp->flags & ISCSI_FLAG_LOGIN_TRANSIT);
}
EXPORT_SYMBOL_GPL(raw_log_in);

/* Connect and log in. */
struct raw *raw_login_how(struct kunit *test, enum raw_how how)
{
	struct raw *r = raw_connect(test);

	raw_log_in(r, how);
	return r;
}
EXPORT_SYMBOL_GPL(raw_login_how);

/* LIO answers, and makes the session then: it is there when this returns. */
struct raw *raw_login(struct kunit *test)
{
	struct raw *r = raw_login_how(test, RAW_SOLICITED);

	raw_expect_alive(r);
	return r;
}
EXPORT_SYMBOL_GPL(raw_login);

/* As raw_login(), with a name of an initiator that forges lines and commands a terminal. */
struct raw *raw_login_odd(struct kunit *test)
{
	static const char begin[] = "InitiatorName=iqn.2026-01.test:";
	struct raw *r = raw_connect(test);
	struct raw_pdu *pdu;
	u32 len;

	pdu = raw_build_login(r, RAW_SOLICITED, &len);
	memcpy(pdu->data + strlen(begin), " a\n\033\r\177=", strlen("hostile"));
	KUNIT_ASSERT_TRUE(test, raw_send(r, pdu, len));
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	raw_expect_alive(r);
	return r;
}
EXPORT_SYMBOL_GPL(raw_login_odd);

/* ---- After it ------------------------------------------------------------------- */

struct raw_pdu *raw_build_nop(struct raw *r, bool immediate)
{
	struct raw_pdu *pdu = raw_build(r, ISCSI_OP_NOOP_OUT |
					(immediate ? ISCSI_OP_IMMEDIATE : 0));
	struct iscsi_nopout *nop = (struct iscsi_nopout *)&pdu->hdr;

	nop->ttt = RAW_NONE;
	nop->cmdsn = cpu_to_be32(r->cmdsn);
	if (!immediate)
		r->cmdsn++;
	return pdu;
}
EXPORT_SYMBOL_GPL(raw_build_nop);

static struct raw_pdu *raw_scsi(struct raw *r, u8 operation, u8 direction, u32 blocks)
{
	struct raw_pdu *pdu = raw_build(r, ISCSI_OP_SCSI_CMD);
	struct iscsi_scsi_req *req = (struct iscsi_scsi_req *)&pdu->hdr;

	req->flags = ISCSI_FLAG_CMD_FINAL | direction | ISCSI_ATTR_SIMPLE;
	req->data_length = cpu_to_be32(blocks * RAW_BLOCK);
	req->cmdsn = cpu_to_be32(r->cmdsn++);
	req->cdb[0] = operation;
	req->cdb[8] = blocks;
	return pdu;
}

/* A SCSI Write of @blocks in r->data. */
struct raw_pdu *raw_build_write(struct raw *r, u32 blocks)
{
	struct raw_pdu *pdu = raw_scsi(r, WRITE_10, ISCSI_FLAG_CMD_WRITE, blocks);

	pdu->iser.flags |= ISER_WSV;
	pdu->iser.write_stag = cpu_to_be32(r->data->rmr_context);
	pdu->iser.write_va = cpu_to_be64((uintptr_t)r->data->va);
	return pdu;
}
EXPORT_SYMBOL_GPL(raw_build_write);

/* A SCSI Read of @blocks to r->data. */
struct raw_pdu *raw_build_read(struct raw *r, u32 blocks)
{
	struct raw_pdu *pdu = raw_scsi(r, READ_10, ISCSI_FLAG_CMD_READ, blocks);

	pdu->iser.flags |= ISER_RSV;
	pdu->iser.read_stag = cpu_to_be32(r->data->rmr_context);
	pdu->iser.read_va = cpu_to_be64((uintptr_t)r->data->va);
	return pdu;
}
EXPORT_SYMBOL_GPL(raw_build_read);

struct raw_pdu *raw_build_logout(struct raw *r)
{
	struct raw_pdu *pdu = raw_build(r, ISCSI_OP_LOGOUT | ISCSI_OP_IMMEDIATE);

	((struct iscsi_logout *)&pdu->hdr)->cmdsn = cpu_to_be32(r->cmdsn);
	return pdu;
}
EXPORT_SYMBOL_GPL(raw_build_logout);

/* Task management of LUN 0, about the command with the tag @rtt if it is ABORT TASK. */
struct raw_pdu *raw_build_task(struct raw *r, u8 function, itt_t rtt)
{
	struct raw_pdu *pdu = raw_build(r, ISCSI_OP_SCSI_TMFUNC | ISCSI_OP_IMMEDIATE);
	struct iscsi_tm *tm = (struct iscsi_tm *)&pdu->hdr;

	tm->flags = ISCSI_FLAG_CMD_FINAL | function;
	tm->rtt = rtt;
	tm->cmdsn = cpu_to_be32(r->cmdsn);
	tm->refcmdsn = cpu_to_be32(r->cmdsn - 1);
	return pdu;
}
EXPORT_SYMBOL_GPL(raw_build_task);

/* Make a PDU one that waits for its turn. */
void raw_in_turn(struct raw *r, struct raw_pdu *pdu)
{
	pdu->hdr.opcode &= ~ISCSI_OP_IMMEDIATE;
	((struct iscsi_nopout *)&pdu->hdr)->cmdsn = cpu_to_be32(r->cmdsn++);
}
EXPORT_SYMBOL_GPL(raw_in_turn);

/* Data that belongs to @write, the last that nobody asks for. */
struct raw_pdu raw_data_out(const struct raw_pdu *write, u32 offset, u32 len)
{
	struct raw_pdu pdu = { .iser.flags = ISCSI_CTRL };
	struct iscsi_data *hdr = (struct iscsi_data *)&pdu.hdr;

	hdr->opcode = ISCSI_OP_SCSI_DATA_OUT;
	hdr->flags = ISCSI_FLAG_CMD_FINAL;
	hdr->itt = write->hdr.itt;
	hdr->ttt = RAW_NONE;
	hdr->exp_statsn = write->hdr.exp_statsn;
	hdr->offset = cpu_to_be32(offset);
	hton24(hdr->dlength, len);
	return pdu;
}
EXPORT_SYMBOL_GPL(raw_data_out);

/* Is a NOP-Out answered? */
bool raw_ping(struct raw *r)
{
	struct raw_pdu pdu = raw_nop(r, true);

	if (!raw_send(r, &pdu, RAW_HEADERS))
		return false;
	do {
		if (!raw_receive(r, ISCSI_OP_NOOP_IN, KD_TIMEOUT_MS))
			return false;
	} while (r->got.hdr.itt != pdu.hdr.itt);
	return true;
}
EXPORT_SYMBOL_GPL(raw_ping);

void raw_expect_alive(struct raw *r)
{
	KUNIT_EXPECT_TRUE_MSG(r->s->test, raw_ping(r), "no NOP-In");
}
EXPORT_SYMBOL_GPL(raw_expect_alive);
