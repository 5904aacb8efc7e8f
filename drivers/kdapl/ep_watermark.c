// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Setting the high watermarks of an Endpoint. dto_recv.c compares them. */
#include <dat/kdat_linux.h>
#include "dto.h"
#include "ep.h"

/* Arm the soft watermark requested in dat_ep_create_with_srq(). */
void kdapl_ep_initial_mark(struct kdapl_ep *ep)
{
	struct kdapl_evd *evd;
	unsigned long flags;

	if (!ep->srq || ep->attr.srq_soft_hw == DAT_HW_DEFAULT)
		return;
	evd = kdapl_ep_lock_recv(ep, &flags);
	ep->soft = ep->attr.srq_soft_hw;
	ep->soft_armed = true;
	kdapl_ep_set_marks(ep);
	kdapl_ep_update_watch(ep, evd, true);
	kdapl_ep_unlock_recv(ep, evd, flags);
}

DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle,
				DAT_COUNT soft_high_watermark,
				DAT_COUNT hard_high_watermark)
{
	struct kdapl_later later = { .n = 0 };
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_evd *evd;
	unsigned long flags;
	struct kdapl_ep *ep;
	bool arm;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (soft_high_watermark < DAT_WATERMARK_INFINITE) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	if (hard_high_watermark < DAT_WATERMARK_INFINITE) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		goto out;
	}

	evd = kdapl_ep_lock_recv(ep, &flags);
	ep->soft = soft_high_watermark;
	ep->hard = hard_high_watermark;
	WRITE_ONCE(ep->soft_asked, soft_high_watermark);
	ep->soft_armed = ep->soft != DAT_WATERMARK_INFINITE;
	kdapl_ep_set_marks(ep);
	kdapl_ep_check_marks(ep, &later);
	arm = kdapl_ep_update_watch(ep, evd, ep->mark != U32_MAX);
	kdapl_ep_unlock_recv(ep, evd, flags);
	kdapl_later_run(&later);
	/* Needed also while an upcall of the EVD runs. */
	if (arm && kdapl_cq_arm(evd))
		kdapl_cq_schedule_poll(evd);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_set_watermark);

DAT_RETURN kdat_ep_query_hard_hw(DAT_EP_HANDLE ep_handle, DAT_BOOLEAN *fired)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_evd *evd;
	unsigned long flags;
	struct kdapl_ep *ep;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (!fired) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	evd = kdapl_ep_lock_recv(ep, &flags);
	*fired = ep->hard_fired ? DAT_TRUE : DAT_FALSE;
	kdapl_ep_unlock_recv(ep, evd, flags);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(kdat_ep_query_hard_hw);
