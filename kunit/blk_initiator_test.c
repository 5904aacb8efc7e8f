// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko against targets that are wrong, hostile or asleep. The case is
 * the target; the module is loaded by a helper process meanwhile.
 */
#include <linux/kmod.h>
#include <linux/module.h>
#include "../drivers/kdapl_blk/kdapl_blk_proto.h"
#include "fixture.h"

#define INI_KO		"/run/out/modules/kdapl_blk.ko"
#define INI_STATUS	"/tmp/kdapl_blk_status"
#define INI_DEPTH	4
#define VOLUME_SIZE	SZ_1M

/* Parts of side->buf. */
#define REPLY_AT	0
#define DATA_AT		4096
#define REQUEST_AT	8192

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

static void ini_load_start(struct kd_side *side, u16 port)
{
	char command[256];

	if (shell("rm -f " INI_STATUS "; test -e " INI_KO, UMH_WAIT_PROC))
		kunit_skip(side->test, "no " INI_KO);
	snprintf(command, sizeof(command),
		 "insmod %s ia=%s addr=%pIS port=%u depth=%u timeout=1; echo $? >%s.new; mv %s.new %s",
		 INI_KO, side->name, side->addr, port, INI_DEPTH, INI_STATUS,
		 INI_STATUS, INI_STATUS);
	KUNIT_ASSERT_EQ(side->test, 0, shell(command, UMH_WAIT_EXEC));
}

static bool ini_load_has_ended(void *unused)
{
	return !shell("test -e " INI_STATUS, UMH_WAIT_PROC);
}

/* Wait for insmod; was the module loaded? It is unloaded then. */
static bool ini_load_end(struct kunit *test)
{
	KUNIT_ASSERT_TRUE_MSG(test, kd_wait_until(ini_load_has_ended, NULL,
						  3 * KD_TIMEOUT_MS),
			      "insmod hangs");
	if (shell("grep -qx 0 " INI_STATUS, UMH_WAIT_PROC))
		return false;
	KUNIT_EXPECT_EQ_MSG(test, 0, shell("rmmod kdapl_blk", UMH_WAIT_PROC),
			    "the initiator does not unload");
	return true;
}

/* ---- The target ---------------------------------------------------------- */

static struct kblk_welcome good_welcome(void)
{
	return (struct kblk_welcome) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version = cpu_to_le16(KBLK_VERSION_MAX),
		.credits = cpu_to_le16(INI_DEPTH),
		.request_size = cpu_to_le16(sizeof(struct kblk_request)),
		.max_transfer = cpu_to_le32(SZ_64K),
	};
}

/* Have the initiator connect and welcome it. */
static struct kd_side *welcome_initiator(struct kunit *test,
					 const struct kblk_welcome *welcome)
{
	struct kd_side *side = kd_open_param(test);
	u16 port = kd_port();
	DAT_CR_HANDLE cr;
	int i;

	kd_setup(side, NULL);
	for (i = 0; i < INI_DEPTH; i++)
		kd_recv(side, REQUEST_AT + i * sizeof(struct kblk_request),
			sizeof(struct kblk_request), i);
	kd_psp(side, port, DAT_PSP_CONSUMER_FLAG);
	ini_load_start(side, port);
	cr = kd_expect_cr(side);
	KD_ASSERT_OK(test, dat_cr_accept(cr, side->ep, sizeof(*welcome),
					 (void *)welcome));
	kd_expect_event(test, side->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
	return side;
}

static struct kblk_identify good_identify(void)
{
	return (struct kblk_identify) {
		.size = cpu_to_le64(VOLUME_SIZE),
		.block_size = cpu_to_le32(512),
		.flags = cpu_to_le32(KBLK_VOLUME_READ_ONLY),
	};
}

static struct kblk_reply good_reply(const struct kblk_request *request)
{
	return (struct kblk_reply) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.credits = cpu_to_le16(1),
		.id = request->id,
		.length = request->length,
	};
}

/* Wait for the first request, which is to be IDENTIFY. */
static const struct kblk_request *expect_identify(struct kd_side *side)
{
	const struct kblk_request *request = side->buf->va + REQUEST_AT;

	kd_expect_dto(side->test, side->recv_evd, 0, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(side->test, request->opcode, KBLK_OP_IDENTIFY);
	return request;
}

static void answer(struct kd_side *side, const struct kblk_request *request,
		   const struct kblk_identify *identify,
		   const struct kblk_reply *reply, size_t reply_len)
{
	DAT_LMR_TRIPLET seg = kd_seg(side->buf, DATA_AT, sizeof(*identify));
	DAT_RMR_TRIPLET remote = {
		.virtual_address = le64_to_cpu(request->address),
		.segment_length = sizeof(*identify),
		.rmr_context = le32_to_cpu(request->rmr_context),
	};

	memcpy(side->buf->va + DATA_AT, identify, sizeof(*identify));
	memcpy(side->buf->va + REPLY_AT, reply, sizeof(*reply));
	KD_ASSERT_OK(side->test,
		     dat_ep_post_rdma_write(side->ep, 1, &seg, kd_cookie(1),
					    &remote,
					    DAT_COMPLETION_DEFAULT_FLAG));
	kd_send(side, REPLY_AT, reply_len, 2);
}

/* ---- Cases --------------------------------------------------------------- */

static void ini_bad_welcome(struct kunit *test)
{
	struct kblk_welcome bad[8];
	struct kd_side *side;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good_welcome();
	bad[0].magic = 0;
	bad[1].version = cpu_to_le16(KBLK_VERSION_MAX + 1);
	bad[2].status = cpu_to_le16(KBLK_HELLO_BUSY);
	bad[3].credits = 0;
	bad[4].request_size = cpu_to_le16(63);
	bad[5].max_transfer = cpu_to_le32(512);
	bad[6].features = cpu_to_le32(1);
	bad[7].reserved[11] = 1;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = welcome_initiator(test, &bad[i]);
		KUNIT_EXPECT_FALSE_MSG(test, ini_load_end(test), "welcome %d",
				       i);
		kd_close(side);
	}
}

static void ini_bad_identify(struct kunit *test)
{
	struct kblk_welcome welcome = good_welcome();
	const struct kblk_request *request;
	struct kblk_identify bad[7];
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
	bad[6].reserved[47] = 1;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		side = welcome_initiator(test, &welcome);
		request = expect_identify(side);
		reply = good_reply(request);
		answer(side, request, &bad[i], &reply, sizeof(reply));
		KUNIT_EXPECT_FALSE_MSG(test, ini_load_end(test), "identify %d",
				       i);
		kd_close(side);
	}
}

static void ini_bad_reply(struct kunit *test)
{
	struct kblk_identify identify = good_identify();
	struct kblk_welcome welcome = good_welcome();
	const struct kblk_request *request;
	struct kblk_reply reply;
	struct kd_side *side;
	int i;

	for (i = 0; i < 8; i++) {
		side = welcome_initiator(test, &welcome);
		request = expect_identify(side);
		reply = good_reply(request);
		switch (i) {
		case 0:
			reply.magic = 0;
			break;
		case 1:
			reply.id ^= cpu_to_le64(1);
			break;
		case 2:
			reply.id = cpu_to_le64(U64_MAX);
			break;
		case 3:
			reply.id ^= cpu_to_le64(BIT_ULL(32));
			break;
		case 4:
			reply.length = 0;
			break;
		case 5:
			reply.reserved[0] = 1;
			break;
		case 6:
			reply.status = cpu_to_le16(KBLK_ERR_IO);
			break;
		}
		answer(side, request, &identify, &reply,
		       i == 7 ? 31 : sizeof(reply));
		KUNIT_EXPECT_FALSE_MSG(test, ini_load_end(test), "reply %d", i);
		kd_close(side);
	}
}

/* Longer than the initiator's buffer; the same reply twice. */
static void ini_unexpected_reply(struct kunit *test)
{
	struct kblk_identify identify = good_identify();
	struct kblk_welcome welcome = good_welcome();
	const struct kblk_request *request;
	struct kblk_reply reply;
	struct kd_side *side;

	side = welcome_initiator(test, &welcome);
	request = expect_identify(side);
	reply = good_reply(request);
	answer(side, request, &identify, &reply, 64);
	KUNIT_EXPECT_FALSE(test, ini_load_end(test));
	kd_close(side);

	side = welcome_initiator(test, &welcome);
	request = expect_identify(side);
	reply = good_reply(request);
	answer(side, request, &identify, &reply, sizeof(reply));
	kd_send(side, REPLY_AT, sizeof(reply), 3);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep,
					      DAT_EP_STATE_DISCONNECTED));
	ini_load_end(test);
}

/* The disk comes, but what is read from it is never answered. */
static void ini_timeout(struct kunit *test)
{
	struct kblk_identify identify = good_identify();
	struct kblk_welcome welcome = good_welcome();
	const struct kblk_request *request;
	struct kblk_reply reply;
	struct kd_side *side;

	side = welcome_initiator(test, &welcome);
	request = expect_identify(side);
	reply = good_reply(request);
	answer(side, request, &identify, &reply, sizeof(reply));
	KUNIT_EXPECT_TRUE(test, kd_wait_state(side->ep,
					      DAT_EP_STATE_DISCONNECTED));
	KUNIT_EXPECT_TRUE(test, ini_load_end(test));
}

static struct kunit_case ini_cases[] = {
	KUNIT_CASE_PARAM(ini_bad_welcome, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_identify, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_unexpected_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_timeout, kd_gen_ia),
	{}
};

static struct kunit_suite ini_suite = {
	.name = "kdapl-blk-initiator",
	.test_cases = ini_cases,
};

kunit_test_suite(ini_suite);

MODULE_DESCRIPTION("KUnit suite: the block device initiator and hostile targets");
MODULE_LICENSE("Dual BSD/GPL");
