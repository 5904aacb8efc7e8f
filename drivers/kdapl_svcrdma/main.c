// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_svcrdma.ko: registration with sunrpc, as the transport "kdapl" and, if nobody else has
 * the name, as "rdma", the only one that nfs-utils know for RDMA.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sunrpc/svc.h>
#include "svcrdma.h"

struct workqueue_struct *ks_wq;
struct kmem_cache *ks_calls;
KDAT_SERVER_HANDLE ks_server;

static void ks_kill_temp_xprt(struct svc_xprt *xprt)
{
}

#ifdef KDAPL_HAVE_XPO_SECURE_PORT
/* There are no low ports. */
static void ks_secure_port(struct svc_rqst *rqstp)
{
	set_bit(RQ_SECURE, &rqstp->rq_flags);
}

# define KS_SECURE_PORT	.xpo_secure_port = ks_secure_port,
#else
# define KS_SECURE_PORT
#endif

#define KS_OPS(create)						\
	KS_SECURE_PORT						\
	.xpo_create = (create),					\
	.xpo_accept = ks_accept,				\
	.xpo_has_wspace = ks_has_wspace,			\
	.xpo_recvfrom = ks_recvfrom,				\
	.xpo_sendto = ks_sendto,				\
	.xpo_result_payload = ks_result_payload,		\
	.xpo_release_ctxt = ks_release_ctxt,			\
	.xpo_detach = ks_detach,				\
	.xpo_free = ks_free,					\
	.xpo_kill_temp_xprt = ks_kill_temp_xprt

static const struct svc_xprt_ops ks_ops_kdapl = { KS_OPS(ks_create_kdapl) };
static const struct svc_xprt_ops ks_ops_rdma = { KS_OPS(ks_create_rdma) };

struct svc_xprt_class ks_class_kdapl = {
	.xcl_name = "kdapl",
	.xcl_owner = THIS_MODULE,
	.xcl_ops = &ks_ops_kdapl,
	.xcl_max_payload = RPCSVC_MAXPAYLOAD,
	.xcl_ident = KS_IDENT,
};

struct svc_xprt_class ks_class_rdma = {
	.xcl_name = "rdma",
	.xcl_owner = THIS_MODULE,
	.xcl_ops = &ks_ops_rdma,
	.xcl_max_payload = RPCSVC_MAXPAYLOAD,
	.xcl_ident = KS_IDENT,
};

static bool ks_has_rdma;

static int ks_register(void)
{
	int err = svc_reg_xprt_class(&ks_class_kdapl);

	if (err)
		return err;
	ks_has_rdma = !svc_reg_xprt_class(&ks_class_rdma);
	if (!ks_has_rdma)
		pr_info("another module serves \"rdma\"; \"kdapl\" is this one's name in portlist\n");
	return 0;
}

static int __init ks_init(void)
{
	int err = -ENOMEM;

	ks_calls = kmem_cache_create("kdapl_svcrdma_call", sizeof(struct ks_call), 0, 0, NULL);
	if (!ks_calls)
		return -ENOMEM;
	ks_wq = alloc_workqueue("kdapl_svcrdma", WQ_UNBOUND, 0);
	if (!ks_wq)
		goto no_wq;
	if (kdat_server_create(&ks_server_attr, &ks_server) != DAT_SUCCESS)
		goto no_server;
	err = ks_bc_start();
	if (err)
		goto no_bc;
	ks_stats_start();
	err = ks_register();
	if (!err)
		return 0;
	ks_stats_stop();
	ks_bc_stop();
no_bc:
	kdat_server_free(ks_server);
no_server:
	destroy_workqueue(ks_wq);
no_wq:
	kmem_cache_destroy(ks_calls);
	return err;
}

static void __exit ks_exit(void)
{
	if (ks_has_rdma)
		svc_unreg_xprt_class(&ks_class_rdma);
	svc_unreg_xprt_class(&ks_class_kdapl);
	ks_bc_stop();
	/* Connections that nobody refers to any more may be about to be freed. */
	flush_workqueue(ks_wq);
	ks_stats_stop();
	kdat_server_free(ks_server);
	destroy_workqueue(ks_wq);
	kmem_cache_destroy(ks_calls);
}

module_init(ks_init);
module_exit(ks_exit);

MODULE_DESCRIPTION("RPC-over-RDMA transport of the NFS server over kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
#ifdef KDAPL_VERSION
MODULE_VERSION(KDAPL_VERSION);
#endif
MODULE_ALIAS("svckdapl");
