// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a connection asks of the device, what a device that fails does to a
 * connection (contract N3, I4), and what two sides agree on. Operations of the
 * driver are replaced for the time of a case.
 */
#include <linux/module.h>
#include <rdma/ib_mad.h>
#include <rdma/iw_cm.h>
#include "cm_fixture.h"
#include "device.h"

/* ---- What is asked of the queue pair ------------------------------------------- */

static struct {
	struct kd_hook device;
	struct completion asked;
	struct completion refuse;
	int err;
	enum ib_qp_state at;
	u8 traffic_class;
} hook;

static int hook_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			  struct ib_udata *udata)
{
	if (mask & IB_QP_AV)
		hook.traffic_class = rdma_ah_read_grh(&attr->ah_attr)
					->traffic_class;
	if (hook.err && mask & IB_QP_STATE && attr->qp_state == hook.at)
		return hook.err;
	return hook.device.real.modify_qp(qp, attr, mask, udata);
}

/*
 * An iWARP driver modifies the QP by itself. Have it fail by asking for a depth
 * that is too large.
 */
static int hook_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	if (hook.err && hook.at == IB_QPS_RTR)
		param->ord = INT_MAX;
	return hook.device.real.iw_accept(id, param);
}

/* Refuse a connection attempt, but only after some time. */
static int hook_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	complete(&hook.asked);
	wait_for_completion_timeout(&hook.refuse, 20 * HZ);
	return -ENOMEM;
}

static int refuse_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	return hook.err;
}

static struct ib_device *hook_device(struct kd_side *s)
{
	struct ib_device *dev;

	memset(&hook, 0, sizeof(hook));
	init_completion(&hook.asked);
	init_completion(&hook.refuse);
	dev = kd_hook(s->test, s->name, &hook.device);
	dev->ops.modify_qp = hook_modify_qp;
	if (dev->ops.iw_accept)
		dev->ops.iw_accept = hook_iw_accept;
	return dev;
}

struct qos_case {
	DAT_QOS qos;
	u8 tos;
};

static const struct qos_case qos_cases[] = {
	{ DAT_QOS_BEST_EFFORT, 0 },
	{ DAT_QOS_HIGH_THROUGHPUT, 0x08 },
	{ DAT_QOS_LOW_LATENCY, 0x10 },
	{ DAT_QOS_ECONOMY, 0x20 },
	{ DAT_QOS_PREMIUM, 0xb8 },
};

static void quality_of_service(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	const struct qos_case *c;
	DAT_PROVIDER_ATTR prov;
	u16 port = kd_port();

	KD_ASSERT_OK(test, dat_ia_query(a->ia, NULL, 0, NULL,
					DAT_PROVIDER_FIELD_ALL, &prov));
	hook_device(a);
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (c = qos_cases; c < qos_cases + ARRAY_SIZE(qos_cases); c++) {
		KUNIT_EXPECT_EQ(test, prov.dat_qos_supported & c->qos,
				(int)c->qos);
		KD_ASSERT_OK(test, cm_connect(a, p, port, CM_TIMEOUT, c->qos,
					      DAT_CONNECT_DEFAULT_FLAG));
		kd_accept(a, p);
		/* An iWARP connection has the value from its socket. */
		if (!kd_is_iwarp(a))
			KUNIT_EXPECT_EQ(test, hook.traffic_class, c->tos);
		kd_disconnect(a, p);
		cm_again(a);
		cm_again(p);
	}
}

/* ---- What it refuses --------------------------------------------------------- */

/* A @call of @s has failed, as the device returned @err, and has changed nothing. */
static void expect_error_of(struct kd_side *s, int err, const char *call, DAT_RETURN ret)
{
	u32 want = err == -EOPNOTSUPP ? DAT_MODEL_NOT_SUPPORTED : DAT_INSUFFICIENT_RESOURCES;

	KUNIT_EXPECT_EQ_MSG(s->test, (u32)DAT_GET_TYPE(ret), want, "%s, %d", call, err);
	KUNIT_EXPECT_EQ(s->test, (int)kd_state(s), (int)DAT_EP_STATE_UNCONNECTED);
}

/* Each error of the device becomes a DAT error that fits. */
static void I4_errors_of_the_device(struct kunit *test)
{
	const int errs[] = {
		-ENOMEM, -EINVAL, -EIO, -ETIMEDOUT, -EBUSY, -ENODEV, -EPERM,
		-EINTR, -EREMOTEIO, -EOPNOTSUPP, -ENOENT, -EACCES
	};
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	u16 port = kd_port();
	DAT_CR_HANDLE cr;
	DAT_RETURN ret;
	int i;

	hook_device(a);
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	hook.at = IB_QPS_INIT;
	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		hook.err = errs[i];
		ret = cm_connect(a, p, port, CM_TIMEOUT, DAT_QOS_BEST_EFFORT, 0);
		expect_error_of(a, errs[i], "connect", ret);
	}
	hook.err = 0;
	KD_ASSERT_OK(test, cm_connect(a, p, port, CM_TIMEOUT, DAT_QOS_BEST_EFFORT,
				      0));
	cr = kd_expect_cr(p);
	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		hook.err = errs[i];
		ret = dat_cr_accept(cr, p->ep, 0, NULL);
		expect_error_of(p, errs[i], "accept", ret);
	}
	/* A failure has changed nothing, so the next attempt succeeds. */
	hook.err = 0;
	KD_ASSERT_OK(test, dat_cr_accept(cr, p->ep, 0, NULL));
	kd_expect_established(a, p);
	kd_ping(a, p);
}

#define POSTED 8

/*
 * Have the device fail after dat_cr_accept() has returned, so that only an event can report it.
 * Return the passive side, which has @opts and has posted receives.
 */
static struct kd_side *fail_to_accept(struct kunit *test, const struct kd_opts *opts)
{
	struct kd_side *a = kd_open_param(test), *p = kd_open_param(test);
	u16 port = kd_port();
	DAT_CR_HANDLE cr;
	int i;

	kd_setup(a, NULL);
	kd_setup(p, opts);
	for (i = 0; i < POSTED; i++)
		kd_recv(p, i * 64, 64, i);
	hook_device(a);
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(a, p, port);
	cr = kd_expect_cr(p);
	hook.at = IB_QPS_RTR;
	hook.err = -EIO;
	KD_ASSERT_OK(test, dat_cr_accept(cr, p->ep, 0, NULL));
	KUNIT_EXPECT_TRUE(test, kd_wait_state(p->ep,
					      DAT_EP_STATE_DISCONNECTED));
	KUNIT_EXPECT_TRUE(test, kd_wait_state(a->ep,
					      DAT_EP_STATE_DISCONNECTED));
	return p;
}

/* All completions of a connection come before its last event. */
static void N3_accept_fails_later(struct kunit *test)
{
	struct kd_side *p = fail_to_accept(test, &(struct kd_opts) { .merged = true });
	int i;

	for (i = 0; i < POSTED; i++)
		kd_expect_dto(test, p->recv_evd, i, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_event(test, p->conn_evd,
			DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL);
	/* A receive that is posted later is flushed at once. */
	kd_recv(p, 0, 64, POSTED);
	kd_expect_dto(test, p->recv_evd, POSTED, DAT_DTO_ERR_FLUSHED, NULL);
	kd_expect_no_event(test, p->conn_evd);
}

/* Buffers that no message has taken stay on the SRQ. */
static void R4_accept_fails_later(struct kunit *test)
{
	struct kd_side *p = fail_to_accept(test, &(struct kd_opts) { .srq_len = POSTED });
	DAT_SRQ_PARAM param;

	kd_expect_event(test, p->conn_evd,
			DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL);
	KD_EXPECT_OK(test, dat_srq_query(p->srq, DAT_SRQ_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.available_dto_count, POSTED);
	KUNIT_EXPECT_EQ(test, param.outstanding_dto_count, POSTED);
	kd_expect_no_event(test, p->recv_evd);
	KUNIT_EXPECT_EQ(test, 0, kd_drain(p->conn_evd));
}

/* ---- Data before ESTABLISHED ------------------------------------------------------- */

/*
 * A device that does not send the last message of the handshake (RTU), so that
 * the passive side gets data first.
 */
static struct {
	int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad);
	struct ib_qp *qp;		/* set once the RTU is held back */
	struct ib_ud_wr wr;
	struct ib_sge sge[2];
} rtu;

#define CM_RTU	0x0014

static int rtu_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	const struct ib_mad_hdr *mad;

	if (qp->qp_type != IB_QPT_GSI || rtu.qp || wr->num_sge > 2)
		return rtu.post_send(qp, wr, bad);
	/* The DMA addresses of a software device are kernel addresses. */
	mad = (void *)(uintptr_t)wr->sg_list[0].addr;
	if (mad->mgmt_class != IB_MGMT_CLASS_CM ||
	    mad->attr_id != cpu_to_be16(CM_RTU))
		return rtu.post_send(qp, wr, bad);
	rtu.wr = *ud_wr(wr);
	memcpy(rtu.sge, wr->sg_list, wr->num_sge * sizeof(rtu.sge[0]));
	rtu.wr.wr.sg_list = rtu.sge;
	rtu.wr.wr.next = NULL;
	rtu.qp = qp;
	return 0;
}

static void rtu_release(void *data)
{
	struct ib_device *dev = data;

	dev->ops.post_send = rtu.post_send;
	if (rtu.qp)
		rtu.post_send(rtu.qp, &rtu.wr.wr, NULL);
}

static bool rtu_is_kept(void *data)
{
	return READ_ONCE(rtu.qp);
}

#define EARLY 8

/* Connect without the RTU, and send data over the connection. */
static struct ib_device *come_early(struct kd_pair *pair)
{
	struct kd_side *a = pair->a, *p = pair->p;
	struct kd_buf *closed = kd_buf_alloc(p, PAGE_SIZE);
	DAT_LMR_TRIPLET seg = kd_seg(a->buf, 0, 64);
	struct kunit *test = a->test;
	struct ib_device *dev;
	u16 port = kd_port();
	DAT_COUNT n, span;
	int i;

	if (kd_is_iwarp(a))
		kunit_skip(test, "the handshake has no third message");
	memset(&rtu, 0, sizeof(rtu));
	dev = kd_test_device(test, a->name);
	rtu.post_send = dev->ops.post_send;
	dev->ops.post_send = rtu_post_send;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, rtu_release,
							   dev));
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < EARLY + 2; i++)
		kd_recv(p, i * 64, 64, i);
	kd_connect_start(a, p, port);
	KD_ASSERT_OK(test, dat_cr_accept(kd_expect_cr(p), p->ep, 0, NULL));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(rtu_is_kept, NULL,
					      KD_TIMEOUT_MS));
	for (i = 0; i < EARLY; i++)
		KD_ASSERT_OK(test, dat_ep_post_send_with_invalidate
				   (a->ep, 1, &seg, kd_cookie(i), 0, i == 1,
				    closed->rmr_context));
	for (i = 0; i < EARLY; i++)
		kd_expect_dto(test, a->req_evd, i, DAT_DTO_SUCCESS, NULL);
	/*
	 * The messages have arrived, but no event reports them before
	 * ESTABLISHED.
	 */
	KUNIT_EXPECT_EQ(test, (int)kd_state(p),
			(int)DAT_EP_STATE_COMPLETION_PENDING);
	kd_expect_no_event(test, p->recv_evd);
	kd_expect_no_event(test, p->conn_evd);
	KD_EXPECT_OK(test, dat_ep_recv_query(p->ep, &n, &span));
	KUNIT_EXPECT_EQ(test, n, EARLY + 2);
	return dev;
}

static void N3_data_before_established(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *p = pair.p;
	int i;

	kunit_release_action(test, rtu_release, come_early(&pair));
	kd_expect_event(test, p->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
	for (i = 0; i < EARLY; i++)
		kd_expect_dto(test, p->recv_evd, i, DAT_DTO_SUCCESS, NULL);
	kd_disconnect(pair.a, p);
	kd_expect_dto(test, p->recv_evd, EARLY, DAT_DTO_ERR_FLUSHED, NULL);
}

static void expect_nothing_received(struct kd_side *p)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct kunit *test = p->test;
	DAT_EVENT event;
	int i;

	for (i = 0; i < EARLY + 2; i++) {
		kd_expect_dto(test, p->recv_evd, i, DAT_DTO_ERR_FLUSHED, &event);
		dto = &event.event_data.dto_completion_event_data;
		KUNIT_EXPECT_EQ(test, 0, dto->transfered_length);
		KUNIT_EXPECT_EQ(test, 0U, dto->rmr_context);
		KUNIT_EXPECT_EQ(test, (int)DAT_DTO_RECEIVE, (int)dto->operation);
	}
}

/* Receives of a connection that was never established are flushed. */
static void N3_data_and_never_established(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *p = pair.p;

	come_early(&pair);
	KD_EXPECT_OK(test, dat_ep_disconnect(p->ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_nothing_received(p);
	kd_expect_event(test, p->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
}

/* Receives are flushed, too, if the peer disconnects before ESTABLISHED. */
static void N3_peer_leaves_before_established(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *p = pair.p;

	come_early(&pair);
	KD_EXPECT_OK(test, dat_ep_disconnect(pair.a->ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_nothing_received(p);
	kd_expect_event(test, p->conn_evd,
			DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL);
	KUNIT_EXPECT_EQ(test, (int)kd_state(p),
			(int)DAT_EP_STATE_DISCONNECTED);
	kd_expect_no_event(test, p->conn_evd);
}

/*
 * An RDMA Read that the peer's depth of 0 will leave unanswered is refused; on
 * rxe it would never complete. An iWARP device tells the peer's depth to the
 * passive side only. Without a connection the Read is flushed.
 */
static void M3_no_reads_where_none_are_answered(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, 64);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, 64);
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_EVENT event;

	attr.max_rdma_read_in = 0;
	c.p->ep = kd_ep(c.p, &attr);
	if (kd_is_iwarp(c.a))
		kd_connect_pair(c.p, c.a);
	else
		kd_connect_pair(c.a, c.p);
	KUNIT_EXPECT_EQ(test,
			dat_ep_post_rdma_read(c.a->ep, 1, &seg, kd_cookie(1),
					      &remote, 0),
			DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				  DAT_RESOURCE_CREDITS));
	KD_EXPECT_OK(test, dat_ep_disconnect(c.a->ep, DAT_CLOSE_ABRUPT_FLAG));
	KD_EXPECT_OK(test, dat_ep_post_rdma_read(c.a->ep, 1, &seg, kd_cookie(2),
						 &remote, 0));
	kd_expect_event(test, c.a->conn_evd,
			DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	/* Flushed, or refused by a device that was quicker than the disconnect. */
	kd_expect_event(test, c.a->req_evd, DAT_DTO_COMPLETION_EVENT, &event);
	KUNIT_EXPECT_NE(test, (u32)event.event_data.dto_completion_event_data
			      .status, (u32)DAT_DTO_SUCCESS);
}

/*
 * The consumer disconnects while the iWARP driver is about to refuse the
 * attempt, whereupon rdma_cm frees its state of the attempt. (The InfiniBand CM
 * has no such moment to hold.)
 */
static void N3_given_up_while_it_fails(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a;
	struct ib_device *dev;

	if (!kd_is_iwarp(a))
		kunit_skip(test, "for drivers that connect themselves");
	dev = hook_device(a);
	dev->ops.iw_connect = hook_iw_connect;
	KD_ASSERT_OK(test, cm_connect(a, pair.p, kd_port(),
				      DAT_TIMEOUT_INFINITE,
				      DAT_QOS_BEST_EFFORT, 0));
	wait_for_completion(&hook.asked);
	KD_EXPECT_OK(test, dat_ep_disconnect(a->ep, DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
	complete(&hook.refuse);
	dev->ops.iw_connect = hook.device.real.iw_connect;
	KD_EXPECT_OK(test, dat_ep_reset(a->ep));
	kd_connect_pair(a, pair.p);
}

/*
 * siw has the ports of TCP, where rdma_cm does not know which are in use: its choice may be one of
 * those. Nobody was asked then, so nobody has rejected.
 */
static void N3_port_in_use(struct kunit *test)
{
	const int errs[] = { -EADDRINUSE, -EADDRNOTAVAIL };
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a;
	struct ib_device *dev;
	unsigned int i;

	if (!kd_is_iwarp(a))
		kunit_skip(test, "for drivers that connect themselves");
	dev = hook_device(a);
	dev->ops.iw_connect = refuse_iw_connect;
	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		hook.err = errs[i];
		KD_ASSERT_OK(test, cm_connect(a, pair.p, kd_port(), DAT_TIMEOUT_INFINITE,
					      DAT_QOS_BEST_EFFORT, 0));
		kd_expect_event(test, a->conn_evd, DAT_CONNECTION_EVENT_UNREACHABLE, NULL);
		cm_again(a);
	}
	hook.err = 0;
	dev->ops.iw_connect = hook.device.real.iw_connect;
	kd_connect_pair(a, pair.p);
}

/* ---- More requests at once than iw_cm has passed on ------------------------------ */

#define BURST	200

static struct {
	struct rdma_cm_id *id;
	struct completion shut;
	struct completion open;
	struct kd_hook device;
	atomic_t asked;
} gate;

/* iw_cm, which has one worker, gets no further than this request until the gate opens. */
static int gate_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	complete(&gate.shut);
	wait_for_completion(&gate.open);
	return -ECONNREFUSED;
}

static int gate_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	int err = gate.device.real.iw_connect(id, param);

	atomic_inc(&gate.asked);
	kd_wake();
	return err;
}

static bool gate_all_asked(void *unused)
{
	return atomic_read(&gate.asked) == BURST;
}

static void gate_remove(void *unused)
{
	complete_all(&gate.open);
	rdma_destroy_id(gate.id);
}

/* Shut the gate with a request to @p, which @a makes. */
static void gate_shut(struct kunit *test, struct kd_side *a, struct kd_side *p)
{
	struct sockaddr_in at = *(struct sockaddr_in *)p->addr;
	u16 port = kd_port();

	init_completion(&gate.shut);
	init_completion(&gate.open);
	gate.id = rdma_create_id(&init_net, gate_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(gate.id));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, gate_remove, NULL));
	at.sin_port = htons(port);
	KUNIT_ASSERT_EQ(test, 0, rdma_bind_addr(gate.id, (struct sockaddr *)&at));
	KUNIT_ASSERT_EQ(test, 0, rdma_listen(gate.id, 1));
	kd_connect_start(a, p, port);
	KUNIT_ASSERT_NE(test, 0, wait_for_completion_timeout(&gate.shut, 30 * HZ));
}

/*
 * As many requests as the EVD has room for come while iw_cm does something else, and
 * none is refused.
 */
static void N5_burst_of_requests(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_EVD_HANDLE evd = kd_evd(p, DAT_EVD_CR_FLAG, BURST, DAT_UPCALL_NOTIFY);
	DAT_PSP_HANDLE psp;
	u16 port = kd_port();
	int i;

	if (!kd_is_iwarp(a))
		kunit_skip(test, "InfiniBand's CM has no such bound");
	KD_ASSERT_OK(test, dat_psp_create(p->ia, port, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	KD_ASSERT_OK(test, dat_evd_resize(a->conn_evd, BURST + 1));
	gate_shut(test, a, p);
	atomic_set(&gate.asked, 0);
	kd_hook(test, a->name, &gate.device)->ops.iw_connect = gate_connect;
	for (i = 0; i < BURST; i++) {
		a->ep = kd_ep(a, NULL);
		kd_connect_start(a, p, port);
	}
	KUNIT_ASSERT_TRUE(test, kd_wait_until(gate_all_asked, NULL, KD_TIMEOUT_MS));
	complete_all(&gate.open);
	for (i = 0; i < BURST; i++)
		kd_expect_event(test, evd, DAT_CONNECTION_REQUEST_EVENT, NULL);
	KD_EXPECT_OK(test, dat_psp_free(psp));
}

static struct kunit_case cm_device_cases[] = {
	KUNIT_CASE_PARAM(quality_of_service, kd_gen_ia),
	KUNIT_CASE_PARAM(I4_errors_of_the_device, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_accept_fails_later, kd_gen_ia),
	KUNIT_CASE_PARAM(R4_accept_fails_later, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_data_before_established, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_data_and_never_established, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_peer_leaves_before_established, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_given_up_while_it_fails, kd_gen_ia),
	KUNIT_CASE_PARAM(N3_port_in_use, kd_gen_ia),
	KUNIT_CASE_PARAM(M3_no_reads_where_none_are_answered, kd_gen_ia),
	KUNIT_CASE_PARAM(N5_burst_of_requests, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-cm-device", cm_device_cases, "connections and the device");
