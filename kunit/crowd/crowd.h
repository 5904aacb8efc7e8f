/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_crowd.ko: what its files share.
 *
 *   main.c     the module, its parameters and reports
 *   client.c   clients: connecting, also again and again
 *   conn.c     a connection: raw DTOs
 *   kblk.c     the protocol of kdapl_blk_tgt.ko
 *   nvme.c     the protocol of nvmet-rdma.ko
 *   iser.c     that of iSER targets
 *   nfs.c      that of NFS servers
 *
 * A client connects and then sends the same read request again and again, so
 * that "window" of them are always without an answer. A polite client sends
 * fewer if the target grants it fewer credits; others ignore credits.
 */
#ifndef KDAPL_CROWD_H
#define KDAPL_CROWD_H

#include <linux/completion.h>
#include <linux/sizes.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <dat/kdat.h>

#define CROWD_TIMEOUT	(10 * HZ)
/* Attempts to connect, each with another port. */
#define CROWD_TRIES	5

/*
 * Parts of the buffer that all clients share. Only one client connects at a
 * time, and all requests are the same. The first bytes of each answer, with the
 * credits, have a place of their own as long as there are no more than
 * CROWD_HEADERS requests outstanding; what data there is, nobody reads.
 */
#define CROWD_HELLO_AT	0
#define CROWD_SEND_AT	SZ_2K
#define CROWD_ANSWER_AT	SZ_32K
#define CROWD_RECV_AT	SZ_8K
#define CROWD_RECV_SIZE	(SZ_4K + 64)
#define CROWD_DATA_AT	SZ_64K
#define CROWD_DATA_SIZE	SZ_128K
#define CROWD_HEADERS	1024
#define CROWD_HEADER	64
#define CROWD_HEADER_AT	(CROWD_DATA_AT + CROWD_DATA_SIZE)
/* Requests that differ from each other. */
#define CROWD_REQUESTS	1024
#define CROWD_REQUEST	80
#define CROWD_REQUEST_AT (CROWD_HEADER_AT + CROWD_HEADERS * CROWD_HEADER)
#define CROWD_BUF_SIZE	(CROWD_REQUEST_AT + CROWD_REQUESTS * CROWD_REQUEST)

struct crowd_client;

/*
 * struct crowd_conn - a connection
 * @client: the client it belongs to
 * @up: the connection was established
 * @ended: the connection has ended
 * @event: what it, or the attempt, has ended with
 * @changed: completed when @up or @ended becomes true
 * @answer: completed by a message, unless requests are being streamed
 * @lock: protects the members below
 * @streaming: requests are being sent
 * @credits: requests that the target allows; for polite clients
 * @outstanding: requests without an answer
 * @requests: requests sent
 */
struct crowd_conn {
	struct crowd_client *client;
	DAT_EVD_HANDLE dto_evd;
	DAT_EVD_HANDLE conn_evd;
	DAT_EP_HANDLE ep;
	bool up;
	bool ended;
	bool started;
	DAT_EVENT_NUMBER event;
	struct completion changed;
	struct completion answer;
	u8 welcome[64];
	spinlock_t lock;		/* see above */
	bool streaming;
	unsigned int window;
	unsigned int credits;
	unsigned int outstanding;
	u32 requests;
};

/*
 * struct crowd_client - a client
 * @conn: the connection that requests are streamed on, and another one for NVMe
 * @sent: requests sent; @answered and @errors count requests as well
 * @cuts: connections that the target has ended
 */
struct crowd_client {
	unsigned int number;
	struct crowd_conn *conn[2];
	unsigned long retry;
	atomic64_t sent;
	atomic64_t answered;
	atomic64_t errors;
	unsigned int cuts;
};

/*
 * struct crowd_protocol - the protocol of a target
 * @start: connect a client, attach it, prepare the request at CROWD_SEND_AT,
 * and set window and credits
 * @prepare: write the n-th request, if they differ from each other; else NULL
 * @credits: credits in the message just received
 * @good: whether that message reports success
 * @request_len: bytes to send for each request
 */
struct crowd_protocol {
	const char *name;
	int (*start)(struct crowd_client *client);
	void (*prepare)(void *request, u32 n);
	unsigned int (*credits)(const void *message);
	bool (*good)(const void *message);
	size_t request_len;
};

extern const struct crowd_protocol crowd_kblk;
extern const struct crowd_protocol crowd_nvme;
extern const struct crowd_protocol crowd_iser;
extern const struct crowd_protocol crowd_nfs;

/* What all clients share. */
struct crowd {
	const struct crowd_protocol *protocol;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	void *buf;
	DAT_VADDR addr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	struct sockaddr_storage target;
	struct crowd_client *clients;
};

extern struct crowd crowd;

/* Parameters of the module. */
extern char *crowd_subsystem;
extern unsigned int crowd_port;
extern unsigned int crowd_namespace;
extern unsigned int crowd_clients;
extern unsigned int crowd_window;
extern unsigned int crowd_length;
extern unsigned int crowd_again_ms;
extern bool crowd_polite;
extern bool crowd_idle;

enum crowd_event { CROWD_CONNECTED, CROWD_CUT, CROWD_REFUSED, CROWD_EVENTS };

/* main.c */
void crowd_note(enum crowd_event what, unsigned int client);

/* client.c */
int crowd_open(const char *ia, const char *address);
void crowd_close(void);
int crowd_begin(void);
void crowd_end(void);

/* conn.c */
struct crowd_conn *crowd_connect(struct crowd_client *client,
				 unsigned int window, const void *hello,
				 size_t len);
void crowd_disconnect(struct crowd_conn *conn);
int crowd_ask(struct crowd_conn *conn, size_t len);
void crowd_stream(struct crowd_conn *conn);
int crowd_errno(const char *what, DAT_RETURN ret);

#endif /* KDAPL_CROWD_H */
