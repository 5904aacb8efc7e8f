/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Wire protocol between initiator and target of the kDAPL block device.
 *
 * Documentation/kdapl-blk-design.rst describes the same protocol in words. Numbers are
 * little-endian. Reserved members are sent as zero, and a receiver refuses any
 * other value, so that a later version can use them without an old peer
 * misreading them. The version changes when an old peer can no longer parse a
 * message; a new opcode or feature bit does not change it.
 */
#ifndef KDAPL_BLK_PROTO_H
#define KDAPL_BLK_PROTO_H

#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>

#define KBLK_MAGIC		0x6b42446bU	/* "kDBk" in memory */
#define KBLK_VERSION_MIN	1
#define KBLK_VERSION_MAX	1
#define KBLK_NAME_LEN		64
/* Most inline data of one request or reply, bytes */
#define KBLK_INLINE		4096
/*
 * Longest request message that this implementation receives or builds; a peer
 * may have a lower limit
 */
#define KBLK_MESSAGE		(2 * (sizeof(struct kblk_request) + KBLK_INLINE))
/* Pages of data, and bytes, of the longest reply message */
#define KBLK_REPLIES_PAGES	4
#define KBLK_REPLIES	(KBLK_REPLIES_PAGES * (sizeof(struct kblk_reply) + KBLK_INLINE))

/* ---- Connecting: private data -------------------------------------------- */

/*
 * struct kblk_hello - private data of the initiator's connection request
 * @magic: KBLK_MAGIC
 * @version_min: oldest version that the initiator speaks
 * @version_max: newest version that the initiator speaks
 * @queue: number of the connection among those of the disk; 0 for the first
 * @credits: requests that the initiator would like to have outstanding
 * @reply_size: longest reply message that the initiator can receive, bytes
 * @session: random number of a disk, the same in all its connections
 * @epoch: grows with each attempt to make the disk's connections
 * @features: KBLK_FEATURE_ bits that the initiator would like to use
 *
 * A target that still serves an earlier epoch of the session ends its connections, and refuses
 * new ones until their requests have finished: the first copy of a write must not overtake the
 * second.
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
 * @version: version of this connection; in a rejection, the target's newest
 * @status: enum kblk_hello_status
 * @credits: requests that may be outstanding at first
 * @queues: connections that the disk may have, with KBLK_FEATURE_QUEUES; else 0
 * @request_size: longest request message, bytes
 * @max_transfer: most data of one READ or WRITE, bytes
 * @features: KBLK_FEATURE_ bits of the hello that are in use
 * @reserved: 0
 */
struct kblk_welcome {
	__le32 magic;
	__le16 version;
	__le16 status;
	__le16 credits;
	__le16 queues;
	__le32 request_size;
	__le32 max_transfer;
	__le32 features;
	__u8 reserved[8];
} __packed;

/* The reply to a request with an rmr_context invalidates that key. */
#define KBLK_FEATURE_INVALIDATE	0x00000001
/* A message may contain several replies. */
#define KBLK_FEATURE_BATCH	0x00000002
/* A message may contain several requests. */
#define KBLK_FEATURE_REQUESTS	0x00000004
/* The reply to IDENTIFY brings a UUID. */
#define KBLK_FEATURE_IDENTITY	0x00000008
/* The target understands KBLK_NOUNMAP. */
#define KBLK_FEATURE_NOUNMAP	0x00000010
/* Replies carry the size of the volume. */
#define KBLK_FEATURE_SIZE	0x00000020
/* ATTACH and its reply carry a proof. */
#define KBLK_FEATURE_AUTH	0x00000040
/* The welcome carries the number of connections that the disk may have. */
#define KBLK_FEATURE_QUEUES	0x00000080
/* A connection may begin with one credit; requests ask for more, KEEPALIVE returns some. */
#define KBLK_FEATURE_CREDITS	0x00000100
/* ATTACH names the host; FENCE is supported. */
#define KBLK_FEATURE_HOST	0x00000200
/* A connection may be attached to several volumes; each request names its volume. */
#define KBLK_FEATURE_VOLUMES	0x00000400
/* The reply to IDENTIFY brings the transfer sizes that suit the volume. */
#define KBLK_FEATURE_HINTS	0x00000800
/* LIST is supported. */
#define KBLK_FEATURE_LIST	0x00001000
#define KBLK_FEATURES		0x00001fff	/* all features */
#define KBLK_BATCH_MAX		32		/* requests or replies per message */

enum kblk_hello_status {
	KBLK_HELLO_OK = 0,
	KBLK_HELLO_MALFORMED = 1,	/* no hello, or an invalid one */
	KBLK_HELLO_VERSION = 2,		/* no version in common */
	KBLK_HELLO_BUSY = 3,		/* too many connections */
	KBLK_HELLO_RESOURCES = 4,	/* no memory for the connection */
	KBLK_HELLO_STOPPING = 5,	/* the port is being closed */
	KBLK_HELLO_DRAINING = 6,	/* an earlier epoch is being ended */
	KBLK_HELLO_STALE = 7,		/* a later epoch is known */
	KBLK_HELLO_SHUNNED = 8		/* clients of this host misbehaved */
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
	KBLK_OP_KEEPALIVE = 8,
	KBLK_OP_CHALLENGE = 9,		/* gets a nonce inline; with KBLK_FEATURE_AUTH */
	/* sends a struct kblk_fence inline; with KBLK_FEATURE_HOST */
	KBLK_OP_FENCE = 10,
	KBLK_OP_DETACH = 11,		/* with KBLK_FEATURE_VOLUMES */
	/*
	 * sends a struct kblk_attach inline, gets a struct kblk_listed; with
	 * KBLK_FEATURE_LIST
	 */
	KBLK_OP_LIST = 12
};

/* WRITE: the data is on the medium when the reply arrives. */
#define KBLK_FUA	0x01
/* The data is inside the message of the request or the reply. */
#define KBLK_INLINED	0x02
/* WRITE_ZEROES: keep the blocks allocated. With KBLK_FEATURE_NOUNMAP. */
#define KBLK_NOUNMAP	0x04

/* The initiator has more requests than credits. With KBLK_FEATURE_CREDITS. */
#define KBLK_WANTS	0x08

/*
 * struct kblk_request - a request of the initiator
 * @magic: KBLK_MAGIC
 * @opcode: enum kblk_opcode
 * @flags: KBLK_FUA, KBLK_INLINED, KBLK_NOUNMAP, KBLK_WANTS
 * @returned: KEEPALIVE: credits that the initiator gives back, with
 *	KBLK_FEATURE_CREDITS; else 0
 * @id: chosen by the initiator, returned in the reply
 * @offset: offset on the volume, bytes, a multiple of the block size; LIST: number of the
 *	wanted volume, from 0
 * @length: bytes; a multiple of the block size for opcodes that use @offset
 * @rmr_context: key of the initiator's memory if the data is not inline
 * @address: address of the data in that memory
 * @namespace: number of the volume that the request is for, with KBLK_FEATURE_VOLUMES;
 *	otherwise, and for ATTACH, CHALLENGE, LIST and KEEPALIVE, 0
 * @reserved: 0
 *
 * Inline data follows the request. With KBLK_FEATURE_REQUESTS a message holds
 * up to KBLK_BATCH_MAX requests, each followed by its data.
 */
struct kblk_request {
	__le32 magic;
	__u8 opcode;
	__u8 flags;
	__le16 returned;
	__le64 id;
	__le64 offset;
	__le32 length;
	__le32 rmr_context;
	__le64 address;
	__le32 namespace;
	__u8 reserved[20];
} __packed;

/*
 * struct kblk_reply - the reply to one request
 * @magic: KBLK_MAGIC
 * @status: enum kblk_status
 * @credits: credits granted; 1 keeps the number of requests as it is
 * @id: id of the request
 * @length: bytes of inline data that follow
 * @size: size of the request's volume, bytes; 0 without KBLK_FEATURE_SIZE, before ATTACH, and
 *	with KBLK_FEATURE_VOLUMES if the request was for no volume
 * @reserved: 0
 *
 * Inline data follows the reply. With KBLK_FEATURE_BATCH a message holds up to
 * KBLK_BATCH_MAX replies, each followed by its data; the reply to a request
 * with an rmr_context is always alone in its message.
 */
struct kblk_reply {
	__le32 magic;
	__le16 status;
	__le16 credits;
	__le64 id;
	__le32 length;
	__le64 size;
	__u8 reserved[4];
} __packed;

enum kblk_status {
	KBLK_OK = 0,
	KBLK_ERR_IO = 1,		/* the medium failed */
	KBLK_ERR_UNSUPPORTED = 2,	/* opcode unknown, or not offered */
	KBLK_ERR_INVALID = 3,		/* length, alignment, flags */
	KBLK_ERR_RANGE = 4,		/* beyond the end of the volume */
	KBLK_ERR_READ_ONLY = 5,
	KBLK_ERR_NO_SPACE = 6,		/* thin volume, or file system, is full */
	KBLK_ERR_NO_VOLUME = 7,		/* ATTACH, LIST: no such volume */
	KBLK_ERR_DENIED = 8,		/* ATTACH: client not allowed */
	KBLK_ERR_NOT_ATTACHED = 9,	/* no volume, or not the request's */
	KBLK_ERR_DRAINING = 10,		/* ATTACH, FENCE: connections are being ended */
	/* ATTACH: there is a later epoch, or the first connection of the disk is gone */
	KBLK_ERR_STALE = 11,
	KBLK_ERR_PROOF = 12,		/* ATTACH: the proof is wrong */
	/* ATTACH: no credit or memory for another volume, or no connection for the disk */
	KBLK_ERR_BUSY = 13
};

/*
 * struct kblk_attach - the volume to attach the connection to
 * @client: name of the client, NUL-terminated
 * @subsystem: name of the subsystem, NUL-terminated
 * @namespace: number of the volume in the subsystem
 * @keepalive_ms: longest time between two messages of the initiator; 0: no promise
 * @host: random number of the initiator's host, the same for all its disks; 0
 *	without KBLK_FEATURE_HOST
 * @reserved: 0
 *
 * With LIST all members but @client are 0.
 */
struct kblk_attach {
	char client[KBLK_NAME_LEN];
	char subsystem[KBLK_NAME_LEN];
	__le32 namespace;
	__le32 keepalive_ms;
	__u8 host[16];
	__u8 reserved[8];
} __packed;

/*
 * struct kblk_fence - connections to the volume that the target is to end
 * @session: session of the connections, see struct kblk_hello
 * @epoch: last epoch of the connections
 * @reserved: 0
 *
 * The reply is KBLK_ERR_DRAINING until all requests of these connections have finished.
 */
struct kblk_fence {
	__le64 session;
	__le32 epoch;
	__le32 reserved;
} __packed;

#define KBLK_NONCE_LEN	32
#define KBLK_PROOF_LEN	32

/*
 * struct kblk_proof - follows a struct kblk_attach with KBLK_FEATURE_AUTH
 * @nonce: random number of the initiator
 * @proof: proof of the initiator, see auth.h; the reply brings the target's
 */
struct kblk_proof {
	__u8 nonce[KBLK_NONCE_LEN];
	__u8 proof[KBLK_PROOF_LEN];
} __packed;

/*
 * struct kblk_identify - description of the volume
 * @size: bytes, a multiple of @block_size
 * @block_size: bytes, a power of two from 512 to 4096
 * @physical_block_size: bytes, a power of two, not below @block_size
 * @flags: KBLK_VOLUME_ bits
 * @discard_granularity: bytes, 0 if DISCARD is not supported
 * @max_discard: longest DISCARD, bytes, 0 if not supported
 * @max_write_zeroes: longest WRITE_ZEROES, bytes, 0 if not supported
 * @instance: if the value has changed, writes that were replied to and not flushed may be lost
 * @uuid: UUID of the volume, as a uuid_t; 0 without KBLK_FEATURE_IDENTITY
 * @io_min: shortest transfer that suits the volume, as the chunk of a stripe, bytes, a
 *	multiple of @block_size; 0 without KBLK_FEATURE_HINTS
 * @io_opt: long transfers should be a multiple of this, as a stripe, bytes, a multiple of
 *	@block_size; 0: not known, or no KBLK_FEATURE_HINTS
 *
 * @io_min and @io_opt are KBLK_HINT_MAX at most.
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
	__u8 uuid[16];
	__le32 io_min;
	__le32 io_opt;
} __packed;

/* Limit of a hint: initiators read ahead as far as it says. */
#define KBLK_HINT_MAX		0x04000000

/*
 * struct kblk_listed - a volume that the client may attach to
 * @subsystem: name of the subsystem, NUL-terminated
 * @namespace: number of the volume in the subsystem
 * @flags: KBLK_VOLUME_READ_ONLY or 0
 * @size: bytes
 * @uuid: UUID of the volume, as a uuid_t
 * @reserved: 0
 */
struct kblk_listed {
	char subsystem[KBLK_NAME_LEN];
	__le32 namespace;
	__le32 flags;
	__le64 size;
	__u8 uuid[16];
	__u8 reserved[32];
} __packed;

#define KBLK_VOLUME_READ_ONLY	0x00000001
#define KBLK_VOLUME_CACHE	0x00000002	/* unflushed writes may be lost */
#define KBLK_VOLUME_ROTATIONAL	0x00000004
#define KBLK_VOLUME_FLAGS	0x00000007	/* all flags */

static_assert(sizeof(struct kblk_hello) == 32);
static_assert(sizeof(struct kblk_welcome) == 32);
static_assert(sizeof(struct kblk_request) == 64);
static_assert(offsetof(struct kblk_request, namespace) == 40);
static_assert(sizeof(struct kblk_reply) == 32);
static_assert(sizeof(struct kblk_attach) == 160);
static_assert(sizeof(struct kblk_fence) == 16);
static_assert(sizeof(struct kblk_proof) == 64);
static_assert(sizeof(struct kblk_identify) == 64);
static_assert(sizeof(struct kblk_listed) == 128);

#endif /* KDAPL_BLK_PROTO_H */
