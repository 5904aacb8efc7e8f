/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A block device in memory for cases: its flushes may fail, and its requests
 * may be held. It says that it has a cache, which must be flushed. Implemented in
 * blk_backing.c, kdapl_blk_kunit.ko.
 */
#ifndef KDAPL_KUNIT_BLK_BACKING_H
#define KDAPL_KUNIT_BLK_BACKING_H

#include <linux/blkdev.h>
#include "fixture.h"

#define BACKING_SIZE	SZ_1M
#define BACKING_0	"/dev/kdaplback0"
#define BACKING_1	"/dev/kdaplback1"
#define BACKING_2	"/dev/dm-kdaplback2"
#define BACKING_3	"/dev/dm-kdaplback3"

/*
 * struct backing - the device
 * @flush_status: the status of flushes
 * @hold: requests wait in @held
 * @held: requests that wait; protected by @lock
 * @nheld: number of requests in @held
 * @flushes: number of flushes requested
 * @zeroed: sectors of requests to write zeroes
 * @zero_flags: flags of the last such request
 * @unplugs: how many times requests were given over, one or several together
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
	atomic_t unplugs;
};

void kdb_backing_hold(struct backing *backing, bool hold);
unsigned int kdb_backing_held_from(struct backing *backing, sector_t sector);
void kdb_backing_pass(struct backing *backing);
void kdb_backings_release(void);
void kdb_backing_without_fua(struct backing *backing);
void kdb_backing_stripe(struct backing *backing, unsigned int io_min, unsigned int io_opt);
struct backing *kdb_backing_make(struct kunit *test, int n);

#endif /* KDAPL_KUNIT_BLK_BACKING_H */
