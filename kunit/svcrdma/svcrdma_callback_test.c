// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_svcrdma.ko: callbacks. NFS version 4.1 by hand, up to the session for which
 * the server calls the client; and clients whose answers are wrong.
 */
#include <linux/module.h>
#include "raw.h"
#include "shell.h"

enum {
	OP_EXCHANGE_ID = 42, OP_CREATE_SESSION = 43, OP_DESTROY_SESSION = 44,
};

/* Words of a header without chunks */
#define HEADER	(RPCRDMA_HDRLEN_MIN / 4)

/*
 * struct peer - a client of NFS 4.1
 * @client: its number, two words; @sequence: for CREATE_SESSION
 * @xid: of the server's callback
 */
struct peer {
	struct raw *r;
	__be32 client[2];
	__be32 sequence;
	__be32 xid;
};

/* Add the beginning of a COMPOUND of one operation. */
static void compound(struct raw *r, u32 op)
{
	raw_begin(r, 32, RDMA_MSG);
	raw_no_lists(r);
	raw_words(r, RAW_CALL, r->xid, 0, 2, 100003, 4, 1, 0, 0, 0, 0);
	raw_words(r, 4, 0, 1, 1, op);
}

static void exchange_id(struct peer *p)
{
	static atomic_t owners = ATOMIC_INIT(0);
	struct raw *r = p->r;

	compound(r, OP_EXCHANGE_ID);
	raw_words(r, 4, 1, 2, 4, atomic_inc_return(&owners));
	raw_words(r, 3, 0, 0, 0);
	KUNIT_ASSERT_TRUE(r->s->test, raw_send(r));
	KUNIT_ASSERT_TRUE(r->s->test, raw_receive(r, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(r->s->test, be32_to_cpu(r->got[HEADER + 6]), 0);
	p->client[0] = r->got[HEADER + 11];
	p->client[1] = r->got[HEADER + 12];
	p->sequence = r->got[HEADER + 13];
}

/* Add attributes of a channel. */
static void channel(struct raw *r)
{
	raw_words(r, 7, 0, 4096, 4096, 4096, 8, 8, 0);
}

/* Make a session, and note the server's call to the client, which comes before or after that. */
static void create_session(struct peer *p)
{
	struct kunit *test = p->r->s->test;
	struct raw *r = p->r;
	unsigned int i;

	compound(r, OP_CREATE_SESSION);
	raw_words(r, 4, be32_to_cpu(p->client[0]), be32_to_cpu(p->client[1]),
		  be32_to_cpu(p->sequence), 2);
	channel(r);
	channel(r);
	raw_words(r, 3, 0x40000000, 1, 0);
	KUNIT_ASSERT_TRUE(test, raw_send(r));
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_TRUE_MSG(test, raw_receive(r, KD_TIMEOUT_MS), "message %u", i);
		KUNIT_ASSERT_EQ(test, be32_to_cpu(r->got[3]), RDMA_MSG);
		if (r->got[HEADER + 1])
			KUNIT_ASSERT_EQ(test, be32_to_cpu(r->got[HEADER + 6]), 0);
		else
			p->xid = r->got[0];
	}
	KUNIT_ASSERT_NE(test, p->xid, 0);
}

/* Connect, and be called. */
static void meet(struct kunit *test, struct peer *p)
{
	p->r = raw_connect(test);
	exchange_id(p);
	create_session(p);
}

/* Build the answer to the server's call, with @xid. */
static void answer(struct peer *p, __be32 xid)
{
	struct raw *r = p->r;

	raw_begin(r, 2, RDMA_MSG);
	r->m[0] = xid;
	raw_no_lists(r);
	raw_words(r, 6, be32_to_cpu(xid), 1, 0, 0, 0, 0);
}

static bool is_up(void *unused)
{
	return !shell("grep -q 'callback state: UP' /proc/fs/nfsd/clients/*/info");
}

/* The server calls, and knows the answer. */
static void callback_is_answered(struct kunit *test)
{
	struct peer p = { };

	meet(test, &p);
	KUNIT_EXPECT_EQ(test, p.r->got[1], rpcrdma_version);
	answer(&p, p.xid);
	KUNIT_ASSERT_TRUE(test, raw_send(p.r));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_up, NULL, KD_TIMEOUT_MS));
	raw_expect_alive(p.r);
}

/* Answers to nothing, with the wrong length or lists, and twice, are dropped. */
static void callback_wrong_answers(struct kunit *test)
{
	struct raw *other = raw_connect(test);
	struct peer p = { };
	unsigned int i;

	meet(test, &p);
	answer(&p, p.xid ^ cpu_to_be32(1));
	KUNIT_ASSERT_TRUE(test, raw_send(p.r));
	raw_expect_alive(p.r);
	/* The header has another XID than the answer. */
	answer(&p, p.xid);
	p.r->m[0] ^= cpu_to_be32(1);
	KUNIT_ASSERT_TRUE(test, raw_send(p.r));
	raw_expect_alive(p.r);
	/* Longer than any answer */
	answer(&p, p.xid);
	for (i = 0; i < 900; i++)
		raw_word(p.r, 0);
	KUNIT_ASSERT_TRUE(test, raw_send(p.r));
	raw_expect_alive(p.r);
	/* Lists */
	raw_begin(p.r, 2, RDMA_MSG);
	p.r->m[0] = p.xid;
	raw_words(p.r, 3, 0, 1, 1);
	raw_segment(p.r, 0, 64);
	raw_words(p.r, 2, 0, 0);
	raw_words(p.r, 6, be32_to_cpu(p.xid), 1, 0, 0, 0, 0);
	KUNIT_ASSERT_TRUE(test, raw_send(p.r));
	raw_expect_alive(p.r);
	for (i = 0; i < 2; i++) {
		answer(&p, p.xid);
		KUNIT_ASSERT_TRUE(test, raw_send(p.r));
	}
	raw_expect_alive(p.r);
	raw_expect_alive(other);
}

/* A client that goes while it is called leaves nothing behind. */
static void callback_client_goes(struct kunit *test)
{
	struct raw *other = raw_connect(test);
	struct peer p = { };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		meet(test, &p);
		raw_close(p.r);
		p.xid = 0;
		raw_expect_alive(other);
	}
}

static struct kunit_case svcrdma_cases[] = {
	KUNIT_CASE_PARAM(callback_is_answered, kd_gen_ia),
	KUNIT_CASE_PARAM(callback_wrong_answers, kd_gen_ia),
	KUNIT_CASE_PARAM(callback_client_goes, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-svcrdma-callback", svcrdma_cases, "kdapl_svcrdma.ko: the server calls the client",
	 .init = raw_init, .suite_init = raw_server_up, .suite_exit = raw_server_down);
