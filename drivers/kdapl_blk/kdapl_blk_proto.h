/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What initiator and target of the kDAPL block device say to each other.
 *
 * Documentation/kdapl-blk.rst is the same in words. Numbers are little-endian.
 * Reserved members are sent as zero, and a receiver refuses anything else, so
 * that they can be given a meaning later without an old peer misreading it. A
 * version changes when a message can no longer be read by the rules of the one
 * before; an opcode or a feature bit more does not need one.
 */
#ifndef KDAPL_BLK_PROTO_H
#define KDAPL_BLK_PROTO_H

#include <linux/build_bug.h>
#include <linux/types.h>

#define KBLK_MAGIC		0x6b42446bU	/* "kDBk" in memory */
#define KBLK_VERSION_MIN	1
#define KBLK_VERSION_MAX	1
#define KBLK_NAME_LEN		64
/* Data that fits into one message with its request or reply, bytes. */
#define KBLK_INLINE		4096
/* What our target takes, and our initiator puts together; others may do with less. */
#define KBLK_MESSAGE		(2 * (sizeof(struct kblk_request) + KBLK_INLINE))
/* The same for replies, the other way round. */
#define KBLK_REPLIES_PAGES	4
#define KBLK_REPLIES	(KBLK_REPLIES_PAGES * (sizeof(struct kblk_reply) + KBLK_INLINE))

/* ---- Connecting: private data -------------------------------------------- */

/*
 * struct kblk_hello - private data of the initiator's request to connect
 * @magic: KBLK_MAGIC
 * @version_min: oldest version it speaks
 * @version_max: newest version it speaks
 * @queue: which of its connections to this volume; 0 for the first
 * @credits: requests it would like to have outstanding
 * @reply_size: longest reply it has buffers for, bytes
 * @session: chosen at random for a disk, the same in all its connections
 * @epoch: grows with each attempt to make the disk's connections
 * @features: KBLK_FEATURE_ bits it would like to use
 *
 * A target that still serves connections of an earlier epoch of the session ends
 * them, and refuses new ones until their requests are finished: a write that was
 * sent again must not be overtaken by its first copy.
 */
struct kblk_hello {
	__le32 magic;
	__le16 version_min;
	__le16 version_max;
	__le16 queue;
	__le16 credits;
	__le32 reply_size;
	__le64 session;
	__le32 epoch;
	__le32 features;
} __packed;

/*
 * struct kblk_welcome - private data of the target's acceptance or rejection
 * @magic: KBLK_MAGIC
 * @version: the version spoken from here on; the target's newest in a rejection
 * @status: enum kblk_hello_status
 * @credits: requests that may be outstanding at first
 * @reserved0: 0
 * @request_size: longest request message, bytes
 * @max_transfer: most data of one read or write, bytes
 * @features: those of the hello that are in use
 * @reserved: 0
 */
struct kblk_welcome {
	__le32 magic;
	__le16 version;
	__le16 status;
	__le16 credits;
	__le16 reserved0;
	__le32 request_size;
	__le32 max_transfer;
	__le32 features;
	__u8 reserved[8];
} __packed;

/* Replies to requests with an rmr_context invalidate it. */
#define KBLK_FEATURE_INVALIDATE	0x00000001
/* A message may bring several replies. */
#define KBLK_FEATURE_BATCH	0x00000002
/* A message may bring several requests. */
#define KBLK_FEATURE_REQUESTS	0x00000004
#define KBLK_FEATURES		0x00000007	/* all there are */
#define KBLK_BATCH_MAX		32		/* of them in a message */

enum kblk_hello_status {
	KBLK_HELLO_OK = 0,
	KBLK_HELLO_MALFORMED = 1,	/* no hello, or one that makes no sense */
	KBLK_HELLO_VERSION = 2,		/* no version in common */
	KBLK_HELLO_BUSY = 3,		/* too many connections */
	KBLK_HELLO_RESOURCES = 4,	/* the target has no memory for it */
	KBLK_HELLO_STOPPING = 5,	/* the port is being closed */
	KBLK_HELLO_DRAINING = 6,	/* an earlier epoch is being ended */
	KBLK_HELLO_STALE = 7,		/* there is a later epoch */
	KBLK_HELLO_SHUNNED = 8		/* its host has ignored credits just now */
};

/* ---- Requests and replies: messages -------------------------------------- */

enum kblk_opcode {
	KBLK_OP_ATTACH = 1,		/* sends a struct kblk_attach inline */
	KBLK_OP_IDENTIFY = 2,		/* gets a struct kblk_identify inline */
	KBLK_OP_READ = 3,
	KBLK_OP_WRITE = 4,
	KBLK_OP_FLUSH = 5,
	KBLK_OP_DISCARD = 6,
	KBLK_OP_WRITE_ZEROES = 7,
	KBLK_OP_KEEPALIVE = 8
};

/* Done when the reply comes, not only received. */
#define KBLK_FUA	0x01
/* The data is in the message itself, of the request or of the reply. */
#define KBLK_INLINED	0x02
#define KBLK_FLAGS	(KBLK_FUA | KBLK_INLINED)	/* all there are */

/*
 * struct kblk_request - a message from the initiator
 * @magic: KBLK_MAGIC
 * @opcode: enum kblk_opcode
 * @flags: KBLK_FUA, KBLK_INLINED
 * @reserved0: 0
 * @id: chosen by the initiator, comes back in the reply
 * @offset: on the volume, bytes, a multiple of the block size
 * @length: bytes, a multiple of the block size for all that has an @offset
 * @rmr_context: names the initiator's memory if the data is not inline
 * @address: where in that memory the data is or goes
 * @reserved: 0
 *
 * If data comes inline, it follows. With KBLK_FEATURE_REQUESTS up to KBLK_BATCH_MAX
 * requests, each with its data, may follow each other in a message.
 */
struct kblk_request {
	__le32 magic;
	__u8 opcode;
	__u8 flags;
	__le16 reserved0;
	__le64 id;
	__le64 offset;
	__le32 length;
	__le32 rmr_context;
	__le64 address;
	__u8 reserved[24];
} __packed;

/*
 * struct kblk_reply - the answer to one request
 * @magic: KBLK_MAGIC
 * @status: enum kblk_status
 * @credits: credits this reply gives; 1 keeps the window as it is
 * @id: that of the request
 * @length: bytes of data that follow inline
 * @reserved: 0
 *
 * If data comes inline, it follows. With KBLK_FEATURE_BATCH up to KBLK_BATCH_MAX
 * replies, each with its data, may follow each other in a message, but for those to
 * requests with an rmr_context.
 */
struct kblk_reply {
	__le32 magic;
	__le16 status;
	__le16 credits;
	__le64 id;
	__le32 length;
	__u8 reserved[12];
} __packed;

enum kblk_status {
	KBLK_OK = 0,
	KBLK_ERR_IO = 1,		/* the medium failed */
	KBLK_ERR_UNSUPPORTED = 2,	/* opcode unknown, or not offered */
	KBLK_ERR_INVALID = 3,		/* length, alignment, flags */
	KBLK_ERR_RANGE = 4,		/* beyond the end of the volume */
	KBLK_ERR_READ_ONLY = 5,
	KBLK_ERR_NO_SPACE = 6,		/* thin volume, or file system, is full */
	KBLK_ERR_NO_VOLUME = 7,		/* attach: there is none of that name */
	KBLK_ERR_DENIED = 8,		/* attach: this client may not */
	KBLK_ERR_NOT_ATTACHED = 9
};

/*
 * struct kblk_attach - which volume the connection is for
 * @client: name of the client, ended by a NUL
 * @subsystem: name of the subsystem, ended by a NUL
 * @namespace: number of the volume in it
 * @keepalive_ms: the initiator sends something at least this often; 0: it may
 *	be silent
 * @reserved: 0
 */
struct kblk_attach {
	char client[KBLK_NAME_LEN];
	char subsystem[KBLK_NAME_LEN];
	__le32 namespace;
	__le32 keepalive_ms;
	__u8 reserved[24];
} __packed;

/*
 * struct kblk_identify - what the volume is
 * @size: bytes, a multiple of @block_size
 * @block_size: bytes, a power of two from 512 to 4096
 * @physical_block_size: bytes, a power of two, not below @block_size
 * @flags: KBLK_VOLUME_ bits
 * @discard_granularity: bytes, 0 if there is no discard
 * @max_discard: longest discard, bytes, 0 if there is none
 * @max_write_zeroes: longest write zeroes, bytes, 0 if there is none
 * @instance: another one means that the target's host has been started anew, and
 *	that writes which were replied to and not flushed may be lost
 * @reserved: 0
 */
struct kblk_identify {
	__le64 size;
	__le32 block_size;
	__le32 physical_block_size;
	__le32 flags;
	__le32 discard_granularity;
	__le32 max_discard;
	__le32 max_write_zeroes;
	__le64 instance;
	__u8 reserved[24];
} __packed;

#define KBLK_VOLUME_READ_ONLY	0x00000001
#define KBLK_VOLUME_CACHE	0x00000002	/* loses writes unless flushed */
#define KBLK_VOLUME_ROTATIONAL	0x00000004
#define KBLK_VOLUME_FLAGS	0x00000007	/* all there are */

static_assert(sizeof(struct kblk_hello) == 32);
static_assert(sizeof(struct kblk_welcome) == 32);
static_assert(sizeof(struct kblk_request) == 64);
static_assert(sizeof(struct kblk_reply) == 32);
static_assert(sizeof(struct kblk_attach) == 160);
static_assert(sizeof(struct kblk_identify) == 64);

#endif /* KDAPL_BLK_PROTO_H */
