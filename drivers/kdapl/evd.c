// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event Dispatchers: creation, query, resizing, software events, dequeue, free.
 *
 * The lists are in evd_event.c, the dispatcher in evd_upcall.c. Here evd->mutex
 * protects the memory for software events and ->vector, evd->lock all else.
 */
#include <linux/slab.h>
#include <dat/kdat_linux.h>
#include "evd.h"
#include "ia.h"

#define KDAPL_EVD_FLAGS_ALL (DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG | \
			     DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | \
			     DAT_EVD_RMR_BIND_FLAG | DAT_EVD_ASYNC_FLAG)

static void kdapl_evd_drop_events(struct kdapl_evd *evd)
{
	struct kdapl_event *ev;
	DAT_EVENT ignored;

	while (kdapl_evd_dequeue(evd, &ignored))
		;
	while (!list_empty(&evd->soft_free)) {
		ev = list_first_entry(&evd->soft_free, struct kdapl_event,
				      link);
		list_del(&ev->link);
		kfree(container_of(ev, struct kdapl_soft_event, ev));
	}
}

static void kdapl_evd_release(struct kdapl_obj *obj)
{
	struct kdapl_evd *evd = container_of(obj, struct kdapl_evd, obj);

	kdapl_cq_destroy_all(evd);
	kdapl_upcall_stop(evd);
	kdapl_upcall_end(evd);
	kdapl_async_withdraw(&evd->overflow);
	kdapl_evd_drop_events(evd);
	kdapl_obj_free(obj);
}

/*
 * Free an EVD because its IA is closed. An EVD that another IA uses for
 * asynchronous events stays alive with that IA, but loses its handle and its
 * upcalls.
 */
static DAT_RETURN kdapl_evd_obj_free(struct kdapl_obj *obj)
{
	struct kdapl_evd *evd = container_of(obj, struct kdapl_evd, obj);

	if (dat_evd_free(kdapl_handle(obj)) == DAT_SUCCESS ||
	    !kdapl_obj_unpublish(obj))
		return DAT_SUCCESS;
	kdapl_upcall_stop(evd);
	/* The overflow event may be queued on an EVD that outlives @evd. */
	kdapl_async_withdraw(&evd->overflow);
	kdapl_obj_put(obj);
	return DAT_SUCCESS;
}

static void kdapl_evd_strip(struct kdapl_obj *obj)
{
	kdapl_cq_destroy_all(container_of(obj, struct kdapl_evd, obj));
}

static void kdapl_evd_init(struct kdapl_obj *obj)
{
	struct kdapl_evd *evd = container_of(obj, struct kdapl_evd, obj);

	spin_lock_init(&evd->lock);
	evd->vector = KDAT_VECTOR_ANY;
	evd->cq_vector = KDAT_VECTOR_ANY;
	mutex_init(&evd->mutex);
	mutex_init(&evd->stop_mutex);
	INIT_LIST_HEAD(&evd->events);
	INIT_LIST_HEAD(&evd->cqs);
	INIT_LIST_HEAD(&evd->to_poll);
	init_llist_head(&evd->notified);
	INIT_LIST_HEAD(&evd->soft_free);
	kdapl_async_init(&evd->overflow, &evd->obj,
			 DAT_ASYNC_ERROR_EVD_OVERFLOW,
			 DAT_EVD_OVERFLOW_ERROR);
	kdapl_upcall_init(evd);
	INIT_WORK(&evd->failed, kdapl_cq_failed);
}

static const struct kdapl_obj_ops kdapl_evd_ops = {
	.init = kdapl_evd_init,
	.release = kdapl_evd_release,
	.free = kdapl_evd_obj_free,
	.strip = kdapl_evd_strip,
};

/* Allocate memory for @total software events in all. */
static int kdapl_evd_grow_soft(struct kdapl_evd *evd, u32 total)
{
	struct kdapl_soft_event *soft;
	unsigned long flags;

	lockdep_assert_held(&evd->mutex);

	if (!(evd->flags & DAT_EVD_SOFTWARE_FLAG))
		return 0;
	while (evd->soft_total < total) {
		soft = kzalloc(sizeof(*soft), GFP_KERNEL);
		if (!soft)
			return -ENOMEM;
		soft->ev.kind = KDAPL_EV_SOFTWARE;
		spin_lock_irqsave(&evd->lock, flags);
		list_add(&soft->ev.link, &evd->soft_free);
		spin_unlock_irqrestore(&evd->lock, flags);
		evd->soft_total++;
	}
	return 0;
}

struct kdapl_evd *kdapl_evd_alloc(struct kdapl_ia *ia, DAT_COUNT qlen,
				  DAT_EVD_FLAGS flags, int *err)
{
	struct kdapl_evd *evd;

	evd = kdapl_obj_alloc(sizeof(*evd), DAT_HANDLE_TYPE_EVD, ia, &kdapl_evd_ops);
	*err = PTR_ERR_OR_ZERO(evd);
	if (*err)
		return NULL;
	evd->qlen = qlen;
	evd->flags = flags;
	/* Only DTO and RMR streams start in a completion interrupt. */
	evd->softirq = !(flags & ~(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG));
	mutex_lock(&evd->mutex);
	*err = kdapl_evd_grow_soft(evd, qlen);
	mutex_unlock(&evd->mutex);
	if (*err) {
		kdapl_obj_put(&evd->obj);
		return NULL;
	}
	return evd;
}

static DAT_RETURN kdapl_evd_check(struct kdapl_ia *ia, DAT_COUNT qlen,
				  DAT_UPCALL_POLICY policy,
				  const DAT_UPCALL_OBJECT *upcall,
				  DAT_EVD_FLAGS flags)
{
	if (qlen <= 0)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (qlen > ia->hca->max_qlen)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	switch (policy) {
	case DAT_UPCALL_DISABLE:
		break;
	case DAT_UPCALL_SINGLE_INSTANCE:
	case DAT_UPCALL_MANY:
	case DAT_UPCALL_NORIFY:
		if (!upcall || !upcall->upcall_func)
			return DAT_ERROR(DAT_INVALID_PARAMETER,
					 DAT_INVALID_ARG4);
		break;
	default:
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	}
	if (!flags || flags & ~KDAPL_EVD_FLAGS_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	return DAT_SUCCESS;
}

DAT_RETURN __dat_evd_kcreate(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			     DAT_UPCALL_POLICY upcall_policy,
			     const DAT_UPCALL_OBJECT *upcall,
			     DAT_EVD_FLAGS evd_flags,
			     DAT_EVD_HANDLE *evd_handle, struct module *owner)
{
	struct kdapl_evd *evd;
	struct kdapl_ia *ia;
	DAT_RETURN ret;
	int err;

	might_sleep();
	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = kdapl_evd_check(ia, evd_min_qlen, upcall_policy, upcall,
			      evd_flags);
	if (ret == DAT_SUCCESS && !evd_handle)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (ret != DAT_SUCCESS)
		goto out;

	ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	if (!kdapl_hca_enter(ia->hca))
		goto out;
	evd = kdapl_evd_alloc(ia, evd_min_qlen, evd_flags, &err);
	if (evd) {
		evd->policy = upcall_policy;
		if (upcall)
			evd->upcall = *upcall;
		evd->owner = owner;
		*evd_handle = kdapl_handle(&evd->obj);
		kdapl_obj_publish(&evd->obj);
	}
	ret = kdapl_errno_to_dat(err);
	kdapl_hca_leave(ia->hca);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(__dat_evd_kcreate);

DAT_RETURN (dat_evd_kcreate)(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			     DAT_UPCALL_POLICY upcall_policy,
			     const DAT_UPCALL_OBJECT *upcall,
			     DAT_EVD_FLAGS evd_flags,
			     DAT_EVD_HANDLE *evd_handle)
{
	return __dat_evd_kcreate(ia_handle, evd_min_qlen, upcall_policy, upcall,
				 evd_flags, evd_handle, NULL);
}
EXPORT_SYMBOL(dat_evd_kcreate);

DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle,
			 DAT_EVD_PARAM_MASK evd_param_mask,
			 DAT_EVD_PARAM *evd_param)
{
	struct kdapl_evd *evd;
	unsigned long flags;
	DAT_RETURN ret;

	rcu_read_lock();
	evd = kdapl_find_queried(evd_handle, DAT_HANDLE_TYPE_EVD,
				 evd_param_mask & ~DAT_EVD_FIELD_ALL,
				 evd_param, &ret);
	if (!evd)
		goto out;
	spin_lock_irqsave(&evd->lock, flags);
	evd_param->ia_handle = kdapl_handle(&evd->obj.ia->obj);
	evd_param->evd_qlen = evd->qlen;
	evd_param->upcall_policy = evd->policy;
	evd_param->upcall = evd->upcall;
	evd_param->evd_flags = evd->flags;
	spin_unlock_irqrestore(&evd->lock, flags);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_evd_query);

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_evd *evd;
	unsigned long flags;

	might_sleep();
	evd = kdapl_obj_get(evd_handle, DAT_HANDLE_TYPE_EVD);
	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (evd_min_qlen <= 0) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	if (evd_min_qlen > evd->obj.ia->hca->max_qlen) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
		goto out;
	}

	mutex_lock(&evd->mutex);
	if (kdapl_evd_grow_soft(evd, evd_min_qlen)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_MEMORY);
	} else {
		spin_lock_irqsave(&evd->lock, flags);
		if (evd->count > evd_min_qlen) {
			ret = DAT_ERROR(DAT_INVALID_STATE,
					DAT_NO_SUBTYPE);
		} else {
			/* An overflow after this is a new episode. */
			evd->qlen = evd_min_qlen;
			evd->overflowed = false;
		}
		spin_unlock_irqrestore(&evd->lock, flags);
	}
	mutex_unlock(&evd->mutex);
	if (ret == DAT_SUCCESS)
		kdapl_upcall_schedule(evd);
out:
	kdapl_obj_put(&evd->obj);
	return ret;
}
EXPORT_SYMBOL(dat_evd_resize);

DAT_RETURN kdat_evd_set_vector(DAT_EVD_HANDLE evd_handle, DAT_COUNT vector)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_evd *evd;

	might_sleep();
	evd = kdapl_obj_get(evd_handle, DAT_HANDLE_TYPE_EVD);
	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (vector < 0 && vector != KDAT_VECTOR_ANY) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	/* kdapl_cq_vector() reads evd->vector under this mutex, or that of another EVD. */
	mutex_lock(&evd->mutex);
	if (list_empty(&evd->cqs))
		WRITE_ONCE(evd->vector, vector);
	else
		ret = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	mutex_unlock(&evd->mutex);
out:
	kdapl_obj_put(&evd->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_evd_set_vector);

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	struct kdapl_later later = { .n = 0 };
	struct kdapl_soft_event *soft;
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_evd *evd;
	unsigned long flags;

	rcu_read_lock();
	evd = kdapl_find(evd_handle, DAT_HANDLE_TYPE_EVD);
	if (!evd) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
		goto out;
	}
	if (!(evd->flags & DAT_EVD_SOFTWARE_FLAG)) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
		goto out;
	}
	if (!event || event->event_number != DAT_SOFTWARE_EVENT) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	spin_lock_irqsave(&evd->lock, flags);
	if (evd->count >= evd->qlen || list_empty(&evd->soft_free)) {
		ret = DAT_ERROR(DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
	} else {
		soft = list_first_entry(&evd->soft_free,
					struct kdapl_soft_event, ev.link);
		list_del(&soft->ev.link);
		soft->pointer = event->event_data.software_event_data.pointer;
		kdapl_evd_add(evd, &soft->ev, &later);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (ret == DAT_SUCCESS)
		kdapl_upcall_schedule(evd);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_evd_post_se);

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_evd *evd;

	rcu_read_lock();
	evd = kdapl_find(evd_handle, DAT_HANDLE_TYPE_EVD);
	if (unlikely(!evd))
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	else if (unlikely(!event))
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else if (!kdapl_evd_dequeue(evd, event))
		ret = DAT_ERROR(DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_evd_dequeue);

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle)
{
	struct kdapl_upcall_wait wait;
	struct kdapl_evd *evd;
	DAT_RETURN ret;

	ret = kdapl_evd_get_to_wait(evd_handle, &wait, &evd);
	if (ret != DAT_SUCCESS)
		return ret;
	might_sleep();
	if (!kdapl_obj_retire(&evd->obj)) {
		ret = atomic_read(&evd->obj.users) < 0 ?
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1) :
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_EVD_IN_USE);
	} else if (kdapl_obj_unpublish(&evd->obj)) {
		/* The consumer may free the data of its upcall when this returns. */
		kdapl_upcall_stop(evd);
		kdapl_async_withdraw(&evd->overflow);
		kdapl_event_abandon_all(evd);
		kdapl_obj_put(&evd->obj);
	}
	kdapl_upcall_wait_end(&wait);
	kdapl_obj_put(&evd->obj);
	return ret;
}
EXPORT_SYMBOL(dat_evd_free);
