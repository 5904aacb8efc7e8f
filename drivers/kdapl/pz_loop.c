// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A queue pair that is its own peer.
 *
 * Registrations need a queue pair in RTS and send nothing. So on InfiniBand and RoCE the
 * service connection of a Protection Zone (pz_svc.c) is one queue pair that is taken
 * through its states by hand. It needs neither a live port nor an address of the host:
 * every port has a first GID, and the target of the path does not matter. It does matter
 * to srq_probe.c, which passes a GID that a connection has used.
 */
#include <linux/etherdevice.h>
#include <rdma/ib_cache.h>
#include "ia.h"
#include "pz.h"

/* Use GID @index of the port, or its first valid GID, as both ends of @ah. */
static int kdapl_loop_grh(struct ib_device *dev, u32 port, int gids, int index,
			  struct rdma_ah_attr *ah)
{
	const struct ib_gid_attr *gid;
	union ib_gid to;
	int i = max(index, 0);

	do {
		gid = rdma_get_gid_attr(dev, port, i++);
	} while (IS_ERR(gid) && i < gids && index == KDAPL_LOOP_ANY_GID);
	if (IS_ERR(gid))
		return -EADDRNOTAVAIL;
	to = gid->gid;
	rdma_ah_set_grh(ah, &to, 0, gid->index, 1, 0);
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE &&
	    rdma_read_gid_l2_fields(gid, NULL, ah->roce.dmac))
		eth_random_addr(ah->roce.dmac);
	rdma_put_gid_attr(gid);
	return 0;
}

/* Fill in a path from the port to itself. */
static int kdapl_loop_path(struct ib_device *dev, u32 port, int gid,
			   struct ib_qp_attr *attr)
{
	struct rdma_ah_attr *ah = &attr->ah_attr;
	struct ib_port_attr info;
	int err;

	err = ib_query_port(dev, port, &info);
	if (err)
		return err;
	ah->type = rdma_ah_find_type(dev, port);
	rdma_ah_set_port_num(ah, port);
	if (ah->type != RDMA_AH_ATTR_TYPE_ROCE)
		rdma_ah_set_dlid(ah, info.lid);
	if (ah->type != RDMA_AH_ATTR_TYPE_ROCE && !rdma_is_grh_required(dev, port))
		return 0;
	return kdapl_loop_grh(dev, port, info.gid_tbl_len, gid, ah);
}

/* Take @qp to RTS. */
static int kdapl_loop_start(struct ib_qp *qp, u32 port, int gid)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = port,
		.path_mtu = IB_MTU_256,
		.dest_qp_num = qp->qp_num,
		.min_rnr_timer = 12,
	};
	int err;

	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTR;
	err = kdapl_loop_path(qp->device, port, gid, &attr) ?:
	      ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			   IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			    IB_QP_MAX_QP_RD_ATOMIC);
}

/**
 * kdapl_loop_create - create a queue pair that is its own peer
 * @pz: Protection Zone, on InfiniBand or RoCE
 * @attr: attributes of the queue pair
 * @gid: index of the GID that the queue pair sends to; KDAPL_LOOP_ANY_GID if it sends
 *	nothing
 * @qp: set to the queue pair
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: 0 or an errno
 */
int kdapl_loop_create(struct kdapl_pz *pz, struct ib_qp_init_attr *attr, int gid,
		      struct ib_qp **qp)
{
	struct kdapl_ia *ia = pz->obj.ia;
	struct ib_qp *new;
	int err;

	lockdep_assert_held(&ia->hca->sem);

	new = ib_create_qp_kernel(pz->pd, attr, ia->consumer);
	if (IS_ERR(new))
		return PTR_ERR(new);
	err = kdapl_loop_start(new, ia->port, gid);
	if (err)
		ib_destroy_qp(new);
	else
		*qp = new;
	return err;
}
