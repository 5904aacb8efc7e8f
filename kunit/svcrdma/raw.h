/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_svcrdma_kunit.ko: a client of RPC-over-RDMA that sends what it is told to, right or
 * wrong; and the NFS server that it speaks with.
 *
 * A suite has raw_server_up(), raw_server_down() and raw_init() as what runs before, after, and
 * before each of its cases.
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
 * struct raw - a connection
 * @data: memory that the server may read and write
 * @xid: of the last call
 * @sent: messages sent so far
 * @broken: connections that the server had broken before this one was made
 * @cm: private message that it connects with
 * @cm_length: length of @cm, 0 for none
 * @m: message that is being built, @n words long
 * @got: the last message received, @got_length bytes
 */
struct raw {
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

int raw_server_up(struct kunit_suite *suite);
void raw_server_down(struct kunit_suite *suite);
int raw_export_up(struct kunit_suite *suite);
void raw_export_down(struct kunit_suite *suite);
int raw_init(struct kunit *test);
long raw_adapter(struct kd_side *s, const char *name);
struct raw *raw_new(struct kunit *test, u64 recvs);
void raw_post(struct raw *r, u64 slot);
bool raw_start(struct raw *r);
struct raw *raw_connect(struct kunit *test);
void raw_close(struct raw *r);
bool raw_send_bytes(struct raw *r, const void *message, unsigned int length);
bool raw_send(struct raw *r);
bool raw_receive(struct raw *r, unsigned int ms);
bool raw_is_down(struct raw *r, unsigned int ms);
void raw_expect_cut(struct raw *r);
void raw_expect_silence(struct raw *r);
void raw_expect_error(struct raw *r, u32 code);
void raw_expect_reply(struct raw *r);
void raw_expect_alive(struct raw *r);

/* Building of messages: each adds words to r->m. */
void raw_begin(struct raw *r, u32 credits, u32 proc);
void raw_word(struct raw *r, u32 word);
void raw_words(struct raw *r, unsigned int n, ...);
void raw_segment(struct raw *r, unsigned int offset, u32 length);
void raw_read(struct raw *r, u32 position, unsigned int offset, u32 length);
void raw_call(struct raw *r);
void raw_no_lists(struct raw *r);
void raw_null(struct raw *r);
unsigned int raw_put_call(struct raw *r, unsigned int offset);

#endif
