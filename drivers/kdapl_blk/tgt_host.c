// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hosts of clients, and which connection requests are accepted.
 *
 * Entry points: kbt_hello_check() and kbt_session_check() for each connection request,
 * kbt_host_get() and kbt_host_put() with each connection, kbt_hang() and kbt_unhang()
 * for those that have ended while a medium keeps their requests, kbt_many_hang() for
 * each ATTACH.
 *
 * A host is an address. Whatever its clients do, it leaves something for others of all
 * that there is a certain number of: connections here, credits in tgt_credit.c.
 *
 * The connections own their host (host->conns). kbt->mutex guards the list of hosts,
 * kbt_names those of attachments that hang.
 */
#include <linux/slab.h>
#include <net/ipv6.h>
#include "tgt.h"

/* ---- Hosts --------------------------------------------------------------- */

bool kbt_same_host(const struct sockaddr_storage *a,
		   const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (void *)a, *b6 = (void *)b;
	const struct sockaddr_in *a4 = (void *)a, *b4 = (void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr);
	return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

static void kbt_copy_host(struct sockaddr_storage *to, const void *from)
{
	const struct sockaddr *addr = from;

	memcpy(to, from, addr->sa_family == AF_INET6 ?
	       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

static struct kbt_host *kbt_host_find(struct kbt *kbt,
				      const struct sockaddr_storage *addr)
{
	struct kbt_host *host;

	lockdep_assert_held(&kbt->mutex);

	list_for_each_entry(host, &kbt->hosts, link)
		if (kbt_same_host(&host->addr, addr))
			return host;
	return NULL;
}

/*
 * Return the host of a new connection, which comes from @addr, or NULL if there is no
 * memory. kbt_host_put() lets go of it. Context: process.
 */
struct kbt_host *kbt_host_get(struct kbt *kbt, const DAT_IA_ADDRESS_PTR addr)
{
	struct kbt_host *host = kbt_host_find(kbt, (void *)addr);

	if (!host) {
		host = kzalloc(sizeof(*host), GFP_KERNEL);
		if (!host)
			return NULL;
		kbt_copy_host(&host->addr, addr);
		list_add(&host->link, &kbt->hosts);
	}
	host->conns++;
	return host;
}

/* A connection of @host was freed. Context: process. */
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
 * @conn ended a while ago: note the volumes that keep requests of it. kbt->mutex keeps
 * it alive. Context: process.
 */
void kbt_hang(struct kbt_conn *conn)
{
	struct kbt_attachment *att;
	bool hangs = false;

	spin_lock(&kbt_names);
	spin_lock_irq(&conn->lock);
	list_for_each_entry(att, &conn->attachments, link) {
		/* kbt_detach_work() comes when it is not busy any more. */
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

/* The volume of @att keeps no request of it any more. Context: process. */
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
 * Return whether @ns keeps requests of so many connections that have ended that @conn
 * must not be attached to it. Clients that connect again and again to a volume which
 * stands still must not use up what is there for others. One host leaves an eighth of
 * that to others, and if there are too many, those hosts are refused that have made them.
 * A disk that loses all its connections once reaches neither limit.
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
 * @live: those that have not ended
 * @ended: those that have, but are not freed: a medium may keep their requests
 * @host_live: @live of the client's host
 * @host_ended: @ended of the client's host
 * @unattached: connections of the client's host that were never attached
 * @disk: connections of the client's disk, in the same epoch
 */
struct kbt_census {
	unsigned int live;
	unsigned int ended;
	unsigned int host_live;
	unsigned int host_ended;
	unsigned int unattached;
	unsigned int disk;
};

static void kbt_count_conn(struct kbt_census *census, const struct kbt_conn *conn,
			   const struct kbt_host *host)
{
	bool ended = kbt_conn_ending(conn);
	bool of_host = conn->host == host;

	census->live += !ended;
	census->ended += ended;
	census->host_live += of_host && !ended;
	census->host_ended += of_host && ended;
	census->unattached += of_host && !test_bit(KBT_CONN_WAS_ATTACHED, &conn->flags);
}

/*
 * Return whether there may be another connection of the disk and the host that @census
 * is for. The last quarter of max_conns is for disks without any: a few hosts with many
 * CPUs must not keep others out. An eighth is for other hosts: one that makes disks
 * without end must not either.
 *
 * Connections that have ended are counted by themselves: if all that there may be have
 * lost their client while the medium of a volume stands still, as many can be made for
 * the other volumes. If there are more, those hosts are refused that have made them.
 * Context: process.
 */
static bool kbt_has_room(struct kbt *kbt, const struct kbt_census *census)
{
	u32 max = kbt->params->max_conns;
	u32 of_host = kbt_of_a_host(max);

	if (census->disk >= kbt->params->max_queues ||
	    census->unattached >= KBT_UNATTACHED_MAX ||
	    census->host_live >= of_host || census->host_ended > of_host ||
	    (census->ended > max && census->host_ended > max / 8))
		return false;
	return census->live < (census->disk ? max - max / 4 : max);
}

/*
 * Return whether a client that says @hello may connect while connections of an
 * earlier epoch are being ended. If several volumes share them, one whose medium
 * keeps a request does not hold up others: ATTACH has the barrier for each.
 */
static bool kbt_may_overlap(const struct kblk_hello *hello)
{
	return le32_to_cpu(hello->features) & KBLK_FEATURE_VOLUMES;
}

/*
 * Decide on a connection request. Connections of an earlier epoch of the same
 * disk are ended, whatever their state here: the initiator has given them up.
 * Context: process.
 */
enum kblk_hello_status kbt_session_check(struct kbt *kbt, const DAT_CR_PARAM *param)
{
	const struct sockaddr_storage *addr = (void *)param->remote_ia_address_ptr;
	const struct kbt_host *host = kbt_host_find(kbt, addr);
	const struct kblk_hello *hello = param->private_data;
	enum kblk_hello_status status = KBLK_HELLO_OK;
	u32 epoch = le32_to_cpu(hello->epoch);
	struct kbt_census census = {};
	struct kbt_conn *conn;

	lockdep_assert_held(&kbt->mutex);

	if (kbt->stopping)
		return KBLK_HELLO_STOPPING;
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
	if (status == KBLK_HELLO_OK && !kbt_has_room(kbt, &census))
		status = KBLK_HELLO_BUSY;
	if (status == KBLK_HELLO_OK && kbt_is_shunned(kbt, addr))
		status = KBLK_HELLO_SHUNNED;
	return status;
}
