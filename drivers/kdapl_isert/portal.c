// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Network portals: an address and port of LIO, and the Service Points that listen on the
 * adapters with that address; on all adapters for a wildcard address. LIO's thread of the
 * portal takes established connections in ki_accept_np().
 *
 * An adapter that leaves takes its listeners along. A portal lives on without listeners, also
 * before its adapter or address has come. When adapters or addresses come or go, or are
 * renamed, ki_portals_work() lets each portal listen where it can now. ki_portals_lock
 * protects the list of portals and their listeners.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/jhash.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "isert.h"

#define KI_PROVIDERS	64
#define KI_RETRY	HZ
/* Time between two checks for silent connections */
#define KI_SILENCE_LOOK		HZ

static DEFINE_MUTEX(ki_portals_lock);	/* portals and their listeners */
static LIST_HEAD(ki_portals);
static atomic_t ki_changes;

static u16 ki_port(const struct sockaddr_storage *addr)
{
	return ntohs(addr->ss_family == AF_INET6 ?
		     ((const struct sockaddr_in6 *)addr)->sin6_port :
		     ((const struct sockaddr_in *)addr)->sin_port);
}

static bool ki_is_wildcard(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ?
		ipv6_addr_any(&((const struct sockaddr_in6 *)addr)->sin6_addr) :
		((const struct sockaddr_in *)addr)->sin_addr.s_addr ==
			htonl(INADDR_ANY);
}

static void ki_listener_free(struct ki_listener *l)
{
	if (l->csp4)
		dat_csp_free(l->csp4);
	if (l->csp)
		dat_csp_free(l->csp);
	/* dat_evd_free() waits for an upcall that is about to accept. */
	if (l->cr_evd)
		dat_evd_free(l->cr_evd);
	ki_adapter_put(l->a);
	kfree(l);
}

static DAT_RETURN ki_listen_at(struct ki_listener *l, struct sockaddr_storage *addr,
			       DAT_CSP_HANDLE *csp)
{
	DAT_COMM comm = { .domain = addr->ss_family, .type = SOCK_STREAM };

	return dat_csp_create(l->a->ia, &comm, (DAT_IA_ADDRESS_PTR)addr, l->cr_evd,
			      csp);
}

/*
 * Listen at the address of the portal. The wildcard of IPv6 is for IPv4 too, as for sockets,
 * unless somebody listens there; an adapter may have addresses of one family.
 */
static DAT_RETURN ki_listen_csps(struct ki_listener *l)
{
	struct ki_portal *p = l->portal;
	struct sockaddr_storage any4 = { };
	DAT_RETURN ret, ret4;

	ret = ki_listen_at(l, &p->addr, &l->csp);
	if (!p->wildcard || p->addr.ss_family != AF_INET6)
		return ret;
	any4.ss_family = AF_INET;
	((struct sockaddr_in *)&any4)->sin_port = htons(ki_port(&p->addr));
	ret4 = ki_listen_at(l, &any4, &l->csp4);
	return ret4 == DAT_SUCCESS ? ret4 : ret;
}

/* Listen on @a, whose reference the listener takes over. */
static DAT_RETURN ki_listen(struct ki_portal *p, struct ki_adapter *a)
{
	DAT_UPCALL_OBJECT cr = { .upcall_func = ki_cr_upcall };
	struct ki_listener *l;
	DAT_RETURN ret;

	lockdep_assert_held(&ki_portals_lock);

	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l) {
		ki_adapter_put(a);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	l->portal = p;
	l->a = a;
	cr.instance_data = l;
	ret = dat_evd_kcreate(a->ia, KI_PENDING, DAT_UPCALL_SINGLE_INSTANCE, &cr,
			      DAT_EVD_CR_FLAG, &l->cr_evd);
	if (ret == DAT_SUCCESS)
		ret = ki_listen_csps(l);
	if (ret != DAT_SUCCESS) {
		ret = ki_adapter_error(a, ret);
		ki_listener_free(l);
		return ret;
	}
	list_add(&l->link, &p->listeners);
	pr_info("%s: listening at %pISpc\n", a->name, &p->addr);
	return DAT_SUCCESS;
}

/* Listen on the IA called @name, unless the portal does already. */
static DAT_RETURN ki_listen_name(struct ki_portal *p, char *name)
{
	struct ki_listener *l;
	struct ki_adapter *a;
	DAT_RETURN ret;

	lockdep_assert_held(&ki_portals_lock);

	list_for_each_entry(l, &p->listeners, link)
		if (!strcmp(l->a->name, name))
			return DAT_SUCCESS;
	ret = ki_adapter_get_name(name, &a);
	return ret == DAT_SUCCESS ? ki_listen(p, a) : ret;
}

/*
 * struct ki_place - an IA that a portal is to listen on
 * @ret: result of the attempt to listen
 */
struct ki_place {
	DAT_PROVIDER_INFO info;
	DAT_RETURN ret;
};

/* Find the IAs that @p is to listen on, at most KI_PROVIDERS. */
static DAT_RETURN ki_portal_places(struct ki_portal *p, struct ki_place *places,
				   DAT_COUNT *n)
{
	DAT_PROVIDER_INFO *list[KI_PROVIDERS];
	DAT_RETURN ret;
	DAT_COUNT i;

	*n = 0;
	if (!p->wildcard) {
		ret = kdat_ia_find((struct sockaddr *)&p->addr, places->info.ia_name);
		if (ret == DAT_SUCCESS)
			*n = 1;
		return DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND ? DAT_SUCCESS : ret;
	}
	for (i = 0; i < KI_PROVIDERS; i++)
		list[i] = &places[i].info;
	dat_registry_list_providers(KI_PROVIDERS, n, list);
	*n = min(*n, KI_PROVIDERS);
	return DAT_SUCCESS;
}

/* Free the listeners of @p whose adapter is gone or is not called @name; with @anew, all. */
static void ki_portal_sweep(struct ki_portal *p, const char *name, bool anew)
{
	struct ki_listener *l, *next;

	lockdep_assert_held(&ki_portals_lock);

	list_for_each_entry_safe(l, next, &p->listeners, link)
		if (READ_ONCE(l->a->gone) || anew ||
		    (name && strcmp(l->a->name, name))) {
			list_del(&l->link);
			ki_listener_free(l);
		}
}

/* Log why @p does not listen on an adapter, once until that changes. */
static void ki_portal_tell(struct ki_portal *p, const struct ki_place *places, DAT_COUNT n)
{
	const struct ki_place *at;
	u32 hash = 0;

	for (at = places; at < places + n; at++)
		if (at->ret != DAT_SUCCESS)
			hash = jhash(at->info.ia_name, strlen(at->info.ia_name),
				     jhash_1word(at->ret, hash));
	for (at = places; at < places + n && hash != p->told; at++)
		if (at->ret != DAT_SUCCESS)
			pr_warn("%s: cannot listen at %pISpc: %s\n", at->info.ia_name,
				&p->addr, ki_strerror(at->ret));
	p->told = hash;
}

/* Listen on @n IAs. Return an error that no notification will end, if there is one. */
static DAT_RETURN ki_listen_places(struct ki_portal *p, struct ki_place *places, DAT_COUNT n)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct ki_place *at;

	for (at = places; at < places + n; at++) {
		at->ret = ki_listen_name(p, at->info.ia_name);
		/* The adapter has left, or may get an address later. */
		if (DAT_GET_TYPE(at->ret) == DAT_PROVIDER_NOT_FOUND ||
		    DAT_GET_TYPE(at->ret) == DAT_INVALID_ADDRESS)
			at->ret = DAT_SUCCESS;
		if (at->ret != DAT_SUCCESS)
			ret = at->ret;
	}
	ki_portal_tell(p, places, n);
	return ret;
}

/*
 * Let @p listen where it can. A wildcard listens at the addresses that an adapter had when it
 * began, so it begins anew when addresses have changed.
 */
static DAT_RETURN ki_portal_look(struct ki_portal *p, int what)
{
	struct ki_place *places;
	DAT_RETURN ret;
	DAT_COUNT n;

	lockdep_assert_held(&ki_portals_lock);

	places = kcalloc(p->wildcard ? KI_PROVIDERS : 1, sizeof(*places), GFP_KERNEL);
	if (!places)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ret = ki_portal_places(p, places, &n);
	/*
	 * Follow the names after @places was filled: an adapter that is renamed in between is
	 * not found by its old name, instead of being opened twice.
	 */
	ki_adapters_follow();
	if (ret == DAT_SUCCESS) {
		if (p->wildcard)
			ki_portal_sweep(p, NULL, what & KDAT_CHANGED_ADDRESSES);
		else
			ki_portal_sweep(p, places->info.ia_name, false);
		ret = ki_listen_places(p, places, n);
	}
	kfree(places);
	return ret;
}

static void ki_portals_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(ki_portals_again, ki_portals_work);

/* Look at all portals after a change, and again if that fails. litmus: changes */
static void ki_portals_work(struct work_struct *work)
{
	struct ki_portal *p;
	bool again = false;
	int what;

	mutex_lock(&ki_portals_lock);
	what = atomic_xchg(&ki_changes, 0);
	list_for_each_entry(p, &ki_portals, link)
		again |= ki_portal_look(p, what) != DAT_SUCCESS;
	/* There may be sessions without portals. */
	ki_adapters_follow();
	mutex_unlock(&ki_portals_lock);
	if (again)
		queue_delayed_work(system_long_wq, &ki_portals_again, KI_RETRY);
}

/* Schedule a look at all portals for the KDAT_CHANGED_ bits @what. Context: any. */
void ki_portals_look(int what)
{
	atomic_or(what, &ki_changes);
	mod_delayed_work(system_long_wq, &ki_portals_again, 0);
}

static KDAT_NOTIFIER_HANDLE ki_notifier;

static void ki_changed(DAT_PVOID data, DAT_COUNT what)
{
	ki_portals_look(what);
}

int ki_portals_start(void)
{
	return kdat_notifier_create(ki_changed, NULL, &ki_notifier) == DAT_SUCCESS ?
	       0 : -ENOMEM;
}

void ki_portals_stop(void)
{
	kdat_notifier_free(ki_notifier);
	cancel_delayed_work_sync(&ki_portals_again);
}

/* iscsit_setup_np() */
int ki_setup_np(struct iscsi_np *np, struct sockaddr_storage *addr)
{
	struct ki_portal *p = kzalloc(sizeof(*p), GFP_KERNEL);
	DAT_RETURN ret;

	if (!p)
		return -ENOMEM;
	p->addr = *addr;
	p->wildcard = ki_is_wildcard(addr);
	INIT_LIST_HEAD(&p->listeners);
	INIT_LIST_HEAD(&p->pending);
	spin_lock_init(&p->lock);
	init_waitqueue_head(&p->wq);
	memcpy(&np->np_sockaddr, addr, sizeof(*addr));
	mutex_lock(&ki_portals_lock);
	ret = ki_portal_look(p, 0);
	if (list_empty(&p->listeners) && ret != DAT_SUCCESS) {
		mutex_unlock(&ki_portals_lock);
		kfree(p);
		return DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES ?
		       -ENOMEM : -EADDRNOTAVAIL;
	}
	if (list_empty(&p->listeners))
		pr_info("waiting for an adapter that has %pISpc\n", addr);
	list_add(&p->link, &ki_portals);
	mutex_unlock(&ki_portals_lock);
	if (ret != DAT_SUCCESS)
		queue_delayed_work(system_long_wq, &ki_portals_again, KI_RETRY);
	np->np_context = p;
	return 0;
}

/*
 * End @c, whose login request has not come, if its peer has been silent for too long, or, as it
 * decides how long its device tries, does not finish connecting. It stays in p->pending until its
 * end: over iWARP that may come only when a peer that has announced a first frame sends it, or
 * goes.
 */
static void ki_look_at_silent(struct ki_conn *c)
{
	/* Pairs with the release in ki_cm_upcall(). litmus: iser-open */
	bool open = smp_load_acquire(&c->open);

	if (time_after(jiffies, READ_ONCE(c->since) + KI_SILENCE))
		ki_conn_break(c, open ? "it says nothing" : "it does not finish connecting");
}

/* Return how many turns ago LIO's thread has taken one of the host of @c; KI_RECENT for never. */
static unsigned int ki_turns_ago(const struct ki_portal *p, const struct ki_conn *c)
{
	unsigned int ago, known = min(p->turns, KI_RECENT);

	for (ago = 0; ago < known; ago++)
		if (ipv6_addr_equal(&p->recent[(p->turns - 1 - ago) % KI_RECENT], &c->host))
			return ago;
	return KI_RECENT;
}

/*
 * Return the connection that LIO's thread is to deal with next: one that has sent its first
 * request, of the host whose turn was the longest ago: a host with many that stop in their logins
 * is to hold up itself. One that ki_cr_upcall() is accepting is not returned, even if the adapter
 * has left: ki_cr_upcall() frees it if it cannot accept. Nor is one that has ended, which
 * ki_pending_ended() takes.
 */
static struct ki_conn *ki_choose_ready(struct ki_portal *p)
{
	struct ki_conn *c, *best = NULL;
	unsigned int ago, most = 0;

	lockdep_assert_held(&p->lock);

	list_for_each_entry(c, &p->pending, link) {
		if (c->accepting || READ_ONCE(c->down))
			continue;
		if (!READ_ONCE(c->login_buf)) {
			ki_look_at_silent(c);
			continue;
		}
		ago = ki_turns_ago(p, c) + 1;
		if (ago > most) {
			most = ago;
			best = c;
		}
	}
	return best;
}

/* Take the next connection off p->pending, if one is ready. */
static bool ki_next_ready(struct ki_portal *p, struct ki_conn **ready)
{
	struct ki_conn *c;

	spin_lock_bh(&p->lock);
	c = ki_choose_ready(p);
	if (c) {
		list_del_init(&c->link);
		p->npending--;
		p->recent[p->turns++ % KI_RECENT] = c->host;
	}
	spin_unlock_bh(&p->lock);
	*ready = c;
	return c;
}

/*
 * LIO's thread deals with a connection that it has taken until it comes for the next one.
 * Meanwhile conn->login_work must not run, which may free the connection. The lock protects
 * p->taken and c->taker; c->lock nests inside.
 */
static DEFINE_SPINLOCK(ki_taken_lock);

static void ki_set_taken(struct ki_portal *p, struct ki_conn *c)
{
	spin_lock_bh(&ki_taken_lock);
	p->taken = c;
	spin_lock(&c->lock);
	c->taker = p;
	spin_unlock(&c->lock);
	spin_unlock_bh(&ki_taken_lock);
}

/* Leave the connection that the thread of @p had to conn->login_work. */
static void ki_portal_idle(struct ki_portal *p)
{
	struct ki_conn *c;

	spin_lock_bh(&ki_taken_lock);
	c = p->taken;
	p->taken = NULL;
	if (c) {
		spin_lock(&c->lock);
		c->taker = NULL;
		ki_login_look(c);
		spin_unlock(&c->lock);
	}
	spin_unlock_bh(&ki_taken_lock);
}

/* Forget that a thread has taken @c, which is being freed by that thread or another one. */
void ki_conn_forget(struct ki_conn *c)
{
	spin_lock_bh(&ki_taken_lock);
	if (c->taker)
		c->taker->taken = NULL;
	spin_unlock_bh(&ki_taken_lock);
}

/* Take @c away from its portal. */
static void ki_conn_detach(struct ki_conn *c)
{
	mutex_lock(&c->a->cm_mutex);
	c->portal = NULL;
	mutex_unlock(&c->a->cm_mutex);
}

/* Tell LIO the addresses of both sides. */
static int ki_tell_addresses(struct ki_conn *c, struct iscsi_np *np,
			     struct iscsit_conn *conn)
{
	DAT_EP_PARAM *param = kzalloc(sizeof(*param), GFP_KERNEL);
	const struct sockaddr *local;
	DAT_RETURN ret;

	if (!param)
		return -ENOMEM;
	ret = dat_ep_query(c->ep, DAT_EP_FIELD_ALL, param);
	local = ret == DAT_SUCCESS ? param->local_ia_address_ptr : NULL;
	memcpy(&conn->local_sockaddr, &np->np_sockaddr, sizeof(np->np_sockaddr));
	if (local && local->sa_family == AF_INET6)
		memcpy(&conn->local_sockaddr, local, sizeof(struct sockaddr_in6));
	else if (local)
		memcpy(&conn->local_sockaddr, local, sizeof(struct sockaddr_in));
	conn->login_family = np->np_sockaddr.ss_family;
	conn->login_sockaddr = c->remote;
	kfree(param);
	return 0;
}

/* iscsit_accept_np(): wait for a connection; signals interrupt the wait. */
int ki_accept_np(struct iscsi_np *np, struct iscsit_conn *conn)
{
	struct ki_portal *p = np->np_context;
	struct ki_conn *c = NULL;
	long left;

	ki_portal_idle(p);
	for (;;) {
		left = wait_event_interruptible_timeout(p->wq, ki_next_ready(p, &c),
							KI_SILENCE_LOOK);
		if (left < 0)
			return -ENODEV;
		if (!left)
			continue;
		ki_conn_detach(c);
		if (!READ_ONCE(c->down) && !ki_tell_addresses(c, np, conn))
			break;
		ki_conn_free(c);
		/* A wait that need not sleep does not report signals. */
		if (signal_pending(current))
			return -ENODEV;
	}
	conn->context = c;
	c->conn = conn;
	ki_set_taken(p, c);
	return 0;
}

/* Take any connection off p->pending, or return NULL. */
static struct ki_conn *ki_next_pending(struct ki_portal *p)
{
	struct ki_conn *c;

	spin_lock_bh(&p->lock);
	c = list_first_entry_or_null(&p->pending, struct ki_conn, link);
	if (c)
		list_del_init(&c->link);
	spin_unlock_bh(&p->lock);
	return c;
}

/* iscsit_free_np(): LIO's thread of the portal has ended. */
void ki_free_np(struct iscsi_np *np)
{
	struct ki_portal *p = np->np_context;
	struct ki_conn *c;

	np->np_context = NULL;
	ki_portal_idle(p);
	/* Without the upcalls of listeners no connection is added to p->pending. */
	mutex_lock(&ki_portals_lock);
	list_del(&p->link);
	ki_portal_sweep(p, NULL, true);
	mutex_unlock(&ki_portals_lock);
	while ((c = ki_next_pending(p))) {
		ki_conn_detach(c);
		ki_conn_free(c);
	}
	kfree(p);
}
