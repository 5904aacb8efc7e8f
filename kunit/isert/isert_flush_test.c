// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: a backend of the suite's own, which stands still when the test
 * says so, in whatever it was asked to do. Nobody else waits for it. And it looks at the pages
 * that it is to write from.
 */
#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uio.h>
#include <scsi/scsi.h>
#include <target/target_core_base.h>
#include "probe.h"
#include "raw.h"
#include "shell.h"

#define TPG	"/sys/kernel/config/target/iscsi/iqn.2026-01.test:raw/tpgt_1"
#define CORE	"/sys/kernel/config/target/core/fileio_7"
/* How long somebody may take who has nothing to do with the backend. */
#define SOON_MS		(10 * MSEC_PER_SEC)
#define WRITES		16

/*
 * A file that is flushed, read and written when the test says so.
 * @holds: whoever comes waits for @may_end
 * @began: somebody waits
 * @may_end: for who does
 * @writes: how many there were
 * @block: where the first of them began
 * @unowned: of them, those from a page that is gone when a reference to it is dropped
 * @unaligned: of them, those from memory that does not begin at a sector
 */
static struct {
	bool holds;
	struct completion began;
	struct completion may_end;
	unsigned int writes;
	unsigned int block[WRITES];
	unsigned int unowned;
	unsigned int unaligned;
} slow;

static void slow_wait(void)
{
	if (!READ_ONCE(slow.holds))
		return;
	complete(&slow.began);
	wait_for_completion(&slow.may_end);
}

static int slow_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	slow_wait();
	return 0;
}

static ssize_t slow_read(struct kiocb *iocb, struct iov_iter *iter)
{
	size_t len = iov_iter_count(iter);

	slow_wait();
	iov_iter_zero(len, iter);
	iocb->ki_pos += len;
	return len;
}

/* Direct I/O of some file systems takes references to the pages, and drops them. */
static ssize_t slow_write(struct kiocb *iocb, struct iov_iter *iter)
{
	size_t len = iov_iter_count(iter);
	const struct bio_vec *bvec = iter->bvec;

	if (slow.writes < WRITES)
		slow.block[slow.writes] = (unsigned int)iocb->ki_pos / RAW_BLOCK;
	slow.writes++;
	slow_wait();
	if (!page_count(bvec->bv_page + bvec->bv_offset / PAGE_SIZE))
		slow.unowned++;
	if (!IS_ALIGNED(bvec->bv_offset, RAW_BLOCK))
		slow.unaligned++;
	iov_iter_advance(iter, len);
	iocb->ki_pos += len;
	return len;
}

static const struct file_operations slow_fops = {
	.owner = THIS_MODULE,
	.fsync = slow_fsync,
	.read_iter = slow_read,
	.write_iter = slow_write,
};

static struct miscdevice slow_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kdapl_slow",
	.fops = &slow_fops,
};

static bool slow_there;

static int flush_up(struct kunit_suite *suite)
{
	int err = raw_target_up(suite);

	slow_there = false;
	if (err || shell("test -d " TPG))
		return err;
	init_completion(&slow.began);
	init_completion(&slow.may_end);
	err = misc_register(&slow_device);
	if (err)
		return err;
	err = shell("set -e\n"
		    "mkdir -p " CORE "/slow " TPG "/lun/lun_1\n"
		    "echo fd_dev_name=/dev/kdapl_slow,fd_dev_size=1048576 >" CORE "/slow/control\n"
		    "echo 1 >" CORE "/slow/enable\n"
		    "ln -s " CORE "/slow " TPG "/lun/lun_1/l\n");
	if (err) {
		misc_deregister(&slow_device);
		return -EIO;
	}
	slow_there = true;
	return 0;
}

static void flush_down(struct kunit_suite *suite)
{
	if (slow_there) {
		WARN_ON(shell("rm " TPG "/lun/lun_1/l && rmdir " TPG "/lun/lun_1 " CORE "/slow "
			      CORE));
		misc_deregister(&slow_device);
	}
	raw_target_down(suite);
}

static void let_it_end(void *unused)
{
	WRITE_ONCE(slow.holds, false);
	complete_all(&slow.may_end);
}

/* Have the backend stand still from now on, until let_it_end() or the end of the case. */
static void hold_it(struct kunit *test)
{
	reinit_completion(&slow.began);
	reinit_completion(&slow.may_end);
	slow.writes = 0;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, let_it_end, NULL));
	WRITE_ONCE(slow.holds, true);
}

static void expect_held(struct kunit *test)
{
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&slow.began,
							    msecs_to_jiffies(KD_TIMEOUT_MS)));
}

static void to_lun_1(struct raw_pdu *pdu)
{
	((struct iscsi_scsi_req *)&pdu->hdr)->lun.scsi_lun[1] = 1;
}

/* Make r->pdu[0] a command without data for LUN 1. */
static void make_lun_1(struct raw *r, u8 operation)
{
	struct iscsi_scsi_req *req = (struct iscsi_scsi_req *)&r->pdu[0].hdr;

	r->pdu[0] = raw_make(r, ISCSI_OP_SCSI_CMD);
	req->flags = ISCSI_FLAG_CMD_FINAL | ISCSI_ATTR_SIMPLE;
	req->cmdsn = cpu_to_be32(r->cmdsn++);
	req->cdb[0] = operation;
	to_lun_1(&r->pdu[0]);
}

/* Hear what LIO has to tell before it takes a command: that the LUN is new. */
static void expect_ready(struct raw *r)
{
	const struct iscsi_scsi_rsp *rsp = (const struct iscsi_scsi_rsp *)&r->got.hdr;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		make_lun_1(r, TEST_UNIT_READY);
		KUNIT_ASSERT_TRUE(r->s->test, raw_send(r, r->pdu, RAW_HEADERS));
		KUNIT_ASSERT_TRUE(r->s->test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP,
							  KD_TIMEOUT_MS));
		if (rsp->cmd_status == SAM_STAT_GOOD)
			return;
	}
	KUNIT_FAIL_AND_ABORT(r->s->test, "LUN 1 is not ready");
}

/* Make r->pdu[0] a write of @block of LUN 1, whose data comes with it. Return its length. */
static u32 make_write(struct raw *r, unsigned int block)
{
	struct iscsi_scsi_req *req = (struct iscsi_scsi_req *)&r->pdu[0].hdr;

	r->pdu[0] = raw_write(r, 1);
	to_lun_1(&r->pdu[0]);
	hton24(req->dlength, RAW_BLOCK);
	req->cdb[5] = block;
	return RAW_HEADERS + RAW_BLOCK;
}

/* ---- What others notice -------------------------------------------------------------- */

enum held {
	HELD_FLUSH,
	HELD_READ,
	HELD_FETCHED,
	HELD_IMMEDIATE,
};

static KD_CHOICES(gen_held, kd_gen_any_ia_and,
	[HELD_FLUSH] = "it flushes",
	[HELD_READ] = "it reads",
	[HELD_FETCHED] = "it writes data that was fetched",
	[HELD_IMMEDIATE] = "it writes data that came with the command")

/* Make r->pdu[0] a command for LUN 1. Return its length. */
static u32 make_held(struct raw *r, enum held what)
{
	switch (what) {
	case HELD_FLUSH:
		make_lun_1(r, SYNCHRONIZE_CACHE);
		break;
	case HELD_READ:
		r->pdu[0] = raw_read(r, 1);
		break;
	case HELD_FETCHED:
		r->pdu[0] = raw_write(r, 1);
		break;
	case HELD_IMMEDIATE:
		return make_write(r, 0);
	}
	to_lun_1(&r->pdu[0]);
	return RAW_HEADERS;
}

/* Expect that r->pdu[0] is answered soon, and well if it is a command. */
static void expect_soon(struct raw *r, u8 opcode, u32 len)
{
	struct kunit *test = r->s->test;

	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, len));
	KUNIT_ASSERT_TRUE_MSG(test, raw_receive(r, opcode, SOON_MS),
			      "no answer to opcode %#x while a backend stands still",
			      r->pdu[0].hdr.opcode);
	KUNIT_EXPECT_TRUE(test, r->got.hdr.itt == r->pdu[0].hdr.itt);
	if (opcode == ISCSI_OP_SCSI_CMD_RSP)
		KUNIT_EXPECT_EQ(test, ((struct iscsi_scsi_rsp *)&r->got.hdr)->cmd_status,
				SAM_STAT_GOOD);
}

/* @r, which may be the session that waits for LUN 1, is served otherwise. */
static void expect_served(struct raw *r)
{
	r->pdu[0] = raw_nop(r, true);
	expect_soon(r, ISCSI_OP_NOOP_IN, RAW_HEADERS);
	/* LIO takes these in turn. */
	r->pdu[0] = raw_nop(r, false);
	expect_soon(r, ISCSI_OP_NOOP_IN, RAW_HEADERS);
	r->pdu[0] = raw_read(r, 1);
	expect_soon(r, ISCSI_OP_SCSI_CMD_RSP, RAW_HEADERS);
	r->pdu[0] = raw_write(r, 1);
	expect_soon(r, ISCSI_OP_SCSI_CMD_RSP, RAW_HEADERS);
}

static void expect_discovery(struct kunit *test)
{
	struct raw *r = raw_login_how(test, RAW_DISCOVERY);

	r->pdu[0] = raw_make(r, ISCSI_OP_TEXT | ISCSI_OP_IMMEDIATE);
	((struct iscsi_text *)&r->pdu[0].hdr)->ttt = RAW_NONE;
	hton24(r->pdu[0].hdr.dlength, 16);
	memcpy(r->pdu[0].data, "SendTargets=All", 16);
	expect_soon(r, ISCSI_OP_TEXT_RSP, RAW_HEADERS + 16);
	raw_close(r);
}

/* A backend that stands still is waited for by who wants something of it, and by nobody else. */
static void flush_holds_up_nobody(struct kunit *test)
{
	struct raw *r = raw_login(test), *other = raw_login(test), *late;
	const struct kd_param *p = test->param_value;
	itt_t itt;
	u32 len;

	expect_ready(r);
	hold_it(test);
	len = make_held(r, p->choice);
	itt = r->pdu[0].hdr.itt;
	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, len));
	expect_held(test);
	expect_served(other);
	expect_served(r);
	late = raw_login(test);
	expect_served(late);
	expect_discovery(test);
	let_it_end(NULL);
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, r->got.hdr.itt == itt);
	KUNIT_EXPECT_EQ(test, ((struct iscsi_scsi_rsp *)&r->got.hdr)->cmd_status, SAM_STAT_GOOD);
	raw_expect_alive(r);
}

/* ---- What waits for it --------------------------------------------------------------- */

/* Have the backend stand still with a write of block 0 of LUN 1. */
static void hold_a_write(struct raw *r)
{
	u32 len;

	hold_it(r->s->test);
	len = make_write(r, 0);
	KUNIT_ASSERT_TRUE(r->s->test, raw_send(r, r->pdu, len));
	expect_held(r->s->test);
}

/* Send writes of blocks @from to @to - 1 of LUN 1, and hear that LIO has them. */
static void send_writes(struct raw *r, unsigned int from, unsigned int to)
{
	struct kunit *test = r->s->test;
	u32 len;

	for (; from < to; from++) {
		len = make_write(r, from);
		KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, len));
	}
	r->pdu[0] = raw_nop(r, false);
	expect_soon(r, ISCSI_OP_NOOP_IN, RAW_HEADERS);
}

/* Commands come to the backend in their order, but for one that is for the head of the queue. */
static void flush_keeps_order(struct kunit *test)
{
	struct raw *r = raw_login(test);
	unsigned int i;
	u32 len;

	expect_ready(r);
	hold_a_write(r);
	send_writes(r, 2, 8);
	len = make_write(r, 1);
	r->pdu[0].hdr.flags &= ~ISCSI_FLAG_CMD_ATTR_MASK;
	r->pdu[0].hdr.flags |= ISCSI_ATTR_HEAD_OF_QUEUE;
	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, len));
	send_writes(r, 8, 8);
	KUNIT_EXPECT_EQ(test, slow.writes, 1);
	let_it_end(NULL);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, slow.writes, 8);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, slow.block[i], i);
}

/* The command that LIO was given last */
static struct se_cmd *last;

static void on_start(void *data, struct se_cmd *cmd)
{
	WRITE_ONCE(last, cmd);
}

static bool last_is_aborted(void *unused)
{
	return READ_ONCE(last->transport_state) & CMD_T_ABORTED;
}

static KD_CHOICES(gen_task, kd_gen_any_ia_and,
	[0] = "it is aborted",
	[1] = "the LUN is reset")

/*
 * LIO tells of an aborted command when the backend has let go of it. One that the backend has
 * not seen by then it never sees.
 */
static void flush_aborted(struct kunit *test)
{
	struct raw *r = raw_login(test), *other = raw_login(test);
	const struct kd_param *p = test->param_value;
	itt_t itt;

	expect_ready(r);
	hold_a_write(r);
	kd_probe(test, "target_sequencer_start", on_start);
	itt = (__force itt_t)cpu_to_be32(r->itt);
	send_writes(r, 1, 2);
	r->pdu[0] = p->choice ? raw_task(r, ISCSI_TM_FUNC_LOGICAL_UNIT_RESET, RESERVED_ITT) :
				raw_task(r, ISCSI_TM_FUNC_ABORT_TASK, itt);
	/* Behind the write there was a NOP-Out. */
	((struct iscsi_tm *)&r->pdu[0].hdr)->refcmdsn = cpu_to_be32(r->cmdsn - 2);
	to_lun_1(&r->pdu[0]);
	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, RAW_HEADERS));
	KUNIT_ASSERT_TRUE(test, kd_wait_until(last_is_aborted, NULL, SOON_MS));
	expect_served(other);
	let_it_end(NULL);
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_TMFUNC_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, ((struct iscsi_tm_rsp *)&r->got.hdr)->response,
			ISCSI_TMF_RSP_COMPLETE);
	KUNIT_EXPECT_EQ_MSG(test, slow.writes, 1, "the backend has written what was aborted");
	raw_expect_alive(r);
	raw_expect_alive(other);
}

/* What one initiator asks of others, in PERSISTENT RESERVE OUT, and their keys */
enum {
	PR_REGISTER,
	PR_RESERVE,
	PR_CLEAR = 3,
	PR_PREEMPT_AND_ABORT = 5,
	KEY = 1,
	OTHER_KEY,
};

/* Make r->pdu[0] ask for that, for writes to LUN 1. Return its length. */
static u32 make_reserve(struct raw *r, u8 action, u64 key, u64 service_key)
{
	struct iscsi_scsi_req *req = (struct iscsi_scsi_req *)&r->pdu[0].hdr;
	const __be64 keys[3] = { cpu_to_be64(key), cpu_to_be64(service_key) };

	r->pdu[0] = raw_write(r, 1);
	to_lun_1(&r->pdu[0]);
	hton24(req->dlength, sizeof(keys));
	req->data_length = cpu_to_be32(sizeof(keys));
	memset(req->cdb, 0, sizeof(req->cdb));
	req->cdb[0] = PERSISTENT_RESERVE_OUT;
	req->cdb[1] = action;
	req->cdb[2] = 1;
	req->cdb[8] = sizeof(keys);
	memcpy(r->pdu[0].data, keys, sizeof(keys));
	return RAW_HEADERS + sizeof(keys);
}

static void reserve(struct raw *r, u8 action, u64 key, u64 service_key)
{
	u32 len = make_reserve(r, action, key, service_key);

	KUNIT_ASSERT_TRUE(r->s->test, raw_send(r, r->pdu, len));
	KUNIT_ASSERT_TRUE(r->s->test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	/* LIO has registered somebody, and then finds no directory to write that down. */
	if (action != PR_REGISTER)
		KUNIT_EXPECT_EQ(r->s->test, ((struct iscsi_scsi_rsp *)&r->got.hdr)->cmd_status,
				SAM_STAT_GOOD);
}

/*
 * An initiator takes the reservation of another one, whose commands it waits for: one that the
 * backend has, and one that came after its own.
 */
static void flush_preempted(struct kunit *test)
{
	struct raw *r = raw_login(test), *other = raw_login(test);
	u32 len;

	expect_ready(r);
	expect_ready(other);
	reserve(r, PR_REGISTER, 0, KEY);
	reserve(r, PR_RESERVE, KEY, 0);
	reserve(other, PR_REGISTER, 0, OTHER_KEY);
	hold_a_write(r);
	len = make_reserve(other, PR_PREEMPT_AND_ABORT, OTHER_KEY, KEY);
	KUNIT_ASSERT_TRUE(test, raw_send(other, other->pdu, len));
	send_writes(other, 0, 0);
	send_writes(r, 1, 2);
	let_it_end(NULL);
	KUNIT_ASSERT_TRUE(test, raw_receive(other, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, ((struct iscsi_scsi_rsp *)&other->got.hdr)->cmd_status,
			SAM_STAT_GOOD);
	reserve(other, PR_CLEAR, OTHER_KEY, 0);
}

/*
 * A session ends while the backend is busy with its command: LIO frees it afterwards. What else
 * the session had for the backend is not done, since somebody may have written there anew.
 */
static void flush_session_ends(struct kunit *test)
{
	struct raw *r, *other;
	long left;

	/* Sessions of the case before would be counted. */
	KUNIT_ASSERT_TRUE(test, kd_wait_until(raw_nobody_is_there, test, KD_TIMEOUT_MS));
	r = raw_login(test);
	other = raw_login(test);
	expect_ready(r);
	hold_it(test);
	make_lun_1(r, SYNCHRONIZE_CACHE);
	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, RAW_HEADERS));
	expect_held(test);
	send_writes(r, 0, 4);
	left = raw_sessions(test) - 1;
	dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	KUNIT_EXPECT_FALSE_MSG(test, raw_wait_sessions(test, left, 500),
			       "the session is freed with a command that is being executed");
	let_it_end(NULL);
	KUNIT_EXPECT_TRUE(test, raw_wait_sessions(test, left, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, slow.writes, 0);
	raw_expect_alive(other);
	raw_expect_alive(raw_login(test));
}

/* ---- Pages --------------------------------------------------------------------------- */

/* Data that comes with a command, and is written from the receive buffer. */
static void flush_owned_pages(struct kunit *test)
{
	struct raw *r = raw_login(test);
	unsigned int i;
	u32 len;

	expect_ready(r);
	slow.writes = 0;
	slow.unowned = 0;
	slow.unaligned = 0;
	/* Buffers in all pages of a block. */
	for (i = 0; i < 12; i++) {
		len = make_write(r, i);
		expect_soon(r, ISCSI_OP_SCSI_CMD_RSP, len);
	}
	KUNIT_EXPECT_EQ(test, slow.writes, i);
	KUNIT_EXPECT_EQ(test, slow.unowned, 0);
	KUNIT_EXPECT_EQ(test, slow.unaligned, 0);
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(flush_holds_up_nobody, gen_held),
	KUNIT_CASE_PARAM(flush_keeps_order, kd_gen_any_ia),
	KUNIT_CASE_PARAM(flush_aborted, gen_task),
	KUNIT_CASE_PARAM(flush_preempted, kd_gen_any_ia),
	KUNIT_CASE_PARAM(flush_session_ends, kd_gen_any_ia),
	KUNIT_CASE_PARAM(flush_owned_pages, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-flush", isert_cases, "kdapl_isert.ko: a backend of its own",
	 .init = raw_init, .suite_init = flush_up, .suite_exit = flush_down);
