// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dat_ep_post_send_with_invalidate(): what the receive event says, and the
 * state of the LMR or RMR whose context the peer's message has invalidated.
 */
#include <linux/module.h>
#include "fmr_fixture.h"

static DAT_RETURN send_inv(struct mem_pair *c, DAT_BOOLEAN inv,
			   DAT_RMR_CONTEXT rkey)
{
	DAT_LMR_TRIPLET seg = kd_seg(c->p->buf, 0, 64);

	return dat_ep_post_send_with_invalidate(c->p->ep, 1, &seg, kd_cookie(7),
						0, inv, rkey);
}

static void expect_invalidated(struct mem_pair *c, DAT_RMR_CONTEXT rkey)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	kd_recv(c->a, KD_BUF_LEN - 64, 64, 6);
	KD_ASSERT_OK(c->test, send_inv(c, DAT_TRUE, rkey));
	kd_expect_dto(c->test, c->a->recv_evd, 6, DAT_DTO_SUCCESS, &event);
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_EQ(c->test, (int)dto->operation,
			(int)DAT_DTO_RECEIVE_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(c->test, dto->rmr_context, rkey);
	KUNIT_EXPECT_EQ(c->test, dto->transfered_length, 64);
	kd_expect_dto(c->test, c->p->req_evd, 7, DAT_DTO_SUCCESS, &event);
	KUNIT_EXPECT_EQ(c->test, (int)event.event_data.dto_completion_event_data
			.operation, (int)DAT_DTO_SEND);
}

static void invalidated_by_the_peer(struct kunit *test)
{
	struct pages *p = fmr_make_pages(test);
	struct mem_pair c = mem_make_pair(test, NULL);
	struct fmr f = fmr_make(&c, DAT_LMR_SCOPE_PZ), old;
	int i;

	for (i = 0; i < 3; i++) {
		fmr_bind_ok(&c, &f, p);
		fmr_use(&c, &f, 0, p);
		old = f;
		expect_invalidated(&c, f.rkey);
		KUNIT_EXPECT_FALSE(test, fmr_is_bound(&c, &f));
		fmr_expect_closed(&c, old);
	}
}

static void rmr_invalidated_by_the_peer(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_LMR_TRIPLET part = kd_seg(c.a->buf, 0, PAGE_SIZE), none = part;
	DAT_RMR_CONTEXT context;
	DAT_RMR_TRIPLET shown;
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;
	int i;

	none.segment_length = 0;
	KD_ASSERT_OK(test, dat_rmr_create(c.a->pz, &rmr));
	for (i = 0; i < 4; i++) {
		KD_ASSERT_OK(test, dat_rmr_bind(rmr, c.a->buf->lmr, &part,
						DAT_MEM_PRIV_ALL_FLAG, 0,
						c.a->ep, kd_cookie(1), 0,
						&context));
		/*
		 * Do so with and without reaping the bind. The peer may use the
		 * context once it has received a message that was sent after
		 * the bind.
		 */
		if (i % 2) {
			kd_expect_event(test, c.a->req_evd,
					DAT_RMR_BIND_COMPLETION_EVENT, NULL);
		} else {
			kd_recv(c.p, KD_BUF_LEN - 64, 64, 8);
			kd_send(c.a, KD_BUF_LEN - 64, 64, 9);
			kd_expect_dto(test, c.p->recv_evd, 8, DAT_DTO_SUCCESS,
				      NULL);
		}
		shown = mem_remote((uintptr_t)c.a->buf->va, 64, context);
		mem_write(&c, shown);
		expect_invalidated(&c, context);
		KD_EXPECT_OK(test, dat_rmr_query(rmr, DAT_RMR_FIELD_ALL,
						 &param));
		KUNIT_EXPECT_EQ(test, param.lmr_triplet.segment_length, 0);
		if (i % 2 == 0) {
			kd_expect_event(test, c.a->req_evd,
					DAT_RMR_BIND_COMPLETION_EVENT, NULL);
			kd_expect_dto(test, c.a->req_evd, 9, DAT_DTO_SUCCESS,
				      NULL);
		}
		mem_expect_refused(&c, shown, true, "invalidated");
		if (i < 2)
			continue;
		KD_EXPECT_OK(test, dat_rmr_bind(rmr, NULL, &none, 0, 0, c.a->ep,
						kd_cookie(2), 0, &context));
		kd_expect_event(test, c.a->req_evd,
				DAT_RMR_BIND_COMPLETION_EVENT, NULL);
	}
	KD_EXPECT_OK(test, dat_lmr_free(c.a->buf->lmr));
}

/*
 * The peer can invalidate an LMR of dat_lmr_kcreate(), too; posts of its owner
 * fail then.
 */
static void lmr_invalidated_by_the_peer(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct kd_buf *buf = kd_buf_alloc(c.a, PAGE_SIZE);
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, 64);

	expect_invalidated(&c, buf->rmr_context);
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(2), 0));
	mem_expect_refused(&c, kd_remote(buf, 0, 64), true, "invalidated");
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
}

static void send_without_invalidating(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	kd_recv(c.a, KD_BUF_LEN - 64, 64, 6);
	KD_ASSERT_OK(test, send_inv(&c, DAT_FALSE, c.a->buf->rmr_context));
	kd_expect_dto(test, c.a->recv_evd, 6, DAT_DTO_SUCCESS, &event);
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_EQ(test, (int)dto->operation, (int)DAT_DTO_RECEIVE);
	KUNIT_EXPECT_EQ(test, dto->rmr_context, 0);
	kd_expect_dto(test, c.p->req_evd, 7, DAT_DTO_SUCCESS, NULL);
	mem_write(&c, kd_remote(c.a->buf, 0, 64));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_send_with_invalidate(c.p->ep, -1, NULL,
						       kd_cookie(1), 0,
						       DAT_TRUE, 1));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_send_with_invalidate(c.p->ep, 0, NULL,
						       kd_cookie(1), 0x100,
						       DAT_TRUE, 1));
	/* A context that does not exist cannot be invalidated. */
	kd_recv(c.a, KD_BUF_LEN - 64, 64, 8);
	KD_ASSERT_OK(test, send_inv(&c, DAT_TRUE, 0x7f0000ff));
	KUNIT_EXPECT_TRUE(test, kd_wait_state(c.a->ep,
					      DAT_EP_STATE_DISCONNECTED));
	KUNIT_EXPECT_TRUE(test, kd_wait_state(c.p->ep,
					      DAT_EP_STATE_DISCONNECTED));
}

static struct kunit_case peer_invalidate_cases[] = {
	KUNIT_CASE_PARAM(invalidated_by_the_peer, kd_gen_ia),
	KUNIT_CASE_PARAM(rmr_invalidated_by_the_peer, kd_gen_ia),
	KUNIT_CASE_PARAM(lmr_invalidated_by_the_peer, kd_gen_ia),
	KUNIT_CASE_PARAM(send_without_invalidating, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-peer-invalidate", peer_invalidate_cases, "invalidation by the peer");
