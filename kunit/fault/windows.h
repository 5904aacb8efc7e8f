/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: the n-th allocation inside kdapl.ko's own work items and handlers of
 * rdma_cm events fails, in whatever thread they run.
 *
 * Tracepoints of the kernel tell where they begin and end. If one of them sleeps
 * and another runs meanwhile they share the count, so it may fail twice.
 */
#ifndef KDAPL_KUNIT_FAULT_WINDOWS_H
#define KDAPL_KUNIT_FAULT_WINDOWS_H

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>
#include "ops.h"

#if defined(CONFIG_FAULT_INJECTION) && defined(CONFIG_TRACEPOINTS)
#define HAVE_WINDOWS	1
#else
#define HAVE_WINDOWS	0
#endif

static atomic_t window_left;

static inline void fail_in_windows(unsigned int nth)
{
	atomic_set(&window_left, nth);
}

static inline unsigned int windows_left(void)
{
	return atomic_xchg(&window_left, 0);
}

#if HAVE_WINDOWS
static bool events_only;		/* no work items */

/* In kdapl.ko? The drivers and rdma_cm are no modules in the test kernel. */
static bool is_ours(const void *function)
{
	char name[32];

	if (!is_vmalloc_or_module_addr(function))
		return false;
	snprintf(name, sizeof(name), "%ps", function);
	return strstarts(name, "kdapl_");
}

/* Threads that are in a window which began when something was to fail. */
static struct task_struct *inside[8];

static bool swap_inside(struct task_struct *from, struct task_struct *to)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(inside); i++)
		if (cmpxchg(&inside[i], from, to) == from)
			return true;
	return false;
}

static void window_begins(const void *function)
{
	unsigned int left = atomic_read(&window_left);

	if (left && is_ours(function) && swap_inside(NULL, current))
		fail_allocation(left);
}

static void window_ends(void)
{
	unsigned int left;

	if (!swap_inside(current, NULL))
		return;
	left = allocations_left();
	if (left < (unsigned int)atomic_read(&window_left))
		atomic_set(&window_left, left);
}

static void on_cm_event(void *data, const struct rdma_cm_id *id,
			const struct rdma_cm_event *event)
{
	window_begins(id->event_handler);
}

static void on_cm_done(void *data, const struct rdma_cm_id *id,
		       const struct rdma_cm_event *event, int result)
{
	window_ends();
}

static void on_work(void *data, struct work_struct *work)
{
	if (!events_only)
		window_begins(work->func);
}

static void on_work_done(void *data, struct work_struct *work,
			 work_func_t function)
{
	window_ends();
}

/* The first member of what the tracepoints of rdma_cm get is the id. */
static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} windows[] = {
	{ "cm_event_handler", on_cm_event },
	{ "cm_event_done", on_cm_done },
	{ "workqueue_execute_start", on_work },
	{ "workqueue_execute_end", on_work_done },
};

static void find_window(struct tracepoint *tp, void *unused)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(windows); i++)
		if (!strcmp(tp->name, windows[i].name))
			windows[i].tp = tp;
}

static void close_windows(void *unused)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(windows); i++)
		if (windows[i].tp)
			tracepoint_probe_unregister(windows[i].tp,
						    windows[i].probe, NULL);
	tracepoint_synchronize_unregister();
}

/* Until the end of the case. */
static void open_windows(struct kunit *test, bool only)
{
	int i;

	events_only = only;
	windows_left();
	for_each_kernel_tracepoint(find_window, NULL);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, close_windows,
							   NULL));
	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		KUNIT_ASSERT_NOT_NULL_MSG(test, windows[i].tp, "%s",
					  windows[i].name);
		KUNIT_ASSERT_EQ(test, 0,
				tracepoint_probe_register(windows[i].tp,
							  windows[i].probe,
							  NULL));
	}
}
#else
static void open_windows(struct kunit *test, bool only)
{
	kunit_skip(test, "no fault injection in this kernel");
}
#endif

#endif /* KDAPL_KUNIT_FAULT_WINDOWS_H */
