// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which disks share a link.
 *
 * A disk has a link of its own, unless its administrator wants it to share one and the target
 * knows KBLK_FEATURE_VOLUMES: then all such disks of a client and a subsystem share one link.
 *
 * Entry points: kbi_link_join() and kbi_link_quit() with the life of a disk, kbi_link_of() and
 * kbi_link_put() for temporary references, kbi_link_hide().
 *
 * The adapter of a link may be renamed, also while it is closed; the link and its disks follow
 * the name: kbi_link_ia(), kbi_disk_ia().
 *
 * Each disk holds a reference on its link. Locks: kbi_links_lock guards the list of links,
 * their references, the names of their adapters, and disk->link. No memory is allocated under
 * it: kbi_fail_work(), which requests of any disk may wait for, takes it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <dat/kdat_linux.h>
#include "ini.h"

static LIST_HEAD(kbi_links);
static DEFINE_MUTEX(kbi_links_lock);

/*
 * Set the address of the target. The network device that is its scope may have come back with
 * another number since. Return 0, or an error number, with the address unchanged.
 */
static int kbi_link_resolve(struct kbi_link *link, const char *address)
{
	struct sockaddr_storage target = { };
	int err = inet_pton_with_scope(&init_net, AF_UNSPEC, address, NULL, &target);

	if (!err)
		link->target = target;
	return err;
}

/* Make a link with the parameters of @disk. Return an error pointer on failure. */
static struct kbi_link *kbi_link_make(struct kbi_disk *disk)
{
	struct kbi_link *link = kzalloc(sizeof(*link), GFP_KERNEL);
	int err;

	if (!link)
		return ERR_PTR(-ENOMEM);
	err = kbi_link_resolve(link, disk->params.address);
	if (err) {
		kfree(link);
		return ERR_PTR(err);
	}
	strscpy(link->name, config_item_name(&disk->item), sizeof(link->name));
	link->params = disk->params;
	link->asks = disk->listing;
	link->params.secret.key = key_get(disk->params.secret.key);
	link->refs = 1;
	link->spoil_at = jiffies;
	if (link->asks)
		link->params.share = 0;
	INIT_LIST_HEAD(&link->entry);
	mutex_init(&link->mutex);
	spin_lock_init(&link->lock);
	INIT_LIST_HEAD(&link->disks);
	init_completion(&link->closed);
	INIT_WORK(&link->err_work, kbi_err_work);
	INIT_WORK(&link->close_work, kbi_close_work);
	INIT_DELAYED_WORK(&link->reconnect_work, kbi_reconnect_work);
	INIT_DELAYED_WORK(&link->more_work, kbi_more_work);
	INIT_DELAYED_WORK(&link->keepalive_work, kbi_keepalive_work);
	return link;
}

/* Return the link of @disk with a reference, or NULL. Context: process. */
struct kbi_link *kbi_link_of(struct kbi_disk *disk)
{
	struct kbi_link *link;

	mutex_lock(&kbi_links_lock);
	link = disk->link;
	if (link)
		link->refs++;
	mutex_unlock(&kbi_links_lock);
	return link;
}

/*
 * Drop a reference on @link; the last put cancels the link's works. Context: process, but none
 * of these works.
 */
void kbi_link_put(struct kbi_link *link)
{
	bool last;

	mutex_lock(&kbi_links_lock);
	last = !--link->refs;
	if (last)
		list_del(&link->entry);
	mutex_unlock(&kbi_links_lock);
	if (!last)
		return;
	cancel_work_sync(&link->err_work);
	cancel_delayed_work_sync(&link->reconnect_work);
	cancel_delayed_work_sync(&link->keepalive_work);
	cancel_delayed_work_sync(&link->more_work);
	kblk_secret_put(&link->params.secret);
	kfree(link);
}

/* ---- The adapter's name -------------------------------------------------- */

/* Update the adapter's name in the parameters of @link. */
static void kbi_link_follow(struct kbi_link *link)
{
	char name[DAT_NAME_MAX_LENGTH];

	lockdep_assert_held(&kbi_links_lock);

	/*
	 * If the adapter has left, the link waits for one with its GUID, or else with its name,
	 * which has replaced it.
	 */
	if (!kblk_ia_renamed(&link->ident, link->params.ia, name))
		return;
	pr_info("%s: %s is called %s now\n", link->name, link->params.ia, name);
	strscpy(link->params.ia, name, sizeof(link->params.ia));
}

/* Copy the present name of the adapter of @link to @name. Context: process. */
void kbi_link_ia(struct kbi_link *link, char name[DAT_NAME_MAX_LENGTH])
{
	mutex_lock(&kbi_links_lock);
	kbi_link_follow(link);
	strscpy(name, link->params.ia, DAT_NAME_MAX_LENGTH);
	mutex_unlock(&kbi_links_lock);
}

/*
 * Note the number of link->ia, which was opened by @name from kbi_link_ia(). Return false if
 * the link's adapter has another name by now, as link->ia may then be another adapter.
 * Context: process.
 */
static bool kbi_link_has_opened(struct kbi_link *link, const char *name)
{
	bool same;

	mutex_lock(&kbi_links_lock);
	kbi_link_follow(link);
	same = !strcmp(name, link->params.ia);
	if (same && link->ident.id)
		kdat_ia_id(link->ia, &link->ident.id);
	else if (same)
		kdat_ia_identify(link->ia, &link->ident);
	mutex_unlock(&kbi_links_lock);
	return same;
}

/* Through link->ia the target was reached, so it is the right adapter. Context: process. */
void kbi_link_knows_ia(struct kbi_link *link)
{
	mutex_lock(&kbi_links_lock);
	kdat_ia_identify(link->ia, &link->ident);
	mutex_unlock(&kbi_links_lock);
}

/*
 * Close the adapter of @link with all that is left in it. A driver that does not end a
 * connection keeps it open; what is registered there is kept by those who could not free it.
 * Context: process.
 */
void kbi_ia_abort(struct kbi_link *link)
{
	if (DAT_GET_TYPE(dat_ia_close(link->ia, DAT_CLOSE_ABRUPT_FLAG)) == DAT_INVALID_STATE)
		pr_err("%s: a connection does not end: its adapter stays open\n", link->name);
	link->ia = NULL;
}

/*
 * Open the adapter of @link by its present name. An error is logged once, until the error
 * changes. Context: process.
 */
DAT_RETURN kbi_link_open_ia(struct kbi_link *link, DAT_COUNT qlen)
{
	char name[DAT_NAME_MAX_LENGTH];
	DAT_RETURN ret;

	lockdep_assert_held(&link->mutex);

	kbi_link_resolve(link, link->params.address);
	kbi_link_ia(link, name);
	/* DAT_HANDLE_NULL asks for a new EVD; the old handle is stale. */
	link->async_evd = DAT_HANDLE_NULL;
	ret = dat_ia_open(name, qlen, &link->async_evd, &link->ia);
	if (ret != DAT_SUCCESS && ret != link->ia_ret)
		pr_err("%s: cannot open %s: %s\n", link->name, name,
		       kblk_strerror(ret));
	link->ia_ret = ret;
	if (ret != DAT_SUCCESS || kbi_link_has_opened(link, name))
		return ret;
	kbi_ia_abort(link);
	return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* Copy the present name of the adapter of @disk to @name. Context: process. */
void kbi_disk_ia(struct kbi_disk *disk, char name[DAT_NAME_MAX_LENGTH])
{
	mutex_lock(&kbi_links_lock);
	if (disk->link)
		kbi_link_follow(disk->link);
	strscpy(name, disk->link ? disk->link->params.ia : disk->params.ia,
		DAT_NAME_MAX_LENGTH);
	mutex_unlock(&kbi_links_lock);
}

/* ---- Sharing ------------------------------------------------------------- */

/* Return whether disks with parameters @a and @b may share a link. */
static bool kbi_same_client(const struct kbi_params *a,
			    const struct kbi_params *b)
{
	return !strcmp(a->ia, b->ia) && !strcmp(a->address, b->address) &&
	       a->conn_qual == b->conn_qual &&
	       !strcmp(a->subsystem, b->subsystem) &&
	       !strcmp(a->client, b->client) &&
	       !strcmp(a->secret.text, b->secret.text) &&
	       a->secret.key == b->secret.key;
}

/* Return whether disks with parameters @a and @b want connections of the same kind. */
static bool kbi_same_connections(const struct kbi_params *a,
				 const struct kbi_params *b)
{
	return a->queues == b->queues && a->read_queues == b->read_queues &&
	       a->depth == b->depth && a->timeout_ms == b->timeout_ms &&
	       a->connect_timeout_ms == b->connect_timeout_ms &&
	       a->keepalive_ms == b->keepalive_ms &&
	       a->reconnect_ms == b->reconnect_ms &&
	       a->reconnect_max_ms == b->reconnect_max_ms;
}

/* Find a link that @disk can share; return NULL if there is none, or -EINVAL. */
static struct kbi_link *kbi_link_find(struct kbi_disk *disk)
{
	struct kbi_link *link;

	lockdep_assert_held(&kbi_links_lock);

	list_for_each_entry(link, &kbi_links, entry) {
		kbi_link_follow(link);
		if (!kbi_same_client(&link->params, &disk->params))
			continue;
		if (kbi_same_connections(&link->params, &disk->params))
			return link;
		pr_err("%s: disks that share connections need the same queues, read_queues, depth and *_ms, except give_up_ms\n",
		       config_item_name(&disk->item));
		return ERR_PTR(-EINVAL);
	}
	return NULL;
}

/**
 * kbi_link_join() - find a link for a disk, or make one
 * @disk: disk; its parameters are set
 *
 * Context: Process context, may sleep.
 * Return: 0 or an error number.
 */
int kbi_link_join(struct kbi_disk *disk)
{
	struct kbi_link *mine = kbi_link_make(disk), *link = NULL;

	lockdep_assert_held(&disk->admin);

	if (IS_ERR(mine))
		return PTR_ERR(mine);
	mutex_lock(&kbi_links_lock);
	if (mine->params.share)
		link = kbi_link_find(disk);
	if (!link) {
		if (mine->params.share)
			list_add(&mine->entry, &kbi_links);
		disk->link = mine;
	} else if (!IS_ERR(link)) {
		link->refs++;
		disk->link = link;
	}
	mutex_unlock(&kbi_links_lock);
	if (link)
		kbi_link_put(mine);
	return PTR_ERR_OR_ZERO(link);
}

/* Undo kbi_link_join(). Context: process. */
void kbi_link_quit(struct kbi_disk *disk)
{
	struct kbi_link *link = disk->link;

	lockdep_assert_held(&disk->admin);

	mutex_lock(&kbi_links_lock);
	kbi_link_follow(link);
	strscpy(disk->params.ia, link->params.ia, sizeof(disk->params.ia));
	disk->link = NULL;
	mutex_unlock(&kbi_links_lock);
	kbi_link_put(link);
}

/* Keep further disks from using @link. Context: process. */
void kbi_link_hide(struct kbi_link *link)
{
	mutex_lock(&kbi_links_lock);
	list_del_init(&link->entry);
	mutex_unlock(&kbi_links_lock);
}
