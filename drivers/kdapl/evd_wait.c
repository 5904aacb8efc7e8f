// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Waits for upcalls to end, without deadlock.
 *
 * A call that waits for the upcalls of an EVD, or of all EVDs of an IA, may
 * itself be made from an upcall. kdapl_upcall_wait_begin() refuses a wait that
 * would, by any number of steps, be a wait for the caller.
 *
 * kdapl_upcall_waits_mutex is a mutex because an IA may have many objects. A call in
 * softirq, which must not wait, does without it and only checks whether it is made from an
 * upcall of the EVD or IA.
 */
#include "evd.h"
#include "ia.h"

/* Tasks that wait for upcalls; usually none. */
static LIST_HEAD(kdapl_upcall_waits);
static DEFINE_MUTEX(kdapl_upcall_waits_mutex);

/* Does a running upcall of @evd wait for the current task? */
static bool kdapl_upcall_leads_here(struct kdapl_evd *evd)
{
	struct task_struct *task = READ_ONCE(evd->upcaller);
	struct kdapl_upcall_wait *wait;

	/* An upcall in softirq never waits, whichever task it interrupted. */
	if (!task || task == current || evd->softirq || !in_task())
		return task == current;
	lockdep_assert_held(&kdapl_upcall_waits_mutex);
	list_for_each_entry(wait, &kdapl_upcall_waits, link)
		if (wait->task == task && wait->leads_here)
			return true;
	return false;
}

static bool kdapl_upcall_wait_leads(struct kdapl_upcall_wait *wait)
{
	struct kdapl_obj *obj = NULL;
	bool leads = false;

	if (wait->evd)
		return kdapl_upcall_leads_here(wait->evd);
	while ((obj = kdapl_obj_next(wait->ia, obj)))
		if (kdapl_type(obj) == DAT_HANDLE_TYPE_EVD)
			leads |= kdapl_upcall_leads_here(container_of(obj,
						struct kdapl_evd, obj));
	return leads;
}

/**
 * kdapl_upcall_wait_begin - check and announce a wait for upcalls to end
 * @wait: on the stack of the caller
 * @evd: EVD whose upcalls the caller will wait for, referenced; or NULL
 * @ia: if @evd is NULL: IA whose EVDs' upcalls the caller will wait for, referenced
 *
 * Two upcalls that free each other's EVD must not both wait. litmus: upcall-leads
 *
 * Context: Any; but only process context can wait.
 * Return: false if the wait would not end, because one of these upcalls is the caller's
 * own, or waits for the caller's, by any number of steps.
 */
bool kdapl_upcall_wait_begin(struct kdapl_upcall_wait *wait,
			     struct kdapl_evd *evd, struct kdapl_ia *ia)
{
	struct kdapl_upcall_wait *other;
	bool more, ok;

	wait->task = current;
	wait->evd = evd;
	wait->ia = ia;
	wait->leads_here = false;
	if (!in_task() && kdapl_upcall_wait_leads(wait))
		return false;
	mutex_lock(&kdapl_upcall_waits_mutex);
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
	mutex_unlock(&kdapl_upcall_waits_mutex);
	return ok;
}

void kdapl_upcall_wait_end(struct kdapl_upcall_wait *wait)
{
	mutex_lock(&kdapl_upcall_waits_mutex);
	list_del(&wait->link);
	mutex_unlock(&kdapl_upcall_waits_mutex);
}

/**
 * kdapl_evd_get_to_wait - get the EVD of a call that waits for its upcalls
 * @handle: first argument of the call
 * @wait: passed to kdapl_upcall_wait_begin(); NULL if the call does not wait
 * @evd: set to the EVD, referenced
 *
 * Context: Any; but only process context can wait.
 * Return: %DAT_SUCCESS, or the error that the call returns
 */
DAT_RETURN kdapl_evd_get_to_wait(DAT_EVD_HANDLE handle,
				 struct kdapl_upcall_wait *wait,
				 struct kdapl_evd **evd)
{
	*evd = kdapl_obj_get(handle, DAT_HANDLE_TYPE_EVD);
	if (!*evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!wait || kdapl_upcall_wait_begin(wait, *evd, NULL))
		return DAT_SUCCESS;
	kdapl_obj_put(&(*evd)->obj);
	return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
}
