// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sessions: the connections of one disk of a client to a volume, on any port.
 *
 * Entry points: kbt_session_join() and kbt_session_leave() at attach and
 * detach, kbt_fence() for FENCE, kbt_session_written() and kbt_flush_*() from
 * tgt_backend.c.
 *
 * - Epochs. A disk that has lost its connections sends its requests again in a
 *   new epoch. Nothing of the new epoch is accepted before the last request of
 *   earlier epochs has finished, on whatever port: otherwise the first copy of
 *   a write could overtake the second one.
 * - Fences. Another disk of a host takes over what a disk could not do. The
 *   host has the session of the first one fenced before: its connections are
 *   ended, and its last request has finished.
 * - Failed flushes. When a flush fails, writes of every disk that has not
 *   flushed them may be lost. The layers below report the error once, perhaps
 *   to a client that no longer listens. The volume therefore becomes another
 *   instance, which tells disks that connect later, and each session that may
 *   have lost writes gets an error for every flush from then on. What a host
 *   writes through one disk it may flush through another, so writes and flushes
 *   are counted for a host (struct kbt_writer).
 *
 * A session is owned by its connections (session->users), a writer by its
 * sessions. kbt_names guards joining and leaving; ns->lock guards ns->sessions
 * and the state of flushes, in any context.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "tgt.h"

/*
 * struct kbt_writer - a host with disks, or a disk of a host that is not known
 * @host: the host, or nil
 * @users: its sessions, under kbt_names
 * @written: writes that were begun, and once more when they were done
 * @flushed: how many of @written are on the medium; ns->lock
 */
struct kbt_writer {
	uuid_t host;
	unsigned int users;
	atomic64_t written;
	s64 flushed;
};

/*
 * struct kbt_session - a disk of a client
 * @link: in ns->sessions, under ns->lock
 * @id: see struct kblk_hello
 * @writer: its host
 * @users: connections of the session, under kbt_names
 * @failed: writes of @writer may be lost; ns->lock
 */
struct kbt_session {
	struct list_head link;
	u64 id;
	struct kbt_writer *writer;
	unsigned int users;
	bool failed;
};

/* ---- Joining ------------------------------------------------------------- */

/*
 * Check the epoch of @conn against the connections attached to @ns, and end
 * those of an earlier epoch. Context: any.
 */
static enum kblk_status kbt_epoch_check(struct kbt_ns *ns, struct kbt_conn *conn)
{
	enum kblk_status status = KBLK_OK;
	struct kbt_conn *other;

	lockdep_assert_held(&kbt_names);

	list_for_each_entry(other, &ns->conns, ns_link) {
		if (other->session_id != conn->session_id ||
		    other->epoch == conn->epoch)
			continue;
		if ((s32)(other->epoch - conn->epoch) > 0)
			return KBLK_ERR_STALE;
		kbt_conn_end(other);
		status = KBLK_ERR_DRAINING;
	}
	return status;
}

static struct kbt_session *kbt_session_find(struct kbt_ns *ns, u64 id)
{
	struct kbt_session *session;

	lockdep_assert_held(&kbt_names);

	list_for_each_entry(session, &ns->sessions, link)
		if (session->id == id)
			return session;
	return NULL;
}

/*
 * Return the writer of @conn. ->written starts at 1 because the host may have
 * unflushed writes from connections that are gone: a flush that fails must fail
 * its sessions too.
 */
static struct kbt_writer *kbt_writer_get(struct kbt_ns *ns,
					 const struct kbt_conn *conn)
{
	struct kbt_session *session;
	struct kbt_writer *writer;

	lockdep_assert_held(&kbt_names);

	list_for_each_entry(session, &ns->sessions, link) {
		writer = session->writer;
		if (conn->hosts && uuid_equal(&writer->host, &conn->host_id)) {
			writer->users++;
			return writer;
		}
	}
	writer = kzalloc(sizeof(*writer), GFP_ATOMIC);
	if (!writer)
		return NULL;
	writer->host = conn->host_id;
	writer->users = 1;
	atomic64_set(&writer->written, 1);
	return writer;
}

static void kbt_writer_put(struct kbt_writer *writer)
{
	if (!--writer->users)
		kfree(writer);
}

static struct kbt_session *kbt_session_make(struct kbt_ns *ns,
					    const struct kbt_conn *conn)
{
	struct kbt_session *session = kzalloc(sizeof(*session), GFP_ATOMIC);

	lockdep_assert_held(&kbt_names);

	if (!session)
		return NULL;
	session->id = conn->session_id;
	session->writer = kbt_writer_get(ns, conn);
	if (!session->writer) {
		kfree(session);
		return NULL;
	}
	spin_lock_irq(&ns->lock);
	list_add(&session->link, &ns->sessions);
	spin_unlock_irq(&ns->lock);
	return session;
}

/*
 * Make @conn part of its session on @ns, and return the status to reply with.
 */
enum kblk_status kbt_session_join(struct kbt_ns *ns, struct kbt_conn *conn)
{
	enum kblk_status status = kbt_epoch_check(ns, conn);
	struct kbt_session *session;

	lockdep_assert_held(&kbt_names);

	if (status != KBLK_OK)
		return status;
	session = kbt_session_find(ns, conn->session_id);
	/*
	 * The initiator looks at the volume through its first connection only. If
	 * that one is gone the volume may have become another one since.
	 */
	if (!session && conn->queue)
		return KBLK_ERR_STALE;
	if (!session)
		session = kbt_session_make(ns, conn);
	if (!session)
		return KBLK_ERR_IO;
	session->users++;
	conn->session = session;
	list_add(&conn->ns_link, &ns->conns);
	return KBLK_OK;
}

/* Remove @conn from its session. All requests of @conn have finished. */
void kbt_session_leave(struct kbt_ns *ns, struct kbt_conn *conn)
{
	struct kbt_session *session = conn->session;

	lockdep_assert_held(&kbt_names);

	list_del(&conn->ns_link);
	conn->session = NULL;
	if (--session->users)
		return;
	spin_lock_irq(&ns->lock);
	list_del(&session->link);
	spin_unlock_irq(&ns->lock);
	kbt_writer_put(session->writer);
	kfree(session);
}

/* ---- Fences -------------------------------------------------------------- */

/*
 * Serve FENCE: end the connections that @fence names, and return the status to
 * reply with. A session is known to its disk and to this target only, so
 * whoever names one may have it ended. Context: process; @conn
 * is attached.
 */
enum kblk_status kbt_fence(struct kbt_conn *conn,
			   const struct kblk_fence *fence)
{
	u64 session_id = le64_to_cpu(fence->session);
	u32 epoch = le32_to_cpu(fence->epoch);
	enum kblk_status status = KBLK_OK;
	struct kbt_conn *other;

	lockdep_assert_held(&conn->recv_mutex);

	if (fence->reserved || session_id == conn->session_id)
		return KBLK_ERR_INVALID;
	spin_lock(&kbt_names);
	list_for_each_entry(other, &conn->ns->conns, ns_link) {
		if (other->session_id != session_id ||
		    (s32)(other->epoch - epoch) > 0)
			continue;
		kbt_conn_end(other);
		status = KBLK_ERR_DRAINING;
	}
	spin_unlock(&kbt_names);
	return status;
}

/* ---- Writes and flushes: any context ------------------------------------- */

/*
 * Count a write. Called when the write is begun, so that a flush that fails
 * meanwhile fails the session of @io too; and again before the reply, so that only a
 * flush that is begun afterwards covers the write.
 */
void kbt_session_written(struct kbt_io *io)
{
	atomic64_inc(&io->conn->session->writer->written);
}

/* Begin a flush: @io covers the writes that were counted so far. */
void kbt_flush_begin(struct kbt_io *io)
{
	io->covers = atomic64_read(&io->conn->session->writer->written);
}

/*
 * End a flush with @err and return the error to reply with. The file system
 * reports a writeback error to only one of several concurrent flushes;
 * errseq_check() therefore looks for any error since the last one that all
 * sessions were told of. Context: any.
 */
int kbt_flush_end(struct kbt_io *io, int err)
{
	struct kbt_session *session = io->conn->session;
	struct kbt_writer *writer = session->writer;
	struct kbt_ns *ns = io->conn->ns;
	unsigned long flags;

	if (!err && !ns->bdev)
		err = errseq_check(&ns->file->f_mapping->wb_err,
				   READ_ONCE(ns->wb_since));
	if (err)
		kbt_flush_failed(ns, err);
	spin_lock_irqsave(&ns->lock, flags);
	if (session->failed)
		err = err ?: -EIO;
	else if (!err)
		writer->flushed = max(writer->flushed, io->covers);
	spin_unlock_irqrestore(&ns->lock, flags);
	return err;
}

/*
 * Make @ns another instance, and fail all sessions with unflushed writes: their
 * writes may be lost, whichever session has flushed. Context: any.
 */
void kbt_flush_failed(struct kbt_ns *ns, int err)
{
	u64 instance = get_random_u64();
	struct kbt_session *session;
	unsigned long flags;

	pr_err_ratelimited("%s: cannot be flushed: %d; clients that have not flushed what they wrote get errors\n",
			   ns->path, err);
	spin_lock_irqsave(&ns->lock, flags);
	ns->instance = instance;
	WRITE_ONCE(ns->wb_since, errseq_sample(&ns->file->f_mapping->wb_err));
	list_for_each_entry(session, &ns->sessions, link)
		if (session->writer->flushed !=
		    atomic64_read(&session->writer->written))
			session->failed = true;
	spin_unlock_irqrestore(&ns->lock, flags);
}
