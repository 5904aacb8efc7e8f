// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Something fails in the life of a connection (contract I4, N3): in a call, in
 * an event handler, or in a work item. A call or an event reports the failure;
 * each Endpoint that was to be connected gets one final event; in the end
 * everything is as before.
 *
 * On the debug kernel the first, second, ... allocation in kdapl.ko's handlers
 * and work items fails, on both kernels the first, second, ... operation of the
 * device, until a life passes without a failure.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include "ways.h"
#include "windows.h"
#include "world.h"

#define MOST_FAULTS	100
/* How long to wait for a peer, which may never be told of a failure. */
#define PATIENCE_MS	1500

enum passive_ep { WITH_EP, WITH_NEW_EP, WITH_RESERVED_EP };

static const char * const passive_name[] = {
	"consumer's Endpoint", "provider's Endpoint", "reserved Endpoint"
};

/*
 * struct life - the life of a connection
 * @passive: where the passive Endpoint comes from
 * @p_ep: the passive Endpoint, once known
 * @asked: dat_ep_connect() has succeeded
 * @accepted: dat_cr_accept() has succeeded
 * @whole: the life passed without a failure
 */
struct life {
	struct world *w;
	enum passive_ep passive;
	DAT_RSP_HANDLE rsp;
	DAT_EP_HANDLE p_ep;
	bool asked;
	bool accepted;
	bool whole;
};

/*
 * Return whether a call succeeded. The only error it may return is
 * DAT_INSUFFICIENT_RESOURCES.
 */
static bool made(struct life *l, const char *what, DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		return true;
	KUNIT_EXPECT_EQ_MSG(l->w->test, (u32)DAT_GET_TYPE(ret),
			    (u32)DAT_INSUFFICIENT_RESOURCES, "%s: %s", what,
			    kd_strerror(ret));
	return false;
}

static bool asked_or_ended(void *data)
{
	struct world *w = ((struct life *)data)->w;
	DAT_EVENT event;

	if (!w->cr && dat_evd_dequeue(w->p->cr_evd, &event) == DAT_SUCCESS)
		w->cr = event.event_data.cr_arrival_event_data.cr_handle;
	return w->cr || kdf_state_of(w->a_spare) == DAT_EP_STATE_DISCONNECTED;
}

static bool answered(void *data)
{
	struct life *l = data;
	DAT_EP_STATE a = kdf_state_of(l->w->a_spare), p = kdf_state_of(l->p_ep);

	return a == DAT_EP_STATE_DISCONNECTED ||
	       p == DAT_EP_STATE_DISCONNECTED ||
	       (a == DAT_EP_STATE_CONNECTED && p == DAT_EP_STATE_CONNECTED);
}

/* Give the Endpoint that the provider made a PZ and EVDs. */
static void complete_ep(struct life *l)
{
	struct kd_side *p = l->w->p;
	DAT_CR_PARAM cr = { };
	DAT_EP_PARAM param = {
		.pz_handle = p->pz, .recv_evd_handle = p->recv_evd,
		.request_evd_handle = p->req_evd,
		.connect_evd_handle = p->conn_evd,
	};

	KD_EXPECT_OK(l->w->test, dat_cr_query(l->w->cr, DAT_CR_FIELD_ALL, &cr));
	l->p_ep = cr.local_ep_handle;
	KD_EXPECT_OK(l->w->test,
		     dat_ep_modify(l->p_ep, DAT_EP_FIELD_PZ_HANDLE |
				   DAT_EP_FIELD_RECV_EVD_HANDLE |
				   DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				   DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
}

static void accept(struct life *l)
{
	struct world *w = l->w;

	if (l->passive == WITH_NEW_EP)
		complete_ep(l);
	l->accepted = made(l, "dat_cr_accept",
			   dat_cr_accept(w->cr, l->passive == WITH_EP ?
					 l->p_ep : NULL, 5, "hello"));
	if (!l->accepted) {
		KD_EXPECT_OK(w->test, dat_cr_reject(w->cr, 0, NULL));
		/* Rejecting the request freed the provider's Endpoint. */
		if (l->passive == WITH_NEW_EP)
			l->p_ep = NULL;
	}
	w->cr = NULL;
}

/* Send one message from the active to the passive side. */
static void talk(struct life *l)
{
	struct world *w = l->w;
	DAT_EVENT sent = { }, received = { };

	if (!made(l, "dat_ep_post_send",
		  dat_ep_post_send(w->a_spare, 1, &w->seg, kd_cookie(7), 0)))
		return;
	if (!kd_wait_event(w->a->req_evd, &sent, KD_TIMEOUT_MS) ||
	    kdf_status_of(&sent) != DAT_DTO_SUCCESS ||
	    !kd_wait_event(w->p->recv_evd, &received, PATIENCE_MS))
		return;
	l->whole = kdf_status_of(&received) == DAT_DTO_SUCCESS;
}

static void live(struct life *l)
{
	struct world *w = l->w;
	u16 port = l->passive == WITH_EP ? w->port :
		   l->passive == WITH_NEW_EP ? w->other_port : w->free_port;

	l->asked = made(l, "dat_ep_connect", kdf_connect_to(w, port));
	if (!l->asked || !kd_wait_until(asked_or_ended, l, PATIENCE_MS) ||
	    !w->cr)
		return;
	accept(l);
	if (!l->accepted || !kd_wait_until(answered, l, PATIENCE_MS) ||
	    kdf_state_of(w->a_spare) != DAT_EP_STATE_CONNECTED ||
	    kdf_state_of(l->p_ep) != DAT_EP_STATE_CONNECTED)
		return;
	if (l->passive == WITH_EP)
		talk(l);
	else
		l->whole = true;
}

static void begin_life(struct life *l)
{
	struct world *w = l->w;
	DAT_COUNT receives;

	l->p_ep = l->passive == WITH_NEW_EP ? NULL : w->p_spare;
	if (l->passive == WITH_RESERVED_EP) {
		KD_ASSERT_OK(w->test,
			     dat_rsp_create(w->p->ia, w->free_port, l->p_ep,
					    w->p->cr_evd, &l->rsp));
	} else if (l->passive == WITH_EP) {
		KD_ASSERT_OK(w->test, dat_ep_recv_query(l->p_ep, &receives,
							NULL));
		if (!receives)
			KD_ASSERT_OK(w->test,
				     dat_ep_post_recv(l->p_ep, 1, &w->sink,
						      kd_cookie(8), 0));
	}
}

/*
 * Dequeue all connection events. Return how many of them are final ones of @ep.
 */
static unsigned int final_events(struct kd_side *s, DAT_EP_HANDLE ep)
{
	DAT_CONNECTION_EVENT_DATA *data;
	unsigned int n = 0;
	DAT_EVENT event;

	while (dat_evd_dequeue(s->conn_evd, &event) == DAT_SUCCESS) {
		data = &event.event_data.connect_event_data;
		if (data->ep_handle == ep && event.event_number !=
		    DAT_CONNECTION_EVENT_ESTABLISHED)
			n++;
	}
	return n;
}

static void end_life(struct life *l, unsigned int nth)
{
	struct world *w = l->w;
	struct kunit *test = w->test;

	if (l->rsp)
		KD_EXPECT_OK(test, dat_rsp_free(l->rsp));
	l->rsp = NULL;
	kdf_drop_requests(w);
	kdf_unconnect(w, w->a_spare);
	KUNIT_EXPECT_EQ_MSG(test, final_events(w->a, w->a_spare), l->asked,
			    "%s: %u", passive_name[l->passive], nth);
	if (l->p_ep) {
		kdf_unconnect(w, l->p_ep);
		KUNIT_EXPECT_EQ_MSG(test, final_events(w->p, l->p_ep),
				    l->accepted, "%s: %u",
				    passive_name[l->passive], nth);
	}
	if (l->passive == WITH_NEW_EP && l->accepted)
		KD_EXPECT_OK(test, dat_ep_free(l->p_ep));
	kdf_drop_requests(w);
	kdf_drain_side(w->a);
	kdf_drain_side(w->p);
}

static void arm_windows(const struct kdf_way *way, unsigned int nth)
{
	kdf_fail_in_windows(nth);
}

static void arm_operation(const struct kdf_way *way, unsigned int nth)
{
	kdf_fail_operation(nth, way->err, NULL);
}

static const struct kdf_way in_windows = {
	"allocation", -ENOMEM, arm_windows, kdf_windows_left
};

static const struct kdf_way in_device[] = {
	{ "operation", -ENOMEM, arm_operation, kdf_operations_left },
	{ "operation", -EINVAL, arm_operation, kdf_operations_left },
};

static void walk_life(struct world *w, enum passive_ep passive,
		      const struct kdf_way *way)
{
	struct life l = { .w = w, .passive = passive };
	struct holdings have;
	bool fired = true;
	unsigned int nth, broken = 0;

	kdf_count_holdings(&have);
	/*
	 * A late request of the life before may spoil a life without a failure,
	 * so go on until one is whole.
	 */
	for (nth = 1; (fired || !l.whole) && nth < MOST_FAULTS; nth++) {
		l.asked = false;
		l.accepted = false;
		l.whole = false;
		begin_life(&l);
		way->arm(way, nth);
		live(&l);
		fired = !way->left();
		end_life(&l, nth);
		broken += !l.whole;
	}
	kunit_info(w->test, "%s: %u of %u", passive_name[passive], broken, nth);
	KUNIT_EXPECT_LT(w->test, nth, MOST_FAULTS);
	KUNIT_EXPECT_GT(w->test, broken, 0);
	kdf_expect_holdings(w->test, &have, passive_name[passive]);
}

static void N3_allocations_fail_behind(struct kunit *test)
{
	struct world *w;
	int i;

	if (!KDF_HAVE_WINDOWS)
		kunit_skip(test, "no fault injection in this kernel");
	w = kdf_make_world(test);
	kdf_open_windows(test, false);
	for (i = 0; i < ARRAY_SIZE(passive_name); i++)
		walk_life(w, i, &in_windows);
	kdf_end_world(w);
}

static void N3_operations_fail_behind(struct kunit *test)
{
	struct world *w = kdf_make_world(test);
	int i, j;

	for (i = 0; i < ARRAY_SIZE(passive_name); i++)
		for (j = 0; j < ARRAY_SIZE(in_device); j++)
			walk_life(w, i, &in_device[j]);
	kdf_end_world(w);
}

/* ---- Memory -------------------------------------------------------------- */

/*
 * Register memory that the peer may reach, the first in its PZ: on iWARP half of
 * that happens in work items.
 */
static DAT_RETURN register_memory(struct world *w)
{
	DAT_REGION_DESCRIPTION region = { .for_va = w->a->buf->va };
	DAT_LMR_HANDLE lmr = NULL;
	DAT_PZ_HANDLE pz = NULL;
	DAT_LMR_CONTEXT lc;
	DAT_RMR_CONTEXT rc;
	DAT_RETURN ret;

	ret = dat_pz_create(w->a->ia, &pz);
	if (ret != DAT_SUCCESS)
		return ret;
	ret = dat_lmr_kcreate(w->a->ia, DAT_MEM_TYPE_VIRTUAL, region, 8192, pz,
			      DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			      DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, &lc, &rc, NULL,
			      NULL);
	if (ret == DAT_SUCCESS)
		KD_EXPECT_OK(w->test, dat_lmr_free(lmr));
	KD_EXPECT_OK(w->test, dat_pz_free(pz));
	return ret;
}

static void walk_memory(struct world *w, const struct kdf_way *way)
{
	struct life l = { .w = w };
	struct holdings have;
	bool fired = true;
	unsigned int nth, step, failed = 0;
	DAT_RETURN ret;

	kdf_count_holdings(&have);
	for (nth = 1; fired && nth < 10 * MOST_FAULTS; nth += step) {
		/*
		 * Registration allocates often; skip ever more of these
		 * allocations.
		 */
		step = way == &in_windows ? 1 + nth / 4 : 1;
		way->arm(way, nth);
		ret = register_memory(w);
		fired = !way->left();
		if (!made(&l, "dat_lmr_kcreate", ret)) {
			KUNIT_EXPECT_TRUE(w->test, fired);
			failed++;
		}
	}
	KUNIT_EXPECT_FALSE(w->test, fired);
	KUNIT_EXPECT_GT(w->test, failed, 0);
	kdf_expect_holdings(w->test, &have, "memory");
}

static void L2_registration_fails_behind(struct kunit *test)
{
	struct world *w = kdf_make_world(test);

	walk_memory(w, &in_device[0]);
	/* Elsewhere the call joins a queue pair to itself, in its own context. */
	if (KDF_HAVE_WINDOWS && kd_is_iwarp(w->a)) {
		/*
		 * Work items do not fail: a disconnect that fails costs
		 * seconds, until the CMs give up.
		 */
		kdf_open_windows(test, true);
		walk_memory(w, &in_windows);
	}
	kdf_end_world(w);
}

static bool can_bind(void *data)
{
	struct life *l = data;

	return made(l, "bind", l->passive == WITH_EP ? kdf_bind_fmr(l->w) :
						       kdf_bind_rmr(l->w));
}

/*
 * A bind that is flushed leaves an LMR or RMR in need of a new MR. The device
 * fails to allocate it once, and the next attempt succeeds.
 */
static void L4_renewal_fails(struct kunit *test)
{
	struct world *w = kdf_make_world(test);
	struct life l = { .w = w };
	int i;

	for (i = 0; i < 2; i++) {
		l.passive = i ? WITH_NEW_EP : WITH_EP;
		kdf_need_pair(w);
		if (i)
			kdf_need_rmr(w);
		else
			kdf_need_fmr(w);
		KD_EXPECT_OK(test, dat_ep_disconnect(w->a->ep,
						     DAT_CLOSE_ABRUPT_FLAG));
		kd_expect_event(test, w->a->conn_evd,
				DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
		kd_expect_event(test, w->p->conn_evd,
				DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
		/* This thread maps the memory, a work item renews the MR. */
		kdf_fail_operation_of_others(1, -ENOMEM);
		KUNIT_EXPECT_TRUE(test, can_bind(&l));
		KUNIT_EXPECT_TRUE(test, kd_wait_until(kdf_no_operation_left, NULL,
						      KD_TIMEOUT_MS));
		kdf_unconnect_pair(w);
		kdf_need_pair(w);
		KUNIT_EXPECT_TRUE(test, kd_wait_until(can_bind, &l,
						      KD_TIMEOUT_MS));
		kdf_end_post(w);
		if (i)
			kdf_free_rmr(w);
		else
			kdf_free_fmr(w);
	}
	kdf_end_world(w);
}

static struct kunit_case fault_work_cases[] = {
	KUNIT_CASE_PARAM(N3_allocations_fail_behind, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_operations_fail_behind, kd_gen_ia),
	KUNIT_CASE_PARAM(L2_registration_fails_behind, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_renewal_fails, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-fault-work", fault_work_cases, "something fails behind the calls");
