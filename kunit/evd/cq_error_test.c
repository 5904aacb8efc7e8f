// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A completion queue that the device reports to have failed, on simulated adapters.
 * What was on it is lost, so its connections end: N7.
 */
#include <linux/module.h>
#include "device.h"
#include "kdapl_sim.h"
#include "srq_fixture.h"

#define BUFFERS	8

static void sim_reset(void *dev)
{
	kdapl_sim_reset(dev);
}

/* Open a bench whose side @in has @len buffers in an SRQ, or none. */
static struct rx_bench *cq_error_open(struct kunit *test, int len,
				      struct ib_device **dev)
{
	*dev = kd_device(test, *(const char * const *)test->param_value);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, sim_reset, *dev));
	return rx_open(test, len);
}

static void expect_failed(struct rx_bench *b, struct rx_link *link)
{
	rx_expect_broken(b, link);
	kd_expect_event(b->test, b->out->conn_evd,
			DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	rx_expect_async(b, DAT_ASYNC_ERROR_EVD_OVERFLOW, b->in->recv_evd,
			DAT_EVD_OVERFLOW_ERROR);
}

/* The receive of a message is lost: it completes as flushed, and all others do. */
static void N7_cq_error(struct kunit *test)
{
	struct ib_device *dev;
	struct rx_bench *b = cq_error_open(test, 0, &dev);
	struct rx_link *link = rx_link(b);
	int i;

	rx_post(b, link, 4);
	kdapl_sim_set(dev, KDAPL_SIM_cq_overflow, 1);
	KD_ASSERT_OK(test, rx_try_send(b, link));
	expect_failed(b, link);
	for (i = 0; i < 4; i++)
		kd_expect_dto(test, b->in->recv_evd, i,
			      DAT_DTO_ERR_FLUSHED, NULL);
	kd_drain(b->out->req_evd);
	/* Another connection gets another CQ. */
	rx_reset(b, link);
	rx_connect(b, link);
	rx_deliver(b, link);
}

/* The buffer of an SRQ that is lost on its way comes back to the SRQ. */
static void R4_cq_error(struct kunit *test)
{
	struct ib_device *dev;
	struct rx_bench *b = cq_error_open(test, BUFFERS, &dev);
	DAT_EVD_HANDLE evd = b->in->recv_evd;
	struct rx_link *idle, *link;
	int i;

	b->in->recv_evd = kd_evd(b->in, DAT_EVD_DTO_FLAG, 64,
				 DAT_UPCALL_NOTIFY);
	idle = rx_link(b);
	b->in->recv_evd = evd;
	link = rx_link(b);
	rx_post(b, NULL, BUFFERS);
	kdapl_sim_set(dev, KDAPL_SIM_cq_overflow, 1);
	KD_ASSERT_OK(test, rx_try_send(b, link));
	expect_failed(b, link);
	kd_drain(b->out->req_evd);
	/* The one that is left has not got it, as two of its messages tell. */
	for (i = 0; i < 2; i++) {
		KD_ASSERT_OK(test, rx_try_send(b, idle));
		rx_sent(b);
	}
	rx_wait_counts(b, BUFFERS - 2, BUFFERS);
}

static struct kunit_case cq_error_cases[] = {
	KUNIT_CASE_PARAM(N7_cq_error, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R4_cq_error, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-cq-error", cq_error_cases, "completion queues that fail");
