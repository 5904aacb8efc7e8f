// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sessions: the connections of one disk of a client to a volume, on any port.
 *
 * Entry points: kbt_session_join() and kbt_session_leave() at attach and detach, kbt_fence()
 * for FENCE, kbt_session_written() and kbt_flush_*() from tgt_backend.c.
 *
 * - Epochs. A disk that has lost its connections sends its requests again in a new epoch.
 *   Nothing of the new epoch is accepted before the last request of earlier epochs has
 *   finished, on whatever port: otherwise the first copy of a write could overtake the second
 *   one. The same holds for a disk that has detached from the volume and attaches again.
 * - Fences. When a disk fails, another disk of the host takes over its requests. Before that
 *   the host has the session of the failed disk fenced: its attachments to the volume are
 *   ended, and its last request has finished.
 * - Failed flushes. When a flush fails, writes of every disk that has not flushed them may be
 *   lost. The layers below report the error once, perhaps to a client that no longer listens.
 *   The volume therefore becomes another instance, which tells disks that connect later, and
 *   each session that may have lost writes gets an error for every flush from then on. What a
 *   host writes through one disk it may flush through another, so writes and flushes are
 *   counted for a host (struct kbt_writer).
 *
 * The attachments own their session, and the sessions own their writer. A volume may have
 * thousands of each, and all may connect at once, so they are looked up in hash tables.
 * kbt_names guards joining and leaving; ns->lock guards ns->sessions and the state of flushes,
 * in any context.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jhash.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "tgt.h"

/* How long a fenced client may take for replies and data, jiffies */
#define KBT_FENCE_PATIENCE	HZ

/*
 * struct kbt_writer - a host with disks, or a disk whose host is not known
 * @link: in ns->writers if @host is known, under kbt_names
 * @host: the host, or nil
 * @users: number of sessions of the writer, under kbt_names
 * @written: writes, each counted when it begins and again when it is done
 * @flushed: how many of @written are on the medium; ns->lock
 */
struct kbt_writer {
	struct hlist_node link;
	uuid_t host;
	unsigned int users;
	atomic64_t written;
	s64 flushed;
};

/*
 * struct kbt_session - a disk of a client
 * @link: in ns->sessions, under ns->lock
 * @id: see struct kblk_hello
 * @writer: writer of the disk
 * @attachments: attachments of the disk's connections to the volume, under kbt_names
 * @failed: writes of @writer may be lost; ns->lock
 */
struct kbt_session {
	struct hlist_node link;
	u64 id;
	struct kbt_writer *writer;
	struct list_head attachments;
	bool failed;
};

/* ---- Joining ------------------------------------------------------------- */

/*
 * Return whether @att has to end before another connection of its session and epoch attaches.
 * A client whose volume was detached may resend requests that were not answered: the first
 * copies must be done.
 */
static bool kbt_is_leaving(const struct kbt_attachment *att)
{
	return att->conn->volumes &&
	       (READ_ONCE(att->ending) || kbt_conn_ending(att->conn));
}

/*
 * Check the epoch of @conn against the connections of @session, and end the connections of an
 * earlier epoch. Context: any.
 */
static enum kblk_status kbt_epoch_check(struct kbt_session *session,
					const struct kbt_conn *conn)
{
	enum kblk_status status = KBLK_OK;
	struct kbt_attachment *att;
	struct kbt_conn *other;

	lockdep_assert_held(&kbt_names);

	list_for_each_entry(att, &session->attachments, session_link) {
		other = att->conn;
		if ((s32)(other->epoch - conn->epoch) > 0)
			return KBLK_ERR_STALE;
		if (other->epoch != conn->epoch)
			kbt_conn_end(other);
		else if (!kbt_is_leaving(att))
			continue;
		status = KBLK_ERR_DRAINING;
	}
	return status;
}

static struct kbt_session *kbt_session_find(struct kbt_ns *ns, u64 id)
{
	struct kbt_session *session;

	lockdep_assert_held(&kbt_names);

	hash_for_each_possible(ns->sessions, session, link, id)
		if (session->id == id)
			return session;
	return NULL;
}

/* Return the bucket for writers of @host. */
static u32 kbt_writer_key(const uuid_t *host)
{
	return jhash(host, sizeof(*host), 0);
}

static struct kbt_writer *kbt_writer_find(struct kbt_ns *ns, const uuid_t *host)
{
	struct kbt_writer *writer;

	lockdep_assert_held(&kbt_names);

	hash_for_each_possible(ns->writers, writer, link, kbt_writer_key(host))
		if (uuid_equal(&writer->host, host))
			return writer;
	return NULL;
}

/*
 * Return the writer of @conn. ->written starts at 1, because the host may have unflushed
 * writes from connections that are gone: a failed flush must fail its sessions too.
 */
static struct kbt_writer *kbt_writer_get(struct kbt_ns *ns,
					 const struct kbt_conn *conn)
{
	struct kbt_writer *writer = NULL;

	if (conn->hosts)
		writer = kbt_writer_find(ns, &conn->host_id);
	if (writer) {
		writer->users++;
		return writer;
	}
	writer = kzalloc(sizeof(*writer), GFP_ATOMIC);
	if (!writer)
		return NULL;
	writer->host = conn->host_id;
	writer->users = 1;
	atomic64_set(&writer->written, 1);
	/* A writer whose host is not known is never looked up. */
	if (conn->hosts)
		hash_add(ns->writers, &writer->link, kbt_writer_key(&writer->host));
	return writer;
}

static void kbt_writer_put(struct kbt_writer *writer)
{
	lockdep_assert_held(&kbt_names);

	if (--writer->users)
		return;
	hash_del(&writer->link);
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
	INIT_LIST_HEAD(&session->attachments);
	session->writer = kbt_writer_get(ns, conn);
	if (!session->writer) {
		kfree(session);
		return NULL;
	}
	spin_lock_irq(&ns->lock);
	hash_add(ns->sessions, &session->link, session->id);
	spin_unlock_irq(&ns->lock);
	return session;
}

/* Add @att to the session of its connection on @ns, and return the status to reply with. */
enum kblk_status kbt_session_join(struct kbt_ns *ns, struct kbt_attachment *att)
{
	struct kbt_conn *conn = att->conn;
	struct kbt_session *session;
	enum kblk_status status;

	lockdep_assert_held(&kbt_names);

	session = kbt_session_find(ns, conn->session_id);
	status = session ? kbt_epoch_check(session, conn) : KBLK_OK;
	if (status != KBLK_OK)
		return status;
	/*
	 * The initiator checks the volume through its first connection only. Without a session
	 * that connection is gone, and the volume may be another one since.
	 */
	if (!session && conn->queue)
		return KBLK_ERR_STALE;
	if (!session)
		session = kbt_session_make(ns, conn);
	if (!session)
		return KBLK_ERR_IO;
	att->session = session;
	list_add(&att->session_link, &session->attachments);
	return KBLK_OK;
}

/* Remove @att from its session. All requests of @att have finished. */
void kbt_session_leave(struct kbt_attachment *att)
{
	struct kbt_session *session = att->session;
	struct kbt_ns *ns = att->ns;

	lockdep_assert_held(&kbt_names);

	list_del(&att->session_link);
	att->session = NULL;
	if (!list_empty(&session->attachments))
		return;
	spin_lock_irq(&ns->lock);
	hash_del(&session->link);
	spin_unlock_irq(&ns->lock);
	kbt_writer_put(session->writer);
	kfree(session);
}

/*
 * Return whether another connection at the port of @att, which has not ended, is attached in
 * the session of @att.
 */
bool kbt_session_has_other(const struct kbt_attachment *att)
{
	struct kbt_attachment *other;

	lockdep_assert_held(&kbt_names);

	list_for_each_entry(other, &att->session->attachments, session_link)
		if (other->conn != att->conn && other->conn->kbt == att->conn->kbt &&
		    !kbt_conn_ending(other->conn))
			return true;
	return false;
}

/* ---- Fences -------------------------------------------------------------- */

/*
 * Fence @att. If its connection may have several volumes, end the connection as well if the
 * client does not answer: its requests would wait until the transport gives up.
 * Context: process.
 */
static void kbt_fence_one(struct kbt_attachment *att)
{
	struct kbt_conn *conn = att->conn;

	spin_lock_irq(&conn->lock);
	kbt_attachment_end(att);
	spin_unlock_irq(&conn->lock);
	if (kbt_takes_no_replies(conn, KBT_FENCE_PATIENCE))
		kbt_conn_end(conn);
}

/*
 * Serve FENCE, the request of @io: end the attachments that @fence names, and return the
 * status to reply with. Only its disk and this target know a session, so anybody who names it
 * may have it ended. Context: process.
 */
enum kblk_status kbt_fence(struct kbt_io *io, const struct kblk_fence *fence)
{
	u64 session_id = le64_to_cpu(fence->session);
	u32 epoch = le32_to_cpu(fence->epoch);
	enum kblk_status status = KBLK_OK;
	struct kbt_session *session;
	struct kbt_attachment *att;

	lockdep_assert_held(&io->conn->recv_mutex);

	if (fence->reserved || session_id == io->conn->session_id)
		return KBLK_ERR_INVALID;
	spin_lock(&kbt_names);
	session = kbt_session_find(io->att->ns, session_id);
	if (!session)
		goto unlock;
	list_for_each_entry(att, &session->attachments, session_link) {
		if ((s32)(att->conn->epoch - epoch) > 0)
			continue;
		kbt_fence_one(att);
		status = KBLK_ERR_DRAINING;
	}
unlock:
	spin_unlock(&kbt_names);
	return status;
}

/* ---- Writes and flushes: any context ------------------------------------- */

/*
 * Count a write when it begins, so that a flush that fails meanwhile fails the session of @io
 * too; and again before the reply, so that only a flush that begins later covers the write.
 */
void kbt_session_written(struct kbt_io *io)
{
	atomic64_inc(&io->att->session->writer->written);
}

/* Begin a flush: @io covers the writes that were counted so far. */
void kbt_flush_begin(struct kbt_io *io)
{
	io->covers = atomic64_read(&io->att->session->writer->written);
}

/*
 * End a flush with @err and return the error to reply with. The file system reports a
 * writeback error to only one of several concurrent flushes. errseq_check() therefore looks
 * for any error after ns->wb_since, up to which all sessions were told. Context: any.
 */
int kbt_flush_end(struct kbt_io *io, int err)
{
	struct kbt_session *session = io->att->session;
	struct kbt_writer *writer = session->writer;
	struct kbt_ns *ns = io->att->ns;
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
 * Make @ns another instance, and fail all sessions with unflushed writes: these may be lost,
 * whichever session has flushed. A writeback error that a file system has not marked as seen
 * would be told again without end, so that is done here. Context: any.
 */
void kbt_flush_failed(struct kbt_ns *ns, int err)
{
	u64 instance = get_random_u64();
	struct kbt_session *session;
	unsigned long flags;
	errseq_t since;
	int bucket;

	pr_err_ratelimited("%s: cannot be flushed (%pe); clients that have not flushed what they wrote get errors\n",
			   ns->path, ERR_PTR(err));
	spin_lock_irqsave(&ns->lock, flags);
	ns->instance = instance;
	since = ns->wb_since;
	errseq_check_and_advance(&ns->file->f_mapping->wb_err, &since);
	WRITE_ONCE(ns->wb_since, since);
	hash_for_each(ns->sessions, bucket, session, link)
		if (session->writer->flushed !=
		    atomic64_read(&session->writer->written))
			session->failed = true;
	spin_unlock_irqrestore(&ns->lock, flags);
}
