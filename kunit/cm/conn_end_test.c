// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How connections end when the two sides differ about it (contract N3, N7): the
 * passive side ends at once, a message of the CM is lost, the peer leaves with our
 * requests under way.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include "../sim/kdapl_sim.h"
#include "device.h"
#include "fixture.h"

/* Attribute IDs of messages of the CM */
#define CM_RTU	0x14
#define CM_DREQ	0x15

static void reset_switches(void *dev)
{
	kdapl_sim_reset(dev);
}

/* The simulated adapter of a side, whose switches are off when the case ends. */
static struct ib_device *sim(struct kd_side *s)
{
	struct ib_device *dev = kd_device(s->test, s->name);

	KUNIT_ASSERT_EQ(s->test, 0, kunit_add_action_or_reset(s->test,
							      reset_switches,
							      dev));
	return dev;
}

/* Lose the next message with this ID between the two sides of the case. */
static void lose(struct kd_side *s, u32 attr)
{
	struct ib_device *dev = sim(s);

	kdapl_sim_set(dev, KDAPL_SIM_drop_attr, attr);
	kdapl_sim_set(dev, KDAPL_SIM_drop_mads, 1);
}

static KD_GENERATOR(gen_sim)
{
	const struct kd_bed *bed = KD_GENERATE(kd_gen_simulated_ia, prev);

	/* iWARP has no messages of the CM. */
	while (bed && bed->traits & KD_IWARP)
		bed = KD_GENERATE(kd_gen_simulated_ia, bed);
	return bed;
}

/* ---- The passive side ends at once ---------------------------------------- */

/* The active side's last message is lost, so the passive side rejects it later. */
static void N3_rejected_when_established(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	lose(a, CM_RTU);
	kd_connect_start(a, p, port);
	KD_ASSERT_OK(test, dat_cr_accept(kd_expect_cr(p), p->ep, 0, NULL));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
	KD_ASSERT_OK(test, dat_ep_free(p->ep));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
	kd_expect_no_event(test, a->conn_evd);
}

#define ATTEMPTS 24

static void N3_accept_and_free(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();
	DAT_EVENT event;
	int i;

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < ATTEMPTS; i++) {
		kd_connect_start(a, p, port);
		KD_ASSERT_OK(test, dat_cr_accept(kd_expect_cr(p), p->ep, 0,
						 NULL));
		KD_ASSERT_OK(test, dat_ep_free(p->ep));
		p->ep = kd_ep(p, NULL);
		KUNIT_ASSERT_TRUE(test, kd_wait_event(a->conn_evd, &event,
						      KD_TIMEOUT_MS));
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			kd_expect_disconnected(a, NULL);
		KUNIT_ASSERT_TRUE(test, kd_wait_state(a->ep,
						      DAT_EP_STATE_DISCONNECTED));
		KD_ASSERT_OK(test, dat_ep_reset(a->ep));
		KUNIT_ASSERT_EQ(test, 0, kd_drain(a->conn_evd));
	}
}

/* ---- A lost message -------------------------------------------------------- */

/* The CM sends a disconnect request again after some seconds. */
static void N7_disconnect_request_is_lost(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;

	kd_connect_pair(a, p);
	lose(a, CM_DREQ);
	KD_ASSERT_OK(test, dat_ep_free(p->ep));
	p->ep = NULL;
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
}

/* Nobody waits for the answer, closing the IA and its device included. */
static void disconnect_request_waits_alone(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	unsigned long start;

	kd_connect_pair(a, p);
	lose(a, CM_DREQ);
	start = jiffies;
	KD_ASSERT_OK(test, dat_ep_disconnect(p->ep, DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_event(test, p->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
	KD_ASSERT_OK(test, dat_ep_reset(p->ep));
	kd_close(p);
	KUNIT_EXPECT_LT(test, jiffies_to_msecs(jiffies - start), 3000);
}

/* ---- Attempts that are given up --------------------------------------------- */

#define FLUSH_MS	5000		/* siw gives up after 10 s */

/* Nobody answers the request: receives come back with the event of that. */
static void R4_receives_of_a_given_up_attempt(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();
	DAT_EVENT event;
	int i;

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < 3; i++)
		kd_recv(a, 0, 64, i);
	KD_ASSERT_OK(test, dat_ep_connect(a->ep, p->addr, port,
					  200 * USEC_PER_MSEC, 0, NULL,
					  DAT_QOS_BEST_EFFORT, 0));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_TIMED_OUT, NULL);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_TRUE(test, kd_wait_event(a->recv_evd, &event,
						      FLUSH_MS));
		KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data
				.user_cookie.as_64, i);
		KUNIT_EXPECT_EQ(test, (int)event.event_data
				.dto_completion_event_data.status,
				(int)DAT_DTO_ERR_FLUSHED);
	}
}

#define STUCK		256		/* items that a workqueue works on */
#define HANGING		(STUCK + 4)

static KD_GENERATOR(gen_simw)
{
	const struct kd_bed *bed = KD_GENERATE(kd_gen_simulated_ia, prev);

	while (bed && !(bed->traits & KD_IWARP))
		bed = KD_GENERATE(kd_gen_simulated_ia, bed);
	return bed;
}

/*
 * iw_cm does not let go of an attempt before the driver's time-out. Meanwhile other
 * connections of that device, and of others, end as they do else.
 */
static void attempts_that_hang_hold_up_nobody(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	struct kd_side *b = kd_open(test, "sim0/1"), *q = kd_open(test, "sim0/1");
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_EP_HANDLE ep = a->ep;
	DAT_EVENT event;
	u16 port = kd_port();
	int i;

	kd_setup(b, NULL);
	kd_setup(q, NULL);
	kd_connect_pair(a, p);
	kd_connect_pair(b, q);
	kdapl_sim_set(sim(a), KDAPL_SIM_black_hole, ~0U);
	attr.max_recv_dtos = 1;
	attr.max_request_dtos = 1;
	a->conn_evd = kd_evd(a, DAT_EVD_CONNECTION_FLAG, HANGING,
			     DAT_UPCALL_NOTIFY);
	for (i = 0; i < HANGING; i++) {
		a->ep = kd_ep(a, &attr);
		KD_ASSERT_OK(test, dat_ep_connect(a->ep, p->addr, port,
						  10 * USEC_PER_MSEC, 0, NULL,
						  DAT_QOS_BEST_EFFORT, 0));
	}
	for (i = 0; i < STUCK; i++)
		kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_TIMED_OUT,
				NULL);
	KD_ASSERT_OK(test, dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	KD_ASSERT_OK(test, dat_ep_disconnect(b->ep, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_EXPECT_TRUE(test, kd_wait_event(p->conn_evd, &event, FLUSH_MS));
	KUNIT_EXPECT_TRUE(test, kd_wait_event(b->conn_evd, &event, FLUSH_MS));
	KUNIT_EXPECT_TRUE(test, kd_wait_event(q->conn_evd, &event, FLUSH_MS));
	for (i = STUCK; i < HANGING; i++)
		kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_TIMED_OUT,
				NULL);
}

/* ---- Queue pairs of one EVD -------------------------------------------------- */

#define TOGETHER_MS	20000

static struct {
	struct kd_hook device;
	struct completion two;
	atomic_t running;
} destroyer;

/* Return when another QP on an SRQ is being destroyed as well. */
static int destroy_two(struct ib_qp *qp, struct ib_udata *udata)
{
	if (qp->srq) {
		if (atomic_inc_return(&destroyer.running) == 2)
			complete_all(&destroyer.two);
		wait_for_completion_timeout(&destroyer.two,
					    msecs_to_jiffies(TOGETHER_MS));
		atomic_dec(&destroyer.running);
	}
	return destroyer.device.real.destroy_qp(qp, udata);
}

/* A device that takes long to destroy a QP does not hold up others of its EVD. */
static void qps_of_an_evd_go_together(struct kunit *test)
{
	struct kd_side *a = kd_open_param(test), *p = kd_open_param(test);
	DAT_EP_HANDLE first;

	kd_setup(a, NULL);
	kd_setup(p, &(struct kd_opts) { .srq_len = 8 });
	kd_connect_pair(a, p);
	kd_ping(a, p);
	first = p->ep;
	a->ep = kd_ep(a, NULL);
	p->ep = kd_ep(p, NULL);
	kd_connect_pair(a, p);
	kd_ping(a, p);
	init_completion(&destroyer.two);
	atomic_set(&destroyer.running, 0);
	kd_hook(test, p->name, &destroyer.device)->ops.destroy_qp = destroy_two;
	KD_ASSERT_OK(test, dat_ep_disconnect(first, DAT_CLOSE_ABRUPT_FLAG));
	KD_ASSERT_OK(test, dat_ep_disconnect(p->ep, DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_event(test, p->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
	kd_expect_event(test, p->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
	KUNIT_EXPECT_TRUE(test, completion_done(&destroyer.two));
}

/* ---- The peer leaves with requests under way ------------------------------- */

#define ROUNDS	60

/* Disconnect when the message has come. */
static void leave(struct kd_recorder *rec, const DAT_EVENT *event,
		  DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;

	if (dto->status == DAT_DTO_SUCCESS)
		dat_ep_disconnect(dto->ep_handle, DAT_CLOSE_GRACEFUL_FLAG);
}

static void N3_received_requests_succeed(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *a = pair.a, *p = pair.p;
	int i, flushed = 0;
	u16 port = kd_port();
	DAT_EVENT event;

	rec->hook = leave;
	p->recv_evd = kd_recorded_evd(p, DAT_EVD_DTO_FLAG, 64,
				      DAT_UPCALL_SINGLE_INSTANCE, rec);
	p->ep = kd_ep(p, NULL);
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < ROUNDS; i++) {
		kd_recv(p, 0, 64, i);
		kd_connect_start(a, p, port);
		kd_accept(a, p);
		kd_send(a, 0, 64, i);
		KUNIT_ASSERT_TRUE(test, kd_wait_event(a->req_evd, &event,
						      KD_TIMEOUT_MS));
		if (event.event_data.dto_completion_event_data.status)
			flushed++;
		kd_expect_disconnected(a, NULL);
		kd_expect_event(test, p->conn_evd,
				DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
		KD_ASSERT_OK(test, dat_ep_reset(a->ep));
		KD_ASSERT_OK(test, dat_ep_reset(p->ep));
	}
	/*
	 * siw_sq_flush() takes the request that siw's sending thread has sent and not yet
	 * completed for one that was not sent, if the peer's FIN comes on another CPU.
	 */
	if (!kd_is_iwarp(a) || num_online_cpus() == 1)
		KUNIT_EXPECT_EQ_MSG(test, flushed, 0, "of %d", ROUNDS);
}

/*
 * The acknowledgment comes after the peer has disconnected: on rxe it is thrown away
 * when the QP has gone to ERR by then.
 */
static void N3_acknowledged_late(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	struct ib_device *dev = sim(a);

	kd_connect_pair(a, p);
	kd_recv(p, 0, 64, 1);
	kdapl_sim_set(dev, KDAPL_SIM_hold_acks, 1);
	kd_send(a, 0, 64, 2);
	kd_expect_dto(test, p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	KD_ASSERT_OK(test, dat_ep_disconnect(p->ep, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_ASSERT_TRUE(test, kd_wait_state(a->ep, DAT_EP_STATE_DISCONNECTED));
	kdapl_sim_set(dev, KDAPL_SIM_hold_acks, 0);
	kd_expect_dto(test, a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
}

/* Who frees the Endpoint or disconnects abruptly does not wait for requests. */
static void abrupt_end_while_draining(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	unsigned int took, i;
	unsigned long start;

	/* A busy machine may delay some of them. */
	for (i = 0; i < 8; i++) {
		kd_connect_pair(a, p);
		kd_send(a, 0, 64, 1);
		KD_ASSERT_OK(test, dat_ep_disconnect(p->ep, DAT_CLOSE_ABRUPT_FLAG));
		KUNIT_ASSERT_TRUE(test, kd_wait_state(a->ep, DAT_EP_STATE_DISCONNECTED));
		start = jiffies;
		KD_ASSERT_OK(test, dat_ep_disconnect(a->ep, DAT_CLOSE_ABRUPT_FLAG));
		kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
		kd_expect_dto(test, a->req_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
		took = jiffies_to_msecs(jiffies - start);
		if (took < 80 || kd_slow_kernel())
			break;
		kd_expect_event(test, p->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
		KD_ASSERT_OK(test, dat_ep_reset(a->ep));
		KD_ASSERT_OK(test, dat_ep_reset(p->ep));
	}
	if (!kd_slow_kernel())
		KUNIT_EXPECT_LT(test, took, 80);
}

/* A request that the peer never takes holds up the end for a moment only. */
static void N3_request_that_is_never_received(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;

	kd_connect_pair(a, p);
	kd_send(a, 0, 64, 1);
	KD_ASSERT_OK(test, dat_ep_disconnect(p->ep, DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
	kd_expect_dto(test, a->req_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
	/* After that, requests are flushed at once. */
	kd_send(a, 0, 64, 2);
	kd_expect_dto(test, a->req_evd, 2, DAT_DTO_ERR_FLUSHED, NULL);
}

/* ---- A device that flushes in another order -------------------------------------- */

static struct kd_hook backwards;

static int poll_backwards(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	int got = backwards.real.poll_cq(cq, n, wc), i;

	if (got < 2 || wc[0].status != IB_WC_WR_FLUSH_ERR || cq->wc)
		return got;
	for (i = 0; i < got / 2; i++)
		swap(wc[i], wc[got - 1 - i]);
	return got;
}

/*
 * siw flushes at once what is posted while it flushes, before what it has not come to. The
 * events come in the order of posting all the same, and none is left of an Endpoint that is
 * freed: they are looked for up to the last one.
 */
static void R4_flushed_in_order(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	enum { RECVS = 8 };
	int i;

	kd_connect_pair(c.a, c.p);
	for (i = 0; i < RECVS; i++)
		kd_recv(c.p, i * 64, 64, i);
	kd_hook(test, c.p->name, &backwards)->ops.poll_cq = poll_backwards;
	kd_disconnect(c.a, c.p);
	for (i = 0; i < RECVS; i++)
		kd_expect_dto(test, c.p->recv_evd, i, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_no_event(test, c.p->recv_evd);
}

/* ---- Requests behind the end ------------------------------------------------ */

/*
 * The consumer has ended an attempt to connect. Over iWARP the driver makes the QP ready when
 * the peer answers, whatever the consumer has done: a request that it had then would be
 * executed, and succeed on a connection that was never there.
 */
static void N3_request_behind_an_attempt(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();
	DAT_PSP_HANDLE psp = kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	DAT_CR_HANDLE cr;

	kd_connect_start(a, p, port);
	cr = kd_expect_cr(p);
	kd_count_doorbells(test, a->name);
	KD_EXPECT_OK(test, dat_ep_disconnect(a->ep, DAT_CLOSE_ABRUPT_FLAG));
	kd_send(a, 0, 64, 1);
	kd_expect_dto(test, a->req_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	KUNIT_EXPECT_EQ(test, atomic_read(&kd_doorbells), 0);
	kd_may_fail(dat_cr_reject(cr, 0, NULL));
	KD_EXPECT_OK(test, dat_psp_free(psp));
}

static struct kunit_case conn_end_cases[] = {
	KUNIT_CASE_PARAM(N3_rejected_when_established, gen_sim),
	KUNIT_CASE_PARAM(N3_accept_and_free, kd_gen_ia),
	KUNIT_CASE_PARAM(N7_disconnect_request_is_lost, gen_sim),
	KUNIT_CASE_PARAM(disconnect_request_waits_alone, gen_sim),
	KUNIT_CASE_PARAM(R4_receives_of_a_given_up_attempt, kd_gen_ia),
	KUNIT_CASE_PARAM(attempts_that_hang_hold_up_nobody, gen_simw),
	KUNIT_CASE_PARAM(qps_of_an_evd_go_together, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_received_requests_succeed, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_acknowledged_late, gen_sim),
	KUNIT_CASE_PARAM(N3_request_that_is_never_received, gen_sim),
	KUNIT_CASE_PARAM(abrupt_end_while_draining, gen_sim),
	KUNIT_CASE_PARAM(R4_flushed_in_order, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_request_behind_an_attempt, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-conn-end", conn_end_cases, "ends of connections that differ");
