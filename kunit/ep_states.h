/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Endpoints in every state that can be reached, for tests that want them all.
 *
 * COMPLETION_PENDING is held by a device that delays the QP of the active side,
 * DISCONNECT_PENDING by a peer without receives. iWARP knows neither.
 */
#ifndef KDAPL_KUNIT_EP_STATES_H
#define KDAPL_KUNIT_EP_STATES_H

#include <linux/completion.h>
#include <rdma/ib_verbs.h>
#include "fixture.h"

enum ep_reach {
	EP_UNCONNECTED,
	EP_RESERVED,
	EP_PASSIVE_PENDING,
	EP_TENTATIVE_PENDING,
	EP_ACTIVE_PENDING,
	EP_COMPLETION_PENDING,
	EP_CONNECTED,
	EP_DISCONNECT_PENDING,
	EP_DISCONNECTED,
	EP_REACHABLE
};

static const DAT_EP_STATE ep_reach_state[] = {
	[EP_UNCONNECTED] = DAT_EP_STATE_UNCONNECTED,
	[EP_RESERVED] = DAT_EP_STATE_RESERVED,
	[EP_PASSIVE_PENDING] = DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
	[EP_TENTATIVE_PENDING] = DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
	[EP_ACTIVE_PENDING] = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
	[EP_COMPLETION_PENDING] = DAT_EP_STATE_COMPLETION_PENDING,
	[EP_CONNECTED] = DAT_EP_STATE_CONNECTED,
	[EP_DISCONNECT_PENDING] = DAT_EP_STATE_DISCONNECT_PENDING,
	[EP_DISCONNECTED] = DAT_EP_STATE_DISCONNECTED,
};

/*
 * struct ep_stage - an EP in some state, and what keeps it there
 * @ep: the EP, of @side
 * @side: whose objects may be used with it
 */
struct ep_stage {
	struct kunit *test;
	struct kd_side *in;
	struct kd_side *out;
	struct kd_side *side;
	DAT_EP_HANDLE ep;
	struct ib_device *held;
};

static inline DAT_EP_STATE ep_state(struct kunit *test, DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state = -1;

	KD_EXPECT_OK(test, dat_ep_get_status(ep, &state, NULL, NULL));
	return state;
}

/* ---- A device whose second QP does not become ready to receive ----------- */

static struct {
	int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			 struct ib_udata *udata);
	struct completion go;
	atomic_t ready;
} ep_hold;

static inline int ep_hold_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr,
				    int mask, struct ib_udata *udata)
{
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RTR &&
	    atomic_inc_return(&ep_hold.ready) == 2)
		wait_for_completion_timeout(&ep_hold.go, 20 * HZ);
	return ep_hold.modify_qp(qp, attr, mask, udata);
}

static inline void ep_hold_release(void *data)
{
	struct ib_device *dev = data;

	complete_all(&ep_hold.go);
	dev->ops.modify_qp = ep_hold.modify_qp;
	ib_device_put(dev);
}

static inline void ep_hold_device(struct ep_stage *stage)
{
	struct ib_device *dev;
	char name[] = "xxx0";

	memcpy(name, stage->in->name, 4);
	dev = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
	KUNIT_ASSERT_NOT_NULL(stage->test, dev);
	init_completion(&ep_hold.go);
	atomic_set(&ep_hold.ready, 0);
	ep_hold.modify_qp = dev->ops.modify_qp;
	dev->ops.modify_qp = ep_hold_modify_qp;
	stage->held = dev;
	KUNIT_ASSERT_EQ(stage->test, 0,
			kunit_add_action_or_reset(stage->test, ep_hold_release,
						  dev));
}

/* ---- The states ---------------------------------------------------------- */

static inline void ep_enter_tentative(struct ep_stage *s)
{
	DAT_CR_PARAM param = { };
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	kd_psp(s->in, port, DAT_PSP_PROVIDER_FLAG);
	kd_connect_start(s->out, s->in, port);
	cr = kd_expect_cr(s->in);
	KD_ASSERT_OK(s->test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	s->ep = param.local_ep_handle;
}

static inline void ep_enter_completion(struct ep_stage *s)
{
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	ep_hold_device(s);
	kd_psp(s->in, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(s->out, s->in, port);
	cr = kd_expect_cr(s->in);
	KD_ASSERT_OK(s->test, dat_cr_accept(cr, s->in->ep, 0, NULL));
}

static inline void ep_enter_reserved(struct ep_stage *s, bool requested)
{
	DAT_RSP_HANDLE rsp = NULL;
	u16 port = kd_port();

	KD_ASSERT_OK(s->test, dat_rsp_create(s->in->ia, port, s->in->ep,
					     s->in->cr_evd, &rsp));
	if (!requested)
		return;
	kd_connect_start(s->out, s->in, port);
	kd_expect_cr(s->in);
}

static inline void ep_enter_active(struct ep_stage *s)
{
	u16 port = kd_port();

	kd_psp(s->in, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(s->out, s->in, port);
	kd_expect_cr(s->in);
	s->side = s->out;
	s->ep = s->out->ep;
}

static inline void ep_enter_connected(struct ep_stage *s, enum ep_reach reach)
{
	kd_connect_pair(s->out, s->in);
	if (reach == EP_DISCONNECTED) {
		kd_disconnect(s->out, s->in);
	} else if (reach == EP_DISCONNECT_PENDING) {
		/* Waits for a receive. */
		kd_send(s->in, 0, 64, 1);
		KD_ASSERT_OK(s->test,
			     dat_ep_disconnect(s->ep, DAT_CLOSE_GRACEFUL_FLAG));
	}
}

/* Returns NULL if the device cannot hold that state. */
static inline struct ep_stage *ep_stage_enter(struct kunit *test,
					      const char *ia,
					      enum ep_reach reach)
{
	struct ep_stage *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->test = test;
	if (strstarts(ia, "siw") && (reach == EP_COMPLETION_PENDING ||
				     reach == EP_DISCONNECT_PENDING))
		return NULL;
	s->in = kd_open(test, ia);
	s->out = kd_open(test, ia);
	kd_setup(s->in, NULL);
	kd_setup(s->out, NULL);
	s->side = s->in;
	s->ep = s->in->ep;

	if (reach == EP_RESERVED || reach == EP_PASSIVE_PENDING)
		ep_enter_reserved(s, reach == EP_PASSIVE_PENDING);
	else if (reach == EP_TENTATIVE_PENDING)
		ep_enter_tentative(s);
	else if (reach == EP_ACTIVE_PENDING)
		ep_enter_active(s);
	else if (reach == EP_COMPLETION_PENDING)
		ep_enter_completion(s);
	else if (reach != EP_UNCONNECTED)
		ep_enter_connected(s, reach);
	KUNIT_ASSERT_EQ(test, (u32)ep_state(test, s->ep),
			(u32)ep_reach_state[reach]);
	return s;
}

static inline void ep_stage_leave(struct ep_stage *s)
{
	if (s->held)
		kunit_release_action(s->test, ep_hold_release, s->held);
	/*
	 * Which answers a pending request. Over iWARP the asking side cannot be
	 * closed before there is an answer, or the driver's time is up.
	 */
	kd_close(s->in);
	kd_close(s->out);
}

#endif /* KDAPL_KUNIT_EP_STATES_H */
