/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_bench.ko: the cost of kDAPL over raw verbs.
 *
 *   main.c               the exercises and their order
 *   run.c                the loops, shared by both
 *   raw.c, raw_conn.c    the operations of raw verbs
 *   dat.c, dat_conn.c    the operations of kDAPL, which use only <dat/kdat.h>
 *   results.c            figures, and the JSON document made of them
 *
 * A pair is two connected sides on one device. Side 0 is active: it sends
 * bursts and streams, side 1 receives them and answers a ping-pong.
 */
#ifndef KDAPL_BENCH_H
#define KDAPL_BENCH_H

#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>
#include <linux/socket.h>
#include <linux/types.h>

#define BENCH_DEPTH	256		/* work requests a queue can hold */
#define BENCH_BURST	128		/* posted or reaped in one timed loop */
#define BENCH_RESERVE	128		/* receives always posted on an upcall pair */
#define BENCH_PILE	64		/* completions delivered in one go */
#define BENCH_WINDOW	64		/* outstanding messages of a stream */
#define BENCH_SMALL	64		/* bytes of a small message */
#define BENCH_BUF	SZ_64K		/* each of the two buffers of a side */
#define BENCH_TIMEOUT	(10 * HZ)

/* ---- results.c ------------------------------------------------------------ */

enum bench_figure {
	BENCH_POST_RECV,
	BENCH_POST_SRQ_RECV,
	BENCH_POST_SEND,
	BENCH_POST_WRITE,
	BENCH_REAP_RECV,
	BENCH_REAP_SRQ_RECV,
	BENCH_REAP_SEND,
	BENCH_UPCALL,
	BENCH_UPCALL_SRQ,
	BENCH_PING_64,
	BENCH_PING_4K,
	BENCH_STREAM_SEND,
	BENCH_STREAM_WRITE,
	BENCH_MARKS,
	BENCH_FIGURES
};

/* The series that are compared; the first and the second run the same loop. */
enum bench_series {
	BENCH_RAW,
	BENCH_RAW_AGAIN,
	BENCH_KDAPL,
	BENCH_SERIES
};

/*
 * struct bench_result - what was measured on one device
 * @device: its name
 * @best: the shortest time for each figure, in ticks; U64_MAX if never run
 * @ops: operations that took this time
 * @link: entry in the list of results
 */
struct bench_result {
	char device[64];
	u64 best[BENCH_FIGURES][BENCH_SERIES];
	u32 ops[BENCH_FIGURES];
	struct list_head link;
};

void bench_note(struct bench_result *res, enum bench_figure figure,
		enum bench_series series, u64 ticks, u32 ops);
void bench_clock_start(void);
void bench_clock_stop(unsigned int insn_ns);
void bench_show(struct seq_file *m, struct list_head *results, unsigned int runs);

/*
 * Read the clock, in ticks. The read is not reordered with the instructions
 * around it.
 */
static __always_inline u64 bench_clock(void)
{
#ifdef __x86_64__
	u32 lo, hi;

	asm volatile("lfence; rdtsc; lfence" : "=a" (lo), "=d" (hi) : : "memory");
	return (u64)hi << 32 | lo;
#else
	return ktime_get_ns();
#endif
}

/* ---- pairs ------------------------------------------------------------------ */

/*
 * struct bench_shape - how a pair is made
 * @upcall: completions arrive by upcall or CQ callback in softirq, and
 *	BENCH_RESERVE receives are posted; otherwise they are fetched
 * @srq: side 1 receives from an SRQ
 * @idle: of kDAPL: connections that are idle, on the same EVDs and SRQ
 */
struct bench_shape {
	bool upcall;
	bool srq;
	unsigned int idle;
};

enum bench_queue { BENCH_SQ, BENCH_RQ };

struct bench_side;

/*
 * struct bench_ops - raw verbs, or kDAPL
 * @post_recv: post @n receives of side->recv_len, side->recv_stride apart
 * @post_send: post @n messages of @len bytes
 * @post_write: post @n RDMA Writes of @len bytes into the peer's receive buffer
 * @reap: fetch @n completions; stops when there is none. Returns their number
 * @hold: let completions pile up
 * @release: deliver what has piled up
 * @marks: arm the receive watermarks at levels that are never reached, or
 *	switch them off. kDAPL only
 * @close: disconnect and free a pair
 *
 * All but @reap return 0 or an errno.
 */
struct bench_pair;
struct bench_ops {
	int (*post_recv)(struct bench_side *side, int n);
	int (*post_send)(struct bench_side *side, int n, u32 len);
	int (*post_write)(struct bench_side *side, int n, u32 len);
	int (*reap)(struct bench_side *side, enum bench_queue queue, int n);
	int (*hold)(struct bench_side *side);
	int (*release)(struct bench_side *side);
	int (*marks)(struct bench_side *side, bool on);
	void (*close)(struct bench_pair *pair);
};

/*
 * struct bench_side - one end of a connection
 * @ops: how to use it
 * @pair: the pair it is of
 * @buf: what it sends, BENCH_BUF bytes; then as much to receive into
 * @recv_len: length of a receive, bytes
 * @recv_stride: bytes from one receive of a burst to the next
 * @done: called for every completion of an upcall pair, in softirq
 */
struct bench_side {
	const struct bench_ops *ops;
	struct bench_pair *pair;
	u8 *buf;
	u32 recv_len;
	u32 recv_stride;
	void (*done)(struct bench_side *side, enum bench_queue queue);
};

/*
 * struct bench_pair - a connection and the state of the loop that uses it
 * @finished: the loop has ended
 * @err: 0 or why it ended
 * @len: bytes of a message
 * @left: messages still to be sent
 * @sent: send completions still to come
 * @received: receive completions still to come
 * @start: ticks when timing began
 * @end: ticks when it ended
 * @laps: ticks of each round trip
 * @nlaps: number of round trips
 */
struct bench_pair {
	const struct bench_ops *ops;
	struct bench_shape shape;
	struct bench_side *side[2];

	struct completion finished;
	int err;
	u32 id;
	u32 len;
	bool write;
	int left;
	int sent;
	int received;
	u64 start;
	u64 end;
	u32 *laps;
	int nlaps;
};

void bench_pair_init(struct bench_pair *pair, const struct bench_ops *ops,
		     const struct bench_shape *shape);
void bench_fail(struct bench_pair *pair, int err);
u8 *bench_buf_alloc(void);
void bench_buf_free(u8 *buf);

struct bench_pair *bench_raw_open(const struct sockaddr *addr,
				  const struct bench_shape *shape);
struct bench_pair *bench_dat_open(const char *device,
				  const struct bench_shape *shape);
int bench_dat_address(const char *device, struct sockaddr_storage *addr);

/* ---- run.c ------------------------------------------------------------------ */

/* Where an exercise stores its times. */
struct bench_to {
	struct bench_result *res;
	enum bench_series series;
};

int bench_burst(struct bench_pair *pair, const struct bench_to *to, int bursts);
int bench_pile(struct bench_pair *pair, const struct bench_to *to, int piles);
int bench_ping(struct bench_pair *pair, const struct bench_to *to,
	       enum bench_figure figure, u32 len, int laps);
int bench_write(struct bench_pair *pair, const struct bench_to *to, int bursts);
int bench_stream(struct bench_pair *pair, const struct bench_to *to,
		 bool write, int messages, unsigned int ms);
void bench_pause(void);

#endif
