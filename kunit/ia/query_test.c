// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queries (contract I4, L5): attributes compared with those of the device, the
 * masks of all queries, and the names of all returns.
 */
#include <linux/in.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/sizes.h>
#include <dat/kdat_linux.h>
#include "device.h"

/* ---- Attributes ------------------------------------------------------------------ */

struct truth {
	struct ib_device *dev;
	struct ib_port_attr port;
	DAT_IA_ATTR ia;
	DAT_PROVIDER_ATTR prov;
};

static struct truth *ask(struct kunit *test, struct kd_side *s)
{
	struct truth *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->dev = kd_device(test, s->name);
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(t->dev, 1, &t->port));
	/* Members that the call does not fill in keep this pattern. */
	memset(&t->ia, 0xa5, sizeof(t->ia));
	memset(&t->prov, 0xa5, sizeof(t->prov));
	KD_ASSERT_OK(test, dat_ia_query(s->ia, NULL, DAT_IA_FIELD_ALL, &t->ia,
					DAT_PROVIDER_FIELD_ALL, &t->prov));
	return t;
}

static int count(u64 value)
{
	return min_t(u64, value, INT_MAX);
}

/* What a device lacks has a name. */
static void check_lacks(struct kunit *test, struct kd_side *s, const DAT_IA_ATTR *ia)
{
	if (!kd_has(s, KD_ANY_READ)) {
		KUNIT_EXPECT_EQ(test, ia->num_vendor_attr, 0);
		KUNIT_EXPECT_NULL(test, ia->vendor_attr);
		return;
	}
	KUNIT_ASSERT_EQ(test, ia->num_vendor_attr, 2);
	KUNIT_EXPECT_STREQ(test, ia->vendor_attr[0].name, KDAT_ATTR_READ_PRIVILEGE);
	KUNIT_EXPECT_STREQ(test, ia->vendor_attr[0].value, "ignored");
	KUNIT_EXPECT_STREQ(test, ia->vendor_attr[1].name, KDAT_ATTR_GATHER_FMR_PAGES);
	KUNIT_EXPECT_STREQ(test, ia->vendor_attr[1].value, "last segment");
}

static void ia_attributes(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct truth *t = ask(test, s);
	struct ib_device_attr *d = &t->dev->attrs;
	DAT_IA_ATTR *ia = &t->ia;
	/* With a registered sink, a Read is limited and two requests. */
	bool sinks = kd_has(s, KD_IWARP) && !kd_has(s, KD_ANY_SINK);
	char vendor[16];

	snprintf(vendor, sizeof(vendor), "0x%06x", d->vendor_id);
	KUNIT_EXPECT_STREQ(test, ia->adapter_name, dev_name(&t->dev->dev));
	KUNIT_EXPECT_STREQ(test, ia->vendor_name, vendor);
	KUNIT_EXPECT_EQ(test, ia->hardware_version_major, d->hw_ver);
	KUNIT_EXPECT_EQ(test, ia->hardware_version_minor, 0);
	KUNIT_EXPECT_EQ(test, ia->firmware_version_major,
			upper_32_bits(d->fw_ver));
	KUNIT_EXPECT_EQ(test, ia->firmware_version_minor,
			lower_32_bits(d->fw_ver));
	KUNIT_EXPECT_EQ(test, ia->max_eps, count(d->max_qp));
	/* A CQ has to hold the completions, too. */
	KUNIT_EXPECT_EQ(test, ia->max_dto_per_ep,
			min(count(d->max_qp_wr), d->max_cqe) / (sinks ? 2 : 1));
	KUNIT_EXPECT_EQ(test, ia->max_rdma_read_per_ep_in,
			min(d->max_qp_rd_atom, U8_MAX));
	KUNIT_EXPECT_EQ(test, ia->max_rdma_read_per_ep_out,
			min(d->max_qp_init_rd_atom, U8_MAX));
	KUNIT_EXPECT_EQ(test, ia->max_evds, count(d->max_cq));
	KUNIT_EXPECT_GT(test, ia->max_evd_qlen, 0);
	KUNIT_EXPECT_LE(test, ia->max_evd_qlen, d->max_cqe);
	KUNIT_EXPECT_LE(test, ia->max_iov_segments_per_dto,
			min3(d->max_send_sge, d->max_recv_sge, d->max_srq_sge));
	KUNIT_EXPECT_GE(test, ia->max_iov_segments_per_dto, 4);
	KUNIT_EXPECT_LE(test, ia->max_lmrs, count(d->max_mr));
	KUNIT_EXPECT_EQ(test, ia->max_pzs, count(d->max_pd));
	KUNIT_EXPECT_EQ(test, ia->max_message_size, t->port.max_msg_sz);
	KUNIT_EXPECT_EQ(test, ia->max_rdma_size, sinks ?
			(d->max_fast_reg_page_list_len - 1) * PAGE_SIZE :
			t->port.max_msg_sz);
	KUNIT_EXPECT_LE(test, ia->max_rmrs, count(d->max_mr));
	KUNIT_EXPECT_EQ(test, ia->max_srqs, count(d->max_srq));
	KUNIT_EXPECT_EQ(test, ia->max_ep_per_srq, count(d->max_qp));
	KUNIT_EXPECT_EQ(test, ia->max_recv_per_srq, count(d->max_srq_wr));
	KUNIT_EXPECT_EQ(test, ia->max_rdma_read_in, count(d->max_res_rd_atom));
	KUNIT_EXPECT_EQ(test, ia->max_rdma_read_out, count(d->max_res_rd_atom));
	KUNIT_EXPECT_EQ(test, (int)ia->max_rdma_read_per_ep_in_guaranteed,
			DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)ia->max_rdma_read_per_ep_out_guaranteed,
			DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)ia->zb_supported, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)ia->reserved_lmr_supported, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, ia->max_lmr_virtual_address, U64_MAX);
	KUNIT_EXPECT_EQ(test, ia->max_rmr_target_address, U64_MAX);
	KUNIT_EXPECT_EQ(test, ia->num_transport_attr, 0);
	KUNIT_EXPECT_NULL(test, ia->transport_attr);
	check_lacks(test, s, ia);
}

/* The limits can be reached, and cannot be exceeded. */
static void limits_are_real(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_IA_ATTR *ia = &ask(test, s)->ia;
	DAT_EP_ATTR attr = kd_ep_attr(), bad;
	struct kd_side *peer;
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;
	int i;

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	attr.max_message_size = ia->max_message_size;
	attr.max_rdma_size = ia->max_rdma_size;
	attr.max_recv_iov = ia->max_iov_segments_per_dto;
	attr.max_request_iov = ia->max_iov_segments_per_dto;
	attr.max_rdma_read_in = ia->max_rdma_read_per_ep_in;
	attr.max_rdma_read_out = ia->max_rdma_read_per_ep_out;
	attr.max_rdma_read_iov = ia->max_iov_segments_per_rdma_read;
	attr.max_rdma_write_iov = ia->max_iov_segments_per_rdma_write;
	s->ep = kd_ep(s, &attr);
	for (i = 0; i < 10; i++) {
		bad = attr;
		/* Some devices know no limit. */
		if (i < 2 && attr.max_message_size == U32_MAX)
			continue;
		bad.max_message_size += i == 0;
		bad.max_rdma_size += i == 1;
		bad.max_recv_iov += i == 2;
		bad.max_request_iov += i == 3;
		bad.max_rdma_read_in += i == 4;
		bad.max_rdma_read_out += i == 5;
		bad.max_rdma_read_iov += i == 6;
		bad.max_rdma_write_iov += i == 7;
		if (i == 8)
			bad.max_recv_dtos = ia->max_dto_per_ep + 1;
		if (i == 9)
			bad.max_request_dtos = ia->max_dto_per_ep + 1;
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_INVALID_PARAMETER,
				    (u32)DAT_GET_TYPE(dat_ep_create(s->ia, s->pz,
						s->recv_evd, s->req_evd,
						s->conn_evd, &bad, &ep)),
				    "attribute %d", i);
	}
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      dat_evd_kcreate(s->ia, ia->max_evd_qlen + 1,
				      DAT_UPCALL_DISABLE, NULL,
				      DAT_EVD_DTO_FLAG, &evd));
	/* An EP with these attributes can be connected. */
	peer = kd_open_param(test);
	kd_setup(peer, &(struct kd_opts) { .attr = &attr });
	kd_connect_pair(s, peer);
}

static void provider_attributes(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct truth *t = ask(test, s);
	DAT_PROVIDER_ATTR *p = &t->prov;
	int i, j;

	KUNIT_EXPECT_STREQ(test, p->provider_name, "kdapl");
	KUNIT_EXPECT_EQ(test, p->provider_version_major, 1);
	KUNIT_EXPECT_EQ(test, p->provider_version_minor, 0);
	KUNIT_EXPECT_EQ(test, p->dapl_version_major, DAT_VERSION_MAJOR);
	KUNIT_EXPECT_EQ(test, p->dapl_version_minor, DAT_VERSION_MINOR);
	KUNIT_EXPECT_EQ(test, (int)p->lmr_mem_types_supported,
			DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR |
			DAT_MEM_TYPE_PHYSICAL | DAT_MEM_TYPE_PLATFORM |
			DAT_MEM_TYPE_IA | DAT_MEM_TYPE_PHYSICAL_VAR_PAGES);
	KUNIT_EXPECT_EQ(test, (int)p->iov_ownership_on_return,
			DAT_IOV_CONSUMER);
	KUNIT_EXPECT_EQ(test, (int)p->dat_qos_supported, 0xf);
	KUNIT_EXPECT_EQ(test, (int)p->completion_flags_supported,
			DAT_COMPLETION_SUPPRESS_FLAG |
			DAT_COMPLETION_SOLICITED_WAIT_FLAG |
			DAT_COMPLETION_UNSIGNALLED_FLAG |
			DAT_COMPLETION_BARRIER_FENCE_FLAG |
			DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG);
	KUNIT_EXPECT_EQ(test, (int)p->is_thread_safe, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, p->max_private_data_size,
			kd_is_iwarp(s) ? 251 : 56);
	KUNIT_EXPECT_EQ(test, (int)p->supports_multipath, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)p->ep_creator, DAT_PSP_CREATES_EP_IFASKED);
	KUNIT_EXPECT_EQ(test, (int)p->upcall_policy, DAT_UPCALL_MANY);
	KUNIT_EXPECT_EQ(test, p->optimal_buffer_alignment,
			DAT_OPTIMAL_ALIGNMENT);
	for (i = 0; i < DAT_EVD_STREAMS; i++)
		for (j = 0; j < DAT_EVD_STREAMS; j++)
			KUNIT_EXPECT_EQ(test, DAT_TRUE, (int)
					p->evd_stream_merging_supported[i][j]);
	KUNIT_EXPECT_EQ(test, (int)p->srq_supported, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, p->srq_watermarks_supported, 0x111);
	KUNIT_EXPECT_EQ(test, p->srq_info_supported, 0x11);
	KUNIT_EXPECT_EQ(test, p->ep_recv_info_supported, 0x11);
	KUNIT_EXPECT_EQ(test, (int)p->lmr_sync_req, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)p->dto_async_return_guaranteed, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)p->rdma_write_for_rdma_read_req, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)p->rdma_read_lmr_rmr_context_exposure,
			DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)p->rmr_scope_supported, DAT_RMR_SCOPE_ANY);
	KUNIT_EXPECT_EQ(test, (int)p->is_interrupt_safe, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)p->fmr_supported, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)p->lmr_for_fmr_scope_supported,
			DAT_LMR_SCOPE_ANY);
	KUNIT_EXPECT_EQ(test, (int)p->ha_supported, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, p->ha_loadbalancing, DAT_HA_LB_NONE);
}

/* The provider's attributes name what kDAPL does because the device does not. */
static void quirks_are_named(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_PROVIDER_ATTR *prov = &ask(test, s)->prov;
	const char *want = kd_has(s, KD_ANY_WAKES) ? "solicited-messages" :
			   kd_has(s, KD_FORGETS) ? "lost-buffers" : NULL;
	DAT_COUNT i;

	for (i = 0; i < prov->num_provider_specific_attr; i++) {
		const DAT_NAMED_ATTR *attr = &prov->provider_specific_attr[i];

		KUNIT_ASSERT_NOT_NULL(test, attr->name);
		KUNIT_ASSERT_NOT_NULL(test, attr->value);
	}
	KUNIT_EXPECT_TRUE_MSG(test, !want || kd_has_quirk(prov, want), "%s", want);
	/* The traits of an adapter of the user's are not known. */
	if (kd_is_own())
		return;
	/* That of a driver that is mended is not named. */
	KUNIT_EXPECT_TRUE(test, kd_has(s, KD_FORGETS) == kd_has_quirk(prov, "lost-buffers") ||
			  kd_has(s, KD_SIMULATED));
	KUNIT_EXPECT_EQ(test, kd_has(s, KD_ANY_WAKES), kd_has_quirk(prov, "solicited-messages"));
	KUNIT_EXPECT_EQ(test, prov->srq_ep_pz_difference_supported == DAT_FALSE,
			kd_has(s, KD_FORGETS));
}

/* The attribute srq_ep_pz_difference_supported tells the truth. */
static void srq_of_another_pz(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_PROVIDER_ATTR *prov = &ask(test, s)->prov;
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_EP_HANDLE ep;
	DAT_PZ_HANDLE pz;

	kd_setup(s, &(struct kd_opts) { .srq_len = 8 });
	KD_ASSERT_OK(test, dat_pz_create(s->ia, &pz));
	KD_EXPECT_RET(test, prov->srq_ep_pz_difference_supported ?
		      DAT_SUCCESS : DAT_INVALID_PARAMETER,
		      dat_ep_create_with_srq(s->ia, pz, s->recv_evd, s->req_evd,
					     s->conn_evd, s->srq, &attr, &ep));
}

/*
 * If a device cannot register memory by work requests, calls that need this
 * fail with DAT_MODEL_NOT_SUPPORTED and others work. (kdapl.ko queries the
 * attributes when the device appears.)
 */
static void I4_device_without_registration(struct kunit *test)
{
	const DAT_MEM_PRIV_FLAGS local = DAT_MEM_PRIV_LOCAL_READ_FLAG |
					 DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	struct kd_side *s = kd_open_param(test);
	struct truth *t = ask(test, s);
	u64 caps = t->dev->attrs.device_cap_flags;
	DAT_REGION_DESCRIPTION desc;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT rkey;
	DAT_RETURN ret[4];
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;

	kd_skip_own(test, "changes the adapter for all of its users");
	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	desc.for_va = s->buf->va;
	t->dev->attrs.device_cap_flags &= ~IB_DEVICE_MEM_MGT_EXTENSIONS;
	ret[0] = dat_rmr_create(s->pz, &rmr);
	ret[1] = dat_lmr_allocate(s->ia, s->pz, 1, DAT_LMR_SCOPE_PZ, &lmr);
	ret[2] = dat_lmr_kcreate(s->ia, DAT_MEM_TYPE_VIRTUAL, desc, 64, s->pz,
				 DAT_MEM_PRIV_ALL_FLAG, 0, 0, &lmr, &context,
				 &rkey, NULL, NULL);
	ret[3] = dat_lmr_kcreate(s->ia, DAT_MEM_TYPE_VIRTUAL, desc, 64, s->pz,
				 local, 0, 0, &lmr, &context, &rkey, NULL,
				 NULL);
	t->dev->attrs.device_cap_flags = caps;
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED, ret[0]);
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED, ret[1]);
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED, ret[2]);
	KD_EXPECT_OK(test, ret[3]);
}

/* ---- Masks ------------------------------------------------------------------------ */

#define BAD_MASK	DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2)
#define BAD_PARAM	DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3)

/* The query for objects of the type that @handle has. */
static DAT_RETURN query(DAT_HANDLE handle, u64 mask, void *param)
{
	DAT_HANDLE_TYPE type;

	if (dat_get_handle_type(handle, &type) != DAT_SUCCESS)
		return DAT_ERROR(DAT_INVALID_HANDLE, 0);
	switch (type) {
	case DAT_HANDLE_TYPE_CR:
		return dat_cr_query(handle, mask, param);
	case DAT_HANDLE_TYPE_PSP:
		return dat_psp_query(handle, mask, param);
	case DAT_HANDLE_TYPE_RSP:
		return dat_rsp_query(handle, mask, param);
	case DAT_HANDLE_TYPE_CSP:
		return dat_csp_query(handle, mask, param);
	case DAT_HANDLE_TYPE_PZ:
		return dat_pz_query(handle, mask, param);
	case DAT_HANDLE_TYPE_EVD:
		return dat_evd_query(handle, mask, param);
	case DAT_HANDLE_TYPE_SRQ:
		return dat_srq_query(handle, mask, param);
	case DAT_HANDLE_TYPE_LMR:
		return dat_lmr_query(handle, mask, param);
	case DAT_HANDLE_TYPE_RMR:
		return dat_rmr_query(handle, mask, param);
	case DAT_HANDLE_TYPE_EP:
		return dat_ep_query(handle, mask, param);
	default:
		return DAT_ERROR(DAT_INVALID_HANDLE, 0);
	}
}

/*
 * A query refuses unknown bits of the mask and a NULL pointer; an empty mask is
 * legal.
 */
static void check_query(struct kunit *test, const char *what, DAT_HANDLE handle,
			u64 all)
{
	void *param = kunit_kzalloc(test, SZ_1K, GFP_KERNEL);
	u64 bit;

	KUNIT_ASSERT_NOT_NULL(test, param);
	KUNIT_EXPECT_EQ_MSG(test, query(handle, 0, param), DAT_SUCCESS, "%s",
			    what);
	KUNIT_EXPECT_EQ_MSG(test, query(handle, all, param), DAT_SUCCESS, "%s",
			    what);
	KUNIT_EXPECT_EQ_MSG(test, query(handle, all, NULL), BAD_PARAM, "%s",
			    what);
	for (bit = 1; bit < BIT(31); bit <<= 1) {
		KUNIT_EXPECT_EQ_MSG(test, query(handle, bit, param),
				    all & bit ? DAT_SUCCESS : BAD_MASK,
				    "%s, bit %#llx", what, bit);
		KUNIT_EXPECT_EQ_MSG(test, query(handle, bit, NULL),
				    all & bit ? BAD_PARAM : BAD_MASK,
				    "%s, bit %#llx, NULL", what, bit);
	}
}

static void masks(struct kunit *test)
{
	struct kd_side *a = kd_open_param(test), *p = kd_open_param(test);
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(kd_port()),
	};
	DAT_COMM comm = { AF_INET, SOCK_STREAM, 0 };
	DAT_EP_HANDLE reserved;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CSP_HANDLE csp;
	DAT_RMR_HANDLE rmr;
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	kd_setup(a, NULL);
	kd_setup(p, &(struct kd_opts) { .srq_len = 8 });
	psp = kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	reserved = kd_ep(p, NULL);
	KD_ASSERT_OK(test, dat_rsp_create(p->ia, kd_port(), reserved, p->cr_evd,
					  &rsp));
	KD_ASSERT_OK(test, dat_csp_create(p->ia, &comm, (void *)&at,
					  p->cr_evd, &csp));
	KD_ASSERT_OK(test, dat_rmr_create(p->pz, &rmr));
	kd_connect_start(a, p, port);
	cr = kd_expect_cr(p);
	check_query(test, "CR", cr, DAT_CR_FIELD_ALL);
	check_query(test, "PSP", psp, DAT_PSP_FIELD_ALL);
	check_query(test, "RSP", rsp, DAT_RSP_FIELD_ALL);
	check_query(test, "CSP", csp, DAT_CSP_FIELD_ALL);
	check_query(test, "PZ", p->pz, DAT_PZ_FIELD_ALL);
	check_query(test, "EVD", p->cr_evd, DAT_EVD_FIELD_ALL);
	check_query(test, "SRQ", p->srq, DAT_SRQ_FIELD_ALL);
	check_query(test, "LMR", p->buf->lmr, DAT_LMR_FIELD_ALL);
	check_query(test, "RMR", rmr, DAT_RMR_FIELD_ALL);
	check_query(test, "EP", p->ep, DAT_EP_FIELD_ALL);
}

static void ia_masks(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct truth *t = ask(test, s);
	DAT_EVD_HANDLE evd = NULL;
	int bit;

	for (bit = 0; bit < 64; bit++) {
		KUNIT_EXPECT_EQ_MSG(test,
				    dat_ia_query(s->ia, NULL, BIT_ULL(bit),
						 &t->ia, 0, NULL),
				    BIT_ULL(bit) & DAT_IA_FIELD_ALL ?
				    DAT_SUCCESS : BAD_PARAM, "bit %d", bit);
		KUNIT_EXPECT_EQ_MSG(test,
				    dat_ia_query(s->ia, NULL, 0, NULL,
						 BIT_ULL(bit), &t->prov),
				    BIT_ULL(bit) & DAT_PROVIDER_FIELD_ALL ?
				    DAT_SUCCESS :
				    DAT_ERROR(DAT_INVALID_PARAMETER,
					      DAT_INVALID_ARG5), "bit %d", bit);
	}
	KD_EXPECT_OK(test, dat_ia_query(s->ia, &evd, 0, NULL, 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, evd, s->async_evd);
	KUNIT_EXPECT_EQ(test, dat_ia_query(s->ia, NULL, 1, NULL, 0, NULL),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
	KUNIT_EXPECT_EQ(test, dat_ia_query(s->ia, NULL, 0, NULL, 1, NULL),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
}

/* ---- Names of returns -------------------------------------------------------------- */

static const u32 types[] = {
	DAT_SUCCESS, DAT_ABORT, DAT_CONN_QUAL_IN_USE,
	DAT_INSUFFICIENT_RESOURCES, DAT_INTERNAL_ERROR, DAT_INVALID_HANDLE,
	DAT_INVALID_PARAMETER, DAT_INVALID_STATE, DAT_LENGTH_ERROR,
	DAT_MODEL_NOT_SUPPORTED, DAT_PROVIDER_NOT_FOUND,
	DAT_PRIVILEGES_VIOLATION, DAT_PROTECTION_VIOLATION, DAT_QUEUE_EMPTY,
	DAT_QUEUE_FULL, DAT_TIMEOUT_EXPIRED, DAT_PROVIDER_ALREADY_REGISTERED,
	DAT_PROVIDER_IN_USE, DAT_INVALID_ADDRESS, DAT_INTERRUPTED_CALL,
	DAT_CONN_QUAL_UNAVAILABLE, DAT_RESERVED_LMR, DAT_PORT_IN_USE,
	DAT_COMM_NOT_SUPPORTED, DAT_NOT_IMPLEMENTED
};

static bool is_type(u32 type)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i] == type)
			return true;
	return false;
}

/*
 * Every type and every subtype of DAT_RETURN has a name of its own; other
 * numbers have none.
 */
static void I4_strerror(struct kunit *test)
{
	const char *names[DAT_THREAD_SAFETY_NOT_FOUND + 1];
	const char *major, *minor, *before = "";
	u32 type, sub, i;

	for (sub = 0; sub <= DAT_THREAD_SAFETY_NOT_FOUND; sub++) {
		KD_ASSERT_OK(test, dat_strerror(DAT_ERROR(DAT_ABORT, sub),
						&major, &minor));
		KUNIT_EXPECT_STREQ(test, major, "DAT_ABORT");
		KUNIT_EXPECT_EQ(test, 0, strncmp(minor, "DAT_", 4));
		names[sub] = minor;
		for (i = 0; i < sub; i++)
			KUNIT_EXPECT_STRNEQ(test, names[i], minor);
	}
	KUNIT_EXPECT_STREQ(test, names[DAT_INVALID_STATE_SRQ_IN_USE],
			   "DAT_INVALID_STATE_SRQ_IN_USE");
	KUNIT_EXPECT_STREQ(test, names[DAT_INVALID_ARG10], "DAT_INVALID_ARG10");
	KUNIT_EXPECT_STREQ(test, names[DAT_THREAD_SAFETY_NOT_FOUND],
			   "DAT_THREAD_SAFETY_NOT_FOUND");
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_strerror(DAT_ERROR(DAT_ABORT,
					     DAT_THREAD_SAFETY_NOT_FOUND + 1),
				   &major, &minor));
	for (type = 0; type <= DAT_TYPE_MASK; type += 0x10000) {
		if (!is_type(type)) {
			KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
				      dat_strerror(DAT_ERROR(type, 0), &major,
						   &minor));
			continue;
		}
		KD_EXPECT_OK(test, dat_strerror(DAT_ERROR(type, 0), &major,
						&minor));
		KUNIT_EXPECT_EQ(test, 0, strncmp(major, "DAT_", 4));
		KUNIT_EXPECT_STRNEQ(test, major, before);
		before = major;
	}
}

static struct kunit_case query_cases[] = {
	KUNIT_CASE_PARAM(ia_attributes, kd_gen_ia),
	KUNIT_CASE_PARAM(limits_are_real, kd_gen_ia),
	KUNIT_CASE_PARAM(provider_attributes, kd_gen_ia),
	KUNIT_CASE_PARAM(srq_of_another_pz, kd_gen_ia),
	KUNIT_CASE_PARAM(quirks_are_named, kd_gen_ia),
	KUNIT_CASE_PARAM(I4_device_without_registration, kd_gen_ia),
	KUNIT_CASE_PARAM(masks, kd_gen_ia),
	KUNIT_CASE_PARAM(ia_masks, kd_gen_ia),
	KUNIT_CASE(I4_strerror),
	{}
};

KD_SUITE("kdapl-query", query_cases, "attributes, masks, names");
