// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Write cache and FUA as features of the queue limits: 6.11 */
#include <linux/blkdev.h>

const struct queue_limits kdapl_probe = {
	.features = BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA,
};
