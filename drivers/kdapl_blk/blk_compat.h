/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where the block layer differs between the kernels this is built for.
 */
#ifndef KDAPL_BLK_COMPAT_H
#define KDAPL_BLK_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <compat_probe.h>

/* Later kernels merge requests unasked. */
#ifdef KDAPL_HAVE_BLK_MQ_F_SHOULD_MERGE
#define KBLK_MQ_FLAGS	BLK_MQ_F_SHOULD_MERGE
#else
#define KBLK_MQ_FLAGS	0
#endif

/* A disk for @set; @max_transfer and @block_size in bytes. */
static inline struct gendisk *kblk_alloc_disk(struct blk_mq_tag_set *set,
					      unsigned int block_size,
					      unsigned int max_transfer,
					      void *queuedata)
{
#ifdef KDAPL_HAVE_BLK_ALLOC_DISK_LIMITS
	struct queue_limits lim = {
		.logical_block_size = block_size,
		.max_hw_sectors = max_transfer >> SECTOR_SHIFT,
	};

	return blk_mq_alloc_disk(set, &lim, queuedata);
#else
	struct gendisk *disk = blk_mq_alloc_disk(set, queuedata);

	if (IS_ERR(disk))
		return disk;
	blk_queue_logical_block_size(disk->queue, block_size);
	blk_queue_max_hw_sectors(disk->queue, max_transfer >> SECTOR_SHIFT);
	blk_queue_flag_set(QUEUE_FLAG_NONROT, disk->queue);
	return disk;
#endif
}

#endif /* KDAPL_BLK_COMPAT_H */
