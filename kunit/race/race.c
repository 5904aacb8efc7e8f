// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every two calls beside each other (C5), on Endpoints and objects that both sides share,
 * while events are reaped and connections are made, used and ended. The suite is for
 * kernels with several CPUs: there the two sides call at once. With one CPU threads
 * alternate where calls sleep.
 *
 * Each pair of calls runs for some milliseconds. After a group of some pairs all connections
 * are ended and everything is counted, see model.c. A run of the whole table on the devices of
 * the test bed has each pair once, on one of them; which one follows from the seed. Those for
 * which a device has no time are left out, and it tells from where on. How often the calls of
 * a pair met is told at the end, and which pairs never did.
 *
 * To run one pair, or those of one call, as often as wanted; or from where another run ended,
 * as it tells; or one group that failed:
 *
 *	make check KERNEL=smp SUITE=race PARAMS="race_test.pair=dat_ep_reset+dat_ep_connect
 *		race_test.ms=1000 race_test.seed=5"
 *	... PARAMS="race_test.seed=5 race_test.first=160"
 *	... PARAMS="race_test.seed=5 race_test.first=160 race_test.count=8"
 */
#include <linux/hash.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/panic_notifier.h>
#include <linux/random.h>
#include <linux/sched/debug.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include "device.h"
#include "param.h"
#include "plug.h"
#include "run.h"
#include "shell.h"

/* No call takes longer, not even one that waits for the transport. */
#define HANG_MS		60000
#define WARM_UP_MS	500
#define GROUP		8	/* pairs between two states of rest, at most */
#define GROUP_FREED	8192	/* objects that are remembered meanwhile, about */

KD_PARAM(seed, uint, 0, "what the calls follow from; 0: any");
KD_PARAM(ms, uint, 0, "milliseconds of a pair; 0: what is quick");
KD_PARAM(share, uint, 0, "run one of so many pairs on each device; 0: what is quick, 1: all");
KD_PARAM(seconds, uint, 0,
	 "begin no pair after so many, on each device; 0: what is quick, or, with share, no limit");
KD_PARAM(first, uint, 0, "begin with this pair of those that a device has, counted from 0");
KD_PARAM(count, uint, 0, "run so many pairs from there; 0: all for which there is time");

static char *pair = "";
module_param(pair, charp, 0444);
MODULE_PARM_DESC(pair, "only this pair, such as dat_ep_reset+dat_ep_connect, or the pairs of one call");
KD_PARAM(verbose, bool, false, "tell of each pair how often its calls met");

/* ---- Threads ------------------------------------------------------------- */

static const char * const role_names[] = { "side", "side2", "reaper", "life", "life2", "settler" };

static char now[RACE_NAME_LEN];			/* the pair that runs */
static char group_again[RACE_REPLAY_LEN];	/* what has its group done again */

static int race_thread(void *data)
{
	struct race_caller *c = data;

	while (!READ_ONCE(*c->stop)) {
		c->step(c);
		/* Others need the CPU: on one alone, whoever is to meet this side. */
		if (num_online_cpus() == 1 || !rnd(c, 8))
			race_yield();
		else
			cond_resched();
	}
	kthread_complete_and_exit(&c->done, 0);
}

static void make_call(struct race_caller *c, const struct race_call *call)
{
	if (call->on)
		call->on(c, call->slot);
	else
		call->fn(c);
}

static void call_step(struct race_caller *c)
{
	make_call(c, c->call);
}

/*
 * The sides have CPUs of their own. Of two CPUs the other threads share what the sides leave
 * them; of more they take any.
 */
static void bind(struct race_run *r, struct task_struct *task, enum race_role role)
{
	unsigned int n = num_online_cpus(), nth = (hash_32(r->place, 16) + role) % n, cpu;

	if (role > R_SIDE2 || n == 1)
		return;
	for_each_online_cpu(cpu)
		if (!nth--)
			kthread_bind(task, cpu);
}

static bool start(struct race_run *r, enum race_role role, void (*step)(struct race_caller *c),
		  bool *stop)
{
	struct race_caller *c = &r->caller[role];
	struct task_struct *task;

	c->w = r->w;
	c->step = step;
	c->stop = stop;
	c->where = NULL;
	c->task = NULL;
	init_completion(&c->done);
	prandom_seed_state(&c->rnd, ((u64)seed << 32 | r->place) * RACE_ROLES + role);
	task = kthread_create(race_thread, c, "race-%s", role_names[role]);
	if (IS_ERR(task)) {
		race_fail(r->w, "no thread: %ld", PTR_ERR(task));
		complete(&c->done);
		return false;
	}
	bind(r, task, role);
	c->task = get_task_struct(task);
	wake_up_process(task);
	return true;
}

/* Tell where the threads are, none of which must ever come back to a world that is gone. */
static void tell_hang(struct race_run *r)
{
	struct race_caller *c;
	const char *where;
	int i;

	r->hangs = true;
	__module_get(THIS_MODULE);
	for (i = 0; i < RACE_ROLES; i++) {
		c = &r->caller[i];
		if (!c->task || completion_done(&c->done))
			continue;
		where = READ_ONCE(c->where);
		KUNIT_FAIL(r->test, "%s: the %s hangs in %s, for %u ms", now, role_names[i],
			   where ?: "no call", jiffies_to_msecs(jiffies - c->since));
		sched_show_task(c->task);
	}
}

static void await(struct race_run *r, enum race_role role)
{
	struct race_caller *c = &r->caller[role];

	if (r->hangs)
		return;
	if (!wait_for_completion_timeout(&c->done, msecs_to_jiffies(HANG_MS))) {
		tell_hang(r);
		return;
	}
	if (c->task)
		put_task_struct(c->task);
	c->task = NULL;
}

/* ---- One pair ------------------------------------------------------------ */

/* Nothing runs: have a thread do @step. */
static void settle(struct race_run *r, void (*step)(struct race_caller *c))
{
	r->stop = false;
	start(r, R_SETTLER, step, &r->stop);
	await(r, R_SETTLER);
}

/* How many connections have begun and ended? */
static void count_lives(struct race_run *r, int *begun, int *ended)
{
	*begun = atomic_read(&r->w->stat[N_ESTABLISHED]);
	*ended = atomic_read(&r->w->stat[N_DISCONNECTED]) + atomic_read(&r->w->stat[N_BROKEN]);
}

/* The time since @since went into @phase. */
static void spend(struct race_run *r, enum race_phase phase, ktime_t since)
{
	r->spent[phase] += ktime_get() - since;
}

/* Wait for the first connection of a group, so that the calls have one to begin with. */
static void warm_up(struct race_run *r)
{
	int before = atomic_read(&r->w->stat[N_ESTABLISHED]);
	ktime_t begin = ktime_get();

	while (atomic_read(&r->w->stat[N_ESTABLISHED]) == before &&
	       ktime_ms_delta(ktime_get(), begin) < WARM_UP_MS)
		race_yield();
	spend(r, P_WARM_UP, begin);
}

/*
 * Let them run for their time, and a little longer if they have not met yet, or no connection
 * has come and none gone beside them.
 */
static void run_sides(struct race_run *r)
{
	struct race_caller *a = &r->caller[R_SIDE], *b = &r->caller[R_SIDE2];
	int begun, ended, begun_before, ended_before;
	ktime_t begin = ktime_get();
	bool lived, met;
	s64 gone;

	count_lives(r, &begun_before, &ended_before);
	do {
		race_yield();
		gone = ktime_ms_delta(ktime_get(), begin);
		count_lives(r, &begun, &ended);
		lived = begun != begun_before && ended != ended_before;
		met = READ_ONCE(a->met) || READ_ONCE(b->met);
	} while (gone < r->len || (gone < 8 * r->len && !(met && lived)));
	r->lived = lived;
	spend(r, P_SIDES, begin);
}

/* Start what goes on beside the calls. */
static void start_group(struct race_run *r, unsigned int nth)
{
	r->group_first = nth;
	race_replay(r, GROUP, group_again, sizeof(group_again));
	r->group_len = 0;
	r->freed = atomic_read(&r->w->freed);
	*r->failed = 0;
	settle(r, race_prepare);
	r->stop_life = false;
	r->stop_reaper = false;
	start(r, R_REAPER, race_reap, &r->stop_reaper);
	/* While one waits for the device the other goes on. */
	start(r, R_LIFE, race_live, &r->stop_life);
	start(r, R_LIFE2, race_live, &r->stop_life);
	warm_up(r);
}

static void start_sides(struct race_run *r, void (*step)(struct race_caller *c))
{
	r->pairs++;
	r->group_len++;
	r->stop = false;
	start(r, R_SIDE, step, &r->stop);
	start(r, R_SIDE2, step, &r->stop);
}

static void stop_sides(struct race_run *r)
{
	ktime_t begin = ktime_get();

	WRITE_ONCE(r->stop, true);
	await(r, R_SIDE);
	await(r, R_SIDE2);
	spend(r, P_STOP, begin);
	if (READ_ONCE(r->w->failures) && !*r->failed)
		strscpy(r->failed, now, sizeof(r->failed));
}

/* Come to a state of rest, and count. */
static void end_group(struct race_run *r)
{
	ktime_t begin = ktime_get();

	WRITE_ONCE(r->stop_life, true);
	await(r, R_LIFE);
	await(r, R_LIFE2);
	WRITE_ONCE(r->stop_reaper, true);
	await(r, R_REAPER);
	if (r->hangs)
		return;
	settle(r, race_settle);
	race_tell_failures(r);
	spend(r, P_REST, begin);
	r->group_len = 0;
}

static void run_pair(struct race_run *r, const struct race_call *a, const struct race_call *b)
{
	int i;

	snprintf(now, sizeof(now), "%s+%s", a->name, b->name);
	for (i = 0; i < 2; i++) {
		r->caller[i].call = i ? b : a;
		r->caller[i].other = &r->caller[!i];
		r->caller[i].calls = 0;
		r->caller[i].good = 0;
		r->caller[i].met = 0;
	}
	start_sides(r, call_step);
	run_sides(r);
	stop_sides(r);
	if (!r->hangs)
		race_count_pair(r);
}

/* ---- The table ----------------------------------------------------------- */

static bool is_asked_for(const struct race_call *a, const struct race_call *b)
{
	char name[RACE_NAME_LEN], turned[RACE_NAME_LEN];

	snprintf(name, sizeof(name), "%s+%s", a->name, b->name);
	snprintf(turned, sizeof(turned), "%s+%s", b->name, a->name);
	return !strcmp(pair, a->name) || !strcmp(pair, b->name) || !strcmp(pair, name) ||
	       !strcmp(pair, turned);
}

/* Is there time for another pair? One that was asked for has all the time. */
static bool in_time(ktime_t begin)
{
	unsigned int limit = seconds ?: *pair || share ? 3600 :
			     num_online_cpus() == 1 ? 3 : 10;

	return ktime_ms_delta(ktime_get(), begin) < limit * MSEC_PER_SEC;
}

/* Run the pair at a place of the table, the @nth of this device, if there is time. */
static void run_place(struct race_run *r, unsigned int nth, ktime_t begin)
{
	unsigned int n = race_ncalls();

	if (!in_time(begin)) {
		if (!r->left++)
			r->next = nth;
		return;
	}
	if (!r->group_len)
		start_group(r, nth);
	run_pair(r, race_call_at(r->place / n), race_call_at(r->place % n));
	if (r->group_len == GROUP ||
	    atomic_read(&r->w->freed) - r->freed > GROUP_FREED)
		end_group(r);
}

/*
 * Run what is this device's part of all pairs, in an order that follows from the seed.
 * @which: of the parts
 */
static void run_table(struct race_run *r, unsigned int which)
{
	unsigned int n = race_ncalls(), i, at, nth = 0;
	ktime_t begin = ktime_get();

	/* Steps of a prime that does not divide n visit each place of the square once. */
	at = seed % (n * n);
	for (i = 0; i < n * n && !r->hangs; i++, at = (at + 10007) % (n * n)) {
		const struct race_call *a = race_call_at(at / n), *b = race_call_at(at % n);

		if (at / n > at % n)
			continue;
		if (*pair ? !is_asked_for(a, b) :
			    hash_32(seed ^ at, 32) % r->parts != which % r->parts)
			continue;
		r->place = at;
		if (nth >= first && (!count || nth - first < count))
			run_place(r, nth, begin);
		nth++;
	}
	if (r->group_len)
		end_group(r);
}

/* ---- The case ------------------------------------------------------------ */

static int tell_panic(struct notifier_block *nb, unsigned long event, void *data)
{
	pr_emerg("race: in %s; replay: %s, or for longer with race_test.pair\n", now,
		 group_again);
	return NOTIFY_DONE;
}

/* The one of arch/um, which comes next to last, does not return. */
static struct notifier_block panic_block = { .notifier_call = tell_panic, .priority = INT_MAX };

/* Open a world, and fill it. @parts, @len: see struct race_run */
static struct race_run *open_run(struct kunit *test, const char *ia, unsigned int parts,
				 unsigned int len)
{
	struct race_run *r = kzalloc(sizeof(*r), GFP_KERNEL);
	DAT_RETURN ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);

	KUNIT_ASSERT_NOT_NULL(test, r);
	KUNIT_ASSERT_LE(test, race_ncalls(), RACE_MAX_CALLS);
	r->test = test;
	r->parts = parts;
	r->len = len;
	r->pair = pair;
	r->now = now;
	r->verbose = verbose;
	r->apart = kzalloc(2 * APART_LEN, GFP_KERNEL);
	if (!seed)
		seed = get_random_u32() % 1000000 + 1;
	r->seed = seed;
	race_replay(r, GROUP, group_again, sizeof(group_again));
	if (r->apart) {
		r->still = r->apart + APART_LEN;
		r->w = race_open(ia, &ret);
	}
	if (!r->w) {
		kfree(r->apart);
		kfree(r);
		if (DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND)
			kunit_skip(test, "no device %s", ia);
		KUNIT_ASSERT_TRUE_MSG(test, false, "%s: %s", ia, kd_strerror(ret));
	}
	atomic_notifier_chain_register(&panic_notifier_list, &panic_block);
	strscpy(now, "race_open()", sizeof(now));
	settle(r, race_settle);
	race_tell_failures(r);
	return r;
}

/* If threads hang, what they use stays. */
static void close_run(struct race_run *r)
{
	DAT_RETURN ret;

	atomic_notifier_chain_unregister(&panic_notifier_list, &panic_block);
	if (r->hangs)
		return;
	race_end_linux(r->w);
	race_tell_failures(r);
	ret = race_close(r->w);
	KUNIT_EXPECT_EQ_MSG(r->test, ret, (DAT_RETURN)DAT_SUCCESS, "the IA cannot be closed: %s",
			    kd_strerror(ret));
	kfree(r->apart);
	kfree(r);
}

static void C5_every_two_calls(struct kunit *test)
{
	const struct kd_bed *bed = test->param_value;
	bool slow = kd_slow_kernel(), alone = num_online_cpus() == 1;
	ktime_t begin = ktime_get();
	struct race_run *r = open_run(test, bed->ia, share ?: slow ? 96 : alone ? 24 : 4,
				      ms ?: slow ? 40 : 10);

	run_table(r, bed->net);
	/* A group that failed may be beyond the last one of another device. */
	if (!r->pairs && !r->left && !r->hangs)
		kunit_info(test, "there is no pair %s from race_test.first=%u on", pair, first);
	KUNIT_EXPECT_TRUE(test, r->pairs || r->left || r->hangs || first);
	race_report(r, ktime_ms_delta(ktime_get(), begin));
	close_run(r);
}

/* ---- A device that leaves ------------------------------------------------ */

/* While the device leaves, those come often that have not come yet. */
static void any_call(struct race_caller *c)
{
	struct race_run *r = container_of(c->stop, struct race_run, stop);
	unsigned int n = race_ncalls(), i = rnd(c, n), missing;

	if (READ_ONCE(r->w->leaves) && rnd(c, 2)) {
		missing = find_next_zero_bit(r->beside, n, i);
		i = missing < n ? missing : i;
	}
	c->call = race_call_at(i);
	c->beside = false;
	make_call(c, c->call);
	if (c->beside)
		set_bit(i, r->beside);
}

static void sleep_for(unsigned int len)
{
	ktime_t end = ktime_add_ms(ktime_get(), len);

	while (ktime_before(ktime_get(), end))
		schedule_timeout_uninterruptible(1);
}

static struct race_world *leaving;	/* its device is removed */

static int comes(struct ib_device *dev)
{
	return 0;
}

/* Clients are told in the reverse order of their registration, this one right before kDAPL. */
static void leaves(struct ib_device *dev, void *unused)
{
	struct race_world *w = READ_ONCE(leaving);

	if (w)
		WRITE_ONCE(w->leaves, true);
}

static struct ib_client client = { .name = KBUILD_MODNAME, .add = comes, .remove = leaves };

static void forget_client(void *unused)
{
	ib_unregister_client(&client);
}

/* Have the device leave, while requests for connections wait, and look at what is left of it. */
static void remove_device(struct race_run *r, const char *ia)
{
	struct race_world *w = r->w;
	char command[64];

	snprintf(command, sizeof(command), "rdma link delete %.*s", (int)strcspn(ia, "/"), ia);
	WRITE_ONCE(w->keeps, true);
	sleep_for(20);
	WRITE_ONCE(w->is_gone, true);
	WRITE_ONCE(leaving, w);
	KUNIT_EXPECT_EQ(r->test, 0, shell(command));
	WRITE_ONCE(leaving, NULL);
	KUNIT_EXPECT_FALSE(r->test, kd_is_plugged(ia));
	KUNIT_EXPECT_TRUE(r->test, w->leaves);
	/* What is called now finds no device. */
	sleep_for(50);
}

/*
 * Make any calls while the device leaves, which get errors from then on. Return whether all
 * have been made in one of the removals, of which this is the @nth, or it is the @last.
 */
static bool remove_once(struct kunit *test, const char *ia, unsigned long *beside,
			unsigned int nth, unsigned int last)
{
	struct race_run *r = open_run(test, ia, 0, 0);
	ktime_t begin = ktime_get();
	bool done;
	int i;

	r->w->may_leave = true;
	r->beside = beside;
	r->place = nth;
	snprintf(now, sizeof(now), "removal of %s", ia);
	start_group(r, 0);
	for (i = 0; i < 2; i++)
		r->caller[i].other = &r->caller[!i];
	start_sides(r, any_call);
	sleep_for(50);
	remove_device(r, ia);
	stop_sides(r);
	end_group(r);
	done = r->hangs || nth == last || bitmap_weight(beside, race_ncalls()) == race_ncalls();
	if (!r->hangs && atomic_read(&r->w->catastrophes) != 1)
		race_fail(r->w, "%d events that the device has gone",
			  atomic_read(&r->w->catastrophes));
	race_tell_failures(r);
	if (done) {
		race_count_beside(r);
		race_report(r, ktime_ms_delta(ktime_get(), begin));
	}
	close_run(r);
	return done;
}

/* The device leaves while all threads make calls, as often as it takes to make each meanwhile. */
static void N6_removal_beside_calls(struct kunit *test)
{
	const struct kd_second *second = test->param_value;
	/* A thread that hangs may come back to it. */
	static DECLARE_BITMAP(beside, RACE_MAX_CALLS);
	unsigned int nth = 0, last = kd_slow_kernel() ? 0 : 3, i;
	bool done;

	bitmap_zero(beside, RACE_MAX_CALLS);
	KUNIT_ASSERT_EQ(test, 0, ib_register_client(&client));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, forget_client, NULL));
	do {
		done = remove_once(test, second->ia, beside, nth, last);
		for (i = 0; i < 2 && !kd_is_plugged(second->ia); i++)
			kd_plug(test);
	} while (!done && kd_is_plugged(second->ia) && nth++ < last);
}

static struct kunit_case race_cases[] = {
	KUNIT_CASE_PARAM_ATTR(C5_every_two_calls, kd_gen_any_ia,
			      { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE_PARAM(N6_removal_beside_calls, kd_gen_second),
	{}
};

KD_SUITE("kdapl-race", race_cases, "every two calls beside each other");
