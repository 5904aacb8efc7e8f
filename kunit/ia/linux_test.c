// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Small calls of <dat/kdat_linux.h>: the IA of an address, and the completion
 * vector of an EVD (contract I8).
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include "compat.h"
#include "device.h"

/* ---- The IA of an address ------------------------------------------------------- */

static void I8_ia_of_each_address(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_PROVIDER_ATTR *prov = kunit_kzalloc(test, sizeof(*prov), GFP_KERNEL);
	DAT_IA_ATTR *attr = kunit_kzalloc(test, sizeof(*attr), GFP_KERNEL);
	char *name = kunit_kzalloc(test, DAT_NAME_MAX_LENGTH, GFP_KERNEL);
	struct sockaddr_storage with_port;

	KUNIT_ASSERT_TRUE(test, prov && attr && name);
	KD_ASSERT_OK(test, dat_ia_query(s->ia, NULL, DAT_IA_FIELD_ALL, attr,
					DAT_PROVIDER_FIELD_ALL, prov));
	KD_ASSERT_OK(test, kdat_ia_find(attr->ia_address_ptr, name));
	KUNIT_EXPECT_STREQ(test, name, s->name);
	/* Somebody may listen on the port, and the port does not matter. */
	kd_setup(s, NULL);
	memcpy(&with_port, s->addr, sizeof(struct sockaddr_in));
	((struct sockaddr_in *)&with_port)->sin_port = htons(kd_port());
	kd_psp(s, ntohs(((struct sockaddr_in *)&with_port)->sin_port),
	       DAT_PSP_CONSUMER_FLAG);
	KD_ASSERT_OK(test, kdat_ia_find((struct sockaddr *)&with_port, name));
	KUNIT_EXPECT_STREQ(test, name, s->name);
}

static void I8_addresses_of_no_ia(struct kunit *test)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	char *name = kunit_kzalloc(test, DAT_NAME_MAX_LENGTH, GFP_KERNEL);
	struct sockaddr *addr = (struct sockaddr *)&in;

	KUNIT_ASSERT_NOT_NULL(test, name);
#define FIND(addr, name, type, subtype)					\
	KUNIT_EXPECT_EQ(test, kdat_ia_find(addr, name), DAT_ERROR(type, subtype))
	FIND(NULL, name, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	FIND(addr, NULL, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	FIND(addr, name, DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	FIND((struct sockaddr *)&in6, name, DAT_PROVIDER_NOT_FOUND,
	     DAT_NAME_NOT_REGISTERED);
	/* TEST-NET-1 is nobody's. */
	in.sin_addr.s_addr = htonl(0xc0000201);
	FIND(addr, name, DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	in.sin_family = AF_UNIX;
	FIND(addr, name, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
}

/* ---- Completion vectors --------------------------------------------------------- */

#define VECTOR	5

static struct kd_hook device;
static int seen_vector;
static unsigned long seen_vectors;

#ifdef KDAPL_HAVE_CREATE_CQ_BUNDLE
static int note_vector(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
		       struct uverbs_attr_bundle *attrs)
#else
static int note_vector(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
		       struct ib_udata *attrs)
#endif
{
	set_bit(attr->comp_vector, &seen_vectors);
	WRITE_ONCE(seen_vector, attr->comp_vector);
	return device.real.create_cq(cq, attr, attrs);
}

static void I8_vector_of_an_evd(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	int vectors;

	vectors = kd_device(test, c.a->name)->num_comp_vectors;
	KD_ASSERT_OK(test, kdat_evd_set_vector(c.a->recv_evd, KDAT_VECTOR_ANY));
	KD_ASSERT_OK(test, kdat_evd_set_vector(c.a->recv_evd, VECTOR));
	KD_ASSERT_OK(test, kdat_evd_set_vector(c.a->req_evd, VECTOR));
	KD_ASSERT_OK(test, kdat_evd_set_vector(c.p->recv_evd, VECTOR));
	KD_ASSERT_OK(test, kdat_evd_set_vector(c.p->req_evd, VECTOR));
	kd_hook(test, c.a->name, &device)->ops.create_cq = note_vector;
	seen_vector = -1;
	kd_connect_pair(c.a, c.p);
	KUNIT_EXPECT_EQ(test, seen_vector, VECTOR % vectors);
	KUNIT_EXPECT_EQ(test, kdat_evd_set_vector(c.a->recv_evd, 0),
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_EVD_IN_USE));
}

/* Both EVDs of an Endpoint have one vector, so that one CPU deals with its messages. */
static void I8_vector_of_an_endpoint(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct ib_device *dev = kd_device(test, c.a->name);
	int vectors = dev->num_comp_vectors;

	kd_hook(test, c.a->name, &device)->ops.create_cq = note_vector;
	seen_vectors = 0;
	dev->num_comp_vectors = VECTOR;
	kd_connect_pair(c.a, c.p);
	dev->num_comp_vectors = vectors;
	KUNIT_EXPECT_EQ(test, hweight_long(seen_vectors), 2UL);
}

static void I8_vector_arguments(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);

	kd_setup(s, NULL);
	KUNIT_EXPECT_EQ(test, kdat_evd_set_vector(s->recv_evd, -2),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	KUNIT_EXPECT_EQ(test, kdat_evd_set_vector(NULL, 0),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1));
}

static struct kunit_case linux_cases[] = {
	KUNIT_CASE_PARAM(I8_ia_of_each_address, kd_gen_ia),
	KUNIT_CASE(I8_addresses_of_no_ia),
	KUNIT_CASE_PARAM(I8_vector_of_an_evd, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_vector_of_an_endpoint, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_vector_arguments, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-linux", linux_cases, "addresses and vectors");
