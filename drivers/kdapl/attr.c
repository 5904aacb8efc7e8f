// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a device can do, in DAT's terms, and the addresses it is reached by.
 *
 * Which IP addresses belong to an RDMA port is known to rdma_cm alone: over
 * RoCE they are in the GID table, over iWARP and IPoIB they are not. So every
 * local address is bound to a scratch id, and those that land on our port are
 * ours.
 */
#include <linux/inetdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include "kdapl.h"

#define KDAPL_MAX_CANDIDATES 64

static DAT_COUNT kdapl_count(u64 value)
{
	return min_t(u64, value, INT_MAX);
}

/*
 * Longest memory region in bytes, if it begins with a page; one that does not may
 * have one page too many. One that needs no registration may be longer.
 */
u32 kdapl_max_lmr_block(struct kdapl_ia *ia)
{
	u64 pages = ia->hca->attrs.max_fast_reg_page_list_len;

	/* All of it in one piece then, see kdapl_region_contiguous(). */
	if (!kdapl_can_register(&ia->hca->attrs))
		return U32_MAX & PAGE_MASK;
	return min_t(u64, pages * PAGE_SIZE, U32_MAX & PAGE_MASK);
}

void kdapl_ia_attr(struct kdapl_ia *ia, DAT_IA_ATTR *attr)
{
	const struct ib_device_attr *max = &ia->hca->attrs;
	u32 msg = ia->max_msg;

	memset(attr, 0, sizeof(*attr));
	strscpy(attr->adapter_name, ia->hca->name, sizeof(attr->adapter_name));
	snprintf(attr->vendor_name, sizeof(attr->vendor_name), "0x%06x",
		 max->vendor_id);
	attr->hardware_version_major = max->hw_ver;
	attr->firmware_version_major = max->fw_ver >> 32;
	attr->firmware_version_minor = (u32)max->fw_ver;
	attr->ia_address_ptr = kdapl_addr_ptr(&ia->addr[0]);
	attr->max_eps = kdapl_count(max->max_qp);
	/* What is posted must fit on a CQ when it completes. */
	attr->max_dto_per_ep = kdapl_count(min(max->max_qp_wr, max->max_cqe));
	/* Each may be a Read that is two requests to the device. */
	if (ia->reads_to_key)
		attr->max_dto_per_ep /= 2;
	attr->max_rdma_read_per_ep_in = min(max->max_qp_rd_atom, U8_MAX);
	attr->max_rdma_read_per_ep_out = min(max->max_qp_init_rd_atom, U8_MAX);
	attr->max_evds = kdapl_count(max->max_cq);
	attr->max_evd_qlen = ia->hca->max_qlen;
	attr->max_iov_segments_per_dto =
		min3(max->max_send_sge, max->max_recv_sge, KDAPL_MAX_IOV);
	if (max->max_srq)
		attr->max_iov_segments_per_dto =
			min(attr->max_iov_segments_per_dto, max->max_srq_sge);
	attr->max_lmrs = min_t(u64, max->max_mr, KDAPL_INDEX_MASK);
	attr->max_lmr_block_size = kdapl_max_lmr_block(ia);
	attr->max_lmr_virtual_address = U64_MAX;
	attr->max_pzs = kdapl_count(max->max_pd);
	attr->max_message_size = msg;
	attr->max_rdma_size = kdapl_sink_max(ia, msg);
	/* Each takes two MRs. */
	attr->max_rmrs = kdapl_can_register(max) ? attr->max_lmrs / 2 : 0;
	attr->max_rmr_target_address = U64_MAX;
	attr->max_srqs = kdapl_count(max->max_srq);
	attr->max_ep_per_srq = max->max_srq ? attr->max_eps : 0;
	attr->max_recv_per_srq = kdapl_count(max->max_srq_wr);
	/* iWARP reads into one segment. */
	attr->max_iov_segments_per_rdma_read =
		ia->iwarp ? 1 :
		min_t(u32, max->max_sge_rd ?: 1,
		      attr->max_iov_segments_per_dto);
	attr->max_iov_segments_per_rdma_write = attr->max_iov_segments_per_dto;
	attr->max_rdma_read_in = kdapl_count(max->max_res_rd_atom);
	attr->max_rdma_read_out = attr->max_rdma_read_in;
	attr->max_rdma_read_per_ep_in_guaranteed = DAT_FALSE;
	attr->max_rdma_read_per_ep_out_guaranteed = DAT_FALSE;
	attr->zb_supported = DAT_TRUE;
	attr->reserved_lmr_supported = DAT_TRUE;
}

DAT_COUNT kdapl_max_private_data(struct kdapl_ia *ia)
{
	/*
	 * An InfiniBand CM request carries 92 bytes, 36 of which rdma_cm uses.
	 * Over iWARP the limit is the length field of rdma_conn_param, where
	 * drivers count four bytes that MPA version 2 puts in front.
	 */
	return ia->iwarp ? U8_MAX - 4 : 56;
}

void kdapl_provider_attr(struct kdapl_ia *ia, DAT_PROVIDER_ATTR *attr)
{
	int i, j;

	memset(attr, 0, sizeof(*attr));
	strscpy(attr->provider_name, KBUILD_MODNAME,
		sizeof(attr->provider_name));
	attr->provider_version_major = 1;
	attr->dapl_version_major = DAT_VERSION_MAJOR;
	attr->dapl_version_minor = DAT_VERSION_MINOR;
	attr->lmr_mem_types_supported =
		DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR |
		DAT_MEM_TYPE_PHYSICAL | DAT_MEM_TYPE_PHYSICAL_VAR_PAGES |
		DAT_MEM_TYPE_PLATFORM | DAT_MEM_TYPE_IA;
	attr->iov_ownership_on_return = DAT_IOV_CONSUMER;
	attr->dat_qos_supported =
		DAT_QOS_BEST_EFFORT | DAT_QOS_HIGH_THROUGHPUT |
		DAT_QOS_LOW_LATENCY | DAT_QOS_ECONOMY | DAT_QOS_PREMIUM;
	attr->completion_flags_supported =
		DAT_COMPLETION_SUPPRESS_FLAG |
		DAT_COMPLETION_SOLICITED_WAIT_FLAG |
		DAT_COMPLETION_UNSIGNALLED_FLAG |
		DAT_COMPLETION_BARRIER_FENCE_FLAG |
		DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG;
	attr->is_thread_safe = DAT_TRUE;
	attr->max_private_data_size = kdapl_max_private_data(ia);
	attr->supports_multipath = DAT_FALSE;
	attr->ep_creator = DAT_PSP_CREATES_EP_IFASKED;
	attr->upcall_policy = DAT_UPCALL_MANY;
	attr->optimal_buffer_alignment = DAT_OPTIMAL_ALIGNMENT;
	for (i = 0; i < DAT_EVD_STREAMS; i++)
		for (j = 0; j < DAT_EVD_STREAMS; j++)
			attr->evd_stream_merging_supported[i][j] = DAT_TRUE;
	attr->srq_supported = ia->hca->attrs.max_srq ? DAT_TRUE :
							    DAT_FALSE;
	attr->srq_watermarks_supported = DAT_WATERMARKS_SRQ_LOW |
					 DAT_WATERMARKS_EP_SOFT_HIGH |
					 DAT_WATERMARKS_EP_HARD_HIGH;
	attr->srq_ep_pz_difference_supported =
		ia->hca->srq_any_pz ? DAT_TRUE : DAT_FALSE;
	attr->srq_info_supported = DAT_SRQ_INFO_AVAILABLE |
				   DAT_SRQ_INFO_OUTSTANDING;
	attr->ep_recv_info_supported = DAT_EP_RECV_INFO_NBUFS |
				       DAT_EP_RECV_INFO_SPAN;
	attr->lmr_sync_req = DAT_FALSE;
	attr->dto_async_return_guaranteed = DAT_TRUE;
	attr->rdma_write_for_rdma_read_req = DAT_FALSE;
	attr->rdma_read_lmr_rmr_context_exposure = DAT_FALSE;
	attr->rmr_scope_supported = DAT_RMR_SCOPE_ANY;
	attr->is_interrupt_safe = DAT_TRUE;
	attr->fmr_supported = kdapl_can_register(&ia->hca->attrs) ?
				DAT_TRUE : DAT_FALSE;
	attr->lmr_for_fmr_scope_supported = DAT_LMR_SCOPE_ANY;
	attr->ha_supported = DAT_FALSE;
	attr->ha_loadbalancing = DAT_HA_LB_NONE;
}

bool kdapl_comm_valid(const DAT_COMM *comm)
{
	return (comm->domain == AF_INET || comm->domain == AF_INET6) &&
	       comm->type == SOCK_STREAM &&
	       (comm->protocol == 0 || comm->protocol == IPPROTO_TCP);
}

bool kdapl_addr_any(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	return addr->ss_family == AF_INET6 ?
		ipv6_addr_any(&in6->sin6_addr) :
		in->sin_addr.s_addr == htonl(INADDR_ANY);
}

/* All addresses of the host, as far as there is room. */
static int kdapl_addr_candidates(struct sockaddr_storage *list, int max)
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

static int kdapl_addr_handler(struct rdma_cm_id *id,
			      struct rdma_cm_event *event)
{
	return 0;
}

/* Does rdma_cm reach our port by this address? -ENOMEM: it cannot tell. */
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

/* Move our addresses to the front of the list; returns how many they are. */
static int kdapl_addr_select(struct kdapl_ia *ia, struct sockaddr_storage *list,
			     int n)
{
	int i, ours, found = 0;

	for (i = 0; i < n && found < KDAPL_MAX_ADDRS; i++) {
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
 * @ia: the IA; ia->mutex is held or nobody else knows it
 *
 * Context: Process context; the device is present.
 * Return: 0, or an errno, then those known before are still there.
 */
int kdapl_ia_refresh_addrs(struct kdapl_ia *ia)
{
	struct sockaddr_storage *list;
	struct ib_port_attr port;
	int i, n;

	n = ib_query_port(ia->hca->dev, ia->port, &port);
	if (n)
		return n;
	list = kcalloc(KDAPL_MAX_CANDIDATES, sizeof(*list), GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	n = kdapl_addr_candidates(list, KDAPL_MAX_CANDIDATES);
	n = kdapl_addr_select(ia, list, n);
	if (n >= 0) {
		ia->max_msg = port.max_msg_sz;
		ia->naddrs = n;
		/* The consumer may be reading those that stay. */
		for (i = 0; i < n; i++)
			if (memcmp(&ia->addr[i], &list[i], sizeof(list[i])))
				ia->addr[i] = list[i];
	}
	kfree(list);
	return min(n, 0);
}

static int kdapl_addr_match(const struct sockaddr *peer,
			    const struct sockaddr_storage *local)
{
	const struct sockaddr_in6 *p6 = (const void *)peer, *l6 = (void *)local;
	const struct sockaddr_in *p4 = (const void *)peer, *l4 = (void *)local;

	if (peer->sa_family == AF_INET6)
		return ipv6_addr_diff(&p6->sin6_addr, &l6->sin6_addr);
	return 32 - fls(ntohl(p4->sin_addr.s_addr ^ l4->sin_addr.s_addr));
}

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
 * kdapl_ia_local_addr - an address of the IA to reach a peer from
 * @ia: the IA
 * @peer: its address, or NULL for any
 * @addr: where to put the one that has most in common with the peer's
 *
 * An administrator may have changed the addresses of the port since they were
 * looked up, so the choice is tried.
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
