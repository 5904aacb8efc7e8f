// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a request does to the volume.
 *
 * A block device gets a bio over the very memory that RDMA uses, and answers when
 * it likes. A file is read and written through the page cache by work items that
 * may block; its writes are safe when they were flushed, like those of any disk
 * with a cache.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/falloc.h>
#include <linux/printk.h>
#include "tgt.h"

/* Longest discard and write zeroes; a multiple of any block size. */
#define KBT_MAX_RANGE	0x40000000U

static enum kblk_status kbt_status(int err)
{
	switch (err) {
	case 0:
		return KBLK_OK;
	case -EOPNOTSUPP:
		return KBLK_ERR_UNSUPPORTED;
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
		return KBLK_ERR_NO_SPACE;
	case -EROFS:
		return KBLK_ERR_READ_ONLY;
	default:
		return KBLK_ERR_IO;
	}
}

static void kbt_done(struct kbt_io *io, int err)
{
	struct kbt *kbt = io->conn->kbt;

	if (err)
		pr_warn_ratelimited("%s: %s: operation %u at %llu: %d\n",
				    io->conn->peer, io->conn->ns->path,
				    io->request.opcode,
				    le64_to_cpu(io->request.offset), err);
	else if (io->request.opcode == KBLK_OP_READ)
		kbt_count(kbt, KBT_STAT_READS, 1);
	else if (io->request.opcode == KBLK_OP_WRITE)
		kbt_count(kbt, KBT_STAT_WRITES, 1);
	if (!err && io->request.opcode == KBLK_OP_READ)
		kbt_count(kbt, KBT_STAT_READ_BYTES,
			  le32_to_cpu(io->request.length));
	else if (!err && io->request.opcode == KBLK_OP_WRITE)
		kbt_count(kbt, KBT_STAT_WRITE_BYTES,
			  le32_to_cpu(io->request.length));
	kbt_io_reply(io, kbt_status(err));
}

/* ---- Block devices ------------------------------------------------------- */

static void kbt_bio_done(struct bio *bio)
{
	struct kbt_io *io = bio->bi_private;
	int err = blk_status_to_errno(bio->bi_status);

	bio_uninit(bio);
	kbt_done(io, err);
}

static void kbt_bdev_submit(struct kbt_io *io, blk_opf_t opf, u32 length)
{
	struct bio *bio = &io->bio;

	bio_init(bio, io->conn->ns->bdev, &io->bvec, 1, opf);
	bio->bi_iter.bi_sector = le64_to_cpu(io->request.offset) >>
				 SECTOR_SHIFT;
	bio->bi_private = io;
	bio->bi_end_io = kbt_bio_done;
	if (length)
		__bio_add_page(bio, virt_to_page(io->buf->mem.va), length,
			       offset_in_page(io->buf->mem.va));
	submit_bio(bio);
}

/* What has no bio of its own. May block. */
static int kbt_bdev_range(struct kbt_io *io)
{
	struct block_device *bdev = io->conn->ns->bdev;
	sector_t sector = le64_to_cpu(io->request.offset) >> SECTOR_SHIFT;
	sector_t n = le32_to_cpu(io->request.length) >> SECTOR_SHIFT;

	if (io->request.opcode == KBLK_OP_WRITE_ZEROES)
		return blkdev_issue_zeroout(bdev, sector, n, GFP_KERNEL, 0);
	return blkdev_issue_discard(bdev, sector, n, GFP_KERNEL);
}

static void kbt_bdev_run(struct kbt_io *io)
{
	blk_opf_t fua = io->request.flags & KBLK_FUA ? REQ_FUA : 0;
	u32 length = le32_to_cpu(io->request.length);

	switch (io->request.opcode) {
	case KBLK_OP_READ:
		kbt_bdev_submit(io, REQ_OP_READ, length);
		break;
	case KBLK_OP_WRITE:
		kbt_bdev_submit(io, REQ_OP_WRITE | REQ_SYNC | REQ_IDLE | fua,
				length);
		break;
	case KBLK_OP_FLUSH:
		kbt_bdev_submit(io, REQ_OP_WRITE | REQ_PREFLUSH, 0);
		break;
	default:
		kbt_done(io, kbt_bdev_range(io));
	}
}

/* ---- Files --------------------------------------------------------------- */

static int kbt_file_rw(struct kbt_io *io, bool write)
{
	struct file *file = io->conn->ns->file;
	loff_t pos = le64_to_cpu(io->request.offset);
	u32 length = le32_to_cpu(io->request.length);
	u32 done = 0;
	ssize_t n;

	while (done < length) {
		if (write)
			n = kernel_write(file, io->buf->mem.va + done,
					 length - done, &pos);
		else
			n = kernel_read(file, io->buf->mem.va + done,
					length - done, &pos);
		/* The file may have been truncated under our feet. */
		if (n <= 0)
			return n ?: -EIO;
		done += n;
	}
	if (io->request.flags & KBLK_FUA)
		return vfs_fsync_range(file, pos - length, pos - 1, 1);
	return 0;
}

static int kbt_file_range(struct kbt_io *io)
{
	struct file *file = io->conn->ns->file;
	loff_t pos = le64_to_cpu(io->request.offset);
	u32 length = le32_to_cpu(io->request.length);
	int err = -EOPNOTSUPP;

	if (io->request.opcode == KBLK_OP_WRITE_ZEROES)
		err = vfs_fallocate(file, FALLOC_FL_ZERO_RANGE |
				    FALLOC_FL_KEEP_SIZE, pos, length);
	/* A hole reads as zeroes as well. */
	if (err == -EOPNOTSUPP)
		err = vfs_fallocate(file, FALLOC_FL_PUNCH_HOLE |
				    FALLOC_FL_KEEP_SIZE, pos, length);
	return err;
}

static void kbt_file_run(struct kbt_io *io)
{
	int err;

	switch (io->request.opcode) {
	case KBLK_OP_READ:
		err = kbt_file_rw(io, false);
		break;
	case KBLK_OP_WRITE:
		err = kbt_file_rw(io, true);
		break;
	case KBLK_OP_FLUSH:
		err = vfs_fsync(io->conn->ns->file, 1);
		break;
	default:
		err = kbt_file_range(io);
	}
	kbt_done(io, err);
}

/* ---- Both ---------------------------------------------------------------- */

/* Does serving the request wait for the medium? */
bool kbt_backend_blocks(struct kbt_io *io)
{
	switch (io->request.opcode) {
	case KBLK_OP_DISCARD:
	case KBLK_OP_WRITE_ZEROES:
		return true;
	case KBLK_OP_READ:
	case KBLK_OP_WRITE:
	case KBLK_OP_FLUSH:
		return !io->conn->ns->bdev;
	default:
		return false;
	}
}

/* The request was checked, and has its data. kbt_io_reply() follows. */
void kbt_backend_run(struct kbt_io *io)
{
	if (io->conn->ns->bdev)
		kbt_bdev_run(io);
	else
		kbt_file_run(io);
}

static void kbt_bdev_identify(struct block_device *bdev,
			      struct kblk_identify *identify)
{
	u32 flags = 0;

	if (bdev_write_cache(bdev))
		flags |= KBLK_VOLUME_CACHE;
	if (!bdev_nonrot(bdev))
		flags |= KBLK_VOLUME_ROTATIONAL;
	identify->flags |= cpu_to_le32(flags);
	identify->physical_block_size =
		cpu_to_le32(clamp_t(u32, bdev_physical_block_size(bdev),
				    bdev_logical_block_size(bdev), 65536));
	identify->max_write_zeroes = cpu_to_le32(KBT_MAX_RANGE);
	if (!bdev_max_discard_sectors(bdev))
		return;
	identify->max_discard = cpu_to_le32(KBT_MAX_RANGE);
	identify->discard_granularity =
		cpu_to_le32(max_t(u32, bdev_discard_granularity(bdev),
				  bdev_logical_block_size(bdev)));
}

static void kbt_file_identify(const struct kbt_ns *ns,
			      struct kblk_identify *identify)
{
	identify->flags |= cpu_to_le32(KBLK_VOLUME_CACHE);
	identify->physical_block_size = cpu_to_le32(PAGE_SIZE);
	if (!ns->file->f_op->fallocate)
		return;
	identify->max_discard = cpu_to_le32(KBT_MAX_RANGE);
	identify->max_write_zeroes = cpu_to_le32(KBT_MAX_RANGE);
	identify->discard_granularity = cpu_to_le32(PAGE_SIZE);
}

void kbt_backend_identify(struct kbt_ns *ns, struct kblk_identify *identify)
{
	memset(identify, 0, sizeof(*identify));
	identify->size = cpu_to_le64(kbt_ns_size(ns));
	identify->block_size = cpu_to_le32(ns->block_size);
	identify->instance = cpu_to_le64(kbt_instance);
	if (ns->bdev)
		kbt_bdev_identify(ns->bdev, identify);
	else
		kbt_file_identify(ns, identify);
	if (!ns->read_only)
		return;
	identify->flags |= cpu_to_le32(KBLK_VOLUME_READ_ONLY);
	identify->max_discard = 0;
	identify->max_write_zeroes = 0;
	identify->discard_granularity = 0;
}
