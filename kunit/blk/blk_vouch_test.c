// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko: which target may say that it has a volume. One is kdapl_blk_tgt.ko, which a
 * disk uses; the case is another one, at another address, that claims the same UUID.
 */
#include <linux/module.h>
#include "blk_command.h"
#include "blk_hosts.h"
#include "blk_serve.h"
#include "files.h"

#define INI		"/sys/kernel/config/kdapl_blk"

static void paths_remove(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, 0, shell("cd " INI " && rmdir *"));
	kdb_unload_initiator(test);
}

/* Make a directory for a disk of the target at @address and @port. @more: parameters. */
static void path_make(struct kunit *test, int n, DAT_IA_ADDRESS_PTR address, u16 port,
		      const char *more)
{
	char command[640];

	snprintf(command, sizeof(command),
		 "set -e; mkdir -p " INI "/path%d; cd " INI "/path%d; echo %s >ia;"
		 " echo %pIS >address; echo %u >conn_qual; echo vol >subsystem;"
		 " echo 1 >queues; echo 3 >depth; echo 0 >keepalive_ms;"
		 " echo 10 >reconnect_ms; echo 100 >reconnect_max_ms; %s",
		 n, n, *(const char * const *)test->param_value, address, port, more);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
}

/* Load the target and the initiator, with a disk at an IPv4 address. */
static void vouch_load(struct kunit *test)
{
	struct kd_side *side;

	kd_skip_own(test, KD_NEEDS_BED);
	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, shell("insmod " INI_KO));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, paths_remove, test));
	side = kd_open_param(test);
	path_make(test, 1, side->addr, TGT_PORT, "echo 1 >connected");
	kd_close(side);
}

static uuid_t volume_uuid(struct kunit *test)
{
	struct file *file = kd_filp_open(TGT_NS "/uuid", O_RDONLY, 0);
	char text[UUID_STRING_LEN + 1] = {};
	loff_t pos = 0;
	uuid_t uuid;

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_EXPECT_EQ(test, kernel_read(file, text, UUID_STRING_LEN, &pos),
			(ssize_t)UUID_STRING_LEN);
	kd_filp_close(file);
	KUNIT_ASSERT_EQ(test, 0, uuid_parse(text, &uuid));
	return uuid;
}

/* Serve the disk until the command that connects it has ended. */
static void serve_connect(struct kd_side *side)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct kblk_request request;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	while (!try_wait_for_completion(&ini_ended)) {
		if (!kd_wait_event(side->recv_evd, &event, 10))
			continue;
		/* The initiator has ended the connection. */
		if (dto->status != DAT_DTO_SUCCESS)
			break;
		request = kdb_request_sent(side, dto);
		kdb_serve_one(side, &request);
	}
	kdb_wait_command();
}

/*
 * Be a target at an IPv6 address that claims to have the volume of the other. @more:
 * parameters of its disk. Return the status of the command that connects it.
 */
static int connect_to_liar(struct kunit *test, const char *more)
{
	struct kblk_welcome welcome = kdb_welcome_with(KBLK_FEATURE_HOST | KBLK_FEATURE_IDENTITY);
	struct kd_side *elsewhere = kdb_client_elsewhere(test);
	struct kblk_identify identify = kdb_good_identify();
	uuid_t uuid = volume_uuid(test);
	struct kblk_reply reply;
	DAT_PSP_HANDLE psp;
	struct kd_side *side;

	export_uuid(identify.uuid, &uuid);
	ini_port = kd_port();
	path_make(test, 2, elsewhere->addr, ini_port, more);
	side = kdb_listen(test, &psp);
	kdb_start_command("echo 1 2>/dev/null >" INI "/path2/connected");
	kdb_accept(side, psp, &welcome);
	reply = kdb_good_reply(kdb_expect_request(side, 0, KBLK_OP_ATTACH), 0);
	kdb_answer(side, &reply, NULL, sizeof(reply));
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kdb_identify_as(side, &identify);
	serve_connect(side);
	shell("echo 0 >" INI "/path2/connected");
	kd_close(side);
	return ini_status;
}

/*
 * A target claims to have the volume of another one: it does not get the disk's fences
 * and flushes. The administrator may say that it has.
 */
static void ini_refuses_anothers_volume(struct kunit *test)
{
	uuid_t uuid;
	char more[64];

	vouch_load(test);
	KUNIT_EXPECT_NE_MSG(test, 0, connect_to_liar(test, "true"),
			    "the disk of another target is a path to the volume");
	uuid = volume_uuid(test);
	snprintf(more, sizeof(more), "echo %pUb >uuid", &uuid);
	KUNIT_EXPECT_EQ(test, 0, connect_to_liar(test, more));
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx connected " INI "/path1/state"));
}

/* While the first disk has no connection nobody can say whose volume it is. */
static void ini_cannot_ask(struct kunit *test)
{
	vouch_load(test);
	KUNIT_ASSERT_EQ(test, 0, shell("rm " TGT "/ports/1/subsystems/vol"));
	KUNIT_EXPECT_NE_MSG(test, 0, connect_to_liar(test, "true"),
			    "the disk of another target is a path to the volume");
	KUNIT_EXPECT_EQ(test, 0, shell("ln -s " TGT "/subsystems/vol " TGT
				       "/ports/1/subsystems/vol"));
}

/* The target is the same one, at another address of it. */
static void ini_takes_another_address(struct kunit *test)
{
	struct kd_side *elsewhere;

	vouch_load(test);
	elsewhere = kdb_client_elsewhere(test);
	/* On a busy machine the first path may not vouch for it in time. */
	path_make(test, 2, elsewhere->addr, TGT_PORT,
		  "for i in 1 2 3 4 5; do echo 1 2>/dev/null >connected && exit; done; exit 1");
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx connected " INI "/path2/state"));
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx connected " INI "/path1/state"));
	/* Both are as good as any disk. */
	KUNIT_EXPECT_EQ(test, 0, shell(READ_MUCH " && " READ_SECOND));
}

#define REFUSES_SECOND	"cd " INI "/path2; echo 1 | dd of=connected conv=notrunc 2>&1 |"	\
			" grep -q 'File exists'"

/* Whoever does not ask for a second path to a volume gets none, at whatever address. */
static void ini_refuses_a_second_path(struct kunit *test)
{
	struct kd_side *side, *elsewhere;

	vouch_load(test);
	side = kd_open_param(test);
	elsewhere = kdb_client_elsewhere(test);
	path_make(test, 2, side->addr, TGT_PORT, "echo 1 >only_path");
	KUNIT_EXPECT_EQ_MSG(test, 0, shell(REFUSES_SECOND), "the same address");
	path_make(test, 2, elsewhere->addr, TGT_PORT, "true");
	KUNIT_EXPECT_EQ_MSG(test, 0, shell(REFUSES_SECOND), "another address");
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx idle " INI "/path2/state"));
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx connected " INI "/path1/state"));
	KUNIT_EXPECT_EQ(test, 0, shell("cd " INI "/path2; echo 0 >only_path; echo 1 >connected"));
	/* The only path there is. */
	KUNIT_EXPECT_EQ(test, 0, shell("cd " INI "; echo 0 >path1/connected;"
				       " echo 0 >path2/connected; cd path2;"
				       " echo 1 >only_path; echo 1 >connected"));
	kd_close(side);
}

static struct kunit_case vouch_cases[] = {
	KUNIT_CASE_PARAM(ini_refuses_a_second_path, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_refuses_anothers_volume, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_cannot_ask, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_takes_another_address, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-vouch", vouch_cases, "targets that claim a volume of the block device");
