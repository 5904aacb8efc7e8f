// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_svcrdma.ko: callbacks. NFS version 4.1 by hand, up to the session in which
 * the server calls the client; and clients whose answers are wrong.
 */
#include <linux/module.h>
#include "raw.h"
#include "shell.h"

enum {
	OP_OPEN = 18, OP_PUTROOTFH = 24, OP_EXCHANGE_ID = 42, OP_CREATE_SESSION = 43,
	OP_SEQUENCE = 53, OP_RECLAIM_COMPLETE = 58,
};

/* Words of a header without chunks */
#define HEADER	(RPCRDMA_HDRLEN_MIN / 4)

/*
 * struct peer - a client of NFS 4.1
 * @client: its number, two words
 * @session: its session
 * @sequence: number of the last request, the same as for CREATE_SESSION
 * @xid: of the server's callback
 * @file: letter that its file is called; for a while nobody else gets a delegation of it
 */
struct peer {
	struct rpc_raw *r;
	__be32 client[2];
	__be32 session[4];
	u32 sequence;
	__be32 xid;
	char file;
};

/* Begin a COMPOUND of @ops operations. */
static void compound(struct rpc_raw *r, unsigned int ops)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_no_lists(r);
	rpc_raw_words(r, RAW_CALL, r->xid, 0, 2, 100003, 4, 1, 0, 0, 0, 0);
	rpc_raw_words(r, 3, 0, 1, ops);
}

/* Send what was built, and return the status of the COMPOUND. */
static u32 reply_to(struct rpc_raw *r)
{
	KUNIT_ASSERT_TRUE(r->s->test, rpc_raw_send(r));
	KUNIT_ASSERT_TRUE(r->s->test, rpc_raw_receive(r, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(r->s->test, be32_to_cpu(r->got[3]), RDMA_MSG);
	KUNIT_ASSERT_EQ(r->s->test, be32_to_cpu(r->got[HEADER + 1]), 1);
	return be32_to_cpu(r->got[HEADER + 6]);
}

static void exchange_id(struct peer *p)
{
	static atomic_t owners = ATOMIC_INIT(0);
	struct rpc_raw *r = p->r;

	compound(r, 1);
	rpc_raw_words(r, 5, OP_EXCHANGE_ID, 1, 2, 4, atomic_inc_return(&owners));
	rpc_raw_words(r, 3, 0, 0, 0);
	KUNIT_ASSERT_EQ(r->s->test, reply_to(r), 0);
	memcpy(p->client, &r->got[HEADER + 11], sizeof(p->client));
	p->sequence = be32_to_cpu(r->got[HEADER + 13]);
}

/* Add attributes of a channel. */
static void channel(struct rpc_raw *r)
{
	rpc_raw_words(r, 7, 0, 4096, 4096, 4096, 8, 8, 0);
}

static void create_session(struct peer *p)
{
	struct rpc_raw *r = p->r;

	compound(r, 1);
	rpc_raw_words(r, 5, OP_CREATE_SESSION, be32_to_cpu(p->client[0]),
		      be32_to_cpu(p->client[1]), p->sequence, 2);
	channel(r);
	channel(r);
	rpc_raw_words(r, 3, 0x40000000, 1, 0);
	KUNIT_ASSERT_EQ(r->s->test, reply_to(r), 0);
	memcpy(p->session, &r->got[HEADER + 11], sizeof(p->session));
	p->sequence = 0;
}

/* Begin a COMPOUND of @ops operations in the session. */
static void sequence(struct peer *p, unsigned int ops)
{
	unsigned int i;

	compound(p->r, ops + 1);
	rpc_raw_word(p->r, OP_SEQUENCE);
	for (i = 0; i < ARRAY_SIZE(p->session); i++)
		rpc_raw_word(p->r, be32_to_cpu(p->session[i]));
	rpc_raw_words(p->r, 4, ++p->sequence, 0, 0, 0);
}

/* Open the file, which the server refuses in its grace period. */
static bool open_file(void *data)
{
	struct peer *p = data;

	sequence(p, 2);
	rpc_raw_word(p->r, OP_PUTROOTFH);
	rpc_raw_words(p->r, 8, OP_OPEN, 0, 0x101, 0, be32_to_cpu(p->client[0]),
		      be32_to_cpu(p->client[1]), 4, 1);
	rpc_raw_words(p->r, 4, 0, 0, 1, p->file << 24);
	return !reply_to(p->r);
}

/* Connect, get a delegation, and be called, since somebody else opens the file. */
static void meet(struct kunit *test, struct peer *p)
{
	static atomic_t files = ATOMIC_INIT('f');
	char command[128];

	p->file = atomic_inc_return(&files);
	snprintf(command, sizeof(command), "f=" RAW_EXPORT "/%c; echo >$f && chmod 666 $f",
		 p->file);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	p->r = rpc_raw_connect(test);
	exchange_id(p);
	create_session(p);
	sequence(p, 1);
	rpc_raw_words(p->r, 2, OP_RECLAIM_COMPLETE, 0);
	KUNIT_ASSERT_EQ(test, reply_to(p->r), 0);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(open_file, p, KD_TIMEOUT_MS));
	snprintf(command, sizeof(command),
		 "timeout 60 dd if=/dev/zero of=" RAW_EXPORT "/%c bs=1 count=1 conv=notrunc &",
		 p->file);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	KUNIT_ASSERT_TRUE(test, rpc_raw_receive(p->r, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, be32_to_cpu(p->r->got[3]), RDMA_MSG);
	KUNIT_ASSERT_EQ(test, be32_to_cpu(p->r->got[HEADER + 1]), 0);
	KUNIT_EXPECT_TRUE(test, p->r->got[1] == rpcrdma_version);
	p->xid = p->r->got[0];
}

/* Build the answer to the server's call, with @xid. */
static void answer(struct peer *p, __be32 xid)
{
	struct rpc_raw *r = p->r;

	rpc_raw_begin(r, 2, RDMA_MSG);
	r->m[0] = xid;
	rpc_raw_no_lists(r);
	rpc_raw_words(r, 6, be32_to_cpu(xid), 1, 0, 0, 0, 0);
}

/* Answers to nothing, with the wrong length or lists, and twice, are dropped. */
static void callback_wrong_answers(struct kunit *test)
{
	struct rpc_raw *other = rpc_raw_connect(test);
	struct peer p = { };
	unsigned int i;

	meet(test, &p);
	answer(&p, p.xid ^ cpu_to_be32(1));
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(p.r));
	rpc_raw_expect_alive(p.r);
	/* The header has another XID than the answer. */
	answer(&p, p.xid);
	p.r->m[0] ^= cpu_to_be32(1);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(p.r));
	rpc_raw_expect_alive(p.r);
	/* Longer than any answer */
	answer(&p, p.xid);
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
		answer(&p, p.xid);
		KUNIT_ASSERT_TRUE(test, rpc_raw_send(p.r));
	}
	rpc_raw_expect_alive(p.r);
	rpc_raw_expect_alive(other);
}

/* A client that goes while it is called leaves nothing behind. */
static void callback_client_goes(struct kunit *test)
{
	struct rpc_raw *other = rpc_raw_connect(test);
	struct peer p = { };
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
	 .init = rpc_raw_init, .suite_init = rpc_raw_export_up, .suite_exit = rpc_raw_export_down);
