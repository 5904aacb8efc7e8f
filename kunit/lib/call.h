/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Calls in a thread of their own, for cases in which a call must come back, or must wait; and
 * calls in an interrupt.
 */
#ifndef KDAPL_KUNIT_CALL_H
#define KDAPL_KUNIT_CALL_H

#include <linux/completion.h>
#include "fixture.h"

struct kd_call {
	u32 (*fn)(void *arg);
	void *arg;
	DAT_RETURN ret;
	struct completion done;
};

struct kd_call *kd_call_begin(struct kunit *test, u32 (*fn)(void *arg), void *arg);
bool kd_call_is_back(struct kd_call *c, unsigned int ms);
void kd_call_expect(struct kunit *test, struct kd_call *c, u32 want, unsigned int ms,
		    void (*rescue)(void *data), void *data);
void kd_call_in_interrupt(struct kunit *test, void (*fn)(void *arg), void *arg);

#endif /* KDAPL_KUNIT_CALL_H */
