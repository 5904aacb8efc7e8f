// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: what volumes and clients share. Nobody who has not done anything
 * wrong waits for another volume, or for a client that takes its time.
 */
#include <linux/delay.h>
#include "blk_backing.h"
#include "blk_target.h"
#include "device.h"

#define ROUNDS		20
#define STALLED		4	/* clients of a volume that stands still */
#define SLOW_VOLUME	"/sys/kernel/config/kdapl_blk_tgt/subsystems/vol/namespaces/2"

static bool buffers_are_free(void *unused)
{
	return !shell("set -e; set -- pages buffers;"
		      "for what; do grep -Eq \"^$what +([0-9]+), \\\\1 free\" "
		      TGT_STATS "; done");
}

static void expect_free_buffers(struct kunit *test)
{
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(buffers_are_free, NULL,
						  KD_TIMEOUT_MS),
			      "the target keeps a page or a buffer");
}

/* Send a request for block @n of the volume; its number comes back. */
static void send_read(struct kd_side *side, u64 n, u8 flags)
{
	struct kblk_request request = kdb_good_request(side);

	request.flags = flags;
	request.id = cpu_to_le64(n);
	request.offset = cpu_to_le64(n * 4096);
	memcpy(side->buf->va + REQUEST_AT, &request, sizeof(request));
	kd_send(side, REQUEST_AT, sizeof(request), 2);
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

static void take_replies(struct kd_side *side, int n)
{
	while (n--) {
		kd_expect_dto(side->test, side->recv_evd, 1, DAT_DTO_SUCCESS,
			      NULL);
		kdb_post_reply_buffer(side);
	}
}

/*
 * Load the target with a volume in memory that can be made to stand still; it begins
 * as kdb_expect_serving() wants it.
 */
static struct backing *load_with_backing(struct kunit *test, const char *more)
{
	struct backing *backing = kdb_backing_make(test, 1);

	kd_fill(backing->data, SZ_64K, FILE_SEED);
	tgt_load_with(test, more);
	KUNIT_ASSERT_EQ(test, 0, shell("set -e; cd " TGT_NS "; echo 0 >enable;"
				       "echo " BACKING_1 " >path;"
				       "echo 1 >enable"));
	return backing;
}

/*
 * More requests than there are pages, while the medium stands still: when it goes on,
 * each waits for the page of the one before it. A page that goes to a slot which nobody
 * looks at is lost, so all have to be back after each round.
 */
static void blk_pages_in_turn(struct kunit *test)
{
	struct kd_side *side, *other;
	struct backing *backing;
	int i, n;

	backing = load_with_backing(test, "echo 1 >pages; echo 1 >buffers");
	side = kdb_connected_client(test);
	other = kdb_connected_client(test);
	for (i = 1; i < TGT_CREDITS; i++) {
		kdb_post_reply_buffer(side);
		kdb_post_reply_buffer(other);
	}
	for (n = 0; n < ROUNDS; n++) {
		kdb_backing_hold(backing, true);
		for (i = 0; i < TGT_CREDITS; i++) {
			send_read(side, i, i % 3 ? KBLK_INLINED : 0);
			send_read(other, i, KBLK_INLINED);
		}
		kdb_backing_hold(backing, false);
		take_replies(side, TGT_CREDITS);
		take_replies(other, TGT_CREDITS);
		expect_free_buffers(test);
	}
	kdb_expect_serving(test);
}

static void slow_volume_remove(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, 0, shell("rmdir " SLOW_VOLUME));
}

/*
 * Load the target with a second volume, in memory that can be made to stand still.
 * @more: as for tgt_load_with()
 */
static struct backing *slow_volume(struct kunit *test, const char *more)
{
	struct backing *backing = kdb_backing_make(test, 0);

	tgt_load_with(test, more);
	KUNIT_ASSERT_EQ(test, 0, shell("set -e; mkdir " SLOW_VOLUME "; cd "
				       SLOW_VOLUME "; echo " BACKING_0
				       " >path; echo 1 >enable"));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test,
							   slow_volume_remove,
							   test));
	return backing;
}

static struct kd_side *slow_client(struct kunit *test, u32 keepalive_ms)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kd_side *side = kdb_welcome_client(test, &hello);
	int i;

	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "slow", "vol", 2, keepalive_ms),
			KBLK_OK);
	for (i = 1; i < TGT_CREDITS; i++)
		kdb_post_reply_buffer(side);
	return side;
}

static bool is_connected(struct kd_side *side)
{
	DAT_EP_STATE state;

	return dat_ep_get_status(side->ep, &state, NULL, NULL) == DAT_SUCCESS &&
	       state == DAT_EP_STATE_CONNECTED;
}

static bool all_are_held(void *data)
{
	struct backing *backing = data;

	return atomic_read(&backing->nheld) >= 2;
}

static bool three_are_held(void *data)
{
	struct backing *backing = data;

	return atomic_read(&backing->nheld) >= 3;
}

/*
 * The clients of a volume that stands still want the one page and the one buffer there
 * are, and those that came with the other volume. Others have theirs served.
 */
static void blk_volume_stands_still(struct kunit *test)
{
	struct kd_side *slow[STALLED], *side;
	struct kblk_request request;
	struct backing *backing;
	int i, n;

	backing = slow_volume(test, "echo 1 >pages; echo 1 >buffers");
	for (i = 0; i < STALLED; i++)
		slow[i] = slow_client(test, 0);
	kdb_backing_hold(backing, true);
	for (i = 0; i < STALLED; i++)
		for (n = 0; n < TGT_CREDITS; n++)
			send_read(slow[i], n, n % 2 ? KBLK_INLINED : 0);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(all_are_held, backing,
					      KD_TIMEOUT_MS));
	/* Who comes now is served as well. */
	side = kdb_connected_client(test);
	request = kdb_good_request(side);
	for (n = 0; n < 20; n++) {
		request.flags ^= KBLK_INLINED;
		KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	}
	request.flags = 0;
	request.length = 0;
	request.opcode = KBLK_OP_KEEPALIVE;
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	kdb_backing_hold(backing, false);
	for (i = 0; i < STALLED; i++) {
		take_replies(slow[i], TGT_CREDITS);
		kd_close(slow[i]);
	}
	kd_close(side);
	expect_free_buffers(test);
	kdb_expect_serving(test);
}

struct held {
	struct backing *backing;
	sector_t from;
	unsigned int n;
};

static bool as_many_are_held(void *data)
{
	struct held *held = data;

	return kdb_backing_held_from(held->backing, held->from) >= held->n;
}

static void expect_held(struct kunit *test, struct backing *backing, sector_t from,
			unsigned int n)
{
	struct held held = { backing, from, n };

	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(as_many_are_held, &held,
						  KD_TIMEOUT_MS),
			      "%u of %u pages",
			      kdb_backing_held_from(backing, from), n);
}

static void send_reads(struct kd_side *side, u64 first)
{
	int i;

	for (i = 0; i < TGT_CREDITS; i++)
		send_read(side, first + i, KBLK_INLINED);
}

/*
 * Two volumes stand still, one after the other. The first, which wants all ten pages
 * there are, holds at most twice what it leaves: six. So three are left for the other
 * when it holds as many as it leaves, and one more.
 */
static void blk_share_of_a_volume(struct kunit *test)
{
	struct backing *slow, *other = kdb_backing_make(test, 1);
	struct kd_side *first[2], *side;
	int i;

	slow = slow_volume(test, "echo 8 >io_depth; echo 9 >pages");
	KUNIT_ASSERT_EQ(test, 0, shell("set -e; cd " TGT_NS "; echo 0 >enable;"
				       "echo " BACKING_1 " >path;"
				       "echo 1 >enable"));
	for (i = 0; i < ARRAY_SIZE(first); i++)
		first[i] = slow_client(test, 0);
	side = kdb_connected_client(test);
	for (i = 1; i < TGT_CREDITS; i++)
		kdb_post_reply_buffer(side);
	kdb_backing_hold(slow, true);
	kdb_backing_hold(other, true);
	for (i = 0; i < ARRAY_SIZE(first); i++)
		send_reads(first[i], 0);
	expect_held(test, slow, 0, 6);
	send_reads(side, 0);
	expect_held(test, other, 0, 3);
	kdb_backing_hold(slow, false);
	kdb_backing_hold(other, false);
	for (i = 0; i < ARRAY_SIZE(first); i++)
		take_replies(first[i], TGT_CREDITS);
	take_replies(side, TGT_CREDITS);
	expect_free_buffers(test);
}

/* The same of two clients of one volume: the first holds six of eight pages. */
static void blk_share_of_a_client(struct kunit *test)
{
	struct backing *backing;
	struct kd_side *side[2];
	int i;

	backing = load_with_backing(test, "echo 8 >io_depth; echo 8 >pages");
	for (i = 0; i < ARRAY_SIZE(side); i++)
		side[i] = kdb_connected_client(test);
	kdb_backing_hold(backing, true);
	for (i = 1; i < TGT_CREDITS; i++) {
		kdb_post_reply_buffer(side[0]);
		kdb_post_reply_buffer(side[1]);
	}
	send_reads(side[0], 0);
	expect_held(test, backing, 0, 6);
	send_reads(side[1], TGT_CREDITS);
	expect_held(test, backing, TGT_CREDITS * (SZ_4K >> SECTOR_SHIFT), 2);
	kdb_backing_hold(backing, false);
	for (i = 0; i < ARRAY_SIZE(side); i++)
		take_replies(side[i], TGT_CREDITS);
	expect_free_buffers(test);
	kdb_expect_serving(test);
}

/* What needs no data needs no page: it is answered while all of them are taken. */
static void blk_no_page_for_words(struct kunit *test)
{
	struct kblk_request request;
	struct backing *backing;
	struct kd_side *side[3];
	int i;

	backing = slow_volume(test, "true");
	for (i = 0; i < 3; i++)
		side[i] = slow_client(test, 0);
	kdb_backing_hold(backing, true);
	for (i = 0; i < 2; i++) {
		send_read(side[i], 0, KBLK_INLINED);
		send_read(side[i], 1, KBLK_INLINED);
	}
	KUNIT_EXPECT_TRUE(test, kd_wait_until(all_are_held, backing,
					      KD_TIMEOUT_MS));
	request = kdb_good_request(side[2]);
	request.flags = 0;
	request.length = 0;
	request.opcode = KBLK_OP_KEEPALIVE;
	KUNIT_EXPECT_EQ(test, kdb_ask(side[2], &request), KBLK_OK);
	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(sizeof(struct kblk_identify));
	request.opcode = KBLK_OP_IDENTIFY;
	KUNIT_EXPECT_EQ(test, kdb_ask(side[2], &request), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_ask(side[2], &request), KBLK_OK);
	/* That the medium keeps this one shows that it waits for no page. */
	request.flags = 0;
	request.length = 0;
	request.opcode = KBLK_OP_FLUSH;
	kdb_send_request(side[2], &request, sizeof(request));
	kd_expect_dto(test, side[2]->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(three_are_held, backing,
					      KD_TIMEOUT_MS));
	kdb_backing_hold(backing, false);
	take_replies(side[2], 1);
	for (i = 0; i < 2; i++)
		take_replies(side[i], 2);
	for (i = 0; i < 3; i++)
		kd_close(side[i]);
	expect_free_buffers(test);
}

/*
 * A medium keeps two writes, one in its receive buffer and one in the only page.
 * The next waits for a page by itself: what is behind it is answered.
 */
static void blk_write_waits_alone(struct kunit *test)
{
	struct kblk_request request;
	struct backing *backing;
	struct kd_side *side;
	int i;

	backing = slow_volume(test, "echo 4 >io_depth; echo 1 >pages");
	side = slow_client(test, 0);
	kdb_backing_hold(backing, true);
	request = kdb_good_request(side);
	request.opcode = KBLK_OP_WRITE;
	request.flags = KBLK_INLINED;
	for (i = 0; i < 3; i++) {
		request.offset = cpu_to_le64(i * 4096);
		memset(side->buf->va + REQUEST_AT + sizeof(request), 'a' + i,
		       4096);
		kdb_send_request(side, &request, sizeof(request) + 4096);
		kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	}
	request.offset = 0;
	request.flags = 0;
	request.length = 0;
	request.opcode = KBLK_OP_KEEPALIVE;
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(all_are_held, backing,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, atomic_read(&backing->nheld), 2);
	kdb_backing_hold(backing, false);
	take_replies(side, 3);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_NULL(test, memchr_inv(backing->data + i * 4096,
						   'a' + i, 4096));
	kd_close(side);
	expect_free_buffers(test);
	kdb_expect_serving(test);
}

/* It keeps its promise to speak, though what it says has to wait. */
static void blk_heard_while_waiting(struct kunit *test)
{
	struct kblk_request request;
	struct backing *backing;
	struct kd_side *side;
	int i;

	backing = slow_volume(test, "true");
	side = slow_client(test, 1400);
	kdb_backing_hold(backing, true);
	send_read(side, 0, KBLK_INLINED);
	send_read(side, 1, KBLK_INLINED);
	request = kdb_good_request(side);
	request.opcode = KBLK_OP_KEEPALIVE;
	request.flags = 0;
	request.length = 0;
	for (i = 0; i < TGT_CREDITS - 2; i++) {
		/*
		 * It may be silent for 4200 ms, and all that follow the first,
		 * which waits for a slot, take longer.
		 */
		msleep(900);
		kdb_send_request(side, &request, sizeof(request));
		kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	}
	/* It has no credit left, so it cannot say more. */
	msleep(5000);
	KUNIT_EXPECT_TRUE_MSG(test, is_connected(side),
			      "who waits is taken for silent");
	kdb_backing_hold(backing, false);
	take_replies(side, TGT_CREDITS);
	/* Now it could. */
	kdb_expect_end(side);
}

/*
 * A client leaves while the medium keeps its request. Meanwhile the target ends the
 * connections of others, and finds those that are silent.
 */
static void blk_ends_others_meanwhile(struct kunit *test)
{
	struct kblk_hello hello;
	struct backing *backing;
	struct kd_side *side;

	backing = slow_volume(test, "true");
	side = slow_client(test, 0);
	kdb_backing_hold(backing, true);
	send_read(side, 0, KBLK_INLINED);
	expect_held(test, backing, 0, 1);
	kd_close(side);
	hello = kdb_good_hello();
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vol", 1, 1000),
			KBLK_OK);
	kdb_expect_end(side);
	kdb_expect_serving(test);
	kdb_backing_hold(backing, false);
	expect_free_buffers(test);
}

/* One reply now and then is not enough; over iWARP a reply would find no receive. */
static void blk_takes_replies_slowly(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kd_side *side;
	int i;

	tgt_load_with(test, "echo 3000 >reply_ms; echo 8 >io_depth;"
			    " echo 8 >pages");
	side = kdb_welcome_client(test, &hello);
	if (kd_is_iwarp(side))
		kunit_skip(test, "iWARP");
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vol", 1, 0),
			KBLK_OK);
	for (i = 0; i < TGT_CREDITS; i++)
		send_read(side, i, KBLK_INLINED);
	for (i = 0; i < TGT_CREDITS; i++) {
		msleep(700);
		if (!is_connected(side))
			break;
		kdb_post_reply_buffer(side);
	}
	KUNIT_EXPECT_FALSE_MSG(test, is_connected(side),
			       "%d replies are taken slowly", i);
	kdb_expect_serving(test);
}

/*
 * struct unanswered - an RDMA Read that the peer does not answer
 * @device: the device, which does not get the Read
 * @lock: guards @qp
 * @qp: the QP that it is for; NULL before, and when the QP is destroyed
 * @kept: there was such a Read
 * @wr: the Read
 * @sge: its sink
 */
static struct unanswered {
	struct kd_hook device;
	spinlock_t lock;		/* see above */
	struct ib_qp *qp;
	bool kept;
	struct ib_rdma_wr wr;
	struct ib_sge sge;
} unanswered;

static bool is_read(const struct ib_send_wr *wr)
{
	return wr->opcode == IB_WR_RDMA_READ ||
	       wr->opcode == IB_WR_RDMA_READ_WITH_INV;
}

static void set_unanswered(struct ib_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&unanswered.lock, flags);
	unanswered.qp = qp;
	spin_unlock_irqrestore(&unanswered.lock, flags);
}

/* Keep the first RDMA Read back, which ends the requests that it is posted with. */
static int post_but_read(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	struct ib_send_wr *read = (struct ib_send_wr *)wr, *before = NULL;
	int ret = 0;

	while (read && !is_read(read)) {
		before = read;
		read = read->next;
	}
	if (!read || unanswered.kept)
		return unanswered.device.real.post_send(qp, wr, bad);
	unanswered.kept = true;
	unanswered.wr = *container_of(read, struct ib_rdma_wr, wr);
	unanswered.sge = *read->sg_list;
	unanswered.wr.wr.sg_list = &unanswered.sge;
	if (before) {
		before->next = NULL;
		ret = unanswered.device.real.post_send(qp, wr, bad);
		before->next = read;
	}
	set_unanswered(qp);
	return ret;
}

static int destroy_unanswered(struct ib_qp *qp, struct ib_udata *udata)
{
	if (READ_ONCE(unanswered.qp) == qp)
		set_unanswered(NULL);
	return unanswered.device.real.destroy_qp(qp, udata);
}

/* If the connection is still there, let it end as others do. */
static void answer_read(void *unused)
{
	const struct ib_send_wr *bad;
	unsigned long flags;

	spin_lock_irqsave(&unanswered.lock, flags);
	if (unanswered.qp)
		unanswered.device.real.post_send(unanswered.qp,
						 &unanswered.wr.wr, &bad);
	spin_unlock_irqrestore(&unanswered.lock, flags);
}

/* A client that does not let its data be fetched does not keep a buffer for it. */
static void blk_data_not_given(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	struct ib_device *dev;

	tgt_load_with(test, "echo 3000 >reply_ms");
	side = kdb_connected_client(test);
	memset(&unanswered, 0, sizeof(unanswered));
	spin_lock_init(&unanswered.lock);
	dev = kd_hook(test, side->name, &unanswered.device);
	dev->ops.post_send = post_but_read;
	dev->ops.destroy_qp = destroy_unanswered;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, answer_read,
							   NULL));
	request = kdb_good_request(side);
	request.opcode = KBLK_OP_WRITE;
	request.offset = cpu_to_le64(SZ_512K);
	kdb_send_request(side, &request, sizeof(request));
	kdb_expect_end(side);
	KUNIT_EXPECT_TRUE(test, unanswered.kept);
	kunit_release_action(test, answer_read, NULL);
	kd_close(side);
	expect_free_buffers(test);
	kdb_expect_serving(test);
}

static struct kunit_case share_cases[] = {
	KUNIT_CASE_PARAM(blk_pages_in_turn, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_volume_stands_still, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_share_of_a_volume, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_share_of_a_client, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_no_page_for_words, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_write_waits_alone, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_heard_while_waiting, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_ends_others_meanwhile, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_takes_replies_slowly, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_data_not_given, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-share", share_cases,
	 "volumes and clients of the block device target");
