// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Remote Memory Regions (contract L4, L5): binding, rebinding and unbinding;
 * what the peer can access through them, and what the device refuses.
 */
#include <linux/module.h>
#include <linux/sizes.h>
#include "rmr_fixture.h"

/*
 * Expect that the peer can write to and read from an RMR at @off of the buffer.
 */
static void use(struct mem_pair *c, size_t off, DAT_RMR_TRIPLET remote, u32 seed)
{
	u8 *va = c->a->buf->va + off;

	kd_fill(c->p->buf->va, RMR_PART, seed);
	mem_write(c, remote);
	KUNIT_EXPECT_TRUE(c->test, kd_is_filled(va, RMR_PART, seed));
	kd_fill(va, RMR_PART, seed + 1);
	mem_read(c, remote);
	KUNIT_EXPECT_TRUE(c->test, kd_is_filled(c->p->buf->va, RMR_PART, seed + 1));
}

static void L4_bind(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;

	context = rmr_bind_ok(&c, rmr, RMR_PART + 100, RMR_REMOTE, DAT_VA_TYPE_VA);
	use(&c, RMR_PART + 100, rmr_shown(&c, RMR_PART + 100, RMR_PART, context), 1);
	mem_expect_refused(&c, rmr_shown(&c, RMR_PART + 99, 1, context), true, "before");
	mem_expect_refused(&c, rmr_shown(&c, 2 * RMR_PART + 100, 1, context), true,
			   "behind");
	mem_expect_refused(&c, rmr_shown(&c, RMR_PART + 100, RMR_PART + 1, context), false,
			   "too long");
	/* The RMR does not depend on the connection on which it was bound. */
	use(&c, RMR_PART + 100, rmr_shown(&c, RMR_PART + 100, RMR_PART, context), 3);
}

static void L4_bind_zero_based(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;

	context = rmr_bind_ok(&c, rmr, RMR_PART, RMR_REMOTE, DAT_VA_TYPE_ZB);
	use(&c, RMR_PART, mem_remote(0, RMR_PART, context), 1);
	mem_expect_refused(&c, mem_remote(RMR_PART, 1, context), true, "behind");
	mem_expect_refused(&c, rmr_shown(&c, RMR_PART, 64, context), true,
			   "not zero-based");
	/*
	 * A zero-based RMR must start at the start of a page, see
	 * L3_zero_based_remotely.
	 */
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      rmr_bind(&c, rmr, RMR_PART + 100, RMR_PART, RMR_REMOTE, DAT_VA_TYPE_ZB,
			       &context));
}

static void L4_rebind_revokes(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT first, second, third;

	first = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	use(&c, 0, rmr_shown(&c, 0, RMR_PART, first), 1);
	second = rmr_bind_ok(&c, rmr, RMR_PART, RMR_REMOTE, DAT_VA_TYPE_VA);
	KUNIT_EXPECT_NE(test, second, first);
	use(&c, RMR_PART, rmr_shown(&c, RMR_PART, RMR_PART, second), 3);
	mem_expect_refused(&c, rmr_shown(&c, 0, 64, first), true, "stale");
	third = rmr_bind_ok(&c, rmr, 2 * RMR_PART, RMR_REMOTE, DAT_VA_TYPE_VA);
	use(&c, 2 * RMR_PART, rmr_shown(&c, 2 * RMR_PART, RMR_PART, third), 5);
	mem_expect_refused(&c, rmr_shown(&c, 0, 64, first), false, "older");
	mem_expect_refused(&c, rmr_shown(&c, RMR_PART, 64, second), false, "old");
	/* The last RMR does not give access to the memory of the first one. */
	mem_expect_refused(&c, rmr_shown(&c, 0, 64, third), true, "elsewhere");
	use(&c, 2 * RMR_PART, rmr_shown(&c, 2 * RMR_PART, RMR_PART, third), 7);
}

/* After a rebind to the same memory the old context is refused. */
static void L4_rebind_many_times(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context, old = 0;
	int i;

	/* Rebind more often than a key has values. */
	for (i = 0; i < 600; i++) {
		context = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
		KUNIT_EXPECT_NE(test, context, old);
		if (i < 599)
			old = context;
	}
	use(&c, 0, rmr_shown(&c, 0, RMR_PART, context), 1);
	mem_expect_refused(&c, rmr_shown(&c, 0, 64, old), true, "stale");
}

static void L4_unbind_revokes(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context, again;

	context = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	rmr_unbind_ok(&c, rmr);
	kd_fill(c.a->buf->va, RMR_PART, 9);
	mem_expect_refused(&c, rmr_shown(&c, 0, 64, context), true, "unbound");
	KUNIT_EXPECT_TRUE(test, kd_is_filled(c.a->buf->va, RMR_PART, 9));
	again = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	KUNIT_EXPECT_NE(test, again, context);
	use(&c, 0, rmr_shown(&c, 0, RMR_PART, again), 1);
}

static void L4_free_revokes(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;

	context = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	KD_ASSERT_OK(test, dat_rmr_free(rmr));
	mem_expect_refused(&c, rmr_shown(&c, 0, 64, context), true, "freed");
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_rmr_free(rmr));
}

/* Bind, rebind and unbind take one place each in the request queue. */
static void L4_one_request_each(struct kunit *test)
{
	DAT_RMR_HANDLE rmr[4];
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_RMR_CONTEXT context, old[4];
	struct mem_pair c;
	int i, round;

	attr.max_request_dtos = 4;
	c = mem_make_pair(test, &attr);
	for (i = 0; i < 4; i++)
		rmr[i] = rmr_make(&c);
	for (round = 0; round < 4; round++) {
		for (i = 0; i < 4; i++) {
			KD_ASSERT_OK(test, rmr_bind(&c, rmr[i], i * RMR_PART, RMR_PART,
						    RMR_REMOTE, DAT_VA_TYPE_VA,
						    &context));
			if (round < 3)
				old[i] = context;
		}
		KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
			      rmr_bind(&c, rmr[0], 0, RMR_PART, RMR_REMOTE, DAT_VA_TYPE_VA,
				       &context));
		for (i = 0; i < 4; i++)
			rmr_expect_bound(&c, rmr[i], DAT_DTO_SUCCESS);
	}
	for (i = 0; i < 4; i++)
		KD_ASSERT_OK(test, rmr_bind(&c, rmr[i], 0, 0, 0, DAT_VA_TYPE_VA,
					    &context));
	for (i = 0; i < 4; i++)
		rmr_expect_bound(&c, rmr[i], DAT_DTO_SUCCESS);
	kd_expect_no_event(test, c.a->req_evd);
	mem_expect_refused(&c, rmr_shown(&c, 0, 64, old[0]), true, "stale");
}

static void L4_rights(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_LMR_TRIPLET part;
	DAT_RMR_CONTEXT context;
	struct kd_buf *ro;

	context = rmr_bind_ok(&c, rmr, 0, DAT_MEM_PRIV_REMOTE_READ_FLAG,
			      DAT_VA_TYPE_VA);
	mem_read(&c, rmr_shown(&c, 0, 64, context));
	mem_expect_refused(&c, rmr_shown(&c, 0, 64, context), true, "write");
	context = rmr_bind_ok(&c, rmr, 0, DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
			      DAT_VA_TYPE_VA);
	mem_write(&c, rmr_shown(&c, 0, 64, context));
	if (!kd_has(c.a, KD_ANY_READ))
		mem_expect_refused(&c, rmr_shown(&c, 0, 64, context), false,
				   "read");

	/* The LMR must have the local rights that the RMR gives to the peer. */
	ro = kd_buf_alloc_priv(c.a, RMR_PART, false, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	part = kd_seg(ro, 0, 64);
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      dat_rmr_bind(rmr, ro->lmr, &part,
				   DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 0, c.a->ep,
				   kd_cookie(1), 0, &context));
	/* The LMR need not have remote rights. */
	KD_EXPECT_OK(test, dat_rmr_bind(rmr, ro->lmr, &part,
					DAT_MEM_PRIV_REMOTE_READ_FLAG, 0,
					c.a->ep, kd_cookie(RMR_COOKIE), 0,
					&context));
	rmr_expect_bound(&c, rmr, DAT_DTO_SUCCESS);
	kd_fill(ro->va, RMR_PART, 3);
	mem_read(&c, mem_remote((uintptr_t)ro->va, 64, context));
	KUNIT_EXPECT_TRUE(test, kd_is_filled(c.p->buf->va, 64, 3));
}

/* Bind an RMR to a part of two pages of vmalloc memory. */
static void L4_bind_vmalloc(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct kd_buf *v = kd_buf_valloc(c.a, KD_BUF_LEN);
	DAT_LMR_TRIPLET part = kd_seg(v, RMR_PART - 10, 20);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;

	KD_ASSERT_OK(test, dat_rmr_bind(rmr, v->lmr, &part, RMR_REMOTE, 0, c.a->ep,
					kd_cookie(RMR_COOKIE), 0, &context));
	rmr_expect_bound(&c, rmr, DAT_DTO_SUCCESS);
	kd_fill(c.p->buf->va, 20, 1);
	mem_write(&c, mem_remote((uintptr_t)v->va + RMR_PART - 10, 20, context));
	KUNIT_EXPECT_TRUE(test, kd_is_filled(v->va + RMR_PART - 10, 20, 1));
	mem_expect_refused(&c, mem_remote((uintptr_t)v->va + RMR_PART - 10, 21,
					  context), true, "behind");
}

/* ---- Order and lifetime --------------------------------------------------------- */

/* A message posted after the bind may tell its context to the peer. */
static void L4_bind_fences_later_requests(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;
	size_t off;
	int i;

	for (i = 0; i < 50; i++) {
		off = i % RMR_PARTS * RMR_PART;
		KD_ASSERT_OK(test, rmr_bind(&c, rmr, off, RMR_PART, RMR_REMOTE,
					    DAT_VA_TYPE_VA, &context));
		kd_recv(c.p, KD_BUF_LEN - 64, 64, 1);
		kd_send(c.a, KD_BUF_LEN - 64, 64, 2);
		kd_expect_dto(test, c.p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
		kd_fill(c.p->buf->va, RMR_PART, i);
		mem_write(&c, rmr_shown(&c, off, RMR_PART, context));
		KUNIT_EXPECT_TRUE(test, kd_is_filled(c.a->buf->va + off, RMR_PART, i));
		rmr_expect_bound(&c, rmr, DAT_DTO_SUCCESS);
		kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	}
}

static void L4_suppressed_completions(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_LMR_TRIPLET part = kd_seg(c.a->buf, 0, RMR_PART);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context = 0;
	int i;

	for (i = 0; i < 40; i++) {
		KD_ASSERT_OK(test, dat_rmr_bind(rmr, c.a->buf->lmr, &part,
						RMR_REMOTE, 0, c.a->ep,
						kd_cookie(1),
						DAT_COMPLETION_SUPPRESS_FLAG,
						&context));
		kd_recv(c.p, 0, 64, 1);
		kd_send(c.a, 0, 64, 2);
		kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, c.p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	}
	use(&c, 0, rmr_shown(&c, 0, RMR_PART, context), 1);
}

static void L4_lmr_in_use(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct kd_buf *buf = kd_buf_alloc(c.a, RMR_PART);
	DAT_LMR_TRIPLET part = kd_seg(buf, 0, RMR_PART);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;

	KD_ASSERT_OK(test, dat_rmr_bind(rmr, buf->lmr, &part, RMR_REMOTE, 0,
					c.a->ep, kd_cookie(RMR_COOKIE), 0,
					&context));
	rmr_expect_bound(&c, rmr, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, dat_lmr_free(buf->lmr),
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_LMR_IN_USE));
	KUNIT_EXPECT_EQ(test, dat_pz_free(c.a->pz),
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_PZ_IN_USE));
	rmr_unbind_ok(&c, rmr);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	/* Rebinding and freeing the RMR release the LMR as well. */
	buf = kd_buf_alloc(c.a, RMR_PART);
	part = kd_seg(buf, 0, RMR_PART);
	KD_ASSERT_OK(test, dat_rmr_bind(rmr, buf->lmr, &part, RMR_REMOTE, 0,
					c.a->ep, kd_cookie(RMR_COOKIE), 0,
					&context));
	rmr_expect_bound(&c, rmr, DAT_DTO_SUCCESS);
	rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	KD_EXPECT_OK(test, dat_rmr_free(rmr));
	KD_EXPECT_OK(test, dat_lmr_free(c.a->buf->lmr));
}

static void L4_bind_in_other_states(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;

	kd_disconnect(c.p, c.a);
	KD_EXPECT_OK(test, rmr_bind(&c, rmr, 0, RMR_PART, RMR_REMOTE, 0, &context));
	rmr_expect_bound(&c, rmr, DAT_DTO_ERR_FLUSHED);
	KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      rmr_bind(&c, rmr, 0, RMR_PART, RMR_REMOTE, 0, &context));
	mem_reconnect(&c);
	context = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	use(&c, 0, rmr_shown(&c, 0, RMR_PART, context), 1);
}

/* ---- Scope, arguments, query ------------------------------------------------------ */

static void L4_scope(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct kd_side second;
	struct mem_pair other = mem_second_pair(&c, &second);
	DAT_RMR_PARAM param;
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr, mine;

	/* An RMR of the PZ may be bound through any Endpoint of the PZ. */
	rmr = rmr_make(&c);
	KD_EXPECT_OK(test, dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.rmr_scope, DAT_RMR_SCOPE_PZ);
	rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	context = rmr_bind_ok(&other, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	use(&c, 0, rmr_shown(&c, 0, RMR_PART, context), 1);
	use(&other, 0, rmr_shown(&c, 0, RMR_PART, context), 3);

	KD_ASSERT_OK(test, dat_rmr_create_for_ep(c.a->pz, &mine));
	KD_EXPECT_OK(test, dat_rmr_query(mine, DAT_RMR_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.rmr_scope, DAT_RMR_SCOPE_EP);
	context = rmr_bind_ok(&c, mine, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	use(&c, 0, rmr_shown(&c, 0, RMR_PART, context), 5);
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      rmr_bind(&other, mine, 0, RMR_PART, RMR_REMOTE, 0, &context));
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      rmr_bind(&other, mine, 0, 0, 0, 0, &context));
	rmr_bind_ok(&c, mine, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	/* An RMR that is not bound belongs to no Endpoint. */
	rmr_unbind_ok(&c, mine);
	context = rmr_bind_ok(&other, mine, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	use(&other, 0, rmr_shown(&c, 0, RMR_PART, context), 7);
}

static void L4_another_pz(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_PZ_HANDLE pz;

	KD_ASSERT_OK(test, dat_pz_create(c.a->ia, &pz));
	KD_ASSERT_OK(test, dat_rmr_create(pz, &rmr));
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      rmr_bind(&c, rmr, 0, RMR_PART, RMR_REMOTE, 0, &context));
	KUNIT_EXPECT_EQ(test, dat_pz_free(pz),
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_PZ_IN_USE));
	KD_EXPECT_OK(test, dat_rmr_free(rmr));
	KD_EXPECT_OK(test, dat_pz_free(pz));
}

static void rmr_arguments(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_LMR_TRIPLET part = kd_seg(c.a->buf, 0, 64), bad;
	DAT_LMR_HANDLE lmr = c.a->buf->lmr, reserved;
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_CONTEXT cookie = kd_cookie(1);
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT context;

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rmr_create(c.a->pz, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_rmr_bind(rmr, NULL, &part, RMR_REMOTE, 0, c.a->ep, cookie,
				   0, &context));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_rmr_bind(rmr, lmr, &part, RMR_REMOTE, 0, NULL, cookie, 0,
				   &context));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rmr_bind(rmr, lmr, NULL, RMR_REMOTE, 0, c.a->ep, cookie,
				   0, &context));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rmr_bind(rmr, lmr, &part, 0x100, 0, c.a->ep, cookie,
				   0, &context));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rmr_bind(rmr, lmr, &part, RMR_REMOTE, 2, c.a->ep, cookie,
				   0, &context));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rmr_bind(rmr, lmr, &part, RMR_REMOTE, 0, c.a->ep, cookie,
				   DAT_COMPLETION_UNSIGNALLED_FLAG, &context));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rmr_bind(rmr, lmr, &part, RMR_REMOTE, 0, c.a->ep, cookie,
				   0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      rmr_bind(&c, rmr, 1, KD_BUF_LEN, RMR_REMOTE, 0, &context));
	bad = part;
	bad.lmr_context ^= 1 << 25;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rmr_bind(rmr, lmr, &bad, RMR_REMOTE, 0, c.a->ep, cookie,
				   0, &context));
	KD_ASSERT_OK(test, dat_ia_reserved_lmr(c.a->ia, &reserved,
					       &lmr_context));
	bad.lmr_context = lmr_context;
	KD_EXPECT_RET(test, DAT_RESERVED_LMR,
		      dat_rmr_bind(rmr, reserved, &bad, RMR_REMOTE, 0, c.a->ep,
				   cookie, 0, &context));
	kd_expect_no_event(test, c.a->req_evd);
	rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
}

static void rmr_query(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;
	DAT_RMR_PARAM param;

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rmr_query(rmr, DAT_RMR_FIELD_ALL + 1, &param));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, NULL));
	context = rmr_bind_ok(&c, rmr, RMR_PART, RMR_REMOTE, DAT_VA_TYPE_ZB);
	memset(&param, 0xff, sizeof(param));
	KD_EXPECT_OK(test, dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, c.a->ia);
	KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, c.a->pz);
	KUNIT_EXPECT_EQ(test, param.lmr_triplet.virtual_address,
			(uintptr_t)c.a->buf->va + RMR_PART);
	KUNIT_EXPECT_EQ(test, param.lmr_triplet.segment_length, RMR_PART);
	KUNIT_EXPECT_EQ(test, param.lmr_triplet.lmr_context,
			c.a->buf->lmr_context);
	KUNIT_EXPECT_EQ(test, (int)param.mem_priv, (int)RMR_REMOTE);
	KUNIT_EXPECT_EQ(test, param.rmr_context, context);
	KUNIT_EXPECT_EQ(test, (int)param.va_type, DAT_VA_TYPE_ZB);
	rmr_unbind_ok(&c, rmr);
	KD_EXPECT_OK(test, dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.lmr_triplet.segment_length, 0);
}

/* ---- RDMA Read into an RMR -------------------------------------------------------- */

static void L5_read_to_rmr(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_TRIPLET from = kd_remote(c.p->buf, 0, RMR_PART), to;
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_VA_TYPE va_type;
	DAT_EVENT event;

	for (va_type = DAT_VA_TYPE_VA; va_type <= DAT_VA_TYPE_ZB; va_type++) {
		to = rmr_shown(&c, RMR_PART, RMR_PART, 0);
		if (va_type == DAT_VA_TYPE_ZB)
			to.virtual_address = 0;
		to.rmr_context = rmr_bind_ok(&c, rmr, RMR_PART, RMR_REMOTE, va_type);
		kd_fill(c.p->buf->va, RMR_PART, 1 + va_type);
		KD_ASSERT_OK(test, dat_ep_post_rdma_read_to_rmr(c.a->ep, &to,
								kd_cookie(5),
								&from, 0));
		kd_expect_dto(test, c.a->req_evd, 5, DAT_DTO_SUCCESS, &event);
		KUNIT_EXPECT_EQ(test, (int)event.event_data
				.dto_completion_event_data.operation,
				(int)DAT_DTO_RDMA_READ);
		KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data
				.transfered_length, RMR_PART);
		KUNIT_EXPECT_TRUE(test, kd_is_filled(c.a->buf->va + RMR_PART, RMR_PART,
						     1 + va_type));
	}
}

static void L5_read_to_rmr_refused(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT old, context;
	DAT_RMR_TRIPLET from = kd_remote(c.p->buf, 0, 64), to;

	old = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	context = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      rmr_read_to(&c, rmr_shown(&c, 0, 64, old), 64));
	KD_EXPECT_RET(test, DAT_LENGTH_ERROR,
		      rmr_read_to(&c, rmr_shown(&c, 0, 64, context), 65));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      rmr_read_to(&c, rmr_shown(&c, RMR_PART - 63, 64, context), 64));
	to = rmr_shown(&c, 0, 64, context);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_rdma_read_to_rmr(c.a->ep, NULL, kd_cookie(1),
						   &from, 0));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_rdma_read_to_rmr(c.a->ep, &to, kd_cookie(1),
						   NULL, 0));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_rdma_read_to_rmr(c.a->ep, &to, kd_cookie(1),
						   &from, 0x100));
	from.segment_length = SZ_2M + 1;
	to.segment_length = SZ_2M + 1;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_rdma_read_to_rmr(c.a->ep, &to, kd_cookie(1),
						   &from, 0));
	context = rmr_bind_ok(&c, rmr, 0, DAT_MEM_PRIV_REMOTE_READ_FLAG,
			      DAT_VA_TYPE_VA);
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      rmr_read_to(&c, rmr_shown(&c, 0, 64, context), 64));
	rmr_unbind_ok(&c, rmr);
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      rmr_read_to(&c, rmr_shown(&c, 0, 64, context), 64));
	KUNIT_EXPECT_EQ(test, (int)kd_state(c.a), (int)DAT_EP_STATE_CONNECTED);

	context = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	from.segment_length = 64;
	to = rmr_shown(&c, 0, 64, context);
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_ep_post_rdma_read_to_rmr(kd_ep(c.a, NULL), &to,
						   kd_cookie(1), &from, 0));
	KD_ASSERT_OK(test, dat_pz_create(c.a->ia, &c.a->pz));
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      dat_ep_post_rdma_read_to_rmr(kd_ep(c.a, NULL), &to,
						   kd_cookie(1), &from, 0));
}

static struct kunit_case rmr_cases[] = {
	KUNIT_CASE_PARAM(L4_bind, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_bind_zero_based, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_rebind_revokes, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_rebind_many_times, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_unbind_revokes, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_free_revokes, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_one_request_each, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_rights, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_bind_vmalloc, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_bind_fences_later_requests, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_suppressed_completions, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_lmr_in_use, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_bind_in_other_states, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_scope, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_another_pz, kd_gen_ia),
	KUNIT_CASE_PARAM(rmr_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(rmr_query, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_read_to_rmr, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_read_to_rmr_refused, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-rmr", rmr_cases, "Remote Memory Regions");
