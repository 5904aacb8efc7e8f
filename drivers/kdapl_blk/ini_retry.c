// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * When connections that were lost are made again, disks attached again, and requests
 * given up that wait for that.
 *
 * Entry points: kbi_link_flaps() when the connections were lost, kbi_retry_later(),
 * kbi_retry_without() and kbi_link_wait() between attempts to connect; kbi_disk_flaps(),
 * kbi_recover_later() and kbi_recover_wait() for a disk whose link is live;
 * kbi_disk_blame() for one that ends it, kbi_disk_spoils() for one that ends a further queue.
 *
 * Attempts repeat at intervals that grow from reconnect_ms to reconnect_max_ms. So do
 * attempts that succeed, if a disk is detached, or the connections are lost, soon
 * afterwards: a target that does so all the time must not keep this host busy. If several
 * disks share the connections, it is not known because of which of them they do not last,
 * and the others must not wait for that: they are made again as ever.
 *
 * A target may be broken for one volume, and end the connections when it is to attach it.
 * The disk is remembered then (->ends_link), and the others connect without it. It is
 * tried again while the link is live, so each of its attempts costs the others a
 * reconnect: with a connection of its own it would be none of the session, whose requests
 * the target keeps in order. Attempts of all such disks together are reconnect_max_ms
 * apart in the end. If no other disk can be attached, those that are blamed take turns.
 *
 * If only a further queue ends when a disk is to be attached to it, the disk does with the
 * queues before it, and is tried again reconnect_max_ms later. Others may use that queue by
 * then, and lose the link once more if it ends again; hence one such disk at a time, by turns.
 *
 * Locks: link->mutex for all of it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include "ini.h"

/* Have @work run @at that time, jiffies, or now if that is over. Context: any. */
static void kbi_run_at(struct delayed_work *work, unsigned long at)
{
	unsigned long now = jiffies;

	mod_delayed_work(kbi_wq, work, time_after(at, now) ? at - now : 0);
}

/* Return how long to wait for the next attempt after @failed ones, in jiffies. */
static unsigned long kbi_retry_delay(const struct kbi_params *params,
				     unsigned int failed)
{
	u64 ms = (u64)params->reconnect_ms << min(failed, 20U);

	return msecs_to_jiffies(min_t(u64, ms, params->reconnect_max_ms));
}

/* Return whether what was live @since then was so for as long as attempts are apart. */
static bool kbi_was_stable(const struct kbi_params *params, unsigned long since)
{
	return time_after_eq(jiffies, since +
			     msecs_to_jiffies(params->reconnect_max_ms));
}

/* ---- A disk -------------------------------------------------------------- */

/* Return whether @disk is lost: there is a disk, and it is not attached. */
bool kbi_is_known(struct kbi_disk *disk)
{
	return kbi_state(disk) == KBI_RECOVERING || kbi_state(disk) == KBI_FAILED;
}

/* Return whether requests of @disk, which is lost, have waited as long as they are to. */
bool kbi_has_waited(struct kbi_disk *disk)
{
	return time_after_eq(jiffies, disk->lost_at +
			     msecs_to_jiffies(disk->params.give_up_ms));
}

/*
 * Return whether @disk, which is lost, may be attached again. The time is kept near
 * jiffies, however long that lasts.
 */
bool kbi_is_due(struct kbi_disk *disk)
{
	if (time_before(jiffies, disk->recover_at))
		return false;
	disk->recover_at = jiffies;
	return true;
}

/* Return whether @disk must not end the connections of others again so soon. */
bool kbi_is_held_off(struct kbi_disk *disk)
{
	return disk->ends_link && time_before(jiffies, disk->link->spoil_at);
}

/* Return whether @disk is not kept from being attached by one that waits longer. */
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

/* Return whether @disk is to be attached now, and is one that ends the link, or is not. */
bool kbi_is_wanted(struct kbi_disk *disk, bool ends_link)
{
	return disk->ends_link == ends_link && !READ_ONCE(disk->removing) &&
	       (!kbi_is_known(disk) || kbi_is_due(disk));
}

/*
 * The target has detached @disk. It is attached again at once if it was live for as long
 * as attempts are apart at most.
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

/* Put @disk behind the others of its link. Context: process. */
void kbi_disk_go_behind(struct kbi_disk *disk)
{
	struct kbi_link *link = disk->link;

	spin_lock_irq(&link->lock);
	list_move_tail(&disk->link_entry, &link->disks);
	spin_unlock_irq(&link->lock);
}

/*
 * The connections have ended while @disk was being attached. It goes behind the others
 * that this is true of.
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
	/* That others have to connect again is not because connections do not last. */
	if (kbi_link_state(link) != KBI_LINK_DOWN)
		link->flaps = 0;
	kbi_disk_go_behind(disk);
}

/*
 * Queue @n, a further one, has ended while @disk was being attached to it. It goes behind
 * the others. If they lose the link by it that is not because connections do not last.
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

/* Return whether @disk is not to be attached to queue @n yet, which it may spoil. */
bool kbi_is_kept_off(struct kbi_disk *disk, unsigned int n)
{
	return disk->ends_queue && n >= disk->ends_queue &&
	       time_before(jiffies, disk->link->more_at);
}

/*
 * Nothing is tried for @disk, which is lost, before @at: fail its requests if they have
 * waited long enough. Return @at, or when they have if that is earlier. Context: process.
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

/* Have kbi_recover_work() look again when @disk may be attached. Context: process. */
void kbi_recover_wait(struct kbi_disk *disk)
{
	kbi_run_at(&disk->recover_work, kbi_disk_wait(disk, disk->recover_at));
}

/* Try to attach @disk again, after an interval that grows. Context: process. */
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
 * The connections of @link were lost. If they do not last anyhow, that they have ended
 * while a disk was being attached tells nothing of it. Context: process.
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
 * Have kbi_reconnect_work() run when the next attempt is due, or earlier to fail requests
 * that have waited long enough, and for one attempt if that and their disk are due.
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

/* Try to connect after an interval that grows, when a disk is due. Context: process. */
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
 * An attempt to connect failed because of a disk that is blamed now. It does not count for
 * others that are to be attached: try again without that disk, at once, and return true.
 * Context: process.
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
