// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page lists of MRs: they may have as many pages as the device allows, so dat_lmr_fmr()
 * and dat_rmr_bind() make them with interrupts on (contract R8).
 */
#include <linux/irqflags.h>
#include <linux/module.h>
#include "device.h"
#include "fmr_fixture.h"
#include "rmr_fixture.h"

/*
 * @made: page lists made since list_hook()
 * @off: those made with interrupts off
 * @refuse: let the driver refuse them
 */
static struct {
	struct kd_hook device;
	unsigned int made;
	unsigned int off;
	bool refuse;
} list;

static int list_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents,
			  unsigned int *offset)
{
	list.made++;
	if (irqs_disabled())
		list.off++;
	return list.refuse ? -EINVAL :
	       list.device.real.map_mr_sg(mr, sg, nents, offset);
}

static void list_hook(struct mem_pair *c)
{
	list.made = 0;
	list.off = 0;
	list.refuse = false;
	kd_hook(c->test, c->a->name, &list.device)->ops.map_mr_sg = list_map_mr_sg;
}

/* One page list was made since list_hook(), with interrupts on. */
static void list_expect(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, list.made, 1);
	KUNIT_EXPECT_EQ(test, list.off, 0);
	list.made = 0;
}

static void R8_list_of_a_binding(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct pages *p = fmr_make_pages(test);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);

	list_hook(&c);
	fmr_bind_ok(&c, &f, p);
	list_expect(test);
	fmr_use(&c, &f, 0, p);
	fmr_unbind_ok(&c, &f);
	KUNIT_EXPECT_EQ(test, list.made, 0);
	KD_EXPECT_OK(test, dat_lmr_free(f.lmr));
}

/* A list that the driver refuses leaves the LMR as it was, and nothing mapped. */
static void R8_list_is_refused(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct pages *p = fmr_make_pages(test);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;

	list_hook(&c);
	list.refuse = true;
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, fmr_bind(&c, &f, p, 1));
	KUNIT_EXPECT_FALSE(test, fmr_is_bound(&c, &f));
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      rmr_bind(&c, rmr, 0, RMR_PART, RMR_REMOTE, DAT_VA_TYPE_VA,
			       &context));
	list.refuse = false;
	fmr_bind_ok(&c, &f, p);
	fmr_use(&c, &f, 0, p);
	fmr_unbind_ok(&c, &f);
	rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	rmr_unbind_ok(&c, rmr);
	KD_EXPECT_OK(test, dat_rmr_free(rmr));
	KD_EXPECT_OK(test, dat_lmr_free(f.lmr));
}

static void R8_list_of_an_rmr(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);

	list_hook(&c);
	rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	list_expect(test);
	rmr_unbind_ok(&c, rmr);
	KUNIT_EXPECT_EQ(test, list.made, 0);
	KD_EXPECT_OK(test, dat_rmr_free(rmr));
}

static struct kunit_case page_list_cases[] = {
	KUNIT_CASE_PARAM(R8_list_of_a_binding, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_list_is_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_list_of_an_rmr, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-page-list", page_list_cases, "page lists of MRs");
