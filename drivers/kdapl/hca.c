// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The reference to an RDMA device, and the section that keeps it from leaving.
 *
 * kdapl_add_one() makes a struct kdapl_hca for each ib_device (ia_device.c).
 * The references are those of the IAs and of the registration with ib_core,
 * which kdapl_remove_one() drops. Calls that create verbs objects run between
 * kdapl_hca_enter() and kdapl_hca_leave(), with hca->sem held for reading;
 * kdapl_remove_one() takes it for writing.
 */
#include <linux/slab.h>
#include "hca.h"

/*
 * A device has workqueues of its own, so that one whose firmware or network hangs
 * holds up no other. Taking down sleeps often and computes little.
 */
#define KDAPL_DOWN_WQ_FLAGS	(WQ_UNBOUND | WQ_MEM_RECLAIM)
#define KDAPL_DOWN_WQ_ACTIVE	WQ_MAX_ACTIVE

static void kdapl_hca_free(struct kref *ref)
{
	struct kdapl_hca *hca = container_of(ref, struct kdapl_hca, ref);

	if (hca->down_wq)
		destroy_workqueue(hca->down_wq);
	if (hca->attempt_wq)
		destroy_workqueue(hca->attempt_wq);
	kfree(hca);
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
	xa_init_flags(&hca->keys, XA_FLAGS_LOCK_IRQ);
	kref_init(&hca->ref);
	INIT_LIST_HEAD(&hca->ias);
	spin_lock_init(&hca->partings_lock);
	INIT_LIST_HEAD(&hca->partings);
	hca->down_wq = alloc_workqueue("kdapl_down", KDAPL_DOWN_WQ_FLAGS,
				       KDAPL_DOWN_WQ_ACTIVE);
	hca->attempt_wq = alloc_workqueue("kdapl_attempt", KDAPL_DOWN_WQ_FLAGS,
					  KDAPL_DOWN_WQ_ACTIVE);
	if (hca->down_wq && hca->attempt_wq)
		return hca;
	kdapl_hca_put(hca);
	return NULL;
}

/*
 * Keep the device from leaving until kdapl_hca_leave(). Return false if the
 * device is leaving or has left. Context: Process context.
 */
bool kdapl_hca_enter(struct kdapl_hca *hca)
{
	down_read(&hca->sem);
	if (!hca->gone)
		return true;
	up_read(&hca->sem);
	return false;
}

/* End a section that kdapl_hca_enter() began. */
void kdapl_hca_leave(struct kdapl_hca *hca)
{
	up_read(&hca->sem);
}
