// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Something fails inside a call (contract I4, M2, S2, C1): the first, second, ...
 * allocation, or operation of the device, until the call gets through. It returns
 * an error that says what was short, and nothing has changed; or it succeeds in
 * full. In the end the device has what it had before, everything can be freed,
 * and kmemleak finds nothing.
 *
 * All calls are in the table below; scripts/api-status compares it with the
 * headers. Allocations need the fault injection of the debug kernel. Some calls
 * make a thousand and more, of which "make check" lets a few fail, and "make
 * soak" more. Only what this thread does fails here; fault_work_test.c is about
 * the rest.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include "fault/ep_calls.h"
#include "fault/seen.h"

#define MOST_FAULTS	5000

static unsigned int fine = 2;
module_param(fine, uint, 0644);
MODULE_PARM_DESC(fine, "the first so many allocations fail one by one, later ones in ever longer steps; 0: all do");

/* What may become of a call in which something fails. */
enum outcome {
	PURE,		/* there is nothing in it that could */
	SURE,		/* it succeeds all the same */
	FALLIBLE,	/* an error, unless there is another way */
	POSTS,		/* as PURE, but for one operation, see end_post() */
};

/*
 * struct fault_call - an exported call
 * @outcome: what may become of it
 * @call: makes it; returns a DAT_RETURN
 * @need: makes what it needs, unless that is there; may be NULL
 * @undo: what to do after a success; may be NULL
 * @end: undoes @need after the last time; may be NULL
 * @twin: nearly all it does another call in the table does as well
 */
struct fault_call {
	const char *name;
	enum outcome outcome;
	u32 (*call)(struct world *w);
	void (*need)(struct world *w);
	void (*undo)(struct world *w);
	void (*end)(struct world *w);
	bool twin;
};

#define CALL(call, outcome, ...) { #call, outcome, __VA_ARGS__ }
#define TWIN	.twin = true

static const struct fault_call fault_calls[] = {
	CALL(dat_registry_list_providers, PURE, do_list),
	CALL(dat_registry_providers_related, PURE, do_related),
	CALL(dat_ia_open, FALLIBLE, do_ia_open, NULL, undo_ia_open),
	CALL(dat_ia_openv, FALLIBLE, do_ia_openv, NULL, undo_ia_open, TWIN),
	CALL(dat_ia_close, SURE, do_ia_close, need_full_ia, end_ia_close),
	CALL(dat_ia_query, FALLIBLE, do_ia_query, TWIN),
	CALL(dat_ia_memtype_hint, PURE, do_memtype_hint),
	CALL(dat_ia_reserved_lmr, FALLIBLE, do_reserved_lmr, need_ia,
	     undo_ia_open),
	CALL(dat_set_consumer_context, PURE, do_set_context),
	CALL(dat_get_consumer_context, PURE, do_get_context),
	CALL(dat_get_handle_type, PURE, do_handle_type),
	CALL(dat_strerror, PURE, do_strerror),

	CALL(dat_pz_create, FALLIBLE, do_pz_create, NULL, undo_pz_free),
	CALL(dat_pz_query, PURE, do_pz_query),
	CALL(dat_pz_free, SURE, do_pz_free, need_pz_create, NULL, undo_pz_free),
	CALL(dat_evd_kcreate, FALLIBLE, do_evd_create, NULL, undo_evd_free),
	CALL(dat_evd_query, PURE, do_evd_query),
	CALL(dat_evd_resize, FALLIBLE, do_evd_resize, need_evd_create,
	     undo_evd_free),
	CALL(dat_evd_modify_upcall, PURE, do_modify_upcall),
	CALL(dat_evd_post_se, PURE, do_post_se, NULL, end_post_se),
	CALL(dat_evd_dequeue, PURE, do_dequeue, need_event),
	CALL(dat_evd_free, SURE, do_evd_free, need_evd_create, NULL,
	     undo_evd_free),

	CALL(dat_lmr_kcreate, FALLIBLE, do_lmr_create, need_zone,
	     undo_lmr_create),
	CALL(dat_lmr_query, PURE, do_lmr_query),
	CALL(dat_lmr_free, SURE, do_lmr_free, need_lmr, undo_lmr_create,
	     undo_lmr_create),
	CALL(dat_lmr_allocate, FALLIBLE, do_lmr_allocate, NULL, undo_lmr_free),
	CALL(dat_lmr_fmr, POSTS, bind_fmr, need_fmr, end_fmr, free_fmr),
	CALL(dat_lmr_invalidate, POSTS, do_lmr_invalidate, need_bound_fmr,
	     end_fmr, free_fmr),
	CALL(dat_lmr_sync_rdma_read, PURE, do_sync_read),
	CALL(dat_lmr_sync_rdma_write, PURE, do_sync_write),
	CALL(dat_rmr_create, FALLIBLE, do_rmr_create, NULL, undo_rmr_free),
	CALL(dat_rmr_create_for_ep, FALLIBLE, do_rmr_create_for_ep, NULL,
	     undo_rmr_free, TWIN),
	CALL(dat_rmr_query, PURE, do_rmr_query, need_rmr_create, NULL,
	     undo_rmr_free),
	CALL(dat_rmr_bind, POSTS, bind_rmr, need_rmr, end_rmr, free_rmr),
	CALL(dat_rmr_free, SURE, do_rmr_free, need_rmr_create, NULL,
	     undo_rmr_free),

	CALL(dat_srq_create, FALLIBLE, do_srq_create, NULL, undo_srq_free),
	CALL(dat_srq_query, PURE, do_srq_query),
	CALL(dat_srq_resize, FALLIBLE, do_srq_resize, NULL, undo_srq_resize),
	CALL(dat_srq_post_recv, SURE, do_srq_recv, need_srq_create, NULL,
	     undo_srq_free),
	CALL(dat_srq_set_lw, PURE, do_srq_set_lw),
	CALL(dat_srq_free, SURE, do_srq_free, need_srq_create, NULL,
	     undo_srq_free),

	CALL(dat_ep_create, FALLIBLE, do_ep_create, NULL, undo_ep_free),
	CALL(dat_ep_create_with_srq, FALLIBLE, do_ep_create_with_srq, NULL,
	     undo_ep_free),
	CALL(dat_ep_query, PURE, do_ep_query),
	CALL(dat_ep_get_status, PURE, do_get_status),
	CALL(dat_ep_recv_query, PURE, do_recv_query),
	CALL(dat_ep_set_watermark, PURE, do_set_watermark),
	CALL(dat_ep_modify, FALLIBLE, do_ep_modify, NULL, undo_ep_modify),
	CALL(dat_ep_modify, FALLIBLE, do_ep_modify_srq, NULL,
	     undo_ep_modify_srq),
	CALL(dat_ep_connect, FALLIBLE, do_connect, NULL, end_attempt),
	CALL(dat_ep_common_connect, FALLIBLE, do_common_connect, NULL,
	     end_attempt, TWIN),
	CALL(dat_ep_dup_connect, FALLIBLE, do_dup_connect, need_pair,
	     end_attempt, TWIN),
	CALL(dat_ep_disconnect, PURE, do_disconnect, need_pair, unconnect_pair),
	CALL(dat_ep_reset, SURE, do_reset, need_disconnected, unconnect_pair),
	CALL(dat_ep_free, SURE, do_ep_free, need_ep_create, NULL, undo_ep_free),

	CALL(dat_ep_post_send, POSTS, do_send, need_pair, end_post),
	CALL(dat_ep_post_send_with_invalidate, POSTS, do_send_invalidate,
	     need_pair, end_post),
	CALL(dat_ep_post_recv, SURE, do_recv, need_pair, end_recv),
	CALL(dat_ep_post_rdma_write, POSTS, do_write, need_pair, end_post),
	CALL(dat_ep_post_rdma_read, POSTS, do_read, need_pair, end_post),
	CALL(dat_ep_post_rdma_read_to_rmr, POSTS, do_read_to_rmr,
	     need_bound_rmr, end_rmr, free_rmr),

	CALL(dat_psp_create, FALLIBLE, do_psp_create, NULL, undo_psp_free),
	CALL(dat_psp_create_any, FALLIBLE, do_psp_create_any, NULL,
	     undo_psp_free, TWIN),
	CALL(dat_psp_query, PURE, do_psp_query),
	CALL(dat_psp_free, SURE, do_psp_free, need_psp_create, NULL,
	     undo_psp_free),
	CALL(dat_rsp_create, FALLIBLE, do_rsp_create, NULL, undo_rsp_free,
	     TWIN),
	CALL(dat_rsp_query, PURE, do_rsp_query, need_rsp_create, NULL,
	     undo_rsp_free),
	CALL(dat_rsp_free, SURE, do_rsp_free, need_rsp_create, NULL,
	     undo_rsp_free),
	CALL(dat_csp_create, FALLIBLE, do_csp_create, NULL, undo_csp_free,
	     TWIN),
	CALL(dat_csp_query, PURE, do_csp_query, need_csp_create, NULL,
	     undo_csp_free),
	CALL(dat_csp_free, SURE, do_csp_free, need_csp_create, NULL,
	     undo_csp_free),
	CALL(dat_cr_query, PURE, do_cr_query, need_request, NULL,
	     finish_request),
	CALL(dat_cr_accept, FALLIBLE, do_cr_accept, need_request,
	     end_connection, finish_request),
	CALL(dat_cr_reject, SURE, do_cr_reject, need_request, end_attempt),
	CALL(dat_cr_handoff, FALLIBLE, do_cr_handoff, need_request,
	     end_attempt),
};

/*
 * struct way - a way to fail
 * @arm: the @nth from here on fails
 * @left: stop; 0 if it did
 */
struct way {
	const char *what;
	int err;
	void (*arm)(unsigned int nth, int err);
	unsigned int (*left)(void);
};

static void arm_allocation(unsigned int nth, int err)
{
	fail_allocation(nth);
}

static void arm_operation(unsigned int nth, int err)
{
	fail_operation(nth, err, current);
}

static const struct way allocations = {
	"allocation", -ENOMEM, arm_allocation, allocations_left
};

static const struct way operations[] = {
	{ "operation", -ENOMEM, arm_operation, operations_left },
	{ "operation", -EINVAL, arm_operation, operations_left },
	{ "operation", -EAGAIN, arm_operation, operations_left },
};

static struct seen before, after;

static void expect_error(struct world *w, const struct fault_call *c,
			 const struct way *way, unsigned int nth,
			 DAT_RETURN ret)
{
	KUNIT_EXPECT_EQ_MSG(w->test, (u32)DAT_GET_TYPE(ret),
			    (u32)DAT_INSUFFICIENT_RESOURCES,
			    "%s: %s %u (%d): %s", c->name, way->what, nth,
			    way->err, kd_strerror(ret));
	look_around(w, &after);
	KUNIT_EXPECT_TRUE_MSG(w->test, !memcmp(&before, &after, sizeof(after)),
			      "%s: %s %u (%d): something has changed", c->name,
			      way->what, nth, way->err);
}

/* Make a call until nothing fails in it; returns how often something did. */
static unsigned int walk(struct world *w, const struct fault_call *c,
			 const struct way *way, unsigned int *errors)
{
	struct kunit *test = w->test;
	unsigned int nth, step, fired = 0;
	DAT_RETURN ret;

	for (nth = 1; nth < MOST_FAULTS; nth += step) {
		step = fine ? 1 + nth / (c->twin ? 1 : fine) : 1;
		w->fired = false;
		if (c->need)
			c->need(w);
		look_around(w, &before);
		way->arm(nth, way->err);
		ret = c->call(w);
		w->fired = !way->left();
		if (ret == DAT_SUCCESS) {
			if (c->undo)
				c->undo(w);
			if (!w->fired)
				break;
		} else {
			KUNIT_EXPECT_TRUE_MSG(test, w->fired, "%s: %s %u: %s",
					      c->name, way->what, nth,
					      kd_strerror(ret));
			expect_error(w, c, way, nth, ret);
			(*errors)++;
		}
		fired++;
	}
	w->fired = false;
	if (c->end)
		c->end(w);
	KUNIT_EXPECT_LT_MSG(test, nth, MOST_FAULTS, "%s", c->name);
	return fired;
}

static void I4_allocations_fail(struct kunit *test)
{
	const struct fault_call *c;
	unsigned int fired, errors;
	struct holdings have;
	struct world *w;

	if (!IS_ENABLED(CONFIG_FAULT_INJECTION))
		kunit_skip(test, "no fault injection in this kernel");
	w = make_world(test);
	for (c = fault_calls; c < fault_calls + ARRAY_SIZE(fault_calls); c++) {
		count_holdings(&have);
		errors = 0;
		fired = walk(w, c, &allocations, &errors);
		kunit_info(test, "%s: %u of %u", c->name, errors, fired);
		if (c->outcome == PURE || c->outcome == POSTS)
			KUNIT_EXPECT_EQ_MSG(test, fired, 0, "%s", c->name);
		if (c->outcome == FALLIBLE)
			KUNIT_EXPECT_GT_MSG(test, errors, 0, "%s", c->name);
		else
			KUNIT_EXPECT_EQ_MSG(test, errors, 0, "%s", c->name);
		unconnect_pair(w);
		expect_holdings(test, &have, c->name);
	}
	end_world(w);
}

static void I4_operations_fail(struct kunit *test)
{
	struct world *w = make_world(test);
	const struct fault_call *c;
	unsigned int i, ways, fired, errors;
	struct holdings have;

	for (c = fault_calls; c < fault_calls + ARRAY_SIZE(fault_calls); c++) {
		count_holdings(&have);
		errors = 0;
		fired = 0;
		ways = !fine ? ARRAY_SIZE(operations) : c->twin ? 1 : 2;
		for (i = 0; i < ways; i++)
			fired += walk(w, c, &operations[i], &errors);
		kunit_info(test, "%s: %u of %u", c->name, errors, fired);
		if (c->outcome == PURE)
			KUNIT_EXPECT_EQ_MSG(test, fired, 0, "%s", c->name);
		if (c->outcome == PURE || c->outcome == SURE)
			KUNIT_EXPECT_EQ_MSG(test, errors, 0, "%s", c->name);
		if (c->outcome == POSTS)
			KUNIT_EXPECT_GT_MSG(test, fired, 0, "%s", c->name);
		unconnect_pair(w);
		expect_holdings(test, &have, c->name);
	}
	end_world(w);
}

static struct kunit_case fault_test_cases[] = {
	KUNIT_CASE_PARAM(I4_allocations_fail, kd_gen_ia),
	KUNIT_CASE_PARAM(I4_operations_fail, kd_gen_ia),
	{}
};

static struct kunit_suite fault_suite = {
	.name = "kdapl-fault",
	.test_cases = fault_test_cases,
};

kunit_test_suite(fault_suite);

MODULE_DESCRIPTION("KUnit suite of kdapl.ko: what happens when something fails");
MODULE_LICENSE("Dual BSD/GPL");
