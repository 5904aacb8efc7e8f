// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Network portals: an address and port of LIO, and a portal of <dat/kdat_portal.h>, which
 * listens on the adapters with that address; on all adapters for a wildcard address. LIO's
 * thread of the portal takes established connections in ki_accept_np().
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "isert.h"

/* Time between two checks for silent connections */
#define KI_SILENCE_LOOK		HZ

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

/* Take @c away from its portal. */
static void ki_conn_detach(struct ki_conn *c)
{
	mutex_lock(&c->a->cm_mutex);
	c->portal = NULL;
	mutex_unlock(&c->a->cm_mutex);
}

/* Free @p, which does not listen any more, and the connections that LIO has not taken. */
static void ki_portal_free(struct ki_portal *p)
{
	struct ki_conn *c;

	while ((c = ki_next_pending(p))) {
		ki_conn_detach(c);
		ki_conn_free(c);
	}
	kfree(p);
}

/* iscsit_setup_np() */
int ki_setup_np(struct iscsi_np *np, struct sockaddr_storage *addr)
{
	struct ki_portal *p = kzalloc(sizeof(*p), GFP_KERNEL);
	KDAT_PORTAL_ATTR attr = { .address = (struct sockaddr *)addr, .context = p };
	DAT_RETURN ret;

	if (!p)
		return -ENOMEM;
	INIT_LIST_HEAD(&p->pending);
	spin_lock_init(&p->lock);
	init_waitqueue_head(&p->wq);
	memcpy(&np->np_sockaddr, addr, sizeof(*addr));
	ret = kdat_portal_create(ki_server, &attr, &p->portal);
	if (ret != DAT_SUCCESS) {
		/* It may have listened at one of two addresses for a moment. */
		ki_portal_free(p);
		return DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES ?
		       -ENOMEM : -EADDRNOTAVAIL;
	}
	np->np_context = p;
	return 0;
}

/*
 * End @c, whose login request has not come, if its peer has been silent for too long, or, as it
 * decides how long its device tries, does not finish connecting. It stays in p->pending until
 * its end: over iWARP that may come only when a peer that has announced a first frame sends it,
 * or goes.
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
 * request, of the host whose turn was the longest ago: a host with many that stop in their
 * logins is to hold up itself. One that ki_request() is accepting is not returned, even if the
 * adapter has left: ki_request() frees it if it cannot accept. Nor is one that has ended, which
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

/* iscsit_free_np(): LIO's thread of the portal has ended. */
void ki_free_np(struct iscsi_np *np)
{
	struct ki_portal *p = np->np_context;

	np->np_context = NULL;
	ki_portal_idle(p);
	/* No connection is added to p->pending when this returns. */
	kdat_portal_free(p->portal);
	ki_portal_free(p);
}
