// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: rings of work completions as ib_poll_cq() returns them.
 *
 * A completion without room is lost; the CQ raises IB_EVENT_CQ_ERR once and
 * accepts nothing more.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <compat_probe.h>
#include "sim.h"

static struct ib_wc *sim_cqe(struct sim_cq *cq, u32 i)
{
	return &cq->ring[i & (cq->size - 1)];
}

int sim_cq_alloc(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr)
{
	struct sim_cq *cq = to_sim_cq(ibcq);

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > SIM_MAX_CQE)
		return -EINVAL;
	cq->dev = to_sim_dev(ibcq->device);
	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->notify);
	cq->size = roundup_pow_of_two(attr->cqe);
	cq->ring = kvcalloc(cq->size, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	ibcq->cqe = cq->size;
	return 0;
}

int sim_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct sim_cq *cq = to_sim_cq(ibcq);

	sim_unnotify(cq);
	kvfree(cq->ring);
	return 0;
}

#ifdef KDAPL_HAVE_RESIZE_CQ
int sim_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct sim_cq *cq = to_sim_cq(ibcq);
	struct ib_wc *ring, *old;
	unsigned long flags;
	u32 size, i, n;

	if (sim_switch(cq->dev, no_cq_resize))
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > SIM_MAX_CQE)
		return -EINVAL;
	size = roundup_pow_of_two(cqe);
	ring = kvcalloc(size, sizeof(*ring), GFP_KERNEL);
	if (!ring)
		return -ENOMEM;
	spin_lock_irqsave(&cq->lock, flags);
	n = cq->tail - cq->head;
	old = ring;
	if (n <= size) {
		for (i = 0; i < n; i++)
			ring[i] = *sim_cqe(cq, cq->head + i);
		old = cq->ring;
		cq->ring = ring;
		cq->size = size;
		cq->head = 0;
		cq->tail = n;
		ibcq->cqe = size;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	kvfree(old);
	return old == ring ? -EINVAL : 0;
}
#endif

int sim_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct sim_cq *cq = to_sim_cq(ibcq);
	unsigned long flags;
	int i;

	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < n && cq->head != cq->tail; i++)
		wc[i] = *sim_cqe(cq, cq->head++);
	spin_unlock_irqrestore(&cq->lock, flags);
	return i;
}

int sim_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct sim_cq *cq = to_sim_cq(ibcq);
	unsigned long irq;
	int missed = 0;

	spin_lock_irqsave(&cq->lock, irq);
	/* Who wants all is not to be told of some only. */
	if (cq->armed != IB_CQ_NEXT_COMP)
		cq->armed = flags & IB_CQ_SOLICITED_MASK;
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		missed = cq->head != cq->tail;
	spin_unlock_irqrestore(&cq->lock, irq);
	return missed;
}

static void sim_cq_overflown(struct sim_cq *cq)
{
	struct ib_event event = {
		.device = cq->ib.device,
		.element.cq = &cq->ib,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
}

/* Add a completion; the CQ's QP is in use. Context: any, without locks. */
void sim_cq_add(struct sim_cq *cq, const struct ib_wc *wc, bool solicited)
{
	bool forced = sim_times(cq->dev, cq_overflow);
	bool was_overflown, notify = false;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	was_overflown = cq->overflown;
	if (forced || cq->tail - cq->head == cq->size)
		cq->overflown = true;
	if (!cq->overflown) {
		*sim_cqe(cq, cq->tail++) = *wc;
		notify = cq->armed == IB_CQ_NEXT_COMP ||
			 (cq->armed && (solicited ||
					wc->status != IB_WC_SUCCESS));
		if (notify)
			cq->armed = 0;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	if (cq->overflown)
		sim_count(cq->dev, cqes_dropped);
	if (cq->overflown && !was_overflown)
		sim_cq_overflown(cq);
	if (notify)
		sim_notify(cq);
}

/* Remove all completions of @qp. */
void sim_cq_drop(struct sim_cq *cq, struct sim_qp *qp)
{
	unsigned long flags;
	u32 from, to;

	spin_lock_irqsave(&cq->lock, flags);
	for (from = to = cq->head; from != cq->tail; from++)
		if (sim_cqe(cq, from)->qp == &qp->ib)
			sim_count(cq->dev, cqes_dropped);
		else
			*sim_cqe(cq, to++) = *sim_cqe(cq, from);
	cq->tail = to;
	spin_unlock_irqrestore(&cq->lock, flags);
}
