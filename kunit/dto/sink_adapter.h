/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An iWARP adapter that siw stands in for: sink_adapter.c.
 */
#ifndef KDAPL_KUNIT_SINK_ADAPTER_H
#define KDAPL_KUNIT_SINK_ADAPTER_H

#include <linux/completion.h>
#include "device.h"
#include "rmr_fixture.h"

#define SINK_KEYS	256

/* With the registrations that it has seen, by key. */
struct sink_adapter {
	struct kd_hook device;
	bool slow;			/* dereg_mr waits for @go */
	struct completion go;
	struct completion waits;	/* completed when dereg_mr waits */
	spinlock_t lock;		/* protects the members below */
	struct {
		u32 key;
		u64 start;
		u64 len;
	} open[SINK_KEYS];
	int nopen;
	int reads;
	int refused;
	u32 last;		/* key of the last sink */
	u64 last_addr;
	bool no_mrs;
};

extern struct sink_adapter adapter;

void make_adapter(struct kunit *test);
void adapter_hurries(void *unused);
struct mem_pair adapter_pair(struct kunit *test, DAT_COUNT requests);
void expect_reads(struct kunit *test, int n);

#endif /* KDAPL_KUNIT_SINK_ADAPTER_H */
