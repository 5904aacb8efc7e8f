/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_isert.ko: the iSER transport of the kernel's iSCSI target (LIO) over kDAPL.
 * Documentation/kdapl-isert-design.rst tells of objects, lives, locks, contexts.
 */
#ifndef KDAPL_ISERT_H
#define KDAPL_ISERT_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <scsi/iscsi_proto.h>
#include <scsi/iser.h>
#include <target/target_core_base.h>
#include <target/target_core_fabric.h>
#include <target/iscsi/iscsi_transport.h>
#include <dat/kdat.h>
#include <dat/kdat_linux.h>

/* Headers of a PDU: that of iSER and the basic one of iSCSI. */
#define KI_HEADERS		(sizeof(struct iser_ctrl) + ISCSI_HDR_LEN)
/* What follows them in an answer that is built here, as sense data. */
#define KI_TX_DATA		176
#define KI_TX_LEN		256
#define KI_TXS			128
/* Room for headers, additional headers and the longest data segment. */
#define KI_BLOCK_ORDER		3
#define KI_BLOCK_BUFS		3
#define KI_BUF_LEN		(ALIGN_DOWN((PAGE_SIZE << KI_BLOCK_ORDER) / \
					    KI_BLOCK_BUFS, 64))
#define KI_REQUESTS		128
#define KI_IOV			16
#define KI_READS		16
#define KI_INLINE_IOV		8
#define KI_COMPS		8
#define KI_EVD_QLEN		1024

struct ki_adapter;
struct ki_conn;

/*
 * struct ki_wr - what a posted request calls when it has completed
 * @done: in process context, under comp->mutex
 */
struct ki_wr {
	void (*done)(struct ki_conn *c, struct ki_wr *wr, bool ok);
};

/*
 * struct ki_buf - a receive buffer
 * @va: its memory
 * @seg: the same for the device
 * @len: bytes received
 * @link: entry in a list of buffers that wait to be handled
 */
struct ki_buf {
	u8 *va;
	DAT_LMR_TRIPLET seg;
	u32 len;
	struct list_head link;
};

/* Pages that were registered, and the receive buffers in them. */
struct ki_block {
	struct list_head link;
	struct page *pages;
	DAT_LMR_HANDLE lmr;
	struct ki_buf bufs[KI_BLOCK_BUFS];
};

/*
 * struct ki_comp - an EVD for messages and requests of many connections
 * @mutex: held while an upcall handles an event, so who has freed an Endpoint and
 *	then takes the mutex knows that no upcall is about the Endpoint any more
 */
struct ki_comp {
	struct ki_adapter *a;
	DAT_EVD_HANDLE evd;
	struct mutex mutex;		/* see above */
};

/*
 * struct ki_adapter - an open IA, shared by all portals and connections on it
 * @ref: one for each portal and each connection
 * @link: entry in the list of adapters
 * @blocks: memory of the SRQ; ki_adapters_lock
 * @comps: see struct ki_comp; a connection has one of them
 * @next_comp: for the next connection
 * @cm_mutex: as ki_comp.mutex, for the events of connections
 * @gone: the device has left; no new connection
 */
struct ki_adapter {
	struct kref ref;
	struct list_head link;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE cm_evd;
	DAT_PZ_HANDLE pz;
	DAT_SRQ_HANDLE srq;
	struct list_head blocks;
	unsigned int ncomps;
	struct ki_comp comps[KI_COMPS];
	atomic_t next_comp;
	struct mutex cm_mutex;		/* see above */
	bool gone;
	bool invalidate;
	int max_iov;
	int max_read_iov;
	int max_reads;
	u64 max_rdma;
};

/* How far a connection is. */
enum ki_state {
	KI_LOGIN,			/* messages are login requests */
	KI_LOGGED_IN,			/* they wait for LIO's receiving thread */
	KI_FULL,			/* they are handled as they come */
};

/*
 * struct ki_tx - headers and short data of an answer
 * @wr: completion
 * @link: entry in c->txs while not in use
 * @cmd: the command that it answers; NULL for login
 * @va: KI_TX_LEN bytes
 * @seg: the same for the device
 * @map: mapping of the data that follows from somewhere else
 */
struct ki_tx {
	struct ki_wr wr;
	struct list_head link;
	struct iscsit_cmd *cmd;
	u8 *va;
	DAT_LMR_TRIPLET seg;
	KDAT_SG_HANDLE map;
	struct scatterlist sg;
	DAT_LMR_TRIPLET data;
};

/*
 * struct ki_conn - a connection
 * @conn: LIO's, once its portal's thread has taken it
 * @link: entry in ki_portal.pending until then
 * @wq: woken when @down, or @login_buf; LIO's receiving thread sleeps there, so
 *	nothing that happens for each command wakes it
 * @room: woken when @posted becomes 0, or an answer is put back, or @down
 * @down: the last event of the Endpoint has come
 * @posted: requests whose completion is awaited
 * @lock: protects all that follow
 * @state: see there
 * @login_buf: a login request that LIO has not read
 * @login_answered: LIO has answered the first one
 * @early: messages that came before LIO's receiving thread
 * @txs: answers not in use
 * @waiting: commands that found no room to post, in order
 */
struct ki_conn {
	struct ki_adapter *a;
	struct ki_comp *comp;
	DAT_EP_HANDLE ep;
	struct iscsit_conn *conn;
	struct ki_portal *portal;
	struct list_head link;
	wait_queue_head_t wq;
	wait_queue_head_t room;
	bool down;
	bool established;
	bool invalidate;
	atomic_t posted;
	struct sockaddr_storage remote;
	char peer[64];
	spinlock_t lock;		/* see above */
	enum ki_state state;
	struct ki_buf *login_buf;
	bool login_seen;
	bool login_answered;
	bool logout_sent;
	struct list_head early;
	struct list_head txs;
	struct list_head waiting;
	struct ki_tx *tx_array;
	struct page *tx_pages;
	DAT_LMR_HANDLE tx_lmr;
};

/*
 * struct ki_cmd - of a command of LIO: iscsit_priv_cmd()
 * @read_stag: where the initiator wants the data of a SCSI Read, and so on
 * @wr: completion of the last RDMA Read
 * @part: completion of a request that is followed by more
 * @tx: the answer
 * @wait: entry in c->waiting
 * @map: mapping of the data, if @mapped
 * @iov: its triplets, or @inline_iov
 * @n: number of triplets
 * @at: next triplet to post
 * @offset: bytes of it that were posted
 * @left: bytes to post
 * @va: where the peer has them
 */
struct ki_cmd {
	u32 read_stag;
	u32 write_stag;
	u64 read_va;
	u64 write_va;
	struct ki_wr wr;
	struct ki_wr part;
	struct ki_tx *tx;
	struct list_head wait;
	KDAT_SG_HANDLE map;
	bool mapped;
	bool reads;
	DAT_LMR_TRIPLET *iov;
	DAT_COUNT n;
	DAT_COUNT at;
	u32 offset;
	u32 left;
	u64 va;
	DAT_LMR_TRIPLET inline_iov[KI_INLINE_IOV];
};

/* One adapter that a portal listens on. */
struct ki_listener {
	struct list_head link;
	struct ki_portal *portal;
	struct ki_adapter *a;
	DAT_EVD_HANDLE cr_evd;
	DAT_PSP_HANDLE psp;
};

/*
 * struct ki_portal - a network portal of LIO
 * @lock: protects @pending
 * @pending: established connections that LIO has not taken
 * @wq: woken when there is one
 */
struct ki_portal {
	struct iscsi_np *np;
	struct list_head listeners;
	spinlock_t lock;		/* see above */
	struct list_head pending;
	wait_queue_head_t wq;
};

/* Wake who waits for room, if somebody does. */
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

static inline struct iscsi_hdr *ki_tx_hdr(struct ki_tx *tx)
{
	return (struct iscsi_hdr *)(tx->va + sizeof(struct iser_ctrl));
}

const char *ki_strerror(DAT_RETURN ret);

/* adapter.c */
struct ki_adapter *ki_adapter_get(const struct sockaddr *addr);
struct ki_adapter *ki_adapter_get_name(char *name);
void ki_adapter_put(struct ki_adapter *a);

/* buf.c */
int ki_bufs_make(struct ki_adapter *a, unsigned int n);
void ki_bufs_free(struct ki_adapter *a);
void ki_buf_post(struct ki_adapter *a, struct ki_buf *buf);
int ki_pages_register(struct ki_adapter *a, struct page *pages, size_t len,
		      DAT_MEM_PRIV_FLAGS priv, DAT_LMR_HANDLE *lmr,
		      DAT_LMR_TRIPLET *all);

/* data.c */
DAT_RETURN ki_post(struct ki_conn *c, int n, const KDAT_REQUEST *r, bool counted);
void ki_posted_done(struct ki_conn *c);
int ki_cmd_map(struct ki_conn *c, struct iscsit_cmd *cmd, u32 offset, u32 len,
	       enum dma_data_direction dir);
void ki_cmd_unmap(struct iscsit_cmd *cmd);
int ki_cmd_push(struct ki_conn *c, struct ki_cmd *kc);
void ki_conn_submit(struct ki_conn *c, struct ki_cmd *kc);
void ki_conn_retry(struct ki_conn *c);
int ki_get_dataout(struct iscsit_conn *conn, struct iscsit_cmd *cmd, bool recovery);

/* reply.c */
struct ki_tx *ki_tx_get(struct ki_conn *c, struct iscsit_cmd *cmd);
void ki_tx_put(struct ki_conn *c, struct ki_tx *tx);
int ki_tx_add_data(struct ki_conn *c, struct ki_tx *tx, void *data, u32 len);
KDAT_REQUEST ki_tx_request(struct ki_tx *tx, DAT_LMR_TRIPLET *segs);
int ki_queue_data_in(struct iscsit_conn *conn, struct iscsit_cmd *cmd);
int ki_queue_status(struct iscsit_conn *conn, struct iscsit_cmd *cmd);
int ki_response_queue(struct iscsit_conn *conn, struct iscsit_cmd *cmd, int state);
int ki_immediate_queue(struct iscsit_conn *conn, struct iscsit_cmd *cmd, int state);

/* recv.c */
void ki_comp_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void ki_get_rx_pdu(struct iscsit_conn *conn);

/* conn.c */
void ki_cm_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void ki_cr_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
void ki_conn_break(struct ki_conn *c, const char *why);
void ki_conn_stop(struct ki_conn *c);
void ki_conn_free(struct ki_conn *c);
void ki_wait_conn(struct iscsit_conn *conn);
void ki_free_conn(struct iscsit_conn *conn);

/* login.c */
int ki_get_login_rx(struct iscsit_conn *conn, struct iscsi_login *login);
int ki_put_login_tx(struct iscsit_conn *conn, struct iscsi_login *login, u32 len);

/* portal.c */
int ki_setup_np(struct iscsi_np *np, struct sockaddr_storage *addr);
int ki_accept_np(struct iscsi_np *np, struct iscsit_conn *conn);
void ki_free_np(struct iscsi_np *np);

#endif
