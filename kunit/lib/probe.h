/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Functions that run where the kernel has a tracepoint, for cases that need another
 * order of events: there, no lock of kdapl.ko may be held.
 */
#ifndef KDAPL_KUNIT_PROBE_H
#define KDAPL_KUNIT_PROBE_H

#include "kunit.h"

void kd_probe(struct kunit *test, const char *tracepoint, void *probe);

#endif /* KDAPL_KUNIT_PROBE_H */
