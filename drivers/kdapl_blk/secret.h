/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Secrets of clients and disks: a text that the administrator has written, or a key of the
 * kernel's key retention service, whose payload is not copied.
 *
 * kblk_secret_parse() takes a reference on the key, and kblk_secret_put() drops it.
 * kblk_secret_prove() reads the payload under RCU each time, so that an update or a revocation
 * of the key applies to the next ATTACH. The owner of a struct kblk_secret keeps it from
 * changing during a call.
 */
#ifndef KDAPL_BLK_SECRET_H
#define KDAPL_BLK_SECRET_H

#include <keys/user-type.h>
#include <linux/key.h>
#include <linux/string.h>
#include "auth.h"

#define KBLK_SECRET_MIN		16	/* bytes */
#define KBLK_SECRET_MAX		SHA256_BLOCK_SIZE
#define KBLK_SECRET_KEY		"key:"
#define KBLK_SECRET_TEXT	255

/*
 * struct kblk_secret - a secret that client and target share
 * @text: the secret, or KBLK_SECRET_KEY and the description of @key; empty: no secret
 * @key: key whose payload is the secret, or NULL
 */
struct kblk_secret {
	char text[KBLK_SECRET_TEXT + 1];
	struct key *key;
};

static inline bool kblk_has_secret(const struct kblk_secret *secret)
{
	return secret->text[0];
}

static inline void kblk_secret_put(struct kblk_secret *secret)
{
	key_put(secret->key);
	memzero_explicit(secret, sizeof(*secret));
}

#ifdef CONFIG_KEYS
/*
 * Return the payload of @key, or an error pointer if @key is not valid any more or its payload
 * cannot be a secret. Context: RCU read-side critical section, in which the payload is valid.
 */
static inline const struct user_key_payload *kblk_key_payload(struct key *key)
{
	const struct user_key_payload *payload;
	int err = key_validate(key);

	if (err)
		return ERR_PTR(err);
	/* The payload is NULL if key_revoke() ran after key_validate(). */
	payload = user_key_payload_rcu(key);
	if (!payload)
		return ERR_PTR(-EKEYREVOKED);
	if (payload->datalen < KBLK_SECRET_MIN || payload->datalen > KBLK_SECRET_MAX)
		return ERR_PTR(-EINVAL);
	return payload;
}

static inline int kblk_key_prove(struct key *key, struct kblk_hmac *hmac,
				 const struct kblk_proof_of *of,
				 u8 proof[KBLK_PROOF_LEN])
{
	const struct user_key_payload *payload;
	int err;

	rcu_read_lock();
	payload = kblk_key_payload(key);
	err = PTR_ERR_OR_ZERO(payload) ?:
	      kblk_prove(hmac, payload->data, payload->datalen, of, proof);
	rcu_read_unlock();
	return err;
}

/*
 * Look for the key called @name only in the keyrings of the current process: no program is
 * started to make it. Return the key with a reference.
 */
static inline struct key *kblk_key_find(const char *name)
{
	struct key *key = request_key(&key_type_logon, name, NULL);
	int err;

	if (key == ERR_PTR(-ENOKEY))
		key = request_key(&key_type_user, name, NULL);
	if (IS_ERR(key))
		return key;
	rcu_read_lock();
	err = PTR_ERR_OR_ZERO(kblk_key_payload(key));
	rcu_read_unlock();
	if (!err)
		return key;
	key_put(key);
	return ERR_PTR(err);
}
#else
static inline int kblk_key_prove(struct key *key, struct kblk_hmac *hmac,
				 const struct kblk_proof_of *of,
				 u8 proof[KBLK_PROOF_LEN])
{
	return -EOPNOTSUPP;
}

static inline struct key *kblk_key_find(const char *name)
{
	return ERR_PTR(-EOPNOTSUPP);
}
#endif

/*
 * Parse the first line of @page into @secret, which need not be initialised. Return 0, or an
 * error number and no secret. Context: process, may sleep.
 */
static inline int kblk_secret_parse(struct kblk_secret *secret, const char *page)
{
	size_t len = strcspn(page, "\n");
	struct key *key;

	memset(secret, 0, sizeof(*secret));
	if (len > KBLK_SECRET_TEXT)
		return -EINVAL;
	memcpy(secret->text, page, len);
	if (!strstarts(secret->text, KBLK_SECRET_KEY)) {
		if (!len || (len >= KBLK_SECRET_MIN && len <= KBLK_SECRET_MAX))
			return 0;
		kblk_secret_put(secret);
		return -EINVAL;
	}
	key = kblk_key_find(secret->text + strlen(KBLK_SECRET_KEY));
	if (IS_ERR(key)) {
		kblk_secret_put(secret);
		return PTR_ERR(key);
	}
	secret->key = key;
	return 0;
}

/* Prove knowledge of @secret, which is not empty, as kblk_prove() does. */
static inline int kblk_secret_prove(const struct kblk_secret *secret,
				    struct kblk_hmac *hmac,
				    const struct kblk_proof_of *of,
				    u8 proof[KBLK_PROOF_LEN])
{
	if (secret->key)
		return kblk_key_prove(secret->key, hmac, of, proof);
	return kblk_prove(hmac, secret->text, strlen(secret->text), of, proof);
}

/* Return a name of @secret for the log, never its text. */
static inline const char *kblk_secret_name(const struct kblk_secret *secret)
{
	return secret->key ? secret->text : "secret";
}

#endif /* KDAPL_BLK_SECRET_H */
