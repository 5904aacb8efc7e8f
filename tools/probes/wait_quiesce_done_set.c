// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* blk_mq_wait_quiesce_done() takes the tag set: since 6.2; before, the queue */
#include <linux/blk-mq.h>

static_assert(__builtin_types_compatible_p(typeof(blk_mq_wait_quiesce_done),
					   void (struct blk_mq_tag_set *)),
	      "it is given the queue");
