// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared Receive Queues with several EVDs, long queues and long lists of events.
 */
#include <linux/module.h>
#include "device.h"
#include "srq_fixture.h"

/* ---- EVDs that come and go ----------------------------------------------- */

#define FEEDS	3
#define LONG	2000		/* buffers: more than the CQs have room for */

static struct {
	struct kd_hook device;
	DAT_EP_HANDLE victim;
	int calls;
} feeds;

/* The first CQ is resized when an Endpoint is freed, and with it its EVD leaves. */
static int feeds_resize_cq(struct ib_cq *cq, int cqe, struct ib_udata *udata)
{
	DAT_EP_HANDLE victim = xchg(&feeds.victim, NULL);

	feeds.calls++;
	if (victim)
		dat_ep_free(victim);
	return feeds.device.real.resize_cq(cq, cqe, udata);
}

/* Every CQ is made large enough, although an EVD leaves the SRQ meanwhile. */
static void S4_an_evd_leaves(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;
	struct rx_link *link[FEEDS];
	struct rx_bench *b;
	int i;

	if (kd_device(test, ia)->ops.driver_id != RDMA_DRIVER_RXE)
		kunit_skip(test, "SRQs are not resized natively");
	b = rx_open_on(test, ia, (struct kd_opts) { .srq_len = 8, .qlen = 64 });
	for (i = 0; i < FEEDS; i++) {
		b->in->recv_evd = kd_evd(b->in, DAT_EVD_DTO_FLAG, 64,
					 DAT_UPCALL_NOTIFY);
		link[i] = rx_link(b);
	}
	feeds.calls = 0;
	feeds.victim = link[0]->in;
	kd_hook(test, ia, &feeds.device)->ops.resize_cq = feeds_resize_cq;
	KD_EXPECT_OK(test, dat_srq_resize(b->in->srq, LONG));
	KUNIT_EXPECT_EQ(test, feeds.calls, FEEDS);
}

static struct kunit_case bounds_cases[] = {
	KUNIT_CASE_PARAM(S4_an_evd_leaves, kd_gen_ia),
	{}
};

static struct kunit_suite bounds_suite = {
	.name = "kdapl-bounds",
	.test_cases = bounds_cases,
};

kunit_test_suite(bounds_suite);

MODULE_DESCRIPTION("KUnit suite of kdapl.ko: many EVDs, buffers and events");
MODULE_LICENSE("Dual BSD/GPL");
