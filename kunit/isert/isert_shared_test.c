// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: what an administrator changes while initiators are there: the
 * length of the shared queue, and portals.
 */
#include <linux/module.h>
#include "raw.h"
#include "shell.h"
#include "withhold.h"

/* ---- Fewer buffers ------------------------------------------------------------------- */

#define SRQ_MAX		"/sys/module/kdapl_isert/parameters/srq_max"
#define SESSIONS	3
/* More messages than there are buffers: each buffer comes back, and may retire. */
#define MESSAGES	320
/* What a session may send beside commands. */
#define BURST		8

static void srq_max_is_back(void *unused)
{
	WARN_ON(shell("echo 9000 >" SRQ_MAX));
}

/* Over iWARP the buffers for what sessions may send are there, also beyond a new srq_max. */
static void shared_queue_keeps_promises(struct kunit *test)
{
	struct raw *r[SESSIONS];
	struct raw_pdu *pdu;
	u32 len[BURST];
	unsigned int i, j;

	for (i = 0; i < SESSIONS; i++)
		r[i] = raw_login(test);
	if (!kd_is_iwarp(r[0]->s))
		kunit_skip(test, "an empty SRQ makes senders wait");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, srq_max_is_back, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("echo 6 >" SRQ_MAX));
	/* Whoever leaves has the target look at the length. */
	raw_close(r[SESSIONS - 1]);
	KUNIT_EXPECT_TRUE(test, raw_wait_adapter(r[0]->s, "connections", SESSIONS - 1,
						 SESSIONS - 1, KD_TIMEOUT_MS));
	for (i = 0; i < MESSAGES; i++)
		raw_expect_alive(r[i % (SESSIONS - 1)]);
	KUNIT_EXPECT_GT(test, raw_adapter(r[0]->s, "reserved"), 6);
	KUNIT_ASSERT_GE(test, raw_adapter(r[0]->s, "buffers"),
			raw_adapter(r[0]->s, "reserved"));
	for (i = 0; i < SESSIONS - 1; i++) {
		pdu = r[i]->pdu;
		for (j = 0; j < BURST; j++) {
			pdu[j] = raw_nop(r[i], true);
			len[j] = RAW_HEADERS;
		}
		KUNIT_EXPECT_TRUE(test, raw_send_all(r[i], pdu, len, BURST));
	}
	for (i = 0; i < SESSIONS - 1; i++)
		for (j = 0; j < BURST; j++)
			KUNIT_EXPECT_TRUE(test, raw_receive(r[i], ISCSI_OP_NOOP_IN,
							    KD_TIMEOUT_MS));
}

/* ---- A portal that goes -------------------------------------------------------------- */

#define PORT	3271
#define TPG	"/sys/kernel/config/target/iscsi/iqn.2026-01.test:raw/tpgt_1"
#define NP	"for a in 10.8.0.1 10.9.0.1 10.10.0.1 10.11.0.1; do np=" TPG "/np/$a:3271\n"

#define GONE	"/tmp/portals-gone"

/* Who looks at the portals themselves waits for rmdir, which has locked their directory. */
static bool portals_are_gone(void *unused)
{
	return !shell("test -e " GONE);
}

static void wait_for_portals(void *unused)
{
	WARN_ON(!kd_wait_until(portals_are_gone, NULL, KD_TIMEOUT_MS));
}

/*
 * A peer that never sends the first frame that it has announced is not established, and its end
 * comes when it likes. The portal does not wait for it.
 */
static void shared_portal_goes(struct kunit *test)
{
	struct raw *other = raw_login(test), *r;

	if (!kd_is_iwarp(other->s) || !kd_ia_has(other->s->name, KD_SIMULATED))
		kunit_skip(test, "one adapter of iWARP is enough");
	KUNIT_ASSERT_EQ(test, 0, shell("set -e\nrm -f " GONE "\n"
				       NP "unshare -n mkdir $np; echo 1 >$np/iser; done"));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, wait_for_portals, NULL));
	kd_withhold_on(test, other->s->name);
	r = raw_new(test, 0);
	kd_withhold(test, 1);
	KUNIT_ASSERT_TRUE(test, raw_start_at(r, PORT));
	kd_expect_withheld(test, 1);
	KUNIT_ASSERT_EQ(test, 0, shell("(rmdir " TPG "/np/*:3271 && touch " GONE ") &"));
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(portals_are_gone, NULL, 10 * MSEC_PER_SEC),
			      "a portal waits for a peer that is not established");
	raw_expect_alive(other);
	kd_report_withheld(NULL);
	raw_expect_alive(raw_login(test));
}

/*
 * A portal that goes takes along connections that have said nothing, and leaves LIO those that
 * have logged in.
 */
static void shared_portal_goes_with_all(struct kunit *test)
{
	struct raw *other = raw_login(test), *silent[4], *in;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, 0, shell("set -e\nrm -f " GONE "\n"
				       NP "unshare -n mkdir $np; echo 1 >$np/iser; done"));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, wait_for_portals, NULL));
	in = raw_new(test, RAW_RECVS);
	KUNIT_ASSERT_TRUE(test, raw_start_at(in, PORT));
	raw_log_in(in, RAW_SOLICITED);
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		silent[i] = raw_new(test, 1);
		KUNIT_ASSERT_TRUE(test, raw_start_at(silent[i], PORT));
	}
	KUNIT_ASSERT_EQ(test, 0, shell("(rmdir " TPG "/np/*:3271 && touch " GONE ") &"));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(portals_are_gone, NULL, 10 * MSEC_PER_SEC));
	for (i = 0; i < ARRAY_SIZE(silent); i++)
		KUNIT_EXPECT_TRUE_MSG(test, raw_is_down(silent[i], KD_TIMEOUT_MS), "%u", i);
	raw_expect_alive(in);
	raw_expect_alive(other);
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(shared_queue_keeps_promises, kd_gen_any_ia),
	KUNIT_CASE_PARAM(shared_portal_goes, kd_gen_any_ia),
	KUNIT_CASE_PARAM(shared_portal_goes_with_all, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-shared", isert_cases, "kdapl_isert.ko: portals and the shared queue",
	 RAW_TARGET);
