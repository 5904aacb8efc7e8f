// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The simulated adapter itself: requests do what they should, errors are found,
 * and each switch does what names.h says. A test of kDAPL can rely on it then.
 */
#include <linux/module.h>
#include "raw.h"

static const struct raw_opts plain;
static const struct raw_opts with_srq = { .srq = true };

static void send(struct raw *raw, u64 id, u32 len)
{
	KUNIT_ASSERT_EQ(raw->test, 0,
			raw_post_send(&raw->a, IB_WR_SEND, IB_SEND_SIGNALED, id,
				      0, len, 0, 0));
}

static void recv(struct raw *raw, u64 id, u32 len)
{
	KUNIT_ASSERT_EQ(raw->test, 0, raw_post_recv(&raw->b, id, 0, len));
}

/* ---- Data ---------------------------------------------------------------- */

static void send_and_receive(struct kunit *test)
{
	static const u32 lens[] = { 0, 1, 4095, SZ_64K, SZ_64K + 1, RAW_LEN };
	struct raw *raw = raw_open(test, &plain);
	struct ib_wc wc;
	int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		kd_fill(raw->a.buf, lens[i], i);
		recv(raw, i, RAW_LEN);
		send(raw, 100 + i, lens[i]);
		wc = raw_expect(&raw->b, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, wc.byte_len, lens[i]);
		raw_expect(&raw->a, 100 + i, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, kd_is_filled(raw->b.buf, lens[i], i));
	}
}

static void read_and_write(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);
	struct ib_mr *mr = raw_mr(&raw->b, RAW_LEN, IB_ACCESS_LOCAL_WRITE |
				  IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE);

	kd_fill(raw->a.buf, RAW_LEN, 1);
	raw_post_send(&raw->a, IB_WR_RDMA_WRITE, IB_SEND_SIGNALED, 1, 0,
		      RAW_LEN, mr->iova, mr->rkey);
	raw_expect(&raw->a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(raw->b.buf, RAW_LEN, 1));
	kd_fill(raw->b.buf, RAW_LEN, 2);
	raw_post_send(&raw->a, IB_WR_RDMA_READ, IB_SEND_SIGNALED, 2, 0,
		      RAW_LEN, mr->iova, mr->rkey);
	raw_expect(&raw->a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(raw->a.buf, RAW_LEN, 2));
	raw_mr_free(mr);
}

/* What one byte of a region's range or one right less lets through. */
struct wrong {
	const char *desc;
	enum ib_wr_opcode opcode;
	int access;
	int off;
	u32 len;
};

static const struct wrong wrongs[] = {
	{ "one byte too long", IB_WR_RDMA_WRITE,
	  IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, 0, SZ_4K + 1 },
	{ "one byte before", IB_WR_RDMA_WRITE,
	  IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, -1, 8 },
	{ "one byte behind", IB_WR_RDMA_READ, IB_ACCESS_REMOTE_READ, SZ_4K, 1 },
	{ "write to read", IB_WR_RDMA_WRITE, IB_ACCESS_REMOTE_READ, 0, 8 },
	{ "read of write", IB_WR_RDMA_READ,
	  IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, 0, 8 },
};

KUNIT_ARRAY_PARAM_DESC(wrong, wrongs, desc);

static void wrong_access(struct kunit *test)
{
	const struct wrong *w = test->param_value;
	struct raw *raw = raw_open(test, &plain);
	struct ib_mr *mr = raw_mr(&raw->b, SZ_4K, w->access);

	memset(raw->a.buf, 1, SZ_64K);
	raw_post_send(&raw->a, w->opcode, IB_SEND_SIGNALED, 1, 0, w->len,
		      mr->iova + w->off, mr->rkey);
	raw_expect(&raw->a, 1, IB_WC_REM_ACCESS_ERR);
	raw_wait_event(&raw->b, IB_EVENT_QP_ACCESS_ERR, 1);
	KUNIT_EXPECT_TRUE(test, !memchr_inv(raw->b.buf, 0, SZ_64K));
	KUNIT_EXPECT_TRUE(test, !memchr_inv(raw->a.buf, 1, SZ_64K));
	raw_mr_free(mr);
}

static void invalidated(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);
	int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	struct ib_mr *mr = raw_mr(&raw->b, SZ_4K, access);
	struct ib_wc wc;

	/* By the peer, and registered again. */
	recv(raw, 1, 64);
	raw_post_send(&raw->a, IB_WR_SEND_WITH_INV, IB_SEND_SIGNALED, 2, 0, 8,
		      0, mr->rkey);
	wc = raw_expect(&raw->b, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, wc.ex.invalidate_rkey, mr->rkey);
	raw_expect(&raw->a, 2, IB_WC_SUCCESS);
	ib_update_fast_reg_key(mr, (mr->rkey & 0xff) + 1);
	KUNIT_ASSERT_EQ(test, 0, raw_reg(&raw->b, mr, 3, access));
	raw_expect(&raw->b, 3, IB_WC_SUCCESS);
	/* By its owner. */
	raw_post_send(&raw->b, IB_WR_LOCAL_INV, IB_SEND_SIGNALED, 4, 0, 0, 0,
		      mr->rkey);
	raw_expect(&raw->b, 4, IB_WC_SUCCESS);
	raw_post_send(&raw->a, IB_WR_RDMA_WRITE, IB_SEND_SIGNALED, 5, 0, 8,
		      mr->iova, mr->rkey);
	raw_expect(&raw->a, 5, IB_WC_REM_ACCESS_ERR);
	raw_mr_free(mr);
}

static void too_long_for_the_receive(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);

	recv(raw, 1, 63);
	send(raw, 2, 64);
	raw_expect(&raw->b, 1, IB_WC_LOC_LEN_ERR);
	raw_expect(&raw->a, 2, IB_WC_REM_INV_REQ_ERR);
}

/* ---- RNR and silence ----------------------------------------------------- */

static void rnr_waits_for_a_receive(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);
	long rnr = raw_count(raw, KDAPL_SIM_N_rnr);

	send(raw, 1, 64);
	send(raw, 2, 64);
	raw_expect_none(&raw->a);
	/* It was looked at once, and sleeps. */
	KUNIT_EXPECT_LE(test, raw_count(raw, KDAPL_SIM_N_rnr), rnr + 2);
	recv(raw, 3, 64);
	raw_expect(&raw->b, 3, IB_WC_SUCCESS);
	raw_expect(&raw->a, 1, IB_WC_SUCCESS);
	recv(raw, 4, 64);
	raw_expect(&raw->b, 4, IB_WC_SUCCESS);
	raw_expect(&raw->a, 2, IB_WC_SUCCESS);
}

static void rnr_retries_end(struct kunit *test)
{
	struct raw *raw = raw_open(test, &(struct raw_opts) { .rnr_retry = 1 });

	send(raw, 1, 64);
	send(raw, 2, 64);
	raw_expect(&raw->a, 1, IB_WC_RNR_RETRY_EXC_ERR);
	raw_expect(&raw->a, 2, IB_WC_WR_FLUSH_ERR);
}

static void no_rnr_retry(struct kunit *test)
{
	struct raw *raw = raw_open(test, &(struct raw_opts) { .rnr_retry = 8 });

	send(raw, 1, 64);
	raw_expect(&raw->a, 1, IB_WC_RNR_RETRY_EXC_ERR);
}

static void peer_is_gone(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);

	raw_destroy_qp(&raw->b);
	send(raw, 1, 64);
	raw_expect(&raw->a, 1, IB_WC_RETRY_EXC_ERR);
}

static void port_down(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);
	struct ib_port_attr attr;

	recv(raw, 1, 64);
	raw_set(raw, KDAPL_SIM_port_down, 1);
	KUNIT_EXPECT_EQ(test, 0, ib_query_port(raw->dev, 1, &attr));
	KUNIT_EXPECT_EQ(test, (int)attr.state, (int)IB_PORT_DOWN);
	send(raw, 2, 64);
	raw_expect(&raw->a, 2, IB_WC_RETRY_EXC_ERR);
	raw_expect_none(&raw->b);
}

/* ---- Ends ---------------------------------------------------------------- */

static void err_flushes(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);

	send(raw, 1, 64);
	send(raw, 2, 64);
	raw_post_recv(&raw->a, 3, 0, 64);
	raw_to_err(&raw->a);
	raw_expect(&raw->a, 1, IB_WC_WR_FLUSH_ERR);
	raw_expect(&raw->a, 2, IB_WC_WR_FLUSH_ERR);
	raw_expect(&raw->a, 3, IB_WC_WR_FLUSH_ERR);
	/* Later posts as well. */
	send(raw, 4, 64);
	raw_expect(&raw->a, 4, IB_WC_WR_FLUSH_ERR);
	raw_post_recv(&raw->a, 5, 0, 64);
	raw_expect(&raw->a, 5, IB_WC_WR_FLUSH_ERR);
}

static void drop_cqes(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);
	long dropped = raw_count(raw, KDAPL_SIM_N_cqes_dropped);

	recv(raw, 1, 64);
	send(raw, 2, 64);
	raw_expect(&raw->a, 2, IB_WC_SUCCESS);
	raw_set(raw, KDAPL_SIM_drop_cqes, 1);
	raw_destroy_qp(&raw->b);
	raw_expect_none(&raw->b);
	KUNIT_EXPECT_EQ(test, dropped + 1,
			raw_count(raw, KDAPL_SIM_N_cqes_dropped));
}

static void killed(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);

	send(raw, 1, 64);
	KUNIT_EXPECT_EQ(test, 0, kdapl_sim_kill_qp(raw->dev, raw->a.qp->qp_num,
						   KDAPL_SIM_KILL_EVENT));
	raw_expect(&raw->a, 1, IB_WC_WR_FLUSH_ERR);
	raw_wait_event(&raw->a, IB_EVENT_QP_FATAL, 1);
	raw_post_recv(&raw->b, 2, 0, 64);
	KUNIT_EXPECT_EQ(test, 0, kdapl_sim_kill_qp(raw->dev, raw->b.qp->qp_num,
						   KDAPL_SIM_KILL_MUTE));
	raw_expect_none(&raw->b);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&raw->b.events[IB_EVENT_QP_FATAL]));
}

/* ---- Shared receive queues ----------------------------------------------- */

static void srq_limit(struct kunit *test)
{
	struct raw *raw = raw_open(test, &with_srq);
	struct ib_srq_attr attr = { .srq_limit = 3 };
	int i;

	for (i = 0; i < 4; i++)
		recv(raw, i, 64);
	KUNIT_ASSERT_EQ(test, 0, ib_modify_srq(raw->b.srq, &attr, IB_SRQ_LIMIT));
	send(raw, 10, 8);
	raw_expect(&raw->b, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&raw->b.events[IB_EVENT_SRQ_LIMIT_REACHED]));
	send(raw, 11, 8);
	raw_expect(&raw->b, 1, IB_WC_SUCCESS);
	raw_wait_event(&raw->b, IB_EVENT_SRQ_LIMIT_REACHED, 1);
	send(raw, 12, 8);
	raw_expect(&raw->b, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&raw->b.events[IB_EVENT_SRQ_LIMIT_REACHED]));
}

static void srq_resize(struct kunit *test)
{
	struct raw *raw = raw_open(test, &with_srq);
	struct ib_srq_attr attr = { .max_wr = 64 };
	int i;

	for (i = 0; i < RAW_DEPTH; i++)
		recv(raw, i, 64);
	KUNIT_EXPECT_NE(test, 0, raw_post_recv(&raw->b, 99, 0, 64));
	KUNIT_ASSERT_EQ(test, 0, ib_modify_srq(raw->b.srq, &attr, IB_SRQ_MAX_WR));
	recv(raw, RAW_DEPTH, 64);
	attr.max_wr = RAW_DEPTH;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			ib_modify_srq(raw->b.srq, &attr, IB_SRQ_MAX_WR));
	for (i = 0; i <= RAW_DEPTH; i++) {
		send(raw, 100 + i, 8);
		raw_expect(&raw->b, i, IB_WC_SUCCESS);
		raw_expect(&raw->a, 100 + i, IB_WC_SUCCESS);
	}
	raw_set(raw, KDAPL_SIM_no_srq_resize, 1);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			ib_modify_srq(raw->b.srq, &attr, IB_SRQ_MAX_WR));
	KUNIT_EXPECT_FALSE(test, raw->dev->attrs.device_cap_flags &
			   IB_DEVICE_SRQ_RESIZE);
}

/* A message stops within; the sender dies; the receiver is taken down. */
static void die_in_mid_message(struct raw *raw)
{
	struct kunit *test = raw->test;

	recv(raw, 1, RAW_LEN);
	recv(raw, 2, RAW_LEN);
	raw_set(raw, KDAPL_SIM_stall_bytes, 1000);
	send(raw, 3, SZ_128K);
	raw_wait_count(raw, KDAPL_SIM_N_partial, 1);
	raw_expect_none(&raw->b);
	raw_to_err(&raw->a);
	raw_expect(&raw->a, 3, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, 0, raw_count(raw, KDAPL_SIM_N_partial));
	raw_to_err(&raw->b);
}

static void partial_is_flushed(struct kunit *test)
{
	struct raw *raw = raw_open(test, &with_srq);

	die_in_mid_message(raw);
	raw_expect(&raw->b, 1, IB_WC_WR_FLUSH_ERR);
	raw_wait_event(&raw->b, IB_EVENT_QP_LAST_WQE_REACHED, 1);
	/* The other receive stays where it is. */
	raw_expect_none(&raw->b);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&raw->b.events[IB_EVENT_QP_LAST_WQE_REACHED]));
}

static void partial_is_lost(struct kunit *test)
{
	struct raw *raw = raw_open(test, &with_srq);
	long lost = raw_count(raw, KDAPL_SIM_N_lost);

	raw_set(raw, KDAPL_SIM_lose_partial, 1);
	die_in_mid_message(raw);
	raw_wait_event(&raw->b, IB_EVENT_QP_LAST_WQE_REACHED, 1);
	raw_expect_none(&raw->b);
	KUNIT_EXPECT_EQ(test, lost + 1, raw_count(raw, KDAPL_SIM_N_lost));
}

static void stall_ends(struct kunit *test)
{
	struct raw *raw = raw_open(test, &with_srq);

	kd_fill(raw->a.buf, SZ_128K, 3);
	recv(raw, 1, RAW_LEN);
	raw_set(raw, KDAPL_SIM_stall_bytes, 70000);
	send(raw, 2, SZ_128K);
	raw_wait_count(raw, KDAPL_SIM_N_partial, 1);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(raw->b.buf, 70000, 3));
	KUNIT_EXPECT_EQ(test, 0, ((u8 *)raw->b.buf)[70000]);
	raw_set(raw, KDAPL_SIM_stall_bytes, 0);
	raw_expect(&raw->b, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(raw->b.buf, SZ_128K, 3));
}

static void acks_are_held(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);

	recv(raw, 1, 64);
	recv(raw, 2, 64);
	raw_set(raw, KDAPL_SIM_hold_acks, 1);
	send(raw, 10, 8);
	raw_expect(&raw->b, 1, IB_WC_SUCCESS);
	raw_expect_none(&raw->a);
	raw_set(raw, KDAPL_SIM_hold_acks, 0);
	raw_expect(&raw->a, 10, IB_WC_SUCCESS);
	raw_set(raw, KDAPL_SIM_hold_acks, 1);
	send(raw, 11, 8);
	raw_expect(&raw->b, 2, IB_WC_SUCCESS);
	raw_to_err(&raw->a);
	raw_expect(&raw->a, 11, IB_WC_WR_FLUSH_ERR);
}

static void last_wqe_never_or_late(struct kunit *test)
{
	struct raw *raw = raw_open(test, &with_srq);
	atomic_t *seen = &raw->b.events[IB_EVENT_QP_LAST_WQE_REACHED];

	raw_set(raw, KDAPL_SIM_lwqe, 1);
	raw_to_err(&raw->b);
	raw_expect_none(&raw->b);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(seen));
	raw_set(raw, KDAPL_SIM_lwqe_ms, 150);
	raw_set(raw, KDAPL_SIM_lwqe, 3);
	/* A post has the QP looked at. */
	raw_post_send(&raw->b, IB_WR_SEND, 0, 1, 0, 8, 0, 0);
	raw_expect(&raw->b, 1, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(seen));
	raw_wait_event(&raw->b, IB_EVENT_QP_LAST_WQE_REACHED, 1);
	raw_set(raw, KDAPL_SIM_lwqe, 2);
	raw_post_send(&raw->b, IB_WR_SEND, 0, 2, 0, 8, 0, 0);
	raw_expect(&raw->b, 2, IB_WC_WR_FLUSH_ERR);
	raw_wait_event(&raw->b, IB_EVENT_QP_LAST_WQE_REACHED, 2);
}

/* ---- Completion queues --------------------------------------------------- */

static void cq_overflow(struct kunit *test)
{
	struct raw *raw = raw_open(test, &(struct raw_opts) { .cqe = 4 });
	int i;

	for (i = 0; i < 6; i++)
		recv(raw, i, 64);
	for (i = 0; i < 5; i++)
		raw_post_send(&raw->a, IB_WR_SEND, 0, 10 + i, 0, 8, 0, 0);
	raw_wait_event(&raw->b, IB_EVENT_CQ_ERR, 1);
	for (i = 0; i < 4; i++)
		raw_expect(&raw->b, i, IB_WC_SUCCESS);
	send(raw, 20, 8);
	raw_expect(&raw->a, 20, IB_WC_SUCCESS);
	raw_expect_none(&raw->b);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&raw->b.events[IB_EVENT_CQ_ERR]));
}

static void arming(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);
	int i;

	for (i = 0; i < 4; i++)
		recv(raw, i, 64);
	KUNIT_EXPECT_EQ(test, 0, ib_req_notify_cq(raw->b.cq, IB_CQ_SOLICITED |
						  IB_CQ_REPORT_MISSED_EVENTS));
	send(raw, 10, 8);
	raw_expect(&raw->a, 10, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&raw->b.calls));
	raw_post_send(&raw->a, IB_WR_SEND, IB_SEND_SIGNALED | IB_SEND_SOLICITED,
		      11, 0, 8, 0, 0);
	raw_expect(&raw->a, 11, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&raw->b.calls));
	KUNIT_EXPECT_EQ(test, 1, ib_req_notify_cq(raw->b.cq, IB_CQ_NEXT_COMP |
						  IB_CQ_REPORT_MISSED_EVENTS));
	send(raw, 12, 8);
	send(raw, 13, 8);
	raw_expect(&raw->a, 12, IB_WC_SUCCESS);
	raw_expect(&raw->a, 13, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&raw->b.calls));
	for (i = 0; i < 4; i++)
		raw_expect(&raw->b, i, IB_WC_SUCCESS);
}

static bool was_called(void *data)
{
	return atomic_read(data);
}

static void handlers_in_hard_interrupts(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);

	raw_set(raw, KDAPL_SIM_comp_ctx, 1);
	ib_req_notify_cq(raw->b.cq, IB_CQ_NEXT_COMP);
	recv(raw, 1, 64);
	send(raw, 2, 64);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(was_called, &raw->b.calls,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&raw->b.in_irq));
}

/* ---- Calls that fail ----------------------------------------------------- */

static void refused_calls(struct kunit *test)
{
	struct raw *raw = raw_open(test, &plain);
	struct ib_mr *mr;

	raw_set(raw, KDAPL_SIM_refuse_recv, 1);
	KUNIT_EXPECT_EQ(test, -ENOMEM, raw_post_recv(&raw->b, 1, 0, 64));
	recv(raw, 1, 64);
	raw_set(raw, KDAPL_SIM_refuse_send, 1);
	KUNIT_EXPECT_EQ(test, -ENOMEM, raw_post_send(&raw->a, IB_WR_SEND, 0, 2,
						     0, 8, 0, 0));
	send(raw, 2, 8);
	raw_expect(&raw->a, 2, IB_WC_SUCCESS);
	raw_set(raw, KDAPL_SIM_fail_mr, 1);
	mr = ib_alloc_mr(raw->pd, IB_MR_TYPE_MEM_REG, 4);
	KUNIT_EXPECT_TRUE(test, IS_ERR(mr));
	mr = raw_mr(&raw->a, SZ_4K, 0);
	raw_set(raw, KDAPL_SIM_fail_reg, 1);
	KUNIT_EXPECT_EQ(test, 0, raw_reg(&raw->a, mr, 3, IB_ACCESS_LOCAL_WRITE));
	raw_expect(&raw->a, 3, IB_WC_MW_BIND_ERR);
	raw_mr_free(mr);
}

static struct kunit_case sim_cases[] = {
	KUNIT_CASE(send_and_receive),
	KUNIT_CASE(read_and_write),
	KUNIT_CASE_PARAM(wrong_access, wrong_gen_params),
	KUNIT_CASE(invalidated),
	KUNIT_CASE(too_long_for_the_receive),
	KUNIT_CASE(rnr_waits_for_a_receive),
	KUNIT_CASE(rnr_retries_end),
	KUNIT_CASE(no_rnr_retry),
	KUNIT_CASE(peer_is_gone),
	KUNIT_CASE(port_down),
	KUNIT_CASE(err_flushes),
	KUNIT_CASE(drop_cqes),
	KUNIT_CASE(killed),
	KUNIT_CASE(srq_limit),
	KUNIT_CASE(srq_resize),
	KUNIT_CASE(partial_is_flushed),
	KUNIT_CASE(partial_is_lost),
	KUNIT_CASE(stall_ends),
	KUNIT_CASE(acks_are_held),
	KUNIT_CASE(last_wqe_never_or_late),
	KUNIT_CASE(cq_overflow),
	KUNIT_CASE(arming),
	KUNIT_CASE(handlers_in_hard_interrupts),
	KUNIT_CASE(refused_calls),
	{}
};

KD_SUITE("kdapl-sim", sim_cases, "the simulated adapter");
