// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connecting and disconnecting (contract N2, N3, N5, L5). The states of an
 * Endpoint are in ep_state_test.c.
 */
#include <linux/delay.h>
#include <linux/in.h>
#include <linux/module.h>
#include <linux/net.h>
#include <net/net_namespace.h>
#include "fixture.h"

#define TIMEOUT		(5 * USEC_PER_SEC)

static DAT_RETURN connect_with(struct kd_side *a, struct kd_side *p, u64 port,
			       DAT_COUNT len, void *data)
{
	return dat_ep_connect(a->ep, p->addr, port, TIMEOUT, len, data,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/* ---- Private data --------------------------------------------------------- */

/* The InfiniBand CM pads private data with zeros. */
static void expect_private_data(struct kd_side *s, const void *got,
				DAT_COUNT size, DAT_COUNT want, u32 seed)
{
	struct kunit *test = s->test;

	if (kd_is_iwarp(s))
		KUNIT_EXPECT_EQ(test, size, want);
	else
		KUNIT_EXPECT_GE(test, size, want);
	if (size < want || !want)
		return;
	KUNIT_EXPECT_TRUE(test, kd_is_filled(got, want, seed));
	KUNIT_EXPECT_NULL(test, memchr_inv(got + want, 0, size - want));
}

static void expect_cr_private_data(struct kd_side *p, DAT_CR_HANDLE cr,
				   DAT_COUNT want)
{
	DAT_CR_PARAM param = {};

	KD_ASSERT_OK(p->test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	expect_private_data(p, param.private_data, param.private_data_size,
			    want, 1);
	KUNIT_EXPECT_NOT_NULL(p->test, param.remote_ia_address_ptr);
	KUNIT_EXPECT_NULL(p->test, param.local_ep_handle);
}

static void expect_event_private_data(struct kd_side *a, DAT_EVENT_NUMBER number,
				      DAT_COUNT want)
{
	DAT_CONNECTION_EVENT_DATA *data;
	DAT_EVENT event;

	kd_expect_event(a->test, a->conn_evd, number, &event);
	data = &event.event_data.connect_event_data;
	KUNIT_EXPECT_PTR_EQ(a->test, data->ep_handle, a->ep);
	expect_private_data(a, data->private_data, data->private_data_size,
			    want, 2);
}

static void L5_private_data_both_ways(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	const DAT_COUNT lens[] = { 0, 1, a->max_pd };
	u8 *hello = kunit_kzalloc(test, a->max_pd, GFP_KERNEL);
	u8 *reply = kunit_kzalloc(test, a->max_pd, GFP_KERNEL);
	u16 port = kd_port();
	DAT_CR_HANDLE cr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, hello);
	KUNIT_ASSERT_NOT_NULL(test, reply);
	kd_fill(hello, a->max_pd, 1);
	kd_fill(reply, a->max_pd, 2);
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		KD_ASSERT_OK(test, connect_with(a, p, port, lens[i], hello));
		cr = kd_expect_cr(p);
		expect_cr_private_data(p, cr, lens[i]);
		KD_ASSERT_OK(test, dat_cr_accept(cr, p->ep, lens[i], reply));
		expect_event_private_data(a, DAT_CONNECTION_EVENT_ESTABLISHED,
					  lens[i]);
		kd_expect_event(test, p->conn_evd,
				DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
		kd_disconnect(a, p);
		KD_ASSERT_OK(test, dat_ep_reset(a->ep));
		KD_ASSERT_OK(test, dat_ep_reset(p->ep));
	}
}

static void L5_reject_with_private_data(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	const DAT_COUNT lens[] = { 0, 1, 32 };
	u16 port = kd_port();
	u8 reply[32];
	int i;

	kd_fill(reply, sizeof(reply), 2);
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		KD_ASSERT_OK(test, connect_with(a, p, port, 0, NULL));
		KD_ASSERT_OK(test, dat_cr_reject(kd_expect_cr(p), lens[i],
						 reply));
		expect_event_private_data(a, DAT_CONNECTION_EVENT_PEER_REJECTED,
					  lens[i]);
		KUNIT_EXPECT_EQ(test, (int)kd_state(a),
				(int)DAT_EP_STATE_DISCONNECTED);
		KD_ASSERT_OK(test, dat_ep_reset(a->ep));
	}
	KUNIT_EXPECT_EQ(test, (int)kd_state(p), (int)DAT_EP_STATE_UNCONNECTED);
}

/*
 * Private data of an event belong to the Endpoint and are valid until it is
 * reset.
 */
static void L5_private_data_after_reset(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	u16 port = kd_port();
	DAT_EVENT event;

	kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(c.a, c.p, port);
	KD_ASSERT_OK(test, dat_cr_reject(kd_expect_cr(c.p), 8, c.p->buf->va));
	KUNIT_ASSERT_TRUE(test, kd_wait_state(c.a->ep,
					      DAT_EP_STATE_DISCONNECTED));
	KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
	kd_expect_event(test, c.a->conn_evd,
			DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
	KUNIT_EXPECT_EQ(test, event.event_data.connect_event_data
			.private_data_size, 0);
	KUNIT_EXPECT_NULL(test, event.event_data.connect_event_data
			  .private_data);
}

static void L5_private_data_too_long(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      connect_with(a, p, port, a->max_pd + 1, a->buf->va));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      connect_with(a, p, port, 1, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      connect_with(a, p, port, -1, a->buf->va));
	KUNIT_EXPECT_EQ(test, (int)kd_state(a), (int)DAT_EP_STATE_UNCONNECTED);
	KD_ASSERT_OK(test, connect_with(a, p, port, 0, NULL));
	cr = kd_expect_cr(p);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_cr_accept(cr, p->ep, p->max_pd + 1, p->buf->va));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_cr_accept(cr, p->ep, 1, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_cr_reject(cr, p->max_pd + 1, p->buf->va));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, dat_cr_reject(cr, 1, NULL));
	KD_EXPECT_OK(test, dat_cr_accept(cr, p->ep, 0, NULL));
}

/* ---- Where to --------------------------------------------------------------- */

static void connect_arguments(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct sockaddr odd = { .sa_family = AF_UNIX };
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      connect_with(a, p, 0, 0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      connect_with(a, p, 65536, 0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_ADDRESS,
		      dat_ep_connect(a->ep, NULL, port, TIMEOUT, 0, NULL,
				     DAT_QOS_BEST_EFFORT, 0));
	KD_EXPECT_RET(test, DAT_INVALID_ADDRESS,
		      dat_ep_connect(a->ep, &odd, port, TIMEOUT, 0, NULL,
				     DAT_QOS_BEST_EFFORT, 0));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_connect(a->ep, p->addr, port, 0, 0, NULL,
				     DAT_QOS_BEST_EFFORT, 0));
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      dat_ep_connect(a->ep, p->addr, port, TIMEOUT, 0, NULL,
				     (DAT_QOS)0x80, 0));
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      dat_ep_connect(a->ep, p->addr, port, TIMEOUT, 0, NULL,
				     DAT_QOS_BEST_EFFORT,
				     DAT_CONNECT_MULTIPATH_REQUIRED_FLAG));
	KUNIT_EXPECT_EQ(test, (int)kd_state(a), (int)DAT_EP_STATE_UNCONNECTED);
}

static void nobody_listens(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);

	KD_ASSERT_OK(test, connect_with(pair.a, pair.p, kd_port(), 0, NULL));
	kd_expect_event(test, pair.a->conn_evd,
			DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL);
	KUNIT_EXPECT_EQ(test, (int)kd_state(pair.a),
			(int)DAT_EP_STATE_DISCONNECTED);
}

static void connect_without_pz(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_side *a = pair.a;

	KD_ASSERT_OK(test, dat_ep_create(a->ia, NULL, a->recv_evd, a->req_evd,
					 a->conn_evd, &attr, &a->ep));
	KUNIT_EXPECT_EQ(test, connect_with(a, pair.p, kd_port(), 0, NULL),
			DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PZ));
}

/* A request that is never answered ends with the timeout. */
static void connect_times_out(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	KD_ASSERT_OK(test, dat_ep_connect(a->ep, p->addr, port,
					  200 * USEC_PER_MSEC, 0, NULL,
					  DAT_QOS_BEST_EFFORT, 0));
	cr = kd_expect_cr(p);
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_TIMED_OUT,
			NULL);
	KUNIT_EXPECT_EQ(test, (int)kd_state(a), (int)DAT_EP_STATE_DISCONNECTED);
	/*
	 * Accepting comes too late, whether or not the transport has reported
	 * that (N5).
	 */
	if (dat_cr_accept(cr, p->ep, 0, NULL) == DAT_SUCCESS) {
		DAT_EVENT event = {};

		KUNIT_EXPECT_TRUE(test, kd_wait_event(p->conn_evd, &event,
						      KD_TIMEOUT_MS));
	}
	kd_expect_no_event(test, a->conn_evd);
}

/* ---- Service points --------------------------------------------------------- */

static void N2_conn_qual_of_a_psp(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_PSP_HANDLE psp, other = NULL;
	DAT_PSP_PARAM param;
	u16 port = kd_port();

	kd_setup(s, NULL);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_psp_create(s->ia, 0, s->cr_evd, 0, &psp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_psp_create(s->ia, 65536, s->cr_evd, 0, &psp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_psp_create(s->ia, port, s->cr_evd, 2, &psp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_psp_create(s->ia, port, s->recv_evd, 0, &psp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_psp_create(s->ia, port, s->cr_evd, 0, NULL));
	psp = kd_psp(s, port, DAT_PSP_CONSUMER_FLAG);
	KD_EXPECT_RET(test, DAT_CONN_QUAL_IN_USE,
		      dat_psp_create(s->ia, port, s->cr_evd, 0, &other));
	KD_EXPECT_OK(test, dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, s->ia);
	KUNIT_EXPECT_EQ(test, param.conn_qual, port);
	KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, s->cr_evd);
	KUNIT_EXPECT_EQ(test, (int)param.psp_flags, DAT_PSP_CONSUMER_FLAG);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_psp_query(psp, DAT_PSP_FIELD_ALL + 1, &param));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_psp_query(psp, DAT_PSP_FIELD_ALL, NULL));
	/* A port is free again at once. */
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_psp_free(kd_psp(s, port, 0)));
}

/* Expect that dat_csp_query() reports the address @addr. */
static void expect_csp_address(struct kd_side *s, DAT_CSP_HANDLE csp,
			       const struct sockaddr_in *addr)
{
	struct kunit *test = s->test;
	const struct sockaddr_in *got;
	DAT_CSP_PARAM param = {};

	KD_ASSERT_OK(test, dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, s->ia);
	KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, s->cr_evd);
	KUNIT_EXPECT_EQ(test, param.comm->domain, AF_INET);
	got = (const struct sockaddr_in *)param.address_ptr;
	KUNIT_EXPECT_EQ(test, got->sin_family, AF_INET);
	KUNIT_EXPECT_EQ(test, ntohs(got->sin_port), ntohs(addr->sin_port));
	KUNIT_EXPECT_EQ(test, ntohl(got->sin_addr.s_addr),
			ntohl(addr->sin_addr.s_addr));
}

/* The port in a CSP's address is its connection qualifier. */
static void N2_address_of_a_csp(struct kunit *test)
{
	DAT_COMM comm = { .domain = AF_INET, .type = SOCK_STREAM };
	struct kd_side *s = kd_open_param(test);
	struct sockaddr_in addr = *(struct sockaddr_in *)s->addr;
	DAT_IA_ADDRESS_PTR at = (DAT_IA_ADDRESS_PTR)&addr;
	DAT_CSP_HANDLE csp, other;

	kd_setup(s, NULL);
	addr.sin_port = 0;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_csp_create(s->ia, &comm, at, s->cr_evd, &csp));
	addr.sin_port = htons(kd_port());
	comm.domain = AF_INET6;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_csp_create(s->ia, &comm, at, s->cr_evd, &csp));
	comm.domain = AF_INET;
	comm.type = SOCK_DGRAM;
	KD_EXPECT_RET(test, DAT_COMM_NOT_SUPPORTED,
		      dat_csp_create(s->ia, &comm, at, s->cr_evd, &csp));
	comm.type = SOCK_STREAM;

	KD_ASSERT_OK(test, dat_csp_create(s->ia, &comm, at, s->cr_evd, &csp));
	KD_EXPECT_RET(test, DAT_PORT_IN_USE,
		      dat_csp_create(s->ia, &comm, at, s->cr_evd, &other));
	expect_csp_address(s, csp, &addr);
	KD_EXPECT_OK(test, dat_csp_free(csp));

	addr.sin_addr.s_addr = htonl(INADDR_ANY);
	KD_ASSERT_OK(test, dat_csp_create(s->ia, &comm, at, s->cr_evd, &csp));
	expect_csp_address(s, csp, &addr);
	KD_EXPECT_OK(test, dat_csp_free(csp));
}

static void L5_common_connect(struct kunit *test)
{
	DAT_COMM comm = { .domain = AF_INET, .type = SOCK_STREAM };
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	struct sockaddr_in addr = *(struct sockaddr_in *)p->addr;
	struct sockaddr_in6 v6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(5100),
	};
	DAT_IA_ADDRESS_PTR at = (DAT_IA_ADDRESS_PTR)&addr;
	DAT_CSP_HANDLE csp;
	DAT_EVENT event = {};

	addr.sin_port = 0;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_common_connect(a->ep, at, TIMEOUT, 0, NULL));
	addr.sin_port = htons(kd_port());
	/* The comm of the CSP says AF_INET. */
	KD_EXPECT_RET(test, DAT_INVALID_ADDRESS,
		      dat_ep_common_connect(a->ep, (DAT_IA_ADDRESS_PTR)&v6,
					    TIMEOUT, 0, NULL));

	KD_ASSERT_OK(test, dat_csp_create(p->ia, &comm, at, p->cr_evd, &csp));
	KD_ASSERT_OK(test, dat_ep_common_connect(a->ep, at, TIMEOUT, 0, NULL));
	kd_expect_event(test, p->cr_evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	KUNIT_EXPECT_PTR_EQ(test, csp,
			    event.event_data.cr_arrival_event_data.sp_handle
				    .csp_handle);
	KD_EXPECT_OK(test, dat_cr_accept(event.event_data.cr_arrival_event_data
						 .cr_handle, p->ep, 0, NULL));
	kd_expect_established(a, p);
}

static void N2_psp_create_any(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_CONN_QUAL first = 0, second = 0;
	DAT_PSP_HANDLE psp;

	KD_ASSERT_OK(test, dat_psp_create_any(p->ia, &first, p->cr_evd, 0,
					      &psp));
	KD_ASSERT_OK(test, dat_psp_create_any(p->ia, &second, p->cr_evd, 0,
					      &psp));
	KUNIT_EXPECT_GE(test, first, 1024);
	KUNIT_EXPECT_LE(test, first, 65535);
	KUNIT_EXPECT_NE(test, first, second);
	KD_ASSERT_OK(test, connect_with(a, p, second, 0, NULL));
	KD_EXPECT_OK(test, dat_cr_accept(kd_expect_cr(p), p->ep, 0, NULL));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_psp_create_any(p->ia, NULL, p->cr_evd, 0, &psp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_psp_create_any(p->ia, &first, p->cr_evd, 0, NULL));
}

/*
 * Only one port may be picked. The kernel keeps the range of ports as two ints
 * or, since 6.8, in one.
 */
static void N2_no_port_is_free(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	typeof(init_net.ipv4.ip_local_ports) *ports =
		&init_net.ipv4.ip_local_ports;
	u32 port = kd_port(), both[] = { port, port };
	u32 range[2];
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_RETURN ret;
	int i;

	kd_skip_own(test, "changes the ports of the system");
	kd_setup(s, NULL);
	if (sizeof(ports->range) == sizeof(u32))
		both[0] |= port << 16;
	memcpy(range, &ports->range, sizeof(ports->range));
	memcpy(&ports->range, both, sizeof(ports->range));
	for (i = 0, ret = DAT_SUCCESS; i < 2 && ret == DAT_SUCCESS; i++)
		ret = dat_psp_create_any(s->ia, &qual, s->cr_evd, 0, &psp);
	memcpy(&ports->range, range, sizeof(ports->range));
	KD_EXPECT_RET(test, DAT_CONN_QUAL_UNAVAILABLE, ret);
	KD_EXPECT_OK(test, dat_psp_create_any(s->ia, &qual, s->cr_evd, 0,
					      &psp));
}

static void cr_event_names_its_psp(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_CR_ARRIVAL_EVENT_DATA *data;
	DAT_PSP_HANDLE psp;
	u16 port = kd_port();
	DAT_CR_PARAM param;
	DAT_EVENT event;

	psp = kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(a, p, port);
	kd_expect_event(test, p->cr_evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	data = &event.event_data.cr_arrival_event_data;
	KUNIT_EXPECT_PTR_EQ(test, data->sp_handle.psp_handle, psp);
	KUNIT_EXPECT_EQ(test, data->conn_qual, port);
	KUNIT_EXPECT_EQ(test, (int)data->truncate_flag, DAT_FALSE);
	KUNIT_ASSERT_NOT_NULL(test, data->local_ia_address_ptr);
	KUNIT_EXPECT_EQ(test, data->local_ia_address_ptr->sa_family, AF_INET);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_cr_query(data->cr_handle, 0x20, &param));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_cr_query(data->cr_handle, 1, NULL));
	/*
	 * N5: the request outlives its PSP, and later requests do not find the
	 * PSP.
	 */
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_cr_accept(data->cr_handle, p->ep, 0, NULL));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
	a->ep = kd_ep(a, NULL);
	kd_connect_start(a, p, port);
	kd_expect_event(test, a->conn_evd,
			DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL);
}

static void N5_request_of_a_peer_that_gave_up(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(a, p, port);
	cr = kd_expect_cr(p);
	KD_ASSERT_OK(test, dat_ep_free(a->ep));
	/*
	 * The transport may not tell that the peer is gone before there is an
	 * answer; then accepting fails later, with an event.
	 */
	if (dat_cr_accept(cr, p->ep, 0, NULL) == DAT_SUCCESS) {
		DAT_EVENT event = {};

		KUNIT_EXPECT_TRUE(test, kd_wait_event(p->conn_evd, &event,
						      KD_TIMEOUT_MS));
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			KUNIT_EXPECT_TRUE(test, kd_wait_event(p->conn_evd,
							      &event,
							      KD_TIMEOUT_MS));
		KUNIT_EXPECT_EQ(test, (int)kd_state(p),
				(int)DAT_EP_STATE_DISCONNECTED);
	}
}

static void N5_rsp_takes_one_request(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_CR_ARRIVAL_EVENT_DATA *data;
	DAT_RSP_HANDLE rsp = NULL;
	DAT_EP_HANDLE first = a->ep;
	u16 port = kd_port();
	DAT_EVENT event;

	KD_ASSERT_OK(test, dat_rsp_create(p->ia, port, p->ep, p->cr_evd, &rsp));
	kd_connect_start(a, p, port);
	kd_expect_event(test, p->cr_evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	data = &event.event_data.cr_arrival_event_data;
	KUNIT_EXPECT_PTR_EQ(test, data->sp_handle.rsp_handle, rsp);
	a->ep = kd_ep(a, NULL);
	kd_connect_start(a, p, port);
	kd_expect_event(test, a->conn_evd, kd_turned_away(a), NULL);
	a->ep = first;
	KD_ASSERT_OK(test, dat_cr_accept(data->cr_handle, NULL, 0, NULL));
	kd_expect_established(a, p);
	KD_EXPECT_OK(test, dat_rsp_free(rsp));
	kd_disconnect(a, p);
}

/* ---- Many --------------------------------------------------------------------- */

static void connect_disconnect_many_times(struct kunit *test)
{
	int i, rounds = kd_slow_kernel() ? 150 : 1000;
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < rounds; i++) {
		kd_connect_start(a, p, port);
		kd_accept(a, p);
		kd_disconnect(i % 2 ? a : p, i % 2 ? p : a);
		KD_ASSERT_OK(test, dat_ep_reset(a->ep));
		KD_ASSERT_OK(test, dat_ep_reset(p->ep));
	}
}

static struct kunit_case conn_cases[] = {
	KUNIT_CASE_PARAM(L5_private_data_both_ways, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_reject_with_private_data, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_private_data_after_reset, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_private_data_too_long, kd_gen_ia),
	KUNIT_CASE_PARAM(connect_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(nobody_listens, kd_gen_ia),
	KUNIT_CASE_PARAM(connect_without_pz, kd_gen_ia),
	KUNIT_CASE_PARAM(connect_times_out, kd_gen_ia),
	KUNIT_CASE_PARAM(N2_conn_qual_of_a_psp, kd_gen_ia),
	KUNIT_CASE_PARAM(N2_address_of_a_csp, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_common_connect, kd_gen_ia),
	KUNIT_CASE_PARAM(N2_psp_create_any, kd_gen_ia),
	KUNIT_CASE_PARAM(N2_no_port_is_free, kd_gen_ia),
	KUNIT_CASE_PARAM(cr_event_names_its_psp, kd_gen_ia),
	KUNIT_CASE_PARAM(N5_request_of_a_peer_that_gave_up, kd_gen_ia),
	KUNIT_CASE_PARAM(N5_rsp_takes_one_request, kd_gen_ia),
	KUNIT_CASE_PARAM(connect_disconnect_many_times, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-conn", conn_cases, "connecting and disconnecting");
