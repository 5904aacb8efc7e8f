// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Adapters of servers. One is opened for the first place that needs it, and closed by a work
 * item when the last place and connection have dropped it, as kdat_adapter_put() may be called
 * anywhere.
 */
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include "cm.h"
#include "ia.h"
#include "pool.h"
#include "portal.h"

static void kdapl_adapter_async(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	KDAT_ADAPTER *a = data;
	const KDAT_SERVER_ATTR *attr = &a->server->attr;
	bool known = event->event_number == DAT_ASYNC_SRQ_LOW_WATERMARK && a->pool;

	if (event->event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC) {
		pr_warn("%s: %s is gone\n", attr->name, a->name);
		WRITE_ONCE(a->gone, DAT_TRUE);
		mod_delayed_work(kdapl_portal_wq, &a->server->work, 0);
		return;
	}
	if (known)
		kdat_pool_ran_low(a->pool);
	if (!(attr->async && attr->async(a, event)) && !known)
		pr_warn_ratelimited("%s: %s: %s\n", attr->name, a->name,
				    kdat_event_name(event->event_number));
}

static void kdapl_adapter_event(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *arrival = &event->event_data.cr_arrival_event_data;
	DAT_CR_HANDLE cr = arrival->cr_handle;
	KDAT_ADAPTER *a = data;
	DAT_CONTEXT context;
	DAT_CR_PARAM param;
	KDAT_HOST host;
	DAT_RETURN ret;

	if (event->event_number != DAT_CONNECTION_REQUEST_EVENT) {
		a->server->attr.event(a, event, more);
		return;
	}
	/* kdapl_place_points() may be about to set it; or the Service Point is freed. */
	mutex_lock(&a->mutex);
	ret = dat_get_consumer_context(arrival->sp_handle.csp_handle, &context);
	mutex_unlock(&a->mutex);
	if (ret == DAT_SUCCESS)
		ret = dat_cr_query(cr, DAT_CR_FIELD_ALL, &param);
	if (ret != DAT_SUCCESS) {
		/* If it is the peer that has given up, this frees the request. */
		dat_cr_reject(cr, 0, NULL);
		return;
	}
	kdapl_cr_host(cr, &param, &host);
	a->server->attr.request(a, context.as_ptr, cr, &param, &host);
}

/* Close @a and free it. The abrupt close is for objects that the consumer has leaked. */
static void kdapl_adapter_close(KDAT_ADAPTER *a)
{
	struct kdat_server *server = a->server;
	const KDAT_SERVER_ATTR *attr = &server->attr;

	dat_evd_modify_upcall(a->async_evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
			      DAT_UPCALL_INVOC_NEW);
	if (a->opened && attr->close)
		attr->close(a);
	kdat_pool_free(a->pool);
	dat_evd_free(a->cm_evd);
	dat_pz_free(a->pz);
	if (a->ia && dat_ia_close(a->ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS) {
		pr_warn("%s: objects are left in %s\n", attr->name, a->name);
		if (DAT_GET_TYPE(dat_ia_close(a->ia, DAT_CLOSE_ABRUPT_FLAG)) == DAT_INVALID_STATE)
			pr_err("%s: a connection does not end: %s stays open\n", attr->name,
			       a->name);
	}
	if (a->opened && attr->closed)
		attr->closed(a);
	kfree(a);
	/* kdat_server_free() frees the server behind the last one. litmus: last-put */
	if (atomic_dec_and_test(&server->open))
		wake_up_var(&server->open);
}

static void kdapl_adapter_free_work(struct work_struct *work)
{
	KDAT_ADAPTER *a = container_of(work, KDAT_ADAPTER, free_work);
	struct kdat_server *server = a->server;
	bool dead;

	mutex_lock(&server->mutex);
	dead = server->dead;
	if (!dead)
		list_del(&a->link);
	mutex_unlock(&server->mutex);
	if (!dead)
		kdapl_adapter_close(a);
}

void kdat_adapter_get(KDAT_ADAPTER *adapter)
{
	refcount_inc(&adapter->refs);
}
EXPORT_SYMBOL(kdat_adapter_get);

void kdat_adapter_put(KDAT_ADAPTER *adapter)
{
	if (refcount_dec_and_test(&adapter->refs))
		queue_work(kdapl_portal_wq, &adapter->free_work);
}
EXPORT_SYMBOL(kdat_adapter_put);

/* Make what the connections of @a share. */
static DAT_RETURN kdapl_adapter_objects(KDAT_ADAPTER *a, DAT_PVOID context)
{
	const KDAT_SERVER_ATTR *attr = &a->server->attr;
	DAT_UPCALL_OBJECT async = { a, kdapl_adapter_async }, cm = { a, kdapl_adapter_event };
	KDAT_POOL_ATTR pool = {
		.ia = a->ia, .name = a->name, .size = attr->size, .context = a,
		.length = attr->buffer_length, .header = attr->buffer_header,
	};
	DAT_RETURN ret;

	ret = dat_ia_query(a->ia, NULL, DAT_IA_FIELD_ALL, &a->attr, DAT_PROVIDER_FIELD_ALL,
			   &a->provider);
	/* Only iWARP has longer private data. */
	a->iwarp = a->provider.max_private_data_size > 56;
	if (ret == DAT_SUCCESS)
		ret = dat_pz_create(a->ia, &a->pz);
	if (ret == DAT_SUCCESS)
		ret = __dat_evd_kcreate(a->ia, attr->cm_qlen + attr->cr_qlen,
					DAT_UPCALL_SINGLE_INSTANCE, &cm,
					DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG, &a->cm_evd,
					attr->owner);
	a->opened = ret == DAT_SUCCESS;
	if (ret == DAT_SUCCESS && attr->open)
		ret = attr->open(a, context);
	pool.pz = a->pz;
	if (ret == DAT_SUCCESS && pool.length)
		ret = kdat_pool_create(&pool, &a->pool);
	a->srq = a->pool ? a->pool->srq : NULL;
	if (ret == DAT_SUCCESS)
		ret = __dat_evd_modify_upcall(a->async_evd, DAT_UPCALL_SINGLE_INSTANCE, &async,
					      DAT_UPCALL_INVOC_ANY, attr->owner);
	return ret;
}

/*
 * Store at @adapter the adapter of the IA @id, one that there is or a new one, opened for the
 * portal with @context. The caller owns a reference.
 */
DAT_RETURN kdapl_adapter_find(struct kdat_server *server, u64 id, DAT_PVOID context,
			      KDAT_ADAPTER **adapter)
{
	DAT_RETURN ret;
	KDAT_ADAPTER *a;

	lockdep_assert_held(&server->mutex);

	list_for_each_entry(a, &server->adapters, link)
		if (a->id == id && !server->attr.exclusive && !READ_ONCE(a->gone) &&
		    refcount_inc_not_zero(&a->refs)) {
			*adapter = a;
			return DAT_SUCCESS;
		}
	a = kzalloc(server->attr.adapter_size, GFP_KERNEL);
	if (!a)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	a->server = server;
	atomic_inc(&server->open);
	refcount_set(&a->refs, 1);
	mutex_init(&a->mutex);
	INIT_WORK(&a->free_work, kdapl_adapter_free_work);
	ret = kdat_ia_name(id, a->name);
	if (ret == DAT_SUCCESS)
		ret = __dat_ia_openv(a->name, server->attr.cm_qlen, &a->async_evd, &a->ia,
				     DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_THREADSAFE,
				     server->attr.name, server->attr.owner);
	kdat_ia_id(a->ia, &a->id);
	/* Another device may have the name by now. */
	if (ret == DAT_SUCCESS && a->id != id)
		ret = DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (ret == DAT_SUCCESS)
		ret = kdapl_adapter_objects(a, context);
	if (ret != DAT_SUCCESS) {
		kdapl_adapter_close(a);
		return ret;
	}
	list_add_tail(&a->link, &server->adapters);
	*adapter = a;
	return DAT_SUCCESS;
}

/* Adopt the present names of all adapters. */
void kdapl_adapters_follow(struct kdat_server *server)
{
	char name[DAT_NAME_MAX_LENGTH];
	KDAT_ADAPTER *a;

	list_for_each_entry(a, &server->adapters, link) {
		if (kdat_ia_name(a->id, name) != DAT_SUCCESS || !strcmp(name, a->name))
			continue;
		pr_info("%s: %s is called %s now\n", server->attr.name, a->name, name);
		strscpy(a->name, name, sizeof(a->name));
	}
}

void kdat_server_adapters(KDAT_SERVER_HANDLE server, KDAT_ADAPTER_FUNC fn, DAT_PVOID data)
{
	KDAT_ADAPTER *a;

	might_sleep();
	mutex_lock(&server->mutex);
	list_for_each_entry(a, &server->adapters, link)
		if (refcount_inc_not_zero(&a->refs)) {
			fn(a, data);
			kdat_adapter_put(a);
		}
	mutex_unlock(&server->mutex);
}
EXPORT_SYMBOL(kdat_server_adapters);
