// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared Receive Queues: the EVDs that complete an SRQ's buffers.
 *
 * These are the receive EVDs of all Endpoints on the SRQ. They are polled before a count
 * is returned or compared (kdapl_srq_poll_all()), and watched while completions must be
 * noticed though nobody polls (kdapl_srq_watch()).
 *
 * EVD locks are taken before other locks, so the table is walked under RCU. There may be
 * as many EVDs as Endpoints, so the table is indexed.
 */
#include <linux/slab.h>
#include "evd.h"
#include "srq.h"

/*
 * Return how closely to watch completions: for the low mark, or to feed the device.
 * Without RNR an empty device queue ends the connection.
 */
enum kdapl_watch kdapl_srq_watch_wanted(struct kdapl_srq *srq)
{
	if (READ_ONCE(srq->feeding))
		return KDAPL_WATCH_SOFTIRQ;
	return READ_ONCE(srq->lw_armed) ? KDAPL_WATCH : KDAPL_WATCH_NONE;
}

/* Poll all EVDs that complete this SRQ's buffers. Context: any. */
void kdapl_srq_poll_all(struct kdapl_srq *srq)
{
	struct kdapl_srq_evd *se;
	unsigned long index;

	rcu_read_lock();
	xa_for_each(&srq->evds, index, se)
		kdapl_cq_poll_all(se->evd);
	rcu_read_unlock();
}

/* Tell the EVD of @se that @max of its events can be outstanding. litmus: srq-again */
static void kdapl_srq_expect(struct kdapl_srq_evd *se, int max)
{
	int was = xchg(&se->expected, max);

	if (was == max)
		return;
	kdapl_cq_expect(se->evd, max - was);
	if (max > was && kdapl_cq_arm(se->evd))
		kdapl_cq_schedule_poll(se->evd);
}

/* Stop watching the EVD of @se, which was removed. litmus: srq-removed */
static void kdapl_srq_unwatch(struct kdapl_srq_evd *se)
{
	enum kdapl_watch was = xchg(&se->watched, KDAPL_WATCH_NONE);

	if (was != KDAPL_WATCH_NONE)
		kdapl_cq_watch(se->evd, was, KDAPL_WATCH_NONE);
	kdapl_srq_expect(se, 0);
}

/*
 * Watch the EVD of @se as @want says, and let it expect @max events.
 * litmus: srq-again, srq-removed. Context: any; @se is not freed meanwhile.
 */
static void kdapl_srq_watch_evd(struct kdapl_srq_evd *se, enum kdapl_watch want, int max)
{
	enum kdapl_watch was = xchg(&se->watched, want);

	if (was != want)
		kdapl_cq_watch(se->evd, was, want);
	kdapl_srq_expect(se, max);
	/* The EVD was deleted concurrently; its unwatch may have run before our xchg(). */
	if (READ_ONCE(se->removed))
		kdapl_srq_unwatch(se);
}

/*
 * Watch the EVD of @only, or of all entries if @only is NULL, as closely as needed now.
 * While the low watermark is armed, completions must be noticed on EVDs without upcall as
 * well; the same holds if the SRQ is long enough to overflow an EVD. EVD locks are taken
 * before srq->lock, so this runs without it and repeats if a setting has changed
 * meanwhile. Context: any.
 */
static void kdapl_srq_watch_those(struct kdapl_srq *srq, struct kdapl_srq_evd *only)
{
	struct kdapl_srq_evd *se;
	enum kdapl_watch want;
	unsigned long index;
	int max;

	do {
		/*
		 * Store-buffering pair: an adder inserts, then reads the settings; a
		 * setter writes, then walks. One of them sees the other.
		 * litmus: srq-add, srq-again
		 */
		smp_mb();
		max = READ_ONCE(srq->max);
		want = kdapl_srq_watch_wanted(srq);
		if (only) {
			kdapl_srq_watch_evd(only, want, max);
			continue;
		}
		rcu_read_lock();
		xa_for_each(&srq->evds, index, se)
			kdapl_srq_watch_evd(se, want, max);
		rcu_read_unlock();
	} while (want != kdapl_srq_watch_wanted(srq) ||
		 max != READ_ONCE(srq->max));
}

/* Watch the SRQ's EVDs as closely as needed now. Context: any. */
void kdapl_srq_watch(struct kdapl_srq *srq)
{
	kdapl_srq_watch_those(srq, NULL);
}

/* Return the index of @evd in srq->evds; no other EVD has it while @evd exists. */
static unsigned long kdapl_srq_evd_index(const struct kdapl_evd *evd)
{
	return evd->obj.handle & KDAPL_INDEX_MASK;
}

/* Count one more EP in the entry of @evd. Return false if there is no entry. */
static bool kdapl_srq_count_evd(struct kdapl_srq *srq, struct kdapl_evd *evd)
{
	struct kdapl_srq_evd *se;
	unsigned long flags;

	xa_lock_irqsave(&srq->evds, flags);
	se = xa_load(&srq->evds, kdapl_srq_evd_index(evd));
	if (se)
		se->eps++;
	xa_unlock_irqrestore(&srq->evds, flags);
	return se;
}

/*
 * Count one more EP that receives from @srq through @evd. Return 0 or an errno.
 * Context: Process context.
 */
int kdapl_srq_add_evd(struct kdapl_srq *srq, struct kdapl_evd *evd)
{
	struct kdapl_srq_evd *se;
	int err;

	/* The entry stays as long as it has EPs. */
	while (!kdapl_srq_count_evd(srq, evd)) {
		se = kzalloc(sizeof(*se), GFP_KERNEL);
		if (!se)
			return -ENOMEM;
		se->evd = evd;
		se->eps = 1;
		err = xa_insert_irq(&srq->evds, kdapl_srq_evd_index(evd), se,
				    GFP_KERNEL);
		if (!err) {
			kdapl_srq_watch_those(srq, se);
			return 0;
		}
		kfree(se);
		/* -EBUSY: another caller has inserted the entry. */
		if (err != -EBUSY)
			return err;
	}
	return 0;
}

/*
 * Count one EP less that receives from @srq through @evd. kdapl_srq_watch() may be using
 * the entry. litmus: srq-removed, handle-free. Context: any.
 */
void kdapl_srq_del_evd(struct kdapl_srq *srq, struct kdapl_evd *evd)
{
	unsigned long index = kdapl_srq_evd_index(evd);
	struct kdapl_srq_evd *se;
	unsigned long flags;
	bool last;

	xa_lock_irqsave(&srq->evds, flags);
	se = xa_load(&srq->evds, index);
	last = !--se->eps;
	if (last) {
		__xa_erase(&srq->evds, index);
		WRITE_ONCE(se->removed, true);
	}
	xa_unlock_irqrestore(&srq->evds, flags);
	if (!last)
		return;
	kdapl_srq_unwatch(se);
	kfree_rcu(se, rcu);
}
