// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The state of an Endpoint, and how its connection ends.
 *
 * Every layer may find that a connection is over: the consumer, the peer, a
 * completion, a high watermark, the device. All of them call kdapl_ep_down() or
 * kdapl_conn_end(), in any context, so these are in the lowest layer above the base.
 * The first caller wins: it decides which event will be reported, and queues the
 * work that takes the connection down (conn_down.c).
 *
 * kdapl_ep_change_state() alone writes ep->state, with ep->lock held, so a state
 * and its consequences for ep->conn are seen together.
 */
#include <linux/slab.h>
#include "conn.h"
#include "ep.h"
#include "ia.h"

/* The driver must report an orderly end of the peer this soon after the QP has ended. */
#define KDAPL_ORDERLY_END_MS	500

/* How long requests may take to complete after the peer has disconnected. */
#define KDAPL_DRAIN_MS		100

#define S(state) BIT(DAT_EP_STATE_ ## state)

/* For each state, the states from which it can be reached; see design.rst. */
static const u16 kdapl_ep_from[] = {
	[DAT_EP_STATE_UNCONNECTED] =
		S(RESERVED) | S(PASSIVE_CONNECTION_PENDING) | S(DISCONNECTED),
	[DAT_EP_STATE_RESERVED] = S(UNCONNECTED) | S(PASSIVE_CONNECTION_PENDING),
	[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = S(RESERVED),
	[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = S(UNCONNECTED),
	[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = S(UNCONNECTED),
	/* From RESERVED only when the device leaves. */
	[DAT_EP_STATE_COMPLETION_PENDING] =
		S(UNCONNECTED) | S(RESERVED) | S(PASSIVE_CONNECTION_PENDING) |
		S(TENTATIVE_CONNECTION_PENDING),
	[DAT_EP_STATE_CONNECTED] = S(ACTIVE_CONNECTION_PENDING) | S(COMPLETION_PENDING),
	[DAT_EP_STATE_DISCONNECT_PENDING] = S(CONNECTED),
	[DAT_EP_STATE_DISCONNECTED] =
		S(ACTIVE_CONNECTION_PENDING) | S(COMPLETION_PENDING) |
		S(CONNECTED) | S(DISCONNECT_PENDING),
};

/**
 * kdapl_ep_change_state - take an Endpoint to another state
 * @ep: the Endpoint
 * @to: the new state
 *
 * Return: false, with nothing changed, if the present state does not allow it.
 */
bool kdapl_ep_change_state(struct kdapl_ep *ep, DAT_EP_STATE to)
{
	lockdep_assert_held(&ep->lock);

	if (!(kdapl_ep_from[to] & BIT(ep->state)))
		return false;
	/* Pairs with kdapl_send_last(). litmus: ep-last */
	smp_store_release(&ep->state, to);
	return true;
}

/* Return the error of a call that the state of an Endpoint forbids. */
DAT_RETURN kdapl_ep_state_error(DAT_EP_STATE state)
{
	static const u16 subtype[] = {
		[DAT_EP_STATE_UNCONNECTED] = DAT_INVALID_STATE_EP_UNCONNECTED,
		[DAT_EP_STATE_RESERVED] = DAT_INVALID_STATE_EP_RESERVED,
		[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_PASSCONNPENDING,
		[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_ACTCONNPENDING,
		[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_TENTCONNPENDING,
		[DAT_EP_STATE_CONNECTED] = DAT_INVALID_STATE_EP_CONNECTED,
		[DAT_EP_STATE_DISCONNECT_PENDING] = DAT_INVALID_STATE_EP_DISCPENDING,
		[DAT_EP_STATE_DISCONNECTED] = DAT_INVALID_STATE_EP_DISCONNECTED,
		[DAT_EP_STATE_COMPLETION_PENDING] = DAT_INVALID_STATE_EP_COMPLPENDING,
	};

	return DAT_ERROR(DAT_INVALID_STATE,
			 state < ARRAY_SIZE(subtype) ? subtype[state] : DAT_NO_SUBTYPE);
}

/*
 * A posting call reads the PZ, limits, EVDs and peer's abilities of @ep before it takes
 * the ring's lock. Under the lock it sees whether there is a connection, but not whether it is
 * still the same one. The call is one RCU read-side section. So before @ep changes or has another
 * connection, wait for calls that began before the reset; before it has one, for those that began
 * before it was changed, which may be just now: expedited. litmus: ep-reset. Context: process.
 */
void kdapl_ep_settle(struct kdapl_ep *ep)
{
	lockdep_assert_held(&ep->mutex);

	if (!ep->was_reset && !ep->was_modified)
		return;
	cond_synchronize_rcu_expedited(ep->settle_gp);
	ep->was_reset = false;
	ep->was_modified = false;
}

/**
 * kdapl_ep_join - give an Endpoint its connection
 * @ep: the Endpoint
 * @conn: the connection; @ep takes over the caller's reference
 * @to: new state
 *
 * Return: false if the Endpoint is in another state or was freed.
 */
bool kdapl_ep_join(struct kdapl_ep *ep, struct kdapl_conn *conn,
		   DAT_EP_STATE to)
{
	unsigned long flags;
	bool ok;

	lockdep_assert_held(&ep->mutex);

	spin_lock_irqsave(&ep->lock, flags);
	ok = !ep->dying && kdapl_ep_change_state(ep, to);
	if (ok)
		ep->conn = conn;
	spin_unlock_irqrestore(&ep->lock, flags);
	return ok;
}

static void kdapl_conn_free(struct kref *ref)
{
	kfree(container_of(ref, struct kdapl_conn, ref));
}

/* Drop a reference to a connection. Context: any. */
void kdapl_conn_put(struct kdapl_conn *conn)
{
	kref_put(&conn->ref, kdapl_conn_free);
}

/*
 * Set @mark, a member of @conn: the QP may receive from now on. Return false if the
 * connection has ended or the Endpoint was freed: then the QP must not receive, as nobody
 * waits for its end. Context: any.
 */
bool kdapl_conn_may_receive(struct kdapl_conn *conn, bool *mark)
{
	struct kdapl_ep *ep = conn->ep;
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&ep->lock, flags);
	ok = !conn->end && !ep->dying;
	if (ok)
		WRITE_ONCE(*mark, true);
	spin_unlock_irqrestore(&ep->lock, flags);
	return ok;
}

/* Return the bucket of ia->lingering that @ep belongs to. */
static unsigned int kdapl_linger_bucket(const struct kdapl_ep *ep)
{
	return (ep->obj.handle & KDAPL_INDEX_MASK) % KDAPL_LINGER_BUCKETS;
}

/*
 * @ep is being freed while its QP may still receive: enter it in ia->lingering. Calls
 * that return buffers to the consumer wait for it.
 */
static void kdapl_conn_linger(struct kdapl_ep *ep)
{
	struct kdapl_ia *ia = ep->obj.ia;

	lockdep_assert_held(&ep->lock);

	spin_lock(&ia->linger_lock);
	WRITE_ONCE(ep->lingering, ++ia->last_lingering);
	hlist_add_head(&ep->linger_link, &ia->lingering[kdapl_linger_bucket(ep)]);
	spin_unlock(&ia->linger_lock);
}

/*
 * The QP of @conn was destroyed, so its peer cannot write into buffers any more: wake up
 * the calls that wait for this.
 */
void kdapl_conn_stopped(struct kdapl_conn *conn)
{
	struct kdapl_ep *ep = conn->ep;
	struct kdapl_ia *ia = ep->obj.ia;
	unsigned long flags;
	bool lingering;

	spin_lock_irqsave(&ep->lock, flags);
	conn->qp_gone = true;
	spin_lock(&ia->linger_lock);
	lingering = ep->lingering;
	if (lingering)
		hlist_del_init(&ep->linger_link);
	/* Pairs with kdapl_ia_wait_lingering(): the QP is gone. litmus: lingering */
	smp_store_release(&ep->lingering, 0);
	spin_unlock(&ia->linger_lock);
	spin_unlock_irqrestore(&ep->lock, flags);
	if (lingering)
		wake_up_all(&ia->wait);
}

/**
 * kdapl_ep_die - the consumer frees an Endpoint, or its IA is closed
 * @ep: the Endpoint; published
 * @refused: states in which the Endpoint cannot be freed
 * @deps_pinned: set to ep->deps_pinned
 *
 * From here on no event names the Endpoint and no call changes it (litmus: ep-dying). It
 * enters ia->lingering before its handle becomes invalid, so a search for its posted work
 * finds it by handle or there (litmus: linger-walk). Calls that change the state, for
 * example dat_rsp_create(), check ep->dying in the same section of ep->lock.
 *
 * Context: Any.
 * Return: %DAT_SUCCESS; %DAT_INVALID_HANDLE if the Endpoint was freed concurrently; or
 * the error for its state.
 */
DAT_RETURN kdapl_ep_die(struct kdapl_ep *ep, u32 refused, bool *deps_pinned)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_conn *conn;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	conn = ep->conn;
	if (ep->dying) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	} else if (refused & BIT(ep->state)) {
		ret = kdapl_ep_state_error(ep->state);
	} else {
		WRITE_ONCE(ep->dying, true);
		*deps_pinned = ep->deps_pinned;
		if (conn && (conn->rts || conn->dialled) && !conn->qp_gone)
			kdapl_conn_linger(ep);
	}
	spin_unlock_irqrestore(&ep->lock, flags);
	return ret;
}

/**
 * kdapl_linger_next - walk over the lingering Endpoints of an IA
 * @ia: the IA
 * @bucket: place in the walk; 0 at first
 * @last: place in the bucket; 0 at first
 *
 * Endpoints that are entered during the walk may be missed.
 *
 * Context: Any.
 * Return: the next one, referenced, or NULL at the end.
 */
struct kdapl_ep *kdapl_linger_next(struct kdapl_ia *ia, unsigned int *bucket,
				   u64 *last)
{
	struct kdapl_ep *ep, *next = NULL;
	unsigned long flags;

	for (; *bucket < KDAPL_LINGER_BUCKETS; (*bucket)++, *last = 0) {
		spin_lock_irqsave(&ia->linger_lock, flags);
		hlist_for_each_entry(ep, &ia->lingering[*bucket], linger_link)
			if (ep->lingering > *last &&
			    (!next || ep->lingering < next->lingering))
				next = ep;
		if (next) {
			*last = next->lingering;
			/* kdapl_conn_down() has a reference. */
			kref_get(&next->obj.ref);
		}
		spin_unlock_irqrestore(&ia->linger_lock, flags);
		if (next)
			break;
	}
	return next;
}

/**
 * kdapl_ia_wait_lingering - wait until freed Endpoints receive no more
 * @ia: the IA
 * @concerns: returns whether the caller cares about an Endpoint
 * @arg: for @concerns
 * @wait: time limit for each, from the end of the last one; 0 only checks
 *
 * Endpoints that are freed after the call began are not waited for. While the IA is being
 * closed none is, as kdapl_ia_drain() waits for all.
 *
 * Context: Process context.
 * Return: false if one of them still receives.
 */
bool kdapl_ia_wait_lingering(struct kdapl_ia *ia,
			     bool (*concerns)(struct kdapl_ep *ep, void *arg),
			     void *arg, long wait)
{
	u64 last = 0, limit = READ_ONCE(ia->last_lingering);
	unsigned int bucket = 0;
	struct kdapl_ep *ep;
	bool ended = true;

	if (READ_ONCE(ia->closing))
		wait = 0;
	while (ended && (ep = kdapl_linger_next(ia, &bucket, &last))) {
		if (last <= limit && concerns(ep, arg))
			ended = wait_event_timeout(ia->wait, !kdapl_ep_lingers(ep), wait);
		kdapl_obj_put(&ep->obj);
	}
	return ended;
}

/*
 * Would taking @conn down wait for its peer? iw_cm makes rdma_disconnect() wait for the
 * answer to rdma_accept(), and a peer that has asked to send the first frame need not
 * send it. Such connections would hold all workers of hca->down_wq. A leaving device has
 * no time for them, and siw can be made to answer (conn_siw.c).
 */
static bool kdapl_conn_unanswered(const struct kdapl_conn *conn)
{
	const struct kdapl_hca *hca = conn->ep->obj.ia->hca;

	lockdep_assert_held(&conn->ep->lock);

	return conn->accepting && !kdapl_has_quirk(hca, KDAPL_QUIRK_PEER_ENDS) &&
	       !READ_ONCE(hca->gone);
}

/*
 * Has the connection of @ep ended, and can taking it down take as long as the device's
 * driver likes? Context: any.
 */
bool kdapl_ep_is_stuck(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool stuck;

	spin_lock_irqsave(&ep->lock, flags);
	stuck = ep->conn && ep->conn->end && kdapl_conn_unanswered(ep->conn);
	spin_unlock_irqrestore(&ep->lock, flags);
	return stuck;
}

/*
 * End @conn, the connection of @ep or NULL, with event @end for the reason @why, if it
 * lives and @ep is in one of @states; return whether it did. It is taken down after @drain
 * milliseconds, or at kdapl_ep_hurry(), but not while kdapl_conn_unanswered().
 */
static bool kdapl_ep_end(struct kdapl_ep *ep, struct kdapl_conn *conn, u32 states,
			 DAT_EVENT_NUMBER end, enum kdapl_end why, unsigned int drain)
{
	bool gone = READ_ONCE(ep->obj.ia->hca->gone);

	lockdep_assert_held(&ep->lock);

	if (!conn || conn->end || !(BIT(ep->state) & states) ||
	    !kdapl_ep_change_state(ep, DAT_EP_STATE_DISCONNECTED))
		return false;
	/* When a device leaves, one end sees the disconnect of the other end. */
	conn->end = gone ? DAT_CONNECTION_EVENT_BROKEN : end;
	conn->why = gone ? KDAPL_END_UNPLUG : why;
	conn->given_up = !conn->rts;
	if (kdapl_conn_unanswered(conn))
		drain = UINT_MAX;
	conn->draining = drain;
	kref_get(&conn->ref);
	kref_get(&ep->obj.ref);
	queue_delayed_work(ep->obj.ia->hca->down_wq, &conn->down,
			   msecs_to_jiffies(drain));
	return true;
}

/* As kdapl_ep_end(), unless the Endpoint has another connection by now. */
static bool kdapl_conn_end_in(struct kdapl_conn *conn, u32 states, DAT_EVENT_NUMBER end,
			      enum kdapl_end why, unsigned int drain)
{
	struct kdapl_ep *ep = conn->ep;
	unsigned long flags;
	bool won;

	spin_lock_irqsave(&ep->lock, flags);
	won = ep->conn == conn && kdapl_ep_end(ep, conn, states, end, why, drain);
	spin_unlock_irqrestore(&ep->lock, flags);
	return won;
}

/* As kdapl_conn_end(), but only if the Endpoint is in one of @states. */
bool kdapl_conn_end_if(struct kdapl_conn *conn, u32 states,
		       DAT_EVENT_NUMBER end, enum kdapl_end why)
{
	return kdapl_conn_end_in(conn, states, end, why, 0);
}

/*
 * As kdapl_conn_end() with DISCONNECTED, but leave the QP alone for a while, so that
 * requests which the peer has executed can complete. The caller calls kdapl_ep_hurry()
 * when all have.
 */
bool kdapl_conn_end_drained(struct kdapl_conn *conn, enum kdapl_end why)
{
	return kdapl_conn_end_in(conn, ~0U, DAT_CONNECTION_EVENT_DISCONNECTED, why,
				 KDAPL_DRAIN_MS);
}

/*
 * Run conn->timer of the connection of @ep in @ms milliseconds, unless the connection has
 * ended: taking it down cancels the timer. Context: any.
 */
void kdapl_ep_start_timer(struct kdapl_ep *ep, unsigned int ms)
{
	struct kdapl_conn *conn;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	conn = ep->conn;
	if (conn && !conn->end)
		mod_delayed_work(kdapl_wq, &conn->timer, msecs_to_jiffies(ms));
	spin_unlock_irqrestore(&ep->lock, flags);
}

/* If the connection of @ep is to be taken down later, take it down now. Context: any. */
void kdapl_ep_hurry(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	conn = ep->conn;
	if (conn && conn->draining && !kdapl_conn_unanswered(conn)) {
		conn->draining = false;
		/* Requeue only if the work has not started. */
		if (cancel_delayed_work(&conn->down))
			queue_delayed_work(ep->obj.ia->hca->down_wq,
					   &conn->down, 0);
	}
	spin_unlock_irqrestore(&ep->lock, flags);
}

/*
 * rdma_cm has answered rdma_accept(), or will not. If the connection of the Endpoint has
 * ended meanwhile, take it down. Context: any.
 */
void kdapl_conn_accepted(struct kdapl_conn *conn)
{
	unsigned long flags;

	spin_lock_irqsave(&conn->ep->lock, flags);
	conn->accepting = false;
	spin_unlock_irqrestore(&conn->ep->lock, flags);
	kdapl_ep_hurry(conn->ep);
}

/**
 * kdapl_conn_end - end a connection or the attempt to make it
 * @conn: the connection
 * @end: event to report
 * @why: the reason
 *
 * Context: Any.
 * Return: true for the caller whose event will be reported.
 */
bool kdapl_conn_end(struct kdapl_conn *conn, DAT_EVENT_NUMBER end, enum kdapl_end why)
{
	return kdapl_conn_end_if(conn, ~0U, end, why);
}

/*
 * End the connection of @ep, if it has one, with event @end for the reason @why; return
 * whether @end will be reported. If it has ended already, stop draining it. Context: any.
 */
bool kdapl_ep_down(struct kdapl_ep *ep, DAT_EVENT_NUMBER end, enum kdapl_end why)
{
	unsigned long flags;
	bool won;

	spin_lock_irqsave(&ep->lock, flags);
	won = kdapl_ep_end(ep, ep->conn, ~0U, end, why, 0);
	spin_unlock_irqrestore(&ep->lock, flags);
	if (!won)
		kdapl_ep_hurry(ep);
	return won;
}

/*
 * The consumer ends the connection of @ep with DISCONNECTED, if @ep is in one of @states.
 * Return false if @ep is in another state. Context: any.
 */
bool kdapl_ep_down_if(struct kdapl_ep *ep, u32 states)
{
	unsigned long flags;
	bool won;

	spin_lock_irqsave(&ep->lock, flags);
	won = kdapl_ep_end(ep, ep->conn, states, DAT_CONNECTION_EVENT_DISCONNECTED,
			   KDAPL_END_CONSUMER, 0);
	spin_unlock_irqrestore(&ep->lock, flags);
	return won;
}

/*
 * Take @ep from CONNECTED to DISCONNECT_PENDING, which refuses requests. Return the
 * connection, referenced; NULL if @ep was not CONNECTED. Context: any.
 */
struct kdapl_conn *kdapl_ep_close(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn = NULL;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	if (kdapl_ep_change_state(ep, DAT_EP_STATE_DISCONNECT_PENDING)) {
		conn = ep->conn;
		kref_get(&conn->ref);
	}
	spin_unlock_irqrestore(&ep->lock, flags);
	return conn;
}

/* Break the connection of the Endpoint @obj if one of its CQs has failed. Context: any. */
void kdapl_ep_check_cqs(struct kdapl_obj *obj)
{
	struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	if ((ep->recv_cq && READ_ONCE(ep->recv_cq->failed)) ||
	    (ep->send_cq && READ_ONCE(ep->send_cq->failed)))
		kdapl_ep_end(ep, ep->conn, ~0U, DAT_CONNECTION_EVENT_BROKEN,
			     KDAPL_END_DRIVER, 0);
	spin_unlock_irqrestore(&ep->lock, flags);
}

/*
 * The device has ended the QP of @conn, which is established, by itself. On InfiniBand
 * and RoCE an orderly end of the peer leaves the QP alone, so the connection is broken.
 * On iWARP the driver ends the QP before it reports an orderly end; the connection is
 * broken unless this report comes soon.
 * Context: Any.
 */
void kdapl_conn_died(struct kdapl_conn *conn)
{
	unsigned long flags, left = msecs_to_jiffies(KDAPL_ORDERLY_END_MS);

	if (!conn->ep->obj.ia->iwarp) {
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_TRANSPORT);
		return;
	}
	/* kdapl_conn_down() cancels the timer after conn->end was set. */
	spin_lock_irqsave(&conn->ep->lock, flags);
	conn->dies_at = (jiffies + left) ?: 1;
	if (!conn->end)
		mod_delayed_work(kdapl_wq, &conn->timer, left);
	spin_unlock_irqrestore(&conn->ep->lock, flags);
}

/*
 * A completion of @ep was flushed, or the device reports the last WQE. Unless somebody
 * has ended the connection, its QP has died.
 *
 * Context: Any.
 */
void kdapl_ep_qp_died(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn;
	unsigned long flags;
	bool established;

	spin_lock_irqsave(&ep->lock, flags);
	conn = ep->conn;
	if (!conn || conn->end || conn->qp_died) {
		spin_unlock_irqrestore(&ep->lock, flags);
		return;
	}
	conn->qp_died = true;
	/* kdapl_conn_established() reads conn->qp_died. */
	established = ep->state == DAT_EP_STATE_CONNECTED ||
		      ep->state == DAT_EP_STATE_DISCONNECT_PENDING;
	kref_get(&conn->ref);
	spin_unlock_irqrestore(&ep->lock, flags);
	if (established)
		kdapl_conn_died(conn);
	kdapl_conn_put(conn);
}

/*
 * If the connection of @ep has ended, wait until it was taken down, at most
 * KDAPL_END_WAIT. Return false on timeout. May sleep.
 */
bool kdapl_conn_wait(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn;
	unsigned long flags;
	bool down;

	spin_lock_irqsave(&ep->lock, flags);
	conn = ep->conn;
	if (conn && conn->end)
		kref_get(&conn->ref);
	else
		conn = NULL;
	spin_unlock_irqrestore(&ep->lock, flags);
	if (!conn)
		return true;
	down = wait_for_completion_timeout(&conn->down_done, KDAPL_END_WAIT);
	kdapl_conn_put(conn);
	return down;
}
