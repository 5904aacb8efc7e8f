// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: a port or a volume is stopped while the medium keeps a
 * request, and the administrator goes on. What the target keeps meanwhile.
 */
#include "blk_backing.h"
#include "blk_target.h"

#define OTHERS	"set -e; cd " TGT "; mkdir ports/3 subsystems/new;"		\
		"rmdir ports/3 subsystems/new; grep -qx listening ports/2/state;" \
		"cat ports/1/state " TGT_NS "/path >/dev/null;"
#define REFUSED(what, attr)	\
		"if echo " what " 2>/dev/null >" attr "; then exit 1; fi;"

/* A command that runs beside the case. */
struct command {
	struct work_struct work;
	struct completion ended;
	const char *line;
	int status;
};

static struct command stop, other;

static void command_run(struct work_struct *work)
{
	struct command *command = container_of(work, struct command, work);

	command->status = shell(command->line);
	complete(&command->ended);
}

static void command_start(struct command *command, const char *line)
{
	INIT_WORK(&command->work, command_run);
	init_completion(&command->ended);
	command->line = line;
	queue_work(system_long_wq, &command->work);
}

static bool command_ends(struct command *command)
{
	return wait_for_completion_timeout(&command->ended,
					   msecs_to_jiffies(KD_TIMEOUT_MS));
}

/* Expect that the command ends while the medium keeps a request. */
static void expect_success(struct kunit *test, const char *line)
{
	command_start(&other, line);
	KUNIT_ASSERT_TRUE_MSG(test, command_ends(&other), "hangs: %s", line);
	KUNIT_EXPECT_EQ_MSG(test, other.status, 0, "%s", line);
}

/* Let all requests pass, and wait for commands that they have held up. */
static void release(void *data)
{
	kdb_backing_hold(data, false);
	flush_work(&stop.work);
	flush_work(&other.work);
}

static bool is_held(void *data)
{
	struct backing *backing = data;

	return atomic_read(&backing->nheld);
}

/* Connect a client that writes a page of "a", which the medium keeps. */
static struct kd_side *write_for_ever(struct kunit *test,
				      struct backing *backing)
{
	struct kd_side *side = kdb_connected_client(test);
	struct kblk_request request = kdb_good_request(side);

	request.opcode = KBLK_OP_WRITE;
	request.flags = KBLK_INLINED;
	memset(side->buf->va + REQUEST_AT + sizeof(request), 'a', 4096);
	kdb_backing_hold(backing, true);
	kdb_send_request(side, &request, sizeof(request) + 4096);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_held, backing, KD_TIMEOUT_MS));
	INIT_WORK(&stop.work, command_run);
	INIT_WORK(&other.work, command_run);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, release,
							   backing));
	return side;
}

/* The page at @offset is full of @c. */
static void expect_page(struct kd_side *side, u64 offset, char c)
{
	struct kblk_request request = kdb_good_request(side);

	request.offset = cpu_to_le64(offset);
	KUNIT_EXPECT_EQ(side->test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_NULL(side->test,
			  memchr_inv(side->buf->va + DATA_AT, c, 4096));
}

/* What was written is there. */
static void expect_written(struct kd_side *side)
{
	expect_page(side, 0, 'a');
}

static void blk_stop_a_port(struct kunit *test)
{
	struct backing *backing = tgt_load_two_ports(test);
	struct kd_side *side = write_for_ever(test, backing);

	command_start(&stop, "rm " TGT "/ports/1/subsystems/vol");
	kdb_expect_end(side);
	expect_success(test, OTHERS);
	KUNIT_ASSERT_TRUE(test, command_ends(&stop));
	KUNIT_EXPECT_EQ(test, stop.status, 0);
	expect_success(test, "set -e; cd " TGT "/ports/1;"
		       "grep -qx stopping state;" REFUSED("4", "io_depth")
		       REFUSED("sim9", "ia")
		       "ln -s " TGT "/subsystems/vol subsystems/vol;"
		       "grep -qx listening state");
	kd_close(side);
	/* It serves others meanwhile. */
	side = kdb_connected_client(test);
	kunit_release_action(test, release, backing);
	expect_written(side);
	kd_close(side);
}

static bool is_enabled(void *unused)
{
	return !shell("echo 1 2>/dev/null >" TGT_NS "/enable");
}

static void blk_stop_a_volume(struct kunit *test)
{
	struct backing *backing = tgt_load_two_ports(test);
	struct kd_side *side = write_for_ever(test, backing);

	command_start(&stop, "timeout -s KILL 1 sh -c 'echo 0 >" TGT_NS
		      "/enable'");
	kdb_expect_end(side);
	kd_close(side);
	expect_success(test, OTHERS);
	KUNIT_ASSERT_TRUE(test, command_ends(&stop));
	KUNIT_EXPECT_NE_MSG(test, stop.status, 0, "the volume is in use");
	expect_success(test, "set -e; cd " TGT_NS "; grep -qx 1 enable;"
		       REFUSED("1", "enable") REFUSED(TGT_FILE, "path")
		       REFUSED("1", "read_only") "cd ..; rmdir 1; mkdir 1;"
		       "cd 1; echo " BACKING_0 " >path;" REFUSED("1", "enable"));
	expect_success(test, OTHERS);
	kunit_release_action(test, release, backing);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_enabled, NULL, KD_TIMEOUT_MS));
	side = kdb_connected_client(test);
	expect_written(side);
	kd_close(side);
}

static bool two_are_held(void *data)
{
	struct backing *backing = data;

	return atomic_read(&backing->nheld) == 2;
}

static bool one_buffer_is_kept(void)
{
	/* SRQ buffers 77 max, 76 available, 76 outstanding, 0 retired */
	return !shell("set -- $(grep 'SRQ buffers' " TGT_STATS ");"
		      "[ $(($5 + $9 + 1)) = $3 ]");
}

/*
 * A write that the medium has keeps the receive buffer with its data; a second one
 * of the same client is copied, so that the queue does not become short.
 */
static void blk_write_keeps_its_buffer(struct kunit *test)
{
	struct backing *backing = tgt_load_two_ports(test);
	struct kd_side *side = write_for_ever(test, backing);
	struct kblk_request request = kdb_good_request(side);

	KUNIT_EXPECT_TRUE(test, one_buffer_is_kept());
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	request.opcode = KBLK_OP_WRITE;
	request.flags = KBLK_INLINED;
	request.offset = cpu_to_le64(4096);
	memset(side->buf->va + REQUEST_AT + sizeof(request), 'b', 4096);
	kdb_post_reply_buffer(side);
	kdb_send_request(side, &request, sizeof(request) + 4096);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(two_are_held, backing,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, one_buffer_is_kept());
	kunit_release_action(test, release, backing);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_has_all_buffers, NULL,
					      KD_TIMEOUT_MS));
	kd_close(side);
	side = kdb_connected_client(test);
	expect_page(side, 0, 'a');
	expect_page(side, 4096, 'b');
	kd_close(side);
}

static struct kunit_case stuck_cases[] = {
	KUNIT_CASE_PARAM(blk_stop_a_port, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_stop_a_volume, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_write_keeps_its_buffer, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-stuck", stuck_cases,
	 "the block device target with a medium that is stuck");
