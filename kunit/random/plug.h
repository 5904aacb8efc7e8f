/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices that come and go: the second ones of the test bed, which no other
 * suite needs.
 */
#ifndef KDAPL_KUNIT_PLUG_H
#define KDAPL_KUNIT_PLUG_H

#include <linux/device.h>
#include <linux/kmemleak.h>
#include <linux/ktime.h>
#include "../device.h"
#include "../shell.h"

/*
 * The device goes at once. A busy machine may make that seconds; what must not be
 * waited for takes longer: upcalls KD_TIMEOUT_MS, draining an SRQ of siw 60 s.
 */
#define UNPLUG_MS	20000

struct plug {
	const char *ia;
	const char *name;
	const char *add;
};

static const struct plug devices[] = {
	{ "rxe1/1", "rxe1", "rdma link add rxe1 type rxe netdev v2" },
	{ "siw1/1", "siw1", "rdma link add siw1 type siw netdev dummy1" },
};

static void device_desc(const struct plug *d, char *desc)
{
	strscpy(desc, d->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(device, devices, device_desc);

static bool is_listed(const char *name)
{
	DAT_HA_RELATIONSHIP same;

	return dat_registry_providers_related((char *)name, (char *)name,
					      &same) == DAT_SUCCESS;
}

static void plug(void *data)
{
	struct kunit *test = data;
	const struct plug *d = test->param_value;

	if (!is_listed(d->ia))
		KUNIT_EXPECT_EQ(test, 0, shell(d->add));
	KUNIT_EXPECT_TRUE(test, is_listed(d->ia));
}

/*
 * What is left of siw's handshakes may run after its device was freed, and then
 * takes that device's lock (siw_cep_put() in 6.12), whoever the consumer is.
 * Nothing says when the last has run: such a device's memory is never freed.
 */
static void keep_memory_of_siw(struct kunit *test, const char *ia)
{
	struct ib_device *dev = kd_device(test, ia);

	if (dev->ops.driver_id != RDMA_DRIVER_SIW)
		return;
	get_device(&dev->dev);
	kmemleak_not_leak(dev);
}

static void unplug(struct kunit *test)
{
	const struct plug *d = test->param_value;
	char command[64];
	ktime_t start;

	keep_memory_of_siw(test, d->ia);
	snprintf(command, sizeof(command), "rdma link delete %s", d->name);
	start = ktime_get();
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	KUNIT_EXPECT_LT(test, ktime_ms_delta(ktime_get(), start), UNPLUG_MS);
	KUNIT_EXPECT_FALSE(test, is_listed(d->ia));
}

static void expect_broken(struct kd_side *s)
{
	DAT_EVENT event;

	kd_expect_event(s->test, s->conn_evd, DAT_CONNECTION_EVENT_BROKEN,
			&event);
	KUNIT_EXPECT_PTR_EQ(s->test, s->ep,
			    event.event_data.connect_event_data.ep_handle);
	KUNIT_EXPECT_EQ(s->test, 0,
			event.event_data.connect_event_data.private_data_size);
	KUNIT_EXPECT_EQ(s->test, 0, kd_drain(s->conn_evd));
	KUNIT_EXPECT_EQ(s->test, (u32)kd_state(s),
			(u32)DAT_EP_STATE_DISCONNECTED);
}

/* A side on the device, which is there again after the case. */
static struct kd_side *open_device(struct kunit *test)
{
	const struct plug *d = test->param_value;

	return kd_open(test, d->ia);
}

static int removal_init(struct kunit *test)
{
	/* A skipped case has no device, and needs none. */
	if (!test->param_value ||
	    !is_listed(((const struct plug *)test->param_value)->ia))
		return 0;
	return kunit_add_action_or_reset(test, plug, test);
}

#endif /* KDAPL_KUNIT_PLUG_H */
