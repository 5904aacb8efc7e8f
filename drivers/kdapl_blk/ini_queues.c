// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which queues a link and its disks use: further queues beside the first, and routes of the
 * block layer to them.
 *
 * Entry points: kbi_queues_set() when a link is made, kbi_queues_use() and kbi_queues_route()
 * when the first queue is connected, kbi_queues_add() and kbi_more_work() for the others.
 *
 * A disk is live with its first queue alone, which is enough for requests that others wait
 * for, such as writes of pages to be reclaimed. The other queues are connected while the disk
 * is live. If the target allows fewer than are wanted, or memory is short, the hardware queues
 * of the block layer share the queues there are, and kbi_more_work() tries again. It also
 * retries a disk at whose ATTACH the target has ended a further queue, see kbi_disk_spoils().
 *
 * link->mutex serialises all of this. Routes change while the block layer is quiesced, so that
 * each message is sent by the queue that has begun it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include "ini.h"

/*
 * Set the number of queues to make: at most one of each kind per CPU, and @max in all, of
 * which at most half are for reads only.
 */
void kbi_queues_set(struct kbi_link *link, unsigned int max)
{
	const struct kbi_params *params = &link->params;
	unsigned int n = params->queues ?: num_online_cpus();

	link->nread = min3(params->read_queues, nr_cpu_ids, max / 2);
	link->nqueues = min3(n, nr_cpu_ids, max - link->nread) + link->nread;
}

/**
 * kbi_queues_use() - use the first queues
 * @link: link
 * @n: number of queues to use, 1 at least; all of them are attached
 *
 * The loss of a queue at the same time is noticed by kbi_queue_lost(), which changes the state
 * of the queue before it reads ->in_use, or by the caller, which checks the state of each
 * queue afterwards.
 *
 * Context: Process context.
 */
void kbi_queues_use(struct kbi_link *link, unsigned int n)
{
	unsigned int i;

	lockdep_assert_held(&link->mutex);

	for (i = 0; i < n; i++)
		WRITE_ONCE(link->queues[i].in_use, true);
	/* Pairs with atomic_xchg() in kbi_queue_lost(). litmus: blk-use */
	smp_mb();
	link->nlive = n;
}

/*
 * Have the block layer use the queues that @disk is attached to. @disk is quiesced, or has no
 * requests yet. Context: process.
 */
void kbi_queues_route(struct kbi_disk *disk)
{
	unsigned int n = disk->nattached, i;

	lockdep_assert_held(&disk->link->mutex);

	for (i = 0; i < disk->link->nqueues; i++)
		disk->routes[i] = &disk->uses[i < n ? i : i % n];
	disk->nrouted = n;
}

/* Return whether @disk is live and can be attached to queue @n. */
static bool kbi_is_next(struct kbi_disk *disk, unsigned int n)
{
	return kbi_state(disk) == KBI_LIVE && !READ_ONCE(disk->removing) &&
	       disk->nattached == n && !kbi_is_kept_off(disk, n);
}

/*
 * Attach @disk to queue @n, a further one. Return 0 or an error number, -ERESTART if the queue
 * has ended: @disk is then at another place in link->disks.
 */
static int kbi_queue_attach_disk(struct kbi_disk *disk, unsigned int n)
{
	struct kbi_use *use = &disk->uses[n];
	int err = kbi_attach(use);

	if (err && !kbi_queue_live(use->queue)) {
		kbi_disk_spoils(disk, n);
		return -ERESTART;
	}
	if (err)
		return err;
	disk->nattached++;
	if (disk->ends_queue == n)
		disk->ends_queue = 0;
	return 0;
}

/* Attach the first possible disk to queue @n. Return 0 or an error number. */
static int kbi_queue_attach(struct kbi_link *link, unsigned int n)
{
	struct kbi_disk *disk;
	int err = -ENOTCONN;

	list_for_each_entry(disk, &link->disks, link_entry) {
		if (!kbi_is_next(disk, n))
			continue;
		err = kbi_queue_attach_disk(disk, n);
		if (!err || err == -ERESTART)
			break;
	}
	return err;
}

/* Connect queue @n while the link is live, and attach a disk. Return 0 or an error. */
static int kbi_queue_add(struct kbi_link *link, unsigned int n)
{
	int err;

	/* kbi_queue_start() has the barrier, and checks the link's state. */
	WRITE_ONCE(link->adding, &link->queues[n]);
	err = kbi_link_queue_up(link, &link->queues[n]);
	if (!err)
		err = kbi_queue_attach(link, n);
	WRITE_ONCE(link->adding, NULL);
	return err;
}

/*
 * Return whether the link is live and may have more queues; the target's first welcome gives
 * the limit.
 */
static bool kbi_wants_more(struct kbi_link *link)
{
	struct kbi_disk *disk;

	if (kbi_link_state(link) != KBI_LINK_LIVE ||
	    link->nlive >= min(link->nqueues, kbi_queues_allowed(link)))
		return false;
	list_for_each_entry(disk, &link->disks, link_entry)
		if (kbi_is_next(disk, link->nlive))
			return true;
	return false;
}

/*
 * Attach @disk to the queues in use. Return 0 or an error number like kbi_queue_attach_disk(),
 * or -EAGAIN if a queue that @disk spoils is to be tried later.
 */
static int kbi_queues_attach(struct kbi_disk *disk)
{
	int err;

	while (disk->nattached < disk->link->nlive) {
		if (!kbi_is_next(disk, disk->nattached))
			break;
		err = kbi_queue_attach_disk(disk, disk->nattached);
		if (err)
			return err;
	}
	return disk->ends_queue ? -EAGAIN : 0;
}

/*
 * Have the block layer use all queues that each disk is attached to. All disks are quiesced
 * together, so there is only one wait.
 */
static void kbi_queues_reroute(struct kbi_link *link)
{
	struct kbi_disk *disk, *last = NULL;
	unsigned int i;

	list_for_each_entry(disk, &link->disks, link_entry) {
		disk->rerouting = disk->nattached != disk->nrouted &&
				  kbi_state(disk) == KBI_LIVE &&
				  kbi_disk_quiesce(disk);
		if (disk->rerouting)
			last = disk;
	}
	if (!last)
		return;
	kbi_disk_wait_quiesced(last);
	for (i = 0; i < link->nlive; i++)
		kbi_io_commit(&link->queues[i]);
	list_for_each_entry(disk, &link->disks, link_entry) {
		if (!disk->rerouting)
			continue;
		kbi_queues_route(disk);
		kbi_disk_unquiesce(disk);
	}
}

/**
 * kbi_queues_add() - connect the queues that are wanted beside those in use
 * @link: link, all of whose disks are to use the queues
 *
 * Context: Process context, may sleep.
 * Return: 0 if all queues are connected or the link is not live; otherwise the error number of
 * the first queue that is not, and the disks go on with the queues before it.
 */
int kbi_queues_add(struct kbi_link *link)
{
	struct kbi_disk *disk;
	int err = 0, one;
	unsigned int i;

	lockdep_assert_held(&link->mutex);

	while (!err && kbi_wants_more(link)) {
		err = kbi_queue_add(link, link->nlive);
		if (err)
			kbi_queues_stop(&link->queues[link->nlive], 1);
		else
			kbi_queues_use(link, link->nlive + 1);
	}
	list_for_each_entry(disk, &link->disks, link_entry) {
		one = kbi_queues_attach(disk);
		err = err ?: one;
		if (one == -ERESTART)
			break;
	}
	kbi_queues_reroute(link);
	for (i = 0; i < link->nlive; i++)
		if (!kbi_queue_live(&link->queues[i]))
			kbi_link_error(link, NULL);
	return kbi_link_state(link) == KBI_LINK_LIVE ? err : 0;
}

/* Give slots memory where requests wait for them. Return 0 or an error number. */
static int kbi_queues_grow(struct kbi_link *link)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < link->nlive && !err; i++)
		if (kbi_slots_wanted(&link->queues[i]))
			err = kbi_slots_grow(&link->queues[i]);
	return err;
}

/* Connect further queues and give slots memory; try again after a failure. */
void kbi_more_work(struct work_struct *work)
{
	struct kbi_link *link = container_of(to_delayed_work(work),
					     struct kbi_link, more_work);
	unsigned int flags = kbi_link_lock(link);
	int err = 0;

	if (kbi_link_state(link) == KBI_LINK_LIVE) {
		err = kbi_queues_grow(link) ?: kbi_queues_add(link);
		if (err)
			queue_delayed_work(kbi_wq, &link->more_work,
					   msecs_to_jiffies(link->params.reconnect_max_ms));
	}
	kbi_link_unlock(link, flags);
}
