// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * race_test.ko: watermarks, and EVDs that are too short.
 *
 * Each setting of a mark fires at most once; and once, if the count has
 * crossed the mark since.
 *
 * An event does not say of which setting it is. So the mark of most objects is set again only
 * when it has fired: whatever fires is of the last setting then, the generation that ->marks
 * counts. The mark of a "loose" object is set at any moment, beside others that set it. It may
 * fire as often as it was set, which is all that can be said.
 *
 * A hard mark is checked when an Endpoint with an SRQ is seen to hold more than it allows.
 */
#include <linux/jiffies.h>
#include "race.h"

/* How long nobody reaps E_MERGED, and how often that may be announced meanwhile, see below. */
#define STALL_MS	2
#define STALL_ANNOUNCED	4

/* How long the events of marks that have fired may take. */
#define MARK_MS		20000

/* Return the generation of the mark that may be set now, 0 if none may. */
static int begin_mark(struct race_world *w, struct race_obj *obj)
{
	unsigned long flags;
	int gen = 0;

	spin_lock_irqsave(&w->lock, flags);
	if (obj->loose || atomic_read(&obj->fired) == obj->marks) {
		gen = ++obj->marks;
		obj->mark_since = INT_MAX;
	}
	spin_unlock_irqrestore(&w->lock, flags);
	return gen;
}

static void end_mark(struct race_world *w, struct race_obj *obj, int gen, int mark, DAT_RETURN ret)
{
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	if (ret != DAT_SUCCESS) {
		obj->marks--;
	} else if (gen == obj->marks) {
		obj->mark = mark;
		obj->mark_since = atomic_inc_return(&w->freed);
	}
	spin_unlock_irqrestore(&w->lock, flags);
}

/* It will not be known which setting an event is of. */
static void loosen(struct race_world *w, struct race_obj *obj)
{
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	obj->loose = true;
	spin_unlock_irqrestore(&w->lock, flags);
}

/* The call @nth that sets the hard mark ends; of two at once either may have been last. */
static void end_hard(struct race_world *w, struct race_obj *ep, int nth, int hard)
{
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	if (!nth || !race_was_quiet(&ep->hards, nth))
		hard = DAT_WATERMARK_INFINITE;
	WRITE_ONCE(ep->hard, hard);
	spin_unlock_irqrestore(&w->lock, flags);
	race_end(&ep->hards);
}

/* Set both marks of an Endpoint, unless the soft one must not be set now. */
void race_set_watermark(struct race_caller *c, struct race_obj *ep, DAT_COUNT soft,
			DAT_COUNT hard)
{
	int gen = 0, nth;
	DAT_RETURN ret;

	if (!ep)
		return;
	if (soft >= 0) {
		gen = begin_mark(c->w, ep);
		if (!gen)
			return;
	} else {
		loosen(c->w, ep);
	}
	nth = race_begin(&ep->hards);
	ret = RACE(c, dat_ep_set_watermark, HANDLE, ep->handle, soft, hard);
	end_hard(c->w, ep, nth, ret == DAT_SUCCESS ? hard : DAT_WATERMARK_INFINITE);
	if (gen)
		end_mark(c->w, ep, gen, soft, ret);
}

void race_set_lw(struct race_caller *c, struct race_obj *srq, DAT_COUNT lw)
{
	DAT_RETURN ret;
	int gen = 0;

	if (!srq)
		return;
	if (lw) {
		gen = begin_mark(c->w, srq);
		if (!gen)
			return;
	} else {
		loosen(c->w, srq);
	}
	ret = RACE(c, dat_srq_set_lw, HANDLE, srq->handle, lw);
	if (gen)
		end_mark(c->w, srq, gen, lw, ret);
}

/*
 * What the mark of @obj is compared with was @n, at a moment after @clock. If that has crossed
 * the mark of the last setting, it has to fire.
 */
void race_counted(struct race_world *w, struct race_obj *obj, int n, int clock)
{
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	if (!obj->loose && obj->mark_since <= clock && obj->crossed != obj->marks &&
	    (obj->type == DAT_HANDLE_TYPE_SRQ ? n < obj->mark : n > obj->mark)) {
		obj->crossed = obj->marks;
		atomic_inc(&w->stat[N_CROSSED]);
	}
	spin_unlock_irqrestore(&w->lock, flags);
}

void race_saw_mark(struct race_world *w, struct race_obj *obj)
{
	atomic_inc(&w->stat[N_MARKS]);
	if (obj && atomic_inc_return(&obj->fired) > READ_ONCE(obj->marks))
		race_fail(w, "the mark of %s %d fires %d times, and was set %d times",
			  obj->type == DAT_HANDLE_TYPE_SRQ ? "SRQ" : "Endpoint", obj->slot,
			  atomic_read(&obj->fired), obj->marks);
}

/* Query what the mark of @obj is compared with. */
static void query(struct race_caller *c, struct race_obj *obj)
{
	int clock = atomic_read(&c->w->freed);
	DAT_SRQ_PARAM param = {};
	DAT_COUNT n = 0;

	if (obj->type == DAT_HANDLE_TYPE_SRQ) {
		if (RACE(c, dat_srq_query, HANDLE, obj->handle, DAT_SRQ_FIELD_ALL,
			 &param) == DAT_SUCCESS)
			race_counted(c->w, obj, param.available_dto_count, clock);
	} else if (obj->srq) {
		if (RACE(c, dat_ep_recv_query, HANDLE, obj->handle, &n, NULL) == DAT_SUCCESS)
			race_counted(c->w, obj, n, clock);
	}
}

/* Is @ep in a connection, the only one of which events are left, on which it has received? */
static bool is_open(struct race_obj *ep)
{
	return ep->ordered && READ_ONCE(ep->got) &&
	       atomic_read(&ep->starts) == atomic_read(&ep->ends) + 1;
}

/* If an Endpoint that has received holds more than its hard mark allows, that has fired. */
static void watch_hard(struct race_caller *c, struct race_obj *ep)
{
	DAT_BOOLEAN fired = DAT_FALSE;
	int hards, resets, hard;
	DAT_COUNT n = 0;

	if (!race_is_quiet(&ep->resets, &resets) || !race_is_quiet(&ep->hards, &hards))
		return;
	hard = READ_ONCE(ep->hard);
	if (hard < 0 || !is_open(ep) || race_state(c, ep) != DAT_EP_STATE_CONNECTED ||
	    RACE(c, dat_ep_recv_query, HANDLE, ep->handle, &n, NULL) != DAT_SUCCESS || n <= hard)
		return;
	atomic_inc(&c->w->stat[N_HARD]);
	if (race_state(c, ep) != DAT_EP_STATE_CONNECTED)
		return;
	RACE(c, kdat_ep_query_hard_hw, HANDLE, ep->handle, &fired);
	if (!fired && race_was_quiet(&ep->hards, hards) && race_was_quiet(&ep->resets, resets) &&
	    !atomic_read(&ep->freeing))
		race_fail(c->w, "Endpoint %d: holds %d, and hard mark %d has not fired", ep->slot,
			  n, hard);
}

/* Set marks and see whether they are crossed, beside whatever others do. */
void race_watch_marks(struct race_caller *c)
{
	struct race_obj *obj = race_slot(c->w, rnd(c, 4) ? S_EP + rnd(c, RACE_EPS) : S_SRQ);

	if (obj && obj->srq)
		watch_hard(c, obj);
	if (!obj || READ_ONCE(obj->loose))
		return;
	if (atomic_read(&obj->fired) != READ_ONCE(obj->marks))
		query(c, obj);
	else if (obj->type == DAT_HANDLE_TYPE_SRQ)
		race_set_lw(c, obj, 1 + rnd(c, RACE_SRQ_MIN - 1));
	else
		race_set_watermark(c, obj, rnd(c, 2) ? 0 : rnd(c, 4), DAT_WATERMARK_INFINITE);
}

static bool is_owed(struct race_obj *obj)
{
	return atomic_read(&obj->fired) < obj->marks && obj->crossed == obj->marks;
}

/* Wait for the event of a mark that was crossed. */
static void await_mark(struct race_caller *c, struct race_obj *obj, unsigned long deadline)
{
	while (is_owed(obj) && !time_after(jiffies, deadline)) {
		while (race_dequeue(c, E_ASYNC))
			;
		race_yield();
	}
	if (is_owed(obj))
		race_fail(c->w, "%s %d: mark %d was crossed and is lost, %d times set, %d fired",
			  obj->type == DAT_HANDLE_TYPE_SRQ ? "SRQ" : "Endpoint", obj->slot,
			  obj->mark, obj->marks, atomic_read(&obj->fired));
}

/* Nothing runs: what was crossed has fired. */
void race_check_marks(struct race_caller *c)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(MARK_MS);
	struct race_obj *obj;
	unsigned int i;

	hash_for_each(c->w->objs, i, obj, node) {
		if (atomic_read(&obj->freed) || obj->loose ||
		    atomic_read(&obj->fired) == obj->marks)
			continue;
		query(c, obj);
		await_mark(c, obj, deadline);
	}
}

/* ---- EVDs that are too short --------------------------------------------- */

void race_saw_overflow(struct race_world *w, const DAT_EVENT *event)
{
	atomic_inc(&w->stat[N_OVERFLOWS]);
	if (event->event_data.asynch_error_event_data.dat_handle == w->evd[E_MERGED])
		atomic_inc(&w->overflows);
}

static void end_stall(struct race_caller *c)
{
	struct race_world *w = c->w;
	int n;

	while (race_dequeue(c, E_ASYNC))
		;
	n = atomic_read(&w->overflows) - w->stall_overflows;
	w->stalled = false;
	if (n > STALL_ANNOUNCED && race_was_quiet(&w->rooms, w->stall_rooms))
		race_fail(w, "one overflow of an EVD is announced %d times (R6)", n);
}

static void begin_stall(struct race_caller *c)
{
	struct race_world *w = c->w;

	/* Refused if it has more events. */
	RACE(c, dat_evd_resize, STATE | NO_ROOM, w->evd[E_MERGED], 16);
	if (!race_is_quiet(&w->rooms, &w->stall_rooms))
		return;
	while (race_dequeue(c, E_ASYNC))
		;
	w->stall_overflows = atomic_read(&w->overflows);
	w->stall_end = jiffies + msecs_to_jiffies(STALL_MS) + 1;
	w->stalled = true;
}

/*
 * Is E_MERGED not to be reaped now? The reaper, who alone does that, leaves off now and then.
 * Unless another call takes events out, an overflow is announced once then. Others may have
 * announcements of before in their hands: two sides, and one that was on its way.
 */
bool race_is_stalled(struct race_caller *c)
{
	if (c->w->stalled && time_after(jiffies, c->w->stall_end))
		end_stall(c);
	else if (!c->w->stalled && !rnd(c, 256))
		begin_stall(c);
	return c->w->stalled;
}
