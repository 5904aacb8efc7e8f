// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of a client: replying.
 *
 * What was read goes out as RDMA Write and reply posted in one go: an Endpoint
 * completes and delivers in order, so whoever sees the reply has the data.
 *
 * A message costs both sides several times what it takes to fill in a reply. So
 * to a client that knows how to read them, see KBLK_FEATURE_BATCH, replies without
 * data go out one message at a time, and each message takes along all replies that
 * have become due while the one before was under way. Nobody waits for a timer, and
 * who has one request at a time does not wait for another.
 *
 * A message is under way until its Send has completed, and a Send completes behind
 * the RDMA Reads that were posted before. So while data is being fetched replies go
 * out one by one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include "tgt.h"

/*
 * Credits that go with a reply: none if the client is throttled, until half of what
 * it has is held back; two when it gets that back; otherwise one. Under conn->lock.
 */
static u16 kbt_credits(struct kbt_conn *conn)
{
	if (conn->throttled && conn->withheld < conn->credits / 2) {
		conn->withheld++;
		return 0;
	}
	if (!conn->throttled && conn->withheld) {
		conn->withheld--;
		return 2;
	}
	return 1;
}

static void kbt_fill_reply(struct kbt_io *io, struct kblk_reply *reply,
			   u32 inlined)
{
	memset(reply, 0, sizeof(*reply));
	reply->magic = cpu_to_le32(KBLK_MAGIC);
	reply->status = cpu_to_le16(io->status);
	reply->credits = cpu_to_le16(kbt_credits(io->conn));
	reply->id = io->request.id;
	reply->length = cpu_to_le32(inlined);
}

/* @n replies are about to be sent. */
static void kbt_note_replies(struct kbt_conn *conn, unsigned int n)
{
	if (atomic64_read(&conn->replied) == atomic64_read(&conn->delivered))
		WRITE_ONCE(conn->moved, jiffies);
	/* Whoever sees that they are missing sees since when: kbt_is_stuck(). */
	smp_mb__before_atomic();
	atomic64_add(n, &conn->replied);
}

/* ---- One by one ---------------------------------------------------------- */

DAT_RETURN kbt_post_data(struct kbt_io *io)
{
	DAT_LMR_TRIPLET seg = kblk_seg(&io->buf->mem, 0, kbt_length(io));
	DAT_RMR_TRIPLET remote = {
		.virtual_address = le64_to_cpu(io->request.address),
		.segment_length = kbt_length(io),
		.rmr_context = le32_to_cpu(io->request.rmr_context),
	};
	DAT_DTO_COOKIE cookie = { .as_ptr = io };
	DAT_RETURN ret;

	atomic_inc(&io->pending);
	if (io->request.opcode == KBLK_OP_READ) {
		ret = dat_ep_post_rdma_write(io->conn->ep, 1, &seg, cookie,
					     &remote,
					     DAT_COMPLETION_DEFAULT_FLAG);
	} else {
		io->fetching = true;
		atomic_inc(&io->conn->fetches);
		ret = dat_ep_post_rdma_read(io->conn->ep, 1, &seg, cookie,
					    &remote,
					    DAT_COMPLETION_DEFAULT_FLAG);
	}
	if (ret != DAT_SUCCESS) {
		if (io->fetching)
			atomic_dec(&io->conn->fetches);
		io->fetching = false;
		atomic_dec(&io->pending);
	}
	return ret;
}

static DAT_RETURN kbt_post_reply(struct kbt_io *io, u32 inlined)
{
	struct kbt_conn *conn = io->conn;
	size_t at = (io - conn->ios) * sizeof(struct kblk_reply);
	DAT_LMR_TRIPLET segs[2];
	DAT_DTO_COOKIE cookie = { .as_ptr = io };
	unsigned long flags;
	DAT_RETURN ret;

	spin_lock_irqsave(&conn->lock, flags);
	kbt_fill_reply(io, conn->replies.va + at, inlined);
	spin_unlock_irqrestore(&conn->lock, flags);
	segs[0] = kblk_seg(&conn->replies, at, sizeof(struct kblk_reply));
	segs[1] = kblk_seg(&io->buf->mem, 0, inlined);
	atomic_inc(&io->pending);
	kbt_note_replies(conn, 1);
	ret = dat_ep_post_send_with_invalidate(conn->ep, inlined ? 2 : 1, segs,
					       cookie,
					       DAT_COMPLETION_DEFAULT_FLAG,
					       conn->invalidate &&
					       kbt_has_remote(io),
					       le32_to_cpu(io->request.rmr_context));
	if (ret != DAT_SUCCESS) {
		atomic64_dec(&conn->replied);
		atomic_dec(&io->pending);
	}
	return ret;
}

static void kbt_cannot_reply(struct kbt_conn *conn, DAT_RETURN ret)
{
	if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
		pr_warn_ratelimited("%s: cannot answer: %s\n", conn->peer,
				    kblk_strerror(ret));
	kbt_conn_end(conn);
}

/* ---- Several in a message ------------------------------------------------ */

/* Behind the replies of the slots. */
static size_t kbt_batch_at(struct kbt_conn *conn)
{
	return conn->kbt->params->io_depth * sizeof(struct kblk_reply);
}

/*
 * Make a message of the replies that are due, if there are any; returns how many it
 * holds, and the caller posts it. There is none under way. Under conn->lock.
 */
static unsigned int kbt_batch_fill(struct kbt_conn *conn)
{
	struct kblk_reply *to = conn->replies.va + kbt_batch_at(conn);
	unsigned int n = 0;
	struct kbt_io *io;

	while (n < KBLK_BATCH_MAX && !list_empty(&conn->due)) {
		io = list_first_entry(&conn->due, struct kbt_io, link);
		list_move_tail(&io->link, &conn->sent);
		kbt_fill_reply(io, &to[n++], 0);
	}
	conn->sending = n;
	return n;
}

/* The last of them may be what has kept the connection. */
static void kbt_batch_put(struct list_head *ios)
{
	struct kbt_io *io, *next;

	list_for_each_entry_safe(io, next, ios, link) {
		list_del_init(&io->link);
		kbt_io_put(io);
	}
}

/*
 * Its cookie is no slot, since it is for several. The slots of it, and of what is
 * due, keep the connection: when this returns they may all be gone.
 */
static void kbt_batch_post(struct kbt_conn *conn, unsigned int n)
{
	DAT_LMR_TRIPLET seg = kblk_seg(&conn->replies, kbt_batch_at(conn),
				       n * sizeof(struct kblk_reply));
	DAT_DTO_COOKIE cookie = { .as_ptr = NULL };
	unsigned long flags;
	LIST_HEAD(ios);
	DAT_RETURN ret;

	kbt_note_replies(conn, n);
	ret = dat_ep_post_send(conn->ep, 1, &seg, cookie,
			       DAT_COMPLETION_DEFAULT_FLAG);
	if (ret == DAT_SUCCESS)
		return;
	atomic64_sub(n, &conn->replied);
	kbt_cannot_reply(conn, ret);
	/* What is due could not be sent either. */
	spin_lock_irqsave(&conn->lock, flags);
	list_splice_init(&conn->sent, &ios);
	list_splice_tail_init(&conn->due, &ios);
	conn->sending = 0;
	spin_unlock_irqrestore(&conn->lock, flags);
	kbt_batch_put(&ios);
}

static void kbt_batch_add(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	unsigned long flags;
	unsigned int n = 0;

	/* While it waits others can use the memory. */
	kbt_pool_put(io);
	spin_lock_irqsave(&conn->lock, flags);
	list_add_tail(&io->link, &conn->due);
	if (!conn->sending)
		n = kbt_batch_fill(conn);
	spin_unlock_irqrestore(&conn->lock, flags);
	if (n)
		kbt_batch_post(conn, n);
}

/* A message has arrived, or never will, and then neither will another. */
static void kbt_batch_done(struct kbt_conn *conn, bool delivered)
{
	unsigned long flags;
	LIST_HEAD(ios);
	unsigned int n;

	spin_lock_irqsave(&conn->lock, flags);
	if (delivered)
		atomic64_add(conn->sending, &conn->delivered);
	list_splice_init(&conn->sent, &ios);
	n = kbt_batch_fill(conn);
	spin_unlock_irqrestore(&conn->lock, flags);
	if (n)
		kbt_batch_post(conn, n);
	kbt_batch_put(&ios);
}

/* ---- All ----------------------------------------------------------------- */

/**
 * kbt_io_reply() - the request is done
 * @io: its slot; not to be touched any more afterwards
 * @status: how it went
 *
 * Context: Any.
 */
void kbt_io_reply(struct kbt_io *io, enum kblk_status status)
{
	struct kbt_conn *conn = io->conn;
	u8 opcode = io->request.opcode;
	DAT_RETURN ret = DAT_SUCCESS;
	u32 inlined = 0;

	if (kbt_conn_ending(conn))
		goto out;
	io->status = status;
	if (status != KBLK_OK)
		kbt_count(conn->kbt, KBT_STAT_ERROR_REPLIES, 1);
	else if (opcode == KBLK_OP_READ && kbt_has_remote(io))
		ret = kbt_post_data(io);
	else if (opcode == KBLK_OP_READ || opcode == KBLK_OP_IDENTIFY)
		inlined = kbt_length(io);
	if (conn->batch && !inlined && !kbt_has_remote(io) &&
	    !atomic_read(&conn->fetches)) {
		kbt_batch_add(io);
		return;
	}
	if (ret == DAT_SUCCESS)
		ret = kbt_post_reply(io, inlined);
	if (ret != DAT_SUCCESS)
		kbt_cannot_reply(conn, ret);
out:
	kbt_io_put(io);
}

/* A post of ours has completed. Softirq. */
void kbt_req_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	bool success = dto->status == DAT_DTO_SUCCESS;
	struct kbt_io *io = dto->user_cookie.as_ptr;
	struct kbt_conn *conn = data;

	/* Of what is flushed an event of the connection tells the reason. */
	if (!success && dto->status != DAT_DTO_ERR_FLUSHED) {
		kbt_count(conn->kbt, KBT_STAT_DTO_ERRORS, 1);
		kbt_conn_end(conn);
	}
	if (success && dto->operation != DAT_DTO_RDMA_READ &&
	    dto->operation != DAT_DTO_RDMA_WRITE)
		WRITE_ONCE(conn->moved, jiffies);
	/* A message of several replies. */
	if (!io) {
		kbt_batch_done(conn, success);
		return;
	}
	if (io->fetching) {
		io->fetching = false;
		atomic_dec(&conn->fetches);
		if (success)
			queue_work(conn->kbt->wq, &io->work);
		else
			kbt_io_put(io);
	} else if (success && dto->operation != DAT_DTO_RDMA_WRITE) {
		atomic64_inc(&conn->delivered);
	}
	kbt_io_put(io);
}
