// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dat_cr_accept().
 *
 * An accepted request turns into a connection: its rdma_cm id moves from the struct
 * kdapl_cr to a new struct kdapl_conn, which the Endpoint owns from kdapl_ep_join() on.
 * Locks nest in the order ep->mutex, conn->mutex, cr->mutex, handler lock of the id. The
 * handler lock keeps a peer from giving up in between: if it gave up before, the call
 * fails; if it gives up after, the connection ends.
 */
#include <rdma/ib_cm.h>
#include "cm.h"
#include "conn.h"
#include "dto.h"
#include "ep.h"
#include "ia.h"

/* Check that @ep can accept @cr: its state, its EVDs, its PZ. */
static DAT_RETURN kdapl_accept_ready(struct kdapl_cr *cr, struct kdapl_ep *ep)
{
	DAT_EP_STATE state = READ_ONCE(ep->state);
	bool ok;

	lockdep_assert_held(&ep->mutex);

	if (cr->ep)
		ok = ep == cr->ep &&
		     (state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
		      state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	else
		ok = state == DAT_EP_STATE_UNCONNECTED;
	if (!ok)
		return kdapl_ep_state_error(state);
	if ((ep->attr.max_recv_dtos && !ep->recv_evd && !ep->srq) ||
	    (ep->attr.max_request_dtos && !ep->req_evd))
		return DAT_ERROR(DAT_INVALID_STATE,
				 ep->req_evd ? DAT_INVALID_STATE_EP_EVD_RECV :
					DAT_INVALID_STATE_EP_EVD_REQUEST);
	return kdapl_ep_check_ready(ep);
}

/*
 * Answer the peer of @conn, which has the id of @cr. A failure ends the connection with
 * an event.
 */
static void kdapl_accept_answer(struct kdapl_cr *cr, struct kdapl_conn *conn,
				const void *pd, u8 pd_len)
{
	struct rdma_conn_param param;
	int err = -ECONNABORTED;

	kdapl_conn_params(conn->ep, &param, pd, pd_len);
	param.responder_resources = min(param.responder_resources,
					cr->responder_resources);
	param.initiator_depth = min(param.initiator_depth,
				    cr->initiator_depth);
	rdma_set_min_rnr_timer(conn->id, KDAPL_MIN_RNR_TIMER);
	if ((!conn->ep->obj.ia->iwarp ||
	     kdapl_conn_may_receive(conn, &conn->accepting)) &&
	    kdapl_conn_may_receive(conn, &conn->rts))
		err = kdapl_qp_to_rts(conn->ep, conn->id, &param);
	if (err) {
		rdma_reject(conn->id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
	} else {
		kdapl_conn_driver_receives(conn, true);
		err = rdma_accept(conn->id, &param);
	}
	if (!err)
		return;
	kdapl_conn_driver_receives(conn, false);
	kdapl_conn_accepted(conn);
	kdapl_conn_end(conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, KDAPL_END_DRIVER);
}

/*
 * Accept @cr with private data @pd; the handler lock of cr->id is held, too. On success
 * @conn owns the id, and later failures end the connection with an event. An earlier
 * error leaves everything as it was, unless the consumer has freed @ep: then the request
 * is cancelled.
 */
static DAT_RETURN kdapl_accept_locked(struct kdapl_cr *cr, struct kdapl_ep *ep,
				      struct kdapl_conn *conn, const void *pd,
				      u8 pd_len)
{
	int err;

	lockdep_assert_held(&ep->mutex);
	lockdep_assert_held(&conn->mutex);
	lockdep_assert_held(&cr->mutex);

	err = kdapl_qp_create(ep, cr->id);
	/* The peer has given up; kdapl_cr_handler() waits to be called for that. */
	if (err == -ENOTCONN) {
		if (kdapl_cr_claim(cr))
			kdapl_cr_cancel_claimed(cr);
		return kdapl_cr_too_late(cr);
	}
	if (!err && ep->obj.ia->iwarp && ep->req_evd) {
		err = kdapl_defer_begin(ep, kdapl_qp_send_sge(ep));
		if (err)
			kdapl_qp_undo(ep);
	}
	if (err)
		return kdapl_errno_to_dat(err);
	if (!kdapl_cr_claim(cr)) {
		kdapl_qp_undo(ep);
		return kdapl_cr_too_late(cr);
	}
	kdapl_cr_set_addrs(cr, ep);
	conn->passive = true;
	conn->id = cr->id;
	cr->id = NULL;
	conn->id->context = conn;
	conn->id->event_handler = kdapl_conn_handler;
	if (!kdapl_ep_join(ep, conn, DAT_EP_STATE_COMPLETION_PENDING)) {
		/*
		 * The consumer has freed the Endpoint. The request is claimed, so it can
		 * only be cancelled.
		 */
		cr->id = conn->id;
		cr->id->context = cr;
		cr->id->event_handler = kdapl_cr_handler;
		kdapl_qp_undo(ep);
		kdapl_cr_cancel_claimed(cr);
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	ep->provider_owned = false;
	kdapl_qp_start(ep);
	kdapl_accept_answer(cr, conn, pd, pd_len);
	kdapl_cr_forget(cr);
	return DAT_SUCCESS;
}

/* Take the locks and accept @cr with @ep. The device is present. */
static DAT_RETURN kdapl_accept(struct kdapl_cr *cr, struct kdapl_ep *ep,
			       const void *pd, u8 pd_len)
{
	struct rdma_cm_id *id;
	struct kdapl_conn *conn;
	DAT_RETURN ret;

	mutex_lock(&ep->mutex);
	kdapl_ep_settle(ep);
	ret = kdapl_accept_ready(cr, ep);
	if (ret != DAT_SUCCESS)
		goto out;
	conn = kdapl_conn_alloc(ep);
	if (!conn) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_MEMORY);
		goto out;
	}
	kref_get(&conn->ref);
	mutex_lock(&conn->mutex);
	mutex_lock(&cr->mutex);
	id = cr->id;
	if (id) {
		rdma_lock_handler(id);
		ret = kdapl_accept_locked(cr, ep, conn, pd, pd_len);
		rdma_unlock_handler(id);
	} else {
		ret = kdapl_cr_too_late(cr);
	}
	mutex_unlock(&cr->mutex);
	mutex_unlock(&conn->mutex);
	if (ret != DAT_SUCCESS)
		kdapl_conn_put(conn);
	kdapl_conn_put(conn);
out:
	mutex_unlock(&ep->mutex);
	return ret;
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			 DAT_COUNT private_data_size,
			 const DAT_PVOID private_data)
{
	struct kdapl_ep *ep = NULL;
	struct kdapl_cr *cr;
	DAT_RETURN ret;

	might_sleep();
	cr = kdapl_obj_get(cr_handle, DAT_HANDLE_TYPE_CR);
	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	if (kdapl_cr_is_cancelled(cr)) {
		ret = kdapl_cr_too_late(cr);
		goto out;
	}
	if (ep_handle) {
		ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	} else if (cr->ep) {
		ep = cr->ep;
		kref_get(&ep->obj.ref);
	}
	if (!ep || ep->obj.ia != cr->obj.ia) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (ep_handle && cr->ep) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	ret = kdapl_check_private_data(cr->obj.ia, private_data_size,
				       private_data, DAT_INVALID_ARG3);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	if (kdapl_hca_enter(cr->obj.ia->hca)) {
		ret = kdapl_accept(cr, ep, private_data, private_data_size);
		kdapl_hca_leave(cr->obj.ia->hca);
	} else if (kdapl_cr_is_cancelled(cr)) {
		ret = kdapl_cr_too_late(cr);
	}
out:
	if (ep)
		kdapl_obj_put(&ep->obj);
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_accept);
