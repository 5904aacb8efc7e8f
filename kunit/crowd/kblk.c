// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The protocol of kdapl_blk_tgt.ko: hello, ATTACH, READ.
 */
#include <linux/err.h>
#include <linux/random.h>
#include "../../drivers/kdapl_blk/kdapl_blk_proto.h"
#include "crowd.h"

static int kblk_attach(struct crowd_conn *conn)
{
	struct kblk_request *request = crowd.buf + CROWD_HELLO_AT;
	struct kblk_attach *attach = (void *)(request + 1);
	const struct kblk_reply *reply = crowd.buf + CROWD_ANSWER_AT;
	int err;

	memset(request, 0, sizeof(*request) + sizeof(*attach));
	request->magic = cpu_to_le32(KBLK_MAGIC);
	request->opcode = KBLK_OP_ATTACH;
	request->flags = KBLK_INLINED;
	request->length = cpu_to_le32(sizeof(*attach));
	snprintf(attach->client, sizeof(attach->client), "crowd%u",
		 conn->client->number);
	strscpy(attach->subsystem, crowd_subsystem, sizeof(attach->subsystem));
	attach->namespace = cpu_to_le32(crowd_namespace);
	err = crowd_ask(conn, sizeof(*request) + sizeof(*attach));
	if (!err && reply->status != KBLK_OK) {
		pr_err("kdapl_crowd: ATTACH: status %u\n",
		       le16_to_cpu(reply->status));
		err = -EACCES;
	}
	return err;
}

static void kblk_prepare(void)
{
	struct kblk_request *request = crowd.buf + CROWD_SEND_AT;

	memset(request, 0, sizeof(*request));
	request->magic = cpu_to_le32(KBLK_MAGIC);
	request->opcode = KBLK_OP_READ;
	/* hello.credits is the limit. */
	request->flags = crowd_window > 1 ? KBLK_WANTS : 0;
	request->length = cpu_to_le32(crowd_length);
	if (crowd_length <= KBLK_INLINE) {
		request->flags |= KBLK_INLINED;
		return;
	}
	request->rmr_context = cpu_to_le32(crowd.rmr_context);
	request->address = cpu_to_le64(crowd.addr + CROWD_DATA_AT);
}

static int kblk_start(struct crowd_client *client)
{
	struct kblk_hello hello = {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version_min = cpu_to_le16(KBLK_VERSION_MIN),
		.version_max = cpu_to_le16(KBLK_VERSION_MAX),
		.credits = cpu_to_le16(min(crowd_window + 1, 65535U)),
		.reply_size = cpu_to_le32(sizeof(struct kblk_reply) +
					  KBLK_INLINE),
		.session = cpu_to_le64(get_random_u64() | 1),
		.epoch = cpu_to_le32(1),
		.features = cpu_to_le32(KBLK_FEATURE_CREDITS),
	};
	const struct kblk_reply *reply = crowd.buf + CROWD_ANSWER_AT;
	const struct kblk_welcome *welcome;
	struct crowd_conn *conn;
	int err;

	conn = crowd_connect(client, crowd_window + 1, &hello, sizeof(hello));
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	client->conn[0] = conn;
	err = kblk_attach(conn);
	if (err)
		return err;
	kblk_prepare();
	conn->window = crowd_window;
	welcome = (struct kblk_welcome *)conn->welcome;
	/* ATTACH has taken one, and its reply has brought some. */
	conn->credits = le16_to_cpu(welcome->credits) - 1 +
			le16_to_cpu(reply->credits);
	return 0;
}

static unsigned int kblk_credits(const void *message)
{
	const struct kblk_reply *reply = message;

	return le16_to_cpu(reply->credits);
}

static bool kblk_good(const void *message)
{
	const struct kblk_reply *reply = message;

	return le16_to_cpu(reply->status) == KBLK_OK;
}

const struct crowd_protocol crowd_kblk = {
	.name = "kblk",
	.start = kblk_start,
	.credits = kblk_credits,
	.good = kblk_good,
	.request_len = sizeof(struct kblk_request),
};
