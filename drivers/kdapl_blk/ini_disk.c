// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The disk as the block layer sees it: queueing, completion, timeouts, size.
 *
 * Entry points: kbi_mq_ops for the block layer; kbi_disk_add(), kbi_disk_show() and
 * kbi_disk_del() for the life of the disk; kbi_disk_quiesce(), kbi_disk_cancel(), the waits
 * for either, and kbi_disk_unquiesce() for recovery.
 *
 * A request that times out ends all connections of the link: only then is it certain that the
 * target does not access its pages later, when they are used for something else.
 * kbi_may_take_longer() makes an exception for disks that share a link.
 *
 * The struct kbi_disk owns gendisk and tag set. link->mutex guards ->shown, ->quiesced,
 * ->identify and the end of ->gendisk.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/idr.h>
#include <linux/module.h>
#include <linux/printk.h>
#include "blk_compat.h"
#include "ini.h"
#include "ini_latency.h"

/* Least time between two sizes that the block layer is told */
#define KBI_RESIZE	HZ

/*
 * A request that was resent this often may itself be why connections break. As a bad link is
 * just as likely, the request is still resent for give_up_ms.
 */
#define KBI_MAX_TRIES	10
/* A bad link does not make a target detach a volume, so fewer resends are enough. */
#define KBI_MAX_DETACHED	2

static DEFINE_IDA(kbi_ida);
/* kbi_disk_del() clears disk->gendisk with it, too: link->mutex is held while a disk connects. */
static DEFINE_SPINLOCK(kbi_claim_lock);

/* ---- Requests ------------------------------------------------------------ */

/* Return the use of a queue that @hctx is routed to. Context: the block layer's dispatch. */
static struct kbi_use *kbi_route(struct blk_mq_hw_ctx *hctx)
{
	struct kbi_use **route = hctx->driver_data;

	return *route;
}

/*
 * Return whether @rq is not resent any more. The disk is connected, so the target has ended
 * the connections that @rq was sent on.
 */
static bool kbi_is_given_up(struct kbi_disk *disk, struct request *rq)
{
	struct kbi_pdu *pdu = blk_mq_rq_to_pdu(rq);

	return rq->rq_flags & RQF_DONTPREP &&
	       (pdu->tries >= KBI_MAX_TRIES || pdu->detached >= KBI_MAX_DETACHED) &&
	       time_after_eq(jiffies, pdu->since +
			     msecs_to_jiffies(disk->params.give_up_ms));
}

/* Send a request. Return BLK_STS_OK, BLK_STS_RESOURCE, or the status that it ends with. */
static blk_status_t kbi_start_rq(struct blk_mq_hw_ctx *hctx,
				 const struct blk_mq_queue_data *bd)
{
	struct kbi_disk *disk = hctx->queue->queuedata;
	struct kbi_pdu *pdu = blk_mq_rq_to_pdu(bd->rq);

	switch (kbi_state(disk)) {
	case KBI_LIVE:
		if (unlikely(pdu->tries) && kbi_is_given_up(disk, bd->rq))
			return BLK_STS_TRANSPORT;
		break;
	case KBI_RECOVERING:
		return BLK_STS_RESOURCE;
	default:
		return BLK_STS_TRANSPORT;
	}
	if (req_op(bd->rq) == REQ_OP_FLUSH) {
		if (READ_ONCE(disk->volume->lost_writes))
			return BLK_STS_IOERR;
		pdu->written = atomic64_read(&disk->volume->written);
	}
	if (!(bd->rq->rq_flags & RQF_DONTPREP)) {
		pdu->tries = 0;
		pdu->detached = 0;
		pdu->since = jiffies;
		bd->rq->rq_flags |= RQF_DONTPREP;
	}
	return kbi_io_queue(kbi_route(hctx), bd->rq, bd->last);
}

static blk_status_t kbi_queue_rq(struct blk_mq_hw_ctx *hctx,
				 const struct blk_mq_queue_data *bd)
{
	struct kbi_disk *disk = hctx->queue->queuedata;
	blk_status_t status = kbi_start_rq(hctx, bd);

	if (unlikely(status != BLK_STS_OK && status != BLK_STS_RESOURCE))
		kbi_latency_count(disk->latency, bd->rq);
	return status;
}

static void kbi_commit_rqs(struct blk_mq_hw_ctx *hctx)
{
	kbi_io_commit(kbi_route(hctx)->queue);
}

/*
 * Count writes that were replied to and writes that were flushed, so that
 * kbi_volume_instance() can tell whether a restarted target may have lost some. The caller
 * does so before kbi_recover_work() can see that @rq is over.
 */
void kbi_disk_account(struct kbi_disk *disk, struct request *rq)
{
	struct kbi_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (!(le32_to_cpu(disk->identify.flags) & KBLK_VOLUME_CACHE))
		return;
	if (op_is_write(req_op(rq)) && !(rq->cmd_flags & REQ_FUA))
		atomic64_inc(&disk->volume->written);
	else if (req_op(rq) == REQ_OP_FLUSH)
		kbi_volume_flushed(disk->volume, pdu->written);
}

/*
 * Make all later flushes fail: as on any disk, a flush that succeeds after a failed one would
 * hide lost writes.
 */
static void kbi_flush_failed(struct kbi_disk *disk)
{
	if (READ_ONCE(disk->volume->lost_writes))
		return;
	WRITE_ONCE(disk->volume->lost_writes, true);
	pr_err("%s: the target cannot flush; writes may be lost, so flushes will fail until it is disconnected\n",
	       config_item_name(&disk->item));
}

/*
 * Complete @rq. If its connection was lost, requeue @rq: kbi_queue_rq() resends or fails it
 * when the target is certain to be done with it. Context: any.
 */
void kbi_disk_complete(struct request *rq)
{
	struct kbi_disk *disk = rq->q->queuedata;
	struct kbi_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (!pdu->lost) {
		if (pdu->status != BLK_STS_OK && req_op(rq) == REQ_OP_FLUSH)
			kbi_flush_failed(disk);
		else if (req_op(rq) == REQ_OP_WRITE_ZEROES &&
			 pdu->status == BLK_STS_NOTSUPP)
			/* The block layer now writes zeroes itself. */
			rq->q->limits.max_write_zeroes_sectors = 0;
		if (req_op(rq) == REQ_OP_READ)
			kbi_count(disk, KBI_STAT_READ_BYTES, blk_rq_bytes(rq));
		else if (req_op(rq) == REQ_OP_WRITE)
			kbi_count(disk, KBI_STAT_WRITE_BYTES,
				  blk_rq_bytes(rq));
		kbi_latency_count(disk->latency, rq);
		blk_mq_end_request(rq, pdu->status);
	} else {
		pdu->tries++;
		kbi_count(disk, KBI_STAT_REPLAYED, 1);
		blk_mq_requeue_request(rq, true);
	}
}

/*
 * Return whether @rq, which was not answered in time, may take longer: the target answers
 * other requests on the shared connection, so only the volume of @rq stands still. There is a
 * limit, as only the end of the connection takes the memory back.
 */
static bool kbi_may_take_longer(struct kbi_disk *disk, struct request *rq)
{
	struct kbi_queue *queue = kbi_route(rq->mq_hctx)->queue;
	struct kbi_pdu *pdu = blk_mq_rq_to_pdu(rq);
	/* Two answers are at most two periods apart, see kbi_is_alive(). */
	u32 alive_ms = 3 * disk->params.keepalive_ms;

	return READ_ONCE(disk->link->ndisks) > 1 &&
	       time_before(jiffies, READ_ONCE(queue->heard) +
			   msecs_to_jiffies(alive_ms)) &&
	       time_before(jiffies, pdu->since +
			   msecs_to_jiffies(disk->params.give_up_ms));
}

static enum blk_eh_timer_return kbi_timed_out(struct request *rq)
{
	struct kbi_disk *disk = rq->q->queuedata;

	kbi_count(disk, KBI_STAT_TIMEOUTS, 1);
	if (!kbi_may_take_longer(disk, rq))
		kbi_link_error(disk->link, "a request was not answered in time");
	/* kbi_disk_cancel() completes @rq when the connections are down. */
	return BLK_EH_RESET_TIMER;
}

static int kbi_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
			 unsigned int index)
{
	struct kbi_disk *disk = data;

	hctx->driver_data = &disk->routes[index];
	return 0;
}

static void kbi_map_queues(struct blk_mq_tag_set *set)
{
	struct kbi_disk *disk = set->driver_data;
	struct blk_mq_queue_map *map = &set->map[HCTX_TYPE_DEFAULT];
	struct kbi_link *link = disk->link;

	map->nr_queues = link->nqueues - link->nread;
	map->queue_offset = 0;
	blk_mq_map_queues(map);
	if (!link->nread)
		return;
	set->map[HCTX_TYPE_READ].nr_queues = link->nread;
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

/* Show the volume's identifier, the same on all hosts, from which udev makes links. */
static ssize_t wwid_show(struct device *dev, struct device_attribute *attr,
			 char *page)
{
	struct kbi_disk *disk = dev_to_disk(dev)->private_data;
	uuid_t uuid;

	import_uuid(&uuid, disk->identify.uuid);
	if (uuid_is_null(&uuid))
		return -ENODATA;
	return sysfs_emit(page, "uuid.%pUb\n", &uuid);
}
static DEVICE_ATTR_RO(wwid);

static struct attribute *kbi_device_attrs[] = {
	&dev_attr_wwid.attr,
	NULL
};

static const struct attribute_group kbi_device_group = {
	.attrs = kbi_device_attrs,
};

static const struct attribute_group *kbi_device_groups[] = {
	&kbi_device_group,
	NULL
};

/* ---- Quiescing ----------------------------------------------------------- */

/*
 * Stop the block layer from queueing requests; the caller calls kbi_disk_wait_quiesced() next.
 * Return whether the block layer was not stopped before. Context: process, as for
 * kbi_disk_unquiesce().
 */
bool kbi_disk_quiesce(struct kbi_disk *disk)
{
	lockdep_assert_held(&disk->link->mutex);

	if (!disk->gendisk || disk->quiesced)
		return false;
	blk_mq_quiesce_queue_nowait(disk->gendisk->queue);
	disk->quiesced = true;
	return true;
}

/*
 * Wait until no kbi_queue_rq() runs for @disk, nor for other disks that were quiesced before:
 * kbi_queue_rq() never sleeps, so one RCU grace period is enough for all.
 */
void kbi_disk_wait_quiesced(struct kbi_disk *disk)
{
	kblk_wait_quiesced(disk->gendisk->queue);
}

/*
 * Keep del_gendisk() from taking the queue of @gendisk apart until kbi_queue_leave(). Return
 * false if that may have begun: nothing is queued then, and nothing will be.
 */
static bool kbi_queue_enter(struct gendisk *gendisk)
{
	struct request_queue *q = gendisk->queue;

	while (!percpu_ref_tryget(&q->q_usage_counter)) {
		if (test_bit(GD_DEAD, &gendisk->state))
			return false;
		/* Frozen for a moment, as for another scheduler; without requests to wait for. */
		wait_event(q->mq_freeze_wq, !READ_ONCE(q->mq_freeze_depth) ||
			   test_bit(GD_DEAD, &gendisk->state));
	}
	return true;
}

static void kbi_queue_leave(struct gendisk *gendisk)
{
	percpu_ref_put(&gendisk->queue->q_usage_counter);
}

/*
 * Have the block layer queue requests again. del_gendisk() runs only for a disk with
 * ->removing: kbi_disconnect() takes link->mutex in between. Context: process.
 */
void kbi_disk_unquiesce(struct kbi_disk *disk)
{
	struct gendisk *gendisk = disk->gendisk;
	bool enter;

	lockdep_assert_held(&disk->link->mutex);

	if (!disk->quiesced)
		return;
	disk->quiesced = false;
	enter = READ_ONCE(disk->removing);
	if (enter && !kbi_queue_enter(gendisk))
		return;
	blk_mq_unquiesce_queue(gendisk->queue);
	blk_mq_kick_requeue_list(gendisk->queue);
	if (enter)
		kbi_queue_leave(gendisk);
}

/*
 * Keep kbi_disk_cancel() from completing @rq, which is outstanding, until kbi_ia_is_closed():
 * its pages are not the block layer's yet. Context: process.
 */
void kbi_disk_hold(struct request *rq)
{
	struct kbi_pdu *pdu = blk_mq_rq_to_pdu(rq);

	pdu->held = true;
}

static bool kbi_cancel(struct request *rq, void *data)
{
	struct kbi_pdu *pdu = blk_mq_rq_to_pdu(rq);
	struct kbi_disk *disk = data;

	if (blk_mq_request_completed(rq))
		return true;
	/* kbi_volume_may_fail() notes that the session has writes to fence. */
	if (op_is_write(req_op(rq)))
		WRITE_ONCE(disk->unanswered, true);
	if (pdu->held && disk->link->stuck)
		return true;
	pdu->held = false;
	pdu->lost = true;
	blk_mq_complete_request(rq);
	return true;
}

/* Return whether @disk can have requests; while it connects, kbi_disk_add() may be running. */
static bool kbi_has_requests(struct kbi_disk *disk)
{
	return kbi_state(disk) != KBI_CONNECTING && disk->gendisk;
}

/*
 * Complete all outstanding requests as lost, but those that are held. The connections are
 * down, so nobody else starts or completes a request.
 */
void kbi_disk_cancel(struct kbi_disk *disk)
{
	if (kbi_has_requests(disk))
		blk_mq_tagset_busy_iter(&disk->set, kbi_cancel, disk);
}

/* Wait until the requests that kbi_disk_cancel() completes are completed. */
void kbi_disk_wait_cancelled(struct kbi_disk *disk)
{
	if (kbi_has_requests(disk))
		blk_mq_tagset_wait_completed_request(&disk->set);
}

/* ---- Adding and removing the disk ---------------------------------------- */

static int kbi_tags_alloc(struct kbi_disk *disk)
{
	memset(&disk->set, 0, sizeof(disk->set));
	disk->set.ops = &kbi_mq_ops;
	disk->set.nr_hw_queues = disk->link->nqueues;
	disk->set.nr_maps = disk->link->nread ? 2 : 1;
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
		.io_min = max(le32_to_cpu(identify->io_min),
			      le32_to_cpu(identify->physical_block_size)),
		.io_opt = le32_to_cpu(identify->io_opt),
		.max_transfer = disk->link->max_transfer,
		.pages = disk->link->max_transfer / PAGE_SIZE + 1,
		.discard_granularity =
			le32_to_cpu(identify->discard_granularity),
		.max_discard = le32_to_cpu(identify->max_discard),
		.max_write_zeroes = le32_to_cpu(identify->max_write_zeroes),
		.cache = flags & KBLK_VOLUME_CACHE,
		.rotational = flags & KBLK_VOLUME_ROTATIONAL,
	};
}

/* Make the disk after the first connect; kbi_disk_show() adds it to the system. */
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
	snprintf(gendisk->disk_name, sizeof(gendisk->disk_name), KBI_DISK_NAME,
		 disk->index);
	gendisk->fops = &kbi_fops;
	gendisk->private_data = disk;
	set_capacity(gendisk, le64_to_cpu(disk->identify.size) >> SECTOR_SHIFT);
	set_disk_ro(gendisk, le32_to_cpu(disk->identify.flags) &
			     KBLK_VOLUME_READ_ONLY);
	disk->resized_at = jiffies - KBI_RESIZE;
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
	int err = device_add_disk(NULL, disk->gendisk, kbi_device_groups);

	mutex_lock(&disk->link->mutex);
	disk->shown = !err;
	mutex_unlock(&disk->link->mutex);
	/* The volume may have grown since kbi_disk_add(). */
	kbi_resize_later(disk);
	if (err)
		pr_err("%s: no disk: %pe\n", config_item_name(&disk->item),
		       ERR_PTR(err));
	else
		pr_info("%s: %s, %llu bytes\n", config_item_name(&disk->item),
			disk->gendisk->disk_name,
			le64_to_cpu(disk->identify.size));
	return err;
}

/*
 * Schedule kbi_resize_work(), KBI_RESIZE after it last told the block layer of a size or
 * later: each size costs an event to user space and a line in the log, and a target may tell
 * another size with every reply. Context: any.
 */
void kbi_resize_later(struct kbi_disk *disk)
{
	unsigned long since = jiffies - READ_ONCE(disk->resized_at);

	queue_delayed_work(kbi_end_wq, &disk->resize_work,
			   since < KBI_RESIZE ? KBI_RESIZE - since : 0);
}

/*
 * Take @size, which a reply has told, as the size of the volume. Return whether the block
 * layer is to be told. A smaller size is refused.
 */
static bool kbi_take_size(struct kbi_disk *disk, u64 size)
{
	u32 block = le32_to_cpu(disk->identify.block_size);

	lockdep_assert_held(&disk->link->mutex);

	/* kbi_disk_go_on() and kbi_disk_show() queue kbi_resize_work() again. */
	if (kbi_state(disk) != KBI_LIVE || !disk->shown)
		return false;
	if (size < le64_to_cpu(disk->identify.size) || size & (block - 1) ||
	    size > LLONG_MAX) {
		pr_err_ratelimited("%s: the volume has %llu bytes now, which is too few\n",
				   config_item_name(&disk->item), size);
		return false;
	}
	disk->identify.size = cpu_to_le64(size);
	/* kbi_disconnect() sets ->removing, then waits for this work. */
	return !READ_ONCE(disk->removing);
}

/*
 * Take the size of the volume that a reply has brought, and tell the block layer. This must be
 * without link->mutex and not on kbi_wq: another sender of events may hold a lock of theirs
 * while it waits for memory, and so for a write to a disk of the link that has lost its
 * connection.
 */
void kbi_resize_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(to_delayed_work(work), struct kbi_disk,
					     resize_work);
	unsigned int flags = kbi_link_lock(disk->link);
	u64 size = le64_to_cpu(READ_ONCE(disk->told_size));
	bool tell = kbi_take_size(disk, size);

	kbi_link_unlock(disk->link, flags);
	if (tell && set_capacity_and_notify(disk->gendisk, size >> SECTOR_SHIFT))
		WRITE_ONCE(disk->resized_at, jiffies);
}

/*
 * Return whether somebody has the block device, or a partition of it, exclusively: a file system,
 * another block device, a target, or a program. In each case its whole device has a holder.
 */
bool kbi_disk_is_claimed(struct kbi_disk *disk)
{
	bool claimed;

	spin_lock(&kbi_claim_lock);
	claimed = disk->gendisk && READ_ONCE(disk->gendisk->part0->bd_holder);
	spin_unlock(&kbi_claim_lock);
	return claimed;
}

/* Remove the disk. Users that have it open get errors from now on. */
void kbi_disk_del(struct kbi_disk *disk)
{
	struct gendisk *gendisk = disk->gendisk;
	unsigned int flags;

	if (disk->shown)
		del_gendisk(gendisk);
	flags = kbi_link_lock(disk->link);
	spin_lock(&kbi_claim_lock);
	disk->gendisk = NULL;
	spin_unlock(&kbi_claim_lock);
	disk->shown = false;
	/* The quiesced queue is gone; kbi_fail_work() must not unquiesce it. */
	disk->quiesced = false;
	kbi_link_unlock(disk->link, flags);
	/* Drop the lock first, for the reason that kbi_disk_start() gives. */
	put_disk(gendisk);
	blk_mq_free_tag_set(&disk->set);
	ida_free(&kbi_ida, disk->index);
}
