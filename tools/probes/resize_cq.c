// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Users in the kernel can resize a CQ: until 7.1 */
#include <rdma/ib_verbs.h>

int (*kdapl_probe)(struct ib_cq *cq, int cqe) = ib_resize_cq;
