// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: one thing fails in the life of a session, from connecting to
 * logging out, or while a portal is made, as blk_fault.c has it for the block device.
 *
 * Each PDU of the initiator is answered, well or with an error, or the connection ends, all
 * within KD_TIMEOUT_MS. The next session is whole. In the end nobody is there, and the adapter
 * has no object that it did not have before.
 */
#include <linux/module.h>
#include <scsi/scsi.h>
#include "../fault/ops.h"
#include "../fault/steps.h"
#include "../fault/ways.h"
#include "device.h"
#include "raw.h"
#include "shell.h"

#define MOST_FAULTS	1000

/* ---- A session ------------------------------------------------------------ */

/*
 * struct area - blocks that are written and read
 * @seed: of what they contain
 * @maybe: they may contain this as well, since a write has failed
 */
struct area {
	u8 lba;
	u8 blocks;
	u32 seed;
	u32 maybe;
};

/*
 * struct world - what the lives of sessions have in common
 * @what: fails
 * @whole: nothing does
 * @impatient_ms: how long the initiator waits for an answer before it disconnects; 0: it
 *	need not, the connection ends
 * @r: the initiator
 */
struct world {
	struct kunit *test;
	struct area solicited;
	struct area immediate;
	u32 pattern;
	const char *what;
	bool whole;
	unsigned int impatient_ms;
	struct raw *r;
};

/*
 * No answer has come, or the connection could not be used: it ends, by itself unless the
 * initiator has lost its patience.
 */
static int broken(struct world *w, const char *at)
{
	if (w->whole || !w->impatient_ms)
		KUNIT_EXPECT_TRUE_MSG(w->test, raw_is_down(w->r, KD_TIMEOUT_MS),
				      "%s: %s: neither an answer nor the end", w->what, at);
	if (w->whole)
		KUNIT_FAIL(w->test, "after %s: %s: the connection has ended", w->what, at);
	return -ECONNRESET;
}

/* Send a PDU and take the answer to it, to w->r->got. */
static int ask(struct world *w, struct raw_pdu *pdu, u32 len, u8 answer, const char *at)
{
	struct raw *r = w->r;
	itt_t itt = pdu->hdr.itt;

	if (!raw_send(r, pdu, len))
		return broken(w, at);
	do {
		if (!raw_receive_any(r, w->whole || !w->impatient_ms ? KD_TIMEOUT_MS :
							       w->impatient_ms))
			return broken(w, at);
	} while (r->got.hdr.itt != itt);
	if ((r->got.hdr.opcode & ISCSI_OPCODE_MASK) == answer)
		return 0;
	if (w->whole)
		KUNIT_FAIL(w->test, "after %s: %s: answer %#x", w->what, at,
			   r->got.hdr.opcode);
	return -EIO;
}

static int log_in(struct world *w)
{
	struct iscsi_login_rsp *rsp = (struct iscsi_login_rsp *)&w->r->got.hdr;
	u32 len;
	int err;

	w->r->pdu[0] = raw_login_pdu(w->r, RAW_SOLICITED, &len);
	err = ask(w, w->r->pdu, len, ISCSI_OP_LOGIN_RSP, "login");
	return err ?: rsp->status_class ? -EACCES : 0;
}

static int ping(struct world *w)
{
	w->r->pdu[0] = raw_nop(w->r, true);
	return ask(w, w->r->pdu, RAW_HEADERS, ISCSI_OP_NOOP_IN, "NOP-Out");
}

static int text(struct world *w)
{
	static const char all[] = "SendTargets=All";
	struct raw_pdu *pdu = w->r->pdu;

	*pdu = raw_make(w->r, ISCSI_OP_TEXT | ISCSI_OP_IMMEDIATE);
	((struct iscsi_text *)&pdu->hdr)->ttt = RAW_NONE;
	hton24(pdu->hdr.dlength, sizeof(all));
	memcpy(pdu->data, all, sizeof(all));
	return ask(w, pdu, RAW_HEADERS + ALIGN(sizeof(all), 4), ISCSI_OP_TEXT_RSP, "text");
}

/* Have a command in r->pdu[0] executed. */
static int command(struct world *w, const struct area *a, u32 data, const char *at)
{
	struct iscsi_scsi_rsp *rsp = (struct iscsi_scsi_rsp *)&w->r->got.hdr;
	struct iscsi_scsi_req *req = (struct iscsi_scsi_req *)&w->r->pdu[0].hdr;
	int err;

	req->cdb[5] = a->lba;
	hton24(req->dlength, data);
	err = ask(w, w->r->pdu, RAW_HEADERS + data, ISCSI_OP_SCSI_CMD_RSP, at);
	if (!err && (rsp->response || rsp->cmd_status != SAM_STAT_GOOD))
		err = -EIO;
	if (err == -EIO && w->whole)
		KUNIT_FAIL(w->test, "after %s: %s: status %#x", w->what, at, rsp->cmd_status);
	return err;
}

/* Write @a, with @data bytes of it in the command. */
static int write(struct world *w, struct area *a, u32 data, const char *at)
{
	int err;

	a->maybe = ++w->pattern;
	kd_fill(w->r->data->va, a->blocks * RAW_BLOCK, a->maybe);
	w->r->pdu[0] = raw_write(w->r, a->blocks);
	memcpy(w->r->pdu[0].data, w->r->data->va, data);
	err = command(w, a, data, at);
	if (!err)
		a->seed = a->maybe;
	return err;
}

static bool has(struct world *w, const struct area *a, u32 seed)
{
	return kd_has_pattern(w->r->data->va, a->blocks * RAW_BLOCK, seed);
}

static int read(struct world *w, struct area *a, const char *at)
{
	int err;

	memset(w->r->data->va, 0x5a, a->blocks * RAW_BLOCK);
	w->r->pdu[0] = raw_read(w->r, a->blocks);
	err = command(w, a, 0, at);
	if (err || !a->maybe)
		return err;
	if (has(w, a, a->maybe))
		a->seed = a->maybe;
	else
		KUNIT_EXPECT_TRUE_MSG(w->test, a->seed && has(w, a, a->seed),
				      "%s: %s: wrong data", w->what, at);
	a->maybe = a->seed;
	return 0;
}

static int log_out(struct world *w)
{
	int err;

	w->r->pdu[0] = raw_logout(w->r);
	err = ask(w, w->r->pdu, RAW_HEADERS, ISCSI_OP_LOGOUT_RSP, "logout");
	if (!err)
		KUNIT_EXPECT_TRUE_MSG(w->test, raw_is_down(w->r, KD_TIMEOUT_MS),
				      "%s: logged out, and connected", w->what);
	return err;
}

static int session(struct world *w)
{
	int err;

	if (!raw_start(w->r))
		return -ECONNREFUSED;
	err = log_in(w);
	if (err)
		return err;
	/* What is not answered well is no reason to go. */
	if (ping(w) == -ECONNRESET || text(w) == -ECONNRESET ||
	    read(w, &w->solicited, "read") == -ECONNRESET ||
	    write(w, &w->solicited, 0, "write") == -ECONNRESET ||
	    write(w, &w->immediate, RAW_BLOCK, "immediate write") == -ECONNRESET ||
	    read(w, &w->immediate, "read back") == -ECONNRESET ||
	    read(w, &w->solicited, "read back") == -ECONNRESET)
		return -ECONNRESET;
	return log_out(w);
}

/* ---- What fails ----------------------------------------------------------- */

/*
 * A session, of which the @nth thing fails in @way, if any. The initiator's own memory is there
 * before: it is registered by requests as well.
 */
static int life(void *world, const struct kdf_way *way, unsigned int nth)
{
	struct world *w = world;
	int err;

	w->whole = !way;
	w->r = raw_new(w->test, RAW_RECVS);
	if (way)
		way->arm(way, nth);
	err = session(w);
	raw_close(w->r);
	return err;
}

/* The target may be busy with the end of a former session when one is to begin. */
static bool is_whole(void *world)
{
	return !life(world, NULL, 0);
}

static void walk(struct world *w, const struct kdf_way *ways)
{
	struct kdf_walk walk = {
		.test = w->test,
		.world = w,
		.life = life,
		.is_whole = is_whole,
		.broken = "nobody can log in",
		.stride = kd_slow_kernel() ? 25 : 10,
		.most = MOST_FAULTS,
	};

	w->what = walk.what;
	kdf_walk(&walk, ways);
}

/* ---- Cases ---------------------------------------------------------------- */

static struct holdings before;

static void expect_nothing_left(void *data)
{
	struct kunit *test = data;
	struct holdings now;

	KUNIT_EXPECT_TRUE(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS));
	/* An EVD keeps the CQs of as many sessions as it has had at once. */
	kdf_count_holdings(&now);
	before.n[RDMA_RESTRACK_CQ] = now.n[RDMA_RESTRACK_CQ];
	kdf_expect_holdings(test, &before, "sessions");
}

static struct world *make_world(struct kunit *test)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->test = test;
	w->solicited.blocks = 8;
	w->immediate.lba = 16;
	w->immediate.blocks = 1;
	w->what = "nothing";
	kdf_ways_begin(kd_test_device(test, *(const char * const *)test->param_value));
	kdf_replace_operations(test, *(const char * const *)test->param_value);
	/* The first session may leave more buffers than there were. */
	KUNIT_ASSERT_TRUE(test, is_whole(w));
	KUNIT_ASSERT_TRUE(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS));
	kdf_count_holdings(&before);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, expect_nothing_left, test));
	return w;
}

static void fault_in_a_step(struct kunit *test)
{
	struct world *w = make_world(test);

	walk(w, kdf_any_step);
	kdf_show_steps(test);
}

static void fault_in_an_operation(struct kunit *test)
{
	struct world *w = make_world(test);

	walk(w, kdf_operations);
}

static void fault_in_a_completion(struct kunit *test)
{
	struct world *w = make_world(test);

	walk(w, kdf_completions);
}

/* The initiator loses its patience then, and LIO is rid of the session. */
static void fault_that_never_completes(struct kunit *test)
{
	struct world *w = make_world(test);

	w->impatient_ms = 300;
	walk(w, kdf_never);
}

#define NP	"/sys/kernel/config/target/iscsi/iqn.2026-01.test:raw/tpgt_1/np"

/* A portal is made, or it is not; then it can be made. */
static void fault_in_a_portal(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;
	char make[256], remove[128];
	unsigned int nth;
	bool fired = true;
	int err;

	snprintf(make, sizeof(make), "mkdir -p " NP "/10.%u.0.1:3272 && echo 1 >" NP
		 "/10.%u.0.1:3272/iser", kd_bed_of(ia)->net, kd_bed_of(ia)->net);
	snprintf(remove, sizeof(remove), "rmdir " NP "/10.%u.0.1:3272", kd_bed_of(ia)->net);
	for (nth = 1; fired && nth < MOST_FAULTS; nth++) {
		kdf_fail_step(nth);
		err = shell(make);
		fired = !kdf_steps_left();
		KUNIT_EXPECT_TRUE_MSG(test, fired || !err, "step %u: %#x", nth, err);
		if (err)
			KUNIT_EXPECT_EQ_MSG(test, 0, shell(make), "after step %u", nth);
		KUNIT_EXPECT_EQ_MSG(test, 0, shell(remove), "after step %u", nth);
	}
	KUNIT_EXPECT_FALSE(test, fired);
	kdf_show_steps(test);
}

static bool doctored;

/* Without the module raw_init() skips all cases. */
static int suite_begins(struct kunit_suite *suite)
{
	doctored = !kdf_doctor("kdapl_isert");
	return raw_target_up(suite);
}

static void suite_ends(struct kunit_suite *suite)
{
	raw_target_down(suite);
	if (doctored)
		kdf_undoctor("kdapl_isert");
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(fault_in_a_step, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(fault_in_an_operation, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(fault_in_a_completion, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(fault_that_never_completes, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(fault_in_a_portal, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-isert-fault", isert_cases, "kdapl_isert.ko: one thing fails",
	 .init = raw_init, .suite_init = suite_begins, .suite_exit = suite_ends);
