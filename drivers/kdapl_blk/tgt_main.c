// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: serve block devices and files to kdapl_blk.ko on other
 * hosts.
 *
 * Module load and unload, and the "stats" and "connections" files of a port.
 * Everything is set up through configfs, see tgt_configfs.c, or with
 * tools/kdapl-blk. configfs holds a module reference for each object, and so
 * do open volumes and ports at work, so nothing is left at unload.
 *
 * Locks: port->mutex keeps the adapter, kbt->mutex its connections.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include "tgt.h"

static const char * const kbt_stat_names[KBT_STATS] = {
	[KBT_STAT_CONNECTS] = "connections",
	[KBT_STAT_REFUSALS] = "connections refused",
	[KBT_STAT_DISCONNECTS] = "connections ended",
	[KBT_STAT_REQUESTS] = "requests",
	[KBT_STAT_READS] = "reads",
	[KBT_STAT_WRITES] = "writes",
	[KBT_STAT_READ_BYTES] = "bytes read",
	[KBT_STAT_WRITE_BYTES] = "bytes written",
	[KBT_STAT_ERROR_REPLIES] = "error replies",
	[KBT_STAT_PROTOCOL_ERRORS] = "protocol errors",
	[KBT_STAT_DTO_ERRORS] = "failed transfers",
	[KBT_STAT_LOW_WATERMARK] = "SRQ low watermark events",
	[KBT_STAT_THROTTLED] = "EP soft high watermark events",
	[KBT_STAT_BROKEN] = "connections broken",
	[KBT_STAT_CUT_OFF] = "clients cut off",
	[KBT_STAT_SILENT] = "connections silent",
	[KBT_STAT_STUCK] = "connections not taking replies",
	[KBT_STAT_UNPROVEN] = "connections without proof",
	[KBT_STAT_HANGING] = "connections kept by a medium",
};

static ssize_t kbt_pool_print(struct kbt_pool *pool, const char *name,
			      char *page, ssize_t n)
{
	return sysfs_emit_at(page, n, "%-30s %u, %u free\n", name,
			     READ_ONCE(pool->n), READ_ONCE(pool->nfree));
}

/* Print the counters of @port, then the current state of its SRQ and pools. */
ssize_t kbt_stats_print(struct kbt_port *port, char *page)
{
	KDAT_POOL_PARAM rx;
	DAT_SRQ_PARAM srq;
	ssize_t n = 0;
	int i;

	for (i = 0; i < KBT_STATS; i++)
		n += sysfs_emit_at(page, n, "%-30s %lld\n", kbt_stat_names[i],
				   atomic64_read(&port->stats[i]));
	mutex_lock(&port->mutex);
	if (port->kbt && dat_srq_query(port->kbt->adapter.srq, DAT_SRQ_FIELD_ALL,
				       &srq) == DAT_SUCCESS) {
		kdat_pool_query(port->kbt->adapter.pool, &rx);
		n += sysfs_emit_at(page, n, "%-30s ", "SRQ buffers");
		n += sysfs_emit_at(page, n, "%d max, %d available, %d outstanding, %u retired\n",
				   srq.max_recv_dtos,
				   srq.available_dto_count,
				   srq.outstanding_dto_count,
				   rx.retired);
		n += sysfs_emit_at(page, n, "%-30s %d\n", "credits",
				   atomic_read(&port->kbt->granted));
		n += kbt_pool_print(&port->kbt->pools[KBT_PAGES], "pages",
				    page, n);
		n += kbt_pool_print(&port->kbt->pools[KBT_LARGE], "buffers",
				    page, n);
		n += sysfs_emit_at(page, n, "%-30s %u\n", "connected",
				   port->kbt->conn_count);
	}
	mutex_unlock(&port->mutex);
	return n;
}

static ssize_t kbt_conn_print(struct kbt_conn *conn, char *page, ssize_t n)
{
	const char *client = conn->client[0] ? conn->client : "-";
	DAT_COUNT held = 0;
	ssize_t start = n;

	dat_ep_recv_query(conn->ep, &held, NULL);
	/* The client chooses its name, so escape it. */
	n += sysfs_emit_at(page, n, "%-24s %*pE queue %u volume ",
			   conn->peer, (int)strlen(client), client, conn->queue);
	n += kbt_attached_print(conn, page, n);
	n += sysfs_emit_at(page, n, " credits %u held %d withheld %u requests %lld\n",
			   conn->credits, held, READ_ONCE(conn->withheld),
			   atomic64_read(&conn->requests));
	return n - start;
}

/* Print a line for each connection, as far as the page has room. */
ssize_t kbt_conns_print(struct kbt_port *port, char *page)
{
	struct kbt_conn *conn;
	struct kbt *kbt;
	ssize_t n = 0;

	mutex_lock(&port->mutex);
	kbt = port->kbt;
	if (kbt) {
		mutex_lock(&kbt->mutex);
		list_for_each_entry(conn, &kbt->conns, link)
			if (!kbt_conn_ending(conn))
				n += kbt_conn_print(conn, page, n);
		mutex_unlock(&kbt->mutex);
	}
	mutex_unlock(&port->mutex);
	return n;
}

/* For works that close volumes; they may wait for a medium */
struct workqueue_struct *kbt_stop_wq;

static int __init kbt_init(void)
{
	int err;

	kbt_identity_init();
	err = kblk_hmac_init(&kbt_hmac);
	if (err)
		return err;
	err = -ENOMEM;
	kbt_stop_wq = alloc_workqueue("kdapl_blk_tgt_stop", WQ_UNBOUND, 0);
	if (!kbt_stop_wq)
		goto err_hmac;
	err = kbt_server_start();
	if (err)
		goto err_stop_wq;
	err = kbt_configfs_register();
	if (err)
		goto err_server;
	return 0;

err_server:
	kbt_server_stop();
err_stop_wq:
	destroy_workqueue(kbt_stop_wq);
err_hmac:
	kblk_hmac_free(&kbt_hmac);
	return err;
}

static void __exit kbt_exit(void)
{
	kbt_configfs_unregister();
	kbt_server_stop();
	destroy_workqueue(kbt_stop_wq);
	kblk_hmac_free(&kbt_hmac);
}

module_init(kbt_init);
module_exit(kbt_exit);
MODULE_DESCRIPTION("Block device target on kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
#ifdef KDAPL_VERSION
MODULE_VERSION(KDAPL_VERSION);
#endif
