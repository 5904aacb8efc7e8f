// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands that cannot go on. LIO must not be told: where it asks again it does so without a
 * pause, elsewhere it forgets the command. So ki_conn_submit() takes a command whatever is
 * missing. Each command is answered in the end, or its connection ends and the log says why.
 *
 * What may be missing:
 * - An answer, or room in the queue of requests. The command waits in c->waiting, behind
 *   earlier ones. When a request has completed, ki_posted_done() has them tried; while nothing
 *   is posted, c->again does.
 * - Memory. The command waits in c->starved, where it holds up no other command. c->again
 *   tries it every KI_PAUSE; after KI_PATIENCE the initiator is told that there is no room.
 *
 * One thread at a time takes commands off c->waiting (c->pushing). c->lock protects both
 * lists, and orders what enters them with ki_queue_stop(), after which LIO may free the
 * commands.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <scsi/scsi_proto.h>
#include <target/target_core_backend.h>
#include "isert.h"

/* How often the first command in c->waiting is refused while nothing is posted */
#define KI_TRIES	50

/*
 * ki_wq tries commands again that found no memory. Its rescuer must neither wait for the end
 * of a connection nor flush a workqueue without a rescuer; so ki_end_wq frees connections.
 */
struct workqueue_struct *ki_wq, *ki_end_wq;

/* Schedule another try. */
static void ki_queue_again(struct ki_conn *c)
{
	lockdep_assert_held(&c->lock);
	queue_delayed_work(ki_wq, &c->again, KI_PAUSE);
}

/*
 * Do what is next for a command. Return 0, -EAGAIN: there is no room, -ENOMEM, or another
 * errno.
 */
static int ki_cmd_push(struct ki_conn *c, struct ki_cmd *kc)
{
	int err;

	switch (kc->step) {
	case KI_FETCH:
		err = ki_fetch(c, kc);
		if (err)
			return err;
		kc->step = KI_READ;
		fallthrough;
	case KI_READ:
		return ki_push_reads(c, kc);
	case KI_DATA_IN:
	case KI_STATUS:
		err = ki_answer(c, kc);
		if (err)
			return err;
		kc->step = KI_SEND;
		fallthrough;
	case KI_SEND:
		return ki_push_answer(c, kc);
	}
	return -EIO;
}

/*
 * Handle a command that cannot go on, or whose connection has ended. LIO frees the command
 * with the connection, and has it unmapped: other parts of the data of a write may be under
 * way.
 */
static void ki_cmd_refused(struct ki_conn *c, struct ki_cmd *kc)
{
	switch (kc->step) {
	case KI_FETCH:
	case KI_DATA_IN:
	case KI_STATUS:
		ki_conn_break(c, "the data of a command cannot be mapped");
		break;
	case KI_READ:
		ki_conn_break(c, "a request was refused");
		break;
	case KI_SEND:
		ki_conn_break(c, "a request was refused");
		kc->tx->wr.done(c, &kc->tx->wr, false);
		break;
	}
}

/* Keep a command for which there is no memory. Return false if the connection has ended. */
static bool ki_cmd_starve(struct ki_conn *c, struct ki_cmd *kc)
{
	bool kept;

	if (!kc->until)
		kc->until = (jiffies + KI_PATIENCE) ?: 1;
	spin_lock_bh(&c->lock);
	kept = !c->stopped;
	if (kept) {
		list_add_tail(&kc->wait, &c->starved);
		ki_queue_again(c);
	}
	spin_unlock_bh(&c->lock);
	return kept;
}

/* Handle @err of ki_cmd_push(), which is -EAGAIN only if the connection has ended. */
static void ki_cmd_failed(struct ki_conn *c, struct ki_cmd *kc, int err)
{
	if (err != -ENOMEM || !ki_cmd_starve(c, kc))
		ki_cmd_refused(c, kc);
}

/*
 * Put @kc back in front, as there is no room. Return whether to look again at once, because
 * ki_conn_retry() was called meanwhile.
 */
static bool ki_cmd_put_back(struct ki_conn *c, struct ki_cmd *kc)
{
	lockdep_assert_held(&c->lock);

	list_add(&kc->wait, &c->waiting);
	if (c->repush)
		return true;
	/* ki_posted_done() saw the command, or has decremented ->posted. litmus: iser-posted */
	smp_mb();
	if (!atomic_read(&c->posted))
		ki_queue_again(c);
	return false;
}

/* Take the first command that waits for room, or return NULL. */
static struct ki_cmd *ki_cmd_next(struct ki_conn *c)
{
	struct ki_cmd *kc;

	lockdep_assert_held(&c->lock);

	c->repush = false;
	kc = list_first_entry_or_null(&c->waiting, struct ki_cmd, wait);
	if (kc)
		list_del_init(&kc->wait);
	return kc;
}

/* Post commands that wait, in their order, until there is no room. Context: process. */
void ki_conn_retry(struct ki_conn *c)
{
	struct ki_cmd *kc;
	int err;

	spin_lock_bh(&c->lock);
	c->repush = true;
	if (c->pushing) {
		spin_unlock_bh(&c->lock);
		return;
	}
	c->pushing = true;
	while ((kc = ki_cmd_next(c))) {
		spin_unlock_bh(&c->lock);
		err = ki_cmd_push(c, kc);
		spin_lock_bh(&c->lock);
		if (!err) {
			c->tries = 0;
		} else if (err == -EAGAIN && !c->stopped) {
			if (!ki_cmd_put_back(c, kc))
				break;
		} else {
			spin_unlock_bh(&c->lock);
			ki_cmd_failed(c, kc, err);
			spin_lock_bh(&c->lock);
		}
	}
	c->pushing = false;
	spin_unlock_bh(&c->lock);
	/* ki_queue_stop() may wait for c->pushing to be cleared. */
	ki_wake_room(c);
}

/* Add a command behind those that wait for room. */
static void ki_cmd_wait(struct ki_conn *c, struct ki_cmd *kc)
{
	bool kept;

	spin_lock_bh(&c->lock);
	kept = !c->stopped;
	if (kept)
		list_add_tail(&kc->wait, &c->waiting);
	spin_unlock_bh(&c->lock);
	if (!kept) {
		ki_cmd_refused(c, kc);
		return;
	}
	/* If nothing is posted nobody else tries; see ki_posted_done(). litmus: iser-posted */
	smp_mb();
	if (!atomic_read(&c->posted))
		ki_conn_retry(c);
}

/* Let a command go on, behind those that wait for room. Context: process. */
void ki_conn_submit(struct ki_conn *c, struct ki_cmd *kc)
{
	int err = -EAGAIN;

	if (list_empty_careful(&c->waiting))
		err = ki_cmd_push(c, kc);
	if (!err)
		return;
	if (err == -EAGAIN)
		ki_cmd_wait(c, kc);
	else
		ki_cmd_failed(c, kc, err);
}

/* ---- c->again ---------------------------------------------------------------------- */

/* After KI_PATIENCE without memory for a command, have the initiator try again later. */
static void ki_cmd_give_up(struct ki_conn *c, struct ki_cmd *kc)
{
	struct iscsit_cmd *cmd = ki_of(kc);
	const char *name = c->iqn ?: c->peer;

	pr_warn_ratelimited("%s: there is no memory for a command of %*pE, which is told so\n",
			    c->a->base.name, (int)strlen(name), name);
	if (kc->step == KI_FETCH) {
		iscsit_stop_dataout_timer(cmd);
		/* The completion of COMPARE AND WRITE expects an executed command. */
		cmd->se_cmd.transport_complete_callback = NULL;
		target_complete_cmd(&cmd->se_cmd, SAM_STAT_TASK_SET_FULL);
		return;
	}
	cmd->se_cmd.scsi_status = SAM_STAT_TASK_SET_FULL;
	kc->step = KI_STATUS;
	ki_conn_submit(c, kc);
}

/* Try the commands for which there was no memory. */
static void ki_again_starved(struct ki_conn *c)
{
	struct ki_cmd *kc, *next;
	LIST_HEAD(starved);
	int err;

	spin_lock_bh(&c->lock);
	list_splice_init(&c->starved, &starved);
	spin_unlock_bh(&c->lock);
	list_for_each_entry_safe(kc, next, &starved, wait) {
		list_del_init(&kc->wait);
		err = ki_cmd_push(c, kc);
		if (err == -EAGAIN)
			ki_cmd_wait(c, kc);
		else if (err == -ENOMEM && time_after_eq(jiffies, kc->until))
			ki_cmd_give_up(c, kc);
		else if (err)
			ki_cmd_failed(c, kc, err);
	}
}

static void ki_again_work(struct work_struct *work)
{
	struct ki_conn *c = container_of(to_delayed_work(work), struct ki_conn, again);
	struct ki_cmd *kc = NULL;

	ki_again_starved(c);
	spin_lock_bh(&c->lock);
	if (!atomic_read(&c->posted) && !c->pushing && !list_empty(&c->waiting) &&
	    c->tries++ == KI_TRIES) {
		c->tries = 0;
		kc = ki_cmd_next(c);
	}
	spin_unlock_bh(&c->lock);
	if (kc)
		ki_cmd_refused(c, kc);
	ki_conn_retry(c);
}

/* ---- Start and stop ---------------------------------------------------------------- */

void ki_queue_init(struct ki_conn *c)
{
	INIT_LIST_HEAD(&c->waiting);
	INIT_LIST_HEAD(&c->starved);
	INIT_DELAYED_WORK(&c->again, ki_again_work);
}

static bool ki_queue_is_idle(struct ki_conn *c)
{
	bool idle;

	spin_lock_bh(&c->lock);
	idle = !c->pushing && !atomic_read(&c->posted);
	spin_unlock_bh(&c->lock);
	return idle;
}

/*
 * Give up the waiting commands of a connection that is down, and wait until everything that
 * was posted has completed. Afterwards no command is used here any more.
 */
void ki_queue_stop(struct ki_conn *c)
{
	struct ki_cmd *kc, *next;
	LIST_HEAD(all);

	spin_lock_bh(&c->lock);
	c->stopped = true;
	spin_unlock_bh(&c->lock);
	cancel_delayed_work_sync(&c->again);
	spin_lock_bh(&c->lock);
	list_splice_init(&c->starved, &all);
	list_splice_init(&c->waiting, &all);
	spin_unlock_bh(&c->lock);
	list_for_each_entry_safe(kc, next, &all, wait) {
		list_del_init(&kc->wait);
		ki_cmd_refused(c, kc);
	}
	wait_event(c->room, ki_queue_is_idle(c));
}

int ki_queue_start(void)
{
	ki_wq = alloc_workqueue("kdapl_isert", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!ki_wq)
		return -ENOMEM;
	ki_end_wq = alloc_workqueue("kdapl_isert_end", WQ_UNBOUND, 0);
	if (ki_end_wq)
		return 0;
	destroy_workqueue(ki_wq);
	return -ENOMEM;
}

void ki_queue_end(void)
{
	destroy_workqueue(ki_end_wq);
	destroy_workqueue(ki_wq);
}
