// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dat_cr_handoff(): a request moves to another service point of the IA.
 *
 * The consumer gets a new request, with a new handle, whose event goes to the EVD of the
 * other service point. The rdma_cm id moves to the new request with cr->mutex and the
 * handler lock of the id held, inside of sp->mutex of the other service point.
 */
#include "cm.h"
#include "ep.h"
#include "ia.h"

/*
 * Move the id and the peer's data from @cr to @to, and deliver @to. Return false if @cr
 * was answered or cancelled before.
 */
static bool kdapl_cr_move(struct kdapl_cr *cr, struct kdapl_cr *to)
{
	struct rdma_cm_id *id;
	bool moved = false;

	mutex_lock(&cr->mutex);
	id = cr->id;
	if (!id)
		goto out;
	/*
	 * The handler lock keeps a peer from giving up in between: if it gave up before,
	 * the claim fails; if it gives up after, kdapl_cr_handler() cancels @to.
	 */
	rdma_lock_handler(id);
	moved = kdapl_cr_claim(cr);
	if (moved) {
		cr->id = NULL;
		to->id = id;
		to->local = cr->local;
		to->remote = cr->remote;
		to->gid = cr->gid;
		to->responder_resources = cr->responder_resources;
		to->initiator_depth = cr->initiator_depth;
		to->pd_len = cr->pd_len;
		memcpy(to->pd, cr->pd, cr->pd_len);
		id->context = to;
		/* Pairs with kdapl_cr_claim(). litmus: cr-claim */
		atomic_set_release(&to->claimed, KDAPL_CR_OPEN);
		kdapl_cr_deliver(to);
	}
	rdma_unlock_handler(id);
out:
	mutex_unlock(&cr->mutex);
	return moved;
}

/* Hand @cr off to @sp, which listens on port @qual. The device is present. */
static DAT_RETURN kdapl_handoff(struct kdapl_cr *cr, struct kdapl_sp *sp,
				DAT_CONN_QUAL qual)
{
	struct kdapl_cr *to;

	lockdep_assert_held(&sp->mutex);

	/* kdapl_sp_find() runs without the mutex; the service point may have been freed. */
	if (!sp->listening || sp->qual != qual)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	to = kdapl_cr_alloc(sp);
	if (!to)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	if (kdapl_cr_move(cr, to)) {
		kdapl_cr_withdraw(cr);
		kdapl_cr_return_ep(cr, DAT_EP_STATE_UNCONNECTED);
		kdapl_cr_forget(cr);
		return DAT_SUCCESS;
	}
	/* The Endpoint of an RSP stays reserved for another request. */
	kdapl_cr_return_ep(to, DAT_EP_STATE_RESERVED);
	kdapl_obj_put(&to->obj);
	return kdapl_cr_too_late(cr);
}

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff)
{
	DAT_RETURN ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				   DAT_RESOURCE_DEVICE);
	struct kdapl_hca *hca;
	struct kdapl_cr *cr;
	struct kdapl_sp *sp;

	might_sleep();
	cr = kdapl_obj_get(cr_handle, DAT_HANDLE_TYPE_CR);
	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	sp = kdapl_sp_find(cr->obj.ia, handoff);
	hca = cr->obj.ia->hca;
	if (kdapl_cr_is_cancelled(cr)) {
		ret = kdapl_cr_too_late(cr);
	} else if (!sp || sp == cr->sp) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	} else if (kdapl_hca_enter(hca)) {
		/*
		 * Within kdapl_hca_enter(), so that kdapl_remove_one() finds the new
		 * request in its later passes. sp->mutex keeps the service point
		 * listening.
		 */
		mutex_lock(&sp->mutex);
		ret = kdapl_handoff(cr, sp, handoff);
		mutex_unlock(&sp->mutex);
		kdapl_hca_leave(hca);
	} else if (kdapl_cr_is_cancelled(cr)) {
		ret = kdapl_cr_too_late(cr);
	}
	if (sp)
		kdapl_obj_put(&sp->obj);
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_handoff);
