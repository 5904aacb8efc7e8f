// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko and kdapl_blk_tgt.ko: several disks of a host that are one
 * volume, so that one takes over what another could not do. The medium holds a
 * write of the first one all the while.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include "blk_command.h"
#include "blk_target.h"
#include "files.h"

#define INI_KO	"/run/out/modules/kdapl_blk.ko"
#define INI	"/sys/kernel/config/kdapl_blk"
#define PORT(n)	TGT "/ports/" #n
/* What the medium holds ends the connection, and requests fail. */
#define TIMES_OUT	"echo 2000 >/sys/block/kdapl0/queue/io_timeout"

/* Fill a sector with a letter. */
#define FILL(c, dev)	"head -c 512 /dev/zero | tr '\\0' " c " | dd of=/dev/" dev	\
			" bs=512 count=1 iflag=fullblock oflag=direct "	\
			"conv=notrunc 2>/dev/null"
#define FLUSH(dev)	"dd if=/dev/null of=/dev/" dev " count=0 "	\
			"conv=notrunc,fsync 2>/dev/null"

/* Wait for a command; if it hangs, let the medium go on so that it ends. */
static void command_wait_for(struct kunit *test, struct backing *backing,
			     struct command *command)
{
	bool ended = kd_wait_until(kdb_command_has_ended, command,
				   KD_TIMEOUT_MS);

	if (!ended)
		kdb_backing_hold(backing, false);
	KUNIT_ASSERT_TRUE_MSG(test, ended, "hangs: %s", command->what);
}

/* ---- Two disks, two ports ------------------------------------------------ */

static void paths_remove(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, 0, shell("cd " INI " && rmdir *"));
	kdb_unload_initiator(test);
}

static void path_connect(struct kunit *test, int n, u16 port, const char *more)
{
	struct kd_side *side = kdb_client(test);
	char command[640];

	snprintf(command, sizeof(command),
		 "set -e; mkdir -p " INI "/path%d; cd " INI "/path%d; echo %s >ia;"
		 " echo %pIS >address; echo %u >conn_qual; echo vol >subsystem;"
		 " echo 1 >queues; echo 3 >depth; echo 0 >keepalive_ms;"
		 " echo 60000 >timeout_ms; echo 10 >reconnect_ms;"
		 " echo 100 >reconnect_max_ms; echo 0 >give_up_ms; %s;"
		 " echo 1 >connected", n, n, side->name, side->addr, port, more);
	kd_close(side);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
}

/*
 * Disks for both ports. What the second one sends waits for connections. @more:
 * for the first one.
 */
static struct backing *paths_load(struct kunit *test, const char *more)
{
	struct backing *backing = tgt_load_two_ports(test);

	KUNIT_ASSERT_EQ(test, 0, shell("insmod " INI_KO));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, paths_remove,
							   test));
	path_connect(test, 1, TGT_PORT, more);
	path_connect(test, 2, TGT_OTHER_PORT, "echo 600000 >give_up_ms");
	return backing;
}

static bool is_held(void *data)
{
	struct backing *backing = data;

	return atomic_read(&backing->nheld);
}

/* Have the first disk write a sector, which the medium holds. */
static struct command *hold_a_write(struct kunit *test, struct backing *backing)
{
	struct command *write;

	kdb_backing_hold(backing, true);
	write = kdb_command_start(test, FILL("a", "kdapl0"));
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_held, backing, KD_TIMEOUT_MS));
	kdb_backing_pass(backing);
	return write;
}

static void port_1_lives(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, 0, shell("ln -s " TGT "/subsystems/vol " PORT(1)
				       "/subsystems/vol"));
}

/* Stop a port, which then waits for what its connections have under way. */
static struct command *port_1_dies(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, port_1_lives,
							   test));
	return kdb_command_start(test, "rm " PORT(1) "/subsystems/vol");
}

static bool path_has_failed(void *data)
{
	return !shell("grep -qx failed " INI "/path1/state");
}

static bool path_2_is_lost(void *data)
{
	return !shell("grep -qx reconnecting " INI "/path2/state");
}

/* The first disk has tried in vain to connect, and the second to fence it. */
static bool is_being_fenced(void *data)
{
	return !shell("grep -Eq 'error replies +([2-9]|[0-9]{2,})$' " PORT(2)
		      "/stats && test $(sed -n 's/^attempts to connect *//p' "
		      INI "/path1/stats) -ge 4");
}

static bool has_fenced_again(void *data)
{
	return !shell("grep -Eq 'error replies +([2-9]|[0-9]{2,})$' " PORT(2)
		      "/stats");
}

static void expect_sector(struct kunit *test, struct backing *backing, char c)
{
	KUNIT_EXPECT_NULL_MSG(test, memchr_inv(backing->data, c, 512),
			      "the sector is full of %c", backing->data[0]);
}

/* ---- Cases --------------------------------------------------------------- */

/*
 * The port of the first disk dies. The write that the medium holds must not
 * fail before the medium is through with it: who is told writes the sector
 * again through the second disk.
 */
static void ini_fails_when_fenced(struct kunit *test)
{
	struct backing *backing = paths_load(test, "true");
	struct command *write = hold_a_write(test, backing);
	struct command *port = port_1_dies(test);
	bool ended;

	kd_wait_until(is_being_fenced, NULL, KD_TIMEOUT_MS);
	ended = kdb_command_has_ended(write);
	KUNIT_EXPECT_FALSE_MSG(test, ended,
			       "the write has failed while it may be executed");
	if (ended)
		KUNIT_EXPECT_EQ(test, 0, shell(FILL("b", "kdapl1")));
	kdb_backing_hold(backing, false);
	kdb_command_wait(write);
	KUNIT_EXPECT_NE(test, write->status, 0);
	KUNIT_EXPECT_TRUE(test, path_has_failed(NULL));
	if (!ended)
		KUNIT_EXPECT_EQ(test, 0, shell(FILL("b", "kdapl1")));
	expect_sector(test, backing, 'b');
	KUNIT_EXPECT_EQ(test, 0, shell("grep -Eq 'other paths fenced +1$' " INI
				       "/path2/stats"));
	kdb_command_wait(port);
}

/* @command fences the write that the medium keeps, and waits; @hasty tells what it does else. */
static void expect_fences(struct kunit *test, struct backing *backing, struct command *command,
			  const char *hasty)
{
	KUNIT_EXPECT_TRUE(test, kd_wait_until(has_fenced_again, NULL, KD_TIMEOUT_MS));
	KUNIT_EXPECT_FALSE_MSG(test, kdb_command_has_ended(command), "%s", hasty);
	kdb_backing_hold(backing, false);
	kdb_command_wait(command);
	KUNIT_EXPECT_EQ(test, command->status, 0);
}

/*
 * Neither disk is connected, so the write fails at once. The second disk, when
 * it connects again, writes nothing before the medium is through with it.
 */
static void ini_fences_before_use(struct kunit *test)
{
	struct backing *backing = paths_load(test, "true");
	struct command *write, *rewrite;

	KUNIT_ASSERT_EQ(test, 0, shell(TIMES_OUT));
	write = hold_a_write(test, backing);
	KUNIT_ASSERT_EQ(test, 0, shell("rm " PORT(2) "/subsystems/vol"));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(path_2_is_lost, NULL,
					      KD_TIMEOUT_MS));
	kdb_command_wait(write);
	KUNIT_EXPECT_NE(test, write->status, 0);
	KUNIT_ASSERT_EQ(test, 0, shell("ln -s " TGT "/subsystems/vol " PORT(2)
				       "/subsystems/vol"));
	rewrite = kdb_command_start(test, FILL("b", "kdapl1"));
	expect_fences(test, backing, rewrite, "a write overtakes one that may be executed");
	expect_sector(test, backing, 'b');
}

/* The same for a disk that is made when the first one was removed. */
static void ini_fences_removed_disk(struct kunit *test)
{
	struct backing *backing = paths_load(test, "true");
	struct command *write, *again;

	KUNIT_ASSERT_EQ(test, 0, shell("rmdir " INI "/path2; " TIMES_OUT));
	write = hold_a_write(test, backing);
	kdb_command_wait(write);
	KUNIT_EXPECT_NE(test, write->status, 0);
	KUNIT_ASSERT_EQ(test, 0, shell("cd " INI "/path1; echo 0 >connected;"
				       " echo 5101 >conn_qual"));
	again = kdb_command_start(test, "echo 1 >" INI "/path1/connected");
	expect_fences(test, backing, again, "there is a disk while the other may write");
	KUNIT_EXPECT_EQ(test, 0, shell(FILL("b", "kdapl0")));
	expect_sector(test, backing, 'b');
}

/*
 * All disks are removed while the medium holds a write of one. Have the administrator
 * unload the module, if it can be unloaded, and load it again.
 */
static int reload(struct kunit *test)
{
	int err = shell("rmmod kdapl_blk 2>/dev/null");

	if (!err)
		KUNIT_ASSERT_EQ(test, 0, shell("insmod " INI_KO));
	return err;
}

static void remove_with_a_write(struct kunit *test, struct backing *backing)
{
	struct command *write;

	KUNIT_ASSERT_EQ(test, 0, shell("rmdir " INI "/path2; " TIMES_OUT));
	write = hold_a_write(test, backing);
	kdb_command_wait(write);
	KUNIT_EXPECT_NE(test, write->status, 0);
	KUNIT_ASSERT_EQ(test, 0, shell("rmdir " INI "/path1"));
}

/* The module does not forget that a write may still reach the volume. */
static void ini_unload_keeps_fences(struct kunit *test)
{
	struct backing *backing = paths_load(test, "true");
	struct command *again;

	remove_with_a_write(test, backing);
	KUNIT_EXPECT_NE_MSG(test, reload(test), 0, "the module has forgotten a fence");
	path_connect(test, 1, TGT_OTHER_PORT, "exit 0");
	again = kdb_command_start(test, "echo 1 >" INI "/path1/connected; "
				  FILL("b", "kdapl0"));
	kd_wait_until(has_fenced_again, NULL, 5000);
	KUNIT_EXPECT_FALSE_MSG(test, kdb_command_has_ended(again),
			       "there is a disk while the other may write");
	kdb_backing_hold(backing, false);
	kdb_command_wait(again);
	KUNIT_EXPECT_EQ(test, again->status, 0);
	expect_sector(test, backing, 'b');
}

static bool is_reloaded(void *test)
{
	return !reload(test);
}

/* Nothing but the administrator's word makes it forget. */
static void ini_unload_when_told(struct kunit *test)
{
	struct backing *backing = paths_load(test, "true");

	remove_with_a_write(test, backing);
	KUNIT_EXPECT_NE(test, shell("rmmod kdapl_blk 2>/dev/null"), 0);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 1 >/sys/module/kdapl_blk/parameters/forget_fences"));
	/* The end of the disk, which rmdir does not wait for, holds the module. */
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_reloaded, test, KD_TIMEOUT_MS));
	kdb_backing_hold(backing, false);
	path_connect(test, 1, TGT_OTHER_PORT, "true");
}

/*
 * What was written through one disk is lost to all: a flush that fails on one
 * fails on the other, whatever the target says.
 */
static void ini_flush_fails_on_all(struct kunit *test)
{
	struct backing *backing = paths_load(test, "true");

	KUNIT_EXPECT_EQ(test, 0, shell(FILL("a", "kdapl0")));
	KUNIT_EXPECT_EQ(test, 0, shell(FLUSH("kdapl1")));
	KUNIT_EXPECT_EQ(test, 0, shell(FILL("b", "kdapl0")));
	backing->flush_status = BLK_STS_IOERR;
	KUNIT_EXPECT_NE(test, 0, shell(FLUSH("kdapl1")));
	backing->flush_status = BLK_STS_OK;
	KUNIT_EXPECT_NE(test, 0, shell(FLUSH("kdapl0")));
	/* Who is told by the administrator begins anew. */
	KUNIT_EXPECT_EQ(test, 0, shell("cd " INI "; echo 0 >path1/connected;"
				       " echo 0 >path2/connected;"
				       " echo 1 >path1/connected"));
	KUNIT_EXPECT_EQ(test, 0, shell(FLUSH("kdapl0")));
}

/*
 * Nobody answers the write of a disk that is removed, and the other path cannot
 * fence it. The administrator goes on with other disks.
 */
static void ini_removed_by_itself(struct kunit *test)
{
	struct backing *backing = paths_load(test, "true");
	struct command *write = hold_a_write(test, backing);
	struct command *port = port_1_dies(test);
	struct command *zero, *gone, *others;

	/* Who waits for the end can be told not to. */
	zero = kdb_command_start(test, "timeout 1 sh -c 'echo 0 >" INI
				 "/path1/connected'");
	command_wait_for(test, backing, zero);
	KUNIT_EXPECT_NE(test, zero->status, 0);
	KUNIT_EXPECT_NE(test, shell("echo 2 2>/dev/null >" INI "/path1/depth"), 0);
	KUNIT_EXPECT_NE(test, shell("echo 1 2>/dev/null >" INI
				    "/path1/connected"), 0);
	gone = kdb_command_start(test, "rmdir " INI "/path1");
	others = kdb_command_start(test, "set -e; cd " INI "; mkdir other;"
				   " rmdir other; cat path2/state >/dev/null");
	command_wait_for(test, backing, others);
	command_wait_for(test, backing, gone);
	KUNIT_EXPECT_EQ(test, gone->status, 0);
	KUNIT_EXPECT_EQ(test, others->status, 0);
	KUNIT_EXPECT_EQ(test, shell("test -e " INI "/path1"), 1 << 8);
	KUNIT_EXPECT_FALSE(test, kdb_command_has_ended(write));
	kdb_backing_hold(backing, false);
	kdb_command_wait(write);
	KUNIT_EXPECT_NE(test, write->status, 0);
	kdb_command_wait(port);
}

static bool two_are_held(void *data)
{
	struct backing *backing = data;

	return atomic_read(&backing->nheld) == 2;
}

static bool stands_still(void *data)
{
	struct block_device *bdev = data;

	return blk_queue_quiesced(bdev_get_queue(bdev));
}

static void port_2_lives(void *unused)
{
	shell("ln -s " TGT "/subsystems/vol " PORT(2) "/subsystems/vol");
}

/* The second disk has lost its connection, and has tried to connect again. */
static bool path_2_stands_still(void *unused)
{
	return !shell("cd " INI "/path2; grep -qx reconnecting state || exit 1;"
		      " grep -Eq 'connections lost +1$' stats || exit 1;"
		      " test $(sed -n 's/^attempts to connect *//p' stats) -ge 2");
}

static void port_2_dies(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, shell("rm " PORT(2) "/subsystems/vol"));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, port_2_lives,
							   NULL));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(path_2_stands_still, NULL,
					      KD_TIMEOUT_MS));
}

/*
 * The medium holds as many writes of the first disk as its connection has slots.
 * The second one loses its connection, and is disconnected; the first one is to
 * fence it, which has to wait for a slot.
 */
static struct command *fence_behind_writes(struct kunit *test,
					   struct backing *backing)
{
	struct command *writes;

	kdb_backing_hold(backing, true);
	writes = kdb_command_start(test, "(" FILL("a", "kdapl0") ")& "
				   FILL("a", "kdapl0") "; one=$?; wait $! && exit $one");
	KUNIT_EXPECT_TRUE(test, kd_wait_until(two_are_held, backing,
					      KD_TIMEOUT_MS));
	port_2_dies(test);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" INI "/path2/connected"));
	return writes;
}

/*
 * The fence waits for requests that have come first, which is no reason to think
 * that nobody is there.
 */
static void ini_fence_waits(struct kunit *test)
{
	struct backing *backing = paths_load(test, "echo 2000 >connect_timeout_ms");
	struct command *writes = fence_behind_writes(test, backing);

	/* Twice as long as it may take otherwise, and more. */
	msleep(5000);
	kdb_backing_hold(backing, false);
	kdb_command_wait(writes);
	KUNIT_EXPECT_EQ(test, writes->status, 0);
	KUNIT_EXPECT_EQ(test, 0, shell("grep -Eqx 'connections lost +0' " INI
				       "/path1/stats"));
}

/*
 * The medium holds all that the second disk has credits for, but for one perhaps,
 * and one of the first.
 */
static bool no_credit_is_left(void *data)
{
	struct backing *backing = data;

	return atomic_read(&backing->nheld) >= TGT_CREDITS &&
	       !shell("grep -Eq 'waits for credit +[1-9]' " INI "/path2/stats");
}

static bool has_been_asked(void *unused)
{
	return !shell("grep -Eq 'error replies +[1-9]' " PORT(2) "/stats");
}

/* The block layer leaves a credit for the fence, however many it could use. */
static void ini_fences_when_busy(struct kunit *test)
{
	struct backing *backing = paths_load(test, "true");
	struct command *writes, *write, *port;

	KUNIT_ASSERT_EQ(test, 0, shell("rmdir " INI "/path2"));
	path_connect(test, 2, TGT_OTHER_PORT, "echo 32 >depth");
	kdb_backing_hold(backing, true);
	write = kdb_command_start(test, FILL("a", "kdapl0"));
	writes = kdb_command_start(test, "for n in 1 2 3 4 5 6 7 8 9 10; do "
				   FILL("b", "kdapl1") "& done; wait");
	KUNIT_EXPECT_TRUE(test, kd_wait_until(no_credit_is_left, backing,
					      KD_TIMEOUT_MS));
	port = port_1_dies(test);
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(has_been_asked, NULL,
						  KD_TIMEOUT_MS),
			      "no credit is left for a fence");
	kdb_backing_hold(backing, false);
	kdb_command_wait(write);
	kdb_command_wait(writes);
	kdb_command_wait(port);
}

/*
 * The second disk is disconnected while it has lost its connection, and the first
 * one cannot fence it yet. The block layer stands still for it, and for a disk
 * that is made again in its place whenever that one has lost its connection.
 */
static void ini_removed_when_it_stood_still(struct kunit *test)
{
	struct backing *backing = paths_load(test, "true");
	struct command *writes = fence_behind_writes(test, backing);
	struct file *file;

	kdb_backing_hold(backing, false);
	kdb_command_wait(writes);
	kunit_release_action(test, port_2_lives, NULL);

	KUNIT_ASSERT_EQ(test, 0, shell("rmdir " INI "/path1"));
	path_connect(test, 2, TGT_OTHER_PORT, "echo 600000 >give_up_ms");
	file = kd_filp_open("/dev/kdapl0", O_RDONLY, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_ASSERT_EQ(test, 0, shell("rm " PORT(2) "/subsystems/vol"));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(path_2_is_lost, NULL,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(stands_still,
					      I_BDEV(file->f_mapping->host),
					      KD_TIMEOUT_MS));
	kd_filp_close(file);
	port_2_lives(NULL);
}

static struct kunit_case path_cases[] = {
	KUNIT_CASE_PARAM(ini_fails_when_fenced, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_fences_before_use, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_fences_removed_disk, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_unload_keeps_fences, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_unload_when_told, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_flush_fails_on_all, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_removed_by_itself, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_removed_when_it_stood_still, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_fence_waits, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_fences_when_busy, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-path", path_cases, "several paths to a volume of the block device");
