// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Credits of clients: never more in all than there are receive buffers.
 *
 * Entry points: kbt_credits_begin(), kbt_credits_drop() and kbt_credits_end() when a
 * connection is made, receives no more and is freed, kbt_credits_attach() and
 * kbt_credits_detach() with each volume, kbt_credits() for each reply, kbt_credits_back() for
 * returned credits, kbt_credits_calm_down() now and then.
 *
 * A credit is the right to send a request, and a message with requests takes one buffer of the
 * SRQ. A client that finds no buffer waits for a timer of its device, or loses its connection
 * over iWARP, so buffers must not run short as long as clients keep to their credits. Each
 * connection therefore has a window. One credit, or two if the client does not know
 * KBLK_FEATURE_CREDITS, is reserved for the connection. A connection that may have several
 * volumes has one reserved credit for itself and one for each volume, so that volumes which
 * stand still leave the client some for other volumes. The reserved credits of a host are
 * limited, so that other hosts find some; the credits of volumes are limited, so that
 * connections find some.
 *
 * Clients that want more than they have get the rest. An idle client returns its part with its
 * next keep-alive. A client that has more than its share while others go without returns some
 * by replies that bring no credit.
 *
 * The other half is the length of the SRQ, see tgt_srq.c: the SRQ grows when a client gets no
 * credit, or most buffers are in use, and never becomes shorter than the granted credits.
 *
 * Connections share no lock: kbt->granted is changed when a window grows or shrinks, and only
 * read otherwise. conn->lock guards the window.
 */
#include <linux/jiffies.h>
#include "tgt.h"

/* How long a client without credits makes other clients return theirs */
#define KBT_SHORT	(HZ / 10)

/* Credits that let another host connect, and attach some volumes */
#define KBT_FEW		8U

/* Initialise the counts; the last shortage of credits is long past. */
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

/* Return how many credits may be reserved for attached volumes. */
static unsigned int kbt_volumes_max(struct kbt *kbt)
{
	unsigned int max = kbt_srq_max(kbt);

	return max - max / 4;
}

/* Return how many credits of volumes one host may have: other hosts attach volumes as well. */
static unsigned int kbt_host_volumes_max(struct kbt *kbt)
{
	return kbt_of_a_host(kbt_volumes_max(kbt));
}

/* Return how many credits volumes leave for connections, and a host for other hosts. */
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
 * Reserve @n credits for the host of @conn; a host that only the request has named is not
 * charged. Return false if the host would have more than one host may have. Context: any.
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
 * Charge the credits of @conn, whose peer has proven its host, to that host. Return false if
 * the host would have more than it may. Context: process.
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
 * Reserve @n more credits for @conn. Return false if more than @max would be reserved, or more
 * than its host may have: nearly all, since there may be only one host. Context: any.
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

/* Reserve a credit for another volume, like kbt_own_reserve(). Context: any. */
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
 * Return the number of credits up to which windows may grow: the rest is for connections that
 * are just being made.
 */
static int kbt_credit_limit(struct kbt *kbt)
{
	unsigned int n = kdat_pool_usable(kbt->adapter.pool);

	return n - n / 16;
}

/* Return whether a client went without credits within KBT_SHORT. */
static bool kbt_are_short(struct kbt *kbt)
{
	return !time_after(jiffies, READ_ONCE(kbt->short_since) + KBT_SHORT);
}

/*
 * Keep an old shortage in the past, where it would not be when jiffies have wrapped. A
 * shortage that is noted meanwhile stays. litmus: none, a time.
 */
void kbt_credits_calm_down(struct kbt *kbt)
{
	unsigned long since = READ_ONCE(kbt->short_since);

	if (!kbt_are_short(kbt))
		cmpxchg(&kbt->short_since, since, jiffies - KBT_SHORT - 1);
}

/*
 * Return how many buffers the granted credits need, and a quarter more during a shortage;
 * srq_max at most. Context: any.
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
 * Note that a client goes without credits, so that the queue becomes longer, or other clients
 * return theirs. Context: any.
 */
static void kbt_credits_short(struct kbt *kbt)
{
	if (!time_after(jiffies, READ_ONCE(kbt->short_since)))
		return;
	WRITE_ONCE(kbt->short_since, jiffies);
	if (kbt_credits_buffers(kbt) > (unsigned int)kdat_pool_usable(kbt->adapter.pool))
		kdat_pool_adapt(kbt->adapter.pool, DAT_TRUE);
}

/*
 * Return how many credits @conn may have because its client wants them. If volumes share
 * @conn, the rest is for volumes that are attached while others stand still.
 */
static unsigned int kbt_window_max(const struct kbt_conn *conn)
{
	return conn->volumes ? conn->credits - conn->credits / 4 : conn->credits;
}

/**
 * kbt_credits_begin() - give a connection its first credits
 * @conn: connection; ->credits is the most that it can have
 *
 * If all credits are given, other connections return theirs with their next replies.
 *
 * Context: Process context.
 * Return: false if the longest queue has no buffer for another connection, or the remaining
 * buffers are for other hosts.
 */
bool kbt_credits_begin(struct kbt_conn *conn)
{
	unsigned int own = kbt_first_own(conn);
	struct kbt *kbt = conn->kbt;
	int limit = kbt_credit_limit(kbt);
	int left;

	lockdep_assert_held(&kbt->mutex);

	if (!kbt_own_reserve(conn, own, kbt_srq_max(kbt))) {
		/* The client tries again, and finds the buffers of one that does not attach. */
		if (atomic_read(&kbt->owned) + own > kbt_srq_max(kbt))
			kbt_make_room(kbt, conn->host);
		return false;
	}
	conn->window = own;
	/* Half of the credits are for clients that turn out to want them. */
	left = limit / 2 - atomic_read(&kbt->granted) - (int)own;
	if (left > 0)
		conn->window += left / 4;
	conn->window = min(conn->window, kbt_window_max(conn));
	atomic64_set(&conn->given, conn->window);
	atomic_add(conn->window, &kbt->granted);
	return true;
}

/* Take the credits of @conn, except @kept of its own credits. Context: any. */
static void kbt_credits_take(struct kbt_conn *conn, unsigned int kept)
{
	unsigned int n = conn->window - min(conn->window, kept);

	conn->window -= n;
	atomic_sub(n, &conn->kbt->granted);
	kbt_volumes_release(conn, conn->for_volumes);
	kbt_own_release(conn, conn->own - min(conn->own, kept));
}

/*
 * Take the credits of @conn, which has ended and receives nothing any more, although its slots
 * may be busy for as long as a medium takes. One credit stays if a WRITE may keep a receive
 * buffer for so long. Context: process.
 */
void kbt_credits_drop(struct kbt_conn *conn)
{
	lockdep_assert_held(&conn->lock);

	kbt_credits_take(conn, test_bit(KBT_CONN_KEEPS, &conn->flags) ? 1 : 0);
	/* Fewer credits may allow a shorter queue. */
	kdat_pool_adapt(conn->kbt->adapter.pool, DAT_FALSE);
}

/* Take the last credits of a connection that is being freed. */
void kbt_credits_end(struct kbt_conn *conn)
{
	kbt_credits_take(conn, 0);
}

/*
 * Return how many credits @conn needs with one volume more: its reserved ones, the withheld
 * ones, and those of further outstanding requests.
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
 * The first volume has a credit since the connection was made. If all credits are given, other
 * connections return theirs with their next replies. Volumes leave a quarter for connections,
 * which clients with many volumes must not keep out.
 *
 * Context: Process context, conn->lock held.
 * Return: false if there is no credit.
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
		kdat_pool_adapt(kbt->adapter.pool, DAT_TRUE);
	}
	return true;
}

/*
 * Undo kbt_credits_attach() for one of conn->attached volumes. The client may keep the credit
 * until other clients want it. Context: process.
 */
void kbt_credits_detach(struct kbt_conn *conn)
{
	lockdep_assert_held(&conn->lock);

	if (conn->attached <= 1 || conn->draining)
		return;
	kbt_volumes_release(conn, 1);
}

/*
 * Return whether the client has more than its share while others go without, or while new
 * connections have made the credits exceed the buffers. Context: any.
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
 * Return whether more credits would be of use to the client of @io. A client that cannot say
 * so must have requests outstanding for all its credits.
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

/* Reserve one more credit; return false if there is none. litmus: none, a count. */
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
 * Return whether the reply to @io may bring no credit. If volumes share the connection, other
 * volumes may keep all outstanding credits, so the reply to a volume's last request returns
 * the credit that its next request needs.
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
 * Return the credits that the reply to @io, which is being made, gives: 1 keeps the window as
 * it is. While the client is throttled, half of its credits are held back, and returned later.
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

/* Take back @n credits from the client; kbt_is_overdrawn() has checked that it has them. */
void kbt_credits_back(struct kbt_conn *conn, unsigned int n)
{
	lockdep_assert_held(&conn->lock);
	n = min(n, conn->window - 1);
	conn->window -= n;
	atomic_sub(n, &conn->kbt->granted);
	/* Fewer credits may allow a shorter queue. */
	kdat_pool_adapt(conn->kbt->adapter.pool, DAT_FALSE);
}
