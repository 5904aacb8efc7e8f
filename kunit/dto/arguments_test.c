// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arguments that posting and creating calls refuse: wrong segments (contract
 * L1), other wrong arguments, and wrong states.
 */
#include <linux/module.h>
#include "fixture.h"
#include "ia.h"

#define INVALID_STATE(subtype) \
	DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_##subtype)

/* ---- All posts in one way ---------------------------------------------------- */

enum post {
	POST_SEND,
	POST_WRITE,
	POST_RECV,
	POST_READ,
	POST_SRQ,
	POSTS
};

static const char * const post_names[] = {
	"send", "RDMA Write", "recv", "RDMA Read", "SRQ recv"
};

static bool post_writes(enum post op)
{
	return op >= POST_RECV;
}

struct refused {
	struct kd_pair pair;
	DAT_SRQ_HANDLE srq;
};

static struct refused refused_setup(struct kunit *test)
{
	struct refused r = { .pair = kd_make_pair(test, NULL) };

	kd_connect_pair(r.pair.a, r.pair.p);
	r.srq = kd_srq(r.pair.a, 16);
	return r;
}

static DAT_RETURN post(struct refused *r, enum post op, DAT_COUNT n,
		       DAT_LMR_TRIPLET *segs, DAT_COMPLETION_FLAGS flags)
{
	DAT_RMR_TRIPLET remote = kd_remote(r->pair.p->buf, 0, KD_BUF_LEN);
	DAT_EP_HANDLE ep = r->pair.a->ep;
	DAT_CONTEXT cookie = kd_cookie(op);

	switch (op) {
	case POST_SEND:
		return dat_ep_post_send(ep, n, segs, cookie, flags);
	case POST_WRITE:
		return dat_ep_post_rdma_write(ep, n, segs, cookie, &remote,
					      flags);
	case POST_RECV:
		return dat_ep_post_recv(ep, n, segs, cookie, flags);
	case POST_READ:
		/* The remote buffer may be no longer than the local one. */
		if (segs && segs->segment_length < KD_BUF_LEN)
			remote.segment_length = segs->segment_length;
		return dat_ep_post_rdma_read(ep, n, segs, cookie, &remote,
					     flags);
	default:
		return dat_srq_post_recv(r->srq, n, segs, cookie);
	}
}

static void expect_connected(struct refused *r)
{
	KUNIT_EXPECT_EQ(r->pair.a->test, (int)kd_state(r->pair.a),
			(int)DAT_EP_STATE_CONNECTED);
	kd_expect_no_event(r->pair.a->test, r->pair.a->req_evd);
}

/* ---- Segments ---------------------------------------------------------------- */

struct seg_case {
	const char *desc;
	s64 addr;			/* from the start of the LMR */
	u32 len;
	u32 context_xor;
	bool other_pz;
	bool read_only;
	DAT_RETURN_TYPE reads;		/* of posts that read the segment */
	DAT_RETURN_TYPE writes;
};

static const struct seg_case seg_cases[] = {
	{ "starts before the LMR", -1, 64, 0, false, false,
	  DAT_INVALID_PARAMETER, DAT_INVALID_PARAMETER },
	{ "ends behind the LMR", KD_BUF_LEN - 63, 64, 0, false, false,
	  DAT_INVALID_PARAMETER, DAT_INVALID_PARAMETER },
	{ "begins behind the LMR", KD_BUF_LEN, 1, 0, false, false,
	  DAT_INVALID_PARAMETER, DAT_INVALID_PARAMETER },
	{ "wraps around", 64, ~0U, 0, false, false,
	  DAT_INVALID_PARAMETER, DAT_INVALID_PARAMETER },
	{ "no such context", 0, 64, 0x5a000000, false, false,
	  DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_VIOLATION },
	{ "another PZ", 0, 64, 0, true, false,
	  DAT_PROTECTION_VIOLATION, DAT_PROTECTION_VIOLATION },
	{ "may only be read", 0, 64, 0, false, true,
	  DAT_SUCCESS, DAT_PRIVILEGES_VIOLATION },
	{ "all of the LMR", 0, KD_BUF_LEN, 0, false, false,
	  DAT_SUCCESS, DAT_SUCCESS },
};

static struct kd_buf *other_pz_buf(struct kd_side *s)
{
	DAT_PZ_HANDLE pz = s->pz;
	struct kd_buf *buf;

	KD_ASSERT_OK(s->test, dat_pz_create(s->ia, &s->pz));
	buf = kd_buf_alloc(s, KD_BUF_LEN);
	s->pz = pz;
	return buf;
}

static void L1_segments_are_checked(struct kunit *test)
{
	struct refused r = refused_setup(test);
	struct kd_side *a = r.pair.a;
	struct kd_buf *other = other_pz_buf(a), *buf;
	struct kd_buf *ro = kd_buf_alloc_priv(a, KD_BUF_LEN, false,
					      DAT_MEM_PRIV_LOCAL_READ_FLAG);
	const struct seg_case *c;
	DAT_LMR_TRIPLET seg;
	DAT_RETURN ret;
	enum post op;

	/* The peer needs receives for the messages that are sent. */
	kd_recv(r.pair.p, 0, KD_BUF_LEN, 1);
	kd_recv(r.pair.p, 0, KD_BUF_LEN, 2);
	for (c = seg_cases; c < seg_cases + ARRAY_SIZE(seg_cases); c++) {
		buf = c->other_pz ? other : c->read_only ? ro : a->buf;
		for (op = 0; op < POSTS; op++) {
			seg = kd_seg(buf, c->addr, c->len);
			seg.lmr_context ^= c->context_xor;
			ret = post(&r, op, 1, &seg, 0);
			KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret),
					    (u32)(post_writes(op) ? c->writes :
								    c->reads),
					    "%s, %s", c->desc, post_names[op]);
			if (ret == DAT_SUCCESS && op != POST_RECV &&
			    op != POST_SRQ)
				kd_expect_dto(test, a->req_evd, op,
					      DAT_DTO_SUCCESS, NULL);
		}
	}
	expect_connected(&r);
}

/* ---- Arguments --------------------------------------------------------------- */

static void post_arguments(struct kunit *test)
{
	struct refused r = refused_setup(test);
	DAT_RMR_TRIPLET remote = kd_remote(r.pair.p->buf, 0, 64);
	DAT_CONTEXT cookie = kd_cookie(1);
	DAT_EP_HANDLE ep = r.pair.a->ep;
	DAT_LMR_TRIPLET segs[5];
	enum post op;
	int i;

	for (i = 0; i < ARRAY_SIZE(segs); i++)
		segs[i] = kd_seg(r.pair.a->buf, i * 64, 64);
	for (op = 0; op < POSTS; op++) {
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      post(&r, op, ARRAY_SIZE(segs), segs, 0));
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      post(&r, op, -1, segs, 0));
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      post(&r, op, 1, NULL, 0));
		if (op == POST_SRQ)
			continue;
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      post(&r, op, 1, segs, 0x100));
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      post(&r, op, 1, segs,
				   DAT_COMPLETION_UNSIGNALLED_FLAG));
	}
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_recv(ep, 1, segs, cookie,
				       DAT_COMPLETION_SUPPRESS_FLAG));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_rdma_write(ep, 1, segs, cookie, NULL, 0));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_rdma_read(ep, 1, segs, cookie, NULL, 0));
	KD_EXPECT_RET(test, DAT_LENGTH_ERROR,
		      dat_ep_post_rdma_write(ep, 2, segs, cookie, &remote, 0));
	remote.segment_length = 65;
	KD_EXPECT_RET(test, DAT_LENGTH_ERROR,
		      dat_ep_post_rdma_read(ep, 1, segs, cookie, &remote, 0));
	expect_connected(&r);
}

static const DAT_SRQ_ATTR bad_srqs[] = {
	{ 0, 1, 0 }, { -1, 1, 0 }, { INT_MAX, 1, 0 },
	{ 8, 0, 0 }, { 8, -1, 0 }, { 8, INT_MAX, 0 },
	{ 8, 1, 1 }, { 8, 1, -1 },
};

static void srq_arguments(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
	DAT_SRQ_ATTR attr;
	int i;

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	for (i = 0; i < ARRAY_SIZE(bad_srqs); i++) {
		attr = bad_srqs[i];
		KUNIT_EXPECT_EQ_MSG(test, dat_srq_create(s->ia, s->pz, &attr,
							 &srq),
				    DAT_ERROR(DAT_INVALID_PARAMETER,
					      DAT_INVALID_ARG3),
				    "case %d", i);
	}
	KUNIT_EXPECT_EQ(test, dat_srq_create(s->ia, s->pz, NULL, &srq),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	attr = (DAT_SRQ_ATTR) { 8, 1, 0 };
	KUNIT_EXPECT_EQ(test, dat_srq_create(s->ia, s->pz, &attr, NULL),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
	KUNIT_EXPECT_PTR_EQ(test, (void *)srq, (void *)DAT_HANDLE_NULL);
}

/* ---- A device without SRQs ---------------------------------------------------- */

/*
 * kdapl.ko queries attributes when a device appears; the public address of an
 * IA is a member of struct kdapl_ia, which leads to them.
 */
static struct ib_device_attr *attrs_of(struct kd_side *s)
{
	return &container_of((struct sockaddr_storage *)s->addr,
			     struct kdapl_ia, first_addr)->hca->attrs;
}

static void I4_device_without_srqs(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct ib_device_attr *attrs = attrs_of(s);
	DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
	DAT_SRQ_ATTR attr = { 8, 1, 0 };
	DAT_PROVIDER_ATTR prov = { };
	int max_srq = attrs->max_srq;
	DAT_RETURN ret, asked;
	DAT_IA_ATTR *ia;

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	ia = kunit_kzalloc(test, sizeof(*ia), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ia);
	attrs->max_srq = 0;
	ret = dat_srq_create(s->ia, s->pz, &attr, &srq);
	asked = dat_ia_query(s->ia, NULL, DAT_IA_FIELD_IA_MAX_SRQS, ia,
			     DAT_PROVIDER_FIELD_SRQ_SUPPORTED, &prov);
	attrs->max_srq = max_srq;
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED, ret);
	KUNIT_EXPECT_PTR_EQ(test, (void *)srq, (void *)DAT_HANDLE_NULL);
	/* The attributes say so, too. */
	KD_EXPECT_OK(test, asked);
	KUNIT_EXPECT_EQ(test, ia->max_srqs, 0);
	KUNIT_EXPECT_EQ(test, (int)prov.srq_supported, DAT_FALSE);
	KD_EXPECT_OK(test, dat_srq_create(s->ia, s->pz, &attr, &srq));
}

/* A NULL pointer for the handle is refused. */
static void I4_no_handle_pointer(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_EP_ATTR attr = kd_ep_attr();

	kd_setup(s, &(struct kd_opts) { .srq_len = 8 });
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, dat_pz_create(s->ia, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_create(s->ia, s->pz, s->recv_evd, s->req_evd,
				    s->conn_evd, &attr, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_create_with_srq(s->ia, s->pz, s->recv_evd,
					     s->req_evd, s->conn_evd, s->srq,
					     &attr, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rmr_create_for_ep(s->pz, NULL));
}

/* ---- States ------------------------------------------------------------------ */

/* Requests can be posted to an Endpoint that is or was connected. */
static void requests_need_a_connection(struct kunit *test)
{
	struct refused r = { .pair = kd_make_pair(test, NULL) };
	DAT_LMR_TRIPLET seg = kd_seg(r.pair.a->buf, 0, 64);
	const enum post ops[] = { POST_SEND, POST_WRITE, POST_READ };
	int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		KUNIT_EXPECT_EQ_MSG(test, post(&r, ops[i], 1, &seg, 0),
				    INVALID_STATE(EP_UNCONNECTED), "%s",
				    post_names[ops[i]]);
	kd_expect_no_event(test, r.pair.a->req_evd);
}

/* An Endpoint with an SRQ, or without a receive EVD, takes no receives. */
static void nowhere_to_receive(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_LMR_TRIPLET seg;
	DAT_EP_HANDLE ep;

	kd_setup(s, &(struct kd_opts) { .srq_len = 8 });
	seg = kd_seg(s->buf, 0, 64);
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_ep_post_recv(s->ep, 1, &seg, kd_cookie(1), 0));
	attr.max_recv_dtos = 0;
	KD_ASSERT_OK(test, dat_ep_create(s->ia, s->pz, DAT_HANDLE_NULL,
					 s->req_evd, s->conn_evd, &attr, &ep));
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_ep_post_recv(ep, 1, &seg, kd_cookie(1), 0));
	kd_expect_no_event(test, s->recv_evd);
}

static void nowhere_to_tell_of_a_connection(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a;
	DAT_EP_ATTR attr = kd_ep_attr();
	u16 port = kd_port();
	DAT_EP_HANDLE ep;

	kd_psp(pair.p, port, DAT_PSP_CONSUMER_FLAG);
	KD_ASSERT_OK(test, dat_ep_create(a->ia, a->pz, a->recv_evd, a->req_evd,
					 DAT_HANDLE_NULL, &attr, &ep));
	KUNIT_EXPECT_EQ(test, dat_ep_connect(ep, pair.p->addr, port,
					     DAT_TIMEOUT_INFINITE, 0, NULL,
					     DAT_QOS_BEST_EFFORT,
					     DAT_CONNECT_DEFAULT_FLAG),
			INVALID_STATE(EP_EVD_CONNECT));
	kd_expect_no_event(test, pair.p->cr_evd);
}

static struct kunit_case arguments_cases[] = {
	KUNIT_CASE_PARAM(L1_segments_are_checked, kd_gen_ia),
	KUNIT_CASE_PARAM(post_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(srq_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(I4_device_without_srqs, kd_gen_ia),
	KUNIT_CASE_PARAM(I4_no_handle_pointer, kd_gen_ia),
	KUNIT_CASE_PARAM(requests_need_a_connection, kd_gen_ia),
	KUNIT_CASE_PARAM(nowhere_to_receive, kd_gen_ia),
	KUNIT_CASE_PARAM(nowhere_to_tell_of_a_connection, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-arguments", arguments_cases, "what is refused");
