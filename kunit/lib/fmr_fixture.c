// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: LMRs for fast registration and pages to bind them to, see
 * fmr_fixture.h.
 */
#include <linux/module.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/string.h>
#include "fmr_fixture.h"

struct pages *fmr_make_pages(struct kunit *test)
{
	struct pages *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	u8 *va = kunit_kzalloc(test, 2 * FMR_LEN, GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_ASSERT_NOT_NULL(test, va);
	p->flat = kunit_kzalloc(test, FMR_LEN, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p->flat);
	for (i = 0; i < FMR_PAGES; i++) {
		p->va[i] = va + (2 * (FMR_PAGES - i) - 1) * PAGE_SIZE;
		p->phys[i] = virt_to_phys(p->va[i]);
	}
	return p;
}
EXPORT_SYMBOL_GPL(fmr_make_pages);

void fmr_fill(struct pages *p, u32 seed)
{
	int i;

	kd_fill(p->flat, FMR_LEN, seed);
	for (i = 0; i < FMR_PAGES; i++)
		memcpy(p->va[i], p->flat + i * PAGE_SIZE, PAGE_SIZE);
}
EXPORT_SYMBOL_GPL(fmr_fill);

bool fmr_is_filled(struct pages *p, u32 seed)
{
	int i;

	for (i = 0; i < FMR_PAGES; i++)
		memcpy(p->flat + i * PAGE_SIZE, p->va[i], PAGE_SIZE);
	return kd_is_filled(p->flat, FMR_LEN, seed);
}
EXPORT_SYMBOL_GPL(fmr_is_filled);

struct fmr fmr_make(struct mem_pair *c, DAT_LMR_SCOPE scope)
{
	struct fmr f = { };

	KD_ASSERT_OK(c->test, dat_lmr_allocate(c->a->ia, c->a->pz, FMR_PAGES, scope,
					       &f.lmr));
	return f;
}
EXPORT_SYMBOL_GPL(fmr_make);

DAT_RETURN fmr_bind_as(struct mem_pair *c, struct fmr *f, DAT_MEM_TYPE type,
		       DAT_REGION_DESCRIPTION desc, DAT_VLEN pages,
		       DAT_VA_TYPE va_type, u64 cookie)
{
	return dat_lmr_fmr(f->lmr, type, desc, pages, DAT_MEM_PRIV_ALL_FLAG,
			   va_type, c->a->ep, kd_cookie(cookie), 0, &f->context,
			   &f->rkey);
}
EXPORT_SYMBOL_GPL(fmr_bind_as);

/* Bind the LMR to all pages of @p, zero-based. */
DAT_RETURN fmr_bind(struct mem_pair *c, struct fmr *f, struct pages *p,
		    u64 cookie)
{
	DAT_REGION_DESCRIPTION desc = { .for_physical = p->phys };

	return fmr_bind_as(c, f, DAT_MEM_TYPE_PHYSICAL, desc, FMR_PAGES, DAT_VA_TYPE_ZB,
			   cookie);
}
EXPORT_SYMBOL_GPL(fmr_bind);

void fmr_expect_op(struct mem_pair *c, u64 cookie, DAT_DTOS op,
		   DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event;

	kd_expect_dto(c->test, c->a->req_evd, cookie, status, &event);
	KUNIT_EXPECT_EQ(c->test, (int)event.event_data.dto_completion_event_data
			.operation, (int)op);
}
EXPORT_SYMBOL_GPL(fmr_expect_op);

void fmr_bind_ok(struct mem_pair *c, struct fmr *f, struct pages *p)
{
	KD_ASSERT_OK(c->test, fmr_bind(c, f, p, 10));
	fmr_expect_op(c, 10, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS);
}
EXPORT_SYMBOL_GPL(fmr_bind_ok);

void fmr_unbind_ok(struct mem_pair *c, struct fmr *f)
{
	KD_ASSERT_OK(c->test, dat_lmr_invalidate(f->lmr, c->a->ep,
						 kd_cookie(11), 0));
	fmr_expect_op(c, 11, DAT_DTO_LMR_INVALIDATE, DAT_DTO_SUCCESS);
}
EXPORT_SYMBOL_GPL(fmr_unbind_ok);

bool fmr_is_bound(struct mem_pair *c, struct fmr *f)
{
	DAT_LMR_PARAM param;

	KD_EXPECT_OK(c->test, dat_lmr_query(f->lmr, DAT_LMR_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(c->test, (int)param.lmr_state.fmr_support, DAT_TRUE);
	if (param.lmr_state.bound) {
		KUNIT_EXPECT_EQ(c->test, param.lmr_context, f->context);
		KUNIT_EXPECT_EQ(c->test, param.rmr_context, f->rkey);
	}
	return param.lmr_state.bound;
}
EXPORT_SYMBOL_GPL(fmr_is_bound);

/*
 * Expect that the peer and the owner reach the pages that the LMR is bound to.
 */
void fmr_use(struct mem_pair *c, struct fmr *f, DAT_VADDR addr, struct pages *p)
{
	DAT_RMR_TRIPLET all = mem_remote(addr, FMR_LEN, f->rkey);
	DAT_LMR_TRIPLET seg = { addr, FMR_LEN, f->context };

	kd_fill(c->p->buf->va, FMR_LEN, 1);
	mem_write(c, all);
	KD_EXPECT_OK(c->test, dat_lmr_sync_rdma_write(c->a->ia, &seg, 1));
	KUNIT_EXPECT_TRUE(c->test, fmr_is_filled(p, 1));
	fmr_fill(p, 2);
	KD_EXPECT_OK(c->test, dat_lmr_sync_rdma_read(c->a->ia, &seg, 1));
	mem_read(c, all);
	KUNIT_EXPECT_TRUE(c->test, kd_is_filled(c->p->buf->va, FMR_LEN, 2));
	memset(c->p->buf->va, 0, FMR_LEN);
	kd_recv(c->p, 0, FMR_LEN, 1);
	KD_ASSERT_OK(c->test, dat_ep_post_send(c->a->ep, 1, &seg, kd_cookie(2),
					       0));
	kd_expect_dto(c->test, c->p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	fmr_expect_op(c, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_TRUE(c->test, kd_is_filled(c->p->buf->va, FMR_LEN, 2));
}
EXPORT_SYMBOL_GPL(fmr_use);

void fmr_expect_closed(struct mem_pair *c, struct fmr old)
{
	DAT_LMR_TRIPLET seg = { 0, 64, old.context };

	KD_EXPECT_RET(c->test, DAT_PRIVILEGES_VIOLATION,
		      dat_ep_post_send(c->a->ep, 1, &seg, kd_cookie(2), 0));
	mem_expect_refused(c, mem_remote(0, 64, old.rkey), true, "closed");
}
EXPORT_SYMBOL_GPL(fmr_expect_closed);

/* Beyond the cookies of messages. */
#define BOUND	1000

/* Bind @lmr, of a page, to the memory at @buf, for peers to write to; return its key. */
DAT_RMR_CONTEXT fmr_bind_remote(struct kd_side *s, DAT_LMR_HANDLE lmr, struct kd_buf *buf)
{
	DAT_REGION_DESCRIPTION region = { .for_va = buf->va };
	DAT_RMR_CONTEXT rmr_context;
	DAT_LMR_CONTEXT context;
	DAT_EVENT event;

	KD_ASSERT_OK(s->test,
		     dat_lmr_fmr(lmr, DAT_MEM_TYPE_VIRTUAL, region, 1,
				 DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
				 DAT_VA_TYPE_VA, s->ep, kd_cookie(BOUND),
				 DAT_COMPLETION_DEFAULT_FLAG, &context, &rmr_context));
	do
		KUNIT_ASSERT_TRUE(s->test, kd_wait_event(s->req_evd, &event, KD_TIMEOUT_MS));
	while (event.event_data.dto_completion_event_data.user_cookie.as_64 != BOUND);
	return rmr_context;
}
EXPORT_SYMBOL_GPL(fmr_bind_remote);
