// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The queries of an Endpoint: state, parameters, receive counts. Queries that count poll
 * the CQs first.
 */
#include "addr.h"
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "pz.h"
#include "srq.h"

DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			     DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_evd *evd;
	unsigned long flags;
	struct kdapl_ep *ep;
	bool idle;
	u32 done;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (recv_idle) {
		evd = kdapl_ep_lock_recv(ep, &flags);
		idle = ep->srq ? !ep->held :
				 READ_ONCE(ep->rq.head) == ep->rq.done;
		kdapl_ep_unlock_recv(ep, evd, flags);
		*recv_idle = idle ? DAT_TRUE : DAT_FALSE;
	}
	if (request_idle) {
		evd = READ_ONCE(ep->req_evd);
		if (evd)
			kdapl_cq_poll_all(evd);
		/*
		 * Read ->done before ->head: requests done by then are compared with all
		 * that are posted. litmus: none, the answer is about some time during the
		 * call.
		 */
		done = smp_load_acquire(&ep->sq.done);
		idle = READ_ONCE(ep->sq.head) == done;
		*request_idle = idle ? DAT_TRUE : DAT_FALSE;
	}
	if (ep_state)
		*ep_state = READ_ONCE(ep->state);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_get_status);

DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle,
			DAT_EP_PARAM_MASK ep_param_mask, DAT_EP_PARAM *ep_param)
{
	DAT_RETURN ret;
	unsigned long flags;
	struct kdapl_ep *ep;

	rcu_read_lock();
	ep = kdapl_find_queried(ep_handle, DAT_HANDLE_TYPE_EP,
				ep_param_mask & ~DAT_EP_FIELD_ALL,
				ep_param, &ret);
	if (!ep)
		goto out;
	/* dat_ep_modify() changes these under ep->lock at once, see kdapl_ep_show(). */
	spin_lock_irqsave(&ep->lock, flags);
	ep_param->ia_handle = kdapl_handle(&ep->obj.ia->obj);
	ep_param->ep_state = ep->state;
	ep_param->comm = ep->comm;
	ep_param->local_ia_address_ptr = kdapl_addr_ptr(&ep->local_addr);
	ep_param->local_port_qual = kdapl_addr_port(&ep->local_addr);
	ep_param->remote_ia_address_ptr = kdapl_addr_ptr(&ep->remote_addr);
	ep_param->remote_port_qual = kdapl_addr_port(&ep->remote_addr);
	ep_param->pz_handle = ep->shown.pz;
	ep_param->recv_evd_handle = ep->shown.recv_evd;
	ep_param->request_evd_handle = ep->shown.req_evd;
	ep_param->connect_evd_handle = ep->shown.conn_evd;
	ep_param->srq_handle = ep->srq ? kdapl_handle(&ep->srq->obj) : NULL;
	ep_param->ep_attr = ep->attr;
	kdapl_ep_unfill_attr(&ep_param->ep_attr, ep->attr_filled);
	ep_param->ep_attr.srq_soft_hw = READ_ONCE(ep->soft_asked);
	spin_unlock_irqrestore(&ep->lock, flags);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_query);

DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle,
			     DAT_COUNT *nbufs_allocated,
			     DAT_COUNT *bufs_alloc_span)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_evd *evd;
	unsigned long flags;
	struct kdapl_ep *ep;
	DAT_COUNT n;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (!nbufs_allocated && !bufs_alloc_span) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}

	evd = kdapl_ep_lock_recv(ep, &flags);
	n = ep->srq ? ep->held : READ_ONCE(ep->rq.head) - ep->rq.tail;
	kdapl_ep_unlock_recv(ep, evd, flags);
	/* An RC connection delivers in order, so the span has no gaps. */
	if (nbufs_allocated)
		*nbufs_allocated = n;
	if (bufs_alloc_span)
		*bufs_alloc_span = n;
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_recv_query);
