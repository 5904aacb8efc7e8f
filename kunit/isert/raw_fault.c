// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_isert_kunit.ko: the n-th allocation fails in one of the places where the target deals
 * with PDUs, see raw.h. Tracepoints of the kernel tell where work items begin and end; LIO's
 * threads are told by their names.
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include "probe.h"
#include "raw.h"

#if defined(CONFIG_FAULT_INJECTION) && defined(CONFIG_TRACEPOINTS)
/* Functions of work items */
static const char * const works[] = {
	[RAW_IN_UPCALLS] = "kdapl_upcall_work",
	[RAW_IN_COMPLETIONS] = "target_complete_ok_work",
};

/* Threads, all of that name: those of other portals and sessions have nothing to do. */
static const char * const threads[] = {
	[RAW_IN_PORTAL] = "iscsi_np",
	[RAW_IN_ANSWERS] = "iscsi_ttx",
};

/*
 * @armed: raw_allocation_failed() has not been called
 * @where: the place
 * @left: how many allocations are left in work items; 0: none fails
 * @threads: those in whose fail_nth that is
 * @nthreads: their number
 * @inside: the thread that is inside of a work item
 */
static struct {
	bool armed;
	enum raw_where where;
	atomic_t left;
	struct task_struct *threads[16];
	unsigned int nthreads;
	struct task_struct *inside;
} fault;

static bool is_there(const void *function)
{
	char name[64];

	snprintf(name, sizeof(name), "%ps", function);
	return strstarts(name, works[fault.where]);
}

static void on_work(void *data, struct work_struct *work)
{
	int left = atomic_read(&fault.left);

	if (READ_ONCE(fault.armed) && left && is_there(work->func) &&
	    !cmpxchg(&fault.inside, NULL, current))
		current->fail_nth = left;
}

static void on_work_done(void *data, struct work_struct *work, work_func_t function)
{
	if (READ_ONCE(fault.inside) != current)
		return;
	if (READ_ONCE(fault.armed))
		atomic_set(&fault.left, current->fail_nth);
	current->fail_nth = 0;
	WRITE_ONCE(fault.inside, NULL);
}

/* Set fail_nth of all threads of a name. */
static void arm_threads(const char *name, unsigned int nth)
{
	struct task_struct *task;

	rcu_read_lock();
	for_each_process(task) {
		if (strcmp(task->comm, name) || fault.nthreads == ARRAY_SIZE(fault.threads))
			continue;
		get_task_struct(task);
		fault.threads[fault.nthreads++] = task;
		WRITE_ONCE(task->fail_nth, nth);
	}
	rcu_read_unlock();
}

/* Undo that. Return whether an allocation of one of them has failed. */
static bool disarm_threads(void)
{
	bool failed = false;

	while (fault.nthreads) {
		struct task_struct *task = fault.threads[--fault.nthreads];

		failed |= !READ_ONCE(task->fail_nth);
		WRITE_ONCE(task->fail_nth, 0);
		put_task_struct(task);
	}
	return failed;
}

static void end_faults(void *unused)
{
	raw_allocation_failed();
}

/* Be able to have allocations fail until the case ends. */
void raw_open_faults(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, end_faults, NULL));
	kd_probe(test, "workqueue_execute_start", on_work);
	kd_probe(test, "workqueue_execute_end", on_work_done);
}
EXPORT_SYMBOL_GPL(raw_open_faults);

/* Have the @nth allocation @where fail from now on. */
void raw_fail_allocation(struct kunit *test, enum raw_where where, unsigned int nth)
{
	if (where == RAW_IN_PORTAL || where == RAW_IN_ANSWERS) {
		arm_threads(threads[where], nth);
		KUNIT_ASSERT_GT(test, fault.nthreads, 0);
		return;
	}
	fault.where = where;
	atomic_set(&fault.left, nth);
	WRITE_ONCE(fault.armed, true);
}
EXPORT_SYMBOL_GPL(raw_fail_allocation);

/* Have none fail any more. Return whether one has. */
bool raw_allocation_failed(void)
{
	int left;

	if (fault.nthreads)
		return disarm_threads();
	WRITE_ONCE(fault.armed, false);
	left = atomic_xchg(&fault.left, 0);
	return !left;
}
EXPORT_SYMBOL_GPL(raw_allocation_failed);
#else
void raw_open_faults(struct kunit *test)
{
	kunit_skip(test, "no fault injection in this kernel");
}
EXPORT_SYMBOL_GPL(raw_open_faults);

void raw_fail_allocation(struct kunit *test, enum raw_where where, unsigned int nth)
{
}
EXPORT_SYMBOL_GPL(raw_fail_allocation);

bool raw_allocation_failed(void)
{
	return false;
}
EXPORT_SYMBOL_GPL(raw_allocation_failed);
#endif
