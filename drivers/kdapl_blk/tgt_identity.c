// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Derive the UUID of a volume from its backing store.
 *
 * Entry points: kbt_derive_uuid(), and kbt_identity_init() at module load.
 *
 * An initiator compares the UUID when it reconnects. Two volumes must therefore
 * never share a UUID, and a volume must keep its UUID for as long as it can be
 * recognised. Backing without a persistent identifier gets a UUID that includes
 * the boot ID of this host: after a reboot an initiator refuses the volume,
 * which is better than writing to a different one.
 *
 * No state but kbt_boot_id, which is constant after init; no locks.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/sha2.h>
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/statfs.h>
#include <linux/string.h>
#include <linux/uuid.h>
#include "tgt.h"

#define KBT_BOOT_ID	"/proc/sys/kernel/random/boot_id"

static uuid_t kbt_boot_id;

/*
 * struct kbt_backing - input of the digest that becomes the UUID
 * @kind: kind of backing; different kinds never give the same UUID
 * @within: UUID of the file system, or the boot ID
 * @id: identifier that the disk driver reports
 * @partition: UUID of the partition, as text
 * @a: inode number of a file; first sector of a partition
 * @b: inode generation of a file; sequence number of a disk without identifier
 * @c: subvolume of btrfs; device number of a file system without UUID
 */
struct kbt_backing {
	char kind[16];
	__u8 within[16];
	__u8 id[16];
	char partition[40];
	__le64 a;
	__le64 b;
	__le64 c;
} __packed;

/* Hash @backing into a UUID of version 8 ("custom"). */
static void kbt_digest(const struct kbt_backing *backing, uuid_t *uuid)
{
	u8 digest[SHA256_DIGEST_SIZE];

	sha256((const u8 *)backing, sizeof(*backing), digest);
	memcpy(uuid, digest, sizeof(*uuid));
	uuid->b[6] = (uuid->b[6] & 0x0f) | 0x80;
	uuid->b[8] = (uuid->b[8] & 0x3f) | 0x80;
}

/* ---- Block devices ------------------------------------------------------- */

/*
 * Return whether @disk is a mapped device. For these, kernels after 6.12 return the identifier
 * of the disk below, which all volumes on that disk share.
 */
static bool kbt_is_mapped(const struct gendisk *disk)
{
	return str_has_prefix(disk->disk_name, "dm-");
}

/* Ask the driver of @disk for an identifier; return false if it has none. */
static bool kbt_disk_id(struct gendisk *disk, struct kbt_backing *backing)
{
	static const enum blk_unique_id types[] = {
		BLK_UID_EUI64, BLK_UID_NAA, BLK_UID_T10
	};
	unsigned int i;

	if (!disk->fops->get_unique_id || kbt_is_mapped(disk))
		return false;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		if (disk->fops->get_unique_id(disk, backing->id, types[i]) > 0)
			return true;
		memset(backing->id, 0, sizeof(backing->id));
	}
	return false;
}

/*
 * Return whether @partition is the UUID of a partition of a GPT. With an MBR the kernel shows
 * the 32-bit signature of the disk and the number of the partition; disks with the same
 * signature are common, as it is copied with the boot sector.
 */
static bool kbt_is_gpt(const char *partition)
{
	return strlen(partition) == UUID_STRING_LEN;
}

static bool kbt_bdev_backing(struct block_device *bdev,
			     struct kbt_backing *backing)
{
	struct gendisk *disk = bdev->bd_disk;
	bool persistent;

	strscpy(backing->kind, "block device", sizeof(backing->kind));
	persistent = kbt_disk_id(disk, backing);
	if (bdev_is_partition(bdev)) {
		backing->a = cpu_to_le64(bdev->bd_start_sect);
		if (bdev->bd_meta_info) {
			strscpy(backing->partition, bdev->bd_meta_info->uuid,
				sizeof(backing->partition));
			persistent |= kbt_is_gpt(backing->partition);
		}
	}
	if (persistent)
		return true;
	/* diskseq is not reused before the next boot, and the boot ID differs after it. */
	export_uuid(backing->within, &kbt_boot_id);
	backing->b = cpu_to_le64(disk->diskseq);
	return false;
}

/* ---- Files --------------------------------------------------------------- */

static bool kbt_file_backing(struct file *file, struct kbt_backing *backing)
{
	struct inode *inode = file_inode(file);
	struct super_block *sb = inode->i_sb;
	struct kstatfs stat;

	strscpy(backing->kind, "file", sizeof(backing->kind));
	backing->a = cpu_to_le64(inode->i_ino);
	/* Inode numbers are reused; the generation tells the files apart. */
	backing->b = cpu_to_le64(inode->i_generation);
	if (uuid_is_null(&sb->s_uuid)) {
		export_uuid(backing->within, &kbt_boot_id);
		backing->c = cpu_to_le64(sb->s_dev);
		return false;
	}
	export_uuid(backing->within, &sb->s_uuid);
	/* Subvolumes of btrfs have separate inode numbers; f_fsid names the subvolume. */
	if (sb->s_magic == BTRFS_SUPER_MAGIC &&
	    !vfs_statfs(&file->f_path, &stat))
		backing->c = cpu_to_le64((u64)(u32)stat.f_fsid.val[0] << 32 |
					 (u32)stat.f_fsid.val[1]);
	return true;
}

/* ---- Block devices and files --------------------------------------------- */

/**
 * kbt_derive_uuid() - derive the UUID of a volume from its backing store
 * @file: block device or regular file, open
 * @uuid: where to store the UUID
 *
 * Context: Process context, may sleep.
 * Return: true if the UUID survives a reboot of this host.
 */
bool kbt_derive_uuid(struct file *file, uuid_t *uuid)
{
	struct inode *inode = file->f_mapping->host;
	struct kbt_backing backing = {};
	bool persistent;

	if (S_ISBLK(inode->i_mode))
		persistent = kbt_bdev_backing(I_BDEV(inode), &backing);
	else
		persistent = kbt_file_backing(file, &backing);
	kbt_digest(&backing, uuid);
	return persistent;
}

/* Read the boot ID, which, unlike a random number, survives a reload of the module. */
void __init kbt_identity_init(void)
{
	char text[UUID_STRING_LEN + 1] = {};
	struct file *file;
	loff_t pos = 0;
	ssize_t n;

	file = filp_open(KBT_BOOT_ID, O_RDONLY, 0);
	if (!IS_ERR(file)) {
		n = kernel_read(file, text, UUID_STRING_LEN, &pos);
		filp_close(file, NULL);
		if (n == UUID_STRING_LEN && !uuid_parse(text, &kbt_boot_id))
			return;
	}
	pr_warn("no %s: volumes without an identifier get another UUID with each load\n",
		KBT_BOOT_ID);
	uuid_gen(&kbt_boot_id);
}
