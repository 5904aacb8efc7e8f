// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The work queue rings of an Endpoint.
 *
 * An RC queue pair completes in posting order, so the requests of an Endpoint
 * live in a ring and no list of free entries is needed: posters move @head
 * under ring->lock, completions move @done and reaping moves @tail under the
 * EVD's lock. The entry of a request is also its completion event, so it is
 * busy until the consumer has reaped that event.
 *
 * The device does not have the entries between @posted and @head: there is no
 * queue pair yet, or the device has refused them.
 */
#include <linux/cache.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include "dto.h"
#include "ep.h"
#include "handle.h"

static void kdapl_request_withdraw(struct kdapl_event *ev)
{
	struct kdapl_wr *wr = container_of(ev, struct kdapl_wr, ev);

	kdapl_ring_withdrawn(wr->ep->req_evd, &wr->ep->sq);
}

static struct kdapl_ep *kdapl_request_ep(struct kdapl_event *ev)
{
	return container_of(ev, struct kdapl_wr, ev)->ep;
}

const struct kdapl_event_ops kdapl_request_event_ops = {
	.withdraw = kdapl_request_withdraw,
	.ep = kdapl_request_ep,
};

/*
 * Allocate the memory for a ring of @max entries with @niov segments each, which
 * remember @nlmr LMRs.
 */
int kdapl_ring_prepare(struct kdapl_ring *ring, u32 max, u32 niov, u32 nlmr)
{
	u32 entries = roundup_pow_of_two(max(max, 1U));

	ring->stride = ALIGN(kdapl_entry_size(niov, nlmr), L1_CACHE_BYTES);
	ring->wrs = kvcalloc(entries, ring->stride, GFP_KERNEL);
	if (!ring->wrs)
		return -ENOMEM;
	ring->mask = entries - 1;
	ring->max = max;
	BUILD_BUG_ON(KDAPL_MAX_IOV > U8_MAX);
	ring->niov = niov;
	ring->nlmr = nlmr;
	return 0;
}

void kdapl_ring_free(struct kdapl_ring *ring)
{
	kvfree(ring->wrs);
}

static void kdapl_ring_move(struct kdapl_ring *ring, u32 pos,
			    struct kdapl_ring *fresh, u32 fresh_pos)
{
	struct kdapl_wr *from = kdapl_ring_wr(ring, pos);
	struct kdapl_wr *to = kdapl_ring_wr(fresh, fresh_pos);

	memcpy(to, from, sizeof(*to));
	memcpy(to->sge, from->sge, from->nsge * sizeof(to->sge[0]));
	/*
	 * Requests have nsge 0; only a receive's LMR contexts are copied, see
	 * kdapl_move_fits().
	 */
	if (from->nsge)
		memcpy(kdapl_wr_lmrs(to, fresh->niov),
		       kdapl_wr_lmrs(from, ring->niov),
		       (from->ev.nlmr - 1) * sizeof(DAT_LMR_CONTEXT));
	to->seq = fresh_pos;
	if (from->ev.queued)
		list_replace(&from->ev.link, &to->ev.link);
}

/*
 * struct kdapl_move - the move of a ring into other memory
 * @ring: the ring
 * @fresh: the other memory
 * @evd: EVD whose lock protects the completion side; NULL if there is none
 * @zone: if not NULL, the Endpoint gets another Protection Zone
 * @first: the first position that has not completed
 * @end: the first position that was posted after kdapl_move_begin()
 * @failed: number of receives from @first to @end that fail
 */
struct kdapl_move {
	struct kdapl_ring *ring;
	struct kdapl_ring *fresh;
	struct kdapl_evd *evd;
	const struct kdapl_zone *zone;
	u32 first;
	u32 end;
	u32 failed;
};

/* Lock @evd; without one only turn interrupts off. */
static void kdapl_ring_lock_evd(struct kdapl_evd *evd, unsigned long *flags)
	__acquires(&evd->lock)
{
	if (evd) {
		spin_lock_irqsave(&evd->lock, *flags);
	} else {
		local_irq_save(*flags);
		__acquire(&evd->lock);
	}
}

static void kdapl_ring_unlock_evd(struct kdapl_evd *evd, unsigned long flags)
	__releases(&evd->lock)
{
	if (evd) {
		spin_unlock_irqrestore(&evd->lock, flags);
	} else {
		__release(&evd->lock);
		local_irq_restore(flags);
	}
}

/* Exclude completing, reaping and posting by locking both sides of the ring. */
static void kdapl_move_lock(struct kdapl_move *m, unsigned long *flags)
	__acquires(&m->evd->lock) __acquires(&m->ring->lock)
{
	kdapl_ring_lock_evd(m->evd, flags);
	spin_lock(&m->ring->lock);
}

static void kdapl_move_unlock(struct kdapl_move *m, unsigned long flags)
	__releases(&m->evd->lock) __releases(&m->ring->lock)
{
	spin_unlock(&m->ring->lock);
	kdapl_ring_unlock_evd(m->evd, flags);
}

/* Does the entry at @pos fit into an entry of the fresh memory? */
static bool kdapl_move_fits(struct kdapl_move *m, u32 pos)
{
	struct kdapl_wr *wr = kdapl_ring_wr(m->ring, pos);

	lockdep_assert_held(&m->ring->lock);

	return !wr->nsge || wr->ev.nlmr <= m->fresh->niov;
}

/*
 * Can the fresh memory hold the entries of the ring? If so, limit later posts to the
 * smaller of the old and new sizes and give them the new Protection Zone: nothing can
 * fail any more.
 */
static bool kdapl_move_begin(struct kdapl_move *m)
{
	struct kdapl_ring *ring = m->ring, *fresh = m->fresh;
	u32 pos = READ_ONCE(ring->tail);
	bool fits = true, all;
	unsigned long flags;
	unsigned int n;

	do {
		kdapl_move_lock(m, &flags);
		/* Entries that were reaped may have been used again. */
		if ((s32)(ring->tail - pos) > 0)
			pos = ring->tail;
		for (n = 0; n < KDAPL_SECTION && pos != ring->head && fits; n++)
			fits = kdapl_move_fits(m, pos++);
		all = pos == ring->head;
		if (all && ring->head - ring->tail > fresh->max)
			fits = false;
		if (all && fits) {
			ring->max = min(ring->max, fresh->max);
			ring->nlmr = min(ring->nlmr, fresh->nlmr);
			if (m->zone)
				*m->zone->slot = m->zone->pz;
			m->first = ring->done;
			m->end = ring->head;
		}
		kdapl_section(n);
		kdapl_move_unlock(m, flags);
	} while (fits && !all);
	return fits;
}

/* Will the receive at @pos fail because its segments are of another PZ? */
static bool kdapl_move_refuses(struct kdapl_move *m, u32 pos)
{
	struct kdapl_wr *wr = kdapl_ring_wr(m->ring, pos);

	return m->zone && wr->nsge && wr->pz != m->zone->pz;
}

/*
 * Copy the entries that have not completed, the failing ones first. Without a queue pair
 * these entries do not change, so no lock is needed.
 */
static void kdapl_move_posted(struct kdapl_move *m)
{
	u32 pos, to = m->first;

	for (pos = m->first; pos != m->end; pos++)
		if (kdapl_move_refuses(m, pos))
			kdapl_ring_move(m->ring, pos, m->fresh, to++);
	m->failed = to - m->first;
	for (pos = m->first; pos != m->end; pos++)
		if (!kdapl_move_refuses(m, pos))
			kdapl_ring_move(m->ring, pos, m->fresh, to++);
}

/* @ring takes @fresh's memory and geometry; @fresh may then only be freed. */
static void kdapl_ring_swap(struct kdapl_ring *ring, struct kdapl_ring *fresh)
{
	swap(ring->wrs, fresh->wrs);
	ring->stride = fresh->stride;
	ring->mask = fresh->mask;
	ring->max = fresh->max;
	ring->niov = fresh->niov;
	ring->nlmr = fresh->nlmr;
}

/*
 * Copy the entries that kdapl_move_posted() has not: those that have completed, which the
 * EVD's list points to, so reaping works while the ring is in both places, and those that
 * were posted meanwhile. Then swap.
 */
static void kdapl_move_rest(struct kdapl_move *m)
{
	u32 pos = READ_ONCE(m->ring->tail);
	unsigned long flags;
	unsigned int n;

	do {
		kdapl_move_lock(m, &flags);
		if ((s32)(m->ring->tail - pos) > 0)
			pos = m->ring->tail;
		for (n = 0; n < KDAPL_SECTION; n++, pos++) {
			if (pos - m->first < m->end - m->first)
				pos = m->end;
			if (pos == m->ring->head)
				break;
			kdapl_ring_move(m->ring, pos, m->fresh, pos);
		}
		if (n < KDAPL_SECTION)
			kdapl_ring_swap(m->ring, m->fresh);
		kdapl_section(n);
		kdapl_move_unlock(m, flags);
	} while (n == KDAPL_SECTION);
}

/* Complete the failing receives, which kdapl_move_posted() has put first. */
static void kdapl_move_fail(struct kdapl_move *m)
{
	struct kdapl_ring *ring = m->ring;
	struct kdapl_later later;
	unsigned long flags;
	struct kdapl_wr *wr;
	unsigned int n;

	while (m->failed) {
		later.n = 0;
		kdapl_move_lock(m, &flags);
		for (n = 0; n < KDAPL_SECTION && m->failed; n++, m->failed--) {
			wr = kdapl_ring_wr(ring, ring->done);
			wr->status = DAT_DTO_ERR_LOCAL_PROTECTION;
			wr->len = 0;
			wr->taken = false;
			kdapl_ring_complete(m->evd, ring, wr, true);
			if (READ_ONCE(wr->ep->dying))
				kdapl_ring_withdrawn(m->evd, ring);
			else
				kdapl_evd_add(m->evd, &wr->ev, &later);
		}
		if ((s32)(ring->posted - ring->done) < 0)
			ring->posted = ring->done;
		kdapl_section(n);
		kdapl_move_unlock(m, flags);
		kdapl_later_run(&later);
	}
}

/* Do @ring and @fresh have the same size? */
static bool kdapl_ring_same(const struct kdapl_ring *ring,
			    const struct kdapl_ring *fresh)
{
	return ring->stride == fresh->stride && ring->mask == fresh->mask &&
	       ring->max == fresh->max && ring->niov == fresh->niov &&
	       ring->nlmr == fresh->nlmr;
}

/**
 * kdapl_ring_commit - move a ring into other memory
 * @ring: no queue pair uses it; posting and reaping may go on
 * @fresh: from kdapl_ring_prepare(); on success gets the old memory
 * @evd: EVD whose lock protects the completion side; NULL if there is none
 * @zone: if not NULL, the Endpoint gets another Protection Zone
 *
 * Posted entries, and completed ones that were not reaped, move along in order, except
 * that failing receives complete before those that stay posted. A ring of the same size
 * stays in place, unless there is a @zone.
 *
 * Context: Process context. The caller, dat_ep_modify(), prevents a new connection.
 * Return: 0, or -EBUSY if @fresh cannot hold the entries of @ring.
 */
int kdapl_ring_commit(struct kdapl_ring *ring, struct kdapl_ring *fresh,
		      struct kdapl_evd *evd, const struct kdapl_zone *zone)
{
	struct kdapl_move m = {
		.ring = ring, .fresh = fresh, .evd = evd, .zone = zone
	};

	if (!zone && kdapl_ring_same(ring, fresh))
		return 0;
	if (!kdapl_move_begin(&m))
		return -EBUSY;
	kdapl_move_posted(&m);
	kdapl_move_rest(&m);
	kdapl_move_fail(&m);
	return 0;
}

/*
 * Complete a section of the entries before @head as flushed; another CPU may do the same
 * concurrently. Return whether there are more.
 */
static bool kdapl_ring_flush_section(struct kdapl_ep *ep, struct kdapl_ring *ring,
				     struct kdapl_evd *evd, u32 head,
				     struct kdapl_later *later)
{
	bool recv = ring == &ep->rq, event;
	struct kdapl_wr *wr;
	int n;

	lockdep_assert_held(&evd->lock);

	for (n = 0; n < KDAPL_SECTION && (s32)(head - ring->done) > 0; n++) {
		wr = kdapl_ring_wr(ring, ring->done);
		/* A request that completed ahead keeps its own status. */
		if (unlikely(wr->ahead)) {
			wr->ahead = false;
			ring->ahead--;
		} else if (!recv && kdapl_ring_left_out(ring, wr)) {
			wr->status = DAT_DTO_SUCCESS;
		} else {
			wr->status = DAT_DTO_ERR_FLUSHED;
			wr->len = 0;
		}
		wr->taken = false;
		if (!recv && wr->has_mem)
			kdapl_mem_done(wr);
		event = recv || !wr->suppress || wr->status != DAT_DTO_SUCCESS;
		kdapl_ring_complete(evd, ring, wr, event);
		if (!event)
			continue;
		if (READ_ONCE(ep->dying))
			kdapl_ring_withdrawn(evd, ring);
		else
			kdapl_evd_add(evd, &wr->ev, later);
	}
	kdapl_section(n);
	return n == KDAPL_SECTION;
}

/*
 * Mark @ring flushed, or open again for KDAPL_FLUSH_REARM, and set *@head to its head.
 * Return false for a late poster: the ring was reset since it posted. litmus: ring-flush.
 * Context: Any.
 */
static bool kdapl_ring_set_flushed(struct kdapl_ring *ring, enum kdapl_flush how,
				   u32 *head)
{
	bool late;

	lockdep_assert_irqs_disabled();

	spin_lock(&ring->lock);
	late = how == KDAPL_FLUSH_POST && !ring->flushed;
	if (!late) {
		ring->flushed = how != KDAPL_FLUSH_REARM;
		ring->posted = ring->head;
	}
	*head = ring->head;
	spin_unlock(&ring->lock);
	return !late;
}

/*
 * Lock the EVD that completes @ring of @ep. dat_ep_modify() changes the Endpoint's EVD,
 * also to NULL, with the lock held. Return the EVD; or NULL with interrupts off if there
 * is none. Context: Any; inside of an RCU read-side section.
 */
static struct kdapl_evd *kdapl_flush_lock(struct kdapl_ep *ep, struct kdapl_ring *ring,
					  unsigned long *flags)
	__acquires(&evd->lock)
{
	struct kdapl_evd **slot = ring == &ep->rq ? &ep->recv_evd : &ep->req_evd;
	struct kdapl_evd *evd;

	for (;;) {
		evd = READ_ONCE(*slot);
		kdapl_ring_lock_evd(evd, flags);
		if (!evd || READ_ONCE(*slot) == evd)
			return evd;
		kdapl_ring_unlock_evd(evd, *flags);
	}
}

/**
 * kdapl_ring_flush - complete as flushed all requests that no device will complete
 * @ep: the Endpoint
 * @ring: one of its rings; there is no queue pair (any more)
 * @how: KDAPL_FLUSH_END: the connection is over, later posters flush themselves;
 *	KDAPL_FLUSH_POST: such a poster; KDAPL_FLUSH_REARM: the Endpoint is reset,
 *	receives wait in the ring again
 *
 * A late poster, whose Endpoint was reset or even connected again since it posted, must
 * not touch the ring.
 *
 * Context: Any.
 */
void kdapl_ring_flush(struct kdapl_ep *ep, struct kdapl_ring *ring,
		      enum kdapl_flush how)
{
	struct kdapl_later later;
	struct kdapl_evd *evd;
	unsigned long flags;
	bool flush, more;
	u32 head;

	later.n = 0;
	rcu_read_lock();
	evd = kdapl_flush_lock(ep, ring, &flags);
	flush = kdapl_ring_set_flushed(ring, how, &head);
	for (;;) {
		/* Without an EVD nothing was posted. */
		more = evd && flush &&
		       kdapl_ring_flush_section(ep, ring, evd, head, &later);
		kdapl_ring_unlock_evd(evd, flags);
		kdapl_later_run(&later);
		if (evd)
			kdapl_upcall_schedule(evd);
		if (!more)
			break;
		evd = kdapl_flush_lock(ep, ring, &flags);
	}
	rcu_read_unlock();
}

/*
 * Post a section of the receives in @rq that the device does not have yet. Return whether
 * there are more that it may take.
 */
bool kdapl_rq_push(struct kdapl_ring *rq)
{
	unsigned int n;

	lockdep_assert_held(&rq->lock);

	for (n = 0; n < KDAPL_SECTION && rq->qp && rq->posted != rq->head; n++)
		if (!kdapl_rq_post(rq, kdapl_ring_wr(rq, rq->posted)))
			break;
	kdapl_section(n);
	return n == KDAPL_SECTION;
}
