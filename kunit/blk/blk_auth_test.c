// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko and clients that have to prove who they are.
 */
#include "blk_secret.h"
#include "blk_target.h"

/*
 * The digest of the 256 bytes of blk_proof_is_hmac(), by Python 3:
 *
 *   of = b"initiator".ljust(16, b"\0") + bytes(range(64))
 *   of += struct.pack("<QIHH", 0x1122334455667788, 7, 3, 0)
 *   of += b"me".ljust(64, b"\0") + b"vol".ljust(64, b"\0")
 *   of += struct.pack("<II", 1, 5000) + bytes(24)
 *   hmac.new(b"a secret of 26 characters.", of, hashlib.sha256).hexdigest()
 */
static const u8 known_digest[] = {
	0x6f, 0xa1, 0x6f, 0x35, 0xd0, 0x92, 0x0b, 0x90,
	0xa0, 0x71, 0x00, 0xea, 0x41, 0xfc, 0xa6, 0x93,
	0xa8, 0x59, 0x0e, 0x9b, 0x35, 0xc5, 0x0a, 0x68,
	0xc9, 0xbf, 0xc5, 0x9b, 0x06, 0x38, 0x97, 0xf1,
};

static void blk_proof_is_hmac(struct kunit *test)
{
	struct kblk_proof_of of = {
		.who = "initiator",
		.session = cpu_to_le64(0x1122334455667788ULL),
		.epoch = cpu_to_le32(7),
		.queue = cpu_to_le16(3),
		.attach.client = "me",
		.attach.subsystem = "vol",
		.attach.namespace = cpu_to_le32(1),
		.attach.keepalive_ms = cpu_to_le32(5000),
	};
	u8 proof[KBLK_PROOF_LEN];
	int i;

	for (i = 0; i < KBLK_NONCE_LEN; i++) {
		of.challenge[i] = i;
		of.nonce[i] = KBLK_NONCE_LEN + i;
	}
	kdb_prove(test, SECRET, &of, proof);
	KUNIT_EXPECT_EQ(test, 0, memcmp(proof, known_digest, sizeof(proof)));
}

/* The kernel's crypto does not compute a proof; sha256 takes no key. */
static void blk_proof_fails(struct kunit *test)
{
	struct kblk_proof_of of = { .who = "initiator" };
	u8 proof[KBLK_PROOF_LEN] = {};
	struct kblk_hmac hmac = {};

	spin_lock_init(&hmac.lock);
	hmac.tfm = crypto_alloc_shash("sha256", 0, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(hmac.tfm));
	KUNIT_EXPECT_NE(test, 0, kblk_prove(&hmac, SECRET, strlen(SECRET), &of,
					    proof));
	KUNIT_EXPECT_NULL(test, memchr_inv(proof, 0, sizeof(proof)));
	kblk_hmac_free(&hmac);
}

/* A client of that name has a secret; others need none unless all have to have one. */
static void load_with_secret(struct kunit *test, bool all)
{
	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, shell("echo '" SECRET "' >" TGT
				       "/clients/friend/secret"));
	if (all)
		KUNIT_ASSERT_EQ(test, 0, shell("echo 1 >" TGT
					       "/subsystems/vol/authenticate"));
}

static struct kd_side *client_with_auth(struct kunit *test,
					struct kblk_hello *hello)
{
	kdb_hello_features = KBLK_FEATURE_AUTH;
	*hello = kdb_good_hello();
	kdb_hello_features = 0;
	return kdb_welcome_client(test, hello);
}

/* Ask for a challenge. */
static void challenge(struct kd_side *side, u8 *nonce)
{
	struct kblk_request request = kdb_good_request(side);

	request.opcode = KBLK_OP_CHALLENGE;
	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(KBLK_NONCE_LEN);
	KUNIT_EXPECT_EQ(side->test, kdb_ask(side, &request), KBLK_OK);
	memcpy(nonce, side->buf->va + INLINE_AT, KBLK_NONCE_LEN);
}

/* What a client sends, and what its proof is of. */
struct proven {
	struct kblk_attach attach;
	struct kblk_proof proof;
	struct kblk_proof_of of;
};

static struct proven prove(struct kunit *test, const struct kblk_hello *hello,
			   const u8 *nonce, const char *name, const char *secret)
{
	struct proven proven = {};

	strscpy(proven.attach.client, name, sizeof(proven.attach.client));
	strscpy(proven.attach.subsystem, "vol", sizeof(proven.attach.subsystem));
	proven.attach.namespace = cpu_to_le32(1);
	strscpy(proven.of.who, "initiator", sizeof(proven.of.who));
	memcpy(proven.of.challenge, nonce, KBLK_NONCE_LEN);
	memset(proven.proof.nonce, 'n', KBLK_NONCE_LEN);
	memset(proven.of.nonce, 'n', KBLK_NONCE_LEN);
	proven.of.session = hello->session;
	proven.of.epoch = hello->epoch;
	proven.of.queue = hello->queue;
	proven.of.attach = proven.attach;
	kdb_prove(test, secret, &proven.of, proven.proof.proof);
	return proven;
}

static u16 attach_proven(struct kd_side *side, const struct proven *proven)
{
	size_t len = sizeof(proven->attach) + sizeof(proven->proof);
	const struct kblk_reply *reply = side->buf->va + REPLY_AT;
	struct kblk_request request = kdb_good_request(side);
	struct kunit *test = side->test;
	u16 status;

	request.opcode = KBLK_OP_ATTACH;
	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(len);
	memcpy(side->buf->va + REQUEST_AT + sizeof(request), proven, len);
	kdb_send_request(side, &request, sizeof(request) + len);
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, side->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	status = le16_to_cpu(reply->status);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reply->length),
			status == KBLK_OK ? KBLK_PROOF_LEN : 0);
	kdb_post_reply_buffer(side);
	return status;
}

/*
 * Have a client attach as "friend" with @secret, and expect @status. What it sent goes
 * to @proven. Return the client.
 */
static struct kd_side *attach_with(struct kunit *test, const char *secret,
				   u16 status, struct proven *proven)
{
	u8 nonce[KBLK_NONCE_LEN];
	struct kblk_hello hello;
	struct kd_side *side;

	side = client_with_auth(test, &hello);
	challenge(side, nonce);
	*proven = prove(test, &hello, nonce, "friend", secret);
	KUNIT_EXPECT_EQ(test, attach_proven(side, proven), status);
	return side;
}

/* The right secret lets in, and the target shows that it has it as well. */
static void blk_proof_is_right(struct kunit *test)
{
	struct kblk_request request;
	u8 proof[KBLK_PROOF_LEN];
	struct proven proven;
	struct kd_side *side;

	load_with_secret(test, true);
	side = attach_with(test, SECRET, KBLK_OK, &proven);
	KUNIT_EXPECT_NOT_NULL(test, memchr_inv(proven.of.challenge, 0,
					       sizeof(proven.of.challenge)));
	strscpy_pad(proven.of.who, "target", sizeof(proven.of.who));
	kdb_prove(test, SECRET, &proven.of, proof);
	KUNIT_EXPECT_EQ(test, 0, memcmp(proof, side->buf->va + INLINE_AT,
					sizeof(proof)));
	request = kdb_good_request(side);
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	kd_close(side);
}

/* What does not let in, and ends the connection. */
static void blk_proof_is_wrong(struct kunit *test)
{
	struct kblk_hello hello;
	u8 nonce[KBLK_NONCE_LEN];
	struct proven proven, first = {};
	struct kd_side *side;
	int i;

	load_with_secret(test, true);
	for (i = 0; i < 5; i++) {
		side = client_with_auth(test, &hello);
		memset(nonce, 0, sizeof(nonce));
		if (i != 2)
			challenge(side, nonce);
		proven = prove(test, &hello, nonce,
			       i == 3 ? "stranger" : "friend",
			       i == 1 ? OTHER_SECRET : SECRET);
		if (i == 0)
			proven.proof.proof[31] ^= 1;
		/* Heard on the wire, and sent again. */
		if (i == 4)
			proven = first;
		KUNIT_EXPECT_EQ_MSG(test, attach_proven(side, &proven),
				    KBLK_ERR_PROOF, "proof %d", i);
		kdb_expect_end(side);
		kd_close(side);
		if (i != 3)
			continue;
		kd_close(attach_with(test, SECRET, KBLK_OK, &first));
	}
	/* An initiator of former times. */
	hello = kdb_good_hello();
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "friend", "vol", 1, 0),
			KBLK_ERR_DENIED);
	kdb_expect_end(side);
	KUNIT_EXPECT_EQ(test, 0, shell("grep -Eq '^connections without proof +6$' "
				       TGT_STATS));
}

static bool one_is_unproven(void *unused)
{
	return !shell("grep -Eq '^connections without proof +1$' " TGT_STATS);
}

/* Who leaves before the target has had a look has not made a wrong proof for nothing. */
static void blk_proof_is_wrong_and_gone(struct kunit *test)
{
	struct proven proven;

	load_with_secret(test, true);
	kd_close(attach_with(test, OTHER_SECRET, KBLK_ERR_PROOF, &proven));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(one_is_unproven, NULL,
					      KD_TIMEOUT_MS));
}

/* Who calls himself so, in vain, and in the same message somebody else. */
static void blk_proof_is_due_once(struct kunit *test)
{
	static const char * const names[] = { "friend", "stranger" };
	const struct kblk_reply *reply;
	struct kblk_request request;
	struct kblk_attach attach = {};
	struct kblk_hello hello;
	struct kd_side *side;
	void *to;
	int i;

	load_with_secret(test, false);
	kdb_hello_features = KBLK_FEATURE_REQUESTS;
	hello = kdb_good_hello();
	side = kdb_welcome_client(test, &hello);
	kdb_post_reply_buffer(side);
	request = kdb_good_request(side);
	request.opcode = KBLK_OP_ATTACH;
	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(sizeof(attach));
	strscpy(attach.subsystem, "vol", sizeof(attach.subsystem));
	attach.namespace = cpu_to_le32(1);
	to = side->buf->va + REQUEST_AT;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		strscpy_pad(attach.client, names[i], sizeof(attach.client));
		memcpy(to, &request, sizeof(request));
		memcpy(to + sizeof(request), &attach, sizeof(attach));
		to += sizeof(request) + sizeof(attach);
	}
	kd_send(side, REQUEST_AT, to - side->buf->va - REQUEST_AT, 2);
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		kd_expect_dto(test, side->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	reply = side->buf->va + REPLY_AT;
	KUNIT_EXPECT_EQ(test, le16_to_cpu(reply->status), KBLK_ERR_DENIED);
	kdb_expect_end(side);
	KUNIT_EXPECT_TRUE(test, one_is_unproven(NULL));
}

/* Who has a secret is not somebody else; who has none goes on as before. */
static void blk_proof_of_one(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;

	load_with_secret(test, false);
	hello = kdb_good_hello();
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "friend", "vol", 1, 0),
			KBLK_ERR_DENIED);
	kdb_expect_end(side);
	kdb_expect_serving(test);
	KUNIT_EXPECT_NE(test, 0, shell("echo short >" TGT
				       "/clients/friend/secret"));
	KUNIT_EXPECT_EQ(test, 0, shell("test $(stat -c %a " TGT
				       "/clients/friend/secret) = 600"));
	KUNIT_EXPECT_EQ(test, 0, shell("echo >" TGT "/clients/friend/secret"));
	hello = kdb_good_hello();
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "friend", "vol", 1, 0), KBLK_OK);
}

/* ---- Keys ------------------------------------------------------------------- */

static int put_secret(const char *secret)
{
	return kdb_write(TGT "/clients/friend/secret", secret);
}

static void expect_let_in(struct kunit *test, const char *secret)
{
	struct proven proven;

	kd_close(attach_with(test, secret, KBLK_OK, &proven));
}

static void expect_shut_out(struct kunit *test, const char *secret)
{
	struct proven proven;
	struct kd_side *side;

	side = attach_with(test, secret, KBLK_ERR_PROOF, &proven);
	kdb_expect_end(side);
	kd_close(side);
}

/* The payload of a key is the secret, and what it is updated to with the next ATTACH. */
static void blk_key_proves(struct kunit *test)
{
	static const char * const types[] = { "logon", "user" };
	char value[32], *name = value + strlen(KBLK_SECRET_KEY);
	struct key *key;
	int i;

	tgt_load(test);
	kdb_keyring(test);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		snprintf(value, sizeof(value), KEY_SECRET ":%s", types[i]);
		key = kdb_key(test, types[i], name, SECRET);
		KUNIT_EXPECT_EQ(test, 0, put_secret(value));
		expect_let_in(test, SECRET);
		expect_shut_out(test, OTHER_SECRET);
		KUNIT_EXPECT_PTR_EQ(test, key, kdb_key(test, types[i], name,
						       OTHER_SECRET));
		expect_shut_out(test, SECRET);
		expect_let_in(test, OTHER_SECRET);
	}
}

/* A payload of as many bytes as a secret may have; @longer of them more. */
static const char *long_secret(struct kunit *test, size_t longer)
{
	char *secret = kunit_kzalloc(test, KBLK_SECRET_MAX + longer + 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, secret);
	memset(secret, 's', KBLK_SECRET_MAX + longer);
	return secret;
}

/* What ends the use of a key that was good when it was written. */
enum key_end { END_REVOKED, END_EXPIRED, END_INVALID, END_LONG, ENDS };

static void end_key(struct kunit *test, struct key *key, enum key_end how)
{
	switch (how) {
	case END_REVOKED:
		key_revoke(key);
		break;
	case END_EXPIRED:
		WRITE_ONCE(key->expiry, 1);
		break;
	case END_INVALID:
		key_invalidate(key);
		break;
	default:
		KUNIT_EXPECT_PTR_EQ(test, key, kdb_key(test, "logon",
						       key->description,
						       long_secret(test, 1)));
	}
}

static void blk_key_ends(struct kunit *test)
{
	char value[32];
	struct key *key;
	int i;

	tgt_load(test);
	kdb_keyring(test);
	for (i = 0; i < ENDS; i++) {
		snprintf(value, sizeof(value), KEY_SECRET "%d", i);
		key = kdb_key(test, "logon", value + strlen(KBLK_SECRET_KEY), SECRET);
		KUNIT_EXPECT_EQ(test, 0, put_secret(value));
		expect_let_in(test, SECRET);
		end_key(test, key, i);
		expect_shut_out(test, SECRET);
		KUNIT_EXPECT_NE(test, 0, put_secret(value));
	}
	KUNIT_EXPECT_EQ(test, 0, shell("grep -Eq '^connections without proof +4$' "
				       TGT_STATS));
	/* A secret may follow. */
	KUNIT_EXPECT_EQ(test, 0, put_secret(OTHER_SECRET));
	expect_let_in(test, OTHER_SECRET);
}

/* A key that is refused leaves the secret as it was. */
static void blk_key_is_refused(struct kunit *test)
{
	char value[KBLK_SECRET_TEXT + 2] = KBLK_SECRET_KEY;

	tgt_load(test);
	KUNIT_EXPECT_EQ(test, -ENOKEY, put_secret(KEY_SECRET));
	kdb_keyring(test);
	KUNIT_EXPECT_EQ(test, -ENOKEY, put_secret(KEY_SECRET));
	kdb_key(test, "logon", KEY_NAME, SECRET);
	KUNIT_EXPECT_EQ(test, 0, put_secret(KEY_SECRET "\n"));
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx " KEY_SECRET " " TGT
				       "/clients/friend/secret"));
	/* This is a process without the keyring. */
	KUNIT_EXPECT_NE(test, 0, shell("echo " KEY_SECRET " >" TGT
				       "/clients/friend/secret"));
	kdb_key(test, "logon", KEY_NAME ":long", long_secret(test, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, put_secret(KEY_SECRET ":long"));
	/* As it would be a secret if it did not begin so. */
	KUNIT_EXPECT_EQ(test, -ENOKEY, put_secret(KBLK_SECRET_KEY " " SECRET));
	memset(value + strlen(value), 'x', KBLK_SECRET_TEXT - strlen(value));
	KUNIT_EXPECT_EQ(test, -ENOKEY, put_secret(value));
	value[KBLK_SECRET_TEXT] = 'x';
	KUNIT_EXPECT_EQ(test, -EINVAL, put_secret(value));
	expect_let_in(test, SECRET);
	/* The shortest key, and the longest. */
	kdb_key(test, "user", KEY_NAME ":short", "123456789012345");
	KUNIT_EXPECT_EQ(test, -EINVAL, put_secret(KEY_SECRET ":short"));
	kdb_key(test, "user", KEY_NAME ":user", "1234567890123456");
	KUNIT_EXPECT_EQ(test, 0, put_secret(KEY_SECRET ":user"));
	expect_let_in(test, "1234567890123456");
	kdb_key(test, "user", KEY_NAME ":user", long_secret(test, 0));
	expect_let_in(test, long_secret(test, 0));
}

static u16 attach_volume(struct kd_side *side, const struct kblk_hello *hello,
			 const u8 *nonce, u32 nsid)
{
	struct proven proven = prove(side->test, hello, nonce, "friend", SECRET);

	proven.attach.namespace = cpu_to_le32(nsid);
	export_uuid(proven.attach.host, &kdb_host);
	proven.of.attach = proven.attach;
	kdb_prove(side->test, SECRET, &proven.of, proven.proof.proof);
	return attach_proven(side, &proven);
}

/* Volumes that share a connection are proven for one by one. */
static void blk_proof_of_each_volume(struct kunit *test)
{
	u8 nonce[KBLK_NONCE_LEN];
	struct kblk_hello hello;
	struct kd_side *side;
	int i;

	tgt_load_with(test, "echo 8 >io_depth; echo '" SECRET "' >" TGT
		      "/clients/friend/secret");
	uuid_gen(&kdb_host);
	kdb_hello_features = KBLK_FEATURE_AUTH | KBLK_FEATURE_HOST |
			     KBLK_FEATURE_CREDITS | KBLK_FEATURE_VOLUMES;
	hello = kdb_good_hello();
	KUNIT_ASSERT_EQ(test, 0, shell("set -e; cd " TGT "/subsystems/vol/namespaces;"
				       "for i in 2 3; do mkdir $i; "
				       "truncate -s 1M " TGT_FILE ".$i; "
				       "echo " TGT_FILE ".$i >$i/path; "
				       "echo 1 >$i/enable; done"));
	side = kdb_welcome_client(test, &hello);
	for (i = 1; i <= 2; i++) {
		challenge(side, nonce);
		KUNIT_EXPECT_EQ(test, attach_volume(side, &hello, nonce, i),
				KBLK_OK);
	}
	KUNIT_EXPECT_EQ(test, attach_volume(side, &hello, nonce, 3),
			KBLK_ERR_PROOF);
	kdb_expect_end(side);
	kd_close(side);
	KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT "/subsystems/vol/namespaces;"
				       "rmdir 2 3; rm " TGT_FILE ".[23]"));
}

static struct kunit_case auth_cases[] = {
	KUNIT_CASE(blk_proof_is_hmac),
	KUNIT_CASE(blk_proof_fails),
	KUNIT_CASE_PARAM(blk_proof_is_right, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_proof_is_wrong, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_proof_is_wrong_and_gone, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_proof_is_due_once, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_proof_of_one, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_proof_of_each_volume, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_key_proves, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_key_ends, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_key_is_refused, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-auth", auth_cases,
	 "authentication of the block device target's clients");
