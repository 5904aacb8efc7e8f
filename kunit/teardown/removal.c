// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices that are removed (contract N5, N6) under traffic, and while upcalls run.
 *
 * "rdma link" removes and adds the devices, as an administrator would.
 */
#include <linux/module.h>
#include "device.h"
#include "ep_states.h"
#include "gone.h"
#include "plug.h"
#include "traffic.h"

/* ---- What everybody is told ---------------------------------------------- */

static void expect_catastrophe(struct kd_side *s)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	kd_expect_event(s->test, s->async_evd, DAT_ASYNC_ERROR_IA_CATASTROPHIC,
			&event);
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_PTR_EQ(s->test, data->dat_handle, (DAT_HANDLE)s->ia);
	KUNIT_EXPECT_EQ(s->test, data->reason, DAT_IA_CATASTROPHIC_ERROR);
	KUNIT_EXPECT_EQ(s->test, 0, kd_drain(s->async_evd));
}

static void expect_srq_state(struct kd_side *s, DAT_SRQ_STATE state)
{
	DAT_SRQ_PARAM param;

	if (!s->srq)
		return;
	KD_ASSERT_OK(s->test, dat_srq_query(s->srq, DAT_SRQ_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(s->test, (u32)param.srq_state, (u32)state);
}

/* ---- The device leaves --------------------------------------------------- */

static void leave_under_traffic(struct kunit *test, DAT_COUNT srq_len,
				DAT_EVD_FLAGS flags)
{
	struct traffic *t = td_connect_traffic(test, srq_len, flags);
	struct objects objects = { .n = 0 };
	int i;

	td_start_traffic(test, t);
	expect_srq_state(t->side[1], DAT_SRQ_STATE_OPERATIONAL);
	kd_unplug(test);
	for (i = 0; i < 2; i++) {
		kd_expect_broken(t->side[i]);
		expect_catastrophe(t->side[i]);
		expect_srq_state(t->side[i], DAT_SRQ_STATE_ERROR);
	}
	/* An IA of the same name can be opened while the old ones are open. */
	kd_plug(test);
	KUNIT_EXPECT_EQ(test, 0, kd_drain(kd_open_second(test)->async_evd));
	td_stop_traffic(t);
	for (i = 0; i < 2; i++) {
		objects.n = 0;
		td_free_side(t->side[i], &objects);
	}
}

static void N6_traffic(struct kunit *test)
{
	leave_under_traffic(test, 0, DAT_EVD_DTO_FLAG);
}

static void N6_traffic_of_srqs(struct kunit *test)
{
	leave_under_traffic(test, 32, DAT_EVD_DTO_FLAG);
}

static void N6_traffic_with_upcalls_in_process_context(struct kunit *test)
{
	leave_under_traffic(test, 0, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG);
}

/* An IA of a device that was added again works like the first one. */
static void N6_device_comes_back(struct kunit *test)
{
	struct traffic *t = td_connect_traffic(test, 0, DAT_EVD_DTO_FLAG);

	kd_unplug(test);
	kd_plug(test);
	t = td_connect_traffic(test, 0, DAT_EVD_DTO_FLAG);
	td_start_traffic(test, t);
}

static void N6_does_not_wait_for_an_upcall(struct kunit *test)
{
	struct slow_upcall *u = td_make_slow_upcall(test);
	struct kd_side *a = kd_open_second(test), *p = kd_open_second(test);

	kd_setup(a, NULL);
	kd_setup(p, &(struct kd_opts) { .no_ep = true });
	p->recv_evd = td_start_slow_upcall(p, u);
	p->ep = kd_ep(p, NULL);
	kd_connect_pair(a, p);
	kd_recv(p, 0, 64, 1);
	kd_send(a, 0, 64, 1);
	kd_unplug(test);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(u->left));
	/*
	 * Upcalls for flushed completions do not hold up the removal, either.
	 */
	complete_all(&u->leave);
	kd_expect_broken(a);
	kd_expect_broken(p);
}

/*
 * Endpoints that are not connected yet, or not any more, when the device
 * leaves.
 */
static void N6_while_connecting(struct kunit *test)
{
	struct kd_side *a = kd_open_second(test), *p = kd_open_second(test);
	struct kd_side *idle = kd_open_second(test);
	struct objects objects = { .n = 0 };
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	kd_setup(a, NULL);
	kd_setup(p, NULL);
	kd_setup(idle, NULL);
	td_add_object(&objects, kd_psp(p, port, DAT_PSP_CONSUMER_FLAG));
	kd_connect_start(a, p, port);
	cr = kd_expect_cr(p);
	KUNIT_EXPECT_EQ(test, (u32)kd_state(a),
			(u32)DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	kd_unplug(test);
	kd_expect_broken(a);
	kd_expect_broken(p);
	kd_expect_broken(idle);
	expect_catastrophe(p);
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_cr_accept(cr, p->ep, 0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_cr_reject(cr, 0, NULL));
	td_free_side(p, &objects);
}

/* Two threads that connect, accept and disconnect again and again. */
struct churn {
	struct kd_side *a;
	struct kd_side *p;
	u16 port;
	unsigned int rounds;
	bool stop;
	struct completion done;
};

static void accept_any(struct churn *c)
{
	DAT_EVENT event;
	DAT_CR_HANDLE cr;

	if (dat_evd_dequeue(c->p->cr_evd, &event) != DAT_SUCCESS)
		return;
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	if (dat_cr_accept(cr, c->p->ep, 0, NULL) != DAT_SUCCESS)
		dat_cr_reject(cr, 0, NULL);
}

static int churn_thread(void *data)
{
	struct churn *c = data;
	unsigned int i;

	for (i = 0; !READ_ONCE(c->stop); i++) {
		if (dat_ep_connect(c->a->ep, c->a->addr, c->port, 100000, 0,
				   NULL, 0, 0) == DAT_SUCCESS)
			WRITE_ONCE(c->rounds, c->rounds + 1);
		accept_any(c);
		if (i % 4 == 3)
			dat_ep_disconnect(c->a->ep, DAT_CLOSE_ABRUPT_FLAG);
		if (i % 8 == 7)
			dat_ep_disconnect(c->p->ep, DAT_CLOSE_ABRUPT_FLAG);
		dat_ep_reset(c->a->ep);
		dat_ep_reset(c->p->ep);
		kd_drain(c->a->conn_evd);
		kd_drain(c->p->conn_evd);
		schedule_timeout_interruptible(1);
	}
	complete(&c->done);
	return 0;
}

static bool has_churned(void *data)
{
	return READ_ONCE(((struct churn *)data)->rounds) > 10;
}

static void N6_while_connections_come_and_go(struct kunit *test)
{
	struct churn *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct objects objects = { .n = 0 };

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->a = kd_open_second(test);
	c->p = kd_open_second(test);
	c->port = kd_port();
	kd_setup(c->a, NULL);
	kd_setup(c->p, NULL);
	kd_psp(c->p, c->port, DAT_PSP_CONSUMER_FLAG);
	init_completion(&c->done);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(churn_thread, c,
						    "kd-churn")));
	/*
	 * With two slow CPUs siw takes 10 s over a connection that is given up
	 * too soon.
	 */
	if (!kd_wait_until(has_churned, c, KD_TIMEOUT_MS))
		KUNIT_EXPECT_TRUE(test, kd_is_iwarp(c->a) &&
				  num_online_cpus() > 1 &&
				  READ_ONCE(c->rounds) > 1);
	kd_unplug(test);
	WRITE_ONCE(c->stop, true);
	wait_for_completion(&c->done);
	KUNIT_EXPECT_NE(test, DAT_SUCCESS,
			dat_ep_connect(c->a->ep, c->a->addr, c->port, 1, 0,
				       NULL, 0, 0));
	expect_catastrophe(c->a);
	expect_catastrophe(c->p);
	td_free_side(c->a, &objects);
}

/* ---- While a call waits for the device ------------------------------------ */

#define PROMPT_MS	9000	/* a registration may take 10 s */

/*
 * A registration that the device does not complete
 * @post: the device's operation, put back before the device leaves
 */
static struct {
	typeof_member(struct ib_device, ops.post_send) post;
	struct kd_side *side;
	DAT_RETURN ret;
	bool posted;
	struct completion done;
} stuck;

static int swallow(struct ib_qp *qp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad)
{
	if (qp->qp_type != IB_QPT_RC || wr->opcode != IB_WR_REG_MR)
		return stuck.post(qp, wr, bad);
	WRITE_ONCE(stuck.posted, true);
	kd_wake();
	return 0;
}

static bool is_stuck(void *unused)
{
	return READ_ONCE(stuck.posted);
}

static int register_thread(void *unused)
{
	DAT_REGION_DESCRIPTION region = { .for_va = stuck.side->buf->va };
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lc;
	DAT_RMR_CONTEXT rc;

	stuck.ret = dat_lmr_kcreate(stuck.side->ia, DAT_MEM_TYPE_VIRTUAL, region,
				    PAGE_SIZE, stuck.side->pz, DAT_MEM_PRIV_ALL_FLAG,
				    DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &lmr,
				    &lc, &rc, NULL, NULL);
	complete(&stuck.done);
	return 0;
}

/* dat_lmr_kcreate() keeps the device, but not for as long as it would wait. */
static void N6_while_registering(struct kunit *test)
{
	struct ib_device *dev;
	ktime_t start;

	stuck.side = kd_open_second(test);
	kd_setup(stuck.side, NULL);
	stuck.posted = false;
	init_completion(&stuck.done);
	dev = kd_test_device(test, stuck.side->name);
	stuck.post = dev->ops.post_send;
	WRITE_ONCE(dev->ops.post_send, swallow);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(register_thread, NULL,
						    "kd-register")));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_stuck, NULL, KD_TIMEOUT_MS));
	WRITE_ONCE(dev->ops.post_send, stuck.post);
	start = ktime_get();
	kd_unplug(test);
	KUNIT_EXPECT_LT(test, ktime_ms_delta(ktime_get(), start), PROMPT_MS);
	wait_for_completion(&stuck.done);
	KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(stuck.ret),
			(u32)DAT_INSUFFICIENT_RESOURCES);
	expect_catastrophe(stuck.side);
}

/* ---- Every call, and every state ----------------------------------------- */

static void N6_calls_afterwards(struct kunit *test)
{
	struct kd_side *a = kd_open_second(test), *p = kd_open_second(test);
	struct objects objects = { .n = 0 };
	struct memory m;
	int i;

	kd_setup(a, NULL);
	kd_setup(p, &(struct kd_opts) { .srq_len = 16 });
	for (i = 0; i < 4; i++)
		kd_recv(p, i * 64, 64, i);
	kd_connect_pair(a, p);
	td_make_memory(a, &m);
	kd_unplug(test);
	kd_expect_broken(a);
	kd_expect_broken(p);
	td_calls_that_need_the_device(a);
	td_calls_that_post(a, &m);
	td_calls_without_a_device(a, &m);
	td_calls_of_an_srq(p);
	td_add_object(&objects, m.fmr);
	td_add_object(&objects, m.rmr);
	td_free_side(a, &objects);
	objects.n = 0;
	td_free_side(p, &objects);
}

static void N6_idle(struct kunit *test)
{
	struct kd_side *bare = kd_open_second(test), *full = kd_open_second(test);
	struct objects objects = { .n = 0 };

	kd_setup(full, &(struct kd_opts) { .srq_len = 16 });
	kd_unplug(test);
	expect_catastrophe(bare);
	kd_expect_broken(full);
	expect_catastrophe(full);
	td_free_side(bare, &objects);
	td_free_side(full, &objects);
	/* Remove the device once more, with nothing open. */
	kd_plug(test);
	kd_unplug(test);
}

/*
 * Endpoints in all states at the same time, except COMPLETION_PENDING, where
 * the driver would still be called. Those that are connected, or might yet be,
 * get an event; of a tentative connection the other Endpoint does.
 */
static void N6_every_state(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	struct ep_stage *stage[EP_REACHABLE] = { };
	DAT_EVENT event = { };
	int reach;

	for (reach = 0; reach < EP_REACHABLE; reach++)
		if (reach != EP_COMPLETION_PENDING)
			stage[reach] = ep_stage_enter(test, d->ia, reach);
	kd_unplug(test);
	for (reach = 0; reach < EP_REACHABLE; reach++) {
		if (!stage[reach])
			continue;
		if (reach != EP_DISCONNECTED)
			kd_expect_event(test, stage[reach]->side->conn_evd,
					DAT_CONNECTION_EVENT_BROKEN, &event);
		kd_expect_no_event(test, stage[reach]->side->conn_evd);
		expect_catastrophe(stage[reach]->side);
		ep_stage_leave(stage[reach]);
	}
}

static struct kunit_case removal_cases[] = {
	KUNIT_CASE_PARAM(N6_traffic, kd_gen_second),
	KUNIT_CASE_PARAM(N6_traffic_of_srqs, kd_gen_second),
	KUNIT_CASE_PARAM(N6_traffic_with_upcalls_in_process_context,
			 kd_gen_second),
	KUNIT_CASE_PARAM(N6_device_comes_back, kd_gen_second),
	KUNIT_CASE_PARAM(N6_does_not_wait_for_an_upcall, kd_gen_second),
	KUNIT_CASE_PARAM(N6_while_connecting, kd_gen_second),
	KUNIT_CASE_PARAM(N6_while_connections_come_and_go, kd_gen_second),
	KUNIT_CASE_PARAM(N6_while_registering, kd_gen_second),
	KUNIT_CASE_PARAM(N6_calls_afterwards, kd_gen_second),
	KUNIT_CASE_PARAM(N6_idle, kd_gen_second),
	KUNIT_CASE_PARAM(N6_every_state, kd_gen_second),
	{}
};

static struct kunit_suite removal_suite = {
	.name = "kdapl-removal",
	.init = kd_plug_init,
	.test_cases = removal_cases,
};

kunit_test_suites(&removal_suite, &close_suite);

MODULE_DESCRIPTION("KUnit suite of kdapl.ko: devices and IAs that go away");
MODULE_LICENSE("Dual BSD/GPL");
