// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The limits and abilities of a device in DAT's terms: IA and provider
 * attributes. And what a call is told that breaks a rule for its attributes.
 *
 * The limits come from hca->attrs, the copy of the device's attributes, so they
 * can be queried after the device has left. Only kdapl_ia_wants_read_key()
 * needs the device to be present. No function takes a lock; all may be called
 * in any context.
 */
#include <dat/kdat_linux.h>
#include "addr.h"
#include "ia.h"
#include "trace.h"

/* Return @value as a DAT_COUNT, which is signed. */
static DAT_COUNT kdapl_count(u64 value)
{
	return min_t(u64, value, INT_MAX);
}

/*
 * Return the length in bytes of the longest LMR that can be registered, if it begins at a
 * page boundary: otherwise it has one page more. An LMR that needs no registration may be
 * longer.
 */
u32 kdapl_max_lmr_block(struct kdapl_ia *ia)
{
	u64 pages = ia->hca->attrs.max_fast_reg_page_list_len;

	/* Without registration an LMR must be one range for the device. */
	if (!kdapl_can_register(&ia->hca->attrs))
		return U32_MAX & PAGE_MASK;
	return min_t(u64, pages * PAGE_SIZE, U32_MAX & PAGE_MASK);
}

/* Limit @max, in bytes, to the longest RDMA Read whose sink can be registered. */
static u32 kdapl_ia_max_read(struct kdapl_ia *ia, u32 max)
{
	u64 pages = ia->hca->attrs.max_fast_reg_page_list_len;

	/* A sink that does not begin at a page boundary has one page more. */
	return ia->reads_to_key ? min_t(u64, max, (pages - 1) * PAGE_SIZE) :
				  max;
}

/* Fill in @attr with the attributes of @ia. */
void kdapl_ia_attr(struct kdapl_ia *ia, DAT_IA_ATTR *attr)
{
	const struct ib_device_attr *max = &ia->hca->attrs;
	u32 msg = ia->max_msg;

	memset(attr, 0, sizeof(*attr));
	BUILD_BUG_ON(sizeof(attr->adapter_name) < IB_DEVICE_NAME_MAX);
	kdapl_hca_name(ia->hca, attr->adapter_name);
	snprintf(attr->vendor_name, sizeof(attr->vendor_name), "0x%06x",
		 max->vendor_id);
	attr->hardware_version_major = max->hw_ver;
	attr->firmware_version_major = max->fw_ver >> 32;
	attr->firmware_version_minor = (u32)max->fw_ver;
	attr->ia_address_ptr = kdapl_addr_ptr(&ia->first_addr);
	attr->max_eps = kdapl_count(max->max_qp);
	/* A CQ must have room for the completions of all posted requests and receives. */
	attr->max_dto_per_ep = kdapl_count(min(max->max_qp_wr, max->max_cqe));
	/* Any request may be an RDMA Read that takes two work requests. */
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
	attr->max_rdma_size = kdapl_ia_max_read(ia, msg);
	/* An RMR has two MRs, see mem_rmr.c. */
	attr->max_rmrs = kdapl_can_register(&ia->hca->attrs) ? attr->max_lmrs / 2 : 0;
	attr->max_rmr_target_address = U64_MAX;
	attr->max_srqs = kdapl_count(max->max_srq);
	attr->max_ep_per_srq = max->max_srq ? attr->max_eps : 0;
	attr->max_recv_per_srq = kdapl_count(max->max_srq_wr);
	/* The iWARP protocol reads into one segment. */
	attr->max_iov_segments_per_rdma_read =
		ia->iwarp ? 1 :
		min_t(u32, max->max_sge_rd ?: 1,
		      attr->max_iov_segments_per_dto);
	attr->max_iov_segments_per_rdma_write = attr->max_iov_segments_per_dto;
	attr->max_rdma_read_in = kdapl_count(max->max_res_rd_atom);
	attr->max_rdma_read_out = attr->max_rdma_read_in;
	attr->max_rdma_read_per_ep_in_guaranteed = DAT_FALSE;
	attr->max_rdma_read_per_ep_out_guaranteed = DAT_FALSE;
	attr->num_vendor_attr = ia->hca->nvendor_attrs;
	attr->vendor_attr = ia->hca->nvendor_attrs ? ia->hca->vendor_attrs : NULL;
	attr->zb_supported = DAT_TRUE;
	attr->reserved_lmr_supported = DAT_TRUE;
}

/* Return how many bytes of private data a connection request may have. */
DAT_COUNT kdapl_max_private_data(struct kdapl_ia *ia)
{
	/*
	 * An InfiniBand CM request carries 92 bytes, 36 of which rdma_cm uses. Over iWARP
	 * the limit is the length field of rdma_conn_param, in which drivers include four
	 * bytes that MPA version 2 prepends.
	 */
	return ia->iwarp ? U8_MAX - 4 : 56;
}

/* Fill in @attr with the provider's attributes for the device of @ia. */
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
		kdapl_has_quirk(ia->hca, KDAPL_QUIRK_SRQ_ONE_PZ) ? DAT_FALSE : DAT_TRUE;
	attr->srq_info_supported = DAT_SRQ_INFO_AVAILABLE |
				   DAT_SRQ_INFO_OUTSTANDING;
	attr->ep_recv_info_supported = DAT_EP_RECV_INFO_NBUFS |
				       DAT_EP_RECV_INFO_SPAN;
	attr->lmr_sync_req = ia->hca->dma_syncs ? DAT_TRUE : DAT_FALSE;
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
	attr->num_provider_specific_attr = ia->hca->nquirk_attrs;
	attr->provider_specific_attr = ia->hca->nquirk_attrs ? ia->hca->quirk_attrs : NULL;
}

/* Return whether @comm names a transport that rdma_cm offers: TCP over IP. */
bool kdapl_comm_valid(const DAT_COMM *comm)
{
	return (comm->domain == AF_INET || comm->domain == AF_INET6) &&
	       comm->type == SOCK_STREAM &&
	       (comm->protocol == 0 || comm->protocol == IPPROTO_TCP);
}

/*
 * Does the device of @ia read only into memory that is registered for writing by the
 * peer, see dto_sink.c? The device is present: its driver's id tells.
 */
bool kdapl_ia_wants_read_key(struct kdapl_ia *ia)
{
	return ia->iwarp &&
	       ia->hca->dev->ops.driver_id != RDMA_DRIVER_SIW &&
	       kdapl_can_register(&ia->hca->attrs);
}

/* Trace the first rule that is not obeyed, and return whether there is none; @ia may be NULL. */
bool kdapl_rules_obeyed(const struct kdapl_ia *ia, const struct kdapl_rule *rules, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (rules[i].ok)
			continue;
		trace_kdapl_refused(ia, rules[i].name, rules[i].value, 0, rules[i].says);
		return false;
	}
	return true;
}
