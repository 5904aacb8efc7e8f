// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko against targets that are wrong, hostile or asleep, up to the first
 * block that is read. Those that serve it: blk_serve_test.c.
 */
#include <linux/module.h>
#include "blk_initiator.h"

/* ---- What the initiator makes of it --------------------------------------- */

/* It does not connect. */
static void expect_refused(struct kd_side *side, const char *what, int i)
{
	KUNIT_EXPECT_FALSE_MSG(side->test, ini_connect_end(side->test), "%s %d",
			       what, i);
	kd_close(side);
}

/* It has connected, and leaves. */
static void expect_left(struct kd_side *side, const char *what, int i)
{
	KUNIT_EXPECT_TRUE_MSG(side->test,
			      kd_wait_state(side->ep, DAT_EP_STATE_DISCONNECTED),
			      "%s %d", what, i);
	KUNIT_EXPECT_TRUE(side->test, ini_connect_end(side->test));
	kd_close(side);
}

/* Answer IDENTIFY with @len bytes. */
static void answer_identify(struct kd_side *side, struct kblk_reply reply,
			    size_t len)
{
	struct kblk_identify good = good_identify();

	answer(side, &reply, &good, len);
}

/* A good one, to be spoilt. */
static struct kblk_reply reply_to_identify(struct kd_side *side)
{
	return good_reply(expect_request(side, 1, KBLK_OP_IDENTIFY),
			  sizeof(struct kblk_identify));
}

#define IDENTIFY_LEN	(sizeof(struct kblk_reply) + sizeof(struct kblk_identify))

/* ---- Connecting ------------------------------------------------------------ */

static void ini_bad_welcome(struct kunit *test)
{
	struct kblk_welcome bad[13];
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good_welcome();
	bad[0].magic = 0;
	bad[1].version = cpu_to_le16(KBLK_VERSION_MAX + 1);
	bad[2].status = cpu_to_le16(KBLK_HELLO_BUSY);
	bad[3].credits = 0;
	bad[4].request_size = cpu_to_le32(sizeof(struct kblk_request) +
					  KBLK_INLINE - 1);
	bad[5].max_transfer = cpu_to_le32(512);
	bad[6].features = cpu_to_le32(KBLK_FEATURES + 1);
	bad[7].reserved[7] = 1;
	bad[8].reserved0 = cpu_to_le16(1);
	bad[9].version = 0;
	bad[10].status = cpu_to_le16(U16_MAX);
	bad[11].credits = cpu_to_le16(1);
	bad[12].features = cpu_to_le32(BIT(31));
	/* A good one would be asked more, and wait for the answer. */
	ini_connect_patience = PATIENT;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(welcome_one(test, true, &bad[i]), "welcome", i);
}

static void ini_attach_refused(struct kunit *test)
{
	struct kblk_reply reply;
	struct kd_side *side;
	u16 status;

	for (status = KBLK_ERR_NO_VOLUME; status <= KBLK_ERR_DENIED; status++) {
		side = welcome_one(test, true, NULL);
		reply = good_reply(expect_request(side, 0, KBLK_OP_ATTACH), 0);
		reply.status = cpu_to_le16(status);
		answer(side, &reply, NULL, sizeof(reply));
		expect_refused(side, "status", status);
	}
}

static void ini_bad_identify(struct kunit *test)
{
	struct kblk_identify bad[14];
	struct kblk_reply reply;
	struct kd_side *side;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good_identify();
	bad[0].size = 0;
	bad[1].size = cpu_to_le64(VOLUME_SIZE + 1);
	bad[2].size = cpu_to_le64(BIT_ULL(63));
	bad[3].block_size = 0;
	bad[4].block_size = cpu_to_le32(SZ_8K);
	bad[5].flags = cpu_to_le32(BIT(31));
	bad[6].reserved[23] = 1;
	bad[7].physical_block_size = cpu_to_le32(256);
	bad[8].max_discard = cpu_to_le32(4096);
	bad[9].max_write_zeroes = cpu_to_le32(513);
	bad[10].block_size = cpu_to_le32(513);
	bad[11].physical_block_size = cpu_to_le32(SZ_128K);
	bad[12].discard_granularity = cpu_to_le32(4096);
	bad[13].max_discard = cpu_to_le32(4096);
	bad[13].discard_granularity = cpu_to_le32(511);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = welcome_attached(test);
		reply = reply_to_identify(side);
		answer(side, &reply, &bad[i], IDENTIFY_LEN);
		expect_refused(side, "identify", i);
	}
}

/* Replies to IDENTIFY, with its data in place. */
static void ini_bad_reply(struct kunit *test)
{
	struct kblk_reply bad[10];
	size_t lens[ARRAY_SIZE(bad)];
	struct kd_side *side;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = welcome_attached(test);
		bad[0] = reply_to_identify(side);
		for (j = 0; j < ARRAY_SIZE(bad); j++) {
			bad[j] = bad[0];
			lens[j] = IDENTIFY_LEN;
		}
		bad[0].magic = 0;
		bad[1].id ^= cpu_to_le64(1);
		bad[2].id = cpu_to_le64(U64_MAX);
		bad[3].id ^= cpu_to_le64(BIT_ULL(32));
		bad[4].length = 0;
		bad[5].reserved[0] = 1;
		bad[6].status = cpu_to_le16(KBLK_ERR_IO);
		lens[7] = sizeof(struct kblk_reply) - 1;
		lens[8] = IDENTIFY_LEN - 1;
		bad[9].length = cpu_to_le32(U32_MAX);
		answer_identify(side, bad[i], lens[i]);
		expect_refused(side, "reply", i);
	}
}

/* A reply before anything was asked, which uses up a receive for a good one. */
static void ini_early_reply(struct kunit *test)
{
	struct kblk_request request = {};
	struct kblk_reply reply = good_reply(&request, 0);
	struct kd_side *side;
	u32 id;

	for (id = 0; id < INI_DEPTH; id += INI_DEPTH - 1) {
		side = welcome_one(test, true, NULL);
		expect_request(side, 0, KBLK_OP_ATTACH);
		reply.id = cpu_to_le64(id);
		answer(side, &reply, NULL, sizeof(reply));
		expect_refused(side, "id", id);
	}
}

/* Longer than the initiator's buffer; the same reply twice. */
static void ini_unexpected_reply(struct kunit *test)
{
	struct kd_side *side;

	side = welcome_attached(test);
	answer_identify(side, reply_to_identify(side),
			KBLK_REPLIES + 64);
	expect_refused(side, "too long", 0);

	side = welcome_attached(test);
	identify_as(side, NULL);
	kd_send(side, REPLY_AT, sizeof(struct kblk_reply), 3);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep,
					      DAT_EP_STATE_DISCONNECTED));
	ini_connect_end(test);
}

/* ---- The first READ --------------------------------------------------------- */

/* Replies to the first READ of the disk, whose data is to come with them. */
static void ini_bad_data(struct kunit *test)
{
	const struct kblk_request *request;
	struct kblk_reply reply;
	struct kd_side *side;
	u32 asked, sent;
	int i;

	ini_patience = PATIENT;
	for (i = 0; i < 4; i++) {
		side = welcome_attached(test);
		identify_as(side, NULL);
		request = expect_request(side, 2, KBLK_OP_READ);
		KUNIT_EXPECT_EQ(test, request->flags, KBLK_INLINED);
		asked = le32_to_cpu(request->length);
		sent = i == 0 ? 0 : i == 1 ? asked - 512 : asked;
		reply = good_reply(request, sent);
		if (i == 2)
			reply.status = cpu_to_le16(KBLK_ERR_IO);
		if (i == 3)
			sent = asked - 1;
		answer(side, &reply, NULL, sizeof(reply) + sent);
		expect_left(side, "reply", i);
	}
}

/* What is neither right nor wrong: the connection goes on. */
static void ini_odd_reply(struct kunit *test)
{
	struct kblk_reply reply;
	struct kd_side *side;

	ini_patience = PATIENT;
	side = welcome_attached(test);
	reply = reply_to_identify(side);
	/* More credits than there can be requests. */
	reply.credits = cpu_to_le16(U16_MAX);
	answer_identify(side, reply, IDENTIFY_LEN);
	/* The test's own Send is through before the memory is used again. */
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	reply = good_reply(expect_request(side, 2, KBLK_OP_READ), 0);
	reply.status = cpu_to_le16(U16_MAX);
	answer(side, &reply, NULL, sizeof(reply));
	/* An error of the medium, whatever it is: it is asked for again. */
	expect_request(side, 3, KBLK_OP_READ);
	kd_close(side);
	KUNIT_EXPECT_TRUE(test, ini_connect_end(test));
}

/* The disk comes, but what is read from it is never answered. */
static void ini_timeout(struct kunit *test)
{
	struct kd_side *side = welcome_attached(test);

	identify_as(side, NULL);
	expect_request(side, 2, KBLK_OP_READ);
	expect_left(side, "no reply", 0);
}

static struct kunit_case ini_cases[] = {
	KUNIT_CASE_PARAM(ini_bad_welcome, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_attach_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_identify, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_early_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_unexpected_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_data, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_odd_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_timeout, kd_gen_ia),
	{}
};

static struct kunit_suite ini_suite = {
	.name = "kdapl-blk-initiator",
	.test_cases = ini_cases,
	.exit = ini_unload,
};

kunit_test_suite(ini_suite);

MODULE_DESCRIPTION("KUnit suite: the block device initiator and hostile targets");
MODULE_LICENSE("Dual BSD/GPL");
