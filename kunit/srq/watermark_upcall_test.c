// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clause W2 while an upcall of the receive EVD runs: messages that arrive
 * meanwhile count, however many there are. And C3: those that somebody else has polled
 * cause upcalls as well.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include "device.h"
#include "srq_fixture.h"

/* More than a dispatcher takes off a completion queue at a time. */
#define MESSAGES	40
#define MARK		30

/* ---- A receiving side whose upcall can be held up ------------------------ */

struct busy {
	struct rx_bench *b;
	struct rx_link *link;
	struct kd_recorder *rec;
	bool stay;			/* wait in the next upcall */
	struct completion leave;
};

static void busy_hook(struct kd_recorder *rec, const DAT_EVENT *event,
		      DAT_BOOLEAN more)
{
	struct busy *busy = rec->priv;

	if (READ_ONCE(busy->stay))
		wait_for_completion(&busy->leave);
}

static void busy_leave(void *data)
{
	struct busy *busy = data;

	WRITE_ONCE(busy->stay, false);
	complete_all(&busy->leave);
}

static struct busy *busy_open(struct kunit *test)
{
	struct busy *busy = kunit_kzalloc(test, sizeof(*busy), GFP_KERNEL);
	struct kd_side *in;

	KUNIT_ASSERT_NOT_NULL(test, busy);
	init_completion(&busy->leave);
	busy->rec = kd_recorder(test);
	busy->rec->hook = busy_hook;
	busy->rec->priv = busy;
	busy->b = rx_open(test, 2 * MESSAGES);
	in = busy->b->in;
	KD_ASSERT_OK(test, dat_evd_free(in->recv_evd));
	/*
	 * Upcalls of an EVD with software events run in process context and may
	 * wait.
	 */
	in->recv_evd = kd_recorded_evd(in, DAT_EVD_DTO_FLAG |
				       DAT_EVD_SOFTWARE_FLAG, 4 * MESSAGES,
				       DAT_UPCALL_SINGLE_INSTANCE, busy->rec);
	busy->link = rx_link(busy->b);
	rx_post(busy->b, busy->link, 2 * MESSAGES);
	/*
	 * This action runs first when the case ends, as no side can be closed
	 * before.
	 */
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, busy_leave,
							   busy));
	return busy;
}

static void W2_during_an_upcall(struct kunit *test)
{
	struct busy *busy = busy_open(test);

	KD_ASSERT_OK(test, dat_ep_set_watermark(busy->link->in, MARK,
						DAT_WATERMARK_INFINITE));
	WRITE_ONCE(busy->stay, true);
	rx_send_n(busy->b, busy->link, MESSAGES);
	rx_expect_soft(busy->b, busy->link);
	KUNIT_EXPECT_LE(test, atomic_read(&busy->rec->calls), 1);
	busy_leave(busy);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(busy->rec, MESSAGES));
	rx_expect_quiet(busy->b);
}

static bool upcall_runs(void *data)
{
	struct busy *busy = data;

	return atomic_read(&busy->rec->running);
}

/* Hold the upcall of the first of the messages. */
static void busy_enter(struct busy *busy)
{
	WRITE_ONCE(busy->stay, true);
	rx_send_n(busy->b, busy->link, 1);
	KUNIT_ASSERT_TRUE(busy->b->test, kd_wait_until(upcall_runs, busy,
						       KD_TIMEOUT_MS));
}

static void busy_set_mark(struct busy *busy)
{
	KD_ASSERT_OK(busy->b->test, dat_ep_set_watermark(busy->link->in, MARK,
							 DAT_WATERMARK_INFINITE));
}

static void busy_expect_mark(struct busy *busy)
{
	rx_expect_soft(busy->b, busy->link);
	KUNIT_EXPECT_EQ(busy->b->test, atomic_read(&busy->rec->calls), 0);
	busy_leave(busy);
	KUNIT_EXPECT_TRUE(busy->b->test, kd_wait_calls(busy->rec, MESSAGES));
	rx_expect_quiet(busy->b);
}

/* The mark is set while an upcall runs, and passed by messages that come later. */
static void W2_set_during_an_upcall(struct kunit *test)
{
	struct busy *busy = busy_open(test);

	busy_enter(busy);
	busy_set_mark(busy);
	rx_send_n(busy->b, busy->link, MESSAGES - 1);
	busy_expect_mark(busy);
}

/* It has been passed by messages that nobody has polled for. */
static void W2_passed_during_an_upcall(struct kunit *test)
{
	struct busy *busy = busy_open(test);

	busy_enter(busy);
	rx_send_n(busy->b, busy->link, MESSAGES - 1);
	busy_set_mark(busy);
	busy_expect_mark(busy);
}

/* ---- A completion queue that keeps what it has for a while --------------- */

static struct {
	struct kd_hook device;
	struct ib_cq *cq;		/* had a receive of an RC QP */
	bool hidden;
	atomic_t armed;			/* times that @cq was armed meanwhile */
} hold;

static int hold_poll(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	int got;

	if (READ_ONCE(hold.hidden) && cq == READ_ONCE(hold.cq))
		return 0;
	got = hold.device.real.poll_cq(cq, n, wc);
	if (got > 0 && wc->opcode == IB_WC_RECV &&
	    wc->qp->qp_type == IB_QPT_RC)
		WRITE_ONCE(hold.cq, cq);
	return got;
}

static int hold_notify(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	int missed = hold.device.real.req_notify_cq(cq, flags);

	if (!READ_ONCE(hold.hidden) || cq != READ_ONCE(hold.cq))
		return missed;
	atomic_inc(&hold.armed);
	return 0;
}

static void hold_install(struct kd_side *side)
{
	struct ib_device *dev;

	hold.cq = NULL;
	hold.hidden = false;
	atomic_set(&hold.armed, 0);
	dev = kd_hook(side->test, side->name, &hold.device);
	dev->ops.poll_cq = hold_poll;
	dev->ops.req_notify_cq = hold_notify;
}

/*
 * All messages have arrived before the dispatcher starts. It polls the first
 * batch and makes an upcall; no interrupt will report the others.
 */
static void W2_behind_a_full_batch(struct kunit *test)
{
	struct busy *busy = busy_open(test);

	hold_install(busy->b->in);
	rx_send_n(busy->b, busy->link, 1);
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(busy->rec, 1));
	KUNIT_ASSERT_NOT_NULL(test, READ_ONCE(hold.cq));
	WRITE_ONCE(hold.hidden, true);
	KD_ASSERT_OK(test, dat_ep_set_watermark(busy->link->in, MARK,
						DAT_WATERMARK_INFINITE));
	rx_send_n(busy->b, busy->link, MESSAGES);
	WRITE_ONCE(busy->stay, true);
	WRITE_ONCE(hold.hidden, false);
	/* A software event starts the dispatcher, not an arrival. */
	KD_ASSERT_OK(test, dat_evd_post_se(busy->b->in->recv_evd, &(DAT_EVENT) {
		.event_number = DAT_SOFTWARE_EVENT }));
	rx_expect_soft(busy->b, busy->link);
	busy_leave(busy);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(busy->rec, MESSAGES + 2));
	rx_expect_quiet(busy->b);
}

static bool was_armed(void *data)
{
	return atomic_read(&hold.armed) >= *(int *)data;
}

/*
 * A consumer asks for one of several messages that the device has not told of. The others
 * are off the completion queue now, so no notification will have them reported.
 */
static void C3_upcalls_beside_a_dequeue(struct kunit *test)
{
	struct busy *busy = busy_open(test);
	DAT_EVENT event;
	int n;

	hold_install(busy->b->in);
	rx_send_n(busy->b, busy->link, 1);
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(busy->rec, 1));
	WRITE_ONCE(hold.hidden, true);
	/* The dispatcher finds nothing, and arms the completion queue again. */
	for (n = 1; n <= 3; n++) {
		rx_send_n(busy->b, busy->link, 1);
		KUNIT_ASSERT_TRUE(test, kd_wait_until(was_armed, &n, KD_TIMEOUT_MS));
	}
	WRITE_ONCE(hold.hidden, false);
	KD_ASSERT_OK(test, dat_evd_dequeue(busy->b->in->recv_evd, &event));
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(busy->rec, 3));
	rx_expect_quiet(busy->b);
}

static struct kunit_case watermark_upcall_cases[] = {
	KUNIT_CASE_PARAM(W2_during_an_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(W2_set_during_an_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(W2_passed_during_an_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(W2_behind_a_full_batch, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_upcalls_beside_a_dequeue, kd_gen_ia),
	{ }
};

KD_SUITE("kdapl-watermark-upcall", watermark_upcall_cases,
	 "high watermarks during upcalls");
