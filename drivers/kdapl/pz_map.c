// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of an LMR: from the consumer's description to DMA addresses.
 *
 * Every type of memory becomes a scatter list of pages, lmr->sgt, because a
 * vmalloc address means nothing to a device, and on the software devices a "DMA
 * address" is a kernel address that must have a struct page. The list is then
 * mapped for the device. Memory of the IA type was mapped by the consumer: its
 * list has one DMA address and no page, and is never mapped or unmapped here.
 *
 * dat_lmr_kcreate() builds and maps the list in two steps:
 * kdapl_region_build(), which allocates the list, and kdapl_region_map() (pz_dma.c).
 * dat_lmr_fmr(), which may be called in any context, refills the list of
 * dat_lmr_allocate() and maps it: kdapl_region_fill(). kdapl_region_unmap() undoes
 * both.
 *
 * The LMR owns the list.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "ia.h"
#include "pz.h"
#include "pz_lmr.h"

/* Return the page of a kernel virtual address, or NULL. */
static struct page *kdapl_virt_page(u64 addr)
{
	void *p = (void *)(uintptr_t)addr;
	struct page *page;

	if (is_vmalloc_addr(p)) {
		page = vmalloc_to_page(p);
		/* Memory mapped by ioremap() has no page. */
		return page && pfn_valid(page_to_pfn(page)) ? page : NULL;
	}
	return virt_addr_valid(p) ? virt_to_page(p) : NULL;
}

/* Return the page that begins at a physical address, or NULL. */
static struct page *kdapl_phys_page(u64 addr)
{
	if (!PAGE_ALIGNED(addr) || !pfn_valid(PHYS_PFN(addr)))
		return NULL;
	return pfn_to_page(PHYS_PFN(addr));
}

/*
 * Return page @i, in units of PAGE_SIZE, of the memory of @lmr, which is of
 * type VIRTUAL, PHYSICAL or PHYSICAL_VAR_PAGES; NULL if the address has no
 * page.
 */
static struct page *kdapl_region_page(const struct kdapl_lmr *lmr,
				      unsigned long i)
{
	const DAT_REGION_DESCRIPTION *region = &lmr->region;
	const DAT_PADDR *pages;
	unsigned long per;
	u64 addr, size;

	switch (lmr->mem_type) {
	case DAT_MEM_TYPE_VIRTUAL:
		addr = (uintptr_t)region->for_va & PAGE_MASK;
		return kdapl_virt_page(addr + ((u64)i << PAGE_SHIFT));
	case DAT_MEM_TYPE_PHYSICAL:
		return kdapl_phys_page(region->for_physical[i]);
	case DAT_MEM_TYPE_PHYSICAL_VAR_PAGES:
		pages = region->for_array.pages;
		size = region->for_array.page_size;
		per = size >> PAGE_SHIFT;
		addr = pages[i / per];
		if (addr & (size - 1))
			return NULL;
		return kdapl_phys_page(addr + ((u64)(i % per) << PAGE_SHIFT));
	default:
		return NULL;
	}
}

/*
 * Can @region describe @len bytes of memory of @type? kdapl_region_build() and
 * kdapl_region_fill() find out whether the memory exists. Context: Any.
 */
bool kdapl_region_ok(DAT_MEM_TYPE type, const DAT_REGION_DESCRIPTION *region,
		     u64 len)
{
	const DAT_PHYSICAL_VAR_PAGES *array = &region->for_array;
	u64 start;

	switch (type) {
	case DAT_MEM_TYPE_VIRTUAL:
		start = (uintptr_t)region->for_va;
		return start && len <= U64_MAX - start;
	case DAT_MEM_TYPE_IA:
		return len <= U64_MAX - region->for_ia;
	case DAT_MEM_TYPE_PHYSICAL:
		return region->for_physical;
	case DAT_MEM_TYPE_PHYSICAL_VAR_PAGES:
		return array->pages && array->page_size >= PAGE_SIZE &&
		       is_power_of_2(array->page_size);
	case DAT_MEM_TYPE_PLATFORM:
		return region->for_platform && sg_page(region->for_platform);
	default:
		return true;
	}
}

/* Return the address by which the consumer addresses the first byte of @lmr. */
static u64 kdapl_region_start(struct kdapl_lmr *lmr)
{
	switch (lmr->mem_type) {
	case DAT_MEM_TYPE_VIRTUAL:
		return (uintptr_t)lmr->region.for_va;
	case DAT_MEM_TYPE_PHYSICAL:
		return lmr->region.for_physical[0];
	default:
		return *(const DAT_PADDR *)lmr->region.for_array.pages;
	}
}

/* Return how many bytes in one piece can be mapped for @dev at once. */
static unsigned int kdapl_max_segment(struct ib_device *dev)
{
	unsigned int max = ib_dma_max_seg_size(dev);

	if (!ib_uses_virt_dma(dev))
		max = min_t(size_t, max, dma_max_mapping_size(dev->dma_device));
	return ALIGN_DOWN(max, PAGE_SIZE);
}

/* Build the scatter list of memory that kdapl_region_page() finds. */
static int kdapl_build_pages(struct kdapl_lmr *lmr)
{
	struct ib_device *dev = lmr->obj.ia->hca->dev;
	unsigned int offset, i, n;
	struct page **pages;
	int err = -EINVAL;

	lmr->va = kdapl_region_start(lmr);
	offset = offset_in_page(lmr->va);
	n = DIV_ROUND_UP_ULL(offset + lmr->len, PAGE_SIZE);
	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		pages[i] = kdapl_region_page(lmr, i);
		if (!kdapl_page_ok(pages[i]))
			goto out_free;
	}
	err = sg_alloc_table_from_pages_segment(&lmr->sgt, pages, n, offset,
						lmr->len,
						kdapl_max_segment(dev),
						GFP_KERNEL);
out_free:
	kvfree(pages);
	return err;
}

/*
 * Return how many of the @len bytes from @offset of a page on can be one entry of a list
 * for the device of @lmr.
 */
static u32 kdapl_entry_len(const struct kdapl_lmr *lmr, unsigned int offset, u32 len)
{
	return min(len, kdapl_max_segment(lmr->obj.ia->hca->dev) -
			(u32)offset_in_page(offset));
}

/* Build the scatter list from the first lmr->len bytes of @from. */
static int kdapl_build_list(struct kdapl_lmr *lmr, struct scatterlist *from)
{
	unsigned int max = kdapl_max_segment(lmr->obj.ia->hca->dev);
	struct scatterlist *sg, *to;
	u64 left = lmr->len;
	u32 done, len, part;
	unsigned int n = 0;
	int err;

	for (sg = from; sg && left; sg = sg_next(sg)) {
		if (!sg->length || !kdapl_page_ok(sg_page(sg)))
			return -EINVAL;
		len = min_t(u64, left, sg->length);
		n += DIV_ROUND_UP_ULL((u64)offset_in_page(sg->offset) + len, max);
		left -= len;
	}
	if (left)
		return -ERANGE;
	err = sg_alloc_table(&lmr->sgt, n, GFP_KERNEL);
	if (err)
		return err;
	left = lmr->len;
	to = lmr->sgt.sgl;
	for (sg = from; left; sg = sg_next(sg)) {
		len = min_t(u64, left, sg->length);
		for (done = 0; done < len; done += part, to = sg_next(to)) {
			part = kdapl_entry_len(lmr, sg->offset + done, len - done);
			sg_set_page(to, sg_page(sg), part, sg->offset + done);
		}
		left -= len;
	}
	return 0;
}

/*
 * Can the device use @addr as a DMA address of lmr->len bytes? A software device
 * dereferences the address, so it must be a valid kernel address.
 */
static bool kdapl_dma_ok(struct kdapl_lmr *lmr, u64 addr)
{
	return !ib_uses_virt_dma(lmr->obj.ia->hca->dev) ||
	       (virt_addr_valid((void *)(uintptr_t)addr) &&
		virt_addr_valid((void *)(uintptr_t)(addr + lmr->len - 1)));
}

/* Build the scatter list of memory that the consumer has mapped at @addr. */
static int kdapl_build_dma(struct kdapl_lmr *lmr, u64 addr)
{
	struct scatterlist *sg;
	int err;

	if (!kdapl_dma_ok(lmr, addr))
		return -EINVAL;
	err = sg_alloc_table(&lmr->sgt, 1, GFP_KERNEL);
	if (err)
		return err;
	sg = lmr->sgt.sgl;
	sg->length = lmr->len;
	sg_dma_address(sg) = addr;
	sg_dma_len(sg) = lmr->len;
	return 0;
}

/* Build the scatter list from the first lmr->len bytes of @origin. */
static int kdapl_build_lmr(struct kdapl_lmr *lmr, struct kdapl_lmr *origin)
{
	lmr->va = origin->va;
	if (!sg_page(origin->sgt.sgl))
		return kdapl_build_dma(lmr, sg_dma_address(origin->sgt.sgl));
	return kdapl_build_list(lmr, origin->sgt.sgl);
}

/**
 * kdapl_region_build - build the scatter list of an LMR
 * @lmr: mem_type, region and len are set and checked; this sets sgt and va
 * @origin: for the LMR type, the LMR that has the memory; the caller holds a use
 *
 * The release of the LMR frees the list.
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: 0; -EINVAL: @lmr->region describes no memory of this type; -ERANGE:
 * the memory is shorter than @lmr->len; or another errno
 */
int kdapl_region_build(struct kdapl_lmr *lmr, struct kdapl_lmr *origin)
{
	struct scatterlist *sg;

	lockdep_assert_held(&lmr->obj.ia->hca->sem);

	switch (lmr->mem_type) {
	case DAT_MEM_TYPE_LMR:
		return kdapl_build_lmr(lmr, origin);
	case DAT_MEM_TYPE_PLATFORM:
		sg = lmr->region.for_platform;
		lmr->va = sg_phys(sg);
		return kdapl_build_list(lmr, sg);
	case DAT_MEM_TYPE_IA:
		lmr->va = lmr->region.for_ia;
		return kdapl_build_dma(lmr, lmr->va);
	default:
		return kdapl_build_pages(lmr);
	}
}

/*
 * Make the memory of @lmr, whose pieces are whole pages inside, visible to the CPU in one
 * piece, lmr->whole. Context: Process context.
 */
int kdapl_region_join(struct kdapl_lmr *lmr)
{
	unsigned int n, i = 0;
	struct sg_page_iter at;
	struct page **pages;

	if (lmr->mem_type == DAT_MEM_TYPE_VIRTUAL) {
		lmr->whole = lmr->region.for_va;
		return 0;
	}
	n = DIV_ROUND_UP_ULL(offset_in_page(lmr->sgt.sgl->offset) + lmr->len, PAGE_SIZE);
	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for_each_sgtable_page(&lmr->sgt, &at, 0)
		if (i < n)
			pages[i++] = sg_page_iter_page(&at);
	lmr->vmapped = vmap(pages, i, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	if (!lmr->vmapped)
		return -ENOMEM;
	lmr->whole = lmr->vmapped + offset_in_page(lmr->sgt.sgl->offset);
	return 0;
}

/* Undo kdapl_region_join(). Context: Process context. */
void kdapl_region_part(struct kdapl_lmr *lmr)
{
	vunmap(lmr->vmapped);
	lmr->vmapped = NULL;
	lmr->whole = NULL;
}

/*
 * Enter @len bytes of @page in @sg, the next entry of the list of @lmr, to be mapped with
 * the others.
 */
static int kdapl_fill_add(struct kdapl_lmr *lmr, struct scatterlist *sg,
			  struct page *page, u32 offset, u32 len)
{
	if (!kdapl_page_ok(page))
		return -EINVAL;
	sg_set_page(sg, page, len, offset);
	lmr->sgt.nents++;
	lmr->len += len;
	return 0;
}

/*
 * Fill the list of @lmr with all of @from, which may begin and end inside a page: only
 * the bytes of @from are registered. @max is the limit in pages.
 */
static int kdapl_fill_list(struct kdapl_lmr *lmr, struct scatterlist *from,
			   u64 max)
{
	struct scatterlist *to = lmr->sgt.sgl;
	u32 done, part;
	u64 pages = 0;
	int err;

	lmr->va = sg_phys(from);
	for (; from; from = sg_next(from)) {
		pages += DIV_ROUND_UP(offset_in_page(from->offset) +
				      from->length, PAGE_SIZE);
		if (pages > max || !from->length)
			return -EINVAL;
		for (done = 0; done < from->length; done += part, to = sg_next(to)) {
			part = kdapl_entry_len(lmr, from->offset + done,
					       from->length - done);
			err = kdapl_fill_add(lmr, to, sg_page(from),
					     from->offset + done, part);
			if (err)
				return err;
		}
	}
	return 0;
}

/* Fill the list of @lmr with @n pages that kdapl_region_page() finds. */
static int kdapl_fill_pages(struct kdapl_lmr *lmr, u64 n)
{
	struct scatterlist *to = lmr->sgt.sgl;
	struct page *page;
	int err;
	u64 i;

	for (i = 0; i < n; i++, to = sg_next(to)) {
		page = kdapl_region_page(lmr, i);
		err = kdapl_fill_add(lmr, to, page, 0, PAGE_SIZE);
		if (err)
			return err;
	}
	return 0;
}

/* Fill the list of @lmr with memory that the consumer has mapped at @addr. */
static int kdapl_fill_dma(struct kdapl_lmr *lmr, u64 addr, u64 n)
{
	struct scatterlist *sg = lmr->sgt.sgl;

	lmr->va = addr;
	lmr->len = n << PAGE_SHIFT;
	if (!kdapl_dma_ok(lmr, addr))
		return -EINVAL;
	sg_dma_address(sg) = addr;
	sg_dma_len(sg) = lmr->len;
	lmr->sgt.nents = 1;
	lmr->entries = 0;
	WRITE_ONCE(lmr->sync, false);
	return 0;
}

/**
 * kdapl_region_fill - refill and map the scatter list of an FMR
 * @lmr: LMR of dat_lmr_allocate(), whose list has room; mem_type, region and priv are set
 *	and checked; this sets sgt, va and len
 * @n: number of pages
 *
 * The caller has claimed the LMR and so owns the list, so this needs no lock, however
 * long it takes. The caller then sets lmr->mapped, so that kdapl_region_unmap_locked()
 * undoes it, or calls kdapl_region_unfill().
 *
 * Context: Any; RCU read-side section in which the device was found not to be leaving.
 * Return: 0; -EINVAL: @lmr->region describes no memory of this type; -EIO: the
 * memory cannot be mapped
 */
int kdapl_region_fill(struct kdapl_lmr *lmr, u64 n)
{
	const DAT_REGION_DESCRIPTION *region = &lmr->region;
	int err;

	switch (lmr->mem_type) {
	case DAT_MEM_TYPE_PLATFORM:
		err = kdapl_fill_list(lmr, region->for_platform, n);
		break;
	case DAT_MEM_TYPE_IA:
		return kdapl_fill_dma(lmr, region->for_ia, n);
	default:
		lmr->va = kdapl_region_start(lmr);
		err = kdapl_fill_pages(lmr, n);
	}
	return err ?: kdapl_dma_map(lmr, lmr->sgt.nents);
}
