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
 * kdapl_region_build(), which allocates the list, and kdapl_region_map().
 * dat_lmr_fmr(), which may be called in any context, refills the list of
 * dat_lmr_allocate() and maps it page by page: kdapl_region_fill().
 * kdapl_region_unmap() undoes both.
 *
 * The LMR owns the list. dat_rmr_bind() takes its part from it with
 * kdapl_region_slice(), and the sync calls walk it. lmr->lock protects
 * lmr->mapped.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "ia.h"
#include "mem.h"

/* Return the page of a kernel virtual address, or NULL. */
static struct page *kdapl_virt_page(u64 addr)
{
	void *p = (void *)(uintptr_t)addr;

	if (is_vmalloc_addr(p))
		return vmalloc_to_page(p);
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
 * Return whether @region is a possible description of @len bytes of memory of
 * @type. Whether the memory exists is found by kdapl_region_build() and
 * kdapl_region_fill(). Context: Any.
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

/*
 * Return the address of the first byte, by which the consumer addresses @lmr.
 */
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
		if (!pages[i])
			goto out_free;
	}
	err = sg_alloc_table_from_pages_segment(&lmr->sgt, pages, n, offset,
						lmr->len,
						ib_dma_max_seg_size(dev),
						GFP_KERNEL);
out_free:
	kvfree(pages);
	return err;
}

/* Build the scatter list from the first lmr->len bytes of @from. */
static int kdapl_build_list(struct kdapl_lmr *lmr, struct scatterlist *from)
{
	struct scatterlist *sg, *to;
	u64 left = lmr->len;
	unsigned int n = 0;
	u32 len;
	int err;

	for (sg = from; sg && left; sg = sg_next(sg), n++) {
		if (!sg->length || !sg_page(sg))
			return -EINVAL;
		left -= min_t(u64, left, sg->length);
	}
	if (left)
		return -ERANGE;
	err = sg_alloc_table(&lmr->sgt, n, GFP_KERNEL);
	if (err)
		return err;
	left = lmr->len;
	to = lmr->sgt.sgl;
	for (sg = from; left; sg = sg_next(sg), to = sg_next(to)) {
		len = min_t(u64, left, sg->length);
		sg_set_page(to, sg_page(sg), len, sg->offset);
		left -= len;
	}
	return 0;
}

/*
 * Return whether the device can use @addr as a DMA address of lmr->len bytes. A
 * software device dereferences the address, so it must be a valid kernel
 * address.
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
 * @lmr: mem_type, region and len are set and checked; sgt and va get set
 * @origin: for the LMR type, the LMR that has the memory; the caller holds a
 *	use
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
 * Map the scatter list that kdapl_region_build() built for the device. Return 0
 * or an errno. Context: Process context, within kdapl_hca_enter().
 */
int kdapl_region_map(struct kdapl_lmr *lmr)
{
	int err;

	lockdep_assert_held(&lmr->obj.ia->hca->sem);

	if (!sg_page(lmr->sgt.sgl))
		return 0;
	err = ib_dma_map_sgtable_attrs(lmr->obj.ia->hca->dev, &lmr->sgt,
				       DMA_BIDIRECTIONAL, 0);
	if (!err)
		lmr->mapped = true;
	return err;
}

/*
 * Map @len bytes of @page for the device and put them into @sg, the next entry
 * of the list of @lmr. Entries beyond sgt.nents are not unmapped after an
 * error.
 */
static int kdapl_fill_add(struct kdapl_lmr *lmr, struct scatterlist *sg,
			  struct page *page, u32 offset, u32 len)
{
	struct ib_device *dev = lmr->obj.ia->hca->dev;
	u64 addr;

	if (!page)
		return -EINVAL;
	addr = ib_dma_map_page(dev, page, offset, len, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(dev, addr))
		return -EIO;
	sg_dma_address(sg) = addr;
	sg_dma_len(sg) = len;
	lmr->sgt.nents++;
	lmr->len += len;
	return 0;
}

/*
 * Fill the list of @lmr with all of @from, which may begin and end inside a
 * page: only the bytes of @from are registered. @max is the limit in pages.
 */
static int kdapl_fill_list(struct kdapl_lmr *lmr, struct scatterlist *from,
			   u64 max)
{
	struct scatterlist *to = lmr->sgt.sgl;
	u64 pages = 0;
	int err;

	lmr->va = sg_phys(from);
	for (; from; from = sg_next(from), to = sg_next(to)) {
		pages += DIV_ROUND_UP(offset_in_page(from->offset) +
				      from->length, PAGE_SIZE);
		if (pages > max || !from->length)
			return -EINVAL;
		err = kdapl_fill_add(lmr, to, sg_page(from), from->offset,
				     from->length);
		if (err)
			return err;
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

/**
 * kdapl_region_fill - refill and map the scatter list of an FMR
 * @lmr: LMR of dat_lmr_allocate(), whose list has room; mem_type and region are
 *	set and checked; sgt, va and len get set
 * @n: number of pages
 *
 * The caller undoes a fill that failed half way with kdapl_region_unmap().
 *
 * Context: Any; lmr->lock is held.
 * Return: 0; -EINVAL: @lmr->region describes no memory of this type; -EIO: the
 * memory cannot be mapped
 */
int kdapl_region_fill(struct kdapl_lmr *lmr, u64 n)
{
	const DAT_REGION_DESCRIPTION *region = &lmr->region;
	struct scatterlist *sg = lmr->sgt.sgl;

	lockdep_assert_held(&lmr->lock);

	lmr->mapped = true;
	switch (lmr->mem_type) {
	case DAT_MEM_TYPE_PLATFORM:
		return kdapl_fill_list(lmr, region->for_platform, n);
	case DAT_MEM_TYPE_IA:
		lmr->mapped = false;
		lmr->va = region->for_ia;
		lmr->len = n << PAGE_SHIFT;
		if (!kdapl_dma_ok(lmr, lmr->va))
			return -EINVAL;
		sg_dma_address(sg) = lmr->va;
		sg_dma_len(sg) = lmr->len;
		lmr->sgt.nents = 1;
		return 0;
	default:
		lmr->va = kdapl_region_start(lmr);
		return kdapl_fill_pages(lmr, n);
	}
}

/*
 * Undo kdapl_region_fill(), if that was done. kdapl_lmr_strip() takes the lock as
 * well, so what is mapped here is mapped on a device that is present. Context: Any;
 * lmr->lock is held.
 */
void kdapl_region_unmap_locked(struct kdapl_lmr *lmr)
{
	struct ib_device *dev = lmr->obj.ia->hca->dev;
	struct scatterlist *sg;
	int i;

	lockdep_assert_held(&lmr->lock);

	if (!lmr->mapped)
		return;
	lmr->mapped = false;
	/* kdapl_fill_add() has mapped each entry by itself. */
	for_each_sgtable_dma_sg(&lmr->sgt, sg, i)
		ib_dma_unmap_page(dev, sg_dma_address(sg), sg_dma_len(sg),
				  DMA_BIDIRECTIONAL);
}

/*
 * Undo kdapl_region_map() or kdapl_region_fill(). Of two concurrent callers
 * only one finds ->mapped set. Context: Process context; hca->sem is held.
 */
void kdapl_region_unmap(struct kdapl_lmr *lmr)
{
	struct ib_device *dev = lmr->obj.ia->hca->dev;
	unsigned long flags;
	bool mapped;

	lockdep_assert_held(&lmr->obj.ia->hca->sem);

	/*
	 * kdapl_lmr_sync() walks the list under the same lock, so it either is
	 * finished or finds ->mapped cleared.
	 */
	spin_lock_irqsave(&lmr->lock, flags);
	if (lmr->fmr)
		kdapl_region_unmap_locked(lmr);
	mapped = lmr->mapped;
	lmr->mapped = false;
	spin_unlock_irqrestore(&lmr->lock, flags);
	if (mapped)
		ib_dma_unmap_sgtable_attrs(dev, &lmr->sgt, DMA_BIDIRECTIONAL,
					   0);
}

/*
 * Return whether the memory of @lmr, which is mapped, is one range of DMA
 * addresses.
 */
bool kdapl_region_contiguous(struct kdapl_lmr *lmr)
{
	u64 next = sg_dma_address(lmr->sgt.sgl);
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(&lmr->sgt, sg, i) {
		if (sg_dma_address(sg) != next)
			return false;
		next += sg_dma_len(sg);
	}
	return true;
}

/**
 * kdapl_region_slice - copy out the DMA addresses of a part of an LMR
 * @lmr: the LMR, mapped; a use by the caller keeps the mapping
 * @offset: first byte of the part
 * @len: length of the part in bytes; the part lies inside the LMR
 * @to: table to be filled in; nents is set
 * @max: entries that @to has room for
 *
 * Context: Any.
 * Return: 0, or -ERANGE if the part has more pieces than @max
 */
int kdapl_region_slice(struct kdapl_lmr *lmr, u64 offset, u64 len,
		       struct sg_table *to, int max)
{
	struct scatterlist *sg, *dst = to->sgl;
	u64 take;
	int i, n = 0;

	for_each_sgtable_dma_sg(&lmr->sgt, sg, i) {
		if (!len)
			break;
		if (offset >= sg_dma_len(sg)) {
			offset -= sg_dma_len(sg);
			continue;
		}
		take = min_t(u64, len, sg_dma_len(sg) - offset);
		if (n && sg_dma_address(dst) + sg_dma_len(dst) ==
			 sg_dma_address(sg)) {
			/*
			 * Join adjoining pieces: a consumer's scatter list may
			 * have more pieces than pages, and @max counts pages.
			 */
			sg_dma_len(dst) += take;
		} else {
			if (n == max)
				return -ERANGE;
			dst = n++ ? sg_next(dst) : to->sgl;
			sg_dma_address(dst) = sg_dma_address(sg) + offset;
			sg_dma_len(dst) = take;
		}
		len -= take;
		offset = 0;
	}
	to->nents = n;
	return 0;
}
