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

/* @status: what has arrived is what was sent */
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

/* What a step writes or sends differs from that of the step and the round before. */
static u32 kt_seed(const struct kt_conn *conn)
{
	return conn->trans.step + 1 + conn->flow.sent * KT_OPS;
}

/* ---- Posting ------------------------------------------------------------------------- */

static int kt_trans_recv(struct kt_conn *conn, struct kt_conn *owner, u32 part)
{
	DAT_LMR_TRIPLET seg = kt_part_seg(owner, true, part, 0,
					  owner->trans.room);
	DAT_DTO_COOKIE cookie = { .as_64 = owner->index << 8 | part };

	if (conn->dat.srq)
		return dat_errno("dat_srq_post_recv",
				 dat_srq_post_recv(conn->dat.srq, 1, &seg,
						   cookie));
	return dat_errno("dat_ep_post_recv",
			 dat_ep_post_recv(conn->dat.ep, 1, &seg, cookie,
					  DAT_COMPLETION_DEFAULT_FLAG));
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

/* Tell the peer that this side has done its part of the step. */
static int kt_trans_note(struct kt_conn *conn, u32 status)
{
	u32 at = conn->trans.note++ % KT_NOTES * sizeof(struct kt_note);
	struct kt_note *note = (void *)kt_part(conn, false, KT_PART_NOTES) + at;
	DAT_LMR_TRIPLET seg = kt_part_seg(conn, false, KT_PART_NOTES, at,
					  sizeof(*note));
	DAT_DTO_COOKIE cookie = { .as_64 = KT_COOKIE_SENT };
	const DAT_RMR_TRIPLET *exposed = &conn->dat.exposed;

	*note = (struct kt_note) {
		.magic = cpu_to_le32(KT_NOTE_MAGIC),
		.step = cpu_to_le32(conn->trans.step),
		.write = cpu_to_le64(exposed->virtual_address +
				     KT_PART_WRITTEN * conn->trans.room),
		.read = cpu_to_le64(exposed->virtual_address +
				    KT_PART_READ * conn->trans.room),
		.key = cpu_to_le32(exposed->rmr_context),
		.status = cpu_to_le32(status),
	};
	return dat_errno("dat_ep_post_send",
			 dat_ep_post_send(conn->dat.ep, 1, &seg, cookie,
					  DAT_COMPLETION_DEFAULT_FLAG));
}

/* Do this side's part of the step. */
static int kt_trans_act(struct kt_conn *conn)
{
	const struct kt_wire_op *step = kt_step(conn);
	u32 i, len = kt_step_len(step), size = le32_to_cpu(step->size);
	DAT_DTO_COOKIE cookie = { .as_64 = KT_COOKIE_SENT };
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
		cookie.as_64 = KT_COOKIE_READ;
		remote.virtual_address = conn->trans.read;
		return dat_errno("dat_ep_post_rdma_read",
				 dat_ep_post_rdma_read(conn->dat.ep, 1, iov,
						       cookie, &remote,
						       DAT_COMPLETION_DEFAULT_FLAG));
	}
	for (i = 0; i < step->segments; i++)
		iov[i] = kt_part_seg(conn, false, KT_PART_SOURCE, i * size,
				     size);
	if (step->op == KT_SEND)
		return dat_errno("dat_ep_post_send",
				 dat_ep_post_send(conn->dat.ep, step->segments,
						  iov, cookie,
						  DAT_COMPLETION_DEFAULT_FLAG));
	return dat_errno("dat_ep_post_rdma_write",
			 dat_ep_post_rdma_write(conn->dat.ep, step->segments,
						iov, cookie, &remote,
						DAT_COMPLETION_DEFAULT_FLAG)) ?:
	       kt_trans_note(conn, 0);
}

/* ---- The steps ------------------------------------------------------------------------ */

/* Begin: tell the server where this side's memory is. Context: the session's thread. */
int kt_trans_start(struct kt_conn *conn)
{
	conn->flow.stamp = ktime_get_ns();
	return kt_trans_note(conn, 0);
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
				WRITE_ONCE(flow->idle, true);
				kt_kick(conn->net->s);
				return 0;
			}
			if (!(flow->ops & 15))
				kt_kick(conn->net->s);
		}
	}
	return kt_is_mine(conn) ? kt_trans_act(conn) : 0;
}

/* A note has arrived that does not belong to what this side has to look at. */
static int kt_trans_noted(struct kt_conn *conn, const struct kt_note *note)
{
	struct kt_trans *trans = &conn->trans;

	if (!trans->greeted) {
		trans->greeted = true;
		trans->write = le64_to_cpu(note->write);
		trans->read = le64_to_cpu(note->read);
		trans->key = le32_to_cpu(note->key);
		if (conn->net->server) {
			int err = kt_trans_note(conn, 0);

			if (err)
				return err;
		}
		return kt_is_mine(conn) ? kt_trans_act(conn) : 0;
	}
	if (le32_to_cpu(note->status)) {
		kt_trans_fail(conn, "other data than what was sent has arrived there");
		return 0;
	}
	return kt_trans_next(conn);
}

/* A message has arrived, @len bytes at @p. */
static int kt_trans_message(struct kt_conn *conn, const void *p, u32 len)
{
	const struct kt_wire_op *step = kt_step(conn);
	const struct kt_note *note = p;
	bool is_note = len == sizeof(*note) &&
		       le32_to_cpu(note->magic) == KT_NOTE_MAGIC;
	bool good;
	int err;

	if (READ_ONCE(conn->flow.idle))
		return 0;
	if (!conn->trans.greeted || kt_is_mine(conn)) {
		if (is_note)
			return kt_trans_noted(conn, note);
		kt_trans_fail(conn, "the peer is at another step");
		return -EPROTO;
	}
	if (step->op == KT_SEND)
		good = len == kt_step_len(step) &&
		       kt_is_filled(conn, p, len, kt_seed(conn));
	else
		good = is_note && (step->op == KT_READ ||
			kt_is_filled(conn, kt_part(conn, true, KT_PART_WRITTEN),
				     kt_step_len(step), kt_seed(conn)));
	err = kt_trans_note(conn, !good);
	if (!good)
		kt_trans_fail(conn, "other data than what was sent has arrived here");
	return err ?: kt_trans_next(conn);
}

/* What was read is there. */
static int kt_trans_was_read(struct kt_conn *conn)
{
	if (kt_is_filled(conn, kt_part(conn, false, KT_PART_SINK),
			 kt_step_len(kt_step(conn)), 0))
		return kt_trans_note(conn, 0);
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

	err = kt_trans_message(conn, kt_part(owner, true, part),
			       dto->transfered_length);
	return err ?: kt_trans_recv(conn, owner, part);
}

/* The upcall for all completions of a connection. */
void kt_trans_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	struct dat_side *dat = data;
	struct kt_conn *conn = dat->side.owner;
	int err = 0;

	if (conn->net->server && READ_ONCE(conn->flow.stopping))
		return;
	if (dto->status != DAT_DTO_SUCCESS)
		kt_trans_fail(conn, kdat_dto_status_name(dto->status));
	else if (dto->operation == DAT_DTO_RECEIVE)
		err = kt_trans_received(conn, dto);
	else if (dto->user_cookie.as_64 == KT_COOKIE_READ)
		err = kt_trans_was_read(conn);
	if (err)
		kt_trans_fail(conn, "a request was refused");
}
