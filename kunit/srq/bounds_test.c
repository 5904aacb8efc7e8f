// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared Receive Queues with several EVDs, long queues and long lists of events.
 */
#include <linux/module.h>
#include <compat_probe.h>
#include "device.h"
#include "handle.h"
#include "kdapl_sim.h"
#include "srq_fixture.h"

/* ---- EVDs that come and go ----------------------------------------------- */

#define FEEDS	3
#define LONG	2000		/* buffers: more than the CQs have room for */

/* Where CQs cannot be resized, the device's queue does not grow beyond them. */
#ifdef KDAPL_HAVE_RESIZE_CQ
#define CQS_GROW	true

static struct {
	struct kd_hook device;
	DAT_EP_HANDLE victim;
	int calls;
} feeds;

/* The first CQ is resized when an Endpoint is freed, and with it its EVD leaves. */
static int feeds_resize_cq(struct ib_cq *cq, int cqe, struct ib_udata *udata)
{
	DAT_EP_HANDLE victim = xchg(&feeds.victim, NULL);

	feeds.calls++;
	if (victim)
		dat_ep_free(victim);
	return feeds.device.real.resize_cq(cq, cqe, udata);
}

/* Every CQ is made large enough, although an EVD leaves the SRQ meanwhile. */
static void S4_an_evd_leaves(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;
	struct rx_link *link[FEEDS];
	struct rx_bench *b;
	int i;

	if (kd_device(test, ia)->ops.driver_id != RDMA_DRIVER_RXE)
		kunit_skip(test, "SRQs are not resized natively");
	b = rx_open_on(test, ia, (struct kd_opts) { .srq_len = 8, .qlen = 64 });
	for (i = 0; i < FEEDS; i++) {
		b->in->recv_evd = kd_evd(b->in, DAT_EVD_DTO_FLAG, 64,
					 DAT_UPCALL_NOTIFY);
		link[i] = rx_link(b);
	}
	feeds.calls = 0;
	feeds.victim = link[0]->in;
	kd_hook(test, ia, &feeds.device)->ops.resize_cq = feeds_resize_cq;
	KD_EXPECT_OK(test, dat_srq_resize(b->in->srq, LONG));
	KUNIT_EXPECT_EQ(test, feeds.calls, FEEDS);
}
#else
#define CQS_GROW	false

static void S4_an_evd_leaves(struct kunit *test)
{
	kunit_skip(test, "CQs cannot be resized");
}
#endif

/* ---- Sections with interrupts off ----------------------------------------- */

#define MANY	1000

static void section_begin(void)
{
	WRITE_ONCE(kdapl_longest_section, 0);
}

/* What was done since section_begin() takes several sections of KDAPL_SECTION. */
static void section_end(struct kunit *test)
{
	kunit_info(test, "at most %u objects\n", kdapl_longest_section);
	KUNIT_EXPECT_EQ(test, kdapl_longest_section, (unsigned int)KDAPL_SECTION);
}

/* The device's queue is remade, with all buffers, when an Endpoint comes back. */
static void R8_remake(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, MANY);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, MANY);
	rx_disconnect(b, link);
	rx_reset(b, link);
	section_begin();
	rx_connect(b, link);
	section_end(test);
	rx_deliver(b, link);
	rx_reap(b, link);
	rx_expect_counts(b, MANY, MANY - 1, MANY - 1);
}

static struct {
	struct kd_hook device;
	bool refuse;
} grow;

static int grow_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr,
			   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	return READ_ONCE(grow.refuse) ? -ENOMEM :
	       grow.device.real.modify_srq(srq, attr, mask, udata);
}

/* The device's queue grows, and the buffers that waited are given to it. */
static void R8_grow(struct kunit *test)
{
	struct rx_bench *b;
	struct rx_link *link;
	const char *ia = *(const char * const *)test->param_value;

	if (!CQS_GROW ||
	    kd_device(test, ia)->ops.driver_id != RDMA_DRIVER_RXE)
		kunit_skip(test, "SRQs are not resized natively");
	b = rx_open(test, 8);
	link = rx_link(b);
	kd_hook(test, ia, &grow.device)->ops.modify_srq = grow_modify_srq;
	WRITE_ONCE(grow.refuse, true);
	KD_ASSERT_OK(test, dat_srq_resize(b->in->srq, MANY));
	rx_post(b, link, MANY);
	WRITE_ONCE(grow.refuse, false);
	section_begin();
	KD_ASSERT_OK(test, dat_srq_resize(b->in->srq, MANY + 1));
	section_end(test);
	rx_deliver(b, link);
	rx_reap(b, link);
	rx_expect_counts(b, MANY + 1, MANY - 1, MANY - 1);
}

#define HELD	300
#define CM_RTU	0x14			/* attribute ID of a MAD */

/* An Endpoint is freed whose events are on an EVD among those of another. */
static void R8_free(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 2 * HELD);
	struct rx_link *x = rx_link(b), *y = rx_link(b);

	rx_deliver_in_turn(b, x, y, HELD);
	rx_expect_counts(b, 2 * HELD, 0, 2 * HELD);
	section_begin();
	KD_EXPECT_OK(test, dat_ep_free(x->in));
	section_end(test);
	rx_expect_counts(b, 2 * HELD, HELD, 2 * HELD);
	rx_reap_n(b, y, HELD);
	rx_expect_empty(b, b->in->recv_evd);
	rx_expect_counts(b, 2 * HELD, HELD, HELD);
}

/*
 * The EVD of an Endpoint is changed whose events are on the old one among those of
 * another; both then reap their own, in order.
 */
static void R8_modify(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 2 * HELD);
	struct rx_link *x = rx_link(b), *y = rx_link(b);
	DAT_EVD_HANDLE old = b->in->recv_evd;
	DAT_EP_PARAM param = { };

	rx_deliver_in_turn(b, x, y, HELD);
	rx_disconnect(b, x);
	rx_reset(b, x);
	param.recv_evd_handle = kd_evd(b->in, DAT_EVD_DTO_FLAG, 2 * HELD,
				       DAT_UPCALL_DISABLE);
	section_begin();
	KD_ASSERT_OK(test, dat_ep_modify(x->in, DAT_EP_FIELD_RECV_EVD_HANDLE, &param));
	section_end(test);
	rx_reap_n(b, y, HELD);
	rx_expect_empty(b, old);
	b->in->recv_evd = param.recv_evd_handle;
	rx_reap_n(b, x, HELD);
	rx_expect_empty(b, b->in->recv_evd);
	b->in->recv_evd = old;
	rx_expect_counts(b, 2 * HELD, 0, 0);
}

/* The device refuses all receives, so that software flushes them. */
static void R8_flush(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct ib_device *dev = kd_device(test, b->in->name);
	DAT_EP_ATTR attr = kd_ep_attr();
	struct rx_link *x;

	attr.max_recv_dtos = HELD;
	x = rx_eps(b, &attr);
	rx_post(b, x, HELD);
	kdapl_sim_set(dev, KDAPL_SIM_refuse_recv, ~0U);
	rx_connect(b, x);
	section_begin();
	rx_disconnect(b, x);
	section_end(test);
	kdapl_sim_set(dev, KDAPL_SIM_refuse_recv, 0);
	KUNIT_EXPECT_EQ(test, kd_drain(b->in->recv_evd), HELD);
}

/* The last message of the handshake is late, and receives wait for it. */
static void R8_open(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, HELD);
	struct ib_device *dev = kd_device(test, b->in->name);
	struct rx_link *x = rx_eps(b, NULL);
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	if (kd_is_iwarp(b->in))
		kunit_skip(test, "there is no such message");
	kd_psp(b->in, port, DAT_PSP_CONSUMER_FLAG);
	rx_post(b, x, HELD);
	b->in->ep = x->in;
	b->out->ep = x->out;
	kd_connect_start(b->out, b->in, port);
	cr = kd_expect_cr(b->in);
	kdapl_sim_set(dev, KDAPL_SIM_drop_attr, CM_RTU);
	kdapl_sim_set(dev, KDAPL_SIM_drop_mads, 1);
	KD_ASSERT_OK(test, dat_cr_accept(cr, x->in, 0, NULL));
	kd_expect_event(test, b->out->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
	section_begin();
	rx_send_n(b, x, HELD);
	kd_expect_event(test, b->in->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
	rx_reap_n(b, x, HELD);
	section_end(test);
	rx_expect_counts(b, HELD, 0, 0);
}

/* Receives complete with @status, in the order in which they were posted. */
static void expect_receives(struct rx_bench *b, u64 first, int n,
			    DAT_DTO_COMPLETION_STATUS status)
{
	while (n--)
		kd_expect_dto(b->test, b->in->recv_evd, first++, status, NULL);
}

/* A link whose receive queue holds what its last connection left and new receives. */
static struct rx_link *reset_and_posted(struct rx_bench *b)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct rx_link *x;

	attr.max_recv_dtos = 2 * HELD;
	x = rx_eps(b, &attr);
	rx_post(b, x, HELD);
	rx_connect(b, x);
	rx_disconnect(b, x);
	rx_reset(b, x);
	rx_post(b, x, HELD);
	return x;
}

/*
 * The receive queue of an Endpoint moves: some receives have completed, others wait for
 * a connection. Then these are given to the device.
 */
static void R8_resize(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *x = reset_and_posted(b);
	DAT_EP_PARAM param = { };

	param.ep_attr.max_recv_dtos = 4 * HELD;
	param.ep_attr.max_recv_iov = 2;
	section_begin();
	KD_ASSERT_OK(test, dat_ep_modify(x->in, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
					 DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &param));
	section_end(test);
	expect_receives(b, 0, HELD, DAT_DTO_ERR_FLUSHED);
	rx_expect_empty(b, b->in->recv_evd);
	section_begin();
	rx_connect(b, x);
	section_end(test);
	rx_send_n(b, x, HELD);
	expect_receives(b, HELD, HELD, DAT_DTO_SUCCESS);
}

/* The Endpoint gets another Protection Zone, so that what is posted fails. */
static void R8_zone(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	struct rx_link *x = reset_and_posted(b);
	DAT_EP_PARAM param = { };

	KD_ASSERT_OK(test, dat_pz_create(b->in->ia, &param.pz_handle));
	section_begin();
	KD_ASSERT_OK(test, dat_ep_modify(x->in, DAT_EP_FIELD_PZ_HANDLE, &param));
	section_end(test);
	expect_receives(b, 0, HELD, DAT_DTO_ERR_FLUSHED);
	expect_receives(b, HELD, HELD, DAT_DTO_ERR_LOCAL_PROTECTION);
	rx_expect_empty(b, b->in->recv_evd);
}

/* Requests of @b that nobody answers. */
struct unanswered {
	struct rx_bench *b;
	u16 port;
	DAT_EVENT overflow;
};

static void request(struct unanswered *u)
{
	struct kd_side *out = u->b->out;
	DAT_EP_HANDLE own = out->ep;

	out->ep = kd_ep(out, NULL);
	kd_connect_start(out, u->b->in, u->port);
	out->ep = own;
}

/*
 * An event tells that there was one too many. Until then, requests that iw_cm has
 * refused, since more came than it had passed on, are made again.
 */
static bool one_too_many(void *data)
{
	struct unanswered *u = data;
	DAT_EVENT refused;

	if (dat_evd_dequeue(u->b->out->conn_evd, &refused) == DAT_SUCCESS) {
		KUNIT_EXPECT_EQ(u->b->test, (u32)refused.event_number,
				(u32)kd_turned_away(u->b->out));
		request(u);
	}
	return dat_evd_dequeue(u->b->in->async_evd, &u->overflow) == DAT_SUCCESS;
}

/* An EVD is freed with requests that nobody has answered. */
static void R8_abandon(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 0);
	DAT_EVD_HANDLE evd = kd_evd(b->in, DAT_EVD_CR_FLAG, HELD - 1, DAT_UPCALL_NOTIFY);
	struct unanswered u = { .b = b, .port = kd_port() };
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	int i;

	KD_ASSERT_OK(test, dat_evd_resize(b->out->conn_evd, HELD));
	KD_ASSERT_OK(test, dat_psp_create(b->in->ia, u.port, evd, DAT_PSP_CONSUMER_FLAG,
					  &psp));
	for (i = 0; i < HELD; i++)
		request(&u);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(one_too_many, &u, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, (u32)u.overflow.event_number,
			(u32)DAT_ASYNC_ERROR_EVD_OVERFLOW);
	KD_ASSERT_OK(test, dat_psp_free(psp));
	section_begin();
	KD_ASSERT_OK(test, dat_evd_free(evd));
	section_end(test);
	for (i = 0; i < HELD; i++)
		KUNIT_EXPECT_TRUE(test, kd_wait_event(b->out->conn_evd, &event,
						      KD_TIMEOUT_MS));
}

/* An IA is closed with many objects, which are released later. */
static void R8_close(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_PZ_HANDLE pz;
	int i;

	for (i = 0; i < HELD; i++)
		KD_ASSERT_OK(test, dat_pz_create(s->ia, &pz));
	section_begin();
	KD_ASSERT_OK(test, dat_ia_close(s->ia, DAT_CLOSE_ABRUPT_FLAG));
	section_end(test);
	s->ia = NULL;
}

/* ---- Memory that needs syncs ---------------------------------------------------- */

/* Both sides of a connection, whose consumers may be called for completions. */
static struct kd_pair sync_pair_called(struct kunit *test, bool called)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_pair two;

	attr.max_request_dtos = 2 * HELD;
	two = kd_make_pair(test, &(struct kd_opts) {
		.attr = &attr, .qlen = 4 * HELD, .polled = !called });
	if (!kd_needs_syncs(two.a))
		kunit_skip(test, "the device sees the memory as it is");
	kd_connect_pair(two.a, two.p);
	return two;
}

/* The same; requests complete when they are polled for. */
static struct kd_pair sync_pair(struct kunit *test)
{
	return sync_pair_called(test, false);
}

/* Memory in many pieces is handed over by a call, and by a request. */
static void R8_sync(struct kunit *test)
{
	struct kd_pair two = sync_pair(test);
	struct kd_buf *buf = kd_buf_valloc(two.a, HELD * PAGE_SIZE);
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, buf->len);

	section_begin();
	KD_EXPECT_OK(test, dat_lmr_sync_rdma_read(two.a->ia, &seg, 1));
	section_end(test);
	section_begin();
	KD_EXPECT_OK(test, dat_lmr_sync_rdma_write(two.a->ia, &seg, 1));
	section_end(test);
	section_begin();
	KD_ASSERT_OK(test, dat_ep_post_send(two.a->ep, 1, &seg, kd_cookie(1), 0));
	section_end(test);
}

/* A request with a fence looks at all Reads that may not have completed. */
static void R8_fence(struct kunit *test)
{
	struct kd_pair two = sync_pair(test);
	DAT_RMR_TRIPLET remote = kd_remote(two.p->buf, 0, 8);
	DAT_LMR_TRIPLET seg;
	int i;

	for (i = 0; i < HELD; i++) {
		seg = kd_seg(two.a->buf, 64 * (i % 2), 8);
		KD_ASSERT_OK(test, dat_ep_post_rdma_read(two.a->ep, 1, &seg, kd_cookie(i),
							 &remote, 0));
	}
	seg = kd_seg(two.a->buf, 32, 8);
	section_begin();
	KD_ASSERT_OK(test, dat_ep_post_send(two.a->ep, 1, &seg, kd_cookie(HELD),
					    DAT_COMPLETION_BARRIER_FENCE_FLAG));
	section_end(test);
}

/* What has come is handed over when it is polled for: a message, ... */
static void R8_receive(struct kunit *test)
{
	struct kd_pair two = sync_pair(test);
	struct kd_buf *from = kd_buf_valloc(two.a, HELD * PAGE_SIZE);
	struct kd_buf *to = kd_buf_valloc(two.p, HELD * PAGE_SIZE);
	DAT_LMR_TRIPLET src = kd_seg(from, 0, from->len), dst = kd_seg(to, 0, to->len);

	kd_fill(from->va, from->len, 1);
	KD_ASSERT_OK(test, dat_ep_post_recv(two.p->ep, 1, &dst, kd_cookie(1), 0));
	KD_ASSERT_OK(test, dat_ep_post_send(two.a->ep, 1, &src, kd_cookie(2), 0));
	section_begin();
	kd_expect_dto(test, two.p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	section_end(test);
	KUNIT_EXPECT_TRUE(test, kd_has_pattern(to->va, to->len, 1));
	kd_expect_dto(test, two.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

/* ... and one that the consumer is called for, behind others, ... */
static void R8_receive_called(struct kunit *test)
{
	struct kd_pair two = sync_pair_called(test, true);
	struct kd_buf *from = kd_buf_valloc(two.a, HELD * PAGE_SIZE);
	struct kd_buf *to = kd_buf_valloc(two.p, HELD * PAGE_SIZE);
	DAT_LMR_TRIPLET src, dst;
	int i;

	kd_fill(from->va, from->len, 1);
	section_begin();
	/* Every second message is short. */
	for (i = 0; i < 8; i++) {
		dst = kd_seg(to, 0, i & 1 ? 100 : to->len);
		src = kd_seg(from, 0, i & 1 ? 100 : from->len);
		KD_ASSERT_OK(test, dat_ep_post_recv(two.p->ep, 1, &dst, kd_cookie(i), 0));
		KD_ASSERT_OK(test, dat_ep_post_send(two.a->ep, 1, &src, kd_cookie(i), 0));
	}
	for (i = 0; i < 8; i++) {
		kd_expect_dto(test, two.p->recv_evd, i, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, two.a->req_evd, i, DAT_DTO_SUCCESS, NULL);
	}
	section_end(test);
	KUNIT_EXPECT_TRUE(test, kd_has_pattern(to->va, to->len, 1));
	kd_expect_no_event(test, two.p->recv_evd);
}

/* ... the sink of a Read, which is handed to the device as well, ... */
static void R8_read(struct kunit *test)
{
	struct kd_pair two = sync_pair(test);
	struct kd_buf *from = kd_buf_valloc(two.p, HELD * PAGE_SIZE);
	struct kd_buf *to = kd_buf_alloc_priv(two.a, HELD * PAGE_SIZE, true,
					      DAT_MEM_PRIV_LOCAL_READ_FLAG |
					      DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	DAT_RMR_TRIPLET remote = kd_remote(from, 0, from->len);
	DAT_LMR_TRIPLET seg = kd_seg(to, 0, to->len);

	kd_fill(from->va, from->len, 1);
	section_begin();
	KD_ASSERT_OK(test, dat_ep_post_rdma_read(two.a->ep, 1, &seg, kd_cookie(1), &remote,
						 0));
	section_end(test);
	section_begin();
	kd_expect_dto(test, two.a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	section_end(test);
	KUNIT_EXPECT_TRUE(test, kd_has_pattern(to->va, to->len, 1));
}

/* End the binding with key @rkey of @lmr, and wait for that: as the peer or (@own) here. */
static void unbind(struct kunit *test, struct kd_pair *two, DAT_LMR_HANDLE lmr,
		   DAT_RMR_CONTEXT rkey, bool own)
{
	DAT_LMR_TRIPLET seg = kd_seg(two->p->buf, 0, 8);

	if (own) {
		KD_ASSERT_OK(test, dat_lmr_invalidate(lmr, two->a->ep, kd_cookie(3), 0));
		section_begin();
		kd_expect_dto(test, two->a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
		section_end(test);
		return;
	}
	kd_recv(two->a, 0, 64, 3);
	KD_ASSERT_OK(test, dat_ep_post_send_with_invalidate(two->p->ep, 1, &seg,
							    kd_cookie(4), 0, DAT_TRUE,
							    rkey));
	section_begin();
	kd_expect_dto(test, two->a->recv_evd, 3, DAT_DTO_SUCCESS, NULL);
	section_end(test);
	kd_expect_dto(test, two->p->req_evd, 4, DAT_DTO_SUCCESS, NULL);
}

/* ... and what an LMR was bound to, when this ends in either way. */
static void R8_binding(struct kunit *test)
{
	struct kd_pair two = sync_pair(test);
	struct kd_buf *from = kd_buf_valloc(two.p, HELD * PAGE_SIZE);
	struct kd_buf *to = kd_buf_valloc(two.a, HELD * PAGE_SIZE);
	DAT_LMR_TRIPLET seg = kd_seg(from, 0, from->len);
	DAT_REGION_DESCRIPTION desc = { .for_va = to->va };
	DAT_LMR_CONTEXT context;
	DAT_RMR_TRIPLET remote = { .segment_length = to->len };
	DAT_LMR_HANDLE lmr;
	u32 i;

	KD_ASSERT_OK(test, dat_lmr_allocate(two.a->ia, two.a->pz, HELD, DAT_LMR_SCOPE_PZ,
					    &lmr));
	for (i = 1; i < 3; i++) {
		section_begin();
		KD_ASSERT_OK(test, dat_lmr_fmr(lmr, DAT_MEM_TYPE_VIRTUAL, desc, HELD,
					       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB,
					       two.a->ep, kd_cookie(1), 0, &context,
					       &remote.rmr_context));
		section_end(test);
		kd_expect_dto(test, two.a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
		kd_fill(from->va, from->len, i);
		KD_ASSERT_OK(test, dat_ep_post_rdma_write(two.p->ep, 1, &seg, kd_cookie(2),
							  &remote, 0));
		kd_expect_dto(test, two.p->req_evd, 2, DAT_DTO_SUCCESS, NULL);
		unbind(test, &two, lmr, remote.rmr_context, i == 1);
		KUNIT_EXPECT_TRUE(test, kd_has_pattern(to->va, to->len, i));
	}
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
}

static struct kunit_case bounds_cases[] = {
	KUNIT_CASE_PARAM(S4_an_evd_leaves, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_remake, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_grow, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_free, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_modify, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_resize, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_zone, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_abandon, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R8_close, kd_gen_ia),
	KUNIT_CASE_PARAM(R8_sync, kd_gen_any_ia),
	KUNIT_CASE_PARAM(R8_fence, kd_gen_any_ia),
	KUNIT_CASE_PARAM(R8_receive, kd_gen_any_ia),
	KUNIT_CASE_PARAM(R8_receive_called, kd_gen_any_ia),
	KUNIT_CASE_PARAM(R8_read, kd_gen_any_ia),
	KUNIT_CASE_PARAM(R8_binding, kd_gen_any_ia),
	KUNIT_CASE_PARAM(R8_flush, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(R8_open, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-bounds", bounds_cases, "many EVDs, buffers and events");
KDAPL_IMPORT_TEST;
