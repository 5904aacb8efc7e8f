// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_kunit.ko: commands in the background, see blk_command.h.
 */
#include <linux/module.h>
#include "blk_command.h"
#include "shell.h"

static void command_run(struct work_struct *work)
{
	struct command *command = container_of(work, struct command, work);

	command->status = shell(command->what);
}

/* A case ends, perhaps early: no medium keeps its command any longer. */
static void command_end(void *data)
{
	kdb_backings_release();
	kdb_command_wait(data);
}

/* Run @what in the background. When the case ends it is waited for. */
struct command *kdb_command_start(struct kunit *test, const char *what)
{
	struct command *command = kunit_kzalloc(test, sizeof(*command),
						GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, command);
	INIT_WORK(&command->work, command_run);
	command->what = what;
	queue_work(system_long_wq, &command->work);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, command_end,
							   command));
	return command;
}
EXPORT_SYMBOL_GPL(kdb_command_start);

void kdb_command_wait(struct command *command)
{
	flush_work(&command->work);
}
EXPORT_SYMBOL_GPL(kdb_command_wait);

/* Return whether the struct command @data has ended, for kd_wait_until(). */
bool kdb_command_has_ended(void *data)
{
	struct command *command = data;

	return !work_busy(&command->work);
}
EXPORT_SYMBOL_GPL(kdb_command_has_ended);

/* Wait until @command ends, no longer than KD_TIMEOUT_MS, and expect success. */
void kdb_command_expect_success(struct kunit *test, struct command *command)
{
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(kdb_command_has_ended, command,
						  KD_TIMEOUT_MS),
			      "hangs: %s", command->what);
	if (kdb_command_has_ended(command))
		KUNIT_EXPECT_EQ(test, command->status, 0);
}
EXPORT_SYMBOL_GPL(kdb_command_expect_success);

/*
 * A disk whose directory was removed may take a moment longer, and so does the kernel,
 * which has read its partition table in a kernel thread, until it closes it.
 */
static bool initiator_unloads(void *unused)
{
	return !shell("rmmod kdapl_blk 2>/dev/null");
}

/* Unload the module, which has no directories of disks any more. */
void kdb_unload_initiator(struct kunit *test)
{
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(initiator_unloads, NULL,
						  KD_TIMEOUT_MS),
			      "the initiator does not unload");
}
EXPORT_SYMBOL_GPL(kdb_unload_initiator);
