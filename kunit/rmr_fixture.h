/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RMRs over parts of the owner's buffer.
 */
#ifndef KDAPL_KUNIT_RMR_FIXTURE_H
#define KDAPL_KUNIT_RMR_FIXTURE_H

#include "mem_fixture.h"

#define REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
#define PART	SZ_4K			/* bytes that are shown */
#define COOKIE	77

static inline DAT_RMR_HANDLE make_rmr(struct mem_pair *c)
{
	DAT_RMR_HANDLE rmr = NULL;

	KD_ASSERT_OK(c->test, dat_rmr_create(c->a->pz, &rmr));
	return rmr;
}

/* Show @len bytes from @off on of a's buffer. */
static inline DAT_RETURN bind(struct mem_pair *c, DAT_RMR_HANDLE rmr, size_t off,
			      size_t len, DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
		       DAT_RMR_CONTEXT *context)
{
	DAT_LMR_TRIPLET part = kd_seg(c->a->buf, off, len);

	return dat_rmr_bind(rmr, c->a->buf->lmr, &part, priv, va_type,
			    c->a->ep, kd_cookie(COOKIE), 0, context);
}

static inline void expect_bound(struct mem_pair *c, DAT_RMR_HANDLE rmr,
				DAT_DTO_COMPLETION_STATUS status)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *data;
	DAT_EVENT event;

	kd_expect_event(c->test, c->a->req_evd, DAT_RMR_BIND_COMPLETION_EVENT,
			&event);
	data = &event.event_data.rmr_completion_event_data;
	KUNIT_EXPECT_PTR_EQ(c->test, data->rmr_handle, rmr);
	KUNIT_EXPECT_EQ(c->test, data->user_cookie.as_64, COOKIE);
	KUNIT_EXPECT_EQ(c->test, (int)data->status, (int)status);
}

static inline DAT_RMR_CONTEXT bind_ok(struct mem_pair *c, DAT_RMR_HANDLE rmr,
				      size_t off, DAT_MEM_PRIV_FLAGS priv,
			       DAT_VA_TYPE va_type)
{
	DAT_RMR_CONTEXT context = 0;

	KD_ASSERT_OK(c->test, bind(c, rmr, off, PART, priv, va_type, &context));
	expect_bound(c, rmr, DAT_DTO_SUCCESS);
	return context;
}

static inline void unbind_ok(struct mem_pair *c, DAT_RMR_HANDLE rmr)
{
	DAT_RMR_CONTEXT context;

	KD_ASSERT_OK(c->test, bind(c, rmr, 0, 0, 0, DAT_VA_TYPE_VA, &context));
	expect_bound(c, rmr, DAT_DTO_SUCCESS);
}

static inline DAT_RMR_TRIPLET shown(struct mem_pair *c, size_t off, size_t len,
				    DAT_RMR_CONTEXT context)
{
	return mem_remote((uintptr_t)c->a->buf->va + off, len, context);
}

/* Fetch from the peer into what the RMR shows. */
static inline DAT_RETURN read_to(struct mem_pair *c, DAT_RMR_TRIPLET to,
				 size_t len)
{
	DAT_RMR_TRIPLET from = kd_remote(c->p->buf, 0, len);

	return dat_ep_post_rdma_read_to_rmr(c->a->ep, &to, kd_cookie(5), &from,
					    0);
}

#endif /* KDAPL_KUNIT_RMR_FIXTURE_H */
