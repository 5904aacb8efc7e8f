/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL for Linux: objects shared by the files of the module.
 *
 * Locks, outermost first:
 *
 *   kdapl_hca.sem          device present (read) / device leaving (write)
 *   kdapl_ep.mutex         connect, accept, modify, reset of one Endpoint
 *   kdapl_evd.mutex        upcall changes, CQ creation of one EVD
 *   kdapl_srq.mutex        resize and arming of one SRQ
 *   handler_mutex          of an rdma_cm id (rdma_lock_handler)
 *   kdapl_evd.lock         event list, CQ polling, receive ledger; irqsave
 *   kdapl_ring.lock        posting to one work queue; irqsave
 *   kdapl_srq.lock         order of an SRQ's buffers; irqsave
 *   kdapl_ep.lock          state of an Endpoint; irqsave
 *   kdapl_ia.lock          list of an IA's objects; irqsave
 *
 * Two EVD locks are never held together: what an EVD's completions cause on
 * another EVD is collected in a struct kdapl_later and done after unlocking.
 * No lock is held during an upcall. Objects are found by handle under RCU; data
 * transfer calls stay inside that read-side section and take no reference.
 */
#ifndef KDAPL_H
#define KDAPL_H

#include <linux/list.h>
#include <linux/irq_poll.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/ipv6.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <dat/kdat.h>
#include "compat.h"

struct kdapl_cr;
struct kdapl_lmr;
struct kdapl_pz;
struct kdapl_rmr;
struct kdapl_srq;
struct kdapl_svc;

#define KDAPL_POLL_BATCH	16
#define KDAPL_MAX_IOV		32
#define KDAPL_MAX_ADDRS		8
#define KDAPL_MAX_PRIVATE_DATA	RDMA_MAX_PRIVATE_DATA
/* About 0.16 ms: the default of 655 ms punishes a short receive queue. */
#define KDAPL_MIN_RNR_TIMER	8

/* ---- handle.c: the base of every DAT object ---------------------------- */

#define KDAPL_INDEX_BITS	20
#define KDAPL_INDEX_MASK	((1UL << KDAPL_INDEX_BITS) - 1)
#define KDAPL_TYPE_SHIFT	KDAPL_INDEX_BITS
#define KDAPL_TYPE_MASK		0xfUL
#define KDAPL_GEN_SHIFT		24

/*
 * struct kdapl_obj - what all DAT objects have in common
 * @handle: the value the consumer holds: generation, type, table index
 * @ref: memory and verbs resources live while this is held
 * @users: DAT objects that depend on this one; -1 once it was freed
 * @context: the consumer's context
 * @ia: the IA it belongs to (itself, for an IA)
 * @ia_link: entry in the IA's list, until released
 * @release: frees everything; process context, an RCU grace period after the
 *	last reference was dropped
 * @free_work: runs @release
 */
struct kdapl_obj {
	u64 handle;
	struct kref ref;
	atomic_t users;
	DAT_CONTEXT context;
	struct kdapl_ia *ia;
	struct list_head ia_link;
	void (*release)(struct kdapl_obj *obj);
	struct rcu_work free_work;
};

extern struct xarray kdapl_handles;
extern struct workqueue_struct *kdapl_wq;

int kdapl_obj_init(struct kdapl_obj *obj, DAT_HANDLE_TYPE type,
		   struct kdapl_ia *ia, void (*release)(struct kdapl_obj *));
void kdapl_obj_publish(struct kdapl_obj *obj);
bool kdapl_obj_unpublish(struct kdapl_obj *obj);
bool kdapl_obj_retire(struct kdapl_obj *obj);
void kdapl_obj_put(struct kdapl_obj *obj);
void *kdapl_obj_get(DAT_HANDLE handle, DAT_HANDLE_TYPE type);
void kdapl_obj_free(struct kdapl_obj *obj);
void kdapl_quiesce(void);
void kdapl_handle_setup(void);

static inline DAT_HANDLE_TYPE kdapl_type(const struct kdapl_obj *obj)
{
	return (obj->handle >> KDAPL_TYPE_SHIFT) & KDAPL_TYPE_MASK;
}

static inline DAT_HANDLE kdapl_handle(const struct kdapl_obj *obj)
{
	return (DAT_HANDLE)(uintptr_t)obj->handle;
}

/*
 * Find the object of a handle. The caller is in an RCU read-side section, which
 * keeps the object (but not its usefulness) until the section ends.
 */
static inline void *kdapl_find(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	u64 h = (uintptr_t)handle;
	struct kdapl_obj *obj = xa_load(&kdapl_handles, h & KDAPL_INDEX_MASK);

	if (unlikely(!obj || obj->handle != h || kdapl_type(obj) != type))
		return NULL;
	return obj;
}

static inline bool kdapl_handle_valid(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	bool valid;

	rcu_read_lock();
	valid = kdapl_find(handle, type);
	rcu_read_unlock();
	return valid;
}

/* Depend on @obj, unless it was freed. */
static inline bool kdapl_obj_use(struct kdapl_obj *obj)
{
	return atomic_inc_unless_negative(&obj->users);
}

static inline void kdapl_obj_unuse(struct kdapl_obj *obj)
{
	atomic_dec(&obj->users);
}

/* ---- device.c: RDMA devices and their ports ----------------------------- */

/*
 * struct kdapl_hca - an RDMA device
 * @dev: valid while @gone is false and @sem is held, or while verbs objects
 *	of it exist
 * @sem: held for reading around anything that creates verbs objects
 * @gone: the device has left
 * @ref: one for the ib_client, one per IA
 * @ias: open IAs, changed under @sem for writing or kdapl_hcas_lock
 * @link: entry in the list of present devices
 * @events: device event handler, for drivers that report SRQ limits there
 * @srq_resize: ib_modify_srq(IB_SRQ_MAX_WR) is known to work
 * @srq_any_pz: an SRQ and the QPs on it may be of different PDs
 * @max_qlen: longest EVD
 * @next_vector: spreads CQs over completion vectors
 * @name: of the device, kept after it has gone
 */
struct kdapl_hca {
	struct ib_device *dev;
	struct rw_semaphore sem;
	bool gone;
	struct kref ref;
	struct list_head ias;
	struct list_head link;
	struct ib_event_handler events;
	bool srq_resize;
	bool srq_any_pz;
	int max_qlen;
	atomic_t next_vector;
	char name[IB_DEVICE_NAME_MAX];
};

extern struct ib_client kdapl_client;

void kdapl_hca_add_ia(struct kdapl_hca *hca, struct kdapl_ia *ia);
void kdapl_hca_del_ia(struct kdapl_ia *ia);
struct kdapl_hca *kdapl_hca_find(const char *name, u32 *port);
bool kdapl_hca_enter(struct kdapl_hca *hca);
void kdapl_hca_leave(struct kdapl_hca *hca);
void kdapl_hca_put(struct kdapl_hca *hca);

/* ---- ia.c --------------------------------------------------------------- */

/*
 * struct kdapl_event - entry of an EVD's list, embedded in what it reports
 * @link: in kdapl_evd.events or, for a receive, kdapl_ep.early
 * @kind: enum kdapl_event_kind, says what it is embedded in
 * @queued: on a list
 * @quiet: does not by itself cause an upcall
 * @again: asynchronous events: times it is to be delivered once more
 */
struct kdapl_event {
	struct list_head link;
	u8 kind;
	bool queued;
	bool quiet;
	u32 again;
};

/*
 * struct kdapl_async - an event for the asynchronous EVD of an IA
 * @ev: the list entry
 * @obj: the object the event is about
 * @number: event number
 * @reason: object specific reason
 */

struct kdapl_async {
	struct kdapl_event ev;
	struct kdapl_obj *obj;
	DAT_EVENT_NUMBER number;
	DAT_COUNT reason;
};

/* The port in an address, in host order; 0 if there is none. */
static inline u16 kdapl_addr_port(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return ntohs(((const struct sockaddr_in *)addr)->sin_port);
	case AF_INET6:
		return ntohs(((const struct sockaddr_in6 *)addr)->sin6_port);
	default:
		return 0;
	}
}

struct kdapl_ia {
	struct kdapl_obj obj;
	struct kdapl_hca *hca;
	u32 port;
	struct list_head hca_link;
	spinlock_t lock;		/* protects objs */
	struct list_head objs;
	bool closing;			/* no new objects */
	atomic_t live;			/* objects not yet released */
	atomic_t lent;			/* EVDs that other IAs use for theirs */
	wait_queue_head_t wait;		/* for live to drop */
	struct kdapl_evd *async_evd;
	bool own_async_evd;
	struct mutex mutex;		/* null_evd, reserved LMR */
	struct kdapl_evd *null_evd;	/* CQ for EPs without DTO EVDs */
	struct kdapl_lmr *reserved_lmr;
	struct kdapl_async catastrophic;
	struct sockaddr_storage addr[KDAPL_MAX_ADDRS];
	unsigned int naddrs;
	u32 max_msg;			/* bytes */
	char owner[MODULE_NAME_LEN];	/* consumer, for restrack */
};

DAT_RETURN kdapl_errno_to_dat(int err);
void kdapl_ia_attr(struct kdapl_ia *ia, DAT_IA_ATTR *attr);
void kdapl_provider_attr(struct kdapl_ia *ia, DAT_PROVIDER_ATTR *attr);
bool kdapl_addr_any(const struct sockaddr_storage *addr);
bool kdapl_comm_valid(const DAT_COMM *comm);
void kdapl_ia_refresh_addrs(struct kdapl_ia *ia);
const struct sockaddr *kdapl_ia_local_addr(struct kdapl_ia *ia,
					   const struct sockaddr *peer);
void kdapl_ia_stop(struct kdapl_ia *ia);
void kdapl_ia_strip(struct kdapl_ia *ia);
DAT_COUNT kdapl_max_private_data(struct kdapl_ia *ia);
struct kdapl_evd *kdapl_ia_null_evd(struct kdapl_ia *ia);

/* ---- evd.c, upcall.c, cq.c: Event Dispatchers ---------------------------- */

enum kdapl_event_kind {
	KDAPL_EV_SQ,			/* struct kdapl_wr in an EP's send ring */
	KDAPL_EV_RQ,			/* struct kdapl_wr in an EP's receive ring */
	KDAPL_EV_SRQ,			/* struct kdapl_wr of an SRQ */
	KDAPL_EV_CONN,			/* struct kdapl_conn_event */
	KDAPL_EV_CR,			/* struct kdapl_cr */
	KDAPL_EV_ASYNC,			/* struct kdapl_async */
	KDAPL_EV_SOFTWARE,		/* struct kdapl_soft_event */
};

struct kdapl_soft_event {
	struct kdapl_event ev;
	DAT_PVOID pointer;
};

/*
 * struct kdapl_cq - one completion queue that feeds an EVD
 * @entries: what the CQ can hold
 * @claimed: what the attached work queues can produce
 * @srqs: SRQs whose claim is counted once however many EPs share the CQ
 */
struct kdapl_cq {
	struct ib_cq *cq;
	struct kdapl_evd *evd;
	struct list_head link;
	int entries;
	int claimed;
	struct list_head srqs;
};

/*
 * struct kdapl_evd - Event Dispatcher
 *
 * Events are list entries embedded in what they report, so queueing never
 * allocates and a full EVD loses nothing: the entries beyond @qlen wait.
 */
struct kdapl_evd {
	struct kdapl_obj obj;
	spinlock_t lock;		/* protects all up to mutex */
	struct list_head events;
	u32 count;
	u32 qlen;
	bool overflowed;
	bool wake;			/* the dispatcher is to make upcalls */
	bool rang;			/* a solicited completion arrived */
	bool armed_solicited;
	DAT_EVD_FLAGS flags;
	DAT_UPCALL_POLICY policy;
	DAT_UPCALL_OBJECT upcall;
	struct module *owner;
	struct list_head cqs;
	int claimed;			/* over all CQs */
	struct ib_wc wc[KDAPL_POLL_BATCH];
	struct list_head soft_free;
	struct list_head leaving;	/* EPs whose QP is being destroyed */
	u32 watchers;			/* armed marks that need arrivals seen */
	u32 solicited;			/* EPs with DAT_COMPLETION_SOLICITED_WAIT */
	u32 unsignalled;		/* EP streams with UNSIGNALLED */
	u32 streams;			/* EP streams of any kind */
	struct mutex mutex;
	bool softirq;			/* upcalls run in softirq */
	bool stopped;			/* freed: no more upcalls */
	struct task_struct *upcaller;	/* in an upcall now */
	struct irq_poll iop;
	struct work_struct work;
	u32 soft_total;
	struct kdapl_async overflow;
};

/*
 * struct kdapl_later - what must wait until an EVD's lock is dropped
 * @async: asynchronous events to be queued on the IA's EVD; one poll batch
 *	cannot cause more
 */
#define KDAPL_LATER_MAX (2 * KDAPL_POLL_BATCH + 2)
struct kdapl_later {
	unsigned int n;
	struct kdapl_async *async[KDAPL_LATER_MAX];
};

/* Whom the dispatcher is to call, as it was when the event was reaped. */
struct kdapl_call {
	DAT_UPCALL_POLICY policy;
	DAT_UPCALL_OBJECT upcall;
};

struct kdapl_evd *kdapl_evd_alloc(struct kdapl_ia *ia, DAT_COUNT qlen,
				  DAT_EVD_FLAGS flags, int *err);
void kdapl_evd_add(struct kdapl_evd *evd, struct kdapl_event *ev,
		   struct kdapl_later *later);
void kdapl_evd_remove(struct kdapl_evd *evd, struct kdapl_event *ev);
void kdapl_evd_post(struct kdapl_evd *evd, struct kdapl_event *ev);
bool kdapl_evd_reap(struct kdapl_evd *evd, DAT_EVENT *event, bool *more,
		    struct kdapl_call *call);
void kdapl_async_post(struct kdapl_async *async);
void kdapl_async_withdraw(struct kdapl_async *async);
void kdapl_async_init(struct kdapl_async *async, struct kdapl_obj *obj,
		      DAT_EVENT_NUMBER number, DAT_COUNT reason);
void kdapl_later_run(struct kdapl_later *later);

static inline void kdapl_later_add(struct kdapl_later *later,
				   struct kdapl_async *async)
{
	later->async[later->n++] = async;
}

/* Does this policy call the consumer? */
static inline bool kdapl_policy_active(DAT_UPCALL_POLICY policy)
{
	return policy != DAT_UPCALL_DISABLE && policy != DAT_UPCALL_TEARDOWN;
}

int kdapl_upcall_setup(void);
void kdapl_upcall_cleanup(void);
void kdapl_upcall_init(struct kdapl_evd *evd);
void kdapl_upcall_schedule(struct kdapl_evd *evd);
void kdapl_upcall_stop(struct kdapl_evd *evd);
bool kdapl_upcall_is_mine(struct kdapl_evd *evd);

int kdapl_cq_poll(struct kdapl_evd *evd, struct kdapl_later *later);
bool kdapl_cq_arm(struct kdapl_evd *evd);
unsigned long kdapl_cq_look_lock(struct kdapl_evd *evd);
void kdapl_cq_look(struct kdapl_evd *evd);
void kdapl_cq_watch(struct kdapl_evd *evd, int delta);
struct kdapl_cq *kdapl_cq_claim(struct kdapl_evd *evd, int n,
				struct kdapl_srq *srq);
void kdapl_cq_unclaim(struct kdapl_cq *cq, int n, struct kdapl_srq *srq);
int kdapl_cq_grow(struct kdapl_evd *evd, struct kdapl_srq *srq, int n);
void kdapl_cq_destroy_all(struct kdapl_evd *evd);

/* ---- ring.c: the work queues of an Endpoint ------------------------------ */

/*
 * struct kdapl_wr - one posted request or receive buffer
 * @ev: its completion event
 * @ep: Endpoint it was posted to or (SRQ) that took it
 * @cookie: the consumer's
 * @seq: ring position, or position in the posting order of an SRQ
 * @len: bytes transferred
 * @rkey: context invalidated by the peer
 * @status: DAT_DTO_COMPLETION_STATUS
 * @op: DAT_DTOS
 * @suppress: no event on success
 * @taken: counted in kdapl_ep.held
 * @nsge: segments in @sge
 * @pz: PZ of the segments when @nsge is not zero
 * @link: SRQ: entry in the free, held or hardware list
 * @mem: LMR or RMR that the request is about; referenced until it has ended
 * @mem_handle: its handle, for the event
 * @sge: receive buffers only: what the device gets
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
	bool taken;
	u8 nsge;
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
 */
struct kdapl_ring {
	spinlock_t lock;
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
};

static inline struct kdapl_wr *kdapl_ring_wr(struct kdapl_ring *ring, u32 pos)
{
	return ring->mem + (size_t)(pos & ring->mask) * ring->stride;
}

/* Is there room for one more? Under ring->lock. */
static inline bool kdapl_ring_full(struct kdapl_ring *ring)
{
	return ring->head - smp_load_acquire(&ring->tail) >= ring->max;
}

int kdapl_ring_alloc(struct kdapl_ring *ring, u32 max, u32 niov);
void kdapl_ring_free(struct kdapl_ring *ring);
int kdapl_ring_prepare(struct kdapl_ring *ring, u32 max, u32 niov);
int kdapl_ring_commit(struct kdapl_ring *ring, struct kdapl_ring *fresh,
		      struct kdapl_evd *evd, struct kdapl_pz *pz,
		      struct kdapl_later *later);
void kdapl_ring_complete(struct kdapl_ring *ring, struct kdapl_wr *wr,
			 bool event);
void kdapl_ring_reaped(struct kdapl_ring *ring, struct kdapl_wr *wr);
void kdapl_ring_flush(struct kdapl_ep *ep, struct kdapl_ring *ring);

/* ---- ep.c, ep_modify.c, qp.c, dto.c -------------------------------------- */

/*
 * struct kdapl_ep - Endpoint
 *
 * The QP exists only from connect or accept until the connection has ended;
 * before that, receives wait in @rq. So every attribute can be changed in the
 * unconnected states without touching the device.
 */
struct kdapl_ep {
	struct kdapl_obj obj;
	struct mutex mutex;
	struct kdapl_pz *pz;
	struct kdapl_evd *recv_evd;
	struct kdapl_evd *req_evd;
	struct kdapl_evd *conn_evd;
	struct kdapl_srq *srq;
	DAT_EP_ATTR attr;
	DAT_COMM comm;

	spinlock_t lock;		/* protects state, conn, dying */
	DAT_EP_STATE state;
	struct kdapl_conn *conn;
	bool dying;			/* freed by the consumer */
	bool on_hold;			/* see kdapl_ep_hold() */
	bool provider_owned;		/* made for a PSP, not yet accepted */

	struct kdapl_ring sq;
	struct kdapl_ring rq;
	struct ib_qp *qp;		/* for posting: sq.qp, rq.qp */
	struct ib_qp *leaving_qp;	/* only compared; recv_evd->lock */
	struct list_head leaving_link;
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

	struct sockaddr_storage local_addr;
	struct sockaddr_storage remote_addr;
	DAT_CONN_QUAL remote_qual;
	DAT_CONNECT_FLAGS connect_flags;
};

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
bool kdapl_stream_attach(struct kdapl_evd *evd, DAT_COMPLETION_FLAGS flags);
void kdapl_stream_detach(struct kdapl_evd *evd, DAT_COMPLETION_FLAGS flags);
void *kdapl_dep_get(DAT_HANDLE handle, DAT_HANDLE_TYPE type,
		    struct kdapl_ia *ia);
void kdapl_dep_put(struct kdapl_obj *obj);
DAT_RETURN kdapl_ep_state_error(DAT_EP_STATE state);
void kdapl_ep_withdraw(struct kdapl_ep *ep);
bool kdapl_ep_hold(struct kdapl_ep *ep);
void kdapl_ep_release_hold(struct kdapl_ep *ep);
bool kdapl_ep_free(struct kdapl_ep *ep);
bool kdapl_ep_device_gone(struct kdapl_ep *ep);

int kdapl_qp_create(struct kdapl_ep *ep, struct rdma_cm_id *id);
int kdapl_qp_to_rts(struct kdapl_ep *ep, struct rdma_cm_id *id,
		    const struct rdma_conn_param *param);
void kdapl_qp_start(struct kdapl_ep *ep);
void kdapl_qp_undo(struct kdapl_ep *ep);
void kdapl_qp_error(struct kdapl_ep *ep);
void kdapl_qp_destroy(struct kdapl_ep *ep);
void kdapl_qp_post_recvs(struct kdapl_ep *ep);

DAT_RETURN kdapl_sge_build(struct kdapl_pz *pz, DAT_COUNT n,
			   const DAT_LMR_TRIPLET *iov, DAT_COUNT max,
			   DAT_MEM_PRIV_FLAGS priv, struct ib_sge *sge,
			   int *nsge, u64 *total);
DAT_RETURN kdapl_post_sq(struct kdapl_ep *ep, struct ib_send_wr *wr,
			 DAT_DTO_COOKIE cookie, DAT_DTOS op,
			 DAT_COMPLETION_FLAGS flags, struct kdapl_obj *mem);

/* ---- ledger.c: receive accounting and watermarks -------------------------- */

void kdapl_recv_done(struct kdapl_evd *evd, struct kdapl_ep *ep,
		     struct kdapl_wr *wr, struct kdapl_later *later);
void kdapl_recv_reaped(struct kdapl_wr *wr);
void kdapl_recv_withdraw(struct kdapl_wr *wr);
void kdapl_ep_set_marks(struct kdapl_ep *ep);
struct kdapl_evd *kdapl_ep_lock_recv(struct kdapl_ep *ep, unsigned long *flags);
void kdapl_ep_unlock_recv(struct kdapl_ep *ep, struct kdapl_evd *evd,
			  unsigned long flags);
bool kdapl_ep_update_watch(struct kdapl_ep *ep, bool want);
void kdapl_ep_open(struct kdapl_ep *ep);
void kdapl_ep_check_marks(struct kdapl_ep *ep, struct kdapl_later *later);

/* ---- conn.c: connections --------------------------------------------------- */

struct kdapl_conn_event {
	struct kdapl_event ev;
	struct kdapl_conn *conn;
	DAT_EVENT_NUMBER number;
	u8 pd_len;
	u8 pd[KDAPL_MAX_PRIVATE_DATA];
};

/*
 * struct kdapl_conn - one attempt to connect an Endpoint
 * @ref: the EP's, one per queued event, one per queued work
 * @end: the event that ends the connection, 0 while it lives; ep->lock
 * @down: takes the connection down; queued by whoever set @end
 */
struct kdapl_conn {
	struct kref ref;
	struct kdapl_ep *ep;
	struct rdma_cm_id *id;
	bool passive;
	bool given_up;			/* ended before it was established */
	DAT_EVENT_NUMBER end;
	struct mutex mutex;		/* setting up vs. taking down */
	struct work_struct down;
	struct delayed_work timer;
	struct completion gone;
	struct kdapl_conn_event established;
	struct kdapl_conn_event final;
	u8 pd_len;
	u8 pd[KDAPL_MAX_PRIVATE_DATA];
};

struct kdapl_conn *kdapl_conn_alloc(struct kdapl_ep *ep);
bool kdapl_ep_join(struct kdapl_ep *ep, struct kdapl_conn *conn, u32 from,
		   DAT_EP_STATE to);
DAT_RETURN kdapl_ep_complete(struct kdapl_ep *ep);
void kdapl_conn_put(struct kdapl_conn *conn);
int kdapl_conn_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);
bool kdapl_conn_end(struct kdapl_conn *conn, DAT_EVENT_NUMBER end);
bool kdapl_ep_down(struct kdapl_ep *ep, DAT_EVENT_NUMBER end);
void kdapl_conn_wait(struct kdapl_ep *ep);
void kdapl_conn_params(struct kdapl_ep *ep, struct rdma_conn_param *param,
		       const void *pd, u8 pd_len);

/* ---- sp.c, cr.c: service points and connection requests --------------------- */

/*
 * struct kdapl_sp - PSP, RSP or CSP
 * @ids: one listening id per address of the IA
 * @pending: requests whose event has not been reaped
 */
struct kdapl_sp {
	struct kdapl_obj obj;
	struct kdapl_evd *evd;
	DAT_CONN_QUAL qual;
	DAT_PSP_FLAGS flags;
	DAT_COMM comm;
	struct sockaddr_storage addr;
	struct kdapl_ep *ep;		/* RSP */
	struct mutex mutex;
	struct rdma_cm_id *ids[KDAPL_MAX_ADDRS];
	unsigned int nids;
	atomic_t pending;
};

/*
 * struct kdapl_cr - connection request
 * @id: the rdma_cm id, owned until accepted, rejected or given up
 * @sp: where it came in (referenced)
 * @ep: Endpoint made by the provider, or that of the RSP
 */
struct kdapl_cr {
	struct kdapl_obj obj;
	struct kdapl_event ev;
	struct mutex mutex;		/* protects id */
	struct rdma_cm_id *id;
	struct kdapl_sp *sp;
	struct kdapl_ep *ep;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	u8 responder_resources;
	u8 initiator_depth;
	u8 pd_len;
	u8 pd[KDAPL_MAX_PRIVATE_DATA];
	struct work_struct gone;
};

bool kdapl_sp_close(struct kdapl_sp *sp);
struct kdapl_sp *kdapl_sp_find(struct kdapl_ia *ia, DAT_CONN_QUAL qual);
struct kdapl_cr *kdapl_cr_create(struct kdapl_sp *sp, struct rdma_cm_id *id,
				 struct rdma_cm_event *event);
bool kdapl_cr_cancel(struct kdapl_cr *cr);

/* ---- srq.c, srq_hw.c ---------------------------------------------------------- */

/*
 * struct kdapl_srq - Shared Receive Queue
 *
 * Every buffer is in one place: @free, @held (posted, waiting for room in the
 * device), @hw (given to the device, in order), or at an EP.
 */
struct kdapl_srq {
	struct kdapl_obj obj;
	struct kdapl_pz *pz;
	struct mutex mutex;
	int max_iov;

	spinlock_t lock;		/* protects all below */
	struct ib_srq *srq;
	DAT_SRQ_STATE state;
	int max;			/* what the consumer asked for */
	int slots;			/* buffers there is memory for */
	int available;			/* posted - taken */
	int outstanding;		/* posted - reaped */
	int hw_max;			/* what the device is given at most */
	int hw_count;			/* what it has, as far as is known */
	u64 next_seq;			/* of the next buffer given to it */
	u64 max_taken;			/* newest buffer ever completed */
	u64 suspect_below;		/* dead QPs may hold older buffers */
	bool stale;			/* rebuild before the next QP */
	struct list_head free;
	struct list_head held;
	struct list_head hw;
	struct list_head eps;		/* EPs with a QP on it */
	int lw;
	bool lw_armed;
	struct list_head feeds;		/* RCU; struct kdapl_srq_feed */
	u64 taken;			/* ever */
	u64 recovered;			/* lost by the device, put back */
	struct kdapl_async lw_event;
	struct kdapl_async error_event;
	struct work_struct arm_work;
	struct work_struct hint_work;
};

/* An EVD that receives completions of an SRQ's buffers. */
struct kdapl_srq_feed {
	struct list_head link;
	struct kdapl_evd *evd;
	int eps;
	bool watched;
	struct rcu_head rcu;
};

void kdapl_srq_took(struct kdapl_srq *srq, struct kdapl_ep *ep,
		    struct kdapl_wr *wr, struct kdapl_later *later);
void kdapl_srq_return(struct kdapl_srq *srq, struct kdapl_wr *wr, bool reaped);
int kdapl_srq_add_feed(struct kdapl_srq *srq, struct kdapl_evd *evd);
void kdapl_srq_del_feed(struct kdapl_srq *srq, struct kdapl_evd *evd);
void kdapl_srq_watch(struct kdapl_srq *srq);
void kdapl_srq_look(struct kdapl_srq *srq);
bool kdapl_srq_check_lw(struct kdapl_srq *srq);

int kdapl_srq_hw_create(struct kdapl_srq *srq);
void kdapl_srq_hw_destroy(struct kdapl_srq *srq);
void kdapl_srq_hw_feed(struct kdapl_srq *srq);
void kdapl_srq_hw_grow(struct kdapl_srq *srq, int max);
void kdapl_srq_hw_arm(struct work_struct *work);
void kdapl_srq_hw_hint(struct work_struct *work);
void kdapl_srq_reconcile(struct kdapl_srq *srq);
int kdapl_srq_attach(struct kdapl_srq *srq, struct kdapl_ep *ep);
void kdapl_srq_detach(struct kdapl_srq *srq, struct kdapl_ep *ep);
void kdapl_srq_device_event(struct kdapl_ia *ia, struct ib_srq *srq);

/* ---- pz.c, lmr.c, rmr.c, svc.c: memory ------------------------------------------ */

/*
 * struct kdapl_pz - Protection Zone
 * @pd: NULL once the device is gone
 * @lkey: local_dma_lkey of @pd, readable when that is gone
 * @svc: private loopback connection for registration, made when first needed
 * @svc_mutex: serialises use of @svc
 */
struct kdapl_pz {
	struct kdapl_obj obj;
	struct ib_pd *pd;
	u32 lkey;
	struct mutex svc_mutex;
	struct kdapl_svc *svc;
};

void kdapl_pz_device_gone(struct kdapl_pz *pz);

/*
 * struct kdapl_lmr - Local Memory Region
 * @pz: its Protection Zone; NULL for the reserved LMR
 * @context: what the consumer puts into triplets
 * @base: first address the consumer may use
 * @len: bytes that may be addressed
 * @priv: privileges
 * @valid: usable for data transfer (an unbound or device-less LMR is not)
 * @lkey: local key for the device
 * @shift: added to a consumer's address gives the device's
 * @mr: registered region, or NULL when @lkey is the PD's local_dma_lkey
 * @rmr_context: rkey for peers, 0 if none
 * @va: the memory's own address; @base unless that is zero-based
 * @sgt: the memory; fixed size if @fmr
 * @lock: protects @mapped, and all that follows; inside evd->lock
 * @mapped: @sgt was mapped for the device by us
 * @bound: a request that registers it was posted
 * @closing: a request that invalidates it was posted
 * @posting: such a request is just being made
 * @stale: such a request failed, @recycle makes a new MR
 * @pending: such requests that have not completed
 * @ep_handle: where they were posted
 */
struct kdapl_lmr {
	struct kdapl_obj obj;
	struct kdapl_pz *pz;
	DAT_LMR_CONTEXT context;
	u64 base;
	u64 len;
	DAT_MEM_PRIV_FLAGS priv;
	bool valid;
	u32 lkey;
	u64 shift;
	struct ib_mr *mr;
	DAT_RMR_CONTEXT rmr_context;

	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region;
	DAT_VA_TYPE va_type;
	bool fmr;			/* from dat_lmr_allocate */
	bool reserved;
	int max_pages;
	DAT_LMR_SCOPE scope;
	u64 va;
	struct sg_table sgt;

	spinlock_t lock;
	bool mapped;
	bool bound;
	bool closing;
	bool posting;
	bool stale;
	u8 pending;
	u64 ep_handle;
	struct work_struct recycle;
};

void kdapl_lmr_device_gone(struct kdapl_lmr *lmr);

/* Find an LMR by the context in a triplet. RCU read-side section. */
static inline struct kdapl_lmr *kdapl_lmr_find(DAT_LMR_CONTEXT context)
{
	struct kdapl_obj *obj = xa_load(&kdapl_handles,
					context & KDAPL_INDEX_MASK);
	struct kdapl_lmr *lmr;

	if (unlikely(!obj || kdapl_type(obj) != DAT_HANDLE_TYPE_LMR))
		return NULL;
	lmr = container_of(obj, struct kdapl_lmr, obj);
	return lmr->context == context ? lmr : NULL;
}

/*
 * struct kdapl_window - an MR with which an RMR shows a part of an LMR
 * @mr: the MR; NULL while it is being replaced, or once the device is gone
 * @lmr: the LMR, used and referenced until the window is certainly closed
 * @pending: posted requests about it that have not completed
 * @discard: a request failed, or its key is not wanted: @mr is to be replaced
 */
struct kdapl_window {
	struct ib_mr *mr;
	struct kdapl_lmr *lmr;
	u8 pending;
	bool discard;
};

static inline bool kdapl_window_idle(const struct kdapl_window *win)
{
	return win->mr && !win->lmr && !win->pending && !win->discard;
}

/* Is its MR to be replaced, and can it be? */
static inline bool kdapl_window_is_waste(const struct kdapl_window *win)
{
	return !win->pending && (win->discard || !win->mr);
}

/* A posted request about a window. */
struct kdapl_window_req {
	struct kdapl_window *win;
	bool closes;
	bool silent;			/* the consumer sees only the other */
};

#define KDAPL_WINDOW_REQS 4		/* two per window */

/*
 * struct kdapl_rmr - Remote Memory Region
 * @lock: protects all that follows; inside evd->lock
 * @cur: the open window, NULL if not bound
 * @reqs: requests that have not completed, in posting order
 * @ep_handle: where they were posted
 * @error: how a silent request failed, for the event of the one after it
 */
struct kdapl_rmr {
	struct kdapl_obj obj;
	struct kdapl_pz *pz;
	struct sg_table sgt;
	int max_pages;
	struct work_struct recycle;

	spinlock_t lock;
	struct kdapl_window win[2];
	struct kdapl_window *cur;
	struct kdapl_window_req reqs[KDAPL_WINDOW_REQS];
	u8 nreqs;
	bool posting;
	u8 error;
	u64 ep_handle;
	DAT_LMR_TRIPLET triplet;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_RMR_CONTEXT context;
	DAT_RMR_SCOPE scope;
	DAT_VA_TYPE va_type;
};

void kdapl_rmr_device_gone(struct kdapl_rmr *rmr);
struct kdapl_rmr *kdapl_rmr_find(struct kdapl_ia *ia, DAT_RMR_CONTEXT context);

struct kdapl_lmr *kdapl_lmr_alloc(struct kdapl_ia *ia, struct kdapl_pz *pz);
void kdapl_lmr_free_reserved(struct kdapl_ia *ia);
bool kdapl_lmr_request_done(struct kdapl_lmr *lmr, u8 op, u8 status);
void kdapl_lmr_recycle(struct work_struct *work);
void kdapl_look_at_ep(u64 handle);
void kdapl_rmr_queue_recycle(struct kdapl_rmr *rmr);
bool kdapl_rmr_request_done(struct kdapl_rmr *rmr, u8 *status);

struct page *kdapl_region_page(DAT_MEM_TYPE type,
			       const DAT_REGION_DESCRIPTION *region,
			       unsigned long i);
bool kdapl_region_ok(DAT_MEM_TYPE type, const DAT_REGION_DESCRIPTION *region,
		     u64 len);
int kdapl_region_build(struct kdapl_lmr *lmr, struct kdapl_lmr *origin);
int kdapl_region_map(struct kdapl_lmr *lmr);
void kdapl_region_unmap(struct kdapl_lmr *lmr);
bool kdapl_region_contiguous(struct kdapl_lmr *lmr);
int kdapl_region_slice(struct kdapl_lmr *lmr, u64 offset, u64 len,
		       struct sg_table *to, int max);
int kdapl_mr_access(DAT_MEM_PRIV_FLAGS priv);
bool kdapl_can_register(struct ib_device *dev);
int kdapl_mr_map(struct ib_mr *mr, struct sg_table *sgt, u64 iova, u64 len);

/* A use of an object that was found under RCU, and a reference to it. */
static inline bool kdapl_obj_hold(struct kdapl_obj *obj)
{
	if (!kdapl_obj_use(obj))
		return false;
	if (kref_get_unless_zero(&obj->ref))
		return true;
	kdapl_obj_unuse(obj);
	return false;
}

static inline void kdapl_obj_drop(struct kdapl_obj *obj)
{
	kdapl_obj_unuse(obj);
	kdapl_obj_put(obj);
}

/*
 * A request about an LMR or RMR has ended, by completion or by a flush. Under the EVD's lock, and before the event is queued. Drops the
 * request's reference to the object; may change @wr->status.
 *
 * Return: false if the consumer must not get an event for it.
 */
static inline bool kdapl_mem_done(struct kdapl_wr *wr)
{
	if (kdapl_type(wr->mem) == DAT_HANDLE_TYPE_RMR)
		return kdapl_rmr_request_done(container_of(wr->mem,
							   struct kdapl_rmr,
							   obj), &wr->status);
	return kdapl_lmr_request_done(container_of(wr->mem, struct kdapl_lmr,
						   obj), wr->op, wr->status);
}

int kdapl_svc_register(struct kdapl_pz *pz, struct ib_mr *mr, int access);
int kdapl_svc_invalidate(struct kdapl_pz *pz, u32 rkey);
void kdapl_svc_destroy(struct kdapl_pz *pz);

#endif
