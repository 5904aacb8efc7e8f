/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What cm_test.c and cm_device_test.c share. */
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

static inline void cm_again(struct kd_side *s)
{
	KD_ASSERT_OK(s->test, dat_ep_reset(s->ep));
	kd_drain(s->conn_evd);
	kd_drain(s->recv_evd);
	kd_drain(s->req_evd);
}

#endif
