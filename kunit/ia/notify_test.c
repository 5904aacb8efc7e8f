// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Notifiers: IAs and addresses that come and go (contract I8). */
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include "call.h"
#include "plug.h"
#include "shell.h"

/* An address that no device of the test bed has. */
#define ADDRESS		"10.8.77.1"

/* struct watch - what the function of a notifier has seen */
struct watch {
	KDAT_NOTIFIER_HANDLE notifier;
	const char *ia;
	struct sockaddr_in addr;
	char name[DAT_NAME_MAX_LENGTH];
	int ias;
	int addresses;
	bool there;
	bool found;
	DAT_RETURN inside;
};

static void look(DAT_PVOID data, DAT_COUNT what)
{
	struct watch *w = data;
	bool found;

	if (what & KDAT_CHANGED_IAS)
		WRITE_ONCE(w->ias, w->ias + 1);
	if (what & KDAT_CHANGED_ADDRESSES)
		WRITE_ONCE(w->addresses, w->addresses + 1);
	found = kdat_ia_find((struct sockaddr *)&w->addr, w->name) ==
		DAT_SUCCESS && !strcmp(w->name, w->ia);
	WRITE_ONCE(w->found, found);
	WRITE_ONCE(w->there, kd_is_plugged(w->ia));
	w->inside = kdat_notifier_free(w->notifier);
}

static void stop_watching(void *data)
{
	struct watch *w = data;

	if (w->notifier)
		kdat_notifier_free(w->notifier);
}

static struct watch *watch(struct kunit *test)
{
	struct watch *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->ia = ((const struct kd_second *)test->param_value)->ia;
	w->addr.sin_family = AF_INET;
	w->addr.sin_addr.s_addr = in_aton(ADDRESS);
	KD_ASSERT_OK(test, kdat_notifier_create(look, w, &w->notifier));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, stop_watching, w));
	return w;
}

static bool is_there(void *data)
{
	return READ_ONCE(((struct watch *)data)->there);
}

static bool is_gone(void *data)
{
	struct watch *w = data;

	return READ_ONCE(w->ias) && !READ_ONCE(w->there);
}

static bool is_found(void *data)
{
	return READ_ONCE(((struct watch *)data)->found);
}

static bool is_lost(void *data)
{
	return !READ_ONCE(((struct watch *)data)->found);
}

static void I8_told_of_devices(struct kunit *test)
{
	struct watch *w = watch(test);

	kd_unplug(test);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_gone, w, KD_TIMEOUT_MS));
	kd_plug(test);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_there, w, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(w->inside), (DAT_RETURN)DAT_INVALID_STATE);
}

/* The last call for an address comes when kdat_ia_find() finds it. */
static void I8_told_of_addresses(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	struct watch *w = watch(test);
	char command[64];

	snprintf(command, sizeof(command), "ip addr add " ADDRESS "/32 dev %s",
		 strrchr(d->add, ' ') + 1);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_found, w, KD_TIMEOUT_MS));
	KUNIT_EXPECT_GE(test, w->addresses, 1);
	snprintf(command, sizeof(command), "ip addr del " ADDRESS "/32 dev %s",
		 strrchr(d->add, ' ') + 1);
	KUNIT_EXPECT_EQ(test, 0, shell(command));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_lost, w, KD_TIMEOUT_MS));
}

/* A notifier that was freed is not called, although others are. */
static void I8_told_no_more(struct kunit *test)
{
	struct watch *freed = watch(test), *w;
	int ias;

	w = watch(test);
	KD_ASSERT_OK(test, kdat_notifier_free(freed->notifier));
	ias = freed->ias;
	kd_unplug(test);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_gone, w, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, freed->ias, ias);
	KUNIT_EXPECT_EQ(test, kdat_notifier_free(freed->notifier),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1));
	freed->notifier = NULL;
}

/* ---- Functions that take long ----------------------------------------------------- */

static struct {
	KDAT_NOTIFIER_HANDLE notifier;
	struct completion entered;
	struct completion go;
	bool left;
} held;

static void hold(DAT_PVOID data, DAT_COUNT what)
{
	complete_all(&held.entered);
	wait_for_completion(&held.go);
	WRITE_ONCE(held.left, true);
}

static void let_go(void *unused)
{
	complete_all(&held.go);
}

static void hold_no_more(void *unused)
{
	let_go(NULL);
	kdat_notifier_free(held.notifier);
}

/* Have @hold called, and return when it does not return. */
static void hold_begin(struct kunit *test)
{
	init_completion(&held.entered);
	init_completion(&held.go);
	held.left = false;
	KD_ASSERT_OK(test, kdat_notifier_create(hold, NULL, &held.notifier));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, hold_no_more, NULL));
	kd_unplug(test);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&held.entered,
							    msecs_to_jiffies(KD_TIMEOUT_MS)));
}

static DAT_RETURN call_create_and_free(void *unused)
{
	KDAT_NOTIFIER_HANDLE notifier;

	return kdat_notifier_create(hold, NULL, &notifier) ?:
	       kdat_notifier_free(notifier);
}

static DAT_RETURN call_free(void *notifier)
{
	return kdat_notifier_free(notifier);
}

/* A function that takes long holds up no call about other notifiers. */
static void I8_beside_a_function(struct kunit *test)
{
	hold_begin(test);
	kd_call_expect(test, kd_call_begin(test, call_create_and_free, NULL), DAT_SUCCESS,
		       KD_TIMEOUT_MS, let_go, NULL);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(held.left));
}

/* Whoever frees the notifier waits for it, and the handle is invalid at once. */
static void I8_free_waits_for_the_function(struct kunit *test)
{
	struct kd_call *c;

	hold_begin(test);
	c = kd_call_begin(test, call_free, held.notifier);
	KUNIT_EXPECT_FALSE(test, kd_call_is_back(c, KD_QUIET_MS));
	let_go(NULL);
	kd_call_expect(test, c, DAT_SUCCESS, KD_TIMEOUT_MS, let_go, NULL);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(held.left));
	KUNIT_EXPECT_EQ(test, kdat_notifier_free(held.notifier),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1));
}

static void I8_notifier_arguments(struct kunit *test)
{
	KDAT_NOTIFIER_HANDLE notifier;

	KUNIT_EXPECT_EQ(test, kdat_notifier_create(NULL, NULL, &notifier),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	KUNIT_EXPECT_EQ(test, kdat_notifier_create(look, NULL, NULL),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	KUNIT_EXPECT_EQ(test, kdat_notifier_free(NULL),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1));
}

/* What was freed does not name another notifier soon (I3): who is too late frees none. */
static void I8_handle_of_a_freed_notifier(struct kunit *test)
{
	KDAT_NOTIFIER_HANDLE freed, notifier;
	DAT_RETURN late = DAT_SUCCESS;
	unsigned int i;

	KD_ASSERT_OK(test, kdat_notifier_create(look, NULL, &freed));
	KD_EXPECT_OK(test, kdat_notifier_free(freed));
	for (i = 0; i < 64; i++) {
		KD_ASSERT_OK(test, kdat_notifier_create(look, NULL, &notifier));
		late = kdat_notifier_free(freed);
		if (late == DAT_SUCCESS)
			break;
		KD_EXPECT_OK(test, kdat_notifier_free(notifier));
	}
	KUNIT_EXPECT_EQ_MSG(test, late, DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1),
			    "the %uth other one was freed", i + 1);
}

static int notify_init(struct kunit *test)
{
	const struct kd_second *d = test->param_value;

	if (d && !kd_is_plugged(d->ia))
		kunit_skip(test, "no %s", d->ia);
	return kd_plug_init(test);
}

static struct kunit_case notify_cases[] = {
	KUNIT_CASE_PARAM(I8_told_of_devices, kd_gen_second),
	KUNIT_CASE_PARAM(I8_told_of_addresses, kd_gen_second),
	KUNIT_CASE_PARAM(I8_told_no_more, kd_gen_second),
	KUNIT_CASE_PARAM(I8_beside_a_function, kd_gen_second),
	KUNIT_CASE_PARAM(I8_free_waits_for_the_function, kd_gen_second),
	KUNIT_CASE(I8_notifier_arguments),
	KUNIT_CASE(I8_handle_of_a_freed_notifier),
	{}
};

KD_SUITE("kdapl-notify", notify_cases, "notifiers of IAs and addresses",
	 .init = notify_init);
