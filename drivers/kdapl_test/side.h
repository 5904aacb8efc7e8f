/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One end of a connection that a load runs on, over kDAPL (dat.c, dat_side.c) or over
 * raw verbs (raw.c, raw_side.c). The loops that use it are the same for both. Whoever
 * connects the end owns it; kdapl_bench.ko (kunit/bench) and kdapl_test.ko do.
 */
#ifndef KDAPL_TEST_SIDE_H
#define KDAPL_TEST_SIDE_H

#include <linux/types.h>

enum bench_queue { BENCH_SQ, BENCH_RQ };

struct bench_side;

/*
 * struct bench_ops - raw verbs, or kDAPL
 * @post_recv: post @n receives of side->recv_len, side->recv_stride apart
 * @post_send: post @n messages of @len bytes
 * @post_write: post @n RDMA Writes of @len bytes into the peer's receive buffer
 * @post_read: post @n RDMA Reads of @len bytes of the peer's receive buffer
 * @reap: fetch @n completions; stops when there is none. Returns their number
 * @hold: let completions pile up
 * @release: deliver what has piled up
 * @marks: arm the receive watermarks at levels that are never reached, or
 *	switch them off. kDAPL only
 *
 * All but @reap return 0 or an errno. Context: any for the posting calls.
 */
struct bench_ops {
	int (*post_recv)(struct bench_side *side, int n);
	int (*post_send)(struct bench_side *side, int n, u32 len);
	int (*post_write)(struct bench_side *side, int n, u32 len);
	int (*post_read)(struct bench_side *side, int n, u32 len);
	int (*reap)(struct bench_side *side, enum bench_queue queue, int n);
	int (*hold)(struct bench_side *side);
	int (*release)(struct bench_side *side);
	int (*marks)(struct bench_side *side, bool on);
};

/*
 * struct bench_side - one end of a connection
 * @ops: how to use it
 * @owner: whoever made it
 * @buf: what it sends, @room bytes; then as much to receive into
 * @room: bytes of each of the two buffers
 * @depth: work requests that each queue can hold
 * @upcall: completions arrive by upcall or CQ callback in softirq; otherwise
 *	they are fetched
 * @recv_len: length of a receive, bytes
 * @recv_stride: bytes from one receive of a burst to the next
 * @done: called for every completion if @upcall, in softirq
 * @failed: called for a completion that failed if @upcall, in softirq
 */
struct bench_side {
	const struct bench_ops *ops;
	void *owner;
	u8 *buf;
	u32 room;
	u32 depth;
	bool upcall;
	u32 recv_len;
	u32 recv_stride;
	void (*done)(struct bench_side *side, enum bench_queue queue);
	void (*failed)(struct bench_side *side, int err);
};

u8 *bench_buf_alloc(u32 room);
void bench_buf_free(u8 *buf, u32 room);

#endif
