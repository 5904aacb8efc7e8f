// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The pages of nfsd's threads. All that is done to rq_pages and rq_respages is done here, since
 * kernels differ: up to 6.18 both are one array, in which the reply begins behind the call;
 * later each has its own.
 *
 * A thread fills what is missing in its arrays before it takes the next message, and releases
 * what is between rq_respages and rq_next_page behind each.
 */
#include <linux/mm.h>
#include <linux/sunrpc/svc.h>
#include "svcrdma.h"

/* Have nothing released: no reply has been begun. */
void ks_pages_none(struct svc_rqst *rqstp)
{
#ifndef KDAPL_HAVE_RQ_MAXPAGES
	rqstp->rq_respages = rqstp->rq_pages;
#endif
	rqstp->rq_next_page = rqstp->rq_respages;
}

/* Return how many pages a call may have. */
unsigned int ks_pages_most(struct svc_rqst *rqstp)
{
#ifdef KDAPL_HAVE_RQ_MAXPAGES
	return rqstp->rq_maxpages;
#else
	/* The reply needs one, and sunrpc looks at the one behind it. */
	return rqstp->rq_page_end - rqstp->rq_pages - 2;
#endif
}

/* Exchange the @n pages of a call for pages of the thread. The call may be handled then. */
void ks_pages_give(struct svc_rqst *rqstp, struct page **pages, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		swap(rqstp->rq_pages[i], pages[i]);
	rqstp->rq_arg.pages = rqstp->rq_pages;
#ifndef KDAPL_HAVE_RQ_MAXPAGES
	rqstp->rq_respages = &rqstp->rq_pages[n];
	rqstp->rq_next_page = rqstp->rq_respages;
#endif
}

/* Return how many pages the reply has. */
unsigned int ks_pages_used(struct svc_rqst *rqstp)
{
	return rqstp->rq_next_page - rqstp->rq_respages;
}

/* Take the pages of the reply, ks_pages_used(), away from the thread. */
void ks_pages_take(struct svc_rqst *rqstp, struct page **pages)
{
	unsigned int n = ks_pages_used(rqstp), i;

	for (i = 0; i < n; i++) {
		pages[i] = rqstp->rq_respages[i];
		rqstp->rq_respages[i] = NULL;
	}
#ifndef KDAPL_HAVE_RQ_MAXPAGES
	rqstp->rq_next_page = rqstp->rq_respages;
#endif
}

/*
 * Leave the first page of a reply that was copied to the thread, if there is no other: pages
 * behind it may be those of a file.
 */
void ks_pages_keep_head(struct svc_rqst *rqstp)
{
	if (ks_pages_used(rqstp) == 1)
		rqstp->rq_next_page = rqstp->rq_respages;
}

/* Is @page one of those of the reply? */
bool ks_pages_have(struct svc_rqst *rqstp, const struct page *page)
{
	struct page **p;

	for (p = rqstp->rq_respages; p < rqstp->rq_next_page; p++)
		if (*p == page)
			return true;
	return false;
}
