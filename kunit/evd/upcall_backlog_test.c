// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Upcalls while the device's completion queue holds more than kdapl.ko has
 * polled, and full EVDs that are resized (contract C3, R6).
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/sched.h>
#include "fixture.h"

#define MESSAGES 40

static DAT_EP_HANDLE make_ep(struct kd_side *s)
{
	DAT_EP_ATTR attr = kd_ep_attr();

	attr.max_recv_dtos = MESSAGES;
	return kd_ep(s, &attr);
}

static void post_recvs(struct kd_side *s, int n)
{
	int i;

	for (i = 0; i < n; i++)
		kd_recv(s, i * 64, 64, i);
}

/*
 * Send @n messages and wait until the passive side's device has completed them:
 * it answers the Read that follows only after them.
 */
static void send_and_arrive(struct kd_pair *pair, int n,
			    DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = kd_seg(pair->a->buf, 0, 64);
	DAT_RMR_TRIPLET from = kd_remote(pair->p->buf, 0, 64);
	struct kunit *test = pair->a->test;
	int i;

	for (i = 0; i < n; i++) {
		KD_ASSERT_OK(test, dat_ep_post_send(pair->a->ep, 1, &seg,
						    kd_cookie(i), flags));
		kd_expect_dto(test, pair->a->req_evd, i, DAT_DTO_SUCCESS,
			      NULL);
	}
	KD_ASSERT_OK(test, dat_ep_post_rdma_read(pair->a->ep, 1, &seg,
						 kd_cookie(n), &from, 0));
	kd_expect_dto(test, pair->a->req_evd, n, DAT_DTO_SUCCESS, NULL);
}

struct mores {
	atomic_t n;
	bool more[MESSAGES];
};

static void note_more(struct kd_recorder *rec, const DAT_EVENT *event,
		      DAT_BOOLEAN more)
{
	struct mores *mores = rec->priv;
	int i = atomic_inc_return(&mores->n) - 1;

	if (i < MESSAGES)
		mores->more[i] = more;
}

/*
 * All messages have arrived before the first upcall, so more_events is false in
 * the last one only.
 */
static void C3_more_events_of_many(struct kunit *test)
{
	struct mores *mores = kunit_kzalloc(test, sizeof(*mores), GFP_KERNEL);
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *p = pair.p;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, mores);
	rec->hook = note_more;
	rec->priv = mores;
	p->recv_evd = kd_recorded_evd(p, DAT_EVD_DTO_FLAG, 64,
				      DAT_UPCALL_DISABLE, rec);
	p->ep = make_ep(p);
	kd_connect_pair(pair.a, p);
	post_recvs(p, MESSAGES);
	send_and_arrive(&pair, MESSAGES, 0);
	kd_enable_upcalls(test, p->recv_evd, DAT_UPCALL_INVOC_ANY);
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, MESSAGES));
	for (i = 0; i < MESSAGES; i++)
		KUNIT_EXPECT_EQ_MSG(test, mores->more[i], i < MESSAGES - 1,
				    "event %d", i + 1);
}

/*
 * A solicited message that arrived before upcalls were enabled does not count
 * as new.
 */
static void C3_new_after_solicited(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_side *p = pair.p;

	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	/* The EVD is so short that its CQ is armed in any case. */
	p->recv_evd = kd_recorded_evd(p, DAT_EVD_DTO_FLAG, 4,
				      DAT_UPCALL_DISABLE, rec);
	p->ep = kd_ep(p, &attr);
	kd_connect_pair(pair.a, p);
	post_recvs(p, 2);
	send_and_arrive(&pair, 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	msleep(KD_QUIET_MS);
	kd_enable_upcalls(test, p->recv_evd, DAT_UPCALL_INVOC_NEW);
	msleep(KD_QUIET_MS);
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 0);
	send_and_arrive(&pair, 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 2));
}

/*
 * struct in_upcall - what query_the_next() needs
 * @pair: the connection
 * @sent: the case waits for no completion of a request any more
 * @done: the first upcall has run
 */
struct in_upcall {
	struct kd_pair pair;
	struct completion sent;
	bool done;
};

/* In the first upcall: another solicited message comes, and a query polls it. */
static void query_the_next(struct kd_recorder *rec, const DAT_EVENT *event,
			   DAT_BOOLEAN more)
{
	struct in_upcall *in = rec->priv;
	DAT_COUNT n;

	if (in->done)
		return;
	in->done = true;
	wait_for_completion(&in->sent);
	send_and_arrive(&in->pair, 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	KD_EXPECT_OK(in->pair.p->test, dat_ep_recv_query(in->pair.p->ep, &n,
							 NULL));
}

/* A solicited message that a query polls during an upcall causes one as well. */
static void C3_solicited_polled_in_upcall(struct kunit *test)
{
	struct in_upcall in = { .pair = kd_make_half_pair(test) };
	struct kd_recorder *rec = kd_recorder(test);
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_side *p = in.pair.p;

	init_completion(&in.sent);
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	rec->hook = query_the_next;
	rec->priv = &in;
	/* The software stream has upcalls run in process context. */
	p->recv_evd = kd_recorded_evd(p, DAT_EVD_DTO_FLAG |
				      DAT_EVD_SOFTWARE_FLAG, 32,
				      DAT_UPCALL_SINGLE_INSTANCE, rec);
	p->ep = kd_ep(p, &attr);
	kd_connect_pair(in.pair.a, p);
	post_recvs(p, 2);
	send_and_arrive(&in.pair, 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	complete(&in.sent);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 2));
	kd_close(p);
}

/*
 * A full EVD that is made longer is not full any more; its next overflow has an
 * event of its own.
 */
static void R6_overflow_after_resize(struct kunit *test)
{
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *p = pair.p;
	DAT_EVENT event;

	p->recv_evd = kd_evd(p, DAT_EVD_DTO_FLAG, 4, DAT_UPCALL_DISABLE);
	p->ep = make_ep(p);
	kd_connect_pair(pair.a, p);
	post_recvs(p, MESSAGES);
	send_and_arrive(&pair, 8, 0);
	KD_ASSERT_OK(test, dat_evd_resize(p->recv_evd, 16));
	kd_expect_event(test, p->async_evd, DAT_ASYNC_ERROR_EVD_OVERFLOW,
			&event);
	kd_expect_no_event(test, p->async_evd);
	send_and_arrive(&pair, 14, 0);
	kd_expect_event(test, p->async_evd, DAT_ASYNC_ERROR_EVD_OVERFLOW,
			&event);
	KUNIT_EXPECT_PTR_EQ(test, event.event_data.asynch_error_event_data
				       .dat_handle, (void *)p->recv_evd);
	KUNIT_EXPECT_EQ(test, kd_drain(p->recv_evd), 22);
	kd_expect_no_event(test, p->async_evd);
}

static atomic_t on_top;

/* Upcall: count those on top of the task that runs the case. */
static void on_top_hook(struct kd_recorder *rec, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (current == rec->priv)
		atomic_inc(&on_top);
}

static bool can_interrupt(void)
{
#if defined(CONFIG_IRQ_WORK) && !defined(CONFIG_PREEMPT_RT)
	return arch_irq_work_has_interrupt();
#else
	return false;
#endif
}

/*
 * What makes an upcall due outside of interrupts, as drivers do that complete in a thread, costs
 * no switch to ksoftirqd if a CPU can interrupt itself. Here the case does, when it allows upcalls
 * for an event that is queued. (ksoftirqd makes some on a busy machine.)
 */
static void C3_upcalls_without_ksoftirqd(struct kunit *test)
{
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_recorder *rec = kd_recorder(test);
	const int n = 20;
	DAT_BOOLEAN idle;
	int i;

	if (!can_interrupt())
		kunit_skip(test, "needs a CPU that can interrupt itself");
	atomic_set(&on_top, 0);
	rec->hook = on_top_hook;
	rec->priv = current;
	pair.p->recv_evd = kd_recorded_evd(pair.p, DAT_EVD_DTO_FLAG, 32, DAT_UPCALL_DISABLE, rec);
	pair.p->ep = kd_ep(pair.p, NULL);
	kd_connect_pair(pair.a, pair.p);
	for (i = 1; i <= n; i++) {
		KD_ASSERT_OK(test, dat_evd_modify_upcall(pair.p->recv_evd, DAT_UPCALL_DISABLE,
							 DAT_UPCALL_SAME, DAT_UPCALL_INVOC_ANY));
		kd_recv(pair.p, 0, 64, i);
		kd_send(pair.a, 0, 64, i);
		kd_expect_dto(test, pair.a->req_evd, i, DAT_DTO_SUCCESS, NULL);
		do
			KD_ASSERT_OK(test, dat_ep_get_status(pair.p->ep, NULL, &idle, NULL));
		while (!idle);
		kd_enable_upcalls(test, pair.p->recv_evd, DAT_UPCALL_INVOC_ANY);
		KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, i));
	}
	KUNIT_EXPECT_GT(test, atomic_read(&on_top), n / 2);
	kd_close(pair.p);
}

static struct kunit_case upcall_backlog_cases[] = {
	KUNIT_CASE_PARAM(C3_more_events_of_many, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_new_after_solicited, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_solicited_polled_in_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(R6_overflow_after_resize, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_upcalls_without_ksoftirqd, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-upcall-backlog", upcall_backlog_cases,
	 "upcalls and full EVDs at the edges");
