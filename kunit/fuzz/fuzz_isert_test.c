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

static u32 read_pdu(char *word, size_t room)
{
	u8 opcode = r->got.hdr.opcode & ISCSI_OPCODE_MASK;
	itt_t itt = r->got.hdr.itt;

	if (opcode == ISCSI_OP_REJECT)
		itt = ((struct iscsi_hdr *)r->got.data)->itt;
	snprintf(word, room, "%x.%x", opcode, got_status());
	return (__force u32)itt;
}

static bool receive_pdu(void)
{
	return raw_receive_any(r, 0);
}

static struct fuzz_answers answers = { .receive = receive_pdu, .read = read_pdu };

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
	answers.side = r->s;
	answers.ended = !raw_start(r);
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
		fuzz_sends(&answers, n, (__force u32)pdu[n].hdr.itt);
		n++;
		message++;
	} while (++i < run->input->n && message->joined && n < KDAT_MAX_REQUESTS);
	if (!answers.ended)
		answers.ended = !raw_send_all(r, pdu, len, n);
	fuzz_take_answers(run, &answers, n);
	return i;
}

static void run_input(struct fuzz_run *run)
{
	unsigned int i = 0;

	connect(run->test);
	if (run->input->message[0].kind > K_DISCOVER)
		raw_log_in(r, RAW_SOLICITED);
	while (i < run->input->n && (!answers.ended || fuzz_expects(run, 0, "e")))
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

FUZZ_TARGET(isert, .set_up = bed_up, .run = run_input, .check = check, .big_endian = true)

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(isert_corpus, fuzz_gen_ia),
	KUNIT_CASE_PARAM(isert_search, fuzz_gen_ia),
	{}
};

KD_SUITE("kdapl-fuzz-isert", cases, "inputs for the wire of kdapl_isert.ko", RAW_TARGET);
