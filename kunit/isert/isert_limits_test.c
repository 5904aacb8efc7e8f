// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: how much an initiator may have of memory, of answers and of the
 * target's time, what it gets in return, and what the log says of the one that wants more.
 */
#include <linux/module.h>
#include "fmr_fixture.h"
#include "raw.h"
#include "shell.h"

#define TPG	"/sys/kernel/config/target/iscsi/iqn.2026-01.test:raw/tpgt_1"
#define CORE	"/sys/kernel/config/target/core/rd_mcp_7"
#define PING	"/sys/module/kdapl_isert/parameters/ping_seconds"
/* Answers of a connection that may be on their way. */
#define ANSWERS	128

/* ---- The log ------------------------------------------------------------------------- */

static int log_marks;

/* Remember where the log of the kernel ends. */
static void log_mark(struct kunit *test)
{
	char command[64];

	snprintf(command, sizeof(command), "echo isert-limits-%d: >/dev/kmsg", ++log_marks);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
}

/* Does a line since log_mark() have this regular expression? */
static bool log_says(const char *what)
{
	char command[256];

	snprintf(command, sizeof(command), "dmesg | sed '1,/isert-limits-%d:/d' | grep -q '%s'",
		 log_marks, what);
	return !shell(command);
}

/* Have @r send beyond MaxCmdSN: the log tells that it is @name that is disconnected, and where. */
static void expect_named(struct kunit *test, struct raw *r, const char *name)
{
	char line[160];
	int i;

	log_mark(test);
	raw_expect_alive(r);
	r->cmdsn = r->max_cmdsn + 1;
	for (i = 0; i < RAW_SENDS / 2; i++) {
		r->pdu[0] = raw_nop(r, false);
		if (!raw_send(r, r->pdu, RAW_HEADERS))
			break;
	}
	raw_expect_cut(r);
	snprintf(line, sizeof(line),
		 "iqn.2026-01.test:%s at %pISc:[0-9]* is disconnected: it has sent more than",
		 name, r->s->addr);
	KUNIT_EXPECT_TRUE_MSG(test, log_says(line), "the log does not say \"%s\"", line);
}

static void limits_log_names_who(struct kunit *test)
{
	expect_named(test, raw_login(test), "hostile");
}

/* A name can neither forge a line of the log nor command the terminal of who reads it. */
static void limits_log_escapes_names(struct kunit *test)
{
	expect_named(test, raw_login_odd(test), " a\\\\n\\\\e\\\\r\\\\177=");
}

/* ---- Answers ------------------------------------------------------------------------- */

static void depth_is_back(void *unused)
{
	WARN_ON(shell("echo 64 >" TPG "/attrib/default_cmdsn_depth"));
}

/*
 * A session may not have more commands than its connection has answers, whatever LIO allows: a
 * backend that has completed a command and finds no answer for it tries again without a pause.
 */
static void limits_commands_have_answers(struct kunit *test)
{
	struct raw *r;
	s32 window;

	/* LIO has the depth of a session from the one before it that is still there. */
	KUNIT_ASSERT_TRUE(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, depth_is_back, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("echo 256 >" TPG "/attrib/default_cmdsn_depth"));
	r = raw_login(test);
	raw_expect_alive(r);
	window = r->max_cmdsn - r->cmdsn + 1;
	KUNIT_EXPECT_GT(test, window, 64);
	KUNIT_EXPECT_LT(test, window, ANSWERS);
	raw_close(r);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS));
}

static void pings_are_back(void *unused)
{
	WARN_ON(shell("echo 15 >" PING));
}

/* An initiator that logs out and takes no answer is not waited for, also if nobody pings it. */
static void limits_logout_nobody_takes(struct kunit *test)
{
	struct raw *r = raw_new(test, 1);

	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, pings_are_back, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("echo 0 >" PING));
	KUNIT_ASSERT_TRUE(test, raw_start(r));
	raw_log_in(r, RAW_SOLICITED);
	/* The answer to the first one takes the only receive. */
	r->pdu[0] = raw_nop(r, true);
	KUNIT_EXPECT_TRUE(test, raw_send(r, r->pdu, RAW_HEADERS));
	r->pdu[0] = raw_logout(r);
	KUNIT_EXPECT_TRUE(test, raw_send(r, r->pdu, RAW_HEADERS));
	/* An iWARP device ends a connection by itself that has no receive. */
	if (kd_is_iwarp(r->s))
		KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	else
		raw_expect_cut(r);
	raw_close(r);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" TPG "/enable && echo 1 >" TPG "/enable"));
	raw_expect_alive(raw_login(test));
}

/* ---- The thread of a portal ---------------------------------------------------------- */

static bool two_log_in(struct kunit *test)
{
	return raw_sessions_with(test, "state=login") == 2;
}

/* Are two gone, or does the thread wait no longer? A login that stops is waited for 5 s. */
static bool two_are_gone_or_late(void *test)
{
	return raw_sessions_with(test, "state=[a-z]*") == 3 || !two_log_in(test);
}

/*
 * LIO lets in one at a time: have its thread wait for the rest of the login of @r[0], then for
 * @r[1], with two behind them that end. Return whether those are gone while it waits.
 */
static bool ended_while_thread_waits(struct raw *other, struct raw *r[4])
{
	struct kunit *test = other->s->test;
	DAT_EVENT event;
	int i;

	for (i = 0; i < 4; i++)
		r[i] = raw_connect(test);
	raw_request_login(r[0], RAW_SOLICITED, false);
	KUNIT_ASSERT_TRUE(test, raw_receive(r[0], ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	for (i = 1; i < 4; i++) {
		raw_request_login(r[i], RAW_SOLICITED, true);
		KUNIT_ASSERT_TRUE(test, kd_wait_event(r[i]->s->req_evd, &event,
						      KD_TIMEOUT_MS));
	}
	/* What came before the answer to this was handled. */
	raw_expect_alive(other);
	for (i = 2; i < 4; i++)
		dat_ep_disconnect(r[i]->s->ep, DAT_CLOSE_ABRUPT_FLAG);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(two_are_gone_or_late, test, KD_TIMEOUT_MS));
	return two_log_in(test);
}

static bool other_is_alone(void *test)
{
	return raw_sessions_with(test, "state=[a-z]*") == 1;
}

/* Who ends before the thread comes to it does not wait for the thread. */
static void limits_ended_are_freed(struct kunit *test)
{
	struct raw *other = raw_login(test), *r[4];
	int i, tries = 0;

	while (!ended_while_thread_waits(other, r)) {
		KUNIT_ASSERT_LT_MSG(test, ++tries, 3, "they are there until the thread comes");
		for (i = 0; i < 4; i++)
			raw_close(r[i]);
		KUNIT_ASSERT_TRUE(test, kd_wait_until(other_is_alone, test, KD_TIMEOUT_MS));
	}
	raw_close(r[0]);
	KUNIT_EXPECT_TRUE(test, raw_receive(r[1], ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	raw_expect_alive(raw_login(test));
	raw_expect_alive(other);
}

/* ---- Memory -------------------------------------------------------------------------- */

#define EVENTS	"/sys/kernel/debug/tracing/events/kmem/kmalloc"
#define TRACE	"/sys/kernel/debug/tracing/trace"
/* More pages than there are triplets in 32 KiB. */
#define LARGE	(12 * SZ_1M)

static void large_down(void *unused)
{
	shell("echo 0 >" EVENTS "/enable\n"
	      "echo 0 >" EVENTS "/filter");
	WARN_ON(shell("rm " TPG "/lun/lun_3/l\n"
		      "rmdir " TPG "/lun/lun_3 " CORE "/large"));
}

/*
 * For commands of several MiB no memory is allocated in pieces of more than 32 KiB. The initiator
 * has less memory than it says, so that its connection ends when the data has been mapped.
 */
static void limits_large_commands(struct kunit *test)
{
	struct iscsi_scsi_req *req;
	struct raw *r;

	if (shell("test -d " EVENTS))
		kunit_skip(test, "the kernel has no such events");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, large_down, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("set -e\nmkdir -p " CORE "/large " TPG "/lun/lun_3\n"
				       "echo rd_pages=4096 >" CORE "/large/control\n"
				       "echo 1 >" CORE "/large/enable\n"
				       "ln -s " CORE "/large " TPG "/lun/lun_3/l"));
	r = raw_login(test);
	r->pdu[0] = raw_read(r, 0);
	req = (struct iscsi_scsi_req *)&r->pdu[0].hdr;
	req->lun.scsi_lun[1] = 3;
	req->data_length = cpu_to_be32(LARGE);
	req->cdb[7] = LARGE / RAW_BLOCK >> 8;
	KUNIT_ASSERT_EQ(test, 0, shell("cd " EVENTS " && echo >../../../trace &&\n"
				       "echo 'bytes_alloc > 32768' >filter && echo 1 >enable"));
	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, RAW_HEADERS));
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	/* LIO's own list of pages is larger: the events are there. */
	KUNIT_EXPECT_EQ(test, 0, shell("grep -q 'call_site=sgl_alloc' " TRACE));
	KUNIT_EXPECT_NE(test, 0, shell("grep -q 'call_site=k[di]' " TRACE));
	raw_close(r);
}

/* ---- What is refused, and what is offered -------------------------------------------- */

static void protected_down(void *unused)
{
	WARN_ON(shell("rm " TPG "/lun/lun_2/l\n"
		      "rmdir " TPG "/lun/lun_2 " CORE "/protected"));
}

/* Nobody is let in who could believe that T10-PI protects what a backstore has it for. */
static void limits_protected_backstore(struct kunit *test)
{
	struct raw *r = raw_connect(test);
	const struct iscsi_login_rsp *rsp = (const struct iscsi_login_rsp *)&r->got.hdr;
	u32 len;

	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, protected_down, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("set -e\nmkdir -p " CORE "/protected " TPG "/lun/lun_2\n"
				       "echo rd_pages=64 >" CORE "/protected/control\n"
				       "echo 1 >" CORE "/protected/enable\n"
				       "echo 1 >" CORE "/protected/attrib/pi_prot_type\n"
				       "ln -s " CORE "/protected " TPG "/lun/lun_2/l"));
	log_mark(test);
	r->pdu[0] = raw_login_pdu(r, RAW_SOLICITED, &len);
	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, len));
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, rsp->status_class, ISCSI_STATUS_CLS_INITIATOR_ERR);
	KUNIT_EXPECT_EQ(test, rsp->status_detail, ISCSI_LOGIN_STATUS_TGT_FORBIDDEN);
	KUNIT_EXPECT_FALSE(test, rsp->flags & ISCSI_FLAG_LOGIN_TRANSIT);
	KUNIT_EXPECT_TRUE(test, log_says("is not let in: a backstore has T10-PI"));
	raw_close(r);
}

/* An initiator that would send longer PDUs than there are buffers is told what they may be. */
static void limits_long_segments(struct kunit *test)
{
	struct raw *r = raw_login_how(test, RAW_LONG_SEGMENTS);
	u32 len = min_t(u32, ntoh24(r->got.hdr.dlength), sizeof(r->got.data));
	static const char want[] = "TargetRecvDataSegmentLength=8192";
	bool told = false;
	u32 at;

	for (at = 0; at + sizeof(want) <= len; at++)
		told |= !memcmp(r->got.data + at, want, sizeof(want));
	KUNIT_EXPECT_TRUE_MSG(test, told, "it is not told \"%s\"", want);
	raw_expect_alive(r);
}

/* The key of an initiator that offers Send with Invalidate is invalid with the answer. */
static void limits_key_is_invalidated(struct kunit *test)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct raw *r = raw_new(test, RAW_RECVS);
	DAT_RMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_PARAM param;
	DAT_EVENT event;

	r->invalidate = true;
	KUNIT_ASSERT_TRUE(test, raw_start(r));
	raw_log_in(r, RAW_SOLICITED);
	KD_ASSERT_OK(test, dat_lmr_allocate(r->s->ia, r->s->pz, 1, DAT_LMR_SCOPE_PZ, &lmr));
	key = fmr_bind_remote(r->s, lmr, r->data);
	r->pdu[0] = raw_read(r, 1);
	r->pdu[0].iser.read_stag = cpu_to_be32(key);
	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, RAW_HEADERS));
	KUNIT_ASSERT_TRUE(test, kd_wait_event(r->s->recv_evd, &event, KD_TIMEOUT_MS));
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_EQ(test, dto->status, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, (int)dto->operation, (int)DAT_DTO_RECEIVE_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, dto->rmr_context, key);
	KD_ASSERT_OK(test, dat_lmr_query(lmr, DAT_LMR_FIELD_LMR_STATE, &param));
	KUNIT_EXPECT_FALSE(test, param.lmr_state.bound);
	raw_post(r, dto->user_cookie.as_64);
	/* It can be bound again. */
	KUNIT_EXPECT_NE(test, fmr_bind_remote(r->s, lmr, r->data), key);
	raw_expect_alive(r);
	dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
	raw_close(r);
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(limits_commands_have_answers, kd_gen_any_ia),
	KUNIT_CASE_PARAM(limits_log_names_who, kd_gen_any_ia),
	KUNIT_CASE_PARAM(limits_log_escapes_names, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(limits_ended_are_freed, kd_gen_any_ia),
	KUNIT_CASE_PARAM(limits_logout_nobody_takes, kd_gen_ia),
	KUNIT_CASE_PARAM(limits_large_commands, kd_gen_any_ia),
	KUNIT_CASE_PARAM(limits_protected_backstore, kd_gen_any_ia),
	KUNIT_CASE_PARAM(limits_long_segments, kd_gen_any_ia),
	KUNIT_CASE_PARAM(limits_key_is_invalidated, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-limits", isert_cases, "kdapl_isert.ko: what an initiator gets, and no more",
	 RAW_TARGET);
