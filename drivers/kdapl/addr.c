// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The addresses of an IA.
 *
 * Only rdma_cm knows which IP addresses belong to an RDMA port: over RoCE the GID table
 * has them, over iWARP and IPoIB it does not. kdapl_ia_refresh_addrs() binds a temporary
 * id to every address of the port's network devices and keeps the addresses for which
 * rdma_cm chooses the IA's port. ia->mutex protects ia->addr and ia->naddrs. ia_addr.c
 * refreshes the addresses after those of the host have changed.
 */
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/inetdevice.h>
#include <linux/kthread.h>
#include <linux/nsproxy.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/ip6_route.h>
#include <net/net_namespace.h>
#include <net/route.h>
#include <rdma/ib_cache.h>
#include <rdma/rdma_cm.h>
#include "addr.h"
#include "ia.h"

/* Addresses of a port: initial and greatest size of their array. */
#define KDAPL_CANDIDATES	64
#define KDAPL_MAX_CANDIDATES	SZ_64K

/*
 * struct kdapl_port_netdevs - how to recognise the network devices of a port
 * @iwarp: a GID may be the hardware address of a network device
 * @n: number of entries
 * @at: entries of the port's table of GIDs with different network devices; @ndev is not
 *	referenced and only compared
 */
struct kdapl_port_netdevs {
	bool iwarp;
	int n;
	struct {
		const struct net_device *ndev;
		union ib_gid gid;
	} at[];
};

/* Return whether @addr is the wildcard address of its family. */
bool kdapl_addr_any(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	return addr->ss_family == AF_INET6 ?
		ipv6_addr_any(&in6->sin6_addr) :
		in->sin_addr.s_addr == htonl(INADDR_ANY);
}

/* Return whether two addresses are the same; their ports may differ. */
bool kdapl_addr_same(const struct sockaddr_storage *a,
		     const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr) &&
	       a6->sin6_scope_id == b6->sin6_scope_id;
}

/* ---- Namespaces ---------------------------------------------------------- */

/* A call of kdapl_in_init_net() by a process of another network namespace */
struct kdapl_net_call {
	int (*fn)(void *arg);
	void *arg;
	int err;
	struct completion done;
};

static int kdapl_net_call_thread(void *data)
{
	struct kdapl_net_call *call = data;

	call->err = call->fn(call->arg);
	/* Nothing of this module runs when the caller goes on. */
	kthread_complete_and_exit(&call->done, 0);
}

/*
 * Call @fn, which has siw make a socket, and return what it returns. siw takes the network
 * namespace of the process for that, not that of its device; a kernel thread has the first one,
 * and so have all addresses and ids of this module. A process that exits has none.
 * A work item would not do: callers hold locks that others of its queue wait for.
 * Context: process.
 */
int kdapl_in_init_net(int (*fn)(void *arg), void *arg)
{
	struct kdapl_net_call call = { .fn = fn, .arg = arg };
	struct task_struct *task;

	if (current->nsproxy && net_eq(current->nsproxy->net_ns, &init_net))
		return fn(arg);
	init_completion(&call.done);
	task = kthread_run(kdapl_net_call_thread, &call, "kdapl_net");
	if (IS_ERR(task))
		return PTR_ERR(task);
	wait_for_completion(&call.done);
	return call.err;
}

/* ---- Ports --------------------------------------------------------------- */

/* Enter a GID of the port, unless a GID of the same network device was entered. */
static void kdapl_netdevs_add(struct kdapl_port_netdevs *p,
			      const struct ib_gid_attr *attr)
{
	struct net_device *ndev;
	int i;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	rcu_read_unlock();
	if (IS_ERR(ndev))
		ndev = NULL;
	for (i = 0; ndev && i < p->n; i++)
		if (p->at[i].ndev == ndev)
			return;
	p->at[p->n].ndev = ndev;
	p->at[p->n++].gid = attr->gid;
}

/* Return a description of the network devices of the port of @ia, to be freed by kvfree(). */
static struct kdapl_port_netdevs *kdapl_port_netdevs(struct kdapl_ia *ia,
						     int gids)
{
	const struct ib_gid_attr *attr;
	struct kdapl_port_netdevs *p;
	int i;

	p = kvzalloc(struct_size(p, at, gids), GFP_KERNEL);
	if (!p)
		return NULL;
	p->iwarp = ia->iwarp;
	for (i = 0; i < gids; i++) {
		attr = rdma_get_gid_attr(ia->hca->dev, ia->port, i);
		if (IS_ERR(attr))
			continue;
		kdapl_netdevs_add(p, attr);
		rdma_put_gid_attr(attr);
	}
	return p;
}

/*
 * May rdma_cm choose the port for the addresses of @ndev? It compares the network device
 * of a GID; on InfiniBand and some iWARP adapters, whose GIDs have none, it compares the
 * hardware address.
 */
static bool kdapl_netdev_ours(const struct kdapl_port_netdevs *p,
			      const struct net_device *ndev)
{
	int i;

	for (i = 0; i < p->n; i++) {
		if (p->at[i].ndev ? p->at[i].ndev == ndev :
		    ndev->type == ARPHRD_INFINIBAND ?
		    !memcmp(p->at[i].gid.raw, ndev->dev_addr + 4,
			    sizeof(p->at[i].gid)) :
		    p->iwarp && !memcmp(p->at[i].gid.raw, ndev->dev_addr, ETH_ALEN))
			return true;
	}
	return false;
}

/*
 * struct kdapl_candidates - addresses of a port's network devices
 * @list: the addresses
 * @n: number of addresses
 * @max: size of @list
 */
struct kdapl_candidates {
	struct sockaddr_storage *list;
	int n;
	int max;
};

static void kdapl_fill_v4(struct kdapl_candidates *c, const struct net_device *ndev)
{
	struct in_device *in_dev = __in_dev_get_rcu(ndev);
	const struct in_ifaddr *ifa;
	struct sockaddr_in *in;

	if (!in_dev)
		return;
	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		if (c->n == c->max)
			break;
		in = (struct sockaddr_in *)&c->list[c->n++];
		in->sin_family = AF_INET;
		in->sin_addr.s_addr = ifa->ifa_local;
	}
}

static void kdapl_fill_v6(struct kdapl_candidates *c, const struct net_device *ndev)
{
#if IS_ENABLED(CONFIG_IPV6)
	struct inet6_dev *idev = __in6_dev_get(ndev);
	struct inet6_ifaddr *ifp;
	struct sockaddr_in6 *in6;

	if (!idev)
		return;
	read_lock_bh(&idev->lock);
	list_for_each_entry(ifp, &idev->addr_list, if_list) {
		if (c->n == c->max)
			break;
		/* Once it is usable, ia_addr.c has the addresses read again. */
		if (ifp->flags & IFA_F_TENTATIVE)
			continue;
		in6 = (struct sockaddr_in6 *)&c->list[c->n++];
		in6->sin6_family = AF_INET6;
		in6->sin6_addr = ifp->addr;
		if (ipv6_addr_type(&ifp->addr) & IPV6_ADDR_LINKLOCAL)
			in6->sin6_scope_id = ndev->ifindex;
	}
	read_unlock_bh(&idev->lock);
#endif
}

/* Fill in @c with addresses of the network devices of a port, IPv4 first. */
static void kdapl_addr_fill(struct kdapl_candidates *c,
			    const struct kdapl_port_netdevs *p)
{
	struct net_device *ndev;

	rcu_read_lock();
	for_each_netdev_rcu(&init_net, ndev)
		if (!(ndev->flags & IFF_LOOPBACK) && kdapl_netdev_ours(p, ndev))
			kdapl_fill_v4(c, ndev);
	for_each_netdev_rcu(&init_net, ndev)
		if (!(ndev->flags & IFF_LOOPBACK) && kdapl_netdev_ours(p, ndev))
			kdapl_fill_v6(c, ndev);
	rcu_read_unlock();
}

/*
 * Find the addresses of the network devices of the port of @ia, whose table has @gids
 * GIDs. The caller frees c->list by kvfree(). Return 0 or -ENOMEM.
 */
static int kdapl_addr_candidates(struct kdapl_ia *ia, int gids,
				 struct kdapl_candidates *c)
{
	struct kdapl_port_netdevs *p = kdapl_port_netdevs(ia, gids);
	int max = KDAPL_CANDIDATES;

	if (!p)
		return -ENOMEM;
	for (;;) {
		*c = (struct kdapl_candidates) { .max = max };
		c->list = kvcalloc(max, sizeof(*c->list), GFP_KERNEL);
		if (!c->list)
			break;
		kdapl_addr_fill(c, p);
		if (c->n < max || max >= KDAPL_MAX_CANDIDATES)
			break;
		kvfree(c->list);
		max *= 4;
	}
	kvfree(p);
	return c->list ? 0 : -ENOMEM;
}

static int kdapl_addr_handler(struct rdma_cm_id *id,
			      struct rdma_cm_event *event)
{
	return 0;
}

/*
 * If rdma_cm chooses the port of @ia for @addr, return the index of the network device
 * that has @addr; 0 if it does not; or an errno if rdma_cm has no memory to find out.
 */
static int kdapl_addr_ours(struct kdapl_ia *ia, struct sockaddr_storage *addr)
{
	struct rdma_cm_id *id;
	int ret;

	id = __rdma_create_kernel_id(&init_net, kdapl_addr_handler, NULL,
				     RDMA_PS_TCP, IB_QPT_RC, ia->consumer);
	if (IS_ERR(id))
		return PTR_ERR(id);
	ret = rdma_bind_addr(id, (struct sockaddr *)addr);
	if (ret != -ENOMEM)
		ret = !ret && id->device == ia->hca->dev &&
		      id->port_num == ia->port ?
		      id->route.addr.dev_addr.bound_dev_if : 0;
	rdma_destroy_id(id);
	return ret;
}

/*
 * Move the addresses of @ia to the front of the @n addresses in @list. Return their
 * number or an errno.
 */
static int kdapl_addr_select(struct kdapl_ia *ia, struct sockaddr_storage *list,
			     int n)
{
	int i, ours, found = 0;

	for (i = 0; i < n; i++) {
		ours = kdapl_addr_ours(ia, &list[i]);
		if (ours < 0)
			return ours;
		if (ours)
			list[found++] = list[i];
	}
	return found;
}

/**
 * kdapl_ia_refresh_addrs - find the addresses of an IA
 * @ia: the IA
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: 0, or an errno; after an error the former addresses are kept.
 */
int kdapl_ia_refresh_addrs(struct kdapl_ia *ia)
{
	struct kdapl_candidates c;
	struct ib_port_attr port;
	int n;

	lockdep_assert_held(&ia->hca->sem);
	lockdep_assert_held(&ia->mutex);

	n = ib_query_port(ia->hca->dev, ia->port, &port);
	if (n)
		return n;
	n = kdapl_addr_candidates(ia, port.gid_tbl_len, &c);
	if (n)
		return n;
	n = kdapl_addr_select(ia, c.list, c.n);
	if (n < 0) {
		kvfree(c.list);
		return n;
	}
	ia->max_msg = port.max_msg_sz;
	kvfree(ia->addr);
	ia->addr = c.list;
	ia->naddrs = n;
	/*
	 * The consumer may be reading the address through the pointer of dat_ia_query(),
	 * so an unchanged address is not written.
	 */
	if (n && memcmp(&ia->first_addr, &c.list[0], sizeof(c.list[0])))
		ia->first_addr = c.list[0];
	return 0;
}

/* Return how many leading bits two addresses of one family have in common. */
static int kdapl_addr_match(const struct sockaddr *peer,
			    const struct sockaddr_storage *local)
{
	const struct sockaddr_in6 *p6 = (const void *)peer, *l6 = (void *)local;
	const struct sockaddr_in *p4 = (const void *)peer, *l4 = (void *)local;

	if (peer->sa_family == AF_INET6)
		return ipv6_addr_diff(&p6->sin6_addr, &l6->sin6_addr);
	return 32 - fls(ntohl(p4->sin_addr.s_addr ^ l4->sin_addr.s_addr));
}

/* Return the index of the link of a link-local address, 0 for any other address. */
static int kdapl_addr_scope(const struct sockaddr *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

	return addr->sa_family == AF_INET6 &&
	       ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL ?
	       in6->sin6_scope_id : 0;
}

/*
 * Return the address of @ia that has the longest prefix in common with @peer, on the
 * peer's link if the peer's address names one; the first address if @peer is NULL; NULL
 * if there is none.
 */
static const struct sockaddr_storage *
kdapl_addr_pick(struct kdapl_ia *ia, const struct sockaddr *peer)
{
	const struct sockaddr_storage *best = NULL;
	int match, best_match = -1, scope;
	unsigned int i;

	if (!peer)
		return ia->naddrs ? &ia->addr[0] : NULL;
	scope = kdapl_addr_scope(peer);
	for (i = 0; i < ia->naddrs; i++) {
		if (ia->addr[i].ss_family != peer->sa_family ||
		    (scope && scope != kdapl_addr_scope((void *)&ia->addr[i])))
			continue;
		match = kdapl_addr_match(peer, &ia->addr[i]);
		if (match > best_match) {
			best_match = match;
			best = &ia->addr[i];
		}
	}
	return best;
}

/*
 * Set @addr to the source address that the routing table has for packets to @peer over
 * the link @oif; 0 means any link. Return 0 or an errno.
 */
static int kdapl_route_source4(const struct sockaddr *peer, int oif,
			       struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	struct flowi4 fl4 = {
		.daddr = ((const struct sockaddr_in *)peer)->sin_addr.s_addr,
		.flowi4_oif = oif,
	};
	struct rtable *rt = ip_route_output_key(&init_net, &fl4);

	if (IS_ERR(rt))
		return PTR_ERR(rt);
	ip_rt_put(rt);
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = fl4.saddr;
	return 0;
}

/* As kdapl_route_source4(), for IPv6. */
static int kdapl_route_source6(const struct sockaddr *peer, int oif,
			       struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	struct flowi6 fl6 = {
		.daddr = ((const struct sockaddr_in6 *)peer)->sin6_addr,
		.flowi6_oif = oif,
	};
	struct dst_entry *dst = kdapl_route6(&fl6);

	if (IS_ERR(dst))
		return PTR_ERR(dst);
	in6->sin6_family = AF_INET6;
	in6->sin6_addr = fl6.saddr;
	if (ipv6_addr_type(&fl6.saddr) & IPV6_ADDR_LINKLOCAL)
		in6->sin6_scope_id = oif ?: dst->dev->ifindex;
	dst_release(dst);
	return 0;
}

/*
 * Set @addr to the source address that the routing table has for packets to @peer over
 * the link @oif; 0 means any link. Return kdapl_addr_ours() of @addr; 0 if @addr is of
 * another link or there is no route.
 */
static int kdapl_addr_route(struct kdapl_ia *ia, const struct sockaddr *peer, int oif,
			    struct sockaddr_storage *addr)
{
	int link;

	memset(addr, 0, sizeof(*addr));
	if (peer->sa_family == AF_INET ? kdapl_route_source4(peer, oif, addr) :
					 kdapl_route_source6(peer, oif, addr))
		return 0;
	link = kdapl_addr_ours(ia, addr);
	return link > 0 && oif && oif != link ? 0 : link;
}

/*
 * Set @addr to the address of @ia from which to reach @peer: the routing table's source
 * address, unless another adapter has it. In that case the address with the longest
 * common prefix tells the link of this adapter to use. A peer on this adapter is reached
 * from its own address. Return kdapl_addr_ours() of @addr.
 */
static int kdapl_addr_choose(struct kdapl_ia *ia, const struct sockaddr *peer,
			     struct sockaddr_storage *addr)
{
	const struct sockaddr_storage *pick = kdapl_addr_pick(ia, peer);
	int ret, link = 0;

	if (peer && !(pick && kdapl_addr_same((void *)peer, pick))) {
		ret = kdapl_addr_route(ia, peer, kdapl_addr_scope(peer), addr);
		if (ret || !pick)
			return ret;
	}
	if (!pick)
		return 0;
	*addr = *pick;
	link = kdapl_addr_ours(ia, addr);
	if (link <= 0 || !peer || kdapl_addr_same((void *)peer, pick))
		return link;
	ret = kdapl_addr_route(ia, peer, link, addr);
	if (ret)
		return ret;
	*addr = *pick;
	return link;
}

/**
 * kdapl_ia_local_addr - choose the address of an IA to reach a peer from
 * @ia: the IA
 * @peer: the peer's address, or NULL for any
 * @addr: set to the address
 *
 * The addresses of the port may have changed since kdapl_ia_refresh_addrs(), so they are
 * read again if no address fits.
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: 0 or an errno.
 */
int kdapl_ia_local_addr(struct kdapl_ia *ia, const struct sockaddr *peer,
			struct sockaddr_storage *addr)
{
	int link;

	lockdep_assert_held(&ia->hca->sem);

	mutex_lock(&ia->mutex);
	link = kdapl_addr_choose(ia, peer, addr);
	if (!link) {
		link = kdapl_ia_refresh_addrs(ia);
		if (!link)
			link = kdapl_addr_choose(ia, peer, addr) ?: -EADDRNOTAVAIL;
	}
	mutex_unlock(&ia->mutex);
	return min(link, 0);
}
