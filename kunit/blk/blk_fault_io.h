/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requests to a disk, one of each kind, some of which may fail, and what the disk contains
 * after that. Implemented in blk_fault_io.c, blk_fault_test.ko.
 */
#ifndef KDAPL_KUNIT_BLK_FAULT_IO_H
#define KDAPL_KUNIT_BLK_FAULT_IO_H

#include <linux/blkdev.h>
#include "fixture.h"

/*
 * struct area - a part of the disk
 * @piece: bytes of each segment; those of less than a page lie in pages of their own
 * @seed: of what the area contains, 0: zeroes
 * @maybe: pieces of it may contain this as well, since a write has failed
 */
struct area {
	sector_t sector;
	unsigned int len;
	unsigned int piece;
	u32 seed;
	u32 maybe;
};

#define AREAS	5
#define LARGE	SZ_256K		/* the longest request */

/*
 * struct world - a disk
 * @pattern: seed of the last write
 * @buf: memory of requests
 * @what: fails
 */
struct world {
	struct kunit *test;
	struct area areas[AREAS];
	u32 pattern;
	u8 *buf;
	const char *what;
};

void kdb_io_begin(struct world *w);
void kdb_io_fill(struct world *w, struct block_device *bdev);
int kdb_io_all(struct world *w, struct block_device *bdev, bool whole);

#endif /* KDAPL_KUNIT_BLK_FAULT_IO_H */
