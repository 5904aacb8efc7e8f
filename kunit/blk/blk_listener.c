// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_kunit.ko: events of a disk that do not get through, see blk_listener.h.
 */
#include <linux/blkdev.h>
#include <linux/device/bus.h>
#include <linux/module.h>
#include "blk_listener.h"
#include "files.h"

static struct listener listener;

static int slow_uevent(const struct device *dev, struct kobj_uevent_env *env)
{
	if (atomic_inc_return(&listener.events) == 1)
		wait_for_completion(&listener.listens);
	return 0;
}

/* A disk is on no bus, but one would have a say in its events. */
static const struct bus_type slow_bus = {
	.name = "slow",
	.uevent = slow_uevent,
};

static void listener_end(void *unused)
{
	complete_all(&listener.listens);
	listener.dev->bus = NULL;
	put_device(listener.dev);
}

/* Have the next event of the disk wait: its file is @disk. There is one listener. */
struct listener *kdb_listener_make(struct kunit *test, const char *disk)
{
	struct file *file = kd_filp_open(disk, O_RDONLY, 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	listener.dev = get_device(disk_to_dev(I_BDEV(file->f_mapping->host)->bd_disk));
	kd_filp_close(file);
	atomic_set(&listener.events, 0);
	init_completion(&listener.listens);
	listener.dev->bus = &slow_bus;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, listener_end, NULL));
	return &listener;
}
EXPORT_SYMBOL_GPL(kdb_listener_make);

/* Return whether there was an event, for kd_wait_until(). */
bool kdb_listener_is_told(void *data)
{
	struct listener *who = data;

	return atomic_read(&who->events);
}
EXPORT_SYMBOL_GPL(kdb_listener_is_told);

/* Return whether there was one after the first, for kd_wait_until(). */
bool kdb_listener_is_told_more(void *data)
{
	struct listener *who = data;

	return atomic_read(&who->events) > 1;
}
EXPORT_SYMBOL_GPL(kdb_listener_is_told_more);

/* Let the event go on. */
void kdb_listener_listens(struct kunit *test)
{
	kunit_release_action(test, listener_end, NULL);
}
EXPORT_SYMBOL_GPL(kdb_listener_listens);
