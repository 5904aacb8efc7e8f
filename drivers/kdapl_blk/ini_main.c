// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko: disks that are volumes of a kdapl_blk_tgt.ko on another host.
 *
 * Module load and unload, and kbi_wq. Disks are set up through configfs, see
 * ini_configfs.c, or with tools/kdapl-blk.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include "ini.h"

/* HMAC for the proofs of all disks */
struct kblk_hmac kbi_hmac;
struct workqueue_struct *kbi_wq;
/* For works that wait for works of kbi_wq, or for memory; or that link->mutex waits for */
struct workqueue_struct *kbi_end_wq;
/* Identifies this host to targets; random, so a new one after each load */
uuid_t kbi_host;

/* Set forget_fences: drop the sessions that keep the module loaded. */
static int kbi_forget_fences(const char *value, const struct kernel_param *param)
{
	bool forget;
	int err = kstrtobool(value, &forget);

	if (!err && forget)
		kbi_volumes_forget();
	return err;
}

static const struct kernel_param_ops kbi_forget_ops = {
	.set = kbi_forget_fences,
};
module_param_cb(forget_fences, &kbi_forget_ops, NULL, 0200);
MODULE_PARM_DESC(forget_fences, "write 1 to forget which former writes of disks that were removed may still reach their volumes");

static void kbi_destroy_workqueues(void)
{
	if (kbi_end_wq)
		destroy_workqueue(kbi_end_wq);
	if (kbi_wq)
		destroy_workqueue(kbi_wq);
}

static int __init kbi_init(void)
{
	int err;

	err = kblk_hmac_init(&kbi_hmac);
	if (err)
		return err;
	uuid_gen(&kbi_host);
	kbi_wq = alloc_workqueue("kdapl_blk", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	kbi_end_wq = alloc_workqueue("kdapl_blk_end", WQ_UNBOUND, 0);
	err = kbi_wq && kbi_end_wq ? kbi_configfs_register() : -ENOMEM;
	if (!err)
		return 0;
	kbi_destroy_workqueues();
	kblk_hmac_free(&kbi_hmac);
	return err;
}

/*
 * No disk exists: configfs holds a module reference for each, and kbi_end_work() another one
 * until it is done. No volume with writes to fence exists either, see kbi_volume_put().
 */
static void __exit kbi_exit(void)
{
	kbi_configfs_unregister();
	kbi_destroy_workqueues();
	kbi_volumes_free();
	kblk_hmac_free(&kbi_hmac);
}

module_init(kbi_init);
module_exit(kbi_exit);
MODULE_DESCRIPTION("Disks of a block device target on kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
#ifdef KDAPL_VERSION
MODULE_VERSION(KDAPL_VERSION);
#endif
