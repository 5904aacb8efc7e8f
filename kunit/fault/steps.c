// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_fault.ko: the n-th step of a storage module fails, see steps.h.
 *
 * kdf_doctor() renames undefined symbols of the module's file, and mounts what comes of it
 * over the file, so that whoever loads the module loads that. The kernel's loader then
 * resolves kdf_step_<name>() in place of <name>(). As failslab does, a call that fails does
 * nothing. Those of DAT return what they do for want of memory, which the suites of faults in
 * kdapl.ko show to leave nothing behind.
 */
#include <linux/atomic.h>
#include <linux/blk_types.h>
#include <linux/err.h>
#include <linux/instruction_pointer.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <dat/kdat.h>
#include "shell.h"
#include "steps.h"

#define MODULES		"/run/out/modules"
#define DOCTORED	"/tmp/kdapl-doctored"

#define NO_MEMORY	DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY)

/*
 * STEP(name, failed): a function and what it returns when it fails. Names differ between
 * kernels.
 */
#define STEPS								\
	STEP(__kmalloc, 0)						\
	STEP(__kmalloc_noprof, 0)					\
	STEP(kmalloc_trace, 0)						\
	STEP(__kmalloc_cache_noprof, 0)					\
	STEP(kmalloc_large, 0)						\
	STEP(__kmalloc_large_noprof, 0)					\
	STEP(kmem_cache_alloc, 0)					\
	STEP(kmem_cache_alloc_noprof, 0)				\
	STEP(kvmalloc_node, 0)						\
	STEP(__kvmalloc_node_noprof, 0)					\
	STEP(__vmalloc, 0)						\
	STEP(__vmalloc_noprof, 0)					\
	STEP(__alloc_pages, 0)						\
	STEP(__alloc_pages_noprof, 0)					\
	STEP(alloc_pages_node_noprof, 0)				\
	STEP(alloc_pages_exact, 0)					\
	STEP(alloc_pages_exact_noprof, 0)				\
	STEP(bitmap_zalloc, 0)						\
	STEP(kasprintf, 0)						\
	STEP(kmemdup, 0)						\
	STEP(kmemdup_noprof, 0)						\
	STEP(kstrdup, 0)						\
	STEP(kstrndup, 0)						\
	STEP(alloc_workqueue, 0)					\
	STEP(alloc_workqueue_noprof, 0)					\
	STEP(ida_alloc_range, -ENOMEM)					\
	/* The block layer, files, keys */				\
	STEP(blk_mq_alloc_tag_set, -ENOMEM)				\
	STEP(__blk_mq_alloc_disk, -ENOMEM)				\
	STEP(device_add_disk, -ENOMEM)					\
	STEP(blkdev_issue_discard, -ENOMEM)				\
	STEP(blkdev_issue_zeroout, -ENOMEM)				\
	STEP(filp_open, -ENOMEM)					\
	STEP(file_open_root, -ENOMEM)					\
	STEP(kern_path, -ENOMEM)					\
	STEP(kernel_read, -ENOMEM)					\
	STEP(kernel_write, -ENOMEM)					\
	STEP(vfs_fallocate, -ENOMEM)					\
	STEP(vfs_fsync, -ENOMEM)					\
	STEP(vfs_fsync_range, -ENOMEM)					\
	STEP(vfs_statfs, -ENOMEM)					\
	STEP(request_key_tag, -ENOMEM)					\
	STEP(crypto_alloc_shash, -ENOMEM)				\
	STEP(crypto_shash_setkey, -ENOMEM)				\
	STEP(crypto_shash_tfm_digest, -ENOMEM)				\
	/* sunrpc */							\
	STEP(xprt_alloc, 0)						\
	/* LIO */							\
	STEP(iscsit_allocate_cmd, 0)					\
	/* DAT: what is FALLIBLE or POSTS in calls.c */			\
	STEP(__dat_ia_openv, NO_MEMORY)					\
	STEP(dat_ia_query, NO_MEMORY)					\
	STEP(dat_pz_create, NO_MEMORY)					\
	STEP(__dat_evd_kcreate, NO_MEMORY)				\
	STEP(dat_lmr_kcreate, NO_MEMORY)				\
	STEP(dat_lmr_allocate, NO_MEMORY)				\
	STEP(dat_lmr_fmr, NO_MEMORY)					\
	STEP(dat_lmr_invalidate, NO_MEMORY)				\
	STEP(dat_srq_create, NO_MEMORY)					\
	STEP(dat_srq_resize, NO_MEMORY)					\
	STEP(dat_ep_create, NO_MEMORY)					\
	STEP(dat_ep_create_with_srq, NO_MEMORY)				\
	STEP(dat_ep_connect, NO_MEMORY)					\
	STEP(dat_psp_create, NO_MEMORY)					\
	STEP(dat_csp_create, NO_MEMORY)					\
	STEP(dat_cr_accept, NO_MEMORY)					\
	STEP(dat_ep_post_send, NO_MEMORY)				\
	STEP(dat_ep_post_send_with_invalidate, NO_MEMORY)		\
	STEP(dat_ep_post_rdma_read, NO_MEMORY)				\
	STEP(kdat_ep_post_requests, NO_MEMORY)				\
	STEP(kdat_sg_map, NO_MEMORY)					\
	STEP(kdat_pool_reserve, 0)					\
	STEP(kdat_portal_create, NO_MEMORY)				\
	STEP(kdat_notifier_create, NO_MEMORY)				\
	STEP(kdat_ia_find, NO_MEMORY)

/* ---- What fails ---------------------------------------------------------- */

/* A place in a module where a step has failed. */
struct site {
	unsigned long ip;
	char text[80];
	unsigned int failed;
};

static struct {
	atomic_t left;			/* until the one that fails; 0: none does */
	spinlock_t lock;		/* protects the rest */
	struct site sites[256];
	unsigned int nsites;
} steps = { .lock = __SPIN_LOCK_UNLOCKED(steps.lock) };

/* Have the @nth step from now on fail. */
void kdf_fail_step(unsigned int nth)
{
	atomic_set(&steps.left, nth);
}
EXPORT_SYMBOL_GPL(kdf_fail_step);

/* Has the step failed, or is none to? */
bool kdf_step_has_failed(void)
{
	return !atomic_read(&steps.left);
}
EXPORT_SYMBOL_GPL(kdf_step_has_failed);

/* Have none fail any more. Return how many more it would have taken; 0: one has failed. */
unsigned int kdf_steps_left(void)
{
	return atomic_xchg(&steps.left, 0);
}
EXPORT_SYMBOL_GPL(kdf_steps_left);

static void note_site(const char *name, unsigned long ip)
{
	struct site *site;
	unsigned long flags;

	spin_lock_irqsave(&steps.lock, flags);
	for (site = steps.sites; site < steps.sites + steps.nsites; site++)
		if (site->ip == ip)
			break;
	if (site == steps.sites + steps.nsites && steps.nsites < ARRAY_SIZE(steps.sites)) {
		site->ip = ip;
		site->failed = 0;
		snprintf(site->text, sizeof(site->text), "%s in %ps", name, (void *)ip);
		steps.nsites++;
	}
	if (site < steps.sites + ARRAY_SIZE(steps.sites))
		site->failed++;
	spin_unlock_irqrestore(&steps.lock, flags);
}

static bool step_fails(const char *name, unsigned long ip)
{
	if (atomic_dec_if_positive(&steps.left))
		return false;
	note_site(name, ip);
	return true;
}

/* Tell which steps have failed since this was called last, each place with how often. */
void kdf_show_steps(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < steps.nsites; i++)
		kunit_info(test, "%s: %u", steps.sites[i].text, steps.sites[i].failed);
	steps.nsites = 0;
}
EXPORT_SYMBOL_GPL(kdf_show_steps);

/*
 * Arguments are passed on as they are, six in registers and ten words of the stack, whether the
 * function takes so many or not. A function that this kernel does not have is 0.
 */
#define PARAMS	unsigned long a, unsigned long b, unsigned long c, unsigned long d,	\
		unsigned long e, unsigned long f, unsigned long g, unsigned long h,	\
		unsigned long i, unsigned long j, unsigned long k, unsigned long l,	\
		unsigned long m, unsigned long n, unsigned long o, unsigned long p

#define STEP(name, failed)						\
unsigned long kdf_real_##name(PARAMS) __asm__(#name) __weak;		\
unsigned long kdf_step_##name(PARAMS);					\
									\
unsigned long kdf_step_##name(PARAMS)					\
{									\
	if (step_fails(#name, _RET_IP_))				\
		return (unsigned long)(failed);				\
	return kdf_real_##name(a, b, c, d, e, f, g, h, i, j, k, l, m,	\
			       n, o, p);				\
}									\
EXPORT_SYMBOL_GPL(kdf_step_##name);

STEPS

#undef STEP

/* ---- The module ---------------------------------------------------------- */

#define STEP(name, failed)	#name " "

/* Have whoever loads @module load one whose steps can fail. Return a wait status or -errno. */
int kdf_doctor(const char *module)
{
	static char command[4096];

	snprintf(command, sizeof(command),
		 "set -e; cd " MODULES "; for s in " STEPS ";"
		 " do echo $s kdf_step_$s; done >" DOCTORED ".names;"
		 " objcopy --redefine-syms=" DOCTORED ".names %s.ko " DOCTORED "-%s.ko;"
		 " mount --bind " DOCTORED "-%s.ko " MODULES "/%s.ko",
		 module, module, module, module);
	return shell(command);
}
EXPORT_SYMBOL_GPL(kdf_doctor);

void kdf_undoctor(const char *module)
{
	char command[160];

	snprintf(command, sizeof(command),
		 "umount " MODULES "/%s.ko && rm " DOCTORED "-%s.ko", module, module);
	WARN_ON(shell(command));
}
EXPORT_SYMBOL_GPL(kdf_undoctor);
