// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Consumers that are unloaded, or fail to load, and leave something behind (contract C6):
 * kdapl_leaver.ko frees nothing. That kdapl.ko can be unloaded afterwards, which it
 * cannot while an object is left, is seen when the test kernel ends.
 */
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include "call.h"
#include "fixture.h"
#include "handle.h"
#include "ia.h"
#include "probe.h"
#include "shell.h"

#define NAME	"kdapl_leaver"
/* scripts/guest/check puts the modules there. */
#define KO	"/run/out/modules/" NAME ".ko"
/* An address that no device of the test bed has. */
#define ADDRESS	"10.8.78.1/32"

/* ---- What is left ---------------------------------------------------------------- */

/* The objects of kdapl_leaver.ko when its memory was about to be freed. */
static int left_behind;

/* An IA that was opened by a function of kdapl.ko has its name; nobody else does so. */
static bool is_of_leaver(const struct kdapl_ia *ia)
{
	return !strcmp(ia->consumer, NAME) || !strcmp(ia->consumer, "kdapl");
}

static int objects_left(void)
{
	struct kdapl_obj *obj;
	int n = 0;
	u32 i;

	for (i = 0; i <= KDAPL_INDEX_MASK; i++) {
		if (!READ_ONCE(kdapl_chunks[i / KDAPL_CHUNK])) {
			i |= KDAPL_CHUNK - 1;
			continue;
		}
		rcu_read_lock();
		obj = kdapl_at(i);
		n += obj && is_of_leaver(obj->ia);
		rcu_read_unlock();
	}
	return n;
}

/* At the tracepoint module_free. */
static void count_left(void *data, struct module *mod)
{
	if (!strcmp(mod->name, NAME))
		left_behind = objects_left();
}

/* Return how many lines of the kernel's log have all of this, in this order. */
static int said(const char *words)
{
	char command[160];

	snprintf(command, sizeof(command),
		 "exit $(dmesg | grep -c 'kdapl: %s.*%s')", NAME, words);
	return shell(command) >> 8;
}

/* ---- The module ------------------------------------------------------------------- */

static void unload(void *unused)
{
	shell("! [ -e /sys/module/" NAME " ] || rmmod " NAME);
}

static void load(struct kunit *test, const char *arguments)
{
	char command[160];

	left_behind = -1;
	snprintf(command, sizeof(command), "insmod " KO " %s", arguments);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, unload, NULL));
}

/* Load a module that listens on @port of the device of @s. */
static void load_listener(struct kd_side *s, u16 port, const char *more)
{
	char arguments[64];

	snprintf(arguments, sizeof(arguments), "ia=%s port=%u %s", s->name, port, more);
	load(s->test, arguments);
	KUNIT_EXPECT_GT(s->test, objects_left(), 6);
}

static int unload_init(struct kunit *test)
{
	if (shell("test -e " KO))
		kunit_skip(test, "no " KO);
	kd_probe(test, "module_free", count_left);
	return 0;
}

/* ---- The cases ------------------------------------------------------------------- */

static void expect_gone(struct kd_side *s, u16 port, int before)
{
	struct kunit *test = s->test;
	DAT_EVENT event;

	KUNIT_EXPECT_EQ(test, 0, left_behind);
	KUNIT_EXPECT_EQ(test, before + 1, said("IAs with"));
	if (kd_state(s) == DAT_EP_STATE_DISCONNECTED)
		KD_ASSERT_OK(test, dat_ep_reset(s->ep));
	kd_connect_start(s, s, port);
	KUNIT_ASSERT_TRUE(test, kd_wait_event(s->conn_evd, &event, KD_TIMEOUT_MS));
	/* Over iWARP either is the answer of a host where nobody listens. */
	if (event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED || !kd_is_iwarp(s))
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

/* Have a module that listens leave what @setting makes, of which the log has @what. */
static void leave(struct kunit *test, const char *setting, const char *what)
{
	struct kd_side *s = kd_open_param(test);
	int before = said("IAs with"), left = said(what);
	u16 port = kd_port();

	kd_setup(s, NULL);
	load_listener(s, port, setting);
	unload(NULL);
	KUNIT_EXPECT_EQ(test, left + 1, said(what));
	expect_gone(s, port, before);
}

/* Nobody listens any more, and no upcall asks for the module. */
static void C6_left_listening(struct kunit *test)
{
	leave(test, "", "IAs with");
}

/*
 * The function that opened the IA was in memory that the kernel has freed when the module
 * was loaded.
 */
static void C6_left_by_init(struct kunit *test)
{
	leave(test, "by_function=1", "IAs with");
}

/*
 * The work item of a pool would call the module in some seconds. Blocks that nobody frees are a
 * leak, which the debug kernel finds.
 */
static void C6_left_pool(struct kunit *test)
{
	leave(test, "pool=1", "1 pools");
}

/*
 * The work item of a server would call the module when a device or an address comes, and someone
 * who connects has an upcall.
 */
static void C6_left_server(struct kunit *test)
{
	leave(test, "server=1", "1 servers");
}

/* A peer is connected; its messages arrived in memory of the module. */
static void C6_left_connected(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	int before = said("IAs with");
	u16 port = kd_port();
	DAT_EVENT event;
	int i;

	kd_setup(s, NULL);
	load_listener(s, port, "");
	kd_connect_start(s, s, port);
	kd_expect_event(test, s->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
	for (i = 0; i < 20; i++) {
		kd_send(s, 0, 64, i);
		kd_expect_dto(test, s->req_evd, i, DAT_DTO_SUCCESS, NULL);
	}
	unload(NULL);
	kd_expect_disconnected(s, &event);
	expect_gone(s, port, before);
}

/* A module that fails to load goes the same way, without its exit function. */
static void C6_left_by_failed_init(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	int before = said("IAs with");
	u16 port = kd_port();
	char command[160];

	kd_setup(s, NULL);
	left_behind = -1;
	snprintf(command, sizeof(command),
		 "insmod " KO " ia=%s port=%u fail=1 2>&1 | grep -qi cancel",
		 s->name, port);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	expect_gone(s, port, before);
}

/* The EVD of another consumer loses the upcall, and nothing else. */
static void C6_left_upcall(struct kunit *test)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	struct kd_side *s = kd_open_param(test);
	int before = said("1 upcall");
	DAT_EVD_PARAM param;
	char arguments[64];
	DAT_EVD_HANDLE evd;

	evd = kd_evd(s, DAT_EVD_SOFTWARE_FLAG, 8, DAT_UPCALL_DISABLE);
	snprintf(arguments, sizeof(arguments), "evd=%lu", (unsigned long)evd);
	load(test, arguments);
	KD_EXPECT_OK(test, dat_evd_post_se(evd, &event));
	KD_EXPECT_OK(test, kdat_evd_wait_upcalls(evd));
	unload(NULL);
	KUNIT_EXPECT_EQ(test, before + 1, said("1 upcall"));
	KD_EXPECT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	KUNIT_EXPECT_TRUE(test, !param.upcall.upcall_func);
	KD_EXPECT_OK(test, dat_evd_post_se(evd, &event));
	kd_expect_event(test, evd, DAT_SOFTWARE_EVENT, &event);
	/* DAT_UPCALL_SAME does not bring it back. */
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE,
					    DAT_UPCALL_SAME,
					    DAT_UPCALL_INVOC_ANY));
}

/* The same for an EVD whose upcalls run in softirq, where nothing is pinned. */
static void C6_left_softirq_upcall(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	int before = said("1 upcall");
	char arguments[64];

	kd_connect_pair(c.a, c.p);
	snprintf(arguments, sizeof(arguments), "evd=%lu", (unsigned long)c.p->recv_evd);
	load(test, arguments);
	kd_recv(c.p, 0, 64, 1);
	kd_recv(c.p, 64, 64, 2);
	kd_send(c.a, 0, 64, 3);
	kd_expect_dto(test, c.a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
	unload(NULL);
	KUNIT_EXPECT_EQ(test, before + 1, said("1 upcall"));
	/* The upcall may have had the first message. */
	kd_drain(c.p->recv_evd);
	kd_send(c.a, 0, 64, 4);
	kd_expect_dto(test, c.a->req_evd, 4, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, c.p->recv_evd, 2, DAT_DTO_SUCCESS, NULL);
}

/* ---- Beside the functions of other consumers --------------------------------------- */

static struct {
	KDAT_NOTIFIER_HANDLE notifier;
	struct completion entered;
	struct completion go;
} held;

static void hold(DAT_PVOID data, DAT_COUNT what)
{
	complete_all(&held.entered);
	wait_for_completion(&held.go);
}

static void let_go(void *unused)
{
	complete_all(&held.go);
}

static void hold_no_more(void *unused)
{
	let_go(NULL);
	kdat_notifier_free(held.notifier);
	shell("ip addr del " ADDRESS " dev lo");
}

static DAT_RETURN call_unload(void *unused)
{
	unload(NULL);
	return DAT_SUCCESS;
}

/*
 * A module that has nothing to do with kDAPL does not wait for the function of another
 * one, which in turn may wait for modules to be loaded.
 */
static void C6_goes_beside_a_notifier(struct kunit *test)
{
	load(test, "");
	init_completion(&held.entered);
	init_completion(&held.go);
	KD_ASSERT_OK(test, kdat_notifier_create(hold, NULL, &held.notifier));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, hold_no_more, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("ip addr add " ADDRESS " dev lo"));
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&held.entered,
							    msecs_to_jiffies(KD_TIMEOUT_MS)));
	kd_call_expect(test, kd_call_begin(test, call_unload, NULL), DAT_SUCCESS,
		       KD_TIMEOUT_MS, let_go, NULL);
}

/* ---- Notifiers --------------------------------------------------------------------- */

static void told(DAT_PVOID data, DAT_COUNT what)
{
	if (what & KDAT_CHANGED_ADDRESSES)
		WRITE_ONCE(*(bool *)data, true);
}

static bool is_true(void *data)
{
	return READ_ONCE(*(bool *)data);
}

/* The functions of notifiers are called in the order in which they were created. */
static void C6_left_notifier(struct kunit *test)
{
	int before = said("1 notifier");
	KDAT_NOTIFIER_HANDLE notifier;
	bool seen = false;

	load(test, "watch=1");
	unload(NULL);
	KUNIT_EXPECT_EQ(test, before + 1, said("1 notifier"));
	KD_ASSERT_OK(test, kdat_notifier_create(told, &seen, &notifier));
	KUNIT_EXPECT_EQ(test, 0, shell("ip addr add " ADDRESS " dev lo"));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_true, &seen, KD_TIMEOUT_MS));
	KD_EXPECT_OK(test, kdat_notifier_free(notifier));
	KUNIT_EXPECT_EQ(test, 0, shell("ip addr del " ADDRESS " dev lo"));
}

static struct kunit_case unload_cases[] = {
	KUNIT_CASE_PARAM(C6_left_upcall, kd_gen_any_ia),
	KUNIT_CASE_PARAM(C6_left_softirq_upcall, kd_gen_any_ia),
	KUNIT_CASE(C6_left_notifier),
	KUNIT_CASE(C6_goes_beside_a_notifier),
	KUNIT_CASE_PARAM(C6_left_by_failed_init, kd_gen_any_ia),
	KUNIT_CASE_PARAM(C6_left_listening, kd_gen_any_ia),
	KUNIT_CASE_PARAM(C6_left_by_init, kd_gen_any_ia),
	KUNIT_CASE_PARAM(C6_left_connected, kd_gen_any_ia),
	KUNIT_CASE_PARAM(C6_left_server, kd_gen_any_ia),
	KUNIT_CASE_PARAM(C6_left_pool, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-unload", unload_cases, "consumers that leave something behind",
	 .init = unload_init);
KDAPL_IMPORT_TEST;
