/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections: conn.c, conn_connect.c, conn_disconnect.c, conn_down.c, conn_ends.c,
 * conn_siw.c.
 */
#ifndef KDAPL_CONN_H
#define KDAPL_CONN_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>
#include "evd.h"
#include "hca.h"

struct kdapl_ep;
struct seq_file;

/*
 * struct kdapl_conn_event - an event of a connection
 * @ev: entry in the list of an EVD
 * @link: entry in ep->conn_events while it is queued
 * @conn: the connection; referenced while it is queued
 * @number: event number
 * @pd_len: bytes of conn->pd that belong to the event: private data of the peer
 */
struct kdapl_conn_event {
	struct kdapl_event ev;
	struct list_head link;
	struct kdapl_conn *conn;
	DAT_EVENT_NUMBER number;
	u8 pd_len;
};

/*
 * struct kdapl_parting - the id of a connection that has been taken down
 * @id: the id; its context is this structure
 * @ia: referenced, as restrack reads the consumer's name
 * @link: entry in hca->partings; hca->partings_lock
 * @work: destroys the id
 */
struct kdapl_parting {
	struct rdma_cm_id *id;
	struct kdapl_ia *ia;
	struct list_head link;
	struct work_struct work;
};

/*
 * struct kdapl_conn - one attempt to connect an Endpoint
 * @ref: one of the EP, one per queued event, one per queued work, one of @parting
 * @ep: the Endpoint
 * @id: owned until the connection is taken down
 * @passive: the peer asked for the connection
 * @given_up: the attempt ended before data could flow
 * @rts: data may flow; ep->lock, see kdapl_conn_may_receive()
 * @dialled: iWARP: the QP may receive already; ep->lock, see kdapl_conn_may_receive()
 * @accepting: iWARP: rdma_cm has yet to answer rdma_accept(), see
 *	kdapl_conn_accepted(); ep->lock
 * @qp_gone: the QP is destroyed; ep->lock
 * @answered: the peer has disconnected, or answered a disconnect; id's handler lock
 * @draining: @down waits for requests under way, or while @accepting; ep->lock
 * @qp_died: the device has ended the QP by itself; ep->lock
 * @dies_at: iWARP: when a connection with @qp_died is broken, jiffies; 0: it is not; ep->lock
 * @end: the event that ends the connection, 0 while it lives; ep->lock
 * @why: the reason, of enum kdapl_end; ep->lock
 * @mutex: serialises setting up and taking down
 * @dial: serialises connecting and disconnecting
 * @down: takes the connection down; queued when @end is set
 * @rest: takes down the rest of an attempt that was given up
 * @timer: gives an attempt up; iWARP: ends a connection with @qp_died, and posts deferred
 *	requests of the passive side
 * @down_done: @down has run
 * @established: event: the connection is established
 * @final: event: the connection has ended
 * @parting: the id if it outlives the connection; holds a reference meanwhile
 * @pd_len: length of @pd while @pd is for the peer
 * @pd: private data for the peer until rdma_connect() has copied it; then private data of
 *	the peer's answer. The last member: kdapl_conn_alloc_spare() allocates a
 *	connection without it
 */
struct kdapl_conn {
	struct kref ref;
	struct kdapl_ep *ep;
	struct rdma_cm_id *id;
	bool passive;
	bool given_up;
	bool rts;
	bool dialled;
	bool accepting;
	bool qp_gone;
	bool answered;
	bool draining;
	bool qp_died;
	unsigned long dies_at;
	DAT_EVENT_NUMBER end;
	u8 why;
	struct mutex mutex;		/* see above */
	struct mutex dial;		/* see above */
	struct delayed_work down;
	struct work_struct rest;
	struct delayed_work timer;
	struct completion down_done;
	struct kdapl_conn_event established;
	struct kdapl_conn_event final;
	struct kdapl_parting parting;
	u8 pd_len;
	u8 pd[KDAPL_MAX_PRIVATE_DATA];
};

/* conn.c */
struct kdapl_conn *kdapl_conn_alloc(struct kdapl_ep *ep);
struct kdapl_conn *kdapl_conn_alloc_spare(struct kdapl_ep *ep);
int kdapl_conn_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);
DAT_EVENT_NUMBER kdapl_conn_failure(struct kdapl_conn *conn, int err);
void kdapl_conn_driver_receives(struct kdapl_conn *conn, bool may);
void kdapl_conn_params(struct kdapl_ep *ep, struct rdma_conn_param *param,
		       const void *pd, u8 pd_len);

/* conn_connect.c */
DAT_RETURN kdapl_ep_check_ready(struct kdapl_ep *ep);
DAT_RETURN kdapl_check_private_data(struct kdapl_ia *ia, DAT_COUNT size,
				    const void *data, int arg);

/* conn_down.c */
void kdapl_conn_add_event(struct kdapl_evd *evd, struct kdapl_conn_event *ce,
			  struct kdapl_later *later);
void kdapl_conn_withdraw_events(struct kdapl_ep *ep);
extern const struct kdapl_event_ops kdapl_conn_event_ops;

void kdapl_conn_init_down(struct kdapl_conn *conn);
void kdapl_partings_end(struct kdapl_hca *hca);

/* conn_ends.c */
extern const char * const kdapl_end_words[];
void kdapl_ends_note(struct kdapl_conn *conn);
int kdapl_ends_show(struct seq_file *m, void *unused);
void kdapl_show_addr(struct seq_file *m, const char *key, const void *addr);
void kdapl_show_user(struct seq_file *m, const char *name, u32 port, const char *consumer);

/* conn_siw.c */
void kdapl_siw_wake(struct rdma_cm_id *id);
void kdapl_siw_abort(struct rdma_cm_id *id);

/* conn_disconnect.c */
void kdapl_conn_watch_drain(struct kdapl_conn *conn, bool want);

#endif
