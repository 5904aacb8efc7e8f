// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of a client: move data, reply, complete.
 *
 * Entry points: kbt_io_reply() replies, kbt_fetch() starts the RDMA Read of a slot's data,
 * kbt_req_upcall() takes all completions, kbt_words() is the memory for replies that are not
 * data of the volume.
 *
 * The data of a READ goes out as an RDMA Write, which is posted together with the reply behind
 * it. An Endpoint completes and delivers in order, so a client that sees the reply has the
 * data, and when the Send completes so has the Write.
 *
 * A message costs both sides several times the work of filling in a reply. With
 * KBLK_FEATURE_BATCH replies therefore wait while messages are under way and then share one.
 * Replies without data wait while one message is under way. Replies with data cost more: they
 * wait while two messages are under way, but only until they fill a message. There is no
 * timer, and a client with one request at a time never waits.
 *
 * A message is under way until its Send has completed, and a Send completes after everything
 * posted before it. While RDMA transfers are outstanding replies are therefore sent one by
 * one.
 *
 * A slot holds a count of io->pending for each post. Locks: conn->lock guards lanes, credits
 * and the reply headers.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <dat/kdat_linux.h>
#include "tgt.h"

static void kbt_fill_reply(struct kbt_io *io, struct kblk_reply *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->magic = cpu_to_le32(KBLK_MAGIC);
	reply->status = cpu_to_le16(io->status);
	reply->credits = cpu_to_le16(kbt_credits(io));
	reply->id = io->request.id;
	reply->length = cpu_to_le32(io->inlined);
	if (io->conn->sizes && io->att)
		reply->size = cpu_to_le64(kbt_ns_size(io->att->ns));
}

/* Return the offset of the reply header of @io in conn->replies. */
static size_t kbt_header_at(struct kbt_io *io)
{
	return (io - io->conn->ios) * sizeof(struct kblk_reply);
}

/* Note the time of a post for @io, for kbt_is_stuck(). 0 means "not posted", hence the 1. */
static void kbt_note_post(struct kbt_io *io)
{
	WRITE_ONCE(io->posted, jiffies ?: 1);
}

/* Note a post of @n replies in one message, of which the reply of @io is the first. */
static void kbt_note_replies(struct kbt_io *io, unsigned int n)
{
	kbt_note_post(io);
	atomic64_add(n, &io->conn->replied);
}

/*
 * Return whether the reply to @opcode uses kbt_words(): the memory behind the reply headers,
 * which holds a reply that is not data of the volume. It takes no page, and one request uses
 * it at a time.
 */
bool kbt_has_words(const struct kbt_conn *conn, u8 opcode)
{
	return opcode == KBLK_OP_IDENTIFY || opcode == KBLK_OP_LIST ||
	       (conn->auth && (opcode == KBLK_OP_CHALLENGE ||
			       opcode == KBLK_OP_ATTACH));
}

static size_t kbt_words_at(struct kbt_conn *conn)
{
	return (conn->kbt->params->io_depth + KBLK_BATCH_MAX) *
	       sizeof(struct kblk_reply);
}

void *kbt_words(struct kbt_conn *conn)
{
	return conn->replies.va + kbt_words_at(conn);
}

/* ---- Single replies ------------------------------------------------------ */

static DAT_RMR_TRIPLET kbt_remote(const struct kbt_io *io)
{
	return (DAT_RMR_TRIPLET) {
		.virtual_address = le64_to_cpu(io->request.address),
		.segment_length = kbt_length(io),
		.rmr_context = le32_to_cpu(io->request.rmr_context),
	};
}

/* Fetch the data of a WRITE; the completion runs the next step. */
DAT_RETURN kbt_fetch(struct kbt_io *io)
{
	DAT_LMR_TRIPLET seg = kblk_seg(&io->buf->mem, 0, kbt_length(io));
	DAT_RMR_TRIPLET remote = kbt_remote(io);
	DAT_DTO_COOKIE cookie = { .as_ptr = io };
	DAT_RETURN ret;

	atomic_inc(&io->pending);
	atomic_inc(&io->conn->transfers);
	kbt_note_post(io);
	ret = dat_ep_post_rdma_read(io->conn->ep, 1, &seg, cookie, &remote,
				    DAT_COMPLETION_DEFAULT_FLAG);
	if (ret != DAT_SUCCESS) {
		WRITE_ONCE(io->posted, 0);
		atomic_dec(&io->conn->transfers);
		atomic_dec(&io->pending);
	}
	return ret;
}

/*
 * Fill @segs with the reply of @io, which uses the header of its slot, and return the number
 * of segments.
 */
static unsigned int kbt_reply_segs(struct kbt_io *io, DAT_LMR_TRIPLET *segs)
{
	segs[0] = kblk_seg(&io->conn->replies, kbt_header_at(io),
			   sizeof(struct kblk_reply));
	if (!io->inlined)
		return 1;
	if (kbt_has_words(io->conn, io->request.opcode))
		segs[1] = kblk_seg(&io->conn->replies,
				   kbt_words_at(io->conn), io->inlined);
	else
		segs[1] = kblk_seg(&io->buf->mem, 0, io->inlined);
	return 2;
}

/* Post the reply of @io, which consists of @n segments. */
static DAT_RETURN kbt_post_alone(struct kbt_io *io, unsigned int n,
				 DAT_LMR_TRIPLET *segs)
{
	DAT_DTO_COOKIE cookie = { .as_ptr = io };
	struct kbt_conn *conn = io->conn;

	return dat_ep_post_send_with_invalidate(conn->ep, n, segs, cookie,
						DAT_COMPLETION_DEFAULT_FLAG,
						conn->invalidate &&
						kbt_has_remote(io),
						kbt_remote(io).rmr_context);
}

/*
 * Post the data of a READ and, behind it, the reply of @io, which has @n segments, with one
 * call to the device. The RDMA Write completes silently unless it fails, and the Send
 * completes after it.
 */
static DAT_RETURN kbt_post_with_data(struct kbt_io *io, unsigned int n,
				     DAT_LMR_TRIPLET *segs)
{
	DAT_LMR_TRIPLET data = kblk_seg(&io->buf->mem, 0, kbt_length(io));
	DAT_RMR_TRIPLET remote = kbt_remote(io);
	struct kbt_conn *conn = io->conn;
	KDAT_REQUEST requests[] = {
		{
			.operation = DAT_DTO_RDMA_WRITE,
			.num_segments = 1,
			.local_iov = &data,
			.user_cookie.as_ptr = io,
			.remote_iov = &remote,
			.completion_flags = DAT_COMPLETION_SUPPRESS_FLAG,
		}, {
			.operation = DAT_DTO_SEND,
			.num_segments = n,
			.local_iov = segs,
			.user_cookie.as_ptr = io,
			.invalidate_flag = conn->invalidate,
			.rmr_context = remote.rmr_context,
		},
	};
	DAT_RETURN ret;

	io->writing = true;
	atomic_inc(&conn->transfers);
	ret = kdat_ep_post_requests(conn->ep, ARRAY_SIZE(requests), requests);
	if (ret != DAT_SUCCESS) {
		io->writing = false;
		atomic_dec(&conn->transfers);
	}
	return ret;
}

/* Post the reply of @io; with @with_data, post it behind the data of a READ. */
static DAT_RETURN kbt_post_reply(struct kbt_io *io, bool with_data)
{
	struct kbt_conn *conn = io->conn;
	DAT_LMR_TRIPLET segs[2];
	unsigned long flags;
	unsigned int n;
	DAT_RETURN ret;

	spin_lock_irqsave(&conn->lock, flags);
	kbt_fill_reply(io, conn->replies.va + kbt_header_at(io));
	spin_unlock_irqrestore(&conn->lock, flags);
	n = kbt_reply_segs(io, segs);
	atomic_inc(&io->pending);
	kbt_note_replies(io, 1);
	ret = with_data ? kbt_post_with_data(io, n, segs) :
			  kbt_post_alone(io, n, segs);
	if (ret != DAT_SUCCESS) {
		WRITE_ONCE(io->posted, 0);
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

/* ---- Replies that share a message ---------------------------------------- */

static size_t kbt_reply_size(const struct kbt_io *io)
{
	return sizeof(struct kblk_reply) + io->inlined;
}

static struct kbt_lane *kbt_lane(struct kbt_io *io)
{
	return &io->conn->lanes[io->inlined ? KBT_LANE_DATA : KBT_LANE_PLAIN];
}

/*
 * Return the offset in conn->replies of the headers of a message without data: behind the
 * headers of the slots.
 */
static size_t kbt_plain_at(struct kbt_conn *conn)
{
	return conn->kbt->params->io_depth * sizeof(struct kblk_reply);
}

/* Return whether the replies due in @lane should be sent now. Context: any. */
static bool kbt_lane_ready(struct kbt_conn *conn, struct kbt_lane *lane)
{
	struct kbt_io *last;

	lockdep_assert_held(&conn->lock);

	if (!lane->due_count)
		return false;
	if (!lane->sending)
		return true;
	/* There is one place for the headers of a message without data, so one at a time. */
	if (lane == &conn->lanes[KBT_LANE_PLAIN])
		return false;
	/* Wait as long as another reply of the last one's size would fit. */
	last = list_last_entry(&lane->due, struct kbt_io, link);
	return lane->sending < 2 ||
	       lane->due_count >= conn->kbt->data_replies ||
	       lane->due_size + kbt_reply_size(last) > conn->reply_size;
}

/*
 * Build a message from the replies due in @lane, if kbt_lane_ready(), and return its first
 * slot for the caller to post, or NULL. Context: any.
 */
static struct kbt_io *kbt_lane_fill(struct kbt_conn *conn, struct kbt_lane *lane)
{
	bool plain = lane == &conn->lanes[KBT_LANE_PLAIN];
	unsigned int max = plain ? KBLK_BATCH_MAX : conn->kbt->data_replies;
	size_t at = kbt_plain_at(conn), size = 0;
	struct kbt_io *io, *first = NULL;
	unsigned int n;

	lockdep_assert_held(&conn->lock);

	if (!kbt_lane_ready(conn, lane))
		return NULL;
	for (n = 0; n < max && lane->due_count; n++) {
		io = list_first_entry(&lane->due, struct kbt_io, link);
		size += kbt_reply_size(io);
		if (size > conn->reply_size)
			break;
		if (first) {
			list_move_tail(&io->link, &first->mates);
		} else {
			list_del_init(&io->link);
			first = io;
		}
		if (!plain)
			at = kbt_header_at(io);
		kbt_fill_reply(io, conn->replies.va + at);
		at += sizeof(struct kblk_reply);
		lane->due_count--;
		lane->due_size -= kbt_reply_size(io);
	}
	first->shared = n;
	lane->sending++;
	return first;
}

static unsigned int kbt_shared_segs(struct kbt_io *first, DAT_LMR_TRIPLET *segs)
{
	struct kbt_conn *conn = first->conn;
	struct kbt_io *io;
	unsigned int n;

	if (!first->inlined) {
		segs[0] = kblk_seg(&conn->replies, kbt_plain_at(conn),
				   first->shared * sizeof(struct kblk_reply));
		return 1;
	}
	n = kbt_reply_segs(first, segs);
	list_for_each_entry(io, &first->mates, link)
		n += kbt_reply_segs(io, segs + n);
	return n;
}

/* Drop a count of io->pending of each slot in @ios. The last one may free the connection. */
static void kbt_ios_put(struct list_head *ios)
{
	struct kbt_io *io, *next;

	list_for_each_entry_safe(io, next, ios, link) {
		list_del_init(&io->link);
		kbt_io_put(io);
	}
}

/* Dissolve the message of @first and move its slots to @ios. */
static void kbt_shared_end(struct kbt_io *first, struct list_head *ios)
{
	first->shared = 0;
	list_splice_init(&first->mates, ios);
	list_add(&first->link, ios);
}

/*
 * End the connection after a failed post. Replies that are due in the lane could not be posted
 * either, so their slots are released too.
 */
static void kbt_shared_fail(struct kbt_io *first, DAT_RETURN ret)
{
	struct kbt_lane *lane = kbt_lane(first);
	struct kbt_conn *conn = first->conn;
	unsigned long flags;
	LIST_HEAD(ios);

	kbt_cannot_reply(conn, ret);
	WRITE_ONCE(first->posted, 0);
	atomic64_sub(first->shared, &conn->replied);
	kbt_shared_end(first, &ios);
	spin_lock_irqsave(&conn->lock, flags);
	list_splice_tail_init(&lane->due, &ios);
	lane->due_count = 0;
	lane->due_size = 0;
	lane->sending--;
	spin_unlock_irqrestore(&conn->lock, flags);
	kbt_ios_put(&ios);
}

/*
 * Post the message of @first. Its slots keep the connection alive: when this function returns
 * the connection may be freed.
 */
static void kbt_shared_post(struct kbt_io *first)
{
	DAT_LMR_TRIPLET segs[2 * KBLK_REPLIES_PAGES];
	DAT_DTO_COOKIE cookie = { .as_ptr = first };
	unsigned int n = kbt_shared_segs(first, segs);
	DAT_RETURN ret;

	kbt_note_replies(first, first->shared);
	ret = dat_ep_post_send(first->conn->ep, n, segs, cookie,
			       DAT_COMPLETION_DEFAULT_FLAG);
	if (ret != DAT_SUCCESS)
		kbt_shared_fail(first, ret);
}

/*
 * Make @io due and send what kbt_lane_ready() allows. @io is NULL if a message of @lane has
 * completed; the caller then keeps the connection alive.
 */
static void kbt_lane_send(struct kbt_conn *conn, struct kbt_lane *lane,
			  struct kbt_io *io)
{
	struct kbt_io *first, *second = NULL;
	unsigned long flags;

	spin_lock_irqsave(&conn->lock, flags);
	if (io) {
		list_add_tail(&io->link, &lane->due);
		lane->due_count++;
		lane->due_size += kbt_reply_size(io);
	} else {
		lane->sending--;
	}
	first = kbt_lane_fill(conn, lane);
	/* The last reply may not have fitted into the first message. */
	if (first)
		second = kbt_lane_fill(conn, lane);
	spin_unlock_irqrestore(&conn->lock, flags);
	if (first)
		kbt_shared_post(first);
	if (second)
		kbt_shared_post(second);
}

/*
 * Complete the message of @first. After a failure ->delivered stays behind, and posting the
 * next message fails as well.
 */
static void kbt_shared_done(struct kbt_io *first, bool delivered)
{
	struct kbt_conn *conn = first->conn;
	LIST_HEAD(ios);

	if (delivered)
		atomic64_add(first->shared, &conn->delivered);
	kbt_shared_end(first, &ios);
	kbt_lane_send(conn, kbt_lane(first), NULL);
	kbt_ios_put(&ios);
}

/* ---- Replies and completions --------------------------------------------- */

/**
 * kbt_io_reply() - reply to a request
 * @io: slot of the request; the caller must not touch it afterwards
 * @status: status of the reply
 *
 * Context: Any.
 */
void kbt_io_reply(struct kbt_io *io, enum kblk_status status)
{
	struct kbt_conn *conn = io->conn;
	u8 opcode = io->request.opcode;
	bool with_data = false;
	u32 inlined = 0;
	DAT_RETURN ret;

	/* Before the reply, which gives back the credit that stands for the buffer */
	kbt_io_unkeep(io);
	if (kbt_conn_ending(conn))
		goto out;
	io->status = status;
	if (status != KBLK_OK)
		kbt_count(conn->kbt, KBT_STAT_ERROR_REPLIES, 1);
	else if (opcode == KBLK_OP_READ && kbt_has_remote(io))
		with_data = true;
	else if (opcode == KBLK_OP_ATTACH && conn->auth)
		inlined = KBLK_PROOF_LEN;
	else if (opcode == KBLK_OP_LIST)
		inlined = sizeof(struct kblk_listed);
	else if (opcode == KBLK_OP_READ || kbt_has_words(conn, opcode))
		inlined = kbt_length(io);
	io->inlined = inlined;
	if (conn->batch && !kbt_has_remote(io) &&
	    !atomic_read(&conn->transfers)) {
		/* A reply without data needs no page while it waits. */
		if (!inlined)
			kbt_pool_put(io);
		kbt_lane_send(conn, kbt_lane(io), io);
		return;
	}
	ret = kbt_post_reply(io, with_data);
	if (ret != DAT_SUCCESS)
		kbt_cannot_reply(conn, ret);
out:
	kbt_io_put(io);
}

/*
 * Upcall of the request EVD: a Send, RDMA Read or RDMA Write has completed.
 * Context: softirq.
 */
void kbt_req_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	bool fetched = dto->operation == DAT_DTO_RDMA_READ;
	bool success = dto->status == DAT_DTO_SUCCESS;
	struct kbt_io *io = dto->user_cookie.as_ptr;
	struct kbt_conn *conn = data;

	/* A connection event tells the reason for flushed posts. */
	if (!success && dto->status != DAT_DTO_ERR_FLUSHED) {
		kbt_count(conn->kbt, KBT_STAT_DTO_ERRORS, 1);
		kbt_conn_end(conn);
	}
	/*
	 * The RDMA Write has failed or was flushed. So will be the reply behind it, which
	 * still holds the slot.
	 */
	if (dto->operation == DAT_DTO_RDMA_WRITE)
		return;
	WRITE_ONCE(io->posted, 0);
	if (io->shared) {
		kbt_shared_done(io, success);
		return;
	}
	if (fetched || io->writing)
		atomic_dec(&conn->transfers);
	io->writing = false;
	if (!fetched && success)
		atomic64_inc(&conn->delivered);
	else if (fetched && success)
		queue_work(conn->kbt->wq, &io->work);
	else if (fetched)
		kbt_io_put(io);
	kbt_io_put(io);
}
