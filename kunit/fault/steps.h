/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: the n-th step of a storage module fails, in whatever context it is taken.
 *
 * A step is a call of another part of the kernel, or of kdapl.ko, that may find no memory:
 * the list is in steps.c. kdf_doctor() has a copy of the module call kdapl_fault.ko in its
 * place, which fails the n-th call or passes it on; neither the module nor the kernel has
 * anything to do with that. It works on all test kernels, in work items, threads of LIO
 * and softirqs alike, and counts nothing that others do.
 * Implemented in steps.c, kdapl_fault.ko.
 */
#ifndef KDAPL_KUNIT_FAULT_STEPS_H
#define KDAPL_KUNIT_FAULT_STEPS_H

#include "fixture.h"

int kdf_doctor(const char *module);
void kdf_undoctor(const char *module);
void kdf_fail_step(unsigned int nth);
bool kdf_step_has_failed(void);
unsigned int kdf_steps_left(void);
void kdf_show_steps(struct kunit *test);

#endif /* KDAPL_KUNIT_FAULT_STEPS_H */
