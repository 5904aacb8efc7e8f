// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: initiators that are to prove who they are, by CHAP, and say
 * what no honest one does. None gets in; the session beside them goes on.
 */
#include <crypto/hash.h>
#include <linux/hex.h>
#include <linux/module.h>
#include "raw.h"
#include "shell.h"

#define TPG		"/sys/kernel/config/target/iscsi/iqn.2026-01.test:raw/tpgt_1/"
#define SECRET		"secret-of-twelve"
#define MD5_SIZE	16
#define CHALLENGE_MAX	64

static int chap_up(struct kunit_suite *suite)
{
	/* LIO would take a newline as a part of them. */
	return raw_target_up(suite) ?:
	       shell("T=" TPG "\n"
		     "[ ! -d $T ] && exit\n"
		     "printf me >$T/auth/userid && printf " SECRET " >$T/auth/password &&\n"
		     "printf it >$T/auth/userid_mutual &&\n"
		     "printf another-of-twelve >$T/auth/password_mutual");
}

static int ask_for_chap(bool on)
{
	return shell(on ? "echo 1 >" TPG "attrib/authentication" :
			  "echo 0 >" TPG "attrib/authentication");
}

/*
 * struct chap - a login
 * @first: its first request, from which the others are made
 * @pdu: the next one
 * @len: of its text
 * @id: the target's identifier
 * @challenge: and its challenge, @size bytes
 * @answer: what the target wants to have for them, in hexadecimal
 */
struct chap {
	struct raw *r;
	struct raw_pdu first;
	struct raw_pdu pdu;
	u32 len;
	u8 id;
	u8 challenge[CHALLENGE_MAX];
	unsigned int size;
	char answer[2 * MD5_SIZE + 1];
};

static __printf(2, 3) void chap_text(struct chap *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	c->len += vscnprintf(c->pdu.data + c->len, sizeof(c->pdu.data) - c->len, fmt, args) + 1;
	va_end(args);
}

/* Send the request, which @flags go with, as one that is followed by @more bytes of text. */
static struct iscsi_login_rsp *chap_ask(struct chap *c, u8 flags, u32 more)
{
	struct kunit *test = c->r->s->test;
	bool sent;

	((struct iscsi_login_req *)&c->pdu.hdr)->flags = flags;
	((struct iscsi_login_req *)&c->pdu.hdr)->exp_statsn = cpu_to_be32(c->r->exp_statsn);
	hton24(c->pdu.hdr.dlength, c->len);
	if (more)
		memset(c->pdu.data + c->len, 'x', sizeof(c->pdu.data) - c->len);
	sent = more ? raw_send_long(c->r, &c->pdu, c->len + more) :
		      raw_send(c->r, &c->pdu, RAW_HEADERS + ALIGN(c->len, 4));
	KUNIT_EXPECT_TRUE(test, sent);
	memset(&c->r->got, 0, sizeof(c->r->got));
	c->pdu = c->first;
	c->len = 0;
	if (!raw_receive(c->r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS))
		return NULL;
	return (struct iscsi_login_rsp *)&c->r->got.hdr;
}

/* Return the value of @key in the answer, or "". */
static const char *chap_value(struct chap *c, const char *key)
{
	const char *at = c->r->got.data, *end = at + min_t(size_t, sizeof(c->r->got.data) - 1,
							   ntoh24(c->r->got.hdr.dlength));

	c->r->got.data[sizeof(c->r->got.data) - 1] = 0;
	for (; at < end; at += strlen(at) + 1)
		if (!strncmp(at, key, strlen(key)))
			return at + strlen(key);
	return "";
}

/* Compute what proves that the initiator knows the secret. */
static void chap_prove(struct kunit *test, struct chap *c)
{
	struct crypto_shash *tfm = crypto_alloc_shash("md5", 0, 0);
	u8 text[1 + sizeof(SECRET) - 1 + CHALLENGE_MAX], digest[MD5_SIZE];

	KUNIT_ASSERT_FALSE(test, IS_ERR(tfm));
	text[0] = c->id;
	memcpy(text + 1, SECRET, sizeof(SECRET) - 1);
	memcpy(text + sizeof(SECRET), c->challenge, c->size);
	KUNIT_EXPECT_EQ(test, 0, crypto_shash_tfm_digest(tfm, text, sizeof(SECRET) + c->size,
							 digest));
	*bin2hex(c->answer, digest, MD5_SIZE) = 0;
	crypto_free_shash(tfm);
}

/* Connect, and offer an algorithm; the target's answer is in r->got. */
static struct chap *chap_offer(struct kunit *test, const char *algorithm)
{
	struct chap *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	u32 unused;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->r = raw_connect(test);
	c->first = raw_login_pdu(c->r, RAW_SOLICITED, &unused);
	memset(c->first.data, 0, sizeof(c->first.data));
	c->pdu = c->first;
	chap_text(c, "InitiatorName=iqn.2026-01.test:hostile");
	chap_text(c, "SessionType=Normal");
	chap_text(c, "TargetName=iqn.2026-01.test:raw");
	chap_text(c, "AuthMethod=CHAP");
	KUNIT_ASSERT_NOT_NULL(test, chap_ask(c, 0, 0));
	KUNIT_ASSERT_STREQ(test, chap_value(c, "AuthMethod="), "CHAP");
	chap_text(c, "CHAP_A=%s", algorithm);
	chap_ask(c, 0, 0);
	return c;
}

/* Connect, and let the target ask who it is. */
static struct chap *chap_begin(struct kunit *test)
{
	struct chap *c = chap_offer(test, "5");
	const char *hex;

	KUNIT_ASSERT_EQ(test, 0, kstrtou8(chap_value(c, "CHAP_I="), 10, &c->id));
	hex = chap_value(c, "CHAP_C=0x");
	c->size = strlen(hex) / 2;
	KUNIT_ASSERT_LE(test, c->size, CHALLENGE_MAX);
	KUNIT_ASSERT_EQ(test, 0, hex2bin(c->challenge, hex, c->size));
	chap_prove(test, c);
	return c;
}

/* An algorithm that begins like one that LIO has is none, and no challenge is sent for it. */
static void chap_algorithms(struct kunit *test)
{
	static const char * const none[] = { "", "55", "5x", "0", "99999", ",,,", "x,5y,6z" };
	struct raw *other = raw_login(test);
	struct chap *c;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, 0, ask_for_chap(true));
	for (i = 0; i < ARRAY_SIZE(none); i++) {
		c = chap_offer(test, none[i]);
		KUNIT_EXPECT_STREQ_MSG(test, chap_value(c, "CHAP_C="), "", "algorithm %u", i);
		KUNIT_EXPECT_TRUE_MSG(test, raw_is_down(c->r, KD_TIMEOUT_MS), "algorithm %u", i);
		raw_close(c->r);
	}
	KUNIT_EXPECT_EQ(test, 0, ask_for_chap(false));
	raw_expect_alive(other);
}

#define TRANSIT (ISCSI_FLAG_LOGIN_TRANSIT | ISCSI_OP_PARMS_NEGOTIATION_STAGE)

/* What a bad initiator says when the target has asked; %s: the right answer. */
static const struct {
	const char *name;
	const char *response;
	const char *identifier;
	const char *challenge;
	u32 more;
} bad[] = {
	{ .name = "me" },
	{ .name = "0x6d65", .response = "0x%s" },
	{ .name = "me, and longer", .response = "0x%s" },
	{ .name = "me", .response = "%s" },
	{ .name = "me", .response = "0x%s00" },
	{ .name = "me", .response = "0x00" },
	{ .name = "me", .response = "0x" },
	{ .name = "me", .response = "0xzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz" },
	{ .name = "me", .response = "0b%s%s%s" },
	{ .name = "me", .response = "0b!!!!" },
	{ .name = "me", .response = "0b", .more = 100 },
	{ .name = "me", .response = "0b", .more = 4000 },
	{ .name = "me", .response = "0x", .more = 4000 },
	{ .name = "me", .response = "0x%s", .identifier = "256", .challenge = "0x01" },
	{ .name = "me", .response = "0x%s", .identifier = "-1", .challenge = "0x01" },
	{ .name = "me", .response = "0x%s", .identifier = "0x", .challenge = "0x01" },
	{ .name = "me", .response = "0x%s", .identifier = "1234567890123", .challenge = "0x01" },
	{ .name = "me", .response = "0x%s", .identifier = "1" },
	{ .name = "me", .response = "0x%s", .identifier = "1", .challenge = "0x" },
	{ .name = "me", .response = "0x%s", .identifier = "1", .challenge = "none" },
	{ .name = "me", .response = "0x%s", .identifier = "1", .challenge = "0b", .more = 4000 },
	{ .name = "me", .response = "0x%s", .identifier = "1", .challenge = "0b", .more = 8000 },
	{ .name = "me", .response = "0x%s", .identifier = "1", .challenge = "0x", .more = 4000 },
	{ .name = "me", .response = "0x%s", .identifier = "1", .challenge = "reflected" },
};

static void chap_answer(struct chap *c, const char *response)
{
	char text[4 * sizeof(c->answer)], *at = text;
	const char *f;

	for (f = response; *f; f++)
		if (f[0] == '%' && f[1] == 's') {
			at += strscpy(at, c->answer, sizeof(c->answer));
			f++;
		} else {
			*at++ = *f;
		}
	*at = 0;
	chap_text(c, "CHAP_R=%s", text);
}

/* Say what bad[i] has; return the target's answer. */
static struct iscsi_login_rsp *chap_say(struct chap *c, unsigned int i)
{
	char hex[2 * CHALLENGE_MAX + 1];

	chap_text(c, "CHAP_N=%s", bad[i].name);
	if (bad[i].response)
		chap_answer(c, bad[i].response);
	if (bad[i].identifier)
		chap_text(c, "CHAP_I=%s", bad[i].identifier);
	if (bad[i].challenge && strcmp(bad[i].challenge, "reflected")) {
		chap_text(c, "CHAP_C=%s", bad[i].challenge);
	} else if (bad[i].challenge) {
		*bin2hex(hex, c->challenge, c->size) = 0;
		chap_text(c, "CHAP_C=0x%s", hex);
	}
	/* What follows belongs to the last key. */
	c->len -= !!bad[i].more;
	return chap_ask(c, TRANSIT, bad[i].more);
}

static void chap_is_refused(struct kunit *test)
{
	struct raw *other = raw_login(test);
	const struct iscsi_login_rsp *rsp;
	struct chap *c;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, 0, ask_for_chap(true));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		c = chap_begin(test);
		rsp = chap_say(c, i);
		KUNIT_EXPECT_TRUE_MSG(test, !rsp || rsp->status_class, "login %u", i);
		KUNIT_EXPECT_TRUE_MSG(test, raw_is_down(c->r, KD_TIMEOUT_MS), "login %u", i);
		raw_close(c->r);
	}
	KUNIT_EXPECT_EQ(test, 0, ask_for_chap(false));
	raw_expect_alive(other);
}

/* What the others are compared with, both ways and one way. */
static void chap_is_accepted(struct kunit *test)
{
	const struct iscsi_login_rsp *rsp;
	struct chap *c;
	int i;

	KUNIT_ASSERT_EQ(test, 0, ask_for_chap(true));
	for (i = 0; i < 2; i++) {
		c = chap_begin(test);
		chap_text(c, "CHAP_N=me");
		chap_answer(c, "0x%s");
		if (i) {
			chap_text(c, "CHAP_I=7");
			chap_text(c, "CHAP_C=0x0123456789abcdef0123456789abcdef");
		}
		rsp = chap_ask(c, TRANSIT, 0);
		KUNIT_ASSERT_NOT_NULL(test, rsp);
		KUNIT_EXPECT_EQ(test, rsp->status_class, 0);
		KUNIT_EXPECT_STREQ(test, chap_value(c, "CHAP_N="), i ? "it" : "");
		raw_close(c->r);
	}
	KUNIT_EXPECT_EQ(test, 0, ask_for_chap(false));
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(chap_is_accepted, kd_gen_any_ia),
	KUNIT_CASE_PARAM(chap_is_refused, kd_gen_any_ia),
	KUNIT_CASE_PARAM(chap_algorithms, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-chap", isert_cases, "kdapl_isert.ko: who initiators say they are",
	 .init = raw_init, .suite_init = chap_up, .suite_exit = raw_target_down);
