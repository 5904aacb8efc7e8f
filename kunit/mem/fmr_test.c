// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast registration (contract L3): LMRs that requests bind to pages and unbind.
 */
#include <linux/module.h>
#include <linux/scatterlist.h>
#include "device.h"
#include "fmr_fixture.h"

/* ---- Life ----------------------------------------------------------------------- */

static void L3_fmr_life(struct kunit *test)
{
	struct pages *p = fmr_make_pages(test);
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ), old;

	KUNIT_EXPECT_FALSE(test, fmr_is_bound(&c, &f));
	fmr_bind_ok(&c, &f, p);
	KUNIT_EXPECT_TRUE(test, fmr_is_bound(&c, &f));
	fmr_use(&c, &f, 0, p);
	mem_expect_refused(&c, mem_remote(FMR_LEN, 1, f.rkey), true, "behind");
	old = f;
	fmr_unbind_ok(&c, &f);
	KUNIT_EXPECT_FALSE(test, fmr_is_bound(&c, &f));
	fmr_fill(p, 3);
	fmr_expect_closed(&c, old);
	KUNIT_EXPECT_TRUE(test, fmr_is_filled(p, 3));
	/* A second bind has other contexts. */
	fmr_bind_ok(&c, &f, p);
	KUNIT_EXPECT_NE(test, f.context, old.context);
	KUNIT_EXPECT_NE(test, f.rkey, old.rkey);
	fmr_use(&c, &f, 0, p);
	fmr_expect_closed(&c, old);
	/* An LMR can be freed while it is bound. */
	KD_EXPECT_OK(test, dat_lmr_free(f.lmr));
	fmr_expect_closed(&c, f);
}

/*
 * What a storage consumer posts: register, RDMA Read and invalidate, without
 * waiting in between.
 */
static void L3_fmr_pipeline(struct kunit *test)
{
	struct pages *p = fmr_make_pages(test);
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	DAT_RMR_TRIPLET from = kd_remote(c.p->buf, 0, FMR_LEN);
	DAT_LMR_TRIPLET to = { 0, FMR_LEN, 0 };
	int i;

	for (i = 0; i < 64; i++) {
		kd_fill(c.p->buf->va, FMR_LEN, i);
		KD_ASSERT_OK(test, fmr_bind(&c, &f, p, 3 * i));
		to.lmr_context = f.context;
		KD_ASSERT_OK(test,
			     dat_ep_post_rdma_read(c.a->ep, 1, &to,
						   kd_cookie(3 * i + 1), &from,
						   0));
		/*
		 * Without the fence the memory would be invalidated under the
		 * Read.
		 */
		KD_ASSERT_OK(test,
			     dat_lmr_invalidate(f.lmr, c.a->ep,
						kd_cookie(3 * i + 2),
						DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG));
		fmr_expect_op(&c, 3 * i, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS);
		fmr_expect_op(&c, 3 * i + 1, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS);
		fmr_expect_op(&c, 3 * i + 2, DAT_DTO_LMR_INVALIDATE,
			      DAT_DTO_SUCCESS);
		KUNIT_EXPECT_TRUE(test, fmr_is_filled(p, i));
	}
}

/* Bind more often than a key has values. */
static void L3_fmr_many_times(struct kunit *test)
{
	struct pages *p = fmr_make_pages(test);
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ), old = f;
	int i;

	for (i = 0; i < 600; i++) {
		fmr_bind_ok(&c, &f, p);
		KUNIT_EXPECT_NE(test, f.rkey, old.rkey);
		KUNIT_EXPECT_NE(test, f.context, old.context);
		if (i == 599)
			break;
		old = f;
		fmr_unbind_ok(&c, &f);
	}
	fmr_use(&c, &f, 0, p);
	fmr_expect_closed(&c, old);
}

static void L3_fmr_of_every_type(struct kunit *test)
{
	struct pages *p = fmr_make_pages(test);
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	struct scatterlist sg[FMR_PAGES];
	DAT_REGION_DESCRIPTION desc[5];
	DAT_MEM_TYPE type[5] = {
		DAT_MEM_TYPE_PHYSICAL, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES,
		DAT_MEM_TYPE_PLATFORM, DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_IA
	};
	struct ib_device *dev = kd_device(test, c.a->name);
	struct pages flat = *p;
	DAT_LMR_PARAM param;
	int i;

	sg_init_table(sg, FMR_PAGES);
	for (i = 0; i < FMR_PAGES; i++) {
		sg_set_buf(&sg[i], p->va[i], PAGE_SIZE);
		flat.va[i] = p->flat + i * PAGE_SIZE;
	}
	desc[0].for_physical = p->phys;
	desc[1].for_array.page_size = PAGE_SIZE;
	desc[1].for_array.pages = p->phys;
	desc[2].for_platform = sg;
	desc[3].for_va = p->flat;
	desc[4].for_ia = ib_dma_map_single(dev, p->flat, FMR_LEN,
					   DMA_BIDIRECTIONAL);
	KUNIT_ASSERT_FALSE(test, ib_dma_mapping_error(dev, desc[4].for_ia));
	flat.flat = kunit_kzalloc(test, FMR_LEN, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, flat.flat);
	for (i = 0; i < 10; i++) {
		KD_ASSERT_OK(test, fmr_bind_as(&c, &f, type[i / 2], desc[i / 2],
					       FMR_PAGES, i % 2 ? DAT_VA_TYPE_ZB :
					       DAT_VA_TYPE_VA, 10));
		fmr_expect_op(&c, 10, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS);
		KD_ASSERT_OK(test, dat_lmr_query(f.lmr, DAT_LMR_FIELD_ALL,
						 &param));
		KUNIT_EXPECT_EQ(test, (int)param.mem_type, (int)type[i / 2]);
		KUNIT_EXPECT_EQ(test, param.registered_size, FMR_LEN);
		/* What the case has mapped, a copy perhaps, is not kDAPL's to hand over. */
		if (type[i / 2] != DAT_MEM_TYPE_IA || !kd_needs_syncs(c.a))
			fmr_use(&c, &f, param.registered_address, i < 6 ? p : &flat);
		fmr_unbind_ok(&c, &f);
	}
	ib_dma_unmap_single(dev, desc[4].for_ia, FMR_LEN, DMA_BIDIRECTIONAL);
	desc[0].for_lmr_handle = c.a->buf->lmr;
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      fmr_bind_as(&c, &f, DAT_MEM_TYPE_LMR, desc[0], 1, 0, 1));
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      fmr_bind_as(&c, &f, DAT_MEM_TYPE_BYPASS, desc[0], 1, 0, 1));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      fmr_bind_as(&c, &f, 0x200, desc[0], 1, 0, 1));
}

/* ---- States --------------------------------------------------------------------- */

struct retry {
	struct mem_pair *c;
	struct fmr *f;
	struct pages *p;
	DAT_RETURN ret;
};

static bool bound_at_last(void *data)
{
	struct retry *r = data;

	r->ret = fmr_bind(r->c, r->f, r->p, 10);
	return DAT_GET_TYPE(r->ret) != DAT_INSUFFICIENT_RESOURCES;
}

static void L3_fmr_states(struct kunit *test)
{
	struct pages *p = fmr_make_pages(test);
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	struct retry retry = { &c, &f, p };

	KUNIT_EXPECT_EQ(test, dat_lmr_invalidate(f.lmr, c.a->ep, kd_cookie(1),
						 0),
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_LMR_FREE));
	fmr_bind_ok(&c, &f, p);
	KUNIT_EXPECT_EQ(test, fmr_bind(&c, &f, p, 1),
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_LMR_IN_USE));
	fmr_use(&c, &f, 0, p);
	/*
	 * The outcome of a flushed bind is unknown, so the old contexts must be
	 * invalid.
	 */
	kd_disconnect(c.p, c.a);
	KD_EXPECT_OK(test, dat_lmr_invalidate(f.lmr, c.a->ep, kd_cookie(5), 0));
	fmr_expect_op(&c, 5, DAT_DTO_LMR_INVALIDATE, DAT_DTO_ERR_FLUSHED);
	KUNIT_EXPECT_FALSE(test, fmr_is_bound(&c, &f));
	KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
	/* Until the MR is replaced binding fails for that reason. */
	KUNIT_EXPECT_TRUE(test, kd_wait_until(bound_at_last, &retry,
					      KD_TIMEOUT_MS));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, retry.ret);
	KUNIT_EXPECT_FALSE(test, fmr_is_bound(&c, &f));
}

/* The MR is replaced in the background after a request was flushed. */
static void L3_fmr_after_a_flush(struct kunit *test)
{
	struct pages *p = fmr_make_pages(test);
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ), old;
	struct retry retry = { &c, &f, p };

	fmr_bind_ok(&c, &f, p);
	old = f;
	kd_disconnect(c.p, c.a);
	KD_EXPECT_OK(test, dat_lmr_invalidate(f.lmr, c.a->ep, kd_cookie(5), 0));
	fmr_expect_op(&c, 5, DAT_DTO_LMR_INVALIDATE, DAT_DTO_ERR_FLUSHED);
	mem_reconnect(&c);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(bound_at_last, &retry,
					      KD_TIMEOUT_MS));
	KD_ASSERT_OK(test, retry.ret);
	fmr_expect_op(&c, 10, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS);
	fmr_use(&c, &f, 0, p);
	fmr_expect_closed(&c, old);
}

/*
 * struct scopes - two connections of a Protection Zone and an FMR of each scope
 * @p: pages to bind
 * @c: the connection whose IA has the FMRs
 * @second: another Endpoint of that side
 * @other: the connection of that
 * @pz: FMR of scope PZ
 * @ep: FMR of scope EP
 */
struct scopes {
	struct pages *p;
	struct mem_pair c;
	struct kd_side second;
	struct mem_pair other;
	struct fmr pz;
	struct fmr ep;
};

static void make_scopes(struct kunit *test, struct scopes *s)
{
	s->p = fmr_make_pages(test);
	s->c = mem_make_pair(test, NULL);
	s->other = mem_second_pair(&s->c, &s->second);
	s->pz = fmr_make(&s->c, DAT_LMR_SCOPE_PZ);
	s->ep = fmr_make(&s->c, DAT_LMR_SCOPE_EP);
}

/*
 * A bind that has completed outlives its connection: on another one the contexts
 * are good, and the invalidation is a real one. Of scope EP it is the same, but
 * that nobody else may use it.
 */
static void L3_fmr_outlives_its_connection(struct kunit *test)
{
	DAT_LMR_TRIPLET seg = { 0, 64, 0 };
	struct scopes s;

	make_scopes(test, &s);
	fmr_bind_ok(&s.c, &s.pz, s.p);
	fmr_bind_ok(&s.c, &s.ep, s.p);
	kd_disconnect(s.c.p, s.c.a);
	KUNIT_EXPECT_TRUE(test, fmr_is_bound(&s.c, &s.pz));
	KUNIT_EXPECT_TRUE(test, fmr_is_bound(&s.c, &s.ep));
	fmr_use(&s.other, &s.pz, 0, s.p);
	fmr_unbind_ok(&s.other, &s.pz);
	fmr_bind_ok(&s.other, &s.pz, s.p);
	fmr_use(&s.other, &s.pz, 0, s.p);

	seg.lmr_context = s.ep.context;
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      dat_ep_post_send(s.second.ep, 1, &seg, kd_cookie(1), 0));
	mem_reconnect(&s.c);
	fmr_use(&s.c, &s.ep, 0, s.p);
	kd_disconnect(s.c.p, s.c.a);
	fmr_unbind_ok(&s.other, &s.ep);
}

/* ---- Scope and arguments ---------------------------------------------------------- */

static void L3_fmr_scope(struct kunit *test)
{
	DAT_LMR_TRIPLET seg = { 0, 64, 0 };
	struct scopes s;

	make_scopes(test, &s);
	fmr_bind_ok(&s.c, &s.pz, s.p);
	fmr_use(&s.other, &s.pz, 0, s.p);
	fmr_unbind_ok(&s.other, &s.pz);

	fmr_bind_ok(&s.c, &s.ep, s.p);
	fmr_use(&s.c, &s.ep, 0, s.p);
	seg.lmr_context = s.ep.context;
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      dat_ep_post_send(s.second.ep, 1, &seg, kd_cookie(1), 0));
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      dat_ep_post_recv(s.second.ep, 1, &seg, kd_cookie(1), 0));
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      dat_lmr_invalidate(s.ep.lmr, s.second.ep, kd_cookie(1), 0));
	fmr_unbind_ok(&s.c, &s.ep);
	fmr_bind_ok(&s.other, &s.ep, s.p);
	fmr_use(&s.other, &s.ep, 0, s.p);
}

/* A call that is refused does not make the binding another Endpoint's. */
static void L3_fmr_refused_elsewhere(struct kunit *test)
{
	DAT_EP_HANDLE idle;
	struct scopes s;

	make_scopes(test, &s);
	idle = kd_ep(s.c.a, NULL);
	fmr_bind_ok(&s.c, &s.ep, s.p);
	kd_disconnect(s.c.p, s.c.a);
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_lmr_invalidate(s.ep.lmr, idle, kd_cookie(1), 0));
	mem_reconnect(&s.c);
	fmr_use(&s.c, &s.ep, 0, s.p);
	fmr_unbind_ok(&s.c, &s.ep);
	KD_EXPECT_OK(test, dat_ep_free(idle));
}

static void L3_allocate_arguments(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_IA_ATTR *ia = kunit_kzalloc(test, sizeof(*ia), GFP_KERNEL);
	DAT_PROVIDER_ATTR prov;
	DAT_LMR_HANDLE lmr;

	KUNIT_ASSERT_NOT_NULL(test, ia);
	KD_ASSERT_OK(test, dat_ia_query(c.a->ia, NULL, DAT_IA_FIELD_ALL, ia,
					DAT_PROVIDER_FIELD_ALL, &prov));
	KUNIT_EXPECT_EQ(test, (int)prov.fmr_supported, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)prov.lmr_for_fmr_scope_supported,
			DAT_LMR_SCOPE_ANY);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_allocate(c.a->ia, c.a->pz, 0, 0, &lmr));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_allocate(c.a->ia, c.a->pz, -1, 0, &lmr));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_allocate(c.a->ia, c.a->pz,
				       ia->max_lmr_block_size / PAGE_SIZE + 2,
				       0, &lmr));
	KD_EXPECT_OK(test,
		     dat_lmr_allocate(c.a->ia, c.a->pz,
				      ia->max_lmr_block_size / PAGE_SIZE, 0,
				      &lmr));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_allocate(c.a->ia, c.a->pz, 1, 3, &lmr));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_allocate(c.a->ia, c.a->pz, 1, 0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_lmr_allocate(c.a->ia, c.p->pz, 1, 0, &lmr));
	fmr_make(&c, DAT_LMR_SCOPE_ANY);
}

static void L3_fmr_arguments(struct kunit *test)
{
	struct pages *p = fmr_make_pages(test);
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ), other = f;
	DAT_REGION_DESCRIPTION desc = { .for_physical = p->phys };
	DAT_MEM_TYPE type = DAT_MEM_TYPE_PHYSICAL;
	DAT_CONTEXT cookie = kd_cookie(1);
	DAT_PZ_HANDLE pz;

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      fmr_bind_as(&c, &f, type, desc, 0, 0, 1));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      fmr_bind_as(&c, &f, type, desc, FMR_PAGES + 1, 0, 1));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      fmr_bind_as(&c, &f, type, desc, 1, 2, 1));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_fmr(f.lmr, type, desc, 1, 0x100, 0, c.a->ep,
				  cookie, 0, &f.context, &f.rkey));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_fmr(f.lmr, type, desc, 1, 0x33, 0, c.a->ep,
				  cookie, 0x100, &f.context, &f.rkey));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_fmr(f.lmr, type, desc, 1, 0x33, 0, c.a->ep,
				  cookie, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG,
				  &f.context, &f.rkey));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_fmr(f.lmr, type, desc, 1, 0x33, 0, c.a->ep,
				  cookie, 0, NULL, &f.rkey));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_fmr(f.lmr, type, desc, 1, 0x33, 0, c.a->ep,
				  cookie, 0, &f.context, NULL));
	desc.for_va = p->flat + 64;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      fmr_bind_as(&c, &f, DAT_MEM_TYPE_VIRTUAL, desc, 1, 0, 1));
	p->phys[1] += 64;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, fmr_bind(&c, &f, p, 1));
	p->phys[1] -= 64;
	other.lmr = c.a->buf->lmr;
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED, fmr_bind(&c, &other, p, 1));
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      dat_lmr_invalidate(other.lmr, c.a->ep, cookie, 0));
	KD_ASSERT_OK(test, dat_ia_reserved_lmr(c.a->ia, &other.lmr,
					       &other.context));
	KD_EXPECT_RET(test, DAT_RESERVED_LMR, fmr_bind(&c, &other, p, 1));
	KD_ASSERT_OK(test, dat_pz_create(c.a->ia, &pz));
	KD_ASSERT_OK(test, dat_lmr_allocate(c.a->ia, pz, FMR_PAGES, 1, &other.lmr));
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION, fmr_bind(&c, &other, p, 1));
	other.lmr = (DAT_LMR_HANDLE)c.a->pz;
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, fmr_bind(&c, &other, p, 1));
	/* The refused calls have not changed the LMR. */
	KUNIT_EXPECT_FALSE(test, fmr_is_bound(&c, &f));
	fmr_bind_ok(&c, &f, p);
	fmr_use(&c, &f, 0, p);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_invalidate(f.lmr, c.a->ep, cookie, 0x100));
	fmr_use(&c, &f, 0, p);
}

/* An Endpoint without a PZ can use no LMR, not even the reserved one. */
static void L1_no_pz(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_EP);
	struct pages *p = fmr_make_pages(test);
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_LMR_TRIPLET seg;
	DAT_EP_HANDLE ep;

	KD_ASSERT_OK(test, dat_ep_create(c.a->ia, NULL, c.a->recv_evd,
					 c.a->req_evd, c.a->conn_evd, &attr,
					 &ep));
	seg = kd_seg(c.a->buf, 0, 64);
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      dat_ep_post_recv(ep, 1, &seg, kd_cookie(1), 0));
	KD_ASSERT_OK(test, dat_ia_reserved_lmr(c.a->ia, &f.lmr,
					       &seg.lmr_context));
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      dat_ep_post_recv(ep, 1, &seg, kd_cookie(1), 0));
	f = fmr_make(&c, DAT_LMR_SCOPE_EP);
	fmr_bind_ok(&c, &f, p);
	seg = (DAT_LMR_TRIPLET) { 0, 64, f.context };
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      dat_ep_post_recv(ep, 1, &seg, kd_cookie(1), 0));
}

static struct kunit_case fmr_cases[] = {
	KUNIT_CASE_PARAM(L3_fmr_life, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_pipeline, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_many_times, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_of_every_type, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_states, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_after_a_flush, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_outlives_its_connection, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_scope, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_refused_elsewhere, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_allocate_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_fmr_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(L1_no_pz, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-fmr", fmr_cases, "fast registration");
