// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* bdev_file_open_by_path(): 6.9 */
#include <linux/blkdev.h>

struct file *(*kdapl_probe)(const char *path, blk_mode_t mode, void *holder,
			    const struct blk_holder_ops *hops) =
	bdev_file_open_by_path;
