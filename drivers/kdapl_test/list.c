// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The adapters there are, what they can, and what kDAPL does for them. */
#include <linux/slab.h>
#include "kdapl_test.h"

#define KT_IAS	64

static const char *kt_yes(DAT_BOOLEAN value)
{
	return value == DAT_TRUE ? "yes" : "no";
}

static void kt_list_named(struct kt_session *s, const char *what,
			  const DAT_NAMED_ATTR *attr, DAT_COUNT n)
{
	DAT_COUNT i;

	for (i = 0; i < n; i++)
		kt_say(s, "%s %s: %s\n", what, attr[i].name, attr[i].value);
}

static void kt_list_attrs(struct kt_session *s, const DAT_IA_ATTR *ia,
			  const DAT_PROVIDER_ATTR *prov)
{
	kt_say(s, "adapter: %s, vendor %s\n", ia->adapter_name,
	       ia->vendor_name);
	kt_say(s, "firmware: %u.%u, hardware: %u.%u\n",
	       ia->firmware_version_major, ia->firmware_version_minor,
	       ia->hardware_version_major, ia->hardware_version_minor);
	if (ia->ia_address_ptr)
		kt_say(s, "address: %pISc\n", ia->ia_address_ptr);
	kt_say(s, "Endpoints: %d, requests or receives on each: %d, segments: %d\n",
	       ia->max_eps, ia->max_dto_per_ep, ia->max_iov_segments_per_dto);
	kt_say(s, "messages: %llu bytes, RDMA: %llu bytes\n",
	       (u64)ia->max_message_size, (u64)ia->max_rdma_size);
	kt_say(s, "RDMA Reads of an Endpoint: %d in, %d out, segments: %d\n",
	       ia->max_rdma_read_per_ep_in, ia->max_rdma_read_per_ep_out,
	       ia->max_iov_segments_per_rdma_read);
	kt_say(s, "EVDs: %d, events on each: %d\n", ia->max_evds,
	       ia->max_evd_qlen);
	kt_say(s, "PZs: %d, LMRs: %d of %llu bytes, RMRs: %d\n", ia->max_pzs,
	       ia->max_lmrs, (u64)ia->max_lmr_block_size, ia->max_rmrs);
	kt_say(s, "SRQs: %s, %d of %d buffers; of another PZ: %s\n",
	       kt_yes(prov->srq_supported), ia->max_srqs, ia->max_recv_per_srq,
	       kt_yes(prov->srq_ep_pz_difference_supported));
	kt_say(s, "fast registration: %s, reserved LMR: %s, zero-based: %s\n",
	       kt_yes(prov->fmr_supported), kt_yes(ia->reserved_lmr_supported),
	       kt_yes(ia->zb_supported));
	kt_say(s, "private data: %d bytes, sink of a Read shown to the peer: %s\n",
	       prov->max_private_data_size,
	       kt_yes(prov->rdma_read_lmr_rmr_context_exposure));
	kt_list_named(s, "transport", ia->transport_attr,
		      ia->num_transport_attr);
	kt_list_named(s, "vendor", ia->vendor_attr, ia->num_vendor_attr);
	kt_list_named(s, "worked around:", prov->provider_specific_attr,
		      prov->num_provider_specific_attr);
}

static void kt_list_one(struct kt_session *s, char *name)
{
	DAT_EVD_HANDLE async_evd = NULL;
	DAT_PROVIDER_ATTR *prov;
	DAT_IA_ATTR *attr;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;

	kt_say(s, "ia %s\n", name);
	ret = dat_ia_open(name, 8, &async_evd, &ia);
	if (ret != DAT_SUCCESS) {
		kt_say(s, "cannot be opened\n");
		return;
	}
	attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	prov = kzalloc(sizeof(*prov), GFP_KERNEL);
	if (attr && prov &&
	    dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, attr,
			 DAT_PROVIDER_FIELD_ALL, prov) == DAT_SUCCESS)
		kt_list_attrs(s, attr, prov);
	else
		kt_say(s, "does not say what it can\n");
	kt_ia_close(ia, name);
	kfree(prov);
	kfree(attr);
}

void kt_list(struct kt_session *s)
{
	DAT_PROVIDER_INFO *info = kcalloc(KT_IAS, sizeof(*info), GFP_KERNEL);
	DAT_PROVIDER_INFO **list = kcalloc(KT_IAS, sizeof(*list), GFP_KERNEL);
	DAT_COUNT i, n = 0;

	if (!info || !list) {
		kt_say(s, "error there is no memory\n");
		goto out;
	}
	for (i = 0; i < KT_IAS; i++)
		list[i] = &info[i];
	if (dat_registry_list_providers(KT_IAS, &n, list) != DAT_SUCCESS)
		n = 0;
	for (i = 0; i < n; i++)
		kt_list_one(s, info[i].ia_name);
	if (!n)
		kt_say(s, "error there is no RDMA device\n");
out:
	kfree(list);
	kfree(info);
}
