/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_isert.ko: the iSER transport of the kernel's iSCSI target (LIO) over kDAPL.
 * Documentation/kdapl-isert-design.rst explains objects, lives, locks, contexts.
 */
#ifndef KDAPL_ISERT_H
#define KDAPL_ISERT_H

#include <linux/blk_types.h>
#include <linux/completion.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <scsi/iscsi_proto.h>
#include <scsi/iser.h>
#include <target/target_core_base.h>
#include <target/target_core_fabric.h>
#include <target/iscsi/iscsi_transport.h>
#include <dat/kdat.h>
#include <dat/kdat_linux.h>
#include <dat/kdat_portal.h>

/* Without it CONFIG_INIT_STACK_ALL_ZERO would clear the requests of each answer. */
#ifndef __uninitialized
# if __has_attribute(__uninitialized__)
#  define __uninitialized	__attribute__((__uninitialized__))
# else
#  define __uninitialized
# endif
#endif

/* Headers of a PDU: the one of iSER and the basic one of iSCSI */
#define KI_HEADERS		(sizeof(struct iser_ctrl) + ISCSI_HDR_LEN)
/* Data behind the headers of an answer that is built here, such as sense data */
#define KI_TX_DATA		176
#define KI_TX_LEN		256
#define KI_TXS			128
#define KI_TX_ORDER		get_order(KI_TXS * KI_TX_LEN)
/*
 * Size of a receive buffer: room for headers, additional headers and the longest data segment;
 * three buffers lie in 32 KiB.
 */
#define KI_BUF_LEN		(21 * SECTOR_SIZE)
/* Longest data segment that an initiator may send, and the most pages it lies in */
#define KI_DATA_LEN		8192
#define KI_DATA_PAGES		3
#define KI_REQUESTS		128
#define KI_IOV			16
#define KI_READS		128
#define KI_INLINE_IOV		8
#define KI_COMPS		8
#define KI_EVD_QLEN		1024
/* Connections of a portal that LIO has not taken */
#define KI_PENDING		64
/* Turns for which a portal remembers whose they were */
#define KI_RECENT		8U
/* Messages before LIO's receiving thread runs, at the least; longest silence of a peer */
#define KI_UNREAD		64
#define KI_SILENCE		(15 * HZ)
/* How long a command waits for memory, and the pause between two tries */
#define KI_PATIENCE		HZ
#define KI_PAUSE		(HZ / 50)

struct ki_adapter;
struct ki_conn;

extern struct workqueue_struct *ki_wq, *ki_end_wq;

/*
 * struct ki_wr - the function that is called when a posted request has completed
 * @done: called in process context; under comp->mutex, unless the request was never posted
 */
struct ki_wr {
	void (*done)(struct ki_conn *c, struct ki_wr *wr, bool ok);
};

/*
 * struct ki_comp - an EVD for messages and requests of many connections
 * @mutex: held while an upcall handles an event: a function that has freed an Endpoint takes
 *	the mutex to wait for upcalls about the Endpoint
 * @events: number of events handled
 * @lane_lock: protects the lanes
 * @lanes: lanes with something to execute, one for each backend
 * @idle_lanes: all other lanes
 */
struct ki_comp {
	struct ki_adapter *a;
	DAT_EVD_HANDLE evd;
	struct mutex mutex;		/* held in upcalls */
	unsigned int events;
	spinlock_t lane_lock;		/* @lanes, @idle_lanes */
	struct list_head lanes;
	struct list_head idle_lanes;
};

/* Counters of an adapter; stats.c names them. */
enum ki_stat {
	KI_STAT_REQUESTS,		/* connection requests */
	KI_STAT_REFUSED,		/* connection requests that were rejected */
	KI_STAT_LOGINS,			/* connections that began to serve commands */
	KI_STAT_LOW,			/* low watermark events */
	KI_STAT_SOFT,			/* soft watermark events */
	KI_STAT_HARD,			/* connections ended for exceeding their window */
	KI_STAT_BROKEN,			/* connections that broke the protocol */
	KI_STAT_PINGS,			/* NOP-Ins for silent sessions */
	KI_STATS
};

/*
 * struct ki_adapter - an adapter, shared by all portals and connections on it
 * @conns: number of connections
 * @lent: buffers that backends write from
 * @comps: see struct ki_comp; a connection has one of them
 * @next_comp: index in @comps for the next connection
 * @cm_mutex: like ki_comp.mutex, for the events of connections; protects @conn_list
 * @conn_list: connections
 * @ping_work: checks each connection once a second
 */
struct ki_adapter {
	KDAT_ADAPTER base;
	atomic_t conns;
	atomic_t lent;
	atomic_long_t stats[KI_STATS];
	unsigned int ncomps;
	struct ki_comp comps[KI_COMPS];
	atomic_t next_comp;
	struct mutex cm_mutex;		/* @conn_list, held in upcalls */
	struct list_head conn_list;
	struct delayed_work ping_work;
	bool invalidate;
	int max_iov;
	int max_read_iov;
	int max_reads;
	u64 max_rdma;
};

/* Progress of a connection */
enum ki_state {
	KI_LOGIN,			/* messages are login requests */
	KI_LOGGED_IN,			/* messages wait for LIO's receiving thread */
	KI_FULL,			/* messages are handled as they come */
};

/*
 * struct ki_tx - headers and short data of an answer
 * @wr: completion of the answer
 * @next: next answer in c->txs, while not in use
 * @cmd: the command that is answered; NULL for login
 * @va: headers and short data, KI_TX_LEN bytes
 * @seg: @va for the device
 * @map: mapping of longer data
 * @text: memory that ki_tx_put() frees
 */
struct ki_tx {
	struct ki_wr wr;
	struct ki_tx *next;
	struct iscsit_cmd *cmd;
	u8 *va;
	DAT_LMR_TRIPLET seg;
	KDAT_SG_HANDLE map;
	void *text;
	struct scatterlist sg;
	DAT_LMR_TRIPLET data;
};

/*
 * struct ki_conn - a connection
 * @conn: LIO's connection, once the thread of the portal has taken this one
 * @taker: portal whose thread deals with the connection; changed under ki_taken_lock and @lock
 * @id: number, for tracepoints and statistics
 * @iqn: name of the initiator once it has logged in, or NULL
 * @portal: that the connection came to, until LIO takes it or it has ended; a->cm_mutex
 * @link: entry in ki_portal.pending until LIO takes the connection, later in ki_lingering
 * @accepting: ki_request() is accepting the connection; portal->lock
 * @adapter_link: entry in a->conn_list
 * @wq: woken when @down, @login_buf or @logout_sent is set; LIO's receiving thread sleeps
 *	there, so nothing that happens for each command wakes it
 * @joined: the SRQ counts the connection
 * @reserved: buffers of the SRQ that are reserved for the connection
 * @window: commands that may be outstanding
 * @hard: messages that may lie unread; 0 before login is complete
 * @most: PDUs of any kind that may be unanswered
 * @unanswered: PDUs that are unanswered: from ki_pdu_lent() until LIO frees the command
 * @beyond: number of commands beyond MaxCmdSN; comp->mutex
 * @completed: number of requests that have completed; comp->mutex
 * @last_completed: @completed as ping_work last saw it
 * @last_events: events of @comp as ping_work last saw them
 * @last_statsn: StatSN of the last answer as ping_work last saw it
 * @silent: seconds without a change of @completed and StatSN; a->ping_work
 * @room: woken when @posted becomes 0, or an answer is put back, or @down
 * @down: the last event of the Endpoint has come
 * @broken: ki_conn_blame() has ended it; its messages are dropped
 * @open: the connection was established, and the peer may log in; set after @since
 * @since: when the connection was requested, and later, when it was established, jiffies
 * @posted: requests whose completion is awaited
 * @remote: address that the peer has written into its request; only over iWARP it is proven
 * @host: which host the peer is of, once ki_host() says so: the GID, or over iWARP the address
 * @lock: protects the members from @state to @look
 * @state: enum ki_state
 * @login_buf: login request that LIO has not read
 * @login_answered: LIO has answered the last login request
 * @negotiates: LIO has answered a request without refusing it, so conn->login_work can run
 * @answering: LIO is in ki_put_login_tx()
 * @sending: answers to login requests that have not completed
 * @turn: when a login request last came, or its answer was posted or taken, jiffies
 * @spent: how long LIO has waited for the peer in its login, but for the time since @turn, jiffies
 * @refused: the last answer is a refusal: LIO takes the connection down
 * @lingers: LIO has forgotten the connection, and @linger ends it: ki_conn_linger()
 * @closing: LIO takes the connection down, and wants no login request
 * @logout_seen: a logout that ends the connection has come; comp->mutex
 * @unread: messages that came before LIO's receiving thread
 * @nunread: number of messages that were put in @unread
 * @txs: answers not in use
 * @waiting: commands that found no room to post, or no free answer, in order
 * @starved: commands that found no memory
 * @pushing: ki_conn_retry() is posting commands of @waiting
 * @repush: ki_conn_retry() is to look at @waiting again
 * @stopped: no command enters @waiting or @starved any more: ki_queue_stop()
 * @tries: how often the first command in @waiting was refused while nothing was posted
 * @again: tries @waiting and @starved again after KI_PAUSE; queued with @lock held
 * @linger: ends a connection that was refused
 * @ended: frees a connection that has ended before LIO has taken it
 * @lent: buffers from which backends write, see ki_buf_lend()
 * @throttled: the window is being narrowed
 * @withheld: by how many commands the window is narrowed
 * @look: answers until the next check of how many messages lie unread
 */
struct ki_conn {
	struct ki_adapter *a;
	struct ki_comp *comp;
	DAT_EP_HANDLE ep;
	struct iscsit_conn *conn;
	u32 id;
	char *iqn;
	struct ki_portal *portal;
	struct ki_portal *taker;
	struct list_head link;
	bool accepting;
	struct list_head adapter_link;
	wait_queue_head_t wq;
	wait_queue_head_t room;
	bool down;
	bool broken;
	bool open;
	unsigned long since;
	bool invalidate;
	bool joined;
	unsigned int reserved;
	unsigned int window;
	unsigned int hard;
	unsigned int most;
	atomic_t unanswered;
	unsigned int beyond;
	unsigned int completed;
	unsigned int last_completed;
	unsigned int last_events;
	__be32 last_statsn;
	unsigned int silent;
	atomic_t posted;
	struct sockaddr_storage remote;
	struct in6_addr host;
	char peer[64];
	spinlock_t lock;		/* @state up to @look */
	enum ki_state state;
	KDAT_POOL_BUF *login_buf;
	bool login_seen;
	bool login_answered;
	bool negotiates;
	bool answering;
	u8 sending;
	bool refused;
	bool lingers;
	unsigned long turn;
	unsigned long spent;
	bool closing;
	bool logout_sent;
	bool logout_seen;
	struct list_head unread;
	unsigned int nunread;
	struct ki_tx *txs;
	struct list_head waiting;
	struct list_head starved;
	bool pushing;
	bool repush;
	bool stopped;
	unsigned int tries;
	struct delayed_work again;
	struct delayed_work linger;
	struct work_struct ended;
	struct list_head lent;
	bool throttled;
	unsigned int withheld;
	unsigned int look;
	struct ki_tx *tx_array;
	struct page *tx_pages;
	DAT_LMR_HANDLE tx_lmr;
};

/* Next step of a command */
enum ki_step {
	KI_FETCH,			/* map the data of a write */
	KI_READ,			/* post RDMA Reads of the data */
	KI_DATA_IN,			/* build the answer, map the data of a read */
	KI_STATUS,			/* build the answer */
	KI_SEND,			/* post the answer, behind RDMA Writes */
};

/*
 * struct ki_cmd - the transport's part of a command of LIO: iscsit_priv_cmd()
 * @read_stag: key of the initiator's memory for a SCSI Read; likewise @read_va, @write_*
 * @writable: the initiator has named the memory of the data of a SCSI Write
 * @asked: the data is being fetched, or was
 * @counted: the command is in c->unanswered
 * @taken: LIO has asked for the answer
 * @lost: for how many seconds LIO seems to have forgotten the command; a->ping_work
 * @step: next step
 * @until: when the wait for memory ends, in jiffies; 0: it has not begun
 * @wr: completion of the last RDMA Read
 * @part: completion of a request that others follow
 * @tx: the answer
 * @execute: function that has the backend execute the command
 * @buf: receive buffer with the data, if the backend writes from @sg
 * @wait: entry in c->waiting, in c->starved, or in the @cmds of a lane
 * @map: mapping of the data, if @mapped
 * @more: the initiator is to ask for more text, and has not done so; c->lock
 * @iov: triplets of the mapping: allocated, or @inline_iov
 * @n: number of triplets
 * @at: next triplet to post
 * @va: the peer's address for the next triplet
 */
struct ki_cmd {
	u32 read_stag;
	u32 write_stag;
	u64 read_va;
	u64 write_va;
	bool writable;
	bool asked;
	bool counted;
	bool taken;
	u8 lost;
	enum ki_step step;
	unsigned long until;
	struct ki_wr wr;
	struct ki_wr part;
	struct ki_tx *tx;
	sense_reason_t (*execute)(struct se_cmd *cmd);
	KDAT_POOL_BUF *buf;
	struct scatterlist sg[KI_DATA_PAGES];
	struct list_head wait;
	KDAT_SG_HANDLE map;
	bool mapped;
	bool reads;
	bool more;
	DAT_LMR_TRIPLET *iov;
	DAT_COUNT n;
	DAT_COUNT at;
	u64 va;
	DAT_LMR_TRIPLET inline_iov[KI_INLINE_IOV];
};

/*
 * struct ki_portal - a network portal of LIO
 * @portal: where it listens
 * @lock: protects @pending and @npending
 * @pending: connections that LIO has not taken, and that have not ended
 * @npending: number of @pending
 * @recent: hosts of the initiators that LIO's thread has taken last
 * @turns: how many it has taken
 * @taken: connection that LIO's thread deals with, if it still exists; ki_taken_lock
 * @wq: woken when LIO's thread may take a connection
 */
struct ki_portal {
	KDAT_PORTAL_HANDLE portal;
	spinlock_t lock;		/* @pending, @npending */
	struct list_head pending;
	unsigned int npending;
	struct in6_addr recent[KI_RECENT];
	unsigned int turns;
	struct ki_conn *taken;
	wait_queue_head_t wq;
};

/* Wake the waiters for room, if there are any. litmus: iser-room */
static inline void ki_wake_room(struct ki_conn *c)
{
	if (wq_has_sleeper(&c->room))
		wake_up_all(&c->room);
}

static inline struct ki_cmd *ki_cmd(struct iscsit_cmd *cmd)
{
	return iscsit_priv_cmd(cmd);
}

static inline struct iscsit_cmd *ki_of(struct ki_cmd *kc)
{
	return (struct iscsit_cmd *)kc - 1;
}

static inline struct iscsi_hdr *ki_hdr(KDAT_POOL_BUF *buf)
{
	return (struct iscsi_hdr *)(buf->va + sizeof(struct iser_ctrl));
}

static inline struct iscsi_hdr *ki_tx_hdr(struct ki_tx *tx)
{
	return (struct iscsi_hdr *)(tx->va + sizeof(struct iser_ctrl));
}

/* Set MaxCmdSN for the answer to @cmd, whose headers are about to be built. */
void ki_credit_change(struct ki_conn *c, struct iscsit_cmd *cmd);
static inline void ki_credit_answer(struct ki_conn *c, struct iscsit_cmd *cmd)
{
	if (unlikely(READ_ONCE(c->throttled) || READ_ONCE(c->withheld)))
		ki_credit_change(c, cmd);
}

const char *ki_strerror(DAT_RETURN ret);

/* adapter.c */
extern KDAT_SERVER_HANDLE ki_server;
int ki_server_start(void);

/* srq.c */
void ki_srq_size(DAT_PVOID adapter, KDAT_POOL_SIZE *size);
bool ki_srq_join(struct ki_adapter *a, unsigned int n);
void ki_srq_leave(struct ki_adapter *a, unsigned int n);
bool ki_buf_lend(struct ki_conn *c, struct ki_cmd *kc, KDAT_POOL_BUF *buf);
void ki_buf_take_back(struct ki_conn *c, struct ki_cmd *kc);
void ki_bufs_take_back(struct ki_conn *c);

/* credit.c */
bool ki_credit_request(struct ki_conn *c);
int ki_credit_begin(struct ki_conn *c);
void ki_credit_end(struct ki_conn *c);
void ki_credit_soft(struct ki_conn *c);
bool ki_credit_may(struct ki_conn *c, const struct iscsi_hdr *hdr);
void ki_credit_judge(struct ki_conn *c);

/* data.c */
DAT_RETURN ki_post(struct ki_conn *c, int n, const KDAT_REQUEST *r, bool counted);
void ki_posted_done(struct ki_conn *c);
int ki_cmd_map(struct ki_conn *c, struct iscsit_cmd *cmd, u32 offset, u32 len,
	       enum dma_data_direction dir);
void ki_cmd_unmap(struct iscsit_cmd *cmd);
int ki_cmd_use(struct iscsit_cmd *cmd, u8 *data, u32 len);
int ki_push_reads(struct ki_conn *c, struct ki_cmd *kc);
int ki_push_answer(struct ki_conn *c, struct ki_cmd *kc);
int ki_fetch(struct ki_conn *c, struct ki_cmd *kc);
int ki_get_dataout(struct iscsit_conn *conn, struct iscsit_cmd *cmd, bool recovery);

#include "execute.h"
#include "reply.h"

/* fault.c */
const char *ki_fault(struct ki_conn *c, KDAT_POOL_BUF *buf);

/* recv.c */
void ki_comp_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void ki_get_rx_pdu(struct iscsit_conn *conn);

/* ping.c */
void ki_ping_start(struct ki_adapter *a);
void ki_ping_stop(struct ki_adapter *a);

/* conn.c */
void ki_cm_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void ki_request(KDAT_ADAPTER *adapter, DAT_PVOID context, DAT_CR_HANDLE cr,
		const DAT_CR_PARAM *param, const KDAT_HOST *host);
void ki_conn_warn(struct ki_conn *c, const char *why);
void ki_conn_break(struct ki_conn *c, const char *why);
void ki_conn_judge(struct ki_conn *c, DAT_DTO_COMPLETION_STATUS status);
void ki_conn_ready(struct ki_conn *c);
bool ki_conn_must_end(struct iscsit_conn *conn);
void ki_conn_stop(struct ki_conn *c);
void ki_conn_free(struct ki_conn *c);
void ki_wait_conn(struct iscsit_conn *conn);
void ki_free_conn(struct iscsit_conn *conn);
void ki_linger_now(struct ki_conn *c);
void ki_linger_end(void);

/* host.c */
bool ki_pending_room(struct ki_portal *p, const struct in6_addr *from);

/* login.c */
void ki_login_continue(struct ki_conn *c);
void ki_login_look(struct ki_conn *c);
void ki_login_pdu(struct ki_conn *c, KDAT_POOL_BUF *buf);
bool ki_login_waits(struct ki_conn *c);
void ki_login_watch(struct ki_conn *c, unsigned int waiting);
int ki_get_login_rx(struct iscsit_conn *conn, struct iscsi_login *login);
int ki_put_login_tx(struct iscsit_conn *conn, struct iscsi_login *login, u32 len);

/* stats.c */
void ki_stats_start(void);
void ki_stats_stop(void);

/* portal.c */
void ki_conn_forget(struct ki_conn *c);
int ki_setup_np(struct iscsi_np *np, struct sockaddr_storage *addr);
int ki_accept_np(struct iscsi_np *np, struct iscsit_conn *conn);
void ki_free_np(struct iscsi_np *np);

#endif
