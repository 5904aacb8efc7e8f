/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * LMRs for fast registration and pages to bind them to.
 */
#ifndef KDAPL_KUNIT_FMR_FIXTURE_H
#define KDAPL_KUNIT_FMR_FIXTURE_H

#include "mem_fixture.h"

#define FMR_PAGES	4
#define FMR_LEN	(FMR_PAGES * PAGE_SIZE)

/* Pages that do not adjoin, in the order in which they are bound. */
struct pages {
	u8 *va[FMR_PAGES];
	DAT_PADDR phys[FMR_PAGES];
	u8 *flat;			/* FMR_LEN bytes in one piece */
};

/* An LMR and the contexts of its last bind. */
struct fmr {
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT rkey;
};

struct pages *fmr_make_pages(struct kunit *test);
void fmr_fill(struct pages *p, u32 seed);
bool fmr_is_filled(struct pages *p, u32 seed);
struct fmr fmr_make(struct mem_pair *c, DAT_LMR_SCOPE scope);
DAT_RETURN fmr_bind_as(struct mem_pair *c, struct fmr *f, DAT_MEM_TYPE type,
		       DAT_REGION_DESCRIPTION desc, DAT_VLEN pages,
		       DAT_VA_TYPE va_type, u64 cookie);
DAT_RETURN fmr_bind(struct mem_pair *c, struct fmr *f, struct pages *p,
		    u64 cookie);
void fmr_expect_op(struct mem_pair *c, u64 cookie, DAT_DTOS op,
		   DAT_DTO_COMPLETION_STATUS status);
void fmr_bind_ok(struct mem_pair *c, struct fmr *f, struct pages *p);
void fmr_unbind_ok(struct mem_pair *c, struct fmr *f);
bool fmr_is_bound(struct mem_pair *c, struct fmr *f);
void fmr_use(struct mem_pair *c, struct fmr *f, DAT_VADDR addr, struct pages *p);
void fmr_expect_closed(struct mem_pair *c, struct fmr old);
DAT_RMR_CONTEXT fmr_bind_remote(struct kd_side *s, DAT_LMR_HANDLE lmr, struct kd_buf *buf);

#endif /* KDAPL_KUNIT_FMR_FIXTURE_H */
