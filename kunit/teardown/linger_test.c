// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Giving memory back after dat_ep_free() (contract L6): whoever frees an LMR or SRQ
 * waits for the queue pairs that may still use it, and for no others, however far
 * connecting had got. Queue pairs are held on their way to RTR or to ERR.
 */
#include <linux/completion.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>
#include <rdma/rdma_cm.h>
#include "call.h"
#include "device.h"

#define LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define PART	512

/* ---- Holding queue pairs ------------------------------------------------------- */

/*
 * What is held: the way to RTR of the side that accepts or of the one that connects,
 * the way to ERR of queue pairs of the latter.
 */
enum hold { HOLD_NONE, HOLD_ACCEPT, HOLD_ANSWER, HOLD_END };

#define QPS	2

static struct kd_hook device;
static enum hold hold;
static atomic_t held;			/* that have been held, ever */
static atomic_t to_rtr;			/* transitions to RTR */
static atomic_t at_rtr;			/* of these, done */
static struct completion release[QPS];	/* in the order in which they came */
static struct ib_qp *active[QPS];	/* queue pairs that connected */

/* The answer of a peer is handled by a work item, an accept by who calls it. */
static bool is_active(void)
{
	return current->flags & PF_WQ_WORKER;
}

static bool was_active(struct ib_qp *qp)
{
	return qp == READ_ONCE(active[0]) || qp == READ_ONCE(active[1]);
}

static enum hold stage(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	if (!(mask & IB_QP_STATE))
		return HOLD_NONE;
	if (attr->qp_state == IB_QPS_RTR)
		return is_active() ? HOLD_ANSWER : HOLD_ACCEPT;
	return attr->qp_state == IB_QPS_ERR && was_active(qp) ? HOLD_END : HOLD_NONE;
}

static int modify(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata)
{
	enum hold now = stage(qp, attr, mask);
	bool rtr = now == HOLD_ANSWER || now == HOLD_ACCEPT;
	int i, err;

	if (rtr)
		atomic_inc(&to_rtr);
	if (now == HOLD_ANSWER)
		WRITE_ONCE(active[!!active[0]], qp);
	if (now != HOLD_NONE && now == READ_ONCE(hold)) {
		i = atomic_fetch_inc(&held);
		kd_wake();
		/* It is taken to ERR once more before it is destroyed. */
		if (i < QPS)
			wait_for_completion_timeout(&release[i], 10 * HZ);
	}
	err = device.real.modify_qp(qp, attr, mask, udata);
	if (rtr && !err)
		atomic_inc(&at_rtr);
	return err;
}

static bool has_held(void *n)
{
	return atomic_read(&held) >= *(int *)n;
}

static void wait_held(struct kunit *test, int n)
{
	KUNIT_ASSERT_TRUE(test, kd_wait_until(has_held, &n, KD_TIMEOUT_MS));
}

static void let_go(void *unused)
{
	unsigned int i;

	WRITE_ONCE(hold, HOLD_NONE);
	for (i = 0; i < QPS; i++)
		complete_all(&release[i]);
}

/* A pair on a device whose queue pairs of side @which will be held. */
static struct kd_pair make_pair(struct kunit *test, enum hold which)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	unsigned int i;

	if (kd_is_iwarp(c.a))
		kunit_skip(test, "the driver moves the queue pairs");
	for (i = 0; i < QPS; i++) {
		init_completion(&release[i]);
		WRITE_ONCE(active[i], NULL);
	}
	atomic_set(&held, 0);
	atomic_set(&to_rtr, 0);
	atomic_set(&at_rtr, 0);
	WRITE_ONCE(hold, which);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, let_go, NULL));
	kd_hook(test, c.a->name, &device)->ops.modify_qp = modify;
	return c;
}

static struct kd_buf *post_local(struct kd_side *s)
{
	struct kd_buf *buf = kd_buf_alloc_priv(s, PAGE_SIZE, false, LOCAL);
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, PART);

	KD_ASSERT_OK(s->test, dat_ep_post_recv(s->ep, 1, &seg, kd_cookie(1), 0));
	return buf;
}

/* ---- Calls that may wait ------------------------------------------------------- */

static DAT_RETURN free_lmr(DAT_HANDLE handle)
{
	return dat_lmr_free(handle);
}

static DAT_RETURN free_srq(DAT_HANDLE handle)
{
	return dat_srq_free(handle);
}

static DAT_RETURN free_rmr(DAT_HANDLE handle)
{
	return dat_rmr_free(handle);
}

static DAT_EP_HANDLE victim;

static DAT_RETURN accept_cr(DAT_HANDLE handle)
{
	return dat_cr_accept(handle, victim, 0, NULL);
}

static void expect_waiting(struct kunit *test, struct kd_call *call)
{
	KUNIT_EXPECT_FALSE(test, kd_call_is_back(call, KD_QUIET_MS));
}

static void expect_done(struct kunit *test, struct kd_call *call, DAT_RETURN want)
{
	kd_call_expect(test, call, want, KD_TIMEOUT_MS, let_go, NULL);
}

/* Ask @p for a connection, and return the request. */
static DAT_CR_HANDLE request(struct kd_side *a, struct kd_side *p)
{
	u16 port = kd_port();

	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(a, p, port);
	return kd_expect_cr(p);
}

/* ---- The connecting side ------------------------------------------------------- */

static struct tracepoint *cm_event;
static bool freed;

/* Just before the answer is handled the consumer frees the Endpoint. */
static void on_cm_event(void *data, const struct rdma_cm_id *id,
			const struct rdma_cm_event *event)
{
	if (event->event != RDMA_CM_EVENT_CONNECT_RESPONSE || READ_ONCE(freed))
		return;
	atomic_set(&to_rtr, 0);
	dat_ep_free(victim);
	WRITE_ONCE(freed, true);
	kd_wake();
}

static void find_cm_event(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "cm_event_handler"))
		cm_event = tp;
}

static void forget_cm_event(void *unused)
{
	tracepoint_probe_unregister(cm_event, on_cm_event, NULL);
	tracepoint_synchronize_unregister();
}

static bool was_freed(void *unused)
{
	return READ_ONCE(freed);
}

static void L6_freed_before_the_answer(struct kunit *test)
{
	struct kd_pair c = make_pair(test, HOLD_NONE);
	struct kd_buf *buf = post_local(c.a);

	for_each_kernel_tracepoint(find_cm_event, NULL);
	if (!cm_event)
		kunit_skip(test, "rdma_cm is a module");
	victim = c.a->ep;
	WRITE_ONCE(freed, false);
	KUNIT_ASSERT_EQ(test, 0, tracepoint_probe_register(cm_event, on_cm_event,
							   NULL));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, forget_cm_event,
							   NULL));
	KD_ASSERT_OK(test, dat_cr_accept(request(c.a, c.p), c.p->ep, 0, NULL));
	KUNIT_ASSERT_TRUE(test, kd_wait_until(was_freed, NULL, KD_TIMEOUT_MS));
	c.a->ep = NULL;
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	/* Nobody has waited, so the queue pair must not receive. */
	let_go(NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(c.p->ep, DAT_EP_STATE_DISCONNECTED));
	KUNIT_EXPECT_EQ(test, atomic_read(&to_rtr), 0);
}

static void L6_freed_during_the_answer(struct kunit *test)
{
	struct kd_pair c = make_pair(test, HOLD_ANSWER);
	struct kd_buf *buf = post_local(c.a);
	struct kd_call *call;
	bool waited;

	KD_ASSERT_OK(test, dat_cr_accept(request(c.a, c.p), c.p->ep, 0, NULL));
	wait_held(test, 1);
	KD_ASSERT_OK(test, dat_ep_free(c.a->ep));
	c.a->ep = NULL;
	call = kd_call_begin(test, free_lmr, buf->lmr);
	waited = !kd_call_is_back(call, KD_QUIET_MS);
	atomic_set(&at_rtr, 0);
	let_go(NULL);
	expect_done(test, call, DAT_SUCCESS);
	KUNIT_EXPECT_TRUE(test, kd_wait_state(c.p->ep, DAT_EP_STATE_DISCONNECTED));
	/* Either the call has waited, or there is nothing to wait for. */
	KUNIT_EXPECT_TRUE(test, waited || !atomic_read(&at_rtr));
}

/* ---- The accepting side -------------------------------------------------------- */

static void L6_freed_during_accept(struct kunit *test)
{
	struct kd_pair c = make_pair(test, HOLD_ACCEPT);
	struct kd_buf *buf = post_local(c.p);
	struct kd_call *accept, *call;

	victim = c.p->ep;
	accept = kd_call_begin(test, accept_cr, request(c.a, c.p));
	wait_held(test, 1);
	KD_ASSERT_OK(test, dat_ep_free(c.p->ep));
	c.p->ep = NULL;
	/* The queue pair goes on to RTS when it is let go. */
	call = kd_call_begin(test, free_lmr, buf->lmr);
	expect_waiting(test, call);
	let_go(NULL);
	expect_done(test, call, DAT_SUCCESS);
	expect_done(test, accept, DAT_SUCCESS);
}

#ifdef CONFIG_KPROBES
static struct kprobe joined;

/* An accept has entered the connection in the Endpoint; the queue pair is in INIT. */
static int on_join(struct kprobe *probe, struct pt_regs *regs)
{
	if (READ_ONCE(freed))
		return 0;
	dat_ep_free(victim);
	WRITE_ONCE(freed, true);
	return 0;
}

static void forget_join(void *unused)
{
	unregister_kprobe(&joined);
}

static void L6_freed_after_the_join(struct kunit *test)
{
	struct kd_pair c = make_pair(test, HOLD_NONE);
	struct kd_buf *buf = post_local(c.p);
	DAT_CR_HANDLE cr = request(c.a, c.p);

	victim = c.p->ep;
	WRITE_ONCE(freed, false);
	/* Behind the join dat_cr_accept() calls that before it moves the queue pair. */
	joined = (struct kprobe) {
		.symbol_name = "rdma_set_min_rnr_timer",
		.pre_handler = on_join,
	};
	KUNIT_ASSERT_EQ(test, 0, register_kprobe(&joined));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, forget_join, NULL));
	dat_cr_accept(cr, c.p->ep, 0, NULL);
	c.p->ep = NULL;
	KUNIT_EXPECT_TRUE(test, READ_ONCE(freed));
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	/* Nobody has waited, so the queue pair must not receive. */
	KUNIT_EXPECT_TRUE(test, kd_wait_state(c.a->ep, DAT_EP_STATE_DISCONNECTED));
	KUNIT_EXPECT_EQ(test, atomic_read(&to_rtr), 0);
}
#else
static void L6_freed_after_the_join(struct kunit *test)
{
	kunit_skip(test, "this kernel has no kprobes");
}
#endif

/* ---- Others -------------------------------------------------------------------- */

/* Connect; the @n-th queue pair to end is held when the Endpoint is freed. */
static void hold_end(struct kd_pair *c, int n)
{
	kd_connect_pair(c->a, c->p);
	KD_ASSERT_OK(c->a->test, dat_ep_free(c->a->ep));
	c->a->ep = NULL;
	wait_held(c->a->test, n);
	/* The message that says so has been sent. */
	kd_expect_disconnected(c->p, NULL);
}

/* One that never ends holds up nobody else. */
static void L6_waits_for_its_own_only(struct kunit *test)
{
	struct kd_pair c = make_pair(test, HOLD_END);
	struct kd_buf *buf = post_local(c.a);
	struct kd_buf *other = kd_buf_alloc_priv(c.a, PAGE_SIZE, false, LOCAL);
	DAT_SRQ_HANDLE srq = kd_srq(c.a, 4);
	struct kd_call *call;

	hold_end(&c, 1);
	call = kd_call_begin(test, free_lmr, buf->lmr);
	expect_waiting(test, call);
	expect_done(test, kd_call_begin(test, free_lmr, other->lmr), DAT_SUCCESS);
	expect_done(test, kd_call_begin(test, free_srq, srq), DAT_SUCCESS);
	expect_waiting(test, call);
	let_go(NULL);
	expect_done(test, call, DAT_SUCCESS);
}

static void L6_srq_waits(struct kunit *test)
{
	struct kd_pair c = make_pair(test, HOLD_END);
	DAT_LMR_TRIPLET seg;
	struct kd_buf *buf;
	struct kd_call *call;

	c.a->srq = kd_srq(c.a, 4);
	KD_ASSERT_OK(test, dat_ep_free(c.a->ep));
	c.a->ep = kd_ep(c.a, NULL);
	buf = kd_buf_alloc_priv(c.a, PAGE_SIZE, false, LOCAL);
	seg = kd_seg(buf, 0, PART);
	KD_ASSERT_OK(test, dat_srq_post_recv(c.a->srq, 1, &seg, kd_cookie(1)));
	hold_end(&c, 1);
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_lmr_free(buf->lmr));
	call = kd_call_begin(test, free_srq, c.a->srq);
	c.a->srq = NULL;
	expect_waiting(test, call);
	let_go(NULL);
	expect_done(test, call, DAT_SUCCESS);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
}

/* An Endpoint that is freed while an LMR waits for another one is in its way. */
static void L6_waits_for_none_freed_later(struct kunit *test)
{
	struct kd_pair c = make_pair(test, HOLD_END);
	struct kd_buf *buf = post_local(c.a);
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, PART);
	struct kd_call *call;

	hold_end(&c, 1);
	c.a->ep = kd_ep(c.a, NULL);
	c.p->ep = kd_ep(c.p, NULL);
	KD_ASSERT_OK(test, dat_ep_post_recv(c.a->ep, 1, &seg, kd_cookie(1), 0));
	call = kd_call_begin(test, free_lmr, buf->lmr);
	expect_waiting(test, call);
	hold_end(&c, 2);
	complete_all(&release[0]);
	expect_done(test, call, DAT_INVALID_STATE);
	complete_all(&release[1]);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
}

/*
 * The Endpoint of an unbind is freed while dat_rmr_free() waits for it. The peer has posted no
 * receive for the Send before, so the unbind ends with the queue pair and not earlier.
 */
static void L6_rmr_waits(struct kunit *test)
{
	struct kd_pair c = make_pair(test, HOLD_END);
	struct kd_buf *buf = kd_buf_alloc_priv(c.a, PAGE_SIZE, false, DAT_MEM_PRIV_ALL_FLAG);
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, PART);
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	struct kd_call *call;

	kd_connect_pair(c.a, c.p);
	KD_ASSERT_OK(test, dat_rmr_create(c.a->pz, &rmr));
	KD_ASSERT_OK(test, dat_rmr_bind(rmr, buf->lmr, &seg, DAT_MEM_PRIV_REMOTE_READ_FLAG,
					DAT_VA_TYPE_VA, c.a->ep, kd_cookie(1), 0, &context));
	kd_expect_event(test, c.a->req_evd, DAT_RMR_BIND_COMPLETION_EVENT, NULL);
	KD_ASSERT_OK(test, dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(2), 0));
	seg.segment_length = 0;
	KD_ASSERT_OK(test, dat_rmr_bind(rmr, buf->lmr, &seg, 0, DAT_VA_TYPE_VA, c.a->ep,
					kd_cookie(3), 0, &context));
	call = kd_call_begin(test, free_rmr, rmr);
	expect_waiting(test, call);
	KD_ASSERT_OK(test, dat_ep_free(c.a->ep));
	c.a->ep = NULL;
	wait_held(test, 1);
	/* Longer than for a request of an Endpoint that lives. */
	KUNIT_EXPECT_FALSE(test, kd_call_is_back(call, 3 * MSEC_PER_SEC));
	let_go(NULL);
	expect_done(test, call, DAT_SUCCESS);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
}

static struct kunit_case linger_cases[] = {
	KUNIT_CASE_PARAM(L6_freed_before_the_answer, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_freed_during_the_answer, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_freed_during_accept, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_freed_after_the_join, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_waits_for_its_own_only, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_srq_waits, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_waits_for_none_freed_later, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_rmr_waits, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-linger", linger_cases, "memory of Endpoints that were freed");
