/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A pair over raw verbs. */
#ifndef KDAPL_BENCH_RAW_H
#define KDAPL_BENCH_RAW_H

#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include "kdapl_bench.h"

#define RAW_POLL_BATCH 16

/*
 * struct raw_side - one end of a connection
 * @cq: completions of both queues on an upcall pair, of sends otherwise
 * @recv_cq: of receives; @cq on an upcall pair
 */
struct raw_side {
	struct bench_side side;
	struct rdma_cm_id *id;
	struct ib_qp *qp;
	struct ib_srq *srq;
	struct ib_cq *cq;
	struct ib_cq *recv_cq;
	struct ib_cqe send_cqe;
	struct ib_cqe recv_cqe;
	struct ib_cqe reg_cqe;
	u64 dma;
	bool mapped;
	u64 remote_addr;
	u32 rkey;
	struct ib_wc wc[RAW_POLL_BATCH];
};

struct raw_pair {
	struct bench_pair pair;
	struct raw_side side[2];
	struct rdma_cm_id *listener;
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_mr *mr;
	struct scatterlist sg;
	bool sg_mapped;
	struct completion step;
	int status;
	int established;
	bool closing;
};

static inline struct raw_side *to_raw(struct bench_side *side)
{
	return container_of(side, struct raw_side, side);
}

extern const struct bench_ops bench_raw_ops;

void raw_send_done(struct ib_cq *cq, struct ib_wc *wc);
void raw_recv_done(struct ib_cq *cq, struct ib_wc *wc);
void raw_close(struct bench_pair *pair);

#endif
