// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: what ib_isert, or LIO beneath it, was once mended for, as far
 * as no other suite has it. Documentation/kdapl-isert-hostile.rst has the list.
 */
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <scsi/scsi.h>
#include "device.h"
#include "raw.h"
#include "shell.h"

#define TPG	"/sys/kernel/config/target/iscsi/iqn.2026-01.test:raw/tpgt_1"

/* ---- Lengths of a login -------------------------------------------------------------- */

enum login {
	LOGIN_OF_A_BYTE,
	LOGIN_SHORT,
	LOGIN_SAYS_MORE,
	LOGIN_WITH_AHS,
	LOGIN_NO_ISER,
};

static KD_CHOICES(gen_login, kd_gen_any_ia_and,
	[LOGIN_OF_A_BYTE] = "one byte",
	[LOGIN_SHORT] = "shorter than headers",
	[LOGIN_SAYS_MORE] = "more text than has come",
	[LOGIN_WITH_AHS] = "additional headers",
	[LOGIN_NO_ISER] = "no iSER header")

/* What lies in the receive buffer from before is no part of a login. */
static void fixes_login_lengths(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_connect(test);
	const struct kd_param *p = test->param_value;
	u32 len;

	r->pdu[0] = raw_login_pdu(r, RAW_SOLICITED, &len);
	switch (p->choice) {
	case LOGIN_OF_A_BYTE:
		len = 1;
		break;
	case LOGIN_SHORT:
		len = RAW_HEADERS - 1;
		break;
	case LOGIN_SAYS_MORE:
		hton24(r->pdu[0].hdr.dlength, len - RAW_HEADERS + 512);
		break;
	case LOGIN_WITH_AHS:
		r->pdu[0].hdr.hlength = 1;
		break;
	case LOGIN_NO_ISER:
		r->pdu[0].iser.flags = 0x20;
		break;
	}
	KUNIT_EXPECT_TRUE(test, raw_send(r, r->pdu, len));
	raw_expect_cut(r);
	raw_expect_alive(other);
	raw_expect_alive(raw_login(test));
}

/* ---- Text of a login ----------------------------------------------------------------- */

/* The longest text that the target hands to LIO. */
#define TEXT	8191

/*
 * Text behind that of an honest login: @times a key, @key_fill bytes longer, and a value,
 * @value_fill bytes longer; without an end if it fills the whole of it.
 */
static const struct {
	const char *key;
	const char *value;
	u32 key_fill;
	u32 value_fill;
	u32 times;
} texts[] = {
	{ "", "", },
	{ "", "no key", },
	{ "", "1", .key_fill = 100 },
	{ "", "1", .key_fill = 4000 },
	{ "X-long", "", .value_fill = 300 },
	{ "X-long", "", .value_fill = 7000 },
	{ "X-endless", "", .value_fill = TEXT },
	{ "HeaderDigest", "", .value_fill = 300 },
	{ "HeaderDigest", ",,,,None,,", },
	{ "MaxBurstLength", "99999999999999999999", },
	{ "MaxBurstLength", "0x", },
	{ "MaxBurstLength", "-1", },
	{ "MaxBurstLength", "1~2", },
	{ "MaxRecvDataSegmentLength", "", .value_fill = 300 },
	{ "OFMarker", "Yes", },
	{ "IFMarker", "Yes", },
	{ "OFMarkInt", "2048~8192", },
	{ "InitiatorName", "", .value_fill = 300 },
	{ "InitiatorAlias", "", .value_fill = 300 },
	{ "TargetName", "", .value_fill = 300 },
	{ "a", "b", .times = 1800 },
	{ "a", "", .times = 2400 },
};

/* Append to the @at bytes of text that there are; return how many there are then. */
static u32 put(char *text, u32 at, const char *more, u32 fill)
{
	u32 len = min_t(u32, strlen(more), TEXT - at);

	memcpy(text + at, more, len);
	at += len;
	fill = min(fill, TEXT - at);
	memset(text + at, 'x', fill);
	return at + fill;
}

/* Send a login with texts[i] from where nothing else is under way. */
static bool send_text(struct raw *r, unsigned int i)
{
	struct raw_pdu *pdu = r->s->buf->va;
	char *text = r->s->buf->va + RAW_HEADERS;
	DAT_LMR_TRIPLET seg;
	u32 len, at, n;

	BUILD_BUG_ON(RAW_HEADERS + TEXT + 1 > RAW_SENDS * SZ_1K);
	memset(r->s->buf->va, 0, RAW_HEADERS + TEXT + 1);
	*pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
	at = ntoh24(pdu->hdr.dlength);
	for (n = 0; n < max(1u, texts[i].times); n++) {
		at = put(text, at, texts[i].key, texts[i].key_fill);
		at = put(text, at, "=", 0);
		at = put(text, at, texts[i].value, texts[i].value_fill);
		text[at] = 0;
		at = min_t(u32, at + 1, TEXT);
	}
	hton24(pdu->hdr.dlength, at);
	seg = kd_seg(r->s->buf, 0, RAW_HEADERS + ALIGN(at, 4));
	return dat_ep_post_send(r->s->ep, 1, &seg, kd_cookie(1),
				DAT_COMPLETION_SUPPRESS_FLAG) == DAT_SUCCESS;
}

/*
 * LIO answers, or refuses, each key that it does not know or like. Its debug kernel would report
 * what lies beyond its buffers.
 */
static void fixes_login_text(struct kunit *test)
{
	struct raw *other = raw_login(test), *r;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		r = raw_connect(test);
		KUNIT_EXPECT_TRUE(test, send_text(r, i));
		if (!raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS))
			KUNIT_EXPECT_TRUE_MSG(test, raw_is_down(r, KD_TIMEOUT_MS), "text %u", i);
		raw_close(r);
		raw_expect_alive(other);
	}
	raw_expect_alive(raw_login(test));
}

/* ---- Memory of the initiator --------------------------------------------------------- */

enum memory {
	READ_TO_NO_KEY,
	WRITE_FROM_NO_KEY,
	READ_BEYOND,
	WRITE_BEYOND,
};

static KD_CHOICES(gen_memory, kd_gen_any_ia_and,
	[READ_TO_NO_KEY] = "a read to a key that there is not",
	[WRITE_FROM_NO_KEY] = "a write from a key that there is not",
	[READ_BEYOND] = "a read to beyond its memory",
	[WRITE_BEYOND] = "a write from beyond its memory")

static bool is_blamed(void *raw)
{
	struct raw *r = raw;

	return raw_adapter(r->s, "broken") == r->broken + 1;
}

/*
 * The initiator's adapter refuses the target's request, which ends the connection. The log says
 * so; but over iWARP only the initiator's adapter knows why.
 */
static void fixes_memory(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_login(test);
	const struct kd_param *p = test->param_value;
	u32 blocks = 2 * r->data->len / RAW_BLOCK;
	struct raw_pdu *pdu = r->pdu;

	switch (p->choice) {
	case READ_TO_NO_KEY:
		*pdu = raw_read(r, 1);
		pdu->iser.read_stag ^= cpu_to_be32(0xff);
		break;
	case WRITE_FROM_NO_KEY:
		*pdu = raw_write(r, 1);
		pdu->iser.write_stag ^= cpu_to_be32(0xff);
		break;
	case READ_BEYOND:
		*pdu = raw_read(r, blocks);
		break;
	case WRITE_BEYOND:
		*pdu = raw_write(r, blocks);
		break;
	}
	KUNIT_EXPECT_TRUE(test, raw_send(r, pdu, RAW_HEADERS));
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	if (!kd_is_iwarp(r->s))
		KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(is_blamed, r, KD_TIMEOUT_MS),
				      "the log does not say why");
	raw_close(r);
	raw_expect_alive(other);
}

/* ---- What a connection leaves -------------------------------------------------------- */

/* A connection for which the target's adapter has no room is refused, and nothing kept of it. */
static void fixes_no_room_for_a_connection(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_new(test, RAW_RECVS);
	long refused = raw_adapter(other->s, "refused");

	/* Those of cases before may still be ending. */
	KUNIT_ASSERT_TRUE(test, raw_wait_adapter(other->s, "connections", 1, 1, KD_TIMEOUT_MS));
	kd_refuse_second_qp(test, other->s->name);
	KUNIT_EXPECT_FALSE(test, raw_start(r));
	KUNIT_EXPECT_EQ(test, atomic_read(&kd_qps), 2);
	KUNIT_EXPECT_EQ(test, raw_adapter(other->s, "connections"), 1);
	KUNIT_EXPECT_EQ(test, raw_adapter(other->s, "refused"), refused + 1);
	raw_expect_alive(raw_login(test));
	raw_expect_alive(other);
}

/* LIO's threads of sessions. */
static unsigned int threads(void)
{
	struct task_struct *task;
	unsigned int n = 0;

	rcu_read_lock();
	for_each_process(task)
		n += !strncmp(task->comm, "iscsi_trx", 9) || !strncmp(task->comm, "iscsi_ttx", 9);
	rcu_read_unlock();
	return n;
}

static bool no_threads(void *unused)
{
	return !threads();
}

/* However sessions end, none of LIO's threads is left. */
static void fixes_threads_end(struct kunit *test)
{
	struct raw *other = raw_login(test), *r;
	struct raw_pdu pdu;
	int i;

	for (i = 0; i < 8; i++) {
		r = raw_login(test);
		pdu = raw_logout(r);
		switch (i % 4) {
		case 0:
			break;
		case 1:
			((struct iscsi_logout *)&pdu.hdr)->flags =
				ISCSI_FLAG_CMD_FINAL | ISCSI_LOGOUT_REASON_CLOSE_CONNECTION;
			break;
		case 2:
			pdu.hdr.opcode = 0x1c | ISCSI_OP_IMMEDIATE;
			break;
		case 3:
			pdu = raw_write(r, 8);
			break;
		}
		KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
		if (i % 4 == 3)
			dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
		KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
		raw_close(r);
	}
	KUNIT_EXPECT_GE(test, threads(), 2);
	raw_expect_alive(other);
	raw_close(other);
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(no_threads, NULL, KD_TIMEOUT_MS),
			      "%u threads are left", threads());
}

/* Those who say that they are one, all at once, take each other's place; the last one stays. */
static void fixes_one_name(struct kunit *test)
{
	struct raw *other = raw_login(test), *r[6];
	u32 len;
	int i;

	for (i = 0; i < ARRAY_SIZE(r); i++) {
		r[i] = raw_connect(test);
		r[i]->session = r[0]->session;
	}
	for (i = 0; i < ARRAY_SIZE(r); i++) {
		r[i]->pdu[0] = raw_login_pdu(r[i], RAW_SOLICITED, &len);
		KUNIT_EXPECT_TRUE(test, raw_send(r[i], r[i]->pdu, len));
	}
	for (i = 0; i < ARRAY_SIZE(r) - 1; i++)
		KUNIT_EXPECT_TRUE_MSG(test, raw_is_down(r[i], KD_TIMEOUT_MS), "login %d", i);
	KUNIT_EXPECT_TRUE(test, raw_receive(r[i], ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	raw_expect_alive(r[i]);
	raw_expect_alive(other);
}

/* ---- Answers that are on their way --------------------------------------------------- */

enum end {
	END_ABRUPT,
	END_REINSTATED,
	END_DISABLED,
};

static KD_CHOICES(gen_end, kd_gen_any_ia_and,
	[END_ABRUPT] = "it leaves",
	[END_REINSTATED] = "another one takes its place",
	[END_DISABLED] = "the target is disabled")

/* The first of six finds the receive of the login. */
static bool all_are_posted(void *test)
{
	return raw_sessions_with(test, "posted=5 waiting=0") == 1;
}

static void target_is_back(void *unused)
{
	WARN_ON(shell("echo 1 >" TPG "/enable"));
}

/* Have the target answer a PDU of each kind, of which @r takes nothing. */
static void ask_much(struct raw *r)
{
	struct kunit *test = r->s->test;
	struct raw_pdu *pdu = r->pdu;
	u32 len[6];
	int i;

	for (i = 0; i < 6; i++)
		len[i] = RAW_HEADERS;
	pdu[0] = raw_nop(r, true);
	hton24(pdu[0].hdr.dlength, 400);
	len[0] += 400;
	pdu[1] = raw_make(r, ISCSI_OP_TEXT | ISCSI_OP_IMMEDIATE);
	((struct iscsi_text *)&pdu[1].hdr)->ttt = RAW_NONE;
	hton24(pdu[1].hdr.dlength, 16);
	memcpy(pdu[1].data, "SendTargets=All", 16);
	len[1] += 16;
	pdu[2] = raw_task(r, ISCSI_TM_FUNC_ABORT_TASK, RESERVED_ITT);
	/* Refused, as there is more data than it is to write. */
	pdu[3] = raw_write(r, 1);
	hton24(pdu[3].hdr.dlength, 800);
	len[3] += 800;
	/* The number is used by the next one. */
	r->cmdsn--;
	pdu[4] = raw_read(r, 8);
	pdu[5] = raw_nop(r, false);
	KUNIT_ASSERT_TRUE(test, raw_send_all(r, pdu, len, 6));
}

/*
 * Nothing that was posted for a session is used after LIO has freed the session: the debug
 * kernel would report it, and what is left.
 */
static void fixes_answers_under_way(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_new(test, 1), *next;
	const struct kd_param *p = test->param_value;

	if (kd_is_iwarp(r->s))
		kunit_skip(test, "the device ends a connection that has no receive");
	KUNIT_ASSERT_TRUE(test, raw_start(r));
	raw_log_in(r, RAW_SHORT);
	ask_much(r);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(all_are_posted, test, KD_TIMEOUT_MS));
	switch (p->choice) {
	case END_ABRUPT:
		dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
		break;
	case END_REINSTATED:
		next = raw_connect(test);
		next->session = r->session;
		raw_log_in(next, RAW_SHORT);
		raw_expect_alive(next);
		break;
	case END_DISABLED:
		KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, target_is_back, NULL));
		KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" TPG "/enable"));
		KUNIT_EXPECT_TRUE(test, raw_is_down(other, KD_TIMEOUT_MS));
		KUNIT_EXPECT_EQ(test, 0, shell("echo 1 >" TPG "/enable"));
		other = raw_login(test);
		break;
	}
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	raw_close(r);
	raw_expect_alive(other);
}

/* ---- The administrator --------------------------------------------------------------- */

enum administrator {
	ACL_DEPTH,
	ACL_REMOVED,
	TPG_DISABLED,
};

static KD_CHOICES(gen_administrator, kd_gen_any_ia_and,
	[ACL_DEPTH] = "another depth",
	[ACL_REMOVED] = "the ACL is removed",
	[TPG_DISABLED] = "the portal group is disabled")

#define ACL	TPG "/acls/iqn.2026-01.test:hostile"

static void acl_is_gone(void *unused)
{
	WARN_ON(shell("[ ! -d " ACL " ] && exit\n"
		      "rm " ACL "/lun_0/l && rmdir " ACL "/lun_0 " ACL));
}

/* The sessions of an initiator end for what is done to its ACL, and it may come back. */
static void fixes_administrator(struct kunit *test)
{
	const struct kd_param *p = test->param_value;
	struct raw *r[3];
	int i, err = 0;

	KUNIT_ASSERT_TRUE(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, acl_is_gone, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("set -e\nmkdir -p " ACL "/lun_0\n"
				       "ln -s " TPG "/lun/lun_0 " ACL "/lun_0/l"));
	for (i = 0; i < ARRAY_SIZE(r); i++) {
		r[i] = raw_login(test);
		r[i]->pdu[0] = i % 2 ? raw_read(r[i], 8) : raw_write(r[i], 8);
		KUNIT_EXPECT_TRUE(test, raw_send(r[i], r[i]->pdu, RAW_HEADERS));
	}
	switch (p->choice) {
	case ACL_DEPTH:
		err = shell("echo 32 >" ACL "/cmdsn_depth");
		break;
	case ACL_REMOVED:
		err = shell("rm " ACL "/lun_0/l && rmdir " ACL "/lun_0 " ACL);
		break;
	case TPG_DISABLED:
		err = shell("echo 0 >" TPG "/enable && echo 1 >" TPG "/enable");
		break;
	}
	KUNIT_EXPECT_EQ(test, 0, err);
	for (i = 0; i < ARRAY_SIZE(r); i++) {
		KUNIT_EXPECT_TRUE_MSG(test, raw_is_down(r[i], KD_TIMEOUT_MS), "session %d", i);
		raw_close(r[i]);
	}
	r[0] = raw_login(test);
	raw_expect_alive(r[0]);
	if (p->choice == ACL_DEPTH)
		KUNIT_EXPECT_LE(test, (s32)(r[0]->max_cmdsn - r[0]->cmdsn + 1), 32);
	raw_close(r[0]);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS));
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(fixes_no_room_for_a_connection, kd_gen_any_ia),
	KUNIT_CASE_PARAM(fixes_login_lengths, gen_login),
	KUNIT_CASE_PARAM(fixes_login_text, kd_gen_any_ia),
	KUNIT_CASE_PARAM(fixes_memory, gen_memory),
	KUNIT_CASE_PARAM(fixes_threads_end, kd_gen_any_ia),
	KUNIT_CASE_PARAM(fixes_one_name, kd_gen_any_ia),
	KUNIT_CASE_PARAM(fixes_answers_under_way, gen_end),
	KUNIT_CASE_PARAM(fixes_administrator, gen_administrator),
	{}
};

KD_SUITE("kdapl-isert-fixes", isert_cases, "kdapl_isert.ko: what other transports were mended for",
	 RAW_TARGET);
