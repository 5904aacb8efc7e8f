// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_svcrdma.ko: data in chunks. NFS version 4.0 by hand: COMPOUNDs that read
 * and write a file, and list a directory, of an export that anybody may use.
 */
#include <linux/module.h>
#include <linux/sunrpc/svc.h>
#include "fmr_fixture.h"
#include "raw.h"

#define SIZE	SZ_128K
/* Where in r->data the server writes to, and reads from */
#define SINK	0
#define SOURCE	SZ_256K

/* Connect, and wait until the server lets files be written. */
static struct rpc_raw *data_connect(struct kunit *test)
{
	struct rpc_raw *r = rpc_raw_connect(test);

	rpc_raw_wait_grace(r);
	return r;
}

static void readdir_all(struct rpc_raw *r, u32 reply)
{
	rpc_raw_build_readdir(r, SINK, reply);
	rpc_raw_send(r);
}

/* ---- Cases ---------------------------------------------------------------------- */

/* Data of all lengths comes back as it was written, in as many segments as there are. */
static void data_round_trip(struct kunit *test)
{
	static const u32 lengths[] = { 1, 3, 4, 4095, 4096, 4097, 65535, 65536, 100001, SIZE };
	struct rpc_raw *r = data_connect(test);
	unsigned int i;
	u32 length;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		length = lengths[i];
		kd_fill(r->data->va + SOURCE, length, i);
		KUNIT_ASSERT_TRUE_MSG(test, rpc_raw_write(r, SOURCE, 0, length), "%u bytes",
				      length);
		memset(r->data->va + SINK, 0, SIZE + 8);
		rpc_raw_begin(r, 32, RDMA_MSG);
		rpc_raw_words(r, 3, 0, 1, 3);
		rpc_raw_segment(r, SINK, length / 2);
		rpc_raw_segment(r, SINK + length / 2, length - length / 2);
		/* Padding, or more room than there is data */
		rpc_raw_segment(r, SINK + length, 4);
		rpc_raw_words(r, 2, 0, 0);
		rpc_raw_read_f(r, 0, length);
		KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
		KUNIT_ASSERT_TRUE(test, rpc_raw_receive(r, KD_TIMEOUT_MS));
		KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[3]), RDMA_MSG);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[8]), length / 2);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[12]), length - length / 2);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[16]), 0);
		KUNIT_EXPECT_TRUE_MSG(test, kd_has_pattern(r->data->va + SINK, length, i),
				      "%u bytes are others", length);
		KUNIT_EXPECT_EQ(test, *(u32 *)(r->data->va + SINK + ALIGN(length, 4)), 0);
	}
}

#define PARTS	8

/*
 * As long as a call to the kernel's NFS server may be, 1 MiB or 4 MiB, which no client of Linux
 * asks for: to and from as many places as there are segments.
 */
static void data_of_the_most(struct kunit *test)
{
	u32 most = RPCSVC_MAXPAYLOAD, part = most / PARTS, position;
	struct rpc_raw *r = data_connect(test);
	struct kd_buf *parts[PARTS];
	unsigned int i;

	position = rpc_raw_begin_write(r, 0, most);
	for (i = 0; i < PARTS; i++) {
		parts[i] = kd_buf_alloc(r->s, part);
		kd_fill(parts[i]->va, part, i);
		r->data = parts[i];
		rpc_raw_read(r, position, 0, part);
	}
	rpc_raw_end_write(r, position);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	KUNIT_ASSERT_TRUE(test, rpc_raw_receive(r, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, rpc_raw_status(r), 0);
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 3, 0, 1, PARTS);
	for (i = 0; i < PARTS; i++) {
		memset(parts[i]->va, 0x5a, part);
		r->data = parts[i];
		rpc_raw_segment(r, 0, part);
	}
	rpc_raw_words(r, 2, 0, 0);
	rpc_raw_read_f(r, 0, most);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	KUNIT_ASSERT_TRUE(test, rpc_raw_receive(r, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, rpc_raw_status(r), 0);
	for (i = 0; i < PARTS; i++) {
		KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[8 + 4 * i]), part);
		KUNIT_EXPECT_TRUE_MSG(test, kd_has_pattern(parts[i]->va, part, i), "part %u", i);
	}
	rpc_raw_expect_alive(r);
}

/* Without a chunk the data is in the message, if it fits there. */
static void data_inline(struct kunit *test)
{
	struct rpc_raw *r = data_connect(test);

	kd_fill(r->data->va + SOURCE, 1000, 5);
	KUNIT_ASSERT_TRUE(test, rpc_raw_write(r, SOURCE, 0, 1000));
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_no_lists(r);
	rpc_raw_read_f(r, 0, 1000);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	KUNIT_ASSERT_TRUE(test, rpc_raw_receive(r, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, be32_to_cpu(r->got[3]), RDMA_MSG);
	KUNIT_ASSERT_GE(test, r->got_length, 1000);
	KUNIT_EXPECT_TRUE(test, kd_has_pattern((void *)r->got + r->got_length - 1000, 1000, 5));
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_no_lists(r);
	rpc_raw_read_f(r, 0, 8000);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	rpc_raw_expect_error(r, ERR_CHUNK);
	rpc_raw_expect_alive(r);
}

/*
 * A Write chunk that is too short for the data is not written beyond, and no page of the file
 * stays with the thread: what it replies later would be written to the file.
 */
static void data_chunk_too_short(struct kunit *test)
{
	struct rpc_raw *r = data_connect(test);
	unsigned int i;

	kd_fill(r->data->va + SOURCE, SIZE, 77);
	KUNIT_ASSERT_TRUE(test, rpc_raw_write(r, SOURCE, 0, SIZE));
	memset(r->data->va + SINK, 0x5a, SIZE);
	for (i = 0; i < 16; i++) {
		rpc_raw_begin(r, 32, RDMA_MSG);
		rpc_raw_words(r, 3, 0, 1, 1);
		rpc_raw_segment(r, SINK, 4096);
		rpc_raw_words(r, 2, 0, 0);
		rpc_raw_read_f(r, 0, 8192 + i);
		KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
		rpc_raw_expect_error(r, ERR_CHUNK);
		KUNIT_EXPECT_EQ(test, *(u32 *)(r->data->va + SINK + 4096), 0x5a5a5a5aU);
	}
	for (i = 0; i < 16; i++) {
		readdir_all(r, SIZE);
		KUNIT_ASSERT_TRUE(test, rpc_raw_receive(r, KD_TIMEOUT_MS));
	}
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 3, 0, 1, 1);
	rpc_raw_segment(r, SINK, SIZE);
	rpc_raw_words(r, 2, 0, 0);
	rpc_raw_read_f(r, 0, SIZE);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	KUNIT_ASSERT_TRUE(test, rpc_raw_receive(r, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE_MSG(test, kd_has_pattern(r->data->va + SINK, SIZE, 77),
			      "the file has changed");
}

/* A reply that is too long for a message goes to the Reply chunk, or is refused. */
static void data_reply_chunk(struct kunit *test)
{
	struct rpc_raw *r = data_connect(test);
	__be32 *rpc = r->data->va + SINK;
	u32 first, second;

	readdir_all(r, SIZE);
	KUNIT_ASSERT_TRUE(test, rpc_raw_receive(r, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, be32_to_cpu(r->got[3]), RDMA_NOMSG);
	KUNIT_EXPECT_EQ(test, r->got_length, 4 * (6 + 2 + 8));
	first = be32_to_cpu(r->got[9]);
	second = be32_to_cpu(r->got[13]);
	KUNIT_EXPECT_EQ(test, first, 4096);
	KUNIT_EXPECT_GT(test, second, 4096);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(rpc[0]), r->xid);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(rpc[1]), 1);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(rpc[6]), 0);
	readdir_all(r, 8192);
	rpc_raw_expect_error(r, ERR_CHUNK);
	readdir_all(r, 0);
	rpc_raw_expect_error(r, ERR_CHUNK);
	rpc_raw_expect_alive(r);
}

/* Memory that is not there ends the connection of who names it, and no other. */
static void data_bad_sink(struct kunit *test)
{
	struct rpc_raw *r = data_connect(test), *other = rpc_raw_connect(test);

	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 3, 0, 1, 1);
	rpc_raw_words(r, 4, 0xdeadbeef, 8192, 0, 0);
	rpc_raw_words(r, 2, 0, 0);
	rpc_raw_read_f(r, 0, 8192);
	KUNIT_ASSERT_TRUE(test, rpc_raw_send(r));
	KUNIT_EXPECT_TRUE(test, rpc_raw_is_down(r, KD_TIMEOUT_MS));
	rpc_raw_expect_alive(other);
}

/* Send a call that names @key, and @other behind it; return how the reply has come. */
static DAT_DTOS call_with_keys(struct rpc_raw *r, u32 key, u32 other)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 4, 0, 0, 1, 2);
	rpc_raw_words(r, 4, key, 16, 0, 0);
	rpc_raw_words(r, 4, other, 16, 0, 0);
	rpc_raw_call(r);
	KUNIT_ASSERT_TRUE(r->s->test, rpc_raw_send(r));
	KUNIT_ASSERT_TRUE(r->s->test, kd_wait_event(r->s->recv_evd, &event, KD_TIMEOUT_MS));
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_ASSERT_EQ(r->s->test, dto->status, DAT_DTO_SUCCESS);
	rpc_raw_post(r, dto->user_cookie.as_64);
	if (dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE)
		KUNIT_EXPECT_EQ(r->s->test, dto->rmr_context, key);
	return dto->operation;
}

/*
 * The key of a call is invalid with the reply if the client has offered that when it connected,
 * and if there is no other key in the call.
 */
static void data_key_is_invalidated(struct kunit *test)
{
	struct rpc_raw *r = rpc_raw_new(test, RAW_RECVS), *other = rpc_raw_connect(test);
	DAT_RMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;

	r->cm.cp_flags = RPCRDMA_CMP_F_SND_W_INV_OK;
	KUNIT_ASSERT_TRUE(test, rpc_raw_start(r));
	KD_ASSERT_OK(test, dat_lmr_allocate(r->s->ia, r->s->pz, 1, DAT_LMR_SCOPE_PZ, &lmr));
	key = fmr_bind_remote(r->s, lmr, r->data);
	KUNIT_EXPECT_EQ(test, (int)call_with_keys(r, key, key ^ 0x100), (int)DAT_DTO_RECEIVE);
	KUNIT_EXPECT_EQ(test, (int)call_with_keys(r, key, key),
			(int)DAT_DTO_RECEIVE_WITH_INVALIDATE);
	/* It can be bound again. */
	KUNIT_EXPECT_NE(test, fmr_bind_remote(r->s, lmr, r->data), key);
	KUNIT_EXPECT_EQ(test, (int)call_with_keys(other, key, key), (int)DAT_DTO_RECEIVE);
	rpc_raw_expect_alive(r);
	dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
	KUNIT_EXPECT_TRUE(test, rpc_raw_is_down(r, KD_TIMEOUT_MS));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
	rpc_raw_close(r);
}

static struct kunit_case svcrdma_cases[] = {
	KUNIT_CASE_PARAM(data_round_trip, kd_gen_ia),
	KUNIT_CASE_PARAM(data_of_the_most, kd_gen_ia),
	KUNIT_CASE_PARAM(data_inline, kd_gen_ia),
	KUNIT_CASE_PARAM(data_chunk_too_short, kd_gen_ia),
	KUNIT_CASE_PARAM(data_reply_chunk, kd_gen_ia),
	KUNIT_CASE_PARAM(data_bad_sink, kd_gen_ia),
	KUNIT_CASE_PARAM(data_key_is_invalidated, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-svcrdma-data", svcrdma_cases, "kdapl_svcrdma.ko: data in chunks", RPC_RAW_EXPORT);
