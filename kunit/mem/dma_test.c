// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory on devices that do DMA (contract L7): who has it when. Nothing here uses
 * kd_fill() and kd_is_filled(), which hand memory over. Where a mapping is a copy of the
 * memory ("make check-vm" says how) the data would be that of before.
 */
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>
#include <dat/kdat_linux.h>
#include "device.h"
#include "fmr_fixture.h"
#include "probe.h"
#include "rmr_fixture.h"

#define AT	100			/* inside of a page */
#define BYTES	9000

static KD_CHOICES(gen_kinds, kd_gen_any_ia_and, "one piece", "in pages")

/* Memory of the kind that the case is about. */
static struct kd_buf *make_buf(struct kd_side *s, DAT_MEM_PRIV_FLAGS priv)
{
	bool virt = ((const struct kd_param *)s->test->param_value)->choice;

	return kd_buf_alloc_priv(s, KD_BUF_LEN, virt, priv);
}

static struct mem_pair make_pair(struct kunit *test)
{
	return mem_make_pair(test, NULL);
}

static void set(struct kd_buf *buf, u8 value)
{
	memset(buf->va + AT, value, BYTES);
}

/* Is that what it has, and nothing but that? */
static bool has(struct kd_buf *buf, u8 value)
{
	const u8 *va = buf->va;

	return !memchr_inv(va + AT, value, BYTES) && va[AT - 1] != value &&
	       va[AT + BYTES] != value;
}

/* ---- What this side posts ------------------------------------------------------ */

static void L7_sends_and_receives(struct kunit *test)
{
	struct mem_pair c = make_pair(test);
	struct kd_buf *from = make_buf(c.a, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	struct kd_buf *to = make_buf(c.p, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	DAT_LMR_TRIPLET src = kd_seg(from, AT, BYTES), dst = kd_seg(to, AT, BYTES);
	u8 i;

	for (i = 1; i < 4; i++) {
		KD_ASSERT_OK(test, dat_ep_post_recv(c.p->ep, 1, &dst, kd_cookie(1), 0));
		set(from, i);
		KD_ASSERT_OK(test, dat_ep_post_send(c.a->ep, 1, &src, kd_cookie(2), 0));
		kd_expect_dto(test, c.p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
		KUNIT_EXPECT_TRUE_MSG(test, has(to, i), "round %u", i);
	}
}

/* A short message leaves the rest of its buffer as it was. */
static void L7_buffers_of_an_srq(struct kunit *test)
{
	struct kd_side *a = kd_open_param(test), *p = kd_open_param(test);
	struct kd_buf *from, *to[2];
	DAT_LMR_TRIPLET src, dst[2];

	kd_setup(a, NULL);
	kd_setup(p, &(struct kd_opts) { .srq_len = 4 });
	kd_connect_pair(a, p);
	from = make_buf(a, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	to[0] = make_buf(p, DAT_MEM_PRIV_ALL_FLAG);
	to[1] = make_buf(p, DAT_MEM_PRIV_ALL_FLAG);
	src = kd_seg(from, AT, BYTES);
	dst[0] = kd_seg(to[0], AT, BYTES / 2);
	dst[1] = kd_seg(to[1], AT, BYTES);
	set(to[0], 7);
	set(to[1], 7);
	KD_ASSERT_OK(test, dat_srq_post_recv(p->srq, 2, dst, kd_cookie(1)));
	/* From now on they are the device's: what the CPU writes beyond the message stays. */
	memset(to[1]->va + AT + BYTES - 10, 8, 10);
	set(from, 1);
	KD_ASSERT_OK(test, dat_ep_post_send(a->ep, 1, &src, kd_cookie(2), 0));
	kd_expect_dto(test, p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_NULL(test, memchr_inv(to[0]->va + AT, 1, BYTES / 2));
	KUNIT_EXPECT_NULL(test, memchr_inv(to[1]->va + AT, 1, BYTES / 2));
	KUNIT_EXPECT_NULL(test, memchr_inv(to[1]->va + AT + BYTES - 10, 8, 10));
}

static void L7_writes(struct kunit *test)
{
	struct mem_pair c = make_pair(test);
	struct kd_buf *from = make_buf(c.a, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	struct kd_buf *to = make_buf(c.p, DAT_MEM_PRIV_ALL_FLAG);
	DAT_LMR_TRIPLET src = kd_seg(from, AT, BYTES), dst = kd_seg(to, AT, BYTES);
	DAT_RMR_TRIPLET remote = kd_remote(to, AT, BYTES);
	u8 i;

	for (i = 1; i < 4; i++) {
		set(from, i);
		KD_ASSERT_OK(test, dat_ep_post_rdma_write(c.a->ep, 1, &src, kd_cookie(1),
							  &remote, 0));
		kd_recv(c.p, 0, 64, 2);
		kd_send(c.a, 0, 64, 3);
		kd_expect_dto(test, c.p->recv_evd, 2, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, c.a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
		KD_EXPECT_OK(test, dat_lmr_sync_rdma_write(c.p->ia, &dst, 1));
		KUNIT_EXPECT_TRUE_MSG(test, has(to, i), "round %u", i);
	}
}

/* Let @c->a read what @from, which is the peer's, has; it has been told to. */
static void read_it(struct mem_pair *c, struct kd_buf *from, struct kd_buf *to, u8 value)
{
	DAT_LMR_TRIPLET src = kd_seg(from, AT, BYTES), dst = kd_seg(to, AT, BYTES);
	DAT_RMR_TRIPLET remote = kd_remote(from, AT, BYTES);

	set(from, value);
	KD_EXPECT_OK(c->test, dat_lmr_sync_rdma_read(c->p->ia, &src, 1));
	KD_ASSERT_OK(c->test, dat_ep_post_rdma_read(c->a->ep, 1, &dst, kd_cookie(1),
						    &remote, 0));
}

static void L7_reads(struct kunit *test)
{
	struct mem_pair c = make_pair(test);
	struct kd_buf *from = make_buf(c.p, DAT_MEM_PRIV_LOCAL_READ_FLAG |
					    DAT_MEM_PRIV_REMOTE_READ_FLAG);
	struct kd_buf *to = make_buf(c.a, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	u8 i;

	for (i = 1; i < 4; i++) {
		read_it(&c, from, to, i);
		kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
		KUNIT_EXPECT_TRUE_MSG(test, has(to, i), "round %u", i);
	}
}

static void L7_reads_to_rmr(struct kunit *test)
{
	DAT_MEM_PRIV_FLAGS priv = DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_RMR_TRIPLET remote, sink;
	DAT_LMR_TRIPLET src;
	DAT_RMR_HANDLE rmr;
	struct mem_pair c;
	u8 *to, i;

	/* An RMR is no segment. */
	attr.max_rdma_read_iov = 0;
	c = mem_make_pair(test, &attr);
	src = kd_seg(c.p->buf, 0, RMR_PART);
	remote = kd_remote(c.p->buf, 0, RMR_PART);
	to = c.a->buf->va + RMR_PART;
	rmr = rmr_make(&c);
	/* With the key of the RMR, and where adapters need it with one for the Read. */
	for (i = 1; i < 3; i++, priv |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG) {
		sink = mem_remote(0, RMR_PART,
				  rmr_bind_ok(&c, rmr, RMR_PART, priv, DAT_VA_TYPE_ZB));
		memset(c.p->buf->va, i, RMR_PART);
		KD_EXPECT_OK(test, dat_lmr_sync_rdma_read(c.p->ia, &src, 1));
		KD_ASSERT_OK(test, dat_ep_post_rdma_read_to_rmr(c.a->ep, &sink,
								kd_cookie(4), &remote,
								0));
		kd_expect_dto(test, c.a->req_evd, 4, DAT_DTO_SUCCESS, NULL);
		KUNIT_EXPECT_NULL_MSG(test, memchr_inv(to, i, RMR_PART), "round %u", i);
	}
}

/* Nobody polls for the Read, which has come, before the Send is posted. */
static void L7_fenced_sends(struct kunit *test)
{
	struct kd_pair two = kd_make_pair(test, &(struct kd_opts) { .polled = true });
	struct mem_pair c = { test, two.a, two.p };
	struct kd_buf *from = make_buf(c.p, DAT_MEM_PRIV_ALL_FLAG);
	struct kd_buf *via = make_buf(c.a, DAT_MEM_PRIV_ALL_FLAG);
	struct kd_buf *to = make_buf(c.p, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	DAT_LMR_TRIPLET src = kd_seg(via, AT - 1, BYTES + 2);
	DAT_LMR_TRIPLET dst = kd_seg(to, AT - 1, BYTES + 2);
	u8 *got = to->va + AT, i;

	kd_connect_pair(c.a, c.p);
	for (i = 1; i < 4; i++) {
		read_it(&c, from, via, i);
		/* Devices that copy at once have executed the Read before this. */
		kd_recv(c.p, 0, 64, 3);
		kd_send(c.a, 0, 64, 4);
		kd_expect_dto(test, c.p->recv_evd, 3, DAT_DTO_SUCCESS, NULL);
		KD_ASSERT_OK(test, dat_ep_post_recv(c.p->ep, 1, &dst, kd_cookie(1), 0));
		/* What is beside the sink is the CPU's. */
		((u8 *)via->va)[AT - 1] = 100 + i;
		((u8 *)via->va)[AT + BYTES] = 200 + i;
		KD_ASSERT_OK(test, dat_ep_post_send(c.a->ep, 1, &src, kd_cookie(2),
						    DAT_COMPLETION_BARRIER_FENCE_FLAG));
		kd_expect_dto(test, c.p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, c.a->req_evd, 4, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
		KUNIT_EXPECT_TRUE_MSG(test, has(to, i), "round %u", i);
		KUNIT_EXPECT_EQ(test, (int)got[-1], 100 + i);
		KUNIT_EXPECT_EQ(test, (int)got[BYTES], 200 + i);
	}
}

/* ---- What the peer does --------------------------------------------------------- */

/* Binding and unbinding hand over: no call is needed. */
static void L7_bindings(struct kunit *test)
{
	struct mem_pair c = make_pair(test);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	struct pages *p = fmr_make_pages(test);
	DAT_LMR_TRIPLET seg = kd_seg(c.p->buf, 0, FMR_LEN);
	u8 i;
	int n;

	for (i = 1; i < 4; i++) {
		for (n = 0; n < FMR_PAGES; n++)
			memset(p->va[n], i, PAGE_SIZE);
		fmr_bind_ok(&c, &f, p);
		mem_read(&c, mem_remote(0, FMR_LEN, f.rkey));
		KUNIT_EXPECT_NULL_MSG(test, memchr_inv(c.p->buf->va, i, FMR_LEN),
				      "read, round %u", i);
		memset(c.p->buf->va, 100 + i, FMR_LEN);
		KD_EXPECT_OK(test, dat_lmr_sync_rdma_read(c.p->ia, &seg, 1));
		mem_write(&c, mem_remote(0, FMR_LEN, f.rkey));
		fmr_unbind_ok(&c, &f);
		for (n = 0; n < FMR_PAGES; n++)
			KUNIT_EXPECT_NULL_MSG(test, memchr_inv(p->va[n], 100 + i,
							       PAGE_SIZE),
					      "page %d, round %u", n, i);
	}
}

/* ---- Mappings ------------------------------------------------------------------- */

static struct maps {
	struct device *dev;
	int maps;
	int entries;
	int unmaps;
	int dir;
} seen;

static void saw_map(void *unused, struct device *dev, struct scatterlist *sgl, int nents,
		    int ents, enum dma_data_direction dir, unsigned long attrs)
{
	if (dev != READ_ONCE(seen.dev))
		return;
	seen.maps++;
	seen.entries = nents;
	seen.dir = dir;
}

static void saw_unmap(void *unused, struct device *dev, struct scatterlist *sgl,
		      int nents, enum dma_data_direction dir, unsigned long attrs)
{
	if (dev == READ_ONCE(seen.dev) && seen.dir == dir)
		seen.unmaps++;
}

static void watch_maps(struct kunit *test, struct kd_side *s)
{
	struct ib_device *dev = kd_device(test, s->name);

	if (ib_uses_virt_dma(dev))
		kunit_skip(test, "it does no DMA");
	memset(&seen, 0, sizeof(seen));
	WRITE_ONCE(seen.dev, dev->dma_device);
	kd_probe(test, "dma_map_sg", saw_map);
	kd_probe(test, "dma_unmap_sg", saw_unmap);
}

static void L7_directions(struct kunit *test)
{
	static const struct {
		DAT_MEM_PRIV_FLAGS priv;
		enum dma_data_direction dir;
	} want[] = {
		{ DAT_MEM_PRIV_LOCAL_READ_FLAG, DMA_TO_DEVICE },
		{ DAT_MEM_PRIV_REMOTE_READ_FLAG, DMA_TO_DEVICE },
		{ DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DMA_FROM_DEVICE },
		{ DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DMA_FROM_DEVICE },
		{ DAT_MEM_PRIV_ALL_FLAG, DMA_BIDIRECTIONAL },
	};
	struct mem_pair c = make_pair(test);
	struct kd_buf *buf;
	int i;

	watch_maps(test, c.a);
	for (i = 0; i < 2 * ARRAY_SIZE(want); i++) {
		buf = kd_buf_alloc_priv(c.a, KD_BUF_LEN, i & 1, want[i / 2].priv);
		KUNIT_EXPECT_EQ(test, seen.maps, i + 1);
		KUNIT_EXPECT_EQ_MSG(test, seen.dir, (int)want[i / 2].dir,
				    "privileges %#x", want[i / 2].priv);
		KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
		KUNIT_EXPECT_EQ(test, seen.unmaps, i + 1);
	}
}

/* One mapping, which lasts as long as the binding. */
static void L7_mapping_of_a_binding(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	struct pages *p = fmr_make_pages(test);
	DAT_LMR_TRIPLET seg = kd_seg(c.p->buf, 0, 64);

	watch_maps(test, c.a);
	fmr_bind_ok(&c, &f, p);
	KUNIT_EXPECT_EQ(test, seen.maps, 1);
	KUNIT_EXPECT_EQ(test, seen.entries, FMR_PAGES);
	KUNIT_EXPECT_EQ(test, seen.unmaps, 0);
	fmr_unbind_ok(&c, &f);
	KUNIT_EXPECT_EQ(test, seen.unmaps, 1);

	/* An invalidation by the peer is known when its message has completed. */
	fmr_bind_ok(&c, &f, p);
	kd_recv(c.a, 0, 64, 1);
	KD_ASSERT_OK(test, dat_ep_post_send_with_invalidate(c.p->ep, 1, &seg, kd_cookie(2),
							    0, DAT_TRUE, f.rkey));
	kd_expect_dto(test, c.a->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(test, seen.maps, 2);
	KUNIT_EXPECT_EQ(test, seen.unmaps, 2);
	kd_expect_dto(test, c.p->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

/* Software devices take memory as it is. */
static void L7_lmr_sync_req(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct ib_device *dev = kd_device(test, s->name);

	if (ib_uses_virt_dma(dev))
		KUNIT_EXPECT_FALSE(test, kd_needs_syncs(s));
	else
		KUNIT_EXPECT_EQ(test, kd_needs_syncs(s),
				dma_max_mapping_size(dev->dma_device) != SIZE_MAX);
}

/* ---- Memory of PCI devices ------------------------------------------------------ */

#if IS_ENABLED(CONFIG_PCI_P2PDMA)
/* A page that looks like one of a PCI device. */
static struct page *pci_page(struct kunit *test)
{
	struct dev_pagemap *map = kunit_kzalloc(test, sizeof(*map), GFP_KERNEL);
	struct page *page = kunit_kzalloc(test, sizeof(*page), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, map);
	KUNIT_ASSERT_NOT_NULL(test, page);
	map->type = MEMORY_DEVICE_PCI_P2PDMA;
	set_page_zone(page, ZONE_DEVICE);
	/* That is where it is; the name of the member depends on the kernel. */
	*(struct dev_pagemap **)&page->lru = map;
	return page;
}

static void L7_memory_of_pci_devices(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct scatterlist sg;
	DAT_REGION_DESCRIPTION desc = { .for_platform = &sg };
	DAT_LMR_CONTEXT context;
	KDAT_SG_HANDLE map;
	DAT_LMR_TRIPLET iov;
	DAT_LMR_HANDLE lmr;
	DAT_COUNT n;

	sg_init_table(&sg, 1);
	sg_set_page(&sg, pci_page(test), PAGE_SIZE, 0);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_kcreate(c.a->ia, DAT_MEM_TYPE_PLATFORM, desc, PAGE_SIZE,
				      c.a->pz, DAT_MEM_PRIV_LOCAL_READ_FLAG,
				      DAT_VA_TYPE_VA, 0, &lmr, &context, NULL, NULL,
				      NULL));
	KD_ASSERT_OK(test, dat_lmr_allocate(c.a->ia, c.a->pz, 1, DAT_LMR_SCOPE_PZ,
					    &lmr));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_fmr(lmr, DAT_MEM_TYPE_PLATFORM, desc, 1,
				  DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA, c.a->ep,
				  kd_cookie(1), 0, &context, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      kdat_sg_map(c.a->ia, c.a->pz, &sg, 1, DMA_TO_DEVICE, 1, &iov, &n,
				  &map));
}
#else
static void L7_memory_of_pci_devices(struct kunit *test)
{
	kunit_skip(test, "this kernel has no P2PDMA");
}
#endif

#ifdef CONFIG_PCI
/* Map the first memory that a PCI device has. */
static void __iomem *pci_map(void)
{
	void __iomem *io = NULL;
	struct pci_dev *dev = NULL;
	int i;

	for_each_pci_dev(dev)
		for (i = 0; i < PCI_STD_NUM_BARS && !io; i++)
			if (pci_resource_flags(dev, i) & IORESOURCE_MEM &&
			    pci_resource_len(dev, i) >= PAGE_SIZE)
				io = ioremap(pci_resource_start(dev, i), PAGE_SIZE);
	return io;
}

/* It has no pages, so it is no memory for an LMR. */
static void L7_mapped_memory_of_pci_devices(struct kunit *test)
{
	struct kd_side *s = mem_make_pair(test, NULL).a;
	void __iomem *io = pci_map();
	DAT_REGION_DESCRIPTION desc = { .for_va = (void __force *)io };
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	if (!is_vmalloc_addr(desc.for_va)) {
		if (io)
			iounmap(io);
		kunit_skip(test, "there is no memory of a PCI device");
	}
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_kcreate(s->ia, DAT_MEM_TYPE_VIRTUAL, desc, PAGE_SIZE, s->pz,
				      DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA, 0, &lmr,
				      &context, NULL, NULL, NULL));
	iounmap(io);
}
#else
static void L7_mapped_memory_of_pci_devices(struct kunit *test)
{
	kunit_skip(test, "this kernel has no PCI");
}
#endif

static struct kunit_case dma_cases[] = {
	KUNIT_CASE_PARAM(L7_sends_and_receives, gen_kinds),
	KUNIT_CASE_PARAM(L7_buffers_of_an_srq, gen_kinds),
	KUNIT_CASE_PARAM(L7_writes, gen_kinds),
	KUNIT_CASE_PARAM(L7_reads, gen_kinds),
	KUNIT_CASE_PARAM(L7_reads_to_rmr, kd_gen_any_ia),
	KUNIT_CASE_PARAM(L7_fenced_sends, gen_kinds),
	KUNIT_CASE_PARAM(L7_bindings, kd_gen_any_ia),
	KUNIT_CASE_PARAM(L7_directions, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(L7_mapping_of_a_binding, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(L7_lmr_sync_req, kd_gen_any_ia),
	KUNIT_CASE_PARAM(L7_memory_of_pci_devices, kd_gen_any_ia),
	KUNIT_CASE_PARAM(L7_mapped_memory_of_pci_devices, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-dma", dma_cases, "memory on devices that do DMA");
