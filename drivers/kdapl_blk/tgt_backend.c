// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Serve requests from the volume.
 *
 * Entry points: kbt_backend_run() executes a checked request and ends in kbt_io_reply();
 * kbt_backend_blocks() tells whether the request needs a context that may block;
 * kbt_backend_identify(), kbt_max_zeroes() and kbt_max_discard() describe the volume.
 *
 * A block device gets a bio over the registered buffer of the slot, which completes in
 * kbt_bio_done(), in any context. A file is read and written through the page cache from
 * ns->io_wq; as on a disk with a volatile cache, a write is on the medium only after a FLUSH,
 * or with FUA.
 *
 * The slot owns the bio and the buffer until kbt_io_reply(). Locks: only ns->lock is taken
 * here, for ns->instance.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/falloc.h>
#include <linux/printk.h>
#include <linux/sizes.h>
#include "blk_compat.h"
#include "tgt.h"

/*
 * Longest DISCARD and WRITE_ZEROES, multiples of any block size. A client may
 * have a whole queue of them outstanding, and all must end within its timeout.
 */
#define KBT_MAX_DISCARD	SZ_256M
#define KBT_MAX_ZEROES	SZ_16M

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
	/* A file that became immutable while it is open is told by -EPERM. */
	case -EROFS:
	case -EPERM:
	case -EACCES:
		return KBLK_ERR_READ_ONLY;
	default:
		return KBLK_ERR_IO;
	}
}

/* Return whether @io changes the volume and needs a FLUSH to be on the medium. */
static bool kbt_needs_flush(const struct kbt_io *io)
{
	return io->request.opcode != KBLK_OP_READ &&
	       io->request.opcode != KBLK_OP_FLUSH &&
	       !(io->request.flags & KBLK_FUA);
}

/*
 * Return whether the failure of @io may be that of a flush: for a write with FUA the block
 * layer flushes a device without FUA.
 */
static bool kbt_may_have_flushed(const struct kbt_io *io)
{
	struct block_device *bdev = io->att->ns->bdev;

	return io->request.flags & KBLK_FUA && bdev && bdev_write_cache(bdev) &&
	       !bdev_fua(bdev);
}

static void kbt_done(struct kbt_io *io, int err)
{
	struct kbt *kbt = io->conn->kbt;

	if (io->request.opcode == KBLK_OP_FLUSH)
		err = kbt_flush_end(io, err);
	else if (!err && kbt_needs_flush(io))
		kbt_session_written(io);
	else if (kbt_status(err) == KBLK_ERR_IO && kbt_may_have_flushed(io))
		kbt_flush_failed(io->att->ns, err);
	if (err)
		pr_warn_ratelimited("%s: %s: operation %u at %llu: %pe\n",
				    io->conn->peer, io->att->ns->path,
				    io->request.opcode,
				    le64_to_cpu(io->request.offset), ERR_PTR(err));
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
	blk_status_t status = bio->bi_status;

	bio_uninit(bio);
	if (status == BLK_STS_AGAIN && io->stage == KBT_IO_RUN) {
		io->stage = KBT_IO_BLOCK;
		queue_work(io->att->ns->io_wq, &io->work);
		return;
	}
	kbt_done(io, blk_status_to_errno(status));
}

static void kbt_bdev_submit(struct kbt_io *io, blk_opf_t opf, u32 length)
{
	struct bio *bio = &io->bio;

	/*
	 * kbt->wq and the receive path serve other clients next and must not
	 * block in the block layer. KBT_IO_BLOCK runs on ns->io_wq, where
	 * waiting is allowed.
	 */
	if (io->stage == KBT_IO_RUN)
		opf |= REQ_NOWAIT;
	bio_init(bio, io->att->ns->bdev, &io->bvec, 1, opf);
	bio->bi_iter.bi_sector = le64_to_cpu(io->request.offset) >>
				 SECTOR_SHIFT;
	bio->bi_private = io;
	bio->bi_end_io = kbt_bio_done;
	if (length)
		__bio_add_page(bio, virt_to_page(io->data), length,
			       offset_in_page(io->data));
	submit_bio(bio);
}

/* Serve WRITE_ZEROES or DISCARD synchronously. Context: process, may sleep. */
static int kbt_bdev_range(struct kbt_io *io)
{
	struct block_device *bdev = io->att->ns->bdev;
	sector_t sector = le64_to_cpu(io->request.offset) >> SECTOR_SHIFT;
	sector_t n = le32_to_cpu(io->request.length) >> SECTOR_SHIFT;

	/*
	 * NOFALLBACK: writing zeroes from here would occupy a work item for as long as it
	 * takes the client to write them.
	 */
	if (io->request.opcode == KBLK_OP_WRITE_ZEROES)
		return blkdev_issue_zeroout(bdev, sector, n, GFP_KERNEL,
					    BLKDEV_ZERO_NOFALLBACK |
					    (io->request.flags & KBLK_NOUNMAP ?
					     BLKDEV_ZERO_NOUNMAP : 0));
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

/*
 * Bring what a WRITE with FUA has written up to @end to the medium. @since: sample of the
 * writeback errors before the write. Return 0 or an error number.
 */
static int kbt_file_fua(struct kbt_io *io, loff_t end, errseq_t since)
{
	struct file *file = io->att->ns->file;
	int err;

	err = vfs_fsync_range(file, end - kbt_length(io), end - 1, 1);
	/*
	 * fsync reports a writeback error once per open file, and the lost
	 * write may belong to another session: all sessions must learn of it.
	 */
	if (err)
		kbt_flush_failed(io->att->ns, err);
	/* A flush, or another WRITE with FUA, may have been told of the error instead. */
	return err ?: errseq_check(&file->f_mapping->wb_err, since);
}

static int kbt_file_rw(struct kbt_io *io, bool write)
{
	struct file *file = io->att->ns->file;
	errseq_t since = errseq_sample(&file->f_mapping->wb_err);
	loff_t pos = le64_to_cpu(io->request.offset);
	u32 length = le32_to_cpu(io->request.length);
	u32 done = 0;
	ssize_t n;

	while (done < length) {
		if (write)
			n = kernel_write(file, io->data + done, length - done,
					 &pos);
		else
			n = kernel_read(file, io->data + done, length - done,
					&pos);
		/* A count of 0 means that the file was truncated after kbt_check(). */
		if (n <= 0)
			return n ?: -EIO;
		done += n;
	}
	return io->request.flags & KBLK_FUA ? kbt_file_fua(io, pos, since) : 0;
}

static int kbt_file_range(struct kbt_io *io)
{
	struct file *file = io->att->ns->file;
	loff_t pos = le64_to_cpu(io->request.offset);
	u32 length = le32_to_cpu(io->request.length);
	int err = -EOPNOTSUPP;

	if (io->request.opcode == KBLK_OP_WRITE_ZEROES)
		err = vfs_fallocate(file, FALLOC_FL_ZERO_RANGE |
				    FALLOC_FL_KEEP_SIZE, pos, length);
	/*
	 * A file system without ZERO_RANGE may punch a hole, which reads as
	 * zeroes, unless the client asked for allocated blocks.
	 */
	if (err == -EOPNOTSUPP && !(io->request.flags & KBLK_NOUNMAP))
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
		err = vfs_fsync(io->att->ns->file, 1);
		break;
	default:
		err = kbt_file_range(io);
	}
	kbt_done(io, err);
}

/* ---- Block devices and files --------------------------------------------- */

/* Return whether kbt_backend_run() may wait for the medium; @io then runs on ns->io_wq. */
bool kbt_backend_blocks(struct kbt_io *io)
{
	switch (io->request.opcode) {
	case KBLK_OP_DISCARD:
	case KBLK_OP_WRITE_ZEROES:
		return true;
	case KBLK_OP_READ:
	case KBLK_OP_WRITE:
	case KBLK_OP_FLUSH:
		return !io->att->ns->nowait;
	default:
		return false;
	}
}

/* Return whether the medium can take the data of a WRITE from @data. */
bool kbt_backend_takes(const struct kbt_ns *ns, const void *data)
{
	return !ns->bdev ||
	       !((unsigned long)data & bdev_dma_alignment(ns->bdev));
}

/*
 * Execute @io, which has passed kbt_check() and, for a WRITE, holds its data.
 * Ends in kbt_io_reply(). Context: process; may sleep if kbt_backend_blocks().
 */
void kbt_backend_run(struct kbt_io *io)
{
	if (io->request.opcode == KBLK_OP_FLUSH)
		kbt_flush_begin(io);
	else if (kbt_needs_flush(io))
		kbt_session_written(io);
	if (io->att->ns->bdev)
		kbt_bdev_run(io);
	else
		kbt_file_run(io);
}

/*
 * Return the longest WRITE_ZEROES, in bytes, that the medium executes without writing data; 0
 * if it cannot.
 */
u32 kbt_max_zeroes(struct kbt_ns *ns)
{
	u64 max = SZ_1G;

	if (ns->bdev)
		max = (u64)bdev_write_zeroes_sectors(ns->bdev) << SECTOR_SHIFT;
	else if (!ns->file->f_op->fallocate)
		max = 0;
	return round_down(min_t(u64, max, KBT_MAX_ZEROES), ns->block_size);
}

/* Return the longest DISCARD in bytes; 0 if the medium cannot discard. */
u32 kbt_max_discard(struct kbt_ns *ns)
{
	if (ns->bdev ? !bdev_max_discard_sectors(ns->bdev) :
		       !ns->file->f_op->fallocate)
		return 0;
	return KBT_MAX_DISCARD;
}

static void kbt_bdev_identify(struct block_device *bdev,
			      struct kblk_identify *identify)
{
	u32 flags = 0;

	if (bdev_write_cache(bdev))
		flags |= KBLK_VOLUME_CACHE;
	if (kblk_rotational(bdev))
		flags |= KBLK_VOLUME_ROTATIONAL;
	identify->flags |= cpu_to_le32(flags);
	identify->physical_block_size =
		cpu_to_le32(clamp_t(u32, bdev_physical_block_size(bdev),
				    bdev_logical_block_size(bdev), 65536));
	identify->discard_granularity =
		cpu_to_le32(max_t(u32, bdev_discard_granularity(bdev),
				  bdev_logical_block_size(bdev)));
}

static void kbt_file_identify(struct kblk_identify *identify)
{
	identify->flags |= cpu_to_le32(KBLK_VOLUME_CACHE);
	identify->physical_block_size = cpu_to_le32(PAGE_SIZE);
	identify->discard_granularity = cpu_to_le32(PAGE_SIZE);
}

/* Return @bytes if that is a valid hint for blocks of @block bytes, else 0. */
static u32 kbt_hint(u32 bytes, u32 block)
{
	return bytes <= KBLK_HINT_MAX && !(bytes & (block - 1)) ? bytes : 0;
}

/* Set the hints: those of a block device, or for a file no more than its block size. */
static void kbt_identify_hints(struct kbt_ns *ns, struct kblk_identify *identify)
{
	u32 io_min = le32_to_cpu(identify->physical_block_size), io_opt = 0;

	if (ns->bdev) {
		io_min = max(io_min, kbt_hint(bdev_io_min(ns->bdev), ns->block_size));
		io_opt = kbt_hint(bdev_io_opt(ns->bdev), ns->block_size);
	}
	identify->io_min = cpu_to_le32(io_min);
	identify->io_opt = cpu_to_le32(io_opt);
}

void kbt_backend_identify(struct kbt_io *io, struct kblk_identify *identify)
{
	struct kbt_ns *ns = io->att->ns;

	memset(identify, 0, sizeof(*identify));
	identify->size = cpu_to_le64(kbt_ns_size(ns));
	identify->block_size = cpu_to_le32(ns->block_size);
	spin_lock_irq(&ns->lock);
	identify->instance = cpu_to_le64(ns->instance);
	spin_unlock_irq(&ns->lock);
	if (io->conn->identity)
		export_uuid(identify->uuid, &ns->uuid);
	if (ns->bdev)
		kbt_bdev_identify(ns->bdev, identify);
	else
		kbt_file_identify(identify);
	if (io->conn->hints)
		kbt_identify_hints(ns, identify);
	if (ns->read_only) {
		identify->flags |= cpu_to_le32(KBLK_VOLUME_READ_ONLY);
	} else {
		identify->max_discard = cpu_to_le32(kbt_max_discard(ns));
		identify->max_write_zeroes = cpu_to_le32(kbt_max_zeroes(ns));
	}
	if (!identify->max_discard)
		identify->discard_granularity = 0;
}
