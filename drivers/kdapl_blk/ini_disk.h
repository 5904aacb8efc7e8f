/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The block layer's side of a disk: see ini_disk.c.
 */
#ifndef KDAPL_BLK_INI_DISK_H
#define KDAPL_BLK_INI_DISK_H

#include <linux/blk_types.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct kbi_disk;
struct request;

enum kbi_stat {
	KBI_STAT_REQUESTS,
	KBI_STAT_MESSAGES,
	KBI_STAT_REPLIES,
	KBI_STAT_READ_BYTES,
	KBI_STAT_WRITE_BYTES,
	KBI_STAT_INLINE,
	KBI_STAT_ERRORS,
	KBI_STAT_TIMEOUTS,
	KBI_STAT_NO_CREDIT,
	KBI_STAT_INVALIDATED,
	KBI_STAT_LOST,
	KBI_STAT_REPLAYED,
	KBI_STAT_ATTEMPTS,
	KBI_STAT_FENCES,
	KBI_STAT_DETACHED,
	KBI_STATS
};

/*
 * struct kbi_pdu - the driver's part of a request of the block layer
 * @status: status to complete the request with
 * @lost: the connection was lost before the reply arrived
 * @held: the adapter may still have the pages, as long as link->stuck; link->mutex
 * @detached: how often the target has answered that the volume is not attached
 * @tries: how often the request was lost, or not executed because the volume was detached
 * @since: when the request was first queued, jiffies
 * @written: for a FLUSH, volume->written when the FLUSH was sent
 */
struct kbi_pdu {
	blk_status_t status;
	bool lost;
	bool held;
	u16 detached;
	u32 tries;
	unsigned long since;
	s64 written;
};

int kbi_disk_add(struct kbi_disk *disk);
int kbi_disk_show(struct kbi_disk *disk);
bool kbi_disk_is_claimed(struct kbi_disk *disk);
void kbi_disk_del(struct kbi_disk *disk);
bool kbi_disk_quiesce(struct kbi_disk *disk);
void kbi_disk_wait_quiesced(struct kbi_disk *disk);
void kbi_disk_unquiesce(struct kbi_disk *disk);
void kbi_disk_hold(struct request *rq);
void kbi_disk_cancel(struct kbi_disk *disk);
void kbi_disk_wait_cancelled(struct kbi_disk *disk);
void kbi_disk_account(struct kbi_disk *disk, struct request *rq);
void kbi_disk_complete(struct request *rq);
void kbi_resize_later(struct kbi_disk *disk);
void kbi_resize_work(struct work_struct *work);

#endif /* KDAPL_BLK_INI_DISK_H */
