// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_svcrdma.ko: each member of the transport header, right and wrong. What is
 * wrong is answered by an error, or ends its connection, and no other.
 */
#include <linux/module.h>
#include "raw.h"

/* What comes of a message */
enum outcome {
	REPLY,
	CHUNK,
	VERS,
	NOTHING,
	CUT,
};

struct header_case {
	const char *name;
	enum outcome outcome;
	void (*build)(struct rpc_raw *r);
};

/* ---- Fixed part ----------------------------------------------------------------- */

static void version_0(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->m[1] = 0;
}

static void version_2(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->m[1] = cpu_to_be32(2);
}

static void msgp(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->m[3] = cpu_to_be32(RDMA_MSGP);
}

static void done(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->m[3] = cpu_to_be32(RDMA_DONE);
}

static void error(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->m[3] = cpu_to_be32(RDMA_ERROR);
}

/* These two have no lists. */
static void done_alone(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_DONE);
}

static void error_alone(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_ERROR);
	rpc_raw_word(r, ERR_CHUNK);
}

static void proc_5(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->m[3] = cpu_to_be32(5);
}

static void no_credits(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->m[2] = 0;
}

static void all_credits(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->m[2] = cpu_to_be32(U32_MAX);
}

static void shortest_but_one(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->n = RPCRDMA_HDRLEN_MIN / 4 - 1;
}

static void no_rpc(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->n = RPCRDMA_HDRLEN_MIN / 4;
}

static void short_rpc(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->n = RPCRDMA_HDRLEN_MIN / 4 + 5;
}

static void answer_to_nothing(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->m[8] = cpu_to_be32(1);
}

static void nomsg_alone(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_NOMSG);
	rpc_raw_no_lists(r);
}

static void nomsg_with_rpc(struct rpc_raw *r)
{
	rpc_raw_null(r);
	r->m[3] = cpu_to_be32(RDMA_NOMSG);
}

/* ---- Read list ------------------------------------------------------------------ */

static void read_behind(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4, 0, 5000);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

/* Within the message: NULL takes no arguments, so they may be anywhere behind the header. */
static void read_of_three(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4, 0, 3);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
	rpc_raw_words(r, 2, 7, 7);
}

static void reads_of_one_position(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4, 0, 4096);
	rpc_raw_read(r, RAW_CALL * 4, 8192, 1);
	rpc_raw_read(r, RAW_CALL * 4, 100, 0);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

static void reads_out_of_order(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4 + 4100 + 4, 0, 8);
	rpc_raw_read(r, RAW_CALL * 4, 0, 4097);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
	rpc_raw_words(r, 2, 7, 7);
}

static void read_of_nothing(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4, 0, 0);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

static void read_unaligned(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4 - 1, 0, 8);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

static void read_beyond(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4 + 4, 0, 8);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

static void read_far_beyond(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, 0xfffffffc, 0, 8);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

static void read_within_fixed_part(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, 4, 0, 8);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

static void reads_overlap(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4, 0, 8);
	rpc_raw_read(r, RAW_CALL * 4 + 4, 0, 8);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

static void read_too_long(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4, 0, SZ_64M);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

static void reads_that_wrap(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4, 0, 0xffffffff);
	rpc_raw_read(r, RAW_CALL * 4, 0, 9);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

static void reads_too_many(struct rpc_raw *r)
{
	unsigned int i;

	rpc_raw_begin(r, 32, RDMA_MSG);
	for (i = 0; i < 17; i++)
		rpc_raw_read(r, RAW_CALL * 4 + 4 * i, 0, 4);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

/* Whatever position they have, together they are longer than a call can be. */
static void reads_too_long_together(struct rpc_raw *r)
{
	unsigned int i;

	rpc_raw_begin(r, 32, RDMA_MSG);
	for (i = 0; i < 16; i++)
		rpc_raw_read(r, RAW_CALL * 4 + i * SZ_1M, 0, SZ_1M);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

static void read_endless(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	while (r->n + 6 <= RAW_LENGTH / 4)
		rpc_raw_read(r, RAW_CALL * 4, 0, 1);
}

static void read_cut(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 4, 1, 40, 7, 8);
}

static void read_discriminator(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 3, 2, 0, 0);
	rpc_raw_call(r);
}

static void long_call(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_NOMSG);
	rpc_raw_read(r, 0, 0, rpc_raw_put_call(r, 0));
	rpc_raw_no_lists(r);
}

static void long_call_in_pieces(struct rpc_raw *r)
{
	unsigned int i, n;

	rpc_raw_begin(r, 32, RDMA_NOMSG);
	n = rpc_raw_put_call(r, 100);
	for (i = 0; i < n; i += 8)
		rpc_raw_read(r, 0, 100 + i, 8);
	rpc_raw_no_lists(r);
}

static void long_call_with_chunk(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_NOMSG);
	rpc_raw_put_call(r, 0);
	rpc_raw_read(r, 0, 0, 36);
	rpc_raw_read(r, 36, 5000, 3);
	rpc_raw_read(r, 0, 36, 4);
	rpc_raw_no_lists(r);
	/* The chunk is where the length of the verifier was. */
	memset(r->data->va + 5000, 0, 4);
}

static void long_call_too_short(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_NOMSG);
	rpc_raw_put_call(r, 0);
	rpc_raw_read(r, 0, 0, 20);
	rpc_raw_no_lists(r);
}

static void long_call_in_message(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, 0, 0, rpc_raw_put_call(r, 0));
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

static void long_call_and_more(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_NOMSG);
	rpc_raw_read(r, 0, 0, rpc_raw_put_call(r, 0));
	rpc_raw_no_lists(r);
	rpc_raw_word(r, 0);
}

static void read_of_bad_key(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 6, 1, RAW_CALL * 4, 0xdeadbeef, 64, 0, 0);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}

/* ---- Write list and Reply chunk ------------------------------------------------- */

static void write_unused(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 3, 0, 1, 2);
	rpc_raw_segment(r, 0, 4096);
	rpc_raw_segment(r, 8192, 100);
	rpc_raw_words(r, 2, 0, 0);
	rpc_raw_call(r);
}

static void writes_too_many(struct rpc_raw *r)
{
	unsigned int i;

	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_word(r, 0);
	for (i = 0; i < 9; i++) {
		rpc_raw_words(r, 2, 1, 1);
		rpc_raw_segment(r, 0, 64);
	}
	rpc_raw_words(r, 2, 0, 0);
	rpc_raw_call(r);
}

static void write_of_no_segment(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 5, 0, 1, 0, 0, 0);
	rpc_raw_call(r);
}

static void write_of_all_segments(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 3, 0, 1, 0x10000000);
	rpc_raw_segment(r, 0, 64);
	rpc_raw_words(r, 2, 0, 0);
	rpc_raw_call(r);
}

static void write_that_wraps(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 3, 0, 1, 2);
	rpc_raw_segment(r, 0, 0xffffffff);
	rpc_raw_segment(r, 0, 0xffffffff);
	rpc_raw_words(r, 2, 0, 0);
	rpc_raw_call(r);
}

static void reply_unused(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 4, 0, 0, 1, 1);
	rpc_raw_segment(r, 0, 4096);
	rpc_raw_call(r);
}

static void reply_of_no_segment(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 4, 0, 0, 1, 0);
	rpc_raw_call(r);
}

static void reply_cut(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 4, 0, 0, 1, 3);
	rpc_raw_segment(r, 0, 64);
}

static void reply_discriminator(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 3, 0, 0, 7);
	rpc_raw_call(r);
}

/* ---- ---------------------------------------------------------------------------- */

#define CASE(name, outcome) { #name, outcome, name }

static const struct header_case header_cases[] = {
	CASE(version_0, VERS), CASE(version_2, VERS),
	CASE(msgp, CHUNK), CASE(proc_5, CHUNK), CASE(done, NOTHING), CASE(error, NOTHING),
	CASE(no_credits, REPLY), CASE(all_credits, REPLY),
	CASE(done_alone, NOTHING), CASE(error_alone, NOTHING),
	CASE(shortest_but_one, CUT), CASE(no_rpc, CHUNK), CASE(short_rpc, CHUNK),
	CASE(answer_to_nothing, NOTHING), CASE(nomsg_alone, CHUNK), CASE(nomsg_with_rpc, CHUNK),
	CASE(read_behind, REPLY), CASE(read_of_three, REPLY),
	CASE(reads_of_one_position, REPLY), CASE(reads_out_of_order, REPLY),
	CASE(read_of_nothing, REPLY), CASE(read_unaligned, CHUNK), CASE(read_beyond, CHUNK),
	CASE(read_far_beyond, CHUNK), CASE(read_within_fixed_part, CHUNK),
	CASE(reads_overlap, CHUNK), CASE(read_too_long, CHUNK), CASE(reads_that_wrap, CHUNK),
	CASE(reads_too_many, CHUNK), CASE(reads_too_long_together, CHUNK),
	CASE(read_endless, CHUNK), CASE(read_cut, CHUNK), CASE(read_discriminator, CHUNK),
	CASE(long_call, REPLY), CASE(long_call_in_pieces, REPLY),
	CASE(long_call_with_chunk, REPLY), CASE(long_call_too_short, CHUNK),
	CASE(long_call_in_message, CHUNK), CASE(long_call_and_more, CHUNK),
	CASE(read_of_bad_key, CUT),
	CASE(write_unused, REPLY), CASE(writes_too_many, CHUNK), CASE(write_of_no_segment, CHUNK),
	CASE(write_of_all_segments, CHUNK), CASE(write_that_wraps, REPLY),
	CASE(reply_unused, REPLY), CASE(reply_of_no_segment, CHUNK), CASE(reply_cut, CHUNK),
	CASE(reply_discriminator, CHUNK),
};

/* Send one message; its outcome is as told, and another connection does not notice. */
static void header_try(struct kunit *test, struct rpc_raw *other, const struct header_case *c)
{
	struct rpc_raw *r = rpc_raw_connect(test);

	kunit_info(test, "%s", c->name);
	c->build(r);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	switch (c->outcome) {
	case REPLY:
		rpc_raw_expect_reply(r);
		break;
	case CHUNK:
		rpc_raw_expect_error(r, ERR_CHUNK);
		break;
	case VERS:
		rpc_raw_expect_error(r, ERR_VERS);
		break;
	case NOTHING:
		rpc_raw_expect_silence(r);
		break;
	case CUT:
		/* Over iWARP the client's adapter may end the connection before. */
		KUNIT_EXPECT_TRUE(test, rpc_raw_is_down(r, KD_TIMEOUT_MS));
		break;
	}
	if (c->outcome != CUT)
		rpc_raw_expect_alive(r);
	rpc_raw_expect_alive(other);
	rpc_raw_close(r);
}

static void header_members(struct kunit *test)
{
	struct rpc_raw *other = rpc_raw_connect(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(header_cases); i++)
		header_try(test, other, &header_cases[i]);
}

/* The lists of the reply are those of the call, with the lengths that were used. */
static void header_lists_return(struct kunit *test)
{
	struct rpc_raw *r = rpc_raw_connect(test);

	write_unused(r);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	rpc_raw_expect_reply(r);
	KUNIT_ASSERT_EQ(test, r->got_length, 4 * (4 + 3 + 8 + 2) + RAW_REPLY);
	KUNIT_EXPECT_MEMEQ(test, &r->got[4], &r->m[4], 4 * 4);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[8]), 0);
	KUNIT_EXPECT_MEMEQ(test, &r->got[9], &r->m[9], 4 * 3);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[12]), 0);
	KUNIT_EXPECT_MEMEQ(test, &r->got[13], &r->m[13], 4 * 4);
	reply_unused(r);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	rpc_raw_expect_reply(r);
	KUNIT_ASSERT_EQ(test, r->got_length, 4 * (4 + 4 + 4) + RAW_REPLY);
	KUNIT_EXPECT_MEMEQ(test, &r->got[4], &r->m[4], 4 * 5);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[9]), 0);
	KUNIT_EXPECT_MEMEQ(test, &r->got[10], &r->m[10], 4 * 2);
}

/* Private messages of all lengths, and wrong ones, are none. */
static void header_private_message(struct kunit *test)
{
	struct rpc_raw *r;
	unsigned int i;

	for (i = 0; i <= sizeof(r->cm); i++) {
		r = rpc_raw_new(test, RAW_RECVS);
		r->cm_length = i;
		r->cm.cp_recv_size = 255;
		KUNIT_ASSERT_TRUE(test, rpc_raw_start(r));
		rpc_raw_expect_alive(r);
		rpc_raw_close(r);
	}
	r = rpc_raw_new(test, RAW_RECVS);
	memset(&r->cm, 0xff, sizeof(r->cm));
	KUNIT_ASSERT_TRUE(test, rpc_raw_start(r));
	rpc_raw_expect_alive(r);
}

/* Messages that nobody wants are ignored, but not for ever. */
static void header_useless_messages(struct kunit *test)
{
	struct rpc_raw *r = rpc_raw_connect(test);
	unsigned int i;

	for (i = 0; i < 16; i++) {
		done(r);
		KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
		if (i % 2)
			rpc_raw_expect_alive(r);
	}
	rpc_raw_expect_alive(r);
	done(r);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	rpc_raw_expect_cut(r);
}

static struct kunit_case svcrdma_cases[] = {
	KUNIT_CASE_PARAM(header_members, kd_gen_ia),
	KUNIT_CASE_PARAM(header_lists_return, kd_gen_ia),
	KUNIT_CASE_PARAM(header_private_message, kd_gen_ia),
	KUNIT_CASE_PARAM(header_useless_messages, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-svcrdma-header", svcrdma_cases, "kdapl_svcrdma.ko: headers of RPC-over-RDMA",
	 RPC_RAW_SERVER);
