// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QP1 of a RoCE device: MADs go to the device that has the destination's GID. They
 * are datagrams; what nobody receives is lost.
 */
#include <linux/ip.h>
#include <rdma/ib_mad.h>
#include "sim.h"

#define SIM_MAD_LEN	(sizeof(union rdma_network_hdr) + sizeof(struct ib_mad))

/* What precedes the MAD in the receiver's buffer. */
static void sim_mad_header(union rdma_network_hdr *hdr,
			   const struct sim_swqe *wqe)
{
	struct iphdr *ip = (struct iphdr *)&hdr->roce4grh;

	memset(hdr, 0, sizeof(*hdr));
	if (wqe->net_type == RDMA_NETWORK_IPV4) {
		ip->version = 4;
		ip->ihl = 5;
		memcpy(&ip->saddr, &wqe->sgid.raw[12], sizeof(ip->saddr));
		memcpy(&ip->daddr, &wqe->dgid.raw[12], sizeof(ip->daddr));
		return;
	}
	hdr->ibgrh.version_tclass_flow = cpu_to_be32(6 << 28);
	hdr->ibgrh.sgid = wqe->sgid;
	hdr->ibgrh.dgid = wqe->dgid;
}

static bool sim_mad_is_lost(struct sim_dev *dev, const struct ib_mad_hdr *mad)
{
	u32 attr = sim_switch(dev, drop_attr);

	if (mad->mgmt_class != IB_MGMT_CLASS_CM ||
	    (attr && attr != be16_to_cpu(mad->attr_id)))
		return false;
	return sim_times(dev, drop_mads);
}

/* Give @buf to the QP1 @to, which is referenced. */
static bool sim_mad_deliver(struct sim_qp *to, const struct sim_swqe *wqe,
			    const void *buf, u32 len)
{
	struct sim_rwqe *rwqe = to->rx.wqe;
	struct ib_wc wc = {
		.opcode = IB_WC_RECV,
		.qp = &to->ib,
		.byte_len = len,
		.src_qp = 1,
		.port_num = 1,
		.wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE,
		.network_hdr_type = wqe->net_type,
	};
	struct sim_side side;
	unsigned long flags;
	bool any;

	/* Several QPs send to one, so its receive is used under its lock. */
	spin_lock_irqsave(&to->lock, flags);
	spin_lock(&to->rq->lock);
	any = to->rq->head != to->rq->tail &&
	      (to->state == IB_QPS_RTR || to->state == IB_QPS_RTS);
	if (any) {
		memcpy(rwqe, sim_rwqe(to->rq, to->rq->head), to->rq->stride);
		WRITE_ONCE(to->rq->head, to->rq->head + 1);
	}
	spin_unlock(&to->rq->lock);
	if (any) {
		wc.wr_id = rwqe->wr_id;
		side = sim_rx_side(to);
		if (!sim_copy_in(&side, buf, len))
			wc.status = IB_WC_LOC_PROT_ERR;
	}
	spin_unlock_irqrestore(&to->lock, flags);
	if (any)
		sim_cq_add(to_sim_cq(to->ib.recv_cq), &wc, true);
	return any;
}

enum sim_result sim_send_mad(struct sim_qp *qp, struct sim_swqe *wqe)
{
	struct sim_side side = {
		.pd = qp->ib.pd,
		.sge = wqe->sge,
		.n = wqe->n_sge,
	};
	u8 buf[SIM_MAD_LEN] __aligned(8);
	union rdma_network_hdr *hdr = (void *)buf;
	struct sim_qp *to = NULL;
	bool got = false;

	if (wqe->len > sizeof(struct ib_mad) ||
	    !sim_copy_out(&side, hdr + 1, wqe->len))
		return sim_complete(qp, wqe, IB_WC_LOC_PROT_ERR);
	sim_mad_header(hdr, wqe);
	if (sim_port_is_up(qp->dev) &&
	    !sim_mad_is_lost(qp->dev, (struct ib_mad_hdr *)(hdr + 1)))
		to = sim_gsi_of(&wqe->dgid);
	if (to) {
		got = sim_port_is_up(to->dev) &&
		      sim_mad_deliver(to, wqe, buf, sizeof(*hdr) + wqe->len);
		sim_qp_put(to);
	}
	if (got)
		sim_count(qp->dev, mads);
	else
		sim_count(qp->dev, mads_dropped);
	return sim_complete(qp, wqe, IB_WC_SUCCESS);
}
