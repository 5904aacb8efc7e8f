// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Servers, <dat/kdat_portal.h>: their portals, the IAs that each portal is to listen on (its
 * places), and their adapters. What may change where a portal listens, an IA or an address that
 * comes, goes, is renamed, has one work item of the server look at all portals. It looks again
 * each second while a portal fails for a reason that no notification will end. An adapter is
 * opened for the first place that needs it, and closed by a work item when the last place and
 * connection have dropped it, as kdat_adapter_put() may be called anywhere.
 *
 * A server is a consumer of kDAPL in the name of its module: IAs, EVDs and upcalls are of that
 * module. What the module has left of them goes with it, see ia_unload.c.
 *
 * server->mutex is held while the consumer's functions are called, but not in upcalls, for
 * which dat_evd_free() waits with the mutex held.
 */
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <net/net_namespace.h>
#include <dat/kdat_linux.h>
#include <dat/kdat_portal.h>
#include "addr.h"
#include "cm.h"
#include "ia.h"
#include "pool.h"

#define KDAPL_PLACES	64	/* most IAs that a wildcard listens on */

/*
 * struct kdat_server - a server
 * @open: number of adapters that are not freed
 * @dead: the module has gone; no function of @attr is called any more
 */
struct kdat_server {
	KDAT_SERVER_ATTR attr;
	struct list_head link;
	struct mutex mutex;		/* portals, their places, adapters */
	struct list_head portals;
	struct list_head adapters;
	KDAT_NOTIFIER_HANDLE notifier;
	struct delayed_work work;	/* looks at all portals */
	atomic_t open;
	bool dead;
};

/*
 * struct kdat_portal - a portal
 * @addr: address and port; behind it the wildcard of IPv4, for that of IPv6
 * @naddrs: number of @addr
 * @ia_name: of a portal of one IA: the name when the portal was made, or when the IA left
 * @listens: number of places that the portal listens at
 */
struct kdat_portal {
	struct list_head link;
	struct kdat_server *server;
	struct sockaddr_storage addr[2];
	unsigned int naddrs;
	char ia_name[DAT_NAME_MAX_LENGTH];
	DAT_PVOID context;
	struct list_head places;
	unsigned int listens;
};

/*
 * struct kdapl_place - an IA that a portal is to listen on
 * @adapter: the adapter that the portal listens on, referenced; NULL if it cannot listen
 * @evd: for connection requests; like the Service Points, a handle that may be stale
 * @told: error that the log was told of
 */
struct kdapl_place {
	struct list_head link;
	struct kdat_portal *portal;
	u64 id;
	KDAT_ADAPTER *adapter;
	DAT_EVD_HANDLE evd;
	DAT_CSP_HANDLE csp[2];
	DAT_RETURN told;
};

static DEFINE_MUTEX(kdapl_servers_lock);	/* kdapl_servers */
static LIST_HEAD(kdapl_servers);

static void kdapl_server_look(DAT_PVOID server, DAT_COUNT what)
{
	mod_delayed_work(system_long_wq, &((struct kdat_server *)server)->work, 0);
}

static void kdapl_adapter_async(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	KDAT_ADAPTER *a = data;
	const KDAT_SERVER_ATTR *attr = &a->server->attr;
	bool known = event->event_number == DAT_ASYNC_SRQ_LOW_WATERMARK && a->pool;

	if (event->event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC) {
		pr_warn("%s: %s is gone\n", attr->name, a->name);
		WRITE_ONCE(a->gone, DAT_TRUE);
		kdapl_server_look(a->server, KDAT_CHANGED_IAS);
		return;
	}
	if (known)
		kdat_pool_ran_low(a->pool);
	if (!(attr->async && attr->async(a, event)) && !known)
		pr_warn_ratelimited("%s: %s: %s\n", attr->name, a->name,
				    kdat_event_name(event->event_number));
}

static void kdapl_place_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct kdapl_place *place = data;
	struct kdat_portal *p = place->portal;
	DAT_CR_PARAM param;
	KDAT_HOST host;

	if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &param) != DAT_SUCCESS)
		return;
	kdapl_cr_host(cr, &param, &host);
	p->server->attr.request(place->adapter, p->context, cr, &param, &host);
}

/* ---- Adapters ------------------------------------------------------------ */

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
		dat_ia_close(a->ia, DAT_CLOSE_ABRUPT_FLAG);
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
		queue_work(system_long_wq, &adapter->free_work);
}
EXPORT_SYMBOL(kdat_adapter_put);

/* Make what the connections of @a share. */
static DAT_RETURN kdapl_adapter_objects(KDAT_ADAPTER *a, DAT_PVOID context)
{
	const KDAT_SERVER_ATTR *attr = &a->server->attr;
	DAT_UPCALL_OBJECT async = { a, kdapl_adapter_async }, cm = { a, attr->event };
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
		ret = __dat_evd_kcreate(a->ia, attr->cm_qlen, DAT_UPCALL_SINGLE_INSTANCE, &cm,
					DAT_EVD_CONNECTION_FLAG, &a->cm_evd, attr->owner);
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

/* Set the adapter of @place, one that there is or a new one. */
static DAT_RETURN kdapl_place_adapter(struct kdapl_place *place)
{
	struct kdat_server *server = place->portal->server;
	DAT_RETURN ret;
	KDAT_ADAPTER *a;

	list_for_each_entry(a, &server->adapters, link)
		if (a->id == place->id && !server->attr.exclusive && !READ_ONCE(a->gone) &&
		    refcount_inc_not_zero(&a->refs)) {
			place->adapter = a;
			return DAT_SUCCESS;
		}
	a = kzalloc(server->attr.adapter_size, GFP_KERNEL);
	if (!a)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	a->server = server;
	atomic_inc(&server->open);
	refcount_set(&a->refs, 1);
	INIT_WORK(&a->free_work, kdapl_adapter_free_work);
	ret = kdat_ia_name(place->id, a->name);
	if (ret == DAT_SUCCESS)
		ret = __dat_ia_openv(a->name, server->attr.cm_qlen, &a->async_evd, &a->ia,
				     DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_THREADSAFE,
				     server->attr.name, server->attr.owner);
	kdat_ia_id(a->ia, &a->id);
	/* Another device may have the name by now. */
	if (ret == DAT_SUCCESS && a->id != place->id)
		ret = DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (ret == DAT_SUCCESS)
		ret = kdapl_adapter_objects(a, place->portal->context);
	if (ret != DAT_SUCCESS) {
		kdapl_adapter_close(a);
		return ret;
	}
	list_add_tail(&a->link, &server->adapters);
	place->adapter = a;
	return DAT_SUCCESS;
}

/* Adopt the present names of all adapters. */
static void kdapl_adapters_follow(struct kdat_server *server)
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

void kdat_server_adapters(KDAT_SERVER_HANDLE server,
			  void (*fn)(KDAT_ADAPTER *adapter, DAT_PVOID data), DAT_PVOID data)
{
	KDAT_ADAPTER *a;

	might_sleep();
	mutex_lock(&server->mutex);
	list_for_each_entry(a, &server->adapters, link)
		fn(a, data);
	mutex_unlock(&server->mutex);
}
EXPORT_SYMBOL(kdat_server_adapters);

/* Stop listening at @place, which has an adapter; if it has listened, @heard is set. */
static void kdapl_place_stop(struct kdapl_place *place, bool heard)
{
	const KDAT_SERVER_ATTR *attr = &place->portal->server->attr;

	dat_csp_free(place->csp[0]);
	dat_csp_free(place->csp[1]);
	dat_evd_free(place->evd);
	place->portal->listens -= heard;
	if (heard && attr->deaf)
		attr->deaf(place->adapter, place->portal->context);
	kdat_adapter_put(place->adapter);
	place->adapter = NULL;
}

/* Make the Service Points. Of the two for the wildcard of IPv6 one may fail, but on one IA. */
static DAT_RETURN kdapl_place_points(struct kdapl_place *place)
{
	struct kdat_portal *p = place->portal;
	DAT_RETURN ret, first = DAT_SUCCESS;
	DAT_COMM comm = { .type = SOCK_STREAM };
	DAT_IA_ADDRESS_PTR addr;
	unsigned int i, failed = 0;

	for (i = 0; i < p->naddrs; i++) {
		addr = (DAT_IA_ADDRESS_PTR)(p->addr + i);
		comm.domain = addr->sa_family;
		ret = dat_csp_create(place->adapter->ia, &comm, addr, place->evd,
				     place->csp + i);
		failed += ret != DAT_SUCCESS;
		first = first ?: ret;
	}
	return failed < p->naddrs && !p->ia_name[0] ? DAT_SUCCESS : first;
}

static DAT_RETURN kdapl_place_listen(struct kdapl_place *place)
{
	DAT_UPCALL_OBJECT upcall = { place, kdapl_place_upcall };
	struct kdat_portal *p = place->portal;
	const KDAT_SERVER_ATTR *attr = &p->server->attr;
	DAT_RETURN ret;

	ret = kdapl_place_adapter(place);
	if (ret != DAT_SUCCESS)
		return ret;
	ret = __dat_evd_kcreate(place->adapter->ia, attr->cr_qlen, DAT_UPCALL_SINGLE_INSTANCE,
				&upcall, DAT_EVD_CR_FLAG, &place->evd, attr->owner);
	if (ret == DAT_SUCCESS)
		ret = kdapl_place_points(place);
	if (ret != DAT_SUCCESS) {
		kdapl_place_stop(place, false);
		return ret;
	}
	p->listens++;
	pr_info("%s: %s: listening at %pISpc\n", attr->name, place->adapter->name, p->addr);
	if (attr->listens)
		attr->listens(place->adapter, p->context);
	return DAT_SUCCESS;
}

/* ---- Portals ------------------------------------------------------------- */

/* Store the numbers of the IAs that @p is to listen on at @ids, and how many these are at @n. */
static DAT_RETURN kdapl_portal_ids(struct kdat_portal *p, u64 *ids, unsigned int *n)
{
	struct kdapl_place *place = list_first_entry_or_null(&p->places, struct kdapl_place,
							     link);
	DAT_RETURN ret = DAT_SUCCESS;

	*n = 1;
	if (!kdapl_addr_any(p->addr)) {
		ret = kdapl_ia_find((struct sockaddr *)p->addr, ids);
		*n = ret == DAT_SUCCESS;
	} else if (!p->ia_name[0]) {
		*n = kdapl_ia_ids(NULL, ids, KDAPL_PLACES);
	} else if (place && place->adapter && !READ_ONCE(place->adapter->gone)) {
		*ids = place->id;
	} else {
		if (place && place->adapter)
			kdat_ia_name(place->id, p->ia_name);
		*n = kdapl_ia_ids(p->ia_name, ids, 1);
	}
	return DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND ? DAT_SUCCESS : ret;
}

/* Free the places of @p that are not among @ids, or whose device has left. */
static void kdapl_portal_sweep(struct kdat_portal *p, const u64 *ids, unsigned int n)
{
	struct kdapl_place *place, *next;
	unsigned int i;

	list_for_each_entry_safe(place, next, &p->places, link) {
		for (i = 0; i < n && ids[i] != place->id; i++)
			;
		if (i < n && !(place->adapter && READ_ONCE(place->adapter->gone)))
			continue;
		if (place->adapter)
			kdapl_place_stop(place, true);
		list_del(&place->link);
		kfree(place);
	}
}

/* Let @p listen on the IA @id. Return an error that no notification will end, if any. */
static DAT_RETURN kdapl_portal_listen(struct kdat_portal *p, u64 id)
{
	char name[DAT_NAME_MAX_LENGTH];
	const char *type, *subtype;
	struct kdapl_place *place;
	DAT_RETURN ret;
	u64 now;

	list_for_each_entry(place, &p->places, link)
		if (place->id == id)
			goto found;
	place = kzalloc(sizeof(*place), GFP_KERNEL);
	if (!place)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	place->portal = p;
	place->id = id;
	list_add_tail(&place->link, &p->places);
found:
	ret = place->adapter ? DAT_SUCCESS : kdapl_place_listen(place);
	/* It may get an address later; or leaves, and calls fail with any error; or is renamed. */
	if (DAT_GET_TYPE(ret) == DAT_INVALID_ADDRESS || kdat_ia_name(id, name) != DAT_SUCCESS ||
	    !kdapl_ia_ids(name, &now, 1) || now != id)
		ret = DAT_SUCCESS;
	/* It is logged once until it changes. */
	if (ret != DAT_SUCCESS && ret != place->told &&
	    dat_strerror(ret, &type, &subtype) == DAT_SUCCESS)
		pr_warn("%s: %s: cannot listen at %pISpc: %s %s\n", p->server->attr.name,
			name, p->addr, type, subtype);
	place->told = ret;
	return ret;
}

/* Let @p listen where it can now. */
static DAT_RETURN kdapl_portal_look(struct kdat_portal *p)
{
	u64 ids[KDAPL_PLACES];
	unsigned int n, i;
	DAT_RETURN ret;

	lockdep_assert_held(&p->server->mutex);

	ret = kdapl_portal_ids(p, ids, &n);
	if (ret != DAT_SUCCESS)
		return ret;
	kdapl_portal_sweep(p, ids, n);
	for (i = 0; i < n; i++)
		ret = kdapl_portal_listen(p, ids[i]) ?: ret;
	return ret;
}

/* Set where @p listens; on one IA it is a wildcard. */
static DAT_RETURN kdapl_portal_set(struct kdat_portal *p, const KDAT_PORTAL_ATTR *attr)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(attr->port) };
	const struct sockaddr *addr = attr->address ?: (struct sockaddr *)&any;
	bool v6 = addr->sa_family == AF_INET6;

	if (attr->net && !net_eq(attr->net, &init_net))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (addr->sa_family != AF_INET && !v6)
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	memcpy(p->addr, addr, v6 ? sizeof(any) : sizeof(struct sockaddr_in));
	p->naddrs = v6 && kdapl_addr_any(p->addr) && !attr->only_v6 ? 2 : 1;
	p->addr[1].ss_family = AF_INET;
	((struct sockaddr_in *)&p->addr[1])->sin_port = htons(kdapl_addr_port(p->addr));
	if (!kdapl_addr_port(p->addr) ||
	    (!attr->address && (!attr->ia_name || strscpy(p->ia_name, attr->ia_name,
							  sizeof(p->ia_name)) <= 0)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return DAT_SUCCESS;
}

DAT_RETURN kdat_portal_create(KDAT_SERVER_HANDLE server, const KDAT_PORTAL_ATTR *attr,
			      KDAT_PORTAL_HANDLE *portal)
{
	struct kdat_portal *p;
	DAT_RETURN ret;

	might_sleep();
	if (!server || !attr || !portal)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE);
	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	p->server = server;
	p->context = attr->context;
	INIT_LIST_HEAD(&p->places);
	ret = kdapl_portal_set(p, attr);
	mutex_lock(&server->mutex);
	if (ret == DAT_SUCCESS)
		ret = kdapl_portal_look(p);
	list_add_tail(&p->link, &server->portals);
	if (ret != DAT_SUCCESS && !p->listens) {
		mutex_unlock(&server->mutex);
		kdat_portal_free(p);
		return ret;
	}
	if (!p->listens)
		pr_info("%s: waiting for %s, to listen at %pISpc\n", server->attr.name,
			p->ia_name[0] ? p->ia_name : "an adapter", p->addr);
	if (ret != DAT_SUCCESS)
		queue_delayed_work(system_long_wq, &server->work, HZ);
	mutex_unlock(&server->mutex);
	*portal = p;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(kdat_portal_create);

void kdat_portal_free(KDAT_PORTAL_HANDLE portal)
{
	struct kdat_server *server;

	might_sleep();
	if (!portal)
		return;
	server = portal->server;
	mutex_lock(&server->mutex);
	kdapl_portal_sweep(portal, NULL, 0);
	list_del(&portal->link);
	mutex_unlock(&server->mutex);
	kfree(portal);
}
EXPORT_SYMBOL(kdat_portal_free);

/* ---- Servers ------------------------------------------------------------- */

static void kdapl_server_work(struct work_struct *work)
{
	struct kdat_server *server = container_of(work, struct kdat_server, work.work);
	struct kdat_portal *p;
	bool again = false;

	mutex_lock(&server->mutex);
	if (!server->dead) {
		/* There may be connections without portals. */
		kdapl_adapters_follow(server);
		list_for_each_entry(p, &server->portals, link)
			again |= kdapl_portal_look(p) != DAT_SUCCESS;
	}
	mutex_unlock(&server->mutex);
	if (again)
		queue_delayed_work(system_long_wq, &server->work, HZ);
}

DAT_RETURN kdat_server_create(const KDAT_SERVER_ATTR *attr, KDAT_SERVER_HANDLE *out)
{
	struct kdat_server *server;
	DAT_RETURN ret;

	might_sleep();
	if (!attr || !attr->name || !attr->request || !attr->event || !out ||
	    attr->adapter_size < sizeof(KDAT_ADAPTER))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE);
	server = kzalloc(sizeof(*server), GFP_KERNEL);
	if (!server)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	server->attr = *attr;
	mutex_init(&server->mutex);
	INIT_LIST_HEAD(&server->portals);
	INIT_LIST_HEAD(&server->adapters);
	INIT_DELAYED_WORK(&server->work, kdapl_server_work);
	ret = kdat_notifier_create(kdapl_server_look, server, &server->notifier);
	if (ret != DAT_SUCCESS) {
		kfree(server);
		return ret;
	}
	mutex_lock(&kdapl_servers_lock);
	list_add_tail(&server->link, &kdapl_servers);
	mutex_unlock(&kdapl_servers_lock);
	*out = server;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(kdat_server_create);

void kdat_server_free(KDAT_SERVER_HANDLE server)
{
	struct kdat_portal *p, *next;

	might_sleep();
	if (!server)
		return;
	mutex_lock(&kdapl_servers_lock);
	list_del(&server->link);
	mutex_unlock(&kdapl_servers_lock);
	kdat_notifier_free(server->notifier);
	list_for_each_entry_safe(p, next, &server->portals, link)
		kdat_portal_free(p);
	wait_var_event(&server->open, !atomic_read(&server->open));
	cancel_delayed_work_sync(&server->work);
	kfree(server);
}
EXPORT_SYMBOL(kdat_server_free);

/*
 * @mod is being unloaded: no function of its servers is called from here on, but by upcalls.
 * The caller removes these, and closes the IAs; the memory of the servers stays. Return their
 * number.
 */
unsigned int kdapl_servers_forget(const struct module *mod)
{
	struct kdat_server *server;
	unsigned int n = 0;
	KDAT_ADAPTER *a;

	mutex_lock(&kdapl_servers_lock);
	list_for_each_entry(server, &kdapl_servers, link) {
		if (server->dead || !kdapl_in_module(server->attr.owner, mod))
			continue;
		kdat_notifier_free(server->notifier);
		mutex_lock(&server->mutex);
		server->dead = true;
		list_for_each_entry(a, &server->adapters, link)
			atomic_dec(&server->open);
		mutex_unlock(&server->mutex);
		/* Others are being closed. */
		wait_var_event(&server->open, !atomic_read(&server->open));
		n++;
	}
	mutex_unlock(&kdapl_servers_lock);
	return n;
}
