// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* dat_ep_modify() while receives are posted, or the Endpoint is freed. */
#include <linux/kthread.h>
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
	DAT_COMPLETION_FLAGS flags;
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
	late.ret = dat_ep_post_recv(late.ep, 1, &seg, kd_cookie(7), late.flags);
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

/*
 * A receive is posted as the old flags allow it and the new ones do not, or the flags
 * change, and not both.
 */
static void M4_post_while_the_flags_change(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_EP_PARAM *param = kunit_kzalloc(test, sizeof(*param), GFP_KERNEL);
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_RETURN ret;

	KUNIT_ASSERT_NOT_NULL(test, param);
	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	s->ep = kd_ep(s, &attr);
	kd_probe(test, "kmalloc", post_late);
	late = (struct late) { .s = s, .ep = s->ep, .flags = attr.recv_completion_flags };
	WRITE_ONCE(late.task, current);
	ret = dat_ep_modify(s->ep, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, param);
	WRITE_ONCE(late.task, NULL);
	KUNIT_ASSERT_GE(test, late.allocations, 2);
	KUNIT_EXPECT_NE_MSG(test, ret == DAT_SUCCESS, late.ret == DAT_SUCCESS,
			    "modify: %s, post: %s", kd_strerror(ret),
			    kd_strerror(late.ret));
}

/*
 * struct leaver - an Endpoint that is freed at the second allocation of the task that
 * modifies
 */
static struct leaver {
	DAT_EP_HANDLE ep;
	struct task_struct *task;
	int allocations;
	DAT_RETURN ret;
} leaver;

static void free_late(void *data, unsigned long site, const void *ptr)
{
	if (READ_ONCE(leaver.task) == current && in_task() && ++leaver.allocations == 2)
		leaver.ret = dat_ep_free(leaver.ep);
}

/*
 * A receive completes between the moments when the Endpoint is freed and when its events are
 * taken back: those that were queued before are taken back as well.
 */
static void R4_completes_while_the_ep_is_freed(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_EP_PARAM *param = kunit_kzalloc(test, sizeof(*param), GFP_KERNEL);
	DAT_PZ_HANDLE pz;

	KUNIT_ASSERT_NOT_NULL(test, param);
	kd_connect_pair(c.a, c.p);
	kd_recv(c.p, 0, 64, 1);
	kd_recv(c.p, 64, 64, 2);
	/* Their events stay queued. */
	kd_disconnect(c.a, c.p);
	KD_ASSERT_OK(test, dat_ep_reset(c.p->ep));
	/* This one fails when the Endpoint gets another Protection Zone. */
	kd_recv(c.p, 128, 64, 3);
	KD_ASSERT_OK(test, dat_pz_create(c.p->ia, &pz));
	param->pz_handle = pz;
	kd_probe(test, "kmalloc", free_late);
	leaver = (struct leaver) { .ep = c.p->ep };
	WRITE_ONCE(leaver.task, current);
	KD_EXPECT_OK(test, dat_ep_modify(c.p->ep, DAT_EP_FIELD_PZ_HANDLE, param));
	WRITE_ONCE(leaver.task, NULL);
	KUNIT_ASSERT_GE(test, leaver.allocations, 2);
	KD_EXPECT_OK(test, leaver.ret);
	c.p->ep = NULL;
	kd_expect_no_event(test, c.p->recv_evd);
}

#define LENGTHS		200
#define SHORT		500
#define LONG		1000

/*
 * struct stream - receives that a thread posts
 * @posted: how many
 * @goal: how many the case waits for now and then, to let the thread run
 * @stop: the thread ends
 * @ret: an error other than that the queue is full
 */
struct stream {
	struct kd_side *s;
	u64 posted;
	u64 goal;
	bool stop;
	DAT_RETURN ret;
	struct completion done;
};

static int stream_thread(void *data)
{
	struct stream *st = data;
	DAT_LMR_TRIPLET seg = kd_seg(st->s->buf, 0, 64);
	DAT_RETURN ret;

	while (!READ_ONCE(st->stop)) {
		ret = dat_ep_post_recv(st->s->ep, 1, &seg, kd_cookie(st->posted), 0);
		if (ret == DAT_SUCCESS)
			WRITE_ONCE(st->posted, st->posted + 1);
		else if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
			st->ret = ret;
		if (ret != DAT_SUCCESS || !(st->posted % 16))
			cond_resched();
	}
	complete(&st->done);
	return 0;
}

static bool stream_is_there(void *data)
{
	struct stream *st = data;

	return READ_ONCE(st->posted) >= st->goal;
}

/* No receive is lost, and none overtakes another, while the queue changes its length. */
static void R4_post_while_the_queue_moves(struct kunit *test)
{
	const struct kd_opts opts = { .qlen = LONG };
	struct kd_pair pair = kd_make_pair(test, &opts);
	DAT_EP_PARAM *param = kunit_kzalloc(test, sizeof(*param), GFP_KERNEL);
	struct stream st = { .s = pair.p, .goal = 1 };
	struct task_struct *task;
	DAT_RETURN ret = DAT_SUCCESS;
	u64 i;

	KUNIT_ASSERT_NOT_NULL(test, param);
	init_completion(&st.done);
	task = kthread_run(stream_thread, &st, "kd-stream");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (i = 0; i < LENGTHS && ret == DAT_SUCCESS; i++) {
		if (i % 10 == 0)
			KUNIT_EXPECT_TRUE(test, kd_wait_until(stream_is_there, &st,
							      KD_TIMEOUT_MS));
		/* It only grows, as what is posted never completes. */
		param->ep_attr.max_recv_dtos = SHORT + i * (LONG - SHORT) / LENGTHS;
		param->ep_attr.max_recv_iov = 1 + i % 4;
		ret = dat_ep_modify(pair.p->ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
				    DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, param);
		st.goal = param->ep_attr.max_recv_dtos;
	}
	WRITE_ONCE(st.stop, true);
	wait_for_completion(&st.done);
	KD_EXPECT_OK(test, ret);
	KD_EXPECT_OK(test, st.ret);
	kunit_info(test, "%llu receives", st.posted);
	kd_connect_pair(pair.a, pair.p);
	kd_disconnect(pair.a, pair.p);
	for (i = 0; i < st.posted; i++)
		kd_expect_dto(test, pair.p->recv_evd, i, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_no_event(test, pair.p->recv_evd);
}

static struct kunit_case modify_race_cases[] = {
	KUNIT_CASE_PARAM(R4_post_while_the_queue_moves, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_post_while_the_evd_goes, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_completes_while_the_ep_is_freed, kd_gen_ia),
	KUNIT_CASE_PARAM(M4_post_while_the_flags_change, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-modify-race", modify_race_cases, "dat_ep_modify() beside other calls");
