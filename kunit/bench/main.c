// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_bench.ko: compare kDAPL with raw verbs on devices that connect to
 * themselves. Loading the module runs everything; the results are one JSON
 * document, <debugfs>/kdapl_bench/results.
 *
 * Each loop runs over raw verbs, over kDAPL and over raw verbs again, in an
 * order that changes from run to run, so that disturbances of the machine
 * affect all three. The two raw series show how much two equal series differ.
 */
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "kdapl_bench.h"
#include "param.h"

static char *devices = "rxe0,siw0";
module_param(devices, charp, 0444);
MODULE_PARM_DESC(devices, "IAs to run on, separated by commas");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "the loops to run, e.g. burst,ping_64; default all");

KD_PARAM(runs, uint, 30, "runs of each loop, of which the fastest counts");
KD_PARAM(bursts, uint, 10, "bursts of posts and completions in a run");
KD_PARAM(laps, uint, 1000, "round trips in a run");
KD_PARAM(megabytes, uint, 32, "size of one stream of a throughput run");
KD_PARAM(stream_ms, uint, 100, "streams of a throughput run go on for so long; the fastest counts");
KD_PARAM(eps, uint, 16, "connections that the loop \"turn\" uses in turn");
KD_PARAM(evds, uint, 1, "EVDs or CQs on which these receive");
KD_PARAM(idle, uint, 0, "connections beside each of kDAPL, on the same EVDs and SRQ");
KD_PARAM(insn_ns, uint, 0, "the clock counts instructions, of so many ns each; 0: it does not");

static LIST_HEAD(results);
static struct dentry *debugfs_dir;

enum bench_kind {
	KIND_POLL,
	KIND_POLL_SRQ,
	KIND_UPCALL,
	KIND_UPCALL_SRQ,
	KIND_TURN,
	KINDS
};

static struct bench_shape bench_shapes[KINDS] = {
	[KIND_POLL] = { .upcall = false, .srq = false },
	[KIND_POLL_SRQ] = { .upcall = false, .srq = true },
	[KIND_UPCALL] = { .upcall = true, .srq = false },
	[KIND_UPCALL_SRQ] = { .upcall = true, .srq = true },
	[KIND_TURN] = { .upcall = false, .srq = true },
};

/* The connections on one device. */
struct bench_device {
	struct bench_pair *raw[KINDS];
	struct bench_pair *dat[KINDS];
	struct bench_result *res;
};

/* ---- one run of each loop ------------------------------------------------------- */

static int exercise_burst(struct bench_pair *pair, const struct bench_to *to)
{
	return bench_burst(pair, to, bursts);
}

static int exercise_turn(struct bench_pair *pair, const struct bench_to *to)
{
	return bench_turn(pair, to, bursts);
}

static int exercise_pile(struct bench_pair *pair, const struct bench_to *to)
{
	return bench_pile(pair, to, bursts);
}

static int exercise_posts(struct bench_pair *pair, const struct bench_to *to)
{
	return bench_write(pair, to, bursts);
}

static int exercise_ping_64(struct bench_pair *pair, const struct bench_to *to)
{
	return bench_ping(pair, to, BENCH_PING_64, BENCH_SMALL, laps);
}

static int exercise_ping_4k(struct bench_pair *pair, const struct bench_to *to)
{
	return bench_ping(pair, to, BENCH_PING_4K, SZ_4K, laps);
}

static int exercise_send(struct bench_pair *pair, const struct bench_to *to)
{
	return bench_stream(pair, to, false, megabytes * (SZ_1M / BENCH_BUF),
			    stream_ms);
}

static int exercise_write(struct bench_pair *pair, const struct bench_to *to)
{
	return bench_stream(pair, to, true, megabytes * (SZ_1M / BENCH_BUF),
			    stream_ms);
}

static int exercise_map(struct bench_pair *pair, const struct bench_to *to)
{
	return bench_map(pair, to, bursts);
}

static int exercise_marks(struct bench_pair *pair, const struct bench_to *to)
{
	struct bench_side *b = pair->side[1];
	int err;

	err = b->ops->marks(b, to->series == BENCH_KDAPL) ?:
	      bench_ping(pair, to, BENCH_MARKS, BENCH_SMALL, laps);
	return err ?: b->ops->marks(b, false);
}

/* @dat_only: kDAPL is compared with itself, not with raw verbs. */
static const struct bench_exercise {
	const char *name;
	int (*run)(struct bench_pair *pair, const struct bench_to *to);
	enum bench_kind kind;
	bool dat_only;
} bench_exercises[] = {
	{ "burst", exercise_burst, KIND_POLL },
	{ "burst_srq", exercise_burst, KIND_POLL_SRQ },
	{ "turn", exercise_turn, KIND_TURN },
	{ "map", exercise_map, KIND_POLL },
	{ "pile", exercise_pile, KIND_UPCALL },
	{ "pile_srq", exercise_pile, KIND_UPCALL_SRQ },
	{ "posts", exercise_posts, KIND_UPCALL },
	{ "ping_64", exercise_ping_64, KIND_UPCALL },
	{ "ping_4k", exercise_ping_4k, KIND_UPCALL },
	{ "send", exercise_send, KIND_UPCALL },
	{ "write", exercise_write, KIND_UPCALL },
	{ "marks", exercise_marks, KIND_UPCALL_SRQ, true },
};

static int bench_exercise(struct bench_device *dev,
			  const struct bench_exercise *ex, unsigned int run)
{
	struct bench_to to = { .res = dev->res };
	struct bench_pair *pair;
	int i, err;

	for (i = 0; i < BENCH_SERIES; i++) {
		to.series = (run + i) % BENCH_SERIES;
		pair = ex->dat_only || to.series == BENCH_KDAPL ?
			dev->dat[ex->kind] : dev->raw[ex->kind];
		err = ex->run(pair, &to);
		if (err) {
			pr_err("kdapl_bench: %s: %s over %s: error %d\n",
			       dev->res->device, ex->name,
			       pair == dev->dat[ex->kind] ? "kDAPL" : "verbs",
			       err);
			return err;
		}
	}
	return 0;
}

/* Is the loop of this name in @only, or is there no such list? */
static bool bench_wanted(const char *name)
{
	const char *at = only;
	size_t len;

	for (; *at; at += len + !!at[len]) {
		len = strcspn(at, ",");
		if (len == strlen(name) && !strncmp(at, name, len))
			return true;
	}
	return !*only;
}

/* ---- devices ------------------------------------------------------------------------ */

static void bench_device_close(struct bench_device *dev)
{
	int i;

	for (i = 0; i < KINDS; i++) {
		if (dev->raw[i])
			dev->raw[i]->close(dev->raw[i]);
		if (dev->dat[i])
			dev->dat[i]->close(dev->dat[i]);
	}
}

static int bench_open_pair(struct bench_pair **slot, struct bench_pair *pair)
{
	if (IS_ERR(pair))
		return PTR_ERR(pair);
	*slot = pair;
	return 0;
}

/* Does a loop that is run use such a pair? */
static bool bench_kind_wanted(enum bench_kind kind)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bench_exercises); i++)
		if (bench_exercises[i].kind == kind &&
		    bench_wanted(bench_exercises[i].name))
			return true;
	return false;
}

static int bench_device_open(struct bench_device *dev)
{
	struct sockaddr_storage addr = { };
	const char *name = dev->res->device;
	int i, err;

	err = bench_dat_address(name, &addr);
	for (i = 0; i < KINDS; i++)
		bench_shapes[i].more = idle;
	bench_shapes[KIND_TURN].more = eps - 1;
	bench_shapes[KIND_TURN].evds = evds;
	for (i = 0; i < KINDS && !err; i++) {
		if (!bench_kind_wanted(i))
			continue;
		err = bench_open_pair(&dev->raw[i],
				      bench_raw_open((struct sockaddr *)&addr,
						     &bench_shapes[i]));
		if (err) {
			pr_err("kdapl_bench: %s: no pair over verbs: %d\n",
			       name, err);
			break;
		}
		err = bench_open_pair(&dev->dat[i],
				      bench_dat_open(name, &bench_shapes[i]));
		if (err)
			pr_err("kdapl_bench: %s: no pair over kDAPL: %d\n",
			       name, err);
	}
	if (err)
		bench_device_close(dev);
	return err;
}

static int bench_run(struct bench_device *dev, unsigned int run)
{
	const struct bench_exercise *ex;
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(bench_exercises) && !err; i++) {
		ex = &bench_exercises[i];
		if (bench_wanted(ex->name))
			err = bench_exercise(dev, ex, run);
	}
	return err;
}

static int bench_device(const char *name)
{
	struct bench_device dev = { };
	unsigned int run;
	int err;

	dev.res = kzalloc(sizeof(*dev.res), GFP_KERNEL);
	if (!dev.res)
		return -ENOMEM;
	strscpy(dev.res->device, name, sizeof(dev.res->device));
	memset(dev.res->best, 0xff, sizeof(dev.res->best));
	list_add_tail(&dev.res->link, &results);

	err = bench_device_open(&dev);
	if (err)
		return err;
	for (run = 0; run < runs && !err; run++)
		err = bench_run(&dev, run);
	bench_device_close(&dev);
	return err;
}

/* ---- the module ---------------------------------------------------------------------- */

struct bench_thread {
	struct completion finished;
	int err;
};

/*
 * The exercises run in a thread of their own: the stack below insmod is too
 * deep for some drivers.
 */
static int bench_thread(void *data)
{
	struct bench_thread *thread = data;
	char *copy, *rest, *name;

	copy = kstrdup(devices, GFP_KERNEL);
	rest = copy;
	thread->err = copy ? 0 : -ENOMEM;
	bench_clock_start();
	while (!thread->err && (name = strsep(&rest, ",")))
		if (*name)
			thread->err = bench_device(name);
	bench_clock_stop(insn_ns);
	kfree(copy);
	complete(&thread->finished);
	return 0;
}

static int results_show(struct seq_file *m, void *unused)
{
	bench_show(m, &results, runs);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(results);

static void bench_free_results(void)
{
	struct bench_result *res, *next;

	list_for_each_entry_safe(res, next, &results, link)
		kfree(res);
}

static int __init bench_init(void)
{
	struct bench_thread thread = { };
	struct task_struct *task;

	if (!runs || !bursts || !laps || !eps || !evds || evds > BENCH_EVDS ||
	    megabytes < BENCH_WINDOW * BENCH_BUF / SZ_1M)
		return -EINVAL;
	init_completion(&thread.finished);
	task = kthread_run(bench_thread, &thread, "kdapl_bench");
	if (IS_ERR(task))
		return PTR_ERR(task);
	wait_for_completion(&thread.finished);
	if (thread.err) {
		bench_free_results();
		return thread.err;
	}
	debugfs_dir = debugfs_create_dir("kdapl_bench", NULL);
	debugfs_create_file("results", 0444, debugfs_dir, NULL, &results_fops);
	return 0;
}
module_init(bench_init);

static void __exit bench_exit(void)
{
	debugfs_remove_recursive(debugfs_dir);
	bench_free_results();
}
module_exit(bench_exit);

MODULE_DESCRIPTION("Benchmark of kDAPL against raw verbs");
MODULE_LICENSE("Dual BSD/GPL");
