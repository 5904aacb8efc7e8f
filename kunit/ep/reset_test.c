// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dat_ep_reset() beside the end of a connection: it gives the memory of receives back, so
 * it does not return before the queue pair is gone (contract C5, L6).
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include "ep.h"
#include "handle.h"
#include "ep_states.h"
#include "probe.h"

/* Has the Endpoint with this handle a queue pair? */
static bool has_qp(DAT_EP_HANDLE handle)
{
	struct kdapl_ep *ep;
	bool has;

	rcu_read_lock();
	ep = kdapl_find(handle, DAT_HANDLE_TYPE_EP);
	has = ep && READ_ONCE(ep->qp);
	rcu_read_unlock();
	return has;
}

static void expect_down(struct kd_side *s)
{
	KUNIT_ASSERT_EQ(s->test, (int)kd_state(s), (int)DAT_EP_STATE_UNCONNECTED);
	KUNIT_ASSERT_FALSE(s->test, has_qp(s->ep));
}

static void connect_again(struct kd_pair *c)
{
	kd_connect_pair(c->a, c->p);
	kd_ping(c->a, c->p);
	kd_disconnect(c->a, c->p);
}

/* ---- One order of events ----------------------------------------------------- */

static void disconnect(void *ep)
{
	dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG);
}

/* The connection ends between the first look of dat_ep_reset() at the state and its lock. */
static void C5_reset_of_a_live_connection(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_RETURN ret;

	kd_connect_pair(c.a, c.p);
	kd_recv(c.a, 0, 64, 1);
	kd_at_lock(test, KD_TAKING, "&ep->lock", 1, disconnect, c.a->ep);
	ret = dat_ep_reset(c.a->ep);
	KUNIT_ASSERT_EQ(test, kd_left_lock(), 1);
	KD_EXPECT_OK(test, ret);
	expect_down(c.a);
	kd_expect_dto(test, c.a->recv_evd, 1, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_event(test, c.a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	kd_expect_event(test, c.p->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	KD_ASSERT_OK(test, dat_ep_reset(c.p->ep));
	connect_again(&c);
}

/* ---- Any order ---------------------------------------------------------------- */

#define ROUNDS		40
#define SENDS		4

/*
 * struct poller - a thread that resets an Endpoint until it can
 * @go: a round begins
 * @reset: the Endpoint was reset
 * @stop: the thread ends
 * @wrong: an answer other than that the state does not allow it, or success
 */
struct poller {
	DAT_EP_HANDLE ep;
	struct completion go;
	struct completion reset;
	struct completion done;
	bool stop;
	DAT_RETURN wrong;
};

static int poll_thread(void *data)
{
	struct poller *p = data;
	DAT_RETURN ret;

	for (;;) {
		wait_for_completion(&p->go);
		if (READ_ONCE(p->stop))
			break;
		while ((ret = dat_ep_reset(p->ep)) != DAT_SUCCESS) {
			if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE) {
				p->wrong = ret;
				break;
			}
			cond_resched();
		}
		complete(&p->reset);
	}
	complete(&p->done);
	return 0;
}

static void stop_poller(void *data)
{
	struct poller *p = data;

	WRITE_ONCE(p->stop, true);
	complete(&p->go);
	wait_for_completion(&p->done);
}

static struct poller *start_poller(struct kunit *test, DAT_EP_HANDLE ep)
{
	struct poller *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	p->ep = ep;
	init_completion(&p->go);
	init_completion(&p->reset);
	init_completion(&p->done);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(poll_thread, p, "kd-reset")));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, stop_poller, p));
	return p;
}

/*
 * A side with Sends for which the peer has no receives disconnects gracefully, and is
 * reset again and again; meanwhile the peer leaves.
 */
static void C5_reset_while_the_peer_leaves(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct poller *poller;
	unsigned int i, n;

	if (kd_is_iwarp(c.a))
		kunit_skip(test, "a Send does not wait for a receive");
	poller = start_poller(test, c.a->ep);
	for (i = 0; i < ROUNDS; i++) {
		kd_connect_pair(c.a, c.p);
		for (n = 0; n < SENDS; n++)
			kd_send(c.a, 0, 64, n);
		KD_ASSERT_OK(test, dat_ep_disconnect(c.a->ep, DAT_CLOSE_GRACEFUL_FLAG));
		complete(&poller->go);
		KD_ASSERT_OK(test, dat_ep_disconnect(c.p->ep, DAT_CLOSE_ABRUPT_FLAG));
		wait_for_completion(&poller->reset);
		KUNIT_ASSERT_EQ_MSG(test, poller->wrong, 0, "%s",
				    kd_strerror(poller->wrong));
		KUNIT_ASSERT_FALSE(test, has_qp(c.a->ep));
		for (n = 0; n < SENDS; n++)
			kd_expect_dto(test, c.a->req_evd, n, DAT_DTO_ERR_FLUSHED, NULL);
		kd_expect_event(test, c.a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
				NULL);
		kd_expect_event(test, c.p->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
				NULL);
		KD_ASSERT_OK(test, dat_ep_reset(c.p->ep));
	}
	connect_again(&c);
}

static struct kunit_case reset_cases[] = {
	KUNIT_CASE_PARAM(C5_reset_of_a_live_connection, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_reset_while_the_peer_leaves, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-reset", reset_cases, "dat_ep_reset() beside the end of a connection");
KDAPL_IMPORT_TEST;
