/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_test.ko: what kdapl-test(8) does in the kernel. See Documentation/kdapl-test.rst.
 *
 *   main.c      /dev/kdapl_test: a command is written to it, what it says is read
 *   parse.c     the words of a command
 *   list.c      the adapters there are
 *   net.c       an open adapter, waiting, the end of it all
 *   ctrl.c      the first connection between a command and its server
 *   client.c    commands that need a server
 *   server.c    the server
 *   net_dat.c   connections for load over kDAPL
 *   net_raw.c   and over raw verbs
 *   flow.c      the load on a connection
 *   hist.c      latencies
 *   conns.c     connecting and disconnecting
 *   trans.c     the transactions of kdapl-test dapl
 *   trans_fmr.c and their fast registration
 *   limits.c    how many objects there can be
 *   functions.c, functions_conn.c
 *               single functions, in loopback
 *
 * An open file is a session, and all that a command has made ends when the file is
 * closed, however its process ends. A session has one thread; the peer's messages and
 * changes of connections wake it (kt_kick()), and it alone makes and frees objects.
 */
#ifndef KDAPL_TEST_H
#define KDAPL_TEST_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/inet.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <dat/kdat.h>
#include <dat/kdat_linux.h>
#include "dat.h"
#include "proto.h"
#include "raw.h"

#define KT_LINE		2048		/* bytes of a command */
#define KT_OUT		SZ_64K		/* of what was not read yet */
#define KT_MAX_EPS	256U
#define KT_MAX_SIZE	((u32)SZ_1M)
#define KT_MAX_DEPTH	1024U
/* Buffers of an SRQ beyond those that the messages need, so that it is never empty. */
#define KT_SRQ_SPARE	16U
#define KT_MAX_MS	(3600U * MSEC_PER_SEC)

/* ---- main.c ------------------------------------------------------------------ */

/*
 * struct kt_session - an open file
 * @mutex: held by each call on the file
 * @task: the thread of a command, or NULL
 * @wq: woken by kt_kick()
 * @kicks: how often that was
 * @stop: the file is being closed
 * @finished: the thread is at its end
 * @lock: protects @out, @head and @tail
 * @out: what was said and not read, from @tail to @head, modulo KT_OUT
 * @line: the command
 */
struct kt_session {
	struct mutex mutex;		/* see above */
	struct task_struct *task;
	wait_queue_head_t wq;
	atomic_t kicks;
	bool stop;
	bool finished;
	spinlock_t lock;		/* see above */
	size_t head;
	size_t tail;
	char *out;
	char line[KT_LINE];
};

__printf(2, 3) void kt_say(struct kt_session *s, const char *fmt, ...);

/* Have the thread of a session look at what has changed. Context: any. */
static inline void kt_kick(struct kt_session *s)
{
	atomic_inc(&s->kicks);
	wake_up(&s->wq);
}

/* ---- parse.c ------------------------------------------------------------------- */

/*
 * struct kt_command - the words of a command
 * @name: the first word
 * @ia: of this host
 * @addr: of the peer; of this host for the server
 * @kind: what to measure, as @op, @flags, @size, @depth and @eps
 * @ms: how long
 * @number: how many times, if not for so long
 * @again: how often the Endpoints are connected again, for transactions
 * @limit: server: what a client can ask for
 */
struct kt_command {
	const char *name;
	char ia[DAT_NAME_MAX_LENGTH];
	char host[INET6_ADDRSTRLEN + 20];
	struct sockaddr_storage addr;
	u16 port;
	enum kt_kind kind;
	enum kt_op op;
	u32 flags;
	u32 size;
	u32 depth;
	u32 eps;
	u32 ms;
	u32 number;
	u32 again;
	u32 nops;
	struct kt_wire_op ops[KT_OPS];
	struct {
		u32 size;
		u32 depth;
		u32 eps;
	} limit;
};

int kt_parse(struct kt_session *s, struct kt_command *cmd, char *line);
const char *kt_kind_name(enum kt_kind kind);
const char *kt_op_name(enum kt_op op);

/* ---- net.c ------------------------------------------------------------------------ */

struct kt_net;
struct kt_conn;

/*
 * struct kt_provider - kDAPL or raw verbs
 * @open: make what all connections share. A client's @net->addr is that of the peer
 * @deafen: no connection may arrive any more; may be NULL
 * @close: the opposite of @open, except for the SRQ; may be NULL
 * @make: make what a connection needs
 * @connect: connect it; conn->state will be KT_UP or KT_DOWN
 * @disconnect: end it; conn->state will be KT_DOWN
 * @reset: make it ready to connect anew; its state is KT_DOWN
 * @expose: let the peer reach the receive buffer; conn->target is how
 * @aim: reach that of the peer
 * @end: end the connection: no completion and no event comes any more
 * @unshare: free the SRQ, when all connections have ended
 * @free: the opposite of @make, after that
 *
 * Context: process.
 */
struct kt_provider {
	const char *name;
	int (*open)(struct kt_net *net);
	void (*deafen)(struct kt_net *net);
	void (*close)(struct kt_net *net);
	int (*make)(struct kt_conn *conn);
	int (*connect)(struct kt_conn *conn);
	void (*disconnect)(struct kt_conn *conn);
	int (*reset)(struct kt_conn *conn);
	int (*expose)(struct kt_conn *conn);
	void (*aim)(struct kt_conn *conn);
	void (*end)(struct kt_conn *conn);
	void (*unshare)(struct kt_net *net);
	void (*free)(struct kt_conn *conn);
};

extern const struct kt_provider kt_dat_provider;
extern const struct kt_provider kt_raw_provider;

enum kt_state { KT_IDLE, KT_CONNECTING, KT_UP, KT_DOWN };

/*
 * struct kt_hist - how long something took, in buckets whose width grows with the time
 */
#define KT_HIST_SUB	16		/* buckets for each power of two */
#define KT_HIST		(36 * KT_HIST_SUB)
struct kt_hist {
	u64 n;
	u64 sum;
	u64 min;
	u64 max;
	u32 bucket[KT_HIST];
};

/*
 * struct kt_flow - the load on a connection
 * @active: this side is the client
 * @len: bytes of a message
 * @window: messages under way
 * @credit: messages for which the server gives a credit at a time
 * @stopping: post nothing any more
 * @idle: nothing is under way any more
 * @ops: messages that have completed
 * @sq: requests that have not completed
 * @sent: messages that were posted
 * @acked: Sends for which there was a credit
 * @due: server: messages for which no credit was given yet
 * @stamp: when the message under way was posted
 * @rest: when the load is to rest
 * @resting: it does; the thread of the session owns all but @acked meanwhile
 *
 * Completions of a connection come one after another, so they own all of it but
 * @stopping once kt_flow_start() was called.
 */
struct kt_flow {
	enum kt_kind kind;
	enum kt_op op;
	bool active;
	u32 len;
	u32 window;
	u32 credit;
	bool stopping;
	bool idle;
	u64 ops;
	u32 sq;
	u32 sent;
	u32 acked;
	u32 due;
	u64 stamp;
	u64 rest;
	bool resting;
	struct kt_hist *hist;
};

/*
 * struct kt_trans - the transactions on a connection
 * @room: bytes of each part of the buffers, see trans.c
 * @step: index of what is done now
 * @greeted: the peer's memory is known
 * @note: the next buffer for a note
 * @write: where the peer's memory is written
 * @read: where it is read
 * @key: of both
 * @armed: with KT_FMR: they are those of this step
 * @fmr: with KT_FMR: binds the receive buffer
 * @shown: where the peer finds the receive buffer, with @shown_key
 * @pending: what was posted on the Endpoint and has not completed
 * @marks: how many marks have been sent to see that the connection has come to rest
 *
 * Upcalls of a connection come one after another; they own it, except for @pending,
 * while it is established.
 */
struct kt_trans {
	u32 room;
	u32 step;
	bool greeted;
	u32 note;
	DAT_VADDR write;
	DAT_VADDR read;
	DAT_RMR_CONTEXT key;
	bool armed;
	DAT_LMR_HANDLE fmr;
	DAT_VADDR shown;
	DAT_RMR_CONTEXT shown_key;
	atomic_t pending;
	u32 marks;
};

/*
 * struct kt_conn - a connection that carries load
 * @state: changed by the provider, which then kicks the session
 * @started: when connecting began, ns
 * @took: how long it took
 * @again: client: the server's end can be connected to again; server: the client is to be
 *	told so. For KT_CONNS
 * @raw_closing: its rdma_cm id is about to be destroyed; under the id's handler lock
 * @target: the own receive buffer for the peer, or that of the peer
 */
struct kt_conn {
	struct kt_net *net;
	u32 index;
	enum kt_state state;
	u64 started;
	u64 took;
	bool again;
	bool raw_closing;
	struct kt_wire_target target;
	struct kt_flow flow;
	struct kt_trans trans;
	struct bench_side *side;
	union {
		struct dat_side dat;
		struct raw_side raw;
	};
};

/*
 * struct kt_ctrl - the first connection of a command and its server
 * @up: it is established
 * @down: it has ended, or could not be established; @event is why
 * @busy: a bit for each send buffer that is under way
 * @heard: when the peer was heard last, jiffies
 * @told: when it was told something
 */
#define KT_SLOTS 32
struct kt_ctrl {
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_VADDR base;
	struct kt_msg *buf;
	bool up;
	bool down;
	DAT_EVENT_NUMBER event;
	char reason[64];
	u32 busy;
	unsigned long heard;
	unsigned long told;
};

/*
 * struct kt_net - an open adapter and what a command has made
 * @addr: the server's
 * @evd: requests for connections, @ctrl's connection and its completions
 * @max_segments: of a request on this adapter
 * @failed: kt_fail() was called; whoever was first sets @err and @why
 * @err: why it has ended, or 0; @why is a sentence for it
 * @on_msg: handles a message of the peer
 * @on_cr: handles a request for a connection
 * @token: tells the connections of this run from those of another
 * @rounds: how often all connections were established
 * @ended: completions have nothing done any more
 * @setup: what is measured
 * @result: what was measured
 * @pages: how many were available before anything was made for the run
 */
struct kt_net {
	struct kt_session *s;
	const struct kt_command *cmd;
	const struct kt_provider *provider;
	struct sockaddr_storage addr;
	u16 port;
	bool server;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;
	DAT_COUNT max_segments;
	struct kt_ctrl ctrl;
	bool failed;
	int err;
	char why[160];
	void (*on_msg)(struct kt_net *net, const struct kt_msg *msg);
	void (*on_cr)(struct kt_net *net, DAT_CR_HANDLE cr);
	void *priv;

	u32 token;
	u32 rounds;
	struct kt_wire_setup setup;
	struct kt_wire_result result;
	long pages;
	enum kt_kind kind;
	enum kt_op op;
	u32 flags;
	u32 size;
	u32 depth;
	u32 eps;
	bool ready;
	bool started;
	u32 targets;
	u16 raw_port;
	struct kt_conn **conns;
	u32 nconns;
	bool ended;
	struct task_struct *poller;

	DAT_SRQ_HANDLE srq;
	struct {
		struct rdma_cm_id *scout;
		struct rdma_cm_id *listener;
		struct ib_pd *pd;
		struct ib_srq *srq;
	} raw;
};

/* Why the run has failed, which net->why tells too, or 0. */
static inline int kt_error(const struct kt_net *net)
{
	/* Pairs with kt_fail(). litmus: test-error */
	return smp_load_acquire(&net->err);
}

/* All that was written to a connection before its state is seen with the state. */
static inline enum kt_state kt_conn_is(const struct kt_conn *conn)
{
	/* Pairs with kt_conn_set(). litmus: test-state */
	return smp_load_acquire(&conn->state);
}

static inline void kt_conn_set(struct kt_conn *conn, enum kt_state state)
{
	/* Pairs with kt_conn_is(). litmus: test-state */
	smp_store_release(&conn->state, state);
}

/* Whether the thread of the session owns the load. */
static inline bool kt_flow_rests(const struct kt_flow *flow)
{
	/* Pairs with kt_flow_hand_over(). litmus: test-state */
	return smp_load_acquire(&flow->resting);
}

/* Whether nothing is under way any more; if so, all that was is counted. */
static inline bool kt_flow_is_idle(const struct kt_flow *flow)
{
	/* Pairs with kt_flow_go_idle(). litmus: test-idle */
	return smp_load_acquire(&flow->idle);
}

static inline void kt_flow_go_idle(struct kt_flow *flow)
{
	/* Pairs with kt_flow_is_idle(). litmus: test-idle */
	smp_store_release(&flow->idle, true);
}

static inline void kt_flow_hand_over(struct kt_flow *flow, bool resting)
{
	/* Pairs with kt_flow_rests(). litmus: test-state */
	smp_store_release(&flow->resting, resting);
}

static inline DAT_IA_ADDRESS_PTR kt_address(struct sockaddr_storage *addr)
{
	return (DAT_IA_ADDRESS_PTR)addr;
}

__printf(3, 4) int kt_fail(struct kt_net *net, int err, const char *fmt, ...);
void kt_forgive(struct kt_net *net);
bool kt_ia_close(DAT_IA_HANDLE ia, const char *name);
int kt_net_open(struct kt_net *net, struct kt_session *s,
		const struct kt_command *cmd);
void kt_net_close(struct kt_net *net);
int kt_net_run(struct kt_net *net, bool (*cond)(struct kt_net *net), u32 ms);
int kt_net_setup(struct kt_net *net);
int kt_net_make_conns(struct kt_net *net);
void kt_net_free_conns(struct kt_net *net);
int kt_net_poll(struct kt_net *net);
bool kt_conns_are(const struct kt_net *net, enum kt_state state);
void kt_conn_state(struct kt_conn *conn, enum kt_state state);
int kt_conn_prepare(struct kt_conn *conn);
void kt_hello(const struct kt_net *net, u32 index, struct kt_hello *hello);
struct kt_conn *kt_greeted(struct kt_net *net, const void *data, size_t len);

/* ---- ctrl.c -------------------------------------------------------------------------- */

int kt_ctrl_make(struct kt_net *net);
void kt_ctrl_free(struct kt_net *net);
int kt_ctrl_connect(struct kt_net *net);
int kt_ctrl_send(struct kt_net *net, struct kt_msg *msg, enum kt_msg_type type);
void kt_ctrl_event(struct kt_net *net, const DAT_EVENT *event);
void kt_ctrl_tick(struct kt_net *net);

/* ---- the rest ------------------------------------------------------------------------- */

void kt_list(struct kt_session *s);
void kt_serve(struct kt_session *s, const struct kt_command *cmd);
void kt_measure(struct kt_session *s, const struct kt_command *cmd);
void kt_result(struct kt_net *net, u64 ops, u64 ns, u64 bytes,
	       const struct kt_hist *hist);
void kt_conns(struct kt_net *net);
void kt_conns_serve(struct kt_net *net);
int kt_net_connect(struct kt_net *net);

void kt_flow_init(struct kt_conn *conn);
int kt_flow_receives(const struct kt_conn *conn);
int kt_flow_start(struct kt_conn *conn);
int kt_flow_resume(struct kt_conn *conn);
void kt_flow_done(struct bench_side *side, enum bench_queue queue);
void kt_flow_failed(struct bench_side *side, int err);

/* Parts of each buffer that have room for a step, see trans.c. */
#define KT_TRANS_PARTS	8
u32 kt_trans_room(const struct kt_wire_setup *setup);

int kt_trans_prepare(struct kt_conn *conn);
int kt_trans_start(struct kt_conn *conn);
int kt_trans_reset(struct kt_conn *conn);
void kt_trans_serve(struct kt_net *net);
void kt_trans_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

int kt_fmr_make(struct kt_conn *conn);
void kt_fmr_free(struct kt_conn *conn);
int kt_fmr_bind(struct kt_conn *conn, DAT_DTO_COOKIE cookie);
int kt_fmr_unbind(struct kt_conn *conn, DAT_DTO_COOKIE cookie);
bool kt_fmr_is_bound(const struct kt_conn *conn);

void kt_limits(struct kt_session *s, const struct kt_command *cmd);
void kt_functions(struct kt_session *s, const struct kt_command *cmd);

void kt_hist_add(struct kt_hist *hist, u64 ns);
void kt_hist_merge(struct kt_hist *to, const struct kt_hist *from);
u64 kt_hist_percentile(const struct kt_hist *hist, u32 per_myriad);
void kt_hist_say(struct kt_session *s, const struct kt_hist *hist);

#endif
