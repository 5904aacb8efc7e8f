// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A work queue must say that it is per CPU: 6.17 */
#include <linux/workqueue.h>

const unsigned int kdapl_probe = WQ_PERCPU;
