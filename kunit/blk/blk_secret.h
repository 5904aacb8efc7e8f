/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Secrets of the cases, and proofs of them. Implemented in blk_secret.c, kdapl_blk_kunit.ko.
 */
#ifndef KDAPL_KUNIT_BLK_SECRET_H
#define KDAPL_KUNIT_BLK_SECRET_H

#include "../../drivers/kdapl_blk/auth.h"
#include "fixture.h"

#define SECRET		"a secret of 26 characters."
#define OTHER_SECRET	"another secret of 32 characters."

void kdb_prove(struct kunit *test, const char *secret,
	       const struct kblk_proof_of *of, u8 proof[KBLK_PROOF_LEN]);

#endif /* KDAPL_KUNIT_BLK_SECRET_H */
