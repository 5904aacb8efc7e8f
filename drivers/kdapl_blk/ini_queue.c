// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A connection to the target: making it and losing it.
 *
 * It is made once, when the module is loaded. It may be lost at any time and for
 * many reasons, in any context; whoever notices first moves the state to
 * KBI_DEAD and so queues the work item that takes it down: no request is sent
 * any more, the Endpoint is freed, upcalls have ended, and then all requests
 * that were outstanding fail. In this order nobody completes one twice, and the
 * target cannot write into the buffer of a request that is reported as done:
 * buffers are only freed, and their registration ended, with the disk.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include "ini.h"

#define KBI_CONNECT_TIMEOUT	10	/* seconds */
#define KBI_CONN_QLEN		8

/* ---- Losing it ----------------------------------------------------------- */

/**
 * kbi_queue_down() - the connection is lost or no longer wanted
 * @queue: the queue
 * @why: for the log, NULL if that is as it should be
 *
 * Context: Any.
 */
void kbi_queue_down(struct kbi_queue *queue, const char *why)
{
	int state = atomic_xchg(&queue->state, KBI_DEAD);

	if (state == KBI_DEAD)
		return;
	if (why)
		pr_warn("connection ends: %s\n", why);
	queue_work(kbi_wq, &queue->down_work);
	if (state == KBI_CONNECTING)
		complete(&queue->connected);
}

static void kbi_down_work(struct work_struct *work)
{
	struct kbi_queue *queue = container_of(work, struct kbi_queue,
					       down_work);
	struct gendisk *gendisk = queue->disk->gendisk;

	/* Whoever has seen KBI_LIVE is through with sending after this. */
	if (gendisk)
		blk_mq_quiesce_queue(gendisk->queue);
	dat_ep_free(queue->ep);
	dat_evd_modify_upcall(queue->dto_evd, DAT_UPCALL_TEARDOWN,
			      DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW);
	kbi_io_fail_all(queue);
	if (gendisk)
		blk_mq_unquiesce_queue(gendisk->queue);
}

/* The disk is gone, or was never made. Idempotent. */
void kbi_queue_stop(struct kbi_queue *queue)
{
	if (queue->ep) {
		kbi_queue_down(queue, NULL);
		flush_work(&queue->down_work);
		queue->ep = NULL;
	}
	if (queue->dto_evd)
		dat_evd_free(queue->dto_evd);
	if (queue->conn_evd)
		dat_evd_free(queue->conn_evd);
	queue->dto_evd = NULL;
	queue->conn_evd = NULL;
	kbi_io_free(queue);
}

/* ---- Events -------------------------------------------------------------- */

static void kbi_take_welcome(struct kbi_queue *queue, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *data =
		&event->event_data.connect_event_data;

	/* Private data may be padded; nothing at all leaves the magic at 0. */
	if (data->private_data_size >= (DAT_COUNT)sizeof(queue->welcome))
		memcpy(&queue->welcome, data->private_data,
		       sizeof(queue->welcome));
}

static void kbi_conn_upcall(DAT_PVOID data, const DAT_EVENT *event,
			    DAT_BOOLEAN more)
{
	struct kbi_queue *queue = data;

	switch (event->event_number) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		kbi_take_welcome(queue, event);
		if (atomic_cmpxchg(&queue->state, KBI_CONNECTING, KBI_LIVE) ==
		    KBI_CONNECTING)
			complete(&queue->connected);
		return;
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		kbi_take_welcome(queue, event);
		kbi_queue_down(queue, "the target refuses");
		return;
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
		kbi_queue_down(queue, "nobody listens there");
		return;
	case DAT_CONNECTION_EVENT_UNREACHABLE:
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		kbi_queue_down(queue, "the target cannot be reached");
		return;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		kbi_queue_down(queue, "the target has disconnected");
		return;
	default:
		kbi_queue_down(queue, "connection broken");
	}
}

/* ---- Making it ----------------------------------------------------------- */

static int kbi_queue_objects(struct kbi_queue *queue)
{
	DAT_UPCALL_OBJECT dto = { queue, kbi_dto_upcall };
	DAT_UPCALL_OBJECT conn = { queue, kbi_conn_upcall };
	struct kbi_disk *disk = queue->disk;
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = sizeof(struct kblk_request),
		.qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = queue->depth,
		.max_request_dtos = queue->depth,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	DAT_RETURN ret;

	ret = dat_evd_kcreate(disk->ia, 2 * queue->depth,
			      DAT_UPCALL_SINGLE_INSTANCE, &dto,
			      DAT_EVD_DTO_FLAG, &queue->dto_evd);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(disk->ia, KBI_CONN_QLEN,
				      DAT_UPCALL_SINGLE_INSTANCE, &conn,
				      DAT_EVD_CONNECTION_FLAG,
				      &queue->conn_evd);
	if (ret == DAT_SUCCESS)
		ret = dat_ep_create(disk->ia, disk->pz, queue->dto_evd,
				    queue->dto_evd, queue->conn_evd, &attr,
				    &queue->ep);
	if (ret != DAT_SUCCESS)
		pr_err("cannot make a connection: %s\n", kblk_strerror(ret));
	return kblk_errno(ret);
}

static int kbi_welcome_check(struct kbi_queue *queue)
{
	const struct kblk_welcome *welcome = &queue->welcome;
	u16 status = le16_to_cpu(welcome->status);

	if (le32_to_cpu(welcome->magic) != KBLK_MAGIC ||
	    !kblk_is_zero(welcome->reserved, sizeof(welcome->reserved))) {
		pr_err("no kdapl_blk_tgt answers there\n");
		return -EPROTO;
	}
	if (status != KBLK_HELLO_OK) {
		pr_err("the target refuses, status %u; it speaks version %u\n",
		       status, le16_to_cpu(welcome->version));
		return -ECONNREFUSED;
	}
	if (le16_to_cpu(welcome->version) < KBLK_VERSION_MIN ||
	    le16_to_cpu(welcome->version) > KBLK_VERSION_MAX ||
	    le16_to_cpu(welcome->request_size) < sizeof(struct kblk_request) ||
	    le32_to_cpu(welcome->max_transfer) < PAGE_SIZE ||
	    !welcome->credits || welcome->features)
		return -EPROTO;
	return 0;
}

static int kbi_queue_connect(struct kbi_queue *queue, struct sockaddr *addr,
			     u16 port)
{
	struct kblk_hello hello = {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version_min = cpu_to_le16(KBLK_VERSION_MIN),
		.version_max = cpu_to_le16(KBLK_VERSION_MAX),
		.credits = cpu_to_le16(queue->depth),
	};
	DAT_RETURN ret;
	int err;

	ret = dat_ep_connect(queue->ep, addr, port,
			     KBI_CONNECT_TIMEOUT * USEC_PER_SEC, sizeof(hello),
			     &hello, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG);
	if (ret != DAT_SUCCESS) {
		pr_err("cannot connect: %s\n", kblk_strerror(ret));
		return kblk_errno(ret);
	}
	/* kDAPL reports its own timeout; this is for the worst. */
	if (!wait_for_completion_timeout(&queue->connected,
					 2 * KBI_CONNECT_TIMEOUT * HZ))
		return -ETIMEDOUT;
	if (!kbi_queue_live(queue) && !queue->welcome.magic)
		return -ENOTCONN;
	err = kbi_welcome_check(queue);
	if (err)
		return err;
	atomic_set(&queue->credits, min_t(unsigned int, queue->depth,
					  le16_to_cpu(queue->welcome.credits)));
	return 0;
}

/**
 * kbi_queue_start() - connect to the target
 * @queue: zeroed
 * @disk: whose queue it is; its adapter is open
 * @addr: the target's address
 * @port: the port it listens on
 *
 * Context: Process context, may sleep.
 * Return: 0 or an error number; kbi_queue_stop() is to be called either way.
 */
int kbi_queue_start(struct kbi_queue *queue, struct kbi_disk *disk,
		    struct sockaddr *addr, u16 port)
{
	int err;

	queue->disk = disk;
	queue->depth = kbi_depth;
	init_completion(&queue->connected);
	INIT_WORK(&queue->down_work, kbi_down_work);
	err = kbi_queue_objects(queue);
	if (!err)
		err = kbi_io_alloc(queue);
	if (!err)
		err = kbi_queue_connect(queue, addr, port);
	return err;
}
