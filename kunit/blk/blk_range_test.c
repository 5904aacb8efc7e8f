// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: zeroes that nobody has to send, and volumes that grow.
 */
#include "blk_backing.h"
#include "blk_target.h"

static int use_backing(const char *path)
{
	char command[256];

	snprintf(command, sizeof(command), "set -e; cd " TGT_NS
		 "; echo 0 >enable; echo %s >path; echo 1 >enable", path);
	return shell(command);
}

static struct kd_side *client_with(struct kunit *test, u32 features)
{
	struct kd_side *side;

	kdb_hello_features = features;
	side = kdb_connected_client(test);
	kdb_hello_features = 0;
	return side;
}

static u32 max_zeroes(struct kd_side *side)
{
	return le32_to_cpu(kdb_ask_identify(side)->max_write_zeroes);
}

static u16 write_zeroes(struct kd_side *side, u8 flags, u32 length)
{
	struct kblk_request request = kdb_good_request(side);

	request.opcode = KBLK_OP_WRITE_ZEROES;
	request.flags = flags;
	request.length = cpu_to_le32(length);
	return kdb_ask(side, &request);
}

/* The medium does it, within its limit, and leaves no hole if none is wanted. */
static void blk_zeroes_of_the_medium(struct kunit *test)
{
	struct backing *backing = kdb_backing_make(test, 0);
	struct kblk_request request;
	struct kd_side *side;

	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, use_backing(BACKING_0));
	side = client_with(test, KBLK_FEATURE_NOUNMAP);
	KUNIT_EXPECT_EQ(test, max_zeroes(side), SZ_256K);
	memset(backing->data, 'a', SZ_512K);
	KUNIT_EXPECT_EQ(test, write_zeroes(side, 0, SZ_256K), KBLK_OK);
	KUNIT_EXPECT_FALSE(test, backing->zero_flags & REQ_NOUNMAP);
	KUNIT_EXPECT_EQ(test, atomic_read(&backing->zeroed),
			SZ_256K >> SECTOR_SHIFT);
	KUNIT_EXPECT_NULL(test, memchr_inv(backing->data, 0, SZ_256K));
	KUNIT_EXPECT_NULL(test, memchr_inv(backing->data + SZ_256K, 'a',
					   SZ_256K));
	KUNIT_EXPECT_EQ(test, write_zeroes(side, KBLK_NOUNMAP, SZ_4K), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, backing->zero_flags & REQ_NOUNMAP);
	KUNIT_EXPECT_EQ(test, write_zeroes(side, 0, SZ_256K + 512),
			KBLK_ERR_INVALID);
	kd_close(side);
	/* Who has not agreed on the flag breaks the format. */
	side = client_with(test, 0);
	KUNIT_EXPECT_EQ(test, write_zeroes(side, 0, SZ_4K), KBLK_OK);
	request = kdb_good_request(side);
	request.opcode = KBLK_OP_WRITE_ZEROES;
	request.flags = KBLK_NOUNMAP;
	kdb_send_request(side, &request, sizeof(request));
	kdb_expect_end(side);
}

/* The medium does not do it, so the target does not offer it, nor emulate it. */
static void blk_zeroes_are_not_emulated(struct kunit *test)
{
	struct backing *backing = kdb_backing_make(test, 1);
	struct kd_side *side;

	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, use_backing(BACKING_1));
	side = client_with(test, 0);
	KUNIT_EXPECT_EQ(test, max_zeroes(side), 0);
	memset(backing->data, 'a', SZ_4K);
	KUNIT_EXPECT_EQ(test, write_zeroes(side, 0, SZ_4K),
			KBLK_ERR_UNSUPPORTED);
	KUNIT_EXPECT_NULL(test, memchr_inv(backing->data, 'a', SZ_4K));
	kd_close(side);
}

/* Every reply tells the size to those who want to know it. */
static void blk_replies_tell_the_size(struct kunit *test)
{
	struct kblk_request request;
	struct kblk_reply *reply;
	struct kd_side *side;
	int i;

	tgt_load(test);
	for (i = 0; i < 2; i++) {
		side = client_with(test, i ? KBLK_FEATURE_SIZE : 0);
		reply = side->buf->va + REPLY_AT;
		request = kdb_good_request(side);
		KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
		KUNIT_EXPECT_EQ(test, le64_to_cpu(reply->size),
				i ? FILE_SIZE : 0);
		KUNIT_ASSERT_EQ(test, 0, shell("truncate -s 2M " TGT_FILE));
		request.opcode = KBLK_OP_KEEPALIVE;
		request.length = 0;
		KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
		KUNIT_EXPECT_EQ(test, le64_to_cpu(reply->size),
				i ? SZ_2M : 0);
		KUNIT_ASSERT_EQ(test, 0, shell("truncate -s 1M " TGT_FILE));
		kd_close(side);
	}
	kdb_expect_serving(test);
}

/* A medium that takes no writes is no volume to write to. */
static void blk_read_only_backing(struct kunit *test)
{
	struct backing *backing = kdb_backing_make(test, 0);

	tgt_load(test);
	set_disk_ro(backing->disk, true);
	KUNIT_EXPECT_NE_MSG(test, use_backing(BACKING_0), 0, "it is offered for writing");
	KUNIT_EXPECT_EQ(test, shell("grep -qx 0 " TGT_NS "/enable"), 0);
	KUNIT_EXPECT_EQ(test, shell("set -e; cd " TGT_NS "; echo 0 >enable; echo 1 >read_only;"
				    " echo 1 >enable"), 0);
	kd_close(client_with(test, 0));
}

static struct kunit_case range_cases[] = {
	KUNIT_CASE_PARAM(blk_zeroes_of_the_medium, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_zeroes_are_not_emulated, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_replies_tell_the_size, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_read_only_backing, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-range", range_cases, "zeroes and sizes of the block device target");
