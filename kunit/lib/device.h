/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device of an IA, for suites that look at it or have it do what the drivers
 * of the test bed never do:
 *
 *	static struct kd_hook device;
 *
 *	static int refuse(struct ib_srq *srq, const struct ib_recv_wr *wr,
 *			  const struct ib_recv_wr **bad)
 *	{
 *		return refused++ ? device.real.post_srq_recv(srq, wr, bad) :
 *				   -ENOMEM;
 *	}
 *
 *	kd_hook(test, side->name, &device)->ops.post_srq_recv = refuse;
 */
#ifndef KDAPL_KUNIT_DEVICE_H
#define KDAPL_KUNIT_DEVICE_H

#include <rdma/ib_verbs.h>
#include "fixture.h"

/*
 * struct kd_hook - a device some of whose operations a case replaces
 * @real: all operations as the driver set them; they are put back when the case
 * ends
 *
 * A hook is a static variable, since calls may be under way when the case ends.
 */
struct kd_hook {
	typeof_member(struct ib_device, ops) real;
	struct ib_device *dev;
};

struct ib_device *kd_find_device(const char *ia);
struct ib_device *kd_device(struct kunit *test, const char *ia);
struct ib_device *kd_test_device(struct kunit *test, const char *ia);
struct ib_device *kd_hook(struct kunit *test, const char *ia,
			  struct kd_hook *hook);

extern atomic_t kd_doorbells;

void kd_count_doorbells(struct kunit *test, const char *ia);

extern atomic_t kd_qps;

void kd_refuse_second_qp(struct kunit *test, const char *ia);

#endif /* KDAPL_KUNIT_DEVICE_H */
