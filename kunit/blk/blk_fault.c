// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko and kdapl_blk_tgt.ko on one adapter: one thing fails in the life of a disk,
 * from connecting it to disconnecting it, the first thing that can, then the second, and so
 * on until nothing is left to fail. What fails is a step of either module (steps.h), an
 * operation of the adapter (ops.h), or a request that the adapter completes in error, or
 * never (kdapl_sim.h).
 *
 * Whatever it is, connecting ends, and so does each request, within KD_TIMEOUT_MS; data is
 * right, or an error is told, and then the medium has the data of before or after. The next
 * life of the disk is whole. In the end both modules can be unloaded, and the adapter has no
 * object that it did not have before.
 */
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/module.h>
#include "../fault/ops.h"
#include "../fault/steps.h"
#include "../fault/ways.h"
#include "blk_backing.h"
#include "blk_fault_io.h"
#include "blk_hosts.h"
#include "blk_initiator.h"
#include "blk_secret.h"
#include "device.h"
#include "files.h"

#define MOST_FAULTS	2000
#define DISK		"/dev/kdapl0"
#define TGT_OTHER_NS	TGT "/subsystems/vol/namespaces/2"
#define TGT_FILE	"/tmp/kdapl_blk_test"

/* ---- The life of a disk --------------------------------------------------- */

/* Change what the disk is, in a work item as it might hang. Return 0 or an error number. */
static struct {
	struct work_struct work;
	struct completion ended;
	const char *value;
	int err;
} change;

static void change_work(struct work_struct *work)
{
	change.err = ini_put("connected", change.value);
	complete(&change.ended);
}

static int set_connected(struct world *w, const char *value)
{
	change.value = value;
	reinit_completion(&change.ended);
	queue_work(system_long_wq, &change.work);
	KUNIT_ASSERT_NE_MSG(w->test, 0,
			    wait_for_completion_timeout(&change.ended, 3 * KD_TIMEOUT_MS *
							HZ / 1000),
			    "%s: writing %s to \"connected\" hangs", w->what, value);
	return change.err;
}

/*
 * Connect the disk, use it, disconnect it; the @nth thing fails in @way, if any. Return the first
 * error; of lives in which nothing fails only connecting may, as the target may be busy with the
 * end of the life before.
 */
static int life(void *world, const struct kdf_way *way, unsigned int nth)
{
	struct world *w = world;
	struct file *file;
	int err;

	if (way)
		way->arm(way, nth);
	err = set_connected(w, "1");
	if (err)
		return err;
	file = kd_filp_open(DISK, O_RDWR, 0);
	err = PTR_ERR_OR_ZERO(file);
	if (!err) {
		err = kdb_io_all(w, I_BDEV(file->f_mapping->host), !way);
		kd_filp_close(file);
	}
	KUNIT_EXPECT_EQ_MSG(w->test, set_connected(w, "0"), 0, "%s: cannot be disconnected",
			    w->what);
	return err;
}

static bool is_whole(void *data)
{
	return !life(data, NULL, 0);
}

/* ---- What fails ----------------------------------------------------------- */

static void walk(struct world *w, const struct kdf_way *ways, const char *timeout_ms)
{
	struct kdf_walk walk = {
		.test = w->test,
		.world = w,
		.life = life,
		.is_whole = is_whole,
		.broken = "the disk cannot be connected",
		.stride = kd_slow_kernel() ? 36 : 16,
		.most = MOST_FAULTS,
	};

	KUNIT_ASSERT_EQ(w->test, 0, ini_put("timeout_ms", timeout_ms));
	w->what = walk.what;
	kdf_walk(&walk, ways);
}

/* ---- The modules ---------------------------------------------------------- */

enum medium { IN_MEMORY, IN_A_FILE };

/* The simulated adapters with each medium: no other can fail as they do. */
static KD_GENERATOR(gen_medium)
{
	static const char * const names[] = {
		[IN_MEMORY] = "in memory",
		[IN_A_FILE] = "in a file",
	};
	const struct kd_param *next = prev;

	do {
		next = kd_gen_any_ia_and(next, desc, names, ARRAY_SIZE(names));
	} while (next && !kd_ia_has(next->ia, KD_SIMULATED));
	return next;
}

static bool doctored;
static struct holdings before;

static void expect_nothing_left(void *test)
{
	kdf_expect_holdings(test, &before, "both modules");
}

static void unload(void *test)
{
	ini_unload(test);
}

/* Load both modules and make a disk that can be connected. */
static struct world *make_world(struct kunit *test, enum medium medium)
{
	const char *ia = *(const char * const *)test->param_value;
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct kd_side *side;

	if (!doctored)
		kunit_skip(test, "no " INI_KO);
	KUNIT_ASSERT_NOT_NULL(test, w);
	w->test = test;
	w->what = "nothing";
	kdb_io_begin(w);
	kdf_ways_begin(kd_test_device(test, ia));
	kdf_replace_operations(test, ia);
	kdf_count_holdings(&before);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, expect_nothing_left, test));
	if (medium == IN_MEMORY)
		kdb_backing_make(test, 0);
	tgt_load(test);
	if (medium == IN_MEMORY)
		KUNIT_ASSERT_EQ(test, 0, shell("set -e; cd " TGT_NS "; echo 0 >enable;"
					       " echo " BACKING_0 " >path; echo 1 >enable"));
	ini_attrs.give_up_ms = "600000";
	ini_attrs.reconnect_max_ms = "20";
	ini_attrs.timeout_ms = PATIENT;
	ini_attrs.secret = SECRET;
	ini_attrs.read_queues = "1";
	KUNIT_ASSERT_EQ(test, 0, shell("echo '" SECRET "' >" TGT "/clients/friend/secret"));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, unload, test));
	side = kd_open_param(test);
	kdb_make_disk(side, TGT_PORT);
	KUNIT_ASSERT_EQ(test, 0, ini_put("client", "friend"));
	kd_close(side);
	return w;
}

/* Put the disk in the state that its first life expects. */
static void begin(struct world *w)
{
	struct file *file;

	KUNIT_ASSERT_EQ(w->test, 0, set_connected(w, "1"));
	file = kd_filp_open(DISK, O_RDWR, 0);
	KUNIT_ASSERT_FALSE(w->test, IS_ERR(file));
	kdb_io_fill(w, I_BDEV(file->f_mapping->host));
	kd_filp_close(file);
	KUNIT_ASSERT_EQ(w->test, 0, set_connected(w, "0"));
}

/* ---- Cases ---------------------------------------------------------------- */

static void blk_a_step_fails(struct kunit *test)
{
	const struct kd_param *p = test->param_value;
	struct world *w = make_world(test, p->choice);

	begin(w);
	walk(w, kdf_any_step, PATIENT);
	kdf_show_steps(test);
}

static void blk_an_operation_fails(struct kunit *test)
{
	struct world *w = make_world(test, IN_MEMORY);

	begin(w);
	walk(w, kdf_operations, PATIENT);
}

static void blk_completes_in_error(struct kunit *test)
{
	struct world *w = make_world(test, IN_MEMORY);

	begin(w);
	walk(w, kdf_completions, PATIENT);
}

/* Requests of the disk time out then, and are sent again over another connection. */
static void blk_never_completes(struct kunit *test)
{
	struct world *w = make_world(test, IN_MEMORY);

	begin(w);
	walk(w, kdf_never, "500");
}

/*
 * What an administrator does.
 * @make: what fails, or not
 * @undo: undoes it
 * @used: the disk needs it
 */
static const struct {
	const char *what;
	const char *make;
	const char *undo;
	bool used;
} commands[] = {
	{
		"port", "ln -s " TGT "/subsystems/vol " TGT "/ports/1/subsystems/vol",
		"rm " TGT "/ports/1/subsystems/vol", true
	},
	{ "volume", "echo 1 >" TGT_NS "/enable", "echo 0 >" TGT_NS "/enable", true },
	{ "path", "echo " TGT_FILE " >" TGT_OTHER_NS "/path", "true" },
	{ "client", "mkdir " TGT "/clients/c", "rmdir " TGT "/clients/c" },
	{
		"subsystem", "mkdir -p " TGT "/subsystems/s/namespaces/1",
		"rmdir " TGT "/subsystems/s/namespaces/1 " TGT "/subsystems/s"
	},
	{
		"permission", "ln -s " TGT "/clients/friend " TGT
		"/subsystems/vol/allowed_clients/friend",
		"rm " TGT "/subsystems/vol/allowed_clients/friend"
	},
	{ "idle port", "mkdir " TGT "/ports/7", "rmdir " TGT "/ports/7" },
	{ "disk", "mkdir " INI_DISK "2", "rmdir " INI_DISK "2" },
};

/* Something is made, or is not; then it can be made, and the disk can be used. */
static void blk_a_command_fails(struct kunit *test)
{
	struct world *w = make_world(test, IN_A_FILE);
	unsigned int i, nth;
	char what[64];
	bool fired;
	int err;

	begin(w);
	KUNIT_ASSERT_EQ(test, 0, shell("mkdir " TGT_OTHER_NS));
	w->what = what;
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (commands[i].used)
			KUNIT_EXPECT_EQ(test, 0, shell(commands[i].undo));
		fired = true;
		for (nth = 1; fired && nth < MOST_FAULTS; nth++) {
			snprintf(what, sizeof(what), "%s, step %u", commands[i].what, nth);
			kdf_fail_step(nth);
			err = shell(commands[i].make);
			fired = !kdf_steps_left();
			KUNIT_EXPECT_TRUE_MSG(test, fired || !err, "%s: %#x", what, err);
			if (err)
				KUNIT_EXPECT_EQ_MSG(test, 0, shell(commands[i].make), "after %s",
						    what);
			if (commands[i].used)
				KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(is_whole, w,
									  KD_TIMEOUT_MS),
						      "the disk cannot be connected after %s",
						      what);
			if (fired || !commands[i].used)
				KUNIT_EXPECT_EQ_MSG(test, 0, shell(commands[i].undo), "after %s",
						    what);
		}
	}
	KUNIT_EXPECT_EQ(test, 0, shell("rmdir " TGT_OTHER_NS));
	kdf_show_steps(test);
}

static int suite_begins(struct kunit_suite *suite)
{
	INIT_WORK(&change.work, change_work);
	init_completion(&change.ended);
	doctored = !kdf_doctor("kdapl_blk") && !kdf_doctor("kdapl_blk_tgt");
	return 0;
}

static void suite_ends(struct kunit_suite *suite)
{
	if (!doctored)
		return;
	kdf_undoctor("kdapl_blk_tgt");
	kdf_undoctor("kdapl_blk");
}

static struct kunit_case fault_cases[] = {
	KUNIT_CASE_PARAM(blk_a_step_fails, gen_medium),
	KUNIT_CASE_PARAM(blk_a_command_fails, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(blk_an_operation_fails, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(blk_completes_in_error, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(blk_never_completes, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-blk-fault", fault_cases, "one thing fails in the life of a block device",
	 .init = ini_init, .suite_init = suite_begins, .suite_exit = suite_ends);
