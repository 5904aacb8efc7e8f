/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Texts for the log, and error numbers, for statuses of the protocol and failures of keys and
 * files. No state, no locks.
 */
#ifndef KDAPL_BLK_STATUS_H
#define KDAPL_BLK_STATUS_H

#include <linux/errno.h>
#include <linux/types.h>
#include "kdapl_blk_proto.h"

/* Return why a target refuses a connection. */
static inline const char *kblk_hello_text(u16 status)
{
	switch (status) {
	case KBLK_HELLO_MALFORMED:
		return "what the initiator says first makes no sense";
	case KBLK_HELLO_VERSION:
		return "there is no version of the protocol that both speak";
	case KBLK_HELLO_BUSY:
		return "there are as many connections as max_conns or max_queues allow";
	case KBLK_HELLO_RESOURCES:
		return "there is no memory, or no credit, for another connection";
	case KBLK_HELLO_STOPPING:
		return "the port is being stopped";
	case KBLK_HELLO_DRAINING:
		return "former connections of the disk are still being ended";
	case KBLK_HELLO_STALE:
		return "the disk has later connections";
	case KBLK_HELLO_SHUNNED:
		return "a client of that host was cut off a moment ago";
	default:
		return "for a reason that is not known here";
	}
}

/* Convert @status, which is not KBLK_HELLO_OK, to an error number for the initiator. */
static inline int kblk_hello_errno(u16 status)
{
	switch (status) {
	case KBLK_HELLO_MALFORMED:
		return -EPROTO;
	case KBLK_HELLO_VERSION:
		return -EPROTONOSUPPORT;
	case KBLK_HELLO_BUSY:
		return -EUSERS;
	case KBLK_HELLO_RESOURCES:
		return -ENOBUFS;
	case KBLK_HELLO_STOPPING:
		return -ESHUTDOWN;
	case KBLK_HELLO_DRAINING:
		return -EAGAIN;
	case KBLK_HELLO_STALE:
		return -ESTALE;
	case KBLK_HELLO_SHUNNED:
		return -EPERM;
	default:
		return -ECONNREFUSED;
	}
}

/* Return why a target refuses a request that is about a volume as a whole. */
static inline const char *kblk_status_text(u16 status)
{
	switch (status) {
	case KBLK_ERR_UNSUPPORTED:
		return "the request is not known";
	case KBLK_ERR_INVALID:
		return "the request makes no sense";
	case KBLK_ERR_NO_VOLUME:
		return "there is no such volume, or it is disabled";
	case KBLK_ERR_DENIED:
		return "the client is not allowed there, or proves no secret";
	case KBLK_ERR_DRAINING:
		return "former connections are still being ended";
	case KBLK_ERR_STALE:
		return "the disk has later connections";
	case KBLK_ERR_PROOF:
		return "the client has another secret";
	case KBLK_ERR_BUSY:
		return "there is no credit, memory or further connection to spare";
	default:
		return "for a reason that is not known here";
	}
}

/* Return why a secret, or its key, gives no proof. */
static inline const char *kblk_secret_text(int err)
{
	switch (err) {
	case -EKEYREVOKED:
		return "the key was revoked";
	case -EKEYEXPIRED:
		return "the key has expired";
	case -ENOKEY:
		return "the key was made invalid";
	case -EINVAL:
		return "what the key holds is no secret, which has 16 to 64 bytes";
	default:
		return "the kernel's crypto has failed";
	}
}

/* Return why a file or device cannot be opened. */
static inline const char *kblk_open_text(int err)
{
	switch (err) {
	case -ENOENT:
		return "it is not there";
	case -EBUSY:
		return "somebody else uses it, perhaps it is mounted";
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return "it can only be read: set read_only";
	case -ENXIO:
	case -ENODEV:
		return "there is no such device";
	case -ENOMEDIUM:
		return "there is no medium in it";
	case -EINVAL:
		return "it is no block device and no file";
	case -ENOMEM:
		return "there is no memory";
	default:
		return "the device or the file system has failed";
	}
}

#endif /* KDAPL_BLK_STATUS_H */
