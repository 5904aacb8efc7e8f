// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Asynchronous events: whom they reach, and that they end with their object.
 */
#include <linux/module.h>
#include <rdma/ib_verbs.h>
#include "device.h"
#include "fixture.h"

/*
 * A fatal event of the device reaches every IA that is open, also beside one that
 * is being released.
 */
static void N6_fatal_reaches_every_ia(struct kunit *test)
{
	struct kd_side *first = kd_open_param(test);
	struct kd_side *closed = kd_open_param(test);
	struct kd_side *last = kd_open_param(test);
	struct ib_event event = {
		.event = IB_EVENT_DEVICE_FATAL,
		.device = kd_test_device(test, first->name),
	};

	kd_expect_no_event(test, last->async_evd);
	/* From its last reference on it is on the list for a grace period. */
	kd_close(closed);
	ib_dispatch_event(&event);
	kd_expect_event(test, first->async_evd, DAT_ASYNC_ERROR_IA_CATASTROPHIC,
			NULL);
	kd_expect_event(test, last->async_evd, DAT_ASYNC_ERROR_IA_CATASTROPHIC,
			NULL);
}

/* Open an IA whose asynchronous events go to an EVD of another one. */
static DAT_IA_HANDLE open_with(struct kunit *test, struct kd_side *side,
			       DAT_EVD_HANDLE evd)
{
	DAT_IA_HANDLE ia;

	KD_ASSERT_OK(test, dat_ia_open((DAT_NAME_PTR)side->name, 0, &evd, &ia));
	return ia;
}

/*
 * An EVD's overflow is queued on an EVD that outlives it: of three IAs, the first
 * has the asynchronous EVD of the second, and the second that of the third. When
 * the second is closed no event names its EVD any more.
 */
static void C4_overflow_ends_with_its_evd(struct kunit *test)
{
	struct kd_side *first = kd_open_param(test);
	DAT_UPCALL_OBJECT none = { };
	DAT_IA_HANDLE second, third;
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_SRQ_HANDLE srq[2];
	DAT_EVD_HANDLE evd;
	DAT_PZ_HANDLE pz;
	int i;

	second = open_with(test, first, first->async_evd);
	KD_ASSERT_OK(test, dat_evd_kcreate(second, 1, DAT_UPCALL_DISABLE, &none,
					   DAT_EVD_ASYNC_FLAG, &evd));
	third = open_with(test, first, evd);
	KD_ASSERT_OK(test, dat_pz_create(third, &pz));
	/* Each mark fires at once; the second event is one too many. */
	for (i = 0; i < ARRAY_SIZE(srq); i++) {
		KD_ASSERT_OK(test, dat_srq_create(third, pz, &attr, &srq[i]));
		KD_EXPECT_OK(test, dat_srq_set_lw(srq[i], 1));
	}
	KD_EXPECT_OK(test, dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_no_event(test, first->async_evd);
	KD_EXPECT_OK(test, dat_ia_close(third, DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_no_event(test, first->async_evd);
}

static struct kunit_case async_cases[] = {
	KUNIT_CASE_PARAM(N6_fatal_reaches_every_ia, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_overflow_ends_with_its_evd, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-async", async_cases, "asynchronous events");
