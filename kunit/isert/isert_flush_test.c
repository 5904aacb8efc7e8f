// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: a backend of the suite's own.
 *
 * It takes long to flush. LIO executes SYNCHRONIZE CACHE where the command is received, so that
 * all connections of an EVD wait for it; none of them may be taken for one whose initiator is
 * gone. And it looks at the pages that it is to write from.
 */
#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uio.h>
#include <scsi/scsi.h>
#include "raw.h"
#include "shell.h"

#define TPG	"/sys/kernel/config/target/iscsi/iqn.2026-01.test:raw/tpgt_1"
#define CORE	"/sys/kernel/config/target/core/fileio_7"
/* A session is broken when it has been silent for three times as long as it may. */
#define STALL_MS	(8 * MSEC_PER_SEC)

/*
 * A file that is flushed when the test says so.
 * @began: somebody flushes
 * @may_end: for who does
 * @writes: how many there were
 * @unowned: of them, those from a page that is gone when a reference to it is dropped
 * @unaligned: of them, those from memory that does not begin at a sector
 */
static struct {
	struct completion began;
	struct completion may_end;
	unsigned int writes;
	unsigned int unowned;
	unsigned int unaligned;
} slow;

static int slow_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	complete(&slow.began);
	wait_for_completion(&slow.may_end);
	return 0;
}

/* Direct I/O of some file systems takes references to the pages, and drops them. */
static ssize_t slow_write(struct kiocb *iocb, struct iov_iter *iter)
{
	size_t len = iov_iter_count(iter);
	const struct bio_vec *bvec = iter->bvec;

	slow.writes++;
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
	complete_all(&slow.may_end);
	WARN_ON(shell("echo 15 >/sys/module/kdapl_isert/parameters/ping_seconds"));
}

/* A command without data for LUN 1. */
static struct raw_pdu lun_1_pdu(struct raw *r, u8 operation)
{
	struct raw_pdu pdu = raw_make(r, ISCSI_OP_SCSI_CMD);
	struct iscsi_scsi_req *req = (struct iscsi_scsi_req *)&pdu.hdr;

	req->flags = ISCSI_FLAG_CMD_FINAL | ISCSI_ATTR_SIMPLE;
	req->cmdsn = cpu_to_be32(r->cmdsn++);
	req->lun.scsi_lun[1] = 1;
	req->cdb[0] = operation;
	return pdu;
}

/* Hear what LIO has to tell before it takes a command: that the LUN is new. */
static void expect_ready(struct raw *r)
{
	const struct iscsi_scsi_rsp *rsp = (const struct iscsi_scsi_rsp *)&r->got.hdr;
	struct raw_pdu pdu;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		pdu = lun_1_pdu(r, TEST_UNIT_READY);
		KUNIT_ASSERT_TRUE(r->s->test, raw_send(r, &pdu, RAW_HEADERS));
		KUNIT_ASSERT_TRUE(r->s->test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP,
							  KD_TIMEOUT_MS));
		if (rsp->cmd_status == SAM_STAT_GOOD)
			return;
	}
	KUNIT_FAIL_AND_ABORT(r->s->test, "LUN 1 is not ready");
}

/* Sessions that are pinged meanwhile, and one that waits for an answer, go on after it. */
static void flush_takes_long(struct kunit *test)
{
	struct raw *r = raw_login(test), *others[4];
	struct raw_pdu pdu;
	unsigned int i;

	if (kd_ia_has(r->s->name, KD_SIMULATED))
		kunit_skip(test, "8 seconds on one adapter are enough");
	for (i = 0; i < ARRAY_SIZE(others); i++)
		others[i] = raw_login(test);
	expect_ready(r);
	reinit_completion(&slow.began);
	reinit_completion(&slow.may_end);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, let_it_end, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("echo 1 >/sys/module/kdapl_isert/parameters/ping_seconds"));
	/* From now on nothing is completed: neither pings nor the answer to a NOP-Out. */
	pdu = lun_1_pdu(r, SYNCHRONIZE_CACHE);
	KUNIT_ASSERT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&slow.began,
							    msecs_to_jiffies(KD_TIMEOUT_MS)));
	pdu = raw_nop(others[0], true);
	KUNIT_EXPECT_TRUE(test, raw_send(others[0], &pdu, RAW_HEADERS));
	KUNIT_EXPECT_FALSE_MSG(test, raw_is_down(others[0], STALL_MS),
			       "a connection is broken while the backend flushes");
	complete_all(&slow.may_end);
	KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, ((struct iscsi_scsi_rsp *)&r->got.hdr)->cmd_status, SAM_STAT_GOOD);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		raw_expect_alive(others[i]);
	KUNIT_EXPECT_EQ(test, raw_adapter(r->s, "broken"), r->broken);
}

/* A session ends while the backend is busy with its command: LIO frees it afterwards. */
static void flush_session_ends(struct kunit *test)
{
	struct raw *r = raw_login(test), *other = raw_login(test);
	struct raw_pdu pdu;
	long left;

	expect_ready(r);
	reinit_completion(&slow.began);
	reinit_completion(&slow.may_end);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, let_it_end, NULL));
	pdu = lun_1_pdu(r, SYNCHRONIZE_CACHE);
	KUNIT_ASSERT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&slow.began,
							    msecs_to_jiffies(KD_TIMEOUT_MS)));
	left = raw_sessions(test) - 1;
	dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	KUNIT_EXPECT_FALSE_MSG(test, raw_wait_sessions(test, left, 500),
			       "the session is freed with a command that is being executed");
	complete_all(&slow.may_end);
	KUNIT_EXPECT_TRUE(test, raw_wait_sessions(test, left, KD_TIMEOUT_MS));
	raw_expect_alive(other);
	raw_expect_alive(raw_login(test));
}

/* Data that comes with a command, and is written from the receive buffer. */
static void flush_owned_pages(struct kunit *test)
{
	struct raw *r = raw_login(test);
	struct iscsi_scsi_req *req;
	struct raw_pdu pdu;
	unsigned int i;

	expect_ready(r);
	slow.writes = 0;
	slow.unowned = 0;
	slow.unaligned = 0;
	/* Buffers in all pages of a block. */
	for (i = 0; i < 12; i++) {
		pdu = lun_1_pdu(r, WRITE_10);
		req = (struct iscsi_scsi_req *)&pdu.hdr;
		req->flags |= ISCSI_FLAG_CMD_WRITE;
		req->data_length = cpu_to_be32(RAW_BLOCK);
		req->cdb[8] = 1;
		hton24(req->dlength, RAW_BLOCK);
		KUNIT_ASSERT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS + RAW_BLOCK));
		KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
		KUNIT_EXPECT_EQ(test, ((struct iscsi_scsi_rsp *)&r->got.hdr)->cmd_status,
				SAM_STAT_GOOD);
	}
	KUNIT_EXPECT_EQ(test, slow.writes, i);
	KUNIT_EXPECT_EQ(test, slow.unowned, 0);
	KUNIT_EXPECT_EQ(test, slow.unaligned, 0);
}

/* More than half of what a session may send, so that the soft watermark is crossed. */
#define UNREAD	40

struct soft {
	struct kd_side *s;
	long before;
};

static bool soft_was_crossed(void *data)
{
	struct soft *soft = data;

	return raw_adapter(soft->s, "soft") > soft->before;
}

/* Read a block, and tell how many commands more @r may send than it was allowed before. */
static s32 read_block(struct raw *r, u32 max_cmdsn)
{
	r->pdu[0] = raw_read(r, 1);
	KUNIT_EXPECT_TRUE(r->s->test, raw_send(r, r->pdu, RAW_HEADERS));
	KUNIT_EXPECT_TRUE(r->s->test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
	return r->max_cmdsn - max_cmdsn;
}

/*
 * A session whose commands lie unread gets a narrower window by the answers to them, and the
 * whole window again when they have been dealt with.
 */
static void flush_narrows_windows(struct kunit *test)
{
	struct raw *r = raw_login(test), *slowly = raw_login(test);
	struct soft soft = { .s = r->s };
	s32 raised = 0, answers;
	unsigned int narrowed = 0;
	u32 max_cmdsn;

	if (kd_is_iwarp(r->s))
		kunit_skip(test, "the device ends a connection that has no receive");
	expect_ready(slowly);
	read_block(r, 0);
	max_cmdsn = r->max_cmdsn;
	soft.before = raw_adapter(r->s, "soft");
	reinit_completion(&slow.began);
	reinit_completion(&slow.may_end);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, let_it_end, NULL));
	slowly->pdu[0] = lun_1_pdu(slowly, SYNCHRONIZE_CACHE);
	KUNIT_ASSERT_TRUE(test, raw_send(slowly, slowly->pdu, RAW_HEADERS));
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&slow.began,
							    msecs_to_jiffies(KD_TIMEOUT_MS)));
	for (answers = 0; answers < UNREAD; answers++) {
		r->pdu[0] = raw_read(r, 1);
		KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, RAW_HEADERS));
	}
	KUNIT_EXPECT_TRUE(test, kd_wait_until(soft_was_crossed, &soft, KD_TIMEOUT_MS));
	complete_all(&slow.may_end);
	for (answers = 1; answers <= UNREAD; answers++) {
		KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_SCSI_CMD_RSP, KD_TIMEOUT_MS));
		raised = max(raised, (s32)(r->max_cmdsn - max_cmdsn));
		narrowed += raised < answers;
		KUNIT_EXPECT_LE(test, raised, answers);
	}
	/* With another CPU all may have been read before the first is answered. */
	if (num_online_cpus() == 1)
		KUNIT_EXPECT_GT(test, narrowed, 0);
	for (; answers <= 4 * UNREAD && raised < answers - 1; answers++)
		raised = read_block(r, max_cmdsn);
	KUNIT_EXPECT_EQ(test, raised, answers - 1);
	kunit_info(test, "narrowed for %u answers, wide again after %d", narrowed, answers - 1);
	KUNIT_EXPECT_EQ(test, raw_adapter(r->s, "broken"), r->broken);
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(flush_takes_long, kd_gen_any_ia),
	KUNIT_CASE_PARAM(flush_session_ends, kd_gen_any_ia),
	KUNIT_CASE_PARAM(flush_owned_pages, kd_gen_any_ia),
	KUNIT_CASE_PARAM(flush_narrows_windows, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-flush", isert_cases, "kdapl_isert.ko: a backend of its own",
	 .init = raw_init, .suite_init = flush_up, .suite_exit = flush_down);
