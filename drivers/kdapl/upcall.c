// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Upcalls.
 *
 * Each EVD has one dispatcher, so its upcalls are serialised whatever the policy
 * (DAT_UPCALL_MANY permits concurrency, it does not demand it). The dispatcher
 * of an EVD that carries only DTO and RMR streams is an irq_poll handler and
 * runs in softirq; that of any other EVD is a work item. Both do the same: take
 * an event off, call the consumer with no lock held, until nothing is left, then
 * arm the completion queues and check that nothing slipped in between.
 *
 * An EVD without an upcall has a dispatcher as well. It only runs while somebody
 * needs arrivals to be noticed (an armed watermark, a possible overflow) and
 * moves completions from the device to the list.
 */
#include <linux/wait_bit.h>
#include "kdapl.h"
#include "trace.h"

#define KDAPL_UPCALL_BUDGET	64

/* Bits of evd->dispatch */
#define KDAPL_UPCALL_QUEUED	0

/*
 * Two, as upcalls of completions may wait for a medium, and what that waits for may
 * need a connection.
 */
static struct workqueue_struct *kdapl_upcall_wq;
static struct workqueue_struct *kdapl_dto_wq;

/* Keep the module of the upcall function; one that is leaving still waits for
 * its last events, and cannot be kept.
 */
static void kdapl_upcall_pin(struct module **pinned, struct module *owner)
{
	if (*pinned == owner)
		return;
	if (*pinned)
		module_put(*pinned);
	*pinned = owner && try_module_get(owner) ? owner : NULL;
}

/* Returns the number of upcalls made, at most @budget. */
static int kdapl_upcall_run(struct kdapl_evd *evd, int budget)
{
	struct module *pinned = NULL;
	struct kdapl_call call;
	int done = 0;
	bool more;
	struct dat_event event __uninitialized;

	if (!kdapl_policy_active(READ_ONCE(evd->policy))) {
		kdapl_cq_look(evd);
		return 0;
	}
	WRITE_ONCE(evd->upcaller, current);
	if (unlikely(READ_ONCE(evd->watchers))) {
		/*
		 * Marks are passed while an upcall runs, too. Who sees no
		 * upcaller in kdapl_cq_comp() has left us something to poll.
		 */
		smp_mb();
		kdapl_cq_arm(evd);
	}
	while (done < budget && kdapl_evd_reap(evd, &event, &more, &call)) {
		kdapl_upcall_pin(&pinned, call.owner);
		/* There are more than one poll took; nothing will tell of them. */
		if (unlikely(READ_ONCE(evd->watchers)) && !READ_ONCE(evd->dry))
			irq_poll_sched(&evd->look);
		if (call.policy == DAT_UPCALL_NORIFY)
			call.upcall.upcall_func(call.upcall.instance_data,
						NULL, DAT_TRUE);
		else
			call.upcall.upcall_func(call.upcall.instance_data,
						&event,
						more ? DAT_TRUE : DAT_FALSE);
		done++;
		/* Arming tells of what has come since, without another poll. */
		if (!more && READ_ONCE(evd->dry))
			break;
	}
	WRITE_ONCE(evd->upcaller, NULL);
	module_put(pinned);
	return done;
}

static int kdapl_upcall_softirq(struct irq_poll *iop, int budget)
{
	struct kdapl_evd *evd = container_of(iop, struct kdapl_evd, iop);
	int done = kdapl_upcall_run(evd, budget);

	if (done < budget) {
		irq_poll_complete(iop);
		if (kdapl_cq_arm(evd))
			irq_poll_sched(iop);
	}
	return done;
}

static void kdapl_upcall_work(struct work_struct *work)
{
	struct kdapl_evd *evd = container_of(work, struct kdapl_evd, work);
	bool again;

	clear_bit(KDAPL_UPCALL_QUEUED, &evd->dispatch);
	again = kdapl_upcall_run(evd, KDAPL_UPCALL_BUDGET) ==
			KDAPL_UPCALL_BUDGET || kdapl_cq_arm(evd);
	/* kdapl_upcall_run() has cleared upcaller: kdapl_upcall_wait_work(). */
	smp_mb();
	wake_up_var(&evd->upcaller);
	if (again)
		kdapl_cq_notice(evd);
	kdapl_obj_put(&evd->obj);
}

void kdapl_upcall_init(struct kdapl_evd *evd)
{
	irq_poll_init(&evd->iop, KDAPL_UPCALL_BUDGET, kdapl_upcall_softirq);
	irq_poll_init(&evd->look, KDAPL_UPCALL_BUDGET, kdapl_cq_look_softirq);
	INIT_WORK(&evd->work, kdapl_upcall_work);
}

/*
 * Let the dispatcher run. Any context. A queued work item has a reference, so
 * nobody has to wait for it, and it may come to run for nothing.
 */
void kdapl_upcall_schedule(struct kdapl_evd *evd)
{
	if (evd->softirq)
		irq_poll_sched(&evd->iop);
	else if (!READ_ONCE(evd->stopped) &&
		 !test_and_set_bit(KDAPL_UPCALL_QUEUED, &evd->dispatch) &&
		 kref_get_unless_zero(&evd->obj.ref))
		queue_work(evd->flags & DAT_EVD_DTO_FLAG ? kdapl_dto_wq :
			   kdapl_upcall_wq, &evd->work);
}

/*
 * Wait for a running upcall in process context. Not by flush_work(): lockdep takes
 * the work items of all EVDs for one, and an upcall may wait for another EVD's.
 */
static void kdapl_upcall_wait_work(struct kdapl_evd *evd)
{
	wait_var_event(&evd->upcaller, !READ_ONCE(evd->upcaller));
}

/* No upcall runs or starts from the return of this function on. */
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
	/* Not under the mutex: an upcall may stop those of another EVD. */
	if (!evd->softirq)
		kdapl_upcall_wait_work(evd);
}

/* Who waits for upcalls to end; most often nobody. */
static LIST_HEAD(kdapl_upcall_waits);
static DEFINE_SPINLOCK(kdapl_upcall_waits_lock);

/* Would an upcall that runs now, of this EVD, wait for the caller? */
static bool kdapl_upcall_leads_here(struct kdapl_evd *evd)
{
	struct task_struct *task = READ_ONCE(evd->upcaller);
	struct kdapl_upcall_wait *wait;

	/* One in softirq waits for nothing, whatever its task was doing. */
	if (!task || task == current || evd->softirq)
		return task == current;
	list_for_each_entry(wait, &kdapl_upcall_waits, link)
		if (wait->task == task && wait->leads_here)
			return true;
	return false;
}

static bool kdapl_upcall_wait_leads(struct kdapl_upcall_wait *wait)
{
	struct kdapl_ia *ia = wait->ia;
	struct kdapl_obj *obj;
	bool leads = false;

	if (wait->evd)
		return kdapl_upcall_leads_here(wait->evd);
	spin_lock(&ia->lock);
	list_for_each_entry(obj, &ia->objs, ia_link)
		if (kdapl_type(obj) == DAT_HANDLE_TYPE_EVD)
			leads |= kdapl_upcall_leads_here(container_of(obj,
						struct kdapl_evd, obj));
	spin_unlock(&ia->lock);
	return leads;
}

/**
 * kdapl_upcall_wait_begin - before waiting for upcalls to end
 * @wait: on the stack of the caller
 * @evd: whose upcalls will be waited for; referenced
 * @ia: if @evd is NULL: those of all EVDs of this one; referenced
 *
 * Two upcalls that free each other's EVD must not both wait.
 *
 * Context: Any; but only process context can wait.
 * Return: false if the wait would not end, because an upcall in question is the
 * caller's own, or waits for the caller's, by any number of steps.
 */
bool kdapl_upcall_wait_begin(struct kdapl_upcall_wait *wait,
			     struct kdapl_evd *evd, struct kdapl_ia *ia)
{
	struct kdapl_upcall_wait *other;
	unsigned long flags;
	bool more, ok;

	wait->task = current;
	wait->evd = evd;
	wait->ia = ia;
	wait->leads_here = false;
	spin_lock_irqsave(&kdapl_upcall_waits_lock, flags);
	list_for_each_entry(other, &kdapl_upcall_waits, link)
		other->leads_here = false;
	do {
		more = false;
		list_for_each_entry(other, &kdapl_upcall_waits, link) {
			if (!other->leads_here &&
			    kdapl_upcall_wait_leads(other)) {
				other->leads_here = true;
				more = true;
			}
		}
	} while (more);
	ok = !kdapl_upcall_wait_leads(wait);
	if (ok)
		list_add(&wait->link, &kdapl_upcall_waits);
	spin_unlock_irqrestore(&kdapl_upcall_waits_lock, flags);
	return ok;
}

void kdapl_upcall_wait_end(struct kdapl_upcall_wait *wait)
{
	unsigned long flags;

	spin_lock_irqsave(&kdapl_upcall_waits_lock, flags);
	list_del(&wait->link);
	spin_unlock_irqrestore(&kdapl_upcall_waits_lock, flags);
}

static DAT_RETURN kdapl_upcall_check(struct kdapl_evd *evd,
				     DAT_UPCALL_POLICY policy,
				     const DAT_UPCALL_OBJECT *upcall,
				     DAT_UPCALL_FLAG flag)
{
	const DAT_UPCALL_OBJECT *effective = upcall ?: &evd->upcall;

	switch (policy) {
	case DAT_UPCALL_DISABLE:
	case DAT_UPCALL_TEARDOWN:
		break;
	case DAT_UPCALL_SINGLE_INSTANCE:
	case DAT_UPCALL_MANY:
	case DAT_UPCALL_NORIFY:
		if (!effective->upcall_func)
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
	/* If it is stopped, dat_evd_free() was faster, and waited. */
	if (!evd->stopped) {
		irq_poll_disable(&evd->iop);
		irq_poll_enable(&evd->iop);
		/* What asked for the dispatcher meanwhile was not heard. */
		irq_poll_sched(&evd->iop);
	}
	mutex_unlock(&evd->stop_mutex);
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

	evd = kdapl_obj_get(evd_handle, DAT_HANDLE_TYPE_EVD);
	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (teardown && !kdapl_upcall_wait_begin(&wait, evd, NULL)) {
		kdapl_obj_put(&evd->obj);
		return DAT_ERROR(DAT_INVALID_STATE,
				 DAT_INVALID_STATE_EVD_IN_USE);
	}
	/* An upcall may change its own EVD, and be in softirq. */
	if (READ_ONCE(evd->upcaller) != current)
		might_sleep();

	ret = kdapl_upcall_check(evd, upcall_policy, upcall, upcall_flag);
	if (ret != DAT_SUCCESS)
		goto out;

	/* What has completed has arrived, wherever it is. */
	if (upcall_flag == DAT_UPCALL_INVOC_NEW)
		flags = kdapl_cq_look_lock(evd);
	else
		spin_lock_irqsave(&evd->lock, flags);
	if (evd->stopped) {
		/* Freed by somebody else meanwhile. */
		spin_unlock_irqrestore(&evd->lock, flags);
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
		goto out;
	}
	evd->policy = upcall_policy;
	if (upcall) {
		evd->upcall = *upcall;
		evd->owner = owner;
	}
	/* INVOC_NEW: what is queued waits for the next arrival. */
	evd->wake = upcall_flag == DAT_UPCALL_INVOC_ANY;
	if (!evd->wake)
		evd->rang = false;
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

int kdapl_upcall_setup(void)
{
	kdapl_upcall_wq = alloc_workqueue("kdapl_upcall",
					  WQ_UNBOUND | WQ_HIGHPRI |
					  WQ_MEM_RECLAIM, 0);
	if (!kdapl_upcall_wq)
		return -ENOMEM;
	/* On the CPU of the interrupt, in whose cache the data is. */
	kdapl_dto_wq = alloc_workqueue("kdapl_dto",
				       WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
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
