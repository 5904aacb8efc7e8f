// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: a volume is detached from a connection that others share,
 * while its medium keeps a write. The others go on, and when it is attached again
 * nothing overtakes that write.
 */
#include "blk_volumes.h"

/*
 * A volume is detached while its medium has a write. It is attached again only
 * when that is done, so that it does not overtake what is written then; the
 * others are served all the time.
 */
static void sharing_detach(struct kunit *test)
{
	struct kd_side *side, *another;
	struct kblk_hello hello;

	kdb_load_volumes(test, MANY_SLOTS);
	hello = kdb_good_hello();
	side = kdb_shared_client(test, &hello);
	hello.queue = cpu_to_le16(1);
	another = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(another, QUICK), KBLK_OK);
	kdb_write_for_ever(side);
	KUNIT_EXPECT_EQ(test, kdb_detach_volume(side, SLOW), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_write_page(side, SLOW, 0, 'x'),
			KBLK_ERR_NOT_ATTACHED);
	KUNIT_EXPECT_EQ(test, kdb_detach_volume(side, SLOW), KBLK_ERR_NOT_ATTACHED);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_ERR_DRAINING);
	/* The same through another connection of the link */
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(another, SLOW), KBLK_ERR_DRAINING);
	kdb_expect_quick(side);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_ERR_DRAINING);
	kdb_backing_hold(kdb_slow, false);
	kdb_take_replies(side, 1);
	KUNIT_EXPECT_EQ(test, kdb_last_status(side), KBLK_OK);
	KUNIT_EXPECT_NULL(test, memchr_inv(kdb_slow->data, 'a', 4096));
	kdb_expect_attached(side, SLOW);
	KUNIT_EXPECT_EQ(test, kdb_write_page(side, SLOW, 0, 'b'), KBLK_OK);
	KUNIT_EXPECT_NULL(test, memchr_inv(kdb_slow->data, 'b', 4096));
	kd_close(another);
	kd_close(side);
	kdb_expect_serving_alone(test);
}

/* Make a client with one connection, of which the slow volume's medium has a write. */
static struct kd_side *client_that_writes(struct kunit *test, struct kblk_hello *hello)
{
	struct kd_side *side;

	kdb_load_volumes(test, MANY_SLOTS);
	*hello = kdb_good_hello();
	side = kdb_shared_client(test, hello);
	kdb_write_for_ever(side);
	return side;
}

static bool is_enabled(void *unused)
{
	return !shell("echo 1 2>/dev/null >" VOLUME(2) "/enable");
}

/*
 * The administrator disables a volume while its medium has a write. The
 * connection and the other volume go on.
 */
static void sharing_disable(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;

	side = client_that_writes(test, &hello);
	KUNIT_EXPECT_NE(test, 0, shell("timeout -s KILL 3 sh -c 'echo 0 >"
				       VOLUME(2) "/enable'"));
	KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_READ, SLOW),
			KBLK_ERR_NOT_ATTACHED);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_ERR_NO_VOLUME);
	kdb_expect_quick(side);
	kdb_backing_hold(kdb_slow, false);
	kdb_take_replies(side, 1);
	KUNIT_EXPECT_EQ(test, kdb_last_status(side), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_enabled, NULL, KD_TIMEOUT_MS));
	kdb_expect_attached(side, SLOW);
	KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_READ, SLOW), KBLK_OK);
	KUNIT_EXPECT_NULL(test, memchr_inv(side->buf->va + DATA_AT, 'a', 4096));
	kdb_expect_quick(side);
	kd_close(side);
	kdb_expect_serving_alone(test);
}

/* @side can attach the volumes, the slow one when the medium is through with what it was given. */
static void expect_drains(struct kd_side *side)
{
	struct kunit *test = side->test;

	kdb_expect_attached(side, QUICK);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_ERR_DRAINING);
	kdb_expect_quick(side);
	kdb_backing_hold(kdb_slow, false);
	kdb_expect_attached(side, SLOW);
	KUNIT_EXPECT_NULL(test, memchr_inv(kdb_slow->data, 'a', 4096));
}

/*
 * A link is lost while the medium of a volume has a write. The other volume is
 * attached in the next epoch at once, this one when the write is done.
 */
static void sharing_epochs(struct kunit *test)
{
	struct kd_side *old, *side;
	struct kblk_hello hello;

	old = client_that_writes(test, &hello);
	hello.epoch = cpu_to_le32(6);
	side = kdb_welcome_client(test, &hello);
	kdb_expect_end(old);
	kdb_expect_attached(side, QUICK);
	kdb_expect_quick(side);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_ERR_DRAINING);
	/* And again, with nothing but what is old under way. */
	hello.epoch = cpu_to_le32(7);
	kd_close(old);
	old = side;
	side = kdb_welcome_client(test, &hello);
	kdb_expect_end(old);
	expect_drains(side);
	KUNIT_EXPECT_EQ(test, kdb_write_page(side, SLOW, 0, 'b'), KBLK_OK);
	KUNIT_EXPECT_NULL(test, memchr_inv(kdb_slow->data, 'b', 4096));
	kd_close(old);
	kd_close(side);
	kdb_expect_serving_alone(test);
}

/* A fence is for the volume that it names, and is up when its write is done. */
static void sharing_fence(struct kunit *test)
{
	struct kblk_hello hello[2];
	struct kd_side *old, *side;

	kdb_load_volumes(test, MANY_SLOTS);
	hello[0] = kdb_good_hello();
	hello[1] = kdb_good_hello();
	old = kdb_shared_client(test, &hello[0]);
	side = kdb_shared_client(test, &hello[1]);
	kdb_write_for_ever(old);
	KUNIT_EXPECT_EQ(test, kdb_fence(side, SLOW, &hello[0]), KBLK_ERR_DRAINING);
	KUNIT_EXPECT_EQ(test, kdb_fence(side, SLOW, &hello[0]), KBLK_ERR_DRAINING);
	KUNIT_EXPECT_EQ(test, kdb_write_page(old, SLOW, 0, 'x'),
			KBLK_ERR_NOT_ATTACHED);
	kdb_expect_quick(old);
	kdb_backing_hold(kdb_slow, false);
	kdb_take_replies(old, 1);
	KUNIT_EXPECT_EQ(test, kdb_last_status(old), KBLK_OK);
	kdb_expect_fenced(side, SLOW, &hello[0]);
	KUNIT_EXPECT_EQ(test, kdb_write_page(side, SLOW, 0, 'b'), KBLK_OK);
	KUNIT_EXPECT_NULL(test, memchr_inv(kdb_slow->data, 'b', 4096));
	kdb_expect_quick(old);
	kd_close(old);
	kd_close(side);
	kdb_expect_serving_alone(test);
}

/*
 * A client that may not use the subsystem any more is detached from all its
 * volumes, and attached to nothing it is ended in the end.
 */
static void sharing_banned(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;

	kdb_load_volumes(test, MANY_SLOTS "; echo 5000 >attach_ms");
	KUNIT_ASSERT_EQ(test, 0, shell("set -e; cd " TGT "/subsystems/vol;"
				       "echo 0 >allow_any_client; ln -s " TGT
				       "/clients/friend allowed_clients/friend"));
	hello = kdb_good_hello();
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "friend", "vol", SLOW, 0),
			KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "friend", "vol", QUICK, 0),
			KBLK_OK);
	kdb_write_for_ever(side);
	KUNIT_ASSERT_EQ(test, 0, shell("rm " TGT
				       "/subsystems/vol/allowed_clients/friend"));
	KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_READ, QUICK),
			KBLK_ERR_NOT_ATTACHED);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "friend", "vol", QUICK, 0),
			KBLK_ERR_DENIED);
	KUNIT_EXPECT_TRUE(test, kdb_is_connected(side));
	kdb_backing_hold(kdb_slow, false);
	kdb_take_replies(side, 1);
	kdb_expect_end(side);
	kd_close(side);
	KUNIT_ASSERT_EQ(test, 0, shell("echo 1 >" TGT
				       "/subsystems/vol/allow_any_client"));
	kdb_expect_serving_alone(test);
}

/*
 * The port is stopped while the medium of a volume has a write: nothing is left of
 * it when the write is done.
 */
static void sharing_port_stops(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;

	side = client_that_writes(test, &hello);
	KUNIT_EXPECT_EQ(test, 0, shell("rm " TGT "/ports/1/subsystems/vol"));
	kdb_expect_end(side);
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx stopping " TGT "/ports/1/state"));
	KUNIT_EXPECT_EQ(test, 0, shell("ln -s " TGT "/subsystems/vol " TGT
				       "/ports/1/subsystems/vol"));
	kd_close(side);
	hello.epoch = cpu_to_le32(6);
	side = kdb_welcome_client(test, &hello);
	expect_drains(side);
	kd_close(side);
	kdb_expect_serving_alone(test);
}

static struct kunit_case detach_cases[] = {
	KUNIT_CASE_PARAM(sharing_detach, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_disable, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_epochs, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_fence, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_banned, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_port_stops, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-sharing-detach", detach_cases,
	 "volumes that are detached from connections they share");
