// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fault_test.ko: the state that a call which fails must leave as it was.
 */
#include <linux/string.h>
#include "seen.h"

void kdf_look_around(struct world *w, struct seen *seen)
{
	DAT_EP_HANDLE ep[SEEN_EPS] = {
		w->a->ep, w->p->ep, w->a_spare, w->p_spare, w->srq_ep
	};
	DAT_EVD_HANDLE evd[SEEN_EVDS] = {
		w->a->recv_evd, w->a->req_evd, w->a->conn_evd, w->p->cr_evd,
		w->p->conn_evd, w->soft_evd, w->spare_evd
	};
	struct kunit *test = w->test;
	int i;

	memset(seen, 0, sizeof(*seen));
	for (i = 0; i < SEEN_EPS; i++) {
		KD_EXPECT_OK(test, dat_ep_query(ep[i], DAT_EP_FIELD_ALL,
						&seen->ep[i].param));
		KD_EXPECT_OK(test, dat_ep_get_status(ep[i], &seen->ep[i].state,
						     &seen->ep[i].recv_idle,
						     &seen->ep[i].request_idle));
		KD_EXPECT_OK(test, dat_ep_recv_query(ep[i], &seen->ep[i].held,
						     NULL));
	}
	for (i = 0; i < SEEN_EVDS; i++)
		KD_EXPECT_OK(test, dat_evd_query(evd[i], DAT_EVD_FIELD_ALL,
						 &seen->evd[i]));
	KD_EXPECT_OK(test, dat_srq_query(w->srq, DAT_SRQ_FIELD_ALL,
					 &seen->srq));
	if (w->cr)
		KD_EXPECT_OK(test, dat_cr_query(w->cr, DAT_CR_FIELD_ALL,
						&seen->cr));
}
