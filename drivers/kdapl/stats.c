// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Statistics for programs: /proc/kdapl has a file for each kind of object that has any,
 * with one object a line, and "ends" with the connections that have ended.
 *
 * Unlike the files of debugfs these are an interface: Documentation/ABI/testing/procfs-kdapl.
 * A line is words "key=value" in any order. A key keeps its meaning for ever; keys and
 * lines may be added.
 *
 * The files show what the objects count anyway. Reading them polls nothing.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <dat/kdat_linux.h>
#include "conn.h"
#include "ep.h"
#include "ia.h"
#include "show.h"
#include "srq.h"

static void kdapl_stats_user(struct seq_file *m, struct kdapl_ia *ia)
{
	char name[IB_DEVICE_NAME_MAX];

	kdapl_hca_name(ia->hca, name);
	kdapl_show_user(m, name, ia->port, ia->consumer);
}

static const char * const kdapl_count_words[KDAPL_COUNTS] = {
	[KDAPL_COUNT_REQUESTS] = "requests",
	[KDAPL_COUNT_TURNED_AWAY] = "turned_away",
	[KDAPL_COUNT_REJECTED] = "rejected",
	[KDAPL_COUNT_ESTABLISHED] = "established",
	[KDAPL_COUNT_LOW] = "low_crossed",
	[KDAPL_COUNT_SOFT] = "soft_crossed",
};

static void kdapl_stats_ia(struct seq_file *m, struct kdapl_obj *obj)
{
	struct kdapl_ia *ia = container_of(obj, struct kdapl_ia, obj);
	int i;

	seq_printf(m, "ia=%llx", obj->handle);
	kdapl_stats_user(m, ia);
	seq_printf(m, " since=%lld gone=%d", ia->since, READ_ONCE(ia->hca->gone));
	for (i = 0; i < KDAPL_COUNTS; i++)
		seq_printf(m, " %s=%ld", kdapl_count_words[i],
			   atomic_long_read(&ia->counts[i]));
	for (i = KDAPL_END_NONE + 1; i < KDAPL_NENDS; i++)
		seq_printf(m, " end_%s=%ld", kdapl_end_words[i],
			   atomic_long_read(&ia->ended[i]));
	seq_putc(m, '\n');
}

static void kdapl_stats_srq(struct seq_file *m, struct kdapl_obj *obj)
{
	struct kdapl_srq *srq = container_of(obj, struct kdapl_srq, obj);
	unsigned long flags;

	seq_printf(m, "srq=%llx ia=%llx", obj->handle, obj->ia->obj.handle);
	kdapl_stats_user(m, obj->ia);
	spin_lock_irqsave(&srq->lock, flags);
	seq_printf(m, " since=%lld size=%d available=%d outstanding=%d low=%d low_crossed=%llu taken=%llu recovered=%llu in_doubt=%d\n",
		   srq->since, srq->max, kdapl_srq_available(srq), kdapl_srq_outstanding(srq),
		   srq->lw, srq->lw_crossed, srq->taken, srq->recovered, srq->doubt);
	spin_unlock_irqrestore(&srq->lock, flags);
}

static void kdapl_stats_ep(struct seq_file *m, struct kdapl_obj *obj)
{
	struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);
	unsigned long flags;

	seq_printf(m, "ep=%llx ia=%llx", obj->handle, obj->ia->obj.handle);
	kdapl_stats_user(m, obj->ia);
	spin_lock_irqsave(&ep->lock, flags);
	seq_printf(m, " state=%s", kdat_ep_state_name(ep->state));
	kdapl_show_addr(m, "local", &ep->local_addr);
	kdapl_show_addr(m, "remote", &ep->remote_addr);
	seq_printf(m, " since=%lld srq=%llx", ep->since, ep->srq ? ep->srq->obj.handle : 0);
	spin_unlock_irqrestore(&ep->lock, flags);
	seq_printf(m, " requests=%u receives=%u held=%u taken=%llu soft=%d hard=%d soft_crossed=%u hard_crossed=%u\n",
		   READ_ONCE(ep->sq.head) - READ_ONCE(ep->sq.tail),
		   READ_ONCE(ep->rq.head) - READ_ONCE(ep->rq.tail),
		   READ_ONCE(ep->held), READ_ONCE(ep->taken), READ_ONCE(ep->soft),
		   READ_ONCE(ep->hard), READ_ONCE(ep->soft_crossed),
		   READ_ONCE(ep->hard_crossed));
}

static const struct kdapl_shown kdapl_stats_files[] = {
	{ "ias", DAT_HANDLE_TYPE_IA, kdapl_stats_ia },
	{ "srqs", DAT_HANDLE_TYPE_SRQ, kdapl_stats_srq },
	{ "eps", DAT_HANDLE_TYPE_EP, kdapl_stats_ep },
};

static int kdapl_stats_open(struct inode *inode, struct file *file)
{
	int err = seq_open(file, &kdapl_shown_sops);

	if (!err)
		((struct seq_file *)file->private_data)->private = pde_data(inode);
	return err;
}

static const struct proc_ops kdapl_stats_ops = {
	.proc_open = kdapl_stats_open,
	.proc_read_iter = seq_read_iter,
	.proc_lseek = seq_lseek,
	.proc_release = seq_release,
};

/* Create the files. Without them everything else works. */
void kdapl_stats_init(void)
{
	struct proc_dir_entry *dir = proc_mkdir(KBUILD_MODNAME, NULL);
	const struct kdapl_shown *file;
	int i;

	if (!dir)
		return;
	for (i = 0; i < ARRAY_SIZE(kdapl_stats_files); i++) {
		file = &kdapl_stats_files[i];
		proc_create_data(file->name, 0400, dir, &kdapl_stats_ops, (void *)file);
	}
	proc_create_single("ends", 0400, dir, kdapl_ends_show);
}

void kdapl_stats_exit(void)
{
	remove_proc_subtree(KBUILD_MODNAME, NULL);
}
