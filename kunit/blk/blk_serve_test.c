// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko while its disk is used: large transfers, memory that is taken
 * back, targets that are restarted, connections that break. Targets that it
 * does not get a disk from are in blk_initiator_test.c.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include "blk_serve.h"
#include "device.h"

#define READ_OFTEN	"for i in 1 2 3 4 5 6 7 8; do " READ_MUCH " || exit; done"

/* ---- Cases --------------------------------------------------------------- */

/*
 * The target allows longer transfers than the adapter can register, and leaves
 * it to the initiator to invalidate its memory.
 */
static void ini_large_transfers(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_good_welcome();
	struct kd_side *side;
	int i;

	welcome.max_transfer = cpu_to_le32(SZ_2G);
	side = kdb_serve_disk(test, &welcome, NULL);
	/* Every region is unbound, so each can be used again. */
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_NE(test, kdb_serve_command(side, READ_ALL,
							KBLK_OP_READ), 0);
		KUNIT_EXPECT_EQ(test, ini_status, 0);
	}
	kdb_expect_removable(test);
}

/* A reply that does not invalidate the memory, or invalidates other memory. */
static void ini_bad_invalidation(struct kunit *test)
{
	struct kblk_welcome welcome = kdb_good_welcome();
	const struct kblk_request *request;
	struct kblk_reply reply;
	struct kd_side *side;
	DAT_LMR_TRIPLET seg;
	DAT_RETURN ret;
	u32 key;
	int i;

	welcome.features = cpu_to_le32(KBLK_FEATURE_INVALIDATE);
	for (i = 0; i < 2; i++) {
		side = kdb_serve_disk(test, &welcome, NULL);
		request = kdb_begin_command(side, READ_MUCH);
		key = le32_to_cpu(request->rmr_context);
		KUNIT_EXPECT_NE(test, key, 0);
		reply = kdb_good_reply(request, 0);
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
		kdb_wait_command();
		KUNIT_EXPECT_NE(test, ini_status, 0);
		kdb_expect_removable(test);
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
	/* These faults need two READs. */
	DATA_SHORT,
	DATA_LONG,
	DATA_CUT,
	FAULTS
};

/* Answer two requests in one message, with @data bytes each. */
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
			kdb_good_reply(requests[i], data);
		memset(to + i * part + sizeof(struct kblk_reply), 'a' + i,
		       data);
	}
	if (fault == SAME_ID)
		second->id = requests[0]->id;
	if (fault == PARTIAL)
		len -= 8;
	if (fault == TOO_MANY) {
		for (i = 2; i <= KBLK_BATCH_MAX; i++)
			second[i - 1] = kdb_good_reply(requests[i % 2], 0);
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

/* Wait for two requests, to the first and to the second page, and sort them. */
static void next_two(struct kd_side *side, char *command, u8 opcode,
		     const struct kblk_request **requests)
{
	int i;

	requests[0] = kdb_begin_command(side, command);
	requests[1] = kdb_next_request(side);
	if (requests[0]->offset)
		swap(requests[0], requests[1]);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(side->test, requests[i]->opcode, opcode);
}

static void one_batch(struct kunit *test, bool reads, enum fault fault)
{
	struct kblk_identify identify = kdb_good_identify();
	struct kblk_welcome welcome = kdb_good_welcome();
	const struct kblk_request *requests[2];
	struct kd_side *side;

	identify.flags = 0;
	if (fault != NOT_AGREED)
		welcome.features = cpu_to_le32(KBLK_FEATURE_BATCH);
	side = kdb_serve_disk(test, &welcome, &identify);
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
	kdb_wait_command();
	KUNIT_EXPECT_EQ_MSG(test, !ini_status, !fault, "fault %d", fault);
	kdb_expect_removable(test);
	kd_close(side);
}

/* Several replies share a message. */
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
	struct kblk_welcome welcome = kdb_good_welcome();
	const struct kblk_request *requests[2];
	struct kblk_reply *reply;
	struct kd_side *side;

	welcome.features = cpu_to_le32(KBLK_FEATURE_BATCH);
	side = kdb_serve_disk(test, &welcome, NULL);
	next_two(side, READ_BOTH, KBLK_OP_READ, requests);
	if (!requests[0]->rmr_context)
		swap(requests[0], requests[1]);
	KUNIT_EXPECT_NE(test, le32_to_cpu(requests[0]->rmr_context), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(requests[1]->rmr_context), 0);
	reply = side->buf->va + REPLY_AT;
	reply[0] = kdb_good_reply(requests[0], 0);
	reply[1] = kdb_good_reply(requests[1], 512);
	kd_send(side, REPLY_AT, 2 * sizeof(*reply) + 512, 2);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep,
					      DAT_EP_STATE_DISCONNECTED));
	kdb_wait_command();
	KUNIT_EXPECT_NE(test, ini_status, 0);
	kdb_expect_removable(test);
}

/*
 * Requests that the block layer has at the same time share a message, if both
 * sides agreed on that, and none is left over.
 */
static void ini_requests_together(struct kunit *test)
{
	struct kblk_identify identify = kdb_good_identify();
	struct kblk_welcome welcome = kdb_good_welcome();
	struct kd_side *side;
	int i, n;

	identify.flags = 0;
	for (i = 0; i < 2; i++) {
		if (i)
			welcome.features = cpu_to_le32(KBLK_FEATURE_REQUESTS);
		side = kdb_serve_disk(test, &welcome, &identify);
		/* The first two receives were those of ATTACH and IDENTIFY. */
		for (n = 0; n < 2; n++)
			kd_recv(side, REQUEST_AT + n * REQUEST_SIZE,
				REQUEST_SIZE, n);
		kdb_most_requests = 0;
		KUNIT_EXPECT_GT(test, kdb_serve_command(side, READ_AHEAD,
							KBLK_OP_READ), 1);
		KUNIT_EXPECT_EQ(test, ini_status, 0);
		if (i)
			KUNIT_EXPECT_GT(test, kdb_most_requests, 1);
		else
			KUNIT_EXPECT_EQ(test, kdb_most_requests, 1);
		/*
		 * The last of these requests carries its data, the one before
		 * does not. That one may have to wait for the memory of its
		 * slot, and then has a message of its own.
		 */
		kdb_most_requests = 0;
		for (n = 0; n < 20 && kdb_most_requests < 2; n++) {
			KUNIT_EXPECT_EQ(test, kdb_serve_command(side, WRITE_BEHIND,
								KBLK_OP_WRITE), 2);
			KUNIT_EXPECT_EQ(test, ini_status, 0);
		}
		/*
		 * With several CPUs the block layer may have one request at a
		 * time.
		 */
		if (!i || num_online_cpus() == 1)
			KUNIT_EXPECT_EQ(test, kdb_most_requests, i ? 2 : 1);
		kdb_expect_removable(test);
		kd_close(side);
	}
}

/*
 * A target that was restarted has lost writes that were not flushed, so the
 * next flush must fail. A target that was only unreachable gets the flush.
 */
static void ini_started_anew(struct kunit *test)
{
	struct kblk_identify identify = kdb_good_identify();
	struct kd_side *side;
	u64 instance;

	identify.flags = cpu_to_le32(KBLK_VOLUME_CACHE);
	side = kdb_serve_disk(test, NULL, &identify);
	KUNIT_EXPECT_EQ(test, kdb_serve_command(side, FLUSH_IT, KBLK_OP_FLUSH), 1);
	for (instance = 0; instance < 2; instance++) {
		KUNIT_EXPECT_EQ(test, kdb_serve_command(side, WRITE_ONE,
							KBLK_OP_WRITE), 1);
		KUNIT_EXPECT_EQ(test, ini_status, 0);
		kd_close(side);
		identify.instance = cpu_to_le64(instance);
		side = kdb_serve_again(test, &identify);
		KUNIT_EXPECT_TRUE(test, kd_wait_until(ini_is_connected, NULL,
						      KD_TIMEOUT_MS));
		KUNIT_EXPECT_EQ(test, kdb_serve_command(side, FLUSH_IT,
							KBLK_OP_FLUSH), !instance);
		KUNIT_EXPECT_EQ(test, !ini_status, !instance);
	}
	kdb_expect_removable(test);
}

/*
 * On a bad wire a request is tried on more connections than a request that
 * seems to break them.
 */
static void ini_bad_wire(struct kunit *test)
{
	struct kd_side *side;
	int i;

	ini_attrs.give_up_ms = "600000";
	side = kdb_serve_disk(test, NULL, NULL);
	kd_close(side);
	kdb_start_command(READ_ONE);
	for (i = 0; i < 12; i++) {
		side = kdb_serve_again(test, NULL);
		kdb_expect_request(side, 2, KBLK_OP_READ);
		kd_close(side);
	}
	side = kdb_serve_again(test, NULL);
	KUNIT_EXPECT_EQ(test, kdb_serve(side, KBLK_OP_READ), 1);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	kdb_expect_removable(test);
}

/* Answer @request; the connection may be lost. Return whether the answer arrived. */
static bool answered(struct kd_side *side, const struct kblk_request *request)
{
	struct kblk_reply reply = kdb_good_reply(request, 0);
	DAT_LMR_TRIPLET seg = kd_seg(side->buf, REPLY_AT, sizeof(reply));
	DAT_EVENT event;

	memcpy(side->buf->va + REPLY_AT, &reply, sizeof(reply));
	return dat_ep_post_send(side->ep, 1, &seg, kd_cookie(2),
				DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS &&
	       kd_wait_event(side->req_evd, &event, KD_TIMEOUT_MS) &&
	       event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS;
}

/* Copy the next request to @request. Return false if the connection was lost. */
static bool next_request(struct kd_side *side, struct kblk_request *request)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE(side->test, kd_wait_event(side->recv_evd, &event, KD_TIMEOUT_MS));
	dto = &event.event_data.dto_completion_event_data;
	if (dto->status != DAT_DTO_SUCCESS)
		return false;
	*request = kdb_request_sent(side, dto);
	return true;
}

/*
 * Take messages until as many READs as the disk may have outstanding, and a
 * keep-alive, wait for their replies; store the READs in @reads. Return false
 * if the connection was lost before that: until the disk has a READ
 * outstanding, it gives a keep-alive no more than a period.
 */
static bool all_wait(struct kd_side *side, struct kblk_request *reads)
{
	struct kblk_request request;
	int i, n = 0;

	/* Those that have brought ATTACH and IDENTIFY. */
	for (i = 0; i < 2; i++)
		kd_recv(side, REQUEST_AT + i * REQUEST_SIZE, REQUEST_SIZE, i);
	while (next_request(side, &request)) {
		if (request.opcode == KBLK_OP_READ) {
			KUNIT_ASSERT_LT(side->test, n, INI_DEPTH - 1);
			reads[n++] = request;
			continue;
		}
		KUNIT_ASSERT_EQ(side->test, request.opcode, KBLK_OP_KEEPALIVE);
		if (n == INI_DEPTH - 1)
			return true;
		if (!answered(side, &request))
			break;
	}
	return false;
}

/*
 * A request and a keep-alive wait for a medium that takes its time. How long that may be
 * the timeout of requests says, not the period of keep-alives; nor do requests that use
 * up all the credits keep it from being sent.
 */
static void ini_keepalive_waits(struct kunit *test)
{
	struct kblk_request reads[INI_DEPTH - 1];
	struct kd_side *side;
	DAT_EP_STATE state;
	int i;

	ini_attrs.keepalive_ms = "500";
	ini_attrs.give_up_ms = "600000";
	side = kdb_serve_disk(test, NULL, NULL);
	kdb_start_command(READ_THREE);
	/* From the second connection on the disk has READs that it sends at once. */
	for (i = 0; !all_wait(side, reads); i++) {
		KUNIT_ASSERT_LT(test, i, 10);
		kd_close(side);
		side = kdb_serve_again(test, NULL);
	}
	/* Several periods. */
	msleep(1500);
	KD_EXPECT_OK(test, dat_ep_get_status(side->ep, &state, NULL, NULL));
	KUNIT_EXPECT_EQ(test, state, DAT_EP_STATE_CONNECTED);
	/* After the last of these nothing but the keep-alive waits: nobody is there. */
	for (i = 0; i < ARRAY_SIZE(reads); i++)
		if (!answered(side, &reads[i]))
			KUNIT_EXPECT_EQ(test, i, ARRAY_SIZE(reads) - 1);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep,
					      DAT_EP_STATE_DISCONNECTED));
	kdb_wait_command();
	kdb_expect_removable(test);
}

/* Copy the next READ to @read, as above. @alive: answer keep-alives that come before. */
static bool next_read(struct kd_side *side, struct kblk_request *read, bool alive)
{
	while (next_request(side, read)) {
		if (read->opcode != KBLK_OP_KEEPALIVE)
			return true;
		if (alive && !answered(side, read))
			break;
	}
	return false;
}

/*
 * The target answers each READ after a while, but never a keep-alive. It is not waited
 * for longer than for the requests that came before it, although others are outstanding
 * at any time.
 */
static void ini_keepalive_overdue(struct kunit *test)
{
	struct kblk_request read, next;
	struct kd_side *side;
	int i;

	ini_attrs.keepalive_ms = "500";
	ini_attrs.timeout_ms = "4000";
	side = kdb_welcome_one(test, true, NULL);
	kdb_attach(side);
	kdb_identify_as(side, NULL);
	for (i = 0; i < 2; i++)
		kd_recv(side, REQUEST_AT + i * REQUEST_SIZE, REQUEST_SIZE, i);
	kdb_serve(side, 0);
	KUNIT_ASSERT_EQ(test, 0, ini_error);
	kdb_start_command(READ_OFTEN "& " READ_OFTEN "; wait");
	/* Without a READ that waits the connection would be lost after a period. */
	KUNIT_ASSERT_TRUE(test, next_read(side, &read, true));
	for (i = 0; i < 14; i++) {
		if (!next_read(side, &next, false))
			break;
		/* Longer than the period, or nothing needs to be kept alive. */
		msleep(800);
		if (!answered(side, &read))
			break;
		read = next;
	}
	KUNIT_EXPECT_LT_MSG(test, i, 14, "no answer to the keep-alive is missed");
	kd_close(side);
	kdb_wait_command();
	kdb_expect_removable(test);
}

/*
 * A connection is lost between the reply to IDENTIFY and the disk's going live
 * on it. The disk notices, and comes again.
 */
static void ini_lost_before_live(struct kunit *test)
{
	struct kblk_identify identify = kdb_good_identify();
	struct kblk_reply reply;
	struct kd_side *side;
	int i;

	ini_attrs.give_up_ms = "600000";
	side = kdb_serve_disk(test, NULL, NULL);
	for (i = 0; i < 5; i++) {
		kd_close(side);
		side = kdb_welcome_one(test, false, NULL);
		kdb_attach(side);
		reply = kdb_good_reply(kdb_expect_request(side, 1, KBLK_OP_IDENTIFY),
				       sizeof(identify));
		kdb_answer(side, &reply, &identify, sizeof(reply) + sizeof(identify));
		/* Nonsense comes with it, before the waiting thread runs. */
		kd_send(side, REQUEST_AT + INI_DEPTH * REQUEST_SIZE,
			sizeof(reply), 3);
		KUNIT_EXPECT_TRUE_MSG(test,
				      kd_wait_state(side->ep,
						    DAT_EP_STATE_DISCONNECTED),
				      "live on a lost connection, round %d", i);
	}
	kd_close(side);
	side = kdb_serve_again(test, NULL);
	KUNIT_EXPECT_EQ(test, kdb_serve_command(side, READ_ONE, KBLK_OP_READ), 1);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	kdb_expect_removable(test);
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
	/*
	 * A QP with a context is that of an Endpoint; the case creates its own
	 * QPs in its own thread.
	 */
	if (attr->qp_context && current != target)
		atomic_inc(&made);
	return device.real.create_qp(qp, attr, udata);
}

static int watch_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			   struct ib_udata *udata)
{
	/* QPs without a context are rdma_cm's own. */
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

/*
 * While it recovers, an allocation that waits for I/O may wait for this very
 * disk.
 */
static void ini_recovers_without_io(struct kunit *test)
{
	struct kd_side *side = kdb_serve_disk(test, NULL, NULL);
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
	side = kdb_serve_again(test, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(ini_is_connected, NULL,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_GE(test, atomic_read(&made), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&with_io), 0);
	kdb_expect_removable(test);
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
	KUNIT_CASE_PARAM(ini_keepalive_waits, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_keepalive_overdue, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_lost_before_live, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-serve", serve_cases, "the block device initiator and its disk", KDB_SERVE);
