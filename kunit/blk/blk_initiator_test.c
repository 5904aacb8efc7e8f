// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko against targets that break the protocol, are hostile or do not
 * answer, up to the first block that is read. Targets that serve it are in
 * blk_serve_test.c.
 */
#include <linux/module.h>
#include "blk_initiator.h"
#include "blk_secret.h"

/* ---- What the initiator makes of it --------------------------------------- */

/* Expect that the initiator gives up connecting. */
static void expect_refused(struct kd_side *side, const char *what, int i)
{
	KUNIT_EXPECT_FALSE_MSG(side->test, ini_connect_end(side->test), "%s %d",
			       what, i);
	kd_close(side);
}

/* Expect that the initiator, which has connected, ends the connection. */
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
	struct kblk_identify good = kdb_good_identify();

	kdb_answer(side, &reply, &good, len);
}

/* Return a good reply, for cases to modify. */
static struct kblk_reply reply_to_identify(struct kd_side *side)
{
	return kdb_good_reply(kdb_expect_request(side, 1, KBLK_OP_IDENTIFY),
			      sizeof(struct kblk_identify));
}

#define IDENTIFY_LEN	(sizeof(struct kblk_reply) + sizeof(struct kblk_identify))

/* ---- Connecting ------------------------------------------------------------ */

static void ini_bad_welcome(struct kunit *test)
{
	struct kblk_welcome bad[13];
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = kdb_good_welcome();
	bad[0].magic = 0;
	bad[1].version = cpu_to_le16(KBLK_VERSION_MAX + 1);
	bad[2].status = cpu_to_le16(KBLK_HELLO_BUSY);
	bad[3].credits = 0;
	bad[4].request_size = cpu_to_le32(sizeof(struct kblk_request) +
					  KBLK_INLINE - 1);
	bad[5].max_transfer = cpu_to_le32(512);
	bad[6].features = cpu_to_le32(KBLK_FEATURES + 1);
	bad[7].reserved[7] = 1;
	bad[8].queues = cpu_to_le16(1);
	bad[9].version = 0;
	bad[10].status = cpu_to_le16(U16_MAX);
	bad[11].credits = cpu_to_le16(1);
	bad[12].features = cpu_to_le32(BIT(31));
	/*
	 * After a good welcome the initiator would send a request and wait for
	 * the answer.
	 */
	ini_attrs.connect_timeout_ms = PATIENT;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(kdb_welcome_one(test, true, &bad[i]), "welcome", i);
}

static void ini_attach_refused(struct kunit *test)
{
	struct kblk_reply reply;
	struct kd_side *side;
	u16 status;

	for (status = KBLK_ERR_NO_VOLUME; status <= KBLK_ERR_DENIED; status++) {
		side = kdb_welcome_one(test, true, NULL);
		reply = kdb_good_reply(kdb_expect_request(side, 0, KBLK_OP_ATTACH), 0);
		reply.status = cpu_to_le16(status);
		kdb_answer(side, &reply, NULL, sizeof(reply));
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
		bad[i] = kdb_good_identify();
	bad[0].size = 0;
	bad[1].size = cpu_to_le64(VOLUME_SIZE + 1);
	bad[2].size = cpu_to_le64(BIT_ULL(63));
	bad[3].block_size = 0;
	bad[4].block_size = cpu_to_le32(SZ_8K);
	bad[5].flags = cpu_to_le32(BIT(31));
	bad[6].io_opt = cpu_to_le32(SZ_1M);
	bad[7].physical_block_size = cpu_to_le32(256);
	bad[8].max_discard = cpu_to_le32(4096);
	bad[9].max_write_zeroes = cpu_to_le32(513);
	bad[10].block_size = cpu_to_le32(513);
	bad[11].physical_block_size = cpu_to_le32(SZ_128K);
	bad[12].discard_granularity = cpu_to_le32(4096);
	bad[13].max_discard = cpu_to_le32(4096);
	bad[13].discard_granularity = cpu_to_le32(511);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = kdb_welcome_attached(test);
		reply = reply_to_identify(side);
		kdb_answer(side, &reply, &bad[i], IDENTIFY_LEN);
		expect_refused(side, "identify", i);
	}
}

/* Hints that no volume can mean, of a target that tells hints */
static void ini_bad_hints(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_good_welcome();
	static const u32 bad[][2] = {
		{ 0, 0 },
		{ SZ_64K + 1, 0 },
		{ 2 * KBLK_HINT_MAX, 0 },
		{ SZ_64K, SZ_1M + 1 },
		{ SZ_64K, 2 * KBLK_HINT_MAX },
	};
	struct kblk_identify identify;
	struct kblk_reply reply;
	struct kd_side *side;
	int i;

	welcome.features = cpu_to_le32(KBLK_FEATURE_HINTS);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = kdb_welcome_one(test, true, &welcome);
		kdb_attach(side);
		identify = kdb_good_identify();
		identify.io_min = cpu_to_le32(bad[i][0]);
		identify.io_opt = cpu_to_le32(bad[i][1]);
		reply = reply_to_identify(side);
		kdb_answer(side, &reply, &identify, IDENTIFY_LEN);
		expect_refused(side, "hints", i);
	}
}

/* Wrong replies to IDENTIFY whose data is right. */
static void ini_bad_reply(struct kunit *test)
{
	struct kblk_reply bad[10];
	size_t lens[ARRAY_SIZE(bad)];
	struct kd_side *side;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = kdb_welcome_attached(test);
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

/* A reply without a request, which uses up the receive of a good reply. */
static void ini_early_reply(struct kunit *test)
{
	struct kblk_request request = {};
	struct kblk_reply reply = kdb_good_reply(&request, 0);
	struct kd_side *side;
	u32 id;

	for (id = 0; id < INI_DEPTH; id += INI_DEPTH - 1) {
		side = kdb_welcome_one(test, true, NULL);
		kdb_expect_request(side, 0, KBLK_OP_ATTACH);
		reply.id = cpu_to_le64(id);
		kdb_answer(side, &reply, NULL, sizeof(reply));
		expect_refused(side, "id", id);
	}
}

/*
 * A reply that is longer than the initiator's buffer, and the same reply twice.
 */
static void ini_unexpected_reply(struct kunit *test)
{
	struct kd_side *side;

	side = kdb_welcome_attached(test);
	answer_identify(side, reply_to_identify(side),
			KBLK_REPLIES + 64);
	expect_refused(side, "too long", 0);

	side = kdb_welcome_attached(test);
	kdb_identify_as(side, NULL);
	kd_send(side, REPLY_AT, sizeof(struct kblk_reply), 3);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep,
					      DAT_EP_STATE_DISCONNECTED));
	ini_connect_end(test);
}

/* ---- Secrets ----------------------------------------------------------------- */

static void answer_challenge(struct kd_side *side)
{
	struct kblk_reply reply;

	reply = kdb_good_reply(kdb_expect_request(side, 0, KBLK_OP_CHALLENGE),
			       KBLK_NONCE_LEN);
	memset(side->buf->va + DATA_AT, 'c', KBLK_NONCE_LEN);
	kdb_answer(side, &reply, NULL, sizeof(reply) + KBLK_NONCE_LEN);
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

/*
 * Answer CHALLENGE, expect a proof of @expected with ATTACH, and show that we know
 * @secret.
 */
static void prove_to(struct kd_side *side, const char *expected,
		     const char *secret)
{
	struct kunit *test = side->test;
	const struct kblk_request *request;
	const struct kblk_proof *theirs;
	struct kblk_proof_of of = { .who = "initiator" };
	u8 proof[KBLK_PROOF_LEN];
	struct kblk_reply reply;

	answer_challenge(side);
	memset(of.challenge, 'c', sizeof(of.challenge));

	request = kdb_expect_request(side, 1, KBLK_OP_ATTACH);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(request->length),
			sizeof(of.attach) + sizeof(*theirs));
	memcpy(&of.attach, request + 1, sizeof(of.attach));
	theirs = (const void *)(request + 1) + sizeof(of.attach);
	memcpy(of.nonce, theirs->nonce, sizeof(of.nonce));
	of.session = ini_hello.session;
	of.epoch = ini_hello.epoch;
	of.queue = ini_hello.queue;
	kdb_prove(test, expected, &of, proof);
	KUNIT_EXPECT_EQ(test, 0, memcmp(proof, theirs->proof, sizeof(proof)));

	strscpy_pad(of.who, "target", sizeof(of.who));
	kdb_prove(test, secret, &of, proof);
	reply = kdb_good_reply(request, KBLK_PROOF_LEN);
	memcpy(side->buf->va + DATA_AT, proof, sizeof(proof));
	kdb_answer(side, &reply, NULL, sizeof(reply) + KBLK_PROOF_LEN);
}

/* The target has to know the secret as well. */
static void ini_target_proves(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_good_welcome();
	struct kd_side *side;

	ini_attrs.secret = SECRET;
	ini_attrs.timeout_ms = PATIENT;
	welcome.features = cpu_to_le32(KBLK_FEATURE_AUTH);
	side = kdb_welcome_one(test, true, &welcome);
	prove_to(side, SECRET, SECRET);
	kdb_expect_request(side, 2, KBLK_OP_IDENTIFY);
	kd_close(side);
	ini_connect_end(test);

	side = kdb_welcome_one(test, true, &welcome);
	prove_to(side, SECRET, OTHER_SECRET);
	/* The initiator says so at once: it does not wait for what it asks next. */
	expect_refused(side, "wrong proof", 0);
	KUNIT_EXPECT_EQ(test, ini_error, -EACCES);
	/* One of former times. */
	expect_refused(kdb_welcome_one(test, true, NULL), "no proof", 0);
	KUNIT_EXPECT_EQ(test, ini_error, -EACCES);
	/* Who has no secret does not ask for it, and is not to be given it. */
	ini_attrs.secret = "\n";
	expect_refused(kdb_welcome_one(test, true, &welcome), "not asked for", 0);
	KUNIT_EXPECT_EQ(test, ini_error, -EPROTO);
}

/* The key has its say when the proof is made, not when its name was written. */
static void ini_key_proves(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_good_welcome();
	struct kd_side *side;
	struct key *key;

	kdb_keyring(test);
	key = kdb_key(test, "logon", KEY_NAME, SECRET);
	ini_attrs.secret = KEY_SECRET;
	ini_attrs.timeout_ms = PATIENT;
	welcome.features = cpu_to_le32(KBLK_FEATURE_AUTH);
	side = kdb_welcome_one(test, true, &welcome);
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx " KEY_SECRET " " INI_DISK "/secret"));
	KUNIT_EXPECT_PTR_EQ(test, key, kdb_key(test, "logon", KEY_NAME,
					       OTHER_SECRET));
	prove_to(side, OTHER_SECRET, OTHER_SECRET);
	kdb_expect_request(side, 2, KBLK_OP_IDENTIFY);
	kd_close(side);
	ini_connect_end(test);

	side = kdb_welcome_one(test, true, &welcome);
	key_revoke(key);
	answer_challenge(side);
	expect_refused(side, "revoked", 0);
	KUNIT_EXPECT_EQ(test, ini_error, -EACCES);
	KUNIT_EXPECT_EQ(test, ini_put("secret", KEY_SECRET), -EKEYREVOKED);
	KUNIT_EXPECT_EQ(test, ini_put("secret", KBLK_SECRET_KEY "kdapl:none"),
			-ENOKEY);
	/* What was written last, and was not refused, is left. */
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx " KEY_SECRET " " INI_DISK "/secret"));
}

/* ---- The first READ --------------------------------------------------------- */

/* Wrong replies to the first READ of the disk, whose data is in the reply. */
static void ini_bad_data(struct kunit *test)
{
	const struct kblk_request *request;
	struct kblk_reply reply;
	struct kd_side *side;
	u32 asked, sent;
	int i;

	ini_attrs.timeout_ms = PATIENT;
	for (i = 0; i < 4; i++) {
		side = kdb_welcome_attached(test);
		kdb_identify_as(side, NULL);
		request = kdb_expect_request(side, 2, KBLK_OP_READ);
		KUNIT_EXPECT_EQ(test, request->flags, KBLK_INLINED);
		asked = le32_to_cpu(request->length);
		sent = i == 0 ? 0 : i == 1 ? asked - 512 : asked;
		reply = kdb_good_reply(request, sent);
		if (i == 2)
			reply.status = cpu_to_le16(KBLK_ERR_IO);
		if (i == 3)
			sent = asked - 1;
		kdb_answer(side, &reply, NULL, sizeof(reply) + sent);
		expect_left(side, "reply", i);
	}
}

/* Odd replies that the protocol allows: the connection goes on. */
static void ini_odd_reply(struct kunit *test)
{
	struct kblk_reply reply;
	struct kd_side *side;

	ini_attrs.timeout_ms = PATIENT;
	side = kdb_welcome_attached(test);
	reply = reply_to_identify(side);
	/* The reply grants more credits than there can be requests. */
	reply.credits = cpu_to_le16(U16_MAX);
	answer_identify(side, reply, IDENTIFY_LEN);
	/*
	 * Wait for the completion of the case's own Send before its memory is
	 * used again.
	 */
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	reply = kdb_good_reply(kdb_expect_request(side, 2, KBLK_OP_READ), 0);
	reply.status = cpu_to_le16(U16_MAX);
	kdb_answer(side, &reply, NULL, sizeof(reply));
	/* After any error of the medium the block is read again. */
	kdb_expect_request(side, 3, KBLK_OP_READ);
	kd_close(side);
	KUNIT_EXPECT_TRUE(test, ini_connect_end(test));
}

/* The disk appears, but a read of it is never answered. */
static void ini_timeout(struct kunit *test)
{
	struct kd_side *side = kdb_welcome_attached(test);

	kdb_identify_as(side, NULL);
	kdb_expect_request(side, 2, KBLK_OP_READ);
	expect_left(side, "no reply", 0);
}

/* The disk was disconnected, and who has waited for it is told so. */
static void expect_canceled(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, ini_connect_end(test));
	KUNIT_EXPECT_EQ(test, ini_error, -ECANCELED);
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx idle " INI_DISK "/state"));
}

/*
 * The disk appears, a read of it is never answered, and the target goes away.
 * The administrator, who still waits for the disk, does not want it any more, and
 * need not wait for as long as requests do.
 */
static void ini_disconnect_ends_connect(struct kunit *test)
{
	struct kd_side *side;

	ini_attrs.give_up_ms = "20000";
	side = kdb_welcome_attached(test);
	kdb_identify_as(side, NULL);
	kdb_expect_request(side, 2, KBLK_OP_READ);
	KUNIT_EXPECT_EQ(test, 0, shell("timeout 10 sh -c 'echo 0 >" INI_DISK "/connected'"));
	expect_canceled(test);
	kd_close(side);
}

/*
 * The same before the target has answered, whichever answer that would be. siw gives up a
 * connection that it has asked for after ten seconds only.
 */
static void ini_disconnect_ends_dialling(struct kunit *test)
{
	struct kd_side *side = kdb_new_target(test);
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;

	ini_attrs.connect_timeout_ms = PATIENT;
	ini_port = kd_port();
	psp = kd_psp(side, ini_port, DAT_PSP_CONSUMER_FLAG);
	ini_connect_start(side, ini_port);
	cr = kd_expect_cr(side);
	KUNIT_EXPECT_EQ(test, 0, ini_put("connected", "0"));
	expect_canceled(test);
	KD_ASSERT_OK(test, dat_psp_free(psp));
	dat_cr_reject(cr, 0, NULL);
	kd_close(side);
}

static struct kunit_case ini_cases[] = {
	KUNIT_CASE_PARAM(ini_bad_welcome, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_attach_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_identify, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_hints, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_early_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_unexpected_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_target_proves, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_key_proves, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_data, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_odd_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_timeout, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_disconnect_ends_connect, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_disconnect_ends_dialling, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-initiator", ini_cases,
	 "the block device initiator and hostile targets", .init = ini_init,
	 .exit = ini_unload);
