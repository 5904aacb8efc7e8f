// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Members of DAT_EP_ATTR that are 0, as programs leave those that they do not know
 * (contract M3, R7, W4): what stands for a default can be used, and what is a number is
 * taken literally, whichever call it was given to. A query tells what was asked for: 0.
 */
#include "fixture.h"

#define LEN	16		/* of a segment */
#define USUAL	4		/* segments that an Endpoint gets unasked, if the IA allows */

enum way { CREATE, CREATE_WITH_SRQ, MODIFY };

static KD_CHOICES(gen_way, kd_gen_any_ia_and, "create", "create_with_srq", "modify")

static enum way way_of(struct kunit *test)
{
	return ((const struct kd_param *)test->param_value)->choice;
}

/* A member of DAT_EP_ATTR, by its offset, and its bit for dat_ep_modify(). */
struct member {
	size_t at;
	DAT_EP_PARAM_MASK bit;
};

#define MEMBER(name, field) \
	((struct member) { offsetof(DAT_EP_ATTR, name), DAT_EP_FIELD_EP_ATTR_ ## field })

static void expect_told(struct kd_side *s, struct member m)
{
	DAT_EP_PARAM param;

	KD_ASSERT_OK(s->test, dat_ep_query(s->ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(s->test, *(u32 *)((void *)&param.ep_attr + m.at), 0);
}

/*
 * Make a pair of sides, whose attribute @m is 0: from the beginning or, with MODIFY, since it
 * was changed.
 */
static struct kd_pair pair_with(struct kunit *test, struct member m)
{
	DAT_EP_ATTR usual = kd_ep_attr();
	DAT_EP_PARAM param = { .ep_attr = usual };
	enum way way = way_of(test);
	struct kd_opts opts = {
		.attr = way == MODIFY ? &usual : &param.ep_attr,
		.srq_len = way == CREATE_WITH_SRQ ? 16 : 0,
	};
	struct kd_pair pair;

	*(u32 *)((void *)&param.ep_attr + m.at) = 0;
	pair = kd_make_pair(test, &opts);
	if (way == MODIFY) {
		KD_ASSERT_OK(test, dat_ep_modify(pair.a->ep, m.bit, &param));
		KD_ASSERT_OK(test, dat_ep_modify(pair.p->ep, m.bit, &param));
	}
	expect_told(pair.a, m);
	return pair;
}

/* Post an operation of @n segments, of @c->a or, if it is a receive, of @c->p. */
static DAT_RETURN post(struct kd_pair *c, DAT_DTOS op, unsigned int n)
{
	struct kd_side *s = op == DAT_DTO_RECEIVE ? c->p : c->a;
	DAT_RMR_TRIPLET peer = kd_remote(c->p->buf, 0, n * LEN);
	DAT_LMR_TRIPLET seg[USUAL + 1];
	unsigned int i;

	for (i = 0; i < n; i++)
		seg[i] = kd_seg(s->buf, i * LEN, LEN);
	switch (op) {
	case DAT_DTO_RECEIVE:
		return dat_ep_post_recv(s->ep, n, seg, kd_cookie(op), 0);
	case DAT_DTO_SEND:
		return dat_ep_post_send(s->ep, n, seg, kd_cookie(op), 0);
	case DAT_DTO_RDMA_WRITE:
		return dat_ep_post_rdma_write(s->ep, n, seg, kd_cookie(op), &peer, 0);
	default:
		return dat_ep_post_rdma_read(s->ep, n, seg, kd_cookie(op), &peer, 0);
	}
}

static void expect_done(struct kd_pair *c, DAT_DTOS op)
{
	struct kd_side *s = op == DAT_DTO_RECEIVE ? c->p : c->a;

	kd_expect_dto(s->test, op == DAT_DTO_RECEIVE ? s->recv_evd : s->req_evd, op,
		      DAT_DTO_SUCCESS, NULL);
}

/* Connect, with a receive posted, and have @op done with @n segments. */
static void expect_done_with(struct kd_pair *c, DAT_DTOS op, unsigned int n)
{
	kd_connect_pair(c->a, c->p);
	if (op != DAT_DTO_RECEIVE)
		kd_recv(c->p, 0, USUAL * LEN, DAT_DTO_RECEIVE);
	KD_EXPECT_OK(c->a->test, post(c, op, n));
	if (op == DAT_DTO_RECEIVE)
		kd_send(c->a, 0, LEN, DAT_DTO_SEND);
	expect_done(c, op);
}

/* ---- Defaults -------------------------------------------------------------------- */

/*
 * The default of @m is so many segments of @op, and not one more: USUAL, or what the IA
 * allows, which is at @limit of its attributes.
 */
static void expect_segments(struct kunit *test, struct member m, DAT_DTOS op, size_t limit)
{
	struct kd_pair c = pair_with(test, m);
	DAT_IA_ATTR ia;
	u32 n;

	KD_ASSERT_OK(test, dat_ia_query(c.a->ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	n = min_t(u32, USUAL, *(u32 *)((void *)&ia + limit));
	expect_done_with(&c, op, n);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, post(&c, op, n + 1));
}

static void M3_zero_max_message_size(struct kunit *test)
{
	struct kd_pair c = pair_with(test, MEMBER(max_message_size, MAX_MESSAGE_SIZE));

	expect_done_with(&c, DAT_DTO_SEND, 1);
}

static void M3_zero_max_rdma_size(struct kunit *test)
{
	struct kd_pair c = pair_with(test, MEMBER(max_rdma_size, MAX_RDMA_SIZE));

	expect_done_with(&c, DAT_DTO_RDMA_WRITE, 1);
	KD_EXPECT_OK(test, post(&c, DAT_DTO_RDMA_READ, 1));
	expect_done(&c, DAT_DTO_RDMA_READ);
}

static void M3_zero_max_recv_iov(struct kunit *test)
{
	struct member m = MEMBER(max_recv_iov, MAX_RECV_IOV);
	struct kd_pair c;

	if (way_of(test) != CREATE_WITH_SRQ) {
		expect_segments(test, m, DAT_DTO_RECEIVE,
				offsetof(DAT_IA_ATTR, max_iov_segments_per_dto));
		return;
	}
	/* Ignored (R7). */
	c = pair_with(test, m);
	kd_connect_pair(c.a, c.p);
	kd_ping(c.a, c.p);
}

static void M3_zero_max_request_iov(struct kunit *test)
{
	expect_segments(test, MEMBER(max_request_iov, MAX_REQUEST_IOV), DAT_DTO_SEND,
			offsetof(DAT_IA_ATTR, max_iov_segments_per_dto));
}

static void M3_zero_max_rdma_read_iov(struct kunit *test)
{
	expect_segments(test, MEMBER(max_rdma_read_iov, MAX_RDMA_READ_IOV),
			DAT_DTO_RDMA_READ,
			offsetof(DAT_IA_ATTR, max_iov_segments_per_rdma_read));
}

static void M3_zero_max_rdma_write_iov(struct kunit *test)
{
	expect_segments(test, MEMBER(max_rdma_write_iov, MAX_RDMA_WRITE_IOV),
			DAT_DTO_RDMA_WRITE,
			offsetof(DAT_IA_ATTR, max_iov_segments_per_rdma_write));
}

/* The default follows from max_request_iov as it is when the QP is made. */
static void M3_zero_follows(struct kunit *test)
{
	struct member m = MEMBER(max_rdma_write_iov, MAX_RDMA_WRITE_IOV);
	DAT_EP_PARAM param = { .ep_attr.max_request_iov = 1 };
	struct kd_pair c = pair_with(test, m);

	KD_ASSERT_OK(test, dat_ep_modify(c.a->ep,
					 DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, &param));
	expect_told(c.a, m);
	expect_done_with(&c, DAT_DTO_RDMA_WRITE, 1);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, post(&c, DAT_DTO_RDMA_WRITE, 2));
}

/* ---- Numbers --------------------------------------------------------------------- */

static void expect_none(struct kunit *test, struct member m, DAT_DTOS op)
{
	struct kd_pair c = pair_with(test, m);

	kd_connect_pair(c.a, c.p);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, post(&c, op, 1));
}

static void M3_zero_max_recv_dtos(struct kunit *test)
{
	struct member m = MEMBER(max_recv_dtos, MAX_RECV_DTOS);
	struct kd_pair c;

	if (way_of(test) != CREATE_WITH_SRQ) {
		expect_none(test, m, DAT_DTO_RECEIVE);
		return;
	}
	/* Ignored (R7). */
	c = pair_with(test, m);
	kd_connect_pair(c.a, c.p);
	kd_ping(c.a, c.p);
}

static void M3_zero_max_request_dtos(struct kunit *test)
{
	expect_none(test, MEMBER(max_request_dtos, MAX_REQUEST_DTOS), DAT_DTO_SEND);
}

static void M3_zero_max_rdma_read_in(struct kunit *test)
{
	if (kd_ia_has(((const struct kd_param *)test->param_value)->ia, KD_IWARP))
		kunit_skip(test, "over iWARP this side does not know what the peer allows");
	expect_none(test, MEMBER(max_rdma_read_in, MAX_RDMA_READ_IN), DAT_DTO_RDMA_READ);
}

static void M3_zero_max_rdma_read_out(struct kunit *test)
{
	expect_none(test, MEMBER(max_rdma_read_out, MAX_RDMA_READ_OUT), DAT_DTO_RDMA_READ);
}

/*
 * A watermark of an EP with SRQ, which fires at the first buffer; none of an EP without,
 * which sets it with dat_ep_set_watermark().
 */
static void R7_zero_srq_soft_hw(struct kunit *test)
{
	struct member m = MEMBER(srq_soft_hw, SRQ_SOFT_HW);
	DAT_EP_PARAM param = { .ep_attr = kd_ep_attr() };
	struct kd_pair c;
	DAT_EVENT event;

	if (way_of(test) == MODIFY) {
		c = kd_make_pair(test, NULL);
		param.ep_attr.srq_soft_hw = 0;
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      dat_ep_modify(c.a->ep, m.bit, &param));
		return;
	}
	c = pair_with(test, m);
	kd_connect_pair(c.a, c.p);
	kd_recv(c.p, 0, LEN, DAT_DTO_RECEIVE);
	KD_ASSERT_OK(test, post(&c, DAT_DTO_SEND, 1));
	expect_done(&c, DAT_DTO_SEND);
	if (way_of(test) == CREATE_WITH_SRQ) {
		kd_expect_event(test, c.p->async_evd, DAT_ASYNC_EP_SOFT_HIGH_WATERMARK,
				&event);
		KUNIT_EXPECT_PTR_EQ(test, (void *)c.p->ep,
				    event.event_data.asynch_error_event_data.dat_handle);
	}
	expect_done(&c, DAT_DTO_RECEIVE);
	kd_expect_no_event(test, c.p->async_evd);
}

/* All that is left is not to be posted without an EVD. */
static void M3_all_zero(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_EP_ATTR attr = { };

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	KD_ASSERT_OK(test, dat_ep_create(s->ia, s->pz, NULL, NULL, s->conn_evd, &attr,
					 &s->ep));
	expect_told(s, MEMBER(max_recv_dtos, MAX_RECV_DTOS));
	expect_told(s, MEMBER(max_recv_iov, MAX_RECV_IOV));
	KD_EXPECT_OK(test, dat_ep_free(s->ep));
	s->ep = NULL;
}

static struct kunit_case attr_zero_cases[] = {
	KUNIT_CASE_PARAM(M3_zero_max_message_size, gen_way),
	KUNIT_CASE_PARAM(M3_zero_max_rdma_size, gen_way),
	KUNIT_CASE_PARAM(M3_zero_max_recv_iov, gen_way),
	KUNIT_CASE_PARAM(M3_zero_max_request_iov, gen_way),
	KUNIT_CASE_PARAM(M3_zero_max_rdma_read_iov, gen_way),
	KUNIT_CASE_PARAM(M3_zero_max_rdma_write_iov, gen_way),
	KUNIT_CASE_PARAM(M3_zero_follows, gen_way),
	KUNIT_CASE_PARAM(M3_zero_max_recv_dtos, gen_way),
	KUNIT_CASE_PARAM(M3_zero_max_request_dtos, gen_way),
	KUNIT_CASE_PARAM(M3_zero_max_rdma_read_in, gen_way),
	KUNIT_CASE_PARAM(M3_zero_max_rdma_read_out, gen_way),
	KUNIT_CASE_PARAM(R7_zero_srq_soft_hw, gen_way),
	KUNIT_CASE_PARAM(M3_all_zero, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-attr-zero", attr_zero_cases, "attributes of Endpoints that are 0");
