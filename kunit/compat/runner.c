// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_selftest.ko: runs the suites on kernels without KUnit, see kunit.h.
 *
 * The suites of a module run when it is loaded. Their results are text in the
 * kernel's dialect of TAP, to which whole lines are appended.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "kunit.h"

#define SELFTEST_LOG	(512 * 1024)
#define SELFTEST_TIME	(600 * HZ)	/* for one case; the stress takes 300 */

struct selftest_log {
	spinlock_t lock;		/* protects the rest */
	size_t len;
	char text[SELFTEST_LOG];
};

struct selftest_action {
	struct list_head link;
	kunit_action_t *action;
	void *data;
};

static struct dentry *selftest_dir;

/* ---- The log ------------------------------------------------------------- */

static __printf(2, 0) void selftest_vlog(struct selftest_log *log,
					 const char *fmt, va_list args)
{
	unsigned long flags;

	spin_lock_irqsave(&log->lock, flags);
	log->len += vscnprintf(log->text + log->len, SELFTEST_LOG - log->len,
			       fmt, args);
	spin_unlock_irqrestore(&log->lock, flags);
}

static __printf(2, 3) void selftest_log(struct selftest_log *log,
					const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	selftest_vlog(log, fmt, args);
	va_end(args);
}

/* End a line of the log as KUnit does. */
static void selftest_end_line(struct selftest_log *log)
{
	unsigned long flags;

	spin_lock_irqsave(&log->lock, flags);
	if (log->len && log->text[log->len - 1] != '\n' &&
	    log->len < SELFTEST_LOG - 1)
		log->text[log->len++] = '\n';
	spin_unlock_irqrestore(&log->lock, flags);
}

void selftest_print(struct kunit *test, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	selftest_log(test->suite->log, "    # %s: %pV", test->name, &vaf);
	va_end(args);
	selftest_end_line(test->suite->log);
}
EXPORT_SYMBOL_GPL(selftest_print);

void selftest_failed(struct kunit *test, const char *file, int line,
		     const char *what, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	WRITE_ONCE(test->status, KUNIT_FAILURE);
	va_start(args, fmt);
	vaf.va = &args;
	selftest_print(test, "%s at %s:%d: expected %s (%pV)\n",
		       test->param_value ? test->comment : "",
		       kbasename(file), line, what, &vaf);
	va_end(args);
}
EXPORT_SYMBOL_GPL(selftest_failed);

void selftest_skip(struct kunit *test, const char *fmt, ...)
{
	va_list args;

	if (test->status == KUNIT_FAILURE)
		return;
	test->status = KUNIT_SKIPPED;
	va_start(args, fmt);
	vscnprintf(test->comment, sizeof(test->comment), fmt, args);
	va_end(args);
}
EXPORT_SYMBOL_GPL(selftest_skip);

static int selftest_results_show(struct seq_file *m, void *unused)
{
	struct selftest_log *log = m->private;

	seq_write(m, log->text, READ_ONCE(log->len));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(selftest_results);

/* ---- What a case leaves behind ------------------------------------------- */

int kunit_add_action_or_reset(struct kunit *test, kunit_action_t *action,
			      void *data)
{
	struct selftest_action *a = kmalloc(sizeof(*a), GFP_KERNEL);
	unsigned long flags;

	if (!a) {
		action(data);
		return -ENOMEM;
	}
	a->action = action;
	a->data = data;
	spin_lock_irqsave(&test->lock, flags);
	list_add(&a->link, &test->actions);
	spin_unlock_irqrestore(&test->lock, flags);
	return 0;
}
EXPORT_SYMBOL_GPL(kunit_add_action_or_reset);

void kunit_release_action(struct kunit *test, kunit_action_t *action,
			  void *data)
{
	struct selftest_action *a;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&test->lock, flags);
	list_for_each_entry(a, &test->actions, link) {
		if (a->action == action && a->data == data) {
			list_del(&a->link);
			found = true;
			break;
		}
	}
	spin_unlock_irqrestore(&test->lock, flags);
	if (!found)
		return;
	action(data);
	kfree(a);
}
EXPORT_SYMBOL_GPL(kunit_release_action);

static void selftest_free(void *data)
{
	kfree(data);
}

void *kunit_kmalloc(struct kunit *test, size_t size, gfp_t gfp)
{
	void *p = kmalloc(size, gfp);

	if (p && kunit_add_action_or_reset(test, selftest_free, p))
		return NULL;
	return p;
}
EXPORT_SYMBOL_GPL(kunit_kmalloc);

/*
 * Run the actions of a case, the last one first. An action may release another
 * one.
 */
static void selftest_clean_up(struct kunit *test)
{
	struct selftest_action *a;

	while ((a = list_first_entry_or_null(&test->actions,
					     struct selftest_action, link))) {
		list_del(&a->link);
		a->action(a->data);
		kfree(a);
	}
}

/* ---- Running ------------------------------------------------------------- */

struct selftest_call {
	struct kunit *test;
	struct kunit_case *c;
};

/*
 * End the thread of the case. The function is not declared __noreturn, since
 * objtool would have to know its name.
 */
void selftest_abort(struct kunit *test)
{
	kthread_complete_and_exit(test->done, 0);
}
EXPORT_SYMBOL_GPL(selftest_abort);

static int selftest_thread(void *data)
{
	struct selftest_call *call = data;
	struct kunit *test = call->test;

	if (test->suite->init && test->suite->init(test))
		selftest_failed(test, __FILE__, __LINE__, "init", " ");
	else
		call->c->run_case(test);
	kthread_complete_and_exit(test->done, 0);
}

/* Wait in pieces: the kernel reports a task that sleeps for two minutes. */
static bool selftest_wait(struct completion *done)
{
	unsigned long end = jiffies + SELFTEST_TIME;

	while (!wait_for_completion_timeout(done, 30 * HZ))
		if (time_after(jiffies, end))
			return false;
	return true;
}

/* Run a case with one parameter. Return its status. */
static enum kunit_status selftest_one(struct kunit *test, struct kunit_case *c)
{
	DECLARE_COMPLETION_ONSTACK(done);
	struct selftest_call call = { test, c };
	struct task_struct *task;

	test->status = KUNIT_SUCCESS;
	test->done = &done;
	test->priv = NULL;
	task = kthread_run(selftest_thread, &call, "selftest");
	if (IS_ERR(task))
		return KUNIT_FAILURE;
	if (!selftest_wait(&done)) {
		selftest_failed(test, __FILE__, __LINE__, "an end", "timed out");
		pr_err("kdapl_selftest: %s hangs\n", c->name);
		wait_for_completion(&done);
	}
	if (test->suite->exit)
		test->suite->exit(test);
	selftest_clean_up(test);
	return test->status;
}

static const char *selftest_ok(enum kunit_status status)
{
	return status == KUNIT_FAILURE ? "not ok" : "ok";
}

static enum kunit_status selftest_params(struct kunit *test,
					 struct kunit_case *c)
{
	struct selftest_log *log = test->suite->log;
	enum kunit_status all = KUNIT_SKIPPED;
	char desc[KUNIT_PARAM_DESC_SIZE];
	int n = 0;

	selftest_log(log, "        KTAP version 1\n        # Subtest: %s\n",
		     c->name);
	for (;;) {
		enum kunit_status status;

		desc[0] = '\0';
		test->param_value = c->generate_params(test->param_value, desc);
		if (!test->param_value)
			break;
		strscpy(test->comment, desc, sizeof(test->comment));
		status = selftest_one(test, c);
		selftest_log(log, "        %s %d %s%s%s\n", selftest_ok(status),
			     ++n, desc[0] ? desc : "param",
			     status == KUNIT_SKIPPED ? " # SKIP " : "",
			     status == KUNIT_SKIPPED ? test->comment : "");
		if (status == KUNIT_FAILURE || all == KUNIT_SKIPPED)
			all = status;
	}
	/* Print no plan: KUnit's parser loops over a plan that comes last. */
	return all;
}

static enum kunit_status selftest_case(struct kunit_suite *suite,
				       struct kunit_case *c, struct kunit *test)
{
	memset(test, 0, sizeof(*test));
	test->suite = suite;
	test->name = c->name;
	spin_lock_init(&test->lock);
	INIT_LIST_HEAD(&test->actions);
	if (c->generate_params)
		return selftest_params(test, c);
	return selftest_one(test, c);
}

static void selftest_suite(struct kunit_suite *suite, struct kunit *test)
{
	struct selftest_log *log = suite->log;
	enum kunit_status all = KUNIT_SUCCESS;
	struct kunit_case *c;
	int n = 0;

	selftest_log(log, "KTAP version 1\n1..1\n    KTAP version 1\n");
	selftest_log(log, "    # Subtest: %s\n", suite->name);
	if (suite->suite_init && suite->suite_init(suite))
		all = KUNIT_FAILURE;
	for (c = suite->test_cases; c->run_case && !all; c++)
		n++;
	selftest_log(log, "    1..%d\n", n);
	n = 0;
	for (c = suite->test_cases; c->run_case && (n || !all); c++) {
		enum kunit_status status = selftest_case(suite, c, test);

		selftest_log(log, "    %s %d %s%s\n", selftest_ok(status), ++n,
			     c->name,
			     status == KUNIT_SKIPPED ? " # SKIP" : "");
		if (status == KUNIT_FAILURE)
			all = KUNIT_FAILURE;
		cond_resched();
	}
	if (suite->suite_exit)
		suite->suite_exit(suite);
	selftest_log(log, "%s 1 %s\n", selftest_ok(all), suite->name);
}

/* Run the suites of a module; the list ends with NULL. */
int selftest_run(struct kunit_suite **suites)
{
	struct kunit_suite **s;
	struct kunit *test;

	test = kmalloc(sizeof(*test), GFP_KERNEL);
	if (!test)
		return -ENOMEM;
	for (s = suites; *s; s++) {
		(*s)->log = vzalloc(sizeof(*(*s)->log));
		if (!(*s)->log)
			continue;
		spin_lock_init(&(*s)->log->lock);
		(*s)->dir = debugfs_create_dir((*s)->name, selftest_dir);
		selftest_suite(*s, test);
		debugfs_create_file("results", 0400, (*s)->dir, (*s)->log,
				    &selftest_results_fops);
	}
	kfree(test);
	return 0;
}
EXPORT_SYMBOL_GPL(selftest_run);

void selftest_remove(struct kunit_suite **suites)
{
	for (; *suites; suites++) {
		debugfs_remove((*suites)->dir);
		vfree((*suites)->log);
	}
}
EXPORT_SYMBOL_GPL(selftest_remove);

static int __init selftest_module_init(void)
{
	selftest_dir = debugfs_create_dir("kunit", NULL);
	return 0;
}
module_init(selftest_module_init);

static void __exit selftest_module_exit(void)
{
	debugfs_remove(selftest_dir);
}
module_exit(selftest_module_exit);

MODULE_DESCRIPTION("Runs the suites of kdapl.ko without KUnit");
MODULE_LICENSE("Dual BSD/GPL");
