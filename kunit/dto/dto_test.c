// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Data transfer operations (contract L1, N1, R4): what arrives, and how posts
 * complete. Posts that are refused are in arguments_test.c.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include "fixture.h"

static struct kd_pair make_pair(struct kunit *test, const DAT_EP_ATTR *attr,
				bool connect)
{
	struct kd_pair pair = kd_make_pair(test,
					&(struct kd_opts) { .attr = attr });

	if (connect)
		kd_connect_pair(pair.a, pair.p);
	return pair;
}

/* ---- Integrity ------------------------------------------------------------ */

static const size_t lengths[] = {
	1, 3, 64, 4095, 4096, 4097, SZ_64K - 1, SZ_256K + 17, SZ_1M - SZ_8K,
	SZ_1M
};

/* As many pages as every device can register at once. */
#define AREA	SZ_1M

/* Cut @len bytes from @off on into @n segments of different lengths. */
static void cut(const struct kd_buf *buf, size_t off, size_t len, int n,
		DAT_LMR_TRIPLET *seg)
{
	int i;

	for (i = 0; i < n; i++) {
		size_t part = i == n - 1 ? len : len / (i + 2);

		seg[i] = kd_seg(buf, off, part);
		off += part;
		len -= part;
	}
}

struct flow {
	struct kunit *test;
	struct kd_pair pair;
	struct kd_buf *src;
	struct kd_buf *dst;
	int src_segs;
	int dst_segs;
	size_t src_at;
	size_t dst_at;
};

static void flow_send(struct flow *f, size_t len, u32 seed)
{
	DAT_LMR_TRIPLET seg[4];
	DAT_EVENT event;

	cut(f->dst, f->dst_at, len, f->dst_segs, seg);
	KD_ASSERT_OK(f->test, dat_ep_post_recv(f->pair.p->ep, f->dst_segs, seg,
					       kd_cookie(len), 0));
	cut(f->src, f->src_at, len, f->src_segs, seg);
	KD_ASSERT_OK(f->test, dat_ep_post_send(f->pair.a->ep, f->src_segs, seg,
					       kd_cookie(seed), 0));
	kd_expect_dto(f->test, f->pair.p->recv_evd, len, DAT_DTO_SUCCESS,
		      &event);
	KUNIT_EXPECT_EQ(f->test, len, event.event_data.dto_completion_event_data
			.transfered_length);
	KUNIT_EXPECT_EQ(f->test, (int)event.event_data.dto_completion_event_data
			.operation, (int)DAT_DTO_RECEIVE);
	KUNIT_EXPECT_PTR_EQ(f->test, event.event_data.dto_completion_event_data
			    .ep_handle, f->pair.p->ep);
	kd_expect_dto(f->test, f->pair.a->req_evd, seed, DAT_DTO_SUCCESS, NULL);
}

static void flow_write(struct flow *f, size_t len, u32 seed)
{
	DAT_RMR_TRIPLET remote = kd_remote(f->dst, f->dst_at, len);
	DAT_LMR_TRIPLET seg[4];
	DAT_EVENT event;

	cut(f->src, f->src_at, len, f->src_segs, seg);
	KD_ASSERT_OK(f->test, dat_ep_post_rdma_write(f->pair.a->ep, f->src_segs,
						     seg, kd_cookie(seed),
						     &remote, 0));
	kd_expect_dto(f->test, f->pair.a->req_evd, seed, DAT_DTO_SUCCESS,
		      &event);
	KUNIT_EXPECT_EQ(f->test, (int)event.event_data.dto_completion_event_data
			.operation, (int)DAT_DTO_RDMA_WRITE);
	/*
	 * A message after the Write tells the peer that the data has arrived.
	 */
	kd_recv(f->pair.p, 0, 64, seed);
	kd_send(f->pair.a, 0, 64, seed + 1);
	kd_expect_dto(f->test, f->pair.p->recv_evd, seed, DAT_DTO_SUCCESS,
		      NULL);
	kd_expect_dto(f->test, f->pair.a->req_evd, seed + 1, DAT_DTO_SUCCESS,
		      NULL);
}

/* Let the passive side read the memory of the active side. */
static void flow_read(struct flow *f, size_t len, u32 seed)
{
	DAT_RMR_TRIPLET remote = kd_remote(f->src, f->src_at, len);
	DAT_LMR_TRIPLET seg = kd_seg(f->dst, f->dst_at, len);
	DAT_EVENT event;

	KD_ASSERT_OK(f->test, dat_ep_post_rdma_read(f->pair.p->ep, 1, &seg,
						    kd_cookie(seed), &remote,
						    0));
	kd_expect_dto(f->test, f->pair.p->req_evd, seed, DAT_DTO_SUCCESS,
		      &event);
	KUNIT_EXPECT_EQ(f->test, (int)event.event_data.dto_completion_event_data
			.operation, (int)DAT_DTO_RDMA_READ);
}

static void run_flow(struct kunit *test, bool virt, int segs,
		     void (*flow)(struct flow *f, size_t len, u32 seed))
{
	struct kd_pair pair = make_pair(test, NULL, true);
	struct flow f = {
		.test = test, .pair = pair,
		.src_segs = segs, .dst_segs = segs,
		.src = virt ? kd_buf_valloc(pair.a, AREA) :
			      kd_buf_alloc(pair.a, AREA),
		.dst = virt ? kd_buf_valloc(pair.p, AREA) :
			      kd_buf_alloc(pair.p, AREA),
	};
	u8 *dst;
	int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t len = lengths[i];

		if (segs > 1 && len < 64)
			continue;
		f.src_at = len < AREA ? 3 : 0;
		f.dst_at = len < AREA ? 1 : 0;
		dst = f.dst->va + f.dst_at;
		memset(f.dst->va, 0x55, f.dst->len);
		kd_fill(f.src->va + f.src_at, len, i);
		flow(&f, len, i);
		KUNIT_EXPECT_TRUE_MSG(test, kd_is_filled(dst, len, i),
				      "%zu bytes", len);
		if (len == AREA)
			continue;
		KUNIT_EXPECT_EQ(test, dst[-1], 0x55);
		KUNIT_EXPECT_EQ(test, dst[len], 0x55);
	}
}

static void send_integrity(struct kunit *test)
{
	run_flow(test, false, 1, flow_send);
	run_flow(test, false, 4, flow_send);
	run_flow(test, true, 3, flow_send);
}

static void rdma_write_integrity(struct kunit *test)
{
	run_flow(test, false, 1, flow_write);
	run_flow(test, true, 4, flow_write);
}

static void rdma_read_integrity(struct kunit *test)
{
	run_flow(test, false, 1, flow_read);
	run_flow(test, true, 1, flow_read);
}

/*
 * A message as long as two LMRs of each side, which are cut at different
 * places.
 */
static void send_of_1_mebibyte(struct kunit *test)
{
	struct kd_pair pair = make_pair(test, NULL, true);
	struct kd_buf *src[] = { kd_buf_alloc(pair.a, SZ_512K),
				 kd_buf_alloc(pair.a, SZ_512K) };
	struct kd_buf *dst[] = { kd_buf_alloc(pair.p, SZ_256K),
				 kd_buf_alloc(pair.p, SZ_1M - SZ_256K) };
	DAT_LMR_TRIPLET to[] = { kd_seg(dst[0], 0, SZ_256K),
				 kd_seg(dst[1], 0, SZ_1M - SZ_256K) };
	DAT_LMR_TRIPLET from[] = { kd_seg(src[0], 0, SZ_512K),
				   kd_seg(src[1], 0, SZ_512K) };
	DAT_EVENT event;

	kd_fill(src[0]->va, SZ_512K, 1);
	kd_fill(src[1]->va, SZ_512K, 2);
	KD_ASSERT_OK(test, dat_ep_post_recv(pair.p->ep, 2, to, kd_cookie(1),
					    0));
	KD_ASSERT_OK(test, dat_ep_post_send(pair.a->ep, 2, from, kd_cookie(2),
					    0));
	kd_expect_dto(test, pair.p->recv_evd, 1, DAT_DTO_SUCCESS, &event);
	KUNIT_EXPECT_EQ(test, (size_t)SZ_1M, event.event_data
			.dto_completion_event_data.transfered_length);
	kd_expect_dto(test, pair.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_MEMEQ(test, dst[0]->va, src[0]->va, SZ_256K);
	KUNIT_EXPECT_MEMEQ(test, dst[1]->va, src[0]->va + SZ_256K, SZ_256K);
	KUNIT_EXPECT_MEMEQ(test, dst[1]->va + SZ_256K, src[1]->va, SZ_512K);
}

/* max_rdma_size limits the length of a Write, not that of the remote buffer. */
static void max_rdma_size(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_LMR_TRIPLET seg;
	DAT_RMR_TRIPLET to;
	struct kd_pair c;

	attr.max_rdma_size = 4096;
	c = make_pair(test, &attr, true);
	to = kd_remote(c.p->buf, 0, 8192);
	seg = kd_seg(c.a->buf, 0, 4096);
	KD_EXPECT_OK(test, dat_ep_post_rdma_write(c.a->ep, 1, &seg,
						  kd_cookie(1), &to, 0));
	kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	seg = kd_seg(c.a->buf, 0, 4097);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_rdma_write(c.a->ep, 1, &seg, kd_cookie(2),
					     &to, 0));
	/* The length of a Read is that of the remote buffer. */
	seg = kd_seg(c.a->buf, 0, 8192);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_rdma_read(c.a->ep, 1, &seg, kd_cookie(3),
					    &to, 0));
}

/*
 * A Write or Read of no bytes, in each of its forms, moves nothing and
 * completes.
 */
static void empty_rdma(struct kunit *test)
{
	struct kd_pair pair = make_pair(test, NULL, true);
	DAT_RMR_TRIPLET none = kd_remote(pair.p->buf, 0, 0);
	DAT_RMR_TRIPLET some = kd_remote(pair.p->buf, 0, 64);
	DAT_LMR_TRIPLET seg = kd_seg(pair.a->buf, 0, 64);
	DAT_EP_HANDLE ep = pair.a->ep;
	DAT_EVENT event;
	int i;

	kd_fill(pair.p->buf->va, 64, 1);
	KD_ASSERT_OK(test, dat_ep_post_rdma_read(ep, 0, NULL, kd_cookie(0),
						 &none, 0));
	KD_ASSERT_OK(test, dat_ep_post_rdma_read(ep, 1, &seg, kd_cookie(1),
						 &none, 0));
	seg.segment_length = 0;
	KD_ASSERT_OK(test, dat_ep_post_rdma_read(ep, 1, &seg, kd_cookie(2),
						 &none, 0));
	KD_ASSERT_OK(test, dat_ep_post_rdma_write(ep, 0, NULL, kd_cookie(3),
						  &none, 0));
	KD_ASSERT_OK(test, dat_ep_post_rdma_write(ep, 1, &seg, kd_cookie(4),
						  &some, 0));
	for (i = 0; i < 5; i++) {
		kd_expect_dto(test, pair.a->req_evd, i, DAT_DTO_SUCCESS, &event);
		KUNIT_EXPECT_EQ(test, 0, event.event_data
				.dto_completion_event_data.transfered_length);
	}
	kd_recv(pair.p, 64, 64, 5);
	kd_send(pair.a, 64, 64, 5);
	kd_expect_dto(test, pair.p->recv_evd, 5, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(pair.p->buf->va, 64, 1));

	/* An Endpoint without a PZ can do that as well. */
	KD_ASSERT_OK(test, dat_ep_create(pair.a->ia, NULL, pair.a->recv_evd,
					 pair.a->req_evd, pair.a->conn_evd,
					 NULL, &ep));
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_ep_post_rdma_read(ep, 0, NULL, kd_cookie(6), &none,
					    0));
}

static void empty_message(struct kunit *test)
{
	struct kd_pair pair = make_pair(test, NULL, true);
	DAT_EVENT event;

	KD_ASSERT_OK(test, dat_ep_post_recv(pair.p->ep, 0, NULL, kd_cookie(1),
					    0));
	KD_ASSERT_OK(test, dat_ep_post_send(pair.a->ep, 0, NULL, kd_cookie(2),
					    0));
	kd_expect_dto(test, pair.p->recv_evd, 1, DAT_DTO_SUCCESS, &event);
	KUNIT_EXPECT_EQ(test, 0, event.event_data.dto_completion_event_data
			.transfered_length);
	kd_expect_dto(test, pair.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

/* ---- Refused posts --------------------------------------------------------- */

static void post_beyond_the_queues(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_pair pair;
	DAT_LMR_TRIPLET seg;
	int i;

	attr.max_recv_dtos = 4;
	attr.max_request_dtos = 4;
	pair = make_pair(test, &attr, true);
	seg = kd_seg(pair.a->buf, 0, 64);
	for (i = 0; i < 4; i++)
		kd_recv(pair.p, i * 64, 64, i);
	seg = kd_seg(pair.p->buf, 0, 64);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      dat_ep_post_recv(pair.p->ep, 1, &seg, kd_cookie(9), 0));
	seg = kd_seg(pair.a->buf, 0, 64);
	for (i = 0; i < 4; i++)
		kd_send(pair.a, 0, 64, i);
	/* A completed request is outstanding until it is reaped. */
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      dat_ep_post_send(pair.a->ep, 1, &seg, kd_cookie(9), 0));
	kd_expect_dto(test, pair.a->req_evd, 0, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, pair.p->recv_evd, 0, DAT_DTO_SUCCESS, NULL);
	kd_recv(pair.p, 0, 64, 4);
	kd_send(pair.a, 0, 64, 4);
	for (i = 1; i < 5; i++) {
		kd_expect_dto(test, pair.a->req_evd, i, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, pair.p->recv_evd, i, DAT_DTO_SUCCESS, NULL);
	}
}

/* ---- Completion flags ------------------------------------------------------ */

static void suppressed_completions(struct kunit *test)
{
	struct kd_pair pair = make_pair(test, NULL, true);
	DAT_LMR_TRIPLET seg = kd_seg(pair.a->buf, 0, 64);
	int i;

	for (i = 0; i < 100; i++) {
		kd_recv(pair.p, 0, 64, i);
		KD_ASSERT_OK(test,
			     dat_ep_post_send(pair.a->ep, 1, &seg, kd_cookie(i),
					      DAT_COMPLETION_SUPPRESS_FLAG));
		kd_expect_dto(test, pair.p->recv_evd, i, DAT_DTO_SUCCESS, NULL);
		/*
		 * Every tenth request has an event, which retires the requests
		 * before it.
		 */
		if (i % 10)
			continue;
		kd_recv(pair.p, 0, 64, 1000);
		kd_send(pair.a, 0, 64, 1001);
		kd_expect_dto(test, pair.a->req_evd, 1001, DAT_DTO_SUCCESS,
			      NULL);
		kd_expect_dto(test, pair.p->recv_evd, 1000, DAT_DTO_SUCCESS,
			      NULL);
	}
	kd_expect_no_event(test, pair.a->req_evd);
	/* SUPPRESS does not suppress errors. */
	kd_disconnect(pair.p, pair.a);
	KD_ASSERT_OK(test, dat_ep_post_send(pair.a->ep, 1, &seg, kd_cookie(7),
					    DAT_COMPLETION_SUPPRESS_FLAG));
	kd_expect_dto(test, pair.a->req_evd, 7, DAT_DTO_ERR_FLUSHED, NULL);
}

/* A connected pair; completions of one side may be unsignalled, and cause upcalls if not. */
static struct kd_pair unsignalled_pair(struct kunit *test, struct kd_recorder *rec,
				       DAT_UPCALL_POLICY policy)
{
	struct kd_pair c = { .a = kd_open_param(test), .p = kd_open_param(test) };
	DAT_EP_ATTR attr = kd_ep_attr();

	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	kd_setup(c.p, NULL);
	kd_setup(c.a, &(struct kd_opts) { .no_ep = true });
	c.a->req_evd = kd_recorded_evd(c.a, DAT_EVD_DTO_FLAG, 32, policy, rec);
	c.a->ep = kd_ep(c.a, &attr);
	kd_connect_pair(c.a, c.p);
	return c;
}

/* An unsignalled completion is an event that causes no upcall. */
static void unsignalled_completions(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair c = unsignalled_pair(test, rec, DAT_UPCALL_NOTIFY);
	struct kd_side *a = c.a, *p = c.p;
	DAT_LMR_TRIPLET seg = kd_seg(a->buf, 0, 64);

	kd_recv(p, 0, 64, 1);
	kd_recv(p, 0, 64, 2);
	KD_ASSERT_OK(test,
		     dat_ep_post_send(a->ep, 1, &seg, kd_cookie(1),
				      DAT_COMPLETION_UNSIGNALLED_FLAG));
	kd_expect_dto(test, p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	msleep(KD_QUIET_MS);
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 0);
	kd_send(a, 0, 64, 2);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 1));
	kd_expect_dto(test, a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

/* A signalled completion that was reaped leaves no upcall due for others. */
static void C3_unsignalled_after_signalled(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair c = unsignalled_pair(test, rec, DAT_UPCALL_SINGLE_INSTANCE);
	struct kd_side *a = c.a, *p = c.p;
	DAT_LMR_TRIPLET seg = kd_seg(a->buf, 0, 64);
	int i;

	for (i = 0; i < 4; i++)
		kd_recv(p, 0, 64, i);
	kd_send(a, 0, 64, 0);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 1));
	kd_expect_dto(test, p->recv_evd, 0, DAT_DTO_SUCCESS, NULL);
	for (i = 1; i < 4; i++) {
		KD_ASSERT_OK(test,
			     dat_ep_post_send(a->ep, 1, &seg, kd_cookie(i),
					      DAT_COMPLETION_UNSIGNALLED_FLAG));
		kd_expect_dto(test, p->recv_evd, i, DAT_DTO_SUCCESS, NULL);
		msleep(KD_QUIET_MS);
		KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 1);
		kd_expect_dto(test, a->req_evd, i, DAT_DTO_SUCCESS, NULL);
	}
}

/* ---- Receives and the connection ------------------------------------------- */

#define BEFORE 16

static void N1_receives_posted_before_connecting(struct kunit *test)
{
	struct kd_pair pair = make_pair(test, NULL, false);
	int i;

	for (i = 0; i < BEFORE; i++) {
		kd_recv(pair.a, i * 64, 64, 100 + i);
		kd_recv(pair.p, i * 64, 64, 200 + i);
	}
	kd_connect_pair(pair.a, pair.p);
	for (i = 0; i < BEFORE; i++) {
		kd_send(pair.a, 0, 64, i);
		kd_send(pair.p, 0, 64, i);
	}
	for (i = 0; i < BEFORE; i++) {
		kd_expect_dto(test, pair.a->recv_evd, 100 + i, DAT_DTO_SUCCESS,
			      NULL);
		kd_expect_dto(test, pair.p->recv_evd, 200 + i, DAT_DTO_SUCCESS,
			      NULL);
	}
}

static void R4_disconnect_flushes_in_order(struct kunit *test)
{
	struct kd_pair pair = make_pair(test, NULL, true);
	int i;

	for (i = 0; i < BEFORE; i++)
		kd_recv(pair.p, i * 64, 64, i);
	kd_disconnect(pair.a, pair.p);
	for (i = 0; i < BEFORE; i++)
		kd_expect_dto(test, pair.p->recv_evd, i, DAT_DTO_ERR_FLUSHED,
			      NULL);
	/* A receive posted in state DISCONNECTED is flushed at once. */
	kd_recv(pair.p, 0, 64, 50);
	kd_send(pair.p, 0, 64, 51);
	kd_expect_dto(test, pair.p->recv_evd, 50, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_dto(test, pair.p->req_evd, 51, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_no_event(test, pair.p->recv_evd);
}

static void R4_receive_too_short(struct kunit *test)
{
	struct kd_pair pair = make_pair(test, NULL, true);
	DAT_EVENT event = {};

	kd_recv(pair.p, 0, 32, 1);
	kd_recv(pair.p, 64, 64, 2);
	kd_send(pair.a, 0, 64, 3);
	kd_expect_dto(test, pair.p->recv_evd, 1, DAT_DTO_ERR_LOCAL_LENGTH,
		      NULL);
	kd_expect_dto(test, pair.p->recv_evd, 2, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_event(test, pair.p->conn_evd, DAT_CONNECTION_EVENT_BROKEN,
			NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(pair.p->ep,
					      DAT_EP_STATE_DISCONNECTED));
	/* The sender sees its own completion fail, or the peer disconnect. */
	KUNIT_EXPECT_TRUE(test, kd_wait_event(pair.a->conn_evd, &event,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, kd_wait_state(pair.a->ep,
					      DAT_EP_STATE_DISCONNECTED));
	kd_expect_no_event(test, pair.p->conn_evd);
}

/* A Write to memory that the peer has not opened ends the connection. */
static void L2_remote_access_error(struct kunit *test)
{
	struct kd_pair pair = make_pair(test, NULL, true);
	DAT_LMR_TRIPLET seg = kd_seg(pair.a->buf, 0, 64);
	DAT_RMR_TRIPLET remote;
	struct kd_buf *ro;

	ro = kd_buf_alloc_priv(pair.p, 4096, false,
			       DAT_MEM_PRIV_READ_FLAG |
			       DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	kd_fill(ro->va, 4096, 1);
	remote = kd_remote(ro, 0, 64);
	KD_ASSERT_OK(test, dat_ep_post_rdma_write(pair.a->ep, 1, &seg,
						  kd_cookie(1), &remote, 0));
	/* Over iWARP the target breaks the connection. */
	if (kd_is_iwarp(pair.a))
		kd_expect_event(test, pair.a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	else
		kd_expect_refused(pair.a);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(pair.p->ep,
					      DAT_EP_STATE_DISCONNECTED));
	KUNIT_EXPECT_TRUE(test, kd_is_filled(ro->va, 4096, 1));
}

static struct kunit_case dto_cases[] = {
	KUNIT_CASE_PARAM(send_integrity, kd_gen_ia),
	KUNIT_CASE_PARAM(rdma_write_integrity, kd_gen_ia),
	KUNIT_CASE_PARAM(rdma_read_integrity, kd_gen_ia),
	KUNIT_CASE_PARAM(send_of_1_mebibyte, kd_gen_ia),
	KUNIT_CASE_PARAM(max_rdma_size, kd_gen_ia),
	KUNIT_CASE_PARAM(empty_message, kd_gen_ia),
	KUNIT_CASE_PARAM(empty_rdma, kd_gen_ia),
	KUNIT_CASE_PARAM(post_beyond_the_queues, kd_gen_ia),
	KUNIT_CASE_PARAM(suppressed_completions, kd_gen_ia),
	KUNIT_CASE_PARAM(unsignalled_completions, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_unsignalled_after_signalled, kd_gen_ia),
	KUNIT_CASE_PARAM(N1_receives_posted_before_connecting, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_disconnect_flushes_in_order, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_receive_too_short, kd_gen_ia),
	KUNIT_CASE_PARAM(L2_remote_access_error, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-dto", dto_cases, "data transfer operations");
