// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The device, its port, PDs and address handles; and the table of operations. */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/iw_cm.h>
#include <compat_probe.h>
#include "sim.h"

static int sim_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	struct sim_dev *dev = to_sim_dev(ibdev);

	*attr = (struct ib_device_attr) {
		.fw_ver = 1,
		.sys_image_guid = ibdev->node_guid,
		.max_mr_size = U64_MAX,
		.page_size_cap = PAGE_SIZE,
		.max_qp = SZ_1M,
		.max_qp_wr = SIM_MAX_WR,
		.device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS |
				    IB_DEVICE_SRQ_RESIZE |
				    IB_DEVICE_RC_RNR_NAK_GEN,
		.kernel_cap_flags = IBK_ALLOW_USER_UNREG,
		.max_send_sge = SIM_MAX_SGE,
		.max_recv_sge = SIM_MAX_SGE,
		.max_sge_rd = dev->iwarp ? 1 : SIM_MAX_SGE,
		.max_cq = SZ_1M,
		.max_cqe = SIM_MAX_CQE,
		.max_mr = SZ_8M,
		.max_pd = SZ_1M,
		.max_qp_rd_atom = SIM_MAX_RD,
		.max_res_rd_atom = SIM_MAX_RD * SZ_1M,
		.max_qp_init_rd_atom = SIM_MAX_RD,
		.max_ah = SZ_1M,
		.max_srq = SZ_64K,
		.max_srq_wr = SIM_MAX_SRQ_WR,
		.max_srq_sge = SIM_MAX_SGE,
		.max_fast_reg_page_list_len = sim_max_pages(dev),
		.max_pkeys = 1,
	};
	if (ibdev->local_dma_lkey)
		attr->kernel_cap_flags |= IBK_LOCAL_DMA_LKEY;
	return 0;
}

bool sim_port_is_up(struct sim_dev *dev)
{
	return READ_ONCE(dev->netdev_up) && !sim_switch(dev, port_down);
}

/* Tell @handler of @event, in the context that @dev's switch asks for. */
void sim_deliver(struct sim_dev *dev, struct ib_event *event,
		 void (*handler)(struct ib_event *event, void *context), void *context)
{
	bool off = sim_switch(dev, event_irqoff);
	unsigned long flags = 0;

	if (off)
		local_irq_save(flags);
	handler(event, context);
	if (off)
		local_irq_restore(flags);
}

/* The port may have gone up or down. Context: any. */
void sim_port_changed(struct sim_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ib,
		.element.port_num = 1,
		.event = sim_port_is_up(dev) ? IB_EVENT_PORT_ACTIVE :
					       IB_EVENT_PORT_ERR,
	};

	ib_dispatch_event(&event);
	sim_schedule_all(dev);
}

static int sim_query_port(struct ib_device *ibdev, u32 port,
			  struct ib_port_attr *attr)
{
	struct sim_dev *dev = to_sim_dev(ibdev);
	bool up = sim_port_is_up(dev);

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP :
				IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->max_msg_sz = SIM_MAX_MSG;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	attr->gid_tbl_len = dev->iwarp ? 1 : 128;
	attr->pkey_tbl_len = dev->iwarp ? 0 : 1;
	return 0;
}

static int sim_port_immutable(struct ib_device *ibdev, u32 port,
			      struct ib_port_immutable *immutable)
{
	struct sim_dev *dev = to_sim_dev(ibdev);
	struct ib_port_attr attr = { };

	sim_query_port(ibdev, port, &attr);
	immutable->gid_tbl_len = attr.gid_tbl_len;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	if (dev->iwarp) {
		immutable->core_cap_flags = RDMA_CORE_PORT_IWARP;
	} else {
		immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
		immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	}
	return 0;
}

static enum rdma_link_layer sim_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int sim_query_pkey(struct ib_device *ibdev, u32 port, u16 index,
			  u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

/* Of iWARP: rdma_cm compares it with the network device's address. */
static int sim_query_gid(struct ib_device *ibdev, u32 port, int index,
			 union ib_gid *gid)
{
	if (index)
		return -EINVAL;
	memset(gid, 0, sizeof(*gid));
	memcpy(gid->raw, to_sim_dev(ibdev)->mac, ETH_ALEN);
	return 0;
}

static int sim_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

static int sim_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

static int sim_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
			 struct ib_udata *udata)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(init->ah_attr);
	struct sim_ah *ah = to_sim_ah(ibah);

	ah->dgid = grh->dgid;
	ah->sgid = grh->sgid_attr->gid;
	ah->net_type = rdma_gid_attr_network_type(grh->sgid_attr);
	return 0;
}

static int sim_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}

#ifdef KDAPL_HAVE_CREATE_CQ_BUNDLE
static int sim_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs)
#else
static int sim_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct ib_udata *udata)
#endif
{
	return sim_cq_alloc(ibcq, attr);
}

/* ib_core demands this operation. */
#ifdef KDAPL_HAVE_REG_USER_MR_DMAH
static struct ib_mr *sim_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				     u64 virt, int access,
				     struct ib_dmah *dmah,
				     struct ib_udata *udata)
#else
static struct ib_mr *sim_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				     u64 virt, int access,
				     struct ib_udata *udata)
#endif
{
	return ERR_PTR(-EOPNOTSUPP);
}

static const struct ib_device_ops sim_ops = {
	.owner = THIS_MODULE,
	/* There is no user space driver, so no ID for it. */
	.driver_id = RDMA_DRIVER_UNKNOWN,

	.alloc_mr = sim_alloc_mr,
	.alloc_pd = sim_alloc_pd,
	.create_cq = sim_create_cq,
	.create_qp = sim_create_qp,
	.create_srq = sim_create_srq,
	.dealloc_driver = sim_dealloc,
	.dealloc_pd = sim_dealloc_pd,
	.dereg_mr = sim_dereg_mr,
	.destroy_cq = sim_destroy_cq,
	.destroy_qp = sim_destroy_qp,
	.destroy_srq = sim_destroy_srq,
	.get_dma_mr = sim_get_dma_mr,
	.get_link_layer = sim_link_layer,
	.get_port_immutable = sim_port_immutable,
	.map_mr_sg = sim_map_mr_sg,
	.modify_qp = sim_modify_qp,
	.modify_srq = sim_modify_srq,
	.poll_cq = sim_poll_cq,
	.post_recv = sim_post_recv,
	.post_send = sim_post_send,
	.post_srq_recv = sim_post_srq_recv,
	.query_device = sim_query_device,
	.query_port = sim_query_port,
	.query_qp = sim_query_qp,
	.query_srq = sim_query_srq,
	.reg_user_mr = sim_reg_user_mr,
	.req_notify_cq = sim_req_notify_cq,
#ifdef KDAPL_HAVE_RESIZE_CQ
	.resize_cq = sim_resize_cq,
#endif

	INIT_RDMA_OBJ_SIZE(ib_cq, sim_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, sim_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, sim_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, sim_srq, ib),
};

static const struct ib_device_ops sim_roce_ops = {
	.create_ah = sim_create_ah,
	.destroy_ah = sim_destroy_ah,
	.query_pkey = sim_query_pkey,

	INIT_RDMA_OBJ_SIZE(ib_ah, sim_ah, ib),
};

static const struct ib_device_ops sim_rnic_ops = {
	.query_gid = sim_query_gid,
};

/* The owner does not tell: it is NULL of every driver that is built in. */
bool kdapl_sim_is(struct ib_device *ibdev)
{
	return ibdev->ops.dealloc_driver == sim_dealloc;
}
EXPORT_SYMBOL_GPL(kdapl_sim_is);

/* @dev has its network device, its personality and its engines. */
void sim_dev_init(struct sim_dev *dev)
{
	struct ib_device *ibdev = &dev->ib;

	memcpy(dev->mac, dev->ndev->dev_addr, ETH_ALEN);
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, dev->mac);
	strscpy(ibdev->node_desc, "kdapl_sim", sizeof(ibdev->node_desc));
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_possible_cpus();
	ib_set_device_ops(ibdev, &sim_ops);
	if (dev->iwarp) {
		ibdev->node_type = RDMA_NODE_RNIC;
		ib_set_device_ops(ibdev, &sim_rnic_ops);
		ib_set_device_ops(ibdev, &sim_iw_ops);
		strscpy(ibdev->iw_ifname, dev->ndev->name,
			sizeof(ibdev->iw_ifname));
		ibdev->iw_driver_flags = IW_F_NO_PORT_MAP;
	} else {
		ibdev->node_type = RDMA_NODE_IB_CA;
		ibdev->local_dma_lkey = SIM_DMA_LKEY;
		ib_set_device_ops(ibdev, &sim_roce_ops);
	}
}
