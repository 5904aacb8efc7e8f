// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event Dispatchers: creating, modifying, software events, policies (contract
 * C1, C6, N4). Events of connected Endpoints are in upcall_test.c.
 */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include "fixture.h"

#define ALL_FLAGS	(DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DEFAULT_FLAG)

static void nothing(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

static DAT_RETURN post(DAT_EVD_HANDLE evd, uintptr_t value)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	event.event_data.software_event_data.pointer = (void *)value;
	return dat_evd_post_se(evd, &event);
}

static uintptr_t value_of(const DAT_EVENT *event)
{
	return (uintptr_t)event->event_data.software_event_data.pointer;
}

static void expect_soft(struct kunit *test, DAT_EVD_HANDLE evd, uintptr_t value)
{
	DAT_EVENT event = {};

	KD_EXPECT_OK(test, dat_evd_dequeue(evd, &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_SOFTWARE_EVENT);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd);
	KUNIT_EXPECT_EQ(test, value_of(&event), value);
}

static void expect_empty(struct kunit *test, DAT_EVD_HANDLE evd)
{
	KD_EXPECT_RET(test, DAT_QUEUE_EMPTY, dat_evd_dequeue(evd,
							     &(DAT_EVENT) {}));
}

/* ---- Making -------------------------------------------------------------- */

struct create_case {
	const char *desc;
	DAT_COUNT qlen;
	DAT_UPCALL_POLICY policy;
	DAT_UPCALL_FUNC func;
	u32 flags;
	DAT_RETURN_TYPE want;
};

static const struct create_case create_cases[] = {
	{ "no room", 0, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
	  DAT_INVALID_PARAMETER },
	{ "negative room", -5, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
	  DAT_INVALID_PARAMETER },
	{ "too much room", INT_MAX, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
	  DAT_INSUFFICIENT_RESOURCES },
	{ "no flags", 8, DAT_UPCALL_DISABLE, NULL, 0, DAT_INVALID_PARAMETER },
	{ "unknown flag", 8, DAT_UPCALL_DISABLE, NULL, 0x200,
	  DAT_INVALID_PARAMETER },
	{ "unknown flag beside others", 8, DAT_UPCALL_DISABLE, NULL,
	  ALL_FLAGS | 0x2, DAT_INVALID_PARAMETER },
	{ "teardown", 8, DAT_UPCALL_TEARDOWN, nothing, DAT_EVD_DTO_FLAG,
	  DAT_INVALID_PARAMETER },
	{ "unknown policy", 8, 3, nothing, DAT_EVD_DTO_FLAG,
	  DAT_INVALID_PARAMETER },
	{ "single without function", 8, DAT_UPCALL_SINGLE_INSTANCE, NULL,
	  DAT_EVD_DTO_FLAG, DAT_INVALID_PARAMETER },
	{ "many without function", 8, DAT_UPCALL_MANY, NULL, DAT_EVD_DTO_FLAG,
	  DAT_INVALID_PARAMETER },
	{ "notify without function", 8, DAT_UPCALL_NORIFY, NULL,
	  DAT_EVD_DTO_FLAG, DAT_INVALID_PARAMETER },
	{ "disable without function", 1, DAT_UPCALL_DISABLE, NULL,
	  DAT_EVD_DTO_FLAG, DAT_SUCCESS },
	{ "disable with function", 8, DAT_UPCALL_DISABLE, nothing,
	  DAT_EVD_DTO_FLAG, DAT_SUCCESS },
	{ "many", 8, DAT_UPCALL_MANY, nothing, ALL_FLAGS, DAT_SUCCESS },
};

static void kcreate_arguments(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	const struct create_case *c;
	DAT_EVD_HANDLE evd;
	DAT_RETURN ret;

	for (c = create_cases;
	     c < create_cases + ARRAY_SIZE(create_cases); c++) {
		DAT_UPCALL_OBJECT upcall = { NULL, c->func };

		ret = dat_evd_kcreate(s->ia, c->qlen, c->policy, &upcall,
				      c->flags, &evd);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), (u32)c->want,
				    "%s", c->desc);
		if (ret == DAT_SUCCESS)
			KD_EXPECT_OK(test, dat_evd_free(evd));
	}
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_evd_kcreate(s->ia, 8, DAT_UPCALL_SINGLE_INSTANCE,
				      NULL, DAT_EVD_DTO_FLAG, &evd));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_evd_kcreate(s->ia, 8, DAT_UPCALL_DISABLE, NULL,
				      DAT_EVD_DTO_FLAG, NULL));
}

static void N4_any_streams_share_an_evd(struct kunit *test)
{
	static const u32 streams[DAT_EVD_STREAMS] = {
		DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_DTO_FLAG,
		DAT_EVD_CONNECTION_FLAG, DAT_EVD_RMR_BIND_FLAG,
		DAT_EVD_ASYNC_FLAG
	};
	struct kd_side *s = kd_open_param(test);
	unsigned int set, i;

	for (set = 1; set < 1 << DAT_EVD_STREAMS; set++) {
		u32 flags = 0;

		for (i = 0; i < DAT_EVD_STREAMS; i++)
			if (set & 1 << i)
				flags |= streams[i];
		KD_EXPECT_OK(test, dat_evd_free(kd_evd(s, flags, 4,
						       DAT_UPCALL_NOTIFY)));
	}
}

static void query(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_side *s = kd_open_param(test);
	DAT_EVD_PARAM param = {};
	DAT_EVD_HANDLE evd;

	evd = kd_recorded_evd(s, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG, 7,
			      DAT_UPCALL_MANY, rec);
	KD_ASSERT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, s->ia);
	KUNIT_EXPECT_GE(test, param.evd_qlen, 7);
	KUNIT_EXPECT_EQ(test, (int)param.upcall_policy, (int)DAT_UPCALL_MANY);
	KUNIT_EXPECT_PTR_EQ(test, param.upcall.instance_data, (void *)rec);
	KUNIT_EXPECT_TRUE(test, param.upcall.upcall_func ==
				kd_upcall(rec).upcall_func);
	KUNIT_EXPECT_EQ(test, (u32)param.evd_flags,
			(u32)(DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_evd_query(evd, DAT_EVD_FIELD_ALL + 1, &param));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_evd_query(evd, DAT_EVD_FIELD_ALL, NULL));
}

/* ---- Software events, room ----------------------------------------------- */

static void post_se_and_dequeue(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_EVENT event = { .event_number = DAT_DTO_COMPLETION_EVENT };
	DAT_EVD_HANDLE soft, dto;

	soft = kd_evd(s, DAT_EVD_SOFTWARE_FLAG, 8, DAT_UPCALL_DISABLE);
	dto = kd_evd(s, DAT_EVD_DTO_FLAG, 8, DAT_UPCALL_DISABLE);
	expect_empty(test, soft);
	KD_EXPECT_OK(test, post(soft, 1));
	KD_EXPECT_OK(test, post(soft, 2));
	expect_soft(test, soft, 1);
	expect_soft(test, soft, 2);
	expect_empty(test, soft);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_evd_post_se(soft, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_evd_post_se(soft, &event));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, post(dto, 3));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, dat_evd_dequeue(soft, NULL));
}

static void R6_post_se_to_a_full_evd(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	int i;

	evd = kd_evd(s, DAT_EVD_SOFTWARE_FLAG, 4, DAT_UPCALL_DISABLE);
	KD_ASSERT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_EVD_QLEN, &param));
	for (i = 0; i < param.evd_qlen; i++)
		KD_ASSERT_OK(test, post(evd, i));
	KD_EXPECT_RET(test, DAT_QUEUE_FULL, post(evd, i));
	expect_soft(test, evd, 0);
	KD_EXPECT_OK(test, post(evd, i));
	KD_EXPECT_RET(test, DAT_QUEUE_FULL, post(evd, i + 1));
	for (i = 1; i <= param.evd_qlen; i++)
		expect_soft(test, evd, i);
	expect_empty(test, evd);
	/* No overflow event is queued. */
	kd_expect_no_event(test, s->async_evd);
}

static void resize(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	int i;

	evd = kd_evd(s, DAT_EVD_SOFTWARE_FLAG, 2, DAT_UPCALL_DISABLE);
	KD_EXPECT_OK(test, dat_evd_resize(evd, 100));
	for (i = 0; i < 100; i++)
		KD_ASSERT_OK(test, post(evd, i));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_evd_resize(evd, 99));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, dat_evd_resize(evd, 0));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, dat_evd_resize(evd, -1));
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      dat_evd_resize(evd, INT_MAX));
	KD_EXPECT_OK(test, dat_evd_resize(evd, 100));
	for (i = 0; i < 100; i++)
		expect_soft(test, evd, i);
	KD_EXPECT_OK(test, dat_evd_resize(evd, 3));
	KD_EXPECT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_EVD_QLEN, &param));
	KUNIT_EXPECT_GE(test, param.evd_qlen, 3);
	KUNIT_EXPECT_LT(test, param.evd_qlen, 100);
}

static void C1_calls_with_interrupts_disabled(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	DAT_RETURN ret_post, ret_get, ret_query;
	struct kd_side *s = kd_open_param(test);
	DAT_EVD_HANDLE evd, upcalled;
	DAT_EVD_PARAM param;
	unsigned long flags;
	DAT_EVENT event;

	evd = kd_evd(s, DAT_EVD_SOFTWARE_FLAG, 4, DAT_UPCALL_DISABLE);
	upcalled = kd_recorded_evd(s, DAT_EVD_SOFTWARE_FLAG, 4,
				   DAT_UPCALL_SINGLE_INSTANCE, rec);
	local_irq_save(flags);
	ret_post = post(evd, 1) | post(upcalled, 2);
	ret_query = dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param);
	ret_get = dat_evd_dequeue(evd, &event);
	KUNIT_EXPECT_TRUE(test, irqs_disabled());
	local_irq_restore(flags);
	KD_EXPECT_OK(test, ret_post);
	KD_EXPECT_OK(test, ret_query);
	KD_EXPECT_OK(test, ret_get);
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 1));
}

static void free_while_in_use(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_PSP_HANDLE psp;

	kd_setup(s, NULL);
	psp = kd_psp(s, kd_port(), DAT_PSP_CONSUMER_FLAG);
	KUNIT_EXPECT_EQ(test, dat_evd_free(s->recv_evd),
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_EVD_IN_USE));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_evd_free(s->req_evd));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_evd_free(s->conn_evd));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_evd_free(s->cr_evd));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_evd_free(s->async_evd));
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_ep_free(s->ep));
	KD_EXPECT_OK(test, dat_evd_free(s->cr_evd));
	KD_EXPECT_OK(test, dat_evd_free(s->conn_evd));
	KD_EXPECT_OK(test, dat_evd_free(s->req_evd));
	KD_EXPECT_OK(test, dat_evd_free(s->recv_evd));
}

/* An EVD of @len software events, whose upcalls @rec records. */
static DAT_EVD_HANDLE soft_evd(struct kunit *test, DAT_COUNT len, DAT_UPCALL_POLICY policy,
			       struct kd_recorder *rec)
{
	return kd_recorded_evd(kd_open_param(test), DAT_EVD_SOFTWARE_FLAG, len, policy, rec);
}

static void free_drops_queued_events(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	DAT_EVD_HANDLE evd = soft_evd(test, 4, DAT_UPCALL_DISABLE, rec);

	KD_EXPECT_OK(test, post(evd, 1));
	KD_EXPECT_OK(test, dat_evd_free(evd));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, post(evd, 2));
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 0);
}

/* ---- Policies ------------------------------------------------------------ */

static void expect_recorded(struct kunit *test, struct kd_recorder *rec, int n)
{
	int i;

	KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, n));
	KUNIT_ASSERT_EQ(test, rec->n, n);
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, value_of(rec->events + i), i);
}

static void policy_disable(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	DAT_EVD_HANDLE evd = soft_evd(test, 4, DAT_UPCALL_DISABLE, rec);

	KD_EXPECT_OK(test, post(evd, 5));
	msleep(KD_QUIET_MS);
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 0);
	expect_soft(test, evd, 5);
}

static void policies_with_events(struct kunit *test)
{
	static const DAT_UPCALL_POLICY policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_MANY
	};
	struct kd_side *s = kd_open_param(test);
	struct kd_recorder *rec;
	DAT_EVD_HANDLE evd;
	int i, p;

	for (p = 0; p < ARRAY_SIZE(policies); p++) {
		rec = kd_recorder(test);
		evd = kd_recorded_evd(s, DAT_EVD_SOFTWARE_FLAG, 32,
				      policies[p], rec);
		for (i = 0; i < 20; i++)
			KD_ASSERT_OK(test, post(evd, i));
		expect_recorded(test, rec, 20);
		/* C3: the upcall has reaped the event. */
		expect_empty(test, evd);
		KUNIT_EXPECT_EQ(test, atomic_read(&rec->task), 20);
	}
}

static void slow_hook(struct kd_recorder *rec, const DAT_EVENT *event,
		      DAT_BOOLEAN more)
{
	msleep(20);
	WRITE_ONCE(rec->priv, (void *)1);
}

static void C3_single_instance_is_serialised(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	DAT_EVD_HANDLE evd;
	int i;

	rec->hook = slow_hook;
	evd = soft_evd(test, 8, DAT_UPCALL_SINGLE_INSTANCE, rec);
	for (i = 0; i < 5; i++) {
		KD_ASSERT_OK(test, post(evd, i));
		schedule();
	}
	expect_recorded(test, rec, 5);
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->max_running), 1);
}

static void policy_notify(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	DAT_EVD_HANDLE evd = soft_evd(test, 4, DAT_UPCALL_NORIFY, rec);

	KD_EXPECT_OK(test, post(evd, 7));
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, 1));
	KUNIT_EXPECT_EQ(test, rec->n, 0);
	expect_soft(test, evd, 7);
	KD_EXPECT_OK(test, post(evd, 8));
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec, 2));
	expect_soft(test, evd, 8);
	msleep(KD_QUIET_MS);
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 2);
}

/* more_events tells whether the EVD holds another event. */
static void C3_more_events(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	DAT_EVD_HANDLE evd = soft_evd(test, 4, DAT_UPCALL_DISABLE, rec);
	int i;

	for (i = 0; i < 3; i++)
		KD_ASSERT_OK(test, post(evd, i));
	kd_enable_upcalls(test, evd, DAT_UPCALL_INVOC_ANY);
	expect_recorded(test, rec, 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->more), 2);
}

static void modify_upcall_invoc_new(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	DAT_EVD_HANDLE evd = soft_evd(test, 4, DAT_UPCALL_DISABLE, rec);
	unsigned int rest;

	KD_ASSERT_OK(test, post(evd, 0));
	kd_enable_upcalls(test, evd, DAT_UPCALL_INVOC_NEW);
	msleep(KD_QUIET_MS);
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 0);
	KD_ASSERT_OK(test, post(evd, 1));
	KUNIT_EXPECT_TRUE(test, kd_wait_calls(rec, 1));
	msleep(KD_QUIET_MS);
	rest = kd_drain(evd);
	KUNIT_EXPECT_EQ(test, rec->n + rest, 2);
}

static void modify_upcall_arguments(struct kunit *test)
{
	const DAT_UPCALL_OBJECT none = DAT_UPCALL_NULL;
	struct kd_side *s = kd_open_param(test);
	DAT_EVD_HANDLE evd = NULL;

	KD_ASSERT_OK(test, dat_evd_kcreate(s->ia, 4, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_SOFTWARE_FLAG, &evd));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_evd_modify_upcall(evd, DAT_UPCALL_MANY,
					    DAT_UPCALL_SAME,
					    DAT_UPCALL_INVOC_NEW));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE,
					    &none, DAT_UPCALL_INVOC_NEW));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_evd_modify_upcall(evd, 50, &none,
					    DAT_UPCALL_INVOC_NEW));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_evd_modify_upcall(evd, DAT_UPCALL_DISABLE, &none, 2));
	KD_EXPECT_OK(test, dat_evd_modify_upcall(evd, DAT_UPCALL_DISABLE, &none,
						 DAT_UPCALL_INVOC_ANY));
}

static bool upcall_is_running(void *data)
{
	struct kd_recorder *rec = data;

	return atomic_read(&rec->running);
}

static bool upcall_was_seen(void *data)
{
	struct kd_recorder *rec = data;

	return READ_ONCE(rec->priv);
}

/* Upcall: run until the test has seen it run, and a little longer. */
static void seen_hook(struct kd_recorder *rec, const DAT_EVENT *event,
		      DAT_BOOLEAN more)
{
	kd_wait_until(upcall_was_seen, rec, KD_TIMEOUT_MS);
	msleep(20);
}

static void wait_running(struct kunit *test, struct kd_recorder *rec)
{
	KUNIT_ASSERT_TRUE(test, kd_wait_until(upcall_is_running, rec,
					      KD_TIMEOUT_MS));
	WRITE_ONCE(rec->priv, rec);
	kd_wake();
}

/* Return an EVD whose upcall is running, and goes on for a moment. */
static DAT_EVD_HANDLE evd_in_upcall(struct kunit *test, struct kd_recorder *rec)
{
	DAT_EVD_HANDLE evd;

	rec->hook = seen_hook;
	evd = soft_evd(test, 4, DAT_UPCALL_SINGLE_INSTANCE, rec);
	KD_ASSERT_OK(test, post(evd, 0));
	wait_running(test, rec);
	return evd;
}

static void policy_teardown_waits(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	DAT_EVD_HANDLE evd = evd_in_upcall(test, rec);

	KD_EXPECT_OK(test, dat_evd_modify_upcall(evd, DAT_UPCALL_TEARDOWN,
						 DAT_UPCALL_SAME,
						 DAT_UPCALL_INVOC_NEW));
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->running), 0);
	KD_EXPECT_OK(test, post(evd, 1));
	msleep(KD_QUIET_MS);
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->calls), 1);
	kd_enable_upcalls(test, evd, DAT_UPCALL_INVOC_ANY);
	expect_recorded(test, rec, 2);
}

static void free_waits_for_the_upcall(struct kunit *test)
{
	struct kd_recorder *rec = kd_recorder(test);
	DAT_EVD_HANDLE evd = evd_in_upcall(test, rec);

	KD_EXPECT_OK(test, dat_evd_free(evd));
	KUNIT_EXPECT_EQ(test, atomic_read(&rec->running), 0);
}

static int refs_in_upcall;

static void refs_upcall(DAT_PVOID data, const DAT_EVENT *event,
			DAT_BOOLEAN more)
{
	WRITE_ONCE(refs_in_upcall, module_refcount(THIS_MODULE));
	kd_wake();
}

static bool refs_are_known(void *data)
{
	return READ_ONCE(refs_in_upcall) != -1;
}

static void C6_upcall_pins_the_module(struct kunit *test)
{
	DAT_UPCALL_OBJECT upcall = { NULL, refs_upcall };
	struct kd_side *s = kd_open_param(test);
	DAT_EVD_HANDLE evd = NULL;
	int before;

	KD_NEED_MODULE(test);
	before = module_refcount(THIS_MODULE);
	refs_in_upcall = -1;
	KD_ASSERT_OK(test, dat_evd_kcreate(s->ia, 4, DAT_UPCALL_SINGLE_INSTANCE,
					   &upcall, DAT_EVD_SOFTWARE_FLAG,
					   &evd));
	KD_ASSERT_OK(test, post(evd, 0));
	KUNIT_ASSERT_TRUE(test, kd_wait_until(refs_are_known, NULL,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_GT(test, refs_in_upcall, before);
	KD_EXPECT_OK(test, dat_evd_free(evd));
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), before);
}

static struct kunit_case evd_cases[] = {
	KUNIT_CASE_PARAM(kcreate_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(N4_any_streams_share_an_evd, kd_gen_ia),
	KUNIT_CASE_PARAM(query, kd_gen_ia),
	KUNIT_CASE_PARAM(post_se_and_dequeue, kd_gen_ia),
	KUNIT_CASE_PARAM(R6_post_se_to_a_full_evd, kd_gen_ia),
	KUNIT_CASE_PARAM(resize, kd_gen_ia),
	KUNIT_CASE_PARAM(C1_calls_with_interrupts_disabled, kd_gen_ia),
	KUNIT_CASE_PARAM(free_while_in_use, kd_gen_ia),
	KUNIT_CASE_PARAM(free_drops_queued_events, kd_gen_ia),
	KUNIT_CASE_PARAM(policy_disable, kd_gen_ia),
	KUNIT_CASE_PARAM(policies_with_events, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_single_instance_is_serialised, kd_gen_ia),
	KUNIT_CASE_PARAM(policy_notify, kd_gen_ia),
	KUNIT_CASE_PARAM(C3_more_events, kd_gen_ia),
	KUNIT_CASE_PARAM(modify_upcall_invoc_new, kd_gen_ia),
	KUNIT_CASE_PARAM(modify_upcall_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(policy_teardown_waits, kd_gen_ia),
	KUNIT_CASE_PARAM(free_waits_for_the_upcall, kd_gen_ia),
	KUNIT_CASE_PARAM(C6_upcall_pins_the_module, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-evd", evd_cases, "Event Dispatchers");
