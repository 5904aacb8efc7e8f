// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transactions: each connection goes through the steps of the setup again and again, in
 * lockstep. A step is done by one side. It sends a message; or it writes or reads memory
 * of the other side and sends a note. The other side looks at what has arrived and
 * answers with a note; then both are at the next step. So never more than two messages
 * are on their way to a side, and each has KT_RECEIVES of them posted.
 *
 * A buffer has KT_TRANS_PARTS parts, each with room for a step. In what is sent from:
 * notes, what is sent or written, what is read. In what is received into: a receive in
 * each of the first four, where the peer writes, and where it reads.
 *
 * With KT_FMR the other side of a step that writes or reads binds its buffer for this step
 * and says so in a note before; what has been bound ends by a request of its own or, with
 * KT_INVALIDATE, by the note of the one that has written or read.
 *
 * With KT_AGAIN the client ends the connections between two transactions, and both sides
 * connect the same Endpoints again, trans_again.c.
 *
 * All of it runs in upcalls, in process context, one after another for a connection.
 */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include "kdapl_test.h"

#define KT_RECEIVES	4
#define KT_NOTES	16
#define KT_NOTE_MAGIC	0x6b446e74

enum { KT_PART_NOTES, KT_PART_SOURCE, KT_PART_SINK };
enum { KT_PART_WRITTEN = KT_RECEIVES, KT_PART_READ };

/* Cookies of requests; those of receives are indexes of connections and parts. */
#define KT_COOKIE_SENT	BIT_ULL(32)
#define KT_COOKIE_READ	BIT_ULL(33)
#define KT_COOKIE_UNBOUND BIT_ULL(34)

/* The content of a note: the data has arrived as sent, or not; or the sender's memory. */
enum { KT_NOTE_GOOD, KT_NOTE_BAD, KT_NOTE_BOUND };

struct kt_note {
	__le32 magic;
	__le32 step;
	__le64 write;
	__le64 read;
	__le32 key;
	__le32 status;
};

static u32 kt_step_len(const struct kt_wire_op *step)
{
	return step->segments * le32_to_cpu(step->size);
}

/* Return the size of a buffer for the steps of a setup, or 0 if they are wrong. */
u32 kt_trans_room(const struct kt_wire_setup *setup)
{
	u32 i, n = le16_to_cpu(setup->nops), room = 1024;

	if (!n || n > KT_OPS)
		return 0;
	for (i = 0; i < n; i++) {
		const struct kt_wire_op *step = &setup->ops[i];

		if (step->op >= KT_OP_NUMBER || !step->segments ||
		    step->segments > KT_MAX_SEGMENTS || !step->size ||
		    le32_to_cpu(step->size) > KT_MAX_STEP / step->segments)
			return 0;
		room = max(room, kt_step_len(step));
	}
	return KT_TRANS_PARTS * roundup_pow_of_two(room);
}

static const struct kt_wire_op *kt_step(const struct kt_conn *conn)
{
	return &conn->net->setup.ops[conn->trans.step];
}

/* Whether this side does the step. */
static bool kt_is_mine(const struct kt_conn *conn)
{
	return !!kt_step(conn)->server == conn->net->server;
}

/* Whether memory is bound for the step. */
static bool kt_binds(const struct kt_conn *conn)
{
	return conn->net->flags & KT_FMR && kt_step(conn)->op != KT_SEND;
}

static void kt_trans_fail(struct kt_conn *conn, const char *what)
{
	/* The client reports it: the server's end breaks, or its note says so. */
	if (conn->net->server || READ_ONCE(conn->flow.idle))
		return;
	kt_fail(conn->net, -EIO, "connection %u, step %u of transaction %llu: %s",
		conn->index, conn->trans.step, conn->flow.ops, what);
}

/* ---- Data ---------------------------------------------------------------------------- */

static u8 *kt_part(const struct kt_conn *conn, bool received, u32 part)
{
	return conn->side->buf + (received ? conn->side->room : 0) +
	       part * conn->trans.room;
}

static DAT_LMR_TRIPLET kt_part_seg(const struct kt_conn *conn, bool received,
				   u32 part, u32 off, u32 len)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = conn->dat.base + off +
			(kt_part(conn, received, part) - conn->side->buf),
		.segment_length = len,
		.lmr_context = conn->dat.context,
	};
}

/* Byte @i of what step @seed moves; shifted by a few bytes it is something else. */
static u8 kt_byte(u32 i, u32 seed)
{
	return (i * 167 + (i >> 8) * 31 + seed * 59) & 0xff;
}

static void kt_fill(u8 *p, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		p[i] = kt_byte(i, seed);
}

static bool kt_is_filled(const struct kt_conn *conn, const u8 *p, u32 len,
			 u32 seed)
{
	u32 i;

	if (!(conn->net->flags & KT_VERIFY))
		return true;
	for (i = 0; i < len; i++)
		if (p[i] != kt_byte(i, seed))
			return false;
	return true;
}

/* Data differs from that of the step and of the round before. */
static u32 kt_seed(const struct kt_conn *conn)
{
	return conn->trans.step + 1 + conn->flow.sent * KT_OPS;
}

/* Whether the peer has written what it was to write. */
static bool kt_is_written(const struct kt_conn *conn)
{
	u32 len = kt_step_len(kt_step(conn));
	DAT_LMR_TRIPLET seg = kt_part_seg(conn, true, KT_PART_WRITTEN, 0, len);

	return dat_lmr_sync_rdma_write(conn->dat.ia, &seg, 1) == DAT_SUCCESS &&
	       kt_is_filled(conn, kt_part(conn, true, KT_PART_WRITTEN), len,
			    kt_seed(conn));
}

/* ---- Posting ------------------------------------------------------------------------- */

static DAT_DTO_COOKIE kt_cookie(u64 number)
{
	return (DAT_DTO_COOKIE) { .as_64 = number };
}

/* Count a request or a receive, if it was posted. */
static int kt_posted(struct kt_conn *conn, int err)
{
	if (!err)
		atomic_inc(&conn->trans.pending);
	return err;
}

static int kt_trans_recv(struct kt_conn *conn, struct kt_conn *owner, u32 part)
{
	DAT_LMR_TRIPLET seg = kt_part_seg(owner, true, part, 0,
					  owner->trans.room);
	DAT_DTO_COOKIE cookie = { .as_64 = owner->index << 8 | part };

	if (conn->dat.srq)
		return dat_errno("dat_srq_post_recv",
				 dat_srq_post_recv(conn->dat.srq, 1, &seg,
						   cookie));
	return kt_posted(conn, dat_errno("dat_ep_post_recv",
		dat_ep_post_recv(conn->dat.ep, 1, &seg, cookie,
				 DAT_COMPLETION_DEFAULT_FLAG)));
}

/* Post the receives of a connection, which is not connected yet. */
int kt_trans_prepare(struct kt_conn *conn)
{
	u32 part;
	int err = 0;

	kt_fill(kt_part(conn, true, KT_PART_READ), conn->trans.room, 0);
	for (part = 0; part < KT_RECEIVES && !err; part++)
		err = kt_trans_recv(conn, conn, part);
	return err;
}

/* Send a note, which ends @ends, a context of the peer, if that is not 0. */
static int kt_trans_tell(struct kt_conn *conn, u32 status, DAT_RMR_CONTEXT ends)
{
	u32 at = conn->trans.note++ % KT_NOTES * sizeof(struct kt_note);
	struct kt_note *note = (void *)kt_part(conn, false, KT_PART_NOTES) + at;
	DAT_LMR_TRIPLET seg = kt_part_seg(conn, false, KT_PART_NOTES, at,
					  sizeof(*note));
	struct kt_trans *trans = &conn->trans;

	if (!(conn->net->flags & KT_FMR)) {
		trans->shown = conn->dat.exposed.virtual_address;
		trans->shown_key = conn->dat.exposed.rmr_context;
	}
	*note = (struct kt_note) {
		.magic = cpu_to_le32(KT_NOTE_MAGIC),
		.step = cpu_to_le32(conn->trans.step),
		.write = cpu_to_le64(trans->shown + KT_PART_WRITTEN * trans->room),
		.read = cpu_to_le64(trans->shown + KT_PART_READ * trans->room),
		.key = cpu_to_le32(trans->shown_key),
		.status = cpu_to_le32(status),
	};
	return kt_posted(conn, dat_errno("dat_ep_post_send_with_invalidate",
		dat_ep_post_send_with_invalidate(conn->dat.ep, 1, &seg,
						 kt_cookie(KT_COOKIE_SENT),
						 DAT_COMPLETION_DEFAULT_FLAG,
						 !!ends, ends)));
}

static int kt_trans_note(struct kt_conn *conn, u32 status)
{
	return kt_trans_tell(conn, status, 0);
}

/* Tell the peer that this side has written or read its memory. */
static int kt_trans_used(struct kt_conn *conn)
{
	bool ends = conn->net->flags & KT_INVALIDATE;

	return kt_trans_tell(conn, KT_NOTE_GOOD, ends ? conn->trans.key : 0);
}

/* Do this side's part of the step. */
static int kt_trans_act(struct kt_conn *conn)
{
	const struct kt_wire_op *step = kt_step(conn);
	u32 i, len = kt_step_len(step), size = le32_to_cpu(step->size);
	DAT_RMR_TRIPLET remote = {
		.virtual_address = conn->trans.write,
		.rmr_context = conn->trans.key,
		.segment_length = len,
	};
	DAT_LMR_TRIPLET iov[KT_MAX_SEGMENTS];

	if (conn->net->flags & KT_VERIFY)
		kt_fill(kt_part(conn, false, KT_PART_SOURCE), len,
			kt_seed(conn));
	if (conn->net->flags & KT_CORRUPT)
		kt_part(conn, false, KT_PART_SOURCE)[len / 2] ^= 1;
	if (step->op == KT_READ) {
		/* Over iWARP the sink is one segment. */
		iov[0] = kt_part_seg(conn, false, KT_PART_SINK, 0, len);
		remote.virtual_address = conn->trans.read;
		return kt_posted(conn, dat_errno("dat_ep_post_rdma_read",
			dat_ep_post_rdma_read(conn->dat.ep, 1, iov,
					      kt_cookie(KT_COOKIE_READ), &remote,
					      DAT_COMPLETION_DEFAULT_FLAG)));
	}
	for (i = 0; i < step->segments; i++)
		iov[i] = kt_part_seg(conn, false, KT_PART_SOURCE, i * size,
				     size);
	if (step->op == KT_SEND)
		return kt_posted(conn, dat_errno("dat_ep_post_send",
			dat_ep_post_send(conn->dat.ep, step->segments, iov,
					 kt_cookie(KT_COOKIE_SENT),
					 DAT_COMPLETION_DEFAULT_FLAG)));
	return kt_posted(conn, dat_errno("dat_ep_post_rdma_write",
		dat_ep_post_rdma_write(conn->dat.ep, step->segments, iov,
				       kt_cookie(KT_COOKIE_SENT), &remote,
				       DAT_COMPLETION_DEFAULT_FLAG))) ?:
	       kt_trans_used(conn);
}

/* ---- The steps ------------------------------------------------------------------------ */

/* Begin: tell the server where this side's memory is. Context: the session's thread. */
int kt_trans_start(struct kt_conn *conn)
{
	WRITE_ONCE(conn->flow.idle, false);
	conn->flow.stamp = ktime_get_ns();
	return kt_trans_note(conn, KT_NOTE_GOOD);
}

/* Begin a step: this side does it, or lets the other one. */
static int kt_trans_enter(struct kt_conn *conn)
{
	conn->trans.armed = false;
	if (kt_is_mine(conn))
		return kt_binds(conn) ? 0 : kt_trans_act(conn);
	if (!kt_binds(conn))
		return 0;
	return kt_posted(conn, kt_fmr_bind(conn, kt_cookie(KT_COOKIE_SENT))) ?:
	       kt_trans_note(conn, KT_NOTE_BOUND);
}

/* The step is done: go to the next one. */
static int kt_trans_next(struct kt_conn *conn)
{
	struct kt_flow *flow = &conn->flow;
	u64 now;

	if (++conn->trans.step == le16_to_cpu(conn->net->setup.nops)) {
		conn->trans.step = 0;
		flow->sent++;
		WRITE_ONCE(flow->ops, flow->ops + 1);
		if (!conn->net->server) {
			now = ktime_get_ns();
			kt_hist_add(flow->hist, now - flow->stamp);
			flow->stamp = now;
			if (READ_ONCE(flow->stopping)) {
				kt_flow_go_idle(flow);
				kt_kick(conn->net->s);
				return 0;
			}
			if (!(flow->ops & 15))
				kt_kick(conn->net->s);
		}
	}
	return kt_trans_enter(conn);
}

/* A note has arrived that does not belong to what this side has to look at. */
static int kt_trans_noted(struct kt_conn *conn, const struct kt_note *note)
{
	struct kt_trans *trans = &conn->trans;
	u32 status = le32_to_cpu(note->status);

	if (!trans->greeted || status == KT_NOTE_BOUND) {
		trans->write = le64_to_cpu(note->write);
		trans->read = le64_to_cpu(note->read);
		trans->key = le32_to_cpu(note->key);
	}
	if (!trans->greeted) {
		trans->greeted = true;
		if (conn->net->server) {
			int err = kt_trans_note(conn, KT_NOTE_GOOD);

			if (err)
				return err;
		}
		return kt_trans_enter(conn);
	}
	if (kt_binds(conn) && !trans->armed && status == KT_NOTE_BOUND) {
		trans->armed = true;
		return kt_trans_act(conn);
	}
	if (status == KT_NOTE_BAD) {
		kt_trans_fail(conn, "other data than what was sent has arrived there");
		return 0;
	}
	if (status != KT_NOTE_GOOD || (kt_binds(conn) && !trans->armed))
		return -EPROTO;
	return kt_trans_next(conn);
}

/* Tell the peer what this side thinks of its part of the step. */
static int kt_trans_judge(struct kt_conn *conn, bool good)
{
	int err = kt_trans_note(conn, good ? KT_NOTE_GOOD : KT_NOTE_BAD);

	if (!good)
		kt_trans_fail(conn, "other data than what was sent has arrived here");
	return err ?: kt_trans_next(conn);
}

/* The peer has written or read the memory of this side. */
static int kt_trans_was_used(struct kt_conn *conn)
{
	return kt_trans_judge(conn, kt_step(conn)->op == KT_READ ||
				    kt_is_written(conn));
}

/* The same, for memory that was bound. The peer was to unbind it with KT_INVALIDATE. */
static int kt_trans_unbind(struct kt_conn *conn,
			   const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	if (dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE &&
	    dto->rmr_context == conn->trans.shown_key)
		return kt_trans_was_used(conn);
	if (!(conn->net->flags & KT_INVALIDATE))
		return kt_posted(conn, kt_fmr_unbind(conn,
					kt_cookie(KT_COOKIE_UNBOUND)));
	kt_trans_fail(conn, "the peer has not invalidated what it has used");
	return kt_trans_note(conn, KT_NOTE_BAD);
}

/* A message has arrived at @p. */
static int kt_trans_message(struct kt_conn *conn, const void *p,
			    const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	const struct kt_wire_op *step = kt_step(conn);
	const struct kt_note *note = p;
	u32 len = dto->transfered_length;
	bool is_note = len == sizeof(*note) &&
		       le32_to_cpu(note->magic) == KT_NOTE_MAGIC;

	if (READ_ONCE(conn->flow.idle))
		return 0;
	if (!conn->trans.greeted || kt_is_mine(conn)) {
		if (is_note)
			return kt_trans_noted(conn, note);
		kt_trans_fail(conn, "the peer is at another step");
		return -EPROTO;
	}
	if (step->op == KT_SEND)
		return kt_trans_judge(conn, len == kt_step_len(step) &&
				      kt_is_filled(conn, p, len, kt_seed(conn)));
	if (!is_note)
		return kt_trans_judge(conn, false);
	return kt_binds(conn) ? kt_trans_unbind(conn, dto) :
				kt_trans_was_used(conn);
}

/* An RDMA Read has completed. */
static int kt_trans_was_read(struct kt_conn *conn)
{
	if (kt_is_filled(conn, kt_part(conn, false, KT_PART_SINK),
			 kt_step_len(kt_step(conn)), 0))
		return kt_trans_used(conn);
	kt_trans_fail(conn, "other data than what is there was read");
	return -EIO;
}

static int kt_trans_received(struct kt_conn *conn,
			     const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	u64 cookie = dto->user_cookie.as_64;
	struct kt_conn *owner = conn->net->conns[cookie >> 8];
	u32 part = cookie & 0xff;
	int err;

	/* Other connections wait for buffers of an SRQ, whatever was in this one. */
	err = kt_trans_message(conn, kt_part(owner, true, part), dto);
	return err && !conn->dat.srq ? err : kt_trans_recv(conn, owner, part) ?: err;
}

static bool kt_is_receive(const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	return dto->operation == DAT_DTO_RECEIVE ||
	       dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE;
}

/* A completion of a connection of the server that has ended. */
static int kt_trans_late(struct kt_conn *conn,
			 const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	u64 cookie = dto->user_cookie.as_64;

	if (!conn->dat.srq || !kt_is_receive(dto))
		return 0;
	return kt_trans_recv(conn, conn->net->conns[cookie >> 8], cookie & 0xff);
}

static void kt_trans_completed(struct kt_conn *conn,
			       const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	int err = 0;

	if (conn->net->server && READ_ONCE(conn->flow.stopping))
		err = kt_trans_late(conn, dto);
	else if (dto->status != DAT_DTO_SUCCESS)
		kt_trans_fail(conn, kdat_dto_status_name(dto->status));
	else if (kt_is_receive(dto))
		err = kt_trans_received(conn, dto);
	else if (dto->user_cookie.as_64 == KT_COOKIE_READ)
		err = kt_trans_was_read(conn);
	else if (dto->user_cookie.as_64 == KT_COOKIE_UNBOUND)
		err = kt_trans_was_used(conn);
	if (err)
		kt_trans_fail(conn, "a request was refused");
}

/* The upcall for all completions of a connection. */
void kt_trans_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	struct dat_side *dat = data;
	struct kt_conn *conn = dat->side.owner;
	bool is_mark = event->event_number == DAT_SOFTWARE_EVENT, last;

	if (!is_mark)
		kt_trans_completed(conn, dto);
	/*
	 * Receives of an SRQ are not counted, so each may be the last one. litmus: none, as
	 * kt_net_run() looks again by itself.
	 */
	last = (!is_mark && dat->srq && kt_is_receive(dto)) ||
	       atomic_dec_and_test(&conn->trans.pending);
	/* kt_trans_reset() waits for the last one, and for KT_DOWN. */
	if (last && kt_conn_is(conn) == KT_DOWN)
		kt_kick(conn->net->s);
}
