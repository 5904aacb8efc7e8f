// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_kunit.ko: a block device in memory, see blk_backing.h.
 */
#include <linux/bvec.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "blk_backing.h"

static void backing_transfer(struct backing *backing, struct bio *bio)
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

static void backing_serve(struct backing *backing, struct bio *bio)
{
	if (bio->bi_opf & REQ_PREFLUSH) {
		atomic_inc(&backing->flushes);
		bio->bi_status = READ_ONCE(backing->flush_status);
	}
	/* This device does without FUA what the block layer does for others. */
	if (bio->bi_opf & REQ_FUA && !bdev_fua(bio->bi_bdev))
		bio->bi_status = READ_ONCE(backing->flush_status);
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

static void backing_unplug(struct blk_plug_cb *cb, bool from_schedule)
{
	struct backing *backing = cb->data;

	atomic_inc(&backing->unplugs);
	kfree(cb);
}

static void backing_submit(struct bio *bio)
{
	struct backing *backing = bio->bi_bdev->bd_disk->private_data;
	bool held;

	/* There is one callback for all requests of a plug. */
	blk_check_plugged(backing_unplug, backing, sizeof(struct blk_plug_cb));
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
void kdb_backing_hold(struct backing *backing, bool hold)
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
EXPORT_SYMBOL_GPL(kdb_backing_hold);

/* Return how many of the requests that are held begin at @sector or behind it. */
unsigned int kdb_backing_held_from(struct backing *backing, sector_t sector)
{
	unsigned int n = 0;
	struct bio *bio;

	spin_lock_irq(&backing->lock);
	bio_list_for_each(bio, &backing->held)
		n += bio->bi_iter.bi_sector >= sector;
	spin_unlock_irq(&backing->lock);
	return n;
}
EXPORT_SYMBOL_GPL(kdb_backing_held_from);

/* Hold no further requests; those that are held stay. */
void kdb_backing_pass(struct backing *backing)
{
	spin_lock_irq(&backing->lock);
	backing->hold = false;
	spin_unlock_irq(&backing->lock);
}
EXPORT_SYMBOL_GPL(kdb_backing_pass);

/* Have a write with FUA flushed. */
void kdb_backing_without_fua(struct backing *backing)
{
	struct request_queue *q = backing->disk->queue;
	struct queue_limits lim = queue_limits_start_update(q);

	lim.features &= ~BLK_FEAT_FUA;
	WARN_ON(queue_limits_commit_update(q, &lim));
}
EXPORT_SYMBOL_GPL(kdb_backing_without_fua);

/* Have the device be one of chunks of @io_min bytes, in stripes of @io_opt. */
void kdb_backing_stripe(struct backing *backing, unsigned int io_min, unsigned int io_opt)
{
	struct request_queue *q = backing->disk->queue;
	struct queue_limits lim = queue_limits_start_update(q);

	lim.io_min = io_min;
	lim.io_opt = io_opt;
	WARN_ON(queue_limits_commit_update(q, &lim));
}
EXPORT_SYMBOL_GPL(kdb_backing_stripe);

static bool is_mapped(const struct gendisk *disk)
{
	return str_has_prefix(disk->disk_name, "dm-");
}

/*
 * Return the unique identifier of the disk, which no disk that is sold can
 * have. That of a mapped device is the one of what it is mapped to.
 */
static int backing_unique_id(struct gendisk *disk, u8 id[16],
			     enum blk_unique_id type)
{
	if (type != BLK_UID_NAA)
		return -EINVAL;
	memset(id, 'k', 16);
	if (!is_mapped(disk))
		id[0] = disk->disk_name[strlen(disk->disk_name) - 1];
	return 16;
}

static const struct block_device_operations backing_ops = {
	.owner = THIS_MODULE,
	.submit_bio = backing_submit,
	.get_unique_id = backing_unique_id,
};

/* Those that there are, by their number */
static struct backing *backings[4];

/* Complete all requests that any of the devices holds, and all later ones. */
void kdb_backings_release(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(backings); i++)
		if (backings[i])
			kdb_backing_hold(backings[i], false);
}
EXPORT_SYMBOL_GPL(kdb_backings_release);

static void backing_remove(void *data)
{
	struct backing *backing = data;
	int i;

	kdb_backing_hold(backing, false);
	for (i = 0; i < ARRAY_SIZE(backings); i++)
		if (backings[i] == backing)
			backings[i] = NULL;
	del_gendisk(backing->disk);
	put_disk(backing->disk);
	vfree(backing->data);
}

/*
 * Make the @n-th device; it goes when the case ends. Only the first writes zeroes, and
 * only the others never wait, so that the target uses them at once. The third and the
 * fourth look like mapped devices.
 */
struct backing *kdb_backing_make(struct kunit *test, int n)
{
	struct backing *backing = kunit_kzalloc(test, sizeof(*backing),
						GFP_KERNEL);
	struct queue_limits lim = {
		.logical_block_size = SECTOR_SIZE,
		.physical_block_size = SZ_4K,
		.max_write_zeroes_sectors = n ? 0 : SZ_256K >> SECTOR_SHIFT,
		.features = BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA |
			    (n ? BLK_FEAT_NOWAIT : 0),
	};

	KUNIT_ASSERT_NOT_NULL(test, backing);
	spin_lock_init(&backing->lock);
	bio_list_init(&backing->held);
	backing->data = vzalloc(BACKING_SIZE);
	KUNIT_ASSERT_NOT_NULL(test, backing->data);
	backing->disk = blk_alloc_disk(&lim, NUMA_NO_NODE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(backing->disk));
	snprintf(backing->disk->disk_name, sizeof(backing->disk->disk_name),
		 "%skdaplback%d", n > 1 ? "dm-" : "", n);
	backing->disk->fops = &backing_ops;
	backing->disk->private_data = backing;
	backing->disk->flags = GENHD_FL_NO_PART;
	set_capacity(backing->disk, BACKING_SIZE >> SECTOR_SHIFT);
	KUNIT_ASSERT_EQ(test, 0, add_disk(backing->disk));
	backings[n] = backing;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, backing_remove,
							   backing));
	return backing;
}
EXPORT_SYMBOL_GPL(kdb_backing_make);

MODULE_DESCRIPTION("What the suites of the block device share");
MODULE_LICENSE("Dual BSD/GPL");
