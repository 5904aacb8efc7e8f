// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clauses M1 to M5: dat_ep_modify(). The table below was typed from the man
 * page, not from kdapl_modify_rules; both tables and the behaviour have to
 * agree.
 */
#include <linux/in.h>
#include <linux/module.h>
#include "compat.h"
#include "ep_modify.h"
#include "ep_states.h"
#include "srq_fixture.h"

#define UNC	BIT(DAT_EP_STATE_UNCONNECTED)
#define RES	BIT(DAT_EP_STATE_RESERVED)
#define PASS	BIT(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING)
#define TENT	BIT(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
#define BEFORE	(UNC | RES | PASS | TENT)

static const struct {
	DAT_EP_PARAM_MASK bit;
	u32 states;
} man[] = {
	{ DAT_EP_FIELD_IA_HANDLE, 0 },
	{ DAT_EP_FIELD_EP_STATE, 0 },
	{ DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR, 0 },
	{ DAT_EP_FIELD_LOCAL_PORT_QUAL, 0 },
	{ DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR, 0 },
	{ DAT_EP_FIELD_REMOTE_PORT_QUAL, 0 },
	{ DAT_EP_FIELD_PZ_HANDLE, UNC | TENT },
	{ DAT_EP_FIELD_RECV_EVD_HANDLE, BEFORE },
	{ DAT_EP_FIELD_REQUEST_EVD_HANDLE, BEFORE },
	{ DAT_EP_FIELD_CONNECT_EVD_HANDLE, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_QOS, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR, UNC },
	{ DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR, UNC },
	{ DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR, UNC },
	{ DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR, UNC },
	/* The man page is older than this member: clause M1. */
	{ DAT_EP_FIELD_COMM, BEFORE },
	{ DAT_EP_FIELD_SRQ_HANDLE, 0 },
	{ DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, 0 },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV, BEFORE },
	{ DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, BEFORE },
};

static u32 man_states(struct kunit *test, DAT_EP_PARAM_MASK bit)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(man); i++)
		if (man[i].bit == bit)
			return man[i].states;
	KUNIT_FAIL(test, "mask bit %#llx is not in the table", bit);
	return 0;
}

static void M1_table(struct kunit *test)
{
	DAT_EP_PARAM_MASK all = 0;
	int i;

	KUNIT_EXPECT_EQ(test, kdapl_modify_nrules, (u32)ARRAY_SIZE(man));
	for (i = 0; i < kdapl_modify_nrules; i++) {
		const struct kdapl_modify_rule *rule = &kdapl_modify_rules[i];

		KUNIT_EXPECT_EQ_MSG(test, rule->states,
				    man_states(test, rule->bit), "%s",
				    rule->name);
		KUNIT_EXPECT_EQ(test, all & rule->bit, 0);
		all |= rule->bit;
	}
	KUNIT_EXPECT_EQ(test, all, DAT_EP_FIELD_ALL);
}

/* ---- Parameters ---------------------------------------------------------- */

static DAT_EP_PARAM *ep_param(struct kunit *test, DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	KD_ASSERT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, p));
	return p;
}

struct field {
	size_t offset;
	const char *name;
};

#define FIELD(field)	{ offsetof(DAT_EP_PARAM, field), #field }

static const struct field words[] = {
	FIELD(ep_state),
	FIELD(comm.domain),
	FIELD(comm.type),
	FIELD(comm.protocol),
	FIELD(ep_attr.service_type),
	FIELD(ep_attr.max_message_size),
	FIELD(ep_attr.max_rdma_size),
	FIELD(ep_attr.qos),
	FIELD(ep_attr.recv_completion_flags),
	FIELD(ep_attr.request_completion_flags),
	FIELD(ep_attr.max_recv_dtos),
	FIELD(ep_attr.max_request_dtos),
	FIELD(ep_attr.max_recv_iov),
	FIELD(ep_attr.max_request_iov),
	FIELD(ep_attr.max_rdma_read_in),
	FIELD(ep_attr.max_rdma_read_out),
	FIELD(ep_attr.srq_soft_hw),
	FIELD(ep_attr.max_rdma_read_iov),
	FIELD(ep_attr.max_rdma_write_iov),
	FIELD(ep_attr.ep_transport_specific_count),
	FIELD(ep_attr.ep_provider_specific_count),
};

static const struct field handles[] = {
	FIELD(ia_handle),
	FIELD(pz_handle),
	FIELD(recv_evd_handle),
	FIELD(request_evd_handle),
	FIELD(connect_evd_handle),
	FIELD(srq_handle),
};

/* Expect that the EP has exactly the parameters @want. */
static void expect_param(struct kunit *test, DAT_EP_HANDLE ep,
			 const DAT_EP_PARAM *want, const char *what)
{
	const void *is = ep_param(test, ep), *must = want;
	const struct field *f;

	for (f = words; f < words + ARRAY_SIZE(words); f++)
		KUNIT_EXPECT_EQ_MSG(test, *(u32 *)(is + f->offset),
				    *(u32 *)(must + f->offset), "%s: %s", what,
				    f->name);
	for (f = handles; f < handles + ARRAY_SIZE(handles); f++)
		KUNIT_EXPECT_PTR_EQ_MSG(test, *(void **)(is + f->offset),
					*(void **)(must + f->offset), "%s: %s",
					what, f->name);
}

/* Make a new object for an EP of @side and put its handle into @p. */
static void new_handle(struct kd_side *side, DAT_EP_PARAM_MASK bit,
		       DAT_EP_PARAM *p)
{
	switch (bit) {
	case DAT_EP_FIELD_PZ_HANDLE:
		KD_ASSERT_OK(side->test, dat_pz_create(side->ia,
						       &p->pz_handle));
		break;
	case DAT_EP_FIELD_RECV_EVD_HANDLE:
		p->recv_evd_handle = kd_evd(side, DAT_EVD_DTO_FLAG, 64,
					    DAT_UPCALL_NOTIFY);
		break;
	case DAT_EP_FIELD_REQUEST_EVD_HANDLE:
		p->request_evd_handle = kd_evd(side, DAT_EVD_DTO_FLAG, 64,
					       DAT_UPCALL_NOTIFY);
		break;
	case DAT_EP_FIELD_CONNECT_EVD_HANDLE:
		p->connect_evd_handle = kd_evd(side, DAT_EVD_CONNECTION_FLAG,
					       64, DAT_UPCALL_NOTIFY);
		break;
	}
}

/* Put a valid value into @p that the EP does not have yet, if there is one. */
static void new_value(struct kd_side *side, DAT_EP_PARAM_MASK bit,
		      DAT_EP_PARAM *p)
{
	DAT_EP_ATTR *a = &p->ep_attr;

	new_handle(side, bit, p);
	switch (bit) {
	case DAT_EP_FIELD_COMM:
		p->comm.domain = AF_INET6;
		p->comm.protocol = 0;
		break;
	case DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE:
		a->max_message_size = 4000;
		break;
	case DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE:
		a->max_rdma_size = 5000;
		break;
	case DAT_EP_FIELD_EP_ATTR_QOS:
		a->qos = DAT_QOS_LOW_LATENCY;
		break;
	case DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS:
		a->recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
		break;
	case DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS:
		a->request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
		break;
	case DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS:
		a->max_recv_dtos = 47;
		break;
	case DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS:
		a->max_request_dtos = 46;
		break;
	case DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV:
		a->max_recv_iov = 2;
		break;
	case DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV:
		a->max_request_iov = 3;
		break;
	case DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN:
		a->max_rdma_read_in = 2;
		break;
	case DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT:
		a->max_rdma_read_out = 3;
		break;
	case DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW:
		a->srq_soft_hw = 5;
		break;
	case DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV:
		a->max_rdma_read_iov = 0;
		break;
	case DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV:
		a->max_rdma_write_iov = 1;
		break;
	}
}

/* ---- M1: every bit in every state ---------------------------------------- */

static struct ep_stage *enter_cell(struct kunit *test)
{
	const struct kd_param *p = test->param_value;

	return ep_stage_enter(test, p->ia, p->choice);
}

static void M1_cell(struct kunit *test)
{
	struct ep_stage *stage = enter_cell(test);
	DAT_EP_STATE state = ep_state(test, stage->ep);
	int i;

	for (i = 0; i < kdapl_modify_nrules; i++) {
		const struct kdapl_modify_rule *rule = &kdapl_modify_rules[i];
		u32 states = man_states(test, rule->bit);
		DAT_EP_PARAM *before = ep_param(test, stage->ep);
		DAT_EP_PARAM *p = ep_param(test, stage->ep);
		DAT_RETURN want, ret;

		want = !states ? DAT_INVALID_PARAMETER :
		       states & BIT(state) ? DAT_SUCCESS : DAT_INVALID_STATE;
		new_value(stage->side, rule->bit, p);
		ret = dat_ep_modify(stage->ep, rule->bit, p);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), (u32)want,
				    "%s: %s", rule->name, kd_strerror(ret));
		expect_param(test, stage->ep,
			     want == DAT_SUCCESS ? p : before, rule->name);
	}
	ep_stage_leave(stage);
}

/*
 * A parameter that is never modifiable takes precedence over a wrong state, and
 * a wrong state for one parameter forbids the whole call.
 */
static void M2_all_or_nothing(struct kunit *test)
{
	struct ep_stage *stage = enter_cell(test);
	DAT_EP_STATE state = ep_state(test, stage->ep);
	DAT_EP_PARAM *before = ep_param(test, stage->ep);
	DAT_EP_PARAM *p = ep_param(test, stage->ep);
	DAT_EP_PARAM_MASK sizes = DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
				  DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS;

	new_value(stage->side, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, p);
	new_value(stage->side, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, p);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_modify(stage->ep, sizes | DAT_EP_FIELD_IA_HANDLE,
				    p));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_modify(stage->ep, sizes | BIT_ULL(31), p));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_modify(stage->ep, sizes | BIT_ULL(63), p));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_modify(stage->ep, 0, p));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_modify(stage->ep, sizes, NULL));
	if (state != DAT_EP_STATE_UNCONNECTED)
		KD_EXPECT_RET(test, DAT_INVALID_STATE,
			      dat_ep_modify(stage->ep, sizes |
					DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR,
					p));
	if (!((UNC | TENT) & BIT(state)))
		KD_EXPECT_RET(test, DAT_INVALID_STATE,
			      dat_ep_modify(stage->ep, sizes |
					    DAT_EP_FIELD_PZ_HANDLE, p));
	p->recv_evd_handle = stage->side->conn_evd;
	KD_EXPECT_RET(test,
		      BEFORE & BIT(state) ? DAT_INVALID_PARAMETER :
					    DAT_INVALID_STATE,
		      dat_ep_modify(stage->ep, sizes |
				    DAT_EP_FIELD_RECV_EVD_HANDLE, p));
	expect_param(test, stage->ep, before, "unchanged");
	ep_stage_leave(stage);
}

/* ---- M3, M5: values ------------------------------------------------------ */

struct bad_value {
	DAT_EP_PARAM_MASK bit;
	size_t offset;
	s64 value;
};

#define BAD(bit, field, value) \
	{ DAT_EP_FIELD_ ## bit, offsetof(DAT_EP_PARAM, field), value }

static const struct bad_value bad_values[] = {
	BAD(COMM, comm.domain, AF_UNIX),
	BAD(COMM, comm.type, SOCK_DGRAM),
	BAD(COMM, comm.protocol, IPPROTO_UDP),
	BAD(EP_ATTR_SERVICE_TYPE, ep_attr.service_type, 1),
	BAD(EP_ATTR_QOS, ep_attr.qos, 0x100),
	BAD(EP_ATTR_RECV_COMPLETION_FLAGS, ep_attr.recv_completion_flags,
	    DAT_COMPLETION_SUPPRESS_FLAG),
	BAD(EP_ATTR_RECV_COMPLETION_FLAGS, ep_attr.recv_completion_flags,
	    DAT_COMPLETION_BARRIER_FENCE_FLAG),
	BAD(EP_ATTR_RECV_COMPLETION_FLAGS, ep_attr.recv_completion_flags,
	    DAT_COMPLETION_EVD_THRESHOLD_FLAG),
	BAD(EP_ATTR_REQUEST_COMPLETION_FLAGS, ep_attr.request_completion_flags,
	    0x80),
	BAD(EP_ATTR_REQUEST_COMPLETION_FLAGS, ep_attr.request_completion_flags,
	    DAT_COMPLETION_EVD_THRESHOLD_FLAG),
	BAD(EP_ATTR_MAX_RECV_DTOS, ep_attr.max_recv_dtos, -1),
	BAD(EP_ATTR_MAX_RECV_DTOS, ep_attr.max_recv_dtos, INT_MAX),
	BAD(EP_ATTR_MAX_REQUEST_DTOS, ep_attr.max_request_dtos, -1),
	BAD(EP_ATTR_MAX_REQUEST_DTOS, ep_attr.max_request_dtos, INT_MAX),
	BAD(EP_ATTR_MAX_RECV_IOV, ep_attr.max_recv_iov, -1),
	BAD(EP_ATTR_MAX_RECV_IOV, ep_attr.max_recv_iov, 1000),
	BAD(EP_ATTR_MAX_REQUEST_IOV, ep_attr.max_request_iov, -1),
	BAD(EP_ATTR_MAX_REQUEST_IOV, ep_attr.max_request_iov, 1000),
	BAD(EP_ATTR_MAX_RDMA_READ_IN, ep_attr.max_rdma_read_in, -1),
	BAD(EP_ATTR_MAX_RDMA_READ_IN, ep_attr.max_rdma_read_in, 100000),
	BAD(EP_ATTR_MAX_RDMA_READ_OUT, ep_attr.max_rdma_read_out, -1),
	BAD(EP_ATTR_MAX_RDMA_READ_OUT, ep_attr.max_rdma_read_out, 100000),
	BAD(EP_ATTR_MAX_RDMA_READ_IOV, ep_attr.max_rdma_read_iov, 1000),
	BAD(EP_ATTR_MAX_RDMA_WRITE_IOV, ep_attr.max_rdma_write_iov, 1000),
	BAD(EP_ATTR_NUM_TRANSPORT_ATTR, ep_attr.ep_transport_specific_count, 1),
	BAD(EP_ATTR_NUM_PROVIDER_ATTR, ep_attr.ep_provider_specific_count, 1),
};

/*
 * Sizes above the limits of the IA; the limit of siw is the highest possible
 * value.
 */
static void bad_sizes(struct rx_bench *b, DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM *p = ep_param(b->test, ep);
	DAT_EP_PARAM_MASK mask;
	DAT_IA_ATTR *max;

	max = kunit_kzalloc(b->test, sizeof(*max), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(b->test, max);
	KD_ASSERT_OK(b->test, dat_ia_query(b->in->ia, NULL, DAT_IA_FIELD_ALL,
					   max, 0, NULL));
	p->ep_attr.max_message_size = max->max_message_size + 1;
	mask = DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE;
	if (p->ep_attr.max_message_size)
		KD_EXPECT_RET(b->test, DAT_INVALID_PARAMETER,
			      dat_ep_modify(ep, mask, p));
	p->ep_attr.max_rdma_size = max->max_rdma_size + 1;
	mask = DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE;
	if (p->ep_attr.max_rdma_size)
		KD_EXPECT_RET(b->test, DAT_INVALID_PARAMETER,
			      dat_ep_modify(ep, mask, p));
}

static void M3_bad_values(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);
	DAT_EP_PARAM *before = ep_param(test, link->in);
	int i;

	for (i = 0; i < ARRAY_SIZE(bad_values); i++) {
		const struct bad_value *bad = &bad_values[i];
		DAT_EP_PARAM *p = ep_param(test, link->in);
		DAT_RETURN ret;

		*(u32 *)((void *)p + bad->offset) = bad->value;
		ret = dat_ep_modify(link->in, bad->bit, p);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret),
				    (u32)DAT_INVALID_PARAMETER,
				    "value %d: %s", i, kd_strerror(ret));
	}
	bad_sizes(b, link->in);
	expect_param(test, link->in, before, "unchanged");
}

/* Expect that the EP refuses @handle for this parameter. */
static void bad_handle(struct rx_bench *b, struct rx_link *link,
		       DAT_EP_PARAM_MASK bit, DAT_HANDLE handle)
{
	DAT_EP_PARAM *p = ep_param(b->test, link->in);

	if (bit == DAT_EP_FIELD_PZ_HANDLE)
		p->pz_handle = handle;
	else if (bit == DAT_EP_FIELD_RECV_EVD_HANDLE)
		p->recv_evd_handle = handle;
	else if (bit == DAT_EP_FIELD_REQUEST_EVD_HANDLE)
		p->request_evd_handle = handle;
	else
		p->connect_evd_handle = handle;
	KD_EXPECT_RET(b->test, DAT_INVALID_PARAMETER,
		      dat_ep_modify(link->in, bit, p));
}

static void M5_handles(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);
	DAT_EP_PARAM *before = ep_param(test, link->in);
	DAT_PZ_HANDLE freed;

	KD_ASSERT_OK(test, dat_pz_create(b->in->ia, &freed));
	KD_ASSERT_OK(test, dat_pz_free(freed));
	bad_handle(b, link, DAT_EP_FIELD_PZ_HANDLE, freed);
	bad_handle(b, link, DAT_EP_FIELD_PZ_HANDLE, b->in->recv_evd);
	bad_handle(b, link, DAT_EP_FIELD_PZ_HANDLE, b->out->pz);
	bad_handle(b, link, DAT_EP_FIELD_PZ_HANDLE, (DAT_HANDLE)0x12345678UL);
	bad_handle(b, link, DAT_EP_FIELD_RECV_EVD_HANDLE, b->in->conn_evd);
	bad_handle(b, link, DAT_EP_FIELD_RECV_EVD_HANDLE, b->out->recv_evd);
	bad_handle(b, link, DAT_EP_FIELD_RECV_EVD_HANDLE, link->in);
	/* Posted receives need a receive EVD. */
	bad_handle(b, link, DAT_EP_FIELD_RECV_EVD_HANDLE, NULL);
	bad_handle(b, link, DAT_EP_FIELD_REQUEST_EVD_HANDLE, b->in->cr_evd);
	bad_handle(b, link, DAT_EP_FIELD_REQUEST_EVD_HANDLE, NULL);
	bad_handle(b, link, DAT_EP_FIELD_CONNECT_EVD_HANDLE, b->in->recv_evd);
	expect_param(test, link->in, before, "unchanged");

	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ep_modify(NULL, DAT_EP_FIELD_COMM, before));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ep_modify((DAT_EP_HANDLE)b->in->pz, DAT_EP_FIELD_COMM,
				    before));
	KD_EXPECT_OK(test, dat_ep_free(link->in));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ep_modify(link->in, DAT_EP_FIELD_COMM, before));
}

static void M5_comm(struct kunit *test)
{
	static const DAT_COMM good[] = {
		{ AF_INET, SOCK_STREAM, 0 },
		{ AF_INET, SOCK_STREAM, IPPROTO_TCP },
		{ AF_INET6, SOCK_STREAM, 0 },
		{ AF_INET6, SOCK_STREAM, IPPROTO_TCP },
	};
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link = rx_eps(b, NULL);
	int i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		DAT_EP_PARAM *p = ep_param(test, link->in);

		p->comm = good[i];
		KD_EXPECT_OK(test, dat_ep_modify(link->in, DAT_EP_FIELD_COMM,
						 p));
		expect_param(test, link->in, p, "comm");
	}
}

static struct kunit_case modify_cases[] = {
	KUNIT_CASE(M1_table),
	KUNIT_CASE_PARAM(M1_cell, ep_gen_scene),
	KUNIT_CASE_PARAM(M2_all_or_nothing, ep_gen_scene),
	KUNIT_CASE_PARAM(M3_bad_values, kd_gen_ia),
	KUNIT_CASE_PARAM(M5_handles, kd_gen_ia),
	KUNIT_CASE_PARAM(M5_comm, kd_gen_ia),
	{ }
};

KD_SUITE("kdapl_modify", modify_cases, "modifying an Endpoint");
KDAPL_IMPORT_TEST;
