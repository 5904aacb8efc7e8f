// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The server of <dat/kdat_portal.h>, and its adapters: each has an EVD for each of up to
 * KI_COMPS CPUs, which all connections share.
 */
#include <linux/cpumask.h>
#include "isert.h"

KDAT_SERVER_HANDLE ki_server;

static DAT_BOOLEAN ki_async(KDAT_ADAPTER *adapter, const DAT_EVENT *event)
{
	struct ki_adapter *a = container_of(adapter, struct ki_adapter, base);
	DAT_CONTEXT context;

	if (event->event_number == DAT_ASYNC_SRQ_LOW_WATERMARK) {
		atomic_long_inc(&a->stats[KI_STAT_LOW]);
		return DAT_TRUE;
	}
	if (event->event_number != DAT_ASYNC_EP_SOFT_HIGH_WATERMARK)
		return DAT_FALSE;
	/* ki_conn_free() takes the mutex after dat_ep_free(), so the connection stays. */
	mutex_lock(&a->cm_mutex);
	if (dat_get_consumer_context(event->event_data.asynch_error_event_data.dat_handle,
				     &context) == DAT_SUCCESS)
		ki_credit_soft(context.as_ptr);
	mutex_unlock(&a->cm_mutex);
	return DAT_TRUE;
}

static DAT_RETURN ki_comps(struct ki_adapter *a)
{
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_UPCALL_OBJECT upcall;
	struct ki_comp *comp;

	for (comp = a->comps; comp < a->comps + a->ncomps && ret == DAT_SUCCESS; comp++) {
		upcall.instance_data = comp;
		upcall.upcall_func = ki_comp_upcall;
		/* LIO may sleep while it handles a PDU, so no upcalls in softirq. */
		ret = dat_evd_kcreate(a->base.ia, KI_EVD_QLEN,
				      DAT_UPCALL_SINGLE_INSTANCE, &upcall,
				      DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG,
				      &comp->evd);
		if (ret == DAT_SUCCESS)
			ret = kdat_evd_set_vector(comp->evd, comp - a->comps);
	}
	return ret;
}

static DAT_RETURN ki_open(KDAT_ADAPTER *adapter, DAT_PVOID context)
{
	struct ki_adapter *a = container_of(adapter, struct ki_adapter, base);
	const DAT_IA_ATTR *attr = &adapter->attr;
	struct ki_comp *comp;

	mutex_init(&a->cm_mutex);
	INIT_LIST_HEAD(&a->conn_list);
	ki_ping_start(a);
	a->invalidate = adapter->provider.fmr_supported == DAT_TRUE;
	a->max_iov = clamp(attr->max_iov_segments_per_rdma_write, 1, KI_IOV);
	a->max_read_iov = clamp(attr->max_iov_segments_per_rdma_read, 1, KI_IOV);
	a->max_reads = clamp(attr->max_rdma_read_per_ep_out, 1, KI_READS);
	a->max_rdma = min_t(u64, attr->max_rdma_size, SZ_16M);
	a->ncomps = min_t(unsigned int, num_online_cpus(), KI_COMPS);
	for (comp = a->comps; comp < a->comps + a->ncomps; comp++) {
		comp->a = a;
		mutex_init(&comp->mutex);
		ki_lanes_init(comp);
	}
	return ki_comps(a);
}

static void ki_close(KDAT_ADAPTER *adapter)
{
	struct ki_adapter *a = container_of(adapter, struct ki_adapter, base);
	struct ki_comp *comp;

	ki_ping_stop(a);
	for (comp = a->comps; comp < a->comps + a->ncomps; comp++) {
		dat_evd_free(comp->evd);
		ki_lanes_free(comp);
	}
}

static const KDAT_SERVER_ATTR ki_server_attr = {
	.owner = THIS_MODULE,
	.name = KBUILD_MODNAME,
	.adapter_size = sizeof(struct ki_adapter),
	.cm_qlen = KI_EVD_QLEN,
	.cr_qlen = KI_PENDING,
	.buffer_length = KI_BUF_LEN,
	.buffer_header = KI_HEADERS,
	.size = ki_srq_size,
	.open = ki_open,
	.close = ki_close,
	.request = ki_request,
	.event = ki_cm_upcall,
	.async = ki_async,
};

int ki_server_start(void)
{
	return kdat_server_create(&ki_server_attr, &ki_server) == DAT_SUCCESS ? 0 : -ENOMEM;
}
