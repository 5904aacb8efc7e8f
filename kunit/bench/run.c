// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The loops. Raw verbs and kDAPL go through the same code here; they differ in
 * their struct bench_ops.
 *
 * The machine may have only one CPU, so no loop spins: while it waits, the
 * threads run that do the device's work.
 */
#include <linux/bottom_half.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/workqueue.h>
#include "kdapl_bench.h"

/* Number of pauses after which the last completions have arrived. */
#define BENCH_SETTLE 8

void bench_pair_init(struct bench_pair *pair,
		     void (*close)(struct bench_pair *pair),
		     const struct bench_shape *shape)
{
	pair->close = close;
	pair->shape = *shape;
	init_completion(&pair->finished);
}

static void bench_side_failed(struct bench_side *side, int err)
{
	struct bench_pair *pair = side->owner;

	if (!READ_ONCE(pair->closing))
		bench_fail(pair, err);
}

void bench_side_init(struct bench_side *side, struct bench_pair *pair)
{
	side->owner = pair;
	side->room = BENCH_BUF;
	side->depth = BENCH_DEPTH;
	side->upcall = pair->shape.upcall;
	side->failed = bench_side_failed;
}

/* End a loop. Context: any. */
void bench_fail(struct bench_pair *pair, int err)
{
	if (!pair->err)
		pair->err = err;
	complete(&pair->finished);
}

static int bench_wait(struct bench_pair *pair)
{
	if (!wait_for_completion_timeout(&pair->finished, BENCH_TIMEOUT))
		return -ETIMEDOUT;
	return pair->err;
}

static void bench_nothing(struct work_struct *work)
{
}

static DECLARE_WORK(bench_yield, bench_nothing);

/* Sleep until a work item has run, and with it all threads that are ready. */
void bench_pause(void)
{
	schedule_work(&bench_yield);
	flush_work(&bench_yield);
}

static void bench_settle(void)
{
	int i;

	for (i = 0; i < BENCH_SETTLE; i++)
		bench_pause();
}

/* Wait until *@word is @value. */
static int bench_wait_word(const u32 *word, u32 value)
{
	unsigned long end = jiffies + BENCH_TIMEOUT;

	while (READ_ONCE(*word) != value) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		bench_pause();
	}
	return 0;
}

/* ---- bursts: the cost of one call ------------------------------------------- */

/*
 * Time the reaping of @n completions that have all arrived. If some have not,
 * that is no error: return 0, and the rest is reaped untimed.
 */
static int bench_reap(struct bench_side *side, enum bench_queue queue, int n,
		      u64 *ticks)
{
	unsigned long end = jiffies + BENCH_TIMEOUT;
	u64 start;
	int got, all;

	start = bench_clock();
	got = side->ops->reap(side, queue, n);
	*ticks = bench_clock() - start;
	if (got == n)
		return 1;
	for (all = got; all < n; all += got) {
		if (got < 0 || time_after(jiffies, end))
			return got < 0 ? got : -ETIMEDOUT;
		bench_pause();
		got = side->ops->reap(side, queue, n - all);
	}
	return 0;
}

static int bench_burst_once(struct bench_pair *pair, const struct bench_to *to)
{
	struct bench_side *a = pair->side[0], *b = pair->side[1];
	bool srq = pair->shape.srq;
	u8 *last = b->buf + BENCH_BUF + (BENCH_BURST - 1) * b->recv_stride;
	u64 start, recv, send;
	int err;

	/*
	 * The last message of this burst, and no other, writes this word to the
	 * peer.
	 */
	*(u32 *)a->buf = ++pair->id;

	/* A simulated device works in a softirq, which would be timed. */
	local_bh_disable();
	start = bench_clock();
	err = b->ops->post_recv(b, BENCH_BURST);
	recv = bench_clock() - start;
	start = bench_clock();
	err = err ?: a->ops->post_send(a, BENCH_BURST, BENCH_SMALL);
	send = bench_clock() - start;
	local_bh_enable();
	if (err)
		return err;
	bench_note(to->res, srq ? BENCH_POST_SRQ_RECV : BENCH_POST_RECV,
		   to->series, recv, BENCH_BURST);
	if (!srq)
		bench_note(to->res, BENCH_POST_SEND, to->series, send,
			   BENCH_BURST);

	err = bench_wait_word((u32 *)last, pair->id);
	if (err)
		return err;
	bench_settle();

	err = bench_reap(b, BENCH_RQ, BENCH_BURST, &recv);
	if (err < 0)
		return err;
	if (err)
		bench_note(to->res, srq ? BENCH_REAP_SRQ_RECV : BENCH_REAP_RECV,
			   to->series, recv, BENCH_BURST);
	err = bench_reap(a, BENCH_SQ, BENCH_BURST, &send);
	if (err < 0)
		return err;
	if (err && !srq)
		bench_note(to->res, BENCH_REAP_SEND, to->series, send,
			   BENCH_BURST);
	return 0;
}

/* Make @bursts bursts of small messages. */
static int bench_repeat(struct bench_pair *pair, const struct bench_to *to, int bursts,
			int (*once)(struct bench_pair *pair, const struct bench_to *to))
{
	struct bench_side *b = pair->side[1];
	int err = 0;

	b->recv_len = BENCH_SMALL;
	b->recv_stride = BENCH_SMALL;
	while (bursts-- && !err)
		err = once(pair, to);
	return err;
}

/* Post and reap in tight loops, on a pair without upcalls. */
int bench_burst(struct bench_pair *pair, const struct bench_to *to, int bursts)
{
	return bench_repeat(pair, to, bursts, bench_burst_once);
}

/* ---- bursts over connections in turn ---------------------------------------- */

/* Wait until each receive of a burst holds the word that all its messages carry. */
static int bench_wait_turn(struct bench_pair *pair)
{
	struct bench_side *b = pair->side[1];
	int i, err = 0;

	for (i = 0; i < BENCH_BURST && !err; i++)
		err = bench_wait_word((u32 *)(b->buf + BENCH_BUF +
					      i * b->recv_stride), pair->id);
	bench_settle();
	return err;
}

/* Reap @due[] receives from each EVD. Return as bench_reap() does. */
static int bench_turn_reap(struct bench_pair *pair, const unsigned int *due,
			   u64 *ticks)
{
	struct bench_side *b = pair->side[1];
	unsigned int i;
	int err = 1;
	u64 one;

	*ticks = 0;
	for (i = 0; i < pair->shape.evds && err > 0; i++) {
		if (!due[i])
			continue;
		pair->choose(pair, i);
		err = bench_reap(b, BENCH_RQ, due[i], &one);
		*ticks += one;
	}
	return err;
}

static int bench_turn_once(struct bench_pair *pair, const struct bench_to *to)
{
	struct bench_side *a = pair->side[0], *b = pair->side[1];
	unsigned int used = bench_used(&pair->shape), due[BENCH_EVDS] = { };
	u64 start, send, recv;
	int i, err;

	*(u32 *)a->buf = ++pair->id;
	err = b->ops->post_recv(b, BENCH_BURST);
	/* As in bench_burst_once(). */
	local_bh_disable();
	start = bench_clock();
	for (i = 0; i < BENCH_BURST && !err; i++) {
		pair->choose(pair, pair->turn);
		err = a->ops->post_send(a, 1, BENCH_SMALL);
		due[pair->turn % pair->shape.evds]++;
		if (++pair->turn == used)
			pair->turn = 0;
	}
	send = bench_clock() - start;
	local_bh_enable();
	err = err ?: bench_wait_turn(pair);
	if (err)
		return err;
	bench_note(to->res, BENCH_TURN_SEND, to->series, send, BENCH_BURST);
	err = bench_turn_reap(pair, due, &recv);
	if (err < 0)
		return err;
	if (err)
		bench_note(to->res, BENCH_TURN_RECV, to->series, recv,
			   BENCH_BURST);
	err = bench_reap(a, BENCH_SQ, BENCH_BURST, &send);
	return min(err, 0);
}

/* Post and reap on connections in turn, each message on the next one. */
int bench_turn(struct bench_pair *pair, const struct bench_to *to, int bursts)
{
	return bench_repeat(pair, to, bursts, bench_turn_once);
}

/* ---- piles: the cost of one upcall -------------------------------------------- */

static void bench_pile_done(struct bench_side *side, enum bench_queue queue)
{
	struct bench_pair *pair = side->owner;

	if (queue == BENCH_SQ) {
		if (!--pair->sent)
			complete(&pair->finished);
		return;
	}
	if (pair->received-- == BENCH_PILE)
		pair->start = bench_clock();
	if (!pair->received) {
		pair->end = bench_clock();
		complete(&pair->finished);
	}
}

static int bench_pile_send(struct bench_pair *pair, int n)
{
	struct bench_side *a = pair->side[0];
	int err;

	reinit_completion(&pair->finished);
	pair->sent = n;
	err = a->ops->post_send(a, n, BENCH_SMALL) ?: bench_wait(pair);
	bench_settle();
	return err;
}

static int bench_pile_once(struct bench_pair *pair, const struct bench_to *to)
{
	struct bench_side *b = pair->side[1];
	int err;

	pair->received = BENCH_PILE;
	err = b->ops->hold(b);
	if (err)
		return err;
	/*
	 * The first completion uses up the notification that was requested
	 * before.
	 */
	err = bench_pile_send(pair, 1) ?: bench_pile_send(pair, BENCH_PILE - 1);
	reinit_completion(&pair->finished);
	err = b->ops->release(b) ?: err;
	err = err ?: bench_wait(pair);
	if (err)
		return err;
	bench_note(to->res, pair->shape.srq ? BENCH_UPCALL_SRQ : BENCH_UPCALL,
		   to->series, pair->end - pair->start, BENCH_PILE - 1);
	return b->ops->post_recv(b, BENCH_PILE);
}

/*
 * Time the upcalls, from the first to the last, for completions that have all
 * arrived.
 */
int bench_pile(struct bench_pair *pair, const struct bench_to *to, int piles)
{
	int err = 0;

	pair->side[0]->done = bench_pile_done;
	pair->side[1]->done = bench_pile_done;
	while (piles-- && !err)
		err = bench_pile_once(pair, to);
	return err;
}

/* ---- RDMA Writes: the cost of posting one ------------------------------------- */

static int bench_write_once(struct bench_pair *pair, const struct bench_to *to)
{
	struct bench_side *a = pair->side[0];
	u64 start, ticks;
	int err;

	reinit_completion(&pair->finished);
	pair->sent = BENCH_PILE;
	/* As in bench_burst_once(). */
	local_bh_disable();
	start = bench_clock();
	err = a->ops->post_write(a, BENCH_PILE, BENCH_SMALL);
	ticks = bench_clock() - start;
	local_bh_enable();
	err = err ?: bench_wait(pair);
	if (err)
		return err;
	bench_note(to->res, BENCH_POST_WRITE, to->series, ticks, BENCH_PILE);
	return 0;
}

/* Post RDMA Writes in tight loops, on a pair with upcalls. */
int bench_write(struct bench_pair *pair, const struct bench_to *to, int bursts)
{
	int err = 0;

	pair->side[0]->done = bench_pile_done;
	while (bursts-- && !err)
		err = bench_write_once(pair, to);
	return err;
}

/* ---- ping-pong: latency ---------------------------------------------------------- */

static void bench_ping_done(struct bench_side *side, enum bench_queue queue)
{
	struct bench_pair *pair = side->owner;
	u64 now;
	int err;

	if (queue == BENCH_SQ)
		return;
	if (side == pair->side[0]) {
		now = bench_clock();
		pair->laps[pair->nlaps++] = now - pair->start;
		pair->start = now;
		pair->left--;
	}
	err = side->ops->post_recv(side, 1);
	if (!err && pair->left > 0)
		err = side->ops->post_send(side, 1, pair->len);
	if (err)
		bench_fail(pair, err);
	else if (!pair->left)
		complete(&pair->finished);
}

static int bench_cmp(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* Measure latency as half the median of @laps round trips. */
int bench_ping(struct bench_pair *pair, const struct bench_to *to,
	       enum bench_figure figure, u32 len, int laps)
{
	struct bench_side *a = pair->side[0], *b = pair->side[1];
	int err;

	pair->laps = kcalloc(laps, sizeof(*pair->laps), GFP_KERNEL);
	if (!pair->laps)
		return -ENOMEM;
	pair->nlaps = 0;
	pair->left = laps;
	pair->len = len;
	a->done = bench_ping_done;
	b->done = bench_ping_done;
	reinit_completion(&pair->finished);
	pair->start = bench_clock();
	err = a->ops->post_send(a, 1, len) ?: bench_wait(pair);
	if (!err) {
		bench_settle();
		sort(pair->laps, laps, sizeof(*pair->laps), bench_cmp, NULL);
		bench_note(to->res, figure, to->series, pair->laps[laps / 2],
			   2);
	}
	kfree(pair->laps);
	return err;
}

/* ---- streams: throughput ------------------------------------------------------------ */

static void bench_stream_done(struct bench_side *side, enum bench_queue queue)
{
	struct bench_pair *pair = side->owner;
	int err = 0;

	if (queue == BENCH_RQ) {
		err = side->ops->post_recv(side, 1);
		pair->received--;
	} else {
		pair->sent--;
		if (pair->left > 0) {
			pair->left--;
			err = pair->write ?
				side->ops->post_write(side, 1, pair->len) :
				side->ops->post_send(side, 1, pair->len);
		}
	}
	if (err) {
		bench_fail(pair, err);
	} else if (!pair->sent && !pair->received) {
		pair->end = bench_clock();
		complete(&pair->finished);
	}
}

/*
 * Stream messages of BENCH_BUF bytes, with BENCH_WINDOW of them always under
 * way.
 */
static int bench_stream_once(struct bench_pair *pair, const struct bench_to *to,
			     bool write, int messages)
{
	struct bench_side *a = pair->side[0], *b = pair->side[1];
	int err;

	pair->write = write;
	pair->len = BENCH_BUF;
	pair->sent = messages;
	pair->received = write ? 0 : messages;
	pair->left = messages - BENCH_WINDOW;
	a->done = bench_stream_done;
	b->done = bench_stream_done;
	reinit_completion(&pair->finished);
	pair->start = bench_clock();
	err = write ? a->ops->post_write(a, BENCH_WINDOW, BENCH_BUF) :
		      a->ops->post_send(a, BENCH_WINDOW, BENCH_BUF);
	err = err ?: bench_wait(pair);
	if (err)
		return err;
	bench_note(to->res, write ? BENCH_STREAM_WRITE : BENCH_STREAM_SEND,
		   to->series, pair->end - pair->start, messages);
	return 0;
}

/*
 * Run streams of @messages for @ms milliseconds, at least one. On a fast device
 * the shortest times of equal series agree only after many streams.
 */
int bench_stream(struct bench_pair *pair, const struct bench_to *to,
		 bool write, int messages, unsigned int ms)
{
	u64 end = ktime_get_ns() + (u64)ms * NSEC_PER_MSEC;
	int err;

	do {
		err = bench_stream_once(pair, to, write, messages);
	} while (!err && ktime_get_ns() < end);
	return err;
}
