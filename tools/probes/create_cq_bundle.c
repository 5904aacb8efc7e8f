// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ib_device_ops.create_cq() takes the attributes of uverbs, not ib_udata. */
#include <rdma/ib_verbs.h>

int probe(struct ib_device_ops *ops, struct ib_cq *cq,
	  const struct ib_cq_init_attr *attr, struct uverbs_attr_bundle *attrs);

int probe(struct ib_device_ops *ops, struct ib_cq *cq,
	  const struct ib_cq_init_attr *attr, struct uverbs_attr_bundle *attrs)
{
	_Static_assert(__builtin_types_compatible_p(typeof(*ops->create_cq),
		       int(struct ib_cq *, const struct ib_cq_init_attr *,
			   struct uverbs_attr_bundle *)), "");
	return ops->create_cq(cq, attr, attrs);
}
