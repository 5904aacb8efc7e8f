// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The addresses of an IA.
 *
 * Only rdma_cm knows which IP addresses belong to an RDMA port: over RoCE the
 * GID table has them, over iWARP and IPoIB it does not.
 * kdapl_ia_refresh_addrs() binds a temporary id to every address of the host
 * and keeps the addresses for which rdma_cm chooses the IA's port. ia->mutex
 * protects ia->addr and ia->naddrs.
 */
#include <linux/inetdevice.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/rdma_cm.h>
#include "ia.h"

/* Addresses of the host that are tried: room for them at first, and at most. */
#define KDAPL_CANDIDATES	64
#define KDAPL_MAX_CANDIDATES	SZ_64K

/* Return whether @addr is the wildcard address of its family. */
bool kdapl_addr_any(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	return addr->ss_family == AF_INET6 ?
		ipv6_addr_any(&in6->sin6_addr) :
		in->sin_addr.s_addr == htonl(INADDR_ANY);
}

/* Fill in @list with up to @max addresses of the host; return their number. */
static int kdapl_addr_fill(struct sockaddr_storage *list, int max)
{
	struct net_device *ndev;
	int n = 0;

	rcu_read_lock();
	for_each_netdev_rcu(&init_net, ndev) {
		struct in_device *in_dev = __in_dev_get_rcu(ndev);
		const struct in_ifaddr *ifa;

		if (!in_dev || ndev->flags & IFF_LOOPBACK)
			continue;
		in_dev_for_each_ifa_rcu(ifa, in_dev) {
			struct sockaddr_in *in = (void *)&list[n];

			if (n == max)
				break;
			in->sin_family = AF_INET;
			in->sin_addr.s_addr = ifa->ifa_local;
			n++;
		}
	}
#if IS_ENABLED(CONFIG_IPV6)
	for_each_netdev_rcu(&init_net, ndev) {
		struct inet6_dev *idev = __in6_dev_get(ndev);
		struct inet6_ifaddr *ifp;

		if (!idev || ndev->flags & IFF_LOOPBACK)
			continue;
		read_lock_bh(&idev->lock);
		list_for_each_entry(ifp, &idev->addr_list, if_list) {
			struct sockaddr_in6 *in6 = (void *)&list[n];

			if (n == max)
				break;
			if (ifp->flags & IFA_F_TENTATIVE)
				continue;
			in6->sin6_family = AF_INET6;
			in6->sin6_addr = ifp->addr;
			if (ipv6_addr_type(&ifp->addr) & IPV6_ADDR_LINKLOCAL)
				in6->sin6_scope_id = ndev->ifindex;
			n++;
		}
		read_unlock_bh(&idev->lock);
	}
#endif
	rcu_read_unlock();
	return n;
}

/* Return all addresses of the host, to be freed by kvfree(); *@n is their number. */
static struct sockaddr_storage *kdapl_addr_candidates(int *n)
{
	struct sockaddr_storage *list;
	int max = KDAPL_CANDIDATES;

	for (;;) {
		list = kvcalloc(max, sizeof(*list), GFP_KERNEL);
		if (!list)
			return NULL;
		*n = kdapl_addr_fill(list, max);
		/* A host of containers has an address for each of them. */
		if (*n < max || max >= KDAPL_MAX_CANDIDATES)
			return list;
		kvfree(list);
		max *= 4;
	}
}

static int kdapl_addr_handler(struct rdma_cm_id *id,
			      struct rdma_cm_event *event)
{
	return 0;
}

/*
 * Return 1 if rdma_cm chooses the port of @ia for @addr, 0 if it does not, or
 * an errno if rdma_cm has no memory to find out.
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
		      id->port_num == ia->port;
	rdma_destroy_id(id);
	return ret;
}

/*
 * Move those of the @n addresses in @list that belong to @ia to the front. IPv4 is
 * listed first, so the last place is for an IPv6 address. Return their number or an
 * errno.
 */
static int kdapl_addr_select(struct kdapl_ia *ia, struct sockaddr_storage *list,
			     int n)
{
	int i, ours, found = 0;

	for (i = 0; i < n && found < KDAPL_MAX_ADDRS; i++) {
		if (found == KDAPL_MAX_ADDRS - 1 && list[i].ss_family == AF_INET)
			continue;
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
 * @ia: the IA; ia->mutex is held, or the IA is being opened and not yet
 *	published
 *
 * Context: Process context; the device is present.
 * Return: 0, or an errno; after an error the addresses known before are kept.
 */
int kdapl_ia_refresh_addrs(struct kdapl_ia *ia)
{
	struct sockaddr_storage *list;
	struct ib_port_attr port;
	int i, n;

	n = ib_query_port(ia->hca->dev, ia->port, &port);
	if (n)
		return n;
	list = kdapl_addr_candidates(&n);
	if (!list)
		return -ENOMEM;
	n = kdapl_addr_select(ia, list, n);
	if (n >= 0) {
		ia->max_msg = port.max_msg_sz;
		ia->naddrs = n;
		/*
		 * The consumer may be reading ia->addr through the pointer of
		 * dat_ia_query(), so an unchanged address is not written.
		 */
		for (i = 0; i < n; i++)
			if (memcmp(&ia->addr[i], &list[i], sizeof(list[i])))
				ia->addr[i] = list[i];
	}
	kvfree(list);
	return min(n, 0);
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

/*
 * Return the address of @ia that has the longest prefix in common with @peer;
 * the first address if @peer is NULL; NULL if none is of the peer's family.
 */
static const struct sockaddr_storage *
kdapl_addr_pick(struct kdapl_ia *ia, const struct sockaddr *peer)
{
	const struct sockaddr_storage *best = NULL;
	int match, best_match = -1;
	unsigned int i;

	for (i = 0; i < ia->naddrs; i++) {
		if (!peer)
			return &ia->addr[0];
		if (ia->addr[i].ss_family != peer->sa_family)
			continue;
		match = kdapl_addr_match(peer, &ia->addr[i]);
		if (match > best_match) {
			best_match = match;
			best = &ia->addr[i];
		}
	}
	return best;
}

/**
 * kdapl_ia_local_addr - choose the address of an IA to reach a peer from
 * @ia: the IA
 * @peer: the peer's address, or NULL for any
 * @addr: set to the address with the longest prefix in common with @peer
 *
 * The addresses of the port may have changed since kdapl_ia_refresh_addrs(), so
 * the choice is tried, and the addresses are read again if it is wrong.
 *
 * Context: Process context; the device is present.
 * Return: 0 or an errno.
 */
int kdapl_ia_local_addr(struct kdapl_ia *ia, const struct sockaddr *peer,
			struct sockaddr_storage *addr)
{
	const struct sockaddr_storage *pick;
	int ours = 0, err = 0;

	mutex_lock(&ia->mutex);
	pick = kdapl_addr_pick(ia, peer);
	if (pick) {
		*addr = *pick;
		ours = kdapl_addr_ours(ia, addr);
	}
	if (ours < 0) {
		err = ours;
	} else if (!ours) {
		err = kdapl_ia_refresh_addrs(ia);
		pick = kdapl_addr_pick(ia, peer);
		if (!err && !pick)
			err = -EADDRNOTAVAIL;
		if (!err)
			*addr = *pick;
	}
	mutex_unlock(&ia->mutex);
	return err;
}
