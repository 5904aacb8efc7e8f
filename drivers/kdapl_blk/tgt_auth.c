// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Authentication of clients, and of the target to the client.
 *
 * Entry points: kbt_challenge() serves CHALLENGE, kbt_authenticate() is part of
 * ATTACH and LIST.
 *
 * A client with a secret, and every client of a subsystem with "authenticate",
 * must show knowledge of the secret without sending it. ATTACH carries a
 * digest, keyed with the secret, over the challenge made for this connection, a
 * nonce of the client and the parameters of ATTACH. The reply carries the
 * target's own digest. A challenge is valid for one attempt, so that a captured
 * proof cannot be replayed and secrets cannot be guessed at line rate;
 * kbt_look_after() ends the connection after a failure.
 *
 * The connection owns its challenge, which only its receive path uses
 * (conn->recv_mutex). kbt_names guards clients and secrets.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/algapi.h>
#include <linux/printk.h>
#include <linux/random.h>
#include "status.h"
#include "tgt.h"

struct kblk_hmac kbt_hmac;

static struct kbt_client *kbt_client_find(const char *name)
{
	struct kbt_client *client;

	list_for_each_entry(client, &kbt_clients, link)
		if (!strcmp(config_item_name(&client->group.cg_item), name))
			return client;
	return NULL;
}

/* Make a challenge for @conn and write it to kbt_words(), which the reply sends. */
void kbt_challenge(struct kbt_conn *conn)
{
	get_random_bytes(conn->challenge, sizeof(conn->challenge));
	memcpy(kbt_words(conn), conn->challenge, sizeof(conn->challenge));
	conn->challenged = true;
}

/*
 * Write the proof over @of with the secret of @client to @proof. Return false if this failed,
 * as with a key that was revoked or has expired.
 */
static bool kbt_prove(struct kbt_client *client, const struct kblk_proof_of *of,
		      u8 *proof)
{
	int err = kblk_secret_prove(&client->secret, &kbt_hmac, of, proof);

	if (err)
		pr_warn_ratelimited("client %s: its %s cannot be used: %s\n",
				    config_item_name(&client->group.cg_item),
				    kblk_secret_name(&client->secret), kblk_secret_text(err));
	return !err;
}

/*
 * Check the proof that follows @attach; on success write the target's own proof to
 * kbt_words(), which the reply to ATTACH sends.
 */
static bool kbt_is_proven(struct kbt_conn *conn, struct kbt_client *client,
			  const struct kblk_attach *attach)
{
	const struct kblk_proof *theirs = (const void *)(attach + 1);
	struct kblk_proof_of of = {
		.who = "initiator",
		.session = cpu_to_le64(conn->session_id),
		.epoch = cpu_to_le32(conn->epoch),
		.queue = cpu_to_le16(conn->queue),
		.attach = *attach,
	};
	u8 proof[KBLK_PROOF_LEN];

	memcpy(of.challenge, conn->challenge, sizeof(of.challenge));
	memcpy(of.nonce, theirs->nonce, sizeof(of.nonce));
	if (!kbt_prove(client, &of, proof) ||
	    crypto_memneq(proof, theirs->proof, sizeof(proof)))
		return false;
	strscpy_pad(of.who, "target", sizeof(of.who));
	return kbt_prove(client, &of, kbt_words(conn));
}

/**
 * kbt_authenticate() - check the proof of a client that attaches
 * @conn: connection of the client
 * @subsys: subsystem that the client asks for, or NULL
 * @attach: ATTACH as received, followed by a struct kblk_proof if the connection uses
 *	KBLK_FEATURE_AUTH
 *
 * The challenge of @conn is consumed. After a failure conn->unproven is set, and
 * kbt_look_after() ends the connection.
 *
 * Context: Process.
 * Return: KBLK_OK, or the status of the reply.
 */
enum kblk_status kbt_authenticate(struct kbt_conn *conn,
				  const struct kbt_subsys *subsys,
				  const struct kblk_attach *attach)
{
	struct kbt_client *client = kbt_client_find(attach->client);
	bool has_secret = client && kblk_has_secret(&client->secret);
	bool challenged = conn->challenged;

	lockdep_assert_held(&kbt_names);
	conn->challenged = false;
	/* A client that failed gets no second attempt: the connection is about to be ended. */
	if (!conn->unproven && !conn->auth)
		conn->unproven = (subsys && subsys->authenticate) || has_secret;
	else if (!conn->unproven)
		conn->unproven = !has_secret || !challenged ||
				 !kbt_is_proven(conn, client, attach);
	if (!conn->unproven)
		return KBLK_OK;
	return conn->auth ? KBLK_ERR_PROOF : KBLK_ERR_DENIED;
}
