// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko against clients that are wrong or hostile. Each case loads
 * the target, talks to it in raw DTOs, and looks in the end whether it still
 * serves others and has all its receive buffers.
 */
#include <linux/fs.h>
#include <linux/kmod.h>
#include <linux/module.h>
#include "../drivers/kdapl_blk/kdapl_blk_proto.h"
#include "fixture.h"

#define TGT_KO		"/run/out/modules/kdapl_blk_tgt.ko"
#define TGT_STATS	"/sys/kernel/debug/kdapl_blk_tgt/stats"
#define TGT_FILE	"/tmp/kdapl_blk_test"
#define TGT_PARAMS	"credits=8 io_depth=2 srq_size=64 max_clients=4"
#define TGT_PORT	5100
#define TGT_CREDITS	8
#define FLOOD		30

#define FILE_SIZE	SZ_1M
#define FILE_SEED	42

/* Parts of side->buf. */
#define REQUEST_AT	0
#define REPLY_AT	4096
#define DATA_AT		8192

/* ---- The target ---------------------------------------------------------- */

/* Returns the exit status. */
static int shell(char *command)
{
	char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	char *argv[4], *envp[2];

	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = command;
	argv[3] = NULL;
	envp[0] = path;
	envp[1] = NULL;
	return call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC);
}

static void make_file(struct kunit *test)
{
	char *data = kunit_kmalloc(test, SZ_64K, GFP_KERNEL);
	struct file *file;
	loff_t pos = 0;

	KUNIT_ASSERT_NOT_NULL(test, data);
	kd_fill(data, SZ_64K, FILE_SEED);
	file = filp_open(TGT_FILE, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	while (pos < FILE_SIZE)
		KUNIT_EXPECT_EQ(test, kernel_write(file, data, SZ_64K, &pos),
				(ssize_t)SZ_64K);
	filp_close(file, NULL);
}

static void tgt_unload(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ_MSG(test, 0, shell("rmmod kdapl_blk_tgt"),
			    "the target does not unload");
}

static void tgt_load(struct kunit *test)
{
	char command[256];

	/* scripts/check-guest runs us with the modules there. */
	if (shell("test -e " TGT_KO))
		kunit_skip(test, "no " TGT_KO);
	make_file(test);
	snprintf(command, sizeof(command),
		 "insmod " TGT_KO " " TGT_PARAMS " path=" TGT_FILE " ia=%s",
		 *(const char * const *)test->param_value);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, tgt_unload,
							   test));
}

static bool tgt_has_all_buffers(void *unused)
{
	return !shell("grep -Eq '80 max, (64|80) available, \\1 outstanding' "
		      TGT_STATS);
}

/* ---- A client ------------------------------------------------------------ */

static struct kblk_hello good_hello(void)
{
	return (struct kblk_hello) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version_min = cpu_to_le16(KBLK_VERSION_MIN),
		.version_max = cpu_to_le16(KBLK_VERSION_MAX),
		.credits = cpu_to_le16(TGT_CREDITS),
	};
}

static struct kblk_request good_request(struct kd_side *side)
{
	return (struct kblk_request) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.opcode = KBLK_OP_READ,
		.id = cpu_to_le64(0x1234567890ULL),
		.length = cpu_to_le32(4096),
		.rmr_context = cpu_to_le32(side->buf->rmr_context),
		.address = cpu_to_le64((uintptr_t)side->buf->va + DATA_AT),
	};
}

static struct kd_side *client(struct kunit *test)
{
	struct kd_side *side = kd_open_param(test);

	kd_setup(side, NULL);
	return side;
}

static void say_hello(struct kd_side *side, const void *hello, size_t len)
{
	KD_ASSERT_OK(side->test,
		     dat_ep_connect(side->ep, side->addr, TGT_PORT,
				    5 * USEC_PER_SEC, len, (void *)hello,
				    DAT_QOS_BEST_EFFORT,
				    DAT_CONNECT_DEFAULT_FLAG));
}

/* A client that is connected, with a receive posted for its first reply. */
static struct kd_side *connected_client(struct kunit *test)
{
	struct kd_side *side = client(test);
	struct kblk_hello hello = good_hello();
	const struct kblk_welcome *welcome;
	DAT_EVENT event;

	kd_recv(side, REPLY_AT, sizeof(struct kblk_reply), 1);
	say_hello(side, &hello, sizeof(hello));
	kd_expect_event(test, side->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			&event);
	welcome = event.event_data.connect_event_data.private_data;
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->version), KBLK_VERSION_MAX);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->credits), TGT_CREDITS);
	return side;
}

static void send_request(struct kd_side *side,
			 const struct kblk_request *request, size_t len)
{
	memset(side->buf->va + REQUEST_AT, 0, 2048);
	memcpy(side->buf->va + REQUEST_AT, request, sizeof(*request));
	kd_send(side, REQUEST_AT, len, 2);
}

/* Send a request and wait for its reply; returns the status. */
static u16 ask(struct kd_side *side, const struct kblk_request *request)
{
	const struct kblk_reply *reply = side->buf->va + REPLY_AT;
	struct kunit *test = side->test;
	u16 status;

	send_request(side, request, sizeof(*request));
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, side->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reply->magic), KBLK_MAGIC);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(reply->id), le64_to_cpu(request->id));
	KUNIT_EXPECT_EQ(test, le16_to_cpu(reply->credits), 1);
	status = le16_to_cpu(reply->status);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reply->length),
			status == KBLK_OK ? le32_to_cpu(request->length) : 0);
	kd_recv(side, REPLY_AT, sizeof(*reply), 1);
	return status;
}

static void expect_end(struct kd_side *side)
{
	KUNIT_EXPECT_TRUE_MSG(side->test,
			      kd_wait_state(side->ep,
					    DAT_EP_STATE_DISCONNECTED),
			      "the connection goes on");
}

static void expect_serving(struct kunit *test)
{
	struct kd_side *side = connected_client(test);
	struct kblk_request request = good_request(side);

	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(side->buf->va + DATA_AT, 4096,
					     FILE_SEED));
	kd_close(side);
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(tgt_has_all_buffers, NULL,
						  KD_TIMEOUT_MS),
			      "the target has lost a receive buffer");
}

/* ---- Cases --------------------------------------------------------------- */

static void blk_identify(struct kunit *test)
{
	struct kd_side *side;
	struct kblk_identify *identify;
	struct kblk_request request;

	tgt_load(test);
	side = connected_client(test);
	identify = side->buf->va + DATA_AT;
	request = good_request(side);
	request.opcode = KBLK_OP_IDENTIFY;
	request.length = cpu_to_le32(sizeof(*identify));
	KUNIT_EXPECT_EQ(test, ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(identify->size), FILE_SIZE);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(identify->block_size), 512);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(identify->flags),
			KBLK_VOLUME_READ_ONLY);
	expect_serving(test);
}

static void blk_hello_refused(struct kunit *test)
{
	struct kblk_hello bad[5];
	static const u16 status[] = {
		KBLK_HELLO_MALFORMED, KBLK_HELLO_MALFORMED,
		KBLK_HELLO_MALFORMED, KBLK_HELLO_VERSION, KBLK_HELLO_VERSION,
	};
	const struct kblk_welcome *welcome;
	struct kd_side *side;
	DAT_EVENT event;
	int i;

	tgt_load(test);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good_hello();
	bad[0].magic = 0;
	bad[1].credits = 0;
	bad[2].reserved[15] = 1;
	bad[3].version_min = cpu_to_le16(KBLK_VERSION_MAX + 1);
	bad[3].version_max = bad[3].version_min;
	bad[4].version_min = cpu_to_le16(2);
	bad[4].version_max = cpu_to_le16(1);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = client(test);
		say_hello(side, &bad[i], sizeof(bad[i]));
		kd_expect_event(test, side->conn_evd,
				DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
		welcome = event.event_data.connect_event_data.private_data;
		KUNIT_EXPECT_EQ_MSG(test, le16_to_cpu(welcome->status),
				    status[i], "hello %d", i);
		kd_close(side);
	}
	side = client(test);
	say_hello(side, NULL, 0);
	kd_expect_event(test, side->conn_evd,
			DAT_CONNECTION_EVENT_PEER_REJECTED, NULL);
	expect_serving(test);
}

static void blk_error_replies(struct kunit *test)
{
	static const struct {
		u8 opcode;
		u64 offset;
		u32 length;
		u16 status;
	} t[] = {
		{ 0, 0, 4096, KBLK_ERR_UNSUPPORTED },
		{ KBLK_OP_WRITE, 0, 4096, KBLK_ERR_UNSUPPORTED },
		{ 255, 0, 4096, KBLK_ERR_UNSUPPORTED },
		{ KBLK_OP_IDENTIFY, 512, 64, KBLK_ERR_INVALID },
		{ KBLK_OP_IDENTIFY, 0, 63, KBLK_ERR_INVALID },
		{ KBLK_OP_IDENTIFY, 0, 65, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, 0, 0, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, 0, 511, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, 1, 512, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, 0, SZ_128K + 512, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, 0, U32_MAX - 511, KBLK_ERR_INVALID },
		{ KBLK_OP_READ, FILE_SIZE, 512, KBLK_ERR_RANGE },
		{ KBLK_OP_READ, FILE_SIZE - 512, 1024, KBLK_ERR_RANGE },
		{ KBLK_OP_READ, U64_MAX - 511, 512, KBLK_ERR_RANGE },
		{ KBLK_OP_READ, BIT_ULL(63), 512, KBLK_ERR_RANGE },
		{ KBLK_OP_READ, FILE_SIZE - 512, 512, KBLK_OK },
	};
	struct kblk_request request;
	struct kd_side *side;
	int i;

	tgt_load(test);
	side = connected_client(test);
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		request = good_request(side);
		request.opcode = t[i].opcode;
		request.offset = cpu_to_le64(t[i].offset);
		request.length = cpu_to_le32(t[i].length);
		KUNIT_EXPECT_EQ_MSG(test, ask(side, &request), t[i].status,
				    "request %d", i);
	}
	expect_serving(test);
}

/* Send one message of @len bytes that ends the connection. */
static void expect_fatal(struct kunit *test, const struct kblk_request *bad,
			 size_t len)
{
	struct kd_side *side = connected_client(test);

	send_request(side, bad, len);
	expect_end(side);
	kd_close(side);
}

static void blk_malformed(struct kunit *test)
{
	static const size_t wrong_lengths[] = { 0, 1, 63, 65, 128, 129, 2048 };
	struct kblk_request bad[4] = {};
	int i;

	tgt_load(test);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		bad[i].magic = cpu_to_le32(KBLK_MAGIC);
		bad[i].opcode = KBLK_OP_READ;
	}
	bad[0].magic = ~bad[0].magic;
	bad[1].flags = 1;
	bad[2].reserved0 = cpu_to_le16(0x8000);
	bad[3].reserved[23] = 0x80;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		expect_fatal(test, &bad[i], sizeof(bad[i]));
	bad[0].magic = cpu_to_le32(KBLK_MAGIC);
	for (i = 0; i < ARRAY_SIZE(wrong_lengths); i++)
		expect_fatal(test, &bad[0], wrong_lengths[i]);
	expect_serving(test);
}

/* Memory the client has not offered: its own adapter refuses the Write. */
static void blk_bad_rmr_context(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;

	tgt_load(test);
	side = connected_client(test);
	request = good_request(side);
	request.rmr_context ^= cpu_to_le32(0x5a5a00);
	send_request(side, &request, sizeof(request));
	expect_end(side);
	expect_serving(test);
}

/* The hard high watermark: there are receives for all replies, so only that. */
static void blk_credits_ignored(struct kunit *test)
{
	struct kblk_request request;
	DAT_LMR_TRIPLET seg;
	struct kd_side *side;
	int i;

	tgt_load(test);
	side = connected_client(test);
	request = good_request(side);
	request.length = cpu_to_le32(32768);
	memcpy(side->buf->va + REQUEST_AT, &request, sizeof(request));
	seg = kd_seg(side->buf, REQUEST_AT, sizeof(request));
	for (i = 1; i < FLOOD; i++)
		kd_recv(side, REPLY_AT, sizeof(struct kblk_reply), 1);
	for (i = 0; i < FLOOD; i++)
		dat_ep_post_send(side->ep, 1, &seg, kd_cookie(3),
				 DAT_COMPLETION_DEFAULT_FLAG);
	expect_end(side);
	KUNIT_EXPECT_EQ_MSG(test, 0, shell("grep -Eq '^connections broken +1$' "
					   TGT_STATS), "not broken");
	expect_serving(test);
}

static void blk_gone_in_the_middle(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side;
	int i, n;

	tgt_load(test);
	for (n = 0; n < 10; n++) {
		side = connected_client(test);
		request = good_request(side);
		for (i = 1; i < TGT_CREDITS; i++)
			kd_recv(side, REPLY_AT, sizeof(struct kblk_reply), 1);
		for (i = 0; i < TGT_CREDITS; i++)
			send_request(side, &request, sizeof(request));
		kd_close(side);
	}
	expect_serving(test);
}

static void blk_too_many_clients(struct kunit *test)
{
	struct kblk_hello hello = good_hello();
	const struct kblk_welcome *welcome;
	struct kblk_request request;
	struct kd_side *side[5];
	DAT_EVENT event;
	int i;

	tgt_load(test);
	for (i = 0; i < 4; i++)
		side[i] = connected_client(test);
	side[4] = client(test);
	say_hello(side[4], &hello, sizeof(hello));
	kd_expect_event(test, side[4]->conn_evd,
			DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
	welcome = event.event_data.connect_event_data.private_data;
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->status), KBLK_HELLO_BUSY);
	for (i = 0; i < 4; i++) {
		request = good_request(side[i]);
		KUNIT_EXPECT_EQ(test, ask(side[i], &request), KBLK_OK);
	}
	/* The target is unloaded with them connected. */
}

static struct kunit_case blk_cases[] = {
	KUNIT_CASE_PARAM(blk_identify, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_hello_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_error_replies, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_malformed, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_bad_rmr_context, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_credits_ignored, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_gone_in_the_middle, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_too_many_clients, kd_gen_ia),
	{}
};

static struct kunit_suite blk_suite = {
	.name = "kdapl-blk-hostile",
	.test_cases = blk_cases,
};

kunit_test_suite(blk_suite);

MODULE_DESCRIPTION("KUnit suite: the block device target and hostile clients");
MODULE_LICENSE("Dual BSD/GPL");
