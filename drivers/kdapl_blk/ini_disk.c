// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The disk as the block layer sees it.
 *
 * The block layer watches the time: a request that gets no answer ends the
 * connections, because only that makes sure that the target will not touch its
 * pages later, when they belong to somebody else.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/idr.h>
#include <linux/module.h>
#include <linux/printk.h>
#include "blk_compat.h"
#include "ini.h"

/*
 * A request that has seen so many connections end may be why. But a bad wire is as
 * likely, so it is sent again for as long as one waits for a connection.
 */
#define KBI_MAX_TRIES	10

static DEFINE_IDA(kbi_ida);

/* ---- Requests ------------------------------------------------------------ */

static blk_status_t kbi_queue_rq(struct blk_mq_hw_ctx *hctx,
				 const struct blk_mq_queue_data *bd)
{
	struct kbi_queue *queue = hctx->driver_data;
	struct kbi_pdu *pdu = blk_mq_rq_to_pdu(bd->rq);

	switch (kbi_state(queue->disk)) {
	case KBI_LIVE:
		break;
	case KBI_RECOVERING:
		return BLK_STS_RESOURCE;
	default:
		return BLK_STS_TRANSPORT;
	}
	if (req_op(bd->rq) == REQ_OP_FLUSH) {
		if (READ_ONCE(queue->disk->lost_writes))
			return BLK_STS_IOERR;
		pdu->written = atomic64_read(&queue->disk->written);
	}
	if (!(bd->rq->rq_flags & RQF_DONTPREP)) {
		pdu->tries = 0;
		pdu->since = jiffies;
		bd->rq->rq_flags |= RQF_DONTPREP;
	}
	return kbi_io_queue(queue, bd->rq, bd->last);
}

static void kbi_commit_rqs(struct blk_mq_hw_ctx *hctx)
{
	kbi_io_commit(hctx->driver_data);
}

/*
 * It was done: keep account of what a target that is started anew may have lost,
 * see kbi_check_volume().
 */
static void kbi_disk_account(struct kbi_disk *disk, struct request *rq)
{
	struct kbi_pdu *pdu = blk_mq_rq_to_pdu(rq);
	s64 flushed;

	if (!(le32_to_cpu(disk->identify.flags) & KBLK_VOLUME_CACHE))
		return;
	if (op_is_write(req_op(rq)) && !(rq->cmd_flags & REQ_FUA)) {
		atomic64_inc(&disk->written);
	} else if (req_op(rq) == REQ_OP_FLUSH) {
		flushed = atomic64_read(&disk->flushed);
		while (flushed < pdu->written &&
		       !atomic64_try_cmpxchg(&disk->flushed, &flushed,
					     pdu->written))
			;
	}
}

/* The connection was lost before it was done. */
static bool kbi_disk_resend(struct kbi_disk *disk, struct kbi_pdu *pdu)
{
	enum kbi_state state = kbi_state(disk);

	if ((state != KBI_RECOVERING && state != KBI_LIVE) ||
	    READ_ONCE(disk->removing))
		return false;
	return ++pdu->tries < KBI_MAX_TRIES ||
	       time_before(jiffies, pdu->since +
			   msecs_to_jiffies(disk->params.give_up_ms));
}

/* It has ended, one way or another. */
void kbi_disk_complete(struct request *rq)
{
	struct kbi_disk *disk = rq->q->queuedata;
	struct kbi_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (!pdu->lost) {
		if (pdu->status == BLK_STS_OK)
			kbi_disk_account(disk, rq);
		if (req_op(rq) == REQ_OP_READ)
			kbi_count(disk, KBI_STAT_READ_BYTES, blk_rq_bytes(rq));
		else if (req_op(rq) == REQ_OP_WRITE)
			kbi_count(disk, KBI_STAT_WRITE_BYTES,
				  blk_rq_bytes(rq));
		blk_mq_end_request(rq, pdu->status);
	} else if (kbi_disk_resend(disk, pdu)) {
		kbi_count(disk, KBI_STAT_REPLAYED, 1);
		blk_mq_requeue_request(rq, true);
	} else {
		blk_mq_end_request(rq, BLK_STS_TRANSPORT);
	}
}

static enum blk_eh_timer_return kbi_timed_out(struct request *rq)
{
	struct kbi_disk *disk = rq->q->queuedata;

	kbi_count(disk, KBI_STAT_TIMEOUTS, 1);
	kbi_disk_error(disk, "a request was not answered in time");
	/* It comes back with all others when the connections are down. */
	return BLK_EH_RESET_TIMER;
}

static int kbi_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
			 unsigned int index)
{
	struct kbi_disk *disk = data;

	hctx->driver_data = &disk->queues[index];
	return 0;
}

static void kbi_map_queues(struct blk_mq_tag_set *set)
{
	struct kbi_disk *disk = set->driver_data;
	struct blk_mq_queue_map *map = &set->map[HCTX_TYPE_DEFAULT];

	map->nr_queues = disk->nqueues - disk->params.read_queues;
	map->queue_offset = 0;
	blk_mq_map_queues(map);
	if (!disk->params.read_queues)
		return;
	set->map[HCTX_TYPE_READ].nr_queues = disk->params.read_queues;
	set->map[HCTX_TYPE_READ].queue_offset = map->nr_queues;
	blk_mq_map_queues(&set->map[HCTX_TYPE_READ]);
}

static const struct blk_mq_ops kbi_mq_ops = {
	.queue_rq = kbi_queue_rq,
	.commit_rqs = kbi_commit_rqs,
	.complete = kbi_disk_complete,
	.timeout = kbi_timed_out,
	.init_hctx = kbi_init_hctx,
	.map_queues = kbi_map_queues,
};

static const struct block_device_operations kbi_fops = {
	.owner = THIS_MODULE,
};

/* Queues to make: not more of a kind than there are CPUs. */
unsigned int kbi_disk_queues(struct kbi_disk *disk)
{
	struct kbi_params *params = &disk->params;
	unsigned int n = params->queues ?: num_online_cpus();

	params->read_queues = min(params->read_queues, nr_cpu_ids);
	return min(n, nr_cpu_ids) + params->read_queues;
}

/* ---- Standing still ------------------------------------------------------ */

/* Nothing is handed to us when this returns. Under disk->mutex, as the next. */
void kbi_disk_quiesce(struct kbi_disk *disk)
{
	if (!disk->gendisk || disk->quiesced)
		return;
	blk_mq_quiesce_queue(disk->gendisk->queue);
	disk->quiesced = true;
}

void kbi_disk_unquiesce(struct kbi_disk *disk)
{
	if (!disk->quiesced)
		return;
	disk->quiesced = false;
	blk_mq_unquiesce_queue(disk->gendisk->queue);
	blk_mq_kick_requeue_list(disk->gendisk->queue);
}

static bool kbi_cancel(struct request *rq, void *data)
{
	struct kbi_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (!blk_mq_request_completed(rq)) {
		pdu->lost = true;
		blk_mq_complete_request(rq);
	}
	return true;
}

/* The connections are down: give back what was outstanding. */
void kbi_disk_cancel(struct kbi_disk *disk)
{
	if (!disk->gendisk)
		return;
	blk_mq_tagset_busy_iter(&disk->set, kbi_cancel, disk);
	blk_mq_tagset_wait_completed_request(&disk->set);
}

/* ---- The disk's life ----------------------------------------------------- */

static int kbi_tags_alloc(struct kbi_disk *disk)
{
	memset(&disk->set, 0, sizeof(disk->set));
	disk->set.ops = &kbi_mq_ops;
	disk->set.nr_hw_queues = disk->nqueues;
	disk->set.nr_maps = disk->params.read_queues ? 2 : 1;
	disk->set.queue_depth = disk->params.depth;
	disk->set.cmd_size = sizeof(struct kbi_pdu);
	disk->set.numa_node = NUMA_NO_NODE;
	disk->set.flags = KBLK_MQ_FLAGS;
	disk->set.timeout = msecs_to_jiffies(disk->params.timeout_ms);
	disk->set.driver_data = disk;
	return blk_mq_alloc_tag_set(&disk->set);
}

static struct kblk_limits kbi_limits(struct kbi_disk *disk)
{
	const struct kblk_identify *identify = &disk->identify;
	u32 flags = le32_to_cpu(identify->flags);

	return (struct kblk_limits) {
		.block_size = le32_to_cpu(identify->block_size),
		.physical_block_size =
			le32_to_cpu(identify->physical_block_size),
		.max_transfer = disk->max_transfer,
		.pages = disk->max_transfer / PAGE_SIZE + 1,
		.discard_granularity =
			le32_to_cpu(identify->discard_granularity),
		.max_discard = le32_to_cpu(identify->max_discard),
		.max_write_zeroes = le32_to_cpu(identify->max_write_zeroes),
		.cache = flags & KBLK_VOLUME_CACHE,
		.rotational = flags & KBLK_VOLUME_ROTATIONAL,
	};
}

/* Connected: make the disk. It is not to be seen yet. */
int kbi_disk_add(struct kbi_disk *disk)
{
	struct kblk_limits limits = kbi_limits(disk);
	struct gendisk *gendisk;
	int err;

	err = kbi_tags_alloc(disk);
	if (err)
		return err;
	disk->index = ida_alloc(&kbi_ida, GFP_KERNEL);
	if (disk->index < 0) {
		err = disk->index;
		goto free_tags;
	}
	gendisk = kblk_alloc_disk(&disk->set, &limits, disk);
	if (IS_ERR(gendisk)) {
		err = PTR_ERR(gendisk);
		goto free_index;
	}
	snprintf(gendisk->disk_name, sizeof(gendisk->disk_name), "kdapl%d",
		 disk->index);
	gendisk->fops = &kbi_fops;
	gendisk->private_data = disk;
	set_capacity(gendisk, le64_to_cpu(disk->identify.size) >> SECTOR_SHIFT);
	set_disk_ro(gendisk, le32_to_cpu(disk->identify.flags) &
			     KBLK_VOLUME_READ_ONLY);
	disk->gendisk = gendisk;
	return 0;

free_index:
	ida_free(&kbi_ida, disk->index);
free_tags:
	blk_mq_free_tag_set(&disk->set);
	return err;
}

int kbi_disk_show(struct kbi_disk *disk)
{
	int err = add_disk(disk->gendisk);

	mutex_lock(&disk->mutex);
	disk->shown = !err;
	mutex_unlock(&disk->mutex);
	if (err)
		pr_err("%s: no disk: %d\n", config_item_name(&disk->item), err);
	else
		pr_info("%s: %s, %llu bytes\n", config_item_name(&disk->item),
			disk->gendisk->disk_name,
			le64_to_cpu(disk->identify.size));
	return err;
}

/* The target was asked again how large the volume is. */
void kbi_disk_resize(struct kbi_disk *disk)
{
	if (disk->shown && !disk->removing)
		set_capacity_and_notify(disk->gendisk,
					le64_to_cpu(disk->identify.size) >>
					SECTOR_SHIFT);
}

/* Whoever has it open gets errors from now on. */
void kbi_disk_del(struct kbi_disk *disk)
{
	if (disk->shown)
		del_gendisk(disk->gendisk);
	mutex_lock(&disk->mutex);
	put_disk(disk->gendisk);
	disk->gendisk = NULL;
	disk->shown = false;
	mutex_unlock(&disk->mutex);
	blk_mq_free_tag_set(&disk->set);
	ida_free(&kbi_ida, disk->index);
}
