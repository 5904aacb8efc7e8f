// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: initiators that take no answers, memory that is not there, and
 * limits that a legal configuration comes to. Nothing spins, nobody else waits, and each command
 * is answered or its connection ends.
 */
#include <linux/module.h>
#include <linux/stringify.h>
#include <scsi/scsi.h>
#include <target/target_core_base.h>
#include "device.h"
#include "liar.h"
#include "probe.h"
#include "raw.h"
#include "shell.h"

#define TPG	"/sys/kernel/config/target/iscsi/iqn.2026-01.test:raw/tpgt_1"
/* Answers of a connection that may be on their way. */
#define ANSWERS	128

static void depth_is_back(void *unused)
{
	WARN_ON(shell("echo 64 >" TPG "/attrib/default_cmdsn_depth"));
}

static void set_depth(struct kunit *test, unsigned int depth)
{
	char command[128];

	KUNIT_ASSERT_TRUE(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, depth_is_back, NULL));
	snprintf(command, sizeof(command), "echo %u >" TPG "/attrib/default_cmdsn_depth", depth);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
}

/* ---- Answers that nobody takes ------------------------------------------------------- */

/* The command that is counted, and how often LIO has wanted to answer it */
static u64 counted_tag;
static atomic_t counted;

static void on_complete(void *data, struct se_cmd *cmd)
{
	if (cmd->tag == counted_tag)
		atomic_inc(&counted);
}

static bool was_counted(void *unused)
{
	return atomic_read(&counted);
}

static bool all_answers_are_posted(void *test)
{
	return raw_sessions_with(test, "posted=" __stringify(ANSWERS)) == 1;
}

enum late {
	LATE_DATA,
	LATE_STATUS,
};

static KD_CHOICES(gen_late, kd_gen_any_ia_and,
	[LATE_DATA] = "a read",
	[LATE_STATUS] = "a command without data")

/* Make @r one that takes the answer to its login, and one more. */
static struct raw *login_of_one_who_takes_nothing(struct kunit *test)
{
	struct raw *r = raw_new(test, 1);

	if (kd_is_iwarp(r->s))
		kunit_skip(test, "the device ends a connection that has no receive");
	KUNIT_ASSERT_TRUE(test, raw_start(r));
	raw_log_in(r, RAW_SOLICITED);
	raw_expect_alive(r);
	return r;
}

/*
 * A backend has completed a command, and all answers of its connection are on their way to an
 * initiator that takes none. LIO is not told to try again, which it would do without a pause.
 */
static void pressure_no_answer_left(struct kunit *test)
{
	struct raw *r = login_of_one_who_takes_nothing(test), *other = raw_login(test);
	const struct iscsi_scsi_rsp *rsp = (const struct iscsi_scsi_rsp *)&r->got.hdr;
	const struct kd_param *p = test->param_value;
	struct raw_pdu *pdu = r->pdu;
	u64 slot;
	int i;

	for (i = 0; i < ANSWERS + 3; i++) {
		*pdu = raw_nop(r, true);
		KUNIT_ASSERT_TRUE(test, raw_send(r, pdu, RAW_HEADERS));
		/* The target is to read them before they reach the hard watermark. */
		if (i % 32 == 31)
			raw_expect_alive(other);
	}
	KUNIT_ASSERT_TRUE(test, kd_wait_until(all_answers_are_posted, test, KD_TIMEOUT_MS));
	other = raw_login(test);
	*pdu = raw_read(r, p->choice == LATE_DATA ? 8 : 0);
	if (p->choice == LATE_STATUS) {
		pdu->hdr.flags &= ~ISCSI_FLAG_CMD_READ;
		((struct iscsi_scsi_req *)&pdu->hdr)->cdb[0] = TEST_UNIT_READY;
	}
	counted_tag = (__force u32)pdu->hdr.itt;
	atomic_set(&counted, 0);
	kd_probe(test, "target_cmd_complete", on_complete);
	KUNIT_ASSERT_TRUE(test, raw_send(r, pdu, RAW_HEADERS));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(was_counted, NULL, KD_TIMEOUT_MS));
	/* Time for LIO's work item, which these need as well. */
	for (i = 0; i < 16; i++) {
		other->pdu[0] = raw_read(other, 8);
		other->pdu[0].hdr.itt = (__force itt_t)cpu_to_be32(1000 + i);
		KUNIT_ASSERT_TRUE(test, raw_send(other, other->pdu, RAW_HEADERS));
		KUNIT_ASSERT_TRUE(test, raw_receive(other, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	}
	KUNIT_EXPECT_EQ_MSG(test, atomic_read(&counted), 1,
			    "LIO has tried to answer a command %d times",
			    atomic_read(&counted));
	/* When the initiator takes its answers this one is among them. */
	for (slot = 1; slot < RAW_RECVS; slot++)
		raw_post(r, slot);
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, r->got.hdr.itt == pdu->hdr.itt);
	KUNIT_EXPECT_EQ(test, rsp->cmd_status, SAM_STAT_GOOD);
	raw_expect_alive(r);
}

/* However many commands a session may have, so many unanswered ones it may not. */
static void pressure_nops(struct kunit *test)
{
	struct raw *r, *other;
	int i;

	set_depth(test, 512);
	other = raw_login(test);
	r = login_of_one_who_takes_nothing(test);
	for (i = 0; i < 4 * ANSWERS; i++) {
		r->pdu[0] = raw_nop(r, true);
		if (!raw_send(r, r->pdu, RAW_HEADERS))
			break;
		/* Time for the target, or they would be too many that lie unread. */
		if (i % 16 == 15)
			raw_expect_alive(other);
	}
	/* By the bound, or on several CPUs by the hard watermark. */
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	raw_expect_alive(other);
	raw_close(r);
	raw_close(other);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS));
}

/* ---- Logins that nobody takes the answer to ------------------------------------------ */

#define MANY	60

enum many {
	MANY_LOGINS,
	MANY_REFUSED,
};

static KD_CHOICES(gen_many, kd_gen_any_ia_and,
	[MANY_LOGINS] = "logins",
	[MANY_REFUSED] = "logins that are refused")

static void send_login(struct raw *r, bool refused)
{
	u32 len;

	r->pdu[0] = raw_login_pdu(r, RAW_SOLICITED, &len);
	if (refused) {
		((struct iscsi_login_req *)&r->pdu[0].hdr)->min_version = 9;
		((struct iscsi_login_req *)&r->pdu[0].hdr)->max_version = 9;
	}
	KUNIT_ASSERT_TRUE(r->s->test, raw_send(r, r->pdu, len));
}

/* Initiators that take no answer to their logins hold up nobody who comes after them. */
static void pressure_logins(struct kunit *test)
{
	struct raw *other = raw_login(test), *r[MANY];
	const struct kd_param *p = test->param_value;
	int i;

	for (i = 0; i < MANY; i++) {
		r[i] = raw_new(test, 0);
		KUNIT_ASSERT_TRUE(test, raw_start(r[i]));
		send_login(r[i], p->choice == MANY_REFUSED);
	}
	raw_expect_alive(raw_login(test));
	for (i = 0; i < MANY; i++)
		raw_close(r[i]);
	raw_expect_alive(other);
}

/* Peers that ask for connections, and do not finish connecting, keep nobody out. */
static void pressure_half_open(struct kunit *test)
{
	struct raw *r = raw_new(test, RAW_RECVS);
	int i;

	for (i = 0; i < 64; i++)
		kd_half_connect(r->s, RAW_PORT, NULL, 0);
	/* Each of those that make room takes a moment to do so. */
	for (i = 0; i < 4; i++)
		raw_expect_alive(raw_login(test));
}

/* Who is refused and takes the answer late is told all the same. */
static void pressure_refusal(struct kunit *test)
{
	struct raw *r = raw_new(test, 0);
	const struct iscsi_login_rsp *rsp = (const struct iscsi_login_rsp *)&r->got.hdr;

	if (kd_is_iwarp(r->s))
		kunit_skip(test, "the device ends a connection that has no receive");
	KUNIT_ASSERT_TRUE(test, raw_start(r));
	send_login(r, true);
	/* LIO is through with it when it has let in another one. */
	raw_expect_alive(raw_login(test));
	raw_post(r, 0);
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, rsp->status_class, ISCSI_STATUS_CLS_INITIATOR_ERR);
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
}

/*
 * Who is refused and never takes the answer is disconnected in the end. The answer that is
 * flushed then would queue the work that ends the connection once more.
 */
static void pressure_refusal_not_taken(struct kunit *test)
{
	struct raw *r = raw_new(test, 0);

	if (kd_is_iwarp(r->s))
		kunit_skip(test, "the device ends a connection that has no receive");
	KUNIT_ASSERT_TRUE(test, raw_start(r));
	send_login(r, true);
	raw_expect_alive(raw_login(test));
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	raw_expect_alive(raw_login(test));
}

/* ---- What a legal configuration comes to --------------------------------------------- */

/* Data in as many PDUs as can be: the hard watermark is below what all buffers can become. */
static void pressure_short_segments(struct kunit *test)
{
	const u32 blocks = SZ_64K / RAW_BLOCK;
	struct raw_pdu *pdu;
	struct raw *r;
	long hard, window;
	u32 i;

	set_depth(test, 512);
	r = raw_login_how(test, RAW_SHORT_SEGMENTS);
	/* It may do what was agreed, also before LIO is ready for that. */
	pdu = r->pdu;
	pdu[0] = raw_write(r, blocks);
	pdu[0].hdr.flags &= ~ISCSI_FLAG_CMD_FINAL;
	KUNIT_ASSERT_TRUE(test, raw_send(r, &pdu[0], RAW_HEADERS));
	for (i = 0; i < blocks; i++) {
		pdu[1] = raw_data_out(&pdu[0], i * RAW_BLOCK, RAW_BLOCK);
		((struct iscsi_data *)&pdu[1].hdr)->datasn = cpu_to_be32(i);
		if (i < blocks - 1)
			pdu[1].hdr.flags &= ~ISCSI_FLAG_CMD_FINAL;
		kd_fill(pdu[1].data, RAW_BLOCK, i);
		KUNIT_ASSERT_TRUE(test, raw_send(r, &pdu[1], RAW_HEADERS + RAW_BLOCK));
	}
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, ((struct iscsi_scsi_rsp *)&r->got.hdr)->cmd_status, SAM_STAT_GOOD);
	hard = raw_session(test, "hard");
	window = raw_session(test, "window");
	KUNIT_EXPECT_GE(test, window, 1);
	KUNIT_EXPECT_GE(test, hard, window * (1 + (long)blocks));
	/* Half of srq_max */
	KUNIT_EXPECT_LE(test, hard, 4500);
	KUNIT_EXPECT_LE(test, (s32)(r->max_cmdsn - r->cmdsn + 1), window);
	r->data = kd_buf_alloc(r->s, SZ_64K);
	pdu[0] = raw_read(r, blocks);
	KUNIT_ASSERT_TRUE(test, raw_send(r, &pdu[0], RAW_HEADERS));
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	for (i = 0; i < blocks; i++)
		KUNIT_EXPECT_TRUE_MSG(test, kd_has_pattern(r->data->va + i * RAW_BLOCK,
							   RAW_BLOCK, i), "block %u", i);
	raw_close(r);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS));
}

/* The longest message of the target's adapter while it is opened */
#define LONGEST	(3 * PAGE_SIZE)
/* Data of a command; the more pages, the more of them adjoin. */
#define LONG	SZ_256K

static struct kd_hook port;
static struct kd_hook longest;
/* Requests of the target that go on at @longest_end, where one as long as can be has ended */
static atomic_t full;
static u64 longest_end;
static char portal_command[160];

static int short_messages(struct ib_device *dev, u32 n, struct ib_port_attr *attr)
{
	int err = port.real.query_port(dev, n, attr);

	attr->max_msg_sz = LONGEST;
	return err;
}

static int count_full(struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad)
{
	const struct ib_send_wr *at;

	for (at = wr; at; at = at->next) {
		if (qp->qp_type != IB_QPT_RC || !at->num_sge)
			continue;
		if (at->sg_list->addr == longest_end)
			atomic_inc(&full);
		longest_end = at->num_sge == 1 && at->sg_list->length == LONGEST ?
			      at->sg_list->addr + LONGEST : 0;
	}
	return longest.real.post_send(qp, wr, bad);
}

/* The adapter is closed when nobody is there and no portal is on it, and is opened anew. */
static void portal_anew(void *unused)
{
	WARN_ON(shell(portal_command));
}

/* Make r->pdu[0], a command, one for LONG bytes, and have it answered. */
static void expect_long_answer(struct raw *r)
{
	struct iscsi_scsi_req *req = (struct iscsi_scsi_req *)&r->pdu[0].hdr;
	struct kunit *test = r->s->test;

	req->data_length = cpu_to_be32(LONG);
	req->cdb[7] = LONG / RAW_BLOCK >> 8;
	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, RAW_HEADERS));
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, ((struct iscsi_scsi_rsp *)&r->got.hdr)->cmd_status, SAM_STAT_GOOD);
}

/* Data in a piece that is longer than a request of the adapter may be goes in several. */
static void pressure_long_pieces(struct kunit *test)
{
	struct raw *r = raw_new(test, RAW_RECVS);
	unsigned int i, seed = 0;

	KUNIT_ASSERT_TRUE(test, raw_wait_adapter(r->s, "connections", 0, 0, KD_TIMEOUT_MS));
	snprintf(portal_command, sizeof(portal_command),
		 "cd " TPG "/np/%pISc:3270 && echo 0 >iser && echo 1 >iser", r->s->addr);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, portal_anew, NULL));
	kd_hook(test, r->s->name, &port)->ops.query_port = short_messages;
	portal_anew(NULL);
	atomic_set(&full, 0);
	longest_end = 0;
	kd_hook(test, r->s->name, &longest)->ops.post_send = count_full;
	KUNIT_ASSERT_TRUE(test, raw_start(r));
	raw_log_in(r, RAW_SOLICITED);
	r->data = kd_buf_alloc(r->s, LONG);
	/* Whether pages adjoin is up to the kernel. */
	for (i = 0; i < 8 || (i < 64 && !atomic_read(&full)); i++) {
		kd_fill(r->data->va, LONG, ++seed);
		r->pdu[0] = raw_write(r, 0);
		expect_long_answer(r);
		memset(r->data->va, 0, LONG);
		r->pdu[0] = raw_read(r, 0);
		expect_long_answer(r);
		KUNIT_EXPECT_TRUE(test, kd_has_pattern(r->data->va, LONG, seed));
	}
	kunit_info(test, "%d pieces were divided", atomic_read(&full));
	raw_close(r);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS));
	if (!atomic_read(&full))
		kunit_skip(test, "no pages adjoined");
}

/* ---- Allocations that fail ----------------------------------------------------------- */

enum pdu_kind {
	WHAT_WRITE,
	WHAT_WRITE_REST,
	WHAT_READ,
	WHAT_NOP,
	WHAT_TEXT,
	WHAT_TASK,
	WHATS,
};

static const char * const kind_names[] = {
	[WHAT_WRITE] = "write",
	[WHAT_WRITE_REST] = "rest of a write",
	[WHAT_READ] = "read",
	[WHAT_NOP] = "NOP",
	[WHAT_TEXT] = "text",
	[WHAT_TASK] = "task management",
};

static KD_CHOICES(gen_where, kd_gen_any_ia_and,
	[RAW_IN_UPCALLS] = "as PDUs arrive",
	[RAW_IN_COMPLETIONS] = "as backends complete commands",
	[RAW_IN_ANSWERS] = "as LIO answers")

#define MOST_FAULTS	100
/* LIO has three or so for each key. */
/* More pages than a command has triplets of its own */
#define BYTES		SZ_64K
#define NOP_DATA	400
/* Within this an answer comes, or the connection ends. */
#define BOUND_MS	8000

/* Make the PDU of @kind, and return its length. */
static u32 make(struct raw *r, enum pdu_kind kind, u32 seed, struct raw_pdu *pdu)
{
	u32 len = 0;

	switch (kind) {
	case WHAT_WRITE:
	case WHAT_WRITE_REST:
		kd_fill(r->data->va, BYTES, seed);
		*pdu = raw_write(r, BYTES / RAW_BLOCK);
		if (kind == WHAT_WRITE)
			break;
		len = RAW_BLOCK;
		memcpy(pdu->data, r->data->va, len);
		/* What is advertised is the rest. */
		pdu->iser.write_va = cpu_to_be64((uintptr_t)r->data->va + len);
		break;
	case WHAT_READ:
		memset(r->data->va, 0, BYTES);
		*pdu = raw_read(r, BYTES / RAW_BLOCK);
		break;
	case WHAT_NOP:
		*pdu = raw_nop(r, true);
		len = NOP_DATA;
		kd_fill(pdu->data, len, seed);
		break;
	case WHAT_TEXT:
		*pdu = raw_make(r, ISCSI_OP_TEXT | ISCSI_OP_IMMEDIATE);
		((struct iscsi_text *)&pdu->hdr)->ttt = RAW_NONE;
		len = 16;
		memcpy(pdu->data, "SendTargets=All", len);
		break;
	default:
		*pdu = raw_task(r, ISCSI_TM_FUNC_ABORT_TASK, RESERVED_ITT);
		break;
	}
	hton24(pdu->hdr.dlength, len);
	return RAW_HEADERS + len;
}

/* Is what was received the answer that says that all is well? Then its data has to be right. */
static bool is_good(struct raw *r, enum pdu_kind kind, u32 seed)
{
	switch (r->got.hdr.opcode & ISCSI_OPCODE_MASK) {
	case ISCSI_OP_SCSI_CMD_RSP:
		if (((struct iscsi_scsi_rsp *)&r->got.hdr)->cmd_status != SAM_STAT_GOOD)
			return false;
		if (kind == WHAT_READ)
			KUNIT_EXPECT_TRUE_MSG(r->s->test,
					      kd_has_pattern(r->data->va, BYTES, seed),
					      "the data of a read is wrong");
		return true;
	case ISCSI_OP_NOOP_IN:
		KUNIT_EXPECT_TRUE(r->s->test, kd_has_pattern(r->got.data, NOP_DATA, seed));
		return true;
	case ISCSI_OP_TEXT_RSP:
	case ISCSI_OP_SCSI_TMFUNC_RSP:
		return true;
	default:
		return false;
	}
}

/* Send a PDU; set @ended if that ends the connection. Return whether all is well. */
static bool try(struct raw *r, enum pdu_kind kind, u32 seed, bool *ended)
{
	struct raw_pdu *pdu = r->pdu;
	u32 len = make(r, kind, seed, pdu);

	*ended = true;
	if (!raw_send(r, pdu, len))
		return false;
	do {
		if (!raw_receive_any(r, BOUND_MS)) {
			KUNIT_EXPECT_TRUE_MSG(r->s->test, raw_is_down(r, BOUND_MS),
					      "%s: neither an answer nor an end",
					      kind_names[kind]);
			return false;
		}
	} while (r->got.hdr.opcode != ISCSI_OP_REJECT && r->got.hdr.itt != pdu->hdr.itt);
	/* LIO does not count a command that it rejects, so the next ones would wait for it. */
	*ended = r->got.hdr.opcode == ISCSI_OP_REJECT;
	return is_good(r, kind, seed);
}

static struct raw *login_with_data(struct kunit *test)
{
	struct raw *r = raw_login(test);

	r->data = kd_buf_alloc(r->s, BYTES);
	return r;
}

/* Have the first, second, ... allocation fail until none does. */
static void walk(struct kunit *test, struct raw **r, enum raw_where where, enum pdu_kind kind,
		 u32 *seed)
{
	unsigned int nth, bad = 0;
	bool ended, good, failed;

	for (nth = 1; nth < MOST_FAULTS; nth++) {
		if (kind != WHAT_READ)
			++*seed;
		raw_fail_allocation(test, where, nth);
		good = try(*r, kind, *seed, &ended);
		failed = raw_allocation_failed();
		bad += !good;
		if (ended) {
			raw_close(*r);
			*r = login_with_data(test);
		}
		/* What was answered as good is what is there. */
		if (kind <= WHAT_WRITE_REST && !good)
			good = try(*r, WHAT_WRITE, *seed, &ended);
		if (kind <= WHAT_WRITE_REST)
			KUNIT_EXPECT_TRUE(test, try(*r, WHAT_READ, *seed, &ended));
		if (!failed)
			break;
	}
	kunit_info(test, "%s: %u of %u", kind_names[kind], bad, nth);
	KUNIT_EXPECT_LT(test, nth, MOST_FAULTS);
}

/* After any failure a command is answered, with the right data or an error, or it has ended. */
static void pressure_allocations(struct kunit *test)
{
	const struct kd_param *p = test->param_value;
	struct raw *other, *r;
	enum pdu_kind kind;
	bool ended;
	u32 seed = 1;

	raw_open_faults(test);
	other = raw_login(test);
	r = login_with_data(test);
	KUNIT_ASSERT_TRUE(test, try(r, WHAT_WRITE, seed, &ended));
	for (kind = 0; kind < WHATS; kind++)
		walk(test, &r, p->choice, kind, &seed);
	raw_expect_alive(r);
	raw_expect_alive(other);
}

/* LIO keeps the depth that the first session had, so those that want another come first. */
static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(pressure_nops, kd_gen_any_ia),
	KUNIT_CASE_PARAM(pressure_short_segments, kd_gen_any_ia),
	KUNIT_CASE_PARAM(pressure_no_answer_left, gen_late),
	KUNIT_CASE_PARAM(pressure_logins, gen_many),
	KUNIT_CASE_PARAM(pressure_half_open, kd_gen_any_ia),
	KUNIT_CASE_PARAM(pressure_refusal, kd_gen_any_ia),
	KUNIT_CASE_PARAM(pressure_refusal_not_taken, kd_gen_any_ia),
	KUNIT_CASE_PARAM(pressure_long_pieces, kd_gen_any_ia),
	KUNIT_CASE_PARAM(pressure_allocations, gen_where),
	{}
};

KD_SUITE("kdapl-isert-pressure", isert_cases, "kdapl_isert.ko: no room, no memory, no answer",
	 RAW_TARGET);
