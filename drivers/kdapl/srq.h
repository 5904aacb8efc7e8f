/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared Receive Queues: srq.c, srq_hw.c.
 */
#ifndef KDAPL_SRQ_H
#define KDAPL_SRQ_H

#include "kdapl.h"

/*
 * struct kdapl_srq - Shared Receive Queue
 *
 * Every buffer is in one place: @free, @held (posted, waiting for room in the
 * device), @hw (given to the device, in order), or at an EP.
 */
struct kdapl_srq {
	struct kdapl_obj obj;
	struct kdapl_pz *pz;
	struct mutex mutex;		/* resize, arming, the device's SRQ */
	int max_iov;

	spinlock_t lock;		/* protects all below */
	struct ib_srq *srq;
	int max;			/* what the consumer asked for */
	int slots;			/* buffers there is memory for */
	int available;			/* posted - taken */
	int outstanding;		/* posted - reaped */
	int hw_max;			/* what the device is given at most */
	int hw_count;			/* what it has, as far as is known */
	u64 next_seq;			/* of the next buffer given to it */
	u64 max_taken;			/* newest buffer ever completed */
	u64 suspect_below;		/* dead QPs may hold older buffers */
	bool stale;			/* rebuild before the next QP */
	struct list_head free;
	struct list_head held;
	struct list_head hw;
	struct list_head eps;		/* EPs with a QP on it */
	int lw;
	bool lw_armed;
	bool feeding;			/* the device has not got all yet */
	struct list_head feeds;		/* RCU; struct kdapl_srq_feed */
	u64 taken;			/* ever */
	u64 recovered;			/* lost by the device, put back */
	struct kdapl_async lw_event;
	struct work_struct arm_work;
	struct work_struct hint_work;
};

/* An EVD that receives completions of an SRQ's buffers. */
struct kdapl_srq_feed {
	struct list_head link;
	struct kdapl_evd *evd;
	int eps;
	enum kdapl_watch watched;
	bool dead;
	struct rcu_head rcu;
};

void kdapl_srq_took(struct kdapl_srq *srq, struct kdapl_ep *ep,
		    struct kdapl_wr *wr, struct kdapl_later *later);
void kdapl_srq_return(struct kdapl_srq *srq, struct kdapl_wr *wr, bool reaped);
int kdapl_srq_add_feed(struct kdapl_srq *srq, struct kdapl_evd *evd);
void kdapl_srq_del_feed(struct kdapl_srq *srq, struct kdapl_evd *evd);
void kdapl_srq_watch(struct kdapl_srq *srq);
void kdapl_srq_look(struct kdapl_srq *srq);
bool kdapl_srq_check_lw(struct kdapl_srq *srq);

int kdapl_srq_hw_create(struct kdapl_srq *srq);
void kdapl_srq_hw_destroy(struct kdapl_srq *srq);
bool kdapl_srq_hw_feed(struct kdapl_srq *srq);
void kdapl_srq_hw_grow(struct kdapl_srq *srq, int max);
void kdapl_srq_hw_arm(struct work_struct *work);
void kdapl_srq_hw_hint(struct work_struct *work);
void kdapl_srq_reconcile(struct kdapl_srq *srq);
int kdapl_srq_attach(struct kdapl_srq *srq, struct kdapl_ep *ep);
void kdapl_srq_detach(struct kdapl_srq *srq, struct kdapl_ep *ep);
void kdapl_srq_device_event(struct kdapl_ia *ia, struct ib_srq *srq);

#endif
