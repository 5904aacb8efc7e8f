// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which queues a disk uses: routes of the block layer to them, further queues
 * beside the first.
 *
 * Entry points: kbi_queues_use() when the first queue is connected,
 * kbi_queues_add() and kbi_more_work() for the others.
 *
 * A disk is live with its first queue alone: that is all that requests need
 * which others wait for, such as writes of pages that are to be reclaimed. The
 * others are connected while it is live. A target may allow fewer than are
 * wanted, or there may be no memory for more; the hardware queues of the block
 * layer then share what there is, and kbi_more_work() tries again.
 *
 * disk->mutex serialises all of it. Routes change while the block layer is
 * quiesced, so that a message is sent by the queue that has begun it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include "ini.h"

/**
 * kbi_queues_use() - have the block layer use the first queues
 * @disk: disk; the block layer is quiesced, or does not know the disk yet
 * @n: number of queues, all of which are attached; 1 at least
 *
 * A queue that is lost at the same time is noticed by kbi_queue_lost(), which
 * changes the state of the queue before it looks at ->in_use, or by the caller,
 * which looks at the state of each queue afterwards.
 *
 * Context: Process context.
 */
void kbi_queues_use(struct kbi_disk *disk, unsigned int n)
{
	unsigned int i;

	lockdep_assert_held(&disk->mutex);

	for (i = 0; i < n; i++)
		WRITE_ONCE(disk->queues[i].in_use, true);
	/* Pairs with atomic_xchg() in kbi_queue_lost(). */
	smp_mb();
	for (i = 0; i < disk->nqueues; i++)
		disk->routes[i] = &disk->queues[i < n ? i : i % n];
	disk->nlive = n;
}

/* Connect queue @n while the disk is live. Return 0 or an error number. */
static int kbi_queue_add(struct kbi_disk *disk, unsigned int n)
{
	int err;

	/* kbi_queue_start() has the barrier and looks at the disk's state. */
	WRITE_ONCE(disk->adding, &disk->queues[n]);
	err = kbi_bring_up_queue(disk, &disk->queues[n]);
	WRITE_ONCE(disk->adding, NULL);
	return err;
}

/*
 * Return whether the disk is live and may have more queues. The target's first
 * welcome has told how many.
 */
static bool kbi_wants_more(struct kbi_disk *disk, unsigned int n)
{
	return kbi_state(disk) == KBI_LIVE && !READ_ONCE(disk->removing) &&
	       n < disk->nqueues && n < kbi_queues_allowed(disk);
}

/**
 * kbi_queues_add() - connect the queues that are wanted beside those in use
 * @disk: disk
 *
 * Context: Process context, may sleep.
 * Return: 0 if all are connected or the disk is not live; otherwise the error
 * number of the first that is not, and the disk goes on with those before it.
 */
int kbi_queues_add(struct kbi_disk *disk)
{
	bool quiesce = !disk->quiesced;
	unsigned int n = disk->nlive, i;
	int err = 0;

	lockdep_assert_held(&disk->mutex);

	while (!err && kbi_wants_more(disk, n)) {
		err = kbi_queue_add(disk, n);
		if (err)
			kbi_queue_stop(&disk->queues[n]);
		else
			n++;
	}
	if (n == disk->nlive || kbi_state(disk) != KBI_LIVE)
		return err;
	if (quiesce)
		kbi_disk_quiesce(disk);
	for (i = 0; i < disk->nlive; i++)
		kbi_io_commit(&disk->queues[i]);
	kbi_queues_use(disk, n);
	if (quiesce)
		kbi_disk_unquiesce(disk);
	for (i = 0; i < n; i++)
		if (!kbi_queue_live(&disk->queues[i]))
			kbi_disk_error(disk, NULL);
	return err;
}

/* Give slots memory where requests wait for it. Return 0 or an error number. */
static int kbi_queues_grow(struct kbi_disk *disk)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < disk->nlive && !err; i++)
		if (kbi_slots_wanted(&disk->queues[i]))
			err = kbi_slots_grow(&disk->queues[i]);
	return err;
}

/* Connect further queues and give slots memory; try again after a failure. */
void kbi_more_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(to_delayed_work(work),
					     struct kbi_disk, more_work);
	unsigned int flags = kbi_disk_lock(disk);
	int err = 0;

	if (kbi_state(disk) == KBI_LIVE && !disk->removing) {
		err = kbi_queues_grow(disk) ?: kbi_queues_add(disk);
		if (err)
			queue_delayed_work(kbi_wq, &disk->more_work,
					   msecs_to_jiffies(disk->params.reconnect_max_ms));
	}
	kbi_disk_unlock(disk, flags);
}
