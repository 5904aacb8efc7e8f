// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: data and numbers of commands as no honest initiator sends them,
 * headers that are changed by chance, and a device that refuses.
 */
#include <linux/module.h>
#include <linux/prandom.h>
#include <scsi/scsi.h>
#include "device.h"
#include "raw.h"

/* ---- Unsolicited data ----------------------------------------------------------- */

enum data_out {
	BEYOND,
	WRAPS,
	EMPTY,
	OUT_OF_ORDER,
	WITH_A_TAG,
};

static KD_CHOICES(gen_data_out, kd_gen_any_ia_and,
	[BEYOND] = "beyond the end",
	[WRAPS] = "offset and length wrap",
	[EMPTY] = "no data",
	[OUT_OF_ORDER] = "of a command that is not the next",
	[WITH_A_TAG] = "as if it was asked for")

static void data_bad(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_login_how(test, RAW_UNSOLICITED);
	const struct kd_param *p = test->param_value;
	u32 len[2] = { RAW_HEADERS, RAW_HEADERS + RAW_BLOCK };
	struct raw_pdu *pdu = r->pdu;
	u32 offset = 0;

	r->cmdsn += p->choice == OUT_OF_ORDER;
	pdu[0] = raw_write(r, 2);
	pdu[0].hdr.flags &= ~ISCSI_FLAG_CMD_FINAL;
	if (p->choice == BEYOND)
		offset = 2 * RAW_BLOCK - 4;
	if (p->choice == WRAPS)
		offset = -4;
	pdu[1] = raw_data_out(&pdu[0], offset, RAW_BLOCK);
	if (p->choice == EMPTY) {
		hton24(pdu[1].hdr.dlength, 0);
		len[1] = RAW_HEADERS;
	}
	if (p->choice == WITH_A_TAG)
		((struct iscsi_data *)&pdu[1].hdr)->ttt = cpu_to_be32(1);
	KUNIT_EXPECT_TRUE(test, raw_send_all(r, pdu, len, 2));
	raw_expect_cut(r);
	raw_expect_alive(other);
}

/* Data of a command that has failed is dropped, as its initiator could not know. */
static void data_data_of_a_failed_write(struct kunit *test)
{
	static const u32 len[2] = { RAW_HEADERS, RAW_HEADERS + RAW_BLOCK };
	struct raw *r = raw_login_how(test, RAW_UNSOLICITED);
	struct iscsi_scsi_req *req;
	struct raw_pdu *pdu = r->pdu;

	pdu[0] = raw_write(r, 1);
	pdu[0].hdr.flags &= ~ISCSI_FLAG_CMD_FINAL;
	req = (struct iscsi_scsi_req *)&pdu[0].hdr;
	int_to_scsilun(77, &req->lun);
	pdu[1] = raw_data_out(&pdu[0], 0, RAW_BLOCK);
	KUNIT_EXPECT_TRUE(test, raw_send_all(r, pdu, len, 2));
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, ((struct iscsi_scsi_rsp *)&r->got.hdr)->cmd_status,
			SAM_STAT_CHECK_CONDITION);
	/* And once more, now that LIO does not know it any more. */
	KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu[1], len[1]));
	raw_expect_alive(r);
}

/* ---- MaxCmdSN, discovery -------------------------------------------------------- */

/* Who goes on sending beyond MaxCmdSN is disconnected. */
static void data_beyond_maxcmdsn(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_login(test);
	struct raw_pdu pdu;
	int i;

	raw_expect_alive(r);
	r->cmdsn = r->max_cmdsn + 1;
	for (i = 0; i < RAW_SENDS / 2; i++) {
		pdu = raw_nop(r, false);
		if (!raw_send(r, &pdu, RAW_HEADERS))
			break;
	}
	raw_expect_cut(r);
	raw_expect_alive(other);
}

/* Commands that LIO keeps, as one before them is missing, are freed with the session. */
static void data_a_command_is_missing(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_login(test);
	struct raw_pdu pdu;
	int i;

	r->cmdsn++;
	for (i = 0; i < 6; i++) {
		pdu = i % 3 == 0 ? raw_nop(r, false) :
		      i % 3 == 1 ? raw_read(r, 8) : raw_write(r, 8);
		KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
	}
	raw_expect_alive(r);
	raw_close(r);
	raw_expect_alive(other);
}

static void data_command_in_discovery(struct kunit *test)
{
	struct raw *r = raw_login_how(test, RAW_DISCOVERY);
	struct raw_pdu pdu = raw_read(r, 1);

	KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
	raw_expect_cut(r);
}

/* ---- Chance --------------------------------------------------------------------- */

/* Make r->pdu[0] some PDU that an initiator may send. */
static void make_some(struct raw *r, unsigned int i)
{
	struct raw_pdu *pdu = &r->pdu[0];

	switch (i % 6) {
	case 0:
		*pdu = raw_nop(r, true);
		break;
	case 1:
		*pdu = raw_write(r, 1);
		break;
	case 2:
		*pdu = raw_read(r, 1);
		break;
	case 3:
		*pdu = raw_make(r, ISCSI_OP_SCSI_TMFUNC | ISCSI_OP_IMMEDIATE);
		pdu->hdr.flags |= ISCSI_TM_FUNC_LOGICAL_UNIT_RESET;
		((struct iscsi_tm *)&pdu->hdr)->rtt = RESERVED_ITT;
		break;
	case 4:
		*pdu = raw_make(r, ISCSI_OP_TEXT | ISCSI_OP_IMMEDIATE);
		((struct iscsi_text *)&pdu->hdr)->ttt = RAW_NONE;
		hton24(pdu->hdr.dlength, 16);
		memcpy(pdu->data, "SendTargets=All", 16);
		break;
	default:
		*pdu = raw_logout(r);
		break;
	}
}

/*
 * Change bytes of the headers by chance. The target answers as it likes, or ends the
 * connection; it is there afterwards.
 */
static void data_mutations(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = NULL;
	struct rnd_state rnd;
	unsigned int i, at;

	prandom_seed_state(&rnd, 20261123);
	for (i = 0; i < 2 * RAW_HEADERS; i++) {
		if (!r)
			r = raw_login_how(test, RAW_UNSOLICITED);
		make_some(r, prandom_u32_state(&rnd));
		at = i % RAW_HEADERS;
		((u8 *)r->pdu)[at] ^= 1 + prandom_u32_state(&rnd) % 255;
		raw_send(r, r->pdu, RAW_HEADERS + 16 * (i % 3));
		if (raw_ping(r))
			continue;
		KUNIT_EXPECT_TRUE_MSG(test, raw_is_down(r, KD_TIMEOUT_MS), "mutation %u", i);
		raw_close(r);
		r = NULL;
	}
	raw_expect_alive(other);
}

/* ---- The device ---------------------------------------------------------------------- */

static struct kd_hook device;
/* How many requests were posted since the device was to refuse the second one. */
static atomic_t posts;

static int refuse_second(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	if (qp->qp_type == IB_QPT_RC && atomic_inc_return(&posts) == 2)
		return -ENOMEM;
	return device.real.post_send(qp, wr, bad);
}

/*
 * The target's device has no room for an answer, or to fetch data: that session ends, since
 * nobody knows when there would be room.
 */
static void data_device_refuses(struct kunit *test)
{
	struct raw *other = raw_login(test), *r;
	struct raw_pdu pdu;
	int i;

	atomic_set(&posts, 2);
	kd_hook(test, other->s->name, &device)->ops.post_send = refuse_second;
	for (i = 0; i < 2; i++) {
		r = raw_login(test);
		pdu = i ? raw_write(r, 8) : raw_read(r, 8);
		atomic_set(&posts, 0);
		KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
		KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
		KUNIT_EXPECT_GE(test, atomic_read(&posts), 2);
		raw_close(r);
		raw_expect_alive(other);
	}
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(data_bad, gen_data_out),
	KUNIT_CASE_PARAM(data_data_of_a_failed_write, kd_gen_any_ia),
	KUNIT_CASE_PARAM(data_beyond_maxcmdsn, kd_gen_any_ia),
	KUNIT_CASE_PARAM(data_a_command_is_missing, kd_gen_any_ia),
	KUNIT_CASE_PARAM(data_command_in_discovery, kd_gen_any_ia),
	KUNIT_CASE_PARAM(data_mutations, kd_gen_any_ia),
	KUNIT_CASE_PARAM(data_device_refuses, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-data", isert_cases, "kdapl_isert.ko: hostile data, chance", RAW_TARGET);
