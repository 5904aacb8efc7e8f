// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is remembered of connections that have ended.
 *
 * conn_down.c calls kdapl_ends_note() once for each connection or attempt, in process
 * context: it counts the reason in the IA, and enters the connection in a ring. Ends that
 * somebody wanted have a ring of their own, as do attempts that failed, so clients that come
 * and go do not push out the connection that broke in the night. /proc/kdapl/ends shows both.
 *
 * kdapl_ends_lock protects the rings; no message takes it.
 */
#include <linux/in6.h>
#include <linux/seq_file.h>
#include <dat/kdat_linux.h>
#include "conn.h"
#include "ep.h"
#include "ia.h"
#include "srq.h"

#define KDAPL_ENDS_KEPT	128

/*
 * struct kdapl_ended - a connection that has ended
 * @at: when it ended, in seconds of real time
 * @since: when it was established; 0: never
 * @available: buffers of the SRQ; -1: it had none
 */
struct kdapl_ended {
	time64_t at;
	time64_t since;
	struct sockaddr_in6 local;
	struct sockaddr_in6 remote;
	DAT_EVENT_NUMBER event;
	u32 port;
	u32 held;
	int hard;
	int available;
	u8 why;
	char name[IB_DEVICE_NAME_MAX];
	char consumer[MODULE_NAME_LEN];
};

/*
 * struct kdapl_ends - the connections that ended last
 * @n: connections ever entered
 */
struct kdapl_ends {
	u64 n;
	struct kdapl_ended ended[KDAPL_ENDS_KEPT];
};

/* The first has what broke, the second what was wanted or never was. */
static struct kdapl_ends kdapl_ends[2];
static DEFINE_SPINLOCK(kdapl_ends_lock);

const char * const kdapl_end_words[] = {
	KDAPL_ENDS(KDAPL_END_WORD, KDAPL_END_WORD)
};

static void kdapl_ended_fill(struct kdapl_ended *e, struct kdapl_conn *conn)
{
	struct kdapl_ep *ep = conn->ep;
	struct kdapl_ia *ia = ep->obj.ia;
	unsigned long flags;

	memset(e, 0, sizeof(*e));
	spin_lock_irqsave(&ep->lock, flags);
	memcpy(&e->local, &ep->local_addr, sizeof(e->local));
	memcpy(&e->remote, &ep->remote_addr, sizeof(e->remote));
	if (conn->established.number)
		e->since = ep->since;
	e->event = conn->end;
	e->why = conn->why;
	spin_unlock_irqrestore(&ep->lock, flags);
	e->at = ktime_get_real_seconds();
	e->port = ia->port;
	e->held = READ_ONCE(ep->held);
	e->hard = READ_ONCE(ep->hard);
	e->available = ep->srq ? kdapl_srq_available(ep->srq) : -1;
	kdapl_hca_name(ia->hca, e->name);
	strscpy(e->consumer, ia->consumer, sizeof(e->consumer));
}

/* Count the end of @conn and remember it. Context: Process context. */
void kdapl_ends_note(struct kdapl_conn *conn)
{
	struct kdapl_ended e;
	struct kdapl_ends *ends;
	bool broke;

	/* kdapl_ep_stop() ends Endpoints that were never connected. */
	if (!READ_ONCE(conn->id))
		return;
	kdapl_ended_fill(&e, conn);
	atomic_long_inc(&conn->ep->obj.ia->ended[e.why]);
	broke = e.since && e.why != KDAPL_END_CONSUMER && e.why != KDAPL_END_PEER;
	ends = &kdapl_ends[broke ? 0 : 1];
	spin_lock(&kdapl_ends_lock);
	ends->ended[ends->n++ % KDAPL_ENDS_KEPT] = e;
	spin_unlock(&kdapl_ends_lock);
	if (broke)
		pr_notice_ratelimited("kdapl: %s/%u: connection of %s, %pISpc with %pISpc, broke: %s; the peer held %u buffers\n",
				      e.name, e.port, e.consumer, &e.local, &e.remote,
				      kdapl_end_words[e.why], e.held);
}

/* Print an address, "-" if there is none. */
void kdapl_show_addr(struct seq_file *m, const char *key, const void *addr)
{
	const struct sockaddr *sa = addr;

	if (sa->sa_family)
		seq_printf(m, " %s=%pISpc", key, sa);
	else
		seq_printf(m, " %s=-", key);
}

void kdat_show_word(struct seq_file *m, const char *key, const char *value)
{
	seq_printf(m, "%s=", key);
	seq_escape_str(m, value, ESCAPE_OCTAL | ESCAPE_NAP | ESCAPE_APPEND, " \\");
}
EXPORT_SYMBOL(kdat_show_word);

/* Print an adapter and the module that uses it. */
void kdapl_show_user(struct seq_file *m, const char *name, u32 port, const char *consumer)
{
	seq_putc(m, ' ');
	kdat_show_word(m, "adapter", name);
	seq_printf(m, "/%u module=%s", port, consumer);
}

/* Show the connections that have ended, the oldest of each ring first. */
int kdapl_ends_show(struct seq_file *m, void *unused)
{
	struct kdapl_ended e;
	unsigned int i, ring;

	for (i = 0; i < 2 * KDAPL_ENDS_KEPT; i++) {
		ring = i / KDAPL_ENDS_KEPT;
		spin_lock(&kdapl_ends_lock);
		e = kdapl_ends[ring].ended[(kdapl_ends[ring].n + i) % KDAPL_ENDS_KEPT];
		spin_unlock(&kdapl_ends_lock);
		if (!e.at)
			continue;
		seq_printf(m, "at=%lld", e.at);
		kdapl_show_user(m, e.name, e.port, e.consumer);
		kdapl_show_addr(m, "local", &e.local);
		kdapl_show_addr(m, "remote", &e.remote);
		seq_printf(m, " since=%lld reason=%s event=%s held=%u hard=%d available=%d\n",
			   e.since, kdapl_end_words[e.why], kdat_event_name(e.event), e.held,
			   e.hard, e.available);
	}
	return 0;
}
