// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: how they are polled and armed.
 *
 * The CQ API of ib_core polls a batch and then runs one callback after another.
 * An EVD needs more: a query in any context must see all that the device has
 * completed, in order, and an EVD without upcall must not be polled at all. So
 * an EVD owns plain CQs and polls them under evd->lock, a batch at a time;
 * every holder of the lock sees the ledger and the list in agreement.
 */
#include "ep_state.h"
#include "evd.h"
#include "ia.h"

/* Of @n completions of @cq the first @done are events. Return whether the others wait. */
static bool kdapl_cq_stall(struct kdapl_evd *evd, struct kdapl_cq *cq, int done, int n)
{
	struct kdapl_stall *stall = &evd->stall;

	lockdep_assert_held(&evd->lock);

	kdapl_section(KDAPL_SECTION - stall->room);
	stall->polled += n;
	if (done == n)
		return false;
	stall->next = done;
	stall->end = n;
	WRITE_ONCE(stall->complete, cq->complete);
	return true;
}

/*
 * Begin a section by continuing with completions that wait. Return whether there were
 * any: then the caller polls no CQ, and more completions may be on the CQs.
 */
static bool kdapl_cq_resume(struct kdapl_evd *evd, struct kdapl_later *later)
{
	struct kdapl_stall *stall = &evd->stall;

	lockdep_assert_held(&evd->lock);

	stall->room = KDAPL_SECTION;
	if (!stall->complete)
		return false;
	stall->next += stall->complete(evd, evd->wc + stall->next,
				       stall->end - stall->next, later);
	if (stall->next == stall->end)
		WRITE_ONCE(stall->complete, NULL);
	kdapl_section(KDAPL_SECTION - stall->room);
	return true;
}

/*
 * Poll @cq for @room completions. Return their number; or @room if some of them wait, so
 * that the caller polls no other CQ.
 */
static int kdapl_cq_poll_one(struct kdapl_evd *evd, struct kdapl_cq *cq, int room,
			     struct kdapl_later *later)
{
	int n = ib_poll_cq(cq->cq, room, evd->wc);
	int done;

	if (n <= 0)
		return 0;
	/* Any of them may be solicited; a work completion does not tell. */
	if (unlikely(evd->solicited) && !evd->armed)
		evd->solicited_event = true;
	done = cq->complete(evd, evd->wc, n, later);
	if (static_branch_unlikely(&kdapl_dma_syncs) && kdapl_cq_stall(evd, cq, done, n))
		return room;
	return n;
}

/*
 * Poll the CQs at positions @from up to @to until @room completions are found; the next
 * poll then begins behind the last CQ polled.
 */
static int kdapl_cq_poll_part(struct kdapl_evd *evd, u32 from, u32 to, int room,
			      struct kdapl_later *later)
{
	struct kdapl_cq *cq;
	int sum = 0;
	u32 pos = 0;

	list_for_each_entry(cq, &evd->cqs, link) {
		if (unlikely(pos >= to))
			break;
		if (unlikely(pos++ < from))
			continue;
		sum += kdapl_cq_poll_one(evd, cq, room - sum, later);
		if (sum == room) {
			evd->turn = list_is_last(&cq->link, &evd->cqs) ? 0 : pos;
			break;
		}
	}
	return sum;
}

/**
 * kdapl_cq_poll - move a batch of completions to the event list
 * @evd: the EVD; its CQs are polled in turn, so that a busy CQ does not hide the others
 * @later: what the caller does after unlocking
 *
 * Return: the number of completions; less than KDAPL_POLL_BATCH means that all CQs
 * are empty and no completion waits.
 */
int kdapl_cq_poll(struct kdapl_evd *evd, struct kdapl_later *later)
{
	u32 turn = evd->turn;
	int n;

	lockdep_assert_held(&evd->lock);

	if (static_branch_unlikely(&kdapl_dma_syncs) && kdapl_cq_resume(evd, later))
		return KDAPL_POLL_BATCH;
	if (likely(evd->ncqs == 1))
		return kdapl_cq_poll_one(evd, list_first_entry(&evd->cqs, struct kdapl_cq,
							       link),
					 KDAPL_POLL_BATCH, later);
	evd->turn = 0;
	n = kdapl_cq_poll_part(evd, turn, U32_MAX, KDAPL_POLL_BATCH, later);
	if (unlikely(turn && n < KDAPL_POLL_BATCH))
		n += kdapl_cq_poll_part(evd, 0, turn, KDAPL_POLL_BATCH - n,
					later);
	return n;
}

/* Put the CQs that have notified on evd->to_poll. litmus: notified */
static void kdapl_cq_take_notified(struct kdapl_evd *evd)
{
	struct kdapl_cq *cq, *next;

	if (llist_empty(&evd->notified))
		return;
	llist_for_each_entry_safe(cq, next, llist_del_all(&evd->notified),
				  notified) {
		/*
		 * Pairs with test_and_set_bit() in kdapl_cq_comp(), which overwrites
		 * cq->notified.next if it finds the bit clear; release, so that the link
		 * was read before. litmus: notified
		 */
		clear_bit_unlock(KDAPL_CQ_NOTIFIED, &cq->state);
		/*
		 * If kdapl_cq_comp() finds the bit set, its completions must be polled by
		 * the caller's next poll: full barrier. litmus: notified
		 */
		smp_mb__after_atomic();
		if (list_empty(&cq->to_poll))
			list_add_tail(&cq->to_poll, &evd->to_poll);
	}
}

/**
 * kdapl_cq_poll_notified - move a batch of completions to the event list, for the
 *	dispatcher
 * @evd: the EVD
 * @later: what the caller does after unlocking
 *
 * CQs that are armed and have not notified are left out: they have no completions, or
 * will notify. So an EVD with thousands of Endpoints polls few of its CQs. A consumer's
 * own query must not depend on interrupts, and polls all CQs.
 *
 * Return: as kdapl_cq_poll(), which is called if there is one CQ, or if Endpoints wait
 * for solicited completions, since a CQ does not notify of others.
 */
int kdapl_cq_poll_notified(struct kdapl_evd *evd, struct kdapl_later *later)
{
	struct kdapl_cq *cq;
	int sum = 0;

	lockdep_assert_held(&evd->lock);

	if (likely(evd->ncqs <= 1) || evd->solicited)
		return kdapl_cq_poll(evd, later);
	if (static_branch_unlikely(&kdapl_dma_syncs) && kdapl_cq_resume(evd, later))
		return KDAPL_POLL_BATCH;
	kdapl_cq_take_notified(evd);
	list_for_each_entry(cq, &evd->to_poll, to_poll) {
		sum += kdapl_cq_poll_one(evd, cq, KDAPL_POLL_BATCH - sum, later);
		if (sum == KDAPL_POLL_BATCH) {
			/* A busy CQ must not hide the others. */
			if (!list_is_last(&cq->to_poll, &evd->to_poll))
				list_rotate_to_front(cq->to_poll.next,
						     &evd->to_poll);
			break;
		}
	}
	return sum;
}

/* Poll as kdapl_cq_poll() does, and reduce *@left by the completions taken off the CQs. */
static int kdapl_cq_poll_counted(struct kdapl_evd *evd, struct kdapl_later *later, s64 *left)
{
	u32 polled = evd->stall.polled;
	int n = kdapl_cq_poll(evd, later);

	*left -= static_branch_unlikely(&kdapl_dma_syncs) ?
			evd->stall.polled - polled : (u32)n;
	return n;
}

/*
 * Upper bound of the completions to poll until all that were on the CQs at entry are
 * taken: the CQs are polled in turn, and more completions may arrive.
 */
static s64 kdapl_cq_capacity(struct kdapl_evd *evd)
{
	lockdep_assert_held(&evd->lock);

	return (s64)evd->charged * evd->ncqs;
}

/**
 * kdapl_cq_poll_all_lock - poll all that has completed, and keep the lock
 * @evd: the EVD
 *
 * Completions that arrive during the call need not be polled, so a device which completes
 * as fast as it is polled does not hold the caller.
 *
 * Context: Any.
 * Return: interrupt flags; evd->lock is held.
 */
unsigned long kdapl_cq_poll_all_lock(struct kdapl_evd *evd)
	__acquires(&evd->lock)
{
	struct kdapl_later later __uninitialized;
	unsigned long flags;
	bool moved = false;
	s64 left;
	int n;

	later.n = 0;
	rcu_read_lock();
	spin_lock_irqsave(&evd->lock, flags);
	left = kdapl_cq_capacity(evd);
	do {
		n = kdapl_cq_poll_counted(evd, &later, &left);
		if (!n)
			break;
		/* Keep the critical section short, and report marks in order. */
		spin_unlock_irqrestore(&evd->lock, flags);
		kdapl_later_run(&later);
		moved = true;
		spin_lock_irqsave(&evd->lock, flags);
	} while (kdapl_cq_stalled(evd) || (n == KDAPL_POLL_BATCH && left > 0));
	rcu_read_unlock();
	/* The dispatcher will not find these completions on the CQ any more. */
	if (moved && kdapl_policy_active(evd->policy))
		kdapl_upcall_schedule(evd);
	return flags;
}

void kdapl_cq_poll_all(struct kdapl_evd *evd)
{
	unsigned long flags = kdapl_cq_poll_all_lock(evd);

	spin_unlock_irqrestore(&evd->lock, flags);
}

/*
 * Arm the CQs on evd->to_poll, and those that are armed differently from @how. Return
 * whether completions are there already.
 */
static bool kdapl_cq_rearm(struct kdapl_evd *evd, enum ib_cq_notify_flags how)
{
	struct kdapl_cq *cq, *next;
	bool missed = false;

	lockdep_assert_held(&evd->lock);

	if (likely(evd->ncqs == 1)) {
		evd->armed = true;
		evd->armed_how = how;
		return ib_req_notify_cq(list_first_entry(&evd->cqs, struct kdapl_cq,
							 link)->cq, how) > 0;
	}
	if (unlikely(how != evd->armed_how)) {
		list_for_each_entry(cq, &evd->cqs, link)
			if (list_empty(&cq->to_poll))
				list_add_tail(&cq->to_poll, &evd->to_poll);
		evd->armed_how = how;
	}
	if (unlikely(evd->ncqs > 1))
		kdapl_cq_take_notified(evd);
	list_for_each_entry_safe(cq, next, &evd->to_poll, to_poll)
		if (ib_req_notify_cq(cq->cq, how) > 0)
			missed = true;
		else if (unlikely(evd->ncqs > 1))
			list_del_init(&cq->to_poll);
	evd->armed = true;
	return missed;
}

/**
 * kdapl_cq_arm - arm the CQs if upcalls, watchers or a possible overflow need it
 * @evd: the EVD
 *
 * Context: Any.
 * Return: true if the dispatcher has something to do already.
 */
bool kdapl_cq_arm(struct kdapl_evd *evd)
{
	enum ib_cq_notify_flags how = IB_CQ_REPORT_MISSED_EVENTS;
	unsigned long flags;
	bool again;

	spin_lock_irqsave(&evd->lock, flags);
	again = kdapl_evd_is_due(evd);
	/* Without watchers, an EVD that cannot overflow needs no interrupt. */
	if (kdapl_policy_active(evd->policy) || evd->watchers ||
	    evd->expected > (int)evd->qlen) {
		how |= evd->solicited && !evd->watchers &&
		       !kdapl_has_quirk(evd->obj.ia->hca, KDAPL_QUIRK_SOLICITED) ?
			       IB_CQ_SOLICITED : IB_CQ_NEXT_COMP;
		if (kdapl_cq_rearm(evd, how)) {
			again = true;
			/* One of the missed completions may be solicited. */
			evd->solicited_event = evd->solicited;
		}
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	return again;
}

/**
 * kdapl_cq_arm_for_upcall - have completions noticed while an upcall runs
 * @evd: a watched EVD whose CQs were just polled; its dispatcher is about to make the
 *	first upcall of a run
 *
 * Completions from now on queue a work item again, so it may end with kdapl_evd_is_due()
 * in place of kdapl_cq_arm(). Arming the CQs before the poll would cost an interrupt on
 * adapters that notify of completions that are there already.
 *
 * Return: true if there are completions already.
 */
bool kdapl_cq_arm_for_upcall(struct kdapl_evd *evd)
{
	lockdep_assert_held(&evd->lock);

	return kdapl_cq_rearm(evd, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) ||
	       kdapl_cq_stalled(evd);
}

/* Poll one batch, schedule the dispatcher for it, and return its size. Context: any. */
static int kdapl_cq_poll_deliver(struct kdapl_evd *evd)
{
	struct kdapl_later later __uninitialized;
	unsigned long flags;
	int n;

	later.n = 0;
	rcu_read_lock();
	spin_lock_irqsave(&evd->lock, flags);
	n = kdapl_cq_poll_notified(evd, &later);
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_later_run(&later);
	rcu_read_unlock();
	/* The dispatcher will not find these completions on the CQ any more. */
	if (n && kdapl_policy_active(READ_ONCE(evd->policy)))
		kdapl_upcall_schedule(evd);
	return n;
}

/*
 * Poll for @budget completions, or until there are none. Return their number; @budget if
 * there may be more. Context: any.
 */
int kdapl_cq_poll_budget(struct kdapl_evd *evd, int budget)
{
	int n, done = 0;

	do {
		n = kdapl_cq_poll_deliver(evd);
		done += n;
	} while (n && done < budget);
	return min(done, budget);
}

/*
 * Softirq poll for watched EVDs whose dispatcher is in an upcall, or is a work
 * item: an SRQ with buffers waiting for room in the device cannot wait for a
 * CPU.
 */
int kdapl_cq_softirq_poll(struct irq_poll *iop, int budget)
{
	struct kdapl_evd *evd = container_of(iop, struct kdapl_evd,
					     softirq_poll);
	bool alive;

	if (kdapl_cq_poll_budget(evd, budget) == budget)
		return budget;
	/* kdapl_evd_release() waits for this handler until irq_poll_complete(). */
	alive = kref_get_unless_zero(&evd->obj.ref);
	irq_poll_complete(iop);
	/* Pairs as in kdapl_upcall_softirq(). litmus: solicited */
	smp_mb__after_atomic();
	if (!alive)
		return 0;
	kdapl_cq_arm(evd);
	/* Completions from before the arming cause no interrupt; later ones do. */
	if (kdapl_cq_poll_deliver(evd))
		irq_poll_sched(iop);
	kdapl_obj_put(&evd->obj);
	return 0;
}

/*
 * Schedule a poll of the CQs of @evd, by the dispatcher or in softirq. Context: any, also
 * with driver locks held.
 */
void kdapl_cq_schedule_poll(struct kdapl_evd *evd)
{
	kdapl_upcall_schedule(evd);
	if (unlikely(READ_ONCE(evd->watchers))) {
		/*
		 * Pairs with the barrier in kdapl_upcall_run().
		 * litmus: upcaller, upcaller-late
		 */
		smp_mb();
		/* The dispatcher is in an upcall, perhaps for long, or is a work item. */
		if (READ_ONCE(evd->upcaller) ||
		    (READ_ONCE(evd->softirq_watchers) && !evd->softirq))
			irq_poll_sched(&evd->softirq_poll);
	}
}

/*
 * Change how soon one watcher of @evd needs arrivals noticed, from @was to @now.
 * Context: any.
 */
void kdapl_cq_watch(struct kdapl_evd *evd, enum kdapl_watch was,
		    enum kdapl_watch now)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	evd->watchers += (now != KDAPL_WATCH_NONE) - (was != KDAPL_WATCH_NONE);
	evd->softirq_watchers += (now == KDAPL_WATCH_SOFTIRQ) -
			  (was == KDAPL_WATCH_SOFTIRQ);
	spin_unlock_irqrestore(&evd->lock, flags);
	if (now > was && kdapl_cq_arm(evd))
		kdapl_cq_schedule_poll(evd);
}

/* Completion handler of a CQ. Context: any, also with driver locks held. */
void kdapl_cq_comp(struct ib_cq *ibcq, void *context)
{
	struct kdapl_cq *cq = context;
	struct kdapl_evd *evd = cq->evd;

	/* Pairs with the barriers at the end of a run of the dispatcher. litmus: solicited */
	if (READ_ONCE(evd->solicited))
		WRITE_ONCE(evd->solicited_event, true);
	/* A single CQ is always on evd->to_poll. litmus: notified, cq-ncqs */
	if (unlikely(READ_ONCE(evd->ncqs) > 1) &&
	    !test_and_set_bit(KDAPL_CQ_NOTIFIED, &cq->state))
		llist_add(&cq->notified, &evd->notified);
	kdapl_cq_schedule_poll(evd);
}

/* Event handler of a CQ. Context: any, also with driver locks held. */
void kdapl_cq_error(struct ib_event *event, void *context)
{
	struct kdapl_cq *cq = context;
	struct kdapl_evd *evd = cq->evd;
	char name[IB_DEVICE_NAME_MAX];

	/* Pairs with kdapl_qp_start(). litmus: cq-failed */
	WRITE_ONCE(cq->failed, true);
	if (kref_get_unless_zero(&evd->obj.ref) &&
	    !queue_work(kdapl_wq, &evd->failed))
		kdapl_obj_put(&evd->obj);
	kdapl_hca_name(evd->obj.ia->hca, name);
	pr_err_ratelimited("kdapl: %s: completion queue: %s\n", name,
			   ib_event_msg(event->event));
}

/*
 * Work item: a CQ has failed, and an unknown set of completions is lost. Break the
 * Endpoints that use the CQ, which completes all their requests and receives, and report
 * the EVD to the consumer.
 */
void kdapl_cq_failed(struct work_struct *work)
{
	struct kdapl_evd *evd = container_of(work, struct kdapl_evd, failed);
	struct kdapl_obj *obj = NULL;

	kdapl_async_post(&evd->overflow);
	while ((obj = kdapl_obj_next(evd->obj.ia, obj)))
		if (kdapl_type(obj) == DAT_HANDLE_TYPE_EP)
			kdapl_ep_check_cqs(obj);
	kdapl_obj_put(&evd->obj);
}

/* Poll the CQs of all EVDs of an IA whose handles the consumer has. */
void kdapl_ia_poll_all(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj = NULL;

	while ((obj = kdapl_obj_next(ia, obj)))
		if (kdapl_type(obj) == DAT_HANDLE_TYPE_EVD &&
		    kdapl_obj_published(obj))
			kdapl_cq_poll_all(container_of(obj, struct kdapl_evd,
						       obj));
}
