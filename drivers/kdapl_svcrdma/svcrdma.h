/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_svcrdma.ko: RPC-over-RDMA for the kernel's NFS server, over kDAPL.
 * Documentation/kdapl-svcrdma-design.rst explains objects, lives, locks, contexts.
 */
#ifndef KDAPL_SVCRDMA_H
#define KDAPL_SVCRDMA_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/sunrpc/rpc_rdma.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <compat_probe.h>
#include <dat/kdat.h>
#include <dat/kdat_linux.h>
#include <dat/kdat_pool.h>
#include <dat/kdat_portal.h>

/* Without it CONFIG_INIT_STACK_ALL_ZERO would clear the requests of each reply. */
#ifndef __uninitialized
# if __has_attribute(__uninitialized__)
#  define __uninitialized	__attribute__((__uninitialized__))
# else
#  define __uninitialized
# endif
#endif

/*
 * sunrpc finds the class of callbacks by this number, and takes that of rpcrdma for its own: it
 * must not be XPRT_TRANSPORT_RDMA.
 */
#define KS_IDENT	0x6b646e66
/* Longest message, either way: header and what of the RPC message goes inline */
#define KS_INLINE	4096
/* Shortest RPC message: XID, direction, and four words that both directions have */
#define KS_RPC_MIN	24
/* Write chunks and Read chunks that a call may have */
#define KS_WRITES	8
#define KS_READS	16
/* Connections of a listener that no thread has accepted */
#define KS_PENDING	64
/* Requests of an Endpoint, segments of one of them, outstanding Reads */
#define KS_REQUESTS	64
#define KS_IOV		16
#define KS_READS_OUT	16
#define KS_COMPS	8
#define KS_EVD_QLEN	1024
/* Credits: of a new client, and the most that a client is ever granted */
#define KS_WINDOW	4
#define KS_WINDOW_MAX	128
/* Replies to callbacks, which come beside what the credits allow */
#define KS_CALLBACKS	2
/* Messages that nobody wants, before the client is disconnected */
#define KS_USELESS	16
/* Memory of Read lists that one connection may have at once, in pages of 4 KiB */
#define KS_FETCH_PAGES	(SZ_8M / SZ_4K)
/* Seconds without any completion, while some are awaited, until a client is given up */
#define KS_STUCK	15
/* Seconds after which a client that uses few of its credits gets fewer */
#define KS_CALM		10

struct ks_conn;
struct ks_io;

extern struct workqueue_struct *ks_wq;
extern struct kmem_cache *ks_calls;
extern KDAT_SERVER_HANDLE ks_server;
extern struct svc_xprt_class ks_class_kdapl, ks_class_rdma;

/*
 * struct ks_post - something that is posted, in one or several steps
 * @done: called when the last request has completed, in softirq; or when nothing will be posted
 *	any more, with @ok false
 * @link: entry in c->waiting, or in c->failed
 * @io: RDMA, or NULL
 * @tx: message to send behind it, or NULL
 * @answers: @tx is the answer to a message
 * @tells: number of the cut that @tx is the first to tell the client of, or 0
 */
struct ks_post {
	void (*done)(struct ks_conn *c, struct ks_post *p, bool ok);
	struct list_head link;
	struct ks_io *io;
	struct ks_tx *tx;
	bool answers;
	unsigned int tells;
};

struct ks_tx_block;

/*
 * struct ks_tx - a message to be sent
 * @post: its posting
 * @link: entry in a->txs while not in use
 * @block: that it is a part of
 * @va: the message, KS_INLINE bytes
 * @seg: @va for the device; the length is that of the message
 * @invalidate: have the Send invalidate the client's @key
 */
struct ks_tx {
	struct ks_post post;
	struct list_head link;
	struct ks_tx_block *block;
	void *va;
	DAT_LMR_TRIPLET seg;
	bool invalidate;
	u32 key;
};

/* How much of a narrower window the client knows */
enum ks_cut {
	KS_CUT_NONE,			/* the window was not narrowed */
	KS_CUT_UNTOLD,			/* no reply was posted since */
	KS_CUT_POSTED,			/* one was, and has not arrived */
	KS_CUT_TOLD,			/* it has arrived */
};

/* A segment of the client's memory. */
struct ks_seg {
	u64 va;
	u32 key;
	u32 length;
};

/*
 * struct ks_io - RDMA between pages of this host and segments of the client's memory
 * @operation: %DAT_DTO_RDMA_READ or %DAT_DTO_RDMA_WRITE
 * @sg: memory of this host; @max_sg entries, @nsg of them used
 * @iov: the same, mapped by @map
 * @seg: memory of the client; @max_seg entries, @nseg of them used. As long as @iov together
 * @pages: pages to release when the RDMA is over
 * @at: what is to be posted next: index and offset in @iov and in @seg
 * @r: requests that are posted together, with @remote and @part
 */
struct ks_io {
	DAT_DTOS operation;
	bool mapped;
	KDAT_SG_HANDLE map;
	unsigned int max_sg, nsg;
	unsigned int max_seg, nseg;
	unsigned int npages;
	DAT_COUNT niov;
	struct scatterlist *sg;
	DAT_LMR_TRIPLET *iov;
	struct ks_seg *seg;
	struct page **pages;
	struct ks_io_at {
		unsigned int iov, seg;
		u32 iov_offset, seg_offset;
	} at;
	KDAT_REQUEST r[KDAT_MAX_REQUESTS];
	DAT_RMR_TRIPLET remote[KDAT_MAX_REQUESTS];
	DAT_LMR_TRIPLET part[KDAT_MAX_SEGMENTS];
};

/*
 * struct ks_chunk - a Write chunk or Reply chunk of a call
 * @seg: its segments in the message
 * @nseg: number of segments
 * @length: bytes of all segments, at most U32_MAX
 */
struct ks_chunk {
	const __be32 *seg;
	unsigned int nseg;
	u32 length;
};

/* A Read chunk of a call: all segments of one position. */
struct ks_read {
	u32 position;
	u32 length;
};

/*
 * struct ks_header - the transport header of a message
 * @read: items of the Read list in the message
 * @nread: number of items
 * @reads: the Read chunks by position; those of length 0 are left out
 * @base: bytes of the RPC message without the Read chunks of other positions than 0
 * @long_call: the RPC message is at position 0 of the Read list
 * @key: key of all segments, if @nkeys is 1
 * @nkeys: number of different keys in the message, at most 2
 * @length: bytes of the header
 */
struct ks_header {
	__be32 xid;
	u32 credits;
	u32 proc;
	const __be32 *read;
	unsigned int nread;
	unsigned int nreads;
	struct ks_read reads[KS_READS];
	unsigned int nwrites;
	struct ks_chunk writes[KS_WRITES];
	bool has_reply;
	struct ks_chunk reply;
	bool long_call;
	u32 base;
	u32 key;
	unsigned int nkeys;
	unsigned int length;
};

/*
 * struct ks_call - a call that is being received, executed or answered
 * @buf: the message; NULL when it is answered
 * @link: entry in c->fetched
 * @post: posting of the RDMA Reads
 * @results: where the data for the Write chunks is in the reply
 * @too_long: a result is longer than its Write chunk
 * @answered: an answer was submitted
 * @npages: pages that count in c->fetching
 */
struct ks_call {
	struct ks_conn *c;
	KDAT_POOL_BUF *buf;
	struct list_head link;
	struct ks_post post;
	struct ks_header h;
	unsigned int nresults;
	struct {
		u32 offset;
		u32 length;
	} results[KS_WRITES];
	bool too_long;
	bool answered;
	unsigned int npages;
};

/* Counters of an adapter; stats.c names them. */
enum ks_stat {
	KS_STAT_REQUESTS,		/* connection requests */
	KS_STAT_REFUSED,		/* connection requests that were rejected */
	KS_STAT_CALLS,			/* messages received */
	KS_STAT_ERRORS,			/* calls answered with an error of the transport */
	KS_STAT_SOFT,			/* soft watermark events */
	KS_STAT_BROKEN,			/* connections ended for what the client has done */
	KS_STATS
};

/* An EVD for messages and requests of many connections. */
struct ks_comp {
	struct ks_adapter *a;
	DAT_EVD_HANDLE evd;
};

/*
 * struct ks_adapter - an adapter with what its connections share
 * @mutex: protects @conns
 * @tick: looks at each connection once a second
 * @tx_lock: protects @txs
 * @txs: messages not in use
 * @tx_mutex: protects @tx_blocks
 */
struct ks_adapter {
	KDAT_ADAPTER k;
	unsigned int ncomps;
	struct ks_comp comps[KS_COMPS];
	atomic_t next_comp;
	struct mutex mutex;		/* @conns */
	struct list_head conns;
	struct delayed_work tick;
	spinlock_t tx_lock;		/* @txs */
	struct list_head txs;
	struct mutex tx_mutex;		/* @tx_blocks */
	struct list_head tx_blocks;
	atomic_long_t stats[KS_STATS];
	bool invalidate;
	int max_iov;
	int max_read_iov;
	int max_reads;
	u32 max_rdma;
};

/*
 * struct ks_listener - an entry of nfsd's portlist
 * @ready: @xprt can be used; @lock
 * @lock: protects @pending and @npending
 * @pending: requests that no thread has taken
 */
struct ks_listener {
	struct svc_xprt xprt;
	KDAT_PORTAL_HANDLE portal;
	spinlock_t lock;		/* @ready, @pending, @npending */
	bool ready;
	struct list_head pending;
	unsigned int npending;
};

/*
 * struct ks_request - a connection request that waits for a thread
 * @cm: the client's private message; magic 0 if there was none
 */
struct ks_request {
	struct list_head link;
	struct ks_adapter *a;
	DAT_CR_HANDLE cr;
	struct sockaddr_storage remote;
	struct rpcrdma_connect_private cm;
	char peer[KDAT_HOST_NAME_LENGTH];
};

/*
 * struct ks_conn - a connection
 * @link: entry in a->conns
 * @inline_out: longest message that the client takes
 * @free_work: frees the connection
 * @credit_work: makes the window wider
 * @marks_mutex: held while the watermarks are set
 * @wq: woken when @posted becomes 0
 * @broken: ks_conn_blame() has told why it ends
 * @down: the last event of the Endpoint has come
 * @open: the connection is established
 * @lock: protects what follows
 * @received: messages that no thread has taken
 * @fetched: calls whose Read list was fetched
 * @fetching: pages of calls with Read lists, see KS_FETCH_PAGES
 * @waiting: what found no room to be posted, in order
 * @failed: what was not, or not wholly, posted, as the connection has ended
 * @stopped: nothing is posted any more
 * @posted: requests whose completion is awaited
 * @completed: number of requests that have completed
 * @last_completed, @stuck: as the tick last saw it; for how many seconds
 * @held: messages that were received and not answered
 * @peak: most of them since the tick looked
 * @calm: for how many seconds few credits were used
 * @window: credits that replies carry
 * @cut: how much the client knows of a narrower window
 * @cuts: number of the last cut
 * @told: for how many seconds it has known
 * @asked: credits that the client wants
 * @reserved: buffers that are reserved: for the widest window that the client may still use,
 *	and callbacks
 * @useless: messages that nobody wanted
 * @part: completes when a part of something was posted
 */
struct ks_conn {
	struct svc_xprt xprt;
	struct ks_adapter *a;
	struct ks_comp *comp;
	DAT_EP_HANDLE ep;
	struct list_head link;
	unsigned int inline_out;
	bool invalidate;
	struct work_struct free_work;
	struct work_struct credit_work;
	struct mutex marks_mutex;	/* watermarks */
	wait_queue_head_t wq;
	bool broken;
	bool down;
	bool open;
	spinlock_t lock;		/* all below */
	struct list_head received;
	struct list_head fetched;
	unsigned int fetching;
	struct list_head waiting;
	struct list_head failed;
	bool stopped;
	unsigned int posted;
	unsigned int completed;
	unsigned int last_completed;
	unsigned int stuck;
	unsigned int held;
	unsigned int peak;
	unsigned int calm;
	unsigned int window;
	enum ks_cut cut;
	unsigned int cuts;
	unsigned int told;
	unsigned int asked;
	unsigned int reserved;
	unsigned int useless;
	struct ks_post part;
	char peer[KDAT_HOST_NAME_LENGTH];
};

static inline struct ks_conn *ks_conn(struct svc_xprt *xprt)
{
	return container_of(xprt, struct ks_conn, xprt);
}

static inline void ks_count(struct ks_adapter *a, enum ks_stat stat)
{
	atomic_long_inc(&a->stats[stat]);
}

/* adapter.c */
extern const KDAT_SERVER_ATTR ks_server_attr;
const char *ks_strerror(DAT_RETURN ret);

/* listen.c */
struct svc_xprt *ks_create_kdapl(struct svc_serv *serv, struct net *net, struct sockaddr *sa,
				 int len, int flags);
struct svc_xprt *ks_create_rdma(struct svc_serv *serv, struct net *net, struct sockaddr *sa,
				int len, int flags);
struct svc_xprt *ks_accept(struct svc_xprt *xprt);
void ks_listener_detach(struct ks_listener *l);
void ks_request(KDAT_ADAPTER *adapter, DAT_PVOID context, DAT_CR_HANDLE cr,
		const DAT_CR_PARAM *param, const KDAT_HOST *host);

/* conn.c */
struct ks_conn *ks_conn_new(struct ks_listener *l, const struct ks_request *r);
bool ks_conn_blame(struct ks_conn *c, const char *what, const char *why);
void ks_conn_break(struct ks_conn *c, const char *why);
void ks_conn_fail(struct ks_conn *c, DAT_DTOS operation, const char *why);
const char *ks_operation_name(DAT_DTOS operation);
void ks_conn_event(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
DAT_BOOLEAN ks_async(KDAT_ADAPTER *adapter, const DAT_EVENT *event);
int ks_has_wspace(struct svc_xprt *xprt);
void ks_conn_look(struct ks_conn *c);
void ks_detach(struct svc_xprt *xprt);
void ks_free(struct svc_xprt *xprt);
void ks_tick(struct work_struct *work);

/* credit.c */
bool ks_credit_begin(struct ks_conn *c);
DAT_RETURN ks_credit_marks(struct ks_conn *c);
void ks_credit_stop(struct ks_conn *c);
void ks_credit_end(struct ks_conn *c);
void ks_credit_work(struct work_struct *work);
void ks_credit_received(struct ks_conn *c);
void ks_credit_asked(struct ks_conn *c, u32 credits);
void ks_credit_soft(struct ks_conn *c);
void ks_credit_tick(struct ks_conn *c);
u32 ks_credit_grant(struct ks_conn *c);
void ks_credit_posted(struct ks_conn *c);
void ks_credit_told(struct ks_conn *c, unsigned int cut);

/* header.c */
int ks_decode(struct ks_header *h, const void *message, unsigned int length);
__be32 *ks_encode_chunk(__be32 *p, const struct ks_chunk *chunk, u32 used);
void ks_seg_decode(const __be32 *p, struct ks_seg *seg);
const __be32 *ks_read_item(const struct ks_header *h, unsigned int i, u32 *position,
			   struct ks_seg *seg);

/* recv.c */
void ks_comp_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
int ks_recvfrom(struct svc_rqst *rqstp);
void ks_call_free(struct ks_call *call);
void ks_release_ctxt(struct svc_xprt *xprt, void *ctxt);

/* fetch.c */
int ks_fetch(struct ks_call *call, struct svc_rqst *rqstp);
int ks_fetched(struct ks_call *call, struct svc_rqst *rqstp);

/* reply.c */
int ks_result_payload(struct svc_rqst *rqstp, unsigned int offset, unsigned int length);
int ks_sendto(struct svc_rqst *rqstp);
void ks_send_error(struct ks_call *call, u32 code);
void ks_sent(struct ks_conn *c, struct ks_post *p, bool ok);

/* bc.c */
int ks_bc_start(void);
void ks_bc_stop(void);
bool ks_bc_answer(struct ks_call *call);

/* post.c */
void ks_submit(struct ks_conn *c, struct ks_post *p);
void ks_completed(struct ks_conn *c, struct ks_post *p, bool ok);
void ks_retry(struct ks_conn *c);

/* io.c */
struct ks_io *ks_io_alloc(DAT_DTOS operation, unsigned int sg, unsigned int seg,
			  unsigned int pages);
bool ks_io_unmap(struct ks_io *io);
void ks_io_free(struct ks_io *io);
bool ks_io_add_page(struct ks_io *io, struct page *page, unsigned int offset,
		    unsigned int length);
bool ks_io_add_seg(struct ks_io *io, const struct ks_seg *seg);
bool ks_io_add_chunk(struct ks_io *io, const struct ks_chunk *chunk, u32 length);
int ks_io_map(struct ks_io *io, struct ks_adapter *a);
bool ks_io_left(const struct ks_io *io);
int ks_io_take(struct ks_io *io, struct ks_adapter *a, int n, int used);

/* tx.c */
void ks_txs_init(struct ks_adapter *a);
void ks_txs_free(struct ks_adapter *a);
struct ks_tx *ks_tx_get(struct ks_adapter *a);
void ks_tx_put(struct ks_adapter *a, struct ks_tx *tx);
void ks_tx_trim(struct ks_adapter *a);
void ks_tx_request(struct ks_tx *tx, KDAT_REQUEST *r);

/* stats.c */
void ks_stats_start(void);
void ks_stats_stop(void);

/* pages.c */
void ks_pages_none(struct svc_rqst *rqstp);
unsigned int ks_pages_most(struct svc_rqst *rqstp);
void ks_pages_give(struct svc_rqst *rqstp, struct page **pages, unsigned int n);
unsigned int ks_pages_used(struct svc_rqst *rqstp);
void ks_pages_take(struct svc_rqst *rqstp, struct page **pages);
void ks_pages_keep_head(struct svc_rqst *rqstp);
bool ks_pages_have(struct svc_rqst *rqstp, const struct page *page);

#endif
