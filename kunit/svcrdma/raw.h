/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_svcrdma_kunit.ko: a client of RPC-over-RDMA that sends what it is told to, right or
 * wrong; and the NFS server that it speaks with.
 *
 * A suite of it has the fixture RPC_RAW_SERVER; or RPC_RAW_EXPORT if it reads and writes.
 */
#ifndef KDAPL_SVCRDMA_RAW_H
#define KDAPL_SVCRDMA_RAW_H

#include <linux/sunrpc/xdr.h>
#include <linux/sunrpc/rpc_rdma.h>
#include <dat/kdat_linux.h>
#include "fixture.h"

#define RAW_PORT	20059
#define RAW_EXPORT	"/tmp/raw-export"
#define RAW_SENDS	4
#define RAW_RECVS	8
#define RAW_LENGTH	SZ_4K
/* Words of a NULL call, and bytes of the reply to one */
#define RAW_CALL	10
#define RAW_REPLY	24

/*
 * struct rpc_raw - a connection
 * @data: memory that the server may read and write
 * @xid: of the last call
 * @sent: messages sent so far
 * @broken: connections that the server had broken before this one was made
 * @cm: private message that it connects with
 * @cm_length: length of @cm, 0 for none
 * @m: message that is being built, @n words long
 * @got: the last message received, @got_length bytes
 */
struct rpc_raw {
	struct kd_side *s;
	struct kd_buf *data;
	u32 xid;
	unsigned int sent;
	long broken;
	struct rpcrdma_connect_private cm;
	unsigned int cm_length;
	unsigned int n;
	__be32 m[RAW_LENGTH / 4];
	unsigned int got_length;
	__be32 got[RAW_LENGTH / 4];
};

int rpc_raw_server_up(struct kunit_suite *suite);
void rpc_raw_server_down(struct kunit_suite *suite);
int rpc_raw_export_up(struct kunit_suite *suite);
void rpc_raw_export_down(struct kunit_suite *suite);
int rpc_raw_init(struct kunit *test);
#define RPC_RAW_SERVER	\
	.init = rpc_raw_init, .suite_init = rpc_raw_server_up, .suite_exit = rpc_raw_server_down
#define RPC_RAW_EXPORT	\
	.init = rpc_raw_init, .suite_init = rpc_raw_export_up, .suite_exit = rpc_raw_export_down
long rpc_raw_adapter(struct kd_side *s, const char *name);
bool rpc_raw_wait_adapter(struct kd_side *s, const char *name, long least, long most,
			  unsigned int ms);
struct rpc_raw *rpc_raw_new(struct kunit *test, u64 recvs);
void rpc_raw_post(struct rpc_raw *r, u64 slot);
bool rpc_raw_start(struct rpc_raw *r);
struct rpc_raw *rpc_raw_connect(struct kunit *test);
void rpc_raw_close(struct rpc_raw *r);
bool rpc_raw_send_bytes(struct rpc_raw *r, const void *message, unsigned int length);
bool rpc_raw_send(struct rpc_raw *r);
bool rpc_raw_receive(struct rpc_raw *r, unsigned int ms);
bool rpc_raw_is_down(struct rpc_raw *r, unsigned int ms);
void rpc_raw_expect_cut(struct rpc_raw *r);
void rpc_raw_expect_silence(struct rpc_raw *r);
void rpc_raw_expect_error(struct rpc_raw *r, u32 code);
void rpc_raw_expect_reply(struct rpc_raw *r);
void rpc_raw_expect_alive(struct rpc_raw *r);

/* Building of messages: each adds words to r->m. */
void rpc_raw_begin(struct rpc_raw *r, u32 credits, u32 proc);
void rpc_raw_word(struct rpc_raw *r, u32 word);
void rpc_raw_words(struct rpc_raw *r, unsigned int n, ...);
void rpc_raw_segment(struct rpc_raw *r, unsigned int offset, u32 length);
void rpc_raw_read(struct rpc_raw *r, u32 position, unsigned int offset, u32 length);
void rpc_raw_call(struct rpc_raw *r);
void rpc_raw_no_lists(struct rpc_raw *r);
void rpc_raw_null(struct rpc_raw *r);
unsigned int rpc_raw_put_call(struct rpc_raw *r, unsigned int offset);

/* Calls of NFS version 4.0, which need rpc_raw_export_up(): raw_nfs.c. */
void rpc_raw_compound(struct rpc_raw *r, unsigned int ops);
void rpc_raw_read_f(struct rpc_raw *r, u32 offset, u32 length);
void rpc_raw_build_read(struct rpc_raw *r, unsigned int sink, u32 length);
u32 rpc_raw_begin_write(struct rpc_raw *r, u32 offset, u32 length);
void rpc_raw_end_write(struct rpc_raw *r, u32 position);
void rpc_raw_build_write(struct rpc_raw *r, unsigned int source, u32 offset, u32 length);
void rpc_raw_build_readdir(struct rpc_raw *r, unsigned int sink, u32 reply);
const __be32 *rpc_raw_rpc(const struct rpc_raw *r);
int rpc_raw_status(const struct rpc_raw *r);
bool rpc_raw_write(struct rpc_raw *r, unsigned int source, u32 offset, u32 length);
void rpc_raw_wait_grace(struct rpc_raw *r);

/*
 * struct rpc_peer - a client of NFS 4.1
 * @client: its number, two words
 * @session: its session
 * @sequence: number of the last request, the same as for CREATE_SESSION
 * @xid: of the server's callback
 * @file: letter that its file is called; for a while nobody else gets a delegation of it
 */
struct rpc_peer {
	struct rpc_raw *r;
	__be32 client[2];
	__be32 session[4];
	u32 sequence;
	__be32 xid;
	char file;
};

/* raw_session.c */
void rpc_peer_file(struct kunit *test, struct rpc_peer *p);
bool rpc_peer_introduce(struct rpc_peer *p);
bool rpc_peer_begin(struct rpc_peer *p);
bool rpc_peer_open(void *data);
void rpc_peer_recall(struct kunit *test, const struct rpc_peer *p);
bool rpc_peer_called(struct rpc_peer *p, unsigned int ms);
void rpc_peer_answer(const struct rpc_peer *p, __be32 xid);

#endif
