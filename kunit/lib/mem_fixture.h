/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For the suites about memory: a connected pair whose side "a" owns the memory
 * and whose side "p" is the peer that reaches for it.
 */
#ifndef KDAPL_KUNIT_MEM_FIXTURE_H
#define KDAPL_KUNIT_MEM_FIXTURE_H

#include "fixture.h"

#define MEM_MARK	0x6d61726bULL	/* cookie of the messages behind writes */

struct mem_pair {
	struct kunit *test;
	struct kd_side *a;
	struct kd_side *p;
};

struct mem_pair mem_make_pair(struct kunit *test, const DAT_EP_ATTR *attr);
struct mem_pair mem_second_pair(struct mem_pair *c, struct kd_side *second);
DAT_RMR_TRIPLET mem_remote(DAT_VADDR addr, size_t len, DAT_RMR_CONTEXT context);
void mem_mark(struct mem_pair *c);
void mem_write(struct mem_pair *c, DAT_RMR_TRIPLET remote);
void mem_read(struct mem_pair *c, DAT_RMR_TRIPLET remote);
void mem_reconnect(struct mem_pair *c);
void mem_expect_refused(struct mem_pair *c, DAT_RMR_TRIPLET remote, bool write,
			const char *why);

#endif /* KDAPL_KUNIT_MEM_FIXTURE_H */
