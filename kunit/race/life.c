// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * race_test.ko: what goes on beside the two calls of a pair.
 *
 * race_reap() dequeues events, race_live() makes connections, uses and ends them, in
 * steps that wait for nothing: what it does to an Endpoint depends on the state that it
 * finds. race_settle() comes when nothing runs any more. It ends all connections, reaps
 * what is left, and then everything can be counted.
 */
#include <linux/jiffies.h>
#include "race.h"

/* How long it may take until everything has ended. */
#define SETTLE_MS	20000

/* How long requests for connections may wait for race_live(). */
#define LIVE_MS		50

/*
 * Dequeue what there is. If the thread that answers requests waits for the end of a connection,
 * which siw may delay for ten seconds until there is an answer, this one rejects.
 */
void race_reap(struct race_caller *c)
{
	enum race_evd evd = race_is_stalled(c) ? E_MERGED + 1 : E_MERGED;
	int n;

	for (; evd < RACE_EVDS; evd++)
		for (n = 0; n < 16 && race_dequeue(c, evd); n++)
			;
	if (time_after(jiffies, READ_ONCE(c->w->lived) + msecs_to_jiffies(LIVE_MS)))
		race_reject(c);
}

/* ---- Connections that come and go ---------------------------------------- */

static bool is_active(const struct race_obj *ep)
{
	return (ep->slot - S_EP) % 2 == 0 && ep->slot != S_RESERVED;
}

static void post_some(struct race_caller *c, struct race_obj *ep)
{
	int i;

	for (i = 0; i < 4; i++) {
		if (!ep->srq)
			race_post_recv(c, ep);
		else if (atomic_read(&ep->srq->recvs) < RACE_SRQ_MIN)
			race_srq_post_recv(c, ep->srq);
	}
}

/* Have a connection that is up end, in one of the ways there are. */
static void end_one(struct race_caller *c, struct race_obj *ep)
{
	switch (rnd(c, 8)) {
	case 0:
		race_set_watermark(c, ep, DAT_WATERMARK_INFINITE, 0);
		break;
	case 1:
		race_free_slot(c, ep->slot);
		break;
	case 2 ... 4:
		RACE(c, dat_ep_disconnect, HANDLE | STATE, ep->handle, DAT_CLOSE_GRACEFUL_FLAG);
		break;
	default:
		RACE(c, dat_ep_disconnect, HANDLE | STATE, ep->handle, DAT_CLOSE_ABRUPT_FLAG);
	}
}

/*
 * Reset @ep again and again while its connection may end, as a consumer does that does not wait
 * for the event: the call may come between any two steps of the end.
 */
static void reset_while_it_ends(struct race_caller *c, struct race_obj *ep)
{
	unsigned int i;

	for (i = 0; i < 64 && !race_reset(c, ep); i++)
		;
}

static void live_with(struct race_caller *c, struct race_obj *ep)
{
	switch (race_state(c, ep)) {
	case DAT_EP_STATE_UNCONNECTED:
		post_some(c, ep);
		if (is_active(ep))
			race_connect(c, ep, c->w->port + (rnd(c, 8) ? 0 : rnd(c, RACE_PORTS)));
		else
			race_accept(c, ep);
		break;
	case DAT_EP_STATE_CONNECTED:
		if (!rnd(c, 16)) {
			end_one(c, ep);
			break;
		}
		if (!rnd(c, 16)) {
			reset_while_it_ends(c, ep);
			break;
		}
		post_some(c, ep);
		race_post_send(c, ep);
		race_post_send(c, ep);
		if (!READ_ONCE(c->w->bound) || !rnd(c, 32))
			race_bind(c, ep);
		break;
	case DAT_EP_STATE_DISCONNECTED:
		if (rnd(c, 4))
			race_reset(c, ep);
		else
			race_free_slot(c, ep->slot);
		break;
	case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
		race_accept(c, ep);
		break;
	case DAT_EP_STATE_DISCONNECT_PENDING:
		reset_while_it_ends(c, ep);
		break;
	default:
		break;
	}
}

void race_live(struct race_caller *c)
{
	struct race_obj *ep;
	unsigned int i;

	WRITE_ONCE(c->w->lived, jiffies);
	for (i = 0; i < RACE_EPS; i++) {
		ep = race_slot(c->w, S_EP + i);
		if (ep)
			live_with(c, ep);
	}
	if (!rnd(c, 16))
		race_reject(c);
	if (!rnd(c, 256))
		race_change(c);
	race_watch_marks(c);
}

/* ---- The state of rest --------------------------------------------------- */

/* Dequeue everything, and reject what asks for a connection. */
static void reap_all(struct race_caller *c)
{
	DAT_CR_HANDLE cr;
	enum race_evd evd;
	unsigned int i;

	for (evd = 0; evd < RACE_EVDS; evd++)
		while (race_dequeue(c, evd))
			;
	for (i = 0; i < RACE_CRS; i++) {
		cr = xchg(&c->w->cr[i], NULL);
		if (cr)
			race_answered(c->w, cr, RACE(c, dat_cr_reject, HANDLE, cr, 0, NULL));
	}
}

/* Has this Endpoint ended, with all events that it owes? */
static bool has_ended(struct race_caller *c, struct race_obj *ep)
{
	DAT_EP_STATE state = race_state(c, ep);

	return (state == DAT_EP_STATE_UNCONNECTED || state == DAT_EP_STATE_DISCONNECTED) &&
	       atomic_read(&ep->ends) >= atomic_read(&ep->starts) &&
	       !atomic_read(&ep->reqs) &&
	       (state == DAT_EP_STATE_UNCONNECTED || !atomic_read(&ep->recvs));
}

static void tell_end(struct race_caller *c, struct race_obj *ep)
{
	race_fail(c->w,
		  "Endpoint %d: state %d, %d connections begun, %d established, %d ended, %d requests and %d receives left",
		  ep->slot, race_state(c, ep), atomic_read(&ep->starts),
		  atomic_read(&ep->ests), atomic_read(&ep->ends), atomic_read(&ep->reqs),
		  atomic_read(&ep->recvs));
}

/* End the connections of all Endpoints, and wait for all their events. */
static void end_all(struct race_caller *c)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(SETTLE_MS);
	struct race_world *w = c->w;
	struct race_obj *ep;
	unsigned int i;
	bool ended;

	do {
		reap_all(c);
		ended = true;
		hash_for_each(w->objs, i, ep, node) {
			if (ep->type != DAT_HANDLE_TYPE_EP || atomic_read(&ep->freed))
				continue;
			if (has_ended(c, ep))
				continue;
			ended = false;
			RACE(c, dat_ep_disconnect, STATE, ep->handle, DAT_CLOSE_ABRUPT_FLAG);
			if (time_after(jiffies, deadline))
				tell_end(c, ep);
		}
		race_yield();
	} while (!ended && !time_after(jiffies, deadline));
}

/* The counts of an Endpoint agree with the model. */
static void check_ep(struct race_caller *c, struct race_obj *ep)
{
	int recvs = atomic_read(&ep->recvs), reqs = atomic_read(&ep->reqs);
	DAT_BOOLEAN recv_idle = 2, req_idle = 2;
	DAT_COUNT n = -1, span = -1;
	DAT_EP_STATE state;

	/* A call that fails has been counted while it ran. */
	if (atomic_read(&ep->ends) > atomic_read(&ep->starts) + c->w->is_gone)
		tell_end(c, ep);
	RACE(c, dat_ep_recv_query, 0, ep->handle, &n, &span);
	if (n != recvs || span != recvs)
		race_fail(c->w, "dat_ep_recv_query(): %d, %d, and %d are posted", n, span,
			  recvs);
	RACE(c, dat_ep_get_status, 0, ep->handle, &state, &recv_idle, &req_idle);
	if (recv_idle != !recvs || req_idle != !reqs)
		race_fail(c->w, "dat_ep_get_status(): %d, %d, with %d receives and %d requests",
			  recv_idle, req_idle, recvs, reqs);
}

static void free_eps(struct race_caller *c)
{
	struct race_obj *ep;
	unsigned int i;

	hash_for_each(c->w->objs, i, ep, node) {
		if (ep->type != DAT_HANDLE_TYPE_EP || atomic_read(&ep->freed))
			continue;
		check_ep(c, ep);
		if (!race_free(c, ep))
			race_fail(c->w, "an Endpoint at rest cannot be freed");
	}
}

/* No Endpoint has buffers of an SRQ, so all are there, also those that were lost. */
static void check_srq(struct race_caller *c, struct race_obj *srq)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(SETTLE_MS);
	int n = atomic_read(&srq->recvs);
	DAT_SRQ_PARAM param = {};

	do {
		RACE(c, dat_srq_query, 0, srq->handle, DAT_SRQ_FIELD_ALL, &param);
		if (param.available_dto_count == n && param.outstanding_dto_count == n)
			return;
		race_yield();
	} while (!time_after(jiffies, deadline));
	race_fail(c->w, "SRQ: %d available, %d outstanding, and %d are posted",
		  param.available_dto_count, param.outstanding_dto_count, n);
}

/* A mark above what is available fires once, and 0 not at all. */
static void check_mark(struct race_caller *c, struct race_obj *srq)
{
	int n = atomic_read(&srq->recvs), fired;
	DAT_SRQ_PARAM param = {};

	RACE(c, dat_srq_query, 0, srq->handle, DAT_SRQ_FIELD_ALL, &param);
	if (n + 1 > param.max_recv_dtos)
		return;
	/* That loosens it: it may be set now, fired or not. */
	race_set_lw(c, srq, 0);
	reap_all(c);
	fired = atomic_read(&srq->fired);
	race_set_lw(c, srq, n + 1);
	reap_all(c);
	race_set_lw(c, srq, 0);
	reap_all(c);
	if (atomic_read(&srq->fired) != fired + 1)
		race_fail(c->w, "a low mark above %d has fired %d times", n,
			  atomic_read(&srq->fired) - fired);
}

static void stop_upcalls(struct race_caller *c, DAT_EVD_HANDLE evd)
{
	RACE(c, dat_evd_modify_upcall, 0, evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
	     DAT_UPCALL_INVOC_NEW);
}

/* Have events come in another way than before. */
static void start_upcalls(struct race_caller *c, DAT_EVD_HANDLE evd)
{
	static const DAT_UPCALL_POLICY policies[] = {
		DAT_UPCALL_DISABLE, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_MANY,
		DAT_UPCALL_NOTIFY,
	};

	RACE(c, dat_evd_modify_upcall, 0, evd, policies[rnd(c, ARRAY_SIZE(policies))],
	     DAT_UPCALL_SAME, DAT_UPCALL_INVOC_ANY);
}

/* They may keep a PZ that no slot has. */
static void free_memory(struct race_caller *c)
{
	static const enum race_slot slots[] = { S_RMR, S_LMR, S_LMR2 };
	struct race_obj *obj;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		obj = race_slot(c->w, slots[i]);
		if (obj && !atomic_read(&obj->freed) && !race_free(c, obj) && !c->w->is_gone)
			race_fail(c->w, "memory at rest cannot be freed, object %d", obj->slot);
	}
	race_free_mappings(c);
}

/* Nothing runs but the upcalls. */
void race_settle(struct race_caller *c)
{
	struct race_world *w = c->w;
	struct race_obj *obj;
	unsigned int i;

	w->stalled = false;
	stop_upcalls(c, w->evd[E_DTO]);
	stop_upcalls(c, w->evd[E_CONN]);
	race_free(c, w->slot[S_RSP]);
	race_free(c, w->slot[S_IA]);
	hash_for_each(w->objs, i, obj, node)
		if (obj->type == DAT_HANDLE_TYPE_RSP && !atomic_read(&obj->freed))
			race_free(c, obj);
	end_all(c);
	if (!w->is_gone)
		race_check_marks(c);
	free_eps(c);
	reap_all(c);
	race_check_pool(c);
	if (atomic_read(&w->software.reqs))
		race_fail(w, "%d software events are lost", atomic_read(&w->software.reqs));
	hash_for_each(w->objs, i, obj, node) {
		if (obj->type != DAT_HANDLE_TYPE_SRQ || atomic_read(&obj->freed) || w->is_gone)
			continue;
		check_srq(c, obj);
		check_mark(c, obj);
		/* LMRs that are to be freed may be named by its buffers. */
		if (!race_free(c, obj))
			race_fail(w, "an SRQ without Endpoints cannot be freed");
	}
	free_memory(c);
	/* What a group begins with is new. */
	memset(w->slot, 0, sizeof(w->slot));
	race_check_pages(w);
	race_forget(c);
	/* Without portals no adapter is told to listen again. */
	race_put_adapters(w);
	*c->stop = true;
}

/*
 * Nothing runs, and what was is forgotten: begin anew. What a group begins with follows from the
 * seed and its first pair, not from the group before, so that it can be done again by itself. Only
 * CQs stay, with their lengths and vectors.
 */
void race_prepare(struct race_caller *c)
{
	struct race_world *w = c->w;
	unsigned int i;

	for (i = 0; i < RACE_EVDS; i++)
		RACE(c, dat_evd_resize, NO_ROOM, w->evd[i],
		     i == E_ASYNC ? RACE_ASYNC_LEN : RACE_EVD_LEN);
	race_reset_pool(c);
	start_upcalls(c, w->evd[E_DTO]);
	start_upcalls(c, w->evd[E_CONN]);
	race_fill(c);
	*c->stop = true;
}
