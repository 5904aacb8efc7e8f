// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_kunit.ko: secrets of the cases, see blk_secret.h.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/module.h>
#include "blk_secret.h"
#include "files.h"

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

/* Credentials with a keyring of the case as that of the session, or NULL. */
static struct cred *with_keyring;

static int write_file(const char *path, const char *value)
{
	struct file *file;
	loff_t pos = 0;
	ssize_t n;

	file = kd_filp_open(path, O_WRONLY, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	n = kernel_write(file, value, strlen(value), &pos);
	kd_filp_close(file);
	return min_t(ssize_t, n, 0);
}

/*
 * Write @value to the file at @path, as a process that has the keys of the case.
 * Return 0 or an error number.
 */
int kdb_write(const char *path, const char *value)
{
	const struct cred *old;
	int err;

	if (!with_keyring)
		return write_file(path, value);
	old = override_creds(with_keyring);
	err = write_file(path, value);
	revert_creds(old);
	return err;
}
EXPORT_SYMBOL_GPL(kdb_write);

static void drop_keyring(void *unused)
{
	put_cred(with_keyring);
	with_keyring = NULL;
}

/* Make an empty keyring for the keys of the case. */
void kdb_keyring(struct kunit *test)
{
	struct cred *cred = prepare_creds();
	struct key *keyring;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	keyring = keyring_alloc("kdapl_test", GLOBAL_ROOT_UID, GLOBAL_ROOT_GID,
				cred, KEY_POS_ALL | KEY_USR_ALL,
				KEY_ALLOC_NOT_IN_QUOTA, NULL, NULL);
	if (IS_ERR(keyring)) {
		abort_creds(cred);
		KUNIT_FAIL(test, "no keyring: %ld", PTR_ERR(keyring));
		return;
	}
	key_put(cred->session_keyring);
	cred->session_keyring = keyring;
	with_keyring = cred;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, drop_keyring,
							   NULL));
}
EXPORT_SYMBOL_GPL(kdb_keyring);

static void put_key(void *key)
{
	key_put(key);
}

/*
 * Make the key called @name, or update it if there is one. The case has a reference to
 * the key that is returned.
 */
struct key *kdb_key(struct kunit *test, const char *type, const char *name,
		    const char *payload)
{
	struct key *key;
	key_ref_t ref;

	KUNIT_ASSERT_NOT_NULL(test, with_keyring);
	ref = key_create_or_update(make_key_ref(with_keyring->session_keyring, true),
				   type, name, payload, strlen(payload),
				   KEY_POS_ALL | KEY_USR_ALL,
				   KEY_ALLOC_NOT_IN_QUOTA);
	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(ref), "no key: %ld", PTR_ERR(ref));
	key = key_ref_to_ptr(ref);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, put_key, key));
	return key;
}
EXPORT_SYMBOL_GPL(kdb_key);
