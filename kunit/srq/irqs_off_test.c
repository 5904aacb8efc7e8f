// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How long interrupts are off while calls deal with few and with many objects (contract
 * R8). The time is printed and not judged, as the host takes part in it; that it need not
 * grow is asserted by counting, see bounds_test.c. Kernels with lockdep have the
 * tracepoints that this needs; what they measure includes the device's driver.
 */
#include <linux/hardirq.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include "probe.h"
#include "srq_fixture.h"

#define ROUNDS	2

/* The section of this CPU that has begun, and the longest one of all CPUs. */
static DEFINE_PER_CPU(u64, since);
static DEFINE_PER_CPU(unsigned long, switches);
static u64 longest;

static unsigned long switches_of(const struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

static void went_off(void *unused, unsigned long ip, unsigned long parent_ip)
{
	__this_cpu_write(since, is_idle_task(current) ? 0 : ktime_get_mono_fast_ns());
	__this_cpu_write(switches, switches_of(current));
}

/* A task that was not running has not had interrupts off. */
static void came_on(void *unused, unsigned long ip, unsigned long parent_ip)
{
	u64 begin = __this_cpu_read(since);

	if (begin && __this_cpu_read(switches) == switches_of(current) &&
	    ktime_get_mono_fast_ns() - begin > READ_ONCE(longest))
		WRITE_ONCE(longest, ktime_get_mono_fast_ns() - begin);
	__this_cpu_write(since, 0);
}

/* An SRQ of @n buffers is given to the device anew when an Endpoint comes back. */
static u64 remake(struct kunit *test, int n)
{
	struct rx_bench *b = rx_open(test, n);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, n);
	rx_disconnect(b, link);
	rx_reset(b, link);
	WRITE_ONCE(longest, 0);
	rx_connect(b, link);
	return READ_ONCE(longest);
}

/* An Endpoint is freed with @n events, among those of another. */
static u64 free_ep(struct kunit *test, int n)
{
	struct rx_bench *b = rx_open(test, 2 * n);
	struct rx_link *x = rx_link(b), *y = rx_link(b);

	rx_deliver_in_turn(b, x, y, n);
	WRITE_ONCE(longest, 0);
	KD_EXPECT_OK(test, dat_ep_free(x->in));
	return READ_ONCE(longest);
}

/* Each is the best of some rounds: the host interrupts now and then. */
static void print_longest(struct kunit *test, const char *what,
			  u64 (*call)(struct kunit *test, int n), int n)
{
	u64 best = U64_MAX;
	int i;

	for (i = 0; i < ROUNDS; i++)
		best = min(best, call(test, n));
	kunit_info(test, "%s, %d objects: interrupts off for %llu us at most\n", what, n,
		   div_u64(best, NSEC_PER_USEC));
}

static void R8_interrupts_off(struct kunit *test)
{
	kd_probe(test, "irq_disable", went_off);
	kd_probe(test, "irq_enable", came_on);
	print_longest(test, "an SRQ is made anew", remake, 100);
	print_longest(test, "an SRQ is made anew", remake, 10000);
	print_longest(test, "an Endpoint is freed", free_ep, 100);
	print_longest(test, "an Endpoint is freed", free_ep, 10000);
}

static struct kunit_case irqs_off_cases[] = {
	KUNIT_CASE_PARAM(R8_interrupts_off, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-irqs-off", irqs_off_cases, "how long interrupts are off");
