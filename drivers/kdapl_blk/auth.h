/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Proofs that initiator and target know the same secret, see "Authentication"
 * in Documentation/kdapl-blk.rst. kblk_prove() is a pure function; no locks.
 */
#ifndef KDAPL_BLK_AUTH_H
#define KDAPL_BLK_AUTH_H

#include <crypto/sha2.h>
#include <linux/build_bug.h>
#include <linux/string.h>
#include "kdapl_blk_proto.h"

#define KBLK_SECRET_MIN	16
#define KBLK_SECRET_MAX	SHA256_BLOCK_SIZE

/*
 * struct kblk_proof_of - input of the keyed digest that is the proof
 * @who: "initiator" or "target": a reflected proof is invalid
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
 * Compute HMAC-SHA-256 (RFC 2104) of @of, with the kernel's SHA-256. @secret
 * has at most KBLK_SECRET_MAX bytes, one block of the hash, and need not be
 * hashed first.
 */
static inline void kblk_prove(const char *secret, const struct kblk_proof_of *of,
			      u8 proof[KBLK_PROOF_LEN])
{
	struct {
		u8 pad[SHA256_BLOCK_SIZE];
		struct kblk_proof_of of;
	} __packed inner = { .of = *of };
	struct {
		u8 pad[SHA256_BLOCK_SIZE];
		u8 digest[SHA256_DIGEST_SIZE];
	} __packed outer = {};
	size_t len = strnlen(secret, KBLK_SECRET_MAX);
	unsigned int i;

	memcpy(inner.pad, secret, len);
	memcpy(outer.pad, secret, len);
	for (i = 0; i < SHA256_BLOCK_SIZE; i++) {
		inner.pad[i] ^= 0x36;
		outer.pad[i] ^= 0x5c;
	}
	sha256((const u8 *)&inner, sizeof(inner), outer.digest);
	sha256((const u8 *)&outer, sizeof(outer), proof);
	memzero_explicit(&inner, sizeof(inner));
	memzero_explicit(&outer, sizeof(outer));
}

#endif /* KDAPL_BLK_AUTH_H */
