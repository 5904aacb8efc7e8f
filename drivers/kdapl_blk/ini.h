/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_blk.ko: what its files share.
 *
 *   ini_main.c    parameters, the disk's life, statistics
 *   ini_queue.c   a connection: making it, losing it
 *   ini_io.c      a connection: requests and replies
 *   ini_disk.c    the block layer's side
 *
 * A disk has one queue now; nothing in a queue knows of others, so that it can
 * have more. A queue has one slot for each request that may be outstanding, and
 * the block layer's tag is the number of the slot.
 *
 * Who completes a request is decided by KBI_SLOT_BUSY: the one who clears it.
 */
#ifndef KDAPL_BLK_INI_H
#define KDAPL_BLK_INI_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/completion.h>
#include <linux/workqueue.h>
#include <dat/kdat.h>
#include "kdapl_blk_proto.h"
#include "util.h"

enum kbi_stat {
	KBI_STAT_REQUESTS,
	KBI_STAT_REPLIES,
	KBI_STAT_READ_BYTES,
	KBI_STAT_ERRORS,
	KBI_STAT_TIMEOUTS,
	KBI_STAT_NO_CREDIT,
	KBI_STATS
};

enum { KBI_SLOT_BUSY };

/*
 * struct kbi_slot - a request that may be outstanding
 * @flags: KBI_SLOT_BUSY
 * @rq: request of the block layer, NULL for one of our own
 * @id: what was sent as id: round in the upper half, number of the slot below
 * @pending: 2 when posted; the Send's completion and the reply take one each
 * @replied: the reply has come
 * @status: block layer's status of what the reply said
 * @length: bytes of data asked for
 * @data: where the target writes, max_transfer bytes
 * @done: for a request of our own
 */
struct kbi_slot {
	unsigned long flags;
	struct request *rq;
	u64 id;
	atomic_t pending;
	bool replied;
	blk_status_t status;
	u32 length;
	struct kblk_buf data;
	struct completion *done;
};

enum kbi_state {
	KBI_CONNECTING,
	KBI_LIVE,
	KBI_DEAD
};

/*
 * struct kbi_queue - a connection to the target
 * @disk: whose it is
 * @dto_evd: completions of everything posted to @ep
 * @conn_evd: events of the connection
 * @ep: NULL once the connection was taken down
 * @state: enum kbi_state; only goes forward
 * @connected: completed when @state leaves KBI_CONNECTING
 * @down_work: takes the connection down; queued by whoever set KBI_DEAD
 * @welcome: what the target has said
 * @credits: requests that may still be sent
 * @depth: slots; requests and replies have as many entries
 */
struct kbi_queue {
	struct kbi_disk *disk;
	DAT_EVD_HANDLE dto_evd;
	DAT_EVD_HANDLE conn_evd;
	DAT_EP_HANDLE ep;
	atomic_t state;
	struct completion connected;
	struct work_struct down_work;
	struct kblk_welcome welcome;
	atomic_t credits;
	unsigned int depth;
	struct kbi_slot *slots;
	struct kblk_buf requests;
	struct kblk_buf replies;
};

/*
 * struct kbi_disk - the disk
 * @ia: the adapter; @async_evd and @pz belong to it
 * @sync: the device does not see memory as the CPU does, see dat_lmr_sync_*()
 * @queue: its only connection
 * @set: tags
 * @gendisk: NULL until the target has said how large it is
 * @max_transfer: bytes
 * @size: bytes
 * @block_size: bytes
 */
struct kbi_disk {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	bool sync;
	struct kbi_queue queue;
	struct blk_mq_tag_set set;
	struct gendisk *gendisk;
	u32 max_transfer;
	u64 size;
	u32 block_size;
	atomic64_t stats[KBI_STATS];
};

/* Parameters of the module; constant once it runs. */
extern unsigned int kbi_depth;
extern unsigned int kbi_timeout;
extern struct workqueue_struct *kbi_wq;

static inline void kbi_count(struct kbi_disk *disk, enum kbi_stat stat, u64 n)
{
	atomic64_add(n, &disk->stats[stat]);
}

static inline bool kbi_queue_live(struct kbi_queue *queue)
{
	return atomic_read(&queue->state) == KBI_LIVE;
}

/* ini_queue.c */
int kbi_queue_start(struct kbi_queue *queue, struct kbi_disk *disk,
		    struct sockaddr *addr, u16 port);
void kbi_queue_stop(struct kbi_queue *queue);
void kbi_queue_down(struct kbi_queue *queue, const char *why);

/* ini_io.c */
int kbi_io_alloc(struct kbi_queue *queue);
int kbi_io_alloc_data(struct kbi_queue *queue);
void kbi_io_free(struct kbi_queue *queue);
blk_status_t kbi_io_send(struct kbi_queue *queue, struct kbi_slot *slot,
			 enum kblk_opcode opcode, u64 offset, u32 length);
void kbi_io_fail_all(struct kbi_queue *queue);
int kbi_io_identify(struct kbi_queue *queue);
void kbi_dto_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

/* ini_disk.c */
int kbi_disk_add(struct kbi_disk *disk);
void kbi_disk_remove(struct kbi_disk *disk);

#endif /* KDAPL_BLK_INI_H */
