// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Credits of clients: never more in all than there are receive buffers.
 *
 * Entry points: kbt_credits_begin() and kbt_credits_end() with the connection,
 * kbt_credits() for each reply, kbt_credits_back() for what a client returns,
 * kbt_credits_calm_down() now and then.
 *
 * A credit is the right to send a request, and a message with requests takes one
 * buffer of the SRQ. A client that finds no buffer waits for a timer of its
 * device, or loses its connection over iWARP, so buffers must not run short as
 * long as clients keep to their credits. Each connection therefore has a window:
 * one credit, or two if its client knows no better, is always its own, and kept
 * free for it. The rest goes to who wants more than it has. It comes back from an
 * idle client with its next keep-alive, and with replies from those that have
 * more than their share while others go without.
 *
 * The length of the queue is the other half, see tgt_srq.c: it grows when a
 * client gets no credit, or most buffers are in use, and does not become shorter
 * than the credits that are granted.
 *
 * No lock is shared by connections: kbt->granted is changed when a window grows
 * or shrinks, and only read otherwise. conn->lock guards the window.
 */
#include <linux/jiffies.h>
#include "tgt.h"

/* How long a client that got no credit makes others return theirs */
#define KBT_SHORT	(HZ / 10)

/* Begin as if no connection had gone without credits for long. */
void kbt_credits_init(struct kbt *kbt)
{
	atomic_set(&kbt->granted, 0);
	kbt->short_since = jiffies - KBT_SHORT - 1;
}

/* Return the credits that a connection always has. */
static unsigned int kbt_own_credits(const struct kbt_conn *conn)
{
	return conn->credits_move ? 1 : 2;
}

/*
 * Return how many credits there may be in all for windows to grow: the rest is
 * for connections that are just being made.
 */
static int kbt_credit_limit(struct kbt *kbt)
{
	unsigned int n = READ_ONCE(kbt->usable);

	return n - n / 16;
}

/* Return whether clients went without credits a moment ago. */
static bool kbt_are_short(struct kbt *kbt)
{
	return !time_after(jiffies, READ_ONCE(kbt->short_since) + KBT_SHORT);
}

/*
 * Keep a shortage of long ago in the past, where it would not be when jiffies have
 * wrapped. One that is noted meanwhile stays.
 */
void kbt_credits_calm_down(struct kbt *kbt)
{
	unsigned long since = READ_ONCE(kbt->short_since);

	if (!kbt_are_short(kbt))
		cmpxchg(&kbt->short_since, since, jiffies - KBT_SHORT - 1);
}

/*
 * Return how many buffers the credits need that are granted, and a quarter more
 * if that is not enough; srq_max at most. Context: any.
 */
unsigned int kbt_credits_buffers(struct kbt *kbt)
{
	unsigned int n = atomic_read(&kbt->granted);

	n += n / 16;
	if (kbt_are_short(kbt))
		n += n / 4;
	return min(n, kbt->params->srq_max);
}

/*
 * Note that a client goes without credits, so that the queue becomes longer, or
 * others return theirs. Context: any.
 */
static void kbt_credits_short(struct kbt *kbt)
{
	if (!time_after(jiffies, READ_ONCE(kbt->short_since)))
		return;
	WRITE_ONCE(kbt->short_since, jiffies);
	if (kbt_credits_buffers(kbt) > READ_ONCE(kbt->usable))
		kbt_srq_adapt(kbt);
}

/**
 * kbt_credits_begin() - give a connection its first credits
 * @conn: connection; ->credits is the most that it can have
 *
 * If all credits are given, others return theirs with their next replies.
 *
 * Context: Process context.
 * Return: false if the longest queue has not one buffer for each connection.
 */
bool kbt_credits_begin(struct kbt_conn *conn)
{
	unsigned int own = kbt_own_credits(conn), max;
	struct kbt *kbt = conn->kbt;
	int limit = kbt_credit_limit(kbt);
	int left;

	lockdep_assert_held(&kbt->mutex);

	max = max(kbt->params->srq_max, READ_ONCE(kbt->usable));
	if ((kbt->conn_count + 1) * own > max)
		return false;
	conn->window = own;
	/* Half of the credits are for those who turn out to want them. */
	left = limit / 2 - atomic_read(&kbt->granted) - (int)own;
	if (left > 0)
		conn->window += left / 4;
	conn->window = min_t(unsigned int, conn->window, conn->credits);
	atomic64_set(&conn->given, conn->window);
	atomic_add(conn->window, &kbt->granted);
	return true;
}

/* Take the credits of a connection that is being freed. */
void kbt_credits_end(struct kbt_conn *conn)
{
	atomic_sub(conn->window, &conn->kbt->granted);
	conn->window = 0;
}

/*
 * Return whether the client has more than its share while others go without, or
 * while there are more credits than buffers because connections have come.
 * Context: any.
 */
static bool kbt_window_shrinks(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;
	unsigned int share;

	lockdep_assert_held(&conn->lock);

	if (conn->window <= kbt_own_credits(conn) ||
	    (!kbt_are_short(kbt) &&
	     atomic_read(&kbt->granted) <= kbt_credit_limit(kbt)))
		return false;
	share = kbt_credit_limit(kbt) / max(READ_ONCE(kbt->conn_count), 1U);
	return conn->window > share + 1;
}

/*
 * Return whether more credits would be of use to the client of @io. Whoever
 * cannot say so has to have requests outstanding for all its credits.
 */
static bool kbt_wants_credit(const struct kbt_io *io)
{
	const struct kbt_conn *conn = io->conn;

	lockdep_assert_held(&conn->lock);

	if (conn->window >= conn->credits)
		return false;
	return conn->credits_move ? io->wants :
	       atomic64_read(&conn->requests) - atomic64_read(&conn->replied) >=
	       conn->window;
}

/* Reserve one more credit; false if there is none. */
static bool kbt_credit_reserve(struct kbt *kbt)
{
	int limit = kbt_credit_limit(kbt);
	int granted = atomic_read(&kbt->granted);

	do {
		if (granted >= limit) {
			kbt_credits_short(kbt);
			return false;
		}
	} while (!atomic_try_cmpxchg(&kbt->granted, &granted, granted + 1));
	return true;
}

static u16 kbt_next_credits(const struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;

	lockdep_assert_held(&conn->lock);

	if (conn->throttled && conn->withheld < conn->window / 2) {
		conn->withheld++;
		return 0;
	}
	if (conn->throttled)
		return 1;
	if (conn->withheld) {
		conn->withheld--;
		return 2;
	}
	if (kbt_window_shrinks(conn)) {
		conn->window--;
		atomic_dec(&conn->kbt->granted);
		return 0;
	}
	if (kbt_wants_credit(io) && kbt_credit_reserve(conn->kbt)) {
		conn->window++;
		return 2;
	}
	return 1;
}

/*
 * Return the credits that the reply to @io gives: 1 keeps the window as it is.
 * While the client is throttled half of its credits are held back, and returned
 * later.
 */
u16 kbt_credits(const struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	u16 n = kbt_next_credits(io);

	/* Only this function changes conn->given. */
	atomic64_set(&conn->given, atomic64_read(&conn->given) + n);
	return n;
}

/*
 * Take back @n credits that the client had; kbt_is_overdrawn() has checked that
 * it did.
 */
void kbt_credits_back(struct kbt_conn *conn, unsigned int n)
{
	lockdep_assert_held(&conn->lock);
	n = min(n, conn->window - 1);
	conn->window -= n;
	atomic_sub(n, &conn->kbt->granted);
	/* The queue may become shorter. */
	kbt_srq_calm_down(conn->kbt);
}
