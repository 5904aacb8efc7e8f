/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections and service points: conn.c, connect.c, cr.c, sp.c,
 * listen.c.
 */
#ifndef KDAPL_CM_H
#define KDAPL_CM_H

#include "kdapl.h"

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
	bool given_up;			/* ended before data could flow */
	bool rts;			/* data may flow */
	bool dialled;			/* iWARP: the QP may receive already */
	bool stopped;			/* the QP is gone; ep->lock */
	DAT_EVENT_NUMBER end;
	struct mutex mutex;		/* setting up vs. taking down */
	struct mutex dial;		/* connecting vs. disconnecting */
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
DAT_RETURN kdapl_check_private_data(struct kdapl_ia *ia, DAT_COUNT size,
				    const void *data, int arg);
void kdapl_conn_put(struct kdapl_conn *conn);
int kdapl_conn_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);
bool kdapl_conn_end(struct kdapl_conn *conn, DAT_EVENT_NUMBER end);
void kdapl_ep_watch_drain(struct kdapl_ep *ep, bool want);
void kdapl_conn_linger(struct kdapl_ep *ep);
void kdapl_ia_settle(struct kdapl_ia *ia);
DAT_EVENT_NUMBER kdapl_conn_failure(struct kdapl_conn *conn, int err);
bool kdapl_ep_down(struct kdapl_ep *ep, DAT_EVENT_NUMBER end);
void kdapl_conn_wait(struct kdapl_ep *ep);
void kdapl_conn_params(struct kdapl_ep *ep, struct rdma_conn_param *param,
		       const void *pd, u8 pd_len);

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
	struct mutex mutex;		/* protects ids, nids */
	struct rdma_cm_id *ids[KDAPL_MAX_ADDRS];
	unsigned int nids;
	atomic_t pending;
};

/*
 * struct kdapl_sp_args - what the create calls differ in
 * @type: handle type
 * @evd: its handle
 * @evd_arg: DAT_INVALID_ARGn of @evd
 * @qual: port, or 0 for any
 * @ep: for an RSP, checked and referenced
 * @addr: for a CSP: its address, with the port; the wildcard stands for all
 */
struct kdapl_sp_args {
	DAT_HANDLE_TYPE type;
	DAT_EVD_HANDLE evd;
	int evd_arg;
	u16 qual;
	DAT_PSP_FLAGS flags;
	struct kdapl_ep *ep;
	DAT_COMM comm;
	const struct sockaddr_storage *addr;
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
	atomic_t claimed;		/* answered, or void */
	bool dead;			/* void; the consumer has not noticed */
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

DAT_RETURN kdapl_sp_create(struct kdapl_ia *ia, const struct kdapl_sp_args *args,
			   DAT_HANDLE *handle, DAT_CONN_QUAL *qual);
void kdapl_sp_destroy(struct kdapl_sp *sp);
void kdapl_sp_close(struct kdapl_sp *sp);
struct kdapl_sp *kdapl_sp_find(struct kdapl_ia *ia, DAT_CONN_QUAL qual);
struct kdapl_cr *kdapl_cr_create(struct kdapl_sp *sp, struct rdma_cm_id *id,
				 struct rdma_cm_event *event);
void kdapl_cr_cancel(struct kdapl_cr *cr);

#endif
