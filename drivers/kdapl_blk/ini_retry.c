// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * When lost connections are made again, disks are attached again, and requests that wait for
 * either are given up.
 *
 * Entry points: kbi_link_flaps() when the connections were lost, kbi_retry_later(),
 * kbi_retry_without() and kbi_link_wait() between attempts to connect; kbi_disk_flaps(),
 * kbi_recover_later() and kbi_recover_wait() for a disk whose link is live; kbi_disk_blame()
 * for a disk that ends the link, kbi_disk_spoils() for one that ends a further queue.
 *
 * Attempts are repeated at intervals that grow from reconnect_ms to reconnect_max_ms.
 * Successful attempts are delayed, too, if the disk is detached or the connections are lost
 * soon afterwards: such a target must not keep this host busy. If several disks share the
 * connections, it is not known which disk makes them fail, and the others must not wait for
 * it: the connections are then made again without that delay.
 *
 * A target may be broken for one volume, and end the connections when it is to attach that
 * volume. The disk is remembered (->ends_link), and the others connect without it. The disk is
 * tried again while the link is live, so each of its attempts costs the others a reconnect:
 * with a connection of its own it would not belong to the session, whose requests the target
 * keeps in order. Attempts of all such disks together end up reconnect_max_ms apart. If no
 * other disk can be attached, the blamed disks take turns.
 *
 * If only a further queue ends when a disk is to be attached to it, the disk uses the queues
 * before that one, and is tried again reconnect_max_ms later. Other disks may use that queue
 * by then, and lose the link if it ends again; hence one such disk at a time, in turns.
 *
 * Locks: link->mutex for all of this.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include "ini.h"

/* Schedule @work for the time @at, jiffies, or for now if @at is past. Context: any. */
static void kbi_run_at(struct delayed_work *work, unsigned long at)
{
	unsigned long now = jiffies;

	mod_delayed_work(kbi_wq, work, time_after(at, now) ? at - now : 0);
}

/* Return the delay before the next attempt after @failed failed ones, in jiffies. */
static unsigned long kbi_retry_delay(const struct kbi_params *params,
				     unsigned int failed)
{
	u64 ms = (u64)params->reconnect_ms << min(failed, 20U);

	return msecs_to_jiffies(min_t(u64, ms, params->reconnect_max_ms));
}

/* Return whether a link or disk that became live @since has lasted reconnect_max_ms. */
static bool kbi_was_stable(const struct kbi_params *params, unsigned long since)
{
	return time_after_eq(jiffies, since +
			     msecs_to_jiffies(params->reconnect_max_ms));
}

/* ---- A disk -------------------------------------------------------------- */

/* Return whether @disk is lost: it exists, and its volume is not attached. */
bool kbi_is_known(struct kbi_disk *disk)
{
	return kbi_state(disk) == KBI_RECOVERING || kbi_state(disk) == KBI_FAILED;
}

/* Return whether requests of @disk, which is lost, have waited for give_up_ms. */
bool kbi_has_waited(struct kbi_disk *disk)
{
	return time_after_eq(jiffies, disk->lost_at +
			     msecs_to_jiffies(disk->params.give_up_ms));
}

/*
 * Return whether @disk, which is lost, may be attached again. ->recover_at is kept near
 * jiffies, so that they can be compared however long the disk is lost.
 */
bool kbi_is_due(struct kbi_disk *disk)
{
	if (time_before(jiffies, disk->recover_at))
		return false;
	disk->recover_at = jiffies;
	return true;
}

/* Return whether @disk must wait before it may end the connections of others again. */
bool kbi_is_held_off(struct kbi_disk *disk)
{
	return disk->ends_link && time_before(jiffies, disk->link->spoil_at);
}

/* Return whether @disk may be attached, as no other disk that ends the link waits longer. */
bool kbi_has_turn(struct kbi_disk *disk)
{
	struct kbi_disk *other;

	if (!disk->ends_link)
		return true;
	list_for_each_entry(other, &disk->link->disks, link_entry)
		if (kbi_is_known(other) && other->ends_link && !READ_ONCE(other->removing))
			return other == disk;
	return true;
}

/* Return whether @disk is to be attached now and its ->ends_link is @ends_link. */
bool kbi_is_wanted(struct kbi_disk *disk, bool ends_link)
{
	return disk->ends_link == ends_link && !READ_ONCE(disk->removing) &&
	       (!kbi_is_known(disk) || kbi_is_due(disk));
}

/*
 * Note that the target has detached @disk, which is attached again at once if it was live for
 * reconnect_max_ms before.
 */
void kbi_disk_flaps(struct kbi_disk *disk)
{
	const struct kbi_params *params = &disk->link->params;

	if (kbi_was_stable(params, disk->live_at))
		disk->flaps = 0;
	if (disk->flaps)
		disk->recover_at += kbi_retry_delay(params, disk->flaps - 1);
	disk->flaps++;
}

/* Move @disk behind the other disks of its link. Context: process. */
void kbi_disk_go_behind(struct kbi_disk *disk)
{
	struct kbi_link *link = disk->link;

	spin_lock_irq(&link->lock);
	list_move_tail(&disk->link_entry, &link->disks);
	spin_unlock_irq(&link->lock);
}

/*
 * Blame @disk: the connections have ended while it was being attached. Move it behind the
 * other disks that are blamed.
 */
void kbi_disk_blame(struct kbi_disk *disk)
{
	struct kbi_link *link = disk->link;

	lockdep_assert_held(&link->mutex);

	if (!disk->ends_link && link->ndisks > 1)
		pr_warn("%s: the connections end when it is attached, others connect without it\n",
			config_item_name(&disk->item));
	disk->ends_link = true;
	link->spoil_at = jiffies + kbi_retry_delay(&link->params, link->spoils++);
	/*
	 * The other disks have to reconnect because of @disk, not because connections do not
	 * last.
	 */
	if (kbi_link_state(link) != KBI_LINK_DOWN)
		link->flaps = 0;
	kbi_disk_go_behind(disk);
}

/*
 * Note that queue @n, a further one, has ended while @disk was being attached to it, and move
 * @disk behind the others. If they lose the link by this, it does not count as connections
 * that do not last.
 */
void kbi_disk_spoils(struct kbi_disk *disk, unsigned int n)
{
	struct kbi_link *link = disk->link;

	lockdep_assert_held(&link->mutex);

	if (!disk->ends_queue) {
		pr_warn("%s: queue %u ends when it is attached, goes on without it\n",
			config_item_name(&disk->item), n);
		link->flaps = 0;
	}
	disk->ends_queue = n;
	link->more_at = jiffies + msecs_to_jiffies(link->params.reconnect_max_ms);
	kbi_disk_go_behind(disk);
}

/* Return whether @disk, which may spoil queue @n, is not to be attached to it yet. */
bool kbi_is_kept_off(struct kbi_disk *disk, unsigned int n)
{
	return disk->ends_queue && n >= disk->ends_queue &&
	       time_before(jiffies, disk->link->more_at);
}

/*
 * Nothing is tried for @disk, which is lost, before @at: fail its requests if they have waited
 * long enough. Return @at, or the time at which they will have, if that is earlier.
 * Context: process.
 */
static unsigned long kbi_disk_wait(struct kbi_disk *disk, unsigned long at)
{
	unsigned long fail_at = disk->lost_at +
				msecs_to_jiffies(disk->params.give_up_ms);

	if (kbi_has_waited(disk))
		kbi_give_up(disk);
	else if (kbi_state(disk) == KBI_RECOVERING && time_before(fail_at, at))
		at = fail_at;
	return at;
}

/* Schedule kbi_recover_work() for when @disk may be attached. Context: process. */
void kbi_recover_wait(struct kbi_disk *disk)
{
	kbi_run_at(&disk->recover_work, kbi_disk_wait(disk, disk->recover_at));
}

/* Schedule the next attempt to attach @disk, after a growing interval. Context: process. */
void kbi_recover_later(struct kbi_disk *disk)
{
	struct kbi_link *link = disk->link;

	if (kbi_is_held_off(disk))
		disk->recover_at = link->spoil_at;
	else if (kbi_is_due(disk))
		disk->recover_at += kbi_retry_delay(&link->params, disk->attempts);
	kbi_recover_wait(disk);
}

/* ---- The connections ----------------------------------------------------- */

/*
 * Note that the connections of @link were lost. If they never last, no disk is to blame that
 * was being attached when they ended. Context: process.
 */
void kbi_link_flaps(struct kbi_link *link)
{
	struct kbi_disk *disk;

	if (kbi_was_stable(&link->params, link->live_at))
		link->flaps = 0;
	else
		link->flaps++;
	if (link->flaps <= 1)
		return;
	list_for_each_entry(disk, &link->disks, link_entry)
		disk->ends_link = false;
	link->spoils = 0;
}

/* Return whether the first attempt is put off, since connections are lost all the time. */
static bool kbi_is_put_off(struct kbi_link *link)
{
	return link->flaps > 1 && link->ndisks == 1;
}

/*
 * Schedule kbi_reconnect_work() for the next attempt, or earlier to fail requests that have
 * waited long enough. A disk that is due gets one attempt before its requests fail.
 * Context: process.
 */
void kbi_link_wait(struct kbi_link *link)
{
	unsigned long at = link->retry_at;
	struct kbi_disk *disk;

	list_for_each_entry(disk, &link->disks, link_entry)
		if (link->attempts || kbi_is_put_off(link) || !kbi_is_due(disk))
			at = kbi_disk_wait(disk, at);
	kbi_run_at(&link->reconnect_work, at);
}

/*
 * Schedule the next attempt to connect, after a growing interval and not before a disk is due.
 * Context: process.
 */
void kbi_retry_later(struct kbi_link *link)
{
	unsigned int failed = link->attempts;
	struct kbi_disk *disk, *first = NULL;

	if (kbi_is_put_off(link))
		failed += link->flaps - 1;
	link->retry_at = jiffies + kbi_retry_delay(&link->params, failed);
	list_for_each_entry(disk, &link->disks, link_entry) {
		if (!kbi_is_known(disk) || READ_ONCE(disk->removing))
			continue;
		if (kbi_is_due(disk) || !first ||
		    time_before(disk->recover_at, first->recover_at))
			first = disk;
	}
	if (first && time_after(first->recover_at, link->retry_at))
		link->retry_at = first->recover_at;
	kbi_link_wait(link);
}

/*
 * An attempt to connect has failed because of a disk that is blamed now. If other disks are to
 * be attached, do not count the attempt, schedule one without the blamed disk at once, and
 * return true. Context: process.
 */
bool kbi_retry_without(struct kbi_link *link)
{
	struct kbi_disk *disk;

	list_for_each_entry(disk, &link->disks, link_entry) {
		if (!kbi_is_known(disk) || !kbi_is_wanted(disk, false))
			continue;
		link->attempts--;
		link->retry_at = jiffies;
		kbi_link_wait(link);
		return true;
	}
	return false;
}
