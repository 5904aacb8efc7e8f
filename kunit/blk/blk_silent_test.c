// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko on an adapter whose driver does not end a connection, until it does (contract
 * L6): a request whose pages the adapter may still reach is not over, and all others go on as
 * after the loss of any connection.
 */
#include <linux/sched.h>
#include <linux/string.h>
#include "blk_command.h"
#include "blk_serve.h"
#include "device.h"
#include "probe.h"

/* ---- The driver --------------------------------------------------------------- */

static struct {
	struct kd_hook device;
	struct ib_qp *qp;		/* the initiator's last one */
	bool silent;
	struct completion speaks;
} driver;

/* The initiator makes its queue pair in a work item, the case in its own thread. */
static int create_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	int err = driver.device.real.create_qp(qp, init, udata);

	if (!err && current->flags & PF_WQ_WORKER)
		WRITE_ONCE(driver.qp, qp);
	else if (qp == READ_ONCE(driver.qp))
		WRITE_ONCE(driver.qp, NULL);
	return err;
}

static int modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata)
{
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR &&
	    qp == READ_ONCE(driver.qp) && READ_ONCE(driver.silent))
		wait_for_completion(&driver.speaks);
	return driver.device.real.modify_qp(qp, attr, mask, udata);
}

static void driver_speaks(void)
{
	WRITE_ONCE(driver.silent, false);
	complete_all(&driver.speaks);
}

/* ---- Cases -------------------------------------------------------------------- */

static struct command *small_read;

static bool is_lost(void *unused)
{
	return !ini_is_connected(NULL);
}

/*
 * A disk has two reads outstanding, of one command or of two, when its target makes it end the
 * connection; the longer one has its pages exposed. The driver is silent then.
 */
static void lose(struct kunit *test, bool together)
{
	const char *ia = *(const char * const *)test->param_value;
	struct ib_device *dev = kd_hook(test, ia, &driver.device);
	struct kd_side *side;

	WRITE_ONCE(driver.qp, NULL);
	dev->ops.create_qp = create_qp;
	dev->ops.modify_qp = modify_qp;
	kd_count_log(test, "does not end a connection");
	side = kdb_serve_disk(test, NULL, NULL);
	kdb_begin_command(side, together ? READ_BOTH : READ_MUCH);
	if (!together)
		small_read = kdb_command_start(test, READ_ONE);
	kdb_next_request(side);
	WRITE_ONCE(driver.silent, true);
	memset(side->buf->va, 0, sizeof(struct kblk_reply));
	kd_send(side, REPLY_AT, sizeof(struct kblk_reply), 3);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_lost, NULL, KD_TIMEOUT_MS));
	kd_close(side);
}

/* The small read fails, since nobody can have its pages; the other one waits. */
static void expect_one_held(struct kunit *test)
{
	bool ended = kd_wait_until(kdb_command_has_ended, small_read, KD_TIMEOUT_MS);

	KUNIT_EXPECT_TRUE_MSG(test, ended, "a request waits that the adapter does not have");
	if (ended)
		KUNIT_EXPECT_NE(test, small_read->status, 0);
	KUNIT_EXPECT_FALSE_MSG(test, completion_done(&ini_ended),
			       "a request is over whose pages the adapter has");
	KUNIT_EXPECT_EQ(test, 1, kd_logged());
}

static void ini_holds_what_a_silent_driver_has(struct kunit *test)
{
	struct kd_side *side;

	lose(test, false);
	expect_one_held(test);
	driver_speaks();
	kdb_wait_command();
	KUNIT_EXPECT_NE(test, ini_status, 0);
	side = kdb_serve_again(test, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(ini_is_connected, NULL, KD_TIMEOUT_MS));
	kdb_serve_command(side, READ_ONE, 0);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	kdb_expect_removable(test);
	kd_close(side);
}

/* What is held is sent again like any other request. */
static void ini_repeats_what_a_silent_driver_has_had(struct kunit *test)
{
	struct kd_side *side;

	ini_attrs.give_up_ms = "600000";
	lose(test, true);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(kd_is_logged, NULL, KD_TIMEOUT_MS));
	driver_speaks();
	side = kdb_serve_again(test, NULL);
	kdb_serve(side, 0);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	kdb_expect_removable(test);
	kd_close(side);
}

/* The disk is removed meanwhile: it goes when the driver has ended the connection. */
static void ini_leaves_a_silent_driver(struct kunit *test)
{
	struct command *removal;

	lose(test, false);
	expect_one_held(test);
	removal = kdb_command_start(test, "echo 0 >" INI_DISK "/connected");
	driver_speaks();
	kdb_wait_command();
	KUNIT_EXPECT_NE(test, ini_status, 0);
	kdb_command_expect_success(test, removal);
}

static int silent_init(struct kunit *test)
{
	init_completion(&driver.speaks);
	return ini_init(test);
}

/* Nothing that the case has begun ends before the driver speaks. */
static void silent_exit(struct kunit *test)
{
	driver_speaks();
	kdb_serve_exit(test);
}

static struct kunit_case silent_cases[] = {
	KUNIT_CASE_PARAM(ini_holds_what_a_silent_driver_has, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_repeats_what_a_silent_driver_has_had, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(ini_leaves_a_silent_driver, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-blk-silent", silent_cases,
	 "the block device on an adapter whose driver does not end a connection",
	 .init = silent_init, .exit = silent_exit);
