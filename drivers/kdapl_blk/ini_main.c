// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko: disks that are volumes of a kdapl_blk_tgt.ko on another host.
 *
 * Module load and unload, and kbi_wq. Disks are set up through configfs, see
 * ini_configfs.c, or with tools/kdapl-blk.
 */
#include <linux/module.h>
#include "ini.h"

struct workqueue_struct *kbi_wq;
/* This host, for targets: random, so it is another one after each load. */
uuid_t kbi_host;

static int __init kbi_init(void)
{
	int err;

	uuid_gen(&kbi_host);
	kbi_wq = alloc_workqueue("kdapl_blk", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!kbi_wq)
		return -ENOMEM;
	err = kbi_configfs_register();
	if (err)
		destroy_workqueue(kbi_wq);
	return err;
}

/* No disk exists: configfs holds a module reference for each. */
static void __exit kbi_exit(void)
{
	kbi_configfs_unregister();
	destroy_workqueue(kbi_wq);
	kbi_volumes_free();
}

module_init(kbi_init);
module_exit(kbi_exit);
MODULE_DESCRIPTION("Disks of a block device target on kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
#ifdef KDAPL_VERSION
MODULE_VERSION(KDAPL_VERSION);
#endif
