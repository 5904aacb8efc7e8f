// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Keep-alives of the queues of a live link, and waiting with link->mutex held while the other
 * queues are kept alive.
 *
 * Entry points: kbi_keepalive_work(), and kbi_wait() for a reply or a connection.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include "ini.h"
#include "ini_admin.h"

/* How soon a wait notices that its result is not wanted any more */
#define KBI_WAIT_PART	((unsigned long)HZ / 10)

/*
 * Take the credits that an idle queue does not need, to give them back, and return their
 * number. Each disk keeps one for a request, and one more is for a keep-alive. litmus: none, a
 * count.
 */
static u16 kbi_spare_credits(struct kbi_queue *queue)
{
	int credits = atomic_read(&queue->credits);
	int keep = 1 + queue->link->ndisks;

	do {
		if (!queue->credits_move || credits <= keep)
			return 0;
	} while (!atomic_try_cmpxchg(&queue->credits, &credits, keep));
	credits -= keep;
	atomic_sub(credits, &queue->window);
	return credits;
}

/*
 * Handle a lack of credits for a keep-alive on @queue. If requests are outstanding, their
 * replies or their timeout tell whether the target is alive. If there were none for a period
 * in which nothing was sent, no reply will bring a credit.
 */
static void kbi_without_credit(struct kbi_queue *queue)
{
	bool starved = !kbi_slots_waiting(queue);

	if (starved && queue->starved)
		kbi_queue_lost(queue, "the target gives no credits");
	queue->starved = starved;
}

/* Return the use of @queue by its only disk, or NULL if disks may share the queue. */
static struct kbi_use *kbi_only_use(struct kbi_queue *queue)
{
	struct kbi_disk *disk = list_first_entry(&queue->link->disks,
						 struct kbi_disk, link_entry);

	return queue->volumes ? NULL : &disk->uses[queue->index];
}

/*
 * Return whether @queue needs no keep-alive: a message was sent since the last one was due. If
 * disks share the queue, a message must also have arrived: kbi_may_take_longer() needs to know
 * whether the target answers, even if all senders wait for a volume that stands still.
 */
static bool kbi_is_alive(struct kbi_queue *queue)
{
	unsigned long period = msecs_to_jiffies(queue->link->params.keepalive_ms);

	return queue->used &&
	       (!queue->volumes ||
		time_before(jiffies, READ_ONCE(queue->heard) + period));
}

/*
 * Send a keep-alive on @queue if it needs one, and end the connection if the last keep-alive
 * was not answered.
 */
static void kbi_keepalive(struct kbi_queue *queue)
{
	struct kblk_request request = { .opcode = KBLK_OP_KEEPALIVE };
	struct kbi_slot *slot = kbi_admin_slot(queue);

	if (kbi_slot_is_busy(slot)) {
		/*
		 * The target may be busy with requests that came first. The block layer's
		 * timeout covers those, but not the requests that were sent later and are
		 * outstanding now.
		 */
		if (!kbi_slots_waiting(queue) || kbi_is_overdue(queue))
			kbi_queue_lost(queue, "the target does not answer");
		return;
	}
	if (kbi_is_alive(queue)) {
		queue->used = false;
		queue->starved = false;
		return;
	}
	if (!kbi_credit_get(queue, 0)) {
		kbi_without_credit(queue);
		return;
	}
	queue->starved = false;
	request.returned = cpu_to_le16(kbi_spare_credits(queue));
	slot->use = kbi_only_use(queue);
	slot->rq = NULL;
	slot->inlined = 0;
	queue->asked = jiffies;
	kbi_io_send(queue, slot, &request, NULL, 0, true);
	queue->used = false;
}

/*
 * Send the keep-alives that are due on all queues in use but @but. Calls of kbi_keepalive()
 * are a whole period apart. Return the time until the next keep-alives are due.
 */
static unsigned long kbi_keepalives(struct kbi_link *link,
				    const struct kbi_queue *but)
{
	unsigned long period = msecs_to_jiffies(link->params.keepalive_ms);
	unsigned long left = link->kept_alive + period - jiffies;
	unsigned int i;

	lockdep_assert_held(&link->mutex);

	if ((long)left > 0)
		return left;
	link->kept_alive = jiffies;
	for (i = 0; i < link->nlive; i++)
		if (&link->queues[i] != but)
			kbi_keepalive(&link->queues[i]);
	return period;
}

/**
 * kbi_wait() - wait on behalf of a queue, and keep the others of the link alive
 * @queue: queue that is being connected, or whose admin slot is in use
 * @done: completion to wait for
 * @timeout: jiffies
 *
 * link->mutex is held during the wait, so kbi_keepalive_work() cannot run and no disk can be
 * removed. A queue that is not in use yet is lost when no disk wants it any more; a queue in
 * use may have writes of a disk that is to be removed.
 *
 * Context: Process context, sleeps.
 * Return: 0 if @timeout has elapsed, or the queue is not wanted; otherwise what is left of the
 * time
 */
unsigned long kbi_wait(struct kbi_queue *queue, struct completion *done,
		       unsigned long timeout)
{
	struct kbi_link *link = queue->link;
	unsigned long part, left = 0;

	lockdep_assert_held(&link->mutex);

	while (timeout && !left) {
		if (!READ_ONCE(queue->in_use) && !kbi_link_is_wanted(link)) {
			kbi_queue_lost(queue, NULL);
			return 0;
		}
		part = min(timeout, KBI_WAIT_PART);
		if (link->params.keepalive_ms && kbi_link_state(link) == KBI_LINK_LIVE)
			part = min(part, kbi_keepalives(link, queue));
		left = wait_for_completion_timeout(done, part);
		timeout -= part - left;
	}
	return timeout;
}

void kbi_keepalive_work(struct work_struct *work)
{
	struct kbi_link *link = container_of(to_delayed_work(work),
					     struct kbi_link, keepalive_work);

	mutex_lock(&link->mutex);
	if (kbi_link_state(link) == KBI_LINK_LIVE)
		queue_delayed_work(kbi_wq, &link->keepalive_work,
				   kbi_keepalives(link, NULL));
	mutex_unlock(&link->mutex);
}
