/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Endpoints: ep.c, ep_attr.c, ep_query.c, ep_watermark.c, ep_modify.c, ep_free.c,
 * ep_move.c, ep_reset.c, ep_rdma.c. ep_state.h has their state.
 */
#ifndef KDAPL_EP_H
#define KDAPL_EP_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include "dto.h"
#include "ep_state.h"
#include "evd.h"
#include "handle.h"

struct kdapl_conn;
struct kdapl_cq;
struct kdapl_deferred;
struct kdapl_pz;
struct kdapl_sinks;
struct kdapl_sp;
struct kdapl_srq;

/* The handles that dat_ep_query() returns; NULL if the Endpoint has no such object. */
struct kdapl_ep_shown {
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE recv_evd;
	DAT_EVD_HANDLE req_evd;
	DAT_EVD_HANDLE conn_evd;
};

/*
 * struct kdapl_ep - Endpoint
 * @obj: members common to all objects
 * @mutex: serialises connect, accept, modify, reset
 * @pz: Protection Zone, or NULL
 * @recv_evd: EVD for receives, or NULL
 * @req_evd: EVD for requests, or NULL
 * @conn_evd: EVD for connection events, or NULL
 * @srq: Shared Receive Queue, or NULL
 * @lock: protects all members up to @provider_owned, addresses and attributes
 * @state: written by kdapl_ep_change_state() only
 * @conn: the connection or the attempt to make it; referenced
 * @spare: a connection for kdapl_ep_stop(), which must not fail for want of memory;
 *	@mutex
 * @conn_events: queued connection events, also of earlier connections
 * @dying: freed by the consumer
 * @deps_pinned: dat_ep_modify() is running; dat_ep_free() leaves the rest to it
 * @linger_link: entry in ia->lingering
 * @lingering: position in the order of entry in ia->lingering; 0 if not entered
 * @finishing: counted in req_evd->watchers, while a disconnect waits; req_evd->lock
 * @provider_owned: created for a PSP, not yet accepted
 * @no_reads: the peer answers no RDMA Read
 * @sq: requests
 * @rq: receives, unused with an SRQ
 * @qp: used to set up and take down the connection; posting uses sq.qp and rq.qp
 * @leaving_qp: QP being destroyed, only compared; recv_evd->lock
 * @leaving_link: entry in recv_evd->leaving
 * @sinks: see dto_sink.c; sq.lock
 * @deferred: requests that wait for the peer, see dto_defer.c; sq.lock
 * @first_bind: bindings posted with the next request, see kdapl_keep_bind(); sq.lock
 * @last_bind: the last of these bindings
 * @nbinds: number of these bindings
 * @rsp: RSP that the Endpoint is reserved for; compared, never dereferenced
 * @send_cq: CQ with room for the requests of @qp; written with @lock held
 * @recv_cq: CQ with room for the receives of @qp; written with @lock held
 * @send_charge: room taken up in @send_cq
 * @recv_charge: room taken up in @recv_cq
 * @taken: number of buffers ever taken for messages; this and all up to @soft_event is
 *	the receive ledger, protected by recv_evd->lock
 * @held: taken less reaped
 * @mark: the lower of the armed high watermarks; 0 with @deferring
 * @soft: soft high watermark
 * @hard: hard high watermark
 * @deferring: kdapl_defer_open() must learn of the first receive
 * @soft_armed: @soft has not fired since it was set
 * @hard_fired: @hard has ended the connection
 * @watching: counted in recv_evd->watchers
 * @recv_no_upcall: receives do not by themselves cause upcalls
 * @open: ESTABLISHED was queued
 * @at_hand: SRQ buffers taken and not reaped, in order
 * @parked: receives that completed before @open
 * @srq_seq: last SRQ buffer completed here; this and all up to @srq_gave_back:
 *	srq->lock
 * @srq_epoch: srq->epoch at the last completion here
 * @srq_packets: packets of the messages completed here
 * @srq_psn: number of the first packet
 * @srq_gid: index of the GID of the path, on RoCE
 * @srq_gave_back: the QP has returned a buffer without a message
 * @mtu_shift: log2 of the length of packets
 * @receives: the QP was taken to RTR, or over iWARP may have been by the driver
 * @last_wqe: the QP has ended and will take no more buffers of the SRQ
 * @srq_link: entry in srq->eps; srq->lock
 * @soft_crossed: how often @soft has fired; this and @hard_crossed: as @held
 * @hard_crossed: how often @hard has ended a connection
 * @since: when the connection was established, in seconds of real time; @lock
 * @soft_event: reports that @soft was exceeded
 * @attr: attributes
 * @attr_filled: members of @attr that the consumer gave as 0, see kdapl_ep_fill_attr()
 * @soft_asked: the srq_soft_hw that dat_ep_query() returns
 * @shown: handles of the dependencies; ep->lock, while the dependencies have various
 *	locks
 * @comm: for dat_ep_common_connect()
 * @local_addr: address with port
 * @remote_addr: address with port
 * @connect_flags: for dat_ep_dup_connect()
 * @was_reset: calls that began in an earlier connection may still run, see
 *	kdapl_ep_settle(); @mutex
 * @was_modified: calls that began before dat_ep_modify() may still run; @mutex
 * @settle_gp: grace period of the last reset or change, see kdapl_ep_settle(); @mutex
 *
 * The comments above are in the order of locks; the members are in the order of use, see
 * the table cachelines.
 *
 * The QP exists only from connect or accept until the connection has ended;
 * before that, receives wait in @rq. So every attribute can be changed in the
 * unconnected states without touching the device.
 */
struct kdapl_ep {
	struct kdapl_obj obj;
	struct kdapl_evd *recv_evd;
	struct kdapl_evd *req_evd;

	/* A cache line read by all posts and completions, with the limits in @attr. */
	struct kdapl_pz *pz;
	struct kdapl_srq *srq;
	DAT_EP_STATE state;
	bool dying;
	bool recv_no_upcall;
	bool open;
	u8 mtu_shift;
	DAT_EP_ATTR attr;

	/* Each ring has a line for posting, then one for completing. */
	struct kdapl_conn *conn;
	struct kdapl_sinks *sinks;
	struct kdapl_deferred *deferred;
	struct ib_qp *qp;
	struct kdapl_ring sq;
	struct kdapl_sp *rsp;
	struct kdapl_cq *send_cq;
	struct kdapl_cq *recv_cq;
	struct ib_qp *leaving_qp;
	u64 lingering;
	struct hlist_node linger_link;
	struct kdapl_ring rq;

	/* The receive ledger begins in the line for completing receives. */
	u64 taken;
	u32 held;
	u32 mark;
	struct list_head at_hand;
	u64 srq_seq;
	u32 srq_packets;
	u32 srq_epoch;
	u32 srq_psn;
	u8 srq_gid;
	bool srq_gave_back;
	bool deferring;
	bool soft_armed;
	bool hard_fired;
	bool watching;
	int soft;
	int hard;
	struct list_head parked;

	struct mutex mutex;		/* see above */
	struct kdapl_evd *conn_evd;
	struct kdapl_conn *spare;
	spinlock_t lock;		/* see above */
	bool deps_pinned;
	bool finishing;
	bool provider_owned;
	bool no_reads;
	struct list_head conn_events;
	struct hlist_node leaving_link;
	int send_charge;
	int recv_charge;
	struct completion last_wqe;
	struct list_head srq_link;
	u32 soft_crossed;
	u32 hard_crossed;
	time64_t since;
	struct kdapl_async soft_event;
	DAT_COUNT soft_asked;
	struct kdapl_ep_shown shown;
	DAT_COMM comm;
	struct sockaddr_storage local_addr;
	struct sockaddr_storage remote_addr;
	DAT_CONNECT_FLAGS connect_flags;
	bool receives;
	bool was_reset;
	bool was_modified;
	u16 attr_filled;
	unsigned long settle_gp;
	struct ib_send_wr *first_bind;
	struct ib_send_wr *last_bind;
	u32 nbinds;
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

/* Was @ep freed, and may its QP still receive? Context: Any. */
static inline bool kdapl_ep_lingers(const struct kdapl_ep *ep)
{
	/* Pairs with kdapl_conn_stopped(): the QP has stopped writing. litmus: lingering */
	return smp_load_acquire(&ep->lingering);
}

/* ep.c */
struct kdapl_ep *kdapl_ep_alloc(struct kdapl_ia *ia,
				const struct kdapl_ep_deps *deps,
				const DAT_EP_ATTR *attr, int *err);
int kdapl_ep_make_rings(struct kdapl_ia *ia, struct kdapl_ring *sq,
			struct kdapl_ring *rq, const DAT_EP_ATTR *attr, bool srq);
bool kdapl_ep_check_evds(struct kdapl_ia *ia, const struct kdapl_ep_deps *deps,
			 const DAT_EP_ATTR *attr);
void kdapl_deps_put(const struct kdapl_ep_deps *deps);
void kdapl_ep_show(struct kdapl_ep *ep, const struct kdapl_ep_deps *deps);

/* ep_attr.c */
void kdapl_ep_default_attr(struct kdapl_ia *ia, DAT_EP_ATTR *attr);
bool kdapl_ep_check_attr(struct kdapl_ia *ia, const DAT_EP_ATTR *attr,
			 bool srq);
u16 kdapl_ep_fill_attr(struct kdapl_ia *ia, DAT_EP_ATTR *attr, bool srq);
void kdapl_ep_unfill_attr(DAT_EP_ATTR *attr, u16 filled);

/* ep_watermark.c */
void kdapl_ep_initial_mark(struct kdapl_ep *ep);

/* ep_move.c */
void kdapl_ep_move_events(struct kdapl_ep *ep, struct kdapl_evd **slot,
			  struct kdapl_evd *to, u8 kind);

/* ep_free.c */
DAT_RETURN kdapl_ep_free(struct kdapl_ep *ep, u32 refused);
void kdapl_ep_finish(struct kdapl_ep *ep);
void kdapl_ep_stop(struct kdapl_ep *ep, bool wait);

/* Is @handle that of a connected Endpoint? Context: Any; inside an RCU read-side section. */
static inline bool kdapl_ep_is_connected(u64 handle)
{
	const struct kdapl_ep *ep = kdapl_find((DAT_HANDLE)(uintptr_t)handle,
					       DAT_HANDLE_TYPE_EP);

	return ep && READ_ONCE(ep->state) == DAT_EP_STATE_CONNECTED;
}

#endif
