// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * EVDs of many Endpoints: how many CQs they have, and how many of them a message
 * concerns. All is counted in the operations of the device.
 */
#include <linux/module.h>
#include "device.h"
#include "evd.h"
#include "srq_fixture.h"

#define EPS		24
#define RECVS		200		/* of each: two do not fit into the smallest CQ */
#define FEW_CQS		6		/* each doubles the room: 1 + log2(EPS) */
#define MOST_CQS	64

/*
 * struct tally - what is done to the CQs of @evd
 * @cqs: its CQs, as they are armed or polled
 */
static struct tally {
	struct kd_hook device;
	DAT_EVD_HANDLE evd;
	struct ib_cq *cqs[MOST_CQS];
	atomic_t polls;
	atomic_t armings;
} tally;

/* Completion queues of ib_core's own interface, which others use, have ->wc. */
static bool is_counted(struct ib_cq *cq)
{
	struct kdapl_cq *ours = cq->cq_context;
	struct ib_cq *free;
	int i;

	if (cq->wc || kdapl_handle(&ours->evd->obj) != READ_ONCE(tally.evd))
		return false;
	for (i = 0; i < MOST_CQS; i++) {
		free = cmpxchg(&tally.cqs[i], NULL, cq);
		if (!free || free == cq)
			break;
	}
	return true;
}

static int tally_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	if (is_counted(cq))
		atomic_inc(&tally.polls);
	return tally.device.real.poll_cq(cq, n, wc);
}

static int tally_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	if (is_counted(cq))
		atomic_inc(&tally.armings);
	return tally.device.real.req_notify_cq(cq, flags);
}

static void tally_begin(struct kunit *test, const char *ia, DAT_EVD_HANDLE evd)
{
	struct ib_device *dev;

	memset(tally.cqs, 0, sizeof(tally.cqs));
	tally.evd = evd;
	dev = kd_hook(test, ia, &tally.device);
	dev->ops.poll_cq = tally_poll_cq;
	dev->ops.req_notify_cq = tally_req_notify_cq;
}

static int tally_cqs(void)
{
	int n = 0;

	while (n < MOST_CQS && tally.cqs[n])
		n++;
	return n;
}

/* Connect Endpoints whose receives complete on the EVD of @b->in. */
static void connect_all(struct rx_bench *b, struct rx_link **link)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	int i;

	attr.max_recv_dtos = RECVS;
	for (i = 0; i < EPS; i++) {
		link[i] = rx_eps(b, &attr);
		rx_connect(b, link[i]);
		rx_post(b, link[i], 2);
	}
}

/*
 * The room in the CQs of an EVD doubles with each of them, and a message makes one of
 * them be polled and armed. All upcalls come, whichever CQ the messages are on.
 */
static void R8_idle_cqs(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;
	struct kd_recorder *rec = kd_recorder(test);
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link[EPS];
	int i, cqs, polls, armings;

	b->in->recv_evd = kd_recorded_evd(b->in, DAT_EVD_DTO_FLAG, 64,
					  DAT_UPCALL_SINGLE_INSTANCE, rec);
	tally_begin(test, ia, b->in->recv_evd);
	connect_all(b, link);
	cqs = tally_cqs();
	KUNIT_EXPECT_GT(test, cqs, 1);
	KUNIT_EXPECT_LE(test, cqs, FEW_CQS);

	atomic_set(&tally.polls, 0);
	atomic_set(&tally.armings, 0);
	for (i = 0; i < 2 * EPS; i++) {
		KD_ASSERT_OK(test, rx_try_send(b, link[i % EPS]));
		rx_sent(b);
		KUNIT_ASSERT_TRUE_MSG(test, kd_wait_calls(rec, i + 1),
				      "message %d", i);
	}
	polls = atomic_read(&tally.polls);
	armings = atomic_read(&tally.armings);
	kunit_info(test, "%d Endpoints: %d CQs, %d messages: %d polls, %d armings\n",
		   EPS, cqs, i, polls, armings);
	KUNIT_EXPECT_LE(test, polls, 3 * i);
	KUNIT_EXPECT_LE(test, armings, 2 * i);
}

/* Queries and a consumer that polls see what is on any CQ, armed or not. */
static void R8_all_cqs_are_asked(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *link[EPS];
	DAT_EVENT event;
	int i;

	b->in->recv_evd = kd_evd(b->in, DAT_EVD_DTO_FLAG, RECVS * EPS,
				 DAT_UPCALL_DISABLE);
	connect_all(b, link);
	for (i = 0; i < EPS; i++) {
		KD_ASSERT_OK(test, rx_try_send(b, link[i]));
		rx_sent(b);
	}
	for (i = 0; i < EPS; i++)
		KD_EXPECT_OK(test, dat_evd_dequeue(b->in->recv_evd, &event));
	kd_expect_no_event(test, b->in->recv_evd);
}

static struct kunit_case many_cqs_cases[] = {
	KUNIT_CASE_PARAM(R8_idle_cqs, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_all_cqs_are_asked, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-many-cqs", many_cqs_cases, "EVDs of many Endpoints");
