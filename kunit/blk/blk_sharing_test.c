// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: volumes of a subsystem that share a connection
 * (KBLK_FEATURE_VOLUMES). None of them, whose medium may stand still, holds up
 * another, and what is sent again does not overtake its first copy.
 */
#include "blk_memory.h"
#include "blk_volumes.h"

static uuid_t uuid_of(struct kd_side *side, u32 nsid)
{
	struct kblk_request request = kdb_request_of(side, KBLK_OP_IDENTIFY, nsid);
	const struct kblk_identify *identify = side->buf->va + INLINE_AT;
	uuid_t uuid;

	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(sizeof(*identify));
	KUNIT_EXPECT_EQ(side->test, kdb_ask(side, &request), KBLK_OK);
	import_uuid(&uuid, identify->uuid);
	return uuid;
}

static void expect_size(struct kd_side *side, u64 size)
{
	const struct kblk_reply *reply = side->buf->va + REPLY_AT;

	KUNIT_EXPECT_EQ(side->test, le64_to_cpu(reply->size), size);
}

/* Each request is for the volume that it names. */
static void sharing_volumes(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;
	uuid_t uuid[2];

	kdb_load_volumes(test, MANY_SLOTS);
	KUNIT_ASSERT_EQ(test, 0, shell("truncate -s 2M " TGT_FILE));
	kdb_hello_features |= KBLK_FEATURE_SIZE | KBLK_FEATURE_IDENTITY;
	hello = kdb_good_hello();
	side = kdb_shared_client(test, &hello);
	expect_size(side, BACKING_SIZE);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, 1), KBLK_OK);
	expect_size(side, SZ_2M);
	KUNIT_EXPECT_GE(test, kdb_credits, 4);
	KUNIT_EXPECT_EQ(test, 0, shell("grep -q 'volume [1-3],[1-3],[1-3] ' " TGT
				       "/ports/1/connections"));
	KUNIT_EXPECT_EQ(test, kdb_write_page(side, SLOW, 0, 's'), KBLK_OK);
	expect_size(side, BACKING_SIZE);
	KUNIT_EXPECT_EQ(test, kdb_write_page(side, QUICK, 0, 'q'), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_READ, 1), KBLK_OK);
	expect_size(side, SZ_2M);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(side->buf->va + DATA_AT, 4096,
					     FILE_SEED));
	KUNIT_EXPECT_NULL(test, memchr_inv(kdb_slow->data, 's', 4096));
	KUNIT_EXPECT_NULL(test, memchr_inv(kdb_quick->data, 'q', 4096));
	uuid[0] = uuid_of(side, SLOW);
	uuid[1] = uuid_of(side, QUICK);
	KUNIT_EXPECT_FALSE(test, uuid_equal(&uuid[0], &uuid[1]));

	KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_READ, 4),
			KBLK_ERR_NOT_ATTACHED);
	expect_size(side, 0);
	KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_READ, 0),
			KBLK_ERR_NOT_ATTACHED);
	KUNIT_EXPECT_EQ(test, kdb_detach_volume(side, 4), KBLK_ERR_NOT_ATTACHED);
	KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_DETACH + 1, SLOW),
			KBLK_ERR_UNSUPPORTED);
	KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_KEEPALIVE, 0), KBLK_OK);
	expect_size(side, 0);
	KUNIT_EXPECT_EQ(test, kdb_detach_volume(side, SLOW), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_READ, SLOW),
			KBLK_ERR_NOT_ATTACHED);
	kdb_expect_attached(side, SLOW);
	KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_READ, SLOW), KBLK_OK);
	kd_close(side);
	kdb_expect_serving_alone(test);
}

/*
 * The features without which there is none to share connections, and what a
 * client may not do that shares none, or with a request that is for no volume.
 */
static void sharing_feature(struct kunit *test)
{
	static const struct {
		u32 wanted;
		u32 granted;
		u8 opcode;	/* that must not name a volume */
	} cases[] = {
		{ SHARING, SHARING, KBLK_OP_KEEPALIVE },
		{ SHARING, SHARING, KBLK_OP_ATTACH },
		{ SHARING & ~KBLK_FEATURE_VOLUMES, SHARING & ~KBLK_FEATURE_VOLUMES,
		  KBLK_OP_READ },
		{ SHARING & ~KBLK_FEATURE_CREDITS, KBLK_FEATURE_HOST, KBLK_OP_READ },
		{ SHARING & ~KBLK_FEATURE_HOST, KBLK_FEATURE_CREDITS, KBLK_OP_READ },
	};
	struct kblk_request request;
	struct kblk_hello hello;
	struct kd_side *side;
	int i;

	kdb_load_volumes(test, MANY_SLOTS);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		kdb_hello_features = cases[i].wanted;
		hello = kdb_good_hello();
		side = kdb_welcome_client(test, &hello);
		KUNIT_EXPECT_EQ_MSG(test, kdb_granted, cases[i].granted, "case %d", i);
		if (cases[i].granted & KBLK_FEATURE_HOST)
			uuid_gen(&kdb_host);
		else
			kdb_host = uuid_null;
		KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, 1), KBLK_OK);
		if (cases[i].granted != SHARING)
			KUNIT_EXPECT_EQ(test, kdb_detach_volume(side, 0),
					KBLK_ERR_UNSUPPORTED);
		request = kdb_request_of(side, cases[i].opcode, 1);
		kdb_send_request(side, &request, sizeof(request));
		kdb_expect_end(side);
		kd_close(side);
	}
	kdb_expect_serving_alone(test);
}

/* Who attaches again is the same, and asks for another volume. */
static void sharing_attach(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;
	uuid_t host;

	kdb_load_volumes(test, "echo 4 >io_depth");
	hello = kdb_good_hello();
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, 9), KBLK_ERR_NO_VOLUME);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_ERR_INVALID);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "other", "vol", QUICK, 0),
			KBLK_ERR_INVALID);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "other", QUICK, 0),
			KBLK_ERR_INVALID);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vol", QUICK, 1),
			KBLK_ERR_INVALID);
	host = kdb_host;
	uuid_gen(&kdb_host);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, QUICK), KBLK_ERR_INVALID);
	kdb_host = host;
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, 9), KBLK_ERR_NO_VOLUME);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, QUICK), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, 1), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_READ, 1), KBLK_OK);
	/* Of four requests at a time one is for no volume. */
	KUNIT_EXPECT_EQ(test, 0, shell("set -e; mkdir " VOLUME(4) "; cd " VOLUME(4)
				       "; : >" TGT_FILE ".4;"
				       " truncate -s 1M " TGT_FILE ".4;"
				       " echo " TGT_FILE ".4 >path;"
				       " echo 1 >enable"));
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, 4), KBLK_ERR_BUSY);
	KUNIT_EXPECT_EQ(test, kdb_detach_volume(side, 1), KBLK_OK);
	kdb_expect_attached(side, 4);
	kd_close(side);
	KUNIT_EXPECT_EQ(test, 0, shell("rmdir " VOLUME(4) "; rm " TGT_FILE ".4"));
	kdb_expect_serving_alone(test);
}

/*
 * A volume stands still that has taken all slots, pages and buffers that it can
 * get. What comes behind its requests on the same connection, for others, is
 * served.
 */
static void sharing_stands_still(struct kunit *test)
{
	struct kblk_request request;
	struct kblk_hello hello;
	struct kd_side *side;
	int i;

	kdb_load_volumes(test, MANY_SLOTS "; echo 1 >pages; echo 1 >buffers");
	hello = kdb_good_hello();
	side = kdb_shared_client(test, &hello);
	kdb_get_credits(side);
	kdb_backing_hold(kdb_slow, true);
	for (i = 0; i < SLOTS - 2; i++) {
		request = kdb_write_request(side, SLOW, i, 'a' + i);
		/* Every third is fetched, from where only "z" is. */
		if (i % 3 == 2)
			request.flags = 0;
		kdb_send_later(side, &request);
		if (i % 3 == 1)
			kdb_expect_quick(side);
	}
	memset(side->buf->va + DATA_AT, 'z', 4096);
	kdb_expect_quick(side);
	KUNIT_EXPECT_TRUE(test, kdb_is_held(kdb_slow));
	kdb_backing_hold(kdb_slow, false);
	kdb_take_replies(side, SLOTS - 2);
	for (i = 0; i < SLOTS - 2; i++)
		if (i % 3 != 2)
			KUNIT_EXPECT_NULL_MSG(test,
					      memchr_inv(kdb_slow->data + i * 4096,
							 'a' + i, 4096),
					      "page %d", i);
	kdb_expect_quick(side);
	kd_close(side);
	kdb_expect_serving_alone(test);
}

/* Put a write of @length bytes of @with to @n-th block behind @at in a message. */
static size_t add_write(struct kd_side *side, size_t at, u32 nsid, u64 n,
			u32 length, char with)
{
	struct kblk_request request = kdb_request_of(side, KBLK_OP_WRITE, nsid);
	void *to = side->buf->va + REQUEST_AT + at;

	request.flags = KBLK_INLINED;
	request.offset = cpu_to_le64(n * 4096);
	request.length = cpu_to_le32(length);
	memcpy(to, &request, sizeof(request));
	memset(to + sizeof(request), with, length);
	return at + sizeof(request) + length;
}

/*
 * A message brings writes to two volumes. The first finds no page, as the medium
 * keeps one and another waits, so its data stays in the receive buffer; the second
 * is done meanwhile.
 */
static void sharing_message(struct kunit *test)
{
	struct kblk_request request;
	struct kblk_hello hello;
	struct kd_side *side;
	size_t at;
	int i;

	kdb_load_volumes(test, MANY_SLOTS "; echo 1 >pages");
	kdb_hello_features |= KBLK_FEATURE_REQUESTS;
	hello = kdb_good_hello();
	side = kdb_shared_client(test, &hello);
	kdb_get_credits(side);
	kdb_backing_hold(kdb_slow, true);
	request = kdb_request_of(side, KBLK_OP_READ, SLOW);
	request.flags = KBLK_INLINED;
	for (i = 0; i < 2; i++)
		kdb_send_later(side, &request);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(kdb_is_held, kdb_slow, KD_TIMEOUT_MS));
	at = add_write(side, 0, SLOW, 1, 2048, 's');
	at = add_write(side, at, QUICK, 1, 3072, 'q');
	kdb_post_reply_buffer(side);
	kd_send(side, REQUEST_AT, at, 2);
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kdb_take_replies(side, 1);
	kdb_post_reply_buffer(side);
	KUNIT_EXPECT_EQ(test, kdb_last_status(side), KBLK_OK);
	KUNIT_EXPECT_NULL(test, memchr_inv(kdb_quick->data + 4096, 'q', 3072));
	kdb_expect_quick(side);
	KUNIT_EXPECT_EQ(test, atomic_read(&kdb_slow->nheld), 1);
	kdb_backing_hold(kdb_slow, false);
	kdb_take_replies(side, 3);
	KUNIT_EXPECT_NULL(test, memchr_inv(kdb_slow->data + 4096, 's', 2048));
	kd_close(side);
	kdb_expect_serving_alone(test);
}

#define CROWD	8

/*
 * Credits are short, and a volume that stands still keeps most of those of its
 * connection. The other volume has one for its next request all the same.
 */
static void sharing_credits(struct kunit *test)
{
	struct kd_side *side, *crowd[CROWD];
	struct kblk_request request;
	struct kblk_hello hello;
	int i, n;

	kdb_load_volumes(test, MANY_SLOTS "; echo 42 >srq_size; echo 42 >srq_max");
	hello = kdb_good_hello();
	side = kdb_shared_client(test, &hello);
	kdb_get_credits(side);
	kdb_backing_hold(kdb_slow, true);
	request = kdb_request_of(side, KBLK_OP_READ, SLOW);
	for (i = 0; i < SLOTS - 2; i++)
		kdb_send_later(side, &request);
	kdb_hello_features = KBLK_FEATURE_CREDITS;
	for (i = 0; i < CROWD; i++) {
		kdb_host = uuid_null;
		crowd[i] = kdb_connected_client(test);
	}
	for (n = 0; n < SLOTS; n++) {
		request.opcode = KBLK_OP_KEEPALIVE;
		request.namespace = 0;
		request.length = 0;
		request.flags = KBLK_WANTS;
		for (i = 0; i < CROWD; i++) {
			kdb_send_later(crowd[i], &request);
			kdb_take_replies(crowd[i], 1);
		}
		/* kdb_ask() expects a credit. */
		KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_READ, QUICK),
				KBLK_OK);
		KUNIT_EXPECT_EQ(test, kdb_ask_volume(side, KBLK_OP_KEEPALIVE, 0),
				KBLK_OK);
	}
	kdb_backing_hold(kdb_slow, false);
	kdb_take_replies(side, SLOTS - 2);
	for (i = 0; i < CROWD; i++)
		kd_close(crowd[i]);
	kd_close(side);
	kdb_expect_serving_alone(test);
}

/*
 * A volume is refused if the longest queue has no buffer for it beside those for
 * other hosts, and for further connections.
 */
static void sharing_no_credit(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side[3], *other;
	int i;

	kdb_load_volumes(test, MANY_SLOTS "; echo 7 >srq_size; echo 14 >srq_max");
	for (i = 0; i < 3; i++) {
		hello = kdb_good_hello();
		side[i] = kdb_welcome_client(test, &hello);
		KUNIT_EXPECT_EQ(test, kdb_attach_volume(side[i], SLOW), KBLK_OK);
	}
	/* Each has two, and a host ten. */
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, kdb_attach_volume(side[i], QUICK), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_one_more(test, &other), KBLK_HELLO_RESOURCES);
	kd_close(other);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side[0], 1), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side[1], 1), KBLK_ERR_BUSY);
	KUNIT_EXPECT_EQ(test, kdb_detach_volume(side[0], QUICK), KBLK_OK);
	kdb_expect_attached(side[2], 1);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side[0], QUICK), KBLK_ERR_BUSY);
	kd_close(side[1]);
	kdb_expect_attached(side[0], QUICK);
	kd_close(side[0]);
	kd_close(side[2]);
	kdb_expect_serving_alone(test);
}

/* A volume that stands still had all credits but one when others are attached. */
static void sharing_late(struct kunit *test)
{
	struct kblk_request request, wants;
	struct kblk_hello hello;
	struct kd_side *side;
	unsigned int i, held;

	kdb_load_volumes(test, "echo 8 >io_depth; echo 42 >srq_size");
	hello = kdb_good_hello();
	hello.credits = cpu_to_le16(8);
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_OK);
	wants = kdb_request_of(side, KBLK_OP_KEEPALIVE, 0);
	wants.flags = KBLK_WANTS;
	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_EQ(test, kdb_ask(side, &wants), KBLK_OK);
	KUNIT_ASSERT_EQ(test, kdb_credits, 6);
	held = kdb_credits - 1;
	kdb_backing_hold(kdb_slow, true);
	request = kdb_request_of(side, KBLK_OP_READ, SLOW);
	for (i = 0; i < held; i++)
		kdb_send_later(side, &request);
	/* One for each volume, and one for requests that are for none */
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, QUICK), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_credits - held, 2);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, 1), KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_credits - held, 3);
	kdb_backing_hold(kdb_slow, false);
	kdb_take_replies(side, held);
	kd_close(side);
	kdb_expect_serving_alone(test);
}

/* Many connections of a host lose their only volume. Others of it can connect. */
static void sharing_unattached(struct kunit *test)
{
	struct kd_side *side;
	int i;

	kdb_load_volumes(test, MANY_SLOTS "; echo 400 >srq_size; echo 400 >srq_max");
	for (i = 0; i < 64; i++) {
		KUNIT_ASSERT_EQ(test, kdb_one_more(test, &side), KBLK_HELLO_OK);
		KUNIT_ASSERT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_OK);
	}
	KUNIT_ASSERT_EQ(test, 0, shell("echo 0 >" VOLUME(2) "/enable"));
	kdb_hello_features = 0;
	kdb_host = uuid_null;
	KUNIT_EXPECT_EQ(test, kdb_one_more(test, &side), KBLK_HELLO_OK);
}

/* Another volume needs another large buffer, and is attached when there is memory for it. */
static void sharing_memory_in_pieces(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;

	kdb_load_volumes(test, MANY_SLOTS);
	hello = kdb_good_hello();
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, QUICK), KBLK_OK);
	kdb_fail_pages(test, 4);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_ERR_BUSY);
	kdb_expect_quick(side);
	kunit_release_action(test, kdb_pages_come, NULL);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_OK);
	kd_close(side);
	kdb_expect_serving_alone(test);
}

static struct kunit_case sharing_cases[] = {
	KUNIT_CASE_PARAM(sharing_late, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_unattached, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_volumes, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_feature, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_attach, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_stands_still, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_message, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_credits, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_no_credit, kd_gen_ia),
	KUNIT_CASE_PARAM(sharing_memory_in_pieces, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-sharing", sharing_cases,
	 "volumes that share connections of the block device target");
