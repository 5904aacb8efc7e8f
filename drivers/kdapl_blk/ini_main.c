// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko: /dev/kdapl0, a disk that is the volume of a kdapl_blk_tgt.ko on
 * another host. Read-only.
 *
 *   insmod kdapl_blk.ko ia=mlx5_0/1 addr=192.168.1.2 port=5100
 *
 * Loading connects and makes the disk, unloading removes it. If the connection
 * is lost in between, the disk stays and all its requests fail.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/seq_file.h>
#include <net/net_namespace.h>
#include "ini.h"

#define KBI_ASYNC_QLEN		16
#define KBI_MAX_TRANSFER	(128 * 1024)

static char *ia;
module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "Interface Adapter to use, as in rxe0/1");

static char *addr;
module_param(addr, charp, 0444);
MODULE_PARM_DESC(addr, "IPv4 or IPv6 address of the target");

static ushort port = 5100;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier the target listens on (5100)");

unsigned int kbi_depth = 32;
module_param_named(depth, kbi_depth, uint, 0444);
MODULE_PARM_DESC(depth, "requests outstanding, 1-1024, if the target agrees (32)");

unsigned int kbi_timeout = 30;
module_param_named(timeout, kbi_timeout, uint, 0444);
MODULE_PARM_DESC(timeout, "seconds the target may take for a request, 1-3600 (30)");

struct workqueue_struct *kbi_wq;
static struct kbi_disk kbi_disk;
static struct dentry *kbi_debugfs;

/* ---- Statistics ---------------------------------------------------------- */

static const char * const kbi_stat_names[KBI_STATS] = {
	[KBI_STAT_REQUESTS] = "requests sent",
	[KBI_STAT_REPLIES] = "replies",
	[KBI_STAT_READ_BYTES] = "bytes read",
	[KBI_STAT_ERRORS] = "requests failed",
	[KBI_STAT_TIMEOUTS] = "requests timed out",
	[KBI_STAT_NO_CREDIT] = "waits for credit",
};

static const char * const kbi_state_names[] = {
	[KBI_CONNECTING] = "connecting",
	[KBI_LIVE] = "connected",
	[KBI_DEAD] = "disconnected",
};

static int kbi_stats_show(struct seq_file *m, void *v)
{
	struct kbi_queue *queue = &kbi_disk.queue;
	int i;

	seq_printf(m, "%-30s %s\n", "state",
		   kbi_state_names[atomic_read(&queue->state)]);
	seq_printf(m, "%-30s %u\n", "credits at first",
		   le16_to_cpu(queue->welcome.credits));
	for (i = 0; i < KBI_STATS; i++)
		seq_printf(m, "%-30s %lld\n", kbi_stat_names[i],
			   atomic64_read(&kbi_disk.stats[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(kbi_stats);

/* ---- The adapter --------------------------------------------------------- */

static void kbi_async_upcall(DAT_PVOID data, const DAT_EVENT *event,
			     DAT_BOOLEAN more)
{
	struct kbi_disk *disk = data;

	if (event->event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		kbi_queue_down(&disk->queue, "the adapter is gone");
	else
		pr_warn_ratelimited("asynchronous event %#x\n",
				    event->event_number);
}

static int kbi_ia_open(struct kbi_disk *disk)
{
	DAT_PROVIDER_ATTR provider;
	DAT_RETURN ret;

	ret = dat_ia_open(ia, KBI_ASYNC_QLEN, &disk->async_evd, &disk->ia);
	if (ret != DAT_SUCCESS) {
		pr_err("cannot open %s: %s\n", ia, kblk_strerror(ret));
		return kblk_errno(ret);
	}
	ret = dat_ia_query(disk->ia, NULL, DAT_IA_FIELD_NONE, NULL,
			   DAT_PROVIDER_FIELD_LMR_SYNC_REQ, &provider);
	if (ret == DAT_SUCCESS)
		ret = dat_pz_create(disk->ia, &disk->pz);
	if (ret != DAT_SUCCESS)
		dat_ia_close(disk->ia, DAT_CLOSE_ABRUPT_FLAG);
	else
		disk->sync = provider.lmr_sync_req == DAT_TRUE;
	return kblk_errno(ret);
}

static void kbi_ia_close(struct kbi_disk *disk)
{
	dat_pz_free(disk->pz);
	if (dat_ia_close(disk->ia, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS)
		return;
	pr_warn("objects are left in %s\n", ia);
	dat_ia_close(disk->ia, DAT_CLOSE_ABRUPT_FLAG);
}

/* ---- Start and stop ------------------------------------------------------ */

static int kbi_connect(struct kbi_disk *disk, struct sockaddr *target)
{
	DAT_UPCALL_OBJECT async = { disk, kbi_async_upcall };
	struct kbi_queue *queue = &disk->queue;
	int err;

	err = kbi_queue_start(queue, disk, target, port);
	if (err)
		return err;
	disk->max_transfer = min_t(u32, KBI_MAX_TRANSFER,
				   le32_to_cpu(queue->welcome.max_transfer));
	disk->max_transfer = round_down(disk->max_transfer, PAGE_SIZE);
	err = kbi_io_alloc_data(queue);
	if (!err)
		err = kbi_io_identify(queue);
	if (!err)
		err = kblk_errno(dat_evd_modify_upcall(disk->async_evd,
						       DAT_UPCALL_SINGLE_INSTANCE,
						       &async,
						       DAT_UPCALL_INVOC_ANY));
	return err;
}

static int kbi_start(struct kbi_disk *disk)
{
	struct sockaddr_storage target;
	int err;

	err = inet_pton_with_scope(&init_net, AF_UNSPEC, addr, NULL, &target);
	if (err) {
		pr_err("%s is no address\n", addr);
		return err;
	}
	err = kbi_ia_open(disk);
	if (err)
		return err;
	err = kbi_connect(disk, (struct sockaddr *)&target);
	if (!err)
		err = kbi_disk_add(disk);
	if (!err)
		return 0;
	dat_evd_modify_upcall(disk->async_evd, DAT_UPCALL_TEARDOWN,
			      DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW);
	kbi_queue_stop(&disk->queue);
	kbi_ia_close(disk);
	return err;
}

static void kbi_stop(struct kbi_disk *disk)
{
	kbi_disk_remove(disk);
	dat_evd_modify_upcall(disk->async_evd, DAT_UPCALL_TEARDOWN,
			      DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW);
	kbi_queue_stop(&disk->queue);
	kbi_ia_close(disk);
}

static bool kbi_params_valid(void)
{
	return ia && addr && port && kbi_depth >= 1 && kbi_depth <= 1024 &&
	       kbi_timeout >= 1 && kbi_timeout <= 3600;
}

static int __init kbi_init(void)
{
	int err;

	if (!kbi_params_valid()) {
		pr_err("ia= and addr= are needed, all others within limits\n");
		return -EINVAL;
	}
	kbi_wq = alloc_workqueue("kdapl_blk", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!kbi_wq)
		return -ENOMEM;
	err = kbi_start(&kbi_disk);
	if (err) {
		destroy_workqueue(kbi_wq);
		return err;
	}
	kbi_debugfs = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("stats", 0444, kbi_debugfs, NULL, &kbi_stats_fops);
	pr_info("%s: %llu bytes on %s port %u, through %s\n",
		kbi_disk.gendisk->disk_name, kbi_disk.size, addr, port, ia);
	return 0;
}

static void __exit kbi_exit(void)
{
	debugfs_remove_recursive(kbi_debugfs);
	kbi_stop(&kbi_disk);
	destroy_workqueue(kbi_wq);
}

module_init(kbi_init);
module_exit(kbi_exit);
MODULE_DESCRIPTION("Disk of a block device target on kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
