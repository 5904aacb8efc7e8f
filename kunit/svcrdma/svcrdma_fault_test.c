// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_svcrdma.ko: one thing fails in the life of a connection, from connecting
 * to the last reply, or while a listener is made, as isert_fault_test.c has it for iSER.
 *
 * Each call is answered, well or with an error, or the connection ends, which the server counts
 * if it is its own doing, all within KD_TIMEOUT_MS. The next client is served, and one that is
 * there all the time as well. In the end nobody is there, nothing is reserved for anybody, and the
 * adapter has no object that it did not have before.
 */
#include <linux/module.h>
#include "../fault/ops.h"
#include "../fault/steps.h"
#include "../fault/ways.h"
#include "device.h"
#include "probe.h"
#include "raw.h"
#include "shell.h"

#define MOST_FAULTS	1000
/* Where in r->data replies go, and where data, and a long call, come from */
#define SINK		0
#define SOURCE		SZ_256K
#define LONG		SZ_128K
#define LENGTH		SZ_64K

/* ---- A connection --------------------------------------------------------- */

/*
 * struct world - what the lives of connections have in common
 * @what: fails
 * @whole: nothing does
 * @own: if the connection ends, that is the server's doing
 * @impatient_ms: how long the client waits for an answer before it disconnects; 0: it need
 *	not, the connection ends
 * @r: the client
 * @other: another one, who is there all the time
 * @pattern: what the file has; @maybe: it may have this as well, since a write has failed
 */
struct world {
	struct kunit *test;
	const char *what;
	bool whole;
	bool own;
	unsigned int impatient_ms;
	struct rpc_raw *r;
	struct rpc_raw *other;
	u32 pattern;
	u32 maybe;
};

/*
 * No answer has come, or the connection could not be used: it ends, by itself unless the client
 * has lost its patience.
 */
static int broken(struct world *w, const char *at)
{
	struct kunit *test = w->test;

	if (w->whole || !w->impatient_ms)
		KUNIT_EXPECT_TRUE_MSG(test, rpc_raw_is_down(w->r, KD_TIMEOUT_MS),
				      "%s: %s: neither an answer nor the end", w->what, at);
	if (w->whole)
		KUNIT_FAIL(test, "after %s: %s: the connection has ended", w->what, at);
	else if (w->own)
		KUNIT_EXPECT_TRUE_MSG(test, rpc_raw_wait_adapter(w->r->s, "broken",
								 w->r->broken + 1, LONG_MAX, 4000),
				      "%s: %s: the server does not count it", w->what, at);
	return -ECONNRESET;
}

/* Send what was built and take the answer to it, to w->r->got. */
static int ask(struct world *w, const char *at)
{
	struct rpc_raw *r = w->r;

	if (!rpc_raw_send(r))
		return broken(w, at);
	if (!rpc_raw_receive(r, w->whole || !w->impatient_ms ? KD_TIMEOUT_MS : w->impatient_ms))
		return broken(w, at);
	KUNIT_EXPECT_EQ_MSG(w->test, be32_to_cpu(r->got[0]), r->xid, "%s: %s", w->what, at);
	return 0;
}

/* Have a COMPOUND executed. */
static int compound(struct world *w, const char *at)
{
	int err = ask(w, at);

	if (err)
		return err;
	err = rpc_raw_status(w->r) ? -EIO : 0;
	if (err && w->whole)
		KUNIT_FAIL(w->test, "after %s: %s: status %d", w->what, at,
			   rpc_raw_status(w->r));
	return err;
}

static int null_call(struct world *w)
{
	rpc_raw_null(w->r);
	return ask(w, "NULL");
}

static int write_file(struct world *w)
{
	int err;

	w->maybe = w->pattern + 1;
	kd_fill(w->r->data->va + SOURCE, LENGTH, w->maybe);
	rpc_raw_build_write(w->r, SOURCE, 0, LENGTH);
	err = compound(w, "write");
	if (!err)
		w->pattern = w->maybe;
	return err;
}

static int read_file(struct world *w)
{
	struct rpc_raw *r = w->r;
	int err;

	memset(r->data->va + SINK, 0x5a, LENGTH);
	rpc_raw_build_read(r, SINK, LENGTH);
	err = compound(w, "read");
	if (err)
		return err;
	if (kd_has_pattern(r->data->va + SINK, LENGTH, w->maybe))
		w->pattern = w->maybe;
	else
		KUNIT_EXPECT_TRUE_MSG(w->test,
				      kd_has_pattern(r->data->va + SINK, LENGTH, w->pattern),
				      "%s: wrong data", w->what);
	w->maybe = w->pattern;
	return 0;
}

static int list_directory(struct world *w)
{
	int err;

	rpc_raw_build_readdir(w->r, SINK, SZ_128K);
	err = ask(w, "list");
	if (!err && be32_to_cpu(w->r->got[3]) != RDMA_NOMSG)
		err = -EIO;
	return err;
}

static int long_call(struct world *w)
{
	rpc_raw_begin(w->r, 32, RDMA_NOMSG);
	rpc_raw_read(w->r, 0, LONG, rpc_raw_put_call(w->r, LONG));
	rpc_raw_no_lists(w->r);
	return ask(w, "long call");
}

/* The error of the transport is the right answer to this one. */
static int wrong_call(struct world *w)
{
	rpc_raw_null(w->r);
	w->r->m[1] = cpu_to_be32(RPCRDMA_VERSION + 1);
	return ask(w, "wrong version");
}

static int session(struct world *w)
{
	if (!rpc_raw_start(w->r))
		return -ECONNREFUSED;
	/* What is not answered well is no reason to go. */
	if (null_call(w) == -ECONNRESET || write_file(w) == -ECONNRESET ||
	    read_file(w) == -ECONNRESET || list_directory(w) == -ECONNRESET ||
	    long_call(w) == -ECONNRESET || wrong_call(w) == -ECONNRESET)
		return -ECONNRESET;
	return null_call(w);
}

/* ---- What fails ----------------------------------------------------------- */

/* A connection, of which the @nth thing fails in @way, if any. */
static int life(void *world, const struct kdf_way *way, unsigned int nth)
{
	struct world *w = world;
	int err;

	w->whole = !way;
	w->r = rpc_raw_new(w->test, RAW_RECVS);
	if (way)
		way->arm(way, nth);
	err = session(w);
	rpc_raw_close(w->r);
	return err;
}

static bool is_whole(void *world)
{
	struct world *w = world;

	rpc_raw_expect_alive(w->other);
	return !life(world, NULL, 0);
}

/* Walk through lives; with a slow kernel, through one of @stride. */
static void walk_lives(struct world *w, const struct kdf_way *ways,
		       int (*life)(void *world, const struct kdf_way *way, unsigned int nth),
		       bool (*is_whole)(void *world), unsigned int stride)
{
	struct kdf_walk walk = {
		.test = w->test,
		.world = w,
		.life = life,
		.is_whole = is_whole,
		.broken = "nobody is served",
		.stride = kd_slow_kernel() ? stride : 1,
		.most = MOST_FAULTS,
	};

	w->what = walk.what;
	kdf_walk(&walk, ways);
}

static void walk(struct world *w, const struct kdf_way *ways)
{
	walk_lives(w, ways, life, is_whole, 5);
}

/* ---- Cases ---------------------------------------------------------------- */

static struct holdings before;
static struct kd_side *witness;

static void expect_nothing_left(struct kunit *test)
{
	struct holdings now;

	/* An EVD keeps the CQs of as many connections as it has had at once. */
	kdf_count_holdings(&now);
	before.n[RDMA_RESTRACK_CQ] = now.n[RDMA_RESTRACK_CQ];
	kdf_expect_holdings(test, &before, "connections");
}

static struct world *make_world(struct kunit *test)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct holdings alone;

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->test = test;
	w->what = "nothing";
	w->own = true;
	kdf_ways_begin(kd_test_device(test, *(const char * const *)test->param_value));
	kdf_replace_operations(test, *(const char * const *)test->param_value);
	witness = kd_open_param(test);
	w->other = rpc_raw_connect(test);
	rpc_raw_wait_grace(w->other);
	KUNIT_ASSERT_EQ(test, write_file(&(struct world){ .test = test, .r = w->other }), 0);
	w->pattern = 1;
	w->maybe = 1;
	kdf_count_holdings(&alone);
	/* The first connection may leave more buffers than there were, and its QP for a moment. */
	KUNIT_ASSERT_TRUE(test, is_whole(w));
	kdf_count_holdings(&before);
	before.n[RDMA_RESTRACK_QP] = alone.n[RDMA_RESTRACK_QP];
	return w;
}

/* All but the other one have gone, and so has what they had. */
static void end_world(struct world *w)
{
	struct kunit *test = w->test;

	KUNIT_EXPECT_TRUE(test, rpc_raw_wait_adapter(witness, "connections", 1, 1, KD_TIMEOUT_MS));
	expect_nothing_left(test);
	rpc_raw_expect_alive(w->other);
	rpc_raw_close(w->other);
	KUNIT_EXPECT_TRUE(test, rpc_raw_wait_adapter(witness, "connections", 0, 0, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, rpc_raw_wait_adapter(witness, "reserved", 0, 0, KD_TIMEOUT_MS));
}

static void fault_in_a_step(struct kunit *test)
{
	struct world *w = make_world(test);

	walk(w, kdf_any_step);
	kdf_show_steps(test);
	end_world(w);
}

static void fault_in_an_operation(struct kunit *test)
{
	struct world *w = make_world(test);
	long count = rpc_raw_adapter(witness, "broken");

	/* It may be kdapl.ko that ends a connection, and tells why. */
	w->own = false;
	walk(w, kdf_operations);
	/* Memory for RDMA Reads is what only iWARP needs, so that a request is refused. */
	if (kd_is_iwarp(witness))
		KUNIT_EXPECT_GT(test, rpc_raw_adapter(witness, "broken"), count);
	end_world(w);
}

static void fault_in_a_completion(struct kunit *test)
{
	struct world *w = make_world(test);

	/* It may be the client's. */
	w->own = false;
	walk(w, kdf_completions);
	end_world(w);
}

static atomic_t named, unnamed;

static void on_console(void *data, const char *text, size_t length)
{
	if (!strnstr(text, " is disconnected: ", length))
		return;
	if (strnstr(text, ": Send: ", length) || strnstr(text, ": RDMA Read: ", length) ||
	    strnstr(text, ": RDMA Write: ", length))
		atomic_inc(&named);
	else
		atomic_inc(&unnamed);
}

/*
 * The log tells which operation for a client has failed. It takes ten of these lines in five
 * seconds: other cases may have filled it.
 */
static void failure_is_named(struct kunit *test)
{
	const struct kdf_way ways[] = { kdf_completions[1], {} };
	unsigned long until = jiffies + 15 * HZ;
	struct world *w = make_world(test);

	w->own = false;
	atomic_set(&named, 0);
	atomic_set(&unnamed, 0);
	kd_probe(test, "console", on_console);
	do
		walk(w, ways);
	while (!atomic_read(&named) && time_before(jiffies, until));
	KUNIT_EXPECT_GT(test, atomic_read(&named), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&unnamed), 0);
	end_world(w);
}

/* The client loses its patience then, and the server is rid of it. */
static void fault_that_never_completes(struct kunit *test)
{
	struct world *w = make_world(test);

	w->own = false;
	w->impatient_ms = 300;
	walk(w, kdf_never);
	end_world(w);
}

/* A call is answered; what the server calls meanwhile is not. */
static int null_beside_callbacks(struct world *w)
{
	rpc_raw_null(w->r);
	if (!rpc_raw_send(w->r))
		return broken(w, "NULL");
	do {
		if (!rpc_raw_receive(w->r, KD_TIMEOUT_MS))
			return broken(w, "NULL");
	} while (be32_to_cpu(w->r->got[0]) != w->r->xid);
	return 0;
}

/*
 * The server calls a client, from the session's beginning on. It calls, or it takes the delegation
 * away in the end; whatever comes of that, the client is served, or is disconnected.
 */
static int life_with_callback(void *world, const struct kdf_way *way, unsigned int nth)
{
	struct world *w = world;
	struct rpc_peer p = { .r = rpc_raw_new(w->test, RAW_RECVS) };
	int err = -EIO;

	w->whole = !way;
	w->r = p.r;
	rpc_peer_file(w->test, &p);
	KUNIT_ASSERT_TRUE(w->test, rpc_raw_start(p.r));
	KUNIT_ASSERT_TRUE(w->test, rpc_peer_introduce(&p));
	if (way)
		way->arm(way, nth);
	if (rpc_peer_begin(&p) && rpc_peer_open(&p)) {
		rpc_peer_recall(w->test, &p);
		/* For good only because of a step that has failed. */
		if ((way && rpc_peer_called(&p, 3000)) ||
		    ((!way || !kdf_step_has_failed()) && rpc_peer_called(&p, KD_TIMEOUT_MS))) {
			rpc_peer_answer(&p, p.xid);
			rpc_raw_send(p.r);
			err = 0;
		}
	}
	err = null_beside_callbacks(w) ?: err;
	rpc_raw_close(p.r);
	return err;
}

static bool is_called(void *world)
{
	rpc_raw_expect_alive(((struct world *)world)->other);
	return true;
}

static void fault_in_a_callback(struct kunit *test)
{
	struct world *w = make_world(test);

	KUNIT_ASSERT_EQ(test, life_with_callback(w, NULL, 0), 0);
	walk_lives(w, kdf_any_step, life_with_callback, is_called, 2);
	kdf_show_steps(test);
	end_world(w);
}

/* A listener is made, or it is not; then it can be made, and serves. */
static void fault_in_a_listener(struct kunit *test)
{
	unsigned int nth;
	bool fired = true;
	int err;

	kdf_show_steps(test);
	for (nth = 1; fired && nth < MOST_FAULTS; nth++) {
		KUNIT_ASSERT_EQ(test, 0, shell("echo 0 >/proc/fs/nfsd/threads"));
		kdf_fail_step(nth);
		err = shell("echo kdapl 20059 >/proc/fs/nfsd/portlist");
		fired = !kdf_steps_left();
		KUNIT_EXPECT_TRUE_MSG(test, fired || !err, "step %u: %#x", nth, err);
		if (err)
			KUNIT_EXPECT_EQ_MSG(test, 0,
					    shell("echo kdapl 20059 >/proc/fs/nfsd/portlist"),
					    "after step %u", nth);
		KUNIT_ASSERT_EQ(test, 0, shell("echo 3 >/proc/fs/nfsd/threads"));
		rpc_raw_expect_alive(rpc_raw_connect(test));
	}
	KUNIT_EXPECT_FALSE(test, fired);
	kdf_show_steps(test);
}

static bool doctored;

/* Without the module rpc_raw_init() skips all cases. */
static int suite_begins(struct kunit_suite *suite)
{
	doctored = !kdf_doctor("kdapl_svcrdma");
	return rpc_raw_export_up(suite);
}

static void suite_ends(struct kunit_suite *suite)
{
	rpc_raw_export_down(suite);
	if (doctored)
		kdf_undoctor("kdapl_svcrdma");
}

static struct kunit_case svcrdma_cases[] = {
	KUNIT_CASE_PARAM(fault_in_a_step, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(fault_in_an_operation, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(fault_in_a_completion, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(fault_that_never_completes, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(fault_in_a_callback, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(failure_is_named, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(fault_in_a_listener, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-svcrdma-fault", svcrdma_cases, "kdapl_svcrdma.ko: one thing fails",
	 .init = rpc_raw_init, .suite_init = suite_begins, .suite_exit = suite_ends);
