// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections of the target.
 *
 * Connection requests and connection events of all clients come through one
 * EVD, so their upcalls are serialised and run in process context. A connection
 * ends for many reasons, several of them at once and some in softirq: the peer
 * disconnects, kDAPL breaks it because the device went or the client ignored its
 * credits, a request is malformed, the administrator takes the volume away.
 * Whoever sets KBT_CONN_ENDING first queues the one work item that takes it
 * down. That waits for every request that is under way, so when a connection has
 * left the list nothing of it will touch the volume any more.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "tgt.h"

#define KBT_SLOW_DRAIN	(10 * HZ)
#define KBT_SILENCE_CHECK (HZ / 4)

/* ---- Clients that behave badly ------------------------------------------- */

static bool kbt_same_host(const struct sockaddr_storage *a,
			  const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (void *)a, *b6 = (void *)b;
	const struct sockaddr_in *a4 = (void *)a, *b4 = (void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr);
	return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

/* Nobody may connect from there for a while. Under kbt->mutex. */
static void kbt_shun(struct kbt *kbt, const struct sockaddr_storage *host)
{
	u32 ms = kbt->params->penalty_ms;
	struct kbt_shunned *entry;

	if (!ms)
		return;
	entry = &kbt->shunned[kbt->shun_next++ % KBT_SHUNNED];
	entry->host = *host;
	entry->until = jiffies + msecs_to_jiffies(ms);
}

static bool kbt_is_shunned(struct kbt *kbt, const struct sockaddr_storage *host)
{
	unsigned int i;

	for (i = 0; i < KBT_SHUNNED; i++)
		if (kbt->shunned[i].host.ss_family &&
		    time_before(jiffies, kbt->shunned[i].until) &&
		    kbt_same_host(&kbt->shunned[i].host, host))
			return true;
	return false;
}

/*
 * Has it sent more requests than its credits allow? Then it has reached its hard
 * high watermark, which nobody else does. When it is drained: a reply counts if it
 * has arrived, as what is posted once the connection is broken does not fail but is
 * flushed.
 */
static bool kbt_is_greedy(struct kbt_conn *conn)
{
	DAT_COUNT held = 0;

	dat_ep_recv_query(conn->ep, &held, NULL);
	return held + atomic64_read(&conn->requests) -
	       atomic64_read(&conn->delivered) > conn->credits;
}

/* The connection ends; whatever was noticed first, is that why? */
static void kbt_judge(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;

	if (!conn->overdrawn && !kbt_is_greedy(conn))
		return;
	kbt_count(kbt, KBT_STAT_CUT_OFF, 1);
	pr_warn_ratelimited("%s: has ignored its credits, cut off\n",
			    conn->peer);
	mutex_lock(&kbt->mutex);
	kbt_shun(kbt, &conn->host);
	mutex_unlock(&kbt->mutex);
}

/* ---- Ending -------------------------------------------------------------- */

/* Any context; the connection is alive until its end_work has run. */
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
	kbt_detach(conn);
	kfree(conn);
}

/* Wait until no slot is busy: posts are flushed, the medium takes its time. */
static void kbt_conn_drain(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;
	unsigned int depth = kbt->params->io_depth;
	unsigned int i;

	dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	cancel_work_sync(&conn->recv_work);
	kbt_recv_stop(conn);
	for (i = 0; i < depth; i++)
		if (kbt_pool_cancel(&kbt->pages, &conn->ios[i]) ||
		    kbt_pool_cancel(&kbt->pool, &conn->ios[i]))
			kbt_io_put(&conn->ios[i]);
	while (!wait_event_timeout(conn->all_idle,
				   READ_ONCE(conn->idle_count) == depth,
				   KBT_SLOW_DRAIN))
		pr_warn("%s: %u requests are still under way\n", conn->peer,
			depth - READ_ONCE(conn->idle_count));
	/* The one that woke us has left the lock. */
	spin_lock_irq(&conn->lock);
	spin_unlock_irq(&conn->lock);
	for (i = 0; i < depth; i++)
		cancel_work_sync(&conn->ios[i].work);
}

static void kbt_conn_end_work(struct work_struct *work)
{
	struct kbt_conn *conn = container_of(work, struct kbt_conn, end_work);
	struct kbt *kbt = conn->kbt;

	kbt_conn_drain(conn);
	kbt_judge(conn);
	/* From here on no event finds it. */
	mutex_lock(&kbt->mutex);
	list_del(&conn->link);
	mutex_unlock(&kbt->mutex);
	pr_info_ratelimited("%s: disconnected\n", conn->peer);
	kbt_conn_free(conn);

	kbt_count(kbt, KBT_STAT_DISCONNECTS, 1);
	mutex_lock(&kbt->mutex);
	WRITE_ONCE(kbt->conn_count, kbt->conn_count - 1);
	kbt_srq_adapt(kbt);
	wake_up(&kbt->idle);
	mutex_unlock(&kbt->mutex);
}

/* End all connections, let no new one in, and wait until they are gone. */
void kbt_conn_end_all(struct kbt *kbt)
{
	struct kbt_conn *conn;

	mutex_lock(&kbt->mutex);
	kbt->stopping = true;
	list_for_each_entry(conn, &kbt->conns, link)
		kbt_conn_end(conn);
	mutex_unlock(&kbt->mutex);
	wait_event(kbt->idle, !READ_ONCE(kbt->conn_count));
	/* Whoever woke us has left the lock. */
	mutex_lock(&kbt->mutex);
	mutex_unlock(&kbt->mutex);
}

/* ---- Silence ------------------------------------------------------------- */

static bool kbt_is_silent(struct kbt_conn *conn)
{
	unsigned long patience = READ_ONCE(conn->patience);

	return patience &&
	       time_after(jiffies, READ_ONCE(conn->heard) + patience);
}

/* A client has a receive posted for each reply, or it keeps what others need. */
static bool kbt_is_stuck(struct kbt_conn *conn)
{
	u32 ms = conn->kbt->params->reply_ms;

	if (!ms ||
	    atomic64_read(&conn->replied) == atomic64_read(&conn->delivered))
		return false;
	/* See kbt_note_replies(). */
	smp_rmb();
	return time_after(jiffies,
			  READ_ONCE(conn->moved) + msecs_to_jiffies(ms));
}

/* End those that do not speak as promised, or do not listen. */
void kbt_silence_work(struct work_struct *work)
{
	struct kbt *kbt = container_of(to_delayed_work(work), struct kbt,
				       silence_work);
	struct kbt_conn *conn;

	mutex_lock(&kbt->mutex);
	list_for_each_entry(conn, &kbt->conns, link) {
		if (kbt_conn_ending(conn))
			continue;
		if (kbt_is_silent(conn)) {
			kbt_count(kbt, KBT_STAT_SILENT, 1);
			pr_warn_ratelimited("%s: %s, ending the connection\n",
					    conn->peer, READ_ONCE(conn->ns) ?
					    "silent for too long" :
					    "has not attached in time");
			kbt_conn_end(conn);
		} else if (kbt_is_stuck(conn)) {
			kbt_count(kbt, KBT_STAT_STUCK, 1);
			pr_warn_ratelimited("%s: does not take its replies, ending the connection\n",
					    conn->peer);
			kbt_shun(kbt, &conn->host);
			kbt_conn_end(conn);
		}
	}
	mutex_unlock(&kbt->mutex);
	queue_delayed_work(kbt->end_wq, &kbt->silence_work, KBT_SILENCE_CHECK);
}

/* ---- Accepting ----------------------------------------------------------- */

static int kbt_conn_evds(struct kbt_conn *conn)
{
	const struct kbt_params *params = conn->kbt->params;
	DAT_UPCALL_OBJECT recv = { conn, kbt_recv_upcall };
	DAT_UPCALL_OBJECT req = { conn, kbt_req_upcall };
	DAT_RETURN ret;

	/*
	 * What comes after the hard watermark has broken it may wait. Two streams, as
	 * one of completions alone would call in softirq.
	 */
	ret = dat_evd_kcreate(conn->kbt->ia, params->credits + 1,
			      DAT_UPCALL_NOTIFY, &recv,
			      DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG,
			      &conn->recv_evd);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(conn->kbt->ia, 2 * params->io_depth,
				      DAT_UPCALL_SINGLE_INSTANCE, &req,
				      DAT_EVD_DTO_FLAG, &conn->req_evd);
	return kblk_errno(ret);
}

/* Arm both high watermarks: throttle at half of the credits, break beyond. */
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

	ret = dat_ep_create_with_srq(kbt->ia, kbt->pz, conn->recv_evd,
				     conn->req_evd, kbt->cm_evd, kbt->srq,
				     &attr, &conn->ep);
	if (ret == DAT_SUCCESS)
		kbt_conn_watermarks(conn);
	return kblk_errno(ret);
}

static void kbt_copy_host(struct sockaddr_storage *to, const void *from)
{
	const struct sockaddr *addr = from;

	memcpy(to, from, addr->sa_family == AF_INET6 ?
	       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

static struct kbt_conn *kbt_conn_create(struct kbt *kbt,
					const DAT_CR_PARAM *param)
{
	struct kbt_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	const struct kblk_hello *hello = param->private_data;
	int err, i;

	if (!conn)
		return NULL;
	conn->kbt = kbt;
	conn->session = le64_to_cpu(hello->session);
	conn->epoch = le32_to_cpu(hello->epoch);
	conn->queue = le16_to_cpu(hello->queue);
	conn->credits = min_t(u32, le16_to_cpu(hello->credits),
			      kbt->params->credits);
	conn->reply_size = le32_to_cpu(hello->reply_size);
	conn->invalidate = kbt->invalidate &&
			   le32_to_cpu(hello->features) &
			   KBLK_FEATURE_INVALIDATE;
	conn->batch = conn->reply_size >= KBLK_BATCH_MAX *
					  sizeof(struct kblk_reply) &&
		      le32_to_cpu(hello->features) & KBLK_FEATURE_BATCH;
	conn->requests_batch = le32_to_cpu(hello->features) &
			       KBLK_FEATURE_REQUESTS;
	conn->heard = jiffies;
	conn->patience = msecs_to_jiffies(kbt->params->attach_ms);
	kbt_copy_host(&conn->host, param->remote_ia_address_ptr);
	spin_lock_init(&conn->lock);
	mutex_init(&conn->recv_mutex);
	INIT_LIST_HEAD(&conn->idle);
	for (i = 0; i < KBT_LANES; i++)
		INIT_LIST_HEAD(&conn->lanes[i].due);
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
	    le32_to_cpu(hello->magic) != KBLK_MAGIC)
		return KBLK_HELLO_MALFORMED;
	if (le16_to_cpu(hello->version_min) > KBLK_VERSION_MAX ||
	    le16_to_cpu(hello->version_max) < KBLK_VERSION_MIN ||
	    le16_to_cpu(hello->version_min) > le16_to_cpu(hello->version_max))
		return KBLK_HELLO_VERSION;
	if (le16_to_cpu(hello->credits) < 2 || !hello->session ||
	    le32_to_cpu(hello->reply_size) < sizeof(struct kblk_reply) +
					     sizeof(struct kblk_identify))
		return KBLK_HELLO_MALFORMED;
	return KBLK_HELLO_OK;
}

/*
 * Connections of an earlier epoch of the same disk are dead for the initiator,
 * whatever they look like here. Under kbt->mutex.
 */
static enum kblk_hello_status kbt_session_check(struct kbt *kbt,
						const DAT_CR_PARAM *param)
{
	const struct kblk_hello *hello = param->private_data;
	enum kblk_hello_status status = KBLK_HELLO_OK;
	u32 epoch = le32_to_cpu(hello->epoch);
	struct kbt_conn *conn;

	if (kbt->stopping)
		return KBLK_HELLO_STOPPING;
	list_for_each_entry(conn, &kbt->conns, link) {
		if (conn->session != le64_to_cpu(hello->session) ||
		    conn->epoch == epoch)
			continue;
		if ((s32)(conn->epoch - epoch) > 0)
			return KBLK_HELLO_STALE;
		kbt_conn_end(conn);
		status = KBLK_HELLO_DRAINING;
	}
	if (status == KBLK_HELLO_OK &&
	    kbt->conn_count >= kbt->params->max_conns)
		status = KBLK_HELLO_BUSY;
	if (status == KBLK_HELLO_OK &&
	    kbt_is_shunned(kbt, (void *)param->remote_ia_address_ptr))
		status = KBLK_HELLO_SHUNNED;
	return status;
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

	kbt_count(kbt, KBT_STAT_REFUSALS, 1);
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

	kbt_welcome(&welcome, version, KBLK_HELLO_OK);
	welcome.credits = cpu_to_le16(conn->credits);
	welcome.request_size = cpu_to_le32(KBLK_MESSAGE);
	welcome.max_transfer = cpu_to_le32(conn->kbt->params->max_transfer);
	if (conn->invalidate)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_INVALIDATE);
	if (conn->batch)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_BATCH);
	if (conn->requests_batch)
		welcome.features |= cpu_to_le32(KBLK_FEATURE_REQUESTS);
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
	if (status != KBLK_HELLO_OK) {
		kbt_refuse(kbt, cr, status);
		return;
	}
	/* Listed before anything can happen to it, or not at all. */
	mutex_lock(&kbt->mutex);
	status = kbt_session_check(kbt, &param);
	conn = status == KBLK_HELLO_OK ? kbt_conn_create(kbt, &param) : NULL;
	if (!conn) {
		mutex_unlock(&kbt->mutex);
		kbt_refuse(kbt, cr, status ?: KBLK_HELLO_RESOURCES);
		return;
	}
	list_add_tail(&conn->link, &kbt->conns);
	WRITE_ONCE(kbt->conn_count, kbt->conn_count + 1);
	kbt_srq_adapt(kbt);
	ret = kbt_accept(conn, cr, param.private_data);
	if (ret != DAT_SUCCESS) {
		pr_warn_ratelimited("%s: cannot accept: %s\n", conn->peer,
				    kblk_strerror(ret));
		kbt_conn_end(conn);
	}
	mutex_unlock(&kbt->mutex);
}

/* ---- Events -------------------------------------------------------------- */

/* Under kbt->mutex, which keeps the connection alive. */
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

/*
 * The soft high watermark of a connection has fired: hold back credits until it
 * has nothing waiting any more, see kbt_recv_work().
 */
void kbt_conn_backlog(struct kbt *kbt, DAT_EP_HANDLE ep)
{
	struct kbt_conn *conn;

	kbt_count(kbt, KBT_STAT_THROTTLED, 1);
	mutex_lock(&kbt->mutex);
	conn = kbt_conn_find(kbt, ep);
	if (conn && !kbt_conn_ending(conn)) {
		pr_info_ratelimited("%s: more than %u messages are waiting, throttled\n",
				    conn->peer, conn->credits / 2);
		spin_lock_irq(&conn->lock);
		conn->throttled = true;
		spin_unlock_irq(&conn->lock);
		queue_work(kbt->wq, &conn->recv_work);
	}
	mutex_unlock(&kbt->mutex);
}
