/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Proofs that initiator and target know the same secret, see "Authentication"
 * in Documentation/kdapl-blk-design.rst. Each module has a struct kblk_hmac; hmac->lock is
 * the innermost lock.
 */
#ifndef KDAPL_BLK_AUTH_H
#define KDAPL_BLK_AUTH_H

#include <crypto/hash.h>
#include <crypto/sha2.h>
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/printk.h>
#include <linux/spinlock.h>
#include "kdapl_blk_proto.h"

/*
 * struct kblk_proof_of - input of the keyed digest that is the proof
 * @who: "initiator" or "target", so that a reflected proof is invalid
 * @challenge: challenge of the target
 * @nonce: nonce of the initiator
 * @session: see struct kblk_hello, as @epoch and @queue
 * @reserved: 0
 * @attach: parameters of ATTACH
 */
struct kblk_proof_of {
	char who[16];
	__u8 challenge[KBLK_NONCE_LEN];
	__u8 nonce[KBLK_NONCE_LEN];
	__le64 session;
	__le32 epoch;
	__le16 queue;
	__le16 reserved;
	struct kblk_attach attach;
} __packed;

static_assert(SHA256_DIGEST_SIZE == KBLK_PROOF_LEN);

/*
 * struct kblk_hmac - the kernel's HMAC-SHA-256. It is allocated when the module is loaded: a
 * disk that reconnects may hold swap, or the module of the algorithm.
 * @lock: guards the key that is set in @tfm
 */
struct kblk_hmac {
	spinlock_t lock;		/* the key set in @tfm */
	struct crypto_shash *tfm;
};

static inline int kblk_hmac_init(struct kblk_hmac *hmac)
{
	struct crypto_shash *tfm = crypto_alloc_shash("hmac(sha256)", 0, 0);

	if (IS_ERR(tfm)) {
		pr_err("no hmac(sha256), error %ld\n", PTR_ERR(tfm));
		return PTR_ERR(tfm);
	}
	spin_lock_init(&hmac->lock);
	hmac->tfm = tfm;
	return 0;
}

static inline void kblk_hmac_free(struct kblk_hmac *hmac)
{
	crypto_free_shash(hmac->tfm);
}

/*
 * Write the HMAC-SHA-256 of @of, keyed with @len bytes of @secret, to @proof. If an error
 * number is returned, @proof is not valid. Context: does not sleep.
 */
static inline int kblk_prove(struct kblk_hmac *hmac, const void *secret,
			     unsigned int len, const struct kblk_proof_of *of,
			     u8 proof[KBLK_PROOF_LEN])
{
	int err;

	spin_lock(&hmac->lock);
	err = crypto_shash_setkey(hmac->tfm, secret, len) ?:
	      crypto_shash_tfm_digest(hmac->tfm, (const u8 *)of, sizeof(*of),
				      proof);
	spin_unlock(&hmac->lock);
	return err;
}

#endif /* KDAPL_BLK_AUTH_H */
