// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * DMA syncs, for devices that do not see the CPU's memory as it is: mappings may bounce
 * (swiotlb), or caches are not coherent.
 *
 * A post syncs the segments of a request or receive for the device before the entry gets
 * into its queue, without a lock as a sync may take long. A poll syncs memory that the
 * device has written for the CPU before the completion of a receive, of an RDMA Read or of
 * an invalidation counts: one section at each poll, while this completion and those behind
 * it wait in evd->wc (struct kdapl_stall). Every poller continues the sync where the last
 * one stopped, so no poller waits for another one.
 *
 * All of this is off unless there is such a device (kdapl_dma_syncs). LMRs of another
 * device beside it need no syncs (lmr->sync).
 *
 * The entry of a ring or SRQ names its LMRs and has segments: of a receive those that the
 * device got, of a Read those of the consumer. A send ring has room for segments only if
 * its device needs syncs.
 */
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "pz_lmr.h"
#include "pz.h"
#include "pz_sge.h"
#include "pz_sg.h"
#include "srq.h"

/* As kdapl_wr_name(), but leave out empty segments, as kdapl_sge_build() does. */
void kdapl_wr_name_used(struct kdapl_wr *wr, u32 niov, DAT_COUNT n,
			const DAT_LMR_TRIPLET *iov)
{
	u8 used = 0;
	DAT_COUNT i;

	for (i = 0; i < n; i++) {
		if (!iov[i].segment_length)
			continue;
		if (!used)
			wr->ev.lmr = iov[i].lmr_context;
		else
			kdapl_wr_lmrs(wr, niov)[used - 1] = iov[i].lmr_context;
		used++;
	}
	wr->ev.nlmr = used;
}

/* ---- Posts ----------------------------------------------------------------------- */

/*
 * Sync the segments of a receive for the device before the receive is entered; ignore
 * wrong segments. @poster: handle of the Endpoint or SRQ; @max: segments it allows
 */
void kdapl_recv_to_device(struct kdapl_pz *pz, u64 poster, DAT_COUNT max,
			  DAT_COUNT n, const DAT_LMR_TRIPLET *iov)
{
	struct ib_sge sge[KDAPL_MAX_IOV] __uninitialized;
	DAT_COUNT i;
	u64 total;
	int nsge;

	if (kdapl_sge_build(pz, poster, n, iov, max, DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			    sge, &nsge, &total, NULL) != DAT_SUCCESS)
		return;
	for (i = 0; i < n; i++)
		kdapl_part_to_device(&(struct kdapl_part) {
			.context = iov[i].lmr_context,
			.addr = iov[i].virtual_address,
			.len = iov[i].segment_length });
}

/* Set @part to piece @i of the sink of the Read @wr. Return false if there is none. */
static bool kdapl_sink_part(struct kdapl_ring *sq, struct kdapl_wr *wr, u32 i,
			    struct kdapl_part *part)
{
	if (wr->op != DAT_DTO_RDMA_READ || READ_ONCE(wr->ahead) || i >= sq->niov)
		return false;
	*part = (struct kdapl_part) {
		.addr = wr->sge[i].addr,
		.len = wr->sge[i].length,
	};
	if (!wr->has_mem || !wr->chained) {
		if (i >= wr->ev.nlmr)
			return false;
		part->context = kdapl_wr_lmr(wr, sq->niov, i);
		return true;
	}
	if (i || kdapl_type(wr->mem) == KDAPL_TYPE_SG)
		return false;
	part->context = READ_ONCE(container_of(wr->mem, struct kdapl_lmr, obj)->context);
	return true;
}

/*
 * Return how many bytes at @part lie in one sink of @wr; otherwise 0, and lower *@before
 * to the distance of the nearest sink behind @part.
 */
static u64 kdapl_sink_at(struct kdapl_ring *sq, struct kdapl_wr *wr,
			 const struct kdapl_part *part, u64 *before)
{
	struct kdapl_part s;
	u32 i;

	for (i = 0; kdapl_sink_part(sq, wr, i, &s); i++) {
		if (s.context != part->context)
			continue;
		if (part->addr - s.addr < s.len)
			return min(part->len, s.len - (part->addr - s.addr));
		if (s.addr > part->addr)
			*before = min(*before, s.addr - part->addr);
	}
	return 0;
}

/*
 * Return for how many bytes from the start of @part on all lie in sinks of pending Reads
 * (*@sink is set to true) or none does (false). The queue is walked a section at a time;
 * the sink of a Read that completes meanwhile may be synced either way.
 */
static u64 kdapl_sinks_at(struct kdapl_ring *sq, const struct kdapl_part *part,
			  bool *sink)
{
	u64 before = part->len, within = 0;
	unsigned long flags;
	unsigned int n;
	u32 pos, end;

	spin_lock_irqsave(&sq->lock, flags);
	end = sq->head;
	pos = READ_ONCE(sq->done);
	for (;;) {
		for (n = 0; n < KDAPL_SECTION && (s32)(end - pos) > 0 && !within; n++)
			within = kdapl_sink_at(sq, kdapl_ring_wr(sq, pos++), part,
					       &before);
		kdapl_section(n);
		if (n < KDAPL_SECTION || within)
			break;
		spin_unlock_irqrestore(&sq->lock, flags);
		spin_lock_irqsave(&sq->lock, flags);
		if ((s32)(READ_ONCE(sq->done) - pos) > 0)
			pos = READ_ONCE(sq->done);
	}
	spin_unlock_irqrestore(&sq->lock, flags);
	*sink = within;
	return within ?: before;
}

/*
 * Sync a segment for the device. With a fence, skip pending Read sinks: the device writes
 * there, and the CPU has not synced them.
 */
static void kdapl_seg_to_device(struct kdapl_ring *sq, const DAT_LMR_TRIPLET *seg,
				bool fence)
{
	struct kdapl_part rest = {
		.context = seg->lmr_context,
		.addr = seg->virtual_address,
		.len = seg->segment_length,
	};
	struct kdapl_part part;
	bool sink = false;

	for (; rest.len; rest.addr += part.len, rest.len -= part.len) {
		part = rest;
		if (fence)
			part.len = kdapl_sinks_at(sq, &rest, &sink);
		if (!sink)
			kdapl_part_to_device(&part);
	}
}

/*
 * Sync the checked segments of a request for the device before the request is entered. No
 * lock is held, since syncs may take long.
 */
void kdapl_segs_to_device(struct kdapl_ring *sq, DAT_COMPLETION_FLAGS flags,
			  const struct kdapl_segs *segs)
{
	/* Rings of devices that need no syncs keep no sinks. */
	bool fence = READ_ONCE(sq->niov) && flags & DAT_COMPLETION_BARRIER_FENCE_FLAG;
	DAT_COUNT i;

	for (i = 0; i < segs->n; i++)
		kdapl_seg_to_device(sq, &segs->iov[i], fence);
}

/*
 * Record the LMRs of @entry, see kdapl_wr_name(). For a Read also record its sink in the
 * LMRs; kdapl_sink_load() records the sink of a chain of two.
 */
void kdapl_request_name(struct kdapl_ring *sq, struct kdapl_wr *entry, DAT_DTOS op,
			const struct kdapl_segs *segs)
{
	u32 used = 0;
	DAT_COUNT i;

	lockdep_assert_held(&sq->lock);

	kdapl_wr_name_used(entry, sq->niov, segs->n, segs->iov);
	for (i = 0; i < segs->n; i++) {
		if (!segs->iov[i].segment_length || op != DAT_DTO_RDMA_READ ||
		    used >= sq->niov)
			continue;
		entry->sge[used].addr = segs->iov[i].virtual_address;
		entry->sge[used++].length = segs->iov[i].segment_length;
	}
}

/* ---- Completions ----------------------------------------------------------------- */

/* Set @part to piece @i of the @len bytes received for @wr. Return false if there is none. */
static bool kdapl_recv_part(struct kdapl_wr *wr, u32 niov, u32 len, u32 i,
			    struct kdapl_part *part)
{
	u32 n;

	if (i >= min_t(u32, wr->ev.nlmr, niov))
		return false;
	for (n = 0; n < i; n++)
		len -= min(len, wr->sge[n].length);
	*part = (struct kdapl_part) {
		.context = kdapl_wr_lmr(wr, niov, i),
		.addr = wr->sge[i].addr,
		.len = min(len, wr->sge[i].length),
		.shifted = true,
	};
	return len;
}

/* Set @part to all the memory that @lmr is bound to. */
static void kdapl_bound_part(struct kdapl_lmr *lmr, struct kdapl_part *part)
{
	*part = (struct kdapl_part) {
		.context = READ_ONCE(lmr->context),
		.addr = lmr->base,
		.len = lmr->len,
	};
}

/* Set @part to the memory that the peer has invalidated with @wc, or to nothing. */
static void kdapl_unbound_part(struct kdapl_evd *evd, struct ib_wc *wc,
			       struct kdapl_part *part)
{
	struct kdapl_obj *owner;
	struct kdapl_lmr *lmr;

	*part = (struct kdapl_part) { };
	if (!(wc->wc_flags & IB_WC_WITH_INVALIDATE))
		return;
	owner = kdapl_mr_owner(evd->obj.ia->hca, wc->ex.invalidate_rkey);
	if (!owner)
		return;
	lmr = container_of(owner, struct kdapl_lmr, obj);
	if (kdapl_type(owner) == DAT_HANDLE_TYPE_LMR && lmr->fmr &&
	    READ_ONCE(lmr->rmr_context) == wc->ex.invalidate_rkey)
		kdapl_bound_part(lmr, part);
	kdapl_obj_put(owner);
}

/*
 * Set @part to piece @i of the memory to sync for @wc, a success of @ep. Return false if
 * none is left.
 */
static bool kdapl_wc_part(struct kdapl_evd *evd, struct kdapl_ep *ep, struct ib_wc *wc,
			  u32 i, struct kdapl_part *part)
{
	struct kdapl_wr *wr = (struct kdapl_wr *)(uintptr_t)wc->wr_id;
	u32 niov = wr->ev.kind == KDAPL_EV_SRQ ? ep->srq->max_iov : ep->rq.niov;

	if (wr->ev.kind == KDAPL_EV_SQ) {
		if (wr->op != DAT_DTO_LMR_INVALIDATE)
			return kdapl_sink_part(&ep->sq, wr, i, part);
		kdapl_bound_part(container_of(wr->mem, struct kdapl_lmr, obj), part);
		return !i;
	}
	if (!i) {
		kdapl_unbound_part(evd, wc, part);
		return true;
	}
	return kdapl_recv_part(wr, niov, wc->byte_len, i - 1, part);
}

/*
 * Sync the memory that the device has written for @wc, a success of @ep, for the CPU
 * before @wc counts. Return false if that takes another section.
 */
bool kdapl_wc_sync(struct kdapl_evd *evd, struct kdapl_ep *ep, struct ib_wc *wc)
{
	struct kdapl_stall *stall = &evd->stall;

	lockdep_assert_held(&evd->lock);

	while (stall->busy || kdapl_wc_part(evd, ep, wc, stall->piece, &stall->part)) {
		if (!stall->busy)
			stall->at = (struct kdapl_cursor) { .len = stall->part.len };
		stall->busy = kdapl_part_to_cpu(&stall->part, &stall->at, &stall->room);
		if (stall->busy)
			return false;
		stall->piece++;
	}
	stall->piece = 0;
	return true;
}
