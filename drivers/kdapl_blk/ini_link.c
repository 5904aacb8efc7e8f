// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The connections of disks: made, lost together, made again.
 *
 *   DOWN -> LIVE -> LOST -> DOWN
 *
 * A link is live as long as one of its disks is attached; a disk that is not attached waits
 * for its own volume only, see ini_recover.c.
 *
 * Entry points: kbi_link_add() and kbi_link_remove() when a disk is connected and
 * disconnected, kbi_link_error() from anywhere, and the works.
 *
 * When one connection is lost all are taken down: only then is it certain that the target
 * cannot access memory of this host. The adapter is closed as well, so that it can be removed;
 * ini_adapter.c has what happens while a driver does not end a connection.
 * Outstanding requests return to the block layer, whose queues are quiesced, and are resent on
 * the next connections, on whatever adapter has the name by then. The target ensures that the
 * first copy of a request does not overtake the second, see struct kblk_hello. Attempts are
 * repeated at growing intervals, see ini_retry.c. A disk whose volume makes the target end the
 * connections is attached only when the other disks go on.
 *
 * The link owns its IA and queues. Locks: link->mutex serialises making connections and taking
 * them down. link->state leaves KBI_LINK_LIVE without a lock, by atomic_cmpxchg() in
 * kbi_link_error().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "ini.h"

#define KBI_MAX_TRANSFER	(1024U * 1024)

/* ---- Making and taking down ---------------------------------------------- */

/*
 * Stop all queues and close the adapter, or begin to. Nothing is sent concurrently: the disks
 * are quiesced, or there are none. Context: process.
 */
static void kbi_take_down(struct kbi_link *link)
{
	struct kbi_disk *disk;
	unsigned int i;

	lockdep_assert_held(&link->mutex);

	kbi_queues_stop(link->queues, link->nqueues);
	link->nlive = 0;
	kbi_ia_close(link);
	list_for_each_entry(disk, &link->disks, link_entry) {
		kbi_disk_down(disk);
		for (i = 0; disk->uses && i < link->nqueues; i++)
			atomic_set(&disk->uses[i].out, 0);
	}
	atomic_set(&link->state, KBI_LINK_DOWN);
}

/*
 * Return the most data of a request: the least that the target, KBI_MAX_TRANSFER and the
 * adapter's registrations allow.
 */
static u32 kbi_max_transfer(struct kbi_link *link, u32 offered)
{
	u32 max = min(rounddown(offered, PAGE_SIZE), KBI_MAX_TRANSFER);
	DAT_IA_ATTR ia;

	/* One page less, because the data may begin inside a page. */
	if (dat_ia_query(link->ia, NULL, DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE,
			 &ia, DAT_PROVIDER_FIELD_NONE, NULL) == DAT_SUCCESS &&
	    ia.max_lmr_block_size > PAGE_SIZE)
		max = min_t(u64, max, ia.max_lmr_block_size - PAGE_SIZE);
	return max;
}

/* Connect @queue; the caller calls kbi_queues_stop() on failure. Context: process. */
int kbi_link_queue_up(struct kbi_link *link, struct kbi_queue *queue)
{
	u32 max;
	int err;

	lockdep_assert_held(&link->mutex);

	err = kbi_queue_start(queue);
	if (err)
		return err;
	max = kbi_max_transfer(link, le32_to_cpu(queue->welcome.max_transfer));
	if (!link->max_transfer)
		link->max_transfer = max;
	else if (max < link->max_transfer)
		return -EPROTO;
	return kbi_slots_alloc_data(queue);
}

/*
 * Attach disks that are due on the first connection: without @ends_link all disks that are not
 * known to end it, with @ends_link the disks that are, until one is attached. Return 0 if a
 * disk is attached, -ERESTART if the connection should be made again without the disk that has
 * ended it, or another error.
 */
static int kbi_link_attach_some(struct kbi_link *link, bool ends_link)
{
	struct kbi_disk *disk;
	int err = -ENOTCONN;
	bool any = false;

	list_for_each_entry(disk, &link->disks, link_entry) {
		if (!kbi_is_wanted(disk, ends_link))
			continue;
		err = kbi_disk_attach(disk);
		/*
		 * Stop: the connection is over, and kbi_disk_blame() may have moved @disk in
		 * the list.
		 */
		if (err && !kbi_queue_live(&link->queues[0]))
			return disk->ends_link && link->ndisks > 1 ? -ERESTART : err;
		any |= !err;
		if (any && ends_link)
			break;
	}
	return any ? 0 : err;
}

/*
 * Attach the disks that are due on the first connection. Return 0 if one is attached, or an
 * error like kbi_link_attach_some().
 */
static int kbi_link_attach(struct kbi_link *link)
{
	int err = kbi_link_attach_some(link, false);
	int other;

	if (!err || !kbi_queue_live(&link->queues[0]))
		return err;
	/* If a blamed disk ends the connection now, no other disk was attached to it. */
	other = kbi_link_attach_some(link, true);
	return other && err != -ENOTCONN ? err : other;
}

/*
 * Open the adapter, make the first connection and attach the disks; if none can be attached,
 * undo all of this. Return 0 or an error number, -EAGAIN if the adapter is not closed yet.
 * Context: process.
 */
static int kbi_link_up(struct kbi_link *link)
{
	struct kbi_disk *disk;
	int err;

	lockdep_assert_held(&link->mutex);

	if (!kbi_ia_is_closed(link))
		return -EAGAIN;
	list_for_each_entry(disk, &link->disks, link_entry)
		kbi_count(disk, KBI_STAT_ATTEMPTS, 1);
	link->epoch++;
	err = kbi_ia_open(link);
	if (!err)
		err = kbi_link_queue_up(link, &link->queues[0]);
	if (!err)
		kbi_link_knows_ia(link);
	if (!err && !link->asks)
		err = kbi_link_attach(link);
	if (err)
		kbi_take_down(link);
	return err;
}

/* Enter KBI_LINK_LIVE after kbi_link_up(). A connection may already be lost. */
static void kbi_link_go_live(struct kbi_link *link)
{
	lockdep_assert_held(&link->mutex);

	link->attempts = 0;
	link->live_at = jiffies;
	link->kept_alive = jiffies;
	WRITE_ONCE(link->told, NULL);
	link->told_status = KBLK_HELLO_OK;
	kbi_queues_use(link, 1);
	/*
	 * Pairs with kbi_queue_lost(), which sets the state of its queue (a full barrier)
	 * before kbi_link_error() reads link->state: either kbi_link_error() sees
	 * KBI_LINK_LIVE, or this function sees the dead queue. litmus: blk-link
	 */
	atomic_xchg(&link->state, KBI_LINK_LIVE);
	if (!kbi_queue_live(&link->queues[0]))
		kbi_link_error(link, NULL);
	if (link->params.keepalive_ms)
		queue_delayed_work(kbi_wq, &link->keepalive_work,
				   msecs_to_jiffies(link->params.keepalive_ms));
}

/* ---- Recovery ------------------------------------------------------------ */

/**
 * kbi_link_error() - start recovery after the loss of a connection
 * @link: link
 * @why: reason for the log, or NULL for none
 *
 * No effect unless the link is live. litmus: blk-wait, blk-start, blk-link, blk-lost
 *
 * Context: Any.
 */
void kbi_link_error(struct kbi_link *link, const char *why)
{
	struct kbi_queue *adding;
	struct kbi_disk *disk;
	unsigned long flags;

	if (atomic_cmpxchg(&link->state, KBI_LINK_LIVE, KBI_LINK_LOST) !=
	    KBI_LINK_LIVE)
		return;
	if (why)
		pr_warn("%s: %s\n", link->name, why);
	spin_lock_irqsave(&link->lock, flags);
	list_for_each_entry(disk, &link->disks, link_entry)
		kbi_disk_lost(disk);
	spin_unlock_irqrestore(&link->lock, flags);
	/* Connecting this queue holds link->mutex, which kbi_err_work() needs: end it. */
	adding = READ_ONCE(link->adding);
	if (adding)
		kbi_queue_lost(adding, NULL);
	queue_work(kbi_wq, &link->err_work);
}

/*
 * End the connections if no disk is attached any more, as the target would. Context: process.
 */
void kbi_link_check(struct kbi_link *link)
{
	struct kbi_disk *disk;

	lockdep_assert_held(&link->mutex);

	list_for_each_entry(disk, &link->disks, link_entry)
		if (disk->nattached)
			return;
	/* Have kbi_link_flaps() not count this end: the connections were good. */
	link->live_at = jiffies - msecs_to_jiffies(link->params.reconnect_max_ms);
	kbi_link_error(link, NULL);
}

/* Return whether a disk that is not to be removed waits for connections. Context: process. */
bool kbi_link_is_wanted(struct kbi_link *link)
{
	struct kbi_disk *disk;

	lockdep_assert_held(&link->mutex);

	list_for_each_entry(disk, &link->disks, link_entry)
		if (!READ_ONCE(disk->removing))
			return true;
	return false;
}

/*
 * Take the connections down, and have the requests of all disks wait. There may be many disks,
 * so each wait is for all of them at once. Context: process.
 */
static void kbi_link_stop(struct kbi_link *link)
{
	struct kbi_disk *disk, *stopped = NULL;

	lockdep_assert_held(&link->mutex);

	list_for_each_entry(disk, &link->disks, link_entry) {
		/* kbi_link_error() may not have reached this disk yet. */
		kbi_disk_lost(disk);
		if (kbi_disk_stop(disk))
			stopped = disk;
	}
	if (stopped)
		kbi_disk_wait_quiesced(stopped);
	kbi_take_down(link);
	list_for_each_entry(disk, &link->disks, link_entry)
		kbi_disk_cancel(disk);
	list_for_each_entry(disk, &link->disks, link_entry) {
		kbi_disk_wait_cancelled(disk);
		if (disk->removing)
			kbi_give_up(disk);
	}
}

void kbi_err_work(struct work_struct *work)
{
	struct kbi_link *link = container_of(work, struct kbi_link, err_work);
	unsigned int flags = kbi_link_lock(link);

	if (kbi_link_state(link) == KBI_LINK_LOST) {
		kbi_link_flaps(link);
		kbi_link_stop(link);
		if (kbi_link_is_wanted(link))
			kbi_retry_later(link);
	}
	kbi_link_unlock(link, flags);
}

/*
 * The first connection is made: have the attached disks go on, and try again to attach the
 * other ones.
 */
static void kbi_link_go_on(struct kbi_link *link)
{
	unsigned int attempts = link->attempts;
	struct kbi_disk *disk;

	list_for_each_entry(disk, &link->disks, link_entry)
		if (kbi_is_known(disk) && disk->nattached)
			kbi_disk_go_live(disk);
	kbi_link_go_live(link);
	list_for_each_entry(disk, &link->disks, link_entry)
		if (kbi_is_known(disk) && !disk->nattached)
			kbi_recover_later(disk);
		else if (disk->nattached && kbi_state(disk) != KBI_CONNECTING)
			kbi_disk_go_on(disk, attempts);
	mod_delayed_work(kbi_wq, &link->more_work, 0);
}

/*
 * Try to connect a link that is down. Return 0 or an error number, -EAGAIN if the adapter is
 * not closed yet, or a disk has spoilt the attempt and the next one is made without it.
 */
static int kbi_link_try(struct kbi_link *link)
{
	int err;

	lockdep_assert_held(&link->mutex);

	link->attempts++;
	err = kbi_link_up(link);
	if (!err) {
		kbi_link_go_on(link);
		return 0;
	}
	if (err == -ERESTART) {
		if (kbi_retry_without(link))
			return -EAGAIN;
		err = -ECONNRESET;
	}
	kbi_retry_later(link);
	return err;
}

void kbi_reconnect_work(struct work_struct *work)
{
	struct kbi_link *link = container_of(to_delayed_work(work),
					     struct kbi_link, reconnect_work);
	unsigned int flags = kbi_link_lock(link);

	/* For requests of disks that are to be removed, too. */
	kbi_ia_is_closed(link);
	if (kbi_link_state(link) != KBI_LINK_DOWN || !kbi_link_is_wanted(link))
		goto out;
	if (time_before(jiffies, link->retry_at))
		kbi_link_wait(link);
	else
		kbi_link_try(link);
out:
	kbi_link_unlock(link, flags);
}

/* ---- The disks ----------------------------------------------------------- */

static void kbi_queues_free(struct kbi_link *link)
{
	unsigned int i;

	for (i = 0; link->queues && i < link->nqueues; i++)
		kbi_slots_free(&link->queues[i]);
	kfree(link->queues);
	link->queues = NULL;
	link->nqueues = 0;
	link->memory = 0;
}

static int kbi_queues_alloc(struct kbi_link *link)
{
	unsigned int i;

	kbi_queues_set(link, UINT_MAX);
	link->queues = kcalloc(link->nqueues, sizeof(*link->queues),
			       GFP_KERNEL);
	if (!link->queues)
		return -ENOMEM;
	for (i = 0; i < link->nqueues; i++) {
		link->queues[i].link = link;
		link->queues[i].index = i;
		spin_lock_init(&link->queues[i].lock);
	}
	return 0;
}

static int kbi_uses_alloc(struct kbi_disk *disk)
{
	struct kbi_link *link = disk->link;
	unsigned int i;

	disk->uses = kcalloc(link->nqueues, sizeof(*disk->uses), GFP_KERNEL);
	disk->routes = kcalloc(link->nqueues, sizeof(*disk->routes),
			       GFP_KERNEL);
	if (!disk->uses || !disk->routes)
		return -ENOMEM;
	for (i = 0; i < link->nqueues; i++) {
		disk->uses[i].disk = disk;
		disk->uses[i].queue = &link->queues[i];
	}
	return 0;
}

/* Add @disk to the list of its link. Context: process. */
static void kbi_link_enlist(struct kbi_link *link, struct kbi_disk *disk)
{
	lockdep_assert_held(&link->mutex);

	spin_lock_irq(&link->lock);
	list_add_tail(&disk->link_entry, &link->disks);
	WRITE_ONCE(link->ndisks, link->ndisks + 1);
	spin_unlock_irq(&link->lock);
}

/* Make the first connection of @link, and attach @disk. Context: process. */
static int kbi_link_first(struct kbi_link *link, struct kbi_disk *disk)
{
	int err = kbi_queues_alloc(link) ?: kbi_uses_alloc(disk);

	if (err) {
		kbi_queues_free(link);
		return err;
	}
	do {
		link->session = get_random_u64();
	} while (!link->session);
	link->max_transfer = 0;
	kbi_link_enlist(link, disk);
	err = kbi_link_up(link);
	if (err || link->asks)
		return err;
	/* The block layer need not know of queues that the target will never allow. */
	kbi_queues_set(link, min(link->nqueues, kbi_queues_allowed(link)));
	if (link->params.share && !link->queues[0].volumes) {
		pr_info("%s: the target does not let volumes share connections; the disk has its own\n",
			link->name);
		kbi_link_hide(link);
	}
	kbi_link_go_live(link);
	return 0;
}

/* Attach @disk to a link that other disks use. Context: process. */
static int kbi_link_further(struct kbi_link *link, struct kbi_disk *disk)
{
	struct kbi_disk *other;
	int err;

	list_for_each_entry(other, &link->disks, link_entry)
		if (other->params.namespace == disk->params.namespace) {
			pr_err("%s: disk %s is this volume, on the same connections\n",
			       config_item_name(&disk->item),
			       config_item_name(&other->item));
			return -EBUSY;
		}
	/* Each disk needs a slot for its first request. */
	if (link->ndisks >= link->params.depth) {
		pr_err("%s: depth is too small for so many disks that share connections\n",
		       config_item_name(&disk->item));
		return -ENOSPC;
	}
	err = kbi_uses_alloc(disk);
	if (err)
		return err;
	kbi_link_enlist(link, disk);
	if (kbi_link_state(link) == KBI_LINK_DOWN)
		err = kbi_link_try(link);
	/* kbi_disk_join() tries again, when the other disks may have reconnected. */
	if (!err && kbi_link_state(link) != KBI_LINK_LIVE)
		err = -EAGAIN;
	if (!err && !disk->nattached)
		err = kbi_disk_attach(disk);
	return err;
}

/**
 * kbi_link_add() - connect a disk
 * @disk: disk; kbi_link_join() has found its link
 *
 * Context: Process context, may sleep.
 * Return: 0 if the link is live and the disk attached; -ERESTART if the disk needs another
 * link, because the target does not let volumes share connections; or another error number.
 * The caller calls kbi_link_remove() in either case, when it does not need the link any more.
 */
int kbi_link_add(struct kbi_disk *disk)
{
	struct kbi_link *link = disk->link;

	lockdep_assert_held(&link->mutex);

	if (list_empty(&link->disks))
		return kbi_link_first(link, disk);
	if (!link->queues[0].volumes) {
		kbi_link_hide(link);
		return -ERESTART;
	}
	return kbi_link_further(link, disk);
}

/*
 * Detach @disk and take it from the list of its link. The last disk takes the connections
 * down, and waits for the driver to end them. Context: process.
 */
static void kbi_link_delist(struct kbi_link *link, struct kbi_disk *disk)
{
	unsigned int n = disk->nattached;

	if (list_is_singular(&link->disks)) {
		kbi_take_down(link);
		kbi_ia_wait_closed(link);
	} else {
		while (n && kbi_link_state(link) == KBI_LINK_LIVE)
			kbi_detach(&disk->uses[--n]);
	}
	kbi_disk_down(disk);
	spin_lock_irq(&link->lock);
	list_del_init(&disk->link_entry);
	WRITE_ONCE(link->ndisks, link->ndisks - 1);
	spin_unlock_irq(&link->lock);
	if (link->ndisks)
		kbi_link_check(link);
	else
		kbi_queues_free(link);
}

/* Undo kbi_link_add(). The disk has no requests. Context: process. */
void kbi_link_remove(struct kbi_disk *disk)
{
	struct kbi_link *link = disk->link;

	lockdep_assert_held(&link->mutex);

	if (!list_empty(&disk->link_entry))
		kbi_link_delist(link, disk);
	kfree(disk->uses);
	kfree(disk->routes);
	disk->uses = NULL;
	disk->routes = NULL;
}
