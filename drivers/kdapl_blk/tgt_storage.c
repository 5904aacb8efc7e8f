// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where the bytes of a volume are stored: what is below loop devices.
 *
 * Entry points: kbt_storage_find() when a volume is opened, kbt_storage_overlaps() to compare
 * two of them.
 *
 * An open with O_EXCL fails if somebody else has claimed the block device. But a loop device
 * does not claim what is below it, which could therefore be exported as well, by another name.
 * Only sysfs tells, by its name, what is below. If the name leads nowhere any more, nothing is
 * known, and the loop device itself is taken for the storage.
 *
 * No state, no locks.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/namei.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/stat.h>
#include <linux/string.h>
#include "tgt_storage.h"

/* Limit on stacked loop devices */
#define KBT_LOOPS	8

/*
 * Read the line of attribute @name of the loop device that is @dev, or has the partition @dev,
 * to @buf of PATH_MAX bytes. Return false if there is no such loop device.
 */
static bool kbt_loop_line(dev_t dev, bool partition, const char *name, char *buf)
{
	struct file *file;
	loff_t pos = 0;
	ssize_t n;

	snprintf(buf, PATH_MAX, "/sys/dev/block/%u:%u/%sloop/%s", MAJOR(dev), MINOR(dev),
		 partition ? "../" : "", name);
	file = filp_open(buf, O_RDONLY, 0);
	if (IS_ERR(file))
		return false;
	n = kernel_read(file, buf, PATH_MAX - 1, &pos);
	filp_close(file, NULL);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

/* Return the number in attribute @name of a loop device, as for kbt_loop_line(); or 0. */
static u64 kbt_loop_number(dev_t dev, bool partition, const char *name, char *buf)
{
	u64 n;

	return kbt_loop_line(dev, partition, name, buf) && !kstrtou64(buf, 10, &n) ? n : 0;
}

/* Make what @storage is of the loop device @dev, or of its partition, a part of what is below. */
static void kbt_loop_shift(struct kbt_storage *storage, dev_t dev, bool partition, char *buf)
{
	u64 offset = kbt_loop_number(dev, partition, "offset", buf);
	u64 limit = kbt_loop_number(dev, partition, "sizelimit", buf);

	if (limit)
		storage->end = min(storage->end, limit);
	storage->start += offset;
	if (check_add_overflow(storage->end, offset, &storage->end))
		storage->end = U64_MAX;
}

/*
 * Note the block device or file at @path. A file system may have several files of one inode
 * number, as btrfs in its subvolumes, so ask it for the numbers that stat() tells.
 */
static void kbt_storage_set(struct kbt_storage *storage, const struct path *path)
{
	const struct inode *inode = d_inode(path->dentry);
	struct kstat stat;

	if (S_ISBLK(inode->i_mode)) {
		storage->dev = inode->i_rdev;
		storage->ino = 0;
		return;
	}
	if (vfs_getattr(path, &stat, STATX_INO, AT_STATX_SYNC_AS_STAT)) {
		stat.dev = inode->i_sb->s_dev;
		stat.ino = inode->i_ino;
	}
	storage->dev = stat.dev;
	storage->ino = stat.ino;
}

/**
 * kbt_storage_find() - find what a volume is kept in
 * @file: block device or regular file, open
 * @storage: where to store the result
 *
 * Context: Process context, may sleep.
 */
void kbt_storage_find(struct file *file, struct kbt_storage *storage)
{
	struct inode *inode = file->f_mapping->host;
	char *buf = kmalloc(PATH_MAX, GFP_KERNEL);
	bool partition = S_ISBLK(inode->i_mode) && bdev_is_partition(I_BDEV(inode));
	struct block_device *bdev = partition ? I_BDEV(inode) : NULL;
	struct kbt_storage whole = { .end = U64_MAX };
	struct path below;
	dev_t dev;
	int i;

	*storage = whole;
	kbt_storage_set(storage, &file->f_path);
	if (partition) {
		whole.start = get_start_sect(bdev) << SECTOR_SHIFT;
		whole.end = whole.start + (bdev_nr_sectors(bdev) << SECTOR_SHIFT);
	}
	for (i = 0; buf && i < KBT_LOOPS && !storage->ino; i++) {
		dev = storage->dev;
		if (!kbt_loop_line(dev, partition, "backing_file", buf) ||
		    kern_path(buf, LOOKUP_FOLLOW, &below))
			break;
		kbt_storage_set(&whole, &below);
		path_put(&below);
		kbt_loop_shift(&whole, dev, partition, buf);
		partition = false;
		*storage = whole;
	}
	kfree(buf);
}

/* Return whether @a and @b have bytes in common, where O_EXCL does not tell. */
bool kbt_storage_overlaps(const struct kbt_storage *a, const struct kbt_storage *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->start < b->end && b->start < a->end;
}
