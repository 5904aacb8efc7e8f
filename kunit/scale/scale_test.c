// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Many Endpoints on one SRQ and many LMRs, on the simulated adapter, whose own cost
 * does not grow with their number. The cases assert that all of it works; what it
 * costs is printed as "scale: ..." and judged by whoever reads it. Parameters set
 * the numbers: by default they take a second or two, "make check-scale" wants more.
 */
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include "device.h"
#include "param.h"
#include "../sim/kdapl_sim.h"

#define MSG_LEN		64
#define ROUNDS		5
#define KEPT_QPS	8
#define SCALE_TIMEOUT_MS	(10 * KD_TIMEOUT_MS)

KD_PARAM(eps, uint, 64, "connections");
KD_PARAM(lmrs, uint, 1000, "registered LMRs");
KD_PARAM(messages, uint, 200, "of each round of a measurement");

/*
 * struct crowd - @n connections between two sides, whose DTOs are polled for
 * @recvs: max_recv_dtos
 */
struct crowd {
	struct kunit *test;
	struct kd_side *a;
	struct kd_side *p;
	DAT_EP_HANDLE *from;
	DAT_EP_HANDLE *to;
	unsigned int n;
	unsigned int recvs;
};

static void free_array(void *array)
{
	kvfree(array);
}

static void *array_of(struct kunit *test, size_t n, size_t size)
{
	void *array = kvcalloc(n, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, array);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, free_array, array));
	return array;
}

static void expect(struct crowd *c, DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(KD_TIMEOUT_MS);

	while (dat_evd_dequeue(evd, event) != DAT_SUCCESS) {
		KUNIT_ASSERT_TRUE_MSG(c->test, time_before(jiffies, deadline),
				      "no event");
		/* The device works in a softirq, which runs here and now. */
		local_bh_disable();
		local_bh_enable();
		cond_resched();
	}
	KUNIT_ASSERT_EQ(c->test, (u32)event->event_number,
			(u32)DAT_DTO_COMPLETION_EVENT);
	KUNIT_ASSERT_EQ(c->test, (u32)event->event_data
			.dto_completion_event_data.status, (u32)DAT_DTO_SUCCESS);
}

static void post_buffer(struct crowd *c)
{
	DAT_LMR_TRIPLET seg = kd_seg(c->p->buf, 0, MSG_LEN);

	KD_ASSERT_OK(c->test, dat_srq_post_recv(c->p->srq, 1, &seg,
						kd_cookie(1)));
}

/* Message @i's way, from its post to both completions, and its buffer's. */
static void transfer(struct crowd *c, unsigned int i)
{
	DAT_LMR_TRIPLET seg = kd_seg(c->a->buf, 0, MSG_LEN);
	DAT_EVENT event;

	KD_ASSERT_OK(c->test, dat_ep_post_send(c->from[i], 1, &seg, kd_cookie(i),
					       DAT_COMPLETION_DEFAULT_FLAG));
	expect(c, c->p->recv_evd, &event);
	KUNIT_ASSERT_PTR_EQ(c->test, event.event_data.dto_completion_event_data
			    .ep_handle, c->to[i]);
	expect(c, c->a->req_evd, &event);
	post_buffer(c);
}

/* Nanoseconds a message takes, the best of some rounds; over all EPs, or EP 0. */
static u64 cost(struct crowd *c, bool all)
{
	u64 best = U64_MAX;
	unsigned int i, round;
	ktime_t start;

	for (round = 0; round < ROUNDS; round++) {
		start = ktime_get();
		for (i = 0; i < messages; i++)
			transfer(c, all ? (i + round * messages) % c->n : 0);
		best = min_t(u64, best, ktime_to_ns(ktime_sub(ktime_get(), start)));
	}
	return div_u64(best, messages);
}

/* ---- Connections --------------------------------------------------------- */

static void connect_more(struct crowd *c, unsigned int n)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	u16 port = kd_port();
	DAT_PSP_HANDLE psp = kd_psp(c->p, port, DAT_PSP_CONSUMER_FLAG);

	attr.max_recv_dtos = c->recvs;
	attr.max_request_dtos = 2;
	attr.max_recv_iov = 1;
	attr.max_request_iov = 1;
	attr.max_rdma_write_iov = 1;
	for (; c->n < n; c->n++) {
		c->a->ep = kd_ep(c->a, &attr);
		c->p->ep = kd_ep(c->p, &attr);
		kd_connect_start(c->a, c->p, port);
		kd_accept(c->a, c->p);
		c->from[c->n] = c->a->ep;
		c->to[c->n] = c->p->ep;
	}
	KD_EXPECT_OK(c->test, dat_psp_free(psp));
}

static void free_eps(struct crowd *c, unsigned int keep)
{
	for (; c->n > keep; c->n--) {
		KD_EXPECT_OK(c->test, dat_ep_free(c->from[c->n - 1]));
		KD_EXPECT_OK(c->test, dat_ep_free(c->to[c->n - 1]));
	}
}

static u64 ms_since(ktime_t start)
{
	return ktime_ms_delta(ktime_get(), start);
}

/* Events of connections are waited for: polling would look for them once a tick. */
static void wait_for_connections(struct kd_side *s)
{
	s->conn_evd = kd_evd(s, DAT_EVD_CONNECTION_FLAG, eps + 64,
			     DAT_UPCALL_NOTIFY);
	s->cr_evd = kd_evd(s, DAT_EVD_CR_FLAG, 64, DAT_UPCALL_NOTIFY);
}

static u64 free_memory(void)
{
	struct sysinfo info;

	si_meminfo(&info);
	return (u64)info.freeram * PAGE_SIZE;
}

/* One connection is left; a Protection Zone may have a queue pair as well. */
static bool are_gone(void *device)
{
	return kdapl_sim_count(device, KDAPL_SIM_N_qps) <= KEPT_QPS;
}

/* One connection is used beside others that are idle, or have been. */
static void many_connections(struct kunit *test)
{
	struct kd_opts opts = {
		.no_ep = true, .polled = true, .qlen = 2 * eps + 64,
	};
	struct crowd c = { .test = test, .recvs = 1 };
	unsigned int steps[] = { 1, max(eps / 100, 1U), max(eps / 10, 1U), eps }, i;
	u64 memory, ms, bytes, one;
	struct ib_device *device;
	ktime_t start;

	c.a = kd_open_param(test);
	c.p = kd_open_param(test);
	device = kd_device(test, c.a->name);
	c.from = array_of(test, eps, sizeof(*c.from));
	c.to = array_of(test, eps, sizeof(*c.to));
	kd_setup(c.a, &opts);
	opts.srq_len = 256;
	kd_setup(c.p, &opts);
	wait_for_connections(c.a);
	wait_for_connections(c.p);
	for (i = 0; i < 128; i++)
		post_buffer(&c);
	memory = free_memory();
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		start = ktime_get();
		connect_more(&c, steps[i]);
		/* The arguments of a call are evaluated in any order. */
		ms = ms_since(start);
		bytes = div_u64(memory - min(memory, free_memory()), c.n);
		one = cost(&c, false);
		kunit_info(test, "scale: %6u connections, made in %llu ms; %llu bytes each; one active: %llu ns a message, all in turn: %llu ns",
			   c.n, ms, bytes, one, cost(&c, true));
	}
	free_eps(&c, eps - 1);
	kunit_info(test, "scale: %6u connections are left, one active: %llu ns a message",
		   c.n, cost(&c, false));
	start = ktime_get();
	free_eps(&c, 1);
	ms = ms_since(start);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(are_gone, device, SCALE_TIMEOUT_MS));
	kunit_info(test, "scale: %6u connections freed in %llu ms, their queue pairs in %llu ms; one active: %llu ns a message",
		   eps - 2, ms, ms_since(start), cost(&c, false));
}

/* ---- Completion queues ---------------------------------------------------- */

/* What is done to CQs; those of ib_core's own interface have ->wc. */
static struct {
	struct kd_hook device;
	atomic_t polls;
	atomic_t armings;
} tally;

static int tally_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	if (!cq->wc)
		atomic_inc(&tally.polls);
	return tally.device.real.poll_cq(cq, n, wc);
}

static int tally_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	if (!cq->wc)
		atomic_inc(&tally.armings);
	return tally.device.real.req_notify_cq(cq, flags);
}

/* A consumer that is called back wants to hear of each message. */
static void expect_calls(struct crowd *c, struct kd_recorder *rec, int calls)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(KD_TIMEOUT_MS);

	while (atomic_read(&rec->calls) < calls) {
		KUNIT_ASSERT_TRUE_MSG(c->test, time_before(jiffies, deadline),
				      "no upcall");
		local_bh_disable();
		local_bh_enable();
		cond_resched();
	}
}

/* Count the CQs of all EVDs: a poll of each that finds nothing. */
static int count_cqs(struct crowd *c)
{
	DAT_EVENT event;

	atomic_set(&tally.polls, 0);
	dat_evd_dequeue(c->p->recv_evd, &event);
	return atomic_read(&tally.polls);
}

/*
 * Endpoints with queues of their own, whose receives cause upcalls. What a message
 * costs is counted, and must not depend on the number of Endpoints or of CQs.
 */
static void many_queues(struct kunit *test)
{
	struct kd_opts opts = { .no_ep = true, .polled = true, .qlen = 1024 };
	struct kd_recorder *rec = kd_recorder(test);
	struct crowd c = { .test = test, .recvs = 64 };
	struct ib_device *dev;
	unsigned int i, n;
	int cqs, few = 2 + order_base_2(DIV_ROUND_UP(eps * c.recvs, 1024));

	c.a = kd_open_param(test);
	c.p = kd_open_param(test);
	c.from = array_of(test, eps, sizeof(*c.from));
	c.to = array_of(test, eps, sizeof(*c.to));
	kd_setup(c.a, &opts);
	kd_setup(c.p, &opts);
	wait_for_connections(c.a);
	wait_for_connections(c.p);
	c.p->recv_evd = kd_recorded_evd(c.p, DAT_EVD_DTO_FLAG, 1024,
					DAT_UPCALL_SINGLE_INSTANCE, rec);
	c.a->req_evd = kd_evd(c.a, DAT_EVD_DTO_FLAG, 4 * eps, DAT_UPCALL_DISABLE);
	connect_more(&c, eps);
	dev = kd_hook(test, c.p->name, &tally.device);
	dev->ops.poll_cq = tally_poll_cq;
	dev->ops.req_notify_cq = tally_req_notify_cq;
	cqs = count_cqs(&c);
	n = min(eps, messages);
	atomic_set(&tally.polls, 0);
	atomic_set(&tally.armings, 0);
	for (i = 0; i < n; i++) {
		DAT_LMR_TRIPLET seg = kd_seg(c.p->buf, 0, MSG_LEN);
		unsigned int at = (u64)i * eps / n;

		KD_ASSERT_OK(test, dat_ep_post_recv(c.to[at], 1, &seg, kd_cookie(i),
						    DAT_COMPLETION_DEFAULT_FLAG));
		seg = kd_seg(c.a->buf, 0, MSG_LEN);
		KD_ASSERT_OK(test, dat_ep_post_send(c.from[at], 1, &seg, kd_cookie(i),
						    DAT_COMPLETION_SUPPRESS_FLAG));
		expect_calls(&c, rec, i + 1);
	}
	kunit_info(test, "scale: %6u Endpoints with %u receives each: %d CQs; %u messages: %d polls, %d armings",
		   eps, c.recvs, cqs, n, atomic_read(&tally.polls),
		   atomic_read(&tally.armings));
	KUNIT_EXPECT_LE(test, cqs, few);
	KUNIT_EXPECT_LE(test, atomic_read(&tally.polls), 3 * n);
	KUNIT_EXPECT_LE(test, atomic_read(&tally.armings), 2 * n);
	free_eps(&c, 0);
}

/* ---- Memory -------------------------------------------------------------- */

static void regions(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_LMR_HANDLE *lmr = array_of(test, lmrs, sizeof(*lmr));
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT key;
	unsigned int i;
	ktime_t start;
	u64 create, half;

	kd_setup(s, &(struct kd_opts) { .no_ep = true, .polled = true });
	region.for_va = s->buf->va;
	start = ktime_get();
	for (i = 0; i < lmrs; i++)
		KD_ASSERT_OK(test, dat_lmr_kcreate(s->ia, DAT_MEM_TYPE_VIRTUAL,
						   region, PAGE_SIZE, s->pz,
						   DAT_MEM_PRIV_ALL_FLAG,
						   DAT_VA_TYPE_VA,
						   DAT_MEM_OPTIMIZE_DONT_CARE,
						   &lmr[i], &context, &key,
						   NULL, NULL));
	create = ms_since(start);
	start = ktime_get();
	for (i = 0; i < lmrs / 2; i++)
		KD_EXPECT_OK(test, dat_lmr_free(lmr[i]));
	half = ms_since(start);
	start = ktime_get();
	kd_close(s);
	kunit_info(test, "scale: %6u LMRs registered in %llu ms, half of them freed in %llu ms, an IA with the rest closed in %llu ms",
		   lmrs, create, half, ms_since(start));
}

static struct kunit_case scale_cases[] = {
	KUNIT_CASE_PARAM(many_connections, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(many_queues, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(regions, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-scale", scale_cases, "thousands of Endpoints and LMRs");
