/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An end over kDAPL. */
#ifndef KDAPL_TEST_DAT_H
#define KDAPL_TEST_DAT_H

#include <linux/sched.h>
#include <dat/kdat.h>
#include "side.h"

/*
 * struct dat_side - one end of a connection
 * @ia: set by the owner, as @pz, @srq and @conn_evd are
 * @srq: what it receives from, or NULL
 * @segments: of a Send or RDMA Write; 0 means 1
 * @idle: further Endpoints that complete on its EVDs, each with a depth of 1
 * @upcall: called in process context, in place of side.done; may be NULL
 * @evd: completions of both kinds if side.upcall, of requests otherwise
 * @recv_evd: of receives; @evd if side.upcall
 * @context: lmr_context of the buffers
 * @exposed: the receive buffer as the peer may use it, if there is @exposed_lmr
 * @remote: the peer's receive buffer
 */
struct dat_side {
	struct bench_side side;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_SRQ_HANDLE srq;
	DAT_EVD_HANDLE conn_evd;
	DAT_COUNT segments;
	DAT_COUNT idle;
	DAT_UPCALL_FUNC upcall;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE evd;
	DAT_EVD_HANDLE recv_evd;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_VADDR base;
	DAT_LMR_HANDLE exposed_lmr;
	DAT_RMR_TRIPLET exposed;
	DAT_RMR_TRIPLET remote;
	bool kept;		/* a device may still reach the buffer */
};

static inline struct dat_side *to_dat(struct bench_side *side)
{
	return container_of(side, struct dat_side, side);
}

extern const struct bench_ops bench_dat_ops;

void dat_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more);
int dat_errno(const char *call, DAT_RETURN ret);
int dat_side_make(struct dat_side *dat);
int dat_side_ep(struct dat_side *dat, DAT_COUNT depth, DAT_EP_HANDLE *ep);
int dat_side_expose(struct dat_side *dat);
int dat_side_srq(struct dat_side *dat, u32 buffers, DAT_SRQ_HANDLE *srq);
void dat_side_end(struct dat_side *dat);
void dat_side_free(struct dat_side *dat);

#endif
