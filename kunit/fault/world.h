/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: objects for calls to work on, and ways back to where a call began.
 *
 * There are two sides on one device, and the passive one always listens. Each
 * has an Endpoint "ep", connected when a call needs it, and a spare one that is
 * never connected when a call begins.
 */
#ifndef KDAPL_KUNIT_FAULT_WORLD_H
#define KDAPL_KUNIT_FAULT_WORLD_H

#include <linux/in.h>
#include "ops.h"

#define LONG_TIME	(60 * USEC_PER_SEC)

/*
 * struct world - where calls are made
 * @h: what the call made, or is to free
 * @h2: something else it needs
 * @cr: a request that waits for an answer
 * @fired: the last call succeeded though something failed in it
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
	u16 other_port;			/* where the provider makes Endpoints */
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
	} out;				/* for what nobody looks at */
};

static DAT_EP_STATE state_of(DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state = -1;

	dat_ep_get_status(ep, &state, NULL, NULL);
	return state;
}

static void drain_side(struct kd_side *s)
{
	kd_drain(s->recv_evd);
	kd_drain(s->req_evd);
	kd_drain(s->conn_evd);
	kd_drain(s->async_evd);
}

/* Back to UNCONNECTED, whatever state the EP is in. */
static void unconnect(struct world *w, DAT_EP_HANDLE ep)
{
	dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG);
	KD_EXPECT_OK(w->test, dat_ep_reset(ep));
}

static void unconnect_pair(struct world *w)
{
	unconnect(w, w->a->ep);
	unconnect(w, w->p->ep);
	drain_side(w->a);
	drain_side(w->p);
}

/* ---- Requests ------------------------------------------------------------ */

static void drop_requests(struct world *w)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(w->p->cr_evd, &event) == DAT_SUCCESS)
		dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle,
			      0, NULL);
	if (w->cr)
		dat_cr_reject(w->cr, 0, NULL);
	w->cr = NULL;
}

/* The active spare EP asks for a connection. */
static DAT_RETURN connect_to(struct world *w, u16 port)
{
	return dat_ep_connect(w->a_spare, w->p->addr, port, LONG_TIME, 0, NULL,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/* ---- Connected ----------------------------------------------------------- */

/* The EPs of both sides, connected; the passive one with a receive. */
static void need_pair(struct world *w)
{
	if (kd_state(w->a) == DAT_EP_STATE_CONNECTED &&
	    kd_state(w->p) == DAT_EP_STATE_CONNECTED)
		return;
	unconnect_pair(w);
	kd_recv(w->p, 0, 4096, 1);
	kd_connect_start(w->a, w->p, w->port);
	kd_accept(w->a, w->p);
}

static DAT_DTO_COMPLETION_STATUS status_of(const DAT_EVENT *event)
{
	if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT)
		return event->event_data.rmr_completion_event_data.status;
	return event->event_data.dto_completion_event_data.status;
}

/*
 * A request was posted. What the device would not take is flushed, and the
 * connection broken.
 */
static void end_post(struct world *w)
{
	struct kunit *test = w->test;
	DAT_EVENT event = { };

	KUNIT_EXPECT_TRUE(test, kd_wait_event(w->a->req_evd, &event,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, (u32)status_of(&event),
			(u32)(w->fired ? DAT_DTO_ERR_FLUSHED :
					 DAT_DTO_SUCCESS));
	if (w->fired)
		kd_expect_event(test, w->a->conn_evd,
				DAT_CONNECTION_EVENT_BROKEN, NULL);
	unconnect_pair(w);
}

/* A fast registration that nothing is bound to, on a connected EP. */
static void need_fmr(struct world *w)
{
	need_pair(w);
	if (!w->h)
		KD_ASSERT_OK(w->test,
			     dat_lmr_allocate(w->a->ia, w->a->pz, 4,
					      DAT_LMR_SCOPE_PZ,
					      (DAT_LMR_HANDLE *)&w->h));
}

static DAT_RETURN bind_fmr(struct world *w)
{
	DAT_REGION_DESCRIPTION region = { .for_physical = &w->page };
	DAT_LMR_CONTEXT lc;

	return dat_lmr_fmr(w->h, DAT_MEM_TYPE_PHYSICAL, region, 1,
			   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, w->a->ep,
			   kd_cookie(3), 0, &lc, &w->rmr_context);
}

static void free_fmr(struct world *w)
{
	if (!w->h)
		return;
	KD_EXPECT_OK(w->test, dat_lmr_free(w->h));
	w->h = NULL;
}

static void need_rmr(struct world *w)
{
	need_pair(w);
	if (!w->h)
		KD_ASSERT_OK(w->test, dat_rmr_create(w->a->pz,
						     (DAT_RMR_HANDLE *)&w->h));
}

static DAT_RETURN bind_rmr(struct world *w)
{
	return dat_rmr_bind(w->h, w->a->buf->lmr, &w->seg,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, w->a->ep,
			    kd_cookie(4), 0, &w->rmr_context);
}

static void free_rmr(struct world *w)
{
	if (!w->h)
		return;
	KD_EXPECT_OK(w->test, dat_rmr_free(w->h));
	w->h = NULL;
}

/* ---- Beginning ----------------------------------------------------------- */

static struct world *make_world(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->test = test;
	w->a = kd_open(test, ia);
	w->p = kd_open(test, ia);
	replace_operations(test, ia);
	kd_setup(w->a, NULL);
	kd_setup(w->p, NULL);
	w->a_spare = kd_ep(w->a, NULL);
	w->p_spare = kd_ep(w->p, NULL);
	w->port = kd_port();
	w->other_port = kd_port();
	w->free_port = kd_port();
	w->psp = kd_psp(w->p, w->port, DAT_PSP_CONSUMER_FLAG);
	w->other_psp = kd_psp(w->p, w->other_port, DAT_PSP_PROVIDER_FLAG);
	memcpy(&w->to, w->p->addr, sizeof(w->to));
	w->to_free = w->to;
	w->to.sin_port = htons(w->port);
	w->to_free.sin_port = htons(w->free_port);
	w->soft_evd = kd_evd(w->a, DAT_EVD_SOFTWARE_FLAG, 16,
			     DAT_UPCALL_DISABLE);
	w->spare_evd = kd_evd(w->a, DAT_EVD_DTO_FLAG, 16, DAT_UPCALL_DISABLE);
	w->a->srq = kd_srq(w->a, 8);
	w->srq = w->a->srq;
	w->srq_ep = kd_ep(w->a, NULL);
	w->a->srq = NULL;
	w->seg = kd_seg(w->a->buf, 0, 64);
	w->sink = kd_seg(w->p->buf, 4096, 4096);
	w->remote = kd_remote(w->p->buf, 8192, 64);
	w->page = page_to_phys(virt_to_page(w->a->buf->va));
	/* From the first connection on the EVDs have their CQs. */
	need_pair(w);
	unconnect_pair(w);
	return w;
}

/* Everything can be freed, and then the IAs are empty. */
static void end_world(struct world *w)
{
	struct kunit *test = w->test;
	struct kd_side *side[] = { w->a, w->p };
	struct kd_buf *buf;
	int i;

	unconnect_pair(w);
	KD_EXPECT_OK(test, dat_ep_free(w->srq_ep));
	KD_EXPECT_OK(test, dat_srq_free(w->srq));
	KD_EXPECT_OK(test, dat_evd_free(w->soft_evd));
	KD_EXPECT_OK(test, dat_evd_free(w->spare_evd));
	KD_EXPECT_OK(test, dat_ep_free(w->a_spare));
	KD_EXPECT_OK(test, dat_ep_free(w->p_spare));
	KD_EXPECT_OK(test, dat_psp_free(w->psp));
	KD_EXPECT_OK(test, dat_psp_free(w->other_psp));
	for (i = 0; i < ARRAY_SIZE(side); i++) {
		KD_EXPECT_OK(test, dat_ep_free(side[i]->ep));
		list_for_each_entry(buf, &side[i]->bufs, link)
			KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
		KD_EXPECT_OK(test, dat_evd_free(side[i]->recv_evd));
		KD_EXPECT_OK(test, dat_evd_free(side[i]->req_evd));
		KD_EXPECT_OK(test, dat_evd_free(side[i]->conn_evd));
		KD_EXPECT_OK(test, dat_evd_free(side[i]->cr_evd));
		KD_EXPECT_OK(test, dat_pz_free(side[i]->pz));
		KD_EXPECT_OK(test, dat_ia_close(side[i]->ia,
						DAT_CLOSE_GRACEFUL_FLAG));
		side[i]->ia = NULL;
	}
}

#endif /* KDAPL_KUNIT_FAULT_WORLD_H */
