// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kdapl_kunit.ko: connections that a driver does not report, see withhold.h. */
#include <linux/module.h>
#include <rdma/iw_cm.h>
#include "device.h"
#include "withhold.h"

/*
 * @handler: that of iw_cm
 * @id: ids that have not been told of their connections, @n of them
 * @more: connections that are still to be withheld
 */
static struct {
	struct kd_hook device;
	iw_event_handler handler;
	struct iw_cm_id *id[KD_WITHHELD_MOST];
	unsigned int n;
	unsigned int more;
} withheld;

static int kd_withhold_event(struct iw_cm_id *id, struct iw_cm_event *event)
{
	id->event_handler = withheld.handler;
	if (event->event != IW_CM_EVENT_ESTABLISHED)
		return id->event_handler(id, event);
	id->add_ref(id);
	withheld.id[withheld.n] = id;
	WRITE_ONCE(withheld.n, withheld.n + 1);
	kd_wake();
	return 0;
}

static int kd_withhold_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	if (withheld.more) {
		withheld.more--;
		withheld.handler = id->event_handler;
		id->event_handler = kd_withhold_event;
	}
	return withheld.device.real.iw_accept(id, param);
}

/* Be able to withhold connections of the device of @ia. */
void kd_withhold_on(struct kunit *test, const char *ia)
{
	withheld.n = 0;
	withheld.more = 0;
	kd_hook(test, ia, &withheld.device)->ops.iw_accept = kd_withhold_accept;
}
EXPORT_SYMBOL_GPL(kd_withhold_on);

/* Withhold the next @n connections; they are reported when the case ends, if not before. */
void kd_withhold(struct kunit *test, unsigned int n)
{
	KUNIT_ASSERT_LE(test, withheld.n + n, KD_WITHHELD_MOST);
	withheld.more = n;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kd_report_withheld, NULL));
}
EXPORT_SYMBOL_GPL(kd_withhold);

/* Return how many connections are withheld. */
unsigned int kd_withheld(void)
{
	return READ_ONCE(withheld.n);
}
EXPORT_SYMBOL_GPL(kd_withheld);

static bool kd_are_withheld(void *n)
{
	return kd_withheld() == *(const unsigned int *)n;
}

/* Expect that @n connections are withheld, now or soon. */
void kd_expect_withheld(struct kunit *test, unsigned int n)
{
	KUNIT_ASSERT_TRUE(test, kd_wait_until(kd_are_withheld, &n, KD_TIMEOUT_MS));
}
EXPORT_SYMBOL_GPL(kd_expect_withheld);

/* Have the driver report them. */
void kd_report_withheld(void *unused)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_ESTABLISHED };
	struct iw_cm_id *id;

	while (withheld.n) {
		id = withheld.id[--withheld.n];
		id->event_handler(id, &event);
		id->rem_ref(id);
	}
}
EXPORT_SYMBOL_GPL(kd_report_withheld);
