// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko against clients that break the protocol or are hostile.
 */
#include <linux/prandom.h>
#include "blk_volumes.h"

#define FLOOD		30

static void blk_error_replies(struct kunit *test)
{
	static const struct {
		u8 opcode;
		u8 flags;
		u64 offset;
		u32 length;
		u16 status;
	} t[] = {
		{ 0, 0, 0, 4096, KBLK_ERR_UNSUPPORTED },
		{ 9, 0, 0, 4096, KBLK_ERR_UNSUPPORTED },
		{ 255, 0, 0, 4096, KBLK_ERR_UNSUPPORTED },
		{ KBLK_OP_IDENTIFY, KBLK_INLINED, 512, 64, KBLK_ERR_INVALID },
		{ KBLK_OP_IDENTIFY, KBLK_INLINED, 0, 65, KBLK_ERR_INVALID },
		{ KBLK_OP_IDENTIFY, 0, 0, 64, KBLK_ERR_INVALID },
		{ KBLK_OP_FLUSH, 0, 0, 512, KBLK_ERR_INVALID },
		{ KBLK_OP_FLUSH, KBLK_FUA, 0, 0, KBLK_ERR_INVALID },
		{ KBLK_OP_KEEPALIVE, 0, 512, 0, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, 0, 0, 0, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, 0, 0, 511, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, 0, 1, 512, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, KBLK_FUA, 0, 512, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, KBLK_INLINED, 0, 4608, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, 0, 0, SZ_128K + 512, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, 0, 0, U32_MAX - 511, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, 0, FILE_SIZE, 512, KBLK_ERR_RANGE },
		{ KBLK_OP_READ, 0, FILE_SIZE - 512, 1024, KBLK_ERR_RANGE },
		{ KBLK_OP_READ, 0, U64_MAX - 511, 512, KBLK_ERR_RANGE },
		{ KBLK_OP_READ, 0, BIT_ULL(63), 512, KBLK_ERR_RANGE },
		{ KBLK_OP_WRITE, 0, FILE_SIZE - 512, 1024, KBLK_ERR_RANGE },
		{ KBLK_OP_WRITE, 0, 0, SZ_128K + 512, KBLK_ERR_INVALID },
		{ KBLK_OP_WRITE, KBLK_INLINED, 1, 512, KBLK_ERR_INVALID },
		{ KBLK_OP_DISCARD, 0, 0, 0, KBLK_ERR_INVALID },
		{ KBLK_OP_DISCARD, KBLK_FUA, 0, 512, KBLK_ERR_INVALID },
		{ KBLK_OP_DISCARD, 0, 0, SZ_2M, KBLK_ERR_RANGE },
		{ KBLK_OP_DISCARD, 0, 0, U32_MAX - 511, KBLK_ERR_INVALID },
		{ KBLK_OP_WRITE_ZEROES, 0, 0, U32_MAX - 511, KBLK_ERR_INVALID },
		{ KBLK_OP_WRITE_ZEROES, 0, FILE_SIZE, 512, KBLK_ERR_RANGE },
		{ KBLK_OP_READ, 0, FILE_SIZE - 512, 512, KBLK_OK },
	};
	struct kblk_request request;
	struct kd_side *side;
	int i;

	tgt_load(test);
	side = kdb_connected_client(test);
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		request = kdb_good_request(side);
		request.opcode = t[i].opcode;
		request.flags = t[i].flags;
		request.offset = cpu_to_le64(t[i].offset);
		request.length = cpu_to_le32(t[i].length);
		KUNIT_EXPECT_EQ_MSG(test, kdb_ask(side, &request), t[i].status,
				    "request %d", i);
	}
	kdb_expect_serving(test);
}

/* A volume that is read-only answers everything that writes with an error. */
static void blk_read_only_replies(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	int i;

	tgt_load(test);
	KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT_NS "; echo 0 >enable;"
				       " echo 1 >read_only; echo 1 >enable"));
	side = kdb_connected_client(test);
	request = kdb_good_request(side);
	for (i = KBLK_OP_WRITE; i <= KBLK_OP_WRITE_ZEROES; i++) {
		request.opcode = i;
		if (i != KBLK_OP_FLUSH)
			KUNIT_EXPECT_EQ(test, kdb_ask(side, &request),
					KBLK_ERR_READ_ONLY);
	}
	kdb_expect_serving(test);
}

/* Send one message of @len bytes that ends the connection. */
static void expect_fatal(struct kunit *test, const struct kblk_request *bad,
			 size_t len)
{
	struct kd_side *side = kdb_connected_client(test);

	kdb_send_request(side, bad, len);
	kdb_expect_end(side);
	kd_close(side);
}

static void blk_malformed(struct kunit *test)
{
	static const size_t wrong_lengths[] = {
		0, 1, 63, 65, 64 + 512, 64 + KBLK_INLINE, 64 + KBLK_INLINE + 1,
		KBLK_MESSAGE, KBLK_MESSAGE + 1,
	};
	struct kblk_request bad[5] = {};
	int i;

	tgt_load(test);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		bad[i].magic = cpu_to_le32(KBLK_MAGIC);
		bad[i].opcode = KBLK_OP_READ;
	}
	bad[0].magic = ~bad[0].magic;
	bad[1].flags = 4;
	bad[2].returned = cpu_to_le16(0x8000);
	bad[3].reserved[19] = 0x80;
	bad[4].opcode = KBLK_OP_WRITE;
	bad[4].flags = KBLK_INLINED;
	bad[4].length = cpu_to_le32(512);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		expect_fatal(test, &bad[i], sizeof(bad[i]));
	bad[0].magic = cpu_to_le32(KBLK_MAGIC);
	for (i = 0; i < ARRAY_SIZE(wrong_lengths); i++)
		expect_fatal(test, &bad[0], wrong_lengths[i]);
	kdb_expect_serving(test);
}

/* A flushed receive is no answer: the end of the connection follows. */
static bool answered_or_ended(void *data)
{
	struct kd_side *side = data;
	DAT_EVENT event;
	DAT_EP_STATE state;

	if (dat_evd_dequeue(side->recv_evd, &event) == DAT_SUCCESS &&
	    event.event_data.dto_completion_event_data.status ==
	    DAT_DTO_SUCCESS)
		return true;
	return dat_ep_get_status(side->ep, &state, NULL, NULL) == DAT_SUCCESS &&
	       state == DAT_EP_STATE_DISCONNECTED;
}

/*
 * Give each byte of a request random values in turn, and with every fourth
 * value the message a random length. The target answers or ends the connection,
 * and serves the next client as before. Writes go to a part of the volume that
 * no case compares.
 */
static void blk_mutations(struct kunit *test)
{
	struct kblk_request request;
	struct rnd_state rnd;
	struct kd_side *side = NULL;
	size_t len;
	int i;

	tgt_load(test);
	prandom_seed_state(&rnd, 20261121);
	for (i = 0; i < sizeof(request); i++) {
		if (!side)
			side = kdb_connected_client(test);
		request = kdb_good_request(side);
		request.opcode = 1 + prandom_u32_state(&rnd) % 8;
		request.offset = cpu_to_le64(SZ_512K);
		((u8 *)&request)[i] ^= 1 + prandom_u32_state(&rnd) % 255;
		len = sizeof(request);
		if (i % 4 == 3)
			len = prandom_u32_state(&rnd) % 4200;
		kdb_send_request(side, &request, len);
		KUNIT_EXPECT_TRUE_MSG(test,
				      kd_wait_until(answered_or_ended, side,
						    KD_TIMEOUT_MS),
				      "mutation %d", i);
		if (kd_state(side) == DAT_EP_STATE_CONNECTED) {
			kdb_post_reply_buffer(side);
			kd_drain(side->req_evd);
			continue;
		}
		kd_close(side);
		side = NULL;
	}
	kdb_expect_serving(test);
}

/*
 * Give each byte of the private data of a connection request random values, and
 * it random lengths. Some values are allowed.
 */
static void blk_hello_mutations(struct kunit *test)
{
	struct kblk_hello hello;
	struct rnd_state rnd;
	struct kd_side *side;
	DAT_EVENT event;
	size_t len;
	int i;

	tgt_load(test);
	prandom_seed_state(&rnd, 20261122);
	for (i = 0; i < sizeof(hello); i += 2) {
		hello = kdb_good_hello();
		((u8 *)&hello)[i + prandom_u32_state(&rnd) % 2] ^=
			1 + prandom_u32_state(&rnd) % 255;
		len = i % 8 == 6 ? prandom_u32_state(&rnd) % sizeof(hello) :
				   sizeof(hello);
		side = kdb_client(test);
		kdb_say_hello(side, &hello, len);
		KUNIT_EXPECT_TRUE_MSG(test,
				      kd_wait_event(side->conn_evd, &event,
						    KD_TIMEOUT_MS),
				      "mutation %d", i);
		kd_close(side);
	}
	kdb_expect_serving(test);
}

#define AT(member)	offsetof(struct kblk_attach, member)

/* Mutate the data of ATTACH, field by field. */
static void blk_attach_mutations(struct kunit *test)
{
	static const struct {
		size_t at;
		size_t len;
		u8 fill;
		u16 status;
	} t[] = {
		{ AT(client), KBLK_NAME_LEN, 'x', KBLK_ERR_INVALID },
		{ AT(subsystem), KBLK_NAME_LEN, 'x', KBLK_ERR_INVALID },
		{ AT(subsystem), 1, 'V', KBLK_ERR_NO_VOLUME },
		{ AT(subsystem), 4, 0xff, KBLK_ERR_NO_VOLUME },
		{ AT(namespace), 4, 0, KBLK_ERR_NO_VOLUME },
		{ AT(namespace), 4, 0xff, KBLK_ERR_NO_VOLUME },
		{ AT(reserved), 1, 1, KBLK_ERR_INVALID },
		{ AT(reserved) + 7, 1, 0x80, KBLK_ERR_INVALID },
		/* It has not said that it tells its host. */
		{ AT(host) + 15, 1, 0x80, KBLK_ERR_INVALID },
		/* Any name of a client and any long time-out are allowed. */
		{ AT(client), 63, 0xff, KBLK_OK },
		{ AT(keepalive_ms), 4, 0xff, KBLK_OK },
	};
	struct kblk_hello hello = kdb_good_hello();
	struct kblk_request request;
	struct kblk_attach *attach;
	struct kd_side *side = NULL;
	int i;

	tgt_load(test);
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		if (!side) {
			hello = kdb_good_hello();
			side = kdb_welcome_client(test, &hello);
		}
		attach = side->buf->va + REQUEST_AT + sizeof(request);
		memset(attach, 0, sizeof(*attach));
		strscpy(attach->subsystem, "vol", sizeof(attach->subsystem));
		attach->namespace = cpu_to_le32(1);
		memset((void *)attach + t[i].at, t[i].fill, t[i].len);
		request = kdb_good_request(side);
		request.opcode = KBLK_OP_ATTACH;
		request.flags = KBLK_INLINED;
		request.length = cpu_to_le32(sizeof(*attach));
		KUNIT_EXPECT_EQ_MSG(test, kdb_ask(side, &request), t[i].status,
				    "attach %d", i);
		if (t[i].status == KBLK_OK) {
			kd_close(side);
			side = NULL;
		}
	}
	kdb_expect_serving(test);
}

/* A newline in a client's name does not add a line to a file. */
static void blk_attach_newline(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kd_side *side;

	tgt_load(test);
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "some\nbody", "vol", 1, 0),
			KBLK_OK);
	KUNIT_EXPECT_EQ(test, 0,
			shell("grep -q body " TGT "/ports/1/connections"));
	KUNIT_EXPECT_NE(test, 0,
			shell("grep -q ^body " TGT "/ports/1/connections"));
	kd_close(side);
	kdb_expect_serving(test);
}

/* The data of ATTACH has exactly the announced length. */
static void blk_attach_lengths(struct kunit *test)
{
	struct kblk_request request;
	struct kblk_hello hello;
	struct kd_side *side;
	int i;

	tgt_load(test);
	for (i = -1; i <= 1; i += 2) {
		hello = kdb_good_hello();
		side = kdb_welcome_client(test, &hello);
		request = kdb_good_request(side);
		request.opcode = KBLK_OP_ATTACH;
		request.flags = KBLK_INLINED;
		request.length = cpu_to_le32(sizeof(struct kblk_attach) + i);
		KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_ERR_INVALID);
		kd_close(side);
	}
	kdb_expect_serving(test);
}

/*
 * The client names memory that it has not opened: its own adapter refuses the
 * access.
 */
static void blk_bad_rmr_context(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	u8 op;

	tgt_load(test);
	for (op = KBLK_OP_READ; op <= KBLK_OP_WRITE; op++) {
		side = kdb_connected_client(test);
		request = kdb_good_request(side);
		request.opcode = op;
		request.offset = cpu_to_le64(SZ_512K);
		request.rmr_context ^= cpu_to_le32(0x5a5a00);
		kdb_send_request(side, &request, sizeof(request));
		kdb_expect_end(side);
		kd_close(side);
	}
	kdb_expect_serving(test);
}

/*
 * Let a client ignore its credits until the hard high watermark ends its connection. The medium
 * keeps its requests, so messages pile up, however fast the target is. @more: as for
 * tgt_load_with()
 */
static void flood_until_cut_off(struct kunit *test, const char *more)
{
	struct kblk_request request;
	struct kblk_hello hello;
	DAT_LMR_TRIPLET seg;
	struct kd_side *side;
	int i;

	kdb_load_volumes(test, more);
	kdb_backing_hold(kdb_slow, true);
	kdb_hello_features = 0;
	kdb_host = uuid_null;
	hello = kdb_good_hello();
	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_volume(side, SLOW), KBLK_OK);
	request = kdb_good_request(side);
	memcpy(side->buf->va + REQUEST_AT, &request, sizeof(request));
	seg = kd_seg(side->buf, REQUEST_AT, sizeof(request));
	for (i = 0; i < FLOOD; i++)
		kd_may_fail(dat_ep_post_send(side->ep, 1, &seg, kd_cookie(3),
					     DAT_COMPLETION_DEFAULT_FLAG));
	kdb_expect_end(side);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_has_cut_off, NULL,
					      KD_TIMEOUT_MS));
}

static void blk_credits_ignored(struct kunit *test)
{
	flood_until_cut_off(test, MANY_SLOTS);
	kdb_expect_serving(test);
}

enum busy {
	BUSY_ALONE,
	/*
	 * Replies may share messages: replies without data, and replies with
	 * data.
	 */
	BUSY_PLAIN,
	BUSY_DATA,
	BUSY_KINDS
};

static enum busy busy;

static void be_busy(enum busy kind)
{
	busy = kind;
	kdb_hello_features = kind == BUSY_ALONE ? 0 : KBLK_FEATURE_BATCH;
}

static struct kblk_request busy_request(struct kd_side *side)
{
	struct kblk_request request = kdb_good_request(side);

	if (busy == BUSY_PLAIN) {
		request.opcode = KBLK_OP_KEEPALIVE;
		request.length = 0;
	}
	if (busy == BUSY_DATA) {
		request.flags = KBLK_INLINED;
		request.length = cpu_to_le32(512);
	}
	return request;
}

/* Send the same request @n times. */
static void send_many(struct kd_side *side, int n)
{
	struct kblk_request request = busy_request(side);
	DAT_LMR_TRIPLET seg = kd_seg(side->buf, REQUEST_AT, sizeof(request));
	int i;

	memcpy(side->buf->va + REQUEST_AT, &request, sizeof(request));
	for (i = 0; i < n; i++)
		kd_may_fail(dat_ep_post_send(side->ep, 1, &seg, kd_cookie(3),
					     DAT_COMPLETION_DEFAULT_FLAG));
}

/* A client that was cut off is not accepted again at once. */
static void blk_cut_off_and_shunned(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	const struct kblk_welcome *welcome;
	struct kd_side *side;

	flood_until_cut_off(test, MANY_SLOTS "; echo 600000 >penalty_ms");
	side = kdb_client(test);
	kdb_say_hello(side, &hello, sizeof(hello));
	welcome = kdb_expect_welcome(side, DAT_CONNECTION_EVENT_PEER_REJECTED);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->status),
			KBLK_HELLO_SHUNNED);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(tgt_has_all_buffers, NULL,
					      KD_TIMEOUT_MS));
}

/*
 * A client without receives for its replies does not keep resources that others
 * need.
 */
static void blk_replies_not_taken(struct kunit *test)
{
	struct kd_side *side[BUSY_KINDS];
	enum busy kind;

	tgt_load_with(test, "echo 3000 >reply_ms; echo 8 >io_depth; echo 24 >pages");
	for (kind = 0; kind < BUSY_KINDS; kind++) {
		be_busy(kind);
		side[kind] = kdb_connected_client(test);
		/* There is one receive, so the other replies find none. */
		send_many(side[kind], TGT_CREDITS);
	}
	be_busy(BUSY_ALONE);
	for (kind = 0; kind < BUSY_KINDS; kind++)
		kdb_expect_end(side[kind]);
	kdb_expect_serving(test);
}

/*
 * Clients within their credits use most of the receive buffers, whereupon the
 * target posts more.
 */
static void blk_low_watermark_helps(struct kunit *test)
{
	struct kd_side *side[8], *honest;
	int i;

	tgt_load_with(test, "echo 14 >srq_size; echo 1000 >srq_max;"
		      "echo 32 >pages; echo 0 >reply_ms");
	for (i = 0; i < ARRAY_SIZE(side); i++) {
		side[i] = kdb_connected_client(test);
		send_many(side[i], kdb_credits);
	}
	honest = kdb_connected_client(test);
	kd_close(honest);
	for (i = 0; i < ARRAY_SIZE(side); i++)
		kd_close(side[i]);
	kdb_expect_serving(test);
}

/*
 * Clients that leave in the middle of requests, also while replies share
 * messages.
 */
static void blk_gone_in_the_middle(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	int i, n;

	tgt_load_with(test, "echo 8 >io_depth; echo 8 >pages");
	for (n = 0; n < 10; n++) {
		be_busy(n % BUSY_KINDS);
		side = kdb_connected_client(test);
		request = busy_request(side);
		for (i = 1; i < TGT_CREDITS; i++)
			kdb_post_reply_buffer(side);
		for (i = 0; i < TGT_CREDITS; i++)
			kdb_send_request(side, &request, sizeof(request));
		kd_close(side);
	}
	be_busy(BUSY_ALONE);
	kdb_expect_serving(test);
}

static void blk_too_many_clients(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	const struct kblk_welcome *welcome;
	struct kblk_request request;
	struct kd_side *side[5];
	DAT_EVENT event;
	int i;

	/* The fifth is for another host. */
	tgt_load_with(test, "echo 5 >max_conns");
	for (i = 0; i < 4; i++)
		side[i] = kdb_connected_client(test);
	side[4] = kdb_client(test);
	kdb_say_hello(side[4], &hello, sizeof(hello));
	kd_expect_event(test, side[4]->conn_evd,
			DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
	welcome = event.event_data.connect_event_data.private_data;
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->status), KBLK_HELLO_BUSY);
	for (i = 0; i < 4; i++) {
		request = kdb_good_request(side[i]);
		KUNIT_EXPECT_EQ(test, kdb_ask(side[i], &request), KBLK_OK);
	}
	/* The target is unloaded while the last clients are connected. */
}

#define UNATTACHED	64	/* connections a host may have without ATTACH */

/* A host takes connections that it does not use, and leaves enough for others. */
static void blk_too_many_unattached(struct kunit *test)
{
	struct kd_side *first, *side;
	int i;

	tgt_load_with(test, "echo 400 >srq_size; echo 400 >srq_max;"
			    " echo 3600000 >attach_ms");
	KUNIT_ASSERT_EQ(test, kdb_one_more(test, &first), KBLK_HELLO_OK);
	for (i = 1; i < UNATTACHED; i++)
		KUNIT_ASSERT_EQ_MSG(test, kdb_one_more(test, &side), KBLK_HELLO_OK,
				    "connection %d", i);
	KUNIT_EXPECT_EQ(test, kdb_one_more(test, &side), KBLK_HELLO_BUSY);
	kd_close(side);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(first, "somebody", "vol", 1, 0),
			KBLK_OK);
	KUNIT_EXPECT_EQ(test, kdb_one_more(test, &side), KBLK_HELLO_OK);
	KUNIT_EXPECT_EQ(test, kdb_one_more(test, &side), KBLK_HELLO_BUSY);
}

static struct kunit_case blk_cases[] = {
	KUNIT_CASE_PARAM(blk_error_replies, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_read_only_replies, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_malformed, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_mutations, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_hello_mutations, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_attach_mutations, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_attach_newline, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_attach_lengths, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_bad_rmr_context, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_credits_ignored, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_cut_off_and_shunned, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_replies_not_taken, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_low_watermark_helps, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_gone_in_the_middle, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_too_many_clients, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_too_many_unattached, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-hostile", blk_cases, "the block device target and hostile clients");
