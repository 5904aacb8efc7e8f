// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of a client: serving.
 *
 * A request goes through kbt_io_step() as often as it has to wait: for a large
 * buffer, for the data of a write, for a context that may block. Small data
 * travels with the messages. Of other data the target is who moves it: an RDMA
 * Read fetches what is to be written, while other requests are with the medium;
 * what was read goes out with the reply, see tgt_reply.c.
 *
 * The slot is free again when all that was posted has completed, which is also
 * what makes room for the client's next request. Where the data is or goes is the
 * client's business: its adapter refuses what it has not offered, which breaks
 * the connection.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/slab.h>
#include "tgt.h"

/* ---- Slots --------------------------------------------------------------- */

struct kbt_io *kbt_io_get(struct kbt_conn *conn)
{
	struct kbt_io *io;

	spin_lock_irq(&conn->lock);
	io = list_first_entry_or_null(&conn->idle, struct kbt_io, link);
	if (io) {
		list_del_init(&io->link);
		conn->idle_count--;
		io->stage = KBT_IO_EMPTY;
		atomic_set(&io->pending, 1);
	}
	spin_unlock_irq(&conn->lock);
	return io;
}

/* Give an unused slot back. */
void kbt_io_unget(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;

	kbt_pool_put(io);
	spin_lock_irq(&conn->lock);
	list_add(&io->link, &conn->idle);
	conn->idle_count++;
	if (kbt_conn_ending(conn))
		wake_up(&conn->all_idle);
	spin_unlock_irq(&conn->lock);
}

/* The slot has waited for a page, and has one. Any context. */
void kbt_io_ready(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	unsigned long flags;

	spin_lock_irqsave(&conn->lock, flags);
	WRITE_ONCE(conn->in_line, false);
	list_add(&io->link, &conn->idle);
	conn->idle_count++;
	if (kbt_conn_ending(conn))
		wake_up(&conn->all_idle);
	else
		queue_work(conn->kbt->wq, &conn->recv_work);
	spin_unlock_irqrestore(&conn->lock, flags);
}

/*
 * One reason less for the slot to be busy. Whoever waits for all slots may free
 * the connection as soon as the lock is dropped. Any context.
 */
void kbt_io_put(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	unsigned long flags;

	if (!atomic_dec_and_test(&io->pending))
		return;
	kbt_pool_put(io);
	spin_lock_irqsave(&conn->lock, flags);
	list_add(&io->link, &conn->idle);
	/* With more than one slot idle somebody was told before. */
	if (!conn->idle_count++ && !kbt_conn_ending(conn))
		queue_work(conn->kbt->wq, &conn->recv_work);
	if (kbt_conn_ending(conn))
		wake_up(&conn->all_idle);
	spin_unlock_irqrestore(&conn->lock, flags);
}

/* ---- Checking ------------------------------------------------------------ */

static enum kblk_status kbt_check_range(struct kbt_io *io, u32 max)
{
	u64 offset = le64_to_cpu(io->request.offset);
	struct kbt_ns *ns = io->conn->ns;
	u64 size = kbt_ns_size(ns);
	u32 length = kbt_length(io);

	if (!length || length > max || !IS_ALIGNED(length, ns->block_size) ||
	    !IS_ALIGNED(offset, ns->block_size))
		return KBLK_ERR_INVALID;
	if (offset > size || length > size - offset)
		return KBLK_ERR_RANGE;
	return KBLK_OK;
}

static enum kblk_status kbt_check_rw(struct kbt_io *io)
{
	const struct kbt_conn *conn = io->conn;
	u32 max = conn->kbt->params->max_transfer;
	bool write = io->request.opcode == KBLK_OP_WRITE;

	if (io->request.flags & KBLK_INLINED)
		max = write ? KBLK_INLINE :
			      min_t(u32, KBLK_INLINE, conn->reply_size -
				    sizeof(struct kblk_reply));
	if (!write && io->request.flags & KBLK_FUA)
		return KBLK_ERR_INVALID;
	if (write && conn->ns->read_only)
		return KBLK_ERR_READ_ONLY;
	return kbt_check_range(io, max);
}

static enum kblk_status kbt_check_plain(struct kbt_io *io, u8 flags, u32 length)
{
	return io->request.flags == flags && !io->request.offset &&
	       kbt_length(io) == length ? KBLK_OK : KBLK_ERR_INVALID;
}

static enum kblk_status kbt_check(struct kbt_io *io)
{
	u8 opcode = io->request.opcode;

	if (opcode == KBLK_OP_ATTACH)
		return kbt_check_plain(io, KBLK_INLINED,
				       sizeof(struct kblk_attach));
	if (opcode == KBLK_OP_KEEPALIVE)
		return kbt_check_plain(io, 0, 0);
	if (opcode < KBLK_OP_ATTACH || opcode > KBLK_OP_KEEPALIVE)
		return KBLK_ERR_UNSUPPORTED;
	if (!io->conn->ns)
		return KBLK_ERR_NOT_ATTACHED;
	switch (opcode) {
	case KBLK_OP_IDENTIFY:
		return kbt_check_plain(io, KBLK_INLINED,
				       sizeof(struct kblk_identify));
	case KBLK_OP_FLUSH:
		return kbt_check_plain(io, 0, 0);
	case KBLK_OP_READ:
	case KBLK_OP_WRITE:
		return kbt_check_rw(io);
	default:	/* discard, write zeroes */
		if (io->request.flags)
			return KBLK_ERR_INVALID;
		if (io->conn->ns->read_only)
			return KBLK_ERR_READ_ONLY;
		return kbt_check_range(io, U32_MAX);
	}
}

/* ---- Serving ------------------------------------------------------------- */

/* A large buffer instead of the page, if the request needs one; false: wait. */
static bool kbt_get_buffer(struct kbt_io *io)
{
	struct kbt *kbt = io->conn->kbt;

	if (!kbt_has_remote(io) || io->buf->pool == &kbt->pool)
		return true;
	kbt_pool_put(io);
	/* Whoever waits may be called as soon as it is in line. */
	return kbt_pool_get(&kbt->pool, io);
}

static void kbt_run(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	enum kblk_status status = KBLK_OK;

	switch (io->request.opcode) {
	case KBLK_OP_KEEPALIVE:
		break;
	case KBLK_OP_ATTACH:
		status = kbt_attach(conn, io->buf->mem.va);
		break;
	case KBLK_OP_IDENTIFY:
		kbt_backend_identify(conn->ns, io->buf->mem.va);
		break;
	default:
		kbt_backend_run(io);
		return;
	}
	kbt_io_reply(io, status);
}

/* Serve the request as far as possible. Process context. */
void kbt_io_step(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	enum kblk_status status;

	switch (io->stage) {
	case KBT_IO_EMPTY:
		return;
	case KBT_IO_START:
		status = kbt_check(io);
		if (status != KBLK_OK) {
			kbt_io_reply(io, status);
			return;
		}
		if (!kbt_get_buffer(io))
			return;
		io->stage = KBT_IO_RUN;
		if (io->request.opcode == KBLK_OP_WRITE && kbt_has_remote(io)) {
			if (kbt_post_data(io) != DAT_SUCCESS) {
				kbt_conn_end(conn);
				kbt_io_put(io);
			}
			return;
		}
		fallthrough;
	case KBT_IO_RUN:
		if (kbt_backend_blocks(io)) {
			io->stage = KBT_IO_BLOCK;
			queue_work(conn->kbt->io_wq, &io->work);
			return;
		}
		fallthrough;
	case KBT_IO_BLOCK:
		kbt_run(io);
	}
}

void kbt_io_work(struct work_struct *work)
{
	struct kbt_io *io = container_of(work, struct kbt_io, work);

	if (kbt_conn_ending(io->conn))
		kbt_io_put(io);
	else
		kbt_io_step(io);
}

/* ---- Making slots -------------------------------------------------------- */

int kbt_io_alloc(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;
	unsigned int depth = kbt->params->io_depth;
	struct kbt_io *io;
	unsigned int i;
	int err;

	conn->ios = kcalloc(depth, sizeof(*conn->ios), GFP_KERNEL);
	if (!conn->ios)
		return -ENOMEM;
	err = kblk_buf_alloc(&conn->replies, kbt->ia, kbt->pz,
			     (depth + KBLK_BATCH_MAX) *
			     sizeof(struct kblk_reply));
	for (i = 0; i < depth; i++) {
		io = &conn->ios[i];
		io->conn = conn;
		INIT_WORK(&io->work, kbt_io_work);
		INIT_LIST_HEAD(&io->mates);
		list_add(&io->link, &conn->idle);
		conn->idle_count++;
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
	/* Pages that slots have got when nobody wanted them any more. */
	for (i = 0; i < conn->kbt->params->io_depth; i++)
		kbt_pool_put(&conn->ios[i]);
	kblk_buf_free(&conn->replies);
	kfree(conn->ios);
	conn->ios = NULL;
}
