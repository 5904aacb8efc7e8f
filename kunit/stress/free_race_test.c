// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Freeing objects while other threads use them (contract C5, I3): the loser
 * gets a DAT error. Each thread loops over calls, which find their object or do
 * not.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include "fixture.h"

struct race {
	struct kd_side *s;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE evd;
	DAT_SRQ_HANDLE srq;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	bool stop;
	unsigned int loops;
	unsigned int good;		/* calls that found their object */
	DAT_RETURN wrong;		/* some other answer, if any */
	struct completion done;
};

static void tally(struct race *r, DAT_RETURN ret)
{
	switch (DAT_GET_TYPE(ret)) {
	case DAT_SUCCESS:
	case DAT_QUEUE_EMPTY:
	case DAT_QUEUE_FULL:
	case DAT_INSUFFICIENT_RESOURCES:
		r->good++;
		break;
	case DAT_INVALID_HANDLE:
		break;
	default:
		r->wrong = ret;
		break;
	}
}

static void use_evd(struct race *r)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_EVD_PARAM param;

	tally(r, dat_evd_post_se(r->evd, &event));
	tally(r, dat_evd_query(r->evd, DAT_EVD_FIELD_ALL, &param));
	tally(r, dat_evd_dequeue(r->evd, &event));
	tally(r, dat_evd_modify_upcall(r->evd, DAT_UPCALL_DISABLE,
				       DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW));
	tally(r, dat_evd_resize(r->evd, 64));
}

static void use_ep(struct race *r)
{
	DAT_LMR_TRIPLET seg = kd_seg(r->s->buf, 0, 64);
	DAT_EP_PARAM param;
	DAT_COUNT n;

	tally(r, dat_ep_post_recv(r->ep, 1, &seg, kd_cookie(1), 0));
	tally(r, dat_ep_recv_query(r->ep, &n, NULL));
	tally(r, dat_ep_query(r->ep, DAT_EP_FIELD_ALL, &param));
	tally(r, dat_ep_set_watermark(r->ep, 3, 3));
	tally(r, dat_ep_reset(r->ep));
	param.ep_attr.max_recv_dtos = 40;
	tally(r, dat_ep_modify(r->ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
			       &param));
}

static void use_others(struct race *r)
{
	DAT_LMR_TRIPLET seg = kd_seg(r->s->buf, 0, 64);
	DAT_SRQ_PARAM srq;
	DAT_LMR_PARAM lmr;
	DAT_PZ_PARAM pz;

	tally(r, dat_srq_post_recv(r->srq, 1, &seg, kd_cookie(2)));
	tally(r, dat_srq_query(r->srq, DAT_SRQ_FIELD_ALL, &srq));
	tally(r, dat_srq_set_lw(r->srq, 2));
	tally(r, dat_srq_resize(r->srq, 64));
	tally(r, dat_pz_query(r->pz, DAT_PZ_FIELD_ALL, &pz));
	tally(r, dat_lmr_query(r->lmr, DAT_LMR_FIELD_ALL, &lmr));
}

static int use_thread(void *data)
{
	struct race *r = data;

	while (!READ_ONCE(r->stop)) {
		use_evd(r);
		use_ep(r);
		use_others(r);
		WRITE_ONCE(r->loops, r->loops + 1);
		kd_wake();
		cond_resched();
	}
	complete(&r->done);
	return 0;
}

struct loops_beyond {
	struct race *r;
	unsigned int loops;
};

static bool looped(void *data)
{
	struct loops_beyond *want = data;

	return READ_ONCE(want->r->loops) > want->loops;
}

static void make(struct race *r)
{
	struct kd_side *s = r->s;

	r->evd = kd_evd(s, DAT_EVD_SOFTWARE_FLAG, 32, DAT_UPCALL_NOTIFY);
	r->srq = kd_srq(s, 32);
	r->ep = kd_ep(s, NULL);
}

static void free_all(struct kunit *test, struct race *r)
{
	KD_EXPECT_OK(test, dat_ep_free(r->ep));
	KD_EXPECT_OK(test, dat_srq_free(r->srq));
	KD_EXPECT_OK(test, dat_evd_free(r->evd));
}

static struct race *open_race(struct kunit *test)
{
	struct race *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->s = kd_open_param(test);
	kd_setup(r->s, NULL);
	r->pz = r->s->pz;
	r->lmr = r->s->buf->lmr;
	init_completion(&r->done);
	return r;
}

static void C5_free_against_use(struct kunit *test)
{
	int i, rounds = kd_slow_kernel() ? 50 : 200;
	struct race *r = open_race(test);
	struct loops_beyond want = { r };
	struct task_struct *task;

	make(r);
	task = kthread_run(use_thread, r, "kd-use");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (i = 0; i < rounds; i++) {
		want.loops = READ_ONCE(r->loops);
		KUNIT_EXPECT_TRUE(test, kd_wait_until(looped, &want,
						      KD_TIMEOUT_MS));
		free_all(test, r);
		make(r);
	}
	WRITE_ONCE(r->stop, true);
	wait_for_completion(&r->done);
	KUNIT_EXPECT_GT(test, r->good, 0);
	KUNIT_EXPECT_EQ_MSG(test, r->wrong, 0, "%s", kd_strerror(r->wrong));
}

/* ---- Two threads free the same object ------------------------------------- */

static int free_thread(void *data)
{
	struct race *r = data;

	while (!READ_ONCE(r->stop)) {
		r->good += dat_ep_free(READ_ONCE(r->ep)) == DAT_SUCCESS;
		r->good += dat_srq_free(READ_ONCE(r->srq)) == DAT_SUCCESS;
		r->good += dat_evd_free(READ_ONCE(r->evd)) == DAT_SUCCESS;
		WRITE_ONCE(r->loops, r->loops + 1);
		kd_wake();
		cond_resched();
	}
	complete(&r->done);
	return 0;
}

static void C5_two_free_the_same(struct kunit *test)
{
	int i, rounds = kd_slow_kernel() ? 50 : 200;
	struct race *r = open_race(test);
	struct loops_beyond want = { r };
	struct task_struct *task;
	unsigned int mine = 0;

	task = kthread_run(free_thread, r, "kd-free");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (i = 0; i < rounds; i++) {
		make(r);
		want.loops = READ_ONCE(r->loops);
		if (i % 2)
			kd_wait_until(looped, &want, KD_TIMEOUT_MS);
		mine += dat_ep_free(r->ep) == DAT_SUCCESS;
		mine += dat_srq_free(r->srq) == DAT_SUCCESS;
		mine += dat_evd_free(r->evd) == DAT_SUCCESS;
	}
	WRITE_ONCE(r->stop, true);
	wait_for_completion(&r->done);
	/* Each object was freed exactly once. */
	KUNIT_EXPECT_EQ(test, mine + r->good, 3 * rounds);
	KUNIT_EXPECT_GT(test, mine, 0);
	KUNIT_EXPECT_GT(test, r->good, 0);
}

static struct kunit_case free_race_cases[] = {
	KUNIT_CASE_PARAM(C5_free_against_use, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_two_free_the_same, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-free-race", free_race_cases, "freeing against using");
