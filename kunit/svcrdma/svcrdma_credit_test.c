// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_svcrdma.ko: credits, and clients that do not keep to them.
 */
#include <linux/module.h>
#include "raw.h"

/* As many calls as anybody sends at once */
#define BURST	RAW_SENDS

static u32 granted(struct rpc_raw *r)
{
	return be32_to_cpu(r->got[2]);
}

/* A grant never exceeds what the client asks for, nor what is reserved for it. */
static void credit_is_backed(struct kunit *test)
{
	struct rpc_raw *r = rpc_raw_connect(test);
	u32 asked;

	for (asked = 0; asked < 300; asked = asked * 2 + 1) {
		rpc_raw_null(r);
		r->m[2] = cpu_to_be32(asked);
		KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
		rpc_raw_expect_reply(r);
		KUNIT_EXPECT_GE(test, granted(r), 1);
		KUNIT_EXPECT_LE(test, granted(r), max(asked, 1U));
		/* Two are for answers to callbacks. */
		KUNIT_EXPECT_LE(test, granted(r) + 2, rpc_raw_adapter(r->s, "reserved"));
		KUNIT_EXPECT_GE(test, rpc_raw_adapter(r->s, "buffers"),
				rpc_raw_adapter(r->s, "reserved"));
	}
}

struct wider {
	struct rpc_raw *r;
	u32 before;
};

/* Send a burst, and see whether the window is wider. */
static bool is_wider(void *data)
{
	struct wider *w = data;
	unsigned int i;

	for (i = 0; i < BURST; i++) {
		rpc_raw_null(w->r);
		if (!rpc_raw_send(w->r))
			return false;
	}
	for (i = 0; i < BURST; i++)
		if (!rpc_raw_receive(w->r, KD_TIMEOUT_MS))
			return false;
	return granted(w->r) > w->before;
}

/* A client that uses all of its window gets a wider one. */
static void credit_grows(struct kunit *test)
{
	struct wider w = { .r = rpc_raw_connect(test) };

	rpc_raw_expect_alive(w.r);
	w.before = granted(w.r);
	KUNIT_EXPECT_LE(test, w.before, BURST);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_wider, &w, KD_TIMEOUT_MS));
}

/* Send one call, and see whether the window is narrower. */
static bool is_narrower(void *data)
{
	struct wider *w = data;

	rpc_raw_null(w->r);
	return rpc_raw_send(w->r) && rpc_raw_receive(w->r, KD_TIMEOUT_MS) &&
	       granted(w->r) < w->before;
}

/* A client that uses little of its window gets a narrower one, and later its buffers go back. */
static void credit_shrinks(struct kunit *test)
{
	struct wider w = { .r = rpc_raw_connect(test) };
	long reserved;

	rpc_raw_expect_alive(w.r);
	w.before = granted(w.r);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_wider, &w, KD_TIMEOUT_MS));
	w.before = granted(w.r);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_narrower, &w, KD_TIMEOUT_MS));
	reserved = rpc_raw_adapter(w.r->s, "reserved");
	KUNIT_EXPECT_TRUE(test, rpc_raw_wait_adapter(w.r->s, "reserved", 0, reserved - 1,
						     KD_TIMEOUT_MS));
	rpc_raw_expect_alive(w.r);
}

/* Post Sends of the same message until the connection ends, at most @most. */
static void flood(struct rpc_raw *r, unsigned int most)
{
	DAT_LMR_TRIPLET seg = kd_seg(r->s->buf, 0, r->n * sizeof(__be32));
	unsigned int i;

	memcpy(r->s->buf->va, r->m, seg.segment_length);
	for (i = 0; i < most; i++)
		if (dat_ep_post_send(r->s->ep, 1, &seg, kd_cookie(i),
				     DAT_COMPLETION_SUPPRESS_FLAG) != DAT_SUCCESS)
			return;
}

/*
 * A client that is silent does not learn of a narrower window, so it keeps its buffers, and may
 * use all of the last one.
 */
static void credit_silent_client(struct kunit *test)
{
	struct wider w = { .r = rpc_raw_connect(test) };
	u32 window, i;
	long reserved;

	rpc_raw_expect_alive(w.r);
	w.before = granted(w.r);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_wider, &w, KD_TIMEOUT_MS));
	window = granted(w.r);
	reserved = rpc_raw_adapter(w.r->s, "reserved");
	KUNIT_EXPECT_FALSE(test, rpc_raw_wait_adapter(w.r->s, "reserved", 0, reserved - 1,
						      25 * MSEC_PER_SEC));
	window = min_t(u32, window, RAW_RECVS);
	rpc_raw_null(w.r);
	flood(w.r, window);
	for (i = 0; i < window; i++)
		KUNIT_EXPECT_TRUE(test, rpc_raw_receive(w.r, KD_TIMEOUT_MS));
	rpc_raw_expect_alive(w.r);
}

/*
 * A client that posts no receives, and calls all the same: its replies find no place, and it is
 * disconnected; nobody else notices, and no thread waits for it.
 */
static void credit_ignored(struct kunit *test)
{
	struct rpc_raw *other = rpc_raw_connect(test), *r[5];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(r); i++) {
		r[i] = rpc_raw_new(test, 0);
		KUNIT_ASSERT_TRUE(test, rpc_raw_start(r[i]));
		rpc_raw_null(r[i]);
		flood(r[i], 60);
		rpc_raw_expect_alive(other);
	}
	for (i = 0; i < ARRAY_SIZE(r); i++)
		KUNIT_EXPECT_TRUE_MSG(test, rpc_raw_is_down(r[i], KD_TIMEOUT_MS),
				      "the server goes on with it");
	rpc_raw_expect_alive(other);
}

/* A client that keeps to its credits and takes no reply is given up after a while. */
static void credit_no_receives(struct kunit *test)
{
	struct rpc_raw *other = rpc_raw_connect(test), *r = rpc_raw_new(test, 0);

	KUNIT_ASSERT_TRUE(test, rpc_raw_start(r));
	rpc_raw_null(r);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	rpc_raw_expect_alive(other);
	KUNIT_EXPECT_TRUE(test, rpc_raw_is_down(r, KD_TIMEOUT_MS));
	rpc_raw_expect_alive(other);
}

/* Is as much reserved as one client has: 4 credits, and 2 for callbacks? */
static void expect_reserved_for(struct rpc_raw *r)
{
	KUNIT_EXPECT_TRUE(r->s->test, rpc_raw_wait_adapter(r->s, "reserved", 6, 6, KD_TIMEOUT_MS));
}

/* What ended gives back what was reserved for it. */
static void credit_returns(struct kunit *test)
{
	struct rpc_raw *first = rpc_raw_connect(test), *r;
	unsigned int i;

	rpc_raw_expect_alive(first);
	KUNIT_ASSERT_TRUE(test, rpc_raw_wait_adapter(first->s, "connections", 1, 1,
						     KD_TIMEOUT_MS));
	expect_reserved_for(first);
	for (i = 0; i < 8; i++) {
		r = rpc_raw_connect(test);
		rpc_raw_expect_alive(r);
		KUNIT_EXPECT_GT(test, rpc_raw_adapter(first->s, "reserved"), 6);
		rpc_raw_close(r);
		expect_reserved_for(first);
	}
}

static struct kunit_case svcrdma_cases[] = {
	KUNIT_CASE_PARAM(credit_is_backed, kd_gen_ia),
	KUNIT_CASE_PARAM(credit_grows, kd_gen_ia),
	KUNIT_CASE_PARAM(credit_shrinks, kd_gen_ia),
	KUNIT_CASE_PARAM(credit_silent_client, kd_gen_ia),
	KUNIT_CASE_PARAM(credit_ignored, kd_gen_ia),
	KUNIT_CASE_PARAM(credit_no_receives, kd_gen_ia),
	KUNIT_CASE_PARAM(credit_returns, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-svcrdma-credit", svcrdma_cases, "kdapl_svcrdma.ko: credits of RPC-over-RDMA",
	 RPC_RAW_SERVER);
