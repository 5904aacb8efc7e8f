// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_kunit.ko: secrets of the cases, see blk_secret.h.
 */
#include <linux/module.h>
#include "blk_secret.h"

/* Make a proof as who knows @secret does. */
void kdb_prove(struct kunit *test, const char *secret,
	       const struct kblk_proof_of *of, u8 proof[KBLK_PROOF_LEN])
{
	struct kblk_hmac hmac;

	KUNIT_ASSERT_EQ(test, 0, kblk_hmac_init(&hmac));
	KUNIT_EXPECT_EQ(test, 0, kblk_prove(&hmac, secret, strlen(secret), of,
					    proof));
	kblk_hmac_free(&hmac);
}
EXPORT_SYMBOL_GPL(kdb_prove);
