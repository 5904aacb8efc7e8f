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
 * Entries between @posted and @head have not been given to the device: there is
 * no queue pair yet, or the device has refused them.
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

	kdapl_ring_reaped(wr->ep->req_evd, &wr->ep->sq, wr);
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
	/* Of a request only what it was is left; see kdapl_ring_fits(). */
	if (from->nsge)
		memcpy(kdapl_wr_lmrs(to, fresh->niov),
		       kdapl_wr_lmrs(from, ring->niov),
		       (from->ev.nlmr - 1) * sizeof(DAT_LMR_CONTEXT));
	to->seq = fresh_pos;
	if (from->ev.queued)
		list_replace(&from->ev.link, &to->ev.link);
}

/* Do the entries in use fit into @fresh? @evd: that of @ring, or NULL */
static bool kdapl_ring_fits(struct kdapl_ring *ring, struct kdapl_ring *fresh,
			    struct kdapl_evd *evd)
{
	u32 pos;

	lockdep_assert(!evd || lockdep_is_held(&evd->lock));
	lockdep_assert_held(&ring->lock);

	if (ring->head - ring->tail > fresh->max)
		return false;
	for (pos = ring->tail; pos != ring->head; pos++)
		if (kdapl_ring_wr(ring, pos)->nsge &&
		    kdapl_ring_wr(ring, pos)->ev.nlmr > fresh->niov)
			return false;
	return true;
}

/* Does a receive fail because its segments are of another PZ? */
static bool kdapl_ring_refused(struct kdapl_wr *wr,
			       const struct kdapl_zone *zone)
{
	return zone && wr->nsge && wr->pz != zone->pz;
}

/* Is @fresh as @ring is? */
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
 * @evd: whose lock protects the completion side; NULL if there is none
 * @zone: if not NULL, the Endpoint gets another Protection Zone
 * @later: see struct kdapl_later
 *
 * What was posted or completed and not reaped moves along in order, except that
 * receives which fail now complete before those that stay posted. A ring of the same
 * size stays where it is, unless there is a @zone.
 *
 * Return: 0, or -EBUSY if @fresh cannot hold what is there.
 */
int kdapl_ring_commit(struct kdapl_ring *ring, struct kdapl_ring *fresh,
		      struct kdapl_evd *evd, const struct kdapl_zone *zone,
		      struct kdapl_later *later)
{
	unsigned long flags;
	struct kdapl_wr *wr;
	u32 pos, to, failed;
	int ret = -EBUSY;

	/* What follows takes one section, as long as the ring. */
	if (!zone && kdapl_ring_same(ring, fresh))
		return 0;
	if (evd) {
		spin_lock_irqsave(&evd->lock, flags);
	} else {
		local_irq_save(flags);
		__acquire(&evd->lock);
	}
	spin_lock(&ring->lock);
	if (!kdapl_ring_fits(ring, fresh, evd))
		goto out;
	ret = 0;
	/* Posters read the PZ under the same lock. */
	if (zone)
		*zone->slot = zone->pz;
	to = ring->tail;
	for (pos = ring->tail; pos != ring->done; pos++)
		kdapl_ring_move(ring, pos, fresh, to++);
	failed = to;
	for (pos = ring->done; pos != ring->head; pos++)
		if (kdapl_ring_refused(kdapl_ring_wr(ring, pos), zone))
			kdapl_ring_move(ring, pos, fresh, to++);
	failed = to - failed;
	for (pos = ring->done; pos != ring->head; pos++)
		if (!kdapl_ring_refused(kdapl_ring_wr(ring, pos), zone))
			kdapl_ring_move(ring, pos, fresh, to++);
	swap(ring->wrs, fresh->wrs);
	ring->stride = fresh->stride;
	ring->mask = fresh->mask;
	ring->max = fresh->max;
	ring->niov = fresh->niov;
	ring->nlmr = fresh->nlmr;
	while (failed--) {
		wr = kdapl_ring_wr(ring, ring->done);
		wr->status = DAT_DTO_ERR_LOCAL_PROTECTION;
		wr->len = 0;
		wr->taken = false;
		kdapl_ring_complete(evd, ring, wr, true);
		kdapl_evd_add(evd, &wr->ev, later);
	}
	if ((s32)(ring->posted - ring->done) < 0)
		ring->posted = ring->done;
out:
	spin_unlock(&ring->lock);
	if (evd) {
		spin_unlock_irqrestore(&evd->lock, flags);
	} else {
		__release(&evd->lock);
		local_irq_restore(flags);
	}
	return ret;
}

/*
 * Complete as flushed what is in the ring before @head, at most a section of it; another
 * CPU may do the same. Return whether there is more.
 */
static bool kdapl_ring_drain(struct kdapl_ep *ep, struct kdapl_ring *ring,
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
			kdapl_ring_reaped(evd, ring, wr);
		else
			kdapl_evd_add(evd, &wr->ev, later);
	}
	kdapl_section(n);
	return n == KDAPL_SECTION;
}

/*
 * Mark @ring flushed, or open again, as kdapl_ring_flush() is told by @how, and store
 * the position up to which it was posted to. Return false to a poster that comes
 * late. Context: Any.
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

/**
 * kdapl_ring_flush - complete as flushed all that no device will complete
 * @ep: the Endpoint
 * @ring: one of its rings; there is no queue pair (any more)
 * @how: KDAPL_FLUSH_END: the connection is over, later posters flush themselves.
 *	KDAPL_FLUSH_POST: such a poster. KDAPL_FLUSH_REARM: the Endpoint is reset,
 *	receives wait in the ring again
 *
 * A poster may come late, when the Endpoint has been reset and even connected
 * again; it must not touch the ring then.
 *
 * Context: Any.
 */
void kdapl_ring_flush(struct kdapl_ep *ep, struct kdapl_ring *ring,
		      enum kdapl_flush how)
{
	struct kdapl_evd *evd = ring == &ep->rq ? ep->recv_evd : ep->req_evd;
	struct kdapl_later later;
	unsigned long flags;
	bool flush;
	u32 head;

	/* Nothing can be posted to a queue without an EVD. */
	if (!evd) {
		local_irq_save(flags);
		kdapl_ring_set_flushed(ring, how, &head);
		local_irq_restore(flags);
		return;
	}
	later.n = 0;
	rcu_read_lock();
	spin_lock_irqsave(&evd->lock, flags);
	flush = kdapl_ring_set_flushed(ring, how, &head);
	while (flush && kdapl_ring_drain(ep, ring, evd, head, &later)) {
		spin_unlock_irqrestore(&evd->lock, flags);
		kdapl_later_run(&later);
		spin_lock_irqsave(&evd->lock, flags);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_upcall_schedule(evd);
	kdapl_later_run(&later);
	rcu_read_unlock();
}

/* Post to the device the receives of @rq that it does not have yet. */
void kdapl_rq_push(struct kdapl_ring *rq)
{
	lockdep_assert_held(&rq->lock);

	while (rq->qp && rq->posted != rq->head)
		if (!kdapl_rq_post(rq, kdapl_ring_wr(rq, rq->posted)))
			break;
}
