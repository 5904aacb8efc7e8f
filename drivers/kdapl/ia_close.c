// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of an Interface Adapter: dat_ia_close(), or the loss of its device.
 *
 * dat_ia_close() with DAT_CLOSE_ABRUPT_FLAG frees every object that the
 * consumer has left, by the same functions as the consumer's own calls, and
 * waits until all objects have been released. ia->closing, under ia->lock,
 * keeps concurrent calls from creating objects.
 *
 * When the device leaves, kdapl_remove_one() calls kdapl_ia_stop() twice and
 * then kdapl_ia_strip(). The DAT objects stay until the consumer frees them.
 */
#include "cm.h"
#include "ep.h"
#include "evd.h"
#include "ia.h"
#include "mem.h"

/* Order of freeing: objects before the objects that they depend on. */
static const u8 kdapl_close_order[] = {
	DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_CSP,
	DAT_HANDLE_TYPE_CR, DAT_HANDLE_TYPE_EP, KDAPL_TYPE_SG,
	DAT_HANDLE_TYPE_RMR, DAT_HANDLE_TYPE_SRQ, DAT_HANDLE_TYPE_LMR,
	DAT_HANDLE_TYPE_EVD, DAT_HANDLE_TYPE_PZ,
};

/* Is @obj the IA's own: the EVD for asynchronous events, the null EVD or the reserved LMR? */
static bool kdapl_obj_is_own(struct kdapl_ia *ia, struct kdapl_obj *obj)
{
	struct kdapl_evd *none = READ_ONCE(ia->null_evd);
	struct kdapl_lmr *reserved = READ_ONCE(ia->reserved_lmr);

	return obj == &ia->async_evd->obj || (none && obj == &none->obj) ||
	       (reserved && obj == &reserved->obj);
}

/* Has the consumer created @obj and not freed it? */
static bool kdapl_obj_is_left(struct kdapl_ia *ia, struct kdapl_obj *obj)
{
	return kdapl_obj_published(obj) && !kdapl_obj_is_own(ia, obj);
}

/* Is @obj a request that its peer has given up? Such a request can only be refused. */
static bool kdapl_obj_is_cancelled(struct kdapl_obj *obj)
{
	return kdapl_type(obj) == DAT_HANDLE_TYPE_CR &&
	       kdapl_cr_is_cancelled(container_of(obj, struct kdapl_cr, obj));
}

/*
 * Has the consumer an object of @ia that it has not freed, or is a call creating one?
 * Such a call would report success with the object gone.
 */
static bool kdapl_ia_in_use(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj = NULL;

	while ((obj = kdapl_obj_next(ia, obj))) {
		if (kdapl_obj_in_use(obj) && !kdapl_obj_is_own(ia, obj) &&
		    !kdapl_obj_is_cancelled(obj)) {
			kdapl_obj_put(obj);
			return true;
		}
	}
	return false;
}

/*
 * Free the objects of one type; return whether any was freed. What is refused is left:
 * kdapl_ia_drain() calls again.
 */
static bool kdapl_ia_free_type(struct kdapl_ia *ia, u8 type)
{
	struct kdapl_obj *obj = NULL;
	bool freed = false;

	while ((obj = kdapl_obj_next(ia, obj))) {
		if (kdapl_type(obj) != type || !kdapl_obj_is_left(ia, obj))
			continue;
		obj->ops->free(obj);
		freed |= !kdapl_obj_published(obj);
	}
	return freed;
}

/* Does a freed Endpoint of @ia still receive? */
static bool kdapl_ia_lingers(struct kdapl_ia *ia)
{
	unsigned int bucket = 0;
	struct kdapl_ep *ep;
	u64 last = 0;

	ep = kdapl_linger_next(ia, &bucket, &last);
	if (ep)
		kdapl_obj_put(&ep->obj);
	return ep;
}

/* Pause before freeing again objects that could not be freed. */
#define KDAPL_CLOSE_RETRY	max(HZ / 50, 1)

/* Free all objects that the consumer has left. */
static void kdapl_ia_free_all(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj = NULL;
	unsigned int i;

	/* No upcall runs from here on, so no upcall finds its objects freed. */
	while ((obj = kdapl_obj_next(ia, obj)))
		if (kdapl_type(obj) == DAT_HANDLE_TYPE_EVD &&
		    kdapl_obj_is_left(ia, obj))
			kdapl_upcall_stop(container_of(obj, struct kdapl_evd,
						       obj));
	/*
	 * An object may be used by another one of its type and can be freed only after
	 * that one, so repeat until no object of the type is freed.
	 */
	for (i = 0; i < ARRAY_SIZE(kdapl_close_order); i++) {
		while (kdapl_ia_free_type(ia, kdapl_close_order[i]))
			;
		/*
		 * Wait briefly for lingering Endpoints; usually the memory can be freed
		 * then.
		 */
		if (kdapl_close_order[i] == DAT_HANDLE_TYPE_EP)
			wait_event_timeout(ia->wait, !kdapl_ia_lingers(ia),
					   KDAPL_CLOSE_RETRY);
	}
}

/*
 * Return how many objects are still to be released, without EVDs that are released later:
 * the IA's own two, and those that other IAs use for asynchronous events.
 */
static unsigned int kdapl_ia_left(struct kdapl_ia *ia)
{
	struct kdapl_evd *async = ia->async_evd;
	unsigned long flags;
	unsigned int n;

	spin_lock_irqsave(&ia->lock, flags);
	n = atomic_read(&ia->live) - ia->shared_async_evds;
	if (ia->null_evd)
		n--;
	if (async && async->obj.ia == ia && !async->async_users)
		n--;
	spin_unlock_irqrestore(&ia->lock, flags);
	return n;
}

/* Does @ia have an Endpoint that kdapl_ep_is_stuck()? */
static bool kdapl_ia_is_stuck(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj = NULL;

	while ((obj = kdapl_obj_next(ia, obj))) {
		if (kdapl_type(obj) == DAT_HANDLE_TYPE_EP &&
		    kdapl_ep_is_stuck(container_of(obj, struct kdapl_ep, obj))) {
			kdapl_obj_put(obj);
			return true;
		}
	}
	return false;
}

/*
 * Free all objects and wait until they are released. A call that was running when
 * ->closing was set may publish another object, hence the loop. Return false if no object
 * was released for KDAPL_END_WAIT and an Endpoint is stuck, which may last for ever.
 */
static bool kdapl_ia_drain(struct kdapl_ia *ia)
{
	unsigned int left, before = UINT_MAX;
	unsigned long patience = 0;

	/* Even without a reserved LMR: dat_ia_reserved_lmr() may be creating it. */
	kdapl_lmr_free_reserved(ia);
	do {
		kdapl_ia_free_all(ia);
		left = kdapl_ia_left(ia);
		if (left != before)
			patience = jiffies + KDAPL_END_WAIT;
		else if (time_after(jiffies, patience) && kdapl_ia_is_stuck(ia))
			return false;
		before = left;
	} while (!wait_event_timeout(ia->wait, !kdapl_ia_left(ia),
				     KDAPL_CLOSE_RETRY));
	return true;
}

/* Free the IA's own objects, after all others, and wait until they are released. */
static void kdapl_ia_finish(struct kdapl_ia *ia)
{
	struct kdapl_evd *async = ia->async_evd, *none;

	/* No Endpoint is left that might create the null EVD by connecting. */
	none = ia->null_evd;
	if (none) {
		ia->null_evd = NULL;
		kdapl_obj_put(&none->obj);
	}
	kdapl_async_withdraw(&ia->catastrophic);
	WRITE_ONCE(ia->async_evd, NULL);
	if (!ia->own_async_evd) {
		kdapl_evd_use_async(async, -1);
		kdapl_dep_put(&async->obj);
	} else if (kdapl_obj_unpublish(&async->obj)) {
		kdapl_upcall_stop(async);
		kdapl_obj_put(&async->obj);
	}
	wait_event(ia->wait, !kdapl_ia_left(ia));
}

/* Forbid new objects; or, after a refused close, allow them. */
static void kdapl_ia_set_closing(struct kdapl_ia *ia, bool closing)
{
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	WRITE_ONCE(ia->closing, closing);
	spin_unlock_irqrestore(&ia->lock, flags);
}

/*
 * Close @ia, if no other call has. A graceful close fails if an object exists; this is also
 * checked before ->closing is set, so that a close that fails makes no concurrent create call
 * fail. The handle is valid until it is certain that the IA is closed.
 */
static DAT_RETURN kdapl_ia_close(struct kdapl_ia *ia, bool graceful)
{
	const DAT_RETURN in_use = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);

	lockdep_assert_held(&ia->close_mutex);

	if (!kdapl_obj_published(&ia->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (graceful && kdapl_ia_in_use(ia))
		return in_use;
	kdapl_ia_set_closing(ia, true);
	/* An object may have been created before ->closing was set. */
	if ((graceful && kdapl_ia_in_use(ia)) || !kdapl_ia_drain(ia)) {
		if (graceful)
			kdapl_ia_set_closing(ia, false);
		return in_use;
	}
	kdapl_obj_unpublish(&ia->obj);
	kdapl_ia_finish(ia);
	kdapl_obj_put(&ia->obj);
	return DAT_SUCCESS;
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
	/* If another call closes the IA, wait whether it does. */
	mutex_lock(&ia->close_mutex);
	ret = kdapl_ia_close(ia, flags == DAT_CLOSE_GRACEFUL_FLAG);
	mutex_unlock(&ia->close_mutex);
	kdapl_upcall_wait_end(&wait);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ia_close);

/**
 * kdapl_ia_stop - end all communication with peers, because the device is leaving
 * @ia: the IA
 * @wait: wait until each connection is down. The first pass does not wait, so that two
 *	connected Endpoints of one device do not wait for each other
 *
 * Context: Process context; hca->gone is set, so no call creates verbs objects.
 */
void kdapl_ia_stop(struct kdapl_ia *ia, bool wait)
{
	struct kdapl_obj *obj = NULL;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kdapl_close_order); i++)
		while ((obj = kdapl_obj_next(ia, obj)))
			if (kdapl_type(obj) == kdapl_close_order[i] &&
			    obj->ops->stop)
				obj->ops->stop(obj, wait);
}

/*
 * Destroy the verbs objects of every DAT object of @ia, also of objects whose release is
 * queued. Context: Process context.
 */
void kdapl_ia_strip(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj = NULL;
	unsigned int i;

	lockdep_assert_held_write(&ia->hca->sem);

	for (i = 0; i < ARRAY_SIZE(kdapl_close_order); i++)
		while ((obj = kdapl_obj_next_held(ia, obj)))
			if (kdapl_type(obj) == kdapl_close_order[i] &&
			    obj->ops->strip)
				obj->ops->strip(obj);
}
