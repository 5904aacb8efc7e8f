// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inspection: /sys/kernel/debug/kdapl_isert has a file with a line for each adapter,
 * and one with a line for each connection. Their format may change at any time.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include "isert.h"

static const char * const ki_stat_names[KI_STATS] = {
	[KI_STAT_REQUESTS] = "requests",
	[KI_STAT_REFUSED] = "refused",
	[KI_STAT_LOGINS] = "logins",
	[KI_STAT_LOW] = "low",
	[KI_STAT_SOFT] = "soft",
	[KI_STAT_HARD] = "hard",
	[KI_STAT_BROKEN] = "broken",
	[KI_STAT_PINGS] = "pings",
};

static struct dentry *ki_debugfs;

static void ki_show_adapter(KDAT_ADAPTER *adapter, DAT_PVOID data)
{
	struct ki_adapter *a = container_of(adapter, struct ki_adapter, base);
	struct seq_file *m = data;
	KDAT_POOL_PARAM param;
	unsigned int i;

	kdat_pool_query(a->base.pool, &param);
	seq_printf(m, "%s connections=%d buffers=%d bytes=%llu available=%d low-mark=%d reserved=%d%s",
		   a->base.name, atomic_read(&a->conns), param.buffers, param.bytes,
		   param.available, param.low_watermark, param.reserved,
		   READ_ONCE(a->base.gone) ? " gone" : "");
	for (i = 0; i < KI_STATS; i++)
		seq_printf(m, " %s=%ld", ki_stat_names[i],
			   atomic_long_read(&a->stats[i]));
	seq_putc(m, '\n');
}

static int ki_adapters_show(struct seq_file *m, void *unused)
{
	kdat_server_adapters(ki_server, ki_show_adapter, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ki_adapters);

/* Return how many answers and RDMA Reads wait for room or for memory. */
static unsigned int ki_waiting(struct ki_conn *c)
{
	struct list_head *at;
	unsigned int n = 0;

	spin_lock_bh(&c->lock);
	list_for_each(at, &c->waiting)
		n++;
	list_for_each(at, &c->starved)
		n++;
	spin_unlock_bh(&c->lock);
	return n;
}

static void ki_show_sessions(KDAT_ADAPTER *adapter, DAT_PVOID data)
{
	struct ki_adapter *a = container_of(adapter, struct ki_adapter, base);
	struct seq_file *m = data;
	DAT_COUNT held;
	struct ki_conn *c;

	mutex_lock(&a->cm_mutex);
	list_for_each_entry(c, &a->conn_list, adapter_link) {
		held = 0;
		dat_ep_recv_query(c->ep, &held, NULL);
		seq_printf(m, "%u %s %s %s state=%s window=%u withheld=%u unread=%d hard-mark=%u posted=%d waiting=%u beyond=%u\n",
			   c->id, a->base.name, c->peer, c->iqn ?: "-",
			   READ_ONCE(c->down) ? "down" : c->iqn ? "up" : "login",
			   c->window, READ_ONCE(c->withheld), held, c->hard,
			   atomic_read(&c->posted), ki_waiting(c), READ_ONCE(c->beyond));
	}
	mutex_unlock(&a->cm_mutex);
}

static int ki_sessions_show(struct seq_file *m, void *unused)
{
	kdat_server_adapters(ki_server, ki_show_sessions, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ki_sessions);

void ki_stats_start(void)
{
	ki_debugfs = debugfs_create_dir("kdapl_isert", NULL);
	debugfs_create_file("adapters", 0444, ki_debugfs, NULL, &ki_adapters_fops);
	debugfs_create_file("sessions", 0444, ki_debugfs, NULL, &ki_sessions_fops);
}

void ki_stats_stop(void)
{
	debugfs_remove(ki_debugfs);
}
