// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What consumers find by name: the names of constants (<dat/kdat_linux.h>), of
 * returns (dat_strerror(), contract I4), and the members of structures that DAT 1.x
 * calls otherwise.
 */
#include <linux/irqflags.h>
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include "fixture.h"

/* A number with its name, which is that of the constant. */
#define NAMED(constant) { constant, #constant }

struct named {
	int number;
	const char *name;
};

static const struct named events[] = {
	NAMED(DAT_DTO_COMPLETION_EVENT),
	NAMED(DAT_RMR_BIND_COMPLETION_EVENT),
	NAMED(DAT_CONNECTION_REQUEST_EVENT),
	NAMED(DAT_CONNECTION_EVENT_ESTABLISHED),
	NAMED(DAT_CONNECTION_EVENT_UNREACHABLE),
	NAMED(DAT_ASYNC_ERROR_IA_CATASTROPHIC),
	NAMED(DAT_HA_UP_TO_MULTI_PATH),
	NAMED(DAT_ASYNC_SRQ_LOW_WATERMARK),
	NAMED(DAT_ASYNC_EP_SOFT_HIGH_WATERMARK),
	NAMED(DAT_SOFTWARE_EVENT),
};

static const struct named statuses[] = {
	NAMED(DAT_DTO_SUCCESS),
	NAMED(DAT_DTO_ERR_FLUSHED),
	NAMED(DAT_DTO_ERR_RECEIVER_NOT_READY),
	NAMED(DAT_RMR_OPERATION_FAILED),
	NAMED(DAT_DTO_ERR_LOCAL_MM_ERROR),
};

static const struct named states[] = {
	NAMED(DAT_EP_STATE_UNCONNECTED),
	NAMED(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING),
	NAMED(DAT_EP_STATE_CONNECTED),
	NAMED(DAT_EP_STATE_DISCONNECTED),
	NAMED(DAT_EP_STATE_CONNECTED_MULTI_PATH),
};

static const char *event_name(int number)
{
	return kdat_event_name(number);
}

static const char *status_name(int number)
{
	return kdat_dto_status_name(number);
}

static const char *state_name(int number)
{
	return kdat_ep_state_name(number);
}

static const struct kind {
	const char *desc;
	const char *(*name)(int number);
	const struct named *named;
	int n;
	const char *unknown;
	int end;		/* above all numbers of this kind */
	int count;		/* numbers that have a name */
} kinds[] = {
	{ "event", event_name, events, ARRAY_SIZE(events), "unknown event",
	  DAT_EXTENSION_EVENT, 21 },
	{ "status", status_name, statuses, ARRAY_SIZE(statuses),
	  "unknown status", 64, 13 },
	{ "state", state_name, states, ARRAY_SIZE(states), "unknown state",
	  64, 15 },
};

static void kind_desc(const struct kind *kind, char *desc)
{
	strscpy(desc, kind->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(kinds, kinds, kind_desc);

static void names_are_those_of_the_constants(struct kunit *test)
{
	const struct kind *kind = test->param_value;
	int i;

	for (i = 0; i < kind->n; i++)
		KUNIT_EXPECT_STREQ(test, kind->name(kind->named[i].number),
				   kind->named[i].name);
}

/* Every number has a name of its own, or none. */
static void names_are_all_different(struct kunit *test)
{
	const struct kind *kind = test->param_value;
	const char *seen[32];
	int number, i, n = 0;

	for (number = 0; number < kind->end; number++) {
		const char *name = kind->name(number);

		if (!strcmp(name, kind->unknown))
			continue;
		KUNIT_EXPECT_EQ(test, strncmp(name, "DAT_", 4), 0);
		for (i = 0; i < n; i++)
			KUNIT_EXPECT_STRNEQ(test, name, seen[i]);
		KUNIT_ASSERT_LT(test, n, (int)ARRAY_SIZE(seen));
		seen[n++] = name;
	}
	KUNIT_EXPECT_EQ(test, n, kind->count);
}

static void numbers_without_a_name(struct kunit *test)
{
	static const int numbers[] = { -1, 0x7fffffff, 0x00fff, 0x40000 };
	const struct kind *kind = test->param_value;
	int i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		KUNIT_EXPECT_STREQ(test, kind->name(numbers[i]),
				   kind->unknown);
}

static void names_with_interrupts_off(struct kunit *test)
{
	const struct kind *kind = test->param_value;
	const char *name;
	unsigned long flags;

	local_irq_save(flags);
	name = kind->name(kind->named[0].number);
	local_irq_restore(flags);
	KUNIT_EXPECT_STREQ(test, name, kind->named[0].name);
}

/* ---- Members that DAT 1.x calls otherwise --------------------------------- */

static void old_names_of_ia_attributes(struct kunit *test)
{
	DAT_IA_ATTR_MASK mask = DAT_IA_FIELD_IA_MAX_MTU_SIZE |
				DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP;
	struct kd_side *a = kd_open_param(test);
	DAT_IA_ATTR *attr = kunit_kzalloc(test, sizeof(*attr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, attr);
	KD_ASSERT_OK(test, dat_ia_query(a->ia, NULL, mask, attr, 0, NULL));
	KUNIT_EXPECT_GT(test, attr->max_mtu_size, 0u);
	KUNIT_EXPECT_EQ(test, attr->max_mtu_size, attr->max_message_size);
	KUNIT_EXPECT_GT(test, attr->max_rdma_read_per_ep, 0);
	KUNIT_EXPECT_EQ(test, attr->max_rdma_read_per_ep,
			attr->max_rdma_read_per_ep_in);
}

/* The other names cost no room, and may be initialised. */
static void old_names_are_the_same_members(struct kunit *test)
{
	DAT_IA_ATTR *attr = kunit_kzalloc(test, sizeof(*attr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, attr);
	*attr = (DAT_IA_ATTR) {
		.max_rdma_read_per_ep = 3,
		.max_rdma_read_per_ep_out = 4,
		.max_mtu_size = 5,
		.max_rdma_size = 6,
	};
	KUNIT_EXPECT_EQ(test, attr->max_rdma_read_per_ep_in, 3);
	KUNIT_EXPECT_EQ(test, attr->max_message_size, 5u);
	KUNIT_EXPECT_EQ(test, offsetof(DAT_IA_ATTR, max_rdma_size),
			offsetofend(DAT_IA_ATTR, max_mtu_size));
	KUNIT_EXPECT_EQ(test, offsetof(DAT_IA_ATTR, max_rdma_read_per_ep_out),
			offsetofend(DAT_IA_ATTR, max_rdma_read_per_ep));
}

static void I4_strerror_names_every_type(struct kunit *test)
{
	const char *major, *minor;
	u32 type;

	for (type = DAT_ABORT; type <= DAT_COMM_NOT_SUPPORTED; type += 0x10000) {
		major = NULL;
		minor = NULL;
		KD_EXPECT_OK(test, dat_strerror(DAT_ERROR(type, 0), &major,
						&minor));
		KUNIT_EXPECT_NOT_NULL(test, major);
		KUNIT_EXPECT_NOT_NULL(test, minor);
	}
	KD_EXPECT_OK(test, dat_strerror(DAT_SUCCESS, &major, &minor));
	KUNIT_EXPECT_STREQ(test, major, "DAT_SUCCESS");
	KD_EXPECT_OK(test, dat_strerror(DAT_ERROR(DAT_INVALID_STATE,
						  DAT_INVALID_STATE_EP_PZ),
					&major, &minor));
	KUNIT_EXPECT_STREQ(test, major, "DAT_INVALID_STATE");
	KUNIT_EXPECT_STREQ(test, minor, "DAT_INVALID_STATE_EP_PZ");
}

static void I4_strerror_refuses(struct kunit *test)
{
	const char *major, *minor;

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_strerror(DAT_ERROR(0x00ff0000, 0), &major, &minor));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_strerror(DAT_ERROR(DAT_ABORT, 103), &major, &minor));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_strerror(DAT_SUCCESS, NULL, &minor));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_strerror(DAT_SUCCESS, &major, NULL));
}

static struct kunit_case names_cases[] = {
	KUNIT_CASE_PARAM(names_are_those_of_the_constants, kinds_gen_params),
	KUNIT_CASE_PARAM(names_are_all_different, kinds_gen_params),
	KUNIT_CASE_PARAM(numbers_without_a_name, kinds_gen_params),
	KUNIT_CASE_PARAM(names_with_interrupts_off, kinds_gen_params),
	KUNIT_CASE_PARAM(old_names_of_ia_attributes, kd_gen_ia),
	KUNIT_CASE(old_names_are_the_same_members),
	KUNIT_CASE(I4_strerror_names_every_type),
	KUNIT_CASE(I4_strerror_refuses),
	{}
};

KD_SUITE("kdapl-names", names_cases, "names of constants, returns and members");
