// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clauses W2 to W5, W7: the high watermarks of an Endpoint. Most cases run with
 * an SRQ and without one: "held" means the same in both.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include "call.h"
#include "ep_states.h"
#include "srq_fixture.h"

#define INF DAT_WATERMARK_INFINITE

static KD_CHOICES(wm_gen_params, kd_gen_ia_and, "plain", "SRQ")

static DAT_COUNT wm_srq_len(struct kunit *test)
{
	const struct kd_param *p = test->param_value;

	return p->choice ? 32 : 0;
}

static struct rx_bench *wm_open(struct kunit *test)
{
	return rx_open(test, wm_srq_len(test));
}

static void set_wm(struct rx_bench *b, struct rx_link *link, DAT_COUNT soft,
		   DAT_COUNT hard)
{
	KD_ASSERT_OK(b->test, dat_ep_set_watermark(link->in, soft, hard));
}

/* Deliver one more message that is not reaped; there is a buffer for it. */
static void wm_take(struct rx_bench *b, struct rx_link *link, int n)
{
	if (b->in->srq)
		rx_post(b, link, n);
	rx_deliver_n(b, link, n);
}

/* Expect BROKEN on the receiving side and DISCONNECTED on the peer. */
static void wm_expect_broken(struct rx_bench *b, struct rx_link *link)
{
	DAT_EVENT event;

	rx_expect_broken(b, link);
	KUNIT_EXPECT_TRUE(b->test,
			  kd_wait_state(link->in, DAT_EP_STATE_DISCONNECTED));
	kd_expect_disconnected(b->out, &event);
	KUNIT_EXPECT_PTR_EQ(b->test,
			    event.event_data.connect_event_data.ep_handle,
			    link->out);
}

/* Send a message that the hard mark does not allow. */
static void wm_break(struct rx_bench *b, struct rx_link *link)
{
	rx_post(b, link, 1);
	KD_ASSERT_OK(b->test, rx_try_send(b, link));
	wm_expect_broken(b, link);
}

static void W2_soft_once(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	set_wm(b, link, 2, INF);
	wm_take(b, link, 2);
	kd_expect_no_event(test, b->in->async_evd);
	wm_take(b, link, 1);
	rx_expect_soft(b, link);
	wm_take(b, link, 2);
	/*
	 * Falling below the mark and rising above it again has no second event.
	 */
	rx_reap_n(b, link, 5);
	wm_take(b, link, 4);
	kd_expect_no_event(test, b->in->async_evd);
	set_wm(b, link, 4, INF);
	rx_expect_quiet(b);
	wm_take(b, link, 1);
	rx_expect_soft(b, link);
	kd_expect_no_event(test, b->in->async_evd);
	rx_expect_empty(b, b->in->conn_evd);
}

static void W2_in_the_call(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	wm_take(b, link, 3);
	set_wm(b, link, 3, INF);
	rx_expect_quiet(b);
	set_wm(b, link, 2, INF);
	rx_expect_soft(b, link);
	/*
	 * Each setting has its event, even if the event before was not reaped.
	 */
	set_wm(b, link, 2, INF);
	set_wm(b, link, 0, INF);
	rx_expect_soft(b, link);
	rx_expect_soft(b, link);
	kd_expect_no_event(test, b->in->async_evd);
}

static void W2_reaping_makes_room(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	set_wm(b, link, 1, 1);
	for (int i = 0; i < 10; i++) {
		wm_take(b, link, 1);
		rx_reap(b, link);
	}
	kd_expect_no_event(test, b->in->async_evd);
	rx_expect_empty(b, b->in->conn_evd);
}

static bool has_fired(struct kunit *test, DAT_EP_HANDLE ep)
{
	DAT_BOOLEAN fired = DAT_FALSE;

	KD_EXPECT_OK(test, kdat_ep_query_hard_hw(ep, &fired));
	return fired;
}

static void W3_hard(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	set_wm(b, link, INF, 2);
	wm_take(b, link, 2);
	KUNIT_EXPECT_FALSE(test, has_fired(test, link->in));
	wm_break(b, link);
	/* Received messages can still be reaped. */
	rx_reap_n(b, link, 3);
	kd_drain(b->out->req_evd);
	kd_expect_no_event(test, b->in->recv_evd);
	kd_expect_no_event(test, b->in->conn_evd);
	rx_expect_empty(b, b->out->conn_evd);
	rx_expect_quiet(b);
	/* Also when nothing is held any more. */
	KUNIT_EXPECT_TRUE(test, has_fired(test, link->in));
	KUNIT_EXPECT_FALSE(test, has_fired(test, link->out));
	rx_reset(b, link);
	KUNIT_EXPECT_FALSE(test, has_fired(test, link->in));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_ep_query_hard_hw(link->in, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, kdat_ep_query_hard_hw(NULL, NULL));
}

static void W3_in_the_call(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	wm_take(b, link, 3);
	set_wm(b, link, INF, 3);
	kd_expect_no_event(test, b->in->conn_evd);
	set_wm(b, link, INF, 2);
	KUNIT_EXPECT_EQ(test, (u32)ep_state(test, link->in), (u32)DAT_EP_STATE_DISCONNECTED);
	wm_expect_broken(b, link);
	set_wm(b, link, INF, 1);
	rx_reap_n(b, link, 3);
	kd_expect_no_event(test, b->in->conn_evd);
}

/*
 * The soft mark fires inside the call; the hard mark is checked all the same.
 */
static void W3_soft_fires_in_the_call(struct kunit *test)
{
	struct rx_bench *b = rx_open_polled(test, 32);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, 8);
	rx_deliver_n(b, link, 3);
	set_wm(b, link, 1, 5);
	rx_expect_soft(b, link);
	/* From here on no call and no upcall polls. */
	KD_ASSERT_OK(test, rx_try_send(b, link));
	KD_ASSERT_OK(test, rx_try_send(b, link));
	KD_ASSERT_OK(test, rx_try_send(b, link));
	wm_expect_broken(b, link);
}

/* Everything outstanding on both sides is flushed, in order. */
static void W3_flushes(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_link(b);
	u64 cookie;
	int i;

	set_wm(b, link, INF, 0);
	rx_post(b, link, 6);
	KD_ASSERT_OK(test, rx_try_send(b, link));
	wm_expect_broken(b, link);
	rx_reap(b, link);
	for (cookie = 1; cookie < 6; cookie++)
		kd_expect_dto(test, b->in->recv_evd, cookie,
			      DAT_DTO_ERR_FLUSHED, NULL);
	kd_drain(b->out->req_evd);
	for (i = 0; i < 3; i++) {
		KD_ASSERT_OK(test, rx_try_send(b, link));
		kd_expect_dto(test, b->out->req_evd, b->sends - 1,
			      DAT_DTO_ERR_FLUSHED, NULL);
	}
	kd_expect_no_event(test, b->in->recv_evd);
}

/*
 * Only that EP is broken: other EPs of the SRQ and its counts are not touched.
 */
static void W3_others_intact(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 32);
	struct rx_link *x = rx_link(b), *y = rx_link(b);

	set_wm(b, x, INF, 1);
	rx_post(b, x, 20);
	rx_deliver_n(b, y, 4);
	rx_deliver(b, x);
	KD_ASSERT_OK(test, rx_try_send(b, x));
	wm_expect_broken(b, x);
	kd_drain(b->out->req_evd);
	rx_wait_counts(b, 14, 20);
	rx_deliver_n(b, y, 4);
	KUNIT_EXPECT_EQ(test, rx_held(b, y), 8);
	KUNIT_EXPECT_EQ(test, rx_held(b, x), 2);
	rx_reap_n(b, y, 4);
	rx_reap_n(b, x, 2);
	rx_reap_n(b, y, 4);
	rx_expect_counts(b, 32, 10, 10);
	rx_pass_n(b, y, 10);
	rx_expect_counts(b, 32, 0, 0);
	rx_expect_empty(b, b->in->conn_evd);
}

static void W3_independent_of_soft(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	set_wm(b, link, 1, 3);
	wm_take(b, link, 1);
	rx_expect_quiet(b);
	wm_take(b, link, 1);
	rx_expect_soft(b, link);
	wm_take(b, link, 1);
	rx_expect_empty(b, b->in->conn_evd);
	wm_break(b, link);
	kd_expect_no_event(test, b->in->async_evd);
	rx_reap_n(b, link, 4);
}

/* A soft mark above the hard mark has nothing to report. */
static void W3_below_soft(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	set_wm(b, link, 5, 1);
	wm_take(b, link, 1);
	wm_break(b, link);
	kd_expect_no_event(test, b->in->async_evd);
	rx_reap_n(b, link, 2);
}

static void W4_zero(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	set_wm(b, link, 0, INF);
	rx_expect_quiet(b);
	wm_take(b, link, 1);
	rx_expect_soft(b, link);
	rx_reap(b, link);
	set_wm(b, link, INF, 0);
	kd_expect_no_event(test, b->in->conn_evd);
	wm_break(b, link);
	rx_reap(b, link);
}

static void W4_infinite(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	set_wm(b, link, 1, 1);
	set_wm(b, link, INF, INF);
	wm_take(b, link, 30);
	kd_expect_no_event(test, b->in->async_evd);
	rx_expect_empty(b, b->in->conn_evd);
	set_wm(b, link, INT_MAX, INT_MAX);
	kd_expect_no_event(test, b->in->async_evd);
	rx_expect_empty(b, b->in->conn_evd);
	rx_reap_n(b, link, 30);
}

static void W4_bad_values(struct kunit *test)
{
	static const DAT_COUNT bad[] = { -2, INT_MIN };
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);
	int i;

	set_wm(b, link, 1, 2);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      dat_ep_set_watermark(link->in, bad[i], INF));
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      dat_ep_set_watermark(link->in, INF, bad[i]));
	}
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ep_set_watermark(NULL, 1, 1));
	/* Nothing has changed. */
	wm_take(b, link, 1);
	rx_expect_quiet(b);
	wm_take(b, link, 1);
	rx_expect_soft(b, link);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      dat_ep_set_watermark(link->in, 0, bad[i]));
	rx_expect_quiet(b);
	wm_break(b, link);
	rx_reap_n(b, link, 3);
}

/* Watermarks can be set in every state of an EP. */
static void W4_every_state(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;
	int reach;

	for (reach = 0; reach < EP_REACHABLE; reach++) {
		struct ep_stage *stage = ep_stage_enter(test, ia, reach);

		KD_EXPECT_OK(test, dat_ep_set_watermark(stage->ep, 3, 5));
		KD_EXPECT_OK(test, dat_ep_set_watermark(stage->ep, INF, INF));
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      dat_ep_set_watermark(stage->ep, -2, 1));
		KUNIT_EXPECT_EQ(test, (u32)ep_state(test, stage->ep),
				(u32)ep_reach_state[reach]);
		ep_stage_leave(stage);
	}
}

static void W4_before_connecting(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_eps(b, NULL);

	set_wm(b, link, 0, 1);
	rx_connect(b, link);
	rx_expect_quiet(b);
	wm_take(b, link, 1);
	rx_expect_soft(b, link);
	wm_break(b, link);
	rx_reap_n(b, link, 2);
}

/*
 * Over a reset a soft mark that has fired stays disarmed; the hard mark is in
 * force for the new connection.
 */
static void W4_survives_reset(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);
	int i;

	set_wm(b, link, 0, 1);
	for (i = 0; i < 3; i++) {
		wm_take(b, link, 1);
		if (!i)
			rx_expect_soft(b, link);
		wm_break(b, link);
		rx_reap_n(b, link, 2);
		kd_drain(b->out->req_evd);
		kd_expect_no_event(test, b->in->async_evd);
		rx_reset(b, link);
		rx_connect(b, link);
	}
	set_wm(b, link, 0, INF);
	wm_take(b, link, 2);
	rx_expect_soft(b, link);
	kd_expect_no_event(test, b->in->conn_evd);
}

/* Over a reset a soft mark that has not fired stays armed. */
static void W4_armed_over_reset(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	set_wm(b, link, 1, INF);
	wm_take(b, link, 1);
	rx_reap(b, link);
	rx_disconnect(b, link);
	rx_reset(b, link);
	rx_connect(b, link);
	rx_expect_quiet(b);
	wm_take(b, link, 1);
	rx_expect_quiet(b);
	wm_take(b, link, 1);
	rx_expect_soft(b, link);
}

/*
 * Buffers that are held from the connection before break the new one as soon as
 * it is established.
 */
static void W3_held_from_before(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	wm_take(b, link, 3);
	rx_disconnect(b, link);
	/* It was not the mark that has ended the connection. */
	set_wm(b, link, INF, 1);
	KUNIT_EXPECT_FALSE(test, has_fired(test, link->in));
	rx_reset(b, link);
	set_wm(b, link, INF, 2);
	KUNIT_EXPECT_EQ(test, (u32)ep_state(test, link->in), (u32)DAT_EP_STATE_UNCONNECTED);
	rx_connect(b, link);
	wm_expect_broken(b, link);
	rx_reap_n(b, link, 3);
	kd_expect_no_event(test, b->in->conn_evd);
	/* After they were reaped the new connection is not broken. */
	rx_reset(b, link);
	rx_connect(b, link);
	wm_take(b, link, 2);
	kd_expect_no_event(test, b->in->conn_evd);
}

static void W5_payload(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);
	DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_HANDLE_TYPE type;
	DAT_EVENT event;

	set_wm(b, link, 0, INF);
	wm_take(b, link, 1);
	kd_expect_event(test, b->in->async_evd, 0x08202, &event);
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_PTR_EQ(test, data->dat_handle, (DAT_HANDLE)link->in);
	KUNIT_EXPECT_EQ(test, data->reason, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	KD_EXPECT_OK(test, dat_get_handle_type(data->dat_handle, &type));
	KUNIT_EXPECT_EQ(test, (u32)type, (u32)DAT_HANDLE_TYPE_EP);
	kd_expect_no_event(test, b->out->async_evd);
}

/* An event that was not reaped is withdrawn when the EP is freed. */
static void W5_freed_unreaped(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);

	wm_take(b, link, 1);
	set_wm(b, link, 0, INF);
	set_wm(b, link, 0, INF);
	KD_EXPECT_OK(test, dat_ep_free(link->in));
	kd_expect_no_event(test, b->in->async_evd);
}

/* Marks are checked although nothing polls the EVD and no EVD has an upcall. */
static void W2_unwatched(struct kunit *test)
{
	const struct kd_param *p = test->param_value;
	struct rx_bench *b;
	struct rx_link *link;

	b = rx_open_on(test, p->ia, (struct kd_opts) {
		.srq_len = wm_srq_len(test), .polled = true });
	link = rx_link(b);
	rx_post(b, link, 3);
	set_wm(b, link, 0, 1);
	rx_send_n(b, link, 1);
	rx_expect_soft(b, link);
	KD_ASSERT_OK(test, rx_try_send(b, link));
	wm_expect_broken(b, link);
}

/* While both marks are infinite nothing is reported, however much arrives. */
static void W7_silent(struct kunit *test)
{
	struct rx_bench *b = wm_open(test);
	struct rx_link *link = rx_link(b);
	int i;

	for (i = 0; i < 100; i++) {
		wm_take(b, link, 1);
		if (i >= 20)
			rx_reap(b, link);
	}
	rx_reap_n(b, link, 20);
	rx_expect_quiet(b);
	rx_expect_empty(b, b->in->conn_evd);
}

/* ---- From a hard interrupt, with completions not looked at yet ----------- */

struct hard_calls {
	DAT_EP_HANDLE ep;
	DAT_SRQ_HANDLE srq;
	DAT_COUNT n;
	DAT_COUNT span;
	DAT_RETURN query;
	DAT_RETURN low;
	DAT_RETURN high;
};

static void make_hard_calls(void *data)
{
	struct hard_calls *h = data;

	h->query = dat_ep_recv_query(h->ep, &h->n, &h->span);
	h->low = dat_srq_set_lw(h->srq, 32);
	h->high = dat_ep_set_watermark(h->ep, 0, 1);
}

static void C1_from_hard_irq(struct kunit *test)
{
	struct rx_bench *b = rx_open_polled(test, 32);
	struct rx_link *link = rx_link(b);
	struct hard_calls h = { .ep = link->in, .srq = b->in->srq };

	rx_post(b, link, 4);
	rx_deliver_n(b, link, 2);
	rx_send_n(b, link, 1);
	kd_call_in_interrupt(test, make_hard_calls, &h);
	KD_EXPECT_OK(test, h.query);
	KD_EXPECT_OK(test, h.low);
	KD_EXPECT_OK(test, h.high);
	KUNIT_EXPECT_GE(test, h.n, 2);
	KUNIT_EXPECT_EQ(test, h.n, h.span);
	rx_expect_low(b);
	rx_expect_soft(b, link);
	wm_expect_broken(b, link);
	/* Over iWARP the third message may still be under way. */
	rx_reap_n(b, link, 2);
}

static struct kunit_case watermark_cases[] = {
	KUNIT_CASE_PARAM(C1_from_hard_irq, kd_gen_ia),
	KUNIT_CASE_PARAM(W2_soft_once, wm_gen_params),
	KUNIT_CASE_PARAM(W2_in_the_call, wm_gen_params),
	KUNIT_CASE_PARAM(W2_reaping_makes_room, wm_gen_params),
	KUNIT_CASE_PARAM(W2_unwatched, wm_gen_params),
	KUNIT_CASE_PARAM(W3_hard, wm_gen_params),
	KUNIT_CASE_PARAM(W3_in_the_call, wm_gen_params),
	KUNIT_CASE_PARAM(W3_soft_fires_in_the_call, kd_gen_ia),
	KUNIT_CASE_PARAM(W3_flushes, kd_gen_ia),
	KUNIT_CASE_PARAM(W3_others_intact, kd_gen_ia),
	KUNIT_CASE_PARAM(W3_independent_of_soft, wm_gen_params),
	KUNIT_CASE_PARAM(W3_below_soft, wm_gen_params),
	KUNIT_CASE_PARAM(W3_held_from_before, wm_gen_params),
	KUNIT_CASE_PARAM(W4_zero, wm_gen_params),
	KUNIT_CASE_PARAM(W4_infinite, wm_gen_params),
	KUNIT_CASE_PARAM(W4_bad_values, wm_gen_params),
	KUNIT_CASE_PARAM(W4_every_state, kd_gen_ia),
	KUNIT_CASE_PARAM(W4_before_connecting, wm_gen_params),
	KUNIT_CASE_PARAM(W4_survives_reset, wm_gen_params),
	KUNIT_CASE_PARAM(W4_armed_over_reset, wm_gen_params),
	KUNIT_CASE_PARAM(W5_payload, wm_gen_params),
	KUNIT_CASE_PARAM(W5_freed_unreaped, wm_gen_params),
	KUNIT_CASE_PARAM(W7_silent, wm_gen_params),
	{ }
};

KD_SUITE("kdapl_watermark", watermark_cases, "the high watermarks of an Endpoint");
