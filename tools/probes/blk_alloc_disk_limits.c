// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* blk_mq_alloc_disk() with queue limits: 6.9 */
#include <linux/blk-mq.h>

struct gendisk *kdapl_probe(struct blk_mq_tag_set *set);
struct gendisk *kdapl_probe(struct blk_mq_tag_set *set)
{
	struct queue_limits lim = { };

	return blk_mq_alloc_disk(set, &lim, NULL);
}
