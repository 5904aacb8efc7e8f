// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The owner of verbs objects: "rdma resource show" names the consumer, not
 * kdapl.ko or rdma_cm, which create them. The consumer of these suites is their
 * fixture. What debugfs and the tracepoints show is tested by
 * scripts/guest/example.
 */
#include <linux/module.h>
#include <rdma/restrack.h>
#include "device.h"

#define CONSUMER	"kdapl_kunit"
#define IDS		BIT(20)		/* more than a device has in a test kernel */

/* Count the objects of this type that belong to the consumer, up to @enough. */
static int owned(struct ib_device *dev, enum rdma_restrack_type type,
		 int enough)
{
	struct rdma_restrack_entry *res;
	int n = 0;
	u32 id;

	for (id = 0; id < IDS && n < enough; id++) {
		res = rdma_restrack_get_byid(dev, type, id);
		if (IS_ERR(res))
			continue;
		if (rdma_is_kernel_res(res) && res->kern_name &&
		    !strcmp(res->kern_name, CONSUMER))
			n++;
		rdma_restrack_put(res);
		if (!(id & 0xfff))
			cond_resched();
	}
	return n;
}

static void expect_owned(struct kunit *test, struct ib_device *dev,
			 enum rdma_restrack_type type, const char *what, int n)
{
	KUNIT_EXPECT_EQ_MSG(test, owned(dev, type, n), n, "%s", what);
}

static void resources_name_the_consumer(struct kunit *test)
{
	struct kd_side *a = kd_open_param(test);
	struct kd_side *p = kd_open_param(test);
	struct ib_device *dev = kd_device(test, a->name);
	bool iwarp = rdma_protocol_iwarp(dev, 1);
	int ends = iwarp ? 2 : 1, ids = iwarp ? 2 : 0;

	kd_setup(a, NULL);
	kd_setup(p, &(struct kd_opts) { .srq_len = 8 });
	kd_connect_pair(a, p);
	kd_psp(p, kd_port(), DAT_PSP_CONSUMER_FLAG);
	expect_owned(test, dev, RDMA_RESTRACK_PD, "PD", 2);
	expect_owned(test, dev, RDMA_RESTRACK_SRQ, "SRQ", 1);
	/*
	 * Remotely accessible memory takes an MR, and a connection to register
	 * it: of one queue pair that is its own peer, or on iWARP of two.
	 */
	expect_owned(test, dev, RDMA_RESTRACK_MR, "MR", 2);
	expect_owned(test, dev, RDMA_RESTRACK_CQ, "CQ", 4 + 2);
	expect_owned(test, dev, RDMA_RESTRACK_QP, "QP", 2 + 2 * ends);
	expect_owned(test, dev, RDMA_RESTRACK_CM_ID, "CM_ID", 3 + 2 * ids);
}

static struct kunit_case inspect_cases[] = {
	KUNIT_CASE_PARAM(resources_name_the_consumer, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-inspect", inspect_cases, "attribution of verbs objects");
