// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko and clients that keep to the protocol, as
 * Documentation/kdapl-blk-design.rst has it.
 */
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/sched.h>
#include "blk_memory.h"
#include "blk_target.h"
#include "device.h"

#define NULLB	"/sys/kernel/config/nullb/kdapl_test"

static void blk_identify(struct kunit *test)
{
	struct kblk_identify *identify;
	struct kblk_request request;
	struct kd_side *side;
	__le64 instance;

	tgt_load(test);
	side = kdb_connected_client(test);
	identify = side->buf->va + INLINE_AT;
	request = kdb_good_request(side);
	request.opcode = KBLK_OP_IDENTIFY;
	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(sizeof(*identify));
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(identify->size), FILE_SIZE);
	instance = identify->instance;
	KUNIT_EXPECT_EQ(test, le32_to_cpu(identify->block_size), 512);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(identify->flags), KBLK_VOLUME_CACHE);
	KUNIT_EXPECT_NE(test, le32_to_cpu(identify->max_discard), 0);
	/* Nobody has told that this is the same. */
	tgt_reload(test);
	side = kdb_connected_client(test);
	identify = side->buf->va + INLINE_AT;
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_NE(test, le64_to_cpu(identify->instance),
			le64_to_cpu(instance));
	kdb_expect_serving(test);
}

/* Write @seed, inline or not, and read it back in both ways. */
static void write_and_read(struct kd_side *side, u8 flags, u32 seed, u32 length)
{
	struct kblk_request request = kdb_good_request(side);
	struct kunit *test = side->test;

	request.opcode = KBLK_OP_WRITE;
	request.flags = flags;
	request.length = cpu_to_le32(length);
	request.offset = cpu_to_le64(SZ_512K);
	kd_fill(side->buf->va + (flags & KBLK_INLINED ?
				 REQUEST_AT + sizeof(request) : DATA_AT),
		length, seed);
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);

	memset(side->buf->va + DATA_AT, 0, length);
	request.opcode = KBLK_OP_READ;
	request.flags = 0;
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(side->buf->va + DATA_AT, length,
					     seed));
	if (length > KBLK_INLINE)
		return;
	request.flags = KBLK_INLINED;
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(side->buf->va + INLINE_AT, length,
					     seed));
}

static void blk_read_write(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	u8 op;

	tgt_load(test);
	side = kdb_connected_client(test);
	write_and_read(side, KBLK_INLINED, 1, 4096);
	write_and_read(side, KBLK_INLINED | KBLK_FUA, 2, 512);
	write_and_read(side, 0, 3, 512);
	write_and_read(side, KBLK_FUA, 4, SZ_32K);
	request = kdb_good_request(side);
	request.opcode = KBLK_OP_FLUSH;
	request.length = 0;
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	request.opcode = KBLK_OP_KEEPALIVE;
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	for (op = KBLK_OP_DISCARD; op <= KBLK_OP_WRITE_ZEROES; op++) {
		write_and_read(side, 0, 5, SZ_32K);
		request = kdb_good_request(side);
		request.opcode = op;
		request.offset = cpu_to_le64(SZ_512K);
		request.length = cpu_to_le32(SZ_32K);
		KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
		request.opcode = KBLK_OP_READ;
		KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
		/* A file's hole reads as zeroes. */
		KUNIT_EXPECT_FALSE(test, memchr_inv(side->buf->va + DATA_AT, 0,
						    SZ_32K));
	}
	kdb_expect_serving(test);
}

/* The device is told once of the data of a READ and the reply behind it. */
static void blk_read_is_told_once(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;

	tgt_load(test);
	side = kdb_connected_client(test);
	kd_count_doorbells(test, side->name);
	request = kdb_good_request(side);
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	/* The other one is of the request. */
	KUNIT_EXPECT_EQ(test, atomic_read(&kd_doorbells), 2);
	kdb_expect_serving(test);
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
		bad[i] = kdb_good_hello();
	bad[0].magic = 0;
	bad[1].credits = 0;
	bad[2].session = 0;
	bad[3].reply_size = cpu_to_le32(sizeof(struct kblk_reply));
	bad[4].version_min = cpu_to_le16(KBLK_VERSION_MAX + 1);
	bad[4].version_max = bad[4].version_min;
	bad[5].version_min = cpu_to_le16(2);
	bad[5].version_max = cpu_to_le16(1);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = kdb_client(test);
		kdb_say_hello(side, &bad[i], sizeof(bad[i]));
		welcome = kdb_expect_welcome(side,
					     DAT_CONNECTION_EVENT_PEER_REJECTED);
		KUNIT_EXPECT_EQ_MSG(test, le16_to_cpu(welcome->status),
				    status[i], "hello %d", i);
		kd_close(side);
	}
	side = kdb_client(test);
	kdb_say_hello(side, NULL, 0);
	kdb_expect_welcome(side, DAT_CONNECTION_EVENT_PEER_REJECTED);
	kdb_expect_serving(test);
}

/*
 * A connection of a later epoch ends the earlier one; one of an earlier epoch
 * is refused.
 */
static void blk_epochs(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	const struct kblk_welcome *welcome;
	struct kd_side *old, *side;
	u16 status;

	tgt_load(test);
	old = kdb_welcome_client(test, &hello);
	hello.epoch = cpu_to_le32(4);
	side = kdb_client(test);
	kdb_say_hello(side, &hello, sizeof(hello));
	welcome = kdb_expect_welcome(side, DAT_CONNECTION_EVENT_PEER_REJECTED);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->status), KBLK_HELLO_STALE);
	kd_close(side);

	hello.epoch = cpu_to_le32(6);
	side = kdb_client(test);
	kdb_say_hello(side, &hello, sizeof(hello));
	welcome = kdb_expect_welcome(side, DAT_CONNECTION_EVENT_PEER_REJECTED);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->status),
			KBLK_HELLO_DRAINING);
	kd_close(side);
	kdb_expect_end(old);
	do {
		side = kdb_client(test);
		status = kdb_connects_as(side, &hello);
		kd_close(side);
	} while (status == KBLK_HELLO_DRAINING);
	KUNIT_EXPECT_EQ(test, status, KBLK_HELLO_OK);
	kdb_expect_serving(test);
}

static void blk_attach_refused(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kblk_request request;
	struct kd_side *side;

	tgt_load(test);
	side = kdb_welcome_client(test, &hello);
	request = kdb_good_request(side);
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_ERR_NOT_ATTACHED);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vo", 1, 0),
			KBLK_ERR_NO_VOLUME);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vol", 2, 0),
			KBLK_ERR_NO_VOLUME);
	KUNIT_EXPECT_EQ(test, 0,
			shell("cd " TGT "/subsystems/vol;"
			      " echo 0 >allow_any_client;"
			      " ln -s " TGT "/clients/friend allowed_clients"));
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "stranger", "vol", 1, 0),
			KBLK_ERR_DENIED);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "", "vol", 1, 0),
			KBLK_ERR_DENIED);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "friend", "vol", 1, 0), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "friend", "vol", 1, 0),
			KBLK_ERR_INVALID);
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	/* The client is not allowed any more. */
	KUNIT_EXPECT_EQ(test, 0, shell("rm " TGT
				       "/subsystems/vol/allowed_clients/friend"));
	kdb_expect_end(side);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 1 >" TGT
				       "/subsystems/vol/allow_any_client"));
	kdb_expect_serving(test);
}

static void blk_disabled(struct kunit *test)
{
	struct kd_side *side;

	tgt_load(test);
	side = kdb_connected_client(test);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" TGT_NS "/enable"));
	kdb_expect_end(side);
	KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT_NS "; echo 1 >read_only;"
				       " echo 1 >enable"));
	kdb_expect_serving(test);
}

static void blk_silent(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kd_side *side;

	tgt_load(test);
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vol", 1, 1000),
			KBLK_OK);
	kdb_expect_end(side);
	kdb_expect_serving(test);
}

/* The first request of a client must be ATTACH. */
static void blk_attaches_not(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kblk_request request;
	struct kd_side *side;

	tgt_load_with(test, "echo 4000 >attach_ms");
	side = kdb_welcome_client(test, &hello);
	request = kdb_good_request(side);
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_ERR_NOT_ATTACHED);
	kdb_expect_end(side);
	kdb_expect_serving(test);
}

static void nullb_remove(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, 0, shell("rmdir " NULLB));
}

/* A disk whose requests complete in interrupts, as those of real disks do. */
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
	side = kdb_connected_client(test);
	request = kdb_good_request(side);
	for (i = 0; i < 10; i++) {
		request.flags ^= KBLK_INLINED;
		KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	}
}

/* Return whether the SRQ has this size and all its buffers. */
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

/* Only messages take buffers off the queue. */
static bool srq_is_14_again(void *data)
{
	struct kd_side *side = data;
	struct kblk_request request = kdb_good_request(side);
	int i;

	for (i = 0; i < 21; i++)
		KUNIT_EXPECT_EQ(side->test, kdb_ask(side, &request), KBLK_OK);
	return srq_is(14);
}

static void blk_srq_follows_connections(struct kunit *test)
{
	struct kd_side *side, *other;

	tgt_load_with(test, "echo 7 >srq_size; echo 7 >srq_per_conn");
	side = kdb_connected_client(test);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(srq_is_14, NULL, KD_TIMEOUT_MS));
	other = kdb_connected_client(test);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(srq_is_21, NULL, KD_TIMEOUT_MS));
	kd_close(other);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(srq_is_14_again, side,
					      KD_TIMEOUT_MS));
}

static bool is_of_target(unsigned long call_site)
{
	char caller[KSYM_SYMBOL_LEN];

	sprint_symbol(caller, call_site);
	return strstr(caller, "[kdapl_blk_tgt]");
}

/*
 * The disk may be of this host, or of one that has a disk of ours, and dirty pages wait for
 * its connection. So no memory is made by writing them until it is connected.
 */
static void blk_connects_without_writing(struct kunit *test)
{
	struct kdb_mallocs *mallocs;

	tgt_load_with(test, "echo 7 >srq_size; echo 7 >srq_per_conn");
	mallocs = kdb_count_mallocs(test, is_of_target);
	kdb_connected_client(test);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(srq_is_14, NULL, KD_TIMEOUT_MS));
	kunit_release_action(test, kdb_mallocs_end, mallocs);
	/* The connection, its host, its attachment, the volume's share and a chunk. */
	KUNIT_EXPECT_GE(test, atomic_read(&mallocs->all), 5);
	KUNIT_EXPECT_EQ(test, atomic_read(&mallocs->writing), 0);
}

static bool has_failed(void *unused)
{
	return !shell("! grep -qx 1000 " FAIL_PAGES "/times");
}

/* If there is no memory for the queue, there is later. */
static void blk_srq_follows_in_the_end(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;

	tgt_load_with(test, "echo 7 >srq_size; echo 7 >srq_per_conn");
	side = kdb_client(test);
	kdb_fail_pages(test, 4);
	hello = kdb_good_hello();
	kdb_say_hello(side, &hello, sizeof(hello));
	kdb_expect_welcome(side, DAT_CONNECTION_EVENT_ESTABLISHED);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(has_failed, NULL, KD_TIMEOUT_MS));
	kunit_release_action(test, kdb_pages_come, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(srq_is_14, NULL, KD_TIMEOUT_MS));
}

/* The low watermark fires with the first message. */
static void blk_low_watermark(struct kunit *test)
{
	tgt_load_with(test, "echo 7 >srq_size; echo 7 >srq_low");
	kdb_connected_client(test);
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(srq_is_14, NULL,
						  KD_TIMEOUT_MS),
			      "the reserve was not posted");
	KUNIT_EXPECT_EQ(test, 0,
			shell("grep -Eq 'SRQ low watermark events +1$' "
			      TGT_STATS));
}

static struct kunit_case blk_cases[] = {
	KUNIT_CASE_PARAM(blk_identify, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_read_write, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_read_is_told_once, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_hello_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_epochs, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_attach_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_disabled, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_silent, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_attaches_not, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_medium_interrupts, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_srq_follows_connections, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_srq_follows_in_the_end, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_low_watermark, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_connects_without_writing, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk", blk_cases, "the block device target");
