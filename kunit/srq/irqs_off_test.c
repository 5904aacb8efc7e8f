// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How long interrupts are off while calls deal with few and with many objects (contract
 * R8). The time is printed and not judged, as the host takes part in it; that it need not
 * grow is asserted by counting, see bounds_test.c.
 *
 * It is measured by the kernel's irqsoff tracer, and by probes of our own. Kernels with
 * lockdep have the tracepoints that these need; those of "make check" do not have the
 * tracer. Either includes the device's driver, and on two CPUs whatever else runs.
 */
#include <linux/hardirq.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include "files.h"
#include "probe.h"
#include "shell.h"
#include "srq_fixture.h"

#define ROUNDS	2

/*
 * struct watch - how the longest section with interrupts off is found
 * @begin: forget what was before
 * @end: return it, in microseconds
 */
struct watch {
	void (*begin)(struct kunit *test);
	u64 (*end)(struct kunit *test);
};

/* ---- Probes -------------------------------------------------------------- */

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

static void probes_begin(struct kunit *test)
{
	WRITE_ONCE(longest, 0);
}

static u64 probes_end(struct kunit *test)
{
	return div_u64(READ_ONCE(longest), NSEC_PER_USEC);
}

static const struct watch probes = { probes_begin, probes_end };

/* ---- The tracer ---------------------------------------------------------- */

#define TRACING	"/sys/kernel/tracing/"
#define ANSWER	"/tmp/kdapl-irqsoff"

static void tracer_begin(struct kunit *test)
{
	tracing_off();
	KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" TRACING "tracing_max_latency"));
	tracing_on();
}

/* Files of tracefs can be read by processes only. */
static u64 tracer_end(struct kunit *test)
{
	char line[24] = "";
	struct file *file;
	u64 us = 0;

	tracing_off();
	KUNIT_EXPECT_EQ(test, 0, shell("cat " TRACING "tracing_max_latency >" ANSWER));
	file = kd_filp_open(ANSWER, O_RDONLY, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_EXPECT_GT(test, kernel_read(file, line, sizeof(line) - 1, &file->f_pos), 0);
	kd_filp_close(file);
	KUNIT_EXPECT_EQ(test, 0, kstrtou64(line, 10, &us));
	return us;
}

static const struct watch tracer = { tracer_begin, tracer_end };

static void stop_tracer(void *unused)
{
	shell("echo nop >" TRACING "current_tracer");
	tracing_on();
}

/* ---- What is measured ---------------------------------------------------- */

/* An SRQ of @n buffers is given to the device anew when an Endpoint comes back. */
static u64 remake(struct kunit *test, const struct watch *watch, int n)
{
	struct rx_bench *b = rx_open(test, n);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, n);
	rx_disconnect(b, link);
	rx_reset(b, link);
	watch->begin(test);
	rx_connect(b, link);
	return watch->end(test);
}

/* An Endpoint is freed with @n events, among those of another. */
static u64 free_ep(struct kunit *test, const struct watch *watch, int n)
{
	struct rx_bench *b = rx_open(test, 2 * n);
	struct rx_link *x = rx_link(b), *y = rx_link(b);

	rx_deliver_in_turn(b, x, y, n);
	watch->begin(test);
	KD_EXPECT_OK(test, dat_ep_free(x->in));
	return watch->end(test);
}

typedef u64 (*measured)(struct kunit *test, const struct watch *watch, int n);

/* Each is the best of some rounds: the host interrupts now and then. */
static void print_longest(struct kunit *test, const struct watch *watch,
			  const char *what, measured call, int n)
{
	u64 best = U64_MAX;
	int i;

	for (i = 0; i < ROUNDS; i++)
		best = min(best, call(test, watch, n));
	kunit_info(test, "%s, %d objects: interrupts off for %llu us at most\n", what, n,
		   best);
}

static void print_all(struct kunit *test, const struct watch *watch)
{
	print_longest(test, watch, "an SRQ is made anew", remake, 100);
	print_longest(test, watch, "an SRQ is made anew", remake, 10000);
	print_longest(test, watch, "an Endpoint is freed", free_ep, 100);
	print_longest(test, watch, "an Endpoint is freed", free_ep, 10000);
}

static void R8_interrupts_off(struct kunit *test)
{
	kd_probe(test, "irq_disable", went_off);
	kd_probe(test, "irq_enable", came_on);
	print_all(test, &probes);
}

static void R8_irqsoff_tracer(struct kunit *test)
{
	if (shell("grep -qsw irqsoff " TRACING "available_tracers"))
		kunit_skip(test, "this kernel has no irqsoff tracer");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, stop_tracer, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("echo irqsoff >" TRACING "current_tracer"));
	print_all(test, &tracer);
}

static struct kunit_case irqs_off_cases[] = {
	KUNIT_CASE_PARAM(R8_interrupts_off, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R8_irqsoff_tracer, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-irqs-off", irqs_off_cases, "how long interrupts are off");
