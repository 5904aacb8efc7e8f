// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tell a client which volumes it may attach to, one with each request.
 *
 * Entry point: kbt_list() for LIST.
 *
 * A client is told exactly what ATTACH would let it have: the enabled volumes of subsystems at
 * this port that allow the client. If the subsystem has "authenticate" set, or the client has
 * a secret, the client must have proven the secret.
 *
 * No state. kbt_names keeps the volumes, which are open as long as they are enabled.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/string.h>
#include "tgt.h"

/* Return volume @n, from 0, of those that @client may attach to, or NULL. */
static struct kbt_ns *kbt_nth(struct kbt_port *port, const char *client, bool proven, u64 n)
{
	struct kbt_subsys *subsys;
	struct kbt_link *link;
	struct kbt_ns *ns;

	lockdep_assert_held(&kbt_names);

	list_for_each_entry(link, &port->subsystems, link) {
		subsys = link->to;
		if (!kbt_may_use(subsys, client) || (subsys->authenticate && !proven))
			continue;
		list_for_each_entry(ns, &subsys->namespaces, link)
			if (ns->enabled && !n--)
				return ns;
	}
	return NULL;
}

static void kbt_describe(struct kbt_ns *ns, struct kblk_listed *listed)
{
	memset(listed, 0, sizeof(*listed));
	strscpy(listed->subsystem, config_item_name(&ns->subsys->group.cg_item),
		sizeof(listed->subsystem));
	listed->namespace = cpu_to_le32(ns->nsid);
	if (ns->read_only)
		listed->flags = cpu_to_le32(KBLK_VOLUME_READ_ONLY);
	listed->size = cpu_to_le64(kbt_ns_size(ns));
	export_uuid(listed->uuid, &ns->uuid);
}

/**
 * kbt_list() - serve LIST
 * @io: slot of the request, whose @offset is the number of the wanted volume
 * @attach: name of the client and the proof of it, as received
 *
 * The description goes to kbt_words(), which the reply sends.
 *
 * Context: Process.
 * Return: KBLK_OK, KBLK_ERR_NO_VOLUME if there are no more, or another status.
 */
enum kblk_status kbt_list(struct kbt_io *io, const struct kblk_attach *attach)
{
	struct kbt_conn *conn = io->conn;
	enum kblk_status status;
	struct kbt_ns *ns;

	lockdep_assert_held(&conn->recv_mutex);

	if (strnlen(attach->client, KBLK_NAME_LEN) == KBLK_NAME_LEN ||
	    !kblk_is_zero(attach->subsystem, sizeof(attach->subsystem)) ||
	    attach->namespace || attach->keepalive_ms ||
	    !kblk_is_zero(attach->host, sizeof(attach->host)) ||
	    !kblk_is_zero(attach->reserved, sizeof(attach->reserved)))
		return KBLK_ERR_INVALID;
	spin_lock(&kbt_names);
	status = kbt_authenticate(conn, NULL, attach);
	if (status == KBLK_OK) {
		ns = kbt_nth(conn->kbt->port, attach->client, conn->auth,
			     le64_to_cpu(io->request.offset));
		if (ns)
			kbt_describe(ns, kbt_words(conn));
		else
			status = KBLK_ERR_NO_VOLUME;
	}
	spin_unlock(&kbt_names);
	return status;
}
