// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_svcrdma.ko: callbacks. NFS version 4.1 by hand, up to the session in which
 * the server calls the client; and clients whose answers are wrong.
 */
#include <linux/module.h>
#include "raw.h"

/* Connect, get a delegation, and be called, since somebody else opens the file. */
static void meet(struct kunit *test, struct rpc_peer *p)
{
	rpc_peer_file(test, p);
	p->r = rpc_raw_connect(test);
	KUNIT_ASSERT_TRUE(test, rpc_peer_introduce(p));
	KUNIT_ASSERT_TRUE(test, rpc_peer_begin(p));
	KUNIT_ASSERT_TRUE(test, kd_wait_until(rpc_peer_open, p, KD_TIMEOUT_MS));
	rpc_peer_recall(test, p);
	KUNIT_ASSERT_TRUE(test, rpc_peer_called(p, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, p->r->got[1] == rpcrdma_version);
}

/* Answers to nothing, with the wrong length or lists, and twice, are dropped. */
static void callback_wrong_answers(struct kunit *test)
{
	struct rpc_raw *other = rpc_raw_connect(test);
	struct rpc_peer p = { };
	unsigned int i;

	meet(test, &p);
	rpc_peer_answer(&p, p.xid ^ cpu_to_be32(1));
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(p.r));
	rpc_raw_expect_alive(p.r);
	/* The header has another XID than the answer. */
	rpc_peer_answer(&p, p.xid);
	p.r->m[0] ^= cpu_to_be32(1);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(p.r));
	rpc_raw_expect_alive(p.r);
	/* Longer than any answer */
	rpc_peer_answer(&p, p.xid);
	for (i = 0; i < 900; i++)
		rpc_raw_word(p.r, 0);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(p.r));
	rpc_raw_expect_alive(p.r);
	/* Lists */
	rpc_raw_begin(p.r, 2, RDMA_MSG);
	p.r->m[0] = p.xid;
	rpc_raw_words(p.r, 3, 0, 1, 1);
	rpc_raw_segment(p.r, 0, 64);
	rpc_raw_words(p.r, 2, 0, 0);
	rpc_raw_words(p.r, 6, be32_to_cpu(p.xid), 1, 0, 0, 0, 0);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(p.r));
	rpc_raw_expect_alive(p.r);
	for (i = 0; i < 2; i++) {
		rpc_peer_answer(&p, p.xid);
		KUNIT_ASSERT_TRUE(test, rpc_raw_send(p.r));
	}
	rpc_raw_expect_alive(p.r);
	rpc_raw_expect_alive(other);
}

/* A client that goes while it is called leaves nothing behind. */
static void callback_client_goes(struct kunit *test)
{
	struct rpc_raw *other = rpc_raw_connect(test);
	struct rpc_peer p = { };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		meet(test, &p);
		rpc_raw_close(p.r);
		rpc_raw_expect_alive(other);
	}
}

static struct kunit_case svcrdma_cases[] = {
	KUNIT_CASE_PARAM(callback_wrong_answers, kd_gen_ia),
	KUNIT_CASE_PARAM(callback_client_goes, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-svcrdma-callback", svcrdma_cases, "kdapl_svcrdma.ko: the server calls the client",
	 RPC_RAW_EXPORT);
