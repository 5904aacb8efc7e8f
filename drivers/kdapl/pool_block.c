// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory of pools of receive buffers: blocks of registered pages. */
#include <linux/align.h>
#include <linux/blk_types.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include "pool.h"

#define KDAPL_POOL_BLOCK	SZ_32K

/* Return how many buffers a block of 2^@order pages has; the last may end within its step. */
static unsigned int kdapl_pool_fit(struct kdat_pool *pool, unsigned int order)
{
	size_t size = PAGE_SIZE << order;

	return min_t(size_t, (size - pool->at - pool->attr.length) / pool->step + 1,
		     BITS_PER_LONG);
}

/* Set how buffers lie in a block: data behind the header begins at a sector. */
void kdapl_pool_lay_out(struct kdat_pool *pool)
{
	unsigned int order, n;

	pool->at = ALIGN(pool->attr.header, SECTOR_SIZE) - pool->attr.header;
	pool->step = ALIGN(pool->attr.length, SECTOR_SIZE);
	order = get_order(max_t(size_t, KDAPL_POOL_BLOCK, pool->at + pool->attr.length));
	n = kdapl_pool_fit(pool, order);
	/* Take a larger block if it wastes less. */
	if (kdapl_pool_fit(pool, order + 1) > 2 * n)
		n = kdapl_pool_fit(pool, ++order);
	pool->order = order;
	pool->per_block = n;
}

void kdapl_pool_block_free(struct kdat_pool *pool, struct kdapl_pool_block *block)
{
	/* The device may still write into memory that dat_lmr_free() does not give back. */
	if (block->lmr && DAT_GET_TYPE(dat_lmr_free(block->lmr)) == DAT_INVALID_STATE)
		pr_err("%s: a connection does not end: %lu bytes are lost\n",
		       pool->attr.name, PAGE_SIZE << pool->order);
	else
		__free_pages(block->pages, pool->order);
	kfree(block);
}

struct kdapl_pool_block *kdapl_pool_block_alloc(struct kdat_pool *pool)
{
	DAT_REGION_DESCRIPTION region;
	struct kdapl_pool_block *block;
	DAT_RETURN ret;

	block = kzalloc(struct_size(block, bufs, pool->per_block), GFP_KERNEL);
	if (!block)
		return NULL;
	/* Consumers may take references to the pages, and drop them. */
	block->pages = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO | __GFP_NOWARN |
				   __GFP_RETRY_MAYFAIL, pool->order);
	if (!block->pages) {
		kfree(block);
		return NULL;
	}
	region.for_va = page_address(block->pages);
	ret = dat_lmr_kcreate(pool->attr.ia, DAT_MEM_TYPE_VIRTUAL, region,
			      PAGE_SIZE << pool->order, pool->attr.pz,
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA,
			      DAT_MEM_OPTIMIZE_DONT_CARE, &block->lmr, &block->context,
			      NULL, NULL, &block->addr);
	if (ret == DAT_SUCCESS)
		return block;
	block->lmr = NULL;
	kdapl_pool_block_free(pool, block);
	return NULL;
}
