// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Credits of clients: never more in all than there are receive buffers.
 *
 * Entry points: kbt_credits_begin(), kbt_credits_drop() and kbt_credits_end() when a
 * connection is made, receives no more and is freed, kbt_credits_attach() and
 * kbt_credits_detach() with each volume, kbt_credits() for each reply,
 * kbt_credits_back() for what a client returns, kbt_credits_calm_down() now and then.
 *
 * A credit is the right to send a request, and a message with requests takes one
 * buffer of the SRQ. A client that finds no buffer waits for a timer of its
 * device, or loses its connection over iWARP, so buffers must not run short as
 * long as clients keep to their credits. Each connection therefore has a window:
 * one credit, or two if its client knows no better, is always its own, and kept
 * free for it. A connection that may have several volumes has one, and one for
 * each volume, so that volumes which stand still leave the client some for others
 * and for itself. No host has so many of these that others find none; volumes have
 * limits of their own, so that they leave some to connections. The rest goes to who
 * wants more than it has. It comes back from an idle client with its next keep-alive,
 * and with replies from those that have more than their share while others go without.
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

/* Credits with which another host can connect, and attach some volumes */
#define KBT_FEW		8U

/* Begin as if no connection had gone without credits for long. */
void kbt_credits_init(struct kbt *kbt)
{
	atomic_set(&kbt->granted, 0);
	atomic_set(&kbt->owned, 0);
	atomic_set(&kbt->for_volumes, 0);
	kbt->short_since = jiffies - KBT_SHORT - 1;
}

/* Return the credits that a connection has from the start. */
static unsigned int kbt_first_own(const struct kbt_conn *conn)
{
	return conn->credits_move && !conn->volumes ? 1 : 2;
}

/* Return how many credits may be kept free for the volumes that are attached. */
static unsigned int kbt_volumes_max(struct kbt *kbt)
{
	unsigned int max = kbt_srq_max(kbt);

	return max - max / 4;
}

/* Return how many of these one host may have: others attach volumes as well. */
static unsigned int kbt_host_volumes_max(struct kbt *kbt)
{
	return kbt_of_a_host(kbt_volumes_max(kbt));
}

/* Return how many credits volumes leave for connections, and a host for others. */
static unsigned int kbt_few(struct kbt *kbt)
{
	return min(DIV_ROUND_UP(kbt_srq_max(kbt), 8), KBT_FEW);
}

/* Add @n to @count; return false if that is more than @max. litmus: none. Context: any. */
static bool kbt_add_up_to(atomic_t *count, unsigned int n, unsigned int max)
{
	int was = atomic_read(count);

	do {
		if (was + n > max)
			return false;
	} while (!atomic_try_cmpxchg(count, &was, was + n));
	return true;
}

/*
 * Count @n credits for the host of @conn, unless that is only what a request has said. Return
 * false if the host has more then than one may have. Context: any.
 */
static bool kbt_host_reserve(struct kbt_conn *conn, unsigned int n)
{
	unsigned int of_host = kbt_srq_max(conn->kbt) - 2 * kbt_few(conn->kbt);

	if (!test_bit(KBT_CONN_PROVEN, &conn->flags))
		return atomic_read(&conn->host->owned) + n <= of_host;
	return kbt_add_up_to(&conn->host->owned, n, of_host);
}

/* Undo kbt_host_reserve(). Context: any. */
static void kbt_host_release(struct kbt_conn *conn, unsigned int n)
{
	if (test_bit(KBT_CONN_PROVEN, &conn->flags))
		atomic_sub(n, &conn->host->owned);
}

/*
 * The peer of @conn is of its host: count its credits there. Return false if these are
 * more than the host may have. Context: process.
 */
bool kbt_credits_prove(struct kbt_conn *conn)
{
	bool may;

	spin_lock_irq(&conn->lock);
	set_bit(KBT_CONN_PROVEN, &conn->flags);
	may = kbt_host_reserve(conn, conn->own);
	if (!may)
		clear_bit(KBT_CONN_PROVEN, &conn->flags);
	spin_unlock_irq(&conn->lock);
	return may;
}

/*
 * Keep @n more credits free for @conn. Return false if there are more than @max
 * then, or more than its host may have: nearly all, since it may be the only one.
 * Context: any.
 */
static bool kbt_own_reserve(struct kbt_conn *conn, unsigned int n, unsigned int max)
{
	struct kbt *kbt = conn->kbt;

	if (!kbt_host_reserve(conn, n))
		return false;
	if (!kbt_add_up_to(&kbt->owned, n, max)) {
		kbt_host_release(conn, n);
		return false;
	}
	conn->own += n;
	return true;
}

/* Undo kbt_own_reserve(). Context: any. */
static void kbt_own_release(struct kbt_conn *conn, unsigned int n)
{
	conn->own -= n;
	atomic_sub(n, &conn->kbt->owned);
	kbt_host_release(conn, n);
}

/* As kbt_own_reserve(), one for another volume. Context: any. */
static bool kbt_volume_reserve(struct kbt_conn *conn)
{
	struct kbt_host *host = conn->host;
	struct kbt *kbt = conn->kbt;

	if (!kbt_add_up_to(&host->for_volumes, 1, kbt_host_volumes_max(kbt)))
		return false;
	if (!kbt_add_up_to(&kbt->for_volumes, 1, kbt_volumes_max(kbt)))
		goto err_host;
	if (!kbt_own_reserve(conn, 1, kbt_srq_max(kbt) - kbt_few(kbt)))
		goto err_volumes;
	conn->for_volumes++;
	return true;

err_volumes:
	atomic_dec(&kbt->for_volumes);
err_host:
	atomic_dec(&host->for_volumes);
	return false;
}

/* Undo kbt_volume_reserve() @n times. Context: any. */
static void kbt_volumes_release(struct kbt_conn *conn, unsigned int n)
{
	conn->for_volumes -= n;
	atomic_sub(n, &conn->kbt->for_volumes);
	atomic_sub(n, &conn->host->for_volumes);
	kbt_own_release(conn, n);
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
 * wrapped. One that is noted meanwhile stays. litmus: none, a time.
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

/*
 * Return how many credits @conn may have for what its client wants. Where volumes
 * share it the rest is for those that are attached while others stand still.
 */
static unsigned int kbt_window_max(const struct kbt_conn *conn)
{
	return conn->volumes ? conn->credits - conn->credits / 4 : conn->credits;
}

/**
 * kbt_credits_begin() - give a connection its first credits
 * @conn: connection; ->credits is the most that it can have
 *
 * If all credits are given, others return theirs with their next replies.
 *
 * Context: Process context.
 * Return: false if the longest queue has no buffer left for each connection, or
 * the others are for other hosts.
 */
bool kbt_credits_begin(struct kbt_conn *conn)
{
	unsigned int own = kbt_first_own(conn);
	struct kbt *kbt = conn->kbt;
	int limit = kbt_credit_limit(kbt);
	int left;

	lockdep_assert_held(&kbt->mutex);

	if (!kbt_own_reserve(conn, own, kbt_srq_max(kbt)))
		return false;
	conn->window = own;
	/* Half of the credits are for those who turn out to want them. */
	left = limit / 2 - atomic_read(&kbt->granted) - (int)own;
	if (left > 0)
		conn->window += left / 4;
	conn->window = min(conn->window, kbt_window_max(conn));
	atomic64_set(&conn->given, conn->window);
	atomic_add(conn->window, &kbt->granted);
	return true;
}

/* Take the credits of @conn, but for @kept of those of its own. Context: any. */
static void kbt_credits_take(struct kbt_conn *conn, unsigned int kept)
{
	unsigned int n = conn->window - min(conn->window, kept);

	conn->window -= n;
	atomic_sub(n, &conn->kbt->granted);
	kbt_volumes_release(conn, conn->for_volumes);
	kbt_own_release(conn, conn->own - min(conn->own, kept));
}

/*
 * @conn has ended, and receives nothing any more, but its slots may be busy for as long
 * as a medium takes. Others get its credits, but for that of a receive buffer which a
 * WRITE may keep for so long. Context: process.
 */
void kbt_credits_drop(struct kbt_conn *conn)
{
	lockdep_assert_held(&conn->lock);

	kbt_credits_take(conn, test_bit(KBT_CONN_KEEPS, &conn->flags) ? 1 : 0);
	/* The queue may become shorter. */
	kbt_srq_calm_down(conn->kbt);
}

/* Take the last credits of a connection that is being freed. */
void kbt_credits_end(struct kbt_conn *conn)
{
	kbt_credits_take(conn, 0);
}

/*
 * Return how many credits @conn needs with one volume more: its own, and all that are
 * outstanding beyond those, or withheld.
 */
static unsigned int kbt_credits_needed(struct kbt_conn *conn)
{
	unsigned int n = conn->attached + 2 + conn->withheld;
	struct kbt_attachment *att;

	lockdep_assert_held(&conn->lock);

	list_for_each_entry(att, &conn->attachments, link)
		if (att->unreplied > 1)
			n += att->unreplied - 1;
	return n;
}

/**
 * kbt_credits_attach() - keep a credit for another volume of a connection
 * @io: slot of ATTACH, whose reply brings what is missing
 *
 * The first volume has one since the connection was made. If all credits are
 * given, others return theirs with their next replies. Volumes leave a quarter for
 * connections, which clients with many volumes must not keep out.
 *
 * Context: Process context, conn->lock held.
 * Return: false if there is none.
 */
bool kbt_credits_attach(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	struct kbt *kbt = conn->kbt;
	unsigned int need;

	lockdep_assert_held(&conn->lock);

	if (!conn->attached)
		return true;
	need = kbt_credits_needed(conn);
	if (need > conn->credits || !kbt_volume_reserve(conn))
		return false;
	if (conn->window < need) {
		io->brings = need - conn->window;
		conn->window = need;
		atomic_add(io->brings, &kbt->granted);
		kbt_srq_adapt(kbt);
	}
	return true;
}

/*
 * Undo kbt_credits_attach() for one of conn->attached volumes. The client may keep
 * the credit until others want it. Context: process.
 */
void kbt_credits_detach(struct kbt_conn *conn)
{
	lockdep_assert_held(&conn->lock);

	if (conn->attached <= 1 || conn->draining)
		return;
	kbt_volumes_release(conn, 1);
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

	if (conn->window <= conn->own ||
	    (!kbt_are_short(kbt) &&
	     atomic_read(&kbt->granted) <= kbt_credit_limit(kbt)))
		return false;
	share = kbt_credit_limit(kbt) / max(atomic_read(&kbt->live), 1);
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

	if (conn->draining || conn->window >= kbt_window_max(conn))
		return false;
	return conn->credits_move ? io->wants :
	       atomic64_read(&conn->requests) - atomic64_read(&conn->replied) >=
	       conn->window;
}

/* Reserve one more credit; false if there is none. litmus: none, a count. */
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

/*
 * Return whether the reply to @io may bring no credit. If volumes share the
 * connection others may keep all that is outstanding; the credit of a volume's
 * last request is what its next one needs.
 */
static bool kbt_may_take(const struct kbt_io *io)
{
	return !io->conn->volumes || (io->att && io->att->unreplied);
}

static u16 kbt_next_credits(const struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;

	lockdep_assert_held(&conn->lock);

	if (conn->throttled && kbt_may_take(io) &&
	    conn->withheld < conn->window / 2) {
		conn->withheld++;
		return 0;
	}
	if (conn->throttled)
		return 1;
	if (conn->withheld) {
		conn->withheld--;
		return 2;
	}
	if (kbt_window_shrinks(conn) && kbt_may_take(io)) {
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
 * Return the credits that the reply to @io, which is being made, gives: 1 keeps
 * the window as it is. While the client is throttled half of its credits are held
 * back, and returned later.
 */
u16 kbt_credits(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	u16 n;

	if (io->att)
		io->att->unreplied--;
	n = kbt_next_credits(io) + io->brings;
	io->brings = 0;
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
