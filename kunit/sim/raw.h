/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two QPs of one device, joined by hand, for cases about the simulated adapter
 * that need no kDAPL. Implemented in raw.c; all helpers assert.
 */
#ifndef KDAPL_SIM_RAW_H
#define KDAPL_SIM_RAW_H

#include <rdma/ib_verbs.h>
#include "fixture.h"
#include "kdapl_sim.h"

#define RAW_LEN		SZ_256K		/* of each side's memory */
#define RAW_DEPTH	16

/*
 * struct raw_side - a QP and what it uses
 * @calls: of the completion handler of @cq, @in_irq: in hard interrupt context
 * @events: of the QP and the SRQ, by type
 * @buf: mapped at @dma
 */
struct raw_side {
	struct raw *raw;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct ib_qp *qp;
	atomic_t calls;
	atomic_t in_irq;
	atomic_t events[32];
	void *buf;
	u64 dma;
};

/* struct raw - the case: @a sends to @b, or the other way round */
struct raw {
	struct kunit *test;
	struct ib_device *dev;
	struct ib_pd *pd;
	struct raw_side a;
	struct raw_side b;
};

struct raw_opts {
	bool srq;		/* b has one */
	u32 cqe;		/* of each CQ; default 64 */
	u8 rnr_retry;		/* default 7; 8 stands for 0 */
};

struct raw *raw_open(struct kunit *test, const struct raw_opts *opts);
void raw_destroy_qp(struct raw_side *side);
void raw_set(struct raw *raw, enum kdapl_sim_switch which, u32 value);
long raw_count(struct raw *raw, enum kdapl_sim_counter which);
int raw_post_recv(struct raw_side *side, u64 id, u32 off, u32 len);
int raw_post_send(struct raw_side *side, enum ib_wr_opcode opcode, int flags,
		  u64 id, u32 off, u32 len, u64 remote, u32 rkey);
struct ib_wc raw_expect(struct raw_side *side, u64 id, enum ib_wc_status status);
void raw_expect_none(struct raw_side *side);
void raw_wait_count(struct raw *raw, enum kdapl_sim_counter which, long n);
void raw_wait_event(struct raw_side *side, enum ib_event_type type, int n);
void raw_to_err(struct raw_side *side);

/* A region of the first @len bytes of @side's memory; registered with @access. */
struct ib_mr *raw_mr(struct raw_side *side, u32 len, int access);
int raw_reg(struct raw_side *side, struct ib_mr *mr, u64 id, int access);
void raw_mr_free(struct ib_mr *mr);

#endif /* KDAPL_SIM_RAW_H */
