// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: serves block devices and files to any number of kdapl_blk.ko
 * on other hosts. Everything is set up in configfs, see tgt_configfs.c, or with
 * scripts/kdapl-blk.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/uuid.h>
#include "tgt.h"

#define KBT_BOOT_ID	"/proc/sys/kernel/random/boot_id"

/* See struct kblk_identify. */
u64 kbt_instance;

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
};

/* What a port has counted, and its receive queue as it is now. */
ssize_t kbt_stats_print(struct kbt_port *port, char *page)
{
	DAT_SRQ_PARAM srq;
	ssize_t n = 0;
	int i;

	for (i = 0; i < KBT_STATS; i++)
		n += sysfs_emit_at(page, n, "%-30s %lld\n", kbt_stat_names[i],
				   atomic64_read(&port->stats[i]));
	mutex_lock(&port->mutex);
	if (port->kbt && dat_srq_query(port->kbt->srq, DAT_SRQ_FIELD_ALL,
				       &srq) == DAT_SUCCESS) {
		n += sysfs_emit_at(page, n, "%-30s ", "SRQ buffers");
		n += sysfs_emit_at(page, n, "%d max, %d available, %d outstanding, %u retired\n",
				   srq.max_recv_dtos,
				   srq.available_dto_count,
				   srq.outstanding_dto_count,
				   kbt_srq_retired(port->kbt));
		n += sysfs_emit_at(page, n, "%-30s %u\n", "connected",
				   port->kbt->conn_count);
	}
	mutex_unlock(&port->mutex);
	return n;
}

static ssize_t kbt_conn_print(struct kbt_conn *conn, char *page, ssize_t n)
{
	const char *client = conn->client[0] ? conn->client : "-";
	struct kbt_ns *ns = READ_ONCE(conn->ns);
	DAT_COUNT held = 0;
	ssize_t start = n;

	dat_ep_recv_query(conn->ep, &held, NULL);
	/* A name may be anything. */
	n += sysfs_emit_at(page, n, "%-24s %*pE queue %u volume %u ",
			   conn->peer, (int)strlen(client), client, conn->queue,
			   ns ? ns->nsid : 0);
	n += sysfs_emit_at(page, n, "credits %u held %d withheld %u requests %lld\n",
			   conn->credits, held, READ_ONCE(conn->withheld),
			   atomic64_read(&conn->requests));
	return n - start;
}

/* A line for each connection, as far as they fit into a page. */
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

/*
 * What was written and not flushed is in the page cache, or in a disk's, and outlives
 * this module but not this kernel.
 */
static u64 __init kbt_boot(void)
{
	char text[UUID_STRING_LEN + 1] = {};
	struct file *file;
	loff_t pos = 0;
	uuid_t uuid;
	ssize_t n;
	u64 id;

	file = filp_open(KBT_BOOT_ID, O_RDONLY, 0);
	if (!IS_ERR(file)) {
		n = kernel_read(file, text, UUID_STRING_LEN, &pos);
		filp_close(file, NULL);
		if (n == UUID_STRING_LEN && !uuid_parse(text, &uuid)) {
			memcpy(&id, &uuid, sizeof(id));
			return id;
		}
	}
	pr_warn("no " KBT_BOOT_ID ": initiators will take a new load for a new start\n");
	return get_random_u64();
}

static int __init kbt_init(void)
{
	kbt_instance = kbt_boot();
	return kbt_configfs_register();
}

static void __exit kbt_exit(void)
{
	kbt_configfs_unregister();
}

module_init(kbt_init);
module_exit(kbt_exit);
MODULE_DESCRIPTION("Block device target on kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
