// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An LMR is bound anew between two lines of a call that names its former context (contracts
 * L1, C5). Binding takes a while, so it is done by hand as far as the other call sees it.
 */
#include <linux/module.h>
#include "ep.h"
#include "hca.h"
#include "ia.h"
#include "fmr_fixture.h"
#include "inside.h"
#include "probe.h"

#define PART	64

static void bind_as_before(struct kdapl_lmr *lmr)
{
	WRITE_ONCE(lmr->context, lmr->context - (1U << KDAPL_INDEX_BITS));
}

/*
 * A segment in pages that do not adjoin, with another behind it, siw is given with the key of
 * all memory: the piece of another binding is none that the consumer has named.
 */
static void L1_bound_anew_within_a_gather(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	struct pages *p = fmr_make_pages(test);
	struct kdapl_lmr *lmr = kd_inside(f.lmr, DAT_HANDLE_TYPE_LMR);
	DAT_LMR_TRIPLET seg[2];
	DAT_RETURN ret;

	if (!kdapl_has_quirk(lmr->obj.ia->hca, KDAPL_QUIRK_GATHER))
		kunit_skip(test, "the device takes lists of pages in each segment");
	fmr_bind_ok(&c, &f, p);
	seg[0] = (DAT_LMR_TRIPLET) { 0, PART, f.context };
	seg[1] = kd_seg(c.a->buf, 0, PART);
	kd_at_lock(test, KD_TAKING, "&lmr->lock", 1, kd_bind_anew, lmr);
	ret = dat_ep_post_send(c.a->ep, 2, seg, kd_cookie(2), 0);
	KUNIT_EXPECT_EQ(test, kd_left_lock(), 1);
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION, ret);
	bind_as_before(lmr);
	fmr_use(&c, &f, 0, p);
}

/* struct early - a context that is used before the request that binds it is posted */
struct early {
	DAT_EP_HANDLE ep;
	DAT_LMR_TRIPLET seg;
	DAT_RETURN ret;
};

static void use_early(void *data)
{
	struct early *e = data;

	e->ret = dat_ep_post_recv(e->ep, 1, &e->seg, kd_cookie(5), 0);
}

/*
 * A binding whose request is refused gives its context back, so nobody may have found it
 * valid: a call that has seen the context before would take the one for the other.
 */
static void L1_valid_once_it_is_posted(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	struct pages *p = fmr_make_pages(test);
	struct early e = { .ep = c.a->ep, .seg.segment_length = PART };
	DAT_RETURN ret;

	fmr_bind_ok(&c, &f, p);
	fmr_unbind_ok(&c, &f);
	e.seg.lmr_context = f.context + (1U << KDAPL_INDEX_BITS);
	kd_at_lock(test, KD_TAKING, "&ep->sq.lock", 1, use_early, &e);
	ret = fmr_bind(&c, &f, p, 10);
	KUNIT_EXPECT_EQ(test, kd_left_lock(), 1);
	KD_ASSERT_OK(test, ret);
	fmr_expect_op(&c, 10, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, f.context, e.seg.lmr_context);
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION, e.ret);
	fmr_use(&c, &f, 0, p);
}

static void peer_invalidates(void *data)
{
	struct kdapl_lmr *lmr = data;

	lmr->obj.ops->invalidated(&lmr->obj, lmr->rmr_context);
}

/*
 * The peer invalidates an LMR within dat_lmr_invalidate(), which is refused then: that the
 * binding has ended is not forgotten.
 */
static void L3_invalidated_within_a_refused_call(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	struct pages *p = fmr_make_pages(test);
	DAT_EP_HANDLE idle = kd_ep(c.a, NULL);
	DAT_RETURN ret;

	fmr_bind_ok(&c, &f, p);
	kd_at_lock(test, KD_TAKING, "&ep->sq.lock", 1, peer_invalidates,
		   kd_inside(f.lmr, DAT_HANDLE_TYPE_LMR));
	ret = dat_lmr_invalidate(f.lmr, idle, kd_cookie(1), 0);
	KUNIT_EXPECT_EQ(test, kd_left_lock(), 1);
	KD_EXPECT_RET(test, DAT_INVALID_STATE, ret);
	KUNIT_EXPECT_FALSE(test, fmr_is_bound(&c, &f));
	KD_EXPECT_OK(test, dat_ep_free(idle));
	KD_EXPECT_OK(test, dat_lmr_free(f.lmr));
}

static struct kunit_case fmr_window_cases[] = {
	KUNIT_CASE_PARAM(L1_bound_anew_within_a_gather, kd_gen_ia),
	KUNIT_CASE_PARAM(L1_valid_once_it_is_posted, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_invalidated_within_a_refused_call, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-fmr-window", fmr_window_cases, "bindings that change within a call");
KDAPL_IMPORT_TEST;
