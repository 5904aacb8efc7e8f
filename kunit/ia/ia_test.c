// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interface Adapters and their registry (contract I1, I5, I6, N4, W8, L5).
 */
#include <linux/in.h>
#include <linux/module.h>
#include "device.h"

/* ---- Opening ------------------------------------------------------------- */

struct open_case {
	const char *desc;
	DAT_COUNT qlen;
	DAT_UINT32 major;
	DAT_UINT32 minor;
	DAT_BOOLEAN safety;
	DAT_RETURN_TYPE type;
	DAT_RETURN_SUBTYPE subtype;	/* DAT_NO_SUBTYPE: any */
};

static const struct open_case open_cases[] = {
	{ "I1 older major", 8, 1, 0, DAT_TRUE,
	  DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND },
	{ "I1 newer major", 8, 3, 0, DAT_TRUE,
	  DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND },
	{ "I1 newer minor", 8, 2, 1, DAT_TRUE,
	  DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND },
	{ "I1 unknown thread safety", 8, 2, 0, 2,
	  DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND },
	{ "no room for events", 0, 2, 0, DAT_TRUE,
	  DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE },
	{ "negative room", -1, 2, 0, DAT_TRUE,
	  DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE },
	{ "too much room", INT_MAX, 2, 0, DAT_TRUE,
	  DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE },
};

/* Return the device of the case: the name of its IA up to the slash. */
static const char *device(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;
	char *name = kunit_kstrdup(test, ia, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, name);
	*strchrnul(name, '/') = 0;
	return name;
}

/* No provider has such a version (contract I1), or room for so many events. */
static void I6_open_refuses(struct kunit *test)
{
	DAT_NAME_PTR name = (DAT_NAME_PTR)kd_open_param(test)->name;
	const struct open_case *c;
	DAT_EVD_HANDLE evd;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;

	for (c = open_cases; c < open_cases + ARRAY_SIZE(open_cases); c++) {
		evd = NULL;
		ret = dat_ia_openv(name, c->qlen, &evd, &ia, c->major,
				   c->minor, c->safety);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), (u32)c->type,
				    "%s", c->desc);
		if (c->subtype != DAT_NO_SUBTYPE)
			KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_SUBTYPE(ret),
					    (u32)c->subtype, "%s", c->desc);
	}
}

static void I6_open_refuses_null_pointers(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_NAME_PTR name = (DAT_NAME_PTR)s->name;
	DAT_EVD_HANDLE evd = NULL;
	DAT_IA_HANDLE ia;

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ia_open(NULL, 8, &evd, &ia));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ia_open(name, 8, NULL, &ia));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ia_open(name, 8, &evd, NULL));
}

/* A name must be exactly as dat_registry_list_providers() has it. */
static void I6_name_to_the_letter(struct kunit *test)
{
	static const char * const tails[] = {
		"/1\n", "/+1", "/01", "/", "/0", "/2", "/-1", "/1/", "/1x", "x/1",
	};
	const char *dev = device(test);
	DAT_EVD_HANDLE evd = NULL;
	DAT_IA_HANDLE ia;
	char name[64];
	int i;

	kd_open_param(test);
	for (i = 0; i < ARRAY_SIZE(tails); i++) {
		snprintf(name, sizeof(name), "%s%s", dev, tails[i]);
		KUNIT_EXPECT_EQ_MSG(test, dat_ia_open(name, 8, &evd, &ia),
				    DAT_ERROR(DAT_PROVIDER_NOT_FOUND,
					      DAT_NAME_NOT_REGISTERED),
				    "%s", name);
	}
	KD_EXPECT_RET(test, DAT_PROVIDER_NOT_FOUND,
		      dat_ia_open("", 8, &evd, &ia));
	KD_EXPECT_RET(test, DAT_PROVIDER_NOT_FOUND,
		      dat_ia_open("/1", 8, &evd, &ia));
}

static int related(struct kunit *test, const char *one, const char *other)
{
	DAT_HA_RELATIONSHIP answer = -1;

	KD_EXPECT_OK(test, dat_registry_providers_related((DAT_NAME_PTR)one,
							  (DAT_NAME_PTR)other,
							  &answer));
	return answer;
}

static void I6_bare_device_name(struct kunit *test)
{
	struct kd_side *full = kd_open_param(test);
	struct kd_side *bare = kd_open(test, device(test));

	KUNIT_EXPECT_EQ(test, related(test, full->name, bare->name),
			DAT_HA_TRUE);
}

static void consumer_brings_async_evd(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_EVD_HANDLE evd, other;
	DAT_IA_HANDLE ia = NULL;

	evd = kd_evd(s, DAT_EVD_ASYNC_FLAG, 8, DAT_UPCALL_DISABLE);
	KD_ASSERT_OK(test, dat_ia_open((DAT_NAME_PTR)s->name, 8, &evd, &ia));
	KD_EXPECT_OK(test, dat_ia_query(ia, &other, 0, NULL, 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, other, evd);
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_evd_free(evd));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KD_EXPECT_OK(test, dat_evd_free(evd));

	evd = kd_evd(s, DAT_EVD_DTO_FLAG, 8, DAT_UPCALL_DISABLE);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ia_open((DAT_NAME_PTR)s->name, 8, &evd, &ia));
}

/* ---- Registry ------------------------------------------------------------ */

#define MAX_IAS 16

static DAT_PROVIDER_INFO **make_list(struct kunit *test)
{
	DAT_PROVIDER_INFO **list, *info;
	int i;

	list = kunit_kcalloc(test, MAX_IAS, sizeof(*list), GFP_KERNEL);
	info = kunit_kcalloc(test, MAX_IAS, sizeof(*info), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, list);
	KUNIT_ASSERT_NOT_NULL(test, info);
	for (i = 0; i < MAX_IAS; i++)
		list[i] = info + i;
	return list;
}

static void I5_registry_lists_each_port(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_PROVIDER_INFO **list = make_list(test);
	unsigned int found = 0;
	DAT_COUNT n = 0;
	int i;

	KD_ASSERT_OK(test, dat_registry_list_providers(MAX_IAS, &n, list));
	KUNIT_ASSERT_LE(test, n, MAX_IAS);
	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_NOT_NULL(test, strchr(list[i]->ia_name, '/'));
		KUNIT_EXPECT_EQ(test, list[i]->dapl_version_major, 2);
		KUNIT_EXPECT_EQ(test, list[i]->dapl_version_minor, 0);
		KUNIT_EXPECT_EQ(test, (int)list[i]->is_thread_safe, DAT_TRUE);
		found += !strcmp(list[i]->ia_name, s->name);
	}
	KUNIT_EXPECT_EQ(test, found, 1);
}

static void I5_registry_list_too_short(struct kunit *test)
{
	DAT_PROVIDER_INFO **list = make_list(test);
	DAT_COUNT n = 0, again = 0;

	KD_ASSERT_OK(test, dat_registry_list_providers(MAX_IAS, &n, list));
	if (n < 1)
		kunit_skip(test, "no device");
	KD_EXPECT_OK(test, dat_registry_list_providers(n, &again, list));
	KUNIT_EXPECT_EQ(test, again, n);
	again = 0;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_registry_list_providers(n - 1, &again, list));
	KUNIT_EXPECT_EQ(test, again, n);
	again = 0;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_registry_list_providers(0, &again, NULL));
	KUNIT_EXPECT_EQ(test, again, n);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_registry_list_providers(-1, &again, list));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_registry_list_providers(MAX_IAS, NULL, list));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_registry_list_providers(MAX_IAS, &n, NULL));
}

static void I5_registry_related(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_NAME_PTR name = (DAT_NAME_PTR)s->name;
	DAT_PROVIDER_INFO **list = make_list(test);
	DAT_HA_RELATIONSHIP answer;
	DAT_COUNT n = 0;
	int i;

	KD_ASSERT_OK(test, dat_registry_list_providers(MAX_IAS, &n, list));
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, related(test, name, list[i]->ia_name),
				strcmp(name, list[i]->ia_name) ? DAT_HA_FALSE :
								 DAT_HA_TRUE);
	KD_EXPECT_RET(test, DAT_PROVIDER_NOT_FOUND,
		      dat_registry_providers_related(name, "nothing/1",
						     &answer));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_registry_providers_related(name, NULL, &answer));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_registry_providers_related(name, name, NULL));
}

/* ---- Attributes ---------------------------------------------------------- */

struct attrs {
	DAT_IA_ATTR ia;
	DAT_PROVIDER_ATTR prov;
};

static struct attrs *query_all(struct kunit *test, struct kd_side *s)
{
	struct attrs *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, a);
	KD_ASSERT_OK(test, dat_ia_query(s->ia, NULL, DAT_IA_FIELD_ALL, &a->ia,
					DAT_PROVIDER_FIELD_ALL, &a->prov));
	return a;
}

static void I6_ia_attributes(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_IA_ATTR *ia = &query_all(test, s)->ia;

	KUNIT_EXPECT_STREQ(test, ia->adapter_name, device(test));
	KUNIT_ASSERT_NOT_NULL(test, ia->ia_address_ptr);
	KUNIT_EXPECT_EQ(test, ia->ia_address_ptr->sa_family, AF_INET);
	KUNIT_EXPECT_GT(test, ia->max_eps, 0);
	KUNIT_EXPECT_GT(test, ia->max_dto_per_ep, 0);
	KUNIT_EXPECT_GT(test, ia->max_evd_qlen, 0);
	KUNIT_EXPECT_GT(test, ia->max_iov_segments_per_dto, 1);
	KUNIT_EXPECT_GT(test, ia->max_lmrs, 0);
	KUNIT_EXPECT_GT(test, ia->max_pzs, 0);
	KUNIT_EXPECT_GE(test, ia->max_message_size, SZ_1M);
	KUNIT_EXPECT_GE(test, ia->max_rdma_size, SZ_1M);
	KUNIT_EXPECT_GT(test, ia->max_rmrs, 0);
	KUNIT_EXPECT_GT(test, ia->max_srqs, 0);
	KUNIT_EXPECT_GT(test, ia->max_recv_per_srq, 0);
	KUNIT_EXPECT_GT(test, ia->max_rdma_read_per_ep_in, 0);
	KUNIT_EXPECT_GT(test, ia->max_rdma_read_per_ep_out, 0);
}

static void W8_watermark_attributes(struct kunit *test)
{
	DAT_PROVIDER_ATTR *prov = &query_all(test, kd_open_param(test))->prov;

	KUNIT_EXPECT_EQ(test, (int)prov->srq_supported, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, prov->srq_watermarks_supported, 0x111);
	KUNIT_EXPECT_EQ(test, prov->srq_info_supported, 0x11);
	KUNIT_EXPECT_EQ(test, prov->ep_recv_info_supported, 0x11);
}

static void N4_every_stream_may_be_merged(struct kunit *test)
{
	DAT_PROVIDER_ATTR *prov = &query_all(test, kd_open_param(test))->prov;
	int i, j;

	for (i = 0; i < DAT_EVD_STREAMS; i++)
		for (j = 0; j < DAT_EVD_STREAMS; j++)
			KUNIT_EXPECT_EQ_MSG(test, DAT_TRUE, (int)
					    prov->evd_stream_merging_supported[i][j],
					    "%d, %d", i, j);
}

static void C5_provider_attributes(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_PROVIDER_ATTR *prov = &query_all(test, s)->prov;

	KUNIT_EXPECT_EQ(test, prov->dapl_version_major, 2);
	KUNIT_EXPECT_EQ(test, prov->dapl_version_minor, 0);
	KUNIT_EXPECT_EQ(test, (int)prov->is_thread_safe, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)prov->is_interrupt_safe, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)prov->supports_multipath, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)prov->ep_creator,
			DAT_PSP_CREATES_EP_IFASKED);
	KUNIT_EXPECT_EQ(test, (int)prov->iov_ownership_on_return,
			DAT_IOV_CONSUMER);
	KUNIT_EXPECT_EQ(test, prov->lmr_mem_types_supported & DAT_MEM_TYPE_BYPASS,
			0);
	/* L5 */
	if (kd_is_iwarp(s))
		KUNIT_EXPECT_GT(test, prov->max_private_data_size, 56);
	else
		KUNIT_EXPECT_EQ(test, prov->max_private_data_size, 56);
}

static void query_refuses(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct attrs *a = query_all(test, s);
	DAT_EVD_HANDLE evd = NULL;

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ia_query(s->ia, NULL, DAT_IA_FIELD_ALL + 1, &a->ia, 0,
				   NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ia_query(s->ia, NULL, 0, NULL,
				   DAT_PROVIDER_FIELD_ALL + 1, &a->prov));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ia_query(s->ia, NULL, DAT_IA_FIELD_IA_MAX_EPS, NULL,
				   0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ia_query(s->ia, NULL, 0, NULL,
				   DAT_PROVIDER_FIELD_HA_LB, NULL));
	KD_EXPECT_OK(test, dat_ia_query(s->ia, &evd, 0, NULL, 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, evd, s->async_evd);
}

struct hint_case {
	const char *desc;
	DAT_MEM_TYPE type;
	DAT_VLEN len;
	DAT_MEM_OPTIMIZE_FLAGS opt;
	DAT_RETURN_TYPE want;
};

static const struct hint_case hint_cases[] = {
	{ "virtual", DAT_MEM_TYPE_VIRTUAL, 100, DAT_MEM_OPTIMIZE_DONT_CARE,
	  DAT_SUCCESS },
	{ "pages", DAT_MEM_TYPE_PHYSICAL, 8192, DAT_MEM_OPTIMIZE_IA,
	  DAT_SUCCESS },
	{ "bypass", DAT_MEM_TYPE_BYPASS, 100, DAT_MEM_OPTIMIZE_DONT_CARE,
	  DAT_MODEL_NOT_SUPPORTED },
	{ "unknown type", 0x200, 100, DAT_MEM_OPTIMIZE_DONT_CARE,
	  DAT_INVALID_PARAMETER },
	{ "unknown optimisation", DAT_MEM_TYPE_VIRTUAL, 100, 0x100,
	  DAT_INVALID_PARAMETER },
	{ "nothing", DAT_MEM_TYPE_VIRTUAL, 0, DAT_MEM_OPTIMIZE_DONT_CARE,
	  DAT_INVALID_PARAMETER },
	{ "too much", DAT_MEM_TYPE_VIRTUAL, ~0ULL, DAT_MEM_OPTIMIZE_DONT_CARE,
	  DAT_INVALID_PARAMETER },
};

static void L3_memtype_hint(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	const struct hint_case *c;
	DAT_VADDR align;
	DAT_VLEN len;
	DAT_RETURN ret;

	for (c = hint_cases; c < hint_cases + ARRAY_SIZE(hint_cases); c++) {
		len = 0;
		align = 0;
		ret = dat_ia_memtype_hint(s->ia, c->type, c->len, c->opt, &len,
					  &align);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), (u32)c->want,
				    "%s", c->desc);
		if (ret != DAT_SUCCESS)
			continue;
		KUNIT_EXPECT_GE_MSG(test, len, c->len, "%s", c->desc);
		KUNIT_EXPECT_GT_MSG(test, align, 0, "%s", c->desc);
	}
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ia_memtype_hint(s->ia, DAT_MEM_TYPE_VIRTUAL, 1,
					  DAT_MEM_OPTIMIZE_IA, NULL, &align));
}

/* ---- Several opens, closing ---------------------------------------------- */

static void I6_two_opens_are_independent(struct kunit *test)
{
	struct kd_side *a = kd_open_param(test);
	struct kd_side *b = kd_open_param(test);
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_EP_HANDLE ep;

	kd_setup(a, NULL);
	kd_setup(b, NULL);
	KUNIT_EXPECT_PTR_NE(test, a->ia, b->ia);
	KUNIT_EXPECT_PTR_NE(test, a->async_evd, b->async_evd);
	/*
	 * Objects of one IA handle cannot be used with another handle of the
	 * same IA.
	 */
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ep_create(a->ia, b->pz, a->recv_evd, a->req_evd,
				    a->conn_evd, &attr, &ep));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ep_create(a->ia, a->pz, b->recv_evd, a->req_evd,
				    a->conn_evd, &attr, &ep));
	kd_close(a);
	KD_EXPECT_OK(test, dat_ep_reset(b->ep));
}

static void I6_two_ias_at_once(struct kunit *test)
{
	struct kd_side *one = kd_open(test, kd_bed_at(0)->ia);
	struct kd_side *two = kd_open(test, kd_other_bed(kd_bed_at(0))->ia);
	u16 port = kd_port();

	kd_setup(one, NULL);
	kd_setup(two, NULL);
	/* N2: the same qualifier on both */
	kd_psp(one, port, DAT_PSP_CONSUMER_FLAG);
	kd_psp(two, port, DAT_PSP_CONSUMER_FLAG);
}

static struct kunit_case ia_cases[] = {
	KUNIT_CASE_PARAM(I6_open_refuses, kd_gen_ia),
	KUNIT_CASE_PARAM(I6_open_refuses_null_pointers, kd_gen_ia),
	KUNIT_CASE_PARAM(I6_name_to_the_letter, kd_gen_ia),
	KUNIT_CASE_PARAM(I6_bare_device_name, kd_gen_ia),
	KUNIT_CASE_PARAM(consumer_brings_async_evd, kd_gen_ia),
	KUNIT_CASE_PARAM(I5_registry_lists_each_port, kd_gen_ia),
	KUNIT_CASE(I5_registry_list_too_short),
	KUNIT_CASE_PARAM(I5_registry_related, kd_gen_ia),
	KUNIT_CASE_PARAM(I6_ia_attributes, kd_gen_ia),
	KUNIT_CASE_PARAM(W8_watermark_attributes, kd_gen_ia),
	KUNIT_CASE_PARAM(N4_every_stream_may_be_merged, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_provider_attributes, kd_gen_ia),
	KUNIT_CASE_PARAM(query_refuses, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_memtype_hint, kd_gen_ia),
	KUNIT_CASE_PARAM(I6_two_opens_are_independent, kd_gen_ia),
	KUNIT_CASE(I6_two_ias_at_once),
	{}
};

KD_SUITE("kdapl-ia", ia_cases, "Interface Adapters");
