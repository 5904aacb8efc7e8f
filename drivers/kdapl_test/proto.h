/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The protocol of two kdapl_test.ko. A command connects to the server and sends
 * SETUP; the server makes what the command needs and answers READY or REFUSED. The
 * command connects its Endpoints, to the same port, or to that of READY over raw verbs,
 * and gets START. For KT_CONNS the server sends AGAIN when it has reset its end of
 * connections, which the command may then establish again. FINISH, which tells what was
 * measured, or the end of this first connection, ends it. Each side sends ALIVE every
 * second and takes a peer that is silent for KT_SILENCE_MS for dead.
 */
#ifndef KDAPL_TEST_PROTO_H
#define KDAPL_TEST_PROTO_H

#include <linux/types.h>

#define KT_MAGIC	0x6b445054	/* "kDPT" */
#define KT_VERSION	2
#define KT_MSG_LEN	1024		/* bytes of each message */
#define KT_TARGETS	60		/* in one message */
#define KT_ALIVE_MS	1000
#define KT_SILENCE_MS	15000
#define KT_OPS		32		/* of a transaction */
#define KT_MAX_SEGMENTS	16		/* of each of them */
#define KT_MAX_STEP	(128U << 10)	/* bytes of each of them */

/* Private data of a request for a connection: the first one has no token. */
struct kt_hello {
	__le32 magic;
	__le16 version;
	__le16 index;
	__le32 token;
};

enum kt_msg_type {
	KT_MSG_SETUP = 1,
	KT_MSG_READY,
	KT_MSG_REFUSED,
	KT_MSG_START,
	KT_MSG_FINISH,
	KT_MSG_ALIVE,
	KT_MSG_QUIT,
	KT_MSG_AGAIN,
};

/* The kind of a measurement. */
enum kt_kind {
	KT_LAT,				/* one message at a time, each way */
	KT_STREAM,			/* a window of messages, one way */
	KT_CONNS,			/* connect and disconnect */
	KT_TRANS,			/* the transactions of kdapl-test dapl */
	KT_KINDS
};

enum kt_op {
	KT_SEND,
	KT_WRITE,
	KT_READ,
	KT_OP_NUMBER
};

/* Flags of a setup. */
#define KT_RAW		BIT(0)		/* over raw verbs */
#define KT_SRQ		BIT(1)		/* the server receives from one SRQ */
#define KT_MARKS	BIT(2)		/* its watermarks are armed */
#define KT_POLL		BIT(3)		/* both sides poll */
#define KT_VERIFY	BIT(4)		/* KT_TRANS: compare what arrives */
#define KT_CORRUPT	BIT(5)		/* KT_TRANS: one byte is wrong, to be noticed */
#define KT_FMR		BIT(6)		/* KT_TRANS: fast registration for each step */
#define KT_INVALIDATE	BIT(7)		/* and the peer ends it by its message */
#define KT_AGAIN	BIT(8)		/* KT_TRANS: Endpoints are connected again */
#define KT_TRANS_FLAGS	(KT_VERIFY | KT_CORRUPT | KT_FMR | KT_INVALIDATE | KT_AGAIN)
#define KT_FLAGS	0x1ff

/* One step of a transaction. */
struct kt_wire_op {
	u8 op;				/* enum kt_op */
	u8 server;			/* the server does it, not the client */
	u8 segments;
	u8 reserved;
	__le32 size;			/* bytes of each segment */
};

struct kt_wire_setup {
	__le32 flags;
	__le32 size;			/* bytes of a message */
	__le32 depth;			/* messages under way on an Endpoint */
	__le32 eps;
	u8 kind;
	u8 op;
	__le16 nops;
	struct kt_wire_op ops[KT_OPS];
};

struct kt_wire_target {
	__le64 addr;
	__le32 key;
	__le32 index;
};

/* What a command has measured; latencies if @n, in ns. */
struct kt_wire_result {
	__le64 ops;
	__le64 ns;
	__le64 bytes;
	__le64 n;
	__le64 p50;
	__le64 p99;
};

struct kt_msg {
	__le32 magic;
	u8 version;
	u8 type;
	__le16 n;			/* targets, or bytes of text */
	__le32 token;
	__le32 port;			/* of READY over raw verbs */
	union {
		struct kt_wire_setup setup;
		struct kt_wire_target target[KT_TARGETS];
		struct kt_wire_result result;
		char text[KT_MSG_LEN - 16];
	};
};

#endif
