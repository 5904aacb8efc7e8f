// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Namespaces of symbols are named by tokens; since 6.13 by string literals. */
#include <linux/module.h>

MODULE_IMPORT_NS(KDAPL_PROBE);
