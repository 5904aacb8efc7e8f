// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of a client: slots, checking, serving.
 *
 * Entry points: kbt_io_get() and kbt_io_put() take and release a slot, kbt_check() validates a
 * request, kbt_io_step() serves it, kbt_io_served() resumes a slot that waited for a buffer,
 * kbt_io_alloc() and kbt_io_free() make the slots of a connection.
 *
 * kbt_io_step() runs again after each wait of the request: for a page or a large buffer, for
 * the data of a WRITE, for a context that may block. Small data travels inside messages. The
 * target moves other data: an RDMA Read fetches the data of a WRITE while other requests are
 * on the medium; the data of a READ is written before the reply, see tgt_reply.c.
 *
 * A slot belongs to its connection and is busy until io->pending drops to 0, that is until
 * everything posted for it has completed; only then may the client's next request use it. The
 * target does not check memory addresses: the client's adapter refuses memory that was not
 * exposed, which breaks the connection.
 *
 * Locks: conn->lock guards the idle list. After the unlock in kbt_io_put() the connection may
 * be freed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/slab.h>
#include "tgt.h"

/* ---- Slots --------------------------------------------------------------- */

/*
 * Take a slot for @request, and the attachment to its volume. Return NULL if no slot is idle.
 * Context: process.
 */
struct kbt_io *kbt_io_get(struct kbt_conn *conn,
			  const struct kblk_request *request)
{
	struct kbt_io *io;

	spin_lock_irq(&conn->lock);
	io = list_first_entry_or_null(&conn->idle, struct kbt_io, link);
	if (io) {
		list_del_init(&io->link);
		conn->idle_count--;
		io->stage = KBT_IO_START;
		io->brings = 0;
		io->att = kbt_attachment_get(conn, request);
		atomic_set(&io->pending, 1);
	}
	spin_unlock_irq(&conn->lock);
	return io;
}

/* Resume @io, which has got a buffer. Context: any. */
void kbt_io_served(struct kbt_io *io)
{
	queue_work(io->conn->kbt->wq, &io->work);
}

/* Release kbt_words() and resume the request that waits for them. Context: any. */
static void kbt_words_end(struct kbt_conn *conn)
{
	lockdep_assert_held(&conn->lock);

	conn->words_busy = false;
	if (!kbt_conn_ending(conn))
		queue_work(conn->kbt->wq, &conn->recv_work);
}

/*
 * Undo kbt_reserve_words() for a request that found no slot. recv_work is not queued, because
 * kbt_io_put() queues it when a slot is idle.
 */
void kbt_words_unused(struct kbt_conn *conn)
{
	spin_lock_irq(&conn->lock);
	conn->words_busy = false;
	spin_unlock_irq(&conn->lock);
}

/* Return the receive buffer that @io keeps, if any. litmus: blk-taken. Context: any. */
void kbt_io_unkeep(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	DAT_DTO_COOKIE cookie = io->kept;

	if (!kbt_keeps(io))
		return;
	io->kept.as_ptr = NULL;
	if (!io->from)
		clear_bit_unlock(KBT_CONN_KEEPS, &conn->flags);
	io->from = NULL;
	kbt_rx_put(conn->kbt, cookie);
}

/*
 * Drop one count of io->pending; the last one returns the slot to the idle
 * list. The connection may be freed as soon as the lock is dropped. litmus: last-put
 * Context: any.
 */
void kbt_io_put(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	unsigned long flags;

	if (!atomic_dec_and_test(&io->pending))
		return;
	kbt_io_unkeep(io);
	kbt_pool_put(io);
	spin_lock_irqsave(&conn->lock, flags);
	if (kbt_has_words(conn, io->request.opcode))
		kbt_words_end(conn);
	kbt_attachment_put(io);
	list_add(&io->link, &conn->idle);
	/*
	 * The receive path stops for want of a slot only when none is idle, so it needs to be
	 * told only of the change from 0 to 1.
	 */
	if (!conn->idle_count++ && !kbt_conn_ending(conn))
		queue_work(conn->kbt->wq, &conn->recv_work);
	kbt_conn_drained(conn);
	spin_unlock_irqrestore(&conn->lock, flags);
}

/* ---- Checking ------------------------------------------------------------ */

static enum kblk_status kbt_check_range(struct kbt_io *io, u32 max)
{
	u64 offset = le64_to_cpu(io->request.offset);
	struct kbt_ns *ns = io->att->ns;
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
	if ((!write && io->request.flags & KBLK_FUA) ||
	    io->request.flags & KBLK_NOUNMAP)
		return KBLK_ERR_INVALID;
	if (write && io->att->ns->read_only)
		return KBLK_ERR_READ_ONLY;
	return kbt_check_range(io, max);
}

static enum kblk_status kbt_check_erase(struct kbt_io *io)
{
	bool zeroes = io->request.opcode == KBLK_OP_WRITE_ZEROES;
	struct kbt_ns *ns = io->att->ns;
	u32 max = zeroes ? kbt_max_zeroes(ns) : kbt_max_discard(ns);

	if (io->request.flags & ~(zeroes ? KBLK_NOUNMAP : 0))
		return KBLK_ERR_INVALID;
	if (ns->read_only)
		return KBLK_ERR_READ_ONLY;
	/* The target never writes zeroes itself; a client without an offload writes them. */
	if (!max)
		return KBLK_ERR_UNSUPPORTED;
	return kbt_check_range(io, max);
}

static enum kblk_status kbt_check_plain(struct kbt_io *io, u8 flags, u32 length)
{
	return io->request.flags == flags && !io->request.offset &&
	       kbt_length(io) == length ? KBLK_OK : KBLK_ERR_INVALID;
}

/*
 * Validate @io against the connection and the volume and return the status to reply with.
 * kbt_malformed() has checked magic, reserved bits and the length of inline data.
 */
enum kblk_status kbt_check(struct kbt_io *io)
{
	u8 opcode = io->request.opcode;

	if (opcode == KBLK_OP_ATTACH)
		return kbt_check_plain(io, KBLK_INLINED,
				       sizeof(struct kblk_attach) +
				       (io->conn->auth ?
					sizeof(struct kblk_proof) : 0));
	if (opcode == KBLK_OP_LIST && io->conn->lists)
		return io->request.flags == KBLK_INLINED &&
		       kbt_length(io) == sizeof(struct kblk_attach) +
					 (io->conn->auth ? sizeof(struct kblk_proof) : 0) ?
		       KBLK_OK : KBLK_ERR_INVALID;
	if (opcode == KBLK_OP_CHALLENGE && io->conn->auth)
		return kbt_check_plain(io, KBLK_INLINED, KBLK_NONCE_LEN);
	if (opcode == KBLK_OP_KEEPALIVE)
		return kbt_check_plain(io, 0, 0);
	if ((opcode < KBLK_OP_ATTACH || opcode > KBLK_OP_KEEPALIVE) &&
	    !(opcode == KBLK_OP_FENCE && io->conn->hosts) &&
	    !(opcode == KBLK_OP_DETACH && io->conn->volumes))
		return KBLK_ERR_UNSUPPORTED;
	if (!io->att)
		return KBLK_ERR_NOT_ATTACHED;
	switch (opcode) {
	case KBLK_OP_FENCE:
		return kbt_check_plain(io, KBLK_INLINED,
				       sizeof(struct kblk_fence));
	case KBLK_OP_IDENTIFY:
		return kbt_check_plain(io, KBLK_INLINED,
				       sizeof(struct kblk_identify));
	case KBLK_OP_FLUSH:
	case KBLK_OP_DETACH:
		return kbt_check_plain(io, 0, 0);
	case KBLK_OP_READ:
	case KBLK_OP_WRITE:
		return kbt_check_rw(io);
	default:	/* DISCARD, WRITE_ZEROES */
		return kbt_check_erase(io);
	}
}

/* ---- Serving ------------------------------------------------------------- */

/*
 * Take the buffer that @io needs: a large one for RDMA, a page for data inside a message.
 * Return false if @io waits for it; kbt_io_served() then resumes @io, perhaps before this
 * function returns.
 */
static bool kbt_get_buffer(struct kbt_io *io)
{
	if (!kbt_has_data(io) || io->buf || (kbt_keeps(io) && !io->from))
		return true;
	return kbt_pool_get(&io->conn->kbt->pools[kbt_has_remote(io) ?
						  KBT_LARGE : KBT_PAGES], io);
}

/* Copy the data of a WRITE from the receive buffer to the page of @io. */
static void kbt_copy_data(struct kbt_io *io)
{
	if (!io->from)
		return;
	memcpy(io->data, io->from, kbt_length(io));
	kbt_io_unkeep(io);
}

static void kbt_run(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;

	switch (io->request.opcode) {
	case KBLK_OP_KEEPALIVE:
	case KBLK_OP_ATTACH:
	case KBLK_OP_FENCE:
	case KBLK_OP_DETACH:
	case KBLK_OP_LIST:
		break;
	case KBLK_OP_IDENTIFY:
		kbt_backend_identify(io, kbt_words(conn));
		break;
	case KBLK_OP_CHALLENGE:
		kbt_challenge(conn);
		break;
	default:
		kbt_backend_run(io);
		return;
	}
	kbt_io_reply(io, KBLK_OK);
}

/* Serve @io until it waits or has replied. Context: process; may block only in KBT_IO_BLOCK. */
void kbt_io_step(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;

	switch (io->stage) {
	case KBT_IO_START:
		if (io->status != KBLK_OK) {
			kbt_io_reply(io, io->status);
			return;
		}
		if (!kbt_get_buffer(io))
			return;
		kbt_copy_data(io);
		io->stage = KBT_IO_RUN;
		if (io->request.opcode == KBLK_OP_WRITE && kbt_has_remote(io)) {
			if (kbt_fetch(io) != DAT_SUCCESS) {
				kbt_conn_end(conn);
				kbt_io_put(io);
			}
			return;
		}
		fallthrough;
	case KBT_IO_RUN:
		if (kbt_backend_blocks(io)) {
			io->stage = KBT_IO_BLOCK;
			queue_work(io->att->ns->io_wq, &io->work);
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

	/*
	 * The medium may finish the request before submit_bio() returns. The count keeps the
	 * volume from being closed until then.
	 */
	atomic_inc(&io->pending);
	if (kbt_conn_ending(io->conn))
		kbt_io_put(io);
	else
		kbt_io_step(io);
	kbt_io_put(io);
}

/* ---- Making slots -------------------------------------------------------- */

int kbt_io_alloc(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;
	unsigned int depth = kbt->params->io_depth;
	struct kbt_io *io;
	unsigned int i;
	int err;

	conn->ios = kvcalloc(depth, sizeof(*conn->ios), GFP_KERNEL);
	if (!conn->ios)
		return -ENOMEM;
	err = kblk_buf_alloc(&conn->replies, kbt->adapter.ia, kbt->adapter.pz,
			     (depth + KBLK_BATCH_MAX) *
			     sizeof(struct kblk_reply) +
			     max(sizeof(struct kblk_identify), sizeof(struct kblk_listed)));
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
	if (!conn->ios)
		return;
	kblk_buf_free(&conn->replies);
	kvfree(conn->ios);
	conn->ios = NULL;
}
