// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Members of DAT_EP_ATTR that are 0, as programs leave those that they do not know
 * (contract M3, R7, W4): what stands for a default can be used, and what is a number is
 * taken literally, whichever call it was given to.
 */
#include "fixture.h"

#define LEN	64

enum way { CREATE, CREATE_WITH_SRQ, MODIFY };

static KD_CHOICES(gen_way, kd_gen_any_ia_and, "create", "create_with_srq", "modify")

static enum way way_of(struct kunit *test)
{
	return ((const struct kd_param *)test->param_value)->choice;
}

/* Expect that a query tells what was asked for. */
static void expect_attr(struct kunit *test, DAT_EP_HANDLE ep, const DAT_EP_ATTR *attr)
{
	DAT_EP_PARAM param;

	KD_ASSERT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	/* Only numbers lie before it. */
	KUNIT_EXPECT_MEMEQ(test, &param.ep_attr, attr,
			   offsetof(DAT_EP_ATTR, ep_transport_specific));
}

/*
 * Make a pair of sides, both with @attr, one member of which is 0. With MODIFY that member,
 * for which @bit stands, is changed to 0 later.
 */
static struct kd_pair pair_with(struct kunit *test, const DAT_EP_ATTR *attr,
				DAT_EP_PARAM_MASK bit)
{
	DAT_EP_PARAM param = { .ep_attr = *attr };
	enum way way = way_of(test);
	DAT_EP_ATTR usual = kd_ep_attr();
	struct kd_opts opts = {
		.attr = way == MODIFY ? &usual : attr,
		.srq_len = way == CREATE_WITH_SRQ ? 16 : 0,
	};
	struct kd_pair pair = kd_make_pair(test, &opts);

	if (way == MODIFY) {
		KD_ASSERT_OK(test, dat_ep_modify(pair.a->ep, bit, &param));
		KD_ASSERT_OK(test, dat_ep_modify(pair.p->ep, bit, &param));
	}
	expect_attr(test, pair.a->ep, attr);
	return pair;
}

static void expect_sent(struct kd_pair *c, int segments)
{
	DAT_LMR_TRIPLET from[] = { kd_seg(c->a->buf, 0, LEN),
				   kd_seg(c->a->buf, LEN, LEN) };
	struct kunit *test = c->a->test;

	KD_ASSERT_OK(test, dat_ep_post_send(c->a->ep, segments, from,
					    kd_cookie(2), 0));
	kd_expect_dto(test, c->p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, c->a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

static void expect_written(struct kd_pair *c, int segments)
{
	DAT_LMR_TRIPLET from[] = { kd_seg(c->a->buf, 0, LEN),
				   kd_seg(c->a->buf, LEN, LEN) };
	DAT_RMR_TRIPLET to = kd_remote(c->p->buf, 0, segments * LEN);
	struct kunit *test = c->a->test;

	KD_ASSERT_OK(test, dat_ep_post_rdma_write(c->a->ep, segments, from,
						  kd_cookie(3), &to, 0));
	kd_expect_dto(test, c->a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
}

static void expect_read(struct kd_pair *c)
{
	DAT_LMR_TRIPLET to = kd_seg(c->a->buf, 0, LEN);
	DAT_RMR_TRIPLET from = kd_remote(c->p->buf, 0, LEN);
	struct kunit *test = c->a->test;

	KD_ASSERT_OK(test, dat_ep_post_rdma_read(c->a->ep, 1, &to, kd_cookie(4),
						 &from, 0));
	kd_expect_dto(test, c->a->req_evd, 4, DAT_DTO_SUCCESS, NULL);
}

/* The same, connected, with a receive posted. */
static struct kd_pair connected(struct kunit *test, const DAT_EP_ATTR *attr,
				DAT_EP_PARAM_MASK bit)
{
	struct kd_pair c = pair_with(test, attr, bit);

	kd_connect_pair(c.a, c.p);
	kd_recv(c.p, 0, 2 * LEN, 1);
	return c;
}

static void M3_zero_max_message_size(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_pair c;

	attr.max_message_size = 0;
	c = connected(test, &attr, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE);
	expect_sent(&c, 1);
}

static void M3_zero_max_rdma_size(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_pair c;

	attr.max_rdma_size = 0;
	c = connected(test, &attr, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE);
	expect_written(&c, 1);
	expect_read(&c);
}

static void M3_zero_max_recv_iov(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_pair c;

	attr.max_recv_iov = 0;
	c = connected(test, &attr, DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV);
	expect_sent(&c, 1);
}

static void M3_zero_max_request_iov(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_pair c;

	attr.max_request_iov = 0;
	c = connected(test, &attr, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV);
	expect_sent(&c, 2);
}

static void M3_zero_max_rdma_read_iov(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_pair c;

	attr.max_rdma_read_iov = 0;
	c = connected(test, &attr, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV);
	expect_read(&c);
}

static void M3_zero_max_rdma_write_iov(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_pair c;

	attr.max_rdma_write_iov = 0;
	c = connected(test, &attr, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV);
	expect_written(&c, 2);
}

/* The default follows from max_request_iov as it is when the QP is made. */
static void M3_zero_follows(struct kunit *test)
{
	DAT_EP_PARAM param = { .ep_attr.max_request_iov = 1 };
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_LMR_TRIPLET from[2];
	DAT_RMR_TRIPLET to;
	struct kd_pair c;

	attr.max_rdma_write_iov = 0;
	c = pair_with(test, &attr, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV);
	KD_ASSERT_OK(test, dat_ep_modify(c.a->ep,
					 DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, &param));
	kd_connect_pair(c.a, c.p);
	expect_written(&c, 1);
	from[0] = kd_seg(c.a->buf, 0, LEN);
	from[1] = kd_seg(c.a->buf, LEN, LEN);
	to = kd_remote(c.p->buf, 0, 2 * LEN);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_rdma_write(c.a->ep, 2, from, kd_cookie(3), &to, 0));
}

/* ---- Numbers --------------------------------------------------------------------- */

static void M3_zero_max_recv_dtos(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_LMR_TRIPLET seg;
	struct kd_pair c;

	attr.max_recv_dtos = 0;
	c = pair_with(test, &attr, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS);
	if (way_of(test) == CREATE_WITH_SRQ) {
		/* Ignored (R7). */
		kd_connect_pair(c.a, c.p);
		kd_recv(c.p, 0, LEN, 1);
		expect_sent(&c, 1);
		return;
	}
	seg = kd_seg(c.p->buf, 0, LEN);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      dat_ep_post_recv(c.p->ep, 1, &seg, kd_cookie(1), 0));
}

static void M3_zero_max_request_dtos(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_LMR_TRIPLET seg;
	struct kd_pair c;

	attr.max_request_dtos = 0;
	c = pair_with(test, &attr, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS);
	kd_connect_pair(c.a, c.p);
	seg = kd_seg(c.a->buf, 0, LEN);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(1), 0));
}

static void expect_no_reads(struct kd_pair *c)
{
	DAT_LMR_TRIPLET to = kd_seg(c->a->buf, 0, LEN);
	DAT_RMR_TRIPLET from = kd_remote(c->p->buf, 0, LEN);

	kd_connect_pair(c->a, c->p);
	KD_EXPECT_RET(c->a->test, DAT_INSUFFICIENT_RESOURCES,
		      dat_ep_post_rdma_read(c->a->ep, 1, &to, kd_cookie(1), &from, 0));
}

static void M3_zero_max_rdma_read_in(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_pair c;

	attr.max_rdma_read_in = 0;
	if (kd_ia_has(((const struct kd_param *)test->param_value)->ia, KD_IWARP))
		kunit_skip(test, "over iWARP this side does not know what the peer allows");
	c = pair_with(test, &attr, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN);
	expect_no_reads(&c);
}

static void M3_zero_max_rdma_read_out(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_pair c;

	attr.max_rdma_read_out = 0;
	c = pair_with(test, &attr, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT);
	expect_no_reads(&c);
}

/*
 * A watermark of an EP with SRQ, which fires at the first buffer; none of an EP without,
 * which sets it with dat_ep_set_watermark().
 */
static void R7_zero_srq_soft_hw(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_pair c;
	DAT_EVENT event;

	attr.srq_soft_hw = 0;
	if (way_of(test) == MODIFY) {
		DAT_EP_PARAM param = { .ep_attr = attr };

		c = kd_make_pair(test, NULL);
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      dat_ep_modify(c.a->ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW,
					    &param));
		return;
	}
	c = pair_with(test, &attr, 0);
	kd_connect_pair(c.a, c.p);
	kd_recv(c.p, 0, LEN, 1);
	kd_send(c.a, 0, LEN, 2);
	kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	if (way_of(test) == CREATE_WITH_SRQ) {
		kd_expect_event(test, c.p->async_evd, DAT_ASYNC_EP_SOFT_HIGH_WATERMARK,
				&event);
		KUNIT_EXPECT_PTR_EQ(test, (void *)c.p->ep,
				    event.event_data.asynch_error_event_data.dat_handle);
	}
	kd_expect_dto(test, c.p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_no_event(test, c.p->async_evd);
}

/* All that is left is not to be posted without an EVD. */
static void M3_all_zero(struct kunit *test)
{
	DAT_EP_ATTR attr = { };
	struct kd_side *s = kd_open_param(test);
	DAT_EP_HANDLE ep;

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	KD_ASSERT_OK(test, dat_ep_create(s->ia, s->pz, NULL, NULL, s->conn_evd, &attr,
					 &ep));
	expect_attr(test, ep, &attr);
	KD_EXPECT_OK(test, dat_ep_free(ep));
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
