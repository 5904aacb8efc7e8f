/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Secrets of the cases: proofs, and keys in a keyring that only kdb_write() sees.
 * Implemented in blk_secret.c, kdapl_blk_kunit.ko.
 */
#ifndef KDAPL_KUNIT_BLK_SECRET_H
#define KDAPL_KUNIT_BLK_SECRET_H

#include "../../drivers/kdapl_blk/secret.h"
#include "fixture.h"

#define SECRET		"a secret of 26 characters."
#define OTHER_SECRET	"another secret of 32 characters."
#define KEY_NAME	"kdapl:test"
#define KEY_SECRET	"key:kdapl:test"

void kdb_prove(struct kunit *test, const char *secret,
	       const struct kblk_proof_of *of, u8 proof[KBLK_PROOF_LEN]);
int kdb_write(const char *path, const char *value);
void kdb_keyring(struct kunit *test);
struct key *kdb_key(struct kunit *test, const char *type, const char *name,
		    const char *payload);

#endif /* KDAPL_KUNIT_BLK_SECRET_H */
