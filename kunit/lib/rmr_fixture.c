// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: RMRs over parts of the owner's buffer, see rmr_fixture.h.
 */
#include <linux/module.h>
#include "rmr_fixture.h"

DAT_RMR_HANDLE rmr_make(struct mem_pair *c)
{
	DAT_RMR_HANDLE rmr = NULL;

	KD_ASSERT_OK(c->test, dat_rmr_create(c->a->pz, &rmr));
	return rmr;
}
EXPORT_SYMBOL_GPL(rmr_make);

/* Bind @rmr to @len bytes of the owner's buffer, from @off on. */
DAT_RETURN rmr_bind(struct mem_pair *c, DAT_RMR_HANDLE rmr, size_t off,
		    size_t len, DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
		    DAT_RMR_CONTEXT *context)
{
	DAT_LMR_TRIPLET part = kd_seg(c->a->buf, off, len);

	return dat_rmr_bind(rmr, c->a->buf->lmr, &part, priv, va_type,
			    c->a->ep, kd_cookie(RMR_COOKIE), 0, context);
}
EXPORT_SYMBOL_GPL(rmr_bind);

void rmr_expect_bound(struct mem_pair *c, DAT_RMR_HANDLE rmr,
		      DAT_DTO_COMPLETION_STATUS status)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *data;
	DAT_EVENT event;

	kd_expect_event(c->test, c->a->req_evd, DAT_RMR_BIND_COMPLETION_EVENT,
			&event);
	data = &event.event_data.rmr_completion_event_data;
	KUNIT_EXPECT_PTR_EQ(c->test, data->rmr_handle, rmr);
	KUNIT_EXPECT_EQ(c->test, data->user_cookie.as_64, RMR_COOKIE);
	KUNIT_EXPECT_EQ(c->test, (int)data->status, (int)status);
}
EXPORT_SYMBOL_GPL(rmr_expect_bound);

DAT_RMR_CONTEXT rmr_bind_ok(struct mem_pair *c, DAT_RMR_HANDLE rmr, size_t off,
			    DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type)
{
	DAT_RMR_CONTEXT context = 0;

	KD_ASSERT_OK(c->test, rmr_bind(c, rmr, off, RMR_PART, priv, va_type, &context));
	rmr_expect_bound(c, rmr, DAT_DTO_SUCCESS);
	return context;
}
EXPORT_SYMBOL_GPL(rmr_bind_ok);

void rmr_unbind_ok(struct mem_pair *c, DAT_RMR_HANDLE rmr)
{
	DAT_RMR_CONTEXT context;

	KD_ASSERT_OK(c->test, rmr_bind(c, rmr, 0, 0, 0, DAT_VA_TYPE_VA, &context));
	rmr_expect_bound(c, rmr, DAT_DTO_SUCCESS);
}
EXPORT_SYMBOL_GPL(rmr_unbind_ok);

DAT_RMR_TRIPLET rmr_shown(struct mem_pair *c, size_t off, size_t len,
			  DAT_RMR_CONTEXT context)
{
	return mem_remote((uintptr_t)c->a->buf->va + off, len, context);
}
EXPORT_SYMBOL_GPL(rmr_shown);

/* Post an RDMA Read of the peer's buffer into @to, which an RMR is bound to. */
DAT_RETURN rmr_read_to(struct mem_pair *c, DAT_RMR_TRIPLET to, size_t len)
{
	DAT_RMR_TRIPLET from = kd_remote(c->p->buf, 0, len);

	return dat_ep_post_rdma_read_to_rmr(c->a->ep, &to, kd_cookie(5), &from,
					    0);
}
EXPORT_SYMBOL_GPL(rmr_read_to);
