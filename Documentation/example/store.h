/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A block store in the server's memory (server_ia=rxe0/1) and its client
 * (client_ia=rxe0/1 peer=10.8.0.1), or both in one module: an example of RDMA
 * with kDAPL. For each request the client binds an LMR to its pages and sends
 * their rmr_context; the server fetches the pages by RDMA Read or fills them by
 * RDMA Write, and its reply invalidates the context. The client does not touch
 * the pages while the LMR is bound.
 *
 * Each role has one EVD, whose upcalls run one at a time, in process context, so
 * that nothing here needs a lock. When a connection ends, the server reaps all
 * completions of its Endpoint before it uses the buffers again; the client closes
 * its IA, which returns when no device uses its memory, and begins anew.
 */
#ifndef STORE_H
#define STORE_H

#include <linux/module.h>
#include <linux/workqueue.h>
#include <dat/kdat.h>
#include <dat/kdat_linux.h>

#define PORT	5201
#define RETRY	(HZ / 5)
#define BLOCKS	8		/* in the store; the client uses SLOTS of them */
#define PAGES	4		/* of a block */
#define BLOCK	(PAGES * PAGE_SIZE)
#define CONNS	4		/* clients that the server serves at a time */
#define SLOTS	4		/* requests that a client may have unanswered */

enum op_code {
	OP_STORE = 1,
	OP_LOAD = 2
};

/* A message: a request, or the reply to it, which has the tag and the status. */
struct msg {
	__le32 tag;		/* the client's, comes back in the reply */
	__le32 op;
	__le32 status;
	__le32 block;
	__le32 length;		/* bytes of the client's memory, ... */
	__le32 rmr_context;
	__le64 address;		/* ... as the peer addresses them */
};

/* What both roles have. */
struct role {
	const char *ia_name;
	bool stopping;
	struct delayed_work restart;
	u32 (*start)(struct role *role);	/* returns DAT_RETURN */
	DAT_UPCALL_FUNC on_event;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;
	struct msg *msgs;
	DAT_LMR_CONTEXT msgs_context;
};

static inline DAT_CONTEXT as_cookie(void *pointer)
{
	return (DAT_CONTEXT) { .as_ptr = pointer };
}

/* store_main.c */
DAT_RETURN post_send(struct role *role, DAT_EP_HANDLE ep, struct msg *msg,
		     void *cookie, DAT_RMR_CONTEXT rmr_context);
DAT_RETURN post_recv(struct role *role, DAT_EP_HANDLE ep, struct msg *msg,
		     void *cookie);
DAT_RETURN register_local(struct role *role, void *memory, DAT_VLEN len,
			  DAT_LMR_CONTEXT *context);
DAT_RETURN open_ia(struct role *role, int msgs);
DAT_RETURN make_ep(struct role *role, int recvs, int requests,
		   DAT_EP_HANDLE *ep);

/* store_server.c, store_client.c: NULL if there is no memory */
struct role *server_alloc(void);
void server_free(void);
struct role *client_alloc(void);
void client_free(void);

#endif
