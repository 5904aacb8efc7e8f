// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Freeing an LMR that posted work names (contract L6): the call is refused until
 * the work has completed, and changes nothing; the memory is the consumer's when
 * it succeeds.
 */
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include "fmr_fixture.h"
#include "srq_fixture.h"

#define LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define PART	512

static const DAT_RETURN in_use = DAT_CLASS_ERROR | DAT_INVALID_STATE |
				 DAT_INVALID_STATE_LMR_IN_USE;

static void expect_in_use(struct kunit *test, DAT_LMR_HANDLE lmr)
{
	KUNIT_EXPECT_EQ(test, dat_lmr_free(lmr), in_use);
}

/* An LMR of each kind: with the key of all memory, and with one of its own. */
static struct kd_buf *make_buf(struct kd_side *s, bool registered)
{
	return kd_buf_alloc_priv(s, PAGE_SIZE, registered, LOCAL);
}

static KD_CHOICES(gen_kinds, kd_gen_ia_and, "one piece", "in pages")

static bool registered(struct kunit *test)
{
	return ((const struct kd_param *)test->param_value)->choice;
}

static DAT_RETURN post_recv(struct kd_side *s, struct kd_buf *buf, u64 cookie)
{
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, PART);

	return dat_ep_post_recv(s->ep, 1, &seg, kd_cookie(cookie), 0);
}

/* Let the peer fill the first of the posted receives. */
static void fill_one(struct kd_pair *c, struct kd_buf *buf, u64 cookie)
{
	kd_fill(c->p->buf->va, PART, cookie);
	kd_send(c->p, 0, PART, 100 + cookie);
	kd_expect_dto(c->a->test, c->p->req_evd, 100 + cookie, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(c->a->test, c->a->recv_evd, cookie, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE(c->a->test, kd_is_filled(buf->va, PART, cookie));
}

/* ---- Receives ------------------------------------------------------------------ */

static void L6_receive(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct kd_buf *buf = make_buf(c.a, registered(test));

	/* Before there is a queue pair the receive is posted all the same. */
	KD_ASSERT_OK(test, post_recv(c.a, buf, 1));
	expect_in_use(test, buf->lmr);
	kd_connect_pair(c.a, c.p);
	KD_ASSERT_OK(test, post_recv(c.a, buf, 2));
	expect_in_use(test, buf->lmr);
	fill_one(&c, buf, 1);
	expect_in_use(test, buf->lmr);
	/* What was refused has changed nothing. */
	KD_ASSERT_OK(test, post_recv(c.a, buf, 3));
	fill_one(&c, buf, 2);
	fill_one(&c, buf, 3);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION, post_recv(c.a, buf, 4));
}

/* Nobody reaps, and nobody but the call polls. */
static void L6_completed_unseen(struct kunit *test)
{
	struct kd_opts opts = { .polled = true };
	struct kd_pair c = kd_make_pair(test, &opts);
	struct kd_buf *buf = make_buf(c.a, registered(test));

	kd_connect_pair(c.a, c.p);
	KD_ASSERT_OK(test, post_recv(c.a, buf, 1));
	expect_in_use(test, buf->lmr);
	kd_send(c.p, 0, PART, 2);
	kd_expect_dto(test, c.p->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	kd_expect_dto(test, c.a->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
}

static void L6_receive_of_an_ended_connection(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct kd_buf *buf = make_buf(c.a, registered(test));

	kd_connect_pair(c.a, c.p);
	KD_ASSERT_OK(test, post_recv(c.a, buf, 1));
	kd_disconnect(c.a, c.p);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	kd_expect_dto(test, c.a->recv_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
}

/* The receives of an Endpoint go with it, connected or not. */
static void L6_receive_of_a_freed_endpoint(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct kd_buf *buf = make_buf(c.a, registered(test));
	struct kd_buf *other = make_buf(c.a, registered(test));
	DAT_LMR_TRIPLET seg = kd_seg(other, 0, PART);
	DAT_EP_HANDLE ep = kd_ep(c.a, NULL);

	kd_connect_pair(c.a, c.p);
	KD_ASSERT_OK(test, post_recv(c.a, buf, 1));
	KD_ASSERT_OK(test, dat_ep_post_recv(ep, 1, &seg, kd_cookie(1), 0));
	KD_ASSERT_OK(test, dat_ep_free(ep));
	KD_EXPECT_OK(test, dat_lmr_free(other->lmr));
	KD_ASSERT_OK(test, dat_ep_free(c.a->ep));
	c.a->ep = NULL;
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	memset(buf->va, 0x5a, PART);
	kd_expect_disconnected(c.p, NULL);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(buf->va, 0x5a, PART), NULL);
}

/* Any Endpoint of the PZ may name it, in any segment. */
static void L6_two_endpoints(struct kunit *test)
{
	struct kd_side *s = kd_open(test, ((const struct kd_param *)
					   test->param_value)->ia);
	struct kd_buf *buf, *other;
	DAT_LMR_TRIPLET seg[2];
	DAT_EP_HANDLE ep[3];
	int i;

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	buf = make_buf(s, registered(test));
	other = make_buf(s, registered(test));
	for (i = 0; i < ARRAY_SIZE(ep); i++)
		ep[i] = kd_ep(s, NULL);
	seg[0] = kd_seg(other, 0, PART);
	seg[1] = kd_seg(buf, 0, PART);
	KD_ASSERT_OK(test, dat_ep_post_recv(ep[0], 2, seg, kd_cookie(1), 0));
	expect_in_use(test, buf->lmr);
	KD_ASSERT_OK(test, dat_ep_post_recv(ep[2], 2, seg, kd_cookie(1), 0));
	expect_in_use(test, buf->lmr);
	KD_ASSERT_OK(test, dat_ep_free(ep[0]));
	expect_in_use(test, buf->lmr);
	expect_in_use(test, other->lmr);
	KD_ASSERT_OK(test, dat_ep_free(ep[2]));
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	KD_EXPECT_OK(test, dat_lmr_free(other->lmr));
}

/* Work that names another LMR on the same memory is none that names this one. */
static void L6_another_lmr_there(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct kd_buf *buf = make_buf(c.a, registered(test));
	DAT_REGION_DESCRIPTION region = { .for_va = buf->va };
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE twin;

	KD_ASSERT_OK(test, dat_lmr_kcreate(c.a->ia, DAT_MEM_TYPE_VIRTUAL, region,
					   PART, c.a->pz, LOCAL, DAT_VA_TYPE_VA, 0,
					   &twin, &context, NULL, NULL, NULL));
	kd_connect_pair(c.a, c.p);
	KD_ASSERT_OK(test, post_recv(c.a, buf, 1));
	KD_EXPECT_OK(test, dat_lmr_free(twin));
	expect_in_use(test, buf->lmr);
	fill_one(&c, buf, 1);
}

/* Buffers of an SRQ are posted until they are taken, or the SRQ is freed. */
static void L6_srq_buffer(struct kunit *test)
{
	struct kd_opts opts = { .srq_len = 8 };
	struct kd_pair c;
	struct kd_buf *buf, *last;
	DAT_LMR_TRIPLET seg;

	c.a = kd_open(test, ((const struct kd_param *)test->param_value)->ia);
	c.p = kd_open(test, c.a->name);
	kd_setup(c.a, &opts);
	kd_setup(c.p, NULL);
	buf = make_buf(c.a, registered(test));
	last = make_buf(c.a, registered(test));
	seg = kd_seg(buf, 0, PART);
	KD_ASSERT_OK(test, dat_srq_post_recv(c.a->srq, 1, &seg, kd_cookie(1)));
	expect_in_use(test, buf->lmr);
	kd_connect_pair(c.a, c.p);
	seg = kd_seg(last, 0, PART);
	KD_ASSERT_OK(test, dat_srq_post_recv(c.a->srq, 1, &seg, kd_cookie(2)));
	expect_in_use(test, buf->lmr);
	fill_one(&c, buf, 1);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	/* With the connection the buffer does not go. */
	kd_disconnect(c.a, c.p);
	expect_in_use(test, last->lmr);
	KD_ASSERT_OK(test, dat_ep_free(c.a->ep));
	c.a->ep = NULL;
	expect_in_use(test, last->lmr);
	KD_ASSERT_OK(test, dat_srq_free(c.a->srq));
	c.a->srq = NULL;
	KD_EXPECT_OK(test, dat_lmr_free(last->lmr));
}

/* ---- Requests ------------------------------------------------------------------ */

/* Connect, and keep a first Send from completing, and so all that follow. */
static struct kd_pair make_stuck_pair(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);

	if (kd_is_iwarp(c.a))
		kunit_skip(test, "a Send without a receive ends the connection");
	kd_connect_pair(c.a, c.p);
	return c;
}

static void L6_send(struct kunit *test)
{
	struct kd_pair c = make_stuck_pair(test);
	struct kd_buf *buf = make_buf(c.a, registered(test));
	DAT_LMR_TRIPLET seg[2] = { kd_seg(c.a->buf, 0, 64), kd_seg(buf, 0, PART) };

	KD_ASSERT_OK(test, dat_ep_post_send(c.a->ep, 2, seg, kd_cookie(1), 0));
	expect_in_use(test, buf->lmr);
	KD_ASSERT_OK(test, dat_ep_post_send(c.a->ep, 1, seg + 1, kd_cookie(2),
					    DAT_COMPLETION_SUPPRESS_FLAG));
	expect_in_use(test, buf->lmr);
	kd_recv(c.p, 0, 1024, 1);
	kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	expect_in_use(test, buf->lmr);
	kd_recv(c.p, 0, 1024, 2);
	kd_expect_dto(test, c.p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, c.p->recv_evd, 2, DAT_DTO_SUCCESS, NULL);
	/* The suppressed one completes when its acknowledgment has come. */
	kd_ping(c.a, c.p);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      dat_ep_post_send(c.a->ep, 1, seg + 1, kd_cookie(3), 0));
}

/* All requests of several that are posted at once. */
static void L6_batch(struct kunit *test)
{
	struct kd_pair c = make_stuck_pair(test);
	struct kd_buf *buf[2] = { make_buf(c.a, registered(test)),
				  make_buf(c.a, registered(test)) };
	DAT_LMR_TRIPLET seg[2] = { kd_seg(buf[0], 0, 64), kd_seg(buf[1], 0, 64) };
	KDAT_REQUEST req[2];
	int i;

	memset(req, 0, sizeof(req));
	for (i = 0; i < 2; i++) {
		req[i].operation = DAT_DTO_SEND;
		req[i].num_segments = 1;
		req[i].local_iov = &seg[i];
		req[i].user_cookie = kd_cookie(i);
	}
	KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, 2, req));
	for (i = 0; i < 2; i++)
		expect_in_use(test, buf[i]->lmr);
	for (i = 0; i < 2; i++) {
		kd_recv(c.p, 0, 64, i);
		kd_expect_dto(test, c.a->req_evd, i, DAT_DTO_SUCCESS, NULL);
		KD_EXPECT_OK(test, dat_lmr_free(buf[i]->lmr));
	}
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      kdat_ep_post_requests(c.a->ep, 2, req));
}

static void L6_rdma(struct kunit *test)
{
	struct kd_pair c = make_stuck_pair(test);
	struct kd_buf *sink = make_buf(c.a, registered(test));
	struct kd_buf *source = make_buf(c.a, registered(test));
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, PART);
	DAT_LMR_TRIPLET seg = kd_seg(sink, 0, PART);

	kd_fill(c.p->buf->va, PART, 7);
	kd_send(c.a, 0, 64, 1);
	KD_ASSERT_OK(test, dat_ep_post_rdma_read(c.a->ep, 1, &seg, kd_cookie(2),
						 &remote, 0));
	seg = kd_seg(source, 0, PART);
	remote = kd_remote(c.p->buf, PART, PART);
	KD_ASSERT_OK(test, dat_ep_post_rdma_write(c.a->ep, 1, &seg, kd_cookie(3),
						  &remote, 0));
	expect_in_use(test, sink->lmr);
	expect_in_use(test, source->lmr);
	kd_recv(c.p, 2 * PART, 64, 1);
	kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, c.a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(sink->va, PART, 7));
	KD_EXPECT_OK(test, dat_lmr_free(sink->lmr));
	KD_EXPECT_OK(test, dat_lmr_free(source->lmr));
}

/* Requests that are flushed have completed. */
static void L6_flushed(struct kunit *test)
{
	struct kd_pair c = make_stuck_pair(test);
	struct kd_buf *buf = make_buf(c.a, registered(test));
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, PART);

	KD_ASSERT_OK(test, dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(1), 0));
	expect_in_use(test, buf->lmr);
	KD_ASSERT_OK(test, dat_ep_disconnect(c.a->ep, DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_disconnected(c.a, NULL);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
}

/* ---- Fast registration --------------------------------------------------------- */

static void L6_fmr_receive(struct kunit *test)
{
	struct pages *p = fmr_make_pages(test);
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	DAT_LMR_TRIPLET seg = { 0, FMR_LEN, 0 };

	fmr_bind_ok(&c, &f, p);
	seg.lmr_context = f.context;
	KD_ASSERT_OK(test, dat_ep_post_recv(c.a->ep, 1, &seg, kd_cookie(1), 0));
	expect_in_use(test, f.lmr);
	KUNIT_EXPECT_TRUE(test, fmr_is_bound(&c, &f));
	kd_fill(c.p->buf->va, FMR_LEN, 3);
	kd_send(c.p, 0, FMR_LEN, 2);
	kd_expect_dto(test, c.a->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE(test, fmr_is_filled(p, 3));
	/* A receive of an earlier binding is none of this one. */
	fmr_unbind_ok(&c, &f);
	fmr_bind_ok(&c, &f, p);
	KD_EXPECT_OK(test, dat_lmr_free(f.lmr));
}

static void L6_fmr_send(struct kunit *test)
{
	struct pages *p = fmr_make_pages(test);
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_EP);
	DAT_LMR_TRIPLET seg = { 0, PART, 0 };

	if (kd_is_iwarp(c.a))
		kunit_skip(test, "a Send without a receive ends the connection");
	fmr_bind_ok(&c, &f, p);
	seg.lmr_context = f.context;
	KD_ASSERT_OK(test, dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(1), 0));
	expect_in_use(test, f.lmr);
	kd_recv(c.p, 0, PART, 2);
	fmr_expect_op(&c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS);
	KD_EXPECT_OK(test, dat_lmr_free(f.lmr));
}

static struct kunit_case posted_cases[] = {
	KUNIT_CASE_PARAM(L6_receive, gen_kinds),
	KUNIT_CASE_PARAM(L6_completed_unseen, gen_kinds),
	KUNIT_CASE_PARAM(L6_receive_of_an_ended_connection, gen_kinds),
	KUNIT_CASE_PARAM(L6_receive_of_a_freed_endpoint, gen_kinds),
	KUNIT_CASE_PARAM(L6_two_endpoints, gen_kinds),
	KUNIT_CASE_PARAM(L6_another_lmr_there, gen_kinds),
	KUNIT_CASE_PARAM(L6_srq_buffer, gen_kinds),
	KUNIT_CASE_PARAM(L6_send, gen_kinds),
	KUNIT_CASE_PARAM(L6_batch, gen_kinds),
	KUNIT_CASE_PARAM(L6_rdma, gen_kinds),
	KUNIT_CASE_PARAM(L6_flushed, gen_kinds),
	KUNIT_CASE_PARAM(L6_fmr_receive, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_fmr_send, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-posted", posted_cases, "freeing memory that is posted");
