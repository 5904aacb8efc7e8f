// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clients that misbehave: detect them, end their connections, shun their hosts.
 *
 * Entry points: kbt_silence_work() looks at all connections every
 * KBT_SILENCE_CHECK, kbt_judge() at each connection that has ended,
 * kbt_is_shunned() at each connection request.
 *
 * A connection ends if its client exceeds its credits, sends what is no request,
 * does not attach in time, fails to authenticate, stays silent although it
 * promised keep-alives, or does not take its replies or give the data of its writes.
 * Except for silence and a missing ATTACH its host is refused for penalty_ms.
 *
 * The struct kbt owns the list of shunned hosts; kbt->mutex guards it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <net/ipv6.h>
#include "tgt.h"

#define KBT_SLOW_DRAIN	(10 * HZ)
#define KBT_SILENCE_CHECK (HZ / 4)

/* ---- Clients that behave badly ------------------------------------------- */

bool kbt_same_host(const struct sockaddr_storage *a,
		   const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (void *)a, *b6 = (void *)b;
	const struct sockaddr_in *a4 = (void *)a, *b4 = (void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr);
	return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

/*
 * Return the entry for @host: its own, a free one, or the one whose time is over first.
 * Context: process.
 */
static struct kbt_shunned *kbt_shun_entry(struct kbt *kbt,
					  const struct sockaddr_storage *host)
{
	struct kbt_shunned *entry, *best = kbt->shunned;
	unsigned int i;

	lockdep_assert_held(&kbt->mutex);

	for (i = 0; i < KBT_SHUNNED; i++) {
		entry = &kbt->shunned[i];
		if (kbt_same_host(&entry->host, host))
			return entry;
		if (best->host.ss_family && (!entry->host.ss_family ||
					     time_before(entry->until, best->until)))
			best = entry;
	}
	return best;
}

/* Refuse connections from @host for penalty_ms. Context: process. */
static void kbt_shun(struct kbt *kbt, const struct sockaddr_storage *host)
{
	u32 ms = kbt->params->penalty_ms;
	struct kbt_shunned *entry;

	lockdep_assert_held(&kbt->mutex);

	if (!ms)
		return;
	entry = kbt_shun_entry(kbt, host);
	entry->host = *host;
	entry->until = jiffies + msecs_to_jiffies(ms);
}

/* Forget hosts whose time is over: on 32 bit, jiffies wrap within weeks. */
static void kbt_forgive(struct kbt *kbt)
{
	unsigned int i;

	lockdep_assert_held(&kbt->mutex);

	for (i = 0; i < KBT_SHUNNED; i++)
		if (time_after_eq(jiffies, kbt->shunned[i].until))
			kbt->shunned[i].host.ss_family = 0;
}

bool kbt_is_shunned(struct kbt *kbt, const struct sockaddr_storage *host)
{
	unsigned int i;

	for (i = 0; i < KBT_SHUNNED; i++)
		if (kbt->shunned[i].host.ss_family &&
		    time_before(jiffies, kbt->shunned[i].until) &&
		    kbt_same_host(&kbt->shunned[i].host, host))
			return true;
	return false;
}

/*
 * Return whether the client has sent more requests than its credits allow, and
 * has thus reached its hard high watermark. @conn is drained. Only delivered
 * replies count: a reply posted after the connection was broken does not fail
 * but is flushed.
 */
static bool kbt_is_greedy(struct kbt_conn *conn)
{
	DAT_COUNT held = 0;

	dat_ep_recv_query(conn->ep, &held, NULL);
	return held + atomic64_read(&conn->requests) -
	       atomic64_read(&conn->delivered) > conn->credits;
}

/*
 * Shun the host of @conn, whose client has not proven who it is. The error reply may
 * be lost with the connection; the client is refused either way.
 */
static void kbt_shun_unproven(struct kbt_conn *conn)
{
	lockdep_assert_held(&conn->kbt->mutex);

	if (test_and_set_bit(KBT_CONN_JUDGED, &conn->flags))
		return;
	kbt_count(conn->kbt, KBT_STAT_UNPROVEN, 1);
	pr_warn_ratelimited("%s: does not prove who it is, ending the connection\n",
			    conn->peer);
	kbt_shun(conn->kbt, &conn->host);
}

/*
 * Shun the host of @conn, which is about to be freed, if the client has
 * exceeded its credits, whatever was the first sign of it, has sent what is no
 * request, or has not proven who it is and has left before kbt_look_after() came.
 */
void kbt_judge(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;
	bool greedy = conn->overdrawn || kbt_is_greedy(conn);

	if (conn->unproven) {
		mutex_lock(&kbt->mutex);
		kbt_shun_unproven(conn);
		mutex_unlock(&kbt->mutex);
	}
	if (!greedy && !conn->malformed)
		return;
	if (greedy) {
		kbt_count(kbt, KBT_STAT_CUT_OFF, 1);
		pr_warn_ratelimited("%s: has ignored its credits, cut off\n",
				    conn->peer);
	}
	mutex_lock(&kbt->mutex);
	kbt_shun(kbt, &conn->host);
	mutex_unlock(&kbt->mutex);
}

/* ---- Silence ------------------------------------------------------------- */

/*
 * Update conn->heard if a message has arrived, even one that is still waiting
 * on the EVD.
 */
static void kbt_listen_to(struct kbt_conn *conn)
{
	DAT_COUNT held = 0;
	unsigned long n;

	dat_ep_recv_query(conn->ep, &held, NULL);
	n = READ_ONCE(conn->messages) + held;
	/*
	 * Before ATTACH, conn->heard is the time of connecting: no other
	 * message extends the time to attach.
	 */
	if (READ_ONCE(conn->ns) && n != conn->arrived)
		WRITE_ONCE(conn->heard, jiffies);
	conn->arrived = n;
}

/* Return whether the client has no credit left, and so must be silent. */
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
	unsigned long patience = READ_ONCE(conn->patience);

	return patience &&
	       time_after(jiffies, READ_ONCE(conn->heard) + patience) &&
	       !(READ_ONCE(conn->ns) && kbt_is_speechless(conn));
}

/*
 * Return whether a reply was not taken, or the data of a WRITE not given, within
 * reply_ms. A client must have a receive posted for each reply, and answer RDMA
 * Reads; otherwise it occupies slots and buffers of others. Each reply is checked:
 * taking one now and then is not enough.
 */
static bool kbt_is_stuck(struct kbt_conn *conn)
{
	u32 ms = conn->kbt->params->reply_ms;
	unsigned long posted;
	unsigned int i;

	if (!ms || (!atomic_read(&conn->transfers) &&
		    atomic64_read(&conn->replied) ==
		    atomic64_read(&conn->delivered)))
		return false;
	for (i = 0; i < conn->kbt->params->io_depth; i++) {
		posted = READ_ONCE(conn->ios[i].posted);
		if (posted && time_after(jiffies, posted +
					 msecs_to_jiffies(ms)))
			return true;
	}
	return false;
}

/*
 * Log, every KBT_SLOW_DRAIN, that requests of an ending connection are still on
 * the medium.
 */
static void kbt_drags_on(struct kbt_conn *conn)
{
	unsigned long ended = READ_ONCE(conn->ended);

	if (!ended || time_before(jiffies, ended + KBT_SLOW_DRAIN))
		return;
	WRITE_ONCE(conn->ended, jiffies);
	pr_warn_ratelimited("%s: %u requests are still under way\n", conn->peer,
			    conn->kbt->params->io_depth -
			    READ_ONCE(conn->idle_count));
}

static void kbt_look_after(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;

	if (kbt_conn_ending(conn)) {
		kbt_drags_on(conn);
		return;
	}
	kbt_listen_to(conn);
	if (READ_ONCE(conn->unproven)) {
		kbt_shun_unproven(conn);
		kbt_conn_end(conn);
	} else if (kbt_is_silent(conn)) {
		kbt_count(kbt, KBT_STAT_SILENT, 1);
		pr_warn_ratelimited("%s: %s, ending the connection\n",
				    conn->peer, READ_ONCE(conn->ns) ?
				    "silent for too long" :
				    "has not attached in time");
		kbt_conn_end(conn);
	} else if (kbt_is_stuck(conn)) {
		kbt_count(kbt, KBT_STAT_STUCK, 1);
		pr_warn_ratelimited("%s: does not take its replies, or give its data, ending the connection\n",
				    conn->peer);
		kbt_shun(kbt, &conn->host);
		kbt_conn_end(conn);
	}
}

/*
 * Check all connections, forget what has expired, and run again after
 * KBT_SILENCE_CHECK.
 */
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
