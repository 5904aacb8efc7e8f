// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Requests are merged only with BLK_MQ_F_SHOULD_MERGE: until 6.13 */
#include <linux/blk-mq.h>

const int kdapl_probe = BLK_MQ_F_SHOULD_MERGE;
