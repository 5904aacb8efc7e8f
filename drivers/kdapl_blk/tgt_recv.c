// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of a client: receiving.
 *
 * kDAPL notifies in softirq that a request is there; a work item takes it off
 * the EVD as soon as a slot and a page are free, copies it, gives the buffer back, and
 * begins to serve it. One work item for each connection: clients take turns.
 *
 * Everything in a request comes from a stranger. A message that breaks the
 * format ends the connection, since nothing after it can be trusted either; a
 * well-formed request for the impossible gets an error reply, see tgt_io.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include "tgt.h"

/* Does the data of such a request come with the message? */
static bool kbt_sends_inline(const struct kblk_request *request)
{
	return request->flags & KBLK_INLINED &&
	       (request->opcode == KBLK_OP_WRITE ||
		request->opcode == KBLK_OP_ATTACH);
}

/* What is wrong with the format, or NULL. */
static const char *kbt_malformed(const struct kblk_request *request, u32 length)
{
	u32 data = 0;

	if (length < sizeof(*request))
		return "truncated request";
	if (le32_to_cpu(request->magic) != KBLK_MAGIC)
		return "bad magic";
	if (request->flags & ~KBLK_FLAGS || request->reserved0 ||
	    !kblk_is_zero(request->reserved, sizeof(request->reserved)))
		return "reserved bits set";
	if (kbt_sends_inline(request))
		data = le32_to_cpu(request->length);
	if (length - sizeof(*request) != data)
		return "message longer or shorter than its request";
	return NULL;
}

/* Copy a message into a slot; returns what is wrong with it, or NULL. */
static const char *kbt_copy(struct kbt_io *io, const void *from, u32 length)
{
	const char *malformed;

	if (length)
		memcpy(&io->request, from, sizeof(io->request));
	malformed = kbt_malformed(&io->request, length);
	if (!malformed && length > sizeof(io->request))
		memcpy(io->buf->mem.va, from + sizeof(io->request),
		       length - sizeof(io->request));
	return malformed;
}

/* Take a request out of its buffer; false if there is none to be served. */
static bool kbt_take(struct kbt_io *io,
		     const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct kbt_conn *conn = io->conn;
	struct kbt *kbt = conn->kbt;
	const char *malformed = NULL;

	if (dto->status == DAT_DTO_SUCCESS)
		malformed = kbt_copy(io, kbt_rx_data(dto->user_cookie),
				     dto->transfered_length);
	kbt_rx_repost(kbt, dto->user_cookie);

	if (dto->status == DAT_DTO_SUCCESS && !malformed) {
		io->stage = KBT_IO_START;
		kbt_count(kbt, KBT_STAT_REQUESTS, 1);
		atomic64_inc(&conn->requests);
		if (conn->ns)
			WRITE_ONCE(conn->heard, jiffies);
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

void kbt_recv_work(struct work_struct *work)
{
	struct kbt_conn *conn = container_of(work, struct kbt_conn, recv_work);
	struct kbt_io *io = NULL;
	DAT_EVENT event;

	while (!kbt_conn_ending(conn)) {
		/* Without a slot the request stays where it is counted. */
		if (!io)
			io = kbt_slot(conn);
		if (!io)
			break;
		if (dat_evd_dequeue(conn->recv_evd, &event) != DAT_SUCCESS) {
			kbt_caught_up(conn);
			break;
		}
		if (!kbt_take(io, &event.event_data.dto_completion_event_data))
			continue;
		kbt_io_step(io);
		io = NULL;
	}
	if (io)
		kbt_io_unget(io);
}

/* Something is on the receive EVD. Softirq. */
void kbt_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kbt_conn *conn = data;

	if (!kbt_conn_ending(conn))
		queue_work(conn->kbt->wq, &conn->recv_work);
}
