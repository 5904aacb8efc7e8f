// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko: how many connections a disk has, how much memory, and how many
 * credits.
 */
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "blk_memory.h"
#include "blk_serve.h"

static bool ini_stats_say(void *what)
{
	char command[160];

	snprintf(command, sizeof(command), "grep -Eqx '%s' " INI_DISK "/stats",
		 (const char *)what);
	return !shell(command);
}

static void expect_stats(struct kunit *test, char *what)
{
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(ini_stats_say, what,
						  KD_TIMEOUT_MS),
			      "not \"%s\"", what);
}

static void expect_read(struct kd_side *side)
{
	KUNIT_EXPECT_EQ(side->test, kdb_serve_command(side, READ_ONE, KBLK_OP_READ),
			1);
	KUNIT_EXPECT_EQ(side->test, ini_status, 0);
}

/* The disk makes its second connection, and attaches with it. */
static struct kd_side *expect_second(struct kunit *test)
{
	struct kd_side *second = kdb_welcome_one(test, false, NULL);

	KUNIT_EXPECT_EQ(test, le16_to_cpu(ini_hello.queue), 1);
	kdb_attach(second);
	expect_stats(test, "queues +2 of 2");
	return second;
}

/*
 * The target takes one connection of two. The disk works with it, asks again,
 * and uses another one that it gets later. When it comes back after a loss, the
 * first connection is all that it needs.
 */
static void ini_lives_with_fewer(struct kunit *test)
{
	struct kd_side *side, *second;

	ini_attrs.read_queues = "1";
	ini_attrs.give_up_ms = "600000";
	side = kdb_serve_disk(test, NULL, NULL);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(ini_hello.queue), 0);
	expect_stats(test, "queues +1 of 2");
	expect_read(side);
	second = expect_second(test);
	/* This one is for reads only. */
	expect_read(second);
	kd_close(second);
	kd_close(side);
	side = kdb_serve_again(test, NULL);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(ini_hello.queue), 0);
	expect_stats(test, "queues +1 of 2");
	expect_read(side);
	/* A connection that is not used yet takes nothing with it. */
	second = kdb_welcome_one(test, false, NULL);
	kd_close(second);
	expect_read(side);
	KUNIT_EXPECT_TRUE(test, ini_stats_say("connections lost +1"));
	kdb_expect_removable(test);
}

/*
 * The target takes the second connection, and has no room for it when it is to attach. The
 * disk ends it, works with the first one, and asks again later.
 */
static void ini_second_may_not_attach(struct kunit *test)
{
	const struct kblk_request *request;
	struct kd_side *side, *second;
	struct kblk_reply reply;

	ini_attrs.read_queues = "1";
	side = kdb_serve_disk(test, NULL, NULL);
	second = kdb_welcome_one(test, false, NULL);
	request = kdb_expect_request(second, 0, KBLK_OP_ATTACH);
	reply = kdb_good_reply(request, 0);
	reply.status = cpu_to_le16(KBLK_ERR_BUSY);
	kdb_answer(second, &reply, NULL, sizeof(reply));
	KUNIT_EXPECT_TRUE(test, kd_wait_state(second->ep, DAT_EP_STATE_DISCONNECTED));
	expect_stats(test, "queues +1 of 2");
	expect_read(side);
	second = expect_second(test);
	expect_read(second);
	expect_stats(test, "connections lost +0");
	kdb_expect_removable(test);
}

/* The target tells how many connections a disk may have. */
static void ini_asks_for_no_more(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_good_welcome();
	struct kd_side *side;

	ini_attrs.read_queues = "1";
	welcome.features = cpu_to_le32(KBLK_FEATURE_QUEUES);
	welcome.queues = cpu_to_le16(1);
	side = kdb_serve_disk(test, &welcome, NULL);
	expect_stats(test, "queues +1 of 1");
	expect_read(side);
	kdb_expect_removable(test);
}

/* With the default depth a connection begins with less than 1 MiB. */
static void ini_memory_of_a_connection(struct kunit *test)
{
	ini_attrs.depth = "127";
	kdb_serve_disk(test, NULL, NULL);
	expect_stats(test, "bytes of memory +[0-9]{1,6}");
	kdb_expect_removable(test);
}

/*
 * Memory is in small pieces when the disk comes back, and larger ones could only
 * be made by writing to it.
 */
static void ini_comes_back_in_pieces(struct kunit *test)
{
	struct kd_side *side;

	ini_attrs.read_queues = "1";
	ini_attrs.depth = "127";
	ini_attrs.give_up_ms = "600000";
	side = kdb_serve_disk(test, NULL, NULL);
	kd_close(side);
	side = kdb_new_target(test);
	kdb_fail_pages(test, 3);
	kdb_welcome_at(side, false, NULL);
	kdb_attach(side);
	kdb_identify_as(side, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(ini_is_connected, NULL,
					      KD_TIMEOUT_MS));
	kunit_release_action(test, kdb_pages_come, NULL);
	expect_read(side);
	kdb_expect_removable(test);
}

/* Take the next request and post its receive again; it is not answered. */
static struct kblk_request take_request(struct kd_side *side)
{
	const struct kblk_request *at = kdb_next_request(side);
	struct kblk_request request = *at;
	size_t off = (const void *)at - side->buf->va;

	kd_recv(side, off, REQUEST_SIZE, (off - REQUEST_AT) / REQUEST_SIZE);
	return request;
}

/* A disk with one credit, and requests that want more, asks for them. */
static void ini_asks_for_credits(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_good_welcome();
	struct kblk_request request;
	struct kd_side *side;
	int i;

	welcome.credits = cpu_to_le16(1);
	welcome.features = cpu_to_le32(KBLK_FEATURE_CREDITS);
	side = kdb_serve_disk(test, &welcome, NULL);
	kdb_start_command(READ_THREE);
	for (i = 0; i < 3; i++) {
		request = take_request(side);
		KUNIT_EXPECT_EQ(test, request.opcode, KBLK_OP_READ);
		if (i < 2)
			KUNIT_EXPECT_EQ_MSG(test, request.flags & KBLK_WANTS,
					    i ? KBLK_WANTS : 0, "request %d", i);
		kdb_serve_one(side, &request);
	}
	kdb_wait_command();
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	kdb_expect_removable(test);
}

/* An idle disk keeps two credits, and gives the others back. */
static void ini_gives_credits_back(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_good_welcome();
	struct kblk_request request;
	unsigned int returned = 0;
	struct kd_side *side;
	int i;

	ini_attrs.keepalive_ms = "3000";
	welcome.features = cpu_to_le32(KBLK_FEATURE_CREDITS);
	side = kdb_serve_disk(test, &welcome, NULL);
	for (i = 0; i < 20 && !returned; i++) {
		request = take_request(side);
		KUNIT_EXPECT_EQ(test, request.opcode, KBLK_OP_KEEPALIVE);
		returned = le16_to_cpu(request.returned);
		kdb_serve_one(side, &request);
	}
	/* The keep-alive itself has taken one. */
	KUNIT_EXPECT_EQ(test, returned, INI_DEPTH - 3);
	expect_read(side);
	kdb_expect_removable(test);
}

/*
 * A second connection is made, and the target takes its time. The first one is kept
 * alive meanwhile.
 */
static void ini_keeps_alive_while_it_connects(struct kunit *test)
{
	struct kd_side *side, *second;
	struct kblk_request request;
	int i;

	ini_attrs.read_queues = "1";
	ini_attrs.keepalive_ms = "3000";
	ini_attrs.connect_timeout_ms = "60000";
	side = kdb_serve_disk(test, NULL, NULL);
	second = kdb_welcome_one(test, false, NULL);
	kdb_expect_request(second, 0, KBLK_OP_ATTACH);
	for (i = 0; i < 2; i++) {
		request = take_request(side);
		KUNIT_EXPECT_EQ(test, request.opcode, KBLK_OP_KEEPALIVE);
		kdb_serve_one(side, &request);
	}
	expect_stats(test, "queues +1 of 2");
	kd_close(second);
	expect_read(side);
	kdb_expect_removable(test);
}

/*
 * A target takes all credits away. Requests could only wait, for ever, as none of
 * them was sent.
 */
static void ini_gets_no_credits(struct kunit *test)
{
	struct kblk_request request;
	struct kblk_reply reply;
	struct kd_side *side;
	int i;

	ini_attrs.keepalive_ms = "1000";
	side = kdb_serve_disk(test, NULL, NULL);
	for (i = 0; i < INI_DEPTH; i++) {
		request = take_request(side);
		KUNIT_EXPECT_EQ(test, request.opcode, KBLK_OP_KEEPALIVE);
		reply = kdb_good_reply(&request, 0);
		reply.credits = 0;
		kdb_answer(side, &reply, NULL, sizeof(reply));
		kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	}
	KUNIT_EXPECT_TRUE_MSG(test,
			      kd_wait_state(side->ep, DAT_EP_STATE_DISCONNECTED),
			      "the disk waits for credits");
	kdb_expect_removable(test);
}

/* The task that connects the disk, which is a worker's, or NULL; and whether its calls count. */
static struct task_struct *connects;
static bool counting;

/* Return whether this is the first call of whoever connects a disk. */
static bool begins_to_connect(unsigned long call_site)
{
	char name[KSYM_SYMBOL_LEN];

	snprintf(name, sizeof(name), "%ps", (void *)call_site);
	return str_has_prefix(name, "kbi_link_make") || str_has_prefix(name, "kbi_link_join");
}

static bool is_of_connecting(unsigned long call_site)
{
	if (!READ_ONCE(connects) && begins_to_connect(call_site))
		WRITE_ONCE(connects, current);
	return current == READ_ONCE(connects) && READ_ONCE(counting);
}

/*
 * The disk may be all that another path of its volume waits for, from which dirty
 * pages cannot be written before. So no memory is made by writing them, from when
 * the target has accepted the first connection until it is asked for the second.
 */
static void ini_connects_without_writing(struct kunit *test)
{
	struct kdb_mallocs *mallocs;
	struct kd_side *side, *second;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;

	ini_attrs.read_queues = "1";
	ini_attrs.timeout_ms = PATIENT;
	connects = NULL;
	counting = false;
	mallocs = kdb_count_mallocs(test, is_of_connecting);
	side = kdb_welcome_one(test, true, NULL);
	second = kdb_new_target(test);
	psp = kd_psp(second, ini_port, DAT_PSP_CONSUMER_FLAG);
	WRITE_ONCE(counting, true);
	kdb_attach(side);
	kdb_identify_as(side, NULL);
	cr = kd_expect_cr(second);
	kunit_release_action(test, kdb_mallocs_end, mallocs);
	KUNIT_EXPECT_GT(test, atomic_read(&mallocs->all), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&mallocs->writing), 0);
	KD_ASSERT_OK(test, dat_psp_free(psp));
	KD_ASSERT_OK(test, dat_cr_reject(cr, 0, NULL));
	kdb_serve(side, 0);
	KUNIT_EXPECT_EQ(test, ini_error, 0);
	kdb_expect_removable(test);
}

static struct kunit_case queues_cases[] = {
	KUNIT_CASE_PARAM(ini_lives_with_fewer, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_second_may_not_attach, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_asks_for_no_more, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_memory_of_a_connection, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_comes_back_in_pieces, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_asks_for_credits, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_gives_credits_back, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_keeps_alive_while_it_connects, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_gets_no_credits, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_connects_without_writing, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-queues", queues_cases, "connections of the block device initiator", KDB_SERVE);
