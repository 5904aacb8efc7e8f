/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Differences of the block layer between supported kernels: KBLK_MQ_FLAGS,
 * WQ_PERCPU, kblk_alloc_disk(), kblk_map_sg(), kblk_wait_quiesced() and kblk_rotational(),
 * chosen by compile-time probes.
 */
#ifndef KDAPL_BLK_COMPAT_H
#define KDAPL_BLK_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/workqueue.h>
#include <compat_probe.h>

/* Kernels without the flag always merge requests. */
#ifdef KDAPL_HAVE_BLK_MQ_F_SHOULD_MERGE
#define KBLK_MQ_FLAGS	BLK_MQ_F_SHOULD_MERGE
#else
#define KBLK_MQ_FLAGS	0
#endif

/* Kernels without the flag make a workqueue per CPU unless it has WQ_UNBOUND. */
#ifndef KDAPL_HAVE_WQ_PERCPU
#define WQ_PERCPU	0
#endif

/*
 * struct kblk_limits - limits of a disk; sizes in bytes
 * @block_size: logical block size
 * @physical_block_size: physical block size
 * @io_min: shortest transfer that suits the volume
 * @io_opt: long transfers should be a multiple of this; 0 if it is not known
 * @max_transfer: longest READ or WRITE
 * @pages: pages of a transfer, which may begin inside a page
 * @discard_granularity: 0 if discard is not supported
 * @max_discard: longest discard, 0 if not supported
 * @max_write_zeroes: longest write zeroes, 0 if not supported
 * @cache: the volume has a volatile write cache
 * @rotational: the medium rotates
 */
struct kblk_limits {
	u32 block_size;
	u32 physical_block_size;
	u32 io_min;
	u32 io_opt;
	u32 max_transfer;
	u32 pages;
	u32 discard_granularity;
	u32 max_discard;
	u32 max_write_zeroes;
	bool cache;
	bool rotational;
};

#ifdef KDAPL_HAVE_BLK_ALLOC_DISK_LIMITS
static inline struct gendisk *kblk_alloc_disk(struct blk_mq_tag_set *set,
					      const struct kblk_limits *limits,
					      void *queuedata)
{
	struct queue_limits lim = {
		.logical_block_size = limits->block_size,
		.physical_block_size = limits->physical_block_size,
		.io_min = limits->io_min,
		.io_opt = limits->io_opt,
		.max_hw_sectors = limits->max_transfer >> SECTOR_SHIFT,
		.max_segments = limits->pages,
		.virt_boundary_mask = PAGE_SIZE - 1,
		.discard_granularity = limits->discard_granularity,
		.max_hw_discard_sectors = limits->max_discard >> SECTOR_SHIFT,
		.max_write_zeroes_sectors =
			limits->max_write_zeroes >> SECTOR_SHIFT,
	};
	struct gendisk *disk;

#ifdef KDAPL_HAVE_QUEUE_LIMITS_FEATURES
	if (limits->cache)
		lim.features |= BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA;
	if (limits->rotational)
		lim.features |= BLK_FEAT_ROTATIONAL;
	disk = blk_mq_alloc_disk(set, &lim, queuedata);
#else
	disk = blk_mq_alloc_disk(set, &lim, queuedata);
	if (IS_ERR(disk))
		return disk;
	blk_queue_write_cache(disk->queue, limits->cache, limits->cache);
	if (!limits->rotational)
		blk_queue_flag_set(QUEUE_FLAG_NONROT, disk->queue);
#endif
	return disk;
}
#else
static inline struct gendisk *kblk_alloc_disk(struct blk_mq_tag_set *set,
					      const struct kblk_limits *limits,
					      void *queuedata)
{
	struct gendisk *disk = blk_mq_alloc_disk(set, queuedata);
	struct request_queue *q;

	if (IS_ERR(disk))
		return disk;
	q = disk->queue;
	blk_queue_logical_block_size(q, limits->block_size);
	blk_queue_physical_block_size(q, limits->physical_block_size);
	blk_queue_io_min(q, limits->io_min);
	blk_queue_io_opt(q, limits->io_opt);
	blk_queue_max_hw_sectors(q, limits->max_transfer >> SECTOR_SHIFT);
	blk_queue_max_segments(q, limits->pages);
	blk_queue_virt_boundary(q, PAGE_SIZE - 1);
	q->limits.discard_granularity = limits->discard_granularity;
	blk_queue_max_discard_sectors(q, limits->max_discard >> SECTOR_SHIFT);
	blk_queue_max_write_zeroes_sectors(q, limits->max_write_zeroes >>
					      SECTOR_SHIFT);
	blk_queue_write_cache(q, limits->cache, limits->cache);
	if (!limits->rotational)
		blk_queue_flag_set(QUEUE_FLAG_NONROT, q);
	return disk;
}
#endif

/* Enter the pages of @rq into @sg and return the number of entries. */
static inline int kblk_map_sg(struct request *rq, struct scatterlist *sg)
{
#ifdef KDAPL_HAVE_RQ_MAP_SG_QUEUE
	return blk_rq_map_sg(rq->q, rq, sg);
#else
	return blk_rq_map_sg(rq, sg);
#endif
}

/* Wait until the quiescing that blk_mq_quiesce_queue_nowait() has begun is complete. */
static inline void kblk_wait_quiesced(struct request_queue *q)
{
#ifdef KDAPL_HAVE_WAIT_QUIESCE_DONE_SET
	blk_mq_wait_quiesce_done(q->tag_set);
#else
	blk_mq_wait_quiesce_done(q);
#endif
}

static inline bool kblk_rotational(struct block_device *bdev)
{
#ifdef KDAPL_HAVE_BDEV_NONROT
	return !bdev_nonrot(bdev);
#else
	return bdev_rot(bdev);
#endif
}

#endif /* KDAPL_BLK_COMPAT_H */
