// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The state machine of an Endpoint as the DAT standard has it, row by row:
 * which calls each state allows, and the state after them. How connections end
 * is in ep_end_test.c.
 */
#include <linux/in.h>
#include <linux/module.h>
#include "ep_states.h"

/* ---- Calls and what becomes of the state ----------------------------------- */

enum ep_call {
	CALL_CONNECT,
	CALL_DUP,
	CALL_COMMON,
	CALL_GRACEFUL,
	CALL_ABRUPT,
	CALL_RESET,
	CALL_SEND,
	CALL_SEND_INV,
	CALL_WRITE,
	CALL_READ,
	CALL_READ_TO_RMR,
	CALL_BIND,
	CALL_FMR,
	CALL_INVALIDATE,
	CALL_RECV,
	CALL_RSP,
	CALL_FREE,
	CALLS
};

enum column {
	COL_CONNECT,
	COL_GRACEFUL,
	COL_ABRUPT,
	COL_RESET,
	COL_REQUEST,
	COL_RECV,
	COL_RSP,
	COL_FREE,
	COLUMNS
};

/* @op: the operation that the completion of the request reports. */
static const struct {
	const char *name;
	enum column column;
	DAT_DTOS op;
} calls[CALLS] = {
	[CALL_CONNECT] = { "connect", COL_CONNECT },
	[CALL_DUP] = { "dup_connect", COL_CONNECT },
	[CALL_COMMON] = { "common_connect", COL_CONNECT },
	[CALL_GRACEFUL] = { "disconnect gracefully", COL_GRACEFUL },
	[CALL_ABRUPT] = { "disconnect abruptly", COL_ABRUPT },
	[CALL_RESET] = { "reset", COL_RESET },
	[CALL_SEND] = { "post_send", COL_REQUEST, DAT_DTO_SEND },
	[CALL_SEND_INV] = { "post_send_with_invalidate", COL_REQUEST,
			    DAT_DTO_SEND },
	[CALL_WRITE] = { "post_rdma_write", COL_REQUEST, DAT_DTO_RDMA_WRITE },
	[CALL_READ] = { "post_rdma_read", COL_REQUEST, DAT_DTO_RDMA_READ },
	[CALL_READ_TO_RMR] = { "post_rdma_read_to_rmr", COL_REQUEST,
			       DAT_DTO_RDMA_READ },
	[CALL_BIND] = { "rmr_bind", COL_REQUEST },
	[CALL_FMR] = { "lmr_fmr", COL_REQUEST, DAT_DTO_LMR_FMR },
	[CALL_INVALIDATE] = { "lmr_invalidate", COL_REQUEST,
			      DAT_DTO_LMR_INVALIDATE },
	[CALL_RECV] = { "post_recv", COL_RECV },
	[CALL_RSP] = { "rsp_create", COL_RSP },
	[CALL_FREE] = { "free", COL_FREE },
};

/*
 * The state after the call. NO: the call returns INVALID_STATE and changes
 * nothing.
 */
#define NO	-1
#define GONE	-2
#define SAME	-3
#define ACTIVE	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING
#define DOWN	DAT_EP_STATE_DISCONNECTED
#define FRESH	DAT_EP_STATE_UNCONNECTED
#define HELD	DAT_EP_STATE_RESERVED

static const int table[EP_REACHABLE][COLUMNS] = {
	[EP_UNCONNECTED] = { ACTIVE, NO, NO, SAME, NO, SAME, HELD, GONE },
	[EP_RESERVED] = { NO, NO, NO, NO, NO, SAME, NO, NO },
	[EP_PASSIVE_PENDING] = { NO, NO, NO, NO, NO, SAME, NO, NO },
	[EP_TENTATIVE_PENDING] = { NO, NO, NO, NO, NO, SAME, NO, NO },
	[EP_ACTIVE_PENDING] = { NO, DOWN, DOWN, NO, NO, SAME, NO, GONE },
	[EP_COMPLETION_PENDING] = { NO, DOWN, DOWN, NO, NO, SAME, NO, GONE },
	[EP_CONNECTED] = { NO, DOWN, DOWN, NO, SAME, SAME, NO, GONE },
	[EP_DISCONNECT_PENDING] = { NO, SAME, DOWN, NO, NO, SAME, NO, GONE },
	[EP_DISCONNECTED] = { NO, SAME, SAME, FRESH, SAME, SAME, NO, GONE },
};

/* The subtype of DAT_INVALID_STATE for each state. */
static const u16 subtypes[EP_REACHABLE] = {
	[EP_UNCONNECTED] = DAT_INVALID_STATE_EP_UNCONNECTED,
	[EP_RESERVED] = DAT_INVALID_STATE_EP_RESERVED,
	[EP_PASSIVE_PENDING] = DAT_INVALID_STATE_EP_PASSCONNPENDING,
	[EP_TENTATIVE_PENDING] = DAT_INVALID_STATE_EP_TENTCONNPENDING,
	[EP_ACTIVE_PENDING] = DAT_INVALID_STATE_EP_ACTCONNPENDING,
	[EP_COMPLETION_PENDING] = DAT_INVALID_STATE_EP_COMPLPENDING,
	[EP_CONNECTED] = DAT_INVALID_STATE_EP_CONNECTED,
	[EP_DISCONNECT_PENDING] = DAT_INVALID_STATE_EP_DISCPENDING,
	[EP_DISCONNECTED] = DAT_INVALID_STATE_EP_DISCONNECTED,
};

/* What a call changes unless it is refused. */
struct seen {
	DAT_EP_PARAM ep;
	DAT_BOOLEAN recv_idle;
	DAT_BOOLEAN request_idle;
	DAT_LMR_STATE bound;
	DAT_LMR_STATE unbound;
	DAT_RMR_CONTEXT context;
};

/*
 * struct play - a stage, and the objects for calls on its EP
 * @reach: the state of the EP
 * @peer: the side at the other end
 * @port: where @peer listens
 * @model: another EP, connected to that port
 * @bound: an LMR, bound by a request of @model; @unbound is another one
 * @rmr: bound by @model to a part of the side's buffer
 * @closed: memory of the peer, for one invalidation
 */
struct play {
	struct kunit *test;
	struct ep_stage *stage;
	enum ep_reach reach;
	struct kd_side *side;
	struct kd_side *peer;
	u16 port;
	DAT_EP_HANDLE model;
	DAT_LMR_HANDLE bound;
	DAT_LMR_HANDLE unbound;
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT context;
	struct kd_buf *closed;
	struct seen before;
	struct seen after;
};

static DAT_RETURN bind_lmr(struct play *p, DAT_LMR_HANDLE lmr, DAT_EP_HANDLE ep,
			   u64 cookie)
{
	DAT_REGION_DESCRIPTION region = { .for_va = p->side->buf->va };
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT rkey;

	return dat_lmr_fmr(lmr, DAT_MEM_TYPE_VIRTUAL, region, 1,
			   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, ep,
			   kd_cookie(cookie), 0, &context, &rkey);
}

static DAT_RETURN bind_rmr(struct play *p, DAT_EP_HANDLE ep, u64 cookie)
{
	DAT_LMR_TRIPLET part = kd_seg(p->side->buf, 0, 64);

	return dat_rmr_bind(p->rmr, p->side->buf->lmr, &part,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, ep,
			    kd_cookie(cookie), 0, &p->context);
}

static void expect_bound(struct play *p, u64 cookie,
			 DAT_DTO_COMPLETION_STATUS status)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *data;
	DAT_EVENT event;

	kd_expect_event(p->test, p->side->req_evd,
			DAT_RMR_BIND_COMPLETION_EVENT, &event);
	data = &event.event_data.rmr_completion_event_data;
	KUNIT_EXPECT_EQ(p->test, data->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(p->test, (int)data->status, (int)status);
}

/*
 * Make a second connection, which is the model of dat_ep_dup_connect() and
 * binds what the calls unbind.
 */
static void connect_model(struct play *p)
{
	struct kd_side side = *p->side, peer = *p->peer;

	side.ep = kd_ep(p->side, NULL);
	peer.ep = kd_ep(p->peer, NULL);
	kd_psp(&peer, p->port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(&side, &peer, p->port);
	kd_accept(&side, &peer);
	p->model = side.ep;
}

static void make_memory(struct play *p)
{
	struct kunit *test = p->test;

	KD_ASSERT_OK(test, dat_lmr_allocate(p->side->ia, p->side->pz, 1,
					    DAT_LMR_SCOPE_PZ, &p->unbound));
	KD_ASSERT_OK(test, dat_lmr_allocate(p->side->ia, p->side->pz, 1,
					    DAT_LMR_SCOPE_PZ, &p->bound));
	KD_ASSERT_OK(test, dat_rmr_create(p->side->pz, &p->rmr));
	KD_ASSERT_OK(test, bind_lmr(p, p->bound, p->model, 1));
	kd_expect_dto(test, p->side->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	KD_ASSERT_OK(test, bind_rmr(p, p->model, 2));
	expect_bound(p, 2, DAT_DTO_SUCCESS);
	p->closed = kd_buf_alloc(p->peer, PAGE_SIZE);
}

/* Give the EP that came with a request a PZ and EVDs. */
static void equip(struct play *p)
{
	DAT_EP_PARAM param = {
		.pz_handle = p->side->pz,
		.recv_evd_handle = p->side->recv_evd,
		.request_evd_handle = p->side->req_evd,
		.connect_evd_handle = p->side->conn_evd,
	};

	KD_ASSERT_OK(p->test,
		     dat_ep_modify(p->stage->ep, DAT_EP_FIELD_PZ_HANDLE |
				   DAT_EP_FIELD_RECV_EVD_HANDLE |
				   DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				   DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
}

static struct play *enter(struct kunit *test)
{
	const struct kd_param *scene = test->param_value;
	struct play *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct ep_stage *s;

	KUNIT_ASSERT_NOT_NULL(test, p);
	s = ep_stage_open(test, scene->ia);
	p->test = test;
	p->stage = s;
	p->reach = scene->choice;
	p->side = p->reach == EP_ACTIVE_PENDING ? s->out : s->in;
	p->peer = p->side == s->in ? s->out : s->in;
	p->port = kd_port();
	connect_model(p);
	make_memory(p);
	ep_stage_reach(s, p->reach);
	KUNIT_ASSERT_PTR_EQ(test, s->side, p->side);
	if (p->reach == EP_TENTATIVE_PENDING)
		equip(p);
	if (p->reach == EP_CONNECTED) {
		/* Post receives for both kinds of Send. */
		kd_recv(p->peer, 0, 64, 1);
		kd_recv(p->peer, 0, 64, 2);
	}
	return p;
}

static DAT_RETURN make_connection(struct play *p, enum ep_call call)
{
	struct sockaddr_in at = *(struct sockaddr_in *)p->peer->addr;
	DAT_EP_HANDLE ep = p->stage->ep;

	at.sin_port = htons(p->port);
	switch (call) {
	case CALL_CONNECT:
		return dat_ep_connect(ep, p->peer->addr, p->port,
				      DAT_TIMEOUT_INFINITE, 0, NULL,
				      DAT_QOS_BEST_EFFORT, 0);
	case CALL_DUP:
		return dat_ep_dup_connect(ep, p->model, DAT_TIMEOUT_INFINITE, 0,
					  NULL, DAT_QOS_BEST_EFFORT);
	default:
		return dat_ep_common_connect(ep, (void *)&at,
					     DAT_TIMEOUT_INFINITE, 0, NULL);
	}
}

static DAT_RETURN make_request(struct play *p, enum ep_call call)
{
	DAT_RMR_TRIPLET remote = kd_remote(p->peer->buf, 0, 64);
	DAT_RMR_TRIPLET sink = kd_remote(p->side->buf, 0, 64);
	DAT_LMR_TRIPLET seg = kd_seg(p->side->buf, 0, 64);
	DAT_CONTEXT cookie = kd_cookie(call);
	DAT_EP_HANDLE ep = p->stage->ep;

	switch (call) {
	case CALL_SEND:
		return dat_ep_post_send(ep, 1, &seg, cookie, 0);
	case CALL_SEND_INV:
		return dat_ep_post_send_with_invalidate(ep, 1, &seg, cookie, 0,
							DAT_TRUE,
							p->closed->rmr_context);
	case CALL_WRITE:
		return dat_ep_post_rdma_write(ep, 1, &seg, cookie, &remote, 0);
	case CALL_READ:
		return dat_ep_post_rdma_read(ep, 1, &seg, cookie, &remote, 0);
	case CALL_READ_TO_RMR:
		sink.rmr_context = p->context;
		return dat_ep_post_rdma_read_to_rmr(ep, &sink, cookie, &remote,
						    0);
	case CALL_BIND:
		return bind_rmr(p, ep, call);
	case CALL_FMR:
		return bind_lmr(p, p->unbound, ep, call);
	default:
		return dat_lmr_invalidate(p->bound, ep, cookie, 0);
	}
}

static DAT_RETURN make_call(struct play *p, enum ep_call call)
{
	DAT_LMR_TRIPLET seg = kd_seg(p->side->buf, 0, 64);
	DAT_EP_HANDLE ep = p->stage->ep;
	DAT_RSP_HANDLE rsp;

	switch (calls[call].column) {
	case COL_CONNECT:
		return make_connection(p, call);
	case COL_GRACEFUL:
		return dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG);
	case COL_ABRUPT:
		return dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG);
	case COL_RESET:
		return dat_ep_reset(ep);
	case COL_REQUEST:
		return make_request(p, call);
	case COL_RECV:
		return dat_ep_post_recv(ep, 1, &seg, kd_cookie(call), 0);
	case COL_RSP:
		return dat_rsp_create(p->side->ia, kd_port(), ep,
				      p->side->cr_evd, &rsp);
	default:
		return dat_ep_free(ep);
	}
}

/* ---- Calls that are refused ------------------------------------------------- */

static void look(struct play *p, struct seen *seen)
{
	struct kunit *test = p->test;
	DAT_LMR_PARAM lmr;
	DAT_RMR_PARAM rmr;

	KD_EXPECT_OK(test, dat_ep_query(p->stage->ep, DAT_EP_FIELD_ALL,
					&seen->ep));
	KD_EXPECT_OK(test, dat_ep_get_status(p->stage->ep, NULL,
					     &seen->recv_idle,
					     &seen->request_idle));
	KD_EXPECT_OK(test, dat_lmr_query(p->bound, DAT_LMR_FIELD_ALL, &lmr));
	seen->bound = lmr.lmr_state;
	KD_EXPECT_OK(test, dat_lmr_query(p->unbound, DAT_LMR_FIELD_ALL, &lmr));
	seen->unbound = lmr.lmr_state;
	KD_EXPECT_OK(test, dat_rmr_query(p->rmr, DAT_RMR_FIELD_ALL, &rmr));
	seen->context = rmr.rmr_context;
}

static void forbidden_calls(struct kunit *test)
{
	struct play *p = enter(test);
	DAT_RETURN ret;
	int call;

	look(p, &p->before);
	for (call = 0; call < CALLS; call++) {
		if (table[p->reach][calls[call].column] != NO)
			continue;
		ret = make_call(p, call);
		KUNIT_EXPECT_EQ_MSG(test, ret, DAT_ERROR(DAT_INVALID_STATE,
							 subtypes[p->reach]),
				    "%s", calls[call].name);
		look(p, &p->after);
		KUNIT_EXPECT_EQ_MSG(test, 0, memcmp(&p->before, &p->after,
						    sizeof(p->after)),
				    "%s has changed something",
				    calls[call].name);
		p->before = p->after;
	}
	KUNIT_EXPECT_EQ(test, 0, kd_drain(p->side->conn_evd));
	KUNIT_EXPECT_EQ(test, 0, kd_drain(p->side->req_evd));
	ep_stage_leave(p->stage);
}

/* ---- Calls that are not ------------------------------------------------------ */

/*
 * Expect the completion of a post. In state DISCONNECTED it is flushed at once;
 * in other states receives wait.
 */
static void expect_completion(struct play *p, enum ep_call call)
{
	bool over = p->reach == EP_DISCONNECTED;
	DAT_DTO_COMPLETION_STATUS status =
		over ? DAT_DTO_ERR_FLUSHED : DAT_DTO_SUCCESS;
	DAT_EVENT event;

	if (call == CALL_RECV && over)
		kd_expect_dto(p->test, p->side->recv_evd, call, status, NULL);
	if (calls[call].column != COL_REQUEST)
		return;
	if (call == CALL_BIND) {
		expect_bound(p, call, status);
		return;
	}
	kd_expect_dto(p->test, p->side->req_evd, call, status, &event);
	KUNIT_EXPECT_EQ_MSG(p->test, (int)event.event_data
			    .dto_completion_event_data.operation,
			    (int)calls[call].op, "%s", calls[call].name);
}

/* Calls that do not change the state, one after the other. */
static void allowed_calls_in_state(struct kunit *test)
{
	struct play *p = enter(test);
	int call;

	for (call = 0; call < CALLS; call++) {
		if (table[p->reach][calls[call].column] != SAME)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, make_call(p, call), DAT_SUCCESS, "%s",
				    calls[call].name);
		expect_completion(p, call);
		KUNIT_EXPECT_EQ_MSG(test, (int)ep_state(test, p->stage->ep),
				    (int)ep_reach_state[p->reach], "%s",
				    calls[call].name);
	}
	if (p->reach == EP_DISCONNECTED)
		kd_expect_no_event(test, p->side->conn_evd);
	KUNIT_EXPECT_EQ(test, 0, kd_drain(p->side->conn_evd));
	ep_stage_leave(p->stage);
}

/* Expect that the peer gets a request, and reject it. */
static void expect_asked(struct play *p)
{
	KD_EXPECT_OK(p->test, dat_cr_reject(kd_expect_cr(p->peer), 0, NULL));
	kd_expect_event(p->test, p->side->conn_evd,
			DAT_CONNECTION_EVENT_PEER_REJECTED, NULL);
}

static void expect_after(struct play *p, enum ep_call call)
{
	int want = table[p->reach][calls[call].column];
	struct kunit *test = p->test;

	if (want == GONE) {
		KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
			      dat_ep_get_status(p->stage->ep, NULL, NULL,
						NULL));
		return;
	}
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_state(p->stage->ep, want),
			      "%s leads to %d, not %d", calls[call].name,
			      ep_state(test, p->stage->ep), want);
	ep_stage_release(p->stage);
	if (want == ACTIVE)
		expect_asked(p);
	if (want == DOWN)
		kd_expect_event(test, p->side->conn_evd,
				DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
}

/* Calls that lead to another state, each from a fresh start. */
static void allowed_calls_to_another_state(struct kunit *test)
{
	const struct kd_param *scene = test->param_value;
	struct play *p;
	int call, to;

	for (call = 0; call < CALLS; call++) {
		to = table[scene->choice][calls[call].column];
		if (to == NO || to == SAME)
			continue;
		p = enter(test);
		KUNIT_EXPECT_EQ_MSG(test, make_call(p, call), DAT_SUCCESS, "%s",
				    calls[call].name);
		expect_after(p, call);
		ep_stage_leave(p->stage);
	}
}

/* Only an UNCONNECTED EP may accept a request that came without one. */
static void accept_in_every_state(struct kunit *test)
{
	const struct kd_param *scene = test->param_value;
	struct kd_side *other, asking;
	struct ep_stage *s;
	DAT_CR_HANDLE cr;
	DAT_RETURN ret;
	u16 port;

	if (scene->choice == EP_COMPLETION_PENDING &&
	    !kd_ia_has(scene->ia, KD_IWARP))
		kunit_skip(test, "while it is held no request arrives");
	s = ep_stage_enter(test, scene->ia, scene->choice);
	other = s->side == s->in ? s->out : s->in;
	asking = *other;
	asking.ep = kd_ep(other, NULL);
	port = kd_port();
	kd_psp(s->side, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(&asking, s->side, port);
	cr = kd_expect_cr(s->side);
	ret = dat_cr_accept(cr, s->ep, 0, NULL);
	KUNIT_EXPECT_EQ(test, ret, scene->choice == EP_UNCONNECTED ?
			DAT_SUCCESS : DAT_ERROR(DAT_INVALID_STATE,
						subtypes[scene->choice]));
	if (ret != DAT_SUCCESS)
		KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
	ep_stage_leave(s);
}

static struct kunit_case ep_state_cases[] = {
	KUNIT_CASE_PARAM(forbidden_calls, ep_gen_scene),
	KUNIT_CASE_PARAM(allowed_calls_in_state, ep_gen_scene),
	KUNIT_CASE_PARAM(allowed_calls_to_another_state, ep_gen_scene),
	KUNIT_CASE_PARAM(accept_in_every_state, ep_gen_scene),
	{}
};

KD_SUITE("kdapl-ep-state", ep_state_cases, "states of an Endpoint");
