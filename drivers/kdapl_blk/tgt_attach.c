// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Attachments of connections to volumes.
 *
 * Entry points: kbt_attach() for ATTACH, kbt_attachment_get() and kbt_attachment_put() for
 * each request, kbt_detach() for DETACH, kbt_detach_all() when the connection ends,
 * kbt_end_matching() when the administrator takes volumes away.
 *
 * An attachment ends in two steps. First it takes no more requests (->ending). Only when its
 * last request has finished, kbt_detach_work() leaves the session of the client's disk and the
 * volume: until then the volume stays open, and nothing of a later epoch is accepted. The
 * connection waits for kbt_detach_work() only when it is to be freed.
 *
 * Without KBLK_FEATURE_VOLUMES a connection has one attachment, and both end together. With
 * it, a connection may have KBT_ATTACHED_MAX attachments to volumes of one subsystem, and a
 * request names its volume. The end of an attachment then neither ends the connection nor
 * affects the other attachments.
 *
 * The connection owns its attachments. An attachment holds one of ns->users, so ->ns can be
 * used as long as the attachment is on conn->attachments. Locks: conn->lock guards that list,
 * ->busy and ->ending; kbt_names guards the session; only the receive path, under
 * conn->recv_mutex, makes attachments.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "status.h"
#include "tgt.h"

/* Limit on the volumes of a connection, which are searched for each request */
#define KBT_ATTACHED_MAX	64

/* ---- Ending -------------------------------------------------------------- */

/*
 * Take no more requests for @att, and detach it when it has none. Calls after the first have
 * no effect. Context: any.
 */
static void __kbt_attachment_end(struct kbt_attachment *att)
{
	lockdep_assert_held(&att->conn->lock);

	if (att->ending)
		return;
	WRITE_ONCE(att->ending, true);
	if (!att->busy)
		queue_work(att->conn->kbt->end_wq, &att->end_work);
}

/*
 * Take the volume of @att away from its client, for the administrator or for another client. A
 * connection that cannot have another volume ends too. Context: any.
 */
void kbt_attachment_end(struct kbt_attachment *att)
{
	lockdep_assert_held(&att->conn->lock);

	if (att->conn->volumes)
		__kbt_attachment_end(att);
	else
		kbt_conn_end(att->conn);
}

/*
 * Note that a request of @att has finished. kbt_detach_work() may free @att as soon as the
 * lock is dropped. Context: any.
 */
static void kbt_attachment_idle(struct kbt_attachment *att)
{
	lockdep_assert_held(&att->conn->lock);

	if (!--att->busy && att->ending)
		queue_work(att->conn->kbt->end_wq, &att->end_work);
}

/*
 * Give the client of @conn, which is attached to nothing any more, as long for the next ATTACH
 * as it had for the first. Context: any.
 */
static void kbt_unattached(struct kbt_conn *conn)
{
	lockdep_assert_held(&conn->lock);

	WRITE_ONCE(conn->heard, jiffies);
	WRITE_ONCE(conn->patience,
		   msecs_to_jiffies(conn->kbt->params->attach_ms));
}

/* Undo kbt_attach(). All requests for the volume have finished. */
static void kbt_detach_work(struct work_struct *work)
{
	struct kbt_attachment *att = container_of(work, struct kbt_attachment,
						  end_work);
	struct kbt_conn *conn = att->conn;
	struct kbt_ns *ns = att->ns;

	/*
	 * A request may finish before kbt_recv(), which has passed it to the medium, returns
	 * from there: the volume must be open until then. kbt_io_work() holds a count of
	 * io->pending instead.
	 */
	mutex_lock(&conn->recv_mutex);
	mutex_unlock(&conn->recv_mutex);
	kbt_unhang(att);
	kbt_share_leave(att);
	spin_lock(&kbt_names);
	kbt_session_leave(att);
	spin_lock_irq(&conn->lock);
	kbt_credits_detach(conn);
	list_del(&att->link);
	WRITE_ONCE(conn->attached, conn->attached - 1);
	if (!conn->attached)
		kbt_unattached(conn);
	kbt_conn_drained(conn);
	spin_unlock_irq(&conn->lock);
	/* @conn may already be freed; @att, which leads to @ns, is on no list any more. */
	kbt_ns_unuse(ns);
	spin_unlock(&kbt_names);
	kfree(att);
}

/* End all attachments of @conn, which takes no more requests. Context: any. */
void kbt_detach_all(struct kbt_conn *conn)
{
	struct kbt_attachment *att;

	lockdep_assert_held(&conn->lock);

	list_for_each_entry(att, &conn->attachments, link)
		__kbt_attachment_end(att);
}

/* Serve DETACH, the request of @io: end the attachment, which @io does not use any more. */
void kbt_detach(struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;

	spin_lock_irq(&conn->lock);
	io->att->unreplied--;
	__kbt_attachment_end(io->att);
	kbt_attachment_put(io);
	spin_unlock_irq(&conn->lock);
}

static void kbt_end_matching_of(struct kbt_conn *conn,
				bool (*match)(const struct kbt_attachment *att,
					      void *what),
				void *what)
{
	struct kbt_attachment *att;

	spin_lock_irq(&conn->lock);
	list_for_each_entry(att, &conn->attachments, link)
		if (match(att, what))
			kbt_attachment_end(att);
	spin_unlock_irq(&conn->lock);
}

/*
 * End the attachments of connections of @port for which @match returns true. A connection that
 * cannot have another volume ends too. Context: process.
 */
void kbt_end_matching(struct kbt_port *port,
		      bool (*match)(const struct kbt_attachment *att,
				    void *what),
		      void *what)
{
	struct kbt_conn *conn;
	struct kbt *kbt;

	mutex_lock(&port->mutex);
	kbt = port->kbt;
	if (kbt) {
		mutex_lock(&kbt->mutex);
		list_for_each_entry(conn, &kbt->conns, link)
			kbt_end_matching_of(conn, match, what);
		mutex_unlock(&kbt->mutex);
	}
	mutex_unlock(&port->mutex);
}

/* ---- Requests ------------------------------------------------------------ */

/*
 * Return the attachment that @request is for, or NULL; kbt_attachment_put() drops it.
 * Context: process.
 */
struct kbt_attachment *kbt_attachment_get(struct kbt_conn *conn,
					  const struct kblk_request *request)
{
	struct kbt_attachment *att;

	lockdep_assert_held(&conn->lock);

	if (conn->volumes && !request->namespace)
		return NULL;
	list_for_each_entry(att, &conn->attachments, link) {
		if (att->ending || (conn->volumes &&
				    att->ns->nsid !=
				    le32_to_cpu(request->namespace)))
			continue;
		att->busy++;
		att->unreplied++;
		/* Move it to the front: the next request is probably for the same volume. */
		if (!list_is_first(&att->link, &conn->attachments))
			list_move(&att->link, &conn->attachments);
		return att;
	}
	return NULL;
}

/*
 * Drop the attachment of @io, whose request has finished. The attachment may be freed as soon
 * as the lock is dropped. Context: any.
 */
void kbt_attachment_put(struct kbt_io *io)
{
	struct kbt_attachment *att = io->att;

	lockdep_assert_held(&io->conn->lock);

	io->att = NULL;
	if (att)
		kbt_attachment_idle(att);
}

/* Print the numbers of the volumes that @conn is attached to, or 0. */
ssize_t kbt_attached_print(struct kbt_conn *conn, char *page, ssize_t n)
{
	struct kbt_attachment *att;
	const char *between = "";
	ssize_t start = n;

	spin_lock_irq(&conn->lock);
	list_for_each_entry(att, &conn->attachments, link) {
		if (att->ending)
			continue;
		n += sysfs_emit_at(page, n, "%s%u", between, att->ns->nsid);
		between = ",";
	}
	spin_unlock_irq(&conn->lock);
	if (n == start)
		n += sysfs_emit_at(page, n, "0");
	return n - start;
}

/* ---- Attaching ----------------------------------------------------------- */

/* Return the subsystem @name of @port, or NULL. */
static struct kbt_subsys *kbt_find_subsys(struct kbt_port *port,
					  const char *name)
{
	struct kbt_subsys *subsys;
	struct kbt_link *link;

	lockdep_assert_held(&kbt_names);

	list_for_each_entry(link, &port->subsystems, link) {
		subsys = link->to;
		if (!strcmp(config_item_name(&subsys->group.cg_item), name))
			return subsys;
	}
	return NULL;
}

/* Return whether the client @name may use @subsys; kbt_authenticate() checks the name. */
bool kbt_may_use(struct kbt_subsys *subsys, const char *name)
{
	struct kbt_client *client;
	struct kbt_link *link;

	lockdep_assert_held(&kbt_names);

	if (subsys->allow_any)
		return true;
	list_for_each_entry(link, &subsys->allowed, link) {
		client = link->to;
		if (!strcmp(config_item_name(&client->group.cg_item), name))
			return true;
	}
	return false;
}

/* Return the volume @nsid of @subsys if clients may attach to it, or NULL. */
static struct kbt_ns *kbt_find_ns(struct kbt_subsys *subsys, u32 nsid)
{
	struct kbt_ns *ns;

	lockdep_assert_held(&kbt_names);

	list_for_each_entry(ns, &subsys->namespaces, link)
		if (ns->nsid == nsid && ns->enabled)
			return ns;
	return NULL;
}

/*
 * Add @att to the attachments of its connection if there is room and a credit for it, and
 * return whether this was so. @io is the slot of ATTACH.
 */
static bool kbt_attachment_add(struct kbt_attachment *att, struct kbt_io *io)
{
	struct kbt_conn *conn = io->conn;
	bool may;

	spin_lock_irq(&conn->lock);
	may = conn->attached < KBT_ATTACHED_MAX && kbt_credits_attach(io);
	if (may) {
		list_add(&att->link, &conn->attachments);
		WRITE_ONCE(conn->attached, conn->attached + 1);
	}
	spin_unlock_irq(&conn->lock);
	return may;
}

/*
 * Attach @att to the volume that @attach names, for ATTACH in @io, and return the status to
 * reply with. @att, which is busy with ATTACH, is on the list of its connection before
 * kbt_names is dropped, so that kbt_end_matching() finds it.
 */
static enum kblk_status kbt_attach_to(struct kbt_io *io,
				      struct kbt_attachment *att,
				      const struct kblk_attach *attach)
{
	struct kbt_conn *conn = io->conn;
	enum kblk_status status;
	struct kbt_subsys *subsys;
	struct kbt_ns *ns;

	lockdep_assert_held(&kbt_names);

	subsys = kbt_find_subsys(conn->kbt->port, attach->subsystem);
	if (!subsys)
		return KBLK_ERR_NO_VOLUME;
	if (!kbt_may_use(subsys, conn->client))
		return KBLK_ERR_DENIED;
	status = kbt_authenticate(conn, subsys, attach);
	if (status != KBLK_OK)
		return status;
	ns = kbt_find_ns(subsys, le32_to_cpu(attach->namespace));
	if (!ns)
		return KBLK_ERR_NO_VOLUME;
	if (kbt_many_hang(conn, ns))
		return KBLK_ERR_DRAINING;
	status = kbt_session_join(ns, att);
	if (status != KBLK_OK)
		return status;
	att->ns = ns;
	if (kbt_is_too_many(att) || !kbt_attachment_add(att, io)) {
		kbt_session_leave(att);
		return KBLK_ERR_BUSY;
	}
	kbt_conn_know(conn);
	ns->users++;
	return KBLK_OK;
}

/*
 * Return whether @conn may attach to the volume that @attach names: it has no volume, or it
 * has other volumes of the same client.
 */
static bool kbt_may_add(struct kbt_conn *conn, const struct kblk_attach *attach)
{
	struct kbt_attachment *att;
	bool may;

	spin_lock_irq(&conn->lock);
	may = !conn->attached ||
	      (conn->volumes &&
	       !strcmp(conn->client, attach->client) &&
	       !strcmp(conn->subsystem, attach->subsystem) &&
	       !memcmp(&conn->host_id, attach->host, sizeof(uuid_t)) &&
	       conn->keepalive_ms == le32_to_cpu(attach->keepalive_ms));
	list_for_each_entry(att, &conn->attachments, link)
		may &= att->ending ||
		       att->ns->nsid != le32_to_cpu(attach->namespace);
	spin_unlock_irq(&conn->lock);
	return may;
}

static bool kbt_may_attach(struct kbt_conn *conn,
			   const struct kblk_attach *attach)
{
	return strnlen(attach->client, KBLK_NAME_LEN) < KBLK_NAME_LEN &&
	       strnlen(attach->subsystem, KBLK_NAME_LEN) < KBLK_NAME_LEN &&
	       kblk_is_zero(attach->host, sizeof(attach->host)) != conn->hosts &&
	       kblk_is_zero(attach->reserved, sizeof(attach->reserved)) &&
	       kbt_may_add(conn, attach);
}

static void kbt_attach_log(struct kbt_conn *conn,
			   const struct kblk_attach *attach,
			   enum kblk_status status)
{
	if (status == KBLK_OK)
		pr_info_ratelimited("%s: %*pE is attached to %*pE, volume %u\n",
				    conn->peer, (int)strlen(conn->client),
				    conn->client,
				    (int)strlen(attach->subsystem),
				    attach->subsystem,
				    le32_to_cpu(attach->namespace));
	else
		pr_warn_ratelimited("%s: %*pE may not attach to %*pE: %s\n",
				    conn->peer, (int)strlen(conn->client),
				    conn->client,
				    (int)strlen(attach->subsystem),
				    attach->subsystem, kblk_status_text(status));
}

/* Return a new attachment of @conn that is busy with ATTACH, or NULL. */
static struct kbt_attachment *kbt_attachment_make(struct kbt_conn *conn)
{
	struct kbt_attachment *att = kzalloc(sizeof(*att), GFP_KERNEL);
	int i;

	if (!att)
		return NULL;
	att->conn = conn;
	att->busy = 1;
	att->unreplied = 1;
	for (i = 0; i < KBT_POOLS; i++)
		kbt_line_init(&att->lines[i]);
	INIT_LIST_HEAD(&att->hang_link);
	INIT_WORK(&att->end_work, kbt_detach_work);
	return att;
}

/* End @att, for which there is no share, and drop its ATTACH. */
static void kbt_attachment_fail(struct kbt_attachment *att)
{
	struct kbt_conn *conn = att->conn;

	spin_lock_irq(&conn->lock);
	__kbt_attachment_end(att);
	kbt_attachment_idle(att);
	spin_unlock_irq(&conn->lock);
}

/* Note the client that attaches; if @conn is attached already, the client is the same. */
static void kbt_attach_name(struct kbt_conn *conn,
			    const struct kblk_attach *attach)
{
	lockdep_assert_held(&kbt_names);

	if (READ_ONCE(conn->attached))
		return;
	strscpy(conn->client, attach->client, sizeof(conn->client));
	strscpy(conn->subsystem, attach->subsystem, sizeof(conn->subsystem));
	import_uuid(&conn->host_id, attach->host);
	conn->keepalive_ms = le32_to_cpu(attach->keepalive_ms);
}

/*
 * Note that @conn is attached, before ATTACH is answered. ->patience is three times as long as
 * a client that keeps its promise may be silent. Context: process.
 */
static void kbt_attached(struct kbt_conn *conn)
{
	spin_lock_irq(&conn->lock);
	WRITE_ONCE(conn->heard, jiffies);
	WRITE_ONCE(conn->patience,
		   msecs_to_jiffies(min(conn->keepalive_ms, 1000000U)) * 3);
	spin_unlock_irq(&conn->lock);
}

/*
 * A client that sends ATTACH has our answer, so it is of the host that it named. The event
 * that says so may come later. Return false if its host has all that one may have.
 * Context: process.
 */
static bool kbt_prove(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;
	bool may;

	if (test_bit(KBT_CONN_PROVEN, &conn->flags))
		return true;
	mutex_lock(&kbt->mutex);
	may = kbt_host_prove(conn);
	mutex_unlock(&kbt->mutex);
	return may;
}

static enum kblk_status __kbt_attach(struct kbt_io *io, const struct kblk_attach *attach)
{
	struct kbt_conn *conn = io->conn;
	struct kbt_attachment *att;
	enum kblk_status status;

	lockdep_assert_held(&conn->recv_mutex);

	if (!kbt_may_attach(conn, attach))
		return KBLK_ERR_INVALID;
	if (!kbt_prove(conn))
		return KBLK_ERR_BUSY;
	att = kbt_attachment_make(conn);
	if (!att)
		return KBLK_ERR_BUSY;
	spin_lock(&kbt_names);
	kbt_attach_name(conn, attach);
	status = kbt_attach_to(io, att, attach);
	spin_unlock(&kbt_names);
	if (status != KBLK_OK) {
		kfree(att);
	} else if (kbt_share_join(att)) {
		kbt_attachment_fail(att);
		/*
		 * NOIO allocations compact no memory, but others may until the client tries
		 * again.
		 */
		status = KBLK_ERR_BUSY;
	} else {
		io->att = att;
		kbt_attached(conn);
	}
	kbt_attach_log(conn, attach, status);
	return status;
}

/*
 * Serve ATTACH, the request of @io: attach its connection to the volume that @attach names,
 * and return the status to reply with. Allocations are NOIO, as in kbt_conn_request().
 * Context: process.
 */
enum kblk_status kbt_attach(struct kbt_io *io, const struct kblk_attach *attach)
{
	unsigned int noio = memalloc_noio_save();
	enum kblk_status status = __kbt_attach(io, attach);

	memalloc_noio_restore(noio);
	return status;
}
