// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What does not answer holds up nothing else: a device whose firmware hangs no other
 * device, and peers that hang no other Endpoint. There are more of them than a workqueue
 * runs at a time.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/in.h>
#include <linux/module.h>
#include <linux/workqueue.h>
#include "device.h"
#include "withhold.h"

#define HANGING		(WQ_DFL_ACTIVE + 44)
#define ROUNDS		5
#define TIMEOUT		(200 * USEC_PER_MSEC)

static struct {
	struct kd_hook device;
	struct completion go_on;
	atomic_t hanging;
} sick;

static int hang_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	int err;

	atomic_inc(&sick.hanging);
	kd_wake();
	wait_for_completion(&sick.go_on);
	err = sick.device.real.dealloc_pd(pd, udata);
	atomic_dec(&sick.hanging);
	kd_wake();
	return err;
}

static bool all_hang(void *unused)
{
	return atomic_read(&sick.hanging) >= WQ_DFL_ACTIVE;
}

static bool none_hangs(void *unused)
{
	return !atomic_read(&sick.hanging);
}

static void recover(void *data)
{
	struct kunit *test = data;

	complete_all(&sick.go_on);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(none_hangs, NULL, KD_TIMEOUT_MS));
}

/* Let Protection Zones of @s hang in their release. */
static void make_sick(struct kunit *test, struct kd_side *s)
{
	DAT_PZ_HANDLE *pz;
	int i;

	pz = kunit_kcalloc(test, HANGING, sizeof(*pz), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pz);
	for (i = 0; i < HANGING; i++)
		KD_ASSERT_OK(test, dat_pz_create(s->ia, &pz[i]));
	init_completion(&sick.go_on);
	atomic_set(&sick.hanging, 0);
	kd_hook(test, s->name, &sick.device)->ops.dealloc_pd = hang_dealloc_pd;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, recover, test));
	for (i = 0; i < HANGING; i++)
		KD_ASSERT_OK(test, dat_pz_free(pz[i]));
	KUNIT_ASSERT_TRUE_MSG(test, kd_wait_until(all_hang, NULL, KD_TIMEOUT_MS),
			      "%d hang", atomic_read(&sick.hanging));
}

static struct {
	struct kd_hook device;
	atomic_t released;
} healthy;

static int count_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	atomic_inc(&healthy.released);
	kd_wake();
	return healthy.device.real.dealloc_pd(pd, udata);
}

static bool is_released(void *n)
{
	return atomic_read(&healthy.released) >= *(int *)n;
}

/* An attempt to connect to an address that nobody has ends in time. */
static void expect_timeout(struct kd_side *s)
{
	struct sockaddr_in to = kd_bed_v4(s->name, 99);
	DAT_EVENT event;

	KD_ASSERT_OK(s->test, dat_ep_connect(s->ep, (void *)&to, kd_port(), TIMEOUT, 0,
					     NULL, DAT_QOS_BEST_EFFORT, 0));
	kd_expect_event(s->test, s->conn_evd, DAT_CONNECTION_EVENT_TIMED_OUT, &event);
	KD_ASSERT_OK(s->test, dat_ep_reset(s->ep));
}

/* Connections, time-outs and releases of one device go on beside a sick one. */
static void beside_a_sick_device(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;
	struct kd_side *other = kd_open(test, kd_other_bed(kd_bed_of(ia))->ia);
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_PZ_HANDLE pz;
	int i;

	make_sick(test, other);
	atomic_set(&healthy.released, 0);
	kd_hook(test, ia, &healthy.device)->ops.dealloc_pd = count_dealloc_pd;
	for (i = 1; i <= ROUNDS; i++) {
		KD_ASSERT_OK(test, dat_pz_create(c.a->ia, &pz));
		KD_ASSERT_OK(test, dat_pz_free(pz));
		KUNIT_ASSERT_TRUE_MSG(test, kd_wait_until(is_released, &i, KD_TIMEOUT_MS),
				      "round %d: not released", i);
		expect_timeout(c.a);
		kd_connect_pair(c.a, c.p);
		kd_ping(c.a, c.p);
		kd_disconnect(c.a, c.p);
		KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
		KD_ASSERT_OK(test, dat_ep_reset(c.p->ep));
	}
	KUNIT_EXPECT_TRUE(test, all_hang(NULL));
}

/* ---- Peers that do not send what they have announced ----------------------------- */

/* The most that a workqueue runs at a time, before Linux 6.13, and some more. */
#define SILENT		(512 + 8)

/* Accept a request of @c->a whose peer will be silent. Return the Endpoint. */
static DAT_EP_HANDLE silent_connect(struct kd_pair *c, const DAT_EP_ATTR *attr, u16 port)
{
	DAT_EP_HANDLE passive = kd_ep(c->p, attr), own = c->a->ep;
	unsigned int n = kd_withheld();

	c->a->ep = kd_ep(c->a, attr);
	kd_connect_start(c->a, c->p, port);
	c->a->ep = own;
	KD_ASSERT_OK(c->a->test, dat_cr_accept(kd_expect_cr(c->p), passive, 0, NULL));
	kd_expect_event(c->a->test, c->a->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
	kd_expect_withheld(c->a->test, n + 1);
	return passive;
}

/* Connections begin and end beside many whose peers are silent and that were given up. */
static void beside_silent_peers(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_PSP_HANDLE psp;
	u16 port = kd_port();
	int i;

	if (!kd_is_iwarp(c.a))
		kunit_skip(test, "only peers over iWARP announce anything");
	attr.max_recv_dtos = 1;
	attr.max_request_dtos = 1;
	attr.max_rdma_read_out = 0;
	psp = kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	kd_withhold_on(test, c.p->name);
	kd_withhold(test, SILENT);
	for (i = 0; i < SILENT; i++)
		KD_ASSERT_OK(test, dat_ep_free(silent_connect(&c, &attr, port)));
	for (i = 0; i < ROUNDS; i++) {
		kd_connect_pair(c.a, c.p);
		kd_ping(c.a, c.p);
		kd_disconnect(c.a, c.p);
		KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
		KD_ASSERT_OK(test, dat_ep_reset(c.p->ep));
	}
	/* Now their peers learn that they were given up. */
	KUNIT_EXPECT_EQ(test, kd_withheld(), SILENT);
	kd_report_withheld(NULL);
	for (i = 0; i < SILENT; i++)
		kd_expect_disconnected(c.a, NULL);
	KD_EXPECT_OK(test, dat_psp_free(psp));
}

static struct kunit_case sick_device_cases[] = {
	KUNIT_CASE_PARAM(beside_a_sick_device, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(beside_silent_peers, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-sick-device", sick_device_cases, "a device that does not answer");
