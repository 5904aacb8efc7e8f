/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: objects for calls to work on, and ways back to the state before a
 * call. Implemented in world.c, kdapl_fault.ko.
 *
 * There are two sides on one device, and the passive one always listens. Each
 * side has an Endpoint "ep", which is connected when a call needs that, and a
 * spare one that is never connected when a call begins.
 */
#ifndef KDAPL_KUNIT_FAULT_WORLD_H
#define KDAPL_KUNIT_FAULT_WORLD_H

#include <linux/in.h>
#include "ops.h"

#define LONG_TIME	(60 * USEC_PER_SEC)

/*
 * struct world - the objects that calls work on
 * @h: the object that the call made or is to free
 * @h2: another object that the call needs
 * @cr: a request that waits for an answer
 * @fired: something has failed in the last call
 */
struct world {
	struct kunit *test;
	struct kd_side *a;
	struct kd_side *p;
	DAT_EP_HANDLE a_spare;
	DAT_EP_HANDLE p_spare;
	DAT_PSP_HANDLE psp;
	DAT_PSP_HANDLE other_psp;
	u16 port;
	u16 other_port;			/* its PSP has the provider make Endpoints */
	u16 free_port;
	struct sockaddr_in to;		/* @port of the passive side */
	struct sockaddr_in to_free;	/* its @free_port */
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE srq_ep;
	DAT_EVD_HANDLE soft_evd;
	DAT_EVD_HANDLE spare_evd;
	DAT_LMR_TRIPLET seg;		/* of a's buffer */
	DAT_LMR_TRIPLET sink;		/* of p's buffer */
	DAT_RMR_TRIPLET remote;		/* of p's buffer */
	DAT_PADDR page;
	void *h;
	void *h2;
	DAT_CR_HANDLE cr;
	DAT_RMR_CONTEXT rmr_context;
	bool fired;
	union {
		DAT_IA_ATTR ia;
		DAT_PROVIDER_ATTR provider;
		DAT_EP_PARAM ep;
		u64 words[256];
	} out;				/* for results that are not looked at */
};

DAT_EP_STATE kdf_state_of(DAT_EP_HANDLE ep);
void kdf_drain_side(struct kd_side *s);
void kdf_unconnect(struct world *w, DAT_EP_HANDLE ep);
void kdf_unconnect_pair(struct world *w);
void kdf_drop_requests(struct world *w);
DAT_RETURN kdf_connect_to(struct world *w, u16 port);
void kdf_need_pair(struct world *w);
DAT_DTO_COMPLETION_STATUS kdf_status_of(const DAT_EVENT *event);
void kdf_end_post(struct world *w);
void kdf_need_fmr(struct world *w);
DAT_RETURN kdf_bind_fmr(struct world *w);
void kdf_free_fmr(struct world *w);
void kdf_need_rmr(struct world *w);
DAT_RETURN kdf_bind_rmr(struct world *w);
void kdf_free_rmr(struct world *w);
void kdf_need_bound_rmr(struct world *w);
void kdf_end_rmr(struct world *w);
struct world *kdf_make_world(struct kunit *test);
void kdf_end_world(struct world *w);

#endif /* KDAPL_KUNIT_FAULT_WORLD_H */
