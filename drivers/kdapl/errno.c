// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Conversion of an errno, used inside of the module, to the DAT_RETURN of exported calls.
 */
#include <linux/errno.h>
#include "kdapl.h"

/* Return the DAT error for @err, an errno of ib_core, rdma_cm or an allocation. */
DAT_RETURN kdapl_errno_to_dat(int err)
{
	switch (err) {
	case 0:
		return DAT_SUCCESS;
	case -ENOMEM:
	case -ENOSPC:
	case -EAGAIN:
	case -EBUSY:
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	case -EOPNOTSUPP:
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	case -EADDRNOTAVAIL:
	case -ENETUNREACH:
	case -EHOSTUNREACH:
		return DAT_ERROR(DAT_INVALID_ADDRESS,
				 DAT_INVALID_ADDRESS_UNREACHABLE);
	default:
		/*
		 * The consumer's arguments were checked before the verbs were
		 * called, so any other errno is blamed on the device.
		 */
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_DEVICE);
	}
}
