// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: removing and adding devices as an administrator would, with
 * "rdma link", see plug.h.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include "device.h"
#include "plug.h"
#include "shell.h"

/*
 * Removing a device must not wait for upcalls (KD_TIMEOUT_MS) nor for an SRQ of
 * siw to drain (60 s). On a busy machine it takes seconds.
 */
#define UNPLUG_MS	20000

bool kd_is_plugged(const char *ia)
{
	DAT_HA_RELATIONSHIP same;

	return dat_registry_providers_related((char *)ia, (char *)ia, &same) ==
	       DAT_SUCCESS;
}
EXPORT_SYMBOL_GPL(kd_is_plugged);

/* Add the device of the case unless it is there. */
void kd_plug(struct kunit *test)
{
	const struct kd_second *d = test->param_value;

	if (!kd_is_plugged(d->ia))
		KUNIT_EXPECT_EQ(test, 0, shell(d->add));
	KUNIT_EXPECT_TRUE(test, kd_is_plugged(d->ia));
}
EXPORT_SYMBOL_GPL(kd_plug);

/*
 * Remove the device of the case. Return what the command has returned, which may fail
 * after that. Context: process, any thread.
 */
int kd_delete_device(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	char command[64];

	snprintf(command, sizeof(command), "rdma link delete %.*s",
		 (int)strcspn(d->ia, "/"), d->ia);
	return shell(command);
}
EXPORT_SYMBOL_GPL(kd_delete_device);

/* Remove the device of the case. */
void kd_unplug(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	ktime_t start = ktime_get();

	KUNIT_ASSERT_EQ(test, 0, kd_delete_device(test));
	KUNIT_EXPECT_LT(test, ktime_ms_delta(ktime_get(), start), UNPLUG_MS);
	KUNIT_EXPECT_FALSE(test, kd_is_plugged(d->ia));
}
EXPORT_SYMBOL_GPL(kd_unplug);

/* ---- A device that leaves while it is opened ---------------------------------- */

static struct {
	struct kunit *test;
	atomic_t begun;
	struct completion done;
} kd_leaving;

static int kd_leave(void *unused)
{
	kd_delete_device(kd_leaving.test);
	complete_all(&kd_leaving.done);
	return 0;
}

static bool kd_has_left(void *ia)
{
	return !kd_is_plugged(ia);
}

/* The device is no IA any more when it refuses to make the PD. */
static int kd_alloc_no_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	const struct kd_second *d = kd_leaving.test->param_value;

	if (!atomic_xchg(&kd_leaving.begun, 1) &&
	    IS_ERR(kthread_run(kd_leave, NULL, "kd_leave")))
		complete_all(&kd_leaving.done);
	kd_wait_until(kd_has_left, (void *)d->ia, KD_TIMEOUT_MS);
	return -ENODEV;
}

static void kd_leave_end(void *unused)
{
	if (atomic_read(&kd_leaving.begun))
		wait_for_completion(&kd_leaving.done);
}

/*
 * Have the device of the case be removed as soon as somebody makes a PD. The operation that is
 * replaced goes with it, so it is never put back.
 */
void kd_unplug_at_pd(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	struct ib_device *dev = kd_test_device(test, d->ia);

	kd_leaving.test = test;
	atomic_set(&kd_leaving.begun, 0);
	init_completion(&kd_leaving.done);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kd_leave_end, NULL));
	dev->ops.alloc_pd = kd_alloc_no_pd;
}
EXPORT_SYMBOL_GPL(kd_unplug_at_pd);

/* Expect that this has happened, and wait for the end of it. */
void kd_expect_unplugged(struct kunit *test)
{
	KUNIT_EXPECT_TRUE_MSG(test, atomic_read(&kd_leaving.begun), "nobody has made a PD");
	kd_leave_end(NULL);
}
EXPORT_SYMBOL_GPL(kd_expect_unplugged);

/* Rename the device @from to @to, each up to a slash. */
static int rename_device(const char *from, const char *to)
{
	char line[96];

	snprintf(line, sizeof(line), "rdma dev set %.*s name %.*s", (int)strcspn(from, "/"),
		 from, (int)strcspn(to, "/"), to);
	return shell(line);
}

struct renamed {
	const char *from;
	const char *to;
};

static void rename_back(void *data)
{
	struct renamed *r = data;

	rename_device(r->to, r->from);
}

/* The device of the case is that of the IA @to now: rename it when the case ends. */
static void rename_later(struct kunit *test, const char *to)
{
	struct renamed *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->from = ((const struct kd_second *)test->param_value)->ia;
	r->to = to;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, rename_back, r));
}

/* Rename the device of the case to that of the IA @to, until the case ends. */
void kd_rename(struct kunit *test, const char *to)
{
	const struct kd_second *d = test->param_value;

	KUNIT_ASSERT_EQ(test, 0, rename_device(d->ia, to));
	rename_later(test, to);
}
EXPORT_SYMBOL_GPL(kd_rename);

/* Add the device of the case, which is not there, as that of the IA @ia. */
void kd_plug_as(struct kunit *test, const char *ia)
{
	static const char add[] = "rdma link add ";
	const struct kd_second *d = test->param_value;
	char line[96];

	snprintf(line, sizeof(line), "%s%.*s%s", add, (int)strcspn(ia, "/"), ia,
		 strchr(d->add + strlen(add), ' '));
	KUNIT_ASSERT_EQ(test, 0, shell(line));
	rename_later(test, ia);
}
EXPORT_SYMBOL_GPL(kd_plug_as);

/* ---- A device that is replaced ------------------------------------------------- */

#define MAC	"/sys/class/net/$dev/address"
#define MAC_WAS	"/tmp/kdapl_mac"

/* Run @command of the shell, in which $dev is the network device of the case. */
static int with_netdev(struct kunit *test, const char *command)
{
	const struct kd_second *d = test->param_value;
	char line[192];

	snprintf(line, sizeof(line), "dev=%s; %s", strrchr(d->add, ' ') + 1, command);
	return shell(line);
}

static void guid_back(void *data)
{
	kd_delete_device(data);
	with_netdev(data, "ip link set $dev address $(cat " MAC_WAS ")");
}

static void set_mac(struct kunit *test, const char *mac)
{
	char command[96];

	snprintf(command, sizeof(command), "ip link set $dev address %s", mac);
	KUNIT_ASSERT_EQ(test, 0, with_netdev(test, "cat " MAC " >" MAC_WAS));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, guid_back, test));
	KUNIT_ASSERT_EQ(test, 0, with_netdev(test, command));
}

/* Have the device of the case, which is not there, come with another GUID. */
void kd_set_guid(struct kunit *test)
{
	set_mac(test, "02:00:00:00:00:77");
}
EXPORT_SYMBOL_GPL(kd_set_guid);

/* The same with the GUID of the device of @ia, which is on the bed. */
void kd_set_guid_of(struct kunit *test, const char *ia)
{
	char mac[64];

	snprintf(mac, sizeof(mac), "$(cat /sys/class/net/%s/address)",
		 kd_bed_of(ia)->netdev);
	set_mac(test, mac);
}
EXPORT_SYMBOL_GPL(kd_set_guid_of);

/* Expect that the connection of @s has broken, which is its last event. */
void kd_expect_broken(struct kd_side *s)
{
	DAT_EVENT event;

	kd_expect_event(s->test, s->conn_evd, DAT_CONNECTION_EVENT_BROKEN,
			&event);
	KUNIT_EXPECT_PTR_EQ(s->test, s->ep,
			    event.event_data.connect_event_data.ep_handle);
	KUNIT_EXPECT_EQ(s->test, 0,
			event.event_data.connect_event_data.private_data_size);
	KUNIT_EXPECT_EQ(s->test, 0, kd_drain(s->conn_evd));
	KUNIT_EXPECT_EQ(s->test, (u32)kd_state(s),
			(u32)DAT_EP_STATE_DISCONNECTED);
}
EXPORT_SYMBOL_GPL(kd_expect_broken);

/* Open a side on the device of the case. */
struct kd_side *kd_open_second(struct kunit *test)
{
	const struct kd_second *d = test->param_value;

	return kd_open(test, d->ia);
}
EXPORT_SYMBOL_GPL(kd_open_second);

static void plug_again(void *data)
{
	kd_plug(data);
}

/* For kunit_suite.init: have the device added again after the case. */
int kd_plug_init(struct kunit *test)
{
	/* A case without its device will be skipped. */
	if (!test->param_value ||
	    !kd_is_plugged(((const struct kd_second *)test->param_value)->ia))
		return 0;
	return kunit_add_action_or_reset(test, plug_again, test);
}
EXPORT_SYMBOL_GPL(kd_plug_init);
