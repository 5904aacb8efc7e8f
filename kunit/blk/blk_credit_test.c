// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: credits, of which there are as many as receive buffers.
 */
#include <linux/module.h>
#include "blk_backing.h"
#include "blk_target.h"
#include "device.h"
#include "../sim/kdapl_sim.h"

#define BUFFERS		42
#define CLIENTS		6
#define CROWD		16

static int throttled_case;

/* A client, and the credits that it has. */
struct holder {
	struct kd_side *side;
	u64 credits;
};

static struct kblk_request keepalive(struct kd_side *side)
{
	struct kblk_request request = kdb_good_request(side);

	request.opcode = KBLK_OP_KEEPALIVE;
	request.length = 0;
	request.flags = KBLK_WANTS;
	return request;
}

static size_t reply_at(int i)
{
	return DATA_AT + i * sizeof(struct kblk_reply);
}

/* Take @n replies and return the credits that they bring. */
static u64 take_replies(struct kd_side *side, int n)
{
	const struct kblk_reply *reply;
	u64 credits = 0;

	while (n--) {
		reply = side->buf->va +
			reply_at(kd_next_dto(side->test,
					     side->recv_evd).user_cookie.as_64 - 10);
		credits += le16_to_cpu(reply->credits);
	}
	return credits;
}

/*
 * Send @n requests, at least one of which is there, and return the credits that
 * the replies bring.
 */
static u64 use_credits(struct kd_side *side, int n, u16 returned)
{
	struct kblk_request request = keepalive(side);
	int i;

	for (i = 0; i < n; i++)
		kd_recv(side, reply_at(i), sizeof(struct kblk_reply), i + 10);
	request.returned = cpu_to_le16(returned);
	if (returned)
		request.flags = 0;
	for (i = 0; i < n; i++)
		kdb_send_request(side, &request, sizeof(request));
	for (i = 0; i < n; i++)
		kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS,
			      NULL);
	return take_replies(side, n);
}

/* Connect and attach a client, without a receive that is not used at once. */
static struct holder new_holder(struct kunit *test)
{
	struct holder holder;

	kdb_hello_features = KBLK_FEATURE_CREDITS;
	holder.side = kdb_connected_client(test);
	holder.credits = kdb_credits;
	kdb_hello_features = 0;
	return holder;
}

/* The receive that kdb_ask() leaves posted takes the first reply. */
static void use_up_receive(struct holder *holder)
{
	struct kblk_request request = keepalive(holder->side);
	const struct kblk_reply *reply = holder->side->buf->va + REPLY_AT;

	kdb_send_request(holder->side, &request, sizeof(request));
	kd_expect_dto(holder->side->test, holder->side->req_evd, 2,
		      DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(holder->side->test, holder->side->recv_evd, 1,
		      DAT_DTO_SUCCESS, NULL);
	holder->credits += le16_to_cpu(reply->credits) - 1;
}

/*
 * Use what @data, a holder, has. The target may take its time to grant more: on a busy host it
 * may find more messages waiting than the soft watermark.
 */
static bool has_all_credits(void *data)
{
	struct holder *holder = data;

	holder->credits = use_credits(holder->side, holder->credits, 0);
	return holder->credits >= TGT_CREDITS;
}

/*
 * All clients want more credits than there are buffers, and use what they have.
 * Each has one at least, and all together have no more than there are. When the
 * others give theirs back, one gets as many as it can use.
 */
static void blk_credits_are_buffers(struct kunit *test)
{
	struct holder holder[CLIENTS];
	u64 sum;
	int i, n;

	tgt_load_with(test, "echo 42 >srq_size; echo 42 >srq_max");
	for (i = 0; i < CLIENTS; i++) {
		holder[i] = new_holder(test);
		use_up_receive(&holder[i]);
	}
	for (n = 0; n < 20; n++) {
		for (i = 0, sum = 0; i < CLIENTS; i++) {
			holder[i].credits = use_credits(holder[i].side,
							holder[i].credits, 0);
			KUNIT_ASSERT_GE(test, holder[i].credits, 1);
			sum += holder[i].credits;
		}
		KUNIT_EXPECT_LE_MSG(test, sum, BUFFERS, "round %d", n);
	}
	for (i = 1; i < CLIENTS; i++)
		use_credits(holder[i].side, 1, holder[i].credits - 1);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(has_all_credits, &holder[0], KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, holder[0].credits, TGT_CREDITS);
	for (i = 0; i < CLIENTS; i++)
		kd_close(holder[i].side);
	kdb_expect_serving(test);
}

/* Have @holder send a READ for each credit, and leave the replies for later. */
static void spend_credits(struct holder *holder)
{
	struct kd_side *side = holder->side;
	struct kblk_request request = kdb_good_request(side);
	u64 i;

	for (i = 0; i < holder->credits; i++)
		kd_recv(side, reply_at(i), sizeof(struct kblk_reply), i + 10);
	request.length = cpu_to_le32(512);
	le64_add_cpu(&request.address, SZ_4K);
	for (i = 0; i < holder->credits; i++)
		kdb_send_request(side, &request, sizeof(request));
}

/* Return how many requests of @holder have found a receive buffer. */
static u64 count_arrived(const struct holder *holder)
{
	DAT_EVENT event;
	u64 n = 0;

	while (n < holder->credits &&
	       kd_wait_event(holder->side->req_evd, &event, KD_TIMEOUT_MS))
		n++;
	return n;
}

/* Load the target with a medium in memory. @more: as for tgt_load_with() */
static void load_memory(struct kunit *test, const char *more)
{
	tgt_load_with(test, more);
	KUNIT_ASSERT_EQ(test, 0, shell("cd " TGT_NS "; echo 0 >enable; echo " BACKING_0
				       " >path; echo 1 >enable"));
}

/* Connect clients that ask for all the credits they can get. */
static void crowd_connect(struct kunit *test, struct holder *holder)
{
	int i, n;

	load_memory(test, "echo 42 >srq_size; echo 42 >srq_max");
	for (i = 0; i < CROWD; i++) {
		holder[i] = new_holder(test);
		use_up_receive(&holder[i]);
	}
	for (n = 0; n < 10; n++)
		for (i = 0; i < CROWD; i++)
			holder[i].credits = use_credits(holder[i].side,
							holder[i].credits, 0);
}

/*
 * All clients use all their credits while the medium stands still, so that only two
 * requests of each leave their receive buffers. No Send ever has to wait for a
 * buffer, by the adapter's own count of RNR NAKs.
 */
static void blk_credits_without_rnr(struct kunit *test)
{
	struct ib_device *dev = kd_device(test, *(const char * const *)test->param_value);
	struct backing *backing = kdb_backing_make(test, 0);
	long rnr = kdapl_sim_count(dev, KDAPL_SIM_N_rnr);
	struct holder holder[CROWD];
	u64 arrived = 0, sum = 0;
	int i;

	crowd_connect(test, holder);
	kdb_backing_hold(backing, true);
	for (i = 0; i < CROWD; i++)
		spend_credits(&holder[i]);
	for (i = 0; i < CROWD && arrived == sum; i++) {
		sum += holder[i].credits;
		arrived += count_arrived(&holder[i]);
	}
	kdb_backing_hold(backing, false);
	KUNIT_EXPECT_EQ(test, kdapl_sim_count(dev, KDAPL_SIM_N_rnr) - rnr, 0);
	KUNIT_ASSERT_EQ(test, arrived, sum);
	KUNIT_EXPECT_GT(test, sum, BUFFERS / 2);
	for (i = 0; i < CROWD; i++)
		kd_close(holder[i].side);
	KUNIT_ASSERT_EQ(test, 0, shell("cd " TGT_NS "; echo 0 >enable; echo " TGT_FILE
				       " >path; echo 1 >enable"));
	kdb_expect_serving(test);
}

/*
 * The longest queue is shorter than srq_max, since buffers come in sevens. Clients are
 * refused rather than given credits without buffers.
 */
static void blk_credits_of_odd_queue(struct kunit *test)
{
	struct kd_side *side;
	unsigned int sum = 0;
	int i;

	tgt_load_with(test, "echo 7 >srq_size; echo 13 >srq_max");
	for (i = 0; i < 7 && kdb_one_more(test, &side) == KBLK_HELLO_OK; i++)
		sum += kdb_credits;
	KUNIT_EXPECT_GT(test, sum, 0);
	KUNIT_EXPECT_LE(test, sum, 7);
}

/* A client gives back credits that it does not have. */
static void blk_credits_not_had(struct kunit *test)
{
	struct kblk_request request;
	struct holder holder;

	tgt_load(test);
	holder = new_holder(test);
	request = keepalive(holder.side);
	request.returned = cpu_to_le16(holder.credits);
	kdb_send_request(holder.side, &request, sizeof(request));
	kdb_expect_end(holder.side);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_has_cut_off, NULL,
					      KD_TIMEOUT_MS));
	/* Only a keep-alive brings them. */
	holder = new_holder(test);
	request = kdb_good_request(holder.side);
	request.returned = cpu_to_le16(1);
	kdb_send_request(holder.side, &request, sizeof(request));
	kdb_expect_end(holder.side);
	kdb_expect_serving(test);
}

/* Return whether the target refuses a client because of what its host has done. */
static bool is_shunned(void *data)
{
	struct kblk_hello hello = kdb_good_hello();
	const struct kblk_welcome *welcome;
	struct kd_side *side = kdb_client(data);
	bool shunned = false;
	DAT_EVENT event;

	kdb_say_hello(side, &hello, sizeof(hello));
	KUNIT_ASSERT_TRUE(side->test, kd_wait_event(side->conn_evd, &event,
						    KD_TIMEOUT_MS));
	if (event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED) {
		welcome = event.event_data.connect_event_data.private_data;
		shunned = le16_to_cpu(welcome->status) == KBLK_HELLO_SHUNNED;
	}
	kd_close(side);
	return shunned;
}

/* The host of a client that has sent what is no request is not accepted again at once. */
static void blk_malformed_and_shunned(struct kunit *test)
{
	struct kblk_request bad = { .opcode = KBLK_OP_READ };
	struct kd_side *side;

	tgt_load_with(test, "echo 600000 >penalty_ms");
	side = kdb_connected_client(test);
	kdb_send_request(side, &bad, sizeof(bad));
	kdb_expect_end(side);
	kd_close(side);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_shunned, test, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_has_all_buffers, NULL,
					      KD_TIMEOUT_MS));
}

static bool has_served(void *n)
{
	return shell("exit $(sed -n 's/^requests *//p' " TGT_STATS ")") >> 8 == *(int *)n;
}

/*
 * A client sends more than its credits, as it does not take replies, and then what is no request.
 * Its host is shunned for this at once; that shows when the medium has answered, and counts too.
 */
static void blk_malformed_and_greedy(struct kunit *test)
{
	struct kblk_request request, bad = { .opcode = KBLK_OP_READ };
	struct backing *backing = kdb_backing_make(test, 0);
	struct kd_side *side;
	int n;

	load_memory(test, "echo 16 >io_depth; echo 0 >reply_ms; echo 600000 >penalty_ms");
	side = kdb_connected_client(test);
	if (kd_is_iwarp(side))
		kunit_skip(test, "a reply without a receive ends the connection");
	kdb_backing_hold(backing, true);
	request = kdb_good_request(side);
	/* There is one receive, and each reply that is made gives a credit. */
	for (n = 2; n <= TGT_CREDITS + 3; n++) {
		kdb_send_request(side, &request, sizeof(request));
		KUNIT_ASSERT_TRUE(test, kd_wait_until(has_served, &n, KD_TIMEOUT_MS));
		request = keepalive(side);
		request.flags = 0;
	}
	kdb_send_request(side, &bad, sizeof(bad));
	kdb_expect_end(side);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_shunned, test, KD_TIMEOUT_MS));
	kdb_backing_hold(backing, false);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_has_cut_off, NULL, KD_TIMEOUT_MS));
}

/*
 * Return whether the log says, since the last case "throttled-" began, @n times at least
 * that a client is throttled, and each time but @open at most that it keeps up again.
 */
static bool is_logged(int n, int open)
{
	char command[320];

	snprintf(command, sizeof(command),
		 "l=$(dmesg | sed '1,/throttled-%d:/d'); "
		 "b=$(echo \"$l\" | grep -c 'are waiting, throttled'); "
		 "e=$(echo \"$l\" | grep -c 'was throttled [0-9]* times, keeps up now'); "
		 "[ $b -ge %d ] && [ $e -le $b ] && [ $((b - e)) -le %d ]",
		 throttled_case, n, open);
	return !shell(command);
}

/* Return how often clients were throttled. */
static int count_throttled(void)
{
	return shell("exit $(sed -n 's/^EP soft high watermark events *//p' "
		     TGT_STATS ")") >> 8;
}

static bool was_throttled(void *n)
{
	return count_throttled() > *(int *)n;
}

/* Have @holder ask for all credits, also for those that were held back. */
static void get_all_credits(struct holder *holder)
{
	int n;

	for (n = 0; holder->credits < TGT_CREDITS && n < 4 * TGT_CREDITS; n++)
		holder->credits = use_credits(holder->side, holder->credits, 0);
	KUNIT_ASSERT_EQ(holder->side->test, holder->credits, TGT_CREDITS);
}

/* Have messages of @holder wait for the medium until it is throttled. */
static void be_throttled(struct holder *holder, struct backing *backing)
{
	int n;

	get_all_credits(holder);
	n = count_throttled();
	kdb_backing_hold(backing, true);
	spend_credits(holder);
	KUNIT_EXPECT_EQ(holder->side->test, count_arrived(holder), TGT_CREDITS);
	KUNIT_EXPECT_TRUE(holder->side->test, kd_wait_until(was_throttled, &n,
							    KD_TIMEOUT_MS));
	kdb_backing_hold(backing, false);
	holder->credits = take_replies(holder->side, holder->credits);
}

static bool keeps_up(void *n)
{
	return is_logged(*(int *)n, 0);
}

/*
 * The log tells once that a client is throttled, however often, and when that is over. It
 * may be over several times on a slow machine.
 */
static void blk_throttled_is_logged_once(struct kunit *test)
{
	struct backing *backing = kdb_backing_make(test, 0);
	struct holder holder;
	int n;

	load_memory(test, "true");
	pr_info("throttled-%d:\n", ++throttled_case);
	holder = new_holder(test);
	use_up_receive(&holder);
	for (n = 0; n < 3; n++)
		be_throttled(&holder, backing);
	KUNIT_EXPECT_TRUE(test, is_logged(1, 1));
	n = 1;
	KUNIT_EXPECT_TRUE(test, kd_wait_until(keeps_up, &n, KD_TIMEOUT_MS));
	be_throttled(&holder, backing);
	KUNIT_EXPECT_TRUE(test, is_logged(2, 1));
	kd_close(holder.side);
}

static struct kunit_case credit_cases[] = {
	KUNIT_CASE_PARAM(blk_credits_are_buffers, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_credits_without_rnr, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(blk_credits_of_odd_queue, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_credits_not_had, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_malformed_and_shunned, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_malformed_and_greedy, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(blk_throttled_is_logged_once, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-credit", credit_cases,
	 "credits of the block device target's clients");
