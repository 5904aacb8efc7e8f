// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_fault.ko: objects for calls to work on, and ways back to the state
 * before a call, see world.h.
 */
#include <linux/in.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include "world.h"

DAT_EP_STATE kdf_state_of(DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state = -1;

	dat_ep_get_status(ep, &state, NULL, NULL);
	return state;
}
EXPORT_SYMBOL_GPL(kdf_state_of);

void kdf_drain_side(struct kd_side *s)
{
	kd_drain(s->recv_evd);
	kd_drain(s->req_evd);
	kd_drain(s->conn_evd);
	kd_drain(s->async_evd);
}
EXPORT_SYMBOL_GPL(kdf_drain_side);

/* Bring an EP back to UNCONNECTED from any state. */
void kdf_unconnect(struct world *w, DAT_EP_HANDLE ep)
{
	dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG);
	KD_EXPECT_OK(w->test, dat_ep_reset(ep));
}
EXPORT_SYMBOL_GPL(kdf_unconnect);

void kdf_unconnect_pair(struct world *w)
{
	kdf_unconnect(w, w->a->ep);
	kdf_unconnect(w, w->p->ep);
	kdf_drain_side(w->a);
	kdf_drain_side(w->p);
}
EXPORT_SYMBOL_GPL(kdf_unconnect_pair);

/* ---- Requests ------------------------------------------------------------ */

void kdf_drop_requests(struct world *w)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(w->p->cr_evd, &event) == DAT_SUCCESS)
		dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle,
			      0, NULL);
	if (w->cr)
		dat_cr_reject(w->cr, 0, NULL);
	w->cr = NULL;
}
EXPORT_SYMBOL_GPL(kdf_drop_requests);

/* Let the active spare EP ask for a connection. */
DAT_RETURN kdf_connect_to(struct world *w, u16 port)
{
	return dat_ep_connect(w->a_spare, w->p->addr, port, LONG_TIME, 0, NULL,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}
EXPORT_SYMBOL_GPL(kdf_connect_to);

/* ---- Connected ----------------------------------------------------------- */

/*
 * Have the EPs of both sides connected, the passive one with a receive posted.
 */
void kdf_need_pair(struct world *w)
{
	if (kd_state(w->a) == DAT_EP_STATE_CONNECTED &&
	    kd_state(w->p) == DAT_EP_STATE_CONNECTED)
		return;
	kdf_unconnect_pair(w);
	kd_recv(w->p, 0, 4096, 1);
	kd_connect_start(w->a, w->p, w->port);
	kd_accept(w->a, w->p);
}
EXPORT_SYMBOL_GPL(kdf_need_pair);

DAT_DTO_COMPLETION_STATUS kdf_status_of(const DAT_EVENT *event)
{
	if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT)
		return event->event_data.rmr_completion_event_data.status;
	return event->event_data.dto_completion_event_data.status;
}
EXPORT_SYMBOL_GPL(kdf_status_of);

/*
 * Reap a request that was posted. If the device did not take it, it is flushed
 * and the connection is broken.
 */
void kdf_end_post(struct world *w)
{
	struct kunit *test = w->test;
	DAT_EVENT event = { };

	KUNIT_EXPECT_TRUE(test, kd_wait_event(w->a->req_evd, &event,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, (u32)kdf_status_of(&event),
			(u32)(w->fired ? DAT_DTO_ERR_FLUSHED :
					 DAT_DTO_SUCCESS));
	if (w->fired)
		kd_expect_event(test, w->a->conn_evd,
				DAT_CONNECTION_EVENT_BROKEN, NULL);
	kdf_unconnect_pair(w);
}
EXPORT_SYMBOL_GPL(kdf_end_post);

/* Have an unbound LMR for fast registration, and a connected EP. */
void kdf_need_fmr(struct world *w)
{
	kdf_need_pair(w);
	if (!w->h)
		KD_ASSERT_OK(w->test,
			     dat_lmr_allocate(w->a->ia, w->a->pz, 4,
					      DAT_LMR_SCOPE_PZ,
					      (DAT_LMR_HANDLE *)&w->h));
}
EXPORT_SYMBOL_GPL(kdf_need_fmr);

DAT_RETURN kdf_bind_fmr(struct world *w)
{
	DAT_REGION_DESCRIPTION region = { .for_physical = &w->page };
	DAT_LMR_CONTEXT lc;

	return dat_lmr_fmr(w->h, DAT_MEM_TYPE_PHYSICAL, region, 1,
			   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, w->a->ep,
			   kd_cookie(3), 0, &lc, &w->rmr_context);
}
EXPORT_SYMBOL_GPL(kdf_bind_fmr);

void kdf_free_fmr(struct world *w)
{
	if (!w->h)
		return;
	KD_EXPECT_OK(w->test, dat_lmr_free(w->h));
	w->h = NULL;
}
EXPORT_SYMBOL_GPL(kdf_free_fmr);

void kdf_need_rmr(struct world *w)
{
	kdf_need_pair(w);
	if (!w->h)
		KD_ASSERT_OK(w->test, dat_rmr_create(w->a->pz,
						     (DAT_RMR_HANDLE *)&w->h));
}
EXPORT_SYMBOL_GPL(kdf_need_rmr);

DAT_RETURN kdf_bind_rmr(struct world *w)
{
	return dat_rmr_bind(w->h, w->a->buf->lmr, &w->seg,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, w->a->ep,
			    kd_cookie(4), 0, &w->rmr_context);
}
EXPORT_SYMBOL_GPL(kdf_bind_rmr);

void kdf_free_rmr(struct world *w)
{
	if (!w->h)
		return;
	KD_EXPECT_OK(w->test, dat_rmr_free(w->h));
	w->h = NULL;
}
EXPORT_SYMBOL_GPL(kdf_free_rmr);

void kdf_need_bound_rmr(struct world *w)
{
	bool fresh = !w->h;

	kdf_need_rmr(w);
	if (!fresh)
		return;
	KD_ASSERT_OK(w->test, kdf_bind_rmr(w));
	kd_expect_event(w->test, w->a->req_evd, DAT_RMR_BIND_COMPLETION_EVENT,
			NULL);
}
EXPORT_SYMBOL_GPL(kdf_need_bound_rmr);

void kdf_end_rmr(struct world *w)
{
	kdf_end_post(w);
	kdf_free_rmr(w);
}
EXPORT_SYMBOL_GPL(kdf_end_rmr);

/* ---- Beginning ----------------------------------------------------------- */

struct world *kdf_make_world(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->test = test;
	w->a = kd_open(test, ia);
	w->p = kd_open(test, ia);
	kdf_replace_operations(test, ia);
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
	/* The first connection creates the CQs of the EVDs. */
	kdf_need_pair(w);
	kdf_unconnect_pair(w);
	return w;
}
EXPORT_SYMBOL_GPL(kdf_make_world);

/* Free everything, and expect that the IAs are empty then. */
void kdf_end_world(struct world *w)
{
	struct kunit *test = w->test;
	struct kd_side *side[] = { w->a, w->p };
	struct kd_buf *buf;
	int i;

	kdf_unconnect_pair(w);
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
EXPORT_SYMBOL_GPL(kdf_end_world);

MODULE_DESCRIPTION("What the suites of kdapl.ko about faults share");
MODULE_LICENSE("Dual BSD/GPL");
