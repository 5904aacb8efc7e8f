/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_blk_tgt.ko: what its files share.
 *
 *   tgt_main.c   parameters, the volume, start and stop, statistics
 *   tgt_srq.c    receive buffers of all clients, the low watermark
 *   tgt_conn.c   clients: accepting, ending
 *   tgt_io.c     requests: checking, reading, replying
 *
 * One client is one connection with an Endpoint, two Event Dispatchers and
 * kbt_io_depth slots. A request stays on the receive EVD, unreaped, until a
 * slot is free for it. So what kDAPL counts as held by the Endpoint is the
 * client's backlog, and its high watermarks are about the client's manners: a
 * client within its credits never gets beyond the hard one.
 *
 * Locks: kbt.mutex (list of clients) and conn->lock (idle slots); neither is
 * taken with the other held.
 */
#ifndef KDAPL_BLK_TGT_H
#define KDAPL_BLK_TGT_H

#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <dat/kdat.h>
#include "kdapl_blk_proto.h"
#include "util.h"

/* A request fills half of a receive buffer: what is longer can be told. */
#define KBT_RX_SIZE		(2 * sizeof(struct kblk_request))
#define KBT_MAX_TRANSFER	(128 * 1024)

enum kbt_stat {
	KBT_STAT_CONNECTS,
	KBT_STAT_CONNECT_REFUSALS,
	KBT_STAT_DISCONNECTS,
	KBT_STAT_REQUESTS,
	KBT_STAT_READS,
	KBT_STAT_READ_BYTES,
	KBT_STAT_ERROR_REPLIES,
	KBT_STAT_PROTOCOL_ERRORS,
	KBT_STAT_DTO_ERRORS,
	KBT_STAT_LOW_WATERMARK,
	KBT_STAT_SOFT_WATERMARK,
	KBT_STAT_BROKEN,
	KBT_STATS
};

struct kbt_volume {
	struct file *file;
	u64 size;
	u32 block_size;
};

/*
 * struct kbt - the target
 * @ia: the adapter; @async_evd, @cm_evd and @pz belong to it
 * @cm_evd: connection requests and connection events of all clients
 * @psp: NULL once nobody is to connect any more
 * @srq: receives of all clients
 * @rx: the buffers in @srq, KBT_RX_SIZE each
 * @rx_posted: how many of @rx were given to @srq; the others are the reserve
 * @low_work: raises the low watermark again when the queue has recovered
 * @wq: runs requests
 * @end_wq: ends clients, whose requests it waits for
 * @mutex: guards @conns, @conn_count and @stopping
 * @idle: woken when the last client has gone
 */
struct kbt {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE cm_evd;
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	DAT_SRQ_HANDLE srq;
	struct kblk_buf rx;
	unsigned int rx_posted;
	struct delayed_work low_work;
	struct workqueue_struct *wq;
	struct workqueue_struct *end_wq;
	struct kbt_volume volume;
	struct mutex mutex;		/* clients */
	struct list_head conns;
	unsigned int conn_count;
	bool stopping;
	wait_queue_head_t idle;
	atomic64_t stats[KBT_STATS];
};

/*
 * struct kbt_io - a slot: one request being served
 * @link: in conn->idle
 * @conn: the client
 * @work: reads the volume
 * @request: as received; checked by kbt_io_check() before use
 * @data: KBT_MAX_TRANSFER bytes
 * @pending: posts not completed, plus one while the slot is being worked on
 */
struct kbt_io {
	struct list_head link;
	struct kbt_conn *conn;
	struct work_struct work;
	struct kblk_request request;
	struct kblk_buf data;
	atomic_t pending;
};

enum { KBT_CONN_ENDING };

/*
 * struct kbt_conn - a client
 * @link: in kbt.conns
 * @recv_evd: its requests; notifies only, see above
 * @req_evd: completions of what is posted for it
 * @recv_work: moves requests from @recv_evd to slots
 * @end_work: takes the client down and frees it
 * @flags: KBT_CONN_ENDING: only who sets it may queue @end_work
 * @lock: guards @idle and @idle_count
 * @all_idle: woken when no slot is busy
 * @replies: one struct kblk_reply for each slot
 * @ios: the slots
 * @peer: its address, for messages
 */
struct kbt_conn {
	struct list_head link;
	struct kbt *kbt;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE recv_evd;
	DAT_EVD_HANDLE req_evd;
	struct work_struct recv_work;
	struct work_struct end_work;
	unsigned long flags;
	spinlock_t lock;		/* idle slots */
	struct list_head idle;
	unsigned int idle_count;
	wait_queue_head_t all_idle;
	struct kblk_buf replies;
	struct kbt_io *ios;
	char peer[64];
};

/* Parameters of the module; constant once it runs. */
extern unsigned int kbt_io_depth;
extern unsigned int kbt_credits;
extern unsigned int kbt_max_clients;
extern unsigned int kbt_srq_size;
extern unsigned int kbt_srq_low;

static inline void kbt_count(struct kbt *kbt, enum kbt_stat stat, u64 n)
{
	atomic64_add(n, &kbt->stats[stat]);
}

static inline bool kbt_conn_ending(struct kbt_conn *conn)
{
	return test_bit(KBT_CONN_ENDING, &conn->flags);
}

/* tgt_srq.c */
int kbt_srq_start(struct kbt *kbt);
void kbt_srq_stop(struct kbt *kbt);
void kbt_srq_ran_low(struct kbt *kbt);
void *kbt_rx_buffer(struct kbt *kbt, DAT_DTO_COOKIE cookie);
void kbt_rx_repost(struct kbt *kbt, DAT_DTO_COOKIE cookie);

/* tgt_conn.c */
void kbt_cm_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void kbt_conn_end(struct kbt_conn *conn);
void kbt_conn_end_all(struct kbt *kbt);
void kbt_conn_backlog(struct kbt *kbt, DAT_EP_HANDLE ep);

/* tgt_io.c */
int kbt_io_alloc(struct kbt_conn *conn);
void kbt_io_free(struct kbt_conn *conn);
void kbt_recv_work(struct work_struct *work);
void kbt_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void kbt_req_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

#endif /* KDAPL_BLK_TGT_H */
