/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Included by isert.h: commands on their way to a backend, execute.c. */
#ifndef KDAPL_ISERT_EXECUTE_H
#define KDAPL_ISERT_EXECUTE_H

/*
 * struct ki_lane - commands that a backend is to execute, for connections of one EVD
 * @comp: the EVD
 * @link: entry in comp->lanes while @work is queued or runs, else in comp->idle_lanes
 * @dev: the backend; compared, never dereferenced
 * @cmds: commands to execute, in their order
 * @work: has the commands executed
 */
struct ki_lane {
	struct ki_comp *comp;
	struct list_head link;
	const struct se_device *dev;
	struct list_head cmds;
	struct work_struct work;
};

int ki_execute_start(void);
void ki_execute_end(void);
void ki_execute_later(struct iscsit_cmd *cmd);
void ki_lanes_init(struct ki_comp *comp);
void ki_lanes_free(struct ki_comp *comp);

#endif
