// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Volumes: what the disks of this host that are paths to one volume share.
 *
 * Entry points: kbi_volume_join() and kbi_volume_leave() with the life of a disk,
 * kbi_volume_enter() and kbi_volume_down() when its connections are made and lost,
 * kbi_volume_may_fail() when its requests are to fail, kbi_fence_work(),
 * kbi_volume_instance(), and kbi_volume_flushed() for requests.
 *
 * - Fences. When a request fails because of its connections, its sender repeats it on another
 *   path, while the target may still execute the first copy. So requests of a disk fail only
 *   after the target has ended the disk's session, on request of another path. If there is no
 *   other path, the session is noted, and a path fences it before it takes requests. A note
 *   about writes of a removed disk keeps the module loaded.
 * - Targets. What a target says on one path counts for the others, so a disk becomes a path
 *   only if its target is that of the others, see ini_vouch.c.
 * - Flushes. What is written through one path is flushed through another, so writes and
 *   flushes are counted for all paths together, and a flush that failed on one path fails on
 *   all.
 *
 * kbi_volumes has the volumes with a UUID, which stay while they have disks or sessions to
 * fence; a disk without a UUID has a volume for itself.
 *
 * Locks: kbi_volumes_lock, inside link->mutex of any link, guards kbi_volumes, kbi_round, and
 * everything about fences in each volume and disk. No request is sent under it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include "ini.h"

/* Time between two questions to a target whether a session has ended */
#define KBI_FENCE_MS		10
#define KBI_FENCE_MAX_MS	1000

static LIST_HEAD(kbi_volumes);
DEFINE_MUTEX(kbi_volumes_lock);	/* volumes and fences */
u64 kbi_round;

/* ---- The volume ---------------------------------------------------------- */

static struct kbi_volume *kbi_volume_find(const uuid_t *uuid)
{
	struct kbi_volume *volume;

	lockdep_assert_held(&kbi_volumes_lock);

	list_for_each_entry(volume, &kbi_volumes, link)
		if (!uuid_is_null(uuid) && uuid_equal(&volume->uuid, uuid))
			return volume;
	return NULL;
}

static void kbi_lost_free(struct kbi_lost *lost)
{
	kfree(lost->target);
	kfree(lost);
}

/* Drop the module reference of @volume, which has a disk that holds one, or is to be freed. */
static void kbi_volume_unpin(struct kbi_volume *volume)
{
	if (volume->pins)
		module_put(THIS_MODULE);
	volume->pins = false;
}

static void kbi_volume_free(struct kbi_volume *volume)
{
	struct kbi_lost *lost, *next;

	lockdep_assert_held(&kbi_volumes_lock);

	list_for_each_entry_safe(lost, next, &volume->lost, link)
		kbi_lost_free(lost);
	list_del(&volume->link);
	kbi_volume_unpin(volume);
	kfree(volume);
}

/*
 * Clean up @volume if it has no disk any more. Sessions without writes need no fence then. If
 * a session with writes is left, the volume stays and keeps the module loaded: nobody else
 * knows of the session.
 */
void kbi_volume_put(struct kbi_volume *volume)
{
	struct kbi_lost *lost, *next;

	lockdep_assert_held(&kbi_volumes_lock);

	if (!list_empty(&volume->disks) || volume->asking)
		return;
	list_for_each_entry_safe(lost, next, &volume->lost, link) {
		if (lost->writes)
			continue;
		list_del(&lost->link);
		kbi_lost_free(lost);
	}
	if (list_empty(&volume->lost) || uuid_is_null(&volume->uuid)) {
		kbi_volume_free(volume);
	} else if (!volume->pins) {
		/* The item of a disk holds a reference on the module now. */
		__module_get(THIS_MODULE);
		volume->pins = true;
		pr_warn("writes to volume %pUb may still be under way at the target; the module stays loaded until a disk of the volume was connected\n",
			&volume->uuid);
	}
}

static struct kbi_volume *kbi_volume_make(const uuid_t *uuid)
{
	struct kbi_volume *volume = kzalloc(sizeof(*volume), GFP_KERNEL);

	lockdep_assert_held(&kbi_volumes_lock);

	if (!volume)
		return NULL;
	INIT_LIST_HEAD(&volume->link);
	INIT_LIST_HEAD(&volume->disks);
	INIT_LIST_HEAD(&volume->lost);
	volume->uuid = *uuid;
	if (!uuid_is_null(uuid))
		list_add(&volume->link, &kbi_volumes);
	return volume;
}

/* Return whether @disk may be one of the paths to @volume; if not, log why. */
static bool kbi_may_join(struct kbi_disk *disk, struct kbi_volume *volume)
{
	struct kbi_disk *other;

	lockdep_assert_held(&kbi_volumes_lock);

	list_for_each_entry(other, &volume->disks, volume_link) {
		if (other == disk || (disk->link->queues[0].hosts && other->hosts))
			continue;
		pr_err("%s: the volume is disk %s already, and the target does not know about paths\n",
		       config_item_name(&disk->item),
		       config_item_name(&other->item));
		return false;
	}
	return true;
}

/* Return whether @disk must be the only path but @volume has another one; if so, log it. */
static bool kbi_is_second(struct kbi_disk *disk, struct kbi_volume *volume)
{
	struct kbi_disk *other;

	lockdep_assert_held(&kbi_volumes_lock);

	other = list_first_entry_or_null(&volume->disks, struct kbi_disk, volume_link);
	if (!disk->params.only_path || !other)
		return false;
	pr_err("%s: the volume is disk %s already\n", config_item_name(&disk->item),
	       config_item_name(&other->item));
	return true;
}

/* ---- Joining ------------------------------------------------------------- */

static struct kbi_lost *kbi_lost_make(struct kbi_disk *disk)
{
	struct kbi_lost *lost = kzalloc(sizeof(*lost), GFP_KERNEL);

	if (!lost)
		return NULL;
	lost->target = kasprintf(GFP_KERNEL, "%s %s", disk->params.ia, disk->params.address);
	if (!lost->target) {
		kfree(lost);
		return NULL;
	}
	INIT_LIST_HEAD(&lost->link);
	lost->disk = disk;
	lost->session = disk->link->session;
	return lost;
}

static int kbi_join_new(struct kbi_disk *disk, const uuid_t *uuid)
{
	struct kbi_volume *volume = kbi_volume_find(uuid);
	struct kbi_lost *lost = kbi_lost_make(disk);
	int err = lost ? 0 : -ENOMEM;

	if (!err && volume && kbi_is_second(disk, volume))
		err = -EEXIST;
	if (!err && volume && !kbi_may_join(disk, volume))
		err = -EBUSY;
	if (!err && volume && !kbi_is_trusted(disk, volume, lost->target))
		err = kbi_vouch(disk, volume);
	if (!err && !volume)
		volume = kbi_volume_make(uuid);
	if (!err && !volume)
		err = -ENOMEM;
	if (err) {
		if (lost)
			kbi_lost_free(lost);
		return err;
	}
	kbi_volume_unpin(volume);
	disk->unanswered = false;
	disk->lost = lost;
	disk->fence = KBI_FENCE_NONE;
	disk->volume = volume;
	list_add_tail(&disk->volume_link, &volume->disks);
	return 0;
}

/*
 * The target tells the UUID of the disk's volume, which it did not before. If other disks have
 * left that volume, take over the sessions that they left.
 */
static int kbi_join_late(struct kbi_disk *disk, const uuid_t *uuid)
{
	struct kbi_volume *volume = kbi_volume_find(uuid);

	if (volume && (!list_empty(&volume->disks) || volume->asking ||
		       !kbi_is_trusted(disk, volume, disk->lost->target))) {
		pr_err("%s: the volume turns out to be that of another disk; disconnect one\n",
		       config_item_name(&disk->item));
		return -EBUSY;
	}
	if (volume) {
		list_splice_init(&volume->lost, &disk->volume->lost);
		kbi_volume_free(volume);
	}
	disk->volume->uuid = *uuid;
	list_add(&disk->volume->link, &kbi_volumes);
	return 0;
}

/**
 * kbi_volume_join() - make a disk a path to its volume, or check that it is
 * @disk: disk, whose first queue is attached
 * @uuid: UUID of the volume, or nil
 *
 * Context: Process context, may sleep.
 * Return: 0 or an error number.
 */
int kbi_volume_join(struct kbi_disk *disk, const uuid_t *uuid)
{
	int err = 0;

	lockdep_assert_held(&disk->link->mutex);

	mutex_lock(&kbi_volumes_lock);
	if (!disk->volume)
		err = kbi_join_new(disk, uuid);
	else if (uuid_is_null(&disk->volume->uuid) && !uuid_is_null(uuid))
		err = kbi_join_late(disk, uuid);
	else if (!kbi_may_join(disk, disk->volume))
		err = -EBUSY;
	if (!err)
		disk->hosts = disk->link->queues[0].hosts;
	mutex_unlock(&kbi_volumes_lock);
	return err;
}

/*
 * Undo kbi_volume_join(). A session that is to be fenced stays with the volume.
 * Context: process, connections down.
 */
void kbi_volume_leave(struct kbi_disk *disk)
{
	struct kbi_volume *volume = disk->volume;

	lockdep_assert_held(&disk->link->mutex);

	if (!volume)
		return;
	mutex_lock(&kbi_volumes_lock);
	if (list_empty(&disk->lost->link))
		kbi_lost_free(disk->lost);
	else
		disk->lost->disk = NULL;
	disk->lost = NULL;
	disk->volume = NULL;
	list_del(&disk->volume_link);
	if (list_empty(&volume->disks)) {
		atomic64_set(&volume->written, 0);
		atomic64_set(&volume->flushed, 0);
		volume->lost_writes = false;
	}
	kbi_volume_put(volume);
	mutex_unlock(&kbi_volumes_lock);
}

/* Forget the sessions that nobody has fenced; there are no disks, nor sessions with writes. */
void kbi_volumes_free(void)
{
	struct kbi_volume *volume, *next;

	mutex_lock(&kbi_volumes_lock);
	list_for_each_entry_safe(volume, next, &kbi_volumes, link)
		kbi_volume_free(volume);
	mutex_unlock(&kbi_volumes_lock);
}

/* Forget the sessions that keep the module loaded. Context: process. */
void kbi_volumes_forget(void)
{
	struct kbi_volume *volume, *next;

	mutex_lock(&kbi_volumes_lock);
	list_for_each_entry_safe(volume, next, &kbi_volumes, link)
		if (list_empty(&volume->disks) && !volume->asking)
			kbi_volume_free(volume);
	mutex_unlock(&kbi_volumes_lock);
}

/* ---- Fences -------------------------------------------------------------- */

/*
 * Copy a session of the volume that @disk is to fence to @to; return false if there is none.
 * Context: process.
 */
static bool kbi_next_lost(struct kbi_disk *disk, struct kbi_lost *to)
{
	struct kbi_lost *lost;

	lockdep_assert_held(&kbi_volumes_lock);

	list_for_each_entry(lost, &disk->volume->lost, link) {
		if (lost == disk->lost)
			continue;
		*to = *lost;
		return true;
	}
	return false;
}

/* @lost is fenced: free it, or let the requests of its disk fail. Context: process. */
static void kbi_lost_done(struct kbi_lost *lost)
{
	lockdep_assert_held(&kbi_volumes_lock);

	list_del_init(&lost->link);
	if (!lost->disk) {
		kbi_lost_free(lost);
		return;
	}
	lost->disk->fence = KBI_FENCE_DONE;
	queue_work(kbi_wq, &lost->disk->fail_work);
}

/*
 * The target has ended the session in @was: it is fenced, unless its disk has connected and
 * lost a session again meanwhile.
 */
static void kbi_fenced(struct kbi_disk *disk, const struct kbi_lost *was)
{
	struct kbi_lost *lost;

	mutex_lock(&kbi_volumes_lock);
	list_for_each_entry(lost, &disk->volume->lost, link) {
		if (lost->round != was->round)
			continue;
		kbi_lost_done(lost);
		break;
	}
	mutex_unlock(&kbi_volumes_lock);
}

/*
 * Have the target end the sessions that @disk is to fence. Return 0 if none is left, -EAGAIN
 * if the target is not done with one, -EBUSY to try later, or another error number.
 * Context: process.
 */
static int kbi_fence_all(struct kbi_disk *disk)
{
	struct kbi_lost lost;
	int err = 0;
	bool more;

	lockdep_assert_held(&disk->link->mutex);

	do {
		mutex_lock(&kbi_volumes_lock);
		more = kbi_next_lost(disk, &lost);
		mutex_unlock(&kbi_volumes_lock);
		if (!more)
			break;
		/*
		 * The session is this link's own: letting @disk attach ended what a former
		 * disk had left.
		 */
		if (lost.session == disk->link->session)
			err = 0;
		else if (disk->link->queues[0].hosts)
			err = kbi_fence(&disk->uses[0], &lost);
		else if (!lost.told)
			pr_warn("%s: the target does not know about paths; writes of a former disk may still be under way there\n",
				config_item_name(&disk->item));
		if (lost.told && (!err || err == -EAGAIN)) {
			kbi_vouched(disk, &lost, err);
			err = 0;
		} else if (!err) {
			kbi_fenced(disk, &lost);
		}
	} while (!err);
	return err;
}

/* Fence what other paths have lost since kbi_volume_enter(), while the disk is in use. */
void kbi_fence_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(to_delayed_work(work),
					     struct kbi_disk, fence_work);
	unsigned int flags = kbi_link_lock(disk->link);
	int err;

	if (kbi_state(disk) == KBI_LIVE) {
		err = kbi_fence_all(disk);
		if (!err)
			disk->fence_ms = KBI_FENCE_MS;
		else if (err == -EAGAIN || err == -EBUSY)
			queue_delayed_work(kbi_wq, &disk->fence_work,
					   msecs_to_jiffies(disk->fence_ms));
		disk->fence_ms = min(2 * disk->fence_ms, KBI_FENCE_MAX_MS);
	}
	kbi_link_unlock(disk->link, flags);
}

/* ---- Paths that come and go ---------------------------------------------- */

/*
 * Make @disk a path if it has nothing left to fence; kbi_fence_work() fences what is lost from
 * now on. The target has ended the disk's own former session, as it let @disk attach.
 */
static bool kbi_is_path_now(struct kbi_disk *disk)
{
	struct kbi_lost lost;

	mutex_lock(&kbi_volumes_lock);
	disk->is_path = !kbi_next_lost(disk, &lost);
	if (disk->is_path) {
		list_del_init(&disk->lost->link);
		disk->fence = KBI_FENCE_NONE;
		disk->unanswered = false;
		disk->fence_ms = KBI_FENCE_MS;
	}
	mutex_unlock(&kbi_volumes_lock);
	return disk->is_path;
}

/**
 * kbi_volume_enter() - make a disk that has connected a path to its volume
 * @disk: disk; its first queue is attached, and no request was sent
 *
 * Fence the sessions that other paths have lost, and wait until the target has ended them, for
 * connect_timeout_ms at most; do not wait if disks share the link.
 *
 * Context: Process context, may sleep.
 * Return: 0, -EAGAIN to try later, or another error number.
 */
int kbi_volume_enter(struct kbi_disk *disk)
{
	unsigned long until = jiffies;
	u32 ms = KBI_FENCE_MS;
	int err = 0;
	bool more;

	lockdep_assert_held(&disk->link->mutex);

	if (disk->link->ndisks == 1)
		until += msecs_to_jiffies(disk->params.connect_timeout_ms);
	do {
		if (err)
			msleep(ms);
		ms = min(2 * ms, KBI_FENCE_MAX_MS);
		err = kbi_fence_all(disk);
		more = err ? err == -EAGAIN || err == -EBUSY : !kbi_is_path_now(disk);
	} while (more && !READ_ONCE(disk->removing) && time_before(jiffies, until));
	if (err == -EAGAIN)
		pr_info_ratelimited("%s: the target is still busy with requests of another path\n",
				    config_item_name(&disk->item));
	/* -EBUSY, as when requests of other disks have all credits, also means to try later. */
	return more ? -EAGAIN : err;
}

/*
 * Note that @disk is no path any more. Disks that wait for it to fence their sessions look for
 * another path. Context: process, connections down.
 */
void kbi_volume_down(struct kbi_disk *disk)
{
	struct kbi_lost *lost;

	lockdep_assert_held(&disk->link->mutex);

	if (!disk->volume)
		return;
	mutex_lock(&kbi_volumes_lock);
	list_for_each_entry(lost, &disk->volume->lost, link)
		if (disk->is_path && lost->disk && lost->disk != disk)
			queue_work(kbi_wq, &lost->disk->fail_work);
	disk->is_path = false;
	mutex_unlock(&kbi_volumes_lock);
}

static struct kbi_disk *kbi_other_path(struct kbi_disk *disk)
{
	struct kbi_disk *other;

	list_for_each_entry(other, &disk->volume->disks, volume_link)
		if (other != disk && other->is_path)
			return other;
	return NULL;
}

/**
 * kbi_volume_may_fail() - return whether requests that @disk has sent may fail
 * @disk: disk; its connections are down
 *
 * Requests may fail if the disk's session is fenced, or if there is no other path: the next
 * path fences the session before it takes requests. Otherwise another path is asked to fence
 * the session, and disk->fail_work is queued when there is news.
 *
 * Context: Process context, may sleep.
 * Return: whether the requests may fail
 */
bool kbi_volume_may_fail(struct kbi_disk *disk)
{
	struct kbi_disk *other = NULL;

	lockdep_assert_held(&disk->link->mutex);

	mutex_lock(&kbi_volumes_lock);
	if (disk->fence == KBI_FENCE_NONE) {
		disk->lost->epoch = disk->link->epoch;
		disk->lost->round = ++kbi_round;
		disk->lost->writes = READ_ONCE(disk->unanswered);
		list_add_tail(&disk->lost->link, &disk->volume->lost);
		disk->fence = KBI_FENCE_WANTED;
	}
	if (disk->fence == KBI_FENCE_WANTED)
		other = kbi_other_path(disk);
	if (other)
		mod_delayed_work(kbi_wq, &other->fence_work, 0);
	mutex_unlock(&kbi_volumes_lock);
	return !other;
}

/* ---- Writes and flushes -------------------------------------------------- */

/**
 * kbi_volume_instance() - note the instance of a volume
 * @disk: disk that has connected
 * @instance: instance that the target has told
 *
 * A new instance may have lost writes of any path that were not flushed. Later flushes fail
 * then, as on any disk that has failed to flush: nothing else can be relied upon.
 *
 * Context: Process context, may sleep.
 */
void kbi_volume_instance(struct kbi_disk *disk, __le64 instance)
{
	struct kbi_volume *volume = disk->volume;

	mutex_lock(&kbi_volumes_lock);
	if (instance != volume->instance &&
	    atomic64_read(&volume->written) != atomic64_read(&volume->flushed)) {
		pr_err("%s: the target was started anew; writes that were not flushed may be lost, so flushes will fail until it is disconnected\n",
		       config_item_name(&disk->item));
		WRITE_ONCE(volume->lost_writes, true);
	}
	volume->instance = instance;
	mutex_unlock(&kbi_volumes_lock);
}

/*
 * Note that a flush has succeeded that was sent after @written writes. litmus: none, a count.
 */
void kbi_volume_flushed(struct kbi_volume *volume, s64 written)
{
	s64 flushed = atomic64_read(&volume->flushed);

	while (flushed < written &&
	       !atomic64_try_cmpxchg(&volume->flushed, &flushed, written))
		;
}
