// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared Receive Queues: the device's side.
 *
 * Buffers are given to the device in posting order, up to srq->hw_max; the rest
 * is on srq->waiting and follows one by one as completions come in. A device
 * that can resize its queue does so; on others a grown SRQ lives with a shorter device
 * queue. The queue is created with headroom so that this is the exception.
 *
 * When the last QP of an SRQ was destroyed, no QP has any buffer: before the next QP is
 * attached, the device's queue is created anew, with all buffers that did not come back.
 * srq_lost.c finds buffers that the device loses earlier.
 */
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "pz.h"
#include "srq.h"
#include "trace.h"

#define KDAPL_SRQ_HW_MIN 64

static unsigned int srq_headroom = 2;
module_param(srq_headroom, uint, 0644);
MODULE_PARM_DESC(srq_headroom,
		 "size of a device's shared receive queue at creation, as a multiple of what the consumer asked for");

/* Return how many buffers the device may be given; those in doubt are replaced. */
static int kdapl_srq_hw_size(struct kdapl_srq *srq)
{
	return srq->hw_max + min(srq->doubt, srq->hw_extra);
}

/* Update srq->feeding. Return true if buffers began to wait: kdapl_srq_watch() is due. */
static bool kdapl_srq_hw_waits(struct kdapl_srq *srq)
{
	bool was = srq->feeding;

	srq->feeding = srq->srq && !srq->stale && !list_empty(&srq->waiting);
	return srq->feeding && !was;
}

/*
 * Let @wr, which is in no list and which the device has refused, wait. Return value as
 * kdapl_srq_hw_feed().
 */
bool kdapl_srq_hw_keep(struct kdapl_srq *srq, struct kdapl_wr *wr)
{
	lockdep_assert_held(&srq->lock);

	list_add_tail(&wr->link, &srq->waiting);
	return kdapl_srq_hw_waits(srq);
}

/*
 * Give a section of the waiting buffers to the device. Return true if buffers began to
 * wait for completions: then kdapl_srq_watch() is due.
 */
bool kdapl_srq_hw_feed(struct kdapl_srq *srq)
{
	struct kdapl_wr *wr;
	int n;

	lockdep_assert_held(&srq->lock);

	for (n = 0; n < KDAPL_SECTION && srq->srq && !srq->stale &&
	     srq->hw_count < kdapl_srq_hw_size(srq) &&
	     !list_empty(&srq->waiting); n++) {
		wr = list_first_entry(&srq->waiting, struct kdapl_wr, link);
		/* A buffer that the device refuses stays first in line. */
		if (!kdapl_srq_hw_post(srq, wr))
			break;
		list_move_tail(&wr->link, &srq->hw);
	}
	kdapl_section(n);
	return kdapl_srq_hw_waits(srq);
}

/*
 * Return @wr to the queue as if never taken: its Endpoint was freed before the event was
 * reaped.
 */
void kdapl_srq_take_back(struct kdapl_srq *srq, struct kdapl_wr *wr)
{
	lockdep_assert_held(&wr->ep->recv_evd->lock);

	spin_lock(&srq->lock);
	srq->available++;
	wr->posted = true;
	list_move_tail(&wr->link, &srq->waiting);
	if (kdapl_srq_hw_feed(srq))
		queue_work(srq->obj.ia->hca->object_wq, &srq->hint_work);
	spin_unlock(&srq->lock);
}

/* Give the device as many waiting buffers as fit. kdapl_srq_watch() is due. */
void kdapl_srq_hw_fill(struct kdapl_srq *srq)
{
	unsigned long flags;
	u64 before, n;

	do {
		spin_lock_irqsave(&srq->lock, flags);
		before = srq->next_seq;
		kdapl_srq_hw_feed(srq);
		n = srq->next_seq - before;
		spin_unlock_irqrestore(&srq->lock, flags);
		cond_resched();
	} while (n == KDAPL_SECTION);
}

static void kdapl_srq_event(struct ib_event *event, void *context)
{
	struct kdapl_srq *srq = context;
	char name[IB_DEVICE_NAME_MAX];

	/*
	 * Context: any, with any driver lock held. Some drivers report an empty
	 * queue as an error, so the event only causes a poll.
	 */
	queue_work(srq->obj.ia->hca->object_wq, &srq->hint_work);
	if (event->event != IB_EVENT_SRQ_ERR)
		return;
	kdapl_hca_name(srq->obj.ia->hca, name);
	pr_warn_ratelimited("kdapl: %s: shared receive queue: %s\n", name,
			    ib_event_msg(event->event));
}

/*
 * Work item: the device hints that the queue runs low, or kdapl_srq_watch() is
 * due and could not be called.
 */
void kdapl_srq_hw_hint(struct work_struct *work)
{
	struct kdapl_srq *srq = container_of(work, struct kdapl_srq, hint_work);

	kdapl_srq_poll_all(srq);
	kdapl_srq_watch(srq);
}

/*
 * Work item: pass the low watermark on to the device, which need not support it. NOIO:
 * accepting a connection waits for the mutex, and dirty pages may wait for that
 * connection.
 */
void kdapl_srq_hw_arm(struct work_struct *work)
{
	struct kdapl_srq *srq = container_of(work, struct kdapl_srq, arm_work);
	struct kdapl_hca *hca = srq->obj.ia->hca;
	struct ib_srq_attr attr = { };
	unsigned long flags;
	unsigned int noio;
	int err = 0;

	/* kdapl_srq_release() waits for this work with the semaphore held. */
	if (!down_read_trylock(&hca->sem))
		return;
	noio = memalloc_noio_save();
	mutex_lock(&srq->mutex);
	spin_lock_irqsave(&srq->lock, flags);
	if (srq->lw_armed)
		attr.srq_limit = min(srq->lw, srq->hw_max);
	spin_unlock_irqrestore(&srq->lock, flags);
	if (srq->srq && !READ_ONCE(hca->gone))
		err = ib_modify_srq(srq->srq, &attr, IB_SRQ_LIMIT);
	trace_kdapl_srq_armed(srq, attr.srq_limit, err);
	mutex_unlock(&srq->mutex);
	memalloc_noio_restore(noio);
	up_read(&hca->sem);
}

/*
 * cxgb4 reports the limit as an event of the device. The SRQ may have been freed,
 * so the pointer is compared and not followed.
 */
void kdapl_srq_device_event(struct kdapl_ia *ia, struct ib_srq *ibsrq)
{
	struct kdapl_obj *obj = NULL;
	struct kdapl_srq *srq;

	while ((obj = kdapl_obj_next(ia, obj))) {
		if (kdapl_type(obj) != DAT_HANDLE_TYPE_SRQ)
			continue;
		srq = container_of(obj, struct kdapl_srq, obj);
		if (READ_ONCE(srq->srq) == ibsrq)
			kdapl_srq_poll_all(srq);
	}
}

/* Return how many of @want buffers the device can hold. All of them may complete on one CQ. */
static int kdapl_srq_hw_limit(struct ib_device *dev, u64 want)
{
	return min_t(u64, want, min(dev->attrs.max_srq_wr, dev->attrs.max_cqe));
}

/* Create a queue for @want buffers, or for as many as the device can hold. */
static struct ib_srq *kdapl_srq_hw_make(struct kdapl_srq *srq, u64 want)
{
	struct ib_srq_init_attr init = {
		.event_handler = kdapl_srq_event,
		.srq_context = srq,
		.attr.max_wr = kdapl_srq_hw_limit(srq->obj.ia->hca->dev, want),
		.attr.max_sge = srq->max_iov,
		.srq_type = IB_SRQT_BASIC,
	};

	srq->hw_max = init.attr.max_wr;
	return ib_create_srq(srq->pz->pd, &init);
}

/* Create the device's queue and fill it. */
int kdapl_srq_hw_create(struct kdapl_srq *srq)
{
	unsigned long flags;
	struct ib_srq *ibsrq;
	u64 want;

	lockdep_assert_held(&srq->mutex);

	want = (u64)srq->max * max(READ_ONCE(srq_headroom), 1U);
	want = max_t(u64, want, KDAPL_SRQ_HW_MIN);
	ibsrq = kdapl_srq_hw_make(srq, want);
	/* Without headroom the device may have room. */
	if (IS_ERR(ibsrq) && want > srq->max)
		ibsrq = kdapl_srq_hw_make(srq, srq->max);
	if (IS_ERR(ibsrq))
		return PTR_ERR(ibsrq);

	spin_lock_irqsave(&srq->lock, flags);
	srq->srq = ibsrq;
	srq->stale = false;
	srq->hw_extra = 0;
	spin_unlock_irqrestore(&srq->lock, flags);
	kdapl_srq_hw_fill(srq);
	return 0;
}

/*
 * Destroy the device's queue, to which no QP is attached. Move its buffers to the front
 * of srq->waiting, in order.
 */
void kdapl_srq_hw_destroy(struct kdapl_srq *srq)
{
	struct ib_srq *ibsrq;
	unsigned long flags;

	spin_lock_irqsave(&srq->lock, flags);
	ibsrq = srq->srq;
	srq->srq = NULL;
	list_splice_init(&srq->hw, &srq->waiting);
	srq->hw_count = 0;
	kdapl_srq_trust(srq);
	spin_unlock_irqrestore(&srq->lock, flags);
	if (ibsrq)
		ib_destroy_srq(ibsrq);
}

/*
 * Return the SRQ's first EVD at index *@index or behind, referenced, or NULL. Set *@index
 * to its index.
 */
static struct kdapl_evd *kdapl_srq_next_evd(struct kdapl_srq *srq, unsigned long *index)
{
	struct kdapl_evd *evd = NULL;
	struct kdapl_srq_evd *se;
	unsigned long flags;

	xa_lock_irqsave(&srq->evds, flags);
	se = xa_find(&srq->evds, index, ULONG_MAX, XA_PRESENT);
	if (se) {
		evd = se->evd;
		kref_get(&evd->obj.ref);
	}
	xa_unlock_irqrestore(&srq->evds, flags);
	return evd;
}

/*
 * Make room for @n buffers of the SRQ in the CQs of its EVDs. Return 0 or an errno. QPs
 * that are created later do this themselves (kdapl_qp_charge()).
 */
int kdapl_srq_hw_room(struct kdapl_srq *srq, int n)
{
	unsigned long index = 0;
	struct kdapl_evd *evd;
	int err = 0;

	lockdep_assert_held(&srq->mutex);

	for (; !err && (evd = kdapl_srq_next_evd(srq, &index)); index++) {
		err = kdapl_cq_grow(evd, srq, n);
		kdapl_obj_put(&evd->obj);
	}
	return err;
}

/*
 * The consumer has enlarged the SRQ: resize the device's queue if the device can, after
 * the CQs, which must have room for the additional completions.
 */
void kdapl_srq_hw_grow(struct kdapl_srq *srq, int max)
{
	struct kdapl_hca *hca = srq->obj.ia->hca;
	struct ib_srq_attr attr = { };
	unsigned long flags;

	lockdep_assert_held(&srq->mutex);

	max = kdapl_srq_hw_limit(hca->dev, max);
	attr.max_wr = max;
	if (max <= srq->hw_max || kdapl_has_quirk(hca, KDAPL_QUIRK_SRQ_RESIZE) || !srq->srq)
		return;
	if (kdapl_srq_hw_room(srq, max + srq->hw_extra))
		return;
	if (ib_modify_srq(srq->srq, &attr, IB_SRQ_MAX_WR))
		return;
	spin_lock_irqsave(&srq->lock, flags);
	srq->hw_max = max;
	spin_unlock_irqrestore(&srq->lock, flags);
	kdapl_srq_hw_fill(srq);
	/* If no buffer waits any more, completions need not be noticed. */
	kdapl_srq_watch(srq);
}

/**
 * kdapl_srq_attach - an Endpoint is about to create a QP on the SRQ
 * @srq: the SRQ
 * @ep: the Endpoint
 *
 * Context: Process context.
 * Return: 0 or an errno.
 */
int kdapl_srq_attach(struct kdapl_srq *srq, struct kdapl_ep *ep)
{
	bool joined, made = false;
	unsigned long flags;
	int err;

	lockdep_assert_held(&srq->mutex);
	for (;;) {
		spin_lock_irqsave(&srq->lock, flags);
		/* Until this EP is on the list, the last other one may detach. */
		joined = srq->srq && !srq->stale;
		if (joined) {
			/* Buffers taken so far belong to other EPs. */
			ep->srq_seq = srq->max_taken;
			ep->srq_epoch = srq->epoch;
			ep->srq_gave_back = false;
			ep->srq_packets = 0;
			list_add(&ep->srq_link, &srq->eps);
		}
		spin_unlock_irqrestore(&srq->lock, flags);
		if (joined)
			break;
		kdapl_srq_hw_destroy(srq);
		err = kdapl_srq_hw_create(srq);
		if (err)
			return err;
		made = true;
	}
	/* With the new queue buffers may begin or cease to wait. */
	if (made)
		kdapl_srq_watch(srq);
	if (READ_ONCE(srq->lw_armed))
		queue_work(srq->obj.ia->hca->object_wq, &srq->arm_work);
	return 0;
}

/*
 * Undo kdapl_srq_attach(). The QP was destroyed and its completions were polled; up to
 * @taken buffers may be lost with it.
 */
void kdapl_srq_detach(struct kdapl_srq *srq, struct kdapl_ep *ep, int taken)
{
	unsigned long flags;
	bool search;

	mutex_lock(&srq->mutex);
	spin_lock_irqsave(&srq->lock, flags);
	list_del_init(&ep->srq_link);
	search = taken || ep == srq->oldest;
	if (list_empty(&srq->eps)) {
		srq->stale = true;
		kdapl_srq_trust(srq);
		search = false;
	} else if (ep == srq->oldest) {
		srq->oldest = NULL;
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	if (search)
		kdapl_srq_died(srq, ep, taken);
	mutex_unlock(&srq->mutex);
}
