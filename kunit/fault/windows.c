// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fault_work_test.ko: the n-th allocation inside kdapl.ko's own work items and
 * handlers of rdma_cm events fails, in whatever thread they run.
 *
 * Tracepoints of the kernel tell where such a window begins and ends. If one
 * handler sleeps and another one runs meanwhile they share the count, so two
 * allocations may fail.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>
#include "ops.h"
#include "windows.h"

static atomic_t window_left;

void kdf_fail_in_windows(unsigned int nth)
{
	atomic_set(&window_left, nth);
}

unsigned int kdf_windows_left(void)
{
	return atomic_xchg(&window_left, 0);
}

#if KDF_HAVE_WINDOWS
static bool events_only;		/* no work items */

/*
 * Return whether @function is in kdapl.ko. The drivers and rdma_cm are no
 * modules in the test kernels.
 */
static bool is_ours(const void *function)
{
	char name[32];

	if (!is_vmalloc_or_module_addr(function))
		return false;
	snprintf(name, sizeof(name), "%ps", function);
	return strstarts(name, "kdapl_");
}

/* Threads inside a window that began while an allocation was to fail. */
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
		kdf_fail_allocation(left);
}

static void window_ends(void)
{
	unsigned int left;

	if (!swap_inside(current, NULL))
		return;
	left = kdf_allocations_left();
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

/* The tracepoints and their probes, see find_window(). */
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

/*
 * Attach the probes until the case ends. @only: rdma_cm events, no work items.
 */
void kdf_open_windows(struct kunit *test, bool only)
{
	int i;

	events_only = only;
	kdf_windows_left();
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
void kdf_open_windows(struct kunit *test, bool only)
{
	kunit_skip(test, "no fault injection in this kernel");
}
#endif
