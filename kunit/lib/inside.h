/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Objects of kdapl.ko behind their handles. A module of suites that includes this has
 * KDAPL_IMPORT_TEST at its end.
 */
#ifndef KDAPL_KUNIT_INSIDE_H
#define KDAPL_KUNIT_INSIDE_H

#include "handle.h"
#include "pz_lmr.h"

/* The object with this handle, which the case does not free meanwhile. */
static inline void *kd_inside(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	void *obj;

	rcu_read_lock();
	obj = kdapl_find(handle, type);
	rcu_read_unlock();
	return obj;
}

/* For kd_at_lock(): bind an LMR anew, as far as a call sees it that names its former context. */
static inline void kd_bind_anew(void *data)
{
	struct kdapl_lmr *lmr = data;

	WRITE_ONCE(lmr->context, lmr->context + (1U << KDAPL_INDEX_BITS));
}

#endif /* KDAPL_KUNIT_INSIDE_H */
