// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko: the command that connects a disk is killed, whatever it waits for. It ends
 * at once, and what it has begun is undone.
 */
#include "blk_command.h"
#include "blk_serve.h"
#include "files.h"

#define PID		"/tmp/kdapl_connect"
/* A shell whose process writes to "connected" itself, so that it can be killed there. */
#define CONNECT		"echo $$ >" PID "; echo 1 2>/dev/null >" INI_DISK "/connected"
#define CONNECT_SECOND	"echo $$ >" PID "; " CONNECT_BESIDE("2", "true")
#define KILL		"kill -KILL $(cat " PID ")"
/* The second disk is set up, and the process waits. */
#define SECOND_WAITS	"grep -qx 2 " INI_DISK "2/namespace && "			\
			"grep -Eq '^State:.[SD]' /proc/$(cat " PID ")/status"

static bool is_idle(void *disk)
{
	char command[128];

	snprintf(command, sizeof(command), "grep -qx idle %s/state", (char *)disk);
	return !shell(command);
}

/* Make the disk and a target that listens, and begin @command, which is to connect. */
static struct kd_side *begin(struct kunit *test, DAT_PSP_HANDLE *psp, char *command)
{
	struct kd_side *side = kdb_new_target(test);

	ini_attrs.connect_timeout_ms = PATIENT;
	ini_port = kd_port();
	*psp = kd_psp(side, ini_port, DAT_PSP_CONSUMER_FLAG);
	kdb_make_disk(side, ini_port);
	kdb_start_command(command);
	return side;
}

/* Kill the command. It ends, long before what it waits for is over. */
static void kill_command(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, shell(KILL));
	KUNIT_ASSERT_NE_MSG(test, 0UL,
			    wait_for_completion_timeout(&ini_ended,
							msecs_to_jiffies(KD_TIMEOUT_MS)),
			    "the command stays");
	KUNIT_EXPECT_EQ(test, ini_status, SIGKILL);
}

/* Kill the command, as kill_command() does; and the disk is idle. */
static void expect_killed(struct kunit *test, char *disk)
{
	kill_command(test);
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(is_idle, disk, KD_TIMEOUT_MS),
			      "the disk is not idle");
}

/* The disk can be connected as if nothing had been. */
static void expect_connectable(struct kunit *test)
{
	ini_attrs.timeout_ms = PATIENT;
	kdb_serve_disk(test, NULL, NULL);
	kdb_expect_removable(test);
}

static void ini_killed_while_it_dials(struct kunit *test)
{
	DAT_PSP_HANDLE psp;
	struct kd_side *side = begin(test, &psp, CONNECT);
	DAT_CR_HANDLE cr = kd_expect_cr(side);

	expect_killed(test, INI_DISK);
	KD_ASSERT_OK(test, dat_psp_free(psp));
	dat_cr_reject(cr, 0, NULL);
	kd_close(side);
	expect_connectable(test);
}

static void ini_killed_while_it_attaches(struct kunit *test)
{
	DAT_PSP_HANDLE psp;
	struct kd_side *side = begin(test, &psp, CONNECT);

	kdb_accept(side, psp, NULL);
	kdb_expect_request(side, 0, KBLK_OP_ATTACH);
	expect_killed(test, INI_DISK);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep, DAT_EP_STATE_DISCONNECTED));
	kd_close(side);
	expect_connectable(test);
}

/* The disk is there, and the partition table is read. */
static void ini_killed_while_it_reads(struct kunit *test)
{
	struct kd_side *side;
	DAT_PSP_HANDLE psp;

	/* The target is silent: the disk becomes idle when the read has timed out. */
	ini_attrs.timeout_ms = "5000";
	side = begin(test, &psp, CONNECT);
	kdb_accept(side, psp, NULL);
	kdb_attach(side);
	kdb_identify_as(side, NULL);
	kdb_expect_request(side, 2, KBLK_OP_READ);
	expect_killed(test, INI_DISK);
	KUNIT_EXPECT_FALSE(test, kd_file_exists("/sys/block/kdapl0"));
	kd_close(side);
	expect_connectable(test);
}

/* Have the first disk connected, which others can share the connection of. */
static struct kd_side *serve_shared(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_welcome_with(SHARING);
	struct kblk_reply reply;
	struct kd_side *side;

	ini_attrs.connect_timeout_ms = PATIENT;
	ini_attrs.timeout_ms = PATIENT;
	ini_attrs.give_up_ms = PATIENT;
	ini_attrs.share = "1";
	side = kdb_welcome_one(test, true, &welcome);
	reply = kdb_good_reply(kdb_expect_request(side, 0, KBLK_OP_ATTACH), 0);
	kdb_answer(side, &reply, NULL, sizeof(reply));
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kdb_identify_as(side, NULL);
	kdb_serve(side, 0);
	KUNIT_ASSERT_EQ(test, 0, ini_error);
	return side;
}

static bool second_waits(void *unused)
{
	return !shell(SECOND_WAITS);
}

/* What it waits for is another disk, which connects again on what both would share. */
static void ini_killed_while_others_dial(struct kunit *test)
{
	struct kd_side *side = serve_shared(test), *other;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;

	other = kdb_listen(test, &psp);
	kd_close(side);
	cr = kd_expect_cr(other);
	kdb_start_command(CONNECT_SECOND);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(second_waits, NULL, KD_TIMEOUT_MS));
	kill_command(test);
	/* The first is still connecting, and nobody listens the next time. */
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx reconnecting " INI_DISK "/state"));
	KD_ASSERT_OK(test, dat_psp_free(psp));
	KD_ASSERT_OK(test, dat_cr_reject(cr, 0, NULL));
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(is_idle, INI_DISK "2", KD_TIMEOUT_MS),
			      "the second disk is not idle");
	KUNIT_EXPECT_EQ(test, 0, shell("rmdir " INI_DISK "2"));
	kdb_expect_removable(test);
}

/* A disk that nobody wants any more does not wait for an attempt to connect it again. */
static void ini_removed_while_it_dials(struct kunit *test)
{
	struct kd_side *side, *other;
	struct command *command;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;

	ini_attrs.connect_timeout_ms = PATIENT;
	ini_attrs.give_up_ms = PATIENT;
	side = kdb_serve_disk(test, NULL, NULL);
	other = kdb_listen(test, &psp);
	kd_close(side);
	cr = kd_expect_cr(other);
	command = kdb_command_start(test, "echo 0 >" INI_DISK "/connected");
	kdb_command_expect_success(test, command);
	KD_ASSERT_OK(test, dat_psp_free(psp));
	dat_cr_reject(cr, 0, NULL);
}

#define DISCOVER	"echo $$ >" PID "; echo 0 2>/dev/null >" INI_DISK "/discover"

/* The target does not tell its volumes: the disk is idle again, and no connection is left. */
static void ini_discovers_nothing(struct kunit *test)
{
	DAT_PSP_HANDLE psp;
	struct kd_side *side = begin(test, &psp, DISCOVER);

	kdb_accept(side, psp, NULL);
	KUNIT_EXPECT_TRUE(test, ini_hello.features & cpu_to_le32(KBLK_FEATURE_LIST));
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep, DAT_EP_STATE_DISCONNECTED));
	kdb_wait_command();
	KUNIT_EXPECT_NE(test, ini_status, 0);
	KUNIT_EXPECT_TRUE(test, is_idle(INI_DISK));
	kd_close(side);
	expect_connectable(test);
}

/* The target does not answer when it is asked. */
static void ini_killed_while_it_discovers(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_welcome_with(KBLK_FEATURE_LIST);
	DAT_PSP_HANDLE psp;
	struct kd_side *side = begin(test, &psp, DISCOVER);

	kdb_accept(side, psp, &welcome);
	kdb_expect_request(side, 0, KBLK_OP_LIST);
	expect_killed(test, INI_DISK);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep, DAT_EP_STATE_DISCONNECTED));
	kd_close(side);
	expect_connectable(test);
}

static struct kunit_case kill_cases[] = {
	KUNIT_CASE_PARAM(ini_discovers_nothing, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_killed_while_it_discovers, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_killed_while_it_dials, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_killed_while_it_attaches, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_killed_while_it_reads, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_killed_while_others_dial, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_removed_while_it_dials, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-kill", kill_cases, "commands of the block device that are killed", KDB_SERVE);
