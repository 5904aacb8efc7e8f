// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inspection: /sys/kernel/debug/kdapl has a file for each kind of object, with
 * one object a line. Handles are printed as in the tracepoints. Completions that nobody has
 * polled are not shown; the files do not poll. Their format may change at any time.
 *
 * A file is read by walking the handle table with one RCU read-side section per
 * object; the show functions take the lock that protects the members they print.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <dat/kdat_linux.h>
#include "ep.h"
#include "ia.h"
#include "show.h"
#include "srq.h"

static struct dentry *kdapl_debugfs;

/* Return the handle of @obj as a number; 0 for none. */
static u64 kdapl_id(struct kdapl_obj *obj)
{
	return obj ? obj->handle : 0;
}

static void kdapl_show_ia(struct seq_file *m, struct kdapl_obj *obj)
{
	struct kdapl_ia *ia = container_of(obj, struct kdapl_ia, obj);
	char name[IB_DEVICE_NAME_MAX];

	kdapl_hca_name(ia->hca, name);
	seq_printf(m, "%llx name=%s/%u consumer=%s objects=%d%s", obj->handle,
		   name, ia->port, ia->consumer, atomic_read(&ia->live),
		   READ_ONCE(ia->hca->gone) ? " device-gone" : "");
	if (ia->naddrs)
		seq_printf(m, " addr=%pIS", &ia->first_addr);
	seq_putc(m, '\n');
}

static void kdapl_show_evd(struct seq_file *m, struct kdapl_obj *obj)
{
	struct kdapl_evd *evd = container_of(obj, struct kdapl_evd, obj);
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	seq_printf(m, "%llx ia=%llx flags=%#x policy=%d events=%u qlen=%u%s completions=%d watchers=%u\n",
		   obj->handle, kdapl_id(&obj->ia->obj), evd->flags,
		   evd->policy, evd->count, evd->qlen,
		   evd->overflowed ? " overflowed" : "", evd->charged,
		   evd->watchers);
	spin_unlock_irqrestore(&evd->lock, flags);
}

static void kdapl_show_ep(struct seq_file *m, struct kdapl_obj *obj)
{
	struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	seq_printf(m, "%llx ia=%llx state=%s local=%pISpc remote=%pISpc srq=%llx",
		   obj->handle, kdapl_id(&obj->ia->obj),
		   kdat_ep_state_name(ep->state), &ep->local_addr,
		   &ep->remote_addr,
		   ep->srq ? kdapl_id(&ep->srq->obj) : 0);
	spin_unlock_irqrestore(&ep->lock, flags);
	seq_printf(m, " requests=%u receives=%u held=%u taken=%llu soft=%d%s hard=%d soft-crossed=%u hard-crossed=%u\n",
		   READ_ONCE(ep->sq.head) - READ_ONCE(ep->sq.tail),
		   READ_ONCE(ep->rq.head) - READ_ONCE(ep->rq.tail),
		   READ_ONCE(ep->held), READ_ONCE(ep->taken),
		   READ_ONCE(ep->soft),
		   READ_ONCE(ep->soft_armed) ? " (armed)" : "",
		   READ_ONCE(ep->hard), READ_ONCE(ep->soft_crossed),
		   READ_ONCE(ep->hard_crossed));
}

static void kdapl_show_srq(struct seq_file *m, struct kdapl_obj *obj)
{
	struct kdapl_srq *srq = container_of(obj, struct kdapl_srq, obj);
	unsigned long flags;

	spin_lock_irqsave(&srq->lock, flags);
	seq_printf(m, "%llx ia=%llx size=%d available=%d outstanding=%d device=%d/%d low=%d%s low-crossed=%llu taken=%llu recovered=%llu in-doubt=%d\n",
		   obj->handle, kdapl_id(&obj->ia->obj), srq->max,
		   kdapl_srq_available(srq), kdapl_srq_outstanding(srq), srq->hw_count,
		   srq->hw_max, srq->lw, srq->lw_armed ? " (armed)" : "",
		   srq->lw_crossed, srq->taken, srq->recovered, srq->doubt);
	spin_unlock_irqrestore(&srq->lock, flags);
}

static const struct kdapl_shown kdapl_debugfs_files[] = {
	{ "ias", DAT_HANDLE_TYPE_IA, kdapl_show_ia },
	{ "evds", DAT_HANDLE_TYPE_EVD, kdapl_show_evd },
	{ "eps", DAT_HANDLE_TYPE_EP, kdapl_show_ep },
	{ "srqs", DAT_HANDLE_TYPE_SRQ, kdapl_show_srq },
};

/*
 * A position in a file is an index of the handle table. The table may have
 * millions of entries, so the walk may sleep between two of them.
 */
static void *kdapl_shown_start(struct seq_file *m, loff_t *pos)
{
	/*
	 * Index 0 is not used. The IDA hands out the lowest free index, so no
	 * chunk follows one that was never allocated.
	 */
	if (!*pos)
		*pos = 1;
	if (*pos > KDAPL_INDEX_MASK ||
	    !READ_ONCE(kdapl_chunks[*pos / KDAPL_CHUNK]))
		return NULL;
	return pos;
}

static void *kdapl_shown_next(struct seq_file *m, void *unused, loff_t *pos)
{
	++*pos;
	cond_resched();
	return kdapl_shown_start(m, pos);
}

static void kdapl_shown_stop(struct seq_file *m, void *unused)
{
}

static int kdapl_shown_show(struct seq_file *m, void *v)
{
	const struct kdapl_shown *file = m->private;
	struct kdapl_obj *obj;

	rcu_read_lock();
	obj = kdapl_at(*(loff_t *)v);
	if (obj && kdapl_type(obj) == file->type)
		file->show(m, obj);
	rcu_read_unlock();
	return 0;
}

const struct seq_operations kdapl_shown_sops = {
	.start = kdapl_shown_start,
	.next = kdapl_shown_next,
	.stop = kdapl_shown_stop,
	.show = kdapl_shown_show,
};
DEFINE_SEQ_ATTRIBUTE(kdapl_shown);

/* Create the files. Errors are ignored, as usual with debugfs. */
void kdapl_debugfs_init(void)
{
	const struct kdapl_shown *file;
	int i;

	kdapl_debugfs = debugfs_create_dir(KBUILD_MODNAME, NULL);
	for (i = 0; i < ARRAY_SIZE(kdapl_debugfs_files); i++) {
		file = &kdapl_debugfs_files[i];
		debugfs_create_file(file->name, 0400, kdapl_debugfs,
				    (void *)file, &kdapl_shown_fops);
	}
}

void kdapl_debugfs_exit(void)
{
	debugfs_remove_recursive(kdapl_debugfs);
}
