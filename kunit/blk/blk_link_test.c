// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko: disks of a subsystem that share connections, at the real target. The
 * volumes of the first two are in memory, and may stand still; that of the third is a
 * file.
 */
#include <linux/module.h>
#include "blk_command.h"
#include "blk_listener.h"
#include "blk_secret.h"
#include "blk_volumes.h"
#include "files.h"
#include "peer.h"

#define INI_KO	"/run/out/modules/kdapl_blk.ko"
#define INI	"/sys/kernel/config/kdapl_blk"
#define PORT_LINK TGT "/ports/1/subsystems/vol"
#define SLOW_DISK	"/dev/kdapl0"
#define QUICK_DISK	"/dev/kdapl1"

/* Fill sector @at with a letter. */
#define FILL(c, dev, at) "head -c 512 /dev/zero | tr '\\0' " c " | dd of=" dev	\
			" bs=512 count=1 seek=" at " iflag=fullblock "		\
			"oflag=direct conv=notrunc 2>/dev/null"
#define READ_ALL(dev)	"dd if=" dev " of=/dev/null bs=64k count=16 "		\
			"iflag=direct 2>/dev/null"
/* A volume that stands still makes a request time out again and again. */
#define TIMES_OUT	"for d in kdapl0 kdapl1; do "				\
			"echo 300 >/sys/block/$d/queue/io_timeout; done"

/* ---- Volumes and disks --------------------------------------------------- */

static void disks_remove(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, 0, shell("cd " INI " && rmdir *"));
	kdb_unload_initiator(test);
}

/* More requests than one disk has */
#define MANY	"echo 32 >io_depth; echo 32 >credits; echo 32 >pages; echo 32 >buffers"

/* Load target and initiator. @port: commands for the port */
static void load(struct kunit *test, const char *port)
{
	kdb_load_volumes(test, port);
	KUNIT_ASSERT_EQ(test, 0, shell("insmod " INI_KO));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, disks_remove,
							   test));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, kdb_release_volumes,
						  NULL));
}

/* Make the command that connects disk @n to volume @nsid. @more: other parameters. */
static const char *disk_command(struct kunit *test, int n, u32 nsid,
				const char *more)
{
	struct kd_side *side = kdb_client(test);
	char *command = kunit_kzalloc(test, 640, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, command);
	snprintf(command, 640,
		 "set -e; mkdir -p " INI "/disk%d; cd " INI "/disk%d; echo %s >ia;"
		 " echo %pIS >address; echo %u >conn_qual; echo vol >subsystem;"
		 " echo %u >namespace; echo 1 >share;"
		 " echo 1 >queues; echo 16 >depth; echo 5000 >keepalive_ms;"
		 " echo 60000 >timeout_ms; echo 10 >reconnect_ms;"
		 " echo 100 >reconnect_max_ms; echo 600000 >give_up_ms; %s;"
		 " echo 1 >connected", n, n, side->name, side->addr, TGT_PORT, nsid,
		 more);
	kd_close(side);
	return command;
}

static int disk_connect(struct kunit *test, int n, u32 nsid, const char *more)
{
	return shell(disk_command(test, n, nsid, more));
}

/* Connect disks to volumes 2 and 3, which are SLOW_DISK and QUICK_DISK. */
static void load_two(struct kunit *test, const char *more)
{
	load(test, MANY);
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 0, 2, more));
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 1, 3, more));
}

/* The target may see the end of a connection later than the initiator. */
static void expect_connections(struct kunit *test, int n)
{
	char command[128];

	snprintf(command, sizeof(command), "set -- $(wc -l <" TGT
		 "/ports/1/connections); [ $1 = %d ]", n);
	kd_expect_soon(test, command);
}

static bool stat_is(int n, const char *what)
{
	char command[160];

	snprintf(command, sizeof(command), "grep -Eqx '%s' " INI "/disk%d/stats",
		 what, n);
	return !shell(command);
}

static bool disk_is(int n, const char *state)
{
	char command[128];

	snprintf(command, sizeof(command), "grep -qx %s " INI "/disk%d/state",
		 state, n);
	return !shell(command);
}

static bool has_two_queues(void *unused)
{
	return stat_is(0, "queues +2 of 2");
}

static bool slow_is_connected(void *unused)
{
	return disk_is(0, "connected");
}

static bool slow_waits(void *unused)
{
	return disk_is(0, "reconnecting");
}

static bool both_are_connected(void *unused)
{
	return disk_is(0, "connected") && disk_is(1, "connected");
}

static bool has_timed_out(void *unused)
{
	return stat_is(0, "requests timed out +([3-9]|[0-9]{2,})");
}

static bool is_held(void *data)
{
	return atomic_read(&kdb_slow->nheld) >= (long)data;
}

/* Have the slow volume hold @n writes or more, which @what begins. */
static struct command *hold_writes(struct kunit *test, const char *what, long n)
{
	struct command *write;

	kdb_backing_hold(kdb_slow, true);
	write = kdb_command_start(test, what);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_held, (void *)n, KD_TIMEOUT_MS));
	return write;
}

static void expect_no_loss(struct kunit *test, int n)
{
	KUNIT_EXPECT_TRUE(test, stat_is(n, "connections lost +0"));
	KUNIT_EXPECT_TRUE(test, stat_is(n, "detached by the target +0"));
}

/* ---- Cases --------------------------------------------------------------- */

/* Three disks have one connection, of which the last one takes care. */
static void ini_shares(struct kunit *test)
{
	load_two(test, "true");
	expect_connections(test, 1);
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 2, 1, "true"));
	expect_connections(test, 1);
	KUNIT_EXPECT_EQ(test, 0, shell(FILL("a", SLOW_DISK, "0") " && " FILL("b", QUICK_DISK, "0")
				       " && cmp -n 65536 /dev/kdapl2 " TGT_FILE));
	KUNIT_EXPECT_EQ(test, kdb_slow->data[0], 'a');
	KUNIT_EXPECT_EQ(test, kdb_quick->data[0], 'b');
	KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" INI "/disk0/connected"));
	expect_connections(test, 1);
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(QUICK_DISK)));
	/* The volume is detached, so it can be attached again. */
	KUNIT_EXPECT_EQ(test, 0, shell("echo 1 >" INI "/disk0/connected"));
	KUNIT_EXPECT_EQ(test, 0, shell(FILL("c", SLOW_DISK, "0")));
	expect_no_loss(test, 1);
	KUNIT_EXPECT_EQ(test, 0, shell("cd " INI "; for d in *; do echo 0 >$d/connected; done"));
	expect_connections(test, 0);
}

/* Each of the disks uses all connections that they have in common. */
static void ini_shares_two(struct kunit *test)
{
	load_two(test, "echo 1 >read_queues");
	expect_connections(test, 2);
	KUNIT_EXPECT_EQ(test, 0, shell(FILL("a", SLOW_DISK, "0") " && " FILL("b", QUICK_DISK, "0")
				       " && " READ_ALL(SLOW_DISK) " && " READ_ALL(QUICK_DISK)));
	/* When it is enabled again the first connection leads the other. */
	KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" VOLUME(2) "/enable; echo 1 >" VOLUME(2)
				       "/enable; " READ_ALL(SLOW_DISK) " && "
				       FILL("c", SLOW_DISK, "0")));
	KUNIT_EXPECT_TRUE(test, stat_is(0, "detached by the target +1"));
	KUNIT_EXPECT_TRUE(test, stat_is(0, "connections lost +0"));
	KUNIT_ASSERT_EQ(test, 0, shell("rm " PORT_LINK "; ln -s " TGT
				       "/subsystems/vol " PORT_LINK));
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(SLOW_DISK) " && " FILL("d", QUICK_DISK, "0")));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(both_are_connected, NULL,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(has_two_queues, NULL, KD_TIMEOUT_MS));
	expect_connections(test, 2);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" INI "/disk0/connected"));
	expect_connections(test, 2);
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(QUICK_DISK)));
}

/* Without "share" each has its own. */
static void ini_shares_on_request(struct kunit *test)
{
	load_two(test, "echo 0 >share");
	expect_connections(test, 2);
}

/*
 * A target with a slot for each connection lets nobody share; each disk has its own then,
 * which ones that connect at the same time find out, too.
 */
static void ini_shares_with_some(struct kunit *test)
{
	struct command *first, *second;

	load(test, "echo 1 >io_depth");
	first = kdb_command_start(test, disk_command(test, 0, 2, "true"));
	second = kdb_command_start(test, disk_command(test, 1, 3, "true"));
	kdb_command_expect_success(test, first);
	kdb_command_expect_success(test, second);
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 2, 1, "true"));
	expect_connections(test, 3);
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(SLOW_DISK) " && " READ_ALL(QUICK_DISK) " && "
				       READ_ALL("/dev/kdapl2")));
}

/* Two disks that are connected at the same time find each other. */
static void ini_shares_at_once(struct kunit *test)
{
	struct command *first, *second;

	load(test, MANY);
	first = kdb_command_start(test, disk_command(test, 0, 2, "true"));
	second = kdb_command_start(test, disk_command(test, 1, 3, "true"));
	kdb_command_expect_success(test, first);
	kdb_command_expect_success(test, second);
	expect_connections(test, 1);
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(SLOW_DISK) " && " READ_ALL(QUICK_DISK)));
}

/* Other parameters of connections, or the same volume again, are refused. */
static void ini_sharing_refused(struct kunit *test)
{
	load_two(test, "true");
	KUNIT_EXPECT_NE(test, 0, disk_connect(test, 2, 1, "echo 15 >depth"));
	KUNIT_EXPECT_NE(test, 0, shell("cd " INI "/disk2; echo 16 >depth;"
				       " echo 2 >namespace; echo 1 >connected"));
	KUNIT_EXPECT_NE(test, 0, shell("cd " INI "/disk2; echo 9 >namespace;"
				       " echo 1 >connected"));
	KUNIT_EXPECT_EQ(test, 0, shell("cd " INI "/disk2; echo 1 >namespace;"
				       " echo 1 >connected"));
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(SLOW_DISK) " && " READ_ALL(QUICK_DISK)));
	expect_no_loss(test, 0);
	expect_no_loss(test, 1);
}

/*
 * A volume stands still, and has as many requests under way as it can. The other one's
 * disk is served, and nobody loses the connection.
 */
static void ini_stands_still_alone(struct kunit *test)
{
	struct command *writes;

	load_two(test, "true");
	KUNIT_ASSERT_EQ(test, 0, shell(TIMES_OUT));
	writes = hold_writes(test, "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do "
			     FILL("a", SLOW_DISK, "$n") "& done; wait", 4);
	kdb_command_expect_success(test, kdb_command_start(test, READ_ALL(QUICK_DISK)));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(has_timed_out, NULL, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, 0, shell(FILL("b", QUICK_DISK, "0") " && " READ_ALL(QUICK_DISK)));
	/* So is one that is connected now, and disconnected. */
	KUNIT_EXPECT_EQ(test, 0, disk_connect(test, 2, 1, "true"));
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL("/dev/kdapl2") " && echo 0 >" INI
				       "/disk2/connected"));
	KUNIT_EXPECT_FALSE(test, kdb_command_has_ended(writes));
	kdb_backing_hold(kdb_slow, false);
	kdb_command_expect_success(test, writes);
	expect_no_loss(test, 0);
	expect_no_loss(test, 1);
	expect_connections(test, 1);
}

/*
 * After give_up_ms only the end of the connection gives back the memory that a request
 * has exposed.
 */
static void ini_stands_still_too_long(struct kunit *test)
{
	struct command *write;

	load(test, MANY);
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 0, 2, "echo 1000 >give_up_ms"));
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 1, 3, "true"));
	KUNIT_ASSERT_EQ(test, 0, shell(TIMES_OUT));
	write = hold_writes(test, FILL("a", SLOW_DISK, "0"), 1);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(kdb_command_has_ended, write, KD_TIMEOUT_MS));
	KUNIT_EXPECT_NE(test, write->status, 0);
	KUNIT_EXPECT_TRUE(test, stat_is(0, "connections lost +1"));
	/* The other one is back long before the medium is. */
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(QUICK_DISK)));
	KUNIT_EXPECT_TRUE(test, disk_is(1, "connected"));
	KUNIT_EXPECT_FALSE(test, disk_is(0, "connected"));
	kdb_backing_hold(kdb_slow, false);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(slow_is_connected, NULL,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, 0, shell(FILL("b", SLOW_DISK, "0")));
	KUNIT_EXPECT_EQ(test, kdb_slow->data[0], 'b');
}

/*
 * A volume is disabled while its medium holds a write. What is written then waits for
 * the volume, and so does nothing else.
 */
static void ini_is_detached_alone(struct kunit *test)
{
	struct command *write, *disable, *later;

	load_two(test, "true");
	write = hold_writes(test, FILL("a", SLOW_DISK, "0"), 1);
	disable = kdb_command_start(test, "echo 0 >" VOLUME(2) "/enable");
	/* The medium would keep a write that comes before. */
	KUNIT_ASSERT_TRUE(test, kd_expect_soon(test, "grep -q ' volume 3 ' " TGT
					       "/ports/1/connections"));
	later = kdb_command_start(test, "while ! grep -q 'detached by the target *1' " INI
				  "/disk0/stats; do " FILL("b", SLOW_DISK, "0")
				  " || exit; done");
	KUNIT_EXPECT_TRUE(test, kd_wait_until(slow_waits, NULL, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, 0, shell(FILL("c", QUICK_DISK, "0") " && " READ_ALL(QUICK_DISK)));
	KUNIT_EXPECT_FALSE(test, kdb_command_has_ended(write));
	kdb_backing_hold(kdb_slow, false);
	kdb_command_expect_success(test, write);
	kdb_command_expect_success(test, disable);
	KUNIT_EXPECT_FALSE(test, kdb_command_has_ended(later));
	KUNIT_EXPECT_EQ(test, 0, shell("echo 1 >" VOLUME(2) "/enable"));
	kdb_command_expect_success(test, later);
	KUNIT_EXPECT_TRUE(test, slow_is_connected(NULL));
	KUNIT_EXPECT_EQ(test, kdb_slow->data[0], 'b');
	KUNIT_EXPECT_TRUE(test, stat_is(0, "connections lost +0"));
	expect_no_loss(test, 1);
	expect_connections(test, 1);
}

/*
 * The connection is lost while the medium holds a write. The other disk is back at once;
 * the write is not sent again before the medium is through with it.
 */
static void ini_comes_back_alone(struct kunit *test)
{
	struct command *write, *port;

	load_two(test, "true");
	write = hold_writes(test, FILL("a", SLOW_DISK, "0"), 1);
	kdb_backing_pass(kdb_slow);
	port = kdb_command_start(test, "rm " PORT_LINK);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(slow_waits, NULL, KD_TIMEOUT_MS));
	kdb_command_expect_success(test, port);
	KUNIT_ASSERT_EQ(test, 0, shell("ln -s " TGT "/subsystems/vol " PORT_LINK));
	KUNIT_EXPECT_EQ(test, 0, shell(FILL("b", QUICK_DISK, "0")));
	KUNIT_EXPECT_FALSE_MSG(test, kdb_command_has_ended(write),
			       "a write overtakes its first copy");
	KUNIT_EXPECT_FALSE(test, disk_is(0, "connected"));
	kdb_backing_hold(kdb_slow, false);
	kdb_command_expect_success(test, write);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(both_are_connected, NULL,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, kdb_slow->data[0], 'a');
	expect_connections(test, 1);
}

/* One volume is gone when the connection is made again; only its disk waits, and fails. */
static void ini_fails_alone(struct kunit *test)
{
	load_two(test, "true");
	KUNIT_ASSERT_EQ(test, 0, shell("cd " INI "/disk0; echo 0 >connected;"
				       " echo 300 >give_up_ms; echo 1 >connected"));
	KUNIT_ASSERT_EQ(test, 0, shell("rm " PORT_LINK "; echo 0 >" VOLUME(2) "/enable;"
				       "ln -s " TGT "/subsystems/vol " PORT_LINK));
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(QUICK_DISK)));
	KUNIT_EXPECT_NE(test, 0, shell(READ_ALL(SLOW_DISK)));
	KUNIT_EXPECT_TRUE(test, disk_is(0, "failed"));
	KUNIT_EXPECT_EQ(test, 0, shell("echo 1 >" VOLUME(2) "/enable"));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(both_are_connected, NULL,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(SLOW_DISK) " && " READ_ALL(QUICK_DISK)));
	KUNIT_EXPECT_TRUE(test, stat_is(1, "connections lost +1"));
}

/* The directory of a disk is removed whose volume stands still; it ends when it can. */
static void ini_removed_alone(struct kunit *test)
{
	struct command *write, *gone;

	load_two(test, "true");
	write = hold_writes(test, FILL("a", SLOW_DISK, "0"), 1);
	gone = kdb_command_start(test, "rmdir " INI "/disk0");
	kdb_command_expect_success(test, gone);
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(QUICK_DISK)));
	KUNIT_EXPECT_FALSE(test, kdb_command_has_ended(write));
	kdb_backing_hold(kdb_slow, false);
	kdb_command_expect_success(test, write);
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(QUICK_DISK)));
	expect_no_loss(test, 1);
}

/*
 * Two volumes stand still, the first one with all that a disk alone may have under way. A disk
 * that is idle is disconnected; nobody else notices.
 */
static void ini_leaves_without_credit(struct kunit *test)
{
	struct command *write, *second;

	load(test, "echo 8 >io_depth; echo 32 >credits; echo 32 >pages; echo 32 >buffers");
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 0, 2, "echo 10000 >keepalive_ms"));
	KUNIT_ASSERT_EQ(test, 0, shell("set -- of=/dev/null bs=512 count=200 iflag=direct;"
				       "for i in 0 1 2 3 4 5 6 7; do dd if="
				       SLOW_DISK " $* & done; wait"));
	write = hold_writes(test, "for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do "
			    FILL("a", SLOW_DISK, "$((i * 16))") " & done; wait", 4);
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 1, 3, "echo 10000 >keepalive_ms"));
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 2, 1, "echo 10000 >keepalive_ms"));
	expect_connections(test, 1);
	kdb_backing_hold(kdb_quick, true);
	second = kdb_command_start(test, FILL("b", QUICK_DISK, "0"));
	KUNIT_ASSERT_TRUE(test, kd_wait_until(kdb_is_held, kdb_quick, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" INI "/disk2/connected"));
	expect_no_loss(test, 0);
	expect_no_loss(test, 1);
	kdb_backing_hold(kdb_slow, false);
	kdb_backing_hold(kdb_quick, false);
	kdb_command_expect_success(test, write);
	kdb_command_expect_success(test, second);
}

/* ---- Events ------------------------------------------------------------------ */

/*
 * Who is told that a disk has grown may wait for memory, and so for a write to a disk
 * beside it, which has lost its connection.
 */
static void ini_tells_size_meanwhile(struct kunit *test)
{
	struct listener *listener;
	struct command *write;

	load_two(test, "true");
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 2, 1, "true"));
	listener = kdb_listener_make(test, "/dev/kdapl2");
	KUNIT_ASSERT_EQ(test, 0, shell("truncate -s 2M " TGT_FILE " && "
				       READ_ALL("/dev/kdapl2")));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(kdb_listener_is_told, listener,
					      KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, 0, shell("rm " PORT_LINK "; ln -s " TGT
				       "/subsystems/vol " PORT_LINK));
	write = kdb_command_start(test, FILL("a", SLOW_DISK, "0"));
	kdb_command_expect_success(test, write);
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx 4096 /sys/block/kdapl2/size"));
	kdb_listener_listens(test);
}

/* ---- Secrets ----------------------------------------------------------------- */

#define KNOWS(name, secret) "echo '" secret "' >" TGT "/clients/" name "/secret"
#define IS(name, secret) "echo " name " >client; echo '" secret "' >secret"

/* Disks of a client share connections, and each proves that it knows the secret. */
static void ini_shares_with_secret(struct kunit *test)
{
	load(test, MANY "; " KNOWS("friend", SECRET)
	     "; echo 1 >" TGT "/subsystems/vol/authenticate");
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 0, 2, IS("friend", SECRET)));
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 1, 3, IS("friend", SECRET)));
	expect_connections(test, 1);
	/* With another secret, or none, a disk has connections of its own, and gets nowhere. */
	KUNIT_EXPECT_NE(test, 0, disk_connect(test, 2, 1, IS("friend", OTHER_SECRET)));
	KUNIT_EXPECT_NE(test, 0, disk_connect(test, 2, 1, "echo friend >client; "
					      "echo >secret"));
	expect_no_loss(test, 0);
	expect_no_loss(test, 1);
	KUNIT_EXPECT_EQ(test, 0, disk_connect(test, 2, 1, IS("friend", SECRET)));
	expect_connections(test, 1);
	KUNIT_ASSERT_EQ(test, 0, shell("rm " PORT_LINK "; ln -s " TGT
				       "/subsystems/vol " PORT_LINK));
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(SLOW_DISK) " && " READ_ALL(QUICK_DISK)
				       " && " READ_ALL("/dev/kdapl2")));
	expect_connections(test, 1);
}

static bool both_are_lost(void *unused)
{
	return stat_is(0, "connections lost +1") && stat_is(1, "connections lost +1");
}

/*
 * The client has another secret by now, which those that are attached need not know. A
 * disk that joins them does: its proof ends the connections of all, until the target
 * knows them again.
 */
static void ini_shares_with_wrong_secret(struct kunit *test)
{
	load(test, MANY "; " KNOWS("friend", SECRET));
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 0, 2, IS("friend", SECRET)));
	KUNIT_ASSERT_EQ(test, 0, disk_connect(test, 1, 3, IS("friend", SECRET)));
	KUNIT_ASSERT_EQ(test, 0, shell(KNOWS("friend", OTHER_SECRET)));
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(SLOW_DISK) " && " READ_ALL(QUICK_DISK)));
	expect_no_loss(test, 0);
	KUNIT_EXPECT_NE(test, 0, disk_connect(test, 2, 1, IS("friend", SECRET)));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(both_are_lost, NULL, KD_TIMEOUT_MS));
	KUNIT_EXPECT_FALSE(test, disk_is(0, "connected"));
	KUNIT_ASSERT_EQ(test, 0, shell(KNOWS("friend", SECRET)));
	KUNIT_EXPECT_EQ(test, 0, shell(READ_ALL(SLOW_DISK) " && " READ_ALL(QUICK_DISK)));
	KUNIT_EXPECT_EQ(test, 0, shell("echo 1 >" INI "/disk2/connected"));
	expect_connections(test, 1);
}

static struct kunit_case link_cases[] = {
	KUNIT_CASE_PARAM(ini_shares, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_shares_two, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_shares_on_request, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_shares_with_some, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_shares_at_once, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_sharing_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_stands_still_alone, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_stands_still_too_long, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_is_detached_alone, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_comes_back_alone, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_fails_alone, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_removed_alone, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_leaves_without_credit, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_tells_size_meanwhile, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_shares_with_secret, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_shares_with_wrong_secret, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-link", link_cases, "disks that share connections");
