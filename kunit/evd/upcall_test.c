// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Upcalls and full EVDs of connected Endpoints (contract C3, C4, R6).
 */
#include <linux/delay.h>
#include <linux/module.h>
#include "fixture.h"

#define DTO_FLAGS	(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)

/* Send messages 0, 1, ... of 64 bytes to the passive side. */
static void exchange(struct kd_pair *pair, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		kd_recv(pair->p, i * 64, 64, i);
	for (i = 0; i < n; i++)
		kd_send(pair->a, i * 64, 64, i);
	for (i = 0; i < n; i++)
		kd_expect_dto(pair->a->test, pair->a->req_evd, i,
			      DAT_DTO_SUCCESS, NULL);
}

/* ---- Events that cause no upcall ------------------------------------------ */

/*
 * Unsignalled receives cause no upcall; a later signalled one brings them all.
 */
static void C3_signalled_after_unsignalled(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_side *p = pair.p;
	int i;

	attr.recv_completion_flags = flags;
	p->recv_evd = kd_recorded_evd(p, DAT_EVD_DTO_FLAG, 64,
				      DAT_UPCALL_SINGLE_INSTANCE, rec);
	p->ep = kd_ep(p, &attr);
	for (i = 0; i < 4; i++) {
		DAT_LMR_TRIPLET seg = kd_seg(p->buf, i * 64, 64);

		if (i == 3)
			flags = DAT_COMPLETION_DEFAULT_FLAG;
		KD_ASSERT_OK(test, dat_ep_post_recv(p->ep, 1, &seg,
						    kd_cookie(i), flags));
	}
	kd_connect_pair(pair.a, p);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 0);
		kd_send(pair.a, i * 64, 64, i);
		kd_expect_dto(test, pair.a->req_evd, i, DAT_DTO_SUCCESS, NULL);
	}
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 4));
}

/*
 * INVOC_NEW: receives that are queued cause no upcall until the next one
 * arrives.
 */
static void C3_new_after_queued(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *p = pair.p;
	DAT_BOOLEAN idle;
	int i;

	p->recv_evd = kd_recorded_evd(p, DAT_EVD_DTO_FLAG, 64,
				      DAT_UPCALL_DISABLE, rec);
	p->ep = kd_ep(p, NULL);
	kd_connect_pair(pair.a, p);
	exchange(&pair, 2);
	do
		KD_ASSERT_OK(test, dat_ep_get_status(p->ep, NULL, &idle, NULL));
	while (!idle);
	kd_enable_upcalls(test, p->recv_evd, DAT_UPCALL_INVOC_NEW);
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 0);
	for (i = 2; i < 4; i++)
		kd_recv(p, i * 64, 64, i);
	kd_send(pair.a, 0, 64, 2);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 3));
}

/* INVOC_NEW: neither does a receive that has completed but was not polled. */
static void C3_new_after_completed(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *p = pair.p;

	p->recv_evd = kd_recorded_evd(p, DAT_EVD_DTO_FLAG, 64,
				      DAT_UPCALL_DISABLE, rec);
	p->ep = kd_ep(p, NULL);
	kd_connect_pair(pair.a, p);
	kd_recv(p, 0, 64, 0);
	kd_recv(p, 64, 64, 1);
	kd_send(pair.a, 0, 64, 0);
	/*
	 * The peer's device has acknowledged the message; of siw the completion
	 * only says that it was sent.
	 */
	kd_expect_dto(test, pair.a->req_evd, 0, DAT_DTO_SUCCESS, NULL);
	msleep(KD_QUIET_MS);
	kd_enable_upcalls(test, p->recv_evd, DAT_UPCALL_INVOC_NEW);
	msleep(KD_QUIET_MS);
	/*
	 * Over iWARP, on a loaded machine, the message may have arrived only
	 * now.
	 */
	if (!kd_is_iwarp(p))
		KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 0);
	kd_send(pair.a, 64, 64, 1);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 2));
}

/* ---- Contexts ------------------------------------------------------------ */

struct context_case {
	const char *desc;
	u32 flags;
	bool softirq;
};

static const struct context_case context_cases[] = {
	{ "DTO", DAT_EVD_DTO_FLAG, true },
	{ "DTO and bind", DTO_FLAGS, true },
	{ "DTO and software", DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, false },
	{ "DTO and connection", DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG,
	  false },
	{ "everything", DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG, false },
};

static void C3_context_of_dto_upcalls(struct kunit *test)
{
	const struct context_case *c;
	struct kd_pair pair;
	struct kd_recorder *rec;

	for (c = context_cases;
	     c < context_cases + ARRAY_SIZE(context_cases); c++) {
		rec = kd_recorder(test);
		pair = kd_make_half_pair(test);
		pair.p->recv_evd = kd_recorded_evd(pair.p, c->flags, 32,
						   DAT_UPCALL_SINGLE_INSTANCE,
						   rec);
		pair.p->ep = kd_ep(pair.p, NULL);
		kd_connect_pair(pair.a, pair.p);
		exchange(&pair, 5);
		KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, 5));
		KUNIT_EXPECT_EQ_MSG(test, atomic_read(&rec->softirq),
				    c->softirq ? 5 : 0, "%s", c->desc);
		KUNIT_EXPECT_EQ_MSG(test, atomic_read(&rec->task),
				    c->softirq ? 0 : 5, "%s", c->desc);
		KUNIT_EXPECT_EQ(test, atomic_read(&rec->hardirq), 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&rec->max_running), 1);
		kd_close(pair.a);
		kd_close(pair.p);
	}
}

/* Upcall: accept the connection request with the EP of the side. */
static void accept_hook(struct kd_recorder *rec, const DAT_EVENT *event,
			DAT_BOOLEAN more)
{
	struct kd_side *p = rec->priv;

	if (event->event_number != DAT_CONNECTION_REQUEST_EVENT)
		return;
	KD_EXPECT_OK(p->test,
		     dat_cr_accept(event->event_data.cr_arrival_event_data
				   .cr_handle, p->ep, 0, NULL));
}

static void C3_context_of_cr_and_connection_upcalls(struct kunit *test)
{
	struct kd_recorder *cr = kd_recorder(test), *conn = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *p = pair.p;
	u16 port = kd_port();

	cr->hook = accept_hook;
	cr->priv = p;
	p->cr_evd = kd_recorded_evd(p, DAT_EVD_CR_FLAG, 8,
				    DAT_UPCALL_SINGLE_INSTANCE, cr);
	p->conn_evd = kd_recorded_evd(p, DAT_EVD_CONNECTION_FLAG, 8,
				      DAT_UPCALL_SINGLE_INSTANCE, conn);
	p->ep = kd_ep(p, NULL);
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(pair.a, p, port);
	kd_expect_event(test, pair.a->conn_evd,
			DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(conn, 1));
	KUNIT_EXPECT_EQ(test, atomic_read(&cr->task), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->task), 1);
	KUNIT_EXPECT_EQ(test, (u32)conn->events[0].event_number,
			(u32)DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void C3_context_of_async_upcalls(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	DAT_UPCALL_OBJECT upcall = kd_upcall(rec);

	KD_ASSERT_OK(test,
		     dat_evd_modify_upcall(pair.p->async_evd,
					   DAT_UPCALL_SINGLE_INSTANCE, &upcall,
					   DAT_UPCALL_INVOC_ANY));
	pair.p->ep = kd_ep(pair.p, NULL);
	kd_connect_pair(pair.a, pair.p);
	/* The soft high watermark is passed when the completion is polled. */
	KD_ASSERT_OK(test, dat_ep_set_watermark(pair.p->ep, 0,
						DAT_WATERMARK_INFINITE));
	exchange(&pair, 1);
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, 1));
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->task), 1);
	KUNIT_EXPECT_EQ(test, (u32)rec->events[0].event_number,
			(u32)DAT_ASYNC_EP_SOFT_HIGH_WATERMARK);
}

/* ---- What an upcall may do ------------------------------------------------ */

struct own_evd {
	DAT_EVD_HANDLE evd;
	DAT_RETURN freed;
	DAT_RETURN torn;
};

static void own_evd_hook(struct kd_recorder *rec, const DAT_EVENT *event,
			 DAT_BOOLEAN more)
{
	struct own_evd *own = rec->priv;

	own->freed = dat_evd_free(own->evd);
	own->torn = dat_evd_modify_upcall(own->evd, DAT_UPCALL_TEARDOWN,
					  DAT_UPCALL_SAME,
					  DAT_UPCALL_INVOC_NEW);
}

/* An upcall cannot free its own EVD, in softirq and in process context. */
static void C4_own_evd_cannot_be_freed(struct kunit *test)
{
	static const u32 flags[] = {
		DAT_EVD_DTO_FLAG, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG
	};
	struct kd_recorder *rec;
	struct own_evd own;
	struct kd_pair pair;
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		rec = kd_recorder(test);
		pair = kd_make_half_pair(test);
		rec->hook = own_evd_hook;
		rec->priv = &own;
		own.evd = kd_recorded_evd(pair.p, flags[i], 8,
					  DAT_UPCALL_SINGLE_INSTANCE, rec);
		pair.p->recv_evd = own.evd;
		pair.p->ep = kd_ep(pair.p, NULL);
		kd_connect_pair(pair.a, pair.p);
		exchange(&pair, 1);
		KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, 1));
		KD_EXPECT_RET(test, DAT_INVALID_STATE, own.freed);
		KD_EXPECT_RET(test, DAT_INVALID_STATE, own.torn);
		/* Upcalls go on after the refusal. */
		exchange(&pair, 1);
		KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 2));
		kd_close(pair.a);
		kd_close(pair.p);
	}
}

/* Upcall: post the buffer again and send it back. */
static void echo_hook(struct kd_recorder *rec, const DAT_EVENT *event,
		      DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	struct kd_side *p = rec->priv;
	DAT_LMR_TRIPLET seg = kd_seg(p->buf, 0, 64);

	if (dto->status != DAT_DTO_SUCCESS)
		return;
	KD_EXPECT_OK(p->test, dat_ep_post_recv(dto->ep_handle, 1, &seg,
					       dto->user_cookie, 0));
	KD_EXPECT_OK(p->test, dat_ep_set_watermark(dto->ep_handle, 8, 16));
	KD_EXPECT_OK(p->test, dat_ep_post_send(dto->ep_handle, 1, &seg,
					       dto->user_cookie, 0));
}

static void C4_post_from_upcall(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	int i;

	rec->hook = echo_hook;
	rec->priv = pair.p;
	pair.p->recv_evd = kd_recorded_evd(pair.p, DAT_EVD_DTO_FLAG, 32,
					   DAT_UPCALL_SINGLE_INSTANCE, rec);
	pair.p->ep = kd_ep(pair.p, NULL);
	kd_connect_pair(pair.a, pair.p);
	kd_recv(pair.p, 0, 64, 7);
	kd_fill(pair.a->buf->va, 64, 3);
	for (i = 0; i < 20; i++) {
		kd_recv(pair.a, 64, 64, i);
		kd_send(pair.a, 0, 64, 100 + i);
		kd_expect_dto(test, pair.a->recv_evd, i, DAT_DTO_SUCCESS, NULL);
		KUNIT_EXPECT_TRUE(test, kd_is_filled(pair.a->buf->va + 64, 64,
						     3));
		memset(pair.a->buf->va + 64, 0, 64);
	}
	KUNIT_EXPECT_GE(test, atomic_read(&rec->calls), 20);
}

/* Upcall: dequeue all events if more_events is true. */
static void drain_hook(struct kd_recorder *rec, const DAT_EVENT *event,
		       DAT_BOOLEAN more)
{
	if (more)
		atomic_add(kd_drain(event->evd_handle), (atomic_t *)rec->priv);
}

static void C4_dequeue_from_upcall(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	atomic_t drained = ATOMIC_INIT(0);
	DAT_EVD_HANDLE evd;

	rec->hook = drain_hook;
	rec->priv = &drained;
	evd = kd_recorded_evd(pair.p, DAT_EVD_DTO_FLAG, 32, DAT_UPCALL_DISABLE,
			      rec);
	pair.p->recv_evd = evd;
	pair.p->ep = kd_ep(pair.p, NULL);
	kd_connect_pair(pair.a, pair.p);
	exchange(&pair, 16);
	kd_enable_upcalls(test, evd, DAT_UPCALL_INVOC_ANY);
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, 1));
	msleep(KD_QUIET_MS);
	KUNIT_EXPECT_EQ(test, 16,
			atomic_read(&rec->calls) + atomic_read(&drained));
}

static void ep_hook_disconnect(struct kd_recorder *rec, const DAT_EVENT *event,
			       DAT_BOOLEAN more)
{
	struct kd_side *p = rec->priv;

	if (atomic_read(&rec->calls) == 0)
		KD_EXPECT_OK(p->test, dat_ep_disconnect(p->ep,
							DAT_CLOSE_ABRUPT_FLAG));
}

static void C4_disconnect_from_upcall(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);

	rec->hook = ep_hook_disconnect;
	rec->priv = pair.p;
	pair.p->recv_evd = kd_recorded_evd(pair.p, DAT_EVD_DTO_FLAG, 32,
					   DAT_UPCALL_SINGLE_INSTANCE, rec);
	pair.p->ep = kd_ep(pair.p, NULL);
	kd_connect_pair(pair.a, pair.p);
	kd_recv(pair.p, 0, 64, 1);
	kd_recv(pair.p, 64, 64, 2);
	kd_send(pair.a, 0, 64, 1);
	kd_expect_event(test, pair.p->conn_evd,
			DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	kd_expect_disconnected(pair.a, NULL);
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, 2));
	KUNIT_EXPECT_EQ(test, (int)rec->events[1].event_data
			.dto_completion_event_data.status,
			(int)DAT_DTO_ERR_FLUSHED);
}

static void ep_hook_free(struct kd_recorder *rec, const DAT_EVENT *event,
			 DAT_BOOLEAN more)
{
	struct kd_side *p = rec->priv;

	KD_EXPECT_OK(p->test, dat_ep_free(p->ep));
}

/*
 * An upcall frees the EP, in softirq and in process context; no later event
 * names the EP.
 */
static void C4_free_the_ep_from_upcall(struct kunit *test)
{
	static const u32 flags[] = {
		DAT_EVD_DTO_FLAG, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG
	};
	struct kd_recorder *rec;
	struct kd_pair pair;
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		rec = kd_recorder(test);
		pair = kd_make_half_pair(test);
		rec->hook = ep_hook_free;
		rec->priv = pair.p;
		pair.p->recv_evd = kd_recorded_evd(pair.p, flags[i], 32,
						   DAT_UPCALL_SINGLE_INSTANCE,
						   rec);
		pair.p->ep = kd_ep(pair.p, NULL);
		kd_connect_pair(pair.a, pair.p);
		kd_recv(pair.p, 0, 64, 1);
		kd_recv(pair.p, 64, 64, 2);
		kd_recv(pair.p, 128, 64, 3);
		kd_send(pair.a, 0, 64, 1);
		kd_expect_disconnected(pair.a, NULL);
		msleep(KD_QUIET_MS);
		KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 1);
		kd_expect_no_event(test, pair.p->conn_evd);
		KD_EXPECT_OK(test, dat_evd_free(pair.p->recv_evd));
		kd_close(pair.a);
		kd_close(pair.p);
	}
}

/* ---- Full EVDs ------------------------------------------------------------ */

static void expect_overflow(struct kunit *test, struct kd_side *s,
			    DAT_EVD_HANDLE evd)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	kd_expect_event(test, s->async_evd, DAT_ASYNC_ERROR_EVD_OVERFLOW,
			&event);
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_PTR_EQ(test, data->dat_handle, (DAT_HANDLE)evd);
	KUNIT_EXPECT_EQ(test, data->reason, DAT_EVD_OVERFLOW_ERROR);
}

/*
 * A full EVD has one overflow event per episode, and keeps every event in
 * order.
 */
static void R6_full_evd_loses_nothing(struct kunit *test)
{
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *p = pair.p;
	int episode, i;

	p->recv_evd = kd_evd(p, DAT_EVD_DTO_FLAG, 4, DAT_UPCALL_DISABLE);
	p->ep = kd_ep(p, NULL);
	kd_connect_pair(pair.a, p);
	for (episode = 0; episode < 2; episode++) {
		exchange(&pair, 16);
		expect_overflow(test, p, p->recv_evd);
		for (i = 0; i < 16; i++)
			kd_expect_dto(test, p->recv_evd, i, DAT_DTO_SUCCESS,
				      NULL);
		KD_EXPECT_RET(test, DAT_QUEUE_EMPTY,
			      dat_evd_dequeue(p->recv_evd, &(DAT_EVENT) {}));
		kd_expect_no_event(test, p->async_evd);
	}
	/* An EVD that is just full does not overflow. */
	exchange(&pair, 4);
	kd_expect_no_event(test, p->async_evd);
	for (i = 0; i < 4; i++)
		kd_expect_dto(test, p->recv_evd, i, DAT_DTO_SUCCESS, NULL);
}

/* More requests than arrive before the connection manager runs. */
#define REQUESTS 24

/*
 * Let REQUESTS Endpoints of @a, which are entered in @eps, connect to @p, which rejects each
 * at once if @answer.
 */
static void connect_many(struct kd_side *a, struct kd_side *p, bool answer,
			 DAT_EP_HANDLE eps[REQUESTS])
{
	u16 port = kd_port();
	int i;

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < REQUESTS; i++) {
		a->ep = kd_ep(a, NULL);
		eps[i] = a->ep;
		kd_connect_start(a, p, port);
		if (answer)
			KD_EXPECT_OK(p->test, dat_cr_reject(kd_expect_cr(p), 0, NULL));
	}
}

/* A full EVD keeps connection events as well. */
static void R6_full_evd_of_connection_events(struct kunit *test)
{
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *a = pair.a;
	DAT_EP_HANDLE eps[REQUESTS];
	int i;

	a->conn_evd = kd_evd(a, DAT_EVD_CONNECTION_FLAG, 1, DAT_UPCALL_DISABLE);
	connect_many(a, pair.p, true, eps);
	/*
	 * dat_ep_reset() returns when the last event of a connection is queued. An event that
	 * came after others were taken could begin a second episode.
	 */
	for (i = 0; i < REQUESTS; i++) {
		KUNIT_EXPECT_TRUE(test, kd_wait_state(eps[i], DAT_EP_STATE_DISCONNECTED));
		KD_EXPECT_OK(test, dat_ep_reset(eps[i]));
	}
	expect_overflow(test, a, a->conn_evd);
	for (i = 0; i < REQUESTS; i++)
		kd_expect_event(test, a->conn_evd,
				DAT_CONNECTION_EVENT_PEER_REJECTED, NULL);
	kd_expect_no_event(test, a->async_evd);
}

/* A full EVD keeps connection requests as well. */
static void R6_full_evd_of_requests(struct kunit *test)
{
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_EP_HANDLE eps[REQUESTS];
	int i;

	p->cr_evd = kd_evd(p, DAT_EVD_CR_FLAG, 1, DAT_UPCALL_DISABLE);
	connect_many(a, p, false, eps);
	expect_overflow(test, p, p->cr_evd);
	for (i = 0; i < REQUESTS; i++) {
		KD_EXPECT_OK(test, dat_cr_reject(kd_expect_cr(p), 0, NULL));
		kd_expect_event(test, a->conn_evd,
				DAT_CONNECTION_EVENT_PEER_REJECTED, NULL);
	}
	kd_expect_no_event(test, p->cr_evd);
}

static void resize_while_messages_arrive(struct kunit *test)
{
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *p = pair.p;
	int i;

	p->recv_evd = kd_evd(p, DAT_EVD_DTO_FLAG, 4, DAT_UPCALL_NOTIFY);
	p->ep = kd_ep(p, NULL);
	kd_connect_pair(pair.a, p);
	for (i = 0; i < 32; i++)
		kd_recv(p, i * 64, 64, i);
	for (i = 0; i < 32; i++) {
		kd_send(pair.a, i * 64, 64, i);
		KD_EXPECT_OK(test, dat_evd_resize(p->recv_evd, 40 + i * 8));
		kd_expect_dto(test, p->recv_evd, i, DAT_DTO_SUCCESS, NULL);
	}
	kd_expect_no_event(test, p->recv_evd);
}

static struct kunit_case upcall_cases[] = {
	KUNIT_CASE_PARAM(C3_signalled_after_unsignalled, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_new_after_queued, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_new_after_completed, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_context_of_dto_upcalls, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_context_of_cr_and_connection_upcalls, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_context_of_async_upcalls, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_own_evd_cannot_be_freed, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_post_from_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_dequeue_from_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_disconnect_from_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_free_the_ep_from_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(R6_full_evd_loses_nothing, kd_gen_ia),
	KUNIT_CASE_PARAM(R6_full_evd_of_connection_events, kd_gen_ia),
	KUNIT_CASE_PARAM(R6_full_evd_of_requests, kd_gen_ia),
	KUNIT_CASE_PARAM(resize_while_messages_arrive, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-upcall", upcall_cases, "upcalls, full Event Dispatchers");
