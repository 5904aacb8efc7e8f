// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ib_device_ops.create_cq() takes a struct uverbs_attr_bundle, not a struct ib_udata. */
#include <linux/build_bug.h>
#include <rdma/ib_verbs.h>

int probe(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
	  struct uverbs_attr_bundle *attrs);

static_assert(__same_type(probe,
			  *((const struct ib_device_ops *)NULL)->create_cq));
