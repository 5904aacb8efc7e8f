/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events and Event Dispatchers: evd.c, event.c, upcall.c, cq.c.
 */
#ifndef KDAPL_EVD_H
#define KDAPL_EVD_H

#include "kdapl.h"

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
	bool dry;			/* the last poll emptied the CQ */
	bool rang;			/* a solicited completion arrived */
	DAT_EVD_FLAGS flags;
	DAT_UPCALL_POLICY policy;
	DAT_UPCALL_OBJECT upcall;
	struct module *owner;
	struct list_head cqs;
	int claimed;			/* over all CQs */
	struct list_head soft_free;
	struct list_head leaving;	/* EPs whose QP is being destroyed */
	u32 watchers;			/* who need arrivals seen: marks, feeding */
	u32 impatient;			/* of these, who cannot wait for a work item */
	u32 solicited;			/* EPs with DAT_COMPLETION_SOLICITED_WAIT */
	u32 unsignalled;		/* EP streams with UNSIGNALLED */
	u32 streams;			/* EP streams of any kind */
	struct mutex mutex;
	u32 turn;			/* CQ to poll first; under lock */
	u32 lent;			/* IAs that use it; their ia->lock */
	struct mutex stop_mutex;	/* irq_poll_disable() */
	struct irq_poll look;		/* for watchers, whoever is busy */
	bool softirq;			/* upcalls run in softirq */
	bool stopped;			/* freed: no more upcalls */
	struct task_struct *upcaller;	/* in an upcall now */
	struct irq_poll iop;
	struct work_struct work;
	unsigned long dispatch;		/* is it queued? */
	u32 soft_total;
	struct kdapl_async overflow;
	struct ib_wc wc[KDAPL_POLL_BATCH];	/* under lock */
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
	struct module *owner;
};

struct kdapl_evd *kdapl_evd_alloc(struct kdapl_ia *ia, DAT_COUNT qlen,
				  DAT_EVD_FLAGS flags, int *err);
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

/* Queue an event. Under evd->lock; the caller schedules upcalls. */
static inline void kdapl_evd_add(struct kdapl_evd *evd, struct kdapl_event *ev,
				 struct kdapl_later *later)
{
	lockdep_assert_held(&evd->lock);

	list_add_tail(&ev->link, &evd->events);
	ev->queued = true;
	evd->count++;
	if (!ev->quiet)
		evd->wake = true;
	if (unlikely(evd->count > evd->qlen) && !evd->overflowed) {
		evd->overflowed = true;
		kdapl_later_add(later, &evd->overflow);
	}
}

/* Take an event off the list. Under evd->lock. */
static inline void kdapl_evd_remove(struct kdapl_evd *evd,
				    struct kdapl_event *ev)
{
	lockdep_assert_held(&evd->lock);

	list_del(&ev->link);
	ev->queued = false;
	evd->count--;
	if (evd->count <= evd->qlen)
		evd->overflowed = false;
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

/* A task that waits for upcalls of an EVD, or of all of an IA, to end: upcall.c. */
struct kdapl_upcall_wait {
	struct list_head link;
	struct task_struct *task;
	struct kdapl_evd *evd;
	struct kdapl_ia *ia;
	bool leads_here;
};

bool kdapl_upcall_wait_begin(struct kdapl_upcall_wait *wait,
			     struct kdapl_evd *evd, struct kdapl_ia *ia);
void kdapl_upcall_wait_end(struct kdapl_upcall_wait *wait);

int kdapl_cq_look_softirq(struct irq_poll *iop, int budget);
void kdapl_cq_notice(struct kdapl_evd *evd);
int kdapl_cq_poll(struct kdapl_evd *evd, struct kdapl_later *later);
bool kdapl_cq_arm(struct kdapl_evd *evd);
unsigned long kdapl_cq_look_lock(struct kdapl_evd *evd)
	__acquires(&evd->lock);
void kdapl_cq_look(struct kdapl_evd *evd);

/* How closely somebody watches the completions of an EVD. */
enum kdapl_watch {
	KDAPL_WATCH_NONE,
	KDAPL_WATCH,			/* they are to be noticed */
	KDAPL_WATCH_SOFTIRQ,		/* no work item is soon enough */
};

void kdapl_cq_watch(struct kdapl_evd *evd, enum kdapl_watch was,
		    enum kdapl_watch now);
struct kdapl_cq *kdapl_cq_claim(struct kdapl_evd *evd, int n,
				struct kdapl_srq *srq);
void kdapl_cq_unclaim(struct kdapl_cq *cq, int n, struct kdapl_srq *srq);
int kdapl_cq_grow(struct kdapl_evd *evd, struct kdapl_srq *srq, int n);
void kdapl_cq_destroy_all(struct kdapl_evd *evd);

#endif
