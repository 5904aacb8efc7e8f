// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clauses M3 and M4: parameters that dat_ep_modify() has changed take effect,
 * and posted receives survive. The rules and the values are in modify_test.c.
 */
#include <linux/module.h>
#include "device.h"
#include "srq_fixture.h"

#define HANDLES	(DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | \
		 DAT_EP_FIELD_REQUEST_EVD_HANDLE | \
		 DAT_EP_FIELD_CONNECT_EVD_HANDLE)

static DAT_RETURN modify(struct kunit *test, DAT_EP_HANDLE ep,
			 DAT_EP_PARAM_MASK bit, size_t offset, uintptr_t value)
{
	void *p = kunit_kzalloc(test, sizeof(DAT_EP_PARAM), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	if (bit & HANDLES)
		*(uintptr_t *)(p + offset) = value;
	else
		*(u32 *)(p + offset) = value;
	return dat_ep_modify(ep, bit, p);
}

/* Change one parameter: its bit, its member and the new value. */
#define MODIFY(test, ep, bit, field, value)				\
	modify(test, ep, DAT_EP_FIELD_ ## bit,				\
	       offsetof(DAT_EP_PARAM, field), (uintptr_t)(value))

static void M3_receive_queue(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	DAT_EP_ATTR attr = kd_ep_attr();
	struct rx_link *link;
	u64 cookie;

	attr.max_recv_dtos = 4;
	link = rx_eps(b, &attr);
	rx_post(b, link, 4);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, rx_try_post(b, link));
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_MAX_RECV_DTOS,
				  ep_attr.max_recv_dtos, 40));
	rx_post(b, link, 36);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, rx_try_post(b, link));
	/*
	 * The queue cannot become shorter than the number of posted receives.
	 */
	KUNIT_EXPECT_NE(test, (u32)DAT_SUCCESS,
			(u32)MODIFY(test, link->in, EP_ATTR_MAX_RECV_DTOS,
				    ep_attr.max_recv_dtos, 39));
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 40);
	rx_connect(b, link);
	for (cookie = 0; cookie < 40; cookie++) {
		rx_send_n(b, link, 1);
		KUNIT_EXPECT_EQ(test, rx_reap(b, link), cookie);
	}
}

static void M3_request_queue(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 64);
	struct rx_link *link = rx_eps(b, NULL);
	int i;

	KD_EXPECT_OK(test, MODIFY(test, link->out, EP_ATTR_MAX_REQUEST_DTOS,
				  ep_attr.max_request_dtos, 50));
	rx_post(b, link, 64);
	rx_connect(b, link);
	/* A request takes its place until its completion was reaped. */
	for (i = 0; i < 50; i++)
		KD_ASSERT_OK(test, rx_try_send(b, link));
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, rx_try_send(b, link));
	for (i = 0; i < 50; i++)
		kd_expect_dto(test, b->out->req_evd, i, DAT_DTO_SUCCESS, NULL);
	rx_reap_n(b, link, 50);
}

/* Queues as long as the IA allows can be used. */
static void M3_longest_queues(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);
	DAT_IA_ATTR *max;

	max = kunit_kzalloc(test, sizeof(*max), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, max);
	KD_ASSERT_OK(test, dat_ia_query(b->in->ia, NULL, DAT_IA_FIELD_ALL, max,
					0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      MODIFY(test, link->in, EP_ATTR_MAX_RECV_DTOS,
			     ep_attr.max_recv_dtos, max->max_dto_per_ep + 1));
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_MAX_RECV_DTOS,
				  ep_attr.max_recv_dtos, max->max_dto_per_ep));
	KD_EXPECT_OK(test, MODIFY(test, link->out, EP_ATTR_MAX_REQUEST_DTOS,
				  ep_attr.max_request_dtos,
				  max->max_dto_per_ep));
	rx_connect(b, link);
	rx_deliver(b, link);
	rx_reap(b, link);
}

static void M3_message_size(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);
	DAT_LMR_TRIPLET seg[2] = {
		kd_seg(b->out->buf, 0, RX_LEN / 2),
		kd_seg(b->out->buf, 0, RX_LEN / 2 + 1),
	};

	KD_EXPECT_OK(test, MODIFY(test, link->out, EP_ATTR_MAX_MESSAGE_SIZE,
				  ep_attr.max_message_size, RX_LEN));
	rx_connect(b, link);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_send(link->out, 2, seg, kd_cookie(0),
				       DAT_COMPLETION_DEFAULT_FLAG));
	rx_deliver(b, link);
	rx_reap(b, link);
}

static void M3_segments(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);
	DAT_LMR_TRIPLET seg[3] = { };
	int i;

	for (i = 0; i < 3; i++)
		seg[i] = kd_seg(b->in->buf, i * 8, 8);
	KD_EXPECT_OK(test, dat_ep_post_recv(link->in, 3, seg, kd_cookie(0),
					    DAT_COMPLETION_DEFAULT_FLAG));
	/* A receive with three segments is posted already. */
	KUNIT_EXPECT_NE(test, (u32)DAT_SUCCESS,
			(u32)MODIFY(test, link->in, EP_ATTR_MAX_RECV_IOV,
				    ep_attr.max_recv_iov, 2));
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_MAX_RECV_IOV,
				  ep_attr.max_recv_iov, 3));
	KD_EXPECT_OK(test, MODIFY(test, link->out, EP_ATTR_MAX_REQUEST_IOV,
				  ep_attr.max_request_iov, 1));
	rx_connect(b, link);
	for (i = 0; i < 3; i++)
		seg[i] = kd_seg(b->out->buf, i * 8, 8);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_send(link->out, 2, seg, kd_cookie(0),
				       DAT_COMPLETION_DEFAULT_FLAG));
	KD_EXPECT_OK(test, dat_ep_post_send(link->out, 1, seg, kd_cookie(0),
					    DAT_COMPLETION_DEFAULT_FLAG));
	kd_expect_dto(test, b->in->recv_evd, 0, DAT_DTO_SUCCESS, NULL);
}

/* Every event stream goes to its new EVD and none to its old one. */
static void M3_evds(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);
	DAT_EVD_HANDLE recv = b->in->recv_evd, req = b->in->req_evd;
	DAT_EVD_HANDLE conn = b->in->conn_evd;
	struct kd_side *in = b->in;

	in->recv_evd = kd_evd(in, DAT_EVD_DTO_FLAG, 64, DAT_UPCALL_NOTIFY);
	in->req_evd = kd_evd(in, DAT_EVD_DTO_FLAG, 64, DAT_UPCALL_NOTIFY);
	in->conn_evd = kd_evd(in, DAT_EVD_CONNECTION_FLAG, 64,
			      DAT_UPCALL_NOTIFY);
	KD_EXPECT_OK(test, MODIFY(test, link->in, RECV_EVD_HANDLE,
				  recv_evd_handle, in->recv_evd));
	KD_EXPECT_OK(test, MODIFY(test, link->in, REQUEST_EVD_HANDLE,
				  request_evd_handle, in->req_evd));
	KD_EXPECT_OK(test, MODIFY(test, link->in, CONNECT_EVD_HANDLE,
				  connect_evd_handle, in->conn_evd));
	/* The old EVDs can be freed, the new ones are in use. */
	KD_EXPECT_OK(test, dat_evd_free(recv));
	KD_EXPECT_OK(test, dat_evd_free(req));
	KD_EXPECT_OK(test, dat_evd_free(conn));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_evd_free(in->recv_evd));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_evd_free(in->req_evd));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_evd_free(in->conn_evd));

	rx_connect(b, link);
	rx_deliver(b, link);
	rx_reap(b, link);
	rx_post(b, link, 1);
	rx_disconnect(b, link);
	kd_expect_dto(test, in->recv_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
	in->ep = link->in;
	kd_send(in, 0, 8, 77);
	kd_expect_dto(test, in->req_evd, 77, DAT_DTO_ERR_FLUSHED, NULL);
}

/*
 * Receives of an earlier connection that are not reaped when the EVD changes:
 * each is reaped exactly once, from either EVD, and the counts are right.
 */
static void unreaped(struct kunit *test, DAT_COUNT len, bool free)
{
	struct rx_bench *b = rx_open(test, len);
	struct rx_link *link = rx_link(b);
	DAT_EVD_HANDLE old = b->in->recv_evd;
	DAT_EVENT event;
	int n = 0;

	if (len)
		rx_post(b, link, 4);
	rx_deliver_n(b, link, 3);
	rx_disconnect(b, link);
	rx_reset(b, link);
	b->in->recv_evd = kd_evd(b->in, DAT_EVD_DTO_FLAG, 64,
				 DAT_UPCALL_NOTIFY);
	KD_EXPECT_OK(test, MODIFY(test, link->in, RECV_EVD_HANDLE,
				  recv_evd_handle, b->in->recv_evd));
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 3);
	if (free)
		KD_EXPECT_OK(test, dat_ep_free(link->in));
	while (dat_evd_dequeue(old, &event) == DAT_SUCCESS ||
	       dat_evd_dequeue(b->in->recv_evd, &event) == DAT_SUCCESS)
		n++;
	KUNIT_EXPECT_EQ(test, n, free ? 0 : 3);
	if (!free)
		KUNIT_EXPECT_EQ(test, rx_held(b, link), 0);
	if (len)
		rx_expect_counts(b, len, free ? 4 : 1, free ? 4 : 1);
	KD_EXPECT_OK(test, dat_evd_free(old));
}

static void M3_unreaped_plain(struct kunit *test)
{
	unreaped(test, 0, false);
}

static void M3_unreaped_srq(struct kunit *test)
{
	unreaped(test, 8, false);
}

static void M3_unreaped_freed_plain(struct kunit *test)
{
	unreaped(test, 0, true);
}

static void M3_unreaped_freed_srq(struct kunit *test)
{
	unreaped(test, 8, true);
}

/* ---- M3: RDMA read depths, as the device gets them ----------------------- */

static struct {
	struct kd_hook device;
	int n;
	u8 depth[4];
} spy;

static int spy_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			 struct ib_udata *udata)
{
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && spy.n < 4)
		spy.depth[spy.n++] = attr->max_dest_rd_atomic;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && spy.n < 4)
		spy.depth[spy.n++] = attr->max_rd_atomic;
	return spy.device.real.modify_qp(qp, attr, mask, udata);
}

static void M3_read_depths(struct kunit *test)
{
	/*
	 * Depths at RTR and RTS of the passive side, then of the active side.
	 */
	static const u8 want[4] = { 3, 2, 2, 3 };
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);
	int i;

	if (kd_is_iwarp(b->in))
		kunit_skip(test, "iWARP sets depths in another way");
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_MAX_RDMA_READ_IN,
				  ep_attr.max_rdma_read_in, 3));
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_MAX_RDMA_READ_OUT,
				  ep_attr.max_rdma_read_out, 2));
	KD_EXPECT_OK(test, MODIFY(test, link->out, EP_ATTR_MAX_RDMA_READ_IN,
				  ep_attr.max_rdma_read_in, 5));
	KD_EXPECT_OK(test, MODIFY(test, link->out, EP_ATTR_MAX_RDMA_READ_OUT,
				  ep_attr.max_rdma_read_out, 6));
	spy.n = 0;
	kd_hook(test, b->in->name, &spy.device)->ops.modify_qp = spy_modify_qp;
	rx_connect(b, link);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, spy.depth[i], want[i]);
}

/* ---- M4 ------------------------------------------------------------------ */

static void M4_flags_after_a_post(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);
	DAT_COMPLETION_FLAGS flag = DAT_COMPLETION_UNSIGNALLED_FLAG;
	DAT_LMR_TRIPLET seg = rx_seg(b, 0);

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_recv(link->in, 1, &seg, kd_cookie(0), flag));
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_RECV_COMPLETION_FLAGS,
				  ep_attr.recv_completion_flags, flag));
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_RECV_COMPLETION_FLAGS,
				  ep_attr.recv_completion_flags, 0));
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_RECV_COMPLETION_FLAGS,
				  ep_attr.recv_completion_flags, flag));
	KD_EXPECT_OK(test, dat_ep_post_recv(link->in, 1, &seg, kd_cookie(0),
					    flag));
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      MODIFY(test, link->in, EP_ATTR_RECV_COMPLETION_FLAGS,
			     ep_attr.recv_completion_flags, 0));
	/* The flags of requests can still be changed. */
	KD_EXPECT_OK(test, MODIFY(test, link->in,
				  EP_ATTR_REQUEST_COMPLETION_FLAGS,
				  ep_attr.request_completion_flags, flag));
}

static void M4_receives_survive(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);
	DAT_EVD_HANDLE evd;
	u64 cookie;

	rx_post(b, link, 5);
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_MAX_RECV_DTOS,
				  ep_attr.max_recv_dtos, 100));
	rx_post(b, link, 5);
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_MAX_RECV_IOV,
				  ep_attr.max_recv_iov, 1));
	evd = kd_evd(b->in, DAT_EVD_DTO_FLAG, 64, DAT_UPCALL_NOTIFY);
	KD_EXPECT_OK(test, MODIFY(test, link->in, RECV_EVD_HANDLE,
				  recv_evd_handle, evd));
	b->in->recv_evd = evd;
	rx_post(b, link, 5);
	KD_EXPECT_OK(test, MODIFY(test, link->in, PZ_HANDLE, pz_handle,
				  b->in->pz));
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_MAX_RECV_DTOS,
				  ep_attr.max_recv_dtos, 15));
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 15);
	rx_connect(b, link);
	for (cookie = 0; cookie < 15; cookie++) {
		rx_send_n(b, link, 1);
		KUNIT_EXPECT_EQ(test, rx_reap(b, link), cookie);
	}
}

static void post_empty(struct rx_bench *b, struct rx_link *link)
{
	DAT_LMR_TRIPLET none = { };

	KD_ASSERT_OK(b->test, dat_ep_post_recv(link->in, 0, NULL,
					       kd_cookie(b->posted++),
					       DAT_COMPLETION_DEFAULT_FLAG));
	KD_ASSERT_OK(b->test, dat_ep_post_recv(link->in, 1, &none,
					       kd_cookie(b->posted++),
					       DAT_COMPLETION_DEFAULT_FLAG));
}

/*
 * Receives in memory of the old PZ fail at once; receives without segments
 * stay.
 */
static void M4_other_pz(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);
	DAT_PZ_HANDLE pz;
	u64 cookie;

	KD_ASSERT_OK(test, dat_pz_create(b->in->ia, &pz));
	rx_post(b, link, 2);
	post_empty(b, link);
	rx_post(b, link, 1);
	KD_EXPECT_OK(test, MODIFY(test, link->in, PZ_HANDLE, pz_handle, pz));
	kd_expect_dto(test, b->in->recv_evd, 0, DAT_DTO_ERR_LOCAL_PROTECTION,
		      NULL);
	kd_expect_dto(test, b->in->recv_evd, 1, DAT_DTO_ERR_LOCAL_PROTECTION,
		      NULL);
	kd_expect_dto(test, b->in->recv_evd, 4, DAT_DTO_ERR_LOCAL_PROTECTION,
		      NULL);
	rx_expect_empty(b, b->in->recv_evd);
	KUNIT_EXPECT_EQ(test, rx_held(b, link), 2);
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION, rx_try_post(b, link));

	/* Receives in memory of the new PZ come after the two that stayed. */
	b->in->pz = pz;
	b->in->buf = kd_buf_alloc(b->in, KD_BUF_LEN);
	rx_post(b, link, 2);
	rx_connect(b, link);
	for (cookie = 2; cookie < 4; cookie++) {
		KD_ASSERT_OK(test, dat_ep_post_send(link->out, 0, NULL,
						    kd_cookie(1), 0));
		kd_expect_dto(test, b->out->req_evd, 1, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, b->in->recv_evd, cookie, DAT_DTO_SUCCESS,
			      NULL);
	}
	for (cookie = 5; cookie < 7; cookie++) {
		rx_send_n(b, link, 1);
		KUNIT_EXPECT_EQ(test, rx_reap(b, link), cookie);
	}
}

/* The receives that fail are reported by the EVD that the same call sets. */
static void M4_other_pz_and_evd(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct kd_recorder *rec = kd_recorder(test);
	struct rx_link *link;
	DAT_EP_PARAM *p;
	u64 cookie;

	p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p);
	b->in->recv_evd = kd_recorded_evd(b->in, DAT_EVD_DTO_FLAG, 64,
					  DAT_UPCALL_SINGLE_INSTANCE, rec);
	link = rx_eps(b, NULL);
	rx_post(b, link, 4);
	KD_ASSERT_OK(test, dat_pz_create(b->in->ia, &p->pz_handle));
	p->recv_evd_handle = kd_evd(b->in, DAT_EVD_DTO_FLAG, 64,
				    DAT_UPCALL_NOTIFY);
	KD_EXPECT_OK(test, dat_ep_modify(link->in, DAT_EP_FIELD_PZ_HANDLE |
					 DAT_EP_FIELD_RECV_EVD_HANDLE, p));
	for (cookie = 0; cookie < 4; cookie++)
		kd_expect_dto(test, p->recv_evd_handle, cookie,
			      DAT_DTO_ERR_LOCAL_PROTECTION, NULL);
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 0);
	KD_EXPECT_OK(test, dat_evd_free(b->in->recv_evd));
}

/* The receives of an SRQ follow the SRQ's PZ, not the EP's. */
static void M4_other_pz_srq(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 8);
	struct rx_link *link = rx_eps(b, NULL);
	DAT_PROVIDER_ATTR prov;
	DAT_PZ_HANDLE pz;

	KD_ASSERT_OK(test, dat_pz_create(b->in->ia, &pz));
	KD_ASSERT_OK(test, dat_ia_query(b->in->ia, NULL, 0, NULL,
					DAT_PROVIDER_FIELD_ALL, &prov));
	rx_post(b, link, 3);
	if (!prov.srq_ep_pz_difference_supported) {
		DAT_EP_ATTR attr = kd_ep_attr();
		DAT_EP_HANDLE ep;

		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      MODIFY(test, link->in, PZ_HANDLE, pz_handle, pz));
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      dat_ep_create_with_srq(b->in->ia, pz,
						     b->in->recv_evd,
						     b->in->req_evd,
						     b->in->conn_evd,
						     b->in->srq, &attr, &ep));
		return;
	}
	KD_EXPECT_OK(test, MODIFY(test, link->in, PZ_HANDLE, pz_handle, pz));
	rx_expect_empty(b, b->in->recv_evd);
	rx_expect_counts(b, 8, 3, 3);
	rx_connect(b, link);
	rx_deliver_n(b, link, 3);
	rx_reap_n(b, link, 3);
}

/* An EP with an SRQ may get its receive EVD later than other parameters. */
static void M3_srq_evd_later(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 8);
	DAT_EVD_HANDLE evd = b->in->recv_evd;
	struct rx_link *link;

	b->in->recv_evd = NULL;
	link = rx_eps(b, NULL);
	b->in->recv_evd = evd;
	KD_EXPECT_OK(test, MODIFY(test, link->in, EP_ATTR_MAX_REQUEST_DTOS,
				  ep_attr.max_request_dtos, 7));
	KD_EXPECT_OK(test, MODIFY(test, link->in, RECV_EVD_HANDLE,
				  recv_evd_handle, evd));
	rx_connect(b, link);
	rx_post(b, link, 2);
	rx_deliver_n(b, link, 2);
	rx_reap_n(b, link, 2);
}

static struct kunit_case modify_effect_cases[] = {
	KUNIT_CASE_PARAM(M3_receive_queue, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_request_queue, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_longest_queues, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_message_size, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_segments, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_evds, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_srq_evd_later, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_unreaped_plain, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_unreaped_srq, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_unreaped_freed_plain, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_unreaped_freed_srq, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_read_depths, kd_gen_ia),
	KUNIT_CASE_PARAM(M4_flags_after_a_post, kd_gen_ia),
	KUNIT_CASE_PARAM(M4_receives_survive, kd_gen_ia),
	KUNIT_CASE_PARAM(M4_other_pz, kd_gen_ia),
	KUNIT_CASE_PARAM(M4_other_pz_and_evd, kd_gen_ia),
	KUNIT_CASE_PARAM(M4_other_pz_srq, kd_gen_ia),
	{ }
};

KD_SUITE("kdapl_modify_effect", modify_effect_cases, "what a modified Endpoint does");
