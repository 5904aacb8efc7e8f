// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: connections that have ended while a medium keeps their requests.
 * They are there for as long as it does, and take nothing from clients of other volumes.
 */
#include "blk_volumes.h"

#define MANY_BUFFERS	"echo 32 >buffers; echo 42 >srq_size; echo 42 >srq_max"
#define CROWD		5	/* that have all credits but two */
#define OF_A_HOST	14	/* of 16 */
#define FEW_QUEUES	MANY_SLOTS "; echo 32 >buffers; echo 32 >max_conns; echo 4 >max_queues"
#define QUEUES		4	/* max_queues */
#define MANY		8	/* connections that may hang: twice max_queues */
/* Connections that do not attach stay for as long as a case lasts. */
#define FEW_BUFFERS	"echo 32 >buffers; echo 14 >srq_size; echo 14 >srq_max; "	\
			"echo 3600000 >attach_ms"
#define FEW		14
#define WRITERS		4
#define SHARERS		10	/* with three credits of their own each, of 32 for all */

/* How many requests the media are to keep */
static int expected;

static bool are_held(void *unused)
{
	return atomic_read(&kdb_slow->nheld) + atomic_read(&kdb_quick->nheld) == expected;
}

/* Have @side send @n reads, of which a medium keeps @kept. */
static void read_for_ever(struct kd_side *side, u32 nsid, int n, int kept)
{
	struct kblk_request request = kdb_request_of(side, KBLK_OP_READ, nsid);

	expected += kept;
	while (n--)
		kdb_send_later(side, &request);
	KUNIT_ASSERT_TRUE(side->test, kd_wait_until(are_held, NULL, KD_TIMEOUT_MS));
}

static void load(struct kunit *test, const char *more)
{
	kdb_load_volumes(test, more);
	kdb_backing_hold(kdb_slow, true);
	expected = 0;
}

/* ---- Credits -------------------------------------------------------------- */

/* Return a client of one volume. */
static struct kd_side *lone_client(struct kunit *test, u32 nsid)
{
	struct kblk_hello hello;
	struct kd_side *side;

	kdb_hello_features = KBLK_FEATURE_CREDITS;
	kdb_host = uuid_null;
	hello = kdb_good_hello();
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, nsid), KBLK_OK);
	return side;
}

static bool has_all_credits(void *data)
{
	struct kd_side *side = data;
	struct kblk_request request = kdb_request_of(side, KBLK_OP_KEEPALIVE, 0);

	request.flags = KBLK_WANTS;
	KUNIT_EXPECT_EQ(side->test, kdb_ask(side, &request), KBLK_OK);
	return kdb_credits == TGT_CREDITS;
}

static void expect_all_credits(struct kd_side *side)
{
	KUNIT_ASSERT_TRUE_MSG(side->test, kd_wait_until(has_all_credits, side,
							KD_TIMEOUT_MS),
			      "there are no more than %u", kdb_credits);
}

/*
 * Clients have all credits, and requests outstanding for all of them, when they go.
 * Their receive buffers come back, and another client gets as many credits as it wants.
 */
static void hanging_credits(struct kunit *test)
{
	struct kd_side *side[CROWD], *other;
	int i;

	load(test, MANY_BUFFERS);
	for (i = 0; i < CROWD; i++) {
		side[i] = lone_client(test, SLOW);
		expect_all_credits(side[i]);
	}
	/* A connection has two slots here. */
	for (i = 0; i < CROWD; i++)
		read_for_ever(side[i], 0, TGT_CREDITS, 2);
	for (i = 0; i < CROWD; i++)
		kd_close(side[i]);
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(tgt_has_all_buffers, NULL,
						  KD_TIMEOUT_MS),
			      "receive buffers are kept");
	other = lone_client(test, QUICK);
	expect_all_credits(other);
	KUNIT_EXPECT_TRUE(test, are_held(NULL));
	kd_close(other);
}

/*
 * A client sends more than its credits and leaves. Two requests have slots, and the others do not
 * pass the hard high watermark: what shows it are the messages that are dropped. The target does
 * not wait for the medium with that.
 */
static void hanging_flood(struct kunit *test)
{
	struct kd_side *side;

	load(test, "true");
	side = lone_client(test, SLOW);
	expect_all_credits(side);
	read_for_ever(side, 0, 2, 2);
	read_for_ever(side, 0, TGT_CREDITS, 0);
	kd_close(side);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_has_cut_off, NULL, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, are_held(NULL));
}

/* Return whether another connection can be made, and be attached to two volumes. */
static bool is_shared(void *test)
{
	struct kd_side *side;
	bool shared;

	shared = kdb_one_more(test, &side) == KBLK_HELLO_OK &&
		 kdb_attach_volume(side, QUICK) == KBLK_OK &&
		 kdb_attach_volume(side, 1) == KBLK_OK;
	kd_close(side);
	return shared;
}

/*
 * The same for credits that connections and their volumes have of their own, if both
 * volumes stand still.
 */
static void hanging_volumes(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;
	int i;

	load(test, MANY_SLOTS "; " MANY_BUFFERS);
	kdb_backing_hold(kdb_quick, true);
	for (i = 0; i < SHARERS; i++) {
		hello = kdb_good_hello();
		side = kdb_shared_client(test, &hello);
		read_for_ever(side, SLOW, 1, 1);
		read_for_ever(side, QUICK, 1, 1);
		kd_close(side);
	}
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_shared, test, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, are_held(NULL));
}

/* ---- Connections ---------------------------------------------------------- */

/* Have @side connect as a disk that is not known yet, and attach to the slow volume. */
static u16 attach_slow(struct kd_side *side)
{
	struct kblk_hello hello = kdb_good_hello();

	kdb_post_reply_buffer(side);
	kdb_say_hello(side, &hello, sizeof(hello));
	kdb_expect_welcome(side, DAT_CONNECTION_EVENT_ESTABLISHED);
	return kdb_attach_volume(side, SLOW);
}

static bool are_kept(void *n)
{
	char command[96];

	snprintf(command, sizeof(command),
		 "grep -Eq '^connections kept by a medium +%d$' " TGT_STATS, *(int *)n);
	return !shell(command);
}

/*
 * Writes keep their receive buffers when their clients go. Whoever connects then, as often
 * as the target permits, has no credits for these.
 */
static void hanging_writes(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	int n = WRITERS;

	load(test, MANY_SLOTS "; " FEW_BUFFERS);
	while (expected < WRITERS) {
		side = lone_client(test, SLOW);
		request = kdb_write_request(side, 0, 0, 'a');
		kdb_send_later(side, &request);
		expected++;
		KUNIT_ASSERT_TRUE(test, kd_wait_until(are_held, NULL, KD_TIMEOUT_MS));
		kd_close(side);
	}
	KUNIT_ASSERT_TRUE(test, kd_wait_until(are_kept, &n, KD_TIMEOUT_MS));
	for (; n <= FEW && kdb_one_more(test, &side) == KBLK_HELLO_OK; n++)
		;
	for (; n <= FEW && kdb_connects(kdb_client_elsewhere(test)) == KBLK_HELLO_OK; n++)
		;
	KUNIT_EXPECT_EQ(test, n, FEW);
	KUNIT_EXPECT_TRUE(test, are_held(NULL));
}

/* @side connects and goes with a read of the slow volume, as the last of @n. */
static void hang(struct kd_side *side, int n)
{
	KUNIT_EXPECT_EQ_MSG(side->test, attach_slow(side), KBLK_OK, "connection %d", n);
	read_for_ever(side, SLOW, 1, 1);
	kd_close(side);
	KUNIT_ASSERT_TRUE_MSG(side->test, kd_wait_until(are_kept, &n, KD_TIMEOUT_MS),
			      "%d are not counted", n);
}

static void expect_refusal(struct kd_side *side)
{
	KUNIT_EXPECT_EQ(side->test, attach_slow(side), KBLK_ERR_DRAINING);
	kd_close(side);
}

/*
 * A host connects again and again, for a request that the medium keeps. It gets as far as
 * seven eighths of the limit. Another host is let in beyond it, until it has more than a disk
 * may have. Neither is kept from other volumes.
 */
static void hanging_again(struct kunit *test)
{
	struct kd_side *side;
	int i;

	load(test, FEW_QUEUES);
	for (i = 1; i < MANY; i++)
		hang(kdb_client(test), i);
	expect_refusal(kdb_client(test));
	for (; i <= MANY + QUEUES; i++)
		hang(kdb_client_elsewhere(test), i);
	expect_refusal(kdb_client_elsewhere(test));
	KUNIT_ASSERT_EQ(test, kdb_one_more(test, &side), KBLK_HELLO_OK);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, QUICK), KBLK_OK);
	kdb_expect_quick(side);
	kdb_backing_hold(kdb_slow, false);
	kdb_expect_attached(side, SLOW);
	kd_close(side);
	kdb_expect_serving_alone(test);
}

/*
 * Connections do not count as soon as they end, with requests that may be done soon: as
 * many as may hang end at once, and all connect again. On a machine that takes a second
 * for that nothing is learnt.
 */
static void hanging_briefly(struct kunit *test)
{
	struct kd_side *side[MANY];
	unsigned long start;
	u16 status;
	int i;

	load(test, FEW_QUEUES);
	for (i = 0; i < MANY; i++) {
		side[i] = kdb_client(test);
		KUNIT_EXPECT_EQ(test, attach_slow(side[i]), KBLK_OK);
		read_for_ever(side[i], SLOW, 1, 1);
	}
	start = jiffies;
	for (i = 0; i < MANY; i++)
		kd_close(side[i]);
	for (i = 0; i < MANY; i++) {
		status = attach_slow(kdb_client(test));
		if (time_after_eq(jiffies, start + HZ))
			break;
		KUNIT_EXPECT_EQ_MSG(test, status, KBLK_OK, "connection %d", i);
	}
	kunit_info(test, "%d of %d connected again in time\n", i, MANY);
}

static bool all_have_ended(void *unused)
{
	return !shell("grep -Eq '^connected +0$' " TGT_STATS);
}

/*
 * All connections of disks that share them are lost while the medium of one volume
 * stands still. All disks connect again, and those of the other volume go on.
 */
static void hanging_links(struct kunit *test)
{
	struct kblk_hello hello[OF_A_HOST];
	struct kd_side *side[OF_A_HOST];
	int i;

	load(test, MANY_SLOTS "; echo 32 >buffers; echo 16 >max_conns");
	for (i = 0; i < OF_A_HOST; i++) {
		hello[i] = kdb_good_hello();
		side[i] = kdb_shared_client(test, &hello[i]);
		read_for_ever(side[i], SLOW, 1, 1);
	}
	for (i = 0; i < OF_A_HOST; i++) {
		kd_close(side[i]);
		le32_add_cpu(&hello[i].epoch, 1);
		side[i] = kdb_welcome_client(test, &hello[i]);
		kdb_expect_attached(side[i], QUICK);
		KUNIT_EXPECT_EQ(test, kdb_attach_volume(side[i], SLOW),
				KBLK_ERR_DRAINING);
	}
	kdb_expect_quick(side[0]);
	KUNIT_EXPECT_TRUE(test, are_held(NULL));
	kdb_backing_hold(kdb_slow, false);
	for (i = 0; i < OF_A_HOST; i++) {
		kdb_expect_attached(side[i], SLOW);
		kd_close(side[i]);
	}
	/* One host may not have all that max_conns allows. */
	KUNIT_ASSERT_TRUE(test, kd_wait_until(all_have_ended, NULL, KD_TIMEOUT_MS));
	kdb_expect_serving_alone(test);
}

static struct kunit_case hang_cases[] = {
	KUNIT_CASE_PARAM(hanging_credits, kd_gen_ia),
	KUNIT_CASE_PARAM(hanging_flood, kd_gen_ia),
	KUNIT_CASE_PARAM(hanging_volumes, kd_gen_ia),
	KUNIT_CASE_PARAM(hanging_writes, kd_gen_ia),
	KUNIT_CASE_PARAM(hanging_again, kd_gen_ia),
	KUNIT_CASE_PARAM(hanging_briefly, kd_gen_ia),
	KUNIT_CASE_PARAM(hanging_links, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-hang", hang_cases,
	 "connections that have ended, with requests that a medium keeps");
