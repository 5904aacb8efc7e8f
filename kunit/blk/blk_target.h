/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the suites of kdapl_blk_tgt.ko share: each case loads the target, talks
 * to it in raw DTOs, and in the end expects that it serves other clients and
 * has all its receive buffers.
 */
#ifndef KDAPL_KUNIT_BLK_TARGET_H
#define KDAPL_KUNIT_BLK_TARGET_H

#include <linux/fs.h>
#include <linux/module.h>
#include "../../drivers/kdapl_blk/kdapl_blk_proto.h"
#include "fixture.h"
#include "shell.h"

#define TGT_KO		"/run/out/modules/kdapl_blk_tgt.ko"
#define TGT		"/sys/kernel/config/kdapl_blk_tgt"
#define TGT_NS		TGT "/subsystems/vol/namespaces/1"
#define TGT_STATS	TGT "/ports/1/stats"
#define TGT_FILE	"/tmp/kdapl_blk_test"
#define TGT_PORT	5100
#define TGT_CREDITS	8

#define FILE_SIZE	SZ_1M
#define FILE_SEED	42

/* Parts of side->buf. */
#define REQUEST_AT	0
#define REPLY_AT	SZ_8K
#define INLINE_AT	(REPLY_AT + sizeof(struct kblk_reply))
#define DATA_AT		SZ_16K

/* The features that clients ask for. */
static u32 hello_features;

/* ---- The target ---------------------------------------------------------- */

static inline void make_file(struct kunit *test)
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

static inline void tgt_unload(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ_MSG(test, 0,
			    shell("set -e; cd " TGT "; rm ports/1/subsystems/vol;"
				  "rmdir ports/1 subsystems/vol/namespaces/1;"
				  "rm -f subsystems/vol/allowed_clients/friend;"
				  "rmdir subsystems/vol clients/friend; cd /;"
				  "rmmod kdapl_blk_tgt"),
			    "the target does not unload");
}

/*
 * Load the target and export a volume. @more: further commands, run in the
 * directory of the port.
 */
static inline void tgt_load_with(struct kunit *test, const char *more)
{
	char command[1024];

	hello_features = 0;
	/* scripts/guest/check puts the modules there. */
	if (shell("test -e " TGT_KO))
		kunit_skip(test, "no " TGT_KO);
	make_file(test);
	snprintf(command, sizeof(command),
		 "set -e; insmod " TGT_KO "; cd " TGT ";"
		 "mkdir clients/friend subsystems/vol ports/1;"
		 "mkdir subsystems/vol/namespaces/1;"
		 " echo 1 >subsystems/vol/allow_any_client;"
		 " cd subsystems/vol/namespaces/1; echo " TGT_FILE " >path;"
		 " echo 1 >enable; cd ../../../../ports/1; echo %s >ia;"
		 " echo %u >conn_qual; echo %u >credits; echo 2 >io_depth;"
		 " echo 2 >buffers; echo 2 >pages; echo 0 >penalty_ms;"
		 " echo 75 >srq_size;"
		 " echo 0 >srq_per_conn; echo 75 >srq_max; %s;"
		 " ln -s " TGT "/subsystems/vol subsystems/vol",
		 *(const char * const *)test->param_value, TGT_PORT,
		 TGT_CREDITS, more);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, tgt_unload,
							   test));
}

static inline void tgt_load(struct kunit *test)
{
	tgt_load_with(test, "true");
}

/* Unload the target and load it again. */
static inline void tgt_reload(struct kunit *test)
{
	kunit_release_action(test, tgt_unload, test);
	tgt_load(test);
}

static inline bool tgt_has_all_buffers(void *unused)
{
	/* SRQ buffers 77 max, 70 available, 70 outstanding, 7 retired */
	return !shell("set -- $(grep 'SRQ buffers' " TGT_STATS ");"
		      "[ $5 = $7 ] && [ $(($7 + $9)) = $3 ]");
}

static inline bool tgt_has_cut_off(void *unused)
{
	return !shell("grep -Eq '^clients cut off +1$' " TGT_STATS);
}

/* ---- A client ------------------------------------------------------------ */

static u64 session;

static inline struct kblk_hello good_hello(void)
{
	return (struct kblk_hello) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version_min = cpu_to_le16(KBLK_VERSION_MIN),
		.version_max = cpu_to_le16(KBLK_VERSION_MAX),
		.credits = cpu_to_le16(TGT_CREDITS),
		.reply_size = cpu_to_le32(sizeof(struct kblk_reply) +
					  KBLK_INLINE),
		/*
		 * Each connection has a session of its own, as if it were
		 * another disk.
		 */
		.session = cpu_to_le64(++session),
		.epoch = cpu_to_le32(5),
		.features = cpu_to_le32(hello_features),
	};
}

static inline struct kblk_request good_request(struct kd_side *side)
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

static inline struct kd_side *client(struct kunit *test)
{
	struct kd_side *side = kd_open_param(test);

	kd_setup(side, NULL);
	return side;
}

static inline void say_hello(struct kd_side *side, const void *hello, size_t len)
{
	KD_ASSERT_OK(side->test,
		     dat_ep_connect(side->ep, side->addr, TGT_PORT,
				    KD_TIMEOUT_MS * USEC_PER_MSEC, len, (void *)hello,
				    DAT_QOS_BEST_EFFORT,
				    DAT_CONNECT_DEFAULT_FLAG));
}

static inline const struct kblk_welcome *
expect_welcome(struct kd_side *side, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;

	kd_expect_event(side->test, side->conn_evd, number, &event);
	return event.event_data.connect_event_data.private_data;
}

static inline void post_reply_buffer(struct kd_side *side)
{
	kd_recv(side, REPLY_AT, sizeof(struct kblk_reply) + KBLK_INLINE, 1);
}

/* Connect a client, with a receive posted for its first reply. */
static inline struct kd_side *
welcome_client(struct kunit *test, const struct kblk_hello *hello)
{
	struct kd_side *side = client(test);
	const struct kblk_welcome *welcome;

	post_reply_buffer(side);
	say_hello(side, hello, sizeof(*hello));
	welcome = expect_welcome(side, DAT_CONNECTION_EVENT_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->version), KBLK_VERSION_MAX);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->credits), TGT_CREDITS);
	return side;
}

static inline void send_request(struct kd_side *side,
				const struct kblk_request *request, size_t len)
{
	memcpy(side->buf->va + REQUEST_AT, request, sizeof(*request));
	kd_send(side, REQUEST_AT, len, 2);
}

/*
 * Send a request, with its inline data, and wait for the reply. Return the
 * status.
 */
static inline u16 ask(struct kd_side *side, const struct kblk_request *request)
{
	const struct kblk_reply *reply = side->buf->va + REPLY_AT;
	u32 length = le32_to_cpu(request->length);
	struct kunit *test = side->test;
	u32 sent = 0, inlined = 0;
	u16 status;

	if (request->flags & KBLK_INLINED &&
	    (request->opcode == KBLK_OP_WRITE ||
	     request->opcode == KBLK_OP_ATTACH))
		sent = length;
	send_request(side, request, sizeof(*request) + sent);
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, side->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reply->magic), KBLK_MAGIC);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(reply->id), le64_to_cpu(request->id));
	KUNIT_EXPECT_EQ(test, le16_to_cpu(reply->credits), 1);
	status = le16_to_cpu(reply->status);
	if (status == KBLK_OK && request->flags & KBLK_INLINED && !sent)
		inlined = length;
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reply->length), inlined);
	post_reply_buffer(side);
	return status;
}

static inline u16 attach_as(struct kd_side *side, const char *name,
			    const char *subsystem, u32 namespace,
			    u32 keepalive_ms)
{
	struct kblk_attach *attach = side->buf->va + REQUEST_AT +
				     sizeof(struct kblk_request);
	struct kblk_request request = good_request(side);

	request.opcode = KBLK_OP_ATTACH;
	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(sizeof(*attach));
	memset(attach, 0, sizeof(*attach));
	strscpy(attach->client, name, sizeof(attach->client));
	strscpy(attach->subsystem, subsystem, sizeof(attach->subsystem));
	attach->namespace = cpu_to_le32(namespace);
	attach->keepalive_ms = cpu_to_le32(keepalive_ms);
	return ask(side, &request);
}

static inline struct kd_side *connected_client(struct kunit *test)
{
	struct kblk_hello hello = good_hello();
	struct kd_side *side = welcome_client(test, &hello);

	KUNIT_EXPECT_EQ(test, attach_as(side, "somebody", "vol", 1, 0),
			KBLK_OK);
	return side;
}

static inline void expect_end(struct kd_side *side)
{
	KUNIT_EXPECT_TRUE_MSG(side->test,
			      kd_wait_state(side->ep,
					    DAT_EP_STATE_DISCONNECTED),
			      "the connection goes on");
}

static inline void expect_serving(struct kunit *test)
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

#endif /* KDAPL_KUNIT_BLK_TARGET_H */
