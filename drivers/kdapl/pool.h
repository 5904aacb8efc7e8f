/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pools of receive buffers: pool.c, and their memory: pool_block.c.
 */
#ifndef KDAPL_POOL_H
#define KDAPL_POOL_H

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <dat/kdat.h>
#include <dat/kdat_pool.h>

/*
 * struct kdapl_pool_block - registered pages, and the buffers in them
 * @link: entry in pool->blocks; pool->mutex
 * @addr: address of the first byte for the device
 * @retiring: buffers are not posted again when they return; pool->lock
 * @home: bit for each buffer that has returned since @retiring was set; pool->lock
 */
struct kdapl_pool_block {
	struct list_head link;
	struct page *pages;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_VADDR addr;
	bool retiring;
	unsigned long home;
	struct kdat_pool_buf bufs[];
};

/*
 * struct kdat_pool - a pool
 * @link: entry in kdapl_pools
 * @order: pages of a block, as a power of two
 * @at: offset of the first buffer of a block
 * @step: distance between buffers
 * @per_block: buffers of a block
 * @bufs: number of buffers; @mutex
 * @usable: number of buffers whose block does not retire; written under @mutex
 * @reserved: number of buffers that are reserved; @mutex
 * @extra: buffers that the low watermark has added; @mutex
 * @low: the low watermark; @mutex
 * @fired: the low watermark was crossed, and the queue has not been doubled for that
 * @ran_low: the low watermark was crossed, and the queue has not recovered; @mutex
 */
struct kdat_pool {
	struct list_head link;
	KDAT_POOL_ATTR attr;
	DAT_SRQ_HANDLE srq;
	unsigned int order;
	size_t at;
	size_t step;
	unsigned int per_block;
	struct mutex mutex;		/* the length */
	struct list_head blocks;
	unsigned int bufs;
	unsigned int usable;
	unsigned int reserved;
	unsigned int extra;
	unsigned int low;
	bool fired;
	bool ran_low;
	spinlock_t lock;		/* blocks that retire */
	struct delayed_work work;
};

void kdapl_pool_lay_out(struct kdat_pool *pool);
struct kdapl_pool_block *kdapl_pool_block_alloc(struct kdat_pool *pool);
void kdapl_pool_block_free(struct kdat_pool *pool, struct kdapl_pool_block *block);

#endif
