// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: commands that are aborted, out of turn, of a tag that is in
 * use, or whose data does not come as it should; and what initiators may ask beside them.
 */
#include <linux/module.h>
#include <scsi/scsi.h>
#include "device.h"
#include "raw.h"

/* Is the connection fine, or has it ended? */
static void expect_alive_or_down(struct raw *r)
{
	if (!raw_ping(r))
		KUNIT_EXPECT_TRUE(r->s->test, raw_is_down(r, KD_TIMEOUT_MS));
}

/* A write of two blocks, the data of which is to come in PDUs of its own. */
static struct raw_pdu write_later(struct raw *r)
{
	struct raw_pdu pdu = raw_write(r, 2);

	pdu.hdr.flags &= ~ISCSI_FLAG_CMD_FINAL;
	return pdu;
}

/* ---- Writes whose data does not come --------------------------------------------- */

enum pending {
	PENDING_CLOSED,
	PENDING_ABORTED,
	PENDING_RESET,
	PENDING_LOGOUT,
};

static KD_CHOICES(gen_pending, kd_gen_any_ia_and,
	[PENDING_CLOSED] = "the connection ends",
	[PENDING_ABORTED] = "it is aborted",
	[PENDING_RESET] = "the LUN is reset",
	[PENDING_LOGOUT] = "logout")

/* LIO waits for the data of a write, whatever happens to that, and then ends the session. */
static void tasks_waiting_for_data(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_login_how(test, RAW_UNSOLICITED);
	const struct kd_param *p = test->param_value;
	struct raw_pdu pdu = write_later(r);
	bool ends = true;

	if (kd_ia_has(r->s->name, KD_SIMULATED) && p->choice != PENDING_CLOSED)
		kunit_skip(test, "3 seconds on one adapter are enough");
	KUNIT_ASSERT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
	raw_expect_alive(r);
	switch (p->choice) {
	case PENDING_CLOSED:
		ends = false;
		break;
	case PENDING_ABORTED:
		pdu = raw_task(r, ISCSI_TM_FUNC_ABORT_TASK, pdu.hdr.itt);
		break;
	case PENDING_RESET:
		pdu = raw_task(r, ISCSI_TM_FUNC_LOGICAL_UNIT_RESET, RESERVED_ITT);
		break;
	case PENDING_LOGOUT:
		pdu = raw_logout(r);
		break;
	}
	if (ends) {
		KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
		raw_expect_alive(other);
		KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	}
	raw_close(r);
	raw_expect_alive(other);
	raw_expect_alive(raw_login(test));
}

enum sequence {
	SEQUENCE_GAP,
	SEQUENCE_TWICE,
	SEQUENCE_EARLY_END,
	SEQUENCE_NO_END,
	SEQUENCE_NUMBER,
};

static KD_CHOICES(gen_sequence, kd_gen_any_ia_and,
	[SEQUENCE_GAP] = "the beginning is missing",
	[SEQUENCE_TWICE] = "the beginning comes twice",
	[SEQUENCE_EARLY_END] = "it ends too early",
	[SEQUENCE_NO_END] = "it does not end",
	[SEQUENCE_NUMBER] = "a number is missing")

/* Unsolicited data that is in bounds, in a sequence that it must not have. */
static void tasks_data_sequence(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_login_how(test, RAW_UNSOLICITED);
	const struct kd_param *p = test->param_value;
	u32 len[3] = { RAW_HEADERS, RAW_HEADERS + RAW_BLOCK, RAW_HEADERS + RAW_BLOCK };
	bool early = p->choice == SEQUENCE_EARLY_END;
	struct raw_pdu *pdu = r->pdu;
	unsigned int i, n = 3;

	pdu[0] = write_later(r);
	for (i = 0; i < 2; i++) {
		pdu[1 + i] = raw_data_out(&pdu[0], i * RAW_BLOCK, RAW_BLOCK);
		((struct iscsi_data *)&pdu[1 + i].hdr)->datasn = cpu_to_be32(i);
	}
	if (!early)
		pdu[1].hdr.flags &= ~ISCSI_FLAG_CMD_FINAL;
	switch (p->choice) {
	case SEQUENCE_GAP:
		pdu[1] = pdu[2];
		((struct iscsi_data *)&pdu[1].hdr)->datasn = 0;
		n = 2;
		break;
	case SEQUENCE_TWICE:
		((struct iscsi_data *)&pdu[2].hdr)->offset = 0;
		break;
	case SEQUENCE_EARLY_END:
		n = 2;
		break;
	case SEQUENCE_NO_END:
		pdu[2].hdr.flags &= ~ISCSI_FLAG_CMD_FINAL;
		break;
	case SEQUENCE_NUMBER:
		((struct iscsi_data *)&pdu[2].hdr)->datasn = cpu_to_be32(7);
		break;
	}
	KUNIT_EXPECT_TRUE(test, raw_send_all(r, pdu, len, n));
	raw_expect_cut(r);
	raw_expect_alive(other);
}

/* ---- Task management ------------------------------------------------------------- */

enum aborted {
	ABORT_UNKNOWN,
	ABORT_ITSELF,
	ABORT_ANSWERED,
	ABORT_RUNNING,
	REASSIGN,
};

static KD_CHOICES(gen_aborted, kd_gen_any_ia_and,
	[ABORT_UNKNOWN] = "a tag that nobody has",
	[ABORT_ITSELF] = "its own tag",
	[ABORT_ANSWERED] = "the tag of a command that was answered",
	[ABORT_RUNNING] = "the tag of commands that are being executed",
	[REASSIGN] = "a task for another connection")

/* Each is answered, and the session goes on. */
static void tasks_abort(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_login(test);
	const struct kd_param *p = test->param_value;
	static const u32 len[2] = { RAW_HEADERS, RAW_HEADERS };
	struct raw_pdu *pdu = r->pdu;
	int i;

	for (i = 0; i < 4; i++) {
		pdu[0] = i % 2 ? raw_write(r, 8) : raw_read(r, 8);
		pdu[1] = raw_task(r, p->choice == REASSIGN ? ISCSI_TM_FUNC_TASK_REASSIGN :
				  ISCSI_TM_FUNC_ABORT_TASK, pdu[0].hdr.itt);
		if (p->choice == ABORT_ANSWERED) {
			KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu[0], RAW_HEADERS));
			KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP,
							    KD_TIMEOUT_MS));
		}
		if (p->choice == ABORT_UNKNOWN)
			((struct iscsi_tm *)&pdu[1].hdr)->rtt = RESERVED_ITT;
		if (p->choice == ABORT_ITSELF)
			((struct iscsi_tm *)&pdu[1].hdr)->rtt = pdu[1].hdr.itt;
		if (p->choice == ABORT_ANSWERED)
			KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu[1], RAW_HEADERS));
		else
			KUNIT_EXPECT_TRUE(test, raw_send_all(r, pdu, len, 2));
		KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_TMFUNC_RSP,
						    KD_TIMEOUT_MS));
		raw_expect_alive(r);
	}
	raw_expect_alive(other);
}

/* What waits for its turn, which never comes, ends with the session. */
static void tasks_out_of_turn(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_login_how(test, RAW_UNSOLICITED);
	u32 len[4] = { RAW_HEADERS, RAW_HEADERS, RAW_HEADERS + 16, RAW_HEADERS + RAW_BLOCK };
	struct raw_pdu *pdu = r->pdu;
	int i;

	r->cmdsn++;
	pdu[0] = raw_task(r, ISCSI_TM_FUNC_LOGICAL_UNIT_RESET, RESERVED_ITT);
	pdu[1] = raw_task(r, ISCSI_TM_FUNC_ABORT_TASK, pdu[0].hdr.itt);
	pdu[2] = raw_make(r, ISCSI_OP_TEXT);
	((struct iscsi_text *)&pdu[2].hdr)->ttt = RAW_NONE;
	hton24(pdu[2].hdr.dlength, 16);
	memcpy(pdu[2].data, "SendTargets=All", 16);
	for (i = 0; i < 3; i++)
		raw_in_turn(r, &pdu[i]);
	pdu[3] = raw_write(r, 1);
	hton24(pdu[3].hdr.dlength, RAW_BLOCK);
	KUNIT_EXPECT_TRUE(test, raw_send_all(r, pdu, len, 4));
	raw_expect_alive(r);
	raw_close(r);
	raw_expect_alive(other);
}

/* ---- Numbers and tags that are in use -------------------------------------------- */

/* LIO ignores commands whose number was used; the target keeps none of their buffers. */
static void tasks_old_number(struct kunit *test)
{
	struct raw *r = raw_login_how(test, RAW_UNSOLICITED);
	struct raw_pdu pdu;
	long available;
	int i;

	raw_expect_alive(r);
	available = raw_adapter(r->s, "available");
	for (i = 0; i < 24; i++) {
		r->cmdsn = 50;
		pdu = raw_write(r, 1);
		hton24(pdu.hdr.dlength, RAW_BLOCK);
		KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS + RAW_BLOCK));
		raw_expect_alive(r);
	}
	KUNIT_EXPECT_TRUE(test, raw_wait_adapter(r->s, "available", available, LONG_MAX,
						 KD_TIMEOUT_MS));
}

/* Two writes with one tag, and data for it. */
static void tasks_same_tag(struct kunit *test)
{
	static const u32 len[6] = { RAW_HEADERS, RAW_HEADERS, RAW_HEADERS + RAW_BLOCK,
		RAW_HEADERS + RAW_BLOCK, RAW_HEADERS + RAW_BLOCK, RAW_HEADERS + RAW_BLOCK };
	struct raw *other = raw_login(test), *r = raw_login_how(test, RAW_UNSOLICITED);
	struct raw_pdu *pdu = r->pdu;
	int i;

	for (i = 0; i < 2; i++)
		pdu[i] = write_later(r);
	pdu[1].hdr.itt = pdu[0].hdr.itt;
	for (i = 0; i < 4; i++) {
		pdu[2 + i] = raw_data_out(&pdu[0], i % 2 * RAW_BLOCK, RAW_BLOCK);
		((struct iscsi_data *)&pdu[2 + i].hdr)->datasn = cpu_to_be32(i % 2);
		if (i % 2 == 0)
			pdu[2 + i].hdr.flags &= ~ISCSI_FLAG_CMD_FINAL;
	}
	KUNIT_EXPECT_TRUE(test, raw_send_all(r, pdu, len, 6));
	expect_alive_or_down(r);
	/* And one that is answered, whose tag a read and its abortion have as well. */
	r = raw_login(test);
	pdu = r->pdu;
	pdu[0] = raw_read(r, 8);
	pdu[1] = raw_read(r, 8);
	pdu[2] = raw_task(r, ISCSI_TM_FUNC_ABORT_TASK, pdu[0].hdr.itt);
	pdu[1].hdr.itt = pdu[0].hdr.itt;
	pdu[2].hdr.itt = pdu[0].hdr.itt;
	for (i = 0; i < 3; i++)
		raw_send(r, &pdu[i], RAW_HEADERS);
	expect_alive_or_down(r);
	raw_close(r);
	raw_expect_alive(other);
}

/* ---- Beside commands ------------------------------------------------------------- */

/* Of a NOP-Out that wants no answer nothing is kept: else there would be no tags left. */
static void tasks_nops_without_answer(struct kunit *test)
{
	struct raw *r = raw_login(test);
	struct raw_pdu pdu;
	int i;

	for (i = 0; i < 240; i++) {
		pdu = raw_nop(r, true);
		pdu.hdr.itt = RESERVED_ITT;
		KUNIT_ASSERT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
		if (i % 4 == 3)
			raw_expect_alive(r);
	}
}

enum segment {
	LONG_NOP,
	LONG_WRITE,
	LONG_TEXT,
};

static KD_CHOICES(gen_segment, kd_gen_any_ia_and,
	[LONG_NOP] = "NOP-Out",
	[LONG_WRITE] = "write",
	[LONG_TEXT] = "text")

/* A data segment that a buffer has room for, and longer than was negotiated. */
static void tasks_long_segment(struct kunit *test)
{
	struct raw *r = raw_login_how(test, RAW_UNSOLICITED);
	const struct kd_param *p = test->param_value;
	struct raw_pdu pdu = raw_nop(r, true);

	raw_expect_alive(r);
	if (p->choice == LONG_WRITE)
		pdu = raw_write(r, 20);
	if (p->choice == LONG_TEXT) {
		pdu = raw_make(r, ISCSI_OP_TEXT | ISCSI_OP_IMMEDIATE);
		((struct iscsi_text *)&pdu.hdr)->ttt = RAW_NONE;
	}
	KUNIT_EXPECT_TRUE(test, raw_send_long(r, &pdu, 9000));
	KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_REJECT, KD_TIMEOUT_MS));
	raw_expect_alive(r);
}

enum logout {
	LOGOUT_CONNECTION,
	LOGOUT_ANOTHER,
	LOGOUT_RECOVERY,
	LOGOUT_UNKNOWN,
};

static KD_CHOICES(gen_logout, kd_gen_any_ia_and,
	[LOGOUT_CONNECTION] = "of the connection",
	[LOGOUT_ANOTHER] = "of another connection",
	[LOGOUT_RECOVERY] = "to recover",
	[LOGOUT_UNKNOWN] = "for a reason that there is not")

/* A session ends with its only connection, and not when the time to retain it is over. */
static void tasks_logout(struct kunit *test)
{
	struct raw *other = raw_login(test), *r;
	const struct kd_param *p = test->param_value;
	u8 response = ISCSI_LOGOUT_SUCCESS;
	long left = raw_sessions(test);
	struct iscsi_logout *req;
	struct raw_pdu pdu;
	bool stays = false;

	r = raw_login(test);
	pdu = raw_logout(r);
	req = (struct iscsi_logout *)&pdu.hdr;
	req->flags = ISCSI_FLAG_CMD_FINAL | ISCSI_LOGOUT_REASON_CLOSE_CONNECTION;
	if (p->choice == LOGOUT_ANOTHER) {
		req->cid = cpu_to_be16(7);
		response = ISCSI_LOGOUT_CID_NOT_FOUND;
		stays = true;
	}
	if (p->choice == LOGOUT_RECOVERY) {
		req->flags = ISCSI_FLAG_CMD_FINAL | ISCSI_LOGOUT_REASON_RECOVERY;
		response = ISCSI_LOGOUT_RECOVERY_UNSUPPORTED;
		stays = true;
	}
	if (p->choice == LOGOUT_UNKNOWN)
		req->flags = ISCSI_FLAG_CMD_FINAL | 3;
	KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
	if (p->choice != LOGOUT_UNKNOWN) {
		KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_LOGOUT_RSP, KD_TIMEOUT_MS));
		KUNIT_EXPECT_EQ(test, ((struct iscsi_logout_rsp *)&r->got.hdr)->response,
				response);
	}
	if (stays)
		raw_expect_alive(r);
	else
		KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	if (p->choice == LOGOUT_CONNECTION)
		KUNIT_EXPECT_TRUE(test, raw_wait_sessions(test, left, 10 * MSEC_PER_SEC));
	raw_expect_alive(other);
}

/* Of a logout that ends nothing, nothing is kept: else there would be no tags left. */
static void tasks_logouts_of_others(struct kunit *test)
{
	struct raw *r = raw_login(test);
	struct iscsi_logout *req;
	struct raw_pdu pdu;
	int i;

	for (i = 0; i < 240; i++) {
		pdu = raw_logout(r);
		req = (struct iscsi_logout *)&pdu.hdr;
		req->flags = ISCSI_FLAG_CMD_FINAL | (i % 2 ? ISCSI_LOGOUT_REASON_RECOVERY :
						     ISCSI_LOGOUT_REASON_CLOSE_CONNECTION);
		req->cid = cpu_to_be16(7);
		KUNIT_ASSERT_TRUE_MSG(test, raw_send(r, &pdu, RAW_HEADERS), "logout %d", i);
		KUNIT_ASSERT_TRUE_MSG(test, raw_receive(r, ISCSI_OP_LOGOUT_RSP, KD_TIMEOUT_MS),
				      "logout %d", i);
	}
	raw_expect_alive(r);
}

/* ---- A device that cannot fetch all data --------------------------------------------- */

#define LARGE_BLOCKS	128

static struct kd_hook device;
/* How many sinks of RDMA Reads were registered since the second one was to be refused. */
static atomic_t sinks;

static int refuse_second(struct ib_mr *mr, struct scatterlist *sg, int nents,
			 unsigned int *offset)
{
	if (atomic_inc_return(&sinks) == 2)
		return -ENOMEM;
	return device.real.map_mr_sg(mr, sg, nents, offset);
}

/* Its first RDMA Read is under way when the second one is refused. */
static void tasks_half_fetched(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_login(test);
	int tries = 16;

	if (!kd_is_iwarp(r->s) || !kd_ia_has(r->s->name, KD_SIMULATED))
		kunit_skip(test, "the device registers no sinks of RDMA Reads");
	r->data = kd_buf_alloc(r->s, LARGE_BLOCKS * RAW_BLOCK);
	kd_hook(test, other->s->name, &device)->ops.map_mr_sg = refuse_second;
	/* The pages of LIO may happen to be neighbours, which takes one Read. */
	do {
		atomic_set(&sinks, 2);
		r->pdu[0] = raw_write(r, LARGE_BLOCKS);
		atomic_set(&sinks, 0);
		KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, RAW_HEADERS));
	} while (raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS) && --tries);
	if (!tries)
		kunit_skip(test, "the data was in one piece each time");
	raw_expect_cut(r);
	KUNIT_EXPECT_GE(test, atomic_read(&sinks), 2);
	raw_close(r);
	raw_expect_alive(other);
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(tasks_waiting_for_data, gen_pending),
	KUNIT_CASE_PARAM(tasks_data_sequence, gen_sequence),
	KUNIT_CASE_PARAM(tasks_abort, gen_aborted),
	KUNIT_CASE_PARAM(tasks_out_of_turn, kd_gen_any_ia),
	KUNIT_CASE_PARAM(tasks_old_number, kd_gen_any_ia),
	KUNIT_CASE_PARAM(tasks_same_tag, kd_gen_any_ia),
	KUNIT_CASE_PARAM(tasks_nops_without_answer, kd_gen_any_ia),
	KUNIT_CASE_PARAM(tasks_long_segment, gen_segment),
	KUNIT_CASE_PARAM(tasks_logout, gen_logout),
	KUNIT_CASE_PARAM(tasks_logouts_of_others, kd_gen_any_ia),
	KUNIT_CASE_PARAM(tasks_half_fetched, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-tasks", isert_cases, "kdapl_isert.ko: commands that go wrong", RAW_TARGET);
