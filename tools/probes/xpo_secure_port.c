// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Up to 6.2: sunrpc asks a transport of the NFS server whether the client's port is a low one. */
#include <linux/sunrpc/svc_xprt.h>

void probe(struct svc_xprt_ops *ops, void (*secure_port)(struct svc_rqst *rqstp))
{
	ops->xpo_secure_port = secure_port;
}
