// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Call a hook in each block of our modules. "scripts/kernel/build-modules -p" has the compiler
 * insert a call of __sanitizer_cov_trace_pc() into each basic block of drivers/ (and into
 * nothing else); this module has that function, so it is loaded before them. Another module
 * sets the hook: one that delays, or one that tells what was reached.
 */
#include <linux/export.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include "points.h"

static kdapl_points_hook points_hook;

/* Preemption is disabled for kdapl_points_clear(). */
noinline notrace void __sanitizer_cov_trace_pc(void)
{
	unsigned long pc = _RET_IP_;
	kdapl_points_hook hook;

	preempt_disable_notrace();
	hook = READ_ONCE(points_hook);
	if (hook)
		hook(pc);
	preempt_enable_notrace();
}
EXPORT_SYMBOL_GPL(__sanitizer_cov_trace_pc);

/* Have @hook called from now on. Return -EBUSY if there is another one. */
int kdapl_points_set(kdapl_points_hook hook)
{
	return cmpxchg(&points_hook, NULL, hook) ? -EBUSY : 0;
}
EXPORT_SYMBOL_GPL(kdapl_points_set);

/* Call no hook, and wait for calls that have begun. */
void kdapl_points_clear(void)
{
	WRITE_ONCE(points_hook, NULL);
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(kdapl_points_clear);

MODULE_DESCRIPTION("Call a hook in each block of the modules of kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
