// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_isert_kunit.ko: peers of iWARP that announce a first frame and do not send it, see
 * raw.h. As in sick_device_test.c the driver reports no connection until the frame comes.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <rdma/iw_cm.h>
#include "device.h"
#include "raw.h"

/*
 * @handler: that of iw_cm
 * @id: the id that has not been told of its connection, or NULL
 * @held: done when there is one
 * @armed: the next one is held
 */
static struct {
	struct kd_hook device;
	iw_event_handler handler;
	struct iw_cm_id *id;
	struct completion held;
	bool armed;
} frame;

static int frame_event(struct iw_cm_id *id, struct iw_cm_event *event)
{
	id->event_handler = frame.handler;
	if (event->event != IW_CM_EVENT_ESTABLISHED)
		return id->event_handler(id, event);
	id->add_ref(id);
	frame.id = id;
	complete(&frame.held);
	return 0;
}

static int frame_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	if (frame.armed) {
		frame.armed = false;
		frame.handler = id->event_handler;
		id->event_handler = frame_event;
	}
	return frame.device.real.iw_accept(id, param);
}

/* It comes. */
void raw_frame_comes(void *unused)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_ESTABLISHED };
	struct iw_cm_id *id = frame.id;

	if (id) {
		frame.id = NULL;
		id->event_handler(id, &event);
		id->rem_ref(id);
	}
}
EXPORT_SYMBOL_GPL(raw_frame_comes);

/* Be able to hold frames on the device of the IA @name. */
void raw_hold_frames(struct kunit *test, const char *name)
{
	init_completion(&frame.held);
	kd_hook(test, name, &frame.device)->ops.iw_accept = frame_accept;
}
EXPORT_SYMBOL_GPL(raw_hold_frames);

/*
 * Hold the frame of the next connection; it comes when the case ends, if not before. The
 * Protection Zone of the initiator has connected to itself by now.
 */
void raw_hold_next_frame(struct kunit *test)
{
	frame.armed = true;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, raw_frame_comes, NULL));
}
EXPORT_SYMBOL_GPL(raw_hold_next_frame);

void raw_expect_frame_held(struct kunit *test)
{
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&frame.held,
							    msecs_to_jiffies(KD_TIMEOUT_MS)));
}
EXPORT_SYMBOL_GPL(raw_expect_frame_held);
