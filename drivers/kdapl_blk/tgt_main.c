// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: serves a block device or a file, read-only, to any number of
 * kdapl_blk.ko on other hosts.
 *
 *   insmod kdapl_blk_tgt.ko ia=mlx5_0/1 port=5100 path=/dev/sdb
 *
 * Loading starts the target, unloading ends it, clients or not. If the adapter
 * disappears, its clients are ended and their memory is released at once; what
 * is left waits for the module to be unloaded.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/seq_file.h>
#include "blk_compat.h"
#include "tgt.h"

#define KBT_ASYNC_QLEN	64
#define KBT_CM_QLEN	64
#define KBT_BLOCK_SIZE	512

static char *ia;
module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "Interface Adapter to listen on, as in rxe0/1");

static ushort port = 5100;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier to listen on (5100)");

static char *path;
module_param(path, charp, 0444);
MODULE_PARM_DESC(path, "block device or regular file to serve");

unsigned int kbt_credits = 32;
module_param_named(credits, kbt_credits, uint, 0444);
MODULE_PARM_DESC(credits, "requests a client may have outstanding, 1-1024 (32)");

unsigned int kbt_io_depth = 8;
module_param_named(io_depth, kbt_io_depth, uint, 0444);
MODULE_PARM_DESC(io_depth, "requests of a client served at a time, 1-128 (8)");

unsigned int kbt_max_clients = 16;
module_param_named(max_clients, kbt_max_clients, uint, 0444);
MODULE_PARM_DESC(max_clients, "clients that may be connected (16)");

unsigned int kbt_srq_size = 128;
module_param_named(srq_size, kbt_srq_size, uint, 0444);
MODULE_PARM_DESC(srq_size, "receive buffers for all clients, 8-8192; a quarter as many are kept in reserve (128)");

unsigned int kbt_srq_low;
module_param_named(srq_low, kbt_srq_low, uint, 0444);
MODULE_PARM_DESC(srq_low, "low watermark of the receive buffers (half of srq_size)");

static struct kbt kbt;
static struct dentry *kbt_debugfs;

/* ---- Statistics ---------------------------------------------------------- */

static const char * const kbt_stat_names[KBT_STATS] = {
	[KBT_STAT_CONNECTS] = "connections",
	[KBT_STAT_CONNECT_REFUSALS] = "connections refused",
	[KBT_STAT_DISCONNECTS] = "connections ended",
	[KBT_STAT_REQUESTS] = "requests",
	[KBT_STAT_READS] = "reads",
	[KBT_STAT_READ_BYTES] = "bytes read",
	[KBT_STAT_ERROR_REPLIES] = "error replies",
	[KBT_STAT_PROTOCOL_ERRORS] = "protocol errors",
	[KBT_STAT_DTO_ERRORS] = "failed transfers",
	[KBT_STAT_LOW_WATERMARK] = "SRQ low watermark events",
	[KBT_STAT_SOFT_WATERMARK] = "EP soft high watermark events",
	[KBT_STAT_BROKEN] = "connections broken",
};

static int kbt_stats_show(struct seq_file *m, void *v)
{
	DAT_SRQ_PARAM srq;
	int i;

	for (i = 0; i < KBT_STATS; i++)
		seq_printf(m, "%-30s %lld\n", kbt_stat_names[i],
			   atomic64_read(&kbt.stats[i]));
	if (dat_srq_query(kbt.srq, DAT_SRQ_FIELD_ALL, &srq) == DAT_SUCCESS)
		seq_printf(m, "%-30s %d max, %d available, %d outstanding\n",
			   "SRQ buffers", srq.max_recv_dtos,
			   srq.available_dto_count, srq.outstanding_dto_count);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(kbt_stats);

/* ---- The volume ---------------------------------------------------------- */

static int kbt_volume_open(struct kbt_volume *volume)
{
	struct inode *inode;
	struct file *file;

	file = filp_open(path, O_RDONLY | O_LARGEFILE, 0);
	if (IS_ERR(file)) {
		pr_err("cannot open %s: %ld\n", path, PTR_ERR(file));
		return PTR_ERR(file);
	}
	/* For a block device this is the device's inode, not the node's. */
	inode = file->f_mapping->host;
	volume->block_size = KBT_BLOCK_SIZE;
	if (S_ISBLK(inode->i_mode))
		volume->block_size =
			bdev_logical_block_size(I_BDEV(inode));
	volume->size = round_down((u64)i_size_read(inode),
				  volume->block_size);
	if ((!S_ISREG(inode->i_mode) && !S_ISBLK(inode->i_mode)) ||
	    !volume->size) {
		pr_err("%s is no block device, and no file with contents\n",
		       path);
		filp_close(file, NULL);
		return -EINVAL;
	}
	volume->file = file;
	return 0;
}

/* ---- The adapter --------------------------------------------------------- */

static void kbt_async_upcall(DAT_PVOID data, const DAT_EVENT *event,
			     DAT_BOOLEAN more)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *async =
		&event->event_data.asynch_error_event_data;
	struct kbt *kbt = data;

	switch (event->event_number) {
	case DAT_ASYNC_SRQ_LOW_WATERMARK:
		kbt_srq_ran_low(kbt);
		break;
	case DAT_ASYNC_EP_SOFT_HIGH_WATERMARK:
		kbt_conn_backlog(kbt, async->dat_handle);
		break;
	case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
		/* Every client gets an event of its own. */
		pr_err("%s is gone\n", ia);
		break;
	default:
		pr_warn_ratelimited("asynchronous event %#x\n",
				    event->event_number);
	}
}

static int kbt_ia_open(struct kbt *kbt)
{
	DAT_UPCALL_OBJECT cm = { kbt, kbt_cm_upcall };
	DAT_RETURN ret;

	ret = dat_ia_open(ia, KBT_ASYNC_QLEN, &kbt->async_evd, &kbt->ia);
	if (ret != DAT_SUCCESS) {
		pr_err("cannot open %s: %s\n", ia, kblk_strerror(ret));
		return kblk_errno(ret);
	}
	ret = dat_pz_create(kbt->ia, &kbt->pz);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(kbt->ia, KBT_CM_QLEN,
				      DAT_UPCALL_SINGLE_INSTANCE, &cm,
				      DAT_EVD_CR_FLAG |
				      DAT_EVD_CONNECTION_FLAG, &kbt->cm_evd);
	if (ret != DAT_SUCCESS)
		dat_ia_close(kbt->ia, DAT_CLOSE_ABRUPT_FLAG);
	return kblk_errno(ret);
}

/* Frees what kbt_ia_open() has made. */
static void kbt_ia_close(struct kbt *kbt)
{
	dat_evd_free(kbt->cm_evd);
	dat_pz_free(kbt->pz);
	if (dat_ia_close(kbt->ia, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS)
		return;
	pr_warn("objects are left in %s\n", ia);
	dat_ia_close(kbt->ia, DAT_CLOSE_ABRUPT_FLAG);
}

static int kbt_listen(struct kbt *kbt)
{
	DAT_RETURN ret;

	ret = dat_psp_create(kbt->ia, port, kbt->cm_evd,
			     DAT_PSP_CONSUMER_FLAG, &kbt->psp);
	if (ret != DAT_SUCCESS)
		pr_err("cannot listen on port %u: %s\n", port,
		       kblk_strerror(ret));
	return kblk_errno(ret);
}

/* ---- Start and stop ------------------------------------------------------ */

static int kbt_workqueues(struct kbt *kbt)
{
	kbt->wq = alloc_workqueue("kdapl_blk_tgt",
				  WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!kbt->wq)
		return -ENOMEM;
	kbt->end_wq = alloc_workqueue("kdapl_blk_tgt_end", WQ_UNBOUND, 0);
	if (kbt->end_wq)
		return 0;
	destroy_workqueue(kbt->wq);
	return -ENOMEM;
}

/* Waits for the last steps of clients that have ended. */
static void kbt_workqueues_free(struct kbt *kbt)
{
	destroy_workqueue(kbt->end_wq);
	destroy_workqueue(kbt->wq);
}

static int kbt_start(struct kbt *kbt)
{
	DAT_UPCALL_OBJECT async = { kbt, kbt_async_upcall };
	int err;

	mutex_init(&kbt->mutex);
	INIT_LIST_HEAD(&kbt->conns);
	init_waitqueue_head(&kbt->idle);
	err = kbt_workqueues(kbt);
	if (err)
		return err;
	err = kbt_volume_open(&kbt->volume);
	if (err)
		goto free_workqueues;
	err = kbt_ia_open(kbt);
	if (err)
		goto close_volume;
	err = kbt_srq_start(kbt);
	if (err)
		goto close_ia;
	/* Not before the SRQ is there, whose events it handles. */
	err = kblk_errno(dat_evd_modify_upcall(kbt->async_evd,
					       DAT_UPCALL_SINGLE_INSTANCE,
					       &async, DAT_UPCALL_INVOC_ANY));
	if (!err)
		err = kbt_listen(kbt);
	if (err)
		goto stop_srq;
	return 0;

stop_srq:
	dat_evd_modify_upcall(kbt->async_evd, DAT_UPCALL_TEARDOWN,
			      DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW);
	kbt_srq_stop(kbt);
close_ia:
	kbt_ia_close(kbt);
close_volume:
	filp_close(kbt->volume.file, NULL);
free_workqueues:
	kbt_workqueues_free(kbt);
	return err;
}

static void kbt_stop(struct kbt *kbt)
{
	dat_psp_free(kbt->psp);
	kbt_conn_end_all(kbt);
	dat_evd_modify_upcall(kbt->async_evd, DAT_UPCALL_TEARDOWN,
			      DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW);
	kbt_srq_stop(kbt);
	kbt_ia_close(kbt);
	filp_close(kbt->volume.file, NULL);
	kbt_workqueues_free(kbt);
}

static bool kbt_params_valid(void)
{
	if (!kbt_srq_low)
		kbt_srq_low = kbt_srq_size / 2;
	return ia && path && port &&
	       kbt_credits >= 1 && kbt_credits <= 1024 &&
	       kbt_io_depth >= 1 && kbt_io_depth <= 128 &&
	       kbt_srq_size >= 8 && kbt_srq_size <= 8192 &&
	       kbt_srq_low <= kbt_srq_size;
}

static int __init kbt_init(void)
{
	int err;

	if (!kbt_params_valid()) {
		pr_err("ia= and path= are needed, all others within limits\n");
		return -EINVAL;
	}
	err = kbt_start(&kbt);
	if (err)
		return err;
	kbt_debugfs = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("stats", 0444, kbt_debugfs, NULL, &kbt_stats_fops);
	pr_info("serving %s, %llu bytes, on %s port %u\n", path,
		kbt.volume.size, ia, port);
	return 0;
}

static void __exit kbt_exit(void)
{
	debugfs_remove_recursive(kbt_debugfs);
	kbt_stop(&kbt);
}

module_init(kbt_init);
module_exit(kbt_exit);
MODULE_DESCRIPTION("Block device target on kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
