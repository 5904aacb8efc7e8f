/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory of every type that dat_lmr_kcreate() takes, made, registered and used.
 */
#ifndef KDAPL_KUNIT_REGIONS_H
#define KDAPL_KUNIT_REGIONS_H

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>
#include "mem_fixture.h"

#define LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define OFFSET	100			/* of a start inside a page */
#define CHUNKS	3
#define SCRATCH	SZ_32K

/* ---- Memory of every type -------------------------------------------------- */

enum kind { KMALLOC, VMALLOC, PAGES, VAR_PAGES, PLATFORM, DMA, OTHER_LMR, KINDS };

static const char * const kind_names[KINDS] = {
	"kmalloc", "vmalloc", "pages", "large pages", "scatterlist", "DMA",
	"LMR"
};

/*
 * struct region - memory as dat_lmr_kcreate() takes it, and as the CPU sees it
 * @chunk: its pieces, in order
 */
struct region {
	enum kind kind;
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION desc;
	size_t len;
	unsigned int chunks;
	struct {
		u8 *va;
		size_t len;
	} chunk[CHUNKS];
	DAT_PADDR pages[CHUNKS];
	struct scatterlist sg[CHUNKS];
	u8 *scratch;
};

static inline void *alloc(struct kunit *test, size_t len)
{
	void *va = kunit_kzalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, va);
	return va;
}

static inline void free_vmalloc(void *va)
{
	vfree(va);
}

static inline void add_chunk(struct region *r, void *va, size_t len)
{
	r->chunk[r->chunks].va = va;
	r->chunk[r->chunks++].len = len;
	r->len += len;
}

/* Pages of @size that do not adjoin; the last one is not used to its end. */
static inline void make_pages(struct kunit *test, struct region *r, unsigned int n,
			      size_t size)
{
	u8 *va = alloc(test, 2 * n * size);
	unsigned int i;

	for (i = 0; i < n; i++) {
		u8 *page = va + (2 * (n - i) - 1) * size;

		r->pages[i] = virt_to_phys(page);
		add_chunk(r, page, i == n - 1 ? size - OFFSET : size);
	}
}

static inline void make_list(struct kunit *test, struct region *r, size_t offset)
{
	u8 *va = alloc(test, 8 * PAGE_SIZE);
	unsigned int i;

	add_chunk(r, va + 5 * PAGE_SIZE + offset, PAGE_SIZE - offset);
	add_chunk(r, va + 3 * PAGE_SIZE, PAGE_SIZE);
	add_chunk(r, va + PAGE_SIZE, PAGE_SIZE / 2);
	sg_init_table(r->sg, CHUNKS);
	for (i = 0; i < CHUNKS; i++)
		sg_set_buf(&r->sg[i], r->chunk[i].va, r->chunk[i].len);
	r->desc.for_platform = r->sg;
}

/* @offset: where it starts inside its first page, if the type allows */
static inline struct region *make_region(struct kunit *test, enum kind kind,
					 size_t offset)
{
	struct region *r = alloc(test, sizeof(*r));
	void *va;

	r->kind = kind;
	r->scratch = alloc(test, SCRATCH);
	switch (kind) {
	case VMALLOC:
		va = vzalloc(4 * PAGE_SIZE);
		KUNIT_ASSERT_NOT_NULL(test, va);
		KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test,
								   free_vmalloc,
								   va));
		r->type = DAT_MEM_TYPE_VIRTUAL;
		r->desc.for_va = va + offset;
		add_chunk(r, va + offset, 12000);
		break;
	case PAGES:
		r->type = DAT_MEM_TYPE_PHYSICAL;
		r->desc.for_physical = r->pages;
		make_pages(test, r, 3, PAGE_SIZE);
		break;
	case VAR_PAGES:
		r->type = DAT_MEM_TYPE_PHYSICAL_VAR_PAGES;
		r->desc.for_array.page_size = 2 * PAGE_SIZE;
		r->desc.for_array.pages = r->pages;
		make_pages(test, r, 2, 2 * PAGE_SIZE);
		break;
	case PLATFORM:
		r->type = DAT_MEM_TYPE_PLATFORM;
		make_list(test, r, offset);
		break;
	case DMA:
		/* The DMA addresses of a software device are the kernel's. */
		va = alloc(test, 4 * PAGE_SIZE) + offset;
		r->type = DAT_MEM_TYPE_IA;
		r->desc.for_ia = (uintptr_t)va;
		add_chunk(r, va, 12000);
		break;
	default:
		va = alloc(test, 4 * PAGE_SIZE) + offset;
		r->type = DAT_MEM_TYPE_VIRTUAL;
		r->desc.for_va = va;
		add_chunk(r, va, 12000);
		break;
	}
	return r;
}

/* Regions are made first, so that they outlive what is registered. */
static inline void make_regions(struct kunit *test, struct region *r[KINDS],
				size_t offset)
{
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		r[kind] = make_region(test, kind, offset);
}

static inline void region_fill(struct region *r, u32 seed)
{
	size_t off = 0;
	unsigned int i;

	kd_fill(r->scratch, r->len, seed);
	for (i = 0; i < r->chunks; i++) {
		memcpy(r->chunk[i].va, r->scratch + off, r->chunk[i].len);
		off += r->chunk[i].len;
	}
}

static inline bool region_is_filled(struct region *r, u32 seed)
{
	size_t off = 0;
	unsigned int i;

	for (i = 0; i < r->chunks; i++) {
		memcpy(r->scratch + off, r->chunk[i].va, r->chunk[i].len);
		off += r->chunk[i].len;
	}
	return kd_is_filled(r->scratch, r->len, seed);
}

/* ---- Registering ------------------------------------------------------------ */

struct made {
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT rkey;
	DAT_VLEN len;
	DAT_VADDR addr;
};

static inline DAT_RETURN reg(struct kd_side *s, struct region *r,
			     DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
		      DAT_MEM_OPTIMIZE_FLAGS opt, struct made *m)
{
	memset(m, 0, sizeof(*m));
	return dat_lmr_kcreate(s->ia, r->type, r->desc, r->len, s->pz, priv,
			       va_type, opt, &m->lmr, &m->context, &m->rkey,
			       &m->len, &m->addr);
}

/* For OTHER_LMR, what is registered again. */
static inline void reg_origin(struct kd_side *s, struct region *r)
{
	struct made m;

	if (r->kind != OTHER_LMR)
		return;
	r->type = DAT_MEM_TYPE_VIRTUAL;
	r->desc.for_va = r->chunk[0].va;
	KD_ASSERT_OK(s->test, reg(s, r, LOCAL, DAT_VA_TYPE_VA,
				  DAT_MEM_OPTIMIZE_DONT_CARE, &m));
	r->type = DAT_MEM_TYPE_LMR;
	r->desc.for_lmr_handle = m.lmr;
}

static inline DAT_LMR_TRIPLET made_seg(const struct made *m)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = m->addr,
		.segment_length = m->len,
		.lmr_context = m->context,
	};
}

/* Send all of it to the peer, and receive as much from there. */
static inline void use_locally(struct mem_pair *c, struct region *r,
			       const struct made *m)
{
	DAT_LMR_TRIPLET seg = made_seg(m);

	region_fill(r, 1);
	kd_recv(c->p, 0, SCRATCH, 1);
	KD_ASSERT_OK(c->test, dat_ep_post_send(c->a->ep, 1, &seg, kd_cookie(2),
					       0));
	kd_expect_dto(c->test, c->p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(c->test, c->a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE_MSG(c->test, kd_is_filled(c->p->buf->va, r->len, 1),
			      "%s: sending", kind_names[r->kind]);

	kd_fill(c->p->buf->va, r->len, 2);
	KD_ASSERT_OK(c->test, dat_ep_post_recv(c->a->ep, 1, &seg, kd_cookie(3),
					       0));
	kd_send(c->p, 0, r->len, 4);
	kd_expect_dto(c->test, c->a->recv_evd, 3, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(c->test, c->p->req_evd, 4, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE_MSG(c->test, region_is_filled(r, 2),
			      "%s: receiving", kind_names[r->kind]);
}

static inline void use_remotely(struct mem_pair *c, struct region *r,
				const struct made *m)
{
	DAT_RMR_TRIPLET all = mem_remote(m->addr, m->len, m->rkey);

	kd_fill(c->p->buf->va, r->len, 3);
	mem_write(c, all);
	KUNIT_EXPECT_TRUE_MSG(c->test, region_is_filled(r, 3), "%s: writing",
			      kind_names[r->kind]);
	region_fill(r, 4);
	mem_read(c, all);
	KUNIT_EXPECT_TRUE_MSG(c->test, kd_is_filled(c->p->buf->va, r->len, 4),
			      "%s: reading", kind_names[r->kind]);
}

#endif /* KDAPL_KUNIT_REGIONS_H */
