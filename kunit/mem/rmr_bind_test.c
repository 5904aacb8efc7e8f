// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Binding RMRs (contract L4, L5): the rights and flags that a bind takes, binds
 * that are refused, and RMRs as sinks of RDMA Reads.
 */
#include <linux/module.h>
#include "rmr_fixture.h"

#define ARG(n)	DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)

/* The local write privilege is enough for a sink. */
static void L5_read_to_local_write(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;

	context = rmr_bind_ok(&c, rmr, RMR_PART, DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
			      DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA);
	kd_fill(c.p->buf->va, RMR_PART, 1);
	KD_ASSERT_OK(test, rmr_read_to(&c, rmr_shown(&c, RMR_PART, RMR_PART, context), RMR_PART));
	kd_expect_dto(test, c.a->req_evd, 5, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(c.a->buf->va + RMR_PART, RMR_PART, 1));
	mem_expect_refused(&c, rmr_shown(&c, RMR_PART, 64, context), true, "write");
}

static void L5_read_to_rmr_size(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_RMR_CONTEXT context;
	struct mem_pair c;

	attr.max_rdma_size = 1024;
	c = mem_make_pair(test, &attr);
	context = rmr_bind_ok(&c, rmr_make(&c), 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	KUNIT_EXPECT_EQ(test, rmr_read_to(&c, rmr_shown(&c, 0, RMR_PART, context), 1025),
			ARG(4));
	KD_ASSERT_OK(test, rmr_read_to(&c, rmr_shown(&c, 0, RMR_PART, context), 1024));
	kd_expect_dto(test, c.a->req_evd, 5, DAT_DTO_SUCCESS, NULL);
}

static void L4_rights_of_the_owner(struct kunit *test)
{
	static const struct {
		DAT_MEM_PRIV_FLAGS has, wants;
		bool ok;
	} t[] = {
		{ DAT_MEM_PRIV_LOCAL_READ_FLAG,
		  DAT_MEM_PRIV_LOCAL_WRITE_FLAG, false },
		{ DAT_MEM_PRIV_LOCAL_READ_FLAG,
		  DAT_MEM_PRIV_REMOTE_WRITE_FLAG, false },
		{ DAT_MEM_PRIV_LOCAL_READ_FLAG,
		  DAT_MEM_PRIV_LOCAL_READ_FLAG, true },
		{ DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
		  DAT_MEM_PRIV_LOCAL_READ_FLAG, false },
		{ DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
		  DAT_MEM_PRIV_REMOTE_READ_FLAG, false },
		{ DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
		  DAT_MEM_PRIV_LOCAL_WRITE_FLAG, true },
	};
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;
	DAT_LMR_TRIPLET part;
	struct kd_buf *buf;
	DAT_RETURN ret;
	int i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		buf = kd_buf_alloc_priv(c.a, RMR_PART, false, t[i].has);
		part = kd_seg(buf, 0, 64);
		ret = dat_rmr_bind(rmr, buf->lmr, &part, t[i].wants, 0, c.a->ep,
				   kd_cookie(RMR_COOKIE), 0, &context);
		KUNIT_EXPECT_EQ_MSG(test, (int)DAT_GET_TYPE(ret), t[i].ok ?
				    DAT_SUCCESS : (int)DAT_PRIVILEGES_VIOLATION,
				    "case %d: %s", i, kd_strerror(ret));
		if (ret == DAT_SUCCESS)
			rmr_expect_bound(&c, rmr, DAT_DTO_SUCCESS);
	}
}

static void L4_bind_of_an_invalidated_lmr(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct kd_buf *b = kd_buf_alloc_priv(c.a, RMR_PART, false,
					     DAT_MEM_PRIV_ALL_FLAG);
	DAT_LMR_TRIPLET part = kd_seg(b, 0, RMR_PART), seg;
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;

	kd_recv(c.a, 0, 64, 5);
	seg = kd_seg(c.p->buf, 0, 64);
	KD_ASSERT_OK(test, dat_ep_post_send_with_invalidate(c.p->ep, 1, &seg,
							    kd_cookie(2), 0,
							    DAT_TRUE,
							    b->rmr_context));
	kd_expect_dto(test, c.a->recv_evd, 5, DAT_DTO_SUCCESS, NULL);
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      dat_rmr_bind(rmr, b->lmr, &part, RMR_REMOTE, 0, c.a->ep,
				   kd_cookie(1), 0, &context));
	/* Unbinding an RMR that is not bound is a request like any other. */
	rmr_unbind_ok(&c, rmr);
}

static void L4_flags(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_LMR_TRIPLET part = kd_seg(c.a->buf, 0, RMR_PART);
	DAT_RMR_CONTEXT context;

	KUNIT_EXPECT_EQ(test, dat_rmr_bind(rmr_make(&c), c.a->buf->lmr, &part,
					   RMR_REMOTE, 0, c.a->ep, kd_cookie(1),
					   0x100, &context), ARG(8));
}

/* A bind that the Endpoint refuses does not change the RMR. */
static void L4_unbind_after_refused_bind(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_LMR_TRIPLET part = kd_seg(c.a->buf, 0, RMR_PART);
	DAT_EP_HANDLE idle = kd_ep(c.a, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context = 0;

	rmr_unbind_ok(&c, rmr);
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_rmr_bind(rmr, c.a->buf->lmr, &part, RMR_REMOTE, 0, idle,
				   kd_cookie(1), 0, &context));
	rmr_unbind_ok(&c, rmr);
	KUNIT_EXPECT_EQ(test, (u32)kd_state(c.a), (u32)DAT_EP_STATE_CONNECTED);
}

#define REQUESTS	90
#define REBINDS		61

/*
 * A rebind takes two work requests of the device. Many of them must not fill
 * its queue, so that a post fails that the EP had room for: kDAPL refuses what
 * does not fit.
 */
static void L4_rebinds_and_sends(struct kunit *test)
{
	DAT_RMR_HANDLE *rmr = kunit_kcalloc(test, REBINDS, sizeof(*rmr),
					    GFP_KERNEL);
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_RMR_CONTEXT context;
	DAT_LMR_TRIPLET seg;
	struct mem_pair c;
	int i, posted = 0;
	DAT_EVENT event;

	KUNIT_ASSERT_NOT_NULL(test, rmr);
	attr.max_request_dtos = REQUESTS;
	c = mem_make_pair(test, &attr);
	for (i = 0; i < REBINDS; i++) {
		rmr[i] = rmr_make(&c);
		rmr_bind_ok(&c, rmr[i], i % RMR_PARTS * RMR_PART, RMR_REMOTE, DAT_VA_TYPE_VA);
	}
	for (i = 0; i < REQUESTS - REBINDS; i++)
		kd_recv(c.p, 0, 64, i);
	seg = kd_seg(c.a->buf, 0, 64);
	for (i = 0; i < REBINDS; i++)
		posted += rmr_bind(&c, rmr[i], (i + 1) % RMR_PARTS * RMR_PART, RMR_PART, RMR_REMOTE,
				   DAT_VA_TYPE_VA, &context) == DAT_SUCCESS;
	KUNIT_EXPECT_GT(test, posted, 0);
	for (i = 0; i < REQUESTS - REBINDS; i++)
		posted += dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(i),
					   0) == DAT_SUCCESS;
	while (posted--) {
		KUNIT_ASSERT_TRUE(test, kd_wait_event(c.a->req_evd, &event,
						      KD_TIMEOUT_MS));
		if (event.event_number == DAT_DTO_COMPLETION_EVENT)
			KUNIT_EXPECT_EQ(test, (u32)event.event_data
					.dto_completion_event_data.status,
					(u32)DAT_DTO_SUCCESS);
		else
			KUNIT_EXPECT_EQ(test, (u32)event.event_data
					.rmr_completion_event_data.status,
					(u32)DAT_DTO_SUCCESS);
	}
	KUNIT_EXPECT_EQ(test, (u32)kd_state(c.a), (u32)DAT_EP_STATE_CONNECTED);
}

static struct kunit_case rmr_bind_cases[] = {
	KUNIT_CASE_PARAM(L4_unbind_after_refused_bind, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_rebinds_and_sends, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_read_to_local_write, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_read_to_rmr_size, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_rights_of_the_owner, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_bind_of_an_invalidated_lmr, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_flags, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-rmr-bind", rmr_bind_cases, "binding RMRs");
