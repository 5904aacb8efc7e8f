// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * When the completion queues of an EVD are armed, and what is seen of completions
 * that come while they are not.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include "device.h"
#include "probe.h"

/* ---- Polled EVDs ---------------------------------------------------------- */

static struct kd_hook device;
static atomic_t armed;

/* Completion queues of ib_core's own interface, which others use, have ->wc. */
static int count_arming(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	if (!cq->wc)
		atomic_inc(&armed);
	return device.real.req_notify_cq(cq, flags);
}

#define RECVS	8

/*
 * Connect two sides whose EVDs are polled and have @qlen entries, and exchange
 * messages. Return how often their completion queues were armed.
 */
static int armed_in_use(struct kunit *test, DAT_COUNT qlen, DAT_COUNT srq_len)
{
	struct kd_side *a = kd_open_param(test), *p = kd_open_param(test);
	struct kd_opts opts = { .polled = true, .qlen = qlen };
	DAT_EP_ATTR attr = kd_ep_attr();
	int i;

	attr.max_recv_dtos = RECVS;
	attr.max_request_dtos = RECVS;
	opts.attr = &attr;
	kd_setup(a, &opts);
	opts.srq_len = srq_len;
	kd_setup(p, &opts);
	atomic_set(&armed, 0);
	kd_hook(test, a->name, &device)->ops.req_notify_cq = count_arming;
	kd_connect_pair(a, p);
	for (i = 0; i < 2 * RECVS; i++)
		kd_ping(a, p);
	return atomic_read(&armed);
}

static void polled_evds_are_not_armed(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, armed_in_use(test, RECVS, 0), 0);
}

static void polled_evds_of_an_srq_are_not_armed(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, armed_in_use(test, RECVS, RECVS), 0);
}

/* R6: an EVD that can overflow is, as nobody else notices it. */
static void R6_short_evds_are_armed(struct kunit *test)
{
	KUNIT_EXPECT_GT(test, armed_in_use(test, RECVS - 1, 0), 0);
}

static void R6_short_evds_of_an_srq_are_armed(struct kunit *test)
{
	KUNIT_EXPECT_GT(test, armed_in_use(test, RECVS - 1, RECVS), 0);
}

/* The CQ that messages come from, and how often that was armed. */
static struct ib_cq *receives;
static atomic_t receives_armed;

static int note_receives(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	int got = device.real.poll_cq(cq, n, wc);

	if (got > 0 && !cq->wc && wc->status == IB_WC_SUCCESS && wc->opcode == IB_WC_RECV)
		receives = cq;
	return got;
}

static int count_receives_armed(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	if (cq == receives)
		atomic_inc(&receives_armed);
	return device.real.req_notify_cq(cq, flags);
}

/*
 * With the low watermark armed, the CQ is armed once for a message that an upcall in process
 * context takes, after it was polled: adapters that notify of what is there already would
 * interrupt for the message again.
 */
static void watched_evds_are_armed_once(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_EP_ATTR attr = kd_ep_attr();
	struct ib_device *dev;
	int i;

	receives = NULL;
	p->recv_evd = kd_recorded_evd(p, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, 512,
				      DAT_UPCALL_SINGLE_INSTANCE, rec);
	p->srq = kd_srq(p, 2 * RECVS);
	p->ep = kd_ep(p, &attr);
	kd_connect_pair(a, p);
	for (i = 0; i < 2 * RECVS; i++)
		kd_recv(p, i * 64, 64, i);
	KD_ASSERT_OK(test, dat_srq_set_lw(p->srq, 1));
	dev = kd_hook(test, p->name, &device);
	dev->ops.poll_cq = note_receives;
	dev->ops.req_notify_cq = count_receives_armed;
	for (i = 0; i < RECVS; i++) {
		atomic_set(&receives_armed, 0);
		kd_send(a, 0, 64, i);
		KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, i + 1));
		KD_EXPECT_OK(test, kdat_evd_wait_upcalls(p->recv_evd));
		KUNIT_EXPECT_LE(test, atomic_read(&receives_armed), 1);
	}
	KUNIT_EXPECT_NOT_NULL(test, receives);
}

/* An SRQ that grows beyond the EVD has it armed at once. */
static void R6_srq_outgrows_its_evd(struct kunit *test)
{
	struct kd_side *a = kd_open_param(test), *p = kd_open_param(test);
	DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;
	int i;

	kd_setup(a, NULL);
	kd_setup(p, &(struct kd_opts) {
		.polled = true, .qlen = RECVS, .srq_len = RECVS,
	});
	kd_connect_pair(a, p);
	KD_ASSERT_OK(test, dat_srq_resize(p->srq, RECVS + 1));
	for (i = 0; i <= RECVS; i++)
		kd_recv(p, 0, 64, i);
	for (i = 0; i <= RECVS; i++)
		kd_send(a, 0, 64, i);
	kd_expect_event(test, p->async_evd, DAT_ASYNC_ERROR_EVD_OVERFLOW, &event);
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_PTR_EQ(test, data->dat_handle, p->recv_evd);
}

/* ---- Solicited waiting ---------------------------------------------------- */

/*
 * struct window - a message that comes, and is polled for by a query, between the
 * dispatcher's last look at the queues and its arming them: it drops the module of
 * the upcall there
 */
static struct window {
	struct kd_pair pair;
	bool open;
	DAT_COUNT seen;
} window;

static void send_solicited(u64 cookie)
{
	DAT_LMR_TRIPLET seg = kd_seg(window.pair.a->buf, 0, 64);

	kd_may_fail(dat_ep_post_send(window.pair.a->ep, 1, &seg, kd_cookie(cookie),
				     DAT_COMPLETION_SOLICITED_WAIT_FLAG));
}

static void in_window(void *data, struct module *mod, unsigned long ip)
{
	ktime_t end = ktime_add_ms(ktime_get(), 1000);

	/* That of kd_recorded_evd() */
	if (strcmp(mod->name, "kdapl_kunit") || !in_task() ||
	    !xchg(&window.open, false))
		return;
	/* The simulated adapter works in interrupts, and so while this waits. */
	send_solicited(3);
	while (!window.seen && ktime_before(ktime_get(), end)) {
		cpu_relax();
		dat_ep_recv_query(window.pair.p->ep, &window.seen, NULL);
	}
}

/* The first upcall takes all events, so the dispatcher looks once more. */
static void take_all(struct kd_recorder *rec, const DAT_EVENT *event,
		     DAT_BOOLEAN more)
{
	DAT_EVENT other;

	if (!more)
		return;
	while (dat_evd_dequeue(window.pair.p->recv_evd, &other) == DAT_SUCCESS)
		;
	window.open = true;
}

static void C3_solicited_found_by_a_query(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_EP_ATTR attr = kd_ep_attr();
	int i;

	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	/*
	 * Upcalls in process context, where a message can be waited for; an EVD that
	 * cannot overflow, so that it is not armed for that.
	 */
	p->recv_evd = kd_recorded_evd(p, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG,
				      512, DAT_UPCALL_DISABLE, rec);
	/* Without an SRQ a query does not tell whether a message has come. */
	p->srq = kd_srq(p, 8);
	p->ep = kd_ep(p, &attr);
	kd_connect_pair(a, p);
	for (i = 0; i < 4; i++)
		kd_recv(p, i * 64, 64, i);
	window = (struct window) { .pair = pair };
	kd_probe(test, "module_put", in_window);
	send_solicited(1);
	send_solicited(2);
	kd_expect_dto(test, a->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	rec->hook = take_all;
	kd_enable_upcalls(test, p->recv_evd, DAT_UPCALL_INVOC_ANY);
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_calls(rec, 2), "%d upcalls",
			      atomic_read(&rec->calls));
	KUNIT_EXPECT_EQ(test, window.seen, 1);
}

/* ---- Suite ----------------------------------------------------------------- */

static struct kunit_case arming_cases[] = {
	KUNIT_CASE_PARAM(polled_evds_are_not_armed, kd_gen_ia),
	KUNIT_CASE_PARAM(polled_evds_of_an_srq_are_not_armed, kd_gen_ia),
	KUNIT_CASE_PARAM(R6_short_evds_are_armed, kd_gen_ia),
	KUNIT_CASE_PARAM(R6_short_evds_of_an_srq_are_armed, kd_gen_ia),
	KUNIT_CASE_PARAM(watched_evds_are_armed_once, kd_gen_ia),
	KUNIT_CASE_PARAM(R6_srq_outgrows_its_evd, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_solicited_found_by_a_query, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-arming", arming_cases, "armed completion queues");
