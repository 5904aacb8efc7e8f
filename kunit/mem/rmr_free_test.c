// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Freeing an RMR whose bind or unbind waits behind a Send for which the peer has posted
 * no receive (contract L6): the call is refused and changes nothing, or the peer does not
 * reach the memory any more, now and later.
 */
#include <linux/module.h>
#include "rmr_fixture.h"

#define STUCK	40			/* cookie of the Send that waits */
#define IN_USE	DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE)

/* A connected pair with a Send that cannot complete before send_goes_on(). */
static struct mem_pair make_stuck_pair(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);

	if (kd_is_iwarp(c.a))
		kunit_skip(test, "a Send without a receive ends the connection");
	return c;
}

/*
 * rxe repeats a bind with the Send in front of it, and may end the connection since the MR is
 * registered already. Then nothing is left to be seen.
 */
static void skip_if_ended(struct mem_pair *c)
{
	if (kd_state(c->a) != DAT_EP_STATE_CONNECTED)
		kunit_skip(c->test, "the device has ended the connection");
}

static void send_goes_on(struct mem_pair *c)
{
	kd_recv(c->p, SZ_32K, 64, STUCK);
	kd_expect_dto(c->test, c->p->recv_evd, STUCK, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(c->test, c->a->req_evd, STUCK, DAT_DTO_SUCCESS, NULL);
}

static void unbind_later(struct mem_pair *c, DAT_RMR_HANDLE rmr)
{
	DAT_RMR_CONTEXT none;

	kd_send(c->a, SZ_32K, 64, STUCK);
	KD_ASSERT_OK(c->test, rmr_bind(c, rmr, 0, 0, 0, DAT_VA_TYPE_VA, &none));
}

static DAT_RMR_CONTEXT bind_later(struct mem_pair *c, DAT_RMR_HANDLE rmr)
{
	DAT_RMR_CONTEXT context = 0;

	kd_send(c->a, SZ_32K, 64, STUCK);
	KD_ASSERT_OK(c->test, rmr_bind(c, rmr, 0, RMR_PART, RMR_REMOTE, DAT_VA_TYPE_VA,
				       &context));
	return context;
}

/* Free @rmr, whose last binding has @context. */
static void expect_freed(struct mem_pair *c, DAT_RMR_HANDLE rmr, DAT_RMR_CONTEXT context)
{
	KD_ASSERT_OK(c->test, dat_rmr_free(rmr));
	mem_expect_refused(c, rmr_shown(c, 0, 64, context), true, "write, freed");
	mem_expect_refused(c, rmr_shown(c, 0, 64, context), false, "read, freed");
}

/*
 * dat_rmr_free() has returned @ret while a request for @rmr waits, @what. Either the RMR is freed
 * and @context closed; or nothing has changed, and the request is still to come, and comes.
 */
static bool was_freed(struct mem_pair *c, DAT_RMR_HANDLE rmr, DAT_RETURN ret,
		      DAT_RMR_CONTEXT context, const char *what)
{
	if (ret == DAT_SUCCESS) {
		mem_expect_refused(c, rmr_shown(c, 0, 64, context), true, what);
		return true;
	}
	KUNIT_ASSERT_EQ(c->test, ret, IN_USE);
	mem_write(c, rmr_shown(c, 0, 64, context));
	send_goes_on(c);
	rmr_expect_bound(c, rmr, DAT_DTO_SUCCESS);
	return false;
}

/* The device has not come to the unbind: the peer still knows a good context. */
static void L6_unbind_behind_a_stalled_send(struct kunit *test)
{
	struct mem_pair c = make_stuck_pair(test);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;

	context = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	unbind_later(&c, rmr);
	if (was_freed(&c, rmr, dat_rmr_free(rmr), context, "unbind waits"))
		return;
	context = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	expect_freed(&c, rmr, context);
}

/* The device comes to the bind after the call. */
static void L6_bind_behind_a_stalled_send(struct kunit *test)
{
	struct mem_pair c = make_stuck_pair(test);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT context;
	DAT_RETURN ret;

	context = bind_later(&c, rmr);
	ret = dat_rmr_free(rmr);
	skip_if_ended(&c);
	send_goes_on(&c);
	if (ret == DAT_SUCCESS) {
		kd_expect_event(test, c.a->req_evd, DAT_RMR_BIND_COMPLETION_EVENT, NULL);
		mem_expect_refused(&c, rmr_shown(&c, 0, 64, context), true, "bound later");
		return;
	}
	KUNIT_ASSERT_EQ(test, ret, IN_USE);
	rmr_expect_bound(&c, rmr, DAT_DTO_SUCCESS);
	mem_write(&c, rmr_shown(&c, 0, 64, context));
	expect_freed(&c, rmr, context);
}

/* A rebind that waits leaves the old window open, and opens another one later. */
static void L6_rebind_behind_a_stalled_send(struct kunit *test)
{
	struct mem_pair c = make_stuck_pair(test);
	DAT_RMR_HANDLE rmr = rmr_make(&c);
	DAT_RMR_CONTEXT old, context;
	DAT_RETURN ret;

	old = rmr_bind_ok(&c, rmr, 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	context = bind_later(&c, rmr);
	ret = dat_rmr_free(rmr);
	skip_if_ended(&c);
	if (was_freed(&c, rmr, ret, old, "rebind waits"))
		return;
	mem_write(&c, rmr_shown(&c, 0, 64, context));
	expect_freed(&c, rmr, context);
}

/* Have the unbind of one RMR and the bind of another one wait. */
static void stall_binds(struct mem_pair *c, DAT_RMR_HANDLE rmr[2])
{
	rmr[0] = rmr_make(c);
	rmr[1] = rmr_make(c);
	rmr_bind_ok(c, rmr[0], 0, RMR_REMOTE, DAT_VA_TYPE_VA);
	unbind_later(c, rmr[0]);
	bind_later(c, rmr[1]);
}

/* Requests of an Endpoint that was freed before have ended when the RMR is free. */
static void L6_rmr_free_after_its_endpoint(struct kunit *test)
{
	struct mem_pair c = make_stuck_pair(test);
	DAT_RMR_HANDLE rmr[2];

	stall_binds(&c, rmr);
	KD_ASSERT_OK(test, dat_ep_free(c.a->ep));
	c.a->ep = NULL;
	KD_EXPECT_OK(test, dat_rmr_free(rmr[0]));
	KD_EXPECT_OK(test, dat_rmr_free(rmr[1]));
	/* Neither has left a window on it. */
	KD_EXPECT_OK(test, dat_lmr_free(c.a->buf->lmr));
	kd_expect_disconnected(c.p, NULL);
}

/* dat_ia_close() ends what it has to wait for. */
static void L6_close_with_stalled_binds(struct kunit *test)
{
	struct mem_pair c = make_stuck_pair(test);
	DAT_RMR_HANDLE rmr[2];

	stall_binds(&c, rmr);
	kd_close(c.a);
	kd_expect_disconnected(c.p, NULL);
}

static struct kunit_case rmr_free_cases[] = {
	KUNIT_CASE_PARAM(L6_unbind_behind_a_stalled_send, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_bind_behind_a_stalled_send, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_rebind_behind_a_stalled_send, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_rmr_free_after_its_endpoint, kd_gen_ia),
	KUNIT_CASE_PARAM(L6_close_with_stalled_binds, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-rmr-free", rmr_free_cases, "freeing RMRs whose binds wait");
