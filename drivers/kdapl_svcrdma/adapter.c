// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Adapters: what the connections of one share beside that which <dat/kdat_portal.h> gives them,
 * an EVD for each of up to KS_COMPS CPUs, and messages to be sent.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/module.h>
#include "svcrdma.h"

static unsigned int srq_size = 64;
module_param(srq_size, uint, 0644);
MODULE_PARM_DESC(srq_size, "receive buffers of an adapter whose clients have few credits");

static unsigned int srq_max = 16384;
module_param(srq_max, uint, 0644);
MODULE_PARM_DESC(srq_max, "most receive buffers of an adapter");

const char *ks_strerror(DAT_RETURN ret)
{
	const char *type, *subtype;

	if (dat_strerror(ret, &type, &subtype) != DAT_SUCCESS)
		return "unknown error";
	return type;
}

/* Store how many buffers there should be, beside those that are reserved. Context: any. */
static void ks_size(DAT_PVOID context, KDAT_POOL_SIZE *size)
{
	size->most = min_t(unsigned int, READ_ONCE(srq_max), INT_MAX);
	size->wanted = min_t(unsigned int, READ_ONCE(srq_size), size->most);
	size->low = 0;
}

static DAT_RETURN ks_comps(struct ks_adapter *a)
{
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_UPCALL_OBJECT upcall;
	struct ks_comp *comp;

	a->ncomps = min_t(unsigned int, num_online_cpus(), KS_COMPS);
	for (comp = a->comps; comp < a->comps + a->ncomps; comp++) {
		comp->a = a;
		upcall.instance_data = comp;
		upcall.upcall_func = ks_comp_upcall;
		ret = dat_evd_kcreate(a->k.ia, KS_EVD_QLEN, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
				      DAT_EVD_DTO_FLAG, &comp->evd);
		if (ret == DAT_SUCCESS)
			ret = kdat_evd_set_vector(comp->evd, comp - a->comps);
		if (ret != DAT_SUCCESS)
			break;
	}
	return ret;
}

/* An adapter was opened. Context: process. */
static DAT_RETURN ks_open(KDAT_ADAPTER *adapter, DAT_PVOID context)
{
	struct ks_adapter *a = container_of(adapter, struct ks_adapter, k);
	const DAT_IA_ATTR *ia = &adapter->attr;
	DAT_RETURN ret;

	a->invalidate = adapter->provider.fmr_supported == DAT_TRUE;
	a->max_iov = clamp(ia->max_iov_segments_per_rdma_write, 1, KS_IOV);
	a->max_read_iov = clamp(ia->max_iov_segments_per_rdma_read, 1, KS_IOV);
	a->max_reads = clamp(ia->max_rdma_read_per_ep_out, 1, KS_READS_OUT);
	/* Over iWARP kDAPL has memory for each request that may be a Read. */
	a->max_rdma = min_t(u64, ia->max_rdma_size, adapter->iwarp ? SZ_64K : SZ_16M);
	mutex_init(&a->mutex);
	INIT_LIST_HEAD(&a->conns);
	ks_txs_init(a);
	INIT_DELAYED_WORK(&a->tick, ks_tick);
	ret = ks_comps(a);
	if (ret == DAT_SUCCESS)
		queue_delayed_work(ks_wq, &a->tick, HZ);
	return ret;
}

/* The adapter is about to be closed. Context: process. */
static void ks_close(KDAT_ADAPTER *adapter)
{
	struct ks_adapter *a = container_of(adapter, struct ks_adapter, k);
	unsigned int i;

	cancel_delayed_work_sync(&a->tick);
	for (i = 0; i < a->ncomps; i++)
		if (a->comps[i].evd)
			dat_evd_free(a->comps[i].evd);
	ks_txs_free(a);
}

const KDAT_SERVER_ATTR ks_server_attr = {
	.owner = THIS_MODULE,
	.name = KBUILD_MODNAME,
	.adapter_size = sizeof(struct ks_adapter),
	.cm_qlen = KS_EVD_QLEN,
	.cr_qlen = KS_PENDING,
	.buffer_length = KS_INLINE,
	.size = ks_size,
	.open = ks_open,
	.close = ks_close,
	.request = ks_request,
	.event = ks_conn_event,
	.async = ks_async,
};
