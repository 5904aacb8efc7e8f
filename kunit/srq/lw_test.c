// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clauses W1, W5, W6: the low watermark of an SRQ, whatever the device does
 * with its own limit. Devices misbehave here because their modify_srq is
 * replaced.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/timer.h>
#include "call.h"
#include "device.h"
#include "srq_fixture.h"

static void set_lw(struct rx_bench *b, DAT_COUNT lw)
{
	KD_ASSERT_OK(b->test, dat_srq_set_lw(b->in->srq, lw));
}

static void W1_strictly_below(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, 6);
	set_lw(b, 5);
	KUNIT_EXPECT_EQ(test, rx_query(b).low_watermark, 5);
	rx_deliver(b, link);
	/* 5 buffers are available, which is not below the mark. */
	kd_expect_no_event(test, b->in->async_evd);
	rx_deliver(b, link);
	rx_expect_low(b);
	rx_deliver_n(b, link, 4);
	kd_expect_no_event(test, b->in->async_evd);
	KUNIT_EXPECT_EQ(test, rx_query(b).low_watermark, 5);
}

static void W1_in_the_call(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);

	set_lw(b, 1);
	rx_expect_low(b);
	rx_post(b, NULL, 5);
	set_lw(b, 5);
	rx_expect_quiet(b);
	set_lw(b, 6);
	rx_expect_low(b);
	kd_expect_no_event(test, b->in->async_evd);
}

/* The watermark is about available buffers, so reaping does not matter. */
static void W1_taken_not_reaped(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, 4);
	rx_deliver_n(b, link, 2);
	set_lw(b, 2);
	rx_reap_n(b, link, 2);
	kd_expect_no_event(test, b->in->async_evd);
	rx_deliver(b, link);
	rx_expect_low(b);
}

static void W1_once_per_setting(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, 4);
	set_lw(b, 4);
	rx_deliver(b, link);
	rx_expect_low(b);
	/* Rising above the mark and falling below it again does not arm it. */
	rx_reap(b, link);
	rx_post(b, link, 2);
	rx_deliver_n(b, link, 3);
	kd_expect_no_event(test, b->in->async_evd);
	set_lw(b, 2);
	rx_expect_quiet(b);
	rx_deliver(b, link);
	rx_expect_low(b);
	kd_expect_no_event(test, b->in->async_evd);
}

static void W1_replaced(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, 6);
	set_lw(b, 6);
	set_lw(b, 3);
	rx_deliver_n(b, link, 3);
	kd_expect_no_event(test, b->in->async_evd);
	rx_deliver(b, link);
	rx_expect_low(b);
	kd_expect_no_event(test, b->in->async_evd);
}

static void W1_zero_disarms(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);
	struct rx_link *link = rx_link(b);

	set_lw(b, 0);
	rx_post(b, link, 4);
	set_lw(b, 4);
	set_lw(b, 0);
	KUNIT_EXPECT_EQ(test, rx_query(b).low_watermark, 0);
	rx_deliver_n(b, link, 4);
	kd_expect_no_event(test, b->in->async_evd);
}

static void W1_bad_values(struct kunit *test)
{
	static const DAT_COUNT bad[] = { -1, INT_MIN, 11, INT_MAX };
	struct rx_bench *b = rx_open(test, 10);
	struct rx_link *link = rx_link(b);
	int i;

	rx_post(b, link, 3);
	set_lw(b, 3);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      dat_srq_set_lw(b->in->srq, bad[i]));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_srq_set_lw(NULL, 1));
	KUNIT_EXPECT_EQ(test, rx_query(b).low_watermark, 3);
	rx_expect_quiet(b);
	/* The mark is armed as before. */
	rx_deliver(b, link);
	rx_expect_low(b);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
			      dat_srq_set_lw(b->in->srq, bad[i]));
	/* The refused calls have not armed the mark. */
	rx_deliver_n(b, link, 2);
	kd_expect_no_event(test, b->in->async_evd);
	rx_post(b, link, 7);
	set_lw(b, 10);
	rx_expect_low(b);
}

/* The second setting has an event although that of the first was not reaped. */
static void W1_two_settings_two_events(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, 4);
	set_lw(b, 5);
	set_lw(b, 4);
	rx_deliver(b, link);
	set_lw(b, 9);
	rx_expect_low(b);
	rx_expect_low(b);
	rx_expect_low(b);
	kd_expect_no_event(test, b->in->async_evd);
}

/* The event comes without any call of kDAPL and without any upcall. */
static void W1_unwatched(struct kunit *test)
{
	struct rx_bench *b = rx_open_polled(test, 10);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, 3);
	set_lw(b, 2);
	rx_send_n(b, link, 2);
	rx_expect_low(b);
}

/* An EP that is created after the setting counts as well. */
static void W1_ep_joins_later(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);
	struct rx_link *link;

	rx_post(b, NULL, 2);
	set_lw(b, 2);
	link = rx_link(b);
	rx_deliver(b, link);
	rx_expect_low(b);
	kd_expect_no_event(test, b->in->async_evd);
}

static void rearm_lower(struct kd_recorder *rec, const DAT_EVENT *event,
			DAT_BOOLEAN more)
{
	struct rx_bench *b = rec->priv;
	DAT_COUNT lw = rx_query(b).low_watermark;

	if (event->event_number == DAT_ASYNC_SRQ_LOW_WATERMARK && lw > 1)
		KD_EXPECT_OK(b->test, dat_srq_set_lw(b->in->srq, lw - 1));
}

static void W1_rearm_in_upcall(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);
	struct rx_link *link = rx_link(b);
	struct kd_recorder *rec = kd_recorder(test);
	DAT_UPCALL_OBJECT upcall = kd_upcall(rec);

	rec->priv = b;
	rec->hook = rearm_lower;
	KD_ASSERT_OK(test,
		     dat_evd_modify_upcall(b->in->async_evd,
					   DAT_UPCALL_SINGLE_INSTANCE, &upcall,
					   DAT_UPCALL_INVOC_ANY));
	rx_post(b, link, 5);
	set_lw(b, 5);
	for (int i = 1; i <= 5; i++) {
		rx_deliver(b, link);
		KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, i));
	}
	/* The last setting was 1, which has fired too. */
	KUNIT_EXPECT_EQ(test, rec->n, 5);
	rec->hook = NULL;
	KD_EXPECT_OK(test, dat_evd_modify_upcall(b->in->async_evd,
						 DAT_UPCALL_TEARDOWN, NULL,
						 DAT_UPCALL_INVOC_ANY));
}

static void W5_payload(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);
	DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_HANDLE_TYPE type;
	DAT_EVENT event;

	set_lw(b, 1);
	kd_expect_event(test, b->in->async_evd, 0x08201, &event);
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_PTR_EQ(test, data->dat_handle, (DAT_HANDLE)b->in->srq);
	KUNIT_EXPECT_EQ(test, data->reason, DAT_SRQ_LOW_WATERMARK_EVENT);
	KD_EXPECT_OK(test, dat_get_handle_type(data->dat_handle, &type));
	KUNIT_EXPECT_EQ(test, (u32)type, (u32)DAT_HANDLE_TYPE_SRQ);
	/* The SRQ does not belong to the other handle of this IA. */
	kd_expect_no_event(test, b->out->async_evd);
}

/* An event that was not reaped is withdrawn when the SRQ is freed. */
static void W5_freed_unreaped(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);

	set_lw(b, 1);
	set_lw(b, 1);
	KD_EXPECT_OK(test, dat_srq_free(b->in->srq));
	kd_expect_no_event(test, b->in->async_evd);
}

/* ---- W6: devices --------------------------------------------------------- */

enum quirk {
	REFUSES,	/* fails to arm */
	SWALLOWS,	/* arms, and never reports the limit */
	FIRES_AT_ONCE,	/* reports the limit twice, inside the call */
	GARBAGE,	/* does so with other event codes */
	IS_SLOW,	/* sleeps */
};

static struct {
	struct kd_hook device;
	enum quirk quirk;
	struct ib_srq *srq;
	atomic_t armed;
	bool writes;
} fake;

static void fake_event(int code)
{
	struct ib_event event = {
		.device = fake.device.dev,
		.element.srq = fake.srq,
		.event = code,
	};

	fake.srq->event_handler(&event, fake.srq->srq_context);
}

static int fake_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr,
			   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	static const int codes[] = { 0, -1, 0x7fffffff, IB_EVENT_CQ_ERR,
				     IB_EVENT_PORT_ACTIVE, IB_EVENT_SRQ_ERR };
	int i, err = 0;

	if (mask != IB_SRQ_LIMIT)
		return fake.device.real.modify_srq(srq, attr, mask, udata);
	fake.srq = srq;
	fake.writes |= !(current->flags & PF_MEMALLOC_NOIO);
	switch (fake.quirk) {
	case REFUSES:
		err = -EINVAL;
		break;
	case SWALLOWS:
		break;
	case FIRES_AT_ONCE:
		fake_event(IB_EVENT_SRQ_LIMIT_REACHED);
		fake_event(IB_EVENT_SRQ_LIMIT_REACHED);
		break;
	case GARBAGE:
		for (i = 0; i < ARRAY_SIZE(codes); i++)
			fake_event(codes[i]);
		break;
	case IS_SLOW:
		msleep(30);
		err = fake.device.real.modify_srq(srq, attr, mask, udata);
		break;
	}
	atomic_inc(&fake.armed);
	kd_wake();
	return err;
}

static void fake_install(struct rx_bench *b, enum quirk quirk)
{
	fake.quirk = quirk;
	fake.srq = NULL;
	fake.writes = false;
	atomic_set(&fake.armed, 0);
	kd_hook(b->test, b->in->name, &fake.device)->ops.modify_srq =
		fake_modify_srq;
}

static bool fake_is_armed(void *data)
{
	return atomic_read(&fake.armed) >= *(int *)data;
}

static void fake_wait(struct kunit *test, int armed)
{
	KUNIT_ASSERT_TRUE(test, kd_wait_until(fake_is_armed, &armed,
					      KD_TIMEOUT_MS));
}

static KD_CHOICES(quirk_gen_params, kd_gen_ia_and,
	[REFUSES] = "REFUSES",
	[SWALLOWS] = "SWALLOWS",
	[FIRES_AT_ONCE] = "FIRES_AT_ONCE",
	[GARBAGE] = "GARBAGE",
	[IS_SLOW] = "IS_SLOW")

static void W6_quirk(struct kunit *test)
{
	const struct kd_param *p = test->param_value;
	struct rx_bench *b = rx_open(test, 8);
	struct rx_link *link = rx_link(b);

	fake_install(b, p->choice);
	rx_post(b, link, 8);
	set_lw(b, 4);
	fake_wait(test, 1);
	rx_deliver_n(b, link, 4);
	kd_expect_no_event(test, b->in->async_evd);
	rx_deliver(b, link);
	rx_expect_low(b);
	rx_deliver_n(b, link, 2);
	kd_expect_no_event(test, b->in->async_evd);
	set_lw(b, 2);
	rx_expect_low(b);
	fake_wait(test, 2);
	rx_deliver(b, link);
	kd_expect_no_event(test, b->in->async_evd);
	rx_reap_n(b, link, 8);
	rx_expect_counts(b, 8, 0, 0);
	/* A work item that is queued needs its objects. */
	KD_EXPECT_OK(test, dat_ep_free(link->in));
}

/* ---- W6: the time and place of the device's event ------------------------ */

struct interrupt {
	struct timer_list timer;
	struct completion done;
};

static void fire_twice(void *unused)
{
	fake_event(IB_EVENT_SRQ_LIMIT_REACHED);
	fake_event(IB_EVENT_SRQ_LIMIT_REACHED);
}

static void fire_soft(struct timer_list *timer)
{
	struct interrupt *irq = container_of(timer, struct interrupt, timer);

	fire_twice(NULL);
	complete(&irq->done);
}

/* Have the device report the limit twice from each context. */
static void fire_everywhere(struct kunit *test)
{
	struct interrupt *irq = kunit_kzalloc(test, sizeof(*irq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, irq);
	fake_event(IB_EVENT_SRQ_LIMIT_REACHED);
	kd_call_in_interrupt(test, fire_twice, NULL);

	init_completion(&irq->done);
	timer_setup(&irq->timer, fire_soft, 0);
	mod_timer(&irq->timer, jiffies);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&irq->done, HZ));
	timer_shutdown_sync(&irq->timer);
}

static void W6_late_events(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 8);
	struct rx_link *link = rx_link(b);

	fake_install(b, SWALLOWS);
	rx_post(b, link, 8);
	set_lw(b, 4);
	fake_wait(test, 1);
	/* The device reports the limit although no buffer was taken. */
	fire_everywhere(test);
	kd_expect_no_event(test, b->in->async_evd);
	rx_deliver_n(b, link, 5);
	rx_expect_low(b);
	/* The device reports the limit again after the event. */
	fire_everywhere(test);
	kd_expect_no_event(test, b->in->async_evd);
	/* The device reports the limit after it was disarmed. */
	set_lw(b, 0);
	fake_wait(test, 2);
	fire_everywhere(test);
	kd_expect_no_event(test, b->in->async_evd);
	rx_expect_counts(b, 8, 3, 8);
}

/* The limit event as cxgb4 raises it; its SRQ may not exist any more. */
static void W6_device_event(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 8);
	struct rx_link *link = rx_link(b);
	struct ib_event event = { .event = IB_EVENT_SRQ_LIMIT_REACHED };

	fake_install(b, SWALLOWS);
	rx_post(b, link, 4);
	set_lw(b, 4);
	fake_wait(test, 1);
	event.device = fake.device.dev;
	event.element.srq = fake.srq;
	ib_dispatch_event(&event);
	kd_expect_no_event(test, b->in->async_evd);
	rx_deliver(b, link);
	ib_dispatch_event(&event);
	rx_expect_low(b);
	ib_dispatch_event(&event);
	event.element.srq = (struct ib_srq *)0x1234567890UL;
	ib_dispatch_event(&event);
	event.element.srq = NULL;
	ib_dispatch_event(&event);
	kd_expect_no_event(test, b->in->async_evd);
	rx_expect_counts(b, 8, 3, 4);
}

/* The SRQ is freed while the device goes on reporting it. */
static void W6_stale_srq(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 8);
	struct ib_event event = { .event = IB_EVENT_SRQ_LIMIT_REACHED };
	int i;

	fake_install(b, SWALLOWS);
	for (i = 1; i <= 20; i++) {
		DAT_SRQ_HANDLE srq = kd_srq(b->in, 8);

		KD_EXPECT_OK(test, dat_srq_set_lw(srq, 1));
		fake_wait(test, i);
		event.device = fake.device.dev;
		event.element.srq = fake.srq;
		ib_dispatch_event(&event);
		fake_event(IB_EVENT_SRQ_LIMIT_REACHED);
		KD_EXPECT_OK(test, dat_srq_free(srq));
		ib_dispatch_event(&event);
	}
	kd_expect_no_event(test, b->in->async_evd);
}

/*
 * Who accepts a connection waits for the call that arms the device. What it allocates must
 * not be made by writing to a disk that waits for the connection.
 */
static void W6_arms_without_writing(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 8);

	fake_install(b, SWALLOWS);
	rx_post(b, rx_link(b), 4);
	set_lw(b, 4);
	fake_wait(test, 1);
	KUNIT_EXPECT_FALSE(test, fake.writes);
}

static struct kunit_case lw_cases[] = {
	KUNIT_CASE_PARAM(W1_strictly_below, kd_gen_ia),
	KUNIT_CASE_PARAM(W1_in_the_call, kd_gen_ia),
	KUNIT_CASE_PARAM(W1_taken_not_reaped, kd_gen_ia),
	KUNIT_CASE_PARAM(W1_once_per_setting, kd_gen_ia),
	KUNIT_CASE_PARAM(W1_replaced, kd_gen_ia),
	KUNIT_CASE_PARAM(W1_zero_disarms, kd_gen_ia),
	KUNIT_CASE_PARAM(W1_bad_values, kd_gen_ia),
	KUNIT_CASE_PARAM(W1_two_settings_two_events, kd_gen_ia),
	KUNIT_CASE_PARAM(W1_unwatched, kd_gen_ia),
	KUNIT_CASE_PARAM(W1_ep_joins_later, kd_gen_ia),
	KUNIT_CASE_PARAM(W1_rearm_in_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(W5_payload, kd_gen_ia),
	KUNIT_CASE_PARAM(W5_freed_unreaped, kd_gen_ia),
	KUNIT_CASE_PARAM(W6_quirk, quirk_gen_params),
	KUNIT_CASE_PARAM(W6_late_events, kd_gen_ia),
	KUNIT_CASE_PARAM(W6_device_event, kd_gen_ia),
	KUNIT_CASE_PARAM(W6_stale_srq, kd_gen_ia),
	KUNIT_CASE_PARAM(W6_arms_without_writing, kd_gen_ia),
	{ }
};

KD_SUITE("kdapl_lw", lw_cases, "the low watermark of an SRQ");
