// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdat_evd_wait_upcalls() (contract C4): waits for the upcalls under way of one
 * EVD, and for no others.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include "fixture.h"

#define PROCESS	(DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG)

/*
 * struct wait_bed - an EVD with an upcall, and a thread that waits
 * @entered: the upcall has begun
 * @go: it may return
 * @again: an upcall posts the next event, until this is 0
 * @ret: what the wait of the thread, or of the upcall, has returned
 */
struct wait_bed {
	struct kd_recorder *rec;
	DAT_EVD_HANDLE evd;
	struct completion entered;
	struct completion go;
	bool again;
	DAT_RETURN ret;
	struct completion done;
};

static struct wait_bed *make_bed(struct kunit *test)
{
	struct wait_bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bed);
	init_completion(&bed->entered);
	init_completion(&bed->go);
	init_completion(&bed->done);
	bed->rec = kd_recorder(test);
	bed->rec->priv = bed;
	return bed;
}

static void post(struct kunit *test, struct wait_bed *bed)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	KD_ASSERT_OK(test, dat_evd_post_se(bed->evd, &event));
}

static int waiter(void *data)
{
	struct wait_bed *bed = data;

	bed->ret = kdat_evd_wait_upcalls(bed->evd);
	complete(&bed->done);
	return 0;
}

static void start(struct kunit *test, struct wait_bed *bed)
{
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(waiter, bed, "waiter")));
}

static bool is_done(struct wait_bed *bed, unsigned int ms)
{
	return wait_for_completion_timeout(&bed->done, msecs_to_jiffies(ms));
}

static void held_hook(struct kd_recorder *rec, const DAT_EVENT *event,
		      DAT_BOOLEAN more)
{
	struct wait_bed *bed = rec->priv;

	complete(&bed->entered);
	wait_for_completion_timeout(&bed->go, msecs_to_jiffies(KD_TIMEOUT_MS));
}

static void C4_upcall_under_way_is_waited_for(struct kunit *test)
{
	struct wait_bed *bed = make_bed(test), *idle = make_bed(test);
	struct kd_side *s = kd_open_param(test);

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	bed->rec->hook = held_hook;
	bed->evd = kd_recorded_evd(s, PROCESS, 8, DAT_UPCALL_SINGLE_INSTANCE,
				   bed->rec);
	idle->evd = kd_recorded_evd(s, PROCESS, 8, DAT_UPCALL_SINGLE_INSTANCE,
				    idle->rec);
	KD_EXPECT_OK(test, kdat_evd_wait_upcalls(bed->evd));
	post(test, bed);
	wait_for_completion(&bed->entered);
	start(test, bed);
	KUNIT_EXPECT_FALSE(test, is_done(bed, KD_QUIET_MS));
	/* Another EVD is not held up. */
	start(test, idle);
	KUNIT_EXPECT_TRUE(test, is_done(idle, KD_TIMEOUT_MS));
	KD_EXPECT_OK(test, idle->ret);
	complete_all(&bed->go);
	KUNIT_ASSERT_TRUE(test, is_done(bed, KD_TIMEOUT_MS));
	KD_EXPECT_OK(test, bed->ret);
	KUNIT_EXPECT_EQ(test, atomic_read(&bed->rec->calls), 1);
}

static void again_hook(struct kd_recorder *rec, const DAT_EVENT *event,
		       DAT_BOOLEAN more)
{
	struct wait_bed *bed = rec->priv;
	DAT_EVENT next = { .event_number = DAT_SOFTWARE_EVENT };

	complete(&bed->entered);
	if (READ_ONCE(bed->again))
		kd_may_fail(dat_evd_post_se(bed->evd, &next));
	cond_resched();
}

/* Each upcall has another one follow it: the wait ends all the same. */
static void C4_later_upcalls_are_not_waited_for(struct kunit *test)
{
	struct wait_bed *bed = make_bed(test);
	struct kd_side *s = kd_open_param(test);
	int i;

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	bed->rec->hook = again_hook;
	bed->again = true;
	bed->evd = kd_recorded_evd(s, PROCESS, 8, DAT_UPCALL_SINGLE_INSTANCE,
				   bed->rec);
	post(test, bed);
	wait_for_completion(&bed->entered);
	for (i = 0; i < 20; i++) {
		start(test, bed);
		KUNIT_EXPECT_TRUE_MSG(test, is_done(bed, KD_TIMEOUT_MS), "%d", i);
		KD_EXPECT_OK(test, bed->ret);
	}
	WRITE_ONCE(bed->again, false);
}

static void own_hook(struct kd_recorder *rec, const DAT_EVENT *event,
		     DAT_BOOLEAN more)
{
	struct wait_bed *bed = rec->priv;

	bed->ret = kdat_evd_wait_upcalls(bed->evd);
}

/* In softirq and in process context. */
static void C4_own_upcall_cannot_be_waited_for(struct kunit *test)
{
	static const u32 flags[] = { DAT_EVD_DTO_FLAG, PROCESS };
	struct wait_bed *bed;
	struct kd_pair pair;
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		bed = make_bed(test);
		pair = kd_make_half_pair(test);
		bed->rec->hook = own_hook;
		bed->evd = kd_recorded_evd(pair.p, flags[i], 8,
					   DAT_UPCALL_SINGLE_INSTANCE, bed->rec);
		pair.p->recv_evd = bed->evd;
		pair.p->ep = kd_ep(pair.p, NULL);
		kd_connect_pair(pair.a, pair.p);
		kd_recv(pair.p, 0, 64, 1);
		kd_send(pair.a, 0, 64, 1);
		KUNIT_ASSERT_TRUE(test, kd_wait_calls(bed->rec, 1));
		KD_EXPECT_RET(test, DAT_INVALID_STATE, bed->ret);
		/* From elsewhere it can, and upcalls go on. */
		KD_EXPECT_OK(test, kdat_evd_wait_upcalls(bed->evd));
		kd_recv(pair.p, 0, 64, 2);
		kd_send(pair.a, 0, 64, 2);
		KUNIT_EXPECT_TRUE(test, kd_wait_calls(bed->rec, 2));
		kd_close(pair.a);
		kd_close(pair.p);
	}
}

static void wait_upcalls_arguments(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);

	kd_setup(s, NULL);
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, kdat_evd_wait_upcalls(NULL));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      kdat_evd_wait_upcalls((DAT_EVD_HANDLE)s->ep));
	/* An EVD without an upcall has none under way. */
	KD_EXPECT_OK(test, kdat_evd_wait_upcalls(s->recv_evd));
}

static struct kunit_case wait_upcalls_cases[] = {
	KUNIT_CASE_PARAM(C4_upcall_under_way_is_waited_for, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_later_upcalls_are_not_waited_for, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_own_upcall_cannot_be_waited_for, kd_gen_ia),
	KUNIT_CASE_PARAM(wait_upcalls_arguments, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-wait-upcalls", wait_upcalls_cases, "waiting for upcalls under way");
