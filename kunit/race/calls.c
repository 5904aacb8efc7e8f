// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * race_test.ko: calls of data transfer, Endpoints and EVDs, on what the slots hold at
 * that moment. Each returns DAT_SUCCESS or one of the errors that RACE() is told.
 */
#include <linux/in.h>
#include "race.h"

#define RACE_CONTEXT	0x5ace00000000ULL

#define POSTS		(HANDLE | STATE | NO_ROOM | PRIVILEGE)

/* Pick an Endpoint, mostly one of the first two, so that the two sides meet there. */
static struct race_obj *pick_ep(struct race_caller *c)
{
	struct race_within *in = race_within(c);

	if (in && in->ep.handle)
		return &in->ep;
	return race_slot(c->w, S_EP + rnd(c, rnd(c, 2) ? 2 : RACE_EPS));
}

static struct race_obj *pick_srq(struct race_caller *c)
{
	return race_slot(c->w, rnd(c, 4) ? S_SRQ : S_SRQ2);
}

static DAT_EVD_HANDLE pick_evd(struct race_caller *c)
{
	struct race_within *in = race_within(c);
	u32 i = rnd(c, RACE_EVDS + 1);

	if (in && in->evd)
		return in->evd;
	return i < RACE_EVDS ? c->w->evd[i] : race_handle(race_slot(c->w, S_EVD));
}

/*
 * A message in memory that stays, or in an LMR that may be freed at any moment. One that is not of
 * a side rarely is in an LMR: while it is posted there, nobody can free that.
 */
DAT_LMR_TRIPLET race_seg(struct race_caller *c)
{
	bool stays = rnd(c, c->call ? 2 : 64);
	struct race_obj *lmr = stays ? NULL : race_slot(c->w, S_LMR + rnd(c, 2));
	u8 *va = lmr ? lmr->page : c->w->mem + RACE_LEN * rnd(c, RACE_MEM_LEN / RACE_LEN);

	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)va,
		.segment_length = RACE_LEN,
		.lmr_context = lmr ? lmr->lmr_context : c->w->lmr_context,
	};
}

/* What @ep may use: that of another IA has a page of its own. Requests may name a mapping. */
static DAT_LMR_TRIPLET seg_of(struct race_caller *c, struct race_obj *ep)
{
	struct race_obj *sg = rnd(c, 8) ? NULL : race_slot(c->w, S_SG);

	if (sg && ep && ep->slot != S_IA)
		return (DAT_LMR_TRIPLET) {
			.virtual_address = sg->addr + RACE_LEN * rnd(c, PAGE_SIZE / RACE_LEN),
			.segment_length = RACE_LEN,
			.lmr_context = sg->lmr_context,
		};
	if (!ep || ep->slot != S_IA)
		return race_seg(c);
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)ep->page,
		.segment_length = RACE_LEN,
		.lmr_context = ep->lmr_context,
	};
}

/* Memory of the peer, @of an LMR or NULL. If that was freed, the connection breaks. */
static DAT_RMR_TRIPLET remote(struct race_caller *c, struct race_obj **of)
{
	struct race_obj *lmr = rnd(c, 16) ? NULL : race_slot(c->w, S_LMR + rnd(c, 2));
	u8 *va = lmr ? lmr->page : c->w->mem + RACE_LEN * rnd(c, RACE_MEM_LEN / RACE_LEN);

	*of = lmr;
	return (DAT_RMR_TRIPLET) {
		.virtual_address = (uintptr_t)va,
		.segment_length = RACE_LEN,
		.rmr_context = lmr ? lmr->rmr_context : c->w->rmr_context,
	};
}

/* ---- Data transfer ------------------------------------------------------- */

/*
 * Post to @ep if there is a cookie. @names tells the model which memory is named, outside of the
 * call: calls are to meet in kDAPL. @... are the arguments after the handle.
 */
#define POST(c, kind, ep, fn, may, names, ...) do {			\
	struct race_caller *__by = (c);					\
	struct race_obj *__to = (ep);					\
	u64 __cookie = race_post(__by->w, kind, __to);			\
									\
	if (__cookie) {							\
		names;							\
		race_posted(__by->w, __cookie,				\
			    RACE(__by, fn, may, __to->handle, __VA_ARGS__));\
	}								\
} while (0)
#define COOKIE		kd_cookie(__cookie)
#define PLACE(seg)	race_place(__by->w, __cookie, seg)
#define OF(lmr)		race_names_memory(__by->w, __cookie, lmr)

void race_post_recv(struct race_caller *c, struct race_obj *ep)
{
	DAT_LMR_TRIPLET seg = seg_of(c, ep);

	/* One with an SRQ refuses, and each one a mapping. */
	POST(c, K_RECV, ep, dat_ep_post_recv, POSTS, PLACE(&seg), 1, &seg, COOKIE, 0);
}

void race_post_send(struct race_caller *c, struct race_obj *ep)
{
	DAT_LMR_TRIPLET seg = seg_of(c, ep);

	POST(c, K_SEND, ep, dat_ep_post_send, POSTS, PLACE(&seg), 1, &seg, COOKIE, 0);
}

void race_srq_post_recv(struct race_caller *c, struct race_obj *srq)
{
	DAT_LMR_TRIPLET seg = race_seg(c);

	/* Buffers of the SRQ that is freed are in its own page. */
	if (srq && srq->page) {
		seg.virtual_address = (uintptr_t)srq->page + RACE_LEN * rnd(c, 16);
		seg.lmr_context = c->w->lmr_context;
	}
	POST(c, K_SRQ, srq, dat_srq_post_recv, HANDLE | NO_ROOM | PRIVILEGE, PLACE(&seg), 1,
	     &seg, COOKIE);
}

static void post_recv(struct race_caller *c)
{
	race_post_recv(c, pick_ep(c));
}

static void post_send(struct race_caller *c)
{
	race_post_send(c, pick_ep(c));
}

static void srq_post_recv(struct race_caller *c)
{
	race_srq_post_recv(c, pick_srq(c));
}

static void post_write(struct race_caller *c)
{
	struct race_obj *ep = pick_ep(c);
	DAT_LMR_TRIPLET seg = seg_of(c, ep);
	struct race_obj *lmr;
	DAT_RMR_TRIPLET to = remote(c, &lmr);

	POST(c, K_WRITE, ep, dat_ep_post_rdma_write, POSTS, OF(lmr), 1, &seg, COOKIE, &to, 0);
}

static void post_read(struct race_caller *c)
{
	struct race_obj *ep = pick_ep(c);
	DAT_LMR_TRIPLET seg = seg_of(c, ep);
	struct race_obj *lmr;
	DAT_RMR_TRIPLET from = remote(c, &lmr);

	POST(c, K_READ, ep, dat_ep_post_rdma_read, POSTS, OF(lmr), 1, &seg, COOKIE, &from, 0);
}

static void post_read_to_rmr(struct race_caller *c)
{
	struct race_obj *ep = pick_ep(c);
	struct race_obj *lmr;
	DAT_RMR_TRIPLET from = remote(c, &lmr), to = {
		.virtual_address = (uintptr_t)c->w->mem,
		.segment_length = RACE_LEN,
		.rmr_context = READ_ONCE(c->w->bound),
	};

	POST(c, K_READ, ep, dat_ep_post_rdma_read_to_rmr, POSTS, OF(lmr), &to, COOKIE, &from, 0);
}

/* A Send that may invalidate; what the peer has bound is mostly another thing by then. */
static void post_send_inv(struct race_caller *c)
{
	struct race_obj *ep = pick_ep(c);
	DAT_LMR_TRIPLET seg = seg_of(c, ep);

	POST(c, K_SEND, ep, dat_ep_post_send_with_invalidate, POSTS | MODEL, PLACE(&seg), 1, &seg,
	     COOKIE, 0, rnd(c, 8) ? DAT_FALSE : DAT_TRUE, READ_ONCE(c->w->bound));
}

/* A Write and a Send that tells of it. */
static void post_requests(struct race_caller *c)
{
	struct race_obj *ep = pick_ep(c);
	DAT_LMR_TRIPLET seg[] = { seg_of(c, ep), seg_of(c, ep) };
	struct race_obj *lmr;
	DAT_RMR_TRIPLET to = remote(c, &lmr);
	u64 cookie[] = { race_post(c->w, K_WRITE, ep), race_post(c->w, K_SEND, ep) };
	KDAT_REQUEST request[] = { {
		.operation = DAT_DTO_RDMA_WRITE, .num_segments = 1, .local_iov = &seg[0],
		.user_cookie = kd_cookie(cookie[0]), .remote_iov = &to,
	}, {
		.operation = DAT_DTO_SEND, .num_segments = 1,
		.local_iov = &seg[1],
		.user_cookie = kd_cookie(cookie[1]),
	} };
	DAT_RETURN ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_NO_SUBTYPE);
	unsigned int i;

	race_names_memory(c->w, cookie[0], lmr);
	race_place(c->w, cookie[1], &seg[1]);
	if (cookie[0] && cookie[1])
		ret = RACE(c, kdat_ep_post_requests, POSTS, ep->handle, 2, request);
	for (i = 0; i < 2; i++)
		if (cookie[i])
			race_posted(c->w, cookie[i], ret);
}

/* ---- Endpoints ----------------------------------------------------------- */

DAT_EP_STATE race_state(struct race_caller *c, struct race_obj *ep)
{
	DAT_EP_STATE state = DAT_EP_STATE_COMPLETION_PENDING;

	RACE(c, dat_ep_get_status, HANDLE, ep->handle, &state, NULL, NULL);
	return state;
}

void race_connect(struct race_caller *c, struct race_obj *ep, u16 port)
{
	if (!ep)
		return;
	atomic_inc(&ep->starts);
	if (RACE(c, dat_ep_connect, HANDLE | STATE | NO_ROOM, ep->handle,
		 race_address(&c->w->addr), port, 20 * USEC_PER_SEC, 0, NULL,
		 DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG) != DAT_SUCCESS)
		atomic_dec(&ep->starts);
	else
		atomic_inc(&c->w->stat[N_BEGUN]);
}

/* Return whether @ep was reset. */
bool race_reset(struct race_caller *c, struct race_obj *ep)
{
	DAT_RETURN ret;

	if (!ep)
		return false;
	race_begin(&ep->resets);
	ret = RACE(c, dat_ep_reset, HANDLE | STATE, ep->handle);
	race_end(&ep->resets);
	if (ret == DAT_SUCCESS)
		atomic_inc(&c->w->stat[N_RESETS]);
	return ret == DAT_SUCCESS;
}

static void ep_create(struct race_caller *c)
{
	static const enum race_slot slots[] = { S_EP, S_RESERVED, S_SPARE };

	race_replace(c, slots[rnd(c, ARRAY_SIZE(slots))]);
}

static void ep_create_with_srq(struct race_caller *c)
{
	race_replace(c, S_EP + 1 + rnd(c, 3));
}

static void ep_free(struct race_caller *c)
{
	race_free_slot(c, rnd(c, 8) ? S_EP + rnd(c, RACE_EPS) : S_SPARE);
}

static void ep_query(struct race_caller *c)
{
	DAT_EP_PARAM param;

	RACE(c, dat_ep_query, HANDLE, race_handle(pick_ep(c)), DAT_EP_FIELD_ALL, &param);
}

/*
 * Other sizes, which are refused if more receives are posted, and those with EVDs of
 * their own another one for receives.
 */
static void ep_modify(struct race_caller *c)
{
	DAT_EP_PARAM_MASK mask = DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS;
	struct race_obj *ep = pick_ep(c);
	DAT_EP_PARAM param = {};

	param.ep_attr.max_recv_dtos = 8 + rnd(c, 32);
	param.ep_attr.max_request_dtos = 8 + rnd(c, 32);
	param.recv_evd_handle = c->w->evd[rnd(c, 2) ? E_DTO : E_DTO2];
	if (!rnd(c, 8)) {
		/* Nobody connects it, so its EVD may be one that is freed. */
		ep = race_slot(c->w, S_SPARE);
		if (rnd(c, 2))
			param.recv_evd_handle = race_handle(race_slot(c->w, S_EVD));
	}
	if (rnd(c, 2))
		mask |= DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS;
	if (ep && !ep->ordered && rnd(c, 2))
		mask |= DAT_EP_FIELD_RECV_EVD_HANDLE;
	RACE(c, dat_ep_modify, HANDLE | STATE | PARAM | NO_ROOM, race_handle(ep), mask, &param);
}

static void ep_get_status(struct race_caller *c)
{
	DAT_BOOLEAN recv_idle, req_idle;
	DAT_EP_STATE state;

	RACE(c, dat_ep_get_status, HANDLE, race_handle(pick_ep(c)), &state, &recv_idle,
	     &req_idle);
}

static void ep_recv_query(struct race_caller *c)
{
	int clock = atomic_read(&c->w->freed);
	struct race_obj *ep = pick_ep(c);
	DAT_COUNT n = 0, span = 0;
	DAT_RETURN ret;

	ret = RACE(c, dat_ep_recv_query, HANDLE, race_handle(ep), &n, &span);
	if (n < 0 || span < n)
		race_fail(c->w, "dat_ep_recv_query(): %d, span %d", n, span);
	if (ret == DAT_SUCCESS && ep->srq)
		race_counted(c->w, ep, n, clock);
}

/* A hard mark breaks the connection when a message or two wait to be reaped. */
static void ep_set_watermark(struct race_caller *c)
{
	struct race_obj *ep = pick_ep(c);
	DAT_COUNT soft = rnd(c, 3);

	if (ep && READ_ONCE(ep->loose))
		soft -= !rnd(c, 4);
	race_set_watermark(c, ep, soft, rnd(c, 16) ? DAT_WATERMARK_INFINITE : rnd(c, 3));
}

static void ep_connect(struct race_caller *c)
{
	race_connect(c, pick_ep(c), c->w->port + (rnd(c, 4) ? 0 : rnd(c, RACE_PORTS)));
}

/* Pick an Endpoint in this state, if one is. */
struct race_obj *race_pick_in(struct race_caller *c, DAT_EP_STATE state)
{
	unsigned int i, begin = rnd(c, RACE_EPS);
	struct race_obj *ep;

	for (i = 0; i < RACE_EPS; i++) {
		ep = race_slot(c->w, S_EP + (begin + i) % RACE_EPS);
		if (ep && race_state(c, ep) == state)
			return ep;
	}
	return pick_ep(c);
}

/* As one that is up, mostly. */
static void ep_dup_connect(struct race_caller *c)
{
	struct race_obj *other = race_pick_in(c, DAT_EP_STATE_CONNECTED);
	struct race_obj *ep = race_pick_in(c, DAT_EP_STATE_UNCONNECTED);

	if (!ep)
		return;
	atomic_inc(&ep->starts);
	if (RACE(c, dat_ep_dup_connect, HANDLE | STATE | NO_ROOM, ep->handle,
		 race_handle(other), 20 * USEC_PER_SEC, 0, NULL,
		 DAT_QOS_BEST_EFFORT) != DAT_SUCCESS)
		atomic_dec(&ep->starts);
	else
		atomic_inc(&c->w->stat[N_BEGUN]);
}

static void ep_common_connect(struct race_caller *c)
{
	struct race_obj *ep = race_pick_in(c, DAT_EP_STATE_UNCONNECTED);
	struct sockaddr_storage to = c->w->addr;

	if (!ep)
		return;
	((struct sockaddr_in *)&to)->sin_port =
		htons(c->w->port + (rnd(c, 4) ? 0 : rnd(c, RACE_PORTS)));
	atomic_inc(&ep->starts);
	if (RACE(c, dat_ep_common_connect, HANDLE | STATE | NO_ROOM, ep->handle,
		 race_address(&to), 20 * USEC_PER_SEC, 0, NULL) != DAT_SUCCESS)
		atomic_dec(&ep->starts);
	else
		atomic_inc(&c->w->stat[N_BEGUN]);
}

static void ep_query_hard_hw(struct race_caller *c)
{
	DAT_BOOLEAN fired;

	RACE(c, kdat_ep_query_hard_hw, HANDLE, race_handle(pick_ep(c)), &fired);
}

/* ---- Handles ------------------------------------------------------------- */

static DAT_HANDLE pick_any(struct race_caller *c)
{
	return race_handle(rnd(c, 2) ? pick_ep(c) : race_slot(c->w, rnd(c, RACE_SLOTS)));
}

static void set_context(struct race_caller *c)
{
	DAT_CONTEXT context = { .as_64 = RACE_CONTEXT | rnd(c, 256) };

	RACE(c, dat_set_consumer_context, HANDLE, pick_any(c), context);
}

static void get_context(struct race_caller *c)
{
	DAT_CONTEXT context = {};

	if (RACE(c, dat_get_consumer_context, HANDLE, pick_any(c), &context) == DAT_SUCCESS &&
	    context.as_64 && (context.as_64 & ~255ULL) != RACE_CONTEXT)
		race_fail(c->w, "context %#llx, which nobody has set", (u64)context.as_64);
}

static void get_type(struct race_caller *c)
{
	enum race_slot slot = rnd(c, RACE_SLOTS);
	struct race_obj *obj = race_slot(c->w, slot);
	DAT_HANDLE_TYPE type;

	if (RACE(c, dat_get_handle_type, HANDLE, race_handle(obj), &type) == DAT_SUCCESS &&
	    type != obj->type)
		race_fail(c->w, "object %d is of type %d", slot, type);
}

static void ep_disconnect(struct race_caller *c)
{
	RACE(c, dat_ep_disconnect, HANDLE | STATE, race_handle(pick_ep(c)),
	     rnd(c, 2) ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG);
}

static void ep_reset(struct race_caller *c)
{
	race_reset(c, pick_ep(c));
}

/* ---- EVDs ---------------------------------------------------------------- */

static void evd_dequeue(struct race_caller *c)
{
	struct race_within *in = race_within(c);
	DAT_EVENT event;

	if (in && in->evd) {
		RACE(c, dat_evd_dequeue, EMPTY | HANDLE, in->evd, &event);
		return;
	}
	race_dequeue(c, E_MERGED + 1 + rnd(c, RACE_EVDS - 1));
}

static void evd_query(struct race_caller *c)
{
	DAT_EVD_PARAM param;

	RACE(c, dat_evd_query, HANDLE, pick_evd(c), DAT_EVD_FIELD_ALL, &param);
}

static void evd_resize(struct race_caller *c)
{
	race_begin(&c->w->rooms);
	RACE(c, dat_evd_resize, HANDLE | STATE | NO_ROOM, pick_evd(c), 16 + rnd(c, 256));
	race_end(&c->w->rooms);
}

static void evd_modify_upcall(struct race_caller *c)
{
	static const DAT_UPCALL_POLICY policies[] = {
		DAT_UPCALL_DISABLE, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_MANY,
		DAT_UPCALL_NOTIFY, DAT_UPCALL_TEARDOWN,
	};
	DAT_EVD_HANDLE evd = c->w->evd[rnd(c, 2) ? E_DTO : E_CONN];

	if (!rnd(c, 4))
		evd = race_handle(race_slot(c->w, S_EVD));
	RACE(c, dat_evd_modify_upcall, HANDLE, evd, policies[rnd(c, ARRAY_SIZE(policies))],
	     DAT_UPCALL_SAME, rnd(c, 2) ? DAT_UPCALL_INVOC_ANY : DAT_UPCALL_INVOC_NEW);
}

static void evd_wait_upcalls(struct race_caller *c)
{
	race_wait_upcalls(c, pick_evd(c));
}

/* Events of S_EVD, which is freed with what is in it, have no cookie. */
static void evd_post_se(struct race_caller *c)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	struct race_obj *evd = rnd(c, 2) ? race_slot(c->w, S_EVD) : NULL;
	DAT_RETURN ret;
	u64 cookie = 0;

	if (!evd) {
		cookie = race_post(c->w, K_SOFTWARE, &c->w->software);
		if (!cookie)
			return;
	}
	event.event_data.software_event_data.pointer = (DAT_PVOID)(uintptr_t)cookie;
	ret = RACE(c, dat_evd_post_se, HANDLE | FULL,
		   evd ? evd->handle : c->w->evd[E_CONN], &event);
	if (cookie)
		race_posted(c->w, cookie, ret);
}

static void evd_create(struct race_caller *c)
{
	race_replace(c, S_EVD);
}

static void evd_free(struct race_caller *c)
{
	/* The Endpoint that may use it is freed first mostly. */
	if (rnd(c, 4))
		race_free(c, race_slot(c->w, S_SPARE));
	race_free_slot(c, S_EVD);
	race_free_slot(c, S_SPARE);
}

/* ---- The table ----------------------------------------------------------- */

const struct race_call race_ep_calls[] = {
	RACE_CALL(dat_ep_post_recv, post_recv),
	RACE_CALL(dat_ep_post_send, post_send),
	RACE_CALL(dat_ep_post_send_with_invalidate, post_send_inv),
	RACE_CALL(dat_ep_post_rdma_write, post_write),
	RACE_CALL(dat_ep_post_rdma_read, post_read),
	RACE_CALL(dat_ep_post_rdma_read_to_rmr, post_read_to_rmr),
	RACE_CALL(kdat_ep_post_requests, post_requests),
	RACE_CALL(dat_srq_post_recv, srq_post_recv),
	RACE_CALL(dat_ep_create, ep_create),
	RACE_CALL(dat_ep_create_with_srq, ep_create_with_srq),
	RACE_CALL(dat_ep_free, ep_free),
	RACE_CALL(dat_ep_query, ep_query),
	RACE_CALL(dat_ep_modify, ep_modify),
	RACE_CALL(dat_ep_get_status, ep_get_status),
	RACE_CALL(dat_ep_recv_query, ep_recv_query),
	RACE_CALL(dat_ep_set_watermark, ep_set_watermark),
	RACE_CALL(dat_ep_connect, ep_connect),
	RACE_CALL(dat_ep_dup_connect, ep_dup_connect),
	RACE_CALL(dat_ep_common_connect, ep_common_connect),
	RACE_CALL(kdat_ep_query_hard_hw, ep_query_hard_hw),
	RACE_CALL(dat_set_consumer_context, set_context),
	RACE_CALL(dat_get_consumer_context, get_context),
	RACE_CALL(dat_get_handle_type, get_type),
	RACE_CALL(dat_ep_disconnect, ep_disconnect),
	RACE_CALL(dat_ep_reset, ep_reset),
	RACE_CALL(dat_evd_dequeue, evd_dequeue),
	RACE_CALL(dat_evd_query, evd_query),
	RACE_CALL(dat_evd_resize, evd_resize),
	RACE_CALL(dat_evd_modify_upcall, evd_modify_upcall),
	RACE_CALL(kdat_evd_wait_upcalls, evd_wait_upcalls),
	RACE_CALL(dat_evd_post_se, evd_post_se),
	RACE_CALL(dat_evd_kcreate, evd_create),
	RACE_CALL(dat_evd_free, evd_free),
};

const unsigned int race_nep_calls = ARRAY_SIZE(race_ep_calls);
