/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Internal interface of kdapl_blk.ko: structures, locks, and functions that files share.
 *
 *   ini_main.c       module
 *   ini_configfs.c   configfs
 *   ini_disk.c       the block layer's side
 *   ini_recover.c    a disk: attached to its volume, lost, attached again
 *   ini_retry.c      when disks and connections are tried again
 *   ini_volume.c     volumes, and the disks that are paths to them
 *   ini_vouch.c      which targets may claim a volume
 *   ini_links.c      which disks share a link
 *   ini_link.c       the connections of a link: made, lost, made again
 *   ini_adapter.c    the adapter of a link, and drivers that do not end a connection
 *   ini_queues.c     which queues are in use, and the routes of disks to them
 *   ini_queue.c      one connection
 *   ini_slot.c       slots: memory and registrations
 *   ini_io.c         requests and replies
 *   ini_admin.c      admin requests: attach, identify, fence, list
 *   ini_keepalive.c  keep-alives, and waiting beside them
 *   ini_discover.c   asks a target for its volumes
 *
 * A disk is on a link, which has several queues, each an Endpoint; queues share no state. Each
 * hardware queue of the block layer has a route to the queue of its number or, while there are
 * fewer queues, shares a queue with other hardware queues. A queue has a slot for each request
 * that may be outstanding; the first slot is for admin requests. Slots get memory when they
 * are needed. Disks of one subsystem may share a link; each has its own requests, credits and
 * recovery there.
 *
 * KBI_SLOT_BUSY decides who finishes a slot: the function that clears the bit.
 *
 * Locks, outermost first:
 *
 *   disk->admin       mutex     connect and disconnect, parameters
 *   link->mutex       mutex     making and ending connections, attaching disks;
 *                               kbi_link_lock()
 *   kbi_volumes_lock  mutex     volumes, and the sessions to be fenced
 *   kbi_links_lock    mutex     which link a disk is on
 *   link->lock        spinlock  the disks on the link
 *   queue->lock       spinlock  the message being put together
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
#include "ini_disk.h"
#include "ini_links.h"
#include "ini_recover.h"
#include "ini_volume.h"
#include "kdapl_blk_proto.h"
#include "util.h"

/*
 * How long the removal of a disk's directory waits for the disk to end, which may take for
 * ever. The removal holds locks that keep other directories from being made or removed.
 */
#define KBI_END_WAIT	(2 * HZ)

#define KBI_DISK_NAME	"kdapl%d"

enum { KBI_SLOT_BUSY };

#define KBI_REPLY_AT	KBLK_MESSAGE
#define KBI_ANSWER	sizeof(struct kblk_listed)

/*
 * struct kbi_slot - a request that may be outstanding
 * @flags: KBI_SLOT_BUSY
 * @use: use of the queue by the request's disk; NULL for an admin request on a shared queue
 * @rq: request of the block layer, NULL for an admin request
 * @id: id of the request: round in the upper half, number of the slot in the lower
 * @pending: events that must happen before the slot is finished: the reply, and a local
 *	invalidation unless the reply has invalidated the memory
 * @replied: the reply has arrived
 * @bound: @lmr is bound, with key @rmr_context
 * @inlined: bytes of data that a successful reply brings
 * @status: enum kblk_status of the reply
 * @mem: message to send, if the slot's request is the first in it; from KBI_REPLY_AT on a
 *	receive buffer, whose message may answer other requests
 * @sg: pages of data that is not inline
 * @lmr: LMR to bind to @sg
 * @lmr_context: local key of @lmr
 * @rmr_context: remote key of @lmr
 * @into: destination of inline data in the reply to an admin request
 */
struct kbi_slot {
	unsigned long flags;
	struct kbi_use *use;
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
 * @in_use: the link uses the queue, so the loss of the queue is that of the link
 * @recv_evd: replies
 * @req_evd: completions of posts to @ep; see kbi_queue_objects()
 * @conn_evd: connection events
 * @ep: Endpoint, or NULL
 * @started: dat_ep_connect() succeeded, so a last event will come
 * @stuck: the driver does not end the connection, so the slots keep their registrations
 * @state: enum kbi_queue_state; only goes forward
 * @connected: completed when @state leaves KBI_QUEUE_CONNECTING
 * @gone: completed by the last connection event
 * @admin: completed by the reply to an admin request, or by the loss of the connection
 * @features: features that the hello has asked for
 * @err: why the connection was refused or has ended, an error number
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
 * @hosts: ATTACH names our host, and the target knows FENCE
 * @wants: a request had to wait for a credit since the last request was sent
 * @credits: requests that may be sent now
 * @volumes: disks may share the queue, and each request names its volume
 * @extra: with @volumes: requests outstanding, less the first of each disk
 * @window: credits that the target has granted: @credits plus the requests outstanding
 * @used: a message was sent since the last keep-alive was due
 * @asked: when the last admin request was sent, jiffies
 * @starved: no credit, and no request outstanding, when the last keep-alive was due
 * @heard: when the last message arrived, jiffies; with @volumes
 * @answer: inline data of a reply to an admin request
 * @nslots: number of @slots
 * @ready: number of slots that have memory and registrations
 * @cramped: a request had to wait for a slot with memory
 * @taken: a bit for each slot that has a request
 */
struct kbi_queue {
	struct kbi_link *link;
	unsigned int index;
	bool in_use;
	DAT_EVD_HANDLE recv_evd;
	DAT_EVD_HANDLE req_evd;
	DAT_EVD_HANDLE conn_evd;
	DAT_EP_HANDLE ep;
	bool started;
	bool stuck;
	atomic_t state;
	struct completion connected;
	struct completion gone;
	struct completion admin;
	u32 features;
	int err;
	struct kblk_welcome welcome;
	bool invalidate;
	bool batch;
	bool requests_batch;
	bool identity;
	bool nounmap;
	bool sizes;
	bool credits_move;
	bool hosts;
	bool volumes;
	bool wants;
	u32 message_max;
	spinlock_t lock;		/* the message being put together */
	struct kbi_slot *first;
	unsigned int gathered;
	u32 length;
	atomic_t credits;
	atomic_t window;
	atomic_t extra;
	bool used;
	unsigned long asked;
	unsigned long heard;
	bool starved;
	u8 answer[KBI_ANSWER];
	unsigned int nslots;
	unsigned int ready;
	bool cramped;
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
	u32 share;
	u32 only_path;
};

enum kbi_state {
	KBI_IDLE,		/* there is no disk */
	KBI_CONNECTING,		/* connecting for the first time */
	KBI_LIVE,
	KBI_RECOVERING,		/* connections were lost, requests wait */
	KBI_FAILED,		/* connections were lost for too long, requests fail */
	KBI_REMOVING
};

/*
 * struct kbi_use - a disk's use of a queue
 * @out: requests outstanding, with queue->volumes
 */
struct kbi_use {
	struct kbi_disk *disk;
	struct kbi_queue *queue;
	atomic_t out;
} ____cacheline_aligned_in_smp;

enum kbi_link_state {
	KBI_LINK_DOWN,		/* there are no connections */
	KBI_LINK_LIVE,
	KBI_LINK_LOST		/* kbi_err_work() is to take them down */
};

/*
 * struct kbi_link - connections to a target, and the disks that use them
 * @entry: in kbi_links while further disks may use the link, else empty; kbi_links_lock
 * @refs: references: one for each disk, and temporary ones; kbi_links_lock
 * @name: name of the disk that the link was made for
 * @params: parameters of that disk, of which those about connections are used; ->ia follows
 *	when the device is renamed, see kbi_link_ia(), and changes under kbi_links_lock
 * @asks: the link only asks for volumes, and its disk is attached to none
 * @state: enum kbi_link_state
 * @mutex: guards the connections, the times of attempts, and of each disk @shown, @quiesced,
 *	@identify, @nattached, @ends_link, the end of @gendisk; @routes of a disk that is quiesced
 * @lock: guards @disks, together with @mutex: changes hold both
 * @disks: disks that are attached, or are to be
 * @ndisks: number of @disks
 * @session: see struct kblk_hello, as @epoch
 * @target: address of the target
 * @ia: the adapter
 * @stuck: the connections are down but for those that the driver does not end, for which
 *	@close_work waits; it completes @closed
 * @ident: the adapter that was opened last, by its number, and by its GUID the one that was
 *	connected last, or opened first; kbi_links_lock
 * @ia_ret: result of the last attempt to open @ia; the same error is not logged again
 * @told, @told_status: why the last attempt to connect has failed, as logged, and the target's word
 * @async_evd: created with @ia
 * @pz: protection zone on @ia
 * @sync: DMA is not coherent, see dat_lmr_sync_*()
 * @queues: the connections
 * @nqueues: number of @queues, and of hardware queues of each disk
 * @nread: number of @queues that are for reads only
 * @nlive: number of connections in use, the first of @queues
 * @memory: memory of the slots of all queues, bytes
 * @max_transfer: most data of a request, bytes; 0 before the first connection
 * @adding: queue being connected, or whose admin reply is awaited, while the link is live
 * @live_at: when the link last became live, jiffies
 * @flaps: how often the connections were lost since the link was live for reconnect_max_ms,
 *	and since a disk was last blamed for ending them
 * @spoils: how often disks have ended the connections since one of these disks was attached
 * @spoil_at: no disk that ends the connections is attached to a live link before, jiffies
 * @attempts: attempts to reconnect since the connections were lost, without those that a
 *	blamed disk has spoilt for others
 * @retry_at: when the next attempt to reconnect is due, jiffies
 * @more_at: no disk is attached to a queue that it spoils before this time, jiffies
 * @kept_alive: when keep-alives were last due, jiffies; @mutex
 * @err_work: takes the connections down
 * @reconnect_work: makes the first connection again
 * @more_work: connects further queues, and gives slots memory
 * @keepalive_work: sends keep-alives
 */
struct kbi_link {
	struct list_head entry;
	unsigned int refs;
	char name[32];
	struct kbi_params params;
	bool asks;
	atomic_t state;
	struct mutex mutex;		/* connections, attaching */
	spinlock_t lock;		/* @disks, with @mutex */
	struct list_head disks;
	unsigned int ndisks;
	u64 session;
	u32 epoch;
	struct sockaddr_storage target;
	DAT_IA_HANDLE ia;
	bool stuck;
	struct completion closed;
	KDAT_IA_IDENT ident;
	DAT_RETURN ia_ret;
	const char *told;
	u16 told_status;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	bool sync;
	struct kbi_queue *queues;
	unsigned int nqueues;
	unsigned int nread;
	unsigned int nlive;
	size_t memory;
	u32 max_transfer;
	struct kbi_queue *adding;
	unsigned long live_at;
	unsigned int flaps;
	unsigned int spoils;
	unsigned long spoil_at;
	unsigned int attempts;
	unsigned long retry_at;
	unsigned long more_at;
	unsigned long kept_alive;
	struct work_struct err_work;
	struct work_struct close_work;
	struct delayed_work reconnect_work;
	struct delayed_work more_work;
	struct delayed_work keepalive_work;
};

/*
 * struct kbi_disk - a disk
 * @params: see struct kbi_params; @admin
 * @state: enum kbi_state
 * @admin: serialises connect, disconnect and changes of @params
 * @removing: the disk is to be removed, so it must not connect any more
 * @quiesced: the block layer is quiesced for this disk
 * @link: link with the disk's connections, or NULL; changes with @admin and kbi_links_lock
 * @link_entry: in link->disks
 * @uses: the disk's use of each queue of @link
 * @nattached: number of queues, the first ones, that the volume is attached to
 * @nrouted: number of these queues that the block layer uses
 * @rerouting: kbi_queues_reroute() has quiesced the disk
 * @routes: for each hardware queue, the use that its requests take
 * @gendisk: NULL unless there is a disk
 * @shown: @gendisk was added to the system
 * @index: number in the name of @gendisk
 * @identify: description of the volume
 * @volume: the volume, as long as there are connections or @gendisk
 * @volume_link: in volume->disks
 * @lost: the disk's session, an entry for volume->lost
 * @fence: enum kbi_fence of the session whose connections were lost
 * @unanswered: a write was sent and not answered since the disk became a path; link->mutex
 * @vouched: UUID that the target of another path has vouched for, see kbi_vouch(); @admin
 * @fence_ms: delay before fencing is tried again
 * @is_path: the disk is connected, and has fenced the sessions that other paths have lost
 * @hosts: queue->hosts when the disk last connected
 * @told_size: last size of the volume told by a reply
 * @resized_at: when the block layer was last told of another size, jiffies
 * @lost_at: when the connections or the volume were lost, jiffies
 * @live_at: when the volume was last attached, jiffies
 * @attempts: attempts to attach the volume again, since it was attached, with a live link
 * @detached: the target has detached the volume since it was last attached
 * @flaps: how often the target has detached the volume since it was attached for
 *	reconnect_max_ms
 * @ends_link: the connections have ended while the volume was being attached, see
 *	kbi_disk_blame()
 * @ends_queue: further queue that has ended while the volume was being attached to it, or 0
 * @recover_at: the volume is not attached again before this time, jiffies
 * @recover_work: attaches the volume again while the link is live
 * @fail_work: fails requests that have waited too long, or for a fence
 * @fence_work: fences sessions that other paths have lost
 * @resize_work: adopts @told_size
 * @connect_work: connects
 * @listing: @connect_work asks for volumes instead of connecting; @admin
 * @list_from: number of the first volume to ask for
 * @listed: the volumes that the target has told, a page of text, or NULL; @admin
 * @connect_err: last result of @connect_work, 0 or an error number
 * @end_work: disconnects
 * @connects, @ends: how often @connect_work and @end_work have finished
 * @ended: woken when @connects or @ends has changed
 * @latency: how long requests took
 */
struct kbi_disk {
	struct config_item item;
	struct kbi_params params;
	atomic_t state;
	struct mutex admin;		/* connect, disconnect, @params */
	bool removing;
	bool quiesced;
	struct kbi_link *link;
	struct list_head link_entry;
	struct kbi_use *uses;
	unsigned int nattached;
	unsigned int nrouted;
	bool rerouting;
	struct kbi_use **routes;
	struct blk_mq_tag_set set;
	struct gendisk *gendisk;
	bool shown;
	int index;
	struct kblk_identify identify;
	struct kbi_volume *volume;
	struct list_head volume_link;
	struct kbi_lost *lost;
	enum kbi_fence fence;
	bool unanswered;
	uuid_t vouched;
	u32 fence_ms;
	bool is_path;
	bool hosts;
	__le64 told_size;
	unsigned long resized_at;
	unsigned long lost_at;
	unsigned long live_at;
	unsigned int attempts;
	bool detached;
	unsigned int flaps;
	bool ends_link;
	unsigned int ends_queue;
	unsigned long recover_at;
	struct delayed_work recover_work;
	struct work_struct fail_work;
	struct delayed_work fence_work;
	struct delayed_work resize_work;
	bool listing;
	u64 list_from;
	char *listed;
	struct work_struct connect_work;
	atomic_t connects;
	int connect_err;
	struct work_struct end_work;
	atomic_t ends;
	wait_queue_head_t ended;
	atomic64_t stats[KBI_STATS];
	struct kbi_latency __percpu *latency;
};

extern struct kblk_hmac kbi_hmac;
extern struct workqueue_struct *kbi_wq;
extern struct workqueue_struct *kbi_end_wq;
extern uuid_t kbi_host;

/*
 * Lock link->mutex, and make allocations under it NOIO: reclaim could wait for a write to a
 * disk of @link, which cannot recover without the mutex, or to another path of such a volume,
 * whose requests fail only after this path has fenced them. Return the flags for
 * kbi_link_unlock().
 */
static inline unsigned int kbi_link_lock(struct kbi_link *link)
{
	mutex_lock(&link->mutex);
	return memalloc_noio_save();
}

static inline void kbi_link_unlock(struct kbi_link *link, unsigned int flags)
{
	memalloc_noio_restore(flags);
	mutex_unlock(&link->mutex);
}

static inline void kbi_count(struct kbi_disk *disk, enum kbi_stat stat, u64 n)
{
	atomic64_add(n, &disk->stats[stat]);
}

/* Return the number of the volume in requests of @use. */
static inline __le32 kbi_namespace(struct kbi_use *use)
{
	return use->queue->volumes ? cpu_to_le32(use->disk->params.namespace) : 0;
}

/*
 * Return whether a request is outstanding in @slot. Pairs with kbi_io_send() and
 * kbi_slot_put(): what they stored in the slot before they set or cleared the bit is visible.
 * litmus: blk-busy, blk-idle
 */
static inline bool kbi_slot_is_busy(const struct kbi_slot *slot)
{
	return test_bit_acquire(KBI_SLOT_BUSY, &slot->flags);
}

static inline bool kbi_queue_live(struct kbi_queue *queue)
{
	return atomic_read(&queue->state) == KBI_QUEUE_LIVE;
}

static inline enum kbi_link_state kbi_link_state(struct kbi_link *link)
{
	return atomic_read(&link->state);
}

static inline enum kbi_state kbi_state(struct kbi_disk *disk)
{
	/*
	 * Pairs with atomic_xchg() in kbi_disk_go_live(): KBI_LIVE implies that the
	 * routes are visible. litmus: blk-routes, blk-detached, blk-out
	 */
	return atomic_read_acquire(&disk->state);
}

/* ini_configfs.c */
int kbi_configfs_register(void);
void kbi_configfs_unregister(void);

/* ini_link.c */
void kbi_err_work(struct work_struct *work);
void kbi_reconnect_work(struct work_struct *work);
int kbi_link_add(struct kbi_disk *disk);
void kbi_link_remove(struct kbi_disk *disk);
void kbi_link_error(struct kbi_link *link, const char *why);
void kbi_link_check(struct kbi_link *link);
bool kbi_link_is_wanted(struct kbi_link *link);
int kbi_link_queue_up(struct kbi_link *link, struct kbi_queue *queue);

/* ini_adapter.c */
int kbi_ia_open(struct kbi_link *link);
void kbi_ia_close(struct kbi_link *link);
void kbi_close_work(struct work_struct *work);
bool kbi_ia_is_closed(struct kbi_link *link);
void kbi_ia_wait_closed(struct kbi_link *link);

/* ini_queues.c */
void kbi_queues_set(struct kbi_link *link, unsigned int max);
void kbi_queues_use(struct kbi_link *link, unsigned int n);
void kbi_queues_route(struct kbi_disk *disk);
int kbi_queues_add(struct kbi_link *link);
void kbi_more_work(struct work_struct *work);

/* ini_queue.c */
unsigned int kbi_queues_allowed(struct kbi_link *link);
int kbi_queue_start(struct kbi_queue *queue);
void kbi_queues_stop(struct kbi_queue *queues, unsigned int n);
void kbi_queue_lost(struct kbi_queue *queue, const char *why);

/* ini_slot.c */
int kbi_slots_alloc(struct kbi_queue *queue);
int kbi_slots_alloc_data(struct kbi_queue *queue);
bool kbi_slots_wanted(struct kbi_queue *queue);
int kbi_slots_grow(struct kbi_queue *queue);
int kbi_slots_reserve(struct kbi_queue *queue);
bool kbi_slots_waiting(struct kbi_queue *queue);
bool kbi_credit_get(struct kbi_queue *queue, int keep);
void kbi_share_put(struct kbi_use *use);
struct kbi_slot *kbi_slot_take(struct kbi_use *use);
void kbi_slot_untake(struct kbi_use *use, struct kbi_slot *slot);
void kbi_slots_release(struct kbi_queue *queue);
void kbi_slots_forget(struct kbi_queue *queue);
void kbi_slots_free(struct kbi_queue *queue);
DAT_RETURN kbi_reply_post(struct kbi_queue *queue, unsigned int n);

/* ini_io.c */
void kbi_io_send(struct kbi_queue *queue, struct kbi_slot *slot,
		 struct kblk_request *request, const void *data, u32 inlined,
		 bool last);
void kbi_io_commit(struct kbi_queue *queue);
blk_status_t kbi_io_queue(struct kbi_use *use, struct request *rq, bool last);
void kbi_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void kbi_req_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

/* ini_discover.c */
int kbi_discover(struct kbi_disk *disk);

/* ini_admin.c, ini_keepalive.c */
int kbi_attach(struct kbi_use *use);
void kbi_detach(struct kbi_use *use);
int kbi_identify(struct kbi_use *use, struct kblk_identify *identify);
int kbi_list(struct kbi_use *use, u64 n, struct kblk_listed *listed);
int kbi_fence(struct kbi_use *use, const struct kbi_lost *lost);
unsigned long kbi_wait(struct kbi_queue *queue, struct completion *done, unsigned long timeout);
void kbi_keepalive_work(struct work_struct *work);

#endif /* KDAPL_BLK_INI_H */
