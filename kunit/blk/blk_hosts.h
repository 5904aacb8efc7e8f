/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What suites use of blk_target.h that have blk_initiator.h as well: the two give parts of
 * side->buf the same names.
 */
#ifndef KDAPL_KUNIT_BLK_HOSTS_H
#define KDAPL_KUNIT_BLK_HOSTS_H

#include "fixture.h"

#define TGT		"/sys/kernel/config/kdapl_blk_tgt"
#define TGT_NS		TGT "/subsystems/vol/namespaces/1"
#define TGT_PORT	5100

void tgt_load(struct kunit *test);
struct kd_side *kdb_client_elsewhere(struct kunit *test);

#endif /* KDAPL_KUNIT_BLK_HOSTS_H */
