// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko: a disk that may share its connections, at a target that is the case.
 */
#include <linux/module.h>
#include "blk_serve.h"

#define INI_DISK_2	INI_DISK "2"

/* Answer ATTACH of an initiator that shares the connection. */
static void attach_sharing(struct kd_side *side)
{
	const struct kblk_request *request;
	const struct kblk_attach *attach;
	struct kblk_reply reply;

	request = kdb_expect_request(side, 0, KBLK_OP_ATTACH);
	attach = (const void *)(request + 1);
	KUNIT_EXPECT_EQ(side->test, le32_to_cpu(request->namespace), 0);
	KUNIT_EXPECT_EQ(side->test, le32_to_cpu(attach->namespace), 1);
	KUNIT_EXPECT_NOT_NULL(side->test, memchr_inv(attach->host, 0,
						     sizeof(attach->host)));
	reply = kdb_good_reply(request, 0);
	kdb_answer(side, &reply, NULL, sizeof(reply));
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

/* Accept the initiator. @start: have it connect first. */
static struct kd_side *welcome_sharing(struct kunit *test, bool start)
{
	struct kblk_welcome welcome = kdb_welcome_with(SHARING);
	const struct kblk_request *request;
	struct kd_side *side;

	side = kdb_welcome_one(test, start, &welcome);
	attach_sharing(side);
	kdb_identify_as(side, NULL);
	request = side->buf->va + REQUEST_AT + REQUEST_SIZE;
	KUNIT_EXPECT_EQ(test, le32_to_cpu(request->namespace), 1);
	return side;
}

/* Make a disk, and serve the reads as it appears. */
static struct kd_side *serve_sharing(struct kunit *test)
{
	struct kd_side *side;

	ini_attrs.share = "1";
	ini_attrs.timeout_ms = PATIENT;
	ini_attrs.give_up_ms = PATIENT;
	side = welcome_sharing(test, true);
	kdb_serve(side, 0);
	KUNIT_ASSERT_EQ(test, 0, ini_error);
	return side;
}

static void expect_stat(struct kunit *test, const char *disk, const char *what, int n)
{
	char command[160];

	snprintf(command, sizeof(command), "grep -Eqx '%s +%d' %s/stats", what, n, disk);
	KUNIT_EXPECT_EQ_MSG(test, 0, shell(command), "%s is not %d", what, n);
}

static bool ini_is_reconnecting(void *unused)
{
	return !shell("grep -qx reconnecting " INI_DISK "/state");
}

static bool command_has_ended(void *unused)
{
	return completion_done(&ini_ended);
}

/* ---- Cases --------------------------------------------------------------- */

/* An initiator asks for the feature if it is to, and does without. */
static void ini_asks_to_share(struct kunit *test)
{
	struct kd_side *side;

	ini_attrs.share = "1";
	side = kdb_serve_disk(test, NULL, NULL);
	KUNIT_EXPECT_TRUE(test, le32_to_cpu(ini_hello.features) &
				KBLK_FEATURE_VOLUMES);
	kdb_serve_command(side, READ_ONE, KBLK_OP_READ);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	kdb_expect_removable(test);
}

static void ini_asks_not_to_share(struct kunit *test)
{
	kdb_serve_disk(test, NULL, NULL);
	KUNIT_EXPECT_FALSE(test, le32_to_cpu(ini_hello.features) &
				 KBLK_FEATURE_VOLUMES);
	kdb_expect_removable(test);
}

/* Nor is it given what it did not ask for, or without what belongs to it. */
static void ini_refuses_unasked_sharing(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_welcome_with(SHARING);

	kdb_welcome_one(test, true, &welcome);
	KUNIT_EXPECT_FALSE(test, ini_connect_end(test));
}

static void ini_refuses_odd_sharing(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_welcome_with(KBLK_FEATURE_VOLUMES |
						       KBLK_FEATURE_HOST);

	ini_attrs.share = "1";
	kdb_welcome_one(test, true, &welcome);
	KUNIT_EXPECT_FALSE(test, ini_connect_end(test));
}

/* Requests tell the volume. */
static void ini_names_volume(struct kunit *test)
{
	struct kd_side *side = serve_sharing(test);
	const struct kblk_request *request;

	request = kdb_begin_command(side, READ_ONE);
	KUNIT_EXPECT_EQ(test, request->opcode, KBLK_OP_READ);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(request->namespace), 1);
	kdb_serve_one(side, request);
	kdb_wait_command();
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	kdb_expect_removable(test);
}

/*
 * A request that the target has not executed, since the volume was detached, is no
 * error: it is sent again. Nothing else uses the connection, so it is made anew.
 */
static void ini_attaches_again(struct kunit *test)
{
	struct kd_side *side = serve_sharing(test), *again;
	struct kblk_reply reply;

	reply = kdb_good_reply(kdb_begin_command(side, READ_ONE), 0);
	reply.status = cpu_to_le16(KBLK_ERR_NOT_ATTACHED);
	kdb_answer(side, &reply, NULL, sizeof(reply));
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep,
					      DAT_EP_STATE_DISCONNECTED));
	again = welcome_sharing(test, false);
	kdb_serve(again, KBLK_OP_READ);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	expect_stat(test, INI_DISK, "detached by the target", 1);
	kdb_expect_removable(test);
}

/* Make a disk of volume 2 that shares the connection. */
#define CONNECT_SECOND	CONNECT_BESIDE("2", "true")

/* Serve it as it appears. */
static void serve_second(struct kd_side *side)
{
	kdb_serve_command(side, CONNECT_SECOND, 0);
	KUNIT_ASSERT_EQ(side->test, ini_status, 0);
}

static struct kblk_request take_request(struct kd_side *side)
{
	DAT_DTO_COMPLETION_EVENT_DATA dto = kd_next_dto(side->test, side->recv_evd);

	return kdb_request_sent(side, &dto);
}

static void expect_request(struct kunit *test, const struct kblk_request *request,
			   u8 opcode, u32 namespace)
{
	KUNIT_EXPECT_EQ(test, request->opcode, opcode);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(request->namespace), namespace);
}

static void answer_status(struct kd_side *side, const struct kblk_request *request,
			  u16 status)
{
	struct kblk_reply reply = kdb_good_reply(request, 0);

	reply.status = cpu_to_le16(status);
	kdb_answer(side, &reply, NULL, sizeof(reply));
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

/*
 * Of two requests the target has not executed one, since the volume was detached. The
 * volume is attached again, and the request sent again, when the other one is done,
 * and the disk beside it knows nothing of it.
 */
static void ini_waits_for_answers(struct kunit *test)
{
	struct kblk_request first, second, other;
	struct kd_side *side;

	ini_attrs.depth = "7";
	side = serve_sharing(test);
	serve_second(side);
	kdb_start_command(READ_BOTH);
	first = take_request(side);
	second = take_request(side);
	expect_request(test, &first, KBLK_OP_READ, 1);
	expect_request(test, &second, KBLK_OP_READ, 1);
	answer_status(side, &first, KBLK_ERR_NOT_ATTACHED);
	/* An attempt to attach it would come before this. */
	KUNIT_EXPECT_TRUE(test, kd_wait_until(ini_is_reconnecting, NULL,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, 0, shell(READ_SECOND " &"));
	other = take_request(side);
	expect_request(test, &other, KBLK_OP_READ, 2);
	kdb_serve_one(side, &other);
	kdb_serve_one(side, &second);
	first = take_request(side);
	expect_request(test, &first, KBLK_OP_ATTACH, 0);
	kdb_serve_one(side, &first);
	kdb_serve(side, 0);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	expect_stat(test, INI_DISK, "detached by the target", 1);
	expect_stat(test, INI_DISK, "connections lost", 0);
	expect_stat(test, INI_DISK_2, "detached by the target", 0);
	/* DETACH tells the target that the first disk is gone; the last one just goes. */
	KUNIT_EXPECT_EQ(test, 1, kdb_serve_command(side, "echo 0 >" INI_DISK "/connected",
						   KBLK_OP_DETACH));
	KUNIT_EXPECT_EQ(test, ini_status, 0);
}

/*
 * Serve for @ms, or until the command has ended, as a target that attaches volume 1 and
 * has it detached when a request comes. Return how often it was attached.
 */
static int serve_detaching(struct kd_side *side, unsigned int ms)
{
	unsigned long until = jiffies + msecs_to_jiffies(ms);
	struct kblk_request request;
	DAT_EVENT event;
	int n = 0;

	while (time_before(jiffies, until) && !completion_done(&ini_ended)) {
		if (!kd_wait_event(side->recv_evd, &event, 10))
			continue;
		request = kdb_request_sent(side, &event.event_data
						 .dto_completion_event_data);
		n += request.opcode == KBLK_OP_ATTACH;
		if (request.opcode == KBLK_OP_READ)
			answer_status(side, &request, KBLK_ERR_NOT_ATTACHED);
		else
			kdb_serve_one(side, &request);
	}
	return n;
}

/*
 * A target that detaches the volume whenever it was attached is asked at intervals that
 * grow, as after the loss of a connection. The request waits.
 */
static void ini_attaches_in_intervals(struct kunit *test)
{
	struct kd_side *side;
	int i, n;

	ini_attrs.depth = "7";
	side = serve_sharing(test);
	serve_second(side);
	kdb_start_command(READ_ONE);
	n = serve_detaching(side, 2000);
	/* At once, after 10 ms, 20 ms, ..., 640 ms, 1000 ms */
	KUNIT_EXPECT_LE(test, n, 9);
	/* A busy machine takes longer. */
	for (i = 0; n < 3 && i < 10; i++)
		n += serve_detaching(side, 1000);
	KUNIT_EXPECT_GE(test, n, 3);
	kdb_serve(side, 0);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	expect_stat(test, INI_DISK, "connections lost", 0);
	KUNIT_EXPECT_EQ(test, 1, kdb_serve_command(side, "echo 0 >" INI_DISK "/connected",
						   KBLK_OP_DETACH));
}

/* So does one whose connection no other disk uses: it is asked for connections. */
static void ini_connects_in_intervals(struct kunit *test)
{
	struct kd_side *side = serve_sharing(test);
	unsigned long until = jiffies + 2 * HZ;
	struct kblk_request request;
	int n;

	kdb_start_command(READ_ONE);
	/* A busy machine takes longer for the first three. */
	for (n = 0; n < 3 || time_before(jiffies, until); n++) {
		request = take_request(side);
		expect_request(test, &request, KBLK_OP_READ, 1);
		answer_status(side, &request, KBLK_ERR_NOT_ATTACHED);
		KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep,
						      DAT_EP_STATE_DISCONNECTED));
		kd_close(side);
		side = welcome_sharing(test, false);
	}
	KUNIT_EXPECT_LE(test, n, 9);
	kdb_serve(side, 0);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	kdb_expect_removable(test);
}

/* Attempts that fail, while the volume is away, do not make a target one that detaches. */
static void ini_attaches_soon(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	unsigned int took, i;
	unsigned long when;

	ini_attrs.depth = "7";
	side = serve_sharing(test);
	serve_second(side);
	kdb_start_command(READ_ONE);
	request = take_request(side);
	answer_status(side, &request, KBLK_ERR_NOT_ATTACHED);
	for (i = 0; i < 7; i++) {
		request = take_request(side);
		expect_request(test, &request, KBLK_OP_ATTACH, 0);
		answer_status(side, &request, KBLK_ERR_NO_VOLUME);
	}
	/* A busy machine may delay one attempt; the interval that is wrong delays each. */
	i = 0;
	do {
		while ((request = take_request(side)).opcode != KBLK_OP_READ)
			kdb_serve_one(side, &request);
		answer_status(side, &request, KBLK_ERR_NOT_ATTACHED);
		when = jiffies;
		request = take_request(side);
		took = jiffies_to_msecs(jiffies - when);
		expect_request(test, &request, KBLK_OP_ATTACH, 0);
		kdb_serve_one(side, &request);
	} while (took >= 900 && ++i < 4);
	KUNIT_EXPECT_LT(test, took, 900);
	kdb_serve(side, 0);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	KUNIT_EXPECT_EQ(test, 1, kdb_serve_command(side, "echo 0 >" INI_DISK "/connected",
						   KBLK_OP_DETACH));
}

/*
 * A volume is detached again and again: a request fails in the end. Return how often the
 * volume was attached until then.
 */
static int expect_given_up(struct kunit *test, unsigned int give_up_ms)
{
	struct kd_side *side;
	char command[128];
	int n;

	ini_attrs.depth = "7";
	side = serve_sharing(test);
	serve_second(side);
	snprintf(command, sizeof(command),
		 "cd " INI_DISK "; echo 0 >connected; echo %u >give_up_ms; "
		 "echo 1 >connected", give_up_ms);
	KUNIT_ASSERT_EQ(test, 1, kdb_serve_command(side, command, KBLK_OP_ATTACH));
	kdb_start_command(READ_ONE);
	n = serve_detaching(side, 10000);
	KUNIT_EXPECT_TRUE_MSG(test, completion_done(&ini_ended),
			      "the request still waits");
	kdb_serve(side, 0);
	KUNIT_EXPECT_NE(test, ini_status, 0);
	kdb_serve_command(side, "echo 0 >" INI_DISK "/connected", 0);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	return n;
}

/* Requests of a volume that is detached again and again wait no longer than others. */
static void ini_gives_up_detached(struct kunit *test)
{
	ini_attrs.reconnect_max_ms = "500";
	/* At once, after 10 ms, ..., 320 ms, 500 ms; others are sent ten times, if need be. */
	KUNIT_EXPECT_LE(test, expect_given_up(test, 800), 8);
}

/* Is there one read of more than 4 s, and at most 67 s, in the histogram of the disk? */
#define SLOW_READ	"set -- $(head -n 1 " INI_DISK "/latency | tr ' ' '\\n' | "		\
			"sed -n 's/^le_4194304=//p; s/^le_67108864=//p'); "		\
			"[ $(($2 - $1)) -eq 1 ]"

/* Without a connection requests fail after give_up_ms, not with the next attempt. */
static void ini_gives_up_in_time(struct kunit *test)
{
	struct kd_side *side;

	ini_attrs.give_up_ms = "5500";
	ini_attrs.reconnect_max_ms = "60000";
	side = kdb_serve_disk(test, NULL, NULL);
	kdb_begin_command(side, READ_ONE);
	kd_close(side);
	KUNIT_EXPECT_FALSE(test, kd_wait_until(command_has_ended, NULL, 3500));
	/* An attempt comes 5110 ms after the first, and one after 10230. */
	KUNIT_EXPECT_TRUE(test, kd_wait_until(command_has_ended, NULL, 6000));
	kdb_wait_command();
	KUNIT_EXPECT_NE(test, ini_status, 0);
	/* It is in the histogram as what its user has seen. */
	KUNIT_EXPECT_EQ_MSG(test, 0, shell(SLOW_READ), "there is no read of more than 4 s");
	kdb_expect_removable(test);
}

/* When the volume has been away for give_up_ms requests fail; attempts go on. */
static void ini_gives_up_between(struct kunit *test)
{
	ini_attrs.reconnect_max_ms = "60000";
	expect_given_up(test, 350);
}

/* ---- A session to be fenced ------------------------------------------------- */

static struct kblk_identify identify_of(u32 namespace)
{
	struct kblk_identify identify = kdb_good_identify();

	identify.flags = 0;
	identify.uuid[0] = namespace;
	return identify;
}

/* Answer a request of disks whose volumes have UUIDs. */
static void answer_with(struct kd_side *side, const struct kblk_request *request,
			u16 credits)
{
	u32 length = request->flags & KBLK_INLINED ? le32_to_cpu(request->length) : 0;
	struct kblk_identify identify = identify_of(le32_to_cpu(request->namespace));
	bool identifies = request->opcode == KBLK_OP_IDENTIFY;
	struct kblk_reply reply;

	if (!identifies && request->opcode != KBLK_OP_READ)
		length = 0;
	reply = kdb_good_reply(request, length);
	reply.credits = cpu_to_le16(credits);
	memset(side->buf->va + DATA_AT, 0, length);
	kdb_answer(side, &reply, identifies ? &identify : NULL, sizeof(reply) + length);
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

/* Serve until the command has ended. Return how many requests have this opcode. */
static int serve_uuids(struct kd_side *side, u8 opcode)
{
	struct kblk_request request;
	unsigned int ms;
	DAT_EVENT event;
	int n = 0;

	for (ms = 0; !try_wait_for_completion(&ini_ended) && ms < 3 * KD_TIMEOUT_MS;
	     ms += 10) {
		if (!kd_wait_event(side->recv_evd, &event, 10))
			continue;
		request = kdb_request_sent(side, &event.event_data
						 .dto_completion_event_data);
		n += request.opcode == opcode;
		answer_with(side, &request, 1);
		ms = 0;
	}
	KUNIT_ASSERT_LT_MSG(side->test, ms, 3 * KD_TIMEOUT_MS, "hangs");
	return n;
}

/* Accept an initiator with a disk of volume 1, which has UUID @uuid. */
static struct kd_side *serve_uuid(struct kunit *test, u16 credits, u32 uuid)
{
	struct kblk_welcome welcome = kdb_welcome_with(SHARING | KBLK_FEATURE_IDENTITY);
	struct kblk_identify identify = identify_of(uuid);
	struct kd_side *side;

	welcome.credits = cpu_to_le16(credits);
	side = kdb_welcome_one(test, true, &welcome);
	attach_sharing(side);
	kdb_identify_as(side, &identify);
	kdb_serve(side, 0);
	KUNIT_ASSERT_EQ(test, 0, ini_error);
	return side;
}

static bool ini_has_failed(void *unused)
{
	return !shell("grep -qx failed " INI_DISK "/state");
}

/*
 * A disk is connected beside another one, and is to fence what a former disk of its volume
 * has lost, when there is no credit. The administrator's command waits for one.
 */
static void ini_fences_when_it_can(struct kunit *test)
{
	struct kblk_request read, request;
	struct kd_side *side;
	int i;

	ini_attrs.share = "1";
	ini_attrs.depth = "7";
	ini_attrs.timeout_ms = PATIENT;
	side = serve_uuid(test, INI_DEPTH, 2);
	kdb_begin_command(side, WRITE_ONE);
	kd_close(side);
	kdb_wait_command();
	KUNIT_EXPECT_NE(test, ini_status, 0);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(ini_has_failed, NULL, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, 0, ini_put("connected", "0"));

	ini_attrs.give_up_ms = PATIENT;
	side = serve_uuid(test, 3, 1);
	KUNIT_ASSERT_EQ(test, 0, shell(READ_ONE " &"));
	read = take_request(side);
	expect_request(test, &read, KBLK_OP_READ, 1);
	kdb_start_command(CONNECT_SECOND);
	for (i = 0; i < 2; i++) {
		request = take_request(side);
		answer_with(side, &request, 0);
	}
	expect_request(test, &request, KBLK_OP_IDENTIFY, 2);
	KUNIT_EXPECT_FALSE(test, kd_wait_until(command_has_ended, NULL, KD_QUIET_MS));
	answer_with(side, &read, 3);
	KUNIT_EXPECT_EQ(test, 1, serve_uuids(side, KBLK_OP_FENCE));
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	expect_stat(test, INI_DISK_2, "other paths fenced", 1);
	/* The one above */
	expect_stat(test, INI_DISK, "connections lost", 1);
	KUNIT_EXPECT_EQ(test, 1, kdb_serve_command(side, "echo 0 >" INI_DISK "/connected",
						   KBLK_OP_DETACH));
}

/* Without the feature the same status is an error, as ever. */
static void ini_is_not_attached(struct kunit *test)
{
	struct kd_side *side = kdb_serve_disk(test, NULL, NULL);
	struct kblk_reply reply;

	reply = kdb_good_reply(kdb_begin_command(side, READ_ONE), 0);
	reply.status = cpu_to_le16(KBLK_ERR_NOT_ATTACHED);
	kdb_answer(side, &reply, NULL, sizeof(reply));
	kdb_serve(side, KBLK_OP_READ);
	KUNIT_EXPECT_NE(test, ini_status, 0);
	kdb_expect_removable(test);
}

static void attach_exit(struct kunit *test)
{
	kdb_wait_command();
	shell("rmdir " INI_DISK_2 " 2>/dev/null");
	ini_unload(test);
}

static struct kunit_case attach_cases[] = {
	KUNIT_CASE_PARAM(ini_asks_to_share, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_asks_not_to_share, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_refuses_unasked_sharing, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_refuses_odd_sharing, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_names_volume, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_attaches_again, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_waits_for_answers, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_attaches_in_intervals, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_connects_in_intervals, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_attaches_soon, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_gives_up_detached, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_gives_up_in_time, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_gives_up_between, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_fences_when_it_can, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_is_not_attached, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-attach", attach_cases, "a disk that may share connections",
	 .init = ini_init, .exit = attach_exit);
