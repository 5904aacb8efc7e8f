// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Statistics for programs: /proc/kdapl/kdapl_isert has a file with a line for each adapter, and
 * one with a line for each connection. They are an interface, of words "key=value" like the files
 * beside them: Documentation/ABI/testing/procfs-kdapl_isert.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include "isert.h"

static const char * const ki_stat_names[KI_STATS] = {
	[KI_STAT_REQUESTS] = "requests",
	[KI_STAT_REFUSED] = "refused",
	[KI_STAT_LOGINS] = "logins",
	[KI_STAT_LOW] = "low_crossed",
	[KI_STAT_SOFT] = "soft_crossed",
	[KI_STAT_HARD] = "exceeded",
	[KI_STAT_BROKEN] = "broken",
	[KI_STAT_PINGS] = "pings",
};

static struct proc_dir_entry *ki_proc;

static void ki_show_adapter(KDAT_ADAPTER *adapter, DAT_PVOID data)
{
	struct ki_adapter *a = container_of(adapter, struct ki_adapter, base);
	struct seq_file *m = data;
	KDAT_POOL_PARAM param;
	unsigned int i;

	kdat_pool_query(a->base.pool, &param);
	kdat_show_word(m, "adapter", a->base.name);
	seq_printf(m, " module=%s ia=%lx gone=%d connections=%d buffers=%d bytes=%llu available=%d low=%d reserved=%d",
		   KBUILD_MODNAME, (unsigned long)a->base.ia, !!READ_ONCE(a->base.gone),
		   atomic_read(&a->conns), param.buffers, param.bytes, param.available,
		   param.low_watermark, param.reserved);
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
		kdat_show_word(m, "adapter", a->base.name);
		seq_printf(m, " module=%s connection=%u remote=%s ", KBUILD_MODNAME, c->id,
			   c->peer);
		kdat_show_word(m, "initiator", c->iqn ?: "-");
		seq_printf(m, " state=%s window=%u withheld=%u unread=%d hard=%u posted=%d waiting=%u beyond=%u\n",
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

/* Create the files, in the directory of kdapl.ko. Without them everything else works. */
void ki_stats_start(void)
{
	ki_proc = proc_mkdir("kdapl/" KBUILD_MODNAME, NULL);
	if (!ki_proc)
		return;
	proc_create_single("adapters", 0400, ki_proc, ki_adapters_show);
	proc_create_single("sessions", 0400, ki_proc, ki_sessions_show);
}

void ki_stats_stop(void)
{
	proc_remove(ki_proc);
}
