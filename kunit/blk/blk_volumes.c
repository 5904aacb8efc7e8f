// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_kunit.ko: kdapl_blk_tgt.ko loaded with three volumes of a subsystem,
 * see blk_volumes.h.
 */
#include <linux/module.h>
#include "blk_volumes.h"

struct backing *kdb_slow;
EXPORT_SYMBOL_GPL(kdb_slow);

struct backing *kdb_quick;
EXPORT_SYMBOL_GPL(kdb_quick);

static void volumes_remove(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, 0, shell("rmdir " VOLUME(2) " " VOLUME(3)));
}

/* Let all requests of the media pass. */
void kdb_release_volumes(void *unused)
{
	kdb_backing_hold(kdb_slow, false);
	kdb_backing_hold(kdb_quick, false);
}
EXPORT_SYMBOL_GPL(kdb_release_volumes);

/*
 * Load the target with three volumes; clients share connections. @more: as for
 * tgt_load_with()
 */
void kdb_load_volumes(struct kunit *test, const char *more)
{
	kdb_slow = kdb_backing_make(test, 0);
	kdb_quick = kdb_backing_make(test, 1);
	tgt_load_with(test, more);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, volumes_remove,
							   test));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, kdb_release_volumes,
						  NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("set -e; mkdir " VOLUME(2) " " VOLUME(3) ";"
				       "cd " VOLUME(2) "; echo " BACKING_0
				       " >path; echo 1 >enable;"
				       "cd " VOLUME(3) "; echo " BACKING_1
				       " >path; echo 1 >enable"));
	kdb_hello_features = SHARING;
	uuid_gen(&kdb_host);
}
EXPORT_SYMBOL_GPL(kdb_load_volumes);

struct kblk_request kdb_request_of(struct kd_side *side, u8 opcode, u32 nsid)
{
	struct kblk_request request = kdb_good_request(side);

	request.opcode = opcode;
	request.namespace = cpu_to_le32(nsid);
	if (opcode != KBLK_OP_READ && opcode != KBLK_OP_WRITE)
		request.length = 0;
	return request;
}
EXPORT_SYMBOL_GPL(kdb_request_of);

/* Return the request to write a page of @with to block @n; its data goes with it. */
struct kblk_request kdb_write_request(struct kd_side *side, u32 nsid, u64 n,
				      char with)
{
	struct kblk_request request = kdb_request_of(side, KBLK_OP_WRITE, nsid);

	request.flags = KBLK_INLINED;
	request.offset = cpu_to_le64(n * 4096);
	memset(side->buf->va + REQUEST_AT + sizeof(request), with, 4096);
	return request;
}
EXPORT_SYMBOL_GPL(kdb_write_request);

/* Clients that share nothing are served. */
void kdb_expect_serving_alone(struct kunit *test)
{
	kdb_hello_features = 0;
	kdb_host = uuid_null;
	kdb_expect_serving(test);
}
EXPORT_SYMBOL_GPL(kdb_expect_serving_alone);

/* ---- Clients -------------------------------------------------------------- */

u16 kdb_attach_volume(struct kd_side *side, u32 nsid)
{
	return kdb_attach_as(side, "somebody", "vol", nsid, 0);
}
EXPORT_SYMBOL_GPL(kdb_attach_volume);

struct attempt {
	struct kd_side *side;
	u32 nsid;
};

static bool is_attached(void *data)
{
	struct attempt *attempt = data;

	return kdb_attach_volume(attempt->side, attempt->nsid) == KBLK_OK;
}

void kdb_expect_attached(struct kd_side *side, u32 nsid)
{
	struct attempt attempt = { side, nsid };

	KUNIT_ASSERT_TRUE_MSG(side->test, kd_wait_until(is_attached, &attempt,
							KD_TIMEOUT_MS),
			      "volume %u cannot be attached", nsid);
}
EXPORT_SYMBOL_GPL(kdb_expect_attached);

/* Return a client that is attached to the volumes in memory. */
struct kd_side *kdb_shared_client(struct kunit *test,
				  const struct kblk_hello *hello)
{
	struct kd_side *side = kdb_welcome_client(test, hello);

	KUNIT_EXPECT_GE(test, kdb_credits, 2);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, QUICK), KBLK_OK);
	KUNIT_EXPECT_GE(test, kdb_credits, 3);
	return side;
}
EXPORT_SYMBOL_GPL(kdb_shared_client);

u16 kdb_ask_volume(struct kd_side *side, u8 opcode, u32 nsid)
{
	struct kblk_request request = kdb_request_of(side, opcode, nsid);

	return kdb_ask(side, &request);
}
EXPORT_SYMBOL_GPL(kdb_ask_volume);

/* Ask for all credits; a quarter of those that there may be is kept for more volumes. */
void kdb_get_credits(struct kd_side *side)
{
	struct kblk_request request = kdb_request_of(side, KBLK_OP_KEEPALIVE, 0);
	int i;

	request.flags = KBLK_WANTS;
	for (i = 0; i < 2 * SLOTS; i++)
		KUNIT_EXPECT_EQ(side->test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_ASSERT_EQ(side->test, kdb_credits, SLOTS - SLOTS / 4);
}
EXPORT_SYMBOL_GPL(kdb_get_credits);

u16 kdb_detach_volume(struct kd_side *side, u32 nsid)
{
	return kdb_ask_volume(side, KBLK_OP_DETACH, nsid);
}
EXPORT_SYMBOL_GPL(kdb_detach_volume);

u16 kdb_write_page(struct kd_side *side, u32 nsid, u64 n, char with)
{
	struct kblk_request request = kdb_write_request(side, nsid, n, with);

	return kdb_ask(side, &request);
}
EXPORT_SYMBOL_GPL(kdb_write_page);

/* Send what is answered later, with a receive for the reply. */
void kdb_send_later(struct kd_side *side, const struct kblk_request *request)
{
	u32 data = request->opcode == KBLK_OP_WRITE &&
		   request->flags & KBLK_INLINED ?
		   le32_to_cpu(request->length) : 0;

	kdb_post_reply_buffer(side);
	kdb_send_request(side, request, sizeof(*request) + data);
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}
EXPORT_SYMBOL_GPL(kdb_send_later);

void kdb_take_replies(struct kd_side *side, int n)
{
	while (n--)
		kd_expect_dto(side->test, side->recv_evd, 1, DAT_DTO_SUCCESS,
			      NULL);
}
EXPORT_SYMBOL_GPL(kdb_take_replies);

u16 kdb_last_status(struct kd_side *side)
{
	const struct kblk_reply *reply = side->buf->va + REPLY_AT;

	return le16_to_cpu(reply->status);
}
EXPORT_SYMBOL_GPL(kdb_last_status);

bool kdb_is_held(void *data)
{
	struct backing *backing = data;

	return atomic_read(&backing->nheld);
}
EXPORT_SYMBOL_GPL(kdb_is_held);

/* Have the medium of the slow volume keep a write of "a" to the first block. */
void kdb_write_for_ever(struct kd_side *side)
{
	struct kblk_request request = kdb_write_request(side, SLOW, 0, 'a');

	kdb_backing_hold(kdb_slow, true);
	kdb_send_later(side, &request);
	KUNIT_ASSERT_TRUE(side->test, kd_wait_until(kdb_is_held, kdb_slow,
						    KD_TIMEOUT_MS));
}
EXPORT_SYMBOL_GPL(kdb_write_for_ever);

bool kdb_is_connected(struct kd_side *side)
{
	DAT_EP_STATE state;

	return dat_ep_get_status(side->ep, &state, NULL, NULL) == DAT_SUCCESS &&
	       state == DAT_EP_STATE_CONNECTED;
}
EXPORT_SYMBOL_GPL(kdb_is_connected);

/* The other volume is served in every way. */
void kdb_expect_quick(struct kd_side *side)
{
	struct kblk_request request;
	int i;

	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_EQ(side->test, kdb_write_page(side, QUICK, i, 'q'),
				KBLK_OK);
		request = kdb_request_of(side, i & 1 ? KBLK_OP_READ :
							 KBLK_OP_WRITE, QUICK);
		KUNIT_EXPECT_EQ(side->test, kdb_ask(side, &request), KBLK_OK);
	}
	KUNIT_EXPECT_EQ(side->test, kdb_ask_volume(side, KBLK_OP_FLUSH, QUICK),
			KBLK_OK);
	KUNIT_EXPECT_EQ(side->test, kdb_ask_volume(side, KBLK_OP_KEEPALIVE, 0),
			KBLK_OK);
	KUNIT_EXPECT_TRUE(side->test, kdb_is_connected(side));
}
EXPORT_SYMBOL_GPL(kdb_expect_quick);
