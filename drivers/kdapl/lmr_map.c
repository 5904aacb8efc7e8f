// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of an LMR: from what the consumer describes to what a device can use.
 *
 * Every type of memory becomes one scatter list, made of whole pages wherever
 * possible: a vmalloc address means nothing to a device, and on the software
 * devices a "DMA address" is a kernel address that must have a struct page. The
 * list is then mapped for the device. Only what the IA type describes has been
 * mapped by the consumer already, so its list has a DMA address and no page.
 *
 * The list stays with the LMR: an RMR takes its part from it, and the sync calls
 * walk it.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "kdapl.h"

/* IB access flags for privileges. Local reading is always possible. */
int kdapl_mr_access(DAT_MEM_PRIV_FLAGS priv)
{
	int access = 0;

	if (priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
		access |= IB_ACCESS_LOCAL_WRITE;
	if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		access |= IB_ACCESS_REMOTE_READ;
	/* The verbs want the local right along with the remote one. */
	if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
		access |= IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE;
	return access;
}

/* Does the device register memory by work request? */
bool kdapl_can_register(const struct ib_device_attr *attrs)
{
	return attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS &&
	       attrs->max_fast_reg_page_list_len;
}

static struct page *kdapl_virt_page(u64 addr)
{
	void *p = (void *)(uintptr_t)addr;

	if (is_vmalloc_addr(p))
		return vmalloc_to_page(p);
	return virt_addr_valid(p) ? virt_to_page(p) : NULL;
}

static struct page *kdapl_phys_page(u64 addr)
{
	if (!PAGE_ALIGNED(addr) || !pfn_valid(PHYS_PFN(addr)))
		return NULL;
	return pfn_to_page(PHYS_PFN(addr));
}

/*
 * A page of VIRTUAL, PHYSICAL or PHYSICAL_VAR_PAGES memory, counted in units of
 * PAGE_SIZE; NULL if there is none there.
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

/* Is there something to register, as far as can be told without a device? */
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

/* The first lmr->len bytes of a scatter list, which may be chained. */
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

/* A DMA address that is a kernel address will be followed. */
static bool kdapl_dma_ok(struct kdapl_lmr *lmr, u64 addr)
{
	return !ib_uses_virt_dma(lmr->obj.ia->hca->dev) ||
	       (virt_addr_valid((void *)(uintptr_t)addr) &&
		virt_addr_valid((void *)(uintptr_t)(addr + lmr->len - 1)));
}

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

static int kdapl_build_lmr(struct kdapl_lmr *lmr, struct kdapl_lmr *origin)
{
	lmr->va = origin->va;
	if (!sg_page(origin->sgt.sgl))
		return kdapl_build_dma(lmr, sg_dma_address(origin->sgt.sgl));
	return kdapl_build_list(lmr, origin->sgt.sgl);
}

/**
 * kdapl_region_build - make the scatter list of an LMR
 * @lmr: mem_type, region and len are set and checked; sgt and va get set
 * @origin: for the LMR type, the LMR; used by the caller
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: 0; -EINVAL: no memory of this type there; -ERANGE: it is shorter than
 * len; or another errno.
 */
int kdapl_region_build(struct kdapl_lmr *lmr, struct kdapl_lmr *origin)
{
	struct scatterlist *sg;

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

/* Map the scatter list for the device. The same rules. */
int kdapl_region_map(struct kdapl_lmr *lmr)
{
	int err;

	if (!sg_page(lmr->sgt.sgl))
		return 0;
	err = ib_dma_map_sgtable_attrs(lmr->obj.ia->hca->dev, &lmr->sgt,
				       DMA_BIDIRECTIONAL, 0);
	if (!err)
		lmr->mapped = true;
	return err;
}

/*
 * The next entry of the list: @len bytes of @page, mapped for the device unless
 * the consumer has done that.
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
 * A scatter list is taken as it is, up to its end: it may begin and end inside
 * a page, and only these bytes are registered.
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
 * kdapl_region_fill - make and map the scatter list of an LMR that has room for it
 * @lmr: mem_type and region are set and checked; sgt, va and len get set. Its
 *	lock is held
 * @n: pages
 *
 * Context: Any.
 * Return: 0; -EINVAL: no memory of this type there; -EIO: it cannot be mapped.
 */
int kdapl_region_fill(struct kdapl_lmr *lmr, u64 n)
{
	const DAT_REGION_DESCRIPTION *region = &lmr->region;
	struct scatterlist *sg = lmr->sgt.sgl;

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

/* Undo either. hca->sem is held. */
void kdapl_region_unmap(struct kdapl_lmr *lmr)
{
	struct ib_device *dev = lmr->obj.ia->hca->dev;
	struct scatterlist *sg;
	unsigned long flags;
	bool mapped;
	int i;

	/* From here on the sync calls leave the memory alone. */
	spin_lock_irqsave(&lmr->lock, flags);
	mapped = lmr->mapped;
	lmr->mapped = false;
	spin_unlock_irqrestore(&lmr->lock, flags);
	if (!mapped)
		return;
	if (!lmr->fmr) {
		ib_dma_unmap_sgtable_attrs(dev, &lmr->sgt, DMA_BIDIRECTIONAL,
					   0);
		return;
	}
	/* Those were mapped one by one. */
	for_each_sgtable_dma_sg(&lmr->sgt, sg, i)
		ib_dma_unmap_page(dev, sg_dma_address(sg), sg_dma_len(sg),
				  DMA_BIDIRECTIONAL);
}

/* Is the memory one range for the device? */
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
 * kdapl_region_slice - DMA addresses of a part of an LMR
 * @lmr: the LMR, mapped
 * @offset: first byte
 * @len: bytes; inside the LMR
 * @to: table to be filled in; nents is set
 * @max: its size
 *
 * Context: Any.
 * Return: 0, or -ERANGE if the part has more pieces than @max.
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
			/* There may be more pieces than pages. */
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

/**
 * kdapl_mr_map - give an MR its pages and its address
 * @mr: an MR that is not registered
 * @sgt: the memory, with DMA addresses
 * @iova: address that the first byte is to have
 * @len: bytes in @sgt
 *
 * Context: Any.
 * Return: 0; -EOPNOTSUPP if the device cannot: the memory has a gap inside, too
 * many pages, or not the page offset of @iova; -EIO if it does not want to.
 */
int kdapl_mr_map(struct ib_mr *mr, struct sg_table *sgt, u64 iova, u64 len)
{
	int n;

	n = ib_map_mr_sg(mr, sgt->sgl, sgt->nents, NULL, PAGE_SIZE);
	if (n < 0)
		return -EIO;
	if (n != sgt->nents || mr->length != len)
		return -EOPNOTSUPP;
	if ((mr->iova ^ iova) & ~PAGE_MASK)
		return -EOPNOTSUPP;
	mr->iova = iova;
	return 0;
}

static void kdapl_lmr_sync(struct kdapl_lmr *lmr, u64 offset, u64 len,
			   bool for_cpu)
{
	struct ib_device *dev = lmr->obj.ia->hca->dev;
	struct scatterlist *sg;
	unsigned long flags;
	u64 addr, n;
	int i;

	spin_lock_irqsave(&lmr->lock, flags);
	if (!lmr->mapped)
		goto out;
	for_each_sgtable_dma_sg(&lmr->sgt, sg, i) {
		if (!len)
			break;
		if (offset >= sg_dma_len(sg)) {
			offset -= sg_dma_len(sg);
			continue;
		}
		addr = sg_dma_address(sg) + offset;
		n = min_t(u64, len, sg_dma_len(sg) - offset);
		if (for_cpu)
			ib_dma_sync_single_for_cpu(dev, addr, n,
						   DMA_BIDIRECTIONAL);
		else
			ib_dma_sync_single_for_device(dev, addr, n,
						      DMA_BIDIRECTIONAL);
		len -= n;
		offset = 0;
	}
out:
	spin_unlock_irqrestore(&lmr->lock, flags);
}

static DAT_RETURN kdapl_lmr_sync_all(DAT_IA_HANDLE ia_handle,
				     const DAT_LMR_TRIPLET *seg, u64 n,
				     bool for_cpu)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_lmr *lmr;
	struct kdapl_ia *ia;
	u64 offset;

	rcu_read_lock();
	ia = kdapl_find(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	else if (!seg)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	for (; ret == DAT_SUCCESS && n; n--, seg++) {
		if (!seg->segment_length)
			continue;
		lmr = kdapl_lmr_find(seg->lmr_context);
		/* Pairs with the release when the LMR was made or bound. */
		if (!lmr || lmr->obj.ia != ia || !smp_load_acquire(&lmr->valid)) {
			ret = DAT_ERROR(DAT_INVALID_PARAMETER,
					DAT_INVALID_ARG2);
			break;
		}
		offset = seg->virtual_address - lmr->base;
		if (offset > lmr->len || seg->segment_length > lmr->len - offset)
			ret = DAT_ERROR(DAT_INVALID_PARAMETER,
					DAT_INVALID_ARG2);
		else
			kdapl_lmr_sync(lmr, offset, seg->segment_length,
				       for_cpu);
	}
	rcu_read_unlock();
	return ret;
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle,
				  const DAT_LMR_TRIPLET *local_segments,
				  DAT_VLEN num_segments)
{
	return kdapl_lmr_sync_all(ia_handle, local_segments, num_segments,
				  false);
}
EXPORT_SYMBOL(dat_lmr_sync_rdma_read);

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
				   const DAT_LMR_TRIPLET *local_segments,
				   DAT_VLEN num_segments)
{
	return kdapl_lmr_sync_all(ia_handle, local_segments, num_segments,
				  true);
}
EXPORT_SYMBOL(dat_lmr_sync_rdma_write);
