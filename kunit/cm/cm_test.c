// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Further cases of connections (contract N5): second connections to the same
 * peer, options, and the ways in which connecting fails and connections end.
 */
#include <linux/in.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include "cm_fixture.h"

/* ---- dat_ep_dup_connect ------------------------------------------------------- */

static void dup_connect(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_EP_HANDLE first = a->ep, second;
	DAT_EP_PARAM one, two;
	DAT_CR_PARAM cr_param;
	u16 port = kd_port();
	DAT_CR_HANDLE cr;
	u8 hello[8];

	kd_fill(hello, sizeof(hello), 1);
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	KD_ASSERT_OK(test, cm_connect(a, p, port, CM_TIMEOUT, DAT_QOS_BEST_EFFORT,
				      DAT_CONNECT_MULTIPATH_REQUESTED_FLAG));
	kd_accept(a, p);
	second = kd_ep(a, NULL);
	p->ep = kd_ep(p, NULL);
	KD_ASSERT_OK(test, dat_ep_dup_connect(second, first, CM_TIMEOUT,
					      sizeof(hello), hello,
					      DAT_QOS_LOW_LATENCY));
	cr = kd_expect_cr(p);
	KD_ASSERT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &cr_param));
	KUNIT_ASSERT_GE(test, cr_param.private_data_size, 8);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(cr_param.private_data, 8, 1));
	KD_ASSERT_OK(test, dat_cr_accept(cr, p->ep, 0, NULL));
	kd_expect_established(a, p);
	KD_ASSERT_OK(test, dat_ep_query(first, DAT_EP_FIELD_ALL, &one));
	KD_ASSERT_OK(test, dat_ep_query(second, DAT_EP_FIELD_ALL, &two));
	KUNIT_EXPECT_EQ(test, one.remote_port_qual, port);
	KUNIT_EXPECT_EQ(test, two.remote_port_qual, port);
	KUNIT_EXPECT_EQ(test, 0, memcmp(one.remote_ia_address_ptr,
					two.remote_ia_address_ptr,
					sizeof(struct sockaddr_in)));
	a->ep = second;
	kd_ping(a, p);
}

static void dup_connect_arguments(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_EP_HANDLE idle = kd_ep(a, NULL), ep = kd_ep(a, NULL);
	DAT_QOS qos = DAT_QOS_BEST_EFFORT;

	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_ep_dup_connect(ep, idle, CM_TIMEOUT, 0, NULL, qos));
	kd_connect_pair(a, p);
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ep_dup_connect(NULL, a->ep, CM_TIMEOUT, 0, NULL, qos));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ep_dup_connect(ep, NULL, CM_TIMEOUT, 0, NULL, qos));
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_ep_dup_connect(a->ep, a->ep, CM_TIMEOUT, 0, NULL, qos));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_dup_connect(ep, a->ep, 0, 0, NULL, qos));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_dup_connect(ep, a->ep, CM_TIMEOUT, a->max_pd + 1,
					 a->buf->va, qos));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_dup_connect(ep, a->ep, CM_TIMEOUT, 1, NULL, qos));
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      dat_ep_dup_connect(ep, a->ep, CM_TIMEOUT, 0, NULL, 0x80));
	kd_disconnect(a, p);
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_ep_dup_connect(ep, a->ep, CM_TIMEOUT, 0, NULL, qos));
}

/* ---- Options -------------------------------------------------------------------- */

static void multipath(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_PROVIDER_ATTR prov;
	u16 port = kd_port();

	KD_ASSERT_OK(test, dat_ia_query(a->ia, NULL, 0, NULL,
					DAT_PROVIDER_FIELD_ALL, &prov));
	KUNIT_EXPECT_EQ(test, (int)prov.supports_multipath, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)prov.ha_supported, DAT_FALSE);
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      cm_connect(a, p, port, CM_TIMEOUT, DAT_QOS_BEST_EFFORT,
				 DAT_CONNECT_MULTIPATH_REQUIRED_FLAG));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      cm_connect(a, p, port, CM_TIMEOUT, DAT_QOS_BEST_EFFORT, 4));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      cm_connect(a, p, port, CM_TIMEOUT, DAT_QOS_BEST_EFFORT, 3));
	KUNIT_EXPECT_EQ(test, (int)kd_state(a), (int)DAT_EP_STATE_UNCONNECTED);
	/* A QOS is a wish: the connection is made all the same. */
	KD_ASSERT_OK(test, cm_connect(a, p, port, CM_TIMEOUT, DAT_QOS_BEST_EFFORT,
				      DAT_CONNECT_MULTIPATH_REQUESTED_FLAG));
	kd_accept(a, p);
	KUNIT_EXPECT_EQ(test, (int)kd_state(a), (int)DAT_EP_STATE_CONNECTED);
}

/* A timeout is in microseconds, and a long one is not cut short. */
static void timeout_is_in_microseconds(struct kunit *test)
{
	const DAT_TIMEOUT timeouts[] = { 60 * USEC_PER_MSEC, 200 * USEC_PER_MSEC };
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();
	DAT_EVENT event;
	ktime_t start;
	s64 took;
	int i;

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		start = ktime_get();
		KD_ASSERT_OK(test, cm_connect(a, p, port, timeouts[i],
					      DAT_QOS_BEST_EFFORT, 0));
		kd_expect_event(test, a->conn_evd,
				DAT_CONNECTION_EVENT_TIMED_OUT, NULL);
		took = ktime_us_delta(ktime_get(), start);
		/*
		 * Reject the request if it has arrived: siw waits for an
		 * answer.
		 */
		while (dat_evd_dequeue(p->cr_evd, &event) == DAT_SUCCESS)
			dat_cr_reject(event.event_data.cr_arrival_event_data
				      .cr_handle, 0, NULL);
		KUNIT_EXPECT_GE(test, took + USEC_PER_SEC / HZ,
				(s64)timeouts[i]);
		cm_again(a);
	}
	/* With time enough the request waits for its answer. */
	p = kd_open_param(test);
	kd_setup(p, NULL);
	port = kd_port();
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	KD_ASSERT_OK(test, cm_connect(a, p, port, DAT_TIMEOUT_INFINITE,
				      DAT_QOS_BEST_EFFORT, 0));
	kd_accept(a, p);
}

/* ---- Failures -------------------------------------------------------------------- */

/* Connecting fails if there is no route to the address. */
static void no_route(struct kunit *test)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0xc0000201),	/* 192.0.2.1 */
	};
	struct kd_side *a = kd_open_param(test), to;

	kd_setup(a, NULL);
	to.addr = (void *)&in;
	KD_ASSERT_OK(test, cm_connect(a, &to, kd_port(), DAT_TIMEOUT_INFINITE,
				      DAT_QOS_BEST_EFFORT, 0));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_UNREACHABLE,
			NULL);
	KUNIT_EXPECT_EQ(test, (int)kd_state(a),
			(int)DAT_EP_STATE_DISCONNECTED);
	kd_expect_no_event(test, a->conn_evd);
}

struct backlog {
	struct kd_side *a;
	unsigned int refused;
	unsigned int wrong;
	unsigned int want;
};

static bool all_refused(void *data)
{
	struct backlog *b = data;
	DAT_EVENT event;

	while (dat_evd_dequeue(b->a->conn_evd, &event) == DAT_SUCCESS) {
		if (event.event_number == kd_turned_away(b->a))
			b->refused++;
		else
			b->wrong++;
	}
	return b->refused >= b->want;
}

/*
 * More requests than fit into the backlog: the last ones are rejected. Making
 * so many may take longer than the 10 s that siw waits for an answer.
 */
static void backlog_full(struct kunit *test)
{
	const unsigned int surplus = 128, beyond = 4;
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct backlog b = { .a = pair.a, .want = beyond };
	DAT_EP_ATTR attr = kd_ep_attr();
	unsigned long start = jiffies;
	unsigned int i, requests = 0;
	DAT_EVD_PARAM param;
	u16 port = kd_port();
	DAT_EVENT event;

	attr.max_recv_dtos = 1;
	attr.max_request_dtos = 1;
	pair.p->cr_evd = kd_evd(pair.p, DAT_EVD_CR_FLAG, 8,
				DAT_UPCALL_DISABLE);
	KD_ASSERT_OK(test, dat_evd_query(pair.p->cr_evd, DAT_EVD_FIELD_ALL,
					 &param));
	kd_psp(pair.p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < param.evd_qlen + surplus + beyond; i++) {
		pair.a->ep = kd_ep(pair.a, &attr);
		KD_ASSERT_OK(test, cm_connect(pair.a, pair.p, port,
					      DAT_TIMEOUT_INFINITE,
					   DAT_QOS_BEST_EFFORT, 0));
		/* Pause, so that the requests arrive one by one. */
		if (i % 8 == 7)
			kd_wait_until(all_refused, &b, 1);
	}
	KUNIT_EXPECT_TRUE(test, kd_wait_until(all_refused, &b, KD_TIMEOUT_MS));
	if (b.wrong && kd_is_iwarp(pair.a) &&
	    time_after(jiffies, start + 9 * HZ))
		kunit_skip(test, "this machine is too slow for it");
	KUNIT_EXPECT_EQ(test, b.refused, beyond);
	KUNIT_EXPECT_EQ(test, b.wrong, 0);
	while (dat_evd_dequeue(pair.p->cr_evd, &event) == DAT_SUCCESS)
		requests++;
	KUNIT_EXPECT_EQ(test, requests, param.evd_qlen + surplus);
	/* Rejecting the requests has made room again. */
	pair.a->ep = kd_ep(pair.a, &attr);
	KD_ASSERT_OK(test, cm_connect(pair.a, pair.p, port, CM_TIMEOUT,
				      DAT_QOS_BEST_EFFORT, 0));
	kd_accept(pair.a, pair.p);
}

/* ---- A peer that gives up -------------------------------------------------------- */

static bool is_void(void *data)
{
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr = data;

	return DAT_GET_TYPE(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param)) ==
	       DAT_INVALID_HANDLE;
}

static void N5_peer_gave_up(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port(), elsewhere = kd_port();
	DAT_CR_HANDLE cr;
	DAT_RETURN ret;
	int i;

	if (kd_is_iwarp(a))
		kunit_skip(test, "siw does not tell before there is an answer");
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	kd_psp(p, elsewhere, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < 6; i++) {
		kd_connect_start(a, p, port);
		cr = kd_expect_cr(p);
		KD_ASSERT_OK(test, dat_ep_free(a->ep));
		KUNIT_ASSERT_TRUE(test, kd_wait_until(is_void, cr,
						      KD_TIMEOUT_MS));
		switch (i) {
		case 0:
			ret = dat_cr_accept(cr, p->ep, 0, NULL);
			break;
		case 1:
			ret = dat_cr_reject(cr, 0, NULL);
			break;
		case 2:
			ret = dat_cr_handoff(cr, elsewhere);
			break;
		/* A wrong argument does not change the error. */
		case 3:
			ret = dat_cr_accept(cr, p->ep, -1, NULL);
			break;
		case 4:
			ret = dat_cr_reject(cr, -1, NULL);
			break;
		default:
			ret = dat_cr_handoff(cr, 0);
		}
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret),
				    (u32)DAT_INVALID_HANDLE, "answer %d", i);
		KUNIT_EXPECT_EQ(test, (int)kd_state(p),
				(int)DAT_EP_STATE_UNCONNECTED);
		a->ep = kd_ep(a, NULL);
	}
	kd_expect_no_event(test, p->cr_evd);
	kd_connect_start(a, p, port);
	kd_accept(a, p);
}

/* A request that can only be refused does not keep its IA from being closed. */
static void N5_void_request_keeps_no_ia(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	DAT_EVD_HANDLE evd, async = NULL;
	struct kd_side *a = pair.a;
	DAT_UPCALL_OBJECT none = { };
	u16 port = kd_port();
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_IA_HANDLE ia;
	DAT_EVENT event;

	if (kd_is_iwarp(a))
		kunit_skip(test, "siw does not tell before there is an answer");
	KD_ASSERT_OK(test, dat_ia_open((DAT_NAME_PTR)a->name, 8, &async, &ia));
	KD_ASSERT_OK(test, dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, &none,
					   DAT_EVD_CR_FLAG, &evd));
	KD_ASSERT_OK(test, dat_psp_create(ia, port, evd, DAT_PSP_CONSUMER_FLAG,
					  &psp));
	kd_connect_start(a, pair.p, port);
	kd_expect_event(test, evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_evd_free(evd));
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KD_ASSERT_OK(test, dat_ep_free(a->ep));
	a->ep = kd_ep(a, NULL);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_void, cr, KD_TIMEOUT_MS));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/*
 * Accepting while the peer gives up succeeds or fails, and events report the
 * rest.
 */
static void N5_accept_while_the_peer_gives_up(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_EVENT event = { };
	u16 port = kd_port();
	DAT_CR_HANDLE cr;
	DAT_RETURN ret;
	int i;

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < (kd_slow_kernel() ? 20 : 60); i++) {
		kd_connect_start(a, p, port);
		cr = kd_expect_cr(p);
		KD_ASSERT_OK(test, dat_ep_disconnect(a->ep,
						     DAT_CLOSE_ABRUPT_FLAG));
		if (i % 3)
			cond_resched();
		if (i % 3 == 2)
			kd_expect_event(test, a->conn_evd,
					DAT_CONNECTION_EVENT_DISCONNECTED,
					NULL);
		ret = dat_cr_accept(cr, p->ep, 0, NULL);
		if (ret == DAT_SUCCESS) {
			KUNIT_ASSERT_TRUE(test,
					  kd_wait_state(p->ep,
							DAT_EP_STATE_DISCONNECTED));
			KUNIT_EXPECT_TRUE(test,
					  kd_wait_event(p->conn_evd, &event,
							KD_TIMEOUT_MS));
		} else {
			KD_EXPECT_RET(test, DAT_INVALID_HANDLE, ret);
			KUNIT_EXPECT_EQ(test, (int)kd_state(p),
					(int)DAT_EP_STATE_UNCONNECTED);
		}
		cm_again(a);
		cm_again(p);
	}
}

/* ---- Ends ------------------------------------------------------------------------- */

/* Each side gets one event, in whichever order the disconnects happen. */
static void simultaneous_close(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_CLOSE_FLAGS how;
	int i;

	for (i = 0; i < 16; i++) {
		kd_connect_pair(a, p);
		how = i & 1 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG;
		kd_recv(a, 0, 64, 1);
		kd_recv(p, 0, 64, 1);
		if (i & 2)
			kd_send(a, 0, 64, 2);
		KD_ASSERT_OK(test, dat_ep_disconnect(a->ep, how));
		how = i & 4 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG;
		KD_ASSERT_OK(test, dat_ep_disconnect(p->ep, how));
		kd_expect_disconnected(a, NULL);
		kd_expect_disconnected(p, NULL);
		KD_ASSERT_OK(test, dat_ep_reset(a->ep));
		KD_ASSERT_OK(test, dat_ep_reset(p->ep));
		KUNIT_EXPECT_EQ(test, kd_drain(a->conn_evd), 0);
		KUNIT_EXPECT_EQ(test, kd_drain(p->conn_evd), 0);
		KUNIT_EXPECT_EQ(test, kd_drain(p->recv_evd), 1);
		cm_again(a);
		cm_again(p);
	}
}

static struct kunit_case cm_cases[] = {
	KUNIT_CASE_PARAM(dup_connect, kd_gen_ia),
	KUNIT_CASE_PARAM(dup_connect_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(multipath, kd_gen_ia),
	KUNIT_CASE_PARAM(timeout_is_in_microseconds, kd_gen_ia),
	KUNIT_CASE_PARAM(no_route, kd_gen_ia),
	KUNIT_CASE_PARAM(backlog_full, kd_gen_ia),
	KUNIT_CASE_PARAM(N5_peer_gave_up, kd_gen_ia),
	KUNIT_CASE_PARAM(N5_void_request_keeps_no_ia, kd_gen_ia),
	KUNIT_CASE_PARAM(N5_accept_while_the_peer_gives_up, kd_gen_ia),
	KUNIT_CASE_PARAM(simultaneous_close, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-cm", cm_cases, "how connecting fails and ends");
