// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Suites that are built in run before there is any user space but the initial
 * RAM file system, so the devices are made here. Suites that are modules find
 * the devices made.
 */
#include <linux/init.h>
#include <linux/printk.h>
#include "shell.h"

/* The initcall runs after those of all drivers and before the suites. */
static int __init kd_make_devices(void)
{
	int err = shell("sh /kdapl-devices");

	if (err)
		pr_warn("kdapl_kunit: /kdapl-devices of the initramfs: %d\n",
			err);
	return 0;
}
late_initcall_sync(kd_make_devices);
