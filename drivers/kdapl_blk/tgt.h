/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Structures of a port at work, locks, functions that files export to each other.
 *
 *   tgt_main.c          module, statistics
 *   tgt_configfs.c      configfs: root, subsystems, clients
 *   tgt_ports.c         configfs: ports
 *   tgt_ns_configfs.c   configfs: namespaces
 *   tgt_ns.c            volumes: enable, disable
 *   tgt_attach.c        volumes: connections attach and detach
 *   tgt_identity.c      volumes: UUIDs
 *   tgt_storage.c       volumes: what is below loop devices
 *   tgt_list.c          volumes: list them for a client
 *   tgt_auth.c          authentication of clients
 *   tgt_session.c       disks of clients: epochs, fences, flushes
 *   tgt_adapter.c       a port at work: listening, what its connections share
 *   tgt_srq.c           receive buffers of all clients
 *   tgt_credit.c        credits of clients, as many as there are buffers
 *   tgt_pool.c          buffers for data
 *   tgt_conn.c          connections: accept, end
 *   tgt_host.c          connections: hosts of clients, connection requests
 *   tgt_watch.c         connections: clients that misbehave
 *   tgt_recv.c          requests: receive, check the format
 *   tgt_io.c            requests: slots, check, serve
 *   tgt_reply.c         requests: move data, reply
 *   tgt_backend.c       requests: the volume
 *
 * A connection is an Endpoint with two Event Dispatchers and io_depth slots. While one message
 * waits for slots for its requests, later messages stay on the receive EVD. The messages that
 * kDAPL counts as held by the Endpoint are therefore the client's backlog, and the high
 * watermarks measure its behaviour: a client that respects its credits never exceeds the hard
 * one.
 *
 * Locks, outermost first. None is held while waiting for requests on a medium; a backing,
 * which may take long to open, is opened under ns->mutex alone:
 *
 *   ns->mutex         mutex     configfs: attributes of a volume
 *   kbt_config        mutex     configfs: objects, other attributes
 *   (the server's)    mutex     kdapl.ko: portals and adapters
 *   port->mutex       mutex     adapter of a port
 *   conn->recv_mutex  mutex     receive path of a connection
 *   kbt->mutex        mutex     connections of an adapter
 *   kbt->share_mutex  mutex     volumes in use
 *   kbt_names         spinlock  names, and who may use them
 *   ns->lock          spinlock  sessions of a volume
 *   conn->lock        spinlock  slots, credits, lanes of a connection
 *   pool->lock        spinlock  buffers
 */
#ifndef KDAPL_BLK_TGT_H
#define KDAPL_BLK_TGT_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <dat/kdat.h>
#include <dat/kdat_portal.h>
#include "kdapl_blk_proto.h"
#include "tgt_config.h"
#include "tgt_host.h"
#include "tgt_pool.h"
#include "util.h"

/* ---- A port at work ------------------------------------------------------ */

struct kbt_attachment;
struct kbt_io;
struct kbt_session;

/*
 * struct kbt - a port at work: the adapter and everything created on it
 * @adapter: the adapter, with the receive buffers of all connections
 * @invalidate: the device supports Send with Invalidate
 * @rdma_read_max: RDMA Reads that an Endpoint may have outstanding
 * @data_replies: most replies with data in one message
 * @granted: credits that all connections have together
 * @owned: credits reserved for connections and their volumes
 * @for_volumes: credits of @owned that ATTACH has reserved
 * @short_since: jiffies when a client last wanted a credit and got none
 * @pools: pages of KBLK_INLINE bytes, and buffers of max_transfer bytes
 * @share_mutex: guards @shares
 * @shares: volumes in use
 * @silence_work: looks for clients that misbehave
 * @wq: serves requests
 * @end_wq: ends connections; no work on it waits for a medium
 * @mutex: guards @conns, @conn_count, @hosts and @shunned
 * @conns: connections
 * @conn_count: connections that are not yet freed
 * @live: number of connections that have not ended
 * @known: those of @live that are or were attached; kbt_names
 * @hosts: hosts that have connections
 * @shunned: hosts of clients that were cut off
 */
struct kbt {
	KDAT_ADAPTER adapter;
	struct kbt_port *port;
	const struct kbt_params *params;
	bool invalidate;
	u32 rdma_read_max;
	u32 data_replies;

	atomic_t granted;
	atomic_t owned;
	atomic_t for_volumes;
	unsigned long short_since;

	struct kbt_pool pools[KBT_POOLS];
	struct mutex share_mutex;	/* volumes in use */
	struct list_head shares;
	struct delayed_work silence_work;
	struct workqueue_struct *wq;
	struct workqueue_struct *end_wq;
	struct mutex mutex;		/* connections */
	struct list_head conns;
	unsigned int conn_count;
	atomic_t live;
	unsigned int known;
	struct list_head hosts;
	struct kbt_shunned shunned[KBT_SHUNNED];
};

/*
 * struct kbt_attachment - a connection that uses a volume, see tgt_attach.c
 * @link: in conn->attachments
 * @session_link: in session->attachments; kbt_names
 * @conn: the connection
 * @ns: the volume
 * @share: the share of @ns in the pools
 * @lines: place of the attachment in the line of each pool; pool->lock
 * @session: session of the client's disk; kbt_names
 * @busy: number of slots with requests for the volume; conn->lock
 * @unreplied: number of busy slots whose reply was not made yet; conn->lock
 * @ending: no more requests are taken; conn->lock
 * @hang_link: in share->hanging, or empty; kbt_names
 * @end_work: ends the attachment when @busy has become 0
 */
struct kbt_attachment {
	struct list_head link;
	struct list_head session_link;
	struct kbt_conn *conn;
	struct kbt_ns *ns;
	struct kbt_share *share;
	struct kbt_line lines[KBT_POOLS];
	struct kbt_session *session;
	unsigned int busy;
	unsigned int unreplied;
	bool ending;
	struct list_head hang_link;
	struct work_struct end_work;
};

enum kbt_stage {
	KBT_IO_START,		/* not begun, or waiting for a buffer */
	KBT_IO_RUN,		/* the request has its buffer and data */
	KBT_IO_BLOCK		/* the request is on ns->io_wq, where it may block */
};

/*
 * struct kbt_lane - replies that share messages
 * @due: slots whose replies wait for a message
 * @due_count: number of slots in @due
 * @due_size: bytes of the replies in @due
 * @sending: messages under way
 */
struct kbt_lane {
	struct list_head due;
	unsigned int due_count;
	size_t due_size;
	unsigned int sending;
};

enum { KBT_LANE_PLAIN, KBT_LANE_DATA, KBT_LANES };

/*
 * struct kbt_io - a slot: one request being served
 * @link: in conn->idle, the line of a pool, lane->due or @mates of another slot
 * @att: attachment to the volume that the request is for, or NULL
 * @work: runs the next step in process context
 * @request: request as received; kbt_check() validates it before use
 * @buf: buffer for the data: a page if the data is inline, else a large buffer
 * @kept: receive buffer with the data of a WRITE, until that was copied to @buf, or in place
 *	of @buf; else NULL
 * @from: data in @kept that is to be copied, or NULL
 * @data: where the data is, in @buf or @kept
 * @waits: pool whose line the slot is in; pool->lock
 * @posted: when the RDMA Read, the reply, or the message that this slot is the first of was
 *	posted, jiffies; 0 if none is under way
 * @pending: posts not completed, plus one while the slot is served, or while its reply is due
 *	or in a shared message
 * @wants: the request came with KBLK_WANTS
 * @brings: credits for the volume that the reply to ATTACH gives; conn->lock
 * @writing: the reply was posted behind the RDMA Write of its data
 * @status: enum kblk_status of the reply
 * @covers: for a FLUSH, how many writes of the session it covers
 * @inlined: bytes of data that go with the reply
 * @shared: number of replies in the message that this slot is the first of, or 0
 * @mates: the other slots of that message
 */
struct kbt_io {
	struct list_head link;
	struct kbt_conn *conn;
	struct kbt_attachment *att;
	struct work_struct work;
	enum kbt_stage stage;
	struct kblk_request request;
	struct kbt_buf *buf;
	DAT_DTO_COOKIE kept;
	const void *from;
	void *data;
	struct kbt_pool *waits;
	unsigned long posted;
	atomic_t pending;
	bool wants;
	u16 brings;
	bool writing;
	u16 status;
	s64 covers;
	u32 inlined;
	unsigned int shared;
	struct list_head mates;
	struct bio bio;
	struct bio_vec bvec;
};

/*
 * struct kbt_message - the message of a client that is being served
 * @cookie: receive buffer of the message
 * @from: next request of the message, whose format was checked
 * @left: number of requests that were not taken yet; 0: there is no message
 */
struct kbt_message {
	DAT_DTO_COOKIE cookie;
	const void *from;
	unsigned int left;
};

enum {
	KBT_CONN_ENDING,
	KBT_CONN_DOWN,
	KBT_CONN_GONE,
	KBT_CONN_HANGS,
	KBT_CONN_KEEPS,
	KBT_CONN_JUDGED, KBT_CONN_CUT_OFF, KBT_CONN_SHUNNED,
	KBT_CONN_WAS_ATTACHED, KBT_CONN_PROVEN
};

/* Limit on the connections of one host that have not attached yet */
#define KBT_UNATTACHED_MAX	64

/*
 * struct kbt_conn - a connection
 * @link: in kbt->conns
 * @recv_evd: messages of the client; the upcall is only a notice, see above
 * @req_evd: completions of Sends and RDMA operations
 * @recv_mutex: serialises kbt_recv() in the upcall and in @recv_work
 * @recv_work: continues to receive where the upcall had to stop
 * @end_work: begins to take the connection down
 * @gone_work: judges the client, and gives the credits back, after @end_work and kDAPL's
 *	report of the end
 * @free_work: frees the connection when no slot is busy and nothing is attached
 * @flags: KBT_CONN_ENDING: only its setter queues @end_work; KBT_CONN_DOWN: disconnected, so
 *	messages are dropped; KBT_CONN_GONE: kDAPL has reported the end, so no more messages
 *	arrive; KBT_CONN_HANGS: kbt_hang() was called; KBT_CONN_KEEPS: a slot has ->kept in
 *	place of ->buf; KBT_CONN_JUDGED: @unproven was counted; KBT_CONN_CUT_OFF: so were its
 *	requests beyond its credits; KBT_CONN_SHUNNED: its host was shunned for these, or for a
 *	malformed message; KBT_CONN_WAS_ATTACHED: attached now or before; KBT_CONN_PROVEN: the
 *	peer has proven to be of @host
 * @ended: jiffies of @end_work, of the QP's end, or of the last log about busy slots
 * @attachments: attachments to volumes; added to under @recv_mutex and @lock
 * @attached: number of @attachments
 * @session_id: see struct kblk_hello, as @epoch and @queue
 * @credits: the most credits that the connection can have
 * @window: credits of the client, with those of outstanding requests and @withheld ones; @lock
 * @dropped: number of messages that came after the disconnect; @recv_mutex
 * @own: credits reserved for the connection; @lock
 * @for_volumes: credits of @own that ATTACH has reserved; @lock
 * @given: all credits ever granted
 * @returned: credits that the client has given back
 * @reply_size: longest message that the client can receive, bytes
 * @invalidate: replies invalidate the client's memory
 * @batch: several replies may share a message, see struct kblk_reply
 * @requests_batch: several requests may share a message
 * @identity: IDENTIFY includes the volume's UUID
 * @nounmap: the client may use KBLK_NOUNMAP
 * @sizes: replies include the volume's size
 * @auth: ATTACH carries a proof
 * @queues: the welcome tells how many connections the disk may have
 * @credits_move: the client begins with one credit if need be, and gives unused credits back
 * @hosts: ATTACH names the client's host
 * @lists: the client may send LIST
 * @volumes: there may be several @attachments, and requests name their volume
 * @host_id: host that ATTACH has named, or nil
 * @challenged: @challenge was sent and has not been used
 * @unproven: ATTACH came with a wrong proof, or without one that is required
 * @challenge: challenge sent to the client
 * @message: message being served; @recv_mutex
 * @overdrawn: the client has sent more requests than its credits allow
 * @malformed: the client has sent a malformed message
 * @messages: messages dequeued
 * @arrived: @messages plus those on the EVD, at the last check for silence
 * @heard: when a message last arrived, jiffies; while nothing is attached, since when
 * @patience: silence that is tolerated, jiffies; 0: unlimited
 * @lock: guards @idle, @idle_count, @attachments, @attached, @draining,
 *	@words_busy, @throttled, @withheld, @window, @own, @lanes
 * @idle: idle slots
 * @idle_count: number of idle slots
 * @draining: @free_work is queued when the last slot and attachment end
 * @words_busy: a request uses kbt_words()
 * @throttled: the backlog is long, so credits are held back
 * @withheld: credits held back
 * @backlogs: how often the backlog was long since the log last said so; kbt->mutex
 * @backlog_at: when the backlog was last long, jiffies; kbt->mutex
 * @lanes: replies without data, and replies with data
 * @transfers: RDMA Reads and Writes under way
 * @replies: a struct kblk_reply for each slot, a message of replies without data, and
 *	kbt_words()
 * @ios: the slots
 * @host: host of the client
 * @requests: requests of messages that were dequeued
 * @replied: replies posted
 * @delivered: replies whose Send has completed
 * @peer: address and port of the client, and its GID if that is different, for the log
 * @client: name of the client
 * @subsystem: name of the subsystem
 * @keepalive_ms: as in ATTACH
 */
struct kbt_conn {
	struct list_head link;
	struct kbt *kbt;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE recv_evd;
	DAT_EVD_HANDLE req_evd;
	struct mutex recv_mutex;	/* the receive path */
	struct work_struct recv_work;
	struct work_struct end_work;
	struct work_struct gone_work;
	struct work_struct free_work;
	unsigned long flags;
	unsigned long ended;
	struct list_head attachments;
	unsigned int attached;
	u64 session_id;
	u32 epoch;
	u16 queue;
	u16 credits;
	unsigned int window;
	unsigned int own;
	unsigned int for_volumes;
	unsigned int dropped;
	atomic64_t given;
	atomic64_t returned;
	u32 reply_size;
	bool invalidate;
	bool batch;
	bool requests_batch;
	bool identity;
	bool nounmap;
	bool sizes;
	bool auth;
	bool queues;
	bool credits_move;
	bool hosts;
	bool hints;
	bool lists;
	bool volumes;
	uuid_t host_id;
	bool challenged;
	bool unproven;
	u8 challenge[KBLK_NONCE_LEN];
	struct kbt_message message;
	bool overdrawn;
	bool malformed;
	unsigned long messages;
	unsigned long arrived;
	unsigned long heard;
	unsigned long patience;
	spinlock_t lock;		/* slots, credits, lanes */
	struct list_head idle;
	unsigned int idle_count;
	bool draining;
	bool words_busy;
	bool throttled;
	unsigned int withheld;
	unsigned int backlogs;
	unsigned long backlog_at;
	struct kbt_lane lanes[KBT_LANES];
	atomic_t transfers;
	struct kblk_buf replies;
	struct kbt_io *ios;
	struct kbt_host *host;
	atomic64_t requests;
	atomic64_t replied;
	atomic64_t delivered;
	char peer[112];
	char client[KBLK_NAME_LEN];
	char subsystem[KBLK_NAME_LEN];
	u32 keepalive_ms;
};

extern struct workqueue_struct *kbt_stop_wq;
extern struct mutex kbt_config;
extern spinlock_t kbt_names;
extern struct list_head kbt_ports;
extern struct list_head kbt_clients;

static inline void kbt_count(struct kbt *kbt, enum kbt_stat stat, u64 n)
{
	atomic64_add(n, &kbt->port->stats[stat]);
}

static inline bool kbt_conn_ending(const struct kbt_conn *conn)
{
	return test_bit(KBT_CONN_ENDING, &conn->flags);
}

static inline u32 kbt_length(const struct kbt_io *io)
{
	return le32_to_cpu(io->request.length);
}

/* Return whether @io keeps the receive buffer of its message. */
static inline bool kbt_keeps(const struct kbt_io *io)
{
	return io->kept.as_ptr;
}

/* Return whether @io moves data of the volume. */
static inline bool kbt_has_data(const struct kbt_io *io)
{
	return io->request.opcode == KBLK_OP_READ ||
	       io->request.opcode == KBLK_OP_WRITE;
}

/* Return whether @io names memory of the initiator. */
static inline bool kbt_has_remote(const struct kbt_io *io)
{
	return !(io->request.flags & KBLK_INLINED) && kbt_has_data(io);
}

/* Return how many buffers the longest queue has. */
static inline unsigned int kbt_srq_max(struct kbt *kbt)
{
	return kdat_pool_most(kbt->adapter.pool);
}

/* tgt_main.c */
ssize_t kbt_stats_print(struct kbt_port *port, char *page);
ssize_t kbt_conns_print(struct kbt_port *port, char *page);

/* tgt_configfs.c */
int kbt_configfs_register(void);
void kbt_configfs_unregister(void);
struct kbt_subsys *kbt_subsys_of(struct config_item *item);

/* tgt_ports.c */
extern const struct config_item_type kbt_ports_type;

/* tgt_ns_configfs.c */
struct config_group *kbt_ns_make(struct kbt_subsys *subsys, u32 nsid);
void kbt_ns_drop(struct config_item *item);

/* tgt_identity.c */
bool kbt_derive_uuid(struct file *file, uuid_t *uuid);
void kbt_identity_init(void);

/* tgt_ns.c */
struct file *kbt_backing_open(const char *path, int flags);
int kbt_ns_enable(struct kbt_ns *ns);
void kbt_ns_disable(struct kbt_ns *ns);
void kbt_ns_close_work(struct work_struct *work);
void kbt_ns_unuse(struct kbt_ns *ns);
u64 kbt_ns_size(struct kbt_ns *ns);

/* tgt_attach.c */
enum kblk_status kbt_attach(struct kbt_io *io, const struct kblk_attach *attach);
struct kbt_attachment *kbt_attachment_get(struct kbt_conn *conn,
					  const struct kblk_request *request);
void kbt_attachment_put(struct kbt_io *io);
void kbt_attachment_end(struct kbt_attachment *att);
void kbt_detach(struct kbt_io *io);
void kbt_detach_all(struct kbt_conn *conn);
ssize_t kbt_attached_print(struct kbt_conn *conn, char *page, ssize_t n);
void kbt_end_matching(struct kbt_port *port,
		      bool (*match)(const struct kbt_attachment *att,
				    void *what),
		      void *what);

/* tgt_auth.c */
enum kblk_status kbt_authenticate(struct kbt_conn *conn,
				  const struct kbt_subsys *subsys,
				  const struct kblk_attach *attach);
void kbt_challenge(struct kbt_conn *conn);

/* tgt_session.c */
enum kblk_status kbt_session_join(struct kbt_ns *ns,
				  struct kbt_attachment *att);
void kbt_session_leave(struct kbt_attachment *att);
bool kbt_session_has_other(const struct kbt_attachment *att);
enum kblk_status kbt_fence(struct kbt_io *io, const struct kblk_fence *fence);
void kbt_session_written(struct kbt_io *io);
void kbt_flush_begin(struct kbt_io *io);
int kbt_flush_end(struct kbt_io *io, int err);
void kbt_flush_failed(struct kbt_ns *ns, int err);

/* tgt_srq.c */
void kbt_srq_size(DAT_PVOID adapter, KDAT_POOL_SIZE *size);
void kbt_rx_put(struct kbt *kbt, DAT_DTO_COOKIE cookie);

/* tgt_credit.c */
void kbt_credits_init(struct kbt *kbt);
void kbt_credits_calm_down(struct kbt *kbt);
bool kbt_credits_begin(struct kbt_conn *conn);
void kbt_credits_drop(struct kbt_conn *conn);
void kbt_credits_end(struct kbt_conn *conn);
bool kbt_credits_attach(struct kbt_io *io);
void kbt_credits_detach(struct kbt_conn *conn);
u16 kbt_credits(struct kbt_io *io);
void kbt_credits_back(struct kbt_conn *conn, unsigned int n);
unsigned int kbt_credits_buffers(struct kbt *kbt);

/* tgt_conn.c */
void kbt_conn_request(KDAT_ADAPTER *adapter, DAT_PVOID context, DAT_CR_HANDLE cr,
		      const DAT_CR_PARAM *param, const KDAT_HOST *from);
void kbt_conn_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void kbt_conn_end(struct kbt_conn *conn);
void kbt_conn_drained(struct kbt_conn *conn);
void kbt_conn_end_all(struct kbt *kbt);
void kbt_conn_backlog(struct kbt *kbt, DAT_EP_HANDLE ep);
void kbt_conn_watermarks(struct kbt_conn *conn);

/* tgt_recv.c */
void kbt_recv_work(struct work_struct *work);
void kbt_recv_stop(struct kbt_conn *conn);
void kbt_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

/* tgt_io.c */
int kbt_io_alloc(struct kbt_conn *conn);
void kbt_io_free(struct kbt_conn *conn);
struct kbt_io *kbt_io_get(struct kbt_conn *conn,
			  const struct kblk_request *request);
void kbt_words_unused(struct kbt_conn *conn);
void kbt_io_served(struct kbt_io *io);
void kbt_io_put(struct kbt_io *io);
void kbt_io_unkeep(struct kbt_io *io);
enum kblk_status kbt_check(struct kbt_io *io);
void kbt_io_step(struct kbt_io *io);
void kbt_io_work(struct work_struct *work);

/* tgt_reply.c */
bool kbt_has_words(const struct kbt_conn *conn, u8 opcode);
void *kbt_words(struct kbt_conn *conn);
DAT_RETURN kbt_fetch(struct kbt_io *io);
void kbt_io_reply(struct kbt_io *io, enum kblk_status status);
void kbt_req_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

/* tgt_backend.c */
void kbt_backend_run(struct kbt_io *io);
bool kbt_backend_blocks(struct kbt_io *io);
bool kbt_backend_takes(const struct kbt_ns *ns, const void *data);
u32 kbt_max_zeroes(struct kbt_ns *ns);
u32 kbt_max_discard(struct kbt_ns *ns);
void kbt_backend_identify(struct kbt_io *io, struct kblk_identify *identify);

#endif /* KDAPL_BLK_TGT_H */
