// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: what one host can do to another. A host is an address.
 */
#include "blk_target.h"
#include "device.h"

#define MAX_CONNS	9
#define OF_A_HOST	7
#define SHUNNED		16	/* hosts that the target remembers */

/* Have @side connect as a disk. Return what the target says. */
static u16 ask_for_connection(struct kd_side *side, const struct kblk_hello *hello)
{
	const struct kblk_welcome *welcome;
	DAT_EVENT event;

	kdb_post_reply_buffer(side);
	kdb_say_hello(side, hello, sizeof(*hello));
	KUNIT_ASSERT_TRUE(side->test, kd_wait_event(side->conn_evd, &event,
						    KD_TIMEOUT_MS));
	welcome = event.event_data.connect_event_data.private_data;
	KUNIT_ASSERT_NOT_NULL(side->test, welcome);
	return le16_to_cpu(welcome->status);
}

/*
 * A host that wants all connections leaves some: the disks of another host get theirs,
 * as long as there are any.
 */
static void blk_one_host_wants_all(struct kunit *test)
{
	struct kblk_request request;
	struct kblk_hello hello;
	struct kd_side *side;
	u16 status;
	int i;

	tgt_load_with(test, "echo 9 >max_conns");
	for (i = 0; i <= OF_A_HOST; i++) {
		hello = kdb_good_hello();
		status = ask_for_connection(kdb_client(test), &hello);
		KUNIT_EXPECT_EQ_MSG(test, status, i < OF_A_HOST ? KBLK_HELLO_OK :
				    KBLK_HELLO_BUSY, "connection %d", i);
	}
	for (; i <= MAX_CONNS; i++) {
		hello = kdb_good_hello();
		side = kdb_client_elsewhere(test);
		KUNIT_ASSERT_EQ_MSG(test, ask_for_connection(side, &hello),
				    KBLK_HELLO_OK, "connection %d", i);
		KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vol", 1, 0),
				KBLK_OK);
		request = kdb_good_request(side);
		KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	}
	hello = kdb_good_hello();
	KUNIT_EXPECT_EQ(test, ask_for_connection(kdb_client_elsewhere(test), &hello),
			KBLK_HELLO_BUSY);
}

static bool have_ended(void *n)
{
	char command[96];

	snprintf(command, sizeof(command), "grep -Eq '^connections ended +%u$' "
		 TGT_STATS, *(unsigned int *)n);
	return !shell(command);
}

/* Send what is no request, and wait until @n connections have ended. */
static void break_protocol(struct kd_side *side, unsigned int n)
{
	struct kblk_request request = kdb_good_request(side);

	request.magic = 0;
	kdb_send_request(side, &request, sizeof(request));
	KUNIT_EXPECT_TRUE_MSG(side->test, kd_wait_until(have_ended, &n,
							KD_TIMEOUT_MS),
			      "connection %u", n);
}

/* One host that misbehaves a lot does not make the target forget another one. */
static void blk_other_host_stays_shunned(struct kunit *test)
{
	struct kd_side *side[SHUNNED], *other;
	struct kblk_hello hello;
	int i;

	tgt_load_with(test, "echo 600000 >penalty_ms");
	for (i = 0; i < SHUNNED; i++)
		side[i] = kdb_connected_client(test);
	other = kdb_client_elsewhere(test);
	hello = kdb_good_hello();
	KUNIT_ASSERT_EQ(test, ask_for_connection(other, &hello), KBLK_HELLO_OK);
	break_protocol(other, 1);
	for (i = 0; i < SHUNNED; i++)
		break_protocol(side[i], i + 2);
	hello = kdb_good_hello();
	KUNIT_EXPECT_EQ(test, ask_for_connection(kdb_client_elsewhere(test), &hello),
			KBLK_HELLO_SHUNNED);
}

/* A host for whose connection the adapter has no room is told so. */
static void blk_no_room_for_a_connection(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kd_side *side;

	tgt_load_with(test, "true");
	side = kdb_client(test);
	kd_refuse_second_qp(test, side->name);
	KUNIT_EXPECT_EQ(test, ask_for_connection(side, &hello), KBLK_HELLO_RESOURCES);
	hello = kdb_good_hello();
	KUNIT_EXPECT_EQ(test, ask_for_connection(kdb_client(test), &hello),
			KBLK_HELLO_OK);
}

static struct kunit_case host_cases[] = {
	KUNIT_CASE_PARAM(blk_no_room_for_a_connection, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_one_host_wants_all, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_other_host_stays_shunned, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-host", host_cases, "hosts of the block device target's clients");
