/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A function that is called in each block of our modules, see points.c. */
#ifndef KUNIT_POINTS_H
#define KUNIT_POINTS_H

/*
 * A hook is called in each context that the modules run in, hard interrupts included, with
 * preemption disabled; it must not sleep, and calls nothing of our modules.
 * @pc: address in the block
 */
typedef void (*kdapl_points_hook)(unsigned long pc);

void __sanitizer_cov_trace_pc(void);
int kdapl_points_set(kdapl_points_hook hook);
void kdapl_points_clear(void);

#endif
