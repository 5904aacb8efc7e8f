// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_svcrdma.ko: calls that sunrpc defers, as user space does not tell soon who
 * a client is. Somebody has opened the cache of addresses, and answers when a case wants that.
 */
#include <linux/module.h>
#include <linux/sunrpc/svc.h>
#include "probe.h"
#include "raw.h"
#include "shell.h"

#define CACHE	"/proc/net/rpc/auth.unix.ip/"
#define PID	"/tmp/raw-mountd"

/* Have the server forget all clients, and ask somebody who does not answer. */
static void forget(void *unused)
{
	WARN_ON(shell("exec >/dev/null 2>&1 </dev/null\n"
		      "sh -c 'exec 9<>" CACHE "channel; exec tail -f /dev/null' &\n"
		      "echo $! >" PID "\n"
		      "until [ -e /proc/`cat " PID "`/fd/9 ]; do sleep 0.1; done\n"
		      "echo 1 >" CACHE "flush"));
}

/* Have it know all clients. */
static void remember(void *unused)
{
	WARN_ON(shell("[ -e " PID " ] || exit 0\n"
		      "t=$((`date +%s` + 360000))\n"
		      "for a in 10.8.0.1 10.9.0.1 10.10.0.1 10.11.0.1; do\n"
		      "echo nfsd $a $t dom >" CACHE "channel || exit 1\n"
		      "done\n"
		      "kill `cat " PID "` && rm " PID));
}

/* Credits that clients ask for: those that they begin with. */
#define CREDITS	4

/* Send a call that only a client may make whom the server knows. */
static void send_compound(struct rpc_raw *r)
{
	rpc_raw_begin(r, CREDITS, RDMA_MSG);
	rpc_raw_no_lists(r);
	rpc_raw_compound(r, 1);
	KUNIT_ASSERT_TRUE(r->s->test, rpc_raw_send(r));
}

static atomic_t deferred;

static void on_defer(void *data, const struct svc_rqst *rqstp)
{
	atomic_inc(&deferred);
	kd_wake();
}

static bool is_deferred(void *unused)
{
	return atomic_read(&deferred);
}

static void defer_begin(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, remember, NULL));
	atomic_set(&deferred, 0);
	kd_probe(test, "svc_defer", on_defer);
	forget(NULL);
}

/* A call that is deferred is answered when it can be, and meanwhile others are served. */
static void defer_inline(struct kunit *test)
{
	struct rpc_raw *r = rpc_raw_connect(test), *other = rpc_raw_connect(test);

	defer_begin(test);
	send_compound(r);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_deferred, NULL, KD_TIMEOUT_MS));
	rpc_raw_expect_alive(other);
	KUNIT_EXPECT_FALSE(test, rpc_raw_receive(r, KD_QUIET_MS));
	remember(NULL);
	KUNIT_ASSERT_TRUE(test, rpc_raw_receive(r, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[0]), r->xid);
	KUNIT_EXPECT_EQ(test, rpc_raw_status(r), 0);
	rpc_raw_expect_alive(r);
}

/*
 * A call with data that was fetched cannot be deferred: it is answered, or its connection ends, so
 * that the client calls again.
 */
static void defer_read_list(struct kunit *test)
{
	struct rpc_raw *r = rpc_raw_connect(test), *other = rpc_raw_connect(test);

	defer_begin(test);
	rpc_raw_build_write(r, 0, 0, SZ_8K);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	if (!rpc_raw_receive(r, KD_TIMEOUT_MS))
		KUNIT_EXPECT_TRUE(test, rpc_raw_is_down(r, KD_TIMEOUT_MS));
	rpc_raw_expect_alive(other);
	remember(NULL);
	rpc_raw_wait_grace(other);
}

/* Expect that @r is alone, with 4 credits and 2 buffers for callbacks. */
static void expect_alone(struct rpc_raw *r)
{
	struct kunit *test = r->s->test;

	KUNIT_ASSERT_TRUE(test, rpc_raw_wait_adapter(r->s, "connections", 1, 1, KD_TIMEOUT_MS));
	KUNIT_ASSERT_TRUE(test, rpc_raw_wait_adapter(r->s, "reserved", 6, 6, KD_TIMEOUT_MS));
}

/*
 * A client that goes gives back at once what was reserved for it, though a call is deferred for
 * which sunrpc keeps the connection: but for the buffer that has the call.
 */
static void defer_client_goes(struct kunit *test)
{
	struct rpc_raw *other = rpc_raw_connect(test), *r;

	expect_alone(other);
	r = rpc_raw_connect(test);
	defer_begin(test);
	send_compound(r);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_deferred, NULL, KD_TIMEOUT_MS));
	rpc_raw_close(r);
	/* The message that is deferred, beside what the other one has. */
	KUNIT_EXPECT_TRUE_MSG(test, rpc_raw_wait_adapter(other->s, "reserved", 7, 7, 5000),
			      "%ld buffers are reserved", rpc_raw_adapter(other->s, "reserved"));
	remember(NULL);
	expect_alone(other);
	rpc_raw_expect_alive(other);
}

/*
 * All calls that a client may have outstanding, and two answers to callbacks, find a place while
 * no thread takes any, and are no more than the client may send.
 */
static void defer_all_credits(struct kunit *test)
{
	struct rpc_raw *r = rpc_raw_connect(test);
	unsigned int i;

	send_compound(r);
	KUNIT_ASSERT_TRUE(test, rpc_raw_receive(r, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, be32_to_cpu(r->got[2]), CREDITS);
	defer_begin(test);
	for (i = 0; i < CREDITS; i++)
		send_compound(r);
	for (i = 0; i < 2; i++) {
		rpc_raw_begin(r, 2, RDMA_MSG);
		rpc_raw_no_lists(r);
		rpc_raw_words(r, 6, r->xid, 1, 0, 0, 0, 0);
		KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	}
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_deferred, NULL, KD_TIMEOUT_MS));
	kunit_info(test, "%ld buffers, %ld reserved", rpc_raw_adapter(r->s, "buffers"),
		   rpc_raw_adapter(r->s, "reserved"));
	remember(NULL);
	for (i = 0; i < CREDITS; i++) {
		KUNIT_ASSERT_TRUE_MSG(test, rpc_raw_receive(r, KD_TIMEOUT_MS), "reply %u", i);
		KUNIT_EXPECT_EQ(test, rpc_raw_status(r), 0);
	}
	rpc_raw_expect_alive(r);
}

static struct kunit_case svcrdma_cases[] = {
	KUNIT_CASE_PARAM(defer_inline, kd_gen_ia),
	KUNIT_CASE_PARAM(defer_read_list, kd_gen_ia),
	KUNIT_CASE_PARAM(defer_client_goes, kd_gen_ia),
	KUNIT_CASE_PARAM(defer_all_credits, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-svcrdma-defer", svcrdma_cases, "kdapl_svcrdma.ko: calls that sunrpc defers",
	 RPC_RAW_EXPORT);
