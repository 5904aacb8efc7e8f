// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* dat_ep_modify() while a receive is being posted. */
#include <linux/module.h>
#include <linux/sched.h>
#include "ep_states.h"
#include "probe.h"

/*
 * struct late - a receive that is posted at an allocation of the task that modifies:
 * the second one is after all has been checked, and before anything has changed
 */
static struct late {
	struct kd_side *s;
	DAT_EP_HANDLE ep;
	struct task_struct *task;
	int allocations;
	DAT_RETURN ret;
} late;

static void post_late(void *data, unsigned long site, const void *ptr)
{
	DAT_LMR_TRIPLET seg;

	if (READ_ONCE(late.task) != current || !in_task() ||
	    ++late.allocations != 2)
		return;
	seg = kd_seg(late.s->buf, 0, 64);
	late.ret = dat_ep_post_recv(late.ep, 1, &seg, kd_cookie(7), 0);
}

/*
 * The receive is refused, or else it keeps its EVD: it is not lost without one. Only an
 * Endpoint that the provider has made can have receives and no EVD for them.
 */
static void R4_post_while_the_evd_goes(struct kunit *test)
{
	struct ep_stage *stage = ep_stage_open(test, *(const char * const *)
					       test->param_value);
	DAT_EP_PARAM *param = kunit_kzalloc(test, sizeof(*param), GFP_KERNEL);
	struct kd_side *s = stage->in;
	DAT_RETURN ret;

	KUNIT_ASSERT_NOT_NULL(test, param);
	ep_stage_reach(stage, EP_TENTATIVE_PENDING);
	param->pz_handle = s->pz;
	param->recv_evd_handle = s->recv_evd;
	KD_ASSERT_OK(test, dat_ep_modify(stage->ep, DAT_EP_FIELD_PZ_HANDLE |
					 DAT_EP_FIELD_RECV_EVD_HANDLE, param));
	kd_probe(test, "kmalloc", post_late);
	late = (struct late) { .s = s, .ep = stage->ep };
	param->recv_evd_handle = NULL;
	WRITE_ONCE(late.task, current);
	ret = dat_ep_modify(stage->ep, DAT_EP_FIELD_RECV_EVD_HANDLE, param);
	WRITE_ONCE(late.task, NULL);
	KUNIT_ASSERT_GE(test, late.allocations, 2);
	KD_EXPECT_OK(test, late.ret);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, ret);
	KD_EXPECT_OK(test, dat_ep_query(stage->ep, DAT_EP_FIELD_RECV_EVD_HANDLE,
					param));
	KUNIT_EXPECT_PTR_EQ(test, param->recv_evd_handle, s->recv_evd);
	ep_stage_leave(stage);
}

static struct kunit_case modify_race_cases[] = {
	KUNIT_CASE_PARAM(R4_post_while_the_evd_goes, kd_gen_ia),
	{}
};

static struct kunit_suite modify_race_suite = {
	.name = "kdapl-modify-race",
	.test_cases = modify_race_cases,
};

kunit_test_suite(modify_race_suite);

MODULE_DESCRIPTION("KUnit suite of kdapl.ko: dat_ep_modify() beside posts");
MODULE_LICENSE("Dual BSD/GPL");
