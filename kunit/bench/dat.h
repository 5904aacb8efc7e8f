/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A pair over kDAPL. */
#ifndef KDAPL_BENCH_DAT_H
#define KDAPL_BENCH_DAT_H

#include <dat/kdat.h>
#include "kdapl_bench.h"

/*
 * struct dat_side - one end of a connection
 * @evd: completions of both kinds on an upcall pair, of requests otherwise
 * @recv_evd: of receives; @evd on an upcall pair
 * @context: lmr_context of the buffers
 * @remote: the peer's receive buffer
 */
struct dat_side {
	struct bench_side side;
	DAT_EP_HANDLE ep;
	DAT_SRQ_HANDLE srq;
	DAT_EVD_HANDLE evd;
	DAT_EVD_HANDLE recv_evd;
	DAT_EVD_HANDLE conn_evd;
	DAT_LMR_CONTEXT context;
	DAT_VADDR base;
	DAT_RMR_TRIPLET remote;
};

struct dat_pair {
	struct bench_pair pair;
	struct dat_side side[2];
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE cr_evd;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	bool closing;
};

static inline struct dat_side *to_dat(struct bench_side *side)
{
	return container_of(side, struct dat_side, side);
}

extern const struct bench_ops bench_dat_ops;

void dat_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more);
int dat_errno(const char *call, DAT_RETURN ret);
void dat_close(struct bench_pair *pair);

#endif
