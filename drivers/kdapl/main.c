// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kDAPL: the kernel Direct Access Programming Library over ib_core.
 */
#include <linux/init.h>
#include <linux/module.h>
#include "kdapl.h"

static int __init kdapl_init(void)
{
	int err;

	kdapl_handle_setup();
	kdapl_wq = alloc_workqueue("kdapl", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!kdapl_wq)
		return -ENOMEM;
	err = kdapl_upcall_setup();
	if (err)
		goto err_wq;
	err = ib_register_client(&kdapl_client);
	if (err)
		goto err_upcall;
	kdapl_debugfs_init();
	return 0;

err_upcall:
	kdapl_upcall_cleanup();
err_wq:
	destroy_workqueue(kdapl_wq);
	return err;
}

/*
 * Consumers are linked to this module, so they are gone. Objects that one of
 * them forgot are stripped by the removal of the client and leak otherwise.
 */
static void __exit kdapl_exit(void)
{
	int rounds = 0;

	kdapl_debugfs_exit();
	ib_unregister_client(&kdapl_client);
	/* Releasing one object may drop the last reference to another. */
	do {
		kdapl_quiesce();
	} while (!kdapl_handles_empty() && ++rounds < 8);
	WARN_ON(!kdapl_handles_empty());
	kdapl_quiesce();
	kdapl_upcall_cleanup();
	destroy_workqueue(kdapl_wq);
	kdapl_handle_cleanup();
}

module_init(kdapl_init);
module_exit(kdapl_exit);

MODULE_DESCRIPTION("Kernel Direct Access Programming Library (DAT 2.0)");
MODULE_AUTHOR("The kDAPL for Linux developers");
MODULE_LICENSE("Dual BSD/GPL");
