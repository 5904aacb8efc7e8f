// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues, and the rings of receives in them and in QPs. */
#include <linux/mm.h>
#include <linux/slab.h>
#include "sim.h"

int sim_rq_init(struct sim_rq *rq, u32 size, u32 max_sge)
{
	spin_lock_init(&rq->lock);
	INIT_LIST_HEAD(&rq->waiters);
	rq->size = roundup_pow_of_two(max(size, 1U));
	rq->max_sge = max_sge;
	rq->stride = sizeof(struct sim_rwqe) + max_sge * sizeof(struct ib_sge);
	rq->ring = kvcalloc(rq->size, rq->stride, GFP_KERNEL);
	return rq->ring ? 0 : -ENOMEM;
}

int sim_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		   struct ib_udata *udata)
{
	struct sim_srq *srq = to_sim_srq(ibsrq);
	int err;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > SIM_MAX_SRQ_WR ||
	    init->attr.max_sge > SIM_MAX_SGE ||
	    init->attr.srq_limit > init->attr.max_wr)
		return -EINVAL;
	srq->dev = to_sim_dev(ibsrq->device);
	err = sim_rq_init(&srq->rq, init->attr.max_wr, init->attr.max_sge);
	if (err)
		return err;
	srq->rq.limit = init->attr.srq_limit;
	init->attr.max_wr = srq->rq.size;
	return 0;
}

/* What is in the ring stays in order. */
static int sim_srq_resize(struct sim_srq *srq, u32 max_wr)
{
	struct sim_rq *rq = &srq->rq;
	unsigned long flags;
	void *ring, *old;
	u32 size, i, n;

	if (sim_switch(srq->dev, no_srq_resize) || !max_wr ||
	    max_wr > SIM_MAX_SRQ_WR)
		return -EINVAL;
	size = roundup_pow_of_two(max_wr);
	ring = kvcalloc(size, rq->stride, GFP_KERNEL);
	if (!ring)
		return -ENOMEM;
	spin_lock_irqsave(&rq->lock, flags);
	n = rq->tail - rq->head;
	old = ring;
	if (n <= size && rq->limit <= size) {
		for (i = 0; i < n; i++)
			memcpy(ring + i * rq->stride,
			       sim_rwqe(rq, rq->head + i), rq->stride);
		old = rq->ring;
		rq->ring = ring;
		rq->size = size;
		rq->head = 0;
		rq->tail = n;
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	kvfree(old);
	return old == ring ? -EINVAL : 0;
}

int sim_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct sim_srq *srq = to_sim_srq(ibsrq);
	unsigned long flags;
	int err = 0;

	/* One at a time, as bnxt_re has it. */
	if (mask == IB_SRQ_MAX_WR)
		return sim_srq_resize(srq, attr->max_wr);
	if (mask != IB_SRQ_LIMIT)
		return -EINVAL;
	spin_lock_irqsave(&srq->rq.lock, flags);
	if (attr->srq_limit > srq->rq.size)
		err = -EINVAL;
	else
		srq->rq.limit = attr->srq_limit;
	spin_unlock_irqrestore(&srq->rq.lock, flags);
	return err;
}

int sim_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct sim_srq *srq = to_sim_srq(ibsrq);

	attr->max_wr = srq->rq.size;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = srq->rq.limit;
	return 0;
}

/* Receives that are left are forgotten, as by every driver. */
int sim_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct sim_srq *srq = to_sim_srq(ibsrq);

	sim_wake_waiters(&srq->rq);
	kvfree(srq->rq.ring);
	return 0;
}

void sim_srq_event(struct sim_srq *srq, enum ib_event_type type)
{
	struct ib_event event = {
		.device = srq->ib.device,
		.element.srq = &srq->ib,
		.event = type,
	};

	if (!srq->ib.event_handler)
		return;
	sim_count(srq->dev, limits);
	sim_deliver(srq->dev, &event, srq->ib.event_handler, srq->ib.srq_context);
}
