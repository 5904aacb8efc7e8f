// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections of an SRQ that end in the middle of a message, on simulated adapters
 * that do what drivers do then: R4, and what it costs the others: R8.
 */
#include <linux/module.h>
#include <linux/swait.h>
#include <rdma/iw_cm.h>
#include "call.h"
#include "device.h"
#include "ep.h"
#include "handle.h"
#include "hca.h"
#include "ia.h"
#include "kdapl_sim.h"
#include "srq.h"
#include "srq_fixture.h"

#define BUFFERS		8
#define CROWD		80		/* connections: more than one section */
#define ACTIVE		4		/* of them receive */

/*
 * struct lost_bench - messages of victims stop in the middle
 * @idle: a connection that stays silent
 */
struct lost_bench {
	struct rx_bench *b;
	struct ib_device *dev;
	struct rx_link *idle;
};

static void sim_reset(void *dev)
{
	kdapl_sim_reset(dev);
}

static struct lost_bench *lost_open(struct kunit *test)
{
	struct lost_bench *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->dev = kd_device(test, *(const char * const *)test->param_value);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, sim_reset,
							   l->dev));
	l->b = rx_open(test, BUFFERS);
	l->idle = rx_link(l->b);
	rx_post(l->b, NULL, BUFFERS);
	return l;
}

static bool is_partial(void *data)
{
	struct lost_bench *l = data;

	return kdapl_sim_count(l->dev, KDAPL_SIM_N_partial);
}

/* End @victim's connection, if @within in the middle of a message. */
static void die(struct lost_bench *l, struct rx_link *victim, bool within)
{
	struct kunit *test = l->b->test;

	if (within) {
		kdapl_sim_set(l->dev, KDAPL_SIM_stall_bytes, RX_LEN / 2);
		KD_ASSERT_OK(test, rx_try_send(l->b, victim));
		KUNIT_ASSERT_TRUE(test, kd_wait_until(is_partial, l,
						      KD_TIMEOUT_MS));
	}
	KD_ASSERT_OK(test, dat_ep_disconnect(victim->in,
					     DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_event(test, l->b->in->conn_evd,
			DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	/* Otherwise the peer would wait whether its message has arrived. */
	KD_ASSERT_OK(test, dat_ep_disconnect(victim->out,
					     DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_event(test, l->b->out->conn_evd,
			DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	kdapl_sim_set(l->dev, KDAPL_SIM_stall_bytes, 0);
	kd_drain(l->b->out->req_evd);
}

static DAT_DTO_COMPLETION_STATUS reap_status(struct lost_bench *l)
{
	DAT_EVENT event;

	kd_expect_event(l->b->test, l->b->in->recv_evd,
			DAT_DTO_COMPLETION_EVENT, &event);
	return event.event_data.dto_completion_event_data.status;
}

/* One message of @link, whose buffer is posted again. */
static void talk(struct lost_bench *l, struct rx_link *link)
{
	KD_ASSERT_OK(l->b->test, rx_try_send(l->b, link));
	rx_sent(l->b);
	KUNIT_EXPECT_EQ(l->b->test, (u32)reap_status(l), (u32)DAT_DTO_SUCCESS);
	rx_post(l->b, NULL, 1);
}

/* ---- R4 ------------------------------------------------------------------ */

/* A device that gives all buffers back is never doubted. */
static void R4_gives_all_back(struct kunit *test)
{
	struct lost_bench *l = lost_open(test);
	int i;

	for (i = 0; i < 2 * BUFFERS; i++) {
		bool within = i % 2;

		die(l, rx_link(l->b), within);
		if (within) {
			rx_expect_counts(l->b, BUFFERS, BUFFERS - 1, BUFFERS);
			KUNIT_EXPECT_EQ(test, (u32)reap_status(l),
					(u32)DAT_DTO_ERR_FLUSHED);
			rx_post(l->b, NULL, 1);
		}
		rx_expect_counts(l->b, BUFFERS, BUFFERS, BUFFERS);
	}
}

/* Those that died with a message under way are in doubt, and no others. */
static void R4_in_doubt(struct kunit *test)
{
	struct lost_bench *l = lost_open(test);
	struct rx_link *victim;
	int i;

	kdapl_sim_set(l->dev, KDAPL_SIM_lose_partial, 1);
	for (i = 0; i < BUFFERS; i++) {
		victim = rx_link(l->b);
		if (i % 3) {
			talk(l, victim);
			/* It has seen all those that died before. */
			rx_wait_counts(l->b, BUFFERS - i, BUFFERS - i);
		}
		die(l, rx_link(l->b), false);
		rx_expect_counts(l->b, BUFFERS, BUFFERS - i, BUFFERS - i);
		die(l, victim, true);
		rx_expect_counts(l->b, BUFFERS, BUFFERS - i - 1,
				 BUFFERS - i - 1);
	}
	/* Others in their place; then the idle one wakes up, and all are found. */
	rx_post(l->b, NULL, BUFFERS);
	rx_expect_counts(l->b, BUFFERS, BUFFERS, BUFFERS);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      rx_try_post(l->b, NULL));
	KD_ASSERT_OK(test, rx_try_send(l->b, l->idle));
	rx_sent(l->b);
	rx_wait_counts(l->b, 2 * BUFFERS - 1, 2 * BUFFERS);
	for (i = 1; i < 2 * BUFFERS; i++) {
		KD_ASSERT_OK(test, rx_try_send(l->b, l->idle));
		rx_sent(l->b);
	}
	rx_reap_n(l->b, l->idle, 2 * BUFFERS);
	rx_expect_counts(l->b, BUFFERS, 0, 0);
}

/* The device's queue is as long as the SRQ, and more than all of it is lost. */
static void R4_more_than_the_queue(struct kunit *test)
{
	struct lost_bench *l = lost_open(test);
	int i, j;

	kdapl_sim_set(l->dev, KDAPL_SIM_lose_partial, 1);
	/* 64 is what the device's queue is made for. */
	for (i = 0; i < 80 / BUFFERS; i++) {
		for (j = 0; j < BUFFERS; j++)
			die(l, rx_link(l->b), true);
		rx_expect_counts(l->b, BUFFERS, 0, 0);
		rx_post(l->b, NULL, BUFFERS);
	}
	rx_expect_counts(l->b, BUFFERS, BUFFERS, BUFFERS);
	KD_ASSERT_OK(test, rx_try_send(l->b, l->idle));
	rx_sent(l->b);
	rx_wait_counts(l->b, BUFFERS + 80 - 1, BUFFERS + 80);
}

/* The idle connection is freed: nobody else can have what was lost. */
static void R5_idle_one_is_freed(struct kunit *test)
{
	struct lost_bench *l = lost_open(test);
	struct rx_link *late;

	kdapl_sim_set(l->dev, KDAPL_SIM_lose_partial, 1);
	die(l, rx_link(l->b), true);
	die(l, rx_link(l->b), true);
	rx_expect_counts(l->b, BUFFERS, BUFFERS - 2, BUFFERS - 2);
	late = rx_link(l->b);
	talk(l, late);
	rx_expect_counts(l->b, BUFFERS, BUFFERS - 2, BUFFERS - 2);
	die(l, l->idle, false);
	rx_wait_counts(l->b, BUFFERS, BUFFERS);
}

/* ---- The last WQE -------------------------------------------------------- */

/*
 * A driver that drops completions when a QP is destroyed says before when the last
 * one is there; it is waited for.
 */
static void R4_last_wqe_is_late(struct kunit *test)
{
	struct lost_bench *l = lost_open(test);
	int i;

	/* Not before the caller sleeps. */
	kdapl_sim_set(l->dev, KDAPL_SIM_engine_ctx, 1);
	kdapl_sim_set(l->dev, KDAPL_SIM_drop_cqes, 1);
	kdapl_sim_set(l->dev, KDAPL_SIM_lwqe_ms, 50);
	kdapl_sim_set(l->dev, KDAPL_SIM_lwqe, 3);
	for (i = 0; i < BUFFERS; i++) {
		die(l, rx_link(l->b), true);
		KUNIT_EXPECT_EQ(test, (u32)reap_status(l),
				(u32)DAT_DTO_ERR_FLUSHED);
	}
	rx_expect_counts(l->b, BUFFERS, 0, 0);
}

/* A driver that does not say it is not waited for again and again. */
static void R4_last_wqe_never_comes(struct kunit *test)
{
	struct lost_bench *l = lost_open(test);
	u64 t0, best = U64_MAX;
	int i;

	kdapl_sim_set(l->dev, KDAPL_SIM_lwqe, 1);
	for (i = 0; i < 16; i++) {
		struct rx_link *victim = rx_link(l->b);

		t0 = ktime_get_ns();
		die(l, victim, false);
		/* By then it is waited for 10 ms at most; a busy machine may delay any one. */
		if (i >= 12)
			best = min_t(u64, best, ktime_get_ns() - t0);
	}
	KUNIT_EXPECT_LT(test, best, (u64)NSEC_PER_SEC);
	talk(l, l->idle);
	talk(l, l->idle);
	talk(l, l->idle);
	rx_wait_counts(l->b, BUFFERS, BUFFERS);
}

static struct kd_hook device;
static atomic_t failures;		/* that are to come */

static int modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata)
{
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RTR &&
	    atomic_dec_if_positive(&failures) >= 0)
		return -EIO;
	return device.real.modify_qp(qp, attr, mask, udata);
}

static int iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	if (atomic_dec_if_positive(&failures) < 0)
		return device.real.iw_accept(id, param);
	device.real.iw_reject(id, NULL, 0);
	return -EIO;
}

/* The device of @l, as kdapl.ko knows it. */
static struct kdapl_hca *hca_of(struct lost_bench *l)
{
	struct kdapl_srq *srq;
	struct kdapl_hca *hca;

	rcu_read_lock();
	srq = kdapl_find(l->b->in->srq, DAT_HANDLE_TYPE_SRQ);
	hca = srq->obj.ia->hca;
	rcu_read_unlock();
	return hca;
}

/*
 * A queue pair that never got as far as receiving says nothing about the last WQE, and
 * that is not held against the driver: its others are waited for.
 */
static void R4_last_wqe_of_a_failed_attempt(struct kunit *test)
{
	struct lost_bench *l = lost_open(test);
	struct rx_link *link = rx_eps(l->b, NULL);
	struct kdapl_hca *hca = hca_of(l);
	struct ib_device *dev;
	u16 port = kd_port();

	/* Nobody knows yet whether the driver has that event. */
	WRITE_ONCE(hca->last_wqe_seen, false);
	WRITE_ONCE(hca->last_wqe_ms, KDAPL_LAST_WQE_TRY_MS);
	dev = kd_hook(test, l->b->in->name, &device);
	dev->ops.modify_qp = modify_qp;
	if (dev->ops.iw_accept)
		dev->ops.iw_accept = iw_accept;
	kdapl_sim_set(l->dev, KDAPL_SIM_lwqe, 1);
	atomic_set(&failures, 1);
	l->b->in->ep = link->in;
	l->b->out->ep = link->out;
	kd_psp(l->b->in, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(l->b->out, l->b->in, port);
	KD_ASSERT_OK(test, dat_cr_accept(kd_expect_cr(l->b->in), link->in, 0, NULL));
	KUNIT_EXPECT_LE(test, atomic_read(&failures), 0);
	kd_expect_event(test, l->b->in->conn_evd,
			DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL);
	/* It waits until the queue pair is gone. */
	KD_EXPECT_OK(test, dat_ep_reset(link->in));
	kdapl_sim_set(l->dev, KDAPL_SIM_lwqe, 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(hca->last_wqe_ms), KDAPL_LAST_WQE_TRY_MS);
}

static bool awaits_last_wqe(void *ep)
{
	return swait_active(&((struct kdapl_ep *)ep)->last_wqe.wait);
}

/*
 * Nobody knows yet whether the driver has the event. While one queue pair waits for it in vain,
 * that of another one comes: the device is known to have it from then on.
 */
static void R4_last_wqe_of_another(struct kunit *test)
{
	struct lost_bench *l = lost_open(test);
	struct kdapl_hca *hca = hca_of(l);
	struct rx_link *victim = rx_link(l->b);
	struct kdapl_ep *ep;

	rcu_read_lock();
	ep = kdapl_find(victim->in, DAT_HANDLE_TYPE_EP);
	rcu_read_unlock();
	WRITE_ONCE(hca->last_wqe_seen, false);
	WRITE_ONCE(hca->last_wqe_ms, KDAPL_LAST_WQE_TRY_MS);
	kdapl_sim_set(l->dev, KDAPL_SIM_lwqe, 1);
	KD_ASSERT_OK(test, dat_ep_disconnect(victim->in, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(awaits_last_wqe, ep, KD_TIMEOUT_MS));
	WRITE_ONCE(hca->last_wqe_seen, true);
	WRITE_ONCE(hca->last_wqe_ms, 2 * KDAPL_LAST_WQE_TRY_MS);
	/* It waits until the queue pair is gone. */
	KD_EXPECT_OK(test, dat_ep_reset(victim->in));
	kdapl_sim_set(l->dev, KDAPL_SIM_lwqe, 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(hca->last_wqe_ms), 2 * KDAPL_LAST_WQE_TRY_MS);
}

static DAT_RETURN call_ep_reset(void *ep)
{
	return dat_ep_reset(ep);
}

/* Longer than a call may take, and shorter than it waits before it is refused. */
#define LAST_WQE_MS	12000

static struct {
	struct kdapl_hca *hca;
	unsigned int ms;
} usual;

static void wait_as_usual(void *unused)
{
	WRITE_ONCE(usual.hca->last_wqe_ms, usual.ms);
}

static void tell_last_wqe(void *handle)
{
	struct kdapl_ep *ep;

	rcu_read_lock();
	ep = kdapl_find(handle, DAT_HANDLE_TYPE_EP);
	if (ep)
		complete(&ep->last_wqe);
	rcu_read_unlock();
}

/*
 * Connect from the SRQ to where nobody listens, or, with @port, to one who rejects. The
 * queue pair is gone when dat_ep_reset() returns.
 */
static void fail_to_connect(struct lost_bench *l, DAT_EP_HANDLE ep, u16 port)
{
	struct kunit *test = l->b->test;
	DAT_EVENT event;

	kd_connect_start(l->b->in, l->b->out, port ?: kd_port());
	if (port)
		KD_ASSERT_OK(test, dat_cr_reject(kd_expect_cr(l->b->out), 0, NULL));
	KUNIT_ASSERT_TRUE(test, kd_wait_event(l->b->in->conn_evd, &event, KD_TIMEOUT_MS));
	if (port)
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_CONNECTION_EVENT_PEER_REJECTED);
	kd_call_expect(test, kd_call_begin(test, call_ep_reset, ep), DAT_SUCCESS,
		       LAST_WQE_MS - 1000, tell_last_wqe, ep);
}

/* An attempt to which the peer did not agree has received nothing: nobody waits. */
static void R4_no_last_wqe_of_a_refused_attempt(struct kunit *test)
{
	struct lost_bench *l = lost_open(test);
	struct rx_link *link = rx_eps(l->b, NULL);
	u16 port = kd_port();

	kdapl_sim_set(l->dev, KDAPL_SIM_lwqe, 1);
	usual.hca = hca_of(l);
	usual.ms = READ_ONCE(usual.hca->last_wqe_ms);
	WRITE_ONCE(usual.hca->last_wqe_ms, LAST_WQE_MS);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, wait_as_usual, NULL));
	l->b->in->ep = link->in;
	l->b->out->ep = link->out;
	fail_to_connect(l, link->in, 0);
	kd_psp(l->b->out, port, DAT_PSP_CONSUMER_FLAG);
	fail_to_connect(l, link->in, port);
	kdapl_sim_set(l->dev, KDAPL_SIM_lwqe, 0);
}

/* ---- R8 ------------------------------------------------------------------ */

/* EPs that the SRQ's searches have looked at. */
static u64 searched(struct lost_bench *l)
{
	struct kdapl_srq *srq;
	u64 n;

	rcu_read_lock();
	srq = kdapl_find(l->b->in->srq, DAT_HANDLE_TYPE_SRQ);
	n = READ_ONCE(srq->searched);
	rcu_read_unlock();
	return n;
}

/*
 * Messages are received beside idle connections after some have ended, with or
 * without a message under way, and while these are in doubt: that is found out by a
 * number of looks at Endpoints that does not depend on the number of messages.
 */
static void R8_cost_of_a_message(struct kunit *test)
{
	struct lost_bench *l = lost_open(test);
	struct rx_link *active[ACTIVE];
	u64 before, looks;
	int i, round;

	kdapl_sim_set(l->dev, KDAPL_SIM_lose_partial, 1);
	for (i = 0; i < CROWD - ACTIVE; i++)
		rx_link(l->b);
	for (i = 0; i < ACTIVE; i++)
		active[i] = rx_link(l->b);
	for (round = 0; round < 4; round++) {
		die(l, rx_link(l->b), round % 2);
		before = searched(l);
		for (i = 0; i < 200; i++)
			talk(l, active[i % ACTIVE]);
		looks = searched(l) - before;
		kunit_info(test, "200 messages, %llu looks at %d Endpoints\n",
			   looks, CROWD + 1);
		KUNIT_EXPECT_LE(test, looks, 2 * ACTIVE * (CROWD + 1ULL));
	}
}

static struct kunit_case lost_cases[] = {
	KUNIT_CASE_PARAM(R4_gives_all_back, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R4_in_doubt, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R4_more_than_the_queue, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R5_idle_one_is_freed, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R4_last_wqe_is_late, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R4_last_wqe_never_comes, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R4_last_wqe_of_a_failed_attempt, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R4_last_wqe_of_another, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R4_no_last_wqe_of_a_refused_attempt, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R8_cost_of_a_message, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-lost", lost_cases, "buffers of an SRQ that a device forgets");
KDAPL_IMPORT_TEST;
