/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: the n-th allocation inside kdapl.ko's own work items and handlers of
 * rdma_cm events fails.
 */
#ifndef KDAPL_KUNIT_FAULT_WINDOWS_H
#define KDAPL_KUNIT_FAULT_WINDOWS_H

#include "fixture.h"

#if defined(CONFIG_FAULT_INJECTION) && defined(CONFIG_TRACEPOINTS)
#define KDF_HAVE_WINDOWS	1
#else
#define KDF_HAVE_WINDOWS	0
#endif

void kdf_fail_in_windows(unsigned int nth);
unsigned int kdf_windows_left(void);
void kdf_open_windows(struct kunit *test, bool only);

#endif /* KDAPL_KUNIT_FAULT_WINDOWS_H */
