// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How much is polled at a time: devices that complete as fast as they are polled, and
 * EVDs with several CQs.
 */
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include "device.h"
#include "dto.h"
#include "srq_fixture.h"

/* ---- Completions without end --------------------------------------------- */

#define ENDLESS		100000		/* polls until there is an end to it */
#define BUFFERS		8

/*
 * A CQ that always has another completion: that the first one of two requests has
 * succeeded, which means nothing.
 */
static struct {
	struct kd_hook device;
	struct kdapl_wr wr;
	atomic_t left;
	atomic_t polls;
	atomic_t softirq_polls;
	struct tasklet_struct tasklet;
} endless;

static int endless_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	int real = endless.device.real.poll_cq(cq, n, wc), i;

	if (real || atomic_dec_if_positive(&endless.left) < 0)
		return real;
	if (!atomic_fetch_inc(&endless.polls) && in_serving_softirq())
		tasklet_schedule(&endless.tasklet);
	for (i = 0; i < n; i++)
		wc[i] = (struct ib_wc) {
			.wr_id = (uintptr_t)&endless.wr | KDAPL_WR_FIRST,
			.status = IB_WC_SUCCESS,
		};
	return n;
}

/* Another softirq has its turn. */
static void endless_tasklet(struct tasklet_struct *tasklet)
{
	atomic_set(&endless.softirq_polls, atomic_read(&endless.polls));
	atomic_set(&endless.left, 0);
	kd_wake();
}

static void endless_begin(struct kunit *test, const char *ia)
{
	tasklet_setup(&endless.tasklet, endless_tasklet);
	atomic_set(&endless.polls, 0);
	atomic_set(&endless.softirq_polls, 0);
	atomic_set(&endless.left, 0);
	kd_hook(test, ia, &endless.device)->ops.poll_cq = endless_poll_cq;
}

/* A query polls what can have completed when it was called, and no more. */
static void R8_query_ends(struct kunit *test)
{
	struct rx_bench *b = rx_open_polled(test, BUFFERS);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, BUFFERS);
	endless_begin(test, b->in->name);
	atomic_set(&endless.left, ENDLESS);
	rx_expect_counts(b, BUFFERS, BUFFERS, BUFFERS);
	atomic_set(&endless.left, 0);
	kunit_info(test, "%d polls\n", atomic_read(&endless.polls));
	KUNIT_EXPECT_LE(test, atomic_read(&endless.polls), 100);
	atomic_set(&endless.left, ENDLESS);
	rx_held(b, link);
	KUNIT_EXPECT_GT(test, atomic_read(&endless.left), ENDLESS - 200);
	atomic_set(&endless.left, 0);
}

static bool had_a_turn(void *data)
{
	return atomic_read(&endless.softirq_polls);
}

/* An EVD without upcall that is watched is polled for a while, then others go on. */
static void R8_watching_has_a_budget(struct kunit *test)
{
	struct rx_bench *b = rx_open_polled(test, BUFFERS);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, BUFFERS);
	KD_ASSERT_OK(test, dat_srq_set_lw(b->in->srq, 1));
	endless_begin(test, b->in->name);
	atomic_set(&endless.left, ENDLESS);
	KD_ASSERT_OK(test, rx_try_send(b, link));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(had_a_turn, NULL, KD_TIMEOUT_MS));
	kunit_info(test, "%d polls\n", atomic_read(&endless.softirq_polls));
	KUNIT_EXPECT_LE(test, atomic_read(&endless.softirq_polls), 100);
	rx_sent(b);
	rx_reap(b, link);
}

/* ---- Several CQs --------------------------------------------------------- */

#define PLAIN_RECVS	600		/* of each EP: no two share a CQ */
#define PLAIN_EPS	3

struct held_upcall {
	struct completion begun;
	struct completion go_on;
};

static void hold_first(struct kd_recorder *rec, const DAT_EVENT *event,
		       DAT_BOOLEAN more)
{
	struct held_upcall *held = rec->priv;

	if (atomic_read(&rec->calls))
		return;
	complete(&held->begun);
	wait_for_completion_timeout(&held->go_on,
				    msecs_to_jiffies(KD_TIMEOUT_MS));
}

/*
 * Two messages arrive on two CQs while an upcall runs. The next upcall is told that
 * there is another event.
 */
static void C3_more_on_another_cq(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct kd_recorder *rec = kd_recorder(test);
	DAT_EP_ATTR attr = kd_ep_attr();
	struct rx_link *link[PLAIN_EPS];
	struct held_upcall *held;
	int i;

	held = kunit_kzalloc(test, sizeof(*held), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, held);
	init_completion(&held->begun);
	init_completion(&held->go_on);
	rec->hook = hold_first;
	rec->priv = held;
	attr.max_recv_dtos = PLAIN_RECVS;
	b->in->recv_evd = kd_recorded_evd(b->in, DAT_EVD_DTO_FLAG |
					  DAT_EVD_SOFTWARE_FLAG, 64,
					  DAT_UPCALL_SINGLE_INSTANCE, rec);
	for (i = 0; i < PLAIN_EPS; i++) {
		link[i] = rx_eps(b, &attr);
		rx_connect(b, link[i]);
		rx_post(b, link[i], 1);
	}
	for (i = 0; i < PLAIN_EPS; i++) {
		KD_EXPECT_OK(test, rx_try_send(b, link[i]));
		rx_sent(b);
		if (!i)
			wait_for_completion(&held->begun);
	}
	complete(&held->go_on);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, PLAIN_EPS));
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->more), 1);
}

static struct kunit_case poll_cases[] = {
	KUNIT_CASE_PARAM(R8_query_ends, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_watching_has_a_budget, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_more_on_another_cq, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-poll", poll_cases, "how much is polled at a time");
