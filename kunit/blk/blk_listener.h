/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events of a disk that do not get through. Implemented in blk_listener.c,
 * kdapl_blk_kunit.ko.
 */
#ifndef KDAPL_KUNIT_BLK_LISTENER_H
#define KDAPL_KUNIT_BLK_LISTENER_H

#include <linux/completion.h>
#include <linux/device.h>
#include "fixture.h"

/*
 * struct listener - who is told of changes of a disk, and lets the first event wait
 * @dev: the disk
 * @events: how many there were
 * @listens: completed when the first one is taken
 */
struct listener {
	struct device *dev;
	atomic_t events;
	struct completion listens;
};

struct listener *kdb_listener_make(struct kunit *test, const char *disk);
bool kdb_listener_is_told(void *data);
bool kdb_listener_is_told_more(void *data);
void kdb_listener_listens(struct kunit *test);

#endif /* KDAPL_KUNIT_BLK_LISTENER_H */
