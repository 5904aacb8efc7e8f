// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How connections end when the two sides differ about it (contract N3): the passive
 * side ends at once.
 */
#include <linux/module.h>
#include "../sim/kdapl_sim.h"
#include "device.h"
#include "fixture.h"

/* Attribute IDs of messages of the CM */
#define CM_RTU	0x14

static void reset_switches(void *dev)
{
	kdapl_sim_reset(dev);
}

/* The simulated adapter of a side, whose switches are off when the case ends. */
static struct ib_device *sim(struct kd_side *s)
{
	struct ib_device *dev = kd_device(s->test, s->name);

	KUNIT_ASSERT_EQ(s->test, 0, kunit_add_action_or_reset(s->test,
							      reset_switches,
							      dev));
	return dev;
}

/* Lose the next message with this ID between the two sides of the case. */
static void lose(struct kd_side *s, u32 attr)
{
	struct ib_device *dev = sim(s);

	kdapl_sim_set(dev, KDAPL_SIM_drop_attr, attr);
	kdapl_sim_set(dev, KDAPL_SIM_drop_mads, 1);
}

static const void *gen_sim(const void *prev, char *desc)
{
	const struct kd_bed *bed = kd_gen_simulated_ia(prev, desc);

	/* iWARP has no messages of the CM. */
	while (bed && bed->traits & KD_IWARP)
		bed = kd_gen_simulated_ia(bed, desc);
	return bed;
}

/* ---- The passive side ends at once ---------------------------------------- */

/* The active side's last message is lost, so the passive side rejects it later. */
static void N3_rejected_when_established(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	lose(a, CM_RTU);
	kd_connect_start(a, p, port);
	KD_ASSERT_OK(test, dat_cr_accept(kd_expect_cr(p), p->ep, 0, NULL));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
	KD_ASSERT_OK(test, dat_ep_free(p->ep));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
	kd_expect_no_event(test, a->conn_evd);
}

#define ATTEMPTS 24

static void N3_accept_and_free(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();
	DAT_EVENT event;
	int i;

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < ATTEMPTS; i++) {
		kd_connect_start(a, p, port);
		KD_ASSERT_OK(test, dat_cr_accept(kd_expect_cr(p), p->ep, 0,
						 NULL));
		KD_ASSERT_OK(test, dat_ep_free(p->ep));
		p->ep = kd_ep(p, NULL);
		KUNIT_ASSERT_TRUE(test, kd_wait_event(a->conn_evd, &event,
						      KD_TIMEOUT_MS));
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			kd_expect_disconnected(a, NULL);
		KUNIT_ASSERT_TRUE(test, kd_wait_state(a->ep,
						      DAT_EP_STATE_DISCONNECTED));
		KD_ASSERT_OK(test, dat_ep_reset(a->ep));
		KUNIT_ASSERT_EQ(test, 0, kd_drain(a->conn_evd));
	}
}

static struct kunit_case conn_end_cases[] = {
	KUNIT_CASE_PARAM(N3_rejected_when_established, gen_sim),
	KUNIT_CASE_PARAM(N3_accept_and_free, kd_gen_ia),
	{}
};

static struct kunit_suite conn_end_suite = {
	.name = "kdapl-conn-end",
	.test_cases = conn_end_cases,
};

kunit_test_suite(conn_end_suite);

MODULE_DESCRIPTION("KUnit suite of kdapl.ko: ends of connections that differ");
MODULE_LICENSE("Dual BSD/GPL");
