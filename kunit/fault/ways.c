// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kdapl_fault.ko: one fault after the other, see ways.h. */
#include <linux/module.h>
#include "device.h"
#include "kdapl_sim.h"
#include "steps.h"
#include "ways.h"

static struct ib_device *adapter;

void kdf_ways_begin(struct ib_device *dev)
{
	adapter = dev;
}
EXPORT_SYMBOL_GPL(kdf_ways_begin);

void kdf_arm_step(const struct kdf_way *way, unsigned int nth)
{
	kdf_fail_step(nth);
}
EXPORT_SYMBOL_GPL(kdf_arm_step);

void kdf_arm_send(const struct kdf_way *way, unsigned int nth)
{
	kdapl_sim_set(adapter, KDAPL_SIM_bad_status, way->err);
	kdapl_sim_set(adapter, KDAPL_SIM_bad_send, nth);
}
EXPORT_SYMBOL_GPL(kdf_arm_send);

unsigned int kdf_sends_left(void)
{
	unsigned int left = kdapl_sim_get(adapter, KDAPL_SIM_bad_send);

	kdapl_sim_set(adapter, KDAPL_SIM_bad_send, 0);
	return left;
}
EXPORT_SYMBOL_GPL(kdf_sends_left);

void kdf_arm_recv(const struct kdf_way *way, unsigned int nth)
{
	kdapl_sim_set(adapter, KDAPL_SIM_bad_recv, nth);
}
EXPORT_SYMBOL_GPL(kdf_arm_recv);

unsigned int kdf_recvs_left(void)
{
	unsigned int left = kdapl_sim_get(adapter, KDAPL_SIM_bad_recv);

	kdapl_sim_set(adapter, KDAPL_SIM_bad_recv, 0);
	return left;
}
EXPORT_SYMBOL_GPL(kdf_recvs_left);

void kdf_walk(struct kdf_walk *walk, const struct kdf_way *way)
{
	unsigned int step = way->step * walk->stride;
	struct kunit *test = walk->test;
	unsigned int nth, failed = 0;
	char *what = walk->what;
	bool fired = true;
	int err;

	for (nth = 1 + walk->seed % step; fired && nth < walk->most; nth += step) {
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
EXPORT_SYMBOL_GPL(kdf_walk);
