// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hostile peers of a Shared Receive Queue: a sender that takes every buffer
 * (W3), and connections that end in the middle of a message (R4).
 */
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include "device.h"
#include "srq_fixture.h"

/* ---- A flood ------------------------------------------------------------- */

#define FLOOD_BUFFERS	64
#define FLOOD_HARD	8
#define FLOOD_MESSAGES	50
#define FLOOD_PATIENCE	300		/* ms */

/*
 * struct flood - a peer that sends without end, and an honest one
 * @evd: receives of the flooder's messages, which the consumer is slow to reap
 * @req_evd: Sends of the flooder
 * @guarded: the hard watermark is set
 */
struct flood {
	struct rx_bench *b;
	struct rx_link *honest;
	struct rx_link flooder;
	DAT_EVD_HANDLE evd;
	DAT_EVD_HANDLE req_evd;
	bool guarded;
	bool broken;
	u32 done;
	u64 worst_ns;
};

static int flood_thread(void *data)
{
	struct flood *f = data;
	DAT_LMR_TRIPLET seg = kd_seg(f->b->out->buf, 0, RX_LEN);

	while (!kthread_should_stop()) {
		DAT_EP_STATE state = DAT_EP_STATE_DISCONNECTED;

		dat_ep_get_status(f->flooder.out, &state, NULL, NULL);
		if (state == DAT_EP_STATE_CONNECTED &&
		    dat_ep_post_send(f->flooder.out, 1, &seg, kd_cookie(0),
				     DAT_COMPLETION_DEFAULT_FLAG) ==
		    DAT_SUCCESS) {
			cond_resched();
			continue;
		}
		/* The queue is full: go on when a Send has completed. */
		if (!kd_drain(f->req_evd) || state != DAT_EP_STATE_CONNECTED)
			schedule_timeout_interruptible(1);
	}
	return 0;
}

static struct flood *flood_open(struct kunit *test)
{
	struct flood *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct rx_bench *b = rx_open(test, FLOOD_BUFFERS);
	DAT_EVD_HANDLE recv = b->in->recv_evd, req = b->out->req_evd;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->b = b;
	f->honest = rx_link(b);
	/* The flooder has EVDs of its own. */
	b->in->recv_evd = kd_evd(b->in, DAT_EVD_DTO_FLAG, 128,
				 DAT_UPCALL_NOTIFY);
	b->out->req_evd = kd_evd(b->out, DAT_EVD_DTO_FLAG, 64,
				 DAT_UPCALL_NOTIFY);
	f->flooder = *rx_link(b);
	f->evd = b->in->recv_evd;
	f->req_evd = b->out->req_evd;
	b->in->recv_evd = recv;
	b->out->req_evd = req;
	rx_post(b, NULL, FLOOD_BUFFERS);
	return f;
}

/*
 * A connection was broken: reap its receives, so that others can use the
 * buffers.
 */
static void flood_look(struct flood *f)
{
	DAT_EVENT event;

	if (dat_evd_dequeue(f->b->in->conn_evd, &event) == DAT_SUCCESS &&
	    event.event_data.connect_event_data.ep_handle == f->flooder.in)
		f->broken = true;
	if (!f->broken)
		return;
	while (dat_evd_dequeue(f->evd, &event) == DAT_SUCCESS)
		rx_try_post(f->b, NULL);
}

/*
 * The flooder has lost its connection, or the SRQ its last buffer. In the latter case a
 * message of the honest peer waits, except over iWARP: there it would end the
 * connection, so a mark has to act first. On two CPUs the flooder may be faster.
 */
static bool flood_has_struck(void *data)
{
	struct flood *f = data;

	flood_look(f);
	if (f->guarded && kd_is_iwarp(f->b->in))
		return f->broken;
	return f->broken || !rx_query(f->b).available_dto_count;
}

struct flood_wait {
	struct flood *f;
	DAT_EVENT *event;
};

static bool flood_arrived(void *data)
{
	struct flood_wait *w = data;

	flood_look(w->f);
	return dat_evd_dequeue(w->f->b->in->recv_evd, w->event) == DAT_SUCCESS;
}

/*
 * The honest peer sends one message at a time, and waits until it is received.
 */
static void flood_talk(struct flood *f)
{
	struct rx_bench *b = f->b;
	DAT_EVENT event;
	u64 t0, ns;

	while (f->done < FLOOD_MESSAGES) {
		struct flood_wait w = { f, &event };

		t0 = ktime_get_ns();
		if (rx_try_send(b, f->honest) ||
		    !kd_wait_until(flood_arrived, &w, FLOOD_PATIENCE) ||
		    event.event_data.dto_completion_event_data.status)
			return;
		ns = ktime_get_ns() - t0;
		f->worst_ns = max(f->worst_ns, ns);
		f->done++;
		kd_drain(b->out->req_evd);
		rx_try_post(b, NULL);
	}
}

static void flood_run(struct kunit *test, struct flood *f)
{
	struct task_struct *task = kthread_run(flood_thread, f, "rx_flood");

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(flood_has_struck, f,
					      KD_TIMEOUT_MS));
	flood_talk(f);
	kthread_stop(task);
}

static void W3_flood(struct kunit *test)
{
	struct flood *f = flood_open(test);

	KD_ASSERT_OK(test, dat_ep_set_watermark(f->flooder.in,
						DAT_WATERMARK_INFINITE,
						FLOOD_HARD));
	f->guarded = true;
	flood_run(test, f);
	kunit_info(test, "hard watermark: honest %u of %u, worst %llu us\n",
		   f->done, FLOOD_MESSAGES, f->worst_ns / NSEC_PER_USEC);
	KUNIT_EXPECT_TRUE(test, f->broken);
	KUNIT_EXPECT_EQ(test, f->done, FLOOD_MESSAGES);
	flood_look(f);
	rx_expect_counts(f->b, FLOOD_BUFFERS, FLOOD_BUFFERS, FLOOD_BUFFERS);
}

/* Without a watermark the flooder starves the honest peer. */
static void W3_flood_unguarded(struct kunit *test)
{
	struct flood *f = flood_open(test);

	flood_run(test, f);
	kunit_info(test, "no watermark: honest %u of %u within %u ms\n",
		   f->done, FLOOD_MESSAGES, FLOOD_PATIENCE);
	/*
	 * iWARP has no RNR: the first message that finds no buffer ends its
	 * connection, and that may be the flooder's.
	 */
	if (!kd_is_iwarp(f->b->in) || !f->broken)
		KUNIT_EXPECT_LT(test, f->done, FLOOD_MESSAGES);
}

/* ---- Death in the middle of a message ------------------------------------ */

#define MID_BUFFERS	4
#define MID_LEN		SZ_128K

static struct {
	struct kd_hook device;
	void (*handler)(struct ib_event *event, void *context);
	DAT_EP_HANDLE victim;
	atomic_t armed;
} mid;

/* Event handler: the first packet of a message has taken a buffer. */
static void mid_event(struct ib_event *event, void *context)
{
	DAT_EP_HANDLE victim = xchg(&mid.victim, NULL);

	mid.handler(event, context);
	if (victim)
		dat_ep_disconnect(victim, DAT_CLOSE_ABRUPT_FLAG);
}

static int mid_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr,
			  enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	int err;

	if (srq->event_handler != mid_event) {
		mid.handler = srq->event_handler;
		srq->event_handler = mid_event;
	}
	err = mid.device.real.modify_srq(srq, attr, mask, udata);
	atomic_inc(&mid.armed);
	kd_wake();
	return err;
}

static void mid_install(struct kd_side *side)
{
	mid.victim = NULL;
	atomic_set(&mid.armed, 0);
	kd_hook(side->test, side->name, &mid.device)->ops.modify_srq =
		mid_modify_srq;
}

static bool mid_is_armed(void *data)
{
	return atomic_read(&mid.armed) > *(int *)data;
}

/*
 * struct mid_bench - a connection that is cut off again and again
 * @to: memory of the buffers, and of others that replace them
 * @beside: another connection stays on the SRQ
 * @lost: messages that died with their buffer
 * @flushed: messages that were cut off whose buffer came back
 */
struct mid_bench {
	struct rx_bench *b;
	struct kd_buf *to[2 * MID_BUFFERS];
	struct kd_buf *from;
	struct rx_link *victim;
	bool beside;
	u32 lost, flushed;
};

static DAT_RETURN mid_try_post(struct mid_bench *m, u64 cookie)
{
	DAT_LMR_TRIPLET seg = kd_seg(m->to[cookie], 0, MID_LEN);

	return dat_srq_post_recv(m->b->in->srq, 1, &seg, kd_cookie(cookie));
}

static void mid_post(struct mid_bench *m, u64 cookie)
{
	KD_ASSERT_OK(m->b->test, mid_try_post(m, cookie));
}

static struct mid_bench *mid_open(struct kunit *test)
{
	struct mid_bench *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u64 cookie;

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->b = rx_open(test, MID_BUFFERS);
	m->from = kd_buf_alloc(m->b->out, MID_LEN);
	m->victim = rx_eps(m->b, NULL);
	for (cookie = 0; cookie < ARRAY_SIZE(m->to); cookie++)
		m->to[cookie] = kd_buf_alloc(m->b->in, MID_LEN);
	for (cookie = 0; cookie < MID_BUFFERS; cookie++)
		mid_post(m, cookie);
	mid_install(m->b->in);
	return m;
}

/* Reap all receives and post their buffers again. Return their number. */
static u32 mid_repost(struct mid_bench *m)
{
	DAT_EVENT event;
	u32 n = 0;

	while (dat_evd_dequeue(m->b->in->recv_evd, &event) == DAT_SUCCESS) {
		if (event.event_data.dto_completion_event_data.status !=
		    DAT_DTO_SUCCESS)
			m->flushed++;
		mid_post(m, event.event_data.dto_completion_event_data
				 .user_cookie.as_64);
		n++;
	}
	return n;
}

/*
 * Send a long message and end the receiver's connection in the middle of it. If the
 * device has forgotten the buffer, it is left out of the counts beside another
 * connection, which might have it, and the low mark fires.
 */
static void mid_round(struct mid_bench *m)
{
	DAT_LMR_TRIPLET seg = kd_seg(m->from, 0, MID_LEN);
	struct rx_bench *b = m->b;
	struct kunit *test = b->test;
	DAT_COUNT has = rx_query(b).available_dto_count;
	int armed;

	rx_connect(b, m->victim);
	armed = atomic_read(&mid.armed);
	KD_ASSERT_OK(test, dat_srq_set_lw(b->in->srq, has));
	KUNIT_ASSERT_TRUE(test, kd_wait_until(mid_is_armed, &armed,
					      KD_TIMEOUT_MS));
	WRITE_ONCE(mid.victim, m->victim->in);
	KD_ASSERT_OK(test, dat_ep_post_send(m->victim->out, 1, &seg,
					    kd_cookie(1),
					    DAT_COMPLETION_DEFAULT_FLAG));
	kd_expect_event(test, b->in->conn_evd,
			DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	/* Otherwise it would wait whether its message has arrived. */
	KD_ASSERT_OK(test, dat_ep_disconnect(m->victim->out,
					     DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_disconnected(b->out, NULL);
	if (!mid_repost(m)) {
		m->lost++;
		if (m->beside) {
			has--;
			rx_expect_low(b);
		}
	}
	kd_drain(b->out->req_evd);
	KD_ASSERT_OK(test, dat_srq_set_lw(b->in->srq, 0));
	kd_drain(b->in->async_evd);
	rx_expect_counts(b, MID_BUFFERS, has, has);
	rx_reset(b, m->victim);
}

/* Expect that each of @n buffers receives a message, without posting any again. */
static void mid_expect_all(struct mid_bench *m, struct rx_link *link, int n)
{
	struct rx_bench *b = m->b;
	u64 cookie, seen = 0;
	DAT_EVENT event;
	int i;

	for (i = 0; i < n; i++) {
		KD_ASSERT_OK(b->test, rx_try_send(b, link));
		rx_sent(b);
		kd_expect_event(b->test, b->in->recv_evd,
				DAT_DTO_COMPLETION_EVENT, &event);
		cookie = event.event_data.dto_completion_event_data
				.user_cookie.as_64;
		seen |= BIT_ULL(cookie);
		KUNIT_EXPECT_TRUE(b->test,
				  kd_is_filled(m->to[cookie]->va, RX_LEN,
					       rx_seed(link, link->sent - 1)));
	}
	KUNIT_EXPECT_EQ(b->test, seen, BIT_ULL(n) - 1);
	rx_expect_counts(b, MID_BUFFERS, 0, 0);
}

static void mid_report(struct mid_bench *m, int rounds)
{
	kunit_info(m->b->test, "%u of %d messages died with their buffer, of %u it came back\n",
		   m->lost, rounds, m->flushed);
	/*
	 * This test tests nothing if no message was cut off. Of such a message
	 * rxe forgets the buffer; the rxe of Linux 6.1 flushes it.
	 */
	if (kd_has(m->b->in, KD_CUTS_MESSAGES))
		KUNIT_EXPECT_GT(m->b->test, m->lost + m->flushed, 0);
}

/* siw never forgets a buffer and takes long to give up. */
static int mid_rounds(struct mid_bench *m)
{
	return kd_has(m->b->in, KD_CUTS_MESSAGES) ? 100 : 10;
}

/* Messages are cut off on the only connection of the SRQ. */
static void R4_dies_alone(struct kunit *test)
{
	struct mid_bench *m = mid_open(test);
	int i;

	for (i = 0; i < mid_rounds(m); i++)
		mid_round(m);
	mid_report(m, mid_rounds(m));
	rx_connect(m->b, m->victim);
	mid_expect_all(m, m->victim, MID_BUFFERS);
}

/* Messages are cut off while another connection goes on receiving. */
static void R4_dies_beside_another(struct kunit *test)
{
	struct mid_bench *m = mid_open(test);
	struct rx_link *other = rx_link(m->b);
	int i;

	m->beside = true;
	for (i = 0; i < mid_rounds(m); i++) {
		mid_round(m);
		KD_ASSERT_OK(test, rx_try_send(m->b, other));
		rx_sent(m->b);
		rx_wait_counts(m->b, MID_BUFFERS - 1, MID_BUFFERS);
		KUNIT_EXPECT_EQ(test, mid_repost(m), 1);
	}
	mid_report(m, mid_rounds(m));
	mid_expect_all(m, other, MID_BUFFERS);
}

/*
 * As many messages are cut off beside a silent connection as there are buffers.
 * Others may be posted in their place, and all of them are found when that one
 * receives.
 */
static void R4_dies_beside_an_idle_one(struct kunit *test)
{
	struct mid_bench *m = mid_open(test);
	struct rx_link *other = rx_link(m->b);
	int i;

	m->beside = true;
	for (i = 0; i < mid_rounds(m) && m->lost < MID_BUFFERS; i++)
		mid_round(m);
	mid_report(m, i);
	for (i = 0; i < m->lost; i++)
		mid_post(m, MID_BUFFERS + i);
	rx_expect_counts(m->b, MID_BUFFERS, MID_BUFFERS, MID_BUFFERS);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, mid_try_post(m, 0));
	mid_expect_all(m, other, MID_BUFFERS + m->lost);
}

/* Packets that have @link's peer write to, and read from, the receiver's memory. */
static void rdma_both_ways(struct rx_bench *b, struct rx_link *link)
{
	DAT_RMR_TRIPLET far = kd_remote(b->in->buf, SZ_4K, SZ_4K);
	DAT_LMR_TRIPLET near = kd_seg(b->out->buf, SZ_4K, SZ_4K);

	KD_ASSERT_OK(b->test,
		     dat_ep_post_rdma_write(link->out, 1, &near, kd_cookie(1),
					    &far, 0));
	kd_expect_dto(b->test, b->out->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	KD_ASSERT_OK(b->test,
		     dat_ep_post_rdma_read(link->out, 1, &near, kd_cookie(2),
					   &far, 0));
	kd_expect_dto(b->test, b->out->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

/*
 * Connections that have carried RDMA and messages end beside a silent one, none of
 * them within a message: no buffer is in doubt, whatever is left in the queue.
 */
static void R4_dies_after_rdma(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, MID_BUFFERS);
	struct rx_link *idle = rx_link(b), *victim;
	int i, n = MID_BUFFERS;

	if (kd_has(b->in, KD_SIMULATED) && kd_is_iwarp(b->in))
		kunit_skip(test, "this adapter may have lost one, and cannot be probed");
	rx_post(b, NULL, MID_BUFFERS);
	KD_ASSERT_OK(test, dat_srq_set_lw(b->in->srq, 1));
	for (i = 0; i < 3 * MID_BUFFERS; i++) {
		victim = rx_link(b);
		rdma_both_ways(b, victim);
		if (i % 3 == 2 && n > 1) {
			rx_deliver(b, victim);
			rx_reap(b, victim);
			n--;
		}
		KD_ASSERT_OK(test, dat_ep_disconnect(victim->in,
						     DAT_CLOSE_ABRUPT_FLAG));
		kd_expect_disconnected(b->in, NULL);
		KD_ASSERT_OK(test, dat_ep_disconnect(victim->out,
						     DAT_CLOSE_ABRUPT_FLAG));
		kd_expect_disconnected(b->out, NULL);
		rx_expect_counts(b, MID_BUFFERS, n, n);
	}
	kd_expect_no_event(test, b->in->async_evd);
	rx_post(b, NULL, MID_BUFFERS - n);
	rx_deliver_n(b, idle, MID_BUFFERS);
	rx_expect_low(b);
	rx_reap_n(b, idle, MID_BUFFERS);
	rx_expect_counts(b, MID_BUFFERS, 0, 0);
}

static struct kunit_case srq_hostile_cases[] = {
	KUNIT_CASE_PARAM(W3_flood, kd_gen_ia),
	KUNIT_CASE_PARAM(W3_flood_unguarded, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_dies_alone, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_dies_beside_another, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_dies_beside_an_idle_one, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_dies_after_rdma, kd_gen_ia),
	{ }
};

KD_SUITE("kdapl_srq_hostile", srq_hostile_cases,
	 "hostile peers of a Shared Receive Queue");
