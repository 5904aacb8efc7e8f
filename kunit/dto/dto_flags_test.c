// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion flags that order requests (fences) or choose which completions
 * cause an upcall (solicited waiting), and posting from every context (contract
 * C1).
 */
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include "call.h"
#include "fixture.h"

static struct kd_pair make_pair(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);

	kd_connect_pair(pair.a, pair.p);
	return pair;
}

/* ---- Solicited waiting ----------------------------------------------------------- */

static void send_flags(struct kd_side *s, u64 cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = kd_seg(s->buf, 0, 64);

	KD_ASSERT_OK(s->test, dat_ep_post_send(s->ep, 1, &seg,
					       kd_cookie(cookie), flags));
	kd_expect_dto(s->test, s->req_evd, cookie, DAT_DTO_SUCCESS, NULL);
}

/*
 * Only a message sent with SOLICITED_WAIT causes an upcall, for all messages so
 * far. On siw any message does.
 */
static void solicited_wait(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_COUNT n;
	int i;

	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	p->recv_evd = kd_recorded_evd(p, DAT_EVD_DTO_FLAG, 32,
				      DAT_UPCALL_SINGLE_INSTANCE, rec);
	p->ep = kd_ep(p, &attr);
	kd_connect_pair(a, p);
	for (i = 0; i < 8; i++)
		kd_recv(p, i * 64, 64, i);
	for (i = 0; i < 3; i++)
		send_flags(a, 100 + i, 0);
	kd_expect_no_event(test, a->req_evd);
	if (!kd_has(a, KD_ANY_WAKES))
		KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 0);
	send_flags(a, 103, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 4));
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, rec->events[i].event_data
				.dto_completion_event_data.user_cookie.as_64,
				i);
	/* Send the same again, after the EVD was armed again. */
	send_flags(a, 104, 0);
	send_flags(a, 105, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 6));
	/* dat_evd_dequeue() also finds messages that caused no upcall. */
	send_flags(a, 106, 0);
	if (kd_has(a, KD_ANY_WAKES)) {
		KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 7));
		return;
	}
	KD_EXPECT_OK(test, dat_ep_recv_query(p->ep, &n, NULL));
	KUNIT_EXPECT_EQ(test, n, 2);
}

/* An EVD with solicited receives takes no other receives. */
static void solicited_streams_do_not_mix(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_EP_HANDLE ep;

	kd_setup(s, NULL);
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_create(s->ia, s->pz, s->recv_evd, s->req_evd,
				    s->conn_evd, &attr, &ep));
	KD_EXPECT_OK(test, dat_ep_free(s->ep));
	s->ep = kd_ep(s, &attr);
	kd_ep(s, &attr);
	attr.recv_completion_flags = 0;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_create(s->ia, s->pz, s->recv_evd, s->req_evd,
				    s->conn_evd, &attr, &ep));
}

/* ---- Fences ----------------------------------------------------------------------- */

/* A fenced Send sends what the Read before it has fetched. */
static void barrier_fence(struct kunit *test)
{
	struct kd_pair c = make_pair(test);
	struct kd_buf *buf = kd_buf_alloc(c.a, SZ_256K);
	struct kd_buf *from = kd_buf_alloc(c.p, SZ_256K);
	struct kd_buf *back = kd_buf_alloc(c.p, SZ_256K);
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, SZ_256K), to;
	DAT_RMR_TRIPLET remote = kd_remote(from, 0, SZ_256K);
	int i;

	for (i = 0; i < 4; i++) {
		kd_fill(from->va, SZ_256K, i);
		memset(buf->va, 0, SZ_256K);
		to = kd_seg(back, 0, SZ_256K);
		KD_ASSERT_OK(test, dat_ep_post_recv(c.p->ep, 1, &to,
						    kd_cookie(1), 0));
		KD_ASSERT_OK(test, dat_ep_post_rdma_read(c.a->ep, 1, &seg,
							 kd_cookie(2), &remote,
							 0));
		KD_ASSERT_OK(test,
			     dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(3),
					      DAT_COMPLETION_BARRIER_FENCE_FLAG));
		kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, c.a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, c.p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
		KUNIT_EXPECT_TRUE(test, kd_is_filled(back->va, SZ_256K, i));
	}
	/* The LMR invalidate fence is for dat_lmr_invalidate() only. */
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_send(c.a->ep, 1, &seg, kd_cookie(1),
				       DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG));
}

/*
 * Requests are reported in the order in which they were posted, although siw
 * completes a Write before a Read that was posted earlier.
 */
static void requests_end_in_order(struct kunit *test)
{
	struct kd_pair c = make_pair(test);
	struct kd_buf *from = kd_buf_alloc(c.p, SZ_256K);
	struct kd_buf *buf = kd_buf_alloc(c.a, SZ_256K);
	DAT_RMR_TRIPLET remote = kd_remote(from, 0, SZ_256K);
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, SZ_256K), part;
	DAT_RMR_CONTEXT rkey;
	DAT_RMR_HANDLE rmr;
	int i;

	part = kd_seg(c.a->buf, 0, 64);
	KD_ASSERT_OK(test, dat_rmr_create(c.a->pz, &rmr));
	for (i = 0; i < 8; i++) {
		kd_recv(c.p, 0, 64, 1);
		KD_ASSERT_OK(test, dat_ep_post_rdma_read(c.a->ep, 1, &seg,
							 kd_cookie(2), &remote,
							 0));
		kd_send(c.a, 0, 64, 3);
		KD_ASSERT_OK(test,
			     dat_rmr_bind(rmr, c.a->buf->lmr, &part,
					  DAT_MEM_PRIV_REMOTE_READ_FLAG, 0,
					  c.a->ep, kd_cookie(4), 0, &rkey));
		kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(test, c.a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
		kd_expect_event(test, c.a->req_evd,
				DAT_RMR_BIND_COMPLETION_EVENT, NULL);
		kd_expect_dto(test, c.p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	}
	/* The end of the connection neither loses nor repeats a completion. */
	for (i = 0; i < 4; i++) {
		KD_ASSERT_OK(test, dat_ep_post_rdma_read(c.a->ep, 1, &seg,
							 kd_cookie(2), &remote,
							 0));
		KD_ASSERT_OK(test,
			     dat_rmr_bind(rmr, c.a->buf->lmr, &part,
					  DAT_MEM_PRIV_REMOTE_READ_FLAG, 0,
					  c.a->ep, kd_cookie(4), 0, &rkey));
		KD_ASSERT_OK(test, dat_ep_disconnect(c.a->ep,
						     DAT_CLOSE_ABRUPT_FLAG));
		KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
		KUNIT_EXPECT_EQ(test, kd_drain(c.a->req_evd), 2);
		KUNIT_ASSERT_TRUE(test, kd_wait_state(c.p->ep,
						      DAT_EP_STATE_DISCONNECTED));
		KD_ASSERT_OK(test, dat_ep_reset(c.p->ep));
		kd_drain(c.a->conn_evd);
		kd_drain(c.p->conn_evd);
		KD_ASSERT_OK(test, dat_rmr_free(rmr));
		KD_ASSERT_OK(test, dat_rmr_create(c.a->pz, &rmr));
		kd_connect_pair(c.a, c.p);
	}
}

/* A Read may be fenced behind another Read on every device. */
static void fenced_reads(struct kunit *test)
{
	struct kd_pair c = make_pair(test);
	DAT_RMR_TRIPLET from = kd_remote(c.p->buf, 0, SZ_32K);
	DAT_LMR_TRIPLET seg = kd_seg(c.a->buf, 0, SZ_32K);
	int i;

	for (i = 0; i < 3; i++)
		KD_ASSERT_OK(test, dat_ep_post_rdma_read
				   (c.a->ep, 1, &seg, kd_cookie(i), &from,
				    DAT_COMPLETION_BARRIER_FENCE_FLAG));
	for (i = 0; i < 3; i++)
		kd_expect_dto(test, c.a->req_evd, i, DAT_DTO_SUCCESS, NULL);
}

/* ---- In interrupts ------------------------------------------------------------------ */

enum { HARDIRQ_ROUNDS = 8 };

/*
 * struct burst - calls made in a context of its own
 * @work: runs in a hard interrupt
 * @tasklet: runs in a soft interrupt
 */
struct burst {
	struct irq_work work;
	struct tasklet_struct tasklet;
	struct kd_pair *c;
	struct kd_buf *fmr_mem;
	DAT_LMR_HANDLE fmr;
	DAT_RMR_HANDLE rmr;
	DAT_SRQ_HANDLE srq;
	DAT_EVD_HANDLE soft_evd;
	DAT_EP_PARAM ep_param;
	DAT_RETURN ret[20];
	int calls;
	bool hard;
	bool soft;
	bool done;
};

static void note(struct burst *b, DAT_RETURN ret)
{
	b->ret[b->calls++] = ret;
}

static void burst_post(struct burst *b)
{
	const DAT_EVENT soft = { .event_number = DAT_SOFTWARE_EVENT };
	struct kd_side *a = b->c->a, *p = b->c->p;
	DAT_LMR_TRIPLET seg = kd_seg(a->buf, 0, 64), to = kd_seg(p->buf, 0, 64);
	DAT_RMR_TRIPLET remote = kd_remote(p->buf, 128, 64);
	DAT_REGION_DESCRIPTION desc = { .for_va = b->fmr_mem->va };
	DAT_LMR_TRIPLET sink = kd_seg(a->buf, 256, 64);
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT rkey;

	note(b, dat_ep_post_recv(p->ep, 1, &to, kd_cookie(1), 0));
	note(b, dat_ep_post_send(a->ep, 1, &seg, kd_cookie(2), 0));
	note(b, dat_ep_post_rdma_write(a->ep, 1, &seg, kd_cookie(3), &remote,
				       0));
	note(b, dat_ep_post_rdma_read(a->ep, 1, &sink, kd_cookie(4), &remote,
				      0));
	note(b, dat_lmr_fmr(b->fmr, DAT_MEM_TYPE_VIRTUAL, desc, 1,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, a->ep,
			    kd_cookie(5), 0, &context, &rkey));
	note(b, dat_lmr_invalidate(b->fmr, a->ep, kd_cookie(6), 0));
	note(b, dat_rmr_bind(b->rmr, a->buf->lmr, &seg,
			     DAT_MEM_PRIV_REMOTE_READ_FLAG, 0, a->ep,
			     kd_cookie(7), 0, &rkey));
	note(b, dat_srq_post_recv(b->srq, 1, &seg, kd_cookie(8)));
	note(b, dat_evd_post_se(b->soft_evd, &soft));
}

static void burst_look(struct burst *b)
{
	struct kd_side *a = b->c->a;
	DAT_SRQ_PARAM srq;
	DAT_EVD_PARAM evd;
	DAT_EP_STATE state;
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;
	DAT_COUNT n, span;
	DAT_EVENT event;

	note(b, dat_evd_dequeue(b->soft_evd, &event));
	note(b, dat_ep_get_status(a->ep, &state, NULL, NULL));
	note(b, dat_ep_recv_query(a->ep, &n, &span));
	note(b, dat_srq_query(b->srq, DAT_SRQ_FIELD_ALL, &srq));
	note(b, dat_evd_query(a->req_evd, DAT_EVD_FIELD_ALL, &evd));
	note(b, dat_ep_set_watermark(a->ep, 100, DAT_WATERMARK_INFINITE));
	note(b, dat_srq_set_lw(b->srq, 1));
	note(b, dat_set_consumer_context(a->ep, kd_cookie(9)));
	note(b, dat_get_consumer_context(a->ep, &context));
	note(b, dat_get_handle_type(a->ep, &type));
	note(b, dat_ep_query(a->ep, DAT_EP_FIELD_ALL, &b->ep_param));
}

static void burst_run(struct burst *b)
{
	b->hard = in_hardirq();
	b->soft = in_serving_softirq();
	b->calls = 0;
	burst_post(b);
	burst_look(b);
	WRITE_ONCE(b->done, true);
	kd_wake();
}

static void burst_hard(struct irq_work *work)
{
	burst_run(container_of(work, struct burst, work));
}

static void burst_soft(struct tasklet_struct *t)
{
	burst_run(container_of(t, struct burst, tasklet));
}

static bool burst_is_done(void *data)
{
	return READ_ONCE(((struct burst *)data)->done);
}

static struct burst *make_burst(struct kunit *test, struct kd_pair *c)
{
	struct burst *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, b);
	b->c = c;
	b->fmr_mem = kd_buf_alloc(c->a, PAGE_SIZE);
	b->srq = kd_srq(c->a, 32);
	b->soft_evd = kd_evd(c->a, DAT_EVD_SOFTWARE_FLAG, 8,
			     DAT_UPCALL_DISABLE);
	KD_ASSERT_OK(test, dat_lmr_allocate(c->a->ia, c->a->pz, 1,
					    DAT_LMR_SCOPE_PZ, &b->fmr));
	KD_ASSERT_OK(test, dat_rmr_create(c->a->pz, &b->rmr));
	init_irq_work(&b->work, burst_hard);
	tasklet_setup(&b->tasklet, burst_soft);
	return b;
}

/* Expect that all calls and all requests have succeeded. */
static void expect_burst(struct kunit *test, struct burst *b)
{
	struct kd_side *a = b->c->a, *p = b->c->p;
	u64 cookie;
	int i;

	KUNIT_ASSERT_TRUE(test, kd_wait_until(burst_is_done, b, KD_TIMEOUT_MS));
	for (i = 0; i < b->calls; i++)
		KUNIT_EXPECT_EQ_MSG(test, b->ret[i], DAT_SUCCESS, "call %d", i);
	kd_expect_dto(test, p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	for (cookie = 2; cookie < 7; cookie++)
		kd_expect_dto(test, a->req_evd, cookie, DAT_DTO_SUCCESS, NULL);
	kd_expect_event(test, a->req_evd, DAT_RMR_BIND_COMPLETION_EVENT, NULL);
	b->done = false;
}

/* Have @begin make bursts in a context of its own. */
static void run_bursts(struct kunit *test, void (*begin)(struct kunit *test, struct burst *b))
{
	struct kd_pair c = make_pair(test);
	struct burst *b = make_burst(test, &c);
	int i;

	for (i = 0; i < HARDIRQ_ROUNDS; i++) {
		begin(test, b);
		expect_burst(test, b);
	}
	irq_work_sync(&b->work);
	tasklet_kill(&b->tasklet);
}

static void burst_in_hardirq(struct kunit *test, struct burst *b)
{
	irq_work_queue(&b->work);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(burst_is_done, b, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, b->hard);
}

static void C1_in_a_hard_interrupt(struct kunit *test)
{
	run_bursts(test, burst_in_hardirq);
}

static void burst_in_softirq(struct kunit *test, struct burst *b)
{
	tasklet_schedule(&b->tasklet);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(burst_is_done, b, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, b->soft);
}

static void C1_in_a_soft_interrupt(struct kunit *test)
{
	run_bursts(test, burst_in_softirq);
}

static void burst_without_interrupts(struct kunit *test, struct burst *b)
{
	unsigned long flags;

	local_irq_save(flags);
	burst_run(b);
	KUNIT_EXPECT_TRUE(test, irqs_disabled());
	local_irq_restore(flags);
}

static void C1_with_interrupts_disabled(struct kunit *test)
{
	run_bursts(test, burst_without_interrupts);
}

/* Calls of connection management, made in a context of their own. */
struct ending {
	DAT_EP_HANDLE ep;
	DAT_CR_HANDLE cr;
	DAT_RETURN query;
	DAT_RETURN disconnect;
	DAT_RETURN free;
};

static void ending_run(void *data)
{
	struct ending *e = data;
	DAT_CR_PARAM param;

	e->query = dat_cr_query(e->cr, DAT_CR_FIELD_ALL, &param);
	e->disconnect = dat_ep_disconnect(e->ep, DAT_CLOSE_ABRUPT_FLAG);
	e->free = dat_ep_free(e->ep);
}

static void C1_ending_in_a_hard_interrupt(struct kunit *test)
{
	struct kd_pair c = make_pair(test);
	struct ending e = { .ep = c.a->ep };
	u16 port = kd_port();

	c.a->ep = kd_ep(c.a, NULL);
	kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(c.a, c.p, port);
	e.cr = kd_expect_cr(c.p);
	kd_call_in_interrupt(test, ending_run, &e);
	KD_EXPECT_OK(test, e.query);
	KD_EXPECT_OK(test, e.disconnect);
	KD_EXPECT_OK(test, e.free);
	kd_expect_event(test, c.p->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED,
			NULL);
}

static struct kunit_case dto_flags_cases[] = {
	KUNIT_CASE_PARAM(fenced_reads, kd_gen_ia),
	KUNIT_CASE_PARAM(solicited_wait, kd_gen_ia),
	KUNIT_CASE_PARAM(solicited_streams_do_not_mix, kd_gen_ia),
	KUNIT_CASE_PARAM(barrier_fence, kd_gen_ia),
	KUNIT_CASE_PARAM(requests_end_in_order, kd_gen_ia),
	KUNIT_CASE_PARAM(C1_in_a_hard_interrupt, kd_gen_ia),
	KUNIT_CASE_PARAM(C1_in_a_soft_interrupt, kd_gen_ia),
	KUNIT_CASE_PARAM(C1_with_interrupts_disabled, kd_gen_ia),
	KUNIT_CASE_PARAM(C1_ending_in_a_hard_interrupt, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-dto-flags", dto_flags_cases, "completion flags and contexts");
