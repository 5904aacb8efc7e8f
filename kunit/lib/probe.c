// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: probes of tracepoints, see probe.h.
 */
#include <linux/module.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include "probe.h"

#ifdef CONFIG_TRACEPOINTS
struct kd_probed {
	const char *name;
	struct tracepoint *tp;
	void *probe;
};

static void kd_find_tracepoint(struct tracepoint *tp, void *data)
{
	struct kd_probed *probed = data;

	if (!strcmp(tp->name, probed->name))
		probed->tp = tp;
}

static void kd_end_probe(void *data)
{
	struct kd_probed *probed = data;

	tracepoint_probe_unregister(probed->tp, probed->probe, NULL);
	tracepoint_synchronize_unregister();
}

/*
 * Have @probe called at a tracepoint of the kernel until the case ends; its
 * arguments are NULL and those of the tracepoint. Skip the case if this kernel has no
 * such tracepoint.
 */
void kd_probe(struct kunit *test, const char *tracepoint, void *probe)
{
	struct kd_probed *probed = kunit_kzalloc(test, sizeof(*probed),
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, probed);
	probed->name = tracepoint;
	probed->probe = probe;
	for_each_kernel_tracepoint(kd_find_tracepoint, probed);
	if (!probed->tp)
		kunit_skip(test, "this kernel has no tracepoint %s", tracepoint);
	KUNIT_ASSERT_EQ(test, 0, tracepoint_probe_register(probed->tp, probe,
							   NULL));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kd_end_probe,
							   probed));
}
#else
void kd_probe(struct kunit *test, const char *tracepoint, void *probe)
{
	kunit_skip(test, "this kernel has no tracepoints");
}
#endif
EXPORT_SYMBOL_GPL(kd_probe);
