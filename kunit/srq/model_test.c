// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clauses R, W and S together: random steps on up to 8 Endpoints and 3 SRQs,
 * compared with a model of a few integers that predicts what each step returns,
 * which events it causes, and what every count is afterwards. Steps are
 * synchronous, so the model is exact: it predicts the buffer of each message.
 * With one CPU it also predicts the order in which messages to several
 * Endpoints are reaped.
 *
 * A failure prints the seed; "insmod model_test.ko seed=... steps=..." replays
 * it.
 */
#include <linux/bitmap.h>
#include <linux/kfifo.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include "param.h"
#include "srq_fixture.h"

KD_PARAM(seed, ulong, 0, "of the random steps; 0: a new one each time");
KD_PARAM(steps, int, 0, "to be made on each device; 0: 100,000, on a debug kernel 1,000");

#define M_SRQS	3
#define M_EPS	8
#define M_MAX	40		/* buffers of an SRQ */
#define M_SLOTS	256		/* all buffers */

/*
 * struct m_srq - the predicted state of an SRQ
 * @on: cookies of the available buffers, in posting order
 */
struct m_srq {
	DAT_SRQ_HANDLE handle;
	int max;
	int outstanding;
	int lw;
	bool armed;
	bool low;			/* this step causes the event */
	DECLARE_KFIFO(on, u64, 64);
};

struct m_ep {
	struct rx_link *link;
	struct m_srq *srq;
	DAT_EP_STATE state;
	int held;
	int soft;
	int hard;
	bool armed;
	bool high;			/* this step causes the event */
};

/* A message that was received and not reaped. */
struct m_message {
	struct m_ep *ep;
	u64 cookie;
	u32 seq;
};

struct model {
	struct kunit *test;
	struct rx_bench *b;
	struct rnd_state rnd;
	int nsrqs;
	int neps;
	struct m_srq srq[M_SRQS];
	struct m_ep ep[M_EPS];
	DECLARE_BITMAP(used, M_SLOTS);
	u64 serial;
	u64 messages;
	DECLARE_KFIFO(waiting, struct m_message, 256);
};

static int m_random(struct model *m, int from, int to)
{
	return from + prandom_u32_state(&m->rnd) % (to - from + 1);
}

static struct m_srq *m_any_srq(struct model *m)
{
	return &m->srq[m_random(m, 0, m->nsrqs - 1)];
}

static struct m_ep *m_any_ep(struct model *m)
{
	return &m->ep[m_random(m, 0, m->neps - 1)];
}

/* ---- What the watermarks do ---------------------------------------------- */

static void m_check_low(struct m_srq *srq)
{
	if (srq->armed && kfifo_len(&srq->on) < srq->lw) {
		srq->armed = false;
		srq->low = true;
	}
}

/*
 * Apply the high watermarks of @ep. Return whether its connection must break.
 */
static bool m_check_high(struct m_ep *ep)
{
	if (ep->armed && ep->held > ep->soft) {
		ep->armed = false;
		ep->high = true;
	}
	return ep->state == DAT_EP_STATE_CONNECTED && ep->hard >= 0 &&
	       ep->held > ep->hard;
}

static void m_expect_end(struct model *m, struct m_ep *ep,
			 DAT_EVENT_NUMBER number)
{
	kd_expect_event(m->test, m->b->in->conn_evd, number, NULL);
	kd_expect_disconnected(m->b->out, NULL);
	ep->state = DAT_EP_STATE_DISCONNECTED;
}

/* ---- Steps --------------------------------------------------------------- */

static void m_post(struct model *m)
{
	struct m_srq *srq = m_any_srq(m);
	unsigned long slot = find_first_zero_bit(m->used, M_SLOTS);
	u64 cookie = m->serial * RX_SLOTS + slot;
	DAT_LMR_TRIPLET seg = rx_seg(m->b, cookie);
	bool room = srq->outstanding < srq->max;

	KD_EXPECT_RET(m->test, room ? DAT_SUCCESS : DAT_INSUFFICIENT_RESOURCES,
		      dat_srq_post_recv(srq->handle, 1, &seg,
					kd_cookie(cookie)));
	if (!room)
		return;
	m->serial++;
	set_bit(slot, m->used);
	srq->outstanding++;
	kfifo_put(&srq->on, cookie);
}

static void m_take(struct model *m, struct m_ep *ep)
{
	struct m_message msg = { .ep = ep, .seq = ep->link->sent - 1 };

	if (!kfifo_get(&ep->srq->on, &msg.cookie))
		KUNIT_FAIL(m->test, "the model has no buffer");
	kfifo_put(&m->waiting, msg);
	ep->held++;
	m->messages++;
	m_check_low(ep->srq);
}

struct m_counts {
	struct m_srq *srq;
	DAT_COUNT available;
};

static bool m_has_counts(void *data)
{
	struct m_counts *want = data;
	DAT_SRQ_PARAM p = { };

	return !dat_srq_query(want->srq->handle, DAT_SRQ_FIELD_ALL, &p) &&
	       p.available_dto_count == want->available;
}

static void m_send(struct model *m)
{
	struct m_ep *ep = m_any_ep(m);
	struct m_counts want = { ep->srq, kfifo_len(&ep->srq->on) - 1 };
	DAT_EVENT event;

	/* A message for an empty SRQ would wait, or end the connection. */
	if (ep->state == DAT_EP_STATE_CONNECTED && want.available < 0)
		return;
	if (ep->state == DAT_EP_STATE_UNCONNECTED) {
		KD_EXPECT_RET(m->test, DAT_INVALID_STATE,
			      rx_try_send(m->b, ep->link));
		return;
	}
	KD_EXPECT_OK(m->test, rx_try_send(m->b, ep->link));
	if (ep->state != DAT_EP_STATE_CONNECTED) {
		kd_expect_dto(m->test, m->b->out->req_evd, m->b->sends - 1,
			      DAT_DTO_ERR_FLUSHED, NULL);
		ep->link->sent--;
		return;
	}
	m_take(m, ep);
	if (m_check_high(ep)) {
		/* The sender may not learn that its message was received. */
		m_expect_end(m, ep, DAT_CONNECTION_EVENT_BROKEN);
		kd_expect_event(m->test, m->b->out->req_evd,
				DAT_DTO_COMPLETION_EVENT, &event);
	} else {
		rx_sent(m->b);
	}
	KUNIT_EXPECT_TRUE(m->test, kd_wait_until(m_has_counts, &want,
						 KD_TIMEOUT_MS));
}

/*
 * Find the message that is reaped next: the oldest one; with several CPUs the
 * oldest to @ep. Receives of a new connection are queued after its event,
 * perhaps by another CPU (N3), so receives of other Endpoints may come first.
 */
static bool m_oldest(struct model *m, DAT_EP_HANDLE ep, struct m_message *msg)
{
	unsigned int n = kfifo_len(&m->waiting);
	struct m_message other;
	bool found = false;

	if (num_online_cpus() == 1)
		return kfifo_get(&m->waiting, msg);
	while (n-- && kfifo_get(&m->waiting, &other)) {
		if (!found && other.ep->link->in == ep) {
			*msg = other;
			found = true;
		} else {
			kfifo_put(&m->waiting, other);
		}
	}
	return found;
}

static void m_reap(struct model *m)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct m_message msg = { };
	DAT_EVENT event = { };
	size_t slot;

	if (kfifo_is_empty(&m->waiting)) {
		KD_EXPECT_RET(m->test, DAT_QUEUE_EMPTY,
			      dat_evd_dequeue(m->b->in->recv_evd, &event));
		return;
	}
	/*
	 * Another CPU may still be queueing the receives of a new connection
	 * (N3).
	 */
	KUNIT_ASSERT_TRUE(m->test, kd_wait_event(m->b->in->recv_evd, &event,
						 KD_TIMEOUT_MS));
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_EQ(m->test, (u32)dto->status, (u32)DAT_DTO_SUCCESS);
	KUNIT_ASSERT_TRUE(m->test, m_oldest(m, dto->ep_handle, &msg));
	KUNIT_EXPECT_PTR_EQ(m->test, dto->ep_handle, msg.ep->link->in);
	KUNIT_EXPECT_EQ(m->test, dto->user_cookie.as_64, msg.cookie);
	slot = msg.cookie % RX_SLOTS;
	KUNIT_EXPECT_TRUE(m->test,
			  kd_is_filled(m->b->in->buf->va + slot * RX_LEN,
				       RX_LEN,
				       rx_seed(msg.ep->link, msg.seq)));
	clear_bit(slot, m->used);
	msg.ep->held--;
	msg.ep->srq->outstanding--;
}

static void m_resize(struct model *m)
{
	struct m_srq *srq = m_any_srq(m);
	int max = m_random(m, 0, M_MAX);
	DAT_RETURN want = DAT_SUCCESS;

	if (!max)
		want = DAT_INVALID_PARAMETER;
	else if (srq->outstanding > max || max < srq->lw)
		want = DAT_INVALID_STATE;
	KD_EXPECT_RET(m->test, want, dat_srq_resize(srq->handle, max));
	if (want == DAT_SUCCESS)
		srq->max = max;
}

static void m_set_lw(struct model *m)
{
	struct m_srq *srq = m_any_srq(m);
	int lw = m_random(m, -1, min(srq->max + 1, 8));
	bool good = lw >= 0 && lw <= srq->max;

	KD_EXPECT_RET(m->test, good ? DAT_SUCCESS : DAT_INVALID_PARAMETER,
		      dat_srq_set_lw(srq->handle, lw));
	if (!good)
		return;
	srq->lw = lw;
	srq->armed = lw > 0;
	m_check_low(srq);
}

static void m_set_watermark(struct model *m)
{
	struct m_ep *ep = m_any_ep(m);
	int soft = m_random(m, -2, 8), hard = m_random(m, -2, 20);
	bool good = soft > -2 && hard > -2;

	KD_EXPECT_RET(m->test, good ? DAT_SUCCESS : DAT_INVALID_PARAMETER,
		      dat_ep_set_watermark(ep->link->in, soft, hard));
	if (!good)
		return;
	ep->soft = soft;
	ep->hard = hard;
	ep->armed = soft >= 0;
	if (m_check_high(ep))
		m_expect_end(m, ep, DAT_CONNECTION_EVENT_BROKEN);
}

static void m_disconnect(struct model *m)
{
	struct m_ep *ep = m_any_ep(m);
	bool mine = m_random(m, 0, 1);

	KD_EXPECT_RET(m->test, ep->state == DAT_EP_STATE_UNCONNECTED ?
				       DAT_INVALID_STATE : DAT_SUCCESS,
		      dat_ep_disconnect(mine ? ep->link->in : ep->link->out,
					DAT_CLOSE_ABRUPT_FLAG));
	if (ep->state == DAT_EP_STATE_CONNECTED)
		m_expect_end(m, ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void m_reset(struct model *m)
{
	struct m_ep *ep = m_any_ep(m);
	bool good = ep->state != DAT_EP_STATE_CONNECTED;
	DAT_RETURN want = good ? DAT_SUCCESS : DAT_INVALID_STATE;

	KD_EXPECT_RET(m->test, want, dat_ep_reset(ep->link->in));
	KD_EXPECT_RET(m->test, want, dat_ep_reset(ep->link->out));
	if (good)
		ep->state = DAT_EP_STATE_UNCONNECTED;
}

static void m_connect(struct model *m)
{
	struct m_ep *ep = m_any_ep(m);

	if (ep->state == DAT_EP_STATE_CONNECTED)
		return;
	rx_reset(m->b, ep->link);
	rx_connect(m->b, ep->link);
	ep->state = DAT_EP_STATE_CONNECTED;
	if (m_check_high(ep))
		m_expect_end(m, ep, DAT_CONNECTION_EVENT_BROKEN);
}

static const struct {
	void (*step)(struct model *m);
	int weight;
	const char *name;
} m_steps[] = {
	{ m_post, 29, "post" },
	{ m_send, 30, "send" },
	{ m_reap, 24, "reap" },
	{ m_resize, 4, "resize" },
	{ m_set_lw, 4, "set_lw" },
	{ m_set_watermark, 2, "set_watermark" },
	{ m_disconnect, 1, "disconnect" },
	{ m_reset, 1, "reset" },
	{ m_connect, 5, "connect" },
};

/* ---- After each step ----------------------------------------------------- */

/* Return whether the model expects this event, and expect it no longer. */
static bool m_expected(struct model *m, const DAT_EVENT *event)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data =
		&event->event_data.asynch_error_event_data;
	bool found = false;
	int i;

	for (i = 0; i < m->nsrqs; i++)
		if (event->event_number == DAT_ASYNC_SRQ_LOW_WATERMARK &&
		    data->dat_handle == (DAT_HANDLE)m->srq[i].handle)
			found = xchg(&m->srq[i].low, false);
	for (i = 0; i < m->neps; i++)
		if (event->event_number == DAT_ASYNC_EP_SOFT_HIGH_WATERMARK &&
		    data->dat_handle == (DAT_HANDLE)m->ep[i].link->in)
			found = xchg(&m->ep[i].high, false);
	return found;
}

static void m_verify_events(struct model *m)
{
	DAT_EVENT event;
	int i, n = 0;

	for (i = 0; i < m->nsrqs; i++)
		n += m->srq[i].low;
	for (i = 0; i < m->neps; i++)
		n += m->ep[i].high;
	while (n--) {
		KUNIT_ASSERT_TRUE(m->test, kd_wait_event(m->b->in->async_evd,
							 &event,
							 KD_TIMEOUT_MS));
		KUNIT_EXPECT_TRUE(m->test, m_expected(m, &event));
	}
	rx_expect_empty(m->b, m->b->in->async_evd);
	rx_expect_empty(m->b, m->b->in->conn_evd);
	rx_expect_empty(m->b, m->b->out->conn_evd);
}

static void m_verify_counts(struct model *m)
{
	DAT_EP_STATE state;
	DAT_SRQ_PARAM p;
	int i;

	for (i = 0; i < m->nsrqs; i++) {
		struct m_srq *srq = &m->srq[i];

		KD_EXPECT_OK(m->test, dat_srq_query(srq->handle,
						    DAT_SRQ_FIELD_ALL, &p));
		KUNIT_EXPECT_EQ(m->test, p.max_recv_dtos, srq->max);
		KUNIT_EXPECT_EQ(m->test, p.low_watermark, srq->lw);
		KUNIT_EXPECT_EQ(m->test, p.available_dto_count,
				(int)kfifo_len(&srq->on));
		KUNIT_EXPECT_EQ(m->test, p.outstanding_dto_count,
				srq->outstanding);
	}
	for (i = 0; i < m->neps; i++) {
		struct m_ep *ep = &m->ep[i];

		KUNIT_EXPECT_EQ(m->test, rx_held(m->b, ep->link), ep->held);
		KD_EXPECT_OK(m->test, dat_ep_get_status(ep->link->in, &state,
							NULL, NULL));
		KUNIT_EXPECT_EQ(m->test, (u32)state, (u32)ep->state);
	}
}

static int m_choose(struct model *m)
{
	int i, n = m_random(m, 0, 99);

	for (i = 0; n >= m_steps[i].weight; i++)
		n -= m_steps[i].weight;
	return i;
}

static struct model *m_open(struct kunit *test, u32 s)
{
	struct model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->test = test;
	m->b = rx_open(test, 0);
	prandom_seed_state(&m->rnd, s);
	INIT_KFIFO(m->waiting);
	m->nsrqs = m_random(m, 1, M_SRQS);
	m->neps = m_random(m, 1, M_EPS);
	for (i = 0; i < m->nsrqs; i++) {
		INIT_KFIFO(m->srq[i].on);
		m->srq[i].max = m_random(m, 1, M_MAX);
		m->srq[i].handle = kd_srq(m->b->in, m->srq[i].max);
	}
	for (i = 0; i < m->neps; i++) {
		struct m_ep *ep = &m->ep[i];

		ep->srq = &m->srq[i % m->nsrqs];
		ep->soft = DAT_WATERMARK_INFINITE;
		ep->hard = DAT_WATERMARK_INFINITE;
		ep->state = DAT_EP_STATE_CONNECTED;
		m->b->in->srq = ep->srq->handle;
		ep->link = rx_link(m->b);
	}
	return m;
}

/* The counts and marks of contract R1 to R3, W1 to W4, S2 and S3. */
static void R_W_S_model(struct kunit *test)
{
	int n = steps ?: kd_slow_kernel() ? 1000 : 100000;
	u32 s = seed ?: get_random_u32();
	struct model *m = m_open(test, s);
	int i, step = 0;

	kunit_info(test, "seed=%u steps=%d: %d SRQs, %d EPs\n", s, n,
		   m->nsrqs, m->neps);
	for (i = 0; i < n; i++) {
		step = m_choose(m);
		m_steps[step].step(m);
		m_verify_events(m);
		m_verify_counts(m);
		KUNIT_ASSERT_EQ_MSG(test, (int)READ_ONCE(test->status),
				    (int)KUNIT_SUCCESS,
				    "seed=%u: step %d, %s", s, i,
				    m_steps[step].name);
		cond_resched();
	}
	while (kfifo_len(&m->waiting))
		m_reap(m);
	m_verify_counts(m);
	rx_expect_empty(m->b, m->b->in->recv_evd);
	kunit_info(test, "%llu messages\n", m->messages);
}

static struct kunit_case model_cases[] = {
	KUNIT_CASE_PARAM_ATTR(R_W_S_model, kd_gen_ia, {.speed = KUNIT_SPEED_SLOW}),
	{ }
};

KD_SUITE("kdapl_model", model_cases, "random steps against a model of the counts");
