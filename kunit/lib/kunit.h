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

/*
 * KD_SUITE() - the suite of a module, at the end of its file
 * @suite: its name
 * @cases: array of its cases
 * @about: what it is about
 * @...: more members of struct kunit_suite
 */
#define KD_SUITE(suite, cases, about, ...)				\
static struct kunit_suite kd_suite = {					\
	.name = suite,							\
	.test_cases = cases,						\
	__VA_ARGS__							\
};									\
									\
kunit_test_suite(kd_suite);						\
									\
MODULE_DESCRIPTION("KUnit suite: " about);				\
MODULE_LICENSE("Dual BSD/GPL")

/*
 * KD_CHOICES() - a generator of parameters: all IAs with each of some choices
 * @name: its name
 * @generate: kd_gen_ia_and or kd_gen_any_ia_and
 * @...: what the choices are called
 */
#define KD_CHOICES(name, generate, ...)					\
KD_GENERATOR(name)							\
{									\
	static const char * const names[] = { __VA_ARGS__ };		\
									\
	return generate(prev, desc, names, ARRAY_SIZE(names));		\
}

#endif /* KDAPL_KUNIT_KUNIT_H */
