// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: Endpoints in every state, see ep_states.h.
 */
#include <linux/module.h>
#include <linux/completion.h>
#include <rdma/iw_cm.h>
#include "ep_states.h"

const DAT_EP_STATE ep_reach_state[EP_REACHABLE] = {
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
EXPORT_SYMBOL_GPL(ep_reach_state);

/*
 * Parameters of a case that runs in every state on every device: @choice of
 * struct kd_param is an enum ep_reach.
 */
KD_GENERATOR(ep_gen_scene)
{
	static const char * const names[EP_REACHABLE] = {
		[EP_UNCONNECTED] = "UNCONNECTED",
		[EP_RESERVED] = "RESERVED",
		[EP_PASSIVE_PENDING] = "PASSIVE_PENDING",
		[EP_TENTATIVE_PENDING] = "TENTATIVE_PENDING",
		[EP_ACTIVE_PENDING] = "ACTIVE_PENDING",
		[EP_COMPLETION_PENDING] = "COMPLETION_PENDING",
		[EP_CONNECTED] = "CONNECTED",
		[EP_DISCONNECT_PENDING] = "DISCONNECT_PENDING",
		[EP_DISCONNECTED] = "DISCONNECTED",
	};

	return kd_gen_ia_and(prev, desc, names, EP_REACHABLE);
}
EXPORT_SYMBOL_GPL(ep_gen_scene);

DAT_EP_STATE ep_state(struct kunit *test, DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state = -1;

	KD_EXPECT_OK(test, dat_ep_get_status(ep, &state, NULL, NULL));
	return state;
}
EXPORT_SYMBOL_GPL(ep_state);

/* ---- Devices that leave something undone ---------------------------------- */

static struct {
	int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			 struct ib_udata *udata);
	struct completion go;
	atomic_t ready;
	int (*iw_accept)(struct iw_cm_id *id, struct iw_cm_conn_param *param);
	struct iw_cm_id *id;
	struct iw_cm_conn_param param;
	int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad);
} ep_hold;

/*
 * Keep the second QP, which is the active side's, from becoming ready to
 * receive.
 */
static int ep_hold_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr,
			     int mask, struct ib_udata *udata)
{
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RTR &&
	    atomic_inc_return(&ep_hold.ready) == 2)
		wait_for_completion_timeout(&ep_hold.go, 20 * HZ);
	return ep_hold.modify_qp(qp, attr, mask, udata);
}

/*
 * Put off the first acceptance, as an iWARP adapter may that accepts in the
 * background.
 */
static int ep_hold_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	if (ep_hold.id)
		return ep_hold.iw_accept(id, param);
	ep_hold.id = id;
	ep_hold.param = *param;
	return 0;
}

static void ep_hold_release(void *data)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_ESTABLISHED };
	struct ib_device *dev = data;

	complete_all(&ep_hold.go);
	dev->ops.modify_qp = ep_hold.modify_qp;
	dev->ops.iw_accept = ep_hold.iw_accept;
	if (ep_hold.id) {
		event.status = ep_hold.iw_accept(ep_hold.id, &ep_hold.param);
		/* The call has returned long ago, so an event reports it. */
		if (event.status)
			ep_hold.id->event_handler(ep_hold.id, &event);
	}
}

static void ep_hold_device(struct ep_stage *s)
{
	struct ib_device *dev = kd_test_device(s->test, s->in->name);

	memset(&ep_hold, 0, sizeof(ep_hold));
	init_completion(&ep_hold.go);
	ep_hold.modify_qp = dev->ops.modify_qp;
	ep_hold.iw_accept = dev->ops.iw_accept;
	dev->ops.modify_qp = ep_hold_modify_qp;
	if (dev->ops.iw_accept)
		dev->ops.iw_accept = ep_hold_accept;
	s->held = dev;
	KUNIT_ASSERT_EQ(s->test, 0, kunit_add_action_or_reset(s->test,
							      ep_hold_release,
							      dev));
}

/* Let the connection be made if @s holds it. */
void ep_stage_release(struct ep_stage *s)
{
	if (s->held)
		kunit_release_action(s->test, ep_hold_release, s->held);
	s->held = NULL;
}
EXPORT_SYMBOL_GPL(ep_stage_release);

/* Take a request and never execute it. */
static int ep_idle_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			     const struct ib_send_wr **bad)
{
	return qp->qp_type == IB_QPT_RC ? 0 : ep_hold.post_send(qp, wr, bad);
}

/* Post a request that is outstanding until the connection ends. */
static void ep_post_idle(struct ep_stage *s)
{
	struct ib_device *dev = kd_test_device(s->test, s->in->name);
	DAT_LMR_TRIPLET seg = kd_seg(s->in->buf, 0, 64);
	DAT_RETURN ret;

	/* A passive side gives the device no requests before (N8). */
	if (kd_is_iwarp(s->in))
		kd_ping(s->out, s->in);
	ep_hold.post_send = dev->ops.post_send;
	dev->ops.post_send = ep_idle_post_send;
	ret = dat_ep_post_send(s->in->ep, 1, &seg, kd_cookie(1), 0);
	dev->ops.post_send = ep_hold.post_send;
	KD_ASSERT_OK(s->test, ret);
}

/* ---- The states ---------------------------------------------------------- */

static void ep_enter_tentative(struct ep_stage *s)
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

static void ep_enter_completion(struct ep_stage *s)
{
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	ep_hold_device(s);
	kd_psp(s->in, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(s->out, s->in, port);
	cr = kd_expect_cr(s->in);
	KD_ASSERT_OK(s->test, dat_cr_accept(cr, s->in->ep, 0, NULL));
}

static void ep_enter_reserved(struct ep_stage *s, bool requested)
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

static void ep_enter_active(struct ep_stage *s)
{
	u16 port = kd_port();

	kd_psp(s->in, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(s->out, s->in, port);
	kd_expect_cr(s->in);
	s->side = s->out;
	s->ep = s->out->ep;
}

static void ep_enter_connected(struct ep_stage *s, enum ep_reach reach)
{
	kd_connect_pair(s->out, s->in);
	if (reach == EP_DISCONNECTED) {
		kd_disconnect(s->out, s->in);
	} else if (reach == EP_DISCONNECT_PENDING) {
		ep_post_idle(s);
		KD_ASSERT_OK(s->test,
			     dat_ep_disconnect(s->ep, DAT_CLOSE_GRACEFUL_FLAG));
	}
}

/* Open two sides on an IA, for ep_stage_reach(). */
struct ep_stage *ep_stage_open(struct kunit *test, const char *ia)
{
	struct ep_stage *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->test = test;
	s->in = kd_open(test, ia);
	s->out = kd_open(test, ia);
	kd_setup(s->in, NULL);
	kd_setup(s->out, NULL);
	s->side = s->in;
	s->ep = s->in->ep;
	return s;
}
EXPORT_SYMBOL_GPL(ep_stage_open);

void ep_stage_reach(struct ep_stage *s, enum ep_reach reach)
{
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
	KUNIT_ASSERT_EQ(s->test, (u32)ep_state(s->test, s->ep),
			(u32)ep_reach_state[reach]);
}
EXPORT_SYMBOL_GPL(ep_stage_reach);

struct ep_stage *ep_stage_enter(struct kunit *test, const char *ia,
				enum ep_reach reach)
{
	struct ep_stage *s = ep_stage_open(test, ia);

	ep_stage_reach(s, reach);
	return s;
}
EXPORT_SYMBOL_GPL(ep_stage_enter);

void ep_stage_leave(struct ep_stage *s)
{
	ep_stage_release(s);
	/*
	 * Closing the passive side answers a pending request. Over iWARP the
	 * active side cannot be closed before there is an answer or the
	 * driver's time is up.
	 */
	kd_close(s->in);
	kd_close(s->out);
}
EXPORT_SYMBOL_GPL(ep_stage_leave);
