// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: which volumes it tells a client of (KBLK_FEATURE_LIST), and that it tells
 * nobody more than ATTACH would let him have.
 */
#include "blk_secret.h"
#include "blk_target.h"

#define OTHER_FILE	"/tmp/kdapl_blk_other"
#define OTHER		TGT "/subsystems/other"

static void other_remove(void *unused)
{
	shell("rm -f " TGT "/ports/1/subsystems/other " OTHER "/allowed_clients/*;"
	      " rmdir " OTHER "/namespaces/* " OTHER "; rm " OTHER_FILE);
}

/* Load the target, with another subsystem that one client may use, of three volumes. */
static void load(struct kunit *test)
{
	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, other_remove, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("set -e; cp " TGT_FILE " " OTHER_FILE "; mkdir " OTHER
				       "; cd " OTHER "/namespaces; mkdir 3 4;"
				       " echo " OTHER_FILE " >3/path; echo 1 >3/read_only;"
				       " echo 1 >3/enable; echo /nonexistent >4/path;"
				       " ln -s " TGT "/clients/friend " OTHER "/allowed_clients;"
				       " ln -s " OTHER " " TGT "/ports/1/subsystems"));
}

static struct kd_side *asker(struct kunit *test, u32 features, struct kblk_hello *hello)
{
	struct kd_side *side;

	kdb_hello_features = features;
	*hello = kdb_good_hello();
	kdb_hello_features = 0;
	side = kdb_welcome_client(test, hello);
	return side;
}

/* What a client that lists sends */
struct asked {
	struct kblk_attach attach;
	struct kblk_proof proof;
};

/* Ask for volume @n with @len bytes of @asked. Return the status. */
static u16 ask(struct kd_side *side, const struct asked *asked, size_t len, u64 n)
{
	struct kblk_request request = kdb_good_request(side);

	request.opcode = KBLK_OP_LIST;
	request.flags = KBLK_INLINED;
	request.offset = cpu_to_le64(n);
	request.length = cpu_to_le32(len);
	memcpy(side->buf->va + REQUEST_AT + sizeof(request), asked, len);
	return kdb_ask(side, &request);
}

static u16 list(struct kd_side *side, const char *client, u64 n)
{
	struct asked asked = {};

	strscpy(asked.attach.client, client, sizeof(asked.attach.client));
	return ask(side, &asked, sizeof(asked.attach), n);
}

static void expect_listed(struct kd_side *side, const char *subsystem, u32 namespace, u32 flags)
{
	const struct kblk_listed *listed = side->buf->va + INLINE_AT;
	struct kunit *test = side->test;

	KUNIT_EXPECT_STREQ(test, listed->subsystem, subsystem);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(listed->namespace), namespace);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(listed->flags), flags);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(listed->size), FILE_SIZE);
	KUNIT_EXPECT_NOT_NULL(test, memchr_inv(listed->uuid, 0, sizeof(listed->uuid)));
	KUNIT_EXPECT_NULL(test, memchr_inv(listed->reserved, 0, sizeof(listed->reserved)));
}

/* A client is told of the volumes that it may have, one by one, and may then attach. */
static void blk_lists_what_is_allowed(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;
	uuid_t uuid;

	load(test);
	side = asker(test, KBLK_FEATURE_LIST | KBLK_FEATURE_IDENTITY, &hello);
	KUNIT_EXPECT_EQ(test, list(side, "friend", 0), KBLK_OK);
	expect_listed(side, "vol", 1, 0);
	import_uuid(&uuid, ((struct kblk_listed *)(side->buf->va + INLINE_AT))->uuid);
	KUNIT_EXPECT_EQ(test, list(side, "friend", 1), KBLK_OK);
	expect_listed(side, "other", 3, KBLK_VOLUME_READ_ONLY);
	KUNIT_EXPECT_EQ(test, list(side, "friend", 2), KBLK_ERR_NO_VOLUME);
	KUNIT_EXPECT_EQ(test, list(side, "friend", U64_MAX), KBLK_ERR_NO_VOLUME);
	KUNIT_EXPECT_EQ(test, list(side, "stranger", 0), KBLK_OK);
	expect_listed(side, "vol", 1, 0);
	KUNIT_EXPECT_EQ_MSG(test, list(side, "stranger", 1), KBLK_ERR_NO_VOLUME,
			    "a stranger is told of a volume that is not for him");
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "stranger", "vol", 1, 0), KBLK_OK);
	KUNIT_EXPECT_EQ(test, 0, memcmp(&uuid, kdb_ask_identify(side)->uuid, sizeof(uuid)));
	kd_close(side);
}

/* Ask for a challenge, and for volume @n with a proof of @secret. */
static u16 list_proven(struct kd_side *side, const struct kblk_hello *hello, const char *client,
		       const char *secret, u64 n)
{
	struct kblk_request request = kdb_good_request(side);
	struct kblk_proof_of of = {
		.who = "initiator",
		.session = hello->session,
		.epoch = hello->epoch,
		.queue = hello->queue,
	};
	struct asked asked = {};

	request.opcode = KBLK_OP_CHALLENGE;
	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(KBLK_NONCE_LEN);
	KUNIT_EXPECT_EQ(side->test, kdb_ask(side, &request), KBLK_OK);
	memcpy(of.challenge, side->buf->va + INLINE_AT, KBLK_NONCE_LEN);
	strscpy(asked.attach.client, client, sizeof(asked.attach.client));
	memset(asked.proof.nonce, 'n', KBLK_NONCE_LEN);
	memset(of.nonce, 'n', KBLK_NONCE_LEN);
	of.attach = asked.attach;
	kdb_prove(side->test, secret, &of, asked.proof.proof);
	return ask(side, &asked, sizeof(asked), n);
}

/* Who has a secret is told nothing without its proof, and what needs one is for nobody else. */
static void blk_lists_after_proof(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;

	load(test);
	KUNIT_ASSERT_EQ(test, 0, shell("echo '" SECRET "' >" TGT "/clients/friend/secret;"
				       " echo 1 >" TGT "/subsystems/vol/authenticate"));
	side = asker(test, KBLK_FEATURE_LIST, &hello);
	KUNIT_EXPECT_EQ_MSG(test, list(side, "stranger", 0), KBLK_ERR_NO_VOLUME,
			    "a client without a secret is told of what needs one");
	KUNIT_EXPECT_EQ_MSG(test, list(side, "friend", 0), KBLK_ERR_DENIED,
			    "whoever has the name is told");
	kdb_expect_end(side);
	side = asker(test, KBLK_FEATURE_LIST | KBLK_FEATURE_AUTH, &hello);
	KUNIT_EXPECT_EQ(test, list_proven(side, &hello, "friend", OTHER_SECRET, 0),
			KBLK_ERR_PROOF);
	kdb_expect_end(side);
	side = asker(test, KBLK_FEATURE_LIST | KBLK_FEATURE_AUTH, &hello);
	KUNIT_EXPECT_EQ(test, list_proven(side, &hello, "friend", SECRET, 0), KBLK_OK);
	expect_listed(side, "vol", 1, 0);
	KUNIT_EXPECT_EQ(test, list_proven(side, &hello, "friend", SECRET, 1), KBLK_OK);
	expect_listed(side, "other", 3, KBLK_VOLUME_READ_ONLY);
	kd_close(side);
}

/* What makes no sense, and who has not asked for the feature. */
static void blk_list_is_refused(struct kunit *test)
{
	struct asked asked = { .attach.client = "friend" };
	size_t len = sizeof(asked.attach);
	struct kblk_hello hello;
	struct kd_side *side;

	load(test);
	side = asker(test, 0, &hello);
	KUNIT_EXPECT_EQ(test, list(side, "friend", 0), KBLK_ERR_UNSUPPORTED);
	kd_close(side);
	side = asker(test, KBLK_FEATURE_LIST, &hello);
	KUNIT_EXPECT_EQ(test, ask(side, &asked, sizeof(asked), 0), KBLK_ERR_INVALID);
	KUNIT_EXPECT_EQ(test, ask(side, &asked, len - 1, 0), KBLK_ERR_INVALID);
	asked.attach.subsystem[63] = 'x';
	KUNIT_EXPECT_EQ(test, ask(side, &asked, len, 0), KBLK_ERR_INVALID);
	asked.attach.subsystem[63] = 0;
	asked.attach.namespace = cpu_to_le32(1);
	KUNIT_EXPECT_EQ(test, ask(side, &asked, len, 0), KBLK_ERR_INVALID);
	asked.attach.namespace = 0;
	memset(asked.attach.client, 'x', sizeof(asked.attach.client));
	KUNIT_EXPECT_EQ(test, ask(side, &asked, len, 0), KBLK_ERR_INVALID);
	KUNIT_EXPECT_EQ(test, list(side, "friend", 0), KBLK_OK);
	kd_close(side);
}

static struct kunit_case list_cases[] = {
	KUNIT_CASE_PARAM(blk_lists_what_is_allowed, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_lists_after_proof, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_list_is_refused, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-list", list_cases, "volumes that the block device target tells of");
