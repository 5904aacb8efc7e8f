// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A connection to the target: made, lost, taken down.
 *
 * Entry points: kbi_queue_start() and kbi_queues_stop() from ini_link.c, kbi_queue_lost() from
 * anywhere.
 *
 * A connection may be lost at any time, for many reasons, in any context. The first function
 * that notices moves the state to KBI_QUEUE_DEAD and tells the link, which takes down all its
 * connections together, see ini_link.c.
 *
 * The queue owns its EP, EVDs and slots. link->mutex serialises start and stop; queue->state
 * is changed by atomic operations only and only goes forward, until the next start.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/slab.h>
#include "ini.h"
#include "status.h"

#define KBI_CONN_QLEN	8
/* Features without which KBLK_FEATURE_VOLUMES is not granted */
#define KBI_VOLUMES_NEED (KBLK_FEATURE_HOST | KBLK_FEATURE_CREDITS)
/* Limit of the wait for the ends of connections, which kDAPL reports when the driver is done */
#define KBI_GONE_TIMEOUT (15 * HZ)

/* ---- Loss ---------------------------------------------------------------- */

/*
 * Is @why, for which a connection in @state is lost, worth a line of the log? Attempts to connect
 * go on until one succeeds, and most fail for the same reason.
 */
static bool kbi_is_news(struct kbi_link *link, int state, const char *why)
{
	/* litmus: none, a line more or less. */
	return state != KBI_QUEUE_CONNECTING || xchg(&link->told, why) != why;
}

/**
 * kbi_queue_lost() - mark a connection as lost or no longer wanted
 * @queue: queue
 * @why: reason for the log, or NULL for none
 *
 * Calls after the first have no effect. litmus: one-winner, blk-use, blk-start, blk-link
 *
 * Context: Any.
 */
void kbi_queue_lost(struct kbi_queue *queue, const char *why)
{
	int state = atomic_xchg(&queue->state, KBI_QUEUE_DEAD);

	if (state == KBI_QUEUE_DEAD)
		return;
	if (why && kbi_is_news(queue->link, state, why))
		pr_warn_ratelimited("%s: queue %u: %s\n",
				    queue->link->name,
				    queue->index, why);
	if (state == KBI_QUEUE_CONNECTING)
		complete(&queue->connected);
	/* Pairs with the barrier of kbi_queues_use(). litmus: blk-use */
	else if (READ_ONCE(queue->in_use))
		kbi_link_error(queue->link, NULL);
	complete(&queue->admin);
}

/* Begin to take the connection down. Idempotent. */
static void kbi_queue_end(struct kbi_queue *queue)
{
	atomic_set(&queue->state, KBI_QUEUE_DEAD);
	WRITE_ONCE(queue->in_use, false);
	if (queue->ep)
		dat_ep_disconnect(queue->ep, DAT_CLOSE_ABRUPT_FLAG);
}

/* Wait for the end of the connection, until the time @until, and free its Endpoint. */
static void kbi_queue_free_ep(struct kbi_queue *queue, unsigned long until)
{
	long left = max(0L, (long)(until - jiffies));

	if (queue->started &&
	    !wait_for_completion_timeout(&queue->gone, left)) {
		pr_err("%s: queue %u does not end\n", queue->link->name, queue->index);
		queue->stuck = true;
	}
	dat_ep_free(queue->ep);
	queue->ep = NULL;
}

/**
 * kbi_queues_stop() - take connections down and free their objects
 * @queues: the queues
 * @n: their number
 *
 * Afterwards no upcall runs, and the target cannot access any memory, unless queue->stuck
 * says that the driver does not end the connection. Idempotent.
 *
 * Context: Process context, may sleep.
 */
void kbi_queues_stop(struct kbi_queue *queues, unsigned int n)
{
	unsigned long until = jiffies + KBI_GONE_TIMEOUT;
	struct kbi_queue *queue;

	for (queue = queues; queue < queues + n; queue++)
		kbi_queue_end(queue);
	for (queue = queues; queue < queues + n; queue++) {
		if (queue->ep)
			kbi_queue_free_ep(queue, until);
		if (queue->recv_evd)
			dat_evd_free(queue->recv_evd);
		if (queue->req_evd)
			dat_evd_free(queue->req_evd);
		if (queue->conn_evd)
			dat_evd_free(queue->conn_evd);
		queue->recv_evd = NULL;
		queue->req_evd = NULL;
		queue->conn_evd = NULL;
		kbi_slots_release(queue);
	}
}

/* ---- Events -------------------------------------------------------------- */

static void kbi_take_welcome(struct kbi_queue *queue, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *data =
		&event->event_data.connect_event_data;

	/* Private data may be padded, hence ">="; without private data the magic stays 0. */
	if (data->private_data_size >= (DAT_COUNT)sizeof(queue->welcome))
		memcpy(&queue->welcome, data->private_data,
		       sizeof(queue->welcome));
}

/* Store the error number for @number in queue->err, and return a text for the log. */
static const char *kbi_why(struct kbi_queue *queue, DAT_EVENT_NUMBER number)
{
	switch (number) {
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		queue->err = -ECONNREFUSED;
		return "the target refuses";
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
		queue->err = -ECONNREFUSED;
		return "nobody listens there";
	case DAT_CONNECTION_EVENT_UNREACHABLE:
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		queue->err = -EHOSTUNREACH;
		return "the target cannot be reached";
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		queue->err = -ECONNRESET;
		return "the target has disconnected";
	default:
		queue->err = -ECONNABORTED;
		return "connection broken";
	}
}

static void kbi_conn_upcall(DAT_PVOID data, const DAT_EVENT *event,
			    DAT_BOOLEAN more)
{
	struct kbi_queue *queue = data;

	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		kbi_take_welcome(queue, event);
		/* Either this or kbi_queue_lost() completes ->connected. litmus: one-winner */
		if (atomic_cmpxchg(&queue->state, KBI_QUEUE_CONNECTING,
				   KBI_QUEUE_LIVE) == KBI_QUEUE_CONNECTING)
			complete(&queue->connected);
		return;
	}
	if (event->event_number == DAT_CONNECTION_EVENT_PEER_REJECTED)
		kbi_take_welcome(queue, event);
	/* kbi_why() sets queue->err before kbi_queue_lost() wakes kbi_queue_connect(). */
	kbi_queue_lost(queue, kbi_why(queue, event->event_number));
	complete(&queue->gone);
}

/* ---- Connecting ---------------------------------------------------------- */

static DAT_RETURN kbi_queue_evds(struct kbi_queue *queue)
{
	DAT_UPCALL_OBJECT recv = { queue, kbi_recv_upcall };
	DAT_UPCALL_OBJECT req = { queue, kbi_req_upcall };
	DAT_UPCALL_OBJECT conn = { queue, kbi_conn_upcall };
	DAT_IA_HANDLE ia = queue->link->ia;
	unsigned int n = queue->nslots;
	DAT_RETURN ret;

	ret = dat_evd_kcreate(ia, n, DAT_UPCALL_SINGLE_INSTANCE, &recv,
			      DAT_EVD_DTO_FLAG, &queue->recv_evd);
	if (ret == DAT_SUCCESS)
		/* 6 * n entries never overflow, so kDAPL need not guard the EVD. */
		ret = dat_evd_kcreate(ia, 6 * n, DAT_UPCALL_DISABLE, &req,
				      DAT_EVD_DTO_FLAG, &queue->req_evd);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(ia, KBI_CONN_QLEN,
				      DAT_UPCALL_SINGLE_INSTANCE, &conn,
				      DAT_EVD_CONNECTION_FLAG,
				      &queue->conn_evd);
	return ret;
}

/*
 * Create the EVDs and the EP. Completions of Sends and bindings matter only if they fail,
 * since the reply proves success. So req_evd has no upcall and causes no interrupts, unless
 * this side must invalidate, see kbi_queue_connect(). kDAPL polls for suppressed completions
 * when it needs their result.
 */
static int kbi_queue_objects(struct kbi_queue *queue)
{
	struct kbi_link *link = queue->link;
	unsigned int n = queue->nslots;
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = max(KBLK_MESSAGE, KBLK_REPLIES),
		.qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = n,
		/* Each slot posts at most: bind, Send, invalidate. */
		.max_request_dtos = 3 * n,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = 16,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	DAT_IA_ATTR ia;
	DAT_RETURN ret;

	ret = dat_ia_query(link->ia, NULL,
			   DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN, &ia,
			   DAT_PROVIDER_FIELD_NONE, NULL);
	if (ret == DAT_SUCCESS) {
		attr.max_rdma_read_in = min(attr.max_rdma_read_in,
					    ia.max_rdma_read_per_ep_in);
		ret = kbi_queue_evds(queue);
	}
	if (ret == DAT_SUCCESS)
		ret = dat_ep_create(link->ia, link->pz, queue->recv_evd,
				    queue->req_evd, queue->conn_evd, &attr,
				    &queue->ep);
	if (ret != DAT_SUCCESS)
		pr_err("%s: cannot make a connection: %s\n", link->name, kblk_strerror(ret));
	return kblk_errno(ret);
}

static int kbi_welcome_check(struct kbi_queue *queue)
{
	const struct kblk_welcome *welcome = &queue->welcome;
	u16 status = le16_to_cpu(welcome->status);
	u32 features = le32_to_cpu(welcome->features);
	const char *name = queue->link->name;

	if (le32_to_cpu(welcome->magic) != KBLK_MAGIC ||
	    (welcome->queues && !(features & KBLK_FEATURE_QUEUES)) ||
	    !kblk_is_zero(welcome->reserved, sizeof(welcome->reserved))) {
		pr_err("%s: no kdapl_blk_tgt answers there\n", name);
		return -EPROTO;
	}
	if (status != KBLK_HELLO_OK) {
		if (queue->link->told_status != status)
			pr_err("%s: the target refuses: %s\n", name,
			       kblk_hello_text(status));
		queue->link->told_status = status;
		return kblk_hello_errno(status);
	}
	if (le16_to_cpu(welcome->version) < KBLK_VERSION_MIN ||
	    le16_to_cpu(welcome->version) > KBLK_VERSION_MAX ||
	    le32_to_cpu(welcome->request_size) <
	    sizeof(struct kblk_request) + KBLK_INLINE ||
	    le16_to_cpu(welcome->credits) <
	    (features & KBLK_FEATURE_CREDITS ? 1 : 2) ||
	    features & ~queue->features ||
	    (features & KBLK_FEATURE_VOLUMES && ~features & KBI_VOLUMES_NEED))
		return -EPROTO;
	if (le32_to_cpu(welcome->max_transfer) < PAGE_SIZE) {
		pr_err("%s: the target's max_transfer is %u bytes; a page here has %lu\n", name,
		       le32_to_cpu(welcome->max_transfer), PAGE_SIZE);
		return -EPROTO;
	}
	if (~features & KBLK_FEATURE_VOLUMES && queue->link->ndisks > 1) {
		pr_err("%s: the target does not let volumes share connections any more\n",
		       name);
		return -EPROTO;
	}
	if (~features & queue->features & KBLK_FEATURE_AUTH) {
		pr_err("%s: the target cannot prove who it is\n", name);
		return -EACCES;
	}
	return 0;
}

/* Return how many connections the target allows the link; the first one was told. */
unsigned int kbi_queues_allowed(struct kbi_link *link)
{
	u16 n = le16_to_cpu(link->queues[0].welcome.queues);

	return n ?: link->nqueues;
}

static DAT_RETURN kbi_queue_dial(struct kbi_queue *queue)
{
	struct kbi_link *link = queue->link;
	struct kblk_hello hello = {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version_min = cpu_to_le16(KBLK_VERSION_MIN),
		.version_max = cpu_to_le16(KBLK_VERSION_MAX),
		.queue = cpu_to_le16(queue->index),
		.credits = cpu_to_le16(queue->nslots),
		.reply_size = cpu_to_le32(KBLK_REPLIES),
		.session = cpu_to_le64(link->session),
		.epoch = cpu_to_le32(link->epoch),
	};
	DAT_RETURN ret;

	queue->features = KBLK_FEATURE_BATCH | KBLK_FEATURE_REQUESTS |
			  KBLK_FEATURE_IDENTITY | KBLK_FEATURE_NOUNMAP |
			  KBLK_FEATURE_SIZE | KBLK_FEATURE_QUEUES |
			  KBLK_FEATURE_CREDITS | KBLK_FEATURE_HOST |
			  KBLK_FEATURE_HINTS;
	if (link->params.share)
		queue->features |= KBLK_FEATURE_VOLUMES;
	if (link->asks)
		queue->features |= KBLK_FEATURE_LIST;
	if (kblk_has_secret(&link->params.secret))
		queue->features |= KBLK_FEATURE_AUTH;
	/*
	 * With non-coherent DMA kbi_io_unbind() must sync while the LMR is
	 * valid, so the target must not invalidate.
	 */
	if (!link->sync)
		queue->features |= KBLK_FEATURE_INVALIDATE;
	hello.features = cpu_to_le32(queue->features);
	ret = dat_ep_connect(queue->ep, (struct sockaddr *)&link->target,
			     link->params.conn_qual,
			     link->params.connect_timeout_ms * USEC_PER_MSEC,
			     sizeof(hello), &hello, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG);
	queue->started = ret == DAT_SUCCESS;
	return ret;
}

static int kbi_queue_connect(struct kbi_queue *queue)
{
	u32 ms = queue->link->params.connect_timeout_ms;
	unsigned int credits;
	DAT_RETURN ret;
	u32 features;
	int err;

	ret = kbi_queue_dial(queue);
	if (ret != DAT_SUCCESS) {
		pr_err("%s: cannot connect: %s\n", queue->link->name, kblk_strerror(ret));
		return kblk_errno(ret);
	}
	/* kDAPL reports its own timeout, so this limit should never be reached. */
	if (!kbi_wait(queue, &queue->connected, msecs_to_jiffies(2 * ms)))
		return -ETIMEDOUT;
	if (!kbi_queue_live(queue) && !queue->welcome.magic)
		return queue->err;
	err = kbi_welcome_check(queue);
	if (err)
		return err;
	features = le32_to_cpu(queue->welcome.features);
	queue->invalidate = features & KBLK_FEATURE_INVALIDATE;
	queue->batch = features & KBLK_FEATURE_BATCH;
	queue->requests_batch = features & KBLK_FEATURE_REQUESTS;
	queue->identity = features & KBLK_FEATURE_IDENTITY;
	queue->nounmap = features & KBLK_FEATURE_NOUNMAP;
	queue->sizes = features & KBLK_FEATURE_SIZE;
	queue->credits_move = features & KBLK_FEATURE_CREDITS;
	queue->hosts = features & KBLK_FEATURE_HOST;
	queue->volumes = features & KBLK_FEATURE_VOLUMES;
	queue->message_max = min_t(u32, KBLK_MESSAGE,
				   le32_to_cpu(queue->welcome.request_size));
	if (!queue->invalidate) {
		ret = dat_evd_modify_upcall(queue->req_evd,
					    DAT_UPCALL_SINGLE_INSTANCE,
					    DAT_UPCALL_SAME,
					    DAT_UPCALL_INVOC_ANY);
		if (ret != DAT_SUCCESS)
			return kblk_errno(ret);
	}
	credits = min_t(unsigned int, queue->nslots,
			le16_to_cpu(queue->welcome.credits));
	atomic_set(&queue->window, credits);
	atomic_set(&queue->credits, credits);
	return kbi_queue_live(queue) ? 0 : -ENOTCONN;
}

/**
 * kbi_queue_start() - connect to the target
 * @queue: queue; link and index are set, the link's adapter is open
 *
 * Context: Process context, may sleep.
 * Return: 0 or an error number; the caller calls kbi_queues_stop() either way.
 */
int kbi_queue_start(struct kbi_queue *queue)
{
	int err;

	lockdep_assert_held(&queue->link->mutex);

	/* Its slots are free when the adapter is closed. */
	if (queue->stuck)
		return -EBUSY;
	queue->nslots = queue->link->params.depth + 1;
	queue->started = false;
	queue->used = false;
	queue->starved = false;
	queue->wants = false;
	queue->cramped = false;
	queue->heard = jiffies;
	queue->err = -ENOTCONN;
	atomic_set(&queue->extra, 0);
	memset(&queue->welcome, 0, sizeof(queue->welcome));
	init_completion(&queue->connected);
	init_completion(&queue->gone);
	init_completion(&queue->admin);
	atomic_set(&queue->state, KBI_QUEUE_CONNECTING);
	/*
	 * Pairs with kbi_link_error(), which changes the link's state first, then reads
	 * ->adding: a further queue does not connect if the link is no longer live.
	 * smp_mb__after_atomic() is no barrier behind atomic_set(). litmus: blk-start
	 */
	smp_mb();
	if (READ_ONCE(queue->link->adding) == queue &&
	    kbi_link_state(queue->link) != KBI_LINK_LIVE)
		return -EINTR;
	err = kbi_queue_objects(queue);
	if (!err)
		err = kbi_slots_alloc(queue);
	if (!err)
		err = kbi_queue_connect(queue);
	return err;
}
