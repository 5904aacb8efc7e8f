// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared Receive Queues: the device's side.
 *
 * Buffers are given to the device in posting order, up to "hw_max"; the rest
 * waits in "held" and follows one by one as completions come in. A device that
 * can resize is resized, on others a grown SRQ lives with a shorter device
 * queue. It is created with headroom so that this is the exception.
 *
 * Lost buffers. A device may take a buffer for the first packet of a message and
 * forget it when that QP dies (rxe does). Devices take buffers in posting order
 * and each RC QP completes them in the order it took them. So once every QP that
 * is alive has completed something newer than a buffer which has not come back,
 * nobody can have it: it was lost with a QP, and is given to the device again.
 * When the last QP of an SRQ is gone, nobody has any of them: the device's queue
 * is then remade with all that did not come back before the next QP is attached.
 */
#include <linux/moduleparam.h>
#include "kdapl.h"
#include "trace.h"

#define KDAPL_SRQ_HW_MIN 64

static unsigned int srq_headroom = 2;
module_param(srq_headroom, uint, 0644);
MODULE_PARM_DESC(srq_headroom,
		 "size of a device's shared receive queue at creation, as a multiple of what the consumer asked for");

/*
 * Give waiting buffers to the device. Under srq->lock. Returns true if from now on
 * some have to wait for completions: then kdapl_srq_watch() is due.
 */
bool kdapl_srq_hw_feed(struct kdapl_srq *srq)
{
	bool was = srq->feeding;
	struct ib_recv_wr rwr = { };
	struct kdapl_wr *wr;

	while (srq->srq && !srq->stale && srq->hw_count < srq->hw_max &&
	       !list_empty(&srq->held)) {
		wr = list_first_entry(&srq->held, struct kdapl_wr, link);
		wr->seq = srq->next_seq;
		rwr.wr_id = (uintptr_t)wr;
		rwr.sg_list = wr->sge;
		rwr.num_sge = wr->nsge;
		/* It stays first in line if the device does not take it now. */
		if (ib_post_srq_recv(srq->srq, &rwr, NULL))
			break;
		srq->next_seq++;
		srq->hw_count++;
		list_move_tail(&wr->link, &srq->hw);
	}
	srq->feeding = srq->srq && !srq->stale && !list_empty(&srq->held);
	return srq->feeding && !was;
}

/* Put back what died with a QP. Under srq->lock, with suspect_below set. */
void kdapl_srq_reconcile(struct kdapl_srq *srq)
{
	u64 floor = U64_MAX;
	struct kdapl_wr *wr;
	struct kdapl_ep *ep;

	list_for_each_entry(ep, &srq->eps, srq_link)
		floor = min(floor, ep->srq_seq);

	while (!list_empty(&srq->hw)) {
		wr = list_first_entry(&srq->hw, struct kdapl_wr, link);
		if (wr->seq >= floor || wr->seq >= srq->suspect_below)
			break;
		trace_kdapl_srq_recovered(srq, wr);
		list_move_tail(&wr->link, &srq->held);
		srq->hw_count--;
		srq->recovered++;
	}
	if (floor >= srq->suspect_below - 1)
		srq->suspect_below = 0;
}

static void kdapl_srq_event(struct ib_event *event, void *context)
{
	struct kdapl_srq *srq = context;

	/*
	 * Any context, with any driver lock held. Some drivers report an empty
	 * queue as an error, so an error is checked before it is believed.
	 */
	queue_work(kdapl_wq, &srq->hint_work);
	if (event->event == IB_EVENT_SRQ_ERR)
		pr_warn_ratelimited("kdapl: %s: shared receive queue event %d\n",
				    srq->obj.ia->hca->name, event->event);
}

/* The device hints that the queue runs low, or what kdapl_srq_watch() is for changed. */
void kdapl_srq_hw_hint(struct work_struct *work)
{
	struct kdapl_srq *srq = container_of(work, struct kdapl_srq, hint_work);

	kdapl_srq_look(srq);
	kdapl_srq_watch(srq);
}

/* Pass the low watermark on to the device. It need not support that. */
void kdapl_srq_hw_arm(struct work_struct *work)
{
	struct kdapl_srq *srq = container_of(work, struct kdapl_srq, arm_work);
	struct kdapl_hca *hca = srq->obj.ia->hca;
	struct ib_srq_attr attr = { };
	unsigned long flags;
	int err = 0;

	/* Release waits for this work with the semaphore held. */
	if (!down_read_trylock(&hca->sem))
		return;
	mutex_lock(&srq->mutex);
	spin_lock_irqsave(&srq->lock, flags);
	if (srq->lw_armed)
		attr.srq_limit = min(srq->lw, srq->hw_max);
	spin_unlock_irqrestore(&srq->lock, flags);
	if (srq->srq && !hca->gone)
		err = ib_modify_srq(srq->srq, &attr, IB_SRQ_LIMIT);
	trace_kdapl_srq_armed(srq, attr.srq_limit, err);
	mutex_unlock(&srq->mutex);
	up_read(&hca->sem);
}

/* cxgb4 reports the limit as an event of the device; the SRQ may be gone. */
void kdapl_srq_device_event(struct kdapl_ia *ia, struct ib_srq *ibsrq)
{
	struct kdapl_srq *srq, *found = NULL;
	struct kdapl_obj *obj;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	list_for_each_entry(obj, &ia->objs, ia_link) {
		if (kdapl_type(obj) != DAT_HANDLE_TYPE_SRQ)
			continue;
		srq = container_of(obj, struct kdapl_srq, obj);
		if (READ_ONCE(srq->srq) == ibsrq && kref_get_unless_zero(&obj->ref)) {
			found = srq;
			break;
		}
	}
	spin_unlock_irqrestore(&ia->lock, flags);
	if (found) {
		kdapl_srq_look(found);
		kdapl_obj_put(&found->obj);
	}
}

/*
 * How many of @want buffers the device can have at once. All of them may be on
 * one CQ.
 */
static int kdapl_srq_hw_limit(struct ib_device *dev, u64 want)
{
	return min_t(u64, want, min(dev->attrs.max_srq_wr, dev->attrs.max_cqe));
}

/* Make the device's queue and fill it. Under srq->mutex. */
int kdapl_srq_hw_create(struct kdapl_srq *srq)
{
	struct ib_device *dev = srq->obj.ia->hca->dev;
	struct ib_srq_init_attr init = { };
	unsigned long flags;
	struct ib_srq *ibsrq;
	u64 want;

	want = (u64)srq->max * max(READ_ONCE(srq_headroom), 1U);
	want = max_t(u64, want, KDAPL_SRQ_HW_MIN);
	init.attr.max_wr = kdapl_srq_hw_limit(dev, want);
	init.attr.max_sge = srq->max_iov;
	init.event_handler = kdapl_srq_event;
	init.srq_context = srq;
	init.srq_type = IB_SRQT_BASIC;
	srq->hw_max = init.attr.max_wr;
	ibsrq = ib_create_srq(srq->pz->pd, &init);
	if (IS_ERR(ibsrq))
		return PTR_ERR(ibsrq);

	spin_lock_irqsave(&srq->lock, flags);
	srq->srq = ibsrq;
	srq->stale = false;
	srq->suspect_below = 0;
	kdapl_srq_hw_feed(srq);
	spin_unlock_irqrestore(&srq->lock, flags);
	return 0;
}

/* No QP is attached. The buffers go back to the front of the line, in order. */
void kdapl_srq_hw_destroy(struct kdapl_srq *srq)
{
	struct ib_srq *ibsrq;
	unsigned long flags;

	spin_lock_irqsave(&srq->lock, flags);
	ibsrq = srq->srq;
	srq->srq = NULL;
	list_splice_init(&srq->hw, &srq->held);
	srq->hw_count = 0;
	spin_unlock_irqrestore(&srq->lock, flags);
	if (ibsrq)
		ib_destroy_srq(ibsrq);
}

/* The @n-th EVD fed by the SRQ, referenced. Feeds may go at any time. */
static struct kdapl_evd *kdapl_srq_nth_feed(struct kdapl_srq *srq, int n)
{
	struct kdapl_srq_feed *feed;
	struct kdapl_evd *evd = NULL;
	unsigned long flags;

	spin_lock_irqsave(&srq->lock, flags);
	list_for_each_entry(feed, &srq->feeds, link) {
		if (n--)
			continue;
		evd = feed->evd;
		kref_get(&evd->obj.ref);
		break;
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	return evd;
}

/*
 * The consumer made the SRQ larger. Where the device can follow, let it; the
 * CQs must be able to take the additional completions first. Under srq->mutex.
 */
void kdapl_srq_hw_grow(struct kdapl_srq *srq, int max)
{
	struct kdapl_hca *hca = srq->obj.ia->hca;
	struct ib_srq_attr attr = { };
	struct kdapl_evd *evd;
	unsigned long flags;
	int i, err = 0;

	max = kdapl_srq_hw_limit(hca->dev, max);
	attr.max_wr = max;
	if (max <= srq->hw_max || !hca->srq_resize || !srq->srq)
		return;
	for (i = 0; !err && (evd = kdapl_srq_nth_feed(srq, i)); i++) {
		err = kdapl_cq_grow(evd, srq, max);
		kdapl_obj_put(&evd->obj);
	}
	if (err)
		return;
	if (ib_modify_srq(srq->srq, &attr, IB_SRQ_MAX_WR))
		return;
	spin_lock_irqsave(&srq->lock, flags);
	srq->hw_max = max;
	kdapl_srq_hw_feed(srq);
	spin_unlock_irqrestore(&srq->lock, flags);
	/* If nothing waits any more, completions need not be noticed. */
	kdapl_srq_watch(srq);
}

/**
 * kdapl_srq_attach - an Endpoint is about to create a QP on the SRQ
 * @srq: the SRQ
 * @ep: the Endpoint
 *
 * Context: Process context, with srq->mutex held.
 * Return: 0 or an errno.
 */
int kdapl_srq_attach(struct kdapl_srq *srq, struct kdapl_ep *ep)
{
	unsigned long flags;
	bool joined;
	int err;

	lockdep_assert_held(&srq->mutex);
	for (;;) {
		spin_lock_irqsave(&srq->lock, flags);
		/* The last one on it may detach at any time before. */
		joined = srq->srq && !srq->stale;
		if (joined) {
			/* What was taken before now, others have. */
			ep->srq_seq = srq->max_taken;
			list_add(&ep->srq_link, &srq->eps);
		}
		spin_unlock_irqrestore(&srq->lock, flags);
		if (joined)
			break;
		kdapl_srq_hw_destroy(srq);
		err = kdapl_srq_hw_create(srq);
		if (err)
			return err;
	}
	/* The device may have all now, or not any more. */
	kdapl_srq_watch(srq);
	if (READ_ONCE(srq->lw_armed))
		queue_work(kdapl_wq, &srq->arm_work);
	return 0;
}

/* The QP was destroyed and its completions were polled. */
void kdapl_srq_detach(struct kdapl_srq *srq, struct kdapl_ep *ep)
{
	unsigned long flags;
	bool waits = false;

	spin_lock_irqsave(&srq->lock, flags);
	list_del_init(&ep->srq_link);
	srq->suspect_below = srq->next_seq;
	if (list_empty(&srq->eps)) {
		srq->stale = true;
	} else {
		kdapl_srq_reconcile(srq);
		waits = kdapl_srq_hw_feed(srq);
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	if (waits)
		kdapl_srq_watch(srq);
}
