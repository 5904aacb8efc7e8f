// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: portals whose adapter is renamed, or whose adapter or
 * address comes later. The parameter is a device that no other portal is on.
 */
#include <linux/module.h>
#include "peer.h"
#include "plug.h"
#include "raw.h"
#include "shell.h"

#define IA	"roce9/1"
#define PORT	3281
#define NP	"/sys/kernel/config/target/iscsi/iqn.2026-01.test:raw/tpgt_1/np/"

static void portal_remove(void *data)
{
	shell("rmdir " NP "*:3281");
}

/* Make a portal at @address for iSER; return whether it is taken. */
static bool portal_make(struct kunit *test, const char *address)
{
	char line[256];

	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, portal_remove, NULL));
	snprintf(line, sizeof(line), "unshare -n mkdir " NP "%s:%u && echo 1 >" NP "%s:%u/iser",
		 address, PORT, address, PORT);
	return !shell(line);
}

/* Return the first address of the device of the case, which is @s's. */
static const char *address_of(struct kd_side *s)
{
	char *text = kunit_kzalloc(s->test, 48, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(s->test, text);
	snprintf(text, 48, "%pIS", s->addr);
	return text;
}

/* Somebody who connects, without what a login needs. */
static bool reaches(void *data)
{
	struct kd_side *s = data;

	return kd_reaches(s, s->addr, PORT);
}

/*
 * A portal at all addresses goes on when an adapter is renamed: the adapter is shown by
 * its new name, once, and nothing is tried again.
 */
static void portal_of_a_renamed_adapter(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	struct kd_side *s = kd_open_second(test);
	char old[96];

	kd_setup(s, NULL);
	KUNIT_ASSERT_TRUE(test, portal_make(test, "0.0.0.0"));
	KUNIT_EXPECT_TRUE(test, reaches(s));
	kd_rename(test, IA);
	kd_expect_soon(test, "grep -q '^adapter=" IA " ' /proc/kdapl/kdapl_isert/adapters");
	snprintf(old, sizeof(old), "grep -q '^adapter=%s ' /proc/kdapl/kdapl_isert/adapters",
		 d->ia);
	KUNIT_EXPECT_NE(test, 0, shell(old));
	KUNIT_EXPECT_NE(test, 0, shell("dmesg | grep -q 'cannot listen at 0.0.0.0:3281'"));
	KUNIT_EXPECT_TRUE(test, reaches(s));
}

/* A portal is made before the adapter of its address is there. */
static void portal_before_its_adapter(struct kunit *test)
{
	struct kd_side *s = kd_open_second(test);
	const char *address = address_of(s);

	kd_close(s);
	kd_unplug(test);
	KUNIT_EXPECT_TRUE(test, portal_make(test, address));
	kd_plug(test);
	s = kd_open_second(test);
	kd_setup(s, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(reaches, s, KD_TIMEOUT_MS));
}

/* A portal is made while the adapter of its address leaves. */
static void portal_of_an_adapter_that_leaves(struct kunit *test)
{
	struct kd_side *s = kd_open_second(test);
	const char *address = address_of(s);

	kd_close(s);
	kd_unplug_at_pd(test);
	KUNIT_EXPECT_TRUE(test, portal_make(test, address));
	kd_expect_unplugged(test);
	kd_plug(test);
	s = kd_open_second(test);
	kd_setup(s, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(reaches, s, KD_TIMEOUT_MS));
}

static void address_remove(void *data)
{
	shell(data);
}

/* A portal is made before its address is there. */
static void portal_before_its_address(struct kunit *test)
{
	const char *netdev = strrchr(((const struct kd_second *)test->param_value)->add, ' ') + 1;
	struct kd_side *s = kd_open_second(test);
	struct sockaddr_in *at;
	char *undo = kunit_kzalloc(test, 96, GFP_KERNEL), line[96];

	kd_setup(s, NULL);
	KUNIT_ASSERT_NOT_NULL(test, undo);
	KUNIT_EXPECT_TRUE(test, portal_make(test, "10.200.0.1"));
	snprintf(undo, 96, "ip addr del 10.200.0.1/32 dev %s", netdev);
	snprintf(line, sizeof(line), "ip addr add 10.200.0.1/32 dev %s", netdev);
	KUNIT_ASSERT_EQ(test, 0, shell(line));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, address_remove, undo));
	at = kunit_kzalloc(test, sizeof(*at), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, at);
	at->sin_family = AF_INET;
	at->sin_addr.s_addr = htonl(0x0ac80001);
	s->addr = (DAT_IA_ADDRESS_PTR)at;
	KUNIT_EXPECT_TRUE(test, kd_wait_until(reaches, s, KD_TIMEOUT_MS));
}

/* Somebody else has the port on one adapter: that is told once, and names the adapter. */
static void portal_whose_port_is_in_use(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	struct kd_side *s = kd_open_second(test);
	DAT_PSP_HANDLE psp;
	char line[128];

	kd_setup(s, NULL);
	KD_ASSERT_OK(test, dat_psp_create(s->ia, PORT, s->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	KUNIT_EXPECT_EQ(test, 0, shell("dmesg -C"));
	KUNIT_ASSERT_TRUE(test, portal_make(test, "0.0.0.0"));
	/* It is tried again each second. */
	KUNIT_EXPECT_EQ(test, 0, shell("sleep 3"));
	snprintf(line, sizeof(line),
		 "test $(dmesg | grep -c '%s: cannot listen at 0.0.0.0:3281') = 1", d->ia);
	KUNIT_EXPECT_EQ(test, 0, shell(line));
	KUNIT_EXPECT_EQ(test, 0, shell("test $(dmesg | grep -c 'cannot listen at 0.0') = 1"));
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(reaches, s, KD_TIMEOUT_MS));
}

static int portal_init(struct kunit *test)
{
	return raw_init(test) ?: kd_plug_init(test);
}

static struct kunit_case isert_portal_cases[] = {
	KUNIT_CASE_PARAM(portal_of_a_renamed_adapter, kd_gen_second),
	KUNIT_CASE_PARAM(portal_before_its_adapter, kd_gen_second),
	KUNIT_CASE_PARAM(portal_of_an_adapter_that_leaves, kd_gen_second),
	KUNIT_CASE_PARAM(portal_before_its_address, kd_gen_second),
	KUNIT_CASE_PARAM(portal_whose_port_is_in_use, kd_gen_second),
	{}
};

KD_SUITE("kdapl-isert-portal", isert_portal_cases,
	 "portals whose adapter is renamed or comes later",
	 .suite_init = raw_target_up, .suite_exit = raw_target_down, .init = portal_init);
