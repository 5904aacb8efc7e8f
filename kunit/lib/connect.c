// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: connecting two sides and exchanging messages, see fixture.h.
 */
#include <linux/module.h>
#include "fixture.h"

/*
 * The time-out is reached only if nobody answers; it is long for busy machines.
 */
#define KD_CONNECT_TIMEOUT	(20 * USEC_PER_SEC)

/* Return a port that no case has used since the test kernel booted. */
u16 kd_port(void)
{
	static atomic_t next = ATOMIC_INIT(20000);

	return atomic_inc_return(&next);
}
EXPORT_SYMBOL_GPL(kd_port);

DAT_PSP_HANDLE kd_psp(struct kd_side *side, u16 port, DAT_PSP_FLAGS flags)
{
	DAT_PSP_HANDLE psp = NULL;

	KD_ASSERT_OK(side->test, dat_psp_create(side->ia, port, side->cr_evd,
						flags, &psp));
	return psp;
}
EXPORT_SYMBOL_GPL(kd_psp);

/* Ask @passive, which listens on @port, for a connection. */
void kd_connect_start(struct kd_side *active, struct kd_side *passive,
		      u16 port)
{
	KD_ASSERT_OK(active->test,
		     dat_ep_connect(active->ep, passive->addr, port,
				    KD_CONNECT_TIMEOUT, 0, NULL,
				    DAT_QOS_BEST_EFFORT,
				    DAT_CONNECT_DEFAULT_FLAG));
}
EXPORT_SYMBOL_GPL(kd_connect_start);

DAT_CR_HANDLE kd_expect_cr(struct kd_side *passive)
{
	DAT_EVENT event;

	kd_expect_event(passive->test, passive->cr_evd,
			DAT_CONNECTION_REQUEST_EVENT, &event);
	return event.event_data.cr_arrival_event_data.cr_handle;
}
EXPORT_SYMBOL_GPL(kd_expect_cr);

void kd_expect_established(struct kd_side *active, struct kd_side *passive)
{
	kd_expect_event(active->test, active->conn_evd,
			DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
	kd_expect_event(active->test, passive->conn_evd,
			DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
}
EXPORT_SYMBOL_GPL(kd_expect_established);

/* Let @passive accept the request that it gets from @active. */
void kd_accept(struct kd_side *active, struct kd_side *passive)
{
	KD_ASSERT_OK(active->test, dat_cr_accept(kd_expect_cr(passive),
						 passive->ep, 0, NULL));
	kd_expect_established(active, passive);
}
EXPORT_SYMBOL_GPL(kd_accept);

/* Connect the EPs of two sides through a PSP on a port of its own. */
void kd_connect_pair(struct kd_side *active, struct kd_side *passive)
{
	u16 port = kd_port();
	DAT_PSP_HANDLE psp = kd_psp(passive, port, DAT_PSP_CONSUMER_FLAG);

	kd_connect_start(active, passive, port);
	kd_accept(active, passive);
	KD_EXPECT_OK(active->test, dat_psp_free(psp));
}
EXPORT_SYMBOL_GPL(kd_connect_pair);

static void expect_end(struct kd_side *side, DAT_EVENT *event, bool sends,
		       void *caller)
{
	struct kunit *test = side->test;
	DAT_EVENT mine;

	if (!event)
		event = &mine;
	KUNIT_ASSERT_TRUE_MSG(test, kd_wait_event(side->conn_evd, event,
						  KD_TIMEOUT_MS),
			      "%pS", caller);
	if (event->event_number == DAT_CONNECTION_EVENT_BROKEN &&
	    kd_is_iwarp(side) && sends)
		return;
	KUNIT_ASSERT_EQ_MSG(test, (u32)event->event_number,
			    (u32)DAT_CONNECTION_EVENT_DISCONNECTED, "%pS",
			    caller);
}

/*
 * Expect that the next event of @side says that its peer has ended the
 * connection. With two CPUs siw fails the request that it is sending while
 * another CPU takes in the peer's end; this Endpoint then reports BROKEN
 * instead. @event may be NULL.
 */
void kd_expect_disconnected(struct kd_side *side, DAT_EVENT *event)
{
	expect_end(side, event, num_online_cpus() > 1,
		   __builtin_return_address(0));
}
EXPORT_SYMBOL_GPL(kd_expect_disconnected);

/*
 * The same for a side that sends all the time: siw may fail a request before it has
 * looked at the peer's end, on one CPU as well.
 */
void kd_expect_sender_disconnected(struct kd_side *side)
{
	expect_end(side, NULL, true, __builtin_return_address(0));
}
EXPORT_SYMBOL_GPL(kd_expect_sender_disconnected);

/*
 * Expect that the connection of @side, over InfiniBand or RoCE, breaks as the peer's device
 * has refused a request. With two CPUs the peer's end may be handled before the completion.
 */
void kd_expect_refused(struct kd_side *side)
{
	struct kunit *test = side->test;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE(test, kd_wait_event(side->conn_evd, &event, KD_TIMEOUT_MS));
	if (event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED || num_online_cpus() == 1)
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_CONNECTION_EVENT_BROKEN);
}
EXPORT_SYMBOL_GPL(kd_expect_refused);

/* Disconnect abruptly; flushed DTOs stay queued on recv_evd and req_evd. */
void kd_disconnect(struct kd_side *active, struct kd_side *passive)
{
	struct kunit *test = active->test;

	KD_ASSERT_OK(test, dat_ep_disconnect(active->ep,
					     DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_event(test, active->conn_evd,
			DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	kd_expect_event(test, passive->conn_evd,
			DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
}
EXPORT_SYMBOL_GPL(kd_disconnect);

/* Post a part of side->buf as a receive, to the SRQ if there is one. */
void kd_recv(struct kd_side *side, size_t off, size_t len, u64 cookie)
{
	DAT_LMR_TRIPLET seg = kd_seg(side->buf, off, len);

	if (side->srq)
		KD_ASSERT_OK(side->test,
			     dat_srq_post_recv(side->srq, 1, &seg,
					       kd_cookie(cookie)));
	else
		KD_ASSERT_OK(side->test,
			     dat_ep_post_recv(side->ep, 1, &seg,
					      kd_cookie(cookie),
					      DAT_COMPLETION_DEFAULT_FLAG));
}
EXPORT_SYMBOL_GPL(kd_recv);

/* Send a part of side->buf. */
void kd_send(struct kd_side *side, size_t off, size_t len, u64 cookie)
{
	DAT_LMR_TRIPLET seg = kd_seg(side->buf, off, len);

	KD_ASSERT_OK(side->test, dat_ep_post_send(side->ep, 1, &seg,
						  kd_cookie(cookie),
						  DAT_COMPLETION_DEFAULT_FLAG));
}
EXPORT_SYMBOL_GPL(kd_send);

/* Send a message and expect that it arrives. */
void kd_ping(struct kd_side *from, struct kd_side *to)
{
	kd_recv(to, 0, 64, 1);
	kd_send(from, 0, 64, 2);
	kd_expect_dto(to->test, to->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(from->test, from->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}
EXPORT_SYMBOL_GPL(kd_ping);
