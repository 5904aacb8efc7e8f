// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The disk as the block layer sees it.
 *
 * Data comes into the slot's registered buffer and is copied from there when the
 * request is completed. The block layer watches the time: a request that gets no
 * answer ends the connection, because only that makes sure that the target will
 * not write into the buffer later, when it belongs to another request.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bvec.h>
#include <linux/module.h>
#include <linux/printk.h>
#include "blk_compat.h"
#include "ini.h"

static struct kbi_slot *kbi_slot_of(struct request *rq)
{
	struct kbi_queue *queue = rq->mq_hctx->driver_data;

	return &queue->slots[rq->tag];
}

static blk_status_t kbi_queue_rq(struct blk_mq_hw_ctx *hctx,
				 const struct blk_mq_queue_data *bd)
{
	struct kbi_queue *queue = hctx->driver_data;
	struct request *rq = bd->rq;
	struct kbi_slot *slot = kbi_slot_of(rq);

	if (req_op(rq) != REQ_OP_READ)
		return BLK_STS_NOTSUPP;
	if (!kbi_queue_live(queue))
		return BLK_STS_TRANSPORT;
	slot->rq = rq;
	blk_mq_start_request(rq);
	return kbi_io_send(queue, slot, KBLK_OP_READ,
			   blk_rq_pos(rq) << SECTOR_SHIFT, blk_rq_bytes(rq));
}

static void kbi_copy_data(struct request *rq, struct kbi_slot *slot)
{
	struct req_iterator iter;
	const void *from = slot->data.va;
	struct bio_vec bvec;

	rq_for_each_segment(bvec, rq, iter) {
		memcpy_to_bvec(&bvec, from);
		from += bvec.bv_len;
	}
}

static void kbi_complete_rq(struct request *rq)
{
	struct kbi_queue *queue = rq->mq_hctx->driver_data;
	struct kbi_slot *slot = kbi_slot_of(rq);
	struct kbi_disk *disk = queue->disk;
	DAT_LMR_TRIPLET seg;

	if (slot->status == BLK_STS_OK) {
		seg = kblk_seg(&slot->data, 0, slot->length);
		if (disk->sync)
			dat_lmr_sync_rdma_write(disk->ia, &seg, 1);
		kbi_copy_data(rq, slot);
		kbi_count(disk, KBI_STAT_READ_BYTES, slot->length);
	}
	blk_mq_end_request(rq, slot->status);
}

static enum blk_eh_timer_return kbi_timed_out(struct request *rq)
{
	struct kbi_queue *queue = rq->mq_hctx->driver_data;

	kbi_count(queue->disk, KBI_STAT_TIMEOUTS, 1);
	kbi_queue_down(queue, "a request was not answered in time");
	/* It fails with all others when the connection is down. */
	return BLK_EH_RESET_TIMER;
}

static int kbi_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
			 unsigned int index)
{
	struct kbi_disk *disk = data;

	hctx->driver_data = &disk->queue;
	return 0;
}

static const struct blk_mq_ops kbi_mq_ops = {
	.queue_rq = kbi_queue_rq,
	.complete = kbi_complete_rq,
	.timeout = kbi_timed_out,
	.init_hctx = kbi_init_hctx,
};

static const struct block_device_operations kbi_fops = {
	.owner = THIS_MODULE,
};

static int kbi_tags_alloc(struct kbi_disk *disk)
{
	disk->set.ops = &kbi_mq_ops;
	disk->set.nr_hw_queues = 1;
	disk->set.queue_depth = atomic_read(&disk->queue.credits);
	disk->set.numa_node = NUMA_NO_NODE;
	disk->set.flags = KBLK_MQ_FLAGS;
	disk->set.timeout = kbi_timeout * HZ;
	disk->set.driver_data = disk;
	return blk_mq_alloc_tag_set(&disk->set);
}

/* Connected and identified: show the disk. */
int kbi_disk_add(struct kbi_disk *disk)
{
	struct gendisk *gendisk;
	int err;

	err = kbi_tags_alloc(disk);
	if (err)
		return err;
	gendisk = kblk_alloc_disk(&disk->set, disk->block_size,
				  disk->max_transfer, disk);
	if (IS_ERR(gendisk)) {
		err = PTR_ERR(gendisk);
		goto free_tags;
	}
	strscpy(gendisk->disk_name, "kdapl0", sizeof(gendisk->disk_name));
	gendisk->fops = &kbi_fops;
	gendisk->private_data = disk;
	set_capacity(gendisk, disk->size >> SECTOR_SHIFT);
	set_disk_ro(gendisk, true);
	disk->gendisk = gendisk;
	err = add_disk(gendisk);
	if (!err)
		return 0;
	/* Reading the partition table may have lost the connection. */
	flush_work(&disk->queue.down_work);
	disk->gendisk = NULL;
	put_disk(gendisk);
free_tags:
	blk_mq_free_tag_set(&disk->set);
	return err;
}

/* Nobody has it open. Requests of the page cache are finished or fail. */
void kbi_disk_remove(struct kbi_disk *disk)
{
	struct gendisk *gendisk = disk->gendisk;

	del_gendisk(gendisk);
	kbi_queue_down(&disk->queue, NULL);
	flush_work(&disk->queue.down_work);
	disk->gendisk = NULL;
	put_disk(gendisk);
	blk_mq_free_tag_set(&disk->set);
}
