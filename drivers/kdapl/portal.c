// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Portals of servers, <dat/kdat_portal.h>, and the IAs that each portal is to listen on: its
 * places.
 */
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "addr.h"
#include "ia.h"
#include "portal.h"

#define KDAPL_PLACES	64	/* most IAs that a wildcard listens on */

/* Stop listening at @place, which has an adapter. */
static void kdapl_place_stop(struct kdapl_place *place)
{
	const KDAT_SERVER_ATTR *attr = &place->portal->server->attr;

	dat_csp_free(place->csp[0]);
	dat_csp_free(place->csp[1]);
	kdat_evd_wait_upcalls(place->adapter->cm_evd);
	place->csp[0] = NULL;
	place->csp[1] = NULL;
	if (attr->deaf)
		attr->deaf(place->adapter, place->portal->context);
	kdat_adapter_put(place->adapter);
	place->adapter = NULL;
}

/*
 * Make the Service Points that are missing. They have the context of their portal before a
 * request of theirs is looked at. Return the first error.
 */
static DAT_RETURN kdapl_place_points(struct kdapl_place *place)
{
	struct kdat_portal *p = place->portal;
	DAT_CONTEXT context = { .as_ptr = p->context };
	DAT_COMM comm = { .type = SOCK_STREAM };
	DAT_RETURN ret, first = DAT_SUCCESS;
	KDAT_ADAPTER *a = place->adapter;
	DAT_IA_ADDRESS_PTR addr;
	unsigned int i;

	mutex_lock(&a->mutex);
	for (i = 0; i < p->naddrs; i++) {
		if (place->csp[i])
			continue;
		addr = (DAT_IA_ADDRESS_PTR)(p->addr + i);
		comm.domain = addr->sa_family;
		ret = dat_csp_create(a->ia, &comm, addr, a->cm_evd, place->csp + i);
		if (ret == DAT_SUCCESS)
			dat_set_consumer_context(place->csp[i], context);
		first = first ?: ret;
	}
	mutex_unlock(&a->mutex);
	return first;
}

static DAT_RETURN kdapl_place_listen(struct kdapl_place *place)
{
	struct kdat_portal *p = place->portal;
	const KDAT_SERVER_ATTR *attr = &p->server->attr;
	DAT_RETURN ret;

	ret = kdapl_adapter_find(p->server, place->id, p->context, &place->adapter);
	if (ret != DAT_SUCCESS)
		return ret;
	/* A request may come at the first Service Point while the second one fails. */
	if (attr->listens)
		attr->listens(place->adapter, p->context);
	ret = kdapl_place_points(place);
	/* On one IA a port is for both families; otherwise one of the two will do. */
	if (ret != DAT_SUCCESS && (p->ia_name[0] || !(place->csp[0] || place->csp[1]))) {
		kdapl_place_stop(place);
		return ret;
	}
	if (p->ia_name[0] && !p->ident.id)
		kdat_ia_identify(place->adapter->ia, &p->ident);
	p->listens++;
	pr_info("%s: %s: listening at %pISpc\n", attr->name, place->adapter->name, p->addr);
	return ret;
}

/* ---- Portals ------------------------------------------------------------- */

/*
 * Store the number of the IA that @p, a portal of one IA, is to listen on at @id, and return
 * whether it is there. It is the one with the GUID of the first one, whatever its name. If nobody
 * has that, the device was replaced: it is the one with the last name.
 */
static bool kdapl_portal_id(struct kdat_portal *p, u64 *id)
{
	struct kdapl_place *place = list_first_entry_or_null(&p->places, struct kdapl_place,
							     link);

	if (place && place->adapter) {
		kdat_ia_name(place->id, p->ia_name);
		p->ident.id = place->id;
	}
	if (kdapl_ia_again(&p->ident, p->ia_name, id))
		return true;
	if (place && place->adapter && !READ_ONCE(place->adapter->gone)) {
		*id = place->id;
		return true;
	}
	return kdapl_ia_ids(p->ia_name, id, 1);
}

/* Store the numbers of the IAs that @p is to listen on at @ids, and how many these are at @n. */
static DAT_RETURN kdapl_portal_ids(struct kdat_portal *p, u64 *ids, unsigned int *n)
{
	DAT_RETURN ret = DAT_SUCCESS;

	if (!kdapl_addr_any(p->addr)) {
		ret = kdapl_ia_find((struct sockaddr *)p->addr, ids);
		*n = ret == DAT_SUCCESS;
	} else if (!p->ia_name[0]) {
		*n = kdapl_ia_ids(NULL, ids, KDAPL_PLACES);
	} else {
		*n = kdapl_portal_id(p, ids);
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
		if (place->adapter) {
			p->listens--;
			kdapl_place_stop(place);
		}
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
	ret = place->adapter ? kdapl_place_points(place) : kdapl_place_listen(place);
	/* It may get an address later; or leaves, and calls fail with any error; or is renamed. */
	if (DAT_GET_TYPE(ret) == DAT_INVALID_ADDRESS ||
	    DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND ||
	    kdat_ia_name(id, name) != DAT_SUCCESS ||
	    !kdapl_ia_ids(name, &now, 1) || now != id)
		ret = DAT_SUCCESS;
	/* It is logged once until it changes. */
	if (ret != DAT_SUCCESS && ret != place->told && !place->adapter &&
	    dat_strerror(ret, &type, &subtype) == DAT_SUCCESS)
		pr_warn("%s: %s: cannot listen at %pISpc: %s %s\n", p->server->attr.name,
			name, p->addr, type, subtype);
	place->told = ret;
	return ret;
}

/* Let @p listen where it can now. */
DAT_RETURN kdapl_portal_look(struct kdat_portal *p)
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
	if (ret != DAT_SUCCESS) {
		kfree(p);
		return ret;
	}
	mutex_lock(&server->mutex);
	ret = kdapl_portal_look(p);
	if (ret != DAT_SUCCESS && !p->listens) {
		/* It was never listed, so the work item has not seen it. */
		kdapl_portal_sweep(p, NULL, 0);
		mutex_unlock(&server->mutex);
		kfree(p);
		return ret;
	}
	list_add_tail(&p->link, &server->portals);
	if (!p->listens)
		pr_info("%s: waiting for %s, to listen at %pISpc\n", server->attr.name,
			p->ia_name[0] ? p->ia_name : "an adapter", p->addr);
	if (ret != DAT_SUCCESS)
		queue_delayed_work(kdapl_portal_wq, &server->work, HZ);
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
