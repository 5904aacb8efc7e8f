// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clauses R1, R3, R5, W1, W2 and W3 while the receive EVD is full: completions that
 * wait in the completion queue count as those that are queued. Nobody dequeues, and
 * the EVD has no upcall.
 */
#include <linux/module.h>
#include "srq_fixture.h"

#define EVD_LEN		2	/* the shortest on which a second event waits */
#define BUFFERS		10

/* Open a bench whose receive EVD has EVD_LEN places, with an EP that is not connected. */
static struct rx_link *open_full(struct kunit *test, DAT_COUNT srq_len,
				 struct rx_bench **b)
{
	*b = rx_open_polled(test, srq_len);
	(*b)->in->recv_evd = kd_evd((*b)->in, DAT_EVD_DTO_FLAG, EVD_LEN,
				    DAT_UPCALL_DISABLE);
	return rx_eps(*b, NULL);
}

static void expect_overflow(struct rx_bench *b)
{
	rx_expect_async(b, DAT_ASYNC_ERROR_EVD_OVERFLOW, b->in->recv_evd,
			DAT_EVD_OVERFLOW_ERROR);
}

/* The same with BUFFERS buffers and a connection, of which 6 messages have come. */
static struct rx_link *open_with_six(struct kunit *test, struct rx_bench **b)
{
	struct rx_link *link = open_full(test, BUFFERS, b);

	rx_post(*b, link, BUFFERS);
	rx_connect(*b, link);
	rx_send_n(*b, link, 6);
	rx_wait_counts(*b, BUFFERS - 6, BUFFERS);
	return link;
}

static void R1_behind_a_full_evd(struct kunit *test)
{
	struct rx_bench *b;
	struct rx_link *link = open_with_six(test, &b);

	KUNIT_EXPECT_EQ(test, rx_held(b, link), 6);
	expect_overflow(b);
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_srq_resize(b->in->srq, BUFFERS - 1));
	rx_reap_n(b, link, 3);
	rx_expect_counts(b, BUFFERS, BUFFERS - 6, BUFFERS - 3);
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 3);
	rx_reap_n(b, link, 3);
	rx_expect_empty(b, b->in->recv_evd);
	rx_expect_counts(b, BUFFERS, BUFFERS - 6, BUFFERS - 6);
}

static void W1_W2_behind_a_full_evd(struct kunit *test)
{
	struct rx_bench *b;
	struct rx_link *link = open_with_six(test, &b);

	expect_overflow(b);
	KD_ASSERT_OK(test, dat_srq_set_lw(b->in->srq, BUFFERS - 6));
	rx_expect_quiet(b);
	/* No call looks at the EVD from here on. */
	rx_send_n(b, link, 1);
	rx_expect_low(b);
	KD_ASSERT_OK(test, dat_ep_set_watermark(link->in, 7,
						DAT_WATERMARK_INFINITE));
	rx_expect_quiet(b);
	rx_send_n(b, link, 1);
	rx_expect_soft(b, link);
	kd_expect_no_event(test, b->in->async_evd);
}

/* The connection breaks behind the full EVD; then all its messages are reaped. */
static void hard_mark(struct kunit *test, DAT_COUNT srq_len)
{
	struct rx_bench *b;
	struct rx_link *link = open_full(test, srq_len, &b);

	rx_post(b, link, BUFFERS);
	KD_ASSERT_OK(test, dat_ep_set_watermark(link->in, DAT_WATERMARK_INFINITE,
						6));
	rx_connect(b, link);
	rx_send_n(b, link, 6);
	kd_expect_no_event(test, b->in->conn_evd);
	rx_send_n(b, link, 1);
	kd_expect_event(test, b->in->conn_evd, DAT_CONNECTION_EVENT_BROKEN, NULL);
	rx_reap_n(b, link, 7);
	kd_expect_no_event(test, b->in->conn_evd);
	if (srq_len) {
		rx_expect_counts(b, BUFFERS, BUFFERS - 7, BUFFERS - 7);
		return;
	}
	for (u64 i = 7; i < BUFFERS; i++)
		kd_expect_dto(test, b->in->recv_evd, i, DAT_DTO_ERR_FLUSHED, NULL);
}

static void W3_behind_a_full_evd_srq(struct kunit *test)
{
	hard_mark(test, BUFFERS);
}

static void W3_behind_a_full_evd_plain(struct kunit *test)
{
	hard_mark(test, 0);
}

/* What waits behind the full EVD goes to another one with the Endpoint. */
static void M3_behind_a_full_evd(struct kunit *test)
{
	struct rx_bench *b;
	struct rx_link *link = open_full(test, BUFFERS, &b);
	DAT_EVD_HANDLE full = b->in->recv_evd;
	DAT_EP_PARAM param = { };

	rx_post(b, link, BUFFERS);
	rx_connect(b, link);
	rx_send_n(b, link, 6);
	rx_wait_counts(b, BUFFERS - 6, BUFFERS);
	rx_disconnect(b, link);
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 6);
	rx_reset(b, link);
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 6);
	b->in->recv_evd = kd_evd(b->in, DAT_EVD_DTO_FLAG, BUFFERS,
				 DAT_UPCALL_DISABLE);
	param.recv_evd_handle = b->in->recv_evd;
	KD_ASSERT_OK(test, dat_ep_modify(link->in, DAT_EP_FIELD_RECV_EVD_HANDLE,
					 &param));
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 6);
	KUNIT_EXPECT_EQ(test, kd_drain(full), 0);
	KD_EXPECT_OK(test, dat_evd_free(full));
	rx_expect_counts(b, BUFFERS, BUFFERS - 6, BUFFERS);
	rx_reap_n(b, link, 6);
	rx_expect_counts(b, BUFFERS, BUFFERS - 6, BUFFERS - 6);
}

/* The buffers behind the full EVD go back on the SRQ, and others receive into them. */
static void R5_behind_a_full_evd(struct kunit *test)
{
	struct rx_bench *b;
	struct rx_link *link = open_full(test, BUFFERS, &b), *other;
	u64 seen = 0;
	int i;

	rx_post(b, link, BUFFERS);
	rx_connect(b, link);
	rx_send_n(b, link, 6);
	rx_wait_counts(b, BUFFERS - 6, BUFFERS);
	other = rx_link(b);
	KD_ASSERT_OK(test, dat_ep_free(link->in));
	rx_expect_counts(b, BUFFERS, BUFFERS, BUFFERS);
	rx_expect_empty(b, b->in->recv_evd);
	for (i = 0; i < BUFFERS; i++) {
		rx_deliver(b, other);
		seen |= BIT_ULL(rx_reap(b, other));
	}
	KUNIT_EXPECT_EQ(test, seen, BIT_ULL(BUFFERS) - 1);
	rx_expect_counts(b, BUFFERS, 0, 0);
}

static struct kunit_case full_evd_cases[] = {
	KUNIT_CASE_PARAM(R1_behind_a_full_evd, kd_gen_ia),
	KUNIT_CASE_PARAM(W1_W2_behind_a_full_evd, kd_gen_ia),
	KUNIT_CASE_PARAM(W3_behind_a_full_evd_srq, kd_gen_ia),
	KUNIT_CASE_PARAM(W3_behind_a_full_evd_plain, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_behind_a_full_evd, kd_gen_ia),
	KUNIT_CASE_PARAM(R5_behind_a_full_evd, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-full-evd", full_evd_cases, "receive accounting behind a full EVD");
