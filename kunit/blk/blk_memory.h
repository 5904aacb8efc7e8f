/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory in small pieces: allocations of many pages fail, on kernels that can make them.
 * Implemented in blk_memory.c, kdapl_blk_kunit.ko.
 */
#ifndef KDAPL_KUNIT_BLK_MEMORY_H
#define KDAPL_KUNIT_BLK_MEMORY_H

#include "fixture.h"

#define FAIL_PAGES	"/sys/kernel/debug/fail_page_alloc"

void kdb_fail_pages(struct kunit *test, unsigned int order);
void kdb_pages_come(void *unused);

#endif /* KDAPL_KUNIT_BLK_MEMORY_H */
