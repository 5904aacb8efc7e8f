/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A block device in memory for cases: its flushes may fail, and its requests
 * may be held. It claims to have a cache that must be flushed.
 */
#ifndef KDAPL_KUNIT_BLK_BACKING_H
#define KDAPL_KUNIT_BLK_BACKING_H

#include <linux/blkdev.h>
#include <linux/bvec.h>
#include <linux/vmalloc.h>
#include "fixture.h"

#define BACKING_SIZE	SZ_1M
#define BACKING_0	"/dev/kdaplback0"
#define BACKING_1	"/dev/kdaplback1"

/*
 * struct backing - the device
 * @flush_status: the status of flushes
 * @hold: requests wait in @held
 * @held: requests that wait; protected by @lock
 * @nheld: number of requests in @held
 * @flushes: number of flushes requested
 * @zeroed: sectors of requests to write zeroes
 * @zero_flags: flags of the last such request
 */
struct backing {
	struct gendisk *disk;
	u8 *data;
	blk_status_t flush_status;
	spinlock_t lock;		/* see above */
	bool hold;
	struct bio_list held;
	atomic_t nheld;
	atomic_t flushes;
	atomic_t zeroed;
	blk_opf_t zero_flags;
};

static inline void backing_transfer(struct backing *backing, struct bio *bio)
{
	u8 *at = backing->data + (bio->bi_iter.bi_sector << SECTOR_SHIFT);
	struct bvec_iter iter;
	struct bio_vec bvec;

	bio_for_each_segment(bvec, bio, iter) {
		if (op_is_write(bio_op(bio)))
			memcpy_from_bvec(at, &bvec);
		else
			memcpy_to_bvec(&bvec, at);
		at += bvec.bv_len;
	}
}

static inline void backing_serve(struct backing *backing, struct bio *bio)
{
	if (bio->bi_opf & REQ_PREFLUSH) {
		atomic_inc(&backing->flushes);
		bio->bi_status = READ_ONCE(backing->flush_status);
	}
	if (bio_op(bio) == REQ_OP_WRITE_ZEROES) {
		atomic_add(bio_sectors(bio), &backing->zeroed);
		backing->zero_flags = bio->bi_opf;
		memset(backing->data + (bio->bi_iter.bi_sector << SECTOR_SHIFT),
		       0, bio->bi_iter.bi_size);
	} else if (bio_has_data(bio)) {
		backing_transfer(backing, bio);
	}
	bio_endio(bio);
}

static inline void backing_submit(struct bio *bio)
{
	struct backing *backing = bio->bi_bdev->bd_disk->private_data;
	bool held;

	spin_lock_irq(&backing->lock);
	held = backing->hold;
	if (held)
		bio_list_add(&backing->held, bio);
	spin_unlock_irq(&backing->lock);
	if (held)
		atomic_inc(&backing->nheld);
	else
		backing_serve(backing, bio);
}

/*
 * Hold all requests from now on, or complete those that are held and all later
 * ones.
 */
static inline void backing_hold(struct backing *backing, bool hold)
{
	struct bio_list held = BIO_EMPTY_LIST;
	struct bio *bio;

	spin_lock_irq(&backing->lock);
	backing->hold = hold;
	if (!hold) {
		held = backing->held;
		bio_list_init(&backing->held);
	}
	spin_unlock_irq(&backing->lock);
	while ((bio = bio_list_pop(&held))) {
		atomic_dec(&backing->nheld);
		backing_serve(backing, bio);
	}
}

/*
 * Return the unique identifier of the disk, which no disk that is sold can
 * have.
 */
static inline int backing_unique_id(struct gendisk *disk, u8 id[16],
				    enum blk_unique_id type)
{
	if (type != BLK_UID_NAA)
		return -EINVAL;
	memset(id, 'k', 16);
	id[0] = disk->disk_name[strlen(disk->disk_name) - 1];
	return 16;
}

static const struct block_device_operations backing_ops = {
	.owner = THIS_MODULE,
	.submit_bio = backing_submit,
	.get_unique_id = backing_unique_id,
};

static inline void backing_remove(void *data)
{
	struct backing *backing = data;

	backing_hold(backing, false);
	del_gendisk(backing->disk);
	put_disk(backing->disk);
	vfree(backing->data);
}

/* Make the @n-th device; it goes when the case ends. Only the first writes zeroes. */
static inline struct backing *backing_make(struct kunit *test, int n)
{
	struct backing *backing = kunit_kzalloc(test, sizeof(*backing),
						GFP_KERNEL);
	struct queue_limits lim = {
		.logical_block_size = SECTOR_SIZE,
		.physical_block_size = SZ_4K,
		.max_write_zeroes_sectors = n ? 0 : SZ_256K >> SECTOR_SHIFT,
		.features = BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA,
	};

	KUNIT_ASSERT_NOT_NULL(test, backing);
	spin_lock_init(&backing->lock);
	bio_list_init(&backing->held);
	backing->data = vzalloc(BACKING_SIZE);
	KUNIT_ASSERT_NOT_NULL(test, backing->data);
	backing->disk = blk_alloc_disk(&lim, NUMA_NO_NODE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(backing->disk));
	snprintf(backing->disk->disk_name, sizeof(backing->disk->disk_name),
		 "kdaplback%d", n);
	backing->disk->fops = &backing_ops;
	backing->disk->private_data = backing;
	backing->disk->flags = GENHD_FL_NO_PART;
	set_capacity(backing->disk, BACKING_SIZE >> SECTOR_SHIFT);
	KUNIT_ASSERT_EQ(test, 0, add_disk(backing->disk));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, backing_remove,
							   backing));
	return backing;
}

#endif /* KDAPL_KUNIT_BLK_BACKING_H */
