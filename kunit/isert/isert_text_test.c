// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: text in sessions, and answers to it that are longer than
 * one PDU, the rest of which the initiator asks for.
 */
#include <linux/module.h>
#include <linux/string.h>
#include "raw.h"
#include "shell.h"

/* Send @len bytes of @text. */
static void send_text(struct raw *r, const char *text, size_t len)
{
	struct raw_pdu *pdu = r->pdu;

	*pdu = raw_make(r, ISCSI_OP_TEXT | ISCSI_OP_IMMEDIATE);
	((struct iscsi_text *)&pdu->hdr)->ttt = RAW_NONE;
	hton24(pdu->hdr.dlength, len);
	memcpy(pdu->data, text, len);
	KUNIT_ASSERT_TRUE(r->s->test, raw_send(r, pdu, RAW_HEADERS + ALIGN(len, 4)));
}

/* Text that LIO answers, and text that ends the session. */
static void text_answers(struct kunit *test)
{
	static const struct {
		const char *text;
		bool bad;
	} texts[] = {
		{ "SendTargets=All" },
		{ "SendTargets=iqn.2026-01.test:raw" },
		{ "SendTargets=iqn.2026-01.test:another" },
		{ "SendTargets=", true },
		{ "SendTargets=no name", true },
		{ "SendTargets", true },
		{ "X-nobody.knows=Yes", true },
		{ "", true },
	};
	struct raw *other = raw_login(test), *r = raw_login(test);
	unsigned int i;
	size_t len;

	/* With what ends the text, and without. */
	for (i = 0; i < 2 * ARRAY_SIZE(texts); i++) {
		len = strlen(texts[i / 2].text);
		if (len)
			len += i % 2;
		send_text(r, texts[i / 2].text, len);
		if (!texts[i / 2].bad) {
			KUNIT_EXPECT_TRUE_MSG(test, raw_receive(r, ISCSI_OP_TEXT_RSP,
								KD_TIMEOUT_MS),
					      "text %u", i);
			continue;
		}
		raw_expect_cut(r);
		raw_close(r);
		r = raw_login(test);
	}
	raw_expect_alive(r);
	raw_expect_alive(other);
}

/* ---- Answers in several parts -------------------------------------------------------- */

#define MORE		"iqn.2026-01.test:more"
/* What a session may send; each SCSI Read is answered by two requests. */
#define WINDOW		64
#define PART		512
/* Answers of a session that the target has at most. */
#define ANSWERS		128

/* Make two targets with long names, so that the names do not fit into PART bytes. */
static int more_targets(void)
{
	return shell("set -e\n"
		     "long=$(printf %0160d 0)\n"
		     "for n in 1 2; do\n"
		     "T=/sys/kernel/config/target/iscsi/" MORE "-$n-$long/tpgt_1\n"
		     "mkdir -p $T\n"
		     "for a in 10.8.0.1 10.9.0.1 10.10.0.1 10.11.0.1; do\n"
		     "unshare -n mkdir $T/np/$a:3270\n"
		     "echo 1 >$T/np/$a:3270/iser\n"
		     "done\n"
		     "echo 1 >$T/enable\n"
		     "done\n");
}

static void no_more_targets(void *unused)
{
	WARN_ON(shell("set -e\n"
		      "for T in /sys/kernel/config/target/iscsi/" MORE "-*; do\n"
		      "echo 0 >$T/tpgt_1/enable\n"
		      "rmdir $T/tpgt_1/np/* $T/tpgt_1 $T\n"
		      "done\n"));
}

/*
 * struct answer - what has come of an answer
 * @itt: of the request
 * @ttt: the target's tag, for the next part
 * @parts: how many have come
 * @text: what was in them, @len bytes
 */
struct answer {
	itt_t itt;
	__be32 ttt;
	unsigned int parts;
	size_t len;
	char text[4 * PART];
};

/* Receive a part of @a; tell whether there are more. */
static bool next_part(struct raw *r, struct answer *a)
{
	const struct iscsi_text_rsp *rsp = (const struct iscsi_text_rsp *)&r->got.hdr;
	struct kunit *test = r->s->test;
	size_t len;

	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_TEXT_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, rsp->itt == a->itt);
	len = ntoh24(rsp->dlength);
	KUNIT_ASSERT_LE(test, len, PART);
	KUNIT_ASSERT_LE(test, a->len + len, sizeof(a->text));
	memcpy(a->text + a->len, r->got.data, len);
	a->len += len;
	if (!a->parts++)
		a->ttt = rsp->ttt;
	KUNIT_EXPECT_TRUE(test, rsp->ttt == a->ttt);
	return rsp->flags & ISCSI_FLAG_TEXT_CONTINUE;
}

static void ask_for_more(struct raw *r, const struct answer *a)
{
	struct raw_pdu *pdu = r->pdu;

	*pdu = raw_make(r, ISCSI_OP_TEXT | ISCSI_OP_IMMEDIATE);
	pdu->hdr.itt = a->itt;
	((struct iscsi_text *)&pdu->hdr)->ttt = a->ttt;
	KUNIT_ASSERT_TRUE(r->s->test, raw_send(r, pdu, RAW_HEADERS));
}

/* How often is there a line in @a that begins with @name? */
static unsigned int count_of(const struct answer *a, const char *name)
{
	unsigned int n = 0;
	size_t at;

	for (at = 0; at < a->len; at += strnlen(a->text + at, a->len - at) + 1)
		n += !strncmp(a->text + at, name, strlen(name));
	return n;
}

/* Ask for all that is left of @a: it is all there, in the right order. */
static void expect_the_rest(struct raw *r, struct answer *a)
{
	struct kunit *test = r->s->test;

	while (next_part(r, a))
		ask_for_more(r, a);
	KUNIT_EXPECT_GT(test, a->parts, 1);
	KUNIT_EXPECT_GE(test, count_of(a, "TargetName=iqn.2026-01.test:raw"), 1);
	KUNIT_EXPECT_GE(test, count_of(a, "TargetName=" MORE "-1-"), 1);
	KUNIT_EXPECT_GE(test, count_of(a, "TargetName=" MORE "-2-"), 1);
	/* LIO repeats some of those that come before the rest. */
	KUNIT_EXPECT_GE(test, count_of(a, "TargetAddress="), 12);
}

static struct answer *ask_for_all(struct raw *r)
{
	struct answer *a = kunit_kzalloc(r->s->test, sizeof(*a), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(r->s->test, a);
	send_text(r, "SendTargets=All", 16);
	a->itt = r->pdu[0].hdr.itt;
	return a;
}

/* All parts come, again and again, and take no memory: the debug kernel would report it. */
static void text_in_parts(struct kunit *test)
{
	struct raw *r = raw_connect(test);
	unsigned int i;

	KUNIT_ASSERT_EQ(test, 0, more_targets());
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, no_more_targets, NULL));
	raw_log_in(r, RAW_SHORT);
	for (i = 0; i < 4; i++)
		expect_the_rest(r, ask_for_all(r));
	raw_expect_alive(r);
}

/* A session of which so many answers are @posted, and @waiting wait. */
struct unsent {
	struct kunit *test;
	unsigned int posted;
	unsigned int waiting;
};

static bool are_unsent(void *data)
{
	struct unsent *u = data;
	char state[48];

	snprintf(state, sizeof(state), "posted=%u waiting=%u", u->posted, u->waiting);
	return raw_sessions_with(u->test, state) == 1;
}

static bool one_more_is_unsent(void *data)
{
	struct unsent *u = data;

	u->posted++;
	if (are_unsent(u))
		return true;
	u->posted--;
	u->waiting = 1;
	if (are_unsent(u))
		return true;
	u->waiting = 0;
	return false;
}

/* Take one answer, and have no receive in its place. */
static void take_one(struct raw *r)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE(r->s->test, kd_wait_event(r->s->recv_evd, &event, KD_TIMEOUT_MS));
}

/* Take no answers any more, until so many of them wait for room that @u asks for. */
static void take_no_answers(struct raw *r, struct unsent *u, unsigned int answers)
{
	unsigned int i;

	u->test = r->s->test;
	u->posted = WINDOW;
	for (i = 0; i < 1 + WINDOW; i++) {
		r->pdu[0] = raw_read(r, 1);
		KUNIT_ASSERT_TRUE(u->test, raw_send(r, r->pdu, RAW_HEADERS));
		if (!i)
			take_one(r);
	}
	KUNIT_ASSERT_TRUE(u->test, kd_wait_until(are_unsent, u, KD_TIMEOUT_MS));
	/* There is room for some that are not SCSI's. */
	while (!u->waiting || u->posted + u->waiting < answers) {
		u->waiting += !!u->waiting;
		r->pdu[0] = raw_nop(r, true);
		KUNIT_ASSERT_TRUE(u->test, raw_send(r, r->pdu, RAW_HEADERS));
		KUNIT_ASSERT_TRUE(u->test, kd_wait_until(u->waiting ? are_unsent :
							 one_more_is_unsent, u,
							 KD_TIMEOUT_MS));
	}
}

/* Take no answers any more, and have the target wait for room for that to a text. */
static struct answer *text_that_waits(struct raw *r)
{
	struct unsent u = { };
	struct answer *a;

	take_no_answers(r, &u, 0);
	a = ask_for_all(r);
	u.waiting++;
	KUNIT_ASSERT_TRUE(u.test, kd_wait_until(are_unsent, &u, KD_TIMEOUT_MS));
	return a;
}

enum asked {
	ASKED_TOO_EARLY,
	ASKED_IN_TIME,
};

static KD_CHOICES(gen_asked, kd_gen_any_ia_and,
	[ASKED_TOO_EARLY] = "before it is on its way",
	[ASKED_IN_TIME] = "when it has come")

/*
 * The rest of an answer is asked for. Its tag is no secret: LIO numbers the SCSI Reads of a
 * session from 0 on, and such answers as well.
 */
static void text_after_a_wait(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_new(test, 1);
	const struct kd_param *p = test->param_value;
	__be32 tag = cpu_to_be32(1 + WINDOW);
	struct answer *a;
	u64 slot;

	if (kd_is_iwarp(r->s))
		kunit_skip(test, "the device ends a connection that has no receive");
	KUNIT_ASSERT_EQ(test, 0, more_targets());
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, no_more_targets, NULL));
	KUNIT_ASSERT_TRUE(test, raw_start(r));
	raw_log_in(r, RAW_SHORT);
	a = text_that_waits(r);
	if (p->choice == ASKED_TOO_EARLY) {
		a->ttt = tag;
		ask_for_more(r, a);
		raw_expect_cut(r);
	} else {
		for (slot = 0; slot < RAW_RECVS; slot++)
			raw_post(r, slot);
		expect_the_rest(r, a);
		KUNIT_EXPECT_TRUE(test, a->ttt == tag);
		raw_expect_alive(r);
	}
	raw_expect_alive(other);
}

/*
 * Text that LIO refuses, while the target has no room for one more answer, is forgotten with the
 * session, which another one takes the place of: the debug kernel would report its memory.
 */
static void text_refused_too_late(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_new(test, 1), *next;
	struct unsent u = { };

	if (kd_is_iwarp(r->s))
		kunit_skip(test, "the device ends a connection that has no receive");
	KUNIT_ASSERT_TRUE(test, raw_start(r));
	raw_log_in(r, RAW_SHORT);
	take_no_answers(r, &u, ANSWERS);
	send_text(r, "X-nobody.knows=Yes", 19);
	next = raw_connect(test);
	next->session = r->session;
	raw_log_in(next, RAW_SHORT);
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	raw_expect_alive(next);
	raw_expect_alive(other);
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(text_answers, kd_gen_any_ia),
	KUNIT_CASE_PARAM(text_in_parts, kd_gen_any_ia),
	KUNIT_CASE_PARAM(text_after_a_wait, gen_asked),
	KUNIT_CASE_PARAM(text_refused_too_late, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-text", isert_cases, "kdapl_isert.ko: text after the login", RAW_TARGET);
