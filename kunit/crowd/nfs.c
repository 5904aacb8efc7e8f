// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The protocol of NFS servers: calls of version 4.0 that are in a message, and so are their
 * replies. An idle client has looked at the root of the export, so that the server keeps it.
 */
#include <linux/err.h>
#include <linux/sunrpc/xdr.h>
#include <linux/sunrpc/rpc_rdma.h>
#include "crowd.h"

#define NFS_INLINE	4096

enum {
	NFS_GETATTR = 9, NFS_PUTROOTFH = 24,
};

/* Write a call with its header to @p, @tail behind what all calls have. Return its length. */
static size_t nfs_call(__be32 *p, const u32 *tail, unsigned int n)
{
	/* A header without lists; the call; AUTH_SYS of root; no verifier */
	static const u32 head[] = {
		1, RPCRDMA_VERSION, CROWD_HEADERS, RDMA_MSG, 0, 0, 0,
		1, 0, 2, 100003, 4,
	};
	static const u32 who[] = { 1, 20, 0, 0, 0, 0, 0, 0, 0 };
	__be32 *begin = p;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(head); i++)
		*p++ = cpu_to_be32(head[i]);
	*p++ = cpu_to_be32(!!n);
	for (i = 0; i < ARRAY_SIZE(who); i++)
		*p++ = cpu_to_be32(who[i]);
	for (i = 0; i < n; i++)
		*p++ = cpu_to_be32(tail[i]);
	return (p - begin) * sizeof(*p);
}

#define NFS_NULL_LEN	((12 + 1 + 9) * sizeof(__be32))

static bool nfs_good(const void *message)
{
	const __be32 *p = message;

	return p[3] == cpu_to_be32(RDMA_MSG) && !p[RPCRDMA_HDRLEN_MIN / 4 + 2];
}

static int nfs_start(struct crowd_client *client)
{
	/* No tag, version 4.0, two operations, the type of the root */
	static const u32 look[] = { 0, 0, 2, NFS_PUTROOTFH, NFS_GETATTR, 1, 2 };
	struct rpcrdma_connect_private hello = {
		.cp_magic = rpcrdma_cmp_magic,
		.cp_version = RPCRDMA_CMP_VERSION,
		.cp_send_size = rpcrdma_encode_buffer_size(NFS_INLINE),
		.cp_recv_size = rpcrdma_encode_buffer_size(NFS_INLINE),
	};
	const __be32 *answer = crowd.buf + CROWD_ANSWER_AT;
	struct crowd_conn *conn;
	int err;

	conn = crowd_connect(client, crowd_window + 1, &hello, sizeof(hello));
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	client->conn[0] = conn;
	err = crowd_ask(conn, nfs_call(crowd.buf + CROWD_HELLO_AT, look, ARRAY_SIZE(look)));
	if (err)
		return err;
	if (!nfs_good(answer) || answer[RPCRDMA_HDRLEN_MIN / 4 + 6]) {
		pr_err("kdapl_crowd: the server does not show its root\n");
		return -EACCES;
	}
	nfs_call(crowd.buf + CROWD_SEND_AT, NULL, 0);
	conn->window = crowd_window;
	conn->credits = be32_to_cpu(answer[2]);
	return 0;
}

/* Each reply lets the client call again. */
static unsigned int nfs_credits(const void *message)
{
	return 1;
}

const struct crowd_protocol crowd_nfs = {
	.name = "nfs",
	.start = nfs_start,
	.credits = nfs_credits,
	.good = nfs_good,
	.request_len = NFS_NULL_LEN,
};
