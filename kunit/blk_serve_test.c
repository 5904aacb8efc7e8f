// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko while its disk is used: large transfers, memory that is taken back,
 * targets that are started anew, wires that break. Targets that it does not get as
 * far with: blk_initiator_test.c.
 */
#include <linux/module.h>
#include "blk_initiator.h"
#include "device.h"

/* ---- Commands that use the disk --------------------------------------------- */

#define READ_MUCH	"dd if=/dev/kdapl0 of=/dev/null bs=64k count=1 "	\
			"iflag=direct 2>/dev/null"
#define READ_ONE	"dd if=/dev/kdapl0 of=/dev/null bs=512 count=1 "	\
			"iflag=direct 2>/dev/null"
#define READ_ALL	"dd if=/dev/kdapl0 of=/dev/null bs=1M count=1 "	\
			"iflag=direct 2>/dev/null"
#define WRITE_ONE	"dd if=/dev/zero of=/dev/kdapl0 bs=512 count=1 "	\
			"oflag=direct conv=notrunc 2>/dev/null"
#define WRITE_TWO	WRITE_ONE "& " WRITE_ONE "; one=$?; wait $! && exit $one"
/* Sectors of different pages, which should be full of "a" and of "b". */
#define READ_FULL(c, at)	"test $(dd if=/dev/kdapl0 bs=512 count=1 skip=" at	\
			" iflag=direct 2>/dev/null | tr -dc " c " | wc -c) = 512"
#define READ_TWO	READ_FULL("a", "0") "& " READ_FULL("b", "8")		\
			"; one=$?; wait $! && exit $one"
#define READ_BOTH	READ_MUCH "& " READ_ONE "; one=$?; wait $! && exit $one"
/* Not direct, so that the block layer has several at hand. */
#define READ_AHEAD	"dd if=/dev/kdapl0 of=/dev/null bs=1M count=1 2>/dev/null"
#define WRITE_BEHIND	"dd if=/dev/zero of=/dev/kdapl0 bs=68k count=1 "	\
			"conv=notrunc,fsync 2>/dev/null"
#define FLUSH_IT	"dd if=/dev/null of=/dev/kdapl0 count=0 "	\
			"conv=notrunc,fsync 2>/dev/null"

static char *ini_command;
static int ini_status;

static void ini_run_command(struct work_struct *work)
{
	ini_status = shell(ini_command);
	complete(&ini_ended);
}

static DECLARE_WORK(ini_command_work, ini_run_command);

static void start_command(char *command)
{
	ini_command = command;
	reinit_completion(&ini_ended);
	queue_work(system_long_wq, &ini_command_work);
}

/* ---- A target that serves -------------------------------------------------- */

/*
 * Answer a request: zeroes are read, or whatever was in the memory. Returns its
 * opcode.
 */
static u8 serve_one(struct kd_side *side, const struct kblk_request *request)
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

/* Most requests that a message has brought, since somebody has set it to 0. */
static unsigned int most_requests;

/* Answer all of a message; returns how often there was @opcode. */
static int serve_message(struct kd_side *side,
			 const DAT_DTO_COMPLETION_EVENT_DATA *dto, u8 opcode)
{
	struct kblk_request copy[INI_DEPTH];
	u64 n = dto->user_cookie.as_64;
	unsigned int i, count = 0;
	const void *from, *end;
	int found = 0;

	KUNIT_ASSERT_EQ(side->test, (int)dto->status, (int)DAT_DTO_SUCCESS);
	from = side->buf->va + REQUEST_AT + n * REQUEST_SIZE;
	end = from + dto->transfered_length;
	/* Before a reply allows another message. */
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

/* Serve until what was begun has ended; returns how often there was @opcode. */
static int serve(struct kd_side *side, u8 opcode)
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

/* Run @command and serve; how often was there @opcode? */
static int serve_command(struct kd_side *side, char *command, u8 opcode)
{
	start_command(command);
	return serve(side, opcode);
}

/* Wait for a request. */
static const struct kblk_request *next_request(struct kd_side *side)
{
	u64 n = kd_next_dto(side->test, side->recv_evd).user_cookie.as_64;

	return side->buf->va + REQUEST_AT + n * REQUEST_SIZE;
}

/* Run @command, whose first request is waited for and left without an answer. */
static const struct kblk_request *begin_command(struct kd_side *side,
						char *command)
{
	start_command(command);
	return next_request(side);
}

/* Let the initiator have its disk, and serve what is read as it appears. */
static struct kd_side *serve_disk(struct kunit *test,
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

/* It was away and comes back. */
static struct kd_side *serve_again(struct kunit *test,
				   const struct kblk_identify *identify)
{
	struct kd_side *side = welcome_one(test, false, NULL);

	attach(side);
	identify_as(side, identify);
	return side;
}

static void expect_removable(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0, ini_put("connected", "0"));
}

/* ---- Cases --------------------------------------------------------------- */

/*
 * The target takes more at once than the adapter can register; and it leaves it to
 * the initiator to take its memory back.
 */
static void ini_large_transfers(struct kunit *test)
{
	struct kblk_welcome welcome = good_welcome();
	struct kd_side *side;
	int i;

	welcome.max_transfer = cpu_to_le32(SZ_2G);
	side = serve_disk(test, &welcome, NULL);
	/* Every binding is undone, so each can be used again. */
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_NE(test, serve_command(side, READ_ALL,
						    KBLK_OP_READ), 0);
		KUNIT_EXPECT_EQ(test, ini_status, 0);
	}
	expect_removable(test);
}

/* A reply that does not take back the memory, or takes back something else. */
static void ini_bad_invalidation(struct kunit *test)
{
	struct kblk_welcome welcome = good_welcome();
	const struct kblk_request *request;
	struct kblk_reply reply;
	struct kd_side *side;
	DAT_LMR_TRIPLET seg;
	DAT_RETURN ret;
	u32 key;
	int i;

	welcome.features = cpu_to_le32(KBLK_FEATURE_INVALIDATE);
	for (i = 0; i < 2; i++) {
		side = serve_disk(test, &welcome, NULL);
		request = begin_command(side, READ_MUCH);
		key = le32_to_cpu(request->rmr_context);
		KUNIT_EXPECT_NE(test, key, 0);
		reply = good_reply(request, 0);
		memcpy(side->buf->va + REPLY_AT, &reply, sizeof(reply));
		seg = kd_seg(side->buf, REPLY_AT, sizeof(reply));
		ret = dat_ep_post_send_with_invalidate(side->ep, 1, &seg,
						       kd_cookie(3),
						       DAT_COMPLETION_DEFAULT_FLAG,
						       i, key ^ 0x100);
		KD_EXPECT_OK(test, ret);
		KUNIT_EXPECT_TRUE_MSG(test,
				      kd_wait_state(side->ep,
						    DAT_EP_STATE_DISCONNECTED),
				      "reply %d", i);
		flush_work(&ini_command_work);
		KUNIT_EXPECT_NE(test, ini_status, 0);
		expect_removable(test);
		kd_close(side);
	}
}

enum fault {
	NO_FAULT,
	NOT_AGREED,
	SAME_ID,
	PARTIAL,
	TOO_MANY,
	WITH_DATA,
	BAD_MAGIC,
	INVALIDATES,
	/* For these it takes two READs. */
	DATA_SHORT,
	DATA_LONG,
	DATA_CUT,
	FAULTS
};

/* Answer two requests, with @data bytes each, in one message. */
static void answer_two(struct kd_side *side,
		       const struct kblk_request **requests, u32 data,
		       enum fault fault)
{
	size_t part = sizeof(struct kblk_reply) + data, len = 2 * part;
	void *to = side->buf->va + REPLY_AT;
	struct kblk_reply *second = to + part;
	DAT_LMR_TRIPLET seg;
	int i;

	for (i = 0; i < 2; i++) {
		*(struct kblk_reply *)(to + i * part) =
			good_reply(requests[i], data);
		memset(to + i * part + sizeof(struct kblk_reply), 'a' + i,
		       data);
	}
	if (fault == SAME_ID)
		second->id = requests[0]->id;
	if (fault == PARTIAL)
		len -= 8;
	if (fault == TOO_MANY) {
		for (i = 2; i <= KBLK_BATCH_MAX; i++)
			second[i - 1] = good_reply(requests[i % 2], 0);
		len = (KBLK_BATCH_MAX + 1) * sizeof(*second);
	}
	if (fault == WITH_DATA) {
		second->length = cpu_to_le32(512);
		len += 512;
	}
	if (fault == BAD_MAGIC)
		second->magic = 0;
	if (fault == DATA_SHORT || fault == DATA_LONG)
		second->length = cpu_to_le32(data +
					     (fault == DATA_LONG ? 32 : -32));
	if (fault == DATA_SHORT)
		len -= 32;
	if (fault == DATA_LONG)
		len += 32;
	if (fault == DATA_CUT)
		len -= 1;
	seg = kd_seg(side->buf, REPLY_AT, len);
	KD_EXPECT_OK(side->test,
		     dat_ep_post_send_with_invalidate(side->ep, 1, &seg,
						      kd_cookie(2),
						      DAT_COMPLETION_DEFAULT_FLAG,
						      fault == INVALIDATES,
						      0x100));
}

/* Two requests at once, to the first and the second page; sorted. */
static void next_two(struct kd_side *side, char *command, u8 opcode,
		     const struct kblk_request **requests)
{
	int i;

	requests[0] = begin_command(side, command);
	requests[1] = next_request(side);
	if (requests[0]->offset)
		swap(requests[0], requests[1]);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(side->test, requests[i]->opcode, opcode);
}

static void one_batch(struct kunit *test, bool reads, enum fault fault)
{
	struct kblk_identify identify = good_identify();
	struct kblk_welcome welcome = good_welcome();
	const struct kblk_request *requests[2];
	struct kd_side *side;

	identify.flags = 0;
	if (fault != NOT_AGREED)
		welcome.features = cpu_to_le32(KBLK_FEATURE_BATCH);
	side = serve_disk(test, &welcome, &identify);
	if (reads)
		next_two(side, READ_TWO, KBLK_OP_READ, requests);
	else
		next_two(side, WRITE_TWO, KBLK_OP_WRITE, requests);
	answer_two(side, requests, reads ? 512 : 0, fault);
	if (fault)
		KUNIT_EXPECT_TRUE_MSG(test,
				      kd_wait_state(side->ep,
						    DAT_EP_STATE_DISCONNECTED),
				      "fault %d", fault);
	flush_work(&ini_command_work);
	KUNIT_EXPECT_EQ_MSG(test, !ini_status, !fault, "fault %d", fault);
	expect_removable(test);
	kd_close(side);
}

/* Several replies in a message. */
static void ini_batch(struct kunit *test)
{
	one_batch(test, false, NO_FAULT);
	one_batch(test, true, NO_FAULT);
}

static void ini_bad_batch(struct kunit *test)
{
	enum fault fault;

	for (fault = NO_FAULT + 1; fault < DATA_SHORT; fault++)
		one_batch(test, false, fault);
	for (fault = NO_FAULT + 1; fault < FAULTS; fault++)
		if (fault != TOO_MANY && fault != WITH_DATA)
			one_batch(test, true, fault);
}

/* The reply to a request whose memory was shared has a message of its own. */
static void ini_batch_with_memory(struct kunit *test)
{
	struct kblk_welcome welcome = good_welcome();
	const struct kblk_request *requests[2];
	struct kblk_reply *reply;
	struct kd_side *side;

	welcome.features = cpu_to_le32(KBLK_FEATURE_BATCH);
	side = serve_disk(test, &welcome, NULL);
	next_two(side, READ_BOTH, KBLK_OP_READ, requests);
	if (!requests[0]->rmr_context)
		swap(requests[0], requests[1]);
	KUNIT_EXPECT_NE(test, le32_to_cpu(requests[0]->rmr_context), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(requests[1]->rmr_context), 0);
	reply = side->buf->va + REPLY_AT;
	reply[0] = good_reply(requests[0], 0);
	reply[1] = good_reply(requests[1], 512);
	kd_send(side, REPLY_AT, 2 * sizeof(*reply) + 512, 2);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep,
					      DAT_EP_STATE_DISCONNECTED));
	flush_work(&ini_command_work);
	KUNIT_EXPECT_NE(test, ini_status, 0);
	expect_removable(test);
}

/*
 * What the block layer has at hand goes in one message, if that is agreed on, and
 * nothing of it is left behind.
 */
static void ini_requests_together(struct kunit *test)
{
	struct kblk_identify identify = good_identify();
	struct kblk_welcome welcome = good_welcome();
	struct kd_side *side;
	int i, n;

	identify.flags = 0;
	for (i = 0; i < 2; i++) {
		if (i)
			welcome.features = cpu_to_le32(KBLK_FEATURE_REQUESTS);
		side = serve_disk(test, &welcome, &identify);
		/* Those that have brought ATTACH and IDENTIFY. */
		for (n = 0; n < 2; n++)
			kd_recv(side, REQUEST_AT + n * REQUEST_SIZE,
				REQUEST_SIZE, n);
		most_requests = 0;
		KUNIT_EXPECT_GT(test, serve_command(side, READ_AHEAD,
						    KBLK_OP_READ), 1);
		KUNIT_EXPECT_EQ(test, ini_status, 0);
		if (i)
			KUNIT_EXPECT_GT(test, most_requests, 1);
		else
			KUNIT_EXPECT_EQ(test, most_requests, 1);
		/*
		 * The last of these carries its data, the one before does not. That
		 * may have to wait for its slot's memory, and then comes alone.
		 */
		most_requests = 0;
		for (n = 0; n < 20 && most_requests < 2; n++) {
			KUNIT_EXPECT_EQ(test, serve_command(side, WRITE_BEHIND,
							    KBLK_OP_WRITE), 2);
			KUNIT_EXPECT_EQ(test, ini_status, 0);
		}
		/* With several CPUs the block layer may always have one at hand. */
		if (!i || num_online_cpus() == 1)
			KUNIT_EXPECT_EQ(test, most_requests, i ? 2 : 1);
		expect_removable(test);
		kd_close(side);
	}
}

static bool ini_is_connected(void *unused)
{
	return !shell("grep -qx connected " INI_DISK "/state");
}

/*
 * A target that was started anew has forgotten what was not flushed: then there is
 * no flush that succeeds. One that has only been away gets it.
 */
static void ini_started_anew(struct kunit *test)
{
	struct kblk_identify identify = good_identify();
	struct kd_side *side;
	u64 instance;

	identify.flags = cpu_to_le32(KBLK_VOLUME_CACHE);
	side = serve_disk(test, NULL, &identify);
	KUNIT_EXPECT_EQ(test, serve_command(side, FLUSH_IT, KBLK_OP_FLUSH), 1);
	for (instance = 0; instance < 2; instance++) {
		KUNIT_EXPECT_EQ(test, serve_command(side, WRITE_ONE,
						    KBLK_OP_WRITE), 1);
		KUNIT_EXPECT_EQ(test, ini_status, 0);
		kd_close(side);
		identify.instance = cpu_to_le64(instance);
		side = serve_again(test, &identify);
		KUNIT_EXPECT_TRUE(test, kd_wait_until(ini_is_connected, NULL,
						      KD_TIMEOUT_MS));
		KUNIT_EXPECT_EQ(test, serve_command(side, FLUSH_IT,
						    KBLK_OP_FLUSH), !instance);
		KUNIT_EXPECT_EQ(test, !ini_status, !instance);
	}
	expect_removable(test);
}

/* On a bad wire a request outlives more connections than one that is to blame. */
static void ini_bad_wire(struct kunit *test)
{
	struct kd_side *side;
	int i;

	ini_give_up = "600000";
	side = serve_disk(test, NULL, NULL);
	kd_close(side);
	start_command(READ_ONE);
	for (i = 0; i < 12; i++) {
		side = serve_again(test, NULL);
		expect_request(side, 2, KBLK_OP_READ);
		kd_close(side);
	}
	side = serve_again(test, NULL);
	KUNIT_EXPECT_EQ(test, serve(side, KBLK_OP_READ), 1);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	expect_removable(test);
}

/* The device; calls that might have waited for I/O, but those of the case. */
static struct kd_hook device;
static const struct task_struct *target;
static atomic_t with_io, made;

static void watch(void)
{
	if (current != target && !(current->flags & PF_MEMALLOC_NOIO))
		atomic_inc(&with_io);
}

static int watch_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr,
			   struct ib_udata *udata)
{
	watch();
	/* That of an Endpoint; the case makes its own itself. */
	if (attr->qp_context && current != target)
		atomic_inc(&made);
	return device.real.create_qp(qp, attr, udata);
}

static int watch_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			   struct ib_udata *udata)
{
	/* Some are rdma_cm's, which does so without being asked. */
	if (qp->qp_context)
		watch();
	return device.real.modify_qp(qp, attr, mask, udata);
}

static int watch_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	watch();
	return device.real.destroy_cq(cq, udata);
}

static int watch_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	watch();
	return device.real.alloc_pd(pd, udata);
}

static int watch_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	watch();
	return device.real.dereg_mr(mr, udata);
}

/* What waits for memory then may wait for this very disk. */
static void ini_recovers_without_io(struct kunit *test)
{
	struct kd_side *side = serve_disk(test, NULL, NULL);
	struct ib_device *dev = kd_hook(test, side->name, &device);

	target = current;
	atomic_set(&with_io, 0);
	atomic_set(&made, 0);
	dev->ops.create_qp = watch_create_qp;
	dev->ops.modify_qp = watch_modify_qp;
	dev->ops.destroy_cq = watch_destroy_cq;
	dev->ops.alloc_pd = watch_alloc_pd;
	dev->ops.dereg_mr = watch_dereg_mr;
	kd_close(side);
	side = serve_again(test, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(ini_is_connected, NULL,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_GE(test, atomic_read(&made), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&with_io), 0);
	expect_removable(test);
}

static void serve_exit(struct kunit *test)
{
	flush_work(&ini_command_work);
	ini_unload(test);
}

static struct kunit_case serve_cases[] = {
	KUNIT_CASE_PARAM(ini_large_transfers, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_invalidation, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_batch, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_batch, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_batch_with_memory, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_requests_together, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_started_anew, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_wire, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_recovers_without_io, kd_gen_ia),
	{}
};

static struct kunit_suite serve_suite = {
	.name = "kdapl-blk-serve",
	.test_cases = serve_cases,
	.exit = serve_exit,
};

kunit_test_suite(serve_suite);

MODULE_DESCRIPTION("KUnit suite: the block device initiator and its disk");
MODULE_LICENSE("Dual BSD/GPL");
