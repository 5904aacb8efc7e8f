// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clients of the target.
 *
 * Connection requests and connection events of all clients come through one
 * EVD, so their upcalls are serialised and run in process context. A client
 * ends for many reasons, several of them at once and some in softirq: the peer
 * disconnects, kDAPL breaks the connection because the device went or the client
 * ignored its credits, a request is malformed, the module is unloaded. Whoever
 * sets KBT_CONN_ENDING first queues the one work item that takes it down.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/slab.h>
#include "tgt.h"

/* Flushed posts complete at once; this is for a device that has died badly. */
#define KBT_DRAIN_TIMEOUT	(10 * HZ)

/* ---- Ending -------------------------------------------------------------- */

/* Any context; the client is alive until its end_work has run. */
void kbt_conn_end(struct kbt_conn *conn)
{
	if (!test_and_set_bit(KBT_CONN_ENDING, &conn->flags))
		queue_work(conn->kbt->end_wq, &conn->end_work);
}

static void kbt_conn_free(struct kbt_conn *conn)
{
	if (conn->ep)
		dat_ep_free(conn->ep);
	/* Wait for upcalls; none comes afterwards, so no work either. */
	if (conn->recv_evd)
		dat_evd_free(conn->recv_evd);
	if (conn->req_evd)
		dat_evd_free(conn->req_evd);
	cancel_work_sync(&conn->recv_work);
	kbt_io_free(conn);
	kfree(conn);
}

static void kbt_conn_drain(struct kbt_conn *conn)
{
	unsigned int i;

	dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	cancel_work_sync(&conn->recv_work);
	for (i = 0; i < kbt_io_depth; i++)
		flush_work(&conn->ios[i].work);
	if (!wait_event_timeout(conn->all_idle,
				READ_ONCE(conn->idle_count) == kbt_io_depth,
				KBT_DRAIN_TIMEOUT))
		pr_warn("%s: posts did not complete\n", conn->peer);
	/* The one that woke us has left the lock. */
	spin_lock_bh(&conn->lock);
	spin_unlock_bh(&conn->lock);
}

static void kbt_conn_end_work(struct work_struct *work)
{
	struct kbt_conn *conn = container_of(work, struct kbt_conn, end_work);
	struct kbt *kbt = conn->kbt;

	kbt_conn_drain(conn);
	/* From here on no event finds it. */
	mutex_lock(&kbt->mutex);
	list_del(&conn->link);
	mutex_unlock(&kbt->mutex);
	pr_info("%s: disconnected\n", conn->peer);
	kbt_conn_free(conn);

	kbt_count(kbt, KBT_STAT_DISCONNECTS, 1);
	mutex_lock(&kbt->mutex);
	WRITE_ONCE(kbt->conn_count, kbt->conn_count - 1);
	wake_up(&kbt->idle);
	mutex_unlock(&kbt->mutex);
}

/* End all clients, let no new one in, and wait until they are gone. */
void kbt_conn_end_all(struct kbt *kbt)
{
	struct kbt_conn *conn;

	mutex_lock(&kbt->mutex);
	kbt->stopping = true;
	list_for_each_entry(conn, &kbt->conns, link)
		kbt_conn_end(conn);
	mutex_unlock(&kbt->mutex);
	/* Their last steps are waited for by kbt_workqueues_free(). */
	wait_event(kbt->idle, !READ_ONCE(kbt->conn_count));
}

/* ---- Accepting ----------------------------------------------------------- */

static int kbt_conn_evds(struct kbt_conn *conn)
{
	DAT_UPCALL_OBJECT recv = { conn, kbt_recv_upcall };
	DAT_UPCALL_OBJECT req = { conn, kbt_req_upcall };
	DAT_RETURN ret;

	/* Nobody can send more than what makes the hard watermark break. */
	ret = dat_evd_kcreate(conn->kbt->ia, kbt_credits + 1,
			      DAT_UPCALL_NOTIFY, &recv, DAT_EVD_DTO_FLAG,
			      &conn->recv_evd);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(conn->kbt->ia, 2 * kbt_io_depth,
				      DAT_UPCALL_SINGLE_INSTANCE, &req,
				      DAT_EVD_DTO_FLAG, &conn->req_evd);
	return kblk_errno(ret);
}

static int kbt_conn_ep(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = KBT_RX_SIZE,
		.max_rdma_size = KBT_MAX_TRANSFER,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_request_dtos = 2 * kbt_io_depth,
		.max_request_iov = 1,
		.max_rdma_write_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	DAT_RETURN ret;

	ret = dat_ep_create_with_srq(kbt->ia, kbt->pz, conn->recv_evd,
				     conn->req_evd, kbt->cm_evd, kbt->srq,
				     &attr, &conn->ep);
	if (ret == DAT_SUCCESS)
		ret = dat_ep_set_watermark(conn->ep, kbt_credits / 2,
					   kbt_credits);
	return kblk_errno(ret);
}

static struct kbt_conn *kbt_conn_create(struct kbt *kbt,
					const DAT_CR_PARAM *param)
{
	struct kbt_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	int err;

	if (!conn)
		return NULL;
	conn->kbt = kbt;
	spin_lock_init(&conn->lock);
	INIT_LIST_HEAD(&conn->idle);
	init_waitqueue_head(&conn->all_idle);
	INIT_WORK(&conn->recv_work, kbt_recv_work);
	INIT_WORK(&conn->end_work, kbt_conn_end_work);
	snprintf(conn->peer, sizeof(conn->peer), "%pISpc",
		 param->remote_ia_address_ptr);

	err = kbt_io_alloc(conn);
	if (!err)
		err = kbt_conn_evds(conn);
	if (!err)
		err = kbt_conn_ep(conn);
	if (err) {
		pr_warn_ratelimited("%s: no resources: %d\n", conn->peer, err);
		kbt_conn_free(conn);
		return NULL;
	}
	return conn;
}

static enum kblk_hello_status kbt_hello_check(const DAT_CR_PARAM *param)
{
	const struct kblk_hello *hello = param->private_data;

	if (param->private_data_size < (DAT_COUNT)sizeof(*hello) ||
	    le32_to_cpu(hello->magic) != KBLK_MAGIC ||
	    !hello->credits ||
	    !kblk_is_zero(hello->reserved, sizeof(hello->reserved)))
		return KBLK_HELLO_MALFORMED;
	if (le16_to_cpu(hello->version_min) > KBLK_VERSION_MAX ||
	    le16_to_cpu(hello->version_max) < KBLK_VERSION_MIN ||
	    le16_to_cpu(hello->version_min) > le16_to_cpu(hello->version_max))
		return KBLK_HELLO_VERSION;
	return KBLK_HELLO_OK;
}

static void kbt_welcome(struct kblk_welcome *welcome, u16 version,
			enum kblk_hello_status status)
{
	memset(welcome, 0, sizeof(*welcome));
	welcome->magic = cpu_to_le32(KBLK_MAGIC);
	welcome->version = cpu_to_le16(version);
	welcome->status = cpu_to_le16(status);
}

static void kbt_refuse(struct kbt *kbt, DAT_CR_HANDLE cr,
		       enum kblk_hello_status status)
{
	struct kblk_welcome welcome;

	kbt_count(kbt, KBT_STAT_CONNECT_REFUSALS, 1);
	pr_warn_ratelimited("connection request refused, status %d\n", status);
	kbt_welcome(&welcome, KBLK_VERSION_MAX, status);
	dat_cr_reject(cr, sizeof(welcome), &welcome);
}

static DAT_RETURN kbt_accept(struct kbt_conn *conn, DAT_CR_HANDLE cr,
			     const struct kblk_hello *hello)
{
	struct kblk_welcome welcome;
	u16 version = min_t(u16, le16_to_cpu(hello->version_max),
			    KBLK_VERSION_MAX);
	u16 credits = min_t(u16, le16_to_cpu(hello->credits), kbt_credits);

	kbt_welcome(&welcome, version, KBLK_HELLO_OK);
	welcome.credits = cpu_to_le16(credits);
	welcome.request_size = cpu_to_le16(sizeof(struct kblk_request));
	welcome.max_transfer = cpu_to_le32(KBT_MAX_TRANSFER);
	return dat_cr_accept(cr, conn->ep, sizeof(welcome), &welcome);
}

static void kbt_request(struct kbt *kbt, DAT_CR_HANDLE cr)
{
	enum kblk_hello_status status;
	struct kbt_conn *conn;
	DAT_CR_PARAM param;
	DAT_RETURN ret;

	if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &param) != DAT_SUCCESS)
		return;
	status = kbt_hello_check(&param);
	if (status == KBLK_HELLO_OK && kbt->conn_count >= kbt_max_clients)
		status = KBLK_HELLO_BUSY;
	if (status != KBLK_HELLO_OK) {
		kbt_refuse(kbt, cr, status);
		return;
	}
	conn = kbt_conn_create(kbt, &param);
	if (!conn) {
		kbt_refuse(kbt, cr, KBLK_HELLO_RESOURCES);
		return;
	}

	/* Listed before anything can happen to it, or not at all. */
	mutex_lock(&kbt->mutex);
	if (kbt->stopping) {
		mutex_unlock(&kbt->mutex);
		kbt_refuse(kbt, cr, KBLK_HELLO_STOPPING);
		kbt_conn_free(conn);
		return;
	}
	list_add_tail(&conn->link, &kbt->conns);
	kbt->conn_count++;
	ret = kbt_accept(conn, cr, param.private_data);
	if (ret != DAT_SUCCESS) {
		pr_warn_ratelimited("%s: cannot accept: %s\n", conn->peer,
				    kblk_strerror(ret));
		kbt_conn_end(conn);
	}
	mutex_unlock(&kbt->mutex);
}

/* ---- Events -------------------------------------------------------------- */

/* Under kbt->mutex, which keeps the client alive. */
static struct kbt_conn *kbt_conn_find(struct kbt *kbt, DAT_EP_HANDLE ep)
{
	struct kbt_conn *conn;

	lockdep_assert_held(&kbt->mutex);
	list_for_each_entry(conn, &kbt->conns, link)
		if (conn->ep == ep)
			return conn;
	return NULL;
}

static void kbt_conn_event(struct kbt *kbt, const DAT_EVENT *event)
{
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	struct kbt_conn *conn;

	mutex_lock(&kbt->mutex);
	conn = kbt_conn_find(kbt, ep);
	if (!conn) {
		/* Ended meanwhile. */
	} else if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		kbt_count(kbt, KBT_STAT_CONNECTS, 1);
		pr_info("%s: connected\n", conn->peer);
	} else {
		if (event->event_number == DAT_CONNECTION_EVENT_BROKEN) {
			kbt_count(kbt, KBT_STAT_BROKEN, 1);
			pr_warn_ratelimited("%s: connection broken\n",
					    conn->peer);
		}
		kbt_conn_end(conn);
	}
	mutex_unlock(&kbt->mutex);
}

/* Requests to connect and what becomes of connections. Process context. */
void kbt_cm_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kbt *kbt = data;

	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		kbt_request(kbt,
			    event->event_data.cr_arrival_event_data.cr_handle);
	else
		kbt_conn_event(kbt, event);
}

/* The soft high watermark of a client has fired: say so, once per client. */
void kbt_conn_backlog(struct kbt *kbt, DAT_EP_HANDLE ep)
{
	struct kbt_conn *conn;

	kbt_count(kbt, KBT_STAT_SOFT_WATERMARK, 1);
	mutex_lock(&kbt->mutex);
	conn = kbt_conn_find(kbt, ep);
	if (conn)
		pr_info_ratelimited("%s: more than %u requests are waiting\n",
				    conn->peer, kbt_credits / 2);
	mutex_unlock(&kbt->mutex);
}
