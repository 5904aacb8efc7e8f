// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inspection: /sys/kernel/debug/kdapl_svcrdma has a file with a line for each adapter, and one
 * with a line for each connection. Their format may change at any time.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include "svcrdma.h"

static const char * const ks_stat_names[KS_STATS] = {
	[KS_STAT_REQUESTS] = "requests",
	[KS_STAT_REFUSED] = "refused",
	[KS_STAT_CALLS] = "calls",
	[KS_STAT_ERRORS] = "errors",
	[KS_STAT_SOFT] = "soft",
	[KS_STAT_BROKEN] = "broken",
};

static struct dentry *ks_debugfs;

static void ks_show_adapter(KDAT_ADAPTER *adapter, DAT_PVOID data)
{
	struct ks_adapter *a = container_of(adapter, struct ks_adapter, k);
	struct seq_file *m = data;
	unsigned int conns = 0, i;
	KDAT_POOL_PARAM param;
	struct list_head *at;

	kdat_pool_query(a->k.pool, &param);
	mutex_lock(&a->mutex);
	list_for_each(at, &a->conns)
		conns++;
	mutex_unlock(&a->mutex);
	seq_printf(m, "%s connections=%u buffers=%d bytes=%llu available=%d low-mark=%d reserved=%d%s",
		   a->k.name, conns, param.buffers, param.bytes, param.available,
		   param.low_watermark, param.reserved, READ_ONCE(a->k.gone) ? " gone" : "");
	for (i = 0; i < KS_STATS; i++)
		seq_printf(m, " %s=%ld", ks_stat_names[i], atomic_long_read(&a->stats[i]));
	seq_putc(m, '\n');
}

static int ks_adapters_show(struct seq_file *m, void *unused)
{
	kdat_server_adapters(ks_server, ks_show_adapter, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ks_adapters);

static void ks_show_conns(KDAT_ADAPTER *adapter, DAT_PVOID data)
{
	struct ks_adapter *a = container_of(adapter, struct ks_adapter, k);
	struct seq_file *m = data;
	struct list_head *at;
	unsigned int waiting;
	struct ks_conn *c;

	mutex_lock(&a->mutex);
	list_for_each_entry(c, &a->conns, link) {
		waiting = 0;
		spin_lock_bh(&c->lock);
		list_for_each(at, &c->waiting)
			waiting++;
		seq_printf(m, "%s %s state=%s window=%u asked=%u reserved=%u held=%u posted=%u waiting=%u fetching=%u\n",
			   a->k.name, c->peer, c->down ? "down" : c->open ? "up" : "new",
			   c->window, c->asked, c->reserved, c->held, c->posted, waiting,
			   c->fetching);
		spin_unlock_bh(&c->lock);
	}
	mutex_unlock(&a->mutex);
}

static int ks_connections_show(struct seq_file *m, void *unused)
{
	kdat_server_adapters(ks_server, ks_show_conns, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ks_connections);

void ks_stats_start(void)
{
	ks_debugfs = debugfs_create_dir("kdapl_svcrdma", NULL);
	debugfs_create_file("adapters", 0444, ks_debugfs, NULL, &ks_adapters_fops);
	debugfs_create_file("connections", 0444, ks_debugfs, NULL, &ks_connections_fops);
}

void ks_stats_stop(void)
{
	debugfs_remove(ks_debugfs);
}
