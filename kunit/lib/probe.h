/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Functions that run where the kernel has a tracepoint, for cases that need another
 * order of events: there, no lock of kdapl.ko may be held.
 *
 * A kernel with lockdep has a tracepoint at every lock: kd_at_lock() has a function called
 * when the calling task is about to take, or to let go of, a certain one. So the case is
 * what another CPU does between two lines that nothing else lies between:
 *
 *	kd_at_lock(test, KD_TAKING, "&ep->lock", 1, disconnect, ep);
 *	ret = dat_ep_reset(ep);
 *	KUNIT_EXPECT_EQ(test, kd_left_lock(), 1);
 */
#ifndef KDAPL_KUNIT_PROBE_H
#define KDAPL_KUNIT_PROBE_H

#include "kunit.h"

void kd_probe(struct kunit *test, const char *tracepoint, void *probe);

void kd_count_log(struct kunit *test, const char *text);
unsigned int kd_logged(void);
bool kd_is_logged(void *unused);

enum kd_lock_op {
	KD_TAKING,
	KD_DROPPING,
};

void kd_at_lock(struct kunit *test, enum kd_lock_op op, const char *name,
		unsigned int nth, void (*fn)(void *arg), void *arg);
void kd_at_lock_here(void);
unsigned int kd_left_lock(void);

#endif /* KDAPL_KUNIT_PROBE_H */
