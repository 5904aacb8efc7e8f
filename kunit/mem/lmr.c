// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Local Memory Regions (contract L1 to L3): every type of memory, used by its
 * owner and by the peer; arguments that are refused; query, synchronising, the
 * reserved LMR.
 */
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>
#include "regions.h"

/* ---- Every type ---------------------------------------------------------------- */

/* Call @check for a region of each kind. The peer's buffer is filled with 9. */
static void check_every_type(struct kunit *test, void (*check)(struct mem_pair *c,
							       struct region *r, int kind))
{
	struct region *r[KINDS];
	struct mem_pair c;
	int kind;

	region_make_all(test, r, OFFSET);
	c = mem_make_pair(test, NULL);
	kd_fill(c.p->buf->va, KD_BUF_LEN, 9);
	for (kind = 0; kind < KINDS; kind++) {
		region_register_origin(c.a, r[kind]);
		check(&c, r[kind], kind);
	}
}

static void check_locally(struct mem_pair *c, struct region *r, int kind)
{
	struct kunit *test = c->test;
	struct made m;

	KD_ASSERT_OK(test, region_register(c->a, r, LOCAL, DAT_VA_TYPE_VA,
					   DAT_MEM_OPTIMIZE_EXACT_EXPOSURE, &m));
	KUNIT_EXPECT_EQ(test, m.rkey, 0);
	KUNIT_EXPECT_EQ(test, m.len, r->len);
	region_use_locally(c, r, &m);
	KD_EXPECT_OK(test, dat_lmr_free(m.lmr));

	KD_ASSERT_OK(test, region_register(c->a, r, LOCAL, DAT_VA_TYPE_ZB,
					   DAT_MEM_OPTIMIZE_DONT_CARE, &m));
	KUNIT_EXPECT_EQ(test, m.addr, 0);
	region_use_locally(c, r, &m);
	KD_EXPECT_OK(test, dat_lmr_free(m.lmr));
}

static void L3_every_type_locally(struct kunit *test)
{
	check_every_type(test, check_locally);
}

static void check_remotely(struct mem_pair *c, struct region *r, int kind)
{
	struct made m;

	KD_ASSERT_OK(c->test, region_register(c->a, r, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
					      DAT_MEM_OPTIMIZE_DONT_CARE, &m));
	KUNIT_EXPECT_NE(c->test, m.rkey, 0);
	region_use_locally(c, r, &m);
	region_use_remotely(c, r, &m);
	KD_EXPECT_OK(c->test, dat_lmr_free(m.lmr));
}

static void L3_every_type_remotely(struct kunit *test)
{
	check_every_type(test, check_remotely);
}

/* A zero-based region for the peer must start at the start of a page. */
static void L3_zero_based_remotely(struct kunit *test)
{
	struct region *aligned[KINDS], *inside[KINDS];
	struct mem_pair c;
	DAT_RETURN ret;
	struct made m;
	int kind;

	region_make_all(test, aligned, 0);
	region_make_all(test, inside, OFFSET);
	c = mem_make_pair(test, NULL);
	for (kind = 0; kind < KINDS; kind++) {
		region_register_origin(c.a, aligned[kind]);
		region_register_origin(c.a, inside[kind]);
		KD_ASSERT_OK(test, region_register(c.a, aligned[kind],
						   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB,
						   DAT_MEM_OPTIMIZE_DONT_CARE, &m));
		KUNIT_EXPECT_EQ(test, m.addr, 0);
		region_use_locally(&c, aligned[kind], &m);
		region_use_remotely(&c, aligned[kind], &m);
		if (kind == PAGES || kind == VAR_PAGES)
			continue;
		region_map(c.a, inside[kind]);
		/* A copy of it may begin with a page. */
		if (kind == DMA && PAGE_ALIGNED(inside[kind]->desc.for_ia))
			continue;
		ret = region_register(c.a, inside[kind], DAT_MEM_PRIV_ALL_FLAG,
				      DAT_VA_TYPE_ZB, DAT_MEM_OPTIMIZE_DONT_CARE, &m);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret),
				    (u32)DAT_MODEL_NOT_SUPPORTED, "%s",
				    region_kind_names[kind]);
	}
}

/* ---- What is not exposed ------------------------------------------------------ */

static void check_range(struct mem_pair *c, struct region *r, int kind)
{
	const char *what = region_kind_names[kind];
	struct made m;

	KD_ASSERT_OK(c->test, region_register(c->a, r, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
					      DAT_MEM_OPTIMIZE_EXACT_EXPOSURE, &m));
	region_fill(r, 5);
	mem_expect_refused(c, mem_remote(m.addr, m.len + 1, m.rkey), true, what);
	mem_expect_refused(c, mem_remote(m.addr - 1, 1, m.rkey), true, what);
	mem_expect_refused(c, mem_remote(m.addr + m.len, 1, m.rkey), false, what);
	/* The first packets of a long message may have been written. */
	region_fill(r, 5);
	region_use_remotely(c, r, &m);
}

static void L2_not_beyond_the_range(struct kunit *test)
{
	check_every_type(test, check_range);
}

static void L2_not_beyond_the_rights(struct kunit *test)
{
	struct region *r = region_make(test, KMALLOC, OFFSET);
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_TRIPLET all;
	struct made m;

	KD_ASSERT_OK(test, region_register(c.a, r, LOCAL | DAT_MEM_PRIV_REMOTE_READ_FLAG,
					   DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &m));
	all = mem_remote(m.addr, m.len, m.rkey);
	region_fill(r, 6);
	region_hand_over(&c, &m, false);
	mem_read(&c, all);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(c.p->buf->va, r->len, 6));
	memset(c.p->buf->va, 0, KD_BUF_LEN);
	mem_expect_refused(&c, all, true, "write, may be read");
	KUNIT_EXPECT_TRUE(test, region_is_filled(r, 6));

	KD_ASSERT_OK(test, region_register(c.a, r, LOCAL | DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
					   DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &m));
	all = mem_remote(m.addr, m.len, m.rkey);
	kd_fill(c.p->buf->va, r->len, 7);
	mem_write(&c, all);
	region_hand_over(&c, &m, true);
	KUNIT_EXPECT_TRUE(test, region_is_filled(r, 7));
	/* A device that has the trait has an attribute that says so: query_test.c. */
	memset(c.p->buf->va, 0, KD_BUF_LEN);
	if (!kd_has(c.a, KD_ANY_READ)) {
		mem_expect_refused(&c, all, false, "read, may be written");
	} else {
		mem_read(&c, all);
		KUNIT_EXPECT_TRUE(test, kd_is_filled(c.p->buf->va, r->len, 7));
	}
}

static void L2_not_after_free(struct kunit *test)
{
	struct region *r = region_make(test, KMALLOC, OFFSET);
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_LMR_TRIPLET seg;
	struct made m;

	KD_ASSERT_OK(test, region_register(c.a, r, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
					   DAT_MEM_OPTIMIZE_DONT_CARE, &m));
	region_use_remotely(&c, r, &m);
	KD_ASSERT_OK(test, dat_lmr_free(m.lmr));
	region_fill(r, 8);
	mem_expect_refused(&c, mem_remote(m.addr, m.len, m.rkey), true,
			   "freed");
	KUNIT_EXPECT_TRUE(test, region_is_filled(r, 8));
	seg = region_seg(&m);
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(1), 0));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_lmr_free(m.lmr));
}

/* ---- Arguments ------------------------------------------------------------------ */

static void L3_mem_optimization(struct kunit *test)
{
	static const DAT_MEM_OPTIMIZE_FLAGS opts[] = {
		DAT_MEM_OPTIMIZE_DONT_CARE, DAT_MEM_OPTIMIZE_IA,
		DAT_MEM_OPTIMIZE_MIN_EXPOSURE, DAT_MEM_OPTIMIZE_EXACT_EXPOSURE
	};
	struct region *r = region_make(test, KMALLOC, OFFSET);
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_VADDR start = (uintptr_t)r->chunk[0].va;
	struct made m;
	int i;

	for (i = 0; i < ARRAY_SIZE(opts); i++) {
		KD_ASSERT_OK(test, region_register(c.a, r, DAT_MEM_PRIV_ALL_FLAG,
						   DAT_VA_TYPE_VA, opts[i], &m));
		KUNIT_EXPECT_LE(test, m.addr, start);
		KUNIT_EXPECT_GE(test, m.addr + m.len, start + r->len);
		if (opts[i] == DAT_MEM_OPTIMIZE_EXACT_EXPOSURE) {
			KUNIT_EXPECT_EQ(test, m.addr, start);
			KUNIT_EXPECT_EQ(test, m.len, r->len);
		}
		region_use_remotely(&c, r, &m);
	}
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      region_register(c.a, r, LOCAL, DAT_VA_TYPE_VA, 8, &m));
}

/* A scatterlist with a hole cannot be registered as one range. */
static void L3_holes_are_refused(struct kunit *test)
{
	struct region *r = region_make(test, PLATFORM, 0);
	struct kd_side *s = kd_open_param(test);
	struct made m;

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	r->sg[1].length = 1000;
	r->len = PAGE_SIZE + 1500;
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      region_register(s, r, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, 0, &m));
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      region_register(s, r, LOCAL, DAT_VA_TYPE_VA, 0, &m));
	/* The part before the hole can be registered. */
	r->len = PAGE_SIZE + 1000;
	KD_EXPECT_OK(test, region_register(s, r, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, 0,
					   &m));
}

static DAT_RETURN reg_priv(struct kd_side *s, DAT_MEM_TYPE type,
			   const struct region *r, DAT_VLEN len,
			   DAT_MEM_PRIV_FLAGS priv)
{
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;

	return dat_lmr_kcreate(s->ia, type, r->desc, len, s->pz, priv,
			       DAT_VA_TYPE_VA, 0, &lmr, &context, &rkey, NULL,
			       NULL);
}

static DAT_RETURN reg_as(struct kd_side *s, DAT_MEM_TYPE type,
			 const struct region *r, DAT_VLEN len)
{
	return reg_priv(s, type, r, len, LOCAL);
}

static void L3_types_and_lengths(struct kunit *test)
{
	struct region *r[KINDS], bad;
	DAT_PROVIDER_ATTR *prov = region_alloc(test, sizeof(*prov));
	DAT_IA_ATTR *ia = region_alloc(test, sizeof(*ia));
	struct kd_side *s;
	int kind;

	region_make_all(test, r, 0);
	s = kd_open_param(test);
	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	KD_ASSERT_OK(test, dat_ia_query(s->ia, NULL, DAT_IA_FIELD_ALL, ia,
					DAT_PROVIDER_FIELD_ALL, prov));
	for (kind = 0; kind < KINDS; kind++) {
		region_register_origin(s, r[kind]);
		KUNIT_EXPECT_EQ(test, prov->lmr_mem_types_supported &
				r[kind]->type, (int)r[kind]->type);
		if (kind != OTHER_LMR)
			KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
				      reg_as(s, r[kind]->type, r[kind], 0));
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      reg_priv(s, r[kind]->type, r[kind],
				       (u64)ia->max_lmr_block_size + 1,
				       DAT_MEM_PRIV_ALL_FLAG));
	}
	KUNIT_EXPECT_EQ(test, prov->lmr_mem_types_supported &
			DAT_MEM_TYPE_BYPASS, 0);
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      reg_as(s, DAT_MEM_TYPE_BYPASS, r[KMALLOC], 64));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      reg_as(s, 0x200, r[KMALLOC], 64));
	/* The length is more than the memory described. */
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      reg_as(s, DAT_MEM_TYPE_PLATFORM, r[PLATFORM],
			     r[PLATFORM]->len + 1));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      reg_as(s, DAT_MEM_TYPE_LMR, r[OTHER_LMR],
			     r[OTHER_LMR]->len + 1));
	/*
	 * A page that is not aligned, a page size that is not a power of two,
	 * and no address.
	 */
	bad = *r[PAGES];
	bad.desc.for_physical = bad.pages;
	bad.pages[1] += 64;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      reg_as(s, DAT_MEM_TYPE_PHYSICAL, &bad, bad.len));
	bad.desc.for_array.pages = r[VAR_PAGES]->pages;
	bad.desc.for_array.page_size = 3 * PAGE_SIZE;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      reg_as(s, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, &bad, 64));
	bad.desc.for_va = NULL;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      reg_as(s, DAT_MEM_TYPE_VIRTUAL, &bad, 64));
	bad.desc.for_lmr_handle = (DAT_LMR_HANDLE)s->pz;
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      reg_as(s, DAT_MEM_TYPE_LMR, &bad, 64));
}

static void region_vunmap(void *data)
{
	vunmap(data);
}

/*
 * Return the pages of @piece, memory in one piece, mapped in reverse order: no
 * two of them are neighbours.
 */
static void *region_reversed(struct kunit *test, void *piece, size_t len)
{
	size_t i, n = len >> PAGE_SHIFT;
	struct page **pages = region_alloc(test, n * sizeof(*pages));
	void *va;

	KUNIT_ASSERT_TRUE(test, PAGE_ALIGNED(piece));
	for (i = 0; i < n; i++)
		pages[i] = virt_to_page(piece + ((n - 1 - i) << PAGE_SHIFT));
	va = vmap(pages, n, VM_MAP, PAGE_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, va);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, region_vunmap, va));
	return va;
}

/*
 * The device's limit of pages in a region holds for memory that has to be
 * registered. It does not hold for memory in one piece without remote rights.
 */
static void L1_longest(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct region piece = { }, pages = { };
	DAT_IA_ATTR *ia = region_alloc(test, sizeof(*ia));
	size_t max;

	KD_ASSERT_OK(test, dat_pz_create(s->ia, &s->pz));
	KD_ASSERT_OK(test, dat_ia_query(s->ia, NULL, DAT_IA_FIELD_ALL, ia, 0,
					NULL));
	max = ia->max_lmr_block_size;
	KUNIT_ASSERT_GE(test, max, (size_t)SZ_1M);
	if (kd_needs_syncs(s))
		kunit_skip(test, "a copy may be in one piece where memory is not");
	if (2 * max > KMALLOC_MAX_SIZE)
		kunit_skip(test, "no memory in one piece is as long");
	piece.desc.for_va = region_alloc(test, 2 * max);
	pages.desc.for_va = region_reversed(test, piece.desc.for_va, 2 * max);
	KD_EXPECT_OK(test, reg_as(s, DAT_MEM_TYPE_VIRTUAL, &piece, max));
	KD_EXPECT_OK(test, reg_as(s, DAT_MEM_TYPE_VIRTUAL, &piece, 2 * max));
	KD_EXPECT_OK(test, reg_priv(s, DAT_MEM_TYPE_VIRTUAL, &piece, max,
				    DAT_MEM_PRIV_ALL_FLAG));
	KD_EXPECT_OK(test, reg_as(s, DAT_MEM_TYPE_VIRTUAL, &pages, max));
	KD_EXPECT_OK(test, reg_priv(s, DAT_MEM_TYPE_VIRTUAL, &pages, max,
				    DAT_MEM_PRIV_ALL_FLAG));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      reg_as(s, DAT_MEM_TYPE_VIRTUAL, &pages, max + 1));
	/* From the middle of a page on the memory covers one page more. */
	piece.desc.for_va += OFFSET;
	pages.desc.for_va += OFFSET;
	KD_EXPECT_OK(test, reg_as(s, DAT_MEM_TYPE_VIRTUAL, &piece, max));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      reg_priv(s, DAT_MEM_TYPE_VIRTUAL, &piece, max,
			       DAT_MEM_PRIV_ALL_FLAG));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      reg_as(s, DAT_MEM_TYPE_VIRTUAL, &pages, max));
}

static void kcreate_arguments(struct kunit *test)
{
	struct region *r = region_make(test, KMALLOC, 0);
	struct kd_side *s = kd_open_param(test);
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	struct made m;

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      region_register(s, r, 0x100, DAT_VA_TYPE_VA, 0, &m));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      region_register(s, r, LOCAL, 2, 0, &m));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_kcreate(s->ia, r->type, r->desc, 64, s->pz, LOCAL,
				      0, 0, NULL, &context, NULL, NULL, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_kcreate(s->ia, r->type, r->desc, 64, s->pz, LOCAL,
				      0, 0, &lmr, NULL, NULL, NULL, NULL));
	/* Remote rights without a pointer for the RMR context are refused. */
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_kcreate(s->ia, r->type, r->desc, 64, s->pz,
				      DAT_MEM_PRIV_ALL_FLAG, 0, 0, &lmr,
				      &context, NULL, NULL, NULL));
	KD_EXPECT_OK(test,
		     dat_lmr_kcreate(s->ia, r->type, r->desc, 64, s->pz, LOCAL,
				     0, 0, &lmr, &context, NULL, NULL, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_pz_free(s->pz));
}

/* ---- Query, synchronising, the reserved LMR ---------------------------------- */

static void lmr_query(struct kunit *test)
{
	struct region *r = region_make(test, KMALLOC, 0);
	struct kd_side *s = kd_open_param(test);
	DAT_LMR_PARAM param;
	struct made m;

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	KD_ASSERT_OK(test, region_register(s, r, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB,
					   DAT_MEM_OPTIMIZE_EXACT_EXPOSURE, &m));
	memset(&param, 0xff, sizeof(param));
	KD_EXPECT_OK(test, dat_lmr_query(m.lmr, DAT_LMR_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, s->ia);
	KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, s->pz);
	KUNIT_EXPECT_EQ(test, (int)param.mem_type, DAT_MEM_TYPE_VIRTUAL);
	KUNIT_EXPECT_PTR_EQ(test, param.region_desc.for_va, r->desc.for_va);
	KUNIT_EXPECT_EQ(test, param.length, r->len);
	KUNIT_EXPECT_EQ(test, (int)param.mem_priv, DAT_MEM_PRIV_ALL_FLAG);
	KUNIT_EXPECT_EQ(test, (int)param.va_type, DAT_VA_TYPE_ZB);
	KUNIT_EXPECT_EQ(test, param.lmr_context, m.context);
	KUNIT_EXPECT_EQ(test, param.rmr_context, m.rkey);
	KUNIT_EXPECT_EQ(test, param.registered_size, r->len);
	KUNIT_EXPECT_EQ(test, param.registered_address, 0);
	KUNIT_EXPECT_EQ(test, (int)param.lmr_state.fmr_support, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)param.lmr_state.bound, DAT_TRUE);
	KD_EXPECT_OK(test, dat_lmr_query(m.lmr, DAT_LMR_FIELD_LENGTH, &param));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_query(m.lmr, DAT_LMR_FIELD_ALL + 1, &param));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_query(m.lmr, DAT_LMR_FIELD_ALL, NULL));
}

static void L3_sync(struct kunit *test)
{
	struct region *r = region_make(test, PAGES, 0);
	struct kd_side *s = kd_open_param(test);
	DAT_LMR_TRIPLET seg[2];
	struct made m;

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	KD_ASSERT_OK(test, region_register(s, r, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, 0,
					   &m));
	seg[0] = region_seg(&m);
	seg[1] = kd_seg(s->buf, 100, 5000);
	KD_EXPECT_OK(test, dat_lmr_sync_rdma_read(s->ia, seg, 2));
	KD_EXPECT_OK(test, dat_lmr_sync_rdma_write(s->ia, seg, 2));
	KD_EXPECT_OK(test, dat_lmr_sync_rdma_read(s->ia, seg, 0));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_sync_rdma_write(s->ia, NULL, 1));
	seg[1].segment_length = KD_BUF_LEN;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_sync_rdma_read(s->ia, seg, 2));
	seg[1].segment_length = 64;
	seg[1].lmr_context ^= 1 << 25;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_sync_rdma_write(s->ia, seg, 2));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_lmr_sync_rdma_write((DAT_IA_HANDLE)s->pz, seg, 1));
}

static void L3_platform_without_memory(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_REGION_DESCRIPTION region;
	struct scatterlist sg[2];
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;
	int i;

	region.for_platform = sg;
	for (i = 0; i < 4; i++) {
		sg_init_table(sg, 2);
		sg_set_buf(&sg[0], c.a->buf->va, PAGE_SIZE);
		sg_set_buf(&sg[1], c.a->buf->va + PAGE_SIZE, PAGE_SIZE);
		if (i & 2)
			sg[i & 1].length = 0;
		else
			sg_assign_page(&sg[i & 1], NULL);
		KUNIT_EXPECT_EQ(test,
				dat_lmr_kcreate(c.a->ia, DAT_MEM_TYPE_PLATFORM,
						region, PAGE_SIZE + 1, c.a->pz,
						DAT_MEM_PRIV_ALL_FLAG, 0, 0,
						&lmr, &context, &rkey, NULL,
						NULL),
				DAT_ERROR(DAT_INVALID_PARAMETER,
					  DAT_INVALID_ARG3));
	}
}

static void L3_reserved_lmr(struct kunit *test)
{
	struct region *r = region_make(test, DMA, OFFSET), again;
	struct mem_pair c = mem_make_pair(test, NULL);
	struct made m = { .len = r->len };
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	struct made other;

	region_map(c.a, r);
	m.addr = r->desc.for_ia;
	again = *r;
	KD_ASSERT_OK(test, dat_ia_reserved_lmr(c.a->ia, &m.lmr, &m.context));
	KD_ASSERT_OK(test, dat_ia_reserved_lmr(c.a->ia, &lmr, &context));
	KUNIT_EXPECT_PTR_EQ(test, lmr, m.lmr);
	KUNIT_EXPECT_EQ(test, context, m.context);
	region_use_locally(&c, r, &m);
	KD_EXPECT_RET(test, DAT_RESERVED_LMR, dat_lmr_free(m.lmr));
	again.type = DAT_MEM_TYPE_LMR;
	again.desc.for_lmr_handle = m.lmr;
	KD_EXPECT_RET(test, DAT_RESERVED_LMR,
		      region_register(c.a, &again, LOCAL, DAT_VA_TYPE_VA, 0, &other));
	/* The reserved LMR can be used on its own IA only. */
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION,
		      dat_ep_post_send(c.p->ep, 1, &(DAT_LMR_TRIPLET) {
				       m.addr, 64, m.context }, kd_cookie(1),
				       0));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ia_reserved_lmr(c.a->ia, NULL, &context));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ia_reserved_lmr(c.a->ia, &lmr, NULL));
}

static struct kunit_case lmr_cases[] = {
	KUNIT_CASE_PARAM(L3_every_type_locally, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_every_type_remotely, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_zero_based_remotely, kd_gen_ia),
	KUNIT_CASE_PARAM(L2_not_beyond_the_range, kd_gen_ia),
	KUNIT_CASE_PARAM(L2_not_beyond_the_rights, kd_gen_ia),
	KUNIT_CASE_PARAM(L2_not_after_free, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_mem_optimization, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_holes_are_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_types_and_lengths, kd_gen_ia),
	KUNIT_CASE_PARAM(L1_longest, kd_gen_ia),
	KUNIT_CASE_PARAM(kcreate_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(lmr_query, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_sync, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_platform_without_memory, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_reserved_lmr, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-lmr", lmr_cases, "Local Memory Regions");
