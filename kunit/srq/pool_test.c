// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * <dat/kdat_pool.h>: an SRQ that is as long as its target needs. A buffer takes 512 bytes, and
 * a block has 32 KiB, less what has the data behind a header of 16 bytes aligned.
 */
#include <linux/module.h>
#include <dat/kdat_pool.h>
#include "fixture.h"

#define BLOCK	63		/* buffers of a block */
#define LEN	64		/* bytes of a message */

/*
 * struct bench - a pool, and a connection whose receives are of it
 * @size: what the size function tells
 * @held: messages that were not given back
 * @n: number of @held
 * @sent: messages sent
 */
struct bench {
	struct kunit *test;
	struct kd_pair c;
	KDAT_POOL_HANDLE pool;
	KDAT_POOL_SIZE size;
	struct kdat_pool_buf *held[4 * BLOCK];
	unsigned int n;
	u32 sent;
};

static void tell_size(DAT_PVOID context, KDAT_POOL_SIZE *size)
{
	struct bench *b = context;

	size->wanted = READ_ONCE(b->size.wanted);
	size->most = READ_ONCE(b->size.most);
	size->low = 0;
}

static KDAT_POOL_ATTR bench_attr(struct bench *b)
{
	return (KDAT_POOL_ATTR) {
		.ia = b->c.p->ia, .pz = b->c.p->pz, .name = b->c.p->name,
		.length = LEN, .header = 16, .size = tell_size, .context = b,
	};
}

static void bench_end(void *data)
{
	struct bench *b = data;

	if (b->c.p->ep)
		dat_ep_free(b->c.p->ep);
	kdat_pool_free(b->pool);
}

static KDAT_POOL_PARAM query(struct bench *b)
{
	KDAT_POOL_PARAM param;

	kdat_pool_query(b->pool, &param);
	return param;
}

/* Make a pool of @wanted buffers, @most at the most, and connect. */
static struct bench *bench_open(struct kunit *test, DAT_COUNT wanted, DAT_COUNT most)
{
	struct bench *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	KDAT_POOL_ATTR attr;

	KUNIT_ASSERT_NOT_NULL(test, b);
	b->test = test;
	b->c = kd_make_pair(test, &(struct kd_opts) { .no_ep = true, .qlen = 8 * BLOCK });
	b->size = (KDAT_POOL_SIZE) { .wanted = wanted, .most = most };
	attr = bench_attr(b);
	KD_ASSERT_OK(test, kdat_pool_create(&attr, &b->pool));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, bench_end, b));
	b->c.p->srq = query(b).srq;
	b->c.a->ep = kd_ep(b->c.a, NULL);
	b->c.p->ep = kd_ep(b->c.p, NULL);
	kd_connect_pair(b->c.a, b->c.p);
	return b;
}

/* Send @n messages, and keep the buffers that they have come in. */
static void receive(struct bench *b, unsigned int n)
{
	DAT_DTO_COMPLETION_EVENT_DATA dto;
	KDAT_POOL_BUF *buf;

	while (n--) {
		kd_fill(b->c.a->buf->va, LEN, b->sent);
		kd_send(b->c.a, 0, LEN, b->sent);
		kd_expect_dto(b->test, b->c.a->req_evd, b->sent, DAT_DTO_SUCCESS, NULL);
		dto = kd_next_dto(b->test, b->c.p->recv_evd);
		KUNIT_ASSERT_EQ(b->test, (u32)dto.status, (u32)DAT_DTO_SUCCESS);
		buf = dto.user_cookie.as_ptr;
		KUNIT_EXPECT_TRUE(b->test, kd_is_filled(buf->va, LEN, b->sent));
		KUNIT_EXPECT_EQ(b->test, ((uintptr_t)buf->va + 16) % 512, 0);
		b->held[b->n++] = buf;
		b->sent++;
	}
}

/* Give back the @n messages that came last. */
static void give_back(struct bench *b, unsigned int n)
{
	while (n--)
		kdat_pool_put(b->pool, b->held[--b->n]);
}

static bool has_as_wanted(void *data)
{
	struct bench *b = data;
	KDAT_POOL_PARAM param = query(b);

	return param.buffers == b->size.wanted && !param.retired &&
	       kdat_pool_usable(b->pool) == b->size.wanted;
}

/* Has the queue been doubled, and the watermark been armed again? */
static bool has_two_blocks(void *data)
{
	struct bench *b = data;
	KDAT_POOL_PARAM param = query(b);

	return kdat_pool_usable(b->pool) == 2 * BLOCK && param.buffers == 2 * BLOCK &&
	       param.low_watermark == 2 * BLOCK / 4;
}

static bool has_one_usable(void *data)
{
	struct bench *b = data;

	return kdat_pool_usable(b->pool) == BLOCK;
}

static void expect_soon(struct bench *b, bool (*cond)(void *data))
{
	bool met = kd_wait_until(cond, b, KD_TIMEOUT_MS);
	KDAT_POOL_PARAM param = query(b);

	KUNIT_ASSERT_TRUE_MSG(b->test, met, "%d buffers, %d usable, %d retired, %d available",
			      param.buffers, kdat_pool_usable(b->pool), param.retired,
			      param.available);
}

/* The low watermark doubles the queue, a calm one loses what was added, and no message. */
static void pool_follows_the_load(struct kunit *test)
{
	struct bench *b = bench_open(test, BLOCK, 4 * BLOCK);
	unsigned int i;
	DAT_EVENT event;

	KUNIT_EXPECT_EQ(test, query(b).buffers, BLOCK);
	KUNIT_EXPECT_EQ(test, query(b).available, BLOCK);
	KUNIT_EXPECT_EQ(test, query(b).low_watermark, BLOCK / 4);
	receive(b, BLOCK - BLOCK / 4 + 1);
	kd_expect_event(test, b->c.p->async_evd, DAT_ASYNC_SRQ_LOW_WATERMARK, &event);
	kdat_pool_ran_low(b->pool);
	expect_soon(b, has_two_blocks);
	receive(b, BLOCK);
	kd_expect_event(test, b->c.p->async_evd, DAT_ASYNC_SRQ_LOW_WATERMARK, &event);
	give_back(b, b->n);
	kdat_pool_ran_low(b->pool);
	expect_soon(b, has_one_usable);
	/* The block that retires gets its buffers back by messages. */
	for (i = 0; i < 4 * BLOCK; i++) {
		receive(b, 1);
		give_back(b, 1);
	}
	expect_soon(b, has_as_wanted);
	receive(b, BLOCK / 2);
	give_back(b, BLOCK / 2);
}

/* A queue that is to become shorter, and is needed after all, has all of its buffers. */
static void pool_recalls(struct kunit *test)
{
	struct bench *b = bench_open(test, 2 * BLOCK, 2 * BLOCK);

	WRITE_ONCE(b->size.wanted, BLOCK);
	kdat_pool_adapt(b->pool, DAT_TRUE);
	expect_soon(b, has_one_usable);
	receive(b, BLOCK + BLOCK / 2);
	give_back(b, BLOCK + BLOCK / 2);
	KUNIT_EXPECT_GT(test, query(b).retired, 0);
	WRITE_ONCE(b->size.wanted, 2 * BLOCK);
	kdat_pool_adapt(b->pool, DAT_TRUE);
	expect_soon(b, has_as_wanted);
	KUNIT_EXPECT_EQ(test, query(b).available, 2 * BLOCK);
}

static void pool_reserves(struct kunit *test)
{
	struct bench *b = bench_open(test, BLOCK, 4 * BLOCK);

	KUNIT_EXPECT_EQ(test, kdat_pool_most(b->pool), 4 * BLOCK);
	KUNIT_EXPECT_EQ(test, kdat_pool_reserve(b->pool, 100, 100), 100);
	KUNIT_EXPECT_GE(test, query(b).available, 100);
	KUNIT_EXPECT_EQ(test, kdat_pool_reserve(b->pool, 153, 153), 0);
	KUNIT_EXPECT_EQ(test, kdat_pool_reserve(b->pool, 153, 1), 76);
	KUNIT_EXPECT_EQ(test, kdat_pool_reserve(b->pool, 76, 76), 76);
	KUNIT_EXPECT_EQ(test, query(b).reserved, 4 * BLOCK);
	KUNIT_EXPECT_EQ(test, query(b).available, 4 * BLOCK);
	KUNIT_EXPECT_EQ(test, kdat_pool_reserve(b->pool, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, kdat_pool_reserve(b->pool, 0, 0), 0);
	/* What is reserved stays, whatever is wanted. */
	WRITE_ONCE(b->size.most, BLOCK);
	kdat_pool_adapt(b->pool, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, kdat_pool_reserve(b->pool, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, query(b).available, 4 * BLOCK);
	kdat_pool_release(b->pool, 4 * BLOCK);
	kdat_pool_adapt(b->pool, DAT_TRUE);
	expect_soon(b, has_one_usable);
}

static void pool_arguments(struct kunit *test)
{
	struct bench *b = bench_open(test, 1, 1);
	KDAT_POOL_ATTR attr = bench_attr(b), bad;
	KDAT_POOL_HANDLE pool = NULL;

	/* There is one block at the least. */
	KUNIT_EXPECT_EQ(test, query(b).buffers, BLOCK);
	KUNIT_EXPECT_EQ(test, kdat_pool_most(b->pool), BLOCK);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_pool_create(NULL, &pool));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_pool_create(&attr, NULL));
	bad = attr;
	bad.size = NULL;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_pool_create(&bad, &pool));
	bad = attr;
	bad.length = 0;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_pool_create(&bad, &pool));
	bad.length = SZ_1M + 1;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_pool_create(&bad, &pool));
	bad = attr;
	bad.header = LEN + 1;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_pool_create(&bad, &pool));
	bad = attr;
	bad.pz = NULL;
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, kdat_pool_create(&bad, &pool));
	KUNIT_EXPECT_NULL(test, pool);
	kdat_pool_free(NULL);
}

static struct kunit_case pool_cases[] = {
	KUNIT_CASE_PARAM(pool_follows_the_load, kd_gen_ia),
	KUNIT_CASE_PARAM(pool_recalls, kd_gen_ia),
	KUNIT_CASE_PARAM(pool_reserves, kd_gen_ia),
	KUNIT_CASE_PARAM(pool_arguments, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-pool", pool_cases, "pools of receive buffers");
