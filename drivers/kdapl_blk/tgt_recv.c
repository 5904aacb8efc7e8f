// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of a client: receive, check the format, hand to slots.
 *
 * Entry points: kbt_recv_upcall() and kbt_recv_work(), both through kbt_recv(), and
 * kbt_recv_stop() when the connection ends.
 *
 * kDAPL notifies in process context that a message is waiting. kbt_recv() dequeues it, copies
 * each request to a slot, serves the requests and returns the receive buffer. The data of a
 * single write, as from a client that waits for each write, is not copied: the write keeps the
 * receive buffer until the medium has the data. A write that finds no page keeps the buffer
 * until there is a page, so that later requests, perhaps for another volume, do not wait.
 * Without a slot the message stays in conn->message and later messages stay on the EVD;
 * recv_work continues when a slot is available, and after a client has used up its budget.
 * Each request of a message needs its own slot.
 *
 * Every field of a request is untrusted. A message that violates the format ends the
 * connection, since nothing after it can be parsed either; a well-formed request that cannot
 * be served gets an error reply, see kbt_check().
 *
 * Locks: conn->recv_mutex serialises the receive path and guards conn->message.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/printk.h>
#include <dat/kdat_linux.h>
#include "tgt.h"

/* Requests of a client per turn of kbt_recv() */
#define KBT_RECV_BUDGET	64

/*
 * Return the bytes of inline data that follow @request. The value is untrusted:
 * kbt_malformed() compares it with the message.
 */
static u32 kbt_inline_length(const struct kblk_request *request)
{
	if (!(request->flags & KBLK_INLINED) ||
	    (request->opcode != KBLK_OP_WRITE &&
	     request->opcode != KBLK_OP_ATTACH &&
	     request->opcode != KBLK_OP_FENCE &&
	     request->opcode != KBLK_OP_LIST))
		return 0;
	return le32_to_cpu(request->length);
}

static u16 kbt_returned(const struct kblk_request *request)
{
	return le16_to_cpu(request->returned);
}

static bool kbt_may_return(const struct kbt_conn *conn,
			   const struct kblk_request *request)
{
	return !request->returned ||
	       (conn->credits_move && request->opcode == KBLK_OP_KEEPALIVE);
}

/* Return whether @request may name a volume. */
static bool kbt_may_name(const struct kbt_conn *conn,
			 const struct kblk_request *request)
{
	return conn->volumes && request->opcode != KBLK_OP_ATTACH &&
	       request->opcode != KBLK_OP_CHALLENGE &&
	       !(request->opcode == KBLK_OP_LIST && conn->lists) &&
	       request->opcode != KBLK_OP_KEEPALIVE;
}

/* Return what is wrong with @request, or NULL. @length bytes of the message are left. */
static const char *kbt_malformed(const struct kbt_conn *conn,
				 const struct kblk_request *request, u32 length)
{
	u8 flags = KBLK_FUA | KBLK_INLINED |
		   (conn->nounmap ? KBLK_NOUNMAP : 0) |
		   (conn->credits_move ? KBLK_WANTS : 0);
	u32 data;

	if (length < sizeof(*request))
		return "truncated request";
	if (le32_to_cpu(request->magic) != KBLK_MAGIC)
		return "bad magic";
	if (request->flags & ~flags || !kbt_may_return(conn, request) ||
	    (request->namespace && !kbt_may_name(conn, request)) ||
	    !kblk_is_zero(request->reserved, sizeof(request->reserved)))
		return "reserved bits set";
	data = kbt_inline_length(request);
	if (data > KBLK_INLINE || data > length - sizeof(*request))
		return "message shorter than its requests";
	return NULL;
}

/* ---- Messages ------------------------------------------------------------ */

/*
 * Check all requests of a message, store their number in @n, and count the credits that they
 * return. Return what is wrong with one of the requests, or NULL.
 */
static const char *kbt_check_message(struct kbt_conn *conn, const void *from,
				     u32 length, unsigned int *n)
{
	unsigned int max = conn->requests_batch ? KBLK_BATCH_MAX : 1;
	const char *malformed;
	u32 part;

	*n = 0;
	do {
		malformed = kbt_malformed(conn, from, length);
		if (malformed)
			return malformed;
		part = sizeof(struct kblk_request) + kbt_inline_length(from);
		if (kbt_returned(from))
			atomic64_add(kbt_returned(from), &conn->returned);
		from += part;
		length -= part;
		if (++*n == max && length)
			return "message longer than its requests";
	} while (length);
	return NULL;
}

/*
 * Return whether the client has exceeded its credits. A reply counts when it is made, whether
 * or not its completion has been seen.
 */
static bool kbt_is_overdrawn(struct kbt_conn *conn)
{
	return atomic64_read(&conn->requests) + atomic64_read(&conn->returned) >
	       atomic64_read(&conn->given);
}

static void kbt_message_end(struct kbt_conn *conn)
{
	conn->message.left = 0;
	kbt_rx_put(conn->kbt, conn->message.cookie);
}

/*
 * Check the message of @length bytes and return true if it is to be served;
 * otherwise the connection is ending.
 */
static bool kbt_message_admit(struct kbt_conn *conn, u32 length)
{
	struct kbt_message *message = &conn->message;
	const char *malformed;

	message->from = ((KDAT_POOL_BUF *)message->cookie.as_ptr)->va;
	malformed = kbt_check_message(conn, message->from, length,
				      &message->left);
	if (malformed) {
		kbt_count(conn->kbt, KBT_STAT_PROTOCOL_ERRORS, 1);
		pr_warn_ratelimited("%s: %s, ending the connection\n",
				    conn->peer, malformed);
		/* kbt_judge() shuns the host. */
		conn->malformed = true;
		kbt_conn_end(conn);
		return false;
	}
	atomic64_add(message->left, &conn->requests);
	if (!kbt_is_overdrawn(conn))
		return true;
	/* kbt_judge() logs and counts this. */
	conn->overdrawn = true;
	kbt_conn_end(conn);
	return false;
}

/*
 * Process the completion of a receive; conn->message.left is 0 afterwards if there is nothing
 * to serve.
 */
static void kbt_message_begin(struct kbt_conn *conn,
			      const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	conn->message.cookie = dto->user_cookie;
	WRITE_ONCE(conn->messages, conn->messages + 1);
	if (dto->status == DAT_DTO_SUCCESS) {
		if (kbt_message_admit(conn, dto->transfered_length))
			return;
	} else if (dto->status != DAT_DTO_ERR_FLUSHED) {
		kbt_count(conn->kbt, KBT_STAT_DTO_ERRORS, 1);
		pr_warn_ratelimited("%s: receive failed: %s\n", conn->peer,
				    kdat_dto_status_name(dto->status));
		kbt_conn_end(conn);
	}
	kbt_message_end(conn);
}

/* ---- Requests ------------------------------------------------------------ */

/*
 * Return whether @io, a WRITE, may keep its @data in the receive buffer, without a page, until
 * the medium has it. Each connection may have one such request: its credit stands for the
 * buffer until the reply gives it back. litmus: blk-taken
 */
static bool kbt_may_keep(struct kbt_io *io, const void *data)
{
	struct kbt_conn *conn = io->conn;

	return conn->message.left == 1 &&
	       kbt_backend_takes(io->att->ns, data) &&
	       !test_and_set_bit(KBT_CONN_KEEPS, &conn->flags);
}

/* Keep the receive buffer with the @data of @io, a WRITE, at least until it gets a page. */
static void kbt_keep(struct kbt_io *io, const void *data)
{
	if (kbt_may_keep(io, data))
		io->data = (void *)data;
	else
		io->from = data;
	io->kept = io->conn->message.cookie;
	atomic_inc(&((KDAT_POOL_BUF *)io->kept.as_ptr)->users);
}

/*
 * Reserve kbt_words(). If they are in use return false; kbt_words_end() will queue recv_work.
 */
static bool kbt_reserve_words(struct kbt_conn *conn)
{
	bool may;

	spin_lock_irq(&conn->lock);
	may = !conn->words_busy;
	conn->words_busy = true;
	spin_unlock_irq(&conn->lock);
	return may;
}

/*
 * Return a slot for the next request of the message. If NULL is returned, kbt_io_put() or
 * kbt_words_end() will queue recv_work.
 */
static struct kbt_io *kbt_slot(struct kbt_conn *conn)
{
	const struct kblk_request *request = conn->message.from;
	struct kbt_io *io;

	if (kbt_has_words(conn, request->opcode) && !kbt_reserve_words(conn))
		return NULL;
	io = kbt_io_get(conn, request);
	if (!io) {
		if (kbt_has_words(conn, request->opcode))
			kbt_words_unused(conn);
		return NULL;
	}
	memcpy(&io->request, request, sizeof(io->request));
	/* KBLK_WANTS asks for credits, and is no part of the operation. */
	io->wants = io->request.flags & KBLK_WANTS;
	io->request.flags &= ~KBLK_WANTS;
	io->status = kbt_check(io);
	return io;
}

/*
 * Move the next request of the message to @io, which keeps the receive buffer if the data of a
 * WRITE is in it.
 */
static void kbt_take(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	struct kbt_message *message = &conn->message;
	const void *data = message->from + sizeof(io->request);
	u32 length = kbt_inline_length(&io->request);

	if (kbt_returned(&io->request)) {
		spin_lock_irq(&conn->lock);
		kbt_credits_back(conn, kbt_returned(&io->request));
		spin_unlock_irq(&conn->lock);
	}
	if (io->status == KBLK_OK && io->request.opcode == KBLK_OP_ATTACH)
		io->status = kbt_attach(io, data);
	else if (io->status == KBLK_OK && io->request.opcode == KBLK_OP_LIST)
		io->status = kbt_list(io, data);
	else if (io->status == KBLK_OK && io->request.opcode == KBLK_OP_FENCE)
		io->status = kbt_fence(io, data);
	else if (io->status == KBLK_OK && io->request.opcode == KBLK_OP_DETACH)
		kbt_detach(io);
	else if (io->status == KBLK_OK && length)
		kbt_keep(io, data);
	message->from = data + length;
	if (!--message->left)
		kbt_message_end(conn);
	kbt_count(conn->kbt, KBT_STAT_REQUESTS, 1);
}

/*
 * Stop throttling, as no message is waiting: kbt_credits() returns what was held back. Arm the
 * watermarks again.
 */
static void kbt_caught_up(struct kbt_conn *conn)
{
	bool was;

	spin_lock_irq(&conn->lock);
	was = conn->throttled;
	conn->throttled = false;
	spin_unlock_irq(&conn->lock);
	if (was)
		kbt_conn_watermarks(conn);
}

/*
 * Dequeue a message; return false if there is none. The message may turn out to have no
 * request to serve.
 */
static bool kbt_next_message(struct kbt_conn *conn)
{
	DAT_EVENT event;

	if (dat_evd_dequeue(conn->recv_evd, &event) != DAT_SUCCESS) {
		kbt_caught_up(conn);
		return false;
	}
	kbt_message_begin(conn, &event.event_data.dto_completion_event_data);
	return true;
}

/*
 * Return whether another message of @conn, which was disconnected, may be dropped. Until kDAPL
 * reports the end, the client may send another message for each buffer that is returned.
 */
static bool kbt_may_drop(const struct kbt_conn *conn)
{
	return conn->dropped <= conn->credits || test_bit(KBT_CONN_GONE, &conn->flags);
}

/*
 * Return the buffers of a message that is partly served, and of waiting messages; @conn was
 * disconnected. Each waiting one counts as a request, for kbt_judge(): a client that leaves after
 * its flood is known before the medium has answered. Context: process.
 */
static void kbt_drop_messages(struct kbt_conn *conn)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	lockdep_assert_held(&conn->recv_mutex);

	if (conn->message.left)
		kbt_message_end(conn);
	while (kbt_may_drop(conn) &&
	       dat_evd_dequeue(conn->recv_evd, &event) == DAT_SUCCESS) {
		dto = &event.event_data.dto_completion_event_data;
		conn->dropped++;
		atomic64_inc(&conn->requests);
		if (dto->status == DAT_DTO_SUCCESS && kbt_is_overdrawn(conn))
			conn->overdrawn = true;
		kbt_rx_put(conn->kbt, dto->user_cookie);
	}
}

/*
 * Serve waiting messages up to the budget. The block layer is given the requests of a message
 * together. Context: process.
 */
static void kbt_recv(struct kbt_conn *conn)
{
	unsigned int budget = KBT_RECV_BUDGET;
	bool plugged = false;
	struct blk_plug plug;
	struct kbt_io *io;

	mutex_lock(&conn->recv_mutex);
	if (test_bit(KBT_CONN_DOWN, &conn->flags))
		kbt_drop_messages(conn);
	while (!kbt_conn_ending(conn)) {
		if (!budget--) {
			queue_work(conn->kbt->wq, &conn->recv_work);
			break;
		}
		if (!conn->message.left && !kbt_next_message(conn))
			break;
		if (!conn->message.left)
			continue;
		io = kbt_slot(conn);
		if (!io)
			break;
		if (!plugged && conn->message.left > 1) {
			blk_start_plug(&plug);
			plugged = true;
		}
		kbt_take(io);
		kbt_io_step(io);
		if (plugged && !conn->message.left) {
			blk_finish_plug(&plug);
			plugged = false;
		}
	}
	if (plugged)
		blk_finish_plug(&plug);
	mutex_unlock(&conn->recv_mutex);
}

void kbt_recv_work(struct work_struct *work)
{
	kbt_recv(container_of(work, struct kbt_conn, recv_work));
}

/* Stop receiving on @conn, which was disconnected. kbt_recv_upcall() drops late messages. */
void kbt_recv_stop(struct kbt_conn *conn)
{
	mutex_lock(&conn->recv_mutex);
	kbt_drop_messages(conn);
	mutex_unlock(&conn->recv_mutex);
}

/* Upcall of the receive EVD. Context: process. */
void kbt_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kbt_conn *conn = data;

	/* A client that has used up its budget waits for recv_work. */
	if (!work_pending(&conn->recv_work))
		kbt_recv(conn);
}
