// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fault_test.ko: calls of Endpoints, data transfer and both sides of
 * connecting. See calls.c.
 */
#include <linux/net.h>
#include "calls.h"

/* ---- Requests ------------------------------------------------------------ */

static bool attempt_ended(void *data)
{
	struct world *w = data;

	kdf_drop_requests(w);
	return kdf_state_of(w->a_spare) == DAT_EP_STATE_DISCONNECTED;
}

/*
 * End an attempt of the active spare EP to connect, which nobody will accept.
 */
static void end_attempt(struct world *w)
{
	/*
	 * If something failed, the peer may never have been told of the
	 * attempt.
	 */
	if (w->fired)
		dat_ep_disconnect(w->a_spare, DAT_CLOSE_ABRUPT_FLAG);
	KUNIT_EXPECT_TRUE(w->test, kd_wait_until(attempt_ended, w,
						 KD_TIMEOUT_MS));
	kdf_unconnect(w, w->a_spare);
	kdf_drop_requests(w);
	kdf_drain_side(w->a);
	kdf_drain_side(w->p);
}

static DAT_RETURN do_connect(struct world *w)
{
	return kdf_connect_to(w, w->port);
}

/* Have a request from the active spare EP wait on the usual port. */
static void need_request(struct world *w)
{
	if (w->cr)
		return;
	kdf_drop_requests(w);
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
	DAT_EP_STATE a = kdf_state_of(w->a_spare), p = kdf_state_of(w->p_spare);

	return a == DAT_EP_STATE_DISCONNECTED ||
	       p == DAT_EP_STATE_DISCONNECTED ||
	       (a == DAT_EP_STATE_CONNECTED && p == DAT_EP_STATE_CONNECTED);
}

/*
 * End the connection after the request was accepted with the passive spare EP.
 */
static void end_connection(struct world *w)
{
	w->cr = NULL;
	KUNIT_EXPECT_TRUE(w->test, kd_wait_until(answer_known, w,
						 KD_TIMEOUT_MS));
	if (!w->fired) {
		KUNIT_EXPECT_EQ(w->test, kdf_state_of(w->a_spare),
				DAT_EP_STATE_CONNECTED);
		KUNIT_EXPECT_EQ(w->test, kdf_state_of(w->p_spare),
				DAT_EP_STATE_CONNECTED);
	}
	kdf_unconnect(w, w->a_spare);
	kdf_unconnect(w, w->p_spare);
	kdf_drain_side(w->a);
	kdf_drain_side(w->p);
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

/* Change to longer queues and another request EVD. */
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

/* Change the receive EVD of the EP that has an SRQ. */
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
	kdf_need_pair(w);
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

/* A receive that the device did not take is flushed with the others. */
static void end_recv(struct world *w)
{
	KD_EXPECT_OK(w->test, do_disconnect(w));
	kd_expect_dto(w->test, w->a->recv_evd, 2, DAT_DTO_ERR_FLUSHED, NULL);
	kdf_unconnect_pair(w);
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

/* Hand the request to the PSP whose Endpoints the provider makes. */
static DAT_RETURN do_cr_handoff(struct world *w)
{
	DAT_RETURN ret = dat_cr_handoff(w->cr, w->other_port);

	if (ret == DAT_SUCCESS)
		w->cr = NULL;
	return ret;
}

/* ---- The table ----------------------------------------------------------- */

const struct fault_call kdf_ep_calls[] = {
	CALL(dat_ep_create, FALLIBLE, do_ep_create, NULL, undo_ep_free),
	CALL(dat_ep_create_with_srq, FALLIBLE, do_ep_create_with_srq, NULL,
	     undo_ep_free),
	CALL(dat_ep_query, PURE, do_ep_query),
	CALL(dat_ep_get_status, PURE, do_get_status),
	CALL(dat_ep_recv_query, PURE, do_recv_query),
	CALL(dat_ep_set_watermark, PURE, do_set_watermark),
	CALL(dat_ep_modify, FALLIBLE, do_ep_modify, NULL, undo_ep_modify),
	CALL(dat_ep_modify, FALLIBLE, do_ep_modify_srq, NULL,
	     undo_ep_modify_srq),
	CALL(dat_ep_connect, FALLIBLE, do_connect, NULL, end_attempt),
	CALL(dat_ep_common_connect, FALLIBLE, do_common_connect, NULL,
	     end_attempt, TWIN),
	CALL(dat_ep_dup_connect, FALLIBLE, do_dup_connect, kdf_need_pair,
	     end_attempt, TWIN),
	CALL(dat_ep_disconnect, PURE, do_disconnect, kdf_need_pair, kdf_unconnect_pair),
	CALL(dat_ep_reset, SURE, do_reset, need_disconnected, kdf_unconnect_pair),
	CALL(dat_ep_free, SURE, do_ep_free, need_ep_create, NULL, undo_ep_free),

	CALL(dat_ep_post_send, POSTS, do_send, kdf_need_pair, kdf_end_post),
	CALL(dat_ep_post_send_with_invalidate, POSTS, do_send_invalidate,
	     kdf_need_pair, kdf_end_post),
	CALL(dat_ep_post_recv, SURE, do_recv, kdf_need_pair, end_recv),
	CALL(dat_ep_post_rdma_write, POSTS, do_write, kdf_need_pair, kdf_end_post),
	CALL(dat_ep_post_rdma_read, POSTS, do_read, kdf_need_pair, kdf_end_post),
	CALL(dat_ep_post_rdma_read_to_rmr, POSTS, do_read_to_rmr,
	     kdf_need_bound_rmr, kdf_end_rmr, kdf_free_rmr),

	CALL(dat_psp_create, FALLIBLE, do_psp_create, NULL, undo_psp_free),
	CALL(dat_psp_create_any, FALLIBLE, do_psp_create_any, NULL,
	     undo_psp_free, TWIN),
	CALL(dat_psp_query, PURE, do_psp_query),
	CALL(dat_psp_free, SURE, do_psp_free, need_psp_create, NULL,
	     undo_psp_free),
	CALL(dat_rsp_create, FALLIBLE, do_rsp_create, NULL, undo_rsp_free,
	     TWIN),
	CALL(dat_rsp_query, PURE, do_rsp_query, need_rsp_create, NULL,
	     undo_rsp_free),
	CALL(dat_rsp_free, SURE, do_rsp_free, need_rsp_create, NULL,
	     undo_rsp_free),
	CALL(dat_csp_create, FALLIBLE, do_csp_create, NULL, undo_csp_free,
	     TWIN),
	CALL(dat_csp_query, PURE, do_csp_query, need_csp_create, NULL,
	     undo_csp_free),
	CALL(dat_csp_free, SURE, do_csp_free, need_csp_create, NULL,
	     undo_csp_free),
	CALL(dat_cr_query, PURE, do_cr_query, need_request, NULL,
	     finish_request),
	CALL(dat_cr_accept, FALLIBLE, do_cr_accept, need_request,
	     end_connection, finish_request),
	CALL(dat_cr_reject, SURE, do_cr_reject, need_request, end_attempt),
	CALL(dat_cr_handoff, FALLIBLE, do_cr_handoff, need_request,
	     end_attempt),
};

const unsigned int kdf_nep_calls = ARRAY_SIZE(kdf_ep_calls);
