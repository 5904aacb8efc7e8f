// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_kunit.ko: allocations that fail or are counted, see blk_memory.h.
 */
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <trace/events/kmem.h>
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

static void count_malloc(void *data, unsigned long call_site, const void *ptr,
			 size_t bytes_req, size_t bytes_alloc, gfp_t flags, int node)
{
	struct kdb_mallocs *mallocs = data;

	if (!mallocs->counts(call_site))
		return;
	atomic_inc(&mallocs->all);
	if (flags & __GFP_IO && !(current->flags & PF_MEMALLOC_NOIO))
		atomic_inc(&mallocs->writing);
}

void kdb_mallocs_end(void *mallocs)
{
	unregister_trace_kmalloc(count_malloc, mallocs);
	tracepoint_synchronize_unregister();
}
EXPORT_SYMBOL_GPL(kdb_mallocs_end);

/* Count calls of kmalloc() until kdb_mallocs_end(), as a release of an action, or the case ends. */
struct kdb_mallocs *kdb_count_mallocs(struct kunit *test,
				      bool (*counts)(unsigned long call_site))
{
	struct kdb_mallocs *mallocs = kunit_kzalloc(test, sizeof(*mallocs), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mallocs);
	mallocs->counts = counts;
	KUNIT_ASSERT_EQ(test, 0, register_trace_kmalloc(count_malloc, mallocs));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kdb_mallocs_end, mallocs));
	return mallocs;
}
EXPORT_SYMBOL_GPL(kdb_count_mallocs);
