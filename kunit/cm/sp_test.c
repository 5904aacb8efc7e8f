// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Service points (contract N2, N5, L5): PSPs whose Endpoints the provider makes,
 * RSPs and CSPs from beginning to end, and requests handed from one to another.
 */
#include <linux/in.h>
#include <linux/module.h>
#include <linux/net.h>
#include "ep_states.h"

#define TIMEOUT	(5 * USEC_PER_SEC)

static DAT_CR_ARRIVAL_EVENT_DATA expect_request(struct kd_side *p,
						DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = { };

	kd_expect_event(p->test, evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	return event.event_data.cr_arrival_event_data;
}

/* Expect that the peer's provider rejects the request. */
static void expect_turned_away(struct kd_pair *c)
{
	kd_expect_event(c->a->test, c->a->conn_evd, kd_turned_away(c->a), NULL);
	KD_ASSERT_OK(c->a->test, dat_ep_reset(c->a->ep));
}

/* ---- Endpoints made by the provider ------------------------------------------- */

static DAT_EP_HANDLE ep_of(struct kunit *test, DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param = { };

	KD_ASSERT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	return param.local_ep_handle;
}

static void psp_provider_accept(struct kunit *test)
{
	const DAT_EP_PARAM_MASK mask = DAT_EP_FIELD_PZ_HANDLE |
		DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
		DAT_EP_FIELD_CONNECT_EVD_HANDLE;
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_CR_ARRIVAL_EVENT_DATA req;
	u16 port = kd_port();
	DAT_EP_PARAM param;
	DAT_PSP_PARAM psp;
	DAT_PSP_HANDLE sp;
	DAT_EP_HANDLE ep;

	sp = kd_psp(c.p, port, DAT_PSP_PROVIDER_FLAG);
	KD_EXPECT_OK(test, dat_psp_query(sp, DAT_PSP_FIELD_ALL, &psp));
	KUNIT_EXPECT_EQ(test, (int)psp.psp_flags, DAT_PSP_PROVIDER_FLAG);
	kd_connect_start(c.a, c.p, port);
	req = expect_request(c.p, c.p->cr_evd);
	ep = ep_of(test, req.cr_handle);
	KUNIT_EXPECT_EQ(test, (int)ep_state(test, ep),
			(int)DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	KD_ASSERT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_NULL(test, param.pz_handle);
	KUNIT_EXPECT_NULL(test, param.recv_evd_handle);
	KUNIT_EXPECT_NULL(test, param.connect_evd_handle);
	/*
	 * The provider's Endpoint lacks a PZ and EVDs, the consumer cannot free
	 * it, and no other Endpoint may be used instead.
	 */
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_cr_accept(req.cr_handle, NULL, 0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_ep_free(ep));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_cr_accept(req.cr_handle, c.p->ep, 0, NULL));
	param.pz_handle = c.p->pz;
	param.recv_evd_handle = c.p->recv_evd;
	param.request_evd_handle = c.p->req_evd;
	param.connect_evd_handle = c.p->conn_evd;
	KD_ASSERT_OK(test, dat_ep_modify(ep, mask, &param));
	KD_ASSERT_OK(test, dat_cr_accept(req.cr_handle, NULL, 0, NULL));
	kd_expect_established(c.a, c.p);
	c.p->ep = ep;
	kd_ping(c.a, c.p);
	/* Once accepted, the Endpoint is like any other. */
	kd_disconnect(c.a, c.p);
	KD_EXPECT_OK(test, dat_ep_reset(ep));
	KD_EXPECT_OK(test, dat_ep_free(ep));
}

static void psp_provider_reject(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_CR_ARRIVAL_EVENT_DATA req;
	u16 port = kd_port();
	DAT_EP_HANDLE ep;
	int i;

	kd_psp(c.p, port, DAT_PSP_PROVIDER_FLAG);
	for (i = 0; i < 3; i++) {
		kd_connect_start(c.a, c.p, port);
		req = expect_request(c.p, c.p->cr_evd);
		ep = ep_of(test, req.cr_handle);
		KD_ASSERT_OK(test, dat_cr_reject(req.cr_handle, 0, NULL));
		kd_expect_event(test, c.a->conn_evd,
				DAT_CONNECTION_EVENT_PEER_REJECTED, NULL);
		KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
			      dat_ep_get_status(ep, NULL, NULL, NULL));
		KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
	}
}

/* ---- RSPs ------------------------------------------------------------------------- */

static DAT_RSP_HANDLE make_rsp(struct kd_pair *c, u16 port)
{
	DAT_RSP_HANDLE rsp = NULL;

	KD_ASSERT_OK(c->a->test, dat_rsp_create(c->p->ia, port, c->p->ep,
						c->p->cr_evd, &rsp));
	return rsp;
}

/* Make an RSP and let the peer connect to it; return the request. */
static DAT_CR_ARRIVAL_EVENT_DATA ask_rsp(struct kd_pair *c, u16 port,
					 DAT_RSP_HANDLE *rsp)
{
	*rsp = make_rsp(c, port);
	kd_connect_start(c->a, c->p, port);
	return expect_request(c->p, c->p->cr_evd);
}

static void rsp_query_and_free(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_RSP_PARAM param;
	u16 port = kd_port();
	DAT_RSP_HANDLE rsp;

	rsp = make_rsp(&c, port);
	KUNIT_EXPECT_EQ(test, (int)kd_state(c.p), (int)DAT_EP_STATE_RESERVED);
	KD_EXPECT_OK(test, dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, c.p->ia);
	KUNIT_EXPECT_EQ(test, param.conn_qual, port);
	KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, c.p->cr_evd);
	KUNIT_EXPECT_PTR_EQ(test, param.ep_handle, c.p->ep);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rsp_query(rsp, DAT_RSP_FIELD_ALL + 1, &param));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, NULL));
	KUNIT_EXPECT_EQ(test, dat_evd_free(c.p->cr_evd),
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_EVD_IN_USE));
	KD_EXPECT_OK(test, dat_rsp_free(rsp));
	KUNIT_EXPECT_EQ(test, (int)kd_state(c.p),
			(int)DAT_EP_STATE_UNCONNECTED);
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_rsp_free(rsp));
	/* After the RSP was freed the port has no listener. */
	kd_connect_start(c.a, c.p, port);
	kd_expect_event(test, c.a->conn_evd,
			DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL);
}

static void N5_rsp_reject(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_CR_ARRIVAL_EVENT_DATA req;
	u16 port = kd_port();
	DAT_RSP_HANDLE rsp;

	req = ask_rsp(&c, port, &rsp);
	KUNIT_EXPECT_PTR_EQ(test, req.sp_handle.rsp_handle, rsp);
	KUNIT_EXPECT_EQ(test, req.conn_qual, port);
	KUNIT_EXPECT_PTR_EQ(test, ep_of(test, req.cr_handle), c.p->ep);
	KUNIT_EXPECT_EQ(test, (int)kd_state(c.p),
			(int)DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	KD_EXPECT_OK(test, dat_cr_reject(req.cr_handle, 0, NULL));
	kd_expect_event(test, c.a->conn_evd,
			DAT_CONNECTION_EVENT_PEER_REJECTED, NULL);
	KUNIT_EXPECT_EQ(test, (int)kd_state(c.p),
			(int)DAT_EP_STATE_UNCONNECTED);
	/* The RSP took one request, and exists until it is freed. */
	KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
	kd_connect_start(c.a, c.p, port);
	expect_turned_away(&c);
	KD_EXPECT_OK(test, dat_rsp_query(rsp, DAT_RSP_FIELD_ALL,
					 &(DAT_RSP_PARAM) { }));
	/* The Endpoint is the consumer's again. */
	kd_connect_pair(c.a, c.p);
	KD_EXPECT_OK(test, dat_rsp_free(rsp));
	kd_ping(c.a, c.p);
}

/* Make an RSP on @port that has taken its request. */
static DAT_RSP_HANDLE spent_rsp(struct kd_pair *c, u16 port)
{
	struct kunit *test = c->a->test;
	DAT_RSP_HANDLE rsp = make_rsp(c, port);

	kd_connect_start(c->a, c->p, port);
	KD_ASSERT_OK(test, dat_cr_reject(kd_expect_cr(c->p), 0, NULL));
	kd_expect_event(test, c->a->conn_evd,
			DAT_CONNECTION_EVENT_PEER_REJECTED, NULL);
	KD_ASSERT_OK(test, dat_ep_reset(c->a->ep));
	return rsp;
}

/*
 * After its request an RSP has released the Endpoint: another RSP may take it.
 */
static void spent_rsp_lets_go(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	u16 port = kd_port(), other = kd_port();
	DAT_RSP_HANDLE spent, rsp;
	DAT_CR_ARRIVAL_EVENT_DATA req;

	spent = spent_rsp(&c, port);
	rsp = make_rsp(&c, other);
	kd_connect_start(c.a, c.p, port);
	expect_turned_away(&c);
	KUNIT_EXPECT_EQ(test, (int)kd_state(c.p), (int)DAT_EP_STATE_RESERVED);
	KD_EXPECT_OK(test, dat_rsp_free(spent));
	KUNIT_EXPECT_EQ(test, (int)kd_state(c.p), (int)DAT_EP_STATE_RESERVED);
	KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
	kd_connect_start(c.a, c.p, other);
	req = expect_request(c.p, c.p->cr_evd);
	KUNIT_EXPECT_PTR_EQ(test, req.sp_handle.rsp_handle, rsp);
	KD_EXPECT_OK(test, dat_cr_accept(req.cr_handle, NULL, 0, NULL));
	kd_expect_established(c.a, c.p);
}

/* A pending Endpoint knows its ports and its peer. */
static void addresses_while_pending(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_EP_PARAM a, p;
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	make_rsp(&c, port);
	kd_connect_start(c.a, c.p, port);
	cr = kd_expect_cr(c.p);
	KD_ASSERT_OK(test, dat_ep_query(c.a->ep, DAT_EP_FIELD_ALL, &a));
	KD_ASSERT_OK(test, dat_ep_query(c.p->ep, DAT_EP_FIELD_ALL, &p));
	KUNIT_EXPECT_EQ(test, (int)p.ep_state,
			(int)DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	KUNIT_EXPECT_EQ(test, p.local_port_qual, port);
	KUNIT_EXPECT_EQ(test, a.remote_port_qual, port);
	KUNIT_EXPECT_NE(test, a.local_port_qual, 0);
	KUNIT_ASSERT_NOT_NULL(test, p.remote_ia_address_ptr);
	KUNIT_EXPECT_EQ(test, p.remote_ia_address_ptr->sa_family, AF_INET);
	KUNIT_ASSERT_NOT_NULL(test, a.local_ia_address_ptr);
	KUNIT_EXPECT_EQ(test, a.local_ia_address_ptr->sa_family, AF_INET);
	KD_ASSERT_OK(test, dat_cr_reject(cr, 0, NULL));
	KD_ASSERT_OK(test, dat_ep_query(c.p->ep, DAT_EP_FIELD_ALL, &p));
	KUNIT_EXPECT_EQ(test, p.remote_port_qual, 0);
}

static bool cr_is_void(void *data)
{
	return dat_cr_query(data, DAT_CR_FIELD_ALL, &(DAT_CR_PARAM) { }) !=
		DAT_SUCCESS;
}

/*
 * A request whose peer has given up cannot be accepted (DAT_INVALID_HANDLE),
 * whatever has become of its Endpoint.
 */
static void N5_void_request_is_accepted(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	if (kd_is_iwarp(c.a))
		kunit_skip(test, "siw does not tell before there is an answer");
	make_rsp(&c, port);
	kd_connect_start(c.a, c.p, port);
	cr = kd_expect_cr(c.p);
	KD_ASSERT_OK(test, dat_ep_disconnect(c.a->ep, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_ASSERT_TRUE(test, kd_wait_until(cr_is_void, cr, KD_TIMEOUT_MS));
	/* The handle is looked at before the other arguments. */
	KUNIT_EXPECT_EQ(test, dat_cr_query(cr, ~DAT_CR_FIELD_ALL, NULL),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR));
	KUNIT_EXPECT_EQ(test, dat_cr_accept(cr, NULL, 0, NULL),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR));
	/* The failed accept has destroyed the request. */
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_cr_reject(cr, 0, NULL));
}

static void N5_rsp_freed_before_the_answer(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_CR_ARRIVAL_EVENT_DATA req;
	u16 port = kd_port();
	DAT_RSP_HANDLE rsp;

	req = ask_rsp(&c, port, &rsp);
	KD_EXPECT_OK(test, dat_rsp_free(rsp));
	KUNIT_EXPECT_EQ(test, (int)kd_state(c.p),
			(int)DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	KD_EXPECT_OK(test, dat_cr_accept(req.cr_handle, NULL, 0, NULL));
	kd_expect_established(c.a, c.p);
	kd_ping(c.a, c.p);
}

static void rsp_arguments(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct kd_side *p = c.p;
	u16 port = kd_port();
	DAT_RSP_HANDLE rsp;

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rsp_create(p->ia, 0, p->ep, p->cr_evd, &rsp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rsp_create(p->ia, 65536, p->ep, p->cr_evd, &rsp));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_rsp_create(p->ia, port, NULL, p->cr_evd, &rsp));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_rsp_create(p->ia, port, c.a->ep, p->cr_evd, &rsp));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_rsp_create(p->ia, port, p->ep, NULL, &rsp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rsp_create(p->ia, port, p->ep, p->recv_evd, &rsp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rsp_create(p->ia, port, p->ep, p->cr_evd, NULL));
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	KD_EXPECT_RET(test, DAT_CONN_QUAL_IN_USE,
		      dat_rsp_create(p->ia, port, p->ep, p->cr_evd, &rsp));
	KUNIT_EXPECT_EQ(test, (int)kd_state(p), (int)DAT_EP_STATE_UNCONNECTED);
	make_rsp(&c, kd_port());
	KUNIT_EXPECT_EQ(test, dat_rsp_create(p->ia, kd_port(), p->ep, p->cr_evd,
					     &rsp),
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_EP_RESERVED));
}

/* ---- Handing off ------------------------------------------------------------------ */

static void L5_handoff(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	u16 first = kd_port(), second = kd_port();
	DAT_CR_ARRIVAL_EVENT_DATA req, moved;
	DAT_EVD_HANDLE evd;
	DAT_CR_PARAM param;
	DAT_PSP_HANDLE to;
	u8 hello[8];

	kd_fill(hello, sizeof(hello), 1);
	kd_psp(c.p, first, DAT_PSP_CONSUMER_FLAG);
	evd = kd_evd(c.p, DAT_EVD_CR_FLAG, 8, DAT_UPCALL_DISABLE);
	KD_ASSERT_OK(test, dat_psp_create(c.p->ia, second, evd,
					  DAT_PSP_CONSUMER_FLAG, &to));
	KD_ASSERT_OK(test, dat_ep_connect(c.a->ep, c.p->addr, first, TIMEOUT,
					  sizeof(hello), hello,
					  DAT_QOS_BEST_EFFORT, 0));
	req = expect_request(c.p, c.p->cr_evd);
	KD_ASSERT_OK(test, dat_cr_handoff(req.cr_handle, second));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_cr_query(req.cr_handle, DAT_CR_FIELD_ALL, &param));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_cr_accept(req.cr_handle, c.p->ep, 0, NULL));
	moved = expect_request(c.p, evd);
	KUNIT_EXPECT_PTR_EQ(test, moved.sp_handle.psp_handle, to);
	KUNIT_EXPECT_EQ(test, moved.conn_qual, second);
	KD_ASSERT_OK(test, dat_cr_query(moved.cr_handle, DAT_CR_FIELD_ALL,
					&param));
	KUNIT_ASSERT_GE(test, param.private_data_size, 8);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(param.private_data, 8, 1));
	KUNIT_EXPECT_EQ(test, param.remote_ia_address_ptr->sa_family, AF_INET);
	/* Hand the request back: the peer does not notice. */
	KD_ASSERT_OK(test, dat_cr_handoff(moved.cr_handle, first));
	req = expect_request(c.p, c.p->cr_evd);
	KD_ASSERT_OK(test, dat_cr_accept(req.cr_handle, c.p->ep, 0, NULL));
	kd_expect_established(c.a, c.p);
	kd_ping(c.a, c.p);
	kd_expect_no_event(test, c.p->cr_evd);
}

/* The service point that takes the request provides the Endpoint. */
static void L5_handoff_to_an_rsp(struct kunit *test)
{
	u16 first = kd_port(), second = kd_port(), third = kd_port();
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_CR_ARRIVAL_EVENT_DATA req;
	DAT_RSP_HANDLE rsp;

	kd_psp(c.p, first, DAT_PSP_PROVIDER_FLAG);
	rsp = make_rsp(&c, second);
	kd_connect_start(c.a, c.p, first);
	req = expect_request(c.p, c.p->cr_evd);
	KD_ASSERT_OK(test, dat_cr_handoff(req.cr_handle, second));
	req = expect_request(c.p, c.p->cr_evd);
	KUNIT_EXPECT_PTR_EQ(test, req.sp_handle.rsp_handle, rsp);
	KUNIT_EXPECT_PTR_EQ(test, ep_of(test, req.cr_handle), c.p->ep);
	/* A request that is handed on releases the Endpoint of the RSP. */
	kd_psp(c.p, third, DAT_PSP_CONSUMER_FLAG);
	KD_ASSERT_OK(test, dat_cr_handoff(req.cr_handle, third));
	KUNIT_EXPECT_EQ(test, (int)kd_state(c.p),
			(int)DAT_EP_STATE_UNCONNECTED);
	req = expect_request(c.p, c.p->cr_evd);
	KD_ASSERT_OK(test, dat_cr_accept(req.cr_handle, c.p->ep, 0, NULL));
	kd_expect_established(c.a, c.p);
	kd_ping(c.a, c.p);
}

static void L5_handoff_refused(struct kunit *test)
{
	u16 port = kd_port(), busy = kd_port();
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_CR_ARRIVAL_EVENT_DATA req;

	kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	kd_psp(c.a, busy, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(c.a, c.p, port);
	req = expect_request(c.p, c.p->cr_evd);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_cr_handoff(req.cr_handle, 0));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_cr_handoff(req.cr_handle, 65536 + port));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_cr_handoff(req.cr_handle, kd_port()));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_cr_handoff(req.cr_handle, port));
	/* A service point of another IA cannot take the request. */
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_cr_handoff(req.cr_handle, busy));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_cr_handoff(NULL, busy));
	KD_ASSERT_OK(test, dat_cr_accept(req.cr_handle, c.p->ep, 0, NULL));
	kd_expect_established(c.a, c.p);
}

/* ---- CSPs -------------------------------------------------------------------------- */

static DAT_COMM tcp(int family)
{
	return (DAT_COMM) { family, SOCK_STREAM, IPPROTO_TCP };
}

static struct sockaddr_in at_port(struct kd_side *s, u16 port)
{
	struct sockaddr_in in;

	memcpy(&in, s->addr, sizeof(in));
	in.sin_port = htons(port);
	return in;
}

static void L5_common_service_point(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct sockaddr_in at = at_port(c.p, kd_port());
	struct sockaddr_in *where;
	DAT_CR_ARRIVAL_EVENT_DATA req;
	DAT_COMM comm = tcp(AF_INET);
	DAT_CSP_PARAM param;
	DAT_CSP_HANDLE csp;
	DAT_CR_PARAM cr;
	u8 hello[8];

	kd_fill(hello, sizeof(hello), 1);
	KD_ASSERT_OK(test, dat_csp_create(c.p->ia, &comm,
					  (void *)&at, c.p->cr_evd,
					  &csp));
	KD_ASSERT_OK(test, dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, c.p->ia);
	KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, c.p->cr_evd);
	KUNIT_EXPECT_EQ(test, param.comm->domain, AF_INET);
	KUNIT_EXPECT_EQ(test, param.comm->type, SOCK_STREAM);
	where = (struct sockaddr_in *)param.address_ptr;
	KUNIT_EXPECT_EQ(test, 0, memcmp(where, &at, sizeof(at)));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_csp_query(csp, DAT_CSP_FIELD_ALL + 1, &param));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_csp_query(csp, DAT_CSP_FIELD_ALL, NULL));

	KD_ASSERT_OK(test, dat_ep_common_connect(c.a->ep,
						 (void *)&at,
						 TIMEOUT, sizeof(hello),
						 hello));
	req = expect_request(c.p, c.p->cr_evd);
	KUNIT_EXPECT_PTR_EQ(test, req.sp_handle.csp_handle, csp);
	KD_ASSERT_OK(test, dat_cr_query(req.cr_handle, DAT_CR_FIELD_ALL, &cr));
	KUNIT_ASSERT_GE(test, cr.private_data_size, 8);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(cr.private_data, 8, 1));
	KD_ASSERT_OK(test, dat_cr_accept(req.cr_handle, c.p->ep, 0, NULL));
	kd_expect_established(c.a, c.p);
	kd_ping(c.a, c.p);
	KD_EXPECT_OK(test, dat_csp_free(csp));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_csp_free(csp));
	c.a->ep = kd_ep(c.a, NULL);
	KD_ASSERT_OK(test, dat_ep_common_connect(c.a->ep,
						 (void *)&at,
						 TIMEOUT, 0, NULL));
	kd_expect_event(test, c.a->conn_evd,
			DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL);
}

/* A CSP without an address listens on all addresses of the IA. */
static void L5_csp_anywhere(struct kunit *test)
{
	struct sockaddr_in any = { .sin_family = AF_INET }, at;
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_COMM comm = tcp(AF_INET);
	DAT_CSP_PARAM param;
	DAT_CSP_HANDLE csp;
	u16 port = kd_port();
	struct sockaddr_in6 any6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(port),
	};

	comm.protocol = 0;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_csp_create(c.p->ia, &comm, (void *)&any, c.p->cr_evd,
				     &csp));
	any.sin_port = htons(port);
	KD_ASSERT_OK(test, dat_csp_create(c.p->ia, &comm, (void *)&any,
					  c.p->cr_evd, &csp));
	KD_ASSERT_OK(test, dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, 0, memcmp(param.address_ptr, &any, sizeof(any)));
	at = at_port(c.p, port);
	KD_ASSERT_OK(test, dat_ep_common_connect(c.a->ep, (void *)&at, TIMEOUT,
						 0, NULL));
	kd_accept(c.a, c.p);
	/* It listens on the addresses of its family only. */
	comm.domain = AF_INET6;
	KD_EXPECT_OK(test, dat_csp_create(c.p->ia, &comm, (void *)&any6,
					  c.p->cr_evd, &csp));
}

static void L5_csp_arguments(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct sockaddr_in at = at_port(c.p, kd_port()), foreign = at;
	DAT_IA_ADDRESS_PTR addr = (void *)&at;
	DAT_COMM comm = tcp(AF_INET), v6 = tcp(AF_INET6), udp = comm;
	DAT_EVD_HANDLE evd = c.p->cr_evd;
	DAT_CSP_HANDLE csp;

	udp.type = SOCK_DGRAM;
	KD_EXPECT_RET(test, DAT_COMM_NOT_SUPPORTED,
		      dat_csp_create(c.p->ia, &udp, addr, evd, &csp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_csp_create(c.p->ia, NULL, addr, evd, &csp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_csp_create(c.p->ia, &comm, NULL, evd, &csp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_csp_create(c.p->ia, &v6, addr, evd, &csp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_csp_create(c.p->ia, &comm, addr, c.p->recv_evd,
				     &csp));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_csp_create(c.p->ia, &comm, addr, evd, NULL));
	foreign.sin_addr.s_addr = htonl(0xc0000201);
	KD_EXPECT_RET(test, DAT_INVALID_ADDRESS,
		      dat_csp_create(c.p->ia, &comm,
				     (void *)&foreign, evd, &csp));
	KD_ASSERT_OK(test, dat_csp_create(c.p->ia, &comm, addr, evd, &csp));
	KD_EXPECT_RET(test, DAT_PORT_IN_USE,
		      dat_csp_create(c.p->ia, &comm, addr, evd, &csp));

	/* The connect call. */
	at.sin_port = 0;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_common_connect(c.a->ep, addr, TIMEOUT, 0, NULL));
	at.sin_port = htons(kd_port());
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_common_connect(c.a->ep, addr, 0, 0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_common_connect(c.a->ep, addr, TIMEOUT,
					    c.a->max_pd + 1, c.a->buf->va));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_common_connect(c.a->ep, addr, TIMEOUT, 1, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_ADDRESS,
		      dat_ep_common_connect(c.a->ep, NULL, TIMEOUT, 0, NULL));
	KUNIT_EXPECT_EQ(test, (int)kd_state(c.a),
			(int)DAT_EP_STATE_UNCONNECTED);
}

static struct kunit_case sp_cases[] = {
	KUNIT_CASE_PARAM(psp_provider_accept, kd_gen_ia),
	KUNIT_CASE_PARAM(psp_provider_reject, kd_gen_ia),
	KUNIT_CASE_PARAM(rsp_query_and_free, kd_gen_ia),
	KUNIT_CASE_PARAM(N5_rsp_reject, kd_gen_ia),
	KUNIT_CASE_PARAM(spent_rsp_lets_go, kd_gen_ia),
	KUNIT_CASE_PARAM(addresses_while_pending, kd_gen_ia),
	KUNIT_CASE_PARAM(N5_void_request_is_accepted, kd_gen_ia),
	KUNIT_CASE_PARAM(N5_rsp_freed_before_the_answer, kd_gen_ia),
	KUNIT_CASE_PARAM(rsp_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_handoff, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_handoff_to_an_rsp, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_handoff_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_common_service_point, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_csp_anywhere, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_csp_arguments, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-sp", sp_cases, "service points");
