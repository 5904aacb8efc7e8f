// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Upcalls.
 *
 * Each EVD has one dispatcher, so its upcalls are serialised whatever the
 * policy (DAT_UPCALL_MANY permits concurrency, it does not demand it). The
 * dispatcher of an EVD that carries only DTO and RMR streams is an irq_poll
 * handler and runs in softirq; the dispatcher of any other EVD is a work item. Both take
 * an event off and call the consumer with no lock held until no event is left,
 * then arm the CQs and run again if a completion slipped in between.
 *
 * An EVD without an upcall has a dispatcher as well. It runs only while
 * arrivals must be noticed (an armed watermark, a possible overflow), and moves
 * completions from the device to the list.
 */
#include <linux/module.h>
#include <linux/wait.h>
#include <dat/kdat_linux.h>
#include "evd.h"
#include "ia.h"

#define KDAPL_UPCALL_BUDGET	64

/* Bits of evd->dispatch */
#define KDAPL_UPCALL_QUEUED	0

static struct workqueue_struct *kdapl_upcall_wq;
/*
 * Upcalls of completions have a workqueue of their own: they may wait for a medium whose
 * progress may need an upcall for a connection.
 */
static struct workqueue_struct *kdapl_dto_wq;

/*
 * Pin the module of the upcall function. A module that is being unloaded cannot be
 * pinned, but its exit waits for its last events.
 *
 * In softirq no module is pinned, as all CPUs share the counter of a module: a softirq is
 * an RCU read-side section, and the code of an unloaded module is freed only after a
 * grace period.
 */
static void kdapl_upcall_pin(struct module **pinned, struct kdapl_evd *evd,
			     struct module *owner)
{
	if (evd->softirq || *pinned == owner)
		return;
	if (*pinned)
		module_put(*pinned);
	*pinned = owner && try_module_get(owner) ? owner : NULL;
}

/*
 * Make at most @budget upcalls; without an upcall poll as many completions. Return their
 * number. @armed: set if the CQs were armed meanwhile
 */
static int kdapl_upcall_run(struct kdapl_evd *evd, int budget, bool *armed)
{
	struct kdapl_call call = { .armed = false };
	struct module *pinned = NULL;
	int done = 0;
	bool more;
	struct dat_event event __uninitialized;

	*armed = false;
	if (!kdapl_policy_active(READ_ONCE(evd->policy)))
		return kdapl_cq_poll_budget(evd, budget);
	WRITE_ONCE(evd->upcaller, current);
	if (unlikely(READ_ONCE(evd->watchers)))
		/*
		 * Pairs with kdapl_cq_schedule_poll(): if it read ->upcaller == NULL it did
		 * not schedule ->softirq_poll, so its completions must be polled here.
		 * litmus: upcaller
		 */
		smp_mb();
	while (done < budget && kdapl_evd_reap(evd, &event, &more, &call)) {
		kdapl_upcall_pin(&pinned, evd, call.owner);
		/* The armed CQ does not notify of completions that are on it already. */
		if (unlikely(call.missed))
			irq_poll_sched(&evd->softirq_poll);
		if (call.policy == DAT_UPCALL_NORIFY)
			call.upcall.upcall_func(call.upcall.instance_data,
						NULL, DAT_TRUE);
		else
			call.upcall.upcall_func(call.upcall.instance_data,
						&event,
						more ? DAT_TRUE : DAT_FALSE);
		done++;
		/* Later events are found when the CQs are armed. */
		if (!more && READ_ONCE(evd->cqs_empty))
			break;
	}
	if (pinned)
		module_put(pinned);
	/*
	 * Pairs with kdapl_upcall_wait_work(): the waiter sees all effects of the
	 * upcalls.
	 * litmus: upcall-wait
	 */
	smp_store_release(&evd->upcaller, NULL);
	*armed = call.armed;
	return done;
}

static int kdapl_upcall_softirq(struct irq_poll *iop, int budget)
{
	struct kdapl_evd *evd = container_of(iop, struct kdapl_evd, iop);
	bool armed;
	int done = kdapl_upcall_run(evd, budget, &armed);

	if (done < budget) {
		irq_poll_complete(iop);
		/*
		 * Pairs with test_and_set_bit() in irq_poll_sched(): if kdapl_cq_comp()
		 * found the bit set that irq_poll_complete() has cleared, its earlier
		 * stores, ->solicited_event and ->notified, are visible below. Events are
		 * under the lock. litmus: solicited, sched-lock
		 */
		smp_mb__after_atomic();
		/*
		 * Arm again even if @armed: an irq_poll_sched() before
		 * irq_poll_complete() was lost.
		 */
		if (kdapl_cq_arm(evd))
			irq_poll_sched(iop);
	}
	return done;
}

static void kdapl_upcall_work(struct work_struct *work)
{
	struct kdapl_evd *evd = container_of(work, struct kdapl_evd, work);
	bool again, armed;

	clear_bit(KDAPL_UPCALL_QUEUED, &evd->dispatch);
	/*
	 * Pairs with test_and_set_bit() in kdapl_upcall_queue(): if it found the bit set,
	 * the earlier stores of its caller are visible below. litmus: upcall-work
	 */
	smp_mb__after_atomic();
	again = kdapl_upcall_run(evd, KDAPL_UPCALL_BUDGET, &armed) == KDAPL_UPCALL_BUDGET;
	/* If the CQs were armed, later completions have queued the work item again. */
	if (!again)
		again = armed ? kdapl_evd_is_due(evd) : kdapl_cq_arm(evd);
	/*
	 * Pairs with kdapl_upcall_wait_work(): ->upcaller is NULL, and ->runs has changed.
	 * litmus: upcall-wait
	 */
	smp_store_release(&evd->runs, evd->runs + 1);
	if (wq_has_sleeper(&evd->idle))
		wake_up_all(&evd->idle);
	if (again)
		kdapl_cq_schedule_poll(evd);
	kdapl_obj_put(&evd->obj);
}

/*
 * Can a CPU interrupt itself? Without that an irq_work waits for the next tick, and with
 * PREEMPT_RT a thread does its work.
 */
static bool kdapl_upcall_can_interrupt(void)
{
#if defined(CONFIG_IRQ_WORK) && !defined(CONFIG_PREEMPT_RT)
	return arch_irq_work_has_interrupt();
#else
	return false;
#endif
}

static void kdapl_upcall_interrupted(struct irq_work *work)
{
	struct kdapl_evd *evd = container_of(work, struct kdapl_evd, interrupt);

	irq_poll_sched(&evd->iop);
}

/*
 * Schedule the dispatcher in softirq for a caller outside of interrupts, as rxe's thread is. A
 * softirq that is raised there would wait for ksoftirqd, which costs two task switches for each
 * completion; one that is raised in an interrupt runs at the end of that. So have this CPU
 * interrupt itself, if it can. Context: any.
 */
void kdapl_upcall_interrupt(struct kdapl_evd *evd)
{
	/* A full barrier, also if it is pending already. litmus: sched-work */
	if (kdapl_upcall_can_interrupt())
		irq_work_queue(&evd->interrupt);
	else
		irq_poll_sched(&evd->iop);
}

/*
 * Wait until nothing uses the dispatchers in softirq: @evd has no CQs any more, and its upcalls
 * were stopped.
 */
void kdapl_upcall_end(struct kdapl_evd *evd)
{
	/* Where it is never queued, this would wait for a grace period. */
	if (kdapl_upcall_can_interrupt())
		irq_work_sync(&evd->interrupt);
	irq_poll_disable(&evd->softirq_poll);
}

void kdapl_upcall_init(struct kdapl_evd *evd)
{
	init_irq_work(&evd->interrupt, kdapl_upcall_interrupted);
	irq_poll_init(&evd->iop, KDAPL_UPCALL_BUDGET, kdapl_upcall_softirq);
	irq_poll_init(&evd->softirq_poll, KDAPL_UPCALL_BUDGET, kdapl_cq_softirq_poll);
	INIT_WORK(&evd->work, kdapl_upcall_work);
	init_waitqueue_head(&evd->idle);
}

/*
 * Queue the dispatcher in process context. A queued work item holds a reference, so no
 * release waits for it. litmus: upcall-work. Context: any.
 */
void kdapl_upcall_queue(struct kdapl_evd *evd)
{
	if (!READ_ONCE(evd->stopped) &&
	    !test_and_set_bit(KDAPL_UPCALL_QUEUED, &evd->dispatch) &&
	    kref_get_unless_zero(&evd->obj.ref))
		queue_work(evd->flags & DAT_EVD_DTO_FLAG ? kdapl_dto_wq :
			   kdapl_upcall_wq, &evd->work);
}

/* Has the upcall that ran when evd->runs was @runs ended? */
static bool kdapl_upcall_is_over(struct kdapl_evd *evd, unsigned int runs)
{
	/*
	 * Pairs with kdapl_upcall_run() and kdapl_upcall_work(). kdapl_upcall_stop() has
	 * changed the policy before. litmus: upcall-wait, upcall-stop
	 */
	return !smp_load_acquire(&evd->upcaller) || smp_load_acquire(&evd->runs) != runs;
}

/*
 * Wait for a running upcall in process context, but not for a later run of the
 * dispatcher. flush_work() is wrong here: an upcall may wait for the upcall of another
 * EVD, and lockdep takes the work items of all EVDs for one.
 */
static void kdapl_upcall_wait_work(struct kdapl_evd *evd)
{
	unsigned int runs = READ_ONCE(evd->runs);

	wait_event(evd->idle, kdapl_upcall_is_over(evd, runs));
}

/* Stop upcalls for good: none runs or starts after this has returned. */
void kdapl_upcall_stop(struct kdapl_evd *evd)
{
	unsigned long flags;
	bool first;

	mutex_lock(&evd->stop_mutex);
	spin_lock_irqsave(&evd->lock, flags);
	evd->policy = DAT_UPCALL_DISABLE;
	first = !evd->stopped;
	WRITE_ONCE(evd->stopped, true);
	spin_unlock_irqrestore(&evd->lock, flags);
	if (evd->softirq && first)
		irq_poll_disable(&evd->iop);
	mutex_unlock(&evd->stop_mutex);
	/* Wait without the mutex: an upcall may stop the upcalls of another EVD. */
	if (!evd->softirq)
		kdapl_upcall_wait_work(evd);
}

/* Check the arguments of dat_evd_modify_upcall(). @upcall: the new upcall, or the one kept */
static DAT_RETURN kdapl_upcall_check(DAT_UPCALL_POLICY policy,
				     const DAT_UPCALL_OBJECT *upcall,
				     DAT_UPCALL_FLAG flag)
{
	switch (policy) {
	case DAT_UPCALL_DISABLE:
	case DAT_UPCALL_TEARDOWN:
		break;
	case DAT_UPCALL_SINGLE_INSTANCE:
	case DAT_UPCALL_MANY:
	case DAT_UPCALL_NORIFY:
		if (!upcall->upcall_func)
			return DAT_ERROR(DAT_INVALID_PARAMETER,
					 DAT_INVALID_ARG3);
		break;
	default:
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	}
	if (flag != DAT_UPCALL_INVOC_NEW && flag != DAT_UPCALL_INVOC_ANY)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	return DAT_SUCCESS;
}

/* Wait for a running upcall; the dispatcher may run again afterwards. */
static void kdapl_upcall_wait(struct kdapl_evd *evd)
{
	if (!evd->softirq) {
		kdapl_upcall_wait_work(evd);
		return;
	}
	mutex_lock(&evd->stop_mutex);
	/* If the dispatcher is stopped, dat_evd_free() was first, and waited. */
	if (!evd->stopped) {
		irq_poll_disable(&evd->iop);
		irq_poll_enable(&evd->iop);
		/* An irq_poll_sched() while disabled was lost. */
		irq_poll_sched(&evd->iop);
	}
	mutex_unlock(&evd->stop_mutex);
}

/**
 * kdapl_upcall_forget - remove an upcall whose module is being unloaded
 * @evd: the EVD
 * @mod: module that is being unloaded
 *
 * The EVD keeps nothing of @mod that DAT_UPCALL_SAME could bring back, and a running
 * upcall has returned.
 *
 * Context: Process context.
 * Return: whether the upcall belonged to @mod
 */
bool kdapl_upcall_forget(struct kdapl_evd *evd, const struct module *mod)
{
	unsigned long flags;
	bool found;

	spin_lock_irqsave(&evd->lock, flags);
	found = kdapl_in_module(evd->owner, mod) ||
		kdapl_in_module(evd->upcall.upcall_func, mod);
	if (found) {
		evd->policy = DAT_UPCALL_DISABLE;
		evd->upcall = (DAT_UPCALL_OBJECT) { };
		evd->owner = NULL;
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (found)
		kdapl_upcall_wait(evd);
	return found;
}

DAT_RETURN __dat_evd_modify_upcall(DAT_EVD_HANDLE evd_handle,
				   DAT_UPCALL_POLICY upcall_policy,
				   const DAT_UPCALL_OBJECT *upcall,
				   DAT_UPCALL_FLAG upcall_flag,
				   struct module *owner)
{
	bool teardown = upcall_policy == DAT_UPCALL_TEARDOWN;
	struct kdapl_upcall_wait wait;
	struct kdapl_evd *evd;
	unsigned long flags;
	DAT_RETURN ret;

	ret = kdapl_evd_get_to_wait(evd_handle, teardown ? &wait : NULL, &evd);
	if (ret != DAT_SUCCESS)
		return ret;
	/* An upcall in softirq may change its own EVD. */
	if (READ_ONCE(evd->upcaller) != current)
		might_sleep();

	/* Completions that are on the CQs count as arrived. */
	if (upcall_flag == DAT_UPCALL_INVOC_NEW)
		flags = kdapl_cq_poll_all_lock(evd);
	else
		spin_lock_irqsave(&evd->lock, flags);
	/* Check under the lock: another call may change the stored upcall. */
	ret = kdapl_upcall_check(upcall_policy, upcall ?: &evd->upcall, upcall_flag);
	/* dat_evd_free() ran concurrently. */
	if (evd->stopped)
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (ret != DAT_SUCCESS) {
		spin_unlock_irqrestore(&evd->lock, flags);
		goto out;
	}
	evd->policy = upcall_policy;
	if (upcall) {
		evd->upcall = *upcall;
		evd->owner = owner;
	}
	/* INVOC_NEW: queued events wait for the next arrival. */
	evd->upcall_due = upcall_flag == DAT_UPCALL_INVOC_ANY;
	if (!evd->upcall_due) {
		evd->solicited_event = false;
		evd->armed = false;
	}
	spin_unlock_irqrestore(&evd->lock, flags);

	if (teardown)
		kdapl_upcall_wait(evd);
	else
		kdapl_upcall_schedule(evd);
out:
	if (teardown)
		kdapl_upcall_wait_end(&wait);
	kdapl_obj_put(&evd->obj);
	return ret;
}
EXPORT_SYMBOL(__dat_evd_modify_upcall);

DAT_RETURN (dat_evd_modify_upcall)(DAT_EVD_HANDLE evd_handle,
				   DAT_UPCALL_POLICY upcall_policy,
				   const DAT_UPCALL_OBJECT *upcall,
				   DAT_UPCALL_FLAG upcall_flag)
{
	return __dat_evd_modify_upcall(evd_handle, upcall_policy, upcall,
				       upcall_flag, NULL);
}
EXPORT_SYMBOL(dat_evd_modify_upcall);

DAT_RETURN kdat_evd_wait_upcalls(DAT_EVD_HANDLE evd_handle)
{
	struct kdapl_upcall_wait wait;
	struct kdapl_evd *evd;
	DAT_RETURN ret;

	ret = kdapl_evd_get_to_wait(evd_handle, &wait, &evd);
	if (ret != DAT_SUCCESS)
		return ret;
	might_sleep();
	kdapl_upcall_wait(evd);
	kdapl_upcall_wait_end(&wait);
	kdapl_obj_put(&evd->obj);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(kdat_evd_wait_upcalls);

int kdapl_upcall_setup(void)
{
	kdapl_upcall_wq = alloc_workqueue("kdapl_upcall",
					  WQ_UNBOUND | WQ_HIGHPRI |
					  WQ_MEM_RECLAIM, 0);
	if (!kdapl_upcall_wq)
		return -ENOMEM;
	/* Per CPU: the data is in the cache of the CPU that took the interrupt. */
	kdapl_dto_wq = alloc_workqueue("kdapl_dto",
				       WQ_HIGHPRI | WQ_MEM_RECLAIM |
				       WQ_PERCPU, 0);
	if (kdapl_dto_wq)
		return 0;
	destroy_workqueue(kdapl_upcall_wq);
	return -ENOMEM;
}

void kdapl_upcall_cleanup(void)
{
	destroy_workqueue(kdapl_dto_wq);
	destroy_workqueue(kdapl_upcall_wq);
}
