// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How the connection of an Endpoint ends, and the order of its events (contract
 * N3). The calls that end it in each state are in ep_state_test.c.
 */
#include <linux/module.h>
#include "ep_states.h"

#define DOWN	DAT_EP_STATE_DISCONNECTED

/* ---- Ends of a connection ------------------------------------------------- */

static struct ep_stage *connected(struct kunit *test)
{
	return ep_stage_enter(test, *(const char * const *)test->param_value,
			      EP_CONNECTED);
}

static void unknown_close_flags(struct kunit *test)
{
	struct ep_stage *s = connected(test);

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, dat_ep_disconnect(s->ep, 2));
	KUNIT_EXPECT_EQ(test, (int)ep_state(test, s->ep),
			(int)DAT_EP_STATE_CONNECTED);
}

static void reset_and_connect_again(struct kunit *test)
{
	struct ep_stage *s = connected(test);
	int i;

	kd_disconnect(s->out, s->in);
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
	struct ep_stage *s = connected(test);

	KD_ASSERT_OK(test, dat_ep_free(s->in->ep));
	kd_expect_event(test, s->out->conn_evd,
			DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(s->out->ep, DOWN));
	kd_expect_no_event(test, s->in->conn_evd);
}

static void get_status_tells_who_is_idle(struct kunit *test)
{
	struct ep_stage *s = connected(test);
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

/* Dequeue all events of a merged EVD up to the end of the connection. */
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

/* Send all messages, then disconnect gracefully at once. */
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
	/* A graceful disconnect completes what was posted. */
	KUNIT_EXPECT_EQ(test, sent, MESSAGES);
	KUNIT_EXPECT_EQ(test, received, MESSAGES);
	expect_only_flushes(test, p->recv_evd);
	expect_only_flushes(test, a->recv_evd);
}

static struct kunit_case ep_end_cases[] = {
	KUNIT_CASE_PARAM(unknown_close_flags, kd_gen_ia),
	KUNIT_CASE_PARAM(reset_and_connect_again, kd_gen_ia),
	KUNIT_CASE_PARAM(freeing_disconnects_the_peer, kd_gen_ia),
	KUNIT_CASE_PARAM(get_status_tells_who_is_idle, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_order_on_a_merged_evd, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-ep-end", ep_end_cases, "ends of connections");
