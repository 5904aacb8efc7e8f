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

/* Return whether the loop device @dev shows all of what is below it. */
static bool kbt_loop_is_whole(dev_t dev, bool partition, char *buf)
{
	if (partition)
		return false;
	if (kbt_loop_line(dev, false, "offset", buf) && strcmp(buf, "0"))
		return false;
	return !kbt_loop_line(dev, false, "sizelimit", buf) || !strcmp(buf, "0");
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
	struct path below;
	int i;

	kbt_storage_set(storage, &file->f_path);
	storage->part = false;
	for (i = 0; buf && i < KBT_LOOPS && !storage->ino; i++) {
		if (!kbt_loop_is_whole(storage->dev, partition, buf))
			storage->part = true;
		if (!kbt_loop_line(storage->dev, partition, "backing_file", buf) ||
		    kern_path(buf, LOOKUP_FOLLOW, &below))
			break;
		partition = false;
		kbt_storage_set(storage, &below);
		path_put(&below);
	}
	kfree(buf);
}

/*
 * Return whether @a and @b have bytes in common, where O_EXCL does not tell. Two parts of one
 * file or device are taken for different parts.
 */
bool kbt_storage_overlaps(const struct kbt_storage *a, const struct kbt_storage *b)
{
	return a->dev == b->dev && a->ino == b->ino && !(a->part && b->part);
}
