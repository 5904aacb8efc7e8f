/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of race_test.ko share.
 *
 *   race.c          pairs of calls, the threads that make them
 *   report.c        what is told of them
 *   model.c         exact counts: buffers, events
 *   returns.c       what a call may return
 *   marks.c         watermarks
 *   pages.c         memory that was given back
 *   messages.c      data of messages
 *   world.c         objects
 *   open.c          what stays
 *   life.c          connections that come and go; the state of rest after a pair
 *   calls.c         calls of data transfer, Endpoints and EVDs
 *   object_calls.c  calls of all other objects
 *   linux_calls.c   calls that DAT does not have, and those of the registry
 */
#ifndef KDAPL_KUNIT_RACE_H
#define KDAPL_KUNIT_RACE_H

#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/scatterlist.h>
#include <dat/kdat_portal.h>
#include <dat/kdat_linux.h>
#include "fixture.h"
#include "free.h"

#define RACE_BUFS	65536	/* posted at a time, those of freed Endpoints included */
#define RACE_PAGES	24	/* that are registered and given back */
#define RACE_MEM_LEN	SZ_64K	/* of memory that stays registered */
#define RACE_LEN	256	/* bytes of a message */
#define RACE_PLAIN_LEN	128	/* of one whose data is not compared */
#define RACE_PLACES	1024	/* for messages that are compared */
#define RACE_CRS	8
#define RACE_PORTS	11	/* that a world listens at */
#define RACE_HELD	4	/* buffers of the pool that are not put back at once */
#define RACE_ADAPTERS	4	/* references to the one of the server */
#define RACE_POOL_MOST	128	/* its buffers */
#define RACE_EVD_LEN	256	/* of those that stay, when a group begins */
#define RACE_ASYNC_LEN	64	/* of the one of asynchronous errors, then */
#define RACE_MAX_CALLS	128
#define RACE_REST_MS	20000	/* how long something may take that ends by itself */
#define RACE_TOLD	6	/* failures of a pair that are told */
#define RACE_SRQ_MIN	24	/* shortest SRQ */
#define RACE_SRQ_MAX	96

/* ---- Objects ------------------------------------------------------------- */

/* Slots of the objects that all threads share. */
enum race_slot {
	S_EP,				/* RACE_EPS Endpoints, see race_kinds[] */
	RACE_EPS = 10,
	S_RESERVED = RACE_EPS - 2,	/* the Endpoint for RSPs */
	S_POOLED,			/* the Endpoint on the pool */
	S_SRQ = RACE_EPS,		/* stays */
	S_SRQ2,
	S_LMR,
	S_LMR2,
	S_FMR,
	S_RMR,
	S_SPARE,
	S_EVD,
	S_PZ,
	S_PSP,
	S_RSP,
	S_CSP,
	S_IA,
	S_SG,
	S_NOTIFIER,
	S_PORTAL,
	RACE_SLOTS
};

/* Types of what is no object of DAT, beside DAT_HANDLE_TYPE. */
#define RACE_TYPE_SG		100
#define RACE_TYPE_NOTIFIER	101
#define RACE_TYPE_PORTAL	102

struct race_world;

enum race_evd {
	E_MERGED,			/* only the reaper dequeues */
	E_DTO,				/* upcalls in softirq */
	E_DTO2,
	E_CONN,				/* and software events; upcalls in a work item */
	E_CR,
	E_ASYNC,
	RACE_EVDS
};

/* struct race_tally - calls: @now, or from then on */
struct race_tally {
	atomic_t now;
	atomic_t begun;
};

/*
 * struct race_obj - an object, from its creation until the next state of rest
 * @type: DAT_HANDLE_TYPE, or one of ours
 * @freed: 0, or the place of the call that freed it, or answered it, among all such calls
 * @freeing: calls that free it and have not failed
 * @denied: a call has not found its handle
 * @within: of an IA: its objects, whose events nobody reaps; NULL if it has none
 * @w: the world, for functions that are called for it
 * @page: memory that belongs to it, NULL if none
 * @sg: the same, of a mapping
 * @addr: where requests find it
 * @recvs: buffers posted to it and not reaped
 * @reqs: the same of requests
 * @loose: its mark may be set at any moment, see marks.c
 * @mark: the one set last
 * @marks: marks set, the generation of the last one
 * @fired: of these, how many have fired
 * @crossed: generation that has been crossed, as far as is known
 * @mark_since: when the last one was set, as a place among calls that free and set marks
 * @hards: calls that set the hard mark
 * @hard: the hard mark, below 0 if there is none, or it is not known
 * @resets: calls that reset an Endpoint
 * @ordered: an Endpoint whose events come from E_MERGED in order
 * @up: such an Endpoint is established, as far as its events have been reaped
 * @got: it has received since
 * @early: successes that have come while it was not
 * @starts: connections begun, as an upper bound while a call runs; of a portal: the adapters
 *	that it listens on
 * @ests: of these, established
 * @ends: of these, ended
 */
struct race_obj {
	struct hlist_node node;
	DAT_HANDLE handle;
	int type;
	enum race_slot slot;
	atomic_t freed;
	atomic_t freeing;
	bool denied;
	struct race_within *within;
	struct race_world *w;
	u8 *page;
	struct scatterlist sg;
	DAT_VADDR addr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_CONN_QUAL port;
	struct race_obj *srq;
	atomic_t recvs;
	atomic_t reqs;
	bool loose;
	int mark;
	int marks;
	atomic_t fired;
	int crossed;
	int mark_since;
	struct race_tally hards;
	int hard;
	struct race_tally resets;
	bool ordered;
	bool up;
	bool got;
	unsigned int early;
	atomic_t starts;
	atomic_t ests;
	atomic_t ends;
};

/* What is closed with an IA. */
struct race_within {
	struct race_obj ep;
	DAT_EVD_HANDLE evd;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
};

/* A piece of memory that no object has is filled with a pattern. */
struct race_page {
	u8 *va;
	u32 pattern;			/* 0: in use */
};

/* ---- Model --------------------------------------------------------------- */

enum race_kind {
	K_NONE, K_RECV, K_SRQ, K_SEND, K_READ, K_WRITE,
	K_LATE_READ, K_LATE_WRITE,	/* of memory that was freed before the post */
	K_FMR, K_INVALIDATE,
	K_BIND, K_SOFTWARE,		/* no DTOs */
};

/*
 * struct race_buf - a buffer or request; its cookie has @gen and its index
 * @received: of its messages, the youngest one that has come
 * @came: a bit for each of 64, from that one back, which has come
 * @place: where its data is, 0 if that has no place of its own
 */
struct race_buf {
	u32 gen;
	u32 received;
	u64 came;
	u16 place;
	u16 next;			/* free one */
	u8 kind;
	struct race_obj *obj;
};

/* What has happened; see stat_names[]. */
enum race_stat {
	N_BEGUN, N_ESTABLISHED, N_DISCONNECTED, N_BROKEN, N_REFUSED, N_RESETS, N_FREED,
	N_MESSAGES, N_FLUSHED, N_MARKS, N_CROSSED, N_HARD, N_UPCALLS, N_GIVEN_BACK,
	N_CHANGES, N_REQUESTS, N_COMPARED, N_OVERFLOWS, RACE_STATS
};

struct race_world {
	const char *name;
	DAT_IA_HANDLE ia;
	DAT_UINT64 id;			/* of the IA */
	struct sockaddr_storage addr;
	bool forgets;			/* the device forgets buffers, see R4 */
	bool iwarp;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd[RACE_EVDS];
	DAT_PSP_HANDLE psp;
	u16 port;
	u8 *mem;			/* stays registered */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_RMR_HANDLE rmr;		/* stays; NULL if the device has none */
	DAT_RMR_CONTEXT bound;		/* its context, as far as is known */
	u8 *fmr_page;
	struct race_obj software;	/* that software events are posted to */
	struct race_obj *slot[RACE_SLOTS];
	DAT_CR_HANDLE cr[RACE_CRS];
	atomic_t crs;
	atomic_t freed;			/* successful calls that free or set a mark */
	atomic_t waits;			/* for upcalls, that have returned */
	int waited[RACE_EVDS];		/* @freed when the last wait for its upcalls began */
	KDAT_POOL_HANDLE pool;
	DAT_SRQ_HANDLE pool_srq;
	int pool_wanted;
	atomic_t reserved;		/* buffers of the pool */
	atomic_t pooled;		/* messages that were in them */
	struct kdat_pool_buf *held[RACE_HELD];
	KDAT_SERVER_HANDLE server;
	struct kdat_adapter *adapter[RACE_ADAPTERS];	/* referenced, or NULL */
	atomic_t adapters;		/* that are open */
	bool may_leave;			/* the device */
	bool is_gone;			/* the device leaves, or has */
	bool keeps;			/* requests are left for when it leaves */
	bool leaves;			/* it has begun to */
	atomic_t catastrophes;		/* events that say so */

	struct race_tally rooms;	/* calls that E_MERGED may have fewer events for */
	bool stalled;			/* E_MERGED is not reaped, see race_is_stalled() */
	unsigned long stall_end;	/* jiffies */
	int stall_rooms;		/* calls of @rooms before */
	int stall_overflows;		/* announced before */
	atomic_t overflows;		/* of E_MERGED, announced */

	spinlock_t lock;		/* objs, page, places, buf, marks, waited */
	DECLARE_HASHTABLE(objs, 8);
	struct race_page page[RACE_PAGES];
	unsigned int next_page;
	u8 *places;
	u16 place_ring[RACE_PLACES];	/* that nobody has */
	unsigned int first_place;	/* index of the first one */
	unsigned int free_places;
	struct race_buf *buf;
	u16 free_buf;

	spinlock_t fail_lock;		/* failures, told */
	unsigned int failures;
	char told[RACE_TOLD][160];
	unsigned long lived;		/* jiffies of the last step of race_live() */
	const char *longest;		/* the call that took longest */
	unsigned long took;		/* jiffies that it did */
	atomic_t stat[RACE_STATS];
};

/* ---- Callers ------------------------------------------------------------- */

struct race_caller;

/* A call of @t begins. Return its number, 0 if it is not the only one. */
static inline int race_begin(struct race_tally *t)
{
	bool alone = atomic_inc_return(&t->now) == 1;
	int nth = atomic_inc_return(&t->begun);

	return alone ? nth : 0;
}

static inline void race_end(struct race_tally *t)
{
	/* Pairs with race_is_quiet(): what the call has done is seen. */
	smp_mb__before_atomic();
	atomic_dec(&t->now);
}

/* Is there no such call now? Store how many have begun. */
static inline bool race_is_quiet(struct race_tally *t, int *begun)
{
	*begun = atomic_read(&t->begun);
	/* Pairs with race_begin(): a call that is counted is seen until it ends. */
	smp_rmb();
	if (atomic_read(&t->now))
		return false;
	/* Pairs with race_end(). */
	smp_rmb();
	return true;
}

/* Has none begun since? */
static inline bool race_was_quiet(struct race_tally *t, int begun)
{
	/* Pairs with race_begin(): what was seen before is older than such a call. */
	smp_rmb();
	return atomic_read(&t->begun) == begun;
}

/*
 * struct race_call - what a side calls
 * @fn: makes the call; or NULL, then
 * @on: makes it, with the object in @slot
 */
struct race_call {
	const char *name;
	void (*fn)(struct race_caller *c);
	void (*on)(struct race_caller *c, enum race_slot slot);
	enum race_slot slot;
};

#define RACE_CALL(name, fn)		{ #name, fn }
#define RACE_CALL_ON(name, on, slot)	{ #name, NULL, on, slot }

/*
 * struct race_caller - a thread
 * @call: of a side: what it calls; NULL for the others
 * @other: the other side
 * @in: it is in @call
 * @calls: how often it has made @call
 * @good: how often of these with success
 * @met: how often while the other side was in its own
 * @where: the DAT call that it is in
 * @since: jiffies when that began
 * @late: the device had left then
 * @beside: since this was cleared, it has been in @call while the device left
 * @freed: of the world when the DAT call began
 */
struct race_caller {
	struct race_world *w;
	const struct race_call *call;
	struct race_caller *other;
	bool in;
	bool meets;
	unsigned int calls;
	unsigned int good;
	unsigned int met;
	const char *where;
	unsigned long since;
	bool late;
	bool beside;
	int freed;
	struct rnd_state rnd;
	bool *stop;
	void (*step)(struct race_caller *c);
	struct task_struct *task;
	struct completion done;
};

/* Is @name what this side calls? */
static inline bool race_calls(const struct race_caller *c, const char *name)
{
	return c->call && !strcmp(c->call->name, name);
}

static inline u32 rnd(struct race_caller *c, u32 n)
{
	return prandom_u32_state(&c->rnd) % n;
}

static inline DAT_IA_ADDRESS_PTR race_address(void *address)
{
	return address;
}

/* Types of errors that a call may return. */
#define MAY(type)	BIT((type) >> 16)
#define HANDLE		MAY(DAT_INVALID_HANDLE)
#define STATE		MAY(DAT_INVALID_STATE)
#define PARAM		MAY(DAT_INVALID_PARAMETER)
#define NO_ROOM		MAY(DAT_INSUFFICIENT_RESOURCES)
#define PRIVILEGE	(MAY(DAT_PRIVILEGES_VIOLATION) | MAY(DAT_PROTECTION_VIOLATION))
#define MODEL		MAY(DAT_MODEL_NOT_SUPPORTED)
#define EMPTY		MAY(DAT_QUEUE_EMPTY)
#define FULL		MAY(DAT_QUEUE_FULL)
#define IN_USE		(MAY(DAT_CONN_QUAL_IN_USE) | MAY(DAT_PORT_IN_USE))

/* What any call may return when the device leaves. */
#define GONE		(NO_ROOM | STATE | MAY(DAT_INVALID_ADDRESS) | \
			 MAY(DAT_CONN_QUAL_UNAVAILABLE) | MAY(DAT_PROVIDER_NOT_FOUND))

/*
 * RACE() - make a DAT call, and see that it returns DAT_SUCCESS or one of some errors
 * @c: who calls
 * @fn: the function
 * @may: types of errors that it may return, or-ed
 * @first: its first argument, which is a handle mostly
 * @...: the others
 */
#define RACE(c, fn, may, first, ...) ({					\
	struct race_caller *__caller = (c);				\
	typeof(first) __first = (first);				\
	DAT_RETURN __ret;						\
									\
	race_enter(__caller, #fn);					\
	__ret = fn(__first, ##__VA_ARGS__);				\
	race_leave(__caller, __ret, may, (DAT_HANDLE)(uintptr_t)__first);\
	__ret;								\
})

/* returns.c */
void race_enter(struct race_caller *c, const char *name);
void race_leave(struct race_caller *c, DAT_RETURN ret, u32 may, DAT_HANDLE first);

/* model.c */
void race_yield(void);
__printf(2, 3) void race_fail(struct race_world *w, const char *fmt, ...);
void race_init_bufs(struct race_world *w);
u64 race_post(struct race_world *w, enum race_kind kind, struct race_obj *obj);
void race_names_memory(struct race_world *w, u64 cookie, struct race_obj *lmr);
void race_posted(struct race_world *w, u64 cookie, DAT_RETURN ret);
unsigned int race_recycle(struct race_world *w);
void race_answered(struct race_world *w, DAT_CR_HANDLE cr, DAT_RETURN ret);
void race_saw(struct race_world *w, const DAT_EVENT *event, int freed);
bool race_dequeue(struct race_caller *c, enum race_evd evd);
void race_wait_upcalls(struct race_caller *c, DAT_EVD_HANDLE evd);
void race_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

/* marks.c */
void race_set_watermark(struct race_caller *c, struct race_obj *ep, DAT_COUNT soft,
			DAT_COUNT hard);
void race_set_lw(struct race_caller *c, struct race_obj *srq, DAT_COUNT lw);
void race_counted(struct race_world *w, struct race_obj *obj, int n, int clock);
void race_saw_mark(struct race_world *w, struct race_obj *obj);
void race_watch_marks(struct race_caller *c);
void race_check_marks(struct race_caller *c);
bool race_is_stalled(struct race_caller *c);
void race_saw_overflow(struct race_world *w, const DAT_EVENT *event);

/* pages.c */
u8 *race_take_page(struct race_world *w);
void race_give_back(struct race_world *w, u8 *va);
void race_check_pages(struct race_world *w);

/* messages.c */
void race_free_place(struct race_world *w, u16 place);
void race_place(struct race_world *w, u64 cookie, DAT_LMR_TRIPLET *seg);
void race_check_message(struct race_world *w, const void *va, u64 len);
void race_received(struct race_world *w, u64 cookie, u64 len);

/* open.c */
struct race_world *race_open(const char *name, DAT_RETURN *why);
DAT_RETURN race_close(struct race_world *w);

/* world.c */
struct race_obj *race_find(struct race_world *w, DAT_HANDLE handle);
int race_type_that_stays(struct race_world *w, DAT_HANDLE handle);
bool race_know(struct race_world *w, DAT_HANDLE handle, DAT_HANDLE_TYPE type);
struct race_obj *race_make(struct race_caller *c, enum race_slot slot);
bool race_free(struct race_caller *c, struct race_obj *obj);
void race_replace(struct race_caller *c, enum race_slot slot);
void race_free_slot(struct race_caller *c, enum race_slot slot);
void race_free_mappings(struct race_caller *c);
void race_forget(struct race_caller *c);
void race_fill(struct race_caller *c);

static inline struct race_obj *race_slot(struct race_world *w, enum race_slot slot)
{
	return READ_ONCE(w->slot[slot]);
}

static inline DAT_HANDLE race_handle(const struct race_obj *obj)
{
	return obj ? obj->handle : NULL;
}

/* The objects of S_IA, now and then, or NULL. */
static inline struct race_within *race_within(struct race_caller *c)
{
	struct race_obj *ia = rnd(c, 8) ? NULL : race_slot(c->w, S_IA);

	return ia ? ia->within : NULL;
}

/* life.c */
void race_reap(struct race_caller *c);
void race_live(struct race_caller *c);
void race_settle(struct race_caller *c);
void race_prepare(struct race_caller *c);

/* calls.c: the calls, which life.c makes as well */
void race_post_recv(struct race_caller *c, struct race_obj *ep);
void race_post_send(struct race_caller *c, struct race_obj *ep);
void race_srq_post_recv(struct race_caller *c, struct race_obj *srq);
void race_connect(struct race_caller *c, struct race_obj *ep, u16 port);
bool race_reset(struct race_caller *c, struct race_obj *ep);
struct race_obj *race_pick_in(struct race_caller *c, DAT_EP_STATE state);
DAT_EP_STATE race_state(struct race_caller *c, struct race_obj *ep);
DAT_LMR_TRIPLET race_seg(struct race_caller *c);

/* object_calls.c */
void race_accept(struct race_caller *c, struct race_obj *ep);
void race_bind(struct race_caller *c, struct race_obj *ep);
void race_reject(struct race_caller *c);

/* linux_calls.c */
DAT_RETURN race_make_sg(struct race_caller *c, struct race_obj *obj);
DAT_RETURN race_make_notifier(struct race_caller *c, struct race_obj *obj);
DAT_RETURN race_make_pool(struct race_world *w);
void race_reset_pool(struct race_caller *c);
void race_saw_pooled(struct race_world *w, KDAT_POOL_BUF *buf);
void race_check_pool(struct race_caller *c);
DAT_RETURN race_make_server(struct race_world *w);
void race_put_adapters(struct race_world *w);
void race_end_linux(struct race_world *w);
void race_change(struct race_caller *c);
DAT_RETURN race_make_portal(struct race_caller *c, struct race_obj *obj);
void race_free_portal(struct race_caller *c, struct race_obj *obj);

extern const struct race_call race_ep_calls[];
extern const unsigned int race_nep_calls;
extern const struct race_call race_object_calls[];
extern const unsigned int race_nobject_calls;
extern const struct race_call race_linux_calls[];
extern const unsigned int race_nlinux_calls;

#endif /* KDAPL_KUNIT_RACE_H */
