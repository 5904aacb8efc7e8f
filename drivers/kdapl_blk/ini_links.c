// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which disks have a link in common.
 *
 * A disk has a link of its own, unless its administrator wants it to share one and the
 * target knows KBLK_FEATURE_VOLUMES: then all such disks of a client and a subsystem
 * have one.
 *
 * Entry points: kbi_link_join() and kbi_link_quit() with the life of a disk,
 * kbi_link_of() and kbi_link_put() for others, kbi_link_hide().
 *
 * A link has a reference for each of its disks. Locks: kbi_links_lock guards the list
 * of links, their references and disk->link. No memory is allocated under it, as
 * requests of any disk may wait for kbi_fail_work().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "ini.h"

static LIST_HEAD(kbi_links);
static DEFINE_MUTEX(kbi_links_lock);

/* Make a link with the parameters of @disk. Return an error pointer on failure. */
static struct kbi_link *kbi_link_make(struct kbi_disk *disk)
{
	struct kbi_link *link = kzalloc(sizeof(*link), GFP_KERNEL);
	int err;

	if (!link)
		return ERR_PTR(-ENOMEM);
	err = inet_pton_with_scope(&init_net, AF_UNSPEC, disk->params.address,
				   NULL, &link->target);
	if (err) {
		kfree(link);
		return ERR_PTR(err);
	}
	strscpy(link->name, config_item_name(&disk->item), sizeof(link->name));
	link->params = disk->params;
	link->params.secret.key = key_get(disk->params.secret.key);
	link->refs = 1;
	link->spoil_at = jiffies;
	INIT_LIST_HEAD(&link->entry);
	mutex_init(&link->mutex);
	spin_lock_init(&link->lock);
	INIT_LIST_HEAD(&link->disks);
	INIT_WORK(&link->err_work, kbi_err_work);
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

/* Drop a reference. Context: process, and none of the link's works. */
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

/* Return whether disks with @a and @b may share a link. */
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

/* Return whether @a and @b want connections of the same kind. */
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
	if (disk->params.share)
		link = kbi_link_find(disk);
	if (!link) {
		if (disk->params.share)
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
	disk->link = NULL;
	mutex_unlock(&kbi_links_lock);
	kbi_link_put(link);
}

/* Let no further disks use @link. Context: process. */
void kbi_link_hide(struct kbi_link *link)
{
	mutex_lock(&kbi_links_lock);
	list_del_init(&link->entry);
	mutex_unlock(&kbi_links_lock);
}
