// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * IAs that are closed (contract C5) under traffic, objects that are freed while
 * others use them, and while upcalls run (C4, C6).
 */
#include <linux/module.h>
#include "ep_states.h"
#include "free.h"
#include "gone.h"
#include "traffic.h"

/*
 * Connect the @i-th of four kinds: without and with an SRQ, upcalls in softirq and in
 * process context.
 */
static struct traffic *connect_nth(struct kunit *test, int i)
{
	DAT_EVD_FLAGS flags = DAT_EVD_DTO_FLAG;

	if (i & 1)
		flags |= DAT_EVD_SOFTWARE_FLAG;
	return td_connect_traffic(test, i & 2 ? 32 : 0, flags);
}

/* ---- IAs that close ------------------------------------------------------ */

/* Senders go on with handles that the close has made invalid. */
static void C5_abrupt_close_under_traffic(struct kunit *test)
{
	struct traffic *t;
	int i;

	for (i = 0; i < 4; i++) {
		t = connect_nth(test, i);
		td_start_traffic(test, t);
		kd_close(t->side[0]);
		kd_close(t->side[1]);
		kd_wait_until(td_is_refused, t, KD_TIMEOUT_MS);
		td_stop_traffic(t);
		KUNIT_EXPECT_GT(test, t->sender[0].refused, 0);
		KUNIT_EXPECT_GT(test, t->sender[1].refused, 0);
	}
}

static void C5_abrupt_close_in_every_state(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;
	int reach;

	for (reach = 0; reach < EP_REACHABLE; reach++)
		ep_stage_leave(ep_stage_enter(test, ia, reach));
}

/* Close an IA whose posted requests use LMRs and may not have completed. */
static void C5_abrupt_close_with_requests(struct kunit *test)
{
	struct kd_side *a = kd_open_param(test), *p = kd_open_param(test);
	struct memory m;
	int i;

	kd_setup(a, NULL);
	kd_setup(p, NULL);
	kd_connect_pair(a, p);
	td_make_memory(a, &m);
	for (i = 0; i < 4; i++) {
		kd_recv(p, i * 64, 64, i);
		kd_send(a, i * 64, 64, i);
	}
	KD_EXPECT_OK(test, dat_lmr_invalidate(m.fmr, a->ep, kd_cookie(5), 0));
	td_make_bind(a, &m, 6);
	kd_close(a);
	kd_close(p);
}

/*
 * Freeing an EVD with a request in it rejects that request, so that the peer
 * need not wait.
 */
static void N5_request_in_a_freed_evd(struct kunit *test)
{
	struct kd_side *a = kd_open_param(test), *p = kd_open_param(test);
	struct objects objects = { .n = 0 };
	u16 port = kd_port();
	DAT_PSP_HANDLE psp;

	kd_setup(a, NULL);
	kd_setup(p, NULL);
	psp = kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(a, p, port);
	schedule_timeout_uninterruptible(msecs_to_jiffies(KD_QUIET_MS) + 1);
	KD_EXPECT_OK(test, dat_psp_free(psp));
	td_free_side(p, &objects);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(a->ep,
					      DAT_EP_STATE_DISCONNECTED));
}

/* Objects that two threads free at the same time; each can be freed once. */
struct freer {
	DAT_HANDLE handle[MAX_OBJECTS];
	unsigned int n;
	unsigned int freed;
	struct completion go;
	struct completion done;
};

static int free_thread(void *data)
{
	struct freer *f = data;
	unsigned int i;

	wait_for_completion(&f->go);
	for (i = 0; i < f->n; i++) {
		f->freed += kd_free_object(f->handle[i]) == DAT_SUCCESS;
		if (i % 3 == 0)
			cond_resched();
	}
	complete(&f->done);
	return 0;
}

static void make_objects(struct kd_side *s, struct freer *f)
{
	DAT_SRQ_ATTR srq = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	struct kunit *test = s->test;
	int i;

	f->n = 0;
	for (i = 0; i < 3; i++) {
		f->handle[f->n++] = kd_buf_valloc(s, SZ_8K)->lmr;
		KD_ASSERT_OK(test, dat_rmr_create(s->pz, (DAT_RMR_HANDLE *)
						  &f->handle[f->n++]));
		KD_ASSERT_OK(test, dat_pz_create(s->ia, (DAT_PZ_HANDLE *)
						 &f->handle[f->n++]));
		KD_ASSERT_OK(test, dat_srq_create(s->ia, s->pz, &srq,
						  (DAT_SRQ_HANDLE *)
						  &f->handle[f->n++]));
		f->handle[f->n++] = kd_psp(s, kd_port(), 0);
	}
}

static void C5_two_threads_free_the_same(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct freer *f = kunit_kcalloc(test, 2, sizeof(*f), GFP_KERNEL);
	int i, round;

	KUNIT_ASSERT_NOT_NULL(test, f);
	kd_setup(s, NULL);
	for (round = 0; round < 10; round++) {
		make_objects(s, &f[0]);
		f[1] = f[0];
		for (i = 0; i < 2; i++) {
			f[i].freed = 0;
			init_completion(&f[i].go);
			init_completion(&f[i].done);
			kthread_run(free_thread, &f[i], "kd-free-%d", i);
		}
		for (i = 0; i < 2; i++)
			complete(&f[i].go);
		for (i = 0; i < 2; i++)
			wait_for_completion(&f[i].done);
		KUNIT_EXPECT_EQ(test, f[0].freed + f[1].freed, f[0].n);
	}
}

/* ---- Upcalls ------------------------------------------------------------- */

struct waiter {
	DAT_EVD_HANDLE evd;
	DAT_RETURN ret;
	struct completion done;
};

static int teardown_thread(void *data)
{
	struct waiter *w = data;

	w->ret = dat_evd_modify_upcall(w->evd, DAT_UPCALL_TEARDOWN,
				       DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW);
	complete(&w->done);
	return 0;
}

static void C4_teardown_waits(struct kunit *test)
{
	struct slow_upcall *u = td_make_slow_upcall(test);
	struct waiter *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct kd_side *s = kd_open_param(test);

	KUNIT_ASSERT_NOT_NULL(test, w);
	kd_setup(s, NULL);
	w->evd = td_start_slow_upcall(s, u);
	init_completion(&w->done);
	kthread_run(teardown_thread, w, "kd-teardown");
	KUNIT_EXPECT_EQ(test, 0,
			wait_for_completion_timeout(&w->done,
						    msecs_to_jiffies(100)));
	complete(&u->leave);
	wait_for_completion(&w->done);
	KD_EXPECT_OK(test, w->ret);
	KUNIT_EXPECT_TRUE(test, u->left);
}

/* A module cannot be unloaded while an upcall of it runs. */
static void C6_upcall_pins_its_module(struct kunit *test)
{
	struct slow_upcall *u = td_make_slow_upcall(test);
	struct kd_side *s = kd_open_param(test);
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_UPCALL_OBJECT mine;
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	int before;

	KD_NEED_MODULE(test);
	before = module_refcount(THIS_MODULE);
	kd_setup(s, NULL);
	evd = td_start_slow_upcall(s, u);
	KD_ASSERT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	/* The upcall that runs is not of this module; the next one is. */
	mine = param.upcall;
	KD_ASSERT_OK(test,
		     dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE,
					   &mine, DAT_UPCALL_INVOC_ANY));
	KD_ASSERT_OK(test, dat_evd_post_se(evd, &event));
	KUNIT_EXPECT_EQ(test, before, module_refcount(THIS_MODULE));
	complete(&u->leave);
	wait_for_completion(&u->entered);
	KUNIT_EXPECT_EQ(test, before + 1, module_refcount(THIS_MODULE));
	complete(&u->leave);
	KD_EXPECT_OK(test, dat_evd_free(evd));
	KUNIT_EXPECT_EQ(test, before, module_refcount(THIS_MODULE));
}

/*
 * Upcall: free its own Endpoint after some messages, or when it is not connected any more: who
 * sends over siw may be told that the connection is broken.
 */
static void free_own_ep(struct kd_recorder *rec, const DAT_EVENT *event,
			DAT_BOOLEAN more)
{
	struct kd_side *s = rec->priv;

	if (atomic_read(&rec->calls) == RECVS ||
	    event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
	    event->event_number == DAT_CONNECTION_EVENT_BROKEN)
		KD_EXPECT_OK(s->test, dat_ep_free(s->ep));
	else if (event->event_number == DAT_DTO_COMPLETION_EVENT)
		td_repost(rec, event, more);
}

static void C4_ep_frees_itself_in_dto_upcall(struct kunit *test)
{
	struct traffic *t;
	int i;

	for (i = 0; i < 4; i++) {
		t = connect_nth(test, i);
		t->recv[1]->hook = free_own_ep;
		td_start_senders(test, t);
		kd_expect_sender_disconnected(t->side[0]);
		td_stop_traffic(t);
		KUNIT_EXPECT_FALSE(test, kd_is_live(t->side[1]->ep));
		kd_expect_no_event(test, t->side[1]->conn_evd);
		kd_close(t->side[0]);
		kd_close(t->side[1]);
	}
}

static void C4_ep_frees_itself_in_connection_upcall(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct traffic *t = td_connect_traffic(test, 0, DAT_EVD_DTO_FLAG);
	DAT_UPCALL_OBJECT upcall = kd_upcall(rec);

	rec->hook = free_own_ep;
	rec->priv = t->side[1];
	KD_ASSERT_OK(test, dat_evd_modify_upcall(t->side[1]->conn_evd,
						 DAT_UPCALL_SINGLE_INSTANCE,
						 &upcall,
						 DAT_UPCALL_INVOC_ANY));
	td_start_traffic(test, t);
	KD_EXPECT_OK(test, dat_ep_disconnect(t->side[0]->ep,
					     DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 1));
	td_stop_traffic(t);
	KUNIT_EXPECT_FALSE(test, kd_is_live(t->side[1]->ep));
	kd_close(t->side[1]);
}

static struct kunit_case close_cases[] = {
	KUNIT_CASE_PARAM(C5_abrupt_close_under_traffic, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_abrupt_close_in_every_state, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_abrupt_close_with_requests, kd_gen_ia),
	KUNIT_CASE_PARAM(N5_request_in_a_freed_evd, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_two_threads_free_the_same, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_teardown_waits, kd_gen_ia),
	KUNIT_CASE_PARAM(C6_upcall_pins_its_module, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_ep_frees_itself_in_dto_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_ep_frees_itself_in_connection_upcall, kd_gen_ia),
	{}
};

struct kunit_suite close_suite = {
	.name = "kdapl-close",
	.test_cases = close_cases,
};
