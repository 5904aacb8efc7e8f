// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: PDUs in full feature phase that no honest initiator
 * sends. Each ends its connection, or is refused; the connection beside it goes on.
 */
#include <linux/module.h>
#include <scsi/scsi.h>
#include "raw.h"

/* ---- One PDU -------------------------------------------------------------------- */

enum lengths {
	SHORT_HEADERS,
	NO_ISER,
	LONG_DATA,
	SLIGHTLY_LONG_DATA,
	LONG_AHS,
	AHS_OF_NO_LENGTH,
	EXTENDED_CDB,
	VARIABLE_CDB,
	VARIABLE_CDB_WITH_AHS,
};

enum command {
	UNKNOWN_OPCODE,
	TARGET_OPCODE,
	LOGIN_AGAIN,
	READ_WITH_DATA,
	READ_TO_NOWHERE,
	WRITE_FROM_NOWHERE,
	DATA_UNASKED,
	ANSWER_TO_NO_NOP,
	MORE_OF_NO_TEXT,
	UNKNOWN_TASK_FUNCTION,
};

static KD_CHOICES(gen_lengths, kd_gen_any_ia_and,
	[SHORT_HEADERS] = "shorter than headers",
	[NO_ISER] = "no iSER header",
	[LONG_DATA] = "data longer than the PDU",
	[SLIGHTLY_LONG_DATA] = "data longer than the PDU by a word",
	[LONG_AHS] = "additional headers longer than the PDU",
	[AHS_OF_NO_LENGTH] = "additional header without length",
	[EXTENDED_CDB] = "extended CDB longer than its header",
	[VARIABLE_CDB] = "CDB longer than the PDU",
	[VARIABLE_CDB_WITH_AHS] = "CDB longer than its extension")

static KD_CHOICES(gen_command, kd_gen_any_ia_and,
	[UNKNOWN_OPCODE] = "unknown opcode",
	[TARGET_OPCODE] = "opcode of a target",
	[LOGIN_AGAIN] = "login in full feature phase",
	[READ_WITH_DATA] = "data with a read",
	[READ_TO_NOWHERE] = "a read without memory",
	[WRITE_FROM_NOWHERE] = "a write without memory",
	[DATA_UNASKED] = "data that nobody asked for",
	[ANSWER_TO_NO_NOP] = "answer to no NOP-In",
	[MORE_OF_NO_TEXT] = "more of no text",
	[UNKNOWN_TASK_FUNCTION] = "unknown task management")

/* A command whose CDB is @cdb bytes long, of which @ahs come behind the headers. */
static struct raw_pdu long_cdb(struct raw *r, unsigned int cdb, unsigned int ahs)
{
	struct raw_pdu pdu = raw_read(r, 1);
	struct iscsi_scsi_req *req = (struct iscsi_scsi_req *)&pdu.hdr;
	struct iscsi_ecdb_ahdr *ext = (struct iscsi_ecdb_ahdr *)pdu.data;

	req->cdb[0] = VARIABLE_LENGTH_CMD;
	req->cdb[7] = cdb - 8;
	if (ahs) {
		pdu.hdr.hlength = DIV_ROUND_UP(ahs + 4, 4);
		ext->ahslength = cpu_to_be16(ahs + 1);
		ext->ahstype = ISCSI_AHSTYPE_CDB;
	}
	return pdu;
}

/* Make @pdu one whose lengths are wrong as @kind says. Return how long it really is. */
static u32 make_lengths(struct raw *r, struct raw_pdu *pdu, enum lengths kind)
{
	*pdu = raw_nop(r, true);
	switch (kind) {
	case SHORT_HEADERS:
		return RAW_HEADERS - 1;
	case NO_ISER:
		pdu->iser.flags = 0x20;
		return RAW_HEADERS;
	case LONG_DATA:
		hton24(pdu->hdr.dlength, 0xffffff);
		return RAW_HEADERS + 512;
	case SLIGHTLY_LONG_DATA:
		hton24(pdu->hdr.dlength, 516);
		return RAW_HEADERS + 512;
	case LONG_AHS:
		pdu->hdr.hlength = 0xff;
		return RAW_HEADERS + 512;
	case AHS_OF_NO_LENGTH:
		*pdu = raw_write(r, 1);
		pdu->hdr.hlength = 1;
		return RAW_HEADERS + 4;
	case EXTENDED_CDB:
		*pdu = long_cdb(r, 32, 16);
		((struct iscsi_ecdb_ahdr *)pdu->data)->ahslength = cpu_to_be16(0xfff0);
		return RAW_HEADERS + 20;
	case VARIABLE_CDB:
		*pdu = long_cdb(r, 260, 0);
		return RAW_HEADERS;
	case VARIABLE_CDB_WITH_AHS:
		*pdu = long_cdb(r, 260, 16);
		return RAW_HEADERS + 20;
	}
	return 0;
}

/* Make @pdu what @kind says, with lengths that are right. Return its length. */
static u32 make_command(struct raw *r, struct raw_pdu *pdu, enum command kind)
{
	u32 len = RAW_HEADERS;

	switch (kind) {
	case UNKNOWN_OPCODE:
		*pdu = raw_make(r, 0x1c | ISCSI_OP_IMMEDIATE);
		break;
	case TARGET_OPCODE:
		*pdu = raw_make(r, ISCSI_OP_SCSI_DATA_IN);
		break;
	case LOGIN_AGAIN:
		*pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
		break;
	case READ_WITH_DATA:
		*pdu = raw_read(r, 1);
		hton24(pdu->hdr.dlength, RAW_BLOCK);
		len += RAW_BLOCK;
		break;
	case READ_TO_NOWHERE:
		*pdu = raw_read(r, 1);
		pdu->iser.flags = ISCSI_CTRL;
		break;
	case WRITE_FROM_NOWHERE:
		*pdu = raw_write(r, 1);
		pdu->iser.flags = ISCSI_CTRL;
		break;
	case DATA_UNASKED:
		*pdu = raw_write(r, 1);
		*pdu = raw_data_out(pdu, 0, RAW_BLOCK);
		len += RAW_BLOCK;
		break;
	case ANSWER_TO_NO_NOP:
		*pdu = raw_nop(r, true);
		((struct iscsi_nopout *)&pdu->hdr)->ttt = 0;
		pdu->hdr.itt = RESERVED_ITT;
		break;
	case MORE_OF_NO_TEXT:
		*pdu = raw_make(r, ISCSI_OP_TEXT | ISCSI_OP_IMMEDIATE);
		((struct iscsi_text *)&pdu->hdr)->ttt = cpu_to_be32(7);
		break;
	case UNKNOWN_TASK_FUNCTION:
		*pdu = raw_make(r, ISCSI_OP_SCSI_TMFUNC | ISCSI_OP_IMMEDIATE);
		pdu->hdr.flags |= 0x7f;
		break;
	}
	return len;
}

static void expect_cut(struct kunit *test, bool lengths)
{
	const struct kd_param *p = test->param_value;
	struct raw *other = raw_login(test), *r = raw_login(test);
	u32 len;

	len = lengths ? make_lengths(r, r->pdu, p->choice) :
			make_command(r, r->pdu, p->choice);
	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, len));
	raw_expect_cut(r);
	raw_expect_alive(other);
}

static void pdu_lengths(struct kunit *test)
{
	expect_cut(test, true);
}

static void pdu_commands(struct kunit *test)
{
	expect_cut(test, false);
}

/* A message that no receive buffer can take. */
static void pdu_longer_than_a_buffer(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_login(test);
	DAT_LMR_TRIPLET seg = kd_seg(r->s->buf, 0, SZ_32K);

	KD_ASSERT_OK(test, dat_ep_post_send(r->s->ep, 1, &seg, kd_cookie(1),
					    DAT_COMPLETION_DEFAULT_FLAG));
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	raw_expect_alive(other);
}

/* ---- What is refused without an end --------------------------------------------- */

enum refused {
	MUCH_IMMEDIATE_DATA,
	BOTH_DIRECTIONS,
	IMMEDIATE_COMMAND,
	LENGTH_WITHOUT_DIRECTION,
};

static KD_CHOICES(gen_refused, kd_gen_any_ia_and,
	[MUCH_IMMEDIATE_DATA] = "more immediate data than is to be written",
	[BOTH_DIRECTIONS] = "reads and writes",
	[IMMEDIATE_COMMAND] = "immediate command",
	[LENGTH_WITHOUT_DIRECTION] = "data in no direction")

static void pdu_refused(struct kunit *test)
{
	const struct kd_param *p = test->param_value;
	struct raw *r = raw_login(test);
	struct raw_pdu pdu = raw_write(r, 1);
	u32 len = RAW_HEADERS;

	switch (p->choice) {
	case MUCH_IMMEDIATE_DATA:
		hton24(pdu.hdr.dlength, 800);
		len += 800;
		break;
	case BOTH_DIRECTIONS:
		pdu.iser.flags |= ISER_RSV;
		pdu.hdr.flags |= ISCSI_FLAG_CMD_READ;
		break;
	case IMMEDIATE_COMMAND:
		pdu.hdr.opcode |= ISCSI_OP_IMMEDIATE;
		break;
	case LENGTH_WITHOUT_DIRECTION:
		pdu.hdr.flags &= ~ISCSI_FLAG_CMD_WRITE;
		break;
	}
	KUNIT_ASSERT_TRUE(test, raw_send(r, &pdu, len));
	KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_REJECT, KD_TIMEOUT_MS));
	/* The headers come back, so that the initiator knows what was refused. */
	KUNIT_EXPECT_EQ(test, ntoh24(r->got.hdr.dlength), ISCSI_HDR_LEN);
	KUNIT_EXPECT_MEMEQ(test, r->got.data, &pdu.hdr, ISCSI_HDR_LEN);
	raw_expect_alive(r);
}

/* ---- Honest ones ---------------------------------------------------------------- */

static void expect_answer(struct raw *r, const struct raw_pdu *pdu, u32 len)
{
	struct kunit *test = r->s->test;

	KUNIT_ASSERT_TRUE(test, raw_send(r, pdu, len));
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, r->got.hdr.itt == pdu->hdr.itt);
	KUNIT_EXPECT_EQ(test, ((struct iscsi_scsi_rsp *)&r->got.hdr)->cmd_status, 0);
}

/* Write a block as @how has it, and read it back. */
static void write_and_read(struct kunit *test, struct raw *r, int how)
{
	struct raw_pdu *pdu = r->pdu;
	u32 len[2] = { RAW_HEADERS, RAW_HEADERS };

	pdu[0] = raw_write(r, 1);
	if (how == 0) {
		kd_fill(r->data->va, RAW_BLOCK, how);
	} else if (how == 1) {
		kd_fill(pdu[0].data, RAW_BLOCK, how);
		hton24(pdu[0].hdr.dlength, RAW_BLOCK);
		len[0] += RAW_BLOCK;
	} else {
		pdu[0].hdr.flags &= ~ISCSI_FLAG_CMD_FINAL;
		pdu[1] = raw_data_out(&pdu[0], 0, RAW_BLOCK);
		kd_fill(pdu[1].data, RAW_BLOCK, how);
		len[1] += RAW_BLOCK;
		KUNIT_ASSERT_TRUE(test, raw_send(r, &pdu[0], len[0]));
		pdu[0] = pdu[1];
		len[0] = len[1];
	}
	expect_answer(r, &pdu[0], len[0]);
	memset(r->data->va, 0, RAW_BLOCK);
	pdu[0] = raw_read(r, 1);
	expect_answer(r, &pdu[0], RAW_HEADERS);
	KUNIT_EXPECT_TRUE(test, kd_has_pattern(r->data->va, RAW_BLOCK, how));
}

/* PDUs that an initiator may send are answered: what the others are compared with. */
static void pdu_honest(struct kunit *test)
{
	struct raw *r = raw_login_how(test, RAW_UNSOLICITED);
	struct raw_pdu *pdu = r->pdu;
	int how;

	raw_expect_alive(r);
	for (how = 0; how < 3; how++)
		write_and_read(test, r, how);
	/* Room for more than the CDB wants, and a CDB that wants nothing. */
	*pdu = raw_read(r, 1);
	((struct iscsi_scsi_req *)&pdu->hdr)->cdb[0] = TEST_UNIT_READY;
	expect_answer(r, pdu, RAW_HEADERS);
	/* The same, and data that it does not take. */
	*pdu = raw_write(r, 1);
	((struct iscsi_scsi_req *)&pdu->hdr)->cdb[0] = TEST_UNIT_READY;
	hton24(pdu->hdr.dlength, RAW_BLOCK);
	expect_answer(r, pdu, RAW_HEADERS + RAW_BLOCK);
	raw_expect_alive(r);
}

/* ---- Several PDUs at once, so that the first is being worked on ------------------ */

/* LIO takes the tag of any command for that of a NOP-In, and frees it. */
static void pdu_nop_answers_a_read(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_login(test);
	struct raw_pdu *pdu = r->pdu;
	u32 len[KDAT_MAX_REQUESTS];
	unsigned int i;

	raw_expect_alive(r);
	for (i = 0; i < KDAT_MAX_REQUESTS; i++) {
		len[i] = RAW_HEADERS;
		if (i % 2) {
			pdu[i] = raw_nop(r, true);
			((struct iscsi_nopout *)&pdu[i].hdr)->ttt = cpu_to_be32(i / 2);
			pdu[i].hdr.itt = RESERVED_ITT;
		} else {
			pdu[i] = raw_read(r, 8);
		}
	}
	KUNIT_EXPECT_TRUE(test, raw_send_all(r, pdu, len, KDAT_MAX_REQUESTS));
	raw_expect_cut(r);
	raw_expect_alive(other);
}

/*
 * The target fetches the data of a write, and the initiator sends it as well. If that comes when
 * the write has been answered LIO does not know the tag any more; it is not written in any case.
 */
static void pdu_of_data_being_fetched(struct kunit *test)
{
	const u32 len[2] = { RAW_HEADERS, RAW_HEADERS + RAW_BLOCK };
	struct raw *other = raw_login(test), *r = raw_login_how(test, RAW_UNSOLICITED);
	struct raw_pdu *pdu = r->pdu;

	pdu[0] = raw_write(r, 1);
	pdu[1] = raw_data_out(&pdu[0], 0, RAW_BLOCK);
	kd_fill(r->data->va, RAW_BLOCK, 1);
	kd_fill(pdu[1].data, RAW_BLOCK, 2);
	KUNIT_EXPECT_TRUE(test, raw_send_all(r, pdu, len, 2));
	if (!raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS)) {
		raw_expect_cut(r);
	} else if (raw_ping(r)) {
		memset(r->data->va, 0, RAW_BLOCK);
		pdu[0] = raw_read(r, 1);
		expect_answer(r, &pdu[0], RAW_HEADERS);
		KUNIT_EXPECT_TRUE(test, kd_has_pattern(r->data->va, RAW_BLOCK, 1));
	} else {
		/* It was not looked at before the Send of the answer had completed. */
		raw_expect_cut(r);
	}
	raw_expect_alive(other);
}

/* A text request with the tag of a command that is being executed. */
static void pdu_text_of_a_write(struct kunit *test)
{
	static const u32 len[2] = { RAW_HEADERS, RAW_HEADERS };
	struct raw *other = raw_login(test), *r = raw_login(test);
	struct raw_pdu *pdu = r->pdu;

	pdu[0] = raw_write(r, 8);
	pdu[1] = raw_make(r, ISCSI_OP_TEXT | ISCSI_OP_IMMEDIATE);
	pdu[1].hdr.itt = pdu[0].hdr.itt;
	((struct iscsi_text *)&pdu[1].hdr)->ttt = cpu_to_be32(7);
	KUNIT_EXPECT_TRUE(test, raw_send_all(r, pdu, len, 2));
	raw_expect_cut(r);
	raw_expect_alive(other);
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(pdu_honest, kd_gen_any_ia),
	KUNIT_CASE_PARAM(pdu_lengths, gen_lengths),
	KUNIT_CASE_PARAM(pdu_commands, gen_command),
	KUNIT_CASE_PARAM(pdu_longer_than_a_buffer, kd_gen_any_ia),
	KUNIT_CASE_PARAM(pdu_refused, gen_refused),
	KUNIT_CASE_PARAM(pdu_nop_answers_a_read, kd_gen_any_ia),
	KUNIT_CASE_PARAM(pdu_of_data_being_fetched, kd_gen_any_ia),
	KUNIT_CASE_PARAM(pdu_text_of_a_write, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-hostile", isert_cases, "kdapl_isert.ko: hostile initiators", RAW_TARGET);
