// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * lmr_test.ko: memory of every type that dat_lmr_kcreate() takes, made,
 * registered and used.
 */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include "regions.h"

/* ---- Memory of every type -------------------------------------------------- */

const char * const region_kind_names[KINDS] = {
	"kmalloc", "vmalloc", "pages", "large pages", "scatterlist", "DMA",
	"LMR"
};

/* Allocate zeroed memory that is freed after the case. */
void *region_alloc(struct kunit *test, size_t len)
{
	void *va = kunit_kzalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, va);
	return va;
}

/* For kunit_add_action_or_reset(). */
void region_vfree(void *va)
{
	vfree(va);
}

static void add_chunk(struct region *r, void *va, size_t len)
{
	r->chunk[r->chunks].va = va;
	r->chunk[r->chunks++].len = len;
	r->len += len;
}

/*
 * Make @n pages of @size that do not adjoin; the last one is not used to its
 * end.
 */
static void make_pages(struct kunit *test, struct region *r, unsigned int n,
		       size_t size)
{
	u8 *va = region_alloc(test, 2 * n * size);
	unsigned int i;

	for (i = 0; i < n; i++) {
		u8 *page = va + (2 * (n - i) - 1) * size;

		r->pages[i] = virt_to_phys(page);
		add_chunk(r, page, i == n - 1 ? size - OFFSET : size);
	}
}

static void make_list(struct kunit *test, struct region *r, size_t offset)
{
	u8 *va = region_alloc(test, 8 * PAGE_SIZE);
	unsigned int i;

	add_chunk(r, va + 5 * PAGE_SIZE + offset, PAGE_SIZE - offset);
	add_chunk(r, va + 3 * PAGE_SIZE, PAGE_SIZE);
	add_chunk(r, va + PAGE_SIZE, PAGE_SIZE / 2);
	sg_init_table(r->sg, CHUNKS);
	for (i = 0; i < CHUNKS; i++)
		sg_set_buf(&r->sg[i], r->chunk[i].va, r->chunk[i].len);
	r->desc.for_platform = r->sg;
}

/*
 * Make memory of a type. @offset: its start inside its first page, if the type
 * has one.
 */
struct region *region_make(struct kunit *test, enum kind kind, size_t offset)
{
	struct region *r = region_alloc(test, sizeof(*r));
	void *va;

	r->kind = kind;
	r->scratch = region_alloc(test, SCRATCH);
	switch (kind) {
	case VMALLOC:
		va = vzalloc(4 * PAGE_SIZE);
		KUNIT_ASSERT_NOT_NULL(test, va);
		KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test,
								   region_vfree,
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
		/* region_map() maps it when its device is known. */
		va = region_alloc(test, 4 * PAGE_SIZE) + offset;
		r->type = DAT_MEM_TYPE_IA;
		add_chunk(r, va, 12000);
		break;
	default:
		va = region_alloc(test, 4 * PAGE_SIZE) + offset;
		r->type = DAT_MEM_TYPE_VIRTUAL;
		r->desc.for_va = va;
		add_chunk(r, va, 12000);
		break;
	}
	return r;
}

/*
 * Make memory of all types. Called before sides are opened, so that the memory
 * outlives its LMRs.
 */
void region_make_all(struct kunit *test, struct region *r[KINDS], size_t offset)
{
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		r[kind] = region_make(test, kind, offset);
}

/* A region that the case has mapped is handed over by the case. */
void region_fill(struct region *r, u32 seed)
{
	size_t off = 0;
	unsigned int i;

	kd_fill(r->scratch, r->len, seed);
	for (i = 0; i < r->chunks; i++) {
		memcpy(r->chunk[i].va, r->scratch + off, r->chunk[i].len);
		off += r->chunk[i].len;
	}
	if (r->dev)
		ib_dma_sync_single_for_device(r->dev, r->desc.for_ia, r->len,
					      DMA_BIDIRECTIONAL);
}

bool region_is_filled(struct region *r, u32 seed)
{
	size_t off = 0;
	unsigned int i;

	if (r->dev)
		ib_dma_sync_single_for_cpu(r->dev, r->desc.for_ia, r->len,
					   DMA_BIDIRECTIONAL);
	for (i = 0; i < r->chunks; i++) {
		memcpy(r->scratch + off, r->chunk[i].va, r->chunk[i].len);
		off += r->chunk[i].len;
	}
	return kd_is_filled(r->scratch, r->len, seed);
}

/* ---- Registering ------------------------------------------------------------ */

static void region_unmap(void *data)
{
	struct region *r = data;

	ib_dma_unmap_single(r->dev, r->desc.for_ia, r->len, DMA_BIDIRECTIONAL);
	r->dev = NULL;
}

/* For DMA: map the memory for the device of @s, until the case ends. */
void region_map(struct kd_side *s, struct region *r)
{
	struct ib_device *dev = kd_device(s->test, s->name);

	if (r->kind != DMA || r->dev)
		return;
	r->desc.for_ia = ib_dma_map_single(dev, r->chunk[0].va, r->len,
					   DMA_BIDIRECTIONAL);
	KUNIT_ASSERT_FALSE(s->test, ib_dma_mapping_error(dev, r->desc.for_ia));
	r->dev = dev;
	KUNIT_ASSERT_EQ(s->test, 0, kunit_add_action_or_reset(s->test, region_unmap,
							      r));
}

DAT_RETURN region_register(struct kd_side *s, struct region *r,
			   DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
			   DAT_MEM_OPTIMIZE_FLAGS opt, struct made *m)
{
	memset(m, 0, sizeof(*m));
	region_map(s, r);
	return dat_lmr_kcreate(s->ia, r->type, r->desc, r->len, s->pz, priv,
			       va_type, opt, &m->lmr, &m->context, &m->rkey,
			       &m->len, &m->addr);
}

/* For OTHER_LMR: register the LMR that is registered again. */
void region_register_origin(struct kd_side *s, struct region *r)
{
	struct made m;

	if (r->kind != OTHER_LMR)
		return;
	r->type = DAT_MEM_TYPE_VIRTUAL;
	r->desc.for_va = r->chunk[0].va;
	KD_ASSERT_OK(s->test, region_register(s, r, LOCAL, DAT_VA_TYPE_VA,
					      DAT_MEM_OPTIMIZE_DONT_CARE, &m));
	r->type = DAT_MEM_TYPE_LMR;
	r->desc.for_lmr_handle = m.lmr;
}

DAT_LMR_TRIPLET region_seg(const struct made *m)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = m->addr,
		.segment_length = m->len,
		.lmr_context = m->context,
	};
}

/* Send the whole region to the peer, and receive as much from the peer. */
void region_use_locally(struct mem_pair *c, struct region *r,
			const struct made *m)
{
	DAT_LMR_TRIPLET seg = region_seg(m);

	region_fill(r, 1);
	kd_recv(c->p, 0, SCRATCH, 1);
	KD_ASSERT_OK(c->test, dat_ep_post_send(c->a->ep, 1, &seg, kd_cookie(2),
					       0));
	kd_expect_dto(c->test, c->p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(c->test, c->a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE_MSG(c->test, kd_is_filled(c->p->buf->va, r->len, 1),
			      "%s: sending", region_kind_names[r->kind]);

	kd_fill(c->p->buf->va, r->len, 2);
	KD_ASSERT_OK(c->test, dat_ep_post_recv(c->a->ep, 1, &seg, kd_cookie(3),
					       0));
	kd_send(c->p, 0, r->len, 4);
	kd_expect_dto(c->test, c->a->recv_evd, 3, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(c->test, c->p->req_evd, 4, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE_MSG(c->test, region_is_filled(r, 2),
			      "%s: receiving", region_kind_names[r->kind]);
}

/* The memory is the peer's to read, or (@written) was written by the peer. */
void region_hand_over(struct mem_pair *c, const struct made *m, bool written)
{
	DAT_LMR_TRIPLET seg = region_seg(m);

	if (written)
		KD_EXPECT_OK(c->test, dat_lmr_sync_rdma_write(c->a->ia, &seg, 1));
	else
		KD_EXPECT_OK(c->test, dat_lmr_sync_rdma_read(c->a->ia, &seg, 1));
}

void region_use_remotely(struct mem_pair *c, struct region *r,
			 const struct made *m)
{
	DAT_RMR_TRIPLET all = mem_remote(m->addr, m->len, m->rkey);

	kd_fill(c->p->buf->va, r->len, 3);
	mem_write(c, all);
	region_hand_over(c, m, true);
	KUNIT_EXPECT_TRUE_MSG(c->test, region_is_filled(r, 3), "%s: writing",
			      region_kind_names[r->kind]);
	region_fill(r, 4);
	region_hand_over(c, m, false);
	mem_read(c, all);
	KUNIT_EXPECT_TRUE_MSG(c->test, kd_is_filled(c->p->buf->va, r->len, 4),
			      "%s: reading", region_kind_names[r->kind]);
}
