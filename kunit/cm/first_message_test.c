// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The first messages of a connection. Over iWARP the active side may not be ready yet
 * for what a passive side sends at once (contract N8).
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include "device.h"
#include "fmr_fixture.h"

#define DEFERRED_MS 100			/* KDAPL_DEFER_MS of dto.h */

/* Requests that the device is given. */
static struct kd_hook device;
static atomic_t posted;

static int count_post(struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad)
{
	if (qp->qp_type == IB_QPT_RC)
		atomic_inc(&posted);
	return device.real.post_send(qp, wr, bad);
}

static KD_GENERATOR(gen_iwarp)
{
	static const struct kd_param params[] = { { "siw0/1" }, { "simw0/1" } };
	const struct kd_param *next = prev ? (const struct kd_param *)prev + 1 :
					     params;

	if (next == params + ARRAY_SIZE(params))
		return NULL;
	strscpy(desc, next->ia, KUNIT_PARAM_DESC_SIZE);
	return next;
}

#define SENDS 100

static struct kd_pair make_pair(struct kunit *test)
{
	DAT_EP_ATTR attr = kd_ep_attr();

	attr.max_request_dtos = SENDS;
	attr.max_recv_dtos = SENDS;
	return kd_make_pair(test, &(struct kd_opts) {
		.attr = &attr, .qlen = 2 * SENDS,
	});
}

/* Requests of the passive side wait for the first message, and keep their order. */
static void N8_held_until_a_message_comes(struct kunit *test)
{
	struct kd_pair pair = make_pair(test);
	struct kd_side *a = pair.a, *p = pair.p;
	ktime_t start;
	int i, early;

	for (i = 0; i < SENDS; i++)
		kd_recv(a, 0, 64, i);
	kd_recv(p, 0, 64, 1);
	kd_hook(test, p->name, &device)->ops.post_send = count_post;
	start = ktime_get();
	kd_connect_pair(a, p);
	atomic_set(&posted, 0);
	for (i = 0; i < SENDS; i++)
		kd_send(p, 0, 64, i);
	early = atomic_read(&posted);
	if (ktime_ms_delta(ktime_get(), start) < DEFERRED_MS)
		KUNIT_EXPECT_EQ(test, early, 0);
	kd_send(a, 0, 64, 2);
	kd_expect_dto(test, p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	for (i = 0; i < SENDS; i++) {
		kd_expect_dto(test, a->recv_evd, i, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, p->req_evd, i, DAT_DTO_SUCCESS, NULL);
	}
	/* Nothing is held any more. */
	kd_ping(p, a);
}

/* The active side says nothing: requests of all kinds go after a moment. */
static void N8_passive_side_speaks_first(struct kunit *test)
{
	struct mem_pair c = { test, kd_open_param(test), kd_open_param(test) };
	struct pages *pages = fmr_make_pages(test);
	DAT_LMR_TRIPLET seg;
	DAT_RMR_TRIPLET remote;
	struct fmr f;

	/* The owner of the region, c.a, is the passive side. */
	kd_setup(c.a, NULL);
	kd_setup(c.p, NULL);
	f = fmr_make(&c, DAT_LMR_SCOPE_PZ);
	kd_recv(c.p, 0, 64, 1);
	kd_fill(c.a->buf->va, 4096, 5);
	kd_connect_pair(c.p, c.a);
	KD_ASSERT_OK(test, fmr_bind(&c, &f, pages, 10));
	seg = kd_seg(c.a->buf, 0, 4096);
	remote = kd_remote(c.p->buf, 8192, 4096);
	KD_ASSERT_OK(test, dat_ep_post_rdma_write(c.a->ep, 1, &seg, kd_cookie(11),
						  &remote, 0));
	seg = kd_seg(c.a->buf, 4096, 4096);
	KD_ASSERT_OK(test, dat_ep_post_rdma_read(c.a->ep, 1, &seg, kd_cookie(12),
						 &remote, 0));
	kd_send(c.a, 0, 64, 13);
	KD_ASSERT_OK(test, dat_lmr_invalidate(f.lmr, c.a->ep, kd_cookie(14), 0));
	kd_expect_dto(test, c.p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	fmr_expect_op(&c, 10, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS);
	fmr_expect_op(&c, 11, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
	fmr_expect_op(&c, 12, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS);
	fmr_expect_op(&c, 13, DAT_DTO_SEND, DAT_DTO_SUCCESS);
	fmr_expect_op(&c, 14, DAT_DTO_LMR_INVALIDATE, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(c.p->buf->va + 8192, 4096, 5));
	KUNIT_EXPECT_TRUE(test, kd_is_filled(c.a->buf->va + 4096, 4096, 5));
}

/* A graceful disconnect waits for what is held, an abrupt one flushes it. */
static void N8_disconnect_while_held(struct kunit *test)
{
	struct kd_pair pair = make_pair(test);
	struct kd_side *a = pair.a, *p = pair.p;

	kd_recv(a, 0, 64, 1);
	kd_connect_pair(a, p);
	kd_send(p, 0, 64, 2);
	KD_ASSERT_OK(test, dat_ep_disconnect(p->ep, DAT_CLOSE_GRACEFUL_FLAG));
	kd_expect_dto(test, a->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, p->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kd_expect_event(test, p->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
	kd_expect_disconnected(a, NULL);
	KD_ASSERT_OK(test, dat_ep_reset(a->ep));
	KD_ASSERT_OK(test, dat_ep_reset(p->ep));
	kd_connect_pair(a, p);
	kd_send(p, 0, 64, 3);
	KD_ASSERT_OK(test, dat_ep_disconnect(p->ep, DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_event(test, p->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
	/* It may have gone if this was slow, but nobody had a receive for it. */
	KUNIT_EXPECT_TRUE(test, kd_wait_event(p->req_evd, &(DAT_EVENT) { },
					      KD_TIMEOUT_MS));
	kd_expect_disconnected(a, NULL);
}

#define ROUNDS 200

static void send_at_once(struct kd_recorder *rec, const DAT_EVENT *event,
			 DAT_BOOLEAN more)
{
	struct kd_side *s = rec->priv;
	DAT_LMR_TRIPLET seg = kd_seg(s->buf, 0, 64);

	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		kd_may_fail(dat_ep_post_send(s->ep, 1, &seg, kd_cookie(0), 0));
}

/* Both sides send in the upcall that tells them of the connection. */
static void N8_both_speak_at_once(struct kunit *test)
{
	struct kd_side *side[2] = { kd_open_param(test), kd_open_param(test) };
	struct kd_recorder *rec[2];
	u16 port = kd_port();
	int i, n;

	for (i = 0; i < 2; i++) {
		kd_setup(side[i], &(struct kd_opts) { .no_ep = true });
		rec[i] = kd_recorder(test);
		rec[i]->hook = send_at_once;
		rec[i]->priv = side[i];
		side[i]->conn_evd =
			kd_recorded_evd(side[i], DAT_EVD_CONNECTION_FLAG, 16,
					DAT_UPCALL_SINGLE_INSTANCE, rec[i]);
		side[i]->ep = kd_ep(side[i], NULL);
	}
	kd_psp(side[1], port, DAT_PSP_CONSUMER_FLAG);
	for (n = 0; n < ROUNDS; n++) {
		for (i = 0; i < 2; i++)
			kd_recv(side[i], 0, 64, n);
		kd_connect_start(side[0], side[1], port);
		KD_ASSERT_OK(test, dat_cr_accept(kd_expect_cr(side[1]),
						 side[1]->ep, 0, NULL));
		for (i = 0; i < 2; i++)
			kd_expect_dto(test, side[i]->recv_evd, n,
				      DAT_DTO_SUCCESS, NULL);
		for (i = 0; i < 2; i++)
			kd_expect_dto(test, side[i]->req_evd, 0,
				      DAT_DTO_SUCCESS, NULL);
		KD_ASSERT_OK(test, dat_ep_disconnect(side[0]->ep,
						     DAT_CLOSE_ABRUPT_FLAG));
		for (i = 0; i < 2; i++)
			KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec[i], 2 * n + 2));
		for (i = 0; i < 2; i++)
			KD_ASSERT_OK(test, dat_ep_reset(side[i]->ep));
	}
}

static struct kunit_case first_message_cases[] = {
	KUNIT_CASE_PARAM(N8_held_until_a_message_comes, gen_iwarp),
	KUNIT_CASE_PARAM(N8_passive_side_speaks_first, kd_gen_ia),
	KUNIT_CASE_PARAM(N8_disconnect_while_held, kd_gen_ia),
	KUNIT_CASE_PARAM(N8_both_speak_at_once, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-first-message", first_message_cases, "first messages of connections");
