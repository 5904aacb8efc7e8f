// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* MODULE_IMPORT_NS() takes a token: before 6.13; since then a string literal */
#include <linux/module.h>

MODULE_IMPORT_NS(KDAPL_PROBE);
