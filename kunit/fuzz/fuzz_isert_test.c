// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inputs for kdapl_isert.ko, from an initiator that sends what it is told to; see fuzz.h. Tags
 * and sequence numbers are right by default. PDUs that are joined are posted at once.
 *
 * What the target did, for each PDU: opcode and status of the answer that has its tag, or that
 * rejects it; e, it has ended the connection; -, neither.
 */
#include "../isert/raw.h"
#include "fuzz.h"

enum kind {
	K_LOGIN, K_LOGIN_UNSOLICITED, K_DISCOVER, K_NOP, K_PING, K_READ, K_WRITE, K_WRITE_DATA,
	K_DATA_OUT, K_TEXT, K_TASK, K_LOGOUT, KINDS
};

#define HEADERS	"\x01\x03\x04\x08\x04\x08\x01\x01\x02\x01\x03\x08\x04\x04\x04\x04"
#define PDU	HEADERS "\x04\x04\x04\x04"
#define COMMAND	HEADERS "\x01\x01\x04\x01\x02\x01\x06"

static const struct fuzz_kind kinds[KINDS] = {
	[K_LOGIN] = { "login", HEADERS "\x10\x7f\x7f" },
	[K_LOGIN_UNSOLICITED] = { "login_unsolicited", HEADERS "\x10\x7f\x7f" },
	[K_DISCOVER] = { "discover", HEADERS "\x10\x7f\x7f" },
	[K_NOP] = { "nop", PDU },
	[K_PING] = { "ping", PDU },
	[K_READ] = { "read", COMMAND },
	[K_WRITE] = { "write", COMMAND },
	[K_WRITE_DATA] = { "write_data", COMMAND "\x7f" },
	[K_DATA_OUT] = { "data_out", PDU "\x7f" },
	[K_TEXT] = { "text", PDU "\x10" },
	[K_TASK] = { "task", PDU },
	[K_LOGOUT] = { "logout", PDU },
};

static const char * const corpus[] = {
#include "corpus/isert.inc"
};

static const char * const modules[] = { "kdapl_isert", NULL };
static const struct fuzz_target target;

static struct raw *r;
static bool ended;

/* PDUs under way: their tags, and what answered them. */
static struct {
	itt_t itt;
	char word[12];
} sent[FUZZ_MESSAGES];

/* ---- Building ------------------------------------------------------------ */

static struct raw_pdu *build_text(void)
{
	struct raw_pdu *pdu = raw_build(r, ISCSI_OP_TEXT | ISCSI_OP_IMMEDIATE);
	struct iscsi_text *text = (struct iscsi_text *)&pdu->hdr;

	text->ttt = RAW_NONE;
	text->cmdsn = cpu_to_be32(r->cmdsn);
	strscpy(pdu->data, "SendTargets=All", 16);
	hton24(text->dlength, 16);
	return pdu;
}

/* Build a PDU of @kind; *@len is what it is long. */
static struct raw_pdu *build(enum kind kind, u32 *len)
{
	static struct raw_pdu write, data_out;
	struct raw_pdu *pdu;

	*len = RAW_HEADERS;
	switch (kind) {
	case K_LOGIN:
		return raw_build_login(r, RAW_SOLICITED, len);
	case K_LOGIN_UNSOLICITED:
		return raw_build_login(r, RAW_UNSOLICITED, len);
	case K_DISCOVER:
		return raw_build_login(r, RAW_DISCOVERY, len);
	case K_NOP:
	case K_PING:
		return raw_build_nop(r, kind == K_PING);
	case K_READ:
		return raw_build_read(r, 1);
	case K_WRITE:
	case K_WRITE_DATA:
		pdu = raw_build_write(r, 2);
		write = *pdu;
		if (kind == K_WRITE_DATA) {
			hton24(pdu->hdr.dlength, RAW_BLOCK);
			*len += RAW_BLOCK;
		}
		return pdu;
	case K_DATA_OUT:
		data_out = raw_data_out(&write, RAW_BLOCK, RAW_BLOCK);
		*len += RAW_BLOCK;
		return &data_out;
	case K_TEXT:
		*len += 16;
		return build_text();
	case K_TASK:
		return raw_build_task(r, ISCSI_TM_FUNC_ABORT_TASK, write.hdr.itt);
	default:
		return raw_build_logout(r);
	}
}

/* ---- What the target sends ----------------------------------------------- */

/* Return the status of the PDU in r->got. */
static unsigned int got_status(void)
{
	const u8 *hdr = (const u8 *)&r->got.hdr;

	switch (hdr[0] & ISCSI_OPCODE_MASK) {
	case ISCSI_OP_SCSI_CMD_RSP:
		return hdr[3];
	case ISCSI_OP_LOGIN_RSP:
		return hdr[36] << 8 | hdr[37];
	case ISCSI_OP_SCSI_TMFUNC_RSP:
	case ISCSI_OP_LOGOUT_RSP:
	case ISCSI_OP_REJECT:
		return hdr[2];
	default:
		return 0;
	}
}

/* Note the PDU in r->got with what it answers. */
static void take_answer(unsigned int n)
{
	u8 opcode = r->got.hdr.opcode & ISCSI_OPCODE_MASK;
	itt_t itt = r->got.hdr.itt;
	unsigned int i;

	if (opcode == ISCSI_OP_REJECT)
		itt = ((struct iscsi_hdr *)r->got.data)->itt;
	for (i = 0; i < n; i++) {
		if (sent[i].itt != itt || sent[i].word[0])
			continue;
		snprintf(sent[i].word, sizeof(sent[i].word), "%x.%x", opcode, got_status());
		break;
	}
}

static bool all_answered(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (!sent[i].word[0])
			return false;
	return true;
}

/* Does the corpus have an answer, or an end, that has not come yet? */
static bool is_awaited(const struct fuzz_run *run, unsigned int n)
{
	unsigned int i;

	for (i = 0; run->expect && i < n; i++)
		if (fuzz_expects(run, i, "e") ||
		    (!sent[i].word[0] && !fuzz_expects(run, i, "-")))
			return true;
	return false;
}

/* Can the next event be had, or is the connection at its end? */
static bool stirs(void *unused)
{
	bool end = fuzz_has_ended(r->s);

	if (raw_receive_any(r, 0))
		return true;
	ended = end;
	return ended;
}

/*
 * Say what became of the PDU at @i. The target may answer and end the connection for it: what
 * is seen of this depends on who runs first, and the corpus has one of the two.
 */
static void say_answer(struct fuzz_run *run, unsigned int i)
{
	const char *word = sent[i].word;

	if (ended && !(word[0] && fuzz_expects(run, 0, word)))
		word = "e";
	fuzz_say(run, "%s", word[0] ? word : "-");
}

/*
 * Take the answers to the @n PDUs that were sent. What the corpus has is waited for as long as
 * need be; other answers, as in a search, for a moment.
 */
static void take_answers(struct fuzz_run *run, unsigned int n)
{
	unsigned int i;

	while (!ended) {
		bool awaited = is_awaited(run, n);

		if (!awaited && all_answered(n))
			break;
		if (!kd_wait_until(stirs, NULL, awaited ? KD_TIMEOUT_MS : KD_QUIET_MS))
			break;
		if (!ended)
			take_answer(n);
	}
	for (i = 0; i < n; i++)
		say_answer(run, i);
}

/* ---- Inputs -------------------------------------------------------------- */

static void connect(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	u64 slot;

	attr.max_request_dtos = RAW_SENDS;
	r->s->ep = kd_ep(r->s, &attr);
	r->cmdsn = 100;
	r->itt = 1;
	r->sent = 0;
	r->exp_statsn = 0;
	r->session++;
	for (slot = 0; slot < RAW_RECVS; slot++)
		raw_post(r, slot);
	ended = !raw_start(r);
}

/* Send the PDU at @i of the input and those that are joined to it. Return the next. */
static unsigned int send_joined(struct fuzz_run *run, unsigned int i)
{
	const struct fuzz_message *message = &run->input->message[i];
	struct raw_pdu *pdu = r->pdu;
	u32 len[FUZZ_MESSAGES];
	unsigned int n = 0;

	do {
		pdu[n] = *build(message->kind, &len[n]);
		len[n] = fuzz_apply(&target, message, &pdu[n], len[n], sizeof(*pdu));
		sent[n].itt = pdu[n].hdr.itt;
		sent[n++].word[0] = '\0';
		message++;
	} while (++i < run->input->n && message->joined && n < KDAT_MAX_REQUESTS);
	if (ended || !raw_send_all(r, pdu, len, n))
		ended = true;
	take_answers(run, n);
	return i;
}

static void run_input(struct fuzz_run *run)
{
	unsigned int i = 0;

	connect(run->test);
	if (run->input->message[0].kind > K_DISCOVER)
		raw_log_in(r, RAW_SOLICITED);
	while (i < run->input->n && (!ended || fuzz_expects(run, 0, "e")))
		i = send_joined(run, i);
	fuzz_hang_up(r->s);
}

/* ---- The bed ------------------------------------------------------------- */

/* An honest initiator writes, and reads what it has written. */
static void check(struct kunit *test)
{
	struct raw *honest = raw_login(test);
	struct raw_pdu pdu;

	kd_fill(honest->data->va, RAW_BLOCK, 77);
	kd_hand_over(honest->data->va, RAW_BLOCK, true);
	pdu = raw_write(honest, 1);
	KUNIT_EXPECT_TRUE(test, raw_send(honest, &pdu, RAW_HEADERS));
	KUNIT_EXPECT_TRUE(test, raw_receive(honest, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	memset(honest->data->va, 0, RAW_BLOCK);
	pdu = raw_read(honest, 1);
	KUNIT_EXPECT_TRUE(test, raw_send(honest, &pdu, RAW_HEADERS));
	KUNIT_EXPECT_TRUE(test, raw_receive(honest, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, kd_is_filled(honest->data->va, RAW_BLOCK, 77));
	raw_close(honest);
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS),
			      "LIO has a session of nobody");
}

static void bed_up(struct kunit *test)
{
	fuzz_loaded(test, "kdapl_isert");
	r = raw_new(test, 0);
	KD_ASSERT_OK(test, dat_ep_free(r->s->ep));
	r->s->ep = NULL;
	/* Qualifiers that no honest initiator has. */
	r->session = 1 << 20;
}

static const struct fuzz_target target = {
	.name = "isert",
	.modules = modules,
	.kinds = kinds,
	.n_kinds = KINDS,
	.big_endian = true,
	.run = run_input,
	.check = check,
	.corpus = corpus,
	.n_corpus = ARRAY_SIZE(corpus),
};

static void isert_corpus(struct kunit *test)
{
	bed_up(test);
	fuzz_replay(test, &target);
}

static void isert_search(struct kunit *test)
{
	bed_up(test);
	fuzz_search(test, &target);
}

/* A simulated adapter has no packets that would be lost, and is the fastest. */
static KD_GENERATOR(gen_roce)
{
	return prev ? NULL : KD_GENERATE(kd_gen_simulated_ia, prev);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(isert_corpus, gen_roce),
	KUNIT_CASE_PARAM(isert_search, gen_roce),
	{}
};

KD_SUITE("kdapl-fuzz-isert", cases, "inputs for the wire of kdapl_isert.ko",
	 .init = raw_init, .suite_init = raw_target_up, .suite_exit = raw_target_down);
