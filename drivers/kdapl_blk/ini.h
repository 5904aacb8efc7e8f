/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_blk.ko: what its files share.
 *
 *   ini_main.c       module
 *   ini_configfs.c   what the administrator sees
 *   ini_disk.c       the block layer's side
 *   ini_recover.c    a disk's connections: made, lost, made again
 *   ini_queue.c      one connection
 *   ini_slot.c       what a connection needs for each request
 *   ini_io.c         requests and replies
 *   ini_admin.c      requests of our own: attach, identify, keep-alive
 *
 * A disk has several queues, each an Endpoint of its own and a hardware queue of
 * the block layer; they know nothing of each other. A queue has a slot for each
 * request that may be outstanding, the block layer's tag being its number, and a
 * last one for requests of our own.
 *
 * Who finishes a slot is decided by KBI_SLOT_BUSY: the one who clears it.
 *
 * Locks, outermost first: disk->admin (connect and disconnect, by configfs),
 * disk->mutex (the connections are made or taken down).
 */
#ifndef KDAPL_BLK_INI_H
#define KDAPL_BLK_INI_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/completion.h>
#include <linux/configfs.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <dat/kdat.h>
#include "kdapl_blk_proto.h"
#include "util.h"

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
	KBI_STATS
};

enum { KBI_SLOT_BUSY };

#define KBI_REPLY_AT	KBLK_MESSAGE

/*
 * struct kbi_slot - a request that may be outstanding
 * @flags: KBI_SLOT_BUSY
 * @rq: request of the block layer, NULL for one of our own
 * @id: what was sent as id: round in the upper half, number of the slot below
 * @pending: what must happen before it is finished: the reply comes, and if that
 *	has not taken the memory back an invalidation completes
 * @replied: the reply has come
 * @bound: @lmr is registered, as @rmr_context
 * @inlined: bytes that may come with the reply
 * @status: enum kblk_status of the reply
 * @mem: a message to send, if its request is the first of one, and from KBI_REPLY_AT on a
 *	message that was received, not necessarily for this request
 * @sg: data that is not sent with the request
 * @into: where inline data of a request of our own goes
 */
struct kbi_slot {
	unsigned long flags;
	struct request *rq;
	u64 id;
	atomic_t pending;
	bool replied;
	bool bound;
	u32 inlined;
	u16 status;
	struct kblk_buf mem;
	struct scatterlist *sg;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	void *into;
};

enum kbi_queue_state {
	KBI_QUEUE_CONNECTING,
	KBI_QUEUE_LIVE,
	KBI_QUEUE_DEAD
};

/*
 * struct kbi_queue - a connection to the target
 * @index: its number
 * @recv_evd: replies
 * @req_evd: what else is posted to @ep; see kbi_queue_objects()
 * @conn_evd: events of the connection
 * @ep: NULL if there is none
 * @started: connecting was begun, so an event will say that it has ended
 * @state: enum kbi_queue_state; only goes forward
 * @connected: completed when @state leaves KBI_QUEUE_CONNECTING
 * @gone: completed by the last event of the connection
 * @admin: completed by the reply to a request of our own, or the loss of the
 *	connection
 * @welcome: what the target has said
 * @invalidate: replies take memory back
 * @batch: a message may bring several replies
 * @requests_batch: and several requests
 * @message_max: longest message, bytes
 * @lock: guards @first, @gathered and @length
 * @first: slot of the first request of the message being put together, or NULL
 * @gathered: how many it has
 * @length: bytes of it
 * @credits: requests that may still be sent
 * @used: something was sent since the last keep-alive
 * @nslots: slots
 */
struct kbi_queue {
	struct kbi_disk *disk;
	unsigned int index;
	DAT_EVD_HANDLE recv_evd;
	DAT_EVD_HANDLE req_evd;
	DAT_EVD_HANDLE conn_evd;
	DAT_EP_HANDLE ep;
	bool started;
	atomic_t state;
	struct completion connected;
	struct completion gone;
	struct completion admin;
	struct kblk_welcome welcome;
	bool invalidate;
	bool batch;
	bool requests_batch;
	u32 message_max;
	spinlock_t lock;		/* see above */
	struct kbi_slot *first;
	unsigned int gathered;
	u32 length;
	atomic_t credits;
	bool used;
	unsigned int nslots;
	struct kbi_slot *slots;
};

/* What the administrator has set; constant while connected. */
struct kbi_params {
	char ia[DAT_NAME_MAX_LENGTH];
	char address[64];
	char subsystem[KBLK_NAME_LEN];
	char client[KBLK_NAME_LEN];
	u32 conn_qual;
	u32 namespace;
	u32 queues;
	u32 read_queues;
	u32 depth;
	u32 timeout_ms;
	u32 connect_timeout_ms;
	u32 keepalive_ms;
	u32 reconnect_ms;
	u32 reconnect_max_ms;
	u32 give_up_ms;
};

enum kbi_state {
	KBI_IDLE,		/* there is no disk */
	KBI_CONNECTING,		/* for the first time */
	KBI_LIVE,
	KBI_RECOVERING,		/* connections lost, requests wait */
	KBI_FAILED,		/* connections lost for too long, requests fail */
	KBI_REMOVING
};

/*
 * struct kbi_disk - a disk
 * @state: enum kbi_state
 * @admin: see above, as @mutex
 * @removing: do not connect any more
 * @quiesced: the block layer does not hand us requests
 * @session: see struct kblk_hello, as @epoch
 * @target: address
 * @ia: the adapter; @async_evd and @pz belong to it
 * @sync: the device does not see memory as the CPU does, see dat_lmr_sync_*()
 * @nqueues: queues in use
 * @gendisk: NULL unless there is a disk
 * @shown: it was added
 * @identify: what the volume is
 * @max_transfer: bytes
 * @written: writes that were replied to, of a volume with a cache
 * @flushed: so many of them are on the medium
 * @lost_writes: some may be lost, see kbi_check_volume()
 * @lost_at: jiffies
 * @attempts: since then
 * @err_work: takes the connections down
 * @reconnect_work: makes them again
 */
struct kbi_disk {
	struct config_item item;
	struct kbi_params params;
	atomic_t state;
	struct mutex admin;		/* see above */
	struct mutex mutex;		/* see above */
	bool removing;
	bool quiesced;
	u64 session;
	u32 epoch;
	struct sockaddr_storage target;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	bool sync;
	struct kbi_queue *queues;
	unsigned int nqueues;
	struct blk_mq_tag_set set;
	struct gendisk *gendisk;
	bool shown;
	int index;
	struct kblk_identify identify;
	u32 max_transfer;
	atomic64_t written;
	atomic64_t flushed;
	bool lost_writes;
	unsigned long lost_at;
	unsigned int attempts;
	struct work_struct err_work;
	struct delayed_work reconnect_work;
	struct delayed_work keepalive_work;
	atomic64_t stats[KBI_STATS];
};

/*
 * struct kbi_pdu - our part of a request of the block layer
 * @status: how it ended
 * @lost: its connection was lost before the reply came
 * @tries: how often that has happened to it
 * @since: when it was first sent, jiffies
 * @written: of a FLUSH: disk->written when it was sent
 */
struct kbi_pdu {
	blk_status_t status;
	bool lost;
	u32 tries;
	unsigned long since;
	s64 written;
};

extern struct workqueue_struct *kbi_wq;

static inline void kbi_count(struct kbi_disk *disk, enum kbi_stat stat, u64 n)
{
	atomic64_add(n, &disk->stats[stat]);
}

static inline bool kbi_queue_live(struct kbi_queue *queue)
{
	return atomic_read(&queue->state) == KBI_QUEUE_LIVE;
}

static inline enum kbi_state kbi_state(struct kbi_disk *disk)
{
	/* Who sees KBI_LIVE sees the queues. */
	return atomic_read_acquire(&disk->state);
}

/* ini_configfs.c */
int kbi_configfs_register(void);
void kbi_configfs_unregister(void);

/* ini_disk.c */
int kbi_disk_add(struct kbi_disk *disk);
int kbi_disk_show(struct kbi_disk *disk);
void kbi_disk_del(struct kbi_disk *disk);
void kbi_disk_quiesce(struct kbi_disk *disk);
void kbi_disk_unquiesce(struct kbi_disk *disk);
void kbi_disk_cancel(struct kbi_disk *disk);
void kbi_disk_complete(struct request *rq);
unsigned int kbi_disk_queues(struct kbi_disk *disk);
void kbi_disk_resize(struct kbi_disk *disk);

/* ini_recover.c */
int kbi_connect(struct kbi_disk *disk);
void kbi_disconnect(struct kbi_disk *disk);
void kbi_disk_error(struct kbi_disk *disk, const char *why);
void kbi_err_work(struct work_struct *work);
void kbi_reconnect_work(struct work_struct *work);

/* ini_queue.c */
int kbi_queue_start(struct kbi_queue *queue);
void kbi_queue_stop(struct kbi_queue *queue);
void kbi_queue_lost(struct kbi_queue *queue, const char *why);

/* ini_slot.c */
int kbi_slots_alloc(struct kbi_queue *queue);
int kbi_slots_alloc_data(struct kbi_queue *queue);
void kbi_slots_free(struct kbi_queue *queue);
DAT_RETURN kbi_reply_post(struct kbi_queue *queue, unsigned int n);

/* ini_io.c */
bool kbi_io_credit(struct kbi_queue *queue);
void kbi_io_send(struct kbi_queue *queue, struct kbi_slot *slot,
		 struct kblk_request *request, const void *data, u32 inlined,
		 bool last);
void kbi_io_commit(struct kbi_queue *queue);
blk_status_t kbi_io_queue(struct kbi_queue *queue, struct request *rq,
			  bool last);
void kbi_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void kbi_req_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

/* ini_admin.c */
int kbi_attach(struct kbi_queue *queue);
int kbi_identify(struct kbi_queue *queue, struct kblk_identify *identify);
void kbi_keepalive_work(struct work_struct *work);

#endif /* KDAPL_BLK_INI_H */
