// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Closing Interface Adapters (contract C4, C5).
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include "device.h"

static void close_graceful_wants_empty_ia(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);

	KD_ASSERT_OK(test, dat_pz_create(s->ia, &s->pz));
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_ia_close(s->ia, DAT_CLOSE_GRACEFUL_FLAG));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, dat_ia_close(s->ia, 2));
	KD_EXPECT_OK(test, dat_pz_free(s->pz));
	KD_EXPECT_OK(test, dat_ia_close(s->ia, DAT_CLOSE_GRACEFUL_FLAG));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ia_close(s->ia, DAT_CLOSE_GRACEFUL_FLAG));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_evd_dequeue(s->async_evd, &(DAT_EVENT) {}));
	s->ia = NULL;
}

static int try_to_close(void *data)
{
	struct kd_side *s = data;

	while (!kthread_should_stop()) {
		KD_EXPECT_RET(s->test, DAT_INVALID_STATE,
			      dat_ia_close(s->ia, DAT_CLOSE_GRACEFUL_FLAG));
		cond_resched();
	}
	return 0;
}

/* A graceful close that fails disturbs no other call, not even for a moment. */
static void C5_close_graceful_disturbs_nobody(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	unsigned int i, failed = 0;
	struct task_struct *task;
	DAT_PZ_HANDLE pz;

	KD_ASSERT_OK(test, dat_pz_create(s->ia, &s->pz));
	task = kthread_run(try_to_close, s, "kdapl_close");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (i = 0; i < 500; i++) {
		if (dat_pz_create(s->ia, &pz) == DAT_SUCCESS)
			dat_pz_free(pz);
		else
			failed++;
		if (i % 16 == 0)
			schedule_timeout_uninterruptible(1);
	}
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, failed, 0);
}

static void close_abrupt_breaks_connections(struct kunit *test)
{
	struct kd_side *a = kd_open_param(test);
	struct kd_side *p = kd_open_param(test);
	DAT_EP_HANDLE ep;

	kd_setup(a, NULL);
	kd_setup(p, &(struct kd_opts) { .srq_len = 8 });
	kd_connect_pair(a, p);
	kd_recv(a, 0, 64, 1);
	kd_recv(p, 0, 64, 2);
	ep = p->ep;
	kd_close(p);
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
	kd_expect_dto(test, a->recv_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_ep_free(ep));
}

struct close_try {
	DAT_IA_HANDLE ia;
	DAT_RETURN graceful;
	DAT_RETURN abrupt;
};

static void close_hook(struct kd_recorder *rec, const DAT_EVENT *event,
		       DAT_BOOLEAN more)
{
	struct close_try *try = rec->priv;

	try->graceful = dat_ia_close(try->ia, DAT_CLOSE_GRACEFUL_FLAG);
	try->abrupt = dat_ia_close(try->ia, DAT_CLOSE_ABRUPT_FLAG);
}

static void C4_close_from_upcall(struct kunit *test)
{
	const DAT_EVENT soft = { .event_number = DAT_SOFTWARE_EVENT };
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_side *s = kd_open_param(test);
	struct close_try try = { .ia = s->ia };
	DAT_EVD_HANDLE evd;

	rec->hook = close_hook;
	rec->priv = &try;
	evd = kd_recorded_evd(s, DAT_EVD_SOFTWARE_FLAG, 8,
			      DAT_UPCALL_SINGLE_INSTANCE, rec);
	KD_ASSERT_OK(test, dat_evd_post_se(evd, &soft));
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, 1));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, try.graceful);
	KD_EXPECT_RET(test, DAT_INVALID_STATE, try.abrupt);
}

/*
 * struct closer - a thread that closes an IA gracefully while a call makes a PZ in it
 * @ret: what it was told
 */
static struct closer {
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;
	struct completion done;
} closer;

static struct kd_hook hooked;

static int close_thread(void *data)
{
	closer.ret = dat_ia_close(closer.ia, DAT_CLOSE_GRACEFUL_FLAG);
	complete(&closer.done);
	kd_wake();
	return 0;
}

/* The thread has been refused, or has closed the IA to others, and waits for objects. */
static bool has_decided(void *unused)
{
	DAT_HANDLE_TYPE type;

	return completion_done(&closer.done) ||
	       dat_get_handle_type(closer.ia, &type) != DAT_SUCCESS;
}

static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	struct task_struct *task = kthread_run(close_thread, NULL, "kd-close");

	if (IS_ERR(task) || !kd_wait_until(has_decided, NULL, KD_TIMEOUT_MS))
		return -ENOMEM;
	return hooked.real.alloc_pd(pd, udata);
}

/* The object that a call makes is an object: its IA is in use, or cannot be used. */
static void C5_close_graceful_while_a_pz_is_made(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_RETURN ret;

	closer = (struct closer) { .ia = s->ia };
	init_completion(&closer.done);
	kd_hook(test, s->name, &hooked)->ops.alloc_pd = alloc_pd;
	ret = dat_pz_create(s->ia, &s->pz);
	wait_for_completion(&closer.done);
	KUNIT_EXPECT_NE_MSG(test, ret == DAT_SUCCESS, closer.ret == DAT_SUCCESS,
			    "create: %s, close: %s", kd_strerror(ret),
			    kd_strerror(closer.ret));
	if (closer.ret == DAT_SUCCESS)
		s->ia = NULL;
	else
		KD_EXPECT_OK(test, dat_pz_free(s->pz));
}

static struct kunit_case ia_close_cases[] = {
	KUNIT_CASE_PARAM(close_graceful_wants_empty_ia, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_close_graceful_disturbs_nobody, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_close_graceful_while_a_pz_is_made, kd_gen_ia),
	KUNIT_CASE_PARAM(close_abrupt_breaks_connections, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_close_from_upcall, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-ia-close", ia_close_cases, "closing Interface Adapters");
