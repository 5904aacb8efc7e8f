// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The reference to an RDMA device, and the section that keeps the device from leaving.
 *
 * kdapl_add_one() allocates a struct kdapl_hca for each ib_device (ia_device.c).
 * References are held by the IAs and by the registration with ib_core;
 * kdapl_remove_one() drops the latter. Calls that create verbs objects run between
 * kdapl_hca_enter() and kdapl_hca_leave(), with hca->sem held for reading;
 * kdapl_remove_one() takes it for writing.
 */
#include <linux/slab.h>
#include "handle.h"
#include "hca.h"

/*
 * Each device has its own workqueues, so that a device whose firmware or network hangs
 * holds up no other. Their work sleeps often and computes little.
 */
#define KDAPL_HCA_WQ_FLAGS	(WQ_UNBOUND | WQ_MEM_RECLAIM)
#define KDAPL_HCA_WQ_ACTIVE	WQ_MAX_ACTIVE

/*
 * All devices; also those that have left, as long as an IA references them.
 * kdapl_all_lock protects the list, and the names of the devices.
 */
static LIST_HEAD(kdapl_all_hcas);
static DEFINE_SPINLOCK(kdapl_all_lock);
static u32 kdapl_last_serial;

/* Work item hca->free_work: destroy the workqueues and free the device. */
static void kdapl_hca_free_work(struct work_struct *work)
{
	struct kdapl_hca *hca = container_of(work, struct kdapl_hca, free_work);

	if (hca->object_wq)
		destroy_workqueue(hca->object_wq);
	if (hca->down_wq)
		destroy_workqueue(hca->down_wq);
	if (hca->attempt_wq)
		destroy_workqueue(hca->attempt_wq);
	kfree(hca);
}

/* A work item of hca->object_wq usually drops the last reference, so free from kdapl_wq. */
static void kdapl_hca_free(struct kref *ref)
{
	struct kdapl_hca *hca = container_of(ref, struct kdapl_hca, ref);
	unsigned long flags;

	spin_lock_irqsave(&kdapl_all_lock, flags);
	list_del(&hca->all_link);
	spin_unlock_irqrestore(&kdapl_all_lock, flags);
	queue_work(kdapl_wq, &hca->free_work);
}

DEFINE_STATIC_KEY_FALSE(kdapl_dma_syncs);

/* Drop a reference to @hca. Context: Any. */
void kdapl_hca_put(struct kdapl_hca *hca)
{
	kref_put(&hca->ref, kdapl_hca_free);
}

/* Allocate a device with its workqueues; NULL if there is no memory. */
struct kdapl_hca *kdapl_hca_alloc(void)
{
	struct kdapl_hca *hca = kzalloc(sizeof(*hca), GFP_KERNEL);

	if (!hca)
		return NULL;
	init_rwsem(&hca->sem);
	xa_init(&hca->keys);
	kref_init(&hca->ref);
	INIT_LIST_HEAD(&hca->ias);
	spin_lock_init(&hca->partings_lock);
	INIT_LIST_HEAD(&hca->partings);
	INIT_WORK(&hca->free_work, kdapl_hca_free_work);
	spin_lock_irq(&kdapl_all_lock);
	hca->serial = ++kdapl_last_serial;
	list_add_tail(&hca->all_link, &kdapl_all_hcas);
	spin_unlock_irq(&kdapl_all_lock);
	hca->object_wq = alloc_workqueue("kdapl_object", KDAPL_HCA_WQ_FLAGS,
					 KDAPL_HCA_WQ_ACTIVE);
	hca->down_wq = alloc_workqueue("kdapl_down", KDAPL_HCA_WQ_FLAGS,
				       KDAPL_HCA_WQ_ACTIVE);
	hca->attempt_wq = alloc_workqueue("kdapl_attempt", KDAPL_HCA_WQ_FLAGS,
					  KDAPL_HCA_WQ_ACTIVE);
	if (hca->object_wq && hca->down_wq && hca->attempt_wq)
		return hca;
	kdapl_hca_put(hca);
	return NULL;
}

/* Return the device after @hca in the list of all, or the first one; referenced. */
static struct kdapl_hca *kdapl_hca_next(struct kdapl_hca *hca)
{
	struct kdapl_hca *next = NULL;
	struct list_head *pos;

	spin_lock_irq(&kdapl_all_lock);
	pos = hca ? &hca->all_link : &kdapl_all_hcas;
	for (pos = pos->next; pos != &kdapl_all_hcas && !next; pos = pos->next) {
		next = list_entry(pos, struct kdapl_hca, all_link);
		if (!kref_get_unless_zero(&next->ref))
			next = NULL;
	}
	spin_unlock_irq(&kdapl_all_lock);
	if (hca)
		kdapl_hca_put(hca);
	return next;
}

/*
 * Copy the name of the device from ib_core. Context: callbacks of ib_core, during which
 * the name cannot change.
 */
void kdapl_hca_set_name(struct kdapl_hca *hca)
{
	unsigned long flags;

	spin_lock_irqsave(&kdapl_all_lock, flags);
	strscpy(hca->name, dev_name(&hca->dev->dev), sizeof(hca->name));
	spin_unlock_irqrestore(&kdapl_all_lock, flags);
}

/* Copy the present name of @hca. Context: Any. */
void kdapl_hca_name(struct kdapl_hca *hca, char name[IB_DEVICE_NAME_MAX])
{
	unsigned long flags;

	spin_lock_irqsave(&kdapl_all_lock, flags);
	strscpy(name, hca->name, IB_DEVICE_NAME_MAX);
	spin_unlock_irqrestore(&kdapl_all_lock, flags);
}

/*
 * Copy the present name of the device with this number, or its last name if it has left.
 * Return whether the number is known. Context: Any.
 */
bool kdapl_hca_name_of(u32 serial, char name[IB_DEVICE_NAME_MAX])
{
	struct kdapl_hca *hca;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&kdapl_all_lock, flags);
	list_for_each_entry(hca, &kdapl_all_hcas, all_link) {
		found = hca->serial == serial;
		if (found) {
			strscpy(name, hca->name, IB_DEVICE_NAME_MAX);
			break;
		}
	}
	spin_unlock_irqrestore(&kdapl_all_lock, flags);
	return found;
}

/* Wait for the releases that have been queued. Context: Process context. */
void kdapl_hcas_flush(void)
{
	struct kdapl_hca *hca = NULL;

	while ((hca = kdapl_hca_next(hca)))
		flush_workqueue(hca->object_wq);
}

/*
 * Keep the device from leaving until kdapl_hca_leave(). Return false if the
 * device is leaving or has left. Context: Process context.
 */
bool kdapl_hca_enter(struct kdapl_hca *hca)
{
	down_read(&hca->sem);
	if (!READ_ONCE(hca->gone))
		return true;
	up_read(&hca->sem);
	return false;
}

/* End a section that kdapl_hca_enter() began. */
void kdapl_hca_leave(struct kdapl_hca *hca)
{
	up_read(&hca->sem);
}
