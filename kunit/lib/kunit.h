/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * KUnit, or what stands in for it where the kernel does not have it.
 */
#ifndef KDAPL_KUNIT_KUNIT_H
#define KDAPL_KUNIT_KUNIT_H

#include <linux/kconfig.h>

#if IS_ENABLED(CONFIG_KUNIT)
#include <kunit/test.h>
#else
#include "../compat/kunit.h"
#endif

#endif /* KDAPL_KUNIT_KUNIT_H */
