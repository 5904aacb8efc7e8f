/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What differs between the kernels we build for, found by compile probes
 * (scripts/probes) and not by version numbers.
 */
#ifndef KDAPL_COMPAT_H
#define KDAPL_COMPAT_H

#include <linux/compiler_attributes.h>

/* With CONFIG_INIT_STACK_ALL_ZERO, clearing a large array costs 30 ns. */
#ifndef __uninitialized
# if __has_attribute(__uninitialized__)
#  define __uninitialized	__attribute__((__uninitialized__))
# else
#  define __uninitialized
# endif
#endif

#endif
