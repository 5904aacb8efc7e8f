/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections of iWARP that the driver does not report to the side that accepts: as if the peer
 * did not send the first frame that it has announced. Implemented in withhold.c, kdapl_kunit.ko.
 */
#ifndef KDAPL_KUNIT_WITHHOLD_H
#define KDAPL_KUNIT_WITHHOLD_H

#include "fixture.h"

#define KD_WITHHELD_MOST	520

void kd_withhold_on(struct kunit *test, const char *ia);
void kd_withhold(struct kunit *test, unsigned int n);
unsigned int kd_withheld(void);
void kd_expect_withheld(struct kunit *test, unsigned int n);
void kd_report_withheld(void *unused);

#endif /* KDAPL_KUNIT_WITHHOLD_H */
