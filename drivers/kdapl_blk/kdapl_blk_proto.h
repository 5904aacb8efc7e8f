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

/* ---- Connecting: private data -------------------------------------------- */

/*
 * struct kblk_hello - private data of the initiator's request to connect
 * @magic: KBLK_MAGIC
 * @version_min: oldest version it speaks
 * @version_max: newest version it speaks
 * @queue: which of its connections to this target; 0 for the first
 * @credits: requests it would like to have outstanding
 * @features: feature bits it would like to use; none is defined yet
 * @reserved: 0
 */
struct kblk_hello {
	__le32 magic;
	__le16 version_min;
	__le16 version_max;
	__le16 queue;
	__le16 credits;
	__le32 features;
	__u8 reserved[16];
} __packed;

/*
 * struct kblk_welcome - private data of the target's acceptance or rejection
 * @magic: KBLK_MAGIC
 * @version: the version spoken from here on; the target's newest in a rejection
 * @status: enum kblk_hello_status
 * @credits: requests that may be outstanding at first
 * @request_size: longest request message, bytes
 * @max_transfer: most data of one request, bytes
 * @features: those of the hello that are in use
 * @reserved: 0
 */
struct kblk_welcome {
	__le32 magic;
	__le16 version;
	__le16 status;
	__le16 credits;
	__le16 request_size;
	__le32 max_transfer;
	__le32 features;
	__u8 reserved[12];
} __packed;

enum kblk_hello_status {
	KBLK_HELLO_OK = 0,
	KBLK_HELLO_MALFORMED = 1,	/* no hello, or reserved bits set */
	KBLK_HELLO_VERSION = 2,		/* no version in common */
	KBLK_HELLO_BUSY = 3,		/* too many clients */
	KBLK_HELLO_RESOURCES = 4,	/* the target has no memory for it */
	KBLK_HELLO_STOPPING = 5		/* the target is being unloaded */
};

/* ---- Requests and replies: messages -------------------------------------- */

enum kblk_opcode {
	KBLK_OP_IDENTIFY = 1,		/* writes a struct kblk_identify */
	KBLK_OP_READ = 2,
	/* Reserved for a volume that can be written; now unsupported. */
	KBLK_OP_WRITE = 3,
	KBLK_OP_FLUSH = 4,
	KBLK_OP_DISCARD = 5,
	KBLK_OP_WRITE_ZEROES = 6
};

/*
 * struct kblk_request - a message from the initiator
 * @magic: KBLK_MAGIC
 * @opcode: enum kblk_opcode
 * @flags: 0
 * @reserved0: 0
 * @id: chosen by the initiator, comes back in the reply
 * @offset: on the volume, bytes, a multiple of the block size
 * @length: of the data, bytes, a multiple of the block size
 * @rmr_context: names the initiator's memory
 * @address: where in that memory the data goes
 * @reserved: 0
 *
 * The target writes the data by RDMA and then sends the reply.
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
 * @length: bytes of data written; 0 unless @status is KBLK_OK
 * @reserved: 0
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
	KBLK_ERR_IO = 1,		/* the volume could not be read */
	KBLK_ERR_UNSUPPORTED = 2,	/* opcode unknown, or not offered */
	KBLK_ERR_INVALID = 3,		/* length, alignment */
	KBLK_ERR_RANGE = 4		/* beyond the end of the volume */
};

/*
 * struct kblk_identify - what the volume is
 * @size: bytes, a multiple of @block_size
 * @block_size: bytes, a power of two from 512 to 4096
 * @flags: KBLK_VOLUME_ bits
 * @reserved: 0; limits of discard and write zeroes will go here
 */
struct kblk_identify {
	__le64 size;
	__le32 block_size;
	__le32 flags;
	__u8 reserved[48];
} __packed;

#define KBLK_VOLUME_READ_ONLY	0x00000001
#define KBLK_VOLUME_FLAGS	KBLK_VOLUME_READ_ONLY	/* all there are */

static_assert(sizeof(struct kblk_hello) == 32);
static_assert(sizeof(struct kblk_welcome) == 32);
static_assert(sizeof(struct kblk_request) == 64);
static_assert(sizeof(struct kblk_reply) == 32);
static_assert(sizeof(struct kblk_identify) == 64);

#endif /* KDAPL_BLK_PROTO_H */
