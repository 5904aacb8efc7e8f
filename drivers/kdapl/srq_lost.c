// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared Receive Queues: buffers that a device has forgotten.
 *
 * A device may take a buffer for the first packet of a message and forget it when
 * the QP dies, as rxe does. Devices take buffers in posting order, and each RC QP
 * completes buffers in the order in which it took them. So
 *
 * - a destroyed QP has at most one buffer, and this is older than buffers that the
 *   device is given later. kdapl_qp_destroy() knows whether the QP may have one.
 * - of two messages that an Endpoint completes after that death, the second one
 *   took its buffer after it. Lost buffers are older than this buffer.
 * - a buffer that did not come back although every attached Endpoint has completed a
 *   newer one is held by no QP: it was lost, and is posted again.
 *
 * Where the device allows it, srq_probe.c tells which buffers have been taken at all.
 * Otherwise all buffers that the device has are suspect.
 *
 * Until a suspect comes back or is known to be lost, as many buffers as destroyed QPs may
 * have taken (srq->doubt) are left out of the counts, so that marks fire and replacements
 * can be posted.
 *
 * The cost of a completion does not depend on the number of Endpoints:
 * kdapl_srq_suspect() compares. A work item walks the Endpoints and remembers the one that
 * has completed nothing for longest (srq->oldest); as long as that one is silent, another
 * walk could not find more.
 */
#include <linux/sched/mm.h>
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "srq.h"
#include "trace.h"

/* After a failed probe, no other probe holds up Endpoints for this long. */
#define KDAPL_PROBE_PAUSE	(30 * HZ)

static struct kdapl_wr *kdapl_srq_first(struct kdapl_srq *srq)
{
	lockdep_assert_held(&srq->lock);

	return list_first_entry_or_null(&srq->hw, struct kdapl_wr, link);
}

static void kdapl_srq_set_doubt(struct kdapl_srq *srq)
{
	lockdep_assert_held(&srq->lock);

	srq->doubt = min(srq->destroyed_qps, srq->suspects);
}

/* End all suspicion: no buffer on srq->hw counts as lost. */
void kdapl_srq_trust(struct kdapl_srq *srq)
{
	lockdep_assert_held(&srq->lock);

	srq->suspect_below = 0;
	srq->suspects = 0;
	srq->destroyed_qps = 0;
	srq->oldest = NULL;
	kdapl_srq_set_doubt(srq);
}

/*
 * Update the suspicion, as srq->suspect_below is set: @ep has completed @wr, which has
 * left srq->hw.
 */
void kdapl_srq_suspect(struct kdapl_srq *srq, struct kdapl_ep *ep,
		       struct kdapl_wr *wr)
{
	struct kdapl_wr *first = kdapl_srq_first(srq);
	bool search = false;

	if (!first || first->seq >= srq->suspect_below) {
		kdapl_srq_trust(srq);
		return;
	}
	if (wr->seq < srq->suspect_below) {
		srq->suspects--;
		kdapl_srq_set_doubt(srq);
	}
	if (ep->srq_epoch != srq->epoch) {
		/* The message may have been under way when the last QP died. */
		ep->srq_epoch = srq->epoch;
	} else if (wr->seq < srq->suspect_below) {
		srq->suspect_below = wr->seq;
		search = true;
	}
	if (ep == srq->oldest) {
		srq->oldest = NULL;
		search = true;
	}
	if (search)
		queue_work(srq->obj.ia->hca->object_wq, &srq->search_work);
}

/*
 * Walk the Endpoints for the one that has completed nothing for longest. Return the last
 * buffer that it completed: every QP has completed all older buffers that it took.
 * srq->mutex protects the list of Endpoints; srq->lock, which is dropped and taken again,
 * protects their ->srq_seq.
 */
static u64 kdapl_srq_floor(struct kdapl_srq *srq, struct kdapl_ep **oldest,
			   unsigned long *flags)
{
	u64 floor = U64_MAX;
	struct kdapl_ep *ep;
	int n = 0;

	lockdep_assert_held(&srq->mutex);
	lockdep_assert_held(&srq->lock);

	list_for_each_entry(ep, &srq->eps, srq_link) {
		if (ep->srq_seq < floor) {
			floor = ep->srq_seq;
			*oldest = ep;
		}
		srq->searched++;
		if (++n < KDAPL_SECTION)
			continue;
		kdapl_section(n);
		n = 0;
		spin_unlock_irqrestore(&srq->lock, *flags);
		cond_resched();
		spin_lock_irqsave(&srq->lock, *flags);
	}
	return floor;
}

/* Post a section of the oldest suspects, those before @floor, again. Return their number. */
static int kdapl_srq_recover(struct kdapl_srq *srq, u64 floor)
{
	struct kdapl_wr *wr;
	int n;

	floor = min(floor, srq->suspect_below);
	for (n = 0; n < KDAPL_SECTION; n++) {
		wr = kdapl_srq_first(srq);
		if (!wr || wr->seq >= floor)
			break;
		trace_kdapl_srq_recovered(srq, wr);
		list_move_tail(&wr->link, &srq->waiting);
		srq->hw_count--;
		srq->suspects--;
		srq->destroyed_qps = max(srq->destroyed_qps - 1, 0);
		srq->recovered++;
	}
	return n;
}

/* Count the remaining suspects, unless there are many. */
static void kdapl_srq_recount(struct kdapl_srq *srq)
{
	struct kdapl_wr *wr;
	int n = 0;

	list_for_each_entry(wr, &srq->hw, link) {
		if (wr->seq >= srq->suspect_below || n == KDAPL_SECTION)
			break;
		n++;
	}
	srq->suspects = n < KDAPL_SECTION ? n : min(srq->suspects, srq->hw_count);
	if (!n)
		kdapl_srq_trust(srq);
	else
		kdapl_srq_set_doubt(srq);
}

/* Post the buffers that are known to be lost again. */
static void kdapl_srq_find_lost(struct kdapl_srq *srq)
{
	struct kdapl_ep *oldest = NULL;
	bool waits = false;
	unsigned long flags;
	u64 floor;
	int n;

	lockdep_assert_held(&srq->mutex);

	spin_lock_irqsave(&srq->lock, flags);
	if (!srq->suspect_below)
		goto out;
	floor = kdapl_srq_floor(srq, &oldest, &flags);
	do {
		n = kdapl_srq_recover(srq, floor);
		waits |= kdapl_srq_hw_feed(srq);
		spin_unlock_irqrestore(&srq->lock, flags);
		cond_resched();
		spin_lock_irqsave(&srq->lock, flags);
	} while (n == KDAPL_SECTION);
	if (!srq->suspect_below)
		goto out;
	kdapl_srq_recount(srq);
	if (!srq->suspect_below)
		goto out;
	/* @oldest may have completed something during the walk. */
	if (oldest && oldest->srq_seq == floor)
		srq->oldest = oldest;
	else
		queue_work(srq->obj.ia->hca->object_wq, &srq->search_work);
out:
	spin_unlock_irqrestore(&srq->lock, flags);
	if (waits)
		kdapl_srq_watch(srq);
}

/*
 * Make room for replacements of @doubt buffers in the SRQ and, if the CQs allow it, in
 * the device.
 */
static void kdapl_srq_replace(struct kdapl_srq *srq, int doubt)
{
	unsigned long flags;

	kdapl_srq_grow_slots(srq, srq->max + doubt);
	if (doubt <= srq->hw_extra ||
	    kdapl_srq_hw_room(srq, srq->hw_max + doubt))
		return;
	spin_lock_irqsave(&srq->lock, flags);
	srq->hw_extra = doubt;
	spin_unlock_irqrestore(&srq->lock, flags);
	kdapl_srq_hw_fill(srq);
}

/*
 * Work item: search again, since later completions may tell more; allocate replacements
 * for which kdapl_srq_replace() had no memory.
 */
void kdapl_srq_search(struct work_struct *work)
{
	struct kdapl_srq *srq = container_of(work, struct kdapl_srq,
					     search_work);
	unsigned int noio = memalloc_noio_save();
	int doubt;

	mutex_lock(&srq->mutex);
	kdapl_srq_find_lost(srq);
	doubt = READ_ONCE(srq->doubt);
	if (doubt > srq->slots - srq->max)
		kdapl_srq_replace(srq, doubt);
	mutex_unlock(&srq->mutex);
	memalloc_noio_restore(noio);
}

/*
 * A QP that may have taken up to @taken buffers with it was destroyed and its completions
 * were polled. Suspect the buffers before @below that are not back; all if @below is 0.
 */
static void kdapl_srq_doubt(struct kdapl_srq *srq, int taken, u64 below)
{
	lockdep_assert_held(&srq->lock);

	srq->suspect_below = below ?: srq->next_seq;
	srq->suspects = srq->hw_count;
	srq->destroyed_qps = min(srq->destroyed_qps + min(taken, srq->hw_count),
				 srq->hw_count);
	srq->epoch++;
	kdapl_srq_recount(srq);
}

/* Give the buffer that a probe took back to the device. */
static void kdapl_srq_give_back(struct kdapl_srq *srq, struct kdapl_wr *wr)
{
	lockdep_assert_held(&srq->lock);

	trace_kdapl_srq_probed(srq, wr);
	list_move_tail(&wr->link, &srq->waiting);
	srq->hw_count--;
	if (kdapl_srq_hw_feed(srq))
		queue_work(srq->obj.ia->hca->object_wq, &srq->hint_work);
	/* The device may have reported its limit because it lacked this buffer. */
	if (srq->lw_armed)
		queue_work(srq->obj.ia->hca->object_wq, &srq->arm_work);
}

static u64 kdapl_srq_ask(struct kdapl_srq *srq, struct kdapl_ep *ep)
{
	struct kdapl_wr *taken;
	unsigned long flags;
	u64 below;

	spin_lock_irqsave(&srq->lock, flags);
	below = srq->next_seq;
	spin_unlock_irqrestore(&srq->lock, flags);
	if (kdapl_srq_probe(srq, ep, &taken))
		return 0;
	if (!taken)
		return below;
	spin_lock_irqsave(&srq->lock, flags);
	below = taken->seq;
	kdapl_srq_give_back(srq, taken);
	spin_unlock_irqrestore(&srq->lock, flags);
	return below;
}

/*
 * Return a number such that QPs have taken all buffers with lower numbers by now, and had
 * not taken any other buffer at entry; 0 if unknown. Waits, but at most once in
 * KDAPL_PROBE_PAUSE if messages to oneself do not arrive.
 */
static u64 kdapl_srq_taken(struct kdapl_srq *srq, struct kdapl_ep *ep)
{
	struct kdapl_hca *hca = srq->obj.ia->hca;
	u64 below = 0;

	lockdep_assert_held(&srq->mutex);

	if (!kdapl_has_quirk(hca, KDAPL_QUIRK_LOST_BUFFERS) ||
	    !rdma_ib_or_roce(hca->dev, srq->obj.ia->port) ||
	    (srq->probe_after && time_before(jiffies, srq->probe_after)))
		return 0;
	/* The device's removal waits for this semaphore. */
	if (!down_read_trylock(&hca->sem))
		return 0;
	if (!READ_ONCE(hca->gone)) {
		below = kdapl_srq_ask(srq, ep);
		srq->probe_after = below ? 0 : jiffies + KDAPL_PROBE_PAUSE;
	}
	up_read(&hca->sem);
	return below;
}

/*
 * The QP of @ep was destroyed and may have taken up to @taken buffers with it, or the
 * search was waiting for @ep.
 */
void kdapl_srq_died(struct kdapl_srq *srq, struct kdapl_ep *ep, int taken)
{
	unsigned long flags;
	bool fire = false;
	u64 below = 0;
	int doubt;

	lockdep_assert_held(&srq->mutex);

	if (taken) {
		below = kdapl_srq_taken(srq, ep);
		/*
		 * Poll, so that at most one message of an Endpoint was under way at the
		 * death.
		 */
		kdapl_srq_poll_all(srq);
	}
	spin_lock_irqsave(&srq->lock, flags);
	if (taken && srq->hw_count) {
		kdapl_srq_doubt(srq, taken, below);
		fire = kdapl_srq_check_lw(srq);
	}
	doubt = srq->doubt;
	spin_unlock_irqrestore(&srq->lock, flags);
	if (fire)
		kdapl_async_post(&srq->lw_event);
	if (doubt)
		kdapl_srq_replace(srq, doubt);
	kdapl_srq_find_lost(srq);
}
