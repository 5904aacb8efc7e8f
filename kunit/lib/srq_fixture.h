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
 * @id: of the connection; part of the seed of its messages
 * @sent: messages sent
 * @reaped: messages reaped
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
 * @in: the side that receives
 * @out: the side that sends
 * @posted: receive buffers posted so far; the cookie of the next one
 * @sends: messages sent so far
 * @links: links made so far
 */
struct rx_bench {
	struct kunit *test;
	struct kd_side *in;
	struct kd_side *out;
	u64 posted;
	u32 sends;
	u32 links;
};

struct rx_bench *rx_open_on(struct kunit *test, const char *ia,
			    struct kd_opts opts);
struct rx_bench *rx_open_polled(struct kunit *test, DAT_COUNT len);
struct rx_bench *rx_open(struct kunit *test, DAT_COUNT len);
void rx_connect(struct rx_bench *b, struct rx_link *link);
struct rx_link *rx_eps(struct rx_bench *b, const DAT_EP_ATTR *attr);
struct rx_link *rx_link(struct rx_bench *b);
DAT_LMR_TRIPLET rx_seg(struct rx_bench *b, u64 cookie);
DAT_RETURN rx_try_post(struct rx_bench *b, struct rx_link *link);
void rx_post(struct rx_bench *b, struct rx_link *link, int n);
u32 rx_seed(const struct rx_link *link, u32 seq);
DAT_RETURN rx_try_send(struct rx_bench *b, struct rx_link *link);
void rx_sent(struct rx_bench *b);
void rx_send_n(struct rx_bench *b, struct rx_link *link, int n);
DAT_SRQ_PARAM rx_query(struct rx_bench *b);
void rx_wait_counts(struct rx_bench *b, DAT_COUNT available,
		    DAT_COUNT outstanding);
void rx_expect_counts(struct rx_bench *b, DAT_COUNT max, DAT_COUNT available,
		      DAT_COUNT outstanding);
void rx_deliver(struct rx_bench *b, struct rx_link *link);
void rx_deliver_n(struct rx_bench *b, struct rx_link *link, int n);
void rx_deliver_in_turn(struct rx_bench *b, struct rx_link *x, struct rx_link *y, int n);
u64 rx_reap(struct rx_bench *b, struct rx_link *link);
void rx_reap_n(struct rx_bench *b, struct rx_link *link, int n);
void rx_pass_n(struct rx_bench *b, struct rx_link *link, int n);
DAT_COUNT rx_held(struct rx_bench *b, struct rx_link *link);
void rx_expect_async(struct rx_bench *b, DAT_EVENT_NUMBER number,
		     DAT_HANDLE handle, DAT_COUNT reason);
void rx_expect_low(struct rx_bench *b);
void rx_expect_soft(struct rx_bench *b, struct rx_link *link);
void rx_expect_broken(struct rx_bench *b, struct rx_link *link);
void rx_expect_empty(struct rx_bench *b, DAT_EVD_HANDLE evd);
void rx_expect_quiet(struct rx_bench *b);
void rx_disconnect(struct rx_bench *b, struct rx_link *link);
void rx_reset(struct rx_bench *b, struct rx_link *link);

#endif /* KDAPL_KUNIT_SRQ_FIXTURE_H */
