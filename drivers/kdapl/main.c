// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kDAPL: the kernel Direct Access Programming Library over ib_core.
 *
 * Loading and unloading of the module. Everything else starts with a call of a
 * consumer (dat_*()), with an event of rdma_cm or of the device, or with
 * kdapl_add_one() and kdapl_remove_one() when a device arrives or leaves.
 */
#include <linux/init.h>
#include <linux/module.h>
#include "cm.h"
#include "conn.h"
#include "dto.h"
#include "evd.h"
#include "ia.h"

/*
 * Tell the EVD layer which functions reap and withdraw each kind of event; it
 * calls the layers above it through these tables only, except for completions.
 */
static void __init kdapl_register_events(void)
{
	kdapl_event_register(KDAPL_EV_SQ, &kdapl_request_event_ops);
	kdapl_event_register(KDAPL_EV_RQ, &kdapl_recv_event_ops);
	kdapl_event_register(KDAPL_EV_SRQ, &kdapl_recv_event_ops);
	kdapl_event_register(KDAPL_EV_CONN, &kdapl_conn_event_ops);
	kdapl_event_register(KDAPL_EV_CR, &kdapl_cr_event_ops);
}

static int __init kdapl_init(void)
{
	int err;

	err = kdapl_quirk_setup();
	if (err)
		return err;
	kdapl_register_events();
	kdapl_handle_setup();
	kdapl_wq = alloc_workqueue("kdapl", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!kdapl_wq)
		return -ENOMEM;
	err = kdapl_upcall_setup();
	if (err)
		goto err_wq;
	/* First, as devices report addresses. */
	err = kdapl_addr_setup();
	if (err)
		goto err_notify;
	err = ib_register_client(&kdapl_client);
	if (err)
		goto err_addr;
	err = kdapl_servers_init();
	if (err)
		goto err_client;
	err = kdapl_unload_setup();
	if (err)
		goto err_servers;
	kdapl_debugfs_init();
	kdapl_stats_init();
	return 0;

err_servers:
	kdapl_servers_cleanup();
err_client:
	ib_unregister_client(&kdapl_client);
err_addr:
	kdapl_addr_cleanup();
err_notify:
	kdapl_notify_cleanup();
	kdapl_upcall_cleanup();
err_wq:
	destroy_workqueue(kdapl_wq);
	return err;
}

/*
 * Every consumer holds a reference to this module, so all consumers have been unloaded,
 * and ia_unload.c has freed the objects that they had left.
 */
static void __exit kdapl_exit(void)
{
	int rounds = 0;

	kdapl_stats_exit();
	kdapl_debugfs_exit();
	kdapl_unload_cleanup();
	kdapl_servers_cleanup();
	ib_unregister_client(&kdapl_client);
	kdapl_addr_cleanup();
	kdapl_notify_cleanup();
	/*
	 * The release of one object may drop the last reference to another. The chain has
	 * fewer than eight steps; an object that is left then was never freed.
	 */
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
#ifdef KDAPL_VERSION
MODULE_VERSION(KDAPL_VERSION);
#endif
