// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands on their way to a backend. LIO has a backend execute a command in the thread that
 * hands the command to LIO: in the upcall that all connections of an EVD share, inside of the
 * mutex that orders the commands of a session. A backend may stand still there, as when its
 * file system is frozen or its device has no tag left. So ki_execute_later() has LIO call
 * ki_execute() last, after all checks, in the place of the backend's function; ki_execute()
 * only queues the command.
 *
 * An EVD has a lane (struct ki_lane) for each backend that has something to execute. A lane is
 * a work item, so a backend that stands still keeps a kernel thread for each EVD, and nobody
 * else, whatever number of sessions wait for it; the windows of the sessions limit their
 * commands. The workqueue has the worker pools of the one that upcalls run in (kdapl_dto): the
 * thread that has run an upcall goes on with the lanes, and another thread wakes only where it
 * sleeps. Commands that LIO's own work items execute, as ORDERED ones, go through here as
 * well.
 *
 * comp->lane_lock protects the lanes of an EVD.
 */
#include <linux/slab.h>
#include <compat_probe.h>
#include <scsi/scsi_proto.h>
#include <target/target_core_backend.h>
#include "isert.h"

/* Kernels without the flag make a workqueue per CPU unless it has WQ_UNBOUND. */
#ifndef KDAPL_HAVE_WQ_PERCPU
#define WQ_PERCPU	0
#endif
/* Commands that a lane executes before other lanes have their turn */
#define KI_BATCH	64

static struct workqueue_struct *ki_execute_wq;

/*
 * Was @se_cmd given up since it was queued? Its initiator may then repeat it over another
 * session, and send others; @se_cmd must not be executed after those.
 */
static bool ki_is_given_up(struct ki_conn *c, struct se_cmd *se_cmd)
{
	return READ_ONCE(c->down) ||
	       READ_ONCE(se_cmd->transport_state) & (CMD_T_ABORTED | CMD_T_STOP);
}

/* Have the backend execute @kc, which may be freed before this function returns. */
static void ki_execute_now(struct ki_cmd *kc)
{
	struct iscsit_cmd *cmd = ki_of(kc);
	struct se_cmd *se_cmd = &cmd->se_cmd;
	sense_reason_t sense;

	if (ki_is_given_up(cmd->conn->context, se_cmd)) {
		/* The completion of COMPARE AND WRITE expects an executed command. */
		se_cmd->transport_complete_callback = NULL;
		sense = TCM_CHECK_CONDITION_ABORT_CMD;
	} else {
		sense = kc->execute(se_cmd);
	}
	if (!sense)
		return;
	/* As in __target_execute_cmd(). ORDERED commands that wait for this one go on. */
	spin_lock_irq(&se_cmd->t_state_lock);
	se_cmd->transport_state &= ~CMD_T_SENT;
	spin_unlock_irq(&se_cmd->t_state_lock);
	transport_generic_request_failure(se_cmd, sense);
}

/*
 * Take the next command off @lane. Return NULL if there is none: the lane is idle, and may be
 * used for another backend.
 */
static struct ki_cmd *ki_lane_next(struct ki_lane *lane)
{
	struct ki_comp *comp = lane->comp;
	struct ki_cmd *kc;

	spin_lock(&comp->lane_lock);
	kc = list_first_entry_or_null(&lane->cmds, struct ki_cmd, wait);
	if (kc)
		list_del_init(&kc->wait);
	else
		list_move(&lane->link, &comp->idle_lanes);
	spin_unlock(&comp->lane_lock);
	return kc;
}

static void ki_lane_work(struct work_struct *work)
{
	struct ki_lane *lane = container_of(work, struct ki_lane, work);
	struct ki_cmd *kc;
	unsigned int n;

	for (n = 0; n < KI_BATCH; n++) {
		kc = ki_lane_next(lane);
		if (!kc)
			return;
		ki_execute_now(kc);
	}
	queue_work(ki_execute_wq, &lane->work);
}

/* Return the lane with commands for @dev to execute, or NULL. */
static struct ki_lane *ki_lane_find(struct ki_comp *comp, const struct se_device *dev)
{
	struct ki_lane *lane;

	lockdep_assert_held(&comp->lane_lock);

	list_for_each_entry(lane, &comp->lanes, link)
		if (lane->dev == dev)
			return lane;
	return NULL;
}

/* Make an idle lane. Return false if there is no memory. */
static bool ki_lane_make(struct ki_comp *comp)
{
	struct ki_lane *lane = kmalloc(sizeof(*lane), GFP_NOIO | __GFP_NOWARN);

	if (!lane)
		return false;
	lane->comp = comp;
	INIT_LIST_HEAD(&lane->cmds);
	INIT_WORK(&lane->work, ki_lane_work);
	spin_lock(&comp->lane_lock);
	list_add(&lane->link, &comp->idle_lanes);
	spin_unlock(&comp->lane_lock);
	return true;
}

/*
 * Queue @kc for the backend of @se_cmd. Return false if the backend has no lane, and none is
 * idle.
 */
static bool ki_lane_add(struct ki_comp *comp, struct ki_cmd *kc, struct se_cmd *se_cmd)
{
	struct ki_lane *lane;

	spin_lock(&comp->lane_lock);
	lane = ki_lane_find(comp, se_cmd->se_dev);
	if (!lane) {
		lane = list_first_entry_or_null(&comp->idle_lanes, struct ki_lane, link);
		if (!lane) {
			spin_unlock(&comp->lane_lock);
			return false;
		}
		lane->dev = se_cmd->se_dev;
		list_move(&lane->link, &comp->lanes);
		queue_work(ki_execute_wq, &lane->work);
	}
	if (se_cmd->sam_task_attr == TCM_HEAD_TAG)
		list_add(&kc->wait, &lane->cmds);
	else
		list_add_tail(&kc->wait, &lane->cmds);
	spin_unlock(&comp->lane_lock);
	return true;
}

static void ki_execute_work(struct work_struct *work)
{
	ki_execute_now(ki_cmd(container_of(work, struct iscsit_cmd, se_cmd.work)));
}

/*
 * Queue @se_cmd, which LIO wants to be executed. PREEMPT AND ABORT waits for the commands that
 * it aborts, which may be in the same lane, so it has a work item of its own. Without memory
 * for a lane a command is executed at once: nothing is queued before it then.
 * Context: process.
 */
static sense_reason_t ki_execute(struct se_cmd *se_cmd)
{
	struct iscsit_cmd *cmd = container_of(se_cmd, struct iscsit_cmd, se_cmd);
	struct ki_conn *c = cmd->conn->context;
	struct ki_cmd *kc = ki_cmd(cmd);

	se_cmd->execute_cmd = kc->execute;
	if (se_cmd->t_task_cdb[0] == PERSISTENT_RESERVE_OUT) {
		INIT_WORK(&se_cmd->work, ki_execute_work);
		queue_work(ki_execute_wq, &se_cmd->work);
		return 0;
	}
	while (!ki_lane_add(c->comp, kc, se_cmd))
		if (!ki_lane_make(c->comp))
			return kc->execute(se_cmd);
	return 0;
}

/* Have LIO call ki_execute() where it would execute @cmd, which it has just set up. */
void ki_execute_later(struct iscsit_cmd *cmd)
{
	if (!cmd->se_cmd.execute_cmd)
		return;
	ki_cmd(cmd)->execute = cmd->se_cmd.execute_cmd;
	cmd->se_cmd.execute_cmd = ki_execute;
}

/* ---- Start and stop ---------------------------------------------------------------- */

void ki_lanes_init(struct ki_comp *comp)
{
	spin_lock_init(&comp->lane_lock);
	INIT_LIST_HEAD(&comp->lanes);
	INIT_LIST_HEAD(&comp->idle_lanes);
}

/* Free the lanes. All commands have ended, but a work item may still be running. */
void ki_lanes_free(struct ki_comp *comp)
{
	struct ki_lane *lane;

	for (;;) {
		spin_lock(&comp->lane_lock);
		list_splice_init(&comp->lanes, &comp->idle_lanes);
		lane = list_first_entry_or_null(&comp->idle_lanes, struct ki_lane, link);
		spin_unlock(&comp->lane_lock);
		if (!lane)
			break;
		cancel_work_sync(&lane->work);
		/* The work of another lane may be about to move its lane to the list. */
		spin_lock(&comp->lane_lock);
		list_del(&lane->link);
		spin_unlock(&comp->lane_lock);
		kfree(lane);
	}
}

int ki_execute_start(void)
{
	ki_execute_wq = alloc_workqueue("kdapl_isert_dev", WQ_HIGHPRI | WQ_MEM_RECLAIM | WQ_PERCPU,
					WQ_MAX_ACTIVE);
	return ki_execute_wq ? 0 : -ENOMEM;
}

void ki_execute_end(void)
{
	destroy_workqueue(ki_execute_wq);
}
