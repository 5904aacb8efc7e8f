/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_blk_tgt.ko: what its files share.
 *
 *   tgt_main.c       module, statistics
 *   tgt_configfs.c   what the administrator sees: subsystems, clients
 *   tgt_ports.c      and ports
 *   tgt_ns.c         namespaces: opening a file or block device, attaching
 *   tgt_adapter.c    a port at work: adapter, listening, hot-unplug
 *   tgt_srq.c        receive buffers of all clients, the low watermark
 *   tgt_pool.c       buffers for data
 *   tgt_conn.c       connections: accepting, ending
 *   tgt_recv.c       requests: receiving, checking
 *   tgt_io.c         requests: serving
 *   tgt_reply.c      requests: moving data, replying
 *   tgt_backend.c    requests: the volume
 *
 * A connection is an Endpoint with two Event Dispatchers and io_depth slots. A
 * message stays on the receive EVD, unreaped, until a slot is free for its first
 * request. So what kDAPL counts as held by the Endpoint is the client's backlog, and
 * its high watermarks are about the client's manners: a client within its credits
 * never gets beyond the hard one.
 *
 * Locks, outermost first; none is held while waiting for a connection to end but
 * the first:
 *
 *   kbt_config        mutex     configfs: objects, their attributes
 *   port->mutex       mutex     the adapter of a port comes or goes
 *   kbt->mutex        mutex     connections of an adapter
 *   kbt->srq_mutex    mutex     size of the shared receive queue
 *   conn->recv_mutex  mutex     messages of a connection
 *   kbt_names         spinlock  which names exist and who may use them
 *   conn->lock        spinlock  slots and credits of a connection
 *   pool->lock        spinlock  buffers
 */
#ifndef KDAPL_BLK_TGT_H
#define KDAPL_BLK_TGT_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/configfs.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <dat/kdat.h>
#include "kdapl_blk_proto.h"
#include "util.h"

enum kbt_stat {
	KBT_STAT_CONNECTS,
	KBT_STAT_REFUSALS,
	KBT_STAT_DISCONNECTS,
	KBT_STAT_REQUESTS,
	KBT_STAT_READS,
	KBT_STAT_WRITES,
	KBT_STAT_READ_BYTES,
	KBT_STAT_WRITE_BYTES,
	KBT_STAT_ERROR_REPLIES,
	KBT_STAT_PROTOCOL_ERRORS,
	KBT_STAT_DTO_ERRORS,
	KBT_STAT_LOW_WATERMARK,
	KBT_STAT_THROTTLED,
	KBT_STAT_BROKEN,
	KBT_STAT_CUT_OFF,
	KBT_STAT_SILENT,
	KBT_STAT_STUCK,
	KBT_STATS
};

/* ---- Configuration ------------------------------------------------------- */

/* A client by name; whoever calls himself so is one. */
struct kbt_client {
	struct config_group group;
};

/* A subsystem: volumes under one name. @namespaces and @allowed: kbt_names. */
struct kbt_subsys {
	struct config_group group;
	struct config_group namespaces_group;
	struct config_group allowed_group;
	struct list_head namespaces;
	struct list_head allowed;
	bool allow_any;
};

/* An entry of subsys->allowed or of port->subsystems. */
struct kbt_link {
	struct list_head link;
	void *to;
};

/*
 * struct kbt_ns - a volume
 * @link: in subsys->namespaces
 * @path: what to serve
 * @enabled: may be attached to; kbt_names
 * @users: connections attached; kbt_names
 * @idle: woken when @users becomes 0
 * @file: open while enabled
 * @bdev: what @file is, if it is a block device
 */
struct kbt_ns {
	struct config_group group;
	struct list_head link;
	struct kbt_subsys *subsys;
	u32 nsid;
	char *path;
	bool read_only;
	bool enabled;
	unsigned int users;
	wait_queue_head_t idle;
	struct file *file;
	struct block_device *bdev;
	u32 block_size;
};

/* Set by the administrator; constant while the port has subsystems. */
struct kbt_params {
	char ia[DAT_NAME_MAX_LENGTH];
	u32 conn_qual;
	u32 credits;
	u32 io_depth;
	u32 max_conns;
	u32 srq_size;
	u32 srq_per_conn;
	u32 srq_max;
	u32 srq_low;
	u32 attach_ms;
	u32 penalty_ms;
	u32 reply_ms;
	u32 pages;
	u32 buffers;
	u32 max_transfer;
};

/*
 * struct kbt_port - where a target listens
 * @link: in kbt_ports, under kbt_config
 * @subsystems: offered here; kbt_names
 * @mutex: guards @kbt and @wanted
 * @kbt: the adapter at work, NULL while there is none
 * @wanted: the port has subsystems
 * @retry_work: brings the port up again when its adapter has gone and come back
 */
struct kbt_port {
	struct config_group group;
	struct config_group subsys_group;
	struct list_head link;
	struct list_head subsystems;
	struct kbt_params params;
	struct mutex mutex;		/* see above */
	struct kbt *kbt;
	bool wanted;
	struct delayed_work retry_work;
	atomic64_t stats[KBT_STATS];
};

/* ---- A port at work ------------------------------------------------------ */

struct kbt_io;

/* Buffers of one size for all connections, given out in turn. */
struct kbt_pool {
	spinlock_t lock;		/* all of this */
	struct list_head free;
	struct list_head waiting;
	struct kbt_buf *all;
	unsigned int n;
};

struct kbt_buf {
	struct list_head link;
	struct kbt_pool *pool;
	struct kblk_buf mem;
};

/* A host that nobody may connect from until some time has passed. */
struct kbt_shunned {
	struct sockaddr_storage host;
	unsigned long until;
};

#define KBT_SHUNNED	16

/*
 * struct kbt - the adapter of a port
 * @async_evd: belongs to @ia, like @cm_evd and @pz
 * @cm_evd: connection requests and connection events of all clients
 * @invalidate: the device can invalidate remotely
 * @data_replies: replies with data in a message
 * @srq: receives of all connections
 * @chunks: the buffers for it
 * @srq_posted: how many there are
 * @srq_low: low watermark
 * @srq_work: adapts the queue to the number of connections, and makes it shorter
 *	again when what made it longer is over
 * @low_work: raises the low watermark again when the queue has recovered
 * @silence_work: looks for clients that have died silently
 * @wq: runs what is to be done for requests
 * @io_wq: and what may block on the medium
 * @end_wq: ends connections, whose requests it waits for
 * @pages: buffers of KBLK_INLINE bytes
 * @pool: buffers of max_transfer bytes
 * @mutex: guards @conns, @conn_count, @stopping, @shunned and @shun_next
 * @shunned: hosts of clients that were cut off; the next goes to @shun_next
 * @idle: woken when the last connection has gone
 * @gone: the device is
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
	struct delayed_work srq_work;
	struct delayed_work low_work;

	struct kbt_pool pages;
	struct kbt_pool pool;
	struct delayed_work silence_work;
	struct workqueue_struct *wq;
	struct workqueue_struct *io_wq;
	struct workqueue_struct *end_wq;
	struct mutex mutex;		/* connections */
	struct list_head conns;
	unsigned int conn_count;
	bool stopping;
	struct kbt_shunned shunned[KBT_SHUNNED];
	unsigned int shun_next;
	bool gone;
	wait_queue_head_t idle;
};

enum kbt_stage {
	KBT_IO_EMPTY,		/* no request yet, or waiting for a page for it */
	KBT_IO_START,		/* not looked at, or waiting for a large buffer */
	KBT_IO_RUN,		/* has what the volume needs */
	KBT_IO_BLOCK		/* where it may block */
};

/*
 * struct kbt_lane - replies that share messages
 * @due: slots whose replies wait for a message; @due_count of them, of @due_size bytes
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
 * @link: in conn->idle, pool->waiting, lane->due or the @mates of another slot
 * @work: takes the next step in process context
 * @request: as received; checked by kbt_check() before use
 * @buf: for the data: a page to begin with, a large buffer if it is not inline
 * @pending: posts not completed, plus one while the slot is being worked on, or its
 *	reply is due or in a message of several
 * @fetching: the post outstanding is the RDMA Read of the data
 * @inlined: bytes of data that go with the reply
 * @shared: the reply is the first of so many in a message; 0: it is not
 * @mates: slots of the others
 * @status: enum kblk_status of the reply
 */
struct kbt_io {
	struct list_head link;
	struct kbt_conn *conn;
	struct work_struct work;
	enum kbt_stage stage;
	struct kblk_request request;
	struct kbt_buf *buf;
	atomic_t pending;
	bool fetching;
	u16 status;
	u32 inlined;
	unsigned int shared;
	struct list_head mates;
	struct bio bio;
	struct bio_vec bvec;
};

/*
 * struct kbt_message - a message of a client
 * @cookie: the receive buffer it is in
 * @from: its next request, checked
 * @left: requests that are still to be taken; 0: there is no message
 */
struct kbt_message {
	DAT_DTO_COOKIE cookie;
	const void *from;
	unsigned int left;
};

enum { KBT_CONN_ENDING };

/*
 * struct kbt_conn - a connection
 * @link: in kbt->conns
 * @recv_evd: its requests; notifies only, see above
 * @req_evd: completions of what is posted for it
 * @recv_mutex: held by who takes messages off @recv_evd, the upcall or @recv_work
 * @recv_work: takes them if the upcall could not
 * @end_work: takes the connection down and frees it
 * @flags: KBT_CONN_ENDING: only who sets it may queue @end_work
 * @ns: the volume it is attached to, NULL before
 * @session: see struct kblk_hello; @epoch as well
 * @credits: what it was given at first
 * @heard: when something last came; until it is attached, when it came itself;
 *	jiffies
 * @patience: silence that is allowed, jiffies; 0: any
 * @lock: guards @idle, @idle_count, @throttled, @withheld, @lanes
 * @all_idle: woken when no slot is busy
 * @in_line: a slot waits for a page; one at a time, so clients take turns
 * @throttled: its backlog is long: credits are held back
 * @withheld: credits held back
 * @batch: replies may share a message, see struct kblk_reply
 * @requests_batch: and so may requests
 * @message: the one whose requests are being taken, under @recv_mutex
 * @overdrawn: it has sent more requests than its credits allow
 * @lanes: replies without data, and those with
 * @transfers: RDMA Reads and Writes under way
 * @replies: one struct kblk_reply for each slot, and a message of those without data
 * @host: its address
 * @peer: the same for messages, with the port
 * @requests: of messages that were taken
 * @replied: replies posted, @delivered: that have arrived
 * @moved: when one did, or the first of several was posted, jiffies
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
	unsigned long flags;
	struct kbt_ns *ns;
	u64 session;
	u32 epoch;
	u16 queue;
	u16 credits;
	u32 reply_size;
	bool invalidate;
	bool batch;
	bool requests_batch;
	struct kbt_message message;
	bool overdrawn;
	unsigned long heard;
	unsigned long patience;
	spinlock_t lock;		/* see above */
	struct list_head idle;
	unsigned int idle_count;
	bool in_line;
	wait_queue_head_t all_idle;
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
	unsigned long moved;
	char peer[64];
	char client[KBLK_NAME_LEN];
};

extern struct mutex kbt_config;
extern spinlock_t kbt_names;
extern struct list_head kbt_ports;

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

/* Is there memory of the initiator that the request names? */
static inline bool kbt_has_remote(const struct kbt_io *io)
{
	return !(io->request.flags & KBLK_INLINED) &&
	       (io->request.opcode == KBLK_OP_READ ||
		io->request.opcode == KBLK_OP_WRITE);
}

/* tgt_main.c */
extern u64 kbt_instance;
ssize_t kbt_stats_print(struct kbt_port *port, char *page);
ssize_t kbt_conns_print(struct kbt_port *port, char *page);

/* tgt_configfs.c */
int kbt_configfs_register(void);
void kbt_configfs_unregister(void);
struct kbt_subsys *kbt_subsys_of(struct config_item *item);

/* tgt_ports.c */
extern const struct config_item_type kbt_ports_type;

/* tgt_ns.c */
struct config_group *kbt_ns_make(struct kbt_subsys *subsys, u32 nsid);
void kbt_ns_drop(struct config_item *item);
enum kblk_status kbt_attach(struct kbt_conn *conn,
			    const struct kblk_attach *attach);
void kbt_detach(struct kbt_conn *conn);
void kbt_end_matching(struct kbt_port *port,
		      bool (*match)(struct kbt_conn *conn, void *what),
		      void *what);
u64 kbt_ns_size(struct kbt_ns *ns);

/* tgt_adapter.c */
int kbt_port_up(struct kbt_port *port);
void kbt_port_down(struct kbt_port *port);
void kbt_port_retry(struct work_struct *work);

/* tgt_srq.c */
struct kbt_rx;
int kbt_srq_start(struct kbt *kbt);
void kbt_srq_stop(struct kbt *kbt);
void kbt_srq_adapt(struct kbt *kbt);
unsigned int kbt_srq_retired(struct kbt *kbt);
void kbt_srq_ran_low(struct kbt *kbt);
const void *kbt_rx_data(DAT_DTO_COOKIE cookie);
void kbt_rx_repost(struct kbt *kbt, DAT_DTO_COOKIE cookie);

/* tgt_pool.c */
int kbt_pools_start(struct kbt *kbt);
void kbt_pools_stop(struct kbt *kbt);
bool kbt_pool_get(struct kbt_pool *pool, struct kbt_io *io);
void kbt_pool_put(struct kbt_io *io);
bool kbt_pool_cancel(struct kbt_pool *pool, struct kbt_io *io);

/* tgt_conn.c */
void kbt_cm_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void kbt_conn_end(struct kbt_conn *conn);
void kbt_conn_end_all(struct kbt *kbt);
void kbt_conn_backlog(struct kbt *kbt, DAT_EP_HANDLE ep);
void kbt_conn_watermarks(struct kbt_conn *conn);
void kbt_silence_work(struct work_struct *work);

/* tgt_recv.c */
void kbt_recv_work(struct work_struct *work);
void kbt_recv_stop(struct kbt_conn *conn);
void kbt_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

/* tgt_io.c */
int kbt_io_alloc(struct kbt_conn *conn);
void kbt_io_free(struct kbt_conn *conn);
struct kbt_io *kbt_io_get(struct kbt_conn *conn);
void kbt_io_unget(struct kbt_io *io);
void kbt_io_ready(struct kbt_io *io);
void kbt_io_put(struct kbt_io *io);
void kbt_io_step(struct kbt_io *io);
void kbt_io_work(struct work_struct *work);

/* tgt_reply.c */
DAT_RETURN kbt_post_data(struct kbt_io *io);
void kbt_io_reply(struct kbt_io *io, enum kblk_status status);
void kbt_req_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

/* tgt_backend.c */
void kbt_backend_run(struct kbt_io *io);
bool kbt_backend_blocks(struct kbt_io *io);
void kbt_backend_identify(struct kbt_ns *ns, struct kblk_identify *identify);

#endif /* KDAPL_BLK_TGT_H */
