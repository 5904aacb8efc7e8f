// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clauses S1 to S4: resizing an SRQ.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include "device.h"
#include "srq_fixture.h"

#define RESIZE(b, n)	dat_srq_resize((b)->in->srq, n)

static void S3_exactly_the_request(struct kunit *test)
{
	static const DAT_COUNT sizes[] = { 11, 100, 1, 2, 3, 64, 65, 1000, 7 };
	struct rx_bench *b = rx_open(test, 10);
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		KD_EXPECT_OK(test, RESIZE(b, sizes[i]));
		rx_expect_counts(b, sizes[i], 0, 0);
	}
}

/* Posts beyond the size are refused, however much room the device has. */
static void S3_posts_beyond(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 5);

	rx_post(b, NULL, 5);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, rx_try_post(b, NULL));
	KD_EXPECT_OK(test, RESIZE(b, 9));
	rx_post(b, NULL, 4);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, rx_try_post(b, NULL));
	rx_expect_counts(b, 9, 9, 9);
	KD_EXPECT_OK(test, RESIZE(b, 300));
	rx_post(b, NULL, 291);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, rx_try_post(b, NULL));
	rx_expect_counts(b, 300, 300, 300);
}

static void S2_outstanding(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, 6);
	rx_deliver_n(b, link, 2);
	rx_reap(b, link);
	/* 4 buffers are on the SRQ, 1 is taken and not reaped. */
	KD_EXPECT_RET(test, DAT_INVALID_STATE, RESIZE(b, 4));
	rx_expect_counts(b, 10, 4, 5);
	KD_EXPECT_OK(test, RESIZE(b, 5));
	rx_expect_counts(b, 5, 4, 5);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      rx_try_post(b, link));
	rx_reap(b, link);
	KD_EXPECT_OK(test, RESIZE(b, 4));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, RESIZE(b, 3));
	rx_expect_counts(b, 4, 4, 4);
	rx_deliver_n(b, link, 4);
	rx_reap_n(b, link, 4);
	rx_expect_counts(b, 4, 0, 0);
}

static void S2_low_watermark(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 10);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, 5);
	KD_ASSERT_OK(test, dat_srq_set_lw(b->in->srq, 5));
	rx_expect_quiet(b);
	KD_EXPECT_RET(test, DAT_INVALID_STATE, RESIZE(b, 4));
	KD_EXPECT_OK(test, RESIZE(b, 5));
	rx_expect_counts(b, 5, 5, 5);
	KUNIT_EXPECT_EQ(test, rx_query(b).low_watermark, 5);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_srq_set_lw(b->in->srq, 6));
	KD_EXPECT_OK(test, RESIZE(b, 200));
	/* Resizing neither fires nor disarms the low watermark. */
	kd_expect_no_event(test, b->in->async_evd);
	rx_deliver(b, link);
	rx_expect_low(b);
	KD_EXPECT_OK(test, RESIZE(b, 5));
	KD_EXPECT_OK(test, dat_srq_set_lw(b->in->srq, 0));
	rx_deliver_n(b, link, 4);
	rx_reap_n(b, link, 5);
	KD_EXPECT_OK(test, RESIZE(b, 1));
	kd_expect_no_event(test, b->in->async_evd);
}

static void S2_bad_values(struct kunit *test)
{
	static const DAT_COUNT bad[] = { 0, -1, INT_MIN, INT_MAX };
	struct rx_bench *b = rx_open(test, 10);
	DAT_IA_ATTR *attr;
	int i;

	attr = kunit_kzalloc(test, sizeof(*attr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, attr);
	KD_ASSERT_OK(test, dat_ia_query(b->in->ia, NULL,
					DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ, attr,
					0, NULL));
	rx_post(b, NULL, 2);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, RESIZE(b, bad[i]));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      RESIZE(b, attr->max_recv_per_srq + 1));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_srq_resize(NULL, 10));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_srq_resize((DAT_SRQ_HANDLE)b->in->ia, 10));
	rx_expect_counts(b, 10, 2, 2);
}

/* Messages arrive in posting order over every change of size. */
static void S1_order(struct kunit *test)
{
	static const DAT_COUNT sizes[] = { 40, 900, 700, 1000, 5 };
	struct rx_bench *b = rx_open(test, 4);
	struct rx_link *link = rx_link(b);
	u64 cookie = 0;
	int i, j, n;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		KD_EXPECT_OK(test, RESIZE(b, sizes[i]));
		n = min(sizes[i] - rx_query(b).outstanding_dto_count,
			kd_slow_kernel() ? 60 : 250);
		rx_post(b, link, n);
		n = rx_query(b).available_dto_count;
		/* Leave some buffers, so that the next size finds old ones. */
		for (j = n > 8 ? 3 : 0; j < n; j++) {
			rx_deliver(b, link);
			KUNIT_EXPECT_EQ(test, rx_reap(b, link), cookie++);
		}
	}
	while (rx_query(b).available_dto_count) {
		rx_deliver(b, link);
		KUNIT_EXPECT_EQ(test, rx_reap(b, link), cookie++);
	}
	KUNIT_EXPECT_EQ(test, cookie, b->posted);
	rx_expect_counts(b, 5, 0, 0);
}

/* Grow far beyond the device's queue, which was made for 64 buffers. */
static void S1_beyond_the_device(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 1);
	struct rx_link *x = rx_link(b), *y = rx_link(b);
	u32 seen[16] = { };
	u64 cookie;
	int i;

	KD_EXPECT_OK(test, RESIZE(b, 512));
	rx_post(b, x, 512);
	rx_expect_counts(b, 512, 512, 512);
	for (i = 0; i < 512; i++) {
		rx_send_n(b, i % 3 ? x : y, 1);
		cookie = rx_reap(b, i % 3 ? x : y);
		KUNIT_EXPECT_EQ(test, cookie, i);
		seen[cookie / 32] |= BIT(cookie % 32);
	}
	for (i = 0; i < ARRAY_SIZE(seen); i++)
		KUNIT_EXPECT_EQ(test, seen[i], U32_MAX);
	rx_expect_counts(b, 512, 0, 0);
}

/*
 * Bursts that are not reaped: the surplus is posted to the device as messages
 * complete.
 */
static void S1_burst(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 2);
	struct rx_link *link = rx_link(b);
	int i;

	KD_EXPECT_OK(test, RESIZE(b, 400));
	rx_post(b, link, 400);
	for (i = 0; i < 400; i++) {
		KD_ASSERT_OK(test, rx_try_send(b, link));
		/* 16 requests may be outstanding. */
		if (i >= 15)
			kd_expect_dto(test, b->out->req_evd, i - 15,
				      DAT_DTO_SUCCESS, NULL);
	}
	rx_wait_counts(b, 0, 400);
	rx_expect_empty(b, b->in->conn_evd);
	rx_reap_n(b, link, 400);
	rx_expect_counts(b, 400, 0, 0);
}

/* How the receives of S1_burst_at_once are reaped. */
enum { BURST_SOFTIRQ, BURST_PROCESS, BURST_POLLED };

static KD_CHOICES(gen_burst, kd_gen_ia_and, "softirq", "process", "polled")

/* A burst without a pause, four times as long as the device's queue. */
static void S1_burst_at_once(struct kunit *test)
{
	const struct kd_param *param = test->param_value;
	DAT_EP_ATTR attr = kd_ep_attr();
	struct rx_bench *b;
	struct rx_link *link;
	int i;

	/* It takes buffers faster than they are handed on, and iWARP has no RNR. */
	if (kd_ia_has(param->ia, KD_IWARP) &&
	    (kd_is_own() || kd_ia_has(param->ia, KD_SIMULATED)))
		kunit_skip(test, "the device's SRQ runs dry, which ends the connection");
	b = rx_open_on(test, param->ia, (struct kd_opts) {
		.srq_len = 2, .merged = param->choice == BURST_PROCESS,
		.polled = param->choice == BURST_POLLED });
	KD_EXPECT_OK(test, RESIZE(b, 256));
	link = rx_eps(b, NULL);
	KD_ASSERT_OK(test, dat_ep_free(link->out));
	attr.max_request_dtos = 256;
	link->out = kd_ep(b->out, &attr);
	rx_connect(b, link);
	rx_post(b, link, 256);
	for (i = 0; i < 256; i++)
		KD_ASSERT_OK(test, rx_try_send(b, link));
	for (i = 0; i < 256; i++)
		KUNIT_ASSERT_EQ(test, rx_reap(b, link), i);
	rx_expect_counts(b, 256, 0, 0);
}

/* An SRQ grows before and after connections have come and gone. */
static void S1_over_connections(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 3);
	struct rx_link *link = rx_link(b);
	int round;

	for (round = 1; round <= 4; round++) {
		KD_EXPECT_OK(test, RESIZE(b, round * 100));
		rx_post(b, link, 20);
		rx_deliver_n(b, link, 10);
		rx_disconnect(b, link);
		rx_reap_n(b, link, 10);
		rx_expect_counts(b, round * 100, round * 10, round * 10);
		rx_reset(b, link);
		rx_connect(b, link);
	}
	rx_pass_n(b, link, 40);
	rx_expect_counts(b, 400, 0, 0);
}

/* ---- S4: everything at the same time ------------------------------------- */

struct churn {
	struct rx_bench *b;
	u32 resized;
	u32 marked;
	u32 bad;
};

/* Sleep now and then, so that traffic goes on. */
static void churn_pause(u32 n)
{
	kd_wake();
	if (n % 16)
		cond_resched();
	else
		schedule_timeout_uninterruptible(1);
}

/* Sizes that are always allowed, and some that never are. */
static int churn_resize(void *data)
{
	struct churn *c = data;
	DAT_RETURN ret;
	DAT_COUNT n;

	while (!kthread_should_stop()) {
		n = 64 + c->resized * 37 % 400;
		ret = RESIZE(c->b, n);
		if (ret && DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
			c->bad++;
		if (DAT_GET_TYPE(RESIZE(c->b, 0)) != DAT_INVALID_PARAMETER)
			c->bad++;
		WRITE_ONCE(c->resized, c->resized + 1);
		churn_pause(c->resized);
	}
	return 0;
}

static int churn_mark(void *data)
{
	struct churn *c = data;

	while (!kthread_should_stop()) {
		if (dat_srq_set_lw(c->b->in->srq, c->marked % 60))
			c->bad++;
		WRITE_ONCE(c->marked, c->marked + 1);
		churn_pause(c->marked);
	}
	return 0;
}

struct churn_want {
	struct churn *c;
	u32 resized;
	u32 marked;
};

static bool churn_moved(void *data)
{
	struct churn_want *w = data;

	return READ_ONCE(w->c->resized) > w->resized &&
	       READ_ONCE(w->c->marked) > w->marked;
}

static void S4_under_traffic(struct kunit *test)
{
	int n = kd_slow_kernel() ? 200 : 800;
	struct rx_bench *b = rx_open(test, 256);
	struct rx_link *link = rx_link(b);
	struct churn c = { b };
	struct task_struct *resize, *mark;
	u64 cookie = 0;
	int i;

	rx_post(b, link, 64);
	resize = kthread_run(churn_resize, &c, "rx_resize");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, resize);
	mark = kthread_run(churn_mark, &c, "rx_mark");
	if (IS_ERR(mark))
		kthread_stop(resize);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mark);
	for (i = 0; i < n; i++) {
		struct churn_want w = { &c, c.resized, c.marked };

		if (i % 16 == 0 &&
		    !kd_wait_until(churn_moved, &w, KD_TIMEOUT_MS))
			c.bad++;
		KD_EXPECT_OK(test, rx_try_send(b, link));
		kd_expect_dto(test, b->out->req_evd, i, DAT_DTO_SUCCESS, NULL);
		KUNIT_EXPECT_EQ(test, rx_reap(b, link), cookie++);
		/*
		 * At most 64 buffers are outstanding, for which the smallest
		 * size has room.
		 */
		KD_EXPECT_OK(test, rx_try_post(b, link));
		kd_drain(b->in->async_evd);
	}
	kthread_stop(mark);
	kthread_stop(resize);
	KUNIT_EXPECT_EQ(test, c.bad, 0);
	KUNIT_EXPECT_EQ(test, rx_query(b).available_dto_count, 64);
	KUNIT_EXPECT_EQ(test, rx_query(b).outstanding_dto_count, 64);
	kunit_info(test, "%u resizes, %u marks in %d messages\n", c.resized,
		   c.marked, n);
}

/* ---- Devices that do not resize, or refuse buffers ------------------------ */

static struct {
	struct kd_hook device;
	atomic_t posts;
	int refuse;			/* buffers to refuse, after the first two */
} fake;

static int fake_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr,
			   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	return -EINVAL;
}

static int fake_post(struct ib_srq *srq, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad)
{
	if (fake.refuse && atomic_read(&fake.posts) == 2) {
		fake.refuse--;
		return -ENOMEM;
	}
	atomic_inc(&fake.posts);
	kd_wake();
	return fake.device.real.post_srq_recv(srq, wr, bad);
}

static void fake_install(struct rx_bench *b, int refuse)
{
	struct ib_device *dev;

	atomic_set(&fake.posts, 0);
	fake.refuse = refuse;
	dev = kd_hook(b->test, b->in->name, &fake.device);
	dev->ops.modify_srq = fake_modify_srq;
	dev->ops.post_srq_recv = fake_post;
}

static bool fake_has(void *data)
{
	return atomic_read(&fake.posts) >= *(int *)data;
}

static void S1_post_refused(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 16);
	struct rx_link *link = rx_link(b);
	u64 cookie;

	fake_install(b, 3);
	rx_post(b, link, 4);
	rx_expect_counts(b, 16, 4, 4);
	for (cookie = 0; cookie < 4; cookie++) {
		rx_deliver(b, link);
		KUNIT_EXPECT_EQ(test, rx_reap(b, link), cookie);
	}
	rx_expect_counts(b, 16, 0, 0);
	KUNIT_EXPECT_EQ(test, fake.refuse, 0);
}

/*
 * Buffers of a freed EP wait for room in the device, and only kDAPL polls for
 * the completions that make room.
 */
static void S1_returned_are_fed(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;
	struct rx_link *x, *y;
	struct rx_bench *b;
	int posts = 101;

	b = rx_open_on(test, ia, (struct kd_opts) {
		.srq_len = 8, .polled = true });
	fake_install(b, 0);
	KD_EXPECT_OK(test, RESIZE(b, 100));
	x = rx_link(b);
	b->in->recv_evd = kd_evd(b->in, DAT_EVD_DTO_FLAG, 256,
				 DAT_UPCALL_DISABLE);
	y = rx_link(b);
	rx_post(b, x, 100);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake.posts), 64);
	rx_deliver_n(b, x, 36);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake.posts), 100);
	/* The device has all buffers, so that nothing has to be polled. */
	KD_EXPECT_OK(test, dat_srq_set_lw(b->in->srq, 0));
	KD_EXPECT_OK(test, dat_ep_free(x->in));
	KUNIT_EXPECT_EQ(test, atomic_read(&fake.posts), 100);
	rx_send_n(b, y, 1);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(fake_has, &posts,
					      KD_TIMEOUT_MS));
	rx_wait_counts(b, 99, 100);
	rx_reap(b, y);
	rx_expect_counts(b, 100, 99, 99);
}

static DECLARE_COMPLETION(upcall_may_end);

static void wait_in_upcall(struct kd_recorder *rec, const DAT_EVENT *event,
			   DAT_BOOLEAN more)
{
	kd_wake();
	wait_for_completion_timeout(&upcall_may_end,
				    msecs_to_jiffies(2 * KD_TIMEOUT_MS));
}

static bool is_in_upcall(void *data)
{
	struct kd_recorder *rec = data;

	return atomic_read(&rec->running);
}

/*
 * Buffers are posted while kDAPL believes that the device has no room, although
 * the device has used up all it had: the dispatcher, which alone polls, is in
 * an upcall.
 */
static void S1_fed_during_an_upcall(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct rx_bench *b = rx_open(test, 8);
	struct rx_link *link;
	int posts = 128;

	fake_install(b, 0);
	KD_EXPECT_OK(test, RESIZE(b, 200));
	rec->hook = wait_in_upcall;
	b->in->recv_evd = kd_recorded_evd(b->in, DAT_EVD_DTO_FLAG |
					  DAT_EVD_CONNECTION_FLAG, 256,
					  DAT_UPCALL_SINGLE_INSTANCE, rec);
	link = rx_link(b);
	reinit_completion(&upcall_may_end);
	rx_post(b, link, 64);
	rx_send_n(b, link, 1);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_in_upcall, rec,
					      KD_TIMEOUT_MS));
	rx_send_n(b, link, 63);
	rx_post(b, link, 64);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(fake_has, &posts, KD_TIMEOUT_MS));
	rx_send_n(b, link, 64);
	complete_all(&upcall_may_end);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 128));
	rx_expect_counts(b, 200, 0, 0);
}

/* An SRQ longer than any CQ of rxe, from the start and after a resize. */
static void S1_longer_than_a_cq(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 20000);
	struct rx_link *link = rx_link(b);

	rx_post(b, link, 3);
	rx_deliver(b, link);
	KD_EXPECT_OK(test, RESIZE(b, 40000));
	rx_deliver(b, link);
	rx_disconnect(b, link);
	rx_reset(b, link);
	rx_connect(b, link);
	rx_deliver(b, link);
	rx_reap_n(b, link, 3);
	rx_expect_counts(b, 40000, 0, 0);
}

/* ---- No memory ----------------------------------------------------------- */

#ifdef CONFIG_FAULT_INJECTION
static void S2_no_memory(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 8);
	struct rx_link *link = rx_link(b);
	DAT_COUNT size = 8, target;
	int nth, failed = 0;
	DAT_RETURN ret;

	rx_post(b, link, 8);
	for (nth = 1; nth < 60; nth++) {
		target = size + 5;
		current->fail_nth = nth;
		ret = RESIZE(b, target);
		current->fail_nth = 0;
		if (ret == DAT_SUCCESS) {
			size = target;
		} else {
			failed++;
			KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret),
					(u32)DAT_INSUFFICIENT_RESOURCES);
		}
		rx_expect_counts(b, size, 8, 8);
	}
	KUNIT_EXPECT_GE(test, failed, 5);
	KUNIT_EXPECT_GE(test, size, 13);
	rx_post(b, link, size - 8);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, rx_try_post(b, link));
	rx_pass_n(b, link, size);
}
#else
static void S2_no_memory(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_FAULT_INJECTION");
}
#endif

static struct kunit_case resize_cases[] = {
	KUNIT_CASE_PARAM(S1_order, kd_gen_ia),
	KUNIT_CASE_PARAM(S1_beyond_the_device, kd_gen_ia),
	KUNIT_CASE_PARAM(S1_burst, kd_gen_ia),
	KUNIT_CASE_PARAM(S1_burst_at_once, gen_burst),
	KUNIT_CASE_PARAM(S1_over_connections, kd_gen_ia),
	KUNIT_CASE_PARAM(S1_post_refused, kd_gen_ia),
	KUNIT_CASE_PARAM(S1_returned_are_fed, kd_gen_ia),
	KUNIT_CASE_PARAM(S1_fed_during_an_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(S1_longer_than_a_cq, kd_gen_ia),
	KUNIT_CASE_PARAM(S2_outstanding, kd_gen_ia),
	KUNIT_CASE_PARAM(S2_low_watermark, kd_gen_ia),
	KUNIT_CASE_PARAM(S2_bad_values, kd_gen_ia),
	KUNIT_CASE_PARAM(S2_no_memory, kd_gen_ia),
	KUNIT_CASE_PARAM(S3_exactly_the_request, kd_gen_ia),
	KUNIT_CASE_PARAM(S3_posts_beyond, kd_gen_ia),
	KUNIT_CASE_PARAM(S4_under_traffic, kd_gen_ia),
	{ }
};

KD_SUITE("kdapl_resize", resize_cases, "resizing an SRQ");
