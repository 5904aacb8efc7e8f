// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Network portals: an address and port of LIO, and the Service Points that listen on
 * the adapters which have that address; on all adapters for a wildcard address.
 * LIO's thread of the portal takes established connections in ki_accept_np().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "isert.h"

#define KI_PROVIDERS	64

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
	if (l->psp)
		dat_psp_free(l->psp);
	/* Waits for an upcall that is about to accept. */
	if (l->cr_evd)
		dat_evd_free(l->cr_evd);
	ki_adapter_put(l->a);
	kfree(l);
}

/* Listen on an adapter, whose reference the listener takes over. */
static int ki_listen(struct ki_portal *p, struct ki_adapter *a, u16 port)
{
	struct ki_listener *l;
	DAT_UPCALL_OBJECT cr = { .upcall_func = ki_cr_upcall };
	DAT_RETURN ret;

	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l) {
		ki_adapter_put(a);
		return -ENOMEM;
	}
	l->portal = p;
	l->a = a;
	cr.instance_data = l;
	ret = dat_evd_kcreate(a->ia, 64, DAT_UPCALL_SINGLE_INSTANCE, &cr,
			      DAT_EVD_CR_FLAG, &l->cr_evd);
	if (ret == DAT_SUCCESS)
		ret = dat_psp_create(a->ia, port, l->cr_evd, DAT_PSP_CONSUMER_FLAG,
				     &l->psp);
	if (ret != DAT_SUCCESS) {
		pr_err("%s: cannot listen on port %u: %s\n", a->name, port,
		       ki_strerror(ret));
		ki_listener_free(l);
		return -EADDRINUSE;
	}
	list_add(&l->link, &p->listeners);
	return 0;
}

/* Listen on every adapter there is; one is enough for success. */
static int ki_listen_all(struct ki_portal *p, u16 port)
{
	DAT_PROVIDER_INFO *info, **list;
	struct ki_adapter *a;
	DAT_COUNT n = 0, i;
	int err = -ENODEV;

	info = kcalloc(KI_PROVIDERS, sizeof(*info), GFP_KERNEL);
	list = kcalloc(KI_PROVIDERS, sizeof(*list), GFP_KERNEL);
	if (!info || !list) {
		err = -ENOMEM;
		goto out;
	}
	for (i = 0; i < KI_PROVIDERS; i++)
		list[i] = &info[i];
	dat_registry_list_providers(KI_PROVIDERS, &n, list);
	for (i = 0; i < min(n, KI_PROVIDERS); i++) {
		a = ki_adapter_get_name(info[i].ia_name);
		if (!IS_ERR(a) && !ki_listen(p, a, port))
			err = 0;
	}
out:
	kfree(list);
	kfree(info);
	return err;
}

/* iscsit_setup_np() */
int ki_setup_np(struct iscsi_np *np, struct sockaddr_storage *addr)
{
	struct ki_portal *p = kzalloc(sizeof(*p), GFP_KERNEL);
	struct ki_adapter *a;
	int err;

	if (!p)
		return -ENOMEM;
	p->np = np;
	INIT_LIST_HEAD(&p->listeners);
	INIT_LIST_HEAD(&p->pending);
	spin_lock_init(&p->lock);
	init_waitqueue_head(&p->wq);
	memcpy(&np->np_sockaddr, addr, sizeof(*addr));
	np->np_context = p;
	if (ki_is_wildcard(addr)) {
		err = ki_listen_all(p, ki_port(addr));
	} else {
		a = ki_adapter_get((struct sockaddr *)addr);
		err = IS_ERR(a) ? PTR_ERR(a) : ki_listen(p, a, ki_port(addr));
	}
	if (err) {
		np->np_context = NULL;
		kfree(p);
	}
	return err;
}

/*
 * Set @ready to a connection that is established, or has ended before that. Return
 * whether there is one.
 */
static bool ki_next_ready(struct ki_portal *p, struct ki_conn **ready)
{
	struct ki_conn *c;

	*ready = NULL;
	spin_lock_bh(&p->lock);
	list_for_each_entry(c, &p->pending, link)
		if (READ_ONCE(c->established) || READ_ONCE(c->down)) {
			list_del_init(&c->link);
			*ready = c;
			break;
		}
	spin_unlock_bh(&p->lock);
	return *ready;
}

/* Take a connection away from its portal. */
static void ki_conn_detach(struct ki_conn *c)
{
	mutex_lock(&c->a->cm_mutex);
	c->portal = NULL;
	mutex_unlock(&c->a->cm_mutex);
}

/* Tell LIO who speaks to whom. */
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

/* iscsit_accept_np(): wait for a connection; signals interrupt. */
int ki_accept_np(struct iscsi_np *np, struct iscsit_conn *conn)
{
	struct ki_portal *p = np->np_context;
	struct ki_conn *c = NULL;

	for (;;) {
		if (wait_event_interruptible(p->wq, ki_next_ready(p, &c)))
			return -ENODEV;
		ki_conn_detach(c);
		if (!READ_ONCE(c->down) && !ki_tell_addresses(c, np, conn))
			break;
		ki_conn_stop(c);
		ki_conn_free(c);
	}
	conn->context = c;
	c->conn = conn;
	return 0;
}

/* iscsit_free_np(): the thread has ended. */
void ki_free_np(struct iscsi_np *np)
{
	struct ki_portal *p = np->np_context;
	struct ki_listener *l, *next_l;
	struct ki_conn *c, *next_c;

	np->np_context = NULL;
	/* Without its upcalls no connection is added to the list. */
	list_for_each_entry(l, &p->listeners, link) {
		dat_psp_free(l->psp);
		dat_evd_free(l->cr_evd);
		l->psp = NULL;
		l->cr_evd = NULL;
	}
	list_for_each_entry_safe(c, next_c, &p->pending, link) {
		ki_conn_detach(c);
		ki_conn_stop(c);
		ki_conn_free(c);
	}
	list_for_each_entry_safe(l, next_l, &p->listeners, link)
		ki_listener_free(l);
	kfree(p);
}
