// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* WQ_PERCPU marks a per-CPU workqueue: 6.17 */
#include <linux/workqueue.h>

const unsigned int kdapl_probe = WQ_PERCPU;
