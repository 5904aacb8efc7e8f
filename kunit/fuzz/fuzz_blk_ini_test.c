// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inputs for kdapl_blk.ko, from a target that answers what it is told to; see fuzz.h.
 *
 * The disk connects to the case, which answers a request with each message of the input, and
 * all requests behind the input as it should. "again" answers the last request once more.
 *
 * What the disk did: w, it was accepted; the opcode of the request that was answered; e, it has
 * ended the connection, and -, there was no request. The last word tells whether the disk
 * appeared (o) or not (f).
 */
#include "../blk/blk_initiator.h"
#include "files.h"
#include "fuzz.h"

#define ROOM		(REQUEST_AT - REPLY_AT)	/* longest reply that is sent */
/* A reply that never comes has the disk wait for so long, ms. */
#define SEARCH_WAIT	"200"
#define SLOW		msecs_to_jiffies(150)

enum kind { K_WELCOME, K_WELCOME_ALL, K_REPLY, K_AGAIN, KINDS };

#define REPLY	"\x04\x02\x02\x08\x04\x08\x04"

static const struct fuzz_kind kinds[KINDS] = {
	[K_WELCOME] = { "welcome", "\x04\x02\x02\x02\x02\x04\x04\x04\x08", true },
	[K_WELCOME_ALL] = { "welcome_all", "\x04\x02\x02\x02\x02\x04\x04\x04\x08", true },
	/* Of the data, the fields are those of IDENTIFY. */
	[K_REPLY] = { "reply", REPLY "\x08\x04\x04\x04\x04\x04\x04\x08\x10\x04\x04", true },
	[K_AGAIN] = { "again", REPLY, true },
};

/* Features of the hello that a target without a secret, and with one volume, agrees to. */
#define FEATURES	(KBLK_FEATURE_BATCH | KBLK_FEATURE_REQUESTS |		\
			 KBLK_FEATURE_IDENTITY | KBLK_FEATURE_NOUNMAP |		\
			 KBLK_FEATURE_SIZE | KBLK_FEATURE_HINTS)

static const char * const corpus[] = {
#include "corpus/blk_ini.inc"
};

static const char * const modules[] = { "kdapl_blk", NULL };
static const struct fuzz_target target;

static struct kd_side *s;
static u32 features;		/* in use on the connection */
static struct kblk_request request;	/* the last that was received */
static bool has_request, ended, done;

/* ---- Requests of the disk ------------------------------------------------ */

/* Is there a request, or the end of the connection or of the attempt to connect? */
static bool stirs(void *unused)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	bool end = fuzz_has_ended(s);
	DAT_LMR_TRIPLET seg;
	DAT_EVENT event;
	u64 slot;

	if (dat_evd_dequeue(s->recv_evd, &event) == DAT_SUCCESS) {
		dto = &event.event_data.dto_completion_event_data;
		if (dto->status == DAT_DTO_SUCCESS) {
			slot = dto->user_cookie.as_64;
			seg = kd_seg(s->buf, REQUEST_AT + slot * REQUEST_SIZE, REQUEST_SIZE);
			kd_hand_over((void *)(uintptr_t)seg.virtual_address, REQUEST_SIZE, false);
			memcpy(&request, (void *)(uintptr_t)seg.virtual_address,
			       sizeof(request));
			/* It is refused when the disk has ended the connection. */
			kd_may_fail(dat_ep_post_recv(s->ep, 1, &seg, kd_cookie(slot),
						     DAT_COMPLETION_DEFAULT_FLAG));
			has_request = true;
			return true;
		}
	}
	ended = end;
	done = completion_done(&ini_ended);
	return ended || done;
}

/* Wait for the next request; return false if there will be none. */
static bool next_request(struct kunit *test)
{
	if (!ended && !done)
		KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(stirs, NULL, 2 * KD_TIMEOUT_MS),
				      "the disk does nothing");
	return !ended && !done;
}

static bool ends(void *unused)
{
	stirs(NULL);
	return ended;
}

/*
 * The same, for a reply of the input. Before a disk ends the connection for the last reply it
 * may send another request, or not: if the corpus has the end, that is waited for.
 */
static bool is_asked(const struct fuzz_run *run)
{
	if (!fuzz_expects(run, 0, "e"))
		return next_request(run->test);
	kd_wait_until(ends, NULL, 2 * KD_TIMEOUT_MS);
	return false;
}

/* ---- Answers ------------------------------------------------------------- */

/* Build the answer to the request in s->buf, and return its length. */
static size_t build_reply(void)
{
	struct kblk_identify identify = kdb_good_identify();
	u32 length = le32_to_cpu(request.length), data = 0;
	struct kblk_reply *reply = s->buf->va + REPLY_AT;

	memset(reply, 0, ROOM);
	if (features & KBLK_FEATURE_IDENTITY)
		identify.uuid[0] = 1;
	if (features & KBLK_FEATURE_HINTS)
		identify.io_min = cpu_to_le32(SZ_4K);
	if (request.opcode == KBLK_OP_IDENTIFY) {
		data = sizeof(identify);
		memcpy(reply + 1, &identify, data);
	} else if (request.opcode == KBLK_OP_READ && request.flags & KBLK_INLINED) {
		data = min_t(u32, length, KBLK_INLINE);
	}
	*reply = kdb_good_reply(&request, data);
	if (features & KBLK_FEATURE_SIZE && request.opcode != KBLK_OP_ATTACH)
		reply->size = cpu_to_le64(VOLUME_SIZE);
	return sizeof(*reply) + data;
}

static void answer(const struct fuzz_message *message)
{
	size_t len = build_reply();
	DAT_LMR_TRIPLET seg;
	DAT_EVENT event;

	if (message)
		len = fuzz_apply(&target, message, s->buf->va + REPLY_AT, len, ROOM);
	seg = kd_seg(s->buf, REPLY_AT, len);
	if (dat_ep_post_send(s->ep, 1, &seg, kd_cookie(99), DAT_COMPLETION_DEFAULT_FLAG) !=
	    DAT_SUCCESS)
		return;
	/* The memory is used again. A Send that fails has ended the connection. */
	kd_wait_event(s->req_evd, &event, KD_TIMEOUT_MS);
}

/* ---- Connections --------------------------------------------------------- */

static size_t build_welcome(struct kblk_welcome *welcome, bool all)
{
	*welcome = kdb_good_welcome();
	if (all)
		welcome->features = cpu_to_le32(FEATURES);
	return sizeof(*welcome);
}

/* Have the disk connect, and accept it. */
static void welcome_disk(struct fuzz_run *run, const struct fuzz_message *message)
{
	u8 private[56] = {};
	struct kblk_welcome *welcome = (void *)private;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	size_t len;

	ini_attrs.timeout_ms = run->expect ? PATIENT : SEARCH_WAIT;
	ini_attrs.connect_timeout_ms = PATIENT;
	s = kdb_new_target(run->test);
	len = build_welcome(welcome, message->kind == K_WELCOME_ALL);
	len = fuzz_apply(&target, message, private, len, sizeof(private));
	features = le32_to_cpu(welcome->features);
	ini_port = kd_port();
	psp = kd_psp(s, ini_port, DAT_PSP_CONSUMER_FLAG);
	ini_connect_start(s, ini_port);
	cr = kd_expect_cr(s);
	KD_ASSERT_OK(run->test, dat_psp_free(psp));
	KD_ASSERT_OK(run->test, dat_cr_accept(cr, s->ep, len, private));
	kd_expect_event(run->test, s->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
	has_request = false;
	ended = false;
	done = false;
}

/* Answer what the disk still asks for, and tell what came of it. */
static void finish(struct fuzz_run *run)
{
	bool appeared;

	while (next_request(run->test))
		answer(NULL);
	if (ended)
		kd_close(s);
	appeared = ini_connect_end(run->test);
	if (!ended)
		kd_close(s);
	fuzz_say(run, "%c", appeared ? 'o' : 'f');
}

static void run_input(struct fuzz_run *run)
{
	unsigned long began = jiffies;
	static const struct fuzz_message good = { .kind = K_WELCOME };
	const struct fuzz_message *message = run->input->message;
	unsigned int i = 0;

	if (message->kind <= K_WELCOME_ALL) {
		welcome_disk(run, message);
		fuzz_say(run, "w");
		i++;
	} else {
		welcome_disk(run, &good);
	}
	for (; i < run->input->n; i++) {
		message = &run->input->message[i];
		if (message->kind == K_REPLY && is_asked(run)) {
			fuzz_say(run, "%x", request.opcode);
			answer(message);
		} else if (message->kind == K_AGAIN && has_request && !ended && !done) {
			fuzz_say(run, "a");
			answer(message);
		} else {
			fuzz_say(run, ended ? "e" : "-");
		}
	}
	finish(run);
	/* The corpus has nothing that waits for a reply until it is late. */
	if (!run->expect && time_after(jiffies, began + SLOW))
		fuzz_say(run, "late%lu", jiffies);
}

/* ---- The bed ------------------------------------------------------------- */

/* A good target is served. */
static void check(struct kunit *test)
{
	static const struct fuzz_input good = { .n = 1, .message[0].kind = K_WELCOME };
	struct fuzz_run *run = kunit_kzalloc(test, sizeof(*run), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, run);
	run->test = test;
	run->input = &good;
	run->expect = "w o";
	run_input(run);
	KUNIT_EXPECT_STREQ(test, run->answer, run->expect);
}

static void bed_up(struct kunit *test)
{
	if (!kd_file_exists(INI_KO))
		kunit_skip(test, "no " INI_KO);
	KUNIT_ASSERT_EQ(test, 0, shell("insmod " INI_KO " && mkdir " INI_DISK));
	fuzz_loaded(test, "kdapl_blk");
}

FUZZ_TARGET(blk_ini, .set_up = bed_up, .run = run_input, .check = check)

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(blk_ini_corpus, fuzz_gen_ia),
	KUNIT_CASE_PARAM(blk_ini_search, fuzz_gen_ia),
	{}
};

KD_SUITE("kdapl-fuzz-blk-ini", cases, "inputs for the wire of kdapl_blk.ko",
	 .init = ini_init, .exit = ini_unload);
