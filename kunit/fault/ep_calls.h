/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults, continued: Endpoints, data transfer, both sides of connecting. See
 * calls.h.
 */
#ifndef KDAPL_KUNIT_FAULT_EP_CALLS_H
#define KDAPL_KUNIT_FAULT_EP_CALLS_H

#include <linux/net.h>
#include "calls.h"

/* ---- Requests ------------------------------------------------------------ */

static bool attempt_ended(void *data)
{
	struct world *w = data;

	drop_requests(w);
	return state_of(w->a_spare) == DAT_EP_STATE_DISCONNECTED;
}

/* The active spare EP has tried to connect; nobody will accept. */
static void end_attempt(struct world *w)
{
	/* If something failed, its peer may never have been told. */
	if (w->fired)
		dat_ep_disconnect(w->a_spare, DAT_CLOSE_ABRUPT_FLAG);
	KUNIT_EXPECT_TRUE(w->test, kd_wait_until(attempt_ended, w,
						 KD_TIMEOUT_MS));
	unconnect(w, w->a_spare);
	drop_requests(w);
	drain_side(w->a);
	drain_side(w->p);
}

static DAT_RETURN do_connect(struct world *w)
{
	return connect_to(w, w->port);
}

/* A request from the active spare EP, on the usual port. */
static void need_request(struct world *w)
{
	if (w->cr)
		return;
	drop_requests(w);
	KD_ASSERT_OK(w->test, do_connect(w));
	w->cr = kd_expect_cr(w->p);
}

static void finish_request(struct world *w)
{
	if (w->cr)
		end_attempt(w);
}

static bool answer_known(void *data)
{
	struct world *w = data;
	DAT_EP_STATE a = state_of(w->a_spare), p = state_of(w->p_spare);

	return a == DAT_EP_STATE_DISCONNECTED ||
	       p == DAT_EP_STATE_DISCONNECTED ||
	       (a == DAT_EP_STATE_CONNECTED && p == DAT_EP_STATE_CONNECTED);
}

/* The request was accepted with the passive spare EP. */
static void end_connection(struct world *w)
{
	w->cr = NULL;
	KUNIT_EXPECT_TRUE(w->test, kd_wait_until(answer_known, w,
						 KD_TIMEOUT_MS));
	if (!w->fired) {
		KUNIT_EXPECT_EQ(w->test, state_of(w->a_spare),
				DAT_EP_STATE_CONNECTED);
		KUNIT_EXPECT_EQ(w->test, state_of(w->p_spare),
				DAT_EP_STATE_CONNECTED);
	}
	unconnect(w, w->a_spare);
	unconnect(w, w->p_spare);
	drain_side(w->a);
	drain_side(w->p);
}

/* ---- Endpoints ----------------------------------------------------------- */

static DAT_RETURN do_ep_create(struct world *w)
{
	DAT_EP_ATTR attr = kd_ep_attr();

	return dat_ep_create(w->a->ia, w->a->pz, w->a->recv_evd, w->a->req_evd,
			     w->a->conn_evd, &attr, MADE(w, DAT_EP_HANDLE));
}

static DAT_RETURN do_ep_create_with_srq(struct world *w)
{
	DAT_EP_ATTR attr = kd_ep_attr();

	return dat_ep_create_with_srq(w->a->ia, w->a->pz, w->a->recv_evd,
				      w->a->req_evd, w->a->conn_evd, w->srq,
				      &attr, MADE(w, DAT_EP_HANDLE));
}

FREES(ep_free)
NEEDS(ep_create)

static DAT_RETURN do_ep_query(struct world *w)
{
	return dat_ep_query(w->a->ep, DAT_EP_FIELD_ALL, &w->out.ep);
}

static DAT_RETURN do_get_status(struct world *w)
{
	DAT_BOOLEAN recv_idle, request_idle;

	return dat_ep_get_status(w->a->ep, OUT(w), &recv_idle, &request_idle);
}

static DAT_RETURN do_recv_query(struct world *w)
{
	return dat_ep_recv_query(w->a->ep, OUT(w), NULL);
}

static DAT_RETURN do_set_watermark(struct world *w)
{
	return dat_ep_set_watermark(w->a->ep, DAT_WATERMARK_INFINITE,
				    DAT_WATERMARK_INFINITE);
}

/* Longer queues, another request EVD. */
static DAT_RETURN do_ep_modify(struct world *w)
{
	DAT_EP_PARAM param = { .request_evd_handle = w->spare_evd };

	param.ep_attr.max_recv_dtos = 200;
	param.ep_attr.max_request_dtos = 200;
	return dat_ep_modify(w->a_spare, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
			     DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
			     DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param);
}

static void undo_ep_modify(struct world *w)
{
	DAT_EP_PARAM param = { .request_evd_handle = w->a->req_evd };

	param.ep_attr.max_recv_dtos = 32;
	param.ep_attr.max_request_dtos = 32;
	KD_EXPECT_OK(w->test,
		     dat_ep_modify(w->a_spare,
				   DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
				   DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
				   DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param));
}

/* The EVD that an SRQ feeds. */
static DAT_RETURN modify_feed(struct world *w, DAT_EVD_HANDLE evd)
{
	DAT_EP_PARAM param = { .recv_evd_handle = evd };

	return dat_ep_modify(w->srq_ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param);
}

static DAT_RETURN do_ep_modify_srq(struct world *w)
{
	return modify_feed(w, w->spare_evd);
}

static void undo_ep_modify_srq(struct world *w)
{
	KD_EXPECT_OK(w->test, modify_feed(w, w->a->recv_evd));
}

static DAT_RETURN do_common_connect(struct world *w)
{
	return dat_ep_common_connect(w->a_spare, (struct sockaddr *)&w->to,
				     LONG_TIME, 0, NULL);
}

static DAT_RETURN do_dup_connect(struct world *w)
{
	return dat_ep_dup_connect(w->a_spare, w->a->ep, LONG_TIME, 0, NULL,
				  DAT_QOS_BEST_EFFORT);
}

static DAT_RETURN do_disconnect(struct world *w)
{
	return dat_ep_disconnect(w->a->ep, DAT_CLOSE_ABRUPT_FLAG);
}

static void need_disconnected(struct world *w)
{
	if (kd_state(w->a) == DAT_EP_STATE_DISCONNECTED)
		return;
	need_pair(w);
	KD_ASSERT_OK(w->test, do_disconnect(w));
}

static DAT_RETURN do_reset(struct world *w)
{
	return dat_ep_reset(w->a->ep);
}

/* ---- Data transfer ------------------------------------------------------- */

static DAT_RETURN do_send(struct world *w)
{
	return dat_ep_post_send(w->a->ep, 1, &w->seg, kd_cookie(2), 0);
}

static DAT_RETURN do_send_invalidate(struct world *w)
{
	return dat_ep_post_send_with_invalidate(w->a->ep, 1, &w->seg,
						kd_cookie(2), 0, DAT_FALSE, 0);
}

static DAT_RETURN do_recv(struct world *w)
{
	return dat_ep_post_recv(w->a->ep, 1, &w->seg, kd_cookie(2), 0);
}

/* What the device would not take is flushed with the rest. */
static void end_recv(struct world *w)
{
	KD_EXPECT_OK(w->test, do_disconnect(w));
	kd_expect_dto(w->test, w->a->recv_evd, 2, DAT_DTO_ERR_FLUSHED, NULL);
	unconnect_pair(w);
}

static DAT_RETURN do_write(struct world *w)
{
	return dat_ep_post_rdma_write(w->a->ep, 1, &w->seg, kd_cookie(2),
				      &w->remote, 0);
}

static DAT_RETURN do_read(struct world *w)
{
	return dat_ep_post_rdma_read(w->a->ep, 1, &w->seg, kd_cookie(2),
				     &w->remote, 0);
}

static DAT_RETURN do_read_to_rmr(struct world *w)
{
	DAT_RMR_TRIPLET sink = {
		.virtual_address = w->seg.virtual_address,
		.segment_length = w->seg.segment_length,
		.rmr_context = w->rmr_context,
	};

	return dat_ep_post_rdma_read_to_rmr(w->a->ep, &sink, kd_cookie(2),
					    &w->remote, 0);
}

/* ---- The passive side ---------------------------------------------------- */

static DAT_RETURN do_psp_create(struct world *w)
{
	return dat_psp_create(w->p->ia, w->free_port, w->p->cr_evd,
			      DAT_PSP_CONSUMER_FLAG, MADE(w, DAT_PSP_HANDLE));
}

static DAT_RETURN do_psp_create_any(struct world *w)
{
	DAT_CONN_QUAL qual;

	return dat_psp_create_any(w->p->ia, &qual, w->p->cr_evd,
				  DAT_PSP_CONSUMER_FLAG,
				  MADE(w, DAT_PSP_HANDLE));
}

static DAT_RETURN do_psp_query(struct world *w)
{
	return dat_psp_query(w->psp, DAT_PSP_FIELD_ALL, OUT(w));
}

FREES(psp_free)
NEEDS(psp_create)

static DAT_RETURN do_rsp_create(struct world *w)
{
	return dat_rsp_create(w->p->ia, w->free_port, w->p_spare, w->p->cr_evd,
			      MADE(w, DAT_RSP_HANDLE));
}

FREES(rsp_free)
NEEDS(rsp_create)

static DAT_RETURN do_rsp_query(struct world *w)
{
	return dat_rsp_query(w->h, DAT_RSP_FIELD_ALL, OUT(w));
}

static DAT_RETURN do_csp_create(struct world *w)
{
	DAT_COMM comm = { AF_INET, SOCK_STREAM, 0 };

	return dat_csp_create(w->p->ia, &comm, (struct sockaddr *)&w->to_free,
			      w->p->cr_evd, MADE(w, DAT_CSP_HANDLE));
}

FREES(csp_free)
NEEDS(csp_create)

static DAT_RETURN do_csp_query(struct world *w)
{
	return dat_csp_query(w->h, DAT_CSP_FIELD_ALL, OUT(w));
}

static DAT_RETURN do_cr_query(struct world *w)
{
	return dat_cr_query(w->cr, DAT_CR_FIELD_ALL, OUT(w));
}

static DAT_RETURN do_cr_accept(struct world *w)
{
	return dat_cr_accept(w->cr, w->p_spare, 5, "hello");
}

static DAT_RETURN do_cr_reject(struct world *w)
{
	DAT_RETURN ret = dat_cr_reject(w->cr, 2, "no");

	if (ret == DAT_SUCCESS)
		w->cr = NULL;
	return ret;
}

/* To where the provider makes an Endpoint for it. */
static DAT_RETURN do_cr_handoff(struct world *w)
{
	DAT_RETURN ret = dat_cr_handoff(w->cr, w->other_port);

	if (ret == DAT_SUCCESS)
		w->cr = NULL;
	return ret;
}

#endif /* KDAPL_KUNIT_FAULT_EP_CALLS_H */
