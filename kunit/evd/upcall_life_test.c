// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clauses C3 and C4: upcalls for connections and requests run in process context, so
 * a consumer may live in them: it makes, modifies, connects, resets and frees in its
 * upcalls all that is not the EVD of the upcall.
 */
#include <linux/module.h>
#include "fixture.h"

#define MESSAGES	2

/*
 * struct life - a server that does everything in the upcalls of one EVD
 * @s: its side, with an SRQ
 * @evd: takes requests, connection events and completions
 * @psp: until the first request
 * @port: of the Service Point
 * @ep: made for the request
 * @failed: the first call that failed, and @ret what it returned
 * @established: events
 * @received: messages
 * @ended: the server is done
 */
struct life {
	struct kd_side *s;
	DAT_EVD_HANDLE evd;
	DAT_PSP_HANDLE psp;
	u16 port;
	DAT_EP_HANDLE ep;
	const char *failed;
	DAT_RETURN ret;
	int established;
	int received;
	bool ended;
};

#define WANT(who, want, call)						\
do {									\
	struct life *__l = (who);					\
	DAT_RETURN __ret;						\
									\
	if (__l->failed)						\
		break;							\
	__ret = (call);							\
	if (DAT_GET_TYPE(__ret) != (want)) {				\
		__l->failed = #call;					\
		__l->ret = __ret;					\
	}								\
} while (0)

static void on_request(struct life *l, DAT_CR_HANDLE cr)
{
	DAT_LMR_TRIPLET seg = kd_seg(l->s->buf, 0, 64);
	DAT_EP_PARAM param = { .ep_attr.max_request_dtos = MESSAGES };
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_side *s = l->s;
	int i;

	WANT(l, DAT_SUCCESS,
	     dat_ep_create_with_srq(s->ia, s->pz, l->evd, l->evd, l->evd, s->srq,
				    &attr, &l->ep));
	WANT(l, DAT_SUCCESS,
	     dat_ep_modify(l->ep, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param));
	for (i = 0; i < MESSAGES; i++)
		WANT(l, DAT_SUCCESS,
		     dat_srq_post_recv(s->srq, 1, &seg, kd_cookie(i)));
	/* The request outlives its Service Point. */
	WANT(l, DAT_SUCCESS, dat_psp_free(l->psp));
	WANT(l, DAT_SUCCESS, dat_cr_accept(cr, l->ep, 0, NULL));
}

static void on_established(struct life *l)
{
	DAT_EVD_HANDLE other;

	l->established++;
	WANT(l, DAT_SUCCESS, dat_srq_resize(l->s->srq, 2 * MESSAGES));
	WANT(l, DAT_SUCCESS,
	     dat_evd_kcreate(l->s->ia, 4, DAT_UPCALL_DISABLE, NULL,
			     DAT_EVD_DTO_FLAG, &other));
	WANT(l, DAT_SUCCESS, dat_evd_free(other));
	/* An upcall cannot wait for itself. */
	WANT(l, DAT_INVALID_STATE, dat_evd_free(l->evd));
	WANT(l, DAT_INVALID_STATE,
	     dat_evd_modify_upcall(l->evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
				   DAT_UPCALL_INVOC_ANY));
	WANT(l, DAT_INVALID_STATE,
	     dat_ia_close(l->s->ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void on_message(struct life *l)
{
	DAT_LMR_TRIPLET seg = kd_seg(l->s->buf, 0, 64);
	DAT_SRQ_PARAM param = { };

	l->received++;
	/* The event of an upcall is reaped. */
	WANT(l, DAT_SUCCESS, dat_srq_query(l->s->srq, DAT_SRQ_FIELD_ALL, &param));
	if (param.outstanding_dto_count != MESSAGES - l->received && !l->failed)
		l->failed = "outstanding_dto_count";
	WANT(l, DAT_SUCCESS, dat_ep_post_send(l->ep, 1, &seg, kd_cookie(9), 0));
}

static void on_end(struct life *l)
{
	WANT(l, DAT_SUCCESS, dat_ep_reset(l->ep));
	WANT(l, DAT_SUCCESS, dat_ep_free(l->ep));
	WANT(l, DAT_SUCCESS,
	     dat_psp_create(l->s->ia, l->port, l->evd, DAT_PSP_CONSUMER_FLAG,
			    &l->psp));
	WANT(l, DAT_SUCCESS, dat_psp_free(l->psp));
	l->ended = true;
}

static void life_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	struct life *l = data;

	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		on_request(l, event->event_data.cr_arrival_event_data.cr_handle);
	else if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		on_established(l);
	else if (event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
		 event->event_number == DAT_CONNECTION_EVENT_BROKEN)
		on_end(l);
	else if (dto->operation == DAT_DTO_RECEIVE && dto->status == DAT_DTO_SUCCESS)
		on_message(l);
	kd_wake();
}

static bool has_ended(void *data)
{
	struct life *l = data;

	return READ_ONCE(l->ended) || READ_ONCE(l->failed);
}

static struct life *start_life(struct kunit *test)
{
	struct life *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	DAT_UPCALL_OBJECT upcall = { l, life_upcall };

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->port = kd_port();
	l->s = kd_open_param(test);
	kd_setup(l->s, &(struct kd_opts) { .srq_len = MESSAGES, .no_ep = true });
	KD_ASSERT_OK(test, dat_evd_kcreate(l->s->ia, 64, DAT_UPCALL_SINGLE_INSTANCE,
					   &upcall, DAT_EVD_DTO_FLAG |
					   DAT_EVD_CONNECTION_FLAG |
					   DAT_EVD_CR_FLAG, &l->evd));
	KD_ASSERT_OK(test, dat_psp_create(l->s->ia, l->port, l->evd,
					  DAT_PSP_CONSUMER_FLAG, &l->psp));
	return l;
}

static void C3_C4_life_in_upcalls(struct kunit *test)
{
	struct life *l = start_life(test);
	struct kd_side *a = kd_open_param(test);
	int i;

	kd_setup(a, NULL);
	for (i = 0; i < MESSAGES; i++)
		kd_recv(a, 0, 64, i);
	kd_connect_start(a, l->s, l->port);
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
	for (i = 0; i < MESSAGES; i++) {
		kd_send(a, 0, 64, i);
		kd_expect_dto(test, a->recv_evd, i, DAT_DTO_SUCCESS, NULL);
	}
	KD_ASSERT_OK(test, dat_ep_disconnect(a->ep, DAT_CLOSE_GRACEFUL_FLAG));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(has_ended, l, KD_TIMEOUT_MS));
	KD_EXPECT_OK(test, dat_evd_modify_upcall(l->evd, DAT_UPCALL_TEARDOWN,
						 DAT_UPCALL_SAME,
						 DAT_UPCALL_INVOC_ANY));
	KUNIT_EXPECT_NULL_MSG(test, l->failed, "%s: %s", l->failed,
			      kd_strerror(l->ret));
	KUNIT_EXPECT_EQ(test, l->established, 1);
	KUNIT_EXPECT_EQ(test, l->received, MESSAGES);
}

static struct kunit_case upcall_life_cases[] = {
	KUNIT_CASE_PARAM(C3_C4_life_in_upcalls, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-upcall-life", upcall_life_cases,
	 "a consumer that lives in its upcalls");
