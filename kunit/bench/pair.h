/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Pairs over kDAPL and over raw verbs. */
#ifndef KDAPL_BENCH_PAIR_H
#define KDAPL_BENCH_PAIR_H

#include "../../drivers/kdapl_test/dat.h"
#include "../../drivers/kdapl_test/raw.h"
#include "kdapl_bench.h"

/* A connection of a pair: the Endpoint of each side. */
struct dat_ends {
	DAT_EP_HANDLE ep[2];
};

/*
 * struct dat_pair - a pair over kDAPL
 * @ends: the connections, the first one included
 * @evds: on which side 1 receives, @nevds of them
 */
struct dat_pair {
	struct bench_pair pair;
	struct dat_side side[2];
	struct dat_ends *ends;
	DAT_EVD_HANDLE evds[BENCH_EVDS];
	unsigned int nevds;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE cr_evd;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
};

/*
 * struct raw_pair - a pair over raw verbs
 * @ids: the ids of each side, the first one included; @nids of them
 * @cqs: on which side 1 receives, @ncqs of them
 * @depth: work requests that the next queue pair has room for
 */
struct raw_pair {
	struct bench_pair pair;
	struct raw_side side[2];
	struct rdma_cm_id **ids[2];
	unsigned int nids;
	struct ib_cq *cqs[BENCH_EVDS];
	unsigned int ncqs;
	struct rdma_cm_id *listener;
	struct ib_device *dev;
	struct ib_pd *pd;
	u32 depth;
	struct completion step;
	int status;
	int established;
};

#endif
