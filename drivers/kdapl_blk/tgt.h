/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Structures of a port at work, locks, functions that files export to each other.
 *
 *   tgt_main.c          module, statistics
 *   tgt_configfs.c      configfs: root, subsystems, clients
 *   tgt_ports.c         configfs: ports
 *   tgt_ns_configfs.c   configfs: namespaces
 *   tgt_ns.c            volumes: enable, disable, attach
 *   tgt_identity.c      volumes: UUIDs
 *   tgt_auth.c          authentication of clients
 *   tgt_session.c       disks of clients: epochs, fences, flushes
 *   tgt_adapter.c       a port at work: adapter, listening, device removal
 *   tgt_srq.c           receive buffers of all clients, low watermark
 *   tgt_credit.c        credits of clients, as many as there are buffers
 *   tgt_pool.c          buffers for data
 *   tgt_conn.c          connections: accept, end
 *   tgt_watch.c         connections: clients that misbehave
 *   tgt_recv.c          requests: receive, check the format
 *   tgt_io.c            requests: slots, check, serve
 *   tgt_reply.c         requests: move data, reply
 *   tgt_backend.c       requests: the volume
 *
 * A connection is an Endpoint with two Event Dispatchers and io_depth slots.
 * While one message waits for slots for its requests, later messages stay on
 * the receive EVD. The messages that kDAPL counts as held by the Endpoint are
 * therefore the client's backlog, and the high watermarks measure its
 * behaviour: a client that respects its credits never exceeds the hard one.
 *
 * Locks, outermost first. None is held while waiting for requests of a medium; opening
 * a backing, which may take long, is done under ns->mutex alone:
 *
 *   ns->mutex         mutex     configfs: attributes of a volume
 *   kbt_config        mutex     configfs: objects, attributes of others
 *   port->mutex       mutex     adapter of a port
 *   kbt->mutex        mutex     connections of an adapter
 *   kbt->srq_mutex    mutex     size of the shared receive queue
 *   conn->recv_mutex  mutex     receive path of a connection
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
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <dat/kdat.h>
#include "kdapl_blk_proto.h"
#include "tgt_config.h"
#include "util.h"

/* ---- A port at work ------------------------------------------------------ */

struct kbt_io;
struct kbt_session;

enum kbt_pool_kind { KBT_PAGES, KBT_LARGE, KBT_POOLS };

/*
 * struct kbt_line - a connection's or a volume's place in line for a pool
 * @link: in the line of the volume or the pool, or empty
 * @waiting: slots of the connection, or connections of the volume
 * @held: buffers held
 * @users: for a volume, its connections
 */
struct kbt_line {
	struct list_head link;
	struct list_head waiting;
	unsigned int held;
	unsigned int users;
};

/*
 * struct kbt_share - a volume in use at a port
 * @link: in kbt->shares
 * @ns: the volume
 * @lines: its place in each pool; pool->lock
 */
struct kbt_share {
	struct list_head link;
	struct kbt_ns *ns;
	struct kbt_line lines[KBT_POOLS];
};

/*
 * struct kbt_pool - buffers of one size for all connections; see tgt_pool.c
 * @lock: guards the pool, and the lines of connections and shares
 * @kind: index in kbt->pools
 * @free: buffers that are free
 * @waiting: lines of volumes
 * @size: size of a buffer, bytes
 * @n: number of buffers
 * @nfree: number of free buffers
 * @volumes: volumes in use
 * @without: volumes in use that hold no buffer
 */
struct kbt_pool {
	spinlock_t lock;		/* see above */
	enum kbt_pool_kind kind;
	struct list_head free;
	struct list_head waiting;
	size_t size;
	unsigned int n;
	unsigned int nfree;
	unsigned int volumes;
	unsigned int without;
};

struct kbt_buf {
	struct list_head link;
	struct kbt_pool *pool;
	struct kblk_buf mem;
};

/* A host whose connection requests are refused until @until (jiffies). */
struct kbt_shunned {
	struct sockaddr_storage host;
	unsigned long until;
};

#define KBT_SHUNNED	16

/*
 * struct kbt - a port at work: the adapter and everything created on it
 * @ia: the adapter
 * @async_evd: created with @ia
 * @cm_evd: connection requests and connection events of all clients
 * @pz: protection zone of all objects
 * @psp: the listener
 * @invalidate: the device supports Send with Invalidate
 * @rdma_read_max: RDMA Reads that an Endpoint may have outstanding
 * @data_replies: most replies with data in one message
 * @srq: receives of all connections
 * @srq_mutex: guards the length of @srq and @chunks
 * @srq_lock: guards the state of chunks
 * @chunks: buffers of @srq
 * @srq_posted: number of buffers
 * @srq_low: low watermark
 * @usable: buffers that are not about to be removed; written under @srq_mutex
 * @granted: credits that connections have in all
 * @short_since: jiffies when a client last got no credit that it could use
 * @srq_work: adapts the queue to the number of connections, and shortens it
 *	after a calm period
 * @low_work: arms the low watermark when the queue has recovered
 * @pools: pages of KBLK_INLINE bytes, and buffers of max_transfer bytes
 * @share_mutex: guards @shares
 * @shares: volumes in use
 * @silence_work: looks for clients that misbehave
 * @wq: serves requests
 * @end_wq: ends connections and adapts the queue; no work on it waits for a
 *	medium
 * @mutex: guards @conns, @conn_count, @stopping and @shunned
 * @conns: connections
 * @conn_count: connections that are not yet freed
 * @stopping: new connections are refused; when there are none left, @stop_work
 *	is queued
 * @shunned: hosts of clients that were cut off
 * @gone: the device was removed
 * @stop_work: kbt_stop_work()
 */
struct kbt {
	struct kbt_port *port;
	const struct kbt_params *params;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE cm_evd;
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	bool invalidate;
	u32 rdma_read_max;
	u32 data_replies;

	DAT_SRQ_HANDLE srq;
	struct mutex srq_mutex;		/* size of the queue */
	spinlock_t srq_lock;		/* which chunks are retiring */
	struct list_head chunks;
	unsigned int srq_posted;
	unsigned int srq_low;
	unsigned int usable;
	atomic_t granted;
	unsigned long short_since;
	struct delayed_work srq_work;
	struct delayed_work low_work;

	struct kbt_pool pools[KBT_POOLS];
	struct mutex share_mutex;	/* which volumes use them */
	struct list_head shares;
	struct delayed_work silence_work;
	struct workqueue_struct *wq;
	struct workqueue_struct *end_wq;
	struct mutex mutex;		/* connections */
	struct list_head conns;
	unsigned int conn_count;
	bool stopping;
	struct kbt_shunned shunned[KBT_SHUNNED];
	bool gone;
	struct work_struct stop_work;
};

enum kbt_stage {
	KBT_IO_EMPTY,		/* request not taken yet */
	KBT_IO_START,		/* not begun, or waiting for a large buffer */
	KBT_IO_RUN,		/* has its buffer and data */
	KBT_IO_BLOCK		/* on ns->io_wq, where it may block */
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
 * @work: runs the next step in process context
 * @request: request as received; kbt_check() validates it before use
 * @buf: buffer for the data: a page if the data is inline, else a large buffer
 * @kept: receive buffer with the data of a WRITE, in place of @buf, or NULL
 * @data: where the data is, in @buf or @kept
 * @waits: pool whose line the slot is in; pool->lock
 * @in_line: the slot waits for a page; cleared by kbt_io_served()
 * @posted: when the RDMA Read, the reply, or the message that it is the first of, was
 *	posted (jiffies); 0 if none is under way
 * @pending: posts not completed, plus one while the slot is served, or while
 *	its reply is due or in a shared message
 * @wants: the request came with KBLK_WANTS
 * @writing: the reply was posted behind the RDMA Write of its data
 * @status: enum kblk_status of the reply
 * @covers: for a FLUSH, how many writes of the session it covers
 * @inlined: bytes of data that go with the reply
 * @shared: number of replies in the message that this slot is the first of, or
 *	0
 * @mates: the other slots of that message
 */
struct kbt_io {
	struct list_head link;
	struct kbt_conn *conn;
	struct work_struct work;
	enum kbt_stage stage;
	struct kblk_request request;
	struct kbt_buf *buf;
	DAT_DTO_COOKIE kept;
	void *data;
	struct kbt_pool *waits;
	bool in_line;
	unsigned long posted;
	atomic_t pending;
	bool wants;
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
 * @cookie: its receive buffer
 * @from: its next request; the format was checked
 * @left: requests not taken yet; 0: there is no message
 */
struct kbt_message {
	DAT_DTO_COOKIE cookie;
	const void *from;
	unsigned int left;
};

enum { KBT_CONN_ENDING, KBT_CONN_KEEPS, KBT_CONN_JUDGED };

/* Limit on the connections of one host that have not attached yet */
#define KBT_UNATTACHED_MAX	64

/*
 * struct kbt_conn - a connection
 * @link: in kbt->conns
 * @recv_evd: messages of the client; notifies only, see above
 * @req_evd: completions of Sends and RDMA operations
 * @recv_mutex: serialises kbt_recv() in the upcall and in @recv_work
 * @recv_work: continues to receive where the upcall had to stop
 * @end_work: begins to take the connection down
 * @free_work: frees the connection when no slot is busy
 * @flags: KBT_CONN_ENDING: only its setter queues @end_work; KBT_CONN_KEEPS: a
 *	slot has ->kept; KBT_CONN_JUDGED: @unproven was counted
 * @ended: jiffies when @end_work ran, or the log last said that slots are busy
 * @ns: volume that the connection is attached to, or NULL
 * @share: the share of @ns in the pools
 * @lines: place in each pool; pool->lock
 * @ns_link: in ns->conns while attached; kbt_names
 * @session: session of the client's disk while attached; kbt_names
 * @session_id: see struct kblk_hello, as @epoch and @queue
 * @credits: the most credits that the connection can have
 * @window: credits that it has, with those of requests outstanding and those
 *	withheld; @lock
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
 * @credits_move: the client begins with one credit if need be, and gives back
 *	those that it does not use
 * @hosts: ATTACH tells the client's host
 * @host_id: that host, or nil
 * @challenged: @challenge was sent and has not been used
 * @unproven: ATTACH came with a wrong proof, or without one that is required
 * @challenge: challenge sent to the client
 * @message: message being served; @recv_mutex
 * @overdrawn: the client has sent more requests than its credits allow
 * @malformed: the client has sent what is no request
 * @messages: messages dequeued
 * @arrived: @messages plus those on the EVD, at the last check for silence
 * @heard: when a message last arrived; before ATTACH, when the client
 *	connected; jiffies
 * @patience: silence that is tolerated, jiffies; 0: unlimited
 * @lock: guards @idle, @idle_count, @draining, @words_busy, @throttled,
 *	@withheld, @window, @lanes
 * @idle: idle slots
 * @idle_count: number of idle slots
 * @taking: slot that waits for a page for the next request of @message;
 *	@recv_mutex
 * @told: woken by kbt_io_served() if the connection is ending
 * @draining: the slot that becomes idle last queues @free_work
 * @words_busy: kbt_words() are in use
 * @throttled: the backlog is long, so credits are held back
 * @withheld: credits held back
 * @lanes: replies without data, and replies with data
 * @transfers: RDMA Reads and Writes under way
 * @replies: a struct kblk_reply for each slot, a message of those without data,
 *	and kbt_words()
 * @ios: the slots
 * @host: address of the client
 * @requests: requests of messages that were dequeued
 * @replied: replies posted
 * @delivered: replies whose Send has completed
 * @peer: address and port of the client, for the log
 * @client: name of the client
 */
struct kbt_conn {
	struct list_head link;
	struct kbt *kbt;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE recv_evd;
	DAT_EVD_HANDLE req_evd;
	struct mutex recv_mutex;	/* see above */
	struct work_struct recv_work;
	struct work_struct end_work;
	struct work_struct free_work;
	unsigned long flags;
	unsigned long ended;
	struct kbt_ns *ns;
	struct kbt_share *share;
	struct kbt_line lines[KBT_POOLS];
	struct list_head ns_link;
	struct kbt_session *session;
	u64 session_id;
	u32 epoch;
	u16 queue;
	u16 credits;
	unsigned int window;
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
	spinlock_t lock;		/* see above */
	struct list_head idle;
	unsigned int idle_count;
	struct kbt_io *taking;
	wait_queue_head_t told;
	bool draining;
	bool words_busy;
	bool throttled;
	unsigned int withheld;
	struct kbt_lane lanes[KBT_LANES];
	atomic_t transfers;
	struct kblk_buf replies;
	struct kbt_io *ios;
	struct sockaddr_storage host;
	atomic64_t requests;
	atomic64_t replied;
	atomic64_t delivered;
	char peer[64];
	char client[KBLK_NAME_LEN];
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

static inline bool kbt_conn_ending(struct kbt_conn *conn)
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

/* Return whether @io names memory of the initiator. */
static inline bool kbt_has_remote(const struct kbt_io *io)
{
	return !(io->request.flags & KBLK_INLINED) &&
	       (io->request.opcode == KBLK_OP_READ ||
		io->request.opcode == KBLK_OP_WRITE);
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
enum kblk_status kbt_attach(struct kbt_conn *conn,
			    const struct kblk_attach *attach);
void kbt_detach(struct kbt_conn *conn);
void kbt_end_matching(struct kbt_port *port,
		      bool (*match)(struct kbt_conn *conn, void *what),
		      void *what);
u64 kbt_ns_size(struct kbt_ns *ns);

/* tgt_auth.c */
enum kblk_status kbt_authenticate(struct kbt_conn *conn,
				  const struct kbt_subsys *subsys,
				  const struct kblk_attach *attach);
void kbt_challenge(struct kbt_conn *conn);

/* tgt_session.c */
enum kblk_status kbt_session_join(struct kbt_ns *ns, struct kbt_conn *conn);
void kbt_session_leave(struct kbt_ns *ns, struct kbt_conn *conn);
enum kblk_status kbt_fence(struct kbt_conn *conn,
			   const struct kblk_fence *fence);
void kbt_session_written(struct kbt_io *io);
void kbt_flush_begin(struct kbt_io *io);
int kbt_flush_end(struct kbt_io *io, int err);
void kbt_flush_failed(struct kbt_ns *ns, int err);

/* tgt_adapter.c */
int kbt_port_up(struct kbt_port *port);
void kbt_port_down(struct kbt_port *port);
void kbt_port_wait(struct kbt_port *port);
void kbt_port_retry(struct work_struct *work);

/* tgt_srq.c */
int kbt_srq_start(struct kbt *kbt);
void kbt_srq_stop(struct kbt *kbt);
void kbt_srq_adapt(struct kbt *kbt);
void kbt_srq_calm_down(struct kbt *kbt);
unsigned int kbt_srq_retired(struct kbt *kbt);
void kbt_srq_ran_low(struct kbt *kbt);
const void *kbt_rx_data(DAT_DTO_COOKIE cookie);
void kbt_rx_repost(struct kbt *kbt, DAT_DTO_COOKIE cookie);

/* tgt_credit.c */
void kbt_credits_init(struct kbt *kbt);
void kbt_credits_calm_down(struct kbt *kbt);
bool kbt_credits_begin(struct kbt_conn *conn);
void kbt_credits_end(struct kbt_conn *conn);
u16 kbt_credits(const struct kbt_io *io);
void kbt_credits_back(struct kbt_conn *conn, unsigned int n);
unsigned int kbt_credits_buffers(struct kbt *kbt);

/* tgt_pool.c */
int kbt_pools_start(struct kbt *kbt);
void kbt_pools_stop(struct kbt *kbt);
bool kbt_pool_get(struct kbt_pool *pool, struct kbt_io *io);
void kbt_pool_put(struct kbt_io *io);
bool kbt_pool_cancel(struct kbt_pool *pool, struct kbt_io *io);
void kbt_line_init(struct kbt_line *line);
int kbt_share_join(struct kbt_conn *conn);
void kbt_share_leave(struct kbt_conn *conn);

/* tgt_conn.c */
void kbt_cm_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void kbt_conn_end(struct kbt_conn *conn);
void kbt_conn_end_all(struct kbt *kbt);
void kbt_conn_backlog(struct kbt *kbt, DAT_EP_HANDLE ep);
void kbt_conn_watermarks(struct kbt_conn *conn);

/* tgt_watch.c */
bool kbt_same_host(const struct sockaddr_storage *a,
		   const struct sockaddr_storage *b);
bool kbt_is_shunned(struct kbt *kbt, const struct sockaddr_storage *host);
void kbt_judge(struct kbt_conn *conn);
void kbt_silence_work(struct work_struct *work);

/* tgt_recv.c */
void kbt_recv_work(struct work_struct *work);
void kbt_recv_stop(struct kbt_conn *conn);
void kbt_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

/* tgt_io.c */
int kbt_io_alloc(struct kbt_conn *conn);
void kbt_io_free(struct kbt_conn *conn);
struct kbt_io *kbt_io_get(struct kbt_conn *conn);
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
void kbt_backend_identify(struct kbt_conn *conn, struct kblk_identify *identify);

#endif /* KDAPL_BLK_TGT_H */
