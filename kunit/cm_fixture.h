/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the suites of connections beyond the everyday share. */
#ifndef KDAPL_KUNIT_CM_FIXTURE_H
#define KDAPL_KUNIT_CM_FIXTURE_H

#include "fixture.h"

#define CM_TIMEOUT	(5 * USEC_PER_SEC)

static inline DAT_RETURN cm_connect(struct kd_side *a, struct kd_side *p,
				    u16 port, DAT_TIMEOUT timeout, DAT_QOS qos,
				    DAT_CONNECT_FLAGS flags)
{
	return dat_ep_connect(a->ep, p->addr, port, timeout, 0, NULL, qos,
			      flags);
}

static inline void cm_accept(struct kd_side *a, struct kd_side *p)
{
	KD_ASSERT_OK(a->test, dat_cr_accept(kd_expect_cr(p), p->ep, 0, NULL));
	kd_expect_event(a->test, a->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
	kd_expect_event(a->test, p->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
}

static inline void cm_ping(struct kd_side *a, struct kd_side *p)
{
	kd_recv(p, 0, 64, 1);
	kd_send(a, 0, 64, 2);
	kd_expect_dto(a->test, p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(a->test, a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

static inline void cm_again(struct kd_side *s)
{
	KD_ASSERT_OK(s->test, dat_ep_reset(s->ep));
	kd_drain(s->conn_evd);
	kd_drain(s->recv_evd);
	kd_drain(s->req_evd);
}

#endif
