// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The connections of a disk: made, lost together, made again.
 *
 *   IDLE -> CONNECTING -> LIVE <-> RECOVERING -> FAILED -> LIVE
 *
 * Entry points: kbi_connect() and kbi_disk_end() for the administrator,
 * kbi_disk_error() from anywhere, and the works.
 *
 * When one connection is lost all are taken down: only then is it certain that
 * the target cannot access memory of this host. The adapter is closed as well,
 * so that it can be removed. Outstanding requests return to the block layer,
 * whose queue is quiesced, and are resent on the next connections, on whatever
 * adapter has the name by then. The target ensures that the first copy of a
 * request does not overtake the second, see struct kblk_hello.
 *
 * Attempts repeat at growing intervals. After give_up_ms requests fail instead
 * of waiting; the disk stays, and the attempts go on.
 *
 * The disk owns its IA and queues. Locks: disk->admin serialises connect and
 * disconnect, disk->mutex making and taking down. disk->state leaves KBI_LIVE
 * without a lock, by atomic_cmpxchg() in kbi_disk_error().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <dat/kdat_linux.h>
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
		pr_warn_ratelimited("asynchronous event %s\n",
				    kdat_event_name(event->event_number));
}

static int kbi_ia_open(struct kbi_disk *disk)
{
	DAT_UPCALL_OBJECT async = { disk, kbi_async_upcall };
	DAT_PROVIDER_ATTR provider;
	DAT_RETURN ret;

	/* DAT_HANDLE_NULL asks for a new EVD; the old handle is stale. */
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

/*
 * Stop all queues and close the adapter. Nothing is sent concurrently: the
 * block layer is quiesced, or has no disk. Context: process.
 */
static void kbi_take_down(struct kbi_disk *disk)
{
	unsigned int i;

	lockdep_assert_held(&disk->mutex);

	for (i = 0; i < disk->nqueues; i++)
		kbi_queue_stop(&disk->queues[i]);
	disk->nlive = 0;
	kbi_ia_close(disk);
	kbi_volume_down(disk);
}

/*
 * Return why the volume cannot be the former one, or NULL. A volume may grow. A
 * cache may not appear: the block layer learned at kbi_disk_add() that there is
 * none, and would never flush.
 */
static const char *kbi_other_volume(const struct kblk_identify *was,
				    const struct kblk_identify *is)
{
	if (le64_to_cpu(is->size) < le64_to_cpu(was->size))
		return "it has become smaller";
	if (is->block_size != was->block_size)
		return "it has blocks of another size";
	if (~le32_to_cpu(was->flags) & le32_to_cpu(is->flags) &
	    KBLK_VOLUME_CACHE)
		return "it has a cache now, which nobody would flush";
	return NULL;
}

/*
 * Set @uuid to the UUID that the volume must have, nil for any: the one set by
 * the administrator, else the one of the first connect.
 */
static void kbi_wanted_uuid(struct kbi_disk *disk, uuid_t *uuid)
{
	*uuid = disk->params.uuid;
	if (uuid_is_null(uuid) && disk->gendisk)
		import_uuid(uuid, disk->identify.uuid);
}

/* Check that @identify describes the expected volume, and adopt it. */
static int kbi_check_volume(struct kbi_disk *disk,
			    const struct kblk_identify *identify)
{
	const char *name = config_item_name(&disk->item);
	const char *other = NULL;
	uuid_t wanted, uuid;
	__le32 cache = 0;
	int err;

	kbi_wanted_uuid(disk, &wanted);
	import_uuid(&uuid, identify->uuid);
	if (!uuid_is_null(&wanted) && !uuid_equal(&uuid, &wanted)) {
		pr_err("%s: the target has another volume: its UUID is %pUb, not %pUb\n",
		       name, &uuid, &wanted);
		return -ENODEV;
	}
	if (disk->gendisk)
		other = kbi_other_volume(&disk->identify, identify);
	if (other) {
		pr_err("%s: the target has another volume: %s\n", name, other);
		return -ENODEV;
	}
	err = kbi_volume_join(disk, &uuid);
	if (err)
		return err;
	kbi_volume_instance(disk, identify->instance);
	/* A cache that was there is flushed, whatever becomes of it. */
	if (disk->gendisk)
		cache = disk->identify.flags & cpu_to_le32(KBLK_VOLUME_CACHE);
	disk->identify = *identify;
	disk->identify.flags |= cache;
	WRITE_ONCE(disk->told_size, identify->size);
	return 0;
}

/*
 * Return the most data of a request: limited by the target, by KBI_MAX_TRANSFER
 * and by what the adapter can register.
 */
static u32 kbi_max_transfer(struct kbi_disk *disk, u32 offered)
{
	u32 max = min(rounddown(offered, PAGE_SIZE), KBI_MAX_TRANSFER);
	DAT_IA_ATTR ia;

	/* A page less, because the data may begin inside a page. */
	if (dat_ia_query(disk->ia, NULL, DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE,
			 &ia, DAT_PROVIDER_FIELD_NONE, NULL) == DAT_SUCCESS &&
	    ia.max_lmr_block_size > PAGE_SIZE)
		max = min_t(u64, max, ia.max_lmr_block_size - PAGE_SIZE);
	return max;
}

/*
 * Connect @queue and attach it; the caller calls kbi_queue_stop() on failure.
 * Context: process.
 */
int kbi_bring_up_queue(struct kbi_disk *disk, struct kbi_queue *queue)
{
	u32 max;
	int err;

	lockdep_assert_held(&disk->mutex);

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

/*
 * Open the adapter, make the first connection and check the volume; undo all of
 * it on failure. Context: process.
 */
static int kbi_bring_up(struct kbi_disk *disk)
{
	struct kblk_identify identify;
	int err;

	lockdep_assert_held(&disk->mutex);

	kbi_count(disk, KBI_STAT_ATTEMPTS, 1);
	disk->epoch++;
	err = kbi_ia_open(disk);
	if (!err)
		err = kbi_bring_up_queue(disk, &disk->queues[0]);
	if (!err)
		err = kbi_identify(&disk->queues[0], &identify);
	if (!err)
		err = kbi_check_volume(disk, &identify);
	if (!err)
		err = kbi_volume_enter(disk);
	if (err)
		kbi_take_down(disk);
	return err;
}

/* Enter KBI_LIVE after kbi_bring_up(). A connection may already be lost. */
static void kbi_go_live(struct kbi_disk *disk)
{
	disk->attempts = 0;
	disk->kept_alive = jiffies;
	kbi_queues_use(disk, 1);
	/*
	 * Publishes the queue to kbi_state(), and closes the race with
	 * kbi_queue_lost(), which sets the state of its queue (a full barrier)
	 * before kbi_disk_error() looks at disk->state: either kbi_disk_error()
	 * sees KBI_LIVE, or the dead queue is seen below.
	 */
	atomic_xchg(&disk->state, KBI_LIVE);
	if (!kbi_queue_live(&disk->queues[0]))
		kbi_disk_error(disk, NULL);
	if (disk->params.keepalive_ms)
		queue_delayed_work(kbi_wq, &disk->keepalive_work,
				   msecs_to_jiffies(disk->params.keepalive_ms));
}

/* ---- Recovery ------------------------------------------------------------ */

/**
 * kbi_disk_error() - start recovery after the loss of a connection
 * @disk: disk
 * @why: reason for the log, or NULL for none
 *
 * No effect unless the disk is live.
 *
 * Context: Any.
 */
void kbi_disk_error(struct kbi_disk *disk, const char *why)
{
	struct kbi_queue *adding;

	if (atomic_cmpxchg(&disk->state, KBI_LIVE, KBI_RECOVERING) != KBI_LIVE)
		return;
	if (why)
		pr_warn("%s: %s\n", config_item_name(&disk->item), why);
	kbi_count(disk, KBI_STAT_LOST, 1);
	/* kbi_err_work() waits for who connects this one. */
	adding = READ_ONCE(disk->adding);
	if (adding)
		kbi_queue_lost(adding, NULL);
	queue_work(kbi_wq, &disk->err_work);
}

static void kbi_retry_later(struct kbi_disk *disk)
{
	u32 ms = disk->params.reconnect_ms;

	ms = min_t(u64, (u64)ms << min(disk->attempts, 20U),
		   disk->params.reconnect_max_ms);
	queue_delayed_work(kbi_wq, &disk->reconnect_work, msecs_to_jiffies(ms));
}

/*
 * Let requests fail instead of waiting, unless another path has to fence the
 * session first; kbi_fail_work() continues then. Context: process.
 */
static void kbi_give_up(struct kbi_disk *disk)
{
	lockdep_assert_held(&disk->mutex);

	/*
	 * If the queue is not quiesced, kbi_err_work() has yet to take the
	 * connections down and calls this function when ->removing is set.
	 */
	if (kbi_state(disk) != KBI_RECOVERING || !disk->quiesced ||
	    !kbi_volume_may_fail(disk))
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

/* The disk is removed, or was lost for longer than kbi_give_up() waits: fail requests. */
void kbi_fail_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(work, struct kbi_disk, fail_work);
	unsigned int flags = kbi_disk_lock(disk);

	if (disk->removing || kbi_has_waited(disk))
		kbi_give_up(disk);
	kbi_disk_unlock(disk, flags);
}

void kbi_err_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(work, struct kbi_disk, err_work);
	unsigned int flags = kbi_disk_lock(disk);

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
	kbi_disk_unlock(disk, flags);
}

void kbi_reconnect_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(to_delayed_work(work),
					     struct kbi_disk, reconnect_work);
	unsigned int flags = kbi_disk_lock(disk);
	enum kbi_state state = kbi_state(disk);
	int err;

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
		queue_delayed_work(kbi_wq, &disk->more_work, 0);
	} else {
		if (kbi_has_waited(disk))
			kbi_give_up(disk);
		kbi_retry_later(disk);
	}
out:
	kbi_disk_unlock(disk, flags);
}

/* ---- For the administrator ----------------------------------------------- */

static void kbi_queues_free(struct kbi_disk *disk)
{
	unsigned int i;

	for (i = 0; i < disk->nqueues; i++)
		kbi_slots_free(&disk->queues[i]);
	kfree(disk->queues);
	kfree(disk->routes);
	disk->queues = NULL;
	disk->routes = NULL;
	disk->memory = 0;
}

static int kbi_queues_alloc(struct kbi_disk *disk)
{
	unsigned int i;

	kbi_disk_queues(disk, UINT_MAX);
	disk->queues = kcalloc(disk->nqueues, sizeof(*disk->queues),
			       GFP_KERNEL);
	disk->routes = kcalloc(disk->nqueues, sizeof(*disk->routes),
			       GFP_KERNEL);
	if (!disk->queues || !disk->routes)
		return -ENOMEM;
	for (i = 0; i < disk->nqueues; i++) {
		disk->queues[i].disk = disk;
		disk->queues[i].index = i;
		spin_lock_init(&disk->queues[i].lock);
	}
	return 0;
}

static int kbi_first_connect(struct kbi_disk *disk)
{
	int err = kbi_queues_alloc(disk);

	if (err) {
		kbi_queues_free(disk);
		return err;
	}
	do {
		disk->session = get_random_u64();
	} while (!disk->session);
	err = kbi_bring_up(disk);
	if (!err) {
		/* The block layer need not know of queues there will never be. */
		kbi_disk_queues(disk, min(disk->nqueues,
					  kbi_queues_allowed(disk)));
		err = kbi_disk_add(disk);
		if (err)
			kbi_take_down(disk);
	}
	if (err) {
		kbi_volume_leave(disk);
		kbi_queues_free(disk);
	}
	return err;
}

/*
 * Remove the disk. Dirty pages are written if the disk is connected; else
 * ->removing and kbi_give_up() make requests fail, so that kbi_disk_del() does
 * not wait for a connection. Context: process.
 */
static void kbi_disconnect(struct kbi_disk *disk)
{
	unsigned int flags;

	lockdep_assert_held(&disk->admin);

	WRITE_ONCE(disk->removing, true);
	flags = kbi_disk_lock(disk);
	kbi_give_up(disk);
	kbi_disk_unlock(disk, flags);
	cancel_delayed_work_sync(&disk->reconnect_work);
	kbi_disk_del(disk);

	flags = kbi_disk_lock(disk);
	atomic_set(&disk->state, KBI_REMOVING);
	kbi_take_down(disk);
	kbi_volume_leave(disk);
	kbi_disk_unlock(disk, flags);
	cancel_work_sync(&disk->fail_work);
	cancel_delayed_work_sync(&disk->fence_work);
	cancel_delayed_work_sync(&disk->keepalive_work);
	cancel_delayed_work_sync(&disk->more_work);
	cancel_work_sync(&disk->err_work);
	cancel_work_sync(&disk->resize_work);
	kbi_queues_free(disk);
	atomic_set(&disk->state, KBI_IDLE);
}

/*
 * Disconnect a disk that kbi_disk_end() was called for. Holds references on the
 * item and on the module.
 */
void kbi_end_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(work, struct kbi_disk, end_work);

	mutex_lock(&disk->admin);
	if (kbi_state(disk) != KBI_IDLE)
		kbi_disconnect(disk);
	mutex_unlock(&disk->admin);
	cancel_work_sync(&disk->fail_work);
	/* kbi_exit() waits for the rest. */
	module_put(THIS_MODULE);
	atomic_inc(&disk->ends);
	wake_up(&disk->ended);
	config_item_put(&disk->item);
}

/**
 * kbi_disk_end() - start to disconnect a disk
 * @disk: disk
 *
 * Requests that the target does not answer, or that another path has to fence,
 * may take for ever; nobody needs to wait for them with a lock of configfs.
 *
 * Context: Process context.
 * Return: a number for kbi_disk_has_ended()
 */
int kbi_disk_end(struct kbi_disk *disk)
{
	int before = atomic_read(&disk->ends);

	config_item_get(&disk->item);
	__module_get(THIS_MODULE);
	/*
	 * kbi_connect() holds ->admin as long as the partition table is read, which
	 * need not wait for another connection any more.
	 */
	WRITE_ONCE(disk->removing, true);
	queue_work(kbi_wq, &disk->fail_work);
	if (!queue_work(kbi_end_wq, &disk->end_work)) {
		module_put(THIS_MODULE);
		config_item_put(&disk->item);
	}
	return before;
}

/*
 * Connect and add the disk. Return 0 or an error number. Context: process.
 */
int kbi_connect(struct kbi_disk *disk)
{
	struct kbi_params *params = &disk->params;
	unsigned int flags;
	int err;

	lockdep_assert_held(&disk->admin);

	if (!params->ia[0] || !params->address[0] || !params->subsystem[0])
		return -ENXIO;
	err = inet_pton_with_scope(&init_net, AF_UNSPEC, params->address, NULL,
				   &disk->target);
	if (err)
		return err;
	flags = kbi_disk_lock(disk);
	disk->removing = false;
	atomic_set(&disk->state, KBI_CONNECTING);
	err = kbi_first_connect(disk);
	if (!err) {
		kbi_go_live(disk);
		/* The disk is usable; queues that are missing are tried again. */
		if (kbi_queues_add(disk))
			queue_delayed_work(kbi_wq, &disk->more_work,
					   msecs_to_jiffies(params->reconnect_max_ms));
	} else {
		atomic_set(&disk->state, KBI_IDLE);
	}
	kbi_disk_unlock(disk, flags);
	if (err)
		return err;
	/*
	 * kbi_disk_show() waits for reads of the partition table, and recovery
	 * needs disk->mutex: do not hold it here.
	 */
	err = kbi_disk_show(disk);
	if (err)
		kbi_disconnect(disk);
	return err;
}
