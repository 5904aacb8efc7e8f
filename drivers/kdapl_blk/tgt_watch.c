// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clients that misbehave: detect them, end their connections, shun their hosts.
 *
 * Entry points: kbt_silence_work() looks at all connections every KBT_SILENCE_CHECK,
 * kbt_judge() at each connection that has ended, kbt_is_shunned() at each connection request.
 *
 * A connection ends if its client exceeds its credits, sends a malformed message, does not
 * attach in time, fails to authenticate, stays silent although it promised keep-alives, or
 * does not take its replies or give the data of its writes. In all these cases but silence and
 * a missing ATTACH, the client's host is refused for penalty_ms, if the peer has proven to be
 * of that host.
 *
 * The struct kbt owns the list of shunned hosts; kbt->mutex guards it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include "tgt.h"

#define KBT_SLOW_DRAIN	(10 * HZ)
#define KBT_SILENCE_CHECK (HZ / 4)
/* Time after the end of a connection from which its requests on the medium count as hanging */
#define KBT_HANGS	HZ
/* Time without throttling after which the log says that a client keeps up */
#define KBT_CAUGHT_UP	(5 * HZ)

/* ---- Clients that behave badly ------------------------------------------- */

/*
 * Return the entry for @host: its own, else a free one, else the one that expires first.
 * Context: process.
 */
static struct kbt_shunned *kbt_shun_entry(struct kbt *kbt,
					  const struct in6_addr *host)
{
	struct kbt_shunned *entry, *best = kbt->shunned;
	unsigned int i;

	lockdep_assert_held(&kbt->mutex);

	for (i = 0; i < KBT_SHUNNED; i++) {
		entry = &kbt->shunned[i];
		if (entry->used && ipv6_addr_equal(&entry->host, host))
			return entry;
		if (best->used && (!entry->used ||
				   time_before(entry->until, best->until)))
			best = entry;
	}
	return best;
}

/*
 * Refuse connections from the host of @conn for penalty_ms, unless only a connection request
 * has named the host. A client that has sent messages has got our answer, even if the event
 * about the established connection comes later. Context: process.
 */
static void kbt_shun(struct kbt_conn *conn)
{
	const struct in6_addr *host = &conn->host->id;
	struct kbt *kbt = conn->kbt;
	u32 ms = kbt->params->penalty_ms;
	struct kbt_shunned *entry;

	lockdep_assert_held(&kbt->mutex);

	if (!ms || (!test_bit(KBT_CONN_PROVEN, &conn->flags) && !READ_ONCE(conn->messages)))
		return;
	entry = kbt_shun_entry(kbt, host);
	entry->host = *host;
	entry->used = true;
	entry->until = jiffies + msecs_to_jiffies(ms);
}

/* Forget hosts whose penalty is over: on 32 bit, jiffies wrap within weeks. */
static void kbt_forgive(struct kbt *kbt)
{
	unsigned int i;

	lockdep_assert_held(&kbt->mutex);

	for (i = 0; i < KBT_SHUNNED; i++)
		if (time_after_eq(jiffies, kbt->shunned[i].until))
			kbt->shunned[i].used = false;
}

bool kbt_is_shunned(struct kbt *kbt, const struct in6_addr *host)
{
	unsigned int i;

	for (i = 0; i < KBT_SHUNNED; i++)
		if (kbt->shunned[i].used &&
		    time_before(jiffies, kbt->shunned[i].until) &&
		    ipv6_addr_equal(&kbt->shunned[i].host, host))
			return true;
	return false;
}

/*
 * Return whether the client has sent more requests than its credits allow. Either it has
 * reached its hard high watermark, even if all messages were served before the connection
 * was down; or it has not taken the replies, which can be told when @conn is @drained, but
 * messages may be dropped meanwhile; recv_mutex has each counted once. Only delivered replies
 * count: a reply posted after the connection was broken does not fail but is flushed.
 */
static bool kbt_is_greedy(struct kbt_conn *conn, bool drained)
{
	DAT_BOOLEAN fired = DAT_FALSE;
	DAT_COUNT held = 0;
	s64 n;

	kdat_ep_query_hard_hw(conn->ep, &fired);
	if (fired || !drained)
		return fired;
	mutex_lock(&conn->recv_mutex);
	dat_ep_recv_query(conn->ep, &held, NULL);
	n = held + atomic64_read(&conn->requests);
	mutex_unlock(&conn->recv_mutex);
	return n - atomic64_read(&conn->delivered) > conn->credits;
}

/*
 * Shun the host of @conn, whose client has not proven who it is. The error reply may be lost
 * with the connection; the client is refused either way. litmus: one-winner
 */
static void kbt_shun_unproven(struct kbt_conn *conn)
{
	lockdep_assert_held(&conn->kbt->mutex);

	if (test_and_set_bit(KBT_CONN_JUDGED, &conn->flags))
		return;
	kbt_count(conn->kbt, KBT_STAT_UNPROVEN, 1);
	pr_warn_ratelimited("%s: does not prove who it is, ending the connection\n",
			    conn->peer);
	kbt_shun(conn);
}

/*
 * Shun the host of @conn, once, if the client has exceeded its credits, whatever showed this
 * first, has sent a malformed message, or is not proven and has left before kbt_look_after() saw
 * that. A connection is judged when it has ended, since its requests may stay on the medium for
 * ever; and, if it is @drained, by its replies too, which may show that after a malformed message
 * has had the host shunned. litmus: one-winner
 */
void kbt_judge(struct kbt_conn *conn, bool drained)
{
	struct kbt *kbt = conn->kbt;
	bool greedy = conn->overdrawn || kbt_is_greedy(conn, drained);

	mutex_lock(&kbt->mutex);
	if (conn->unproven)
		kbt_shun_unproven(conn);
	if (greedy && !test_and_set_bit(KBT_CONN_CUT_OFF, &conn->flags)) {
		kbt_count(kbt, KBT_STAT_CUT_OFF, 1);
		pr_warn_ratelimited("%s: has ignored its credits, cut off\n", conn->peer);
	}
	if ((greedy || conn->malformed) && !test_and_set_bit(KBT_CONN_SHUNNED, &conn->flags))
		kbt_shun(conn);
	mutex_unlock(&kbt->mutex);
}

/* ---- Silence ------------------------------------------------------------- */

/* Update conn->heard if a message has arrived, even one that is still waiting on the EVD. */
static void kbt_listen_to(struct kbt_conn *conn)
{
	DAT_COUNT held = 0;
	unsigned long n;

	dat_ep_recv_query(conn->ep, &held, NULL);
	n = READ_ONCE(conn->messages) + held;
	/*
	 * Before ATTACH, conn->heard is the time of connecting: no other message extends the
	 * time to attach.
	 */
	if (READ_ONCE(conn->attached) && n != conn->arrived)
		WRITE_ONCE(conn->heard, jiffies);
	conn->arrived = n;
}

/* Return whether the client has no credit left, so that it cannot send. */
static bool kbt_is_speechless(struct kbt_conn *conn)
{
	DAT_COUNT held = 0;

	dat_ep_recv_query(conn->ep, &held, NULL);
	return held + atomic64_read(&conn->requests) -
	       atomic64_read(&conn->delivered) + READ_ONCE(conn->withheld) >=
	       READ_ONCE(conn->window);
}

static bool kbt_is_silent(struct kbt_conn *conn)
{
	bool silent, attached;

	spin_lock_irq(&conn->lock);
	silent = conn->patience &&
		 time_after(jiffies, conn->heard + conn->patience);
	attached = conn->attached;
	spin_unlock_irq(&conn->lock);
	return silent && !(attached && kbt_is_speechless(conn));
}

/*
 * Return whether a reply was not taken, or the data of a WRITE not given, within @patience,
 * jiffies. A client must have a receive posted for each reply, and answer RDMA Reads;
 * otherwise it occupies slots and buffers of others. Each reply is checked: taking one now and
 * then is not enough.
 */
bool kbt_takes_no_replies(struct kbt_conn *conn, unsigned long patience)
{
	unsigned long posted;
	unsigned int i;

	if (!atomic_read(&conn->transfers) &&
	    atomic64_read(&conn->replied) == atomic64_read(&conn->delivered))
		return false;
	for (i = 0; i < conn->kbt->params->io_depth; i++) {
		posted = READ_ONCE(conn->ios[i].posted);
		if (posted && time_after(jiffies, posted + patience))
			return true;
	}
	return false;
}

static bool kbt_is_stuck(struct kbt_conn *conn)
{
	u32 ms = conn->kbt->params->reply_ms;

	return ms && kbt_takes_no_replies(conn, msecs_to_jiffies(ms));
}

/*
 * Note that requests of an ending connection are still on the medium after KBT_HANGS, and log
 * it every KBT_SLOW_DRAIN.
 */
static void kbt_drags_on(struct kbt_conn *conn)
{
	unsigned long ended = READ_ONCE(conn->ended);

	if (!ended || time_before(jiffies, ended + KBT_HANGS))
		return;
	/*
	 * Before kDAPL has reported the end, a request may only wait for its flush.
	 * litmus: one-winner
	 */
	if (test_bit(KBT_CONN_GONE, &conn->flags) &&
	    !test_and_set_bit(KBT_CONN_HANGS, &conn->flags))
		kbt_hang(conn);
	if (time_before(jiffies, ended + KBT_SLOW_DRAIN))
		return;
	WRITE_ONCE(conn->ended, jiffies);
	pr_warn_ratelimited("%s: %u requests are still under way\n", conn->peer,
			    conn->kbt->params->io_depth -
			    READ_ONCE(conn->idle_count));
}

/* Log that @conn keeps up, KBT_CAUGHT_UP after it was last throttled. */
static void kbt_keeps_up(struct kbt_conn *conn)
{
	lockdep_assert_held(&conn->kbt->mutex);

	if (!conn->backlogs || READ_ONCE(conn->throttled) ||
	    time_before(jiffies, conn->backlog_at + KBT_CAUGHT_UP))
		return;
	pr_info_ratelimited("%s: was throttled %u times, keeps up now\n", conn->peer,
			    conn->backlogs);
	conn->backlogs = 0;
}

static void kbt_look_after(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;

	if (kbt_conn_ending(conn)) {
		kbt_drags_on(conn);
		return;
	}
	kbt_keeps_up(conn);
	kbt_listen_to(conn);
	if (READ_ONCE(conn->unproven)) {
		kbt_shun_unproven(conn);
		kbt_conn_end(conn);
	} else if (kbt_is_silent(conn)) {
		kbt_count(kbt, KBT_STAT_SILENT, 1);
		pr_warn_ratelimited("%s: %s, ending the connection\n",
				    conn->peer, READ_ONCE(conn->attached) ?
				    "silent for too long" :
				    "has not attached in time");
		kbt_conn_end(conn);
	} else if (kbt_is_stuck(conn)) {
		kbt_count(kbt, KBT_STAT_STUCK, 1);
		pr_warn_ratelimited("%s: does not take its replies, or give its data, ending the connection\n",
				    conn->peer);
		kbt_shun(conn);
		kbt_conn_end(conn);
	}
}

/* Check all connections, forget what has expired, and run again after KBT_SILENCE_CHECK. */
void kbt_silence_work(struct work_struct *work)
{
	struct kbt *kbt = container_of(to_delayed_work(work), struct kbt,
				       silence_work);
	struct kbt_conn *conn;

	mutex_lock(&kbt->mutex);
	kbt_forgive(kbt);
	kbt_credits_calm_down(kbt);
	list_for_each_entry(conn, &kbt->conns, link)
		kbt_look_after(conn);
	mutex_unlock(&kbt->mutex);
	queue_delayed_work(kbt->end_wq, &kbt->silence_work, KBT_SILENCE_CHECK);
}
