// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * When the completion queues of an EVD are armed, and what is seen of completions
 * that come while they are not.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include "fixture.h"
#include "probe.h"

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

	dat_ep_post_send(window.pair.a->ep, 1, &seg, kd_cookie(cookie),
			 DAT_COMPLETION_SOLICITED_WAIT_FLAG);
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
	KUNIT_CASE_PARAM(C3_solicited_found_by_a_query, kd_gen_simulated_ia),
	{}
};

static struct kunit_suite arming_suite = {
	.name = "kdapl-arming",
	.test_cases = arming_cases,
};

kunit_test_suite(arming_suite);

MODULE_DESCRIPTION("KUnit suite of kdapl.ko: armed completion queues");
MODULE_LICENSE("Dual BSD/GPL");
