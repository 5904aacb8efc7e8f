/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long the requests of a disk took: see ini_latency.c.
 */
#ifndef KDAPL_BLK_INI_LATENCY_H
#define KDAPL_BLK_INI_LATENCY_H

#include <linux/percpu.h>
#include <linux/types.h>

struct request;

struct kbi_latency __percpu *kbi_latency_alloc(void);
void kbi_latency_count(struct kbi_latency __percpu *latency, const struct request *rq);
ssize_t kbi_latency_show(struct kbi_latency __percpu *latency, char *page);

#endif /* KDAPL_BLK_INI_LATENCY_H */
