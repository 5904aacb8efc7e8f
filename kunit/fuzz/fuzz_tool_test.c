// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inputs for the server of kdapl_test.ko, from a client that sends what it is told to on the
 * first connection, see drivers/kdapl_test/proto.h and fuzz.h.
 *
 * What the server did: w, accepted, or x, refused a connection; the type of the message that
 * it answers with; e, it has ended the connection; -, nothing, as to ALIVE.
 */
#include "../../drivers/kdapl_test/proto.h"
#include "files.h"
#include "fixture.h"
#include "fuzz.h"
#include "peer.h"
#include "shell.h"

/* scripts/guest/check puts the modules there. */
#define KO	"/run/out/modules/kdapl_test.ko"
#define SAID	"/tmp/kdapl-fuzz-said"
#define PID	"/tmp/kdapl-fuzz-pid"
#define ROOM	(2 * KT_MSG_LEN)
#define RECVS	8

enum kind {
	K_HELLO, K_SETUP, K_TRANS, K_READY, K_START, K_FINISH, K_ALIVE, K_QUIT, K_AGAIN, KINDS
};

#define MSG	"\x04\x01\x01\x02\x04\x04"
#define SETUP	MSG "\x04\x04\x04\x04\x01\x01\x02"

static const struct fuzz_kind kinds[KINDS] = {
	[K_HELLO] = { "hello", "\x04\x02\x02\x04", true },
	[K_SETUP] = { "setup", SETUP, true },
	[K_TRANS] = { "trans", SETUP "\x01\x01\x01\x01\x04\x01\x01\x01\x01\x04", true },
	[K_READY] = { "ready", MSG "\x08\x04\x04", true },
	[K_START] = { "start", MSG "\x08\x04\x04", true },
	[K_FINISH] = { "finish", MSG, true },
	[K_ALIVE] = { "alive", MSG, true },
	[K_QUIT] = { "quit", MSG, true },
	[K_AGAIN] = { "again", MSG, true },
};

static const char * const corpus[] = {
#include "corpus/tool.inc"
};

static const char * const modules[] = { "kdapl_test", NULL };
static const struct fuzz_target target;

static struct kd_side *s;
static struct kd_buf *send, *recv;
static u16 port;
static bool ended;
static u8 got;			/* type of the message received last; 0 if there was none */

/* ---- Connections --------------------------------------------------------- */

static struct file *said;	/* what the server says */
static loff_t said_pos;
static int clients;		/* of ours that it has not said to be gone */

/* Has the server forgotten the client, so that the next one finds what it needs? */
static bool is_forgotten(void *unused)
{
	static const char gone[] = "client gone";
	char text[256], *at;
	ssize_t n;

	while ((n = kernel_read(said, text, sizeof(text) - 1, &said_pos)) > 0) {
		text[n] = '\0';
		/* A line that is not whole is read again. */
		at = strrchr(text, '\n');
		if (!at) {
			said_pos -= n;
			break;
		}
		at[1] = '\0';
		said_pos -= n - (at + 1 - text);
		for (at = strstr(text, gone); at; at = strstr(at + 1, gone))
			clients--;
	}
	return clients <= 0;
}

static void post_recv(size_t slot)
{
	DAT_LMR_TRIPLET seg = kd_seg(recv, slot * KT_MSG_LEN, KT_MSG_LEN);

	kd_may_fail(dat_ep_post_recv(s->ep, 1, &seg, kd_cookie(slot),
				     DAT_COMPLETION_DEFAULT_FLAG));
}

static void hang_up(void)
{
	fuzz_hang_up(s);
	KUNIT_EXPECT_TRUE_MSG(s->test, kd_wait_until(is_forgotten, NULL, KD_TIMEOUT_MS),
			      "the server keeps %d clients", clients);
	clients = 0;
}

static void say_hello(struct fuzz_run *run, const struct fuzz_message *message)
{
	u8 hello[56] = {};
	DAT_EVENT event;
	size_t len, i;

	hang_up();
	*(struct kt_hello *)hello = (struct kt_hello) {
		.magic = cpu_to_le32(KT_MAGIC),
		.version = cpu_to_le16(KT_VERSION),
	};
	len = fuzz_apply(&target, message, hello, sizeof(struct kt_hello), sizeof(hello));
	s->ep = kd_ep(s, NULL);
	for (i = 0; i < RECVS; i++)
		post_recv(i);
	KD_ASSERT_OK(run->test, dat_ep_connect(s->ep, s->addr, port, 20 * USEC_PER_SEC, len,
					       hello, DAT_QOS_BEST_EFFORT,
					       DAT_CONNECT_DEFAULT_FLAG));
	KUNIT_ASSERT_TRUE(run->test, kd_wait_event(s->conn_evd, &event, KD_TIMEOUT_MS));
	ended = event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED;
	clients += !ended;
	fuzz_say(run, ended ? "x" : "w");
}

/* ---- Messages ------------------------------------------------------------ */

static void build(enum kind kind, struct kt_msg *msg)
{
	static const u8 types[KINDS] = {
		[K_SETUP] = KT_MSG_SETUP, [K_TRANS] = KT_MSG_SETUP, [K_READY] = KT_MSG_READY,
		[K_START] = KT_MSG_START, [K_FINISH] = KT_MSG_FINISH,
		[K_ALIVE] = KT_MSG_ALIVE, [K_QUIT] = KT_MSG_QUIT,
		[K_AGAIN] = KT_MSG_AGAIN,
	};

	memset(msg, 0, ROOM);
	msg->magic = cpu_to_le32(KT_MAGIC);
	msg->version = KT_VERSION;
	msg->type = types[kind];
	if (msg->type != KT_MSG_SETUP)
		return;
	msg->setup = (struct kt_wire_setup) {
		.size = cpu_to_le32(64),
		.depth = cpu_to_le32(4),
		.eps = cpu_to_le32(2),
		.kind = kind == K_TRANS ? KT_TRANS : KT_STREAM,
	};
	if (kind == K_TRANS) {
		msg->setup.nops = cpu_to_le16(2);
		msg->setup.ops[0] = (struct kt_wire_op) {
			.op = KT_SEND, .segments = 1, .size = cpu_to_le32(64),
		};
		msg->setup.ops[1] = (struct kt_wire_op) {
			.op = KT_WRITE, .server = 1, .segments = 2,
			.size = cpu_to_le32(32),
		};
	}
}

static bool answered(void *unused)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	bool end = fuzz_has_ended(s);
	DAT_EVENT event;
	size_t slot;

	while (!got && dat_evd_dequeue(s->recv_evd, &event) == DAT_SUCCESS) {
		dto = &event.event_data.dto_completion_event_data;
		if (dto->status != DAT_DTO_SUCCESS)
			continue;
		slot = dto->user_cookie.as_64;
		kd_hand_over(recv->va + slot * KT_MSG_LEN, KT_MSG_LEN, false);
		got = ((const struct kt_msg *)(recv->va + slot * KT_MSG_LEN))->type;
		if (got == KT_MSG_ALIVE)
			got = 0;
		post_recv(slot);
	}
	if (got)
		return true;
	ended = end;
	return ended;
}

/* Is the message one that nobody answers? */
static bool is_alive(const struct kt_msg *msg, size_t len)
{
	return len == KT_MSG_LEN && msg->type == KT_MSG_ALIVE &&
	       le32_to_cpu(msg->magic) == KT_MAGIC && msg->version == KT_VERSION;
}

static void send_message(struct fuzz_run *run, const struct fuzz_message *message)
{
	DAT_LMR_TRIPLET seg;
	DAT_EVENT event;
	size_t len;

	build(message->kind, send->va);
	len = fuzz_apply(&target, message, send->va, KT_MSG_LEN, ROOM);
	seg = kd_seg(send, 0, len);
	kd_drain(s->req_evd);
	got = 0;
	ended = dat_ep_post_send(s->ep, 1, &seg, kd_cookie(99),
				 DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS;
	/* The memory is used again. */
	if (!ended)
		kd_wait_event(s->req_evd, &event, KD_TIMEOUT_MS);
	if (!ended && is_alive(send->va, len)) {
		fuzz_say(run, "-");
		return;
	}
	KUNIT_EXPECT_TRUE_MSG(run->test,
			      ended || kd_wait_until(answered, NULL, KD_TIMEOUT_MS),
			      "the server neither answers nor ends the connection");
	if (got)
		fuzz_say(run, "%x", got);
	else
		fuzz_say(run, "e");
}

static void run_input(struct fuzz_run *run)
{
	const struct fuzz_message *message = run->input->message;
	unsigned int i;

	if (message->kind != K_HELLO)
		say_hello(run, &(struct fuzz_message) { .kind = K_HELLO });
	for (i = 0; i < run->input->n; i++, message++) {
		if (message->kind == K_HELLO)
			say_hello(run, message);
		else if (ended)
			fuzz_say(run, "-");
		else
			send_message(run, message);
	}
	hang_up();
}

/* ---- The bed ------------------------------------------------------------- */

/* Does the server serve a command? The Endpoints of those before may not have gone yet. */
static bool serves(void *unused)
{
	return kd_tool_serves(s, port);
}

static void check(struct kunit *test)
{
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(serves, NULL, KD_TIMEOUT_MS),
			      "the server serves nobody");
}

static void bed_down(void *unused)
{
	kd_filp_close(said);
	WARN_ON(shell("exec >/dev/null 2>&1; p=$(cat " PID ");"
		      "kill $p && tail -s 0.1 --pid=$p -f /dev/null && rmmod kdapl_test"));
}

static void bed_up(struct kunit *test)
{
	char command[384];

	if (!kd_file_exists(KO))
		kunit_skip(test, "no " KO);
	shell(">" SAID);
	said = kd_filp_open(SAID, O_RDONLY, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(said));
	said_pos = 0;
	clients = 0;
	s = kd_open_param(test);
	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	send = kd_buf_alloc(s, ROOM);
	recv = kd_buf_alloc(s, RECVS * KT_MSG_LEN);
	port = kd_port();
	KUNIT_ASSERT_EQ(test, 0, shell("insmod " KO));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, bed_down, NULL));
	fuzz_loaded(test, "kdapl_test");
	snprintf(command, sizeof(command),
		 "(exec 3<>/dev/kdapl_test\n"
		 "echo 'server ia=%s host=%pISc port=%u max_size=65536 max_eps=8' >&3\n"
		 "exec cat <&3 >>" SAID ") & echo $! >" PID "\n"
		 "timeout 60 sh -c 'until grep -q ^serving " SAID "; do sleep 0.1; done'",
		 s->name, s->addr, port);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
}

FUZZ_TARGET(tool, .set_up = bed_up, .run = run_input, .check = check)

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(tool_corpus, fuzz_gen_ia),
	KUNIT_CASE_PARAM(tool_search, fuzz_gen_ia),
	{}
};

KD_SUITE("kdapl-fuzz-tool", cases, "inputs for the server of kdapl_test.ko");
