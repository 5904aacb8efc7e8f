/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events and Event Dispatchers: evd.c, evd_use.c, evd_event.c, evd_upcall.c,
 * evd_wait.c, evd_cq.c, evd_charge.c.
 */
#ifndef KDAPL_EVD_H
#define KDAPL_EVD_H

#include <linux/list.h>
#include <linux/llist.h>
/* irq_poll.h does not include what it uses, so it comes behind list.h. */
#include <linux/irq_poll.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include "handle.h"
#include "hca.h"
#include "pz_lmr.h"

struct kdapl_ep;
struct kdapl_evd;
struct kdapl_later;
struct kdapl_srq;

enum kdapl_event_kind {
	KDAPL_EV_SQ,			/* struct kdapl_wr in an EP's send ring */
	KDAPL_EV_RQ,			/* struct kdapl_wr in an EP's receive ring */
	KDAPL_EV_SRQ,			/* struct kdapl_wr of an SRQ */
	KDAPL_EV_CONN,			/* struct kdapl_conn_event of a kdapl_conn */
	KDAPL_EV_CR,			/* struct kdapl_cr */
	KDAPL_EV_ASYNC,			/* struct kdapl_async */
	KDAPL_EV_SOFTWARE,		/* struct kdapl_soft_event */
	KDAPL_EV_KINDS,
};

/*
 * struct kdapl_event - entry of an EVD's list, embedded in the object that it reports
 * @link: in kdapl_evd.events or, for a receive, kdapl_ep.parked
 * @kind: enum kdapl_event_kind, tells which structure contains the event
 * @queued: on a list
 * @no_upcall: does not by itself cause an upcall
 * @nlmr: with @lmr part of a struct kdapl_wr, see kdapl_wr_name(); here because the first
 *	cache line has room
 * @lmr: see @nlmr
 */
struct kdapl_event {
	struct list_head link;
	u8 kind;
	bool queued;
	bool no_upcall;
	u8 nlmr;
	DAT_LMR_CONTEXT lmr;
};

/*
 * struct kdapl_event_ops - functions of one kind of events
 * @reap: Copy out an event that was removed from the list, and do the bookkeeping of its
 *	object. The EVD's lock is held. Completions have none: their code is inline in
 *	evd_event.c.
 * @withdraw: The event was removed from the list and will not be reaped, because its
 *	Endpoint was freed; the EVD's lock is held. Or, without the lock and for
 *	connection events only, because the Endpoint's connect EVD became NULL. Kinds with
 *	@ep need it.
 * @abandon: The EVD was freed, so the event, still on the list, will never be reaped. The
 *	EVD's lock is held. Optional.
 * @ep: Return the Endpoint that the event names. Optional.
 */
struct kdapl_event_ops {
	void (*reap)(struct kdapl_event *ev, DAT_EVENT *event);
	void (*withdraw)(struct kdapl_event *ev);
	void (*abandon)(struct kdapl_event *ev);
	struct kdapl_ep *(*ep)(struct kdapl_event *ev);
};

/*
 * struct kdapl_async - an event for the asynchronous EVD of an IA
 * @ev: the list entry
 * @again: how often to deliver the event once more
 * @obj: the object the event is about
 * @number: event number
 * @reason: object specific reason
 */
struct kdapl_async {
	struct kdapl_event ev;
	u32 again;
	struct kdapl_obj *obj;
	DAT_EVENT_NUMBER number;
	DAT_COUNT reason;
};

/*
 * struct kdapl_soft_event - an event of dat_evd_post_se()
 * @ev: the list entry, also in kdapl_evd.soft_free
 * @pointer: the consumer's pointer
 */
struct kdapl_soft_event {
	struct kdapl_event ev;
	DAT_PVOID pointer;
};

/* Turns @n polled completions into events. */
typedef int (*kdapl_complete_fn)(struct kdapl_evd *evd, struct ib_wc *wc,
				 int n, struct kdapl_later *later);

/*
 * struct kdapl_cq - one completion queue of an EVD
 * @cq: the verbs object
 * @evd: the EVD
 * @link: entry in evd->cqs
 * @complete: function that gets the polled completions
 * @entries: capacity of the CQ
 * @charged: room taken by the attached work queues: completions that they can produce
 * @failed: the device has reported an error: completions may be lost, and no new QP uses
 *	the CQ
 * @srqs: SRQs, charged once however many EPs share the CQ
 * @to_poll: entry in evd->to_poll; a CQ that is not there is armed
 * @notified: entry in evd->notified
 * @state: bit KDAPL_CQ_NOTIFIED: the CQ is on evd->notified
 */
struct kdapl_cq {
	struct ib_cq *cq;
	struct kdapl_evd *evd;
	struct list_head link;
	struct list_head to_poll;
	struct llist_node notified;
	unsigned long state;
	kdapl_complete_fn complete;
	int entries;
	int charged;
	bool failed;
	struct list_head srqs;
};

/* Bits of cq->state */
#define KDAPL_CQ_NOTIFIED	0

/* Hash buckets for QPs that are being destroyed */
#define KDAPL_LEAVING_BITS	4
#define KDAPL_LEAVING		BIT(KDAPL_LEAVING_BITS)

/*
 * struct kdapl_stall - polled completions that wait for a DMA sync
 * @complete: kdapl_cq.complete of their CQ; NULL if none waits
 * @next: index of the first one in evd->wc
 * @end: index behind the last one
 * @piece: number of the first one's piece of memory that is synced next
 * @busy: the sync of this piece has begun: @part and @at are valid
 * @part: the piece
 * @at: the part of it that is left
 * @room: objects that the current section may still sync
 * @polled: completions that were taken off the CQs, modulo 2^32
 *
 * Used only on devices that need syncs, see dto_sync.c. evd->lock protects all members.
 * While completions wait, no CQ of the EVD is polled.
 */
struct kdapl_stall {
	kdapl_complete_fn complete;
	int next;
	int end;
	u32 piece;
	bool busy;
	struct kdapl_part part;
	struct kdapl_cursor at;
	unsigned int room;
	u32 polled;
};

/*
 * struct kdapl_evd - Event Dispatcher
 * @obj: members common to all objects
 * @lock: protects all members up to @streams
 * @events: struct kdapl_event, oldest first
 * @count: number of @events
 * @qlen: threshold for @overflow; a longer list loses nothing
 * @wants_first: kdapl_evd_add() stores the next event in @first, not in @events; @count
 *	includes it
 * @first: event for kdapl_evd_poll(), which found @events empty
 * @overflowed: @overflow has been reported for this episode
 * @upcall_due: the dispatcher is to make upcalls
 * @cqs_empty: the last poll took all completions there were
 * @armed: notification requested, no solicited event seen since
 * @solicited_event: a CQ that was armed for solicited completions has notified, or a poll
 *	has found completions while @armed was not set
 * @flags: streams
 * @policy: see DAT_UPCALL_POLICY
 * @upcall: the consumer's function
 * @owner: its module
 * @cqs: struct kdapl_cq
 * @to_poll: those of @cqs that the dispatcher polls: CQs that have notified or are not
 *	armed; a single CQ is always here
 * @armed_how: flags with which the other CQs are armed
 * @ncqs: number of @cqs
 * @charged: sum of kdapl_cq.charged over @cqs
 * @expected: completion events that the work queues can have outstanding
 * @soft_free: software events that are not queued
 * @leaving: EPs on SRQs whose QP is being destroyed, hashed by address of the QP, see
 *	kdapl_qp_remove()
 * @nleaving: number of EPs in @leaving
 * @watchers: users that need arrivals noticed: marks, feeding, graceful disconnects
 * @softirq_watchers: subset of @watchers that needs polling in softirq
 * @solicited: EPs with DAT_COMPLETION_SOLICITED_WAIT
 * @unsignalled: EP streams with UNSIGNALLED
 * @streams: EP streams of any kind
 * @turn: position of the CQ to poll first; @lock
 * @vector: completion vector that the consumer has set, or KDAT_VECTOR_ANY; @mutex
 * @cq_vector: completion vector of the CQs if @vector is KDAT_VECTOR_ANY; @mutex
 * @mutex: protects changes of @cqs
 * @notified: struct kdapl_cq that have notified and go to @to_poll, if there are several
 *	@cqs
 * @async_users: IAs that use the EVD for asynchronous events; their ia->lock
 * @stop_mutex: serialises irq_poll_disable()
 * @softirq_poll: polls for @watchers while the dispatcher cannot
 * @softirq: upcalls run in softirq
 * @stopped: no more upcalls: the EVD was freed, or its IA is being closed
 * @upcaller: the task that makes upcalls now
 * @runs: times that the dispatcher in process context has made upcalls
 * @iop: dispatcher in softirq
 * @interrupt: schedules @iop from an interrupt of this CPU
 * @work: dispatcher in process context
 * @failed: work item: a CQ has failed; holds a reference while queued
 * @dispatch: bit 0: @work is queued
 * @idle: tasks that wait for @work to end its upcall
 * @soft_total: software events there is memory for; @mutex
 * @overflow: the event that announces an overflow
 * @wc: completions being polled; @lock
 * @stall: completions of @wc that wait; @lock
 *
 * The comments above are in the order of locks; the members are in the order of use, see
 * the table cachelines.
 *
 * Events are list entries embedded in the objects that they report, so queueing never
 * allocates and a full EVD loses nothing: the entries beyond @qlen wait.
 */
struct kdapl_evd {
	struct kdapl_obj obj;
	DAT_EVD_FLAGS flags;
	int vector;
	int cq_vector;
	u32 async_users;

	/* Two cache lines for polling, reaping and arming. */
	spinlock_t lock;		/* see above */
	u32 count;
	u32 qlen;
	u32 ncqs;
	bool overflowed;
	bool upcall_due;
	bool cqs_empty;
	bool armed;
	bool solicited_event;
	bool wants_first;
	bool softirq;
	bool stopped;
	struct list_head events;
	struct kdapl_event *first;
	u32 watchers;
	u32 solicited;
	u32 nleaving;
	DAT_UPCALL_POLICY policy;

	struct list_head cqs;
	struct list_head to_poll;
	DAT_UPCALL_OBJECT upcall;
	enum ib_cq_notify_flags armed_how;
	int expected;
	u32 turn;
	int charged;

	/* One cache line for scheduling and running the dispatcher. */
	struct task_struct *upcaller;
	struct irq_poll iop;
	struct module *owner;
	struct llist_head notified;

	struct list_head soft_free;
	struct hlist_head leaving[KDAPL_LEAVING];
	u32 softirq_watchers;
	u32 unsignalled;
	u32 streams;
	unsigned int runs;
	struct mutex mutex;		/* see above */
	struct mutex stop_mutex;	/* see above */
	struct irq_poll softirq_poll;
	struct irq_work interrupt;
	struct work_struct work;
	struct work_struct failed;
	unsigned long dispatch;
	wait_queue_head_t idle;
	u32 soft_total;
	struct kdapl_async overflow;
	struct ib_wc wc[KDAPL_POLL_BATCH];
	struct kdapl_stall stall;
};

/*
 * struct kdapl_later - work to do when an EVD's lock is dropped
 * @n: number of @async
 * @async: asynchronous events to be queued on the IA's EVD; one poll batch
 *	cannot cause more
 */
#define KDAPL_LATER_MAX (2 * KDAPL_POLL_BATCH + 2)
struct kdapl_later {
	unsigned int n;
	struct kdapl_async *async[KDAPL_LATER_MAX];
};

/*
 * struct kdapl_call - the upcall of an EVD as it was when the event was reaped
 * @policy: see DAT_UPCALL_POLICY
 * @upcall: the consumer's function
 * @owner: its module
 * @armed: the CQs were armed in this run of the dispatcher, see kdapl_evd_reap()
 * @missed: the EVD is watched, and its CQs had more completions when this event was reaped
 */
struct kdapl_call {
	DAT_UPCALL_POLICY policy;
	DAT_UPCALL_OBJECT upcall;
	struct module *owner;
	bool armed;
	bool missed;
};

/* evd.c */
struct kdapl_evd *kdapl_evd_alloc(struct kdapl_ia *ia, DAT_COUNT qlen,
				  DAT_EVD_FLAGS flags, int *err);

/* evd_use.c */
struct kdapl_evd *kdapl_evd_null(struct kdapl_ia *ia);
void kdapl_evd_use_async(struct kdapl_evd *evd, int delta);
extern struct mutex kdapl_streams_lock;
bool kdapl_evd_add_stream(struct kdapl_evd *evd, DAT_COMPLETION_FLAGS flags);
void kdapl_evd_readd_stream(struct kdapl_evd *evd, DAT_COMPLETION_FLAGS flags);
void kdapl_evd_del_stream(struct kdapl_evd *evd, DAT_COMPLETION_FLAGS flags);

/* evd_event.c */
void kdapl_event_register(enum kdapl_event_kind kind,
			  const struct kdapl_event_ops *ops);
struct kdapl_ep *kdapl_event_ep(struct kdapl_event *ev);
void kdapl_event_withdraw(struct kdapl_evd *evd, struct kdapl_event *ev);
void kdapl_event_drop(struct kdapl_event *ev);
void kdapl_event_abandon_all(struct kdapl_evd *evd);
void kdapl_evd_post(struct kdapl_evd *evd, struct kdapl_event *ev);
bool kdapl_evd_dequeue(struct kdapl_evd *evd, DAT_EVENT *event);
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

/* Queue an event; the caller schedules upcalls after unlocking. */
static inline void kdapl_evd_add(struct kdapl_evd *evd, struct kdapl_event *ev,
				 struct kdapl_later *later)
{
	lockdep_assert_held(&evd->lock);

	evd->count++;
	if (evd->wants_first) {
		evd->wants_first = false;
		/* wants_first takes only an event that causes an upcall by itself. */
		if (likely(!ev->no_upcall)) {
			evd->first = ev;
			return;
		}
	}
	list_add_tail(&ev->link, &evd->events);
	ev->queued = true;
	if (!ev->no_upcall)
		evd->upcall_due = true;
	if (unlikely(evd->count > evd->qlen) && !evd->overflowed) {
		evd->overflowed = true;
		kdapl_later_add(later, &evd->overflow);
	}
}

static inline void kdapl_evd_remove(struct kdapl_evd *evd,
				    struct kdapl_event *ev)
{
	lockdep_assert_held(&evd->lock);

	list_del(&ev->link);
	ev->queued = false;
	/*
	 * The last event that was to cause an upcall has left the list. Where solicited
	 * completions cause upcalls, only a poll can find out if one is due.
	 */
	if (!--evd->count && !evd->solicited)
		evd->upcall_due = false;
	if (evd->count <= evd->qlen)
		evd->overflowed = false;
}

/* Do polled completions wait for a DMA sync? */
static inline bool kdapl_cq_stalled(const struct kdapl_evd *evd)
{
	return static_branch_unlikely(&kdapl_dma_syncs) &&
	       READ_ONCE(evd->stall.complete);
}

/* Does this policy call the consumer? */
static inline bool kdapl_policy_active(DAT_UPCALL_POLICY policy)
{
	return policy != DAT_UPCALL_DISABLE && policy != DAT_UPCALL_TEARDOWN;
}

/*
 * Is an upcall due for events that are there already? The dispatcher may call this
 * without a lock: every caller that adds an event, or makes one due, schedules the
 * dispatcher afterwards.
 */
static inline bool kdapl_evd_is_due(const struct kdapl_evd *evd)
{
	return kdapl_cq_stalled(evd) ||
	       (kdapl_policy_active(READ_ONCE(evd->policy)) && !list_empty(&evd->events) &&
		(READ_ONCE(evd->upcall_due) || READ_ONCE(evd->solicited_event)));
}

/* evd_upcall.c */
int kdapl_upcall_setup(void);
void kdapl_upcall_cleanup(void);
void kdapl_upcall_init(struct kdapl_evd *evd);
void kdapl_upcall_queue(struct kdapl_evd *evd);
void kdapl_upcall_interrupt(struct kdapl_evd *evd);
void kdapl_upcall_end(struct kdapl_evd *evd);
void kdapl_upcall_stop(struct kdapl_evd *evd);
bool kdapl_upcall_forget(struct kdapl_evd *evd, const struct module *mod);

/*
 * Schedule the dispatcher, which may find nothing to do. Context: any.
 *
 * in_interrupt() includes sections without bottom halves, at whose end a softirq runs.
 */
static inline void kdapl_upcall_schedule(struct kdapl_evd *evd)
{
	if (unlikely(!evd->softirq))
		kdapl_upcall_queue(evd);
	else if (unlikely(!in_interrupt()))
		kdapl_upcall_interrupt(evd);
	else
		irq_poll_sched(&evd->iop);
}

/*
 * struct kdapl_upcall_wait - a task that waits for upcalls to end
 * @link: entry in the list of all such tasks
 * @task: the task
 * @evd: EVD whose upcalls it waits for, or NULL
 * @ia: IA whose EVDs' upcalls it waits for if @evd is NULL
 * @leads_here: by any number of steps @task waits for the task that checks
 */
struct kdapl_upcall_wait {
	struct list_head link;
	struct task_struct *task;
	struct kdapl_evd *evd;
	struct kdapl_ia *ia;
	bool leads_here;
};

/* evd_wait.c */
bool kdapl_upcall_wait_begin(struct kdapl_upcall_wait *wait,
			     struct kdapl_evd *evd, struct kdapl_ia *ia);
void kdapl_upcall_wait_end(struct kdapl_upcall_wait *wait);
DAT_RETURN kdapl_evd_get_to_wait(DAT_EVD_HANDLE handle,
				 struct kdapl_upcall_wait *wait,
				 struct kdapl_evd **evd);

/* How soon the completions of an EVD must be noticed. */
enum kdapl_watch {
	KDAPL_WATCH_NONE,
	KDAPL_WATCH,			/* noticed by the dispatcher */
	KDAPL_WATCH_SOFTIRQ,		/* no work item is soon enough */
};

/* evd_cq.c */
int kdapl_cq_poll_budget(struct kdapl_evd *evd, int budget);
int kdapl_cq_softirq_poll(struct irq_poll *iop, int budget);
void kdapl_cq_schedule_poll(struct kdapl_evd *evd);
int kdapl_cq_poll(struct kdapl_evd *evd, struct kdapl_later *later);
int kdapl_cq_poll_notified(struct kdapl_evd *evd, struct kdapl_later *later);
bool kdapl_cq_arm(struct kdapl_evd *evd);
bool kdapl_cq_arm_for_upcall(struct kdapl_evd *evd);
unsigned long kdapl_cq_poll_all_lock(struct kdapl_evd *evd)
	__acquires(&evd->lock);
void kdapl_cq_poll_all(struct kdapl_evd *evd);
void kdapl_ia_poll_all(struct kdapl_ia *ia);
void kdapl_cq_watch(struct kdapl_evd *evd, enum kdapl_watch was,
		    enum kdapl_watch now);
void kdapl_cq_comp(struct ib_cq *ibcq, void *context);
void kdapl_cq_error(struct ib_event *event, void *context);
void kdapl_cq_failed(struct work_struct *work);

/* evd_charge.c */
void kdapl_cq_expect(struct kdapl_evd *evd, int delta);
struct kdapl_cq *kdapl_cq_charge(struct kdapl_evd *evd, int n, int also,
				 const struct kdapl_evd *beside,
				 struct kdapl_srq *srq,
				 kdapl_complete_fn complete);
void kdapl_cq_uncharge(struct kdapl_cq *cq, int n, struct kdapl_srq *srq);
int kdapl_cq_grow(struct kdapl_evd *evd, struct kdapl_srq *srq, int n);
void kdapl_cq_destroy_all(struct kdapl_evd *evd);

#endif
