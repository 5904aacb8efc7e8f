// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clause L3: an LMR of dat_lmr_allocate() that the peer's Send invalidates is
 * unbound when the receive is reported, and can be bound again without
 * dat_lmr_invalidate(). Storage consumers save a work request per transfer this
 * way.
 */
#include <linux/module.h>
#include "fixture.h"

#define PAGE_AT		0	/* of the memory that is bound */
#define MESSAGE_AT	SZ_32K
#define ROUNDS		20

static bool bound(struct kunit *test, DAT_LMR_HANDLE lmr)
{
	DAT_LMR_PARAM param;

	KD_ASSERT_OK(test, dat_lmr_query(lmr, DAT_LMR_FIELD_LMR_STATE, &param));
	return param.lmr_state.bound;
}

/*
 * Bind @lmr to a page of @side that the peer may write, and wait for the
 * completion: no message tells the peer the key, which would be ordered after
 * the bind.
 */
static DAT_RETURN bind(struct kd_side *side, DAT_LMR_HANDLE lmr,
		       DAT_RMR_CONTEXT *rmr_context)
{
	DAT_REGION_DESCRIPTION region = { .for_va = side->buf->va + PAGE_AT };
	DAT_LMR_CONTEXT context;
	DAT_RETURN ret;

	ret = dat_lmr_fmr(lmr, DAT_MEM_TYPE_VIRTUAL, region, 1,
			  DAT_MEM_PRIV_LOCAL_READ_FLAG |
			  DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
			  DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
			  side->ep, kd_cookie(1), DAT_COMPLETION_DEFAULT_FLAG,
			  &context, rmr_context);
	if (ret == DAT_SUCCESS)
		kd_expect_dto(side->test, side->req_evd, 1, DAT_DTO_SUCCESS,
			      NULL);
	return ret;
}

/* Let the peer write the page and invalidate its key. */
static void write_and_invalidate(struct kd_side *peer, struct kd_side *side,
				 DAT_RMR_CONTEXT rmr_context, u32 seed)
{
	DAT_LMR_TRIPLET page = kd_seg(peer->buf, PAGE_AT, PAGE_SIZE);
	DAT_LMR_TRIPLET message = kd_seg(peer->buf, MESSAGE_AT, 64);
	DAT_RMR_TRIPLET remote = kd_remote(side->buf, PAGE_AT, PAGE_SIZE);

	remote.rmr_context = rmr_context;
	kd_fill(peer->buf->va + PAGE_AT, PAGE_SIZE, seed);
	KD_ASSERT_OK(peer->test,
		     dat_ep_post_rdma_write(peer->ep, 1, &page, kd_cookie(2),
					    &remote,
					    DAT_COMPLETION_SUPPRESS_FLAG));
	KD_ASSERT_OK(peer->test,
		     dat_ep_post_send_with_invalidate(peer->ep, 1, &message,
						      kd_cookie(3),
						      DAT_COMPLETION_DEFAULT_FLAG,
						      DAT_TRUE, rmr_context));
	kd_expect_dto(peer->test, peer->req_evd, 3, DAT_DTO_SUCCESS, NULL);
}

static void expect_invalidated(struct kd_side *side, u64 cookie,
			       DAT_RMR_CONTEXT rmr_context)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	kd_expect_dto(side->test, side->recv_evd, cookie, DAT_DTO_SUCCESS,
		      &event);
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_EQ(side->test, dto->operation,
			DAT_DTO_RECEIVE_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(side->test, dto->rmr_context, rmr_context);
}

static void L3_peer_invalidates(struct kunit *test)
{
	struct kd_side *side = kd_open_param(test);
	struct kd_side *peer = kd_open_param(test);
	DAT_RMR_CONTEXT rmr_context, last = 0;
	DAT_LMR_HANDLE lmr;
	int i;

	kd_setup(side, NULL);
	kd_setup(peer, NULL);
	kd_connect_pair(side, peer);
	KD_ASSERT_OK(test, dat_lmr_allocate(side->ia, side->pz, 4,
					    DAT_LMR_SCOPE_PZ, &lmr));
	for (i = 0; i < ROUNDS; i++) {
		kd_recv(side, MESSAGE_AT, 64, 100 + i);
		KD_ASSERT_OK(test, bind(side, lmr, &rmr_context));
		KUNIT_EXPECT_NE(test, rmr_context, last);
		last = rmr_context;
		KD_EXPECT_RET(test, DAT_INVALID_STATE,
			      bind(side, lmr, &rmr_context));
		write_and_invalidate(peer, side, last, i);
		expect_invalidated(side, 100 + i, last);
		KUNIT_EXPECT_FALSE(test, bound(test, lmr));
		/* The end of the binding has handed it over. */
		KUNIT_EXPECT_TRUE(test, kd_has_pattern(side->buf->va + PAGE_AT,
						       PAGE_SIZE, i));
		KD_EXPECT_RET(test, DAT_INVALID_STATE,
			      dat_lmr_invalidate(lmr, side->ep, kd_cookie(4),
						 DAT_COMPLETION_DEFAULT_FLAG));
	}
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
}

/*
 * Invalidating the key of another LMR, or an old key, does not unbind this one.
 */
static void L3_peer_invalidates_another(struct kunit *test)
{
	struct kd_side *side = kd_open_param(test);
	struct kd_side *peer = kd_open_param(test);
	DAT_RMR_CONTEXT a_context, b_context;
	DAT_LMR_HANDLE a, b;

	kd_setup(side, NULL);
	kd_setup(peer, NULL);
	kd_connect_pair(side, peer);
	KD_ASSERT_OK(test, dat_lmr_allocate(side->ia, side->pz, 1,
					    DAT_LMR_SCOPE_PZ, &a));
	KD_ASSERT_OK(test, dat_lmr_allocate(side->ia, side->pz, 1,
					    DAT_LMR_SCOPE_PZ, &b));
	kd_recv(side, MESSAGE_AT, 64, 100);
	KD_ASSERT_OK(test, bind(side, a, &a_context));
	KD_ASSERT_OK(test, bind(side, b, &b_context));
	write_and_invalidate(peer, side, b_context, 1);
	expect_invalidated(side, 100, b_context);
	KUNIT_EXPECT_TRUE(test, bound(test, a));
	KUNIT_EXPECT_FALSE(test, bound(test, b));
	KD_EXPECT_OK(test, dat_lmr_invalidate(a, side->ep, kd_cookie(5),
					      DAT_COMPLETION_DEFAULT_FLAG));
	kd_expect_dto(test, side->req_evd, 5, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_FALSE(test, bound(test, a));
	KD_EXPECT_OK(test, dat_lmr_free(a));
	KD_EXPECT_OK(test, dat_lmr_free(b));
}

static struct kunit_case invalidate_cases[] = {
	KUNIT_CASE_PARAM(L3_peer_invalidates, kd_gen_ia),
	KUNIT_CASE_PARAM(L3_peer_invalidates_another, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-invalidate", invalidate_cases, "LMRs invalidated by the peer");
