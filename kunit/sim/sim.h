/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_sim.ko: adapters that exist in memory only, for tests.
 *
 *	main.c		module, "rdma link add", network devices that go
 *	device.c	the device, its port, PDs and address handles
 *	switch.c	switches and counters: kdapl_sim.h and debugfs
 *	engine.c	decides when and where a QP is executed; parked QPs
 *	qp.c		QPs: create, modify, destroy, find
 *	post.c		post_send, post_recv, post_srq_recv
 *	send.c		executes send queues
 *	recv.c		takes receives; what happens to a QP that has ended
 *	srq.c		shared receive queues
 *	cq.c		completion queues
 *	mr.c		memory regions, copying
 *	mad.c		QP1
 *	iw.c		connections of iWARP
 *
 * Data path. Posting copies the work request into a ring and schedules the QP
 * with its engine, a tasklet; each device has as many engines as there are CPUs,
 * and a QP always has the same one. An engine executes some requests of each
 * scheduled QP in turn: it finds the peer by its number, takes a receive from it,
 * copies memory to memory and adds completions to both CQs. Messages are copied
 * in steps of SIM_STEP bytes. Nothing is done by the poster itself, except that a
 * poster that may be interrupted runs the softirq it has raised at once; so no
 * completion handler runs inside of a post that holds a lock with interrupts off.
 *
 * What cannot be executed is parked: a Send without a receive in the list of the
 * queue it needs, whose next post schedules the first QP there; and with a
 * deadline, if its retries are limited or its peer does not answer, in the list
 * of the device, whose one timer looks at them. The data path has no timer.
 *
 * Only the engine of a QP changes the head of its send queue, moves the peer's
 * receive that is under way (qp->rx) and flushes. Ending a QP is setting its state
 * and scheduling it.
 *
 * Lifetimes. ib_core frees QPs, CQs and SRQs when the destroy operation returns.
 * A QP has a reference count: 1 until it is destroyed, 1 while its engine runs it,
 * 1 for each peer's engine that delivers to it, those of iw_cm. destroy_qp makes it
 * impossible to find and to schedule, drops its own reference and waits for the
 * others; so no CQ or SRQ of its is in use by then, nor is memory. Regions are
 * freed after an RCU grace period; their @users are copying, and who invalidates
 * a region waits for them.
 *
 * Locks, from the outermost in; all are taken with interrupts off:
 *
 *	sim_iw_lock	connections of iWARP
 *	qp->lock	state, tail of the send queue, qp->rx
 *	rq->lock	ring of receives of a QP or SRQ
 *	sim_park_lock	lists of parked QPs
 *	engine->lock	list of scheduled QPs
 *	cq->lock	ring of completions
 *
 * Locks of two QPs are never held together. Completion and event handlers of the
 * consumer are called without any lock.
 */
#ifndef KDAPL_SIM_INTERNAL_H
#define KDAPL_SIM_INTERNAL_H

#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include "kdapl_sim.h"

#define SIM_STEP	SZ_64K		/* bytes of a message copied at a time */
#define SIM_BATCH	16		/* requests of a QP executed in a turn */
#define SIM_TURNS	64		/* turns of an engine without a pause */
#define SIM_MAX_SGE	16
#define SIM_MAX_WR	SZ_16K
#define SIM_MAX_CQE	SZ_1M
#define SIM_MAX_SRQ_WR	SZ_1M
#define SIM_MAX_PAGES	512		/* of a memory region; iWARP: twice that */
#define SIM_MAX_RD	16		/* RDMA Reads under way */
#define SIM_MAX_MSG	SZ_1G
#define SIM_PSN_MASK	0xffffffU
#define SIM_PRIV_MAX	512		/* private data of iWARP */

struct sim_dev;

/* ---- Engines ------------------------------------------------------------- */

struct sim_engine {
	struct sim_dev *dev;
	spinlock_t lock;		/* protects ready and the QPs' links in it */
	struct list_head ready;
	unsigned long busy;		/* bit 0: somebody executes */
	struct tasklet_struct tasklet;
	struct irq_work irq;		/* raises the softirq */
	struct work_struct work;
};

/* Calls of completion handlers that the engines leave to another context. */
struct sim_notifier {
	spinlock_t lock;		/* protects what follows */
	struct list_head cqs;
	wait_queue_head_t called;
	struct irq_work irq;
	struct work_struct work;
};

struct sim_dev {
	struct ib_device ib;
	struct list_head link;		/* in sim_devs */
	struct net_device *ndev;	/* a reference is held by ib_core */
	struct device *parent;		/* does DMA; NULL: addresses are virtual */
	bool iwarp;
	bool netdev_up;
	u8 mac[ETH_ALEN];
	u32 gsi;			/* ID of QP1, 0: none; sim_qps.xa_lock */
	u32 sw[KDAPL_SIM_SWITCHES];
	atomic_long_t count[KDAPL_SIM_COUNTERS];
	wait_queue_head_t switched;
	struct dentry *debugfs;
	unsigned int n_engines;
	struct sim_engine *engines;
	struct sim_notifier notifier;
	struct list_head timed;		/* parked with a deadline; sim_park_lock */
	struct delayed_work timer;	/* of those */
	struct list_head late;		/* owed LAST_WQE_REACHED; sim_park_lock */
	struct delayed_work late_timer;
};

/* On iWARP the sink of an RDMA Read is a region, and Reads of 2 MiB are usual. */
static inline u32 sim_max_pages(struct sim_dev *dev)
{
	return dev->iwarp ? 2 * SIM_MAX_PAGES : SIM_MAX_PAGES;
}

struct sim_pd {
	struct ib_pd ib;
};

struct sim_ah {
	struct ib_ah ib;
	union ib_gid sgid;
	union ib_gid dgid;
	u8 net_type;
};

/* ---- Memory -------------------------------------------------------------- */

/*
 * struct sim_mr - a memory region
 * @users: engines that are copying from or to it
 * @valid: key, access, iova and length say what may be accessed
 * @all: all memory, without pages
 * @pages: addresses that ib_map_mr_sg() has left
 */
struct sim_mr {
	struct ib_mr ib;
	struct ib_pd *pd;
	struct rcu_head rcu;
	u32 index;
	atomic_t users;
	bool valid;
	bool all;
	u32 key;
	int access;
	u64 iova;
	u64 length;
	u32 shift;			/* of the size of a page */
	u32 n_pages;
	u32 max_pages;
	u64 *pages;
};

/*
 * struct sim_side - a place in a list of segments
 * @pd: that the keys are of
 * @access: that is needed
 * @off: bytes of the first segment that have been dealt with
 */
struct sim_side {
	struct ib_pd *pd;
	int access;
	const struct ib_sge *sge;
	int n;
	u32 off;
};

enum sim_copied { SIM_COPIED, SIM_BAD_SOURCE, SIM_BAD_SINK };

/* ---- Queues -------------------------------------------------------------- */

struct sim_cq {
	struct ib_cq ib;
	struct sim_dev *dev;
	spinlock_t lock;		/* protects all of the following */
	struct ib_wc *ring;
	u32 size;
	u32 head;			/* next to be polled; free running */
	u32 tail;
	int armed;			/* enum ib_cq_notify_flags, or 0 */
	bool overflown;
	struct list_head notify;	/* in notifier.cqs; notifier.lock */
	unsigned int calling;		/* handlers under way; notifier.lock */
};

/* A receive: in a ring followed by its segments. */
struct sim_rwqe {
	u64 wr_id;
	int n_sge;
	struct ib_sge sge[];
};

/* Receives of a QP or of an SRQ. */
struct sim_rq {
	spinlock_t lock;		/* protects ring and limit */
	void *ring;
	u32 stride;
	u32 size;			/* a power of two */
	u32 max_sge;
	u32 head;			/* next to be taken; free running */
	u32 tail;
	u32 limit;
	struct list_head waiters;	/* parked QPs; sim_park_lock */
	u32 n_waiters;			/* likewise */
};

struct sim_srq {
	struct ib_srq ib;
	struct sim_dev *dev;
	struct sim_rq rq;
};

/* A request: in a ring followed by its segments. */
struct sim_swqe {
	u64 wr_id;
	enum ib_wr_opcode opcode;
	int flags;
	int n_sge;
	u32 len;			/* bytes in all */
	u32 rkey;			/* or that to be invalidated */
	bool drops_sink;		/* an RDMA Read invalidates @sink at its end */
	u32 sink;
	u64 remote;
	struct sim_mr *mr;		/* of REG_MR */
	u32 key;
	int access;
	union ib_gid sgid;		/* of MADs */
	union ib_gid dgid;
	u8 net_type;
	u32 qpn;
	struct ib_sge sge[];
};

/*
 * struct sim_rx - a receive that a message is being written into
 * @active: @wqe was taken and has not completed
 * @busy: the peer's engine is using it now, without the lock
 */
struct sim_rx {
	bool active;
	bool busy;
	struct sim_rwqe *wqe;
};

struct sim_pair;

struct sim_qp {
	struct ib_qp ib;
	struct sim_dev *dev;
	u32 id;				/* in sim_qps; ib.qp_num, but for QP1 */
	refcount_t ref;
	struct completion released;
	spinlock_t lock;		/* see above */
	enum ib_qp_state state;		/* written under lock */
	bool mute;			/* completes nothing any more */
	bool dead;			/* being destroyed; engine->lock */
	bool running;			/* likewise */
	bool lwqe_told;			/* engine only */
	bool closing;			/* iWARP: ends when the queue is empty */
	bool sig_all;
	struct ib_qp_cap cap;
	struct ib_qp_attr attr;		/* as last modified */

	void *sq;			/* ring */
	u32 sq_stride;
	u32 sq_size;			/* a power of two */
	u32 sq_head;			/* engine only; free running */
	u32 sq_tail;
	u32 done;			/* bytes of the request at the head */
	bool stalled;			/* counted in partial */
	bool unacked;			/* that at the head was received */
	bool hung;			/* that at the head never completes */

	struct sim_rq *rq;		/* own, or the SRQ's */
	struct sim_rq own_rq;
	struct sim_rx rx;

	struct list_head ready;		/* engine->lock */
	struct sim_engine *engine;

	/* Parked; sim_park_lock. */
	struct sim_rq *waits_for;
	struct list_head waiting;	/* in waits_for->waiters */
	struct list_head timed;		/* in dev->timed */
	bool parked;
	unsigned long deadline;		/* if on dev->timed */
	bool has_deadline;		/* the request at the head has one */
	struct list_head late;		/* in dev->late */
	unsigned long late_at;

	struct sim_pair *pair;		/* sim_iw_lock */
};

static inline struct sim_dev *to_sim_dev(struct ib_device *obj)
{
	return container_of(obj, struct sim_dev, ib);
}

static inline struct sim_ah *to_sim_ah(struct ib_ah *obj)
{
	return container_of(obj, struct sim_ah, ib);
}

static inline struct sim_mr *to_sim_mr(struct ib_mr *obj)
{
	return container_of(obj, struct sim_mr, ib);
}

static inline struct sim_cq *to_sim_cq(struct ib_cq *obj)
{
	return container_of(obj, struct sim_cq, ib);
}

static inline struct sim_srq *to_sim_srq(struct ib_srq *obj)
{
	return container_of(obj, struct sim_srq, ib);
}

static inline struct sim_qp *to_sim_qp(struct ib_qp *obj)
{
	return container_of(obj, struct sim_qp, ib);
}

/* ---- switch.c ------------------------------------------------------------ */

#define sim_switch(dev, name)	READ_ONCE((dev)->sw[KDAPL_SIM_##name])
#define sim_times(dev, name)	__sim_times(&(dev)->sw[KDAPL_SIM_##name])
#define sim_nth(dev, name)	__sim_nth(&(dev)->sw[KDAPL_SIM_##name])
#define sim_count(dev, name)	atomic_long_inc(&(dev)->count[KDAPL_SIM_N_##name])
#define sim_uncount(dev, name)	atomic_long_dec(&(dev)->count[KDAPL_SIM_N_##name])

bool __sim_times(u32 *sw);
bool __sim_nth(u32 *sw);
void sim_switch_init(void);
void sim_switch_exit(void);
void sim_switch_add(struct sim_dev *dev, const char *name);
void sim_switch_remove(struct sim_dev *dev);

/* ---- main.c, device.c ---------------------------------------------------- */

void sim_dev_init(struct sim_dev *dev);
void sim_dealloc(struct ib_device *ibdev);
struct sim_qp *sim_gsi_of(const union ib_gid *gid);
void sim_deliver(struct sim_dev *dev, struct ib_event *event,
		 void (*handler)(struct ib_event *event, void *context), void *context);
void sim_port_changed(struct sim_dev *dev);
bool sim_port_is_up(struct sim_dev *dev);

/* ---- engine.c ------------------------------------------------------------ */

/* Why a request cannot be executed now. */
enum sim_wait {
	SIM_WAIT_RNR,			/* no receive; as often as rnr_retry says */
	SIM_WAIT_PEER,			/* nobody answers */
	SIM_WAIT_SWITCH,		/* a switch holds it */
};

int sim_engines_init(struct sim_dev *dev);
void sim_engines_exit(struct sim_dev *dev);
void sim_schedule(struct sim_qp *qp);
void sim_schedule_all(struct sim_dev *dev);
void sim_unschedule(struct sim_qp *qp);
void sim_park(struct sim_qp *qp, struct sim_rq *rq, enum sim_wait why);
void sim_unpark(struct sim_qp *qp);
bool sim_is_overdue(struct sim_qp *qp);
void sim_wake_waiter(struct sim_rq *rq);
void sim_wake_waiters(struct sim_rq *rq);
void sim_event_late(struct sim_qp *qp);
void sim_event_cancel(struct sim_qp *qp);
void sim_notify(struct sim_cq *cq);
void sim_unnotify(struct sim_cq *cq);

/* ---- qp.c ---------------------------------------------------------------- */

extern struct xarray sim_qps;

int sim_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		  struct ib_udata *udata);
int sim_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata);
int sim_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);
int sim_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
struct sim_qp *sim_qp_get(u32 id);
void sim_qp_put(struct sim_qp *qp);
void sim_qp_to_err(struct sim_qp *qp);
void sim_qp_event(struct sim_qp *qp, enum ib_event_type type);
void sim_qp_set_state(struct sim_qp *qp, enum ib_qp_state state);

/* ---- post.c -------------------------------------------------------------- */

int sim_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad);
int sim_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad);
int sim_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad);
int sim_rq_init(struct sim_rq *rq, u32 size, u32 max_sge);

static inline struct sim_swqe *sim_swqe(struct sim_qp *qp, u32 i)
{
	return qp->sq + (size_t)(i & (qp->sq_size - 1)) * qp->sq_stride;
}

static inline struct sim_rwqe *sim_rwqe(struct sim_rq *rq, u32 i)
{
	return rq->ring + (size_t)(i & (rq->size - 1)) * rq->stride;
}

/* ---- send.c, recv.c, mad.c ------------------------------------------------ */

/* What became of a request. */
enum sim_result {
	SIM_DONE,			/* completed */
	SIM_MORE,			/* a step was done, there are more */
	SIM_PARKED,
	SIM_FAILED,			/* completed in error; the QP has ended */
};

bool sim_qp_run(struct sim_qp *qp);
enum sim_result sim_complete(struct sim_qp *qp, struct sim_swqe *wqe,
			     enum ib_wc_status status);
enum sim_result sim_send_mad(struct sim_qp *qp, struct sim_swqe *wqe);

void sim_count_packets(struct sim_qp *peer, u32 n);
u32 sim_packets(struct sim_qp *peer, u32 len);

enum sim_take { SIM_TAKEN, SIM_NO_PEER, SIM_NO_RECEIVE };

struct sim_side sim_rx_side(struct sim_qp *peer);

enum sim_take sim_rx_begin(struct sim_qp *qp, struct sim_qp *peer, bool take);
void sim_rx_end(struct sim_qp *peer);
void sim_rx_complete(struct sim_qp *peer, enum ib_wc_status status,
		     const struct sim_swqe *wqe);
bool sim_flush(struct sim_qp *qp);

/* ---- srq.c, cq.c --------------------------------------------------------- */

int sim_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		   struct ib_udata *udata);
int sim_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata);
int sim_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int sim_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
void sim_srq_event(struct sim_srq *srq, enum ib_event_type type);

int sim_cq_alloc(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr);
int sim_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int sim_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int sim_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc);
int sim_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void sim_cq_add(struct sim_cq *cq, const struct ib_wc *wc, bool solicited);
void sim_cq_drop(struct sim_cq *cq, struct sim_qp *qp);

/* ---- mr.c ---------------------------------------------------------------- */

struct ib_mr *sim_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *sim_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			   u32 max_num_sg);
int sim_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sgl, int nents,
		  unsigned int *offset);
int sim_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
bool sim_mr_register(struct sim_qp *qp, const struct sim_swqe *wqe);
bool sim_mr_invalidate(struct ib_pd *pd, u32 key);
bool sim_mr_invalidate_own(struct ib_pd *pd, u32 key);
bool sim_mem_check(struct ib_pd *pd, u32 key, u64 addr, u64 len, int access);
bool sim_sges_check(struct ib_pd *pd, const struct ib_sge *sge, int n,
		    int access);
enum sim_copied sim_copy(struct sim_side *to, struct sim_side *from, u32 len);
bool sim_copy_out(struct sim_side *from, void *buf, u32 len);
bool sim_copy_in(struct sim_side *to, const void *buf, u32 len);
void sim_skip(struct sim_side *side, u32 len);

#define SIM_DMA_LKEY	0x100		/* of device.local_dma_lkey; no MR has it */

/* ---- iw.c ---------------------------------------------------------------- */

extern const struct ib_device_ops sim_iw_ops;

int sim_iw_init(void);
void sim_iw_exit(void);
void sim_iw_close(struct sim_qp *qp);

#endif /* KDAPL_SIM_INTERNAL_H */
