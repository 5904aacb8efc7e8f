// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The state machine of an Endpoint, row by row (kdapl-api.md 3.1): which calls
 * each state allows and what becomes of it, and the order of events (N3).
 */
#include <linux/module.h>
#include "ep_states.h"

#define TIMEOUT		(5 * USEC_PER_SEC)

enum ep_call {
	CALL_CONNECT,
	CALL_GRACEFUL,
	CALL_ABRUPT,
	CALL_RESET,
	CALL_SEND,
	CALL_RECV,
	CALL_RSP,
	CALL_FREE,
	CALLS
};

static const char * const call_names[CALLS] = {
	"connect", "disconnect gracefully", "disconnect abruptly", "reset",
	"post_send", "post_recv", "rsp_create", "free"
};

/* The state after the call; NO: INVALID_STATE and nothing changes. */
#define NO	-1
#define GONE	-2
#define SAME	-3
#define SKIP	-4			/* depends on attributes, not on state */
#define ACTIVE	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING
#define DOWN	DAT_EP_STATE_DISCONNECTED
#define FRESH	DAT_EP_STATE_UNCONNECTED
#define HELD	DAT_EP_STATE_RESERVED

/* Columns: connect, graceful, abrupt, reset, send, recv, rsp, free. */
static const int after[EP_REACHABLE][CALLS] = {
	[EP_UNCONNECTED] = { ACTIVE, NO, NO, SAME, NO, SAME, HELD, GONE },
	[EP_RESERVED] = { NO, NO, NO, NO, NO, SAME, NO, NO },
	[EP_PASSIVE_PENDING] = { NO, NO, NO, NO, NO, SAME, NO, NO },
	[EP_TENTATIVE_PENDING] = { NO, NO, NO, NO, SKIP, SKIP, NO, NO },
	[EP_ACTIVE_PENDING] = { NO, DOWN, DOWN, NO, NO, SAME, NO, GONE },
	[EP_COMPLETION_PENDING] = { NO, DOWN, DOWN, NO, NO, SAME, NO, GONE },
	[EP_CONNECTED] = { NO, DOWN, DOWN, NO, SAME, SAME, NO, GONE },
	[EP_DISCONNECT_PENDING] = { NO, SAME, DOWN, NO, NO, SAME, NO, GONE },
	[EP_DISCONNECTED] = { NO, SAME, SAME, FRESH, SAME, SAME, NO, GONE },
};

static DAT_RETURN make_call(struct ep_stage *s, enum ep_call call)
{
	DAT_LMR_TRIPLET seg = kd_seg(s->side->buf, 0, 64);
	DAT_RSP_HANDLE rsp;

	switch (call) {
	case CALL_CONNECT:
		return dat_ep_connect(s->ep, s->in->addr, kd_port(), TIMEOUT, 0,
				      NULL, DAT_QOS_BEST_EFFORT, 0);
	case CALL_GRACEFUL:
		return dat_ep_disconnect(s->ep, DAT_CLOSE_GRACEFUL_FLAG);
	case CALL_ABRUPT:
		return dat_ep_disconnect(s->ep, DAT_CLOSE_ABRUPT_FLAG);
	case CALL_RESET:
		return dat_ep_reset(s->ep);
	case CALL_SEND:
		return dat_ep_post_send(s->ep, 1, &seg, kd_cookie(1), 0);
	case CALL_RECV:
		return dat_ep_post_recv(s->ep, 1, &seg, kd_cookie(2), 0);
	case CALL_RSP:
		return dat_rsp_create(s->side->ia, kd_port(), s->ep,
				      s->side->cr_evd, &rsp);
	default:
		return dat_ep_free(s->ep);
	}
}

static const char *ia_name(struct kunit *test)
{
	return *(const char * const *)test->param_value;
}

static void forbidden_calls(struct kunit *test)
{
	struct ep_stage *s;
	int reach, call;
	DAT_RETURN ret;

	for (reach = 0; reach < EP_REACHABLE; reach++) {
		s = ep_stage_enter(test, ia_name(test), reach);
		if (!s)
			continue;
		for (call = 0; call < CALLS; call++) {
			if (after[reach][call] != NO)
				continue;
			ret = make_call(s, call);
			KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret),
					    (u32)DAT_INVALID_STATE,
					    "%s in state %d", call_names[call],
					    ep_reach_state[reach]);
			KUNIT_EXPECT_EQ(test, (int)ep_state(test, s->ep),
					(int)ep_reach_state[reach]);
		}
		ep_stage_leave(s);
	}
}

/* DISCONNECTED comes if the call ended something. */
static void expect_after(struct ep_stage *s, enum ep_reach reach,
			 enum ep_call call)
{
	int want = after[reach][call];
	bool came;

	if (want == SAME)
		want = ep_reach_state[reach];
	if (want == GONE) {
		KD_EXPECT_RET(s->test, DAT_INVALID_HANDLE,
			      dat_ep_get_status(s->ep, NULL, NULL, NULL));
		return;
	}
	came = kd_wait_state(s->ep, want);
	KUNIT_EXPECT_TRUE_MSG(s->test, came,
			      "%s in state %d leads to %d, not %d",
			      call_names[call], ep_reach_state[reach],
			      ep_state(s->test, s->ep), want);
	if (want == DOWN && reach != EP_DISCONNECTED)
		kd_expect_event(s->test, s->side->conn_evd,
				DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	if (reach == EP_DISCONNECTED)
		kd_expect_no_event(s->test, s->side->conn_evd);
}

static void allowed_calls(struct kunit *test)
{
	struct ep_stage *s;
	int reach, call;
	DAT_RETURN ret;

	for (reach = 0; reach < EP_REACHABLE; reach++) {
		for (call = 0; call < CALLS; call++) {
			if (after[reach][call] == NO ||
			    after[reach][call] == SKIP)
				continue;
			s = ep_stage_enter(test, ia_name(test), reach);
			if (!s)
				break;
			ret = make_call(s, call);
			KUNIT_EXPECT_EQ_MSG(test, ret, DAT_SUCCESS,
					    "%s in state %d", call_names[call],
					    ep_reach_state[reach]);
			expect_after(s, reach, call);
			ep_stage_leave(s);
		}
	}
}

/* Only an UNCONNECTED EP may accept a request that came without one. */
static void accept_in_every_state(struct kunit *test)
{
	struct kd_side *other, asking;
	struct ep_stage *s;
	DAT_CR_HANDLE cr;
	DAT_RETURN ret;
	u16 port;
	int reach;

	for (reach = 0; reach < EP_REACHABLE; reach++) {
		s = reach == EP_COMPLETION_PENDING ? NULL :
			ep_stage_enter(test, ia_name(test), reach);
		if (!s)
			continue;
		other = s->side == s->in ? s->out : s->in;
		asking = *other;
		asking.ep = kd_ep(other, NULL);
		port = kd_port();
		kd_psp(s->side, port, DAT_PSP_CONSUMER_FLAG);
		kd_connect_start(&asking, s->side, port);
		cr = kd_expect_cr(s->side);
		ret = dat_cr_accept(cr, s->ep, 0, NULL);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret),
				    (u32)(reach == EP_UNCONNECTED ?
					  DAT_SUCCESS : DAT_INVALID_STATE),
				    "state %d", ep_reach_state[reach]);
		if (ret != DAT_SUCCESS)
			KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
		ep_stage_leave(s);
	}
}

static void unknown_close_flags(struct kunit *test)
{
	struct ep_stage *s = ep_stage_enter(test, ia_name(test), EP_CONNECTED);

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, dat_ep_disconnect(s->ep, 2));
	KUNIT_EXPECT_EQ(test, (int)ep_state(test, s->ep),
			(int)DAT_EP_STATE_CONNECTED);
}

/* ---- Ends of a connection ------------------------------------------------- */

static void reset_and_connect_again(struct kunit *test)
{
	struct ep_stage *s;
	int i;

	s = ep_stage_enter(test, ia_name(test), EP_DISCONNECTED);
	for (i = 0; i < 5; i++) {
		KD_ASSERT_OK(test, dat_ep_reset(s->in->ep));
		KD_ASSERT_OK(test, dat_ep_reset(s->out->ep));
		kd_connect_pair(s->out, s->in);
		kd_recv(s->in, 0, 64, i);
		kd_send(s->out, 0, 64, i);
		kd_expect_dto(test, s->in->recv_evd, i, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, s->out->req_evd, i, DAT_DTO_SUCCESS, NULL);
		kd_disconnect(s->in, s->out);
	}
}

static void freeing_disconnects_the_peer(struct kunit *test)
{
	struct ep_stage *s = ep_stage_enter(test, ia_name(test), EP_CONNECTED);

	KD_ASSERT_OK(test, dat_ep_free(s->in->ep));
	kd_expect_event(test, s->out->conn_evd,
			DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(s->out->ep, DOWN));
	kd_expect_no_event(test, s->in->conn_evd);
}

static void get_status_tells_who_is_idle(struct kunit *test)
{
	struct ep_stage *s = ep_stage_enter(test, ia_name(test), EP_CONNECTED);
	DAT_BOOLEAN recv = DAT_FALSE, request = DAT_FALSE;

	KD_EXPECT_OK(test, dat_ep_get_status(s->ep, NULL, &recv, &request));
	KUNIT_EXPECT_EQ(test, (int)recv, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)request, DAT_TRUE);
	kd_recv(s->in, 0, 64, 1);
	KD_EXPECT_OK(test, dat_ep_get_status(s->ep, NULL, &recv, &request));
	KUNIT_EXPECT_EQ(test, (int)recv, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)request, DAT_TRUE);
	kd_send(s->out, 0, 64, 2);
	kd_expect_dto(test, s->in->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	KD_EXPECT_OK(test, dat_ep_get_status(s->ep, NULL, &recv, NULL));
	KUNIT_EXPECT_EQ(test, (int)recv, DAT_TRUE);
}

/* ---- Order of events (N3) -------------------------------------------------- */

#define MESSAGES 16

/* Takes everything up to the end of the connection off a merged EVD. */
static void expect_in_order(struct kunit *test, DAT_EVD_HANDLE evd,
			    unsigned int *success)
{
	bool established = false, flushed = false;
	DAT_EVENT event;

	*success = 0;
	for (;;) {
		KUNIT_ASSERT_TRUE(test, kd_wait_event(evd, &event,
						      KD_TIMEOUT_MS));
		switch (event.event_number) {
		case DAT_CONNECTION_EVENT_ESTABLISHED:
			KUNIT_EXPECT_EQ(test, *success, 0);
			established = true;
			break;
		case DAT_DTO_COMPLETION_EVENT:
			KUNIT_EXPECT_TRUE(test, established);
			if (event.event_data.dto_completion_event_data.status) {
				flushed = true;
				break;
			}
			KUNIT_EXPECT_FALSE(test, flushed);
			++*success;
			break;
		default:
			KUNIT_EXPECT_EQ(test, (u32)event.event_number,
					(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
			return;
		}
	}
}

static void expect_only_flushes(struct kunit *test, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	while (kd_wait_event(evd, &event, KD_QUIET_MS)) {
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_DTO_COMPLETION_EVENT);
		KUNIT_EXPECT_EQ(test, (int)event.event_data
				.dto_completion_event_data.status,
				(int)DAT_DTO_ERR_FLUSHED);
	}
}

/* Sends all, then ends the connection gracefully at once. */
static void N3_order_on_a_merged_evd(struct kunit *test)
{
	const struct kd_opts merged = { .merged = true };
	struct kd_side *a = kd_open_param(test);
	struct kd_side *p = kd_open_param(test);
	unsigned int i, sent, received;
	u16 port = kd_port();

	kd_setup(a, &merged);
	kd_setup(p, &merged);
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < MESSAGES + 4; i++)
		kd_recv(p, i * 64, 64, i);
	kd_connect_start(a, p, port);
	KD_ASSERT_OK(test, dat_cr_accept(kd_expect_cr(p), p->ep, 0, NULL));
	KUNIT_ASSERT_TRUE(test, kd_wait_state(a->ep, DAT_EP_STATE_CONNECTED));
	for (i = 0; i < MESSAGES; i++)
		kd_send(a, i * 64, 64, i);
	KD_ASSERT_OK(test, dat_ep_disconnect(a->ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_in_order(test, a->recv_evd, &sent);
	expect_in_order(test, p->recv_evd, &received);
	/* Graceful: what was posted is completed. */
	KUNIT_EXPECT_EQ(test, sent, MESSAGES);
	KUNIT_EXPECT_EQ(test, received, MESSAGES);
	expect_only_flushes(test, p->recv_evd);
	expect_only_flushes(test, a->recv_evd);
}

static struct kunit_case ep_state_cases[] = {
	KUNIT_CASE_PARAM(forbidden_calls, kd_gen_ia),
	KUNIT_CASE_PARAM(allowed_calls, kd_gen_ia),
	KUNIT_CASE_PARAM(accept_in_every_state, kd_gen_ia),
	KUNIT_CASE_PARAM(unknown_close_flags, kd_gen_ia),
	KUNIT_CASE_PARAM(reset_and_connect_again, kd_gen_ia),
	KUNIT_CASE_PARAM(freeing_disconnects_the_peer, kd_gen_ia),
	KUNIT_CASE_PARAM(get_status_tells_who_is_idle, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_order_on_a_merged_evd, kd_gen_ia),
	{}
};

static struct kunit_suite ep_state_suite = {
	.name = "kdapl-ep-state",
	.test_cases = ep_state_cases,
};

kunit_test_suite(ep_state_suite);

MODULE_DESCRIPTION("KUnit suite of kdapl.ko: states of an Endpoint");
MODULE_LICENSE("Dual BSD/GPL");
