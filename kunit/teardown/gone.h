/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What calls return when the device has gone (contract N6).
 */
#ifndef KDAPL_KUNIT_GONE_H
#define KDAPL_KUNIT_GONE_H

#include "fixture.h"

/* Memory objects of a side besides its buffer, all in use. */
struct memory {
	struct kd_buf *local;
	struct kd_buf *remote;
	DAT_LMR_HANDLE fmr;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_CONTEXT fmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_PADDR page;
};

void td_make_bind(struct kd_side *s, struct memory *m, u64 cookie);
void td_make_memory(struct kd_side *s, struct memory *m);
void td_calls_that_need_the_device(struct kd_side *s);
void td_calls_that_post(struct kd_side *s, struct memory *m);
void td_calls_without_a_device(struct kd_side *s, struct memory *m);
void td_calls_of_an_srq(struct kd_side *s);

#endif /* KDAPL_KUNIT_GONE_H */
