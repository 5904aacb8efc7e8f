// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: sides that receive and sides that send, see srq_fixture.h.
 */
#include <linux/module.h>
#include "srq_fixture.h"

/*
 * Open a bench on @ia. @opts is for the receiving side, whose EPs rx_link()
 * makes.
 */
struct rx_bench *rx_open_on(struct kunit *test, const char *ia,
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
EXPORT_SYMBOL_GPL(rx_open_on);

/*
 * Open a bench on the IA of the case, with an SRQ of @len buffers, or without
 * if 0.
 */
struct rx_bench *rx_open(struct kunit *test, DAT_COUNT len)
{
	return rx_open_on(test, *(const char * const *)test->param_value,
			  (struct kd_opts) { .srq_len = len });
}
EXPORT_SYMBOL_GPL(rx_open);

/* As rx_open(), but only queries poll the completion queue. */
struct rx_bench *rx_open_polled(struct kunit *test, DAT_COUNT len)
{
	return rx_open_on(test, *(const char * const *)test->param_value,
			  (struct kd_opts) { .srq_len = len, .polled = true });
}
EXPORT_SYMBOL_GPL(rx_open_polled);

void rx_connect(struct rx_bench *b, struct rx_link *link)
{
	b->in->ep = link->in;
	b->out->ep = link->out;
	kd_connect_pair(b->out, b->in);
}
EXPORT_SYMBOL_GPL(rx_connect);

/*
 * Make both EPs of a link. @attr is for the EP that receives; it may be NULL.
 */
struct rx_link *rx_eps(struct rx_bench *b, const DAT_EP_ATTR *attr)
{
	struct rx_link *link;

	link = kunit_kzalloc(b->test, sizeof(*link), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(b->test, link);
	link->id = ++b->links;
	link->in = kd_ep(b->in, attr);
	link->out = kd_ep(b->out, NULL);
	return link;
}
EXPORT_SYMBOL_GPL(rx_eps);

struct rx_link *rx_link(struct rx_bench *b)
{
	struct rx_link *link = rx_eps(b, NULL);

	rx_connect(b, link);
	return link;
}
EXPORT_SYMBOL_GPL(rx_link);

/* ---- Buffers and messages ------------------------------------------------ */

DAT_LMR_TRIPLET rx_seg(struct rx_bench *b, u64 cookie)
{
	return kd_seg(b->in->buf, cookie % RX_SLOTS * RX_LEN, RX_LEN);
}
EXPORT_SYMBOL_GPL(rx_seg);

/*
 * Post the next buffer to the SRQ or to @link. Return what the call returned.
 */
DAT_RETURN rx_try_post(struct rx_bench *b, struct rx_link *link)
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
EXPORT_SYMBOL_GPL(rx_try_post);

void rx_post(struct rx_bench *b, struct rx_link *link, int n)
{
	while (n--)
		KD_ASSERT_OK(b->test, rx_try_post(b, link));
}
EXPORT_SYMBOL_GPL(rx_post);

u32 rx_seed(const struct rx_link *link, u32 seq)
{
	return link->id * 100003 + seq;
}
EXPORT_SYMBOL_GPL(rx_seed);

/* Send the next message without waiting for its completion. */
DAT_RETURN rx_try_send(struct rx_bench *b, struct rx_link *link)
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
EXPORT_SYMBOL_GPL(rx_try_send);

void rx_sent(struct rx_bench *b)
{
	kd_expect_dto(b->test, b->out->req_evd, b->sends - 1, DAT_DTO_SUCCESS,
		      NULL);
}
EXPORT_SYMBOL_GPL(rx_sent);

/* Send @n messages one after the other, which need not arrive yet. */
void rx_send_n(struct rx_bench *b, struct rx_link *link, int n)
{
	while (n--) {
		KD_ASSERT_OK(b->test, rx_try_send(b, link));
		rx_sent(b);
	}
}
EXPORT_SYMBOL_GPL(rx_send_n);

DAT_SRQ_PARAM rx_query(struct rx_bench *b)
{
	DAT_SRQ_PARAM param = { };

	KD_EXPECT_OK(b->test, dat_srq_query(b->in->srq, DAT_SRQ_FIELD_ALL,
					    &param));
	return param;
}
EXPORT_SYMBOL_GPL(rx_query);

struct rx_wait {
	struct rx_bench *b;
	DAT_EP_HANDLE ep;
	DAT_COUNT available;
	DAT_COUNT outstanding;
};

static bool rx_has_counts(void *data)
{
	struct rx_wait *w = data;
	DAT_SRQ_PARAM now = rx_query(w->b);

	return now.available_dto_count == w->available &&
	       (w->outstanding < 0 ||
		now.outstanding_dto_count == w->outstanding);
}

static bool rx_is_idle(void *data)
{
	DAT_BOOLEAN idle = DAT_FALSE;
	struct rx_wait *w = data;

	dat_ep_get_status(w->ep, NULL, &idle, NULL);
	return idle;
}

/* Wait until the SRQ has these counts. @outstanding may be -1, for any. */
void rx_wait_counts(struct rx_bench *b, DAT_COUNT available,
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
EXPORT_SYMBOL_GPL(rx_wait_counts);

/* Expect that the SRQ has these counts now, without waiting. */
void rx_expect_counts(struct rx_bench *b, DAT_COUNT max, DAT_COUNT available,
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
EXPORT_SYMBOL_GPL(rx_expect_counts);

/*
 * Send one message and wait until it is counted. With an SRQ there must be a
 * buffer and no other traffic; without one the buffer is posted here and there
 * must be no other.
 */
void rx_deliver(struct rx_bench *b, struct rx_link *link)
{
	struct rx_wait w = { .b = b, .ep = link->in, .outstanding = -1 };
	DAT_COUNT before = 0;

	if (b->in->srq)
		before = rx_query(b).available_dto_count;
	else
		rx_post(b, link, 1);
	rx_send_n(b, link, 1);
	if (b->in->srq)
		rx_wait_counts(b, before - 1, -1);
	else
		KUNIT_ASSERT_TRUE(b->test, kd_wait_until(rx_is_idle, &w,
							 KD_TIMEOUT_MS));
}
EXPORT_SYMBOL_GPL(rx_deliver);

void rx_deliver_n(struct rx_bench *b, struct rx_link *link, int n)
{
	while (n--)
		rx_deliver(b, link);
}
EXPORT_SYMBOL_GPL(rx_deliver_n);

/* Post 2 * @n buffers, and deliver @n messages on each of two connections, in turn. */
void rx_deliver_in_turn(struct rx_bench *b, struct rx_link *x, struct rx_link *y, int n)
{
	rx_post(b, x, 2 * n);
	while (n--) {
		rx_deliver(b, x);
		rx_deliver(b, y);
	}
}
EXPORT_SYMBOL_GPL(rx_deliver_in_turn);

/*
 * Reap the next message of @link, which must be the next event, and check what
 * is in it. Returns the cookie of its buffer.
 */
u64 rx_reap(struct rx_bench *b, struct rx_link *link)
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
EXPORT_SYMBOL_GPL(rx_reap);

void rx_reap_n(struct rx_bench *b, struct rx_link *link, int n)
{
	while (n--)
		rx_reap(b, link);
}
EXPORT_SYMBOL_GPL(rx_reap_n);

/* Deliver @n messages, each of which is reaped before the next one. */
void rx_pass_n(struct rx_bench *b, struct rx_link *link, int n)
{
	while (n--) {
		rx_deliver(b, link);
		rx_reap(b, link);
	}
}
EXPORT_SYMBOL_GPL(rx_pass_n);

DAT_COUNT rx_held(struct rx_bench *b, struct rx_link *link)
{
	DAT_COUNT n = -1, span = -1;

	KD_EXPECT_OK(b->test, dat_ep_recv_query(link->in, &n, &span));
	KUNIT_EXPECT_EQ(b->test, n, span);
	return n;
}
EXPORT_SYMBOL_GPL(rx_held);

/* ---- Events -------------------------------------------------------------- */

void rx_expect_async(struct rx_bench *b, DAT_EVENT_NUMBER number,
		     DAT_HANDLE handle, DAT_COUNT reason)
{
	DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	kd_expect_event(b->test, b->in->async_evd, number, &event);
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_PTR_EQ(b->test, data->dat_handle, handle);
	KUNIT_EXPECT_EQ(b->test, data->reason, reason);
}
EXPORT_SYMBOL_GPL(rx_expect_async);

void rx_expect_low(struct rx_bench *b)
{
	rx_expect_async(b, DAT_ASYNC_SRQ_LOW_WATERMARK, b->in->srq,
			DAT_SRQ_LOW_WATERMARK_EVENT);
}
EXPORT_SYMBOL_GPL(rx_expect_low);

void rx_expect_soft(struct rx_bench *b, struct rx_link *link)
{
	rx_expect_async(b, DAT_ASYNC_EP_SOFT_HIGH_WATERMARK, link->in,
			DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
}
EXPORT_SYMBOL_GPL(rx_expect_soft);

/* Expect that the connection of the receiving side has broken. */
void rx_expect_broken(struct rx_bench *b, struct rx_link *link)
{
	DAT_EVENT event;

	kd_expect_event(b->test, b->in->conn_evd, DAT_CONNECTION_EVENT_BROKEN,
			&event);
	KUNIT_EXPECT_PTR_EQ(b->test,
			    event.event_data.connect_event_data.ep_handle,
			    link->in);
}
EXPORT_SYMBOL_GPL(rx_expect_broken);

/* Expect that @evd is empty now, for events that a call would have queued. */
void rx_expect_empty(struct rx_bench *b, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = { };
	DAT_RETURN ret = dat_evd_dequeue(evd, &event);

	KUNIT_EXPECT_EQ_MSG(b->test, (u32)DAT_GET_TYPE(ret),
			    (u32)DAT_QUEUE_EMPTY, "%pS: event %#x",
			    __builtin_return_address(0), event.event_number);
}
EXPORT_SYMBOL_GPL(rx_expect_empty);

void rx_expect_quiet(struct rx_bench *b)
{
	rx_expect_empty(b, b->in->async_evd);
}
EXPORT_SYMBOL_GPL(rx_expect_quiet);

/* Disconnect @link and wait for the event on both sides. */
void rx_disconnect(struct rx_bench *b, struct rx_link *link)
{
	b->in->ep = link->in;
	b->out->ep = link->out;
	kd_disconnect(b->out, b->in);
}
EXPORT_SYMBOL_GPL(rx_disconnect);

/* Reset both EPs of @link, for the next connection. */
void rx_reset(struct rx_bench *b, struct rx_link *link)
{
	KD_ASSERT_OK(b->test, dat_ep_reset(link->in));
	KD_ASSERT_OK(b->test, dat_ep_reset(link->out));
}
EXPORT_SYMBOL_GPL(rx_reset);
