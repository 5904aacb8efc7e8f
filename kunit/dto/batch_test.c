// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Several requests that are posted at once: kdat_ep_post_requests() (contract I8).
 */
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <dat/kdat_linux.h>
#include "device.h"

#define LEN	3000
#define SEED	11

static struct kd_hook device;

/* Connect a pair whose active side counts how often it tells the device. */
static struct kd_pair make_pair(struct kunit *test, const struct kd_opts *opts)
{
	struct kd_pair c = kd_make_pair(test, opts);

	kd_connect_pair(c.a, c.p);
	kd_count_doorbells(test, c.a->name);
	return c;
}

static KDAT_REQUEST a_send(DAT_LMR_TRIPLET *seg, u64 cookie)
{
	return (KDAT_REQUEST) {
		.operation = DAT_DTO_SEND,
		.num_segments = 1,
		.local_iov = seg,
		.user_cookie = kd_cookie(cookie),
	};
}

static KDAT_REQUEST an_rdma(DAT_DTOS op, DAT_LMR_TRIPLET *seg,
			    const DAT_RMR_TRIPLET *remote, u64 cookie)
{
	KDAT_REQUEST r = a_send(seg, cookie);

	r.operation = op;
	r.remote_iov = remote;
	return r;
}

/* ---- What is posted ------------------------------------------------------------- */

static void I8_write_and_send(struct kunit *test)
{
	struct kd_pair c = make_pair(test, NULL);
	DAT_LMR_TRIPLET data = kd_seg(c.a->buf, 0, LEN);
	DAT_LMR_TRIPLET reply = kd_seg(c.a->buf, LEN, 48);
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, LEN);
	KDAT_REQUEST r[] = {
		an_rdma(DAT_DTO_RDMA_WRITE, &data, &remote, 1),
		a_send(&reply, 2),
	};
	DAT_EVENT event;

	kd_fill(c.a->buf->va, LEN, SEED);
	kd_recv(c.p, LEN, 64, 5);
	KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, 2, r));
	KUNIT_EXPECT_EQ(test, atomic_read(&kd_doorbells), 1);
	kd_expect_dto(test, c.p->recv_evd, 5, DAT_DTO_SUCCESS, &event);
	KUNIT_EXPECT_EQ(test, (u64)48, (u64)event.event_data
			.dto_completion_event_data.transfered_length);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(c.p->buf->va, LEN, SEED));
	kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_SUCCESS, &event);
	KUNIT_EXPECT_EQ(test, (u64)LEN, (u64)event.event_data
			.dto_completion_event_data.transfered_length);
	kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_SUCCESS, &event);
	KUNIT_EXPECT_EQ(test, (int)event.event_data
			.dto_completion_event_data.operation, (int)DAT_DTO_SEND);
}

/* Completions come in order, and those that succeed silently do so. */
static void I8_flags_of_each(struct kunit *test)
{
	struct kd_pair c = make_pair(test, NULL);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, 16);
	KDAT_REQUEST r[KDAT_MAX_REQUESTS];
	int i;

	for (i = 0; i < KDAT_MAX_REQUESTS; i++) {
		r[i] = a_send(&seg, i);
		if (i % 3 != 2)
			r[i].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
		kd_recv(c.p, 64 * i, 64, i);
	}
	r[KDAT_MAX_REQUESTS - 1].completion_flags = 0;
	KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, KDAT_MAX_REQUESTS, r));
	KUNIT_EXPECT_EQ(test, atomic_read(&kd_doorbells), 1);
	for (i = 0; i < KDAT_MAX_REQUESTS; i++)
		kd_expect_dto(test, c.p->recv_evd, i, DAT_DTO_SUCCESS, NULL);
	for (i = 0; i < KDAT_MAX_REQUESTS; i++)
		if (!r[i].completion_flags)
			kd_expect_dto(test, c.a->req_evd, i, DAT_DTO_SUCCESS, NULL);
	kd_expect_no_event(test, c.a->req_evd);
}

static atomic_t signalled;

static int count_signalled(struct ib_qp *qp, const struct ib_send_wr *wr,
			   const struct ib_send_wr **bad)
{
	const struct ib_send_wr *next;

	for (next = wr; next && qp->qp_type == IB_QPT_RC; next = next->next)
		if (next->send_flags & IB_SEND_SIGNALED)
			atomic_inc(&signalled);
	return device.real.post_send(qp, wr, bad);
}

/*
 * What succeeds silently before another request of the same list has no completion of the
 * device, and its place in the queue is used again all the same.
 */
static void I8_silent_to_the_device(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_LMR_TRIPLET data = kd_seg(c.a->buf, 0, LEN);
	DAT_LMR_TRIPLET reply = kd_seg(c.a->buf, LEN, 48);
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, LEN);
	KDAT_REQUEST r[] = {
		an_rdma(DAT_DTO_RDMA_WRITE, &data, &remote, 1),
		an_rdma(DAT_DTO_RDMA_WRITE, &data, &remote, 2),
		a_send(&reply, 3),
	};
	int i, rounds = 64;

	r[0].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	r[1].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	kd_connect_pair(c.a, c.p);
	kd_hook(test, c.a->name, &device)->ops.post_send = count_signalled;
	atomic_set(&signalled, 0);
	for (i = 0; i < rounds; i++) {
		kd_fill(c.a->buf->va, LEN, i);
		kd_recv(c.p, LEN, 64, i);
		KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, 3, r));
		kd_expect_dto(test, c.p->recv_evd, i, DAT_DTO_SUCCESS, NULL);
		KUNIT_ASSERT_TRUE(test, kd_is_filled(c.p->buf->va, LEN, i));
		kd_expect_dto(test, c.a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
	}
	kd_expect_no_event(test, c.a->req_evd);
	KUNIT_EXPECT_EQ(test, atomic_read(&signalled), rounds);
}

/* One of these that fails tells so, and what is behind it is flushed. */
static void I8_silent_one_fails(struct kunit *test)
{
	struct kd_pair c = make_pair(test, NULL);
	DAT_LMR_TRIPLET data = kd_seg(c.a->buf, 0, LEN);
	DAT_RMR_TRIPLET good = kd_remote(c.p->buf, 0, LEN), bad = good;
	DAT_LMR_TRIPLET reply = kd_seg(c.a->buf, LEN, 48);
	KDAT_REQUEST r[] = {
		an_rdma(DAT_DTO_RDMA_WRITE, &data, &good, 1),
		an_rdma(DAT_DTO_RDMA_WRITE, &data, &bad, 2),
		a_send(&reply, 3),
	};

	if (kd_is_iwarp(c.a))
		kunit_skip(test, "over iWARP the peer's refusal comes after the completion");
	bad.rmr_context ^= 0x100;
	r[0].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	r[1].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, 3, r));
	kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_ERR_REMOTE_ACCESS, NULL);
	kd_expect_dto(test, c.a->req_evd, 3, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_refused(c.a);
	kd_expect_no_event(test, c.a->req_evd);
}

static void I8_reads(struct kunit *test)
{
	struct kd_pair c = make_pair(test, NULL);
	DAT_LMR_TRIPLET seg[2] = { kd_seg(c.a->buf, 0, 500), kd_seg(c.a->buf, 500, 500) };
	DAT_RMR_TRIPLET remote[2] = { kd_remote(c.p->buf, 0, 500),
				      kd_remote(c.p->buf, 500, 500) };
	KDAT_REQUEST r[] = {
		an_rdma(DAT_DTO_RDMA_READ, &seg[0], &remote[0], 1),
		an_rdma(DAT_DTO_RDMA_READ, &seg[1], &remote[1], 2),
	};

	kd_fill(c.p->buf->va, 1000, SEED);
	if (!kd_has(c.a, KD_ANY_SINK) && kd_is_iwarp(c.a)) {
		KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
			      kdat_ep_post_requests(c.a->ep, 2, r));
		return;
	}
	KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, 2, r));
	kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(test, 0, memcmp(c.a->buf->va, c.p->buf->va, 1000));
}

/* Requests that name a mapping hold it until each has completed. */
static void I8_L8_with_a_mapping(struct kunit *test)
{
	struct kd_pair c = make_pair(test, NULL);
	DAT_LMR_TRIPLET reply = kd_seg(c.a->buf, 0, 48), iov[2];
	DAT_RMR_TRIPLET remote[2] = { kd_remote(c.p->buf, 0, LEN),
				      kd_remote(c.p->buf, LEN, LEN) };
	KDAT_REQUEST r[] = {
		an_rdma(DAT_DTO_RDMA_WRITE, &iov[0], &remote[0], 1),
		an_rdma(DAT_DTO_RDMA_WRITE, &iov[1], &remote[1], 2),
		a_send(&reply, 3),
	};
	struct scatterlist sgl[2];
	KDAT_SG_HANDLE map;
	DAT_COUNT n;
	u8 *mem;

	mem = kunit_kzalloc(test, 3 * LEN, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	memset(mem, 1, LEN);
	memset(mem + 2 * LEN, 2, LEN);
	sg_init_table(sgl, 2);
	sg_set_buf(&sgl[0], mem, LEN);
	sg_set_buf(&sgl[1], mem + 2 * LEN, LEN);
	KD_ASSERT_OK(test, kdat_sg_map(c.a->ia, c.a->pz, sgl, 2, DMA_TO_DEVICE, 2, iov,
				       &n, &map));
	kd_recv(c.p, 3 * LEN, 64, 5);
	r[0].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	r[1].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, 3, r));
	kd_expect_dto(test, c.p->recv_evd, 5, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, c.a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
	kd_hand_over(c.p->buf->va, 2 * LEN, true);
	KUNIT_EXPECT_EQ(test, ((u8 *)c.p->buf->va)[LEN - 1], 1);
	KUNIT_EXPECT_EQ(test, ((u8 *)c.p->buf->va)[LEN], 2);
	KD_EXPECT_OK(test, kdat_sg_unmap(map));
}

/* ---- A device that repeats itself ------------------------------------------------- */

/* The first request that fails completes twice, before the others. */
static struct {
	struct kd_hook device;
	bool done;
} twice;

static int twice_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	int got;

	for (got = 0; got < n && twice.device.real.poll_cq(cq, 1, &wc[got]) == 1; got++) {
		if (twice.done || wc[got].status == IB_WC_SUCCESS || got + 1 == n)
			continue;
		wc[got + 1] = wc[got];
		got++;
		twice.done = true;
	}
	return got;
}

enum { WRITES = 7 };

/*
 * Fill the queue with a Read and Writes, and disconnect. Each has one event, in order.
 * Return whether they were flushed: siw's sending thread may be faster.
 */
static bool are_flushed(struct kunit *test)
{
	struct kd_pair c = { kd_open(test, "siw0/1"), kd_open(test, "siw0/1") };
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_RMR_TRIPLET remote;
	KDAT_REQUEST r[WRITES];
	DAT_LMR_TRIPLET seg;
	DAT_EVENT event;
	int i;

	attr.max_request_dtos = WRITES + 1;
	kd_setup(c.a, &(struct kd_opts) { .attr = &attr });
	kd_setup(c.p, NULL);
	kd_connect_pair(c.a, c.p);
	remote = kd_remote(c.p->buf, 0, 64);
	seg = kd_seg(c.a->buf, 0, 64);
	for (i = 0; i < WRITES; i++)
		r[i] = an_rdma(DAT_DTO_RDMA_WRITE, &seg, &remote, i + 1);
	KD_ASSERT_OK(test, dat_ep_post_rdma_read(c.a->ep, 1, &seg, kd_cookie(0), &remote, 0));
	KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, WRITES, r));
	KD_ASSERT_OK(test, dat_ep_disconnect(c.a->ep, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i <= WRITES; i++) {
		kd_expect_event(test, c.a->req_evd, DAT_DTO_COMPLETION_EVENT, &event);
		dto = &event.event_data.dto_completion_event_data;
		KUNIT_EXPECT_EQ(test, dto->user_cookie.as_64, (u64)i);
	}
	kd_expect_no_event(test, c.a->req_evd);
	return twice.done && dto->status == DAT_DTO_ERR_FLUSHED;
}

/*
 * siw flushes a Read twice if its sending thread has not begun with it (siw_sq_flush() in
 * 6.12). That is one event, also when the queue was full and the Read's entry is the next
 * one that would complete.
 */
static void I8_ends_once(struct kunit *test)
{
	int tries = 50;

	kd_hook(test, "siw0/1", &twice.device)->ops.poll_cq = twice_poll_cq;
	do {
		twice.done = false;
	} while (!are_flushed(test) && --tries);
	KUNIT_EXPECT_TRUE(test, tries);
}

/* The device tells of two requests that it flushes in the wrong order. */
static int turned_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	int got = twice.device.real.poll_cq(cq, n, wc);

	if (!twice.done && got >= 2 && wc[0].status == IB_WC_WR_FLUSH_ERR &&
	    wc[1].status == IB_WC_WR_FLUSH_ERR && wc[0].wr_id != wc[1].wr_id &&
	    wc[0].opcode == IB_WC_RDMA_WRITE) {
		swap(wc[0], wc[1]);
		twice.done = true;
	}
	return got;
}

/* Post two Writes, of which the first is to succeed silently, and disconnect. */
static bool are_turned(struct kunit *test)
{
	struct kd_pair c = { kd_open(test, "siw0/1"), kd_open(test, "siw0/1") };
	DAT_RMR_TRIPLET remote;
	KDAT_REQUEST r[2];
	DAT_LMR_TRIPLET seg;
	int i;

	kd_setup(c.a, NULL);
	kd_setup(c.p, NULL);
	kd_connect_pair(c.a, c.p);
	remote = kd_remote(c.p->buf, 0, 64);
	seg = kd_seg(c.a->buf, 0, 64);
	for (i = 0; i < 2; i++)
		r[i] = an_rdma(DAT_DTO_RDMA_WRITE, &seg, &remote, i);
	r[0].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, 2, r));
	KD_ASSERT_OK(test, dat_ep_disconnect(c.a->ep, DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_event(test, c.a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	if (!twice.done)
		return false;
	for (i = 0; i < 2; i++)
		kd_expect_dto(test, c.a->req_evd, i, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_no_event(test, c.a->req_evd);
	return true;
}

/*
 * While siw flushes its queue, what is posted is flushed at once, before what it has not
 * come to (siw_post_send() beside siw_qp_llp_close() in 6.12). That does not prove that a
 * silent request before it was a success.
 */
static void I8_silent_one_is_flushed_late(struct kunit *test)
{
	int tries = 50;

	twice.done = false;
	kd_hook(test, "siw0/1", &twice.device)->ops.poll_cq = turned_poll_cq;
	while (!are_turned(test) && --tries)
		;
	KUNIT_EXPECT_TRUE(test, tries);
}

/* A Read that was a success fails as well, before anybody asks. */
static int failing_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	int got = twice.device.real.poll_cq(cq, n, wc);

	if (got == 1 && n > 1 && !twice.done && wc->status == IB_WC_SUCCESS &&
	    wc->opcode == IB_WC_RDMA_READ) {
		wc[got] = wc[0];
		wc[got++].status = IB_WC_LOC_QP_OP_ERR;
		twice.done = true;
	}
	return got;
}

/*
 * siw's sending thread completes a Read as failed that it could not send to the end; the
 * response may have completed it (siw_qp_sq_process() in 6.12). The first one counts.
 */
static void I8_success_stays(struct kunit *test)
{
	struct kd_pair c = { kd_open(test, "siw0/1"), kd_open(test, "siw0/1") };
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET seg;

	twice.done = false;
	kd_hook(test, "siw0/1", &twice.device)->ops.poll_cq = failing_poll_cq;
	kd_setup(c.a, NULL);
	kd_setup(c.p, NULL);
	kd_connect_pair(c.a, c.p);
	remote = kd_remote(c.p->buf, 0, 64);
	seg = kd_seg(c.a->buf, 0, 64);
	KD_ASSERT_OK(test, dat_ep_post_rdma_read(c.a->ep, 1, &seg, kd_cookie(1), &remote, 0));
	kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_event(test, c.a->conn_evd, DAT_CONNECTION_EVENT_BROKEN, NULL);
	kd_expect_no_event(test, c.a->req_evd);
	KUNIT_EXPECT_TRUE(test, twice.done);
}

/* ---- What is not posted --------------------------------------------------------- */

static void expect_untouched(struct kd_pair *c)
{
	KUNIT_EXPECT_EQ(c->a->test, atomic_read(&kd_doorbells), 0);
	kd_expect_no_event(c->a->test, c->a->req_evd);
	kd_expect_no_event(c->a->test, c->p->recv_evd);
}

/* One request too many for the queue: none is posted. */
static void I8_no_room(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_LMR_TRIPLET seg;
	KDAT_REQUEST r[4];
	struct kd_pair c;
	int i;

	attr.max_request_dtos = 3;
	c = make_pair(test, &(struct kd_opts) { .attr = &attr });
	seg = kd_seg(c.a->buf, 0, 16);
	for (i = 0; i < 4; i++) {
		r[i] = a_send(&seg, i);
		kd_recv(c.p, 64 * i, 64, i);
	}
	KUNIT_EXPECT_EQ(test, kdat_ep_post_requests(c.a->ep, 4, r),
			DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY));
	expect_untouched(&c);
	KD_EXPECT_OK(test, kdat_ep_post_requests(c.a->ep, 3, r));
	for (i = 0; i < 3; i++)
		kd_expect_dto(test, c.p->recv_evd, i, DAT_DTO_SUCCESS, NULL);
	/* Not reaped, so still in the queue. */
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      kdat_ep_post_requests(c.a->ep, 1, r));
	for (i = 0; i < 3; i++)
		kd_expect_dto(test, c.a->req_evd, i, DAT_DTO_SUCCESS, NULL);
}

/* The last of three is wrong, in every way there is. */
static void I8_one_is_wrong(struct kunit *test)
{
	struct kd_pair c = make_pair(test, NULL);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, 16);
	DAT_LMR_TRIPLET longer = kd_seg(c.a->buf, 0, KD_BUF_LEN + 1), unknown = seg;
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, 8);
	KDAT_REQUEST r[3] = { a_send(&seg, 1), a_send(&seg, 2) };
	const struct {
		KDAT_REQUEST r;
		DAT_RETURN want;
	} cases[] = {
		{ a_send(&longer, 3),
		  DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3) },
		{ a_send(&unknown, 3),
		  DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ) },
		{ a_send(NULL, 3),
		  DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3) },
		{ an_rdma(DAT_DTO_RDMA_WRITE, &seg, &remote, 3), DAT_ERROR(DAT_LENGTH_ERROR, 0) },
		{ an_rdma(DAT_DTO_RDMA_WRITE, &seg, NULL, 3),
		  DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3) },
		{ an_rdma(DAT_DTO_RECEIVE, &seg, &remote, 3),
		  DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3) },
		{ { .operation = DAT_DTO_SEND, .num_segments = -1, .local_iov = &seg },
		  DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3) },
		{ { .operation = DAT_DTO_SEND, .num_segments = KDAT_MAX_SEGMENTS + 1,
		    .local_iov = &seg },
		  DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3) },
		{ { .operation = DAT_DTO_SEND, .num_segments = 1, .local_iov = &seg,
		    .completion_flags = ~0U },
		  DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3) },
	};
	int i;

	unknown.lmr_context ^= 0x5a000000;
	kd_recv(c.p, 0, 64, 5);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		r[2] = cases[i].r;
		KUNIT_EXPECT_EQ_MSG(test, kdat_ep_post_requests(c.a->ep, 3, r),
				    cases[i].want, "case %d", i);
	}
	expect_untouched(&c);
}

static void I8_arguments(struct kunit *test)
{
	struct kd_pair c = make_pair(test, NULL);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, 16);
	KDAT_REQUEST r = a_send(&seg, 1);

	KUNIT_EXPECT_EQ(test, kdat_ep_post_requests(NULL, 1, &r),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
	KUNIT_EXPECT_EQ(test, kdat_ep_post_requests(c.a->ep, 0, &r),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	KUNIT_EXPECT_EQ(test, kdat_ep_post_requests(c.a->ep, KDAT_MAX_REQUESTS + 1, &r),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	KUNIT_EXPECT_EQ(test, kdat_ep_post_requests(c.a->ep, 1, NULL),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	KUNIT_EXPECT_EQ(test, kdat_ep_post_requests(kd_ep(c.a, NULL), 1, &r),
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_EP_UNCONNECTED));
	expect_untouched(&c);
}

/* What is posted after the connection has ended is flushed in order. */
static void I8_flushed(struct kunit *test)
{
	struct kd_pair c = make_pair(test, NULL);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, 16);
	KDAT_REQUEST r[] = { a_send(&seg, 1), a_send(&seg, 2), a_send(&seg, 3) };
	int i;

	r[1].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	kd_disconnect(c.a, c.p);
	atomic_set(&kd_doorbells, 0);
	KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, 3, r));
	for (i = 1; i <= 3; i++)
		kd_expect_dto(test, c.a->req_evd, i, DAT_DTO_ERR_FLUSHED, NULL);
	KUNIT_EXPECT_EQ(test, atomic_read(&kd_doorbells), 0);
}

/* The driver refuses: the connection ends, and every request completes. */
static int refuse(struct ib_qp *qp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad)
{
	return qp->qp_type == IB_QPT_RC ? -ENOMEM :
					  device.real.post_send(qp, wr, bad);
}

static void I8_device_refuses(struct kunit *test)
{
	struct kd_pair c = make_pair(test, NULL);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, 16);
	KDAT_REQUEST r[] = { a_send(&seg, 1), a_send(&seg, 2) };

	kd_hook(test, c.a->name, &device)->ops.post_send = refuse;
	KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, 2, r));
	kd_expect_event(test, c.a->conn_evd, DAT_CONNECTION_EVENT_BROKEN, NULL);
	kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_ERR_FLUSHED, NULL);
}

static struct kunit_case batch_cases[] = {
	KUNIT_CASE_PARAM(I8_write_and_send, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_flags_of_each, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_silent_to_the_device, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_silent_one_fails, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_reads, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_L8_with_a_mapping, kd_gen_ia),
	KUNIT_CASE(I8_ends_once),
	KUNIT_CASE(I8_silent_one_is_flushed_late),
	KUNIT_CASE(I8_success_stays),
	KUNIT_CASE_PARAM(I8_no_room, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_one_is_wrong, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_flushed, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_device_refuses, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-batch", batch_cases, "several requests at once");
