/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The admin slot of a queue, for ini_admin.c and ini_keepalive.c. */
#ifndef KDAPL_BLK_INI_ADMIN_H
#define KDAPL_BLK_INI_ADMIN_H

#include <linux/jiffies.h>
#include "ini.h"

static inline struct kbi_slot *kbi_admin_slot(struct kbi_queue *queue)
{
	return &queue->slots[0];
}

/*
 * Return whether the admin request of @queue, whose slot is busy, has had timeout_ms: by then
 * all requests that came before it are over.
 */
static inline bool kbi_is_overdue(struct kbi_queue *queue)
{
	return time_after(jiffies, queue->asked +
			  msecs_to_jiffies(queue->link->params.timeout_ms));
}

#endif
