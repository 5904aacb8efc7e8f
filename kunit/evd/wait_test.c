// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The recipe of Documentation/waiting.rst: threads that sleep for events, in
 * Documentation/example/evd_wait.h. A wait that lost its wake-up finds its event
 * when its time is up; so it is one that took long.
 */
#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include "evd_wait.h"
#include "fixture.h"

#define EVENTS		120
#define THREADS		3
#define STOP		((void *)~0UL)
#define LONG		msecs_to_jiffies(KD_TIMEOUT_MS)

/*
 * struct wait_bed - threads that wait for the events of one EVD
 * @w: the recipe's
 * @upcalls: made so far
 * @got: events that threads were handed, but STOP
 * @seen: which ones
 * @twice: handed out a second time
 * @late: waits that took half of the time they had
 * @ret: of the wait that was no success, or 0
 * @running: threads that have not ended
 */
struct wait_bed {
	struct evd_waiter w;
	atomic_t upcalls;
	atomic_t got;
	DECLARE_BITMAP(seen, EVENTS);
	atomic_t twice;
	atomic_t late;
	DAT_RETURN ret;
	atomic_t running;
	struct completion ended;
};

static void counted_upcall(DAT_PVOID instance, const DAT_EVENT *event,
			   DAT_BOOLEAN more)
{
	struct wait_bed *bed = instance;

	atomic_inc(&bed->upcalls);
	evd_wait_upcall(&bed->w, event, more);
}

/* Memory that upcalls use has to be older than the IA, which closes first. */
static struct wait_bed *make_bed(struct kunit *test)
{
	struct wait_bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bed);
	evd_waiter_init(&bed->w);
	bed->w.upcall.instance_data = bed;
	bed->w.upcall.upcall_func = counted_upcall;
	init_completion(&bed->ended);
	return bed;
}

static void make_evd(struct kunit *test, struct wait_bed *bed,
		     struct kd_side *s, DAT_EVD_FLAGS flags)
{
	KD_ASSERT_OK(test, dat_evd_kcreate(s->ia, 64, DAT_UPCALL_NOTIFY,
					   &bed->w.upcall, flags, &bed->w.evd));
}

static DAT_RETURN post(struct wait_bed *bed, void *pointer)
{
	DAT_EVENT se = {
		.event_number = DAT_SOFTWARE_EVENT,
		.event_data.software_event_data.pointer = pointer,
	};

	return dat_evd_post_se(bed->w.evd, &se);
}

static DAT_RETURN timed_wait(struct wait_bed *bed, DAT_EVENT *event)
{
	unsigned long began = jiffies;
	DAT_RETURN ret = evd_wait(&bed->w, event, LONG);

	if (time_after(jiffies, began + LONG / 2))
		atomic_inc(&bed->late);
	return ret;
}

static int wait_thread(void *data)
{
	struct wait_bed *bed = data;
	unsigned long index;
	DAT_EVENT event;
	DAT_RETURN ret;
	void *pointer;

	while (!(ret = timed_wait(bed, &event))) {
		pointer = event.event_data.software_event_data.pointer;
		if (pointer == STOP)
			break;
		index = (uintptr_t)pointer;
		if (index >= EVENTS || test_and_set_bit(index, bed->seen))
			atomic_inc(&bed->twice);
		atomic_inc(&bed->got);
	}
	if (ret)
		WRITE_ONCE(bed->ret, ret);
	if (atomic_dec_and_test(&bed->running))
		complete(&bed->ended);
	return 0;
}

static void start_threads(struct kunit *test, struct wait_bed *bed, int n)
{
	struct task_struct *task;

	atomic_set(&bed->running, n);
	while (n--) {
		task = kthread_run(wait_thread, bed, "kd-wait-%d", n);
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	}
}

/* A full EVD refuses; whoever waits then makes room. */
static void post_patiently(struct kunit *test, struct wait_bed *bed,
			   void *pointer)
{
	unsigned long until = jiffies + LONG;
	DAT_RETURN ret;

	do {
		ret = post(bed, pointer);
		if (ret)
			cond_resched();
	} while (DAT_GET_TYPE(ret) == DAT_QUEUE_FULL &&
		 time_before(jiffies, until));
	KD_ASSERT_OK(test, ret);
}

static void stop_threads(struct kunit *test, struct wait_bed *bed, int n)
{
	while (n--)
		post_patiently(test, bed, STOP);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&bed->ended,
							    2 * LONG));
	KUNIT_EXPECT_EQ(test, bed->ret, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&bed->late), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&bed->got), EVENTS);
	KUNIT_EXPECT_EQ(test, atomic_read(&bed->twice), 0);
	KUNIT_EXPECT_TRUE(test, bitmap_full(bed->seen, EVENTS));
}

struct progress {
	atomic_t *count;
	int want;
};

static bool is_reached(void *data)
{
	struct progress *p = data;

	return atomic_read(p->count) >= p->want;
}

/* The thread sleeps again before the next event arrives, or is about to. */
static void waits_for_one_by_one(struct kunit *test)
{
	struct wait_bed *bed = make_bed(test);
	struct kd_side *s = kd_open_param(test);
	struct progress p = { &bed->got };
	long i;

	make_evd(test, bed, s, DAT_EVD_SOFTWARE_FLAG);
	start_threads(test, bed, 1);
	for (i = 0; i < EVENTS; i++) {
		post_patiently(test, bed, (void *)i);
		p.want = i + 1;
		if (!kd_wait_until(is_reached, &p, KD_TIMEOUT_MS))
			break;
	}
	stop_threads(test, bed, 1);
}

/* Events come in bursts, and in the middle of taking them; none is waited for. */
static void several_threads_share_bursts(struct kunit *test)
{
	struct wait_bed *bed = make_bed(test);
	struct kd_side *s = kd_open_param(test);
	long i;

	make_evd(test, bed, s, DAT_EVD_SOFTWARE_FLAG);
	start_threads(test, bed, THREADS);
	for (i = 0; i < EVENTS; i++) {
		post_patiently(test, bed, (void *)i);
		if (i % 7 == 0)
			schedule_timeout_uninterruptible(i % 3);
	}
	stop_threads(test, bed, THREADS);
}

/* Completions, with upcalls in softirq: the waiting thread is the receiver. */
static void waits_for_messages(struct kunit *test)
{
	struct wait_bed *bed = make_bed(test);
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *p = pair.p;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;
	int i;

	make_evd(test, bed, p, DAT_EVD_DTO_FLAG);
	p->recv_evd = bed->w.evd;
	p->ep = kd_ep(p, NULL);
	kd_connect_pair(pair.a, p);
	dto = &event.event_data.dto_completion_event_data;
	for (i = 0; i < 100; i++) {
		kd_recv(p, 0, 64, i);
		kd_send(pair.a, 0, 64, i);
		KD_ASSERT_OK(test, timed_wait(bed, &event));
		KUNIT_ASSERT_EQ(test, (int)dto->status, DAT_DTO_SUCCESS);
		KUNIT_ASSERT_EQ(test, dto->user_cookie.as_64, (u64)i);
		kd_expect_dto(test, pair.a->req_evd, i, DAT_DTO_SUCCESS, NULL);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&bed->late), 0);
	KD_EXPECT_RET(test, DAT_TIMEOUT_EXPIRED, evd_wait(&bed->w, &event, 2));
}

/* What an upcall has announced and nobody took waits for the next arrival. */
static void left_events_are_not_announced_again(struct kunit *test)
{
	struct wait_bed *bed = make_bed(test);
	struct kd_side *s = kd_open_param(test);
	struct progress p = { &bed->upcalls, 1 };
	DAT_EVENT event;

	make_evd(test, bed, s, DAT_EVD_SOFTWARE_FLAG);
	KD_ASSERT_OK(test, post(bed, STOP));
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_reached, &p, KD_TIMEOUT_MS));
	schedule_timeout_uninterruptible(msecs_to_jiffies(KD_QUIET_MS));
	KUNIT_EXPECT_EQ(test, atomic_read(&bed->upcalls), 1);
	KD_ASSERT_OK(test, post(bed, STOP));
	p.want = 2;
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_reached, &p, KD_TIMEOUT_MS));
	KD_EXPECT_OK(test, evd_wait(&bed->w, &event, 0));
	KD_EXPECT_OK(test, evd_wait(&bed->w, &event, 0));
	KD_EXPECT_RET(test, DAT_TIMEOUT_EXPIRED, evd_wait(&bed->w, &event, 0));
}

static int signalled_thread(void *data)
{
	struct wait_bed *bed = data;
	DAT_EVENT event;

	allow_signal(SIGINT);
	bed->ret = evd_wait(&bed->w, &event, LONG);
	complete(&bed->ended);
	return 0;
}

static void other_ways_to_end(struct kunit *test)
{
	struct wait_bed *bed = make_bed(test);
	struct kd_side *s = kd_open_param(test);
	struct task_struct *task;
	DAT_EVENT event;

	make_evd(test, bed, s, DAT_EVD_SOFTWARE_FLAG);
	KD_EXPECT_RET(test, DAT_TIMEOUT_EXPIRED, evd_wait(&bed->w, &event, 2));

	task = kthread_create(signalled_thread, bed, "kd-wait-signal");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	wake_up_process(task);
	while (!wait_for_completion_timeout(&bed->ended, 1))
		send_sig(SIGINT, task, 1);
	put_task_struct(task);
	KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(bed->ret),
			(u32)DAT_INTERRUPTED_CALL);

	KD_ASSERT_OK(test, dat_evd_free(bed->w.evd));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      evd_wait(&bed->w, &event, LONG));
}

static struct kunit_case wait_cases[] = {
	KUNIT_CASE_PARAM(waits_for_one_by_one, kd_gen_ia),
	KUNIT_CASE_PARAM(several_threads_share_bursts, kd_gen_ia),
	KUNIT_CASE_PARAM(waits_for_messages, kd_gen_ia),
	KUNIT_CASE_PARAM(left_events_are_not_announced_again, kd_gen_ia),
	KUNIT_CASE_PARAM(other_ways_to_end, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-evd-wait", wait_cases, "the recipe to wait for events");
