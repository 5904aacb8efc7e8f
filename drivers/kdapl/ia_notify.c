// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Telling consumers that IAs or addresses have come or gone: kdat_notifier_create().
 *
 * Every place that sees a change calls kdapl_notify(): kdapl_add_one() and its fellows,
 * ia_addr.c for addresses, and the event handler of a device for its GIDs, which
 * follow an address some time later. One work item calls the functions of consumers, so
 * they may sleep, open and close IAs, and changes in close succession are reported once.
 *
 * kdapl_notifiers_lock protects all of this. It is not held while a function runs, as a
 * function may wait for anything, such as a module that is loaded or unloaded, and
 * kdapl_notify_forget() is called for each module that goes. Instead a notifier whose function
 * runs stays in the list, and freeing the notifier waits.
 */
#include <dat/kdat_linux.h>
#include <linux/slab.h>
#include "ia.h"

/*
 * struct kdat_notifier - a notifier
 * @link: entry in kdapl_notifiers
 * @number: the handle. No other notifier ever has it, so a call that is too late finds none
 * @changed: the consumer's function
 * @data: for @changed
 * @freed: @changed is not called any more; freed when @changed has returned
 */
struct kdat_notifier {
	struct list_head link;
	unsigned long number;
	KDAT_CHANGED_FUNC changed;
	DAT_PVOID data;
	bool freed;
};

static DEFINE_MUTEX(kdapl_notifiers_lock);	/* see above */
static LIST_HEAD(kdapl_notifiers);
static unsigned long kdapl_notifier_last;	/* the last number given */
/* The notifier whose function runs. */
static struct kdat_notifier *kdapl_notifying;
static DECLARE_WAIT_QUEUE_HEAD(kdapl_notify_wait);
/* The task that runs the functions; NULL while none runs. */
static struct task_struct *kdapl_notify_task;
static atomic_t kdapl_changes;

/* Report the changes that kdapl_notify() has noted. litmus: changes */
static void kdapl_notify_work(struct work_struct *work)
{
	int what = atomic_xchg(&kdapl_changes, 0);
	struct kdat_notifier *n;

	if (!what)
		return;
	mutex_lock(&kdapl_notifiers_lock);
	WRITE_ONCE(kdapl_notify_task, current);
	list_for_each_entry(n, &kdapl_notifiers, link) {
		if (n->freed)
			continue;
		WRITE_ONCE(kdapl_notifying, n);
		mutex_unlock(&kdapl_notifiers_lock);
		n->changed(n->data, what);
		mutex_lock(&kdapl_notifiers_lock);
		WRITE_ONCE(kdapl_notifying, NULL);
		wake_up_all(&kdapl_notify_wait);
	}
	WRITE_ONCE(kdapl_notify_task, NULL);
	mutex_unlock(&kdapl_notifiers_lock);
}

static DECLARE_WORK(kdapl_notifier, kdapl_notify_work);

/* Tell consumers of the %KDAT_CHANGED_ bits in @what. Context: Any. */
void kdapl_notify(int what)
{
	atomic_or(what, &kdapl_changes);
	queue_work(system_long_wq, &kdapl_notifier);
}

/* Cancel the work item; no device and no consumer is left. Context: Process context. */
void kdapl_notify_cleanup(void)
{
	cancel_work_sync(&kdapl_notifier);
}

/*
 * Free @n after its function has returned. The lock is dropped meanwhile, so other
 * notifiers may be gone from the list.
 */
static void kdapl_notifier_free(struct kdat_notifier *n)
{
	lockdep_assert_held(&kdapl_notifiers_lock);

	n->freed = true;
	while (kdapl_notifying == n) {
		mutex_unlock(&kdapl_notifiers_lock);
		wait_event(kdapl_notify_wait, READ_ONCE(kdapl_notifying) != n);
		mutex_lock(&kdapl_notifiers_lock);
	}
	list_del(&n->link);
	kfree(n);
}

/*
 * Return the notifier @handle, or if @handle is NULL one of @mod, that is not freed; or
 * NULL.
 */
static struct kdat_notifier *kdapl_notifier_find(KDAT_NOTIFIER_HANDLE handle,
						 const struct module *mod)
{
	struct kdat_notifier *n;

	lockdep_assert_held(&kdapl_notifiers_lock);

	list_for_each_entry(n, &kdapl_notifiers, link)
		if (!n->freed && (handle ? n->number == (unsigned long)handle :
					   kdapl_in_module(n->changed, mod)))
			return n;
	return NULL;
}

/*
 * Free the notifiers whose functions are in @mod, which is being unloaded. Return their
 * number. Context: Process context.
 */
unsigned int kdapl_notify_forget(const struct module *mod)
{
	struct kdat_notifier *n;
	unsigned int found = 0;

	mutex_lock(&kdapl_notifiers_lock);
	for (; (n = kdapl_notifier_find(NULL, mod)); found++)
		kdapl_notifier_free(n);
	mutex_unlock(&kdapl_notifiers_lock);
	return found;
}

DAT_RETURN kdat_notifier_create(KDAT_CHANGED_FUNC changed, DAT_PVOID data,
				KDAT_NOTIFIER_HANDLE *notifier)
{
	struct kdat_notifier *n;

	might_sleep();
	if (!changed || !notifier)
		return DAT_ERROR(DAT_INVALID_PARAMETER, changed ?
				 DAT_INVALID_ARG3 : DAT_INVALID_ARG1);
	if (READ_ONCE(kdapl_notify_task) == current)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	n = kzalloc(sizeof(*n), GFP_KERNEL);
	if (!n)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	n->changed = changed;
	n->data = data;
	mutex_lock(&kdapl_notifiers_lock);
	n->number = ++kdapl_notifier_last;
	*notifier = (KDAT_NOTIFIER_HANDLE)n->number;
	list_add_tail(&n->link, &kdapl_notifiers);
	mutex_unlock(&kdapl_notifiers_lock);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(kdat_notifier_create);

DAT_RETURN kdat_notifier_free(KDAT_NOTIFIER_HANDLE notifier)
{
	struct kdat_notifier *n = NULL;

	might_sleep();
	if (READ_ONCE(kdapl_notify_task) == current)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	mutex_lock(&kdapl_notifiers_lock);
	if (notifier)
		n = kdapl_notifier_find(notifier, NULL);
	if (n)
		kdapl_notifier_free(n);
	mutex_unlock(&kdapl_notifiers_lock);
	return n ? DAT_SUCCESS :
		   DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
}
EXPORT_SYMBOL(kdat_notifier_free);
