// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hosts of clients, and which connection requests are accepted.
 *
 * Entry points: kbt_hello_check() and kbt_session_check() for each connection request,
 * kbt_host_get() and kbt_host_put() with each connection, kbt_hang() and kbt_unhang() for
 * connections that have ended while a medium keeps their requests, kbt_many_hang(),
 * kbt_is_too_many() and kbt_conn_know() for each ATTACH, kbt_conn_forget() when a connection
 * ends.
 *
 * A host is an address that its peer has proven to have, see KDAT_HOST. Whatever the
 * clients of a host do, they leave some of each limited resource to other hosts: connections
 * here, credits in tgt_credit.c.
 *
 * The connections own their host (host->conns). kbt->mutex guards the list of hosts, kbt_names
 * the lists of attachments that hang, and kbt->known.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/slab.h>
#include "tgt.h"

/* How long a connection that has not attached yet is taken for one that is about to, jiffies */
#define KBT_ATTACHING	(HZ / 4)

/* ---- Hosts --------------------------------------------------------------- */

static struct kbt_host *kbt_host_find(struct kbt *kbt, const struct in6_addr *id)
{
	struct kbt_host *host;

	lockdep_assert_held(&kbt->mutex);

	list_for_each_entry(host, &kbt->hosts, link)
		if (ipv6_addr_equal(&host->id, id))
			return host;
	return NULL;
}

/*
 * Return the host @id for a new connection, or NULL if there is no memory. kbt_host_put()
 * drops it. Context: process.
 */
struct kbt_host *kbt_host_get(struct kbt *kbt, const struct in6_addr *id)
{
	struct kbt_host *host = kbt_host_find(kbt, id);

	if (!host) {
		host = kzalloc(sizeof(*host), GFP_KERNEL);
		if (!host)
			return NULL;
		host->id = *id;
		list_add(&host->link, &kbt->hosts);
	}
	host->conns++;
	return host;
}

/* Drop @host, one of whose connections was freed. Context: process. */
void kbt_host_put(struct kbt *kbt, struct kbt_host *host)
{
	lockdep_assert_held(&kbt->mutex);

	if (--host->conns)
		return;
	list_del(&host->link);
	kfree(host);
}

/* ---- Connections that hang ------------------------------------------------ */

/*
 * Note the volumes that keep requests of @conn, which has ended a while ago. kbt->mutex keeps
 * @conn alive. Context: process.
 */
void kbt_hang(struct kbt_conn *conn)
{
	struct kbt_attachment *att;
	bool hangs = false;

	spin_lock(&kbt_names);
	spin_lock_irq(&conn->lock);
	list_for_each_entry(att, &conn->attachments, link) {
		/* If @att is not busy, kbt_detach_work() is about to run. */
		if (!att->busy || !att->share)
			continue;
		list_add(&att->hang_link, &att->share->hanging);
		att->share->hang_count++;
		hangs = true;
	}
	spin_unlock_irq(&conn->lock);
	spin_unlock(&kbt_names);
	kbt_count(conn->kbt, KBT_STAT_HANGING, hangs);
}

/* Note that the volume of @att keeps no request of @att any more. Context: process. */
void kbt_unhang(struct kbt_attachment *att)
{
	spin_lock(&kbt_names);
	if (!list_empty(&att->hang_link)) {
		list_del_init(&att->hang_link);
		att->share->hang_count--;
	}
	spin_unlock(&kbt_names);
}

/*
 * Return whether @conn must not attach to @ns, as @ns keeps requests of too many connections
 * that have ended. Clients that connect again and again to a volume which stands still must
 * not use up what others need. One host leaves an eighth of the limit to others; beyond the
 * limit only the hosts with many such connections are refused. A disk that loses all its
 * connections once reaches neither limit.
 */
bool kbt_many_hang(const struct kbt_conn *conn, const struct kbt_ns *ns)
{
	const struct kbt_params *params = conn->kbt->params;
	u32 max = max(params->max_conns / 8, 2 * params->max_queues);
	u32 of_host = kbt_of_a_host(max);
	u32 few = max(max / 8, params->max_queues);
	struct kbt_attachment *att;
	struct kbt_share *share;
	u32 n = 0;

	lockdep_assert_held(&kbt_names);

	share = kbt_share_find(conn->kbt, ns);
	if (!share || share->hang_count < of_host)
		return false;
	list_for_each_entry(att, &share->hanging, hang_link)
		n += att->conn->host == conn->host;
	return n >= of_host || (share->hang_count >= max && n > few);
}

/* ---- Connection requests ------------------------------------------------- */

enum kblk_hello_status kbt_hello_check(const DAT_CR_PARAM *param)
{
	const struct kblk_hello *hello = param->private_data;

	if (param->private_data_size < (DAT_COUNT)sizeof(*hello) ||
	    le32_to_cpu(hello->magic) != KBLK_MAGIC)
		return KBLK_HELLO_MALFORMED;
	if (le16_to_cpu(hello->version_min) > KBLK_VERSION_MAX ||
	    le16_to_cpu(hello->version_max) < KBLK_VERSION_MIN ||
	    le16_to_cpu(hello->version_min) > le16_to_cpu(hello->version_max))
		return KBLK_HELLO_VERSION;
	if (le16_to_cpu(hello->credits) < 2 || !hello->session ||
	    le32_to_cpu(hello->reply_size) < sizeof(struct kblk_reply) +
					     sizeof(struct kblk_identify))
		return KBLK_HELLO_MALFORMED;
	return KBLK_HELLO_OK;
}

/*
 * struct kbt_census - connections of a port, when a client asks for another one
 * @live: connections that have not ended
 * @strangers: those of @live that were never attached
 * @ended: connections that have ended, but are not freed: a medium may keep their requests
 * @host_live: @live of the client's host, only proven connections
 * @host_ended: @ended of the client's host, only proven connections
 * @unattached: proven connections of the client's host that were never attached
 * @disk: connections of the client's disk, in the same epoch
 */
struct kbt_census {
	unsigned int live;
	unsigned int strangers;
	unsigned int ended;
	unsigned int host_live;
	unsigned int host_ended;
	unsigned int unattached;
	unsigned int disk;
};

/*
 * Count @conn in @census, for @host only if its peer has proven to be of that host: anybody
 * who can write a connection request may name any host.
 */
static void kbt_count_conn(struct kbt_census *census, const struct kbt_conn *conn,
			   const struct kbt_host *host)
{
	bool ended = kbt_conn_ending(conn);
	bool of_host = conn->host == host && test_bit(KBT_CONN_PROVEN, &conn->flags);
	bool stranger = !test_bit(KBT_CONN_WAS_ATTACHED, &conn->flags);

	census->live += !ended;
	census->strangers += !ended && stranger;
	census->ended += ended;
	census->host_live += of_host && !ended;
	census->host_ended += of_host && ended;
	census->unattached += of_host && stranger;
}

/*
 * The peer of @conn has our answer, which proves that it is of the host that it named: count
 * @conn for that host. Return false if the host has as many connections as it may have.
 * Context: process.
 */
bool kbt_host_prove(struct kbt_conn *conn)
{
	struct kbt *kbt = conn->kbt;
	struct kbt_census census = {};
	struct kbt_conn *other;

	lockdep_assert_held(&kbt->mutex);

	if (test_bit(KBT_CONN_PROVEN, &conn->flags))
		return true;
	list_for_each_entry(other, &kbt->conns, link)
		kbt_count_conn(&census, other, conn->host);
	return census.unattached < KBT_UNATTACHED_MAX &&
	       census.host_live < kbt_of_a_host(kbt->params->max_conns) &&
	       kbt_credits_prove(conn);
}

/* Set ->unattached of all hosts. */
static void kbt_count_unattached(struct kbt *kbt)
{
	struct kbt_host *host;
	struct kbt_conn *conn;

	list_for_each_entry(host, &kbt->hosts, link)
		host->unattached = 0;
	list_for_each_entry(conn, &kbt->conns, link)
		conn->host->unattached += test_bit(KBT_CONN_PROVEN, &conn->flags) &&
					  !test_bit(KBT_CONN_WAS_ATTACHED, &conn->flags);
}

/*
 * Return whether @conn, which has never attached, is about to, and a client of @asker has to
 * wait for that; @asker may be NULL. Otherwise clients that come together would end each
 * other's connections. A host with fewer such connections need not wait.
 */
static bool kbt_is_spared(const struct kbt_conn *conn, const struct kbt_host *asker)
{
	return test_bit(KBT_CONN_PROVEN, &conn->flags) && asker &&
	       time_before(jiffies, READ_ONCE(conn->heard) + KBT_ATTACHING) &&
	       asker->unattached >= conn->host->unattached;
}

/*
 * End the oldest connection that never attached and is not spared, preferably one whose peer is
 * not proven, to make room for another one of @asker, which is NULL if the host has none yet.
 * Return whether there was any. Clients attach within some round trips; clients that do not may
 * come from as many addresses as they like, and must not keep others out. Context: process.
 */
bool kbt_make_room(struct kbt *kbt, const struct kbt_host *asker)
{
	struct kbt_conn *conn, *oldest = NULL;

	lockdep_assert_held(&kbt->mutex);

	kbt_count_unattached(kbt);
	list_for_each_entry(conn, &kbt->conns, link) {
		if (kbt_conn_ending(conn) || test_bit(KBT_CONN_WAS_ATTACHED, &conn->flags) ||
		    kbt_is_spared(conn, asker))
			continue;
		if (!oldest || !test_bit(KBT_CONN_PROVEN, &conn->flags))
			oldest = conn;
		if (!test_bit(KBT_CONN_PROVEN, &conn->flags))
			break;
	}
	if (!oldest)
		return false;
	pr_info_ratelimited("%s: has not attached yet, makes room for another client\n",
			    oldest->peer);
	kbt_conn_end(oldest);
	return true;
}

/* Return how many connections of @kbt may be attached before further ones of disks wait. */
static u32 kbt_for_further(const struct kbt *kbt)
{
	return kbt->params->max_conns - kbt->params->max_conns / 4;
}

/*
 * Return whether the connection of @att, which has joined its session, must not attach: it is a
 * further one of its disk, and the connections that are left are for disks without any.
 * kbt_has_room() may have admitted several such connections before any of them attached.
 */
bool kbt_is_too_many(const struct kbt_attachment *att)
{
	const struct kbt_conn *conn = att->conn;

	lockdep_assert_held(&kbt_names);

	return !test_bit(KBT_CONN_WAS_ATTACHED, &conn->flags) &&
	       conn->kbt->known >= kbt_for_further(conn->kbt) && kbt_session_has_other(att);
}

/* Note that @conn is attached, even if there turns out to be no memory for its share. */
void kbt_conn_know(struct kbt_conn *conn)
{
	lockdep_assert_held(&kbt_names);

	/* If @conn has begun to end, kbt_conn_forget() may have been called. */
	if (kbt_conn_ending(conn) || test_bit(KBT_CONN_WAS_ATTACHED, &conn->flags))
		return;
	set_bit(KBT_CONN_WAS_ATTACHED, &conn->flags);
	conn->kbt->known++;
}

/* Undo kbt_conn_know() for @conn, which is ending. Context: process. */
void kbt_conn_forget(struct kbt_conn *conn)
{
	spin_lock(&kbt_names);
	if (test_bit(KBT_CONN_WAS_ATTACHED, &conn->flags))
		conn->kbt->known--;
	spin_unlock(&kbt_names);
}

/*
 * Return whether there may be another connection of the disk and of @host that @census is for.
 * The last quarter of max_conns is for disks without any: a few hosts with many CPUs must not
 * keep others out; kbt_is_too_many() looks again when the connection attaches. An eighth is for
 * other hosts: a host that makes disks without end must not keep them out either. Connections
 * that were never attached make room for any disk.
 *
 * Connections that have ended are counted by themselves: if the medium of a volume stands
 * still and all max_conns connections have lost their client, as many can be made for the
 * other volumes. If more have ended, the hosts that made them are refused, and no connection
 * is ended to make room.
 * Context: process.
 */
static bool kbt_has_room(struct kbt *kbt, const struct kbt_census *census,
			 const struct kbt_host *host)
{
	u32 max = kbt->params->max_conns;
	u32 of_host = kbt_of_a_host(max);

	if (census->disk >= kbt->params->max_queues ||
	    census->unattached >= KBT_UNATTACHED_MAX ||
	    census->host_live >= of_host || census->host_ended > of_host ||
	    (census->ended > max && census->host_ended > max / 8))
		return false;
	if (census->disk && census->live - census->strangers >= kbt_for_further(kbt))
		return false;
	return census->live < max || (census->ended <= max && kbt_make_room(kbt, host));
}

/*
 * Return whether a client that says @hello may connect while connections of an earlier epoch
 * are being ended. If volumes share the connections, a volume whose medium keeps a request
 * must not hold up the others: ATTACH has the barrier for each volume.
 */
static bool kbt_may_overlap(const struct kblk_hello *hello)
{
	return le32_to_cpu(hello->features) & KBLK_FEATURE_VOLUMES;
}

/*
 * Decide on a connection request of the host @id. Connections of an earlier epoch of the same
 * disk are ended, whatever their state here: the initiator has given them up.
 * Context: process.
 */
enum kblk_hello_status kbt_session_check(struct kbt *kbt, const struct kblk_hello *hello,
					 const struct in6_addr *id)
{
	const struct kbt_host *host = kbt_host_find(kbt, id);
	enum kblk_hello_status status = KBLK_HELLO_OK;
	u32 epoch = le32_to_cpu(hello->epoch);
	struct kbt_census census = {};
	struct kbt_conn *conn;

	lockdep_assert_held(&kbt->mutex);

	list_for_each_entry(conn, &kbt->conns, link) {
		bool of_disk = conn->session_id == le64_to_cpu(hello->session);

		if (of_disk && (s32)(conn->epoch - epoch) > 0)
			return KBLK_HELLO_STALE;
		if (of_disk && conn->epoch != epoch) {
			kbt_conn_end(conn);
			if (!kbt_may_overlap(hello))
				status = KBLK_HELLO_DRAINING;
		}
		census.disk += of_disk && conn->epoch == epoch;
		kbt_count_conn(&census, conn, host);
	}
	if (status == KBLK_HELLO_OK && kbt_is_shunned(kbt, id))
		return KBLK_HELLO_SHUNNED;
	if (status == KBLK_HELLO_OK && !kbt_has_room(kbt, &census, host))
		status = KBLK_HELLO_BUSY;
	return status;
}
