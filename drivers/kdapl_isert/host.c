// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Hosts of initiators, see KDAT_HOST, and who makes room at a portal. */
#include <net/ipv6.h>
#include "isert.h"

/* Return the host of @c, or NULL while its peer has not proven to be of it. */
static const struct in6_addr *ki_host(const struct ki_conn *c)
{
	return c->a->base.iwarp || READ_ONCE(c->open) ? &c->host : NULL;
}

static bool ki_same_host(const struct in6_addr *a, const struct in6_addr *b)
{
	return a && b ? ipv6_addr_equal(a, b) : a == b;
}

/*
 * May @c be ended to make room? Not while it is being accepted: dat_cr_accept() would connect
 * it all the same.
 */
static bool ki_may_yield(const struct ki_conn *c)
{
	return !c->accepting && !READ_ONCE(c->down) && !READ_ONCE(c->broken);
}

/*
 * Return how many connections of @host wait at @p. Anybody who can write a request may name any
 * host, so the peers that have proven nothing count as one host together, NULL.
 */
static unsigned int ki_pending_of(struct ki_portal *p, const struct in6_addr *host)
{
	unsigned int n = 0;
	struct ki_conn *c;

	lockdep_assert_held(&p->lock);

	list_for_each_entry(c, &p->pending, link)
		n += ki_may_yield(c) && ki_same_host(ki_host(c), host);
	return n;
}

/* Return the oldest connection of @host that has not asked to log in, or else the oldest. */
static struct ki_conn *ki_oldest_of(struct ki_portal *p, const struct in6_addr *host)
{
	struct ki_conn *c, *oldest = NULL;

	lockdep_assert_held(&p->lock);

	list_for_each_entry(c, &p->pending, link) {
		if (!ki_may_yield(c) || !ki_same_host(ki_host(c), host))
			continue;
		if (!READ_ONCE(c->login_buf))
			return c;
		oldest = oldest ?: c;
	}
	return oldest;
}

/*
 * Return the connection that makes room at @p for one that says it is of the host @from, or
 * NULL: one of the host that has most of them, if it has more than @from would have. Otherwise
 * it is the oldest one that has not asked to log in, of @from itself or of a host that has no
 * less: a host with many ends none of another that has just connected. What @from names is not
 * proven, and only keeps connections from being ended.
 */
static struct ki_conn *ki_pending_victim(struct ki_portal *p, const struct in6_addr *from)
{
	unsigned int n, own = ki_pending_of(p, from) + 1, most = own;
	const struct in6_addr *host, *worst = NULL;
	struct ki_conn *c, *silent = NULL;

	lockdep_assert_held(&p->lock);

	list_for_each_entry(c, &p->pending, link) {
		if (!ki_may_yield(c))
			continue;
		host = ki_host(c);
		n = ki_pending_of(p, host);
		if (n > most) {
			most = n;
			worst = host;
		}
		if (!silent && !READ_ONCE(c->login_buf) && (n >= own || ki_same_host(host, from)))
			silent = c;
	}
	return most > own ? ki_oldest_of(p, worst) : silent;
}

/*
 * May one more connection, which says it is of the host @from, wait at a portal? If KI_PENDING
 * do, one makes room, so that peers that are silent, or do not finish connecting, and hosts
 * with many keep nobody out. One that was told to end waits no more, and stays until it is down,
 * which its adapter, or its peer, may delay: a host of which many are there is refused while
 * there are 2 * KI_PENDING in all, and another one only if there are half as many again. Those
 * that have proven nothing count for no host, as they may have named one to keep it out.
 * Context: process.
 */
bool ki_pending_room(struct ki_portal *p, const struct in6_addr *from)
{
	unsigned int waiting = 0, own = 0, most;
	struct ki_conn *c, *victim;
	bool room;

	spin_lock_bh(&p->lock);
	list_for_each_entry(c, &p->pending, link) {
		waiting += c->accepting || ki_may_yield(c);
		own += ki_same_host(ki_host(c), from);
	}
	most = own < KI_PENDING / 4 ? 3 * KI_PENDING : 2 * KI_PENDING;
	room = p->npending < most;
	if (room && waiting >= KI_PENDING) {
		victim = ki_pending_victim(p, from);
		if (victim)
			ki_conn_break(victim, victim->login_buf ?
				      "its host has many logins that wait, and others none" :
				      "it says nothing, and others want to log in");
		room = victim;
	}
	spin_unlock_bh(&p->lock);
	return room;
}
