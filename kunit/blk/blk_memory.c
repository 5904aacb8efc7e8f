// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_kunit.ko: allocations that fail, see blk_memory.h.
 */
#include <linux/module.h>
#include "blk_memory.h"
#include "shell.h"

/* kdb_fail_pages() has no effect any more. */
void kdb_pages_come(void *unused)
{
	shell("cd " FAIL_PAGES " && echo 0 >probability && echo 1 >min-order");
}
EXPORT_SYMBOL_GPL(kdb_pages_come);

/* Fail 1000 allocations of so many pages and more, or until kdb_pages_come(); or skip. */
void kdb_fail_pages(struct kunit *test, unsigned int order)
{
	char command[160];

	if (shell("test -d " FAIL_PAGES))
		kunit_skip(test, "no fail_page_alloc");
	snprintf(command, sizeof(command), "set -e; cd " FAIL_PAGES "; echo %u >min-order;"
		 " echo 1000 >times; echo 100 >probability", order);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kdb_pages_come, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell(command));
}
EXPORT_SYMBOL_GPL(kdb_fail_pages);
