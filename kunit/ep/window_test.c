// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Calls between two lines of another call (contract C5): what was read before is not acted
 * upon if it is not so any more. Only calls that do not sleep can be made there. What one
 * that sleeps would have done by then is done by hand, as far as the other call sees it.
 */
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include "ep.h"
#include "evd.h"
#include "ia.h"
#include "../../drivers/kdapl/mem.h"
#include "cm.h"
#include "pz.h"
#include "srq.h"
#include "ep_states.h"
#include "inside.h"
#include "probe.h"

/* ---- dat_ep_query() within dat_ep_modify() --------------------------------- */

/*
 * struct queries - what queries have found
 * @old: before the change; @now: after it
 * @olds: queries that found the former; @others: neither the one nor the other
 */
struct queries {
	DAT_EP_HANDLE ep;
	DAT_EP_PARAM old;
	DAT_EP_PARAM now;
	DAT_EP_PARAM seen;
	unsigned int olds;
	unsigned int others;
};

static bool same(const DAT_EP_PARAM *a, const DAT_EP_PARAM *b)
{
	return a->pz_handle == b->pz_handle &&
	       a->recv_evd_handle == b->recv_evd_handle &&
	       a->request_evd_handle == b->request_evd_handle &&
	       a->connect_evd_handle == b->connect_evd_handle &&
	       a->ep_attr.max_recv_dtos == b->ep_attr.max_recv_dtos;
}

static void query(void *data)
{
	struct queries *q = data;

	if (dat_ep_query(q->ep, DAT_EP_FIELD_ALL, &q->seen) != DAT_SUCCESS)
		q->others++;
	else if (same(&q->seen, &q->old))
		q->olds++;
	else if (!same(&q->seen, &q->now))
		q->others++;
}

static void M2_query_within_modify(struct kunit *test)
{
	struct queries *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	struct kd_side *s = kd_open_param(test);
	DAT_RETURN ret;

	KUNIT_ASSERT_NOT_NULL(test, q);
	kd_setup(s, NULL);
	q->ep = s->ep;
	KD_ASSERT_OK(test, dat_ep_query(s->ep, DAT_EP_FIELD_ALL, &q->old));
	q->now = q->old;
	KD_ASSERT_OK(test, dat_pz_create(s->ia, &q->now.pz_handle));
	q->now.recv_evd_handle = kd_evd(s, DAT_EVD_DTO_FLAG, 64, DAT_UPCALL_DISABLE);
	q->now.request_evd_handle = kd_evd(s, DAT_EVD_DTO_FLAG, 64, DAT_UPCALL_DISABLE);
	q->now.connect_evd_handle = kd_evd(s, DAT_EVD_CONNECTION_FLAG, 64,
					   DAT_UPCALL_DISABLE);
	q->now.ep_attr.max_recv_dtos++;
	kd_at_lock(test, KD_TAKING, "&ep->lock", 0, query, q);
	ret = dat_ep_modify(s->ep, DAT_EP_FIELD_PZ_HANDLE |
			    DAT_EP_FIELD_RECV_EVD_HANDLE |
			    DAT_EP_FIELD_REQUEST_EVD_HANDLE |
			    DAT_EP_FIELD_CONNECT_EVD_HANDLE |
			    DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &q->now);
	KUNIT_EXPECT_GE(test, kd_left_lock(), 2);
	KD_EXPECT_OK(test, ret);
	KUNIT_EXPECT_GT(test, q->olds, 0);
	KUNIT_EXPECT_EQ(test, q->others, 0);
	query(q);
	KUNIT_EXPECT_TRUE(test, same(&q->seen, &q->now));
	KD_EXPECT_OK(test, dat_ep_free(s->ep));
	s->ep = NULL;
}

/* ---- dat_rsp_create() within dat_ep_free() --------------------------------- */

/*
 * struct reserving - an Endpoint that an RSP reserves
 * @done: it has
 */
struct reserving {
	struct kdapl_ep *ep;
	bool done;
};

/* As kdapl_rsp_reserve() does. */
static void reserve(void *data)
{
	struct reserving *r = data;

	spin_lock(&r->ep->lock);
	r->done = !r->ep->dying;
	if (r->done)
		WRITE_ONCE(r->ep->state, DAT_EP_STATE_RESERVED);
	spin_unlock(&r->ep->lock);
}

/* An Endpoint is reserved, or freed, and not both. */
static void C5_reserve_within_free(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct reserving r = { };
	DAT_RETURN ret;

	kd_setup(s, NULL);
	r.ep = kd_inside(s->ep, DAT_HANDLE_TYPE_EP);
	/* At the first one it is reserved before. */
	kd_at_lock(test, KD_TAKING, "&ep->lock", 2, reserve, &r);
	ret = dat_ep_free(s->ep);
	KUNIT_EXPECT_EQ(test, kd_left_lock(), 1);
	s->ep = NULL;
	KUNIT_EXPECT_NE_MSG(test, r.done, ret == DAT_SUCCESS, "reserved: %d, free: %s",
			    r.done, kd_strerror(ret));
}

/* ---- dat_ep_modify() within posting ----------------------------------------- */

/*
 * struct other_evd - an Endpoint gets another EVD for its requests
 * @evd: that one, or NULL
 */
struct other_evd {
	struct kdapl_ep *ep;
	struct kdapl_evd *evd;
};

static void change_evd(void *data)
{
	struct other_evd *o = data;

	WRITE_ONCE(o->ep->req_evd, o->evd);
}

/*
 * The send queue is full. While the call polls for what completes without an event, the
 * connection ends, the Endpoint is reset and loses its EVD.
 */
static void C5_evd_goes_while_the_queue_is_full(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, 64);
	DAT_EP_ATTR attr = kd_ep_attr();
	struct other_evd o = { };
	struct kdapl_evd *evd;
	DAT_RETURN ret;

	if (kd_is_iwarp(c.a))
		kunit_skip(test, "a Send does not wait for a receive");
	KD_ASSERT_OK(test, dat_ep_free(c.a->ep));
	attr.max_request_dtos = 1;
	c.a->ep = kd_ep(c.a, &attr);
	kd_connect_pair(c.a, c.p);
	kd_send(c.a, 0, 64, 1);
	o.ep = kd_inside(c.a->ep, DAT_HANDLE_TYPE_EP);
	evd = o.ep->req_evd;
	kd_at_lock(test, KD_DROPPING, "&ep->sq.lock", 1, change_evd, &o);
	ret = dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(2), 0);
	WRITE_ONCE(o.ep->req_evd, evd);
	KUNIT_EXPECT_EQ(test, kd_left_lock(), 1);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, ret);
}

/*
 * A request is posted that has to be flushed, and the Endpoint is reset meanwhile, gets
 * another EVD, and has had one more connection: the request belongs to that EVD now.
 */
static void C5_evd_changes_while_a_post_flushes(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, 64);
	struct other_evd o = { };
	struct kdapl_evd *evd;
	DAT_EVD_HANDLE other;
	DAT_EVENT event;
	DAT_RETURN ret;

	kd_connect_pair(c.a, c.p);
	kd_disconnect(c.a, c.p);
	other = kd_evd(c.a, DAT_EVD_DTO_FLAG, 64, DAT_UPCALL_DISABLE);
	o.ep = kd_inside(c.a->ep, DAT_HANDLE_TYPE_EP);
	o.evd = kd_inside(other, DAT_HANDLE_TYPE_EVD);
	evd = o.ep->req_evd;
	kd_at_lock(test, KD_TAKING, "&evd->lock", 1, change_evd, &o);
	ret = dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(1), 0);
	KUNIT_EXPECT_EQ(test, kd_left_lock(), 1);
	KD_EXPECT_OK(test, ret);
	KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(dat_evd_dequeue(other, &event)),
			(u32)DAT_SUCCESS);
	WRITE_ONCE(o.ep->req_evd, evd);
	kd_expect_no_event(test, c.a->req_evd);
}

/* ---- A connection that is established within posting -------------------------- */

static void is_connected(void *data)
{
	struct kdapl_ep *ep = data;

	WRITE_ONCE(ep->state, DAT_EP_STATE_CONNECTED);
}

/*
 * The connection is established when an RDMA Read has been checked, up to its lock: the peer
 * answers none, so that one which is posted would never end.
 */
static void connected_within_a_read(struct kunit *test, bool batch)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, 64);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, 64);
	KDAT_REQUEST request = {
		.operation = DAT_DTO_RDMA_READ,
		.num_segments = 1,
		.local_iov = &seg,
		.remote_iov = &remote,
	};
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	if (kd_is_iwarp(c.a))
		kunit_skip(test, "the device does not know the peer's depth");
	attr.max_rdma_read_in = 0;
	KD_ASSERT_OK(test, dat_ep_free(c.p->ep));
	c.p->ep = kd_ep(c.p, &attr);
	kd_connect_pair(c.a, c.p);
	ep = kd_inside(c.a->ep, DAT_HANDLE_TYPE_EP);
	WRITE_ONCE(ep->state, DAT_EP_STATE_COMPLETION_PENDING);
	kd_at_lock(test, KD_TAKING, "&ep->sq.lock", 1, is_connected, ep);
	if (batch)
		ret = kdat_ep_post_requests(c.a->ep, 1, &request);
	else
		ret = dat_ep_post_rdma_read(c.a->ep, 1, &seg, kd_cookie(1), &remote, 0);
	is_connected(ep);
	KUNIT_EXPECT_EQ(test, kd_left_lock(), 1);
	KUNIT_EXPECT_EQ(test, ret,
			DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_CREDITS));
}

static void C5_connected_within_a_read(struct kunit *test)
{
	connected_within_a_read(test, false);
}

static void C5_connected_within_a_batch(struct kunit *test)
{
	connected_within_a_read(test, true);
}

/* ---- An RMR that is bound elsewhere within another call ---------------------------- */

/* struct elsewhere - an RMR that is bound on another Endpoint, which is connected as well */
struct elsewhere {
	struct kdapl_rmr *rmr;
	u64 handle;
};

static void binds_elsewhere(void *data)
{
	struct elsewhere *e = data;

	e->rmr->bound_on = e->handle;
}

/* With scope EP only the Endpoint on which it is bound may close a window. */
static void L4_bound_elsewhere_within_an_unbind(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	DAT_LMR_TRIPLET part = kd_seg(c.a->buf, 0, 64), none = { };
	struct elsewhere e = { };
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_RETURN ret;

	kd_connect_pair(c.a, c.p);
	KD_ASSERT_OK(test, dat_rmr_create_for_ep(c.a->pz, &rmr));
	KD_ASSERT_OK(test, dat_rmr_bind(rmr, c.a->buf->lmr, &part,
					DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
					c.a->ep, kd_cookie(1), 0, &context));
	kd_expect_event(test, c.a->req_evd, DAT_RMR_BIND_COMPLETION_EVENT, NULL);
	e.rmr = kd_inside(rmr, DAT_HANDLE_TYPE_RMR);
	e.handle = (uintptr_t)c.p->ep;
	/* The first time the call looks whether it may. */
	kd_at_lock(test, KD_TAKING, "&rmr->lock", 2, binds_elsewhere, &e);
	ret = dat_rmr_bind(rmr, NULL, &none, 0, DAT_VA_TYPE_VA, c.a->ep, kd_cookie(2), 0,
			   &context);
	KUNIT_EXPECT_EQ(test, kd_left_lock(), 1);
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION, ret);
	e.rmr->bound_on = (uintptr_t)c.a->ep;
	kd_expect_no_event(test, c.a->req_evd);
	KD_EXPECT_OK(test, dat_rmr_free(rmr));
}

/* ---- Two calls of dat_evd_modify_upcall() ----------------------------------- */

/*
 * struct upcalls - an EVD whose upcall two calls change
 * @keep: what the one that keeps the upcall returns
 * @drop: what the one that takes it away returns
 */
struct upcalls {
	DAT_EVD_HANDLE evd;
	DAT_RETURN keep;
	DAT_RETURN drop;
};

static void drop_upcall(void *data)
{
	DAT_UPCALL_OBJECT none = { };
	struct upcalls *u = data;

	u->drop = dat_evd_modify_upcall(u->evd, DAT_UPCALL_DISABLE, &none,
					DAT_UPCALL_INVOC_ANY);
}

/* From within the upcall both calls may be made in any context. */
static void two_modify(struct kd_recorder *rec, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_UPCALL_OBJECT good = kd_upcall(rec);
	struct upcalls *u = rec->priv;

	kd_at_lock_here();
	u->keep = dat_evd_modify_upcall(u->evd, DAT_UPCALL_MANY, DAT_UPCALL_SAME,
					DAT_UPCALL_INVOC_ANY);
	kd_left_lock();
	/* An EVD that calls nobody's function must not come to that. */
	dat_evd_modify_upcall(u->evd, DAT_UPCALL_SINGLE_INSTANCE, &good,
			      DAT_UPCALL_INVOC_ANY);
}

/* An EVD with a policy that makes upcalls has an upcall. */
static void C5_two_modify_an_upcall(struct kunit *test)
{
	const DAT_EVENT soft = { .event_number = DAT_SOFTWARE_EVENT };
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_side *s = kd_open_param(test);
	struct upcalls u = { };

	rec->hook = two_modify;
	rec->priv = &u;
	u.evd = kd_recorded_evd(s, DAT_EVD_SOFTWARE_FLAG, 8,
				DAT_UPCALL_SINGLE_INSTANCE, rec);
	u.drop = ~0U;
	kd_at_lock(test, KD_TAKING, "&evd->lock", 1, drop_upcall, &u);
	kd_left_lock();
	KD_ASSERT_OK(test, dat_evd_post_se(u.evd, &soft));
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, 1));
	KD_EXPECT_OK(test, u.drop);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, u.keep);
}

/* ---- Walks over the objects of an IA ---------------------------------------- */

#if defined(CONFIG_DEBUG_SPINLOCK) && defined(CONFIG_DEBUG_MUTEXES)
static bool lock_is_made(const spinlock_t *lock)
{
	return lock->rlock.magic == SPINLOCK_MAGIC;
}

static bool mutex_is_made(const struct mutex *mutex)
{
	return mutex->magic == mutex;
}
#else
static bool lock_is_made(const spinlock_t *lock)
{
	return true;
}

static bool mutex_is_made(const struct mutex *mutex)
{
	return true;
}
#endif

#define AS(type)	container_of(obj, struct kdapl_##type, obj)

/* Has the object the locks, lists and works that its type has? */
static bool is_made(struct kdapl_obj *obj)
{
	switch (kdapl_type(obj)) {
	case DAT_HANDLE_TYPE_EP:
		return mutex_is_made(&AS(ep)->mutex) && lock_is_made(&AS(ep)->lock) &&
		       lock_is_made(&AS(ep)->sq.lock) && lock_is_made(&AS(ep)->rq.lock) &&
		       AS(ep)->parked.next;
	case DAT_HANDLE_TYPE_EVD:
		return lock_is_made(&AS(evd)->lock) && mutex_is_made(&AS(evd)->mutex) &&
		       mutex_is_made(&AS(evd)->stop_mutex) && AS(evd)->events.next;
	case DAT_HANDLE_TYPE_SRQ:
		return lock_is_made(&AS(srq)->lock) && mutex_is_made(&AS(srq)->mutex) &&
		       AS(srq)->arm_work.func;
	case DAT_HANDLE_TYPE_LMR:
		return lock_is_made(&AS(lmr)->lock) && AS(lmr)->recycle.func;
	case DAT_HANDLE_TYPE_RMR:
		return lock_is_made(&AS(rmr)->lock) && AS(rmr)->recycle.func;
	case DAT_HANDLE_TYPE_PZ:
		return mutex_is_made(&AS(pz)->svc_mutex) && lock_is_made(&AS(pz)->sg_lock);
	default:
		return mutex_is_made(&AS(sp)->mutex) && AS(sp)->listeners.next;
	}
}

/*
 * struct newcomers - objects that come to the list of an IA
 * @last: the last one that has come
 * @n: how many have; @unmade: of these, without their locks
 */
struct newcomers {
	struct kdapl_ia *ia;
	struct kdapl_obj *last;
	unsigned int n;
	unsigned int unmade;
};

/* The lock of the IA is held. */
static void look_at_last(void *data)
{
	struct newcomers *c = data;
	struct kdapl_obj *obj = list_last_entry(&c->ia->objs, struct kdapl_obj, link);

	if (obj == c->last)
		return;
	c->last = obj;
	c->n++;
	c->unmade += !is_made(obj);
}

static void C5_found_with_its_locks(struct kunit *test)
{
	struct newcomers *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct kd_side *s = kd_open_param(test);
	DAT_RMR_HANDLE rmr;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->ia = kd_inside(s->ia, DAT_HANDLE_TYPE_IA);
	c->last = list_last_entry(&c->ia->objs, struct kdapl_obj, link);
	kd_at_lock(test, KD_DROPPING, "&ia->lock", 0, look_at_last, c);
	/* A PZ, EVDs, an LMR, an SRQ and an Endpoint. */
	kd_setup(s, &(struct kd_opts) { .srq_len = 8 });
	kd_psp(s, kd_port(), DAT_PSP_CONSUMER_FLAG);
	KD_EXPECT_OK(test, dat_rmr_create(s->pz, &rmr));
	KUNIT_EXPECT_GT(test, kd_left_lock(), 0);
	KUNIT_EXPECT_GE(test, c->n, 9);
	KUNIT_EXPECT_EQ_MSG(test, c->unmade, 0, "of %u", c->n);
	KD_EXPECT_OK(test, dat_rmr_free(rmr));
}

static struct kunit_case window_cases[] = {
	KUNIT_CASE_PARAM(M2_query_within_modify, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_reserve_within_free, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_evd_changes_while_a_post_flushes, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_connected_within_a_read, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_connected_within_a_batch, kd_gen_ia),
	KUNIT_CASE_PARAM(L4_bound_elsewhere_within_an_unbind, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_two_modify_an_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_found_with_its_locks, kd_gen_ia),
	KUNIT_CASE_PARAM(C5_evd_goes_while_the_queue_is_full, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-window", window_cases, "calls between two lines of another call");
KDAPL_IMPORT_TEST;
