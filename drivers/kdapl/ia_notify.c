// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Telling consumers that IAs or addresses have come or gone: kdat_notifier_create().
 *
 * All that see a change call kdapl_notify(): kdapl_add_one() and its fellows,
 * ia_addr.c for addresses, and the event handler of a device for its GIDs, which
 * follow an address some time later. The functions of consumers are
 * called from one work, so they may sleep, open and close IAs, and changes that
 * follow each other closely are told once.
 *
 * kdapl_notifiers_lock protects the list and is held while the functions run, so a
 * notifier that was freed is not called any more.
 */
#include <dat/kdat_linux.h>
#include <linux/slab.h>
#include "ia.h"

struct kdat_notifier {
	struct list_head link;
	KDAT_CHANGED_FUNC changed;
	DAT_PVOID data;
};

static DEFINE_MUTEX(kdapl_notifiers_lock);	/* see above */
static LIST_HEAD(kdapl_notifiers);
/* The task that runs the functions, while it does. */
static struct task_struct *kdapl_notifying;
static atomic_t kdapl_changes;

/* Take the changes that kdapl_notify() has noted, and tell of them. litmus: changes */
static void kdapl_notify_work(struct work_struct *work)
{
	struct kdat_notifier *n;
	int what;

	mutex_lock(&kdapl_notifiers_lock);
	WRITE_ONCE(kdapl_notifying, current);
	what = atomic_xchg(&kdapl_changes, 0);
	list_for_each_entry(n, &kdapl_notifiers, link)
		if (what)
			n->changed(n->data, what);
	WRITE_ONCE(kdapl_notifying, NULL);
	mutex_unlock(&kdapl_notifiers_lock);
}

static DECLARE_WORK(kdapl_notifier, kdapl_notify_work);

/* Tell consumers of %KDAT_CHANGED_ bits. Context: Any. */
void kdapl_notify(int what)
{
	atomic_or(what, &kdapl_changes);
	queue_work(system_long_wq, &kdapl_notifier);
}

/* No device is left, and no consumer. Context: Process context. */
void kdapl_notify_cleanup(void)
{
	cancel_work_sync(&kdapl_notifier);
}

/*
 * Free the notifiers whose functions are those of @mod, which is being unloaded. Return
 * their number. Context: Process context.
 */
unsigned int kdapl_notify_forget(const struct module *mod)
{
	struct kdat_notifier *n, *next;
	unsigned int found = 0;

	mutex_lock(&kdapl_notifiers_lock);
	list_for_each_entry_safe(n, next, &kdapl_notifiers, link) {
		if (!kdapl_in_module(n->changed, mod))
			continue;
		list_del(&n->link);
		kfree(n);
		found++;
	}
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
	if (READ_ONCE(kdapl_notifying) == current)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	n = kzalloc(sizeof(*n), GFP_KERNEL);
	if (!n)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	n->changed = changed;
	n->data = data;
	mutex_lock(&kdapl_notifiers_lock);
	list_add_tail(&n->link, &kdapl_notifiers);
	mutex_unlock(&kdapl_notifiers_lock);
	*notifier = n;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(kdat_notifier_create);

DAT_RETURN kdat_notifier_free(KDAT_NOTIFIER_HANDLE notifier)
{
	struct kdat_notifier *n, *found = NULL;

	might_sleep();
	if (READ_ONCE(kdapl_notifying) == current)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	mutex_lock(&kdapl_notifiers_lock);
	list_for_each_entry(n, &kdapl_notifiers, link)
		if (n == notifier)
			found = n;
	if (found)
		list_del(&found->link);
	mutex_unlock(&kdapl_notifiers_lock);
	if (!found)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	kfree(found);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(kdat_notifier_free);
