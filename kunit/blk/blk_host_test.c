// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: what one host can do to another. A host is an address, that of its
 * packets, whatever its clients say.
 */
#include "blk_volumes.h"
#include "device.h"
#include "liar.h"

#define MAX_CONNS	9
#define OF_A_HOST	7
#define SHUNNED		16	/* hosts that the target remembers */
#define BUFFERS		42
#define FEW_CREDITS	6	/* an eighth of BUFFERS */

/* Have @side, the @n-th one, connect as a disk that is not known, and attach to a volume. */
static void connect_and_attach(struct kd_side *side, int n)
{
	KUNIT_ASSERT_EQ_MSG(side->test, kdb_connects(side), KBLK_HELLO_OK,
			    "connection %d", n);
	KUNIT_EXPECT_EQ(side->test, kdb_attach_as(side, "somebody", "vol", 1, 0), KBLK_OK);
}

/*
 * A host that wants all connections leaves some: the disks of another host get theirs,
 * as long as there are any.
 */
static void blk_one_host_wants_all(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	int i;

	tgt_load_with(test, "echo 9 >max_conns");
	for (i = 0; i < OF_A_HOST; i++)
		connect_and_attach(kdb_client(test), i);
	KUNIT_EXPECT_EQ(test, kdb_connects(kdb_client(test)), KBLK_HELLO_BUSY);
	for (; i < MAX_CONNS; i++) {
		side = kdb_client_elsewhere(test);
		connect_and_attach(side, i);
		request = kdb_good_request(side);
		KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	}
	KUNIT_EXPECT_EQ(test, kdb_connects(kdb_client_elsewhere(test)), KBLK_HELLO_BUSY);
}

/*
 * Connections that do not attach are all there may be. Others can connect nevertheless,
 * and the oldest of the former makes room. Of those that have attached none does.
 */
static void blk_oldest_unattached_makes_room(struct kunit *test)
{
	struct kd_side *idle[MAX_CONNS], *side;
	int i;

	tgt_load_with(test, "echo 9 >max_conns; echo 3600000 >attach_ms");
	side = kdb_client_elsewhere(test);
	connect_and_attach(side, 0);
	for (i = 1; i < MAX_CONNS; i++) {
		idle[i] = i <= OF_A_HOST ? kdb_client(test) : kdb_client_elsewhere(test);
		KUNIT_ASSERT_EQ_MSG(test, kdb_connects(idle[i]), KBLK_HELLO_OK,
				    "connection %d", i);
	}
	for (i = 1; i <= 3; i++) {
		connect_and_attach(kdb_client_elsewhere(test), MAX_CONNS + i);
		kdb_expect_end(idle[i]);
	}
	for (; i < MAX_CONNS; i++)
		KUNIT_EXPECT_EQ(test, (int)kd_state(idle[i]), (int)DAT_EP_STATE_CONNECTED);
	KUNIT_EXPECT_EQ(test, (int)kd_state(side), (int)DAT_EP_STATE_CONNECTED);
}

/*
 * Connections that do not attach have all the buffers that there may be. A client that tries
 * again, as disks do, finds those of one of them.
 */
static void blk_unattached_leave_buffers(struct kunit *test)
{
	struct kd_side *side;
	u16 status;
	int i, n = 0;

	tgt_load_with(test, "echo 3600000 >attach_ms; echo 14 >srq_size; echo 14 >srq_max");
	do {
		side = n % 2 ? kdb_client_elsewhere(test) : kdb_client(test);
		status = kdb_connects(side);
	} while (status == KBLK_HELLO_OK && ++n < 16);
	KUNIT_EXPECT_EQ(test, status, KBLK_HELLO_RESOURCES);
	for (i = 0; i < 8 && status != KBLK_HELLO_OK; i++) {
		side = kdb_client_elsewhere(test);
		status = kdb_connects(side);
	}
	KUNIT_ASSERT_EQ(test, status, KBLK_HELLO_OK);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vol", 1, 0), KBLK_OK);
}

/*
 * Connections that do not attach are most that there may be, and a disk gets a further one
 * nevertheless.
 */
static void blk_unattached_leave_queues(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kd_side *side;
	int i;

	tgt_load_with(test, "echo 9 >max_conns; echo 3600000 >attach_ms");
	side = kdb_client_elsewhere(test);
	KUNIT_ASSERT_EQ(test, kdb_connects_as(side, &hello), KBLK_HELLO_OK);
	KUNIT_ASSERT_EQ(test, kdb_attach_as(side, "somebody", "vol", 1, 0), KBLK_OK);
	for (i = 1; i < MAX_CONNS; i++)
		KUNIT_ASSERT_EQ_MSG(test, kdb_connects(i <= OF_A_HOST ? kdb_client(test) :
						       kdb_client_elsewhere(test)),
				    KBLK_HELLO_OK, "connection %d", i);
	side = kdb_client_elsewhere(test);
	KUNIT_ASSERT_EQ(test, kdb_connects_as(side, &hello), KBLK_HELLO_OK);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vol", 1, 0), KBLK_OK);
}

/*
 * A port has room for one connection. A client of the same host that asks for it as well
 * does not end the first one, which is about to attach. A slow machine takes too long for
 * that now and then.
 */
static void blk_attaching_is_spared(struct kunit *test)
{
	struct kd_side *side, *next;
	bool spared = false;
	int i;

	tgt_load_with(test, "echo 9 >max_conns; echo 3600000 >attach_ms");
	for (i = 0; i < MAX_CONNS - 1; i++)
		connect_and_attach(i ? kdb_client_elsewhere(test) : kdb_client(test), i);
	side = kdb_client(test);
	KUNIT_ASSERT_EQ(test, kdb_connects(side), KBLK_HELLO_OK);
	for (i = 0; i < 20 && !spared; i++) {
		next = kdb_client(test);
		spared = kdb_connects(next) == KBLK_HELLO_BUSY;
		if (!spared)
			side = next;
	}
	KUNIT_ASSERT_TRUE(test, spared);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vol", 1, 0), KBLK_OK);
}

static bool attaches(void *side)
{
	return kdb_attach_as(side, "somebody", "vol", 1, 0) == KBLK_OK;
}

/*
 * A disk asks for all connections before it attaches with any. The last quarter is for disks
 * without any nevertheless: further ones do not attach, until another one has ended.
 */
static void blk_disk_leaves_the_last_quarter(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kd_side *side[MAX_CONNS];
	int i;

	tgt_load_with(test, "echo 9 >max_conns; echo 3600000 >attach_ms");
	for (i = 0; i < MAX_CONNS; i++) {
		side[i] = i < 2 ? kdb_client_elsewhere(test) : kdb_client(test);
		KUNIT_ASSERT_EQ_MSG(test, kdb_connects_as(side[i], &hello), KBLK_HELLO_OK,
				    "connection %d", i);
	}
	for (i = 0; i < MAX_CONNS; i++)
		KUNIT_EXPECT_EQ_MSG(test, kdb_attach_as(side[i], "somebody", "vol", 1, 0),
				    i < 7 ? KBLK_OK : KBLK_ERR_BUSY, "connection %d", i);
	connect_and_attach(kdb_client_elsewhere(test), MAX_CONNS);
	kdb_expect_end(side[7]);
	kd_close(side[0]);
	KUNIT_EXPECT_FALSE(test, attaches(side[8]));
	kd_close(side[1]);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(attaches, side[8], KD_TIMEOUT_MS));
}

/* ---- Clients that lie ------------------------------------------------------ */

/*
 * Return the @n-th address of another host on the network of the device. rdma_cm takes no
 * request from an address that is routed elsewhere.
 */
static __be32 neighbour(struct kunit *test, int n)
{
	kd_skip_own(test, KD_NEEDS_BED);
	return kd_bed_v4(*(const char * const *)test->param_value, 100 + n).sin_addr.s_addr;
}

/* A host that names another address with each connection has no more of them than one. */
static void blk_liar_is_one_host(struct kunit *test)
{
	int i;

	tgt_load_with(test, "echo 9 >max_conns");
	for (i = 0; i < OF_A_HOST; i++) {
		kd_lie(test, neighbour(test, i));
		connect_and_attach(kdb_client(test), i);
	}
	kd_lie(test, neighbour(test, i));
	KUNIT_EXPECT_EQ(test, kdb_connects(kdb_client(test)), KBLK_HELLO_BUSY);
	kd_lie(test, 0);
	connect_and_attach(kdb_client_elsewhere(test), i);
}

/*
 * Connections whose peer may be any host, since it does not show that it has the
 * answer, count for nobody, and make room first.
 */
static void blk_unproven_count_for_nobody(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;
	int i, n;

	tgt_load_with(test, "echo 9 >max_conns");
	side = kdb_client(test);
	for (i = 0; i < OF_A_HOST; i++) {
		for (n = 0; n < MAX_CONNS - i; n++) {
			hello = kdb_good_hello();
			kd_half_connect(side, TGT_PORT, &hello, sizeof(hello));
		}
		connect_and_attach(i ? kdb_client(test) : side, i);
	}
	KUNIT_EXPECT_EQ(test, kdb_connects(kdb_client(test)), KBLK_HELLO_BUSY);
	connect_and_attach(kdb_client_elsewhere(test), i);
}

/* Return a connection of @side's host, or NULL if the target refuses it. */
static struct kd_side *shared_connection(struct kd_side *side)
{
	struct kblk_hello hello = kdb_good_hello();

	hello.credits = cpu_to_le16(16);
	if (kdb_connects_as(side, &hello) != KBLK_HELLO_OK)
		return NULL;
	KUNIT_EXPECT_EQ(side->test, kdb_attach_volume(side, SLOW), KBLK_OK);
	return side;
}

/*
 * A host wants all credits that connections and their volumes have of their own. It
 * leaves some, with which another host connects and shares the connection.
 */
static void blk_one_host_wants_all_credits(struct kunit *test)
{
	struct kd_side *side, *other;
	int credits, volumes = 0;

	kdb_load_volumes(test, MANY_SLOTS "; echo 42 >srq_size; echo 42 >srq_max");
	/* A connection has two of its own, and one for each volume beyond the first. */
	for (credits = 0; credits < BUFFERS; credits += 2) {
		side = shared_connection(kdb_client(test));
		if (!side)
			break;
		if (kdb_attach_volume(side, QUICK) == KBLK_OK)
			volumes++;
		if (kdb_attach_volume(side, 1) == KBLK_OK)
			volumes++;
	}
	credits += volumes;
	kunit_info(test, "one host has %d credits, %d of them for volumes\n", credits,
		   volumes);
	KUNIT_EXPECT_GE(test, credits, BUFFERS / 2);
	/* Even where ATTACH was faster than the event that the client is connected. */
	KUNIT_EXPECT_LE(test, credits, BUFFERS - 2 * FEW_CREDITS);
	other = shared_connection(kdb_client_elsewhere(test));
	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(other, QUICK), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(other, 1), KBLK_OK);
	kdb_expect_quick(other);
}

#define MORE_VOLUMES	"for i in 4 5 6 7 8 9 10; do v=" TGT "/subsystems/vol/namespaces/$i; "
#define VOLUMES		10

static void more_volumes_remove(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, 0, shell(MORE_VOLUMES "rmdir $v; rm " TGT_FILE ".$i; done"));
}

/* Have @side attach to all volumes. Return to how many it could beside the first. */
static int attach_all(struct kd_side *side)
{
	u16 status = KBLK_OK;
	u32 nsid;

	side = shared_connection(side);
	KUNIT_ASSERT_NOT_NULL(side->test, side);
	for (nsid = 1; nsid <= VOLUMES && status == KBLK_OK; nsid++)
		if (nsid != SLOW)
			status = kdb_attach_volume(side, nsid);
	if (status == KBLK_OK)
		return VOLUMES - 1;
	KUNIT_EXPECT_EQ(side->test, status, KBLK_ERR_BUSY);
	return nsid - 1 - (nsid > SLOW) - 1;
}

/*
 * A host wants as many volumes as it can get. Of 98 credits 74 may be for volumes, 64 for
 * those of one host.
 */
static void blk_one_host_wants_all_volumes(struct kunit *test)
{
	int i, n = 0;

	kdb_load_volumes(test, "echo 16 >io_depth; echo 16 >credits; "
			 "echo 7 >srq_size; echo 98 >srq_max");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, more_volumes_remove, test));
	KUNIT_ASSERT_EQ(test, 0, shell("set -e; " MORE_VOLUMES "truncate -s 1M " TGT_FILE
				       ".$i; mkdir $v; echo " TGT_FILE ".$i >$v/path; "
				       "echo 1 >$v/enable; done"));
	for (i = 0; i < 8; i++)
		n += attach_all(kdb_client(test));
	KUNIT_EXPECT_EQ(test, n, 64);
	KUNIT_EXPECT_EQ(test, attach_all(kdb_client_elsewhere(test)), 8);
}

/*
 * A host that is alone gets nearly as many connections as there are buffers, if each has
 * one credit of its own. It leaves 16.
 */
static void blk_one_host_is_alone(struct kunit *test)
{
	int i;

	tgt_load_with(test, "echo 7 >srq_size; echo 84 >srq_max");
	kdb_hello_features = KBLK_FEATURE_CREDITS;
	for (i = 0; i < 84 - 16; i++)
		connect_and_attach(kdb_client(test), i);
	KUNIT_EXPECT_EQ(test, kdb_connects(kdb_client(test)), KBLK_HELLO_RESOURCES);
	KUNIT_EXPECT_EQ(test, kdb_connects(kdb_client_elsewhere(test)), KBLK_HELLO_OK);
	kdb_hello_features = 0;
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
	int i;

	tgt_load_with(test, "echo 600000 >penalty_ms");
	for (i = 0; i < SHUNNED; i++)
		side[i] = kdb_connected_client(test);
	other = kdb_client_elsewhere(test);
	KUNIT_ASSERT_EQ(test, kdb_connects(other), KBLK_HELLO_OK);
	break_protocol(other, 1);
	for (i = 0; i < SHUNNED; i++)
		break_protocol(side[i], i + 2);
	KUNIT_EXPECT_EQ(test, kdb_connects(kdb_client_elsewhere(test)), KBLK_HELLO_SHUNNED);
}

/* A client that breaks the protocol in another's name has its own host shunned. */
static void blk_liar_is_shunned_itself(struct kunit *test)
{
	struct kd_side *side;

	tgt_load_with(test, "echo 600000 >penalty_ms");
	side = kdb_client(test);
	kd_lie(test, neighbour(test, 0));
	KUNIT_ASSERT_EQ(test, kdb_connects(side), KBLK_HELLO_OK);
	break_protocol(side, 1);
	kd_lie(test, 0);
	KUNIT_EXPECT_EQ(test, kdb_connects(kdb_client(test)), KBLK_HELLO_SHUNNED);
	KUNIT_EXPECT_EQ(test, kdb_connects(kdb_client_elsewhere(test)), KBLK_HELLO_OK);
}

/* A host for whose connection the adapter has no room is told so. */
static void blk_no_room_for_a_connection(struct kunit *test)
{
	struct kd_side *side;

	tgt_load_with(test, "true");
	side = kdb_client(test);
	kd_refuse_second_qp(test, side->name);
	KUNIT_EXPECT_EQ(test, kdb_connects(side), KBLK_HELLO_RESOURCES);
	KUNIT_EXPECT_EQ(test, kdb_connects(kdb_client(test)), KBLK_HELLO_OK);
}

static struct kunit_case host_cases[] = {
	KUNIT_CASE_PARAM(blk_no_room_for_a_connection, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_one_host_wants_all, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_oldest_unattached_makes_room, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_unattached_leave_buffers, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_unattached_leave_queues, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_attaching_is_spared, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_disk_leaves_the_last_quarter, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_liar_is_one_host, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_liar_is_shunned_itself, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_unproven_count_for_nobody, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_one_host_wants_all_credits, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_one_host_wants_all_volumes, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_one_host_is_alone, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_other_host_stays_shunned, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-host", host_cases, "hosts of the block device target's clients");
