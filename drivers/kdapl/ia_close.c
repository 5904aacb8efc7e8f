// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How an Interface Adapter ends: it is closed, or its device leaves.
 */
#include "kdapl.h"

/* Objects go before those they depend on. */
static const u8 kdapl_close_order[] = {
	DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_CSP,
	DAT_HANDLE_TYPE_CR, DAT_HANDLE_TYPE_EP, DAT_HANDLE_TYPE_RMR,
	DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_SRQ, DAT_HANDLE_TYPE_EVD,
	DAT_HANDLE_TYPE_PZ,
};

/*
 * An object of a type that the consumer has not freed, referenced. Skips @n of
 * them, and what we keep for ourselves.
 */
static struct kdapl_obj *kdapl_ia_nth(struct kdapl_ia *ia, u8 type, int n)
{
	struct kdapl_obj *obj, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	list_for_each_entry(obj, &ia->objs, ia_link) {
		if (kdapl_type(obj) != type)
			continue;
		if (!kdapl_handle_valid(kdapl_handle(obj), type) ||
		    obj == &ia->async_evd->obj ||
		    (ia->reserved_lmr && obj == &ia->reserved_lmr->obj))
			continue;
		if (n-- || !kref_get_unless_zero(&obj->ref))
			continue;
		found = obj;
		break;
	}
	spin_unlock_irqrestore(&ia->lock, flags);
	return found;
}

/* See what all requests on the IA have come to. */
void kdapl_ia_look(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj;
	int n;

	for (n = 0; (obj = kdapl_ia_nth(ia, DAT_HANDLE_TYPE_EVD, n)); n++) {
		kdapl_cq_look(container_of(obj, struct kdapl_evd, obj));
		kdapl_obj_put(obj);
	}
}

static bool kdapl_ia_in_use(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kdapl_close_order); i++) {
		obj = kdapl_ia_nth(ia, kdapl_close_order[i], 0);
		if (obj) {
			kdapl_obj_put(obj);
			return true;
		}
	}
	return false;
}

/* Also one that serves another IA, which keeps it but gets no upcall. */
static void kdapl_ia_free_evd(struct kdapl_evd *evd)
{
	if (dat_evd_free(kdapl_handle(&evd->obj)) == DAT_SUCCESS ||
	    !kdapl_obj_unpublish(&evd->obj))
		return;
	kdapl_upcall_stop(evd);
	kdapl_obj_put(&evd->obj);
}

static void kdapl_ia_free_one(struct kdapl_obj *obj, u8 type)
{
	DAT_HANDLE handle = kdapl_handle(obj);

	switch (type) {
	case DAT_HANDLE_TYPE_PSP:
		dat_psp_free(handle);
		break;
	case DAT_HANDLE_TYPE_RSP:
		dat_rsp_free(handle);
		break;
	case DAT_HANDLE_TYPE_CSP:
		dat_csp_free(handle);
		break;
	case DAT_HANDLE_TYPE_CR:
		dat_cr_reject(handle, 0, NULL);
		break;
	case DAT_HANDLE_TYPE_EP:
		kdapl_ep_free(container_of(obj, struct kdapl_ep, obj));
		break;
	case DAT_HANDLE_TYPE_RMR:
		dat_rmr_free(handle);
		break;
	case DAT_HANDLE_TYPE_LMR:
		dat_lmr_free(handle);
		break;
	case DAT_HANDLE_TYPE_SRQ:
		dat_srq_free(handle);
		break;
	case DAT_HANDLE_TYPE_EVD:
		kdapl_ia_free_evd(container_of(obj, struct kdapl_evd, obj));
		break;
	case DAT_HANDLE_TYPE_PZ:
		dat_pz_free(handle);
		break;
	}
}

/* Free all that the consumer left. */
static void kdapl_ia_free_all(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj;
	unsigned int i;
	int n;

	/* No upcall sees its world vanish. */
	for (n = 0; (obj = kdapl_ia_nth(ia, DAT_HANDLE_TYPE_EVD, n)); n++) {
		kdapl_upcall_stop(container_of(obj, struct kdapl_evd, obj));
		kdapl_obj_put(obj);
	}
	for (i = 0; i < ARRAY_SIZE(kdapl_close_order); i++) {
		n = 0;
		while ((obj = kdapl_ia_nth(ia, kdapl_close_order[i], n))) {
			kdapl_ia_free_one(obj, kdapl_close_order[i]);
			/* An LMR of an LMR, say, goes in the second round. */
			if (kdapl_handle_valid(kdapl_handle(obj),
					       kdapl_close_order[i]))
				n++;
			else
				n = 0;
			kdapl_obj_put(obj);
		}
	}
}

/* Objects that are still to be released; not those that outlive the IA. */
static unsigned int kdapl_ia_left(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj;
	unsigned int n = 0;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	list_for_each_entry(obj, &ia->objs, ia_link) {
		if (ia->null_evd && obj == &ia->null_evd->obj)
			continue;
		if (ia->async_evd && obj == &ia->async_evd->obj)
			continue;
		if (kdapl_type(obj) == DAT_HANDLE_TYPE_EVD &&
		    container_of(obj, struct kdapl_evd, obj)->lent)
			continue;
		n++;
	}
	spin_unlock_irqrestore(&ia->lock, flags);
	return n;
}

#define KDAPL_CLOSE_RETRY	max(HZ / 50, 1)

/* Free what is there, and what a call that was running has yet made. */
static void kdapl_ia_drain(struct kdapl_ia *ia)
{
	do {
		kdapl_ia_free_all(ia);
	} while (!wait_event_timeout(ia->wait, !kdapl_ia_left(ia),
				     KDAPL_CLOSE_RETRY));
}

/* Everything is freed: let go of what belongs to the IA itself. */
static void kdapl_ia_finish(struct kdapl_ia *ia)
{
	struct kdapl_evd *async = ia->async_evd, *none = ia->null_evd;

	if (ia->reserved_lmr)
		kdapl_lmr_free_reserved(ia);
	kdapl_ia_drain(ia);
	if (none) {
		ia->null_evd = NULL;
		kdapl_obj_put(&none->obj);
	}
	kdapl_async_withdraw(&ia->catastrophic);
	WRITE_ONCE(ia->async_evd, NULL);
	if (!ia->own_async_evd) {
		kdapl_evd_lend(async, -1);
		kdapl_dep_put(&async->obj);
	} else if (kdapl_obj_unpublish(&async->obj)) {
		kdapl_upcall_stop(async);
		kdapl_obj_put(&async->obj);
	}
	wait_event(ia->wait, !kdapl_ia_left(ia));
}

/* From now on there can be new objects, or not. */
static void kdapl_ia_set_closing(struct kdapl_ia *ia, bool closing)
{
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	ia->closing = closing;
	spin_unlock_irqrestore(&ia->lock, flags);
}

/*
 * Decide whether the IA closes; only one call gets DAT_SUCCESS. One that finds
 * the IA in use has not disturbed those that make objects.
 */
static DAT_RETURN kdapl_ia_close_begin(struct kdapl_ia *ia, bool graceful)
{
	DAT_RETURN ret;

	mutex_lock(&ia->close_mutex);
	if (!kdapl_handle_valid(kdapl_handle(&ia->obj), DAT_HANDLE_TYPE_IA)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
		goto out;
	}
	ret = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
	if (graceful && kdapl_ia_in_use(ia))
		goto out;
	kdapl_ia_set_closing(ia, true);
	/* There may be a new object since. */
	if (graceful && kdapl_ia_in_use(ia)) {
		kdapl_ia_set_closing(ia, false);
		goto out;
	}
	ret = DAT_SUCCESS;
	kdapl_obj_unpublish(&ia->obj);
out:
	mutex_unlock(&ia->close_mutex);
	return ret;
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags)
{
	struct kdapl_upcall_wait wait;
	struct kdapl_ia *ia;
	DAT_RETURN ret;

	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (flags != DAT_CLOSE_ABRUPT_FLAG &&
	    flags != DAT_CLOSE_GRACEFUL_FLAG) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	if (!kdapl_upcall_wait_begin(&wait, NULL, ia)) {
		ret = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
		goto out;
	}
	might_sleep();
	ret = kdapl_ia_close_begin(ia, flags == DAT_CLOSE_GRACEFUL_FLAG);
	if (ret == DAT_SUCCESS) {
		kdapl_ia_finish(ia);
		kdapl_obj_put(&ia->obj);
	}
	kdapl_upcall_wait_end(&wait);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ia_close);

/* An object that this pass of removal has not seen, referenced and marked. */
static struct kdapl_obj *kdapl_ia_unstopped(struct kdapl_ia *ia, u8 type,
					    u8 pass)
{
	struct kdapl_obj *obj, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	list_for_each_entry(obj, &ia->objs, ia_link) {
		if (kdapl_type(obj) != type || obj->stopped >= pass ||
		    !kref_get_unless_zero(&obj->ref))
			continue;
		obj->stopped = pass;
		found = obj;
		break;
	}
	spin_unlock_irqrestore(&ia->lock, flags);
	return found;
}

static void kdapl_stop_one(struct kdapl_obj *obj, u8 type, u8 pass)
{
	struct kdapl_ep *ep;

	switch (type) {
	case DAT_HANDLE_TYPE_CR:
		kdapl_cr_cancel(container_of(obj, struct kdapl_cr, obj));
		break;
	case DAT_HANDLE_TYPE_EP:
		ep = container_of(obj, struct kdapl_ep, obj);
		if (pass > 1)
			kdapl_ep_device_gone(ep);
		else
			kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN);
		break;
	default:
		kdapl_sp_close(container_of(obj, struct kdapl_sp, obj));
	}
}

/**
 * kdapl_ia_stop - the device is leaving: end all that talks to peers
 * @ia: the IA
 * @pass: 1: do not wait, so that all ends in parallel and two ends on this
 *	device do not wait for each other; 2: wait
 */
void kdapl_ia_stop(struct kdapl_ia *ia, u8 pass)
{
	static const u8 order[] = {
		DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_CSP,
		DAT_HANDLE_TYPE_CR, DAT_HANDLE_TYPE_EP,
	};
	struct kdapl_obj *obj;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(order); i++) {
		while ((obj = kdapl_ia_unstopped(ia, order[i], pass))) {
			kdapl_stop_one(obj, order[i], pass);
			kdapl_obj_put(obj);
		}
	}
}

static void kdapl_strip_one(struct kdapl_obj *obj, u8 type)
{
	switch (type) {
	case DAT_HANDLE_TYPE_PSP:
	case DAT_HANDLE_TYPE_RSP:
	case DAT_HANDLE_TYPE_CSP:
		kdapl_sp_close(container_of(obj, struct kdapl_sp, obj));
		break;
	case DAT_HANDLE_TYPE_RMR:
		kdapl_rmr_device_gone(container_of(obj, struct kdapl_rmr, obj));
		break;
	case DAT_HANDLE_TYPE_LMR:
		kdapl_lmr_device_gone(container_of(obj, struct kdapl_lmr, obj));
		break;
	case DAT_HANDLE_TYPE_SRQ:
		kdapl_srq_hw_destroy(container_of(obj, struct kdapl_srq, obj));
		break;
	case DAT_HANDLE_TYPE_EVD:
		kdapl_cq_destroy_all(container_of(obj, struct kdapl_evd, obj));
		break;
	case DAT_HANDLE_TYPE_PZ:
		kdapl_pz_device_gone(container_of(obj, struct kdapl_pz, obj));
		break;
	}
}

/*
 * Take the verbs objects away from every DAT object, also from one that only
 * waits to be released. With hca->sem held for writing nothing leaves the list;
 * it may grow by nothing either.
 */
void kdapl_ia_strip(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kdapl_close_order); i++)
		list_for_each_entry(obj, &ia->objs, ia_link)
			if (kdapl_type(obj) == kdapl_close_order[i])
				kdapl_strip_one(obj, kdapl_close_order[i]);
}
