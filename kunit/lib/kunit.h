/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * KUnit, or what stands in for it where the kernel does not have it.
 */
#ifndef KDAPL_KUNIT_KUNIT_H
#define KDAPL_KUNIT_KUNIT_H

#include <linux/kconfig.h>
#include <compat_probe.h>

#if IS_ENABLED(CONFIG_KUNIT)
#include <kunit/test.h>
#else
#include "../compat/kunit.h"
#endif

/*
 * KD_GENERATOR() - what a function that generates parameters of a case is
 * @name: its name; its arguments are @prev and @desc, in later kernels also @test
 *
 * KD_GENERATE() calls one from another.
 */
#if IS_ENABLED(CONFIG_KUNIT) && defined(KDAPL_HAVE_KUNIT_GENERATE_TEST)
# define KD_GENERATOR(name) \
	const void *(name)(struct kunit *test, const void *prev, char *desc)
# define KD_GENERATE(name, prev)	((name)(test, prev, desc))
#else
# define KD_GENERATOR(name)	const void *(name)(const void *prev, char *desc)
# define KD_GENERATE(name, prev)	((name)(prev, desc))
#endif

#endif /* KDAPL_KUNIT_KUNIT_H */
