// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: several replies in a message (KBLK_FEATURE_BATCH).
 */
#include <linux/module.h>
#include "blk_target.h"

#define MANY		7

/*
 * struct sharing - requests whose replies share messages
 * @size: the longest message that the client takes
 * @lengths: bytes that each request reads; 0: the request is a keep-alive
 */
struct sharing {
	u32 size;
	u32 lengths[MANY];
};

/* Return a bit for each request that reads. */
static unsigned long reads_of(const struct sharing *how)
{
	unsigned long reads = 0;
	int i;

	for (i = 0; i < MANY; i++)
		if (how->lengths[i])
			reads |= BIT(i);
	return reads;
}

static bool tgt_has_taken(void *unused)
{
	/* There were four requests before. */
	return !shell("grep -Eq '^requests +11$' " TGT_STATS);
}

static bool tgt_has_read(void *data)
{
	const struct sharing *how = data;
	char command[128];

	/* There was one request before. */
	snprintf(command, sizeof(command),
		 "grep -Eq '^reads +%lu$' " TGT_STATS,
		 hweight_long(reads_of(how)) + 1);
	return !shell(command);
}

static unsigned int shared_at(const struct sharing *how, u64 number)
{
	return DATA_AT + number * how->size;
}

static void post_shared_buffers(struct kd_side *side, const struct sharing *how)
{
	int i;

	for (i = 0; i < MANY; i++)
		kd_recv(side, shared_at(how, i), how->size, i);
}

/* Send the requests that read, or the others, in order of their numbers. */
static void send_numbered(struct kd_side *side, const struct sharing *how,
			  bool reads)
{
	struct kblk_request request = kdb_good_request(side);
	unsigned int i, at;

	for (i = 0; i < MANY; i++) {
		if (reads != !!how->lengths[i])
			continue;
		request.id = cpu_to_le64(i);
		request.opcode = KBLK_OP_KEEPALIVE;
		request.flags = 0;
		request.offset = 0;
		request.length = 0;
		if (how->lengths[i]) {
			request.opcode = KBLK_OP_READ;
			request.flags = KBLK_INLINED;
			request.offset = cpu_to_le64(i * 512);
			request.length = cpu_to_le32(how->lengths[i]);
		}
		at = REQUEST_AT + i * sizeof(request);
		memcpy(side->buf->va + at, &request, sizeof(request));
		kd_send(side, at, sizeof(request), 2);
	}
}

/* Check one reply to a numbered request. Return the number. */
static u64 take_numbered(struct kunit *test, const struct sharing *how,
			 const struct kblk_reply *reply, const void *file)
{
	u64 id = le64_to_cpu(reply->id);

	KUNIT_EXPECT_EQ(test, le32_to_cpu(reply->magic), KBLK_MAGIC);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(reply->status), KBLK_OK);
	KUNIT_ASSERT_LT(test, id, MANY);
	KUNIT_ASSERT_EQ(test, le32_to_cpu(reply->length), how->lengths[id]);
	KUNIT_EXPECT_MEMEQ(test, reply + 1, file + id * 512, how->lengths[id]);
	return id;
}

/* Take the replies to all numbered requests. Return the number of messages. */
static unsigned int take_messages(struct kd_side *side, const struct sharing *how)
{
	unsigned long reads = reads_of(how), seen = 0;
	unsigned int messages, credits = 0;
	DAT_DTO_COMPLETION_EVENT_DATA dto;
	struct kunit *test = side->test;
	const struct kblk_reply *reply;
	char *file = kunit_kmalloc(test, SZ_64K, GFP_KERNEL);
	const void *end;
	u64 id;

	KUNIT_ASSERT_NOT_NULL(test, file);
	kd_fill(file, SZ_64K, FILE_SEED);
	for (messages = 0; hweight_long(seen) < MANY; messages++) {
		dto = kd_next_dto(test, side->recv_evd);
		KUNIT_ASSERT_NE(test, dto.transfered_length, 0);
		reply = side->buf->va + shared_at(how, dto.user_cookie.as_64);
		end = (const void *)reply + dto.transfered_length;
		while ((const void *)reply < end) {
			id = take_numbered(test, how, reply, file);
			KUNIT_EXPECT_FALSE(test, seen & BIT(id));
			/*
			 * The first reply without data did not wait for all
			 * others.
			 */
			if (!how->lengths[id] && !(seen & ~reads) &&
			    !kd_is_iwarp(side))
				KUNIT_EXPECT_TRUE(test, !reads || reads & ~seen);
			seen |= BIT(id);
			credits += le16_to_cpu(reply->credits);
			reply = (const void *)(reply + 1) +
				le32_to_cpu(reply->length);
		}
		KUNIT_EXPECT_PTR_EQ(test, (const void *)reply, end);
	}
	/*
	 * Since so many requests come at once, the target throttles credits,
	 * and grants up to half of them later.
	 */
	KUNIT_EXPECT_GE(test, credits, MANY - TGT_CREDITS / 2);
	KUNIT_EXPECT_LE(test, credits, MANY);
	return messages;
}

/*
 * While a reply is under way other replies wait, and then share a message. Over
 * iWARP a Send without a receive ends the connection, so nothing can hold a
 * reply up there.
 */
static void share_messages(struct kunit *test, struct sharing how)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kblk_request request;
	unsigned int messages;
	struct kd_side *side;

	tgt_load_with(test, "echo 8 >io_depth; echo 8 >pages; echo 0 >reply_ms");
	hello.features |= cpu_to_le32(KBLK_FEATURE_BATCH);
	hello.reply_size = cpu_to_le32(how.size);
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vol", 1, 0),
			KBLK_OK);
	/*
	 * While data is moved by RDMA replies are sent one by one; later they
	 * share messages.
	 */
	request = kdb_good_request(side);
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	request.opcode = KBLK_OP_KEEPALIVE;
	request.length = 0;
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	/* Use up the last receive. */
	kdb_send_request(side, &request, sizeof(request));
	kd_expect_dto(test, side->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	if (kd_is_iwarp(side))
		post_shared_buffers(side, &how);
	send_numbered(side, &how, true);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_has_read, &how,
					      KD_TIMEOUT_MS));
	/* Check whether these wait while replies with data do. */
	send_numbered(side, &how, false);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_has_taken, NULL,
					      KD_TIMEOUT_MS));
	if (!kd_is_iwarp(side))
		post_shared_buffers(side, &how);
	messages = take_messages(side, &how);
	if (!kd_is_iwarp(side))
		KUNIT_EXPECT_LT(test, messages, MANY);
	kd_close(side);
	kdb_expect_serving(test);
}

static void blk_replies_share_a_message(struct kunit *test)
{
	share_messages(test, (struct sharing){ .size = 1024 });
}

/*
 * The first two replies do not wait. Of the next two the second one does not
 * fit, then two fit. (The last reply may be late, since its request is counted
 * before.)
 */
static void blk_data_shares_a_message(struct kunit *test)
{
	share_messages(test, (struct sharing)
		       { 1500, { 512, 512, 512, 1024, 512, 512, 512 } });
}

/*
 * As much data as the adapter gathers shares a message; replies of the two
 * kinds do not wait for each other.
 */
static void blk_much_data_shares_a_message(struct kunit *test)
{
	share_messages(test, (struct sharing)
		       { SZ_4K, { 512, 512, 512, 512, 512, 512, 512 } });
	kunit_release_action(test, tgt_unload, test);
	share_messages(test, (struct sharing)
		       { SZ_4K, { 512, 512, 512, 512, 512, 0, 0 } });
}

/* A client without room for a shared message does not get one. */
static void blk_reply_size_and_batch(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	u32 sizes[] = { 1023, 1024 };
	struct kd_side *side;
	int i;

	tgt_load(test);
	hello.features = cpu_to_le32(KBLK_FEATURE_BATCH | 0x80000000);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		hello.reply_size = cpu_to_le32(sizes[i]);
		side = kdb_welcome_client(test, &hello);
		KUNIT_EXPECT_EQ(test, kdb_granted, i ? KBLK_FEATURE_BATCH : 0);
		kd_close(side);
	}
}

static struct kunit_case batch_cases[] = {
	KUNIT_CASE_PARAM(blk_replies_share_a_message, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_data_shares_a_message, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_much_data_shares_a_message, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_reply_size_and_batch, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-batch", batch_cases,
	 "replies of the block device target that share a message");
