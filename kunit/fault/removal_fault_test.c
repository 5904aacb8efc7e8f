// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A device leaves while there is no memory (contract N6): every Endpoint is told
 * nevertheless. Allocations fail on the debug kernel only, which has fault injection.
 */
#include <linux/module.h>
#include <rdma/ib_verbs.h>
#include "ops.h"
#include "plug.h"

#define EPS	8

static unsigned int nth;

static int first_add(struct ib_device *dev)
{
	return 0;
}

/* Clients are removed in the reverse order, by one thread: kdapl.ko's turn is next. */
static void first_remove(struct ib_device *dev, void *data)
{
	kdf_fail_allocation(nth);
}

static struct ib_client first = {
	.name = "kdapl_fault_removal",
	.add = first_add,
	.remove = first_remove,
};

static void first_unregister(void *unused)
{
	nth = 0;
	ib_unregister_client(&first);
}

/* Endpoints that never had a connection. One of the first allocations fails. */
static void N6_told_without_memory(struct kunit *test)
{
	struct kd_side *s = kd_open_second(test);
	DAT_EVENT event;
	int i;

	if (!IS_ENABLED(CONFIG_FAULT_INJECTION))
		kunit_skip(test, "no fault injection");
	kd_setup(s, NULL);
	for (i = 1; i < EPS; i++)
		kd_ep(s, NULL);
	nth = 2;
	KUNIT_ASSERT_EQ(test, 0, ib_register_client(&first));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, first_unregister, NULL));
	/* What fails after kdapl.ko's turn may be the answer to the command. */
	kd_delete_device(test);
	for (i = 0; i < EPS; i++)
		kd_expect_event(test, s->conn_evd, DAT_CONNECTION_EVENT_BROKEN, &event);
	kd_expect_no_event(test, s->conn_evd);
}

static struct kunit_case removal_fault_cases[] = {
	KUNIT_CASE_PARAM(N6_told_without_memory, kd_gen_second),
	{}
};

KD_SUITE("kdapl-removal-fault", removal_fault_cases, "a device leaves without memory",
	 .init = kd_plug_init);
