// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The ends of connections, of which kdapl_test.ko has a copy of its own. */
#include "../../drivers/kdapl_test/raw_side.c"
#include "../../drivers/kdapl_test/raw.c"
#include "../../drivers/kdapl_test/dat_side.c"
#include "../../drivers/kdapl_test/dat.c"
