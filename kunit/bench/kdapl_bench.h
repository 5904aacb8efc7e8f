/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_bench.ko: the cost of kDAPL over raw verbs.
 *
 *   main.c               the exercises and their order
 *   run.c                the loops, shared by both
 *   raw_conn.c           pairs over raw verbs
 *   dat_conn.c           pairs over kDAPL, which use only <dat/kdat.h>
 *   shared.c             the ends of both, which kdapl_test.ko uses too
 *   map.c                mapping memory of others
 *   results.c            figures, and the JSON document made of them
 *
 * A pair is two connected sides on one device. Side 0 is active: it sends
 * bursts and streams, side 1 receives them and answers a ping-pong.
 */
#ifndef KDAPL_BENCH_H
#define KDAPL_BENCH_H

#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/math.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>
#include <linux/socket.h>
#include <linux/types.h>
#include "../../drivers/kdapl_test/side.h"

#define BENCH_DEPTH	256		/* work requests a queue can hold */
#define BENCH_BURST	128		/* posted or reaped in one timed loop */
#define BENCH_RESERVE	128		/* receives always posted on an upcall pair */
#define BENCH_PILE	64		/* completions delivered in one go */
#define BENCH_WINDOW	64		/* outstanding messages of a stream */
#define BENCH_EVDS	16U		/* most EVDs or CQs that receive, see struct bench_shape */
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
	BENCH_TURN_SEND,
	BENCH_TURN_RECV,
	BENCH_MAP_PAGE,
	BENCH_MAP_PAGES,
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
 * @more: connections beside the first, on the same EVDs and SRQ: idle ones, of kDAPL
 *	only; or, if there are @evds, those that are used in turn
 * @evds: EVDs or CQs on which side 1 receives, of connection I on number I % @evds; 0:
 *	only the first connection is used
 */
struct bench_shape {
	bool upcall;
	bool srq;
	unsigned int more;
	unsigned int evds;
};

/* How many connections does a pair of this shape use? */
static inline unsigned int bench_used(const struct bench_shape *shape)
{
	return shape->evds ? shape->more + 1 : 1;
}

/* Work requests that each connection beside the first has room for. */
static inline u32 bench_more_depth(const struct bench_shape *shape)
{
	return DIV_ROUND_UP(BENCH_BURST, shape->more + 1);
}

struct bench_map;

/*
 * struct bench_pair - a connection and the state of the loop that uses it
 * @close: disconnect and free it
 * @choose: use connection @i, counted from 0, and receive where it does
 * @map: map @n pages, and unmap them
 * @closing: it is being closed
 * @finished: the loop has ended
 * @err: 0 or why it ended
 * @len: bytes of a message
 * @left: messages still to be sent
 * @sent: send completions still to come
 * @received: receive completions still to come
 * @start: ticks when timing began
 * @end: ticks when it ended
 * @turn: the connection whose turn it is
 * @laps: ticks of each round trip
 * @nlaps: number of round trips
 */
struct bench_pair {
	void (*close)(struct bench_pair *pair);
	void (*choose)(struct bench_pair *pair, unsigned int i);
	int (*map)(struct bench_pair *pair, struct bench_map *map, int n);
	struct bench_shape shape;
	struct bench_side *side[2];
	bool closing;

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
	unsigned int turn;
	u32 *laps;
	int nlaps;
};

void bench_pair_init(struct bench_pair *pair,
		     void (*close)(struct bench_pair *pair),
		     const struct bench_shape *shape);
void bench_side_init(struct bench_side *side, struct bench_pair *pair);
void bench_fail(struct bench_pair *pair, int err);

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
int bench_turn(struct bench_pair *pair, const struct bench_to *to, int bursts);
int bench_pile(struct bench_pair *pair, const struct bench_to *to, int piles);
int bench_ping(struct bench_pair *pair, const struct bench_to *to,
	       enum bench_figure figure, u32 len, int laps);
int bench_write(struct bench_pair *pair, const struct bench_to *to, int bursts);
int bench_stream(struct bench_pair *pair, const struct bench_to *to,
		 bool write, int messages, unsigned int ms);
void bench_pause(void);

/* ---- map.c ------------------------------------------------------------------ */

int bench_map(struct bench_pair *pair, const struct bench_to *to, int times);
int bench_dat_map(struct bench_pair *pair, struct bench_map *map, int n);
int bench_raw_map(struct bench_pair *pair, struct bench_map *map, int n);

#endif
