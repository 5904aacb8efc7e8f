/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where the bytes of a volume are stored: see tgt_storage.c. */
#ifndef KDAPL_BLK_TGT_STORAGE_H
#define KDAPL_BLK_TGT_STORAGE_H

#include <linux/types.h>

struct file;

/*
 * struct kbt_storage - a part of a file, or of a whole disk that is no loop device
 * @dev: the file system, or the disk
 * @ino: inode number of the file, or 0 for a device
 * @start: first byte of it that is the volume's
 * @end: first byte behind the volume, or U64_MAX
 */
struct kbt_storage {
	dev_t dev;
	u64 ino;
	u64 start;
	u64 end;
};

void kbt_storage_find(struct file *file, struct kbt_storage *storage);
bool kbt_storage_overlaps(const struct kbt_storage *a, const struct kbt_storage *b);

#endif /* KDAPL_BLK_TGT_STORAGE_H */
