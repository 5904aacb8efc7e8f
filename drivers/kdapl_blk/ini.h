/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Internal interface of kdapl_blk.ko: structures, locks, and the functions that
 * its files export to each other.
 *
 *   ini_main.c       module
 *   ini_configfs.c   configfs
 *   ini_disk.c       the block layer's side
 *   ini_recover.c    connections of a disk: made, lost, made again
 *   ini_volume.c     disks that are paths to one volume
 *   ini_queues.c     which of them are used, and by whom
 *   ini_queue.c      one connection
 *   ini_slot.c       slots: memory and registrations
 *   ini_io.c         requests and replies
 *   ini_admin.c      admin requests: attach, identify, fence, keep-alive
 *
 * A disk has several queues, each an Endpoint; queues share no state. Each
 * hardware queue of the block layer has a route to the queue of its number, or,
 * while there are fewer queues, to one that others use as well. A queue has a
 * slot for each request that may be outstanding; the first is for admin
 * requests. Slots get their memory when they are needed.
 *
 * KBI_SLOT_BUSY decides who finishes a slot: whoever clears the bit.
 *
 * Locks, outermost first:
 *
 *   disk->admin   mutex     connect and disconnect, parameters
 *   disk->mutex   mutex     connections are made or taken down; kbi_disk_lock()
 *   kbi_volumes_lock  mutex volumes, and which sessions are to be fenced
 *   queue->lock   spinlock  the message being put together
 */
#ifndef KDAPL_BLK_INI_H
#define KDAPL_BLK_INI_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/completion.h>
#include <linux/configfs.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <dat/kdat.h>
#include "secret.h"
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
	KBI_STAT_FENCES,
	KBI_STATS
};

/*
 * How long the removal of a disk's directory waits for the disk to end, which
 * may take for ever; meanwhile no other directory can be made or removed.
 */
#define KBI_END_WAIT	(2 * HZ)

enum { KBI_SLOT_BUSY };

#define KBI_REPLY_AT	KBLK_MESSAGE

/*
 * struct kbi_slot - a request that may be outstanding
 * @flags: KBI_SLOT_BUSY
 * @rq: request of the block layer, NULL for an admin request
 * @id: id of the request: round in the upper half, number of the slot in the
 *	lower
 * @pending: events that must happen before the slot is finished: the reply, and
 *	a local invalidation unless the reply has invalidated the memory
 * @replied: the reply has arrived
 * @bound: @lmr is bound, with key @rmr_context
 * @inlined: bytes of data that the reply may bring
 * @status: enum kblk_status of the reply
 * @mem: a message to send, if its first request is this one, and from
 *	KBI_REPLY_AT on a receive buffer, whose message may be for other
 *	requests
 * @sg: pages of data that is not inline
 * @lmr: LMR to bind to @sg
 * @lmr_context: local key of @lmr
 * @rmr_context: remote key of @lmr
 * @into: where inline data of the reply to an admin request goes
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
 * @index: number of the queue
 * @in_use: routes lead here, so that its loss is that of the disk
 * @recv_evd: replies
 * @req_evd: completions of posts to @ep; see kbi_queue_objects()
 * @conn_evd: connection events
 * @ep: Endpoint, or NULL
 * @started: dat_ep_connect() succeeded, so a last event will come
 * @state: enum kbi_queue_state; only goes forward
 * @connected: completed when @state leaves KBI_QUEUE_CONNECTING
 * @gone: completed by the last connection event
 * @admin: completed by the reply to an admin request, or by the loss of the
 *	connection
 * @features: features asked for
 * @welcome: private data of the target
 * @invalidate: replies invalidate exposed memory
 * @batch: several replies may share a message
 * @requests_batch: several requests may share a message
 * @identity: the target tells the volume's UUID
 * @nounmap: the target understands KBLK_NOUNMAP
 * @sizes: replies include the volume's size
 * @message_max: longest message to send, bytes
 * @lock: guards @first, @gathered and @length
 * @first: slot of the first request of the message being put together, or NULL
 * @gathered: number of requests in that message
 * @length: bytes of that message
 * @credits_move: requests may ask for credits, and keep-alives return them
 * @hosts: ATTACH tells our host, and there is FENCE
 * @wants: a request had to wait for a credit since the last one was sent
 * @credits: requests that may be sent
 * @window: credits that the target has granted, with those of requests
 *	outstanding
 * @used: a message was sent since the last keep-alive
 * @asked: when the last admin request was sent, jiffies
 * @starved: at the last keep-alive there was no credit, and no request outstanding
 * @nslots: number of @slots
 * @ready: number of slots that have memory and registrations
 * @taken: a bit for each slot that has a request
 */
struct kbi_queue {
	struct kbi_disk *disk;
	unsigned int index;
	bool in_use;
	DAT_EVD_HANDLE recv_evd;
	DAT_EVD_HANDLE req_evd;
	DAT_EVD_HANDLE conn_evd;
	DAT_EP_HANDLE ep;
	bool started;
	atomic_t state;
	struct completion connected;
	struct completion gone;
	struct completion admin;
	u32 features;
	struct kblk_welcome welcome;
	bool invalidate;
	bool batch;
	bool requests_batch;
	bool identity;
	bool nounmap;
	bool sizes;
	bool credits_move;
	bool hosts;
	bool wants;
	u32 message_max;
	spinlock_t lock;		/* see above */
	struct kbi_slot *first;
	unsigned int gathered;
	u32 length;
	atomic_t credits;
	atomic_t window;
	bool used;
	unsigned long asked;
	bool starved;
	unsigned int nslots;
	unsigned int ready;
	unsigned long *taken;
	struct kbi_slot *slots;
};

/*
 * Parameters of a disk; constant while it is connected. A nil @uuid accepts any
 * volume; without a @secret there is no authentication.
 */
struct kbi_params {
	char ia[DAT_NAME_MAX_LENGTH];
	char address[64];
	char subsystem[KBLK_NAME_LEN];
	char client[KBLK_NAME_LEN];
	uuid_t uuid;
	struct kblk_secret secret;
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

/*
 * struct kbi_lost - a session that may have requests at the target
 * @link: in volume->lost, or empty
 * @disk: disk of the session, or NULL if it was removed
 * @session: see struct kblk_hello
 * @epoch: last epoch that may have sent requests
 */
struct kbi_lost {
	struct list_head link;
	struct kbi_disk *disk;
	u64 session;
	u32 epoch;
};

enum kbi_fence {
	KBI_FENCE_NONE,		/* connected, or requests wait */
	KBI_FENCE_WANTED,	/* the session is in volume->lost */
	KBI_FENCE_DONE		/* the target has ended it */
};

/*
 * struct kbi_volume - a volume, to which disks are paths; see ini_volume.c
 * @link: in kbi_volumes, or empty without a UUID
 * @disks: its disks
 * @lost: sessions that are to be fenced
 * @uuid: its UUID, or nil
 * @instance: last instance that the target has told
 * @written: writes that were replied to, if it has a cache
 * @flushed: how many of @written are on the medium
 * @lost_writes: writes may be lost, so flushes fail
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
};

enum kbi_state {
	KBI_IDLE,		/* there is no disk */
	KBI_CONNECTING,		/* connecting for the first time */
	KBI_LIVE,
	KBI_RECOVERING,		/* connections lost, requests wait */
	KBI_FAILED,		/* connections lost for too long, requests fail */
	KBI_REMOVING
};

/*
 * struct kbi_disk - a disk
 * @params: see struct kbi_params; @admin
 * @state: enum kbi_state
 * @admin: serialises connect, disconnect and changes of @params
 * @mutex: guards the connections, @gendisk, @shown, @quiesced and @identify;
 *	@routes change while the block layer is quiesced
 * @removing: connect no more
 * @quiesced: the block layer queues no requests
 * @session: see struct kblk_hello, as @epoch
 * @target: address of the target
 * @ia: the adapter
 * @async_evd: created with @ia
 * @pz: protection zone on @ia
 * @sync: DMA is not coherent, see dat_lmr_sync_*()
 * @queues: the connections
 * @nqueues: number of @queues, and of hardware queues of the block layer
 * @nread: how many of these are for reads only
 * @nlive: connections in use, the first of @queues
 * @memory: of the slots of all queues, bytes
 * @routes: the queue that each hardware queue uses
 * @adding: queue that is being connected while the disk is live
 * @gendisk: NULL unless there is a disk
 * @shown: @gendisk was added to the system
 * @index: number in the name of @gendisk
 * @identify: description of the volume
 * @max_transfer: most data of a request, bytes
 * @volume: the volume, as long as there are connections or @gendisk
 * @volume_link: in volume->disks
 * @lost: for volume->lost
 * @fence: enum kbi_fence, for the session of the connections that were lost
 * @fence_ms: time until fencing is tried again
 * @is_path: connected, and has fenced what others have lost
 * @hosts: as in struct kbi_queue, when the disk connected last
 * @told_size: last size of the volume told by a reply
 * @lost_at: when the connections were lost, jiffies
 * @attempts: attempts to reconnect since @lost_at
 * @kept_alive: when keep-alives were due last, jiffies; @mutex
 * @err_work: takes the connections down
 * @fail_work: lets requests fail that waited for a fence
 * @fence_work: fences sessions that other paths have lost
 * @resize_work: adopts @told_size
 * @reconnect_work: makes the first connection again
 * @more_work: makes the others, and gives slots memory
 * @keepalive_work: sends keep-alives
 * @end_work: disconnects
 * @ends: how often @end_work has ended
 * @ended: woken when @ends has changed
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
	unsigned int nread;
	unsigned int nlive;
	size_t memory;
	struct kbi_queue **routes;
	struct kbi_queue *adding;
	struct blk_mq_tag_set set;
	struct gendisk *gendisk;
	bool shown;
	int index;
	struct kblk_identify identify;
	u32 max_transfer;
	struct kbi_volume *volume;
	struct list_head volume_link;
	struct kbi_lost *lost;
	enum kbi_fence fence;
	u32 fence_ms;
	bool is_path;
	bool hosts;
	__le64 told_size;
	unsigned long lost_at;
	unsigned int attempts;
	unsigned long kept_alive;
	struct work_struct err_work;
	struct work_struct fail_work;
	struct delayed_work fence_work;
	struct work_struct resize_work;
	struct delayed_work reconnect_work;
	struct delayed_work more_work;
	struct delayed_work keepalive_work;
	struct work_struct end_work;
	atomic_t ends;
	wait_queue_head_t ended;
	atomic64_t stats[KBI_STATS];
};

/*
 * struct kbi_pdu - the driver's part of a request of the block layer
 * @queue: the queue that it was sent on
 * @status: status to complete the request with
 * @lost: the connection was lost before the reply arrived
 * @tries: how often that has happened
 * @since: when the request was first queued, jiffies
 * @written: for a FLUSH, volume->written when it was sent
 */
struct kbi_pdu {
	struct kbi_queue *queue;
	blk_status_t status;
	bool lost;
	u32 tries;
	unsigned long since;
	s64 written;
};

extern struct kblk_hmac kbi_hmac;
extern struct workqueue_struct *kbi_wq;
extern struct workqueue_struct *kbi_end_wq;
extern uuid_t kbi_host;

/*
 * Take disk->mutex, to allocate memory while it is held, too. Return what
 * kbi_disk_unlock() needs. NOIO: reclaim could wait for a write to this very disk, which
 * cannot recover without the mutex, or to another path of its volume, whose requests
 * fail only when this one has fenced them.
 */
static inline unsigned int kbi_disk_lock(struct kbi_disk *disk)
{
	mutex_lock(&disk->mutex);
	return memalloc_noio_save();
}

static inline void kbi_disk_unlock(struct kbi_disk *disk, unsigned int flags)
{
	memalloc_noio_restore(flags);
	mutex_unlock(&disk->mutex);
}

static inline void kbi_count(struct kbi_disk *disk, enum kbi_stat stat, u64 n)
{
	atomic64_add(n, &disk->stats[stat]);
}

/* Return whether what kbi_disk_end() started, returning @before, is done. */
static inline bool kbi_disk_has_ended(struct kbi_disk *disk, int before)
{
	return atomic_read(&disk->ends) != before;
}

static inline bool kbi_queue_live(struct kbi_queue *queue)
{
	return atomic_read(&queue->state) == KBI_QUEUE_LIVE;
}

static inline enum kbi_state kbi_state(struct kbi_disk *disk)
{
	/*
	 * Pairs with atomic_xchg() in kbi_go_live(): KBI_LIVE implies that the
	 * queues are visible.
	 */
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
bool kbi_disk_waits(struct kbi_queue *queue);
void kbi_disk_complete(struct request *rq);
void kbi_disk_queues(struct kbi_disk *disk, unsigned int max);
void kbi_disk_resize(struct kbi_disk *disk);
void kbi_resize_work(struct work_struct *work);

/* ini_queues.c */
void kbi_queues_use(struct kbi_disk *disk, unsigned int n);
int kbi_queues_add(struct kbi_disk *disk);
void kbi_more_work(struct work_struct *work);

/* ini_recover.c */
int kbi_bring_up_queue(struct kbi_disk *disk, struct kbi_queue *queue);
int kbi_connect(struct kbi_disk *disk);
int kbi_disk_end(struct kbi_disk *disk);
void kbi_end_work(struct work_struct *work);
void kbi_disk_error(struct kbi_disk *disk, const char *why);
void kbi_err_work(struct work_struct *work);
void kbi_fail_work(struct work_struct *work);
void kbi_reconnect_work(struct work_struct *work);

/* ini_volume.c */
int kbi_volume_join(struct kbi_disk *disk, const uuid_t *uuid);
void kbi_volume_leave(struct kbi_disk *disk);
void kbi_volumes_free(void);
void kbi_fence_work(struct work_struct *work);
int kbi_volume_enter(struct kbi_disk *disk);
void kbi_volume_down(struct kbi_disk *disk);
bool kbi_volume_may_fail(struct kbi_disk *disk);
void kbi_volume_instance(struct kbi_disk *disk, __le64 instance);
void kbi_volume_flushed(struct kbi_volume *volume, s64 written);

/* ini_queue.c */
unsigned int kbi_queues_allowed(struct kbi_disk *disk);
int kbi_queue_start(struct kbi_queue *queue);
void kbi_queue_stop(struct kbi_queue *queue);
void kbi_queue_lost(struct kbi_queue *queue, const char *why);

/* ini_slot.c */
int kbi_slots_alloc(struct kbi_queue *queue);
int kbi_slots_alloc_data(struct kbi_queue *queue);
bool kbi_slots_wanted(struct kbi_queue *queue);
int kbi_slots_grow(struct kbi_queue *queue);
int kbi_credits_kept(struct kbi_queue *queue);
bool kbi_credit_get(struct kbi_queue *queue, int keep);
struct kbi_slot *kbi_slot_get(struct kbi_queue *queue);
void kbi_slots_release(struct kbi_queue *queue);
void kbi_slots_free(struct kbi_queue *queue);
DAT_RETURN kbi_reply_post(struct kbi_queue *queue, unsigned int n);

/* ini_io.c */
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
int kbi_fence(struct kbi_queue *queue, const struct kbi_lost *lost);
unsigned long kbi_wait(struct kbi_queue *queue, struct completion *done,
		       unsigned long timeout);
void kbi_keepalive_work(struct work_struct *work);

#endif /* KDAPL_BLK_INI_H */
