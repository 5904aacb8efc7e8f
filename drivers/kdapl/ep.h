/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Endpoints: ep.c, ep_free.c, ep_modify.c, ring.c, qp.c, dto.c,
 * dto_rdma.c, sink.c, ledger.c.
 */
#ifndef KDAPL_EP_H
#define KDAPL_EP_H

#include "kdapl.h"

/*
 * struct kdapl_wr - one posted request or receive buffer
 * @ev: its completion event
 * @ep: Endpoint it was posted to or (SRQ) that took it
 * @cookie: the consumer's
 * @seq: ring position, or position in the posting order of an SRQ
 * @len: bytes transferred
 * @rkey: context invalidated by the peer; of a request with @twice, how the
 *	first part failed
 * @status: DAT_DTO_COMPLETION_STATUS
 * @op: DAT_DTOS
 * @suppress: no event on success
 * @twice: two requests of the device, see kdapl_post_sq()
 * @early: completed, but not all before it; counted in kdapl_ring.early
 * @taken: counted in kdapl_ep.held
 * @nsge: segments in @sge
 * @has_mem: @mem is set
 * @pz: PZ of the segments when @nsge is not zero
 * @link: SRQ: entry in the free, held or hardware list
 * @mem: LMR or RMR that the request is about; referenced until it has ended
 * @mem_handle: its handle, for the event
 * @sge: receive buffers only: what the device gets
 *
 * All that a plain request needs is in the first 64 bytes.
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
	bool suppress;
	bool twice;
	bool early;
	bool taken;
	u8 nsge;
	bool has_mem;
	struct kdapl_pz *pz;
	union {
		struct list_head link;
		struct {
			struct kdapl_obj *mem;
			u64 mem_handle;
		};
	};
	struct ib_sge sge[];
};

/* In a wr_id: the first of two requests of the device, see kdapl_post_sq(). */
#define KDAPL_WR_FIRST	1ULL

/*
 * struct kdapl_ring - requests of an EP in posting order
 * @lock: serialises posting; protects qp, head, posted, flushed
 * @qp: takes what is posted; NULL while there is none
 * @head: next free position
 * @posted: next position to hand to the device
 * @done: next position to complete; EVD lock
 * @tail: oldest position not reaped; EVD lock, read by posters
 * @unreaped: completion events queued; EVD lock
 * @flushed: the QP is gone, what is posted completes as flushed at once
 * @early: requests that completed before earlier ones; EVD lock
 * @depth: requests that fit into the device's send queue
 * @twice: requests on their way that are two there
 */
struct kdapl_ring {
	spinlock_t lock;		/* see above */
	struct ib_qp *qp;
	void *mem;
	u32 stride;
	u32 mask;
	u32 niov;
	u32 max;
	u32 head;
	u32 posted;
	u32 done;
	u32 tail;
	u32 unreaped;
	bool flushed;
	u32 early;
	u32 depth;
	atomic_t twice;
};

static inline struct kdapl_wr *kdapl_ring_wr(struct kdapl_ring *ring, u32 pos)
{
	return ring->mem + (size_t)(pos & ring->mask) * ring->stride;
}

/* Is there room for one more? Under ring->lock. */
static inline bool kdapl_ring_full(struct kdapl_ring *ring)
{
	/* Pairs with the release of an entry that was reaped. */
	return ring->head - smp_load_acquire(&ring->tail) >= ring->max;
}

/*
 * The entry at the head is filled in. A long ring is out of the cache when it
 * comes round: ask for the next entry now. Under ring->lock.
 */
static inline void kdapl_ring_advance(struct kdapl_ring *ring)
{
	WRITE_ONCE(ring->head, ring->head + 1);
	prefetchw(kdapl_ring_wr(ring, ring->head));
}

/*
 * The device (or a flush) is done with @wr, and so with all before it. If it
 * causes no event it is free again as soon as all events before it are reaped.
 * Under the EVD's lock.
 */
static inline void kdapl_ring_complete(struct kdapl_ring *ring,
				       struct kdapl_wr *wr, bool event)
{
	ring->done = (u32)wr->seq + 1;
	/* As in kdapl_ring_advance(). */
	prefetchw(kdapl_ring_wr(ring, ring->done));
	if (event)
		ring->unreaped++;
	else if (!ring->unreaped)
		/* Pairs with kdapl_ring_full(): the entry may be written. */
		smp_store_release(&ring->tail, ring->done);
}

/* The completion event of @wr was reaped or withdrawn. Under the EVD's lock. */
static inline void kdapl_ring_reaped(struct kdapl_ring *ring,
				     struct kdapl_wr *wr)
{
	u32 tail = --ring->unreaped ? (u32)wr->seq + 1 : ring->done;

	/* Pairs with kdapl_ring_full(). */
	smp_store_release(&ring->tail, tail);
}

int kdapl_ring_alloc(struct kdapl_ring *ring, u32 max, u32 niov);
void kdapl_ring_free(struct kdapl_ring *ring);
/* When a ring is flushed, see there. */
enum kdapl_flush {
	KDAPL_FLUSH_END,
	KDAPL_FLUSH_POST,
	KDAPL_FLUSH_REARM,
};

/* A change of Protection Zone: where it is kept, and the new one. */
struct kdapl_zone {
	struct kdapl_pz **slot;
	struct kdapl_pz *pz;
};

int kdapl_ring_prepare(struct kdapl_ring *ring, u32 max, u32 niov);
int kdapl_ring_commit(struct kdapl_ring *ring, struct kdapl_ring *fresh,
		      struct kdapl_evd *evd, const struct kdapl_zone *zone,
		      struct kdapl_later *later);
void kdapl_ring_flush(struct kdapl_ep *ep, struct kdapl_ring *ring,
		      enum kdapl_flush how);

/*
 * struct kdapl_ep - Endpoint
 *
 * The QP exists only from connect or accept until the connection has ended;
 * before that, receives wait in @rq. So every attribute can be changed in the
 * unconnected states without touching the device.
 */
struct kdapl_ep {
	struct kdapl_obj obj;
	struct mutex mutex;		/* connect, modify, reset, ... */
	struct kdapl_pz *pz;
	struct kdapl_evd *recv_evd;
	struct kdapl_evd *req_evd;
	struct kdapl_evd *conn_evd;
	struct kdapl_srq *srq;

	spinlock_t lock;		/* protects state, conn, dying */
	DAT_EP_STATE state;
	struct kdapl_conn *conn;
	bool dying;			/* freed by the consumer */
	bool on_hold;			/* see kdapl_ep_hold() */
	bool lingering;			/* counted in ia->lingering */
	bool draining;			/* counted in req_evd->watchers */
	bool provider_owned;		/* made for a PSP, not yet accepted */

	struct kdapl_ring sq;
	struct kdapl_ring rq;
	struct ib_qp *qp;		/* for posting: sq.qp, rq.qp */
	struct ib_qp *leaving_qp;	/* only compared; recv_evd->lock */
	struct list_head leaving_link;
	bool no_reads;			/* the peer answers no RDMA Read */
	struct kdapl_sinks *sinks;	/* sq.lock; see sink.c */
	struct kdapl_sp *rsp;		/* that it is reserved for; to compare */
	struct kdapl_cq *send_cq;
	struct kdapl_cq *recv_cq;
	int send_claim;
	int recv_claim;

	/* The receive ledger of this EP; protected by recv_evd->lock */
	u64 taken;			/* ever */
	u32 held;			/* taken - reaped */
	u32 mark;			/* the lower of the armed marks */
	int soft;
	int hard;
	bool soft_armed;
	bool watching;			/* counted in recv_evd->watchers */
	bool quiet_recv;		/* receives do not cause upcalls */
	bool open;			/* ESTABLISHED was queued */
	struct list_head early;		/* receives that came before it */
	u64 srq_seq;			/* last SRQ buffer completed here */
	struct list_head srq_link;	/* in srq->eps; srq->lock */
	struct kdapl_async soft_event;

	DAT_EP_ATTR attr;
	DAT_COUNT soft_asked;		/* its srq_soft_hw, as it is now */
	DAT_COMM comm;
	struct sockaddr_storage local_addr;
	struct sockaddr_storage remote_addr;
	DAT_CONN_QUAL remote_qual;
	DAT_CONNECT_FLAGS connect_flags;
};

#define KDAPL_QOS_ALL (DAT_QOS_HIGH_THROUGHPUT | DAT_QOS_LOW_LATENCY | \
		       DAT_QOS_ECONOMY | DAT_QOS_PREMIUM)

/* The objects that an Endpoint depends on; any may be NULL. */
struct kdapl_ep_deps {
	struct kdapl_pz *pz;
	struct kdapl_evd *recv_evd;
	struct kdapl_evd *req_evd;
	struct kdapl_evd *conn_evd;
	struct kdapl_srq *srq;
};

struct kdapl_ep *kdapl_ep_alloc(struct kdapl_ia *ia,
				const struct kdapl_ep_deps *deps,
				const DAT_EP_ATTR *attr, int *err);
void kdapl_ep_default_attr(struct kdapl_ia *ia, DAT_EP_ATTR *attr);
bool kdapl_ep_check_attr(struct kdapl_ia *ia, const DAT_EP_ATTR *attr,
			 bool srq);
bool kdapl_ep_check_evds(const struct kdapl_ep_deps *deps,
			 const DAT_EP_ATTR *attr);
void kdapl_deps_put(const struct kdapl_ep_deps *deps);
bool kdapl_stream_attach(struct kdapl_evd *evd, DAT_COMPLETION_FLAGS flags);
void kdapl_stream_join(struct kdapl_evd *evd, DAT_COMPLETION_FLAGS flags);
void kdapl_stream_detach(struct kdapl_evd *evd, DAT_COMPLETION_FLAGS flags);
void *kdapl_dep_get(DAT_HANDLE handle, DAT_HANDLE_TYPE type,
		    struct kdapl_ia *ia);
void kdapl_dep_put(struct kdapl_obj *obj);
DAT_RETURN kdapl_ep_state_error(DAT_EP_STATE state);
void kdapl_ep_withdraw(struct kdapl_ep *ep);
bool kdapl_ep_hold(struct kdapl_ep *ep);
void kdapl_ep_release_hold(struct kdapl_ep *ep);
bool kdapl_ep_free(struct kdapl_ep *ep);
void kdapl_ep_device_gone(struct kdapl_ep *ep);

bool kdapl_sink_wants_key(struct kdapl_ia *ia);
u32 kdapl_sink_max(struct kdapl_ia *ia, u32 max);
int kdapl_sinks_alloc(struct kdapl_ep *ep);
void kdapl_sinks_free(struct kdapl_ep *ep);
bool kdapl_sink_needed(struct kdapl_ep *ep, const DAT_LMR_TRIPLET *sink);
DAT_RETURN kdapl_sink_post(struct kdapl_ep *ep, struct ib_rdma_wr *read,
			   const DAT_LMR_TRIPLET *sink, DAT_DTO_COOKIE cookie,
			   DAT_COMPLETION_FLAGS flags);
DAT_RETURN kdapl_sink_load(struct kdapl_ep *ep, struct ib_send_wr *wr,
			   struct kdapl_obj *mem);

int kdapl_qp_create(struct kdapl_ep *ep, struct rdma_cm_id *id);
int kdapl_qp_to_rts(struct kdapl_ep *ep, struct rdma_cm_id *id,
		    const struct rdma_conn_param *param);
void kdapl_qp_start(struct kdapl_ep *ep);
void kdapl_qp_undo(struct kdapl_ep *ep);
void kdapl_qp_error(struct kdapl_ep *ep);
void kdapl_qp_destroy(struct kdapl_ep *ep, bool was_up);
void kdapl_rq_push(struct kdapl_ring *rq);
void kdapl_qp_post_recvs(struct kdapl_ep *ep);

DAT_RETURN kdapl_sge_build(struct kdapl_pz *pz, const struct kdapl_ep *ep,
			   DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			   DAT_COUNT max, DAT_MEM_PRIV_FLAGS priv,
			   struct ib_sge *sge, int *nsge, u64 *total);
DAT_RETURN kdapl_flags_check(struct kdapl_ep *ep, DAT_COMPLETION_FLAGS flags,
			     DAT_DTOS op, int arg);
DAT_RETURN kdapl_post_sq(struct kdapl_ep *ep, struct ib_send_wr *wr,
			 DAT_DTO_COOKIE cookie, DAT_DTOS op,
			 DAT_COMPLETION_FLAGS flags, struct kdapl_obj *mem);

void kdapl_recv_done(struct kdapl_evd *evd, struct kdapl_ep *ep,
		     struct kdapl_wr *wr, struct kdapl_later *later);
void kdapl_recv_reaped(struct kdapl_wr *wr);
void kdapl_recv_withdraw(struct kdapl_wr *wr);
void kdapl_ep_set_marks(struct kdapl_ep *ep);
struct kdapl_evd *kdapl_ep_lock_recv(struct kdapl_ep *ep, unsigned long *flags)
	__acquires(&ep->recv_evd->lock);
void kdapl_ep_unlock_recv(struct kdapl_ep *ep, struct kdapl_evd *evd,
			  unsigned long flags)
	__releases(&evd->lock);
bool kdapl_ep_update_watch(struct kdapl_ep *ep, struct kdapl_evd *evd,
			   bool want);
void kdapl_ep_open(struct kdapl_ep *ep, bool up);
void kdapl_ep_check_marks(struct kdapl_ep *ep, struct kdapl_later *later);

#endif
