/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What differs between the kernels we build for, found by compile probes
 * (scripts/probes) and not by version numbers.
 */
#ifndef KDAPL_COMPAT_H
#define KDAPL_COMPAT_H

#endif
