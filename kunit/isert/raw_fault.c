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

/* Threads; the youngest one of the name is that of the last session. */
static const char * const threads[] = {
	[RAW_IN_PORTAL] = "iscsi_np",
	[RAW_IN_ANSWERS] = "iscsi_ttx",
};

/*
 * @armed: raw_allocation_failed() has not been called
 * @where: the place
 * @left: how many allocations are left there; 0: none fails
 * @thread: one in whose fail_nth that is, or NULL
 * @inside: the thread that is inside of a work item
 */
static struct {
	bool armed;
	enum raw_where where;
	atomic_t left;
	struct task_struct *thread;
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

	if (READ_ONCE(fault.armed) && left && !READ_ONCE(fault.thread) && is_there(work->func) &&
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

static struct task_struct *youngest(const char *name)
{
	struct task_struct *task, *found = NULL;

	rcu_read_lock();
	for_each_process(task)
		if (!strcmp(task->comm, name) &&
		    (!found || task->start_time >= found->start_time))
			found = task;
	if (found)
		get_task_struct(found);
	rcu_read_unlock();
	return found;
}

/* Be able to have allocations fail until the case ends. */
void raw_open_faults(struct kunit *test)
{
	kd_probe(test, "workqueue_execute_start", on_work);
	kd_probe(test, "workqueue_execute_end", on_work_done);
}
EXPORT_SYMBOL_GPL(raw_open_faults);

/* Have the @nth allocation @where fail from now on. */
void raw_fail_allocation(struct kunit *test, enum raw_where where, unsigned int nth)
{
	fault.where = where;
	if (where == RAW_IN_PORTAL || where == RAW_IN_ANSWERS) {
		fault.thread = youngest(threads[where]);
		KUNIT_ASSERT_NOT_NULL(test, fault.thread);
		WRITE_ONCE(fault.thread->fail_nth, nth);
	}
	atomic_set(&fault.left, nth);
	WRITE_ONCE(fault.armed, true);
}
EXPORT_SYMBOL_GPL(raw_fail_allocation);

/* Have none fail any more. Return whether one has. */
bool raw_allocation_failed(void)
{
	struct task_struct *thread = fault.thread;
	int left;

	WRITE_ONCE(fault.armed, false);
	left = atomic_xchg(&fault.left, 0);
	if (thread) {
		left = READ_ONCE(thread->fail_nth);
		WRITE_ONCE(thread->fail_nth, 0);
		fault.thread = NULL;
		put_task_struct(thread);
	}
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
