// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko and clients that send several requests in a message. The
 * initiator's requests are in blk_serve_test.c.
 */
#include <linux/module.h>
#include "blk_backing.h"
#include "blk_target.h"

#define PART		512
/*
 * Where the @i-th reply goes, with inline data; and where data that is not
 * inline goes.
 */
#define PART_AT(i)	(REPLY_AT + (i) * SZ_2K)
#define REMOTE_AT(i)	(SZ_32K + (i) * PART)

static struct kd_side *client_of_many(struct kunit *test)
{
	kdb_hello_features = KBLK_FEATURE_REQUESTS;
	return kdb_connected_client(test);
}

/*
 * Return the @i-th request of a message: each reads another part of the volume,
 * inline or not.
 */
static struct kblk_request part_of(struct kd_side *side, int i)
{
	struct kblk_request request = kdb_good_request(side);

	request.id = cpu_to_le64(i);
	request.offset = cpu_to_le64(i * PART);
	request.length = cpu_to_le32(PART);
	if (i % 4 == 3)
		request.address = cpu_to_le64((uintptr_t)side->buf->va +
					      REMOTE_AT(i));
	else
		request.flags = KBLK_INLINED;
	return request;
}

/* Post receives for @n replies; the first one is posted already. */
static void post_receives(struct kd_side *side, int n)
{
	int i;

	for (i = 1; i < n; i++)
		kd_recv(side, PART_AT(i), sizeof(struct kblk_reply) + PART,
			i + 1);
}

static struct kblk_request *fill_parts(struct kd_side *side, int n)
{
	struct kblk_request *requests = side->buf->va + REQUEST_AT;
	int i;

	for (i = 0; i < n; i++)
		requests[i] = part_of(side, i);
	return requests;
}

/* Send @n requests in one message. */
static void send_parts(struct kd_side *side, int n)
{
	fill_parts(side, n);
	kd_send(side, REQUEST_AT, n * sizeof(struct kblk_request), 2);
}

/* Wait for a good reply to any request. */
static const struct kblk_reply *next_reply(struct kd_side *side)
{
	u64 at = kd_next_dto(side->test, side->recv_evd).user_cookie.as_64;
	const struct kblk_reply *reply = side->buf->va + PART_AT(at - 1);

	KUNIT_EXPECT_EQ(side->test, le16_to_cpu(reply->status), KBLK_OK);
	return reply;
}

/* Wait for a reply to one of @n requests. Return the number of that request. */
static u64 expect_part(struct kd_side *side, const u8 *expected, int n)
{
	const struct kblk_reply *reply = next_reply(side);
	u64 i = le64_to_cpu(reply->id);
	struct kunit *test = side->test;
	const void *data;
	bool inlined;

	KUNIT_ASSERT_LT(test, i, n);
	inlined = part_of(side, i).flags & KBLK_INLINED;
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reply->length), inlined ? PART : 0);
	data = inlined ? (const void *)(reply + 1) :
			 side->buf->va + REMOTE_AT(i);
	KUNIT_EXPECT_EQ_MSG(test, 0, memcmp(data, expected + i * PART, PART),
			    "request %llu", i);
	return i;
}

/*
 * Send more requests than the target has slots. Each gets its own reply with
 * its data.
 */
static void blk_requests_together(struct kunit *test)
{
	u8 *expected = kunit_kmalloc(test, SZ_64K, GFP_KERNEL);
	struct kd_side *side;
	u64 seen;
	int i, n;

	KUNIT_ASSERT_NOT_NULL(test, expected);
	kd_fill(expected, SZ_64K, FILE_SEED);
	tgt_load(test);
	side = client_of_many(test);
	for (n = 1; n <= TGT_CREDITS; n++) {
		post_receives(side, n);
		memset(side->buf->va + SZ_32K, 0, SZ_32K);
		send_parts(side, n);
		kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
		for (i = 0, seen = 0; i < n; i++)
			seen |= BIT_ULL(expect_part(side, expected, n));
		KUNIT_EXPECT_EQ(test, seen, BIT_ULL(n) - 1);
		kdb_post_reply_buffer(side);
	}
	kdb_hello_features = 0;
	kdb_expect_serving(test);
}

#define WRITES		6
#define WRITE_LEN	1024
/*
 * Offset on the volume of the @i-th write, behind the part that other cases
 * compare.
 */
#define WRITE_AT(i)	(SZ_32K + (i) * WRITE_LEN)

/*
 * Fill a message with writes and their data, and a request without data at the
 * end. Return its length.
 */
static size_t fill_writes(struct kd_side *side)
{
	struct kblk_request request = part_of(side, 0);
	void *to = side->buf->va + REQUEST_AT;
	int i;

	for (i = 0; i < WRITES; i++) {
		request.opcode = KBLK_OP_WRITE;
		request.id = cpu_to_le64(i);
		request.offset = cpu_to_le64(WRITE_AT(i));
		request.length = cpu_to_le32(WRITE_LEN);
		memcpy(to, &request, sizeof(request));
		kd_fill(to + sizeof(request), WRITE_LEN, WRITES + i);
		to += sizeof(request) + WRITE_LEN;
	}
	request = part_of(side, WRITES);
	request.opcode = KBLK_OP_KEEPALIVE;
	request.flags = 0;
	request.offset = 0;
	request.length = 0;
	memcpy(to, &request, sizeof(request));
	return to + sizeof(request) - (side->buf->va + REQUEST_AT);
}

/* Take @n good replies. Return a bit for each request that was answered. */
static u32 take_replies(struct kd_side *side, int n)
{
	u32 seen = 0;

	while (n--)
		seen |= BIT(le64_to_cpu(next_reply(side)->id));
	return seen;
}

/* Each write finds its own data, wherever in the message that is. */
static void blk_requests_with_data(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	int i;

	tgt_load(test);
	side = client_of_many(test);
	post_receives(side, WRITES + 1);
	kd_send(side, REQUEST_AT, fill_writes(side), 2);
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(test, take_replies(side, WRITES + 1),
			BIT(WRITES + 1) - 1);
	kdb_post_reply_buffer(side);
	for (i = 0; i < WRITES; i++) {
		request = part_of(side, 0);
		request.offset = cpu_to_le64(WRITE_AT(i));
		request.length = cpu_to_le32(WRITE_LEN);
		KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
		KUNIT_EXPECT_TRUE_MSG(test, kd_is_filled(side->buf->va +
							 INLINE_AT, WRITE_LEN,
							 WRITES + i),
				      "write %d", i);
	}
	kdb_hello_features = 0;
	kdb_expect_serving(test);
}

/* The block layer gets the requests of a message together. */
static void blk_requests_are_plugged(struct kunit *test)
{
	struct backing *backing = kdb_backing_make(test, 1);
	struct kblk_request request;
	struct kd_side *side;
	int unplugs;

	/* The slots and pages of earlier requests may not be back yet. */
	tgt_load_with(test, "echo 8 >io_depth; echo 8 >pages");
	KUNIT_ASSERT_EQ(test, 0,
			shell("set -e; cd " TGT_NS "; echo 0 >enable;"
			      " echo " BACKING_1 " >path; echo 1 >enable"));
	side = client_of_many(test);
	post_receives(side, 2);
	unplugs = atomic_read(&backing->unplugs);
	send_parts(side, 2);
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(test, take_replies(side, 2), BIT(0) | BIT(1));
	/* When this one is served the target has done with the message. */
	kdb_post_reply_buffer(side);
	request = kdb_good_request(side);
	request.opcode = KBLK_OP_KEEPALIVE;
	request.flags = 0;
	request.length = 0;
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_EQ(test, atomic_read(&backing->unplugs) - unplugs, 1);
	kd_close(side);
	kdb_hello_features = 0;
}

enum fault {
	NOT_AGREED,
	LONGER,
	SHORTER,
	TOO_MANY,
	BAD_MAGIC,
	BAD_FLAG,
	BAD_RESERVED,
	SENDS_DATA,
	FIRST_SENDS_DATA,
	TOO_MUCH_DATA,
	ENDLESS_DATA,
	FAULTS
};

static void send_faulty(struct kd_side *side, enum fault fault)
{
	struct kblk_request *requests = fill_parts(side, KBLK_BATCH_MAX + 1);
	size_t len = 4 * sizeof(*requests);

	if (fault == LONGER)
		len++;
	if (fault == SHORTER)
		len -= 8;
	if (fault == TOO_MANY)
		len = (KBLK_BATCH_MAX + 1) * sizeof(*requests);
	if (fault == BAD_MAGIC)
		requests[3].magic = 0;
	if (fault == BAD_FLAG)
		requests[1].flags |= 0x80;
	if (fault == BAD_RESERVED)
		requests[2].reserved[0] = 1;
	if (fault == SENDS_DATA)
		requests[2].opcode = KBLK_OP_WRITE;
	if (fault == FIRST_SENDS_DATA || fault == TOO_MUCH_DATA ||
	    fault == ENDLESS_DATA)
		requests[0].opcode = KBLK_OP_WRITE;
	/* The message has all the data, but a page does not hold it. */
	if (fault == TOO_MUCH_DATA) {
		requests[0].length = cpu_to_le32(KBLK_INLINE + PART);
		len = sizeof(*requests) + KBLK_INLINE + PART;
	}
	if (fault == ENDLESS_DATA)
		requests[0].length = cpu_to_le32(-sizeof(*requests));
	kd_send(side, REQUEST_AT, len, 2);
}

/*
 * Malformed messages end the connection, wherever in the message the fault is.
 */
static void blk_requests_malformed(struct kunit *test)
{
	char command[128];
	struct kd_side *side;
	enum fault fault;

	tgt_load(test);
	for (fault = 0; fault < FAULTS; fault++) {
		kdb_hello_features = fault == NOT_AGREED ? 0 : KBLK_FEATURE_REQUESTS;
		side = kdb_connected_client(test);
		post_receives(side, 4);
		send_faulty(side, fault);
		KUNIT_EXPECT_TRUE_MSG(test,
				      kd_wait_state(side->ep,
						    DAT_EP_STATE_DISCONNECTED),
				      "fault %d", fault);
		kd_close(side);
	}
	kdb_hello_features = 0;
	kdb_expect_serving(test);
	/* The target's statistics show that there was no other reason. */
	snprintf(command, sizeof(command),
		 "grep -Eq '^protocol errors +%d$' " TGT_STATS, FAULTS);
	KUNIT_EXPECT_EQ(test, 0, shell(command));
}

/* Each request takes a credit, not each message. */
static void blk_requests_beyond_credits(struct kunit *test)
{
	struct kd_side *side;

	tgt_load(test);
	side = client_of_many(test);
	post_receives(side, TGT_CREDITS + 1);
	send_parts(side, TGT_CREDITS + 1);
	kdb_expect_end(side);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_has_cut_off, NULL,
					      KD_TIMEOUT_MS));
	kdb_hello_features = 0;
	kdb_expect_serving(test);
}

static bool tgt_is_busy(void *unused)
{
	return !shell("grep -Eq '^requests +[3-9]$' " TGT_STATS);
}

/*
 * A client leaves while the target is in the middle of its message: all slots
 * are taken by requests whose replies find no receive.
 */
static void blk_requests_half_taken(struct kunit *test)
{
	struct kd_side *side;
	int i;

	tgt_load_with(test, "echo 0 >reply_ms");
	for (i = 0; i < 3; i++) {
		side = client_of_many(test);
		send_parts(side, TGT_CREDITS);
		if (!i)
			KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_is_busy, NULL,
							      KD_TIMEOUT_MS));
		kd_close(side);
	}
	kdb_hello_features = 0;
	kdb_expect_serving(test);
}

static struct kunit_case blk_cases[] = {
	KUNIT_CASE_PARAM(blk_requests_together, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_requests_with_data, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_requests_are_plugged, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_requests_malformed, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_requests_beyond_credits, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_requests_half_taken, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-requests", blk_cases,
	 "the block device target and messages of several requests");
