// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_svcrdma.ko: clients that go at every step, and come in crowds.
 */
#include <linux/module.h>
#include <linux/stringify.h>
#include "probe.h"
#include "raw.h"
#include "shell.h"

#define ROUNDS	8

/* What a client has done when it goes */
enum step {
	CONNECTED,
	CALLED,
	MANY_CALLS,
	READ_LIST,
	BAD_KEY,
	NO_RECEIVES,
	STEPS,
};

static void send_null(struct rpc_raw *r)
{
	rpc_raw_null(r);
	rpc_raw_send(r);
}

static void send_read_list(struct rpc_raw *r, u32 key)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 6, 1, RAW_CALL * 4, key, SZ_64K, 0, 0);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
	rpc_raw_send(r);
}

static void take_step(struct rpc_raw *r, enum step step)
{
	unsigned int i;

	switch (step) {
	case CALLED:
	case NO_RECEIVES:
		send_null(r);
		break;
	case MANY_CALLS:
		for (i = 0; i < RAW_SENDS; i++)
			send_null(r);
		break;
	case READ_LIST:
		rpc_raw_begin(r, 32, RDMA_MSG);
		rpc_raw_read(r, RAW_CALL * 4, 0, SZ_128K);
		rpc_raw_no_lists(r);
		rpc_raw_call(r);
		rpc_raw_send(r);
		break;
	case BAD_KEY:
		send_read_list(r, 0xdeadbeef);
		break;
	default:
		break;
	}
}

/* A client that goes at any step leaves nothing behind, and the others are served. */
static void steps_client_goes(struct kunit *test)
{
	struct rpc_raw *other = rpc_raw_connect(test), *r;
	unsigned int i, step;

	for (i = 0; i < ROUNDS; i++) {
		for (step = 0; step < STEPS; step++) {
			r = rpc_raw_new(test, step == NO_RECEIVES ? 0 : RAW_RECVS);
			KUNIT_ASSERT_TRUE(test, rpc_raw_start(r));
			take_step(r, step);
			rpc_raw_close(r);
		}
		rpc_raw_expect_alive(other);
	}
	KUNIT_EXPECT_TRUE(test, rpc_raw_wait_adapter(other->s, "connections", 1, 1,
						     KD_TIMEOUT_MS));
}

/* nfsd ends, and begins anew, while clients are there. */
static void steps_server_goes(struct kunit *test)
{
	struct rpc_raw *r[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(r); i++) {
		r[i] = rpc_raw_connect(test);
		rpc_raw_expect_alive(r[i]);
	}
	send_null(r[0]);
	KUNIT_ASSERT_EQ(test, 0, shell("echo 0 >/proc/fs/nfsd/threads"));
	for (i = 0; i < ARRAY_SIZE(r); i++)
		KUNIT_EXPECT_TRUE(test, rpc_raw_is_down(r[i], KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, 0, shell("cd /proc/fs/nfsd\n"
				       "echo kdapl 20059 >portlist && echo 3 >threads"));
	rpc_raw_expect_alive(rpc_raw_connect(test));
}

#define CALLS	40
/* Set $s to how often a transport was queued for a thread. */
#define QUEUED	"s=0\nwhile read p a q rest; do [ $p = '#' ] || s=$((s + q)); done"	\
		"</proc/fs/nfsd/pool_stats\n"

/* No thread looks for a message behind the last one. */
static void steps_one_thread_a_call(struct kunit *test)
{
	struct rpc_raw *r = rpc_raw_connect(test);
	unsigned int i;

	rpc_raw_expect_alive(r);
	KUNIT_ASSERT_EQ(test, 0, shell(QUEUED "echo $s >/tmp/raw-queued"));
	for (i = 0; i < CALLS; i++)
		rpc_raw_expect_alive(r);
	/* CALLS, and some for connections of other cases that end. */
	KUNIT_EXPECT_EQ(test, 0, shell(QUEUED "read n </tmp/raw-queued\n"
				       "[ $((s - n)) -lt $((" __stringify(CALLS) " * 3 / 2)) ]"));
}

/* A port that is in use is refused; another one is a listener of its own, for each family. */
static void steps_listeners(struct kunit *test)
{
	KUNIT_EXPECT_NE(test, 0, shell("echo kdapl 20059 >/proc/fs/nfsd/portlist"));
	KUNIT_EXPECT_EQ(test, 0, shell("echo kdapl 20061 >/proc/fs/nfsd/portlist"));
	KUNIT_EXPECT_EQ(test, 0, shell("[ `grep -c ^kdapl /proc/fs/nfsd/portlist` = 4 ]"));
}

/* Start a server in a network namespace of its own, as nfs-utils do: does that fail? */
#define IN_NAMESPACE							\
	"mkdir -p /tmp/raw-nfsd && unshare -n -m sh -c '"		\
	"mount -t nfsd none /tmp/raw-nfsd && cd /tmp/raw-nfsd &&"	\
	"! echo kdapl 20062 2>/dev/null >portlist && ! grep kdapl portlist'"

/* Only the first network namespace is served: for another one, nothing is half configured. */
static void steps_namespace(struct kunit *test)
{
	struct rpc_raw *r = rpc_raw_connect(test);

	kd_count_log(test, "network namespace");
	KUNIT_EXPECT_EQ(test, 0, shell(IN_NAMESPACE));
	KUNIT_EXPECT_GT_MSG(test, kd_logged(), 0, "the log does not tell why");
	rpc_raw_expect_alive(r);
	rpc_raw_expect_alive(rpc_raw_connect(test));
}

static struct kunit_case svcrdma_cases[] = {
	KUNIT_CASE_PARAM(steps_client_goes, kd_gen_ia),
	KUNIT_CASE_PARAM(steps_server_goes, kd_gen_ia),
	KUNIT_CASE_PARAM(steps_one_thread_a_call, kd_gen_ia),
	KUNIT_CASE_PARAM(steps_namespace, kd_gen_simulated_ia),
	KUNIT_CASE(steps_listeners),
	{}
};

KD_SUITE("kdapl-svcrdma-steps", svcrdma_cases, "kdapl_svcrdma.ko: clients that come and go",
	 RPC_RAW_SERVER);
