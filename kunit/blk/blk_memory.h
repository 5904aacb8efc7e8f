/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory in small pieces: allocations of many pages fail, on kernels that can make them. And calls
 * of kmalloc(), which are counted.
 * Implemented in blk_memory.c, kdapl_blk_kunit.ko.
 */
#ifndef KDAPL_KUNIT_BLK_MEMORY_H
#define KDAPL_KUNIT_BLK_MEMORY_H

#include "fixture.h"

#define FAIL_PAGES	"/sys/kernel/debug/fail_page_alloc"

void kdb_fail_pages(struct kunit *test, unsigned int order);
void kdb_pages_come(void *unused);

/*
 * struct kdb_mallocs - calls of kmalloc() that are counted
 * @counts: tells whether one of the current task is; it may be called at any place
 * @all: all of them
 * @writing: those that may write dirty pages, and wait for that
 */
struct kdb_mallocs {
	bool (*counts)(unsigned long call_site);
	atomic_t all;
	atomic_t writing;
};

struct kdb_mallocs *kdb_count_mallocs(struct kunit *test,
				      bool (*counts)(unsigned long call_site));
void kdb_mallocs_end(void *mallocs);

#endif /* KDAPL_KUNIT_BLK_MEMORY_H */
