// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: connections are attached to volumes and detached at random
 * while the media keep writes. What is written after a volume was attached is
 * never overtaken by what was written before.
 */
#include <linux/prandom.h>
#include <linux/random.h>
#include "blk_volumes.h"

#define OPS		1000
#define QUEUES		2
#define BLOCKS		4
#define REPLIES		(TGT_CREDITS + 2)
#define REPLY_SIZE	(sizeof(struct kblk_reply) + SZ_1K)
#define NOTHING		REPLIES		/* id of what is no write */
#define NSID(v)		((v) + SLOW)

/*
 * struct block - a block that is written
 * @value: what was written last, if @sure
 * @sure: the block contains @value
 * @writing: value of the write that is under way, or 0
 */
struct block {
	u8 value;
	bool sure;
	u8 writing;
};

/*
 * struct queue - a connection of the link
 * @credits: that it has
 * @attached: to which of the volumes
 * @writes: block that a request with this id writes, or NULL
 * @given_up: nobody wants to know what becomes of it
 * @status: of the reply to what is no write
 * @answered: that has come
 */
struct queue {
	struct kd_side *side;
	u64 credits;
	bool attached[2];
	struct block *writes[NOTHING];
	bool given_up[NOTHING];
	u16 status;
	bool answered;
};

static struct link {
	struct kunit *test;
	struct rnd_state rnd;
	struct kblk_hello hello;
	struct queue queues[QUEUES];
	struct block blocks[2][BLOCKS];
	u8 value;
	int stale;
	int refused;
	int done;
} *lnk;

static unsigned int below(unsigned int n)
{
	return prandom_u32_state(&lnk->rnd) % n;
}

static struct backing *backing_of(int v)
{
	return v ? kdb_quick : kdb_slow;
}

static size_t reply_at(u64 slot)
{
	return SZ_32K + slot * REPLY_SIZE;
}

/* A write is on the medium when it is answered, and nothing older is after it. */
static void write_ends(struct queue *queue, u64 id, u16 status)
{
	struct block *block = queue->writes[id];
	int v = block >= lnk->blocks[1];
	u8 *data = backing_of(v)->data + (block - lnk->blocks[v]) * 4096;

	queue->writes[id] = NULL;
	if (queue->given_up[id])
		return;
	if (status == KBLK_OK) {
		block->value = block->writing;
		block->sure = true;
		KUNIT_EXPECT_NULL(lnk->test, memchr_inv(data, block->value, 4096));
		lnk->done++;
	} else {
		KUNIT_EXPECT_EQ(lnk->test, status, KBLK_ERR_NOT_ATTACHED);
		queue->attached[v] = false;
		lnk->refused++;
	}
	block->writing = 0;
}

/* Take a reply if one comes within @ms; return whether one did. */
static bool take_reply(struct queue *queue, unsigned int ms)
{
	struct kd_side *side = queue->side;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	const struct kblk_reply *reply;
	DAT_EVENT event;
	u64 slot, id;

	if (!kd_wait_event(side->recv_evd, &event, ms))
		return false;
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_ASSERT_EQ(lnk->test, (int)dto->status, (int)DAT_DTO_SUCCESS);
	slot = dto->user_cookie.as_64;
	reply = side->buf->va + reply_at(slot);
	id = le64_to_cpu(reply->id);
	queue->credits += le16_to_cpu(reply->credits);
	KUNIT_ASSERT_LE(lnk->test, id, NOTHING);
	if (id < NOTHING) {
		KUNIT_ASSERT_NOT_NULL(lnk->test, queue->writes[id]);
		write_ends(queue, id, le16_to_cpu(reply->status));
	} else {
		queue->status = le16_to_cpu(reply->status);
		queue->answered = true;
	}
	kd_recv(side, reply_at(slot), REPLY_SIZE, slot);
	return true;
}

static void send(struct queue *queue, const struct kblk_request *request,
		 size_t data)
{
	KUNIT_ASSERT_GT(lnk->test, queue->credits, 0);
	queue->credits--;
	kdb_send_request(queue->side, request, sizeof(*request) + data);
	kd_expect_dto(lnk->test, queue->side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

/* Send what is no write and wait for the answer, whatever stands still. */
static u16 ask_queue(struct queue *queue, struct kblk_request *request, size_t data)
{
	request->id = cpu_to_le64(NOTHING);
	queue->answered = false;
	send(queue, request, data);
	while (!queue->answered)
		KUNIT_ASSERT_TRUE_MSG(lnk->test, take_reply(queue, KD_TIMEOUT_MS),
				      "opcode %u is not answered", request->opcode);
	return queue->status;
}

static u16 attach_queue(struct queue *queue, int v)
{
	struct kblk_request request = kdb_request_of(queue->side, KBLK_OP_ATTACH, 0);
	struct kblk_attach *attach = queue->side->buf->va + REQUEST_AT +
				     sizeof(request);

	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(sizeof(*attach));
	memset(attach, 0, sizeof(*attach));
	strscpy(attach->client, "somebody", sizeof(attach->client));
	strscpy(attach->subsystem, "vol", sizeof(attach->subsystem));
	attach->namespace = cpu_to_le32(NSID(v));
	export_uuid(attach->host, &kdb_host);
	return ask_queue(queue, &request, sizeof(*attach));
}

static void op_attach(struct queue *queue, int v)
{
	u16 status = attach_queue(queue, v);

	if (status == KBLK_OK) {
		KUNIT_EXPECT_FALSE(lnk->test, queue->attached[v]);
		queue->attached[v] = true;
		return;
	}
	/* The first connection is attached first; the volume may be disabled. */
	if (status == KBLK_ERR_INVALID)
		KUNIT_EXPECT_TRUE(lnk->test, queue->attached[v]);
	else if (status == KBLK_ERR_STALE)
		KUNIT_EXPECT_PTR_NE(lnk->test, queue, &lnk->queues[0]);
	else
		KUNIT_EXPECT_EQ(lnk->test, status, KBLK_ERR_DRAINING);
	lnk->stale++;
}

static void op_detach(struct queue *queue, int v)
{
	struct kblk_request request = kdb_request_of(queue->side, KBLK_OP_DETACH,
						 NSID(v));
	u16 status = ask_queue(queue, &request, 0);

	if (status != KBLK_OK)
		KUNIT_EXPECT_EQ(lnk->test, status, KBLK_ERR_NOT_ATTACHED);
	queue->attached[v] = false;
}

/* Nobody waits for writes of volume @v any more; what has become of them? */
static void give_up(int v)
{
	struct block *block;
	struct queue *queue;
	int i;

	for (queue = lnk->queues; queue < lnk->queues + QUEUES; queue++)
		for (i = 0; i < NOTHING; i++)
			if (queue->writes[i] >= lnk->blocks[v] &&
			    queue->writes[i] < lnk->blocks[v] + BLOCKS)
				queue->given_up[i] = true;
	for (block = lnk->blocks[v]; block < lnk->blocks[v] + BLOCKS; block++) {
		if (block->writing)
			block->sure = false;
		block->writing = 0;
	}
}

/* Detach a volume from all connections, without waiting for its writes. */
static void op_leave(int v)
{
	int i;

	for (i = 0; i < QUEUES; i++)
		op_detach(&lnk->queues[i], v);
	give_up(v);
}

/* Write a block that is not being written, but leave a credit for other requests. */
static void op_write(struct queue *queue, int v)
{
	struct block *block = &lnk->blocks[v][below(BLOCKS)];
	struct kblk_request request;
	u64 id = 0;

	while (queue->writes[id])
		id++;
	if (block->writing || queue->credits < 2 ||
	    (!queue->attached[v] && below(8)))
		return;
	lnk->value = lnk->value % 250 + 1;
	block->writing = lnk->value;
	queue->writes[id] = block;
	queue->given_up[id] = false;
	request = kdb_write_request(queue->side, NSID(v), block - lnk->blocks[v],
				    lnk->value);
	request.id = cpu_to_le64(id);
	if (below(2))
		request.flags |= KBLK_WANTS;
	send(queue, &request, 4096);
}

static void link_up(void)
{
	const struct kblk_welcome *welcome;
	struct queue *queue;
	struct kd_side *side;
	u64 i;

	le32_add_cpu(&lnk->hello.epoch, 1);
	for (queue = lnk->queues; queue < lnk->queues + QUEUES; queue++) {
		side = kdb_client(lnk->test);
		for (i = 0; i < REPLIES; i++)
			kd_recv(side, reply_at(i), REPLY_SIZE, i);
		lnk->hello.queue = cpu_to_le16(queue - lnk->queues);
		kdb_say_hello(side, &lnk->hello, sizeof(lnk->hello));
		welcome = kdb_expect_welcome(side,
					     DAT_CONNECTION_EVENT_ESTABLISHED);
		memset(queue, 0, sizeof(*queue));
		queue->side = side;
		queue->credits = le16_to_cpu(welcome->credits);
	}
}

/*
 * Lose the link: nobody knows what has become of its writes. The former connections
 * are closed before those of the next epoch are made, or afterwards.
 */
static void op_lose(bool before)
{
	struct kd_side *old[QUEUES];
	int i;

	for (i = 0; i < QUEUES; i++) {
		old[i] = lnk->queues[i].side;
		if (before)
			kd_close(old[i]);
	}
	link_up();
	for (i = 0; i < QUEUES && !before; i++)
		kd_close(old[i]);
	give_up(0);
	give_up(1);
}

/* What was answered is there, and has not been overtaken by anything older. */
static void expect_written(void)
{
	struct block *block;
	int v, i;

	for (v = 0; v < 2; v++) {
		for (i = 0; i < BLOCKS; i++) {
			block = &lnk->blocks[v][i];
			if (block->sure && !block->writing)
				KUNIT_EXPECT_NULL_MSG(lnk->test,
						      memchr_inv(backing_of(v)->data +
								 i * 4096,
								 block->value, 4096),
						      "volume %d, block %d",
						      NSID(v), i);
		}
	}
}

static void op_release(int v)
{
	kdb_backing_hold(backing_of(v), false);
	expect_written();
}

static void op_any(void)
{
	struct queue *queue = &lnk->queues[below(QUEUES)];
	unsigned int op = below(100);
	int v = below(2);

	if (op < 55)
		op_write(queue, v);
	else if (op < 75)
		op_attach(queue, v);
	else if (op < 77)
		op_detach(queue, v);
	else if (op < 81)
		op_leave(v);
	else if (op < 85)
		kdb_backing_hold(backing_of(v), true);
	else if (op < 91)
		/* What comes now would overtake what is held. */
		kdb_backing_pass(backing_of(v));
	else if (op < 96)
		op_release(v);
	else if (op < 98)
		op_lose(op & 1);
	else
		while (take_reply(queue, 10))
			;
	while (take_reply(queue, 0))
		;
}

static bool is_writing(void)
{
	int v, i;

	for (v = 0; v < 2; v++)
		for (i = 0; i < BLOCKS; i++)
			if (lnk->blocks[v][i].writing)
				return true;
	return false;
}

/*
 * Two connections are attached to two volumes and detached, both are lost and made
 * again, media stand still and go on, in any order.
 */
static void sharing_at_random(struct kunit *test)
{
	int i;

	kdb_load_volumes(test, MANY_SLOTS);
	lnk = kunit_kzalloc(test, sizeof(*lnk), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, lnk);
	lnk->test = test;
	prandom_seed_state(&lnk->rnd, get_random_u64());
	lnk->hello = kdb_good_hello();
	link_up();
	for (i = 0; i < OPS; i++)
		op_any();
	kdb_release_volumes(NULL);
	for (i = 0; i < KD_TIMEOUT_MS / 10 && is_writing(); i++) {
		take_reply(&lnk->queues[0], 5);
		take_reply(&lnk->queues[1], 5);
	}
	KUNIT_EXPECT_FALSE(test, is_writing());
	expect_written();
	kunit_info(test, "%d writes done, %d refused, %d times not attached\n",
		   lnk->done, lnk->refused, lnk->stale);
	KUNIT_EXPECT_GT(test, lnk->done, 0);
	for (i = 0; i < QUEUES; i++)
		kd_close(lnk->queues[i].side);
	kdb_expect_serving_alone(test);
}

static struct kunit_case random_cases[] = {
	KUNIT_CASE_PARAM(sharing_at_random, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-sharing-random", random_cases,
	 "volumes that are attached and detached at random");
