// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast registration (contract L3): binds that are refused change nothing, and an
 * LMR can be freed after binds and unbinds whose completions are suppressed.
 */
#include <linux/io.h>
#include <linux/module.h>
#include "rmr_fixture.h"

#define ARG(n)	DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)

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
	/* A wrong state of the Endpoint is noticed last. */
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

/* ---- Ends without an event ------------------------------------------------------ */

static bool freed(void *lmr)
{
	return dat_lmr_free(lmr) == DAT_SUCCESS;
}

static void bind_and_unbind(struct mem_pair *c, DAT_RMR_HANDLE rmr,
			    struct kd_buf *buf)
{
	DAT_LMR_TRIPLET part = kd_seg(buf, 0, RMR_PART);
	DAT_RMR_CONTEXT context;

	KD_ASSERT_OK(c->test, dat_rmr_bind(rmr, buf->lmr, &part, RMR_REMOTE, 0,
					   c->a->ep, kd_cookie(1),
					   DAT_COMPLETION_SUPPRESS_FLAG,
					   &context));
	part.segment_length = 0;
	KD_ASSERT_OK(c->test, dat_rmr_bind(rmr, NULL, &part, 0, 0, c->a->ep,
					   kd_cookie(1),
					   DAT_COMPLETION_SUPPRESS_FLAG, NULL));
}

/* The EVD has no upcall and is not polled, so dat_lmr_free() has to poll it. */
static void L3_free_after_suppressed(struct kunit *test)
{
	struct kd_opts opts = { .polled = true };
	struct kd_pair pair = kd_make_pair(test, &opts);
	struct mem_pair c = { test, pair.a, pair.p };
	struct kd_buf *buf = kd_buf_alloc(c.a, RMR_PART);
	u8 *mem = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	DAT_LMR_HANDLE lmr = make_fmr(&c);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
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

/*
 * Several RMRs of one LMR, each unbound through an Endpoint with an EVD of its
 * own.
 */
static void L3_free_after_suppressed_elsewhere(struct kunit *test)
{
	struct kd_opts opts = { .polled = true };
	struct kd_pair pair = kd_make_pair(test, &opts);
	struct mem_pair c = { test, pair.a, pair.p };
	struct kd_buf *buf = kd_buf_alloc(c.a, RMR_PART);
	DAT_RMR_HANDLE rmr[3];
	int i;

	for (i = 0; i < ARRAY_SIZE(rmr); i++)
		rmr[i] = rmr_make(&c);
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

static struct kunit_case fmr_bind_cases[] = {
	KUNIT_CASE_PARAM(L3_fmr_refused_changes_nothing, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_large_pages, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_free_after_suppressed, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_free_after_suppressed_elsewhere, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-fmr-bind", fmr_bind_cases, "binding for fast registration");
