// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A disk's connections: made together, lost together, made again.
 *
 *   IDLE -> CONNECTING -> LIVE <-> RECOVERING -> FAILED -> LIVE
 *
 * When one connection is lost all are taken down: only then is it certain that
 * the target reaches none of our memory. The adapter is closed as well, so it may
 * leave. What was outstanding goes back to the block layer's queue, which stands
 * still, and is sent again when there are connections again, on whatever adapter
 * has that name by then. The target sees to it that the first copy of a request
 * does not overtake the second, see struct kblk_hello.
 *
 * We try again and again, at growing intervals. After give_up_ms requests fail
 * instead of waiting; the disk stays, and so do the attempts.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "ini.h"

#define KBI_ASYNC_QLEN		16
#define KBI_MAX_TRANSFER	(1024U * 1024)

/* ---- The adapter --------------------------------------------------------- */

static void kbi_async_upcall(DAT_PVOID data, const DAT_EVENT *event,
			     DAT_BOOLEAN more)
{
	struct kbi_disk *disk = data;

	if (event->event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		kbi_disk_error(disk, "the adapter is gone");
	else
		pr_warn_ratelimited("asynchronous event %#x\n",
				    event->event_number);
}

static int kbi_ia_open(struct kbi_disk *disk)
{
	DAT_UPCALL_OBJECT async = { disk, kbi_async_upcall };
	DAT_PROVIDER_ATTR provider;
	DAT_RETURN ret;

	/* One of its own, not that of last time. */
	disk->async_evd = DAT_HANDLE_NULL;
	ret = dat_ia_open(disk->params.ia, KBI_ASYNC_QLEN, &disk->async_evd,
			  &disk->ia);
	if (ret != DAT_SUCCESS) {
		pr_err_ratelimited("cannot open %s: %s\n", disk->params.ia,
				   kblk_strerror(ret));
		return kblk_errno(ret);
	}
	ret = dat_ia_query(disk->ia, NULL, DAT_IA_FIELD_NONE, NULL,
			   DAT_PROVIDER_FIELD_LMR_SYNC_REQ, &provider);
	if (ret == DAT_SUCCESS)
		ret = dat_pz_create(disk->ia, &disk->pz);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_modify_upcall(disk->async_evd,
					    DAT_UPCALL_SINGLE_INSTANCE, &async,
					    DAT_UPCALL_INVOC_ANY);
	if (ret == DAT_SUCCESS) {
		disk->sync = provider.lmr_sync_req == DAT_TRUE;
		return 0;
	}
	dat_ia_close(disk->ia, DAT_CLOSE_ABRUPT_FLAG);
	disk->ia = NULL;
	return kblk_errno(ret);
}

static void kbi_ia_close(struct kbi_disk *disk)
{
	if (!disk->ia)
		return;
	dat_evd_modify_upcall(disk->async_evd, DAT_UPCALL_TEARDOWN,
			      DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW);
	dat_pz_free(disk->pz);
	if (dat_ia_close(disk->ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS) {
		pr_warn("objects are left in %s\n", disk->params.ia);
		dat_ia_close(disk->ia, DAT_CLOSE_ABRUPT_FLAG);
	}
	disk->ia = NULL;
}

/* ---- Making and taking down ---------------------------------------------- */

/* Nobody sends. Under disk->mutex. */
static void kbi_take_down(struct kbi_disk *disk)
{
	unsigned int i;

	for (i = 0; i < disk->nqueues; i++)
		kbi_queue_stop(&disk->queues[i]);
	kbi_ia_close(disk);
}

/*
 * A target that was started anew has forgotten what it had not flushed. Whoever has
 * written it and asks for it to be flushed is told: as with any disk that has failed
 * to flush, nothing else can be relied upon.
 */
static void kbi_check_instance(struct kbi_disk *disk,
			       const struct kblk_identify *identify)
{
	if (!disk->gendisk ||
	    identify->instance == disk->identify.instance ||
	    atomic64_read(&disk->written) == atomic64_read(&disk->flushed))
		return;
	pr_err("%s: the target was started anew; writes that were not flushed may be lost, so flushes will fail until it is disconnected\n",
	       config_item_name(&disk->item));
	WRITE_ONCE(disk->lost_writes, true);
}

/* Is it the volume it was? It may have grown. */
static int kbi_check_volume(struct kbi_disk *disk,
			    const struct kblk_identify *identify)
{
	if (disk->gendisk &&
	    (identify->block_size != disk->identify.block_size ||
	     le64_to_cpu(identify->size) < le64_to_cpu(disk->identify.size))) {
		pr_err("%s: the target has another volume now\n",
		       config_item_name(&disk->item));
		return -ENODEV;
	}
	kbi_check_instance(disk, identify);
	disk->identify = *identify;
	return 0;
}

/* Most data of a request: what the target takes, and the adapter can register. */
static u32 kbi_max_transfer(struct kbi_disk *disk, u32 offered)
{
	u32 max = min(rounddown(offered, PAGE_SIZE), KBI_MAX_TRANSFER);
	DAT_IA_ATTR ia;

	/* It may begin inside a page. */
	if (dat_ia_query(disk->ia, NULL, DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE,
			 &ia, DAT_PROVIDER_FIELD_NONE, NULL) == DAT_SUCCESS &&
	    ia.max_lmr_block_size > PAGE_SIZE)
		max = min_t(u64, max, ia.max_lmr_block_size - PAGE_SIZE);
	return max;
}

static int kbi_bring_up_queue(struct kbi_disk *disk, struct kbi_queue *queue)
{
	u32 max;
	int err;

	err = kbi_queue_start(queue);
	if (err)
		return err;
	max = kbi_max_transfer(disk, le32_to_cpu(queue->welcome.max_transfer));
	if (!disk->gendisk && !queue->index)
		disk->max_transfer = max;
	else if (max < disk->max_transfer)
		return -EPROTO;
	err = kbi_slots_alloc_data(queue);
	return err ?: kbi_attach(queue);
}

/* Under disk->mutex. */
static int kbi_bring_up(struct kbi_disk *disk)
{
	struct kblk_identify identify;
	unsigned int i;
	int err;

	kbi_count(disk, KBI_STAT_ATTEMPTS, 1);
	disk->epoch++;
	err = kbi_ia_open(disk);
	for (i = 0; i < disk->nqueues && !err; i++)
		err = READ_ONCE(disk->removing) ? -EINTR :
		      kbi_bring_up_queue(disk, &disk->queues[i]);
	if (!err)
		err = kbi_identify(&disk->queues[0], &identify);
	if (!err)
		err = kbi_check_volume(disk, &identify);
	if (err)
		kbi_take_down(disk);
	return err;
}

/* The connections are made. One may have been lost already. */
static void kbi_go_live(struct kbi_disk *disk)
{
	unsigned int i;

	disk->attempts = 0;
	/* Who sees this sees the queues. */
	atomic_set_release(&disk->state, KBI_LIVE);
	for (i = 0; i < disk->nqueues; i++)
		if (!kbi_queue_live(&disk->queues[i]))
			kbi_disk_error(disk, NULL);
	if (disk->params.keepalive_ms)
		queue_delayed_work(kbi_wq, &disk->keepalive_work,
				   msecs_to_jiffies(disk->params.keepalive_ms));
}

/* ---- Recovery ------------------------------------------------------------ */

/**
 * kbi_disk_error() - a connection is lost: begin anew
 * @disk: the disk
 * @why: for the log, may be NULL
 *
 * Context: Any.
 */
void kbi_disk_error(struct kbi_disk *disk, const char *why)
{
	if (atomic_cmpxchg(&disk->state, KBI_LIVE, KBI_RECOVERING) != KBI_LIVE)
		return;
	if (why)
		pr_warn("%s: %s\n", config_item_name(&disk->item), why);
	kbi_count(disk, KBI_STAT_LOST, 1);
	queue_work(kbi_wq, &disk->err_work);
}

static void kbi_retry_later(struct kbi_disk *disk)
{
	u32 ms = disk->params.reconnect_ms;

	ms = min_t(u64, (u64)ms << min(disk->attempts, 20U),
		   disk->params.reconnect_max_ms);
	queue_delayed_work(kbi_wq, &disk->reconnect_work, msecs_to_jiffies(ms));
}

/* Let requests fail. Under disk->mutex. */
static void kbi_give_up(struct kbi_disk *disk)
{
	/* If it does not stand still kbi_err_work() is still to come. */
	if (kbi_state(disk) != KBI_RECOVERING || !disk->quiesced)
		return;
	if (!disk->removing)
		pr_err("%s: no connection for %u ms, requests fail now\n",
		       config_item_name(&disk->item),
		       jiffies_to_msecs(jiffies - disk->lost_at));
	atomic_set(&disk->state, KBI_FAILED);
	kbi_disk_unquiesce(disk);
}

static bool kbi_has_waited(struct kbi_disk *disk)
{
	return time_after_eq(jiffies, disk->lost_at +
			     msecs_to_jiffies(disk->params.give_up_ms));
}

void kbi_err_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(work, struct kbi_disk, err_work);
	unsigned int flags;

	mutex_lock(&disk->mutex);
	/* Memory may become free only when something was written to this disk. */
	flags = memalloc_noio_save();
	if (kbi_state(disk) == KBI_RECOVERING) {
		disk->lost_at = jiffies;
		kbi_disk_quiesce(disk);
		kbi_take_down(disk);
		kbi_disk_cancel(disk);
		if (disk->removing)
			kbi_give_up(disk);
		else
			kbi_retry_later(disk);
	}
	memalloc_noio_restore(flags);
	mutex_unlock(&disk->mutex);
}

void kbi_reconnect_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(to_delayed_work(work),
					     struct kbi_disk, reconnect_work);
	enum kbi_state state;
	unsigned int flags;
	int err;

	mutex_lock(&disk->mutex);
	/* See kbi_err_work(), which may be waiting for the mutex. */
	flags = memalloc_noio_save();
	state = kbi_state(disk);
	if (disk->removing || (state != KBI_RECOVERING && state != KBI_FAILED))
		goto out;
	disk->attempts++;
	err = kbi_bring_up(disk);
	if (!err) {
		pr_info("%s: connected again, attempt %u\n",
			config_item_name(&disk->item), disk->attempts);
		kbi_go_live(disk);
		kbi_disk_unquiesce(disk);
		kbi_disk_resize(disk);
	} else {
		if (kbi_has_waited(disk))
			kbi_give_up(disk);
		kbi_retry_later(disk);
	}
out:
	memalloc_noio_restore(flags);
	mutex_unlock(&disk->mutex);
}

/* ---- For the administrator ----------------------------------------------- */

static int kbi_first_connect(struct kbi_disk *disk)
{
	unsigned int i;
	int err;

	disk->nqueues = kbi_disk_queues(disk);
	disk->queues = kcalloc(disk->nqueues, sizeof(*disk->queues),
			       GFP_KERNEL);
	if (!disk->queues)
		return -ENOMEM;
	for (i = 0; i < disk->nqueues; i++) {
		disk->queues[i].disk = disk;
		disk->queues[i].index = i;
		spin_lock_init(&disk->queues[i].lock);
	}
	atomic64_set(&disk->written, 0);
	atomic64_set(&disk->flushed, 0);
	disk->lost_writes = false;
	do {
		disk->session = get_random_u64();
	} while (!disk->session);
	err = kbi_bring_up(disk);
	if (!err) {
		err = kbi_disk_add(disk);
		if (err)
			kbi_take_down(disk);
	}
	if (err) {
		kfree(disk->queues);
		disk->queues = NULL;
	}
	return err;
}

/* Take the disk away. What is dirty is written if there is a connection. */
void kbi_disconnect(struct kbi_disk *disk)
{
	WRITE_ONCE(disk->removing, true);
	mutex_lock(&disk->mutex);
	kbi_give_up(disk);
	mutex_unlock(&disk->mutex);
	cancel_delayed_work_sync(&disk->reconnect_work);
	kbi_disk_del(disk);

	mutex_lock(&disk->mutex);
	atomic_set(&disk->state, KBI_REMOVING);
	kbi_take_down(disk);
	mutex_unlock(&disk->mutex);
	cancel_delayed_work_sync(&disk->keepalive_work);
	cancel_work_sync(&disk->err_work);
	kfree(disk->queues);
	disk->queues = NULL;
	atomic_set(&disk->state, KBI_IDLE);
}

/* Connect and show the disk. Under disk->admin. */
int kbi_connect(struct kbi_disk *disk)
{
	struct kbi_params *params = &disk->params;
	int err;

	if (!params->ia[0] || !params->address[0] || !params->subsystem[0])
		return -ENXIO;
	err = inet_pton_with_scope(&init_net, AF_UNSPEC, params->address, NULL,
				   &disk->target);
	if (err)
		return err;
	mutex_lock(&disk->mutex);
	disk->removing = false;
	atomic_set(&disk->state, KBI_CONNECTING);
	err = kbi_first_connect(disk);
	if (!err)
		kbi_go_live(disk);
	else
		atomic_set(&disk->state, KBI_IDLE);
	mutex_unlock(&disk->mutex);
	if (err)
		return err;
	/* Reads the partition table, so recovery must be possible. */
	err = kbi_disk_show(disk);
	if (err)
		kbi_disconnect(disk);
	return err;
}
