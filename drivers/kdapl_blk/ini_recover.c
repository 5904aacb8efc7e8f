// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A disk: attached to its volume, lost, attached again.
 *
 *   IDLE -> CONNECTING -> LIVE <-> RECOVERING -> FAILED -> LIVE
 *
 * Entry points: kbi_connect_begin() and kbi_disk_end() for the administrator; for ini_link.c
 * kbi_disk_attach(), kbi_disk_go_live() and kbi_disk_go_on() when there is a connection,
 * kbi_disk_lost() from anywhere, kbi_disk_stop() and kbi_disk_down() when the connection is
 * gone, and kbi_give_up().
 *
 * A disk that has lost its volume is quiesced, and its requests wait until the volume is
 * attached again. After give_up_ms they fail instead of waiting; the disk stays, and the
 * attempts go on.
 *
 * A disk that shares its link may lose its volume alone: the target detaches it and answers
 * all its requests. kbi_recover_work() waits for these answers before it attaches the volume
 * again, so nothing is sent twice before that. A link ends when none of its disks is attached,
 * and is made again when one of them is due: ini_retry.c has the intervals.
 *
 * Connecting is done by a work item, so that whoever has asked for it can be killed, however
 * long a target, a driver or another disk of the link takes. kbi_disk_end() has it end early.
 *
 * Locks: disk->admin serialises connect and disconnect, link->mutex everything else.
 * disk->state leaves KBI_LIVE without a lock, by atomic_cmpxchg() in kbi_disk_lost() and
 * kbi_disk_detached().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/printk.h>
#include "ini.h"

/* Time between attempts of the first connect to attach a busy volume */
#define KBI_JOIN_MS	100

/* ---- The volume ---------------------------------------------------------- */

/*
 * Return why the volume cannot be the former one, or NULL. A volume may grow, but gain no
 * cache: kbi_disk_add() has told the block layer that there is none, so it would never flush.
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
 * Set @uuid to the UUID that the volume must have, nil for any: the one set by the
 * administrator, else the one of the first connect.
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
	/* A cache that the block layer knows of is flushed, even if the volume has none now. */
	if (disk->gendisk)
		cache = disk->identify.flags & cpu_to_le32(KBLK_VOLUME_CACHE);
	disk->identify = *identify;
	disk->identify.flags |= cache;
	WRITE_ONCE(disk->told_size, identify->size);
	return 0;
}

static int kbi_attach_checked(struct kbi_disk *disk)
{
	struct kbi_use *use = &disk->uses[0];
	struct kblk_identify identify;
	int err;

	err = kbi_attach(use);
	if (err)
		return err;
	err = kbi_identify(use, &identify);
	if (!err)
		err = kbi_check_volume(disk, &identify);
	if (!err)
		err = kbi_volume_enter(disk);
	if (!err)
		disk->nattached = 1;
	else
		kbi_detach(use);
	return err;
}

/*
 * Attach @disk on the first connection and check the volume. On failure @disk is no path to
 * its volume, and is blamed if the connection has ended. Context: process.
 */
int kbi_disk_attach(struct kbi_disk *disk)
{
	struct kbi_queue *queue = &disk->link->queues[0];
	int err;

	lockdep_assert_held(&disk->link->mutex);

	if (!kbi_queue_live(queue))
		return -ENOTCONN;
	err = kbi_attach_checked(disk);
	/* On -EREMCHG kbi_vouch() has had the connection ended, which is nobody's fault. */
	if (err && err != -EREMCHG && !kbi_queue_live(queue))
		kbi_disk_blame(disk);
	return err;
}

/*
 * Enter KBI_LIVE after kbi_disk_attach(). The connection may already be lost: the caller
 * checks the state of the link, or makes the link live, afterwards.
 */
void kbi_disk_go_live(struct kbi_disk *disk)
{
	disk->attempts = 0;
	disk->live_at = jiffies;
	disk->detached = false;
	if (disk->ends_link)
		disk->link->spoils = 0;
	disk->ends_link = false;
	kbi_queues_route(disk);
	/* Pairs with kbi_state() and kbi_link_error(). litmus: blk-routes, blk-lost */
	atomic_xchg(&disk->state, KBI_LIVE);
}

/* ---- Recovery ------------------------------------------------------------ */

/*
 * Note that @disk has lost its connections, unless it had none. litmus: blk-lost
 * Context: any.
 */
void kbi_disk_lost(struct kbi_disk *disk)
{
	if (atomic_cmpxchg(&disk->state, KBI_LIVE, KBI_RECOVERING) == KBI_LIVE)
		kbi_count(disk, KBI_STAT_LOST, 1);
}

/*
 * Note that the target has detached @disk from its volume. The target still answers the
 * outstanding requests of @disk. Context: any.
 */
void kbi_disk_detached(struct kbi_disk *disk)
{
	/*
	 * Set ->detached before the state, which kbi_disk_stop() reads first.
	 * litmus: blk-detached, blk-out
	 */
	WRITE_ONCE(disk->detached, true);
	if (atomic_cmpxchg(&disk->state, KBI_LIVE, KBI_RECOVERING) == KBI_LIVE)
		kbi_count(disk, KBI_STAT_DETACHED, 1);
	mod_delayed_work(kbi_wq, &disk->recover_work, 0);
}

/*
 * Quiesce @disk if it was lost since kbi_disk_go_on(), and return whether this was so; the
 * caller calls kbi_disk_wait_quiesced() next. Context: process.
 */
bool kbi_disk_stop(struct kbi_disk *disk)
{
	if (kbi_state(disk) != KBI_RECOVERING || disk->quiesced)
		return false;
	disk->lost_at = jiffies;
	disk->recover_at = jiffies;
	if (READ_ONCE(disk->detached))
		kbi_disk_flaps(disk);
	return kbi_disk_quiesce(disk);
}

/* Note that no queue is attached to the volume of @disk any more. Context: process. */
void kbi_disk_down(struct kbi_disk *disk)
{
	disk->nattached = 0;
	kbi_volume_down(disk);
}

/*
 * Return whether @disk has no requests outstanding on a link that disks share. Requests on
 * another link return when that link is taken down. Context: process.
 */
static bool kbi_is_drained(struct kbi_disk *disk)
{
	unsigned int i;

	for (i = 0; i < disk->link->nqueues; i++)
		if (atomic_read(&disk->uses[i].out))
			return false;
	return true;
}

/* Have the block layer resume @disk after kbi_disk_go_live(). Context: process. */
void kbi_disk_go_on(struct kbi_disk *disk, unsigned int attempts)
{
	pr_info_ratelimited("%s: connected again, attempt %u\n",
			    config_item_name(&disk->item), attempts);
	kbi_disk_unquiesce(disk);
	kbi_resize_later(disk);
}

/*
 * Let the requests of @disk fail instead of waiting, unless another path has to fence the
 * session first; kbi_fail_work() calls this function again then. Context: process.
 */
void kbi_give_up(struct kbi_disk *disk)
{
	lockdep_assert_held(&disk->link->mutex);

	/*
	 * If the queue is not quiesced, kbi_err_work() has yet to take the connections down,
	 * and calls this function if ->removing is set. kbi_recover_work() does so when the
	 * last request is answered.
	 */
	if (kbi_state(disk) != KBI_RECOVERING || !disk->quiesced ||
	    !kbi_is_drained(disk) || !kbi_volume_may_fail(disk))
		return;
	if (!disk->removing)
		pr_err("%s: no connection for %u ms, requests fail now\n",
		       config_item_name(&disk->item),
		       jiffies_to_msecs(jiffies - disk->lost_at));
	atomic_set(&disk->state, KBI_FAILED);
	kbi_disk_unquiesce(disk);
}

/* Fail the requests of a disk that is removed, or was lost for give_up_ms. */
void kbi_fail_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(work, struct kbi_disk, fail_work);
	struct kbi_link *link = kbi_link_of(disk);
	unsigned int flags;

	if (!link)
		return;
	flags = kbi_link_lock(link);
	if (disk->removing || kbi_has_waited(disk))
		kbi_give_up(disk);
	kbi_link_unlock(link, flags);
	kbi_link_put(link);
}

/* Attach @disk, all of whose requests wait, to its volume again. Context: process. */
static void kbi_disk_recover(struct kbi_disk *disk)
{
	unsigned int attempts = ++disk->attempts;
	struct kbi_link *link = disk->link;

	kbi_count(disk, KBI_STAT_ATTEMPTS, 1);
	if (kbi_disk_attach(disk)) {
		/* @disk has had its turn, see kbi_has_turn(). */
		kbi_disk_go_behind(disk);
		kbi_recover_later(disk);
		return;
	}
	kbi_disk_go_live(disk);
	/* Pairs with kbi_link_error(), which changes the link's state first. */
	if (kbi_link_state(link) != KBI_LINK_LIVE)
		kbi_disk_lost(disk);
	kbi_disk_go_on(disk, attempts);
	mod_delayed_work(kbi_wq, &link->more_work, 0);
}

/*
 * Attach the volume of a disk again when the disk has lost it, or when one of the last
 * requests of the disk was answered. If the link is lost, kbi_reconnect_work() does so.
 */
void kbi_recover_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(to_delayed_work(work),
					     struct kbi_disk, recover_work);
	struct kbi_link *link = disk->link;
	unsigned int flags = kbi_link_lock(link);
	enum kbi_state state = kbi_state(disk);

	if (kbi_link_state(link) != KBI_LINK_LIVE ||
	    (state != KBI_RECOVERING && state != KBI_FAILED))
		goto out;
	if (kbi_disk_stop(disk))
		kbi_disk_wait_quiesced(disk);
	kbi_disk_down(disk);
	kbi_link_check(link);
	if (kbi_link_state(link) != KBI_LINK_LIVE || !kbi_is_drained(disk))
		goto out;
	if (READ_ONCE(disk->removing))
		kbi_give_up(disk);
	else if (!kbi_is_due(disk))
		kbi_recover_wait(disk);
	else if (kbi_is_held_off(disk) || !kbi_has_turn(disk))
		kbi_recover_later(disk);
	else
		kbi_disk_recover(disk);
out:
	kbi_link_unlock(link, flags);
}

/* ---- Connect and disconnect ---------------------------------------------- */

/* Leave the link of @disk after kbi_link_remove(). Context: process. */
void kbi_disk_quit(struct kbi_disk *disk)
{
	cancel_delayed_work_sync(&disk->recover_work);
	cancel_work_sync(&disk->fail_work);
	cancel_delayed_work_sync(&disk->fence_work);
	cancel_delayed_work_sync(&disk->resize_work);
	kbi_link_quit(disk);
}

/*
 * Remove @disk. Dirty pages are written if it is connected; else ->removing and kbi_give_up()
 * make requests fail, so that kbi_disk_del() does not wait for a connection. Context: process.
 */
static void kbi_disconnect(struct kbi_disk *disk)
{
	struct kbi_link *link = disk->link;
	unsigned int flags;

	lockdep_assert_held(&disk->admin);

	WRITE_ONCE(disk->removing, true);
	flags = kbi_link_lock(link);
	kbi_give_up(disk);
	kbi_link_unlock(link, flags);
	/* With ->removing set, the work does not tell the block layer any more. */
	cancel_delayed_work_sync(&disk->resize_work);
	kbi_disk_del(disk);

	flags = kbi_link_lock(link);
	atomic_set(&disk->state, KBI_REMOVING);
	kbi_link_remove(disk);
	kbi_volume_leave(disk);
	kbi_link_unlock(link, flags);
	kbi_disk_quit(disk);
	atomic_set(&disk->state, KBI_IDLE);
}

/*
 * Disconnect a disk that kbi_disk_end() was called for. The work holds references on the item
 * and on the module.
 */
void kbi_end_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(work, struct kbi_disk, end_work);

	flush_work(&disk->connect_work);
	mutex_lock(&disk->admin);
	/* Without a link the disk is not connected, or not yet connected anew. */
	if (disk->link)
		kbi_disconnect(disk);
	mutex_unlock(&disk->admin);
	cancel_work_sync(&disk->fail_work);
	/* kbi_exit() waits until this function returns. */
	module_put(THIS_MODULE);
	/* Pairs with kbi_disk_has_ended(): the state has changed. litmus: blk-ended */
	(void)atomic_inc_return_release(&disk->ends);
	wake_up(&disk->ended);
	config_item_put(&disk->item);
}

/**
 * kbi_disk_end() - start to disconnect a disk
 * @disk: disk
 *
 * Nobody has to wait, with a lock of configfs, for requests that the target does not answer or
 * that another path has to fence: both may take for ever.
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
	 * Ends kbi_connect_work(): it stops waiting for targets and, if it reads the partition
	 * table, for another connection.
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
 * Make @disk usable, which kbi_link_add() has attached in this @epoch. Return 0 or an error
 * number.
 */
static int kbi_disk_begin(struct kbi_disk *disk, u32 epoch)
{
	struct kbi_link *link = disk->link;
	unsigned int flags = kbi_link_lock(link);
	int err = 0;

	if (link->epoch != epoch || !disk->nattached) {
		err = disk->params.share ? -EAGAIN : -ENOTCONN;
		goto out;
	}
	kbi_disk_go_live(disk);
	/* Pairs with kbi_link_error(), which changes the link's state first. */
	if (kbi_link_state(link) != KBI_LINK_LIVE)
		kbi_disk_lost(disk);
	/* Fence what other paths have lost since kbi_volume_enter(). */
	queue_delayed_work(kbi_wq, &disk->fence_work, 0);
	/* The disk is usable; kbi_more_work() tries again to add missing queues. */
	if (kbi_queues_add(link))
		queue_delayed_work(kbi_wq, &link->more_work,
				   msecs_to_jiffies(link->params.reconnect_max_ms));
out:
	kbi_link_unlock(link, flags);
	return err;
}

/*
 * Attach @disk, and make its gendisk without link->mutex: a holder of a lock of the block
 * layer may wait for a write to another disk of the link. Allocations are NOIO as in
 * kbi_link_lock(), since other paths may wait for this one already. Return 0 or an error
 * number.
 */
static int kbi_disk_start(struct kbi_disk *disk)
{
	struct kbi_link *link = disk->link;
	unsigned int flags, noio;
	u32 epoch;
	int err;

	flags = kbi_link_lock(link);
	err = READ_ONCE(disk->removing) ? -EINTR : kbi_link_add(disk);
	epoch = link->epoch;
	kbi_link_unlock(link, flags);
	noio = memalloc_noio_save();
	if (!err)
		err = kbi_disk_add(disk);
	memalloc_noio_restore(noio);
	if (!err)
		err = kbi_disk_begin(disk, epoch);
	if (!err)
		return 0;
	if (disk->gendisk)
		kbi_disk_del(disk);
	flags = kbi_link_lock(link);
	kbi_link_remove(disk);
	kbi_volume_leave(disk);
	kbi_link_unlock(link, flags);
	return err;
}

/*
 * Connect @disk on a link. If disks share the link, try again while the target is still busy
 * with former requests for this disk's volume; the other disks go on meanwhile. Return 0 or an
 * error number.
 */
static int kbi_disk_join(struct kbi_disk *disk)
{
	unsigned long until = jiffies +
			      msecs_to_jiffies(disk->params.connect_timeout_ms);
	int err;

	disk->flaps = 0;
	disk->ends_link = false;
	disk->ends_queue = 0;
	disk->vouched = uuid_null;
	for (;;) {
		err = kbi_link_join(disk);
		if (err)
			return err;
		err = kbi_disk_start(disk);
		if (!err)
			return 0;
		kbi_disk_quit(disk);
		if (err == -ERESTART || (err == -EREMCHG && !READ_ONCE(disk->removing)))
			continue;
		if (err != -EAGAIN || !disk->params.share ||
		    READ_ONCE(disk->removing) || time_after(jiffies, until))
			return err;
		msleep(KBI_JOIN_MS);
	}
}

/* Return @err, or -ECANCELED if @disk was disconnected while it was connecting. */
int kbi_connect_error(struct kbi_disk *disk, int err)
{
	return READ_ONCE(disk->removing) ? -ECANCELED : err;
}

/* Connect and add @disk. Return 0 or an error number. Context: process. */
static int kbi_connect(struct kbi_disk *disk)
{
	int err;

	lockdep_assert_held(&disk->admin);

	err = kbi_disk_join(disk);
	if (err) {
		atomic_set(&disk->state, KBI_IDLE);
		return kbi_connect_error(disk, err);
	}
	/*
	 * Not under link->mutex: kbi_disk_show() waits for reads of the partition table, and
	 * their recovery needs the mutex.
	 */
	err = kbi_connect_error(disk, kbi_disk_show(disk));
	if (err)
		kbi_disconnect(disk);
	return err;
}

/*
 * Connect a disk that kbi_connect_begin() was called for. The work holds references on the
 * item and on the module.
 */
void kbi_connect_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(work, struct kbi_disk, connect_work);

	mutex_lock(&disk->admin);
	WRITE_ONCE(disk->connect_err, disk->listing ? kbi_discover(disk) : kbi_connect(disk));
	/*
	 * Under the lock, so that the next caller of kbi_connect_begin() does not take this
	 * end for its own. Pairs with kbi_disk_has_connected(). litmus: blk-ended
	 */
	(void)atomic_inc_return_release(&disk->connects);
	mutex_unlock(&disk->admin);
	/* kbi_exit() waits until this function returns. */
	module_put(THIS_MODULE);
	wake_up(&disk->ended);
	config_item_put(&disk->item);
}

/**
 * kbi_connect_begin() - start to connect an idle disk, or to ask for volumes
 * @disk: disk; its parameters cannot change until it is idle again
 *
 * disk->connects changes when the disk is connected, or is idle again because of
 * disk->connect_err.
 *
 * Context: Process context.
 * Return: 0, or -ENXIO if parameters are missing
 */
int kbi_connect_begin(struct kbi_disk *disk)
{
	const struct kbi_params *params = &disk->params;

	lockdep_assert_held(&disk->admin);

	if (!params->ia[0] || !params->address[0] ||
	    (!disk->listing && !params->subsystem[0]))
		return -ENXIO;
	config_item_get(&disk->item);
	__module_get(THIS_MODULE);
	disk->removing = false;
	atomic_set(&disk->state, KBI_CONNECTING);
	queue_work(kbi_end_wq, &disk->connect_work);
	return 0;
}
