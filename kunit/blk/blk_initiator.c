// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_kunit.ko: kdapl_blk.ko loaded with a disk, and the answers of its
 * target, see blk_initiator.h.
 */
#include <linux/fs.h>
#include <linux/module.h>
#include "blk_command.h"
#include "blk_initiator.h"
#include "blk_secret.h"
#include "files.h"

/* ---- The initiator ------------------------------------------------------- */

/* Write an attribute of the disk. Return 0 or an error number. */
int ini_put(const char *attr, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), INI_DISK "/%s", attr);
	return kdb_write(path, value);
}
EXPORT_SYMBOL_GPL(ini_put);

DECLARE_COMPLETION(ini_ended);
EXPORT_SYMBOL_GPL(ini_ended);

int ini_error;
EXPORT_SYMBOL_GPL(ini_error);

static void ini_connect(struct work_struct *work)
{
	ini_error = ini_put("connected", "1");
	complete(&ini_ended);
}

static DECLARE_WORK(ini_work, ini_connect);

static const struct ini_attrs ini_defaults = {
	.timeout_ms = QUICK,
	.give_up_ms = "0",
	.connect_timeout_ms = "10000",
	.reconnect_max_ms = "1000",
	.uuid = "\n",
	.keepalive_ms = "0",
	.secret = "\n",
	.read_queues = "0",
	.share = "0",
	.depth = "3",	/* INI_DEPTH, less the slot for admin requests */
};

struct ini_attrs ini_attrs;
EXPORT_SYMBOL_GPL(ini_attrs);

/* To be called before each case. */
int ini_init(struct kunit *test)
{
	ini_attrs = ini_defaults;
	return 0;
}
EXPORT_SYMBOL_GPL(ini_init);

/* Load the module, and make a disk of the target at @port of @side. */
void kdb_make_disk(struct kd_side *side, u16 port)
{
	struct kunit *test = side->test;
	char value[64];

	/* scripts/guest/check puts the modules there. */
	if (!kd_file_exists(INI_KO))
		kunit_skip(test, "no " INI_KO);
	if (!kd_file_exists(INI_DISK))
		KUNIT_ASSERT_EQ(test, 0, shell("insmod " INI_KO
					       "; mkdir " INI_DISK));
	KUNIT_ASSERT_EQ(test, 0, ini_put("ia", side->name));
	snprintf(value, sizeof(value), "%pIS", side->addr);
	KUNIT_ASSERT_EQ(test, 0, ini_put("address", value));
	KUNIT_ASSERT_EQ(test, 0, ini_put("depth", ini_attrs.depth));
	KUNIT_ASSERT_EQ(test, 0, ini_put("subsystem", "vol"));
	KUNIT_ASSERT_EQ(test, 0, ini_put("client", "me"));
	KUNIT_ASSERT_EQ(test, 0, ini_put("uuid", ini_attrs.uuid));
	KUNIT_ASSERT_EQ(test, 0, ini_put("secret", ini_attrs.secret));
	KUNIT_ASSERT_EQ(test, 0, ini_put("queues", "1"));
	KUNIT_ASSERT_EQ(test, 0, ini_put("read_queues", ini_attrs.read_queues));
	KUNIT_ASSERT_EQ(test, 0, ini_put("share", ini_attrs.share));
	KUNIT_ASSERT_EQ(test, 0, ini_put("timeout_ms", ini_attrs.timeout_ms));
	KUNIT_ASSERT_EQ(test, 0, ini_put("connect_timeout_ms",
					 ini_attrs.connect_timeout_ms));
	KUNIT_ASSERT_EQ(test, 0, ini_put("keepalive_ms", ini_attrs.keepalive_ms));
	KUNIT_ASSERT_EQ(test, 0, ini_put("reconnect_ms", "10"));
	KUNIT_ASSERT_EQ(test, 0, ini_put("reconnect_max_ms",
					 ini_attrs.reconnect_max_ms));
	KUNIT_ASSERT_EQ(test, 0, ini_put("give_up_ms", ini_attrs.give_up_ms));
	snprintf(value, sizeof(value), "%u", port);
	KUNIT_ASSERT_EQ(test, 0, ini_put("conn_qual", value));
}
EXPORT_SYMBOL_GPL(kdb_make_disk);

/*
 * Have the module connect in the background, since the case itself is the
 * target.
 */
void ini_connect_start(struct kd_side *side, u16 port)
{
	kdb_make_disk(side, port);
	reinit_completion(&ini_ended);
	queue_work(system_long_wq, &ini_work);
}
EXPORT_SYMBOL_GPL(ini_connect_start);

/*
 * Wait until the attempt has ended. Return whether it succeeded; the disk is
 * removed in either case.
 */
bool ini_connect_end(struct kunit *test)
{
	KUNIT_ASSERT_NE_MSG(test, 0,
			    wait_for_completion_timeout(&ini_ended, 3 * HZ *
							KD_TIMEOUT_MS / 1000),
			    "connecting hangs");
	if (!ini_error)
		KUNIT_EXPECT_EQ(test, 0, ini_put("connected", "0"));
	return !ini_error;
}
EXPORT_SYMBOL_GPL(ini_connect_end);

void ini_unload(struct kunit *test)
{
	flush_work(&ini_work);
	if (!kd_file_exists("/sys/module/kdapl_blk"))
		return;
	shell("rmdir " INI_DISK " 2>/dev/null");
	kdb_unload_initiator(test);
}
EXPORT_SYMBOL_GPL(ini_unload);

/* ---- The target ---------------------------------------------------------- */

struct kblk_welcome kdb_good_welcome(void)
{
	return (struct kblk_welcome) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version = cpu_to_le16(KBLK_VERSION_MAX),
		.credits = cpu_to_le16(INI_DEPTH),
		.request_size = cpu_to_le32(REQUEST_SIZE),
		.max_transfer = cpu_to_le32(SZ_64K),
	};
}
EXPORT_SYMBOL_GPL(kdb_good_welcome);

u16 ini_port;
EXPORT_SYMBOL_GPL(ini_port);

struct kblk_hello ini_hello;
EXPORT_SYMBOL_GPL(ini_hello);

/* Make a target that nobody can connect to yet. */
struct kd_side *kdb_new_target(struct kunit *test)
{
	struct kd_side *side = kd_open_param(test);
	int i;

	kd_setup(side, NULL);
	for (i = 0; i < INI_DEPTH; i++)
		kd_recv(side, REQUEST_AT + i * REQUEST_SIZE, REQUEST_SIZE, i);
	return side;
}
EXPORT_SYMBOL_GPL(kdb_new_target);

/*
 * Have a target that listens at @psp accept the initiator, and listen no more. @welcome:
 * NULL for a good one.
 */
void kdb_accept(struct kd_side *side, DAT_PSP_HANDLE psp,
		const struct kblk_welcome *welcome)
{
	struct kblk_welcome good = kdb_good_welcome();
	DAT_CR_HANDLE cr = kd_expect_cr(side);
	struct kunit *test = side->test;
	DAT_CR_PARAM param;

	KD_ASSERT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	memcpy(&ini_hello, param.private_data, sizeof(ini_hello));
	KD_ASSERT_OK(test, dat_psp_free(psp));
	if (!welcome)
		welcome = &good;
	KD_ASSERT_OK(test, dat_cr_accept(cr, side->ep, sizeof(*welcome),
					 (void *)welcome));
	kd_expect_event(test, side->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
}
EXPORT_SYMBOL_GPL(kdb_accept);

/*
 * Have a target accept an initiator; when that tries again nobody listens. @start: have
 * it connect first. @welcome: NULL for a good one.
 */
void kdb_welcome_at(struct kd_side *side, bool start,
		    const struct kblk_welcome *welcome)
{
	DAT_PSP_HANDLE psp;

	if (start)
		ini_port = kd_port();
	psp = kd_psp(side, ini_port, DAT_PSP_CONSUMER_FLAG);
	if (start)
		ini_connect_start(side, ini_port);
	kdb_accept(side, psp, welcome);
}
EXPORT_SYMBOL_GPL(kdb_welcome_at);

struct kd_side *kdb_welcome_one(struct kunit *test, bool start,
				const struct kblk_welcome *welcome)
{
	struct kd_side *side = kdb_new_target(test);

	kdb_welcome_at(side, start, welcome);
	return side;
}
EXPORT_SYMBOL_GPL(kdb_welcome_one);

struct kblk_identify kdb_good_identify(void)
{
	return (struct kblk_identify) {
		.size = cpu_to_le64(VOLUME_SIZE),
		.block_size = cpu_to_le32(512),
		.physical_block_size = cpu_to_le32(4096),
		.flags = cpu_to_le32(KBLK_VOLUME_READ_ONLY),
	};
}
EXPORT_SYMBOL_GPL(kdb_good_identify);

/* Wait for the @n-th request. The first two are ATTACH and IDENTIFY. */
const struct kblk_request *
kdb_expect_request(struct kd_side *side, int n, enum kblk_opcode opcode)
{
	const struct kblk_request *request = side->buf->va + REQUEST_AT +
					     n * REQUEST_SIZE;

	kd_expect_dto(side->test, side->recv_evd, n, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(side->test, request->opcode, opcode);
	return request;
}
EXPORT_SYMBOL_GPL(kdb_expect_request);

struct kblk_reply kdb_good_reply(const struct kblk_request *request,
				 u32 inlined)
{
	return (struct kblk_reply) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.credits = cpu_to_le16(1),
		.id = request->id,
		.length = cpu_to_le32(inlined),
	};
}
EXPORT_SYMBOL_GPL(kdb_good_reply);

void kdb_answer(struct kd_side *side, const struct kblk_reply *reply,
		const struct kblk_identify *identify, size_t len)
{
	memcpy(side->buf->va + REPLY_AT, reply, sizeof(*reply));
	if (identify)
		memcpy(side->buf->va + DATA_AT, identify, sizeof(*identify));
	kd_send(side, REPLY_AT, len, 2);
}
EXPORT_SYMBOL_GPL(kdb_answer);

/* Answer ATTACH as a good target does. */
void kdb_attach(struct kd_side *side)
{
	const struct kblk_request *request;
	const struct kblk_attach *attach;
	struct kblk_reply reply;

	request = kdb_expect_request(side, 0, KBLK_OP_ATTACH);
	attach = (const void *)(request + 1);
	KUNIT_EXPECT_STREQ(side->test, attach->client, "me");
	KUNIT_EXPECT_STREQ(side->test, attach->subsystem, "vol");
	KUNIT_EXPECT_EQ(side->test, le32_to_cpu(attach->namespace), 1);
	/* An older target takes nothing but zeroes. */
	KUNIT_EXPECT_NULL(side->test, memchr_inv(attach->host, 0,
						 sizeof(attach->host) +
						 sizeof(attach->reserved)));
	reply = kdb_good_reply(request, 0);
	kdb_answer(side, &reply, NULL, sizeof(reply));
	/* Wait for the completion before the memory is used again. */
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}
EXPORT_SYMBOL_GPL(kdb_attach);

/* @identify: NULL for a good one */
void kdb_identify_as(struct kd_side *side, const struct kblk_identify *identify)
{
	struct kblk_identify good = kdb_good_identify();
	struct kblk_reply reply;

	reply = kdb_good_reply(kdb_expect_request(side, 1, KBLK_OP_IDENTIFY),
			       sizeof(*identify));
	kdb_answer(side, &reply, identify ?: &good,
		   sizeof(reply) + sizeof(*identify));
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}
EXPORT_SYMBOL_GPL(kdb_identify_as);

/* Have the initiator connect, accept it, and answer ATTACH and IDENTIFY. */
struct kd_side *kdb_welcome_attached(struct kunit *test)
{
	struct kd_side *side = kdb_welcome_one(test, true, NULL);

	kdb_attach(side);
	return side;
}
EXPORT_SYMBOL_GPL(kdb_welcome_attached);
