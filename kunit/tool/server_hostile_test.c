// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_test.ko: clients of its server that no kdapl-test is. Each costs
 * itself its connection, and the server goes on.
 */
#include <linux/module.h>
#include <linux/prandom.h>
#include "../../drivers/kdapl_test/proto.h"
#include "fixture.h"
#include "peer.h"
#include "shell.h"

/* scripts/guest/check puts the modules there. */
#define KO	"/run/out/modules/kdapl_test.ko"
#define SAID	"/tmp/kdapl-test-said"
#define PID	"/tmp/kdapl-test-pid"
#define MESSAGES	24

static bool server_there;

static int server_load(struct kunit_suite *suite)
{
	server_there = !shell("test -e " KO " && insmod " KO);
	return 0;
}

static void server_unload(struct kunit_suite *suite)
{
	if (server_there)
		WARN_ON(shell("rmmod kdapl_test"));
}

static int server_init(struct kunit *test)
{
	if (!server_there)
		kunit_skip(test, "no " KO);
	return 0;
}

/* ---- The server ------------------------------------------------------------------- */

/* Wait until the server says a line that begins with these words. */
static bool server_says(const char *words)
{
	char command[96];

	snprintf(command, sizeof(command),
		 "timeout 30 grep -qm1 '^%s' <>" SAID, words);
	return !shell(command);
}

/* Start a server on the adapter of @s; what it says goes to a pipe. */
static u16 server_up(struct kd_side *s)
{
	u16 port = kd_port();
	char command[320];

	snprintf(command, sizeof(command),
		 "rm -f " SAID "; mkfifo " SAID "; exec 4<>" SAID "; (\n"
		 "exec 3<>/dev/kdapl_test\n"
		 "echo 'server ia=%s host=%pISc port=%u max_size=65536 max_eps=8' >&3\n"
		 "exec cat <&3 >&4) & echo $! >" PID,
		 s->name, s->addr, port);
	KUNIT_ASSERT_EQ(s->test, 0, shell(command));
	KUNIT_ASSERT_TRUE(s->test, server_says("serving"));
	return port;
}

/* The server still serves, and ends when it is told. */
static void server_down(struct kd_side *s, u16 port)
{
	KUNIT_EXPECT_TRUE(s->test, kd_tool_serves(s, port));
	KUNIT_EXPECT_EQ(s->test, 0,
			shell("exec >/dev/null 2>&1; p=$(cat " PID ");"
			      "kill $p && tail -s 0.1 --pid=$p -f /dev/null"));
}

/* ---- A client ----------------------------------------------------------------------- */

/* Connect as a command does that has a first message to send. */
static void client_connect(struct kd_side *s, u16 port)
{
	struct kt_hello hello = {
		.magic = cpu_to_le32(KT_MAGIC),
		.version = cpu_to_le16(KT_VERSION),
	};

	KD_ASSERT_OK(s->test,
		     dat_ep_connect(s->ep, s->addr, port, 20 * USEC_PER_SEC,
				    sizeof(hello), &hello, DAT_QOS_BEST_EFFORT,
				    DAT_CONNECT_DEFAULT_FLAG));
	kd_expect_event(s->test, s->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
}

static void client_send(struct kd_side *s, u32 len)
{
	DAT_LMR_TRIPLET seg = kd_seg(s->buf, 0, len);

	KD_EXPECT_OK(s->test,
		     dat_ep_post_send(s->ep, 1, &seg, kd_cookie(1),
				      DAT_COMPLETION_DEFAULT_FLAG));
}

static struct kt_msg *client_msg(struct kd_side *s, enum kt_msg_type type)
{
	struct kt_msg *msg = s->buf->va;

	memset(msg, 0, sizeof(*msg));
	msg->magic = cpu_to_le32(KT_MAGIC);
	msg->version = KT_VERSION;
	msg->type = type;
	return msg;
}

/* Ask for transactions of one Send, which the server can do. */
static void client_setup(struct kd_side *s)
{
	struct kt_msg *msg = client_msg(s, KT_MSG_SETUP);

	msg->setup = (struct kt_wire_setup) {
		.size = cpu_to_le32(64),
		.depth = cpu_to_le32(4),
		.eps = cpu_to_le32(2),
		.kind = KT_TRANS,
		.nops = cpu_to_le16(1),
		.ops[0] = { .op = KT_SEND, .segments = 1,
			    .size = cpu_to_le32(64) },
	};
}

/* The server ends the connection, and has forgotten the client. */
static void client_dropped(struct kd_side *s)
{
	DAT_EVENT event;

	KUNIT_EXPECT_TRUE(s->test,
			  kd_wait_event(s->conn_evd, &event, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(s->test, server_says("client gone"));
	kd_close(s);
}

static struct kd_side *client_new(struct kunit *test, u16 port)
{
	struct kd_side *s = kd_open_param(test);

	kd_setup(s, NULL);
	client_connect(s, port);
	return s;
}

/* ---- The cases ---------------------------------------------------------------------- */

/* A message of another protocol, and one of another length. */
static void server_outlives_garbage(struct kunit *test)
{
	static const u32 lengths[] = { sizeof(struct kt_msg), 10, 4 * SZ_1K };
	struct kd_side *s, *beside = kd_open_param(test);
	u16 port = server_up(beside);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		s = client_new(test, port);
		memset(s->buf->va, 0x5a, lengths[i]);
		client_send(s, lengths[i]);
		client_dropped(s);
	}
	server_down(beside, port);
}

/* Messages that are out of place. */
static void server_outlives_wrong_order(struct kunit *test)
{
	static const enum kt_msg_type types[] = {
		KT_MSG_READY, KT_MSG_START, KT_MSG_AGAIN, KT_MSG_QUIT, 0, 255,
	};
	struct kd_side *s, *beside = kd_open_param(test);
	u16 port = server_up(beside);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		s = client_new(test, port);
		client_msg(s, types[i]);
		client_send(s, sizeof(struct kt_msg));
		client_dropped(s);
	}
	s = client_new(test, port);
	client_setup(s);
	client_send(s, sizeof(struct kt_msg));
	client_send(s, sizeof(struct kt_msg));
	client_dropped(s);
	server_down(beside, port);
}

/* What a client asks for is any number, and it goes away at once. */
static void server_outlives_any_setup(struct kunit *test)
{
	struct kd_side *s, *beside = kd_open_param(test);
	u16 port = server_up(beside);
	struct rnd_state rnd;
	struct kt_msg *msg;
	int i;

	prandom_seed_state(&rnd, 22);
	for (i = 0; i < MESSAGES; i++) {
		s = client_new(test, port);
		client_setup(s);
		msg = s->buf->va;
		/* All of it at first, one byte of it later. */
		if (i < MESSAGES / 3)
			prandom_bytes_state(&rnd, &msg->setup,
					    sizeof(msg->setup));
		else
			((u8 *)&msg->setup)[prandom_u32_state(&rnd) % 24] =
				prandom_u32_state(&rnd);
		client_send(s, sizeof(*msg));
		kd_expect_dto(test, s->req_evd, 1, DAT_DTO_SUCCESS, NULL);
		dat_ep_disconnect(s->ep, i % 2 ? DAT_CLOSE_ABRUPT_FLAG :
						 DAT_CLOSE_GRACEFUL_FLAG);
		client_dropped(s);
	}
	server_down(beside, port);
}

static struct kunit_case server_cases[] = {
	KUNIT_CASE_PARAM(server_outlives_garbage, kd_gen_ia),
	KUNIT_CASE_PARAM(server_outlives_wrong_order, kd_gen_ia),
	KUNIT_CASE_PARAM(server_outlives_any_setup, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-server-hostile", server_cases, "kdapl_test.ko: clients that break the rules",
	 .init = server_init, .suite_init = server_load, .suite_exit = server_unload);
