// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory (contract L1, L3, L4, L5): requests that are refused, what they leave
 * behind, and what ends without an event.
 */
#include <linux/io.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include "rmr_fixture.h"

#define ARG(n)	DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)

/* The local right alone makes it a sink. */
static void L5_read_to_local_write(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = make_rmr(&c);
	DAT_RMR_CONTEXT context;

	context = bind_ok(&c, rmr, PART, DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
			  DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA);
	kd_fill(c.p->buf->va, PART, 1);
	KD_ASSERT_OK(test, read_to(&c, shown(&c, PART, PART, context), PART));
	kd_expect_dto(test, c.a->req_evd, 5, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(c.a->buf->va + PART, PART, 1));
	mem_expect_refused(&c, shown(&c, PART, 64, context), true, "write");
}

static void L5_read_to_rmr_size(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_RMR_CONTEXT context;
	struct mem_pair c;

	attr.max_rdma_size = 1024;
	c = mem_make_pair(test, &attr);
	context = bind_ok(&c, make_rmr(&c), 0, REMOTE, DAT_VA_TYPE_VA);
	KUNIT_EXPECT_EQ(test, read_to(&c, shown(&c, 0, PART, context), 1025),
			ARG(4));
	KD_ASSERT_OK(test, read_to(&c, shown(&c, 0, PART, context), 1024));
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
	DAT_RMR_HANDLE rmr = make_rmr(&c);
	DAT_RMR_CONTEXT context;
	DAT_LMR_TRIPLET part;
	struct kd_buf *buf;
	DAT_RETURN ret;
	int i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		buf = kd_buf_alloc_priv(c.a, PART, false, t[i].has);
		part = kd_seg(buf, 0, 64);
		ret = dat_rmr_bind(rmr, buf->lmr, &part, t[i].wants, 0, c.a->ep,
				   kd_cookie(COOKIE), 0, &context);
		KUNIT_EXPECT_EQ_MSG(test, (int)DAT_GET_TYPE(ret), t[i].ok ?
				    DAT_SUCCESS : (int)DAT_PRIVILEGES_VIOLATION,
				    "case %d: %s", i, kd_strerror(ret));
		if (ret == DAT_SUCCESS)
			expect_bound(&c, rmr, DAT_DTO_SUCCESS);
	}
}

static void L4_bind_of_an_invalidated_lmr(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct kd_buf *b = kd_buf_alloc_priv(c.a, PART, false,
					     DAT_MEM_PRIV_ALL_FLAG);
	DAT_LMR_TRIPLET part = kd_seg(b, 0, PART), seg;
	DAT_RMR_HANDLE rmr = make_rmr(&c);
	DAT_RMR_CONTEXT context;

	kd_recv(c.a, 0, 64, 5);
	seg = kd_seg(c.p->buf, 0, 64);
	KD_ASSERT_OK(test, dat_ep_post_send_with_invalidate(c.p->ep, 1, &seg,
							    kd_cookie(2), 0,
							    DAT_TRUE,
							    b->rmr_context));
	kd_expect_dto(test, c.a->recv_evd, 5, DAT_DTO_SUCCESS, NULL);
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      dat_rmr_bind(rmr, b->lmr, &part, REMOTE, 0, c.a->ep,
				   kd_cookie(1), 0, &context));
	/* Unbinding what is not bound is a request like any other. */
	unbind_ok(&c, rmr);
}

static void L3_platform_without_memory(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_REGION_DESCRIPTION region;
	struct scatterlist sg[2];
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;
	int i;

	region.for_platform = sg;
	for (i = 0; i < 4; i++) {
		sg_init_table(sg, 2);
		sg_set_buf(&sg[0], c.a->buf->va, PAGE_SIZE);
		sg_set_buf(&sg[1], c.a->buf->va + PAGE_SIZE, PAGE_SIZE);
		if (i & 2)
			sg[i & 1].length = 0;
		else
			sg_assign_page(&sg[i & 1], NULL);
		KUNIT_EXPECT_EQ(test,
				dat_lmr_kcreate(c.a->ia, DAT_MEM_TYPE_PLATFORM,
						region, PAGE_SIZE + 1, c.a->pz,
						DAT_MEM_PRIV_ALL_FLAG, 0, 0,
						&lmr, &context, &rkey, NULL,
						NULL), ARG(3));
	}
}

/* ---- Fast registration ---------------------------------------------------------- */

static DAT_LMR_HANDLE make_fmr(struct mem_pair *c)
{
	DAT_LMR_HANDLE lmr = NULL;

	KD_ASSERT_OK(c->test, dat_lmr_allocate(c->a->ia, c->a->pz, 4,
					       DAT_LMR_SCOPE_PZ, &lmr));
	return lmr;
}

static DAT_RETURN fmr(struct mem_pair *c, DAT_LMR_HANDLE lmr, DAT_PADDR *pages,
		      u64 size, DAT_VLEN n, DAT_COMPLETION_FLAGS flags)
{
	DAT_REGION_DESCRIPTION region = {
		.for_array = { .page_size = size, .pages = pages },
	};
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT rkey;

	return dat_lmr_fmr(lmr, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, n,
			   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, c->a->ep,
			   kd_cookie(3), flags, &context, &rkey);
}

static DAT_LMR_PARAM state_of(struct kunit *test, DAT_LMR_HANDLE lmr)
{
	DAT_LMR_PARAM param = { };

	KD_EXPECT_OK(test, dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	return param;
}

static void L3_fmr_refused_changes_nothing(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	u8 *mem = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	DAT_LMR_HANDLE lmr = make_fmr(&c);
	DAT_LMR_PARAM before, after;
	DAT_PADDR pages[2];

	KUNIT_ASSERT_NOT_NULL(test, mem);
	pages[0] = virt_to_phys(mem);
	pages[1] = pages[0] + 64;
	before = state_of(test, lmr);
	KUNIT_EXPECT_EQ(test, fmr(&c, lmr, pages, PAGE_SIZE, 1, 0x100), ARG(9));
	KUNIT_EXPECT_EQ(test, fmr(&c, lmr, pages, PAGE_SIZE, 2, 0), ARG(3));
	/* In no state to post, which is noticed last. */
	kd_disconnect(c.p, c.a);
	KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      fmr(&c, lmr, pages, PAGE_SIZE, 1, 0));
	after = state_of(test, lmr);
	KUNIT_EXPECT_MEMEQ(test, &after, &before, sizeof(before));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
}

static void L3_fmr_large_pages(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	u8 *mem = kunit_kzalloc(test, 4 * PAGE_SIZE, GFP_KERNEL);
	DAT_LMR_HANDLE lmr = make_fmr(&c);
	DAT_PADDR pages[3];

	KUNIT_ASSERT_NOT_NULL(test, mem);
	pages[0] = virt_to_phys(mem);
	pages[1] = pages[0] + 2 * PAGE_SIZE;
	pages[2] = pages[0];
	KUNIT_EXPECT_EQ(test, fmr(&c, lmr, pages, 2 * PAGE_SIZE, 3, 0), ARG(4));
	KUNIT_EXPECT_EQ(test, fmr(&c, lmr, pages, 2 * PAGE_SIZE,
				  U64_MAX / 2 + 2, 0), ARG(4));
	KUNIT_EXPECT_EQ(test, fmr(&c, lmr, pages, 64, 1, 0), ARG(3));
	KD_ASSERT_OK(test, fmr(&c, lmr, pages, 2 * PAGE_SIZE, 2, 0));
	kd_expect_dto(test, c.a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(test, state_of(test, lmr).length, 4 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, dat_lmr_invalidate(lmr, c.a->ep, kd_cookie(1),
						 0x100), ARG(4));
}

static void L4_flags(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_LMR_TRIPLET part = kd_seg(c.a->buf, 0, PART);
	DAT_RMR_CONTEXT context;

	KUNIT_EXPECT_EQ(test, dat_rmr_bind(make_rmr(&c), c.a->buf->lmr, &part,
					   REMOTE, 0, c.a->ep, kd_cookie(1),
					   0x100, &context), ARG(8));
}

/* ---- Ends without an event ------------------------------------------------------ */

static bool freed(void *lmr)
{
	return dat_lmr_free(lmr) == DAT_SUCCESS;
}

static void bind_and_unbind(struct mem_pair *c, DAT_RMR_HANDLE rmr,
			    struct kd_buf *buf)
{
	DAT_LMR_TRIPLET part = kd_seg(buf, 0, PART);
	DAT_RMR_CONTEXT context;

	KD_ASSERT_OK(c->test, dat_rmr_bind(rmr, buf->lmr, &part, REMOTE, 0,
					   c->a->ep, kd_cookie(1),
					   DAT_COMPLETION_SUPPRESS_FLAG,
					   &context));
	part.segment_length = 0;
	KD_ASSERT_OK(c->test, dat_rmr_bind(rmr, NULL, &part, 0, 0, c->a->ep,
					   kd_cookie(1),
					   DAT_COMPLETION_SUPPRESS_FLAG, NULL));
}

/* Nobody polls the EVD, so dat_lmr_free() has to. */
static void L3_free_after_suppressed(struct kunit *test)
{
	struct kd_opts opts = { .polled = true };
	struct kd_pair pair = kd_make_pair(test, &opts);
	struct mem_pair c = { test, pair.a, pair.p };
	struct kd_buf *buf = kd_buf_alloc(c.a, PART);
	u8 *mem = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	DAT_LMR_HANDLE lmr = make_fmr(&c);
	DAT_RMR_HANDLE rmr = make_rmr(&c);
	DAT_PADDR page;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	page = virt_to_phys(mem);
	kd_connect_pair(c.a, c.p);
	KD_ASSERT_OK(test, fmr(&c, lmr, &page, PAGE_SIZE, 1,
			       DAT_COMPLETION_SUPPRESS_FLAG));
	KD_ASSERT_OK(test, dat_lmr_invalidate(lmr, c.a->ep, kd_cookie(1),
					      DAT_COMPLETION_SUPPRESS_FLAG));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(freed, lmr, KD_TIMEOUT_MS));

	bind_and_unbind(&c, rmr, buf);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(freed, buf->lmr, KD_TIMEOUT_MS));
}

/* RMRs over one LMR, each unbound on an Endpoint with an EVD of its own. */
static void L3_free_after_suppressed_elsewhere(struct kunit *test)
{
	struct kd_opts opts = { .polled = true };
	struct kd_pair pair = kd_make_pair(test, &opts);
	struct mem_pair c = { test, pair.a, pair.p };
	struct kd_buf *buf = kd_buf_alloc(c.a, PART);
	DAT_RMR_HANDLE rmr[3];
	int i;

	for (i = 0; i < ARRAY_SIZE(rmr); i++)
		rmr[i] = make_rmr(&c);
	for (i = 0; i < ARRAY_SIZE(rmr); i++) {
		if (i) {
			c.a->req_evd = kd_evd(c.a, DAT_EVD_DTO_FLAG |
					      DAT_EVD_RMR_BIND_FLAG, 64,
					      DAT_UPCALL_DISABLE);
			c.a->ep = kd_ep(c.a, NULL);
			c.p->ep = kd_ep(c.p, NULL);
		}
		kd_connect_pair(c.a, c.p);
		bind_and_unbind(&c, rmr[i], buf);
	}
	KUNIT_EXPECT_TRUE(test, kd_wait_until(freed, buf->lmr, KD_TIMEOUT_MS));
}

/* A bind that the Endpoint refuses leaves the window as it was. */
static void L4_unbind_after_refused_bind(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_LMR_TRIPLET part = kd_seg(c.a->buf, 0, PART);
	DAT_EP_HANDLE idle = kd_ep(c.a, NULL);
	DAT_RMR_HANDLE rmr = make_rmr(&c);
	DAT_RMR_CONTEXT context = 0;

	unbind_ok(&c, rmr);
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_rmr_bind(rmr, c.a->buf->lmr, &part, REMOTE, 0, idle,
				   kd_cookie(1), 0, &context));
	unbind_ok(&c, rmr);
	KUNIT_EXPECT_EQ(test, (u32)kd_state(c.a), (u32)DAT_EP_STATE_CONNECTED);
}

#define REQUESTS	90
#define REBINDS		61

/*
 * A rebind is two requests to the device. With many of them, others must not
 * find its queue full: what does not fit is refused.
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
		rmr[i] = make_rmr(&c);
		bind_ok(&c, rmr[i], i % 15 * PART, REMOTE, DAT_VA_TYPE_VA);
	}
	for (i = 0; i < REQUESTS - REBINDS; i++)
		kd_recv(c.p, 0, 64, i);
	seg = kd_seg(c.a->buf, 0, 64);
	for (i = 0; i < REBINDS; i++)
		posted += bind(&c, rmr[i], (i + 1) % 15 * PART, PART, REMOTE,
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

static struct kunit_case mem_edge_cases[] = {
	KUNIT_CASE_PARAM(L4_unbind_after_refused_bind, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_rebinds_and_sends, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_read_to_local_write, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_read_to_rmr_size, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_rights_of_the_owner, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_bind_of_an_invalidated_lmr, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_flags, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_platform_without_memory, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_refused_changes_nothing, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_large_pages, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_free_after_suppressed, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_free_after_suppressed_elsewhere, kd_gen_ia),
	{}
};

static struct kunit_suite mem_edge_suite = {
	.name = "kdapl-mem-edge",
	.test_cases = mem_edge_cases,
};

kunit_test_suite(mem_edge_suite);

MODULE_DESCRIPTION("KUnit suite of kdapl.ko: memory, at the edges");
MODULE_LICENSE("Dual BSD/GPL");
