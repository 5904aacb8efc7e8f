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

static void kdapl_hca_free(struct kref *ref)
{
	kfree(container_of(ref, struct kdapl_hca, ref));
}

/* Drop a reference to @hca. Context: Any. */
void kdapl_hca_put(struct kdapl_hca *hca)
{
	kref_put(&hca->ref, kdapl_hca_free);
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
