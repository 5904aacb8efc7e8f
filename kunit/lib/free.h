/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Freeing objects of which only the handle is known.
 */
#ifndef KDAPL_KUNIT_FREE_H
#define KDAPL_KUNIT_FREE_H

#include <dat/kdat.h>

bool kd_is_live(DAT_HANDLE handle);
DAT_RETURN kd_free_object(DAT_HANDLE handle);

#endif /* KDAPL_KUNIT_FREE_H */
