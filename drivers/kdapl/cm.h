/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Service points and connection requests. cm_sp.c has the calls of service points and
 * cm_listen.c their listeners; cm_cr.c has the life of a request, cm_accept.c and
 * cm_handoff.c two of its answers.
 */
#ifndef KDAPL_CM_H
#define KDAPL_CM_H

#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>
#include <dat/kdat_portal.h>
#include "evd.h"
#include "handle.h"

struct kdapl_ep;

/*
 * struct kdapl_sp - service point: PSP, RSP or CSP
 * @obj: members common to all objects
 * @evd: EVD for the requests; referenced, and used until the service point is freed
 * @qual: port
 * @flags: PSP: who creates the Endpoint of a request
 * @comm: CSP: the consumer's transport, for queries
 * @addr: CSP: the consumer's address, for queries
 * @ep: RSP: the reserved Endpoint, referenced; otherwise NULL
 * @mutex: protects @listeners, @nids and @everywhere
 * @listeners: struct kdapl_listener, see there
 * @nids: number of @listeners
 * @listening: false once the service point does not listen any more
 * @everywhere: listens at all addresses of the IA, also at addresses that come later
 * @pending: number of requests whose event has not been reaped
 */
struct kdapl_sp {
	struct kdapl_obj obj;
	struct kdapl_evd *evd;
	DAT_CONN_QUAL qual;
	DAT_PSP_FLAGS flags;
	DAT_COMM comm;
	struct sockaddr_storage addr;
	struct kdapl_ep *ep;
	struct mutex mutex;		/* see above */
	struct list_head listeners;
	unsigned int nids;
	bool listening;
	bool everywhere;
	atomic_t pending;
};

/*
 * struct kdapl_listener - one address that a service point listens at
 * @link: entry in sp->listeners
 * @id: the listening id
 */
struct kdapl_listener {
	struct list_head link;
	struct rdma_cm_id *id;
};

/*
 * struct kdapl_sp_args - arguments of kdapl_sp_create()
 * @type: handle type
 * @evd: handle of the EVD, not checked yet
 * @evd_arg: DAT_INVALID_ARGn for a wrong @evd
 * @qual: port, or 0 for any
 * @flags: PSP: who creates the Endpoint of a request
 * @ep: RSP: the Endpoint, of the same IA; the caller holds a reference
 * @comm: CSP: the consumer's transport
 * @addr: CSP: address with the port; the wildcard means all addresses of the IA
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

/* Values of kdapl_cr.claimed. */
enum {
	KDAPL_CR_OPEN,			/* may be answered or cancelled */
	KDAPL_CR_CLAIMED,		/* is being, or was, answered */
	KDAPL_CR_CANCELLED,		/* cannot be accepted; the consumer knows the handle */
};

/*
 * struct kdapl_cr - connection request
 * @obj: members common to all objects
 * @ev: event of the request; holds a reference while queued
 * @mutex: protects @id
 * @claimed: who has the right to answer the request, or to cancel it
 * @id: the rdma_cm id that came with the request; NULL once the request was
 *	accepted, rejected, handed off or cancelled
 * @sp: service point at which the request arrived; referenced
 * @ep: Endpoint created by the provider, or that of the RSP; referenced; or NULL
 * @local: local address
 * @remote: address of the peer; over InfiniBand and RoCE as stated by the peer
 * @gid: GID that the peer's packets come from and ours go to; zero over iWARP
 * @responder_resources: RDMA Reads that the peer asks this side to serve
 * @initiator_depth: RDMA Reads that the peer can serve
 * @pd_len: length of @pd
 * @pd: private data of the peer
 * @down: takes a cancelled request down; holds a reference while queued
 */
struct kdapl_cr {
	struct kdapl_obj obj;
	struct kdapl_event ev;
	struct mutex mutex;		/* see above */
	atomic_t claimed;
	struct rdma_cm_id *id;
	struct kdapl_sp *sp;
	struct kdapl_ep *ep;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	union ib_gid gid;
	u8 responder_resources;
	u8 initiator_depth;
	u8 pd_len;
	u8 pd[KDAPL_MAX_PRIVATE_DATA];
	struct work_struct down;
};

static inline bool kdapl_cr_is_cancelled(const struct kdapl_cr *cr)
{
	return atomic_read(&cr->claimed) == KDAPL_CR_CANCELLED;
}

/* cm_listen.c */
void kdapl_sp_destroy(struct kdapl_sp *sp);
DAT_RETURN kdapl_sp_create(struct kdapl_ia *ia, const struct kdapl_sp_args *args,
			   DAT_HANDLE *handle, DAT_CONN_QUAL *qual);
struct kdapl_sp *kdapl_sp_find(struct kdapl_ia *ia, DAT_CONN_QUAL qual);
bool kdapl_sps_update(struct kdapl_ia *ia);

/* cm_cr.c */
extern const struct kdapl_event_ops kdapl_cr_event_ops;

struct kdapl_cr *kdapl_cr_alloc(struct kdapl_sp *sp);
struct kdapl_cr *kdapl_cr_create(struct kdapl_sp *sp, struct rdma_cm_id *id,
				 struct rdma_cm_event *event);
void kdapl_cr_deliver(struct kdapl_cr *cr);
bool kdapl_cr_claim(struct kdapl_cr *cr);
void kdapl_cr_cancel_claimed(struct kdapl_cr *cr);
void kdapl_cr_host(DAT_CR_HANDLE cr, const struct dat_cr_param *param, struct kdat_host *host);
void kdapl_cr_forget(struct kdapl_cr *cr);
bool kdapl_cr_withdraw(struct kdapl_cr *cr);
void kdapl_cr_return_ep(struct kdapl_cr *cr, DAT_EP_STATE then);
void kdapl_cr_set_addrs(struct kdapl_cr *cr, struct kdapl_ep *ep);
DAT_RETURN kdapl_cr_too_late(struct kdapl_cr *cr);
int kdapl_cr_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);

#endif
