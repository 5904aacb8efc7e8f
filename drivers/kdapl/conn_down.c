// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Taking down connections, and their events.
 *
 * When a connection was ended, kdapl_conn_end() (ep_state.c) queues conn->down;
 * kdapl_conn_end_drained() delays it if the peer has disconnected and requests are still
 * under way. An attempt is reported at once and the rest of it left to conn->rest, on a
 * workqueue of its own: the transport may hang in it for long.
 *
 * The peer must learn of the end, though the message that says so may be lost. So
 * an InfiniBand id outlives its connection as a struct kdapl_parting, until the
 * peer has answered or rdma_cm has given up. A device has at most KDAPL_PARTINGS of
 * these; kdapl_remove_one() waits for none.
 */
#include <linux/sched/mm.h>
#include "conn.h"
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "trace.h"

#define KDAPL_PARTINGS	1024

/* Queue an event of a connection. */
void kdapl_conn_add_event(struct kdapl_evd *evd, struct kdapl_conn_event *ce,
			  struct kdapl_later *later)
{
	struct kdapl_ep *ep = ce->conn->ep;

	lockdep_assert_held(&evd->lock);

	kref_get(&ce->conn->ref);
	spin_lock(&ep->lock);
	list_add_tail(&ce->link, &ep->conn_events);
	spin_unlock(&ep->lock);
	kdapl_evd_add(evd, &ce->ev, later);
}

/* The event @ce was reaped or withdrawn: drop its reference to the connection. */
static void kdapl_conn_forget_event(struct kdapl_conn_event *ce)
{
	struct kdapl_ep *ep = ce->conn->ep;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	list_del(&ce->link);
	spin_unlock_irqrestore(&ep->lock, flags);
	kdapl_conn_put(ce->conn);
}

/*
 * Queue @ce, one of the connection's two events, unless the EP is being freed.
 */
static void kdapl_conn_report(struct kdapl_conn *conn,
			      struct kdapl_conn_event *ce,
			      DAT_EVENT_NUMBER number)
{
	struct kdapl_evd *evd = conn->ep->conn_evd;
	struct kdapl_later later = { .n = 0 };
	unsigned long flags;

	trace_kdapl_conn_event(conn->ep, number, conn->why);
	if (!evd)
		return;
	ce->number = number;
	spin_lock_irqsave(&evd->lock, flags);
	if (!READ_ONCE(conn->ep->dying))
		kdapl_conn_add_event(evd, ce, &later);
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_upcall_schedule(evd);
	kdapl_later_run(&later);
}

static void kdapl_conn_reap(struct kdapl_event *ev, DAT_EVENT *event)
{
	struct kdapl_conn_event *ce = container_of(ev, struct kdapl_conn_event,
						   ev);
	DAT_CONNECTION_EVENT_DATA *data =
		&event->event_data.connect_event_data;

	/* dat_ep_reset() gives up the connection, and its private data. */
	bool ours = READ_ONCE(ce->conn->ep->conn) == ce->conn;

	event->event_number = ce->number;
	/* Only these two events carry private data. */
	if (ce->number != DAT_CONNECTION_EVENT_ESTABLISHED &&
	    ce->number != DAT_CONNECTION_EVENT_PEER_REJECTED)
		ours = false;
	data->ep_handle = kdapl_handle(&ce->conn->ep->obj);
	data->private_data_size = ours ? ce->pd_len : 0;
	data->private_data = ours && ce->pd_len ? ce->conn->pd : NULL;
	kdapl_conn_forget_event(ce);
}

static void kdapl_conn_withdraw(struct kdapl_event *ev)
{
	kdapl_conn_forget_event(container_of(ev, struct kdapl_conn_event, ev));
}

static struct kdapl_conn_event *kdapl_conn_first_event(struct kdapl_ep *ep)
{
	struct kdapl_conn_event *ce;

	spin_lock(&ep->lock);
	ce = list_first_entry_or_null(&ep->conn_events,
				      struct kdapl_conn_event, link);
	spin_unlock(&ep->lock);
	return ce;
}

/* Withdraw the connection events of @ep, which is dying. Context: any. */
void kdapl_conn_withdraw_events(struct kdapl_ep *ep)
{
	struct kdapl_evd *evd = ep->conn_evd;
	struct kdapl_conn_event *ce;
	unsigned long flags;
	int n;

	if (!evd)
		return;
	do {
		spin_lock_irqsave(&evd->lock, flags);
		for (n = 0; n < KDAPL_SECTION; n++) {
			ce = kdapl_conn_first_event(ep);
			if (!ce)
				break;
			kdapl_event_withdraw(evd, &ce->ev);
		}
		kdapl_section(n);
		spin_unlock_irqrestore(&evd->lock, flags);
	} while (n == KDAPL_SECTION);
}

static struct kdapl_ep *kdapl_conn_event_ep(struct kdapl_event *ev)
{
	return container_of(ev, struct kdapl_conn_event, ev)->conn->ep;
}

const struct kdapl_event_ops kdapl_conn_event_ops = {
	.reap = kdapl_conn_reap,
	.withdraw = kdapl_conn_withdraw,
	.ep = kdapl_conn_event_ep,
};

/* ---- Ids that wait for the peer ------------------------------------------ */

static void kdapl_parting_end(struct work_struct *work)
{
	struct kdapl_parting *parting = container_of(work, struct kdapl_parting,
						     work);

	rdma_destroy_id(parting->id);
	kdapl_obj_put(&parting->ia->obj);
	kdapl_conn_put(container_of(parting, struct kdapl_conn, parting));
}

/* Queue the work that destroys the id of @parting, only once. Context: Process context. */
static void kdapl_parting_done(struct kdapl_parting *parting)
{
	struct kdapl_hca *hca = parting->ia->hca;
	bool first;

	spin_lock(&hca->partings_lock);
	first = !list_empty(&parting->link);
	if (first) {
		list_del_init(&parting->link);
		hca->npartings--;
		queue_work(hca->down_wq, &parting->work);
	}
	spin_unlock(&hca->partings_lock);
}

/* The peer has answered, or rdma_cm has given up; not if just the path has another address. */
static int kdapl_parting_handler(struct rdma_cm_id *id,
				 struct rdma_cm_event *event)
{
	if (event->event != RDMA_CM_EVENT_ADDR_CHANGE)
		kdapl_parting_done(id->context);
	return 0;
}

/*
 * Keep @id until the peer of @conn has answered the message of rdma_disconnect(). Return
 * false if there is no answer to wait for.
 */
static bool kdapl_parting_begin(struct kdapl_conn *conn, struct rdma_cm_id *id)
{
	struct kdapl_parting *parting = &conn->parting;
	struct kdapl_ia *ia = conn->ep->obj.ia;
	struct kdapl_hca *hca = ia->hca;
	bool kept = false;

	if (!conn->established.number ||
	    !rdma_cap_ib_cm(id->device, id->port_num))
		return false;
	INIT_WORK(&parting->work, kdapl_parting_end);
	parting->id = id;
	parting->ia = ia;
	rdma_lock_handler(id);
	spin_lock(&hca->partings_lock);
	if (!conn->answered && !READ_ONCE(hca->gone) &&
	    hca->npartings < KDAPL_PARTINGS) {
		kref_get(&conn->ref);
		kref_get(&ia->obj.ref);
		id->context = parting;
		id->event_handler = kdapl_parting_handler;
		list_add_tail(&parting->link, &hca->partings);
		hca->npartings++;
		kept = true;
	}
	spin_unlock(&hca->partings_lock);
	rdma_unlock_handler(id);
	return kept;
}

/*
 * The device is leaving: wait for no more answers. hca->gone is set, so no id is added;
 * the caller flushes hca->down_wq.
 */
void kdapl_partings_end(struct kdapl_hca *hca)
{
	struct kdapl_parting *parting, *next;

	spin_lock(&hca->partings_lock);
	list_for_each_entry_safe(parting, next, &hca->partings, link) {
		list_del_init(&parting->link);
		queue_work(hca->down_wq, &parting->work);
	}
	hca->npartings = 0;
	spin_unlock(&hca->partings_lock);
}

/* ---- Taking down --------------------------------------------------------- */

/* siw may not have created its socket yet when kdapl_siw_abort() looks for it. */
#define KDAPL_ABORT_RETRY	max(HZ / 50, 1)

/*
 * Lock conn->dial to exclude rdma_connect(): when it fails it frees data that
 * rdma_disconnect() uses. rdma_lock_handler() is wrong here, as rdma_disconnect() may
 * wait for a handler. With siw the peer would decide how long rdma_connect() has the
 * mutex and when rdma_disconnect() returns, so abort the one and wake up siw for the
 * other.
 */
static void kdapl_conn_lock_dial(struct kdapl_conn *conn, struct rdma_cm_id *id)
{
	if (!kdapl_has_quirk(conn->ep->obj.ia->hca, KDAPL_QUIRK_PEER_ENDS)) {
		mutex_lock(&conn->dial);
		return;
	}
	while (!mutex_trylock(&conn->dial)) {
		kdapl_siw_abort(id);
		schedule_timeout_uninterruptible(KDAPL_ABORT_RETRY);
	}
	if (READ_ONCE(conn->accepting))
		kdapl_siw_wake(id);
}

/*
 * Disconnect and take the QP to ERR; destroy the id, which ends CM events; destroy the QP
 * and flush the rings; report the final event, behind all completions. Drops the
 * references of the queued work.
 */
static void kdapl_conn_finish(struct kdapl_conn *conn)
{
	struct kdapl_ep *ep = conn->ep;
	struct rdma_cm_id *id;
	unsigned long flags;

	mutex_lock(&conn->mutex);
	/* kdapl_qp_event() must not use an id that is being destroyed. */
	spin_lock_irqsave(&ep->lock, flags);
	id = conn->id;
	conn->id = NULL;
	spin_unlock_irqrestore(&ep->lock, flags);
	if (id) {
		kdapl_conn_lock_dial(conn, id);
		rdma_disconnect(id);
		mutex_unlock(&conn->dial);
		kdapl_qp_error(ep);
		if (!kdapl_parting_begin(conn, id))
			rdma_destroy_id(id);
	}
	kdapl_qp_destroy(ep, conn->established.number);
	kdapl_conn_stopped(conn);
	kdapl_conn_watch_drain(conn, false);
	mutex_unlock(&conn->mutex);

	if (!conn->given_up)
		kdapl_conn_report(conn, &conn->final, conn->end);
	complete_all(&conn->down_done);
	kdapl_obj_put(&ep->obj);
	kdapl_conn_put(conn);
}

/* Work item conn->rest: take down an attempt that has been reported. */
static void kdapl_conn_rest(struct work_struct *work)
{
	unsigned int noio = memalloc_noio_save();

	kdapl_conn_finish(container_of(work, struct kdapl_conn, rest));
	memalloc_noio_restore(noio);
}

/* Work item conn->down: take down a connection that has ended. */
static void kdapl_conn_down(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work),
					       struct kdapl_conn, down);
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&conn->mutex);
	cancel_delayed_work_sync(&conn->timer);
	/* No data could flow yet, so the receives need not wait for the id. */
	if (conn->given_up)
		kdapl_qp_give_up(conn->ep);
	mutex_unlock(&conn->mutex);
	kdapl_ends_note(conn);
	if (conn->given_up) {
		kdapl_conn_report(conn, &conn->final, conn->end);
		queue_work(conn->ep->obj.ia->hca->attempt_wq, &conn->rest);
	} else {
		kdapl_conn_finish(conn);
	}
	memalloc_noio_restore(noio);
}

void kdapl_conn_init_down(struct kdapl_conn *conn)
{
	INIT_DELAYED_WORK(&conn->down, kdapl_conn_down);
	INIT_WORK(&conn->rest, kdapl_conn_rest);
	init_completion(&conn->down_done);
}
