// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An echo server (server_ia=rxe0/1) and its client (client_ia=rxe0/1
 * peer=10.8.0.1), or both in one module: an example of a kDAPL consumer that
 * Documentation/consumer-guide.rst walks through. A role has an SRQ, refilled
 * when it runs low, and one EVD, hence one upcall at a time, in process context.
 * Whatever ends a role (device unplugged, server gone) has it start anew.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <dat/kdat.h>

#define BUFS	64		/* buffers of a role */
#define RECVS	48		/* how many of them the SRQ may have */
#define LOW	16		/* refill the SRQ when it has fewer */
#define WINDOW	8		/* messages a client has on the way */
#define WORDS	256		/* in a buffer or message */
#define PORT	5200
#define RETRY	(HZ / 5)

static char *server_ia, *client_ia, *peer = "10.8.0.1";
static uint served, echoed, wrong, refills;
module_param(server_ia, charp, 0444);
module_param(client_ia, charp, 0444);
module_param(peer, charp, 0444);
module_param(served, uint, 0444);	/* messages the server sent back */
module_param(echoed, uint, 0444);	/* of the client's, those that came back */
module_param(wrong, uint, 0444);	/* and were not what it had sent */
module_param(refills, uint, 0444);	/* low watermark events */

struct buf {
	struct list_head link;	/* in echo.free */
	DAT_EP_HANDLE ep;	/* a Send of it is under way there */
	u32 data[WORDS];
};

static struct echo {
	const char *ia_name;
	bool client, stopping;
	struct delayed_work restart;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;
	DAT_SRQ_HANDLE srq;
	DAT_LMR_CONTEXT lmr_context;
	spinlock_t lock;	/* free and starving: both upcalls use them */
	struct list_head free;
	bool starving;		/* the SRQ is low and nothing was free */
	u32 received;		/* on the client's connection */
	struct buf *bufs;
} server, client = { .client = true };

/* Post a buffer: as a Send on an EP, or as a receive to the SRQ. */
static DAT_RETURN post(struct echo *e, DAT_EP_HANDLE ep, struct buf *buf, u32 n)
{
	DAT_LMR_TRIPLET seg = {
		.virtual_address = (uintptr_t)buf->data,
		.segment_length = n,
		.lmr_context = e->lmr_context,
	};
	DAT_DTO_COOKIE cookie = { .as_ptr = buf };

	buf->ep = ep;
	return ep ? dat_ep_post_send(ep, 1, &seg, cookie, 0) :
		    dat_srq_post_recv(e->srq, 1, &seg, cookie);
}

/* Give all free buffers to the SRQ and have it say when it is low again. */
static void refill(struct echo *e)
{
	struct buf *buf, *next;

	spin_lock(&e->lock);
	e->starving = true;
	list_for_each_entry_safe(buf, next, &e->free, link) {
		if (post(e, NULL, buf, sizeof(buf->data)))
			break;		/* it is full */
		list_del(&buf->link);
		e->starving = false;
	}
	/* If it is low all the same, that is said at once. */
	if (!e->starving)
		dat_srq_set_lw(e->srq, LOW);
	spin_unlock(&e->lock);
}

static void release(struct echo *e, struct buf *buf)
{
	spin_lock(&e->lock);
	buf->ep = NULL;
	list_add_tail(&buf->link, &e->free);
	spin_unlock(&e->lock);
	if (READ_ONCE(e->starving))
		refill(e);
}

/* The server sends it back. The client looks, and writes another number in it. */
static void message(struct echo *e, DAT_EP_HANDLE ep, struct buf *buf, u32 len)
{
	if (e->client) {
		if (len != sizeof(buf->data) || buf->data[0] != e->received ||
		    memcmp(buf->data, buf->data + 1, len - sizeof(u32)))
			wrong++;
		echoed++;
		memset32(buf->data, e->received++ + WINDOW, WORDS);
	} else {
		served++;
	}
	if (post(e, ep, buf, len))
		release(e, buf);
}

/* The client begins, with buffers that the SRQ, not used yet, had no room for. */
static void established(struct echo *e, DAT_EP_HANDLE ep)
{
	struct buf *buf = e->bufs + RECVS;
	u32 i;

	spin_lock(&e->lock);
	for (i = 0; i < WINDOW; i++)
		list_del(&buf[i].link);
	spin_unlock(&e->lock);
	for (i = 0; i < WINDOW; i++, buf++) {
		memset32(buf->data, i, WORDS);
		if (post(e, ep, buf, sizeof(buf->data)))
			release(e, buf);
	}
}

static DAT_RETURN make_ep(struct echo *e, DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr = {
		.max_message_size = WORDS * sizeof(u32),
		.max_request_dtos = BUFS,
		.max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	return dat_ep_create_with_srq(e->ia, e->pz, e->evd, e->evd, e->evd,
				      e->srq, &attr, ep);
}

static void accept(struct echo *e, DAT_CR_HANDLE cr)
{
	DAT_EP_HANDLE ep;

	if (!make_ep(e, &ep)) {
		if (!dat_cr_accept(cr, ep, 0, NULL))
			return;
		dat_ep_free(ep);
	}
	/* Or the peer would wait until its connection attempt times out. */
	dat_cr_reject(cr, 0, NULL);
}

/* From freeing on no event names the EP: none tells of its Sends under way. */
static void ended(struct echo *e, DAT_EP_HANDLE ep)
{
	struct buf *buf;

	dat_ep_free(ep);
	for (buf = e->bufs; buf < e->bufs + BUFS; buf++)
		if (buf->ep == ep)
			release(e, buf);
	if (e->client)
		mod_delayed_work(system_wq, &e->restart, RETRY);
}

static void on_event(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_EVENT_DATA *d = &event->event_data;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &d->dto_completion_event_data;
	struct echo *e = data;

	switch (event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		if (dto->operation == DAT_DTO_RECEIVE && !dto->status)
			message(e, dto->ep_handle, dto->user_cookie.as_ptr,
				dto->transfered_length);
		else
			release(e, dto->user_cookie.as_ptr);
		break;
	case DAT_CONNECTION_REQUEST_EVENT:
		accept(e, d->cr_arrival_event_data.cr_handle);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		if (e->client)
			established(e, d->connect_event_data.ep_handle);
		break;
	default:		/* it could not be made, or is over */
		ended(e, d->connect_event_data.ep_handle);
	}
}

static void on_async(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct echo *e = data;

	if (event->event_number == DAT_ASYNC_SRQ_LOW_WATERMARK) {
		refills++;
		refill(e);
	} else if (event->event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC) {
		/* Unplugged. No upcall can close the IA it belongs to. */
		mod_delayed_work(system_wq, &e->restart, 0);
	}
}

static DAT_RETURN start(struct echo *e)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = RECVS, .max_recv_iov = 1 };
	DAT_UPCALL_OBJECT upcall = { e, on_event }, async = { e, on_async };
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct sockaddr *to = (struct sockaddr *)&addr;
	DAT_REGION_DESCRIPTION region = { .for_va = e->bufs };
	DAT_EVD_HANDLE async_evd = NULL;
	DAT_LMR_HANDLE lmr;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;
	int i;

	ret = dat_ia_open((DAT_NAME_PTR)e->ia_name, 8, &async_evd, &e->ia) ?:
	      dat_pz_create(e->ia, &e->pz) ?:
	      dat_lmr_kcreate(e->ia, DAT_MEM_TYPE_VIRTUAL, region,
			      BUFS * sizeof(*e->bufs), e->pz,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG |
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA,
			      DAT_MEM_OPTIMIZE_DONT_CARE, &lmr,
			      &e->lmr_context, NULL, NULL, NULL) ?:
	      dat_evd_kcreate(e->ia, 2 * BUFS, DAT_UPCALL_SINGLE_INSTANCE,
			      &upcall, DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG |
			      DAT_EVD_CONNECTION_FLAG, &e->evd) ?:
	      dat_srq_create(e->ia, e->pz, &srq_attr, &e->srq);
	if (ret)
		return ret;
	INIT_LIST_HEAD(&e->free);
	for (i = 0; i < BUFS; i++)
		release(e, &e->bufs[i]);
	e->received = 0;
	refill(e);
	/* INVOC_ANY: also for what has happened since the IA was opened. */
	ret = dat_evd_modify_upcall(async_evd, DAT_UPCALL_SINGLE_INSTANCE,
				    &async, DAT_UPCALL_INVOC_ANY);
	if (ret || !e->client)
		return ret ?: dat_psp_create(e->ia, PORT, e->evd,
					     DAT_PSP_CONSUMER_FLAG, &psp);
	addr.sin_addr.s_addr = in_aton(peer);
	return make_ep(e, &ep) ?:
	       dat_ep_connect(ep, to, PORT, 2 * USEC_PER_SEC, 0, NULL,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/*
 * All that was made in the IA goes with it; no upcall runs afterwards. Return false if a driver
 * does not end a connection: the IA and its memory stay, and the call can be repeated.
 */
static bool closed(DAT_IA_HANDLE ia)
{
	return DAT_GET_TYPE(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG)) != DAT_INVALID_STATE;
}

static void restart(struct work_struct *work)
{
	struct echo *e = container_of(work, struct echo, restart.work);

	/* A device that is not there yet is waited for. */
	if (!closed(e->ia) || (!READ_ONCE(e->stopping) && start(e)))
		mod_delayed_work(system_wq, &e->restart, RETRY);
}

/* Return whether the buffers are free. */
static bool leave(struct echo *e)
{
	bool ok;

	WRITE_ONCE(e->stopping, true);
	cancel_delayed_work_sync(&e->restart);
	ok = closed(e->ia);
	cancel_delayed_work_sync(&e->restart);	/* of a last upcall */
	return ok;
}

static void enter(struct echo *e, const char *ia_name)
{
	spin_lock_init(&e->lock);
	INIT_DELAYED_WORK(&e->restart, restart);
	e->ia_name = ia_name;
	if (ia_name)
		mod_delayed_work(system_wq, &e->restart, 0);
}

static int __init echo_init(void)
{
	server.bufs = kcalloc(2 * BUFS, sizeof(*server.bufs), GFP_KERNEL);
	if (!server.bufs)
		return -ENOMEM;
	client.bufs = server.bufs + BUFS;
	enter(&server, server_ia);
	enter(&client, client_ia);
	return 0;
}
module_init(echo_init);

static void __exit echo_exit(void)
{
	bool free = leave(&client);

	if (leave(&server) && free)
		kfree(server.bufs);
}
module_exit(echo_exit);
MODULE_DESCRIPTION("Echo server and client over kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
