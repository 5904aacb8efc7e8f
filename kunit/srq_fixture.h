/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the suites of the receive side share, on top of fixture.h.
 *
 * A bench is a side that receives and a side that sends, in the same IA of the
 * test bed, with any number of connections between them. Every message has a
 * seed of its own from which its content is made; every receive buffer a cookie
 * of its own, which also is its place in the receiver's memory.
 *
 * A message is delivered synchronously: it is sent, and its sender and the
 * receiver's counts have seen it, before rx_deliver() returns.
 */
#ifndef KDAPL_KUNIT_SRQ_FIXTURE_H
#define KDAPL_KUNIT_SRQ_FIXTURE_H

#include "fixture.h"

#define RX_LEN		64		/* of a message, bytes */
#define RX_SLOTS	(KD_BUF_LEN / RX_LEN)

/*
 * struct rx_link - a connection
 * @in: EP that receives
 * @out: EP that sends
 * @id: tells the messages of one from those of others
 * @sent: messages
 * @reaped: messages
 */
struct rx_link {
	DAT_EP_HANDLE in;
	DAT_EP_HANDLE out;
	u32 id;
	u32 sent;
	u32 reaped;
};

/*
 * struct rx_bench - two sides
 * @posted: receive buffers ever, the next one's cookie
 * @sends: messages ever
 */
struct rx_bench {
	struct kunit *test;
	struct kd_side *in;
	struct kd_side *out;
	u64 posted;
	u32 sends;
	u32 links;
};

/* @opts is for the receiving side, whose EPs are made by rx_link(). */
static inline struct rx_bench *rx_open_on(struct kunit *test, const char *ia,
					  struct kd_opts opts)
{
	struct kd_opts out = { .qlen = 256, .no_ep = true };
	struct rx_bench *b;

	b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, b);
	opts.no_ep = true;
	if (!opts.qlen)
		opts.qlen = 1024;
	b->test = test;
	b->in = kd_open(test, ia);
	kd_setup(b->in, &opts);
	b->out = kd_open(test, ia);
	kd_setup(b->out, &out);
	return b;
}

/* For a case whose parameter comes from kd_gen_ia(); plain EPs if @len is 0. */
static inline struct rx_bench *rx_open(struct kunit *test, DAT_COUNT len)
{
	return rx_open_on(test, *(const char * const *)test->param_value,
			  (struct kd_opts) { .srq_len = len });
}

static inline void rx_connect(struct rx_bench *b, struct rx_link *link)
{
	b->in->ep = link->in;
	b->out->ep = link->out;
	kd_connect_pair(b->out, b->in);
}

/* Make both EPs; attributes of the one that receives, or NULL. */
static inline struct rx_link *rx_eps(struct rx_bench *b,
				     const DAT_EP_ATTR *attr)
{
	struct rx_link *link;

	link = kunit_kzalloc(b->test, sizeof(*link), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(b->test, link);
	link->id = ++b->links;
	link->in = kd_ep(b->in, attr);
	link->out = kd_ep(b->out, NULL);
	return link;
}

static inline struct rx_link *rx_link(struct rx_bench *b)
{
	struct rx_link *link = rx_eps(b, NULL);

	rx_connect(b, link);
	return link;
}

/* ---- Buffers and messages ------------------------------------------------ */

static inline DAT_LMR_TRIPLET rx_seg(struct rx_bench *b, u64 cookie)
{
	return kd_seg(b->in->buf, cookie % RX_SLOTS * RX_LEN, RX_LEN);
}

/* Post the next buffer, to the SRQ or to @link, whatever comes of it. */
static inline DAT_RETURN rx_try_post(struct rx_bench *b, struct rx_link *link)
{
	DAT_LMR_TRIPLET seg = rx_seg(b, b->posted);
	DAT_RETURN ret;

	if (b->in->srq)
		ret = dat_srq_post_recv(b->in->srq, 1, &seg,
					kd_cookie(b->posted));
	else
		ret = dat_ep_post_recv(link->in, 1, &seg, kd_cookie(b->posted),
				       DAT_COMPLETION_DEFAULT_FLAG);
	if (ret == DAT_SUCCESS)
		b->posted++;
	return ret;
}

static inline void rx_post(struct rx_bench *b, struct rx_link *link, int n)
{
	while (n--)
		KD_ASSERT_OK(b->test, rx_try_post(b, link));
}

static inline u32 rx_seed(const struct rx_link *link, u32 seq)
{
	return link->id * 100003 + seq;
}

/* Send the next message; its completion is not waited for. */
static inline DAT_RETURN rx_try_send(struct rx_bench *b, struct rx_link *link)
{
	size_t off = b->sends % RX_SLOTS * RX_LEN;
	DAT_LMR_TRIPLET seg = kd_seg(b->out->buf, off, RX_LEN);
	DAT_RETURN ret;

	kd_fill(b->out->buf->va + off, RX_LEN, rx_seed(link, link->sent));
	ret = dat_ep_post_send(link->out, 1, &seg, kd_cookie(b->sends),
			       DAT_COMPLETION_DEFAULT_FLAG);
	if (ret == DAT_SUCCESS) {
		b->sends++;
		link->sent++;
	}
	return ret;
}

static inline void rx_sent(struct rx_bench *b)
{
	kd_expect_dto(b->test, b->out->req_evd, b->sends - 1, DAT_DTO_SUCCESS,
		      NULL);
}

static inline DAT_SRQ_PARAM rx_query(struct rx_bench *b)
{
	DAT_SRQ_PARAM param = { };

	KD_EXPECT_OK(b->test, dat_srq_query(b->in->srq, DAT_SRQ_FIELD_ALL,
					    &param));
	return param;
}

struct rx_wait {
	struct rx_bench *b;
	DAT_EP_HANDLE ep;
	DAT_COUNT available;
	DAT_COUNT outstanding;
};

static inline bool rx_has_counts(void *data)
{
	struct rx_wait *w = data;
	DAT_SRQ_PARAM now = rx_query(w->b);

	return now.available_dto_count == w->available &&
	       (w->outstanding < 0 ||
		now.outstanding_dto_count == w->outstanding);
}

static inline bool rx_is_idle(void *data)
{
	DAT_BOOLEAN idle = DAT_FALSE;
	struct rx_wait *w = data;

	dat_ep_get_status(w->ep, NULL, &idle, NULL);
	return idle;
}

/* Wait until the SRQ has these counts; @outstanding may be -1 for any. */
static inline void rx_wait_counts(struct rx_bench *b, DAT_COUNT available,
				  DAT_COUNT outstanding)
{
	struct rx_wait w = { b, NULL, available, outstanding };
	DAT_SRQ_PARAM now;

	if (kd_wait_until(rx_has_counts, &w, KD_TIMEOUT_MS))
		return;
	now = rx_query(b);
	KUNIT_FAIL_AND_ABORT(b->test, "%pS: counts %d/%d/%d, want %d/%d",
			     __builtin_return_address(0), now.max_recv_dtos,
			     now.available_dto_count,
			     now.outstanding_dto_count, available, outstanding);
}

/* Now, without waiting: max / available / outstanding. */
static noinline void __maybe_unused
rx_expect_counts(struct rx_bench *b, DAT_COUNT max, DAT_COUNT available,
		 DAT_COUNT outstanding)
{
	void *caller = __builtin_return_address(0);
	DAT_SRQ_PARAM now = rx_query(b);

	KUNIT_EXPECT_EQ_MSG(b->test, now.max_recv_dtos, max, "%pS", caller);
	KUNIT_EXPECT_EQ_MSG(b->test, now.available_dto_count, available, "%pS",
			    caller);
	KUNIT_EXPECT_EQ_MSG(b->test, now.outstanding_dto_count, outstanding,
			    "%pS", caller);
}

/*
 * Send one message and wait until it is counted. With an SRQ there must be a
 * buffer and no other traffic; without one the buffer is posted here and there
 * must be no other.
 */
static inline void rx_deliver(struct rx_bench *b, struct rx_link *link)
{
	struct rx_wait w = { .b = b, .ep = link->in, .outstanding = -1 };
	DAT_COUNT before = 0;

	if (b->in->srq)
		before = rx_query(b).available_dto_count;
	else
		rx_post(b, link, 1);
	KD_ASSERT_OK(b->test, rx_try_send(b, link));
	rx_sent(b);
	if (b->in->srq)
		rx_wait_counts(b, before - 1, -1);
	else
		KUNIT_ASSERT_TRUE(b->test, kd_wait_until(rx_is_idle, &w,
							 KD_TIMEOUT_MS));
}

static inline void rx_deliver_n(struct rx_bench *b, struct rx_link *link, int n)
{
	while (n--)
		rx_deliver(b, link);
}

/*
 * Reap the next message of @link, which must be the next event, and check what
 * is in it. Returns the cookie of its buffer.
 */
static inline u64 rx_reap(struct rx_bench *b, struct rx_link *link)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct kunit *test = b->test;
	DAT_EVENT event;
	void *va;

	KUNIT_ASSERT_TRUE_MSG(test, kd_wait_event(b->in->recv_evd, &event,
						  KD_TIMEOUT_MS),
			      "%pS: no receive", __builtin_return_address(0));
	KUNIT_ASSERT_EQ(test, (u32)event.event_number,
			(u32)DAT_DTO_COMPLETION_EVENT);
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, link->in);
	KUNIT_EXPECT_EQ(test, (u32)dto->status, (u32)DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, (u32)dto->operation, (u32)DAT_DTO_RECEIVE);
	KUNIT_EXPECT_EQ(test, dto->transfered_length, (u32)RX_LEN);
	va = b->in->buf->va + dto->user_cookie.as_64 % RX_SLOTS * RX_LEN;
	KUNIT_EXPECT_TRUE_MSG(test, kd_is_filled(va, RX_LEN,
						 rx_seed(link, link->reaped)),
			      "%pS: message %u of link %u has a wrong content",
			      __builtin_return_address(0), link->reaped,
			      link->id);
	link->reaped++;
	return dto->user_cookie.as_64;
}

static inline void rx_reap_n(struct rx_bench *b, struct rx_link *link, int n)
{
	while (n--)
		rx_reap(b, link);
}

static inline DAT_COUNT rx_held(struct rx_bench *b, struct rx_link *link)
{
	DAT_COUNT n = -1, span = -1;

	KD_EXPECT_OK(b->test, dat_ep_recv_query(link->in, &n, &span));
	KUNIT_EXPECT_EQ(b->test, n, span);
	return n;
}

/* ---- Events -------------------------------------------------------------- */

static inline void rx_expect_async(struct rx_bench *b, DAT_EVENT_NUMBER number,
				   DAT_HANDLE handle, DAT_COUNT reason)
{
	DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	kd_expect_event(b->test, b->in->async_evd, number, &event);
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_PTR_EQ(b->test, data->dat_handle, handle);
	KUNIT_EXPECT_EQ(b->test, data->reason, reason);
}

static inline void rx_expect_low(struct rx_bench *b)
{
	rx_expect_async(b, DAT_ASYNC_SRQ_LOW_WATERMARK, b->in->srq,
			DAT_SRQ_LOW_WATERMARK_EVENT);
}

static inline void rx_expect_soft(struct rx_bench *b, struct rx_link *link)
{
	rx_expect_async(b, DAT_ASYNC_EP_SOFT_HIGH_WATERMARK, link->in,
			DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
}

/* Nothing is queued now: for what would have happened inside a call. */
static noinline void __maybe_unused
rx_expect_empty(struct rx_bench *b, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = { };
	DAT_RETURN ret = dat_evd_dequeue(evd, &event);

	KUNIT_EXPECT_EQ_MSG(b->test, (u32)DAT_GET_TYPE(ret),
			    (u32)DAT_QUEUE_EMPTY, "%pS: event %#x",
			    __builtin_return_address(0), event.event_number);
}

static inline void rx_expect_quiet(struct rx_bench *b)
{
	rx_expect_empty(b, b->in->async_evd);
}

/* Take the connection down and wait for the end of it on both sides. */
static inline void rx_disconnect(struct rx_bench *b, struct rx_link *link)
{
	b->in->ep = link->in;
	b->out->ep = link->out;
	kd_disconnect(b->out, b->in);
}

/* Down, and ready for the next connection. */
static inline void rx_reset(struct rx_bench *b, struct rx_link *link)
{
	KD_ASSERT_OK(b->test, dat_ep_reset(link->in));
	KD_ASSERT_OK(b->test, dat_ep_reset(link->out));
}

#endif /* KDAPL_KUNIT_SRQ_FIXTURE_H */
