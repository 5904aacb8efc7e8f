// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_blk.ko and kdapl_blk_tgt.ko: adapters that are renamed while they
 * are served and used, and adapters that come after their ports.
 */
#include <linux/module.h>
#include "blk_command.h"
#include "blk_target.h"
#include "files.h"
#include "peer.h"
#include "plug.h"

#define INI_KO		"/run/out/modules/kdapl_blk.ko"
#define INI_DISK	"/sys/kernel/config/kdapl_blk/disk"
#define IA		"roce9/1"

static void initiator_unload(void *data)
{
	shell("cd " INI_DISK " && echo 0 >connected; cd /; rmdir " INI_DISK "*");
	kdb_unload_initiator(data);
}

/* Load the initiator and connect a disk to the target on the device of the case. */
static void disk_connect(struct kunit *test)
{
	struct kd_side *s = kd_open_second(test);
	char command[512];

	if (!kd_file_exists(INI_KO))
		kunit_skip(test, "no " INI_KO);
	KUNIT_ASSERT_EQ(test, 0, shell("insmod " INI_KO));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, initiator_unload, test));
	snprintf(command, sizeof(command),
		 "set -e; mkdir " INI_DISK "; cd " INI_DISK "; echo %s >ia;"
		 " echo %pIS >address; echo %u >conn_qual; echo vol >subsystem; echo 1 >queues;"
		 " echo 10 >reconnect_ms; echo 200 >reconnect_max_ms; echo 1 >share;"
		 " echo 1 >connected",
		 s->name, s->addr, TGT_PORT);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
}

/* The port tells the new name of its adapter, and finds the adapter again. */
static void tgt_is_renamed(struct kunit *test)
{
	tgt_load(test);
	kd_rename(test, IA);
	KUNIT_EXPECT_EQ(test, 0, shell("test $(cat " TGT "/ports/1/ia) = " IA));
	KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT "/ports/1/subsystems; rm vol && ln -s " TGT
				       "/subsystems/vol vol"));
	KUNIT_EXPECT_EQ(test, 0, shell("test \"$(cat " TGT "/ports/1/state)\" = listening"));
}

/* A name without the port, as of a device that has one, stays so. */
static void tgt_is_named_without_port(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	int len = strcspn(d->ia, "/");
	char line[128];

	snprintf(line, sizeof(line), "echo %.*s >ia", len, d->ia);
	tgt_load_with(test, line);
	snprintf(line, sizeof(line), "test $(cat " TGT "/ports/1/ia) = %.*s", len, d->ia);
	KUNIT_EXPECT_EQ(test, 0, shell(line));
	kd_rename(test, IA);
	KUNIT_EXPECT_EQ(test, 0, shell("test $(cat " TGT "/ports/1/ia)/1 = " IA));
}

/* It is not read before it is left; the name is known all the same. */
static void tgt_is_renamed_unseen(struct kunit *test)
{
	tgt_load(test);
	kd_rename(test, IA);
	KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT "/ports/1/subsystems; rm vol && ln -s " TGT
				       "/subsystems/vol vol"));
}

/* A disk goes on, and is found again on the renamed adapter when it has lost its target. */
static void ini_is_renamed(struct kunit *test)
{
	tgt_load(test);
	disk_connect(test);
	kd_rename(test, IA);
	KUNIT_EXPECT_EQ(test, 0, shell("test $(cat " INI_DISK "/ia) = " IA));
	KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" TGT_NS "/enable"));
	kd_expect_soon(test, "test $(cat " INI_DISK "/state) = reconnecting");
	KUNIT_EXPECT_EQ(test, 0, shell("echo 1 >" TGT_NS "/enable"));
	kd_expect_soon(test, "test $(cat " INI_DISK "/state) = connected");
	KUNIT_EXPECT_NE(test, 0, shell("dmesg | grep -q 'kdapl_blk: .*cannot open " IA "'"));
}

/* The name changes while the disk has no connections, so no IA is open. */
static void ini_is_renamed_meanwhile(struct kunit *test)
{
	tgt_load(test);
	disk_connect(test);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 0 >" TGT_NS "/enable"));
	kd_expect_soon(test, "test $(cat " INI_DISK "/state) = reconnecting");
	kd_rename(test, IA);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 1 >" TGT_NS "/enable"));
	kd_expect_soon(test, "test $(cat " INI_DISK "/state) = connected");
	/* Another disk, which knows the new name only, shares the connections. */
	KUNIT_EXPECT_EQ(test, 0,
			shell("cd " INI_DISK "; mkdir ../disk2;"
			      " for a in ia address conn_qual subsystem queues reconnect_ms reconnect_max_ms share;"
			      " do cat $a >../disk2/$a; done; cd ../disk2; echo 1 >connected;"
			      " dmesg | grep -q 'disk disk is this volume, on the same conn'"));
}

/* A disk that was disconnected can be connected under the name that its adapter has now. */
static void ini_is_renamed_and_connects(struct kunit *test)
{
	tgt_load(test);
	disk_connect(test);
	kd_rename(test, IA);
	KUNIT_EXPECT_EQ(test, 0, shell("cd " INI_DISK "; echo 0 >connected && echo 1 >connected"));
	KUNIT_EXPECT_EQ(test, 0, shell("test $(cat " INI_DISK "/ia) = " IA));
}

/* A disk whose adapter is away says so once, and has it when it is back. */
static void ini_tells_once_that_its_adapter_is_away(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	char command[128];

	tgt_load(test);
	disk_connect(test);
	KUNIT_EXPECT_EQ(test, 0, shell("dmesg -C"));
	kd_unplug(test);
	kd_expect_soon(test, "test $(grep 'attempts to c' " INI_DISK "/stats | tr -dc 0-9) -ge 8");
	snprintf(command, sizeof(command),
		 "test $(dmesg | grep -c 'kdapl_blk: disk: cannot open %s') = 1", d->ia);
	KUNIT_EXPECT_EQ(test, 0, shell(command));
	kd_plug(test);
	kd_expect_soon(test, "test $(cat " INI_DISK "/state) = connected");
}

/* The adapter comes back under another name: the port and the disk know it again. */
static void both_know_their_adapter_again(struct kunit *test)
{
	tgt_load(test);
	disk_connect(test);
	kd_unplug(test);
	kd_expect_soon(test, "test $(cat " INI_DISK "/state) = reconnecting");
	kd_plug_as(test, IA);
	kd_expect_soon(test, "test $(cat " TGT "/ports/1/state) = listening");
	kd_expect_soon(test, "test $(cat " INI_DISK "/state) = connected");
	KUNIT_EXPECT_EQ(test, 0, shell("test $(cat " TGT "/ports/1/ia) = " IA));
	KUNIT_EXPECT_EQ(test, 0, shell("test $(cat " INI_DISK "/ia) = " IA));
}

/* Another adapter has taken its place, and its name. */
static void both_take_another_adapter(struct kunit *test)
{
	tgt_load(test);
	disk_connect(test);
	kd_unplug(test);
	kd_expect_soon(test, "test $(cat " INI_DISK "/state) = reconnecting");
	kd_set_guid(test);
	kd_plug(test);
	kd_expect_soon(test, "test $(cat " INI_DISK "/state) = connected");
}

/* A port is set up before its adapter is there, as when a host boots. */
static void tgt_waits_for_its_adapter(struct kunit *test)
{
	if (!kd_file_exists(TGT_KO))
		kunit_skip(test, "no " TGT_KO);
	kd_unplug(test);
	tgt_load(test);
	KUNIT_EXPECT_EQ(test, 0, shell("grep -q 'waiting for the adapter' " TGT "/ports/1/state"));
	kd_plug(test);
	kd_expect_soon(test, "test $(cat " TGT "/ports/1/state) = listening");
	disk_connect(test);
}

/* The same for one that leaves while the port opens it. */
static void tgt_waits_for_an_adapter_that_leaves(struct kunit *test)
{
	if (!kd_file_exists(TGT_KO))
		kunit_skip(test, "no " TGT_KO);
	kd_unplug_at_pd(test);
	tgt_load(test);
	kd_expect_unplugged(test);
	KUNIT_EXPECT_EQ(test, 0, shell("grep -q 'waiting for the adapter' " TGT "/ports/1/state"));
	kd_plug(test);
	kd_expect_soon(test, "test $(cat " TGT "/ports/1/state) = listening");
}

/*
 * Whoever sets it up may be a process of another network namespace, as a container is: the port
 * listens where the adapter is, and not there.
 */
static void tgt_is_set_up_from_another_namespace(struct kunit *test)
{
	tgt_load(test);
	KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT "/ports/1/subsystems; rm vol && unshare -n ln -s "
				       TGT "/subsystems/vol vol"));
	KUNIT_EXPECT_EQ(test, 0, shell("test $(cat " TGT "/ports/1/state) = listening"));
	disk_connect(test);
}

static struct kunit_case blk_rename_cases[] = {
	KUNIT_CASE_PARAM(ini_is_renamed, kd_gen_second),
	KUNIT_CASE_PARAM(ini_is_renamed_meanwhile, kd_gen_second),
	KUNIT_CASE_PARAM(ini_is_renamed_and_connects, kd_gen_second),
	KUNIT_CASE_PARAM(ini_tells_once_that_its_adapter_is_away, kd_gen_second),
	KUNIT_CASE_PARAM(both_know_their_adapter_again, kd_gen_second),
	KUNIT_CASE_PARAM(both_take_another_adapter, kd_gen_second),
	KUNIT_CASE_PARAM(tgt_is_named_without_port, kd_gen_second),
	KUNIT_CASE_PARAM(tgt_is_renamed, kd_gen_second),
	KUNIT_CASE_PARAM(tgt_is_renamed_unseen, kd_gen_second),
	KUNIT_CASE_PARAM(tgt_waits_for_its_adapter, kd_gen_second),
	KUNIT_CASE_PARAM(tgt_waits_for_an_adapter_that_leaves, kd_gen_second),
	KUNIT_CASE_PARAM(tgt_is_set_up_from_another_namespace, kd_gen_second),
	{}
};

KD_SUITE("kdapl-blk-rename", blk_rename_cases, "adapters that are renamed, or come later",
	 .init = kd_plug_init);
