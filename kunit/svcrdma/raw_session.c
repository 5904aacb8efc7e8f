// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_svcrdma_kunit.ko: NFS version 4.1 by hand, up to the session in which the server calls
 * the client: see raw.h. What fails tells its caller so.
 */
#include <linux/module.h>
#include "raw.h"
#include "shell.h"

enum {
	OP_OPEN = 18, OP_PUTROOTFH = 24, OP_EXCHANGE_ID = 42, OP_CREATE_SESSION = 43,
	OP_SEQUENCE = 53, OP_RECLAIM_COMPLETE = 58,
};

/* Words of a header without chunks */
#define HEADER	(RPCRDMA_HDRLEN_MIN / 4)

/* Begin a COMPOUND of @ops operations. */
static void compound(struct rpc_raw *r, unsigned int ops)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_no_lists(r);
	rpc_raw_words(r, RAW_CALL, r->xid, 0, 2, 100003, 4, 1, 0, 0, 0, 0);
	rpc_raw_words(r, 3, 0, 1, ops);
}

/* Send what was built; return whether it was done. */
static bool is_done(struct rpc_raw *r)
{
	return rpc_raw_send(r) && rpc_raw_receive(r, KD_TIMEOUT_MS) && !rpc_raw_status(r);
}

/* Tell the server who the client is. */
bool rpc_peer_introduce(struct rpc_peer *p)
{
	static atomic_t owners = ATOMIC_INIT(0);
	struct rpc_raw *r = p->r;

	compound(r, 1);
	rpc_raw_words(r, 5, OP_EXCHANGE_ID, 1, 2, 4, atomic_inc_return(&owners));
	rpc_raw_words(r, 3, 0, 0, 0);
	if (!is_done(r))
		return false;
	memcpy(p->client, &r->got[HEADER + 11], sizeof(p->client));
	p->sequence = be32_to_cpu(r->got[HEADER + 13]);
	return true;
}
EXPORT_SYMBOL_GPL(rpc_peer_introduce);

/* Add attributes of a channel. */
static void channel(struct rpc_raw *r)
{
	rpc_raw_words(r, 7, 0, 4096, 4096, 4096, 8, 8, 0);
}

/* Begin a COMPOUND of @ops operations in the session. */
static void sequence(struct rpc_peer *p, unsigned int ops)
{
	unsigned int i;

	compound(p->r, ops + 1);
	rpc_raw_word(p->r, OP_SEQUENCE);
	for (i = 0; i < ARRAY_SIZE(p->session); i++)
		rpc_raw_word(p->r, be32_to_cpu(p->session[i]));
	rpc_raw_words(p->r, 4, ++p->sequence, 0, 0, 0);
}

/* Begin a session that has callbacks. */
bool rpc_peer_begin(struct rpc_peer *p)
{
	struct rpc_raw *r = p->r;

	compound(r, 1);
	rpc_raw_words(r, 5, OP_CREATE_SESSION, be32_to_cpu(p->client[0]),
		      be32_to_cpu(p->client[1]), p->sequence, 2);
	channel(r);
	channel(r);
	rpc_raw_words(r, 3, 0x40000000, 1, 0);
	if (!is_done(r))
		return false;
	memcpy(p->session, &r->got[HEADER + 11], sizeof(p->session));
	p->sequence = 0;
	sequence(p, 1);
	rpc_raw_words(p->r, 2, OP_RECLAIM_COMPLETE, 0);
	return is_done(r);
}
EXPORT_SYMBOL_GPL(rpc_peer_begin);

/* Open the file, which the server refuses in its grace period. */
bool rpc_peer_open(void *data)
{
	struct rpc_peer *p = data;

	sequence(p, 2);
	rpc_raw_word(p->r, OP_PUTROOTFH);
	rpc_raw_words(p->r, 8, OP_OPEN, 0, 0x101, 0, be32_to_cpu(p->client[0]),
		      be32_to_cpu(p->client[1]), 4, 1);
	rpc_raw_words(p->r, 4, 0, 0, 1, p->file << 24);
	return is_done(p->r);
}
EXPORT_SYMBOL_GPL(rpc_peer_open);

/* Make a file for @p. */
void rpc_peer_file(struct kunit *test, struct rpc_peer *p)
{
	static atomic_t files = ATOMIC_INIT(0);
	char command[128];

	/* Letters behind that of the file of raw.c */
	p->file = 'g' + atomic_inc_return(&files) % ('z' - 'g');
	snprintf(command, sizeof(command),
		 "f=" RAW_EXPORT "/%c; rm -f $f; echo >$f && chmod 666 $f", p->file);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
}
EXPORT_SYMBOL_GPL(rpc_peer_file);

/* Have somebody else write to the file, so that the server calls whoever has a delegation. */
void rpc_peer_recall(struct kunit *test, const struct rpc_peer *p)
{
	char command[128];

	snprintf(command, sizeof(command),
		 "timeout 60 dd if=/dev/zero of=" RAW_EXPORT "/%c bs=1 count=1 conv=notrunc &",
		 p->file);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
}
EXPORT_SYMBOL_GPL(rpc_peer_recall);

/* Be called, within @ms. */
bool rpc_peer_called(struct rpc_peer *p, unsigned int ms)
{
	const struct rpc_raw *r = p->r;

	if (!rpc_raw_receive(p->r, ms) || be32_to_cpu(r->got[3]) != RDMA_MSG || r->got[HEADER + 1])
		return false;
	p->xid = r->got[0];
	return true;
}
EXPORT_SYMBOL_GPL(rpc_peer_called);

/* Build the answer to the server's call, with @xid. */
void rpc_peer_answer(const struct rpc_peer *p, __be32 xid)
{
	struct rpc_raw *r = p->r;

	rpc_raw_begin(r, 2, RDMA_MSG);
	r->m[0] = xid;
	rpc_raw_no_lists(r);
	rpc_raw_words(r, 6, be32_to_cpu(xid), 1, 0, 0, 0, 0);
}
EXPORT_SYMBOL_GPL(rpc_peer_answer);
