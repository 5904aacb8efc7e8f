// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of a client.
 *
 * kDAPL notifies in softirq that a request is there; a work item takes it off
 * the EVD as soon as a slot is free, copies it, gives the buffer back, and lets
 * another work item read the volume. The RDMA Write of the data and the Send of
 * the reply are posted in one go: an Endpoint completes and delivers in order,
 * so whoever sees the reply has the data. The slot is free again when both have
 * completed, which is also what makes room for the client's next request.
 *
 * Everything in a request comes from a stranger. A message that breaks the
 * format ends the connection, since nothing after it can be trusted either;
 * a well-formed request for the impossible gets an error reply. Where the data
 * goes is the client's business: its adapter refuses what it has not offered,
 * which breaks the connection.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/slab.h>
#include "tgt.h"

static DAT_LMR_TRIPLET kbt_io_reply_seg(struct kbt_io *io)
{
	return kblk_seg(&io->conn->replies,
			(io - io->conn->ios) * sizeof(struct kblk_reply),
			sizeof(struct kblk_reply));
}

/* ---- Slots --------------------------------------------------------------- */

static struct kbt_io *kbt_io_get(struct kbt_conn *conn)
{
	struct kbt_io *io;

	spin_lock_bh(&conn->lock);
	io = list_first_entry_or_null(&conn->idle, struct kbt_io, link);
	if (io) {
		list_del(&io->link);
		conn->idle_count--;
		atomic_set(&io->pending, 1);
	}
	spin_unlock_bh(&conn->lock);
	return io;
}

/* Give an unused slot back. */
static void kbt_io_unget(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;

	spin_lock_bh(&conn->lock);
	list_add(&io->link, &conn->idle);
	conn->idle_count++;
	if (kbt_conn_ending(conn))
		wake_up(&conn->all_idle);
	spin_unlock_bh(&conn->lock);
}

/*
 * One reason less for the slot to be busy. Whoever waits for all slots may free
 * the client as soon as the lock is dropped.
 */
static void kbt_io_put(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;

	if (!atomic_dec_and_test(&io->pending))
		return;
	spin_lock_bh(&conn->lock);
	list_add(&io->link, &conn->idle);
	conn->idle_count++;
	if (!kbt_conn_ending(conn))
		queue_work(conn->kbt->wq, &conn->recv_work);
	else
		wake_up(&conn->all_idle);
	spin_unlock_bh(&conn->lock);
}

/* ---- Checking ------------------------------------------------------------ */

/* What is wrong with the format, or NULL. */
static const char *kbt_io_malformed(const struct kblk_request *request,
				    u32 length)
{
	if (length < sizeof(*request))
		return "truncated request";
	if (length > sizeof(*request))
		return "oversize request";
	if (le32_to_cpu(request->magic) != KBLK_MAGIC)
		return "bad magic";
	if (request->flags || request->reserved0 ||
	    !kblk_is_zero(request->reserved, sizeof(request->reserved)))
		return "reserved bits set";
	return NULL;
}

static enum kblk_status kbt_io_check(struct kbt_io *io)
{
	const struct kblk_request *request = &io->request;
	const struct kbt_volume *volume = &io->conn->kbt->volume;
	u64 offset = le64_to_cpu(request->offset);
	u32 length = le32_to_cpu(request->length);

	switch (request->opcode) {
	case KBLK_OP_IDENTIFY:
		if (offset || length != sizeof(struct kblk_identify))
			return KBLK_ERR_INVALID;
		return KBLK_OK;
	case KBLK_OP_READ:
		if (!length || length > KBT_MAX_TRANSFER ||
		    !IS_ALIGNED(length, volume->block_size) ||
		    !IS_ALIGNED(offset, volume->block_size))
			return KBLK_ERR_INVALID;
		if (offset > volume->size || length > volume->size - offset)
			return KBLK_ERR_RANGE;
		return KBLK_OK;
	default:
		return KBLK_ERR_UNSUPPORTED;
	}
}

/* ---- Serving ------------------------------------------------------------- */

static void kbt_io_identify(struct kbt_io *io)
{
	const struct kbt_volume *volume = &io->conn->kbt->volume;
	struct kblk_identify *identify = io->data.va;

	memset(identify, 0, sizeof(*identify));
	identify->size = cpu_to_le64(volume->size);
	identify->block_size = cpu_to_le32(volume->block_size);
	identify->flags = cpu_to_le32(KBLK_VOLUME_READ_ONLY);
}

static enum kblk_status kbt_io_read(struct kbt_io *io)
{
	struct kbt *kbt = io->conn->kbt;
	loff_t pos = le64_to_cpu(io->request.offset);
	u32 length = le32_to_cpu(io->request.length);
	u32 done = 0;
	ssize_t n;

	while (done < length) {
		n = kernel_read(kbt->volume.file, io->data.va + done,
				length - done, &pos);
		/* The file may have been truncated under our feet. */
		if (n <= 0) {
			pr_warn_ratelimited("reading the volume: %zd\n", n);
			return KBLK_ERR_IO;
		}
		done += n;
	}
	kbt_count(kbt, KBT_STAT_READS, 1);
	kbt_count(kbt, KBT_STAT_READ_BYTES, length);
	return KBLK_OK;
}

/* Post the data, if any, and the reply; each post holds the slot. */
static DAT_RETURN kbt_io_answer(struct kbt_io *io, enum kblk_status status)
{
	const struct kblk_request *request = &io->request;
	u32 length = status == KBLK_OK ? le32_to_cpu(request->length) : 0;
	DAT_LMR_TRIPLET data = kblk_seg(&io->data, 0, length);
	DAT_LMR_TRIPLET seg = kbt_io_reply_seg(io);
	struct kblk_reply *reply = io->conn->replies.va;
	DAT_RMR_TRIPLET remote = {
		.virtual_address = le64_to_cpu(request->address),
		.segment_length = length,
		.rmr_context = le32_to_cpu(request->rmr_context),
	};
	DAT_DTO_COOKIE cookie = { .as_ptr = io };
	DAT_RETURN ret;

	if (length) {
		atomic_inc(&io->pending);
		ret = dat_ep_post_rdma_write(io->conn->ep, 1, &data, cookie,
					     &remote,
					     DAT_COMPLETION_DEFAULT_FLAG);
		if (ret != DAT_SUCCESS)
			goto not_posted;
	}

	reply += io - io->conn->ios;
	memset(reply, 0, sizeof(*reply));
	reply->magic = cpu_to_le32(KBLK_MAGIC);
	reply->status = cpu_to_le16(status);
	reply->credits = cpu_to_le16(1);
	reply->id = request->id;
	reply->length = cpu_to_le32(length);
	atomic_inc(&io->pending);
	ret = dat_ep_post_send(io->conn->ep, 1, &seg, cookie,
			       DAT_COMPLETION_DEFAULT_FLAG);
	if (ret == DAT_SUCCESS)
		return DAT_SUCCESS;

not_posted:
	atomic_dec(&io->pending);
	return ret;
}

static void kbt_io_work(struct work_struct *work)
{
	struct kbt_io *io = container_of(work, struct kbt_io, work);
	struct kbt_conn *conn = io->conn;
	enum kblk_status status;
	DAT_RETURN ret;

	if (kbt_conn_ending(conn))
		goto out;
	status = kbt_io_check(io);
	if (status == KBLK_OK && io->request.opcode == KBLK_OP_IDENTIFY)
		kbt_io_identify(io);
	else if (status == KBLK_OK)
		status = kbt_io_read(io);
	if (status != KBLK_OK)
		kbt_count(conn->kbt, KBT_STAT_ERROR_REPLIES, 1);
	ret = kbt_io_answer(io, status);
	if (ret != DAT_SUCCESS) {
		pr_warn_ratelimited("%s: cannot answer: %s\n", conn->peer,
				    kblk_strerror(ret));
		kbt_conn_end(conn);
	}
out:
	kbt_io_put(io);
}

/* A post of ours has completed. Softirq. */
void kbt_req_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	struct kbt_conn *conn = data;

	/* Of what is flushed an event of the connection tells the reason. */
	if (dto->status != DAT_DTO_SUCCESS &&
	    dto->status != DAT_DTO_ERR_FLUSHED) {
		kbt_count(conn->kbt, KBT_STAT_DTO_ERRORS, 1);
		kbt_conn_end(conn);
	}
	kbt_io_put(dto->user_cookie.as_ptr);
}

/* ---- Receiving ----------------------------------------------------------- */

/* Something is on the receive EVD. Softirq. */
void kbt_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kbt_conn *conn = data;

	if (!kbt_conn_ending(conn))
		queue_work(conn->kbt->wq, &conn->recv_work);
}

/* Take a request out of its buffer; false if there is none to be served. */
static bool kbt_recv_take(struct kbt_io *io,
			  const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct kbt_conn *conn = io->conn;
	struct kbt *kbt = conn->kbt;
	const char *malformed = NULL;

	if (dto->status == DAT_DTO_SUCCESS) {
		memcpy(&io->request, kbt_rx_buffer(kbt, dto->user_cookie),
		       sizeof(io->request));
		malformed = kbt_io_malformed(&io->request,
					     dto->transfered_length);
	}
	kbt_rx_repost(kbt, dto->user_cookie);

	if (dto->status == DAT_DTO_SUCCESS && !malformed) {
		kbt_count(kbt, KBT_STAT_REQUESTS, 1);
		return true;
	}
	if (dto->status == DAT_DTO_ERR_FLUSHED)
		return false;
	if (malformed) {
		kbt_count(kbt, KBT_STAT_PROTOCOL_ERRORS, 1);
		pr_warn_ratelimited("%s: %s, ending the connection\n",
				    conn->peer, malformed);
	} else {
		kbt_count(kbt, KBT_STAT_DTO_ERRORS, 1);
		pr_warn_ratelimited("%s: receive failed, status %d\n",
				    conn->peer, dto->status);
	}
	kbt_conn_end(conn);
	return false;
}

void kbt_recv_work(struct work_struct *work)
{
	struct kbt_conn *conn = container_of(work, struct kbt_conn, recv_work);
	struct kbt_io *io = NULL;
	DAT_EVENT event;

	while (!kbt_conn_ending(conn)) {
		/* Without a slot the request stays where it is counted. */
		if (!io)
			io = kbt_io_get(conn);
		if (!io || dat_evd_dequeue(conn->recv_evd, &event) !=
			   DAT_SUCCESS)
			break;
		if (!kbt_recv_take(io,
				   &event.event_data.dto_completion_event_data))
			continue;
		queue_work(conn->kbt->wq, &io->work);
		io = NULL;
	}
	if (io)
		kbt_io_unget(io);
}

/* ---- Making slots -------------------------------------------------------- */

int kbt_io_alloc(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;
	struct kbt_io *io;
	unsigned int i;
	int err;

	conn->ios = kcalloc(kbt_io_depth, sizeof(*conn->ios), GFP_KERNEL);
	if (!conn->ios)
		return -ENOMEM;
	err = kblk_buf_alloc(&conn->replies, kbt->ia, kbt->pz,
			     kbt_io_depth * sizeof(struct kblk_reply),
			     DAT_MEM_PRIV_NONE_FLAG);
	for (i = 0; i < kbt_io_depth && !err; i++) {
		io = &conn->ios[i];
		io->conn = conn;
		INIT_WORK(&io->work, kbt_io_work);
		err = kblk_buf_alloc(&io->data, kbt->ia, kbt->pz,
				     KBT_MAX_TRANSFER, DAT_MEM_PRIV_NONE_FLAG);
		if (!err) {
			list_add(&io->link, &conn->idle);
			conn->idle_count++;
		}
	}
	if (err)
		kbt_io_free(conn);
	return err;
}

void kbt_io_free(struct kbt_conn *conn)
{
	unsigned int i;

	if (!conn->ios)
		return;
	for (i = 0; i < kbt_io_depth; i++)
		kblk_buf_free(&conn->ios[i].data);
	kblk_buf_free(&conn->replies);
	kfree(conn->ios);
	conn->ios = NULL;
}
