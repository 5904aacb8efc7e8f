// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko and clients that keep to the protocol, as
 * Documentation/kdapl-blk.rst has it.
 */
#include "blk_target.h"

#define NULLB	"/sys/kernel/config/nullb/kdapl_test"

static void blk_identify(struct kunit *test)
{
	struct kblk_identify *identify;
	struct kblk_request request;
	struct kd_side *side;
	__le64 instance;

	tgt_load(test);
	side = connected_client(test);
	identify = side->buf->va + INLINE_AT;
	request = good_request(side);
	request.opcode = KBLK_OP_IDENTIFY;
	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(sizeof(*identify));
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(identify->size), FILE_SIZE);
	instance = identify->instance;
	KUNIT_EXPECT_EQ(test, le32_to_cpu(identify->block_size), 512);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(identify->flags), KBLK_VOLUME_CACHE);
	KUNIT_EXPECT_NE(test, le32_to_cpu(identify->max_discard), 0);
	/* It is the kernel's, not the module's. */
	tgt_reload(test);
	side = connected_client(test);
	identify = side->buf->va + INLINE_AT;
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(identify->instance),
			le64_to_cpu(instance));
	expect_serving(test);
}

/* Write @seed, inline or not, and read it back in both ways. */
static void write_and_read(struct kd_side *side, u8 flags, u32 seed, u32 length)
{
	struct kblk_request request = good_request(side);
	struct kunit *test = side->test;

	request.opcode = KBLK_OP_WRITE;
	request.flags = flags;
	request.length = cpu_to_le32(length);
	request.offset = cpu_to_le64(SZ_512K);
	kd_fill(side->buf->va + (flags & KBLK_INLINED ?
				 REQUEST_AT + sizeof(request) : DATA_AT),
		length, seed);
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);

	memset(side->buf->va + DATA_AT, 0, length);
	request.opcode = KBLK_OP_READ;
	request.flags = 0;
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(side->buf->va + DATA_AT, length,
					     seed));
	if (length > KBLK_INLINE)
		return;
	request.flags = KBLK_INLINED;
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(side->buf->va + INLINE_AT, length,
					     seed));
}

static void blk_read_write(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	u8 op;

	tgt_load(test);
	side = connected_client(test);
	write_and_read(side, KBLK_INLINED, 1, 4096);
	write_and_read(side, KBLK_INLINED | KBLK_FUA, 2, 512);
	write_and_read(side, 0, 3, 512);
	write_and_read(side, KBLK_FUA, 4, SZ_32K);
	request = good_request(side);
	request.opcode = KBLK_OP_FLUSH;
	request.length = 0;
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
	request.opcode = KBLK_OP_KEEPALIVE;
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
	for (op = KBLK_OP_DISCARD; op <= KBLK_OP_WRITE_ZEROES; op++) {
		write_and_read(side, 0, 5, SZ_32K);
		request = good_request(side);
		request.opcode = op;
		request.offset = cpu_to_le64(SZ_512K);
		request.length = cpu_to_le32(SZ_32K);
		KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
		request.opcode = KBLK_OP_READ;
		KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
		/* A file's hole reads as zeroes. */
		KUNIT_EXPECT_FALSE(test, memchr_inv(side->buf->va + DATA_AT, 0,
						    SZ_32K));
	}
	expect_serving(test);
}

static void blk_hello_refused(struct kunit *test)
{
	static const u16 status[] = {
		KBLK_HELLO_MALFORMED, KBLK_HELLO_MALFORMED,
		KBLK_HELLO_MALFORMED, KBLK_HELLO_MALFORMED,
		KBLK_HELLO_VERSION, KBLK_HELLO_VERSION,
	};
	struct kblk_hello bad[ARRAY_SIZE(status)];
	const struct kblk_welcome *welcome;
	struct kd_side *side;
	int i;

	tgt_load(test);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good_hello();
	bad[0].magic = 0;
	bad[1].credits = 0;
	bad[2].session = 0;
	bad[3].reply_size = cpu_to_le32(sizeof(struct kblk_reply));
	bad[4].version_min = cpu_to_le16(KBLK_VERSION_MAX + 1);
	bad[4].version_max = bad[4].version_min;
	bad[5].version_min = cpu_to_le16(2);
	bad[5].version_max = cpu_to_le16(1);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = client(test);
		say_hello(side, &bad[i], sizeof(bad[i]));
		welcome = expect_welcome(side,
					 DAT_CONNECTION_EVENT_PEER_REJECTED);
		KUNIT_EXPECT_EQ_MSG(test, le16_to_cpu(welcome->status),
				    status[i], "hello %d", i);
		kd_close(side);
	}
	side = client(test);
	say_hello(side, NULL, 0);
	expect_welcome(side, DAT_CONNECTION_EVENT_PEER_REJECTED);
	expect_serving(test);
}

/* A later epoch ends the earlier one; an earlier one is turned away. */
static void blk_epochs(struct kunit *test)
{
	struct kblk_hello hello = good_hello();
	const struct kblk_welcome *welcome;
	struct kd_side *old, *side;
	DAT_EVENT event;
	u16 status;

	tgt_load(test);
	old = welcome_client(test, &hello);
	hello.epoch = cpu_to_le32(4);
	side = client(test);
	say_hello(side, &hello, sizeof(hello));
	welcome = expect_welcome(side, DAT_CONNECTION_EVENT_PEER_REJECTED);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->status), KBLK_HELLO_STALE);
	kd_close(side);

	hello.epoch = cpu_to_le32(6);
	side = client(test);
	say_hello(side, &hello, sizeof(hello));
	welcome = expect_welcome(side, DAT_CONNECTION_EVENT_PEER_REJECTED);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->status),
			KBLK_HELLO_DRAINING);
	kd_close(side);
	expect_end(old);
	do {
		side = client(test);
		say_hello(side, &hello, sizeof(hello));
		KUNIT_ASSERT_TRUE(test, kd_wait_event(side->conn_evd, &event,
						      KD_TIMEOUT_MS));
		welcome = event.event_data.connect_event_data.private_data;
		status = le16_to_cpu(welcome->status);
		kd_close(side);
	} while (status == KBLK_HELLO_DRAINING);
	KUNIT_EXPECT_EQ(test, status, KBLK_HELLO_OK);
	expect_serving(test);
}

static void blk_attach_refused(struct kunit *test)
{
	struct kblk_hello hello = good_hello();
	struct kblk_request request;
	struct kd_side *side;

	tgt_load(test);
	side = welcome_client(test, &hello);
	request = good_request(side);
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_ERR_NOT_ATTACHED);
	KUNIT_EXPECT_EQ(test, attach_as(side, "somebody", "vo", 1, 0),
			KBLK_ERR_NO_VOLUME);
	KUNIT_EXPECT_EQ(test, attach_as(side, "somebody", "vol", 2, 0),
			KBLK_ERR_NO_VOLUME);
	KUNIT_EXPECT_EQ(test, 0,
			shell("cd " TGT "/subsystems/vol;"
			      " echo 0 >allow_any_client;"
			      " ln -s " TGT "/clients/friend allowed_clients"));
	KUNIT_EXPECT_EQ(test, attach_as(side, "stranger", "vol", 1, 0),
			KBLK_ERR_DENIED);
	KUNIT_EXPECT_EQ(test, attach_as(side, "", "vol", 1, 0),
			KBLK_ERR_DENIED);
	KUNIT_EXPECT_EQ(test, attach_as(side, "friend", "vol", 1, 0), KBLK_OK);
	KUNIT_EXPECT_EQ(test, attach_as(side, "friend", "vol", 1, 0),
			KBLK_ERR_INVALID);
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
	/* No friend any more. */
	KUNIT_EXPECT_EQ(test, 0, shell("rm " TGT
				       "/subsystems/vol/allowed_clients/friend"));
	expect_end(side);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 1 >" TGT
				       "/subsystems/vol/allow_any_client"));
	expect_serving(test);
}

static void blk_disabled(struct kunit *test)
{
	struct kd_side *side;

	tgt_load(test);
	side = connected_client(test);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" TGT_NS "/enable"));
	expect_end(side);
	KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT_NS "; echo 1 >read_only;"
				       " echo 1 >enable"));
	expect_serving(test);
}

static void blk_silent(struct kunit *test)
{
	struct kblk_hello hello = good_hello();
	struct kd_side *side;

	tgt_load(test);
	side = welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, attach_as(side, "somebody", "vol", 1, 10),
			KBLK_OK);
	expect_end(side);
	expect_serving(test);
}

/* Who connects has to attach, whatever else he says. */
static void blk_attaches_not(struct kunit *test)
{
	struct kblk_hello hello = good_hello();
	struct kblk_request request;
	struct kd_side *side;

	tgt_load_with(test, "echo 100 >attach_ms");
	side = welcome_client(test, &hello);
	request = good_request(side);
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_ERR_NOT_ATTACHED);
	expect_end(side);
	expect_serving(test);
}

static void nullb_remove(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, 0, shell("rmdir " NULLB));
}

/* A disk whose requests end in interrupts, as those of real ones do. */
static void blk_medium_interrupts(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	int i;

	if (shell("mkdir " NULLB))
		kunit_skip(test, "no null_blk");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, nullb_remove,
							   test));
	KUNIT_ASSERT_EQ(test, 0, shell("set -e; cd " NULLB "; echo 1 >size;"
				       " echo 2 >irqmode; echo 1 >power"));
	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, shell("set -e; cd " TGT_NS "; echo 0 >enable;"
				       " echo /dev/kdapl_test >path;"
				       " echo 1 >enable"));
	side = connected_client(test);
	request = good_request(side);
	for (i = 0; i < 10; i++) {
		request.flags ^= KBLK_INLINED;
		KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
	}
}

/* Is the queue @buffers long, with all of them there? */
static bool srq_is(unsigned int buffers)
{
	char command[128];

	snprintf(command, sizeof(command),
		 "grep -Eq 'SRQ buffers +%u max, %u available' " TGT_STATS,
		 buffers, buffers);
	return !shell(command);
}

static bool srq_is_14(void *unused)
{
	return srq_is(14);
}

static bool srq_is_21(void *unused)
{
	return srq_is(21);
}

/* Nothing but messages takes buffers off the queue. */
static bool srq_is_14_again(void *data)
{
	struct kd_side *side = data;
	struct kblk_request request = good_request(side);
	int i;

	for (i = 0; i < 21; i++)
		KUNIT_EXPECT_EQ(side->test, ask(side, &request), KBLK_OK);
	return srq_is(14);
}

static void blk_srq_follows_connections(struct kunit *test)
{
	struct kd_side *side, *other;

	tgt_load_with(test, "echo 7 >srq_size; echo 7 >srq_per_conn");
	side = connected_client(test);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(srq_is_14, NULL, KD_TIMEOUT_MS));
	other = connected_client(test);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(srq_is_21, NULL, KD_TIMEOUT_MS));
	kd_close(other);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(srq_is_14_again, side,
					      KD_TIMEOUT_MS));
}

/* The first message fires it. */
static void blk_low_watermark(struct kunit *test)
{
	tgt_load_with(test, "echo 7 >srq_size; echo 7 >srq_low");
	connected_client(test);
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(srq_is_14, NULL,
						  KD_TIMEOUT_MS),
			      "the reserve was not posted");
	KUNIT_EXPECT_EQ(test, 0,
			shell("grep -Eq 'SRQ low watermark events +1$' "
			      TGT_STATS));
}

/* ---- Several replies in a message ---------------------------------------- */

#define MANY		6

static bool tgt_has_taken(void *unused)
{
	/* And what attached, and one more. */
	return !shell("grep -Eq '^requests +8$' " TGT_STATS);
}

/* Number 1 is that of post_reply_buffer(). */
static unsigned int batch_at(u64 number)
{
	return REPLY_AT + (number - 1) * 256;
}

static void post_batch_buffers(struct kd_side *side)
{
	int i;

	for (i = 2; i < MANY + 2; i++)
		kd_recv(side, batch_at(i), 256, i);
}

/* The replies to keep-alives with ids from 0 on; returns in how many messages. */
static unsigned int take_batches(struct kd_side *side, unsigned int n)
{
	struct kunit *test = side->test;
	DAT_DTO_COMPLETION_EVENT_DATA dto;
	const struct kblk_reply *reply;
	unsigned int messages, seen = 0, credits = 0;
	DAT_EVENT event;
	DAT_COUNT i;

	for (messages = 0; hweight32(seen) < n; messages++) {
		KUNIT_ASSERT_TRUE(test, kd_wait_event(side->recv_evd, &event,
						      KD_TIMEOUT_MS));
		dto = event.event_data.dto_completion_event_data;
		KUNIT_ASSERT_EQ(test, (int)dto.status, (int)DAT_DTO_SUCCESS);
		KUNIT_ASSERT_NE(test, dto.transfered_length, 0);
		reply = side->buf->va + batch_at(dto.user_cookie.as_64);
		for (i = 0; i < dto.transfered_length; i += sizeof(*reply)) {
			KUNIT_EXPECT_EQ(test, le32_to_cpu(reply->magic),
					KBLK_MAGIC);
			KUNIT_ASSERT_LT(test, le64_to_cpu(reply->id), n);
			KUNIT_EXPECT_FALSE(test, seen &
					   BIT(le64_to_cpu(reply->id)));
			seen |= BIT(le64_to_cpu(reply->id));
			credits += le16_to_cpu(reply->credits);
			reply++;
		}
	}
	/* Throttled, as so many come at once, it gives no more than half later. */
	KUNIT_EXPECT_GE(test, credits, n - TGT_CREDITS / 2);
	KUNIT_EXPECT_LE(test, credits, n);
	return messages;
}

/*
 * While a reply is under way others wait, and then share a message. Over iWARP a
 * Send that finds no receive ends the connection, so there nothing makes it wait.
 */
static void blk_replies_share_a_message(struct kunit *test)
{
	struct kblk_hello hello = good_hello();
	struct kblk_request request;
	unsigned int i, messages;
	struct kd_side *side;

	tgt_load_with(test, "echo 8 >io_depth; echo 8 >pages; echo 0 >reply_ms");
	hello.features |= cpu_to_le32(KBLK_FEATURE_BATCH);
	side = welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, attach_as(side, "somebody", "vol", 1, 0),
			KBLK_OK);
	/* Data comes alone. */
	request = good_request(side);
	request.flags = KBLK_INLINED;
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(side->buf->va + INLINE_AT, 4096,
					     FILE_SEED));

	request.opcode = KBLK_OP_KEEPALIVE;
	request.flags = 0;
	request.length = 0;
	if (kd_is_iwarp(side))
		post_batch_buffers(side);
	for (i = 0; i < MANY; i++) {
		request.id = cpu_to_le64(i);
		memcpy(side->buf->va + REQUEST_AT + i * sizeof(request),
		       &request, sizeof(request));
		kd_send(side, REQUEST_AT + i * sizeof(request),
			sizeof(request), 2);
	}
	KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_has_taken, NULL,
					      KD_TIMEOUT_MS));
	if (!kd_is_iwarp(side))
		post_batch_buffers(side);
	messages = take_batches(side, MANY);
	if (!kd_is_iwarp(side))
		KUNIT_EXPECT_LT(test, messages, MANY);
	kd_close(side);
	expect_serving(test);
}

/* Who has no room for such a message does not get one. */
static void blk_reply_size_and_batch(struct kunit *test)
{
	struct kblk_hello hello = good_hello();
	const struct kblk_welcome *welcome;
	u32 sizes[] = { 1023, 1024 };
	struct kd_side *side;
	int i;

	tgt_load(test);
	hello.features = cpu_to_le32(KBLK_FEATURE_BATCH | 0x80000000);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		hello.reply_size = cpu_to_le32(sizes[i]);
		side = client(test);
		say_hello(side, &hello, sizeof(hello));
		welcome = expect_welcome(side,
					 DAT_CONNECTION_EVENT_ESTABLISHED);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(welcome->features),
				i ? KBLK_FEATURE_BATCH : 0);
		kd_close(side);
	}
}

static struct kunit_case blk_cases[] = {
	KUNIT_CASE_PARAM(blk_identify, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_read_write, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_hello_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_epochs, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_attach_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_disabled, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_silent, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_attaches_not, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_medium_interrupts, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_srq_follows_connections, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_low_watermark, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_replies_share_a_message, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_reply_size_and_batch, kd_gen_ia),
	{}
};

static struct kunit_suite blk_suite = {
	.name = "kdapl-blk",
	.test_cases = blk_cases,
};

kunit_test_suite(blk_suite);

MODULE_DESCRIPTION("KUnit suite: the block device target");
MODULE_LICENSE("Dual BSD/GPL");
