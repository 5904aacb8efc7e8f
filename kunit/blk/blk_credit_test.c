// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: credits, of which there are as many as receive buffers.
 */
#include <linux/module.h>
#include "blk_target.h"

#define BUFFERS		42
#define CLIENTS		6

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

/*
 * Send @n requests, at least one of which is there, and return the credits that
 * the replies bring.
 */
static u64 use_credits(struct kd_side *side, int n, u16 returned)
{
	struct kblk_request request = keepalive(side);
	const struct kblk_reply *reply;
	u64 credits = 0;
	int i;

	for (i = 0; i < n; i++)
		kd_recv(side, reply_at(i), sizeof(*reply), i + 10);
	request.returned = cpu_to_le16(returned);
	if (returned)
		request.flags = 0;
	for (i = 0; i < n; i++)
		kdb_send_request(side, &request, sizeof(request));
	for (i = 0; i < n; i++) {
		kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS,
			      NULL);
		reply = side->buf->va +
			reply_at(kd_next_dto(side->test,
					     side->recv_evd).user_cookie.as_64 - 10);
		credits += le16_to_cpu(reply->credits);
	}
	return credits;
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
	for (n = 0; n < 20 && holder[0].credits < TGT_CREDITS; n++)
		holder[0].credits = use_credits(holder[0].side,
						holder[0].credits, 0);
	KUNIT_EXPECT_EQ(test, holder[0].credits, TGT_CREDITS);
	for (i = 0; i < CLIENTS; i++)
		kd_close(holder[i].side);
	kdb_expect_serving(test);
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

static struct kunit_case credit_cases[] = {
	KUNIT_CASE_PARAM(blk_credits_are_buffers, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_credits_not_had, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-credit", credit_cases,
	 "credits of the block device target's clients");
