/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands of the shell: in the background, where they may wait for a medium in memory,
 * and to unload the initiator.
 * Implemented in blk_command.c, kdapl_blk_kunit.ko.
 */
#ifndef KDAPL_KUNIT_BLK_COMMAND_H
#define KDAPL_KUNIT_BLK_COMMAND_H

#include <linux/workqueue.h>
#include "blk_backing.h"

/*
 * struct command - a command in the background
 * @what: the command
 * @status: its wait status, or -errno, when it has ended
 */
struct command {
	struct work_struct work;
	const char *what;
	int status;
};

struct command *kdb_command_start(struct kunit *test, const char *what);
void kdb_command_wait(struct command *command);
bool kdb_command_has_ended(void *data);
void kdb_command_expect_success(struct kunit *test, struct command *command);
void kdb_unload_initiator(struct kunit *test);

#endif /* KDAPL_KUNIT_BLK_COMMAND_H */
