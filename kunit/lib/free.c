// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: freeing objects of which only the handle is known.
 */
#include <linux/module.h>
#include "free.h"

bool kd_is_live(DAT_HANDLE handle)
{
	DAT_HANDLE_TYPE type;

	return dat_get_handle_type(handle, &type) == DAT_SUCCESS;
}
EXPORT_SYMBOL_GPL(kd_is_live);

/* Free an object of any type but an IA. */
DAT_RETURN kd_free_object(DAT_HANDLE handle)
{
	DAT_HANDLE_TYPE type;
	DAT_RETURN ret = dat_get_handle_type(handle, &type);

	if (ret != DAT_SUCCESS)
		return ret;
	switch (type) {
	case DAT_HANDLE_TYPE_CR:
		return dat_cr_reject(handle, 0, NULL);
	case DAT_HANDLE_TYPE_EP:
		return dat_ep_free(handle);
	case DAT_HANDLE_TYPE_EVD:
		return dat_evd_free(handle);
	case DAT_HANDLE_TYPE_LMR:
		return dat_lmr_free(handle);
	case DAT_HANDLE_TYPE_PSP:
		return dat_psp_free(handle);
	case DAT_HANDLE_TYPE_PZ:
		return dat_pz_free(handle);
	case DAT_HANDLE_TYPE_RMR:
		return dat_rmr_free(handle);
	case DAT_HANDLE_TYPE_RSP:
		return dat_rsp_free(handle);
	case DAT_HANDLE_TYPE_SRQ:
		return dat_srq_free(handle);
	case DAT_HANDLE_TYPE_CSP:
		return dat_csp_free(handle);
	default:
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_NO_SUBTYPE);
	}
}
EXPORT_SYMBOL_GPL(kd_free_object);
