// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inputs for kdapl_blk_tgt.ko, from a client that sends what it is told to; see fuzz.h.
 *
 * The client offers all features, or none (hello), and what it sends is valid by default: the
 * features that the target has agreed to decide about namespaces, hosts and proofs. It has the
 * volumes 1, a file; 2, a block device; 3, a file that is read-only. An honest client has a
 * volume of its own.
 *
 * What the target did: w, welcome, or x and the status of its refusal; the statuses of the
 * replies to a message; e, it has ended the connection.
 */
#include <linux/sort.h>
#include "../blk/blk_backing.h"
#include "../blk/blk_secret.h"
#include "../blk/blk_target.h"
#include "fuzz.h"

#define RECVS		8
#define ROOM		(KBLK_MESSAGE + 4096)	/* longest message that is sent */
#define RECV_LEN	KBLK_REPLIES
#define INLINE_LEN	512
#define SAFE_FILE	"/tmp/kdapl_fuzz_safe"
/* Not KBLK_FEATURE_INVALIDATE, for which memory has to be opened for each request. */
#define FEATURES	(KBLK_FEATURES & ~KBLK_FEATURE_INVALIDATE)

enum kind {
	K_HELLO, K_HELLO_ALL, K_ATTACH, K_LIST, K_CHALLENGE, K_IDENTIFY, K_READ, K_READ_REMOTE,
	K_WRITE, K_WRITE_REMOTE, K_FLUSH, K_DISCARD, K_ZEROES, K_KEEPALIVE, K_FENCE, K_DETACH, KINDS
};

#define REQUEST	"\x04\x01\x01\x02\x08\x08\x04\x04\x08\x04\x14"
#define WHO	"\x40\x40\x04\x04\x10\x08\x20\x20"

static const struct fuzz_kind kinds[KINDS] = {
	[K_HELLO] = { "hello", "\x04\x02\x02\x02\x02\x04\x08\x04\x04", true },
	[K_HELLO_ALL] = { "hello_all", "\x04\x02\x02\x02\x02\x04\x08\x04\x04", true },
	[K_ATTACH] = { "attach", REQUEST WHO },
	[K_LIST] = { "list", REQUEST WHO },
	[K_CHALLENGE] = { "challenge", REQUEST },
	[K_IDENTIFY] = { "identify", REQUEST },
	[K_READ] = { "read", REQUEST },
	[K_READ_REMOTE] = { "read_remote", REQUEST },
	[K_WRITE] = { "write", REQUEST "\x7f" },
	[K_WRITE_REMOTE] = { "write_remote", REQUEST },
	[K_FLUSH] = { "flush", REQUEST },
	[K_DISCARD] = { "discard", REQUEST },
	[K_ZEROES] = { "zeroes", REQUEST },
	[K_KEEPALIVE] = { "keepalive", REQUEST },
	[K_FENCE] = { "fence", REQUEST "\x08\x04\x04" },
	[K_DETACH] = { "detach", REQUEST },
};

static const char * const corpus[] = {
#include "corpus/blk_tgt.inc"
};

static const char * const modules[] = { "kdapl_blk_tgt", NULL };
static const struct fuzz_target target;

/*
 * The client.
 * @data: memory that the target may read and write
 * @recv: memory for messages of the target
 * @features: in use on the connection
 * @hello: of the connection
 * @challenge: the last that the target has sent
 * @spoilt: the target may have invalidated the key of @data
 * @statuses: of replies to the message at hand, @replies of them
 * @ended: the target has ended the connection
 */
static struct client {
	struct kd_side *s;
	struct kd_buf *data, *recv, *send;
	u32 features;
	struct kblk_hello hello;
	u8 challenge[KBLK_NONCE_LEN];
	bool spoilt, ended;
	u64 session, id;
	unsigned int replies, wanted;
	u16 statuses[KBLK_BATCH_MAX];
	const char *wrong;
} c;

/* ---- Building ------------------------------------------------------------ */

static size_t build_hello(struct kblk_hello *hello, bool all)
{
	*hello = (struct kblk_hello) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version_min = cpu_to_le16(KBLK_VERSION_MIN),
		.version_max = cpu_to_le16(KBLK_VERSION_MAX),
		.credits = cpu_to_le16(TGT_CREDITS),
		.reply_size = cpu_to_le32(RECV_LEN),
		.session = cpu_to_le64(++c.session),
		.epoch = cpu_to_le32(5),
		.features = cpu_to_le32(all ? FEATURES : 0),
	};
	return sizeof(*hello);
}

/* Write the proof of what @attach says, which the target wants with KBLK_FEATURE_AUTH. */
static void prove(struct kunit *test, const struct kblk_attach *attach)
{
	struct kblk_proof *proof = (void *)(attach + 1);
	struct kblk_proof_of of = {
		.who = "initiator",
		.session = c.hello.session,
		.epoch = c.hello.epoch,
		.queue = c.hello.queue,
		.attach = *attach,
	};

	memset(proof->nonce, 7, sizeof(proof->nonce));
	memcpy(of.nonce, proof->nonce, sizeof(of.nonce));
	memcpy(of.challenge, c.challenge, sizeof(of.challenge));
	kdb_prove(test, SECRET, &of, proof->proof);
}

/* Write what follows ATTACH or LIST, with room for a proof if the target wants one. */
static size_t build_who(struct kblk_attach *attach, bool list)
{
	strscpy(attach->client, c.features & KBLK_FEATURE_AUTH ? "proven" : "somebody",
		sizeof(attach->client));
	if (!list) {
		strscpy(attach->subsystem, "vol", sizeof(attach->subsystem));
		attach->namespace = cpu_to_le32(1);
		if (c.features & KBLK_FEATURE_HOST)
			attach->host[0] = 1;
	}
	if (!(c.features & KBLK_FEATURE_AUTH))
		return sizeof(*attach);
	return sizeof(*attach) + sizeof(struct kblk_proof);
}

/* Set what kinds of requests differ in; return the bytes of data behind @request. */
static size_t build_kind(enum kind kind, struct kblk_request *request)
{
	static const u8 opcodes[KINDS] = {
		[K_ATTACH] = KBLK_OP_ATTACH, [K_LIST] = KBLK_OP_LIST,
		[K_CHALLENGE] = KBLK_OP_CHALLENGE, [K_IDENTIFY] = KBLK_OP_IDENTIFY,
		[K_READ] = KBLK_OP_READ, [K_READ_REMOTE] = KBLK_OP_READ,
		[K_WRITE] = KBLK_OP_WRITE, [K_WRITE_REMOTE] = KBLK_OP_WRITE,
		[K_FLUSH] = KBLK_OP_FLUSH, [K_DISCARD] = KBLK_OP_DISCARD,
		[K_ZEROES] = KBLK_OP_WRITE_ZEROES, [K_KEEPALIVE] = KBLK_OP_KEEPALIVE,
		[K_FENCE] = KBLK_OP_FENCE, [K_DETACH] = KBLK_OP_DETACH,
	};
	struct kblk_fence *fence = (void *)(request + 1);
	u32 length = 0;
	size_t data = 0;

	request->opcode = opcodes[kind];
	switch (kind) {
	case K_ATTACH:
	case K_LIST:
		length = build_who((void *)(request + 1), kind == K_LIST);
		data = length;
		break;
	case K_CHALLENGE:
		length = KBLK_NONCE_LEN;
		break;
	case K_IDENTIFY:
		length = sizeof(struct kblk_identify);
		break;
	case K_READ:
	case K_DISCARD:
	case K_ZEROES:
		length = INLINE_LEN;
		break;
	case K_WRITE:
		length = INLINE_LEN;
		data = length;
		break;
	case K_READ_REMOTE:
	case K_WRITE_REMOTE:
		length = SZ_8K;
		break;
	case K_FENCE:
		/* Nobody's. */
		*fence = (struct kblk_fence) { .session = cpu_to_le64(1) };
		length = sizeof(*fence);
		data = length;
		break;
	default:
		break;
	}
	request->length = cpu_to_le32(length);
	return data;
}

static size_t build_request(enum kind kind, struct kblk_request *request)
{
	bool inlined = kind == K_ATTACH || kind == K_LIST || kind == K_CHALLENGE ||
		       kind == K_IDENTIFY || kind == K_READ || kind == K_WRITE || kind == K_FENCE;

	*request = (struct kblk_request) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.flags = inlined ? KBLK_INLINED : 0,
		.id = cpu_to_le64(++c.id),
		.rmr_context = cpu_to_le32(c.data->rmr_context),
		.address = cpu_to_le64((uintptr_t)c.data->va),
	};
	if (c.features & KBLK_FEATURE_VOLUMES && kind != K_ATTACH && kind != K_CHALLENGE &&
	    kind != K_LIST && kind != K_KEEPALIVE)
		request->namespace = cpu_to_le32(1);
	return sizeof(*request) + build_kind(kind, request);
}

/* ---- What the target sends ----------------------------------------------- */

static void post_recv(size_t at)
{
	DAT_LMR_TRIPLET seg = kd_seg(c.recv, at * RECV_LEN, RECV_LEN);

	kd_may_fail(dat_ep_post_recv(c.s->ep, 1, &seg, kd_cookie(at),
				     DAT_COMPLETION_DEFAULT_FLAG));
}

static void take_reply(const struct kblk_reply *reply)
{
	u16 status = le16_to_cpu(reply->status);
	u32 length = le32_to_cpu(reply->length);

	if (le32_to_cpu(reply->magic) != KBLK_MAGIC || status > KBLK_ERR_BUSY ||
	    memchr_inv(reply->reserved, 0, sizeof(reply->reserved)))
		c.wrong = "a reply with a wrong header";
	if (status != KBLK_OK && length)
		c.wrong = "a failure that has data";
	if (c.replies == ARRAY_SIZE(c.statuses)) {
		c.wrong = "more replies than requests";
		return;
	}
	c.statuses[c.replies++] = status;
	if (length == KBLK_NONCE_LEN)
		memcpy(c.challenge, reply + 1, KBLK_NONCE_LEN);
}

static void take_message(const void *from, size_t len)
{
	const struct kblk_reply *reply;

	while (len) {
		reply = from;
		if (len < sizeof(*reply) || le32_to_cpu(reply->length) > len - sizeof(*reply)) {
			c.wrong = "a message that is shorter than its replies";
			return;
		}
		take_reply(reply);
		from += sizeof(*reply) + le32_to_cpu(reply->length);
		len -= sizeof(*reply) + le32_to_cpu(reply->length);
	}
}

static bool answered(void *unused)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	bool end = fuzz_has_ended(c.s);
	DAT_EVENT event;

	while (dat_evd_dequeue(c.s->recv_evd, &event) == DAT_SUCCESS) {
		dto = &event.event_data.dto_completion_event_data;
		if (dto->ep_handle != c.s->ep || dto->status != DAT_DTO_SUCCESS)
			continue;
		kd_hand_over(c.recv->va + dto->user_cookie.as_64 * RECV_LEN,
			     dto->transfered_length, false);
		take_message(c.recv->va + dto->user_cookie.as_64 * RECV_LEN,
			     dto->transfered_length);
		post_recv(dto->user_cookie.as_64);
	}
	if (c.replies >= c.wanted)
		return true;
	c.ended = end;
	return c.ended;
}

/* ---- Connections --------------------------------------------------------- */

/* Give c.data another key. */
static void open_data(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = c.data->va };

	KD_EXPECT_OK(c.s->test, dat_lmr_free(c.data->lmr));
	KD_ASSERT_OK(c.s->test,
		     dat_lmr_kcreate(c.s->ia, DAT_MEM_TYPE_VIRTUAL, region, c.data->len,
				     c.s->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
				     DAT_MEM_OPTIMIZE_DONT_CARE, &c.data->lmr,
				     &c.data->lmr_context, &c.data->rmr_context, NULL, NULL));
	c.spoilt = false;
}

static void hang_up(void)
{
	fuzz_hang_up(c.s);
	if (c.spoilt)
		open_data();
}

static void say_hello(struct fuzz_run *run, const struct fuzz_message *message)
{
	const struct kblk_welcome *welcome;
	DAT_EVENT event;
	u8 hello[64] = {};
	size_t len, i;

	hang_up();
	len = build_hello((void *)hello, message->kind == K_HELLO_ALL);
	len = fuzz_apply(&target, message, hello, len, sizeof(hello));
	memcpy(&c.hello, hello, sizeof(c.hello));
	c.s->ep = kd_ep(c.s, NULL);
	for (i = 0; i < RECVS; i++)
		post_recv(i);
	kdb_say_hello(c.s, hello, min_t(size_t, len, 56));
	KUNIT_ASSERT_TRUE(run->test, kd_wait_event(c.s->conn_evd, &event, KD_TIMEOUT_MS));
	welcome = event.event_data.connect_event_data.private_data;
	c.ended = event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED;
	if (c.ended) {
		fuzz_say(run, "x%x", welcome ? le16_to_cpu(welcome->status) : 0xff);
		return;
	}
	c.features = le32_to_cpu(welcome->features);
	c.spoilt = c.features & KBLK_FEATURE_INVALIDATE;
	fuzz_say(run, "w");
}

/* ---- Messages ------------------------------------------------------------ */

/* Return how many requests a message has, as the protocol reads it; 1 if it cannot be read. */
static unsigned int count_requests(const void *from, size_t len)
{
	const struct kblk_request *request;
	unsigned int n = 0;
	size_t part;

	while (len) {
		request = from;
		part = sizeof(*request);
		if (len < part)
			return 1;
		if (request->flags & KBLK_INLINED &&
		    (request->opcode == KBLK_OP_WRITE || request->opcode == KBLK_OP_ATTACH ||
		     request->opcode == KBLK_OP_FENCE || request->opcode == KBLK_OP_LIST))
			part += le32_to_cpu(request->length);
		if (len < part)
			return 1;
		from += part;
		len -= part;
		n++;
	}
	return clamp_t(unsigned int, n, 1, KBLK_BATCH_MAX);
}

static int compare_statuses(const void *a, const void *b)
{
	return *(const u16 *)a - *(const u16 *)b;
}

static void say_answer(struct fuzz_run *run)
{
	char word[KBLK_BATCH_MAX * 2 + 1];
	unsigned int i;

	if (c.ended) {
		fuzz_say(run, "e");
		return;
	}
	sort(c.statuses, c.replies, sizeof(c.statuses[0]), compare_statuses, NULL);
	for (i = 0; i < c.replies; i++) {
		snprintf(word + i, 2, "%x", c.statuses[i]);
		/* The target ends the connection sooner or later. */
		c.ended |= c.statuses[i] == KBLK_ERR_PROOF || c.statuses[i] == KBLK_ERR_DENIED;
	}
	fuzz_say(run, "%s", word);
}

static void send_message(struct fuzz_run *run, size_t len)
{
	DAT_LMR_TRIPLET seg = kd_seg(c.send, 0, len);

	c.wanted = count_requests(c.send->va, len);
	c.replies = 0;
	kd_drain(c.s->req_evd);
	if (dat_ep_post_send(c.s->ep, 1, &seg, kd_cookie(99), DAT_COMPLETION_DEFAULT_FLAG) !=
	    DAT_SUCCESS)
		c.ended = true;
	KUNIT_EXPECT_TRUE_MSG(run->test, kd_wait_until(answered, NULL, KD_TIMEOUT_MS),
			      "%u of %u replies", c.replies, c.wanted);
	say_answer(run);
}

/* Build a message. What it says of the client is proven, unless the input changes the proof. */
static size_t build_message(struct fuzz_run *run, const struct fuzz_message *message, void *at,
			    size_t room)
{
	size_t who = sizeof(struct kblk_request) + sizeof(struct kblk_attach);
	size_t len = build_request(message->kind, at);
	struct fuzz_message late = {};
	unsigned int i;

	if (len < who + sizeof(struct kblk_proof) || message->kind == K_WRITE)
		return fuzz_apply(&target, message, at, len, room);
	len = fuzz_apply(&target, message, at, len, room);
	prove(run->test, at + sizeof(struct kblk_request));
	for (i = 0; i < message->patches; i++)
		if (message->patch[i].at >= who)
			late.patch[late.patches++] = message->patch[i];
	return fuzz_apply(&target, &late, at, len, room);
}

/* Build the message at @i of the input, and those that are joined to it. Return the next. */
static unsigned int send_joined(struct fuzz_run *run, unsigned int i)
{
	const struct fuzz_message *message = &run->input->message[i];
	size_t len = 0;

	memset(c.send->va, 0, c.send->len);
	for (;;) {
		len += build_message(run, message, c.send->va + len, ROOM - len);
		if (++i == run->input->n || !message[1].joined || len + 1024 > ROOM)
			break;
		fuzz_say(run, "&");
		message++;
	}
	send_message(run, len);
	return i;
}

static void run_input(struct fuzz_run *run)
{
	const struct fuzz_message *message;
	unsigned int i = 0;

	c.wrong = NULL;
	c.features = 0;
	if (run->input->message[0].kind > K_HELLO_ALL)
		say_hello(run, &(struct fuzz_message) { .kind = K_HELLO });
	while (i < run->input->n) {
		message = &run->input->message[i];
		if (message->kind <= K_HELLO_ALL) {
			say_hello(run, message);
			i++;
		} else if (c.ended) {
			fuzz_say(run, "-");
			i++;
		} else {
			i = send_joined(run, i);
		}
	}
	hang_up();
	KUNIT_EXPECT_NULL_MSG(run->test, c.wrong, "the target sends %s", c.wrong);
}

/* ---- The bed ------------------------------------------------------------- */

static void check(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kblk_request request;
	struct kd_side *side;

	side = kdb_welcome_client(test, &hello);
	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "friend", "safe", 1, 0), KBLK_OK);
	request = kdb_good_request(side);
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(side->buf->va + DATA_AT, 4096, FILE_SEED));
	kd_close(side);
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(tgt_has_all_buffers, NULL, KD_TIMEOUT_MS),
			      "the target has lost a receive buffer");
}

static void unmake_volumes(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT "\n"
				       "rm ports/1/subsystems/safe\n"
				       "rm subsystems/safe/allowed_clients/friend\n"
				       "rmdir subsystems/safe/namespaces/1 subsystems/safe\n"
				       "rmdir subsystems/vol/namespaces/[23] clients/proven\n"));
}

static void bed_up(struct kunit *test)
{
	struct backing *backing = kdb_backing_make(test, 0);

	KUNIT_ASSERT_NOT_NULL(test, backing);
	tgt_load(test);
	fuzz_loaded(test, "kdapl_blk_tgt");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, unmake_volumes, test));
	KUNIT_ASSERT_EQ(test, 0, shell("set -e\n"
				       "t=" TGT "\n"
				       "cd $t\n"
				       "mkdir clients/proven subsystems/safe\n"
				       "mkdir subsystems/safe/namespaces/1\n"
				       "echo '" SECRET "' >clients/proven/secret\n"
				       "ln -s $t/clients/friend subsystems/safe/allowed_clients\n"
				       "cp " TGT_FILE " " SAFE_FILE "\n"
				       "echo " SAFE_FILE " >subsystems/safe/namespaces/1/path\n"
				       "echo 1 >subsystems/safe/namespaces/1/enable\n"
				       "cd subsystems/vol/namespaces\n"
				       "mkdir 2 3\n"
				       "echo " BACKING_0 " >2/path\n"
				       "echo 1 >2/enable\n"
				       "cp " TGT_FILE " " SAFE_FILE "3\n"
				       "echo " SAFE_FILE "3 >3/path\n"
				       "echo 1 >3/read_only\n"
				       "echo 1 >3/enable\n"
				       "ln -s $t/subsystems/safe $t/ports/1/subsystems\n"));
	c = (struct client) { .s = kd_open_param(test), .session = 1ULL << 40 };
	kd_setup(c.s, &(struct kd_opts) { .no_ep = true });
	c.data = kd_buf_alloc(c.s, SZ_256K);
	c.recv = kd_buf_alloc(c.s, RECVS * RECV_LEN);
	c.send = kd_buf_alloc(c.s, ROOM);
}

FUZZ_TARGET(blk_tgt, .set_up = bed_up, .run = run_input, .check = check)

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(blk_tgt_corpus, fuzz_gen_ia),
	KUNIT_CASE_PARAM(blk_tgt_search, fuzz_gen_ia),
	{}
};

KD_SUITE("kdapl-fuzz-blk-tgt", cases, "inputs for the wire of kdapl_blk_tgt.ko");
