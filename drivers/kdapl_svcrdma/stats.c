// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Statistics for programs: /proc/kdapl/kdapl_svcrdma has a file with a line for each adapter, and
 * one with a line for each connection. They are an interface, of words "key=value" like the files
 * beside them: Documentation/ABI/testing/procfs-kdapl_svcrdma.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include "svcrdma.h"

static const char * const ks_stat_names[KS_STATS] = {
	[KS_STAT_REQUESTS] = "requests",
	[KS_STAT_REFUSED] = "refused",
	[KS_STAT_CALLS] = "calls",
	[KS_STAT_ERRORS] = "errors",
	[KS_STAT_SOFT] = "soft_crossed",
	[KS_STAT_BROKEN] = "broken",
};

static struct proc_dir_entry *ks_proc;

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
	kdat_show_word(m, "adapter", a->k.name);
	seq_printf(m, " module=%s ia=%lx gone=%d connections=%u buffers=%d bytes=%llu available=%d low=%d reserved=%d",
		   KBUILD_MODNAME, (unsigned long)a->k.ia, !!READ_ONCE(a->k.gone), conns,
		   param.buffers, param.bytes, param.available, param.low_watermark,
		   param.reserved);
	for (i = 0; i < KS_STATS; i++)
		seq_printf(m, " %s=%ld", ks_stat_names[i], atomic_long_read(&a->stats[i]));
	seq_putc(m, '\n');
}

static int ks_adapters_show(struct seq_file *m, void *unused)
{
	kdat_server_adapters(ks_server, ks_show_adapter, m);
	return 0;
}

static void ks_show_conns(KDAT_ADAPTER *adapter, DAT_PVOID data)
{
	struct ks_adapter *a = container_of(adapter, struct ks_adapter, k);
	struct seq_file *m = data;
	struct list_head *at;
	unsigned int waiting;
	struct ks_conn *c;
	const char *gid;

	mutex_lock(&a->mutex);
	list_for_each_entry(c, &a->conns, link) {
		waiting = 0;
		spin_lock_bh(&c->lock);
		list_for_each(at, &c->waiting)
			waiting++;
		kdat_show_word(m, "adapter", a->k.name);
		/* kDAPL names a host by its address, or "ADDRESS of GID". */
		gid = strstr(c->peer, " of ");
		seq_printf(m, " module=%s remote=%.*s gid=%s", KBUILD_MODNAME,
			   (int)strcspn(c->peer, " "), c->peer, gid ? gid + strlen(" of ") : "-");
		seq_printf(m, " state=%s window=%u asked=%u reserved=%u held=%u posted=%u waiting=%u fetching=%u\n",
			   c->down ? "down" : c->open ? "up" : "new", c->window, c->asked,
			   c->reserved, c->held, c->posted, waiting, c->fetching);
		spin_unlock_bh(&c->lock);
	}
	mutex_unlock(&a->mutex);
}

static int ks_connections_show(struct seq_file *m, void *unused)
{
	kdat_server_adapters(ks_server, ks_show_conns, m);
	return 0;
}

/* Create the files, in the directory of kdapl.ko. Without them everything else works. */
void ks_stats_start(void)
{
	ks_proc = proc_mkdir("kdapl/" KBUILD_MODNAME, NULL);
	if (!ks_proc)
		return;
	proc_create_single("adapters", 0400, ks_proc, ks_adapters_show);
	proc_create_single("connections", 0400, ks_proc, ks_connections_show);
}

void ks_stats_stop(void)
{
	proc_remove(ks_proc);
}
