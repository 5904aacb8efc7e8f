// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clauses R1 to R7: the counts of receive buffers, of SRQs and of Endpoints.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include "srq_fixture.h"

static void R1_example(struct kunit *test)
{
	struct rx_bench *b = rx_open_polled(test, 10);
	struct rx_link *link = rx_link(b);

	rx_expect_counts(b, 10, 0, 0);
	rx_post(b, link, 3);
	rx_expect_counts(b, 10, 3, 3);
	rx_deliver(b, link);
	rx_expect_counts(b, 10, 2, 3);
	rx_reap(b, link);
	rx_expect_counts(b, 10, 2, 2);
}

static void R1_full_and_empty(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 4);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, 4);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, rx_try_post(b, link));
	rx_expect_counts(b, 4, 4, 4);
	rx_deliver_n(b, link, 4);
	rx_expect_counts(b, 4, 0, 4);
	/* A buffer that was taken and not reaped makes no room. */
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, rx_try_post(b, link));
	rx_reap(b, link);
	rx_post(b, link, 1);
	rx_expect_counts(b, 4, 1, 4);
	rx_reap_n(b, link, 3);
	rx_expect_counts(b, 4, 1, 1);
}

static void R1_bad_query(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 4);
	DAT_SRQ_PARAM param;

	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_srq_query(NULL, DAT_SRQ_FIELD_ALL, &param));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_srq_query(b->in->srq, DAT_SRQ_FIELD_ALL, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_srq_query(b->in->srq, 0x100, &param));
}

static void R2_held_per_ep(struct kunit *test)
{
	struct rx_bench *b = rx_open_polled(test, 16);
	struct rx_link *x = rx_link(b), *y = rx_link(b);

	rx_post(b, x, 10);
	KUNIT_EXPECT_EQ(test, rx_held(b, x), 0);
	rx_deliver_n(b, x, 3);
	rx_deliver_n(b, y, 2);
	KUNIT_EXPECT_EQ(test, rx_held(b, x), 3);
	KUNIT_EXPECT_EQ(test, rx_held(b, y), 2);
	rx_expect_counts(b, 16, 5, 10);
	rx_reap_n(b, x, 3);
	KUNIT_EXPECT_EQ(test, rx_held(b, x), 0);
	KUNIT_EXPECT_EQ(test, rx_held(b, y), 2);
	rx_reap_n(b, y, 2);
	KUNIT_EXPECT_EQ(test, rx_held(b, y), 0);
	rx_expect_counts(b, 16, 5, 5);
}

static void R3_null_pointers(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 8);
	struct rx_link *link = rx_link(b);
	DAT_COUNT n = -1, span = -1;

	rx_post(b, link, 2);
	rx_deliver_n(b, link, 2);
	KD_EXPECT_OK(test, dat_ep_recv_query(link->in, &n, NULL));
	KD_EXPECT_OK(test, dat_ep_recv_query(link->in, NULL, &span));
	KUNIT_EXPECT_EQ(test, n, 2);
	KUNIT_EXPECT_EQ(test, span, 2);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_recv_query(link->in, NULL, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ep_recv_query(NULL, &n, &span));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ep_recv_query((DAT_EP_HANDLE)b->in->srq, &n, &span));
}

/* Without an SRQ a buffer is allocated as soon as it is posted. */
static void R3_plain(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);

	rx_post(b, link, 2);
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 2);
	rx_connect(b, link);
	rx_post(b, link, 1);
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 3);
	rx_send_n(b, link, 1);
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 3);
	rx_reap(b, link);
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 2);
	rx_disconnect(b, link);
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 2);
	kd_expect_dto(test, b->in->recv_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_dto(test, b->in->recv_evd, 2, DAT_DTO_ERR_FLUSHED, NULL);
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 0);
}

struct reader {
	struct rx_bench *b;
	struct rx_link *link;
	u64 rounds;
	u64 want;
	u64 bad;
};

/* Query in a tight loop: every snapshot is consistent. */
static int read_counts(void *data)
{
	struct reader *r = data;

	while (!kthread_should_stop()) {
		DAT_COUNT n = -1, span = -2;
		DAT_SRQ_PARAM p = { };

		if (dat_ep_recv_query(r->link->in, &n, &span) || n < 0 ||
		    span < n || n > 32)
			r->bad++;
		if (r->b->in->srq &&
		    (dat_srq_query(r->b->in->srq, DAT_SRQ_FIELD_ALL, &p) ||
		     p.available_dto_count < 0 ||
		     p.available_dto_count > p.outstanding_dto_count ||
		     p.outstanding_dto_count > p.max_recv_dtos))
			r->bad++;
		WRITE_ONCE(r->rounds, r->rounds + 1);
		kd_wake();
		cond_resched();
	}
	return 0;
}

static bool has_read(void *data)
{
	struct reader *r = data;

	return READ_ONCE(r->rounds) >= r->want;
}

static void read_under_traffic(struct kunit *test, DAT_COUNT len)
{
	int n = kd_slow_kernel() ? 200 : 1000;
	struct rx_bench *b = rx_open(test, len);
	struct rx_link *link = rx_link(b);
	struct reader r = { b, link };
	struct task_struct *task;
	int i, burst;

	task = kthread_run(read_counts, &r, "rx_reader");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	for (i = 0; i < n; i += burst) {
		burst = 1 + i % 7;
		rx_post(b, link, burst);
		for (int j = 0; j < burst; j++) {
			KD_EXPECT_OK(test, rx_try_send(b, link));
			rx_sent(b);
		}
		r.want = READ_ONCE(r.rounds) + 1;
		kd_wait_until(has_read, &r, KD_TIMEOUT_MS);
		rx_reap_n(b, link, burst);
	}
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, r.bad, 0);
	KUNIT_EXPECT_GT(test, r.rounds, n / 7);
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 0);
}

static void R3_snapshot_srq(struct kunit *test)
{
	read_under_traffic(test, 32);
}

static void R3_snapshot_plain(struct kunit *test)
{
	read_under_traffic(test, 0);
}

static void R4_srq_disconnect(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 16);
	struct rx_link *x = rx_link(b), *y;
	u64 cookie;

	rx_post(b, x, 8);
	rx_deliver_n(b, x, 3);
	rx_disconnect(b, x);
	rx_expect_counts(b, 16, 5, 8);
	for (cookie = 0; cookie < 3; cookie++)
		KUNIT_EXPECT_EQ(test, rx_reap(b, x), cookie);
	kd_expect_no_event(test, b->in->recv_evd);
	rx_expect_counts(b, 16, 5, 5);

	/*
	 * Buffers that were never taken have stayed on the SRQ, in their order.
	 */
	y = rx_link(b);
	rx_post(b, y, 1);
	for (; cookie < 9; cookie++) {
		rx_deliver(b, y);
		KUNIT_EXPECT_EQ(test, rx_reap(b, y), cookie);
	}
	rx_expect_counts(b, 16, 0, 0);
}

static void R4_plain_flush(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_link(b);
	u64 cookie;

	rx_deliver_n(b, link, 3);
	rx_post(b, link, 5);
	rx_disconnect(b, link);
	for (cookie = 0; cookie < 3; cookie++)
		KUNIT_EXPECT_EQ(test, rx_reap(b, link), cookie);
	for (; cookie < 8; cookie++)
		kd_expect_dto(test, b->in->recv_evd, cookie,
			      DAT_DTO_ERR_FLUSHED, NULL);
	/* A receive that is posted after the end is flushed as well. */
	rx_post(b, link, 1);
	kd_expect_dto(test, b->in->recv_evd, 8, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_no_event(test, b->in->recv_evd);
}

/*
 * A message that is too long for its buffer ends the connection; the buffer is
 * not lost.
 */
static void too_long(struct kunit *test, DAT_COUNT len)
{
	struct rx_bench *b = rx_open(test, len);
	struct rx_link *link = rx_link(b);
	DAT_LMR_TRIPLET seg = kd_seg(b->out->buf, 0, RX_LEN * 4);
	DAT_EVENT event;

	rx_post(b, link, 2);
	KD_ASSERT_OK(test, dat_ep_post_send(link->out, 1, &seg, kd_cookie(0),
					    DAT_COMPLETION_DEFAULT_FLAG));
	kd_expect_event(test, b->in->conn_evd, DAT_CONNECTION_EVENT_BROKEN,
			NULL);
	kd_expect_event(test, b->in->recv_evd, DAT_DTO_COMPLETION_EVENT,
			&event);
	KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data
				   .user_cookie.as_64, 0);
	KUNIT_EXPECT_NE(test, (u32)event.event_data.dto_completion_event_data
				   .status, (u32)DAT_DTO_SUCCESS);
	if (!len)
		kd_expect_dto(test, b->in->recv_evd, 1, DAT_DTO_ERR_FLUSHED,
			      NULL);
	kd_expect_no_event(test, b->in->recv_evd);
	if (len)
		rx_expect_counts(b, len, 1, 1);
}

static void R4_too_long_srq(struct kunit *test)
{
	too_long(test, 8);
}

static void R4_too_long_plain(struct kunit *test)
{
	too_long(test, 0);
}

static void R5_free_unreaped_srq(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 8);
	struct rx_link *x = rx_link(b), *y;
	u32 seen = 0;
	int i;

	rx_post(b, x, 6);
	rx_deliver_n(b, x, 4);
	rx_reap(b, x);
	rx_expect_counts(b, 8, 2, 5);
	KD_EXPECT_OK(test, dat_ep_free(x->in));
	/*
	 * The buffers are on the SRQ as if they were never taken, and no event
	 * names the EP.
	 */
	rx_expect_counts(b, 8, 5, 5);
	rx_expect_empty(b, b->in->recv_evd);
	kd_expect_event(test, b->out->conn_evd,
			DAT_CONNECTION_EVENT_DISCONNECTED, NULL);

	y = rx_link(b);
	for (i = 0; i < 5; i++) {
		rx_deliver(b, y);
		seen |= BIT(rx_reap(b, y));
	}
	KUNIT_EXPECT_EQ(test, seen, GENMASK(5, 1));
	rx_expect_counts(b, 8, 0, 0);
}

/* Free an EP with messages under way, beside another EP that goes on. */
static void R5_free_in_traffic(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 32);
	struct rx_link *x = rx_link(b), *y = rx_link(b);
	int i;

	rx_post(b, x, 32);
	rx_deliver(b, y);
	for (i = 0; i < 8; i++)
		KD_ASSERT_OK(test, rx_try_send(b, x));
	KD_EXPECT_OK(test, dat_ep_free(x->in));
	kd_expect_disconnected(b->out, NULL);
	rx_wait_counts(b, 31, 32);
	kd_drain(b->out->req_evd);
	for (i = 0; i < 31; i++)
		rx_deliver(b, y);
	rx_reap_n(b, y, 32);
	rx_expect_counts(b, 32, 0, 0);
}

static void R5_free_unreaped_plain(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_link(b);

	rx_deliver_n(b, link, 3);
	rx_post(b, link, 2);
	KD_EXPECT_OK(test, dat_ep_free(link->in));
	kd_expect_no_event(test, b->in->recv_evd);
}

static void expect_overflow(struct rx_bench *b)
{
	rx_expect_async(b, DAT_ASYNC_ERROR_EVD_OVERFLOW, b->in->recv_evd,
			DAT_EVD_OVERFLOW_ERROR);
}

/* A full EVD keeps every receive, and has one overflow event per episode. */
static void R6_full_evd(struct kunit *test)
{
	struct kd_opts opts = { .srq_len = 32, .qlen = 4 };
	struct rx_bench *b;
	struct rx_link *link;
	u64 cookie = 0;
	int episode;

	b = rx_open_on(test, *(const char * const *)test->param_value, opts);
	link = rx_link(b);
	for (episode = 0; episode < 2; episode++) {
		rx_post(b, link, 16);
		rx_deliver_n(b, link, 4);
		rx_expect_quiet(b);
		rx_deliver_n(b, link, 12);
		expect_overflow(b);
		kd_expect_no_event(test, b->in->async_evd);
		for (int i = 0; i < 16; i++)
			KUNIT_EXPECT_EQ(test, rx_reap(b, link), cookie++);
		rx_expect_empty(b, b->in->recv_evd);
	}
	rx_expect_counts(b, 32, 0, 0);
}

static void R7_ignored_sizes(struct kunit *test)
{
	static const DAT_COUNT sizes[] = { DAT_HW_DEFAULT, 0, 1, INT_MAX };
	struct rx_bench *b = rx_open(test, 8);
	DAT_EP_ATTR attr = kd_ep_attr();
	struct rx_link *link;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		attr.max_recv_dtos = sizes[i];
		attr.max_recv_iov = sizes[i];
		link = rx_eps(b, &attr);
		rx_connect(b, link);
		rx_post(b, link, 2);
		rx_deliver_n(b, link, 2);
		rx_reap_n(b, link, 2);
		KD_EXPECT_OK(test, dat_ep_free(link->in));
		kd_expect_event(test, b->out->conn_evd,
				DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	}
}

static void R7_soft_at_creation(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 8);
	DAT_EP_ATTR attr = kd_ep_attr();
	struct rx_link *link;

	attr.srq_soft_hw = 1;
	link = rx_eps(b, &attr);
	rx_connect(b, link);
	rx_post(b, link, 8);
	rx_deliver(b, link);
	rx_expect_quiet(b);
	rx_deliver(b, link);
	rx_expect_soft(b, link);
	/* The hard watermark is infinite. */
	rx_deliver_n(b, link, 6);
	kd_expect_no_event(test, b->in->async_evd);
	rx_expect_empty(b, b->in->conn_evd);
	rx_reap_n(b, link, 8);
}

static void R7_bad_soft(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 8);
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_EP_HANDLE ep;

	attr.srq_soft_hw = -2;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_create_with_srq(b->in->ia, b->in->pz,
					     b->in->recv_evd, b->in->req_evd,
					     b->in->conn_evd, b->in->srq, &attr,
					     &ep));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_create_with_srq(b->in->ia, b->in->pz,
					     b->in->recv_evd, b->in->req_evd,
					     b->in->conn_evd, b->in->srq, NULL,
					     &ep));
}

static struct kunit_case ledger_cases[] = {
	KUNIT_CASE_PARAM(R1_example, kd_gen_ia),
	KUNIT_CASE_PARAM(R1_full_and_empty, kd_gen_ia),
	KUNIT_CASE_PARAM(R1_bad_query, kd_gen_ia),
	KUNIT_CASE_PARAM(R2_held_per_ep, kd_gen_ia),
	KUNIT_CASE_PARAM(R3_null_pointers, kd_gen_ia),
	KUNIT_CASE_PARAM(R3_plain, kd_gen_ia),
	KUNIT_CASE_PARAM(R3_snapshot_srq, kd_gen_ia),
	KUNIT_CASE_PARAM(R3_snapshot_plain, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_srq_disconnect, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_plain_flush, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_too_long_srq, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_too_long_plain, kd_gen_ia),
	KUNIT_CASE_PARAM(R5_free_unreaped_srq, kd_gen_ia),
	KUNIT_CASE_PARAM(R5_free_in_traffic, kd_gen_ia),
	KUNIT_CASE_PARAM(R5_free_unreaped_plain, kd_gen_ia),
	KUNIT_CASE_PARAM(R6_full_evd, kd_gen_ia),
	KUNIT_CASE_PARAM(R7_ignored_sizes, kd_gen_ia),
	KUNIT_CASE_PARAM(R7_soft_at_creation, kd_gen_ia),
	KUNIT_CASE_PARAM(R7_bad_soft, kd_gen_ia),
	{ }
};

KD_SUITE("kdapl_ledger", ledger_cases, "receive accounting");
