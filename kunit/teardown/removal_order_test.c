// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A device is removed (contract N6), and of two Endpoints on it that are
 * connected to each other one is stopped long before the other one.
 */
#include <linux/module.h>
#include <rdma/iw_cm.h>
#include "device.h"
#include "plug.h"

/*
 * Holds up the removal between two Endpoints: the iWARP operation that destroys
 * a listener waits.
 */
static struct {
	int (*destroy_listen)(struct iw_cm_id *id);
	u16 port;
	struct kd_side *waiting[2];
} hold_up;

static bool both_have_ended(void *data)
{
	return kd_state(hold_up.waiting[0]) == DAT_EP_STATE_DISCONNECTED &&
	       kd_state(hold_up.waiting[1]) == DAT_EP_STATE_DISCONNECTED;
}

static int slow_destroy_listen(struct iw_cm_id *id)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&id->local_addr;

	if (in->sin_port == htons(hold_up.port))
		KUNIT_EXPECT_TRUE(hold_up.waiting[0]->test,
				  kd_wait_until(both_have_ended, NULL,
						KD_TIMEOUT_MS));
	return hold_up.destroy_listen(id);
}

/* The replaced operation goes with the device, so it is never put back. */
static void hold_up_device(struct kunit *test, struct kd_side *s)
{
	struct ib_device *dev = kd_test_device(test, s->name);

	if (!dev->ops.iw_destroy_listen)
		return;
	hold_up.destroy_listen = dev->ops.iw_destroy_listen;
	dev->ops.iw_destroy_listen = slow_destroy_listen;
}

/*
 * An Endpoint that its peer on the same device disconnects first gets the same
 * event: BROKEN.
 */
static void N6_peer_is_stopped_first(struct kunit *test)
{
	struct kd_side *asked = kd_open_second(test), *end = kd_open_second(test);
	struct kd_side *slow = kd_open_second(test);
	struct kd_side *asking = kd_open_second(test), *far = kd_open_second(test);
	u16 port = kd_port();

	kd_setup(asked, NULL);
	kd_setup(end, NULL);
	kd_setup(asking, NULL);
	kd_setup(far, NULL);
	kd_setup(slow, NULL);
	kd_psp(asked, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(asking, asked, port);
	kd_expect_cr(asked);
	kd_connect_pair(far, end);
	hold_up.port = kd_port();
	hold_up.waiting[0] = asking;
	hold_up.waiting[1] = far;
	kd_psp(slow, hold_up.port, DAT_PSP_CONSUMER_FLAG);
	hold_up_device(test, asked);
	kd_unplug(test);
	kd_expect_broken(asking);
	kd_expect_broken(far);
	kd_expect_broken(asked);
	kd_expect_broken(end);
}

static struct kunit_case order_cases[] = {
	KUNIT_CASE_PARAM(N6_peer_is_stopped_first, kd_gen_second),
	{}
};

KD_SUITE("kdapl-removal-order", order_cases, "in which order a device's users stop",
	 .init = kd_plug_init);
