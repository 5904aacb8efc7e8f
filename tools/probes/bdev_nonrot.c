// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* bdev_nonrot(); later kernels have the opposite, bdev_rot() */
#include <linux/blkdev.h>

bool (*kdapl_probe)(struct block_device *bdev) = bdev_nonrot;
