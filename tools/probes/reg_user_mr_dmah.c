// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ib_device_ops.reg_user_mr() takes a DMA handle: 6.17 */
#include <rdma/ib_verbs.h>

struct ib_mr *probe(const struct ib_device_ops *ops, struct ib_pd *pd,
		    struct ib_dmah *dmah, struct ib_udata *udata);

struct ib_mr *probe(const struct ib_device_ops *ops, struct ib_pd *pd,
		    struct ib_dmah *dmah, struct ib_udata *udata)
{
	return ops->reg_user_mr(pd, 0, 0, 0, 0, dmah, udata);
}
