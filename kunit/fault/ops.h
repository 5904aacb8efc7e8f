/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: the n-th allocation of the calling thread, or the n-th operation of a
 * device, fails. Implemented in ops.c, kdapl_fault.ko.
 */
#ifndef KDAPL_KUNIT_FAULT_OPS_H
#define KDAPL_KUNIT_FAULT_OPS_H

#include <linux/sched.h>
#include <rdma/restrack.h>
#include "fixture.h"

/* ---- Allocations --------------------------------------------------------- */

/* Have the @nth allocation of this thread from now on fail. */
static inline void kdf_fail_allocation(unsigned int nth)
{
#ifdef CONFIG_FAULT_INJECTION
	current->fail_nth = nth;
#endif
}

/*
 * Have no allocation fail any more. Return how many more it would have taken; 0
 * if one has failed.
 */
static inline unsigned int kdf_allocations_left(void)
{
	unsigned int left = 0;

#ifdef CONFIG_FAULT_INJECTION
	left = current->fail_nth;
	current->fail_nth = 0;
#endif
	return left;
}

/* ---- Device operations --------------------------------------------------- */

void kdf_fail_operation(unsigned int nth, int err, struct task_struct *only);
void kdf_fail_operation_of_others(unsigned int nth, int err);
unsigned int kdf_operations_left(void);
bool kdf_no_operation_left(void *unused);
void kdf_replace_operations(struct kunit *test, const char *ia);

/* ---- What the device has ------------------------------------------------- */

/* The number of the device's objects of each enum rdma_restrack_type. */
struct holdings {
	int n[RDMA_RESTRACK_MAX];
};

void kdf_count_holdings(struct holdings *have);
void kdf_expect_holdings(struct kunit *test, struct holdings *before,
			 const char *what);

#endif /* KDAPL_KUNIT_FAULT_OPS_H */
