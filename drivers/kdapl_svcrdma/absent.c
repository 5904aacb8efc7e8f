// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_svcrdma.ko of a kernel whose sunrpc is not as tools/probes/svc_xprt_ops.c wants it: it
 * does not load. DKMS, which cannot know before it has built, has a module to install, and
 * kdapl.ko is not held up.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

static int __init ks_init(void)
{
	pr_err("transports of this kernel's sunrpc are not as this module knows them, so NFS goes on without it\n");
	return -EOPNOTSUPP;
}

module_init(ks_init);

MODULE_DESCRIPTION("RPC-over-RDMA transport over kDAPL, not for this kernel's sunrpc");
MODULE_LICENSE("Dual BSD/GPL");
#ifdef KDAPL_VERSION
MODULE_VERSION(KDAPL_VERSION);
#endif
