// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kdapl_fault.ko: one fault after the other, see ways.h. */
#include <linux/module.h>
#include "device.h"
#include "kdapl_sim.h"
#include "ops.h"
#include "param.h"
#include "steps.h"
#include "ways.h"

KD_PARAM(stride, uint, 0, "so many faults forward from each to the next; 0: by default");
KD_PARAM(seed, uint, 1, "which faults of each stride");

static struct ib_device *adapter;

void kdf_ways_begin(struct ib_device *dev)
{
	adapter = dev;
}
EXPORT_SYMBOL_GPL(kdf_ways_begin);

static void arm_step(const struct kdf_way *way, unsigned int nth)
{
	kdf_fail_step(nth);
}

static void arm_send(const struct kdf_way *way, unsigned int nth)
{
	kdapl_sim_set(adapter, KDAPL_SIM_bad_status, way->err);
	kdapl_sim_set(adapter, KDAPL_SIM_bad_send, nth);
}

static unsigned int sends_left(void)
{
	unsigned int left = kdapl_sim_get(adapter, KDAPL_SIM_bad_send);

	kdapl_sim_set(adapter, KDAPL_SIM_bad_send, 0);
	return left;
}

static void arm_recv(const struct kdf_way *way, unsigned int nth)
{
	kdapl_sim_set(adapter, KDAPL_SIM_bad_recv, nth);
}

static unsigned int recvs_left(void)
{
	unsigned int left = kdapl_sim_get(adapter, KDAPL_SIM_bad_recv);

	kdapl_sim_set(adapter, KDAPL_SIM_bad_recv, 0);
	return left;
}

static void arm_operation(const struct kdf_way *way, unsigned int nth)
{
	kdf_fail_operation_of_others(nth, way->err);
}

const struct kdf_way kdf_any_step[] = {
	{ "step", -ENOMEM, arm_step, kdf_steps_left, 1 },
	{}
};
EXPORT_SYMBOL_GPL(kdf_any_step);

const struct kdf_way kdf_operations[] = {
	{ "operation", -ENOMEM, arm_operation, kdf_operations_left, 1 },
	{ "operation", -EINVAL, arm_operation, kdf_operations_left, 3 },
	{ "operation", -EAGAIN, arm_operation, kdf_operations_left, 5 },
	{}
};
EXPORT_SYMBOL_GPL(kdf_operations);

/* All but the first come after requests that have been executed, or seem to. */
const struct kdf_way kdf_completions[] = {
	{ "receive", 0, arm_recv, recvs_left, 1 },
	{ "request", IB_WC_RETRY_EXC_ERR, arm_send, sends_left, 1 },
	{ "request", IB_WC_WR_FLUSH_ERR, arm_send, sends_left, 1 },
	{ "request", IB_WC_LOC_PROT_ERR, arm_send, sends_left, 3 },
	{ "request", IB_WC_LOC_QP_OP_ERR, arm_send, sends_left, 3 },
	{ "request", IB_WC_REM_ACCESS_ERR, arm_send, sends_left, 3 },
	{ "request", IB_WC_REM_OP_ERR, arm_send, sends_left, 3 },
	{ "request", IB_WC_RNR_RETRY_EXC_ERR, arm_send, sends_left, 3 },
	{ "request", IB_WC_FATAL_ERR, arm_send, sends_left, 3 },
	{ "request", IB_WC_GENERAL_ERR, arm_send, sends_left, 3 },
	{}
};
EXPORT_SYMBOL_GPL(kdf_completions);

const struct kdf_way kdf_never[] = {
	{ "request that does not complete", ~0, arm_send, sends_left, 1 },
	{}
};
EXPORT_SYMBOL_GPL(kdf_never);

static void walk_one(struct kdf_walk *walk, const struct kdf_way *way)
{
	unsigned int step = way->step * (stride ?: walk->stride);
	struct kunit *test = walk->test;
	unsigned int nth, failed = 0;
	char *what = walk->what;
	bool fired = true;
	int err;

	for (nth = 1 + seed % step; fired && nth < walk->most; nth += step) {
		snprintf(what, sizeof(walk->what), "%s %u (%d)", way->what, nth, way->err);
		err = walk->life(walk->world, way, nth);
		fired = !way->left();
		KUNIT_EXPECT_TRUE_MSG(test, fired || !err, "%s: %d, and none has failed",
				      what, err);
		failed += !!err;
		KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(walk->is_whole, walk->world,
							  KD_TIMEOUT_MS),
				      "%s after %s", walk->broken, what);
	}
	KUNIT_EXPECT_FALSE_MSG(test, fired, "%s %u", way->what, nth);
	kunit_info(test, "%s (%d): up to %u, an error was told of %u", way->what, way->err,
		   nth, failed);
}

/* Have all things fail, one in each life, in each of @ways. */
void kdf_walk(struct kdf_walk *walk, const struct kdf_way *ways)
{
	for (; ways->what; ways++)
		walk_one(walk, ways);
}
EXPORT_SYMBOL_GPL(kdf_walk);
