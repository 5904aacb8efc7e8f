// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory runs out (contract I4, S2, M2): the first, second, ... allocation of a
 * call fails until the call succeeds. Every failure is a DAT error, and kmemleak
 * and the close of the IA tell whether it left something behind.
 *
 * Needs the fault injection of the debug kernel. It fails allocations of this
 * thread only; what workers allocate meanwhile is not tested.
 */
#include <linux/module.h>
#include <linux/sched.h>
#include "fixture.h"

#define MOST_ALLOCATIONS 400

struct fctx {
	struct kd_side *s;
	DAT_EP_ATTR attr;
	DAT_SRQ_HANDLE srq;
};

/* @mr: the call allocates an MR */
struct fault_case {
	const char *desc;
	u32 (*call)(struct fctx *c, void **out);
	u32 (*undo)(struct fctx *c, void *h);
	bool mr;
};

static DAT_RETURN open_ia(struct fctx *c, DAT_HANDLE *out)
{
	DAT_EVD_HANDLE async_evd = NULL;

	return dat_ia_open((DAT_NAME_PTR)c->s->name, 8, &async_evd,
			   (DAT_IA_HANDLE *)out);
}

static DAT_RETURN close_ia(struct fctx *c, DAT_HANDLE h)
{
	return dat_ia_close(h, DAT_CLOSE_GRACEFUL_FLAG);
}

static DAT_RETURN create_pz(struct fctx *c, DAT_HANDLE *out)
{
	return dat_pz_create(c->s->ia, (DAT_PZ_HANDLE *)out);
}

static DAT_RETURN free_pz(struct fctx *c, DAT_HANDLE h)
{
	return dat_pz_free(h);
}

static DAT_RETURN create_evd(struct fctx *c, DAT_HANDLE *out)
{
	return dat_evd_kcreate(c->s->ia, 16, DAT_UPCALL_DISABLE, NULL,
			       DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG,
			       (DAT_EVD_HANDLE *)out);
}

static DAT_RETURN free_evd(struct fctx *c, DAT_HANDLE h)
{
	return dat_evd_free(h);
}

static DAT_RETURN create_ep(struct fctx *c, DAT_HANDLE *out)
{
	struct kd_side *s = c->s;

	return dat_ep_create(s->ia, s->pz, s->recv_evd, s->req_evd,
			     s->conn_evd, &c->attr, (DAT_EP_HANDLE *)out);
}

static DAT_RETURN create_srq_ep(struct fctx *c, DAT_HANDLE *out)
{
	struct kd_side *s = c->s;

	return dat_ep_create_with_srq(s->ia, s->pz, s->recv_evd, s->req_evd,
				      s->conn_evd, c->srq, &c->attr,
				      (DAT_EP_HANDLE *)out);
}

static DAT_RETURN free_ep(struct fctx *c, DAT_HANDLE h)
{
	return dat_ep_free(h);
}

static DAT_RETURN create_srq(struct fctx *c, DAT_HANDLE *out)
{
	DAT_SRQ_ATTR attr = { 64, 2, DAT_SRQ_LW_DEFAULT };

	return dat_srq_create(c->s->ia, c->s->pz, &attr, (DAT_SRQ_HANDLE *)out);
}

static DAT_RETURN free_srq(struct fctx *c, DAT_HANDLE h)
{
	return dat_srq_free(h);
}

static DAT_RETURN resize_srq(struct fctx *c, DAT_HANDLE *out)
{
	return dat_srq_resize(c->srq, 64);
}

static DAT_RETURN shrink_srq(struct fctx *c, DAT_HANDLE h)
{
	return dat_srq_resize(c->srq, 16);
}

static DAT_RETURN create_lmr(struct fctx *c, DAT_HANDLE *out)
{
	DAT_REGION_DESCRIPTION region = { .for_va = c->s->buf->va };
	DAT_LMR_CONTEXT lc;
	DAT_RMR_CONTEXT rc;

	return dat_lmr_kcreate(c->s->ia, DAT_MEM_TYPE_VIRTUAL, region, 8192,
			       c->s->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE,
			       (DAT_LMR_HANDLE *)out, &lc, &rc, NULL, NULL);
}

static DAT_RETURN allocate_lmr(struct fctx *c, DAT_HANDLE *out)
{
	return dat_lmr_allocate(c->s->ia, c->s->pz, 16, DAT_LMR_SCOPE_PZ,
				(DAT_LMR_HANDLE *)out);
}

static DAT_RETURN free_lmr(struct fctx *c, DAT_HANDLE h)
{
	return dat_lmr_free(h);
}

static DAT_RETURN create_rmr(struct fctx *c, DAT_HANDLE *out)
{
	return dat_rmr_create(c->s->pz, (DAT_RMR_HANDLE *)out);
}

static DAT_RETURN free_rmr(struct fctx *c, DAT_HANDLE h)
{
	return dat_rmr_free(h);
}

static DAT_RETURN modify_ep(struct fctx *c, DAT_HANDLE *out)
{
	DAT_EP_PARAM param = {};

	param.ep_attr.max_recv_dtos = 200;
	param.ep_attr.max_request_dtos = 200;
	return dat_ep_modify(c->s->ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
			     DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param);
}

static DAT_RETURN shrink_ep(struct fctx *c, DAT_HANDLE h)
{
	DAT_EP_PARAM param = {};

	param.ep_attr.max_recv_dtos = 8;
	return dat_ep_modify(c->s->ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
			     &param);
}

static const struct fault_case fault_cases[] = {
	{ "ia_open", open_ia, close_ia },
	{ "pz_create", create_pz, free_pz },
	{ "evd_kcreate", create_evd, free_evd },
	{ "ep_create", create_ep, free_ep },
	{ "srq_create", create_srq, free_srq },
	{ "ep_create_with_srq", create_srq_ep, free_ep },
	{ "srq_resize", resize_srq, shrink_srq },
	{ "lmr_kcreate", create_lmr, free_lmr, true },
	{ "lmr_allocate", allocate_lmr, free_lmr, true },
	{ "rmr_create", create_rmr, free_rmr, true },
	{ "ep_modify", modify_ep, shrink_ep },
};

/* The @nth allocation of this thread from here on fails. */
static void fail_nth(unsigned int nth)
{
#ifdef CONFIG_FAULT_INJECTION
	current->fail_nth = nth;
#endif
}

/* Did that allocation come? */
static bool failed(void)
{
#ifdef CONFIG_FAULT_INJECTION
	return !READ_ONCE(current->fail_nth);
#else
	return false;
#endif
}

static void make_fail(struct kunit *test, struct fctx *c,
		      const struct fault_case *f)
{
	unsigned int nth, errors = 0;
	DAT_HANDLE out;
	DAT_RETURN ret;
	bool did_fail;

	for (nth = 1; nth < MOST_ALLOCATIONS; nth++) {
		out = NULL;
		fail_nth(nth);
		ret = f->call(c, &out);
		did_fail = failed();
		fail_nth(0);
		if (ret == DAT_SUCCESS) {
			/* Some allocations have a fallback. */
			KD_EXPECT_OK(test, f->undo(c, out));
			if (!did_fail)
				break;
			continue;
		}
		errors++;
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret),
				    (u32)DAT_INSUFFICIENT_RESOURCES,
				    "%s, allocation %u: %s", f->desc, nth,
				    kd_strerror(ret));
	}
	KUNIT_EXPECT_LT_MSG(test, nth, MOST_ALLOCATIONS, "%s", f->desc);
	KUNIT_EXPECT_GT_MSG(test, errors, 0, "%s", f->desc);
}

static void I4_allocations_fail(struct kunit *test)
{
	const struct fault_case *f;
	struct fctx c = { .attr = kd_ep_attr() };

	if (!IS_ENABLED(CONFIG_FAULT_INJECTION))
		kunit_skip(test, "no fault injection in this kernel");
	c.s = kd_open_param(test);
	kd_setup(c.s, NULL);
	c.srq = kd_srq(c.s, 16);
	for (f = fault_cases; f < fault_cases + ARRAY_SIZE(fault_cases); f++)
		/* siw_alloc_mr() leaks what it has if it fails half way. */
		if (!f->mr || !kd_is_iwarp(c.s))
			make_fail(test, &c, f);
}

static struct kunit_case fault_test_cases[] = {
	KUNIT_CASE_PARAM(I4_allocations_fail, kd_gen_ia),
	{}
};

static struct kunit_suite fault_suite = {
	.name = "kdapl-fault",
	.test_cases = fault_test_cases,
};

kunit_test_suite(fault_suite);

MODULE_DESCRIPTION("KUnit suite of kdapl.ko: memory runs out");
MODULE_LICENSE("Dual BSD/GPL");
