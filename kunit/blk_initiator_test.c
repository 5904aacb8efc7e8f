// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko against targets that are wrong, hostile or asleep. The case is
 * the target; the module connects in a work item meanwhile.
 */
#include <linux/fs.h>
#include <linux/kmod.h>
#include <linux/module.h>
#include <linux/namei.h>
#include "../drivers/kdapl_blk/kdapl_blk_proto.h"
#include "fixture.h"

#define INI_KO		"/run/out/modules/kdapl_blk.ko"
#define INI_DISK	"/sys/kernel/config/kdapl_blk/disk"
#define INI_DEPTH	4
#define VOLUME_SIZE	SZ_1M

/* Parts of side->buf. */
#define REPLY_AT	0
#define DATA_AT		sizeof(struct kblk_reply)
#define REQUEST_AT	SZ_16K
#define REQUEST_SIZE	(sizeof(struct kblk_request) + KBLK_INLINE)

/* ---- The initiator ------------------------------------------------------- */

/* Returns the exit status. */
static int shell(char *command, int wait)
{
	char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	char *argv[4], *envp[2];

	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = command;
	argv[3] = NULL;
	envp[0] = path;
	envp[1] = NULL;
	return call_usermodehelper(argv[0], argv, envp, wait);
}

/* Write an attribute of the disk; returns an error number. */
static int ini_put(const char *attr, const char *value)
{
	struct file *file;
	char path[128];
	loff_t pos = 0;
	ssize_t n;

	snprintf(path, sizeof(path), INI_DISK "/%s", attr);
	file = filp_open(path, O_WRONLY, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	n = kernel_write(file, value, strlen(value), &pos);
	filp_close(file, NULL);
	return min_t(ssize_t, n, 0);
}

static DECLARE_COMPLETION(ini_ended);
static int ini_error;

static void ini_connect(struct work_struct *work)
{
	ini_error = ini_put("connected", "1");
	complete(&ini_ended);
}

static DECLARE_WORK(ini_work, ini_connect);

/* For an answer, ms. */
#define QUICK		"50"
#define PATIENT		"60000"

static const char *ini_patience = QUICK;
static const char *ini_give_up = "0";

/* Load the module and make a disk. */
static void ini_load(struct kd_side *side)
{
	struct kunit *test = side->test;
	char value[64];
	struct path path;

	/* scripts/check-guest runs us with the modules there. */
	if (kern_path(INI_KO, 0, &path))
		kunit_skip(test, "no " INI_KO);
	path_put(&path);
	if (kern_path(INI_DISK, 0, &path)) {
		KUNIT_ASSERT_EQ(test, 0, shell("insmod " INI_KO
					       "; mkdir " INI_DISK,
					       UMH_WAIT_PROC));
	} else {
		path_put(&path);
	}
	KUNIT_ASSERT_EQ(test, 0, ini_put("ia", side->name));
	snprintf(value, sizeof(value), "%pIS", side->addr);
	KUNIT_ASSERT_EQ(test, 0, ini_put("address", value));
	snprintf(value, sizeof(value), "%u", INI_DEPTH - 1);
	KUNIT_ASSERT_EQ(test, 0, ini_put("depth", value));
	KUNIT_ASSERT_EQ(test, 0, ini_put("subsystem", "vol"));
	KUNIT_ASSERT_EQ(test, 0, ini_put("client", "me"));
	KUNIT_ASSERT_EQ(test, 0, ini_put("queues", "1"));
	KUNIT_ASSERT_EQ(test, 0, ini_put("timeout_ms", ini_patience));
	KUNIT_ASSERT_EQ(test, 0, ini_put("keepalive_ms", "0"));
	KUNIT_ASSERT_EQ(test, 0, ini_put("reconnect_ms", "10"));
	KUNIT_ASSERT_EQ(test, 0, ini_put("give_up_ms", ini_give_up));
}

/* Have it connect, in the background: the target is the case itself. */
static void ini_connect_start(struct kd_side *side, u16 port)
{
	char value[16];

	ini_load(side);
	snprintf(value, sizeof(value), "%u", port);
	KUNIT_ASSERT_EQ(side->test, 0, ini_put("conn_qual", value));
	reinit_completion(&ini_ended);
	queue_work(system_long_wq, &ini_work);
}

/* Wait for the attempt to end; did it succeed? The disk is removed then. */
static bool ini_connect_end(struct kunit *test)
{
	KUNIT_ASSERT_NE_MSG(test, 0,
			    wait_for_completion_timeout(&ini_ended, 3 * HZ *
							KD_TIMEOUT_MS / 1000),
			    "connecting hangs");
	if (!ini_error)
		KUNIT_EXPECT_EQ(test, 0, ini_put("connected", "0"));
	return !ini_error;
}

static char *ini_command;
static int ini_status;

static void ini_run_command(struct work_struct *work)
{
	ini_status = shell(ini_command, UMH_WAIT_PROC);
	complete(&ini_ended);
}

static DECLARE_WORK(ini_command_work, ini_run_command);

static void ini_unload(struct kunit *test)
{
	ini_patience = QUICK;
	ini_give_up = "0";
	flush_work(&ini_work);
	flush_work(&ini_command_work);
	KUNIT_EXPECT_EQ_MSG(test, 0,
			    shell("test -d /sys/module/kdapl_blk || exit 0;"
				  "rmdir " INI_DISK "; rmmod kdapl_blk",
				  UMH_WAIT_PROC),
			    "the initiator does not unload");
}

/* ---- The target ---------------------------------------------------------- */

static struct kblk_welcome good_welcome(void)
{
	return (struct kblk_welcome) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version = cpu_to_le16(KBLK_VERSION_MAX),
		.credits = cpu_to_le16(INI_DEPTH),
		.request_size = cpu_to_le32(REQUEST_SIZE),
		.max_transfer = cpu_to_le32(SZ_64K),
	};
}

static u16 ini_port;

/* Welcome an initiator that connects, or is made to. */
static struct kd_side *welcome_one(struct kunit *test, bool start,
				   const struct kblk_welcome *welcome)
{
	struct kd_side *side = kd_open_param(test);
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	int i;

	kd_setup(side, NULL);
	for (i = 0; i < INI_DEPTH; i++)
		kd_recv(side, REQUEST_AT + i * REQUEST_SIZE, REQUEST_SIZE, i);
	if (start)
		ini_port = kd_port();
	psp = kd_psp(side, ini_port, DAT_PSP_CONSUMER_FLAG);
	if (start)
		ini_connect_start(side, ini_port);
	cr = kd_expect_cr(side);
	/* When it tries again nobody listens. */
	KD_ASSERT_OK(test, dat_psp_free(psp));
	KD_ASSERT_OK(test, dat_cr_accept(cr, side->ep, sizeof(*welcome),
					 (void *)welcome));
	kd_expect_event(test, side->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
	return side;
}

/* Have the initiator connect and welcome it. */
static struct kd_side *welcome_initiator(struct kunit *test,
					 const struct kblk_welcome *welcome)
{
	return welcome_one(test, true, welcome);
}

/* It has lost its connection and comes back. */
static struct kd_side *welcome_again(struct kunit *test,
				     const struct kblk_welcome *welcome)
{
	return welcome_one(test, false, welcome);
}

static struct kblk_identify good_identify(void)
{
	return (struct kblk_identify) {
		.size = cpu_to_le64(VOLUME_SIZE),
		.block_size = cpu_to_le32(512),
		.physical_block_size = cpu_to_le32(4096),
		.flags = cpu_to_le32(KBLK_VOLUME_READ_ONLY),
	};
}

/* The @n-th request, of which the first two are ATTACH and IDENTIFY. */
static const struct kblk_request *expect_request(struct kd_side *side, int n,
						 enum kblk_opcode opcode)
{
	const struct kblk_request *request = side->buf->va + REQUEST_AT +
					     n * REQUEST_SIZE;

	kd_expect_dto(side->test, side->recv_evd, n, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(side->test, request->opcode, opcode);
	return request;
}

static struct kblk_reply good_reply(const struct kblk_request *request,
				    u32 inlined)
{
	return (struct kblk_reply) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.credits = cpu_to_le16(1),
		.id = request->id,
		.length = cpu_to_le32(inlined),
	};
}

static void answer(struct kd_side *side, const struct kblk_reply *reply,
		   const struct kblk_identify *identify, size_t len)
{
	memcpy(side->buf->va + REPLY_AT, reply, sizeof(*reply));
	if (identify)
		memcpy(side->buf->va + DATA_AT, identify, sizeof(*identify));
	kd_send(side, REPLY_AT, len, 2);
}

/* As a good target does it. */
static void attach(struct kd_side *side)
{
	const struct kblk_request *request;
	const struct kblk_attach *attach;
	struct kblk_reply reply;

	request = expect_request(side, 0, KBLK_OP_ATTACH);
	attach = (const void *)(request + 1);
	KUNIT_EXPECT_STREQ(side->test, attach->client, "me");
	KUNIT_EXPECT_STREQ(side->test, attach->subsystem, "vol");
	KUNIT_EXPECT_EQ(side->test, le32_to_cpu(attach->namespace), 1);
	reply = good_reply(request, 0);
	answer(side, &reply, NULL, sizeof(reply));
	/* Before the memory is used again. */
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

static void identify_as(struct kd_side *side,
			const struct kblk_identify *identify)
{
	struct kblk_reply reply;

	reply = good_reply(expect_request(side, 1, KBLK_OP_IDENTIFY),
			   sizeof(*identify));
	answer(side, &reply, identify, sizeof(reply) + sizeof(*identify));
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

static void identify(struct kd_side *side)
{
	struct kblk_identify identify = good_identify();

	identify_as(side, &identify);
}

/* ---- Cases --------------------------------------------------------------- */

static void ini_bad_welcome(struct kunit *test)
{
	struct kblk_welcome bad[12];
	struct kd_side *side;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good_welcome();
	bad[0].magic = 0;
	bad[1].version = cpu_to_le16(KBLK_VERSION_MAX + 1);
	bad[2].status = cpu_to_le16(KBLK_HELLO_BUSY);
	bad[3].credits = 0;
	bad[4].request_size = cpu_to_le32(REQUEST_SIZE - 1);
	bad[5].max_transfer = cpu_to_le32(512);
	bad[6].features = cpu_to_le32(2);
	bad[7].reserved[7] = 1;
	bad[8].reserved0 = cpu_to_le16(1);
	bad[9].version = 0;
	bad[10].status = cpu_to_le16(U16_MAX);
	bad[11].credits = cpu_to_le16(1);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = welcome_initiator(test, &bad[i]);
		KUNIT_EXPECT_FALSE_MSG(test, ini_connect_end(test), "welcome %d",
				       i);
		kd_close(side);
	}
}

static void ini_attach_refused(struct kunit *test)
{
	struct kblk_welcome welcome = good_welcome();
	struct kblk_reply reply;
	struct kd_side *side;
	u16 status;

	for (status = KBLK_ERR_NO_VOLUME; status <= KBLK_ERR_DENIED; status++) {
		side = welcome_initiator(test, &welcome);
		reply = good_reply(expect_request(side, 0, KBLK_OP_ATTACH), 0);
		reply.status = cpu_to_le16(status);
		answer(side, &reply, NULL, sizeof(reply));
		KUNIT_EXPECT_FALSE_MSG(test, ini_connect_end(test), "status %u",
				       status);
		kd_close(side);
	}
}

static void ini_bad_identify(struct kunit *test)
{
	struct kblk_welcome welcome = good_welcome();
	struct kblk_identify bad[14];
	struct kblk_reply reply;
	struct kd_side *side;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good_identify();
	bad[0].size = 0;
	bad[1].size = cpu_to_le64(VOLUME_SIZE + 1);
	bad[2].size = cpu_to_le64(BIT_ULL(63));
	bad[3].block_size = 0;
	bad[4].block_size = cpu_to_le32(SZ_8K);
	bad[5].flags = cpu_to_le32(BIT(31));
	bad[6].reserved[23] = 1;
	bad[7].physical_block_size = cpu_to_le32(256);
	bad[8].max_discard = cpu_to_le32(4096);
	bad[9].max_write_zeroes = cpu_to_le32(513);
	bad[10].block_size = cpu_to_le32(513);
	bad[11].physical_block_size = cpu_to_le32(SZ_128K);
	bad[12].discard_granularity = cpu_to_le32(4096);
	bad[13].max_discard = cpu_to_le32(4096);
	bad[13].discard_granularity = cpu_to_le32(511);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = welcome_initiator(test, &welcome);
		attach(side);
		reply = good_reply(expect_request(side, 1, KBLK_OP_IDENTIFY),
				   sizeof(bad[i]));
		answer(side, &reply, &bad[i], sizeof(reply) + sizeof(bad[i]));
		KUNIT_EXPECT_FALSE_MSG(test, ini_connect_end(test), "identify %d",
				       i);
		kd_close(side);
	}
}

/* Replies to IDENTIFY, with its data in place. */
static void ini_bad_reply(struct kunit *test)
{
	struct kblk_identify identify = good_identify();
	struct kblk_welcome welcome = good_welcome();
	size_t len = sizeof(struct kblk_reply) + sizeof(identify);
	struct kblk_reply bad[10];
	size_t lens[10];
	struct kd_side *side;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = welcome_initiator(test, &welcome);
		attach(side);
		bad[0] = good_reply(expect_request(side, 1, KBLK_OP_IDENTIFY),
				    sizeof(identify));
		for (j = 0; j < ARRAY_SIZE(bad); j++) {
			bad[j] = bad[0];
			lens[j] = len;
		}
		bad[0].magic = 0;
		bad[1].id ^= cpu_to_le64(1);
		bad[2].id = cpu_to_le64(U64_MAX);
		bad[3].id ^= cpu_to_le64(BIT_ULL(32));
		bad[4].length = 0;
		bad[5].reserved[0] = 1;
		bad[6].status = cpu_to_le16(KBLK_ERR_IO);
		lens[7] = sizeof(struct kblk_reply) - 1;
		lens[8] = len - 1;
		bad[9].length = cpu_to_le32(U32_MAX);
		answer(side, &bad[i], &identify, lens[i]);
		KUNIT_EXPECT_FALSE_MSG(test, ini_connect_end(test), "reply %d", i);
		kd_close(side);
	}
}

/* Longer than the initiator's buffer; the same reply twice. */
static void ini_unexpected_reply(struct kunit *test)
{
	struct kblk_identify good = good_identify();
	struct kblk_welcome welcome = good_welcome();
	struct kblk_reply reply;
	struct kd_side *side;

	side = welcome_initiator(test, &welcome);
	attach(side);
	reply = good_reply(expect_request(side, 1, KBLK_OP_IDENTIFY),
			   sizeof(good));
	answer(side, &reply, &good, sizeof(reply) + KBLK_INLINE + 64);
	KUNIT_EXPECT_FALSE(test, ini_connect_end(test));
	kd_close(side);

	side = welcome_initiator(test, &welcome);
	attach(side);
	identify(side);
	kd_send(side, REPLY_AT, sizeof(reply), 3);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep,
					      DAT_EP_STATE_DISCONNECTED));
	ini_connect_end(test);
}

/* A reply before anything was asked, which uses up a receive for a good one. */
static void ini_early_reply(struct kunit *test)
{
	struct kblk_welcome welcome = good_welcome();
	struct kblk_request request = {};
	struct kblk_reply reply = good_reply(&request, 0);
	struct kd_side *side;
	u32 id;

	for (id = 0; id < INI_DEPTH; id += INI_DEPTH - 1) {
		side = welcome_initiator(test, &welcome);
		expect_request(side, 0, KBLK_OP_ATTACH);
		reply.id = cpu_to_le64(id);
		answer(side, &reply, NULL, sizeof(reply));
		KUNIT_EXPECT_FALSE_MSG(test, ini_connect_end(test), "id %u", id);
		kd_close(side);
	}
}

/* Replies to the first READ of the disk, whose data is to come with them. */
static void ini_bad_data(struct kunit *test)
{
	struct kblk_welcome welcome = good_welcome();
	const struct kblk_request *request;
	struct kblk_reply reply;
	struct kd_side *side;
	u32 asked, sent;
	int i;

	ini_patience = PATIENT;
	for (i = 0; i < 4; i++) {
		side = welcome_initiator(test, &welcome);
		attach(side);
		identify(side);
		request = expect_request(side, 2, KBLK_OP_READ);
		KUNIT_EXPECT_EQ(test, request->flags, KBLK_INLINED);
		asked = le32_to_cpu(request->length);
		sent = i == 0 ? 0 : i == 1 ? asked - 512 : asked;
		reply = good_reply(request, sent);
		if (i == 2)
			reply.status = cpu_to_le16(KBLK_ERR_IO);
		if (i == 3)
			sent = asked - 1;
		answer(side, &reply, NULL, sizeof(reply) + sent);
		KUNIT_EXPECT_TRUE_MSG(test,
				      kd_wait_state(side->ep,
						    DAT_EP_STATE_DISCONNECTED),
				      "reply %d", i);
		KUNIT_EXPECT_TRUE(test, ini_connect_end(test));
		kd_close(side);
	}
}

/* What is neither right nor wrong: the connection goes on. */
static void ini_odd_reply(struct kunit *test)
{
	struct kblk_identify good = good_identify();
	struct kblk_welcome welcome = good_welcome();
	struct kblk_reply reply;
	struct kd_side *side;

	ini_patience = PATIENT;
	side = welcome_initiator(test, &welcome);
	attach(side);
	reply = good_reply(expect_request(side, 1, KBLK_OP_IDENTIFY),
			   sizeof(good));
	/* More credits than there can be requests. */
	reply.credits = cpu_to_le16(U16_MAX);
	answer(side, &reply, &good, sizeof(reply) + sizeof(good));
	/* The test's own Send is through before the memory is used again. */
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	reply = good_reply(expect_request(side, 2, KBLK_OP_READ), 0);
	reply.status = cpu_to_le16(U16_MAX);
	answer(side, &reply, NULL, sizeof(reply));
	/* An error of the medium, whatever it is: it is asked for again. */
	expect_request(side, 3, KBLK_OP_READ);
	kd_close(side);
	KUNIT_EXPECT_TRUE(test, ini_connect_end(test));
}

/* The disk comes, but what is read from it is never answered. */
static void ini_timeout(struct kunit *test)
{
	struct kblk_welcome welcome = good_welcome();
	struct kd_side *side;

	side = welcome_initiator(test, &welcome);
	attach(side);
	identify(side);
	expect_request(side, 2, KBLK_OP_READ);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep,
					      DAT_EP_STATE_DISCONNECTED));
	KUNIT_EXPECT_TRUE(test, ini_connect_end(test));
}

/* ---- A target that serves -------------------------------------------------- */

#define READ_MUCH	"dd if=/dev/kdapl0 of=/dev/null bs=64k count=1 "	\
			"iflag=direct 2>/dev/null"
#define READ_ONE	"dd if=/dev/kdapl0 of=/dev/null bs=512 count=1 "	\
			"iflag=direct 2>/dev/null"
#define READ_ALL	"dd if=/dev/kdapl0 of=/dev/null bs=1M count=1 "	\
			"iflag=direct 2>/dev/null"
#define WRITE_ONE	"dd if=/dev/zero of=/dev/kdapl0 bs=512 count=1 "	\
			"oflag=direct conv=notrunc 2>/dev/null"
#define FLUSH_IT	"dd if=/dev/null of=/dev/kdapl0 count=0 "	\
			"conv=notrunc,fsync 2>/dev/null"

/*
 * Answer whatever request has arrived: zeroes are read, or whatever was in the
 * memory. Returns its opcode.
 */
static u8 serve_one(struct kd_side *side, unsigned int n)
{
	const struct kblk_request *request = side->buf->va + REQUEST_AT +
					     n * REQUEST_SIZE;
	u32 length = le32_to_cpu(request->length);
	u8 opcode = request->opcode;
	struct kblk_reply reply;

	if (opcode != KBLK_OP_READ || !(request->flags & KBLK_INLINED))
		length = 0;
	reply = good_reply(request, length);
	kd_recv(side, REQUEST_AT + n * REQUEST_SIZE, REQUEST_SIZE, n);
	memset(side->buf->va + DATA_AT, 0, length);
	answer(side, &reply, NULL, sizeof(reply) + length);
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	return opcode;
}

/* Serve until what was begun has ended; returns how often there was @opcode. */
static int serve(struct kd_side *side, u8 opcode)
{
	unsigned int n, ms;
	DAT_EVENT event;
	int found = 0;

	for (ms = 0; !try_wait_for_completion(&ini_ended) && ms < 3 * KD_TIMEOUT_MS;
	     ms += 10) {
		if (!kd_wait_event(side->recv_evd, &event, 10))
			continue;
		n = event.event_data.dto_completion_event_data
			.user_cookie.as_64;
		found += serve_one(side, n) == opcode;
		ms = 0;
	}
	KUNIT_ASSERT_LT_MSG(side->test, ms, 3 * KD_TIMEOUT_MS, "hangs");
	return found;
}

static void start_command(char *command)
{
	ini_command = command;
	reinit_completion(&ini_ended);
	queue_work(system_long_wq, &ini_command_work);
}

/* Run @command and serve; how often was there @opcode? */
static int serve_command(struct kd_side *side, char *command, u8 opcode)
{
	start_command(command);
	return serve(side, opcode);
}

/* Run @command, whose first request is waited for and left without an answer. */
static const struct kblk_request *begin_command(struct kd_side *side,
						char *command)
{
	DAT_EVENT event;

	start_command(command);
	KUNIT_ASSERT_TRUE(side->test, kd_wait_event(side->recv_evd, &event,
						    KD_TIMEOUT_MS));
	return side->buf->va + REQUEST_AT + REQUEST_SIZE *
	       event.event_data.dto_completion_event_data.user_cookie.as_64;
}

/*
 * The target takes more at once than the adapter can register; and it leaves it to
 * the initiator to take its memory back.
 */
static void ini_large_transfers(struct kunit *test)
{
	struct kblk_identify identify = good_identify();
	struct kblk_welcome welcome = good_welcome();
	struct kd_side *side;

	ini_patience = PATIENT;
	welcome.max_transfer = cpu_to_le32(SZ_2G);
	side = welcome_initiator(test, &welcome);
	attach(side);
	identify_as(side, &identify);
	serve(side, 0);
	KUNIT_ASSERT_EQ(test, 0, ini_error);
	KUNIT_EXPECT_NE(test, serve_command(side, READ_ALL, KBLK_OP_READ), 0);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	/* Every binding was undone, so each can be used again. */
	KUNIT_EXPECT_NE(test, serve_command(side, READ_ALL, KBLK_OP_READ), 0);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	KUNIT_EXPECT_EQ(test, 0, ini_put("connected", "0"));
}

/* A reply that does not take back the memory, or takes back something else. */
static void ini_bad_invalidation(struct kunit *test)
{
	struct kblk_identify identify = good_identify();
	struct kblk_welcome welcome = good_welcome();
	const struct kblk_request *request;
	struct kblk_reply reply;
	struct kd_side *side;
	DAT_LMR_TRIPLET seg;
	DAT_RETURN ret;
	u32 key;
	int i;

	ini_patience = PATIENT;
	welcome.features = cpu_to_le32(KBLK_FEATURE_INVALIDATE);
	for (i = 0; i < 2; i++) {
		side = welcome_initiator(test, &welcome);
		attach(side);
		identify_as(side, &identify);
		serve(side, 0);
		KUNIT_ASSERT_EQ(test, 0, ini_error);
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
		KUNIT_EXPECT_EQ(test, 0, ini_put("connected", "0"));
		kd_close(side);
	}
}

static bool ini_is_connected(void *unused)
{
	return !shell("grep -qx connected " INI_DISK "/state", UMH_WAIT_PROC);
}

/*
 * A target that was started anew has forgotten what was not flushed: then there is
 * no flush that succeeds. One that has only been away gets it.
 */
static void ini_started_anew(struct kunit *test)
{
	struct kblk_identify identify = good_identify();
	struct kblk_welcome welcome = good_welcome();
	struct kd_side *side;
	u64 instance;

	ini_patience = PATIENT;
	identify.flags = cpu_to_le32(KBLK_VOLUME_CACHE);
	side = welcome_initiator(test, &welcome);
	attach(side);
	identify_as(side, &identify);
	serve(side, 0);
	KUNIT_ASSERT_EQ(test, 0, ini_error);
	KUNIT_EXPECT_EQ(test, serve_command(side, FLUSH_IT, KBLK_OP_FLUSH), 1);
	for (instance = 0; instance < 2; instance++) {
		KUNIT_EXPECT_EQ(test, serve_command(side, WRITE_ONE, KBLK_OP_WRITE),
				1);
		KUNIT_EXPECT_EQ(test, ini_status, 0);
		kd_close(side);
		identify.instance = cpu_to_le64(instance);
		side = welcome_again(test, &welcome);
		attach(side);
		identify_as(side, &identify);
		KUNIT_EXPECT_TRUE(test, kd_wait_until(ini_is_connected, NULL,
						      KD_TIMEOUT_MS));
		KUNIT_EXPECT_EQ(test, serve_command(side, FLUSH_IT, KBLK_OP_FLUSH),
				!instance);
		KUNIT_EXPECT_EQ(test, !ini_status, !instance);
	}
	KUNIT_EXPECT_EQ(test, 0, ini_put("connected", "0"));
}

/* On a bad wire a request outlives more connections than one that is to blame. */
static void ini_bad_wire(struct kunit *test)
{
	struct kblk_welcome welcome = good_welcome();
	struct kd_side *side;
	int i;

	ini_patience = PATIENT;
	ini_give_up = "600000";
	side = welcome_initiator(test, &welcome);
	attach(side);
	identify(side);
	serve(side, 0);
	kd_close(side);
	start_command(READ_ONE);
	for (i = 0; i <= 12; i++) {
		side = welcome_again(test, &welcome);
		attach(side);
		identify(side);
		if (i == 12)
			break;
		expect_request(side, 2, KBLK_OP_READ);
		kd_close(side);
	}
	KUNIT_EXPECT_EQ(test, serve(side, KBLK_OP_READ), 1);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	KUNIT_EXPECT_EQ(test, 0, ini_put("connected", "0"));
}

static struct kunit_case ini_cases[] = {
	KUNIT_CASE_PARAM(ini_bad_welcome, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_attach_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_identify, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_unexpected_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_early_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_data, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_odd_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_timeout, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_large_transfers, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_invalidation, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_started_anew, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_wire, kd_gen_ia),
	{}
};

static struct kunit_suite ini_suite = {
	.name = "kdapl-blk-initiator",
	.test_cases = ini_cases,
	.exit = ini_unload,
};

kunit_test_suite(ini_suite);

MODULE_DESCRIPTION("KUnit suite: the block device initiator and hostile targets");
MODULE_LICENSE("Dual BSD/GPL");
