// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_kunit.ko: a target that serves the disk of kdapl_blk.ko while
 * commands use it, see blk_serve.h.
 */
#include <linux/module.h>
#include "blk_serve.h"

/* ---- Commands that use the disk --------------------------------------------- */

static char *ini_command;
int ini_status;
EXPORT_SYMBOL_GPL(ini_status);

static void ini_run_command(struct work_struct *work)
{
	ini_status = shell(ini_command);
	complete(&ini_ended);
}

static DECLARE_WORK(ini_command_work, ini_run_command);

void kdb_start_command(char *command)
{
	ini_command = command;
	reinit_completion(&ini_ended);
	queue_work(system_long_wq, &ini_command_work);
}
EXPORT_SYMBOL_GPL(kdb_start_command);

/* Wait until the command has set ini_status. */
void kdb_wait_command(void)
{
	flush_work(&ini_command_work);
}
EXPORT_SYMBOL_GPL(kdb_wait_command);

/* ---- A target that serves -------------------------------------------------- */

/* The answer was sent, or if it @may_leave the initiator has ended the connection meanwhile. */
static void expect_sent(struct kd_side *side, bool may_leave)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	if (!may_leave) {
		kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
		return;
	}
	KUNIT_ASSERT_TRUE(side->test, kd_wait_event(side->req_evd, &event, KD_TIMEOUT_MS));
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_EQ(side->test, dto->user_cookie.as_64, 2ULL);
	if (dto->status == DAT_DTO_SUCCESS)
		return;
	KUNIT_EXPECT_EQ(side->test, (int)dto->status, (int)DAT_DTO_ERR_FLUSHED);
	KUNIT_EXPECT_TRUE(side->test, kd_wait_state(side->ep, DAT_EP_STATE_DISCONNECTED));
}

/* Tell an initiator that asks what the volume is. */
static void serve_identify(struct kd_side *side,
			   const struct kblk_request *request, bool may_leave)
{
	struct kblk_identify identify = kdb_good_identify();
	struct kblk_reply reply = kdb_good_reply(request, sizeof(identify));

	kdb_answer(side, &reply, &identify, sizeof(reply) + sizeof(identify));
	expect_sent(side, may_leave);
}

static u8 serve_one(struct kd_side *side, const struct kblk_request *request, bool may_leave)
{
	u32 length = le32_to_cpu(request->length);
	u8 opcode = request->opcode;
	struct kblk_reply reply;

	if (opcode == KBLK_OP_IDENTIFY) {
		serve_identify(side, request, may_leave);
		return opcode;
	}
	if (opcode != KBLK_OP_READ || !(request->flags & KBLK_INLINED))
		length = 0;
	reply = kdb_good_reply(request, length);
	memset(side->buf->va + DATA_AT, 0, length);
	kdb_answer(side, &reply, NULL, sizeof(reply) + length);
	expect_sent(side, may_leave);
	return opcode;
}

/*
 * Answer a request; the data of a read is zeroes, or whatever was in the
 * memory. Return the opcode.
 */
u8 kdb_serve_one(struct kd_side *side, const struct kblk_request *request)
{
	return serve_one(side, request, false);
}
EXPORT_SYMBOL_GPL(kdb_serve_one);

/* The same of an initiator that may disconnect before it has the answer. */
u8 kdb_serve_leaving(struct kd_side *side, const struct kblk_request *request)
{
	return serve_one(side, request, true);
}
EXPORT_SYMBOL_GPL(kdb_serve_leaving);

unsigned int kdb_most_requests;
EXPORT_SYMBOL_GPL(kdb_most_requests);

/* Answer all requests of a message. Return how many have this opcode. */
static int kdb_serve_message(struct kd_side *side,
			     const DAT_DTO_COMPLETION_EVENT_DATA *dto,
			     u8 opcode)
{
	struct kblk_request copy[INI_DEPTH];
	u64 n = dto->user_cookie.as_64;
	unsigned int i, count = 0;
	const void *from, *end;
	int found = 0;

	KUNIT_ASSERT_EQ(side->test, (int)dto->status, (int)DAT_DTO_SUCCESS);
	from = side->buf->va + REQUEST_AT + n * REQUEST_SIZE;
	end = from + dto->transfered_length;
	/* Count before a reply allows another message. */
	while (from < end) {
		KUNIT_ASSERT_LT(side->test, count, INI_DEPTH);
		memcpy(&copy[count], from, sizeof(copy[0]));
		from += sizeof(copy[0]);
		if ((copy[count].opcode == KBLK_OP_WRITE &&
		     copy[count].flags & KBLK_INLINED) ||
		    copy[count].opcode == KBLK_OP_ATTACH)
			from += le32_to_cpu(copy[count].length);
		count++;
	}
	KUNIT_EXPECT_PTR_EQ(side->test, from, end);
	kdb_most_requests = max(kdb_most_requests, count);
	kd_recv(side, REQUEST_AT + n * REQUEST_SIZE, REQUEST_SIZE, n);
	for (i = 0; i < count; i++)
		found += kdb_serve_one(side, &copy[i]) == opcode;
	return found;
}

/*
 * Serve until the command that was begun has ended. Return how many requests
 * have this opcode.
 */
int kdb_serve(struct kd_side *side, u8 opcode)
{
	DAT_EVENT event;
	unsigned int ms;
	int found = 0;

	for (ms = 0; !try_wait_for_completion(&ini_ended) && ms < 3 * KD_TIMEOUT_MS;
	     ms += 10) {
		if (!kd_wait_event(side->recv_evd, &event, 10))
			continue;
		found += kdb_serve_message(side, &event.event_data
					     .dto_completion_event_data, opcode);
		ms = 0;
	}
	KUNIT_ASSERT_LT_MSG(side->test, ms, 3 * KD_TIMEOUT_MS, "hangs");
	return found;
}
EXPORT_SYMBOL_GPL(kdb_serve);

/* Run @command and serve it. Return how many requests have this opcode. */
int kdb_serve_command(struct kd_side *side, char *command, u8 opcode)
{
	kdb_start_command(command);
	return kdb_serve(side, opcode);
}
EXPORT_SYMBOL_GPL(kdb_serve_command);

/* Wait for a request. */
const struct kblk_request *kdb_next_request(struct kd_side *side)
{
	u64 n = kd_next_dto(side->test, side->recv_evd).user_cookie.as_64;

	return side->buf->va + REQUEST_AT + n * REQUEST_SIZE;
}
EXPORT_SYMBOL_GPL(kdb_next_request);

/* Run @command and wait for its first request, which is not answered. */
const struct kblk_request *kdb_begin_command(struct kd_side *side,
					     char *command)
{
	kdb_start_command(command);
	return kdb_next_request(side);
}
EXPORT_SYMBOL_GPL(kdb_begin_command);

/* Take the request of a message away, so that its buffer can have another. */
struct kblk_request kdb_request_sent(struct kd_side *side,
				     const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	u64 n = dto->user_cookie.as_64;
	struct kblk_request request;

	memcpy(&request, side->buf->va + REQUEST_AT + n * REQUEST_SIZE,
	       sizeof(request));
	kd_recv(side, REQUEST_AT + n * REQUEST_SIZE, REQUEST_SIZE, n);
	return request;
}
EXPORT_SYMBOL_GPL(kdb_request_sent);

struct kblk_welcome kdb_welcome_with(u32 features)
{
	struct kblk_welcome welcome = kdb_good_welcome();

	welcome.features = cpu_to_le32(features);
	return welcome;
}
EXPORT_SYMBOL_GPL(kdb_welcome_with);

/* Listen, whether there is a connection or not. Return who is to accept at @psp. */
struct kd_side *kdb_listen(struct kunit *test, DAT_PSP_HANDLE *psp)
{
	struct kd_side *side = kdb_new_target(test);

	*psp = kd_psp(side, ini_port, DAT_PSP_CONSUMER_FLAG);
	return side;
}
EXPORT_SYMBOL_GPL(kdb_listen);

/* Accept the initiator, and serve the reads as its disk appears. */
struct kd_side *kdb_serve_disk(struct kunit *test,
			       const struct kblk_welcome *welcome,
			       const struct kblk_identify *identify)
{
	struct kd_side *side;

	ini_attrs.timeout_ms = PATIENT;
	side = kdb_welcome_one(test, true, welcome);
	kdb_attach(side);
	kdb_identify_as(side, identify);
	kdb_serve(side, 0);
	KUNIT_ASSERT_EQ(test, 0, ini_error);
	return side;
}
EXPORT_SYMBOL_GPL(kdb_serve_disk);

/* Accept the initiator again after its connection has ended. */
struct kd_side *kdb_serve_again(struct kunit *test,
				const struct kblk_identify *identify)
{
	struct kd_side *side = kdb_welcome_one(test, false, NULL);

	kdb_attach(side);
	kdb_identify_as(side, identify);
	return side;
}
EXPORT_SYMBOL_GPL(kdb_serve_again);

void kdb_expect_removable(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0, ini_put("connected", "0"));
}
EXPORT_SYMBOL_GPL(kdb_expect_removable);

bool ini_is_connected(void *unused)
{
	return !shell("grep -qx connected " INI_DISK "/state");
}
EXPORT_SYMBOL_GPL(ini_is_connected);

void kdb_serve_exit(struct kunit *test)
{
	kdb_wait_command();
	ini_unload(test);
}
EXPORT_SYMBOL_GPL(kdb_serve_exit);
