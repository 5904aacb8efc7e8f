// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bindings that the device gets with the next request: KDAT_COMPLETION_MORE_FLAG
 * (contract I8).
 */
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include "device.h"
#include "fmr_fixture.h"

#define MORE	(DAT_COMPLETION_SUPPRESS_FLAG | KDAT_COMPLETION_MORE_FLAG)
#define ROUNDS	3
#define AT_ONCE	3		/* bindings with one message */

static DAT_RETURN bind(struct mem_pair *c, struct fmr *f, struct pages *p,
		       DAT_COMPLETION_FLAGS flags, u64 cookie)
{
	DAT_REGION_DESCRIPTION desc = { .for_physical = p->phys };

	return dat_lmr_fmr(f->lmr, DAT_MEM_TYPE_PHYSICAL, desc, FMR_PAGES,
			   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, c->a->ep,
			   kd_cookie(cookie), flags, &f->context, &f->rkey);
}

static struct mem_pair make_pair(struct kunit *test, const DAT_EP_ATTR *attr)
{
	struct mem_pair c = mem_make_pair(test, attr);

	/* Over iWARP the passive side posts nothing before the first message. */
	mem_mark(&c);
	kd_count_doorbells(test, c.a->name);
	return c;
}

static void expect_told(struct mem_pair *c, int times)
{
	KUNIT_EXPECT_EQ(c->test, atomic_read(&kd_doorbells), times);
}

/* The message @cookie has arrived, and nothing but it has an event. */
static void expect_sent(struct mem_pair *c, u64 cookie)
{
	kd_expect_dto(c->test, c->p->recv_evd, cookie, DAT_DTO_SUCCESS, NULL);
	fmr_expect_op(c, cookie, DAT_DTO_SEND, DAT_DTO_SUCCESS);
	kd_expect_no_event(c->test, c->a->req_evd);
}

/* Several LMRs are bound with a message; they can be unbound, and bound so again. */
static void I8_bind_with_a_send(struct kunit *test)
{
	struct mem_pair c = make_pair(test, NULL);
	struct pages *p[AT_ONCE];
	struct fmr f[AT_ONCE];
	int i, n;

	for (i = 0; i < AT_ONCE; i++) {
		f[i] = fmr_make(&c, DAT_LMR_SCOPE_PZ);
		p[i] = fmr_make_pages(test);
	}
	for (n = 0; n < ROUNDS; n++) {
		atomic_set(&kd_doorbells, 0);
		for (i = 0; i < AT_ONCE; i++)
			KD_ASSERT_OK(test, bind(&c, &f[i], p[i], MORE, i));
		expect_told(&c, 0);
		kd_recv(c.p, 0, 64, 7);
		kd_send(c.a, 0, 64, 7);
		expect_told(&c, 1);
		expect_sent(&c, 7);
		for (i = 0; i < AT_ONCE; i++) {
			KUNIT_EXPECT_TRUE(test, fmr_is_bound(&c, &f[i]));
			fmr_use(&c, &f[i], 0, p[i]);
			fmr_unbind_ok(&c, &f[i]);
		}
	}
	for (i = 0; i < AT_ONCE; i++)
		KD_EXPECT_OK(test, dat_lmr_free(f[i].lmr));
}

/* The same with the first of several requests, and with that which unbinds. */
static void I8_bind_with_others(struct kunit *test)
{
	struct mem_pair c = make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, 64);
	struct pages *p = fmr_make_pages(test);
	KDAT_REQUEST r[] = {
		{ .operation = DAT_DTO_SEND, .num_segments = 1, .local_iov = &seg,
		  .completion_flags = DAT_COMPLETION_SUPPRESS_FLAG },
		{ .operation = DAT_DTO_SEND, .num_segments = 1, .local_iov = &seg,
		  .user_cookie = kd_cookie(8) },
	};

	KD_ASSERT_OK(test, bind(&c, &f, p, MORE, 1));
	kd_recv(c.p, 0, 64, 7);
	kd_recv(c.p, 64, 64, 8);
	KD_ASSERT_OK(test, kdat_ep_post_requests(c.a->ep, 2, r));
	expect_told(&c, 1);
	kd_expect_dto(test, c.p->recv_evd, 7, DAT_DTO_SUCCESS, NULL);
	expect_sent(&c, 8);
	fmr_use(&c, &f, 0, p);
	fmr_unbind_ok(&c, &f);

	atomic_set(&kd_doorbells, 0);
	KD_ASSERT_OK(test, bind(&c, &f, p, MORE, 1));
	fmr_unbind_ok(&c, &f);
	expect_told(&c, 1);
	KUNIT_EXPECT_FALSE(test, fmr_is_bound(&c, &f));
	fmr_bind_ok(&c, &f, p);
	fmr_use(&c, &f, 0, p);
}

/* Bindings alone fill the queue: whoever posts next finds room all the same. */
static void I8_bindings_fill_the_queue(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct pages *p = fmr_make_pages(test);
	struct fmr f[AT_ONCE];
	DAT_LMR_TRIPLET seg;
	struct mem_pair c;
	DAT_RETURN ret;
	int i, tries;

	attr.max_request_dtos = AT_ONCE;
	c = make_pair(test, &attr);
	for (i = 0; i < AT_ONCE; i++) {
		f[i] = fmr_make(&c, DAT_LMR_SCOPE_PZ);
		KD_ASSERT_OK(test, bind(&c, &f[i], p, MORE, i));
	}
	expect_told(&c, 0);
	kd_recv(c.p, 0, 64, 7);
	seg = kd_seg(c.a->buf, 0, 64);
	for (tries = 0; tries < KD_TIMEOUT_MS; tries++) {
		ret = dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(7), 0);
		if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
			break;
		usleep_range(1000, 2000);
	}
	KD_ASSERT_OK(test, ret);
	expect_sent(&c, 7);
	for (i = 0; i < AT_ONCE; i++)
		fmr_use(&c, &f[i], 0, p);
}

/* A graceful disconnect has what is held executed, as all that was posted. */
static void I8_bind_and_disconnect(struct kunit *test)
{
	struct mem_pair c = make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	struct pages *p = fmr_make_pages(test);

	KD_ASSERT_OK(test, bind(&c, &f, p, MORE, 1));
	KD_ASSERT_OK(test, dat_ep_disconnect(c.a->ep, DAT_CLOSE_GRACEFUL_FLAG));
	kd_expect_event(test, c.a->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
	kd_expect_no_event(test, c.a->req_evd);
	KUNIT_EXPECT_TRUE(test, fmr_is_bound(&c, &f));
	KD_EXPECT_OK(test, dat_lmr_free(f.lmr));
}

/* An abrupt one flushes it, and the LMR can be used on the next connection. */
static void I8_bind_is_flushed(struct kunit *test)
{
	struct mem_pair c = make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	struct pages *p = fmr_make_pages(test);
	DAT_RETURN ret;
	int tries;

	KD_ASSERT_OK(test, bind(&c, &f, p, MORE, 1));
	KD_ASSERT_OK(test, dat_ep_disconnect(c.a->ep, DAT_CLOSE_ABRUPT_FLAG));
	fmr_expect_op(&c, 1, DAT_DTO_LMR_FMR, DAT_DTO_ERR_FLUSHED);
	expect_told(&c, 0);
	KUNIT_ASSERT_TRUE(test, kd_wait_state(c.a->ep, DAT_EP_STATE_DISCONNECTED));
	KUNIT_ASSERT_TRUE(test, kd_wait_state(c.p->ep, DAT_EP_STATE_DISCONNECTED));
	mem_reconnect(&c);
	mem_mark(&c);
	for (tries = 0; tries < KD_TIMEOUT_MS; tries++) {
		ret = bind(&c, &f, p, MORE, 1);
		if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
			break;
		/* Its registration is being replaced. */
		usleep_range(1000, 2000);
	}
	KD_ASSERT_OK(test, ret);
	kd_recv(c.p, 0, 64, 7);
	kd_send(c.a, 0, 64, 7);
	expect_sent(&c, 7);
	fmr_use(&c, &f, 0, p);
}

static struct kd_hook device;

static int refuse(struct ib_qp *qp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad)
{
	return qp->qp_type == IB_QPT_RC ? -ENOMEM :
					  device.real.post_send(qp, wr, bad);
}

/* The driver refuses both: both complete, and the connection ends. */
static void I8_bind_is_refused(struct kunit *test)
{
	struct mem_pair c = make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	struct pages *p = fmr_make_pages(test);

	kd_hook(test, c.a->name, &device)->ops.post_send = refuse;
	KD_ASSERT_OK(test, bind(&c, &f, p, MORE, 1));
	kd_send(c.a, 0, 64, 7);
	kd_expect_event(test, c.a->conn_evd, DAT_CONNECTION_EVENT_BROKEN, NULL);
	fmr_expect_op(&c, 1, DAT_DTO_LMR_FMR, DAT_DTO_ERR_FLUSHED);
	fmr_expect_op(&c, 7, DAT_DTO_SEND, DAT_DTO_ERR_FLUSHED);
}

/* The flag is for bindings that complete silently, and for no other request. */
static void I8_more_is_refused(struct kunit *test)
{
	struct mem_pair c = make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, 64);
	struct pages *p = fmr_make_pages(test);

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      bind(&c, &f, p, KDAT_COMPLETION_MORE_FLAG, 1));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(1), MORE));
	fmr_bind_ok(&c, &f, p);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_lmr_invalidate(f.lmr, c.a->ep, kd_cookie(1), MORE));
	fmr_use(&c, &f, 0, p);
}

static struct kunit_case more_cases[] = {
	KUNIT_CASE_PARAM(I8_bind_with_a_send, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_bind_with_others, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_bindings_fill_the_queue, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_bind_and_disconnect, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_bind_is_flushed, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_bind_is_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(I8_more_is_refused, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-fmr-more", more_cases, "bindings that go with the next request");
