// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared Receive Queues: the EVDs that complete an SRQ's buffers.
 *
 * These are the receive EVDs of all Endpoints on the SRQ. They are polled before a
 * count is told or compared (kdapl_srq_poll_all()), and watched while completions
 * must be noticed though nobody polls (kdapl_srq_watch()).
 *
 * EVD locks are outside of srq->lock, so the list is walked under RCU; srq->lock
 * protects changes of it.
 */
#include <linux/rculist.h>
#include <linux/slab.h>
#include "evd.h"
#include "srq.h"

/*
 * How closely must completions be watched: for the low mark, or to feed the
 * device? Without RNR an empty device queue ends the connection.
 */
enum kdapl_watch kdapl_srq_watch_wanted(struct kdapl_srq *srq)
{
	if (READ_ONCE(srq->feeding))
		return KDAPL_WATCH_SOFTIRQ;
	return READ_ONCE(srq->lw_armed) ? KDAPL_WATCH : KDAPL_WATCH_NONE;
}

/* Poll every EVD that this SRQ's completions go to. Any context. */
void kdapl_srq_poll_all(struct kdapl_srq *srq)
{
	struct kdapl_srq_evd *se;

	rcu_read_lock();
	list_for_each_entry_rcu(se, &srq->evds, link)
		kdapl_cq_poll_all(se->evd);
	rcu_read_unlock();
}

/* Tell the EVD of @se that @max of its events can be outstanding. */
static void kdapl_srq_expect(struct kdapl_srq_evd *se, int max)
{
	int was = xchg(&se->expected, max);

	if (was == max)
		return;
	kdapl_cq_expect(se->evd, max - was);
	if (max > was && kdapl_cq_arm(se->evd))
		kdapl_cq_schedule_poll(se->evd);
}

static void kdapl_srq_unwatch(struct kdapl_srq_evd *se)
{
	enum kdapl_watch was = xchg(&se->watched, KDAPL_WATCH_NONE);

	if (was != KDAPL_WATCH_NONE)
		kdapl_cq_watch(se->evd, was, KDAPL_WATCH_NONE);
	kdapl_srq_expect(se, 0);
}

/*
 * Watch the SRQ's EVDs as closely as is wanted now: while the low watermark is
 * armed, completions must be noticed on EVDs without upcall as well, and so they
 * must if the SRQ is long enough to make an EVD overflow. EVD locks are outside of
 * srq->lock, so this runs without it and repeats if a setting has changed
 * meanwhile. Context: any.
 */
void kdapl_srq_watch(struct kdapl_srq *srq)
{
	enum kdapl_watch want, was;
	struct kdapl_srq_evd *se;
	int max;

	do {
		max = READ_ONCE(srq->max);
		want = kdapl_srq_watch_wanted(srq);
		rcu_read_lock();
		list_for_each_entry_rcu(se, &srq->evds, link) {
			was = xchg(&se->watched, want);
			if (was != want)
				kdapl_cq_watch(se->evd, was, want);
			kdapl_srq_expect(se, max);
			/*
			 * The EVD was deleted concurrently; its unwatch may
			 * have run before our xchg().
			 */
			if (READ_ONCE(se->removed))
				kdapl_srq_unwatch(se);
		}
		rcu_read_unlock();
	} while (want != kdapl_srq_watch_wanted(srq) ||
		 max != READ_ONCE(srq->max));
}

int kdapl_srq_add_evd(struct kdapl_srq *srq, struct kdapl_evd *evd)
{
	struct kdapl_srq_evd *se, *fresh;
	unsigned long flags;

	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL);
	if (!fresh)
		return -ENOMEM;
	fresh->evd = evd;
	fresh->eps = 1;
	spin_lock_irqsave(&srq->lock, flags);
	list_for_each_entry(se, &srq->evds, link) {
		if (se->evd == evd) {
			se->eps++;
			goto found;
		}
	}
	list_add_tail_rcu(&fresh->link, &srq->evds);
	fresh = NULL;
found:
	spin_unlock_irqrestore(&srq->lock, flags);
	kfree(fresh);
	kdapl_srq_watch(srq);
	return 0;
}

/* One EP less has @evd for its receives from @srq. Context: any. */
void kdapl_srq_del_evd(struct kdapl_srq *srq, struct kdapl_evd *evd)
{
	struct kdapl_srq_evd *se, *old = NULL;
	unsigned long flags;

	spin_lock_irqsave(&srq->lock, flags);
	list_for_each_entry(se, &srq->evds, link) {
		if (se->evd == evd && !--se->eps) {
			list_del_rcu(&se->link);
			WRITE_ONCE(se->removed, true);
			old = se;
			break;
		}
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	if (!old)
		return;
	kdapl_srq_unwatch(old);
	kfree_rcu(old, rcu);
}
