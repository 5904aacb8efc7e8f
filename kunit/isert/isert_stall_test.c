// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: an upcall that takes long, as it may when LIO needs memory that
 * there is not. All connections of the EVD wait, and none is taken for one whose initiator is
 * gone; a session whose messages lie unread gets a narrower window.
 */
#include <linux/module.h>
#include <target/target_core_base.h>
#include <target/iscsi/iscsi_target_core.h>
#include "probe.h"
#include "raw.h"
#include "shell.h"

/* A session is broken when it has been silent for three times as long as it may. */
#define STALL_MS	(8 * MSEC_PER_SEC)

/*
 * @tag: of the command that tells which session it is
 * @session: that session
 * @held: its mutex is locked
 */
static struct {
	u64 tag;
	struct iscsit_session *session;
	bool held;
} stall;

static void on_start(void *data, struct se_cmd *cmd)
{
	if (cmd->tag == stall.tag)
		stall.session = cmd->se_sess->fabric_sess_ptr;
}

static void let_it_go_on(void *unused)
{
	if (stall.held)
		mutex_unlock(&stall.session->cmdsn_mutex);
	stall.held = false;
	WARN_ON(shell("echo 15 >/sys/module/kdapl_isert/parameters/ping_seconds"));
}

/* Read a block, and tell how many commands more @r may send than it was allowed before. */
static s32 read_block(struct raw *r, u32 max_cmdsn)
{
	r->pdu[0] = raw_read(r, 1);
	KUNIT_EXPECT_TRUE(r->s->test, raw_send(r, r->pdu, RAW_HEADERS));
	KUNIT_EXPECT_TRUE(r->s->test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	return r->max_cmdsn - max_cmdsn;
}

/* From now on the upcall waits when @r sends a command that LIO takes in turn. */
static void stall_upcall(struct raw *r)
{
	struct kunit *test = r->s->test;

	stall.session = NULL;
	stall.tag = (__force u32)cpu_to_be32(r->itt);
	kd_probe(test, "target_sequencer_start", on_start);
	read_block(r, 0);
	KUNIT_ASSERT_NOT_NULL(test, stall.session);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, let_it_go_on, NULL));
	mutex_lock(&stall.session->cmdsn_mutex);
	stall.held = true;
}

/* Sessions that are pinged meanwhile, and one that waits for an answer, go on after it. */
static void stall_takes_long(struct kunit *test)
{
	struct raw *r = raw_login(test), *others[4];
	unsigned int i;

	if (kd_ia_has(r->s->name, KD_SIMULATED))
		kunit_skip(test, "8 seconds on one adapter are enough");
	for (i = 0; i < ARRAY_SIZE(others); i++)
		others[i] = raw_login(test);
	stall_upcall(r);
	KUNIT_ASSERT_EQ(test, 0, shell("echo 1 >/sys/module/kdapl_isert/parameters/ping_seconds"));
	/* From now on nothing is completed: neither pings nor the answer to a NOP-Out. */
	r->pdu[0] = raw_read(r, 1);
	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, RAW_HEADERS));
	others[0]->pdu[0] = raw_nop(others[0], true);
	KUNIT_EXPECT_TRUE(test, raw_send(others[0], others[0]->pdu, RAW_HEADERS));
	KUNIT_EXPECT_FALSE_MSG(test, raw_is_down(others[0], STALL_MS),
			       "a connection is broken while an upcall takes long");
	let_it_go_on(NULL);
	KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	for (i = 0; i < ARRAY_SIZE(others); i++)
		raw_expect_alive(others[i]);
	KUNIT_EXPECT_EQ(test, raw_adapter(r->s, "broken"), r->broken);
}

/* More than half of what a session may send, so that the soft watermark is crossed. */
#define UNREAD	40

/*
 * A session whose commands lie unread gets a narrower window by the answers to them, and the
 * whole window again when they have been dealt with.
 */
static void stall_narrows_windows(struct kunit *test)
{
	struct raw *r = raw_login(test);
	long crossed = raw_adapter(r->s, "soft_crossed");
	s32 raised = 0, answers;
	unsigned int narrowed = 0;
	u32 max_cmdsn;

	if (kd_is_iwarp(r->s))
		kunit_skip(test, "the device ends a connection that has no receive");
	stall_upcall(r);
	max_cmdsn = r->max_cmdsn;
	for (answers = 0; answers < UNREAD; answers++) {
		r->pdu[0] = raw_read(r, 1);
		KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, RAW_HEADERS));
	}
	KUNIT_EXPECT_TRUE(test, raw_wait_adapter(r->s, "soft_crossed", crossed + 1, LONG_MAX,
						 KD_TIMEOUT_MS));
	let_it_go_on(NULL);
	for (answers = 1; answers <= UNREAD; answers++) {
		KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
		raised = max(raised, (s32)(r->max_cmdsn - max_cmdsn));
		narrowed += raised < answers;
		KUNIT_EXPECT_LE(test, raised, answers);
	}
	/* With another CPU all may have been read before the first is answered. */
	if (num_online_cpus() == 1)
		KUNIT_EXPECT_GT(test, narrowed, 0);
	for (; answers <= 4 * UNREAD && raised < answers - 1; answers++)
		raised = read_block(r, max_cmdsn);
	KUNIT_EXPECT_EQ(test, raised, answers - 1);
	kunit_info(test, "narrowed for %u answers, wide again after %d", narrowed, answers - 1);
	KUNIT_EXPECT_EQ(test, raw_adapter(r->s, "broken"), r->broken);
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(stall_takes_long, kd_gen_any_ia),
	KUNIT_CASE_PARAM(stall_narrows_windows, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-stall", isert_cases, "kdapl_isert.ko: an upcall that takes long", RAW_TARGET);
