// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: creation, and room for the work queues that share them.
 *
 * A CQ must have room for all completions of its work queues, or the device
 * breaks it. Not every device can resize a CQ, so an EVD that needs more room
 * gets another CQ, which doubles the total room. The receive buffers of an SRQ
 * are counted once for all its Endpoints that share a CQ. evd->mutex protects the
 * charges.
 */
#include <linux/slab.h>
#include <dat/kdat_linux.h>
#include "evd.h"
#include "ia.h"

/* The smallest CQ that is created, so that small Endpoints share one. */
#define KDAPL_CQ_MIN 128

struct kdapl_cq_srq {
	struct list_head link;
	struct kdapl_srq *srq;
	int users;
	int n;
};

static struct kdapl_cq_srq *kdapl_cq_find_srq(struct kdapl_cq *cq,
					      struct kdapl_srq *srq)
{
	struct kdapl_cq_srq *s;

	list_for_each_entry(s, &cq->srqs, link)
		if (s->srq == srq)
			return s;
	return NULL;
}

/*
 * Return the completion vector of the CQs of @evd. If the consumer has set none, use the
 * vector of @beside, which gets the other completions of the same Endpoint: with
 * different vectors each message would move between two CPUs. litmus: none, next_vector
 * is a count.
 */
static int kdapl_cq_vector(struct kdapl_evd *evd, const struct kdapl_evd *beside)
{
	int vector = READ_ONCE(beside->vector);

	lockdep_assert_held(&evd->mutex);

	if (evd->vector != KDAT_VECTOR_ANY)
		return evd->vector;
	if (evd->cq_vector == KDAT_VECTOR_ANY) {
		if (vector == KDAT_VECTOR_ANY)
			vector = READ_ONCE(beside->cq_vector);
		if (vector == KDAT_VECTOR_ANY)
			vector = atomic_inc_return(&evd->obj.ia->hca->next_vector) &
				 INT_MAX;
		WRITE_ONCE(evd->cq_vector, vector);
	}
	return evd->cq_vector;
}

/* Create the verbs object of @cq with room for at least @n completions. */
static int kdapl_cq_make(struct kdapl_evd *evd, struct kdapl_cq *cq, int n,
			 int vector)
{
	struct kdapl_ia *ia = evd->obj.ia;
	struct ib_device *dev = ia->hca->dev;
	struct ib_cq_init_attr attr = {
		.cqe = min(n, dev->attrs.max_cqe),
		.comp_vector = vector % dev->num_comp_vectors,
	};

	cq->entries = attr.cqe;
	cq->cq = __ib_create_cq(dev, kdapl_cq_comp, kdapl_cq_error, cq, &attr,
				ia->consumer);
	return PTR_ERR_OR_ZERO(cq->cq);
}

/* Return the room in all CQs of @evd. */
static int kdapl_cq_room(struct kdapl_evd *evd)
{
	struct kdapl_cq *cq;
	int room = 0;

	list_for_each_entry(cq, &evd->cqs, link)
		if (check_add_overflow(room, cq->entries, &room))
			return INT_MAX;
	return room;
}

static struct kdapl_cq *kdapl_cq_create(struct kdapl_evd *evd, int n, int also,
					const struct kdapl_evd *beside,
					kdapl_complete_fn complete)
{
	int least = max3(n, (int)evd->qlen, KDAPL_CQ_MIN), size;
	int room = kdapl_cq_room(evd), vector = kdapl_cq_vector(evd, beside);
	struct kdapl_cq *cq;
	unsigned long flags;
	int err;

	if (n > evd->obj.ia->hca->dev->attrs.max_cqe)
		return ERR_PTR(-ENOMEM);
	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->evd = evd;
	cq->complete = complete;
	INIT_LIST_HEAD(&cq->srqs);
	if (check_add_overflow(n, also, &size))
		size = n;
	/* Doubling the room keeps the CQs of thousands of Endpoints few. */
	size = max3(size, least, room);
	err = kdapl_cq_make(evd, cq, size, vector);
	if (err && size > least)
		err = kdapl_cq_make(evd, cq, least, vector);
	if (err) {
		kfree(cq);
		return ERR_PTR(err);
	}
	spin_lock_irqsave(&evd->lock, flags);
	list_add_tail(&cq->link, &evd->cqs);
	list_add_tail(&cq->to_poll, &evd->to_poll);
	WRITE_ONCE(evd->ncqs, evd->ncqs + 1);
	spin_unlock_irqrestore(&evd->lock, flags);
	return cq;
}

/*
 * Expect @delta more completion events of @evd, posted and not reaped. Device queues are
 * longer, so kdapl_cq_arm() uses this count and not the charges. Context: any.
 */
void kdapl_cq_expect(struct kdapl_evd *evd, int delta)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	evd->expected += delta;
	spin_unlock_irqrestore(&evd->lock, flags);
}

/**
 * kdapl_cq_charge - find a CQ with room for a work queue, and charge it
 * @evd: the EVD the completions go to
 * @n: completions that can be outstanding
 * @also: completions of the other queue of the same QP, if it is charged next: a new CQ
 *	has room for both, since each CQ costs polling and arming
 * @beside: the EVD of the other queue
 * @srq: the SRQ of the completions, counted once per CQ; or NULL
 * @complete: gets the polled completions; the same for all queues of an EVD
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: a CQ, or an ERR_PTR.
 */
struct kdapl_cq *kdapl_cq_charge(struct kdapl_evd *evd, int n, int also,
				 const struct kdapl_evd *beside,
				 struct kdapl_srq *srq,
				 kdapl_complete_fn complete)
{
	struct kdapl_cq_srq *s = NULL;
	struct kdapl_cq *cq, *found = NULL;
	unsigned long flags;

	lockdep_assert_held(&evd->obj.ia->hca->sem);

	mutex_lock(&evd->mutex);
	list_for_each_entry(cq, &evd->cqs, link) {
		if (READ_ONCE(cq->failed))
			continue;
		s = srq ? kdapl_cq_find_srq(cq, srq) : NULL;
		if (s || cq->entries - cq->charged >= n) {
			found = cq;
			break;
		}
	}
	if (!found)
		found = kdapl_cq_create(evd, n, also, beside, complete);
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
	found->charged += n;
	evd->charged += n;
	spin_unlock_irqrestore(&evd->lock, flags);
out:
	mutex_unlock(&evd->mutex);
	if (!IS_ERR(found) && kdapl_cq_arm(evd))
		kdapl_upcall_schedule(evd);
	return found;
}

void kdapl_cq_uncharge(struct kdapl_cq *cq, int n, struct kdapl_srq *srq)
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
	cq->charged -= n;
	evd->charged -= n;
	spin_unlock_irqrestore(&evd->lock, flags);
	mutex_unlock(&evd->mutex);
}

/**
 * kdapl_cq_grow - make room for more completions of an SRQ
 * @evd: an EVD that completes the SRQ's buffers
 * @srq: the SRQ
 * @n: new size of its device queue
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
		if (!s || s->n >= n || READ_ONCE(cq->failed))
			continue;
		more = n - s->n;
		if (cq->charged + more > cq->entries) {
			err = kdapl_resize_cq(cq->cq, cq->charged + more);
			if (err)
				break;
			cq->entries = cq->charged + more;
		}
		spin_lock_irqsave(&evd->lock, flags);
		cq->charged += more;
		evd->charged += more;
		spin_unlock_irqrestore(&evd->lock, flags);
		s->n = n;
	}
	mutex_unlock(&evd->mutex);
	return err;
}

/* Destroy the CQs. No QP is left: the EVD is released, or the device leaves. */
void kdapl_cq_destroy_all(struct kdapl_evd *evd)
{
	struct kdapl_cq *cq, *next;
	unsigned long flags;
	LIST_HEAD(cqs);

	mutex_lock(&evd->mutex);
	spin_lock_irqsave(&evd->lock, flags);
	list_splice_init(&evd->cqs, &cqs);
	INIT_LIST_HEAD(&evd->to_poll);
	/* With ncqs 0 evd->notified is not read any more. */
	WRITE_ONCE(evd->ncqs, 0);
	spin_unlock_irqrestore(&evd->lock, flags);
	mutex_unlock(&evd->mutex);
	list_for_each_entry(cq, &cqs, link)
		ib_destroy_cq(cq->cq);
	init_llist_head(&evd->notified);
	list_for_each_entry_safe(cq, next, &cqs, link)
		kfree(cq);
}
