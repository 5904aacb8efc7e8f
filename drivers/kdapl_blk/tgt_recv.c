// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of a client: receiving.
 *
 * kDAPL notifies in process context that a message is there. If a slot and a page are
 * free it is taken off the EVD then and there, its request copied, the buffer given back,
 * and the request served. Otherwise a work item goes on when they are, or when a client
 * has had its turn. Of a message of several requests each waits for a slot of its own,
 * and the last gives the buffer back.
 *
 * Everything in a request comes from a stranger. A message that breaks the
 * format ends the connection, since nothing after it can be trusted either; a
 * well-formed request for the impossible gets an error reply, see tgt_io.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include "tgt.h"

/* Requests of a client until others have their turn. */
#define KBT_RECV_BUDGET	64

/* Bytes that come with the message behind such a request; any number, if it lies. */
static u32 kbt_inline_length(const struct kblk_request *request)
{
	if (!(request->flags & KBLK_INLINED) ||
	    (request->opcode != KBLK_OP_WRITE &&
	     request->opcode != KBLK_OP_ATTACH))
		return 0;
	return le32_to_cpu(request->length);
}

/* What is wrong with a request that has @length bytes of a message, or NULL. */
static const char *kbt_malformed(const struct kblk_request *request, u32 length)
{
	u32 data;

	if (length < sizeof(*request))
		return "truncated request";
	if (le32_to_cpu(request->magic) != KBLK_MAGIC)
		return "bad magic";
	if (request->flags & ~KBLK_FLAGS || request->reserved0 ||
	    !kblk_is_zero(request->reserved, sizeof(request->reserved)))
		return "reserved bits set";
	data = kbt_inline_length(request);
	if (data > KBLK_INLINE || data > length - sizeof(*request))
		return "message shorter than its requests";
	return NULL;
}

/* ---- Messages ------------------------------------------------------------ */

/* Count the requests of a message; returns what is wrong with one, or NULL. */
static const char *kbt_check_message(struct kbt_conn *conn, const void *from,
				     u32 length, unsigned int *n)
{
	unsigned int max = conn->requests_batch ? KBLK_BATCH_MAX : 1;
	const char *malformed;
	u32 part;

	*n = 0;
	do {
		malformed = kbt_malformed(from, length);
		if (malformed)
			return malformed;
		part = sizeof(struct kblk_request) + kbt_inline_length(from);
		from += part;
		length -= part;
		if (++*n == max && length)
			return "message longer than its requests";
	} while (length);
	return NULL;
}

/*
 * Has it sent more than it has got credits for? Each reply that was sent may have
 * given one, whether or not we know that it has arrived.
 */
static bool kbt_is_overdrawn(struct kbt_conn *conn)
{
	return atomic64_read(&conn->requests) - atomic64_read(&conn->replied) >
	       conn->credits;
}

static void kbt_message_end(struct kbt_conn *conn)
{
	conn->message.left = 0;
	kbt_rx_repost(conn->kbt, conn->message.cookie);
}

/* Is the message to be served? Otherwise the connection ends. */
static bool kbt_message_admit(struct kbt_conn *conn, u32 length)
{
	struct kbt_message *message = &conn->message;
	const char *malformed;

	message->from = kbt_rx_data(message->cookie);
	malformed = kbt_check_message(conn, message->from, length,
				      &message->left);
	if (malformed) {
		kbt_count(conn->kbt, KBT_STAT_PROTOCOL_ERRORS, 1);
		pr_warn_ratelimited("%s: %s, ending the connection\n",
				    conn->peer, malformed);
		kbt_conn_end(conn);
		return false;
	}
	atomic64_add(message->left, &conn->requests);
	if (!kbt_is_overdrawn(conn))
		return true;
	/* The log has it from kbt_judge(). */
	conn->overdrawn = true;
	kbt_conn_end(conn);
	return false;
}

/* A message has arrived, or will not. */
static void kbt_message_begin(struct kbt_conn *conn,
			      const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	conn->message.cookie = dto->user_cookie;
	if (dto->status == DAT_DTO_SUCCESS) {
		if (kbt_message_admit(conn, dto->transfered_length))
			return;
	} else if (dto->status != DAT_DTO_ERR_FLUSHED) {
		kbt_count(conn->kbt, KBT_STAT_DTO_ERRORS, 1);
		pr_warn_ratelimited("%s: receive failed, status %d\n",
				    conn->peer, dto->status);
		kbt_conn_end(conn);
	}
	kbt_message_end(conn);
}

/* ---- Requests ------------------------------------------------------------ */

/* Take the next request of the message, which was checked, into a slot. */
static void kbt_take(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	struct kbt_message *message = &conn->message;
	u32 data;

	memcpy(&io->request, message->from, sizeof(io->request));
	message->from += sizeof(io->request);
	data = kbt_inline_length(&io->request);
	memcpy(io->buf->mem.va, message->from, data);
	message->from += data;
	if (!--message->left)
		kbt_message_end(conn);
	io->stage = KBT_IO_START;
	kbt_count(conn->kbt, KBT_STAT_REQUESTS, 1);
	/* Also while the rest of a message waits for slots. */
	if (conn->ns)
		WRITE_ONCE(conn->heard, jiffies);
}

/* Nothing is waiting: what was held back may be given, and the mark raised. */
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

/* A slot with a page, or NULL: somebody will call again. */
static struct kbt_io *kbt_slot(struct kbt_conn *conn)
{
	struct kbt_io *io;

	if (READ_ONCE(conn->in_line))
		return NULL;
	io = kbt_io_get(conn);
	if (!io || io->buf)
		return io;
	WRITE_ONCE(conn->in_line, true);
	if (!kbt_pool_get(&conn->kbt->pages, io))
		return NULL;
	WRITE_ONCE(conn->in_line, false);
	return io;
}

/* False if there is none; it may turn out to have no request. */
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

/* Serve what there is. Process context. */
static void kbt_recv(struct kbt_conn *conn)
{
	unsigned int budget = KBT_RECV_BUDGET;
	struct kbt_io *io = NULL;

	mutex_lock(&conn->recv_mutex);
	while (!kbt_conn_ending(conn)) {
		if (!budget--) {
			queue_work(conn->kbt->wq, &conn->recv_work);
			break;
		}
		/* Without a slot the request stays where it is counted. */
		if (!io)
			io = kbt_slot(conn);
		if (!io)
			break;
		if (!conn->message.left && !kbt_next_message(conn))
			break;
		if (!conn->message.left)
			continue;
		kbt_take(io);
		kbt_io_step(io);
		io = NULL;
	}
	if (io)
		kbt_io_unget(io);
	mutex_unlock(&conn->recv_mutex);
}

void kbt_recv_work(struct work_struct *work)
{
	kbt_recv(container_of(work, struct kbt_conn, recv_work));
}

/* The connection is ending, and nobody begins with another message. */
void kbt_recv_stop(struct kbt_conn *conn)
{
	mutex_lock(&conn->recv_mutex);
	if (conn->message.left)
		kbt_message_end(conn);
	mutex_unlock(&conn->recv_mutex);
}

/* Something is on the receive EVD. Process context. */
void kbt_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kbt_conn *conn = data;

	/* If it had its turn it waits for the next. */
	if (!kbt_conn_ending(conn) && !work_pending(&conn->recv_work))
		kbt_recv(conn);
}
