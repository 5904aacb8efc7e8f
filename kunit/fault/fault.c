// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Something fails inside a call (contract I4, M2, S2, C1): the first allocation
 * or operation of the device, then the second, and so on until the call gets
 * through. The call returns an error that says what was short, and nothing has
 * changed; or it succeeds in full. In the end the device has the objects that
 * it had before, everything can be freed, and kmemleak finds nothing.
 *
 * All calls are in the tables of calls.c and ep_calls.c;
 * scripts/generate/api-status compares them with the headers. Allocations fail
 * on the debug kernel only, which has fault injection. Some calls allocate a
 * thousand times and more; "make check" lets a few of these fail, "make soak"
 * more. Only the calling thread has failures here; fault_work.c is about other
 * threads.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include "calls.h"
#include "ops.h"
#include "seen.h"
#include "ways.h"

#define MOST_FAULTS	5000

static unsigned int fine = 2;
module_param(fine, uint, 0644);
MODULE_PARM_DESC(fine, "the first so many allocations fail one by one, later ones in ever longer steps; 0: all do");

static void arm_allocation(const struct kdf_way *way, unsigned int nth)
{
	kdf_fail_allocation(nth);
}

static void arm_operation(const struct kdf_way *way, unsigned int nth)
{
	kdf_fail_operation(nth, way->err, current);
}

static const struct kdf_way allocations = {
	"allocation", -ENOMEM, arm_allocation, kdf_allocations_left
};

static const struct kdf_way operations[] = {
	{ "operation", -ENOMEM, arm_operation, kdf_operations_left },
	{ "operation", -EINVAL, arm_operation, kdf_operations_left },
	{ "operation", -EAGAIN, arm_operation, kdf_operations_left },
};

static struct seen before, after;

static void expect_error(struct world *w, const struct fault_call *c,
			 const struct kdf_way *way, unsigned int nth,
			 DAT_RETURN ret)
{
	KUNIT_EXPECT_EQ_MSG(w->test, (u32)DAT_GET_TYPE(ret),
			    (u32)DAT_INSUFFICIENT_RESOURCES,
			    "%s: %s %u (%d): %s", c->name, way->what, nth,
			    way->err, kd_strerror(ret));
	kdf_look_around(w, &after);
	KUNIT_EXPECT_TRUE_MSG(w->test, !memcmp(&before, &after, sizeof(after)),
			      "%s: %s %u (%d): something has changed", c->name,
			      way->what, nth, way->err);
}

/*
 * Make a call again and again until nothing fails in it, with steps that begin to
 * grow at @dense, or never if it is 0. Return how often something failed.
 */
static unsigned int walk(struct world *w, const struct fault_call *c,
			 const struct kdf_way *way, unsigned int dense,
			 unsigned int *errors)
{
	struct kunit *test = w->test;
	unsigned int nth, step, fired = 0;
	DAT_RETURN ret;

	for (nth = 1; nth < MOST_FAULTS; nth += step) {
		step = dense ? 1 + nth / dense : 1;
		w->fired = false;
		if (c->need)
			c->need(w);
		kdf_look_around(w, &before);
		way->arm(way, nth);
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

/* Where the steps of a walk begin to grow: early if another call does the same. */
static unsigned int dense_until(const struct fault_call *c)
{
	return fine && c->twin ? 1 : fine;
}

/* The call after @c in the two tables; the first one after NULL. */
static const struct fault_call *next_call(const struct fault_call *c)
{
	if (!c)
		return kdf_calls;
	if (++c == kdf_calls + kdf_ncalls)
		return kdf_ep_calls;
	return c == kdf_ep_calls + kdf_nep_calls ? NULL : c;
}

/* Nothing has changed after a failure, as contract M2 and S2 demand. */
static void I4_allocations_fail(struct kunit *test)
{
	const struct fault_call *c;
	unsigned int fired, errors;
	struct holdings have;
	struct world *w;

	if (!IS_ENABLED(CONFIG_FAULT_INJECTION))
		kunit_skip(test, "no fault injection in this kernel");
	w = kdf_make_world(test);
	for (c = next_call(NULL); c; c = next_call(c)) {
		kdf_count_holdings(&have);
		errors = 0;
		fired = walk(w, c, &allocations, dense_until(c), &errors);
		/* Long steps may pass by all that the call cannot do without. */
		if (c->outcome == FALLIBLE && !errors)
			fired += walk(w, c, &allocations, 0, &errors);
		kunit_info(test, "%s: %u of %u", c->name, errors, fired);
		if (c->outcome == PURE || c->outcome == POSTS)
			KUNIT_EXPECT_EQ_MSG(test, fired, 0, "%s", c->name);
		if (c->outcome == FALLIBLE)
			KUNIT_EXPECT_GT_MSG(test, errors, 0, "%s", c->name);
		else
			KUNIT_EXPECT_EQ_MSG(test, errors, 0, "%s", c->name);
		kdf_unconnect_pair(w);
		kdf_expect_holdings(test, &have, c->name);
	}
	kdf_end_world(w);
}

static void I4_operations_fail(struct kunit *test)
{
	struct world *w = kdf_make_world(test);
	const struct fault_call *c;
	unsigned int i, ways, fired, errors;
	struct holdings have;

	for (c = next_call(NULL); c; c = next_call(c)) {
		kdf_count_holdings(&have);
		errors = 0;
		fired = 0;
		ways = !fine ? ARRAY_SIZE(operations) : c->twin ? 1 : 2;
		for (i = 0; i < ways; i++)
			fired += walk(w, c, &operations[i], dense_until(c),
				      &errors);
		kunit_info(test, "%s: %u of %u", c->name, errors, fired);
		if (c->outcome == PURE)
			KUNIT_EXPECT_EQ_MSG(test, fired, 0, "%s", c->name);
		if (c->outcome == PURE || c->outcome == SURE)
			KUNIT_EXPECT_EQ_MSG(test, errors, 0, "%s", c->name);
		if (c->outcome == POSTS)
			KUNIT_EXPECT_GT_MSG(test, fired, 0, "%s", c->name);
		kdf_unconnect_pair(w);
		kdf_expect_holdings(test, &have, c->name);
	}
	kdf_end_world(w);
}

/*
 * A simulated adapter hands a rejection to iw_cm in the thread of dat_cr_reject(). iw_cm
 * waits for the answer for ever, so it must come even if its data cannot be copied.
 */
static void N3_rejected_without_memory(struct kunit *test)
{
	struct kd_pair pair;
	struct kd_side *a;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	unsigned int nth;
	bool fired = true;
	u16 port;

	if (!IS_ENABLED(CONFIG_FAULT_INJECTION))
		kunit_skip(test, "no fault injection in this kernel");
	pair = kd_make_pair(test, NULL);
	a = pair.a;
	port = kd_port();
	kd_psp(pair.p, port, DAT_PSP_CONSUMER_FLAG);
	for (nth = 1; fired; nth++) {
		kd_connect_start(a, pair.p, port);
		cr = kd_expect_cr(pair.p);
		kdf_fail_allocation(nth);
		KD_EXPECT_OK(test, dat_cr_reject(cr, 2, "no"));
		fired = !kdf_allocations_left();
		KUNIT_ASSERT_TRUE_MSG(test, kd_wait_event(a->conn_evd, &event,
							  KD_TIMEOUT_MS),
				      "allocation %u", nth);
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_CONNECTION_EVENT_PEER_REJECTED);
		KD_ASSERT_OK(test, dat_ep_reset(a->ep));
	}
	KUNIT_EXPECT_GT(test, nth, 2);
}

static KD_GENERATOR(gen_simw)
{
	const struct kd_bed *bed = KD_GENERATE(kd_gen_simulated_ia, prev);

	while (bed && !(bed->traits & KD_IWARP))
		bed = KD_GENERATE(kd_gen_simulated_ia, bed);
	return bed;
}

static struct kunit_case fault_test_cases[] = {
	KUNIT_CASE_PARAM(N3_rejected_without_memory, gen_simw),
	KUNIT_CASE_PARAM(I4_allocations_fail, kd_gen_ia),
	KUNIT_CASE_PARAM(I4_operations_fail, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-fault", fault_test_cases, "what happens when something fails");
