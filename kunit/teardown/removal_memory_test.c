// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A device is removed (contract N6) while memory is posted to it (contract L6): until its
 * queue pairs have ended they may write there, so that dat_lmr_free() is refused; when
 * the device has left it is not.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include "call.h"
#include "device.h"
#include "ep.h"
#include "ia.h"
#include "plug.h"

#define LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)

static const DAT_RETURN in_use = DAT_CLASS_ERROR | DAT_INVALID_STATE |
				 DAT_INVALID_STATE_LMR_IN_USE;

/*
 * The operation that takes @qp to ERR for the first time lets @lmr be freed before.
 * @ret: what that call has returned
 */
static struct {
	int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			 struct ib_udata *udata);
	struct ib_qp *qp;
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret;
	struct completion done;
} early;

static int free_early(void *unused)
{
	early.ret = dat_lmr_free(early.lmr);
	complete_all(&early.done);
	return 0;
}

static int modify(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata)
{
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR &&
	    cmpxchg(&early.qp, qp, NULL) == qp &&
	    !IS_ERR(kthread_run(free_early, NULL, "free_early")))
		wait_for_completion_timeout(&early.done, KD_TIMEOUT_MS * HZ / 1000);
	return early.modify_qp(qp, attr, mask, udata);
}

/* The replaced operation goes with the device, so it is never put back. */
static void free_when_stopped(struct kunit *test, struct kd_side *s, struct kd_buf *buf)
{
	struct ib_device *dev = kd_test_device(test, s->name);
	struct kdapl_ep *ep;

	rcu_read_lock();
	ep = kdapl_find(s->ep, DAT_HANDLE_TYPE_EP);
	early.qp = ep ? ep->qp : NULL;
	rcu_read_unlock();
	KUNIT_ASSERT_NOT_NULL(test, early.qp);
	early.lmr = buf->lmr;
	early.ret = DAT_SUCCESS;
	init_completion(&early.done);
	early.modify_qp = dev->ops.modify_qp;
	dev->ops.modify_qp = modify;
}

static void L6_free_while_the_device_leaves(struct kunit *test)
{
	struct kd_side *a = kd_open_second(test), *p = kd_open_second(test);
	struct kd_buf *buf;
	DAT_LMR_TRIPLET seg;

	if (kd_is_iwarp(a))
		kunit_skip(test, "the driver flushes receives before");
	kd_setup(a, NULL);
	kd_setup(p, NULL);
	buf = kd_buf_alloc_priv(a, PAGE_SIZE, false, LOCAL);
	seg = kd_seg(buf, 0, 64);
	kd_connect_pair(a, p);
	KD_ASSERT_OK(test, dat_ep_post_recv(a->ep, 1, &seg, kd_cookie(1), 0));
	free_when_stopped(test, a, buf);
	kd_unplug(test);
	KUNIT_EXPECT_TRUE(test, completion_done(&early.done));
	KUNIT_EXPECT_EQ(test, early.ret, in_use);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	kd_expect_dto(test, a->recv_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
}

/* Buffers of an SRQ stay posted, but nobody has them when the device has left. */
static void L6_free_srq_buffer_while_the_device_leaves(struct kunit *test)
{
	struct kd_side *a = kd_open_second(test), *p = kd_open_second(test);
	struct kd_buf *buf;
	DAT_LMR_TRIPLET seg;

	kd_setup(a, &(struct kd_opts) { .srq_len = 8 });
	kd_setup(p, NULL);
	buf = kd_buf_alloc_priv(a, PAGE_SIZE, false, LOCAL);
	seg = kd_seg(buf, 0, 64);
	KD_ASSERT_OK(test, dat_srq_post_recv(a->srq, 1, &seg, kd_cookie(1)));
	kd_connect_pair(a, p);
	free_when_stopped(test, a, buf);
	kd_unplug(test);
	KUNIT_EXPECT_TRUE(test, completion_done(&early.done));
	KUNIT_EXPECT_EQ(test, early.ret, in_use);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
}

/* A work item that keeps a device from leaving. */
static struct {
	struct work_struct work;
	struct completion go;
} stay;

static void stay_work(struct work_struct *work)
{
	wait_for_completion(&stay.go);
}

static void stay_no_more(void *unused)
{
	complete_all(&stay.go);
}

/* Have the device of @s stay where its connections have ended and its MRs are there. */
static void stay_behind(struct kunit *test, struct kd_side *s)
{
	struct kdapl_ep *ep;

	init_completion(&stay.go);
	INIT_WORK(&stay.work, stay_work);
	rcu_read_lock();
	ep = kdapl_find(s->ep, DAT_HANDLE_TYPE_EP);
	if (ep)
		queue_work(ep->obj.ia->hca->object_wq, &stay.work);
	rcu_read_unlock();
	KUNIT_ASSERT_NOT_NULL(test, ep);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, stay_no_more, NULL));
}

static DAT_RETURN call_unplug(void *test)
{
	return kd_delete_device(test);
}

/*
 * A receive that is posted to an Endpoint which was reset waits for a connection, and with
 * the device gone there will be none.
 */
static void L6_free_of_a_receive_that_waits(struct kunit *test)
{
	struct kd_side *s = kd_open_second(test);
	struct kd_call *unplug;
	struct kd_buf *buf;
	DAT_LMR_TRIPLET seg;

	kd_setup(s, NULL);
	buf = kd_buf_alloc_priv(s, PAGE_SIZE, false, LOCAL);
	seg = kd_seg(buf, 0, 64);
	stay_behind(test, s);
	unplug = kd_call_begin(test, call_unplug, test);
	kd_expect_broken(s);
	KD_EXPECT_OK(test, dat_ep_reset(s->ep));
	KD_EXPECT_OK(test, dat_ep_post_recv(s->ep, 1, &seg, kd_cookie(1), 0));
	KUNIT_EXPECT_EQ(test, dat_lmr_free(buf->lmr), in_use);
	stay_no_more(NULL);
	kd_call_expect(test, unplug, 0, KD_TIMEOUT_MS, stay_no_more, NULL);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	kd_expect_no_event(test, s->recv_evd);
}

static struct kunit_case removal_memory_cases[] = {
	KUNIT_CASE_PARAM(L6_free_while_the_device_leaves, kd_gen_second),
	KUNIT_CASE_PARAM(L6_free_srq_buffer_while_the_device_leaves, kd_gen_second),
	KUNIT_CASE_PARAM(L6_free_of_a_receive_that_waits, kd_gen_second),
	{}
};

KD_SUITE("kdapl-removal-memory", removal_memory_cases,
	 "memory that is posted to a device that leaves", .init = kd_plug_init);

KDAPL_IMPORT_TEST;
