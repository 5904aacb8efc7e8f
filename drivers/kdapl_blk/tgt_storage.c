// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where the bytes of a volume are stored: what is below loop devices and partitions.
 *
 * Entry points: kbt_storage_find() when a volume is opened, kbt_storage_overlaps() to compare
 * two of them.
 *
 * An open with O_EXCL fails if somebody else has claimed the block device. But a loop device
 * does not claim what is below it, which could therefore be exported as well, by another name.
 * Only sysfs tells, by its name, what is below. If the name leads nowhere any more, nothing is
 * known, and the loop device itself is taken for the storage. A loop device may have
 * partitions, and may be on one, so each partition counts as a part of its disk.
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
 * Read the line of attribute @name of the block device @dev to @buf of PATH_MAX bytes. Return
 * false if there is no such attribute.
 */
static bool kbt_block_line(dev_t dev, const char *name, char *buf)
{
	struct file *file;
	loff_t pos = 0;
	ssize_t n;

	snprintf(buf, PATH_MAX, "/sys/dev/block/%u:%u/%s", MAJOR(dev), MINOR(dev), name);
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

/* Return the number in attribute @name, as for kbt_block_line(); or 0. */
static u64 kbt_block_number(dev_t dev, const char *name, char *buf)
{
	u64 n;

	return kbt_block_line(dev, name, buf) && !kstrtou64(buf, 10, &n) ? n : 0;
}

/* Move @storage to what is below: at @offset of that begins what ends after @size, unless 0. */
static void kbt_storage_shift(struct kbt_storage *storage, u64 offset, u64 size)
{
	if (size)
		storage->end = min(storage->end, size);
	storage->start += offset;
	if (check_add_overflow(storage->end, offset, &storage->end))
		storage->end = U64_MAX;
}

/* If @storage is in a partition, make it a part of the whole disk. */
static void kbt_storage_whole(struct kbt_storage *storage, char *buf)
{
	dev_t dev = storage->dev;
	unsigned int major, minor;
	u64 start, size;

	if (!kbt_block_number(dev, "partition", buf))
		return;
	start = kbt_block_number(dev, "start", buf);
	size = kbt_block_number(dev, "size", buf);
	if (!kbt_block_line(dev, "../dev", buf) || sscanf(buf, "%u:%u", &major, &minor) != 2)
		return;
	storage->dev = MKDEV(major, minor);
	kbt_storage_shift(storage, start << SECTOR_SHIFT, size << SECTOR_SHIFT);
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

/* If @storage is in a loop device, make it a part of what is below. Return whether it was. */
static bool kbt_storage_below(struct kbt_storage *storage, char *buf)
{
	dev_t dev = storage->dev;
	struct path below;

	if (!kbt_block_line(dev, "loop/backing_file", buf) ||
	    kern_path(buf, LOOKUP_FOLLOW, &below))
		return false;
	kbt_storage_set(storage, &below);
	path_put(&below);
	kbt_storage_shift(storage, kbt_block_number(dev, "loop/offset", buf),
			  kbt_block_number(dev, "loop/sizelimit", buf));
	return true;
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
	char *buf = kmalloc(PATH_MAX, GFP_KERNEL);
	int i = 0;

	*storage = (struct kbt_storage) { .end = U64_MAX };
	kbt_storage_set(storage, &file->f_path);
	while (buf && !storage->ino) {
		kbt_storage_whole(storage, buf);
		if (i++ == KBT_LOOPS || !kbt_storage_below(storage, buf))
			break;
	}
	kfree(buf);
}

/* Return whether @a and @b have bytes in common, where O_EXCL does not tell. */
bool kbt_storage_overlaps(const struct kbt_storage *a, const struct kbt_storage *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->start < b->end && b->start < a->end;
}
