/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An end over raw verbs. */
#ifndef KDAPL_TEST_RAW_H
#define KDAPL_TEST_RAW_H

#include <linux/completion.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include "side.h"

#define RAW_POLL_BATCH 16

/*
 * struct raw_side - one end of a connection
 * @dev: set by the owner, as @pd, @srq and @id are
 * @srq: what it receives from, or NULL
 * @cq: completions of both queues if side.upcall, of sends otherwise
 * @recv_cq: of receives; @cq if side.upcall
 * @mr: of the receive buffer as the peer may use it, or NULL
 * @exposed: completed when @mr is registered
 * @remote_addr: the peer's receive buffer
 */
struct raw_side {
	struct bench_side side;
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_srq *srq;
	struct rdma_cm_id *id;
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct ib_cq *recv_cq;
	struct ib_cqe send_cqe;
	struct ib_cqe recv_cqe;
	struct ib_cqe reg_cqe;
	u64 dma;
	bool mapped;
	struct ib_mr *mr;
	struct scatterlist sg;
	bool sg_mapped;
	struct completion exposed;
	int expose_err;
	u64 remote_addr;
	u32 rkey;
	struct ib_wc wc[RAW_POLL_BATCH];
};

static inline struct raw_side *to_raw(struct bench_side *side)
{
	return container_of(side, struct raw_side, side);
}

extern const struct bench_ops bench_raw_ops;

void raw_send_done(struct ib_cq *cq, struct ib_wc *wc);
void raw_recv_done(struct ib_cq *cq, struct ib_wc *wc);
int raw_side_make(struct raw_side *raw);
int raw_side_make_qp(struct raw_side *raw, u32 depth);
int raw_side_expose(struct raw_side *raw);
struct ib_srq *raw_side_srq(struct raw_side *raw, u32 buffers);
void raw_side_end(struct raw_side *raw);
void raw_side_free(struct raw_side *raw);

#endif
