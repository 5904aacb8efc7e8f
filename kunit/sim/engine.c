// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Engines execute QPs: sim_schedule() enters a QP, sim_qp_run() executes some of
 * its requests. A QP that cannot go on is parked; sim_park() says why, and what
 * ends the reason schedules it again. Also here: the contexts that completion
 * handlers are called in, and LAST_WQE_REACHED that is late.
 */
#include <linux/slab.h>
#include <asm/irq_work.h>
#include "sim.h"

/* Protects all lists of parked QPs, and those of late events. */
static DEFINE_SPINLOCK(sim_park_lock);

/* ---- Execution ----------------------------------------------------------- */

/*
 * Have @e executed soon. A softirq raised in process context with interrupts off
 * waits for ksoftirqd, unless an interrupt comes first: make one if we can.
 */
static void sim_kick(struct sim_engine *e)
{
	if (sim_switch(e->dev, engine_ctx)) {
		queue_work(system_highpri_wq, &e->work);
	} else if (in_interrupt()) {
		tasklet_schedule(&e->tasklet);
	} else if (irqs_disabled()) {
		if (arch_irq_work_has_interrupt())
			irq_work_queue(&e->irq);
		else
			tasklet_schedule(&e->tasklet);
	} else {
		local_bh_disable();
		tasklet_schedule(&e->tasklet);
		local_bh_enable();
	}
}

/* Enter @qp, unless it is being destroyed; returns whether it was not there. */
static bool sim_enter(struct sim_qp *qp)
{
	struct sim_engine *e = qp->engine;
	unsigned long flags;
	bool entered;

	spin_lock_irqsave(&e->lock, flags);
	entered = !qp->dead && list_empty(&qp->ready);
	if (entered)
		list_add_tail(&qp->ready, &e->ready);
	spin_unlock_irqrestore(&e->lock, flags);
	return entered;
}

/* Execute @qp soon. The caller has a reference. Context: any. */
void sim_schedule(struct sim_qp *qp)
{
	if (sim_enter(qp))
		sim_kick(qp->engine);
}

void sim_schedule_all(struct sim_dev *dev)
{
	unsigned long flags, id;
	struct sim_qp *qp;

	xa_lock_irqsave(&sim_qps, flags);
	xa_for_each(&sim_qps, id, qp)
		if (qp->dev == dev)
			sim_schedule(qp);
	xa_unlock_irqrestore(&sim_qps, flags);
}

/* @qp is not executed again; it may be running now. */
void sim_unschedule(struct sim_qp *qp)
{
	struct sim_engine *e = qp->engine;
	unsigned long flags;

	spin_lock_irqsave(&e->lock, flags);
	qp->dead = true;
	list_del_init(&qp->ready);
	spin_unlock_irqrestore(&e->lock, flags);
}

static struct sim_qp *sim_next(struct sim_engine *e)
{
	unsigned long flags;
	struct sim_qp *qp;

	spin_lock_irqsave(&e->lock, flags);
	qp = list_first_entry_or_null(&e->ready, struct sim_qp, ready);
	if (qp) {
		list_del_init(&qp->ready);
		qp->running = true;
		refcount_inc(&qp->ref);
	}
	spin_unlock_irqrestore(&e->lock, flags);
	return qp;
}

/*
 * Give SIM_TURNS turns to scheduled QPs. If somebody else executes this engine it
 * looks at the list once more when it is through. Returns whether there is more.
 */
static bool sim_execute(struct sim_engine *e)
{
	struct sim_qp *qp;
	int turns;

	if (test_and_set_bit_lock(0, &e->busy))
		return false;
	for (turns = 0; turns < SIM_TURNS; turns++) {
		qp = sim_next(e);
		if (!qp)
			break;
		if (sim_qp_run(qp))
			sim_enter(qp);
		/* Pairs with sim_qp_empty(). */
		smp_store_release(&qp->running, false);
		sim_qp_put(qp);
	}
	clear_bit_unlock(0, &e->busy);
	/* Who failed to set the bit has entered its QP before. */
	smp_mb__after_atomic();
	return !list_empty(&e->ready);
}

static void sim_tasklet(struct tasklet_struct *t)
{
	struct sim_engine *e = from_tasklet(e, t, tasklet);

	if (sim_execute(e))
		tasklet_schedule(t);
}

static void sim_interrupt(struct irq_work *work)
{
	struct sim_engine *e = container_of(work, struct sim_engine, irq);

	tasklet_schedule(&e->tasklet);
}

static void sim_work(struct work_struct *work)
{
	struct sim_engine *e = container_of(work, struct sim_engine, work);
	bool more;

	local_bh_disable();
	more = sim_execute(e);
	local_bh_enable();
	if (more)
		queue_work(system_highpri_wq, work);
}

/* ---- Parked QPs ---------------------------------------------------------- */

/* What min_rnr_timer stands for, in microseconds. */
static unsigned int sim_rnr_usecs(u8 timer)
{
	timer &= 31;
	if (timer < 2)
		return timer ? 10 : 655360;
	return (timer & 1 ? 30 : 20) << (timer / 2 - 1);
}

/*
 * How long the retries of @qp last, in jiffies; MAX_JIFFY_OFFSET: for ever. The
 * time between two tries after an RNR NAK is the peer's choice; as peers are of
 * the same kind, that of @qp is taken for it.
 */
static unsigned long sim_patience(struct sim_qp *qp, enum sim_wait why)
{
	u8 timeout = qp->attr.timeout & 31;
	u64 usecs;

	switch (why) {
	case SIM_WAIT_RNR:
		if (qp->attr.rnr_retry >= 7)
			return MAX_JIFFY_OFFSET;
		usecs = (u64)qp->attr.rnr_retry *
			sim_rnr_usecs(qp->attr.min_rnr_timer);
		break;
	case SIM_WAIT_PEER:
		if (!timeout)
			return MAX_JIFFY_OFFSET;
		usecs = ((4096ULL << timeout) / 1000) * (qp->attr.retry_cnt + 1);
		break;
	default:
		return MAX_JIFFY_OFFSET;
	}
	return usecs_to_jiffies(min_t(u64, usecs, 60 * USEC_PER_SEC));
}

/**
 * sim_park - a QP cannot go on
 * @qp: running
 * @rq: a receive posted there helps; its lock is held; may be NULL
 * @why: says how long to wait
 *
 * If the request at the head has waited before, its deadline stays as it was.
 */
void sim_park(struct sim_qp *qp, struct sim_rq *rq, enum sim_wait why)
{
	unsigned long patience = sim_patience(qp, why);
	struct sim_dev *dev = qp->dev;
	unsigned long flags;

	spin_lock_irqsave(&sim_park_lock, flags);
	qp->parked = true;
	if (rq && !qp->waits_for) {
		qp->waits_for = rq;
		list_add_tail(&qp->waiting, &rq->waiters);
		rq->n_waiters++;
	}
	if (!qp->has_deadline && patience != MAX_JIFFY_OFFSET) {
		qp->has_deadline = true;
		qp->deadline = jiffies + patience;
		list_add_tail(&qp->timed, &dev->timed);
		mod_delayed_work(system_wq, &dev->timer, min(patience, 1UL));
	}
	spin_unlock_irqrestore(&sim_park_lock, flags);
}

static struct sim_qp *sim_first_waiter(struct sim_rq *rq)
{
	struct sim_qp *qp;

	lockdep_assert_held(&sim_park_lock);
	qp = list_first_entry_or_null(&rq->waiters, struct sim_qp, waiting);
	return qp && refcount_inc_not_zero(&qp->ref) ? qp : NULL;
}

static void sim_schedule_and_put(struct sim_qp *qp)
{
	if (!qp)
		return;
	sim_schedule(qp);
	sim_qp_put(qp);
}

/*
 * @qp has ended, waits for something else or has got on: it is in no list. Who
 * was behind it in the queue for receives may have one now.
 */
void sim_unpark(struct sim_qp *qp)
{
	struct sim_qp *next = NULL;
	unsigned long flags;

	if (!READ_ONCE(qp->parked))
		return;
	spin_lock_irqsave(&sim_park_lock, flags);
	if (qp->waits_for) {
		list_del_init(&qp->waiting);
		qp->waits_for->n_waiters--;
		next = sim_first_waiter(qp->waits_for);
		qp->waits_for = NULL;
	}
	list_del_init(&qp->timed);
	qp->has_deadline = false;
	qp->parked = false;
	spin_unlock_irqrestore(&sim_park_lock, flags);
	sim_schedule_and_put(next);
}

bool sim_is_overdue(struct sim_qp *qp)
{
	return qp->has_deadline && time_after_eq(jiffies, qp->deadline);
}

/* Receives were posted: one QP tries; if it succeeds the next one does. */
void sim_wake_waiter(struct sim_rq *rq)
{
	struct sim_qp *qp;
	unsigned long flags;

	if (!READ_ONCE(rq->n_waiters))
		return;
	spin_lock_irqsave(&sim_park_lock, flags);
	qp = sim_first_waiter(rq);
	spin_unlock_irqrestore(&sim_park_lock, flags);
	sim_schedule_and_put(qp);
}

/* @rq goes: whoever waits for it has to see that. */
void sim_wake_waiters(struct sim_rq *rq)
{
	struct sim_qp *qp, *next;
	unsigned long flags;

	spin_lock_irqsave(&sim_park_lock, flags);
	list_for_each_entry_safe(qp, next, &rq->waiters, waiting) {
		list_del_init(&qp->waiting);
		qp->waits_for = NULL;
		sim_schedule(qp);
	}
	rq->n_waiters = 0;
	spin_unlock_irqrestore(&sim_park_lock, flags);
}

/* Schedule who is overdue. */
static void sim_timer(struct work_struct *work)
{
	struct sim_dev *dev = container_of(to_delayed_work(work),
					   struct sim_dev, timer);
	unsigned long now = jiffies, next = 0;
	struct sim_qp *qp, *tmp;
	unsigned long flags;

	spin_lock_irqsave(&sim_park_lock, flags);
	list_for_each_entry_safe(qp, tmp, &dev->timed, timed) {
		if (time_after_eq(now, qp->deadline)) {
			list_del_init(&qp->timed);
			sim_schedule(qp);
		} else if (!next || qp->deadline - now < next) {
			next = qp->deadline - now;
		}
	}
	if (next)
		mod_delayed_work(system_wq, &dev->timer, next);
	spin_unlock_irqrestore(&sim_park_lock, flags);
}

/* ---- Late events --------------------------------------------------------- */

/* Raise LAST_WQE_REACHED of @qp in lwqe_ms. */
void sim_event_late(struct sim_qp *qp)
{
	unsigned long delay = msecs_to_jiffies(sim_switch(qp->dev, lwqe_ms));
	unsigned long flags;

	spin_lock_irqsave(&sim_park_lock, flags);
	if (list_empty(&qp->late)) {
		qp->late_at = jiffies + delay;
		list_add_tail(&qp->late, &qp->dev->late);
		queue_delayed_work(system_wq, &qp->dev->late_timer, delay);
	}
	spin_unlock_irqrestore(&sim_park_lock, flags);
}

void sim_event_cancel(struct sim_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&sim_park_lock, flags);
	list_del_init(&qp->late);
	spin_unlock_irqrestore(&sim_park_lock, flags);
}

/* The next QP whose event is due, referenced. */
static struct sim_qp *sim_next_late(struct sim_dev *dev)
{
	struct sim_qp *qp;
	unsigned long flags;

	spin_lock_irqsave(&sim_park_lock, flags);
	qp = list_first_entry_or_null(&dev->late, struct sim_qp, late);
	if (qp && time_before(jiffies, qp->late_at)) {
		mod_delayed_work(system_wq, &dev->late_timer,
				 qp->late_at - jiffies);
		qp = NULL;
	} else if (qp) {
		list_del_init(&qp->late);
		refcount_inc(&qp->ref);
	}
	spin_unlock_irqrestore(&sim_park_lock, flags);
	return qp;
}

static void sim_late_timer(struct work_struct *work)
{
	struct sim_dev *dev = container_of(to_delayed_work(work),
					   struct sim_dev, late_timer);
	struct sim_qp *qp;

	while ((qp = sim_next_late(dev))) {
		sim_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
		sim_qp_put(qp);
	}
}

/* ---- Completion handlers ------------------------------------------------- */

static void sim_call(struct sim_cq *cq)
{
	if (cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

/* Call @cq's completion handler where comp_ctx says. The CQ is in use. */
void sim_notify(struct sim_cq *cq)
{
	struct sim_notifier *n = &cq->dev->notifier;
	u32 ctx = sim_switch(cq->dev, comp_ctx);
	unsigned long flags;

	if (!ctx) {
		sim_call(cq);
		return;
	}
	spin_lock_irqsave(&n->lock, flags);
	if (list_empty(&cq->notify))
		list_add_tail(&cq->notify, &n->cqs);
	spin_unlock_irqrestore(&n->lock, flags);
	if (ctx == 1)
		irq_work_queue(&n->irq);
	else
		queue_work(system_highpri_wq, &n->work);
}

static void sim_call_all(struct sim_notifier *n)
{
	struct sim_cq *cq;
	unsigned long flags;

	spin_lock_irqsave(&n->lock, flags);
	while ((cq = list_first_entry_or_null(&n->cqs, struct sim_cq, notify))) {
		list_del_init(&cq->notify);
		cq->calling++;
		spin_unlock_irqrestore(&n->lock, flags);
		sim_call(cq);
		spin_lock_irqsave(&n->lock, flags);
		cq->calling--;
	}
	spin_unlock_irqrestore(&n->lock, flags);
	wake_up(&n->called);
}

static void sim_call_irq(struct irq_work *work)
{
	sim_call_all(container_of(work, struct sim_notifier, irq));
}

static void sim_call_work(struct work_struct *work)
{
	sim_call_all(container_of(work, struct sim_notifier, work));
}

static bool sim_is_called(struct sim_cq *cq)
{
	struct sim_notifier *n = &cq->dev->notifier;
	unsigned long flags;
	bool called;

	spin_lock_irqsave(&n->lock, flags);
	list_del_init(&cq->notify);
	called = cq->calling;
	spin_unlock_irqrestore(&n->lock, flags);
	return called;
}

/* No handler of @cq, which nobody uses any more, runs afterwards. */
void sim_unnotify(struct sim_cq *cq)
{
	wait_event(cq->dev->notifier.called, !sim_is_called(cq));
}

/* ---- Beginning and end --------------------------------------------------- */

static void sim_engine_init(struct sim_engine *e, struct sim_dev *dev)
{
	e->dev = dev;
	spin_lock_init(&e->lock);
	INIT_LIST_HEAD(&e->ready);
	tasklet_setup(&e->tasklet, sim_tasklet);
	init_irq_work(&e->irq, sim_interrupt);
	INIT_WORK(&e->work, sim_work);
}

int sim_engines_init(struct sim_dev *dev)
{
	struct sim_notifier *n = &dev->notifier;
	unsigned int i;

	dev->n_engines = num_possible_cpus();
	dev->engines = kcalloc(dev->n_engines, sizeof(*dev->engines),
			       GFP_KERNEL);
	if (!dev->engines)
		return -ENOMEM;
	for (i = 0; i < dev->n_engines; i++)
		sim_engine_init(&dev->engines[i], dev);
	spin_lock_init(&n->lock);
	INIT_LIST_HEAD(&n->cqs);
	init_waitqueue_head(&n->called);
	n->irq = IRQ_WORK_INIT_HARD(sim_call_irq);
	INIT_WORK(&n->work, sim_call_work);
	INIT_LIST_HEAD(&dev->timed);
	INIT_DELAYED_WORK(&dev->timer, sim_timer);
	INIT_LIST_HEAD(&dev->late);
	INIT_DELAYED_WORK(&dev->late_timer, sim_late_timer);
	return 0;
}

/* All QPs have gone. */
void sim_engines_exit(struct sim_dev *dev)
{
	unsigned int i;

	for (i = 0; i < dev->n_engines; i++) {
		cancel_work_sync(&dev->engines[i].work);
		irq_work_sync(&dev->engines[i].irq);
		tasklet_kill(&dev->engines[i].tasklet);
	}
	cancel_delayed_work_sync(&dev->timer);
	cancel_delayed_work_sync(&dev->late_timer);
	irq_work_sync(&dev->notifier.irq);
	cancel_work_sync(&dev->notifier.work);
	kfree(dev->engines);
}
