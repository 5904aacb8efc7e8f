/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Volumes, to which disks are paths. ini_volume.c explains the locks. */
#ifndef KDAPL_BLK_INI_VOLUME_H
#define KDAPL_BLK_INI_VOLUME_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/uuid.h>
#include <linux/workqueue.h>

struct completion;
struct kbi_disk;

/*
 * struct kbi_lost - a session that may have requests at the target
 * @link: in volume->lost, or empty
 * @disk: disk of the session, or NULL if it was removed
 * @session: see struct kblk_hello
 * @epoch: last epoch that may have sent requests
 * @round: unique number of the loss
 * @writes: the session has writes that may be under way
 * @target: adapter and address of the target
 * @told: completed when a target has answered whether it knew the session; NULL for a session
 *	that was lost, see kbi_vouch()
 * @known: the target knew the session
 */
struct kbi_lost {
	struct list_head link;
	struct kbi_disk *disk;
	u64 session;
	u32 epoch;
	u64 round;
	bool writes;
	char *target;
	struct completion *told;
	bool known;
};

enum kbi_fence {
	KBI_FENCE_NONE,		/* connected, or requests wait */
	KBI_FENCE_WANTED,	/* the session is in volume->lost */
	KBI_FENCE_DONE		/* a target has ended the session */
};

/*
 * struct kbi_volume - a volume, to which disks are paths; see ini_volume.c
 * @link: in kbi_volumes, or empty without a UUID
 * @disks: disks that are paths to the volume
 * @lost: sessions that are to be fenced
 * @uuid: UUID of the volume, or nil
 * @instance: last instance that the target has told
 * @written: writes that were replied to, if the volume has a cache
 * @flushed: how many of @written are on the medium
 * @lost_writes: writes may be lost, so flushes fail
 * @asking: calls of kbi_vouch() under way, which keep the volume
 * @pins: the volume holds a module reference, as @lost has writes and there are no disks
 */
struct kbi_volume {
	struct list_head link;
	struct list_head disks;
	struct list_head lost;
	uuid_t uuid;
	__le64 instance;
	atomic64_t written;
	atomic64_t flushed;
	bool lost_writes;
	unsigned int asking;
	bool pins;
};

extern struct mutex kbi_volumes_lock;
extern u64 kbi_round;

/* ini_vouch.c */
bool kbi_is_trusted(struct kbi_disk *disk, struct kbi_volume *volume, const char *target);
int kbi_vouch(struct kbi_disk *disk, struct kbi_volume *volume);
void kbi_vouched(struct kbi_disk *disk, const struct kbi_lost *was, bool known);

/* ini_volume.c */
int kbi_volume_join(struct kbi_disk *disk, const uuid_t *uuid);
void kbi_volume_put(struct kbi_volume *volume);
void kbi_volume_leave(struct kbi_disk *disk);
void kbi_volumes_free(void);
void kbi_volumes_forget(void);
void kbi_fence_work(struct work_struct *work);
int kbi_volume_enter(struct kbi_disk *disk);
void kbi_volume_down(struct kbi_disk *disk);
bool kbi_volume_may_fail(struct kbi_disk *disk);
void kbi_volume_instance(struct kbi_disk *disk, __le64 instance);
void kbi_volume_flushed(struct kbi_volume *volume, s64 written);

#endif /* KDAPL_BLK_INI_VOLUME_H */
