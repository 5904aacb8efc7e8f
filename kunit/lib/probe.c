// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: probes of tracepoints, see probe.h.
 */
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include "probe.h"

#ifdef CONFIG_TRACEPOINTS
struct kd_probed {
	const char *name;
	struct tracepoint *tp;
	void *probe;
};

static void kd_find_tracepoint(struct tracepoint *tp, void *data)
{
	struct kd_probed *probed = data;

	if (!strcmp(tp->name, probed->name))
		probed->tp = tp;
}

static void kd_end_probe(void *data)
{
	struct kd_probed *probed = data;

	tracepoint_probe_unregister(probed->tp, probed->probe, NULL);
	tracepoint_synchronize_unregister();
}

/*
 * Have @probe called at a tracepoint of the kernel until the case ends; its
 * arguments are NULL and those of the tracepoint. Skip the case if this kernel has no
 * such tracepoint.
 */
void kd_probe(struct kunit *test, const char *tracepoint, void *probe)
{
	struct kd_probed *probed = kunit_kzalloc(test, sizeof(*probed),
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, probed);
	probed->name = tracepoint;
	probed->probe = probe;
	for_each_kernel_tracepoint(kd_find_tracepoint, probed);
	if (!probed->tp)
		kunit_skip(test, "this kernel has no tracepoint %s", tracepoint);
	KUNIT_ASSERT_EQ(test, 0, tracepoint_probe_register(probed->tp, probe,
							   NULL));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kd_end_probe,
							   probed));
}
#else
void kd_probe(struct kunit *test, const char *tracepoint, void *probe)
{
	kunit_skip(test, "this kernel has no tracepoints");
}
#endif
EXPORT_SYMBOL_GPL(kd_probe);

/* ---- The log ------------------------------------------------------------------- */

static const char *kd_log_text;
static atomic_t kd_log_lines;

static void kd_log_line(void *data, const char *text, size_t length)
{
	if (strnstr(text, kd_log_text, length))
		atomic_inc(&kd_log_lines);
}

/* Count the lines with @text that the kernel's log gets until the case ends. */
void kd_count_log(struct kunit *test, const char *text)
{
	kd_log_text = text;
	atomic_set(&kd_log_lines, 0);
	kd_probe(test, "console", kd_log_line);
}
EXPORT_SYMBOL_GPL(kd_count_log);

/* Return how many there are. */
unsigned int kd_logged(void)
{
	return atomic_read(&kd_log_lines);
}
EXPORT_SYMBOL_GPL(kd_logged);

/* Is there one? For kd_wait_until(). */
bool kd_is_logged(void *unused)
{
	return kd_logged();
}
EXPORT_SYMBOL_GPL(kd_is_logged);

/* ---- Locks --------------------------------------------------------------------- */

#if defined(CONFIG_LOCKDEP) && defined(CONFIG_TRACEPOINTS)
/*
 * struct kd_at_lock - what kd_at_lock() has asked for
 * @task: NULL if nothing is asked for, or @fn has been called
 * @nth: the lock that @fn is called at, 0 for each
 * @seen: such locks up to now
 * @calls: of @fn
 */
static struct {
	struct task_struct *task;
	const char *name;
	unsigned int nth;
	unsigned int seen;
	unsigned int calls;
	void (*fn)(void *arg);
	void *arg;
} at_lock;

static void kd_look_at_lock(const struct lockdep_map *lock)
{
	if (READ_ONCE(at_lock.task) != current || !in_task() || !lock->name ||
	    strcmp(lock->name, at_lock.name))
		return;
	if (at_lock.nth && ++at_lock.seen != at_lock.nth)
		return;
	/* First, as @fn takes locks as well. */
	WRITE_ONCE(at_lock.task, NULL);
	at_lock.calls++;
	at_lock.fn(at_lock.arg);
	if (!at_lock.nth)
		WRITE_ONCE(at_lock.task, current);
}

static void kd_taking_lock(void *data, struct lockdep_map *lock, unsigned int subclass,
			   int trylock, int read, int check,
			   struct lockdep_map *next_lock, unsigned long ip)
{
	kd_look_at_lock(lock);
}

static void kd_dropping_lock(void *data, struct lockdep_map *lock, unsigned long ip)
{
	kd_look_at_lock(lock);
}

static void kd_forget_lock(void *unused)
{
	WRITE_ONCE(at_lock.task, NULL);
}

/**
 * kd_at_lock - call a function where the calling task comes to a lock
 * @test: the case; it is skipped if this kernel has no lockdep
 * @op: when it is about to take the lock (it does not hold it), or to drop it (it does)
 * @name: of the lock, as lockdep has it: the expression that spin_lock_init() was given
 * @nth: the first such lock from now on, or a later one; 0 for each of them
 * @fn: called with preemption and, for most spinlocks, interrupts off
 * @arg: for @fn
 */
void kd_at_lock(struct kunit *test, enum kd_lock_op op, const char *name,
		unsigned int nth, void (*fn)(void *arg), void *arg)
{
	kd_probe(test, op == KD_TAKING ? "lock_acquire" : "lock_release",
		 op == KD_TAKING ? (void *)kd_taking_lock : (void *)kd_dropping_lock);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kd_forget_lock, NULL));
	at_lock.name = name;
	at_lock.nth = nth;
	at_lock.seen = 0;
	at_lock.calls = 0;
	at_lock.fn = fn;
	at_lock.arg = arg;
	kd_at_lock_here();
}
EXPORT_SYMBOL_GPL(kd_at_lock);

/* What kd_at_lock() has asked for is meant for the calling task in place of another. */
void kd_at_lock_here(void)
{
	WRITE_ONCE(at_lock.task, current);
}
EXPORT_SYMBOL_GPL(kd_at_lock_here);

/* End what kd_at_lock() has begun. Return how often the function was called. */
unsigned int kd_left_lock(void)
{
	WRITE_ONCE(at_lock.task, NULL);
	return at_lock.calls;
}
EXPORT_SYMBOL_GPL(kd_left_lock);
#else
void kd_at_lock(struct kunit *test, enum kd_lock_op op, const char *name,
		unsigned int nth, void (*fn)(void *arg), void *arg)
{
	kunit_skip(test, "this kernel has no lockdep");
}
EXPORT_SYMBOL_GPL(kd_at_lock);

void kd_at_lock_here(void)
{
}
EXPORT_SYMBOL_GPL(kd_at_lock_here);

unsigned int kd_left_lock(void)
{
	return 0;
}
EXPORT_SYMBOL_GPL(kd_left_lock);
#endif
