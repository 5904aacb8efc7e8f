/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Data transfer: dto.c, dto_post.h, dto_ring.c, dto_qp.c, dto_recv.c, dto_complete.c,
 * dto_sync.c, dto_sink.c, dto_defer.c.
 */
#ifndef KDAPL_DTO_H
#define KDAPL_DTO_H

#include <linux/hash.h>
#include <linux/prefetch.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include "evd.h"
#include "hca.h"
#include "pz.h"

struct kdapl_ia;
struct kdapl_pz;
struct kdapl_sg;

/*
 * struct kdapl_wr - one posted request or receive buffer
 * @ev: its completion event
 * @ep: Endpoint it was posted to or (SRQ) that took it
 * @cookie: the consumer's cookie
 * @seq: ring position, or position in the posting order of an SRQ
 * @len: bytes transferred
 * @rkey: receive: context invalidated by the peer; @chained request: status of its first
 *	work request
 * @status: DAT_DTO_COMPLETION_STATUS
 * @op: DAT_DTOS
 * @suppress: a success causes no event; KDAPL_SILENT: nor does the device complete it,
 *	the completion of a later request stands for it
 * @chained: the device gets two work requests, see kdapl_post_sq()
 * @ahead: completed before an earlier request; counted in kdapl_ring.ahead
 * @taken: counted in kdapl_ep.held
 * @posted: SRQ: the consumer has posted the buffer and no Endpoint has taken it
 * @nsge: segments in @sge
 * @has_mem: @mem is set
 * @pz: PZ of the segments when @nsge is not zero
 * @link: SRQ: entry in the waiting or hardware list, or in a list of an EP
 * @next: SRQ: next free entry
 * @mem: LMR or RMR that the request is about, referenced until the request has ended; or
 *	the mapping that the request names, see kdapl_sg_get()
 * @mem_handle: handle of @mem, for the event
 * @sge: receive: segments for the device; RDMA Read, if the device needs syncs: where the
 *	sink is in the LMRs
 *
 * A plain request uses the first 64 bytes only.
 */
struct kdapl_wr {
	struct kdapl_event ev;
	struct kdapl_ep *ep;
	DAT_DTO_COOKIE cookie;
	u64 seq;
	u32 len;
	u32 rkey;
	u8 status;
	u8 op;
	u8 suppress;
	bool chained;
	union {
		bool ahead;
		bool posted;
	};
	bool taken;
	u8 nsge;
	bool has_mem;
	struct kdapl_pz *pz;
	union {
		struct list_head link;
		struct kdapl_wr *next;
		struct {
			struct kdapl_obj *mem;
			u64 mem_handle;
		};
	};
	struct ib_sge sge[];
};

#define KDAPL_SILENT	2

/* In a wr_id: this is the first work request of a chain of two, see kdapl_post_sq(). */
#define KDAPL_WR_FIRST	1ULL

/*
 * struct kdapl_ring - requests of an EP in posting order
 * @lock: serialises posting; protects qp, head, posted, flushed, unsignalled
 * @flushed: the QP is destroyed; requests posted from now on complete as flushed at once
 * @unsignalled: receives may be posted with DAT_COMPLETION_UNSIGNALLED_FLAG
 * @qp: gets the posted requests; NULL while there is none
 * @wrs: the entries, struct kdapl_wr
 * @stride: bytes of an entry
 * @mask: number of entries less one
 * @niov: segments of an entry in kdapl_wr.sge
 * @nlmr: segments of an entry whose LMRs are remembered
 * @max: entries that may be in use
 * @head: next free position
 * @posted: next position to hand to the device
 * @done: next position to complete; EVD lock
 * @tail: oldest position not reaped; EVD lock, read by posters
 * @unreaped: completion events queued; EVD lock
 * @ahead: requests that completed before earlier ones; EVD lock
 * @proved: silent requests before this position have succeeded; valid while @ahead; EVD
 *	lock
 * @depth: requests that fit into the device's send queue
 * @chains: chained requests that have not ended
 */
struct kdapl_ring {
	/* Written by posters. */
	spinlock_t lock;		/* see above */
	bool flushed;
	bool unsignalled;
	u8 niov;
	u8 nlmr;
	u32 head;
	u32 posted;
	struct ib_qp *qp;
	void *wrs;
	u32 stride;
	u32 mask;
	u32 max;
	u32 depth;
	/* Written when requests complete or are reaped; posters read @tail. */
	u32 done;
	u32 tail;
	u32 unreaped;
	u32 ahead;
	u32 proved;
	atomic_t chains;
};

static inline struct kdapl_wr *kdapl_ring_wr(struct kdapl_ring *ring, u32 pos)
{
	return ring->wrs + (size_t)(pos & ring->mask) * ring->stride;
}

/* Bytes of an entry with @niov segments that remembers @nlmr LMRs. */
static inline size_t kdapl_entry_size(u32 niov, u32 nlmr)
{
	/* The first LMR is in kdapl_event.lmr. */
	return sizeof(struct kdapl_wr) + niov * sizeof(struct ib_sge) +
	       (max(nlmr, 1U) - 1) * sizeof(DAT_LMR_CONTEXT);
}

/* Return the array of LMR contexts of the segments of @wr from the second one on. */
static inline DAT_LMR_CONTEXT *kdapl_wr_lmrs(struct kdapl_wr *wr, u32 niov)
{
	return (DAT_LMR_CONTEXT *)&wr->sge[niov];
}

/* Return the LMR context of segment @i of @wr, see kdapl_wr_name(). */
static inline DAT_LMR_CONTEXT kdapl_wr_lmr(struct kdapl_wr *wr, u32 niov, u8 i)
{
	return i ? kdapl_wr_lmrs(wr, niov)[i - 1] : wr->ev.lmr;
}

/*
 * Record the LMRs that @wr names, so that dat_lmr_free() finds @wr (mem_posted.c). @niov:
 * segments for which @wr has room in its sge[].
 */
static inline void kdapl_wr_name(struct kdapl_wr *wr, u32 niov, DAT_COUNT n,
				 const DAT_LMR_TRIPLET *iov)
{
	DAT_COUNT i;

	wr->ev.nlmr = n;
	if (likely(n))
		wr->ev.lmr = iov[0].lmr_context;
	for (i = 1; i < n; i++)
		kdapl_wr_lmrs(wr, niov)[i - 1] = iov[i].lmr_context;
}

/* Are all entries in use? */
static inline bool kdapl_ring_full(struct kdapl_ring *ring)
{
	lockdep_assert_held(&ring->lock);

	/* Pairs with the release of an entry that was reaped. litmus: ring-tail */
	return ring->head - smp_load_acquire(&ring->tail) >= ring->max;
}

/* Post the receive @wr to the device. Return false if the device refuses it. */
static inline bool kdapl_rq_post(struct kdapl_ring *rq, struct kdapl_wr *wr)
{
	const struct ib_recv_wr rwr = {
		.wr_id = (uintptr_t)wr,
		.sg_list = wr->sge,
		.num_sge = wr->nsge,
	};

	lockdep_assert_held(&rq->lock);

	/* siw refuses while the QP changes state; kdapl_conn_established() tries again. */
	if (unlikely(ib_post_recv(rq->qp, &rwr, NULL)))
		return false;
	rq->posted++;
	return true;
}

/*
 * Move the head past an entry that is filled in. In a long ring the next entry has left
 * the cache since its last use: prefetch it.
 */
static inline void kdapl_ring_advance(struct kdapl_ring *ring)
{
	lockdep_assert_held(&ring->lock);

	WRITE_ONCE(ring->head, ring->head + 1);
	prefetchw(kdapl_ring_wr(ring, ring->head));
}

/*
 * Is @wr, the oldest request, unsignalled with a later one complete? Then the device has
 * left out the completion of @wr.
 */
static inline bool kdapl_ring_left_out(const struct kdapl_ring *ring,
				       const struct kdapl_wr *wr)
{
	return wr->suppress == KDAPL_SILENT && ring->ahead && !wr->ahead;
}

/*
 * Complete @wr, the oldest request. Without an @event its entry is free as soon as all
 * events before it are reaped.
 */
static inline void kdapl_ring_complete(struct kdapl_evd *evd,
				       struct kdapl_ring *ring,
				       struct kdapl_wr *wr, bool event)
{
	lockdep_assert_held(&evd->lock);

	/*
	 * Pairs with kdapl_ring_names(): past ->done the consumer may free the memory.
	 * litmus: ring-done
	 */
	smp_store_release(&ring->done, (u32)wr->seq + 1);
	/* Prefetch as kdapl_ring_advance() does. */
	prefetchw(kdapl_ring_wr(ring, ring->done));
	if (event)
		ring->unreaped++;
	else if (!ring->unreaped)
		/*
		 * Pairs with kdapl_ring_full(): posters may write the entry.
		 * litmus: ring-tail
		 */
		smp_store_release(&ring->tail, ring->done);
}

/* The event of @wr, the oldest one of the ring, was reaped. */
static inline void kdapl_ring_reaped(struct kdapl_evd *evd,
				     struct kdapl_ring *ring,
				     struct kdapl_wr *wr)
{
	u32 tail = --ring->unreaped ? (u32)wr->seq + 1 : ring->done;

	lockdep_assert_held(&evd->lock);

	/* Pairs with kdapl_ring_full(). litmus: ring-tail */
	smp_store_release(&ring->tail, tail);
}

/*
 * The Endpoint is dying: drop one event. The tail stays while older events are queued;
 * kdapl_withdraw_ring() starts there.
 */
static inline void kdapl_ring_withdrawn(struct kdapl_evd *evd,
					struct kdapl_ring *ring)
{
	lockdep_assert_held(&evd->lock);

	if (!--ring->unreaped)
		/* Pairs with kdapl_ring_full(). litmus: ring-tail */
		smp_store_release(&ring->tail, ring->done);
}

/* Return the hash bucket of Endpoints whose QP, at address @qp, is being destroyed. */
static inline struct hlist_head *
kdapl_leaving_bucket(struct kdapl_evd *evd, const struct ib_qp *qp)
{
	return &evd->leaving[hash_ptr(qp, KDAPL_LEAVING_BITS)];
}

/* Why a ring is flushed, see kdapl_ring_flush(). */
enum kdapl_flush {
	KDAPL_FLUSH_END,		/* the connection is over */
	KDAPL_FLUSH_POST,		/* a poster found the ring flushed */
	KDAPL_FLUSH_REARM,		/* the Endpoint is reset */
};

/*
 * struct kdapl_request - one of several requests that are posted together
 * @wr: the work request; a Send uses @wr.wr only. Until the request is entered in the
 *	ring, wr_id is the consumer's cookie: eight of these structures are on the stack
 * @segs: the segments, checked, and the mapping that they name, if any
 * @op: reported in the completion event
 * @flags: completion flags, checked
 */
struct kdapl_request {
	struct ib_rdma_wr wr;
	struct kdapl_segs segs;
	DAT_DTOS op;
	DAT_COMPLETION_FLAGS flags;
};

/* A change of Protection Zone: @slot holds the pointer that becomes @pz. */
struct kdapl_zone {
	struct kdapl_pz **slot;
	struct kdapl_pz *pz;
};

/* dto_ring.c */
extern const struct kdapl_event_ops kdapl_request_event_ops;

int kdapl_ring_prepare(struct kdapl_ring *ring, u32 max, u32 niov, u32 nlmr);
void kdapl_ring_free(struct kdapl_ring *ring);
int kdapl_ring_commit(struct kdapl_ring *ring, struct kdapl_ring *fresh,
		      struct kdapl_evd *evd, const struct kdapl_zone *zone);
void kdapl_ring_flush(struct kdapl_ep *ep, struct kdapl_ring *ring,
		      enum kdapl_flush how);
bool kdapl_rq_push(struct kdapl_ring *rq);

/* dto.c */
DAT_RETURN kdapl_flags_check(struct kdapl_ep *ep, DAT_COMPLETION_FLAGS flags,
			     DAT_DTOS op, int arg);
void kdapl_post_behind(struct kdapl_ep *ep, struct ib_send_wr *wr);
void kdapl_forget_binds(struct kdapl_ep *ep);
DAT_RETURN kdapl_post_sq(struct kdapl_ep *ep, struct ib_send_wr *wr,
			 DAT_DTO_COOKIE cookie, DAT_DTOS op,
			 DAT_COMPLETION_FLAGS flags, struct kdapl_obj *mem,
			 u32 len);
DAT_RETURN kdapl_post_batch(struct kdapl_ep *ep, struct kdapl_request *req,
			    unsigned int n);
DAT_RETURN kdapl_send_build(struct kdapl_ep *ep, struct kdapl_segs *segs,
			    DAT_COMPLETION_FLAGS flags, struct ib_send_wr *wr,
			    struct ib_sge *sge);

/* dto_sync.c */
void kdapl_recv_to_device(struct kdapl_pz *pz, u64 poster, DAT_COUNT max,
			  DAT_COUNT n, const DAT_LMR_TRIPLET *iov);
void kdapl_segs_to_device(struct kdapl_ring *sq, DAT_COMPLETION_FLAGS flags,
			  const struct kdapl_segs *segs);
void kdapl_wr_name_used(struct kdapl_wr *wr, u32 niov, DAT_COUNT n,
			const DAT_LMR_TRIPLET *iov);
void kdapl_request_name(struct kdapl_ring *sq, struct kdapl_wr *entry, DAT_DTOS op,
			const struct kdapl_segs *segs);
bool kdapl_wc_sync(struct kdapl_evd *evd, struct kdapl_ep *ep, struct ib_wc *wc);

/* dto_sink.c */
int kdapl_sinks_alloc(struct kdapl_ep *ep);
void kdapl_sinks_free(struct kdapl_ep *ep);
bool kdapl_sink_needed(struct kdapl_ep *ep, const DAT_LMR_TRIPLET *sink);
DAT_RETURN kdapl_sink_post(struct kdapl_ep *ep, struct ib_rdma_wr *read,
			   const DAT_LMR_TRIPLET *sink, DAT_DTO_COOKIE cookie,
			   DAT_COMPLETION_FLAGS flags, struct kdapl_sg *map);
DAT_RETURN kdapl_sink_load(struct kdapl_ep *ep, struct ib_send_wr *wr,
			   struct kdapl_obj *mem);

/* dto_defer.c */

/* How long a passive side on iWARP defers its requests if no message comes. */
#define KDAPL_DEFER_MS	100

int kdapl_defer_begin(struct kdapl_ep *ep, u32 sge);
void kdapl_defer_end(struct kdapl_ep *ep);
void kdapl_defer_add(struct kdapl_ep *ep, const struct ib_send_wr *wr);
void kdapl_defer_open(struct kdapl_ep *ep);
bool kdapl_defer_release(struct kdapl_ep *ep);

/* dto_qp.c */
u32 kdapl_qp_send_sge(struct kdapl_ep *ep);
int kdapl_qp_create(struct kdapl_ep *ep, struct rdma_cm_id *id);
int kdapl_qp_to_rts(struct kdapl_ep *ep, struct rdma_cm_id *id,
		    const struct rdma_conn_param *param);
void kdapl_qp_start(struct kdapl_ep *ep);
void kdapl_qp_undo(struct kdapl_ep *ep);
void kdapl_qp_error(struct kdapl_ep *ep);
void kdapl_qp_give_up(struct kdapl_ep *ep);
bool kdapl_qp_close_sq(struct kdapl_ep *ep);
void kdapl_qp_destroy(struct kdapl_ep *ep, bool was_up);
void kdapl_qp_post_recvs(struct kdapl_ep *ep);

/* dto_recv.c */
extern const struct kdapl_event_ops kdapl_recv_event_ops;

void kdapl_recv_withdraw(struct kdapl_wr *wr);
void kdapl_ep_set_marks(struct kdapl_ep *ep);
void kdapl_ep_check_marks(struct kdapl_ep *ep, struct kdapl_later *later);
bool kdapl_ep_update_watch(struct kdapl_ep *ep, struct kdapl_evd *evd,
			   bool want);
void kdapl_ep_open(struct kdapl_ep *ep, bool up);
struct kdapl_evd *kdapl_ep_lock_recv(struct kdapl_ep *ep, unsigned long *flags)
	__acquires(&ep->recv_evd->lock);
void kdapl_ep_unlock_recv(struct kdapl_ep *ep, struct kdapl_evd *evd,
			  unsigned long flags)
	__releases(&evd->lock);

/* dto_complete.c */
struct kdapl_ep *kdapl_leaving_ep(struct kdapl_evd *evd,
				  const struct ib_qp *qp);
void kdapl_mem_done(struct kdapl_wr *wr);
void kdapl_ep_poll_requests(u64 handle);
int kdapl_dto_complete(struct kdapl_evd *evd, struct ib_wc *wc, int n,
		       struct kdapl_later *later);

#endif
