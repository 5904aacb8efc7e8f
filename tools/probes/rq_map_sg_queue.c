// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* blk_rq_map_sg() takes the queue of the request, too: until 6.15 */
#include <linux/blk-mq.h>

int kdapl_probe(struct request *rq, struct scatterlist *sg);
int kdapl_probe(struct request *rq, struct scatterlist *sg)
{
	return blk_rq_map_sg(rq->q, rq, sg);
}
