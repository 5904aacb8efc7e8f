// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transports of the NFS server are as kdapl_svcrdma knows them: what a call has allocated is
 * released by itself, and the result of an operation is told when it is encoded.
 */
#include <linux/sunrpc/svc_xprt.h>

static void release_ctxt(struct svc_xprt *xprt, void *ctxt)
{
}

static int result_payload(struct svc_rqst *rqstp, unsigned int offset, unsigned int length)
{
	return 0;
}

void probe(struct svc_xprt_ops *ops, struct svc_xprt *xprt)
{
	void (**release)(struct svc_xprt *xprt, void *ctxt) = &ops->xpo_release_ctxt;
	int (**payload)(struct svc_rqst *rqstp, unsigned int offset, unsigned int length);

	payload = &ops->xpo_result_payload;
	*release = release_ctxt;
	*payload = result_payload;
	svc_xprt_deferred_close(xprt);
	(void)sizeof(char[1 - 2 * !__builtin_types_compatible_p(typeof(ops->xpo_release_ctxt),
								 typeof(*release))]);
}
