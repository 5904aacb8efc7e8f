/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the suites share that use the disk of kdapl_blk.ko: commands that use
 * it, and a target that serves it.
 */
#ifndef KDAPL_KUNIT_BLK_SERVE_H
#define KDAPL_KUNIT_BLK_SERVE_H

#include "blk_initiator.h"

/* ---- Commands that use the disk --------------------------------------------- */

#define READ_MUCH	"dd if=/dev/kdapl0 of=/dev/null bs=64k count=1 "	\
			"iflag=direct 2>/dev/null"
#define READ_ONE	"dd if=/dev/kdapl0 of=/dev/null bs=512 count=1 "	\
			"iflag=direct 2>/dev/null"
#define READ_ALL	"dd if=/dev/kdapl0 of=/dev/null bs=1M count=1 "	\
			"iflag=direct 2>/dev/null"
/* As many requests as the disk may have outstanding. */
#define READ_THREE	"dd if=/dev/kdapl0 of=/dev/null bs=192k count=1 "	\
			"iflag=direct 2>/dev/null"
#define WRITE_ONE	"dd if=/dev/zero of=/dev/kdapl0 bs=512 count=1 "	\
			"oflag=direct conv=notrunc 2>/dev/null"
#define WRITE_TWO	WRITE_ONE "& " WRITE_ONE "; one=$?; wait $! && exit $one"
/* Read sectors of different pages, which should be full of "a" and of "b". */
#define READ_FULL(c, at)	"test $(dd if=/dev/kdapl0 bs=512 count=1 skip=" at	\
			" iflag=direct 2>/dev/null | tr -dc " c " | wc -c) = 512"
#define READ_TWO	READ_FULL("a", "0") "& " READ_FULL("b", "8")		\
			"; one=$?; wait $! && exit $one"
#define READ_BOTH	READ_MUCH "& " READ_ONE "; one=$?; wait $! && exit $one"
/* Reads are not direct, so that the block layer has several at a time. */
#define READ_AHEAD	"dd if=/dev/kdapl0 of=/dev/null bs=1M count=1 2>/dev/null"
#define WRITE_BEHIND	"dd if=/dev/zero of=/dev/kdapl0 bs=68k count=1 "	\
			"conv=notrunc,fsync 2>/dev/null"
#define FLUSH_IT	"dd if=/dev/null of=/dev/kdapl0 count=0 "	\
			"conv=notrunc,fsync 2>/dev/null"

static char *ini_command;
static int ini_status;

static inline void ini_run_command(struct work_struct *work)
{
	ini_status = shell(ini_command);
	complete(&ini_ended);
}

static DECLARE_WORK(ini_command_work, ini_run_command);

static inline void start_command(char *command)
{
	ini_command = command;
	reinit_completion(&ini_ended);
	queue_work(system_long_wq, &ini_command_work);
}

/* ---- A target that serves -------------------------------------------------- */

/*
 * Answer a request; the data of a read is zeroes, or whatever was in the
 * memory. Return the opcode.
 */
static inline u8 serve_one(struct kd_side *side, const struct kblk_request *request)
{
	u32 length = le32_to_cpu(request->length);
	u8 opcode = request->opcode;
	struct kblk_reply reply;

	if (opcode != KBLK_OP_READ || !(request->flags & KBLK_INLINED))
		length = 0;
	reply = good_reply(request, length);
	memset(side->buf->va + DATA_AT, 0, length);
	answer(side, &reply, NULL, sizeof(reply) + length);
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	return opcode;
}

/* The most requests in a message since a case has set this to 0. */
static unsigned int most_requests;

/* Answer all requests of a message. Return how many have this opcode. */
static inline int serve_message(struct kd_side *side,
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
		if (copy[count].opcode == KBLK_OP_WRITE &&
		    copy[count].flags & KBLK_INLINED)
			from += le32_to_cpu(copy[count].length);
		count++;
	}
	KUNIT_EXPECT_PTR_EQ(side->test, from, end);
	most_requests = max(most_requests, count);
	kd_recv(side, REQUEST_AT + n * REQUEST_SIZE, REQUEST_SIZE, n);
	for (i = 0; i < count; i++)
		found += serve_one(side, &copy[i]) == opcode;
	return found;
}

/*
 * Serve until the command that was begun has ended. Return how many requests
 * have this opcode.
 */
static inline int serve(struct kd_side *side, u8 opcode)
{
	DAT_EVENT event;
	unsigned int ms;
	int found = 0;

	for (ms = 0; !try_wait_for_completion(&ini_ended) && ms < 3 * KD_TIMEOUT_MS;
	     ms += 10) {
		if (!kd_wait_event(side->recv_evd, &event, 10))
			continue;
		found += serve_message(side, &event.event_data
					     .dto_completion_event_data, opcode);
		ms = 0;
	}
	KUNIT_ASSERT_LT_MSG(side->test, ms, 3 * KD_TIMEOUT_MS, "hangs");
	return found;
}

/* Run @command and serve it. Return how many requests have this opcode. */
static inline int serve_command(struct kd_side *side, char *command, u8 opcode)
{
	start_command(command);
	return serve(side, opcode);
}

/* Wait for a request. */
static inline const struct kblk_request *next_request(struct kd_side *side)
{
	u64 n = kd_next_dto(side->test, side->recv_evd).user_cookie.as_64;

	return side->buf->va + REQUEST_AT + n * REQUEST_SIZE;
}

/* Run @command and wait for its first request, which is not answered. */
static inline const struct kblk_request *begin_command(struct kd_side *side,
						       char *command)
{
	start_command(command);
	return next_request(side);
}

/* Accept the initiator, and serve the reads as its disk appears. */
static inline struct kd_side *serve_disk(struct kunit *test,
					 const struct kblk_welcome *welcome,
					 const struct kblk_identify *identify)
{
	struct kd_side *side;

	ini_patience = PATIENT;
	side = welcome_one(test, true, welcome);
	attach(side);
	identify_as(side, identify);
	serve(side, 0);
	KUNIT_ASSERT_EQ(test, 0, ini_error);
	return side;
}

/* Accept the initiator again after its connection has ended. */
static inline struct kd_side *serve_again(struct kunit *test,
					  const struct kblk_identify *identify)
{
	struct kd_side *side = welcome_one(test, false, NULL);

	attach(side);
	identify_as(side, identify);
	return side;
}

static inline void expect_removable(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0, ini_put("connected", "0"));
}

static inline bool ini_is_connected(void *unused)
{
	return !shell("grep -qx connected " INI_DISK "/state");
}

static inline void serve_exit(struct kunit *test)
{
	flush_work(&ini_command_work);
	ini_unload(test);
}

#endif /* KDAPL_KUNIT_BLK_SERVE_H */
