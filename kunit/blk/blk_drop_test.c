// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko: a target that drops the connection, whenever it is to attach a volume, or
 * whenever a request comes. It listens all the time, so each attempt to connect succeeds.
 */
#include <linux/module.h>
#include "blk_serve.h"

#define INI_DISK_2	INI_DISK "2"
#define INI_DISK_3	INI_DISK "3"
#define SERVE_MS	30000		/* for a request that is served */

/*
 * struct target - the target of a case
 * @side: its connection
 * @next: who accepts the next one
 * @psp: where it listens for that
 * @bad: a bit for each volume whose ATTACH ends the connection
 * @bad_reads: a bit for each volume whose reads do so
 * @drops: how often the connection ended for these reasons
 */
struct target {
	struct kunit *test;
	struct kd_side *side;
	struct kd_side *next;
	DAT_PSP_HANDLE psp;
	unsigned int bad;
	unsigned int bad_reads;
	int drops;
};

/* ---- The target ---------------------------------------------------------- */

/* End the connection, and accept the next one. */
static void target_drop(struct target *target)
{
	struct kblk_welcome welcome = kdb_welcome_with(SHARING);

	kd_close(target->side);
	target->side = target->next;
	kdb_accept(target->side, target->psp, &welcome);
	target->next = kdb_listen(target->test, &target->psp);
}

/* Return whether the target drops the connection because of @request. */
static bool target_drops(struct target *target, const struct kblk_request *request)
{
	const struct kblk_attach *attach = (const void *)(request + 1);

	if (request->opcode == KBLK_OP_ATTACH)
		return target->bad & BIT(le32_to_cpu(attach->namespace));
	return request->opcode == KBLK_OP_READ &&
	       target->bad_reads & BIT(le32_to_cpu(request->namespace));
}

/* Serve for @ms, or until the command has ended. */
static void target_serve(struct target *target, unsigned int ms)
{
	unsigned long until = jiffies + msecs_to_jiffies(ms);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct kblk_request request;
	struct kd_side *side;
	DAT_EVENT event;
	u64 at;

	while (time_before(jiffies, until) && !completion_done(&ini_ended)) {
		side = target->side;
		if (!kd_wait_event(side->recv_evd, &event, 10))
			continue;
		dto = &event.event_data.dto_completion_event_data;
		at = REQUEST_AT + dto->user_cookie.as_64 * REQUEST_SIZE;
		/* When the last disk is disconnected it ends the connection. */
		if (dto->status != DAT_DTO_SUCCESS)
			continue;
		if (target_drops(target, side->buf->va + at)) {
			target->drops++;
			target_drop(target);
		} else {
			request = kdb_request_sent(side, dto);
			kdb_serve_one(side, &request);
		}
	}
}

/* Run @command, and serve until it has ended. Return whether it has succeeded. */
static bool target_run(struct target *target, char *command)
{
	kdb_start_command(command);
	target_serve(target, SERVE_MS);
	return completion_done(&ini_ended) && !ini_status;
}

/* Make the target of a disk of volume 1. */
static struct target *target_make(struct kunit *test, const char *give_up_ms)
{
	struct target *target = kunit_kzalloc(test, sizeof(*target), GFP_KERNEL);
	struct kblk_welcome welcome = kdb_welcome_with(SHARING);

	KUNIT_ASSERT_NOT_NULL(test, target);
	ini_attrs.share = "1";
	ini_attrs.depth = "7";
	ini_attrs.timeout_ms = PATIENT;
	ini_attrs.give_up_ms = give_up_ms;
	target->test = test;
	target->side = kdb_welcome_one(test, true, &welcome);
	kdb_serve(target->side, 0);
	KUNIT_ASSERT_EQ(test, 0, ini_error);
	target->next = kdb_listen(test, &target->psp);
	return target;
}

/* The same of disks of volumes 1 and 2, which share a connection. */
static struct target *target_make_two(struct kunit *test, const char *give_up_ms,
				      char *connect_second)
{
	struct target *target = target_make(test, give_up_ms);

	KUNIT_ASSERT_TRUE(test, target_run(target, connect_second));
	return target;
}

/* ---- The disks ----------------------------------------------------------- */

/* Have @command send a request, which the target keeps. */
static void send_request(struct target *target, const char *command)
{
	DAT_DTO_COMPLETION_EVENT_DATA dto;
	struct kblk_request request;

	KUNIT_ASSERT_EQ(target->test, 0, shell(command));
	dto = kd_next_dto(target->test, target->side->recv_evd);
	request = kdb_request_sent(target->side, &dto);
	KUNIT_EXPECT_EQ(target->test, request.opcode, KBLK_OP_READ);
}

/* The request of the command that was started last is served now. */
static void expect_served(struct target *target, unsigned int ms)
{
	target_serve(target, ms);
	KUNIT_ASSERT_TRUE_MSG(target->test, completion_done(&ini_ended),
			      "the request still waits, after %d drops",
			      target->drops);
	KUNIT_EXPECT_EQ(target->test, ini_status, 0);
}

/* It goes on like that while the target drops connections @drops times more. */
static void expect_goes_on(struct target *target, char *read, int drops)
{
	int until = target->drops + drops;
	unsigned long end = jiffies + msecs_to_jiffies(SERVE_MS);

	while (target->drops < until && time_before(jiffies, end)) {
		kdb_start_command(read);
		expect_served(target, SERVE_MS);
	}
	KUNIT_EXPECT_GE(target->test, target->drops, until);
}

/* Serve, while the command waits, until connections have been dropped @n times. */
static void expect_drops(struct target *target, int n)
{
	unsigned long end = jiffies + msecs_to_jiffies(SERVE_MS);

	while (target->drops < n && time_before(jiffies, end) &&
	       !completion_done(&ini_ended))
		target_serve(target, 100);
	KUNIT_EXPECT_GE(target->test, target->drops, n);
}

#define COMES_BACK(disk, read)	"for i in $(seq 1000); do grep -qx connected " disk	\
				"/state && break; sleep 0.01; done; " read

/* ---- Cases --------------------------------------------------------------- */

/* One volume cannot be attached any more; the disk of the other one goes on. */
static void expect_alone(struct target *target, unsigned int bad, char *read,
			 const char *bad_read)
{
	send_request(target, bad_read);
	kdb_start_command(read);
	KUNIT_EXPECT_EQ(target->test, kdb_next_request(target->side)->opcode,
			KBLK_OP_READ);
	target->bad = bad;
	target_drop(target);
	expect_served(target, SERVE_MS);
	expect_goes_on(target, read, 3);
	target->bad = 0;
}

/* The same, and the volume can be attached again. @comes_back: wait for that, and read. */
static void expect_goes_on_without(struct kunit *test, unsigned int bad, char *read,
				   const char *bad_read, char *comes_back)
{
	struct target *target = target_make_two(test, PATIENT,
						CONNECT_BESIDE("2", "true"));

	expect_alone(target, bad, read, bad_read);
	KUNIT_EXPECT_TRUE(test, target_run(target, comes_back));
	KUNIT_EXPECT_TRUE(test, target_run(target, read));
	KUNIT_EXPECT_TRUE(test, target_run(target, "echo 0 >" INI_DISK "/connected"));
}

static void ini_goes_on_without_second(struct kunit *test)
{
	expect_goes_on_without(test, BIT(2), READ_ONE, READ_SECOND " &",
			       COMES_BACK(INI_DISK_2, READ_SECOND));
}

/* It makes no difference which was connected first. */
static void ini_goes_on_without_first(struct kunit *test)
{
	expect_goes_on_without(test, BIT(1), READ_SECOND, READ_ONE " &",
			       COMES_BACK(INI_DISK, READ_ONE));
}

/* One that lets its requests fail at once does not do so because of the other. */
static void ini_does_not_fail_for_another(struct kunit *test)
{
	struct target *target;

	target = target_make_two(test, "0", CONNECT_BESIDE("2", "echo 60000 >give_up_ms"));
	expect_alone(target, BIT(2), READ_ONE, READ_SECOND " &");
	KUNIT_EXPECT_TRUE(test, target_run(target, COMES_BACK(INI_DISK_2, READ_SECOND)));
	KUNIT_EXPECT_TRUE(test, target_run(target, "echo 0 >" INI_DISK "/connected"));
}

/* Two such volumes do not keep each other, nor a third one. */
static void ini_goes_on_without_two(struct kunit *test)
{
	struct target *target = target_make_two(test, PATIENT,
						CONNECT_BESIDE("2", "true"));

	KUNIT_ASSERT_TRUE(test, target_run(target, CONNECT_BESIDE("3", "true")));
	expect_alone(target, BIT(1) | BIT(3), READ_SECOND, READ_ONE " &");
	/* One of them is good again, and the other one is not. */
	target->bad = BIT(3);
	KUNIT_EXPECT_TRUE(test, target_run(target, COMES_BACK(INI_DISK, READ_ONE)));
	target->bad = BIT(1);
	KUNIT_EXPECT_TRUE(test, target_run(target, COMES_BACK(INI_DISK_3, "true")));
	target->bad = 0;
	KUNIT_EXPECT_TRUE(test, target_run(target, COMES_BACK(INI_DISK, READ_ONE)));
	KUNIT_EXPECT_TRUE(test, target_run(target, "echo 0 >" INI_DISK "/connected; echo 0 >"
					   INI_DISK_3 "/connected"));
}

/* When all of them are bad each is tried, so that one that is good again comes back. */
static void ini_tries_each_in_turn(struct kunit *test)
{
	struct target *target = target_make_two(test, PATIENT,
						CONNECT_BESIDE("2", "true"));

	send_request(target, READ_ONE " &");
	kdb_start_command(READ_SECOND);
	KUNIT_EXPECT_EQ(test, kdb_next_request(target->side)->opcode, KBLK_OP_READ);
	target->bad = BIT(1) | BIT(2);
	target_drop(target);
	expect_drops(target, 2);
	target->bad = BIT(1);
	expect_served(target, SERVE_MS);
	target->bad = 0;
	KUNIT_EXPECT_TRUE(test, target_run(target, COMES_BACK(INI_DISK, READ_ONE)));
	KUNIT_EXPECT_TRUE(test, target_run(target, "echo 0 >" INI_DISK "/connected"));
}

/* The requests of a disk that the others go on without wait no longer than its own. */
static void ini_gives_up_alone(struct kunit *test)
{
	struct target *target;

	target = target_make_two(test, PATIENT, CONNECT_BESIDE("2", "echo 700 >give_up_ms"));
	send_request(target, READ_ONE " &");
	kdb_start_command(READ_SECOND);
	KUNIT_EXPECT_EQ(test, kdb_next_request(target->side)->opcode, KBLK_OP_READ);
	target->bad = BIT(2);
	target_drop(target);
	target_serve(target, SERVE_MS);
	KUNIT_ASSERT_TRUE(test, completion_done(&ini_ended));
	KUNIT_EXPECT_NE(test, ini_status, 0);
	KUNIT_EXPECT_TRUE(test, target_run(target, READ_ONE));
	target->bad = 0;
	KUNIT_EXPECT_TRUE(test, target_run(target, COMES_BACK(INI_DISK_2, READ_SECOND)));
	KUNIT_EXPECT_TRUE(test, target_run(target, "echo 0 >" INI_DISK "/connected"));
}

/* A disk that is being connected and ends the connection fails, and the other goes on. */
static void ini_connects_bad_disk(struct kunit *test)
{
	struct target *target = target_make(test, PATIENT);

	target->bad = BIT(2);
	kdb_start_command(CONNECT_BESIDE("2", "true"));
	target_serve(target, 3 * SERVE_MS);
	KUNIT_ASSERT_TRUE(test, completion_done(&ini_ended));
	KUNIT_EXPECT_NE(test, ini_status, 0);
	KUNIT_EXPECT_GE(test, target->drops, 1);
	KUNIT_EXPECT_TRUE(test, target_run(target, READ_ONE));
	target->bad = 0;
	KUNIT_EXPECT_TRUE(test, target_run(target, "echo 1 >" INI_DISK_2 "/connected"));
	KUNIT_EXPECT_TRUE(test, target_run(target, "echo 0 >" INI_DISK "/connected"));
}

/* Requests of one volume end the connection; those of the other one are served meanwhile. */
static void ini_is_served_meanwhile(struct kunit *test)
{
	struct target *target;
	int i;

	ini_attrs.reconnect_max_ms = "60000";
	target = target_make_two(test, "4500", CONNECT_BESIDE("2", "echo 60000 >give_up_ms"));
	target->bad_reads = BIT(2);
	KUNIT_ASSERT_EQ(test, 0, shell(READ_SECOND " &"));
	/* On a busy machine it takes a while until the first request of the other comes. */
	for (i = 0; i < 12 || (i < 100 && !target->drops); i++)
		KUNIT_EXPECT_TRUE(test, target_run(target, READ_ONE));
	KUNIT_EXPECT_GE(test, target->drops, 1);
	target->bad_reads = 0;
	KUNIT_EXPECT_TRUE(test, target_run(target, COMES_BACK(INI_DISK_2, READ_SECOND)));
	KUNIT_EXPECT_TRUE(test, target_run(target, "echo 0 >" INI_DISK "/connected"));
}

/*
 * A target that attaches the volume and drops the connection at each request is asked for
 * connections at intervals that grow. They begin anew when it has kept one.
 */
static void ini_connects_in_intervals(struct kunit *test)
{
	struct target *target = target_make(test, PATIENT);
	unsigned int took, i;
	unsigned long when;

	target->bad_reads = BIT(1);
	kdb_start_command(READ_ONE);
	target_serve(target, 2000);
	KUNIT_EXPECT_FALSE(test, completion_done(&ini_ended));
	/* At once, after 10 ms, 20 ms, ..., 640 ms, 1000 ms */
	KUNIT_EXPECT_LE(test, target->drops, 8);
	/* A busy machine takes longer. */
	expect_drops(target, 3);
	target->bad_reads = 0;
	expect_served(target, SERVE_MS);

	/* A busy machine may delay one of them. */
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_TRUE(test, target_run(target, "sleep 2"));
		send_request(target, READ_ONE " &");
		when = jiffies;
		target_drop(target);
		took = jiffies_to_msecs(jiffies - when);
		KUNIT_EXPECT_TRUE(test, target_run(target, READ_ONE));
		if (took < 900)
			break;
	}
	KUNIT_EXPECT_LT(test, took, 900);
}

/* Meanwhile requests wait no longer than at any other time. */
static void ini_gives_up_in_intervals(struct kunit *test)
{
	struct target *target;

	ini_attrs.reconnect_max_ms = "60000";
	target = target_make(test, "300");
	target->bad_reads = BIT(1);
	kdb_start_command(READ_ONE);
	/* The sixth interval is longer than that. The tenth try, the last, is after 5110 ms. */
	target_serve(target, 4500);
	KUNIT_ASSERT_TRUE(test, completion_done(&ini_ended));
	KUNIT_EXPECT_NE(test, ini_status, 0);
	KUNIT_EXPECT_TRUE(test, target_run(target, "echo 0 >" INI_DISK "/connected"));
}

static void drop_exit(struct kunit *test)
{
	kdb_wait_command();
	shell("rmdir " INI_DISK_2 " " INI_DISK_3 " 2>/dev/null");
	ini_unload(test);
}

static struct kunit_case drop_cases[] = {
	KUNIT_CASE_PARAM(ini_goes_on_without_second, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_goes_on_without_first, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_is_served_meanwhile, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_does_not_fail_for_another, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_goes_on_without_two, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_tries_each_in_turn, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_gives_up_alone, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_connects_bad_disk, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_connects_in_intervals, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_gives_up_in_intervals, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-drop", drop_cases, "a target that drops connections",
	 .init = ini_init, .exit = drop_exit);
