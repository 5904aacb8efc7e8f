// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Since 6.19: a thread of the NFS server has one array of pages for calls, one for replies. */
#include <linux/sunrpc/svc.h>

struct page **probe(struct svc_rqst *rqstp)
{
	rqstp->rq_pages_nfree = 0;
	return rqstp->rq_respages + rqstp->rq_maxpages;
}
