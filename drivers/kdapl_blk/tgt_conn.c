// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections of the target: accept, watermarks, end.
 *
 * Entry points: kbt_conn_request() and kbt_conn_upcall() for connection requests and connection
 * events of all clients, kbt_conn_backlog() for the soft high watermark, kbt_conn_end() from
 * anywhere, kbt_conn_end_all() when the port stops.
 *
 * Requests come one after the other, and so do events of connections, in process context. A
 * connection ends for several reasons, possibly at once and in softirq: the peer
 * disconnects, kDAPL breaks the connection because the device was removed or the client
 * ignored its credits, a request is malformed, the administrator disables the volume. The
 * function that first sets KBT_CONN_ENDING queues end_work, which disconnects and ends the
 * attachments. The client may send until kDAPL reports the end, so gone_work gives its credits
 * to other clients after that. free_work frees the connection; it is queued by the end of the
 * last attachment, which follows the last request of its volume, by the last busy slot, or by
 * end_work itself.
 *
 * kbt->conns owns the connections; the connection owns its EP, EVDs and slots. Locks:
 * kbt->mutex guards the list and keeps the connections on it alive; conn->lock guards
 * ->draining and the count of idle slots.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "status.h"
#include "tgt.h"

/* ---- Ending -------------------------------------------------------------- */

/*
 * End @conn; calls after the first have no effect. @conn is alive until its
 * end_work has run. litmus: one-winner. Context: any.
 */
void kbt_conn_end(struct kbt_conn *conn)
{
	if (!test_and_set_bit(KBT_CONN_ENDING, &conn->flags))
		queue_work(conn->kbt->end_wq, &conn->end_work);
}

static void kbt_conn_free(struct kbt_conn *conn)
{
	if (conn->ep)
		dat_ep_free(conn->ep);
	/*
	 * dat_evd_free() waits for upcalls; recv_work is cancelled afterwards, because upcalls
	 * queue it.
	 */
	if (conn->recv_evd)
		dat_evd_free(conn->recv_evd);
	if (conn->req_evd)
		dat_evd_free(conn->req_evd);
	cancel_work_sync(&conn->recv_work);
	kbt_credits_end(conn);
	kbt_io_free(conn);
	kfree(conn);
}

/*
 * Queue free_work if the connection is ending, no slot is busy, and the last attachment is
 * gone. The connection may be freed as soon as the lock is dropped. Context: any.
 */
void kbt_conn_drained(struct kbt_conn *conn)
{
	lockdep_assert_held(&conn->lock);

	if (conn->draining && list_empty(&conn->attachments) &&
	    conn->idle_count == conn->kbt->params->io_depth)
		queue_work(conn->kbt->end_wq, &conn->free_work);
}

/*
 * Begin to take the connection down. Posts are flushed at once, but requests on the medium may
 * take long; only this connection waits for them, in free_work.
 */
static void kbt_conn_end_work(struct work_struct *work)
{
	struct kbt_conn *conn = container_of(work, struct kbt_conn, end_work);
	unsigned int depth = conn->kbt->params->io_depth;
	unsigned int i;

	atomic_dec(&conn->kbt->live);
	kbt_conn_forget(conn);
	dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	/* kbt_recv() leaves no message after kbt_recv_stop() from now on. litmus: blk-down */
	set_bit(KBT_CONN_DOWN, &conn->flags);
	cancel_work_sync(&conn->recv_work);
	kbt_recv_stop(conn);
	for (i = 0; i < depth; i++)
		if (kbt_pool_cancel(&conn->ios[i]))
			kbt_io_put(&conn->ios[i]);
	spin_lock_irq(&conn->lock);
	WRITE_ONCE(conn->ended, jiffies);
	conn->draining = true;
	if (test_bit(KBT_CONN_GONE, &conn->flags))
		queue_work(conn->kbt->end_wq, &conn->gone_work);
	kbt_detach_all(conn);
	kbt_conn_drained(conn);
	spin_unlock_irq(&conn->lock);
	/* @conn may already be freed here. */
}

/*
 * Note that kDAPL has reported the end of @conn, whose QP receives nothing any more.
 * kbt->mutex keeps @conn alive. Context: process.
 */
static void kbt_conn_gone(struct kbt_conn *conn)
{
	kbt_conn_end(conn);
	spin_lock_irq(&conn->lock);
	set_bit(KBT_CONN_GONE, &conn->flags);
	if (conn->draining) {
		WRITE_ONCE(conn->ended, jiffies);
		queue_work(conn->kbt->end_wq, &conn->gone_work);
	}
	spin_unlock_irq(&conn->lock);
}

/*
 * Judge the client, return the buffers that it has filled, and give its credits to other clients.
 */
static void kbt_conn_gone_work(struct work_struct *work)
{
	struct kbt_conn *conn = container_of(work, struct kbt_conn, gone_work);

	kbt_recv_stop(conn);
	kbt_judge(conn, false);
	spin_lock_irq(&conn->lock);
	kbt_credits_drop(conn);
	spin_unlock_irq(&conn->lock);
}

/* Free the connection: no slot is busy, and it is attached to nothing. */
static void kbt_conn_free_work(struct work_struct *work)
{
	struct kbt_conn *conn = container_of(work, struct kbt_conn, free_work);
	struct kbt_host *host = conn->host;
	struct kbt *kbt = conn->kbt;
	unsigned int i;

	/* Wait until the caller of kbt_conn_drained() has dropped the lock. */
	spin_lock_irq(&conn->lock);
	spin_unlock_irq(&conn->lock);
	for (i = 0; i < kbt->params->io_depth; i++)
		cancel_work_sync(&conn->ios[i].work);
	kbt_judge(conn, true);
	/* kbt_conn_find() does not return the connection from here on. */
	mutex_lock(&kbt->mutex);
	list_del(&conn->link);
	mutex_unlock(&kbt->mutex);
	cancel_work_sync(&conn->gone_work);
	pr_info_ratelimited("%s: disconnected\n", conn->peer);
	kbt_conn_free(conn);

	kbt_count(kbt, KBT_STAT_DISCONNECTS, 1);
	mutex_lock(&kbt->mutex);
	kbt_host_put(kbt, host);
	WRITE_ONCE(kbt->conn_count, kbt->conn_count - 1);
	kdat_pool_adapt(kbt->adapter.pool, DAT_TRUE);
	mutex_unlock(&kbt->mutex);
	kdat_adapter_put(&kbt->adapter);
}

/* End all connections; there are no new ones. */
void kbt_conn_end_all(struct kbt *kbt)
{
	struct kbt_conn *conn;

	mutex_lock(&kbt->mutex);
	list_for_each_entry(conn, &kbt->conns, link)
		kbt_conn_end(conn);
	mutex_unlock(&kbt->mutex);
}

/* ---- Accepting ----------------------------------------------------------- */

static int kbt_conn_evds(struct kbt_conn *conn)
{
	const struct kbt_params *params = conn->kbt->params;
	DAT_UPCALL_OBJECT recv = { conn, kbt_recv_upcall };
	DAT_UPCALL_OBJECT req = { conn, kbt_req_upcall };
	DAT_RETURN ret;

	/*
	 * One entry more than credits: a message may arrive between the hard high watermark
	 * and the break. The EVD carries connection events as well, because an EVD of DTO
	 * completions alone would call its upcall in softirq.
	 */
	ret = dat_evd_kcreate(conn->kbt->adapter.ia, params->credits + 1,
			      DAT_UPCALL_NOTIFY, &recv,
			      DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG,
			      &conn->recv_evd);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(conn->kbt->adapter.ia, 2 * params->io_depth,
				      DAT_UPCALL_SINGLE_INSTANCE, &req,
				      DAT_EVD_DTO_FLAG, &conn->req_evd);
	return kblk_errno(ret);
}

/*
 * Arm both high watermarks of @conn: the soft one, at half of its credits, throttles the
 * client; beyond the hard one, at all credits, the connection breaks.
 */
void kbt_conn_watermarks(struct kbt_conn *conn)
{
	dat_ep_set_watermark(conn->ep, conn->credits / 2, conn->credits);
}

static int kbt_conn_ep(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = max(KBLK_MESSAGE, KBLK_REPLIES),
		.max_rdma_size = kbt->params->max_transfer,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_request_dtos = 2 * kbt->params->io_depth,
		.max_request_iov = 2 * kbt->data_replies,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
		.max_rdma_read_out = kbt->rdma_read_max,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	DAT_RETURN ret;

	ret = dat_ep_create_with_srq(kbt->adapter.ia, kbt->adapter.pz, conn->recv_evd,
				     conn->req_evd, kbt->adapter.cm_evd, kbt->adapter.srq,
				     &attr, &conn->ep);
	if (ret == DAT_SUCCESS)
		kbt_conn_watermarks(conn);
	return kblk_errno(ret);
}

/* Set the members of @conn that follow from @hello. */
static void kbt_conn_hello(struct kbt_conn *conn, const struct kblk_hello *hello)
{
	u32 features = le32_to_cpu(hello->features);

	conn->session_id = le64_to_cpu(hello->session);
	conn->epoch = le32_to_cpu(hello->epoch);
	conn->queue = le16_to_cpu(hello->queue);
	conn->credits = min_t(u32, le16_to_cpu(hello->credits),
			      conn->kbt->params->credits);
	conn->reply_size = le32_to_cpu(hello->reply_size);
	conn->invalidate = conn->kbt->invalidate &&
			   features & KBLK_FEATURE_INVALIDATE;
	conn->batch = conn->reply_size >= KBLK_BATCH_MAX *
					  sizeof(struct kblk_reply) &&
		      features & KBLK_FEATURE_BATCH;
	conn->requests_batch = features & KBLK_FEATURE_REQUESTS;
	conn->identity = features & KBLK_FEATURE_IDENTITY;
	conn->nounmap = features & KBLK_FEATURE_NOUNMAP;
	conn->sizes = features & KBLK_FEATURE_SIZE;
	conn->auth = features & KBLK_FEATURE_AUTH;
	conn->queues = features & KBLK_FEATURE_QUEUES;
	conn->credits_move = features & KBLK_FEATURE_CREDITS;
	conn->hosts = features & KBLK_FEATURE_HOST;
	conn->hints = features & KBLK_FEATURE_HINTS;
	conn->lists = features & KBLK_FEATURE_LIST;
	/*
	 * Each request that the client may send has a slot then, so no message waits for a
	 * slot that a volume which stands still occupies.
	 */
	if (features & KBLK_FEATURE_VOLUMES && conn->hosts &&
	    conn->credits_move && conn->kbt->params->io_depth > 1) {
		conn->volumes = true;
		conn->credits = min_t(u32, conn->credits,
				      conn->kbt->params->io_depth);
	}
}

static struct kbt_conn *kbt_conn_create(struct kbt *kbt,
					const DAT_CR_PARAM *param,
					const KDAT_HOST *from)
{
	struct kbt_host *host = kbt_host_get(kbt, &from->id);
	struct kbt_conn *conn;
	int err, i;

	if (!host)
		return NULL;
	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn) {
		kbt_host_put(kbt, host);
		return NULL;
	}
	conn->kbt = kbt;
	conn->host = host;
	if (from->proven)
		set_bit(KBT_CONN_PROVEN, &conn->flags);
	kbt_conn_hello(conn, param->private_data);
	conn->heard = jiffies;
	conn->patience = msecs_to_jiffies(kbt->params->attach_ms);
	spin_lock_init(&conn->lock);
	mutex_init(&conn->recv_mutex);
	INIT_LIST_HEAD(&conn->idle);
	INIT_LIST_HEAD(&conn->attachments);
	for (i = 0; i < KBT_LANES; i++)
		INIT_LIST_HEAD(&conn->lanes[i].due);
	INIT_WORK(&conn->recv_work, kbt_recv_work);
	INIT_WORK(&conn->end_work, kbt_conn_end_work);
	INIT_WORK(&conn->gone_work, kbt_conn_gone_work);
	INIT_WORK(&conn->free_work, kbt_conn_free_work);
	strscpy(conn->peer, from->name, sizeof(conn->peer));

	err = kbt_credits_begin(conn) ? 0 : -ENOBUFS;
	if (!err)
		err = kbt_io_alloc(conn);
	if (!err)
		err = kbt_conn_evds(conn);
	if (!err)
		err = kbt_conn_ep(conn);
	if (err) {
		pr_warn_ratelimited("%s: no resources: %pe\n", conn->peer, ERR_PTR(err));
		kbt_conn_free(conn);
		kbt_host_put(kbt, host);
		return NULL;
	}
	return conn;
}

static void kbt_welcome(struct kblk_welcome *welcome, u16 version,
			enum kblk_hello_status status)
{
	memset(welcome, 0, sizeof(*welcome));
	welcome->magic = cpu_to_le32(KBLK_MAGIC);
	welcome->version = cpu_to_le16(version);
	welcome->status = cpu_to_le16(status);
}

static void kbt_refuse(struct kbt *kbt, DAT_CR_HANDLE cr, const KDAT_HOST *from,
		       enum kblk_hello_status status)
{
	struct kblk_welcome welcome;

	kbt_count(kbt, KBT_STAT_REFUSALS, 1);
	pr_warn_ratelimited("%s: connection request refused: %s\n", from->name,
			    kblk_hello_text(status));
	kbt_welcome(&welcome, KBLK_VERSION_MAX, status);
	dat_cr_reject(cr, sizeof(welcome), &welcome);
}

static DAT_RETURN kbt_accept(struct kbt_conn *conn, DAT_CR_HANDLE cr,
			     const struct kblk_hello *hello)
{
	struct kblk_welcome welcome;
	u16 version = min_t(u16, le16_to_cpu(hello->version_max),
			    KBLK_VERSION_MAX);

	kbt_welcome(&welcome, version, KBLK_HELLO_OK);
	welcome.credits = cpu_to_le16(conn->window);
	welcome.request_size = cpu_to_le32(KBLK_MESSAGE);
	welcome.max_transfer = cpu_to_le32(conn->kbt->params->max_transfer);
	if (conn->invalidate)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_INVALIDATE);
	if (conn->batch)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_BATCH);
	if (conn->requests_batch)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_REQUESTS);
	if (conn->identity)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_IDENTITY);
	if (conn->nounmap)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_NOUNMAP);
	if (conn->sizes)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_SIZE);
	if (conn->auth)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_AUTH);
	if (conn->credits_move)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_CREDITS);
	if (conn->hosts)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_HOST);
	if (conn->hints)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_HINTS);
	if (conn->volumes)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_VOLUMES);
	if (conn->lists)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_LIST);
	if (conn->queues) {
		welcome.features |= cpu_to_le32(KBLK_FEATURE_QUEUES);
		welcome.queues = cpu_to_le16(conn->kbt->params->max_queues);
	}
	return dat_cr_accept(cr, conn->ep, sizeof(welcome), &welcome);
}

static void kbt_request(struct kbt *kbt, DAT_CR_HANDLE cr, const DAT_CR_PARAM *param,
			const KDAT_HOST *from)
{
	enum kblk_hello_status status;
	struct kbt_conn *conn;
	DAT_RETURN ret;

	status = kbt_hello_check(param);
	if (status != KBLK_HELLO_OK) {
		kbt_refuse(kbt, cr, from, status);
		return;
	}
	/*
	 * Put the connection on the list before dat_cr_accept(), so that kbt_conn_upcall()
	 * finds it for the first event.
	 */
	mutex_lock(&kbt->mutex);
	status = kbt_session_check(kbt, param->private_data, &from->id);
	conn = status == KBLK_HELLO_OK ? kbt_conn_create(kbt, param, from) : NULL;
	if (!conn) {
		mutex_unlock(&kbt->mutex);
		kbt_refuse(kbt, cr, from, status ?: KBLK_HELLO_RESOURCES);
		return;
	}
	kdat_adapter_get(&kbt->adapter);
	list_add_tail(&conn->link, &kbt->conns);
	WRITE_ONCE(kbt->conn_count, kbt->conn_count + 1);
	atomic_inc(&kbt->live);
	kdat_pool_adapt(kbt->adapter.pool, DAT_TRUE);
	ret = kbt_accept(conn, cr, param->private_data);
	if (ret != DAT_SUCCESS) {
		pr_warn_ratelimited("%s: cannot accept: %s\n", conn->peer,
				    kblk_strerror(ret));
		kbt_conn_end(conn);
	}
	mutex_unlock(&kbt->mutex);
	/* The connection request still has to be answered. */
	if (ret != DAT_SUCCESS)
		kbt_refuse(kbt, cr, from, KBLK_HELLO_RESOURCES);
}

/*
 * The server's function for requests. Allocations are NOIO: reclaim could wait for a write to a
 * disk that needs the new connection, a disk of this host or of a host whose volumes this host
 * uses. Context: process.
 */
void kbt_conn_request(KDAT_ADAPTER *adapter, DAT_PVOID context, DAT_CR_HANDLE cr,
		      const DAT_CR_PARAM *param, const KDAT_HOST *from)
{
	unsigned int noio = memalloc_noio_save();

	kbt_request(container_of(adapter, struct kbt, adapter), cr, param, from);
	memalloc_noio_restore(noio);
}

/* ---- Events -------------------------------------------------------------- */

/* Return the connection of @ep, or NULL. kbt->mutex keeps the connection alive. */
static struct kbt_conn *kbt_conn_find(struct kbt *kbt, DAT_EP_HANDLE ep)
{
	struct kbt_conn *conn;

	lockdep_assert_held(&kbt->mutex);
	list_for_each_entry(conn, &kbt->conns, link)
		if (conn->ep == ep)
			return conn;
	return NULL;
}

/* Upcall of the CM EVD. Allocations are NOIO, as for requests. Context: process. */
void kbt_conn_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	struct kbt *kbt = container_of(data, struct kbt, adapter);
	unsigned int noio = memalloc_noio_save();
	struct kbt_conn *conn;

	mutex_lock(&kbt->mutex);
	conn = kbt_conn_find(kbt, ep);
	if (!conn) {
		/* kbt_conn_free_work() was faster. */
	} else if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		/* Our answer has reached the peer, so the peer has the GID that it named. */
		if (!kbt_host_prove(conn))
			kbt_conn_end(conn);
		kbt_count(kbt, KBT_STAT_CONNECTS, 1);
	} else {
		if (event->event_number == DAT_CONNECTION_EVENT_BROKEN) {
			kbt_count(kbt, KBT_STAT_BROKEN, 1);
			pr_warn_ratelimited("%s: connection broken\n",
					    conn->peer);
		}
		kbt_conn_gone(conn);
	}
	mutex_unlock(&kbt->mutex);
	memalloc_noio_restore(noio);
}

/*
 * Throttle the connection of @ep, whose soft high watermark has fired: hold back credits until
 * kbt_recv() finds no message waiting.
 */
void kbt_conn_backlog(struct kbt *kbt, DAT_EP_HANDLE ep)
{
	struct kbt_conn *conn;

	kbt_count(kbt, KBT_STAT_THROTTLED, 1);
	mutex_lock(&kbt->mutex);
	conn = kbt_conn_find(kbt, ep);
	if (conn && !kbt_conn_ending(conn)) {
		/* kbt_look_after() logs the end of this. */
		if (!conn->backlogs++)
			pr_info_ratelimited("%s: more than %u messages are waiting, throttled\n",
					    conn->peer, conn->credits / 2);
		conn->backlog_at = jiffies;
		spin_lock_irq(&conn->lock);
		conn->throttled = true;
		spin_unlock_irq(&conn->lock);
		queue_work(kbt->wq, &conn->recv_work);
	}
	mutex_unlock(&kbt->mutex);
}
