// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: how the device's completions become events.
 *
 * The CQ API of ib_core polls a batch and then runs one callback after another.
 * We need more: a query in any context has to see all that the device has
 * completed, in order, and an EVD without upcall must not be polled at all. So
 * an EVD owns plain CQs and polls them under its own lock, a batch at a time;
 * whoever holds the lock sees the ledger and the list in agreement.
 *
 * A CQ must have room for all that its work queues can complete, or the device
 * breaks. CQs cannot be resized everywhere, so an EVD that needs more room gets
 * another CQ. The receive buffers of an SRQ are counted once for all its
 * Endpoints that share a CQ.
 */
#include "kdapl.h"
#include "trace.h"

/* Smallest CQ; avoids a new one for every small Endpoint. */
#define KDAPL_CQ_MIN 128

struct kdapl_cq_srq {
	struct list_head link;
	struct kdapl_srq *srq;
	int users;
	int n;
};

static u8 kdapl_wc_status(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		return DAT_DTO_SUCCESS;
	case IB_WC_WR_FLUSH_ERR:
		return DAT_DTO_ERR_FLUSHED;
	case IB_WC_LOC_LEN_ERR:
		return DAT_DTO_ERR_LOCAL_LENGTH;
	case IB_WC_LOC_QP_OP_ERR:
	case IB_WC_LOC_EEC_OP_ERR:
		return DAT_DTO_ERR_LOCAL_EP;
	case IB_WC_LOC_PROT_ERR:
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	case IB_WC_MW_BIND_ERR:
		return DAT_RMR_OPERATION_FAILED;
	case IB_WC_BAD_RESP_ERR:
		return DAT_DTO_ERR_BAD_RESPONSE;
	case IB_WC_REM_ACCESS_ERR:
	case IB_WC_LOC_ACCESS_ERR:
		return DAT_DTO_ERR_REMOTE_ACCESS;
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_REM_OP_ERR:
		return DAT_DTO_ERR_REMOTE_RESPONDER;
	case IB_WC_RNR_RETRY_EXC_ERR:
		return DAT_DTO_ERR_RECEIVER_NOT_READY;
	default:
		return DAT_DTO_ERR_TRANSPORT;
	}
}

/* The first part of a request that is two to the device; the second follows. */
static void kdapl_first_failed(struct kdapl_wr *wr, u8 status)
{
	wr->rkey = status;
	if (status > DAT_DTO_ERR_FLUSHED)
		kdapl_ep_down(wr->ep, DAT_CONNECTION_EVENT_BROKEN);
}

static void kdapl_send_finish(struct kdapl_evd *evd, struct kdapl_wr *wr,
			      struct kdapl_later *later)
{
	struct kdapl_ep *ep = wr->ep;
	bool event = true;

	if (unlikely(wr->has_mem))
		kdapl_mem_done(wr);
	if (wr->suppress && wr->status == DAT_DTO_SUCCESS)
		event = false;
	kdapl_ring_complete(&ep->sq, wr, event);
	if (event) {
		if (unlikely(READ_ONCE(ep->dying)))
			kdapl_ring_reaped(&ep->sq, wr);
		else
			kdapl_evd_add(evd, &wr->ev, later);
	}
	/* A graceful disconnect waits for the last request. */
	if (unlikely(READ_ONCE(ep->state) == DAT_EP_STATE_DISCONNECT_PENDING) &&
	    ep->sq.done == READ_ONCE(ep->sq.head))
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/*
 * Can a peer still write to the sink of this Read (sink.c)? It waits, and with it
 * what comes after, until the MRs are gone: kdapl_qp_destroy().
 */
static bool kdapl_sink_is_open(const struct kdapl_wr *wr)
{
	return unlikely(wr->has_mem) && wr->twice &&
	       wr->op == DAT_DTO_RDMA_READ && wr->status != DAT_DTO_SUCCESS;
}

/*
 * A request has completed. siw completes what follows an RDMA Read before the
 * Read; to the consumer, and in the ring, requests end in posting order.
 */
static void kdapl_send_done(struct kdapl_evd *evd, struct kdapl_wr *wr,
			    struct kdapl_later *later)
{
	struct kdapl_ring *sq = &wr->ep->sq;

	if (unlikely((u32)wr->seq != sq->done || kdapl_sink_is_open(wr))) {
		wr->early = true;
		sq->early++;
		return;
	}
	kdapl_send_finish(evd, wr, later);
	while (unlikely(sq->early)) {
		wr = kdapl_ring_wr(sq, sq->done);
		if (!wr->early || kdapl_sink_is_open(wr))
			break;
		wr->early = false;
		sq->early--;
		kdapl_send_finish(evd, wr, later);
	}
}

/*
 * The Endpoint that took an SRQ's buffer. A completion may be polled just after
 * its QP was destroyed, so while that can be (see kdapl_qp_destroy()), the QP is
 * compared and not followed.
 */
static struct kdapl_ep *kdapl_wc_ep(struct kdapl_evd *evd, struct ib_wc *wc)
{
	struct kdapl_ep *ep;

	list_for_each_entry(ep, &evd->leaving, leaving_link)
		if (ep->leaving_qp == wc->qp)
			return ep;
	return wc->qp->qp_context;
}

static void kdapl_wc_done(struct kdapl_evd *evd, struct ib_wc *wc,
			  struct kdapl_later *later)
{
	struct kdapl_wr *wr = (struct kdapl_wr *)(uintptr_t)wc->wr_id;
	u8 status = kdapl_wc_status(wc->status);
	struct kdapl_ep *ep;

	if (unlikely(wc->wr_id & KDAPL_WR_FIRST)) {
		wr = (void *)(uintptr_t)(wc->wr_id & ~KDAPL_WR_FIRST);
		kdapl_first_failed(wr, status);
		return;
	}
	ep = wr->ep;
	wr->status = status;
	if (wr->ev.kind == KDAPL_EV_SQ) {
		kdapl_send_done(evd, wr, later);
	} else {
		if (wr->ev.kind == KDAPL_EV_SRQ)
			ep = kdapl_wc_ep(evd, wc);
		wr->ep = ep;
		wr->len = status == DAT_DTO_SUCCESS ? wc->byte_len : 0;
		wr->rkey = 0;
		wr->op = DAT_DTO_RECEIVE;
		/* Segments were checked; to rxe a short buffer is a bad one. */
		if (unlikely(wc->status == IB_WC_LOC_QP_OP_ERR))
			wr->status = DAT_DTO_ERR_LOCAL_LENGTH;
		if (unlikely(wc->wc_flags & IB_WC_WITH_INVALIDATE) &&
		    wc->status == IB_WC_SUCCESS) {
			wr->op = DAT_DTO_RECEIVE_WITH_INVALIDATE;
			wr->rkey = wc->ex.invalidate_rkey;
			kdapl_mr_invalidated(ep, wr->rkey);
		}
		kdapl_recv_done(evd, ep, wr, later);
	}
	/* Anything but success and flush means that the connection is lost. */
	if (unlikely(status > DAT_DTO_ERR_FLUSHED))
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN);
}

/**
 * kdapl_cq_poll - move a batch of completions to the event list
 * @evd: its CQs are polled; evd->lock is held
 * @later: what the caller does after unlocking
 *
 * Return: the number of completions; 0 means that the CQs are empty.
 */
int kdapl_cq_poll(struct kdapl_evd *evd, struct kdapl_later *later)
{
	struct kdapl_cq *cq;
	u32 pos = 0;
	int i, n = 0;

	lockdep_assert_held(&evd->lock);

	/* One CQ a time, in turn: a busy one must not hide the others. */
	list_for_each_entry(cq, &evd->cqs, link) {
		if (unlikely(pos++ < evd->turn))
			continue;
		n = ib_poll_cq(cq->cq, KDAPL_POLL_BATCH, evd->wc);
		for (i = 0; i < n; i++)
			kdapl_wc_done(evd, &evd->wc[i], later);
		if (n > 0)
			break;
	}
	if (unlikely(evd->turn && n <= 0)) {
		/* Only those before the turn are left to look at. */
		evd->turn = 0;
		return kdapl_cq_poll(evd, later);
	}
	if (unlikely(!list_is_singular(&evd->cqs)))
		evd->turn = n > 0 && !list_is_last(&cq->link, &evd->cqs) ?
				pos : 0;
	return max(n, 0);
}

/**
 * kdapl_cq_look_lock - see all that the device has completed
 * @evd: the EVD
 *
 * Context: Any.
 * Return: interrupt flags; evd->lock is held and the CQs were just found empty.
 */
unsigned long kdapl_cq_look_lock(struct kdapl_evd *evd)
	__acquires(&evd->lock)
{
	struct kdapl_later later __uninitialized;
	unsigned long flags;
	bool moved = false;

	later.n = 0;
	rcu_read_lock();
	spin_lock_irqsave(&evd->lock, flags);
	while (kdapl_cq_poll(evd, &later)) {
		/* Short critical sections, and what it caused first. */
		spin_unlock_irqrestore(&evd->lock, flags);
		kdapl_later_run(&later);
		moved = true;
		spin_lock_irqsave(&evd->lock, flags);
	}
	rcu_read_unlock();
	/* The dispatcher will not find these on the CQ any more. */
	if (moved && kdapl_policy_active(evd->policy))
		kdapl_upcall_schedule(evd);
	return flags;
}

void kdapl_cq_look(struct kdapl_evd *evd)
{
	unsigned long flags = kdapl_cq_look_lock(evd);

	spin_unlock_irqrestore(&evd->lock, flags);
}

/**
 * kdapl_cq_arm - ask for notification if somebody wants to know of arrivals
 * @evd: the EVD
 *
 * Context: Any.
 * Return: true if there is something to do already.
 */
bool kdapl_cq_arm(struct kdapl_evd *evd)
{
	enum ib_cq_notify_flags how = IB_CQ_REPORT_MISSED_EVENTS;
	struct kdapl_cq *cq;
	unsigned long flags;
	bool active, again;

	spin_lock_irqsave(&evd->lock, flags);
	active = kdapl_policy_active(evd->policy);
	again = active && evd->wake && !list_empty(&evd->events);
	/* Unwatched and never too long: nobody needs an interrupt. */
	if (active || evd->watchers || evd->claimed > (int)evd->qlen) {
		how |= evd->solicited && !evd->watchers &&
		       evd->obj.ia->hca->rings_solicited ? IB_CQ_SOLICITED :
							   IB_CQ_NEXT_COMP;
		list_for_each_entry(cq, &evd->cqs, link)
			if (ib_req_notify_cq(cq->cq, how) > 0) {
				again = true;
				/* Perhaps a solicited one. */
				evd->rang = evd->solicited;
			}
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	return again;
}

/* Move a batch, and see that it is delivered; returns its size. Any context. */
static int kdapl_cq_poll_batch(struct kdapl_evd *evd)
{
	struct kdapl_later later __uninitialized;
	unsigned long flags;
	int n;

	later.n = 0;
	rcu_read_lock();
	spin_lock_irqsave(&evd->lock, flags);
	n = kdapl_cq_poll(evd, &later);
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_later_run(&later);
	rcu_read_unlock();
	/* The dispatcher will not find these on the CQ any more. */
	if (n && kdapl_policy_active(READ_ONCE(evd->policy)))
		kdapl_upcall_schedule(evd);
	return n;
}

/*
 * Completions arrived while somebody watches, and the dispatcher does not take them soon:
 * it is in an upcall, or a work item, for which an SRQ that is fed cannot wait.
 */
int kdapl_cq_look_softirq(struct irq_poll *iop, int budget)
{
	struct kdapl_evd *evd = container_of(iop, struct kdapl_evd, look);
	int n, done = 0;
	bool alive;

	do {
		n = kdapl_cq_poll_batch(evd);
		done += n;
	} while (n && done <= budget - KDAPL_POLL_BATCH);
	if (n)
		return budget;
	/* The release of the EVD waits for us up to here only. */
	alive = kref_get_unless_zero(&evd->obj.ref);
	irq_poll_complete(iop);
	if (!alive)
		return 0;
	kdapl_cq_arm(evd);
	/* What came before it was armed; the rest will ring again. */
	if (kdapl_cq_poll_batch(evd))
		irq_poll_sched(iop);
	kdapl_obj_put(&evd->obj);
	return 0;
}

/* Completions are there: who is to take them? Any context, and with driver locks held. */
void kdapl_cq_notice(struct kdapl_evd *evd)
{
	kdapl_upcall_schedule(evd);
	if (unlikely(READ_ONCE(evd->watchers))) {
		/* Pairs with the barrier in kdapl_upcall_run(). */
		smp_mb();
		/* The dispatcher is busy, and perhaps for long, or a work item. */
		if (READ_ONCE(evd->upcaller) ||
		    (READ_ONCE(evd->impatient) && !evd->softirq))
			irq_poll_sched(&evd->look);
	}
}

/* Somebody needs arrivals noticed, more or less than before. Any context. */
void kdapl_cq_watch(struct kdapl_evd *evd, enum kdapl_watch was,
		    enum kdapl_watch now)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	evd->watchers += (now != KDAPL_WATCH_NONE) - (was != KDAPL_WATCH_NONE);
	evd->impatient += (now == KDAPL_WATCH_SOFTIRQ) -
			  (was == KDAPL_WATCH_SOFTIRQ);
	spin_unlock_irqrestore(&evd->lock, flags);
	if (now > was && kdapl_cq_arm(evd))
		kdapl_cq_notice(evd);
}

/* The device has something. Any context, and with driver locks held. */
static void kdapl_cq_comp(struct ib_cq *ibcq, void *context)
{
	struct kdapl_cq *cq = context;
	struct kdapl_evd *evd = cq->evd;

	if (READ_ONCE(evd->solicited))
		WRITE_ONCE(evd->rang, true);
	kdapl_cq_notice(evd);
}

static void kdapl_cq_error(struct ib_event *event, void *context)
{
	struct kdapl_cq *cq = context;

	pr_err_ratelimited("kdapl: %s: completion queue error %d\n",
			   cq->evd->obj.ia->hca->name, event->event);
}

static struct kdapl_cq_srq *kdapl_cq_find_srq(struct kdapl_cq *cq,
					      struct kdapl_srq *srq)
{
	struct kdapl_cq_srq *s;

	list_for_each_entry(s, &cq->srqs, link)
		if (s->srq == srq)
			return s;
	return NULL;
}

static struct kdapl_cq *kdapl_cq_create(struct kdapl_evd *evd, int n)
{
	struct kdapl_ia *ia = evd->obj.ia;
	struct ib_device *dev = ia->hca->dev;
	struct ib_cq_init_attr attr = { };
	struct kdapl_cq *cq;
	unsigned long flags;

	if (n > dev->attrs.max_cqe)
		return ERR_PTR(-ENOMEM);
	attr.cqe = min_t(int, max3(n, (int)evd->qlen, KDAPL_CQ_MIN),
			 dev->attrs.max_cqe);
	attr.comp_vector = atomic_inc_return(&ia->hca->next_vector) %
				(unsigned int)dev->num_comp_vectors;

	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->evd = evd;
	cq->entries = attr.cqe;
	INIT_LIST_HEAD(&cq->srqs);
	cq->cq = __ib_create_cq(dev, kdapl_cq_comp, kdapl_cq_error, cq, &attr,
				ia->consumer);
	if (IS_ERR(cq->cq)) {
		struct ib_cq *err = cq->cq;

		kfree(cq);
		return ERR_CAST(err);
	}
	spin_lock_irqsave(&evd->lock, flags);
	list_add_tail(&cq->link, &evd->cqs);
	spin_unlock_irqrestore(&evd->lock, flags);
	return cq;
}

/**
 * kdapl_cq_claim - find a CQ with room for a work queue
 * @evd: the EVD the completions go to
 * @n: completions that can be outstanding
 * @srq: the SRQ they come from: counted once per CQ; or NULL
 *
 * Context: Process context; the device is present (kdapl_hca_enter()).
 * Return: a CQ, or an ERR_PTR.
 */
struct kdapl_cq *kdapl_cq_claim(struct kdapl_evd *evd, int n,
				struct kdapl_srq *srq)
{
	struct kdapl_cq_srq *s = NULL;
	struct kdapl_cq *cq, *found = NULL;
	unsigned long flags;

	mutex_lock(&evd->mutex);
	list_for_each_entry(cq, &evd->cqs, link) {
		s = srq ? kdapl_cq_find_srq(cq, srq) : NULL;
		if (s || cq->entries - cq->claimed >= n) {
			found = cq;
			break;
		}
	}
	if (!found)
		found = kdapl_cq_create(evd, n);
	if (IS_ERR(found))
		goto out;
	if (s) {
		s->users++;
		goto out;
	}
	if (srq) {
		s = kzalloc(sizeof(*s), GFP_KERNEL);
		if (!s) {
			found = ERR_PTR(-ENOMEM);
			goto out;
		}
		s->srq = srq;
		s->users = 1;
		s->n = n;
		list_add(&s->link, &found->srqs);
	}
	spin_lock_irqsave(&evd->lock, flags);
	found->claimed += n;
	evd->claimed += n;
	spin_unlock_irqrestore(&evd->lock, flags);
out:
	mutex_unlock(&evd->mutex);
	if (!IS_ERR(found) && kdapl_cq_arm(evd))
		kdapl_upcall_schedule(evd);
	return found;
}

void kdapl_cq_unclaim(struct kdapl_cq *cq, int n, struct kdapl_srq *srq)
{
	struct kdapl_evd *evd = cq->evd;
	struct kdapl_cq_srq *s;
	unsigned long flags;

	mutex_lock(&evd->mutex);
	if (srq) {
		s = kdapl_cq_find_srq(cq, srq);
		n = 0;
		if (!--s->users) {
			n = s->n;
			list_del(&s->link);
			kfree(s);
		}
	}
	spin_lock_irqsave(&evd->lock, flags);
	cq->claimed -= n;
	evd->claimed -= n;
	spin_unlock_irqrestore(&evd->lock, flags);
	mutex_unlock(&evd->mutex);
}

/**
 * kdapl_cq_grow - make room for more completions of an SRQ
 * @evd: an EVD that the SRQ feeds
 * @srq: the SRQ
 * @n: buffers that its device queue is to hold
 *
 * Return: 0, or an errno if one of the CQs cannot be made large enough.
 */
int kdapl_cq_grow(struct kdapl_evd *evd, struct kdapl_srq *srq, int n)
{
	struct kdapl_cq_srq *s;
	struct kdapl_cq *cq;
	unsigned long flags;
	int more, err = 0;

	mutex_lock(&evd->mutex);
	list_for_each_entry(cq, &evd->cqs, link) {
		s = kdapl_cq_find_srq(cq, srq);
		if (!s || s->n >= n)
			continue;
		more = n - s->n;
		if (cq->claimed + more > cq->entries) {
			err = ib_resize_cq(cq->cq, cq->claimed + more);
			if (err)
				break;
			cq->entries = cq->claimed + more;
		}
		spin_lock_irqsave(&evd->lock, flags);
		cq->claimed += more;
		evd->claimed += more;
		spin_unlock_irqrestore(&evd->lock, flags);
		s->n = n;
	}
	mutex_unlock(&evd->mutex);
	return err;
}

/* Every QP is gone: on release of the EVD, or when the device leaves. */
void kdapl_cq_destroy_all(struct kdapl_evd *evd)
{
	struct kdapl_cq *cq, *next;
	unsigned long flags;
	LIST_HEAD(cqs);

	mutex_lock(&evd->mutex);
	spin_lock_irqsave(&evd->lock, flags);
	list_splice_init(&evd->cqs, &cqs);
	spin_unlock_irqrestore(&evd->lock, flags);
	mutex_unlock(&evd->mutex);
	list_for_each_entry_safe(cq, next, &cqs, link) {
		ib_destroy_cq(cq->cq);
		kfree(cq);
	}
}
