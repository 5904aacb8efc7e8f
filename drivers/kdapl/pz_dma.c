// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of an LMR: mapped for the device, synced, unmapped.
 *
 * The direction of a mapping follows from the privileges. A mapping lives as long as
 * the LMR or the binding, so memory that the CPU or the device has written is synced
 * part by part: when a request or receive is entered in its queue, when it has completed
 * (dto_sync.c), and by dat_lmr_sync_rdma_read() and
 * dat_lmr_sync_rdma_write(). Mapping and unmapping themselves sync nothing:
 * two LMRs may have the same memory, and copying all of it would undo writes beside the
 * parts. Only the end of a binding syncs all of its pages.
 *
 * dat_rmr_bind() takes its part from the list with kdapl_region_slice(), and
 * kdapl_region_sync() walks it. lmr->lock protects lmr->mapped: a caller that finds it set
 * under the lock may call the driver, as kdapl_lmr_strip() clears it before the device
 * leaves.
 */
#include <linux/dma-mapping.h>
#include "ia.h"
#include "pz.h"
#include "pz_lmr.h"

/* Return how a device accesses memory that may be used with @priv. */
static enum dma_data_direction kdapl_dma_dir(DAT_MEM_PRIV_FLAGS priv)
{
	bool reads = priv & (DAT_MEM_PRIV_LOCAL_READ_FLAG |
			     DAT_MEM_PRIV_REMOTE_READ_FLAG);
	bool writes = priv & (DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
			      DAT_MEM_PRIV_REMOTE_WRITE_FLAG);

	if (reads && writes)
		return DMA_BIDIRECTIONAL;
	return writes ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
}

/* Return whether a part of the list of @lmr, which was just mapped, needs syncs. */
static bool kdapl_needs_sync(struct kdapl_lmr *lmr)
{
	struct ib_device *dev = lmr->obj.ia->hca->dev;
	struct scatterlist *sg;
	int i;

	if (!lmr->obj.ia->hca->dma_syncs)
		return false;
	for_each_sgtable_dma_sg(&lmr->sgt, sg, i)
		if (dma_need_sync(dev->dma_device, sg_dma_address(sg)))
			return true;
	return false;
}

/* Sync up to @n bytes at @at, and move @at. Return their number. */
static u64 kdapl_sync_piece(struct kdapl_lmr *lmr, struct kdapl_cursor *at, u64 n,
			    bool for_cpu)
{
	struct ib_device *dev = lmr->obj.ia->hca->dev;
	u64 addr = sg_dma_address(at->sg) + at->offset;

	n = min3(n, at->len, sg_dma_len(at->sg) - at->offset);
	if (for_cpu)
		ib_dma_sync_single_for_cpu(dev, addr, n, lmr->dir);
	else
		ib_dma_sync_single_for_device(dev, addr, n, lmr->dir);
	at->offset += n;
	at->len -= n;
	return n;
}

/*
 * Sync a section of the rest of @at, for the CPU or else for the device, if it is mapped:
 * at most *@room entries, and as many pages of memory. Reduce *@room by the larger of the
 * two. Return whether something is left.
 */
static bool kdapl_sync_section(struct kdapl_lmr *lmr, struct kdapl_cursor *at,
			       unsigned int *room, bool for_cpu)
{
	size_t bytes = *room * PAGE_SIZE;
	unsigned int n;

	lockdep_assert_held(&lmr->lock);

	/* The device has not written memory that it only reads. */
	if (!lmr->mapped || (for_cpu && lmr->dir == DMA_TO_DEVICE))
		return false;
	if (!at->sg)
		at->sg = lmr->sgt.sgl;
	for (n = 0; n < *room && at->len && bytes; n++) {
		if (at->i >= lmr->sgt.nents) {
			at->len = 0;
			break;
		}
		if (at->offset < sg_dma_len(at->sg)) {
			bytes -= kdapl_sync_piece(lmr, at, bytes, for_cpu);
			continue;
		}
		at->offset -= sg_dma_len(at->sg);
		at->sg = sg_next(at->sg);
		at->i++;
	}
	*room = min_t(unsigned int, *room - n, bytes / PAGE_SIZE);
	return at->len;
}

/*
 * A section has left @room. Return its count, plus the @done of earlier sections unless
 * interrupts were on in between.
 */
static unsigned int kdapl_sync_count(unsigned int done, unsigned int room)
{
	done = KDAPL_SECTION - room + (irqs_disabled() ? done : 0);
	kdapl_section(done);
	return done;
}

/*
 * Sync @len bytes of @lmr from @offset on, for the CPU or else for the device, if the
 * mapping needs it and @lmr is still bound as @context. Context: Any.
 */
void kdapl_region_sync(struct kdapl_lmr *lmr, DAT_LMR_CONTEXT context, u64 offset, u64 len,
		       bool for_cpu)
{
	struct kdapl_cursor at = { .offset = offset, .len = len };
	unsigned int room, done = 0;
	unsigned long flags;
	bool more;

	if (!READ_ONCE(lmr->sync))
		return;
	do {
		room = KDAPL_SECTION;
		spin_lock_irqsave(&lmr->lock, flags);
		/* Another binding has another list. */
		more = lmr->context == context &&
		       kdapl_sync_section(lmr, &at, &room, for_cpu);
		spin_unlock_irqrestore(&lmr->lock, flags);
		done = kdapl_sync_count(done, room);
	} while (more);
}

/*
 * Sync the rest @at of @part, at most *@room as kdapl_sync_section() counts it. Return
 * whether something is left.
 */
static bool kdapl_part_section(const struct kdapl_part *part, struct kdapl_cursor *at,
			       unsigned int *room, bool for_cpu)
{
	struct kdapl_lmr *lmr;
	unsigned long flags;
	bool more = false;

	rcu_read_lock();
	lmr = kdapl_lmr_find(part->context);
	if (!lmr || !READ_ONCE(lmr->sync))
		goto out;
	spin_lock_irqsave(&lmr->lock, flags);
	if (!at->sg)
		at->offset = part->addr - (part->shifted ? lmr->shift : 0) - lmr->base;
	/* The memory of another binding was synced when that binding ended. */
	if (lmr->context == part->context && (at->sg || at->offset < lmr->len))
		more = kdapl_sync_section(lmr, at, room, for_cpu);
	spin_unlock_irqrestore(&lmr->lock, flags);
out:
	rcu_read_unlock();
	return more;
}

/*
 * Sync a part of an LMR, which may have no bytes, for the device. It may take long, so
 * the caller should have interrupts on. Context: Any.
 */
void kdapl_part_to_device(const struct kdapl_part *part)
{
	struct kdapl_cursor at = { .len = part->len };
	unsigned int room, done = 0;
	bool more;

	do {
		room = KDAPL_SECTION;
		more = kdapl_part_section(part, &at, &room, false);
		done = kdapl_sync_count(done, room);
	} while (more);
}

/**
 * kdapl_part_to_cpu - sync a part of an LMR for the CPU, a section at a time
 * @part: the part
 * @at: in the first call only its length is set
 * @room: objects that the caller's section may still sync; reduced
 *
 * Context: Any.
 * Return: whether something is left, for another section
 */
bool kdapl_part_to_cpu(const struct kdapl_part *part, struct kdapl_cursor *at,
		       unsigned int *room)
{
	return kdapl_part_section(part, at, room, true);
}

/* Return entry @n of a list. */
static struct scatterlist *kdapl_sg_entry(struct scatterlist *sg, unsigned int n)
{
	while (n--)
		sg = sg_next(sg);
	return sg;
}

/*
 * Map @n entries for the device, extended to whole pages: the first one then begins and
 * the last one ends with its page. A copy (swiotlb) keeps the place in the page only if
 * all of the page is mapped, and the device's address must differ from the consumer's in
 * whole pages. The memory beside has no key and is not synced. Return the number of DMA
 * addresses, or 0 or less.
 */
static int kdapl_dma_map_pages(struct kdapl_lmr *lmr, unsigned int n)
{
	struct scatterlist *first = lmr->sgt.sgl, *last = kdapl_sg_entry(first, n - 1);
	int nents;

	lmr->head = offset_in_page(first->offset);
	lmr->tail = -(last->offset + last->length) & ~PAGE_MASK;
	first->offset -= lmr->head;
	first->length += lmr->head;
	last->length += lmr->tail;
	nents = ib_dma_map_sg_attrs(lmr->obj.ia->hca->dev, first, n, lmr->dir,
				    DMA_ATTR_SKIP_CPU_SYNC);
	first->offset += lmr->head;
	first->length -= lmr->head;
	last->length -= lmr->tail;
	return nents;
}

/*
 * Cut the memory mapped beside @lmr off its DMA addresses; with @undo restore them as
 * mapped.
 */
static void kdapl_dma_trim(struct kdapl_lmr *lmr, bool undo)
{
	struct scatterlist *first = lmr->sgt.sgl;
	struct scatterlist *last = kdapl_sg_entry(first, lmr->sgt.nents - 1);

	if (undo) {
		sg_dma_address(first) -= lmr->head;
		sg_dma_len(first) += lmr->head;
		sg_dma_len(last) += lmr->tail;
	} else {
		sg_dma_address(first) += lmr->head;
		/*
		 * Without separate DMA lengths kdapl_dma_map_pages() has restored the
		 * lengths.
		 */
		if (IS_ENABLED(CONFIG_NEED_SG_DMA_LENGTH)) {
			sg_dma_len(first) -= lmr->head;
			sg_dma_len(last) -= lmr->tail;
		}
	}
}

/*
 * Map the first @n entries of the list of @lmr, which only the caller uses, for a device
 * that does not leave meanwhile. The caller syncs the memory (kdapl_region_sync()).
 * Return 0 or an errno. Context: Any.
 */
int kdapl_dma_map(struct kdapl_lmr *lmr, unsigned int n)
{
	int nents;

	lmr->dir = kdapl_dma_dir(lmr->priv);
	nents = kdapl_dma_map_pages(lmr, n);
	if (nents <= 0)
		return -EIO;
	lmr->sgt.nents = nents;
	lmr->entries = n;
	kdapl_dma_trim(lmr, false);
	WRITE_ONCE(lmr->sync, kdapl_needs_sync(lmr));
	return 0;
}

/* Undo kdapl_dma_map(). */
static void kdapl_dma_unmap(struct kdapl_lmr *lmr)
{
	kdapl_dma_trim(lmr, true);
	ib_dma_unmap_sg_attrs(lmr->obj.ia->hca->dev, lmr->sgt.sgl, lmr->entries,
			      lmr->dir, DMA_ATTR_SKIP_CPU_SYNC);
}

/*
 * Undo kdapl_region_fill(), or the mapping of an LMR whose ->mapped the caller has
 * cleared. Memory that the consumer has mapped has ->entries 0. Context: Any.
 */
void kdapl_region_unfill(struct kdapl_lmr *lmr)
{
	if (lmr->entries)
		kdapl_dma_unmap(lmr);
}

/*
 * Map the scatter list of kdapl_region_build() for the device. Return 0 or an errno.
 * Context: Process context, within kdapl_hca_enter().
 */
int kdapl_region_map(struct kdapl_lmr *lmr)
{
	int err;

	lockdep_assert_held(&lmr->obj.ia->hca->sem);

	if (!sg_page(lmr->sgt.sgl))
		return 0;
	err = kdapl_dma_map(lmr, lmr->sgt.orig_nents);
	if (err)
		return err;
	lmr->mapped = true;
	kdapl_region_sync(lmr, lmr->context, 0, lmr->len, false);
	return 0;
}

/*
 * Undo kdapl_region_fill(), if it was done. dto_sync.c has synced the memory that the
 * device has written. kdapl_lmr_strip() takes the lock, too, so a mapping found here is
 * on a device that is present. Context: Any.
 */
void kdapl_region_unmap_locked(struct kdapl_lmr *lmr)
{
	lockdep_assert_held(&lmr->lock);

	if (!lmr->mapped)
		return;
	lmr->mapped = false;
	kdapl_dma_unmap(lmr);
}

/*
 * Undo kdapl_region_map() or kdapl_region_fill(). Of two concurrent callers
 * only one finds ->mapped set. Context: Process context.
 */
void kdapl_region_unmap(struct kdapl_lmr *lmr)
{
	unsigned long flags;
	bool mapped;

	lockdep_assert_held(&lmr->obj.ia->hca->sem);

	/* Sync the written memory: nobody has if the binding has ended by itself. */
	if (lmr->fmr)
		kdapl_region_sync(lmr, lmr->context, 0, lmr->len, true);
	/*
	 * kdapl_region_sync() walks the list under this lock, so it has either finished
	 * or finds ->mapped cleared.
	 */
	spin_lock_irqsave(&lmr->lock, flags);
	if (lmr->fmr)
		kdapl_region_unmap_locked(lmr);
	mapped = lmr->mapped;
	lmr->mapped = false;
	spin_unlock_irqrestore(&lmr->lock, flags);
	if (mapped)
		kdapl_dma_unmap(lmr);
}

/* Is the memory of @lmr, which is mapped, one range of DMA addresses? */
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

/*
 * Return the DMA address of @len bytes of @lmr from @offset on, or 0 if they are in
 * several pieces. Context: Any.
 */
u64 kdapl_region_piece(struct kdapl_lmr *lmr, u64 offset, u64 len)
{
	struct scatterlist *sg;
	unsigned long flags;
	u64 addr = 0;
	int i;

	spin_lock_irqsave(&lmr->lock, flags);
	for_each_sgtable_dma_sg(&lmr->sgt, sg, i) {
		if (offset < sg_dma_len(sg)) {
			if (len <= sg_dma_len(sg) - offset)
				addr = sg_dma_address(sg) + offset;
			break;
		}
		offset -= sg_dma_len(sg);
	}
	spin_unlock_irqrestore(&lmr->lock, flags);
	return addr;
}

/**
 * kdapl_region_slice - copy out the DMA addresses of a part of an LMR
 * @lmr: the LMR, mapped; the caller's use keeps the mapping
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
