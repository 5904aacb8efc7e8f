/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Pairs over kDAPL and over raw verbs. */
#ifndef KDAPL_BENCH_PAIR_H
#define KDAPL_BENCH_PAIR_H

#include "../../drivers/kdapl_test/dat.h"
#include "../../drivers/kdapl_test/raw.h"
#include "kdapl_bench.h"

struct dat_pair {
	struct bench_pair pair;
	struct dat_side side[2];
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE cr_evd;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
};

struct raw_pair {
	struct bench_pair pair;
	struct raw_side side[2];
	struct rdma_cm_id *listener;
	struct ib_device *dev;
	struct ib_pd *pd;
	struct completion step;
	int status;
	int established;
};

#endif
