// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared Receive Queues on a device that has room for what the consumer asks for, and for
 * no more (contract S1, S3).
 */
#include <linux/module.h>
#include "device.h"

#define ASKED	100		/* buffers; kDAPL asks for twice as many */

static struct {
	struct kd_hook device;
	u32 refused;		/* the size that was refused last */
} tight;

static int tight_create_srq(struct ib_srq *srq, struct ib_srq_init_attr *attr,
			    struct ib_udata *udata)
{
	if (attr->attr.max_wr > ASKED) {
		tight.refused = attr->attr.max_wr;
		return -ENOMEM;
	}
	return tight.device.real.create_srq(srq, attr, udata);
}

/* The queue is made without headroom, and holds what it was made for. */
static void S3_no_headroom(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, &(struct kd_opts) { .no_ep = true });
	int i;

	tight.refused = 0;
	kd_hook(test, c.p->name, &tight.device)->ops.create_srq = tight_create_srq;
	c.p->srq = kd_srq(c.p, ASKED);
	KUNIT_EXPECT_GT(test, tight.refused, ASKED);
	c.a->ep = kd_ep(c.a, NULL);
	c.p->ep = kd_ep(c.p, NULL);
	for (i = 0; i < ASKED; i++)
		kd_recv(c.p, i * 64, 64, i);
	kd_connect_pair(c.a, c.p);
	for (i = 0; i < ASKED; i++) {
		kd_send(c.a, 0, 64, i);
		kd_expect_dto(test, c.a->req_evd, i, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, c.p->recv_evd, i, DAT_DTO_SUCCESS, NULL);
	}
}

static struct kunit_case headroom_cases[] = {
	KUNIT_CASE_PARAM(S3_no_headroom, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-srq-headroom", headroom_cases, "devices without room for headroom");
