// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs that end by themselves (contract N7): however little the device says
 * about it, the connection is reported to be over, to both sides.
 */
#include <linux/module.h>
#include "../sim/kdapl_sim.h"
#include "conn.h"
#include "device.h"
#include "ep.h"
#include "hca.h"
#include "ia.h"
#include "inside.h"
#include "fmr_fixture.h"

/* ---- QPs of the simulated adapters ---------------------------------------- */

static struct kd_hook device;
static u32 last_qpn;

static int note_qpn(struct ib_qp *qp, struct ib_qp_init_attr *attr,
		    struct ib_udata *udata)
{
	int err = device.real.create_qp(qp, attr, udata);

	if (!err)
		WRITE_ONCE(last_qpn, qp->qp_num);
	return err;
}

/*
 * struct death - how a QP ends
 * @how: see kdapl_sim_kill_qp()
 * @lwqe: value of that switch
 * @srq_len: of an SRQ, if the side has one
 * @recv: a receive is posted before
 * @send: a Send is posted afterwards
 */
struct death {
	const char *name;
	unsigned int how;
	u32 lwqe;
	DAT_COUNT srq_len;
	bool recv;
	bool send;
};

static const struct death deaths[] = {
	{ "with an event", .how = KDAPL_SIM_KILL_EVENT, .recv = true },
	{ "with an event and no completion",
	  .how = KDAPL_SIM_KILL_EVENT | KDAPL_SIM_KILL_MUTE, .recv = true },
	{ "with an event, idle", .how = KDAPL_SIM_KILL_EVENT },
	{ "a receive is flushed", .recv = true },
	{ "the next Send is flushed", .send = true },
	{ "SRQ: the next Send is flushed", .srq_len = 4, .lwqe = 1, .recv = true,
	  .send = true },
	{ "SRQ: the last receive", .srq_len = 4, .recv = true },
	{ "SRQ: the last receive, late", .srq_len = 4, .lwqe = 3, .recv = true },
};

static KD_GENERATOR(gen_death)
{
	static const char * const ias[] = { "sim0/1", "simw0/1" };
	static struct kd_param params[ARRAY_SIZE(ias) * ARRAY_SIZE(deaths)];
	struct kd_param *next = prev ? (struct kd_param *)prev + 1 : params;
	size_t i = next - params;

	if (i == ARRAY_SIZE(params))
		return NULL;
	next->ia = ias[i % ARRAY_SIZE(ias)];
	next->choice = i / ARRAY_SIZE(ias);
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %s", next->ia,
		 deaths[next->choice].name);
	return next;
}

static void reset_switches(void *dev)
{
	kdapl_sim_reset(dev);
}

/*
 * On iWARP the device reports the end of the connection with that of the QP, which
 * cannot be told from an end that the peer has wanted.
 */
static void expect_over(struct kd_side *s)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(s->test,
			      kd_wait_event(s->conn_evd, &event, KD_TIMEOUT_MS),
			      "the connection is dead and no event says so");
	if (!kd_is_iwarp(s) ||
	    event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
		KUNIT_EXPECT_EQ(s->test, (u32)event.event_number,
				(u32)DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_EQ(s->test, (u32)kd_state(s),
			(u32)DAT_EP_STATE_DISCONNECTED);
	kd_expect_no_event(s->test, s->conn_evd);
}

static void N7_qp_ends_by_itself(struct kunit *test)
{
	const struct death *d = &deaths[((const struct kd_param *)
					 test->param_value)->choice];
	struct kd_side *a = kd_open_param(test), *p = kd_open_param(test);
	struct ib_device *dev = kd_hook(test, p->name, &device);

	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, reset_switches,
							   dev));
	kd_setup(a, NULL);
	kd_setup(p, &(struct kd_opts) { .srq_len = d->srq_len });
	kdapl_sim_set(dev, KDAPL_SIM_lwqe, d->lwqe);
	kdapl_sim_set(dev, KDAPL_SIM_lwqe_ms, 50);
	dev->ops.create_qp = note_qpn;
	kd_connect_pair(a, p);
	kd_ping(a, p);
	if (d->recv)
		kd_recv(p, 0, 64, 1);
	/* The passive side has made its QP last. */
	KUNIT_ASSERT_EQ(test, 0, kdapl_sim_kill_qp(dev, last_qpn, d->how));
	if (d->send)
		kd_send(p, 0, 64, 2);
	expect_over(p);
	kd_expect_disconnected(a, NULL);
	if (d->send)
		kd_expect_dto(test, p->req_evd, 2, DAT_DTO_ERR_FLUSHED, NULL);
	if (d->recv && !p->srq)
		kd_expect_dto(test, p->recv_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
}

/* ---- A message that finds no receive while a region is bound -------------- */

/*
 * rxe executes requests again that are behind one that is retried, and takes the
 * second registration of a region for an error that ends the QP, of which it says
 * nothing but that all completions are flushed.
 */
static void N7_retry_before_a_bind(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct pages *pages = fmr_make_pages(test);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	DAT_EVENT event;

	kd_send(c.a, 0, 64, 1);
	KD_ASSERT_OK(test, fmr_bind(&c, &f, pages, 2));
	if (kd_is_iwarp(c.a) ||
	    kd_wait_event(c.a->conn_evd, &event, KD_QUIET_MS)) {
		/* iWARP does not wait for a receive. */
		KUNIT_EXPECT_TRUE(test, kd_wait_state(c.a->ep,
						      DAT_EP_STATE_DISCONNECTED));
		KUNIT_EXPECT_TRUE(test, kd_wait_state(c.p->ep,
						      DAT_EP_STATE_DISCONNECTED));
		return;
	}
	/* The connection works. */
	kd_recv(c.p, 0, 64, 3);
	kd_expect_dto(test, c.p->recv_evd, 3, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, c.a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	fmr_expect_op(&c, 2, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS);
	kd_ping(c.p, c.a);
}

/*
 * One timer gives a connection whose QP has died time for an orderly end, and posts what was
 * deferred: that it runs earlier for the one does not break the connection.
 */
static void N7_timer_runs_early(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct ib_event event = { .event = IB_EVENT_QP_LAST_WQE_REACHED };
	struct kdapl_conn *conn;
	struct kdapl_hca *hca;
	struct kdapl_ep *ep;
	unsigned int ms;
	bool seen;

	if (!kd_is_iwarp(c.p))
		kunit_skip(test, "the connection is broken at once");
	kd_connect_pair(c.a, c.p);
	ep = kd_inside(c.p->ep, DAT_HANDLE_TYPE_EP);
	conn = ep->conn;
	event.device = ep->qp->device;
	event.element.qp = ep->qp;
	/* Not every driver tells: that it did is not to be remembered. */
	hca = ep->obj.ia->hca;
	ms = hca->last_wqe_ms;
	seen = hca->last_wqe_seen;
	ep->qp->event_handler(&event, ep->qp->qp_context);
	WRITE_ONCE(hca->last_wqe_ms, ms);
	WRITE_ONCE(hca->last_wqe_seen, seen);
	flush_delayed_work(&conn->timer);
	KUNIT_EXPECT_EQ(test, (u32)kd_state(c.p), (u32)DAT_EP_STATE_CONNECTED);
	kd_disconnect(c.a, c.p);
}

static struct kunit_case ep_died_cases[] = {
	KUNIT_CASE_PARAM(N7_qp_ends_by_itself, gen_death),
	KUNIT_CASE_PARAM(N7_retry_before_a_bind, kd_gen_ia),
	KUNIT_CASE_PARAM(N7_timer_runs_early, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-ep-died", ep_died_cases, "queue pairs that end by themselves");
KDAPL_IMPORT_TEST;
